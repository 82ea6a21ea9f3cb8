//! CONFIG, INFO, COMMAND and the other commands for operators.

use kiln_command::CommandSpec;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[];

/// docs/commands.md: every command with its words, cost and summary.
pub fn command_docs(_: &kiln_command::CommandTable) -> String {
    String::new()
}
