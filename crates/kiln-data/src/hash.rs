//! The hash: fields with values, each of which may have an expiry of its own.
//!
//! ```text
//! Listpack    ─► | field | value | field | value | ... |
//! ListpackEx  ─► | field | value | expiry | ... |    soonest first, then those without (0)
//! Table       ─► table of single allocations:
//!                | E lllllll | more length | expiry i64 if E | field | value |
//! ```
//!
//! `l` is the field's length up to 125; 126 and 127 say that it follows in two or four bytes. With
//! the length of the whole in front, a short field costs two bytes beside its text. The expiries of
//! a table's fields are also in a tree, soonest first, so that active expiry visits only what is
//! due.
//!
//! Which encoding a hash has is visible to clients, so the rules are Redis's: a hash becomes
//! `listpackex` when a field may get an expiry and stays so; it becomes a table when it has too
//! many fields or a text too long, or when one command brings more fields than a listpack may have,
//! repetitions included ([`Hash::make_room`]). Nothing ever converts back. The order in a
//! `listpackex` is Redis's too, since dumps carry it: among equals the latest comes first.
//!
//! A field whose expiry lies before `now` is absent for every operation that takes `now`, but
//! [`Hash::len`] counts it until [`Hash::remove_expired`] or a write reaps it, as HLEN does in
//! Redis.
//!
//! Source: Redis 8.2.3's `t_hash.c` for the rules, checked against the server.

use std::collections::{BTreeSet, HashSet};

use kiln_base::clock::UnixMs;
use kiln_base::hash::key_hash;
use kiln_base::number::INTEGER_BYTES_MAX;
use rand::{Rng, RngExt};

use crate::listpack::{self, Listpack, Needle, Pos, Value};
use crate::sample;
use crate::table::{self, Entry, Ref, Table};
use crate::thin_buf::{Keyed, ThinItem};

/// How large the small encodings of a hash may be: `hash-max-listpack-entries` and
/// `hash-max-listpack-value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashLimits {
    /// Fields of a listpack.
    pub max_listpack_entries: usize,
    /// Bytes of a field or value in a listpack.
    pub max_listpack_value: usize,
}

impl Default for HashLimits {
    fn default() -> HashLimits {
        HashLimits { max_listpack_entries: 512, max_listpack_value: 64 }
    }
}

/// A hash. See the module's header.
#[derive(Debug, Clone)]
pub struct Hash {
    repr: Repr,
}

#[derive(Clone)]
enum Repr {
    Listpack(Listpack),
    ListpackEx(Listpack),
    Table(Box<FieldTable>),
}

/// A field of a hash, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The field's name.
    pub name: Value<'a>,
    /// Its value.
    pub value: Value<'a>,
    /// When it expires, if it does.
    pub expire_at: Option<UnixMs>,
}

/// What becomes of a field's expiry when its value is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldExpiry {
    /// It is dropped: HSET.
    Clear,
    /// It stays: HINCRBY, HSETEX with KEEPTTL.
    Keep,
}

/// What [`Hash::set`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The field is new, or had expired.
    Created,
    /// The field has another value.
    Updated,
}

/// Why a listpack from elsewhere is no hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HashError {
    /// The entries are no whole pairs, or triples with an expiry.
    Incomplete,
    /// An expiry is no integer, negative, or out of order.
    BadExpiry,
    /// A field is there twice.
    DuplicateField,
}

impl std::fmt::Display for HashError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HashError::Incomplete => "the hash ends within a field",
            HashError::BadExpiry => "the hash has a malformed field expiry",
            HashError::DuplicateField => "the hash has a field twice",
        })
    }
}

impl std::error::Error for HashError {}

/// Entries of a field in a listpack without and with expiries.
const PAIR: usize = 2;
const TRIPLE: usize = 3;

/// What a `listpackex` stores for a field without an expiry.
const NO_EXPIRY: UnixMs = 0;

/// A tree node's share for an expiry, for MEMORY USAGE: time, pointer, length, and the name's
/// block.
const EXPIRY_BYTES: usize = 48;

/// Random draws that may hit expired fields before a draw walks over the fields instead.
const DRAWS_MAX: usize = 32;

impl Default for Hash {
    fn default() -> Hash {
        Hash::new()
    }
}

impl Hash {
    /// Starts loading what a first look at the value reads.
    #[inline]
    pub fn prefetch(&self) {
        match &self.repr {
            Repr::Listpack(pack) | Repr::ListpackEx(pack) => pack.prefetch(),
            Repr::Table(fields) => kiln_base::prefetch::read(&raw const **fields),
        }
    }

    /// An empty hash.
    pub fn new() -> Hash {
        Hash { repr: Repr::Listpack(Listpack::new()) }
    }

    /// The hash of a listpack of pairs from elsewhere, converted if it passes the limits.
    pub fn from_listpack(pack: Listpack, limits: &HashLimits) -> Result<Hash, HashError> {
        if !pack.len().is_multiple_of(PAIR) {
            return Err(HashError::Incomplete);
        }
        Hash { repr: Repr::Listpack(pack) }.checked(limits)
    }

    /// The hash of a listpack of triples from elsewhere, converted if it passes the limits.
    pub fn from_listpack_ex(pack: Listpack, limits: &HashLimits) -> Result<Hash, HashError> {
        if !pack.len().is_multiple_of(TRIPLE) {
            return Err(HashError::Incomplete);
        }
        let mut latest = Some(NO_EXPIRY);
        for (_, value) in pack.iter().skip(2).step_by(TRIPLE) {
            let Value::Int(expire_at @ 0..) = value else { return Err(HashError::BadExpiry) };
            latest = match latest {
                Some(latest) if latest <= expire_at && expire_at != NO_EXPIRY => Some(expire_at),
                _ if expire_at == NO_EXPIRY => None,
                _ => return Err(HashError::BadExpiry),
            };
        }
        Hash { repr: Repr::ListpackEx(pack) }.checked(limits)
    }

    fn checked(mut self, limits: &HashLimits) -> Result<Hash, HashError> {
        let mut scratch = [0; INTEGER_BYTES_MAX];
        let names = self.iter_all().map(|field| key_hash(field.name.text(&mut scratch)));
        if sample::has_repeated(names) {
            return Err(HashError::DuplicateField);
        }
        let too_long = |field: Field<'_>| {
            field.name.text_len().max(field.value.text_len()) > limits.max_listpack_value
        };
        if self.len() > limits.max_listpack_entries || self.iter_all().any(too_long) {
            self.become_table();
        }
        Ok(self)
    }

    /// The name that OBJECT ENCODING reports.
    pub fn encoding(&self) -> &'static str {
        match &self.repr {
            Repr::Listpack(_) => "listpack",
            Repr::ListpackEx(_) => "listpackex",
            Repr::Table(_) => "hashtable",
        }
    }

    /// The listpack of pairs, if that is the encoding.
    pub fn as_listpack(&self) -> Option<&Listpack> {
        if let Repr::Listpack(pack) = &self.repr { Some(pack) } else { None }
    }

    /// The listpack of triples, if that is the encoding.
    pub fn as_listpack_ex(&self) -> Option<&Listpack> {
        if let Repr::ListpackEx(pack) = &self.repr { Some(pack) } else { None }
    }

    /// Number of fields, those included that have expired but were not reaped yet.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.repr {
            Repr::Listpack(pack) => pack.len() / PAIR,
            Repr::ListpackEx(pack) => pack.len() / TRIPLE,
            Repr::Table(fields) => fields.table.len(),
        }
    }

    /// Whether there is no field, not even an expired one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of fields that have not expired. O(1) if none has.
    pub fn live_len(&self, now: UnixMs) -> usize {
        if self.has_expired(now) { self.iter(now).count() } else { self.len() }
    }

    /// Bytes of all allocations; those of a table's fields are estimated from the first `samples`
    /// of them (0: all are counted).
    pub fn memory_bytes(&self, samples: usize) -> usize {
        match &self.repr {
            Repr::Listpack(pack) | Repr::ListpackEx(pack) => pack.memory_bytes(),
            Repr::Table(fields) => {
                let FieldTable { table, expiries } = &**fields;
                let sizes = table.iter().map(|field| field.memory_bytes());
                let fields = sample::estimate(table.len(), samples, sizes);
                let expiries = expiries.len() * EXPIRY_BYTES;
                size_of::<FieldTable>() + table.memory_bytes() + fields + expiries
            }
        }
    }

    /// Makes the hash a table if `count` fields are about to be set and are alone more than a
    /// listpack may have.
    pub fn make_room(&mut self, count: usize, limits: &HashLimits) {
        if count > limits.max_listpack_entries && !matches!(self.repr, Repr::Table(_)) {
            self.become_table().table.reserve(count);
        }
    }

    /// The field called `name`.
    #[inline]
    pub fn find(&self, name: &[u8], now: UnixMs) -> Option<Field<'_>> {
        let field = match &self.repr {
            Repr::Listpack(pack) => pair_at(pack, pack.find(&Needle::new(name), PAIR - 1)?),
            Repr::ListpackEx(pack) => triple_at(pack, pack.find(&Needle::new(name), TRIPLE - 1)?),
            Repr::Table(fields) => Some(of_table(fields.table.find(key_hash(name), name)?)),
        };
        field.filter(|field| field.is_live(now))
    }

    /// The value of the field called `name`.
    #[inline]
    pub fn get(&self, name: &[u8], now: UnixMs) -> Option<Value<'_>> {
        self.find(name, now).map(|field| field.value)
    }

    /// Whether there is a field called `name`.
    pub fn contains(&self, name: &[u8], now: UnixMs) -> bool {
        self.find(name, now).is_some()
    }

    /// Sets the value of the field called `name`. An expired field counts as absent.
    pub fn set(
        &mut self,
        name: &[u8],
        value: &[u8],
        old_expiry: OldExpiry,
        now: UnixMs,
        limits: &HashLimits,
    ) -> Written {
        if !matches!(self.repr, Repr::Table(_))
            && name.len().max(value.len()) > limits.max_listpack_value
        {
            self.become_table();
        }
        let written = match &mut self.repr {
            Repr::Listpack(pack) => set_pair(pack, name, value),
            Repr::ListpackEx(pack) => set_triple(pack, name, value, old_expiry, now),
            Repr::Table(fields) => fields.set(name, value, old_expiry, now),
        };
        if written == Written::Created
            && !matches!(self.repr, Repr::Table(_))
            && self.len() > limits.max_listpack_entries
        {
            self.become_table();
        }
        written
    }

    /// Removes the field called `name`; false if it was not there or had expired.
    pub fn remove(&mut self, name: &[u8], now: UnixMs) -> bool {
        let Some(Field { expire_at, .. }) = self.find(name, UnixMs::MIN) else { return false };
        match &mut self.repr {
            Repr::Listpack(pack) => remove_from(pack, name, PAIR),
            Repr::ListpackEx(pack) => remove_from(pack, name, TRIPLE),
            Repr::Table(fields) => fields.remove(name, expire_at),
        }
        !has_passed(expire_at, now)
    }

    /// Makes room for expiries: a listpack becomes a `listpackex`. Redis does so before it looks
    /// for the fields that a command names, and stays so if there are none.
    pub fn allow_expiry(&mut self) {
        if let Repr::Listpack(pairs) = &self.repr {
            let mut triples = Listpack::new();
            for (index, (_, value)) in pairs.iter().enumerate() {
                triples.push_back_value(value);
                if index % PAIR == 1 {
                    triples.push_back_value(Value::Int(NO_EXPIRY));
                }
            }
            self.repr = Repr::ListpackEx(triples);
        }
    }

    /// Sets the expiry of the field called `name`, or takes it away, and returns the old one:
    /// `None` if there is no such field, `Some(None)` if it had no expiry. An expiry is after 1970:
    /// a command that names a time in the past removes the field instead.
    pub fn set_expiry(
        &mut self,
        name: &[u8],
        expire_at: Option<UnixMs>,
        now: UnixMs,
    ) -> Option<Option<UnixMs>> {
        debug_assert!(expire_at.is_none_or(|expire_at| expire_at > NO_EXPIRY));
        let old = self.find(name, now)?.expire_at;
        if old == expire_at {
            return Some(old);
        }
        self.allow_expiry();
        match &mut self.repr {
            Repr::Listpack(_) => unreachable!("converted two lines up"),
            Repr::ListpackEx(pack) => {
                let found = pack.find(&Needle::new(name), TRIPLE - 1);
                let pos = found.expect("the field was found above");
                let value = pack.value(pack.after(pos)).map(|value| value.to_vec());
                pack.remove_run(pos, TRIPLE);
                insert_triple(pack, name, &value.expect("a field has a value"), expire_at);
            }
            Repr::Table(fields) => fields.set_expiry(name, old, expire_at),
        }
        Some(old)
    }

    /// The soonest expiry of a field.
    pub fn next_expiry(&self) -> Option<UnixMs> {
        match &self.repr {
            Repr::Listpack(_) => None,
            Repr::ListpackEx(pack) => triple_at(pack, pack.first())?.expire_at,
            Repr::Table(fields) => fields.expiries.first().map(|(expire_at, _)| *expire_at),
        }
    }

    /// Removes up to `max` expired fields, soonest first, after handing their names to `each`, and
    /// returns how many.
    pub fn remove_expired(
        &mut self,
        now: UnixMs,
        max: usize,
        mut each: impl FnMut(&[u8]),
    ) -> usize {
        let mut removed = 0;
        match &mut self.repr {
            Repr::Listpack(_) => {}
            Repr::ListpackEx(pack) => {
                let mut scratch = [0; INTEGER_BYTES_MAX];
                let expired = triples(pack, UnixMs::MIN).take(max);
                for field in expired.take_while(|field| !field.is_live(now)) {
                    each(field.name.text(&mut scratch));
                    removed += 1;
                }
                pack.remove_run(pack.first(), removed * TRIPLE);
            }
            Repr::Table(fields) => {
                while removed < max
                    && let Some((expire_at, _)) = fields.expiries.first()
                    && has_passed(Some(*expire_at), now)
                    && let Some((_, name)) = fields.expiries.pop_first()
                {
                    each(&name);
                    fields.table.remove(key_hash(&name), &name);
                    removed += 1;
                }
            }
        }
        removed
    }

    /// All fields that have not expired: in a listpack oldest first, in a `listpackex` soonest
    /// expiry first, in a table in no order.
    pub fn iter(&self, now: UnixMs) -> Iter<'_> {
        let fields = match &self.repr {
            Repr::Listpack(pack) => IterRepr::Pairs(pack.iter()),
            Repr::ListpackEx(pack) => IterRepr::Triples(pack.iter()),
            Repr::Table(fields) => IterRepr::Table(fields.table.iter()),
        };
        Iter { fields, now }
    }

    /// All fields, expired ones too.
    pub fn iter_all(&self) -> Iter<'_> {
        self.iter(UnixMs::MIN)
    }

    /// One step of a scan, as [`Table::scan`]; a small hash is returned whole in one step.
    pub fn scan(&self, cursor: u64, now: UnixMs, mut each: impl FnMut(Field<'_>)) -> u64 {
        if let Repr::Table(fields) = &self.repr {
            return fields.table.scan(cursor, |item| {
                Some(of_table(item))
                    .filter(|field| field.is_live(now))
                    .into_iter()
                    .for_each(&mut each);
            });
        }
        self.iter(now).for_each(each);
        0
    }

    /// A field drawn evenly from those that have not expired.
    pub fn random(&self, rng: &mut impl Rng, now: UnixMs) -> Option<Field<'_>> {
        if let Repr::Table(fields) = &self.repr {
            for _ in 0..DRAWS_MAX {
                let field = of_table(fields.table.random(rng)?);
                if field.is_live(now) {
                    return Some(field);
                }
            }
        }
        let live = self.live_len(now);
        if live == 0 { None } else { self.iter(now).nth(rng.random_range(0..live)) }
    }

    /// Calls `each` with `count` fields drawn independently from those that have not expired; with
    /// none if there is none.
    pub fn sample(
        &self,
        rng: &mut impl Rng,
        now: UnixMs,
        count: usize,
        mut each: impl FnMut(Field<'_>),
    ) {
        for _ in 0..count {
            let Some(field) = self.random(rng, now) else { return };
            each(field);
        }
    }

    /// Calls `each` with `count` different fields that have not expired, or with all if there are
    /// fewer.
    pub fn sample_distinct(
        &self,
        rng: &mut impl Rng,
        now: UnixMs,
        count: usize,
        mut each: impl FnMut(Field<'_>),
    ) {
        let live = self.live_len(now);
        // Drawing and dropping repetitions and the expired is cheap as long as they are rare.
        if let Repr::Table(fields) = &self.repr
            && live > fields.table.len() / 2
            && count < live / sample::SPARSE
        {
            let mut drawn = HashSet::with_capacity(count);
            while drawn.len() < count {
                let Some(item) = fields.table.random(rng) else { return };
                let field = of_table(item);
                if field.is_live(now) && drawn.insert(item.as_raw()) {
                    each(field);
                }
            }
            return;
        }
        sample::select(rng, self.iter(now), live, count, each);
    }

    fn has_expired(&self, now: UnixMs) -> bool {
        has_passed(self.next_expiry(), now)
    }

    fn become_table(&mut self) -> &mut FieldTable {
        if !matches!(self.repr, Repr::Table(_)) {
            let mut fields = FieldTable::default();
            fields.table.reserve(self.len() + 1);
            let (mut name, mut value) = ([0; INTEGER_BYTES_MAX], [0; INTEGER_BYTES_MAX]);
            for field in self.iter_all() {
                let (name, value) = (field.name.text(&mut name), field.value.text(&mut value));
                fields.insert(name, value, field.expire_at);
            }
            self.repr = Repr::Table(Box::new(fields));
        }
        match &mut self.repr {
            Repr::Table(fields) => fields,
            Repr::Listpack(_) | Repr::ListpackEx(_) => unreachable!("converted above"),
        }
    }
}

impl std::fmt::Debug for Repr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Repr::Listpack(pack) | Repr::ListpackEx(pack) => pack.fmt(f),
            Repr::Table(fields) => {
                f.debug_list().entries(fields.table.iter().map(of_table)).finish()
            }
        }
    }
}

impl Field<'_> {
    #[inline]
    fn is_live(&self, now: UnixMs) -> bool {
        !has_passed(self.expire_at, now)
    }
}

/// Whether an expiry lies before `now`. At the very millisecond a field is still there, as in
/// Redis.
#[inline]
fn has_passed(expire_at: Option<UnixMs>, now: UnixMs) -> bool {
    expire_at.is_some_and(|expire_at| expire_at < now)
}

// ---- Listpacks of pairs and triples ----

fn pair_at(pack: &Listpack, pos: Pos) -> Option<Field<'_>> {
    let value = pack.value(pack.after(pos))?;
    Some(Field { name: pack.value(pos)?, value, expire_at: None })
}

fn set_pair(pack: &mut Listpack, name: &[u8], value: &[u8]) -> Written {
    if let Some(pos) = pack.find(&Needle::new(name), PAIR - 1) {
        pack.replace(pack.after(pos), value);
        return Written::Updated;
    }
    pack.push_back_pair(name, value);
    Written::Created
}

fn triple_at(pack: &Listpack, pos: Pos) -> Option<Field<'_>> {
    next_triple(&mut pack.iter_from(pos))
}

fn next_triple<'a>(entries: &mut listpack::Iter<'a>) -> Option<Field<'a>> {
    let (_, name) = entries.next()?;
    let (_, value) = entries.next()?;
    let (_, expiry) = entries.next()?;
    let expire_at = expiry.as_int().filter(|&expire_at| expire_at != NO_EXPIRY);
    Some(Field { name, value, expire_at })
}

fn triples(pack: &Listpack, now: UnixMs) -> Iter<'_> {
    Iter { fields: IterRepr::Triples(pack.iter()), now }
}

/// Inserts a field before the first that expires no sooner.
fn insert_triple(pack: &mut Listpack, name: &[u8], value: &[u8], expire_at: Option<UnixMs>) {
    let mut pos = pack.end();
    if let Some(expire_at) = expire_at {
        pos = pack.first();
        while let Some(field) = triple_at(pack, pos) {
            if field.expire_at.is_none_or(|other| other >= expire_at) {
                break;
            }
            pos = (0..TRIPLE).fold(pos, |pos, _| pack.after(pos));
        }
    }
    let expiry = Value::Int(expire_at.unwrap_or(NO_EXPIRY)).to_vec();
    for text in [&expiry, value, name] {
        pack.insert_before(pos, text);
    }
}

fn set_triple(
    pack: &mut Listpack,
    name: &[u8],
    value: &[u8],
    old_expiry: OldExpiry,
    now: UnixMs,
) -> Written {
    let Some(pos) = pack.find(&Needle::new(name), TRIPLE - 1) else {
        insert_triple(pack, name, value, None);
        return Written::Created;
    };
    let old = triple_at(pack, pos).and_then(|field| field.expire_at);
    let expired = has_passed(old, now);
    if old.is_none() || old_expiry == OldExpiry::Keep && !expired {
        pack.replace(pack.after(pos), value);
    } else {
        pack.remove_run(pos, TRIPLE);
        insert_triple(pack, name, value, None);
    }
    if expired { Written::Created } else { Written::Updated }
}

fn remove_from(pack: &mut Listpack, name: &[u8], entries: usize) {
    if let Some(pos) = pack.find(&Needle::new(name), entries - 1) {
        pack.remove_run(pos, entries);
    }
}

// ---- The table ----

/// The large encoding of a hash. `expiries` has exactly the fields of the table that have one.
#[derive(Default)]
struct FieldTable {
    table: Table<TableField>,
    expiries: BTreeSet<(UnixMs, Box<[u8]>)>,
}

/// A field in a table. The module's header has the layout.
type TableField = ThinItem<NameFirst>;

enum NameFirst {}

const HAS_EXPIRY: u8 = 0x80;
const NAME_LEN_U16: u8 = 126;
const NAME_LEN_U32: u8 = 127;

impl Keyed for NameFirst {
    #[inline]
    fn key(bytes: &[u8]) -> &[u8] {
        parts(bytes).name
    }
}

struct Parts<'a> {
    expire_at: Option<UnixMs>,
    name: &'a [u8],
    value: &'a [u8],
}

#[inline]
fn parts(bytes: &[u8]) -> Parts<'_> {
    const WHOLE: &str = "a field in a table has its head";
    let (&first, mut rest) = bytes.split_first().expect(WHOLE);
    let name_len = match first & !HAS_EXPIRY {
        NAME_LEN_U16 => {
            let len;
            (len, rest) = rest.split_first_chunk().expect(WHOLE);
            usize::from(u16::from_le_bytes(*len))
        }
        NAME_LEN_U32 => {
            let len;
            (len, rest) = rest.split_first_chunk().expect(WHOLE);
            u32::from_le_bytes(*len) as usize
        }
        len => usize::from(len),
    };
    let mut expire_at = None;
    if first & HAS_EXPIRY != 0 {
        let expiry;
        (expiry, rest) = rest.split_first_chunk().expect(WHOLE);
        expire_at = Some(UnixMs::from_le_bytes(*expiry));
    }
    let (name, value) = rest.split_at(name_len);
    Parts { expire_at, name, value }
}

fn new_field(name: &[u8], value: &[u8], expire_at: Option<UnixMs>) -> TableField {
    let has_expiry = if expire_at.is_some() { HAS_EXPIRY } else { 0 };
    let expiry = expire_at.map(UnixMs::to_le_bytes);
    let expiry = expiry.as_ref().map_or(&[][..], |expiry| &expiry[..]);
    match name.len() {
        len @ 0..126 => TableField::new(&[&[has_expiry | len as u8], expiry, name, value]),
        len @ 126..=0xFFFF => {
            let len = (len as u16).to_le_bytes();
            TableField::new(&[&[has_expiry | NAME_LEN_U16], &len, expiry, name, value])
        }
        len => {
            let len = (len as u32).to_le_bytes();
            TableField::new(&[&[has_expiry | NAME_LEN_U32], &len, expiry, name, value])
        }
    }
}

#[inline]
fn of_table(item: Ref<'_, TableField>) -> Field<'_> {
    let Parts { expire_at, name, value } = parts(TableField::bytes_of(item));
    Field { name: Value::Bytes(name), value: Value::Bytes(value), expire_at }
}

impl FieldTable {
    /// Inserts a field that is known to be absent.
    fn insert(&mut self, name: &[u8], value: &[u8], expire_at: Option<UnixMs>) {
        self.table.insert_unique(key_hash(name), new_field(name, value, expire_at));
        self.expiry_changed(name, None, expire_at);
    }

    fn set(&mut self, name: &[u8], value: &[u8], old_expiry: OldExpiry, now: UnixMs) -> Written {
        let mut cell = match self.table.entry(key_hash(name), name) {
            Entry::Occupied(cell) => cell,
            Entry::Vacant(vacant) => {
                vacant.insert(new_field(name, value, None));
                return Written::Created;
            }
        };
        let (old, old_len) = {
            let field = of_table(cell.get());
            (field.expire_at, field.value.text_len())
        };
        let expired = has_passed(old, now);
        let new = old.filter(|_| old_expiry == OldExpiry::Keep && !expired);
        if old == new && old_len == value.len() {
            // Counters and flags: the allocation stays.
            cell.with_mut(|item| {
                let bytes = item.bytes_mut();
                let value_at = bytes.len() - value.len();
                bytes[value_at..].copy_from_slice(value);
            });
        } else {
            cell.replace(new_field(name, value, new));
        }
        self.expiry_changed(name, old, new);
        if expired { Written::Created } else { Written::Updated }
    }

    fn remove(&mut self, name: &[u8], expire_at: Option<UnixMs>) {
        self.table.remove(key_hash(name), name);
        self.expiry_changed(name, expire_at, None);
    }

    fn set_expiry(&mut self, name: &[u8], old: Option<UnixMs>, new: Option<UnixMs>) {
        if let Some(mut cell) = self.table.find_mut(key_hash(name), name) {
            cell.with_mut(|item| {
                let changed = new_field(name, parts(item.bytes()).value, new);
                *item = changed;
            });
            self.expiry_changed(name, old, new);
        }
    }

    fn expiry_changed(&mut self, name: &[u8], old: Option<UnixMs>, new: Option<UnixMs>) {
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.expiries.remove(&(old, name.into()));
        }
        if let Some(new) = new {
            self.expiries.insert((new, name.into()));
        }
    }
}

impl Clone for FieldTable {
    fn clone(&self) -> FieldTable {
        let mut table = Table::new();
        table.reserve(self.table.len());
        for item in &self.table {
            table.insert_unique(key_hash(item.key()), TableField::new(&[item.bytes()]));
        }
        FieldTable { table, expiries: self.expiries.clone() }
    }
}

/// Fields of a hash that have not expired; made by [`Hash::iter`].
pub struct Iter<'a> {
    fields: IterRepr<'a>,
    now: UnixMs,
}

enum IterRepr<'a> {
    Pairs(listpack::Iter<'a>),
    Triples(listpack::Iter<'a>),
    Table(table::Iter<'a, TableField>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        loop {
            let field = match &mut self.fields {
                IterRepr::Pairs(entries) => {
                    let (_, name) = entries.next()?;
                    let (_, value) = entries.next()?;
                    return Some(Field { name, value, expire_at: None });
                }
                IterRepr::Triples(entries) => next_triple(entries)?,
                IterRepr::Table(items) => of_table(items.next()?),
            };
            if field.is_live(self.now) {
                return Some(field);
            }
        }
    }
}

#[cfg(test)]
mod tests;
