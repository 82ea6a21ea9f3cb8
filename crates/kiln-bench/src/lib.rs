//! Kiln's load generator and its comparison with other servers.
//!
//! ```text
//! compare, growth, vector ─► server    starts a server on its cores, reads its CPU and memory
//!        │                 └► load      drives it from other cores, measures latency
//!        │                      └► workload   the requests, built before the clock starts
//!        └────────────────────► report  table, JSON, chart
//! ```
//!
//! The measure that counts is the CPU time which the *server* spends on a command. It does not
//! depend on how fast the client is, so one client core suffices to compare servers that a single
//! core could not saturate. Where the client is the limit, a fast server is woken more often for
//! less work each time, so its advantage is understated, never overstated.
//!
//! A server is a process; nothing of Kiln or of a peer is linked in, but the vector library, which
//! is also measured by itself ([`vector::library`]).

pub mod compare;
pub mod growth;
pub mod load;
pub mod machine;
pub mod report;
pub mod server;
pub mod vector;
pub mod workload;
