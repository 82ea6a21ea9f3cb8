//! ZUNION, ZINTER, ZDIFF, their STORE forms, and ZINTERCARD: several sorted sets become one.
//!
//! Inputs may be sets too, whose members have score 1. Union and intersection multiply each score
//! by its input's weight and join those of one member by sum, minimum or maximum.
//!
//! Sums of floats depend on their order, so it is the reference's: smallest input first, the first
//! named among equals. So are the rules for what is no number, each observed there:
//! - `inf` times 0 counts as 0 in a union, and in the first input of an intersection;
//! - a sum that is not a number (`inf` and `-inf`, or such a product) is 0;
//! - such a product is neither a minimum nor a maximum.
//!
//! A result is sorted once all of it is there. A stored one replaces the key at the end, so that
//! the destination may be an input.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use kiln_base::number::parse_f64;
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, EntryRef, Event, Group,
    KeyFlags, KeySpec, Object, ReadHandler, ReplyWriter, Ttl, Value, View, WriteHandler,
};
use kiln_data::listpack;
use kiln_data::set::Set;
use kiln_data::zset::{MemberRef, ZSet};
use smallvec::SmallVec;

use super::elements::write_elements;

const SOURCE_FLAGS: KeyFlags = KeyFlags::RO.union(KeyFlags::ACCESS);
const UNION_COST: &str = "O(N+M*log(M)) with N elements in all and M in the result.";
const INTER_COST: &str = "O(N*K+M*log(M)) with N elements in the smallest of K inputs, M left.";
const DIFF_COST: &str = "O(N*K+M*log(M)) with N elements in the first of K inputs, M left.";

pub(super) const COMMANDS: &[CommandSpec] = &[
    read_spec("ZUNION", zunion).docs(
        "6.2.0",
        UNION_COST,
        "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] \
         [WITHSCORES]",
        "Give the members of any of the inputs.",
    ),
    read_spec("ZINTER", zinter).docs(
        "6.2.0",
        INTER_COST,
        "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] \
         [WITHSCORES]",
        "Give the members that all inputs have.",
    ),
    read_spec("ZDIFF", zdiff).docs(
        "6.2.0",
        DIFF_COST,
        "numkeys key [key ...] [WITHSCORES]",
        "Give the members of the first input that no other has.",
    ),
    read_spec("ZINTERCARD", zintercard).docs(
        "7.0.0",
        "O(N*K) with N elements in the smallest of K inputs.",
        "numkeys key [key ...] [LIMIT limit]",
        "Count the members that all inputs have.",
    ),
    store_spec("ZUNIONSTORE", zunionstore).docs(
        "2.0.0",
        UNION_COST,
        "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] \
         [AGGREGATE <SUM | MIN | MAX>]",
        "Store the members of any of the inputs.",
    ),
    store_spec("ZINTERSTORE", zinterstore).docs(
        "2.0.0",
        INTER_COST,
        "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] \
         [AGGREGATE <SUM | MIN | MAX>]",
        "Store the members that all inputs have.",
    ),
    store_spec("ZDIFFSTORE", zdiffstore).docs(
        "6.2.0",
        DIFF_COST,
        "destination numkeys key [key ...]",
        "Store the members of the first input that no other has.",
    ),
];

const READ_KEYS: &[KeySpec] = &[KeySpec::keynum(1, SOURCE_FLAGS)];
const STORE_KEYS: &[KeySpec] =
    &[KeySpec::at(1, KeyFlags::OW.union(KeyFlags::UPDATE)), KeySpec::keynum(2, SOURCE_FLAGS)];

const fn read_spec(name: &'static str, handler: ReadHandler) -> CommandSpec {
    CommandSpec::read(name, Arity::at_least(3), handler)
        .group(Group::SortedSet)
        .flags(CommandFlags::MOVABLEKEYS)
        .keys(READ_KEYS)
}

const fn store_spec(name: &'static str, handler: WriteHandler) -> CommandSpec {
    CommandSpec::write(name, Arity::at_least(4), handler)
        .group(Group::SortedSet)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::MOVABLEKEYS))
        .keys(STORE_KEYS)
}

/// How inputs are combined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

/// How the scores of one member are joined.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// Joins one more score; `present` is a number, `more` may be none.
    fn join(self, present: f64, more: f64) -> f64 {
        match self {
            Self::Sum => zero_if_nan(present + more),
            Self::Min => {
                if more < present {
                    more
                } else {
                    present
                }
            }
            Self::Max => {
                if more > present {
                    more
                } else {
                    present
                }
            }
        }
    }
}

fn zero_if_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

fn zunion(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    read(view, args, Operation::Union, "zunion", reply)
}

fn zinter(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    read(view, args, Operation::Inter, "zinter", reply)
}

fn zdiff(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    read(view, args, Operation::Diff, "zdiff", reply)
}

fn zintercard(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let keys = keys_of(args, 1, "zintercard")?;
    let mut inputs = Input::all(view, args, keys.clone())?;
    let mut limit = 0;
    let options = args.tail(keys.end);
    for at in (0..options.len()).step_by(2) {
        if !options.is_word(at, "LIMIT") || at + 1 == options.len() {
            return Err(CommandError::Syntax);
        }
        limit =
            options.count(at + 1).map_err(|_| CommandError::text("ERR LIMIT can't be negative"))?;
    }
    inputs.sort_by_key(Input::len);
    let most = if limit == 0 { usize::MAX } else { limit };
    let mut count = 0;
    inputs[0].for_each_while(|member, _| {
        count += usize::from(inputs[1..].iter().all(|input| input.score(&member).is_some()));
        count < most
    });
    reply.integer(count as i64);
    Ok(())
}

fn zunionstore(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    combine_and_store(view, args, Operation::Union, "zunionstore", Event::ZUnionStore, reply)
}

fn zinterstore(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    combine_and_store(view, args, Operation::Inter, "zinterstore", Event::ZInterStore, reply)
}

fn zdiffstore(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    combine_and_store(view, args, Operation::Diff, "zdiffstore", Event::ZDiffStore, reply)
}

fn read(
    view: &View<'_>,
    args: &Args<'_>,
    operation: Operation,
    name: &str,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let keys = keys_of(args, 1, name)?;
    let mut inputs = Input::all(view, args, keys.clone())?;
    let options = Options::parse(&args.tail(keys.end), operation, true, &mut inputs)?;
    let result = combine(inputs, operation, options.aggregate);
    write_elements(reply, result.into_iter(), options.with_scores);
    Ok(())
}

fn combine_and_store(
    view: &mut View<'_>,
    args: &Args<'_>,
    operation: Operation,
    name: &str,
    event: Event,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let keys = keys_of(args, 2, name)?;
    let mut inputs = Input::all(view, args, keys.clone())?;
    let options = Options::parse(&args.tail(keys.end), operation, false, &mut inputs)?;
    let elements = combine(inputs, operation, options.aggregate);
    let limits = &view.settings().zset;
    let longest = elements.iter().map(|(member, _)| member.len()).max().unwrap_or(0);
    let mut result = ZSet::new(elements.len(), longest, limits);
    for (member, score) in elements {
        result.insert(&member, score, limits);
    }
    store(view, args.get(1), result, event, reply);
    Ok(())
}

/// Makes `key` hold `result`, or nothing if that is empty, and replies with its length.
pub(super) fn store(
    view: &mut View<'_>,
    key: &[u8],
    result: ZSet,
    event: Event,
    reply: &mut ReplyWriter<'_>,
) {
    let len = result.len();
    if len > 0 {
        view.set_object(key, Object::SortedSet(result), Ttl::Clear);
        view.changed(key, event);
    } else if view.delete(key) {
        view.changed(key, Event::Del);
    }
    reply.integer(len as i64);
}

/// The indexes of the words that are inputs, whose number is word `at`.
fn keys_of(args: &Args<'_>, at: usize, name: &str) -> Result<Range<usize>, CommandError> {
    let count = args.int(at)?;
    if count < 1 {
        let text = format!("ERR at least 1 input key is needed for '{name}' command");
        return Err(CommandError::owned(text));
    }
    let first = at + 1;
    if count > (args.len() - first) as i64 {
        return Err(CommandError::Syntax);
    }
    Ok(first..first + count as usize)
}

/// A sorted set or a set, with its weight.
struct Input<'v> {
    source: Source<'v>,
    weight: f64,
}

#[derive(Clone, Copy)]
enum Source<'v> {
    Missing,
    Set(&'v Set),
    SortedSet(&'v ZSet),
}

/// Inputs that take no allocation.
const INPUTS_INLINE: usize = 4;

type Inputs<'v> = SmallVec<[Input<'v>; INPUTS_INLINE]>;

impl<'v> Input<'v> {
    fn all(
        view: &'v View<'_>,
        args: &Args<'_>,
        keys: Range<usize>,
    ) -> Result<Inputs<'v>, CommandError> {
        let source = |key| match view.get(key).map(EntryRef::value) {
            None => Ok(Source::Missing),
            Some(Value::Object(Object::Set(set))) => Ok(Source::Set(set)),
            Some(Value::Object(Object::SortedSet(zset))) => Ok(Source::SortedSet(zset)),
            Some(_) => Err(CommandError::WrongType),
        };
        keys.map(|key| Ok(Input { source: source(args.get(key))?, weight: 1.0 })).collect()
    }

    fn len(&self) -> usize {
        match self.source {
            Source::Missing => 0,
            Source::Set(set) => set.len(),
            Source::SortedSet(zset) => zset.len(),
        }
    }

    /// The score of `member`, without the weight.
    fn score(&self, member: &[u8]) -> Option<f64> {
        match self.source {
            Source::Missing => None,
            Source::Set(set) => set.contains(member).then_some(1.0),
            Source::SortedSet(zset) => zset.score(member),
        }
    }

    /// Calls `visit` with each member and its score, without the weight, until it returns `false`.
    fn for_each_while(&self, mut visit: impl FnMut(MemberRef<'v>, f64) -> bool) {
        match self.source {
            Source::Missing => true,
            Source::Set(set) => set.iter().all(|member| {
                let member = match member {
                    listpack::Value::Bytes(bytes) => MemberRef::from(bytes),
                    listpack::Value::Int(number) => MemberRef::from(number),
                };
                visit(member, 1.0)
            }),
            Source::SortedSet(zset) => zset.iter().all(|(member, score)| visit(member, score)),
        };
    }

    fn for_each(&self, mut visit: impl FnMut(MemberRef<'v>, f64)) {
        self.for_each_while(|member, score| {
            visit(member, score);
            true
        });
    }
}

/// What is said behind the keys, but the weights, which stand with their inputs.
struct Options {
    aggregate: Aggregate,
    with_scores: bool,
}

impl Options {
    fn parse(
        words: &Args<'_>,
        operation: Operation,
        replies: bool,
        inputs: &mut [Input<'_>],
    ) -> Result<Self, CommandError> {
        let mut options = Self { aggregate: Aggregate::Sum, with_scores: false };
        let aggregates = operation != Operation::Diff;
        let mut at = 0;
        while at < words.len() {
            let left = words.len() - at - 1;
            if aggregates && left >= inputs.len() && words.is_word(at, "WEIGHTS") {
                for input in &mut *inputs {
                    at += 1;
                    input.weight = parse_f64(words.get(at))
                        .ok_or(CommandError::text("ERR weight value is not a float"))?;
                }
            } else if aggregates && left >= 1 && words.is_word(at, "AGGREGATE") {
                at += 1;
                options.aggregate = if words.is_word(at, "SUM") {
                    Aggregate::Sum
                } else if words.is_word(at, "MIN") {
                    Aggregate::Min
                } else if words.is_word(at, "MAX") {
                    Aggregate::Max
                } else {
                    return Err(CommandError::Syntax);
                };
            } else if replies && words.is_word(at, "WITHSCORES") {
                options.with_scores = true;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

type Elements<'v> = Vec<(MemberRef<'v>, f64)>;

/// The elements of the result, in order.
fn combine(mut inputs: Inputs<'_>, operation: Operation, aggregate: Aggregate) -> Elements<'_> {
    if operation != Operation::Diff {
        inputs.sort_by_key(Input::len); // Stable: see the header.
    }
    let mut elements = match operation {
        Operation::Union => union(&inputs, aggregate),
        Operation::Inter => inter(&inputs, aggregate),
        Operation::Diff => diff(&inputs),
    };
    elements.sort_unstable_by(|(a, a_score), (b, b_score)| {
        let scores = a_score.partial_cmp(b_score).expect("no score of a result is NaN");
        scores.then_with(|| a.cmp(b))
    });
    elements
}

fn union<'v>(inputs: &[Input<'v>], aggregate: Aggregate) -> Elements<'v> {
    let longest = inputs.last().map_or(0, Input::len);
    let mut scores: HashMap<Member<'v>, f64> = HashMap::with_capacity(longest);
    for input in inputs {
        input.for_each(|member, score| {
            let score = zero_if_nan(input.weight * score);
            match scores.entry(Member(member)) {
                Entry::Occupied(mut found) => {
                    let present = *found.get();
                    found.insert(aggregate.join(present, score));
                }
                Entry::Vacant(vacant) => {
                    vacant.insert(score);
                }
            }
        });
    }
    scores.into_iter().map(|(member, score)| (member.0, score)).collect()
}

fn inter<'v>(inputs: &[Input<'v>], aggregate: Aggregate) -> Elements<'v> {
    let (first, others) = inputs.split_first().expect("there is at least one key");
    let mut elements = Vec::new();
    first.for_each(|member, score| {
        let first = zero_if_nan(first.weight * score);
        let joined = others.iter().try_fold(first, |present, input| {
            let score = input.score(&member)?;
            Some(aggregate.join(present, input.weight * score))
        });
        elements.extend(joined.map(|score| (member, score)));
    });
    elements
}

fn diff<'v>(inputs: &[Input<'v>]) -> Elements<'v> {
    let (first, others) = inputs.split_first().expect("there is at least one key");
    let mut elements = Vec::new();
    first.for_each(|member, score| {
        if others.iter().all(|input| input.score(&member).is_none()) {
            elements.push((member, score));
        }
    });
    elements
}

/// A member as a key of a map.
struct Member<'v>(MemberRef<'v>);

impl PartialEq for Member<'_> {
    fn eq(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl Eq for Member<'_> {}

impl Hash for Member<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[cfg(test)]
mod tests;
