//! An index: named vectors and the graph over them, for many threads at once.
//!
//! Nothing here takes a lock for long. Searches take none at all; an insert computes without one
//! and locks two or three stripes at a time to link; a name is assigned under the names' lock,
//! which is held for about a microsecond.
//!
//! A write has a long part and a short one, so that a server can do the short one under the lock
//! of its key:
//!
//! ```text
//! prepare   long    store and link a node. It is on the way of walks, but no result
//! publish   short   the name stands for the node from now on; the one before is retired
//! retire    long    unlink the node before
//! ```
//!
//! Rules between the threads, beside those of `graph.rs`:
//!
//! 1. An element is what its name's record says at one moment. Replacing a vector is one store to
//!    that record, so every reader sees the old vector or the new one.
//! 2. A node is unlinked by the one thread that took it from its name, or that prepared it and
//!    gave it up. Dropping [`Pending`] or [`Retired`] does it.
//! 3. What was unlinked is freed by whoever finds its grace period over: each later write looks.

#![expect(unsafe_code, reason = "what was unlinked is freed after its grace period")]

use std::collections::VecDeque;
use std::ops::Bound;

use kiln_base::sync::Mutex;
use kiln_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::codec::{Codec, CodecConfig, Quantization};
use crate::epoch::Guard;
use crate::error::VectorError;
use crate::graph::Graph;
use crate::insert::Effort;
use crate::metric::Metric;
use crate::names::{Assigned, NO_NODE, Names};
use crate::node::State;
use crate::scratch;
use crate::thin::{self, ThinBytes};

/// The least and the most links of a node on a level above 0; on level 0 it has twice as many.
pub const M_RANGE: std::ops::RangeInclusive<usize> = 2..=512;

/// What an index is made for. All of it is fixed for the index's life but `ef_construction`, which
/// an insert may override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexConfig {
    /// Dimensions of every vector.
    pub dim: usize,
    /// How vectors are compared.
    pub metric: Metric,
    /// What of a vector is kept.
    pub quantization: Quantization,
    /// Links of a node on a level above 0, held to [`M_RANGE`].
    pub m: usize,
    /// Candidates among which an insert chooses links.
    pub ef_construction: usize,
    /// Candidates of a search that does not say otherwise.
    pub ef_search: usize,
    /// Whether nodes have a one-bit code: 3% more memory, and searches of half the time.
    pub bits: bool,
    /// Decides levels and the rotation of codes. Inserts in the same order by one thread build
    /// the same graph.
    pub seed: u64,
}

impl IndexConfig {
    /// The usual settings for vectors of `dim` dimensions.
    pub fn new(dim: usize, metric: Metric) -> Self {
        let (quantization, bits, seed) = (Quantization::None, true, 0x6B69_6C6E);
        Self { dim, metric, quantization, m: 16, ef_construction: 200, ef_search: 100, bits, seed }
    }
}

/// Named vectors and the graph over them. See the module for what happens beside what.
pub struct Index {
    config: IndexConfig,
    pub(crate) graph: Graph,
    pub(crate) names: Names,
    /// Inserts so far, which decide the levels.
    pub(crate) inserts: AtomicU64,
    /// Elements that have attributes.
    pub(crate) attributed: AtomicUsize,
    garbage: Mutex<VecDeque<(u64, Garbage)>>,
}

/// Something that readers may still be looking at.
enum Garbage {
    /// A node that nothing links to.
    Node(u32),
    /// A node that is `free`.
    Row(u32),
    Attributes(ThinBytes),
}

// SAFETY: garbage is owned by the queue alone; the address is a plain allocation.
unsafe impl Send for Garbage {}

/// A node that is stored and linked, and waits for its name. Dropping it takes it out again.
#[must_use = "a pending vector becomes an element by `publish`"]
pub struct Pending<'a> {
    node: Unlink<'a>,
}

/// A pending vector apart from its index, for work that changes threads before it publishes:
/// [`Index::resume`] makes it pending again. Left alone it stays in the graph without a name.
#[must_use = "a suspended vector is to be resumed"]
pub struct Suspended(u32);

impl Pending<'_> {
    /// Lets go of the index.
    pub fn suspend(self) -> Suspended {
        let node = self.node.node;
        std::mem::forget(self.node);
        Suspended(node)
    }
}

/// A node that is no element any more. Dropping it unlinks it, which takes up to half a
/// millisecond: let go of locks before.
#[must_use = "dropping it is the long part of a removal: do it outside of locks"]
pub struct Retired<'a> {
    _node: Unlink<'a>,
}

/// What [`Index::publish`] did.
pub struct Published<'a> {
    /// The vector that the name stood for before.
    pub old: Option<Retired<'a>>,
}

impl Published<'_> {
    /// Whether the element was there before.
    pub fn replaced(&self) -> bool {
        self.old.is_some()
    }
}

/// An element at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Element<'a> {
    pub(crate) node: u32,
    pub(crate) name: &'a [u8],
    pub(crate) attributes: Option<&'a [u8]>,
}

/// Unlinks a node when dropped.
struct Unlink<'a> {
    index: &'a Index,
    node: u32,
}

impl Drop for Unlink<'_> {
    fn drop(&mut self) {
        scratch::with(|scratch| self.index.graph.detach(self.node, scratch));
        self.index.discard(Garbage::Node(self.node));
    }
}

impl Index {
    /// An empty index.
    ///
    /// # Errors
    ///
    /// [`VectorError::Limit`] if the number of dimensions is out of range.
    pub fn new(mut config: IndexConfig) -> Result<Self, VectorError> {
        config.m = config.m.clamp(*M_RANGE.start(), *M_RANGE.end());
        let IndexConfig { dim, metric, quantization, bits, seed, .. } = config;
        let codec = Codec::new(CodecConfig { dim, metric, quantization, bits, seed })?;
        config.bits = codec.config().bits;
        Ok(Self {
            config,
            graph: Graph::new(codec, config.m),
            names: Names::new(),
            inserts: AtomicU64::new(0),
            attributed: AtomicUsize::new(0),
            garbage: Mutex::default(),
        })
    }

    /// What the index was made for.
    pub fn config(&self) -> &IndexConfig {
        &self.config
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `name` is an element.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.names.find(name).is_some()
    }

    /// The long part of an insert: stores a vector and links it, not yet under a name.
    ///
    /// # Errors
    ///
    /// [`VectorError::Dimension`], then [`VectorError::NotFinite`]; nothing has changed then.
    pub fn prepare(
        &self,
        vector: &[f32],
        ef_construction: Option<usize>,
    ) -> Result<Pending<'_>, VectorError> {
        self.graph.codec.check(vector)?;
        let ef_construction = ef_construction.unwrap_or(self.config.ef_construction).max(1);
        let effort = Effort { ef_construction, m: self.config.m };
        let level = self.next_level();
        let node = scratch::with(|scratch| self.graph.insert(vector, level, effort, scratch));
        Ok(Pending { node: Unlink { index: self, node } })
    }

    /// The pending vector that was suspended; it must be this index's.
    #[expect(clippy::needless_pass_by_value, reason = "a vector is resumed once")]
    pub fn resume(&self, suspended: Suspended) -> Pending<'_> {
        let Suspended(node) = suspended;
        Pending { node: Unlink { index: self, node } }
    }

    /// The short part of an insert: `name` stands for the vector from now on. Attributes replace
    /// those that the element has; none leave them as they are.
    pub fn publish<'a>(
        &'a self,
        name: &[u8],
        pending: Pending<'a>,
        attributes: Option<&[u8]>,
    ) -> Published<'a> {
        let node = pending.node.node;
        std::mem::forget(pending.node); // It is an element now, and no longer ours to unlink.
        let block = self.graph.rows.block(node);
        let attributes_of = |node: u32| self.graph.rows.block(node);
        let mut dropped = None;
        let before = |record, old: Option<u32>| {
            block.set_name(Some(record));
            let kept = old.and_then(|old| attributes_of(old).attributes());
            match attributes {
                Some(new) => {
                    block.swap_attributes(Some(self.string(new)));
                    if kept.is_none() {
                        self.attributed.fetch_add(1, Ordering::Relaxed);
                    }
                    dropped = kept;
                }
                None => _ = block.swap_attributes(kept),
            }
        };
        // The old node loses its attributes last: a reader that finds none there looks again.
        let after = |old: u32| _ = attributes_of(old).swap_attributes(None);
        let assigned = self.names.assign(name, node, before, after);
        if let Some(attributes) = dropped {
            self.discard(Garbage::Attributes(attributes));
        }
        match assigned {
            Assigned::New => Published { old: None },
            Assigned::Replaced(old) => Published { old: Some(self.retired(old)) },
        }
    }

    /// All parts of an insert. Returns whether the element is new.
    ///
    /// # Errors
    ///
    /// As [`Index::prepare`].
    pub fn insert(&self, name: &[u8], vector: &[f32]) -> Result<bool, VectorError> {
        let pending = self.prepare(vector, None)?;
        Ok(!self.publish(name, pending, None).replaced())
    }

    /// Takes an element out. The node is unlinked when the result is dropped.
    pub fn remove(&self, name: &[u8]) -> Option<Retired<'_>> {
        let node = self.names.remove(name)?;
        // Nobody else changes them: that goes through the name.
        if self.graph.rows.block(node).attributes().is_some() {
            self.attributed.fetch_sub(1, Ordering::Relaxed);
        }
        Some(self.retired(node))
    }

    /// Copies the vector of an element to `out`, bit for bit as it came unless it is quantised.
    /// Returns whether there is such an element.
    pub fn get(&self, name: &[u8], out: &mut Vec<f32>) -> bool {
        let guard = self.graph.epochs.enter();
        let Some(node) = self.names.find(name) else { return false };
        // SAFETY: the id came from a name, loaded under the guard.
        let nodes = unsafe { self.graph.rows.reader(&guard) };
        self.graph.codec.decode(nodes.node(node), out);
        true
    }

    /// The length of an element's vector, of the one that came in also where it is quantised.
    pub fn norm(&self, name: &[u8]) -> Option<f64> {
        let guard = self.graph.epochs.enter();
        let node = self.names.find(name)?;
        // SAFETY: the id came from a name, loaded under the guard.
        let nodes = unsafe { self.graph.rows.reader(&guard) };
        Some(self.graph.codec.norm(nodes.node(node)))
    }

    /// The attributes of an element; none if it has none, or there is no such element.
    pub fn attributes(&self, name: &[u8]) -> Option<Box<[u8]>> {
        let guard = self.graph.epochs.enter();
        let node = self.names.find(name)?;
        self.element(node, &guard)?.attributes.map(Into::into)
    }

    /// Sets the attributes of an element, or takes them away. Returns whether there is such an
    /// element.
    pub fn set_attributes(&self, name: &[u8], attributes: Option<&[u8]>) -> bool {
        let new = attributes.map(|new| self.string(new));
        // Under the names' lock, or the element's node could change in between.
        let found = self.names.with_frozen(name, |node| {
            let old = self.graph.rows.block(node).swap_attributes(new);
            match (old, new) {
                (None, Some(_)) => _ = self.attributed.fetch_add(1, Ordering::Relaxed),
                (Some(_), None) => _ = self.attributed.fetch_sub(1, Ordering::Relaxed),
                (None, None) | (Some(_), Some(_)) => {}
            }
            old
        });
        let old = match found {
            Some(old) => old,
            None => new,
        };
        if let Some(old) = old {
            self.discard(Garbage::Attributes(old));
        }
        found.is_some()
    }

    /// Calls `visit` with the names between two bounds, in byte order, until it returns `false`.
    pub fn visit_names(
        &self,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        visit: impl FnMut(&[u8]) -> bool,
    ) {
        self.names.visit_range(range, visit);
    }

    /// The element that a node is, or was before it was replaced; none if the node has no name
    /// yet or the element was removed. The node must have been loaded under `_guard`.
    pub(crate) fn element<'a>(&self, node: u32, _guard: &'a Guard<'_>) -> Option<Element<'a>> {
        let name = self.graph.rows.block(node).name()?;
        // SAFETY: a record is freed after the grace period of the last node that points to it, and
        // the guard was entered before this node was loaded.
        let name = unsafe { name.get() };
        loop {
            let node = name.current();
            if node == NO_NODE {
                return None;
            }
            let attributes = self.graph.rows.block(node).attributes();
            // Attributes move from node to node with the element (`publish`), the old node last.
            if name.current() == node {
                // SAFETY: attributes are freed after a grace period that began when they were
                // taken from their node, and the guard was entered before they were loaded.
                let attributes = attributes.map(|attributes| unsafe { attributes.get() });
                return Some(Element { node, name: name.bytes, attributes });
            }
        }
    }

    /// The same for any node of the arena.
    pub(crate) fn element_at<'a>(&self, node: u32, guard: &'a Guard<'_>) -> Option<Element<'a>> {
        // Seen in one of these states inside the epoch, it counts as loaded under the guard: a
        // node is `free` for a grace period before anything of it is (`Index::free`).
        match self.graph.rows.block(node).state() {
            State::Linked | State::Dying => self.element(node, guard),
            State::Free | State::Building => None,
        }
    }

    pub(crate) fn retired_nodes(&self) -> usize {
        let queue = self.garbage.lock();
        queue
            .iter()
            .filter(|(_, garbage)| matches!(garbage, Garbage::Node(_) | Garbage::Row(_)))
            .count()
    }

    fn retired(&self, node: u32) -> Retired<'_> {
        Retired { _node: Unlink { index: self, node } }
    }

    /// A level, so that there are `m` times fewer nodes on each level than on the one below.
    fn next_level(&self) -> usize {
        let number = self.inserts.fetch_add(1, Ordering::Relaxed);
        // The uniform number in (0, 1] that the SplitMix64 generator gives at this place.
        let uniform = (splitmix(self.config.seed.wrapping_add(number)) >> 11) as f64 + 1.0;
        let uniform = uniform / (1_u64 << 53) as f64;
        (-uniform.ln() / (self.config.m as f64).ln()) as usize
    }

    /// Frees something after its grace period, and what else is over by now.
    fn discard(&self, garbage: Garbage) {
        self.defer(garbage);
        // With nobody inside, what was just discarded can go at once.
        while self.collect() {}
    }

    fn defer(&self, garbage: Garbage) {
        let stamp = self.graph.epochs.stamp();
        self.garbage.lock().push_back((stamp, garbage));
    }

    /// Frees what no reader can be looking at any more. Returns whether there was anything.
    fn collect(&self) -> bool {
        self.graph.epochs.advance();
        let free = self.graph.epochs.advance();
        let mut freed = false;
        loop {
            let mut queue = self.garbage.lock();
            if queue.front().is_none_or(|(stamp, _)| *stamp > free) {
                return freed;
            }
            let (_, garbage) = queue.pop_front().expect("it was looked at under the lock");
            drop(queue);
            self.free(&garbage);
            freed = true;
        }
    }

    fn free(&self, garbage: &Garbage) {
        match *garbage {
            // SAFETY: it was taken from its node, and the readers of that time have left.
            Garbage::Attributes(attributes) => unsafe { self.free_string(attributes) },
            // A scan comes to nodes by number. One that saw this node before it was `free` may
            // still be looking at it, so the rest waits for that one to leave.
            Garbage::Node(node) => {
                self.graph.rows.block(node).set_state(State::Free);
                self.defer(Garbage::Row(node));
            }
            Garbage::Row(node) => {
                let block = self.graph.rows.block(node);
                let level = block.level();
                self.graph.give_uppers(block.upper.load(Ordering::Relaxed), level);
                self.free_strings(node);
                self.graph.rows.arena.free(node);
            }
        }
    }

    /// A string for a node to own.
    pub(crate) fn string(&self, bytes: &[u8]) -> ThinBytes {
        self.graph.strings_bytes.fetch_add(thin::allocated(bytes.len()), Ordering::Relaxed);
        ThinBytes::new(bytes)
    }

    /// Frees a string that a node owned.
    ///
    /// # Safety
    ///
    /// As [`ThinBytes::free`].
    unsafe fn free_string(&self, string: ThinBytes) {
        // SAFETY: the caller's promise.
        let bytes = unsafe { string.free() };
        self.graph.strings_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Frees what a node owns outside of its row. Nobody may be using the node any more.
    fn free_strings(&self, node: u32) {
        let block = self.graph.rows.block(node);
        for string in [block.take_side(), block.swap_attributes(None)].into_iter().flatten() {
            // SAFETY: readers of the node have left, and nobody else has the address.
            unsafe { self.free_string(string) };
        }
        if let Some(name) = block.name() {
            block.set_name(None);
            // SAFETY: this node's pointer to the record was just taken out.
            unsafe { name.release() };
        }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        for (_, garbage) in std::mem::take(&mut *self.garbage.lock()) {
            // What nodes own is freed below.
            if let Garbage::Attributes(attributes) = garbage {
                // SAFETY: it was taken from its node, and nobody is left to read it.
                unsafe { self.free_string(attributes) };
            }
        }
        for node in 0..self.graph.rows.arena.end() {
            self.free_strings(node);
        }
    }
}

/// One step of the generator `SplitMix64` (Steele, Lea, Flood, 2014).
pub(crate) fn splitmix(state: u64) -> u64 {
    let mut z = state.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
