//! Fewer dimensions by a random projection: what REDUCE asks for.
//!
//! The vector is padded to a power of two, has random signs, a Walsh-Hadamard transform, signs and
//! a transform again; some of the results, chosen at random, scaled to keep the expected length,
//! are the reduced vector. Distances are kept within about `1 / sqrt(to)`. No matrix is stored: a
//! projection of 1536 to 300 dimensions takes 18 kB and some 10 µs, where a matrix takes 1.8 MB.
//!
//! Source: Johnson and Lindenstrauss (1984); Ailon and Chazelle (2006). Left out: a projection
//! learned from the data.

use crate::codec::DIM_MAX;
use crate::error::VectorError;
use crate::kernel::Kernels;
use crate::rotate::{Random, Rotation};

/// A random linear map to fewer dimensions. The same dimensions and seed give the same map.
#[derive(Debug, Clone)]
pub struct Projection {
    from: usize,
    rotation: Rotation,
    /// The places kept, of the padded vector.
    kept: Vec<u32>,
    scale: f32,
}

impl Projection {
    /// A map from `from` dimensions to `to`, which may also be more than `from`.
    ///
    /// # Errors
    ///
    /// [`VectorError::Limit`] if either is 0 or above [`DIM_MAX`].
    pub fn new(from: usize, to: usize, seed: u64) -> Result<Projection, VectorError> {
        for dim in [from, to] {
            if dim == 0 || dim > DIM_MAX {
                return Err(VectorError::Limit(dim));
            }
        }
        let padded = from.max(to).next_power_of_two();
        let mut random = Random(seed ^ 0x5EED_0F9B_0AEC_7107);
        // The first places of a random permutation.
        let mut places: Vec<u32> = (0..padded as u32).collect();
        for at in 0..to {
            let range = (padded - at) as u64;
            let other = (u128::from(random.next()) * u128::from(range)) >> 64;
            places.swap(at, at + other as usize);
        }
        places.truncate(to);
        let scale = (padded as f64 / to as f64).sqrt() as f32;
        Ok(Projection { from, rotation: Rotation::new(padded, seed), kept: places, scale })
    }

    /// The dimensions that come in.
    pub fn from(&self) -> usize {
        self.from
    }

    /// The dimensions that come out.
    pub fn to(&self) -> usize {
        self.kept.len()
    }

    /// The projection of `vector`, replacing what is in `out`.
    ///
    /// # Errors
    ///
    /// [`VectorError::Dimension`], then [`VectorError::NotFinite`]; `out` is untouched. A vector
    /// of huge components whose projection would be infinite is not finite either.
    pub fn apply(&self, vector: &[f32], out: &mut Vec<f32>) -> Result<(), VectorError> {
        if vector.len() != self.from {
            return Err(VectorError::Dimension { expected: self.from, got: vector.len() });
        }
        let mut padded = vector.to_vec();
        padded.resize(self.from.max(self.to()).next_power_of_two(), 0.0);
        self.rotation.apply(&Kernels::best(), &mut padded);
        if !padded.iter().all(|x| (x * self.scale).is_finite()) {
            return Err(VectorError::NotFinite);
        }
        out.clear();
        out.extend(self.kept.iter().map(|place| padded[*place as usize] * self.scale));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Projection;
    use crate::error::VectorError;
    use crate::rotate::Random;

    fn length(vector: &[f32]) -> f32 {
        vector.iter().map(|x| x * x).sum::<f32>().sqrt()
    }

    #[test]
    fn distances_are_about_kept() {
        let mut random = Random(5);
        for (from, to) in [(1536, 300), (1000, 200), (384, 384), (100, 400)] {
            let projection = Projection::new(from, to, 9).expect("dimensions within the limit");
            for round in 0..20 {
                // Some vectors have all their length in one place.
                let vector: Vec<f32> = (0..from)
                    .map(|at| {
                        let x = random.next() as i64 as f32 / i64::MAX as f32;
                        if round % 2 == 0 || at == 3 { x } else { 0.0 }
                    })
                    .collect();
                let mut out = Vec::new();
                projection.apply(&vector, &mut out).expect("finite and of the right length");
                assert_eq!(out.len(), to);
                let ratio = length(&out) / length(&vector);
                assert!((ratio - 1.0).abs() < 4.0 / (to as f32).sqrt(), "{from} {to} {ratio}");
            }
        }
    }

    #[test]
    fn wrong_input_is_refused() {
        let limit = |from, to| Projection::new(from, to, 1).err();
        assert_eq!(limit(0, 3), Some(VectorError::Limit(0)));
        assert_eq!(limit(3, 65_537), Some(VectorError::Limit(65_537)));
        let projection = Projection::new(3, 2, 1).expect("dimensions within the limit");
        let mut out = Vec::new();
        let got = projection.apply(&[1.0; 4], &mut out);
        assert_eq!(got, Err(VectorError::Dimension { expected: 3, got: 4 }));
        for bad in [f32::NAN, f32::INFINITY] {
            assert_eq!(projection.apply(&[1.0, bad, 0.0], &mut out), Err(VectorError::NotFinite));
        }
    }
}
