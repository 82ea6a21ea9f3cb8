//! LPUSH, RPUSH, LPUSHX and RPUSHX: add elements at an end.
//!
//! The four are one operation, [`push`], at two ends, with or without making the list. Elements are
//! pushed one after another, so the last one ends up outermost. The reply is the new length.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::{
    Args, Arity, CommandFlags, CommandResult, CommandSpec, Group, KeyFlags, KeySpec, ReplyWriter,
    View, WriteHandler,
};
use kiln_data::list::End;

use super::push_event;

pub(super) const COMMANDS: &[CommandSpec] = &[
    spec("LPUSH", "1.0.0", lpush, "Add elements at the head of a list, made if missing."),
    spec("RPUSH", "1.0.0", rpush, "Add elements at the tail of a list, made if missing."),
    spec("LPUSHX", "2.2.0", lpushx, "Add elements at the head of a list that exists."),
    spec("RPUSHX", "2.2.0", rpushx, "Add elements at the tail of a list that exists."),
];

const KEYS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::INSERT))];

const fn spec(
    name: &'static str,
    since: &'static str,
    handler: WriteHandler,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::write(name, Arity::at_least(3), handler)
        .group(Group::List)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::FAST))
        .keys(KEYS)
        .docs(since, "O(N) with N elements to add.", "key element [element ...]", summary)
}

/// What a missing list means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Leave,
}

fn lpush(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    push(view, args, End::Front, Missing::Make, reply)
}

fn rpush(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    push(view, args, End::Back, Missing::Make, reply)
}

fn lpushx(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    push(view, args, End::Front, Missing::Leave, reply)
}

fn rpushx(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    push(view, args, End::Back, Missing::Leave, reply)
}

#[inline]
fn push(
    view: &mut View<'_>,
    args: &Args<'_>,
    end: End,
    missing: Missing,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let key = args.get(1);
    let limits = view.settings().list;
    let list = match missing {
        Missing::Make => Some(view.list_or_new(key)?),
        Missing::Leave => view.list_mut(key)?,
    };
    let Some(list) = list else {
        reply.integer(0);
        return Ok(());
    };
    let elements = args.tail(2);
    list.push_all(end, elements.iter(), limits);
    let len = list.len();

    view.changed(key, push_event(end));
    view.count_changes(elements.len() as u64 - 1);
    reply.integer(len as i64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn the_last_element_ends_up_outermost() {
        check(&[
            ("LPUSH k a b c", "(integer) 3"),
            ("RPUSH k x y", "(integer) 5"),
            ("LRANGE k 0 -1", "1) \"c\"\n2) \"b\"\n3) \"a\"\n4) \"x\"\n5) \"y\""),
        ]);
    }

    #[test]
    fn the_x_forms_make_no_list() {
        check(&[
            ("LPUSHX k a", "(integer) 0"),
            ("RPUSHX k a", "(integer) 0"),
            ("GET k", "(nil)"),
            ("RPUSH k m", "(integer) 1"),
            ("LPUSHX k a b", "(integer) 3"),
            ("RPUSHX k z", "(integer) 4"),
            ("LRANGE k 0 -1", "1) \"b\"\n2) \"a\"\n3) \"m\"\n4) \"z\""),
        ]);
    }

    #[test]
    fn a_long_list_is_a_quicklist_until_it_is_half_as_long() {
        check(&[
            ("CONFIG SET list-max-listpack-size 4", "OK"),
            ("RPUSH k 1 2 3 4", "(integer) 4"),
            ("OBJECT ENCODING k", "\"listpack\""),
            ("RPUSH k 5", "(integer) 5"),
            ("OBJECT ENCODING k", "\"quicklist\""),
            ("LPOP k 2", "1) \"1\"\n2) \"2\""),
            ("OBJECT ENCODING k", "\"quicklist\""),
            ("RPOP k", "\"5\""),
            ("OBJECT ENCODING k", "\"listpack\""),
        ]);
    }

    #[test]
    fn another_type_stays_as_it_is() {
        const WRONG_TYPE: &str =
            "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
        check(&[
            ("SET k v", "OK"),
            ("LPUSH k a", WRONG_TYPE),
            ("RPUSHX k a", WRONG_TYPE),
            ("GET k", "\"v\""),
        ]);
    }
}
