//! SCAN, KEYS and the scans of hashes, sets and sorted sets.

mod keyspace;
mod options;
mod values;

use kiln_command::CommandSpec;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[keyspace::COMMANDS, values::COMMANDS];
