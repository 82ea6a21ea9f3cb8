//! GET and SET.

use kiln_command::{
    Args, Arity, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags, KeySpec,
    ReplyWriter, StringRef, Ttl, View,
};

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::read("GET", Arity::exactly(2), get)
        .group(Group::String)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .docs("1.0.0", "O(1)", "key", "Return the string at a key."),
    CommandSpec::write("SET", Arity::at_least(3), set)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM)
        .keys(&[KeySpec::at(1, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .docs("1.0.0", "O(1)", "key value", "Store a string."),
];

fn get(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match view.string(args.get(1))? {
        None => reply.null(),
        Some(StringRef::Int(number)) => reply.bulk_integer(number),
        Some(StringRef::Bytes(bytes)) => reply.bulk(bytes),
        Some(StringRef::Shared(bytes)) => reply.bulk_shared(bytes),
    }
    Ok(())
}

fn set(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    view.set_string(args.get(1), args.get(2), Ttl::Clear);
    view.changed(args.get(1), Event::Set);
    reply.ok();
    Ok(())
}
