//! Redis's command families. Each module exports the rows of its commands; [`families`] joins
//! them. A family names no other, and nothing here knows a socket or a lock.

#![expect(clippy::unnecessary_wraps, reason = "all handlers have one signature")]

mod bitmap;
mod byte_range;
mod connection;
mod element;
mod generic;
mod hash;
mod help;
mod hyperloglog;
mod list;
mod scan;
mod server;
mod set;
mod sort;
mod string;
#[cfg(test)]
mod testkit;
mod transaction;
mod zset;

use kiln_command::CommandSpec;

pub use server::command_docs;

/// The version of Redis whose behaviour Kiln has, as clients that gate features on it see it.
pub const REDIS_VERSION: &str = "8.2.3";

/// The rows of every family.
pub fn families() -> Vec<&'static [CommandSpec]> {
    [
        bitmap::COMMANDS,
        connection::COMMANDS,
        generic::COMMANDS,
        hash::COMMANDS,
        hyperloglog::COMMANDS,
        list::COMMANDS,
        scan::COMMANDS,
        server::COMMANDS,
        set::COMMANDS,
        sort::COMMANDS,
        string::COMMANDS,
        transaction::COMMANDS,
        zset::COMMANDS,
    ]
    .into_iter()
    .flatten()
    .copied()
    .collect()
}
