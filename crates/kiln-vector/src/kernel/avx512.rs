#![expect(unsafe_code, reason = "kernels are compiled for CPU features found at run time")]

//! The kernels for x86-64 with AVX-512 and its byte products and bit counts: 64 bytes at a time.
//!
//! A loop over floats is the scalar one, compiled for these instructions. `vpdpbusd` multiplies
//! unsigned bytes by signed ones, so 128 is added to one side (its top bit turned), and 128 times
//! the sum of the other taken off the result. `vpopcntq` counts the bits of eight words.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512, _mm512_dpbusd_epi32,
    _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_popcnt_epi64, _mm512_reduce_add_epi32,
    _mm512_reduce_add_epi64, _mm512_set1_epi8, _mm512_setzero_si512, _mm512_slli_epi64,
    _mm512_sub_epi32, _mm512_sub_epi64, _mm512_test_epi8_mask, _mm512_testn_epi8_mask,
    _mm512_xor_si512,
};

use super::{Kernels, Lanes, Level, avx2, plane_bytes, scalar};

/// The kernels, if this processor has what they need.
pub(super) fn kernels() -> Option<Kernels> {
    let found = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx512vpopcntdq");
    if !found {
        return None;
    }
    Some(Kernels {
        level: Level::Avx512,
        // SAFETY: the processor has the features asked for, by the check above; so in all below.
        dot: |lanes, a, b| unsafe { dot(lanes, a, b) },
        // SAFETY: as above.
        l2: |lanes, a, b| unsafe { l2(lanes, a, b) },
        // SAFETY: as above.
        dot_bytes: |a, b| unsafe { dot_bytes(a, b) },
        // SAFETY: as above.
        dot_bits: |code, planes| unsafe { dot_bits(code, planes) },
        // SAFETY: as above.
        and_count: |a, b| unsafe { and_count(a, b) },
        // SAFETY: as above.
        transform: |values| unsafe { avx2::transform(values) },
        // SAFETY: as above.
        join: |codes, scale, low, high, out| unsafe { join(codes, scale, low, high, out) },
        // SAFETY: as above.
        widen: |codes, scale, out| unsafe { widen(codes, scale, out) },
        // SAFETY: as above.
        zeros: |codes| unsafe { zeros(codes) },
        // SAFETY: as above.
        largest: |values| unsafe { largest(values) },
        // SAFETY: as above.
        round: |values, inverse, limit, codes| unsafe { round(values, inverse, limit, codes) },
        // SAFETY: as above.
        weigh: |lanes, values, codes| unsafe { weigh(lanes, values, codes) },
        // SAFETY: as above.
        turn: |values, signs, scale| unsafe { turn(values, signs, scale) },
        // SAFETY: as above.
        slice: |numbers, planes, stride| unsafe { slice(numbers, planes, stride) },
    })
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn dot(lanes: &mut Lanes, a: &[f32], b: &[f32]) {
    scalar::dot(lanes, a, b);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn l2(lanes: &mut Lanes, a: &[f32], b: &[f32]) {
    scalar::l2(lanes, a, b);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn join(codes: &[u8], scale: f32, low: &[u8], high: &[u8], out: &mut [f32]) {
    scalar::join(codes, scale, low, high, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn widen(codes: &[u8], scale: f32, out: &mut [f32]) {
    scalar::widen(codes, scale, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn largest(values: &[f32]) -> f32 {
    scalar::largest(values)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn round(values: &[f32], inverse: f32, limit: f32, codes: &mut [u8]) {
    scalar::round(values, inverse, limit, codes);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn weigh(lanes: &mut Lanes, values: &[f32], codes: &[u8]) -> i32 {
    scalar::weigh(lanes, values, codes)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn turn(values: &mut [f32], signs: &[u32], scale: f32) {
    scalar::turn(values, signs, scale);
}

const WIDTH: usize = 64;

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dot_bytes(a: &[u8], b: &[u8]) -> i32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<WIDTH>(), b.as_chunks::<WIDTH>());
    let ((a_pairs, a_odd), (b_pairs, b_odd)) = (a.as_chunks::<2>(), b.as_chunks::<2>());
    let zero = _mm512_setzero_si512();
    let offset = _mm512_set1_epi8(-128);
    // Products of b by a + 128, and of b by 128; two of each, as one waits for the one before.
    let (mut sums, mut offsets) = ([zero; 2], [zero; 2]);
    for (a, b) in a_pairs.iter().zip(b_pairs) {
        for at in 0..2 {
            let (a, b) = (load(&a[at]), load(&b[at]));
            sums[at] = _mm512_dpbusd_epi32(sums[at], _mm512_xor_si512(a, offset), b);
            offsets[at] = _mm512_dpbusd_epi32(offsets[at], offset, b);
        }
    }
    for (a, b) in a_odd.iter().zip(b_odd) {
        let (a, b) = (load(a), load(b));
        sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_xor_si512(a, offset), b);
        offsets[0] = _mm512_dpbusd_epi32(offsets[0], offset, b);
    }
    // A sum with its offset may wrap around, and unwraps when the offset is taken off.
    let sum = _mm512_add_epi32(sums[0], sums[1]);
    let sum = _mm512_sub_epi32(sum, _mm512_add_epi32(offsets[0], offsets[1]));
    _mm512_reduce_add_epi32(sum) + scalar::dot_bytes(a_rest, b_rest)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
fn dot_bits(code: &[u8], planes: &[u8]) -> i32 {
    let stride = plane_bytes(code.len());
    if planes.len() == 4 * stride {
        return dot_four(code, planes, stride);
    }
    let count = planes.len() / stride;
    let ones = |at: usize| and_count(code, &planes[at * stride..(at + 1) * stride]) << at;
    (0..count - 1).map(ones).sum::<i32>() - ones(count - 1)
}

/// [`dot_bits`] for four planes, with the code read once.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
fn dot_four(code: &[u8], planes: &[u8], stride: usize) -> i32 {
    let (first, rest) = planes.split_at(stride);
    let (second, rest) = rest.split_at(stride);
    let (third, fourth) = rest.split_at(stride);
    let zero = _mm512_setzero_si512();
    let mut sums = [zero; 4];
    for (at, bits) in code.chunks(WIDTH).enumerate() {
        let bits = load_some(bits);
        for (sum, plane) in sums.iter_mut().zip([first, second, third, fourth]) {
            let plane = plane[at * WIDTH..].first_chunk().expect("planes are whole cache lines");
            let ones = _mm512_popcnt_epi64(_mm512_and_si512(bits, load(plane)));
            *sum = _mm512_add_epi64(*sum, ones);
        }
    }
    let low = _mm512_add_epi64(sums[0], _mm512_slli_epi64::<1>(sums[1]));
    let high = _mm512_sub_epi64(sums[2], _mm512_slli_epi64::<1>(sums[3]));
    _mm512_reduce_add_epi64(_mm512_add_epi64(low, _mm512_slli_epi64::<2>(high))) as i32
}

#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
fn and_count(a: &[u8], b: &[u8]) -> i32 {
    let mut sum = _mm512_setzero_si512();
    for (a, b) in a.chunks(WIDTH).zip(b.chunks(WIDTH)) {
        let both = _mm512_and_si512(load_some(a), load_some(b));
        sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(both));
    }
    _mm512_reduce_add_epi64(sum) as i32
}

#[target_feature(enable = "avx512f,avx512bw")]
fn zeros(codes: &[u8]) -> u64 {
    let mask = if codes.len() < WIDTH { (1 << codes.len()) - 1 } else { u64::MAX };
    let codes = load_some(codes);
    _mm512_testn_epi8_mask(codes, codes) & mask
}

#[target_feature(enable = "avx512f,avx512bw")]
fn slice(numbers: &[u8], planes: &mut [u8], stride: usize) {
    for (at, numbers) in numbers.as_chunks::<WIDTH>().0.iter().enumerate() {
        let numbers = load(numbers);
        for (bit, plane) in planes.chunks_exact_mut(stride).enumerate() {
            let bits = _mm512_test_epi8_mask(numbers, _mm512_set1_epi8(1 << bit));
            plane[at * 8..at * 8 + 8].copy_from_slice(&bits.to_le_bytes());
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; WIDTH]) -> __m512i {
    // SAFETY: the reference is to 64 readable bytes, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// At most 64 bytes, and zeros for what is missing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_some(bytes: &[u8]) -> __m512i {
    if let Some(bytes) = bytes.first_chunk() {
        return load(bytes);
    }
    let mask = (1 << bytes.len()) - 1;
    // SAFETY: the mask, of fewer bits than 64, admits the slice's bytes only; others are not read.
    unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}
