//! docs/commands.md, made of the command table.

use std::fmt::Write as _;

use kiln_command::{CommandSpec, CommandTable, Run};

const HEAD: &str = "\
# Commands

Made from the command table by `cargo xtask check --bless`; a check compares the two. Where a
command differs from Redis's on purpose, [differences.md](differences.md) says so.
";

/// Every command with its words, cost and summary, by group.
pub fn command_docs(table: &CommandTable) -> String {
    let mut rows: Vec<&CommandSpec> = table
        .iter()
        .map(|command| command.spec)
        .filter(|spec| !matches!(spec.run, Run::Container))
        .collect();
    rows.sort_by_key(|spec| (spec.group.name(), spec.name));
    let mut text = HEAD.to_owned();
    for group in rows.chunk_by(|one, other| one.group == other.group) {
        let _ = write!(text, "\n## {}\n\n", group[0].group.name());
        for spec in group {
            let words = format!("{} {}", spec.name.replace('|', " "), spec.syntax);
            let cost = spec.complexity.trim_end_matches('.');
            let _ = writeln!(
                text,
                "- `{}`: {} {cost}; since {}.",
                words.trim_end(),
                spec.summary,
                spec.since
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use kiln_command::CommandTable;

    use super::command_docs;

    #[test]
    fn every_command_has_a_line() {
        let text = command_docs(&CommandTable::new(&crate::families()));
        assert!(text.contains("\n## string\n"));
        assert!(text.contains("\n- `CONFIG GET parameter [parameter ...]`: "));
        assert!(!text.contains("\n- `CONFIG`"));
    }
}
