//! SINTER, SUNION and SDIFF, their STORE forms, and SINTERCARD.
//!
//! A missing set is empty. All keys are looked at, in order, before anything else, so a key of
//! another type is an error even where the result would be empty without it.
//!
//! Intersections walk the smallest set. Differences take one of two ways, as in Redis, for the one
//! taken decides the encoding of what SDIFFSTORE stores: see [`Difference`].
//!
//! Source: the Redis documentation; replies, events and encodings observed on Redis 8.2.3.

use kiln_base::number::{INTEGER_BYTES_MAX, parse_i64};
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, Object, ReadHandler, ReplyWriter, Ttl, View, WriteHandler,
};
use kiln_data::listpack::Value;
use kiln_data::set::{Set, SetLimits};
use smallvec::SmallVec;

use crate::element::{ReplyElement, num_keys};

pub(super) const COMMANDS: &[CommandSpec] = &[
    read("SINTER", sinter, INTER_COST, "Return the members that several sets have in common."),
    store("SINTERSTORE", sinterstore, INTER_COST, "Store what several sets have in common."),
    read("SUNION", sunion, ALL_COST, "Return the members that any of several sets has."),
    store("SUNIONSTORE", sunionstore, ALL_COST, "Store the members that any of several sets has."),
    read("SDIFF", sdiff, ALL_COST, "Return the members of the first set that no other one has."),
    store("SDIFFSTORE", sdiffstore, ALL_COST, "Store the members of the first set alone."),
    CommandSpec::read("SINTERCARD", Arity::at_least(3), sintercard)
        .group(Group::Set)
        .flags(CommandFlags::MOVABLEKEYS)
        .keys(&[KeySpec::keynum(1, READS)])
        .docs(
            "7.0.0",
            INTER_COST,
            "numkeys key [key ...] [LIMIT limit]",
            "Count the members that several sets have in common.",
        ),
];

const READS: KeyFlags = KeyFlags::RO.union(KeyFlags::ACCESS);
const SOURCES: &[KeySpec] = &[KeySpec::range(1, -1, 1, READS)];
const TARGET_AND_SOURCES: &[KeySpec] =
    &[KeySpec::at(1, KeyFlags::OW.union(KeyFlags::UPDATE)), KeySpec::range(2, -1, 1, READS)];

const INTER_COST: &str = "O(N*M) with N members in the smallest of M sets.";
const ALL_COST: &str = "O(N) with N members in all sets together.";

const fn read(
    name: &'static str,
    handler: ReadHandler,
    complexity: &'static str,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::read(name, Arity::at_least(2), handler).group(Group::Set).keys(SOURCES).docs(
        "1.0.0",
        complexity,
        "key [key ...]",
        summary,
    )
}

const fn store(
    name: &'static str,
    handler: WriteHandler,
    complexity: &'static str,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::write(name, Arity::at_least(3), handler)
        .group(Group::Set)
        .flags(CommandFlags::DENYOOM)
        .keys(TARGET_AND_SOURCES)
        .docs("1.0.0", complexity, "destination key [key ...]", summary)
}

/// The sets of a command in the order of its keys; `None` for a missing one.
type Sets<'v> = SmallVec<[Option<&'v Set>; 8]>;

fn sets<'v>(view: &'v View<'_>, keys: Args<'_>) -> Result<Sets<'v>, CommandError> {
    keys.iter().map(|key| Ok(view.set(key)?)).collect()
}

fn sinter(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let sets = sets(view, args.tail(1))?;
    let deferred = reply.deferred();
    let mut count = 0;
    intersect(&sets, |member| {
        reply.element(member);
        count += 1;
        true
    });
    reply.finish_set(deferred, count);
    Ok(())
}

fn sintercard(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let count = num_keys(args, 1)?;
    if count > args.len() - 2 {
        return Err(CommandError::text("ERR Number of keys can't be greater than number of args"));
    }
    let keys = 2..2 + count;
    let mut limit = 0;
    let mut at = keys.end;
    while at < args.len() {
        if !args.get(at).eq_ignore_ascii_case(b"LIMIT") || at + 1 == args.len() {
            return Err(CommandError::Syntax);
        }
        let number = parse_i64(args.get(at + 1)).and_then(|limit| usize::try_from(limit).ok());
        limit = number.ok_or(CommandError::text("ERR LIMIT can't be negative"))?;
        at += 2;
    }
    let sets: Result<Sets<'_>, CommandError> =
        keys.map(|index| Ok(view.set(args.get(index))?)).collect();
    let mut found = 0;
    intersect(&sets?, |_| {
        found += 1;
        found != limit // Never equal to 0, which is no limit.
    });
    reply.integer(found as i64);
    Ok(())
}

fn sunion(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let sets = sets(view, args.tail(1))?;
    if let [only] = sets[..] {
        reply_members(only, reply);
        return Ok(());
    }
    let limits = &view.settings().set;
    // Unlike a result that is stored, this one need not begin small.
    let all_ints = sets.iter().flatten().all(|set| set.as_intset().is_some());
    let mut result = if all_ints { Set::new() } else { Set::for_members(b"", usize::MAX, limits) };
    sets.iter().flatten().for_each(|set| add_all(&mut result, set, limits));
    reply_members(Some(&result), reply);
    Ok(())
}

fn sdiff(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let sets = sets(view, args.tail(1))?;
    let Some(difference) = Difference::of(&sets) else {
        reply.set(0);
        return Ok(());
    };
    if difference.lookups_pay() {
        let deferred = reply.deferred();
        let mut count = 0;
        difference.for_each(|member| {
            reply.element(member);
            count += 1;
        });
        reply.finish_set(deferred, count);
    } else {
        reply_members(Some(&difference.to_set(&view.settings().set)), reply);
    }
    Ok(())
}

fn reply_members(set: Option<&Set>, reply: &mut ReplyWriter<'_>) {
    reply.set(set.map_or(0, Set::len));
    set.into_iter().flatten().for_each(|member| reply.element(member));
}

fn sinterstore(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let limits = &view.settings().set;
    let result = intersection(&sets(view, args.tail(2))?, limits);
    put(view, args.get(1), result, Event::SInterStore, reply);
    Ok(())
}

fn sunionstore(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let limits = &view.settings().set;
    let result = union(&sets(view, args.tail(2))?, limits);
    put(view, args.get(1), result, Event::SUnionStore, reply);
    Ok(())
}

fn sdiffstore(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let limits = &view.settings().set;
    let result = {
        let difference = Difference::of(&sets(view, args.tail(2))?);
        difference.map_or_else(Set::new, |difference| difference.to_set(limits))
    };
    put(view, args.get(1), result, Event::SDiffStore, reply);
    Ok(())
}

/// Stores a result under `key`, whatever is there; an empty one removes the key. Replies with the
/// number of members.
fn put(view: &mut View<'_>, key: &[u8], set: Set, event: Event, reply: &mut ReplyWriter<'_>) {
    let count = set.len();
    if count > 0 {
        view.set_object(key, Object::Set(set), Ttl::Clear);
        view.changed(key, event);
    } else if view.delete(key) {
        view.changed(key, Event::Del);
    }
    reply.integer(count as i64);
}

/// Calls `each` with every member that all sets have, until it returns false.
fn intersect<'v>(sets: &[Option<&'v Set>], mut each: impl FnMut(Value<'v>) -> bool) {
    let Some(mut sets) = sets.iter().copied().collect::<Option<SmallVec<[&Set; 8]>>>() else {
        return; // One of them is missing.
    };
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return };
    for member in *smallest {
        if others.iter().all(|set| set.contains_value(member)) && !each(member) {
            return;
        }
    }
}

fn intersection(sets: &[Option<&Set>], limits: &SetLimits) -> Set {
    // The encoding begins as the smallest set's, but never as a table.
    let smallest = sets.iter().flatten().min_by_key(|set| set.len());
    let mut result = match smallest {
        Some(set) if set.as_listpack().is_some() => Set::for_members(b"", 0, limits),
        _ => Set::new(),
    };
    let mut scratch = [0; INTEGER_BYTES_MAX];
    intersect(sets, |member| result.add(member.text(&mut scratch), limits));
    result.prefer_intset(limits);
    // From a table, more integers than an intset may have become a listpack if that may have them.
    let from_table = smallest.is_some_and(|set| set.encoding() == "hashtable");
    if from_table && result.encoding() == "hashtable" && result.len() <= limits.max_listpack_entries
    {
        let mut small = Set::for_members(b"", 0, limits);
        for member in &result {
            small.add(member.text(&mut scratch), limits);
        }
        return small;
    }
    result
}

fn union(sets: &[Option<&Set>], limits: &SetLimits) -> Set {
    let mut result = Set::new();
    sets.iter().flatten().for_each(|set| add_all(&mut result, set, limits));
    result
}

/// The members of the first set that no other one has: one that may have any.
///
/// Either each member of the first set is looked for in the others, or all of the first set are
/// taken and those of the others removed. The first way costs a lookup per member and set, the
/// second a change per member of any set; a lookup counts half.
struct Difference<'v> {
    first: &'v Set,
    /// The largest first: it is the likeliest to have a member and so to end the search.
    others: SmallVec<[&'v Set; 8]>,
}

impl<'v> Difference<'v> {
    fn of(sets: &[Option<&'v Set>]) -> Option<Self> {
        let (first, others) = sets.split_first()?;
        let first = (*first)?;
        let mut others: SmallVec<[&Set; 8]> = others.iter().flatten().copied().collect();
        others.sort_by_key(|set| std::cmp::Reverse(set.len()));
        let minus_itself = others.iter().any(|set| std::ptr::eq(*set, first));
        (!minus_itself).then_some(Self { first, others })
    }

    fn lookups_pay(&self) -> bool {
        let lookups = self.first.len() * (self.others.len() + 1) / 2;
        let changes = self.first.len() + self.others.iter().map(|set| set.len()).sum::<usize>();
        lookups <= changes
    }

    fn for_each(&self, each: impl FnMut(Value<'v>)) {
        let only_there =
            |member: &Value<'_>| !self.others.iter().any(|set| set.contains_value(*member));
        self.first.iter().filter(only_there).for_each(each);
    }

    /// The difference as a set of its own, in the encoding that Redis's way to it leaves.
    fn to_set(&self, limits: &SetLimits) -> Set {
        let mut result = Set::new();
        let mut scratch = [0; INTEGER_BYTES_MAX];
        if self.lookups_pay() {
            self.for_each(|member| {
                result.add(member.text(&mut scratch), limits);
            });
            return result;
        }
        add_all(&mut result, self.first, limits);
        for member in self.others.iter().flat_map(|set| set.iter()) {
            if result.is_empty() {
                break;
            }
            result.remove(member.text(&mut scratch));
        }
        result
    }
}

fn add_all(result: &mut Set, set: &Set, limits: &SetLimits) {
    let mut scratch = [0; INTEGER_BYTES_MAX];
    for member in set {
        result.add(member.text(&mut scratch), limits);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kiln_data::set::{Set, SetLimits};
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::{Strategy, prop_assert_eq, proptest};

    use super::{Difference, intersection, union};
    use crate::testkit::check;

    type Model = BTreeSet<String>;

    /// Sets of integers and of texts, small ones and ones beyond the limits.
    fn models() -> impl Strategy<Value = Vec<Model>> {
        let member = (0..24_u8, 0..4_u8).prop_map(|(number, kind)| match kind {
            0 => format!("member {number}"),
            _ => number.to_string(),
        });
        vec(btree_set(member, 0..20), 1..5)
    }

    const LIMITS: SetLimits =
        SetLimits { max_intset_entries: 8, max_listpack_entries: 6, max_listpack_value: 8 };

    fn build(model: &Model) -> Set {
        let mut set = Set::new();
        for member in model {
            set.add(member.as_bytes(), &LIMITS);
        }
        set
    }

    fn read(set: &Set) -> Model {
        set.iter().map(|member| String::from_utf8(member.to_vec()).expect("ASCII")).collect()
    }

    proptest! {
        #[test]
        fn results_are_those_of_ordered_sets(models in models()) {
            let built: Vec<Set> = models.iter().map(build).collect();
            let sets: Vec<Option<&Set>> =
                built.iter().map(|set| (!set.is_empty()).then_some(set)).collect();
            let fold = |join: fn(&Model, &Model) -> Model| {
                models[1..].iter().fold(models[0].clone(), |left, right| join(&left, right))
            };
            prop_assert_eq!(read(&intersection(&sets, &LIMITS)), fold(|a, b| a & b));
            prop_assert_eq!(read(&union(&sets, &LIMITS)), fold(|a, b| a | b));
            let difference = Difference::of(&sets);
            let stored = difference.as_ref().map_or_else(Set::new, |some| some.to_set(&LIMITS));
            let mut walked = Set::new();
            if let Some(difference) = &difference {
                difference.for_each(|member| {
                    walked.add(&member.to_vec(), &LIMITS);
                });
            }
            prop_assert_eq!(read(&stored), fold(|a, b| a - b));
            prop_assert_eq!(read(&walked), fold(|a, b| a - b));
        }
    }

    const WRONG_TYPE: &str =
        "(error) WRONGTYPE Operation against a key holding the wrong kind of value";

    #[test]
    fn a_missing_set_is_empty_but_types_are_checked_first() {
        check(&[
            ("SADD a 1 2 3", "(integer) 3"),
            ("SINTER a none", "(empty array)"),
            ("SDIFF none a", "(empty array)"),
            ("SUNION none a", "1) \"1\"\n2) \"2\"\n3) \"3\""),
            ("SET s v", "OK"),
            ("SINTER none s", WRONG_TYPE),
            ("SUNION none s", WRONG_TYPE),
            ("SDIFF none s", WRONG_TYPE),
            ("SINTERCARD 2 none s", WRONG_TYPE),
            ("SINTERSTORE a none s", WRONG_TYPE),
            ("SCARD a", "(integer) 3"),
        ]);
    }

    #[test]
    fn a_result_replaces_what_was_there() {
        check(&[
            ("SADD a 1 2 3", "(integer) 3"),
            ("SADD b 2 3 4", "(integer) 3"),
            ("SET d v EX 100", "OK"),
            ("SINTERSTORE d a b", "(integer) 2"),
            ("SMEMBERS d", "1) \"2\"\n2) \"3\""),
            ("SUNIONSTORE d a b", "(integer) 4"),
            ("SDIFFSTORE a a b", "(integer) 1"),
            ("SMEMBERS a", "1) \"1\""),
            ("SINTERSTORE d a b", "(integer) 0"),
            ("GET d", "(nil)"),
        ]);
    }

    #[test]
    fn what_is_stored_has_the_encoding_that_redis_gives_it() {
        check(&[
            ("SADD ints 1 2 3", "(integer) 3"),
            ("SADD texts a b 1 2", "(integer) 4"),
            ("SINTERSTORE d ints texts", "(integer) 2"),
            ("OBJECT ENCODING d", "\"intset\""),
            ("SINTERSTORE d texts", "(integer) 4"),
            ("OBJECT ENCODING d", "\"listpack\""),
            ("CONFIG SET set-max-listpack-entries 1", "OK"),
            ("SADD a 1 2 x", "(integer) 3"),
            ("OBJECT ENCODING a", "\"hashtable\""),
            ("SINTERSTORE d a ints", "(integer) 2"),
            ("OBJECT ENCODING d", "\"intset\""),
            ("CONFIG SET set-max-listpack-entries 128", "OK"),
            ("SDIFFSTORE d ints", "(integer) 3"),
            ("OBJECT ENCODING d", "\"intset\""),
            ("SUNIONSTORE d ints texts", "(integer) 5"),
            ("OBJECT ENCODING d", "\"listpack\""),
        ]);
    }

    #[test]
    fn sintercard_counts_up_to_its_limit() {
        check(&[
            ("SADD a 1 2 3", "(integer) 3"),
            ("SADD b 1 2 3 4", "(integer) 4"),
            ("SINTERCARD 2 a b", "(integer) 3"),
            ("SINTERCARD 2 a b LIMIT 0", "(integer) 3"),
            ("SINTERCARD 2 a b LIMIT 2", "(integer) 2"),
            ("SINTERCARD 1 a LIMIT 1 LIMIT 2", "(integer) 2"),
            ("SINTERCARD 0 a", "(error) ERR numkeys should be greater than 0"),
            ("SINTERCARD 2 a", "(error) ERR Number of keys can't be greater than number of args"),
            ("SINTERCARD 1 a LIMIT", "(error) ERR syntax error"),
            ("SINTERCARD 1 a LIMIT x", "(error) ERR LIMIT can't be negative"),
        ]);
    }
}
