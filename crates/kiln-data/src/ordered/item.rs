//! One element of a big sorted set: score and member in a single allocation, reached by two
//! thin pointers.
//!
//! ```text
//! ZItem (in the table, owns) ──┐      score   len     member
//!                              ├────► f64  │  u32  │  len bytes
//! ItemRef (in the tree, copy) ─┘      0       8       12
//! ```
//!
//! The bytes start at 12 rather than at the 16 of a Rust struct: four bytes per element.
//! A `ZItem` frees the allocation; an [`ItemRef`] is a plain address, and whoever makes one
//! promises that it is gone before the item is (see [`ZItem::share`]).

#![expect(unsafe_code, reason = "an allocation with a length of its own, shared by two owners")]

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    mem::ManuallyDrop,
    ptr::NonNull,
    slice,
};

use crate::{table::Item, thin_buf::size_class};

const LEN_OFFSET: usize = 8;
const MEMBER_OFFSET: usize = 12;

/// A score and a member, owned.
#[repr(transparent)]
pub(crate) struct ZItem(ItemRef);

/// The address of a [`ZItem`]'s allocation.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ItemRef(NonNull<u8>);

// SAFETY: an item is reached only through the sorted set that owns it, by `&` for reading and by
// `&mut` for writing, so moving the set to another thread moves all that can reach the item.
unsafe impl Send for ItemRef {}
// SAFETY: as above; no method changes an item through `&`.
unsafe impl Sync for ItemRef {}

impl ZItem {
    /// An item of its own.
    ///
    /// # Panics
    ///
    /// If `member` has 4 GiB or more, or `score` is not a number: commands refuse both.
    pub(crate) fn new(score: f64, member: &[u8]) -> Self {
        assert!(!score.is_nan(), "a score is a number");
        let len = u32::try_from(member.len()).expect("a member is shorter than 4 GiB");
        let layout = layout(member.len());
        // SAFETY: the layout has at least the twelve bytes of score and length.
        let allocation = unsafe { alloc(layout) };
        let Some(base) = NonNull::new(allocation) else { handle_alloc_error(layout) };
        // SAFETY: eight bytes at offset 0, which `layout` aligns for an `f64`.
        unsafe { base.cast::<f64>().write(score) };
        // SAFETY: inside the allocation, see the drawing.
        let len_at = unsafe { base.add(LEN_OFFSET) };
        // SAFETY: four bytes at offset 8, aligned as the base is.
        unsafe { len_at.cast::<u32>().write(len) };
        // SAFETY: at most one past the end, when the member is empty.
        let member_at = unsafe { base.add(MEMBER_OFFSET) };
        // SAFETY: the allocation has `member.len()` bytes from here, and is new, so no overlap.
        unsafe { member_at.copy_from_nonoverlapping(NonNull::from(member).cast(), member.len()) };
        Self(ItemRef(base))
    }

    #[inline]
    pub(crate) fn score(&self) -> f64 {
        self.0.score()
    }

    #[inline]
    pub(crate) fn member(&self) -> &[u8] {
        self.0.member()
    }

    /// Bytes of memory of an item whose member has `member_len` bytes.
    pub(crate) fn allocated(member_len: usize) -> usize {
        size_class(MEMBER_OFFSET + member_len)
    }

    /// A second pointer to this item, for the tree.
    ///
    /// # Safety
    ///
    /// All copies of the result must be gone, or never used again, when this item is dropped, and
    /// what they lend out must end before [`ItemRef::set_score`] is called.
    pub(crate) unsafe fn share(&self) -> ItemRef {
        self.0
    }

    /// Whether `other` points to this very item.
    pub(crate) fn is(&self, other: ItemRef) -> bool {
        self.0 == other
    }
}

impl Drop for ZItem {
    fn drop(&mut self) {
        let layout = layout(self.member().len());
        // SAFETY: `new` allocated it with this layout; the length has not changed since.
        unsafe { dealloc(self.0.0.as_ptr(), layout) };
    }
}

// SAFETY: `ZItem` is an `ItemRef` is a `NonNull<u8>`, all transparent, and that is what
// `into_raw` returns; a member never changes or moves.
unsafe impl Item for ZItem {
    fn into_raw(self) -> NonNull<u8> {
        ManuallyDrop::new(self).0.0
    }

    unsafe fn from_raw(raw: NonNull<u8>) -> Self {
        Self(ItemRef(raw))
    }

    unsafe fn key_of<'a>(raw: NonNull<u8>) -> &'a [u8] {
        // SAFETY: the address is an item's, alive and unchanged for `'a` (the caller's promise).
        unsafe { member_at(raw) }
    }
}

impl ItemRef {
    /// What unused cells of a node hold. Its methods must not be called.
    pub(crate) const UNUSED: Self = Self(NonNull::dangling());

    #[inline]
    pub(crate) fn score(self) -> f64 {
        // SAFETY: `ZItem::new` wrote an aligned `f64` here, and the item is alive (`share`).
        unsafe { self.0.cast::<f64>().read() }
    }

    #[inline]
    pub(crate) fn member(&self) -> &[u8] {
        // SAFETY: the borrow of `self` lies inside the item's life (`share`).
        unsafe { member_at(self.0) }
    }

    /// Changes the score in the item.
    ///
    /// # Safety
    ///
    /// The caller holds the sorted set exclusively, so that nobody reads the score meanwhile.
    pub(crate) unsafe fn set_score(self, score: f64) {
        assert!(!score.is_nan(), "a score is a number");
        // SAFETY: an aligned `f64` of a living item, and nobody else looks (the caller's promise).
        unsafe { self.0.cast::<f64>().write(score) };
    }
}

/// # Safety
///
/// `base` is the address of an item that is alive for `'a`.
#[inline]
unsafe fn member_at<'a>(base: NonNull<u8>) -> &'a [u8] {
    // SAFETY: inside the allocation, see the drawing.
    let len_at = unsafe { base.add(LEN_OFFSET) };
    // SAFETY: `ZItem::new` wrote an aligned `u32` here, and the item is alive.
    let len = unsafe { len_at.cast::<u32>().read() } as usize;
    // SAFETY: at most one past the end, when the member is empty.
    let member_at = unsafe { base.add(MEMBER_OFFSET) };
    // SAFETY: `ZItem::new` wrote `len` bytes here, which never change, and the item is alive.
    unsafe { slice::from_raw_parts(member_at.as_ptr(), len) }
}

fn layout(member_len: usize) -> Layout {
    Layout::from_size_align(MEMBER_OFFSET + member_len, align_of::<f64>())
        .expect("a member of less than 4 GiB fits in the address space")
}

#[cfg(test)]
mod tests {
    use super::ZItem;

    #[test]
    fn an_item_gives_back_what_went_in() {
        for member in [&b""[..], b"a", b"four", &[7; 1000]] {
            let item = ZItem::new(-1.5, member);
            assert_eq!((item.score(), item.member()), (-1.5, member));
            // SAFETY: `shared` is not used after `item` is dropped, nor across a borrow.
            let shared = unsafe { item.share() };
            // SAFETY: nothing else looks at the item here.
            unsafe { shared.set_score(f64::INFINITY) };
            assert_eq!((item.score(), shared.score()), (f64::INFINITY, f64::INFINITY));
            assert!(item.is(shared));
        }
    }
}
