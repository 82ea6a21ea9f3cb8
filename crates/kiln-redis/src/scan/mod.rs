//! SCAN and KEYS: the whole keyspace in steps.

use kiln_command::CommandSpec;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[];
