//! A codec turns vectors into the bytes of a node, and bytes into distances.
//!
//! ```text
//! owned   the start of a node's header block; Layout::owned bytes, the rest is the graph's
//!         ┌───────────────────────────┬────────────┬───────────┬──────────────────┐
//!         │ one-bit code (if asked)   │ factor f32 │ scale f32 │ squared norm f64 │
//!         └───────────────────────────┴────────────┴───────────┴──────────────────┘
//!         8 * ceil(dim / 64) bytes     code.rs       of hot      of the vector as given
//! hot     None, Q8: a signed byte per component, zeros to a multiple of 64
//!         Bin: two more bits per component
//! cold    None: the low 24 bits of each component (split.rs); Q8, Bin: nothing
//! side    None: a byte per component whose code is 0, or the whole vector; kept by the graph
//! ```
//!
//! With 384 dimensions all that a walk reads of a header is one cache line; with 1536 it is 208
//! bytes. There are three distances, each dearer and truer than the one before:
//!
//! | | reads | error of a cosine at 1536 dimensions |
//! | --- | --- | --- |
//! | [`Codec::estimate`] | owned | 0.019 |
//! | [`Codec::coarse`] | owned, hot | 0.0003; Bin 0.005 |
//! | [`Codec::exact`] | owned, hot, cold, side | none; Q8 0.0002; Bin as coarse |
//!
//! Invariants: a vector is finite and of the index's dimensions ([`Codec::check`], before anything
//! is written). With [`Quantization::None`] it comes back as it was given, bit for bit. Distances
//! are finite and never NaN. Norms are summed and kept in double, so that vectors of 1e-30 and of
//! 1e30 have right cosines. Every level of the kernels gives the same distances, bit for bit.

use crate::code::{self, COARSE_PLANES, FINE_PLANES, Planes, SLACK, code_bytes};
use crate::error::VectorError;
use crate::kernel::{Kernels, LANES, Lanes, Level, sum};
use crate::lines::Lines;
use crate::metric::{Metric, narrow};
use crate::rotate::Rotation;
use crate::split;

/// The most dimensions a vector may have, as `HotKV` allows. Redis stops at 32,768.
pub const DIM_MAX: usize = 65_536;

/// The bytes behind the one-bit code.
const FACTORS: usize = 16;

/// What of a vector is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantization {
    /// All of it: float32, bit for bit.
    None,
    /// A signed byte per component.
    Q8,
    /// Three bits per component, which is what fits into the memory of Redis's one bit.
    Bin,
}

/// What a codec is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodecConfig {
    /// Dimensions of every vector, from 1 to [`DIM_MAX`].
    pub dim: usize,
    /// How vectors are compared.
    pub metric: Metric,
    /// What of a vector is kept.
    pub quantization: Quantization,
    /// Whether headers have a one-bit code to estimate distances by. [`Quantization::Bin`] always
    /// has.
    pub bits: bool,
    /// Chooses the rotation of the one-bit code. Codes of different seeds do not compare.
    pub seed: u64,
}

/// How many bytes of a node hold what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The codec's bytes at the start of a node's header block; a multiple of 8.
    pub owned: usize,
    /// The plane that a walk reads; a multiple of 64.
    pub hot: usize,
    /// The plane that only re-ranking and reading back need.
    pub cold: usize,
}

impl Layout {
    /// The size of a header block with `tail` bytes of the graph's own behind the codec's: whole
    /// cache lines.
    pub const fn header(&self, tail: usize) -> usize {
        (self.owned + tail).next_multiple_of(64)
    }
}

/// The bytes of a stored vector.
#[derive(Debug, Clone, Copy)]
pub struct NodeRef<'a> {
    /// [`Layout::owned`] bytes.
    pub header: &'a [u8],
    /// [`Layout::hot`] bytes.
    pub hot: &'a [u8],
    /// [`Layout::cold`] bytes.
    pub cold: &'a [u8],
    /// What [`Codec::encode`] left in `side`.
    pub side: &'a [u8],
}

/// The bytes of a vector to be stored, of the same lengths.
#[derive(Debug)]
pub struct NodeMut<'a> {
    /// [`Layout::owned`] bytes.
    pub header: &'a mut [u8],
    /// [`Layout::hot`] bytes.
    pub hot: &'a mut [u8],
    /// [`Layout::cold`] bytes.
    pub cold: &'a mut [u8],
}

/// A vector made ready to be compared with many stored ones, or to be stored. Reusable: see
/// [`Codec::prepare_into`].
#[derive(Debug, Clone, Default)]
pub struct Query {
    vector: Vec<f32>,
    /// The squared norm.
    length: f64,
    /// The signed bytes, padded like a hot plane, and their scale as headers keep it.
    row: Lines,
    scale: f64,
    /// The vector at length 1, rotated.
    rotated: Vec<f32>,
    coarse: Planes,
    fine: Planes,
    numbers: Vec<u8>,
}

impl Query {
    /// The vector as it was given.
    pub fn vector(&self) -> &[f32] {
        &self.vector
    }
}

/// The numbers behind the one-bit code.
#[derive(Clone, Copy)]
struct Factors {
    /// For an estimate of the cosine (with [`Metric::Cosine`]) or of the cosine times the norm.
    bits: f32,
    /// One step of a signed byte (for cosine: over the norm), or the three-bit code's factor.
    scale: f32,
    /// The squared norm.
    length: f64,
}

impl Factors {
    #[inline]
    fn read(bytes: &[u8]) -> Factors {
        let bytes: &[u8; FACTORS] = bytes.first_chunk().expect("the header holds the factors");
        let (words, length) = bytes.split_at(8);
        let [bits, scale] = [0, 4].map(|at| {
            let word: &[u8; 4] = words[at..].first_chunk().expect("two words");
            f32::from_le_bytes(*word)
        });
        let length: &[u8; 8] = length.first_chunk().expect("eight bytes");
        Factors { bits, scale, length: f64::from_le_bytes(*length) }
    }

    fn write(self, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&self.bits.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.scale.to_le_bytes());
        bytes[8..FACTORS].copy_from_slice(&self.length.to_le_bytes());
    }
}

/// Turns vectors into the bytes of nodes, and those into distances. Immutable; one per index.
#[derive(Debug, Clone)]
pub struct Codec {
    config: CodecConfig,
    kernels: Kernels,
    /// The bytes of the one-bit code; 0 without it.
    code: usize,
    rotation: Option<Rotation>,
}

impl Codec {
    /// A codec for vectors as `config` says.
    ///
    /// # Errors
    ///
    /// [`VectorError::Limit`] if the number of dimensions is 0 or above [`DIM_MAX`].
    pub fn new(config: CodecConfig) -> Result<Codec, VectorError> {
        Codec::with_kernels(config, Kernels::best())
    }

    /// A codec that uses the instructions of `level`, to compare levels: all give the same.
    /// Nothing if the processor does not have them.
    pub fn at_level(config: CodecConfig, level: Level) -> Option<Codec> {
        let kernels = Kernels::all().into_iter().find(|kernels| kernels.level == level)?;
        Codec::with_kernels(config, kernels).ok()
    }

    fn with_kernels(mut config: CodecConfig, kernels: Kernels) -> Result<Codec, VectorError> {
        if config.dim == 0 || config.dim > DIM_MAX {
            return Err(VectorError::Limit(config.dim));
        }
        config.bits |= config.quantization == Quantization::Bin;
        let rotation = config.bits.then(|| Rotation::new(config.dim, config.seed));
        let code = if config.bits { code_bytes(config.dim) } else { 0 };
        Ok(Codec { config, kernels, code, rotation })
    }

    /// What the codec was made for; `bits` as it came out.
    pub fn config(&self) -> &CodecConfig {
        &self.config
    }

    /// Which instructions the distances use.
    pub fn level(&self) -> Level {
        self.kernels.level
    }

    /// How many bytes of a node hold what.
    pub fn layout(&self) -> Layout {
        let dim = self.config.dim;
        let (hot, cold) = match self.config.quantization {
            Quantization::None => (dim, split::cold_bytes(dim)),
            Quantization::Q8 => (dim, 0),
            Quantization::Bin => (2 * code_bytes(dim), 0),
        };
        Layout { owned: self.code + FACTORS, hot: hot.next_multiple_of(64), cold }
    }

    /// Bytes of RAM beside those of the nodes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Codec>() + self.rotation.as_ref().map_or(0, Rotation::memory_bytes)
    }

    /// Whether `vector` can be stored or searched for.
    ///
    /// # Errors
    ///
    /// [`VectorError::Dimension`], then [`VectorError::NotFinite`].
    pub fn check(&self, vector: &[f32]) -> Result<(), VectorError> {
        if vector.len() != self.config.dim {
            let expected = self.config.dim;
            return Err(VectorError::Dimension { expected, got: vector.len() });
        }
        // No early exit, so that it runs at the speed of memory.
        let finite = vector.iter().fold(true, |finite, x| finite & x.is_finite());
        if finite { Ok(()) } else { Err(VectorError::NotFinite) }
    }

    /// Makes `vector`, which [`Codec::check`] has passed, ready to be compared or stored.
    pub fn prepare(&self, vector: &[f32]) -> Query {
        let mut query = Query::default();
        self.prepare_into(vector, &mut query);
        query
    }

    /// [`Codec::prepare`] into a query used before, whose memory it takes over.
    pub fn prepare_into(&self, vector: &[f32], query: &mut Query) {
        query.vector.clear();
        query.vector.extend_from_slice(vector);
        self.ready(query);
    }

    /// Makes a stored vector ready to be compared: what is kept of it.
    pub fn prepare_stored(&self, node: NodeRef<'_>) -> Query {
        let mut query = Query::default();
        self.prepare_stored_into(node, &mut query);
        query
    }

    /// [`Codec::prepare_stored`] into a query used before.
    pub fn prepare_stored_into(&self, node: NodeRef<'_>, query: &mut Query) {
        let mut vector = std::mem::take(&mut query.vector);
        self.decode(node, &mut vector);
        query.vector = vector;
        self.ready(query);
    }

    /// Fills in all that follows from the query's vector.
    fn ready(&self, query: &mut Query) {
        assert_eq!(query.vector.len(), self.config.dim, "the vector was checked");
        let mut lanes = [0.0; LANES];
        (self.kernels.dot)(&mut lanes, &query.vector, &query.vector);
        query.length = sum(&lanes);
        let norm = query.length.sqrt();
        if self.config.quantization != Quantization::Bin {
            let row = query.row.resize(self.layout().hot);
            let scale = split::quantise(&self.kernels, &query.vector, row);
            query.scale = self.header_scale(scale, norm);
        }
        if let Some(rotation) = &self.rotation {
            unit(&query.vector, norm, &mut query.rotated);
            rotation.apply(&self.kernels, &mut query.rotated);
            query.coarse.fill(&self.kernels, &query.rotated, COARSE_PLANES, &mut query.numbers);
            // For other metrics than cosine the factor of a header holds the node's norm, and
            // this one the query's.
            if self.config.metric != Metric::Cosine {
                query.coarse.factor *= norm;
            }
            if self.config.quantization == Quantization::Bin {
                query.fine.fill(&self.kernels, &query.rotated, FINE_PLANES, &mut query.numbers);
            }
        }
    }

    /// A scale of signed bytes as headers keep it.
    fn header_scale(&self, scale: f64, norm: f64) -> f64 {
        match self.config.metric {
            Metric::Cosine if norm > 0.0 => scale / norm,
            Metric::Cosine => 0.0,
            Metric::L2 | Metric::InnerProduct => scale,
        }
    }

    /// The scale of signed bytes from what a header keeps.
    fn byte_scale(&self, factors: Factors) -> f64 {
        match self.config.metric {
            Metric::Cosine => f64::from(factors.scale) * factors.length.sqrt(),
            Metric::L2 | Metric::InnerProduct => f64::from(factors.scale),
        }
    }

    /// Stores `vector`, which [`Codec::check`] has passed. `side` is replaced by the bytes that
    /// must come back with the node: often none, at most 4 per component.
    pub fn encode(&self, vector: &[f32], node: &mut NodeMut<'_>, side: &mut Vec<u8>) {
        self.encode_query(&self.prepare(vector), node, side);
    }

    /// [`Codec::encode`] of a vector that is prepared already, as it is after a search for its
    /// neighbours.
    pub fn encode_query(&self, query: &Query, node: &mut NodeMut<'_>, side: &mut Vec<u8>) {
        side.clear();
        let norm = query.length.sqrt();
        let (signs, factors) = node.header.split_at_mut(self.code);
        let mut bits = 0.0;
        if self.rotation.is_some() {
            bits = code::encode_signs(&query.rotated, signs);
            if self.config.metric != Metric::Cosine {
                bits *= norm;
            }
        }
        let mut written = Factors { bits: narrow(bits), scale: 0.0, length: query.length };
        if query.length == 0.0 {
            written.bits = 0.0; // Its signs are no direction.
        }
        match self.config.quantization {
            Quantization::None => {
                written.scale = narrow(query.scale);
                // The scale that reading back will find, rounding included.
                let scale = self.byte_scale(written);
                split::encode(&self.kernels, &query.vector, scale, node.hot, node.cold, side);
            }
            Quantization::Q8 => {
                written.scale = narrow(query.scale);
                node.hot.copy_from_slice(query.row.as_slice());
            }
            Quantization::Bin => {
                node.hot.fill(0);
                let planes = &mut node.hot[..2 * self.code];
                written.scale = narrow(code::encode_magnitudes(&query.rotated, planes));
            }
        }
        written.write(factors);
    }

    /// Reads a vector back, replacing what is in `out`: bit for bit with [`Quantization::None`],
    /// else as near as what is kept allows.
    pub fn decode(&self, node: NodeRef<'_>, out: &mut Vec<f32>) {
        out.clear();
        if self.config.quantization != Quantization::Bin {
            self.blocks(node, |_, block| out.extend_from_slice(block));
            return;
        }
        let factors = self.factors(node.header);
        out.resize(self.config.dim, 0.0);
        code::decode_magnitudes(&node.header[..self.code], &node.hot[..2 * self.code], out);
        let mut lanes = [0.0; LANES];
        (self.kernels.dot)(&mut lanes, out, out);
        // <r, c> / <c, c> of the code is nearest to r, which had length 1.
        let inverse = f64::from(factors.scale) * sum(&lanes);
        let step = if inverse > 0.0 { factors.length.sqrt() / inverse } else { 0.0 };
        self.rotation.as_ref().expect("Bin has bits").undo(&self.kernels, out);
        for x in out {
            *x = narrow(f64::from(*x) * step);
        }
    }

    /// The 1-bit estimate of the distance; it may lie a little outside the metric's range.
    ///
    /// # Panics
    ///
    /// Without bits ([`CodecConfig::bits`]) there is nothing to estimate by.
    #[inline]
    pub fn estimate(&self, query: &Query, header: &[u8]) -> f32 {
        assert!(self.code > 0, "the index was made with bits");
        let factors = self.factors(header);
        let dot = query.coarse.dot_signs(&self.kernels, &header[..self.code]);
        let dot = dot * query.coarse.factor * f64::from(factors.bits);
        match self.config.metric {
            Metric::Cosine => (1.0 - dot) as f32,
            Metric::L2 => narrow(factors.length + query.length - 2.0 * dot),
            Metric::InnerProduct => narrow(-dot),
        }
    }

    /// Half the standard error of [`Codec::estimate`] for this node. A walk computes the coarse
    /// distance if the estimate less this is below the worst distance it would still take.
    #[inline]
    pub fn slack(&self, query: &Query, header: &[u8]) -> f32 {
        let slack = SLACK * self.factors(header).bits;
        match self.config.metric {
            Metric::Cosine => slack,
            Metric::L2 => narrow(2.0 * f64::from(slack) * query.length.sqrt()),
            Metric::InnerProduct => narrow(f64::from(slack) * query.length.sqrt()),
        }
    }

    /// The distance by signed bytes; with [`Quantization::Bin`] by the three-bit code.
    #[inline]
    pub fn coarse(&self, query: &Query, header: &[u8], hot: &[u8]) -> f32 {
        let factors = self.factors(header);
        if self.config.quantization == Quantization::Bin {
            let dot = query.fine.dot_magnitudes(&self.kernels, self.planes(header, hot));
            let cosine = dot * query.fine.factor * f64::from(factors.scale);
            return self.distance_of_cosine(cosine, query.length, factors.length);
        }
        let dot = f64::from((self.kernels.dot_bytes)(query.row.as_slice(), hot));
        self.distance_of_bytes(
            dot * query.scale * f64::from(factors.scale),
            query.length,
            factors.length,
        )
    }

    /// The truest distance that the stored bytes allow; see the table above.
    pub fn exact(&self, query: &Query, node: NodeRef<'_>) -> f32 {
        if self.config.quantization == Quantization::Bin {
            return self.coarse(query, node.header, node.hot);
        }
        let mut lanes: Lanes = [0.0; LANES];
        let add = match self.config.metric {
            Metric::L2 => self.kernels.l2,
            Metric::Cosine | Metric::InnerProduct => self.kernels.dot,
        };
        self.blocks(node, |at, block| {
            add(&mut lanes, &query.vector[at..at + block.len()], block);
        });
        match self.config.metric {
            Metric::L2 => narrow(sum(&lanes)),
            metric => metric.distance(sum(&lanes), query.length, self.factors(node.header).length),
        }
    }

    /// The length of the vector that came in.
    pub fn norm(&self, node: NodeRef<'_>) -> f64 {
        self.factors(node.header).length.sqrt()
    }

    /// The distance between two stored vectors, of the same kind as [`Codec::coarse`]. Each is its
    /// header's bytes and its hot plane.
    #[inline]
    pub fn between(&self, a: (&[u8], &[u8]), b: (&[u8], &[u8])) -> f32 {
        let (in_a, in_b) = (self.factors(a.0), self.factors(b.0));
        let scales = f64::from(in_a.scale) * f64::from(in_b.scale);
        if self.config.quantization == Quantization::Bin {
            let (a, b) = (self.planes(a.0, a.1), self.planes(b.0, b.1));
            let dot = code::dot_codes(&self.kernels, self.config.dim, a, b);
            return self.distance_of_cosine(dot * scales, in_a.length, in_b.length);
        }
        let dot = f64::from((self.kernels.dot_bytes)(a.1, b.1));
        self.distance_of_bytes(dot * scales, in_a.length, in_b.length)
    }

    /// A distance from scaled signed bytes: for cosine the scales hold the norms.
    #[inline]
    fn distance_of_bytes(&self, dot: f64, length_a: f64, length_b: f64) -> f32 {
        match self.config.metric {
            Metric::Cosine => (1.0 - dot).clamp(0.0, 2.0) as f32,
            metric => metric.distance(dot, length_a, length_b),
        }
    }

    #[inline]
    fn distance_of_cosine(&self, cosine: f64, length_a: f64, length_b: f64) -> f32 {
        match self.config.metric {
            Metric::Cosine => (1.0 - cosine).clamp(0.0, 2.0) as f32,
            metric => metric.distance(cosine * (length_a * length_b).sqrt(), length_a, length_b),
        }
    }

    #[inline]
    fn factors(&self, header: &[u8]) -> Factors {
        Factors::read(&header[self.code..])
    }

    #[inline]
    fn planes<'a>(&self, header: &'a [u8], hot: &'a [u8]) -> [&'a [u8]; 3] {
        [&header[..self.code], &hot[..self.code], &hot[self.code..2 * self.code]]
    }

    /// Hands the components of a vector kept as bytes to `use_block`, in order, with the place of
    /// the first; a block is a multiple of [`LANES`] unless it is the last.
    #[inline]
    fn blocks(&self, node: NodeRef<'_>, mut use_block: impl FnMut(usize, &[f32])) {
        let dim = self.config.dim;
        let scale = self.byte_scale(self.factors(node.header));
        let mut at = 0;
        if self.config.quantization == Quantization::None {
            split::decode(&self.kernels, dim, node.hot, scale, node.cold, node.side, |block| {
                use_block(at, block);
                at += block.len();
                true
            });
            return;
        }
        let mut block = [0.0; split::BLOCK];
        for codes in node.hot[..dim].chunks(split::BLOCK) {
            (self.kernels.widen)(codes, scale as f32, &mut block);
            use_block(at, &block[..codes.len()]);
            at += codes.len();
        }
    }
}

/// `vector` scaled to length 1; zeros stay zeros.
fn unit(vector: &[f32], norm: f64, out: &mut Vec<f32>) {
    let inverse = if norm > 0.0 { 1.0 / norm } else { 0.0 };
    out.clear();
    // The inverse of a tiny or huge norm is no ordinary float32.
    if (1e-30..1e30).contains(&inverse) || inverse == 0.0 {
        out.extend(vector.iter().map(|x| x * inverse as f32));
    } else {
        out.extend(vector.iter().map(|x| (f64::from(*x) * inverse) as f32));
    }
}

#[cfg(test)]
mod recall;
#[cfg(test)]
mod tests;
