//! Every operation against a map, both encodings, and Redis's own bytes.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use rand::{SeedableRng, rngs::StdRng};

use super::{Change, LexBound, ScoreBound, ZSet, ZSetLimits};
use crate::{listpack::Listpack, ordered::compare};

/// Small enough for steps to cross both limits all the time.
const TIGHT: ZSetLimits = ZSetLimits { max_listpack_entries: 12, max_listpack_value: 5 };

#[derive(Default)]
struct Model(BTreeMap<Vec<u8>, f64>);

impl Model {
    fn sorted(&self) -> Vec<(Vec<u8>, f64)> {
        let mut sorted: Vec<_> =
            self.0.iter().map(|(member, score)| (member.clone(), *score)).collect();
        sorted.sort_by(|a, b| compare((a.1, &a.0), (b.1, &b.0)));
        sorted
    }
}

fn elements(set: &ZSet) -> Vec<(Vec<u8>, f64)> {
    set.iter().map(|(member, score)| (member.to_vec(), score)).collect()
}

fn check(set: &ZSet, model: &Model) {
    let sorted = model.sorted();
    assert_eq!(set.len(), sorted.len());
    assert_eq!(set.is_empty(), sorted.is_empty());
    assert_eq!(elements(set), sorted);
    let mut backward: Vec<_> =
        set.iter().rev().map(|(member, score)| (member.to_vec(), score)).collect();
    backward.reverse();
    assert_eq!(backward, sorted);
    for (rank, (member, score)) in sorted.iter().enumerate() {
        assert_eq!(set.score(member), Some(*score));
        assert_eq!(set.rank(member), Some((rank, *score)));
        assert_eq!(set.reverse_rank(member), Some((sorted.len() - 1 - rank, *score)));
        let (found, found_score) = set.by_rank(rank).expect("it has that many");
        assert_eq!((&*found, found_score), (&**member, *score));
    }
    assert!(set.by_rank(sorted.len()).is_none());
    if let Some(pack) = set.as_listpack() {
        assert!(ZSet::from_listpack(pack.clone(), &TIGHT).is_some());
    }
    let mut scanned = Vec::new();
    let mut cursor = 0;
    loop {
        cursor = set.scan(cursor, |member, score| scanned.push((member.to_vec(), score)));
        if cursor == 0 {
            break;
        }
    }
    scanned.sort_by(|a, b| compare((a.1, &a.0), (b.1, &b.0)));
    assert_eq!(scanned, sorted);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, f64),
    Add(Vec<u8>, f64),
    Remove(Vec<u8>),
    RemoveByScore(ScoreBound, ScoreBound),
    PopMin(usize),
    PopMax(usize),
    Reserve(usize),
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0u8..40).prop_map(|number| number.to_string().into_bytes()),
        4 => (b'a'..=b'z').prop_map(|letter| vec![letter]),
        1 => Just(Vec::new()),
        1 => Just(b"longer than five".to_vec()),
        1 => Just(b"-7".to_vec()),
        1 => Just(b"007".to_vec()),
    ]
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-8i32..8).prop_map(f64::from),
        2 => (-8i32..8).prop_map(|number| f64::from(number) / 4.0),
        1 => any::<f64>().prop_filter("a score is a number", |score| !score.is_nan()),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(-0.0),
    ]
}

fn score_bound() -> impl Strategy<Value = ScoreBound> {
    (score(), any::<bool>()).prop_map(|(value, exclusive)| ScoreBound { value, exclusive })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (member(), score()).prop_map(|(member, score)| Step::Insert(member, score)),
        3 => (member(), (-4i32..4).prop_map(f64::from))
            .prop_map(|(member, delta)| Step::Add(member, delta)),
        5 => member().prop_map(Step::Remove),
        1 => (score_bound(), score_bound()).prop_map(|(min, max)| Step::RemoveByScore(min, max)),
        1 => (0usize..4).prop_map(Step::PopMin),
        1 => (0usize..4).prop_map(Step::PopMax),
        1 => (0usize..8).prop_map(Step::Reserve),
    ]
}

fn within_scores(score: f64, min: ScoreBound, max: ScoreBound) -> bool {
    let above = if min.exclusive { score > min.value } else { score >= min.value };
    let below = if max.exclusive { score < max.value } else { score <= max.value };
    above && below
}

fn apply(step: Step, set: &mut ZSet, model: &mut Model) {
    match step {
        Step::Insert(member, score) => {
            let want = match model.0.insert(member.clone(), score) {
                None => Change::Added,
                Some(old) if old == score => {
                    model.0.insert(member.clone(), old);
                    Change::Unchanged
                }
                Some(_) => Change::Updated,
            };
            assert_eq!(set.insert(&member, score, &TIGHT), want);
        }
        Step::Add(member, delta) => {
            let mut seen = None;
            set.upsert(&member, &TIGHT, |old| {
                seen = old;
                old.map(|old| old + delta)
            });
            assert_eq!(seen, model.0.get(&member).copied());
            if let Some(score) = model.0.get_mut(&member) {
                *score += delta;
            }
        }
        Step::Remove(member) => assert_eq!(set.remove(&member), model.0.remove(&member)),
        Step::RemoveByScore(min, max) => {
            let want: Vec<_> = model
                .sorted()
                .into_iter()
                .filter(|(_, score)| within_scores(*score, min, max))
                .collect();
            let mut removed = Vec::new();
            let ranks = set.ranks_by_score(min, max);
            let count =
                set.remove_ranks(ranks, |member, score| removed.push((member.to_vec(), score)));
            assert_eq!((count, &removed), (want.len(), &want));
            model.0.retain(|_, score| !within_scores(*score, min, max));
        }
        Step::PopMin(count) | Step::PopMax(count) => {
            let mut want = model.sorted();
            let mut popped = Vec::new();
            let mut push = |member: &[u8], score| popped.push((member.to_vec(), score));
            if matches!(step, Step::PopMin(_)) {
                set.pop_min(count, &mut push);
            } else {
                set.pop_max(count, &mut push);
                want.reverse();
            }
            want.truncate(count);
            assert_eq!(popped, want);
            model.0.retain(|member, _| popped.iter().all(|(gone, _)| gone != member));
        }
        Step::Reserve(additional) => set.reserve(additional, &TIGHT),
    }
}

proptest! {
    #[test]
    fn any_steps_leave_what_they_leave_in_a_map(
        as_tree: bool,
        steps in vec(step(), 0..120),
        scores in vec((score_bound(), score_bound()), 4),
    ) {
        let mut set = ZSet::new(if as_tree { 100 } else { 1 }, 1, &TIGHT);
        let mut model = Model::default();
        for step in steps {
            apply(step, &mut set, &mut model);
            check(&set, &model);
        }
        let sorted = model.sorted();
        for (min, max) in scores {
            let ranks = set.ranks_by_score(min, max);
            let got: Vec<_> = set
                .elements(ranks.clone())
                .map(|(member, score)| (member.to_vec(), score))
                .collect();
            let want: Vec<_> = sorted
                .iter()
                .filter(|(_, score)| within_scores(*score, min, max))
                .cloned()
                .collect();
            prop_assert_eq!(ranks.len(), want.len());
            prop_assert_eq!(got, want);
        }
        for member in model.0.keys().cloned().collect::<Vec<_>>() {
            prop_assert!(set.remove(&member).is_some());
        }
        check(&set, &Model::default());
    }

    #[test]
    fn lex_ranges_are_those_of_a_sorted_vec(
        as_tree: bool,
        members in vec(member(), 0..30),
        bounds in vec((member(), 0u8..4, member(), 0u8..4), 1..6),
    ) {
        let max_listpack_entries = if as_tree { 0 } else { 99 };
        let roomy = ZSetLimits { max_listpack_entries, max_listpack_value: 99 };
        let mut set = ZSet::new(1, 1, &roomy);
        for member in &members {
            set.insert(member, 3.0, &roomy);
        }
        prop_assert_eq!(set.encoding(), if as_tree { "skiplist" } else { "listpack" });
        let mut sorted = members;
        sorted.sort();
        sorted.dedup();
        for (min, min_kind, max, max_kind) in bounds {
            let want: Vec<_> = sorted
                .iter()
                .filter(|member| match min_kind {
                    0 => true,
                    1 => false,
                    2 => **member >= min,
                    _ => **member > min,
                })
                .filter(|member| match max_kind {
                    0 => false,
                    1 => true,
                    2 => **member <= max,
                    _ => **member < max,
                })
                .cloned()
                .collect();
            let bound = |kind, member| match kind {
                0 => LexBound::Min,
                1 => LexBound::Max,
                2 => LexBound::Included(member),
                _ => LexBound::Excluded(member),
            };
            let ranks = set.ranks_by_lex(bound(min_kind, &min), bound(max_kind, &max));
            prop_assert_eq!(ranks.len(), want.len());
            let got: Vec<_> = set.elements(ranks).map(|(member, _)| member.to_vec()).collect();
            prop_assert_eq!(got, want);
        }
    }
}

#[test]
fn the_listpack_is_redis_listpack() {
    // DUMP of this set by Redis 8.2.3 without compression, the string inside.
    let dumped = "a00000002000816502842d696e6605dff902842d322e350581610200018167028433652d3705\
                  800183302e3104816b0293302e33303030303030303030303030303030341481620283312e35\
                  04640105010c01050109010501816802f4000000000000100009816902f40100000000001000\
                  09816602f40000c16ff286230009816302f400008a5d7845630109816a028531652b32310681\
                  640283696e6604ff";
    let mut set = ZSet::new(1, 1, &ZSetLimits::default());
    for (score, member) in [
        (-0.0, "a"),
        (1.5, "b"),
        (1e17, "c"),
        (5.0, "12"),
        (f64::INFINITY, "d"),
        (f64::NEG_INFINITY, "e"),
        (1e16, "f"),
        (3.0e-7, "g"),
        (4_503_599_627_370_496.0, "h"),
        (4_503_599_627_370_497.0, "i"),
        (1e21, "j"),
        (-2.5, "-7"),
        (0.1, ""),
        (0.300_000_000_000_000_04, "k"),
        (5.0, "100"),
        (5.0, "9"),
    ] {
        set.insert(member.as_bytes(), score, &ZSetLimits::default());
    }
    let bytes = set.as_listpack().expect("it is small").as_bytes();
    let want: Vec<u8> = (0..dumped.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&dumped[at..at + 2], 16).expect("it is hexadecimal"))
        .collect();
    assert_eq!(bytes, want);
    assert_eq!(set.score(b"a").map(f64::is_sign_negative), Some(false));
}

#[test]
fn the_limits_decide_the_encoding() {
    let limits = ZSetLimits::default();
    let mut set = ZSet::new(1, 1, &limits);
    for number in 0..128 {
        set.insert(format!("m{number}").as_bytes(), f64::from(number), &limits);
        assert_eq!(set.encoding(), "listpack");
    }
    set.insert(b"m5", 1000.0, &limits);
    assert_eq!(set.encoding(), "listpack");
    set.insert(b"one more", 0.5, &limits);
    assert_eq!(set.encoding(), "skiplist");
    assert_eq!(set.remove_ranks(1..129, |_, _| {}), 128);
    assert_eq!(set.encoding(), "skiplist");

    let mut set = ZSet::new(1, 1, &limits);
    set.insert(&[b'x'; 64], 1.0, &limits);
    assert_eq!(set.encoding(), "listpack");
    set.insert(&[b'x'; 65], 1.0, &limits);
    assert_eq!(set.encoding(), "skiplist");

    assert_eq!(ZSet::new(129, 1, &limits).encoding(), "skiplist");
    assert_eq!(ZSet::new(1, 65, &limits).encoding(), "skiplist");
}

#[test]
fn minus_zero_lives_in_a_tree_alone() {
    let limits = ZSetLimits { max_listpack_entries: 0, ..ZSetLimits::default() };
    let mut set = ZSet::new(1, 1, &limits);
    set.insert(b"a", -0.0, &limits);
    set.insert(b"b", 0.0, &limits);
    assert_eq!(set.insert(b"a", 0.0, &limits), Change::Unchanged);
    assert_eq!(set.score(b"a").map(f64::is_sign_negative), Some(true));
    assert_eq!(set.rank(b"a"), Some((0, 0.0)));
}

#[test]
fn unsound_listpacks_are_refused() {
    let sound = |texts: &[&str]| {
        let mut pack = Listpack::new();
        for text in texts {
            pack.push_back(text.as_bytes());
        }
        ZSet::from_listpack(pack, &TIGHT).is_some()
    };
    assert!(sound(&[]));
    assert!(sound(&["a", "1", "b", "1", "c", "inf"]));
    assert!(!sound(&["a"]));
    assert!(!sound(&["a", "x"]));
    assert!(!sound(&["a", "nan"]));
    assert!(!sound(&["b", "1", "a", "1"]));
    assert!(!sound(&["a", "2", "b", "1"]));
    assert!(!sound(&["a", "1", "a", "2"]));
}

#[test]
fn a_long_listpack_from_outside_becomes_a_tree() {
    let mut pack = Listpack::new();
    for number in 0..13 {
        pack.push_back(format!("m{number:02}").as_bytes());
        pack.push_back(b"7");
    }
    let set = ZSet::from_listpack(pack, &TIGHT).expect("it is sound");
    assert_eq!((set.len(), set.encoding()), (13, "skiplist"));
}

#[test]
fn random_elements_are_elements_and_cover_the_set() {
    let mut rng = StdRng::seed_from_u64(7);
    for entries in [1, 100] {
        let mut set = ZSet::new(entries, 1, &TIGHT);
        assert!(set.random(&mut rng).is_none());
        for number in 0..10 {
            set.insert(&[b'a' + number], f64::from(number), &TIGHT);
        }
        let mut drawn = [0; 10];
        for _ in 0..10_000 {
            let (member, score) = set.random(&mut rng).expect("it has elements");
            assert_eq!(member[0] - b'a', score as u8);
            drawn[score as usize] += 1;
        }
        assert!(drawn.iter().all(|&count| (800..1200).contains(&count)), "{drawn:?}");
        for count in [0, 4, 10, 20] {
            let mut members: Vec<_> =
                set.random_distinct(count, &mut rng).map(|(member, _)| member[0]).collect();
            members.sort_unstable();
            members.dedup();
            assert_eq!(members.len(), count.min(10));
        }
    }
}
