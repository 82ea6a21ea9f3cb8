//! Floats as Redis reads them.
//!
//! Commands that take a float accept an optional sign and then `inf`, `infinity` (in any case), a
//! decimal (`5.`, `.5` and `1e5` are complete) or a hexadecimal as in C (`0x10`, `0x1.8p3`). They
//! refuse blanks, `nan`, what does not fit, and what is not zero but would become it. The two ends
//! of a range of scores have a rule of their own: [`parse_score_bound`].
//!
//! Source: Redis 8.2.3, asked with ZADD, ZCOUNT, INCRBYFLOAT and HINCRBYFLOAT.

/// The double that `text` stands for, or `None`. Never NaN; infinite only if it says so.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let (negative, literal) = Literal::read(text)?;
    let magnitude = match literal {
        Literal::Infinity => f64::INFINITY,
        Literal::Hexadecimal(exact) => exact.to_f64()?,
        Literal::Decimal(digits) => {
            let number: f64 = fast_float2::parse(digits).ok()?;
            let mut mantissa = digits.iter().take_while(|&&byte| !matches!(byte, b'e' | b'E'));
            let mut is_nonzero = || mantissa.any(|byte| matches!(byte, b'1'..=b'9'));
            if number.is_infinite() || (number == 0.0 && is_nonzero()) {
                return None;
            }
            number
        }
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// The end of a range of scores that `text` stands for, without its `(`. Unlike [`parse_f64`], it
/// takes the empty text for 0 and rounds too large numbers to infinity and too small ones to 0, but
/// refuses hexadecimals. Redis reads a C string here: what follows a NUL does not count.
pub fn parse_score_bound(text: &[u8]) -> Option<f64> {
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let (negative, literal) = Literal::read(text)?;
    let magnitude = match literal {
        Literal::Infinity => f64::INFINITY,
        Literal::Hexadecimal(_) => return None,
        Literal::Decimal(digits) => fast_float2::parse(digits).ok()?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// What follows the sign.
pub(super) enum Literal<'a> {
    Infinity,
    Hexadecimal(Exact),
    /// Starts with a digit or a point; not checked further.
    Decimal(&'a [u8]),
}

impl<'a> Literal<'a> {
    /// Whether `text` is negative, and what its sign is followed by.
    pub(super) fn read(text: &'a [u8]) -> Option<(bool, Self)> {
        let (negative, rest) = split_sign(text);
        let literal = match rest {
            [b'0', b'x' | b'X', digits @ ..] => Self::Hexadecimal(Exact::read_hexadecimal(digits)?),
            [b'0'..=b'9' | b'.', ..] => Self::Decimal(rest),
            _ if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") => {
                Self::Infinity
            }
            _ => return None,
        };
        Some((negative, literal))
    }
}

/// A number of a binary format: `mantissa` times two to the `exponent`.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// Bits of the mantissa.
    pub(super) precision: u32,
    /// The exponent of the smallest number above zero.
    pub(super) exponent_min: i32,
    /// The exponent of the largest numbers.
    pub(super) exponent_max: i32,
}

/// IEEE 754's binary64.
const DOUBLE: Format = Format { precision: 53, exponent_min: -1_074, exponent_max: 971 };

/// A number before it is rounded: `mantissa` times two to the `exponent`, and a little more if
/// `more` is set, less than one unit of the mantissa. Where `more` is set, the mantissa has at
/// least two bits more than any [`Format`].
pub(super) struct Exact {
    pub(super) mantissa: u128,
    pub(super) more: bool,
    /// Wider than any format's, for texts like `0x0.000…1p99999999`.
    pub(super) exponent: i64,
}

impl Exact {
    /// Reads what follows `0x`: digits with or without a point, at least one, then `p` and a power
    /// of two or nothing.
    fn read_hexadecimal(text: &[u8]) -> Option<Self> {
        let mut exact = Self { mantissa: 0, more: false, exponent: 0 };
        let (mut digit_seen, mut point_seen) = (false, false);
        let mut rest = text;
        while let [byte, tail @ ..] = rest {
            match char::from(*byte).to_digit(16) {
                Some(digit) => {
                    digit_seen = true;
                    // A full mantissa only takes note of further digits.
                    if exact.mantissa >> 124 == 0 {
                        exact.mantissa = exact.mantissa << 4 | u128::from(digit);
                        exact.exponent -= if point_seen { 4 } else { 0 };
                    } else {
                        exact.more |= digit != 0;
                        exact.exponent += if point_seen { 0 } else { 4 };
                    }
                }
                None if *byte == b'.' && !point_seen => point_seen = true,
                None => break,
            }
            rest = tail;
        }
        let power = match rest {
            [] => 0,
            [b'p' | b'P', power @ ..] => read_exponent(power)?,
            _ => return None,
        };
        exact.exponent += i64::from(power);
        digit_seen.then_some(exact)
    }

    /// The nearest number of `format`, half to even, as mantissa and exponent. `None` if it is too
    /// large, or if it is not zero and would become it.
    pub(super) fn round(&self, format: Format) -> Option<(u64, i32)> {
        if self.mantissa == 0 {
            return Some((0, format.exponent_min));
        }
        let bits = i64::from(u128::BITS - self.mantissa.leading_zeros());
        // How many bits to drop: those beyond the precision, or those below the smallest exponent.
        let to_precision = bits - i64::from(format.precision);
        let mut exponent = (self.exponent + to_precision).max(i64::from(format.exponent_min));
        let drop = exponent - self.exponent;
        let mut kept = if drop <= 0 {
            // At most the precision: `exponent` is no less than what brings the top bit there.
            self.mantissa << -drop
        } else {
            let drop = u32::try_from(drop).unwrap_or(u32::MAX);
            let kept = self.mantissa.checked_shr(drop).unwrap_or(0);
            let dropped = self.mantissa - kept.checked_shl(drop).unwrap_or(0);
            // Beyond 128 bits, half a unit is more than any mantissa.
            let up = 1_u128.checked_shl(drop - 1).is_some_and(|half| {
                dropped > half || (dropped == half && (self.more || kept % 2 == 1))
            });
            kept + u128::from(up)
        };
        if kept >> format.precision != 0 {
            (kept, exponent) = (kept >> 1, exponent + 1);
        }
        let in_range = kept != 0 && exponent <= i64::from(format.exponent_max);
        in_range.then_some((kept as u64, exponent as i32))
    }

    fn to_f64(&self) -> Option<f64> {
        const HIDDEN_BIT: u64 = 1 << 52;
        let (mantissa, exponent) = self.round(DOUBLE)?;
        let bits = match mantissa.checked_sub(HIDDEN_BIT) {
            Some(fraction) => ((exponent - DOUBLE.exponent_min + 1) as u64) << 52 | fraction,
            None => mantissa, // A subnormal: its exponent is the smallest.
        };
        Some(f64::from_bits(bits))
    }
}

/// A signed decimal exponent; one beyond 32 bits saturates, which no format can tell from infinity.
pub(super) fn read_exponent(text: &[u8]) -> Option<i32> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let shift = |number: i32, &digit: &u8| {
        number.saturating_mul(10).saturating_add(i32::from(digit - b'0'))
    };
    let magnitude = digits.iter().fold(0, shift);
    Some(if negative { -magnitude } else { magnitude })
}

/// Whether `text` starts with a minus sign, and what follows the sign if there is one.
fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::{parse_f64, parse_score_bound};

    #[test]
    fn what_redis_takes_for_a_float() {
        for (text, want) in [
            ("+5", 5.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("-.5", -0.5),
            ("1.e5", 1e5),
            ("1E5", 1e5),
            ("00012", 12.0),
            ("0e99999", 0.0),
            ("5e-324", 5e-324),
            ("INF", f64::INFINITY),
            ("-infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse_f64(text.as_bytes()), Some(want), "{text}");
            assert_eq!(parse_score_bound(text.as_bytes()), Some(want), "{text} as a bound");
        }
        for text in [
            " 1", "1 ", "+-5", "++1", ".", "-", "+", "nan", "-NaN", "nan(1)", "infx", "1e", "1e+",
            "1_0", "0x", "1d", "0b1", "+inf ", "1.2.3", "0x1p", "0x.", "0x1.g", "0x1p+",
        ] {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text}");
            assert_eq!(parse_score_bound(text.as_bytes()), None, "{text} as a bound");
        }
    }

    #[test]
    fn bounds_differ_from_other_floats() {
        for (text, number, bound) in [
            ("", None, Some(0.0)),
            ("1e400", None, Some(f64::INFINITY)),
            ("-1e99999", None, Some(f64::NEG_INFINITY)),
            ("1e-400", None, Some(0.0)),
            ("4.9e-325", None, Some(0.0)),
            ("0x10", Some(16.0), None),
            ("+0X1f", Some(31.0), None),
            ("-0x.8p1", Some(-1.0), None),
            ("0x1p1024", None, None),
            ("0x1p-1075", None, None),
            ("0x1.8p-1075", Some(5e-324), None),
            ("0x0p99999999999", Some(0.0), None),
            ("0x1000100000000000000000000000000000p99999999999", None, None),
            ("0x0.000000000000000000000000000000001p-99999999999", None, None),
            ("0xffffffffffffffffffffffffffffffffp-1203", None, None),
        ] {
            assert_eq!(parse_f64(text.as_bytes()), number, "{text}");
            assert_eq!(parse_score_bound(text.as_bytes()), bound, "{text} as a bound");
        }
    }

    proptest! {
        #[test]
        fn hexadecimals_are_rounded_half_to_even(mantissa: u64, shift in 0_i32..64) {
            let text = format!("0x{mantissa:x}p-{shift}");
            let want = mantissa as f64 / 2_f64.powi(shift);
            prop_assert_eq!(parse_f64(text.as_bytes()), Some(want));
            // Zeros beyond what a mantissa holds change nothing.
            let zeros = "0".repeat(50);
            let text = format!("0x{mantissa:x}{zeros}p{}", -200 - shift);
            prop_assert_eq!(parse_f64(text.as_bytes()), Some(want));
        }
    }
}
