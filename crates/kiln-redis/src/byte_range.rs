//! Ranges of a string as GETRANGE and BITCOUNT take them: both ends included, negative ones
//! counted from the end.
//!
//! Source: the Redis documentation; odd cases observed on Redis 8.2.3.

use std::ops::Range;

/// The positions from `start` to `end` among `len` of them; empty if there are none.
///
/// Two negative ends in the wrong order are nothing, else as [`clamped_range`].
pub(crate) fn byte_range(start: i64, end: i64, len: usize) -> Range<usize> {
    if start < 0 && end < 0 && start > end { 0..0 } else { clamped_range(start, end, len) }
}

/// As [`byte_range`], but an end before the first position always counts as the first one: `-100
/// -50`, and `-50 -100`, is the first byte of a short string. BITPOS has it so.
pub(crate) fn clamped_range(start: i64, end: i64, len: usize) -> Range<usize> {
    let len = len as i64;
    let from_start = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
    let (start, end) = (from_start(start), from_start(end).min(len - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

#[cfg(test)]
mod tests {
    use super::{byte_range, clamped_range};

    #[test]
    fn ends_are_included_and_clamped() {
        assert_eq!(byte_range(0, -1, 5), 0..5);
        assert_eq!(byte_range(-3, -1, 5), 2..5);
        assert_eq!(byte_range(-100, -50, 5), 0..1);
        assert_eq!(byte_range(i64::MIN, i64::MAX, 5), 0..5);
        assert_eq!((byte_range(-9, -10, 5), clamped_range(-9, -10, 5)), (0..0, 0..1));
        for (start, end, len) in [(-1, -3, 5), (3, 2, 5), (5, 9, 5), (0, -1, 0), (-1, -1, 0)] {
            assert!(byte_range(start, end, len).is_empty(), "{start} {end} of {len}");
        }
    }
}
