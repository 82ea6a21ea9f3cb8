//! SLOWLOG: the commands that took longest of late.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::number::parse_i64;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, ConnectionHandler,
    Context, Group, ReplyWriter,
};

use crate::help;

/// Entries that GET shows unless it is told how many.
const SHOWN: usize = 10;

const ALWAYS: CommandFlags = CommandFlags::LOADING.union(CommandFlags::STALE);

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::container("SLOWLOG").group(Group::Server).docs(
        "2.2.12",
        "Depends on the subcommand.",
        "",
        "The commands that took longest of late.",
    ),
    row("SLOWLOG|GET", Arity::at_least(2), get).docs(
        "2.2.12",
        "O(N) with N entries.",
        "[count]",
        "Show the newest entries, 10 if not told how many, all for -1.",
    ),
    row("SLOWLOG|LEN", Arity::exactly(2), len).docs("2.2.12", "O(1)", "", "Count the entries."),
    row("SLOWLOG|RESET", Arity::exactly(2), reset).docs(
        "2.2.12",
        "O(N) with N entries.",
        "",
        "Forget the entries.",
    ),
    CommandSpec::connection("SLOWLOG|HELP", Arity::exactly(2), slowlog_help)
        .group(Group::Server)
        .flags(ALWAYS)
        .docs("6.2.0", "O(1)", "", "List the subcommands."),
];

const fn row(name: &'static str, arity: Arity, handler: ConnectionHandler) -> CommandSpec {
    CommandSpec::connection(name, arity, handler)
        .group(Group::Server)
        .flags(ALWAYS.union(CommandFlags::ADMIN))
}

fn get(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let count = match args.len() {
        2 => SHOWN,
        3 => match parse_i64(args.get(2)) {
            Some(-1) => usize::MAX,
            Some(count @ 0..) => count as usize,
            _ => {
                return Err(CommandError::text("ERR count should be greater than or equal to -1"));
            }
        },
        _ => return Err(super::unknown_subcommand("SLOWLOG", args)),
    };
    let entries = context.server.slowlog.newest(count);
    reply.array(entries.len());
    for entry in entries {
        reply.array(6);
        reply.integer(entry.id as i64);
        reply.integer(entry.time_s);
        reply.integer(entry.duration_us as i64);
        reply.array(entry.words.len());
        for word in &entry.words {
            reply.bulk(word);
        }
        reply.bulk(entry.addr.as_bytes());
        reply.bulk(&entry.client_name);
    }
    Ok(())
}

fn len(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(context.server.slowlog.len() as i64);
    Ok(())
}

fn reset(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    context.server.slowlog.reset();
    reply.ok();
    Ok(())
}

fn slowlog_help(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    help::write(&context.server.commands, "SLOWLOG", reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn commands_over_the_threshold_are_kept() {
        check(&[
            ("SLOWLOG LEN", "(integer) 0"),
            ("CONFIG SET slowlog-log-slower-than 0", "OK"),
            ("SET k v", "OK"),
            ("CONFIG SET slowlog-log-slower-than -1", "OK"),
            ("SLOWLOG GET 0", "(empty array)"),
            ("SLOWLOG LEN", "(integer) 2"),
            ("SLOWLOG RESET", "OK"),
            ("SLOWLOG LEN", "(integer) 0"),
            ("SLOWLOG GET -2", "(error) ERR count should be greater than or equal to -1"),
            (
                "SLOWLOG GET 1 2",
                "(error) ERR unknown subcommand or wrong number of arguments for 'GET'. Try \
                 SLOWLOG HELP.",
            ),
        ]);
    }
}
