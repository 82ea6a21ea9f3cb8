//! When keys expire: an exact, ordered index of deadlines for each shard.
//!
//! Redis samples keys at random and so may keep an idle expired key for hours among many
//! long-lived ones. Here every key with an expiry time stands in a B-tree under its deadline, so a
//! sweep looks only at keys that are due. It costs about 24 bytes for such a key and 100 to 200 ns
//! when its expiry changes.
//!
//! Invariant: the index holds exactly one item for each entry that has an expiry time. `View`
//! keeps it, at the only three places where an expiry can change: insert, remove, set.

use std::collections::BTreeSet;

use kiln_base::clock::UnixMs;

/// Hash bits kept in an item: enough for a bucket and its tags.
const HASH_BITS: u32 = 48;
const HASH_MASK: u64 = (1 << HASH_BITS) - 1;

/// A deadline, and where to find the entry: the low 48 bits of its hash below the 16-bit id of its
/// database.
type Item = (UnixMs, u64);

/// The deadlines of one shard.
#[derive(Default)]
pub struct ExpiryIndex {
    items: BTreeSet<Item>,
    /// The ids under which databases stand in the items. SWAPDB exchanges two of them instead of
    /// rewriting the items; from the end of this list on, a database's number is its id.
    ids: Vec<u16>,
}

/// What one sweep did.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepReport {
    /// Keys removed.
    pub expired: usize,
    /// More keys are due already.
    pub more: bool,
}

impl ExpiryIndex {
    /// Notes that the entry with `hash` in `db` expires at `at`.
    pub fn add(&mut self, at: UnixMs, db: usize, hash: u64) {
        self.items.insert((at, self.place(db, hash)));
    }

    /// Forgets an entry's deadline.
    pub fn remove(&mut self, at: UnixMs, db: usize, hash: u64) {
        self.items.remove(&(at, self.place(db, hash)));
    }

    /// The first deadline that has passed: its time, database and hash bits.
    pub fn first_due(&self, now: UnixMs) -> Option<(UnixMs, usize, u64)> {
        let &(at, place) = self.items.first()?;
        (now > at).then(|| (at, self.db_of(place), place & HASH_MASK))
    }

    /// The item nearest in time after `from`, else the first: a sample for the volatile policies.
    pub fn near(&self, from: UnixMs) -> Option<(UnixMs, usize, u64)> {
        let found = self.items.range((from, 0)..).next().or_else(|| self.items.first());
        found.map(|&(at, place)| (at, self.db_of(place), place & HASH_MASK))
    }

    /// Earliest and latest deadline.
    pub fn bounds(&self) -> Option<(UnixMs, UnixMs)> {
        Some((self.items.first()?.0, self.items.last()?.0))
    }

    /// Number of entries with a deadline.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Number of deadlines in `db`; looks at every one.
    pub fn count(&self, db: usize) -> usize {
        self.items.iter().filter(|(_, place)| self.db_of(*place) == db).count()
    }

    /// Whether no entry has a deadline.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Forgets all deadlines of `db`, looking at those of all databases.
    pub fn clear_db(&mut self, db: usize) {
        let id = self.place(db, 0) >> HASH_BITS;
        self.items.retain(|(_, place)| place >> HASH_BITS != id);
    }

    /// Takes all deadlines of all databases out, to drop them later: that takes a while.
    #[must_use]
    pub fn take(&mut self) -> Self {
        Self { items: std::mem::take(&mut self.items), ids: Vec::new() }
    }

    /// Exchanges two databases.
    pub fn swap_dbs(&mut self, a: usize, b: usize) {
        for db in self.ids.len()..=a.max(b) {
            self.ids.push(db as u16);
        }
        self.ids.swap(a, b);
    }

    /// Sum of the time left for the entries of `db` and their number, for `avg_ttl`.
    pub fn ttl_sum(&self, db: usize, now: UnixMs, sample: usize) -> (i64, usize) {
        let items = self.items.iter().filter(|(_, place)| self.db_of(*place) == db);
        items
            .take(sample)
            .fold((0, 0), |(sum, count), (at, _)| (sum + (at - now).max(0), count + 1))
    }

    fn place(&self, db: usize, hash: u64) -> u64 {
        let id = self.ids.get(db).map_or(db as u64, |id| u64::from(*id));
        id << HASH_BITS | hash & HASH_MASK
    }

    fn db_of(&self, place: u64) -> usize {
        let id = place >> HASH_BITS;
        self.ids.iter().position(|other| u64::from(*other) == id).unwrap_or(id as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::ExpiryIndex;

    #[test]
    fn the_earliest_deadline_comes_first_and_only_when_due() {
        let mut index = ExpiryIndex::default();
        index.add(200, 1, u64::MAX);
        index.add(100, 0, 7);
        assert_eq!(index.first_due(100), None);
        assert_eq!(index.first_due(101), Some((100, 0, 7)));
        index.remove(100, 0, 7);
        assert_eq!(index.first_due(201), Some((200, 1, (1 << 48) - 1)));
        index.swap_dbs(1, 2);
        assert_eq!(index.first_due(201).map(|due| due.1), Some(2));
        index.add(300, 1, 5);
        index.clear_db(2);
        assert_eq!(index.first_due(301), Some((300, 1, 5)));
        index.clear_db(1);
        assert!(index.is_empty());
    }
}
