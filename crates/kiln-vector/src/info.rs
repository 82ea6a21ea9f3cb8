//! What an index tells of itself: figures, the links of an element, what a search would cost.

#![expect(unsafe_code, reason = "rows are read inside the epoch")]

use kiln_base::sync::atomic::Ordering;

use crate::index::{Index, IndexConfig};
use crate::node::State;
use crate::search::Request;
use crate::select::Selector;

/// Figures of an index, each by itself right at about the time of the call.
#[derive(Debug, Clone, PartialEq)]
pub struct Info {
    /// What the index was made for.
    pub config: IndexConfig,
    /// How many elements there are.
    pub elements: usize,
    /// How many of them have attributes.
    pub attributed: usize,
    /// Vectors that ever came in, those that replaced others included.
    pub inserts: u64,
    /// The highest level in use; none if the graph is empty.
    pub max_level: Option<usize>,
    /// Nodes that have been in use at once at the most; ids lie below this.
    pub nodes: usize,
    /// Removed nodes that wait for readers to leave.
    pub retired: usize,
    /// Bytes of RAM.
    pub memory_bytes: usize,
}

/// A neighbour of an element.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its distance from the element, by coarse codes.
    pub distance: f32,
}

impl Index {
    /// Figures of the index.
    pub fn info(&self) -> Info {
        Info {
            config: *self.config(),
            elements: self.len(),
            attributed: self.attributed.load(Ordering::Relaxed),
            inserts: self.inserts.load(Ordering::Relaxed),
            max_level: self.graph.entry.get().map(|(_, level)| level),
            nodes: self.graph.rows.arena.end() as usize,
            retired: self.retired_nodes(),
            memory_bytes: self.memory_bytes(),
        }
    }

    /// Bytes of RAM that the index holds.
    pub fn memory_bytes(&self) -> usize {
        let own = size_of::<Self>() + self.graph.strings_bytes.load(Ordering::Relaxed);
        own + self.graph.memory_bytes()
            + self.names.memory_bytes()
            + self.graph.codec.memory_bytes()
    }

    /// The neighbours of an element on each of its levels, level 0 first, nearest first.
    pub fn links(&self, name: &[u8]) -> Option<Vec<Vec<Link>>> {
        let guard = self.graph.epochs.enter();
        let node = self.names.find(name)?;
        // SAFETY: ids come from the name and from lists, loaded under this guard.
        let nodes = unsafe { self.graph.rows.reader(&guard) };
        let selector = Selector { graph: &self.graph, nodes };
        let mut ids = Vec::new();
        let levels = 0..=self.graph.rows.block(node).level();
        let links = levels.map(|level| {
            self.graph.neighbours(node, level, &mut ids);
            let link = |&id: &u32| {
                let element = self.element(id, &guard)?;
                let distance = selector.between(node, element.node);
                Some(Link { name: element.name.into(), distance })
            };
            let mut links: Vec<Link> = ids.iter().filter_map(link).collect();
            links.sort_by(|a, b| a.distance.total_cmp(&b.distance));
            links
        });
        Some(links.collect())
    }

    /// The mean number of links on level 0.
    pub fn mean_degree(&self) -> f64 {
        let linked = |&id: &u32| self.graph.rows.block(id).state() == State::Linked;
        let (mut nodes, mut links) = (0, 0);
        for id in (0..self.graph.rows.arena.end()).filter(linked) {
            nodes += 1;
            links += self.graph.degree(id, 0);
        }
        links as f64 / f64::from(nodes.max(1))
    }

    /// About how many microseconds a search takes, to decide where to run it. Measured at 384
    /// dimensions: 0.6 per candidate of a walk, 0.02 per node of a scan by estimates, 0.1 by exact
    /// distances; and in proportion to the bytes read for other dimensions.
    pub fn estimate_cost_us(&self, request: &Request<'_>) -> u32 {
        let guard = self.graph.epochs.enter();
        let nodes = f64::from(self.graph.rows.arena.end());
        let size = 0.5 + self.config().dim as f64 / 768.0;
        let cost = if request.exact {
            0.1 * nodes * size
        } else {
            // A filter is tried out here too; that is little beside such a search.
            match self.plan(request, &guard).width {
                Some(width) => 0.6 * width as f64 * size,
                None => 0.02 * nodes * size,
            }
        };
        let filtering = if request.filter.is_some() { 2.0 } else { 1.0 };
        (10.0 + cost * filtering) as u32
    }
}
