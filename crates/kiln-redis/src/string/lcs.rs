//! LCS: the longest common subsequence of two strings.
//!
//! The textbook table: cell (i, j) is the length for the first i bytes of one string and the first
//! j of the other. Walking it backwards from its last cell gives the matching bytes; where two
//! ways are equally good, Redis's is taken (the second string is shortened), because clients see
//! which. The table may take `proto-max-bulk-len` bytes, which bounds the time too; it is walked
//! under the shards' shared locks.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::number::INTEGER_BYTES_MAX;
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandResult, CommandSpec, Group, KeyFlags, KeySpec, ReplyWriter,
    View,
};

pub(super) const COMMANDS: &[CommandSpec] = &[CommandSpec::read("LCS", Arity::at_least(3), lcs)
    .group(Group::String)
    .keys(&[KeySpec::range(1, 1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))])
    .docs(
        "7.0.0",
        "O(N*M) with the lengths N and M of the strings.",
        "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
        "Return the longest common subsequence of two strings.",
    )];

/// What to reply with.
#[derive(Default)]
struct LcsOptions {
    len: bool,
    idx: bool,
    min_match_len: i64,
    with_match_len: bool,
}

impl LcsOptions {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut index = 3;
        while index < args.len() {
            if args.is_word(index, "IDX") {
                options.idx = true;
            } else if args.is_word(index, "LEN") {
                options.len = true;
            } else if args.is_word(index, "WITHMATCHLEN") {
                options.with_match_len = true;
            } else if args.is_word(index, "MINMATCHLEN") && index + 1 < args.len() {
                index += 1;
                options.min_match_len = args.int(index)?;
            } else {
                return Err(CommandError::Syntax);
            }
            index += 1;
        }
        if options.idx && options.len {
            return Err(CommandError::text(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }
}

fn lcs(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let string = |index: usize| {
        let not_strings =
            || CommandError::text("ERR The specified keys must contain string values");
        view.string(args.get(index)).map_err(|_| not_strings())
    };
    let (a, b) = (string(1)?, string(2)?);
    let options = LcsOptions::parse(args)?;
    let (mut a_digits, mut b_digits) = ([0; INTEGER_BYTES_MAX], [0; INTEGER_BYTES_MAX]);
    let a = a.as_ref().map_or(&b""[..], |a| a.bytes(&mut a_digits));
    let b = b.as_ref().map_or(&b""[..], |b| b.bytes(&mut b_digits));
    let table = Table::new(a, b, view.settings().proto_max_bulk_bytes)?;
    if options.len {
        reply.integer(i64::from(table.len()));
    } else if options.idx {
        reply_ranges(&table, &options, reply);
    } else {
        let mut common: Vec<u8> = table.matches().map(|(at, _)| a[at]).collect();
        common.reverse();
        reply.bulk(&common);
    }
    Ok(())
}

/// Replies with runs of matching bytes, last ones first, and the whole length.
fn reply_ranges(table: &Table<'_>, options: &LcsOptions, reply: &mut ReplyWriter<'_>) {
    reply.map(2);
    reply.bulk(b"matches");
    let deferred = reply.deferred();
    let mut ranges = 0;
    let mut matches = table.matches().peekable();
    while let Some((a_last, b_last)) = matches.next() {
        let mut len = 1;
        while matches.next_if(|&(a, b)| (a + len, b + len) == (a_last, b_last)).is_some() {
            len += 1;
        }
        if len as i64 >= options.min_match_len {
            ranges += 1;
            reply.array(if options.with_match_len { 3 } else { 2 });
            for last in [a_last, b_last] {
                reply.array(2);
                reply.integer((last + 1 - len) as i64);
                reply.integer(last as i64);
            }
            if options.with_match_len {
                reply.integer(len as i64);
            }
        }
    }
    reply.finish_array(deferred, ranges);
    reply.bulk(b"len");
    reply.integer(i64::from(table.len()));
}

/// The lengths for all pairs of prefixes of two strings.
struct Table<'s> {
    a: &'s [u8],
    b: &'s [u8],
    /// Row i, column j: for `a[..i]` and `b[..j]`. A row has `b.len() + 1` cells.
    cells: Vec<u32>,
}

impl<'s> Table<'s> {
    /// # Errors
    ///
    /// The table would take more than `bytes_max` bytes.
    fn new(a: &'s [u8], b: &'s [u8], bytes_max: usize) -> Result<Self, CommandError> {
        let width = b.len() + 1;
        // The lengths are below 2^32 (a request's words are), so nothing overflows.
        let cells = (a.len() + 1) * width;
        if cells.saturating_mul(size_of::<u32>()) > bytes_max {
            return Err(CommandError::text(
                "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
            ));
        }
        let mut cells = vec![0; cells];
        for (row, &byte) in a.iter().enumerate() {
            let (above, below) = cells[row * width..][..2 * width].split_at_mut(width);
            let mut left = 0;
            for (column, &other) in b.iter().enumerate() {
                left = if byte == other { above[column] + 1 } else { left.max(above[column + 1]) };
                below[column + 1] = left;
            }
        }
        Ok(Self { a, b, cells })
    }

    fn at(&self, row: usize, column: usize) -> u32 {
        self.cells[row * (self.b.len() + 1) + column]
    }

    /// The length of the longest common subsequence.
    fn len(&self) -> u32 {
        self.at(self.a.len(), self.b.len())
    }

    /// The positions of its bytes in both strings, last ones first.
    fn matches(&self) -> impl Iterator<Item = (usize, usize)> {
        let (mut row, mut column) = (self.a.len(), self.b.len());
        std::iter::from_fn(move || {
            while row > 0 && column > 0 {
                if self.a[row - 1] == self.b[column - 1] {
                    row -= 1;
                    column -= 1;
                    return Some((row, column));
                }
                if self.at(row - 1, column) > self.at(row, column - 1) {
                    row -= 1;
                } else {
                    column -= 1;
                }
            }
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::Table;
    use crate::testkit::check;

    #[test]
    fn subsequence_length_and_ranges() {
        check(&[
            ("MSET a ohmytext b mynewtext", "OK"),
            ("LCS a b", "\"mytext\""),
            ("LCS a b LEN", "(integer) 6"),
            (
                "LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN",
                "1) \"matches\"\n2) 1) 1) 1) (integer) 4\n         2) (integer) 7\n      \
                 2) 1) (integer) 5\n         2) (integer) 8\n      3) (integer) 4\n\
                 3) \"len\"\n4) (integer) 6",
            ),
            ("LCS a missing", "\"\""),
            ("LCS missing none LEN", "(integer) 0"),
        ]);
    }

    #[test]
    fn errors_come_in_the_reference_order() {
        check(&[
            ("MSET a abc b abc", "OK"),
            (
                "LCS a b LEN IDX",
                "(error) ERR If you want both the length and indexes, please just use IDX.",
            ),
            ("LCS a b IDX MINMATCHLEN", "(error) ERR syntax error"),
            ("LCS a b IDX MINMATCHLEN x", "(error) ERR value is not an integer or out of range"),
            ("ZADD l 1 a", "(integer) 1"),
            ("LCS l b BOGUS", "(error) ERR The specified keys must contain string values"),
        ]);
    }

    proptest! {
        #[test]
        fn matches_ascend_in_both_strings(a in "[ab]{0,12}", b in "[ab]{0,12}") {
            let table = Table::new(a.as_bytes(), b.as_bytes(), 1 << 20).expect("a small table");
            let matches: Vec<_> = table.matches().collect();
            prop_assert_eq!(matches.len(), table.len() as usize);
            prop_assert!(matches.iter().all(|&(x, y)| a.as_bytes()[x] == b.as_bytes()[y]));
            prop_assert!(matches.windows(2).all(|two| two[0].0 > two[1].0 && two[0].1 > two[1].1));
        }
    }
}
