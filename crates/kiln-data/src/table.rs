//! The hash table: the keyspace of a shard, a set, a hash, the dictionary of a sorted set.
//!
//! It holds items that are single allocations with their key inside, by their address alone.
//! Three ideas, each from the field's best:
//! - *A bucket is one cache line* of nine 48-bit addresses and their one-byte tags, with overflow
//!   buckets in a chain (after Valkey's `hashtable.c` and F14). A lookup costs two cache misses,
//!   the bucket and the item; [`Table::prefetch_bucket`] and [`Table::prefetch_item`] let a batch
//!   of lookups overlap them. See `table/bucket.rs` for the layout.
//! - *Linear hashing* (Litwin 1980): the table grows by one bucket at a time, splitting the next
//!   bucket in turn when there are more than eight items per bucket, and shrinks by one, merging
//!   the last bucket back, when there are fewer than four. There is no second table and no pause:
//!   an insert looks at the items of one chain, about a dozen, whatever the size. See
//!   `table/raw.rs`.
//! - *Scans follow the hash, not the memory* (after Redis's reverse binary cursor).
//!
//! # Cost
//!
//! Buckets not yet split hold twice as many items as the others. With growth at eight items per
//! bucket that is 4 to 8 and 8 to 16, Poisson-spread over chains of 9, 17, 25 cells: by
//! calculation 10.9 bytes of table per item averaged over a doubling (10.5 to 11.2, the unused
//! part of the last segment included; measured 10.7 at 1 and at 8 million items) and 0.17 overflow
//! buckets visited per lookup. Growth at nine would give 10.5 bytes and 0.22, at seven 11.5 and
//! 0.12. Shrinking only below half of it means that churn around any size does neither; it moves
//! items without reading them.
//!
//! Time, from `benches/table.rs` on two cores shared with a load of 10, in
//! CPU nanoseconds, 16-byte keys and 64-byte values: a GET that waits for its cache misses 365 at
//! 100,000 items and 493 at a million; the same in prefetched batches of 64, 69 and 93. Removals
//! take 196 and 385, in batches 104 and 164. A draw of five random items takes 885 and
//! 1,734, a whole bucket's (eight in the mean) 170 and 381: eviction wants
//! [`Table::sample_bucket`].
//!
//! # Scans
//!
//! Read a hash with its bits reversed as a position between 0 and 2^64. A bucket that is told
//! by `b` hash bits covers an aligned interval of 2^(64-b) positions; at any time the buckets
//! cover all positions once, and splitting or merging cuts an interval in half or joins halves. A
//! cursor is a position, bits reversed once more so that it is a small number (below twice the
//! number of buckets at the time); 0 is both the start and the end.
//!
//! *A scan returns every element that is present from its start to its end, at least once.* For
//! let all such elements before the cursor's position have been returned; this holds at the
//! start, where there are none. A step takes the bucket whose interval contains the cursor, which
//! therefore starts at or before it, returns all of its chain, and moves the cursor to the
//! interval's end: it holds again. Growing and shrinking between the steps moves elements between
//! buckets, but no element's position. An element is returned twice only if buckets merged
//! meanwhile. A cursor that no scan returned does no harm: it names some position.
//!
//! # What is left out
//!
//! No locks: who shares a table brings one (`&` for lookups and scans, `&mut` for changes). No
//! hashing of lookup keys: the caller has the hash already, for the shard. No rejection of
//! colliding keys: `kiln_base::hash` is keyed at random, and chains of any length work.

#![expect(unsafe_code, reason = "items are owned through addresses packed into buckets")]

mod bucket;
mod raw;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};
use std::ops::Deref;
use std::ptr::NonNull;

use kiln_base::hash::key_hash;
use rand::Rng;

use raw::{Chain, Location, RawTable};

/// What a table holds: an owner of one heap allocation in which its key lies.
///
/// # Safety
///
/// - The type is `#[repr(transparent)]` over a pointer that is thin and not null, such as
///   `NonNull<Header>` or `Box<Header>`, and [`Item::into_raw`] returns that pointer.
/// - [`Item::key_of`] returns the same bytes for an item for as long as it is in a table, even
///   when [`Cell::with_mut`] moves it to another allocation.
pub unsafe trait Item: Sized {
    /// How much [`Table::prefetch_item`] asks for, from the item's address on: what a typical
    /// lookup reads.
    const PREFETCH_BYTES: usize = 64;

    /// Gives up the item for its address.
    fn into_raw(self) -> NonNull<u8>;

    /// Makes the item of its address again.
    ///
    /// # Safety
    ///
    /// The address is from [`Item::into_raw`], and whoever owned the item by it does no more.
    unsafe fn from_raw(raw: NonNull<u8>) -> Self;

    /// The key of the item at an address.
    ///
    /// # Safety
    ///
    /// The address is from [`Item::into_raw`], and the item is neither changed nor dropped
    /// during `'a`.
    unsafe fn key_of<'a>(raw: NonNull<u8>) -> &'a [u8];

    /// The hash under which the item is inserted and looked up.
    ///
    /// # Safety
    ///
    /// As for [`Item::key_of`].
    #[inline]
    unsafe fn hash_of(raw: NonNull<u8>) -> u64 {
        // SAFETY: The caller's promise.
        key_hash(unsafe { Self::key_of(raw) })
    }

    /// Starts loading what the item's value points to, for [`Table::prefetch_value`]; nothing by
    /// default.
    ///
    /// # Safety
    ///
    /// The item is in a table, and nobody changes it meanwhile.
    #[inline]
    unsafe fn prefetch_value(_raw: NonNull<u8>) {}
}

/// An item in a table, borrowed for `'a`: a copy of its address that dereferences to it.
///
/// What borrows from `&*this` lives as long as this copy. For data that lives for `'a`, the item's
/// own module can go from [`Ref::as_raw`]: the item is neither changed nor dropped during `'a`.
pub struct Ref<'a, T> {
    raw: NonNull<u8>,
    item: PhantomData<&'a T>,
}

impl<T> Clone for Ref<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<'_, T> {}

impl<'a, T: Item> Ref<'a, T> {
    /// # Safety
    ///
    /// `raw` is an item in a table that is borrowed for `'a`.
    #[inline]
    unsafe fn new(raw: NonNull<u8>) -> Self {
        const { assert!(size_of::<T>() == size_of::<NonNull<u8>>()) };
        const { assert!(align_of::<T>() == align_of::<NonNull<u8>>()) };
        Self { raw, item: PhantomData }
    }

    /// The item's address.
    #[inline]
    pub fn as_raw(self) -> NonNull<u8> {
        self.raw
    }

    /// The item's key.
    #[inline]
    pub fn key(self) -> &'a [u8] {
        // SAFETY: The item is in a table that is borrowed for `'a`.
        unsafe { T::key_of(self.raw) }
    }
}

impl<T: Item> Deref for Ref<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `Item` promises that a `T` is nothing but its address, and `raw` is one's.
        unsafe { &*(&raw const self.raw).cast::<T>() }
    }
}

/// A hash table of items. Empty, it owns no memory. See the module's header.
pub struct Table<T: Item> {
    raw: RawTable,
    items: PhantomData<T>,
}

const _: () = assert!(size_of::<RawTable>() <= 40);

// SAFETY: A table owns its items and buckets, and shares them with nobody.
unsafe impl<T: Item + Send> Send for Table<T> {}

// SAFETY: Through `&Table` items are only lent as `&T`; buckets are only read.
unsafe impl<T: Item + Sync> Sync for Table<T> {}

impl<T: Item> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Item> Drop for Table<T> {
    fn drop(&mut self) {
        self.drain_step(usize::MAX, drop);
        self.raw.free_buckets();
    }
}

impl<T: Item> Table<T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { raw: RawTable::new(), items: PhantomData }
    }

    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there is no item.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.raw.len() == 0
    }

    /// The number of buckets, overflow not counted: what a whole scan takes in steps.
    pub fn bucket_count(&self) -> usize {
        self.raw.bucket_count()
    }

    /// Bytes allocated for the table, its items not counted.
    pub fn memory_bytes(&self) -> usize {
        self.raw.memory_bytes()
    }

    // ---- One item ----

    /// The item with this key, whose hash is `hash`.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<Ref<'_, T>> {
        let (_, item) = self.locate(hash, key)?;
        // SAFETY: It is in this table.
        Some(unsafe { Ref::new(item) })
    }

    /// The cell of the item with this key.
    #[inline]
    pub fn find_mut(&mut self, hash: u64, key: &[u8]) -> Option<Cell<'_, T>> {
        let (location, _) = self.locate(hash, key)?;
        Some(Cell { table: &mut self.raw, location, hash, settle: true, items: PhantomData })
    }

    /// The cell of the item with this key, or the right to insert it.
    #[inline]
    pub fn entry(&mut self, hash: u64, key: &[u8]) -> Entry<'_, T> {
        match self.locate(hash, key) {
            Some((location, _)) => {
                let table = &mut self.raw;
                Entry::Occupied(Cell { table, location, hash, settle: true, items: PhantomData })
            }
            None => Entry::Vacant(Vacant { table: self, hash }),
        }
    }

    /// Inserts an item whose key is known to be absent.
    #[inline]
    pub fn insert_unique(&mut self, hash: u64, item: T) -> Cell<'_, T> {
        let item = item.into_raw();
        // SAFETY: The item has just been given up by its owner.
        debug_assert_eq!(hash, unsafe { T::hash_of(item) }, "an item goes under its own hash");
        let location = self.raw.insert(hash, item, T::hash_of);
        Cell { table: &mut self.raw, location, hash, settle: true, items: PhantomData }
    }

    /// Removes the item with this key.
    #[inline]
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<T> {
        self.find_mut(hash, key).map(Cell::remove)
    }

    #[inline]
    fn locate(&self, hash: u64, key: &[u8]) -> Option<(Location, NonNull<u8>)> {
        // SAFETY: `find` passes items of this table, and nothing changes them meanwhile.
        self.raw.find(hash, |item| unsafe { T::key_of(item) } == key)
    }

    // ---- Batches ----

    /// Asks for the bucket of `hash`. Some time later [`Table::prefetch_item`] is cheap.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        self.raw.prefetch_bucket(hash);
    }

    /// Reads the bucket of `hash` and asks for the item that a lookup would compare, and an
    /// overflow bucket. Some time later the lookup is cheap. Says whether there was such an item.
    #[inline]
    pub fn prefetch_item(&self, hash: u64) -> bool {
        let mut found = false;
        self.raw.candidates(hash, |item| {
            found = true;
            for offset in (0..T::PREFETCH_BYTES).step_by(64) {
                bucket::prefetch(item.as_ptr().wrapping_add(offset));
            }
        });
        found
    }

    /// Starts loading what the values of the items with this hash point to; the items are best in
    /// the cache. For values with an allocation of their own, the third miss of a lookup.
    #[inline]
    pub fn prefetch_value(&self, hash: u64) {
        self.raw.candidates(hash, |item| {
            // SAFETY: the item is in this table, which `&self` keeps from changing.
            unsafe { T::prefetch_value(item) };
        });
    }

    /// Grows the table to where `additional` inserts go without growing.
    pub fn reserve(&mut self, additional: usize) {
        self.raw.reserve(additional, T::hash_of);
    }

    // ---- All items ----

    /// One step of a scan: calls `each` with the items of one bucket, about eight of them, and
    /// returns the cursor for the next step, or 0 at the end. A scan starts at 0. The module's
    /// header has the promise.
    pub fn scan(&self, cursor: u64, mut each: impl FnMut(Ref<'_, T>)) -> u64 {
        let Some((index, next)) = self.raw.scan_step(cursor) else { return 0 };
        self.raw.prefetch_chain(index);
        // SAFETY: The table is borrowed, so nothing changes it.
        for location in unsafe { self.raw.chain(index) } {
            // SAFETY: The chain gives good locations.
            let item = unsafe { location.item() };
            // SAFETY: The item is in this table.
            each(unsafe { Ref::new(item) });
        }
        next
    }

    /// One step of a scan, as [`Table::scan`], that can change and remove what it comes by.
    pub fn scan_mut(&mut self, cursor: u64, mut each: impl FnMut(Cell<'_, T>)) -> u64 {
        let Some((index, next)) = self.raw.scan_step(cursor) else { return 0 };
        self.raw.prefetch_chain(index);
        let len = self.len();
        // SAFETY: The cell below changes the table by `Location::set` or `RawTable::take` alone.
        for location in unsafe { self.raw.chain(index) } {
            let table = &mut self.raw;
            // A cell that closed its hole at once would move items across the walk.
            each(Cell { table, location, hash: cursor, settle: false, items: PhantomData });
        }
        self.raw.settle(cursor, len - self.len());
        next
    }

    /// All items, in no order.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { table: self, next_index: 0, chain: None }
    }

    /// Calls `each` with every item, as [`Cell::with_mut`] does.
    pub fn for_each_mut(&mut self, mut each: impl FnMut(&mut T)) {
        for index in 0..self.raw.bucket_count() {
            self.raw.prefetch_chain(index);
            // SAFETY: Nothing but `Location::set` changes the table.
            for location in unsafe { self.raw.chain(index) } {
                // SAFETY: The chain gives good locations, and the table is borrowed for change.
                unsafe { with_mut(location, &mut each) };
            }
        }
    }

    /// An item drawn at random, each with the same probability.
    pub fn random(&self, rng: &mut impl Rng) -> Option<Ref<'_, T>> {
        let mut drawn = None;
        self.raw.sample(1, &mut || rng.next_u64(), &mut |item| drawn = Some(item));
        // SAFETY: It is in this table.
        drawn.map(|item| unsafe { Ref::new(item) })
    }

    /// The cell of an item drawn at random, each with the same probability.
    pub fn random_mut(&mut self, rng: &mut impl Rng) -> Option<Cell<'_, T>> {
        let drawn = self.random(rng)?.as_raw();
        // SAFETY: The item is in this table.
        let hash = unsafe { T::hash_of(drawn) };
        let (location, _) = self.raw.find(hash, |item| item == drawn)?;
        Some(Cell { table: &mut self.raw, location, hash, settle: true, items: PhantomData })
    }

    /// Calls `each` with `count` items drawn at random, independently of each other, so that one
    /// may come twice; with none if the table is empty. Their cache misses overlap.
    pub fn sample(&self, rng: &mut impl Rng, count: usize, mut each: impl FnMut(Ref<'_, T>)) {
        self.raw.sample(count, &mut || rng.next_u64(), &mut |item| {
            // SAFETY: It is in this table.
            each(unsafe { Ref::new(item) });
        });
    }

    /// Calls `each` with all items of a bucket drawn at random: none, or some, about eight in the
    /// mean. Each item has the same chance to be among them, so they are a fair sample for
    /// eviction, at a fraction of the price of as many [`Table::random`]. Items of one bucket come
    /// together, though, for as long as the table has the same size.
    pub fn sample_bucket(&self, rng: &mut impl Rng, mut each: impl FnMut(Ref<'_, T>)) {
        let Some(index) = self.raw.random_bucket(rng.next_u64()) else { return };
        self.raw.prefetch_chain(index);
        // SAFETY: The table is borrowed, so nothing changes it.
        for location in unsafe { self.raw.chain(index) } {
            // SAFETY: The chain gives good locations.
            let item = unsafe { location.item() };
            // SAFETY: The item is in this table.
            each(unsafe { Ref::new(item) });
        }
    }

    /// Takes out up to `count` items, whichever come cheapest, and calls `each` with them; returns
    /// how many are left. Freeing a huge table in such steps never takes long.
    pub fn drain_step(&mut self, count: usize, mut each: impl FnMut(T)) -> usize {
        for _ in 0..count {
            let Some(item) = self.raw.pop() else { break };
            // SAFETY: The table has given it up.
            each(unsafe { T::from_raw(item) });
        }
        self.len()
    }

    /// Drops all items and frees all memory.
    pub fn clear(&mut self) {
        drop(mem::take(self));
    }
}

impl<'a, T: Item> IntoIterator for &'a Table<T> {
    type Item = Ref<'a, T>;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// What [`Table::entry`] finds.
pub enum Entry<'a, T: Item> {
    /// There is an item with the key.
    Occupied(Cell<'a, T>),
    /// There is none.
    Vacant(Vacant<'a, T>),
}

/// The cell of an item, to change or remove it.
pub struct Cell<'a, T: Item> {
    table: &'a mut RawTable,
    location: Location,
    /// The item's hash, or other bits that lead to its bucket.
    hash: u64,
    /// Whether a removal closes its hole at once.
    settle: bool,
    items: PhantomData<&'a mut Table<T>>,
}

impl<'a, T: Item> Cell<'a, T> {
    /// The item.
    #[inline]
    pub fn get(&self) -> Ref<'_, T> {
        // SAFETY: The cell borrows the table, so the location is good.
        let item = unsafe { self.location.item() };
        // SAFETY: The item is in the table.
        unsafe { Ref::new(item) }
    }

    /// The item, for as long as the table is borrowed.
    #[inline]
    pub fn into_ref(self) -> Ref<'a, T> {
        // SAFETY: The cell borrows the table, so the location is good.
        let item = unsafe { self.location.item() };
        // SAFETY: The item is in the table, which stays borrowed for `'a`.
        unsafe { Ref::new(item) }
    }

    /// Calls `change` with the item. It may become another allocation, with the same key.
    #[inline]
    pub fn with_mut<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: The cell borrows the table for change, so the location is good.
        unsafe { with_mut(self.location, change) }
    }

    /// Puts an item with the same key in this one's place, and returns this one.
    #[inline]
    pub fn replace(&mut self, item: T) -> T {
        self.with_mut(|old| mem::replace(old, item))
    }

    /// Takes the item out.
    #[inline]
    pub fn remove(self) -> T {
        // SAFETY: The cell borrows the table, so the location is good.
        let item = unsafe { self.table.take(self.location) };
        if self.settle {
            self.table.settle(self.hash, 1);
        }
        // SAFETY: The table has given it up.
        unsafe { T::from_raw(item) }
    }
}

/// Calls `change` with the item of a cell and stores the address it has then.
///
/// # Safety
///
/// `location` is good, and its table borrowed for change.
#[inline]
unsafe fn with_mut<T: Item, R>(location: Location, change: impl FnOnce(&mut T) -> R) -> R {
    /// Stores the address even if `change` unwinds.
    struct WriteBack<T: Item> {
        item: ManuallyDrop<T>,
        location: Location,
    }

    impl<T: Item> Drop for WriteBack<T> {
        #[inline]
        fn drop(&mut self) {
            // SAFETY: The item is not used after this.
            let item = unsafe { ManuallyDrop::take(&mut self.item) };
            // SAFETY: The caller of `with_mut` has the location and the table.
            unsafe { self.location.set(item.into_raw()) };
        }
    }

    // SAFETY: The caller's promise.
    let item = unsafe { location.item() };
    // SAFETY: The address is the table's, which nobody reads before it is stored again.
    let item = ManuallyDrop::new(unsafe { T::from_raw(item) });
    change(&mut WriteBack { item, location }.item)
}

/// The right to insert an item that is absent.
pub struct Vacant<'a, T: Item> {
    table: &'a mut Table<T>,
    hash: u64,
}

impl<'a, T: Item> Vacant<'a, T> {
    /// Inserts the item, whose key must be that of the lookup.
    #[inline]
    pub fn insert(self, item: T) -> Cell<'a, T> {
        self.table.insert_unique(self.hash, item)
    }
}

/// All items of a table; made by [`Table::iter`].
pub struct Iter<'a, T: Item> {
    table: &'a Table<T>,
    next_index: usize,
    chain: Option<Chain>,
}

impl<'a, T: Item> Iterator for Iter<'a, T> {
    type Item = Ref<'a, T>;

    #[inline]
    fn next(&mut self) -> Option<Ref<'a, T>> {
        loop {
            if let Some(location) = self.chain.as_mut().and_then(Iterator::next) {
                // SAFETY: The chain gives good locations.
                let item = unsafe { location.item() };
                // SAFETY: The item is in the table.
                return Some(unsafe { Ref::new(item) });
            }
            if self.next_index == self.table.raw.bucket_count() {
                return None;
            }
            self.table.raw.prefetch_chain(self.next_index);
            // SAFETY: The table is borrowed, so nothing changes it.
            self.chain = Some(unsafe { self.table.raw.chain(self.next_index) });
            self.next_index += 1;
        }
    }
}
