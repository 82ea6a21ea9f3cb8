//! Every operation against a `HashMap` with a clock that moves, under limits small enough to pass
//! all encodings; encodings and orders as Redis 8.2.3 reports them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::OldExpiry::{Clear, Keep};
use super::Written::{Created, Updated};
use super::{Field, Hash, HashError, HashLimits, OldExpiry};
use crate::listpack::Listpack;

const SMALL: HashLimits = HashLimits { max_listpack_entries: 5, max_listpack_value: 20 };
const NOW: i64 = 1_000;

fn of(fields: &[(&str, &str)], limits: &HashLimits) -> Hash {
    let mut hash = Hash::new();
    for (name, value) in fields {
        hash.set(name.as_bytes(), value.as_bytes(), Clear, NOW, limits);
    }
    hash
}

fn text(field: Field<'_>) -> String {
    let [name, value] = [field.name, field.value].map(|value| value.to_vec());
    format!("{}={}", String::from_utf8_lossy(&name), String::from_utf8_lossy(&value))
}

fn texts(hash: &Hash, now: i64) -> Vec<String> {
    hash.iter(now).map(text).collect()
}

fn pack(entries: &[&str]) -> Listpack {
    let mut pack = Listpack::new();
    for entry in entries {
        pack.push_back(entry.as_bytes());
    }
    pack
}

#[test]
fn a_hash_fits_a_keyspace_entry() {
    assert_eq!(size_of::<Hash>(), 16);
}

#[test]
fn encodings_are_redis_encodings() {
    let limits = HashLimits::default();
    let mut hash = Hash::new();
    for number in 1..=512 {
        hash.set(number.to_string().as_bytes(), b"v", Clear, NOW, &limits);
    }
    assert_eq!(hash.encoding(), "listpack");
    assert_eq!(hash.set(b"1", b"w", Clear, NOW, &limits), Updated);
    assert_eq!(hash.encoding(), "listpack");
    assert_eq!(hash.set(b"x", b"v", Clear, NOW, &limits), Created);
    assert_eq!((hash.encoding(), hash.len()), ("hashtable", 513));

    assert_eq!(of(&[("f", &"v".repeat(64))], &limits).encoding(), "listpack");
    assert_eq!(of(&[("f", &"v".repeat(65))], &limits).encoding(), "hashtable");
    assert_eq!(of(&[(&"f".repeat(65), "v")], &limits).encoding(), "hashtable");

    let mut hash = Hash::new();
    hash.make_room(512, &limits);
    assert_eq!(hash.encoding(), "listpack");
    hash.make_room(513, &limits);
    assert_eq!(hash.encoding(), "hashtable");

    let mut hash = of(&[("f", "v")], &limits);
    assert_eq!(hash.set_expiry(b"f", None, NOW), Some(None));
    assert_eq!(hash.encoding(), "listpack");
    hash.set_expiry(b"f", Some(NOW + 1), NOW);
    hash.set_expiry(b"f", None, NOW);
    assert_eq!(hash.encoding(), "listpackex");
    hash.set(&[b'f'; 65], b"v", Clear, NOW, &limits);
    assert_eq!(hash.encoding(), "hashtable");
}

#[test]
fn a_listpackex_is_in_redis_order() {
    let limits = HashLimits::default();
    let mut hash = of(&[("a", "1"), ("b", "2"), ("c", "3")], &limits);
    hash.set_expiry(b"b", Some(33_000_000_000_000), NOW);
    hash.set_expiry(b"c", Some(32_000_000_000_000), NOW);
    assert_eq!(texts(&hash, NOW), ["c=3", "b=2", "a=1"]);
    // DUMP of Redis 8.2.3 after the same HSET and HPEXPIREATs.
    let dump = b",\0\0\0\t\0\x81c\x02\x03\x01\xf4\0\0\xa2\x94\x1a\x1d\0\0\t\
        \x81b\x02\x02\x01\xf4\0\x10Gi\x03\x1e\0\0\t\x81a\x02\x01\x01\0\x01\xff";
    assert_eq!(hash.as_listpack_ex().map(Listpack::as_bytes), Some(&dump[..]));
    hash.set(b"c", b"9", Clear, NOW, &limits);
    assert_eq!(texts(&hash, NOW), ["b=2", "a=1", "c=9"]);
    hash.set_expiry(b"a", Some(33_000_000_000_000), NOW);
    assert_eq!(texts(&hash, NOW), ["a=1", "b=2", "c=9"]);
    hash.set(b"b", b"22", Keep, NOW, &limits);
    hash.set(b"z", b"1", Clear, NOW, &limits);
    assert_eq!(texts(&hash, NOW), ["a=1", "b=22", "c=9", "z=1"]);
}

#[test]
fn listpacks_from_elsewhere_are_checked() {
    let pairs =
        |entries: &[&str]| Hash::from_listpack(pack(entries), &SMALL).map(|hash| hash.encoding());
    assert_eq!(pairs(&["a", "1", "b", "1"]), Ok("listpack"));
    assert_eq!(pairs(&["a", "1", "b"]), Err(HashError::Incomplete));
    assert_eq!(pairs(&["a", "1", "a", "1"]), Err(HashError::DuplicateField));
    assert_eq!(pairs(&["a", "a value of over twenty bytes"]), Ok("hashtable"));
    let triples = |entries: &[&str]| {
        Hash::from_listpack_ex(pack(entries), &SMALL).map(|hash| texts(&hash, 6))
    };
    assert_eq!(triples(&["a", "1", "5", "b", "2", "7", "c", "3", "0", "d", "4", "0"]), {
        Ok(vec!["b=2".into(), "c=3".into(), "d=4".into()])
    });
    assert_eq!(triples(&["a", "1", "5", "b"]), Err(HashError::Incomplete));
    assert_eq!(triples(&["a", "1", "x"]), Err(HashError::BadExpiry));
    assert_eq!(triples(&["a", "1", "-5"]), Err(HashError::BadExpiry));
    assert_eq!(triples(&["a", "1", "5", "b", "2", "4"]), Err(HashError::BadExpiry));
    assert_eq!(triples(&["a", "1", "0", "b", "2", "4"]), Err(HashError::BadExpiry));
    assert_eq!(triples(&["a", "1", "5", "a", "2", "5"]), Err(HashError::DuplicateField));
}

#[test]
fn fields_of_every_length_keep_name_value_and_expiry() {
    for name_len in [0, 1, 125, 126, 65_535, 65_536] {
        for expire_at in [None, Some(NOW + 5)] {
            let (name, value) = (vec![b'n'; name_len], vec![b'v'; 100]);
            let mut hash = Hash::new();
            hash.set(&name, &value, Clear, NOW, &SMALL);
            hash.set_expiry(&name, expire_at, NOW);
            hash.set(&name, &[b'w'; 100], Keep, NOW, &SMALL);
            hash.set(b"other", b"", Clear, NOW, &SMALL);
            let field = hash.find(&name, NOW).unwrap();
            assert_eq!(field.name.to_vec(), name);
            assert_eq!(field.value.to_vec(), [b'w'; 100]);
            assert_eq!(field.expire_at, expire_at);
            assert_eq!(hash.next_expiry(), expire_at);
        }
    }
}

#[test]
fn an_expired_field_is_absent_but_counted_until_it_is_reaped() {
    let long = "v".repeat(50);
    for value in ["v", &long] {
        let mut hash = of(&[("a", value), ("b", value), ("c", value)], &SMALL);
        hash.set_expiry(b"a", Some(NOW + 10), NOW);
        hash.set_expiry(b"b", Some(NOW + 20), NOW);
        assert!(hash.contains(b"a", NOW + 10), "at the very millisecond it is there");
        let later = NOW + 30;
        assert!(!hash.contains(b"a", later));
        assert_eq!((hash.len(), hash.live_len(later)), (3, 1));
        assert_eq!(hash.set_expiry(b"a", None, later), None);
        assert!(!hash.remove(b"a", later), "it was there no more");
        assert_eq!(hash.set(b"b", b"new", Keep, later, &SMALL), Created);
        assert_eq!(hash.find(b"b", later).unwrap().expire_at, None);
        assert_eq!((hash.len(), hash.next_expiry()), (2, None));
    }
}

#[test]
fn expired_fields_are_reaped_soonest_first() {
    let long = "v".repeat(50);
    for value in ["v", &long] {
        let mut hash = of(&[("a", value), ("b", value), ("c", value), ("d", value)], &SMALL);
        for (name, expire_at) in [("a", 40), ("b", 20), ("c", 30)] {
            hash.set_expiry(name.as_bytes(), Some(NOW + expire_at), NOW);
        }
        let mut reap = |now, max| {
            let mut names = String::new();
            let count =
                hash.remove_expired(now, max, |name| names += str::from_utf8(name).unwrap());
            assert_eq!(names.len(), count);
            (names, hash.next_expiry())
        };
        assert_eq!(reap(NOW + 20, 9), (String::new(), Some(NOW + 20)));
        assert_eq!(reap(NOW + 50, 2), ("bc".into(), Some(NOW + 40)));
        assert_eq!(reap(NOW + 50, 2), ("a".into(), None));
        assert_eq!(reap(NOW + 99, 2), (String::new(), None));
        assert_eq!(hash.len(), 1);
    }
}

#[test]
fn draws_are_even_and_never_expired() {
    let mut rng = StdRng::seed_from_u64(3);
    let long = "v".repeat(50);
    for value in ["v", &long] {
        let mut hash = of(&[("a", value), ("b", value), ("c", value), ("x", value)], &SMALL);
        hash.set_expiry(b"x", Some(NOW + 5), NOW);
        let now = NOW + 9;
        let mut drawn = BTreeMap::<Vec<u8>, u32>::new();
        hash.sample(&mut rng, now, 6_000, |field| {
            *drawn.entry(field.name.to_vec()).or_default() += 1;
        });
        assert_eq!(drawn.len(), 3);
        assert!(drawn.values().all(|times| (1_800..2_200).contains(times)), "{drawn:?}");
        let mut names = BTreeSet::new();
        hash.sample_distinct(&mut rng, now, 9, |field| assert!(names.insert(field.name.to_vec())));
        assert_eq!(names.len(), 3);
    }
    let mut hash = Hash::new();
    (0..1_000).for_each(|number| {
        hash.set(number.to_string().as_bytes(), b"v", Clear, NOW, &SMALL);
    });
    for count in [0, 1, 50, 249, 250, 1_000, 2_000] {
        let mut names = BTreeSet::new();
        hash.sample_distinct(&mut rng, NOW, count, |field| {
            assert!(names.insert(field.name.to_vec()));
        });
        assert_eq!(names.len(), count.min(1_000));
    }
}

#[derive(Debug, Clone)]
enum Edit {
    Set(Vec<u8>, Vec<u8>, OldExpiry),
    Remove(Vec<u8>),
    SetExpiry(Vec<u8>, Option<i64>),
    Wait(i64),
    Reap(usize),
    Clone,
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0_i64..5).prop_map(|number| number.to_string().into_bytes()),
        8 => (0_u8..5).prop_map(|letter| vec![b'a' + letter]),
        1 => vec(any::<u8>(), 0..200),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    let old_expiry = prop_oneof![Just(Clear), Just(Keep)];
    let expiry = proptest::option::weighted(0.8, 0_i64..50);
    prop_oneof![
        8 => (word(), word(), old_expiry).prop_map(|(name, text, old)| Edit::Set(name, text, old)),
        3 => word().prop_map(Edit::Remove),
        6 => (word(), expiry).prop_map(|(name, expiry)| Edit::SetExpiry(name, expiry)),
        3 => (0_i64..10).prop_map(Edit::Wait),
        1 => (0_usize..3).prop_map(Edit::Reap),
        1 => Just(Edit::Clone),
    ]
}

type Model = HashMap<Vec<u8>, (Vec<u8>, Option<i64>)>;

fn live(model: &Model, now: i64) -> Model {
    let live = |(_, expire_at): &(Vec<u8>, Option<i64>)| expire_at.is_none_or(|at| at >= now);
    model.iter().filter(|(_, field)| live(field)).map(|(n, f)| (n.clone(), f.clone())).collect()
}

fn owned(field: Field<'_>) -> (Vec<u8>, (Vec<u8>, Option<i64>)) {
    (field.name.to_vec(), (field.value.to_vec(), field.expire_at))
}

proptest! {
    #[test]
    fn edits_are_those_of_a_hash_map(edits in vec(edit(), 1..80), seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        // The model keeps expired fields until they are reaped, like the hash.
        let (mut hash, mut model, mut now) = (Hash::new(), Model::new(), NOW);
        for edit in edits {
            let before = live(&model, now);
            match edit {
                Edit::Set(name, value, old_expiry) => {
                    let old = before.get(&name);
                    let written = hash.set(&name, &value, old_expiry, now, &SMALL);
                    prop_assert_eq!(written, if old.is_some() { Updated } else { Created });
                    let expire_at = old.and_then(|old| old.1).filter(|_| old_expiry == Keep);
                    model.insert(name, (value, expire_at));
                }
                Edit::Remove(name) => {
                    prop_assert_eq!(hash.remove(&name, now), before.contains_key(&name));
                    model.remove(&name);
                }
                Edit::SetExpiry(name, after) => {
                    let expire_at = after.map(|after| now + after);
                    let old = before.get(&name).map(|old| old.1);
                    prop_assert_eq!(hash.set_expiry(&name, expire_at, now), old);
                    if old.is_some() {
                        model.get_mut(&name).unwrap().1 = expire_at;
                    }
                }
                Edit::Wait(ms) => now += ms,
                Edit::Reap(max) => {
                    let mut reaped = Vec::new();
                    hash.remove_expired(now, max, |name| reaped.push(name.to_vec()));
                    prop_assert_eq!(reaped.len(), max.min(model.len() - before.len()));
                    for name in reaped {
                        prop_assert!(model.remove(&name).is_some_and(|field| field.1 < Some(now)));
                    }
                }
                Edit::Clone => hash = hash.clone(),
            }
            let live = live(&model, now);
            prop_assert_eq!(hash.len(), model.len());
            prop_assert_eq!(hash.live_len(now), live.len());
            prop_assert_eq!(hash.next_expiry(), model.values().filter_map(|field| field.1).min());
            prop_assert_eq!(hash.iter_all().map(owned).collect::<Model>(), model.clone());
            prop_assert_eq!(hash.iter(now).map(owned).collect::<Model>(), live.clone());
            for name in model.keys() {
                let found = hash.find(name, now).map(owned);
                prop_assert_eq!(found, live.get(name).map(|field| (name.clone(), field.clone())));
            }
            let (mut scanned, mut cursor) = (Model::new(), 0);
            loop {
                cursor = hash.scan(cursor, now, |field| scanned.extend([owned(field)]));
                if cursor == 0 { break; }
            }
            prop_assert_eq!(&scanned, &live);
            let drawn = hash.random(&mut rng, now).map(|field| field.name.to_vec());
            prop_assert_eq!(drawn.is_some(), !live.is_empty());
            prop_assert!(drawn.is_none_or(|name| live.contains_key(&name)));
            prop_assert!(hash.is_empty() || hash.memory_bytes(3) > 0);
            let reloaded = match (hash.as_listpack(), hash.as_listpack_ex()) {
                (Some(pairs), _) => Hash::from_listpack(pairs.clone(), &SMALL),
                (_, Some(triples)) => Hash::from_listpack_ex(triples.clone(), &SMALL),
                _ => continue,
            };
            let reloaded = reloaded.unwrap();
            prop_assert_eq!(reloaded.iter_all().map(owned).collect::<Model>(), model.clone());
        }
    }
}
