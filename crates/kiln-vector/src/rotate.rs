//! A random rotation that costs `n log n`: signs and two overlapping Walsh-Hadamard transforms.
//!
//! ```text
//! 0            dim - span        span            dim
//! ├──────── signs, transform ─────┤
//!                  ├──────── signs, transform ────┤      span: the largest power of two <= dim
//! ```
//!
//! It keeps lengths and angles, and it spreads every component over many, so that one bit or a
//! few per component say as much about each vector as about any other. A padded transform would
//! need up to twice the bits.
//!
//! Source: Gao and Long, "RaBitQ" (2024), and the fast Johnson-Lindenstrauss transform of Ailon
//! and Chazelle (2006). Left out: a learned rotation.

use crate::kernel::Kernels;

const SIGN: u32 = 1 << 31;

/// A rotation of vectors of one length. The same seed gives the same rotation everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Rotation {
    span: usize,
    /// 0 or [`SIGN`] for each component, before the first and before the second transform.
    signs: [Vec<u32>; 2],
    /// What keeps a transform's length: 1 / sqrt(span).
    unit: f32,
}

impl Rotation {
    /// `dim` is 1 or more.
    pub(crate) fn new(dim: usize, seed: u64) -> Rotation {
        let span = 1 << dim.ilog2();
        let mut random = Random(seed);
        let mut signs = || (0..dim).map(|_| random.next() as u32 & SIGN).collect();
        let signs = [signs(), signs()];
        Rotation { span, signs, unit: 1.0 / (span as f32).sqrt() }
    }

    pub(crate) fn apply(&self, kernels: &Kernels, vector: &mut [f32]) {
        let span = self.span;
        let end = vector.len() - span;
        (kernels.turn)(vector, &self.signs[0], 1.0);
        (kernels.transform)(&mut vector[..span]);
        (kernels.turn)(&mut vector[..span], &self.signs[1], self.unit);
        (kernels.turn)(&mut vector[span..], &self.signs[1][span..], 1.0);
        (kernels.transform)(&mut vector[end..]);
        for x in &mut vector[end..] {
            *x *= self.unit;
        }
    }

    /// Undoes [`Rotation::apply`]: each of its steps is its own inverse.
    pub(crate) fn undo(&self, kernels: &Kernels, vector: &mut [f32]) {
        let span = self.span;
        let end = vector.len() - span;
        (kernels.transform)(&mut vector[end..]);
        (kernels.turn)(&mut vector[end..], &self.signs[1][end..], self.unit);
        (kernels.turn)(&mut vector[..end], &self.signs[1], 1.0);
        (kernels.transform)(&mut vector[..span]);
        (kernels.turn)(&mut vector[..span], &self.signs[0], self.unit);
        (kernels.turn)(&mut vector[span..], &self.signs[0][span..], 1.0);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.signs.iter().map(|signs| signs.capacity() * size_of::<u32>()).sum()
    }
}

/// `SplitMix64`: small, and the same numbers in every release, as stored codes need.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::Rotation;
    use crate::kernel::{Kernels, LANES, sum};

    #[test]
    fn lengths_are_kept_energy_is_spread_and_undo_undoes() {
        for dim in [1, 2, 3, 31, 64, 100, 384, 1000, 1536, 4097] {
            let rotation = Rotation::new(dim, 7);
            for at in [0, dim / 2, dim - 1] {
                let mut vector = vec![0.0_f32; dim];
                vector[at] = 1.0;
                rotation.apply(&Kernels::best(), &mut vector);
                let mut lanes = [0.0; LANES];
                (Kernels::best().dot)(&mut lanes, &vector, &vector);
                assert!((sum(&lanes) - 1.0).abs() < 1e-5, "{dim}");
                let largest = (Kernels::best().largest)(&vector);
                assert!(largest <= 5.0 / (dim as f32).sqrt(), "{dim} {at} {largest}");
                rotation.undo(&Kernels::best(), &mut vector);
                let far = vector.iter().enumerate().any(|(i, x)| {
                    let wanted = if i == at { 1.0 } else { 0.0 };
                    (x - wanted).abs() > 1e-5
                });
                assert!(!far, "{dim}");
            }
        }
    }
}
