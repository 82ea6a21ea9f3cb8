//! GET, STRLEN, GETRANGE, SUBSTR and GETDEL: read one string.
//!
//! SUBSTR is an old name of GETRANGE.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3.

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags, KeySpec,
    ReadHandler, ReplyWriter, View,
};

use super::{READ, reply_string};
use crate::byte_range::byte_range;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::read("GET", Arity::exactly(2), get)
        .group(Group::String)
        .flags(CommandFlags::FAST)
        .keys(READ)
        .docs("1.0.0", "O(1)", "key", "Return the string at a key."),
    CommandSpec::read("STRLEN", Arity::exactly(2), strlen)
        .group(Group::String)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RO)])
        .docs("2.2.0", "O(1)", "key", "Return the length of the string at a key."),
    range("GETRANGE", "2.4.0", getrange, "Return a part of the string at a key."),
    range("SUBSTR", "1.0.0", getrange, "Return a part of a string: the old name of GETRANGE."),
    CommandSpec::write("GETDEL", Arity::exactly(2), getdel)
        .group(Group::String)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .docs("6.2.0", "O(1)", "key", "Return the string at a key and delete the key."),
];

const fn range(
    name: &'static str,
    since: &'static str,
    handler: ReadHandler,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::read(name, Arity::exactly(4), handler).group(Group::String).keys(READ).docs(
        since,
        "O(N) with N bytes returned.",
        "key start end",
        summary,
    )
}

fn get(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply_string(reply, view.string(args.get(1))?);
    Ok(())
}

fn strlen(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(view.string(args.get(1))?.map_or(0, |string| string.len() as i64));
    Ok(())
}

fn getrange(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (start, end) = (args.int(2)?, args.int(3)?);
    let mut scratch = [0; 20];
    let string = view.string(args.get(1))?;
    let bytes = string.as_ref().map_or(&b""[..], |string| string.bytes(&mut scratch));
    reply.bulk(&bytes[byte_range(start, end, bytes.len())]);
    Ok(())
}

fn getdel(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let value = view.string(key)?;
    reply_string(reply, value);
    if value.is_some() {
        view.delete(key);
        view.changed(key, Event::Del);
        view.journal([b"DEL", key]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn ranges_include_both_ends() {
        check(&[
            ("SET k 'This is a string'", "OK"),
            ("GETRANGE k -3 -1", "\"ing\""),
            ("GETRANGE k 10 100", "\"string\""),
            ("SUBSTR k 5 3", "\"\""),
            ("SET n 12345", "OK"),
            ("GETRANGE n 1 -2", "\"234\""),
            ("STRLEN n", "(integer) 5"),
            ("GETRANGE n 0 x", "(error) ERR value is not an integer or out of range"),
            ("GETRANGE missing 0 -1", "\"\""),
        ]);
    }

    #[test]
    fn getdel_deletes_only_strings() {
        check(&[
            ("SET k v", "OK"),
            ("GETDEL k", "\"v\""),
            ("GETDEL k", "(nil)"),
            ("ZADD l 1 a", "(integer) 1"),
            (
                "GETDEL l",
                "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            ("EXISTS l", "(integer) 1"),
        ]);
    }
}
