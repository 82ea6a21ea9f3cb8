//! CLIENT and MONITOR: what clients may know of and do to each other.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::number::parse_i64;
use kiln_base::sync::Arc;
use kiln_command::args::ArgsExt;
use kiln_command::blocking::Wake;
use kiln_command::{
    AclCategories, Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec,
    ConnectionHandler, Context, Group, ReplyMode, ReplyWriter, echo,
};

use super::client_filter::{ClientType, Filter, by_ids, line};
use crate::help;

const FLAGS: CommandFlags =
    CommandFlags::NOSCRIPT.union(CommandFlags::LOADING).union(CommandFlags::STALE);
const ADMIN: CommandFlags = FLAGS.union(CommandFlags::ADMIN);

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::container("CLIENT").group(Group::Connection).docs(
        "2.4.0",
        "Depends on the subcommand.",
        "",
        "Know and manage connections.",
    ),
    row("CLIENT|ID", Arity::exactly(2), id, FLAGS, "5.0.0", "", "Return the connection's id."),
    row(
        "CLIENT|INFO",
        Arity::exactly(2),
        info,
        FLAGS,
        "6.2.0",
        "",
        "Describe the connection, as CLIENT LIST does.",
    ),
    row(
        "CLIENT|LIST",
        Arity::at_least(2),
        list,
        ADMIN,
        "2.4.0",
        "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
        "Describe the open connections, a line each.",
    ),
    row(
        "CLIENT|KILL",
        Arity::at_least(3),
        kill,
        ADMIN,
        "2.4.0",
        "<ip:port | <[ID client-id] | [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] | [USER \
         username] | [ADDR ip:port] | [LADDR ip:port] | [SKIPME <YES | NO>] | [MAXAGE maxage]>>",
        "Close connections.",
    ),
    row(
        "CLIENT|GETNAME",
        Arity::exactly(2),
        getname,
        FLAGS,
        "2.6.9",
        "",
        "Return the connection's name.",
    ),
    row(
        "CLIENT|SETNAME",
        Arity::exactly(3),
        setname,
        FLAGS,
        "2.6.9",
        "connection-name",
        "Name the connection.",
    ),
    row(
        "CLIENT|SETINFO",
        Arity::exactly(4),
        setinfo,
        FLAGS,
        "7.2.0",
        "<LIB-NAME libname | LIB-VER libver>",
        "Tell which client library the connection uses.",
    ),
    row(
        "CLIENT|NO-EVICT",
        Arity::exactly(3),
        no_evict,
        ADMIN,
        "7.0.0",
        "<ON | OFF>",
        "Spare the connection when client memory is short.",
    ),
    row(
        "CLIENT|NO-TOUCH",
        Arity::exactly(3),
        no_touch,
        FLAGS,
        "7.2.0",
        "<ON | OFF>",
        "Let reading leave the access clocks of keys alone.",
    ),
    row(
        "CLIENT|REPLY",
        Arity::exactly(3),
        reply_mode,
        FLAGS,
        "3.2.0",
        "<ON | OFF | SKIP>",
        "Choose whether commands are answered.",
    ),
    row(
        "CLIENT|UNBLOCK",
        Arity::at_least(3),
        unblock,
        ADMIN,
        "5.0.0",
        "client-id [TIMEOUT | ERROR]",
        "End the wait of a blocked connection.",
    ),
    row(
        "CLIENT|PAUSE",
        Arity::at_least(3),
        pause,
        ADMIN,
        "3.0.0",
        "timeout [WRITE | ALL]",
        "Hold back commands for some milliseconds.",
    ),
    row(
        "CLIENT|UNPAUSE",
        Arity::exactly(2),
        unpause,
        ADMIN,
        "6.2.0",
        "",
        "Let held back commands run.",
    ),
    row(
        "CLIENT|GETREDIR",
        Arity::exactly(2),
        getredir,
        FLAGS,
        "6.0.0",
        "",
        "Return the id of the connection that gets this one's invalidations.",
    ),
    row("CLIENT|HELP", Arity::exactly(2), client_help, HELP, "5.0.0", "", "Show this help."),
    CommandSpec::connection("MONITOR", Arity::exactly(1), monitor)
        .group(Group::Server)
        .flags(ADMIN)
        .docs("1.0.0", "O(1)", "", "Show every command that the server runs."),
];

const HELP: CommandFlags = CommandFlags::LOADING.union(CommandFlags::STALE);

const fn row(
    name: &'static str,
    arity: Arity,
    handler: ConnectionHandler,
    flags: CommandFlags,
    since: &'static str,
    syntax: &'static str,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::connection(name, arity, handler)
        .group(Group::Connection)
        .categories(AclCategories::CONNECTION)
        .flags(flags)
        .docs(since, "O(1)", syntax, summary)
}

fn id(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(context.session.client.id as i64);
    Ok(())
}

fn info(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let mut text = line(&context.session.client, &context.server.commands, context.now());
    text.push('\n');
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn list(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let mut clients = context.server.clients.list();
    if args.len() == 4 && args.is_word(2, "TYPE") {
        if ClientType::parse(args.get(3))? != ClientType::Normal {
            clients.clear();
        }
    } else if args.len() > 3 && args.is_word(2, "ID") {
        clients = by_ids(&clients, &args.tail(3))?;
    } else if args.len() != 2 {
        return Err(CommandError::Syntax);
    }
    let mut text = String::new();
    for client in clients {
        text.push_str(&line(&client, &context.server.commands, context.now()));
        text.push('\n');
    }
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn kill(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let me = context.session.client.id;
    let clients = context.server.clients.list();
    if args.len() == 3 {
        // The old form: an address, and the connection itself is not spared.
        let wanted = args.get(2);
        let found = clients.iter().find(|client| client.addr.as_bytes() == wanted);
        let found = found.ok_or(CommandError::text("ERR No such client"))?;
        close(context, found.id);
        reply.ok();
        return Ok(());
    }
    let filter = Filter::parse(&args.tail(2))?;
    let now = context.now();
    let mut killed = 0;
    for client in clients.iter().filter(|client| filter.admits(client, me, now)) {
        close(context, client.id);
        killed += 1;
    }
    reply.integer(killed);
    Ok(())
}

/// Closes another connection at once, one's own after the reply.
fn close(context: &mut Context<'_>, id: u64) {
    if id == context.session.client.id {
        context.session.closing = true;
    } else if let Some(client) = context.server.clients.get(id) {
        client.kill();
    }
}

fn getname(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let info = context.session.client.info.lock();
    if info.name.is_empty() {
        reply.null();
    } else {
        reply.bulk(&info.name);
    }
    Ok(())
}

fn setname(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let name = valid_name(args.get(2), "Client names")?;
    set_name(context, name);
    reply.ok();
    Ok(())
}

pub(super) fn set_name(context: &mut Context<'_>, name: &[u8]) {
    name.clone_into(&mut context.session.client.info.lock().name);
}

/// A name must be visible ASCII, so that a line of CLIENT LIST stays one line of words.
pub(super) fn valid_name<'a>(name: &'a [u8], what: &str) -> Result<&'a [u8], CommandError> {
    if name.iter().all(u8::is_ascii_graphic) {
        return Ok(name);
    }
    let text = format!("ERR {what} cannot contain spaces, newlines or special characters.");
    Err(CommandError::owned(text))
}

fn setinfo(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let (name, value) = (echo(args.get(2)), args.get(3));
    if args.is_word(2, "LIB-NAME") {
        let value = valid_name(value, &name)?.to_vec();
        context.session.client.info.lock().lib_name = value;
    } else if args.is_word(2, "LIB-VER") {
        let value = valid_name(value, &name)?.to_vec();
        context.session.client.info.lock().lib_ver = value;
    } else {
        return Err(CommandError::owned(format!("ERR Unrecognized option '{name}'")));
    }
    reply.ok();
    Ok(())
}

fn on_or_off(args: &Args<'_>) -> Result<bool, CommandError> {
    if args.is_word(2, "ON") {
        Ok(true)
    } else if args.is_word(2, "OFF") {
        Ok(false)
    } else {
        Err(CommandError::Syntax)
    }
}

fn no_evict(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    context.session.client.info.lock().no_evict = on_or_off(args)?;
    reply.ok();
    Ok(())
}

fn no_touch(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let on = on_or_off(args)?;
    context.session.no_touch = on;
    context.session.client.info.lock().no_touch = on;
    reply.ok();
    Ok(())
}

fn reply_mode(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let mode = &mut context.session.reply_mode;
    if args.is_word(2, "ON") {
        *mode = ReplyMode::On;
        reply.ok();
    } else if args.is_word(2, "OFF") {
        *mode = ReplyMode::Off;
    } else if args.is_word(2, "SKIP") {
        // Behind OFF there is nothing to skip.
        if *mode == ReplyMode::On {
            *mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(())
}

fn unblock(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let error = match args.len() {
        3 => false,
        4 if args.is_word(3, "TIMEOUT") => false,
        4 if args.is_word(3, "ERROR") => true,
        _ => {
            return Err(CommandError::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
    };
    let id = u64::try_from(args.int(2)?).unwrap_or(0);
    let waiter = context.server.clients.get(id).and_then(|client| client.blocked.lock().clone());
    let ended = waiter.is_some_and(|waiter| {
        waiter.end_with(|| {
            Some(if error {
                Wake::Error(CommandError::text("UNBLOCKED client unblocked via CLIENT UNBLOCK"))
            } else {
                Wake::TimedOut
            })
        })
    });
    reply.integer(i64::from(ended));
    Ok(())
}

fn pause(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let all = match args.len() {
        3 => true,
        4 if args.is_word(3, "ALL") => true,
        4 if args.is_word(3, "WRITE") => false,
        _ => return Err(CommandError::text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let timeout = parse_i64(args.get(2))
        .ok_or(CommandError::text("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(CommandError::NegativeTimeout);
    }
    let until = context.now().checked_add(timeout).ok_or(CommandError::TimeoutOutOfRange)?;
    context.server.pause.start(until, all);
    reply.ok();
    Ok(())
}

fn unpause(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    context.server.pause.end();
    reply.ok();
    Ok(())
}

/// Without CLIENT TRACKING there is nothing to redirect.
fn getredir(_: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(-1);
    Ok(())
}

fn client_help(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    help::write(&context.server.commands, "CLIENT", reply);
    Ok(())
}

fn monitor(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if context.in_exec() {
        return Err(CommandError::text("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    if !context.session.monitor {
        context.session.monitor = true;
        context.session.client.info.lock().monitor = true;
        context.server.clients.add_monitor(&Arc::clone(&context.session.client));
    }
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn names_are_visible_ascii_and_reset_forgets_them() {
        check(&[
            ("CLIENT GETNAME", "(nil)"),
            ("CLIENT SETNAME me", "OK"),
            ("CLIENT GETNAME", "\"me\""),
            (
                "CLIENT SETNAME \"b c\"",
                "(error) ERR Client names cannot contain spaces, newlines or special characters.",
            ),
            ("RESET", "RESET"),
            ("CLIENT GETNAME", "(nil)"),
        ]);
    }

    #[test]
    fn filters_are_checked_before_anybody_is_closed() {
        check(&[
            ("CLIENT KILL ID 99 BOGUS", "(error) ERR syntax error"),
            ("CLIENT KILL ID abc", "(error) ERR client-id should be greater than 0"),
            ("CLIENT KILL TYPE x", "(error) ERR Unknown client type 'x'"),
            ("CLIENT KILL ID 99", "(integer) 0"),
            ("CLIENT KILL 1.2.3.4:5", "(error) ERR No such client"),
        ]);
    }
}
