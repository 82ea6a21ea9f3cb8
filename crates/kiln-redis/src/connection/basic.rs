//! PING, ECHO, QUIT and SELECT.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandFlags, CommandResult, CommandSpec, Context, Group, ReplyWriter, wrong_arity,
};

const FAST: CommandFlags =
    CommandFlags::LOADING.union(CommandFlags::STALE).union(CommandFlags::FAST);

const PING: CommandSpec = CommandSpec::connection("PING", Arity::at_least(1), ping)
    .group(Group::Connection)
    .flags(CommandFlags::FAST)
    .docs("1.0.0", "O(1)", "[message]", "Reply with PONG, or with the message.");

pub(super) const COMMANDS: &[CommandSpec] = &[
    PING,
    CommandSpec::connection("ECHO", Arity::exactly(2), echo)
        .group(Group::Connection)
        .flags(FAST)
        .docs("1.0.0", "O(1)", "message", "Reply with the message."),
    CommandSpec::connection("SELECT", Arity::exactly(2), select)
        .group(Group::Connection)
        .flags(FAST)
        .docs("1.0.0", "O(1)", "index", "Choose the database that keys mean."),
    CommandSpec::connection("QUIT", Arity::at_least(1), quit)
        .group(Group::Connection)
        .flags(
            FAST.union(CommandFlags::NOSCRIPT)
                .union(CommandFlags::NO_AUTH)
                .union(CommandFlags::ALLOW_BUSY),
        )
        .docs("1.0.0", "O(1)", "", "Close the connection."),
];

fn ping(_: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match args.len() {
        1 => reply.raw(b"+PONG\r\n"),
        2 => reply.bulk(args.get(1)),
        _ => return Err(wrong_arity(&PING)),
    }
    Ok(())
}

fn echo(_: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.bulk(args.get(1));
    Ok(())
}

fn select(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    context.session.db = args.db(1, context.server.keyspace.databases())?;
    context.session.publish();
    reply.ok();
    Ok(())
}

fn quit(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    context.session.closing = true;
    reply.ok();
    Ok(())
}
