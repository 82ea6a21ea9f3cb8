//! Commands about the connection itself.

mod basic;

use kiln_command::CommandSpec;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[basic::COMMANDS];
