//! Test helpers, for every crate's tests and for the tools.
//!
//! - [`reply`]: one RESP2 or RESP3 reply: its bytes parsed, its text as redis-cli prints it.
//! - [`script`]: transcripts of commands and replies, run in-process or over TCP.
//! - [`client`], [`server`]: a blocking client; a server as a child process.
//! - [`in_process`]: a server with one client inside the test.
//! - [`generate`]: seeded random commands of every family, hostile ones among them.
//! - [`normalize`]: which two replies count as the same.
//! - [`differential`]: the same commands to Kiln and to a peer, replies and states compared.
//!
//! `reply` and `script` touch neither sockets nor processes, so that unit tests can use them
//! in-process.

pub mod client;
pub mod differential;
pub mod generate;
pub mod in_process;
pub mod normalize;
pub mod reply;
pub mod script;
pub mod server;
