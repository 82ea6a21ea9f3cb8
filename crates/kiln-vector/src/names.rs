//! Names: which node an element's name stands for, in byte order of the names.
//!
//! ```text
//! record:  [ current: u32 | nodes: u8 | length: u8, or 255 and a u32 | bytes ... ]
//!                  ^                ^
//!   the node that is the element    nodes whose block points here
//! ```
//!
//! A name of 10 bytes takes 16 for its record and some 17 in the ordered set (a B-tree of thin
//! addresses); the node points to the record, not the record's bytes, so both ways are short.
//!
//! Rules between the threads:
//!
//! 1. The set and `current` change under the set's lock only. `current` is read without it: that
//!    one load decides which node an element is, so a reader sees the old node or the new one.
//! 2. A node is given its record before `current` names it, and keeps it until it is freed. A
//!    reader that meets a node whose record names another goes there: an element that is replaced
//!    during a search is found at its old place or its new one, and never at none.
//! 3. A record is freed with the last node that points to it, after that node's grace period.

#![expect(unsafe_code, reason = "a record is one allocation behind a thin address")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::borrow::Borrow;
use std::cmp::Ordering as Order;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::ptr::NonNull;

use kiln_base::sync::RwLock;
use kiln_base::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// No node. `current` of an element that was removed.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// The address of a record, as an atomic pointer of a node holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NameRef(NonNull<u8>);

/// Where the length byte lies, and with it where the fixed part ends.
const LENGTH_AT: usize = 5;
/// A length byte of this value is followed by the length in four bytes.
const LONG: u8 = u8::MAX;
/// More nodes than this never share a record: the next one gets a copy of it.
const NODES_MAX: u8 = u8::MAX;

impl NameRef {
    /// A record for the first node of `name`.
    fn new(name: &[u8], current: u32) -> Self {
        let layout = layout(name.len());
        // SAFETY: the layout has room for the fixed part at least, so it is not empty.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        let mut head = Vec::with_capacity(LENGTH_AT + 5);
        head.extend_from_slice(&current.to_ne_bytes());
        head.push(1);
        if name.len() < LONG.into() {
            head.push(name.len() as u8);
        } else {
            head.push(LONG);
            let length = u32::try_from(name.len()).expect("a name of less than 4 GiB");
            head.extend_from_slice(&length.to_ne_bytes());
        }
        // SAFETY: the layout begins with exactly this head, and the allocation is new.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(&head[..]).cast(), head.len()) };
        // SAFETY: the name follows the head inside the allocation.
        let data = unsafe { start.add(head.len()) };
        // SAFETY: there is room for all of it, in memory that nobody else knows.
        unsafe { data.copy_from_nonoverlapping(NonNull::from(name).cast(), name.len()) };
        Self(start)
    }

    pub(crate) fn from_ptr(address: *mut u8) -> Option<Self> {
        NonNull::new(address).map(Self)
    }

    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// The record's contents.
    ///
    /// # Safety
    ///
    /// The record must not be freed before `'a` ends.
    #[inline]
    pub(crate) unsafe fn get<'a>(self) -> Name<'a> {
        // SAFETY: a record begins with an aligned u32, used as an atomic by everybody.
        let current = unsafe { self.0.cast::<AtomicU32>().as_ref() };
        // SAFETY: the fixed part holds the count of nodes there.
        let nodes = unsafe { self.0.add(size_of::<u32>()) };
        // SAFETY: as above; the count is used as an atomic by everybody.
        let nodes = unsafe { nodes.cast::<AtomicU8>().as_ref() };
        // SAFETY: the fixed part ends with the length byte.
        let length_byte = unsafe { self.0.add(LENGTH_AT) };
        // SAFETY: it was written by `new` and never changes.
        let short = unsafe { length_byte.read() };
        let (start, length) = if short == LONG {
            // SAFETY: a long record goes on with its length.
            let long = unsafe { length_byte.add(1) };
            // SAFETY: those four bytes were written by `new`; they may lie at any alignment.
            let length = unsafe { long.cast::<u32>().read_unaligned() };
            (LENGTH_AT + 5, length as usize)
        } else {
            (LENGTH_AT + 1, usize::from(short))
        };
        // SAFETY: the name lies there inside the allocation.
        let data = unsafe { self.0.add(start) };
        // SAFETY: `new` wrote that many bytes, they never change, and they live for `'a`.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr(), length) };
        Name { current, nodes, bytes }
    }

    /// Takes one node off the record, and frees it with the last.
    ///
    /// # Safety
    ///
    /// That node's pointer must not be used any more, by anybody, and the set must hold the record
    /// only if other nodes point to it.
    pub(crate) unsafe fn release(self) {
        // SAFETY: the node's share keeps the record alive up to here.
        let name = unsafe { self.get() };
        // AcqRel: the thread that frees it comes after all that others did with it.
        if name.nodes.fetch_sub(1, Ordering::AcqRel) == 1 {
            let layout = layout(name.bytes.len());
            // SAFETY: `new` allocated it with this layout, and the last pointer is gone.
            unsafe { dealloc(self.0.as_ptr(), layout) };
        }
    }
}

/// What a record holds.
#[derive(Clone, Copy)]
pub(crate) struct Name<'a> {
    current: &'a AtomicU32,
    nodes: &'a AtomicU8,
    pub(crate) bytes: &'a [u8],
}

impl Name<'_> {
    /// The node that is the element now, or [`NO_NODE`].
    #[inline]
    pub(crate) fn current(&self) -> u32 {
        // Acquire pairs with the release in `Names`: the node's block is complete.
        self.current.load(Ordering::Acquire)
    }
}

fn layout(name_length: usize) -> Layout {
    let head = if name_length < LONG.into() { LENGTH_AT + 1 } else { LENGTH_AT + 5 };
    Layout::from_size_align(head + name_length, align_of::<u32>()).expect("below 4 GiB")
}

/// A record in the set, ordered by its name.
struct Key(NameRef);

// SAFETY: a record's atomics are for all threads, and the rest of it never changes.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

impl Key {
    fn name(&self) -> Name<'_> {
        // SAFETY: the set holds a record only while its current node points to it (rule 3).
        unsafe { self.0.get() }
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.name().bytes
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Order {
        self.name().bytes.cmp(other.name().bytes)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

/// All names of an index.
pub(crate) struct Names {
    set: RwLock<Set>,
}

#[derive(Default)]
struct Set {
    records: BTreeSet<Key>,
    record_bytes: usize,
}

/// What [`Names::assign`] found.
pub(crate) enum Assigned {
    /// The name is new.
    New,
    /// The node that the name stood for before.
    Replaced(u32),
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { set: RwLock::default() }
    }

    /// Makes `name` stand for `node`. `before` is called with the record and the node replaced, if
    /// any, when nobody can see the change yet, and must hand the record to `node`'s block;
    /// `after` with the node replaced, when everybody can. Both under the lock.
    pub(crate) fn assign(
        &self,
        name: &[u8],
        node: u32,
        before: impl FnOnce(NameRef, Option<u32>),
        after: impl FnOnce(u32),
    ) -> Assigned {
        let mut set = self.set.write();
        let Some(key) = set.records.get(name) else {
            let record = NameRef::new(name, NO_NODE);
            before(record, None);
            // SAFETY: the record's one node was just given to it.
            unsafe { record.get() }.current.store(node, Ordering::Release);
            set.record_bytes += layout(name.len()).size().next_multiple_of(16);
            set.records.insert(Key(record));
            return Assigned::New;
        };
        let record = key.0;
        // SAFETY: the set holds it, and the set is locked.
        let old = unsafe { record.get() };
        let replaced = old.current();
        // Relaxed: only this function adds nodes, under the lock; `release` may only lower it.
        if old.nodes.load(Ordering::Relaxed) == NODES_MAX {
            // So many replaced nodes wait to be unlinked that the count would overflow. The new
            // node starts a record of its own; readers at the old ones find the element gone.
            let copy = NameRef::new(name, node);
            before(copy, Some(replaced));
            old.current.store(NO_NODE, Ordering::Release);
            set.records.replace(Key(copy));
        } else {
            old.nodes.fetch_add(1, Ordering::Relaxed);
            before(record, Some(replaced));
            // Release: whoever finds the node by this load finds its block complete.
            old.current.store(node, Ordering::Release);
        }
        after(replaced);
        Assigned::Replaced(replaced)
    }

    /// Takes a name out and returns the node that it stood for.
    pub(crate) fn remove(&self, name: &[u8]) -> Option<u32> {
        let mut set = self.set.write();
        let key = set.records.take(name)?;
        let node = key.name().current();
        key.name().current.store(NO_NODE, Ordering::Release);
        set.record_bytes -= layout(name.len()).size().next_multiple_of(16);
        Some(node)
    }

    /// The node that `name` stands for. The caller must be inside the epoch before it asks.
    pub(crate) fn find(&self, name: &[u8]) -> Option<u32> {
        self.set.read().records.get(name).map(|key| key.name().current())
    }

    pub(crate) fn len(&self) -> usize {
        self.set.read().records.len()
    }

    /// Calls `visit` with the names between two bounds, in byte order, until it returns `false`.
    pub(crate) fn visit_range(
        &self,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        mut visit: impl FnMut(&[u8]) -> bool,
    ) {
        // `BTreeSet::range` panics on an empty range that is written backwards.
        let empty = match range {
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high))
            | (Bound::Excluded(low), Bound::Included(high)) => low >= high,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        };
        if empty {
            return;
        }
        for key in self.set.read().records.range::<[u8], _>(range) {
            if !visit(key.name().bytes) {
                return;
            }
        }
    }

    /// Calls `with_node` with the node of a name, which stays its node during the call.
    pub(crate) fn with_frozen<R>(
        &self,
        name: &[u8],
        with_node: impl FnOnce(u32) -> R,
    ) -> Option<R> {
        let set = self.set.write();
        set.records.get(name).map(|key| with_node(key.name().current()))
    }

    /// An estimate: records in classes of 16 bytes, and the share of a name in a B-tree that was
    /// filled in random order (11 places of 8 bytes, seven tenths of them used).
    pub(crate) fn memory_bytes(&self) -> usize {
        let set = self.set.read();
        set.record_bytes + set.records.len() * 17
    }
}

#[cfg(test)]
mod tests {
    use super::{Assigned, NO_NODE, NameRef, Names};
    use std::ops::Bound;

    #[test]
    fn records_hold_names_of_any_length() {
        for length in [0, 1, 10, 254, 255, 256, 70_000] {
            let bytes = vec![b'n'; length];
            let record = NameRef::new(&bytes, 7);
            // SAFETY: the record is freed below only.
            let name = unsafe { record.get() };
            assert_eq!((name.bytes, name.current()), (&bytes[..], 7));
            // SAFETY: this was the record's one share.
            unsafe { record.release() };
        }
    }

    #[test]
    fn a_name_moves_from_node_to_node() {
        let names = Names::new();
        let mut records = Vec::new();
        for node in 0..3 {
            let assigned = names.assign(b"a", node, |record, _| records.push(record), |_| ());
            match assigned {
                Assigned::New => assert_eq!(node, 0),
                Assigned::Replaced(old) => assert_eq!(old + 1, node),
            }
        }
        assert_eq!((names.len(), names.find(b"a")), (1, Some(2)));
        assert_eq!(names.remove(b"a"), Some(2));
        assert_eq!((names.remove(b"a"), names.find(b"a")), (None, None));
        // SAFETY: three nodes share the record, none has released it.
        assert_eq!(unsafe { records[0].get() }.current(), NO_NODE);
        for record in records {
            // SAFETY: one share each, and the set no longer holds the record.
            unsafe { record.release() };
        }
    }

    #[test]
    fn many_waiting_nodes_start_a_new_record() {
        let names = Names::new();
        let mut records = Vec::new();
        for node in 0..600 {
            names.assign(b"busy", node, |record, _| records.push(record), |_| ());
        }
        assert_eq!((names.len(), names.find(b"busy")), (1, Some(599)));
        names.remove(b"busy");
        for record in records {
            // SAFETY: one share for each node that was given the record.
            unsafe { record.release() };
        }
    }

    #[test]
    fn ranges_are_in_byte_order() {
        let names = Names::new();
        let mut records = Vec::new();
        for (node, name) in ["b", "a", "", "ab", "c"].iter().enumerate() {
            names.assign(name.as_bytes(), node as u32, |record, _| records.push(record), |_| ());
        }
        let range = |low: Bound<&[u8]>, high: Bound<&[u8]>| {
            let mut found = Vec::new();
            names.visit_range((low, high), |name| {
                found.push(String::from_utf8_lossy(name).into_owned());
                true
            });
            found.join(" ")
        };
        assert_eq!(range(Bound::Unbounded, Bound::Unbounded), " a ab b c");
        assert_eq!(range(Bound::Excluded(b"a"), Bound::Included(b"b")), "ab b");
        assert_eq!(range(Bound::Included(b"b"), Bound::Included(b"a")), "");
        assert_eq!(range(Bound::Excluded(b"b"), Bound::Excluded(b"b")), "");
        for record in records {
            // SAFETY: the names are not looked at any more.
            unsafe { record.release() };
        }
    }
}
