//! The data structures of Kiln's keyspace: the hash table that holds keys, sets, hashes and the
//! dictionary half of sorted sets, and the compact encodings of small values. Nothing here knows
//! of commands, clients or time.

pub mod hash;
pub mod hyperloglog;
pub mod intset;
pub mod list;
pub mod listpack;
mod ordered;
mod sample;
pub mod set;
pub mod table;
mod thin_buf;
pub mod zset;
