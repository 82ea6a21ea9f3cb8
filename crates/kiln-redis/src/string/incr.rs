//! INCR, DECR, INCRBY and DECRBY: add a signed 64-bit integer to a string.
//!
//! The four commands are one operation, [`add`], given four deltas. A missing key counts as 0.
//! A string counts as an integer only in canonical form: `-5` does; ` 5`, `+5`, `05` and `-0`
//! do not. The reply is the new value.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, ReplyWriter,
    View, WriteHandler,
};

use super::READ_UPDATE;

pub(super) const COMMANDS: &[CommandSpec] = &[
    spec("INCR", 2, incr, "key", "Add one to the integer at a key."),
    spec("DECR", 2, decr, "key", "Subtract one from the integer at a key."),
    spec("INCRBY", 3, incrby, "key increment", "Add a number to the integer at a key."),
    spec("DECRBY", 3, decrby, "key decrement", "Subtract a number from the integer at a key."),
];

/// Fills in what the four commands share. `arity` counts the command name.
const fn spec(
    name: &'static str,
    arity: i16,
    handler: WriteHandler,
    syntax: &'static str,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::write(name, Arity::exactly(arity), handler)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::FAST))
        .keys(READ_UPDATE)
        .docs("1.0.0", "O(1)", syntax, summary)
}

fn incr(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    add(view, args.get(1), 1, reply)
}

fn decr(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    add(view, args.get(1), -1, reply)
}

fn incrby(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    add(view, args.get(1), args.int(2)?, reply)
}

fn decrby(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    // `i64::MIN` has no negation. The reference rejects it before it looks at the key, so a key
    // of the wrong type gets this error too.
    let delta = args.int(2)?.checked_neg().ok_or(CommandError::DecrementOverflow)?;
    add(view, args.get(1), delta, reply)
}

/// Adds `delta` to the integer at `key` and replies with the sum. The key keeps its TTL.
///
/// # Errors
///
/// Checked in this order; on error nothing has changed and nothing is written to `reply`.
/// - [`CommandError::WrongType`]: `key` holds something other than a string.
/// - [`CommandError::NotAnInteger`]: the string is not a canonical `i64`.
/// - [`CommandError::IncrementOverflow`]: the sum does not fit in an `i64`.
fn add(view: &mut View<'_>, key: &[u8], delta: i64, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let added = view.update(key, |entry| -> Result<i64, CommandError> {
        let value = entry.as_string().ok_or(CommandError::WrongType)?;
        let old = value.as_i64().ok_or(CommandError::NotAnInteger)?;
        let sum = old.checked_add(delta).ok_or(CommandError::IncrementOverflow)?;
        entry.set_int(sum);
        Ok(sum)
    });
    let sum = if let Some(sum) = added {
        sum?
    } else {
        view.insert_int(key, delta);
        delta
    };
    view.changed(key, Event::IncrBy); // One event name for all four, as in the reference.
    reply.integer(sum);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use crate::testkit::check;

    #[test]
    fn only_canonical_integers_count() {
        for text in ["", " 5", "5 ", "+5", "05", "-0", "5.0", "9223372036854775808"] {
            check(&[
                (&format!("SET n \"{text}\""), "OK"),
                ("INCR n", "(error) ERR value is not an integer or out of range"),
            ]);
        }
    }

    #[test]
    fn errors_come_in_the_reference_order_and_change_nothing() {
        check(&[
            ("ZADD l 1 a", "(integer) 1"),
            ("INCR l", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("INCRBY l ten", "(error) ERR value is not an integer or out of range"),
            ("DECRBY l -9223372036854775808", "(error) ERR decrement would overflow"),
            ("SET n 9223372036854775807", "OK"),
            ("INCR n", "(error) ERR increment or decrement would overflow"),
            ("GET n", "\"9223372036854775807\""),
        ]);
    }

    #[test]
    fn a_missing_key_is_zero_and_an_expiry_survives() {
        check(&[
            ("DECRBY n 5", "(integer) -5"),
            ("DECR n", "(integer) -6"),
            ("SET t 1 EX 100", "OK"),
            ("INCR t", "(integer) 2"),
            ("TTL t", "(integer) 100"),
        ]);
    }

    proptest! {
        #[test]
        fn incrby_is_checked_addition(old: i64, delta: i64) {
            let want = match old.checked_add(delta) {
                Some(sum) => format!("(integer) {sum}"),
                None => "(error) ERR increment or decrement would overflow".to_owned(),
            };
            check(&[(&format!("SET n {old}"), "OK"), (&format!("INCRBY n {delta}"), &want)]);
        }
    }
}
