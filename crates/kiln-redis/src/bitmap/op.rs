//! BITOP: combine strings bit by bit.
//!
//! Shorter strings, missing ones too, count as followed by zeroes; the result is as long as the
//! longest. An empty result deletes the destination. The loops run over bytes in a form that the
//! compiler turns into vector instructions.
//!
//! ```text
//! AND OR XOR NOT    as usual; NOT takes one string
//! DIFF              in the first and in no other
//! DIFF1             in another and not in the first
//! ANDOR             in the first and in another
//! ONE               in exactly one
//! ```
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3.

use kiln_base::number::INTEGER_BYTES_MAX;
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, Ttl, View, WrongType,
};

use super::bytes_of;

pub(super) const COMMANDS: &[CommandSpec] =
    &[CommandSpec::write("BITOP", Arity::at_least(4), bitop)
        .group(Group::Bitmap)
        .flags(CommandFlags::DENYOOM)
        .keys(&[
            KeySpec::at(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
            KeySpec::range(3, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
        ])
        .docs(
            "2.6.0",
            "O(N) with N bytes in all strings.",
            "<AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [key ...]",
            "Combine strings bit by bit and store the result.",
        )];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
    Diff,
    Diff1,
    AndOr,
    One,
}

impl Operation {
    /// The operation that word 1 names, if there are as many sources as it needs.
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let names = [
            ("AND", Self::And),
            ("OR", Self::Or),
            ("XOR", Self::Xor),
            ("NOT", Self::Not),
            ("DIFF", Self::Diff),
            ("DIFF1", Self::Diff1),
            ("ANDOR", Self::AndOr),
            ("ONE", Self::One),
        ];
        let named = names.into_iter().find(|(name, _)| args.is_word(1, name));
        let (name, operation) = named.ok_or(CommandError::Syntax)?;
        let sources = args.len() - FIRST_SOURCE;
        match operation {
            Self::Not if sources != 1 => {
                Err(CommandError::text("ERR BITOP NOT must be called with a single source key."))
            }
            Self::Diff | Self::Diff1 | Self::AndOr if sources < 2 => Err(CommandError::owned(
                format!("ERR BITOP {name} must be called with at least two source keys."),
            )),
            _ => Ok(operation),
        }
    }
}

const FIRST_SOURCE: usize = 3;

fn bitop(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let operation = Operation::parse(args)?;
    let result = combine(operation, view, args)?;
    let (key, len) = (args.get(2), result.len());
    if len > 0 {
        view.set_built_string(key, result, Ttl::Clear);
        view.changed(key, Event::Set);
    } else if view.delete(key) {
        view.changed(key, Event::Del);
    }
    reply.integer(len as i64);
    Ok(())
}

/// The combination of the sources.
fn combine(operation: Operation, view: &View<'_>, args: &Args<'_>) -> Result<Vec<u8>, WrongType> {
    let mut len = 0;
    for key in args.tail(FIRST_SOURCE).iter() {
        len = len.max(view.string(key)?.map_or(0, |string| string.len()));
    }
    let mut digits = [0; INTEGER_BYTES_MAX];
    let mut result = Vec::with_capacity(len);
    result.extend_from_slice(bytes_of(view.string(args.get(FIRST_SOURCE))?, &mut digits));
    result.resize(len, 0);
    // What the operations with a special first string need of the others: their union; for ONE
    // the bits seen more than once.
    let gathers =
        matches!(operation, Operation::Diff | Operation::Diff1 | Operation::AndOr | Operation::One);
    let mut gathered = if gathers { vec![0; len] } else { Vec::new() };
    for key in args.tail(FIRST_SOURCE + 1).iter() {
        let other = bytes_of(view.string(key)?, &mut digits);
        match operation {
            Operation::And => {
                zip(&mut result, other, |a, b| a & b);
                result[other.len()..].fill(0);
            }
            Operation::Or => zip(&mut result, other, |a, b| a | b),
            Operation::Xor => zip(&mut result, other, |a, b| a ^ b),
            Operation::Not => unreachable!("NOT has one source"),
            Operation::Diff | Operation::Diff1 | Operation::AndOr => {
                zip(&mut gathered, other, |a, b| a | b);
            }
            Operation::One => {
                for ((twice, once), byte) in gathered.iter_mut().zip(&mut result).zip(other) {
                    *twice |= *once & byte;
                    *once |= byte;
                }
            }
        }
    }
    match operation {
        Operation::And | Operation::Or | Operation::Xor => {}
        Operation::Not => result.iter_mut().for_each(|byte| *byte = !*byte),
        Operation::Diff | Operation::One => zip(&mut result, &gathered, |a, b| a & !b),
        Operation::Diff1 => zip(&mut result, &gathered, |a, b| !a & b),
        Operation::AndOr => zip(&mut result, &gathered, |a, b| a & b),
    }
    Ok(result)
}

/// Replaces each byte of `result` that `other` has too by what `combine` makes of both.
#[inline]
fn zip(result: &mut [u8], other: &[u8], combine: impl Fn(u8, u8) -> u8) {
    for (byte, other) in result.iter_mut().zip(other) {
        *byte = combine(*byte, *other);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn shorter_strings_go_on_with_zeroes() {
        check(&[
            ("MSET a foobar b abc", "OK"),
            ("BITOP AND d a b missing", "(integer) 6"),
            ("GET d", "\"\\x00\\x00\\x00\\x00\\x00\\x00\""),
            ("BITOP OR d a b", "(integer) 6"),
            ("GET d", "\"goobar\""),
            ("BITOP xor a a a", "(integer) 6"),
            ("BITCOUNT a", "(integer) 0"),
            ("BITOP NOT d b", "(integer) 3"),
            ("GET d", "\"\\x9e\\x9d\\x9c\""),
            ("BITOP OR d missing", "(integer) 0"),
            ("GET d", "(nil)"),
        ]);
    }

    #[test]
    fn operations_on_a_first_and_others() {
        check(&[
            ("MSET a \"\\xff\" b \"\\x0f\\xf0\" c \"\\x3c\"", "OK"),
            ("BITOP DIFF d a b c", "(integer) 2"),
            ("GET d", "\"\\xc0\\x00\""),
            ("BITOP DIFF1 d c a b", "(integer) 2"),
            ("GET d", "\"\\xc3\\xf0\""),
            ("BITOP ANDOR d a b c", "(integer) 2"),
            ("GET d", "\"?\\x00\""),
            ("BITOP ONE d a b c", "(integer) 2"),
            ("GET d", "\"\\xc0\\xf0\""),
        ]);
    }

    #[test]
    fn the_number_of_sources_is_checked() {
        check(&[
            ("BITOP SOME d a", "(error) ERR syntax error"),
            ("BITOP NOT d a b", "(error) ERR BITOP NOT must be called with a single source key."),
            (
                "BITOP DIFF1 d a",
                "(error) ERR BITOP DIFF1 must be called with at least two source keys.",
            ),
        ]);
    }
}
