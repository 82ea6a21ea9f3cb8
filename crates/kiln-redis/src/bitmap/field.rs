//! BITFIELD and `BITFIELD_RO`: integers of any width up to 64 bits at any bit of a string.
//!
//! All words are understood before the first operation runs. Operations that write make the
//! string as long as the furthest of them needs, even if an overflow then keeps them from writing.
//! Numbers are compared with the limits of their type in 128 bits, where nothing overflows.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3.

use kiln_base::number::{INTEGER_BYTES_MAX, parse_i64};
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, Settings, View,
};
use smallvec::SmallVec;

use super::{READ, bit_offset, bits, bytes_of};

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("BITFIELD", Arity::at_least(2), bitfield)
        .group(Group::Bitmap)
        .flags(CommandFlags::DENYOOM)
        .keys(&[KeySpec::at(
            1,
            KeyFlags::RW
                .union(KeyFlags::ACCESS)
                .union(KeyFlags::UPDATE)
                .union(KeyFlags::VARIABLE_FLAGS),
        )])
        .docs(
            "3.2.0",
            "O(1) for each operation.",
            "key [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] \
             <SET encoding offset value | INCRBY encoding offset increment> \
             [GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] \
             <SET encoding offset value | INCRBY encoding offset increment> ...]]",
            "Read and change integers of any width inside a string.",
        ),
    CommandSpec::read("BITFIELD_RO", Arity::at_least(2), bitfield_ro)
        .group(Group::Bitmap)
        .flags(CommandFlags::FAST)
        .keys(READ)
        .docs(
            "6.0.0",
            "O(1) for each operation.",
            "key [GET encoding offset [GET encoding offset ...]]",
            "Read integers of any width inside a string.",
        ),
];

/// The type of a field: `i5`, `u63`.
#[derive(Clone, Copy)]
struct Encoding {
    signed: bool,
    width: u32,
}

/// What happens to a number that its field cannot hold.
#[derive(Clone, Copy, Default)]
enum Overflow {
    /// Its low bits are stored.
    #[default]
    Wrap,
    /// The nearest number that fits is stored.
    Saturate,
    /// Nothing is stored.
    Fail,
}

impl Overflow {
    fn saturates(self) -> bool {
        matches!(self, Self::Saturate)
    }
}

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

#[derive(Clone, Copy)]
struct Operation {
    action: Action,
    encoding: Encoding,
    offset: usize,
    overflow: Overflow,
}

type Operations = SmallVec<[Operation; 4]>;

impl Encoding {
    fn parse(text: &[u8]) -> Result<Self, CommandError> {
        const INVALID: CommandError = CommandError::text(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
             supported but i64 is.",
        );
        let (signed, width_max, digits) = match text {
            [b'i', digits @ ..] => (true, 64, digits),
            [b'u', digits @ ..] => (false, 63, digits),
            _ => return Err(INVALID),
        };
        let width = parse_i64(digits).filter(|width| (1..=width_max).contains(width));
        Ok(Self { signed, width: width.ok_or(INVALID)? as u32 })
    }

    /// The smallest and largest number.
    fn limits(self) -> (i128, i128) {
        if self.signed {
            let half = 1_i128 << (self.width - 1);
            (-half, half - 1)
        } else {
            (0, (1_i128 << self.width) - 1)
        }
    }

    /// Whether `number` is so low that its distance to the largest number takes more than 63
    /// bits. Redis saturates such a number at the wrong end. Clients cannot mean it, but a replica
    /// of a Redis server must come to the same bytes.
    fn is_far_below(self, number: i64) -> bool {
        self.width < 64 && self.limits().1 - i128::from(number) > i128::from(i64::MAX)
    }

    /// The number that these bits are.
    fn number(self, bits: u64) -> i64 {
        let unused = u64::BITS - self.width;
        if self.signed { (bits << unused) as i64 >> unused } else { bits as i64 }
    }

    /// What is stored for `number`, if anything.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = self.limits();
        if (min..=max).contains(&number) {
            return Some(number as i64);
        }
        match overflow {
            Overflow::Wrap => {
                let bits = number as u64 & (u64::MAX >> (u64::BITS - self.width));
                Some(self.number(bits))
            }
            Overflow::Saturate => Some(number.clamp(min, max) as i64),
            Overflow::Fail => None,
        }
    }
}

impl Operation {
    fn writes(&self) -> bool {
        !matches!(self.action, Action::Get)
    }

    /// The number before, and the one to store; none if it would not fit and must.
    fn evaluate(&self, bytes: &[u8]) -> (i64, Option<i64>) {
        let encoding = self.encoding;
        let old = encoding.number(bits::read_field(bytes, self.offset, encoding.width));
        let new = match self.action {
            Action::Get => return (old, None),
            // A negative number in an unsigned field is a very large one.
            Action::Set(value) if !encoding.signed => i128::from(value as u64),
            Action::Set(value) if self.overflow.saturates() && encoding.is_far_below(value) => {
                encoding.limits().1
            }
            Action::Set(value) => i128::from(value),
            Action::Add(delta) => i128::from(old) + i128::from(delta),
        };
        (old, encoding.fit(new, self.overflow))
    }
}

/// Understands all words behind the key.
fn parse(args: &Args<'_>, settings: &Settings) -> Result<Operations, CommandError> {
    let mut operations = Operations::new();
    let mut overflow = Overflow::default();
    let mut index = 2;
    while index < args.len() {
        let rest = args.len() - index - 1;
        let words = if args.is_word(index, "GET") && rest >= 2 {
            2
        } else if (args.is_word(index, "SET") || args.is_word(index, "INCRBY")) && rest >= 3 {
            3
        } else if args.is_word(index, "OVERFLOW") && rest >= 1 {
            overflow = parse_overflow(args, index + 1)?;
            index += 2;
            continue;
        } else {
            return Err(CommandError::Syntax);
        };
        let encoding = Encoding::parse(args.get(index + 1))?;
        let offset = parse_offset(args.get(index + 2), encoding, settings)?;
        let action = if words == 2 {
            Action::Get
        } else if args.is_word(index, "SET") {
            Action::Set(args.int(index + 3)?)
        } else {
            Action::Add(args.int(index + 3)?)
        };
        operations.push(Operation { action, encoding, offset, overflow });
        index += 1 + words;
    }
    Ok(operations)
}

fn parse_overflow(args: &Args<'_>, index: usize) -> Result<Overflow, CommandError> {
    if args.is_word(index, "WRAP") {
        Ok(Overflow::Wrap)
    } else if args.is_word(index, "SAT") {
        Ok(Overflow::Saturate)
    } else if args.is_word(index, "FAIL") {
        Ok(Overflow::Fail)
    } else {
        Err(CommandError::text("ERR Invalid OVERFLOW type specified"))
    }
}

/// An offset in bits, or behind `#` in fields.
fn parse_offset(
    text: &[u8],
    encoding: Encoding,
    settings: &Settings,
) -> Result<usize, CommandError> {
    let offset = match text {
        [b'#', number @ ..] => {
            parse_i64(number).and_then(|fields| fields.checked_mul(i64::from(encoding.width)))
        }
        number => parse_i64(number),
    };
    bit_offset(offset, settings)
}

fn bitfield(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let operations = parse(args, view.settings())?;
    let ends = operations.iter().filter(|operation| operation.writes());
    let end = ends.map(|operation| operation.offset + operation.encoding.width as usize).max();
    let Some(end) = end else { return reply_read(view, args, &operations, reply) };

    let mut stored = 0;
    let grown = view.edit_string(key, end.div_ceil(8), |old_len, bytes| {
        reply.array(operations.len());
        for operation in &operations {
            let (old, new) = operation.evaluate(bytes);
            match (operation.action, new) {
                (Action::Get, _) => reply.integer(old),
                (Action::Set(_) | Action::Add(_), None) => reply.null(),
                (action, Some(new)) => {
                    let width = operation.encoding.width;
                    bits::write_field(bytes, operation.offset, width, new as u64);
                    stored += 1;
                    reply.integer(if matches!(action, Action::Set(_)) { old } else { new });
                }
            }
        }
        bytes.len() > old_len
    })?;
    if stored > 0 {
        view.changed(key, Event::SetBit);
        view.count_changes(stored - 1);
    } else if grown {
        // Redis makes the string longer without a word; the journal must not miss it.
        view.signal(key);
        view.count_changes(1);
    }
    Ok(())
}

fn bitfield_ro(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let operations = parse(args, view.settings())?;
    if operations.iter().any(Operation::writes) {
        return Err(CommandError::text("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    reply_read(view, args, &operations, reply)
}

/// Replies to operations that only read.
fn reply_read(
    view: &View<'_>,
    args: &Args<'_>,
    operations: &Operations,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let mut digits = [0; INTEGER_BYTES_MAX];
    let bytes = bytes_of(view.string(args.get(1))?, &mut digits);
    reply.array(operations.len());
    for operation in operations {
        reply.integer(operation.evaluate(bytes).0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{Encoding, Overflow};
    use crate::testkit::check;

    #[test]
    fn fields_are_read_and_written() {
        check(&[
            ("BITFIELD k SET u8 0 255 GET i8 0", "1) (integer) 0\n2) (integer) -1"),
            ("BITFIELD k SET u8 #1 65 GET u4 12", "1) (integer) 0\n2) (integer) 1"),
            ("GET k", "\"\\xffA\""),
            ("BITFIELD_RO k GET u8 #1 GET u63 1000", "1) (integer) 65\n2) (integer) 0"),
            ("STRLEN k", "(integer) 2"),
            ("BITFIELD missing", "(empty array)"),
            ("BITFIELD missing GET u8 0", "1) (integer) 0"),
            ("GET missing", "(nil)"),
        ]);
    }

    #[test]
    fn overflow_wraps_saturates_or_fails() {
        check(&[
            ("BITFIELD k INCRBY u8 0 300", "1) (integer) 44"),
            ("BITFIELD k OVERFLOW SAT INCRBY u8 0 300", "1) (integer) 255"),
            ("BITFIELD k OVERFLOW FAIL INCRBY u8 0 1", "1) (nil)"),
            ("BITFIELD k OVERFLOW SAT SET u8 0 -1", "1) (integer) 255"),
            ("BITFIELD k OVERFLOW SAT INCRBY u8 0 -300", "1) (integer) 0"),
            ("BITFIELD k SET i8 0 200 GET i8 0", "1) (integer) 0\n2) (integer) -56"),
            (
                "BITFIELD k OVERFLOW SAT SET i8 0 -300 INCRBY i8 0 -1",
                "1) (integer) -56\n2) (integer) -128",
            ),
            (
                "BITFIELD n INCRBY i64 0 9223372036854775807 INCRBY i64 0 1",
                "1) (integer) 9223372036854775807\n2) (integer) -9223372036854775808",
            ),
            (
                "BITFIELD b OVERFLOW SAT SET i8 0 -9223372036854775807 GET i8 0",
                "1) (integer) 0\n2) (integer) 127",
            ),
            ("BITFIELD f OVERFLOW FAIL SET u8 100 256", "1) (nil)"),
            ("STRLEN f", "(integer) 14"),
        ]);
    }

    #[test]
    fn all_words_are_understood_first() {
        let encoding = "(error) ERR Invalid bitfield type. Use something like i16 u8. Note that \
                        u64 is not supported but i64 is.";
        let offset = "(error) ERR bit offset is not an integer or out of range";
        check(&[
            ("BITFIELD k SET u8 0 1 GET u64 0", encoding),
            ("BITFIELD k GET u08 0", encoding),
            ("BITFIELD k GET U8 0", encoding),
            ("BITFIELD k GET u8 #-1", offset),
            ("BITFIELD k GET u8 #9223372036854775807", offset),
            ("BITFIELD k INCRBY u8 -1 x", offset),
            ("BITFIELD k GET u8", "(error) ERR syntax error"),
            ("BITFIELD k OVERFLOW MAYBE", "(error) ERR Invalid OVERFLOW type specified"),
            ("BITFIELD k SET u8 0 x", "(error) ERR value is not an integer or out of range"),
            (
                "BITFIELD_RO k SET u8 0 1",
                "(error) ERR BITFIELD_RO only supports the GET subcommand",
            ),
            ("GET k", "(nil)"),
        ]);
    }

    proptest! {
        #[test]
        fn what_is_stored_fits(signed: bool, width in 1_u32..=63, number: i64, delta: i64) {
            let encoding = Encoding { signed, width };
            let (min, max) = encoding.limits();
            let exact = i128::from(number) + i128::from(delta);
            let wrapped = encoding.fit(exact, Overflow::Wrap).map(i128::from).unwrap();
            prop_assert!((min..=max).contains(&wrapped));
            prop_assert_eq!((exact - wrapped).rem_euclid(1 << width), 0);
            let saturated = encoding.fit(exact, Overflow::Saturate).map(i128::from);
            prop_assert_eq!(saturated, Some(exact.max(min).min(max)));
        }
    }
}
