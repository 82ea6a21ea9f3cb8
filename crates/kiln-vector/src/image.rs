//! An index as bytes: the vectors and the whole graph, so that loading builds nothing anew.
//!
//! ```text
//! "KILNVEC1" | settings | nodes: u32 | entry: u32
//! nodes  x   ( level: u8 | name | attributes | vector )
//! nodes  x   ( for each level: links: u16, that many u32 )
//! xxh3 of all before: u64
//!
//! name         length: u32, bytes
//! attributes   length + 1: u32, or 0 for none; bytes
//! vector       float32 without quantization, else the header's bytes and the hot row
//! ```
//!
//! All numbers are little-endian. Nodes are numbered anew, without gaps; only elements are kept.
//! A float32 vector is stored as it was given and encoded again by the reader, so an image does
//! not depend on how rows are laid out, and no row can be malformed.
//!
//! Saving stops nobody. It is a stay inside the epoch, so what it has begun to look at remains;
//! links that change meanwhile may be written on one side only. The reader drops those, and links
//! again whatever cannot be reached then. With nobody writing, a loaded graph is the saved one.
//!
//! The reader trusts nothing: lengths, numbers, levels, double names and links are checked before
//! use, and no memory is reserved by a number that the bytes do not bear out.

#![expect(unsafe_code, reason = "rows are written by the loader and read inside the epoch")]

use std::collections::HashSet;
use std::io;

use kiln_base::sync::atomic::Ordering;
use thiserror::Error;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::codec::{Codec, NodeRef, Quantization, Query};
use crate::error::VectorError;
use crate::graph::LEVEL_MAX;
use crate::index::{Index, IndexConfig};
use crate::insert::Effort;
use crate::links;
use crate::metric::Metric;
use crate::names::Assigned;
use crate::node::State;
use crate::scratch;

const MAGIC: &[u8; 8] = b"KILNVEC1";
const CHECKSUM: usize = size_of::<u64>();
/// How often nodes that cannot be reached are linked anew; seldom more than twice.
const RELINK_ROUNDS_MAX: usize = 16;
/// No entry point.
const NONE: u32 = u32::MAX;

/// Why bytes are no image of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// They are something else, or of a version that this one does not know.
    #[error("not an image of an index")]
    Magic,
    /// They were changed or cut after they were written.
    #[error("the checksum of the image is wrong")]
    Checksum,
    /// They end too early.
    #[error("the image is cut off")]
    Truncated,
    /// They hold what no index writes.
    #[error("the image has a wrong {0}")]
    Malformed(&'static str),
    /// They hold a vector or settings that no index takes.
    #[error(transparent)]
    Vector(#[from] VectorError),
}

impl Index {
    /// Writes the whole index. Others may search and change it meanwhile; what they remove is freed
    /// when it is done.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn save(&self, out: &mut impl io::Write) -> io::Result<()> {
        let guard = self.graph.epochs.enter();
        // SAFETY: the nodes saved are those that were elements under this guard.
        let nodes = unsafe { self.graph.rows.reader(&guard) };
        let mut seen = HashSet::new();
        let is_element = |node: &u32| {
            // A node and the one that replaces it share a name: the first one met is saved.
            let element = self.element_at(*node, &guard).filter(|element| element.node == *node);
            element.is_some_and(|element| seen.insert(element.name.as_ptr()))
        };
        let end = self.graph.rows.arena.end();
        let saved: Vec<u32> = (0..end).filter(is_element).collect();
        let mut number = vec![NONE; end as usize];
        for (at, &node) in saved.iter().enumerate() {
            number[node as usize] = at as u32;
        }
        let mut out = Hashing { out, hash: Xxh3::new() };
        let entry = self.graph.entry.get().map(|(node, _)| number.get(node as usize));
        out.write(&self.head(saved.len(), entry.flatten().copied().unwrap_or(NONE)))?;
        let mut buf = Vec::new();
        let mut vector = Vec::new();
        for &node in &saved {
            buf.clear();
            let block = self.graph.rows.block(node);
            buf.push(block.level() as u8);
            let Some(name) = block.name() else { continue };
            // SAFETY: a node's record lives as long as the node, which the guard keeps.
            let name = unsafe { name.get() }.bytes;
            buf.extend_from_slice(&(name.len() as u32).to_le_bytes());
            buf.extend_from_slice(name);
            // SAFETY: attributes loaded under the guard live until it ends.
            let attributes = block.attributes().map(|attributes| unsafe { attributes.get() });
            let length = attributes.map_or(0, |attributes| attributes.len() as u32 + 1);
            buf.extend_from_slice(&length.to_le_bytes());
            buf.extend_from_slice(attributes.unwrap_or_default());
            let row = nodes.node(node);
            if self.config().quantization == Quantization::None {
                self.graph.codec.decode(row, &mut vector);
                buf.extend(vector.iter().flat_map(|x| x.to_le_bytes()));
            } else {
                buf.extend_from_slice(row.header);
                buf.extend_from_slice(row.hot);
            }
            out.write(&buf)?;
        }
        let mut ids = Vec::new();
        for (at, &node) in saved.iter().enumerate() {
            buf.clear();
            for level in 0..=self.graph.rows.block(node).level() {
                self.graph.neighbours(node, level, &mut ids);
                // Nodes that were added since have no number; pending ones neither.
                let numbers = ids.iter().filter_map(|&id| number.get(id as usize).copied());
                let mut numbers: Vec<u32> = numbers.filter(|&id| id != NONE).collect();
                // A copy that writers disturbed again and again may have a link twice.
                let mut seen = HashSet::new();
                numbers.retain(|&id| id != at as u32 && seen.insert(id));
                buf.extend_from_slice(&(numbers.len() as u16).to_le_bytes());
                buf.extend(numbers.iter().flat_map(|id| id.to_le_bytes()));
            }
            out.write(&buf)?;
        }
        let checksum = out.hash.digest();
        out.out.write_all(&checksum.to_le_bytes())
    }

    fn head(&self, nodes: usize, entry: u32) -> Vec<u8> {
        let config = self.config();
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&(config.dim as u32).to_le_bytes());
        head.push(match config.metric {
            Metric::Cosine => 0,
            Metric::L2 => 1,
            Metric::InnerProduct => 2,
        });
        head.push(match config.quantization {
            Quantization::None => 0,
            Quantization::Q8 => 1,
            Quantization::Bin => 2,
        });
        head.push(config.bits.into());
        for number in [config.m, config.ef_construction, config.ef_search] {
            head.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
        }
        head.extend_from_slice(&config.seed.to_le_bytes());
        head.extend_from_slice(&self.inserts.load(Ordering::Relaxed).to_le_bytes());
        head.extend_from_slice(&(nodes as u32).to_le_bytes());
        head.extend_from_slice(&entry.to_le_bytes());
        head
    }

    /// The index that was saved as `image`.
    ///
    /// # Errors
    ///
    /// Checked in this order: [`LoadError::Magic`], [`LoadError::Checksum`], then whatever is met
    /// first from front to back.
    pub fn load(image: &[u8]) -> Result<Index, LoadError> {
        if image.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(LoadError::Magic);
        }
        let (body, checksum) = image.split_last_chunk::<CHECKSUM>().ok_or(LoadError::Truncated)?;
        if xxh3_64(body) != u64::from_le_bytes(*checksum) {
            return Err(LoadError::Checksum);
        }
        let mut input = Input(body.get(MAGIC.len()..).ok_or(LoadError::Truncated)?);
        let config = input.config()?;
        let index = Index::new(config)?;
        index.inserts.store(u64::from_le_bytes(input.array()?), Ordering::Relaxed);
        let nodes = input.u32()?;
        let entry = input.u32()?;
        let mut query = Query::default();
        for node in 0..nodes {
            index.load_node(node, &mut input, &mut query)?;
        }
        for node in 0..nodes {
            index.load_links(node, nodes, &mut input)?;
        }
        if !input.0.is_empty() {
            return Err(LoadError::Malformed("end"));
        }
        index.connect_all(nodes, entry);
        Ok(index)
    }

    /// A copy of its own, with the same graph.
    #[must_use]
    pub fn copy(&self) -> Index {
        let mut image = Vec::new();
        self.save(&mut image).expect("a vector takes all bytes");
        Index::load(&image).expect("an image just written")
    }

    fn load_node(
        &self,
        expected: u32,
        input: &mut Input<'_>,
        query: &mut Query,
    ) -> Result<(), LoadError> {
        let level = usize::from(input.array::<1>()?[0]);
        if level > LEVEL_MAX {
            return Err(LoadError::Malformed("level"));
        }
        let length = input.u32()? as usize;
        let name = input.take(length)?;
        let attributes = match input.u32()? {
            0 => None,
            length => Some(input.take(length as usize - 1)?),
        };
        let node = self.graph.rows.arena.allocate();
        assert_eq!(node, expected, "a new arena counts from zero");
        let block = self.graph.rows.block(node);
        block.set_level(level);
        block.upper.store(self.graph.take_uppers(level), Ordering::Relaxed);
        self.load_vector(node, input, query)?;
        block.set_state(State::Linked);
        let assigned = self.names.assign(
            name,
            node,
            |record, old| {
                // A double is refused below, and the whole index dropped: each node its record.
                block.set_name(Some(record));
                if old.is_none() {
                    block.swap_attributes(attributes.map(|bytes| self.string(bytes)));
                }
            },
            |_| (),
        );
        if attributes.is_some() {
            self.attributed.fetch_add(1, Ordering::Relaxed);
        }
        match assigned {
            Assigned::New => Ok(()),
            Assigned::Replaced(_) => Err(LoadError::Malformed("name: it is there twice")),
        }
    }

    fn load_vector(
        &self,
        node: u32,
        input: &mut Input<'_>,
        query: &mut Query,
    ) -> Result<(), LoadError> {
        let codec = &self.graph.codec;
        // SAFETY: the index is not shared with anybody yet.
        let mut row = unsafe { self.graph.rows.building(node) };
        if self.config().quantization == Quantization::None {
            let bytes = input.take(self.config().dim * size_of::<f32>())?;
            let (floats, _) = bytes.as_chunks::<4>();
            let vector: Vec<f32> = floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            codec.check(&vector)?;
            codec.prepare_into(&vector, query);
            let mut side = Vec::new();
            codec.encode_query(query, &mut row, &mut side);
            // SAFETY: as above.
            let apart = unsafe { self.graph.rows.set_side(node, &side) };
            self.graph.strings_bytes.fetch_add(apart, Ordering::Relaxed);
            return Ok(());
        }
        row.header.copy_from_slice(input.take(row.header.len())?);
        row.hot.copy_from_slice(input.take(row.hot.len())?);
        let stored = NodeRef { header: row.header, hot: row.hot, cold: row.cold, side: &[] };
        if is_finite(codec, stored, query) { Ok(()) } else { Err(LoadError::Malformed("row")) }
    }

    fn load_links(&self, node: u32, nodes: u32, input: &mut Input<'_>) -> Result<(), LoadError> {
        for level in 0..=self.graph.rows.block(node).level() {
            let list = self.graph.list(node, level);
            let length = usize::from(u16::from_le_bytes(input.array()?));
            if length > list.len() {
                return Err(LoadError::Malformed("number of links"));
            }
            let (ids, _) = input.take(length * size_of::<u32>())?.as_chunks::<4>();
            let others = || ids.iter().map(|id| u32::from_le_bytes(*id));
            for other in others().filter(|&other| other < nodes) {
                self.graph.rows.prefetch_block(other);
            }
            for other in others() {
                let is_there = other < nodes && self.graph.rows.block(other).level() >= level;
                if !is_there || other == node || links::contains(list, other) {
                    return Err(LoadError::Malformed("link"));
                }
                links::push(list, other);
            }
        }
        Ok(())
    }

    /// Makes the graph whole: links without counterpart go, and what the entry point does not
    /// reach is linked as if it were new. That may push out the last link of another node, so it
    /// is looked for again until nothing is lost.
    fn connect_all(&self, nodes: u32, entry: u32) {
        let graph = &self.graph;
        for node in 0..nodes {
            let mut ids = Vec::new();
            for level in 0..=graph.rows.block(node).level() {
                graph.neighbours(node, level, &mut ids);
                if level == 0 {
                    ids.iter().for_each(|&other| graph.rows.prefetch_links(other));
                }
                for &other in &ids {
                    if !links::contains(graph.list(other, level), node) {
                        links::remove(graph.list(node, level), other);
                    }
                }
            }
        }
        if nodes == 0 {
            return;
        }
        // The entry point first, so that it is kept if it is one of the tallest.
        let first = if entry < nodes { entry } else { 0 };
        graph.entry.begin(first, graph.rows.block(first).level());
        for node in (0..nodes).filter(|&node| node != first) {
            graph.entry.add(node, graph.rows.block(node).level());
        }
        let (entry, _) = graph.entry.get().expect("there are nodes");
        let config = self.config();
        let effort = Effort { ef_construction: config.ef_construction, m: config.m };
        for _ in 0..RELINK_ROUNDS_MAX {
            let mut reached = vec![false; nodes as usize];
            graph.reach(entry, &mut reached);
            let lost: Vec<u32> = (0..nodes).filter(|&node| !reached[node as usize]).collect();
            if lost.is_empty() {
                return;
            }
            // Their links lead nowhere, and walks that come upon them from above must not take
            // them for neighbours.
            lost.iter().for_each(|&node| graph.isolate(node));
            for &node in &lost {
                scratch::with(|scratch| graph.reattach(node, effort, scratch));
            }
        }
    }
}

/// Whether all distances from a node to itself, and its components, are numbers.
fn is_finite(codec: &Codec, node: NodeRef<'_>, query: &mut Query) -> bool {
    let mut vector = Vec::new();
    codec.decode(node, &mut vector);
    if codec.check(&vector).is_err() {
        return false;
    }
    codec.prepare_stored_into(node, query);
    let estimate = if codec.config().bits { codec.estimate(query, node.header) } else { 0.0 };
    let coarse = codec.coarse(query, node.header, node.hot);
    estimate.is_finite() && coarse.is_finite() && codec.exact(query, node).is_finite()
}

/// A writer that keeps the checksum of what it passes on.
struct Hashing<'a, W> {
    out: &'a mut W,
    hash: Xxh3,
}

impl<W: io::Write> Hashing<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes)
    }
}

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], LoadError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(LoadError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(LoadError::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, LoadError> {
        self.array().map(u32::from_le_bytes)
    }

    fn config(&mut self) -> Result<IndexConfig, LoadError> {
        let dim = self.u32()? as usize;
        let [metric, quantization, bits] = self.array()?;
        let metric = match metric {
            0 => Metric::Cosine,
            1 => Metric::L2,
            2 => Metric::InnerProduct,
            _ => return Err(LoadError::Malformed("metric")),
        };
        let quantization = match quantization {
            0 => Quantization::None,
            1 => Quantization::Q8,
            2 => Quantization::Bin,
            _ => return Err(LoadError::Malformed("quantization")),
        };
        Ok(IndexConfig {
            dim,
            metric,
            quantization,
            bits: bits != 0,
            m: self.u32()? as usize,
            ef_construction: self.u32()? as usize,
            ef_search: self.u32()? as usize,
            seed: u64::from_le_bytes(self.array()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use kiln_base::sync::atomic::{AtomicBool, Ordering};
    use proptest::prelude::{any, prop_assert, proptest};
    use xxhash_rust::xxh3::xxh3_64;

    use super::{CHECKSUM, LoadError};
    use crate::{Index, IndexConfig, Metric, Quantization, Request, Target};

    fn index(quantization: Quantization, elements: usize) -> Index {
        let config = IndexConfig { quantization, m: 4, ..IndexConfig::new(8, Metric::Cosine) };
        let index = Index::new(config).expect("a valid configuration");
        for number in 0..elements {
            insert(&index, number);
        }
        index
    }

    fn insert(index: &Index, number: usize) {
        let vector: Vec<f32> = (0..8).map(|at| ((number * 31 + at * 17) % 97) as f32).collect();
        index.insert(number.to_string().as_bytes(), &vector).expect("a valid vector");
    }

    fn image(index: &Index) -> Vec<u8> {
        let mut image = Vec::new();
        index.save(&mut image).expect("a vector takes all bytes");
        image
    }

    #[test]
    fn what_is_loaded_is_what_was_saved() {
        for quantization in [Quantization::None, Quantization::Q8, Quantization::Bin] {
            let saved = index(quantization, 600);
            for number in (0..600).step_by(3) {
                saved.remove(number.to_string().as_bytes());
            }
            saved.set_attributes(b"7", Some(b"{}"));
            let loaded = Index::load(&image(&saved)).expect("its own image");
            loaded.verify().expect("a sound graph");
            assert_eq!(image(&loaded), image(&loaded.copy()));
            assert_eq!((loaded.len(), loaded.info().attributed), (400, 1));
            assert_eq!(loaded.attributes(b"7"), saved.attributes(b"7"));
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for number in 0..600 {
                let name = number.to_string();
                assert_eq!(loaded.links(name.as_bytes()), saved.links(name.as_bytes()));
                assert_eq!(loaded.get(name.as_bytes(), &mut a), saved.get(name.as_bytes(), &mut b));
                assert_eq!(a, b);
            }
            // Both go on in the same way.
            insert(&saved, 1_000);
            insert(&loaded, 1_000);
            assert_eq!(loaded.links(b"1000"), saved.links(b"1000"));
        }
        let empty = index(Quantization::None, 0).copy();
        assert!(empty.is_empty() && empty.verify().is_ok());
    }

    #[test]
    fn bytes_that_are_no_image_are_refused() {
        let good = image(&index(Quantization::None, 20));
        assert_eq!(Index::load(b"").err(), Some(LoadError::Magic));
        assert_eq!(Index::load(b"KILNVEC2........").err(), Some(LoadError::Magic));
        assert_eq!(Index::load(&good[..good.len() - 1]).err(), Some(LoadError::Checksum));
        let mut bad = good;
        bad[100] ^= 1;
        assert_eq!(Index::load(&bad).err(), Some(LoadError::Checksum));
    }

    #[test]
    fn an_index_is_saved_while_it_changes() {
        let index = index(Quantization::None, 200);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..2_000 {
                    insert(&index, 100 + round % 200);
                    index.remove((100 + (round + 100) % 200).to_string().as_bytes());
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                let loaded = Index::load(&image(&index)).expect("an image just written");
                loaded.verify().expect("a sound graph");
                assert!((0..100).all(|number| loaded.contains(number.to_string().as_bytes())));
            }
        });
    }

    proptest! {
        /// Any bytes under a right checksum give an error or an index that works.
        #[test]
        fn malformed_images_are_refused_or_healed(
            changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..6),
            cut in any::<u16>(),
            kind in 0..3,
        ) {
            let quantization =
                [Quantization::None, Quantization::Q8, Quantization::Bin][kind as usize];
            let mut bytes = image(&index(quantization, 12));
            bytes.truncate(bytes.len() - CHECKSUM);
            for (at, value) in changes {
                // The settings stay: they decide how much memory is asked for.
                let at = 31 + usize::from(at) % (bytes.len() - 31);
                bytes[at] = value;
            }
            if cut % 4 == 0 {
                bytes.truncate(usize::from(cut) % bytes.len());
            }
            let checksum = xxh3_64(&bytes);
            bytes.extend_from_slice(&checksum.to_le_bytes());
            if let Ok(index) = Index::load(&bytes) {
                prop_assert!(index.verify().is_ok());
                let request = Request::new(Target::Vector(&[1.0; 8]), 20);
                let hits = index.search(&request).expect("a valid query").expect("a vector");
                prop_assert!(hits.len() == index.len());
            }
        }
    }
}
