//! ZADD and ZINCRBY: give members scores.
//!
//! Both are one operation, [`add`], under [`Rules`]: the options of ZADD. ZINCRBY is ZADD INCR
//! under another name. All words are checked before the key is looked at, and with INCR there is
//! one element alone, so a command that fails has changed nothing.
//!
//! Source: the Redis documentation; replies and encodings observed on Redis 8.2.3.

use kiln_base::number::parse_f64;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, View,
};
use kiln_data::zset::{Change, ZSet};
use smallvec::SmallVec;

const FLAGS: CommandFlags = CommandFlags::DENYOOM.union(CommandFlags::FAST);

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("ZADD", Arity::at_least(4), zadd)
        .group(Group::SortedSet)
        .flags(FLAGS)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .docs(
            "1.2.0",
            "O(log(N)) for each element, with N elements in the sorted set.",
            "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
            "Add members with scores, or change the scores of members.",
        ),
    CommandSpec::write("ZINCRBY", Arity::exactly(4), zincrby)
        .group(Group::SortedSet)
        .flags(FLAGS)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .docs(
            "1.2.0",
            "O(log(N)) with N elements in the sorted set.",
            "key increment member",
            "Add a number to the score of a member, which is 0 if it is new.",
        ),
];

/// Scores that fit beside the handler before they take an allocation.
const SCORES_INLINE: usize = 16;

/// The options of ZADD, a bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Rules(u8);

impl Rules {
    /// Only new members are added.
    const NX: Self = Self(1);
    /// Only known members are changed.
    const XX: Self = Self(1 << 1);
    /// Known members' scores only grow.
    const GT: Self = Self(1 << 2);
    /// Known members' scores only shrink.
    const LT: Self = Self(1 << 3);
    /// Changed members are counted beside new ones.
    const CH: Self = Self(1 << 4);
    /// The score is added to the present one, and the sum is the reply.
    const INCR: Self = Self(1 << 5);

    fn has(self, rule: Self) -> bool {
        self.0 & rule.0 != 0
    }

    /// The option that `word` names.
    fn parse(word: &[u8]) -> Option<Self> {
        const NAMES: [(&[u8], Rules); 6] = [
            (b"NX", Rules::NX),
            (b"XX", Rules::XX),
            (b"GT", Rules::GT),
            (b"LT", Rules::LT),
            (b"CH", Rules::CH),
            (b"INCR", Rules::INCR),
        ];
        NAMES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, rule)| *rule)
    }

    /// Whether the rules can hold together, for this number of elements.
    fn check(self, elements: usize) -> CommandResult {
        if self.has(Self::NX) && self.has(Self::XX) {
            return Err(CommandError::text(
                "ERR XX and NX options at the same time are not compatible",
            ));
        }
        let one_way = [Self::NX, Self::GT, Self::LT].into_iter().filter(|rule| self.has(*rule));
        if one_way.count() > 1 {
            return Err(CommandError::text(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if self.has(Self::INCR) && elements > 1 {
            return Err(CommandError::text(
                "ERR INCR option supports a single increment-element pair",
            ));
        }
        Ok(())
    }

    /// The score that a member gets whose present one is `old`; `None` if it stays as it is. NaN if
    /// the sum is none.
    fn apply(self, old: Option<f64>, score: f64) -> Option<f64> {
        let Some(old) = old else { return (!self.has(Self::XX)).then_some(score) };
        if self.has(Self::NX) {
            return None;
        }
        let new = if self.has(Self::INCR) { old + score } else { score };
        let refused = (self.has(Self::GT) && new <= old) || (self.has(Self::LT) && new >= old);
        (!refused).then_some(new)
    }
}

/// What [`add`] did.
#[derive(Default)]
struct Added {
    new: usize,
    changed: usize,
    /// The score of the last element, unless the rules refused it.
    score: Option<f64>,
}

fn zadd(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    add_by_words(view, args, Rules::default(), reply)
}

/// An increment that is a word of ZADD is taken for one, as in the reference: a syntax error.
fn zincrby(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    add_by_words(view, args, Rules::INCR, reply)
}

/// Adds to `rules` what the words say, then adds the elements behind them.
fn add_by_words(
    view: &mut View<'_>,
    args: &Args<'_>,
    mut rules: Rules,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let mut first = 2;
    while let Some(rule) = args.try_get(first).and_then(Rules::parse) {
        rules.0 |= rule.0;
        first += 1;
    }
    let elements = args.tail(first);
    if elements.len() == 0 || !elements.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    rules.check(elements.len() / 2)?;
    let added = add(view, args.get(1), rules, elements)?;
    if rules.has(Rules::INCR) {
        match added.score {
            Some(score) => reply.double(score),
            None => reply.null(),
        }
    } else {
        let changed = if rules.has(Rules::CH) { added.changed } else { 0 };
        reply.integer((added.new + changed) as i64);
    }
    Ok(())
}

/// Adds `elements`, score and member in turn, as far as `rules` let them.
///
/// # Errors
///
/// Checked in this order; on error nothing has changed.
/// - [`CommandError::NotAFloat`]: a score is no number.
/// - [`CommandError::WrongType`]: `key` holds something other than a sorted set.
/// - A text: the present score and the increment are infinities of different signs.
fn add(
    view: &mut View<'_>,
    key: &[u8],
    rules: Rules,
    elements: Args<'_>,
) -> Result<Added, CommandError> {
    let scores: SmallVec<[f64; SCORES_INLINE]> = elements
        .iter()
        .step_by(2)
        .map(|score| parse_f64(score).ok_or(CommandError::NotAFloat))
        .collect::<Result<_, _>>()?;
    let limits = &view.settings().zset;
    let mut added = Added::default();
    let zset = if rules.has(Rules::XX) {
        let Some(zset) = view.zset_mut(key)? else { return Ok(added) };
        zset
    } else {
        let first_bytes = elements.get(1).len();
        // A new sorted set takes the first element at least: nothing but XX refuses a new member.
        view.zset_or_insert(key, || ZSet::new(scores.len(), first_bytes, limits))?
    };
    // The reference converts by the number of elements given alone, not by the sum.
    if scores.len() > limits.max_listpack_entries {
        zset.reserve(scores.len(), limits);
    }
    for (member, &score) in elements.iter().skip(1).step_by(2).zip(&scores) {
        let mut new = None;
        let change = zset.upsert(member, limits, |old| {
            new = rules.apply(old, score);
            new.filter(|new| !new.is_nan())
        });
        if new.is_some_and(f64::is_nan) {
            return Err(CommandError::text("ERR resulting score is not a number (NaN)"));
        }
        added.score = new;
        match change {
            Change::Added => added.new += 1,
            Change::Updated => added.changed += 1,
            Change::Unchanged => {}
        }
    }
    let changes = added.new + added.changed;
    if changes > 0 {
        view.changed(key, if rules.has(Rules::INCR) { Event::ZIncr } else { Event::ZAdd });
        view.count_changes(changes as u64 - 1);
    }
    Ok(added)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::Rules;
    use crate::testkit::check;

    #[test]
    fn options_decide_who_gets_a_score() {
        check(&[
            ("ZADD z 1 a 2 b", "(integer) 2"),
            ("ZADD z NX 9 a 3 c", "(integer) 1"),
            ("ZADD z XX CH 5 a 9 new", "(integer) 1"),
            ("ZADD z GT CH 4 a 4 b 0 d", "(integer) 2"),
            ("ZADD z LT CH 4 a 9 b", "(integer) 1"),
            ("ZADD z ch 4 a", "(integer) 0"),
            ("ZADD none XX 1 a", "(integer) 0"),
            ("ZCARD none", "(integer) 0"),
            ("ZMSCORE z a b c d", "1) \"4\"\n2) \"4\"\n3) \"3\"\n4) \"0\""),
        ]);
    }

    #[test]
    fn incr_replies_with_the_sum_or_null() {
        check(&[
            ("ZADD z INCR 1.5 a", "\"1.5\""),
            ("ZADD z INCR 1.5 a", "\"3\""),
            ("ZADD z LT INCR 1 a", "(nil)"),
            ("ZADD z GT INCR 0 a", "(nil)"),
            ("ZADD z NX INCR 1 a", "(nil)"),
            ("ZADD z XX INCR 1 b", "(nil)"),
            ("ZADD none XX INCR 1 b", "(nil)"),
            ("ZINCRBY z -1 a", "\"2\""),
            ("ZINCRBY z 0 a", "\"2\""),
            ("ZINCRBY z inf a", "\"inf\""),
            ("ZINCRBY z -inf a", "(error) ERR resulting score is not a number (NaN)"),
            ("ZSCORE z a", "\"inf\""),
        ]);
    }

    #[test]
    fn errors_come_in_the_reference_order_and_change_nothing() {
        let syntax = "(error) ERR syntax error";
        let not_a_float = "(error) ERR value is not a valid float";
        let one_way = "(error) ERR GT, LT, and/or NX options at the same time are not compatible";
        check(&[
            ("SET s v", "OK"),
            ("ZADD s NX XX GT 1 a 2", syntax),
            ("ZADD s NX", "(error) ERR wrong number of arguments for 'zadd' command"),
            ("ZADD s NX GT CH", syntax),
            (
                "ZADD s NX XX GT 1 a",
                "(error) ERR XX and NX options at the same time are not compatible",
            ),
            ("ZADD s NX GT INCR 1 a 2 b", one_way),
            ("ZADD s GT LT x a", one_way),
            (
                "ZADD s INCR x a 2 b",
                "(error) ERR INCR option supports a single increment-element pair",
            ),
            ("ZADD s 1 a x b", not_a_float),
            ("ZINCRBY s nan a", not_a_float),
            ("ZINCRBY s XX a", syntax),
            (
                "ZINCRBY s 1 a",
                "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            ("ZADD z 1 a x b", not_a_float),
            ("ZCARD z", "(integer) 0"),
        ]);
    }

    /// Whether -0 is kept tells when the set became a tree.
    #[test]
    fn the_first_member_alone_decides_how_a_set_begins() {
        let long = "x".repeat(65);
        check(&[
            (&format!("ZADD a 1 {long} -0 m"), "(integer) 2"),
            ("ZSCORE a m", "\"-0\""),
            (&format!("ZADD b -0 m 1 {long}"), "(integer) 2"),
            ("ZSCORE b m", "\"0\""),
        ]);
    }

    proptest! {
        #[test]
        fn a_refused_score_is_one_that_moves_the_wrong_way(old: f64, score: f64, incr: bool) {
            let mode = if incr { Rules::INCR.0 } else { 0 };
            let new = if incr { old + score } else { score };
            for (rule, moves) in [(Rules::GT, new > old), (Rules::LT, new < old)] {
                if !new.is_nan() && !old.is_nan() {
                    let got = Rules(mode | rule.0).apply(Some(old), score);
                    prop_assert_eq!(got, moves.then_some(new));
                }
            }
        }
    }
}
