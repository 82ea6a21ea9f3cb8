//! EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT and PERSIST: set and clear the time at which a key goes.
//!
//! The first four are one operation, [`expire`], given a unit and a base. All times become
//! milliseconds since the Unix epoch. A time that has passed removes the key at once, as DEL does.
//! With GT and LT a key without an expiry counts as one that never expires.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use std::cmp::Ordering;

use kiln_base::number::{INTEGER_BYTES_MAX, format_i64};
use kiln_command::args::ArgsExt;
use kiln_command::{
    AclCategories, Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event,
    KeyFlags, KeySpec, ReplyWriter, View, WriteHandler, echo,
};

pub(super) const COMMANDS: &[CommandSpec] = &[
    spec("EXPIRE", expire_seconds).docs(
        "1.0.0",
        "O(1)",
        "key seconds [NX | XX | GT | LT]",
        "Let a key expire after some seconds.",
    ),
    spec("PEXPIRE", expire_milliseconds).docs(
        "2.6.0",
        "O(1)",
        "key milliseconds [NX | XX | GT | LT]",
        "Let a key expire after some milliseconds.",
    ),
    spec("EXPIREAT", expire_at_seconds).docs(
        "1.2.0",
        "O(1)",
        "key unix-time-seconds [NX | XX | GT | LT]",
        "Let a key expire at a Unix time in seconds.",
    ),
    spec("PEXPIREAT", expire_at_milliseconds).docs(
        "2.6.0",
        "O(1)",
        "key unix-time-milliseconds [NX | XX | GT | LT]",
        "Let a key expire at a Unix time in milliseconds.",
    ),
    CommandSpec::write("PERSIST", Arity::exactly(2), persist)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::FAST)
        .keys(KEYS)
        .docs("2.2.0", "O(1)", "key", "Keep a key that would expire."),
];

const KEYS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::UPDATE))];

/// Fills in what the four commands share.
const fn spec(name: &'static str, handler: WriteHandler) -> CommandSpec {
    CommandSpec::write(name, Arity::at_least(3), handler)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::FAST)
        .keys(KEYS)
        .journal_by_handler() // A time from now on means something else when it is replayed.
}

/// The unit and the zero of a time argument.
#[derive(Clone, Copy)]
struct Scale {
    command: &'static str,
    unit_ms: i64,
    from_now: bool,
}

fn expire_seconds(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    expire(view, args, Scale { command: "expire", unit_ms: 1_000, from_now: true }, reply)
}

fn expire_milliseconds(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    expire(view, args, Scale { command: "pexpire", unit_ms: 1, from_now: true }, reply)
}

fn expire_at_seconds(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    expire(view, args, Scale { command: "expireat", unit_ms: 1_000, from_now: false }, reply)
}

fn expire_at_milliseconds(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    expire(view, args, Scale { command: "pexpireat", unit_ms: 1, from_now: false }, reply)
}

/// Sets the expiry of the key at word 1 to the time at word 2, if the conditions behind it admit
/// that; replies 1 or 0.
///
/// # Errors
///
/// Checked in this order: unknown condition; conditions that contradict each other; not an
/// integer; beyond the range of milliseconds.
fn expire(
    view: &mut View<'_>,
    args: &Args<'_>,
    scale: Scale,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let conditions = Conditions::parse(&args.tail(3))?;
    let time = args.int(2)?;
    let base = if scale.from_now { view.now() } else { 0 };
    let at = time.checked_mul(scale.unit_ms).and_then(|time| time.checked_add(base));
    let at = at.ok_or(CommandError::InvalidExpire(scale.command))?;

    let key = args.get(1);
    let admitted =
        view.get_untouched(key).is_some_and(|entry| conditions.admit(entry.expire_at_ms(), at));
    if !admitted {
        reply.integer(0);
        return Ok(());
    }
    if at <= view.now() {
        view.delete(key);
        view.changed(key, Event::Del);
        view.journal([&b"DEL"[..], key]);
    } else {
        view.update(key, |entry| entry.set_expire_at_ms(Some(at)));
        view.changed(key, Event::Expire);
        view.journal([b"PEXPIREAT", key, format_i64(at, &mut [0; INTEGER_BYTES_MAX])]);
    }
    reply.integer(1);
    Ok(())
}

/// What the present expiry must be like.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    /// NX: there is none; XX: there is one.
    present: Option<bool>,
    /// GT or LT: how the new one compares with it.
    new_is: Option<Ordering>,
}

impl Conditions {
    fn parse(words: &Args<'_>) -> Result<Self, CommandError> {
        const WORDS: [&str; 4] = ["NX", "XX", "GT", "LT"];
        for (index, word) in words.iter().enumerate() {
            if !WORDS.iter().any(|known| words.is_word(index, known)) {
                let word = echo(word);
                return Err(CommandError::owned(format!("ERR Unsupported option {word}")));
            }
        }
        let has = |word| (0..words.len()).any(|index| words.is_word(index, word));
        let [none, some, later, earlier] = WORDS.map(has);
        if none && (some || later || earlier) {
            return Err(CommandError::text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if later && earlier {
            return Err(CommandError::text(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        let order = if later { Ordering::Greater } else { Ordering::Less };
        Ok(Self {
            present: (none || some).then_some(some),
            new_is: (later || earlier).then_some(order),
        })
    }

    fn admit(self, present: Option<i64>, new: i64) -> bool {
        // Without an expiry, a key's time is later than any.
        let order = present.map_or(Ordering::Less, |present| new.cmp(&present));
        self.present.is_none_or(|wanted| wanted == present.is_some())
            && self.new_is.is_none_or(|wanted| wanted == order)
    }
}

fn persist(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let expires = view.get_untouched(key).is_some_and(|entry| entry.expire_at_ms().is_some());
    if expires {
        view.update(key, |entry| entry.set_expire_at_ms(None));
        view.changed(key, Event::Persist);
    }
    reply.integer(i64::from(expires));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    const FAR: &str = "33177117420";

    #[test]
    fn conditions_compare_with_what_is_there() {
        let step = format!("EXPIREAT k {FAR}");
        check(&[
            ("SET k v", "OK"),
            (&format!("{step} XX"), "(integer) 0"),
            (&format!("{step} GT"), "(integer) 0"),
            (&format!("{step} NX"), "(integer) 1"),
            (&format!("{step} NX"), "(integer) 0"),
            (&format!("{step} LT"), "(integer) 0"),
            (&format!("{step} GT"), "(integer) 0"),
            ("EXPIREAT k 33177117421 XX GT", "(integer) 1"),
            ("EXPIRETIME k", "(integer) 33177117421"),
            ("EXPIREAT k 33177117419 LT", "(integer) 1"),
            ("EXPIRETIME k", "(integer) 33177117419"),
        ]);
    }

    #[test]
    fn a_time_that_has_passed_removes_the_key() {
        check(&[
            ("SET k v", "OK"),
            ("EXPIRE k 0", "(integer) 1"),
            ("EXISTS k", "(integer) 0"),
            ("SET l a", "OK"),
            ("PEXPIRE l -1", "(integer) 1"),
            ("TYPE l", "none"),
            ("EXPIRE l 10", "(integer) 0"),
        ]);
    }

    #[test]
    fn errors_come_in_the_reference_order_and_change_nothing() {
        let invalid = |command| format!("(error) ERR invalid expire time in '{command}' command");
        check(&[
            ("SET k v", "OK"),
            ("EXPIRE k abc bogus", "(error) ERR Unsupported option bogus"),
            (
                "EXPIRE k abc NX XX",
                "(error) ERR NX and XX, GT or LT options at the same time are not compatible",
            ),
            (
                "EXPIRE k abc GT LT",
                "(error) ERR GT and LT options at the same time are not compatible",
            ),
            ("EXPIRE k abc", "(error) ERR value is not an integer or out of range"),
            ("EXPIRE k 9223372036854775807", &invalid("expire")),
            ("EXPIRE k -9223372036854775808", &invalid("expire")),
            ("PEXPIRE k 9223372036854775807", &invalid("pexpire")),
            ("EXPIREAT k 9223372036854775807", &invalid("expireat")),
            ("TTL k", "(integer) -1"),
            ("PEXPIREAT k 9223372036854775807", "(integer) 1"),
            ("PEXPIRETIME k", "(integer) 9223372036854775807"),
        ]);
    }

    #[test]
    fn persist_clears_what_expire_set() {
        check(&[
            ("PERSIST k", "(integer) 0"),
            ("SET k v", "OK"),
            ("PERSIST k", "(integer) 0"),
            ("EXPIRE k 100", "(integer) 1"),
            ("PERSIST k", "(integer) 1"),
            ("TTL k", "(integer) -1"),
            ("GET k", "\"v\""),
        ]);
    }
}
