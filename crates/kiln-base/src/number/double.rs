//! Doubles as Redis prints them: whole numbers as integers, all else by Grisu2 in a layout of its
//! own (`0.1`, `1.23e-5`, `1e+21`).
//!
//! Grisu2 walks the interval of numbers that round to the given one, scaled by a power of ten from
//! a table into a range where its digits come out of 64-bit integers, and stops at the first
//! digit string inside. The table's powers are rounded, so the interval is a little narrower than
//! the true one and 0.1 % of the results are a digit longer, or one unit further off, than the
//! shortest form. Clients see those digits: a printer that always finds the shortest would differ
//! from Redis.
//!
//! Source: Loitsch, *Printing Floating-Point Numbers Quickly and Accurately with Integers* (2010);
//! the choice of powers and the layout are observed on Redis 8.2.3.

use super::format_i64;

/// Enough for every double: sign, 17 digits, point, and five zeros or an exponent.
pub const DOUBLE_BYTES_MAX: usize = 32;

/// Prints `number` into `buf` and returns the part used.
pub fn format_f64(number: f64, buf: &mut [u8; DOUBLE_BYTES_MAX]) -> &[u8] {
    let special: &[u8] = match number {
        _ if number.is_nan() => b"nan",
        f64::INFINITY => b"inf",
        f64::NEG_INFINITY => b"-inf",
        _ if number == 0.0 => {
            if number.is_sign_negative() {
                b"-0"
            } else {
                b"0"
            }
        }
        _ => b"",
    };
    if !special.is_empty() {
        buf[..special.len()].copy_from_slice(special);
        return &buf[..special.len()];
    }
    // Half of the range of `i64`, inclusive: where Redis changes from one way to the other.
    let whole = number as i64;
    if number.abs() <= (i64::MAX / 2) as f64 && number.fract() == 0.0 {
        let integer = buf.first_chunk_mut().expect("a double's buffer is larger than an integer's");
        return format_i64(whole, integer);
    }
    let mut digits = [0; DIGITS_MAX];
    let (count, exponent) = grisu2(number.abs(), &mut digits);
    let sign = usize::from(number < 0.0);
    buf[0] = b'-';
    let len = sign + lay_out(&digits[..count], exponent, &mut buf[sign..]);
    &buf[..len]
}

/// `number` with 17 significant digits, trailing zeros dropped, as C's `%.17g` prints it: the form
/// that ZSCAN has kept for large sorted sets.
pub fn format_f64_17(number: f64) -> String {
    if !number.is_finite() {
        return if number.is_nan() {
            "nan"
        } else if number > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    let text = format!("{number:.16e}");
    let (mantissa, exponent) = text.split_once('e').expect("an exponent is asked for");
    let exponent: i32 = exponent.parse().expect("it is an integer");
    let trim = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if (-4..17).contains(&exponent) {
        let fixed = format!("{number:.*}", (16 - exponent) as usize);
        return if fixed.contains('.') { trim(&fixed) } else { fixed };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.unsigned_abs())
}

/// Most digits that a double needs to be read back as the same number.
const DIGITS_MAX: usize = 17;

/// Writes `digits` times ten to the `exponent`, and returns how many bytes that takes.
fn lay_out(digits: &[u8], exponent: i32, out: &mut [u8]) -> usize {
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        out[len..len + bytes.len()].copy_from_slice(bytes);
        len += bytes.len();
    };
    let count = digits.len() as i32;
    // The exponent if there is one digit before the point.
    let scientific = exponent + count - 1;
    if exponent >= 0 && scientific < count + 7 {
        put(digits);
        put(&b"0000000"[..exponent as usize]);
    } else if exponent < 0 && (exponent > -7 || scientific.abs() < 4) {
        let before_point = exponent + count;
        if before_point > 0 {
            let (whole, fraction) = digits.split_at(before_point as usize);
            put(whole);
            put(b".");
            put(fraction);
        } else {
            put(b"0.");
            put(&b"000000"[..-before_point as usize]);
            put(digits);
        }
    } else {
        let (first, rest) = digits.split_at(1);
        put(first);
        if !rest.is_empty() {
            put(b".");
            put(rest);
        }
        put(if scientific < 0 { b"e-" } else { b"e+" });
        put(format_i64(i64::from(scientific.abs()), &mut [0; _]));
    }
    len
}

/// A binary floating-point number: `frac` times two to the `exp`.
#[derive(Clone, Copy)]
struct Fp {
    frac: u64,
    exp: i32,
}

impl Fp {
    fn normalized(self) -> Self {
        let shift = self.frac.leading_zeros();
        Self { frac: self.frac << shift, exp: self.exp - shift as i32 }
    }

    /// The upper half of the product, rounded.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.frac) * u128::from(other.frac) + (1 << 63);
        Self { frac: (product >> 64) as u64, exp: self.exp + other.exp + 64 }
    }
}

/// Finds digits and a power of ten for `number`, which is finite and above zero.
fn grisu2(number: f64, digits: &mut [u8; DIGITS_MAX]) -> (usize, i32) {
    const HIDDEN_BIT: u64 = 1 << 52;
    let bits = number.to_bits();
    let (biased, frac) = ((bits >> 52) as i32, bits & (HIDDEN_BIT - 1));
    let value = if biased == 0 {
        Fp { frac, exp: -1074 }
    } else {
        Fp { frac: frac + HIDDEN_BIT, exp: biased - 1075 }
    };
    // The neighbours' midpoints. Below a power of two the numbers lie twice as close.
    let upper = Fp { frac: 2 * value.frac + 1, exp: value.exp - 1 }.normalized();
    let lower_shift = if value.frac == HIDDEN_BIT { 2 } else { 1 };
    let lower_exp = value.exp - lower_shift;
    let lower =
        Fp { frac: ((value.frac << lower_shift) - 1) << (lower_exp - upper.exp), exp: upper.exp };
    let (power, power_exponent) = cached_power(upper.exp);
    let value = value.normalized().times(power);
    // One unit in the last place on each side makes up for the rounded power.
    let upper = {
        let upper = upper.times(power);
        Fp { frac: upper.frac - 1, ..upper }
    };
    let lower = lower.times(power).frac + 1;
    let (count, exponent) =
        interval_digits(upper, upper.frac - value.frac, upper.frac - lower, digits);
    (count, exponent - power_exponent)
}

/// The digits of the shortest number between `upper` and `delta` below it, moved as near as its
/// last digit allows to the value, which lies `distance` below `upper`.
fn interval_digits(
    upper: Fp,
    distance: u64,
    mut delta: u64,
    digits: &mut [u8; DIGITS_MAX],
) -> (usize, i32) {
    let shift = -upper.exp; // 32 to 60: the binary point is inside the word.
    let one = 1_u64 << shift;
    let (mut whole, mut fraction) = (upper.frac >> shift, upper.frac & (one - 1));
    let mut count = 0;
    let mut put = |digit: u64| {
        if digit != 0 || count > 0 {
            digits[count] = b'0' + digit as u8;
            count += 1;
        }
        count
    };
    let mut unit = 1_000_000_000;
    for exponent in (0..10).rev() {
        let count = put(whole / unit);
        whole %= unit;
        let rest = (whole << shift) + fraction;
        if rest <= delta {
            approach(&mut digits[count - 1], delta, rest, unit << shift, distance);
            return (count, exponent);
        }
        unit /= 10;
    }
    let mut scale = 1;
    for exponent in 1.. {
        fraction *= 10;
        delta *= 10;
        scale *= 10;
        let count = put(fraction >> shift);
        fraction &= one - 1;
        if fraction < delta {
            approach(&mut digits[count - 1], delta, fraction, one, distance * scale);
            return (count, -exponent);
        }
    }
    unreachable!("delta grows tenfold in each round, the fraction stays below one")
}

/// Lowers `digit` while that brings the number nearer to the value. `rest` is how far it lies below
/// the upper end, `distance` how far the value does, `unit` what one step of the digit is worth.
fn approach(digit: &mut u8, delta: u64, mut rest: u64, unit: u64, distance: u64) {
    while rest < distance
        && delta - rest >= unit
        && (rest + unit < distance || distance - rest > rest + unit - distance)
    {
        *digit -= 1;
        rest += unit;
    }
}

/// A power of ten that brings a number of binary exponent `exp` into `interval_digits`'s range, and
/// which power that is. Where two fit, the search decides, and with it the last digit.
fn cached_power(exp: i32) -> (Fp, i32) {
    let estimate = (f64::from(-(exp + POWERS.len() as i32)) * std::f64::consts::LOG10_2) as i32;
    let mut index = (estimate - FIRST_POWER) / POWER_STEP;
    loop {
        let exponent = FIRST_POWER + index * POWER_STEP;
        // The binary logarithm of ten as a fraction, exact for the integers in question.
        let power = Fp { frac: POWERS[index as usize], exp: ((exponent * 1_741_647) >> 19) - 63 };
        match exp + power.exp + 64 {
            ..-60 => index += 1,
            -60..=-32 => return (power, exponent),
            _ => index -= 1,
        }
    }
}

const FIRST_POWER: i32 = -348;
const POWER_STEP: i32 = 8;

/// The upper 64 bits, rounded, of every eighth power of ten from the -348th on.
const POWERS: [u64; 87] = [
    0xfa8f_d5a0_081c_0288,
    0xbaae_e17f_a23e_bf76,
    0x8b16_fb20_3055_ac76,
    0xcf42_894a_5dce_35ea,
    0x9a6b_b0aa_5565_3b2d,
    0xe61a_cf03_3d1a_45df,
    0xab70_fe17_c79a_c6ca,
    0xff77_b1fc_bebc_dc4f,
    0xbe56_91ef_416b_d60c,
    0x8dd0_1fad_907f_fc3c,
    0xd351_5c28_3155_9a83,
    0x9d71_ac8f_ada6_c9b5,
    0xea9c_2277_23ee_8bcb,
    0xaecc_4991_4078_536d,
    0x823c_1279_5db6_ce57,
    0xc210_9436_4dfb_5637,
    0x9096_ea6f_3848_984f,
    0xd774_85cb_2582_3ac7,
    0xa086_cfcd_97bf_97f4,
    0xef34_0a98_172a_ace5,
    0xb238_67fb_2a35_b28e,
    0x84c8_d4df_d2c6_3f3b,
    0xc5dd_4427_1ad3_cdba,
    0x936b_9fce_bb25_c996,
    0xdbac_6c24_7d62_a584,
    0xa3ab_6658_0d5f_daf6,
    0xf3e2_f893_dec3_f126,
    0xb5b5_ada8_aaff_80b8,
    0x8762_5f05_6c7c_4a8b,
    0xc9bc_ff60_34c1_3053,
    0x964e_858c_91ba_2655,
    0xdff9_7724_7029_7ebd,
    0xa6df_bd9f_b8e5_b88f,
    0xf8a9_5fcf_8874_7d94,
    0xb944_7093_8fa8_9bcf,
    0x8a08_f0f8_bf0f_156b,
    0xcdb0_2555_6531_31b6,
    0x993f_e2c6_d07b_7fac,
    0xe45c_10c4_2a2b_3b06,
    0xaa24_2499_6973_92d3,
    0xfd87_b5f2_8300_ca0e,
    0xbce5_0864_9211_1aeb,
    0x8cbc_cc09_6f50_88cc,
    0xd1b7_1758_e219_652c,
    0x9c40_0000_0000_0000,
    0xe8d4_a510_0000_0000,
    0xad78_ebc5_ac62_0000,
    0x813f_3978_f894_0984,
    0xc097_ce7b_c907_15b3,
    0x8f7e_32ce_7bea_5c70,
    0xd5d2_38a4_abe9_8068,
    0x9f4f_2726_179a_2245,
    0xed63_a231_d4c4_fb27,
    0xb0de_6538_8cc8_ada8,
    0x83c7_088e_1aab_65db,
    0xc45d_1df9_4271_1d9a,
    0x924d_692c_a61b_e758,
    0xda01_ee64_1a70_8dea,
    0xa26d_a399_9aef_774a,
    0xf209_787b_b47d_6b85,
    0xb454_e4a1_79dd_1877,
    0x865b_8692_5b9b_c5c2,
    0xc835_53c5_c896_5d3d,
    0x952a_b45c_fa97_a0b3,
    0xde46_9fbd_99a0_5fe3,
    0xa59b_c234_db39_8c25,
    0xf6c6_9a72_a398_9f5c,
    0xb7dc_bf53_54e9_bece,
    0x88fc_f317_f222_41e2,
    0xcc20_ce9b_d35c_78a5,
    0x9816_5af3_7b21_53df,
    0xe2a0_b5dc_971f_303a,
    0xa8d9_d153_5ce3_b396,
    0xfb9b_7cd9_a4a7_443c,
    0xbb76_4c4c_a7a4_4410,
    0x8bab_8eef_b640_9c1a,
    0xd01f_ef10_a657_842c,
    0x9b10_a4e5_e991_3129,
    0xe710_9bfb_a19c_0c9d,
    0xac28_20d9_623b_f429,
    0x8044_4b5e_7aa7_cf85,
    0xbf21_e440_03ac_dd2d,
    0x8e67_9c2f_5e44_ff8f,
    0xd433_179d_9c8c_b841,
    0x9e19_db92_b4e3_1ba9,
    0xeb96_bf6e_badf_77d9,
    0xaf87_023b_9bf0_ee6b,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::{DOUBLE_BYTES_MAX, format_f64, format_f64_17};

    #[track_caller]
    fn check(number: f64, want: &str) {
        assert_eq!(str::from_utf8(format_f64(number, &mut [0; DOUBLE_BYTES_MAX])), Ok(want));
    }

    /// What Redis 8.2.3 replies to ZSCAN of a large sorted set.
    #[test]
    fn seventeen_digits_look_as_in_c() {
        for (number, want) in [
            (0.1, "0.10000000000000001"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (-0.0, "-0"),
            (1e-4, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(format_f64_17(number), want);
        }
    }

    /// What Redis 8.2.3 replies to ZSCORE.
    #[test]
    fn doubles_look_as_in_redis() {
        check(1.0, "1");
        check(-0.0, "-0");
        check(0.1 + 0.2, "0.30000000000000004");
        check(1e20, "1e+20");
        check(1e18, "1000000000000000000");
        check(5e18, "5e+18");
        check(4_611_686_018_427_387_904.0, "4611686018427387904");
        check(-4_611_686_018_427_388_928.0, "-4611686018427389000");
        check(12_345_678_901_234_567_890.0, "12345678901234567000");
        check(123_456_789_012_345_678_901_234.0, "123456789012345690000000");
        check(1e-6, "0.000001");
        check(1e-7, "1e-7");
        check(0.000_123, "0.000123");
        check(0.000_012_3, "1.23e-5");
        check(3.051_757_812_5e-5, "3.0517578125e-5");
        check(f64::MAX, "1.7976931348623157e+308");
        check(5e-324, "5e-324");
        check(f64::NEG_INFINITY, "-inf");
        // Grisu2's own: the shortest forms end in 67.
        check(-1.234_567_890_123_456_7e-10, "-1.2345678901234568e-10");
        check(1.234_567_890_123_456_7e-7, "1.2345678901234566e-7");
    }

    proptest! {
        #[test]
        fn the_text_means_the_same_number(number: f64) {
            let mut buf = [0; DOUBLE_BYTES_MAX];
            let text = str::from_utf8(format_f64(number, &mut buf)).expect("ASCII");
            prop_assert_eq!(text.parse(), Ok(number));
        }
    }
}
