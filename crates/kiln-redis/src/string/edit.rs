//! APPEND and SETRANGE: change a string in place.
//!
//! A string so built is `raw` to OBJECT ENCODING and keeps room to grow; see
//! [`kiln_command::Entry`]. No string becomes longer than `proto-max-bulk-len`.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, Ttl, View,
};

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("APPEND", Arity::exactly(3), append)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::FAST))
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .docs(
            "2.0.0",
            "O(1) amortized, for values of a bounded size.",
            "key value",
            "Append to the string at a key.",
        ),
    CommandSpec::write("SETRANGE", Arity::exactly(4), setrange)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .docs(
            "2.2.0",
            "O(M) with M bytes written, plus the zeroes before them.",
            "key offset value",
            "Overwrite a part of the string at a key, with zeroes before it if it is too short.",
        ),
];

fn append(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (key, tail) = (args.get(1), args.get(2));
    let len_max = view.settings().proto_max_bulk_bytes;
    let appended = view.update(key, |entry| {
        let len = entry.as_string().ok_or(CommandError::WrongType)?.len();
        if len + tail.len() > len_max {
            return Err(CommandError::StringTooLong);
        }
        Ok(entry.append(tail))
    });
    let len = if let Some(len) = appended {
        len?
    } else {
        view.set_string(key, tail, Ttl::Clear);
        tail.len()
    };
    view.changed(key, Event::Append);
    reply.integer(len as i64);
    Ok(())
}

fn setrange(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (key, value) = (args.get(1), args.get(3));
    let offset = args.int(2)?;
    let Ok(offset) = usize::try_from(offset) else {
        return Err(CommandError::text("ERR offset is out of range"));
    };
    if value.is_empty() {
        // Nothing to write: no key is made, and no zeroes are added.
        reply.integer(view.string(key)?.map_or(0, |string| string.len() as i64));
        return Ok(());
    }
    let end = offset + value.len();
    if end > view.settings().proto_max_bulk_bytes {
        view.string(key)?; // The type matters more.
        return Err(CommandError::StringTooLong);
    }
    let len = view.edit_string(key, end, |_, bytes| {
        bytes[offset..end].copy_from_slice(value);
        bytes.len()
    })?;
    view.changed(key, Event::SetRange);
    reply.integer(len as i64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};

    use crate::testkit::check;

    #[test]
    fn strings_grow_in_place() {
        check(&[
            ("APPEND k 1", "(integer) 1"),
            ("APPEND k 2", "(integer) 2"),
            ("INCR k", "(integer) 13"),
            ("APPEND k \"\"", "(integer) 2"),
            ("SETRANGE k 4 x", "(integer) 5"),
            ("GET k", "\"13\\x00\\x00x\""),
            ("SET t abc EX 100", "OK"),
            ("APPEND t def", "(integer) 6"),
            ("SETRANGE t 0 A", "(integer) 6"),
            ("TTL t", "(integer) 100"),
        ]);
    }

    #[test]
    fn nothing_written_is_nothing_made() {
        check(&[
            ("SETRANGE k 5 \"\"", "(integer) 0"),
            ("EXISTS k", "(integer) 0"),
            ("SETRANGE k -1 x", "(error) ERR offset is out of range"),
            (
                "SETRANGE k 536870911 xy",
                "(error) ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            ),
            (
                "SETRANGE k 9223372036854775807 xy",
                "(error) ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            ),
            ("ZADD l 1 a", "(integer) 1"),
            (
                "SETRANGE l 536870912 x",
                "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            ("EXISTS k", "(integer) 0"),
        ]);
    }

    /// Mostly short, sometimes beyond what lies inside an entry.
    fn length() -> impl Strategy<Value = usize> {
        prop_oneof![4 => 0_usize..100, 1 => 0_usize..20_000]
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        (length(), any::<u8>()).prop_map(|(len, byte)| std::vec::from_elem(byte, len + 1))
    }

    proptest! {
        #[test]
        fn edits_match_those_of_a_vec(edits in vec((any::<bool>(), length(), text()), 1..12)) {
            let mut server = crate::testkit::server();
            let mut want: Vec<u8> = Vec::new();
            for (append, offset, value) in edits {
                let command = if append {
                    want.extend_from_slice(&value);
                    Vec::from([b"APPEND".to_vec(), b"k".to_vec(), value])
                } else {
                    want.resize(want.len().max(offset + value.len()), 0);
                    want[offset..offset + value.len()].copy_from_slice(&value);
                    let offset = offset.to_string().into_bytes();
                    Vec::from([b"SETRANGE".to_vec(), b"k".to_vec(), offset, value])
                };
                prop_assert_eq!(server.run(&command), format!(":{}\r\n", want.len()).into_bytes());
            }
            let got = server.run(&[b"GET".to_vec(), b"k".to_vec()]);
            let mut reply = format!("${}\r\n", want.len()).into_bytes();
            reply.extend_from_slice(&want);
            reply.extend_from_slice(b"\r\n");
            prop_assert_eq!(got, reply);
        }
    }
}
