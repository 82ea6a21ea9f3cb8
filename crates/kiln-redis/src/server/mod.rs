//! CONFIG, INFO, COMMAND and the other commands for operators.

mod command;
mod config;
mod docs;
mod info;
mod syntax;
mod tips;

use kiln_command::CommandSpec;
use kiln_command::clients::Client;

pub use docs::command_docs;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] =
    &[command::COMMANDS, config::COMMANDS, info::COMMANDS];

/// Whether `client` runs on this machine.
fn is_local(client: &Client) -> bool {
    let ip = client.addr.rsplit_once(':').map(|(ip, _)| ip.trim_matches(['[', ']']));
    let is_loopback = |ip: std::net::IpAddr| ip.to_canonical().is_loopback();
    client.is_unix || ip.and_then(|ip| ip.parse().ok()).is_some_and(is_loopback)
}
