//! RENAME and RENAMENX: give a value another key.
//!
//! The value keeps its expiry and its tags; what was at the new key is gone.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::{
    AclCategories, Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event,
    KeyFlags, KeySpec, ReplyWriter, View,
};

const SOURCE: KeySpec =
    KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE));
const KEYS: &[KeySpec] = &[SOURCE, KeySpec::at(2, KeyFlags::OW.union(KeyFlags::UPDATE))];
const KEYS_NX: &[KeySpec] = &[SOURCE, KeySpec::at(2, KeyFlags::OW.union(KeyFlags::INSERT))];

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("RENAME", Arity::exactly(3), rename)
        .categories(AclCategories::KEYSPACE)
        .keys(KEYS)
        .docs(
            "1.0.0",
            "O(1)",
            "key newkey",
            "Give a value another key, in place of what was there.",
        ),
    CommandSpec::write("RENAMENX", Arity::exactly(3), rename_nx)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::FAST)
        .keys(KEYS_NX)
        .docs("1.0.0", "O(1)", "key newkey", "Give a value another key if that is free."),
];

fn rename(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (from, to) = (args.get(1), args.get(2));
    if !view.exists(from) {
        return Err(CommandError::NoSuchKey);
    }
    if from != to {
        rename_to(view, from, to);
    }
    reply.ok();
    Ok(())
}

fn rename_nx(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (from, to) = (args.get(1), args.get(2));
    if !view.exists(from) {
        return Err(CommandError::NoSuchKey);
    }
    let free = view.peek(to).is_none();
    if free {
        rename_to(view, from, to);
    }
    reply.integer(i64::from(free));
    Ok(())
}

/// Moves the value at `from`, which exists, to another key `to`.
fn rename_to(view: &mut View<'_>, from: &[u8], to: &[u8]) {
    view.delete(to);
    let tags = view.take_tags(from);
    let entry = view.remove(from).expect("the caller looked");
    let expire_at_ms = entry.expire_at_ms();
    view.insert(entry.with_key(to, expire_at_ms));
    view.set_tags(to, &tags);
    view.changed(from, Event::RenameFrom);
    view.signal(to);
    view.event(to, Event::RenameTo);
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn the_value_moves_with_its_expiry() {
        check(&[
            ("SET a 1", "OK"),
            ("EXPIRE a 1000", "(integer) 1"),
            ("SET b 2", "OK"),
            ("RENAME a b", "OK"),
            ("GET b", "\"1\""),
            ("TTL b", "(integer) 1000"),
            ("RENAME a b", "(error) ERR no such key"),
            ("RENAME b b", "OK"),
            ("RENAMENX b b", "(integer) 0"),
            ("RENAMENX a a", "(error) ERR no such key"),
            ("RENAMENX b c", "(integer) 1"),
            ("PERSIST c", "(integer) 1"),
            ("DBSIZE", "(integer) 1"),
        ]);
    }
}
