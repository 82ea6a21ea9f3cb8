//! ZRANGE, its six older forms, and ZRANGESTORE: a part of a sorted set by rank, score or member.
//!
//! All of them are one [`Query`]: parsed from the words, it becomes a range of ranks, and that is
//! read from one end or the other. The older forms fix what ZRANGE says by BYSCORE, BYLEX and REV.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use std::ops::Range;

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReadHandler, ReplyWriter, View,
};
use kiln_data::zset::{LexBound, MemberRef, ScoreBound, ZSet};

use super::bounds::{lex_bounds, rank_range, score_bounds};
use super::combine::store;
use super::elements::write_elements;

const SOURCE_FLAGS: KeyFlags = KeyFlags::RO.union(KeyFlags::ACCESS);

pub(super) const COMMANDS: &[CommandSpec] = &[
    spec(
        "ZRANGE",
        zrange,
        "1.2.0",
        "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
        "Read the members in a range of ranks, scores or members.",
    ),
    spec(
        "ZREVRANGE",
        zrevrange,
        "1.2.0",
        "key start stop [WITHSCORES]",
        "Read the members in a range of ranks, highest score first.",
    ),
    spec(
        "ZRANGEBYSCORE",
        zrangebyscore,
        "1.0.5",
        "key min max [WITHSCORES] [LIMIT offset count]",
        "Read the members whose scores are in a range.",
    ),
    spec(
        "ZREVRANGEBYSCORE",
        zrevrangebyscore,
        "2.2.0",
        "key max min [WITHSCORES] [LIMIT offset count]",
        "Read the members whose scores are in a range, highest first.",
    ),
    spec(
        "ZRANGEBYLEX",
        zrangebylex,
        "2.8.9",
        "key min max [LIMIT offset count]",
        "Read the members between two others, where all scores are equal.",
    ),
    spec(
        "ZREVRANGEBYLEX",
        zrevrangebylex,
        "2.8.9",
        "key max min [LIMIT offset count]",
        "Read the members between two others, last first, where all scores are equal.",
    ),
    CommandSpec::write("ZRANGESTORE", Arity::at_least(5), zrangestore)
        .group(Group::SortedSet)
        .flags(CommandFlags::DENYOOM)
        .keys(&[KeySpec::at(1, KeyFlags::OW.union(KeyFlags::UPDATE)), KeySpec::at(2, SOURCE_FLAGS)])
        .docs(
            "6.2.0",
            "O(log(N)+M*log(M)) with N elements and M of them stored.",
            "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
            "Store the members in a range of another sorted set.",
        ),
];

const KEYS: &[KeySpec] = &[KeySpec::at(1, SOURCE_FLAGS)];

const fn spec(
    name: &'static str,
    handler: ReadHandler,
    since: &'static str,
    syntax: &'static str,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::read(name, Arity::at_least(4), handler).group(Group::SortedSet).keys(KEYS).docs(
        since,
        "O(log(N)+M) with N elements and M of them read.",
        syntax,
        summary,
    )
}

fn zrange(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    read(view, args, Form { index: None, reverse: None, stores: false }, reply)
}

fn zrevrange(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    read(view, args, Form::fixed(Index::Rank, true), reply)
}

fn zrangebyscore(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    read(view, args, Form::fixed(Index::Score, false), reply)
}

fn zrevrangebyscore(
    view: &View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    read(view, args, Form::fixed(Index::Score, true), reply)
}

fn zrangebylex(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    read(view, args, Form::fixed(Index::Lex, false), reply)
}

fn zrevrangebylex(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    read(view, args, Form::fixed(Index::Lex, true), reply)
}

fn read(
    view: &View<'_>,
    args: &Args<'_>,
    form: Form,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let query = Query::parse(&args.tail(2), form)?;
    let Some(zset) = view.zset(args.get(1))? else {
        reply.empty_array();
        return Ok(());
    };
    let elements = zset.elements(query.ranks(zset));
    if query.reverse {
        write_elements(reply, elements.rev(), query.with_scores);
    } else {
        write_elements(reply, elements, query.with_scores);
    }
    Ok(())
}

fn zrangestore(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let form = Form { index: None, reverse: None, stores: true };
    let query = Query::parse(&args.tail(3), form)?;
    let limits = &view.settings().zset;
    let mut result = ZSet::new(0, 0, limits);
    if let Some(zset) = view.zset(args.get(2))? {
        let ranks = query.ranks(zset);
        // Before and after it becomes a tree, the result takes -0 differently. So it matters that
        // the reference knows the length beforehand for ranks alone, and adds in reading order.
        if matches!(query.ends, Ends::Rank(..)) {
            result = ZSet::new(ranks.len(), 0, limits);
        }
        let add = |(member, score): (MemberRef<'_>, f64)| {
            result.insert(&member, score, limits);
        };
        let elements = zset.elements(ranks);
        if query.reverse { elements.rev().for_each(add) } else { elements.for_each(add) }
    }
    store(view, args.get(1), result, Event::ZRangeStore, reply);
    Ok(())
}

/// What a range is measured in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Index {
    Rank,
    Score,
    Lex,
}

/// What a command's name says already; its words may say the rest.
#[derive(Clone, Copy)]
struct Form {
    index: Option<Index>,
    reverse: Option<bool>,
    stores: bool,
}

impl Form {
    const fn fixed(index: Index, reverse: bool) -> Self {
        Self { index: Some(index), reverse: Some(reverse), stores: false }
    }
}

/// A part of a sorted set.
struct Query<'a> {
    ends: Ends<'a>,
    reverse: bool,
    with_scores: bool,
    /// Passed over, then taken, from the end at which reading begins; negative: nothing, then all.
    offset: i64,
    count: i64,
}

/// Both ends of a range, the lower one first; of ranks, the one at which reading begins.
enum Ends<'a> {
    Rank(i64, i64),
    Score(ScoreBound, ScoreBound),
    Lex(LexBound<'a>, LexBound<'a>),
}

impl<'a> Query<'a> {
    /// Parses the two ends and the options behind them.
    fn parse(words: &Args<'a>, form: Form) -> Result<Self, CommandError> {
        let Form { mut index, mut reverse, stores } = form;
        let (mut with_scores, mut offset, mut count) = (false, 0, -1);
        let mut at = 2;
        while at < words.len() {
            let is = |word| words.is_word(at, word);
            if !stores && is("WITHSCORES") {
                with_scores = true;
            } else if is("LIMIT") && at + 2 < words.len() {
                (offset, count) = (words.int(at + 1)?, words.int(at + 2)?);
                at += 2;
            } else if reverse.is_none() && is("REV") {
                reverse = Some(true);
            } else if index.is_none() && is("BYLEX") {
                index = Some(Index::Lex);
            } else if index.is_none() && is("BYSCORE") {
                index = Some(Index::Score);
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        let index = index.unwrap_or(Index::Rank);
        // A count of -1 is no limit, so it is not refused where limits are.
        if index == Index::Rank && count != -1 {
            return Err(CommandError::text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if index == Index::Lex && with_scores {
            return Err(CommandError::text(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let reverse = reverse.unwrap_or(false);
        let (min, max) = if reverse { (1, 0) } else { (0, 1) };
        let ends = match index {
            Index::Rank => {
                offset = 0;
                Ends::Rank(words.int(0)?, words.int(1)?)
            }
            Index::Score => {
                let (min, max) = score_bounds(words.get(min), words.get(max))?;
                Ends::Score(min, max)
            }
            Index::Lex => {
                let (min, max) = lex_bounds(words.get(min), words.get(max))?;
                Ends::Lex(min, max)
            }
        };
        Ok(Self { ends, reverse, with_scores, offset, count })
    }

    /// The ranks of the elements in the range, lowest first.
    fn ranks(&self, zset: &ZSet) -> Range<usize> {
        match self.ends {
            Ends::Rank(start, stop) => {
                let len = zset.len();
                let ranks = rank_range(start, stop, len);
                if self.reverse { len - ranks.end..len - ranks.start } else { ranks }
            }
            Ends::Score(min, max) => self.limit(zset.ranks_by_score(min, max)),
            Ends::Lex(min, max) => self.limit(zset.ranks_by_lex(min, max)),
        }
    }

    /// The part of `ranks` that LIMIT leaves.
    fn limit(&self, ranks: Range<usize>) -> Range<usize> {
        let Ok(offset) = usize::try_from(self.offset) else { return 0..0 };
        let passed = offset.min(ranks.len());
        let left = ranks.len() - passed;
        let taken = usize::try_from(self.count).map_or(left, |count| count.min(left));
        if self.reverse {
            let end = ranks.end - passed;
            end - taken..end
        } else {
            let start = ranks.start + passed;
            start..start + taken
        }
    }
}

#[cfg(test)]
mod tests;
