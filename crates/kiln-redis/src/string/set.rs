//! SET, SETNX, SETEX, PSETEX and GETSET: store one string.
//!
//! SET without options is the hot path: one look into the table. Its options are conditions (NX,
//! XX, and Redis 8.4's comparisons of the old value), GET, and what becomes of the expiry. A
//! condition on the value, and GET, demand that the old value is a string; else any type is
//! overwritten.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3, comparisons on
//! 8.6.2.

use kiln_base::number::{INTEGER_BYTES_MAX, format_i64};
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, Ttl, View,
};

use super::condition::Condition;
use super::expiry::{ExpiryOption, Unit};
use super::{READ_UPDATE, reply_string};

const OVERWRITE: &[KeySpec] = &[KeySpec::at(1, KeyFlags::OW.union(KeyFlags::UPDATE))];

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("SET", Arity::at_least(3), set)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM)
        .keys(&[KeySpec::at(
            1,
            KeyFlags::RW
                .union(KeyFlags::ACCESS)
                .union(KeyFlags::UPDATE)
                .union(KeyFlags::VARIABLE_FLAGS),
        )])
        .docs(
            "1.0.0",
            "O(1)",
            "key value [NX | XX | IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | \
             IFDNE ifdne-digest] [GET] [EX seconds | PX milliseconds | \
             EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
            "Store a string, on conditions, with an expiry.",
        ),
    CommandSpec::write("SETNX", Arity::exactly(3), setnx)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::FAST))
        .keys(&[KeySpec::at(1, KeyFlags::OW.union(KeyFlags::INSERT))])
        .docs("1.0.0", "O(1)", "key value", "Store a string if the key does not exist."),
    CommandSpec::write("SETEX", Arity::exactly(4), setex)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM)
        .keys(OVERWRITE)
        .docs("2.0.0", "O(1)", "key seconds value", "Store a string that expires."),
    CommandSpec::write("PSETEX", Arity::exactly(4), psetex)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM)
        .keys(OVERWRITE)
        .docs(
            "2.6.0",
            "O(1)",
            "key milliseconds value",
            "Store a string that expires after some milliseconds.",
        ),
    CommandSpec::write("GETSET", Arity::exactly(3), getset)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::FAST))
        .keys(READ_UPDATE)
        .docs("1.0.0", "O(1)", "key value", "Store a string and return the one before."),
];

/// NX or XX.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Existence {
    /// The key must be missing.
    Missing,
    /// The key must exist.
    Present,
}

impl Existence {
    /// The condition that an option names.
    pub(super) fn of(args: &Args<'_>, index: usize) -> Option<Self> {
        if args.is_word(index, "NX") {
            Some(Self::Missing)
        } else if args.is_word(index, "XX") {
            Some(Self::Present)
        } else {
            None
        }
    }

    /// Whether it holds for a key that does or does not exist.
    pub(super) fn holds(self, exists: bool) -> bool {
        exists == (self == Self::Present)
    }
}

/// The options of SET.
#[derive(Default)]
struct SetOptions<'a> {
    existence: Option<Existence>,
    condition: Option<Condition<'a>>,
    get: bool,
    expiry: ExpiryOption,
}

impl<'a> SetOptions<'a> {
    fn parse(args: &Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut index = 3;
        while index < args.len() {
            let words = options.expiry.take(args, index, "KEEPTTL");
            if words > 0 {
                index += words;
            } else if let Some(existence) = Existence::of(args, index) {
                if options.existence.is_some_and(|earlier| earlier != existence) {
                    return Err(CommandError::Syntax);
                }
                options.existence = Some(existence);
                index += 1;
            } else if args.is_word(index, "GET") {
                options.get = true;
                index += 1;
            } else if let Some(condition) = Condition::parse(args, index) {
                // As Redis 8.6 has it: NX or XX may follow a comparison, but not precede it.
                if options.existence.is_some() || options.condition.is_some() {
                    return Err(CommandError::Syntax);
                }
                options.condition = Some(condition);
                index += 2;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }
}

fn set(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if args.len() > 3 {
        return set_with_options(view, args, reply);
    }
    store(view, args.get(1), args.get(2), Ttl::Clear);
    reply.ok();
    Ok(())
}

/// SET with options. Checked in this order: syntax, expiry, type of the old value, length of a
/// digest.
fn set_with_options(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let key = args.get(1);
    let options = SetOptions::parse(args)?;
    let ttl = options.expiry.ttl(args, view.now(), "set")?;
    let mut exists = false;
    let mut holds = true;
    if options.get || options.condition.is_some() {
        let old = view.string(key)?;
        exists = old.is_some();
        if let Some(condition) = options.condition {
            holds = old.map_or(Ok(condition.holds_if_missing()), |old| condition.holds(old))?;
        }
        if options.get {
            reply_string(reply, old);
        }
    } else if options.existence.is_some() {
        exists = view.exists(key);
    }
    holds &= options.existence.is_none_or(|existence| existence.holds(exists));
    if holds {
        store(view, key, args.get(2), ttl);
    }
    match (options.get, holds) {
        (true, _) => {}
        (false, true) => reply.ok(),
        (false, false) => reply.null(),
    }
    Ok(())
}

fn setnx(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let missing = !view.exists(key);
    if missing {
        if view.met_expired() {
            view.expire_due(key);
        }
        view.insert_string(key, args.get(2));
        view.changed(key, Event::Set);
    }
    reply.integer(i64::from(missing));
    Ok(())
}

fn setex(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let at = Unit::Seconds.deadline(args, 2, view.now(), "setex")?;
    store(view, args.get(1), args.get(3), Ttl::At(at));
    reply.ok();
    Ok(())
}

fn psetex(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let at = Unit::Milliseconds.deadline(args, 2, view.now(), "psetex")?;
    store(view, args.get(1), args.get(3), Ttl::At(at));
    reply.ok();
    Ok(())
}

fn getset(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    reply_string(reply, view.string(key)?);
    store(view, key, args.get(2), Ttl::Clear);
    Ok(())
}

/// Stores `value` and announces it. With an expiry, the journal gets its absolute form.
#[inline]
fn store(view: &mut View<'_>, key: &[u8], value: &[u8], ttl: Ttl) {
    view.set_string(key, value, ttl);
    view.changed(key, Event::Set);
    if let Ttl::At(at) = ttl {
        view.event(key, Event::Expire);
        let mut digits = [0; INTEGER_BYTES_MAX];
        view.journal([b"SET", key, value, b"PXAT", format_i64(at, &mut digits)]);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    const WRONG_TYPE: &str =
        "(error) WRONGTYPE Operation against a key holding the wrong kind of value";

    #[test]
    fn conditions_and_get_combine() {
        check(&[
            ("SET k a XX", "(nil)"),
            ("SET k a NX GET", "(nil)"),
            ("SET k b NX GET", "\"a\""),
            ("SET k b NX", "(nil)"),
            ("SET k b XX GET", "\"a\""),
            ("GET k", "\"b\""),
            ("GETSET k 7", "\"b\""),
            ("SETNX k 8", "(integer) 0"),
            ("SETNX n 8", "(integer) 1"),
        ]);
    }

    #[test]
    fn the_expiry_is_cleared_kept_or_set() {
        check(&[
            ("SET k v EX 100", "OK"),
            ("SET k w KEEPTTL", "OK"),
            ("TTL k", "(integer) 100"),
            ("SET k w", "OK"),
            ("TTL k", "(integer) -1"),
            ("SETEX k 50 v", "OK"),
            ("TTL k", "(integer) 50"),
            ("PSETEX k 70000 v", "OK"),
            ("TTL k", "(integer) 70"),
            ("SET k gone PXAT 1", "OK"),
            ("EXISTS k", "(integer) 0"),
        ]);
    }

    #[test]
    fn errors_change_nothing() {
        check(&[
            ("SET k v", "OK"),
            ("SET k x EX 10 PX 10", "(error) ERR syntax error"),
            ("SET k x EX 10 KEEPTTL", "(error) ERR syntax error"),
            ("SET k x NX XX", "(error) ERR syntax error"),
            ("SET k x EX", "(error) ERR syntax error"),
            ("SET k x EX ten", "(error) ERR value is not an integer or out of range"),
            ("SET k x PX 0", "(error) ERR invalid expire time in 'set' command"),
            ("SET k x EX 9223372036854775807", "(error) ERR invalid expire time in 'set' command"),
            ("SETEX k -1 x", "(error) ERR invalid expire time in 'setex' command"),
            ("GET k", "\"v\""),
            ("ZADD l 1 a", "(integer) 1"),
            ("SET l x GET", WRONG_TYPE),
            ("SET l x IFEQ a", WRONG_TYPE),
            ("GETSET l x", WRONG_TYPE),
            ("SET l x XX", "OK"),
        ]);
    }

    #[test]
    fn values_and_digests_are_compared() {
        check(&[
            ("SET k new IFEQ old", "(nil)"),
            ("SET k hello IFNE old", "OK"),
            ("SET k new IFNE hello GET", "\"hello\""),
            ("GET k", "\"hello\""),
            ("SET k new IFDEQ 9555E8555C62DCFD", "OK"),
            ("SET k x IFDEQ short", "(error) ERR must be exactly 16 hexadecimal characters"),
            ("SET k x IFDNE f7042be43fb80714", "OK"),
            ("SET k x IFEQ x NX", "(nil)"),
            ("SET k x NX IFEQ x", "(error) ERR syntax error"),
            ("SET k x IFEQ x IFNE y", "(error) ERR syntax error"),
            ("SET k 5", "OK"),
            ("SET k x IFEQ 05", "(nil)"),
        ]);
    }
}
