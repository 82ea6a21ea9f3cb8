//! One of the 1,024 lockable parts of the keyspace.
//!
//! ```text
//! Shard (own cache lines)
//! ├─ lock            readers-writer, taken only through `Keyspace::lock`
//! └─ ShardState      reached only through a guard that holds the lock
//!    ├─ first        database 0, inline: the one nearly everybody uses
//!    ├─ rest         databases 1..n, then the hidden spaces that have been written to
//!    ├─ expiry       deadlines of the keys that have one
//!    ├─ watches      WATCHed keys and who watches them
//!    ├─ tags         tags of the keys that have some
//!    └─ waiters      blocked clients by key, oldest first
//! ```
//!
//! Which shard a key belongs to is decided in one function, [`shard_of`].

use kiln_base::hash::key_hash;
use kiln_base::sync::RawLock;
use kiln_data::table::Table;

use crate::entry::Entry;
use crate::expiry::ExpiryIndex;
use crate::tags::Tags;
use crate::waiters::Waiters;
use crate::watch::Watches;

/// Number of shards. A power of two, far above the number of workers, so that two of 160 workers
/// seldom want the same one.
pub const SHARD_COUNT: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 10;

/// Index of a shard, below [`SHARD_COUNT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(u16);

impl ShardId {
    /// The shard with this index.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`SHARD_COUNT`].
    pub fn new(index: usize) -> Self {
        assert!(index < SHARD_COUNT, "shard {index} does not exist");
        Self(index as u16)
    }

    /// The index, for array access.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// All shards in lock order.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..SHARD_COUNT).map(Self::new)
    }
}

/// A key's hash and shard, computed once per command and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPlace {
    /// `key_hash` of the whole key.
    pub hash: u64,
    /// Where the key lives.
    pub shard: ShardId,
}

/// The hash and the shard of `key`. Keys with the same `{hash tag}` share a shard, so what is
/// single-slot in a cluster is single-lock here.
#[inline]
pub fn place_of(key: &[u8]) -> KeyPlace {
    let hash = key_hash(key);
    let tagged = match hash_tag(key) {
        Some(tag) => key_hash(tag),
        None => hash,
    };
    KeyPlace { hash, shard: ShardId((tagged >> (64 - SHARD_BITS)) as u16) }
}

/// The shard of `key`.
#[inline]
pub fn shard_of(key: &[u8]) -> ShardId {
    place_of(key).shard
}

/// What stands between the first `{` and the next `}`, if that is not empty: Redis Cluster's rule.
#[inline]
fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    if !may_have_brace(key) {
        return None;
    }
    let open = memchr::memchr(b'{', key)?;
    let rest = &key[open + 1..];
    let close = memchr::memchr(b'}', rest)?;
    (close > 0).then(|| &rest[..close])
}

/// Whether a short key has a `{`, eight bytes at a time: a call of `memchr` costs several times
/// that. Of a longer key it says yes.
#[inline]
fn may_have_brace(key: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const BRACES: u64 = u64::from_ne_bytes([b'{'; 8]);
    // A byte that is zero borrows from its own highest bit; no other byte has that bit then, or
    // it has it for a borrow from a lower zero byte, which is an answer all the same.
    let found = |eight: &[u8]| {
        let word = u64::from_ne_bytes(eight.try_into().expect("eight bytes")) ^ BRACES;
        word.wrapping_sub(ONES) & !word & (ONES << 7) != 0
    };
    match key.len() {
        0..8 => key.contains(&b'{'),
        8..=32 => key.chunks_exact(8).any(found) || found(&key[key.len() - 8..]),
        _ => true,
    }
}

/// What a space is before it is written to.
static NO_DB: Db = Db::EMPTY;

/// One database's part in one shard.
pub struct Db {
    /// The entries, expired ones that nobody has met yet included.
    pub table: Table<Entry>,
    /// How many of them have an expiry time.
    pub volatile_count: usize,
}

impl Db {
    const EMPTY: Self = Self { table: Table::new(), volatile_count: 0 };
}

/// Everything a shard's lock protects. What every command touches comes first, in the cache line
/// of the lock.
#[repr(C)]
pub struct ShardState {
    first: Db,
    /// Whether somebody watches or waits for a key here; looked at on every change.
    observed: bool,
    /// Whether a key here has tags; looked at on every removal.
    tagged: bool,
    rest: Vec<Db>,
    /// Deadlines of keys with an expiry time.
    pub expiry: ExpiryIndex,
    watches: Watches,
    waiters: Waiters,
    tags: Tags,
}

impl ShardState {
    fn new(databases: usize) -> Self {
        Self {
            first: Db::EMPTY,
            observed: false,
            tagged: false,
            rest: (1..databases).map(|_| Db::EMPTY).collect(),
            expiry: ExpiryIndex::default(),
            watches: Watches::default(),
            waiters: Waiters::default(),
            tags: Tags::default(),
        }
    }

    /// Database `index`; a space that is not there yet is empty.
    #[inline]
    pub fn db(&self, index: usize) -> &Db {
        if index == 0 { &self.first } else { self.rest.get(index - 1).unwrap_or(&NO_DB) }
    }

    /// Database `index`, to change it.
    #[inline]
    pub fn db_mut(&mut self, index: usize) -> &mut Db {
        if index == 0 {
            return &mut self.first;
        }
        if index > self.rest.len() {
            self.add_spaces(index);
        }
        &mut self.rest[index - 1]
    }

    /// Makes databases up to `index`, which is a hidden space.
    #[cold]
    fn add_spaces(&mut self, index: usize) {
        self.rest.resize_with(index, || Db::EMPTY);
    }

    /// Whether somebody watches or waits for a key here.
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.observed
    }

    /// Keys that somebody `WATCHes`.
    pub fn watches(&self) -> &Watches {
        &self.watches
    }

    /// Clients blocked on keys of this shard.
    pub fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// Changes who watches and waits.
    pub fn observe<R>(&mut self, change: impl FnOnce(&mut Watches, &mut Waiters) -> R) -> R {
        let result = change(&mut self.watches, &mut self.waiters);
        self.observed = !self.watches.is_empty() || !self.waiters.is_empty();
        result
    }

    /// Whether a key here has tags.
    #[inline]
    pub fn is_tagged(&self) -> bool {
        self.tagged
    }

    /// The tags of the keys.
    pub fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Changes tags.
    pub(crate) fn change_tags<R>(&mut self, change: impl FnOnce(&mut Tags) -> R) -> R {
        let result = change(&mut self.tags);
        self.tagged = !self.tags.is_empty();
        result
    }

    /// How many databases there are, with the spaces that have been written to.
    pub fn db_count(&self) -> usize {
        1 + self.rest.len()
    }

    /// Exchanges two databases of this shard.
    pub fn swap_dbs(&mut self, a: usize, b: usize) {
        if a == b {
            return;
        }
        let (low, high) = (a.min(b), a.max(b));
        if low == 0 {
            std::mem::swap(&mut self.first, &mut self.rest[high - 1]);
        } else {
            self.rest.swap(low - 1, high - 1);
        }
        self.expiry.swap_dbs(a, b);
    }
}

/// A shard: its lock and, behind it, its state. 128 bytes of alignment keep neighbours apart
/// from each other and from the adjacent-line prefetcher.
#[repr(C, align(128))]
pub(crate) struct Shard {
    pub(crate) lock: RawLock,
    pub(crate) state: std::cell::UnsafeCell<ShardState>,
}

impl Shard {
    pub(crate) fn new(databases: usize) -> Self {
        Self { lock: RawLock::new(), state: std::cell::UnsafeCell::new(ShardState::new(databases)) }
    }
}

#[cfg(test)]
mod tests {
    use super::{hash_tag, may_have_brace, shard_of};

    #[test]
    fn a_brace_is_found_wherever_it_is_and_nothing_else_is_taken_for_one() {
        for len in 0..=32 {
            for other in [0, b'z', b'|', b'{' ^ 0x80, 0xFF] {
                let mut key = vec![other; len];
                assert!(!may_have_brace(&key), "{len} x {other}");
                for at in 0..len {
                    key[at] = b'{';
                    assert!(may_have_brace(&key), "{len} x {other}, at {at}");
                    key[at] = other;
                }
            }
        }
        assert!(may_have_brace(&[b'a'; 33]));
    }

    #[test]
    fn a_hash_tag_decides_the_shard() {
        assert_eq!(hash_tag(b"{user}:1"), Some(&b"user"[..]));
        assert_eq!(hash_tag(b"a{b}{c}"), Some(&b"b"[..]));
        assert_eq!(hash_tag(b"a{}b{c}"), None);
        assert_eq!(hash_tag(b"a{b"), None);
        assert_eq!(shard_of(b"{user}:1"), shard_of(b"{user}:2"));
        assert_eq!(shard_of(b"{user}:1"), shard_of(b"user"));
    }
}
