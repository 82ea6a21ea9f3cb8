//! COPY and MOVE: a value under another key or in another database.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::args::ArgsExt;
use kiln_command::{
    AclCategories, Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event,
    KeyFlags, KeySpec, ReplyWriter, View,
};

const COPY_KEYS: &[KeySpec] = &[
    KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS)),
    KeySpec::at(2, KeyFlags::OW.union(KeyFlags::UPDATE)),
];
const MOVE_KEYS: &[KeySpec] =
    &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))];

const SAME_OBJECT: CommandError =
    CommandError::text("ERR source and destination objects are the same");
const NO_COPY: CommandError = CommandError::text("ERR not supported for this module key");

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("COPY", Arity::at_least(3), copy)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::DENYOOM)
        .keys(COPY_KEYS)
        .docs(
            "6.2.0",
            "O(N) with N elements of the value; O(1) for strings.",
            "source destination [DB destination-db] [REPLACE]",
            "Copy the value at a key to another key or database.",
        ),
    CommandSpec::write("MOVE", Arity::exactly(3), move_key)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::FAST)
        .keys(MOVE_KEYS)
        .docs("1.0.0", "O(1)", "key db", "Move a key to another database if it is free there."),
];

fn copy(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (from, to, source_db) = (args.get(1), args.get(2), view.db());
    let (mut replace, mut target_db) = (false, source_db);
    let mut index = 3;
    while index < args.len() {
        if args.is_word(index, "REPLACE") {
            replace = true;
        } else if args.is_word(index, "DB") && index + 1 < args.len() {
            index += 1;
            target_db = database(view, args, index)?;
        } else {
            return Err(CommandError::Syntax);
        }
        index += 1;
    }
    if from == to && source_db == target_db {
        return Err(SAME_OBJECT);
    }

    let Some(source) = view.get(from) else {
        reply.integer(0);
        return Ok(());
    };
    let duplicate = source.duplicate(to, source.expire_at_ms()).ok_or(NO_COPY)?;
    view.select(target_db);
    let copied = replace || view.peek(to).is_none();
    if copied {
        view.delete(to);
        view.insert(duplicate);
        view.changed(to, Event::CopyTo);
    }
    view.select(source_db);
    reply.integer(i64::from(copied));
    Ok(())
}

fn move_key(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (key, source_db) = (args.get(1), view.db());
    let target_db = database(view, args, 2)?;
    if source_db == target_db {
        return Err(SAME_OBJECT);
    }

    view.select(target_db);
    let free = view.peek(key).is_none();
    view.select(source_db);
    let moved = if free { view.remove(key) } else { None };
    let found = moved.is_some();
    if let Some(entry) = moved {
        view.changed(key, Event::MoveFrom);
        view.select(target_db);
        view.delete(key); // An expired entry may still stand in the way.
        view.insert(entry);
        view.signal(key);
        view.event(key, Event::MoveTo);
        view.select(source_db);
    }
    reply.integer(i64::from(found));
    Ok(())
}

/// The database that word `index` names.
fn database(view: &View<'_>, args: &Args<'_>, index: usize) -> Result<usize, CommandError> {
    args.db(index, view.databases())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn a_copy_stands_by_itself() {
        check(&[
            ("SET a 1", "OK"),
            ("EXPIRE a 1000", "(integer) 1"),
            ("COPY a b", "(integer) 1"),
            ("INCR a", "(integer) 2"),
            ("GET b", "\"1\""),
            ("TTL b", "(integer) 1000"),
            ("COPY a b", "(integer) 0"),
            ("COPY a b REPLACE", "(integer) 1"),
            ("GET b", "\"2\""),
            ("COPY a a DB 1", "(integer) 1"),
            ("COPY a a", "(error) ERR source and destination objects are the same"),
            (
                "COPY a a DB 4294967296",
                "(error) ERR value is out of range, value must between -2147483648 and 2147483647",
            ),
            ("COPY a a DB 16", "(error) ERR DB index is out of range"),
            ("COPY a a DB", "(error) ERR syntax error"),
            ("SELECT 1", "OK"),
            ("PERSIST a", "(integer) 1"),
            ("DBSIZE", "(integer) 1"),
        ]);
    }

    #[test]
    fn move_needs_a_free_place() {
        check(&[
            ("SET a 1", "OK"),
            ("EXPIRE a 1000", "(integer) 1"),
            ("MOVE a 1", "(integer) 1"),
            ("EXISTS a", "(integer) 0"),
            ("MOVE a 1", "(integer) 0"),
            ("SET a 2", "OK"),
            ("MOVE a 1", "(integer) 0"),
            ("GET a", "\"2\""),
            ("SELECT 1", "OK"),
            ("TTL a", "(integer) 1000"),
            ("MOVE a 1", "(error) ERR source and destination objects are the same"),
            ("MOVE a -1", "(error) ERR DB index is out of range"),
        ]);
    }
}
