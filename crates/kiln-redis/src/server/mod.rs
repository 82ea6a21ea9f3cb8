//! CONFIG, INFO, COMMAND and the other commands for operators.

mod cluster;
mod command;
mod config;
mod debug;
mod docs;
mod info;
mod latency;
mod memory;
mod process;
mod replication;
#[cfg(test)]
mod rows;
mod slowlog;
mod syntax;
mod tips;

use kiln_command::clients::Client;
use kiln_command::config::value::LocalAccess;
use kiln_command::{Args, CommandError, CommandFlags, CommandSpec};

pub use docs::command_docs;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[
    cluster::COMMANDS,
    command::COMMANDS,
    config::COMMANDS,
    debug::COMMANDS,
    info::COMMANDS,
    latency::COMMANDS,
    memory::COMMANDS,
    process::COMMANDS,
    replication::COMMANDS,
    slowlog::COMMANDS,
];

/// What most commands for operators have.
const OPERATOR: CommandFlags = CommandFlags::ADMIN
    .union(CommandFlags::NOSCRIPT)
    .union(CommandFlags::LOADING)
    .union(CommandFlags::STALE);

/// The error for words that no subcommand of `command` takes.
fn unknown_subcommand(command: &str, args: &Args<'_>) -> CommandError {
    let name = String::from_utf8_lossy(args.get(1));
    CommandError::owned(format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try {command} HELP."
    ))
}

/// Whether `client` runs on this machine.
fn is_local(client: &Client) -> bool {
    let ip = client.addr.rsplit_once(':').map(|(ip, _)| ip.trim_matches(['[', ']']));
    let is_loopback = |ip: std::net::IpAddr| ip.to_canonical().is_loopback();
    client.is_unix || ip.and_then(|ip| ip.parse().ok()).is_some_and(is_loopback)
}

/// Whether a directive such as `enable-debug-command` lets `client` pass.
fn lets_pass(access: LocalAccess, client: &Client) -> bool {
    match access {
        LocalAccess::Yes => true,
        LocalAccess::Local => is_local(client),
        LocalAccess::No => false,
    }
}
