//! ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE and ZREMRANGEBYLEX: take members out.
//!
//! The last element takes its key along, announced as `del` behind the command's own event.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use std::ops::Range;

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags, KeySpec,
    ReplyWriter, View, WriteHandler,
};
use kiln_data::zset::ZSet;

use super::bounds::{lex_bounds, rank_range, score_bounds};

const KEYS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::DELETE))];

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("ZREM", Arity::at_least(3), zrem)
        .group(Group::SortedSet)
        .flags(CommandFlags::FAST)
        .keys(KEYS)
        .docs(
            "1.2.0",
            "O(M*log(N)) with N elements in the sorted set and M members to remove.",
            "key member [member ...]",
            "Remove members; the last one takes the key along.",
        ),
    by_range(
        "ZREMRANGEBYRANK",
        zremrangebyrank,
        "2.0.0",
        "key start stop",
        "Remove the members whose ranks are in a range.",
    ),
    by_range(
        "ZREMRANGEBYSCORE",
        zremrangebyscore,
        "1.2.0",
        "key min max",
        "Remove the members whose scores are in a range.",
    ),
    by_range(
        "ZREMRANGEBYLEX",
        zremrangebylex,
        "2.8.9",
        "key min max",
        "Remove the members between two others, where all scores are equal.",
    ),
];

const fn by_range(
    name: &'static str,
    handler: WriteHandler,
    since: &'static str,
    syntax: &'static str,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::write(name, Arity::exactly(4), handler).group(Group::SortedSet).keys(KEYS).docs(
        since,
        "O(log(N)+M) with N elements and M of them removed.",
        syntax,
        summary,
    )
}

fn zrem(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let removed = match view.zset_mut(args.get(1))? {
        Some(zset) => args.tail(2).iter().filter(|member| zset.remove(member).is_some()).count(),
        None => 0,
    };
    announce_removal(view, args.get(1), Event::ZRem, removed);
    reply.integer(removed as i64);
    Ok(())
}

fn zremrangebyrank(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let (start, stop) = (args.int(2)?, args.int(3)?);
    let ranks = |zset: &ZSet| rank_range(start, stop, zset.len());
    remove_range(view, args.get(1), ranks, Event::ZRemRangeByRank, reply)
}

fn zremrangebyscore(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let (min, max) = score_bounds(args.get(2), args.get(3))?;
    let ranks = |zset: &ZSet| zset.ranks_by_score(min, max);
    remove_range(view, args.get(1), ranks, Event::ZRemRangeByScore, reply)
}

fn zremrangebylex(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let (min, max) = lex_bounds(args.get(2), args.get(3))?;
    let ranks = |zset: &ZSet| zset.ranks_by_lex(min, max);
    remove_range(view, args.get(1), ranks, Event::ZRemRangeByLex, reply)
}

/// Removes the elements with the ranks that `ranks` chooses, and replies with their number.
fn remove_range(
    view: &mut View<'_>,
    key: &[u8],
    ranks: impl FnOnce(&ZSet) -> Range<usize>,
    event: Event,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let removed = match view.zset_mut(key)? {
        Some(zset) => {
            let ranks = ranks(zset);
            zset.remove_ranks(ranks, |_, _| {})
        }
        None => 0,
    };
    announce_removal(view, key, event, removed);
    reply.integer(removed as i64);
    Ok(())
}

/// Announces that `count` elements left the sorted set at `key`, and removes the key if they were
/// the last.
pub(super) fn announce_removal(view: &mut View<'_>, key: &[u8], event: Event, count: usize) {
    if count == 0 {
        return;
    }
    view.changed(key, event);
    view.count_changes(count as u64 - 1);
    if view.remove_if_empty(key) {
        view.event(key, Event::Del);
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn the_last_member_takes_the_key_along() {
        check(&[
            ("ZADD z 1 a 2 b 3 c", "(integer) 3"),
            ("ZREM z a a none", "(integer) 1"),
            ("ZREM z b c", "(integer) 2"),
            ("SET z v", "OK"),
            ("ZREM none a", "(integer) 0"),
        ]);
    }

    #[test]
    fn ranges_by_rank_score_and_member() {
        check(&[
            ("ZADD z 0 a 0 b 0 c 0 d 1 e 2 f", "(integer) 6"),
            ("ZREMRANGEBYLEX z (a [b", "(integer) 1"),
            ("ZREMRANGEBYSCORE z (1 +inf", "(integer) 1"),
            ("ZREMRANGEBYRANK z -1 -1", "(integer) 1"),
            ("ZREMRANGEBYRANK z 5 9", "(integer) 0"),
            ("ZRANGE z 0 -1", "1) \"a\"\n2) \"c\"\n3) \"d\""),
            ("ZREMRANGEBYRANK z 0 -1", "(integer) 3"),
            ("ZREMRANGEBYSCORE z 0 1", "(integer) 0"),
            ("SET z v", "OK"),
        ]);
    }

    #[test]
    fn the_range_is_checked_before_the_key() {
        check(&[
            ("SET s v", "OK"),
            ("ZREMRANGEBYRANK s x 1", "(error) ERR value is not an integer or out of range"),
            ("ZREMRANGEBYSCORE s 1 x", "(error) ERR min or max is not a float"),
            ("ZREMRANGEBYLEX s a [b", "(error) ERR min or max not valid string range item"),
            (
                "ZREMRANGEBYLEX s - +",
                "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
        ]);
    }
}
