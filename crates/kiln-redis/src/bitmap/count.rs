//! BITCOUNT and BITPOS: count ones, find the first one or zero.
//!
//! Both take a range of bytes or bits. For BITPOS a string without an end given goes on with
//! zeroes: the first zero of all ones is right behind them.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use std::ops::Range;

use kiln_base::number::INTEGER_BYTES_MAX;
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandResult, CommandSpec, Group, ReplyWriter, View,
};

use super::{READ, bits, bytes_of};
use crate::byte_range::{byte_range, clamped_range};

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::read("BITCOUNT", Arity::at_least(2), bitcount)
        .group(Group::Bitmap)
        .keys(READ)
        .docs(
            "2.6.0",
            "O(N) with N bytes looked at.",
            "key [start end [BYTE | BIT]]",
            "Count the ones in a string.",
        ),
    CommandSpec::read("BITPOS", Arity::at_least(3), bitpos).group(Group::Bitmap).keys(READ).docs(
        "2.8.7",
        "O(N) with N bytes looked at.",
        "key bit [start [end [BYTE | BIT]]]",
        "Find the first one or zero in a string.",
    ),
];

/// Whether word `index` says that a range counts bits rather than bytes.
fn is_in_bits(args: &Args<'_>, index: usize) -> Result<bool, CommandError> {
    match args.len() - index {
        0 => Ok(false),
        1 if args.is_word(index, "BIT") => Ok(true),
        1 if args.is_word(index, "BYTE") => Ok(false),
        _ => Err(CommandError::Syntax),
    }
}

/// The bits of a range of bytes.
fn in_bits(bytes: Range<usize>) -> Range<usize> {
    bytes.start * 8..bytes.end * 8
}

fn bitcount(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let range = match args.len() {
        2 => None,
        4 | 5 => Some((args.int(2)?, args.int(3)?, is_in_bits(args, 4)?)),
        _ => return Err(CommandError::Syntax),
    };
    let mut digits = [0; INTEGER_BYTES_MAX];
    let bytes = bytes_of(view.string(args.get(1))?, &mut digits);
    let range = match range {
        None => 0..bytes.len() * 8,
        Some((start, end, true)) => byte_range(start, end, bytes.len() * 8),
        Some((start, end, false)) => in_bits(byte_range(start, end, bytes.len())),
    };
    reply.integer(bits::count(bytes, range) as i64);
    Ok(())
}

/// Checked in this order: bit, start, unit, end, type.
fn bitpos(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let bit = match args.int(2)? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::text("ERR The bit argument must be 1 or 0.")),
    };
    if args.len() > 6 {
        return Err(CommandError::Syntax);
    }
    let start = if args.len() > 3 { args.int(3)? } else { 0 };
    let by_bits = is_in_bits(args, args.len().min(5))?;
    let end = if args.len() > 4 { Some(args.int(4)?) } else { None };
    let Some(string) = view.string(args.get(1))? else {
        // Nothing is like endless zeroes.
        reply.integer(if bit { -1 } else { 0 });
        return Ok(());
    };
    let mut digits = [0; INTEGER_BYTES_MAX];
    let bytes = string.bytes(&mut digits);
    let last = end.unwrap_or(-1);
    let range = if by_bits {
        clamped_range(start, last, bytes.len() * 8)
    } else {
        in_bits(clamped_range(start, last, bytes.len()))
    };
    let found = match bits::position(bytes, range.clone(), bit) {
        None if !bit && end.is_none() && !range.is_empty() => Some(range.end),
        found => found,
    };
    reply.integer(found.map_or(-1, |at| at as i64));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn ones_are_counted_in_bytes_or_bits() {
        check(&[
            ("SET k foobar", "OK"),
            ("BITCOUNT k", "(integer) 26"),
            ("BITCOUNT k -2 -1", "(integer) 7"),
            ("BITCOUNT k 5 30 BIT", "(integer) 17"),
            ("BITCOUNT k -10 -20", "(integer) 0"),
            ("BITCOUNT k 1", "(error) ERR syntax error"),
            ("BITCOUNT k a b bar", "(error) ERR value is not an integer or out of range"),
            ("BITCOUNT k 0 1 bar", "(error) ERR syntax error"),
            ("BITCOUNT k a b BIT c", "(error) ERR syntax error"),
            ("BITCOUNT missing 0 -1 BIT", "(integer) 0"),
        ]);
    }

    #[test]
    fn the_first_zero_may_lie_behind_the_string() {
        check(&[
            ("SET k \"\\xff\\xff\\xff\"", "OK"),
            ("BITPOS k 0", "(integer) 24"),
            ("BITPOS k 0 1", "(integer) 24"),
            ("BITPOS k 0 0 -1", "(integer) -1"),
            ("BITPOS k 0 5", "(integer) -1"),
            ("BITPOS k 1 2 1", "(integer) -1"),
            ("SET k \"\\x00\\xff\\xf0\"", "OK"),
            ("BITPOS k 1 7 -3 BIT", "(integer) 8"),
            ("BITPOS k 0 8 15 BIT", "(integer) -1"),
            ("BITPOS k 0 -10 -20", "(integer) 0"),
            ("SET k \"\"", "OK"),
            ("BITPOS k 0", "(integer) -1"),
            ("BITPOS missing 0 5 9", "(integer) 0"),
            ("BITPOS k 2", "(error) ERR The bit argument must be 1 or 0."),
            ("BITPOS k 1 0 b bar", "(error) ERR syntax error"),
            ("BITPOS k 1 a 0 BIT c", "(error) ERR syntax error"),
            ("BITPOS k 1 0 b", "(error) ERR value is not an integer or out of range"),
        ]);
    }
}
