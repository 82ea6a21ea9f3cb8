//! Searching without the graph: small sets, exact answers, and filters that pass little.
//!
//! A filter costs more than an estimate: it reads the name and the attributes, three lines of
//! memory that nothing else needs. So distance comes first and the filter is asked in order of it,
//! until enough has passed; that is how a walk is filtered too (`search.rs`), with more candidates
//! the less passes. Which way is taken follows from what each costs:
//!
//! ```text
//! walk of `width` candidates    SCAN_PER_CANDIDATE x width
//! scan of all nodes             number of nodes
//! ```

use crate::epoch::Guard;
use crate::filter::Filter;
use crate::index::{Index, splitmix};
use crate::node::State;
use crate::scratch::{Candidate, Scratch};
use crate::search::{Request, ranked_exactly};
use crate::walk::Walk;

/// A walk spends as much time on one candidate of its width as a scan on this many nodes.
const SCAN_PER_CANDIDATE: usize = 24;
/// Candidates of a filtered walk for each hit, before those that do not pass are added: 98% of
/// what is nearest is found with it. A walk that finds too few is repeated twice as wide.
const WIDTH_PER_HIT: f64 = 1.6;
/// Elements that a filter is first tried on, and in all if few of them pass.
const SAMPLES: [usize; 2] = [64, 512];
/// Passing elements from which on the share is known well enough.
const SAMPLES_PASSING: usize = 6;
/// What is assumed where next to nothing passed.
const LEAST_SHARE: f64 = 1e-3;
/// How far below its estimate a distance may lie, in units of the codec's slack, which is half a
/// standard error. A walk allows one unit; a scan, which has no second chance, three.
const SURE: f32 = 3.0;
/// Rows that are asked for ahead of a scan.
const AHEAD: u32 = 16;

/// How a search is done.
pub(crate) struct Plan {
    /// Candidates of the walk; none for a scan.
    pub(crate) width: Option<usize>,
    /// The share of elements that pass the filter, as far as tried.
    pub(crate) share: f64,
}

impl Index {
    /// Chooses between a walk and a scan.
    pub(crate) fn plan(&self, request: &Request<'_>, guard: &Guard<'_>) -> Plan {
        let ef = request.ef.unwrap_or(self.config().ef_search).max(request.count);
        let share = self.passing(request, guard);
        let mut width = ef;
        if share < 1.0 {
            // Saturates for a share of nothing.
            let filtered = (WIDTH_PER_HIT * request.count as f64 / share) as usize;
            width = width.max(filtered).min(request.filter_ef.unwrap_or(usize::MAX)).max(1);
        }
        Plan { width: self.walkable(width), share }
    }

    /// The width, unless a scan costs less than a walk of it.
    pub(crate) fn walkable(&self, width: usize) -> Option<usize> {
        let nodes = self.graph.rows.arena.end() as usize;
        (width.saturating_mul(SCAN_PER_CANDIDATE) < nodes).then_some(width)
    }

    /// Tries the filter on some elements and returns the share that passes.
    fn passing(&self, request: &Request<'_>, guard: &Guard<'_>) -> f64 {
        let Some(filter) = request.filter else { return 1.0 };
        let end = self.graph.rows.arena.end().max(1);
        let (mut tried, mut passed) = (0, 0);
        for samples in SAMPLES {
            // The same ones each time: a search is a function of the index and its arguments.
            for sample in tried..samples {
                let node = (splitmix(sample as u64) >> 32) as u32 % end;
                let element = self.element_at(node, guard);
                let admits = element.is_some_and(|e| filter.admits(e.name, e.attributes));
                passed += usize::from(admits);
            }
            tried = samples;
            if passed >= SAMPLES_PASSING {
                break;
            }
        }
        passed as f64 / tried as f64
    }

    /// Fills the scratch's `found` with the nearest elements that pass, by comparing with all.
    pub(crate) fn scan_exactly(
        &self,
        request: &Request<'_>,
        walk: &Walk<'_>,
        guard: &Guard<'_>,
        scratch: &mut Scratch,
    ) {
        let Scratch { found, visited, .. } = scratch;
        let mut nearest = Nearest::new(found, ranked_exactly(request.count));
        let end = self.graph.rows.arena.end();
        visited.begin(end);
        for node in 0..end {
            if let Some(node) = self.passing_at(node, request, guard)
                && visited.insert(node)
            {
                let distance = self.graph.codec.exact(walk.query, walk.nodes.node(node));
                nearest.push(Candidate::new(distance, node));
            }
        }
        nearest.finish();
    }

    /// The same by estimates, of which only those that may be near enough are looked into.
    pub(crate) fn scan(
        &self,
        request: &Request<'_>,
        walk: &Walk<'_>,
        guard: &Guard<'_>,
        share: f64,
        scratch: &mut Scratch,
    ) {
        let wanted = ranked_exactly(request.count);
        let Scratch { estimates, found, visited, .. } = scratch;
        let mut nearest = Nearest::new(found, wanted);
        estimates.clear();
        let end = self.graph.rows.arena.end();
        visited.begin(end);
        for node in 0..end {
            if node + AHEAD < end {
                walk.prefetch(node + AHEAD);
                self.graph.rows.prefetch_block(node + AHEAD);
            }
            // Dying ones lead to the nodes that replaced them since the scan began.
            if matches!(self.graph.rows.block(node).state(), State::Linked | State::Dying) {
                estimates.push(Candidate::new(walk.cheap(node), node));
            }
        }
        let mut rest = &mut estimates[..];
        let step = ((2.0 * wanted as f64 / share.max(LEAST_SHARE)) as usize).max(64);
        while !rest.is_empty() {
            let (head, tail) = split_nearest(rest, step);
            for candidate in &*head {
                let node = candidate.node();
                if candidate.distance - SURE * walk.slack(node) >= nearest.worst {
                    continue;
                }
                // An element that was replaced may be met at several nodes.
                if let Some(node) = self.passing_at(node, request, guard)
                    && visited.insert(node)
                {
                    let distance = self.graph.codec.exact(walk.query, walk.nodes.node(node));
                    nearest.push(Candidate::new(distance, node));
                }
            }
            nearest.shrink();
            // All of the tail lies farther than the head's last.
            let reached = head.last().map_or(f32::INFINITY, |last| last.distance);
            let error = head.iter().map(|c| walk.slack(c.node())).fold(0.0, f32::max);
            if reached - SURE * error >= nearest.worst {
                break;
            }
            rest = tail;
        }
        nearest.finish();
    }

    /// The node of the element that a node is or was, if that passes the filter.
    fn passing_at(&self, node: u32, request: &Request<'_>, guard: &Guard<'_>) -> Option<u32> {
        let element = self.element_at(node, guard)?;
        let admits = |filter: &dyn Filter| filter.admits(element.name, element.attributes);
        request.filter.is_none_or(admits).then_some(element.node)
    }
}

/// The nearest of many candidates, without keeping them in order: twice as many as wanted are
/// gathered, then the farther half dropped.
struct Nearest<'a> {
    list: &'a mut Vec<Candidate>,
    wanted: usize,
    /// Nothing from here on is taken.
    worst: f32,
}

impl<'a> Nearest<'a> {
    fn new(list: &'a mut Vec<Candidate>, wanted: usize) -> Self {
        list.clear();
        Self { list, wanted, worst: f32::INFINITY }
    }

    fn push(&mut self, candidate: Candidate) {
        if candidate.distance < self.worst {
            self.list.push(candidate);
            if self.list.len() >= self.wanted.saturating_mul(2) {
                self.shrink();
            }
        }
    }

    fn shrink(&mut self) {
        if self.list.len() >= self.wanted {
            split_nearest(self.list, self.wanted);
            self.list.truncate(self.wanted);
            self.worst = self.list[self.wanted - 1].distance;
        }
    }

    fn finish(mut self) {
        self.shrink();
        self.list.sort_unstable_by(|a, b| a.order(*b));
    }
}

/// Moves the `count` nearest to the front, the farthest of them last.
fn split_nearest(list: &mut [Candidate], count: usize) -> (&mut [Candidate], &mut [Candidate]) {
    if count < list.len() {
        list.select_nth_unstable_by(count - 1, |a, b| a.order(*b));
    } else if let Some((at, _)) = list.iter().enumerate().max_by(|a, b| a.1.order(*b.1)) {
        let last = list.len() - 1;
        list.swap(at, last);
    }
    list.split_at_mut(count.min(list.len()))
}

#[cfg(test)]
mod tests {
    use super::Nearest;
    use crate::scratch::Candidate;

    #[test]
    fn the_nearest_are_kept_in_order() {
        for (count, wanted) in [(0, 3), (2, 3), (3, 3), (1_000, 1), (1_000, 60)] {
            let mut list = Vec::new();
            let mut nearest = Nearest::new(&mut list, wanted);
            for node in 0..count {
                // Each distance once, in a scattered order.
                let distance = (u64::from(node) * 7_919 % u64::from(count)) as f32;
                nearest.push(Candidate::new(distance, node));
            }
            nearest.finish();
            let distances: Vec<f32> = list.iter().map(|c| c.distance).collect();
            let kept = wanted.min(count as usize);
            assert_eq!(distances, (0..kept).map(|d| d as f32).collect::<Vec<_>>());
        }
    }
}
