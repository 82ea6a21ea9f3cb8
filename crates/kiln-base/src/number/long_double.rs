//! The 80-bit floats of INCRBYFLOAT and HINCRBYFLOAT.
//!
//! Redis adds in C's `long double`, which on x86-64 has a mantissa of 64 bits, and prints the sum
//! with 17 decimals, less trailing zeros. Doubles would give other digits: 0.1 + 0.2 is 0.3 here.
//! Rust has no such type, so this file has what the two commands need of it: read, add, print, each
//! rounded once, half to even. Numbers are taken apart into integers of any size ([`Natural`]);
//! that is far slower than the processor, and a few microseconds at most for numbers as people
//! write them.
//!
//! Source: Redis 8.2.3, asked over a socket.

use super::float::{Exact, Format, Literal, read_exponent};

/// The longest text that Redis takes for a long double.
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;
/// The x87's extended precision.
const EXTENDED: Format = Format { precision: 64, exponent_min: -16_445, exponent_max: 16_320 };
/// The largest power of five in 32 bits.
const FIVES_PER_LIMB: u32 = 13;
/// Decimals printed.
const DECIMALS: u32 = 17;

/// An x87 extended-precision number other than NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    negative: bool,
    /// The number is this times two to the `exponent`. The top bit is set, except for zero and the
    /// subnormal numbers, whose exponent is the smallest.
    mantissa: u64,
    /// Beyond the format's largest for infinity.
    exponent: i32,
}

impl LongDouble {
    const INFINITE_EXPONENT: i32 = EXTENDED.exponent_max + 1;

    /// The number that `text` stands for: see [`super::parse_f64`] for the grammar.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (negative, literal) = Literal::read(text)?;
        let (mantissa, exponent) = match literal {
            Literal::Infinity => (1 << 63, Self::INFINITE_EXPONENT),
            Literal::Hexadecimal(exact) => exact.round(EXTENDED)?,
            Literal::Decimal(digits) => read_decimal(digits)?.round(EXTENDED)?,
        };
        Some(Self { negative, mantissa, exponent })
    }

    /// Whether this is a number rather than an infinity.
    pub fn is_finite(self) -> bool {
        self.exponent < Self::INFINITE_EXPONENT
    }

    /// A double near the number; what no double holds becomes infinite or the least normal one,
    /// never zero.
    pub fn to_f64_outward(self) -> f64 {
        let scaled = self.mantissa as f64 * 2_f64.powi(self.exponent);
        let magnitude = if self.mantissa == 0 { 0.0 } else { scaled.max(f64::MIN_POSITIVE) };
        if self.negative { -magnitude } else { magnitude }
    }

    /// The sum, or `None` if it is infinite or not a number.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        if !self.is_finite() || !other.is_finite() {
            return None;
        }
        let size = |number: Self| (number.exponent, number.mantissa);
        let (large, small) = if size(self) >= size(other) { (self, other) } else { (other, self) };
        // The larger mantissa moves to the top of 127 bits, which leaves 63 below it for the
        // smaller one. Bits beyond them only say whether there is more.
        let distance = (large.exponent - small.exponent) as u32;
        let large_mantissa = u128::from(large.mantissa) << 63;
        let shifted = u128::from(small.mantissa) << 63;
        let small_mantissa = shifted.checked_shr(distance).unwrap_or(0);
        let more = small_mantissa.checked_shl(distance).unwrap_or(0) != shifted;
        let mantissa = if large.negative == small.negative {
            large_mantissa + small_mantissa
        } else {
            // What is more in the smaller one is less in the difference.
            large_mantissa - small_mantissa - u128::from(more)
        };
        let sum = Exact { mantissa, more, exponent: i64::from(large.exponent) - 63 };
        let (mantissa, exponent) = sum.round(EXTENDED)?;
        Some(Self { negative: large.negative && mantissa != 0, mantissa, exponent })
    }

    /// Appends the number with up to 17 decimals; trailing zeros and the sign of zero are left out.
    ///
    /// # Panics
    ///
    /// If the number is infinite, which the two commands refuse.
    pub fn print(self, out: &mut Vec<u8>) {
        assert!(self.is_finite(), "an infinite number is refused before it is printed");
        let start = out.len();
        if self.negative {
            out.push(b'-');
        }
        if self.exponent >= 0 {
            let mut whole = Natural::from(self.mantissa);
            whole.shift_left(self.exponent as u32);
            whole.print(out);
            return;
        }
        let unit = 10_u128.pow(DECIMALS);
        // Below 2^121: no overflow. Half to even, as printf does.
        let scaled = u128::from(self.mantissa) * unit;
        let shift = self.exponent.unsigned_abs();
        let kept = scaled.checked_shr(shift).unwrap_or(0);
        let dropped = scaled - kept.checked_shl(shift).unwrap_or(0);
        let half = 1_u128.checked_shl(shift - 1).unwrap_or(u128::MAX);
        let up = dropped > half || (dropped == half && kept % 2 == 1);
        let rounded = kept + u128::from(up);
        if rounded == 0 {
            out.truncate(start); // No "-0".
        }
        out.extend_from_slice((rounded / unit).to_string().as_bytes());
        let fraction = rounded % unit;
        if fraction != 0 {
            let decimals = format!(".{fraction:017}");
            out.extend_from_slice(decimals.trim_end_matches('0').as_bytes());
        }
    }
}

/// Reads a decimal as a fraction of two integers and divides them, to more bits than are needed.
fn read_decimal(text: &[u8]) -> Option<Exact> {
    let mantissa_len = memchr::memchr2(b'e', b'E', text).unwrap_or(text.len());
    let (digits, rest) = text.split_at(mantissa_len);
    let mut power = match rest {
        [] => 0,
        [_, exponent @ ..] => read_exponent(exponent)?,
    };
    let mut numerator = Natural::default();
    let (mut digit_seen, mut point_seen) = (false, false);
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                digit_seen = true;
                numerator.multiply_add(10, u32::from(byte - b'0'));
                power = power.saturating_sub(i32::from(point_seen));
            }
            b'.' if !point_seen => point_seen = true,
            _ => return None,
        }
    }
    if !digit_seen {
        return None;
    }
    if numerator.is_zero() {
        return Some(Exact { mantissa: 0, more: false, exponent: 0 });
    }
    // Beyond these no text of at most `TEXT_BYTES_MAX` digits gives a number of the format.
    if !(-12_000..=5_000).contains(&power) {
        return None;
    }
    // A power of ten is a power of five, for the division, and one of two, for the exponent.
    let mut denominator = Natural::from(1);
    let fives = if power >= 0 { &mut numerator } else { &mut denominator };
    for _ in 0..power.unsigned_abs() / FIVES_PER_LIMB {
        fives.multiply_add(5_u32.pow(FIVES_PER_LIMB), 0);
    }
    fives.multiply_add(5_u32.pow(power.unsigned_abs() % FIVES_PER_LIMB), 0);
    Some(divide(numerator, denominator, power))
}

/// `numerator` over `denominator` times two to the `exponent`; neither is zero.
fn divide(mut numerator: Natural, mut denominator: Natural, exponent: i32) -> Exact {
    // Of the same number of bits, their ratio is between a half and two.
    let excess = numerator.bits() as i32 - denominator.bits() as i32;
    if excess < 0 {
        numerator.shift_left(excess.unsigned_abs());
    } else {
        denominator.shift_left(excess as u32);
    }
    let quotient_bits = EXTENDED.precision + 3;
    let mut mantissa = 0;
    for _ in 0..quotient_bits {
        mantissa <<= 1;
        if numerator.subtract(&denominator) {
            mantissa |= 1;
        }
        numerator.shift_left(1);
    }
    let exponent = exponent + excess - (quotient_bits as i32 - 1);
    Exact { mantissa, more: !numerator.is_zero(), exponent: i64::from(exponent) }
}

/// A natural number of any size: 32-bit limbs, lowest first, the highest not zero.
#[derive(Clone, Default)]
struct Natural(Vec<u32>);

impl From<u64> for Natural {
    fn from(number: u64) -> Self {
        let mut natural = Self(vec![number as u32, (number >> 32) as u32]);
        natural.trim();
        natural
    }
}

impl Natural {
    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn bits(&self) -> u32 {
        self.0.last().map_or(0, |top| self.0.len() as u32 * 32 - top.leading_zeros())
    }

    fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for limb in &mut self.0 {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    fn shift_left(&mut self, bits: u32) {
        if self.is_zero() {
            return;
        }
        self.multiply_add(1 << (bits % 32), 0);
        self.0.splice(0..0, std::iter::repeat_n(0, bits as usize / 32));
    }

    /// Subtracts `other` if it is not larger, and says whether it did.
    fn subtract(&mut self, other: &Self) -> bool {
        let size = self.0.len().cmp(&other.0.len());
        if size.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())).is_lt() {
            return false;
        }
        let mut borrow = false;
        let subtrahends = other.0.iter().chain(std::iter::repeat(&0));
        for (limb, &subtrahend) in self.0.iter_mut().zip(subtrahends) {
            let (difference, under) = limb.overflowing_sub(subtrahend);
            let (difference, under_again) = difference.overflowing_sub(u32::from(borrow));
            (*limb, borrow) = (difference, under || under_again);
        }
        self.trim();
        true
    }

    fn print(mut self, out: &mut Vec<u8>) {
        // Nine digits at a time, lowest first.
        let mut groups = Vec::new();
        while !self.is_zero() {
            let mut rest = 0;
            for limb in self.0.iter_mut().rev() {
                let dividend = rest << 32 | u64::from(*limb);
                (*limb, rest) = ((dividend / 1_000_000_000) as u32, dividend % 1_000_000_000);
            }
            self.trim();
            groups.push(rest);
        }
        let top = groups.pop().unwrap_or(0);
        out.extend_from_slice(top.to_string().as_bytes());
        for group in groups.iter().rev() {
            out.extend_from_slice(format!("{group:09}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::LongDouble;

    /// What Redis 8.2.3 replies to INCRBYFLOAT with `increment` when `value` is stored.
    #[track_caller]
    fn check(value: &str, increment: &str, want: Option<&str>) {
        let parse = |text: &str| LongDouble::parse(text.as_bytes()).expect("a number");
        let sum = parse(value).checked_add(parse(increment));
        let mut text = Vec::new();
        let got = sum.map(|sum| {
            sum.print(&mut text);
            str::from_utf8(&text).expect("ASCII")
        });
        assert_eq!(got, want, "{value} + {increment}");
    }

    #[test]
    fn sums_look_as_in_redis() {
        check("0.1", "0.2", Some("0.3"));
        check("10.50", "0.1", Some("10.6"));
        check("5.0e3", "200", Some("5200"));
        check("1", "-1", Some("0"));
        check("-0", "-0", Some("0"));
        check("1e-10", "0", Some("0.0000000001"));
        check("-1e-18", "0", Some("0"));
        check("0x1.8p3", "0x.8", Some("12.5"));
        check("inf", "1", None);
        check("inf", "-inf", None);
        check("1e4932", "1e4932", None);
    }

    #[test]
    fn what_is_no_number_of_this_kind() {
        let long = "0".repeat(5_120);
        let too_long = [&*long, ".", "", "1e", "nan", " 1", "1e5000", "1e-5000", "1e99999999999"];
        for text in too_long {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
        }
        assert!(LongDouble::parse(&long.as_bytes()[1..]).is_some());
        assert!(!LongDouble::parse(b"-Infinity").expect("a number").is_finite());
    }

    proptest! {
        #[test]
        fn integers_of_64_bits_are_exact(left: i64, right: i64) {
            let parse = |number: i64| LongDouble::parse(number.to_string().as_bytes());
            let sum = parse(left).expect("a number").checked_add(parse(right).expect("a number"));
            let mut text = Vec::new();
            sum.expect("in range").print(&mut text);
            let want = i128::from(left) + i128::from(right);
            prop_assert_eq!(str::from_utf8(&text), Ok(&*want.to_string()));
        }
    }
}
