//! A byte string behind one thin pointer, for the many short ones that a node may own.
//!
//! ```text
//! pointer -> [ length: u8, or 255 and a u32 | bytes ... ]
//! ```
//!
//! A node's block has 8 bytes for each of its strings, not 16, and most nodes have none.
//! Who owns an address, and when it is freed, is told by the atomics that hold it (`node.rs`).

#![expect(unsafe_code, reason = "the length lies inside the allocation")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// The address of a string: what an atomic pointer can hold. Copying it copies no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ThinBytes(NonNull<u8>);

/// A length byte of this value is followed by the length in four bytes.
const LONG: u8 = u8::MAX;

impl ThinBytes {
    /// Allocates a copy of `bytes`. The caller must hand it to [`ThinBytes::free`] one day.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let layout = layout(bytes.len());
        // SAFETY: the layout has room for the length at least, so it is not empty.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        let head_length = head(bytes.len());
        let length = u32::try_from(bytes.len()).expect("a string of less than 4 GiB");
        let [a, b, c, d] = length.to_ne_bytes();
        let short = [length as u8, 0, 0, 0, 0];
        let head = if head_length == 1 { short } else { [LONG, a, b, c, d] };
        // SAFETY: the new allocation has room for a head of that length.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(&head).cast(), head_length) };
        // SAFETY: the bytes follow the head inside the allocation.
        let data = unsafe { start.add(head_length) };
        // SAFETY: the new allocation has room for all of `bytes` there and overlaps nothing.
        unsafe { data.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        Self(start)
    }

    /// The string at an address that came from [`ThinBytes::as_ptr`], none at the null address.
    pub(crate) fn from_ptr(address: *mut u8) -> Option<Self> {
        NonNull::new(address).map(Self)
    }

    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// The bytes.
    ///
    /// # Safety
    ///
    /// The string must not be freed before `'a` ends.
    #[inline]
    pub(crate) unsafe fn get<'a>(self) -> &'a [u8] {
        // SAFETY: `new` wrote the length byte, and the caller says that it is still there.
        let short = unsafe { self.0.read() };
        let mut length = usize::from(short);
        if short == LONG {
            // SAFETY: a long string goes on with its length.
            let long = unsafe { self.0.add(1) };
            // SAFETY: `new` wrote those four bytes; they may lie at any alignment.
            length = unsafe { long.cast::<u32>().read_unaligned() } as usize;
        }
        // SAFETY: the bytes follow the head inside the allocation.
        let data = unsafe { self.0.add(head(length)) };
        // SAFETY: `new` wrote that many bytes, they never change, and they live for `'a`.
        unsafe { std::slice::from_raw_parts(data.as_ptr(), length) }
    }

    /// Frees the string and returns the bytes of memory that it took.
    ///
    /// # Safety
    ///
    /// Nobody may use this address, or bytes borrowed from it, any more.
    pub(crate) unsafe fn free(self) -> usize {
        // SAFETY: the caller ends all use with this call, so the string is still alive here.
        let length = unsafe { self.get() }.len();
        // SAFETY: `new` allocated it with this layout.
        unsafe { dealloc(self.0.as_ptr(), layout(length)) };
        allocated(length)
    }
}

/// The bytes of memory of a string of `length`: allocators have classes of 16 bytes at this size.
pub(crate) fn allocated(length: usize) -> usize {
    layout(length).size().next_multiple_of(16)
}

fn head(length: usize) -> usize {
    if length < LONG.into() { 1 } else { 1 + size_of::<u32>() }
}

fn layout(length: usize) -> Layout {
    Layout::from_size_align(head(length) + length, 1).expect("a string of less than 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::ThinBytes;

    #[test]
    fn bytes_come_back() {
        for bytes in [&b""[..], b"x", &[7; 254], &[7; 255], &[7; 10_000]] {
            let thin = ThinBytes::new(bytes);
            // SAFETY: it is freed on the next line only.
            assert_eq!(unsafe { thin.get() }, bytes);
            // SAFETY: nobody else knows it.
            unsafe { thin.free() };
        }
        assert_eq!(ThinBytes::from_ptr(std::ptr::null_mut()), None);
    }
}
