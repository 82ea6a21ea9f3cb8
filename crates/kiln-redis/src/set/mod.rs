//! Sets: members, random members, and the algebra of several sets.

mod algebra;
mod members;
mod random;

use kiln_command::CommandSpec;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] =
    &[algebra::COMMANDS, members::COMMANDS, random::COMMANDS];
