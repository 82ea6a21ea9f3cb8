//! The table against a model, its scan promise, its draws, and that every item is dropped once.

#![expect(unsafe_code, reason = "the tests own items as raw allocations")]

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell as Counter;
use std::collections::{HashMap, HashSet};
use std::ptr::NonNull;

use kiln_base::hash::key_hash;
use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use super::{Entry, Item, Table};

thread_local! {
    static LIVE: Counter<isize> = const { Counter::new(0) };
}

fn live() -> isize {
    LIVE.with(Counter::get)
}

/// A key and a number in one allocation: `[key length | number | key bytes]`.
#[repr(transparent)]
struct Pair(NonNull<Header>);

#[repr(C)]
struct Header {
    key_len: usize,
    value: u64,
}

const HEADER: usize = size_of::<Header>();

fn layout(key_len: usize) -> Layout {
    Layout::from_size_align(HEADER + key_len, align_of::<Header>()).expect("keys are short")
}

impl Pair {
    fn new(key: &[u8], value: u64) -> Self {
        LIVE.with(|live| live.set(live.get() + 1));
        // SAFETY: The size is at least that of the header.
        let memory = NonNull::new(unsafe { alloc(layout(key.len())) }).expect("memory");
        // SAFETY: The allocation has room for the header and is aligned for it.
        unsafe { memory.cast().write(Header { key_len: key.len(), value }) };
        // SAFETY: The key is behind the header.
        let bytes = unsafe { memory.add(HEADER) };
        // SAFETY: There is room for all of it.
        unsafe { bytes.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len()) };
        Self(memory.cast())
    }

    fn header(&self) -> &Header {
        // SAFETY: A pair owns its allocation.
        unsafe { self.0.as_ref() }
    }

    fn value(&self) -> u64 {
        self.header().value
    }

    /// Moves to another allocation, as a growing value would.
    fn set(&mut self, value: u64) {
        // SAFETY: The pair is borrowed for all that the key is used.
        let key = unsafe { Self::key_of(self.0.cast()) };
        let moved = Self::new(key, value);
        *self = moved;
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        LIVE.with(|live| live.set(live.get() - 1));
        let layout = layout(self.header().key_len);
        // SAFETY: `new` allocated it with this layout.
        unsafe { dealloc(self.0.as_ptr().cast(), layout) };
    }
}

// SAFETY: A pair is its pointer, and its key is never written after `new`.
unsafe impl Item for Pair {
    fn into_raw(self) -> NonNull<u8> {
        std::mem::ManuallyDrop::new(self).0.cast()
    }

    unsafe fn from_raw(raw: NonNull<u8>) -> Self {
        Self(raw.cast())
    }

    unsafe fn key_of<'a>(raw: NonNull<u8>) -> &'a [u8] {
        // SAFETY: The caller promises a live pair.
        let len = unsafe { raw.cast::<Header>().as_ref() }.key_len;
        // SAFETY: The key is behind the header.
        let bytes = unsafe { raw.add(HEADER) };
        // SAFETY: `new` wrote that many bytes.
        unsafe { NonNull::slice_from_raw_parts(bytes, len).as_ref() }
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn insert(table: &mut Table<Pair>, number: u64) {
    let key = key(number);
    table.insert_unique(key_hash(&key), Pair::new(&key, number));
}

fn remove(table: &mut Table<Pair>, number: u64) -> Option<Pair> {
    let key = key(number);
    table.remove(key_hash(&key), &key)
}

fn filled(count: u64) -> Table<Pair> {
    let mut table = Table::new();
    (0..count).for_each(|number| insert(&mut table, number));
    table
}

/// Every element of the table, by a scan without changes in between, each exactly once.
fn scanned(table: &Table<Pair>) -> HashMap<Vec<u8>, u64> {
    let mut seen = HashMap::new();
    let mut cursor = 0;
    loop {
        cursor = table.scan(cursor, |item| {
            assert!(seen.insert(item.key().to_vec(), item.value()).is_none(), "seen twice");
        });
        if cursor == 0 {
            return seen;
        }
    }
}

#[test]
fn a_table_is_small_and_an_empty_one_owns_nothing() {
    assert!(size_of::<Table<Pair>>() <= 40);
    let mut table = Table::<Pair>::new();
    assert_eq!(table.memory_bytes(), 0);
    assert!(table.find(1, b"a").is_none());
    assert!(table.remove(1, b"a").is_none());
    assert_eq!(table.scan(0, |_| panic!("there is nothing")), 0);
    assert_eq!(table.scan(77, |_| panic!("there is nothing")), 0);
    assert_eq!(table.scan_mut(0, |_| panic!("there is nothing")), 0);
    assert!(table.random(&mut StdRng::seed_from_u64(1)).is_none());
    table.sample(&mut StdRng::seed_from_u64(1), 3, |_| panic!("there is nothing"));
    assert_eq!(table.drain_step(5, drop), 0);
    table.prefetch_bucket(1);
    table.prefetch_item(1);
    assert_eq!(table.iter().count(), 0);

    insert(&mut table, 1);
    assert_eq!(table.memory_bytes(), 64 + 8); // One bucket and a directory of one place.
    table.clear();
    assert_eq!((table.len(), table.memory_bytes(), live()), (0, 0, 0));
}

#[test]
fn a_full_table_takes_about_ten_bytes_per_item() {
    for count in [1_000, 10_000, 12_000, 16_000, 50_000] {
        let table = filled(count);
        let bytes = table.memory_bytes() as f64 / count as f64;
        assert!((8.0..12.0).contains(&bytes), "{bytes} bytes per item of {count}");
    }
}

#[test]
fn growing_to_100_000_and_back_loses_nothing() {
    let mut table = Table::new();
    for number in 0..100_000 {
        insert(&mut table, number);
        if number.is_power_of_two() {
            assert_eq!(table.iter().count() as u64, number + 1);
        }
    }
    for number in 0..100_000 {
        let key = key(number);
        assert_eq!(table.find(key_hash(&key), &key).map(|item| item.value()), Some(number));
    }
    for number in 0..100_000 {
        assert_eq!(remove(&mut table, number).map(|item| item.value()), Some(number));
        assert!(remove(&mut table, number).is_none());
        if (100_000 - number).is_power_of_two() {
            assert_eq!(scanned(&table).len() as u64, 99_999 - number);
        }
    }
    assert_eq!(live(), 0);
    assert!(table.bucket_count() <= 2, "{} buckets for nothing", table.bucket_count());
    assert!(table.memory_bytes() < 300);
}

#[test]
fn a_reserved_table_does_not_grow() {
    let mut table = Table::new();
    table.reserve(10_000);
    let buckets = table.bucket_count();
    assert_eq!(buckets, 1_250);
    let mut rng = StdRng::seed_from_u64(2);
    insert(&mut table, 0);
    assert_eq!(table.random(&mut rng).map(|item| item.value()), Some(0)); // However sparse.
    (1..10_000).for_each(|number| insert(&mut table, number));
    assert_eq!(table.bucket_count(), buckets);
    table.reserve(0);
    assert_eq!((table.len(), table.bucket_count()), (10_000, buckets));
}

#[test]
fn draining_in_steps_keeps_a_table_whole() {
    let mut table = filled(5_000);
    let mut drained = HashSet::new();
    while table.drain_step(700, |item| assert!(drained.insert(item.value()))) > 0 {
        let left = scanned(&table);
        assert_eq!(left.len() + drained.len(), 5_000);
        for number in 0..5_000 {
            let key = key(number);
            let found = table.find(key_hash(&key), &key).is_some();
            assert_eq!(found, left.contains_key(&key));
            assert_ne!(found, drained.contains(&number));
        }
        insert(&mut table, 5_000);
        assert!(remove(&mut table, 5_000).is_some());
    }
    assert_eq!((live(), table.bucket_count()), (0, 1));
}

#[test]
fn an_item_that_moves_is_found_where_it_moved() {
    let mut table = filled(1_000);
    for number in 0..1_000 {
        let key = key(number);
        let mut cell = table.find_mut(key_hash(&key), &key).expect("it was inserted");
        assert_eq!(cell.get().value(), number);
        cell.with_mut(|item| item.set(number + 1));
        assert_eq!(cell.get().value(), number + 1);
        assert_eq!(cell.replace(Pair::new(&key, number + 2)).value(), number + 1);
        assert_eq!(cell.into_ref().value(), number + 2);
    }
    table.for_each_mut(|item| item.set(item.value() + 1));
    assert!(scanned(&table).into_iter().all(|(k, value)| key(value - 3) == k));
    assert_eq!(live(), 1_000);
}

#[test]
fn a_change_that_panics_leaves_one_owner() {
    let mut table = filled(1);
    let key = key(0);
    let change = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut cell = table.find_mut(key_hash(&key), &key).expect("it was inserted");
        cell.with_mut(|item| {
            item.set(5);
            panic!("after the item has moved");
        });
    }));
    assert!(change.is_err());
    assert_eq!(table.find(key_hash(&key), &key).map(|item| item.value()), Some(5));
    drop(table);
    assert_eq!(live(), 0);
}

#[test]
fn a_scan_can_remove_and_change_what_it_comes_by() {
    let mut table = filled(10_000);
    let mut cursor = 0;
    let mut seen = 0;
    loop {
        cursor = table.scan_mut(cursor, |mut cell| {
            let value = cell.get().value();
            if value < 10_000 {
                seen += 1; // Merges can show an item twice: marked ones are not counted again.
            }
            if value % 4 != 0 {
                cell.remove();
            } else if value < 10_000 {
                cell.with_mut(|item| item.set(value + 10_000));
            }
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!((seen, table.len(), live()), (10_000, 2_500, 2_500));
    assert!(scanned(&table).values().all(|&value| value >= 10_000 && value % 4 == 0));
    assert!(table.bucket_count() <= 2_500 / 4 + 1);
}

/// Scans once while `change` is called between the steps; returns how often it saw each item.
fn scan_under(
    table: &mut Table<Pair>,
    mut change: impl FnMut(&mut Table<Pair>),
) -> HashMap<u64, u32> {
    let mut seen = HashMap::new();
    let mut cursor = 0;
    loop {
        cursor = table.scan(cursor, |item| *seen.entry(item.value()).or_default() += 1);
        if cursor == 0 {
            return seen;
        }
        assert!(cursor < 2 * table.bucket_count() as u64, "cursors are small numbers");
        change(table);
    }
}

#[test]
fn a_scan_returns_what_stays_while_the_table_grows_from_nothing_to_100_000() {
    let mut table = filled(100);
    let mut next = 100;
    // Each step adds an eighth of what is there, so the scan sees ten doublings.
    let seen = scan_under(&mut table, |table| {
        let until = (next + next / 8 + 1).min(100_000);
        (next..until).for_each(|number| insert(table, number));
        next = until;
    });
    assert_eq!(next, 100_000);
    assert!((0..100).all(|number| seen[&number] == 1), "growth alone repeats nothing");
}

#[test]
fn a_scan_returns_what_stays_while_the_table_shrinks_from_100_000() {
    let mut table = filled(100_000);
    let mut next = 100_000;
    let seen = scan_under(&mut table, |table| {
        let until = (next - next / 500).max(100);
        (until..next).for_each(|number| drop(remove(table, number)));
        next = until;
    });
    assert!(next < 50_000, "the table did shrink");
    assert!((0..100).all(|number| seen.contains_key(&number)));
}

proptest! {
    #[test]
    fn a_scan_returns_what_stays_under_any_change(
        staying in 1_u64..200,
        others in 0_u64..3_000,
        seed: u64,
        bias in 0.0..1.0,
    ) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut table = filled(staying + others);
        let mut present: Vec<u64> = (staying..staying + others).collect();
        let mut next = staying + others;
        let mut steps = 0;
        let seen = scan_under(&mut table, |table| {
            steps += 1;
            let grow = rng.random_bool(bias) && steps < 300; // Else a scan may never end.
            for _ in 0..rng.random_range(0..200) {
                if grow {
                    insert(table, next);
                    present.push(next);
                    next += 1;
                } else if !present.is_empty() {
                    let at = rng.random_range(0..present.len());
                    assert!(remove(table, present.swap_remove(at)).is_some());
                }
            }
        });
        for number in 0..staying {
            prop_assert_eq!(seen.contains_key(&number), true);
        }
    }
}

/// What random operations on the table and its model do.
#[derive(Clone, Debug)]
enum Operation {
    Upsert(u64, u64),
    Remove(u64),
    RemoveRange(u64, u64),
    InsertRange(u64, u64),
    Change(u64, u64),
    Find(u64),
    Drain(usize),
    RemoveInScan(u64),
    Reserve(usize),
    Clear,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let number = 0_u64..600;
    let operation = prop_oneof![
        20 => (number.clone(), any::<u64>()).prop_map(|(key, value)| Operation::Upsert(key, value)),
        20 => number.clone().prop_map(Operation::Remove),
        4 => (number.clone(), 0_u64..300).prop_map(|(key, n)| Operation::RemoveRange(key, n)),
        6 => (number.clone(), 0_u64..300).prop_map(|(key, n)| Operation::InsertRange(key, n)),
        10 => (number.clone(), any::<u64>()).prop_map(|(key, value)| Operation::Change(key, value)),
        10 => number.prop_map(Operation::Find),
        1 => (0_usize..100).prop_map(Operation::Drain),
        2 => (2_u64..5).prop_map(Operation::RemoveInScan),
        1 => (0_usize..500).prop_map(Operation::Reserve),
        1 => Just(Operation::Clear),
    ];
    prop::collection::vec(operation, 1..150)
}

/// All keys in a few hashes, so that chains get long: the same operations must work.
#[repr(transparent)]
struct Colliding(Pair);

// SAFETY: As `Pair`.
unsafe impl Item for Colliding {
    const PREFETCH_BYTES: usize = 128;

    fn into_raw(self) -> NonNull<u8> {
        self.0.into_raw()
    }

    unsafe fn from_raw(raw: NonNull<u8>) -> Self {
        // SAFETY: The caller's promise.
        Self(unsafe { Pair::from_raw(raw) })
    }

    unsafe fn key_of<'a>(raw: NonNull<u8>) -> &'a [u8] {
        // SAFETY: The caller's promise.
        unsafe { Pair::key_of(raw) }
    }

    unsafe fn hash_of(raw: NonNull<u8>) -> u64 {
        // SAFETY: The caller's promise.
        key_hash(unsafe { Self::key_of(raw) }) & 0x0000_0300_0000_0003
    }
}

/// Runs operations on a table of `T` and on a model; both must agree all the way.
fn check_against_model<T: Item>(
    operations: &[Operation],
    hash: impl Fn(&[u8]) -> u64,
    wrap: impl Fn(Pair) -> T,
    pair: impl Fn(&T) -> &Pair,
    pair_mut: impl Fn(&mut T) -> &mut Pair,
) {
    let mut table = Table::<T>::new();
    let mut model = HashMap::<Vec<u8>, u64>::new();
    let upsert = |table: &mut Table<T>, model: &mut HashMap<_, _>, number: u64, value: u64| {
        let key = key(number);
        let hash = hash(&key);
        let old = match table.entry(hash, &key) {
            Entry::Occupied(mut cell) => {
                Some(pair(&cell.replace(wrap(Pair::new(&key, value)))).value())
            }
            Entry::Vacant(vacant) => {
                let cell = vacant.insert(wrap(Pair::new(&key, value)));
                assert_eq!(pair(&cell.get()).value(), value);
                None
            }
        };
        assert_eq!(old, model.insert(key, value));
    };
    let remove = |table: &mut Table<T>, model: &mut HashMap<Vec<u8>, u64>, number: u64| {
        let key = key(number);
        let removed = table.remove(hash(&key), &key);
        assert_eq!(removed.map(|item| pair(&item).value()), model.remove(&key));
    };
    for operation in operations {
        match *operation {
            Operation::Upsert(number, value) => upsert(&mut table, &mut model, number, value),
            Operation::Remove(number) => remove(&mut table, &mut model, number),
            Operation::InsertRange(first, count) => {
                (first..first + count).for_each(|n| upsert(&mut table, &mut model, n, n));
            }
            Operation::RemoveRange(first, count) => {
                (first..first + count).for_each(|n| remove(&mut table, &mut model, n));
            }
            Operation::Change(number, value) => {
                let key = key(number);
                let cell = table.find_mut(hash(&key), &key);
                let slot = model.get_mut(&key);
                assert_eq!(cell.is_some(), slot.is_some());
                if let (Some(mut cell), Some(slot)) = (cell, slot) {
                    cell.with_mut(|item| pair_mut(item).set(value));
                    *slot = value;
                }
            }
            Operation::Find(number) => {
                let key = key(number);
                table.prefetch_bucket(hash(&key));
                table.prefetch_item(hash(&key));
                let found = table.find(hash(&key), &key);
                assert_eq!(found.map(|item| pair(&item).value()), model.get(&key).copied());
            }
            Operation::Drain(count) => {
                table.drain_step(count, |item| {
                    let raw = item.into_raw();
                    // SAFETY: The item is alive and owned here.
                    let key = unsafe { T::key_of(raw) };
                    assert!(model.remove(key).is_some());
                    // SAFETY: It was given up above.
                    drop(unsafe { T::from_raw(raw) });
                });
            }
            Operation::RemoveInScan(divisor) => {
                let mut cursor = 0;
                loop {
                    cursor = table.scan_mut(cursor, |cell| {
                        if pair(&cell.get()).value().is_multiple_of(divisor) {
                            let key = cell.get().key().to_vec();
                            assert_eq!(model.remove(&key), Some(pair(&cell.remove()).value()));
                        }
                    });
                    if cursor == 0 {
                        break;
                    }
                }
                assert!(model.values().all(|value| !value.is_multiple_of(divisor)));
            }
            Operation::Reserve(count) => table.reserve(count),
            Operation::Clear => {
                table.clear();
                model.clear();
            }
        }
        assert_eq!(table.len(), model.len());
        assert_eq!(table.is_empty(), model.is_empty());
        assert_eq!(live(), model.len() as isize);
    }
    let mut all = HashMap::new();
    for item in &table {
        assert!(all.insert(item.key().to_vec(), pair(&item).value()).is_none());
    }
    assert_eq!(all, model);
    drop(table);
    assert_eq!(live(), 0);
}

proptest! {
    #[test]
    fn a_table_is_a_map(operations in operations()) {
        check_against_model(&operations, key_hash, |pair| pair, |pair| pair, |pair| pair);
    }

    #[test]
    fn a_table_of_colliding_keys_is_a_map(operations in operations()) {
        check_against_model(
            &operations,
            |key| key_hash(key) & 0x0000_0300_0000_0003,
            Colliding,
            |item| &item.0,
            |item| &mut item.0,
        );
    }
}

/// Chi-square of `drawn` against equal probabilities, in standard deviations from its mean.
fn deviation(drawn: &HashMap<u64, u32>, items: u64, draws: u32) -> f64 {
    let expected = f64::from(draws) / items as f64;
    let square = |number| {
        let count = drawn.get(&number).copied().unwrap_or(0);
        (f64::from(count) - expected).powi(2) / expected
    };
    let chi_square: f64 = (0..items).map(square).sum();
    let degrees = items as f64 - 1.0;
    (chi_square - degrees) / (2.0 * degrees).sqrt()
}

/// Every item is drawn alike: also between doublings, where some chains are twice as long, and
/// after removals.
#[test]
fn random_draws_favor_nobody() {
    let mut rng = StdRng::seed_from_u64(3);
    for (items, inserted) in [(2, 2), (10, 10), (1_000, 1_000), (1_500, 1_500), (1_000, 1_900)] {
        let mut table = filled(inserted);
        (items..inserted).for_each(|number| drop(remove(&mut table, number)));
        let draws = 200 * items as u32;

        let mut drawn = HashMap::new();
        for _ in 0..draws {
            let item = table.random(&mut rng).expect("there are items");
            *drawn.entry(item.value()).or_default() += 1;
        }
        // 5 standard deviations by chance: once in 3 million runs.
        assert!(deviation(&drawn, items, draws) < 5.0, "random: {items} of {inserted}");

        drawn.clear();
        for _ in 0..draws / 5 {
            table.sample(&mut rng, 5, |item| *drawn.entry(item.value()).or_default() += 1);
        }
        assert_eq!(drawn.values().sum::<u32>(), draws);
        assert!(deviation(&drawn, items, draws) < 5.0, "sample: {items} of {inserted}");

        drawn.clear();
        let buckets = table.bucket_count() as u32;
        for _ in 0..200 * buckets {
            table.sample_bucket(&mut rng, |item| *drawn.entry(item.value()).or_default() += 1);
        }
        // Each item comes as often as its bucket, which is binomial: standard deviation 14.
        let times = (0..items).map(|number| drawn.get(&number).copied().unwrap_or(0));
        assert!(times.into_iter().all(|times| (130..270).contains(&times)));
    }
}

#[test]
fn any_cursor_is_a_good_one() {
    let table = filled(1_000);
    let mut rng = StdRng::seed_from_u64(4);
    for cursor in [1, u64::MAX, 1 << 63].into_iter().chain((0..1_000).map(|_| rng.next_u64())) {
        let mut steps = 0;
        let mut at = cursor;
        while {
            at = table.scan(at, |_| ());
            at != 0
        } {
            steps += 1;
            assert!(steps <= table.bucket_count());
        }
    }
}
