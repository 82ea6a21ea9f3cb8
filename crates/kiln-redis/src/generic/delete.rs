//! DEL, UNLINK, EXISTS, TOUCH and TYPE: whether keys are there, and that they no longer are.
//!
//! A key named twice counts twice where it is looked for, once where it is removed. DEL and
//! UNLINK are one: large values are always freed after the locks are gone.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::{
    AclCategories, Args, Arity, CommandFlags, CommandResult, CommandSpec, Event, KeyFlags, KeySpec,
    ReplyWriter, View,
};

const REMOVED: &[KeySpec] = &[KeySpec::range(1, -1, 1, KeyFlags::RM.union(KeyFlags::DELETE))];
const LOOKED_AT: &[KeySpec] = &[KeySpec::range(1, -1, 1, KeyFlags::RO)];
const ONE: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO)];

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("DEL", Arity::at_least(2), delete)
        .categories(AclCategories::KEYSPACE)
        .keys(REMOVED)
        .docs(
            "1.0.0",
            "O(1) for each key; what large values hold is freed in the background.",
            "key [key ...]",
            "Remove keys and reply how many there were.",
        ),
    CommandSpec::write("UNLINK", Arity::at_least(2), delete)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::FAST)
        .keys(REMOVED)
        .docs(
            "4.0.0",
            "O(1) for each key; what large values hold is freed in the background.",
            "key [key ...]",
            "Remove keys and free their memory later; reply how many there were.",
        ),
    CommandSpec::read("EXISTS", Arity::at_least(2), exists)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::FAST)
        .keys(LOOKED_AT)
        .docs(
            "1.0.0",
            "O(1) for each key.",
            "key [key ...]",
            "Count how many of the keys exist; a repeated one counts again.",
        ),
    CommandSpec::read("TOUCH", Arity::at_least(2), touch)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::FAST)
        .keys(LOOKED_AT)
        .docs(
            "3.2.1",
            "O(1) for each key.",
            "key [key ...]",
            "Mark keys as just used and count those that exist.",
        ),
    CommandSpec::read("TYPE", Arity::exactly(2), type_name)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::FAST)
        .keys(ONE)
        .docs("1.0.0", "O(1)", "key", "Name the type of the value at a key."),
];

fn delete(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let mut removed = 0;
    for key in args.tail(1).iter() {
        if view.delete(key) {
            view.changed(key, Event::Del);
            removed += 1;
        }
    }
    reply.integer(removed);
    Ok(())
}

fn exists(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let keys = args.tail(1);
    let found = keys.iter().filter(|key| view.get_untouched(key).is_some()).count();
    reply.integer(found as i64);
    Ok(())
}

fn touch(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let keys = args.tail(1);
    let found = keys.iter().filter(|key| view.get(key).is_some()).count();
    reply.integer(found as i64);
    Ok(())
}

fn type_name(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let found = view.get_untouched(args.get(1));
    reply.simple(found.map_or("none", |entry| entry.type_name()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn a_repeated_key_counts_again_unless_it_is_removed() {
        check(&[
            ("SET a 1", "OK"),
            ("EXISTS a b a", "(integer) 2"),
            ("TOUCH a b a", "(integer) 2"),
            ("DEL a b a", "(integer) 1"),
            ("UNLINK a", "(integer) 0"),
            ("EXISTS a", "(integer) 0"),
        ]);
    }

    #[test]
    fn a_key_whose_time_has_come_is_not_there() {
        check(&[
            ("SET a 1", "OK"),
            ("TYPE a", "string"),
            ("PEXPIREAT a 1", "(integer) 1"),
            ("TYPE a", "none"),
            ("DEL a", "(integer) 0"),
        ]);
    }
}
