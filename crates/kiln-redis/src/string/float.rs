//! INCRBYFLOAT: add a floating-point number to a string.
//!
//! Sums are 80-bit floats with 17 decimals, as Redis has them ([`LongDouble`]). A missing key
//! counts as 0. The journal gets the sum, so that no other machine has to add the same way.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::number::{INTEGER_BYTES_MAX, LongDouble};
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, ReplyWriter,
    Ttl, View,
};

use super::READ_UPDATE;

pub(super) const COMMANDS: &[CommandSpec] =
    &[CommandSpec::write("INCRBYFLOAT", Arity::exactly(3), incrbyfloat)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::FAST))
        .keys(READ_UPDATE)
        .journal_by_handler()
        .docs("2.6.0", "O(1)", "key increment", "Add a floating-point number to that at a key.")];

/// Checked in this order: type; both numbers; that the sum is finite.
fn incrbyfloat(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let parse = |text: &[u8]| LongDouble::parse(text).ok_or(CommandError::NotAFloat);
    let old = match view.string(key)? {
        Some(value) => parse(value.bytes(&mut [0; INTEGER_BYTES_MAX]))?,
        None => parse(b"0")?,
    };
    let sum = old.checked_add(parse(args.get(2))?).ok_or(CommandError::IncrementNotFinite)?;
    let mut text = Vec::new();
    sum.print(&mut text);

    view.set_text(key, &text, Ttl::Keep);
    view.changed(key, Event::IncrByFloat);
    view.journal([b"SET", key, &text, b"KEEPTTL"]);
    reply.bulk(&text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn sums_are_those_of_redis() {
        check(&[
            ("INCRBYFLOAT k 5.0e3", "\"5000\""),
            ("INCRBYFLOAT k 0.1", "\"5000.10000000000000009\""),
            ("SET k 3.0e2 EX 100", "OK"),
            ("INCRBYFLOAT k 1.1", "\"301.10000000000000001\""),
            ("TTL k", "(integer) 100"),
            ("SET k 9223372036854775807", "OK"),
            ("INCRBYFLOAT k 1", "\"9223372036854775808\""),
        ]);
    }

    #[test]
    fn errors_change_nothing() {
        check(&[
            ("SET k ' 1'", "OK"),
            ("INCRBYFLOAT k 1", "(error) ERR value is not a valid float"),
            ("INCRBYFLOAT n nan", "(error) ERR value is not a valid float"),
            ("INCRBYFLOAT n -inf", "(error) ERR increment would produce NaN or Infinity"),
            ("ZADD l 1 a", "(integer) 1"),
            (
                "INCRBYFLOAT l x",
                "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            ("EXISTS n", "(integer) 0"),
        ]);
    }
}
