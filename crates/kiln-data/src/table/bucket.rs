//! One bucket: a cache line of nine cells and their tags.
//!
//! ```text
//! byte  0        9       10                                                  58        64
//!       │ 9 tags │control│ cell 0 │ cell 1 │ cell 2 │   …   │ cell 7 │ cell 8 or the link │
//!         1 byte  bit 0:   6 bytes each: the low 48 bits of the item's address
//!                 linked
//! ```
//!
//! A tag is 0 for an empty cell, else 1 to 255 from the item's hash, so that one 16-byte compare
//! finds the cells worth looking at (two items of a bucket share a tag once in 255 pairs). A bucket
//! that is full gives up its last cell for a link to an overflow bucket of the same form; the
//! link's tag is 0, so no lookup takes it for an item.
//!
//! Six bytes hold every address that a user process gets on `x86_64` and `aarch64` unless it asks
//! the kernel for more; [`Bucket::set`] checks it.

#![expect(unsafe_code, reason = "a 16-byte tag compare, and addresses packed into 48 bits")]

use std::{hint, ptr, ptr::NonNull};

/// Cells in a bucket.
pub(super) const CELLS: usize = 9;

const ALL_CELLS: u32 = (1 << CELLS) - 1;
const CONTROL: usize = CELLS;
const LINKED: u8 = 1;
const LINK_CELL: CellIndex = CellIndex(CELLS as u8 - 1);

/// A cell's place in its bucket, below [`CELLS`]: made by [`Cells`] alone.
#[derive(Clone, Copy)]
pub(super) struct CellIndex(u8);

impl CellIndex {
    #[inline]
    fn get(self) -> usize {
        // SAFETY: `Cells` yields only the places of bits below bit `CELLS`, and so is `LINK_CELL`.
        unsafe { hint::assert_unchecked((self.0 as usize) < CELLS) };
        self.0 as usize
    }

    /// Two bytes before the cell, where an eight-byte load holds the cell in its upper 48 bits.
    #[inline]
    fn word(self) -> usize {
        8 + 6 * self.get()
    }
}

/// A set of cells of one bucket, lowest first.
pub(super) struct Cells(u32);

impl Cells {
    pub(super) fn len(&self) -> usize {
        self.0.count_ones() as usize
    }
}

impl Iterator for Cells {
    type Item = CellIndex;

    #[inline]
    fn next(&mut self) -> Option<CellIndex> {
        if self.0 == 0 {
            return None;
        }
        let index = CellIndex(self.0.trailing_zeros() as u8);
        self.0 &= self.0 - 1;
        Some(index)
    }
}

/// The tag of a hash: bits 40 to 47, which neither the shard (top 10) nor the bucket (low bits)
/// uses, never 0.
#[inline]
pub(super) fn tag_of(hash: u64) -> u8 {
    ((hash >> 40) as u8).max(1)
}

/// See the module's drawing.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct Bucket([u8; 64]);

const _: () = assert!(size_of::<Bucket>() == CONTROL + 1 + 6 * CELLS);

impl Bucket {
    pub(super) const EMPTY: Self = Self([0; 64]);

    /// The cells whose tag is `tag`.
    #[inline]
    pub(super) fn matches(&self, tag: u8) -> Cells {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE2 is part of `x86_64`.
        let mask = unsafe { self.matches_sse2(tag) };
        #[cfg(not(target_arch = "x86_64"))]
        let mask = self.matches_portable(tag);
        Cells(mask & ALL_CELLS)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "sse2")]
    #[inline]
    fn matches_sse2(&self, tag: u8) -> u32 {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_load_si128, _mm_movemask_epi8, _mm_set1_epi8};
        // SAFETY: The bucket is 64 bytes at a multiple of 64.
        let tags = unsafe { _mm_load_si128(self.0.as_ptr().cast()) };
        _mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(tag.cast_signed()))) as u32
    }

    /// [`Bucket::matches`] in eight-byte words, for CPUs without SSE2.
    #[cfg(any(test, not(target_arch = "x86_64")))]
    fn matches_portable(&self, tag: u8) -> u32 {
        const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        const ONES: u64 = 0x0101_0101_0101_0101;
        let words = self.0.first_chunk().expect("a bucket has 64 bytes");
        let differing = u64::from_le_bytes(*words) ^ (ONES * u64::from(tag));
        // Bit 7 of each byte: is any bit of the byte set? No carry leaves a byte, so this is exact.
        let nonzero = ((differing & LOW_BITS) + LOW_BITS) | differing;
        let equal = (!nonzero & !LOW_BITS) >> 7;
        // Gathers bit 0 of byte k into bit k of the top byte.
        let mask = equal.wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask as u32 | u32::from(self.0[8] == tag) << 8
    }

    /// The cells that hold an item.
    #[inline]
    pub(super) fn occupied(&self) -> Cells {
        Cells(!self.matches(0).0 & ALL_CELLS)
    }

    /// The cells that an item can be put into.
    #[inline]
    pub(super) fn free(&self) -> Cells {
        let linked = u32::from(self.0[CONTROL] & LINKED);
        Cells(self.matches(0).0 & !(linked << LINK_CELL.0))
    }

    #[inline]
    pub(super) fn tag(&self, index: CellIndex) -> u8 {
        self.0[index.get()]
    }

    /// The item in an occupied cell.
    ///
    /// # Safety
    ///
    /// The cell is one of [`Bucket::occupied`].
    #[inline]
    pub(super) unsafe fn item(&self, index: CellIndex) -> NonNull<u8> {
        let address = self.address(index);
        // SAFETY: An occupied cell holds what `set` stored, which was not null.
        unsafe { NonNull::new_unchecked(address) }
    }

    /// Puts `item` into a cell, over whatever was there.
    ///
    /// # Panics
    ///
    /// If the address of `item` does not fit 48 bits.
    #[inline]
    pub(super) fn set(&mut self, index: CellIndex, tag: u8, item: NonNull<u8>) {
        debug_assert_ne!(tag, 0);
        self.set_address(index, item.as_ptr());
        self.0[index.get()] = tag;
    }

    /// Empties a cell; what it held is the caller's now.
    #[inline]
    pub(super) fn clear(&mut self, index: CellIndex) {
        self.0[index.get()] = 0;
    }

    /// The overflow bucket behind this one.
    #[inline]
    pub(super) fn link(&self) -> Option<NonNull<Bucket>> {
        if self.0[CONTROL] & LINKED == 0 {
            return None;
        }
        let address = self.address(LINK_CELL);
        // SAFETY: The control bit says that the cell holds what `set_link` stored.
        Some(unsafe { NonNull::new_unchecked(address.cast()) })
    }

    /// Makes the last cell the link to `overflow` and returns the item that was in it, if any.
    pub(super) fn set_link(&mut self, overflow: NonNull<Bucket>) -> Option<(u8, NonNull<u8>)> {
        let tag = self.tag(LINK_CELL);
        // SAFETY: The cell is read only if its tag says that it is occupied.
        let evicted = (tag != 0).then(|| (tag, unsafe { self.item(LINK_CELL) }));
        self.set_address(LINK_CELL, overflow.as_ptr().cast());
        self.clear(LINK_CELL);
        self.0[CONTROL] |= LINKED;
        evicted
    }

    /// Makes the last cell an empty one again; the overflow bucket is the caller's now.
    pub(super) fn unlink(&mut self) {
        debug_assert_eq!(self.tag(LINK_CELL), 0);
        self.0[CONTROL] &= !LINKED;
    }

    #[inline]
    fn address(&self, index: CellIndex) -> *mut u8 {
        let at = index.word();
        let word: [u8; 8] = self.0[at..at + 8].try_into().expect("the range has eight bytes");
        ptr::with_exposed_provenance_mut((u64::from_le_bytes(word) >> 16) as usize)
    }

    #[inline]
    fn set_address(&mut self, index: CellIndex, item: *mut u8) {
        let address = item.expose_provenance() as u64;
        assert!(address >> 48 == 0, "user-space addresses have 48 bits");
        let at = index.word() + 2;
        self.0[at..at + 6].copy_from_slice(&address.to_le_bytes()[..6]);
    }
}

/// Asks the CPU to bring the cache line at `address` closer. It may be any address.
#[inline]
pub(super) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: A prefetch reads nothing that the program can see and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    // Other CPUs: stable Rust has no prefetch for them, and the code is right without.
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::{Bucket, CELLS, Cells, NonNull, tag_of};

    #[test]
    fn a_tag_is_never_that_of_an_empty_cell() {
        assert_eq!(tag_of(0), 1);
        assert_eq!(tag_of(u64::MAX), 255);
        assert_eq!(tag_of(0x0000_7f00_0000_0000), 0x7f);
    }

    #[test]
    fn neighbors_do_not_disturb_each_other() {
        let mut bytes = [0_u8; 64];
        let items: Vec<_> = bytes.iter_mut().map(NonNull::from).take(CELLS).collect();
        let mut bucket = Bucket::EMPTY;
        assert_eq!(bucket.free().len(), CELLS);
        for (index, &item) in bucket.free().zip(&items) {
            bucket.set(index, 7 + index.0, item);
        }
        assert_eq!(bucket.free().len(), 0);
        for (index, &item) in bucket.occupied().zip(&items) {
            // SAFETY: The cell is occupied.
            assert_eq!(unsafe { bucket.item(index) }, item);
            assert_eq!(bucket.tag(index), 7 + index.0);
        }

        let mut overflow = Bucket::EMPTY;
        let evicted = bucket.set_link(NonNull::from(&mut overflow));
        assert_eq!(evicted, Some((15, items[8])));
        assert_eq!(bucket.link(), Some(NonNull::from(&mut overflow)));
        assert_eq!((bucket.occupied().len(), bucket.free().len()), (8, 0));
        bucket.unlink();
        assert_eq!((bucket.occupied().len(), bucket.free().len()), (8, 1));
        assert_eq!(bucket.link(), None);
    }

    #[test]
    fn both_ways_to_compare_tags_agree() {
        let mut state = 1_u64;
        for _ in 0..10_000 {
            let mut bucket = Bucket::EMPTY;
            for byte in &mut bucket.0 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = [0, 1, 0x7f, 0x80, 0x81, 0xff, 2, 0xfe][(state >> 61) as usize];
            }
            for tag in [0, 1, 2, 0x7f, 0x80, 0x81, 0xfe, 0xff, 0x55] {
                let simple = (0..CELLS).map(|i| u32::from(bucket.0[i] == tag) << i).sum();
                assert_eq!(bucket.matches_portable(tag), simple);
                assert_eq!(bucket.matches(tag).0, Cells(simple).0);
            }
        }
    }
}
