//! HELLO, AUTH and RESET: who a client is, and how it speaks.
//!
//! There is one user yet, `default`, whose password is `requirepass`.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Context, Group, Protocol,
    ReplyMode, ReplyWriter, echo, unwatch_all,
};

use super::client::{set_name, valid_name};

const FLAGS: CommandFlags = CommandFlags::NOSCRIPT
    .union(CommandFlags::LOADING)
    .union(CommandFlags::STALE)
    .union(CommandFlags::FAST)
    .union(CommandFlags::NO_AUTH)
    .union(CommandFlags::ALLOW_BUSY);

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::connection("HELLO", Arity::at_least(1), hello)
        .group(Group::Connection)
        .flags(FLAGS)
        .docs(
            "6.0.0",
            "O(1)",
            "[protover [AUTH username password] [SETNAME clientname]]",
            "Choose the protocol version, log in, name the connection; learn about the server.",
        ),
    CommandSpec::connection("AUTH", Arity::at_least(2), auth)
        .group(Group::Connection)
        .flags(FLAGS)
        .docs("1.0.0", "O(1)", "[username] password", "Log in."),
    CommandSpec::connection("RESET", Arity::exactly(1), reset)
        .group(Group::Connection)
        .flags(FLAGS)
        .docs("6.2.0", "O(1)", "", "Bring the connection back to the state of a new one."),
];

fn hello(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let mut protocol = context.session.protocol;
    if args.len() > 1 {
        let version = args.int(1).map_err(|_| {
            CommandError::text("ERR Protocol version is not an integer or out of range")
        })?;
        protocol = match version {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err(CommandError::text("NOPROTO unsupported protocol version")),
        };
    }
    let mut credentials = None;
    let mut name = None;
    let mut at = 2;
    while at < args.len() {
        if args.is_word(at, "AUTH") && at + 2 < args.len() {
            credentials = Some((args.get(at + 1), args.get(at + 2)));
            at += 3;
        } else if args.is_word(at, "SETNAME") && at + 1 < args.len() {
            name = Some(valid_name(args.get(at + 1), "Client names")?);
            at += 2;
        } else {
            let option = echo(args.get(at));
            return Err(CommandError::owned(format!(
                "ERR Syntax error in HELLO option '{option}'"
            )));
        }
    }

    if let Some((user, password)) = credentials {
        log_in(context, user, password)?;
    }
    if !context.session.authenticated {
        return Err(CommandError::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        set_name(context, name);
    }
    context.session.protocol = protocol;
    context.session.publish();

    reply.set_protocol(protocol);
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(crate::REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(if protocol == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(context.session.client.id as i64);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.empty_array();
    Ok(())
}

fn auth(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match args.len() {
        2 => {
            if context.worker.config.config().requirepass.is_empty() {
                return Err(CommandError::text(
                    "ERR AUTH <password> called without any password configured for the default \
                     user. Are you sure your configuration is correct?",
                ));
            }
            log_in(context, b"default", args.get(1))?;
        }
        3 => log_in(context, args.get(1), args.get(2))?,
        _ => return Err(CommandError::Syntax),
    }
    reply.ok();
    Ok(())
}

fn log_in(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> CommandResult {
    let expected = context.server.config.current();
    let expected = expected.requirepass.as_bytes();
    if user != b"default" || !(expected.is_empty() || equal(expected, password)) {
        return Err(CommandError::WrongPass);
    }
    context.session.authenticated = true;
    Ok(())
}

/// Compares without telling by its time where the first difference is.
fn equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

fn reset(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let now = context.now();
    unwatch_all(context.server, context.worker, context.session, now);
    let session = &mut *context.session;
    session.transaction = None;
    session.monitor = false;
    session.no_touch = false;
    session.reply_mode = ReplyMode::On;
    session.db = 0;
    session.protocol = Protocol::Resp2;
    session.authenticated = context.worker.config.config().requirepass.is_empty();
    context.server.clients.remove_monitor(&session.client);
    {
        let mut info = session.client.info.lock();
        info.name.clear();
        info.monitor = false;
        info.no_evict = false;
        info.no_touch = false;
    }
    session.publish();
    reply.set_protocol(Protocol::Resp2);
    reply.simple("RESET");
    Ok(())
}
