//! Values of every type but string.

use kiln_base::sync::Arc;
use kiln_data::hash::Hash;
use kiln_data::list::List;
use kiln_data::set::Set;
use kiln_data::zset::ZSet;

use crate::engine::Engine;

/// A value that is not a string. Each kind is an enum of its encodings.
pub enum Object {
    /// LPUSH and friends.
    List(List),
    /// SADD and friends.
    Set(Set),
    /// HSET and friends.
    Hash(Hash),
    /// ZADD and friends.
    SortedSet(ZSet),
    /// A value with concurrency of its own.
    Engine(Arc<dyn Engine>),
}

impl Object {
    /// Starts loading what a first look at the value reads.
    #[inline]
    pub fn prefetch(&self) {
        match self {
            Self::List(list) => list.prefetch(),
            Self::Set(set) => set.prefetch(),
            Self::Hash(hash) => hash.prefetch(),
            Self::SortedSet(zset) => zset.prefetch(),
            Self::Engine(_) => {}
        }
    }

    /// The name of the type, as TYPE reports it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Hash(_) => "hash",
            Self::SortedSet(_) => "zset",
            Self::Engine(engine) => engine.type_name(),
        }
    }

    /// The name of the encoding, as OBJECT ENCODING reports it.
    pub fn encoding_name(&self) -> &'static str {
        match self {
            Self::List(list) => list.encoding(),
            Self::Set(set) => set.encoding(),
            Self::Hash(hash) => hash.encoding(),
            Self::SortedSet(zset) => zset.encoding(),
            Self::Engine(engine) => engine.encoding_name(),
        }
    }

    /// The same value once more; `None` if it is an engine that cannot be copied.
    pub fn copy(&self) -> Option<Self> {
        Some(match self {
            Self::List(list) => Self::List(list.clone()),
            Self::Set(set) => Self::Set(set.clone()),
            Self::Hash(hash) => Self::Hash(hash.clone()),
            Self::SortedSet(zset) => Self::SortedSet(zset.clone()),
            Self::Engine(engine) => Self::Engine(engine.copy()?),
        })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Set(set) => set.len(),
            Self::Hash(hash) => hash.len(),
            Self::SortedSet(zset) => zset.len(),
            Self::Engine(engine) => engine.len(),
        }
    }

    /// Whether there are no elements: such a key must not stay.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory behind the entry, estimated from `samples` elements of a set or hash (all
    /// of them if 0).
    pub fn memory_bytes(&self, samples: usize) -> usize {
        match self {
            Self::List(list) => list.memory_bytes(),
            Self::Set(set) => set.memory_bytes(samples),
            Self::Hash(hash) => hash.memory_bytes(samples),
            Self::SortedSet(zset) => zset.memory_bytes(),
            Self::Engine(engine) => engine.memory_bytes(),
        }
    }

    /// How many allocations freeing the value touches, roughly.
    pub fn free_effort(&self) -> usize {
        if let Self::Engine(engine) = self {
            return engine.free_effort();
        }
        match self.encoding_name() {
            "listpack" | "listpackex" | "intset" => 1,
            _ => self.len(),
        }
    }
}
