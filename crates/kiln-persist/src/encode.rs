//! Writing a value as an RDB file holds it.
//!
//! Values in a small encoding are written as the bytes they are in memory. Texts are not
//! compressed: that costs more than it saves where they are short, and is the reader's gain where
//! they are long.

use kiln_base::clock::UnixMs;
use kiln_base::number::{INTEGER_BYTES_MAX, parse_i64};
use kiln_data::hash::Hash;
use kiln_data::list::{List, NodeBytes};
use kiln_data::set::Set;
use kiln_data::zset::ZSet;
use kiln_keyspace::{Entry, Object, StringRef, Value};

use crate::{node_kind, prefix, rdb_type};

/// Longest text that is tried as an integer: `-2147483648`.
const INT_TEXT_MAX: usize = 11;

/// Appends the type and the value of `entry`, unless it is an engine; says whether it did.
pub(crate) fn value(entry: &Entry, out: &mut Vec<u8>) -> bool {
    match entry.value() {
        Value::String(string) => self::string(string, out),
        Value::Object(Object::List(list)) => self::list(list, out),
        Value::Object(Object::Set(set)) => self::set(set, out),
        Value::Object(Object::Hash(hash)) => self::hash(hash, out),
        Value::Object(Object::SortedSet(zset)) => self::zset(zset, out),
        Value::Object(Object::Engine(_)) => return false,
    }
    true
}

fn string(string: StringRef<'_>, out: &mut Vec<u8>) {
    out.push(rdb_type::STRING);
    text(string.bytes(&mut [0; INTEGER_BYTES_MAX]), out);
}

fn list(list: &List, out: &mut Vec<u8>) {
    out.push(rdb_type::LIST_QUICKLIST);
    let nodes = list.nodes();
    length(nodes.len() as u64, out);
    for node in nodes {
        let (kind, bytes) = match node {
            NodeBytes::Plain(bytes) => (node_kind::PLAIN, bytes),
            NodeBytes::Packed(bytes) => (node_kind::PACKED, bytes),
        };
        length(kind, out);
        text(bytes, out);
    }
}

fn set(set: &Set, out: &mut Vec<u8>) {
    if let Some(ints) = set.as_intset() {
        out.push(rdb_type::SET_INTSET);
        let (head, members) = (ints.head(), ints.member_bytes());
        length((head.len() + members.len()) as u64, out);
        out.extend_from_slice(&head);
        out.extend_from_slice(members);
    } else if let Some(pack) = set.as_listpack() {
        out.push(rdb_type::SET_LISTPACK);
        text(pack.as_bytes(), out);
    } else {
        out.push(rdb_type::SET);
        length(set.len() as u64, out);
        for member in set {
            text(member.text(&mut [0; INTEGER_BYTES_MAX]), out);
        }
    }
}

fn hash(hash: &Hash, out: &mut Vec<u8>) {
    let next_expiry = hash.next_expiry();
    if let Some(pack) = hash.as_listpack() {
        out.push(rdb_type::HASH_LISTPACK);
        text(pack.as_bytes(), out);
    } else if let Some(pack) = hash.as_listpack_ex() {
        out.push(rdb_type::HASH_LISTPACK_EXPIRING);
        time(next_expiry.unwrap_or(0), out);
        text(pack.as_bytes(), out);
    } else {
        out.push(if next_expiry.is_some() { rdb_type::HASH_EXPIRING } else { rdb_type::HASH });
        if let Some(next) = next_expiry {
            time(next, out);
        }
        length(hash.len() as u64, out);
        for field in hash.iter_all() {
            if let Some(next) = next_expiry {
                // Expiries count from the first one; 0 is none.
                length(field.expire_at.map_or(0, |at| (at - next) as u64 + 1), out);
            }
            text(field.name.text(&mut [0; INTEGER_BYTES_MAX]), out);
            text(field.value.text(&mut [0; INTEGER_BYTES_MAX]), out);
        }
    }
}

fn zset(zset: &ZSet, out: &mut Vec<u8>) {
    if let Some(pack) = zset.as_listpack() {
        out.push(rdb_type::ZSET_LISTPACK);
        text(pack.as_bytes(), out);
    } else {
        out.push(rdb_type::ZSET);
        length(zset.len() as u64, out);
        // Last to first, as Redis writes them: its reader inserts at the head without a search.
        for (member, score) in zset.iter().rev() {
            text(&member, out);
            out.extend_from_slice(&score.to_le_bytes());
        }
    }
}

fn time(at: UnixMs, out: &mut Vec<u8>) {
    out.extend_from_slice(&at.to_le_bytes());
}

/// Appends a text: its length and its bytes, or the integer that it stands for.
fn text(bytes: &[u8], out: &mut Vec<u8>) {
    let number = if bytes.len() <= INT_TEXT_MAX { parse_i64(bytes) } else { None };
    if let Some(number) = number.and_then(|number| i8::try_from(number).ok()) {
        out.push(prefix::KIND | prefix::INT_8);
        out.extend_from_slice(&number.to_le_bytes());
    } else if let Some(number) = number.and_then(|number| i16::try_from(number).ok()) {
        out.push(prefix::KIND | prefix::INT_16);
        out.extend_from_slice(&number.to_le_bytes());
    } else if let Some(number) = number.and_then(|number| i32::try_from(number).ok()) {
        out.push(prefix::KIND | prefix::INT_32);
        out.extend_from_slice(&number.to_le_bytes());
    } else {
        length(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    }
}

/// Appends a length.
pub(crate) fn length(len: u64, out: &mut Vec<u8>) {
    match len {
        0..0x40 => out.push(len as u8),
        0x40..0x4000 => {
            out.push(prefix::BITS_14 | (len >> 8) as u8);
            out.push(len as u8);
        }
        0x4000..=0xFFFF_FFFF => {
            out.push(prefix::BITS_32);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
        _ => {
            out.push(prefix::BITS_64);
            out.extend_from_slice(&len.to_be_bytes());
        }
    }
}
