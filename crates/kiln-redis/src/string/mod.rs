//! Strings: SET, GET, INCR and friends.

mod condition;
mod edit;
mod expiry;
mod float;
mod get;
mod incr;
mod lcs;
mod many;
mod set;

use kiln_command::{CommandSpec, KeyFlags, KeySpec, ReplyWriter, StringRef};

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[
    condition::COMMANDS,
    edit::COMMANDS,
    expiry::COMMANDS,
    float::COMMANDS,
    get::COMMANDS,
    incr::COMMANDS,
    lcs::COMMANDS,
    many::COMMANDS,
    set::COMMANDS,
];

/// One key, whose value the command returns.
const READ: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))];
/// One key, whose value depends on the old one, which the command may return.
const READ_UPDATE: &[KeySpec] =
    &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))];

/// Replies with a string, or with null for none.
#[inline]
fn reply_string(reply: &mut ReplyWriter<'_>, value: Option<StringRef<'_>>) {
    match value {
        None => reply.null(),
        Some(StringRef::Int(number)) => reply.bulk_integer(number),
        Some(StringRef::Bytes(bytes)) => reply.bulk(bytes),
        Some(StringRef::Shared(bytes)) => reply.bulk_shared(bytes),
    }
}
