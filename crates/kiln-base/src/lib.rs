//! What every other crate of Kiln uses: clock, key hash, numbers as text, glob patterns, limits
//! and the sync facade. This crate knows nothing of keys, commands or the wire.

pub mod clock;
pub mod crc16;
pub mod glob;
pub mod hash;
pub mod memory;
pub mod number;
pub mod prefetch;
pub mod sync;
