//! Vector indexes and snapshots: the VSIM.* commands of `HotKV`.
//!
//! An index is made with its settings before anything is put in, lives in a hidden space, and stays
//! when it is empty. Its members are names; they need not be keys, but FILTER looks for the tags of
//! the keys of these names in the selected database. Distances, not similarities, come back:
//! cosine is `1 - cos`, l2 the Euclidean distance, ip `1 - dot`.
//!
//! A vector is one word for each component, or `FP32` and one word of little-endian float32, which
//! spares the server the parsing of decimals: for 1,536 of them that costs as much as a search.
//!
//! Snapshots (VSIM.SAVE) are blobs that a client stores under a name; what is in them is its own
//! business.
//!
//! Source: `hotkv-client` 1.0.0; where it is silent, docs/differences.md.

mod info;
mod search;
mod snapshot;
mod write;

use std::any::Any;

use kiln_base::sync::Arc;
use kiln_command::args::ArgsExt;
use kiln_command::compute::EngineHandler;
use kiln_command::{Args, Arity, CommandError, CommandSpec, Group, KeyFlags, KeySpec};
use kiln_keyspace::{Engine, Space};
use kiln_vector::{Index, IndexConfig, Metric};

use crate::engine::Indexed;
use crate::vector::{blob, components};

const RO: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))];
const RW: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::UPDATE))];
const RM: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RM.union(KeyFlags::DELETE))];

const NOT_FOUND: CommandError = CommandError::text("ERR index not found");
const INVALID_NAME: CommandError = CommandError::text("ERR invalid name");
const INVALID_VECTOR: CommandError =
    CommandError::text("ERR a component of the vector is not a finite 32-bit float");

pub(crate) const COMMANDS: &[&[CommandSpec]] =
    &[info::COMMANDS, search::COMMANDS, snapshot::COMMANDS, write::COMMANDS];

const fn reads(name: &'static str, arity: Arity, handler: EngineHandler) -> CommandSpec {
    CommandSpec::engine_read(name, arity, handler)
        .group(Group::VectorIndex)
        .space(Space::VectorIndex)
        .keys(RO)
}

const fn writes(name: &'static str, arity: Arity, handler: EngineHandler) -> CommandSpec {
    CommandSpec::engine_write(name, arity, handler)
        .group(Group::VectorIndex)
        .space(Space::VectorIndex)
        .keys(RW)
}

/// An index of VSIM.CREATEINDEX.
pub(crate) struct VectorIndex {
    index: Index,
}

impl VectorIndex {
    fn new(config: IndexConfig) -> Option<Arc<Self>> {
        Some(Arc::new(Self { index: Index::new(config).ok()? }))
    }

    fn dim(&self) -> usize {
        self.index.config().dim
    }
}

impl Indexed for VectorIndex {
    fn index(&self) -> &Index {
        &self.index
    }
}

impl Engine for VectorIndex {
    fn type_name(&self) -> &'static str {
        "vectorindex"
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

/// A metric by any of its names.
fn metric(word: &[u8]) -> Option<Metric> {
    Some(match &*word.to_ascii_lowercase() {
        b"cosine" => Metric::Cosine,
        b"l2" | b"euclidean" => Metric::L2,
        b"ip" | b"dot" | b"inner_product" => Metric::InnerProduct,
        _ => return None,
    })
}

/// The name that INFO shows.
fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Cosine => "cosine",
        Metric::L2 => "l2",
        Metric::InnerProduct => "ip",
    }
}

/// Word `index` as a name.
fn name<'a>(args: &Args<'a>, index: usize) -> Result<&'a [u8], CommandError> {
    let name = args.get(index);
    if name.is_empty() { Err(INVALID_NAME) } else { Ok(name) }
}

/// The vector of `dim` dimensions at word `at`, and the word behind it. `is_end` says whether a
/// word may stand behind a vector.
fn vector(
    args: &Args<'_>,
    at: usize,
    dim: usize,
    is_end: impl Fn(&[u8]) -> bool,
) -> Result<(Vec<f32>, usize), CommandError> {
    let wrong = |got: usize| {
        CommandError::owned(format!("ERR vector has {got} dimensions, expected {dim}"))
    };
    if args.is_word(at, "FP32") {
        let bytes = args.try_get(at + 1).ok_or(CommandError::Syntax)?;
        let (got, rest) = (bytes.len() / size_of::<f32>(), bytes.len() % size_of::<f32>());
        if rest != 0 {
            return Err(CommandError::text("ERR a blob of float32 is not a multiple of 4 bytes"));
        }
        if got != dim {
            return Err(wrong(got));
        }
        return Ok((blob(bytes).ok_or(INVALID_VECTOR)?, at + 2));
    }
    let mut words = args.tail(at).iter();
    let len = words.position(is_end).unwrap_or(args.len() - at);
    if len != dim {
        return Err(wrong(len));
    }
    Ok((components(args, at, dim).ok_or(INVALID_VECTOR)?, at + dim))
}

#[cfg(test)]
mod tests;
