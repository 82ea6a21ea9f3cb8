//! DEBUG: switches and looks inside, for tests. Only for those whom `enable-debug-command` allows.
//!
//! Kiln has no part of DEBUG that ends or harms the server. Switches of parts that Redis has and
//! Kiln has not are accepted, since Redis's own test suite sets them ([`ACCEPTED`]).
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use std::time::Duration;

use kiln_base::number::parse_f64;
use kiln_base::sync::LockMode;
use kiln_base::sync::atomic::Ordering;
use kiln_command::args::ArgsExt;
use kiln_command::blocking::TimeoutReply;
use kiln_command::{
    Args, Arity, CommandError, CommandResult, CommandSpec, Context, Group, Protocol, ReplyWriter,
    Ttl,
};
use kiln_keyspace::{Shards, idle_seconds, shard_of};

use super::{OPERATOR, lets_pass, unknown_subcommand};

/// The longest sleep that is possible, in seconds.
const SLEEP_MAX: f64 = 1e9;
/// What DEBUG POPULATE writes at most, so that a wrong number does not fill the memory.
const POPULATE_MAX: i64 = 100_000_000;

/// Switches of what Kiln has not, and the number of words after them.
const ACCEPTED: &[(&str, usize)] = &[
    ("CHANGE-REPL-ID", 0),
    ("DICT-RESIZING", 1),
    ("PAUSE-CRON", 1),
    ("QUICKLIST-PACKED-THRESHOLD", 1),
    ("REPLYBUFFER", 2),
    ("SET-DISABLE-DENY-SCRIPTS", 1),
    ("SET-SKIP-CHECKSUM-VALIDATION", 1),
];

const HELP: &[&str] = &[
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ERROR <string>",
    "    Reply with an error that has this text.",
    "OBJECT <key>",
    "    Describe the value at a key.",
    "POPULATE <count> [<prefix> [<size>]]",
    "    Make keys `prefix:0` and on, with values of `size` bytes.",
    "PROTOCOL <type>",
    "    Reply with an example of a type of the protocol.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Remove keys whose time has come only when they are met (0), or soon (1).",
    "SLEEP <seconds>",
    "    Let this client wait.",
    "HELP",
    "    Print this help.",
];

pub(super) const COMMANDS: &[CommandSpec] =
    &[CommandSpec::connection("DEBUG", Arity::at_least(2), debug)
        .group(Group::Server)
        .flags(OPERATOR)
        .docs(
            "1.0.0",
            "Depends on the subcommand.",
            "subcommand [arg [arg ...]]",
            "Switches and looks inside, for tests.",
        )];

fn debug(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let access = context.server.config.current().enable_debug_command;
    if !lets_pass(access, &context.session.client) {
        return Err(CommandError::text(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \
             \"local\", you can run it from a local connection, otherwise you need to set this \
             option in the configuration file, and then restart the server.",
        ));
    }
    let is = |name: &str, words: usize| args.is_word(1, name) && args.len() == words + 2;
    if is("SLEEP", 1) {
        // What is no number is no time.
        let seconds = parse_f64(args.get(2)).unwrap_or(0.0).clamp(0.0, SLEEP_MAX);
        context.sleep(Duration::from_secs_f64(seconds), TimeoutReply::Ok);
    } else if is("SET-ACTIVE-EXPIRE", 1) {
        context.server.active_expire.store(args.int(2)? != 0, Ordering::Relaxed);
        reply.ok();
    } else if is("OBJECT", 1) {
        return object(context, args.get(2), reply);
    } else if is("ERROR", 1) {
        return Err(CommandError::owned(String::from_utf8_lossy(args.get(2)).into_owned()));
    } else if is("PROTOCOL", 1) {
        return protocol(args, reply);
    } else if args.is_word(1, "POPULATE") && (3..=5).contains(&args.len()) {
        return populate(context, args, reply);
    } else if ACCEPTED.iter().any(|(name, words)| is(name, *words)) {
        reply.ok();
    } else if is("HELP", 0) {
        reply.array(HELP.len());
        for line in HELP {
            reply.simple(line);
        }
    } else {
        return Err(unknown_subcommand("DEBUG", args));
    }
    Ok(())
}

fn object(context: &mut Context<'_>, key: &[u8], reply: &mut ReplyWriter<'_>) -> CommandResult {
    let shard = shard_of(key);
    let text = context.with_view(Shards::One(shard), LockMode::Shared, |view| {
        let entry = view.peek(key)?;
        let (encoding, bytes) = (entry.encoding_name(), entry.memory_bytes(0));
        let (clock, idle) = (entry.access(), idle_seconds(entry.access(), view.now()));
        Some(format!(
            "Value at:shard-{} refcount:1 encoding:{encoding} memory:{bytes} lru:{clock} \
             lru_seconds_idle:{idle}",
            shard.index()
        ))
    });
    reply.simple(&text.ok_or(CommandError::NoSuchKey)?);
    Ok(())
}

/// Makes keys that are not there yet, each under a hold of its own.
fn populate(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let count = args.int_in(2, 0, POPULATE_MAX)?;
    let prefix = args.try_get(3).unwrap_or(b"key");
    let size = if args.len() == 5 { Some(args.count(4)?) } else { None };
    if size.is_some_and(|size| size as u64 > context.server.config.current().proto_max_bulk_len) {
        return Err(CommandError::StringTooLong);
    }
    for number in 0..count {
        let key = [prefix, format!(":{number}").as_bytes()].concat();
        let mut value = format!("value:{number}").into_bytes();
        if let Some(size) = size {
            value.resize(size, 0);
        }
        context.with_view(Shards::One(shard_of(&key)), LockMode::Exclusive, |view| {
            if view.peek(&key).is_none() {
                view.set_string(&key, &value, Ttl::Clear);
                view.signal(&key);
            }
        });
    }
    reply.ok();
    Ok(())
}

fn protocol(args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let resp3 = reply.protocol() == Protocol::Resp3;
    match args.get(2).to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12_345),
        b"double" => reply.double_text(b"3.141"),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if resp3 {
                reply.raw(b"|1\r\n");
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" if !resp3 => {
            return Err(CommandError::text("ERR RESP2 is not supported by this command"));
        }
        b"push" => {
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
        }
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        _ => {
            return Err(CommandError::text(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn it_is_off_unless_allowed() {
        check(&[(
            "DEBUG SLEEP 0",
            "(error) ERR DEBUG command not allowed. If the enable-debug-command option is set to \
             \"local\", you can run it from a local connection, otherwise you need to set this \
             option in the configuration file, and then restart the server.",
        )]);
    }
}
