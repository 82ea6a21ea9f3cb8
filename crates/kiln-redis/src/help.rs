//! The HELP subcommand of every container command, made of the container's rows.

use kiln_command::{CommandTable, ReplyWriter};

/// Writes the help of `container` (in upper case): its subcommands with their words and summaries,
/// in the layout of Redis.
pub(crate) fn write(commands: &CommandTable, container: &str, reply: &mut ReplyWriter<'_>) {
    let mut lines =
        vec![format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    // By the rows' own names: `rename-command` may have taken the container's away.
    let of_container = commands.iter().filter(|row| row.spec.container_name() == Some(container));
    for command in of_container {
        let (_, name) = command.spec.name.split_once('|').expect("a subcommand's name has a bar");
        if name == "HELP" {
            continue;
        }
        lines.push(format!("{name} {}", command.spec.syntax).trim_end().to_owned());
        lines.push(format!("    {}", command.spec.summary));
    }
    lines.extend(["HELP".to_owned(), "    Print this help.".to_owned()]);
    reply.array(lines.len());
    for line in &lines {
        reply.simple(line);
    }
}
