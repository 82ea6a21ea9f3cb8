//! Payloads that real servers made, round trips, and damage.

use kiln_data::hash::{Hash, OldExpiry};
use kiln_data::list::{End, List};
use kiln_data::set::Set;
use kiln_data::zset::ZSet;
use kiln_keyspace::{Entry, Object, Settings, Value};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use crate::{Loaded, RestoreError, dump, restore};

/// What a value is to a client: its type, its encoding and its parts.
fn shown(entry: &Entry) -> (String, Vec<Vec<u8>>) {
    let name = format!("{} {}", entry.type_name(), entry.encoding_name());
    let parts = match entry.value() {
        Value::String(string) => vec![string.to_vec()],
        Value::Object(Object::List(list)) => list.iter().map(|value| value.to_vec()).collect(),
        Value::Object(Object::Set(set)) => set.iter().map(|value| value.to_vec()).collect(),
        Value::Object(Object::SortedSet(zset)) => {
            let pairs = zset.iter();
            pairs
                .flat_map(|(member, score)| [member.to_vec(), score.to_le_bytes().to_vec()])
                .collect()
        }
        Value::Object(Object::Hash(hash)) => {
            let mut fields: Vec<_> = hash
                .iter_all()
                .map(|field| {
                    let expiry = format!("{:?}", field.expire_at).into_bytes();
                    [field.name.to_vec(), field.value.to_vec(), expiry].concat()
                })
                .collect();
            fields.sort();
            fields
        }
        Value::Object(Object::Engine(_)) => unreachable!("engines have no such form"),
    };
    let mut parts = parts;
    if name.starts_with("set") {
        parts.sort();
    }
    (name, parts)
}

fn restored(payload: &[u8]) -> Result<Entry, RestoreError> {
    Ok(match restore(payload, &Settings::default())? {
        Loaded::String(text) => Entry::string(b"k", &text, None),
        Loaded::Object(object) => Entry::object(b"k", object, None),
    })
}

fn check_round_trip(entry: &Entry) {
    let back = restored(&dump(entry).expect("no engine")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(shown(&back), shown(entry));
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(32))]

    #[test]
    fn every_value_comes_back(
        texts in vec(vec(any::<u8>(), 0..100), 1..300),
        numbers in vec(any::<i64>(), 1..600),
        small in vec(-3_000_i64..3_000, 1..20),
        expiries in vec(proptest::option::of(1_i64..=i64::MAX), 300),
    ) {
        let settings = Settings::default();
        for number in &small {
            check_round_trip(&Entry::string(b"k", number.to_string().as_bytes(), None));
        }
        check_round_trip(&Entry::string(b"k", &texts.concat(), None));
        let numbers = numbers.iter().chain(&small).map(|number| number.to_string().into_bytes());
        let numbers: Vec<_> = numbers.collect();
        for elements in [&texts[..1], &texts, &numbers] {
            let mut list = List::new();
            let mut set = Set::for_members(&elements[0], elements.len(), &settings.set);
            let mut zset = ZSet::new(elements.len(), 0, &settings.zset);
            let mut hash = Hash::new();
            let mut expiring = Hash::new();
            for (element, expiry) in elements.iter().zip(expiries.iter().cycle()) {
                list.push(End::Back, element, settings.list);
                set.add(element, &settings.set);
                zset.insert(element, element.len() as f64 - 0.5, &settings.zset);
                for hash in [&mut hash, &mut expiring] {
                    hash.set(element, b"v", OldExpiry::Clear, i64::MIN, &settings.hash);
                }
                expiring.set_expiry(element, *expiry, i64::MIN);
            }
            for object in [
                Object::List(list),
                Object::Set(set),
                Object::SortedSet(zset),
                Object::Hash(hash),
                Object::Hash(expiring),
            ] {
                check_round_trip(&Entry::object(b"k", object, None));
            }
        }
    }

}

proptest! {
    #[test]
    fn no_bytes_do_harm(mut bytes in vec(any::<u8>(), 0..200), kind in 0_u8..26) {
        if let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        prop_assert_eq!(restored(&bytes).err(), Some(RestoreError::BadFooter));
        if let Ok(Loaded::Object(object)) = crate::decode::value(&bytes, &Settings::default()) {
            prop_assert!(!object.is_empty());
        }
    }

    /// Payloads that are nearly right reach further than random ones.
    #[test]
    fn no_changed_byte_does_harm(at in any::<proptest::sample::Index>(), byte: u8, kind in 0..4) {
        let settings = Settings::default();
        let object = match kind {
            0 => {
                let mut list = List::new();
                list.push(End::Back, b"one", settings.list);
                list.push(End::Back, &[b'x'; 10_000], settings.list);
                Object::List(list)
            }
            1 => {
                let mut set = Set::for_members(b"1", 2, &settings.set);
                set.add(b"1", &settings.set);
                set.add(b"70000", &settings.set);
                Object::Set(set)
            }
            2 => {
                let mut zset = ZSet::new(2, 0, &settings.zset);
                zset.insert(b"a", 1.0, &settings.zset);
                zset.insert(b"b", 2.0, &settings.zset);
                Object::SortedSet(zset)
            }
            _ => {
                let mut hash = Hash::new();
                hash.set(b"f", b"v", OldExpiry::Clear, 0, &settings.hash);
                hash.set_expiry(b"f", Some(5), 0);
                Object::Hash(hash)
            }
        };
        let payload = dump(&Entry::object(b"k", object, None)).expect("no engine");
        let mut value = payload[..payload.len() - 10].to_vec();
        let at = at.index(value.len());
        value[at] = byte;
        if let Ok(Loaded::Object(object)) = crate::decode::value(&value, &settings) {
            // Whatever came of it can be used.
            let entry = Entry::object(b"k", object, None);
            check_round_trip(&entry);
        }
    }
}

/// Payloads that Redis 8.2.3 made.
#[test]
fn redis_s_payloads_are_read() {
    let cases: &[(&[u8], &[&[u8]])] = &[
        (b"\x00\xc0\x7b\x09\x00\x98\x10\x02\x2d\x54\xfc\x04\x08", &[b"123"]),
        (b"\x01\x02\x01a\x01b\x09\x00\xe2Z\xc1\xb2\x81\x85y\xf4", &[b"a", b"b"]),
    ];
    for (payload, want) in cases {
        let entry = restored(payload).unwrap_or_else(|error| panic!("{payload:?}: {error}"));
        assert_eq!(shown(&entry).1, *want);
    }
}
