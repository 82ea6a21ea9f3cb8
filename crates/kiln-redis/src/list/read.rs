//! LLEN, LINDEX, LRANGE and LPOS: look at a list.
//!
//! Indexes count from 0 at the head; negative ones from -1 at the tail.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::number::parse_i64;
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Group, KeyFlags, KeySpec,
    ReadHandler, ReplyWriter, View,
};
use kiln_data::list::{End, List};

use crate::element::ReplyElement;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::read("LLEN", Arity::exactly(2), llen)
        .group(Group::List)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RO)])
        .docs("1.0.0", "O(1)", "key", "Return the length of a list."),
    spec(
        "LINDEX",
        Arity::exactly(3),
        lindex,
        ["1.0.0", "O(N) with N elements between the index and the nearer end.", "key index"],
        "Return the element at an index.",
    ),
    spec(
        "LRANGE",
        Arity::exactly(4),
        lrange,
        [
            "1.0.0",
            "O(S+N) with S elements between the nearer end and the first of N elements returned.",
            "key start stop",
        ],
        "Return the elements between two indexes.",
    ),
    spec(
        "LPOS",
        Arity::at_least(3),
        lpos,
        [
            "6.0.6",
            "O(N) with N elements looked at.",
            "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
        ],
        "Return the indexes of the elements that equal one.",
    ),
];

const KEYS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))];

const fn spec(
    name: &'static str,
    arity: Arity,
    handler: ReadHandler,
    [since, complexity, syntax]: [&'static str; 3],
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::read(name, arity, handler)
        .group(Group::List)
        .keys(KEYS)
        .docs(since, complexity, syntax, summary)
}

fn llen(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let len = view.list(args.get(1))?.map_or(0, List::len);
    reply.integer(len as i64);
    Ok(())
}

fn lindex(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    // A missing key comes before a bad index, as in the reference.
    let element = match view.list(args.get(1))? {
        Some(list) => list.get(args.int(2)?),
        None => None,
    };
    match element {
        Some(element) => reply.element(element),
        None => reply.null(),
    }
    Ok(())
}

fn lrange(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (start, stop) = (args.int(2)?, args.int(3)?);
    let Some(list) = view.list(args.get(1))? else {
        reply.empty_array();
        return Ok(());
    };
    let (first, count) = clamp(start, stop, list.len());
    reply.array(count);
    list.iter_from(first, End::Back).take(count).for_each(|element| reply.element(element));
    Ok(())
}

/// The first index and the number of elements that `start` and `stop` (inclusive, from the end if
/// negative) mean in a list of `len`.
pub(super) fn clamp(start: i64, stop: i64, len: usize) -> (usize, usize) {
    let len = len as i64;
    let start = if start < 0 { (start + len).max(0) } else { start };
    let stop = if stop < 0 { stop + len } else { stop.min(len - 1) };
    if start > stop { (0, 0) } else { (start as usize, (stop - start + 1) as usize) }
}

/// The options of LPOS.
struct Search {
    /// Which match comes first, counted from 1 at the head or from -1 at the tail.
    rank: i64,
    /// How many matches to return (0: all) as an array; `None`: one, by itself.
    count: Option<usize>,
    /// How many elements to compare at most; 0: all.
    len_max: usize,
}

fn parse_search(args: &Args<'_>) -> Result<Search, CommandError> {
    let mut search = Search { rank: 1, count: None, len_max: 0 };
    let mut at = 3;
    while at + 1 < args.len() {
        let value = at + 1;
        if args.is_word(at, "RANK") {
            search.rank = args.signed_count(value)?;
            if search.rank == 0 {
                return Err(CommandError::text(
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                     second ... or use negative to start from the end of the list",
                ));
            }
        } else if args.is_word(at, "COUNT") {
            let error = CommandError::text("ERR COUNT can't be negative");
            search.count = Some(count(args.get(value)).ok_or(error)?);
        } else if args.is_word(at, "MAXLEN") {
            let error = CommandError::text("ERR MAXLEN can't be negative");
            search.len_max = count(args.get(value)).ok_or(error)?;
        } else {
            return Err(CommandError::Syntax);
        }
        at += 2;
    }
    if at < args.len() { Err(CommandError::Syntax) } else { Ok(search) }
}

fn count(text: &[u8]) -> Option<usize> {
    parse_i64(text).and_then(|count| usize::try_from(count).ok())
}

fn lpos(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let search = parse_search(args)?;
    let Some(list) = view.list(args.get(1))? else {
        match search.count {
            Some(_) => reply.empty_array(),
            None => reply.null(),
        }
        return Ok(());
    };
    let from = if search.rank > 0 { End::Front } else { End::Back };
    let len_max = if search.len_max == 0 { usize::MAX } else { search.len_max };
    let mut found = list
        .positions(args.get(2), from, len_max)
        .skip(search.rank.unsigned_abs() as usize - 1)
        .map(|index| index as i64);
    match search.count {
        None => match found.next() {
            Some(index) => reply.integer(index),
            None => reply.null(),
        },
        Some(count) => {
            let deferred = reply.deferred();
            let mut matches = 0;
            for index in found.take(if count == 0 { usize::MAX } else { count }) {
                reply.integer(index);
                matches += 1;
            }
            reply.finish_array(deferred, matches);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::clamp;
    use crate::testkit::check;

    proptest! {
        /// Against Redis's definition: keep every index that both bounds admit.
        #[test]
        fn a_range_keeps_the_indexes_between_its_bounds(
            start in -12_i64..12,
            stop in -12_i64..12,
            len in 0_usize..10,
        ) {
            let absolute = |index: i64| if index < 0 { index + len as i64 } else { index };
            let within = |index: &i64| absolute(start) <= *index && *index <= absolute(stop);
            let want: Vec<i64> = (0..len as i64).filter(within).collect();
            let (first, count) = clamp(start, stop, len);
            let got: Vec<i64> = (0..len as i64).skip(first).take(count).collect();
            prop_assert_eq!(got.len(), count);
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn the_farthest_bounds_are_in_order() {
        assert_eq!(clamp(i64::MIN, i64::MAX, 3), (0, 3));
        assert_eq!(clamp(i64::MAX, i64::MIN, 3), (0, 0));
    }

    #[test]
    fn a_search_has_a_rank_a_count_and_an_end() {
        check(&[
            ("RPUSH k a b c 1 2 3 c c", "(integer) 8"),
            ("LPOS k c", "(integer) 2"),
            ("LPOS k c RANK 2", "(integer) 6"),
            ("LPOS k c RANK -1", "(integer) 7"),
            ("LPOS k c RANK 4", "(nil)"),
            ("LPOS k c COUNT 2", "1) (integer) 2\n2) (integer) 6"),
            ("LPOS k c COUNT 0 RANK -2", "1) (integer) 6\n2) (integer) 2"),
            ("LPOS k c COUNT 0 MAXLEN 3", "1) (integer) 2"),
            ("LPOS k c COUNT 0 MAXLEN 2", "(empty array)"),
            ("LPOS k c MAXLEN 2", "(nil)"),
            ("LPOS none c COUNT 1", "(empty array)"),
            ("LPOS none c", "(nil)"),
            ("LPOS k c COUNT", "(error) ERR syntax error"),
            ("LPOS k c COUNT x", "(error) ERR COUNT can't be negative"),
            ("LPOS k c MAXLEN -1", "(error) ERR MAXLEN can't be negative"),
        ]);
    }

    #[test]
    fn a_missing_key_comes_before_a_bad_index_but_after_a_bad_range() {
        check(&[
            ("LINDEX none x", "(nil)"),
            ("LRANGE none 0 x", "(error) ERR value is not an integer or out of range"),
            ("LRANGE none 0 1", "(empty array)"),
            ("LLEN none", "(integer) 0"),
            ("RPUSH k 1 b", "(integer) 2"),
            ("LINDEX k x", "(error) ERR value is not an integer or out of range"),
            ("LINDEX k 0", "\"1\""),
            ("LINDEX k -1", "\"b\""),
            ("LINDEX k 2", "(nil)"),
            ("LLEN k", "(integer) 2"),
        ]);
    }
}
