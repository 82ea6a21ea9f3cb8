//! Sockets and the workers that serve them.
//!
//! ```text
//! acceptor ─► the worker with the fewest connections ─► a task for each connection, for its life
//! ```
//!
//! Each worker is a thread with a single-threaded tokio runtime. It runs its connections' commands
//! itself, on the keyspace that all share: nothing is handed from thread to thread. Sockets are
//! opened here and nowhere else.

mod acceptor;
mod connection;
mod worker;

pub use acceptor::{ListenError, Listeners, listen};
pub use worker::{Workers, start_workers};
