//! Nanoseconds per operation of [`Table`], beside a `std` map with the same hash.
//!
//! ```text
//! cargo bench -p kiln-data --bench table                                 100k, 1M and 8M items
//! cargo bench -p kiln-data --bench table -- --items 1000000 --tables 1024 --rounds 5
//! ```
//!
//! Keys have 16 bytes, values 64; a GET copies the value, an insert allocates the item, a removal
//! frees it. Keys come in random order. Each figure is CPU time, of the best of the rounds, since
//! other load on the machine only ever adds. `one` waits for the loads of each operation before
//! the next, as if other work lay between them; `batch` prefetches the buckets and then the items
//! of 64 keys first, as the server does for a pipeline (a `std` map cannot; there it leaves the
//! overlap to the CPU). With `--tables 1024` the top bits of the hash choose a table, as they
//! choose a shard in the server. Memory comes from the system's allocator.
//!
//! Without `--bench`, which cargo adds, it runs once over few items, as a test.

#![expect(unsafe_code, reason = "an item of the table is a raw allocation")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::env;
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::time::Duration;

use kiln_base::hash::key_hash;
use kiln_data::table::{Item, Ref, Table};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const BATCH: usize = 64;
const VALUE_LEN: usize = 64;

type Key = [u8; 16];

fn main() {
    let args: Vec<String> = env::args().collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<usize>().ok()
    };
    if args.iter().any(|arg| arg == "--list") {
        println!("few_items: test"); // What nextest asks of a test binary.
        return;
    }
    let is_bench = args.iter().any(|arg| arg == "--bench");
    let rounds = number("--rounds").unwrap_or(if is_bench { 5 } else { 1 });
    let sizes = match (number("--items"), is_bench) {
        (Some(items), _) => vec![items],
        (None, true) => vec![100_000, 1_000_000, 8_000_000],
        (None, false) => vec![1_000],
    };
    let table_counts = number("--tables").map_or(vec![1, 1024], |tables| vec![tables]);
    for items in sizes {
        for &tables in &table_counts {
            assert!(tables.is_power_of_two(), "--tables is a power of two");
            run(&mut Kiln::new(tables), &format!("{tables} table(s)"), items, rounds);
        }
        if !args.iter().any(|arg| arg == "--no-std") {
            run(&mut Std::default(), "std", items, rounds);
        }
    }
}

/// One store under measurement. `batch` allows it to prefetch for `BATCH` keys.
trait Store {
    fn get(&self, keys: &[Key], batch: bool) -> u64;
    fn insert(&mut self, keys: &[Key], batch: bool);
    fn remove(&mut self, keys: &[Key], batch: bool);
    fn walk(&self) -> u64;
    fn sample(&self, rng: &mut StdRng, count: usize) -> u64;
    fn sample_bucket(&self, rng: &mut StdRng) -> u64;
    fn len(&self) -> usize;
    fn memory_bytes(&self) -> usize;
    fn clear(&mut self);
}

fn run(store: &mut dyn Store, name: &str, items: usize, rounds: usize) {
    let mut rng = StdRng::seed_from_u64(1);
    let all: Vec<Key> = (0..items as u64).map(key).collect();
    let operations = items.clamp(1, 1_000_000);
    let pick = |rng: &mut StdRng| all[rng.random_range(0..items)];
    let hits: Vec<Key> = (0..operations).map(|_| pick(&mut rng)).collect();
    let misses: Vec<Key> = (0..operations as u64).map(|n| key(n * 7 + (1 << 40))).collect();
    // Every key once, in an order unlike that of insertion.
    let mut once = all.clone();
    for at in (1..items).rev() {
        once.swap(at, rng.random_range(0..=at));
    }
    once.truncate(operations);

    println!("{items:>8} items, {name}");
    for batch in [false, true] {
        let fills = rounds.min(3);
        let mut fill = Duration::MAX;
        for _ in 0..fills {
            store.clear();
            fill = fill.min(time(|| store.insert(&all, batch)));
        }
        assert_eq!(store.len(), items);
        let (mut hit, mut miss) = (Duration::MAX, Duration::MAX);
        let (mut remove, mut insert) = (Duration::MAX, Duration::MAX);
        for _ in 0..rounds {
            hit = hit.min(time(|| assert_ne!(store.get(&hits, batch), 0)));
            miss = miss.min(time(|| assert_eq!(store.get(&misses, batch), 0)));
        }
        for _ in 0..rounds {
            remove = remove.min(time(|| store.remove(&once, batch)));
            insert = insert.min(time(|| store.insert(&once, batch)));
        }
        let per = |time: Duration, count: usize| time.as_nanos() as f64 / count as f64;
        println!(
            "{:>8} get {:>4.0}  miss {:>4.0}  fill {:>4.0}  remove {:>4.0}  insert {:>4.0}",
            if batch { "batch:" } else { "one:" },
            per(hit, operations),
            per(miss, operations),
            per(fill, items),
            per(remove, operations),
            per(insert, operations),
        );
    }
    let walk = (0..rounds).map(|_| time(|| assert_ne!(store.walk(), 0))).min();
    let draws = operations / 5;
    let (mut sample, mut bucket) = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        sample = sample.min(time(|| {
            (0..draws).for_each(|_| _ = black_box(store.sample(&mut rng, 5)));
        }));
        bucket = bucket.min(time(|| {
            (0..draws).for_each(|_| _ = black_box(store.sample_bucket(&mut rng)));
        }));
    }
    println!(
        "{:>8} walk {:.0} per item, sample of five {:.0}, of a bucket {:.0}, \
         {:.2} bytes of table per item",
        "",
        walk.unwrap_or_default().as_nanos() as f64 / items as f64,
        sample.as_nanos() as f64 / draws as f64,
        bucket.as_nanos() as f64 / draws as f64,
        store.memory_bytes() as f64 / items as f64,
    );
    store.clear();
}

fn time(work: impl FnOnce()) -> Duration {
    let cpu_time = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).expect("CPU time is not negative")
    };
    let start = cpu_time();
    work();
    cpu_time().saturating_sub(start)
}

/// Waits until all loads so far are done.
fn finish_loads() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of `x86_64`.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
}

fn key(number: u64) -> Key {
    let mut key = *b"key:000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// A key and a value in one allocation: `[key length | value length | key | value]`.
#[repr(transparent)]
struct Record(NonNull<[u32; 2]>);

const HEADER: usize = 8;

impl Record {
    fn new(key: &[u8], value: &[u8; VALUE_LEN]) -> Self {
        // SAFETY: The size is not 0.
        let memory = unsafe { alloc(Self::layout(key.len())) };
        let memory = NonNull::new(memory).expect("there is memory");
        // SAFETY: The header is at the start.
        unsafe { memory.cast().write([key.len() as u32, VALUE_LEN as u32]) };
        // SAFETY: The allocation has room for a key behind the header.
        let at = unsafe { memory.add(HEADER) };
        // SAFETY: The same.
        unsafe { at.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len()) };
        // SAFETY: It has room for a value behind the key.
        let at = unsafe { at.add(key.len()) };
        // SAFETY: The same.
        unsafe { at.cast().write(*value) };
        Self(memory.cast())
    }

    fn layout(key_len: usize) -> Layout {
        Layout::from_size_align(HEADER + key_len + VALUE_LEN, 8).expect("it is small")
    }
}

fn value_of(item: Ref<'_, Record>) -> [u8; VALUE_LEN] {
    let key = item.key();
    // SAFETY: The value is behind the key.
    let at = unsafe { item.as_raw().add(HEADER + key.len()) };
    // SAFETY: `new` wrote it there.
    unsafe { at.cast().read() }
}

impl Drop for Record {
    fn drop(&mut self) {
        // SAFETY: The record owns its allocation.
        let [key_len, _] = unsafe { self.0.read() };
        // SAFETY: `new` allocated it with this layout.
        unsafe { dealloc(self.0.as_ptr().cast(), Self::layout(key_len as usize)) };
    }
}

// SAFETY: A record is its pointer, and its key is never written after `new`.
unsafe impl Item for Record {
    const PREFETCH_BYTES: usize = HEADER + 16 + VALUE_LEN;

    #[inline]
    fn into_raw(self) -> NonNull<u8> {
        ManuallyDrop::new(self).0.cast()
    }

    #[inline]
    unsafe fn from_raw(raw: NonNull<u8>) -> Self {
        Self(raw.cast())
    }

    #[inline]
    unsafe fn key_of<'a>(raw: NonNull<u8>) -> &'a [u8] {
        // SAFETY: The caller promises a live record.
        let [key_len, _] = unsafe { raw.cast::<[u32; 2]>().read() };
        // SAFETY: The key is behind the header.
        let at = unsafe { raw.add(HEADER) };
        // SAFETY: `new` wrote that many bytes.
        unsafe { NonNull::slice_from_raw_parts(at, key_len as usize).as_ref() }
    }
}

struct Kiln {
    tables: Vec<Table<Record>>,
    shift: u32,
}

impl Kiln {
    fn new(tables: usize) -> Self {
        let shift = 64 - tables.trailing_zeros();
        Self { tables: (0..tables).map(|_| Table::new()).collect(), shift }
    }

    fn index(&self, hash: u64) -> usize {
        hash.checked_shr(self.shift).unwrap_or(0) as usize
    }

    fn table(&self, hash: u64) -> &Table<Record> {
        &self.tables[self.index(hash)]
    }

    fn table_mut(&mut self, hash: u64) -> &mut Table<Record> {
        let index = self.index(hash);
        &mut self.tables[index]
    }

    /// The hashes of a batch, their buckets and items on the way.
    fn hashes(&self, keys: &[Key], batch: bool, hashes: &mut [u64; BATCH]) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = key_hash(key);
            if batch {
                self.table(*hash).prefetch_bucket(*hash);
            }
        }
        if batch {
            for &hash in &hashes[..keys.len()] {
                self.table(hash).prefetch_item(hash);
            }
        }
    }
}

impl Store for Kiln {
    fn get(&self, keys: &[Key], batch: bool) -> u64 {
        let mut sum = 0;
        let mut hashes = [0; BATCH];
        let mut reply = [0; VALUE_LEN];
        for keys in keys.chunks(BATCH) {
            self.hashes(keys, batch, &mut hashes);
            for (key, &hash) in keys.iter().zip(&hashes) {
                if let Some(item) = self.table(hash).find(hash, key) {
                    reply = value_of(item);
                    sum += 1;
                }
                black_box(&mut reply);
                if !batch {
                    finish_loads();
                }
            }
        }
        sum
    }

    fn insert(&mut self, keys: &[Key], batch: bool) {
        let mut hashes = [0; BATCH];
        for keys in keys.chunks(BATCH) {
            self.hashes(keys, batch, &mut hashes);
            for (key, &hash) in keys.iter().zip(&hashes) {
                let record = Record::new(key, &[1; VALUE_LEN]);
                self.table_mut(hash).insert_unique(hash, record);
                if !batch {
                    finish_loads();
                }
            }
        }
    }

    fn remove(&mut self, keys: &[Key], batch: bool) {
        let mut hashes = [0; BATCH];
        for keys in keys.chunks(BATCH) {
            self.hashes(keys, batch, &mut hashes);
            for (key, &hash) in keys.iter().zip(&hashes) {
                assert!(self.table_mut(hash).remove(hash, key).is_some());
                if !batch {
                    finish_loads();
                }
            }
        }
    }

    fn walk(&self) -> u64 {
        let mut sum = 0;
        for table in &self.tables {
            let mut cursor = 0;
            loop {
                cursor = table.scan(cursor, |item| sum += u64::from(item.key()[15]));
                if cursor == 0 {
                    break;
                }
            }
        }
        sum
    }

    fn sample(&self, rng: &mut StdRng, count: usize) -> u64 {
        let mut sum = 0;
        let table = &self.tables[rng.random_range(0..self.tables.len())];
        table.sample(rng, count, |item| sum += u64::from(item.key()[15]));
        sum
    }

    fn sample_bucket(&self, rng: &mut StdRng) -> u64 {
        let mut sum = 0;
        let table = &self.tables[rng.random_range(0..self.tables.len())];
        table.sample_bucket(rng, |item| sum += u64::from(item.key()[15]));
        sum
    }

    fn len(&self) -> usize {
        self.tables.iter().map(Table::len).sum()
    }

    fn memory_bytes(&self) -> usize {
        self.tables.iter().map(|table| size_of_val(table) + table.memory_bytes()).sum()
    }

    fn clear(&mut self) {
        self.tables.iter_mut().for_each(Table::clear);
    }
}

/// `std`'s map with Kiln's hash.
#[derive(Default)]
struct Std(HashMap<Box<[u8]>, Box<[u8]>, BuildHasherDefault<KeyHash>>);

#[derive(Default)]
struct KeyHash(u64);

impl Hasher for KeyHash {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = key_hash(bytes);
    }

    fn write_usize(&mut self, _length: usize) {} // All keys have the same.

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Store for Std {
    fn get(&self, keys: &[Key], batch: bool) -> u64 {
        let mut sum = 0;
        let mut reply = [0; VALUE_LEN];
        for key in keys {
            if let Some(value) = self.0.get(key.as_slice()) {
                reply.copy_from_slice(value);
                sum += 1;
            }
            black_box(&mut reply);
            if !batch {
                finish_loads();
            }
        }
        sum
    }

    fn insert(&mut self, keys: &[Key], batch: bool) {
        for key in keys {
            self.0.insert(Box::from(key.as_slice()), Box::from([1; VALUE_LEN].as_slice()));
            if !batch {
                finish_loads();
            }
        }
    }

    fn remove(&mut self, keys: &[Key], batch: bool) {
        for key in keys {
            assert!(self.0.remove(key.as_slice()).is_some());
            if !batch {
                finish_loads();
            }
        }
    }

    fn walk(&self) -> u64 {
        self.0.keys().map(|key| u64::from(key[15])).sum()
    }

    fn sample(&self, _rng: &mut StdRng, _count: usize) -> u64 {
        0 // It cannot.
    }

    fn sample_bucket(&self, _rng: &mut StdRng) -> u64 {
        0
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn memory_bytes(&self) -> usize {
        // Its documented layout: one control byte and one pair for each place, 8/7 of capacity.
        (self.0.capacity() * 8 / 7) * (1 + size_of::<(Box<[u8]>, Box<[u8]>)>())
    }

    fn clear(&mut self) {
        self.0 = HashMap::default();
    }
}
