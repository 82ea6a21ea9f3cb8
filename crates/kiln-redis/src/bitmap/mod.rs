//! Bitmaps: strings as arrays of bits. Bit 0 is the highest bit of the first byte.
//!
//! BITCOUNT, BITPOS and BITOP walk whole strings under the shards' locks, as Redis does in its one
//! thread: about 0.1 ms for each MiB, so strings of many MiB are felt by others on their shards.

mod bits;
mod count;
mod field;
mod op;
mod single;

use kiln_base::number::INTEGER_BYTES_MAX;
use kiln_command::{CommandError, CommandSpec, KeyFlags, KeySpec, Settings, StringRef};

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] =
    &[count::COMMANDS, field::COMMANDS, op::COMMANDS, single::COMMANDS];

/// One key that is read.
const READ: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))];

/// A bit offset, which must lie in the longest string there may be.
fn bit_offset(offset: Option<i64>, settings: &Settings) -> Result<usize, CommandError> {
    offset
        .and_then(|offset| usize::try_from(offset).ok())
        .filter(|offset| offset / 8 < settings.proto_max_bulk_bytes)
        .ok_or(CommandError::text("ERR bit offset is not an integer or out of range"))
}

/// The bytes of a string that may be missing; `digits` holds those of an integer.
fn bytes_of<'b>(
    string: Option<StringRef<'b>>,
    digits: &'b mut [u8; INTEGER_BYTES_MAX],
) -> &'b [u8] {
    string.map_or(&b""[..], |string| string.bytes(digits))
}
