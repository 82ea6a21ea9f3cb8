//! Every operation against a `VecDeque`, under limits small enough to have many nodes; encodings as
//! Redis 8.2.3 reports them.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::{End, List, ListLimits, NodeBytes, Side};
use crate::listpack::{Listpack, Value};

const DEFAULT: ListLimits = ListLimits { max_listpack_size: -2 };

fn counted(max_listpack_size: i32) -> ListLimits {
    ListLimits { max_listpack_size }
}

fn push_back(list: &mut List, texts: &[&str], limits: ListLimits) {
    list.push_all(End::Back, texts.iter().map(|text| text.as_bytes()), limits);
}

fn texts(list: &List) -> Vec<Vec<u8>> {
    list.iter().map(|value| value.to_vec()).collect()
}

/// All that must hold of `list` whatever was done to it.
fn check(list: &List, model: &VecDeque<Vec<u8>>) {
    assert_eq!(texts(list), Vec::from(model.clone()));
    assert_eq!(list.len(), model.len());
    assert_eq!(list.is_empty(), model.is_empty());
    let last = model.len().saturating_sub(1);
    let backward: Vec<_> = list.iter_from(last, End::Front).map(|value| value.to_vec()).collect();
    assert_eq!(backward, model.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(list.peek(End::Front).map(|value| value.to_vec()), model.front().cloned());
    assert_eq!(list.peek(End::Back).map(|value| value.to_vec()), model.back().cloned());
    if let List::Quicklist(quick) = list {
        for node in &quick.nodes {
            assert_eq!(node.count as usize, node.pack.len());
            assert!(node.count > 0 && (!node.plain || node.count == 1));
        }
    }
}

#[test]
fn a_list_fits_a_keyspace_entry() {
    assert_eq!(size_of::<List>(), 16);
    assert_eq!(size_of::<super::Node>(), 16);
}

#[test]
fn a_list_limited_by_count_converts_as_redis_does() {
    let limits = counted(4);
    let mut list = List::new();
    push_back(&mut list, &["a", "b", "c", "d"], limits);
    assert_eq!(list.encoding(), "listpack");
    push_back(&mut list, &["e"], limits);
    assert_eq!(list.encoding(), "quicklist");
    // Two nodes until the second is gone; then four elements are still over half the limit.
    list.pop(End::Back, limits, |_| ());
    assert_eq!((list.encoding(), list.len()), ("quicklist", 4));
    list.pop(End::Back, limits, |_| ());
    assert_eq!((list.encoding(), list.len()), ("quicklist", 3));
    list.pop(End::Front, limits, |_| ());
    assert_eq!((list.encoding(), list.len()), ("listpack", 2));
}

#[test]
fn a_list_limited_by_bytes_converts_as_redis_does() {
    let text = "x".repeat(100);
    let mut list = List::new();
    // Redis 8.2.3: 78 elements of 103 bytes are 8,041 with the frame; one more text would make
    // 8,141 and is let in by its length alone; the next is not.
    push_back(&mut list, &[&*text; 1], DEFAULT);
    while list.encoding() == "listpack" {
        push_back(&mut list, &[&text], DEFAULT);
    }
    assert_eq!(list.len(), 80);
    while list.encoding() == "quicklist" {
        list.pop(End::Back, DEFAULT, |_| ());
    }
    assert_eq!(list.len(), 39);
}

#[test]
fn one_command_is_measured_as_a_whole() {
    // 4,000 texts of two bytes count 8,000 at the check, though they will take 12,000 as entries.
    let mut list = List::new();
    push_back(&mut list, &vec!["ab"; 4_000], DEFAULT);
    assert_eq!(list.encoding(), "listpack");
    push_back(&mut list, &["c"], DEFAULT);
    assert_eq!(list.encoding(), "quicklist");
    let mut list = List::new();
    push_back(&mut list, &vec!["ab"; 4_093], DEFAULT);
    assert_eq!(list.encoding(), "quicklist");
}

#[test]
fn a_large_element_has_a_node_of_its_own() {
    let large = "L".repeat(9_000);
    let mut list = List::new();
    push_back(&mut list, &["a", &large, "b"], DEFAULT);
    let nodes: Vec<_> = list.nodes().collect();
    assert_eq!(nodes.len(), 3);
    assert_eq!(nodes[1], NodeBytes::Plain(large.as_bytes()));
    assert!(list.set(1, b"small", DEFAULT));
    assert_eq!((list.encoding(), list.nodes().len()), ("quicklist", 2));
    assert!(list.set(-1, large.as_bytes(), DEFAULT));
    assert_eq!(list.nodes().len(), 3);
    assert_eq!(list.get(2), Some(Value::Bytes(large.as_bytes())));
    list.trim(2, 1, DEFAULT);
    assert_eq!((list.encoding(), list.len()), ("quicklist", 1));
}

#[test]
fn a_list_survives_being_saved_and_loaded_by_its_nodes() {
    let mut list = List::new();
    for number in 0..100 {
        list.push(End::Back, number.to_string().as_bytes(), counted(7));
    }
    list.push(End::Front, &[b'L'; 9_000], counted(7));
    let mut loaded = List::new();
    for node in list.nodes() {
        match node {
            NodeBytes::Packed(bytes) => {
                loaded.append_packed(Listpack::from_untrusted(bytes).unwrap());
            }
            NodeBytes::Plain(text) => loaded.append_plain(text),
        }
    }
    loaded.settle(counted(7));
    assert_eq!(texts(&loaded), texts(&list));
    assert_eq!(loaded.nodes().len(), list.nodes().len());

    let mut small = List::new();
    small.append_packed(Listpack::new());
    small.settle(DEFAULT);
    assert_eq!((small.encoding(), small.len()), ("listpack", 0));
}

#[test]
fn inserting_in_the_middle_leaves_no_trail_of_small_nodes() {
    let limits = counted(128);
    let mut list = List::new();
    push_back(&mut list, &["first", "pivot", "last"], limits);
    for number in 0..10_000 {
        assert!(list.insert(Side::Before, b"pivot", format!("{number}").as_bytes(), limits));
    }
    assert_eq!(list.len(), 10_003);
    assert!(list.nodes().len() < 2 * 10_003 / 128, "{}", list.nodes().len());
}

#[test]
fn positions_stop_after_so_many_elements() {
    let mut list = List::new();
    push_back(&mut list, &["a", "1", "a", "b", "1", "a"], counted(2));
    let positions = |text: &str, from, len_max| {
        list.positions(text.as_bytes(), from, len_max).collect::<Vec<_>>()
    };
    assert_eq!(positions("a", End::Front, usize::MAX), [0, 2, 5]);
    assert_eq!(positions("a", End::Back, usize::MAX), [5, 2, 0]);
    assert_eq!(positions("a", End::Back, 4), [5, 2]);
    assert_eq!(positions("1", End::Front, 4), [1]);
    assert_eq!(positions("01", End::Front, usize::MAX), [0_usize; 0]);
}

#[test]
fn a_drained_list_gives_its_memory_back() {
    let mut list = List::new();
    for number in 0_u32..50_000 {
        list.push(End::Back, &number.to_le_bytes(), counted(1));
    }
    list.trim(0, 2, counted(1));
    assert!(list.memory_bytes() < 300, "{}", list.memory_bytes());
}

#[derive(Debug, Clone)]
enum Edit {
    Push(bool, Vec<Vec<u8>>),
    Pop(bool),
    Set(i64, Vec<u8>),
    Insert(bool, Vec<u8>, Vec<u8>),
    Remove(Vec<u8>, i64),
    RemoveRange(usize, usize),
    Trim(usize, usize),
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (0..6_i64).prop_map(|number| number.to_string().into_bytes()),
        3 => (0_u8..4).prop_map(|letter| vec![b'a' + letter; 20]),
        1 => vec(any::<u8>(), 0..200),
        1 => (0_u8..2).prop_map(|letter| vec![b'L' + letter; 9_000]),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = 0_usize..40;
    prop_oneof![
        6 => (any::<bool>(), vec(text(), 1..8)).prop_map(|(front, texts)| Edit::Push(front, texts)),
        2 => any::<bool>().prop_map(Edit::Pop),
        2 => (-30_i64..30, text()).prop_map(|(index, text)| Edit::Set(index, text)),
        4 => (any::<bool>(), text(), text())
            .prop_map(|(side, pivot, text)| Edit::Insert(side, pivot, text)),
        1 => (text(), -3_i64..4).prop_map(|(text, count)| Edit::Remove(text, count)),
        1 => (index.clone(), 0_usize..12)
            .prop_map(|(index, count)| Edit::RemoveRange(index, count)),
        1 => (index, 10_usize..60).prop_map(|(index, count)| Edit::Trim(index % 5, count)),
    ]
}

fn end(front: bool) -> End {
    if front { End::Front } else { End::Back }
}

fn remove_from_model(model: &mut VecDeque<Vec<u8>>, text: &[u8], count: i64) -> usize {
    let equal = (0..model.len()).filter(|&index| model[index] == text);
    let mut equal: Vec<usize> = equal.collect();
    let wanted =
        if count == 0 { equal.len() } else { equal.len().min(count.unsigned_abs() as usize) };
    if count < 0 {
        equal.drain(..equal.len() - wanted);
    }
    equal.truncate(wanted);
    equal.iter().rev().for_each(|&index| drop(model.remove(index)));
    wanted
}

proptest! {
    #[test]
    fn edits_are_those_of_a_vec_deque(
        edits in vec(edit(), 1..50),
        size in prop_oneof![Just(-1), Just(-2), Just(1), Just(2), 3..8, Just(0)],
    ) {
        let limits = counted(size);
        let (mut list, mut model) = (List::new(), VecDeque::new());
        for edit in edits {
            match edit {
                Edit::Push(front, texts) => {
                    list.push_all(end(front), texts.iter().map(Vec::as_slice), limits);
                    for text in texts {
                        if front { model.push_front(text) } else { model.push_back(text) }
                    }
                }
                Edit::Pop(front) => {
                    let popped = list.pop(end(front), limits, |value| value.to_vec());
                    let expected = if front { model.pop_front() } else { model.pop_back() };
                    prop_assert_eq!(popped, expected);
                }
                Edit::Set(index, text) => {
                    let at = if index < 0 { index + model.len() as i64 } else { index };
                    let old = usize::try_from(at).ok().and_then(|at| model.get_mut(at));
                    prop_assert_eq!(list.set(index, &text, limits), old.is_some());
                    if let Some(old) = old {
                        *old = text.clone();
                        prop_assert_eq!(list.get(index).unwrap().to_vec(), text);
                    }
                }
                Edit::Insert(before, pivot, text) => {
                    let side = if before { Side::Before } else { Side::After };
                    let at = model.iter().position(|other| *other == pivot);
                    prop_assert_eq!(list.insert(side, &pivot, &text, limits), at.is_some());
                    if let Some(at) = at {
                        model.insert(at + usize::from(!before), text);
                    }
                }
                Edit::Remove(text, count) => {
                    let expected = remove_from_model(&mut model, &text, count);
                    prop_assert_eq!(list.remove(&text, count, limits), expected);
                }
                Edit::RemoveRange(index, count) => {
                    let from = index.min(model.len());
                    let to = (index + count).min(model.len());
                    model.drain(from..to.max(from));
                    prop_assert_eq!(list.remove_range(index, count, limits), to.max(from) - from);
                }
                Edit::Trim(index, count) => {
                    let from = index.min(model.len());
                    model.truncate((index + count).min(model.len()));
                    model.drain(..from);
                    list.trim(index, count, limits);
                }
            }
            check(&list, &model);
            for (index, text) in model.iter().enumerate() {
                prop_assert_eq!(list.get(index as i64).unwrap().to_vec(), text.clone());
            }
            if let Some(middle) = model.len().checked_sub(1).map(|last| last / 2) {
                let rest = list.iter_from(middle, End::Back).map(|value| value.to_vec());
                let wanted = model.range(middle..).cloned();
                prop_assert_eq!(rest.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
            }
        }
    }
}
