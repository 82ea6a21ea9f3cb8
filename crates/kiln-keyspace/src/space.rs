//! Hidden spaces: where the engines of a family live beside the keys that everybody sees.
//!
//! A space is a further database of every shard, behind the visible ones, made when its first entry
//! comes. So one machinery serves engines and keys: tables, expiry, eviction, memory,
//! transactions. What walks the visible databases (SCAN, KEYS, DBSIZE, FLUSHDB, SWAPDB, SELECT)
//! does not see a space; FLUSHALL empties all of them. Names in different spaces never collide, and
//! a space is the same whichever database a client has selected.

/// A family's own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Space {
    /// Indexes of VSIM.CREATEINDEX.
    VectorIndex,
    /// Snapshots of VSIM.SAVE.
    VectorSnapshot,
}

impl Space {
    /// How many there are.
    pub const COUNT: usize = 2;

    /// Its database in a keyspace with so many visible ones.
    #[inline]
    pub const fn db(self, databases: usize) -> usize {
        databases + self as usize
    }
}
