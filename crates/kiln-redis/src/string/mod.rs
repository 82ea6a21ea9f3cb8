//! Strings: SET, GET, INCR and friends.

mod basic;
mod incr;

use kiln_command::CommandSpec;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[basic::COMMANDS, incr::COMMANDS];
