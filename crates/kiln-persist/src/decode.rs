//! Reading a value as an RDB file holds it.
//!
//! The bytes are not trusted: whatever they are, the result is a sound value or [`BadData`]. What
//! they state is not believed before it is there: no count or size makes this module reserve more
//! memory than the input is long, but for compressed texts, whose expansion is bounded.

use std::borrow::Cow;

use kiln_base::clock::UnixMs;
use kiln_base::number::parse_f64;
use kiln_data::hash::{Hash, OldExpiry, Written};
use kiln_data::intset::Intset;
use kiln_data::list::{End, List};
use kiln_data::listpack::Listpack;
use kiln_data::set::Set;
use kiln_data::zset::{Change, ZSet};
use kiln_keyspace::{Object, Settings};

use crate::{node_kind, prefix, rdb_type};

/// The bytes are not the value that they claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is malformed")]
pub struct BadData;

/// A value that was read.
pub enum Loaded {
    /// A string.
    String(Vec<u8>),
    /// A value of any other type, not empty.
    Object(Object),
}

/// A length before ASCII scores that is no length: not a number, and the infinities.
const SCORE_NAN: u8 = 253;
const SCORE_INFINITE: u8 = 254;
const SCORE_NEGATIVE_INFINITE: u8 = 255;
/// Most bytes that LZF makes of one byte: 264 of a reference of three, and some to spare.
const LZF_EXPANSION_MAX: u64 = 264;

/// Reads the type and the value that `bytes` consist of.
pub(crate) fn value(bytes: &[u8], settings: &Settings) -> Result<Loaded, BadData> {
    let mut reader = Reader { rest: bytes };
    let value = match reader.byte()? {
        rdb_type::STRING => return reader.text().map(|text| Loaded::String(text.into_owned())),
        rdb_type::LIST => Object::List(list(&mut reader, settings)?),
        rdb_type::LIST_QUICKLIST => Object::List(quicklist(&mut reader, settings)?),
        rdb_type::SET => Object::Set(set(&mut reader, settings)?),
        rdb_type::SET_INTSET => {
            let ints = Intset::from_untrusted(&reader.text()?).map_err(|_| BadData)?;
            Object::Set(Set::from_intset(ints, &settings.set))
        }
        rdb_type::SET_LISTPACK => {
            let set = Set::from_listpack(reader.listpack()?, &settings.set);
            Object::Set(set.map_err(|_| BadData)?)
        }
        rdb_type::ZSET_TEXT => Object::SortedSet(zset(&mut reader, settings, Reader::text_score)?),
        rdb_type::ZSET => Object::SortedSet(zset(&mut reader, settings, Reader::score)?),
        rdb_type::ZSET_LISTPACK => {
            let zset = ZSet::from_listpack(reader.listpack()?, &settings.zset);
            Object::SortedSet(zset.ok_or(BadData)?)
        }
        rdb_type::HASH => Object::Hash(hash(&mut reader, settings, None)?),
        rdb_type::HASH_EXPIRING => {
            let first_expiry = reader.time()?;
            Object::Hash(hash(&mut reader, settings, Some(first_expiry))?)
        }
        rdb_type::HASH_LISTPACK => {
            let hash = Hash::from_listpack(reader.listpack()?, &settings.hash);
            Object::Hash(hash.map_err(|_| BadData)?)
        }
        rdb_type::HASH_LISTPACK_EXPIRING => {
            reader.time()?; // The first expiry, which the listpack tells too.
            let hash = Hash::from_listpack_ex(reader.listpack()?, &settings.hash);
            Object::Hash(hash.map_err(|_| BadData)?)
        }
        _ => return Err(BadData),
    };
    if value.is_empty() { Err(BadData) } else { Ok(Loaded::Object(value)) }
}

fn list(reader: &mut Reader<'_>, settings: &Settings) -> Result<List, BadData> {
    let mut list = List::new();
    for _ in 0..reader.length()? {
        list.push(End::Back, &reader.text()?, settings.list);
    }
    Ok(list)
}

fn quicklist(reader: &mut Reader<'_>, settings: &Settings) -> Result<List, BadData> {
    let mut list = List::new();
    for _ in 0..reader.length()? {
        match reader.length()? {
            node_kind::PLAIN => list.append_plain(&reader.text()?),
            node_kind::PACKED => list.append_packed(reader.listpack()?),
            _ => return Err(BadData),
        }
    }
    list.settle(settings.list);
    Ok(list)
}

fn set(reader: &mut Reader<'_>, settings: &Settings) -> Result<Set, BadData> {
    let count = reader.count()?;
    let mut set = Set::new();
    for index in 0..count {
        let member = reader.text()?;
        if index == 0 {
            set = Set::for_members(&member, count, &settings.set);
        }
        if !set.add(&member, &settings.set) {
            return Err(BadData);
        }
    }
    Ok(set)
}

fn zset<'r>(
    reader: &mut Reader<'r>,
    settings: &Settings,
    score: impl Fn(&mut Reader<'r>) -> Result<f64, BadData>,
) -> Result<ZSet, BadData> {
    let count = reader.count()?;
    let mut zset = ZSet::new(count, 0, &settings.zset);
    for _ in 0..count {
        let member = reader.text()?;
        let score = score(reader)?;
        if score.is_nan() || zset.insert(&member, score, &settings.zset) != Change::Added {
            return Err(BadData);
        }
    }
    Ok(zset)
}

/// Reads a hash; with the first expiry of a field, each field has one, or 0, before its name.
fn hash(
    reader: &mut Reader<'_>,
    settings: &Settings,
    first_expiry: Option<UnixMs>,
) -> Result<Hash, BadData> {
    /// No field is expired yet: that is for later.
    const NOW: UnixMs = UnixMs::MIN;
    let count = reader.count()?;
    let mut hash = Hash::new();
    hash.make_room(count, &settings.hash);
    for _ in 0..count {
        let expiry = match first_expiry {
            None => None,
            Some(first) => match reader.length()? {
                0 => None,
                after => Some(first.checked_add_unsigned(after - 1).ok_or(BadData)?),
            },
        };
        let (name, value) = (reader.text()?, reader.text()?);
        let written = hash.set(&name, &value, OldExpiry::Clear, NOW, &settings.hash);
        if written != Written::Created {
            return Err(BadData);
        }
        if let Some(at) = expiry {
            if at <= 0 {
                return Err(BadData);
            }
            hash.set_expiry(&name, Some(at), NOW);
        }
    }
    Ok(hash)
}

/// The part of the bytes that is not read yet.
struct Reader<'r> {
    rest: &'r [u8],
}

/// What stands where a length may.
enum Prefix {
    Length(u64),
    /// The kind of a text without a length.
    Kind(u8),
}

impl<'r> Reader<'r> {
    fn take(&mut self, len: u64) -> Result<&'r [u8], BadData> {
        let len = usize::try_from(len).map_err(|_| BadData)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(BadData)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadData> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(BadData)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, BadData> {
        self.array().map(|[byte]| byte)
    }

    fn prefix(&mut self) -> Result<Prefix, BadData> {
        let first = self.byte()?;
        let low = first & !prefix::KIND;
        Ok(match first {
            prefix::BITS_32 => Prefix::Length(u32::from_be_bytes(self.array()?).into()),
            prefix::BITS_64 => Prefix::Length(u64::from_be_bytes(self.array()?)),
            _ => match first & prefix::KIND {
                0 => Prefix::Length(low.into()),
                prefix::BITS_14 => Prefix::Length(u64::from(low) << 8 | u64::from(self.byte()?)),
                prefix::KIND => Prefix::Kind(low),
                _ => return Err(BadData),
            },
        })
    }

    fn length(&mut self) -> Result<u64, BadData> {
        match self.prefix()? {
            Prefix::Length(len) => Ok(len),
            Prefix::Kind(_) => Err(BadData),
        }
    }

    /// A number of elements, each of which takes a byte at least.
    fn count(&mut self) -> Result<usize, BadData> {
        let count = usize::try_from(self.length()?).map_err(|_| BadData)?;
        if count > self.rest.len() { Err(BadData) } else { Ok(count) }
    }

    fn text(&mut self) -> Result<Cow<'r, [u8]>, BadData> {
        let number = match self.prefix()? {
            Prefix::Length(len) => return self.take(len).map(Cow::Borrowed),
            Prefix::Kind(prefix::LZF) => return self.compressed().map(Cow::Owned),
            Prefix::Kind(prefix::INT_8) => i32::from(i8::from_le_bytes(self.array()?)),
            Prefix::Kind(prefix::INT_16) => i32::from(i16::from_le_bytes(self.array()?)),
            Prefix::Kind(prefix::INT_32) => i32::from_le_bytes(self.array()?),
            Prefix::Kind(_) => return Err(BadData),
        };
        Ok(Cow::Owned(number.to_string().into_bytes()))
    }

    fn compressed(&mut self) -> Result<Vec<u8>, BadData> {
        let (stored_len, len) = (self.length()?, self.length()?);
        let stored = self.take(stored_len)?;
        if len > stored_len.saturating_mul(LZF_EXPANSION_MAX) {
            return Err(BadData);
        }
        let text = lzf::decompress(stored, len as usize).map_err(|_| BadData)?;
        if text.len() as u64 == len { Ok(text) } else { Err(BadData) }
    }

    fn listpack(&mut self) -> Result<Listpack, BadData> {
        Listpack::from_untrusted(&self.text()?).map_err(|_| BadData)
    }

    fn time(&mut self) -> Result<UnixMs, BadData> {
        self.array().map(UnixMs::from_le_bytes)
    }

    fn score(&mut self) -> Result<f64, BadData> {
        self.array().map(f64::from_le_bytes)
    }

    fn text_score(&mut self) -> Result<f64, BadData> {
        match self.byte()? {
            SCORE_NAN => Err(BadData),
            SCORE_INFINITE => Ok(f64::INFINITY),
            SCORE_NEGATIVE_INFINITE => Ok(f64::NEG_INFINITY),
            len => parse_f64(self.take(len.into())?).ok_or(BadData),
        }
    }
}
