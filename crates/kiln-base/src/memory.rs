//! `used_memory`: what the process has allocated, counted by the allocator wrapper of the binary.
//!
//! Asking the allocator itself costs 40 to 90 µs, far too much before each write under
//! `maxmemory`. Each thread gathers its changes and adds them to one global counter when they
//! exceed [`FLUSH_BYTES`], so the figure is wrong by at most that for each thread.

use std::cell::Cell;

use crate::sync::static_atomic::{AtomicI64, Ordering};

/// How much a thread may keep to itself.
const FLUSH_BYTES: i64 = 16 * 1024;

static USED: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

thread_local! {
    // Const-initialized and without a destructor, so it is usable inside the allocator at any
    // time of a thread's life.
    static PENDING: Cell<i64> = const { Cell::new(0) };
}

/// Counts an allocation (positive) or a release (negative) of `bytes`.
#[inline]
pub fn count(bytes: i64) {
    PENDING.with(|pending| {
        let sum = pending.get() + bytes;
        if sum.abs() < FLUSH_BYTES {
            pending.set(sum);
        } else {
            pending.set(0);
            flush(sum);
        }
    });
}

#[cold]
fn flush(bytes: i64) {
    // Relaxed: the counter orders nothing else.
    let used = USED.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if used > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(used, Ordering::Relaxed);
    }
}

/// Bytes allocated now.
#[inline]
pub fn used_bytes() -> u64 {
    USED.load(Ordering::Relaxed).max(0) as u64
}

/// The largest value that [`used_bytes`] has had.
pub fn peak_bytes() -> u64 {
    PEAK.load(Ordering::Relaxed).max(0) as u64
}

/// Starts the peak anew from the present value.
pub fn reset_peak() {
    PEAK.store(USED.load(Ordering::Relaxed), Ordering::Relaxed);
}
