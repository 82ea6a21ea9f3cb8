//! Commands about the connection itself.

mod auth;
mod basic;
mod client;
mod client_filter;

use kiln_command::CommandSpec;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[auth::COMMANDS, basic::COMMANDS, client::COMMANDS];
