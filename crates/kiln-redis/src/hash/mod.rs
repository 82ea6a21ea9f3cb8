//! Hashes: HSET, HGET and friends, and the expiry of single fields.
//!
//! A field with an expiry in the past is hidden from every command at once and removed by the
//! sweep or by the next write to it. Each handler that may have moved the next expiry among the
//! fields of a hash says so to the view, which keeps the sweep's index.

mod basic;
mod expire;
mod get_and_expire;
mod random;

use kiln_base::clock::UnixMs;
use kiln_command::{CommandError, CommandSpec, Event, KeyFlags, KeySpec, ReplyWriter, View};
use kiln_data::hash::Hash;
use kiln_data::listpack::Value;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] =
    &[basic::COMMANDS, expire::COMMANDS, get_and_expire::COMMANDS, random::COMMANDS];

const READ: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))];
const LOOK: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO)];
const UPDATE: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::UPDATE))];
const READ_UPDATE: &[KeySpec] =
    &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))];

/// Writes a field's name or value.
fn bulk(reply: &mut ReplyWriter<'_>, value: Value<'_>) {
    match value {
        Value::Bytes(bytes) => reply.bulk(bytes),
        Value::Int(number) => reply.bulk_integer(number),
    }
}

/// Ends a command that removed fields or moved expiries in the hash at `key`: tells the expiry
/// index, and removes the key if nothing is left.
fn settle(view: &mut View<'_>, key: &[u8], next_expiry_before: Option<UnixMs>) {
    view.field_expiry_moved(key, next_expiry_before);
    if view.remove_if_empty(key) {
        view.changed(key, Event::Del);
    }
}

/// Changes the hash at `key`, made if missing; an expiry that moves by it reaches the index.
fn change<R>(
    view: &mut View<'_>,
    key: &[u8],
    change: impl FnOnce(&mut Hash) -> R,
) -> Result<R, CommandError> {
    let hash = view.hash_or_new(key)?;
    let before = hash.next_expiry();
    let result = change(hash);
    if before.is_some() {
        view.field_expiry_moved(key, before);
    }
    Ok(result)
}
