//! MULTI, EXEC, DISCARD, WATCH and UNWATCH.
//!
//! The executor queues what comes between MULTI and EXEC and runs EXEC itself, since that is
//! about locks; the rest is here.
//!
//! Source: the Redis documentation on transactions; replies observed on Redis 8.2.3.

use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Context, Group, KeyFlags,
    KeySpec, ReplyWriter, begin, unwatch_all, watch as watch_keys,
};

const FLAGS: CommandFlags = CommandFlags::NOSCRIPT
    .union(CommandFlags::LOADING)
    .union(CommandFlags::STALE)
    .union(CommandFlags::FAST)
    .union(CommandFlags::ALLOW_BUSY);

pub(crate) const COMMANDS: &[&[CommandSpec]] = &[&[
    CommandSpec::connection("MULTI", Arity::exactly(1), multi)
        .group(Group::Transactions)
        .flags(FLAGS)
        .docs("1.2.0", "O(1)", "", "Start a transaction: queue commands until EXEC."),
    CommandSpec::connection("EXEC", Arity::exactly(1), exec)
        .group(Group::Transactions)
        .flags(
            CommandFlags::NOSCRIPT
                .union(CommandFlags::LOADING)
                .union(CommandFlags::STALE)
                .union(CommandFlags::SKIP_SLOWLOG),
        )
        .docs("1.2.0", "The sum of the queued commands.", "", "Run the queued commands at once."),
    CommandSpec::connection("DISCARD", Arity::exactly(1), discard)
        .group(Group::Transactions)
        .flags(FLAGS)
        .docs("2.0.0", "O(N) with N queued commands.", "", "Drop the queued commands."),
    CommandSpec::connection("WATCH", Arity::at_least(2), watch)
        .group(Group::Transactions)
        .flags(FLAGS)
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RO)])
        .docs(
            "2.2.0",
            "O(1) for each key.",
            "key [key ...]",
            "Let the next EXEC fail if one of the keys changes before it.",
        ),
    CommandSpec::connection("UNWATCH", Arity::exactly(1), unwatch)
        .group(Group::Transactions)
        .flags(FLAGS)
        .docs("2.2.0", "O(N) with N watched keys.", "", "Forget all watched keys."),
]];

fn multi(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    begin(context.session)?;
    reply.ok();
    Ok(())
}

/// The executor runs EXEC; this row is here for everything else that rows are for.
fn exec(_: &mut Context<'_>, _: &Args<'_>, _: &mut ReplyWriter<'_>) -> CommandResult {
    unreachable!("the executor runs EXEC")
}

fn discard(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if context.session.transaction.take().is_none() {
        return Err(CommandError::text("ERR DISCARD without MULTI"));
    }
    forget_watches(context);
    reply.ok();
    Ok(())
}

fn watch(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if context.session.in_multi() {
        return Err(CommandError::text("ERR WATCH inside MULTI is not allowed"));
    }
    watch_keys(context, args.tail(1));
    reply.ok();
    Ok(())
}

fn unwatch(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    // Inside a transaction the watches are over already: EXEC has looked at them.
    if !context.in_exec() {
        forget_watches(context);
    }
    reply.ok();
    Ok(())
}

fn forget_watches(context: &mut Context<'_>) {
    let now = context.now();
    unwatch_all(context.server, context.worker, context.session, now);
}
