//! What "near" means: the three metrics and the distance each ranks by.

/// How two vectors are compared. A distance is smaller when nearer, always finite, never NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// `1 - cos`, from 0 to 2. A zero vector is at right angles to everything: 1.
    Cosine,
    /// The squared Euclidean distance; ranking needs no root, so [`Metric::wire`] takes it.
    L2,
    /// The negated dot product: no offset, so that small products keep their digits;
    /// [`Metric::wire`] adds it.
    InnerProduct,
}

impl Metric {
    /// The distance as a client understands it: `1 - cos`, the Euclidean distance, `1 - dot`.
    pub fn wire(self, distance: f32) -> f32 {
        match self {
            Metric::Cosine => distance,
            Metric::L2 => distance.sqrt(),
            Metric::InnerProduct => 1.0 + distance,
        }
    }

    /// The distance from a dot product and the squared lengths of both vectors.
    #[inline]
    pub(crate) fn distance(self, dot: f64, length_a: f64, length_b: f64) -> f32 {
        match self {
            Metric::Cosine => {
                // The root of the product, not the product of the roots: for equal vectors it is
                // exactly `dot`, so a vector is at distance 0 from itself.
                let lengths = (length_a * length_b).sqrt();
                let cosine = if lengths > 0.0 { dot / lengths } else { 0.0 };
                (1.0 - cosine).clamp(0.0, 2.0) as f32
            }
            Metric::L2 => narrow((length_a + length_b - 2.0 * dot).max(0.0)),
            Metric::InnerProduct => narrow(-dot),
        }
    }
}

/// `f64` to `f32`, held inside the finite ones: distances of huge vectors still compare.
#[inline]
pub(crate) fn narrow(wide: f64) -> f32 {
    wide.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

#[cfg(test)]
mod tests {
    use super::Metric;

    #[test]
    fn distances_are_finite_and_a_zero_vector_is_at_right_angles() {
        assert_eq!(Metric::Cosine.distance(0.0, 0.0, 1.0).to_bits(), 1.0_f32.to_bits());
        for length in [1e-90, 0.3, 7.0, 1e82] {
            assert_eq!(Metric::Cosine.distance(length, length, length).to_bits(), 0);
            assert!(Metric::L2.distance(-length, length, length).is_finite());
            assert!(Metric::InnerProduct.distance(-length, length, length).is_finite());
        }
        assert_eq!(Metric::L2.wire(9.0).to_bits(), 3.0_f32.to_bits());
    }
}
