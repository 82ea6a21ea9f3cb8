//! Vector sets (VADD and its kin, as in Redis 8), vector indexes and snapshots (VSIM.*), and tags
//! of keys (TAG.*).
//!
//! Both faces of vector search rest on `kiln_vector::Index`, which has concurrency of its own: an
//! entry holds one as an engine, and commands hold its shard only to find it and to commit.

#![expect(clippy::unnecessary_wraps, reason = "all handlers have one signature")]

mod engine;
pub mod filter; // Public for the fuzzer.
mod index;
mod set;
mod tag;
#[cfg(test)]
mod testkit;
mod vector;

use kiln_command::CommandSpec;

/// The rows of every family.
pub fn families() -> Vec<&'static [CommandSpec]> {
    [&[tag::COMMANDS], index::COMMANDS, set::COMMANDS].concat()
}
