//! The lossless split of float32: 8 bits to search by, 24 bits to complete them.
//!
//! ```text
//! f32     s eeeeeee e fffffffffffffffffffffff
//!         └───┬───┘ └──────────┬────────────┘
//! hot     code = round(x / scale), a signed byte, scale = max|x| / 127
//! cold              the low 24 bits: all low halves (u16, little endian), then all high bytes
//! side    the top byte as it is, only for components whose code is 0
//! ```
//!
//! Why it is lossless: a code other than 0 gives the sign and pins |x| between (|code| - 1/2) and
//! (|code| + 1/2) scales, a factor of at most 3; two floats of the same sign and the same low 24
//! bits differ by a factor of at least 4. So one top byte fits: that of the smallest such float
//! above the lower bound. The bound used lies a little lower ([`BELOW`]) so that rounding of the
//! scale cannot matter. [`encode`] checks what it wrote: a vector that does not come back bit for
//! bit (scales near the smallest floats only) is kept whole in the side bytes, as 4 bytes per
//! component, and told apart by that length.
//!
//! Codes of 0 are some 2% of real embeddings: 7 side bytes at 384 dimensions, 30 at 1536.

use crate::kernel::Kernels;

/// The largest code.
pub(crate) const CODE_MAX: f32 = 127.0;

/// How far under |code| the smallest |x| / scale may lie: a half, and a margin for rounding. The
/// bounds stay less than a factor of 4 apart: (1 + 1/2) / (1 - 9/16) = 3.4.
pub(crate) const BELOW: f32 = 0.5625;

/// The bits of a float that the cold plane keeps.
pub(crate) const COLD_MASK: u32 = 0x00FF_FFFF;

/// Components decoded at a time; a multiple of [`crate::kernel::LANES`].
pub(crate) const BLOCK: usize = 256;

/// The bytes of a cold plane.
pub(crate) const fn cold_bytes(dim: usize) -> usize {
    3 * dim
}

/// Writes the codes of `vector` and returns the scale: `vector[i]` is about `codes[i] * scale`.
/// Codes beyond the vector become 0. Infinitely small scales give codes of 0.
pub(crate) fn quantise(kernels: &Kernels, vector: &[f32], codes: &mut [u8]) -> f64 {
    let max = (kernels.largest)(vector);
    // In double: the scale of a tiny vector is no float32, and its inverse would be infinite.
    let scale = f64::from(max) / f64::from(CODE_MAX);
    let inverse = if max > 0.0 { 1.0 / scale } else { 0.0 };
    let (used, unused) = codes.split_at_mut(vector.len());
    if inverse < 1e30 {
        (kernels.round)(vector, inverse as f32, CODE_MAX, used);
    } else {
        for (code, x) in used.iter_mut().zip(vector) {
            *code = round((f64::from(*x) * inverse) as f32) as u8;
        }
    }
    unused.fill(0);
    scale
}

/// The nearest integer of a number below 2^22, ties to even. Adding 1.5 * 2^23 leaves no room for
/// a fraction; unlike `f32::round` it needs no instruction that old processors lack.
#[inline(always)]
pub(crate) fn round(x: f32) -> i32 {
    const SHIFT: f32 = 12_582_912.0;
    (x + SHIFT).to_bits() as i32 - SHIFT.to_bits() as i32
}

/// Splits `vector`: codes to `hot`, the rest to `cold` and `side` (empty before). `scale` is what
/// [`decode`] will be told: about what [`quantise`] returns, to seven digits.
pub(crate) fn encode(
    kernels: &Kernels,
    vector: &[f32],
    scale: f64,
    hot: &mut [u8],
    cold: &mut [u8],
    side: &mut Vec<u8>,
) {
    quantise(kernels, vector, hot);
    let (low, high) = cold.split_at_mut(2 * vector.len());
    for (((x, low), high), code) in
        vector.iter().zip(low.as_chunks_mut::<2>().0).zip(high).zip(&*hot)
    {
        let [a, b, c, top] = x.to_bits().to_le_bytes();
        (*low, *high) = ([a, b], c);
        if *code == 0 {
            side.push(top);
        }
    }
    let mut at = 0;
    let same = decode(kernels, vector.len(), hot, scale, cold, side, |block| {
        let same = block.iter().zip(&vector[at..]).all(|(a, b)| a.to_bits() == b.to_bits());
        at += block.len();
        same
    });
    if !same {
        side.clear();
        side.extend(vector.iter().flat_map(|x| x.to_le_bytes()));
    }
}

/// Hands the components of a split vector to `use_block`, [`BLOCK`] at a time and in order, for as
/// long as it says true. Returns whether it always did.
#[inline]
pub(crate) fn decode(
    kernels: &Kernels,
    dim: usize,
    hot: &[u8],
    scale: f64,
    cold: &[u8],
    side: &[u8],
    mut use_block: impl FnMut(&[f32]) -> bool,
) -> bool {
    let mut block = [0.0; BLOCK];
    let is_whole = side.len() == 4 * dim;
    let mut side = side.iter();
    let (low, high) = cold.split_at(if cold.is_empty() { 0 } else { 2 * dim });
    for start in (0..dim).step_by(BLOCK) {
        let end = dim.min(start + BLOCK);
        let block = &mut block[..end - start];
        if is_whole {
            let bytes = side.as_slice().as_chunks::<4>().0;
            for (x, bytes) in block.iter_mut().zip(&bytes[start..end]) {
                *x = f32::from_le_bytes(*bytes);
            }
        } else {
            let codes = &hot[start..end];
            let (low, high) = (&low[2 * start..2 * end], &high[start..end]);
            (kernels.join)(codes, scale as f32, low, high, block);
            for (word, codes) in codes.chunks(64).enumerate() {
                let mut zeros = (kernels.zeros)(codes);
                while zeros != 0 {
                    let at = 64 * word + zeros.trailing_zeros() as usize;
                    // A side byte is missing only if the caller mixed up nodes: any will do then.
                    let top = side.next().copied().unwrap_or_default();
                    block[at] = f32::from_le_bytes([low[2 * at], low[2 * at + 1], high[at], top]);
                    zeros &= zeros - 1;
                }
            }
        }
        if !use_block(block) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    use super::{CODE_MAX, cold_bytes, decode, encode};
    use crate::kernel::Kernels;

    /// Encodes, decodes on every level, compares bit for bit. Returns whether the fallback was
    /// needed.
    fn check(vector: &[f32]) -> bool {
        let dim = vector.len();
        let mut wanted = None;
        for kernels in Kernels::all() {
            let (mut hot, mut cold) = (vec![0; dim + 3], vec![0; cold_bytes(dim)]);
            let mut side = Vec::new();
            let scale = f64::from((kernels.largest)(vector)) / f64::from(CODE_MAX);
            encode(&kernels, vector, scale, &mut hot, &mut cold, &mut side);
            let mut back = Vec::new();
            decode(&kernels, dim, &hot, scale, &cold, &side, |block| {
                back.extend(block.iter().map(|x| x.to_bits()));
                true
            });
            let bits: Vec<u32> = vector.iter().map(|x| x.to_bits()).collect();
            assert_eq!(back, bits, "{:?}", kernels.level);
            assert_eq!(hot[dim..], [0; 3]);
            let got = (hot, cold, side, scale.to_bits());
            assert_eq!(wanted.get_or_insert_with(|| got.clone()), &got, "{:?}", kernels.level);
        }
        wanted.is_some_and(|(_, _, side, _)| side.len() == 4 * dim)
    }

    /// Floats of one order of magnitude, with zeros and far smaller ones between.
    fn components() -> impl Strategy<Value = Vec<f32>> {
        (-126..127_i32).prop_flat_map(|exponent| {
            let unit = 2_f32.powi(exponent);
            let x = prop_oneof![
                12 => (-1.0..1.0_f32).prop_map(move |x| x * unit),
                1 => Just(0.0), 1 => Just(-0.0), 1 => Just(unit / 254.0),
                1 => (-1e-9..1e-9_f32).prop_map(move |x| x * unit),
                1 => Just(f32::from_bits(1)),
            ];
            vec(x, 1..700)
        })
    }

    proptest! {
        #[test]
        fn vectors_come_back_bit_for_bit(vector in components()) {
            check(&vector);
        }

        #[test]
        fn any_finite_floats_come_back(bits in vec(any::<u32>(), 1..300)) {
            let finite = bits.into_iter().map(f32::from_bits).filter(|x| x.is_finite());
            let vector: Vec<f32> = finite.collect();
            if !vector.is_empty() {
                check(&vector);
            }
        }
    }

    #[test]
    fn ordinary_vectors_need_no_fallback_and_the_smallest_do() {
        let wave = |scale: f32| (0..384).map(|i| (i as f32).sin() * scale).collect::<Vec<_>>();
        assert!(!check(&wave(1.0)));
        assert!(!check(&wave(1e-30)));
        assert!(!check(&wave(f32::MAX)));
        // A scale of 0.6 times the smallest float rounds to 1 times it.
        assert!(check(&[f32::from_bits(76); 3]));
        assert!(!check(&[0.0; 5]));
        // Every boundary between two codes, from both sides.
        let edges: Vec<f32> = (0..127)
            .flat_map(|code| {
                let edge = (code as f32 + 0.5) / 127.0;
                [edge.next_down(), edge, edge.next_up(), -edge]
            })
            .chain([1.0])
            .collect();
        assert!(!check(&edges));
    }
}
