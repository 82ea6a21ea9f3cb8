//! Taking a node out of the graph, and closing the gap.

#![expect(unsafe_code, reason = "rows are read inside the epoch")]

use crate::graph::Graph;
use crate::node::State;
use crate::scratch::{Candidate, Scratch};
use crate::select::Selector;
use crate::walk::Walk;

/// New links that a node may get for one that it lost.
const REPAIRS: usize = 3;
/// Candidates of the search for a node that has few links left.
const RESCUE_EF: usize = 48;

impl Graph {
    /// Unlinks a node from everything and links its neighbours among each other. After a grace
    /// period the node may be freed.
    pub(crate) fn detach(&self, node: u32, scratch: &mut Scratch) {
        let guard = self.epochs.enter();
        // SAFETY: ids come from the node's own lists, loaded under this guard, and the node is
        // the caller's to remove.
        let nodes = unsafe { self.rows.reader(&guard) };
        let selector = Selector { graph: self, nodes };
        self.condemn(node);
        let level = self.rows.block(node).level();
        self.entry.remove(node, level, || self.successor(node));
        for level in (0..=level).rev() {
            let mut orphans = Vec::new();
            // Again until nothing is left: a copy that is disturbed by the neighbours' own changes
            // may miss a link. No new ones are made.
            while self.degree(node, level) > 0 {
                self.neighbours(node, level, &mut scratch.neighbours);
                for &orphan in &scratch.neighbours {
                    self.disconnect(node, orphan, level);
                    orphans.push(orphan);
                }
            }
            for &orphan in &orphans {
                repair(selector, orphan, &orphans, level);
                if level == 0 && self.degree(orphan, 0) < self.rows.links / 4 {
                    rescue(self, selector, orphan, scratch);
                }
            }
        }
    }

    /// A living node to take the place of an entry point on level 0.
    fn successor(&self, node: u32) -> Option<u32> {
        let mut neighbours = Vec::new();
        self.neighbours(node, 0, &mut neighbours);
        let linked = |&id: &u32| self.rows.block(id).state() == State::Linked;
        neighbours.into_iter().find(linked).or_else(|| {
            // Only if the entry point had no neighbour at all.
            (0..self.rows.arena.end()).filter(|&id| id != node).find(linked)
        })
    }
}

/// Links a node that lost a neighbour to some of that neighbour's other ones.
fn repair(selector: Selector<'_>, node: u32, others: &[u32], level: usize) {
    let graph = selector.graph;
    let mut ids = Vec::new();
    graph.neighbours(node, level, &mut ids);
    let at = |&other: &u32| Candidate::new(selector.between(node, other), other);
    let mut linked: Vec<Candidate> = ids.iter().map(at).collect();
    let strangers = others.iter().filter(|&&other| other != node && !ids.contains(&other));
    let mut candidates: Vec<Candidate> = strangers.map(at).collect();
    candidates.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    let mut added = 0;
    for candidate in candidates {
        let covered = linked.iter().any(|near| {
            near.distance < candidate.distance
                && selector.between(near.node(), candidate.node()) < candidate.distance
        });
        if !covered && selector.link(node, candidate, level, false) {
            linked.push(candidate);
            added += 1;
            if added == REPAIRS {
                break;
            }
        }
    }
}

/// Searches new neighbours for a node that is left with few.
fn rescue(graph: &Graph, selector: Selector<'_>, node: u32, scratch: &mut Scratch) {
    if graph.is_dying(node) {
        return;
    }
    let mut query = std::mem::take(&mut scratch.query);
    graph.codec.prepare_stored_into(selector.nodes.node(node), &mut query);
    let walk = Walk::new(graph, selector.nodes, &query);
    let Scratch { candidates, visited, neighbours, .. } = scratch;
    candidates.begin(RESCUE_EF);
    if let Some((start, top)) = graph.entry.get() {
        let here = walk.descend(start, top, 0, neighbours);
        candidates.insert(walk.coarse(here), here);
    }
    walk.explore(0, candidates, visited, neighbours);
    graph.neighbours(node, 0, neighbours);
    let strangers: Vec<Candidate> = candidates
        .sorted()
        .iter()
        .copied()
        .filter(|c| c.node() != node && !neighbours.contains(&c.node()))
        .collect();
    let wanted = graph.rows.links / 4;
    let choice = selector.choose(node, &strangers, wanted);
    selector.link_all(node, &choice, 0, wanted);
    scratch.query = query;
}
