//! Tags on keys, in both directions.
//!
//! ```text
//! ShardState ─ Tags       (database, key) ─► its tags        under the shard's lock
//! Keyspace   ─ TagIndex   (database, tag) ─► its TagMembers  leaf locks of its own
//! ```
//!
//! A key's tags lie beside its entry, so whatever removes the entry drops them under the same hold.
//! The index answers which keys have a tag without looking at 1,024 shards, and a filter asks it
//! from threads that hold none.
//!
//! Rules:
//! 1. Tags of a key change only under the exclusive hold of its shard, and the index with them.
//! 2. The index's locks are leaves: who holds one takes no other lock.
//! 3. [`TagMembers`] may be asked long after it was found: it then tells of tags as they are in
//!    that moment, or as they were when the last member of the tag left.
//!
//! An expired key that nobody has met yet still has its tags; who lists keys looks for them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use kiln_base::hash::key_hash;
use kiln_base::sync::{Arc, RwLock};

/// Locks of the index, so that tags seldom meet at one.
const INDEX_PARTS: usize = 16;
/// Locks of the members of one tag, so that searches on several cores seldom meet at one.
const MEMBER_PARTS: usize = 16;

/// Hands on what [`key_hash`] says.
#[derive(Clone, Copy, Default)]
struct KeyHasher(u64);

impl std::hash::Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= key_hash(bytes);
    }

    fn write_usize(&mut self, number: usize) {
        // A database, or the length before the bytes: both spread over all bits.
        self.0 = self.0.rotate_left(5) ^ (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Clone, Copy, Default)]
struct BuildKeyHasher;

impl BuildHasher for BuildKeyHasher {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(0)
    }
}

/// A database, and a key or a tag in it.
type Place = (usize, Box<[u8]>);

/// The tags of the keys of one shard, each list sorted.
#[derive(Default)]
pub struct Tags(HashMap<Place, Vec<Box<[u8]>>>);

impl Tags {
    /// Whether no key has a tag.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tags of `key`.
    pub fn get(&self, db: usize, key: &[u8]) -> &[Box<[u8]>] {
        self.0.get(&(db, Box::from(key))).map_or(&[], Vec::as_slice)
    }

    /// Adds a tag; says whether it is new.
    pub(crate) fn add(&mut self, index: &TagIndex, db: usize, key: &[u8], tag: &[u8]) -> bool {
        let tags = self.0.entry((db, key.into())).or_default();
        let Err(at) = tags.binary_search_by(|other| (**other).cmp(tag)) else { return false };
        tags.insert(at, tag.into());
        index.add(db, tag, key);
        true
    }

    /// Removes a tag; says whether the key had it.
    pub(crate) fn remove(&mut self, index: &TagIndex, db: usize, key: &[u8], tag: &[u8]) -> bool {
        let Entry::Occupied(mut tags) = self.0.entry((db, key.into())) else { return false };
        let Ok(at) = tags.get().binary_search_by(|other| (**other).cmp(tag)) else { return false };
        tags.get_mut().remove(at);
        if tags.get().is_empty() {
            tags.remove();
        }
        index.remove(db, tag, key);
        true
    }

    /// Removes all tags of `key` and returns them.
    pub(crate) fn take(&mut self, index: &TagIndex, db: usize, key: &[u8]) -> Vec<Box<[u8]>> {
        let tags = self.0.remove(&(db, Box::from(key))).unwrap_or_default();
        tags.iter().for_each(|tag| index.remove(db, tag, key));
        tags
    }

    /// Removes the tags of all keys of the given databases.
    pub(crate) fn clear(&mut self, index: &TagIndex, dbs: &std::ops::Range<usize>) {
        self.0.retain(|(db, key), tags| {
            let stays = !dbs.contains(db);
            if !stays {
                tags.iter().for_each(|tag| index.remove(*db, tag, key));
            }
            stays
        });
    }

    /// Exchanges two databases.
    pub(crate) fn swap_dbs(&mut self, index: &TagIndex, a: usize, b: usize) {
        let moved: Vec<_> = self.0.extract_if(|(db, _), _| *db == a || *db == b).collect();
        for ((db, key), tags) in moved {
            let to = if db == a { b } else { a };
            for tag in &tags {
                index.remove(db, tag, &key);
                index.add(to, tag, &key);
            }
            self.0.insert((to, key), tags);
        }
    }
}

type Part = HashMap<Place, Arc<TagMembers>, BuildKeyHasher>;

/// Which keys have a tag, in the whole keyspace.
#[derive(Default)]
pub struct TagIndex {
    parts: [RwLock<Part>; INDEX_PARTS],
}

impl TagIndex {
    /// The keys of `db` that have `tag`.
    pub fn members(&self, db: usize, tag: &[u8]) -> Option<Arc<TagMembers>> {
        self.part(tag).read().get(&(db, Box::from(tag))).cloned()
    }

    fn part(&self, tag: &[u8]) -> &RwLock<Part> {
        &self.parts[key_hash(tag) as usize % INDEX_PARTS]
    }

    fn add(&self, db: usize, tag: &[u8], key: &[u8]) {
        self.part(tag).write().entry((db, tag.into())).or_default().add(key);
    }

    fn remove(&self, db: usize, tag: &[u8], key: &[u8]) {
        let mut part = self.part(tag).write();
        let place = (db, Box::from(tag));
        if let Some(members) = part.get(&place) {
            members.remove(key);
            if members.is_empty() {
                part.remove(&place);
            }
        }
    }
}

/// The keys that have one tag.
#[derive(Default)]
pub struct TagMembers {
    parts: [RwLock<HashSet<Box<[u8]>, BuildKeyHasher>>; MEMBER_PARTS],
}

impl TagMembers {
    /// Whether `key` is one of them.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.part(key).read().contains(key)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.read().len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.read().is_empty())
    }

    /// All of them, in no order.
    pub fn to_vec(&self) -> Vec<Box<[u8]>> {
        self.parts.iter().flat_map(|part| part.read().iter().cloned().collect::<Vec<_>>()).collect()
    }

    fn part(&self, key: &[u8]) -> &RwLock<HashSet<Box<[u8]>, BuildKeyHasher>> {
        // The set uses the hash's upper and lower bits for itself.
        &self.parts[(key_hash(key) >> 24) as usize % MEMBER_PARTS]
    }

    fn add(&self, key: &[u8]) {
        self.part(key).write().insert(key.into());
    }

    fn remove(&self, key: &[u8]) {
        self.part(key).write().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::{TagIndex, Tags};

    #[test]
    fn the_index_follows_the_keys() {
        let (index, mut tags) = (TagIndex::default(), Tags::default());
        assert!(tags.add(&index, 0, b"k", b"red") && tags.add(&index, 0, b"k", b"blue"));
        assert!(!tags.add(&index, 0, b"k", b"red") && tags.add(&index, 1, b"k", b"red"));
        assert_eq!(tags.get(0, b"k"), [Box::from(&b"blue"[..]), Box::from(&b"red"[..])]);
        let red = index.members(0, b"red").expect("one key has it");
        assert!(red.contains(b"k") && !red.contains(b"j"));

        tags.swap_dbs(&index, 0, 2);
        assert!(tags.get(0, b"k").is_empty() && index.members(0, b"red").is_none());
        assert_eq!(index.members(2, b"blue").map(|blue| blue.to_vec().len()), Some(1));

        assert!(tags.remove(&index, 2, b"k", b"red") && !tags.remove(&index, 2, b"k", b"red"));
        assert_eq!(tags.take(&index, 2, b"k"), [Box::from(&b"blue"[..])]);
        tags.clear(&index, &(0..2));
        assert!(tags.is_empty() && index.members(1, b"red").is_none());
    }
}
