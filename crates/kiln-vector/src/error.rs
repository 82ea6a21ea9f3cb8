//! What can be wrong with a vector that a caller hands in.

use thiserror::Error;

/// Why a vector, or the shape of an index, is refused. Nothing has changed when one is returned;
/// the commands turn it into a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VectorError {
    /// The vector has another number of dimensions than the index.
    #[error("a vector of {got} dimensions for an index of {expected}")]
    Dimension {
        /// What the index has.
        expected: usize,
        /// What the vector has.
        got: usize,
    },
    /// A component is NaN or infinite. It would compare with nothing, and come first in results.
    #[error("a component of the vector is not a finite number")]
    NotFinite,
    /// The number of dimensions asked for is zero or above the limit.
    #[error("{0} is not a number of dimensions")]
    Limit(usize),
}
