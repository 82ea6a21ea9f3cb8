//! LSET, LINSERT, LREM and LTRIM: change a list within.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3.

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, View,
};
use kiln_data::list::Side;

use super::announce_removed;
use super::read::clamp;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("LSET", Arity::exactly(4), lset)
        .group(Group::List)
        .flags(CommandFlags::DENYOOM)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::UPDATE))])
        .docs(
            "1.0.0",
            "O(N) with N elements between the index and the nearer end.",
            "key index element",
            "Replace the element at an index.",
        ),
    CommandSpec::write("LINSERT", Arity::exactly(5), linsert)
        .group(Group::List)
        .flags(CommandFlags::DENYOOM)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .docs(
            "2.2.0",
            "O(N) with N elements before the pivot.",
            "key <BEFORE | AFTER> pivot element",
            "Insert an element beside the first one that equals the pivot.",
        ),
    CommandSpec::write("LREM", Arity::exactly(4), lrem)
        .group(Group::List)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::DELETE))])
        .docs(
            "1.0.0",
            "O(N) with N elements in the list.",
            "key count element",
            "Remove elements that equal one, from the head or from the tail on.",
        ),
    CommandSpec::write("LTRIM", Arity::exactly(4), ltrim)
        .group(Group::List)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::DELETE))])
        .docs(
            "1.0.0",
            "O(N) with N elements removed.",
            "key start stop",
            "Keep only the elements between two indexes.",
        ),
];

fn lset(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let limits = view.settings().list;
    let list = view.list_mut(key)?.ok_or(CommandError::NoSuchKey)?;
    if !list.set(args.int(2)?, args.get(3), limits) {
        return Err(CommandError::IndexOutOfRange);
    }
    view.changed(key, Event::LSet);
    reply.ok();
    Ok(())
}

/// Replies with the new length, with 0 if there is no list, with -1 if it lacks the pivot.
fn linsert(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let side = if args.is_word(2, "BEFORE") {
        Side::Before
    } else if args.is_word(2, "AFTER") {
        Side::After
    } else {
        return Err(CommandError::Syntax);
    };
    let key = args.get(1);
    let limits = view.settings().list;
    let Some(list) = view.list_mut(key)? else {
        reply.integer(0);
        return Ok(());
    };
    let inserted = list.insert(side, args.get(3), args.get(4), limits);
    let len = list.len();
    if inserted {
        view.changed(key, Event::LInsert);
    }
    reply.integer(if inserted { len as i64 } else { -1 });
    Ok(())
}

fn lrem(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let count = args.signed_count(2)?;
    let key = args.get(1);
    let limits = view.settings().list;
    let Some(list) = view.list_mut(key)? else {
        reply.integer(0);
        return Ok(());
    };
    let removed = list.remove(args.get(3), count, limits);
    let is_empty = list.is_empty();
    if removed > 0 {
        announce_removed(view, key, Event::LRem, removed, is_empty);
    }
    reply.integer(removed as i64);
    Ok(())
}

fn ltrim(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (start, stop) = (args.int(2)?, args.int(3)?);
    let key = args.get(1);
    let limits = view.settings().list;
    if let Some(list) = view.list_mut(key)? {
        let before = list.len();
        let (first, count) = clamp(start, stop, before);
        list.trim(first, count, limits);
        if count < before {
            announce_removed(view, key, Event::LTrim, before - count, count == 0);
        } else {
            // Redis tells watchers and subscribers of a trim that kept everything, too.
            view.signal(key);
            view.event(key, Event::LTrim);
        }
    }
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn lset_replaces_only_what_is_there() {
        check(&[
            ("LSET k x v", "(error) ERR no such key"),
            ("RPUSH k a b c", "(integer) 3"),
            ("LSET k x v", "(error) ERR value is not an integer or out of range"),
            ("LSET k 3 v", "(error) ERR index out of range"),
            ("LSET k -4 v", "(error) ERR index out of range"),
            ("LSET k -3 v", "OK"),
            ("LSET k 2 w", "OK"),
            ("LRANGE k 0 -1", "1) \"v\"\n2) \"b\"\n3) \"w\""),
        ]);
    }

    #[test]
    fn linsert_goes_beside_the_first_pivot() {
        check(&[
            ("LINSERT k BEFORE b x", "(integer) 0"),
            ("LINSERT k BESIDE b x", "(error) ERR syntax error"),
            ("RPUSH k a b b", "(integer) 3"),
            ("LINSERT k before b x", "(integer) 4"),
            ("LINSERT k AFTER b y", "(integer) 5"),
            ("LINSERT k AFTER z y", "(integer) -1"),
            ("LRANGE k 0 -1", "1) \"a\"\n2) \"x\"\n3) \"b\"\n4) \"y\"\n5) \"b\""),
        ]);
    }

    #[test]
    fn lrem_counts_from_the_end_that_the_sign_names() {
        check(&[
            ("RPUSH k a b a c a", "(integer) 5"),
            ("LREM k -1 a", "(integer) 1"),
            ("LREM k 1 a", "(integer) 1"),
            ("LRANGE k 0 -1", "1) \"b\"\n2) \"a\"\n3) \"c\""),
            ("LREM k 0 z", "(integer) 0"),
            (
                "LREM k -9223372036854775808 a",
                "(error) ERR value is out of range, value must between -9223372036854775807 and \
                 9223372036854775807",
            ),
        ]);
    }

    #[test]
    fn a_list_without_elements_is_gone() {
        check(&[
            ("RPUSH k a a", "(integer) 2"),
            ("LREM k 0 a", "(integer) 2"),
            ("GET k", "(nil)"),
            ("RPUSH k a b c", "(integer) 3"),
            ("LTRIM k 1 1", "OK"),
            ("LRANGE k 0 -1", "1) \"b\""),
            ("LTRIM k 1 0", "OK"),
            ("GET k", "(nil)"),
            ("LTRIM k 0 x", "(error) ERR value is not an integer or out of range"),
        ]);
    }
}
