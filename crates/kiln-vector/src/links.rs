//! Lists of links: read without a lock, changed under the locks of their nodes' stripes.
//!
//! A list is a fixed run of `u32` slots: the used ones first, each a node id plus one, then zeros.
//! Nodes share [`STRIPES`] stripes by the low bits of their ids; a stripe is a lock and a version.
//!
//! Rules between the threads:
//!
//! 1. A writer holds the stripes of all nodes whose lists or states it changes, and takes them in
//!    the order of their numbers, so that two writers cannot wait for each other. What it needs to
//!    compute it computes before, and checks under the locks that the lists are still the same.
//! 2. The version is odd from the first change to the last. A reader reads the version, copies the
//!    list, and reads the version again: equal and even, and the copy is a list that was there at
//!    one moment. After [`RETRIES`] failures it takes the copy as it is. That is no danger, since
//!    each slot by itself holds a node that was linked at some moment of the reader's stay; it can
//!    only miss a link that was being moved. So readers never wait.
//! 3. Before a node's id is stored in the first list, its row is complete. The release fence of
//!    the writer pairs with the acquire fence of the reader, so a reader that has the id may read
//!    the row.

use kiln_base::sync::atomic::{AtomicU32, Ordering, fence};
use kiln_base::sync::{Mutex, MutexGuard};

/// Stripes of an index, a power of two. Two inserts at a time lock some 100 pairs each.
const STRIPES: usize = if cfg!(loom) { 2 } else { 256 };
/// How often a reader repeats a copy that a writer disturbed.
const RETRIES: usize = 3;

/// The locks and versions of all lists of an index.
pub(crate) struct Stripes(Box<[Stripe]>);

struct Stripe {
    lock: Mutex<()>,
    version: AtomicU32,
}

impl Stripes {
    pub(crate) fn new() -> Self {
        let stripe = |_| Stripe { lock: Mutex::default(), version: AtomicU32::new(0) };
        Self((0..STRIPES).map(stripe).collect())
    }

    /// Locks the stripes of `nodes`. The lists of these nodes may then be changed, no others.
    pub(crate) fn lock<const N: usize>(&self, nodes: [u32; N]) -> Locked<'_, N> {
        let mut numbers = nodes.map(|node| node as usize % STRIPES);
        numbers.sort_unstable();
        let mut last = None;
        let held = numbers.map(|number| {
            // Nodes of one stripe take it once.
            (last.replace(number) != Some(number)).then(|| Held::new(&self.0[number]))
        });
        Locked { _held: held }
    }

    /// Copies the list of `node` into `out` and returns how many ids there are.
    #[inline]
    pub(crate) fn read(&self, node: u32, list: &[AtomicU32], out: &mut [u32]) -> usize {
        for _ in 0..RETRIES {
            if let Ok(length) = self.try_read(node, list, out) {
                return length;
            }
        }
        self.try_read(node, list, out).unwrap_or_else(|disturbed| disturbed)
    }

    /// One attempt of [`Stripes::read`]: the length of a list that was there at one moment, or that
    /// of a copy which a writer disturbed.
    #[inline]
    fn try_read(&self, node: u32, list: &[AtomicU32], out: &mut [u32]) -> Result<usize, usize> {
        let stripe = &self.0[node as usize % STRIPES];
        // Acquire pairs with the release in `Held::drop`: the lists of that version are seen.
        let before = stripe.version.load(Ordering::Acquire);
        let length = copy(list, out);
        // Pairs with the fence in `Held::new`: a copy that saw a slot of a later version also sees
        // that version below (rule 2), and the rows of the nodes in it (rule 3).
        fence(Ordering::Acquire);
        let after = stripe.version.load(Ordering::Relaxed);
        let whole = before == after && before.is_multiple_of(2);
        if whole { Ok(length) } else { Err(length) }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

#[inline]
fn copy(list: &[AtomicU32], out: &mut [u32]) -> usize {
    let mut length = 0;
    for (slot, to) in list.iter().zip(out.iter_mut()) {
        let id = slot.load(Ordering::Relaxed);
        if id == 0 {
            break;
        }
        *to = id - 1;
        length += 1;
    }
    length
}

/// Stripes held; changes are visible as one when it is dropped.
pub(crate) struct Locked<'a, const N: usize> {
    _held: [Option<Held<'a>>; N],
}

struct Held<'a> {
    stripe: &'a Stripe,
    _lock: MutexGuard<'a, ()>,
}

impl<'a> Held<'a> {
    fn new(stripe: &'a Stripe) -> Self {
        let lock = stripe.lock.lock();
        // Relaxed: written under the lock only.
        let version = stripe.version.load(Ordering::Relaxed);
        stripe.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // The odd version, and all that this thread wrote before, come before the slots.
        fence(Ordering::Release);
        Self { stripe, _lock: lock }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let version = self.stripe.version.load(Ordering::Relaxed);
        self.stripe.version.store(version.wrapping_add(1), Ordering::Release);
    }
}

// The operations on one list. The caller holds the stripe of its node.

/// Adds an id at the end, unless the list is full.
pub(crate) fn push(list: &[AtomicU32], id: u32) -> bool {
    for slot in list {
        if slot.load(Ordering::Relaxed) == 0 {
            slot.store(id + 1, Ordering::Relaxed);
            return true;
        }
    }
    false
}

/// Takes an id out: the last one moves to its place. Returns whether it was there.
pub(crate) fn remove(list: &[AtomicU32], id: u32) -> bool {
    let length = len(list);
    let Some(at) = position(list, id) else { return false };
    let last = list[length - 1].load(Ordering::Relaxed);
    list[at].store(last, Ordering::Relaxed);
    list[length - 1].store(0, Ordering::Relaxed);
    true
}

/// Puts `new` in the place of `old`, which must be there.
pub(crate) fn replace(list: &[AtomicU32], old: u32, new: u32) {
    let at = position(list, old).expect("the caller has looked under the lock");
    list[at].store(new + 1, Ordering::Relaxed);
}

pub(crate) fn contains(list: &[AtomicU32], id: u32) -> bool {
    position(list, id).is_some()
}

pub(crate) fn is_full(list: &[AtomicU32]) -> bool {
    list.last().is_none_or(|slot| slot.load(Ordering::Relaxed) != 0)
}

pub(crate) fn len(list: &[AtomicU32]) -> usize {
    list.iter().take_while(|slot| slot.load(Ordering::Relaxed) != 0).count()
}

fn position(list: &[AtomicU32], id: u32) -> Option<usize> {
    list.iter().position(|slot| slot.load(Ordering::Relaxed) == id + 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use kiln_base::sync::atomic::AtomicU32;

    use super::{Stripes, contains, is_full, len, push, remove, replace};

    #[test]
    fn a_list_stays_without_gaps() {
        let list: Vec<AtomicU32> = (0..4).map(|_| AtomicU32::new(0)).collect();
        for id in [0, 7, 9, 300] {
            assert!(!is_full(&list));
            assert!(push(&list, id));
        }
        assert!(is_full(&list) && !push(&list, 5));
        assert!(remove(&list, 7) && !remove(&list, 7));
        replace(&list, 0, 8);
        let mut out = [0; 4];
        assert_eq!(Stripes::new().read(1, &list, &mut out), 3);
        assert_eq!(out[..3], [8, 300, 9]);
        assert!(contains(&list, 300) && !contains(&list, 0));
        assert_eq!(len(&list), 3);
    }

    #[test]
    fn nodes_of_one_stripe_are_locked_once() {
        let stripes = Stripes::new();
        let list = [AtomicU32::new(0)];
        drop(stripes.lock([5, 5 + 256, 1]));
        let _locked = stripes.lock([3, 2]);
        // The reader of a locked stripe does not wait.
        assert_eq!(stripes.read(3, &list, &mut [0]), 0);
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p kiln-vector --release --lib loom`.
#[cfg(all(test, loom))]
mod loom {
    use kiln_base::sync::Arc;
    use kiln_base::sync::atomic::{AtomicU32, Ordering};

    use super::{Stripes, push, remove};

    /// Two nodes whose rows are one number each, and a list that is read while it changes.
    #[test]
    fn a_copy_is_a_list_that_was_there_and_its_rows_are_complete() {
        loom::model(|| {
            let stripes = Arc::new(Stripes::new());
            let list: Arc<[AtomicU32; 2]> = Arc::new([AtomicU32::new(1), AtomicU32::new(2)]);
            let row = Arc::new(AtomicU32::new(0));
            let thread = loom::thread::spawn({
                let (stripes, list, row) = (stripes.clone(), list.clone(), row.clone());
                move || {
                    row.store(77, Ordering::Relaxed);
                    let _locked = stripes.lock([0]);
                    remove(&*list, 0);
                    push(&*list, 5);
                }
            });
            let mut out = [9; 2];
            let read = stripes.try_read(0, &*list, &mut out);
            let (Ok(length) | Err(length)) = read;
            let ids = &out[..length];
            match read {
                Ok(_) => assert!(ids == [0, 1] || ids == [1, 5], "{ids:?}"),
                Err(_) => assert!(ids.iter().all(|id| [0, 1, 5].contains(id))),
            }
            if ids.contains(&5) {
                assert_eq!(row.load(Ordering::Relaxed), 77);
            }
            thread.join().expect("the writer does not fail");
        });
    }
}
