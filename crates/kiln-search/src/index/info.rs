//! VSIM.INFO: all indexes, or one.

use kiln_command::compute::Work;
use kiln_command::{Args, Arity, CommandError, CommandSpec, Context, ReplyWriter, wrong_arity};
use kiln_keyspace::Space;

use super::{NOT_FOUND, VectorIndex, metric_name, name, reads};
use crate::engine::look_up;

const INFO: CommandSpec =
    reads("VSIM.INFO", Arity::at_least(1), info).touches_all(|args| args.len() == 1).docs(
        "0.1.0",
        "O(N) with N indexes; O(1) for one.",
        "[index]",
        "List the indexes, or show what one was made for and how large it is.",
    );

pub(super) const COMMANDS: &[CommandSpec] = &[INFO];

fn info(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    match args.len() {
        1 => {
            let mut names: Vec<Box<[u8]>> = Vec::new();
            context.for_each_in(Space::VectorIndex, |entry| names.push(entry.key().into()));
            names.sort_unstable();
            reply.array(names.len());
            names.iter().for_each(|name| reply.bulk(name));
            return Ok(Work::Done);
        }
        2 => {}
        _ => return Err(wrong_arity(&INFO)),
    }
    let key = name(args, 1)?;
    let index = look_up::<VectorIndex>(context, key)?.ok_or(NOT_FOUND)?;
    let info = index.index.info();
    let figures = [
        ("dims", info.config.dim),
        ("vectors", info.elements),
        ("m", info.config.m),
        ("ef_construction", info.config.ef_construction),
        ("ef_search", info.config.ef_search),
        ("max_level", info.max_level.unwrap_or(0)),
        ("deleted", info.retired),
        ("memory_bytes", info.memory_bytes),
    ];
    // The same flat array in both protocols: clients take it by names.
    reply.array(2 * (2 + figures.len()));
    reply.bulk(b"name");
    reply.bulk(key);
    reply.bulk(b"metric");
    reply.bulk(metric_name(info.config.metric).as_bytes());
    for (name, figure) in figures {
        reply.bulk(name.as_bytes());
        reply.integer(figure as i64);
    }
    Ok(Work::Done)
}
