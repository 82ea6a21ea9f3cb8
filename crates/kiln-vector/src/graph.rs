//! The graph: rows, lists of links on every level, and where a walk begins.
//!
//! ```text
//! level 2:            a ------------- d          16 slots each (M), in a slab of their own:
//! level 1:      b --- a ------------- d          1.07 lists for each 16 nodes
//! level 0:  c - b - c a - e - f - ... d - g      32 slots (2 M), in the node's row
//! ```
//!
//! Rules between the threads, beside those of `epoch.rs`, `links.rs`, `node.rs` and `names.rs`:
//!
//! 1. Links are made and cut in pairs, under the stripes of both nodes ([`Graph::connect`],
//!    [`Graph::displace`], [`Graph::disconnect`]), never to a node that is dying.
//! 2. A new node first finds its neighbours on all its levels, then links itself from level 0 up.
//!    So whoever meets it on a level can go on from it on every lower one.
//! 3. The entry point is one 64-bit word: level and node. It changes under the lock of `tall`,
//!    which orders all nodes above level 0, so it is always one of the tallest. A node leaves
//!    `tall`, and the entry point, after it is marked as dying and before it is freed.

use std::collections::BTreeSet;

use kiln_base::sync::Mutex;
use kiln_base::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::arena::{Arena, LINE};
use crate::codec::Codec;
use crate::epoch::Epochs;
use crate::links::{self, Stripes};
use crate::node::{Rows, State};

/// The highest level. With M of 2 a set of 2^15 nodes reaches it, with 16 no set ever does.
pub(crate) const LEVEL_MAX: usize = 15;

/// What all walks and changes share.
pub(crate) struct Graph {
    pub(crate) codec: Codec,
    pub(crate) rows: Rows,
    pub(crate) stripes: Stripes,
    pub(crate) epochs: Epochs,
    pub(crate) entry: Entry,
    /// Bytes of the strings that nodes own: attributes, and side bytes that rows have no room for.
    pub(crate) strings_bytes: AtomicUsize,
    uppers: Uppers,
}

/// Slots of links above level 0.
struct Uppers {
    arena: Arena,
    slots: usize,
    /// Runs of blocks given back, by their length.
    free: Mutex<[Vec<u32>; LEVEL_MAX + 1]>,
}

/// What came of an attempt to link two nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Connected {
    /// They are linked now, or were before.
    Yes,
    /// The first has no free slot.
    FirstFull,
    /// The second has none.
    SecondFull,
    /// One of them is dying.
    Gone,
}

impl Graph {
    pub(crate) fn new(codec: Codec, m: usize) -> Self {
        let rows = Rows::new(codec.layout(), 2 * m);
        let stride = (m * size_of::<u32>()).next_multiple_of(LINE);
        let uppers = Uppers { arena: Arena::new(stride), slots: m, free: Mutex::default() };
        let (stripes, epochs, entry) = (Stripes::new(), Epochs::new(), Entry::new());
        let strings_bytes = AtomicUsize::new(0);
        Self { codec, rows, stripes, epochs, entry, strings_bytes, uppers }
    }

    /// The slots of a node on one of its levels.
    #[inline]
    pub(crate) fn list(&self, node: u32, level: usize) -> &[AtomicU32] {
        if level == 0 {
            return self.rows.links(node);
        }
        // Relaxed: written before the node's id was given to anybody.
        let first = self.rows.block(node).upper.load(Ordering::Relaxed);
        self.uppers.list(first + level as u32 - 1)
    }

    /// Copies the links of a node on a level to `out`, which is made as long as they are.
    #[inline]
    pub(crate) fn neighbours(&self, node: u32, level: usize, out: &mut Vec<u32>) {
        out.resize(self.rows.links, 0);
        let length = self.stripes.read(node, self.list(node, level), out);
        out.truncate(length);
    }

    /// How many links a node has on a level.
    pub(crate) fn degree(&self, node: u32, level: usize) -> usize {
        links::len(self.list(node, level))
    }

    /// Links two nodes on a level, if both are alive and have room.
    pub(crate) fn connect(&self, a: u32, b: u32, level: usize) -> Connected {
        debug_assert_ne!(a, b, "a node is no neighbour of itself");
        let _locked = self.stripes.lock([a, b]);
        if self.is_dying(a) || self.is_dying(b) {
            return Connected::Gone;
        }
        let (list_a, list_b) = (self.list(a, level), self.list(b, level));
        if links::contains(list_a, b) {
            return Connected::Yes;
        }
        if links::is_full(list_a) {
            return Connected::FirstFull;
        }
        if !links::push(list_b, a) {
            return Connected::SecondFull;
        }
        links::push(list_a, b);
        Connected::Yes
    }

    /// Links `new` to `node` in the place of `victim`. Returns whether that could be done: the
    /// lists may have changed since the caller chose.
    pub(crate) fn displace(&self, node: u32, victim: u32, new: u32, level: usize) -> bool {
        let _locked = self.stripes.lock([node, victim, new]);
        if self.is_dying(node) || self.is_dying(new) {
            return false;
        }
        let (list, new_list) = (self.list(node, level), self.list(new, level));
        let fits = links::contains(list, victim)
            && !links::contains(list, new)
            && !links::is_full(new_list);
        if fits {
            links::replace(list, victim, new);
            links::remove(self.list(victim, level), node);
            links::push(new_list, node);
        }
        fits
    }

    /// Cuts the link between two nodes on a level.
    pub(crate) fn disconnect(&self, a: u32, b: u32, level: usize) {
        let _locked = self.stripes.lock([a, b]);
        links::remove(self.list(a, level), b);
        links::remove(self.list(b, level), a);
    }

    /// Cuts all links of a node.
    pub(crate) fn isolate(&self, node: u32) {
        let mut ids = Vec::new();
        for level in 0..=self.rows.block(node).level() {
            self.neighbours(node, level, &mut ids);
            ids.iter().for_each(|&other| self.disconnect(node, other, level));
        }
    }

    /// Marks a node as dying: from here on nothing links to it.
    pub(crate) fn condemn(&self, node: u32) {
        let _locked = self.stripes.lock([node]);
        self.rows.block(node).set_state(State::Dying);
    }

    pub(crate) fn is_dying(&self, node: u32) -> bool {
        self.rows.block(node).state() == State::Dying
    }

    /// Marks all nodes that can be reached from `start` on level 0, beyond those marked before.
    pub(crate) fn reach(&self, start: u32, reached: &mut [bool]) {
        reached[start as usize] = true;
        let mut waiting = vec![start];
        let mut ids = Vec::new();
        while let Some(node) = waiting.pop() {
            self.neighbours(node, 0, &mut ids);
            let new = |id: &&u32| !std::mem::replace(&mut reached[**id as usize], true);
            waiting.extend(ids.iter().filter(new));
        }
    }

    /// Takes the blocks for `level` lists above level 0 and returns the first's number.
    pub(crate) fn take_uppers(&self, level: usize) -> u32 {
        if level == 0 { 0 } else { self.uppers.take(level) }
    }

    /// Gives back what [`Graph::take_uppers`] gave, all lists empty.
    pub(crate) fn give_uppers(&self, first: u32, level: usize) {
        if level > 0 {
            self.uppers.free.lock()[level].push(first);
        }
    }

    /// Bytes of rows, lists and locks.
    pub(crate) fn memory_bytes(&self) -> usize {
        let uppers = self.uppers.arena.memory_bytes();
        self.rows.arena.memory_bytes() + uppers + self.stripes.memory_bytes()
    }
}

impl Uppers {
    fn list(&self, block: u32) -> &[AtomicU32] {
        self.arena.slots(block, self.slots)
    }

    fn take(&self, level: usize) -> u32 {
        let mut free = self.free.lock();
        if let Some(first) = free[level].pop() {
            return first;
        }
        // Nobody else takes blocks while `free` is locked, so the run is one of neighbours.
        let first = self.arena.allocate();
        for next in 1..level {
            let block = self.arena.allocate();
            debug_assert_eq!(block, first + next as u32);
        }
        first
    }
}

/// Where walks begin, and the nodes that could be it.
pub(crate) struct Entry {
    /// The level in the upper half, the node in the lower; [`Entry::NONE`] for an empty graph.
    word: AtomicU64,
    tall: Mutex<BTreeSet<(u8, u32)>>,
}

impl Entry {
    const NONE: u64 = u64::MAX;

    fn new() -> Self {
        Self { word: AtomicU64::new(Self::NONE), tall: Mutex::default() }
    }

    /// The entry point and its level.
    #[inline]
    pub(crate) fn get(&self) -> Option<(u32, usize)> {
        // Acquire pairs with `set`: the node's row and lists are complete.
        let word = self.word.load(Ordering::Acquire);
        (word != Self::NONE).then_some((word as u32, (word >> 32) as usize))
    }

    fn set(&self, node: u32, level: usize) {
        self.word.store((level as u64) << 32 | u64::from(node), Ordering::Release);
    }

    /// Makes `node` the entry point if there is none. Returns whether it is.
    pub(crate) fn begin(&self, node: u32, level: usize) -> bool {
        let mut tall = self.tall.lock();
        if self.get().is_some() {
            return false;
        }
        if level > 0 {
            tall.insert((level as u8, node));
        }
        self.set(node, level);
        true
    }

    /// Tells of a node that is linked on all its levels.
    pub(crate) fn add(&self, node: u32, level: usize) {
        if level == 0 {
            return;
        }
        let mut tall = self.tall.lock();
        tall.insert((level as u8, node));
        if self.get().is_none_or(|(_, top)| level > top) {
            self.set(node, level);
        }
    }

    /// Takes out a node that is dying. If it is the entry point, the tallest other node follows
    /// it; among nodes of level 0 one that `other` finds alive.
    pub(crate) fn remove(&self, node: u32, level: usize, other: impl FnOnce() -> Option<u32>) {
        let mut tall = self.tall.lock();
        if level > 0 {
            tall.remove(&(level as u8, node));
        }
        if self.get().is_none_or(|(entry, _)| entry != node) {
            return;
        }
        if let Some(&(level, tallest)) = tall.last() {
            self.set(tallest, level.into());
        } else if let Some(next) = other() {
            self.set(next, 0);
        } else {
            self.word.store(Self::NONE, Ordering::Release);
        }
    }
}
