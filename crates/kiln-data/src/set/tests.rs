//! Every operation against a `BTreeSet`, under limits small enough to pass all encodings;
//! encodings as Redis 8.2.3 reports them.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::{DuplicateMember, Set, SetLimits};
use crate::listpack::Listpack;

const SMALL: SetLimits =
    SetLimits { max_intset_entries: 8, max_listpack_entries: 6, max_listpack_value: 10 };

fn of(members: &[&str], limits: &SetLimits) -> Set {
    let mut set = Set::for_members(members[0].as_bytes(), members.len(), limits);
    for member in members {
        set.add(member.as_bytes(), limits);
    }
    set
}

fn numbers(count: usize) -> Vec<String> {
    (1..=count).map(|number| number.to_string()).collect()
}

/// The encoding after SADD of all `members` at once and then of `more`.
fn encoding(members: &[String], more: &[&str]) -> &'static str {
    let limits = SetLimits::default();
    let mut set = of(&members.iter().map(String::as_str).collect::<Vec<_>>(), &limits);
    for member in more {
        set.make_room(1, &limits);
        set.add(member.as_bytes(), &limits);
    }
    set.encoding()
}

#[test]
fn a_set_fits_a_keyspace_entry() {
    assert_eq!(size_of::<Set>(), 16);
}

#[test]
fn encodings_are_redis_encodings() {
    assert_eq!(encoding(&numbers(3), &[]), "intset");
    assert_eq!(encoding(&numbers(3), &["x"]), "listpack");
    assert_eq!(encoding(&numbers(3), &[&"x".repeat(65)]), "hashtable");
    assert_eq!(encoding(&numbers(512), &[]), "intset");
    assert_eq!(encoding(&numbers(512), &["513"]), "hashtable");
    assert_eq!(encoding(&numbers(600), &[]), "hashtable");
    assert_eq!(encoding(&numbers(127), &["x"]), "listpack");
    assert_eq!(encoding(&numbers(128), &["x"]), "hashtable");
    assert_eq!(encoding(&["x".into()], &["1", "2"]), "listpack");
    assert_eq!(encoding(&vec!["a".into(); 128], &[]), "listpack");
    assert_eq!(
        encoding(&vec!["a".into(); 200], &[]),
        "hashtable",
        "arguments count, repeated or not"
    );
}

#[test]
fn a_listpack_of_integers_can_become_an_intset() {
    let mut set = of(&["x", "3", "1"], &SMALL);
    set.prefer_intset(&SMALL);
    assert_eq!(set.encoding(), "listpack");
    set.remove(b"x");
    set.prefer_intset(&SMALL);
    assert_eq!(set.as_intset().map(|ints| ints.iter().collect()), Some(vec![1, 3]));
}

#[test]
fn a_listpack_from_elsewhere_has_no_member_twice() {
    let pack = |members: &[&str]| {
        let mut pack = Listpack::new();
        for member in members {
            pack.push_back(member.as_bytes());
        }
        Set::from_listpack(pack, &SMALL).map(|set| set.encoding())
    };
    assert_eq!(pack(&["a", "1", "b"]), Ok("listpack"));
    assert_eq!(pack(&["a", "1", "b", "1"]), Err(DuplicateMember));
    assert_eq!(pack(&["a", "b", "c", "d", "e", "f", "g"]), Ok("hashtable"));
    assert_eq!(pack(&["a", "longer than ten"]), Ok("hashtable"));
}

#[test]
fn draws_are_even_in_every_encoding() {
    let mut rng = StdRng::seed_from_u64(42);
    let limits = SetLimits::default();
    let [ints, pack, table] = [
        of(&["1", "2", "3", "4"], &limits),
        of(&["1", "2", "c", "d"], &limits),
        of(&["1", "2", "c", &"d".repeat(100)], &limits),
    ];
    for set in [ints, pack, table] {
        let mut drawn = std::collections::HashMap::<Vec<u8>, u32>::new();
        set.sample(&mut rng, 4_000, |value| {
            *drawn.entry(value.to_vec()).or_default() += 1;
        });
        for _ in 0..4_000 {
            let value = set.random(&mut rng).unwrap().to_vec();
            *drawn.entry(value).or_default() += 1;
            set.sample_distinct(&mut rng, 1, |value| {
                *drawn.entry(value.to_vec()).or_default() += 1;
            });
        }
        assert_eq!(drawn.len(), 4);
        assert!(drawn.values().all(|times| (2_700..3_300).contains(times)), "{drawn:?}");
    }
}

#[test]
fn distinct_draws_are_distinct_members() {
    let mut rng = StdRng::seed_from_u64(1);
    let set = of(&numbers(1_000).iter().map(String::as_str).collect::<Vec<_>>(), &SMALL);
    for count in [0, 1, 10, 249, 250, 999, 1_000, 2_000] {
        let mut drawn = BTreeSet::new();
        set.sample_distinct(&mut rng, count, |value| {
            assert!(set.contains(&value.to_vec()) && drawn.insert(value.to_vec()));
        });
        assert_eq!(drawn.len(), count.min(1_000));
    }
}

#[derive(Debug, Clone)]
enum Edit {
    Add(Vec<u8>),
    Remove(Vec<u8>),
    PopRandom,
    Clone,
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0_i64..20).prop_map(|number| number.to_string().into_bytes()),
        3 => (0_u8..20).prop_map(|letter| vec![b'a' + letter]),
        1 => vec(any::<u8>(), 0..300),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        8 => member().prop_map(Edit::Add),
        4 => member().prop_map(Edit::Remove),
        2 => proptest::prelude::Just(Edit::PopRandom),
        1 => proptest::prelude::Just(Edit::Clone),
    ]
}

proptest! {
    #[test]
    fn edits_are_those_of_a_btree_set(edits in vec(edit(), 1..80), seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut set, mut model) = (Set::new(), BTreeSet::new());
        for edit in edits {
            match edit {
                Edit::Add(member) => {
                    prop_assert_eq!(set.add(&member, &SMALL), !model.contains(&member));
                    prop_assert!(set.contains(&member));
                    model.insert(member);
                }
                Edit::Remove(member) => {
                    prop_assert_eq!(set.remove(&member), model.remove(&member));
                    prop_assert!(!set.contains(&member));
                }
                Edit::PopRandom => {
                    let popped = set.pop_random(&mut rng, |value| value.to_vec());
                    prop_assert_eq!(popped.is_some(), !model.is_empty());
                    prop_assert!(popped.is_none_or(|member| model.remove(&member)));
                }
                Edit::Clone => set = set.clone(),
            }
            prop_assert_eq!(set.len(), model.len());
            let members: Vec<_> = set.iter().map(|value| value.to_vec()).collect();
            prop_assert_eq!(members.len(), model.len());
            prop_assert_eq!(members.into_iter().collect::<BTreeSet<_>>(), model.clone());
            let (mut scanned, mut cursor) = (BTreeSet::new(), 0);
            loop {
                cursor = set.scan(cursor, |value| { scanned.insert(value.to_vec()); });
                if cursor == 0 { break; }
            }
            prop_assert_eq!(&scanned, &model);
            prop_assert!(set.memory_bytes(0) > 0);
        }
    }
}
