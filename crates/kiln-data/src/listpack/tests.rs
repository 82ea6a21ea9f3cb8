//! Bytes as Redis writes them, every edit against a `Vec` of texts, and hostile input.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{BYTES_MAX, Listpack, ListpackError, Needle, Pos, Value, decode};

/// Texts of every head: small and large integers, near-integers, strings of all length classes.
pub(crate) fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        (-5_000_i64..5_000).prop_map(|number| number.to_string().into_bytes()),
        (any::<i32>()).prop_map(|number| number.to_string().into_bytes()),
        vec(any::<u8>(), 0..12),
        (0_u8..4).prop_map(|letter| vec![b'a' + letter]),
        (60_usize..70).prop_map(|len| vec![b'm'; len]),
        prop_oneof![Just(126_usize), Just(127), Just(4_095), Just(4_096), Just(16_383)]
            .prop_map(|len| vec![b'x'; len]),
        prop_oneof![Just("-0"), Just("007"), Just("+1"), Just(" 1")].prop_map(Into::into),
    ]
}

fn pack(texts: &[impl AsRef<[u8]>]) -> Listpack {
    let mut pack = Listpack::new();
    for text in texts {
        pack.push_back(text.as_ref());
    }
    pack
}

fn texts(pack: &Listpack) -> Vec<Vec<u8>> {
    pack.iter().map(|(_, value)| value.to_vec()).collect()
}

/// All that must hold of `pack` whatever was done to it.
fn check(pack: &Listpack, model: &[Vec<u8>]) {
    assert_eq!(texts(pack), model);
    assert_eq!(pack.len(), model.len());
    assert_eq!(pack.is_empty(), model.is_empty());
    let mut backward: Vec<_> = pack.iter().rev().map(|(_, value)| value.to_vec()).collect();
    backward.reverse();
    assert_eq!(backward, model);
    assert_eq!(Listpack::from_untrusted(pack.as_bytes()).as_ref(), Ok(pack));
}

#[test]
fn a_listpack_is_one_pointer() {
    assert_eq!(size_of::<Option<Listpack>>(), 8);
}

#[test]
fn bytes_are_redis_bytes() {
    assert_eq!(Listpack::new().as_bytes(), [7, 0, 0, 0, 0, 0, 0xFF]);
    let cases: [(&[u8], &[u8]); 12] = [
        (b"0", &[0x00, 1]),
        (b"127", &[0x7F, 1]),
        (b"128", &[0xC0, 0x80, 2]),
        (b"-1", &[0xDF, 0xFF, 2]),
        (b"-4096", &[0xD0, 0x00, 2]),
        (b"4096", &[0xF1, 0x00, 0x10, 3]),
        (b"-32769", &[0xF2, 0xFF, 0x7F, 0xFF, 4]),
        (b"8388608", &[0xF3, 0x00, 0x00, 0x80, 0x00, 5]),
        (b"-9223372036854775808", &[0xF4, 0, 0, 0, 0, 0, 0, 0, 0x80, 9]),
        (b"abc", &[0x83, b'a', b'b', b'c', 4]),
        (b"", &[0x80, 1]),
        (b"-0", &[0x82, b'-', b'0', 3]),
    ];
    for (text, entry) in cases {
        let pack = pack(&[text]);
        let total = 7 + entry.len() as u8;
        assert_eq!(pack.as_bytes(), [&[total, 0, 0, 0, 1, 0], entry, &[0xFF]].concat(), "{text:?}");
        assert_eq!(Listpack::entry_bytes(text), entry.len());
    }
    let long = pack(&[&[b'x'; 200]]);
    assert_eq!(long.as_bytes()[6..8], [0xE0, 200]);
    assert_eq!(long.as_bytes()[208..], [0x01, 0xCA, 0xFF]);
    let longer = pack(&[&[b'x'; 5_000]]);
    assert_eq!(longer.as_bytes()[6..11], [0xF0, 0x88, 0x13, 0, 0]);
}

#[test]
fn a_dump_of_redis_comes_out_alike() {
    // RPUSH on Redis 8.2.3, then DUMP without its type, node header, version and checksum.
    let texts = [
        "0",
        "127",
        "128",
        "-1",
        "-4096",
        "4096",
        "-32769",
        "8388608",
        "-9223372036854775808",
        "abc",
        "-0",
        "",
        "4095",
        "32767",
        "-8388609",
        "2147483648",
        &"x".repeat(200),
    ];
    let dump = [
        &b"\x1b\x01\x00\x00\x11\x00\x00\x01\x7f\x01\xc0\x80\x02\xdf\xff\x02\xd0\x00\x02"[..],
        b"\xf1\x00\x10\x03\xf2\xff\x7f\xff\x04\xf3\x00\x00\x80\x00\x05",
        b"\xf4\x00\x00\x00\x00\x00\x00\x00\x80\t\x83abc\x04",
        b"\x82-0\x03\x80\x01\xcf\xff\x02\xf1\xff\x7f\x03\xf3\xff\xff\x7f\xff\x05",
        b"\xf4\x00\x00\x00\x80\x00\x00\x00\x00\t\xe0\xc8",
        &[b'x'; 200],
        b"\x01\xca\xff",
    ]
    .concat();
    assert_eq!(pack(&texts).as_bytes(), dump);
    assert_eq!(Listpack::from_untrusted(&dump), Ok(pack(&texts)));
}

#[test]
fn the_trailing_length_takes_its_odd_sizes() {
    // 16,378 bytes of text with 5 of head are 16,383: three bytes, though two could hold it.
    for (text_len, backlen_size) in [(16_377, 2), (16_378, 3), (2_097_145, 3), (2_097_146, 4)] {
        let pack = pack(&["x".repeat(text_len), "next".into()]);
        assert_eq!(pack.bytes(), 7 + 5 + text_len + backlen_size + 6);
        assert_eq!(pack.get(-2).map(|value| value.text_len()), Some(text_len));
        assert_eq!(pack.before(pack.last().unwrap()), Some(pack.first()));
    }
}

#[test]
fn counts_beyond_the_header_are_counted() {
    let mut pack = Listpack::new();
    let count = 65_540;
    (0..count).for_each(|_| pack.push_back(b"1"));
    assert_eq!(pack.as_bytes()[4..6], [0xFF, 0xFF]);
    assert_eq!(pack.len(), count);
    assert_eq!(pack.get(65_539), Some(Value::Int(1)));
    assert_eq!(pack.get(65_540), None);
    assert_eq!(pack.remove_range(0, 65_000), 65_000);
    assert_eq!(pack.len(), 540);
    assert_eq!(Listpack::from_untrusted(pack.as_bytes()).unwrap().len(), 540);
}

#[test]
fn indexes_count_from_both_ends() {
    let pack = pack(&["a", "2", "c", "4", "e"]);
    for (index, text) in [(0, "a"), (1, "2"), (3, "4"), (4, "e"), (-1, "e"), (-5, "a")] {
        assert_eq!(pack.get(index).map(|value| value.to_vec()), Some(text.into()), "{index}");
    }
    for index in [5, -6, i64::MAX, i64::MIN] {
        assert_eq!(pack.get(index), None, "{index}");
    }
}

#[test]
fn find_can_skip_the_values_of_pairs() {
    let pack = pack(&["k1", "k2", "k2", "7", "7", "v"]);
    let index_of = |text: &[u8], skip| {
        let found = pack.find(&Needle::new(text), skip)?;
        pack.iter().position(|(pos, _)| pos == found)
    };
    assert_eq!(index_of(b"k2", 0), Some(1));
    assert_eq!(index_of(b"k2", 1), Some(2));
    assert_eq!(index_of(b"7", 0), Some(3));
    assert_eq!(index_of(b"7", 1), Some(4));
    assert_eq!(index_of(b"v", 1), None);
    assert_eq!(index_of(b"07", 0), None);
}

#[test]
fn damaged_bytes_are_refused() {
    let good = pack(&["abc", "1000"]).as_bytes().to_vec();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Listpack::from_untrusted(&bytes).map(drop)
    };
    assert_eq!(Listpack::from_untrusted(b"").map(drop), Err(ListpackError::BadFrame));
    assert_eq!(with(0, 9), Err(ListpackError::BadFrame));
    assert_eq!(with(3, 0x80), Err(ListpackError::BadFrame));
    assert_eq!(with(good.len() - 1, 0), Err(ListpackError::BadFrame));
    assert_eq!(with(4, 3), Err(ListpackError::BadCount));
    assert_eq!(with(6, 0x84), Err(ListpackError::BadEntry));
    assert_eq!(with(6, 0xF0), Err(ListpackError::BadEntry));
    assert_eq!(with(6, 0xFF), Err(ListpackError::BadEntry));
    assert_eq!(with(10, 5), Err(ListpackError::BadEntry));
    assert_eq!(with(4, 0xFF).and(with(5, 0xFF)), Err(ListpackError::BadCount));
}

#[derive(Debug, Clone)]
enum Edit {
    PushBack(Vec<u8>),
    PushFront(Vec<u8>),
    InsertBefore(usize, Vec<u8>),
    InsertAfter(usize, Vec<u8>),
    Replace(usize, Vec<u8>),
    Remove(usize),
    RemoveRange(usize, usize),
    RetainNot(Vec<u8>),
    SplitAndAppend(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = 0_usize..64;
    prop_oneof![
        3 => text().prop_map(Edit::PushBack),
        2 => text().prop_map(Edit::PushFront),
        2 => (at.clone(), text()).prop_map(|(at, text)| Edit::InsertBefore(at, text)),
        2 => (at.clone(), text()).prop_map(|(at, text)| Edit::InsertAfter(at, text)),
        2 => (at.clone(), text()).prop_map(|(at, text)| Edit::Replace(at, text)),
        2 => at.clone().prop_map(Edit::Remove),
        1 => (at.clone(), 0_usize..6).prop_map(|(at, count)| Edit::RemoveRange(at, count)),
        1 => text().prop_map(Edit::RetainNot),
        1 => at.prop_map(Edit::SplitAndAppend),
    ]
}

fn pos(pack: &Listpack, index: usize) -> Pos {
    pack.pos_at(index as i64).unwrap()
}

proptest! {
    #[test]
    fn edits_are_those_of_a_vec(edits in vec(edit(), 1..60)) {
        let (mut pack, mut model) = (Listpack::new(), Vec::<Vec<u8>>::new());
        for edit in edits {
            let len = model.len();
            match edit {
                Edit::PushBack(text) => {
                    pack.push_back(&text);
                    model.push(text);
                }
                Edit::PushFront(text) => {
                    pack.push_front(&text);
                    model.insert(0, text);
                }
                Edit::InsertBefore(at, text) => {
                    let at = at % (len + 1);
                    let pos = if at == len { pack.end() } else { pos(&pack, at) };
                    pack.insert_before(pos, &text);
                    prop_assert!(pack.value(pos).unwrap().is(&Needle::new(&text)));
                    model.insert(at, text);
                }
                _ if len == 0 => {}
                Edit::InsertAfter(at, text) => {
                    let new = pack.insert_after(pos(&pack, at % len), &text);
                    prop_assert_eq!(pack.value(new).unwrap().to_vec(), text.clone());
                    model.insert(at % len + 1, text);
                }
                Edit::Replace(at, text) => {
                    pack.replace(pos(&pack, at % len), &text);
                    model[at % len] = text;
                }
                Edit::Remove(at) => {
                    pack.remove(pos(&pack, at % len));
                    model.remove(at % len);
                }
                Edit::RemoveRange(at, count) => {
                    let at = at % len;
                    let count = count.min(len - at);
                    prop_assert_eq!(pack.remove_range(at as i64 - len as i64, count), count);
                    model.drain(at..at + count);
                }
                Edit::RetainNot(text) => {
                    let needle = Needle::new(&text);
                    let removed = pack.retain(|value| !value.is(&needle));
                    model.retain(|old| *old != text);
                    prop_assert_eq!(removed, len - model.len());
                }
                Edit::SplitAndAppend(at) => {
                    let at = at % len;
                    let right = pack.split_off(pos(&pack, at), len - at);
                    check(&pack, &model[..at]);
                    check(&right, &model[at..]);
                    pack.append(&right);
                }
            }
            check(&pack, &model);
        }
    }

    #[test]
    fn every_text_is_found_and_decoded(texts in vec(text(), 1..20)) {
        let pack = pack(&texts);
        for (index, text) in texts.iter().enumerate() {
            let first = texts.iter().position(|other| other == text).unwrap();
            prop_assert_eq!(pack.find(&Needle::new(text), 0), Some(pos(&pack, first)));
            prop_assert_eq!(pack.get(index as i64), Some(Value::from_text(text)));
        }
    }

    #[test]
    fn hostile_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..64), frame: bool) {
        if frame && bytes.len() >= 7 {
            let len = bytes.len();
            bytes[..4].copy_from_slice(&(len as u32).to_le_bytes());
            bytes[4..6].fill(0xFF);
            bytes[len - 1] = 0xFF;
        }
        if let Ok(pack) = Listpack::from_untrusted(&bytes) {
            check(&pack, &texts(&pack));
        }
        let _ = decode(&bytes);
    }

    #[test]
    fn flipped_bytes_never_panic(list in vec(text(), 0..8), at: u16, byte: u8) {
        let mut bytes = pack(&list).as_bytes().to_vec();
        let at = usize::from(at) % bytes.len();
        bytes[at] = byte;
        if let Ok(pack) = Listpack::from_untrusted(&bytes) {
            prop_assert!(pack.bytes() < BYTES_MAX);
            let found = texts(&pack);
            check(&pack, &found);
        }
    }
}
