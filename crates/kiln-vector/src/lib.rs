//! Vector search as a library: how vectors are stored, how far apart they are, and a graph over
//! them that answers which are nearest.
//!
//! ```text
//! Index      names, vectors and the graph: insert, remove, search, save, load
//! Codec      one per index: vectors to bytes, bytes to distances
//! Query      what a codec prepares once and compares with many stored vectors
//! Projection fewer dimensions (REDUCE)
//! ```
//!
//! It knows nothing of keys, commands or the wire, and is usable without the server.

mod among;
mod arena;
mod code;
mod codec;
mod epoch;
mod error;
mod filter;
mod graph;
mod image;
mod index;
mod info;
mod insert;
mod kernel;
mod lines;
mod links;
mod metric;
mod names;
mod node;
mod reduce;
mod remove;
mod rotate;
mod sample;
mod scan;
mod scratch;
mod search;
mod select;
mod split;
mod thin;
mod verify;
mod walk;

pub use codec::{Codec, CodecConfig, DIM_MAX, Layout, NodeMut, NodeRef, Quantization, Query};
pub use error::VectorError;
pub use filter::Filter;
pub use image::LoadError;
pub use index::{Index, IndexConfig, M_RANGE, Pending, Published, Retired, Suspended};
pub use info::{Info, Link};
pub use kernel::Level;
pub use metric::Metric;
pub use reduce::Projection;
pub use search::{Hit, Request, Target};
pub use verify::Broken;
