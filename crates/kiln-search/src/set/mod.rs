//! Vector sets: Redis 8's VADD, VSIM and their kin.
//!
//! A vector set is a visible key of type `vectorset`. Its elements are names with a vector and
//! perhaps attributes, compared by cosine; scores run from 1 (same direction) to 0 (opposite).
//! Dimensions, quantisation and M are those of the first VADD.
//!
//! Redis has these commands from a module, and they show it: COMMAND INFO gives no arity, the
//! number of words is checked by the handler, and error texts name commands in upper case.
//!
//! Source: the Redis documentation of vector sets; replies observed on Redis 8.2.3, those of
//! VRANGE on 8.6.2.

mod add;
mod attributes;
mod filters;
mod info;
mod read;
mod remove;
mod similar;

use std::any::Any;
use std::borrow::Cow;

use kiln_base::sync::Arc;
use kiln_base::sync::atomic::{AtomicU64, Ordering};
use kiln_command::compute::EngineHandler;
use kiln_command::{Arity, CommandError, CommandFlags, CommandSpec, Group, KeyFlags, KeySpec};
use kiln_keyspace::Engine;
use kiln_vector::{Index, IndexConfig, Metric, Projection, Quantization};

use self::filters::Filters;
use crate::engine::Indexed;

const KEYS: &[KeySpec] =
    &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))];

pub(crate) const COMMANDS: &[&[CommandSpec]] = &[
    add::COMMANDS,
    attributes::COMMANDS,
    info::COMMANDS,
    read::COMMANDS,
    remove::COMMANDS,
    similar::COMMANDS,
];

/// Candidates of an insert that does not say otherwise.
const EF_CONSTRUCTION: usize = 200;
/// Candidates of a search that does not say otherwise.
const EF_SEARCH: usize = 100;
/// Chooses levels, codes and projections, the same for all sets: replicas then build the same.
const SEED: u64 = 0x6B69_6C6E;

/// The number that the next set is known by (VINFO).
static NEXT_UID: AtomicU64 = AtomicU64::new(0);

const fn reads(name: &'static str, handler: EngineHandler) -> CommandSpec {
    CommandSpec::engine_read(name, Arity::at_least(1), handler)
        .group(Group::VectorSet)
        .flags(CommandFlags::MODULE)
        .keys(KEYS)
}

const fn writes(name: &'static str, handler: EngineHandler) -> CommandSpec {
    CommandSpec::engine_write(name, Arity::at_least(1), handler)
        .group(Group::VectorSet)
        .flags(CommandFlags::MODULE)
        .keys(KEYS)
}

/// The error for too few or too many words; module commands name themselves in upper case.
fn arity_error(name: &'static str) -> CommandError {
    CommandError::WrongArity(name.into())
}

/// A vector set.
pub(crate) struct VectorSet {
    index: Index,
    /// The map of REDUCE, from the dimensions that vectors come with.
    projection: Option<Projection>,
    /// M as it was asked for; the index may have bounded it.
    m: usize,
    uid: u64,
    /// What passes the expressions that searches repeat.
    filters: Filters,
}

impl VectorSet {
    /// An empty set for vectors of `dim` dimensions, reduced to others if `reduce` says so.
    fn new(
        dim: usize,
        reduce: Option<usize>,
        quantization: Quantization,
        m: usize,
    ) -> Result<Arc<Self>, CommandError> {
        let refused = |_| crate::vector::BAD_VECTOR;
        let projection = reduce.map(|to| Projection::new(dim, to, SEED)).transpose();
        let projection = projection.map_err(refused)?;
        let config = IndexConfig {
            quantization,
            m,
            ef_construction: EF_CONSTRUCTION,
            ef_search: EF_SEARCH,
            seed: SEED,
            ..IndexConfig::new(reduce.unwrap_or(dim), Metric::Cosine)
        };
        Ok(Arc::new(Self {
            index: Index::new(config).map_err(refused)?,
            projection,
            m,
            uid: NEXT_UID.fetch_add(1, Ordering::Relaxed),
            filters: Filters::default(),
        }))
    }

    fn dim(&self) -> usize {
        self.index.config().dim
    }

    /// A vector of the right dimensions as the index wants it.
    fn project<'v>(&self, vector: &'v [f32]) -> Cow<'v, [f32]> {
        match &self.projection {
            None => Cow::Borrowed(vector),
            Some(projection) => {
                let mut reduced = Vec::new();
                projection.apply(vector, &mut reduced).expect("the caller checked the dimensions");
                Cow::Owned(reduced)
            }
        }
    }
}

impl Indexed for VectorSet {
    fn index(&self) -> &Index {
        &self.index
    }

    fn attributes_changed(&self, element: &[u8]) {
        self.filters.changed(&self.index, element);
    }
}

impl Engine for VectorSet {
    fn type_name(&self) -> &'static str {
        "vectorset"
    }

    fn len(&self) -> usize {
        self.index.len()
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.index.memory_bytes()
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// The similarity that clients see for a cosine distance.
fn score(distance: f32) -> f64 {
    1.0 - f64::from(distance) / 2.0
}

#[cfg(test)]
mod tests;
