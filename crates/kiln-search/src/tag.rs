//! TAG.*: labels on keys, and the keys that carry them.
//!
//! A tag belongs to a key of the selected database, whatever its type: it goes when the key goes,
//! stays when the value is overwritten, follows RENAME, and is not copied by COPY. VSIM.SEARCH
//! filters by tags.
//!
//! Source: `hotkv-client` 1.0.0; where it is silent, docs/differences.md.

use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Context, Group, KeyFlags,
    KeySpec, ReplyWriter, View, compute::Work,
};
use kiln_keyspace::TagMembers;

const RO: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO)];
const RW: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::UPDATE))];

pub(crate) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("TAG.SET", Arity::at_least(3), set)
        .group(Group::Tag)
        .flags(CommandFlags::DENYOOM)
        .keys(RW)
        .docs("0.1.0", "O(N) with N tags.", "key tag [tag ...]", "Give a key tags."),
    CommandSpec::write("TAG.REM", Arity::at_least(3), remove).group(Group::Tag).keys(RW).docs(
        "0.1.0",
        "O(N) with N tags.",
        "key tag [tag ...]",
        "Take tags from a key.",
    ),
    CommandSpec::read("TAG.GET", Arity::exactly(2), get).group(Group::Tag).keys(RO).docs(
        "0.1.0",
        "O(N) with N tags.",
        "key",
        "List the tags of a key.",
    ),
    CommandSpec::read("TAG.COUNT", Arity::exactly(2), count)
        .group(Group::Tag)
        .flags(CommandFlags::FAST)
        .keys(RO)
        .docs("0.1.0", "O(1)", "key", "Count the tags of a key."),
    CommandSpec::read("TAG.EXISTS", Arity::exactly(3), exists)
        .group(Group::Tag)
        .flags(CommandFlags::FAST)
        .keys(RO)
        .docs("0.1.0", "O(log N) with N tags.", "key tag", "Tell whether a key has a tag."),
    CommandSpec::engine_read("TAG.MEMBERS", Arity::exactly(2), members)
        .group(Group::Tag)
        .touches_all(|_| true)
        .docs("0.1.0", "O(N log N) with N keys.", "tag", "List the keys that have a tag."),
    CommandSpec::engine_read("TAG.INTER", Arity::at_least(2), members)
        .group(Group::Tag)
        .touches_all(|_| true)
        .docs(
            "0.1.0",
            "O(N * M + R log R) with N keys of the rarest tag, M tags and R keys found.",
            "tag [tag ...]",
            "List the keys that have all the tags.",
        ),
];

fn set(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    check_names(&args.tail(2))?;
    if !view.exists(key) {
        return Err(CommandError::NoSuchKey);
    }
    let added = args.tail(2).iter().filter(|tag| view.tag(key, tag)).count();
    announce(view, key, added);
    reply.integer(added as i64);
    Ok(())
}

fn remove(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    check_names(&args.tail(2))?;
    let removed = args.tail(2).iter().filter(|tag| view.untag(key, tag)).count();
    announce(view, key, removed);
    reply.integer(removed as i64);
    Ok(())
}

/// A tag without a name would be a mistake that nobody notices.
fn check_names(tags: &Args<'_>) -> CommandResult {
    let empty = tags.iter().any(<[u8]>::is_empty);
    if empty { Err(CommandError::text("ERR invalid name")) } else { Ok(()) }
}

/// Whoever watches the key hears of its tags; there is no event for them.
fn announce(view: &mut View<'_>, key: &[u8], changes: usize) {
    if changes > 0 {
        view.count_changes(changes as u64);
        view.signal(key);
    }
}

fn get(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let tags = view.tags(args.get(1));
    reply.array(tags.len());
    tags.iter().for_each(|tag| reply.bulk(tag));
    Ok(())
}

fn count(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(view.tags(args.get(1)).len() as i64);
    Ok(())
}

fn exists(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let tag = args.get(2);
    let found = view.tags(args.get(1)).binary_search_by(|other| (**other).cmp(tag));
    reply.integer(i64::from(found.is_ok()));
    Ok(())
}

/// TAG.MEMBERS and TAG.INTER: the former has one tag.
fn members(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let tags = args.tail(1);
    check_names(&tags)?;
    let mut keys = keys_with_all(context, &tags);
    keys.sort_unstable();
    reply.array(keys.len());
    keys.iter().for_each(|key| reply.bulk(key));
    Ok(Work::Done)
}

fn keys_with_all(context: &mut Context<'_>, tags: &Args<'_>) -> Vec<Box<[u8]>> {
    let (index, db) = (context.server.keyspace.tags(), context.session.db);
    let sets: Option<Vec<_>> = tags.iter().map(|tag| index.members(db, tag)).collect();
    let Some(mut sets) = sets else { return Vec::new() };
    sets.sort_by_cached_key(|set| TagMembers::len(set));
    let mut keys = sets[0].to_vec();
    keys.retain(|key| sets[1..].iter().all(|set| set.contains(key)));
    // The time of a key may have come without anybody having met it.
    keys.retain(|key| context.read(key, |view| view.peek(key).is_some()));
    keys
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn tags_belong_to_a_key() {
        check(&[
            ("TAG.SET k red", "(error) ERR no such key"),
            ("SET k 1", "OK"),
            ("TAG.SET k red blue red", "(integer) 2"),
            ("TAG.SET k \"\"", "(error) ERR invalid name"),
            ("TAG.GET k", "1) \"blue\"\n2) \"red\""),
            ("TAG.COUNT k", "(integer) 2"),
            ("TAG.EXISTS k red", "(integer) 1"),
            ("TAG.EXISTS k green", "(integer) 0"),
            ("TAG.REM k red green", "(integer) 1"),
            ("TAG.REM none red", "(integer) 0"),
            ("TAG.GET none", "(empty array)"),
            ("TAG.COUNT none", "(integer) 0"),
            ("TAG.EXISTS none red", "(integer) 0"),
            ("TAG.SET k", "(error) ERR wrong number of arguments for 'tag.set' command"),
        ]);
    }

    #[test]
    fn the_keys_of_tags_are_sorted_and_of_one_database() {
        check(&[
            ("MSET b 1 a 2 c 3", "OK"),
            ("TAG.SET b x y", "(integer) 2"),
            ("TAG.SET a x", "(integer) 1"),
            ("TAG.SET c y", "(integer) 1"),
            ("TAG.MEMBERS x", "1) \"a\"\n2) \"b\""),
            ("TAG.MEMBERS none", "(empty array)"),
            ("TAG.INTER x", "1) \"a\"\n2) \"b\""),
            ("TAG.INTER x y", "1) \"b\""),
            ("TAG.INTER x none", "(empty array)"),
            ("SELECT 1", "OK"),
            ("TAG.MEMBERS x", "(empty array)"),
            ("SWAPDB 0 1", "OK"),
            ("TAG.MEMBERS x", "1) \"a\"\n2) \"b\""),
            ("TAG.GET b", "1) \"x\"\n2) \"y\""),
            ("MULTI", "OK"),
            ("TAG.MEMBERS y", "QUEUED"),
            ("EXEC", "1) 1) \"b\"\n   2) \"c\""),
        ]);
    }

    #[test]
    fn tags_share_the_life_of_their_key() {
        check(&[
            ("SET k 1", "OK"),
            ("TAG.SET k t", "(integer) 1"),
            ("SET k 2", "OK"),
            ("SADD s m", "(integer) 1"),
            ("SUNIONSTORE k s", "(integer) 1"),
            ("TAG.GET k", "1) \"t\""),
            ("COPY k copy", "(integer) 1"),
            ("TAG.GET copy", "(empty array)"),
            ("RENAME k r", "OK"),
            ("TAG.GET k", "(empty array)"),
            ("TAG.MEMBERS t", "1) \"r\""),
            ("DEL r", "(integer) 1"),
            ("SET r 1", "OK"),
            ("TAG.GET r", "(empty array)"),
            ("TAG.SET r t", "(integer) 1"),
            ("RENAME copy r", "OK"),
            ("TAG.GET r", "(empty array)"),
            ("TAG.SET r t", "(integer) 1"),
            ("PEXPIREAT r 1", "(integer) 1"),
            ("TAG.MEMBERS t", "(empty array)"),
            ("SET r 1", "OK"),
            ("TAG.GET r", "(empty array)"),
            ("TAG.SET r t", "(integer) 1"),
            ("FLUSHDB", "OK"),
            ("SET r 1", "OK"),
            ("TAG.MEMBERS t", "(empty array)"),
        ]);
    }

    #[test]
    fn a_change_of_tags_is_a_change_of_the_key() {
        check(&[
            ("SET k 1", "OK"),
            ("WATCH k", "OK"),
            ("TAG.SET k t", "(integer) 1"),
            ("MULTI", "OK"),
            ("PING", "QUEUED"),
            ("EXEC", "(nil)"),
        ]);
    }
}
