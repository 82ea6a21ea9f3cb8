#![expect(unsafe_code, reason = "entries are lent for as long as the view's hold lasts")]

//! What a command handler may touch: the keys of the shards that the executor locked for it.
//!
//! A handler gets `&View` (shared hold: reading only) or `&mut View` (exclusive hold). Reading
//! hides expired keys; an exclusive view removes them when it meets them, as Redis does. Every
//! change is announced with [`View::changed`], after it was made.
//!
//! The clock is the executor's, read once for a command: within it no key expires by itself.

use std::cell::Cell;
use std::ptr::NonNull;

use kiln_base::clock::UnixMs;
use kiln_base::sync::Arc;
use kiln_base::sync::LockMode;
use kiln_data::hash::Hash;
use kiln_data::list::List;
use kiln_data::set::Set;
use kiln_data::table;
use kiln_data::zset::ZSet;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::effects::{Effect, Effects, KeyEvent};
use crate::engine::Engine;
use crate::entry::{Entry, SHARED_MIN, StringRef, Value};
use crate::event::Event;
use crate::eviction::access_clock;
use crate::expiry::{ExpiryIndex, SweepReport};
use crate::keyspace::Hold;
use crate::object::Object;
use crate::settings::Settings;
use crate::shard::{KeyPlace, ShardId, ShardState, place_of};
use crate::space::Space;
use crate::waiters::Waiter;
use crate::watch::WatchToken;

/// Expired fields that a command removes from a hash that it meets; the sweep takes the rest.
const MET_FIELDS_MAX: usize = 64;
/// Freeing an entry of more than this many parts is left to the reclaimer.
const GARBAGE_MIN: usize = 64;

/// Deadlines of a shard that the mean time to live of INFO is computed from.
const TTL_SAMPLES: usize = 16;

/// What one database has in one shard.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShardUsage {
    /// Keys, expired ones that nobody has met yet included.
    pub keys: usize,
    /// Those among them that have an expiry time.
    pub volatile: usize,
    /// Hashes with fields that have one.
    pub volatile_hashes: usize,
    /// The sum of the time left of some of the keys, in milliseconds, and their number.
    pub ttl_sum: (i64, usize),
}

/// The key holds a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

/// What becomes of a key's expiry when its value is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// The key loses it.
    Clear,
    /// The key keeps what it has.
    Keep,
    /// The key gets this one.
    At(UnixMs),
}

/// What [`View::flush`] took out of the keyspace.
#[derive(Default)]
pub struct Flushed {
    /// How many keys that were.
    pub keys: usize,
    tables: Vec<table::Table<Entry>>,
    deadlines: Vec<ExpiryIndex>,
}

/// A key of a planned command: the address of its bytes, and its place.
#[derive(Clone, Copy, Debug)]
pub struct PlannedKey {
    address: usize,
    /// Hash and shard.
    pub place: KeyPlace,
}

impl PlannedKey {
    /// Computes the place of `key`.
    #[inline]
    pub fn new(key: &[u8]) -> Self {
        Self { address: key.as_ptr() as usize, place: place_of(key) }
    }
}

/// The window of one command on the keyspace.
pub struct View<'v> {
    hold: Hold<'v>,
    db: usize,
    now: UnixMs,
    settings: &'v Settings,
    effects: &'v mut Effects,
    /// The places of the command's keys, computed when it was planned. Handlers mostly take keys
    /// in order and each several times, so the last one and its successor are tried.
    places: &'v [PlannedKey],
    current_place: Cell<usize>,
    touch: bool,
    seed: Cell<u64>,
    hits: Cell<u32>,
    misses: Cell<u32>,
    met_expired: Cell<bool>,
}

impl<'v> View<'v> {
    /// A view of database `db` through `hold`.
    pub fn new(
        hold: Hold<'v>,
        db: usize,
        now: UnixMs,
        settings: &'v Settings,
        effects: &'v mut Effects,
    ) -> Self {
        Self {
            hold,
            db,
            now,
            settings,
            effects,
            places: &[],
            current_place: Cell::new(0),
            touch: true,
            seed: Cell::new(0),
            hits: Cell::new(0),
            misses: Cell::new(0),
            met_expired: Cell::new(false),
        }
    }

    /// Spares hashing keys again whose places the executor computed to plan the command.
    #[inline]
    #[must_use]
    pub fn with_places(mut self, places: &'v [PlannedKey]) -> Self {
        self.places = places;
        self
    }

    /// Keys that reading found and did not find so far.
    #[inline]
    pub fn hits_and_misses(&self) -> (u32, u32) {
        (self.hits.get(), self.misses.get())
    }

    /// Seeds [`View::rng`].
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        self.seed.set(seed);
        self
    }

    /// Leaves the access clocks alone (CLIENT NO-TOUCH).
    #[must_use]
    pub fn without_touch(mut self) -> Self {
        self.touch = false;
        self
    }

    /// The instant of the command.
    #[inline]
    pub fn now(&self) -> UnixMs {
        self.now
    }

    /// Number of the database that keys mean.
    #[inline]
    pub fn db(&self) -> usize {
        self.db
    }

    /// How many databases there are.
    pub fn databases(&self) -> usize {
        self.hold.keyspace().databases()
    }

    /// Lets keys mean the names of a hidden space; returns the database before.
    pub fn enter(&mut self, space: Space) -> usize {
        let db = space.db(self.databases());
        self.select(db)
    }

    /// Lets keys mean database `db`, for COPY and MOVE; returns the one before.
    pub fn select(&mut self, db: usize) -> usize {
        std::mem::replace(&mut self.db, db)
    }

    /// The configuration that handlers read.
    #[inline]
    pub fn settings(&self) -> &'v Settings {
        self.settings
    }

    /// A generator of its own for this command; seeded by the executor, so runs can be replayed.
    pub fn rng(&self) -> SmallRng {
        generator(&self.seed)
    }

    // Reading

    /// The entry at `key`, unless it is missing or expired. Its access clock moves.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        let Some(entry) = self.peek(key) else {
            self.misses.set(self.misses.get() + 1);
            return None;
        };
        self.hits.set(self.hits.get() + 1);
        self.mark_access(&entry);
        Some(entry)
    }

    /// The entry at `key` for a command that only looks at its surroundings, such as TTL: it
    /// counts as a hit or a miss, but the access clock stays.
    #[inline]
    pub fn get_untouched(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        let found = self.peek(key);
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.set(counter.get() + 1);
        found
    }

    /// The entry at `key`, unless it is missing or expired; nothing is counted, and the access
    /// clock stays.
    #[inline]
    pub fn peek(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        let place = self.place(key);
        let found = self.hold.state(place.shard).db(self.db).table.find(place.hash, key)?;
        if found.is_expired(self.now) {
            self.met_expired.set(true);
            return None;
        }
        Some(EntryRef::new(found))
    }

    /// Whether reading met a key or a field whose time had come: the executor then removes it with
    /// [`View::expire_due`], once it holds the shard exclusively.
    #[inline]
    pub fn met_expired(&self) -> bool {
        self.met_expired.get()
    }

    /// Removes `key` if its time has come, or the fields of its hash whose time has.
    pub fn expire_due(&mut self, key: &[u8]) {
        self.live_place(key);
        self.live_hash(key);
    }

    /// Whether there is a value at `key`.
    pub fn exists(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// The string at `key`.
    #[inline]
    pub fn string(&self, key: &[u8]) -> Result<Option<StringRef<'_>>, WrongType> {
        match self.get(key).map(EntryRef::value) {
            None => Ok(None),
            Some(Value::String(string)) => Ok(Some(string)),
            Some(Value::Object(_)) => Err(WrongType),
        }
    }

    /// The list at `key`.
    pub fn list(&self, key: &[u8]) -> Result<Option<&List>, WrongType> {
        match self.get(key).map(EntryRef::value) {
            None => Ok(None),
            Some(Value::Object(Object::List(list))) => Ok(Some(list)),
            Some(_) => Err(WrongType),
        }
    }

    /// The set at `key`.
    pub fn set(&self, key: &[u8]) -> Result<Option<&Set>, WrongType> {
        match self.get(key).map(EntryRef::value) {
            None => Ok(None),
            Some(Value::Object(Object::Set(set))) => Ok(Some(set)),
            Some(_) => Err(WrongType),
        }
    }

    /// The hash at `key`.
    pub fn hash(&self, key: &[u8]) -> Result<Option<&Hash>, WrongType> {
        match self.get(key).map(EntryRef::value) {
            None => Ok(None),
            Some(Value::Object(Object::Hash(hash))) => {
                if due_field(hash, self.now).is_some() {
                    self.met_expired.set(true);
                }
                Ok(Some(hash))
            }
            Some(_) => Err(WrongType),
        }
    }

    /// The sorted set at `key`.
    pub fn zset(&self, key: &[u8]) -> Result<Option<&ZSet>, WrongType> {
        match self.get(key).map(EntryRef::value) {
            None => Ok(None),
            Some(Value::Object(Object::SortedSet(zset))) => Ok(Some(zset)),
            Some(_) => Err(WrongType),
        }
    }

    /// The engine at `key`, whatever its family.
    pub fn engine(&self, key: &[u8]) -> Result<Option<&Arc<dyn Engine>>, WrongType> {
        match self.get(key).map(EntryRef::value) {
            None => Ok(None),
            Some(Value::Object(Object::Engine(engine))) => Ok(Some(engine)),
            Some(_) => Err(WrongType),
        }
    }

    // Writing

    /// Makes `key` hold a string.
    pub fn set_string(&mut self, key: &[u8], value: &[u8], ttl: Ttl) {
        if value.len() >= SHARED_MIN {
            let value = Arc::new(value.to_vec());
            self.store(
                key,
                ttl,
                |entry| entry.set_shared(Arc::clone(&value)),
                |at| Entry::shared(key, Arc::clone(&value), at),
            );
        } else {
            self.store(
                key,
                ttl,
                |entry| entry.set_string(value),
                |at| Entry::string(key, value, at),
            );
        }
    }

    /// Makes `key`, which is missing, hold an integer: no second look for it.
    pub fn insert_int(&mut self, key: &[u8], number: i64) {
        self.insert_at(self.place(key), Entry::int(key, number, None));
    }

    /// Makes `key`, which is missing, hold a string: no second look for it.
    pub fn insert_string(&mut self, key: &[u8], value: &[u8]) {
        let entry = if value.len() >= SHARED_MIN {
            Entry::shared(key, Arc::new(value.to_vec()), None)
        } else {
            Entry::string(key, value, None)
        };
        self.insert_at(self.place(key), entry);
    }

    /// Makes `key` hold an object that is not empty; an engine may be.
    pub fn set_object(&mut self, key: &[u8], object: Object, ttl: Ttl) {
        let may_stay = matches!(object, Object::Engine(_)) || !object.is_empty();
        debug_assert!(may_stay, "an empty value must not stay in the keyspace");
        let at = match ttl {
            Ttl::Clear => None,
            Ttl::Keep => self.peek(key).and_then(|entry| entry.expire_at_ms()),
            Ttl::At(at) => Some(at),
        };
        let place = self.place(key);
        match self.take_at(place, key) {
            Some(old) if old.is_expired(self.now) => {
                self.drop_tags(place, key);
                self.note_expired(place, key, old);
            }
            // The key stays, and its tags with it.
            Some(old) => self.discard(old),
            None => {}
        }
        self.insert(Entry::object(key, object, at));
    }

    /// The object at `key` to change in place, or an error if it is a string.
    #[inline]
    fn object_mut(&mut self, key: &[u8]) -> Result<Option<&mut Object>, WrongType> {
        let Some(found) = self.find_live(key) else { return Ok(None) };
        // SAFETY: the exclusive hold behind `&mut self` (checked by `find_live`) makes this the
        // only reference to the entry for as long as the result borrows `self`.
        let object = unsafe { object_at(found) };
        object.ok_or(WrongType).map(Some)
    }

    #[inline]
    fn object_or_insert(
        &mut self,
        key: &[u8],
        new: impl FnOnce() -> Object,
    ) -> Result<&mut Object, WrongType> {
        let found = match self.find_live(key) {
            Some(found) => found,
            None => self.insert_at(self.place(key), Entry::object(key, new(), None)),
        };
        // SAFETY: as in `object_mut`.
        let object = unsafe { object_at(found) };
        object.ok_or(WrongType)
    }

    /// The list at `key`, to change it. A handler that may have emptied it must call
    /// [`View::remove_if_empty`]; likewise for the other types.
    pub fn list_mut(&mut self, key: &[u8]) -> Result<Option<&mut List>, WrongType> {
        match self.object_mut(key)? {
            None => Ok(None),
            Some(Object::List(list)) => Ok(Some(list)),
            Some(_) => Err(WrongType),
        }
    }

    /// The list at `key`, made if missing: the handler must then add something.
    pub fn list_or_new(&mut self, key: &[u8]) -> Result<&mut List, WrongType> {
        match self.object_or_insert(key, || Object::List(List::new()))? {
            Object::List(list) => Ok(list),
            _ => Err(WrongType),
        }
    }

    /// The set at `key`, to change it.
    pub fn set_mut(&mut self, key: &[u8]) -> Result<Option<&mut Set>, WrongType> {
        match self.object_mut(key)? {
            None => Ok(None),
            Some(Object::Set(set)) => Ok(Some(set)),
            Some(_) => Err(WrongType),
        }
    }

    /// The set at `key`, made by `new` if missing: the handler must then add something.
    pub fn set_or_insert(
        &mut self,
        key: &[u8],
        new: impl FnOnce() -> Set,
    ) -> Result<&mut Set, WrongType> {
        match self.object_or_insert(key, || Object::Set(new()))? {
            Object::Set(set) => Ok(set),
            _ => Err(WrongType),
        }
    }

    /// The hash at `key`, to change it.
    pub fn hash_mut(&mut self, key: &[u8]) -> Result<Option<&mut Hash>, WrongType> {
        let Some(found) = self.live_hash(key) else { return Ok(None) };
        // SAFETY: as in `object_mut`.
        match unsafe { object_at(found) } {
            Some(Object::Hash(hash)) => Ok(Some(hash)),
            _ => Err(WrongType),
        }
    }

    /// The hash at `key`, made if missing: the handler must then add something.
    pub fn hash_or_new(&mut self, key: &[u8]) -> Result<&mut Hash, WrongType> {
        let found = if let Some(found) = self.live_hash(key) {
            found
        } else {
            let entry = Entry::object(key, Object::Hash(Hash::new()), None);
            self.insert_at(self.place(key), entry)
        };
        // SAFETY: as in `object_mut`.
        match unsafe { object_at(found) } {
            Some(Object::Hash(hash)) => Ok(hash),
            _ => Err(WrongType),
        }
    }

    /// The sorted set at `key`, to change it.
    pub fn zset_mut(&mut self, key: &[u8]) -> Result<Option<&mut ZSet>, WrongType> {
        match self.object_mut(key)? {
            None => Ok(None),
            Some(Object::SortedSet(zset)) => Ok(Some(zset)),
            Some(_) => Err(WrongType),
        }
    }

    /// The sorted set at `key`, made by `new` if missing: the handler must then add something.
    pub fn zset_or_insert(
        &mut self,
        key: &[u8],
        new: impl FnOnce() -> ZSet,
    ) -> Result<&mut ZSet, WrongType> {
        match self.object_or_insert(key, || Object::SortedSet(new()))? {
            Object::SortedSet(zset) => Ok(zset),
            _ => Err(WrongType),
        }
    }

    /// Removes `key` if its value has no elements left; says whether it did. Announces nothing.
    pub fn remove_if_empty(&mut self, key: &[u8]) -> bool {
        let empty = self.peek(key).is_some_and(
            |entry| matches!(entry.value(), Value::Object(object) if object.is_empty()),
        );
        if empty && let Some(entry) = self.remove(key) {
            self.discard(entry);
        }
        empty
    }

    /// Lends the entry at `key` for a change that keeps its key, such as [`Entry::append`] or
    /// [`Entry::set_expire_at_ms`]. One look into the table does all.
    pub fn update<R>(&mut self, key: &[u8], change: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        assert!(self.hold.mode() == LockMode::Exclusive, "a shared hold cannot change anything");
        let place = self.place(key);
        let (db, now, touch, settings) = (self.db, self.now, self.touch, self.settings);
        let seed = &self.seed;
        let state = self.hold.state_mut(place.shard);
        let mut cell = state.db_mut(db).table.find_mut(place.hash, key)?;
        if cell.get().is_expired(now) {
            self.expire(place, key);
            return None;
        }
        let (result, before, after) = cell.with_mut(|entry| {
            if touch {
                let clock = access_clock(settings, now, Some(entry.access()), || fraction(seed));
                entry.set_access(clock);
            }
            let before = entry.expire_at_ms();
            let result = change(entry);
            (result, before, entry.expire_at_ms())
        });
        if before != after {
            reindex(state, db, place.hash, before, after);
        }
        Some(result)
    }

    /// Lends the bytes of the string at `key`, which is first made at least `len` long by zeroes
    /// at its end; a missing key counts as empty. `change` also hears how long it was.
    pub fn edit_string<R>(
        &mut self,
        key: &[u8],
        len: usize,
        change: impl FnOnce(usize, &mut [u8]) -> R,
    ) -> Result<R, WrongType> {
        let mut change = Some(change);
        let mut edit = |entry: &mut Entry| {
            let old_len = entry.as_string().ok_or(WrongType)?.len();
            let change = change.take().expect("an entry is lent once");
            Ok(change(old_len, entry.bytes_mut(len)))
        };
        if let Some(result) = self.update(key, &mut edit) {
            return result;
        }
        self.set_string(key, b"", Ttl::Clear);
        self.update(key, edit).expect("the entry was just made")
    }

    /// Makes `key` hold a string that stays text even if it looks like an integer.
    pub fn set_text(&mut self, key: &[u8], value: &[u8], ttl: Ttl) {
        self.store(
            key,
            ttl,
            |entry| entry.set_text(value, false),
            |at| Entry::text(key, value, false, at),
        );
    }

    /// Makes `key` hold a string that a command built: `raw` to OBJECT ENCODING, whatever it
    /// looks like.
    pub fn set_built_string(&mut self, key: &[u8], value: Vec<u8>, ttl: Ttl) {
        if value.len() < SHARED_MIN {
            return self.store(
                key,
                ttl,
                |entry| entry.set_text(&value, true),
                |at| Entry::text(key, &value, true, at),
            );
        }
        let value = Arc::new(value);
        self.store(
            key,
            ttl,
            |entry| entry.set_shared(Arc::clone(&value)),
            |at| Entry::shared(key, Arc::clone(&value), at),
        );
    }

    /// Takes the entry at `key` out of the keyspace. Announces nothing.
    pub fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let place = self.place(key);
        let entry = self.remove_at(place, key)?;
        if entry.is_expired(self.now) {
            self.note_expired(place, key, entry);
            return None;
        }
        Some(entry)
    }

    /// Removes the entry at `key`; says whether there was one. Announces nothing.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let found = self.remove(key);
        let existed = found.is_some();
        if let Some(entry) = found {
            self.discard(entry);
        }
        existed
    }

    /// Puts `entry` into the keyspace.
    ///
    /// # Panics
    ///
    /// In debug builds, if its key is there already.
    pub fn insert(&mut self, entry: Entry) {
        self.insert_at(self.place(entry.key()), entry);
    }

    fn insert_at(&mut self, place: KeyPlace, entry: Entry) -> NonNull<u8> {
        debug_assert!(self.peek(entry.key()).is_none(), "the key must be absent");
        entry.set_access(self.clock(None));
        if self.wants(Event::New) {
            self.effects.events.push(KeyEvent {
                db: self.db,
                event: Event::New,
                key: entry.key().into(),
            });
        }
        let db = self.db;
        let state = self.hold.state_mut(place.shard);
        reindex(state, db, place.hash, None, entry.expire_at_ms());
        if let Some(at) = next_field_expiry(&entry) {
            state.expiry.add(at, db, place.hash);
        }
        state.db_mut(db).table.insert_unique(place.hash, entry).get().as_raw()
    }

    /// Tells the expiry index that the next expiry among the fields of the hash at `key` may have
    /// moved; `before` is what [`Hash::next_expiry`] said before the change.
    pub fn field_expiry_moved(&mut self, key: &[u8], before: Option<UnixMs>) {
        let place = self.place(key);
        let db = self.db;
        let after = self.peek(key).and_then(|entry| next_field_expiry(&entry));
        let state = self.hold.state_mut(place.shard);
        if before != after {
            if let Some(at) = before {
                state.expiry.remove(at, db, place.hash);
            }
            if let Some(at) = after {
                state.expiry.add(at, db, place.hash);
            }
        }
    }

    /// Frees a removed entry: here if that is quick, else after the locks are gone.
    pub fn discard(&mut self, entry: Entry) {
        if entry.free_effort() > GARBAGE_MIN {
            self.effects.garbage.push(entry);
        }
    }

    // Tags

    /// The tags of `key`, sorted; those of an expired key are none.
    pub fn tags(&self, key: &[u8]) -> &[Box<[u8]>] {
        let state = self.hold.state(self.place(key).shard);
        if state.is_tagged() && self.peek(key).is_some() {
            state.tags().get(self.db, key)
        } else {
            &[]
        }
    }

    /// Gives `key`, which must exist, a tag; says whether it is new.
    pub fn tag(&mut self, key: &[u8], tag: &[u8]) -> bool {
        let (place, db, index) = (self.place(key), self.db, self.hold.keyspace().tags());
        self.hold.state_mut(place.shard).change_tags(|tags| tags.add(index, db, key, tag))
    }

    /// Takes a tag from `key`; says whether it had it.
    pub fn untag(&mut self, key: &[u8], tag: &[u8]) -> bool {
        let place = self.live_place(key);
        let (db, index) = (self.db, self.hold.keyspace().tags());
        self.hold.state_mut(place.shard).change_tags(|tags| tags.remove(index, db, key, tag))
    }

    /// Takes the tags of `key` away to give them to another one with [`View::set_tags`].
    #[must_use]
    pub fn take_tags(&mut self, key: &[u8]) -> Vec<Box<[u8]>> {
        let (place, db, index) = (self.place(key), self.db, self.hold.keyspace().tags());
        let state = self.hold.state_mut(place.shard);
        if state.is_tagged() {
            state.change_tags(|tags| tags.take(index, db, key))
        } else {
            Vec::new()
        }
    }

    /// Gives `key`, which must exist, these tags.
    pub fn set_tags(&mut self, key: &[u8], tags: &[Box<[u8]>]) {
        for tag in tags {
            self.tag(key, tag);
        }
    }

    #[cold]
    fn drop_tags(&mut self, place: KeyPlace, key: &[u8]) {
        let (db, index) = (self.db, self.hold.keyspace().tags());
        self.hold.state_mut(place.shard).change_tags(|tags| tags.take(index, db, key));
    }

    // Announcing

    /// Says that `key` was changed: watchers are touched, waiting clients become ready, an event
    /// is kept for subscribers.
    #[inline]
    pub fn changed(&mut self, key: &[u8], event: Event) {
        self.effects.dirty += 1;
        self.signal(key);
        self.event(key, event);
    }

    /// Touches the watchers of `key` and readies its waiters, without an event.
    #[inline]
    pub fn signal(&mut self, key: &[u8]) {
        let place = self.place(key);
        let db = self.db;
        let state = self.hold.state(place.shard);
        if state.is_observed() {
            state.watches().touch(db, key);
            if state.waiters().contains(db, key) {
                self.effects.ready.push((db, key.into()));
            }
        }
    }

    /// Keeps an event for subscribers.
    #[inline]
    pub fn event(&mut self, key: &[u8], event: Event) {
        if self.wants(event) {
            self.effects.events.push(KeyEvent { db: self.db, event, key: key.into() });
        }
    }

    /// Counts further changes of one command, such as the second of two popped elements.
    pub fn count_changes(&mut self, more: u64) {
        self.effects.dirty += more;
    }

    /// How many changes the command has made so far.
    pub fn changes(&self) -> u64 {
        self.effects.dirty
    }

    /// Whether anybody listens to the journal: what is costly to gather for it is spared if not.
    #[inline]
    pub fn journals(&self) -> bool {
        self.effects.journaling
    }

    /// Journals these words instead of the command as it was sent.
    pub fn journal<'w>(&mut self, words: impl IntoIterator<Item = &'w [u8]>) {
        self.effects.rewritten = true;
        if self.effects.journaling {
            let words = words.into_iter().map(Box::from).collect();
            self.effects.journal.push(Effect { db: self.db, words });
        }
    }

    /// Journals that `key` is gone, besides whatever else the command does.
    pub fn journal_del(&mut self, key: &[u8]) {
        if self.effects.journaling {
            let words = vec![Box::from(&b"DEL"[..]), Box::from(key)];
            self.effects.journal.push(Effect { db: self.db, words });
        }
    }

    // Whole databases and shards

    /// Every held shard.
    pub fn held_shards(&self) -> impl Iterator<Item = ShardId> + use<'_, 'v> {
        ShardId::all().filter(|shard| self.hold.shards().contains(*shard))
    }

    /// Number of entries of the view's database in one shard, expired ones included.
    pub fn shard_len(&self, shard: ShardId) -> usize {
        self.table(shard).len()
    }

    /// What database `db` has in a held shard, for INFO.
    pub fn shard_usage(&self, shard: ShardId, db: usize) -> ShardUsage {
        let state = self.hold.state(shard);
        let (keys, volatile) = (state.db(db).table.len(), state.db(db).volatile_count);
        let mut usage = ShardUsage { keys, volatile, ..ShardUsage::default() };
        if keys == 0 || state.expiry.is_empty() {
            return usage;
        }
        // A key with a deadline has one item in the index, a hash with fields that have one too.
        let dbs = 0..state.db_count();
        let volatile_keys: usize = dbs.map(|db| state.db(db).volatile_count).sum();
        if state.expiry.len() > volatile_keys {
            usage.volatile_hashes = state.expiry.count(db).saturating_sub(volatile);
        }
        if volatile > 0 {
            usage.ttl_sum = state.expiry.ttl_sum(db, self.now, TTL_SAMPLES);
        }
        usage
    }

    /// Goes on with a scan of the view's database in one shard; see
    /// [`kiln_data::table::Table::scan`]. Expired entries are passed over.
    pub fn scan_shard(
        &self,
        shard: ShardId,
        cursor: u64,
        mut visit: impl FnMut(EntryRef<'_>),
    ) -> u64 {
        self.hold.state(shard).db(self.db).table.scan(cursor, |entry| {
            if !entry.is_expired(self.now) {
                visit(EntryRef::new(entry));
            }
        })
    }

    /// As [`View::scan_shard`] in a hidden space.
    pub fn scan_space(
        &self,
        space: Space,
        shard: ShardId,
        cursor: u64,
        visit: &mut dyn FnMut(EntryRef<'_>),
    ) -> u64 {
        let db = space.db(self.databases());
        self.hold.state(shard).db(db).table.scan(cursor, |entry| {
            if !entry.is_expired(self.now) {
                visit(EntryRef::new(entry));
            }
        })
    }

    /// A random entry of the view's database in `shard`, which may be expired.
    pub fn random_in_shard(&self, shard: ShardId, rng: &mut SmallRng) -> Option<EntryRef<'_>> {
        self.hold.state(shard).db(self.db).table.random(rng).map(EntryRef::new)
    }

    /// Removes every key of the given databases from the held shards and touches their watchers.
    /// Returns what held them, which the caller frees after the locks are gone.
    pub fn flush(&mut self, dbs: std::ops::Range<usize>) -> Flushed {
        let (now, index) = (self.now, self.hold.keyspace().tags());
        let shards: Vec<_> = self.held_shards().collect();
        let mut flushed = Flushed::default();
        for shard in shards {
            let state = self.hold.state_mut(shard);
            // Spaces that nobody has written to need not be made for this.
            let dbs = dbs.start..dbs.end.min(state.db_count());
            if state.is_tagged() {
                state.change_tags(|tags| tags.clear(index, &dbs));
            }
            for db in dbs.clone() {
                touch_existing(state, db, now);
                let part = state.db_mut(db);
                part.volatile_count = 0;
                if !part.table.is_empty() {
                    flushed.keys += part.table.len();
                    flushed.tables.push(std::mem::take(&mut part.table));
                }
            }
            if state.expiry.is_empty() {
                continue;
            }
            // Picking out one database's deadlines takes as long as there are deadlines; mostly
            // they are all its own.
            if (0..state.db_count()).all(|db| state.db(db).table.is_empty()) {
                flushed.deadlines.push(state.expiry.take());
            } else {
                dbs.clone().for_each(|db| state.expiry.clear_db(db));
            }
        }
        self.effects.dirty += flushed.keys as u64;
        flushed
    }

    /// Exchanges two databases in the held shards, touches the watchers of keys in either, and
    /// readies waiters whose key appears by it.
    pub fn swap_dbs(&mut self, a: usize, b: usize) {
        let (now, index) = (self.now, self.hold.keyspace().tags());
        let shards: Vec<_> = self.held_shards().collect();
        for shard in shards {
            let state = self.hold.state_mut(shard);
            if state.is_tagged() && a != b {
                state.change_tags(|tags| tags.swap_dbs(index, a, b));
            }
            touch_existing(state, a, now);
            touch_existing(state, b, now);
            state.swap_dbs(a, b);
            touch_existing(state, a, now);
            touch_existing(state, b, now);
            for db in [a, b] {
                for key in state.waiters().keys(db) {
                    if state.db(db).table.find(place_of(&key).hash, &key).is_some() {
                        self.effects.ready.push((db, key));
                    }
                }
            }
        }
        self.effects.dirty += 1;
    }

    /// Removes keys of `shard` whose time has come, at most `max`.
    pub fn sweep(&mut self, shard: ShardId, max: usize) -> SweepReport {
        let mut report = SweepReport::default();
        let before = self.db;
        while report.expired < max {
            let state = self.hold.state_mut(shard);
            let Some((at, db, hash)) = state.expiry.first_due(self.now) else { break };
            let due = due_at(&state.db(db).table, hash, at, self.now);
            self.db = db;
            match due {
                Due::Key(key) => {
                    self.live_place(&key);
                }
                Due::Fields(key) => report.expired += self.sweep_fields(&key, max, at, hash),
                // The fields of a hash changed since, or two keys shared the item.
                Due::Nothing => self.hold.state_mut(shard).expiry.remove(at, db, hash),
            }
            report.expired += 1;
        }
        self.db = before;
        report.more = self.hold.state(shard).expiry.first_due(self.now).is_some();
        report
    }

    /// Removes expired fields of the hash at `key`, at most `max`, and the key with the last one.
    fn sweep_fields(&mut self, key: &[u8], max: usize, at: UnixMs, hash: u64) -> usize {
        let (now, db) = (self.now, self.db);
        let shard = self.place(key).shard;
        let mut fields: Vec<Box<[u8]>> = Vec::new();
        let Ok(Some(Object::Hash(value))) = self.object_mut(key) else { return 0 };
        let before = value.next_expiry();
        let removed = value.remove_expired(now, max, |field| fields.push(field.into()));
        self.field_expiry_moved(key, before);
        if before != Some(at) {
            // The item was another, older one of the same bucket.
            self.hold.state_mut(shard).expiry.remove(at, db, hash);
        }
        if removed > 0 {
            if self.effects.journaling {
                let words =
                    [&b"HDEL"[..], key].into_iter().chain(fields.iter().map(|field| &**field));
                let words = words.map(Box::from).collect();
                self.effects.journal.push(Effect { db, words });
            }
            self.changed(key, Event::HExpired);
            if self.remove_if_empty(key) {
                self.changed(key, Event::Del);
            }
        }
        removed
    }

    // Watches and waiters, for the executor

    /// Registers a watcher of `key`. Says whether the key is expired already but still there.
    pub fn watch(&mut self, key: &[u8], token: &Arc<WatchToken>) -> bool {
        let place = self.place(key);
        let (db, now) = (self.db, self.now);
        let state = self.hold.state_mut(place.shard);
        state.observe(|watches, _| watches.add(db, key, token));
        state.db(db).table.find(place.hash, key).is_some_and(|entry| entry.is_expired(now))
    }

    /// Removes a watcher of `key`.
    pub fn unwatch(&mut self, key: &[u8], token: &Arc<WatchToken>) {
        let (shard, db) = (self.place(key).shard, self.db);
        self.hold.state_mut(shard).observe(|watches, _| watches.remove(db, key, token));
    }

    /// Whether `key` is there but expired.
    pub fn is_expired(&self, key: &[u8]) -> bool {
        let place = self.place(key);
        let table = &self.hold.state(place.shard).db(self.db).table;
        table.find(place.hash, key).is_some_and(|entry| entry.is_expired(self.now))
    }

    /// Puts `waiter` at the end of the queue of `key`.
    pub fn wait(&mut self, key: &[u8], waiter: &Arc<dyn Waiter>) {
        let (shard, db) = (self.place(key).shard, self.db);
        self.hold.state_mut(shard).observe(|_, waiters| waiters.add(db, key, waiter));
    }

    /// Takes `waiter` out of the queue of `key`.
    pub fn unwait(&mut self, key: &[u8], waiter: &Arc<dyn Waiter>) {
        let (shard, db) = (self.place(key).shard, self.db);
        self.hold.state_mut(shard).observe(|_, waiters| waiters.remove(db, key, waiter));
    }

    /// Who waits for `key` behind the `passed` oldest waiters.
    pub fn waiter(&mut self, key: &[u8], passed: usize) -> Option<Arc<dyn Waiter>> {
        let (shard, db) = (self.place(key).shard, self.db);
        self.hold.state_mut(shard).observe(|_, waiters| waiters.get(db, key, passed))
    }

    // Inside

    #[inline]
    fn place(&self, key: &[u8]) -> KeyPlace {
        // An empty key may share its address with its neighbour, so it is always hashed.
        if !key.is_empty() {
            let address = key.as_ptr() as usize;
            let current = self.current_place.get();
            if let Some(planned) = self.places.get(current)
                && planned.address == address
            {
                return planned.place;
            }
            let next = if current + 1 < self.places.len() { current + 1 } else { 0 };
            if let Some(planned) = self.places.get(next)
                && planned.address == address
            {
                self.current_place.set(next);
                return planned.place;
            }
        }
        place_of(key)
    }

    fn table(&self, shard: ShardId) -> &table::Table<Entry> {
        &self.hold.state(shard).db(self.db).table
    }

    /// Whether subscribers hear of such an event; of what happens in a hidden space they do not.
    fn wants(&self, event: Event) -> bool {
        self.effects.notify_classes & event.class().0 != 0 && self.db < self.databases()
    }

    fn clock(&self, old: Option<u32>) -> u32 {
        access_clock(self.settings, self.now, old, || fraction(&self.seed))
    }

    #[inline]
    fn mark_access(&self, entry: &Entry) {
        if self.touch {
            entry.set_access(self.clock(Some(entry.access())));
        }
    }

    /// As `find_live`; fields of a hash whose time has come are removed on the way.
    #[inline]
    fn live_hash(&mut self, key: &[u8]) -> Option<NonNull<u8>> {
        let found = self.find_live(key)?;
        // SAFETY: as in `object_mut`; the borrow ends with this statement.
        let due = match unsafe { object_at(found) } {
            Some(Object::Hash(hash)) => due_field(hash, self.now),
            _ => None,
        };
        match due {
            None => Some(found),
            Some(at) => {
                let hash = self.place(key).hash;
                self.sweep_fields(key, MET_FIELDS_MAX, at, hash);
                self.find_live(key)
            }
        }
    }

    /// The address of the entry at `key`, for a change in place: its access clock moves, and an
    /// expired one is removed instead. One lookup, which is most of what a short write costs.
    #[inline]
    fn find_live(&mut self, key: &[u8]) -> Option<NonNull<u8>> {
        assert!(self.hold.mode() == LockMode::Exclusive, "a shared hold cannot change anything");
        let place = self.place(key);
        let found = self.table(place.shard).find(place.hash, key)?;
        if found.is_expired(self.now) {
            self.expire(place, key);
            return None;
        }
        self.mark_access(&found);
        Some(found.as_raw())
    }

    /// The place of `key` after an expired entry there was removed. Writing passes here or through
    /// [`View::find_live`].
    #[inline]
    fn live_place(&mut self, key: &[u8]) -> KeyPlace {
        assert!(self.hold.mode() == LockMode::Exclusive, "a shared hold cannot change anything");
        let place = self.place(key);
        let now = self.now;
        if self.table(place.shard).find(place.hash, key).is_some_and(|entry| entry.is_expired(now))
        {
            self.expire(place, key);
        }
        place
    }

    #[cold]
    fn expire(&mut self, place: KeyPlace, key: &[u8]) {
        let entry = self.remove_at(place, key).expect("the caller found it there");
        self.note_expired(place, key, entry);
    }

    /// Frees an expired entry that was removed, and announces it.
    #[cold]
    fn note_expired(&mut self, place: KeyPlace, key: &[u8], entry: Entry) {
        self.discard(entry);
        self.effects.expired += 1;
        self.journal_del(key);
        let state = self.hold.state(place.shard);
        if state.is_observed() {
            state.watches().touch(self.db, key);
        }
        self.event(key, Event::Expired);
    }

    fn remove_at(&mut self, place: KeyPlace, key: &[u8]) -> Option<Entry> {
        let entry = self.take_at(place, key)?;
        if self.hold.state(place.shard).is_tagged() {
            self.drop_tags(place, key);
        }
        Some(entry)
    }

    /// As `remove_at`, but the tags of the key stay.
    fn take_at(&mut self, place: KeyPlace, key: &[u8]) -> Option<Entry> {
        let db = self.db;
        let state = self.hold.state_mut(place.shard);
        let entry = state.db_mut(db).table.remove(place.hash, key)?;
        reindex(state, db, place.hash, entry.expire_at_ms(), None);
        if let Some(at) = next_field_expiry(&entry) {
            state.expiry.remove(at, db, place.hash);
        }
        Some(entry)
    }

    /// Changes the entry at `key` in place, or inserts a new one.
    fn store(
        &mut self,
        key: &[u8],
        ttl: Ttl,
        change: impl FnOnce(&mut Entry),
        make: impl FnOnce(Option<UnixMs>) -> Entry,
    ) {
        assert!(self.hold.mode() == LockMode::Exclusive, "a shared hold cannot change anything");
        let place = self.place(key);
        let (db, now) = (self.db, self.now);
        let clock = self.clock(None);
        let wants_new = self.wants(Event::New);
        let state = self.hold.state_mut(place.shard);
        let mut expired = false;
        match state.db_mut(db).table.entry(place.hash, key) {
            table::Entry::Occupied(mut cell) => {
                expired = cell.get().is_expired(now);
                let mut garbage = None;
                let fields = next_field_expiry(&cell.get());
                let (before, after) = cell.with_mut(|entry| {
                    let before = entry.expire_at_ms();
                    if entry.free_effort() > GARBAGE_MIN {
                        let nothing = || Object::List(List::new());
                        garbage = entry
                            .as_object_mut()
                            .map(|object| std::mem::replace(object, nothing()));
                    }
                    // The time first: whether a new string counts as short depends on it.
                    match ttl {
                        Ttl::Keep if !expired => {}
                        Ttl::At(at) => entry.set_expire_at_ms(Some(at)),
                        Ttl::Clear | Ttl::Keep => {
                            if before.is_some() {
                                entry.set_expire_at_ms(None);
                            }
                        }
                    }
                    change(entry);
                    entry.set_access(clock);
                    (before, entry.expire_at_ms())
                });
                if before != after {
                    reindex(state, db, place.hash, before, after);
                }
                if let Some(at) = fields {
                    state.expiry.remove(at, db, place.hash);
                }
                if let Some(object) = garbage {
                    self.effects.garbage.push(Entry::object(key, object, None));
                }
            }
            table::Entry::Vacant(vacant) => {
                let at = if let Ttl::At(at) = ttl { Some(at) } else { None };
                let entry = make(at);
                entry.set_access(clock);
                vacant.insert(entry);
                if at.is_some() {
                    reindex(state, db, place.hash, None, at);
                }
                if wants_new {
                    self.event(key, Event::New);
                }
            }
        }
        if expired {
            self.drop_tags(place, key);
            self.effects.expired += 1;
            self.event(key, Event::Expired);
        }
    }
}

/// The next generator from a command's seed.
fn generator(seed: &Cell<u64>) -> SmallRng {
    seed.set(seed.get().wrapping_add(0x9E37_79B9_7F4A_7C15));
    SmallRng::seed_from_u64(seed.get())
}

/// A random number between 0 and 1, from the command's own seed.
fn fraction(seed: &Cell<u64>) -> f64 {
    use rand::RngExt as _;
    generator(seed).random()
}

/// Keeps the expiry index in step with one entry's expiry.
fn reindex(
    state: &mut ShardState,
    db: usize,
    hash: u64,
    before: Option<UnixMs>,
    after: Option<UnixMs>,
) {
    if let Some(at) = before {
        state.expiry.remove(at, db, hash);
        state.db_mut(db).volatile_count -= 1;
    }
    if let Some(at) = after {
        state.expiry.add(at, db, hash);
        state.db_mut(db).volatile_count += 1;
    }
}

/// When the first of the hash's fields has expired, if one has.
#[inline]
fn due_field(hash: &Hash, now: UnixMs) -> Option<UnixMs> {
    hash.next_expiry().filter(|at| now > *at)
}

/// The next time at which a field of the hash in `entry` expires.
fn next_field_expiry(entry: &Entry) -> Option<UnixMs> {
    match entry.as_object() {
        Some(Object::Hash(hash)) => hash.next_expiry(),
        _ => None,
    }
}

/// What an item of the expiry index means when its time has come.
enum Due {
    /// This key expires.
    Key(Vec<u8>),
    /// Fields of the hash at this key do.
    Fields(Vec<u8>),
    /// Nothing: it is out of date.
    Nothing,
}

/// What the item with these hash bits and this deadline means.
fn due_at(table: &table::Table<Entry>, hash: u64, at: UnixMs, now: UnixMs) -> Due {
    let mut due = Due::Nothing;
    // A hash is a scan cursor: the one that visits its bucket.
    table.scan(hash, |entry| {
        if entry.expire_at_ms() == Some(at) {
            due = Due::Key(entry.key().to_vec());
        } else if matches!(due, Due::Nothing)
            && next_field_expiry(&entry).is_some_and(|at| now >= at)
        {
            due = Due::Fields(entry.key().to_vec());
        }
    });
    due
}

/// Touches the watchers of keys of `db` that exist.
fn touch_existing(state: &ShardState, db: usize, now: UnixMs) {
    if !state.is_observed() {
        return;
    }
    state.watches().for_each(|of, key, tokens| {
        let found = || state.db(db).table.find(place_of(key).hash, key);
        if of == db && found().is_some_and(|entry| !entry.is_expired(now)) {
            for token in tokens {
                token.touch();
            }
        }
    });
}

/// An entry, lent for as long as the view is.
#[derive(Clone, Copy)]
pub struct EntryRef<'a>(table::Ref<'a, Entry>);

impl<'a> EntryRef<'a> {
    fn new(found: table::Ref<'a, Entry>) -> Self {
        Self(found)
    }

    /// The value.
    #[inline]
    pub fn value(self) -> Value<'a> {
        // SAFETY: what the value points to belongs to the entry's allocation, which the table
        // lends unchanged for `'a`; only the handle `self.0` is as short-lived as this call.
        unsafe { std::mem::transmute::<Value<'_>, Value<'a>>(self.0.value()) }
    }

    /// The key.
    #[inline]
    pub fn key(self) -> &'a [u8] {
        // SAFETY: as for `value`.
        unsafe { std::mem::transmute::<&[u8], &'a [u8]>(self.0.key()) }
    }
}

/// The object of the entry at `raw`, to change it in place; `None` if it is a string.
///
/// # Safety
///
/// `raw` is an entry in a table. The caller must hold its shard exclusively and lend nothing else
/// of this entry for `'a`.
#[inline]
unsafe fn object_at<'a>(raw: NonNull<u8>) -> Option<&'a mut Object> {
    // SAFETY: `from_raw` makes a second owner, which `ManuallyDrop` keeps from dropping.
    let entry = unsafe { <Entry as table::Item>::from_raw(raw) };
    let mut entry = std::mem::ManuallyDrop::new(entry);
    let object = entry.as_object_mut()?;
    // SAFETY: the object lies in the entry's allocation, not in the handle, and the caller
    // vouches for exclusive access during `'a`.
    Some(unsafe { std::mem::transmute::<&mut Object, &'a mut Object>(object) })
}

impl std::ops::Deref for EntryRef<'_> {
    type Target = Entry;

    #[inline]
    fn deref(&self) -> &Entry {
        &self.0
    }
}
