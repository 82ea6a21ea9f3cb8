//! VSIM.SAVE, LOAD, LIST and DROP: a client's blobs under names of their own.

use kiln_command::compute::{EngineHandler, Work};
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandSpec, Context, Group, KeySpec, ReplyWriter,
    StringRef, Ttl,
};
use kiln_keyspace::Space;

use super::{RM, RO, RW, name};
use crate::engine::{announce, remove};

const fn row(
    name: &'static str,
    arity: i16,
    handler: EngineHandler,
    keys: &'static [KeySpec],
    is_write: bool,
) -> CommandSpec {
    let arity = Arity::exactly(arity);
    let spec = if is_write {
        CommandSpec::engine_write(name, arity, handler)
    } else {
        CommandSpec::engine_read(name, arity, handler)
    };
    spec.group(Group::VectorIndex).space(Space::VectorSnapshot).keys(keys)
}

pub(super) const COMMANDS: &[CommandSpec] = &[
    row("VSIM.SAVE", 3, save, RW, true).flags(CommandFlags::DENYOOM).docs(
        "0.1.0",
        "O(N) with N bytes.",
        "snapshot blob",
        "Keep bytes under a snapshot's name.",
    ),
    row("VSIM.LOAD", 2, load, RO, false).docs(
        "0.1.0",
        "O(N) with N bytes.",
        "snapshot",
        "Show the bytes of a snapshot.",
    ),
    row("VSIM.DROP", 2, drop_snapshot, RM, true).docs(
        "0.1.0",
        "O(1)",
        "snapshot",
        "Remove a snapshot.",
    ),
    row("VSIM.LIST", 1, list, &[], false).touches_all(|_| true).docs(
        "0.1.0",
        "O(N log N) with N snapshots.",
        "",
        "List the snapshots.",
    ),
];

fn save(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let (key, blob) = (name(args, 1)?, args.get(2));
    context.write(key, |view| {
        view.set_text(key, blob, Ttl::Clear);
        announce(view, key);
    });
    reply.integer(blob.len() as i64);
    Ok(Work::Done)
}

fn load(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let key = name(args, 1)?;
    context.read(key, |view| {
        match view.string(key)? {
            None => reply.null(),
            Some(StringRef::Shared(blob)) => reply.bulk_shared(blob),
            Some(blob) => reply.bulk(&blob.to_vec()),
        }
        Ok(Work::Done)
    })
}

fn drop_snapshot(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let key = name(args, 1)?;
    reply.integer(i64::from(remove(context, key)));
    Ok(Work::Done)
}

fn list(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let mut names: Vec<Box<[u8]>> = Vec::new();
    context.for_each_in(Space::VectorSnapshot, |entry| names.push(entry.key().into()));
    names.sort_unstable();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
    Ok(Work::Done)
}
