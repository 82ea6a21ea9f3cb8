//! Time enters Kiln here and is handed on as a value: a handler sees the clock of its view, so a
//! command sees one instant from start to end, and a test can choose the instant.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch, the unit of every expiry time in the keyspace.
pub type UnixMs = i64;

/// The wall clock in milliseconds since the Unix epoch.
pub fn now_ms() -> UnixMs {
    now_us() / 1_000
}

/// The wall clock in microseconds since the Unix epoch.
pub fn now_us() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX)
}
