//! The table without its item type: buckets, segments, splitting and merging, on bare pointers.
//!
//! It is apart from [`super::Table`] so that this, the larger part, is compiled once. It never
//! reads an item: who needs a key hashed or compared passes a function.
//!
//! ```text
//! directory ──► segment 0   1 2 … 7   8 … 15   16 … 23   24 … 31   …
//! buckets in it:        1   1 1   1   1    1    2    2    4    4   8 …
//! ```
//!
//! Bucket `i` lies in segment `(i >> s) + 8 * s` with `s = max(floor(log2 i), 3) - 3`: eight
//! segments for each doubling, so that at most an eighth of the memory is ahead of its use, and
//! no bucket ever moves. The directory is an array of pointers whose eight of one doubling share
//! a cache line. Of the last segment only the buckets below `bucket_count` are initialised.
//!
//! Invariants:
//! - R1 `mask` is `bucket_count.next_power_of_two() - 1` (0 without buckets); the directory has
//!   `directory_capacity(segments)` places, the first `segments` of them filled, where
//!   `segments = segments_of(bucket_count)`.
//! - R2 An item of hash `h` is in the chain of bucket `bucket_index(h)` under the tag `tag_of(h)`.
//! - R3 `len` is the number of occupied cells, `overflow_count` that of the overflow buckets.
//! - R4 A chain has no cell free before its last bucket (so it is as short as it can be), except
//!   between a [`RawTable::take`] and the [`RawTable::settle`] that follows it.

#![expect(unsafe_code, reason = "buckets are linked and found by raw pointers")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use super::bucket::{Bucket, CELLS, CellIndex, Cells, prefetch, tag_of};

/// Items per bucket at which the table grows. See the header of [`super`] for the measurement.
const SPLIT_ABOVE: usize = 8;
/// Items per bucket at which it shrinks: half of it, so that churn does neither.
const MERGE_BELOW: usize = 4;
/// Buckets that a table grows to; beyond it chains lengthen. It holds 32 billion items.
const BUCKETS_MAX: usize = 1 << 32;
/// Random draws that may hit nothing before the next item in bucket order has to do. In a table
/// that only inserts and removals have shaped, one draw in about ten hits.
const MISSES_MAX: usize = 4_096;

/// Hashes the item of a cell, with the function whose values lookups pass.
pub(super) type HashOf = unsafe fn(NonNull<u8>) -> u64;

/// A cell of a table; good until the table changes.
#[derive(Clone, Copy)]
pub(super) struct Location {
    bucket: NonNull<Bucket>,
    index: CellIndex,
}

impl Location {
    /// The item in the cell.
    ///
    /// # Safety
    ///
    /// The table has not changed since it gave this location, or [`Location::set`] was all.
    #[inline]
    pub(super) unsafe fn item(self) -> NonNull<u8> {
        // SAFETY: Buckets live until they are merged away, which would be a change.
        let bucket = unsafe { self.bucket.as_ref() };
        // SAFETY: A location is that of an occupied cell.
        unsafe { bucket.item(self.index) }
    }

    /// Puts another item of the same hash into the cell.
    ///
    /// # Safety
    ///
    /// As for [`Location::item`], and the caller has the table to itself.
    #[inline]
    pub(super) unsafe fn set(mut self, item: NonNull<u8>) {
        // SAFETY: Buckets live until they are merged away; no other reference to it exists.
        let bucket = unsafe { self.bucket.as_mut() };
        bucket.set(self.index, bucket.tag(self.index), item);
    }
}

/// See the module's header.
pub(super) struct RawTable {
    directory: NonNull<NonNull<Bucket>>,
    len: usize,
    bucket_count: usize,
    mask: usize,
    overflow_count: u32,
    /// The most buckets that a chain ever had, up to 255: bounds the draws of [`RawTable::sample`].
    longest_chain: u8,
}

impl RawTable {
    pub(super) const fn new() -> Self {
        Self {
            directory: NonNull::dangling(),
            len: 0,
            bucket_count: 0,
            mask: 0,
            overflow_count: 0,
            longest_chain: 1,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bucket_count(&self) -> usize {
        self.bucket_count
    }

    /// Bytes allocated for directory, segments and overflow buckets.
    pub(super) fn memory_bytes(&self) -> usize {
        let Some(last) = self.bucket_count.checked_sub(1) else { return 0 };
        let place = Place::of(last);
        let buckets = last - place.offset + place.segment_len() + self.overflow_count as usize;
        let directory = directory_layout(directory_capacity(place.segment + 1));
        buckets * size_of::<Bucket>() + directory.size()
    }

    // ---- Lookup ----

    /// The first cell under `hash` whose item `is_match` accepts, and the item.
    #[inline]
    pub(super) fn find(
        &self,
        hash: u64,
        mut is_match: impl FnMut(NonNull<u8>) -> bool,
    ) -> Option<(Location, NonNull<u8>)> {
        let mut head = self.head_of(hash)?;
        let tag = tag_of(hash);
        loop {
            // SAFETY: Heads and links lead to live buckets.
            let bucket = unsafe { head.as_ref() };
            for index in bucket.matches(tag) {
                // SAFETY: `tag` is not 0, so the cell is occupied.
                let item = unsafe { bucket.item(index) };
                if is_match(item) {
                    return Some((Location { bucket: head, index }, item));
                }
            }
            head = bucket.link()?;
        }
    }

    /// Asks for the line of the bucket of `hash`.
    #[inline]
    pub(super) fn prefetch_bucket(&self, hash: u64) {
        if let Some(head) = self.head_of(hash) {
            prefetch(head.as_ptr());
        }
    }

    /// Calls `each` with the items that may be the one of `hash`, without looking at them. Of an
    /// overflow bucket only the line is asked for.
    #[inline]
    pub(super) fn candidates(&self, hash: u64, mut each: impl FnMut(NonNull<u8>)) {
        let Some(head) = self.head_of(hash) else { return };
        // SAFETY: A head leads to a live bucket.
        let bucket = unsafe { head.as_ref() };
        for index in bucket.matches(tag_of(hash)) {
            // SAFETY: The tag of a hash is not 0, so the cell is occupied.
            each(unsafe { bucket.item(index) });
        }
        if let Some(overflow) = bucket.link() {
            prefetch(overflow.as_ptr());
        }
    }

    /// Linear hashing: the low bits of the hash, one bit less for buckets not yet split.
    #[inline]
    fn bucket_index(&self, hash: u64) -> usize {
        let index = hash as usize & self.mask;
        if index < self.bucket_count { index } else { index & (self.mask >> 1) }
    }

    #[inline]
    fn head_of(&self, hash: u64) -> Option<NonNull<Bucket>> {
        if self.len == 0 {
            return None;
        }
        // SAFETY: There is an item, hence a bucket, and `bucket_index` is below their count (R1).
        Some(unsafe { self.head_unchecked(self.bucket_index(hash)) })
    }

    fn head(&self, index: usize) -> NonNull<Bucket> {
        assert!(index < self.bucket_count);
        // SAFETY: Checked one line up.
        unsafe { self.head_unchecked(index) }
    }

    /// # Safety
    ///
    /// `index` is below `bucket_count`.
    #[inline]
    unsafe fn head_unchecked(&self, index: usize) -> NonNull<Bucket> {
        let place = Place::of(index);
        // SAFETY: The directory has a place for the segment of each bucket (R1).
        let segment = unsafe { self.directory.add(place.segment) };
        // SAFETY: It is filled.
        let segment = unsafe { segment.read() };
        // SAFETY: The segment has room for the bucket.
        unsafe { segment.add(place.offset) }
    }

    // ---- Change ----

    /// Puts `item` under `hash`, first growing the table by a bucket if it is full.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, item: NonNull<u8>, hash_of: HashOf) -> Location {
        if self.len >= self.bucket_count * SPLIT_ABOVE && self.bucket_count < BUCKETS_MAX {
            self.split(hash_of);
        }
        self.len += 1;
        let head = self.head_of(hash).expect("there are buckets and an item is counted");
        self.put(head, tag_of(hash), item)
    }

    /// Grows the table so that `additional` more inserts will not.
    pub(super) fn reserve(&mut self, additional: usize, hash_of: HashOf) {
        let wanted = (self.len + additional).div_ceil(SPLIT_ABOVE).min(BUCKETS_MAX);
        while self.bucket_count < wanted {
            self.split(hash_of);
        }
    }

    /// Takes the item out of a cell. [`RawTable::settle`] must follow.
    ///
    /// # Safety
    ///
    /// The table has not changed since it gave `location`, or [`Location::set`] was all.
    pub(super) unsafe fn take(&mut self, mut location: Location) -> NonNull<u8> {
        // SAFETY: The caller's promise.
        let item = unsafe { location.item() };
        // SAFETY: Buckets live until they are merged away; `self` is borrowed for change.
        unsafe { location.bucket.as_mut() }.clear(location.index);
        self.len -= 1;
        item
    }

    /// Closes the holes that `taken` items left in the chain of `hash`, and shrinks the table if
    /// it is sparse now.
    pub(super) fn settle(&mut self, hash: u64, taken: usize) {
        if self.bucket_count == 0 {
            return;
        }
        self.compact(self.head(self.bucket_index(hash)));
        for _ in 0..taken {
            if self.bucket_count > 1 && self.len < self.bucket_count * MERGE_BELOW {
                self.merge();
            }
        }
    }

    /// Takes any item out, from the last bucket, with which buckets go as they empty. What is
    /// left is a table as good as any.
    pub(super) fn pop(&mut self) -> Option<NonNull<u8>> {
        if self.len == 0 {
            return None;
        }
        loop {
            let mut head = self.head(self.bucket_count - 1);
            // SAFETY: A head leads to a live bucket, and `self` is borrowed for change.
            let bucket = unsafe { head.as_mut() };
            if let Some(index) = bucket.occupied().next() {
                // SAFETY: The cell is occupied.
                let item = unsafe { bucket.item(index) };
                bucket.clear(index);
                self.len -= 1;
                return Some(item);
            }
            if let Some(overflow) = bucket.link() {
                // SAFETY: A link leads to a live bucket.
                *bucket = unsafe { overflow.read() };
                self.free_overflow(overflow);
            } else {
                self.remove_last_bucket();
            }
        }
    }

    /// Frees all buckets of a table without items.
    pub(super) fn free_buckets(&mut self) {
        assert_eq!(self.len, 0);
        while self.bucket_count > 0 {
            let mut head = self.head(self.bucket_count - 1);
            // SAFETY: A head leads to a live bucket, and `self` is borrowed for change.
            while let Some(overflow) = unsafe { head.as_mut() }.link() {
                // SAFETY: A link leads to a live bucket.
                let contents = unsafe { overflow.read() };
                // SAFETY: So does a head.
                unsafe { head.write(contents) };
                self.free_overflow(overflow);
            }
            self.remove_last_bucket();
        }
    }

    /// Adds a bucket and moves there what belongs there, all of it from one chain.
    #[cold]
    fn split(&mut self, hash_of: HashOf) {
        self.add_bucket();
        let new_index = self.bucket_count - 1;
        if new_index == 0 {
            return;
        }
        let new = self.head(new_index);
        let parent = self.head(new_index & (self.mask >> 1));
        // The items are all over the memory: ask for all of them before waiting for one.
        self.prefetch_chain(new_index & (self.mask >> 1));
        for mut location in Chain::at(parent) {
            // SAFETY: The chain gives live locations; only cells before this one have changed.
            let item = unsafe { location.item() };
            // SAFETY: `item` is in the table, which owns it.
            let hash = unsafe { hash_of(item) };
            if hash as usize & self.mask == new_index {
                // SAFETY: The bucket lives, and `self` is borrowed for change.
                unsafe { location.bucket.as_mut() }.clear(location.index);
                self.put(new, tag_of(hash), item);
            }
        }
        self.compact(parent);
    }

    /// Removes the last bucket, moving its items to the bucket that it was split from.
    #[cold]
    fn merge(&mut self) {
        let last_index = self.bucket_count - 1;
        let parent = self.head(last_index & (self.mask >> 1));
        let mut last = self.head(last_index);
        loop {
            // SAFETY: A head leads to a live bucket, and `self` is borrowed for change.
            let bucket = unsafe { last.as_mut() };
            for index in bucket.occupied() {
                // SAFETY: The cell is occupied.
                let item = unsafe { bucket.item(index) };
                self.put(parent, bucket.tag(index), item);
            }
            let Some(overflow) = bucket.link() else { break };
            // SAFETY: A link leads to a live bucket.
            *bucket = unsafe { overflow.read() };
            self.free_overflow(overflow);
        }
        self.remove_last_bucket();
    }

    /// Puts an item into the first free cell of a chain. `len` is the caller's to count.
    #[inline]
    fn put(&mut self, head: NonNull<Bucket>, tag: u8, item: NonNull<u8>) -> Location {
        let mut at = head;
        let mut depth = 1_u8;
        loop {
            // SAFETY: Heads and links lead to live buckets, and `self` is borrowed for change.
            let bucket = unsafe { at.as_mut() };
            if let Some(index) = bucket.free().next() {
                bucket.set(index, tag, item);
                return Location { bucket: at, index };
            }
            depth = depth.saturating_add(1);
            at = match bucket.link() {
                Some(overflow) => overflow,
                None => self.extend(at, depth),
            };
        }
    }

    /// Links an overflow bucket behind `tail`, which is full.
    #[cold]
    fn extend(&mut self, mut tail: NonNull<Bucket>, depth: u8) -> NonNull<Bucket> {
        let overflow = allocate::<Bucket>(Layout::new::<Bucket>());
        self.overflow_count += 1;
        self.longest_chain = self.longest_chain.max(depth);
        let mut contents = Bucket::EMPTY;
        // SAFETY: The caller's bucket is a live one, and `self` is borrowed for change.
        if let Some((tag, item)) = unsafe { tail.as_mut() }.set_link(overflow) {
            let index = contents.free().next().expect("it is empty");
            contents.set(index, tag, item);
        }
        // SAFETY: It has just been allocated with this layout.
        unsafe { overflow.write(contents) };
        overflow
    }

    /// Restores R4 for a chain: fills its holes from its end and frees what is empty then.
    fn compact(&mut self, head: NonNull<Bucket>) {
        loop {
            // SAFETY: Heads and links lead to live buckets, and `self` is borrowed for change;
            // here and below.
            let Some(mut tail) = unsafe { head.as_ref() }.link() else { return };
            let mut parent = head;
            let mut hole = None;
            loop {
                // SAFETY: As above.
                let free = unsafe { parent.as_ref() }.free().next();
                hole = hole.or(free.map(|index| (parent, index)));
                // SAFETY: As above.
                let Some(next) = unsafe { tail.as_ref() }.link() else { break };
                (parent, tail) = (tail, next);
            }

            // SAFETY: As above; the tail is neither the head nor where the hole is.
            let last = unsafe { tail.as_mut() };
            let items = last.occupied().len();
            let moved = last.occupied().next().map(|index| {
                // SAFETY: The cell is occupied.
                (index, last.tag(index), unsafe { last.item(index) })
            });
            match (moved, hole) {
                (Some((from, tag, item)), Some((mut bucket, to))) => {
                    last.clear(from);
                    // SAFETY: As above.
                    unsafe { bucket.as_mut() }.set(to, tag, item);
                }
                (Some((_, tag, item)), None) if items == 1 => {
                    // A lone item fits where the link to its bucket is.
                    self.unlink(parent, tail);
                    self.put(head, tag, item);
                    return;
                }
                (Some(_), None) => return,
                (None, _) => self.unlink(parent, tail),
            }
        }
    }

    /// Frees the last bucket of a chain. Its items are the caller's.
    fn unlink(&mut self, mut parent: NonNull<Bucket>, tail: NonNull<Bucket>) {
        // SAFETY: The caller's bucket is a live one, and `self` is borrowed for change.
        unsafe { parent.as_mut() }.unlink();
        self.free_overflow(tail);
    }

    fn free_overflow(&mut self, bucket: NonNull<Bucket>) {
        self.overflow_count -= 1;
        // SAFETY: `extend` allocated it with this layout, and the caller has removed its link.
        unsafe { dealloc(bucket.as_ptr().cast(), Layout::new::<Bucket>()) };
    }

    // ---- Segments ----

    /// Makes room for one more bucket, and makes it an empty one.
    fn add_bucket(&mut self) {
        let place = Place::of(self.bucket_count);
        if place.offset == 0 {
            self.resize_directory(place.segment, place.segment + 1);
            let segment = allocate::<Bucket>(segment_layout(place.segment_len()));
            // SAFETY: The directory has a place for it since two lines up.
            let entry = unsafe { self.directory.add(place.segment) };
            // SAFETY: The same.
            unsafe { entry.write(segment) };
        }
        self.set_bucket_count(self.bucket_count + 1);
        // SAFETY: A bucket without references to it, in memory that is allocated.
        unsafe { self.head(self.bucket_count - 1).write(Bucket::EMPTY) };
    }

    /// Forgets the last bucket, which is empty and has no overflow.
    fn remove_last_bucket(&mut self) {
        let last = self.bucket_count - 1;
        let place = Place::of(last);
        let head = self.head(last);
        self.set_bucket_count(last);
        if place.offset == 0 {
            let layout = segment_layout(place.segment_len());
            // SAFETY: The segment was allocated with this layout, and its first bucket was the
            // last one in use.
            unsafe { dealloc(head.as_ptr().cast(), layout) };
            self.resize_directory(place.segment + 1, place.segment);
        }
    }

    fn set_bucket_count(&mut self, count: usize) {
        self.bucket_count = count;
        self.mask = count.next_power_of_two() - 1;
    }

    /// Moves the directory if the number of segments needs another capacity.
    fn resize_directory(&mut self, old_segments: usize, new_segments: usize) {
        let (old, new) = (directory_capacity(old_segments), directory_capacity(new_segments));
        if old == new {
            return;
        }
        let (old_layout, new_layout) = (directory_layout(old), directory_layout(new));
        let old_directory = self.directory;
        self.directory = if new == 0 { NonNull::dangling() } else { allocate(new_layout) };
        let kept = old_segments.min(new_segments);
        // SAFETY: Both hold at least `kept` pointers, and they are different allocations.
        unsafe { self.directory.copy_from_nonoverlapping(old_directory, kept) };
        if old > 0 {
            // SAFETY: It was allocated with this layout, and nothing points to it any more.
            unsafe { dealloc(old_directory.as_ptr().cast(), old_layout) };
        }
    }

    // ---- Walks ----

    /// The occupied cells of the chain of a bucket.
    ///
    /// # Safety
    ///
    /// As long as the chain is used, the table changes by nothing but [`RawTable::take`] and
    /// [`Location::set`], at the location that the chain gave last.
    pub(super) unsafe fn chain(&self, index: usize) -> Chain {
        Chain::at(self.head(index))
    }

    /// Asks for the lines of all items in a chain, so that their misses overlap.
    pub(super) fn prefetch_chain(&self, index: usize) {
        // SAFETY: Nothing changes.
        for location in unsafe { self.chain(index) } {
            // SAFETY: The chain gives live locations.
            prefetch(unsafe { location.item() }.as_ptr());
        }
    }

    /// The bucket at a scan's cursor and the cursor behind it; `None` without buckets. See the
    /// header of [`super`] for what a cursor is.
    pub(super) fn scan_step(&self, cursor: u64) -> Option<(usize, u64)> {
        if self.bucket_count == 0 {
            return None;
        }
        let index = self.bucket_index(cursor);
        let half = (self.mask >> 1) + 1;
        let is_split = self.mask == 0 || index >= half || index + half < self.bucket_count;
        let bits = self.mask.count_ones() - u32::from(!is_split);
        // The bucket covers the positions that share their top `bits`.
        let Some(width) = 1_u64.checked_shl(64 - bits) else { return Some((index, 0)) };
        let start = cursor.reverse_bits() & !(width - 1);
        Some((index, start.wrapping_add(width).reverse_bits()))
    }

    /// A bucket drawn at random; `None` without buckets.
    pub(super) fn random_bucket(&self, random: u64) -> Option<usize> {
        (self.bucket_count > 0).then(|| scale(random, self.bucket_count).0)
    }

    /// Calls `each` with `wanted` items drawn at random, independently and each item alike; with
    /// none if there is none. `random` gives uniform 64-bit numbers.
    ///
    /// A draw picks a bucket and a number below the capacity of the longest chain; it hits if the
    /// bucket's chain has an item of that number, so that no item is favored for its bucket.
    pub(super) fn sample(
        &self,
        wanted: usize,
        random: &mut dyn FnMut() -> u64,
        each: &mut dyn FnMut(NonNull<u8>),
    ) {
        const BATCH: usize = 16;
        if self.len == 0 {
            return;
        }
        let capacity = usize::from(self.longest_chain) * (CELLS - 1) + 1;
        let draws_per_hit = (self.bucket_count * capacity).div_ceil(self.len);
        let mut missing = wanted;
        let mut misses = 0;
        while missing > 0 {
            // Misses of the cache overlap: first the buckets of a batch, then its items.
            let mut draws = [(NonNull::dangling(), 0); BATCH];
            let mut hits = [None; BATCH];
            let batch = missing.saturating_mul(draws_per_hit).clamp(1, BATCH);
            for (head, number) in &mut draws[..batch] {
                let (index, fraction) = scale(random(), self.bucket_count);
                *head = self.head(index);
                *number = scale(fraction, capacity).0;
                prefetch(head.as_ptr());
            }
            for (hit, &(head, number)) in hits.iter_mut().zip(&draws[..batch]) {
                *hit = Chain::at(head).item(number);
                match hit {
                    Some(item) => prefetch(item.as_ptr()),
                    None => misses += 1,
                }
            }
            if misses > MISSES_MAX {
                let (index, fraction) = scale(random(), self.bucket_count);
                hits[0] = self.item_after(index, fraction);
            }
            for item in hits.into_iter().flatten().take(missing) {
                each(item);
                missing -= 1;
                misses = 0;
            }
        }
    }

    /// Some item of the first chain from `index` on that has one, round the end if need be.
    fn item_after(&self, index: usize, fraction: u64) -> Option<NonNull<u8>> {
        // SAFETY: Nothing changes.
        let chain = |index| unsafe { self.chain(index) };
        let mut indices = (index..self.bucket_count).chain(0..index);
        let index = indices.find(|&index| chain(index).next().is_some())?;
        chain(index).item(scale(fraction, chain(index).count()).0)
    }
}

/// A uniform number below `below` of a uniform 64-bit one, and what is left of that: a uniform
/// number of fewer bits.
fn scale(random: u64, below: usize) -> (usize, u64) {
    let product = u128::from(random) * below as u128;
    ((product >> 64) as usize, product as u64)
}

/// Made by [`RawTable::chain`].
pub(super) struct Chain {
    bucket: NonNull<Bucket>,
    cells: Cells,
}

impl Chain {
    fn at(head: NonNull<Bucket>) -> Self {
        // SAFETY: Only this module calls this, with heads and links, which lead to live buckets.
        Self { bucket: head, cells: unsafe { head.as_ref() }.occupied() }
    }

    /// The item of the chain's `number`th occupied cell from here.
    #[inline]
    fn item(mut self, mut number: usize) -> Option<NonNull<u8>> {
        while number >= self.cells.len() {
            number -= self.cells.len();
            // SAFETY: Whoever walks the chain keeps its buckets.
            self = Self::at(unsafe { self.bucket.as_ref() }.link()?);
        }
        let location = Location { bucket: self.bucket, index: self.cells.nth(number)? };
        // SAFETY: The cell is occupied.
        Some(unsafe { location.item() })
    }
}

impl Iterator for Chain {
    type Item = Location;

    #[inline]
    fn next(&mut self) -> Option<Location> {
        loop {
            if let Some(index) = self.cells.next() {
                return Some(Location { bucket: self.bucket, index });
            }
            // SAFETY: Whoever walks the chain keeps its buckets.
            let next = unsafe { self.bucket.as_ref() }.link()?;
            *self = Self::at(next);
        }
    }
}

/// Where a bucket lies.
struct Place {
    segment: usize,
    offset: usize,
    /// Buckets of its segment: 2 to this power.
    shift: u32,
}

impl Place {
    #[inline]
    fn of(index: usize) -> Self {
        let shift = (index | 8).ilog2() - 3;
        let segment = shift as usize * 8 + (index >> shift);
        Self { segment, offset: index & ((1 << shift) - 1), shift }
    }

    fn segment_len(&self) -> usize {
        1 << self.shift
    }
}

/// Places of a directory for so many segments: tight while small, then a cache line at a time.
fn directory_capacity(segments: usize) -> usize {
    match segments {
        0 => 0,
        1..8 => segments.next_power_of_two(),
        _ => segments.next_multiple_of(8),
    }
}

fn directory_layout(capacity: usize) -> Layout {
    let align = if capacity < 8 { align_of::<NonNull<Bucket>>() } else { 64 };
    Layout::array::<NonNull<Bucket>>(capacity)
        .and_then(|layout| layout.align_to(align))
        .expect("a directory has less than 300 places")
}

fn segment_layout(buckets: usize) -> Layout {
    Layout::array::<Bucket>(buckets).expect("BUCKETS_MAX buckets are addressable")
}

/// Memory for `layout`, which is not of size 0, uninitialised.
fn allocate<T>(layout: Layout) -> NonNull<T> {
    assert_ne!(layout.size(), 0);
    // SAFETY: The size is not 0.
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}
