#![expect(unsafe_code, reason = "a global allocator that counts")]

//! The process's allocator: jemalloc, or the system's without the `jemalloc` feature, inside a
//! wrapper that counts for `used_memory`.

use std::alloc::{GlobalAlloc, Layout};

use kiln_base::memory;

#[cfg(not(feature = "jemalloc"))]
use std::alloc::System as Inner;
#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc as Inner;

/// The allocator's name, for INFO.
#[cfg(feature = "jemalloc")]
pub(crate) const NAME: &str = "jemalloc-5.3.1";
#[cfg(not(feature = "jemalloc"))]
pub(crate) const NAME: &str = "libc";

/// Gives pages that hold nothing back to the system, of all arenas.
#[cfg(feature = "jemalloc")]
pub(crate) fn purge() {
    // Where an arena's number stands, 4,096 means all of them (`MALLCTL_ARENAS_ALL`).
    let name = c"arena.4096.purge";
    let (out, out_len, new) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the name ends in NUL, and this control neither reads nor writes a value. It fails
    // only if there is no such control; then nothing happens.
    unsafe { tikv_jemalloc_sys::mallctl(name.as_ptr(), out, out_len, new, 0) };
}

/// The system's allocator gives back what it will.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn purge() {}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

/// What a block of `size` bytes really takes: jemalloc's size classes are multiples of 16 up to
/// 128, then four for each power of two. Its own question (`nallocx`) costs more than this sum.
#[inline]
fn rounded(size: usize) -> i64 {
    let step = if size <= 128 { 16 } else { (size - 1).next_power_of_two() / 8 };
    size.next_multiple_of(step.max(1)) as i64
}

// SAFETY: every call goes to `Inner` unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        memory::count(rounded(layout.size()));
        // SAFETY: the caller's contract is that of `Inner`.
        unsafe { Inner.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        memory::count(rounded(layout.size()));
        // SAFETY: the caller's contract is that of `Inner`.
        unsafe { Inner.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        memory::count(-rounded(layout.size()));
        // SAFETY: the caller's contract is that of `Inner`.
        unsafe { Inner.dealloc(pointer, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        memory::count(rounded(size) - rounded(layout.size()));
        // SAFETY: the caller's contract is that of `Inner`.
        unsafe { Inner.realloc(pointer, layout, size) }
    }
}
