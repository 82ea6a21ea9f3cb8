//! Vector search as a library: how vectors are stored, and how far apart they are.
//!
//! ```text
//! Codec      one per index: vectors to bytes, bytes to distances
//! Query      what a codec prepares once and compares with many stored vectors
//! Projection fewer dimensions (REDUCE)
//! ```
//!
//! It knows nothing of keys, commands or the wire, and is usable without the server.

mod code;
mod codec;
mod error;
mod kernel;
mod metric;
mod reduce;
mod rotate;
mod split;

pub use codec::{Codec, CodecConfig, DIM_MAX, Layout, NodeMut, NodeRef, Quantization, Query};
pub use error::VectorError;
pub use kernel::Level;
pub use metric::Metric;
pub use reduce::Projection;
