//! The kernels in plain Rust. They are the definition: every other level gives the same bits.
//!
//! The loops are written so that a compiler turns them into vector instructions: fixed blocks, no
//! early exits, integer arithmetic or lanes that never meet before the end. The other levels
//! compile these same loops for their instruction sets, except where intrinsics do better.

#![expect(clippy::inline_always, reason = "each level compiles these bodies for itself")]

use super::{LANES, Lanes};

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
    let mut half = 1;
    while half < values.len() {
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                (*low, *high) = (*low + *high, *low - *high);
            }
        }
        half *= 2;
    }
}

/// Puts whole floats together from codes, scale and their low 24 bits ([`crate::split`]).
/// Components whose code is 0 come out wrong, for the caller to replace.
#[inline(always)]
pub(super) fn join(codes: &[u8], scale: f32, low: &[u8], high: &[u8], out: &mut [f32]) {
    let low = low.as_chunks::<2>().0;
    for (((code, low), high), out) in codes.iter().zip(low).zip(high).zip(out) {
        let code = *code as i8;
        let fraction = u32::from(u16::from_le_bytes(*low)) | (u32::from(*high) << 16);
        let magnitude = f32::from(code).abs() - crate::split::BELOW;
        let floor = (magnitude * scale).to_bits();
        let above = fraction.wrapping_sub(floor) & crate::split::COLD_MASK;
        let sign = (i32::from(code) as u32) & (1 << 31);
        *out = f32::from_bits((floor.wrapping_add(above) & !(1 << 31)) | sign);
    }
}
