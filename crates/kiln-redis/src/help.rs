//! The HELP subcommand of every container command, made of the container's rows.

use kiln_command::{CommandTable, ReplyWriter};

/// Writes the help of `container` (in upper case): its subcommands with their words and summaries,
/// in the layout of Redis.
pub(crate) fn write(commands: &CommandTable, container: &str, reply: &mut ReplyWriter<'_>) {
    let mut lines =
        vec![format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    let parent = commands.find(container.as_bytes()).expect("HELP names its own container");
    for command in commands.subcommands(parent.spec) {
        let (_, name) = command.spec.name.split_once('|').expect("a subcommand's name has a bar");
        if name == "HELP" {
            continue;
        }
        lines.push(format!("{name} {}", command.spec.syntax).trim_end().to_owned());
        lines.push(format!("    {}", command.spec.summary));
    }
    lines.extend(["HELP".to_owned(), "    Print this help.".to_owned()]);
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.simple(line));
}
