//! Searching: which elements are nearest to a vector.
//!
//! A search walks the graph with coarse distances, or scans all nodes where that is cheaper, and
//! ranks what it found by exact distances. What it returns is always ranked and scored exactly, as
//! far as what is stored allows.

#![expect(unsafe_code, reason = "rows are read inside the epoch")]

use crate::epoch::Guard;
use crate::error::VectorError;
use crate::filter::Filter;
use crate::index::{Element, Index};
use crate::node::State;
use crate::scratch::{self, Candidate, Scratch};
use crate::walk::Walk;

/// Candidates of a walk beyond those asked for. They make up for what the sieve by estimates lets
/// through its holes: recall at 20 candidates rises by 0.004, the time by a twentieth.
const MARGIN: usize = 2;
/// How many times a walk begins anew because the node that it began from was being unlinked.
const RESTARTS: usize = 16;
/// Candidates beyond the count that are ranked exactly, or two in five of it if that is more.
/// Coarse distances at ranks 10 and 14 lie many times their error apart.
const RERANK_MORE: usize = 4;

/// What to search for.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    /// What is near a vector of the index's dimensions.
    Vector(&'a [f32]),
    /// What is near an element.
    Element(&'a [u8]),
}

/// A search.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What to be near to.
    pub target: Target<'a>,
    /// How many elements to return at most.
    pub count: usize,
    /// Candidates of the walk, at least `count`; none for the index's own number.
    pub ef: Option<usize>,
    /// Whether to compare with every element instead of walking the graph.
    pub exact: bool,
    /// Which elements may be returned.
    pub filter: Option<&'a dyn Filter>,
    /// How many elements the walk may offer to the filter; none for the usual number.
    pub filter_ef: Option<usize>,
    /// The distance from which on elements are left out.
    pub max_distance: Option<f32>,
    /// Whether hits carry their attributes.
    pub with_attributes: bool,
}

impl<'a> Request<'a> {
    /// The `count` elements nearest to `target`, with all else as usual.
    pub fn new(target: Target<'a>, count: usize) -> Self {
        Self {
            target,
            count,
            ef: None,
            exact: false,
            filter: None,
            filter_ef: None,
            max_distance: None,
            with_attributes: false,
        }
    }
}

/// An element found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its distance by the index's metric, smaller when nearer. See [`crate::Metric::wire`].
    pub distance: f32,
    /// Its attributes, if they were asked for and there are any.
    pub attributes: Option<Box<[u8]>>,
}

impl Index {
    /// The elements nearest to the target, nearest first; of equally near ones the first by name.
    /// None at all if the target is an element that does not exist.
    ///
    /// # Errors
    ///
    /// [`VectorError::Dimension`], then [`VectorError::NotFinite`].
    pub fn search(&self, request: &Request<'_>) -> Result<Option<Vec<Hit>>, VectorError> {
        if let Target::Vector(vector) = request.target {
            self.graph.codec.check(vector)?;
        }
        Ok(scratch::with(|scratch| {
            let guard = self.graph.epochs.enter();
            // SAFETY: ids come from names, the entry point and lists, loaded under this guard.
            let nodes = unsafe { self.graph.rows.reader(&guard) };
            let mut query = std::mem::take(&mut scratch.query);
            match request.target {
                Target::Vector(vector) => self.graph.codec.prepare_into(vector, &mut query),
                Target::Element(name) => {
                    let node = self.names.find(name)?;
                    self.graph.codec.prepare_stored_into(nodes.node(node), &mut query);
                }
            }
            let walk = Walk::new(&self.graph, nodes, &query);
            let hits = self.hits(request, &walk, &guard, scratch);
            scratch.query = query;
            Some(hits)
        }))
    }

    fn hits(
        &self,
        request: &Request<'_>,
        walk: &Walk<'_>,
        guard: &Guard<'_>,
        scratch: &mut Scratch,
    ) -> Vec<Hit> {
        if request.count == 0 {
            return Vec::new();
        }
        if request.exact {
            self.scan_exactly(request, walk, guard, scratch);
            return self.rank(request, walk, guard, &scratch.found, None);
        }
        let plan = self.plan(request, guard);
        let mut next_width = plan.width;
        while let Some(width) = next_width {
            walk.to_nearest(width, scratch);
            let candidates = scratch.candidates.sorted();
            let hits = self.rank(request, walk, guard, candidates, request.filter);
            let too_few = request.filter.is_some() && hits.len() < request.count;
            if !too_few || request.filter_ef.is_some() || request.max_distance.is_some() {
                return hits;
            }
            // What passes lies farther from the query. The promise is to find it all the same.
            next_width = self.walkable(width.saturating_mul(2));
        }
        self.scan(request, walk, guard, plan.share, scratch);
        self.rank(request, walk, guard, &scratch.found, None)
    }

    /// Turns candidates, nearest first by coarse distance, into hits by exact distance.
    fn rank(
        &self,
        request: &Request<'_>,
        walk: &Walk<'_>,
        guard: &Guard<'_>,
        candidates: &[Candidate],
        filter: Option<&dyn Filter>,
    ) -> Vec<Hit> {
        let wanted = ranked_exactly(request.count);
        let mut ranked: Vec<(f32, Element<'_>)> = Vec::with_capacity(wanted.min(candidates.len()));
        let mut replaced = false;
        for candidate in candidates {
            let Some(element) = self.element(candidate.node(), guard) else { continue };
            // A node and the one that replaced it may both have been met.
            replaced |= element.node != candidate.node();
            if replaced && ranked.iter().any(|(_, other)| other.node == element.node) {
                continue;
            }
            if filter.is_some_and(|filter| !filter.admits(element.name, element.attributes)) {
                continue;
            }
            walk.nodes.prefetch_cold(element.node);
            ranked.push((0.0, element));
            if ranked.len() == wanted {
                break;
            }
        }
        for (distance, element) in &mut ranked {
            *distance = self.graph.codec.exact(walk.query, walk.nodes.node(element.node));
        }
        if let Some(most) = request.max_distance {
            ranked.retain(|(distance, _)| *distance < most);
        }
        ranked.sort_by(|(a, x), (b, y)| a.total_cmp(b).then_with(|| x.name.cmp(y.name)));
        ranked.truncate(request.count);
        let hit = |(distance, element): (f32, Element<'_>)| Hit {
            name: element.name.into(),
            distance,
            attributes: element.attributes.filter(|_| request.with_attributes).map(Into::into),
        };
        ranked.into_iter().map(hit).collect()
    }
}

/// How many candidates are ranked exactly for `count` hits.
pub(crate) fn ranked_exactly(count: usize) -> usize {
    count.saturating_add(RERANK_MORE.max(count / 5 * 2))
}

impl Walk<'_> {
    /// Fills the scratch's candidates with the `ef` nodes nearest to the query.
    pub(crate) fn to_nearest(&self, ef: usize, scratch: &mut Scratch) {
        let Scratch { candidates, visited, neighbours, .. } = scratch;
        for _ in 0..RESTARTS {
            candidates.begin(ef.saturating_add(MARGIN));
            let Some((start, top)) = self.graph.entry.get() else { return };
            let here = self.descend(start, top, 0, neighbours);
            candidates.insert(self.coarse(here), here);
            self.explore(0, candidates, visited, neighbours);
            // A node that is being unlinked leads nowhere.
            let alone = candidates.sorted().len() == 1;
            if !(alone && self.graph.rows.block(here).state() == State::Dying) {
                return;
            }
        }
    }
}
