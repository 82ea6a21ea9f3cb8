//! Numbers as text, by Redis's rules: what counts as an integer or a float, and how they are
//! printed.
//!
//! Source: Redis 8.2.3, asked over a socket.

mod double;
mod float;
mod long_double;

pub use double::{DOUBLE_BYTES_MAX, format_f64, format_f64_17};
pub use float::{parse_f64, parse_score_bound};
pub use long_double::LongDouble;

/// Enough for every `i64`, sign included.
pub const INTEGER_BYTES_MAX: usize = 20;

/// The integer that `text` is the canonical form of: `-5` is one; ` 5`, `+5`, `05`, `-0`, the
/// empty string and anything beyond 64 bits are not.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => {
            let magnitude = parse_u64(digits)?;
            let in_range = magnitude != 0 && magnitude <= i64::MIN.unsigned_abs();
            in_range.then(|| (magnitude as i64).wrapping_neg())
        }
        digits => parse_u64(digits).and_then(|number| i64::try_from(number).ok()),
    }
}

/// The unsigned integer that `text` is the canonical form of; as [`parse_i64`], without a sign.
#[inline]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    match text {
        [b'0'] => return Some(0),
        [b'1'..=b'9', ..] if text.len() <= INTEGER_BYTES_MAX => {}
        _ => return None,
    }
    let digit = |byte: u8| Some(u64::from(byte.wrapping_sub(b'0'))).filter(|&digit| digit <= 9);
    // Eighteen digits cannot overflow; only longer numbers pay for the check.
    let (safe, rest) = text.split_at(text.len().min(18));
    let mut number = 0;
    for &byte in safe {
        number = number * 10 + digit(byte)?;
    }
    for &byte in rest {
        number = number.checked_mul(10)?.checked_add(digit(byte)?)?;
    }
    Some(number)
}

/// Prints `number` into `buf` and returns the part used.
#[inline]
pub fn format_i64(number: i64, buf: &mut [u8; INTEGER_BYTES_MAX]) -> &[u8] {
    let mut printer = itoa::Buffer::new();
    let text = printer.format(number).as_bytes();
    buf[..text.len()].copy_from_slice(text);
    &buf[..text.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::{INTEGER_BYTES_MAX, format_i64, parse_i64, parse_u64};

    #[test]
    fn only_canonical_integers_count() {
        let refused =
            ["", "-", "+5", " 5", "5 ", "05", "-05", "-0", "00", "5.0", "0x5", "5-", "--5"];
        for text in refused.into_iter().chain(["9223372036854775808", "-9223372036854775809"]) {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        for text in ["18446744073709551616", "99999999999999999999", "184467440737095516150", "-1"]
        {
            assert_eq!(parse_u64(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(number: i64) {
            let mut buf = [0; INTEGER_BYTES_MAX];
            let text = format_i64(number, &mut buf);
            prop_assert_eq!(str::from_utf8(text), Ok(&*number.to_string()));
            prop_assert_eq!(parse_i64(text), Some(number));
        }
    }
}
