#![expect(unsafe_code, reason = "counting is compiled for CPU features found at run time")]

//! Counting, finding, reading and writing bits in bytes: words at a time, and no commands.
//!
//! ```text
//! byte      0        1
//! bit       01234567 89...
//! ```

use std::ops::Range;

const WORD: usize = size_of::<u64>();

/// How many of the bits in `range` are 1.
pub(super) fn count(bytes: &[u8], range: Range<usize>) -> usize {
    if range.is_empty() {
        return 0;
    }
    let (first, last) = (range.start / 8, (range.end - 1) / 8);
    let whole = count_all(&bytes[first..=last]);
    let before = bytes[first] & !from_bit(range.start);
    let after = bytes[last] & from_bit(range.end - 1) & !(0x80 >> ((range.end - 1) % 8));
    whole - before.count_ones() as usize - after.count_ones() as usize
}

/// The position of the first bit in `range` that equals `bit`.
pub(super) fn position(bytes: &[u8], range: Range<usize>, bit: bool) -> Option<usize> {
    if range.is_empty() {
        return None;
    }
    // Bytes that have no such bit, and the bits of others that are it.
    let without = if bit { 0x00 } else { 0xFF };
    let first = range.start / 8;
    let head = (bytes[first] ^ without) & from_bit(range.start);
    let (byte, found) = if head == 0 {
        let rest = &bytes[first + 1..=(range.end - 1) / 8];
        let at = rest.len() - without_prefix(rest, without).len();
        (first + 1 + at, rest.get(at)? ^ without)
    } else {
        (first, head)
    };
    Some(byte * 8 + found.leading_zeros() as usize).filter(|at| range.contains(at))
}

/// The bit at `offset`; beyond the end all are 0.
pub(super) fn get(bytes: &[u8], offset: usize) -> bool {
    bytes.get(offset / 8).is_some_and(|byte| byte & (0x80 >> (offset % 8)) != 0)
}

/// Sets the bit at `offset`, which must be there, and returns the one before.
pub(super) fn set(bytes: &mut [u8], offset: usize, bit: bool) -> bool {
    let byte = &mut bytes[offset / 8];
    let mask = 0x80 >> (offset % 8);
    let before = *byte & mask != 0;
    *byte = if bit { *byte | mask } else { *byte & !mask };
    before
}

/// Bytes that an unaligned field of up to 64 bits may touch.
const FIELD_BYTES_MAX: usize = 9;

/// The unsigned number in the `width <= 64` bits from `offset` on; beyond the end all are 0.
pub(super) fn read_field(bytes: &[u8], offset: usize, width: u32) -> u64 {
    let mut wide = [0; size_of::<u128>()];
    let from = bytes.get(offset / 8..).unwrap_or_default();
    let len = from.len().min(FIELD_BYTES_MAX);
    wide[..len].copy_from_slice(&from[..len]);
    let wide = u128::from_be_bytes(wide) << (offset % 8);
    (wide >> (u128::BITS - width)) as u64
}

/// Stores the low `width <= 64` bits of `value` from `offset` on; the bytes must be there.
pub(super) fn write_field(bytes: &mut [u8], offset: usize, width: u32, value: u64) {
    let from = &mut bytes[offset / 8..];
    let len = from.len().min(FIELD_BYTES_MAX);
    let from = &mut from[..len];
    let mut wide = [0; size_of::<u128>()];
    wide[..len].copy_from_slice(from);
    let shift = u128::BITS - width - (offset % 8) as u32;
    let mask = (u128::MAX >> (u128::BITS - width)) << shift;
    let value = (u128::from(value) << shift) & mask;
    let wide = (u128::from_be_bytes(wide) & !mask) | value;
    from.copy_from_slice(&wide.to_be_bytes()[..len]);
}

/// The bits of a byte from that of `offset` on.
fn from_bit(offset: usize) -> u8 {
    0xFF >> (offset % 8)
}

fn count_all(bytes: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= WIDE_MIN && is_x86_feature_detected!("avx2") {
        // SAFETY: `count_wide` asks only for a CPU with AVX2, checked one line up.
        return unsafe { count_wide(bytes) };
    }
    count_words(bytes)
}

/// From this length on, asking for CPU features pays.
#[cfg(target_arch = "x86_64")]
const WIDE_MIN: usize = 64;

/// [`count_words`] in vector instructions, several times as fast.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn count_wide(bytes: &[u8]) -> usize {
    count_words(bytes)
}

#[inline]
fn count_words(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<WORD>();
    let in_words: usize =
        words.iter().map(|word| u64::from_ne_bytes(*word).count_ones() as usize).sum();
    in_words + rest.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
}

/// What is left of `bytes` behind all leading ones that equal `byte`.
fn without_prefix(bytes: &[u8], byte: u8) -> &[u8] {
    let (words, _) = bytes.as_chunks::<WORD>();
    let equal = words.iter().take_while(|word| **word == [byte; WORD]).count();
    let rest = &bytes[equal * WORD..];
    let equal = rest.iter().take_while(|other| **other == byte).count();
    &rest[equal..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{count, get, position, read_field, set, write_field};

    fn bit_list(bytes: &[u8]) -> Vec<bool> {
        (0..bytes.len() * 8).map(|at| bytes[at / 8] & (1 << (7 - at % 8)) != 0).collect()
    }

    proptest! {
        #[test]
        fn counting_and_finding_match_bit_by_bit(
            bytes in
                proptest::collection::vec(proptest::sample::select(vec![0, 0xFF, 0x10]), 1..140),
            start: u16, end: u16, bit: bool,
        ) {
            let bits = bit_list(&bytes);
            let start = usize::from(start) % bits.len();
            let end = start + usize::from(end) % (bits.len() - start + 1);
            let ones = bits[start..end].iter().filter(|bit| **bit).count();
            prop_assert_eq!(count(&bytes, start..end), ones);
            let first = bits[start..end].iter().position(|other| *other == bit);
            prop_assert_eq!(position(&bytes, start..end, bit), first.map(|at| start + at));
        }

        #[test]
        fn fields_match_bit_by_bit(
            mut bytes in proptest::collection::vec(any::<u8>(), 9..20),
            offset in 0_usize..8, width in 1_u32..=64, value: u64,
        ) {
            let before = bit_list(&bytes);
            let number = |bits: &[bool]| bits.iter().fold(0, |sum, &bit| sum << 1 | u64::from(bit));
            let end = offset + width as usize;
            prop_assert_eq!(read_field(&bytes, offset, width), number(&before[offset..end]));
            write_field(&mut bytes, offset, width, value);
            let after = bit_list(&bytes);
            prop_assert_eq!(number(&after[offset..end]), value & (u64::MAX >> (64 - width)));
            prop_assert_eq!((&after[..offset], &after[end..]), (&before[..offset], &before[end..]));
        }

        #[test]
        fn a_set_bit_is_got(mut bytes in proptest::collection::vec(any::<u8>(), 1..9), at: u8) {
            let at = usize::from(at) % (bytes.len() * 8);
            let before = get(&bytes, at);
            prop_assert_eq!(set(&mut bytes, at, !before), before);
            prop_assert_eq!(get(&bytes, at), !before);
        }
    }

    #[test]
    fn beyond_the_end_all_is_zero() {
        assert!(!get(&[0xFF], 8));
        assert_eq!(read_field(&[0xFF], 4, 8), 0xF0);
        assert_eq!(read_field(&[0xFF], 1 << 40, 64), 0);
    }
}
