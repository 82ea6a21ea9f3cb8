//! The kernels in plain Rust. They are the definition: every other level gives the same bits.
//!
//! The loops are written so that a compiler turns them into vector instructions: fixed blocks, no
//! early exits, integer arithmetic or lanes that never meet before the end. The other levels
//! compile these same loops for their instruction sets, except where intrinsics do better.

#![expect(clippy::inline_always, reason = "each level compiles these bodies for itself")]

use super::{LANES, Lanes};
use crate::split;

/// Adds the products of `a` and `b` to the lanes. A product of two `f32` is exact in `f64`, so it
/// makes no difference whether a level fuses the multiplication with the addition.
#[inline(always)]
pub(super) fn dot(lanes: &mut Lanes, a: &[f32], b: &[f32]) {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] += f64::from(a[lane]) * f64::from(b[lane]);
        }
    }
    for ((lane, a), b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane += f64::from(*a) * f64::from(*b);
    }
}

/// Adds the squared differences of `a` and `b` to the lanes.
#[inline(always)]
pub(super) fn l2(lanes: &mut Lanes, a: &[f32], b: &[f32]) {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            let difference = f64::from(a[lane]) - f64::from(b[lane]);
            lanes[lane] += difference * difference;
        }
    }
    for ((lane, a), b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        let difference = f64::from(*a) - f64::from(*b);
        *lane += difference * difference;
    }
}

/// The dot product of two rows of signed bytes.
#[inline(always)]
pub(super) fn dot_bytes(a: &[u8], b: &[u8]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a as i8) * i32::from(*b as i8)).sum()
}

/// The sum of the numbers in `planes` at the places where `code` has a 1.
#[inline(always)]
pub(super) fn dot_bits(code: &[u8], planes: &[u8]) -> i32 {
    let stride = super::plane_bytes(code.len());
    let mut sum = 0;
    let mut weight = 1;
    for (at, plane) in planes.chunks_exact(stride).enumerate() {
        let ones = and_count(code, plane);
        let is_last = (at + 1) * stride == planes.len();
        sum += if is_last { -weight * ones } else { weight * ones };
        weight *= 2;
    }
    sum
}

/// How many bits are 1 in both. `a` is whole words, `b` is as long or longer.
#[inline(always)]
pub(super) fn and_count(a: &[u8], b: &[u8]) -> i32 {
    let (a, b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let words = a.iter().zip(b).map(|(a, b)| u64::from_le_bytes(*a) & u64::from_le_bytes(*b));
    words.map(|word| word.count_ones() as i32).sum()
}

/// The Walsh-Hadamard transform, unscaled, in place; the length is a power of two.
#[inline(always)]
pub(super) fn transform(values: &mut [f32]) {
    transform_from(values, 1);
}

/// The stages of the transform from that on which adds values `half` apart; two at a time, which
/// are the same additions with half the loads and stores.
#[inline(always)]
pub(super) fn transform_from(values: &mut [f32], mut half: usize) {
    while 4 * half <= values.len() {
        for block in values.chunks_exact_mut(4 * half) {
            let (low, high) = block.split_at_mut(2 * half);
            let ((a, b), (c, d)) = (low.split_at_mut(half), high.split_at_mut(half));
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                let (ab, a_b, cd, c_d) = (*a + *b, *a - *b, *c + *d, *c - *d);
                (*a, *b, *c, *d) = (ab + cd, a_b + c_d, ab - cd, a_b - c_d);
            }
        }
        half *= 4;
    }
    if 2 * half <= values.len() {
        let (low, high) = values.split_at_mut(half);
        for (low, high) in low.iter_mut().zip(high) {
            (*low, *high) = (*low + *high, *low - *high);
        }
    }
}

/// Puts whole floats together from codes, scale and their low 24 bits ([`crate::split`]).
/// Components whose code is 0 come out wrong, for the caller to replace.
#[inline(always)]
pub(super) fn join(codes: &[u8], scale: f32, low: &[u8], high: &[u8], out: &mut [f32]) {
    let one = |code: u8, low: [u8; 2], high: u8| {
        let code = code as i8;
        let fraction = u32::from(u16::from_le_bytes(low)) | (u32::from(high) << 16);
        let magnitude = f32::from(code).abs() - split::BELOW;
        let floor = (magnitude * scale).to_bits();
        let above = fraction.wrapping_sub(floor) & split::COLD_MASK;
        let sign = (i32::from(code) as u32) & (1 << 31);
        f32::from_bits((floor.wrapping_add(above) & !(1 << 31)) | sign)
    };
    let ((codes, codes_rest), low) = (codes.as_chunks::<LANES>(), low.as_chunks::<2>().0);
    let ((low, low_rest), (high, high_rest)) =
        (low.as_chunks::<LANES>(), high.as_chunks::<LANES>());
    let (out, out_rest) = out.as_chunks_mut::<LANES>();
    for (((codes, low), high), out) in codes.iter().zip(low).zip(high).zip(out) {
        for at in 0..LANES {
            out[at] = one(codes[at], low[at], high[at]);
        }
    }
    for (((code, low), high), out) in codes_rest.iter().zip(low_rest).zip(high_rest).zip(out_rest) {
        *out = one(*code, *low, *high);
    }
}

/// Codes as floats, times `scale`.
#[inline(always)]
pub(super) fn widen(codes: &[u8], scale: f32, out: &mut [f32]) {
    for (out, code) in out.iter_mut().zip(codes) {
        *out = f32::from(*code as i8) * scale;
    }
}

/// Which of at most 64 codes are 0, lowest bit first.
#[inline(always)]
pub(super) fn zeros(codes: &[u8]) -> u64 {
    codes.iter().enumerate().fold(0, |found, (at, code)| found | (u64::from(*code == 0) << at))
}

/// The largest magnitude.
#[inline(always)]
pub(super) fn largest(values: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let mut lanes = [0.0; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], block[lane].abs());
        }
    }
    lanes.into_iter().chain(rest.iter().map(|x| x.abs())).fold(0.0, larger)
}

/// The nearest integers of `values * inverse`, held within `limit`, as signed bytes.
#[inline(always)]
pub(super) fn round(values: &[f32], inverse: f32, limit: f32, codes: &mut [u8]) {
    for (code, x) in codes.iter_mut().zip(values) {
        // Comparisons in the form of the vector instructions; NaN does not come here.
        let x = x * inverse;
        let x = if x < limit { x } else { limit };
        let x = if x > -limit { x } else { -limit };
        *code = split::round(x) as u8;
    }
}

/// Adds the products of `values` and signed bytes to the lanes; returns the sum of the bytes.
#[inline(always)]
pub(super) fn weigh(lanes: &mut Lanes, values: &[f32], codes: &[u8]) -> i32 {
    let ((values, values_rest), (codes, codes_rest)) =
        (values.as_chunks::<LANES>(), codes.as_chunks::<LANES>());
    let mut sums = [0; LANES];
    for (values, codes) in values.iter().zip(codes) {
        for lane in 0..LANES {
            lanes[lane] += f64::from(values[lane]) * f64::from(codes[lane] as i8);
            sums[lane] += i32::from(codes[lane] as i8);
        }
    }
    let mut sum = sums.iter().sum();
    for ((lane, value), code) in lanes.iter_mut().zip(values_rest).zip(codes_rest) {
        *lane += f64::from(*value) * f64::from(*code as i8);
        sum += i32::from(*code as i8);
    }
    sum
}

/// Turns the signs of `values` where `signs` has its top bit set, and multiplies by `scale`.
#[inline(always)]
pub(super) fn turn(values: &mut [f32], signs: &[u32], scale: f32) {
    for (x, sign) in values.iter_mut().zip(signs) {
        *x = f32::from_bits(x.to_bits() ^ sign) * scale;
    }
}

/// Writes the lowest bits of `numbers`, a multiple of 64 of them, to planes of `stride` bytes.
#[inline(always)]
pub(super) fn slice(numbers: &[u8], planes: &mut [u8], stride: usize) {
    for (at, plane) in planes.chunks_exact_mut(stride).enumerate() {
        for (eight, byte) in numbers.as_chunks::<8>().0.iter().zip(plane) {
            // Bit 8k moves to bit 56 + k; what else the product holds stays below or falls off.
            let bits = (u64::from_le_bytes(*eight) >> at) & 0x0101_0101_0101_0101;
            *byte = (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
        }
    }
}
