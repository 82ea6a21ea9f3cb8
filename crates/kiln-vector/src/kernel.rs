//! The arithmetic under every distance, in the best form that the processor has.
//!
//! ```text
//! level     chosen when the processor has        bytes                 bits
//! Avx512    F, BW, VL, VNNI, VPOPCNTDQ           dpbusd                vpopcntq
//! Avx2      AVX2                                 maddubs               nibble look-up
//! Neon      aarch64                              smull, sadalp         cnt
//! Scalar    always                               plain Rust            plain Rust
//! ```
//!
//! A level is chosen once ([`Kernels::best`]) and then called through function pointers.
//!
//! **Every level gives the same bits.** Sums of bytes and of bits are integers. Sums of floats run
//! over [`LANES`] accumulators of 64 bits, always the same lane for the same place, put together
//! by the same tree ([`sum`]); products of two `f32` are exact in `f64`, so fusing changes
//! nothing. The transform is the same network of additions at any width. So an index built on one
//! machine answers alike on another, and a replica agrees with its primary.
//!
//! Left out: sums in `f32` (twice as fast for whole rows, but a search reads those only to
//! re-rank, where the memory is what it waits for), and int8 matrix instructions (AMX, SMMLA).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use std::sync::LazyLock;

/// Accumulators of a float sum.
pub(crate) const LANES: usize = 32;

/// The accumulators of a float sum.
pub(crate) type Lanes = [f64; LANES];

/// Which instruction set the kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Level {
    /// x86-64 with AVX-512 F, BW, VL, VNNI and VPOPCNTDQ: servers since 2019, Zen 4 and later.
    Avx512,
    /// x86-64 with AVX2 and FMA: nearly all since 2013.
    Avx2,
    /// 64-bit Arm.
    Neon,
    /// Plain Rust for any processor.
    Scalar,
}

impl Level {
    /// Every level that this processor can run, the best first.
    pub fn all() -> Vec<Level> {
        Kernels::all().iter().map(|kernels| kernels.level).collect()
    }
}

/// See [`Kernels::join`].
type Join = fn(&[u8], f32, &[u8], &[u8], &mut [f32]);

/// One level's functions. All of them take rows of any length, equal where there are two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernels {
    pub(crate) level: Level,
    /// Adds the products of two rows to the lanes.
    pub(crate) dot: fn(&mut Lanes, &[f32], &[f32]),
    /// Adds the squared differences of two rows to the lanes.
    pub(crate) l2: fn(&mut Lanes, &[f32], &[f32]),
    /// The dot product of two rows of signed bytes, each from -127 to 127.
    pub(crate) dot_bytes: fn(&[u8], &[u8]) -> i32,
    /// The sum of the numbers at the places where a code has a 1. The code is whole words of 8
    /// bytes; the numbers are bit planes of [`plane_bytes`] each, lowest first, the last of them
    /// negative as in two's complement.
    pub(crate) dot_bits: fn(&[u8], &[u8]) -> i32,
    /// How many bits are 1 in both; the first is whole words, the second at least as long.
    pub(crate) and_count: fn(&[u8], &[u8]) -> i32,
    /// The Walsh-Hadamard transform, unscaled, in place; the length is a power of two.
    pub(crate) transform: fn(&mut [f32]),
    /// Codes, scale, low halves and high bytes of the cold plane to floats ([`crate::split`]).
    pub(crate) join: Join,
    /// Signed bytes as floats, times a scale.
    pub(crate) widen: fn(&[u8], f32, &mut [f32]),
    /// Which of at most 64 bytes are 0, lowest bit first.
    pub(crate) zeros: fn(&[u8]) -> u64,
    /// The largest magnitude.
    pub(crate) largest: fn(&[f32]) -> f32,
    /// The nearest integers of floats times a factor, held within a limit, as signed bytes.
    pub(crate) round: fn(&[f32], f32, f32, &mut [u8]),
    /// Adds the products of floats and signed bytes to the lanes; returns the sum of the bytes.
    pub(crate) weigh: fn(&mut Lanes, &[f32], &[u8]) -> i32,
    /// Turns the signs of floats where words have their top bit set, and multiplies by a factor.
    pub(crate) turn: fn(&mut [f32], &[u32], f32),
    /// Writes the lowest bits of bytes, a multiple of 64 of them, to planes of so many bytes, all
    /// of them whole cache lines.
    pub(crate) slice: fn(&[u8], &mut [u8], usize),
}

const SCALAR: Kernels = Kernels {
    level: Level::Scalar,
    dot: scalar::dot,
    l2: scalar::l2,
    dot_bytes: scalar::dot_bytes,
    dot_bits: scalar::dot_bits,
    and_count: scalar::and_count,
    transform: scalar::transform,
    join: scalar::join,
    widen: scalar::widen,
    zeros: scalar::zeros,
    largest: scalar::largest,
    round: scalar::round,
    weigh: scalar::weigh,
    turn: scalar::turn,
    slice: scalar::slice,
};

impl Kernels {
    /// Every level that this processor can run, the best first.
    pub(crate) fn all() -> Vec<Kernels> {
        #[cfg(target_arch = "x86_64")]
        let found = [avx512::kernels(), avx2::kernels()];
        #[cfg(target_arch = "aarch64")]
        let found = [Some(neon::kernels())];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let found = [];
        found.into_iter().flatten().chain([SCALAR]).collect()
    }

    /// The best level that this processor can run, found once.
    pub(crate) fn best() -> Kernels {
        static BEST: LazyLock<Kernels> = LazyLock::new(|| Kernels::all()[0]);
        *BEST
    }
}

/// The bytes of one bit plane for a code of `code_bytes`: whole cache lines, zeros at the end.
pub(crate) const fn plane_bytes(code_bytes: usize) -> usize {
    code_bytes.next_multiple_of(64)
}

/// The lanes put together, always in the same order.
pub(crate) fn sum(lanes: &Lanes) -> f64 {
    let mut lanes = *lanes;
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests;
