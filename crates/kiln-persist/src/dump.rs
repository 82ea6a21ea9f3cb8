//! The payload of DUMP and RESTORE.
//!
//! ```text
//! type u8 | value | RDB version u16 | CRC-64 of all before u64        little-endian
//! ```
//!
//! The checksum finds accidents, not attacks: the value is read as untrusted.
//!
//! Source: the Redis documentation; payloads made and taken by Redis 8.2.3.

use std::sync::LazyLock;

use crc_fast::CrcParams;
use kiln_keyspace::{Entry, Settings};

use crate::decode::{self, BadData, Loaded};
use crate::{RDB_VERSION, encode};

const VERSION_BYTES: usize = size_of::<u16>();
const FOOTER_BYTES: usize = VERSION_BYTES + size_of::<u64>();

/// Redis's CRC-64, after Jones.
static CRC_64: LazyLock<CrcParams> = LazyLock::new(|| {
    CrcParams::new("CRC-64/REDIS", 64, 0xad93_d235_94c9_35a9, 0, true, 0, 0xe9c6_d914_c4b8_d9ca)
});

/// Why a payload was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// It is of a later version, cut short or changed: not ours to read.
    #[error("the version or the checksum is wrong")]
    BadFooter,
    /// The checksum is right, but the value is not: whoever made the payload is at fault, or this
    /// server does not know the type.
    #[error(transparent)]
    BadData(#[from] BadData),
}

/// The value of `entry`, without key and expiry; `None` if it is an engine, which has no such form
/// yet.
pub fn dump(entry: &Entry) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    encode::value(entry, &mut value).then(|| seal(value))
}

/// The payload of a type and a value: version and checksum put behind them. Public for the fuzzer,
/// which would hardly find a checksum by itself.
pub fn seal(mut value: Vec<u8>) -> Vec<u8> {
    value.extend_from_slice(&RDB_VERSION.to_le_bytes());
    let sum = checksum(&value);
    value.extend_from_slice(&sum.to_le_bytes());
    value
}

/// The value in `payload`, in the encodings that `settings` ask for.
///
/// # Errors
///
/// As [`RestoreError`] says; the footer is checked first.
pub fn restore(payload: &[u8], settings: &Settings) -> Result<Loaded, RestoreError> {
    let (value, footer) =
        payload.split_last_chunk::<FOOTER_BYTES>().ok_or(RestoreError::BadFooter)?;
    let [low, high, sum @ ..] = footer;
    let version = u16::from_le_bytes([*low, *high]);
    let summed = &payload[..value.len() + VERSION_BYTES];
    if version > RDB_VERSION || checksum(summed).to_le_bytes() != *sum {
        return Err(RestoreError::BadFooter);
    }
    Ok(decode::value(value, settings)?)
}

fn checksum(bytes: &[u8]) -> u64 {
    crc_fast::checksum_with_params(*CRC_64, bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_redis_s() {
        assert_eq!(super::checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
