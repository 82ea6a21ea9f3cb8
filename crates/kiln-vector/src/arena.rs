//! Rows of one fixed size under `u32` ids, in segments that are never moved.
//!
//! ```text
//! segment:  0        1        2                4 ...                     s
//! rows:    16       32       64              256 ...               16 << s
//! ids:    0..16   16..48   48..112 ...
//! ```
//!
//! Segment `s` has twice the rows of the one before, so 28 pointers reach 2^32 rows, a small set
//! costs little, and an id becomes an address by one count of leading zeros and one multiply.
//! A segment of 2 MiB and more is reserved from the system and touched only as rows are used, in
//! pages of 2 MiB where the system grants them (random rows cost 1.2 to 1.6 times less time there
//! than in pages of 4 KiB); smaller ones come from the heap. Both are zero at first.
//!
//! Rules between the threads:
//!
//! 1. A segment's address is written once and stays until the arena is dropped, so a row may be
//!    read without a lock by anybody who was given its id.
//! 2. An id is handed out to one owner. The bytes of a row belong to the owner alone until it
//!    gives the id to others by a release store, and again after the grace period that follows its
//!    removal (`epoch.rs`). In between the bytes are read only, except for what is atomic.
//!
//! Freed ids are handed out again, the last freed first, before the arena grows.

#![expect(unsafe_code, reason = "segments are raw memory, reached by an id")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{NonNull, null_mut};

use kiln_base::sync::Mutex;
use kiln_base::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

const FIRST_ROWS_LOG2: u32 = 4;
const SEGMENTS: usize = (32 - FIRST_ROWS_LOG2) as usize;
/// Rows begin at multiples of a cache line.
pub(crate) const LINE: usize = 64;
/// A page of the larger kind, and the size from which a segment is mapped rather than allocated.
const HUGE_PAGE: usize = 2 << 20;

/// Storage of rows. See the module for who may touch what.
pub(crate) struct Arena {
    stride: usize,
    segments: [AtomicPtr<u8>; SEGMENTS],
    /// Ids below this have been handed out at some time.
    end: AtomicU32,
    ids: Mutex<Ids>,
}

#[derive(Default)]
struct Ids {
    free: Vec<u32>,
    /// Mapped segments: address and length as the system gave them.
    mappings: Vec<(usize, usize)>,
    /// Bytes of mapped segments that were counted as used memory.
    counted: usize,
}

impl Arena {
    /// An empty arena of rows of `stride` bytes, a multiple of [`LINE`].
    pub(crate) fn new(stride: usize) -> Self {
        assert!(stride > 0 && stride.is_multiple_of(LINE), "rows are whole cache lines");
        Self {
            stride,
            segments: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
            end: AtomicU32::new(0),
            ids: Mutex::default(),
        }
    }

    /// Hands out an id. Its row holds zeros or what its last owner left.
    pub(crate) fn allocate(&self) -> u32 {
        let mut ids = self.ids.lock();
        if let Some(id) = ids.free.pop() {
            return id;
        }
        // Relaxed: written under the lock only.
        let id = self.end.load(Ordering::Relaxed);
        assert!(id < u32::MAX - 16, "an arena holds fewer than 2^32 rows");
        let segment = locate(id).0;
        if self.segments[segment].load(Ordering::Relaxed).is_null() {
            let start = self.add_segment(segment, &mut ids);
            // Release: the zeros of the heap are written before the address is seen.
            self.segments[segment].store(start.as_ptr(), Ordering::Release);
        }
        if self.is_mapped(segment) {
            // The allocator does not see mapped memory, so it is counted here as it is touched.
            ids.counted += self.stride;
            kiln_base::memory::count(self.stride as i64);
        }
        self.end.store(id + 1, Ordering::Release);
        id
    }

    /// Takes an id back. Nobody may use its row any more.
    pub(crate) fn free(&self, id: u32) {
        self.ids.lock().free.push(id);
    }

    /// The first byte of a row.
    #[inline]
    pub(crate) fn row(&self, id: u32) -> *mut u8 {
        let (segment, row) = locate(id);
        // Acquire pairs with the store in `allocate`; on x86 it is a plain load.
        let start = self.segments[segment].load(Ordering::Acquire);
        debug_assert!(!start.is_null(), "row {id} was never handed out");
        start.wrapping_add(row * self.stride)
    }

    /// A row, or its start, as slots that all threads may use at once.
    #[inline]
    pub(crate) fn slots(&self, id: u32, count: usize) -> &[AtomicU32] {
        debug_assert!(count * size_of::<u32>() <= self.stride);
        self.at(id, 0, count)
    }

    /// `count` values of type `T` at an offset in a row.
    ///
    /// `T` must be made of atomics for which zeros are valid, and that part of the rows must be
    /// used as `T` by everybody, always.
    #[inline]
    pub(crate) fn at<T>(&self, id: u32, offset: usize, count: usize) -> &[T] {
        debug_assert!(offset.is_multiple_of(align_of::<T>()) && align_of::<T>() <= LINE);
        debug_assert!(offset + count * size_of::<T>() <= self.stride);
        let start = self.row(id).wrapping_add(offset).cast::<T>();
        // SAFETY: the row has that many bytes there, aligned, zeroed at first, and stays as long
        // as the arena. That they are used as `T` only is what the callers in `node.rs` and
        // `graph.rs` keep to; being atomics, they may be shared.
        unsafe { std::slice::from_raw_parts(start, count) }
    }

    /// Ids from here on have never been handed out.
    pub(crate) fn end(&self) -> u32 {
        self.end.load(Ordering::Acquire)
    }

    /// Bytes in use: all of the heap's segments, and of mapped ones what has been touched.
    pub(crate) fn memory_bytes(&self) -> usize {
        let ids = self.ids.lock();
        let heap: usize = (0..SEGMENTS)
            .filter(|&s| !self.is_mapped(s))
            .filter(|&s| !self.segments[s].load(Ordering::Relaxed).is_null())
            .map(|s| self.segment_bytes(s))
            .sum();
        heap + ids.counted + ids.free.capacity() * size_of::<u32>()
    }

    fn segment_bytes(&self, segment: usize) -> usize {
        self.stride << (segment as u32 + FIRST_ROWS_LOG2)
    }

    fn is_mapped(&self, segment: usize) -> bool {
        self.segment_bytes(segment) >= HUGE_PAGE
    }

    fn heap_layout(&self, segment: usize) -> Layout {
        Layout::from_size_align(self.segment_bytes(segment), LINE).expect("below 2 MiB")
    }

    #[cold]
    fn add_segment(&self, segment: usize, ids: &mut Ids) -> NonNull<u8> {
        if self.is_mapped(segment) {
            return map(self.segment_bytes(segment), &mut ids.mappings);
        }
        let layout = self.heap_layout(segment);
        // SAFETY: the layout's size is not zero, since `stride` is not.
        let start = unsafe { alloc_zeroed(layout) };
        NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout))
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for segment in (0..SEGMENTS).filter(|&s| !self.is_mapped(s)) {
            let start = self.segments[segment].load(Ordering::Acquire);
            if !start.is_null() {
                // SAFETY: `add_segment` allocated it with this layout; nobody is left to use it.
                unsafe { dealloc(start, self.heap_layout(segment)) };
            }
        }
        let ids = self.ids.lock();
        for &(address, length) in &ids.mappings {
            // SAFETY: `map` made exactly this mapping, and nobody is left to use it.
            let unmapped =
                unsafe { munmap(std::ptr::with_exposed_provenance_mut(address), length) };
            unmapped.expect("the mapping is ours");
        }
        kiln_base::memory::count(-(ids.counted as i64));
    }
}

/// The segment of an id and the row's number in it.
#[inline]
fn locate(id: u32) -> (usize, usize) {
    let shifted = id + (1 << FIRST_ROWS_LOG2);
    let segment = 31 - FIRST_ROWS_LOG2 - shifted.leading_zeros();
    (segment as usize, (shifted - ((1 << FIRST_ROWS_LOG2) << segment)) as usize)
}

/// Reserves `bytes` of zeroed address space that begins at a multiple of the larger page.
fn map(bytes: usize, mappings: &mut Vec<(usize, usize)>) -> NonNull<u8> {
    let length = bytes + HUGE_PAGE;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice touches nobody's memory.
    let start = unsafe { mmap_anonymous(null_mut(), length, protection, flags) };
    let start = start.unwrap_or_else(|_| {
        handle_alloc_error(Layout::from_size_align(length, 1).expect("a size that fits"))
    });
    mappings.push((start.expose_provenance(), length));
    let start = start.cast::<u8>();
    let aligned = start.wrapping_add(start.align_offset(HUGE_PAGE));
    // Refused where large pages are switched off: then the small ones serve.
    // SAFETY: the range lies in the mapping just made; the advice changes no contents.
    let _ = unsafe { madvise(aligned.cast(), bytes, Advice::LinuxHugepage) };
    NonNull::new(aligned).expect("the system maps nothing at address zero")
}

#[cfg(test)]
mod tests {
    use super::{Arena, locate};

    #[test]
    fn segments_double_and_cover_all_ids() {
        assert_eq!(locate(0), (0, 0));
        assert_eq!(locate(15), (0, 15));
        assert_eq!(locate(16), (1, 0));
        assert_eq!(locate(47), (1, 31));
        assert_eq!(locate(48), (2, 0));
        assert_eq!(locate(u32::MAX - 16), (27, (1 << 31) - 1));
    }

    #[test]
    fn rows_are_zeroed_apart_and_reused() {
        // 6,000 rows of 1,792 bytes reach from the heap's segments into mapped ones.
        let arena = Arena::new(1_792);
        let ids: Vec<u32> = (0..6_000).map(|_| arena.allocate()).collect();
        for &id in &ids {
            // SAFETY: this test is the only owner of every row, each of 1,792 bytes.
            let row = unsafe { std::slice::from_raw_parts_mut(arena.row(id), 1_792) };
            assert!(row.iter().all(|&byte| byte == 0));
            row.fill(1);
        }
        let used = arena.memory_bytes();
        assert!((6_000 * 1_792..8_192 * 1_792).contains(&used));
        arena.free(4_711);
        assert_eq!(arena.allocate(), 4_711);
        assert_eq!(arena.end(), 6_000);
    }
}
