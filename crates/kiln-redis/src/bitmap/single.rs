//! SETBIT and GETBIT: one bit.
//!
//! SETBIT makes the string long enough, up to `proto-max-bulk-len`, by zeroes. Setting a bit to
//! what it is in a string that is long enough changes nothing and is announced to nobody.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3.

use kiln_base::number::{INTEGER_BYTES_MAX, parse_i64};
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, View,
};

use super::{READ, bit_offset, bits, bytes_of};

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("SETBIT", Arity::exactly(4), setbit)
        .group(Group::Bitmap)
        .flags(CommandFlags::DENYOOM)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))])
        .docs("2.2.0", "O(1)", "key offset value", "Set or clear one bit of a string."),
    CommandSpec::read("GETBIT", Arity::exactly(3), getbit)
        .group(Group::Bitmap)
        .flags(CommandFlags::FAST)
        .keys(READ)
        .docs("2.2.0", "O(1)", "key offset", "Return one bit of a string."),
];

fn setbit(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let offset = bit_offset(parse_i64(args.get(2)), view.settings())?;
    let bit = match args.get(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(CommandError::text("ERR bit is not an integer or out of range")),
    };
    let (before, grown) = view.edit_string(key, offset / 8 + 1, |old_len, bytes| {
        (bits::set(bytes, offset, bit), bytes.len() > old_len)
    })?;
    if grown || before != bit {
        view.changed(key, Event::SetBit);
    }
    reply.integer(i64::from(before));
    Ok(())
}

fn getbit(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let offset = bit_offset(parse_i64(args.get(2)), view.settings())?;
    let mut digits = [0; INTEGER_BYTES_MAX];
    let bytes = bytes_of(view.string(args.get(1))?, &mut digits);
    reply.integer(i64::from(bits::get(bytes, offset)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn bits_count_from_the_highest_of_the_first_byte() {
        check(&[
            ("SETBIT k 1 1", "(integer) 0"),
            ("SETBIT k 7 1", "(integer) 0"),
            ("GET k", "\"A\""),
            ("SETBIT k 7 0", "(integer) 1"),
            ("GETBIT k 1", "(integer) 1"),
            ("GETBIT k 4294967295", "(integer) 0"),
            ("SETBIT k 100 0", "(integer) 0"),
            ("STRLEN k", "(integer) 13"),
            ("SET n 1", "OK"),
            ("GETBIT n 2", "(integer) 1"),
        ]);
    }

    #[test]
    fn offsets_and_bits_are_checked_in_this_order() {
        let offset = "(error) ERR bit offset is not an integer or out of range";
        check(&[
            ("SETBIT k -1 2", offset),
            ("SETBIT k 4294967296 1", offset),
            ("GETBIT k x", offset),
            ("SETBIT k 0 2", "(error) ERR bit is not an integer or out of range"),
            ("GET k", "(nil)"),
        ]);
    }
}
