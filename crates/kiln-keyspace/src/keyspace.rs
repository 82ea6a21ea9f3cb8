#![expect(unsafe_code, reason = "shard state is reached through locks that the executor holds")]

//! The shards and the one way to lock them.
//!
//! # Lock protocol
//!
//! 1. A shard's state is reached only through a [`Locked`], which holds the shard's lock from its
//!    making to its drop.
//! 2. Shared mode lets read; exclusive mode lets change. One hold has one mode for all its shards.
//! 3. A hold of several shards takes them in ascending order, so holds cannot wait for each other
//!    in a circle.
//! 4. A thread that holds shards asks for no others, except with [`Keyspace::try_lock`], which
//!    never waits. So no cycle can form over two holds of one thread either.
//! 5. A thread never takes a shard twice: `parking_lot` would make it wait for itself as soon as a
//!    writer stands between.
//! 6. Under a hold nothing waits: no I/O, no channel, no other lock but leaf locks (client table,
//!    statistics), whose holders take no shard.
//!
//! Rules 3 to 5 are kept by the executor alone; handlers never lock. A stress test with many
//! threads checks them (`tests/it/stress.rs` of `kiln-redis`).

use kiln_base::sync::LockMode;
use smallvec::SmallVec;

use crate::shard::{SHARD_COUNT, Shard, ShardId, ShardState};
use crate::tags::TagIndex;

/// A set of shards, in lock order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shards {
    /// None: the command touches no key.
    #[default]
    None,
    /// One, the common case.
    One(ShardId),
    /// Several, ascending, without repetition.
    Many(SmallVec<[ShardId; 16]>),
    /// The whole keyspace.
    All,
}

impl Shards {
    /// Adds one shard.
    pub fn add(&mut self, shard: ShardId) {
        match self {
            Self::None => *self = Self::One(shard),
            Self::One(one) if *one == shard => {}
            Self::One(one) => {
                let (low, high) = if *one < shard { (*one, shard) } else { (shard, *one) };
                *self = Self::Many(SmallVec::from_slice(&[low, high]));
            }
            Self::Many(shards) => {
                if let Err(at) = shards.binary_search(&shard) {
                    shards.insert(at, shard);
                }
            }
            Self::All => {}
        }
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Self) {
        match other {
            Self::None => {}
            Self::One(shard) => self.add(*shard),
            Self::Many(shards) => shards.iter().for_each(|shard| self.add(*shard)),
            Self::All => *self = Self::All,
        }
    }

    /// Whether `shard` is in the set.
    #[inline]
    pub fn contains(&self, shard: ShardId) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => *one == shard,
            Self::Many(shards) => shards.binary_search(&shard).is_ok(),
            Self::All => true,
        }
    }

    /// Whether every shard of `other` is in the set.
    pub fn covers(&self, other: &Self) -> bool {
        match other {
            Self::None => true,
            Self::One(shard) => self.contains(*shard),
            Self::Many(shards) => shards.iter().all(|shard| self.contains(*shard)),
            Self::All => *self == Self::All,
        }
    }

    #[inline]
    fn for_each(&self, mut visit: impl FnMut(ShardId)) {
        match self {
            Self::One(shard) => visit(*shard),
            _ => self.for_each_of_several(visit),
        }
    }

    #[cold]
    fn for_each_of_several(&self, mut visit: impl FnMut(ShardId)) {
        match self {
            Self::None => {}
            Self::One(shard) => visit(*shard),
            Self::Many(shards) => shards.iter().for_each(|shard| visit(*shard)),
            Self::All => ShardId::all().for_each(visit),
        }
    }
}

/// All keys of all databases.
pub struct Keyspace {
    shards: Box<[Shard]>,
    databases: usize,
    tags: TagIndex,
}

// SAFETY: the only field that is not `Sync` is the shards' `UnsafeCell`, which is reached only
// under the lock beside it (rules 1 and 2); what it holds is `Send`.
unsafe impl Sync for Keyspace {}
// SAFETY: shard states own their data, and everything in them is `Send`.
unsafe impl Send for Keyspace {}

impl Keyspace {
    /// An empty keyspace.
    ///
    /// # Panics
    ///
    /// If `databases` is 0.
    pub fn new(databases: usize) -> Self {
        assert!(databases > 0, "a keyspace has at least one database");
        let shards = (0..SHARD_COUNT).map(|_| Shard::new(databases)).collect();
        Self { shards, databases, tags: TagIndex::default() }
    }

    /// Number of databases.
    pub fn databases(&self) -> usize {
        self.databases
    }

    /// Which keys have a tag.
    pub fn tags(&self) -> &TagIndex {
        &self.tags
    }

    /// Takes `shards`, waiting for each in turn (rule 3).
    #[inline]
    pub fn lock(&self, shards: Shards, mode: LockMode) -> Locked<'_> {
        shards.for_each(|shard| self.shards[shard.index()].lock.lock(mode));
        Locked { keyspace: self, shards, mode }
    }

    /// Takes one shard if that needs no waiting (rule 4).
    #[inline]
    pub fn try_lock(&self, shard: ShardId, mode: LockMode) -> Option<Locked<'_>> {
        let free = self.shards[shard.index()].lock.try_lock(mode);
        free.then(|| Locked { keyspace: self, shards: Shards::One(shard), mode })
    }

    /// Starts loading the lock and the table header of a shard into the cache.
    #[inline]
    pub fn prefetch_shard(&self, shard: ShardId) {
        kiln_base::prefetch::read(&raw const self.shards[shard.index()]);
    }

    /// Starts loading the table bucket for `hash` of a shard that may be busy (then nothing
    /// happens: it is only a hint).
    #[inline]
    pub fn prefetch_bucket(&self, shard: ShardId, db: usize, hash: u64) {
        self.peek(shard, |state| state.db(db).table.prefetch_bucket(hash));
    }

    /// Starts loading the entry that `hash` most likely means, and says whether there is one; its
    /// bucket is best in the cache.
    #[inline]
    pub fn prefetch_entry(&self, shard: ShardId, db: usize, hash: u64) -> bool {
        let mut found = false;
        self.peek(shard, |state| found = state.db(db).table.prefetch_item(hash));
        found
    }

    /// Starts loading what the value of that entry points to; the entry is best in the cache.
    #[inline]
    pub fn prefetch_value(&self, shard: ShardId, db: usize, hash: u64) {
        self.peek(shard, |state| state.db(db).table.prefetch_value(hash));
    }

    /// Looks at a shard if that needs no waiting.
    #[inline]
    fn peek(&self, shard: ShardId, look: impl FnOnce(&ShardState)) {
        let Shard { lock, state } = &self.shards[shard.index()];
        if lock.try_lock(LockMode::Shared) {
            // SAFETY: the lock is held shared, so nobody changes the state meanwhile.
            look(unsafe { &*state.get() });
            // SAFETY: it was taken in this mode three lines up.
            unsafe { lock.unlock(LockMode::Shared) };
        }
    }
}

/// A hold of some shards. Dropping it lets go of them.
pub struct Locked<'k> {
    keyspace: &'k Keyspace,
    shards: Shards,
    mode: LockMode,
}

impl Locked<'_> {
    /// Access to the held shards, for as long as the hold is lent.
    #[inline]
    pub fn hold(&mut self) -> Hold<'_> {
        Hold { keyspace: self.keyspace, shards: &self.shards, mode: self.mode }
    }

    /// Which shards are held.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }
}

/// A hold, lent. There is one of it at a time, and it cannot be copied, so `&mut Hold` is
/// exclusive access to the states of exclusively held shards.
pub struct Hold<'v> {
    keyspace: &'v Keyspace,
    shards: &'v Shards,
    mode: LockMode,
}

impl<'v> Hold<'v> {
    /// The same hold, lent on.
    #[inline]
    pub fn reborrow(&mut self) -> Hold<'_> {
        Hold { keyspace: self.keyspace, shards: self.shards, mode: self.mode }
    }

    /// The keyspace whose shards these are.
    pub fn keyspace(&self) -> &'v Keyspace {
        self.keyspace
    }

    /// Which shards are held.
    pub fn shards(&self) -> &'v Shards {
        self.shards
    }

    /// How they are held.
    #[inline]
    pub fn mode(&self) -> LockMode {
        self.mode
    }

    /// The state of a held shard.
    ///
    /// # Panics
    ///
    /// If the shard is not held: the plan of a command missed one of its keys, which is a bug.
    #[inline]
    pub fn state(&self, shard: ShardId) -> &ShardState {
        assert!(self.shards.contains(shard), "shard {shard:?} is not held: the plan lacks a key");
        // SAFETY: the `Locked` behind this hold keeps the shard's lock (rule 1). In shared mode
        // nobody changes the state; in exclusive mode only `state_mut` of this one hold does, and
        // it borrows `self` mutably.
        unsafe { &*self.keyspace.shards[shard.index()].state.get() }
    }

    /// The state of a held shard, to change it.
    ///
    /// # Panics
    ///
    /// If the shard is not held, or held shared.
    #[inline]
    pub fn state_mut(&mut self, shard: ShardId) -> &mut ShardState {
        assert!(self.shards.contains(shard), "shard {shard:?} is not held: the plan lacks a key");
        assert!(self.mode == LockMode::Exclusive, "a shared hold cannot change anything");
        // SAFETY: the lock is held exclusively, this hold is the only one of its `Locked`, and
        // `&mut self` keeps any other borrow through it away.
        unsafe { &mut *self.keyspace.shards[shard.index()].state.get() }
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        self.shards.for_each(|shard| {
            // SAFETY: `Keyspace::lock` or `try_lock` took this lock in this mode for this hold.
            unsafe { self.keyspace.shards[shard.index()].lock.unlock(self.mode) };
        });
    }
}

#[cfg(test)]
mod tests {
    use kiln_base::sync::LockMode;

    use super::{Keyspace, Shards};
    use crate::shard::ShardId;

    #[test]
    fn sets_of_shards_stay_sorted_and_unique() {
        let mut shards = Shards::None;
        for index in [5, 3, 5, 9, 3, 1] {
            shards.add(ShardId::new(index));
        }
        let want: Vec<_> = [1, 3, 5, 9].into_iter().map(ShardId::new).collect();
        assert_eq!(shards, Shards::Many(want.into()));
        let mut all = Shards::One(ShardId::new(2));
        all.add_all(&Shards::All);
        assert!(all.covers(&shards) && !shards.covers(&all));
    }

    #[test]
    fn a_shared_hold_admits_readers_and_an_exclusive_one_nobody() {
        let keyspace = Keyspace::new(1);
        let shard = ShardId::new(7);
        let reader = keyspace.lock(Shards::One(shard), LockMode::Shared);
        assert!(keyspace.try_lock(shard, LockMode::Shared).is_some());
        assert!(keyspace.try_lock(shard, LockMode::Exclusive).is_none());
        drop(reader);
        let _writer = keyspace.lock(Shards::All, LockMode::Exclusive);
        assert!(keyspace.try_lock(shard, LockMode::Shared).is_none());
    }
}
