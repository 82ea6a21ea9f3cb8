#![expect(unsafe_code, reason = "kernels are compiled for CPU features found at run time")]

//! The kernels for 64-bit Arm, whose every processor has NEON: 16 bytes at a time.
//!
//! A loop over floats is the scalar one: the compiler knows NEON without being told. Signed bytes
//! have products of 16 bits (`smull`, `smlal2`: two of 127 * 127 fit), summed in pairs to 32 bits
//! (`sadalp`); bits are counted by the byte (`cnt`) and summed in pairs to 16 bits (`uadalp`).
//!
//! Left out: the dot-product instructions (SDOT), which not every processor has.

use std::arch::aarch64::{
    int8x16_t, uint8x16_t, vaddlvq_u16, vaddvq_s32, vandq_u8, vcntq_u8, vdupq_n_s32, vdupq_n_u16,
    vget_low_s8, vld1q_s8, vld1q_u8, vmlal_high_s8, vmull_s8, vpadalq_s16, vpadalq_u8,
};

use super::{Kernels, Level, plane_bytes, scalar};

/// The kernels.
pub(super) fn kernels() -> Kernels {
    Kernels {
        level: Level::Neon,
        dot: scalar::dot,
        l2: scalar::l2,
        // SAFETY: NEON is part of every 64-bit Arm processor.
        dot_bytes: |a, b| unsafe { dot_bytes(a, b) },
        // SAFETY: as above.
        dot_bits: |code, planes| unsafe { dot_bits(code, planes) },
        // SAFETY: as above.
        and_count: |a, b| unsafe { and_count(a, b) },
        transform: scalar::transform,
        join: scalar::join,
        widen: scalar::widen,
        zeros: scalar::zeros,
        largest: scalar::largest,
        round: scalar::round,
        weigh: scalar::weigh,
        turn: scalar::turn,
        slice: scalar::slice,
    }
}

const WIDTH: usize = 16;

#[target_feature(enable = "neon")]
fn dot_bytes(a: &[u8], b: &[u8]) -> i32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<WIDTH>(), b.as_chunks::<WIDTH>());
    let mut sum = vdupq_n_s32(0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (load_signed(a), load_signed(b));
        let products = vmull_s8(vget_low_s8(a), vget_low_s8(b));
        sum = vpadalq_s16(sum, vmlal_high_s8(products, a, b));
    }
    vaddvq_s32(sum) + scalar::dot_bytes(a_rest, b_rest)
}

#[target_feature(enable = "neon")]
fn dot_bits(code: &[u8], planes: &[u8]) -> i32 {
    let stride = plane_bytes(code.len());
    let count = planes.len() / stride;
    let ones = |at: usize| and_count(code, &planes[at * stride..(at + 1) * stride]) << at;
    (0..count - 1).map(ones).sum::<i32>() - ones(count - 1)
}

/// Blocks whose bit counts, 16 for each pair of bytes, fit 16 bits.
const COUNTED: usize = 4095;

#[target_feature(enable = "neon")]
fn and_count(a: &[u8], b: &[u8]) -> i32 {
    let b = &b[..a.len()];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<WIDTH>(), b.as_chunks::<WIDTH>());
    let mut total = scalar::and_count(a_rest, b_rest);
    for (a, b) in a.chunks(COUNTED).zip(b.chunks(COUNTED)) {
        let mut sum = vdupq_n_u16(0);
        for (a, b) in a.iter().zip(b) {
            sum = vpadalq_u8(sum, vcntq_u8(vandq_u8(load(a), load(b))));
        }
        total += vaddlvq_u16(sum) as i32;
    }
    total
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; WIDTH]) -> uint8x16_t {
    // SAFETY: the reference is to 16 readable bytes, and the load asks for no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_signed(bytes: &[u8; WIDTH]) -> int8x16_t {
    // SAFETY: the reference is to 16 readable bytes, and the load asks for no alignment.
    unsafe { vld1q_s8(bytes.as_ptr().cast()) }
}
