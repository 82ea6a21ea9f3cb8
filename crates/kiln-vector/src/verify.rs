//! Checking a graph's invariants: after a load, and in tests.

use std::collections::HashSet;

use thiserror::Error;

use crate::graph::Graph;
use crate::index::Index;
use crate::node::State;

/// What is wrong with a graph.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Broken {
    /// A list names a node that is not there, or not on that level, or itself.
    #[error("node {node} links to {other} on level {level}, where that is not")]
    Dangling {
        /// Whose list it is.
        node: u32,
        /// Which node is named.
        other: u32,
        /// The level of the list.
        level: usize,
    },
    /// A list names a node twice, or goes on behind a gap.
    #[error("the list of node {node} on level {level} has a double or a gap")]
    Untidy {
        /// Whose list it is.
        node: u32,
        /// The level of the list.
        level: usize,
    },
    /// A link without its counterpart.
    #[error("node {node} links to {other} on level {level}, but not the other way round")]
    OneWay {
        /// Whose list it is.
        node: u32,
        /// Which node is named.
        other: u32,
        /// The level of the list.
        level: usize,
    },
    /// Nodes that no walk can come to.
    #[error("{0} nodes cannot be reached from the entry point")]
    Unreachable(usize),
    /// The entry point is not one of the tallest living nodes.
    #[error("the entry point is wrong")]
    Entry,
    /// A name and its node do not belong together.
    #[error("the name of node {0} does not stand for it")]
    Name(u32),
}

impl Index {
    /// Checks the whole graph: every link has its counterpart, every node can be reached, the
    /// entry point is one of the tallest. Nobody may change the index meanwhile. Takes about a
    /// microsecond for each link.
    ///
    /// # Errors
    ///
    /// The first thing found wrong.
    pub fn verify(&self) -> Result<(), Broken> {
        let graph = &self.graph;
        let guard = graph.epochs.enter();
        let mut elements = 0;
        for node in graph.linked() {
            verify_lists(graph, node)?;
            let element = self.element_at(node, &guard);
            elements += usize::from(element.is_some_and(|element| element.node == node));
        }
        if elements != self.len() {
            return Err(Broken::Name(u32::MAX));
        }
        verify_entry(graph)
    }
}

impl Graph {
    /// All nodes that are part of the graph.
    pub(crate) fn linked(&self) -> impl Iterator<Item = u32> {
        let is_linked = |&id: &u32| self.rows.block(id).state() == State::Linked;
        (0..self.rows.arena.end()).filter(is_linked)
    }
}

fn verify_lists(graph: &Graph, node: u32) -> Result<(), Broken> {
    let (mut ids, mut theirs) = (Vec::new(), Vec::new());
    for level in 0..=graph.rows.block(node).level() {
        graph.neighbours(node, level, &mut ids);
        let used = graph
            .list(node, level)
            .iter()
            .filter(|slot| slot.load(kiln_base::sync::atomic::Ordering::Relaxed) != 0);
        let distinct: HashSet<u32> = ids.iter().copied().collect();
        if distinct.len() != ids.len() || used.count() != ids.len() {
            return Err(Broken::Untidy { node, level });
        }
        for &other in &ids {
            let exists = other != node
                && other < graph.rows.arena.end()
                && graph.rows.block(other).state() == State::Linked
                && graph.rows.block(other).level() >= level;
            if !exists {
                return Err(Broken::Dangling { node, other, level });
            }
            graph.neighbours(other, level, &mut theirs);
            if !theirs.contains(&node) {
                return Err(Broken::OneWay { node, other, level });
            }
        }
    }
    Ok(())
}

fn verify_entry(graph: &Graph) -> Result<(), Broken> {
    let tallest = graph.linked().map(|id| graph.rows.block(id).level()).max();
    let Some((entry, level)) = graph.entry.get() else {
        return if tallest.is_none() { Ok(()) } else { Err(Broken::Entry) };
    };
    let block = graph.rows.block(entry);
    if block.state() != State::Linked || Some(level) != tallest || block.level() != level {
        return Err(Broken::Entry);
    }
    let mut reached = vec![false; graph.rows.arena.end() as usize];
    graph.reach(entry, &mut reached);
    match graph.linked().filter(|&node| !reached[node as usize]).count() {
        0 => Ok(()),
        missing => Err(Broken::Unreachable(missing)),
    }
}
