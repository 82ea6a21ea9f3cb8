//! Grace periods: when nobody can still be reading what was taken out of the graph.
//!
//! A reader enters before it loads its first node id and leaves after its last use of one. What a
//! writer has unlinked is stamped and freed two epochs later. Rules between the threads:
//!
//! 1. The epoch only grows. A reader counts itself in the bucket of the epoch's lowest bit and then
//!    looks again; if the epoch has moved meanwhile it takes itself out and tries anew. So a reader
//!    that got in is counted under the epoch that was current when it did.
//! 2. The epoch moves from `e` to `e + 1` only when the bucket of `e - 1` is empty. A reader of
//!    epoch `e` therefore holds the epoch at `e + 1` at most, for as long as it stays.
//! 3. Something unlinked is stamped with the epoch read **after** the unlinking. Every reader that
//!    can know it entered at the stamp or before, so at stamp + 2 all of them have left.
//!
//! Each index has its own counters, so there is no list of threads to register with. They are
//! spread over [`STRIPES`] cache lines, which a thread chooses by the address of its own stack of
//! thread locals: two threads on one stripe only cost time. Entering and leaving is about 20 ns,
//! against 20 µs and more for a search.
//!
//! The scheme is that of sleepable RCU in the Linux kernel, as described by its author
//! (`McKenney`, "Sleepable RCU", 2006), with the check of rule 1 in place of a second flip. An
//! epoch crate would bring thread registration and deferred closures, neither of which is needed:
//! garbage here is a node id.

use kiln_base::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Enough for the threads of a large machine; fewer under loom, which tries all interleavings.
const STRIPES: usize = if cfg!(loom) { 1 } else { 16 };

/// The epoch of one index and the readers inside it.
pub(crate) struct Epochs {
    now: AtomicU64,
    stripes: [Stripe; STRIPES],
}

#[repr(align(64))]
struct Stripe {
    readers: [AtomicU32; 2],
}

/// A stay inside an epoch. Node ids loaded during it stay valid until it is dropped.
pub(crate) struct Guard<'a> {
    readers: &'a AtomicU32,
}

impl Epochs {
    pub(crate) fn new() -> Self {
        let stripe = |_| Stripe { readers: [AtomicU32::new(0), AtomicU32::new(0)] };
        // Two below which nothing is ever stamped, so that `stamp + 2` needs no special case.
        Self { now: AtomicU64::new(2), stripes: std::array::from_fn(stripe) }
    }

    /// Begins a stay. Never waits for a writer: it repeats only when the epoch moved in between.
    pub(crate) fn enter(&self) -> Guard<'_> {
        let stripe = &self.stripes[home() % STRIPES];
        loop {
            let epoch = self.now.load(Ordering::Acquire);
            let readers = &stripe.readers[(epoch & 1) as usize];
            readers.fetch_add(1, Ordering::Relaxed);
            // Pairs with the fence in `advance`: either that sees this reader, or the reader sees
            // the epoch moved. Also with the one in `stamp`: a reader of a later epoch sees the
            // unlinking.
            fence(Ordering::SeqCst);
            if self.now.load(Ordering::Relaxed) == epoch {
                return Guard { readers };
            }
            readers.fetch_sub(1, Ordering::Release);
        }
    }

    /// The stamp for what the caller has just unlinked.
    pub(crate) fn stamp(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.now.load(Ordering::Relaxed)
    }

    /// Moves the epoch on if its readers allow, and returns the newest stamp that may be freed.
    pub(crate) fn advance(&self) -> u64 {
        let epoch = self.now.load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        let bucket = ((epoch + 1) & 1) as usize;
        // Acquire pairs with the release of `Guard::drop`: what those readers read lies before.
        let empty = self.stripes.iter().all(|s| s.readers[bucket].load(Ordering::Acquire) == 0);
        if empty {
            // A lost race means that another thread advanced; its look is as good as this one.
            let _ =
                self.now.compare_exchange(epoch, epoch + 1, Ordering::AcqRel, Ordering::Acquire);
        }
        self.now.load(Ordering::Acquire) - 2
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.readers.fetch_sub(1, Ordering::Release);
    }
}

/// A number that differs between most threads that live at the same time.
fn home() -> usize {
    thread_local!(static HOME: u8 = const { 0 });
    // Thread-local blocks of different threads lie pages apart.
    HOME.with(|home| {
        let address = std::ptr::from_ref(home) as usize as u64;
        (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Epochs;

    #[test]
    fn a_stamp_is_free_after_two_steps_without_readers() {
        let epochs = Epochs::new();
        let stamp = epochs.stamp();
        assert!(epochs.advance() < stamp);
        assert!(epochs.advance() >= stamp);
    }

    #[test]
    fn a_reader_holds_its_own_stamp_back_and_not_older_ones() {
        let epochs = Epochs::new();
        let old = epochs.stamp();
        epochs.advance();
        let guard = epochs.enter();
        let held = epochs.stamp();
        for _ in 0..10 {
            epochs.advance();
        }
        assert!((old..held).contains(&epochs.advance()));
        drop(guard);
        epochs.advance();
        assert!(epochs.advance() >= held);
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p kiln-vector --release --lib loom`.
#[cfg(all(test, loom))]
mod loom {
    use kiln_base::sync::Arc;
    use kiln_base::sync::atomic::{AtomicBool, Ordering};

    use super::Epochs;

    /// A link that a writer cuts, and the memory behind it, which it frees when the stamp allows.
    struct Shared {
        epochs: Epochs,
        linked: AtomicBool,
        freed: AtomicBool,
    }

    #[test]
    fn nobody_reads_what_was_freed() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                epochs: Epochs::new(),
                linked: AtomicBool::new(true),
                freed: AtomicBool::new(false),
            });
            let reader = Arc::clone(&shared);
            let thread = loom::thread::spawn(move || {
                let _guard = reader.epochs.enter();
                if reader.linked.load(Ordering::Relaxed) {
                    assert!(!reader.freed.load(Ordering::Relaxed));
                }
            });
            shared.linked.store(false, Ordering::Relaxed);
            let stamp = shared.epochs.stamp();
            for _ in 0..3 {
                if shared.epochs.advance() >= stamp {
                    shared.freed.store(true, Ordering::Relaxed);
                }
            }
            thread.join().expect("the reader's assertion holds");
        });
    }
}
