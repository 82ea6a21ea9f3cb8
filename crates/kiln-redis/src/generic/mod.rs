//! Commands on keys of any type, and on whole databases.

mod copy;
mod databases;
mod delete;
mod dump;
mod expire;
mod object;
mod rename;
mod ttl;
mod wait;

use kiln_command::CommandSpec;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[
    copy::COMMANDS,
    databases::COMMANDS,
    delete::COMMANDS,
    dump::COMMANDS,
    expire::COMMANDS,
    object::COMMANDS,
    rename::COMMANDS,
    ttl::COMMANDS,
    wait::COMMANDS,
];
