//! ZCARD, ZSCORE, ZMSCORE, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT and ZRANDMEMBER: questions about one
//! sorted set. A missing key is an empty one.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::number::parse_i64;
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Group, KeyFlags, KeySpec,
    ReadHandler, ReplyWriter, View,
};
use kiln_data::zset::ZSet;

use super::bounds::{lex_bounds, score_bounds};
use super::elements::{write_elements, write_pair, write_pairs_header};

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::read("ZCARD", Arity::exactly(2), zcard)
        .group(Group::SortedSet)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RO)])
        .docs("1.2.0", "O(1)", "key", "Count the members."),
    spec("ZSCORE", Arity::exactly(3), zscore).docs(
        "1.2.0",
        "O(1)",
        "key member",
        "Give the score of a member.",
    ),
    spec("ZMSCORE", Arity::at_least(3), zmscore).docs(
        "6.2.0",
        "O(N) with N members asked for.",
        "key member [member ...]",
        "Give the scores of several members.",
    ),
    spec("ZRANK", Arity::at_least(3), zrank).docs(
        "2.0.0",
        "O(log(N))",
        "key member [WITHSCORE]",
        "Count the members in front of one, lowest score first.",
    ),
    spec("ZREVRANK", Arity::at_least(3), zrevrank).docs(
        "2.0.0",
        "O(log(N))",
        "key member [WITHSCORE]",
        "Count the members in front of one, highest score first.",
    ),
    spec("ZCOUNT", Arity::exactly(4), zcount).docs(
        "2.0.0",
        "O(log(N))",
        "key min max",
        "Count the members whose scores are in a range.",
    ),
    spec("ZLEXCOUNT", Arity::exactly(4), zlexcount).docs(
        "2.8.9",
        "O(log(N))",
        "key min max",
        "Count the members between two others, where all scores are equal.",
    ),
    CommandSpec::read("ZRANDMEMBER", Arity::at_least(2), zrandmember)
        .group(Group::SortedSet)
        .keys(KEYS)
        .docs(
            "6.2.0",
            "O(N*log(M)) with N members drawn from M.",
            "key [count [WITHSCORES]]",
            "Draw members at random, which stay.",
        ),
];

const KEYS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))];

const fn spec(name: &'static str, arity: Arity, handler: ReadHandler) -> CommandSpec {
    CommandSpec::read(name, arity, handler)
        .group(Group::SortedSet)
        .flags(CommandFlags::FAST)
        .keys(KEYS)
}

fn zcard(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let len = view.zset(args.get(1))?.map_or(0, ZSet::len);
    reply.integer(len as i64);
    Ok(())
}

fn zscore(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match view.zset(args.get(1))?.and_then(|zset| zset.score(args.get(2))) {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
    Ok(())
}

fn zmscore(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let zset = view.zset(args.get(1))?;
    let members = args.tail(2);
    reply.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => reply.double(score),
            None => reply.null(),
        }
    }
    Ok(())
}

fn zrank(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    rank("zrank", false, view, args, reply)
}

fn zrevrank(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    rank("zrevrank", true, view, args, reply)
}

fn rank(
    name: &'static str,
    reverse: bool,
    view: &View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    if args.len() > 4 {
        return Err(CommandError::WrongArity(name.into()));
    }
    let with_score = args.len() == 4;
    if with_score && !args.is_word(3, "WITHSCORE") {
        return Err(CommandError::Syntax);
    }
    let member = args.get(2);
    let found = view
        .zset(args.get(1))?
        .and_then(|zset| if reverse { zset.reverse_rank(member) } else { zset.rank(member) });
    match found {
        Some((rank, score)) if with_score => {
            reply.array(2);
            reply.integer(rank as i64);
            reply.double(score);
        }
        Some((rank, _)) => reply.integer(rank as i64),
        None if with_score => reply.null_array(),
        None => reply.null(),
    }
    Ok(())
}

fn zcount(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (min, max) = score_bounds(args.get(2), args.get(3))?;
    let count = view.zset(args.get(1))?.map_or(0, |zset| zset.ranks_by_score(min, max).len());
    reply.integer(count as i64);
    Ok(())
}

fn zlexcount(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (min, max) = lex_bounds(args.get(2), args.get(3))?;
    let count = view.zset(args.get(1))?.map_or(0, |zset| zset.ranks_by_lex(min, max).len());
    reply.integer(count as i64);
    Ok(())
}

/// Most members that ZRANDMEMBER draws with repetition, as for SRANDMEMBER. Redis knows no limit
/// and is killed by the system when it is asked for more than memory holds.
const REPEATED_MAX: u64 = 1 << 24;

/// A negative count draws with repetition, so often; a positive one draws so many different
/// members, or all of them.
fn zrandmember(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let mut rng = view.rng();
    if args.len() == 2 {
        match view.zset(args.get(1))?.and_then(|zset| zset.random(&mut rng)) {
            Some((member, _)) => reply.bulk(&member),
            None => reply.null(),
        }
        return Ok(());
    }
    let count = parse_i64(args.get(2)).ok_or(CommandError::NotAnInteger)?;
    if count == i64::MIN {
        return Err(CommandError::text(
            "ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        ));
    }
    let with_scores = args.len() > 3;
    if args.len() > 4 || (with_scores && !args.is_word(3, "WITHSCORES")) {
        return Err(CommandError::Syntax);
    }
    // A flat array of so many members and scores would have a length beyond 64 bits.
    if with_scores && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(CommandError::OutOfRange);
    }
    let Some(zset) = view.zset(args.get(1))? else {
        reply.empty_array();
        return Ok(());
    };
    if count >= zset.len() as i64 {
        write_elements(reply, zset.iter(), with_scores);
        return Ok(());
    }
    if count < 0 && count.unsigned_abs() > REPEATED_MAX {
        return Err(CommandError::OutOfRange);
    }
    let drawn = count.unsigned_abs() as usize;
    if with_scores {
        write_pairs_header(reply, drawn);
    } else {
        reply.array(drawn);
    }
    let mut write = |member: &[u8], score: f64| {
        if with_scores { write_pair(reply, member, score) } else { reply.bulk(member) }
    };
    if count >= 0 {
        for (member, score) in zset.random_distinct(drawn, &mut rng) {
            write(&member, score);
        }
    } else {
        for _ in 0..drawn {
            let (member, score) = zset.random(&mut rng).expect("a sorted set is never empty");
            write(&member, score);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn a_missing_key_is_an_empty_set() {
        check(&[
            ("ZCARD k", "(integer) 0"),
            ("ZSCORE k a", "(nil)"),
            ("ZMSCORE k a b", "1) (nil)\n2) (nil)"),
            ("ZRANK k a", "(nil)"),
            ("ZCOUNT k -inf +inf", "(integer) 0"),
            ("ZLEXCOUNT k - +", "(integer) 0"),
            ("ZRANDMEMBER k", "(nil)"),
            ("ZRANDMEMBER k -5", "(empty array)"),
        ]);
    }

    #[test]
    fn ranks_count_from_either_end() {
        check(&[
            ("ZADD z 1 a 2.5 b 2.5 c", "(integer) 3"),
            ("ZRANK z c", "(integer) 2"),
            ("ZREVRANK z c", "(integer) 0"),
            ("ZRANK z b WITHSCORE", "1) (integer) 1\n2) \"2.5\""),
            ("ZREVRANK z a withscore", "1) (integer) 2\n2) \"1\""),
            ("ZRANK z a WITHSCORES", "(error) ERR syntax error"),
            ("ZRANK z a WITHSCORE x", "(error) ERR wrong number of arguments for 'zrank' command"),
        ]);
    }

    #[test]
    fn counting_checks_the_range_first() {
        check(&[
            ("SET s v", "OK"),
            ("ZCOUNT s x 1", "(error) ERR min or max is not a float"),
            ("ZLEXCOUNT s - x", "(error) ERR min or max not valid string range item"),
            ("ZADD z 1 a 2 b 3 c", "(integer) 3"),
            ("ZCOUNT z (1 3", "(integer) 2"),
            ("ZCOUNT z 3 1", "(integer) 0"),
            ("ZADD lex 0 a 0 b 0 c", "(integer) 3"),
            ("ZLEXCOUNT lex [a (c", "(integer) 2"),
        ]);
    }

    #[test]
    fn drawing_has_its_limits() {
        check(&[
            ("ZADD z 1.5 only", "(integer) 1"),
            ("ZRANDMEMBER z", "\"only\""),
            ("ZRANDMEMBER z 9", "1) \"only\""),
            ("ZRANDMEMBER z -2 WITHSCORES", "1) \"only\"\n2) \"1.5\"\n3) \"only\"\n4) \"1.5\""),
            ("ZRANDMEMBER z 0", "(empty array)"),
            ("ZRANDMEMBER z -9999999999", "(error) ERR value is out of range"),
            ("ZRANDMEMBER z x WITHSCORES", "(error) ERR value is not an integer or out of range"),
            ("ZRANDMEMBER z 1 x", "(error) ERR syntax error"),
            ("ZRANDMEMBER z -4611686018427387904 WITHSCORES", "(error) ERR value is out of range"),
        ]);
    }
}
