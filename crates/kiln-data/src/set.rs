//! The set of strings: an intset or a listpack while it is small, else a table of members.
//!
//! Which encoding a set has is visible to clients, so the rules are Redis's:
//! - A new set is an intset if its first member is an integer, else a listpack; if more members
//!   are announced than either may have, it is a table at once ([`Set::for_members`],
//!   [`Set::make_room`]: Redis counts the arguments of SADD, repetitions included).
//! - An intset that gets another string becomes a listpack if that holds all members, else a table;
//!   an intset that gets too long becomes a table.
//! - A listpack that gets too many members, or one too long, becomes a table.
//! - Removal never converts. The results of SINTERSTORE are made intsets again
//!   ([`Set::prefer_intset`]).
//!
//! A member in the table is a single allocation of its length (one byte up to 253) and its bytes.
//!
//! Source: Redis 8.2.3's `t_set.c` for the rules, checked against the server.

use std::collections::HashSet;

use kiln_base::hash::key_hash;
use kiln_base::number::{INTEGER_BYTES_MAX, parse_i64};
use rand::{Rng, RngExt};

use crate::intset::Intset;
use crate::listpack::{self, Listpack, Needle, Value};
use crate::sample;
use crate::table::{self, Entry, Ref, Table};
use crate::thin_buf::{Keyed, ThinItem};

/// How large the small encodings of a set may be: `set-max-intset-entries`,
/// `set-max-listpack-entries` and `set-max-listpack-value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetLimits {
    /// Members of an intset.
    pub max_intset_entries: usize,
    /// Members of a listpack.
    pub max_listpack_entries: usize,
    /// Bytes of a member in a listpack.
    pub max_listpack_value: usize,
}

impl Default for SetLimits {
    fn default() -> SetLimits {
        SetLimits { max_intset_entries: 512, max_listpack_entries: 128, max_listpack_value: 64 }
    }
}

/// A set of strings. See the module's header.
#[derive(Debug, Clone)]
pub struct Set {
    repr: Repr,
}

enum Repr {
    Intset(Intset),
    Listpack(Listpack),
    Table(Box<Table<Member>>),
}

/// A member in a table.
type Member = ThinItem<WholeKey>;

enum WholeKey {}

impl Keyed for WholeKey {
    #[inline]
    fn key(bytes: &[u8]) -> &[u8] {
        bytes
    }
}

/// Why a listpack from elsewhere is no set: it has a member twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateMember;

impl std::fmt::Display for DuplicateMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the set has a member twice")
    }
}

impl std::error::Error for DuplicateMember {}

impl Default for Set {
    fn default() -> Set {
        Set::new()
    }
}

impl Set {
    /// Starts loading what a first look at the value reads.
    #[inline]
    pub fn prefetch(&self) {
        match &self.repr {
            Repr::Intset(ints) => ints.prefetch(),
            Repr::Listpack(pack) => pack.prefetch(),
            Repr::Table(table) => kiln_base::prefetch::read(&raw const **table),
        }
    }

    /// An empty set, to begin with an intset.
    pub fn new() -> Set {
        Set { repr: Repr::Intset(Intset::new()) }
    }

    /// An empty set in the encoding that Redis chooses for `count` members, the first of which is
    /// `first`.
    pub fn for_members(first: &[u8], count: usize, limits: &SetLimits) -> Set {
        let repr = if count <= limits.max_intset_entries && parse_i64(first).is_some() {
            Repr::Intset(Intset::new())
        } else if count <= limits.max_listpack_entries {
            Repr::Listpack(Listpack::new())
        } else {
            Repr::Table(Box::default())
        };
        Set { repr }
    }

    /// The set of an intset from elsewhere.
    pub fn from_intset(ints: Intset, limits: &SetLimits) -> Set {
        let mut set = Set { repr: Repr::Intset(ints) };
        set.keep_intset_short(limits);
        set
    }

    /// The set of a listpack from elsewhere, converted if it passes the limits.
    pub fn from_listpack(pack: Listpack, limits: &SetLimits) -> Result<Set, DuplicateMember> {
        let mut scratch = [0; INTEGER_BYTES_MAX];
        let members = pack.iter().map(|(_, value)| key_hash(value.text(&mut scratch)));
        if sample::has_repeated(members) {
            return Err(DuplicateMember);
        }
        let too_long = |value: Value<'_>| value.text_len() > limits.max_listpack_value;
        let convert = pack.len() > limits.max_listpack_entries
            || pack.iter().any(|(_, value)| too_long(value));
        let mut set = Set { repr: Repr::Listpack(pack) };
        if convert {
            set.become_table();
        }
        Ok(set)
    }

    /// The name that OBJECT ENCODING reports.
    pub fn encoding(&self) -> &'static str {
        match &self.repr {
            Repr::Intset(_) => "intset",
            Repr::Listpack(_) => "listpack",
            Repr::Table(_) => "hashtable",
        }
    }

    /// The intset, if that is the encoding.
    pub fn as_intset(&self) -> Option<&Intset> {
        if let Repr::Intset(ints) = &self.repr { Some(ints) } else { None }
    }

    /// The listpack, if that is the encoding.
    pub fn as_listpack(&self) -> Option<&Listpack> {
        if let Repr::Listpack(pack) = &self.repr { Some(pack) } else { None }
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.repr {
            Repr::Intset(ints) => ints.len(),
            Repr::Listpack(pack) => pack.len(),
            Repr::Table(table) => table.len(),
        }
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all allocations; those of a table's members are estimated from the first `samples`
    /// of them (0: all are counted).
    pub fn memory_bytes(&self, samples: usize) -> usize {
        match &self.repr {
            Repr::Intset(ints) => ints.memory_bytes(),
            Repr::Listpack(pack) => pack.memory_bytes(),
            Repr::Table(table) => {
                let sizes = table.iter().map(|member| member.memory_bytes());
                let members = sample::estimate(table.len(), samples, sizes);
                size_of::<Table<Member>>() + table.memory_bytes() + members
            }
        }
    }

    /// Makes the set a table if `count` members are about to be added and are alone more than its
    /// encoding may have.
    pub fn make_room(&mut self, count: usize, limits: &SetLimits) {
        let too_many = match &self.repr {
            Repr::Intset(_) => count > limits.max_intset_entries,
            Repr::Listpack(_) => count > limits.max_listpack_entries,
            Repr::Table(_) => false,
        };
        if too_many {
            self.become_table().reserve(count);
        }
    }

    /// Whether `member` is in the set.
    #[inline]
    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.repr {
            Repr::Intset(ints) => parse_i64(member).is_some_and(|member| ints.contains(member)),
            Repr::Listpack(pack) => pack.find(&Needle::new(member), 0).is_some(),
            Repr::Table(table) => table.find(key_hash(member), member).is_some(),
        }
    }

    /// Whether a member of another set is in this one. Two intsets need no text for that.
    #[inline]
    pub fn contains_value(&self, member: Value<'_>) -> bool {
        if let (Repr::Intset(ints), Value::Int(member)) = (&self.repr, member) {
            return ints.contains(member);
        }
        self.contains(member.text(&mut [0; INTEGER_BYTES_MAX]))
    }

    /// Adds `member`; false if it was there.
    pub fn add(&mut self, member: &[u8], limits: &SetLimits) -> bool {
        match &mut self.repr {
            Repr::Table(table) => insert(table, member),
            Repr::Listpack(pack) => {
                if pack.find(&Needle::new(member), 0).is_some() {
                    return false;
                }
                if pack.len() < limits.max_listpack_entries
                    && member.len() <= limits.max_listpack_value
                {
                    pack.push_back(member);
                    return true;
                }
                insert(self.become_table(), member)
            }
            Repr::Intset(ints) => {
                if let Some(number) = parse_i64(member) {
                    let added = ints.add(number);
                    self.keep_intset_short(limits);
                    return added;
                }
                if fits_listpack(ints, member, limits) {
                    let mut pack = Listpack::new();
                    ints.iter().for_each(|number| pack.push_back_value(Value::Int(number)));
                    pack.push_back(member);
                    self.repr = Repr::Listpack(pack);
                    return true;
                }
                insert(self.become_table(), member)
            }
        }
    }

    /// Removes `member`; false if it was not there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.repr {
            Repr::Intset(ints) => parse_i64(member).is_some_and(|member| ints.remove(member)),
            Repr::Listpack(pack) => {
                let found = pack.find(&Needle::new(member), 0);
                found.map(|pos| pack.remove(pos)).is_some()
            }
            Repr::Table(table) => table.remove(key_hash(member), member).is_some(),
        }
    }

    /// All members: ascending in an intset, oldest first in a listpack, in no order in a table.
    pub fn iter(&self) -> Iter<'_> {
        let repr = match &self.repr {
            Repr::Intset(ints) => IterRepr::Intset { ints, next: 0 },
            Repr::Listpack(pack) => IterRepr::Listpack(pack.iter()),
            Repr::Table(table) => IterRepr::Table(table.iter()),
        };
        Iter { repr }
    }

    /// One step of a scan, as [`Table::scan`]; a small set is returned whole in one step.
    pub fn scan(&self, cursor: u64, mut each: impl FnMut(Value<'_>)) -> u64 {
        if let Repr::Table(table) = &self.repr {
            return table.scan(cursor, |member| each(Value::Bytes(member.key())));
        }
        self.iter().for_each(each);
        0
    }

    /// A member drawn evenly.
    pub fn random(&self, rng: &mut impl Rng) -> Option<Value<'_>> {
        match &self.repr {
            Repr::Intset(ints) => ints.random(rng).map(Value::Int),
            Repr::Listpack(pack) if pack.is_empty() => None,
            Repr::Listpack(pack) => pack.get(rng.random_range(0..pack.len()) as i64),
            Repr::Table(table) => table.random(rng).map(|member| Value::Bytes(member.key())),
        }
    }

    /// Calls `each` with `count` members drawn independently, so that one may come twice; with none
    /// if the set is empty.
    pub fn sample(&self, rng: &mut impl Rng, count: usize, mut each: impl FnMut(Value<'_>)) {
        if let Repr::Table(table) = &self.repr {
            return table.sample(rng, count, |member| each(Value::Bytes(member.key())));
        }
        for _ in 0..count {
            self.random(rng).into_iter().for_each(&mut each);
        }
    }

    /// Calls `each` with `count` different members, or with all if there are fewer.
    pub fn sample_distinct(
        &self,
        rng: &mut impl Rng,
        count: usize,
        mut each: impl FnMut(Value<'_>),
    ) {
        // Drawing and dropping repetitions is cheap as long as repetitions are rare.
        if let Repr::Table(table) = &self.repr
            && count < table.len() / sample::SPARSE
        {
            let mut drawn = HashSet::with_capacity(count);
            while drawn.len() < count {
                let Some(member) = table.random(rng) else { return };
                if drawn.insert(member.as_raw()) {
                    each(Value::Bytes(member.key()));
                }
            }
            return;
        }
        sample::select(rng, self.iter(), self.len(), count, each);
    }

    /// Removes a member drawn evenly after handing it to `take`, whose result is returned.
    pub fn pop_random<R>(
        &mut self,
        rng: &mut impl Rng,
        take: impl FnOnce(Value<'_>) -> R,
    ) -> Option<R> {
        if self.is_empty() {
            return None;
        }
        match &mut self.repr {
            Repr::Intset(ints) => {
                let index = rng.random_range(0..ints.len());
                ints.take(index).map(|member| take(Value::Int(member)))
            }
            Repr::Listpack(pack) => {
                let pos = pack.pos_at(rng.random_range(0..pack.len()) as i64)?;
                let taken = take(pack.value(pos)?);
                pack.remove(pos);
                Some(taken)
            }
            Repr::Table(table) => {
                let member = table.random_mut(rng)?.remove();
                Some(take(Value::Bytes(member.bytes())))
            }
        }
    }

    /// Makes a listpack of integers an intset, as Redis does with the result of SINTERSTORE.
    pub fn prefer_intset(&mut self, limits: &SetLimits) {
        let Repr::Listpack(pack) = &self.repr else { return };
        if pack.len() > limits.max_intset_entries {
            return;
        }
        let mut ints = Intset::new();
        for (_, value) in pack {
            let Some(member) = value.as_int() else { return };
            ints.add(member);
        }
        self.repr = Repr::Intset(ints);
    }

    fn keep_intset_short(&mut self, limits: &SetLimits) {
        if self.as_intset().is_some_and(|ints| ints.len() > limits.max_intset_entries) {
            self.become_table();
        }
    }

    fn become_table(&mut self) -> &mut Table<Member> {
        if !matches!(self.repr, Repr::Table(_)) {
            let mut table = Table::new();
            let mut scratch = [0; INTEGER_BYTES_MAX];
            table.reserve(self.len() + 1);
            for value in self.iter() {
                insert(&mut table, value.text(&mut scratch));
            }
            self.repr = Repr::Table(Box::new(table));
        }
        match &mut self.repr {
            Repr::Table(table) => table,
            Repr::Intset(_) | Repr::Listpack(_) => unreachable!("converted above"),
        }
    }
}

impl std::fmt::Debug for Repr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Repr::Intset(ints) => ints.fmt(f),
            Repr::Listpack(pack) => pack.fmt(f),
            Repr::Table(table) => f.debug_set().entries(table.iter().map(Ref::key)).finish(),
        }
    }
}

impl Clone for Repr {
    fn clone(&self) -> Repr {
        match self {
            Repr::Intset(ints) => Repr::Intset(ints.clone()),
            Repr::Listpack(pack) => Repr::Listpack(pack.clone()),
            Repr::Table(table) => {
                let mut copy = Table::new();
                copy.reserve(table.len());
                for member in table.iter() {
                    insert(&mut copy, member.key());
                }
                Repr::Table(Box::new(copy))
            }
        }
    }
}

impl<'a> IntoIterator for &'a Set {
    type Item = Value<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Members of a set; made by [`Set::iter`].
pub struct Iter<'a> {
    repr: IterRepr<'a>,
}

enum IterRepr<'a> {
    Intset { ints: &'a Intset, next: usize },
    Listpack(listpack::Iter<'a>),
    Table(table::Iter<'a, Member>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        match &mut self.repr {
            IterRepr::Intset { ints, next } => {
                let member = ints.get(*next)?;
                *next += 1;
                Some(Value::Int(member))
            }
            IterRepr::Listpack(entries) => entries.next().map(|(_, value)| value),
            IterRepr::Table(members) => members.next().map(|member| Value::Bytes(member.key())),
        }
    }
}

/// Whether a listpack may hold the members of `ints` and `member`.
fn fits_listpack(ints: &Intset, member: &[u8], limits: &SetLimits) -> bool {
    let ends = [ints.get(0), ints.len().checked_sub(1).and_then(|last| ints.get(last))];
    let longest = ends.into_iter().flatten().map(|number| Value::Int(number).text_len()).max();
    ints.len() < limits.max_listpack_entries
        && member.len().max(longest.unwrap_or(0)) <= limits.max_listpack_value
}

/// Adds `member` to a table; false if it was there.
fn insert(table: &mut Table<Member>, member: &[u8]) -> bool {
    match table.entry(key_hash(member), member) {
        Entry::Occupied(_) => false,
        Entry::Vacant(vacant) => {
            vacant.insert(Member::new(&[member]));
            true
        }
    }
}

#[cfg(test)]
mod tests;
