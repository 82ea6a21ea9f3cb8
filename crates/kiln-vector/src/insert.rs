//! Putting a vector into the graph.

#![expect(unsafe_code, reason = "rows are read inside the epoch")]

use kiln_base::sync::atomic::Ordering;

use crate::graph::{Graph, LEVEL_MAX};
use crate::node::{NODES_MAX, State};
use crate::scratch::{Candidate, Scratch};
use crate::select::{Choice, Selector};
use crate::walk::Walk;

/// What decides how well a node is linked.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Candidates among which neighbours are chosen.
    pub(crate) ef_construction: usize,
    /// Links to choose on a level.
    pub(crate) m: usize,
}

impl Graph {
    /// Stores a vector, which the codec has checked, as a node on levels 0 to `level`, and links
    /// it. The node is no element yet: it has no name.
    pub(crate) fn insert(
        &self,
        vector: &[f32],
        level: usize,
        effort: Effort,
        scratch: &mut Scratch,
    ) -> u32 {
        let Scratch { query, side, .. } = scratch;
        self.codec.prepare_into(vector, query);
        let node = self.rows.arena.allocate();
        assert!(node < NODES_MAX, "an index holds at most 2^31 nodes");
        let block = self.rows.block(node);
        block.set_state(State::Building);
        // SAFETY: the id was just handed out to us, and no list holds it yet.
        let mut row = unsafe { self.rows.building(node) };
        self.codec.encode_query(query, &mut row, side);
        // SAFETY: as above.
        let apart = unsafe { self.rows.set_side(node, side) };
        self.strings_bytes.fetch_add(apart, Ordering::Relaxed);
        let level = level.min(LEVEL_MAX);
        block.set_level(level);
        block.upper.store(self.take_uppers(level), Ordering::Relaxed);
        self.attach(node, level, effort, scratch);
        node
    }

    /// Links a node anew that nothing leads to any more.
    pub(crate) fn reattach(&self, node: u32, effort: Effort, scratch: &mut Scratch) {
        let guard = self.epochs.enter();
        // SAFETY: the caller owns the node.
        let nodes = unsafe { self.rows.reader(&guard) };
        self.codec.prepare_stored_into(nodes.node(node), &mut scratch.query);
        drop(guard);
        self.attach(node, self.rows.block(node).level(), effort, scratch);
    }

    /// Links a node on all its levels. `scratch.query` is its vector.
    fn attach(&self, node: u32, level: usize, effort: Effort, scratch: &mut Scratch) {
        let guard = self.epochs.enter();
        // SAFETY: ids come from the entry point and from lists, loaded under this guard, and the
        // node itself is ours.
        let nodes = unsafe { self.rows.reader(&guard) };
        let selector = Selector { graph: self, nodes };
        let query = std::mem::take(&mut scratch.query);
        loop {
            let Some((start, top)) = self.entry.get() else {
                // Alive before it is found: the first thing another insert does is to link to it.
                self.rows.block(node).set_state(State::Linked);
                if self.entry.begin(node, level) {
                    break;
                }
                continue;
            };
            if start == node {
                break; // An entry point that died has chosen us to follow it.
            }
            let walk = Walk::new(self, nodes, &query);
            let choices = choose(&walk, selector, node, (start, top, level), effort, scratch);
            self.rows.block(node).set_state(State::Linked);
            for (level, choice) in
                choices.iter().enumerate().rev().map(|(i, choice)| (choices.len() - 1 - i, choice))
            {
                let fill = if level == 0 { effort.m } else { effort.m / 2 };
                selector.link_all(node, choice, level, fill);
            }
            if self.degree(node, 0) > 0 {
                self.entry.add(node, level);
                break;
            }
            // All that we found died in between. Others made progress, so this ends.
        }
        scratch.query = query;
    }
}

/// The neighbours to link to on each level, the highest first.
fn choose(
    walk: &Walk<'_>,
    selector: Selector<'_>,
    node: u32,
    (start, top, level): (u32, usize, usize),
    effort: Effort,
    scratch: &mut Scratch,
) -> Vec<Choice> {
    let Scratch { candidates, visited, neighbours, .. } = scratch;
    let here = walk.descend(start, top, level, neighbours);
    candidates.begin(effort.ef_construction);
    candidates.insert(walk.coarse(here), here);
    let mut choices = Vec::with_capacity(level.min(top) + 1);
    for level in (0..=level.min(top)).rev() {
        walk.explore(level, candidates, visited, neighbours);
        // Half as many again on level 0: recall at 20 candidates rises by 0.004, the time of an
        // insert by an eighth.
        let limit = if level == 0 { effort.m + effort.m / 2 } else { effort.m };
        let others: Vec<Candidate> =
            candidates.sorted().iter().copied().filter(|c| c.node() != node).collect();
        choices.push(selector.choose(node, &others, limit));
        candidates.restart(effort.ef_construction);
    }
    choices
}
