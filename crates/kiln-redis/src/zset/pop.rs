//! ZPOPMIN, ZPOPMAX, ZMPOP and their waiting forms BZPOPMIN, BZPOPMAX and BZMPOP: take the lowest
//! or highest elements out.
//!
//! The ones with several keys pop from the first that holds a sorted set, and journal what became
//! of it: a ZPOPMIN or ZPOPMAX of that key.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use std::ops::Range;

use kiln_base::number::parse_i64;
use kiln_command::args::ArgsExt;
use kiln_command::blocking::{Block, Outcome, TimeoutReply, parse_timeout};
use kiln_command::{
    Args, Arity, BlockingHandler, CommandError, CommandFlags, CommandResult, CommandSpec, Event,
    Group, KeyFlags, KeySpec, ReplyWriter, View, WriteHandler,
};
use kiln_data::zset::ZSet;

use super::elements::{write_pair, write_pairs_header};
use super::remove::announce_removal;

const POP: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);

const BAD_COUNT: &str = "ERR count should be greater than 0";

pub(super) const COMMANDS: &[CommandSpec] = &[
    single("ZPOPMIN", zpopmin, "Take the members with the lowest scores out."),
    single("ZPOPMAX", zpopmax, "Take the members with the highest scores out."),
    CommandSpec::write("ZMPOP", Arity::at_least(4), zmpop)
        .group(Group::SortedSet)
        .flags(CommandFlags::MOVABLEKEYS)
        .keys(&[KeySpec::keynum(1, POP)])
        .journal_by_handler()
        .docs(
            "7.0.0",
            "O(K+M*log(N)) with K keys, N elements in the first that has some, M popped.",
            "numkeys key [key ...] <MIN | MAX> [COUNT count]",
            "Take the members at one end out of the first sorted set that has some.",
        ),
    waiting("BZPOPMIN", bzpopmin, "Wait for a member, then take the one with the lowest score."),
    waiting("BZPOPMAX", bzpopmax, "Wait for a member, then take the one with the highest score."),
    CommandSpec::blocking("BZMPOP", Arity::at_least(5), bzmpop)
        .group(Group::SortedSet)
        .flags(CommandFlags::MOVABLEKEYS)
        .keys(&[KeySpec::keynum(2, POP)])
        .journal_by_handler()
        .docs(
            "7.0.0",
            "O(K+M*log(N)) with K keys, N elements in the first that has some, M popped.",
            "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]",
            "Wait for a member, then take the members at one end of its sorted set.",
        ),
];

const SINGLE_KEYS: &[KeySpec] = &[KeySpec::at(1, POP)];
const WAITING_KEYS: &[KeySpec] = &[KeySpec::range(1, -2, 1, POP)];

const fn single(name: &'static str, handler: WriteHandler, summary: &'static str) -> CommandSpec {
    CommandSpec::write(name, Arity::at_least(2), handler)
        .group(Group::SortedSet)
        .flags(CommandFlags::FAST)
        .keys(SINGLE_KEYS)
        .docs("5.0.0", "O(M*log(N)) with N elements and M popped.", "key [count]", summary)
}

const fn waiting(
    name: &'static str,
    handler: BlockingHandler,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::blocking(name, Arity::at_least(3), handler)
        .group(Group::SortedSet)
        .flags(CommandFlags::FAST)
        .keys(WAITING_KEYS)
        .journal_by_handler()
        .docs("5.0.0", "O(log(N)) with N elements.", "key [key ...] timeout", summary)
}

/// Which elements go first.
#[derive(Clone, Copy)]
enum End {
    Min,
    Max,
}

impl End {
    fn event(self) -> Event {
        match self {
            Self::Min => Event::ZPopMin,
            Self::Max => Event::ZPopMax,
        }
    }

    fn command(self) -> &'static [u8] {
        match self {
            Self::Min => b"ZPOPMIN",
            Self::Max => b"ZPOPMAX",
        }
    }

    fn pop(self, zset: &mut ZSet, count: usize, popped: impl FnMut(&[u8], f64)) {
        match self {
            Self::Min => zset.pop_min(count, popped),
            Self::Max => zset.pop_max(count, popped),
        };
    }
}

fn zpopmin(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    pop(view, args, End::Min, reply)
}

fn zpopmax(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    pop(view, args, End::Max, reply)
}

fn zmpop(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let MultiPop { keys, end, count } = MultiPop::parse(args, 1)?;
    if !pop_first(view, args, keys, end, Some(count), reply)? {
        reply.null_array();
    }
    Ok(())
}

fn bzpopmin(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    pop_or_wait(view, args, End::Min, reply)
}

fn bzpopmax(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    pop_or_wait(view, args, End::Max, reply)
}

fn bzmpop(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    let MultiPop { keys, end, count } = MultiPop::parse(args, 2)?;
    let timeout = parse_timeout(args.get(1))?;
    if pop_first(view, args, keys.clone(), end, Some(count), reply)? {
        return Ok(Outcome::Done);
    }
    let on_timeout = TimeoutReply::NullArray;
    Ok(Outcome::Block(Block { timeout, on_timeout, keys: keys.collect() }))
}

/// ZPOPMIN and ZPOPMAX. Without a count the reply is one element, not an array of such.
fn pop(
    view: &mut View<'_>,
    args: &Args<'_>,
    end: End,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let count = match args.try_get(2) {
        Some(count) => parse_i64(count)
            .and_then(|count| usize::try_from(count).ok())
            .map(Some)
            .ok_or(CommandError::NotPositive)?,
        None => None,
    };
    let key = args.get(1);
    let Some(zset) = view.zset_mut(key)? else {
        reply.empty_array();
        return Ok(());
    };
    let popped = count.unwrap_or(1).min(zset.len());
    if count.is_some() {
        write_pairs_header(reply, popped);
        end.pop(zset, popped, |member, score| write_pair(reply, member, score));
    } else {
        reply.array(2);
        end.pop(zset, popped, |member, score| {
            reply.bulk(member);
            reply.double(score);
        });
    }
    announce_removal(view, key, end.event(), popped);
    Ok(())
}

/// BZPOPMIN and BZPOPMAX.
fn pop_or_wait(
    view: &mut View<'_>,
    args: &Args<'_>,
    end: End,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    let last = args.len() - 1;
    let timeout = parse_timeout(args.get(last))?;
    if pop_first(view, args, 1..last, end, None, reply)? {
        return Ok(Outcome::Done);
    }
    let on_timeout = TimeoutReply::NullArray;
    Ok(Outcome::Block(Block { timeout, on_timeout, keys: (1..last).collect() }))
}

/// The words of ZMPOP, or of BZMPOP behind its timeout.
struct MultiPop {
    /// Indexes of the words that are keys.
    keys: Range<usize>,
    end: End,
    count: usize,
}

impl MultiPop {
    /// Parses from the number of keys, at word `at`, on.
    fn parse(args: &Args<'_>, at: usize) -> Result<Self, CommandError> {
        let positive = |word: &[u8], error: &'static str| {
            parse_i64(word)
                .filter(|number| *number > 0)
                .map(|number| number as usize)
                .ok_or(CommandError::text(error))
        };
        let first = at + 1;
        let keys = positive(args.get(at), "ERR numkeys should be greater than 0")?;
        // The end is to be found behind the keys.
        if keys >= args.len() - first {
            return Err(CommandError::Syntax);
        }
        let behind = first + keys;
        let end = if args.is_word(behind, "MIN") {
            End::Min
        } else if args.is_word(behind, "MAX") {
            End::Max
        } else {
            return Err(CommandError::Syntax);
        };
        // Options are read in order, so a bad count comes before what follows it.
        let mut count = None;
        let options = args.tail(behind + 1);
        for at in (0..options.len()).step_by(2) {
            if count.is_some() || at + 1 == options.len() || !options.is_word(at, "COUNT") {
                return Err(CommandError::Syntax);
            }
            count = Some(positive(options.get(at + 1), BAD_COUNT)?);
        }
        let count = count.unwrap_or(1);
        Ok(Self { keys: first..behind, end, count })
    }
}

/// Pops up to `count` elements, or one, from the first of the keys that holds a sorted set. Says
/// whether there was one; if not, nothing is written. Without a count the reply is the key and the
/// one element, flat.
fn pop_first(
    view: &mut View<'_>,
    args: &Args<'_>,
    keys: Range<usize>,
    end: End,
    count: Option<usize>,
    reply: &mut ReplyWriter<'_>,
) -> Result<bool, CommandError> {
    for key in keys.map(|index| args.get(index)) {
        let Some(zset) = view.zset_mut(key)? else { continue };
        let popped = count.unwrap_or(1).min(zset.len());
        if count.is_some() {
            reply.array(2);
            reply.bulk(key);
            reply.array(popped);
            end.pop(zset, popped, |member, score| {
                reply.array(2); // A pair in RESP2 too, unlike elsewhere.
                reply.bulk(member);
                reply.double(score);
            });
            let mut digits = itoa::Buffer::new();
            view.journal([end.command(), key, digits.format(popped).as_bytes()]);
        } else {
            reply.array(3);
            reply.bulk(key);
            end.pop(zset, popped, |member, score| {
                reply.bulk(member);
                reply.double(score);
            });
            view.journal([end.command(), key]);
        }
        announce_removal(view, key, end.event(), popped);
        return Ok(true);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn popping_ends_with_the_key() {
        check(&[
            ("ZADD z 1 a 2 b 3 c 4 d 5 e", "(integer) 5"),
            ("ZPOPMIN z", "1) \"a\"\n2) \"1\""),
            ("ZPOPMAX z 2", "1) \"e\"\n2) \"5\"\n3) \"d\"\n4) \"4\""),
            ("ZPOPMIN z 0", "(empty array)"),
            ("ZPOPMAX z 9", "1) \"c\"\n2) \"3\"\n3) \"b\"\n4) \"2\""),
            ("ZPOPMAX z", "(empty array)"),
            ("SET z v", "OK"),
        ]);
    }

    #[test]
    fn several_keys_are_tried_in_order() {
        let pairs = "1) \"z\"\n2) 1) 1) \"c\"\n      2) \"3\"\n   2) 1) \"b\"\n      2) \"2\"";
        check(&[
            ("ZADD z 1 a 2 b 3 c 4 d", "(integer) 4"),
            ("BZPOPMAX none z 0", "1) \"z\"\n2) \"d\"\n3) \"4\""),
            ("ZMPOP 2 none z MAX COUNT 2", pairs),
            ("BZMPOP 0 1 z min", "1) \"z\"\n2) 1) 1) \"a\"\n      2) \"1\""),
            ("ZMPOP 1 z MIN", "(nil)"),
            ("BZPOPMIN z 0", "(waiting)"),
        ]);
    }

    #[test]
    fn words_are_checked_before_keys() {
        let syntax = "(error) ERR syntax error";
        let wrong_type =
            "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
        let no_keys = "(error) ERR numkeys should be greater than 0";
        let no_count = "(error) ERR count should be greater than 0";
        check(&[
            ("SET s v", "OK"),
            ("ZPOPMIN s -1", "(error) ERR value is out of range, must be positive"),
            ("ZPOPMIN s 0", wrong_type),
            ("ZPOPMIN s 1 1", syntax),
            ("ZMPOP x s MIN", no_keys),
            ("ZMPOP 9223372036854775807 s MIN", syntax),
            ("ZMPOP 2 s MIN", syntax),
            ("ZMPOP 1 s MIN COUNT", syntax),
            ("ZMPOP 1 s MIN COUNT 0", no_count),
            ("ZMPOP 1 s MIN COUNT 1 COUNT 1", syntax),
            ("ZMPOP 1 s MIN COUNT 0 COUNT 1", no_count),
            ("ZMPOP 2 none s MIN", wrong_type),
            ("BZPOPMIN s x", "(error) ERR timeout is not a float or out of range"),
            ("BZPOPMIN s -1", "(error) ERR timeout is negative"),
            ("BZPOPMIN none s 0", wrong_type),
            ("BZMPOP x 0 s MIN", no_keys),
            ("BZMPOP x 1 s FOO", syntax),
            ("BZMPOP -1 1 s MIN", "(error) ERR timeout is negative"),
        ]);
    }
}
