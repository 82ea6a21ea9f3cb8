//! The walk from the entry point to the nodes nearest to a query.
//!
//! Above level 0 it is greedy: one candidate, by one-bit estimates. On the level that counts, each
//! expanded node's links go through three sieves, and the memory of each is asked for before the
//! one before it is computed:
//!
//! 1. seen before? One byte for each node, per thread.
//! 2. one-bit estimate, from one or a few lines of the header: four of five stop here;
//! 3. coarse distance, from the hot row.
//!
//! Where the time goes, and why in this order: reference/vector.md, sections 4.3 and 6.

use crate::codec::Query;
use crate::graph::Graph;
use crate::node::Reader;
use crate::scratch::{Candidates, Visited};

/// A walk of one thread, inside the epoch.
pub(crate) struct Walk<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) nodes: Reader<'a>,
    pub(crate) query: &'a Query,
    pub(crate) bits: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(graph: &'a Graph, nodes: Reader<'a>, query: &'a Query) -> Self {
        Self { graph, nodes, query, bits: graph.codec.config().bits }
    }

    /// The coarse distance of a node.
    #[inline]
    pub(crate) fn coarse(&self, node: u32) -> f32 {
        self.graph.codec.coarse(self.query, self.nodes.header(node), self.nodes.hot(node))
    }

    /// The cheapest distance there is.
    #[inline]
    pub(crate) fn cheap(&self, node: u32) -> f32 {
        if self.bits {
            self.graph.codec.estimate(self.query, self.nodes.header(node))
        } else {
            self.coarse(node)
        }
    }

    /// Whether a node may be nearer than `worst`.
    #[inline]
    pub(crate) fn may_be_below(&self, node: u32, worst: f32) -> bool {
        let header = self.nodes.header(node);
        let codec = &self.graph.codec;
        codec.estimate(self.query, header) - codec.slack(self.query, header) < worst
    }

    /// Half the standard error of [`Walk::cheap`].
    pub(crate) fn slack(&self, node: u32) -> f32 {
        if !self.bits {
            return 0.0;
        }
        self.graph.codec.slack(self.query, self.nodes.header(node))
    }

    #[inline]
    pub(crate) fn prefetch(&self, node: u32) {
        self.nodes.prefetch_header(node);
        if !self.bits {
            self.nodes.prefetch_hot(node);
        }
    }

    /// Goes down from level `from` to just above level `to`, each time to the nearest node found.
    pub(crate) fn descend(
        &self,
        start: u32,
        from: usize,
        to: usize,
        neighbours: &mut Vec<u32>,
    ) -> u32 {
        let mut here = start;
        if from <= to {
            return here;
        }
        let mut nearest = self.cheap(here);
        for level in (to + 1..=from).rev() {
            loop {
                self.graph.neighbours(here, level, neighbours);
                for &node in &*neighbours {
                    self.prefetch(node);
                }
                let before = here;
                for &node in &*neighbours {
                    let distance = self.cheap(node);
                    if distance < nearest {
                        (nearest, here) = (distance, node);
                    }
                }
                if here == before {
                    break;
                }
            }
        }
        here
    }

    /// Finds the nodes of a level that are nearest to the query, as many as `candidates` is wide,
    /// beginning from what is in it.
    pub(crate) fn explore(
        &self,
        level: usize,
        candidates: &mut Candidates,
        visited: &mut Visited,
        neighbours: &mut Vec<u32>,
    ) {
        visited.begin(self.nodes.rows.arena.end());
        for start in candidates.sorted() {
            visited.insert(start.node());
        }
        while let Some(node) = candidates.expand() {
            self.graph.neighbours(node, level, neighbours);
            neighbours.retain(|&node| {
                let new = visited.insert(node);
                if new {
                    self.prefetch(node);
                }
                new
            });
            if let Some(next) = candidates.peek()
                && level == 0
            {
                self.nodes.prefetch_links(next);
            }
            if self.bits {
                let worst = candidates.worst();
                neighbours.retain(|&node| {
                    let near = self.may_be_below(node, worst);
                    if near {
                        self.nodes.prefetch_hot(node);
                    }
                    near
                });
            }
            for &node in &*neighbours {
                if candidates.insert(self.coarse(node), node) && level == 0 {
                    self.nodes.prefetch_links(node); // The next to be expanded, as it looks.
                }
            }
        }
    }
}
