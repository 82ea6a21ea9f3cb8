//! Which neighbours a node keeps.
//!
//! A candidate is **covered** by a nearer neighbour if it lies nearer to that one than to the node:
//! a walk that comes to the node reaches the candidate through the neighbour. Links to covered
//! nodes are the ones to save (the relative neighbourhood rule of HNSW, algorithm 4). Exact copies
//! cover each other, and stand for each other towards the rest.
//!
//! Distances are coarse ones: by signed bytes the graph is as good as by float32 (recall at equal
//! width), and costs a fifth of the time.

use crate::graph::{Connected, Graph};
use crate::node::Reader;
use crate::scratch::Candidate;

/// Attempts to find a victim in a list that other threads keep changing.
const ATTEMPTS: usize = 4;
/// In a full list a node covers others only if they are nearer to it by this factor than to the
/// centre: so the links that lead far away stay, however many near ones come.
const COVER_VICTIM: f32 = 1.1;

/// The choice of neighbours and the linking, inside the epoch.
#[derive(Clone, Copy)]
pub(crate) struct Selector<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) nodes: Reader<'a>,
}

impl Selector<'_> {
    /// The coarse distance between two nodes.
    #[inline]
    pub(crate) fn between(&self, a: u32, b: u32) -> f32 {
        let (a, b) =
            ((self.nodes.header(a), self.nodes.hot(a)), (self.nodes.header(b), self.nodes.hot(b)));
        self.graph.codec.between(a, b)
    }

    /// Sorts `candidates` (nearest first) into those that `node` should link to, at most `limit`,
    /// and the covered ones.
    pub(crate) fn choose(&self, node: u32, candidates: &[Candidate], limit: usize) -> Choice {
        let mut choice = Choice::default();
        for candidate in candidates {
            if choice.chosen.len() == limit {
                break;
            }
            // Computed in the same way as the distances that it is compared with, so that copies
            // of one vector are at exactly the same distance from everything.
            let distance = self.between(node, candidate.node());
            let candidate = Candidate::new(distance, candidate.node());
            let covered = choice.chosen.iter().any(|chosen: &Candidate| {
                self.between(chosen.node(), candidate.node()) <= candidate.distance
            });
            if covered { choice.covered.push(candidate) } else { choice.chosen.push(candidate) }
        }
        choice
    }

    /// Links a new node to what was chosen for it on one level, and fills up with covered ones.
    pub(crate) fn link_all(&self, node: u32, choice: &Choice, level: usize, fill: usize) {
        for (rank, chosen) in choice.chosen.iter().enumerate() {
            self.link(node, *chosen, level, rank == 0);
        }
        for covered in &choice.covered {
            if self.graph.degree(node, level) >= fill {
                break;
            }
            self.graph.connect(node, covered.node(), level);
        }
    }

    /// Links `node` to `other`. Where `other` has no room it gives up its least useful link; if
    /// that would be this one, nothing happens, unless `force` says so.
    pub(crate) fn link(&self, node: u32, other: Candidate, level: usize, force: bool) -> bool {
        for _ in 0..ATTEMPTS {
            match self.graph.connect(node, other.node(), level) {
                Connected::Yes => return true,
                Connected::Gone | Connected::FirstFull => return false,
                Connected::SecondFull => {}
            }
            let Some(victim) = self.victim(other.node(), node, other.distance, level, force) else {
                return false;
            };
            if self.graph.displace(other.node(), victim, node, level) {
                return true;
            }
        }
        false
    }

    /// The neighbour that `node` should give up for `new`: the farthest one that is covered. None
    /// if that is `new` itself.
    fn victim(&self, node: u32, new: u32, distance: f32, level: usize, force: bool) -> Option<u32> {
        let mut ids = Vec::new();
        self.graph.neighbours(node, level, &mut ids);
        for &id in &ids {
            self.nodes.prefetch_header(id);
            self.nodes.prefetch_hot(id);
        }
        let mut list: Vec<Candidate> =
            ids.iter().map(|&id| Candidate::new(self.between(node, id), id)).collect();
        list.push(Candidate::new(distance, new));
        list.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        // A node with few links keeps them, lest it be cut off.
        let least = self.graph.list(node, level).len() / 4;
        let may_go = |candidate: &Candidate| self.graph.degree(candidate.node(), level) > least;
        for at in (1..list.len()).rev() {
            let candidate = list[at];
            let covered = list[..at].iter().any(|nearer| {
                let distance = self.between(nearer.node(), candidate.node());
                // Copies cover each other, but nothing else that is equally far from all of them.
                stretch(distance, COVER_VICTIM) < candidate.distance
                    || same(distance, candidate.distance) && same(distance, nearer.distance)
            });
            if !covered {
                continue;
            }
            if candidate.node() == new {
                if !force {
                    return None;
                }
            } else if may_go(&candidate) {
                return Some(candidate.node());
            }
        }
        // Nothing is covered: the farthest goes.
        let mut farthest = list.iter().rev().filter(|c| c.node() == new || may_go(c));
        let loser = farthest.next().map_or(new, |candidate| candidate.node());
        if loser != new {
            return Some(loser);
        }
        let forced = || list.iter().rev().map(|c| c.node()).find(|&id| id != new);
        if force { forced() } else { None }
    }
}

/// Whether two distances are those of copies: computed from the same bytes.
#[inline]
fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits()
}

/// A distance made larger by a factor, also a negative one.
#[inline]
fn stretch(distance: f32, factor: f32) -> f32 {
    distance + (factor - 1.0) * distance.abs()
}

/// Candidates in two parts, each nearest first.
#[derive(Default)]
pub(crate) struct Choice {
    pub(crate) chosen: Vec<Candidate>,
    pub(crate) covered: Vec<Candidate>,
}
