//! Values with concurrency of their own: vector indexes, caches, memories.
//!
//! An engine is an entry's value like any other: it expires, is evicted, renamed, flushed and
//! counted by the same machinery. What sets it apart is that the entry holds only an [`Arc`]: a
//! command takes a clone of it under the shard's lock, lets go, and works on it beside others. What
//! it changes so is not covered by the lock: what WATCH, the journal or a transaction must see is
//! committed through an exclusive view, after a check that the entry still holds the same engine.
//!
//! An engine stays in memory until the last command that works on it is done, also after its key
//! is gone.

use std::any::Any;

use kiln_base::sync::Arc;

/// A value that many commands use at once.
pub trait Engine: Any + Send + Sync {
    /// The name of the type, as TYPE reports it.
    fn type_name(&self) -> &'static str;

    /// The name of the encoding, as OBJECT ENCODING reports it.
    fn encoding_name(&self) -> &'static str {
        "raw"
    }

    /// Number of elements.
    fn len(&self) -> usize;

    /// Whether there are none. An empty engine may stay: its family decides.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory behind the entry.
    fn memory_bytes(&self) -> usize;

    /// How many allocations freeing the value touches, roughly.
    fn free_effort(&self) -> usize {
        self.len()
    }

    /// The same contents as an engine of their own, for COPY; `None` if the family has no such
    /// copy.
    fn copy(&self) -> Option<Arc<dyn Engine>> {
        None
    }

    /// The concrete type, for the family's commands.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// The engine behind `engine`, if it is of type `T`.
pub fn downcast<T: Engine>(engine: &Arc<dyn Engine>) -> Option<Arc<T>> {
    Arc::clone(engine).as_any().downcast().ok()
}
