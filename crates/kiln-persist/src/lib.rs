//! Values in the formats of Redis.
//!
//! [`dump()`] and [`restore`] are the payload of DUMP and RESTORE: one value as an RDB file holds
//! it, with a version and a checksum behind it. This crate knows no command and no socket; it turns
//! entries into bytes and untrusted bytes into values.
//!
//! Left out so far: RDB files, the AOF and snapshots; streams and modules; the encodings that
//! Redis wrote before version 7 for small values (ziplist, zipmap).

mod decode;
mod dump;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{BadData, Loaded};
pub use dump::{RestoreError, dump, restore, seal};

/// The version of the RDB format that is written, and the latest that is read: Redis 8.2's.
pub const RDB_VERSION: u16 = 12;

/// The types of values in an RDB file that are read or written here.
mod rdb_type {
    pub(crate) const STRING: u8 = 0;
    pub(crate) const LIST: u8 = 1;
    pub(crate) const SET: u8 = 2;
    /// Scores as decimal text.
    pub(crate) const ZSET_TEXT: u8 = 3;
    pub(crate) const HASH: u8 = 4;
    /// Scores as doubles.
    pub(crate) const ZSET: u8 = 5;
    pub(crate) const SET_INTSET: u8 = 11;
    pub(crate) const HASH_LISTPACK: u8 = 16;
    pub(crate) const ZSET_LISTPACK: u8 = 17;
    pub(crate) const LIST_QUICKLIST: u8 = 18;
    pub(crate) const SET_LISTPACK: u8 = 20;
    /// A hash whose fields may expire.
    pub(crate) const HASH_EXPIRING: u8 = 24;
    pub(crate) const HASH_LISTPACK_EXPIRING: u8 = 25;
}

/// The kinds of a quicklist's nodes.
mod node_kind {
    pub(crate) const PLAIN: u64 = 1;
    pub(crate) const PACKED: u64 = 2;
}

/// How a length or the kind of a text begins.
///
/// ```text
/// 00llllll                       length in 6 bits
/// 01llllll llllllll              length in 14 bits
/// 10000000 + 4 bytes             length in 32 bits, big-endian
/// 10000001 + 8 bytes             length in 64 bits, big-endian
/// 110000kk                       no length: a text of kind k, see below
///        0  + 1 byte             integer, little-endian
///        1  + 2 bytes            integer
///        2  + 4 bytes            integer
///        3  + length, length     compressed: bytes as stored, bytes of the text
/// ```
mod prefix {
    pub(crate) const BITS_14: u8 = 0b0100_0000;
    pub(crate) const BITS_32: u8 = 0b1000_0000;
    pub(crate) const BITS_64: u8 = 0b1000_0001;
    pub(crate) const KIND: u8 = 0b1100_0000;
    pub(crate) const INT_8: u8 = 0;
    pub(crate) const INT_16: u8 = 1;
    pub(crate) const INT_32: u8 = 2;
    pub(crate) const LZF: u8 = 3;
}
