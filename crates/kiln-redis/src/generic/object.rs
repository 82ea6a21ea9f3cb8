//! OBJECT: how a value is kept.
//!
//! Values have no reference count here, so REFCOUNT is 1, except for the small integers of which
//! Redis keeps one copy for all.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::{
    AclCategories, Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Context,
    KeyFlags, KeySpec, ReadHandler, ReplyWriter, View,
};
use kiln_keyspace::{idle_seconds, lfu_counter};

const NO_LFU: CommandError = CommandError::text(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
     when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);
const NO_LRU: CommandError = CommandError::text(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when \
     switching between policies at runtime LRU and LFU data will take some time to adjust.",
);

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::container("OBJECT").docs(
        "2.2.3",
        "Depends on the subcommand.",
        "",
        "A container for commands that look into values.",
    ),
    spec("OBJECT|ENCODING", "2.2.3", encoding, "Name the encoding of the value at a key."),
    spec("OBJECT|FREQ", "4.0.0", freq, "Tell how often a key is used, on a logarithmic scale."),
    spec("OBJECT|IDLETIME", "2.2.3", idle_time, "Tell the seconds since a key was last used."),
    spec("OBJECT|REFCOUNT", "2.2.3", ref_count, "Count the references to the value at a key."),
    CommandSpec::connection("OBJECT|HELP", Arity::exactly(2), help)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::LOADING.union(CommandFlags::STALE))
        .docs("6.2.0", "O(1)", "", "List the subcommands."),
];

const fn spec(
    name: &'static str,
    since: &'static str,
    handler: ReadHandler,
    summary: &'static str,
) -> CommandSpec {
    const KEYS: &[KeySpec] = &[KeySpec::at(2, KeyFlags::RO)];
    CommandSpec::read(name, Arity::exactly(3), handler)
        .categories(AclCategories::KEYSPACE)
        .keys(KEYS)
        .docs(since, "O(1)", "key", summary)
}

fn encoding(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match view.peek(args.get(2)) {
        Some(entry) => reply.bulk(entry.encoding_name().as_bytes()),
        None => reply.null(),
    }
    Ok(())
}

fn freq(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let settings = view.settings();
    match view.peek(args.get(2)) {
        None => reply.null(),
        Some(_) if !settings.policy.is_lfu() => return Err(NO_LFU),
        Some(entry) => {
            reply.integer(i64::from(lfu_counter(entry.access(), view.now(), settings.lfu)));
        }
    }
    Ok(())
}

fn idle_time(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match view.peek(args.get(2)) {
        None => reply.null(),
        Some(_) if view.settings().policy.is_lfu() => return Err(NO_LRU),
        Some(entry) => reply.integer(i64::from(idle_seconds(entry.access(), view.now()))),
    }
    Ok(())
}

fn ref_count(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match view.peek(args.get(2)) {
        None => reply.null(),
        Some(_) => reply.integer(1),
    }
    Ok(())
}

fn help(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    crate::help::write(&context.server.commands, "OBJECT", reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn a_missing_key_has_no_encoding() {
        check(&[
            ("OBJECT ENCODING k", "(nil)"),
            ("OBJECT REFCOUNT k", "(nil)"),
            ("SET k 12", "OK"),
            ("OBJECT ENCODING k", "\"int\""),
            ("OBJECT IDLETIME k", "(integer) 0"),
            (
                "OBJECT ENCODING",
                "(error) ERR wrong number of arguments for 'object|encoding' command",
            ),
            ("OBJECT BOGUS k", "(error) ERR unknown subcommand 'BOGUS'. Try OBJECT HELP."),
        ]);
    }
}
