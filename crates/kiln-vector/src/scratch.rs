//! What a search or an insert needs for itself, kept by each thread from one to the next.
//!
//! Visited nodes are marked in one byte each: the byte equals the number of the present walk. The
//! marks are cleared once in 255 walks, and serve all indexes that the thread searches.

use std::cell::Cell;

use crate::codec::Query;

/// The buffers of one thread.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) query: Query,
    pub(crate) visited: Visited,
    pub(crate) candidates: Candidates,
    /// Ids of one list of links, and those of them that are still of interest.
    pub(crate) neighbours: Vec<u32>,
    /// Estimates of a scan, and what it found.
    pub(crate) estimates: Vec<Candidate>,
    pub(crate) found: Vec<Candidate>,
    /// Side bytes of a vector being stored.
    pub(crate) side: Vec<u8>,
}

thread_local!(static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) });

/// Lends the thread's scratch to `use_it`. A filter may search again: it gets new buffers.
pub(crate) fn with<R>(use_it: impl FnOnce(&mut Scratch) -> R) -> R {
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let result = use_it(&mut scratch);
    SCRATCH.set(Some(scratch));
    result
}

/// Which nodes a walk has seen.
#[derive(Default)]
pub(crate) struct Visited {
    marks: Vec<u8>,
    walk: u8,
}

impl Visited {
    /// Begins a walk over a graph whose ids end at `end` now.
    pub(crate) fn begin(&mut self, end: u32) {
        if self.marks.len() < end as usize {
            self.marks.resize(end as usize, 0);
        }
        self.walk = self.walk.wrapping_add(1);
        if self.walk == 0 {
            self.marks.fill(0);
            self.walk = 1;
        }
    }

    /// Marks a node. Returns whether it was new.
    #[inline]
    pub(crate) fn insert(&mut self, node: u32) -> bool {
        match self.marks.get_mut(node as usize) {
            Some(mark) => std::mem::replace(mark, self.walk) != self.walk,
            None => self.insert_beyond(node),
        }
    }

    /// For a node that was added after the walk began.
    #[cold]
    fn insert_beyond(&mut self, node: u32) -> bool {
        self.marks.resize(node as usize + 1, 0);
        self.marks[node as usize] = self.walk;
        true
    }
}

/// A node and how far it is from the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) distance: f32,
    /// The highest bit is set once the node is expanded.
    tagged: u32,
}

const EXPANDED: u32 = 1 << 31;

impl Candidate {
    #[inline]
    pub(crate) fn new(distance: f32, node: u32) -> Self {
        Self { distance, tagged: node }
    }

    #[inline]
    pub(crate) fn node(self) -> u32 {
        self.tagged & !EXPANDED
    }

    /// Nearer first. Distances are never NaN.
    pub(crate) fn order(self, other: Self) -> std::cmp::Ordering {
        self.distance.total_cmp(&other.distance).then(self.node().cmp(&other.node()))
    }
}

/// The nearest nodes found so far, in order of distance, and which of them was expanded.
///
/// One sorted array with a cursor does the work of the two heaps in the textbook: at the widths
/// in use (20 to 500) moving the tail of an array is cheaper than sifting, and the next node to
/// expand is known early enough to prefetch it.
#[derive(Default)]
pub(crate) struct Candidates {
    list: Vec<Candidate>,
    width: usize,
    /// All before this are expanded.
    cursor: usize,
    /// How many copies may still be taken beyond the width.
    spare: usize,
}

/// Candidates at exactly the same distance from which on they count as copies of one vector, which
/// take no place in the list: or a thousand copies fill it, and the walk ends among them.
const COPIES: usize = 8;
/// The most copies that a list holds beyond its width.
const SPARE: usize = 2_048;

impl Candidates {
    /// Empties the list and sets how many it holds at most.
    pub(crate) fn begin(&mut self, width: usize) {
        self.list.clear();
        self.spare = SPARE;
        self.width = width;
        self.cursor = 0;
    }

    /// Begins anew from the nearest one found, which is kept and not expanded.
    pub(crate) fn restart(&mut self, width: usize) {
        self.list.truncate(1);
        self.spare = SPARE;
        if let Some(first) = self.list.first_mut() {
            first.tagged &= !EXPANDED;
        }
        self.width = width;
        self.cursor = 0;
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() == self.width
    }

    /// The distance that a new candidate must stay below.
    #[inline]
    pub(crate) fn worst(&self) -> f32 {
        if self.is_full() { self.list[self.width - 1].distance } else { f32::INFINITY }
    }

    /// Adds a node, behind those of equal distance. Returns whether it is the next to expand.
    #[inline]
    pub(crate) fn insert(&mut self, distance: f32, node: u32) -> bool {
        if distance >= self.worst() {
            return false;
        }
        let at = self.list.partition_point(|candidate| candidate.distance <= distance);
        let alike = at.checked_sub(COPIES).map(|first| self.list[first].distance);
        if alike.is_some_and(|alike| alike.to_bits() == distance.to_bits()) && self.spare > 0 {
            // One more copy of a vector: it takes no place from others.
            self.width += 1;
            self.spare -= 1;
        } else if self.is_full() {
            self.list.pop();
        }
        self.list.insert(at, Candidate::new(distance, node));
        let is_next = at <= self.cursor;
        self.cursor = self.cursor.min(at);
        is_next
    }

    /// The nearest node that is not expanded yet, which it then counts as.
    #[inline]
    pub(crate) fn expand(&mut self) -> Option<u32> {
        self.skip_expanded();
        let next = self.list.get_mut(self.cursor)?;
        next.tagged |= EXPANDED;
        self.cursor += 1;
        Some(next.node())
    }

    /// The node that [`Candidates::expand`] would give.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u32> {
        self.skip_expanded();
        self.list.get(self.cursor).map(|next| next.node())
    }

    #[inline]
    fn skip_expanded(&mut self) {
        while self.list.get(self.cursor).is_some_and(|next| next.tagged & EXPANDED != 0) {
            self.cursor += 1;
        }
    }

    /// All of them, nearest first.
    pub(crate) fn sorted(&self) -> &[Candidate] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidates, Visited};

    #[test]
    fn marks_last_for_one_walk_each() {
        let mut visited = Visited::default();
        for _ in 0..600 {
            visited.begin(3);
            assert!(visited.insert(2) && !visited.insert(2));
            assert!(visited.insert(9) && !visited.insert(9));
        }
    }

    #[test]
    fn candidates_are_expanded_nearest_first() {
        let mut candidates = Candidates::default();
        candidates.begin(3);
        for (distance, node) in [(0.5, 5), (0.3, 3), (0.9, 9)] {
            candidates.insert(distance, node);
        }
        assert_eq!(candidates.expand(), Some(3));
        candidates.insert(0.1, 1); // Pushes 9 out.
        candidates.insert(0.9, 8); // Not nearer than the worst.
        assert_eq!(candidates.peek(), Some(1));
        assert_eq!(candidates.expand(), Some(1));
        assert_eq!(candidates.expand(), Some(5));
        assert_eq!(candidates.expand(), None);
        let nodes: Vec<u32> = candidates.sorted().iter().map(|c| c.node()).collect();
        assert_eq!(nodes, [1, 3, 5]);
        candidates.restart(2);
        assert_eq!(candidates.expand(), Some(1));
    }
}
