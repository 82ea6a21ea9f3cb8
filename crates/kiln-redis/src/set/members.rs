//! SADD, SREM, SMOVE, SCARD, SISMEMBER, SMISMEMBER and SMEMBERS.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3.

use kiln_command::{
    Args, Arity, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags, KeySpec,
    ReplyWriter, View,
};
use kiln_data::set::Set;

use crate::element::ReplyElement;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("SADD", Arity::at_least(3), sadd)
        .group(Group::Set)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::FAST))
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::INSERT))])
        .docs(
            "1.0.0",
            "O(N) with N members to add.",
            "key member [member ...]",
            "Add members to a set, made if missing.",
        ),
    CommandSpec::write("SREM", Arity::at_least(3), srem)
        .group(Group::Set)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::DELETE))])
        .docs(
            "1.0.0",
            "O(N) with N members to remove.",
            "key member [member ...]",
            "Remove members from a set.",
        ),
    CommandSpec::write("SMOVE", Arity::exactly(4), smove)
        .group(Group::Set)
        .flags(CommandFlags::FAST)
        .keys(&[
            KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
            KeySpec::at(2, KeyFlags::RW.union(KeyFlags::INSERT)),
        ])
        .docs("1.0.0", "O(1)", "source destination member", "Move a member to another set."),
    CommandSpec::read("SCARD", Arity::exactly(2), scard)
        .group(Group::Set)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RO)])
        .docs("1.0.0", "O(1)", "key", "Return the number of members of a set."),
    CommandSpec::read("SISMEMBER", Arity::exactly(3), sismember)
        .group(Group::Set)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RO)])
        .docs("1.0.0", "O(1)", "key member", "Say whether a set has a member."),
    CommandSpec::read("SMISMEMBER", Arity::at_least(3), smismember)
        .group(Group::Set)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .docs(
            "6.2.0",
            "O(N) with N members to look for.",
            "key member [member ...]",
            "Say for each of several members whether a set has it.",
        ),
    CommandSpec::read("SMEMBERS", Arity::exactly(2), smembers)
        .group(Group::Set)
        .keys(&[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .docs("1.0.0", "O(N) with N members.", "key", "Return all members of a set."),
];

fn sadd(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let members = args.tail(2);
    let limits = &view.settings().set;
    // The encoding follows from the first member and from how many are announced.
    let new = || Set::for_members(members.get(0), members.len(), limits);
    let set = view.set_or_insert(key, new)?;
    set.make_room(members.len(), limits);
    let added = members.iter().filter(|member| set.add(member, limits)).count();

    if added > 0 {
        view.changed(key, Event::SAdd);
        view.count_changes(added as u64 - 1);
    }
    reply.integer(added as i64);
    Ok(())
}

fn srem(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let Some(set) = view.set_mut(key)? else {
        reply.integer(0);
        return Ok(());
    };
    let removed = args.tail(2).iter().filter(|member| set.remove(member)).count();
    let is_empty = set.is_empty();

    if removed > 0 {
        view.changed(key, Event::SRem);
        view.count_changes(removed as u64 - 1);
    }
    if is_empty {
        view.delete(key);
        view.event(key, Event::Del);
    }
    reply.integer(removed as i64);
    Ok(())
}

/// Both types are checked before the member is looked for, and the source's presence before both.
fn smove(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (source, destination, member) = (args.get(1), args.get(2), args.get(3));
    let limits = &view.settings().set;
    let Some(set) = view.set(source)? else {
        reply.integer(0);
        return Ok(());
    };
    let is_member = set.contains(member);
    view.set(destination)?;
    if source == destination || !is_member {
        reply.integer(i64::from(is_member));
        return Ok(());
    }

    let set = view.set_mut(source).expect("its type was checked").expect("it was looked at");
    set.remove(member);
    let is_empty = set.is_empty();
    view.changed(source, Event::SRem);
    if is_empty {
        view.delete(source);
        view.event(source, Event::Del);
    }
    let new = || Set::for_members(member, 1, limits);
    let set = view.set_or_insert(destination, new).expect("its type was checked");
    if set.add(member, limits) {
        view.changed(destination, Event::SAdd);
    } else {
        view.signal(destination);
    }
    reply.integer(1);
    Ok(())
}

fn scard(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let len = view.set(args.get(1))?.map_or(0, Set::len);
    reply.integer(len as i64);
    Ok(())
}

fn sismember(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let found = view.set(args.get(1))?.is_some_and(|set| set.contains(args.get(2)));
    reply.integer(i64::from(found));
    Ok(())
}

fn smismember(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let set = view.set(args.get(1))?;
    let members = args.tail(2);
    reply.array(members.len());
    for member in members.iter() {
        reply.integer(i64::from(set.is_some_and(|set| set.contains(member))));
    }
    Ok(())
}

fn smembers(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let set = view.set(args.get(1))?;
    reply.set(set.map_or(0, Set::len));
    set.into_iter().flatten().for_each(|member| reply.element(member));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    const WRONG_TYPE: &str =
        "(error) WRONGTYPE Operation against a key holding the wrong kind of value";

    #[test]
    fn only_new_members_count() {
        check(&[
            ("SADD k 1 2 2 x", "(integer) 3"),
            ("SADD k x 3", "(integer) 1"),
            ("SCARD k", "(integer) 4"),
            ("SISMEMBER k 2", "(integer) 1"),
            ("SISMEMBER k 02", "(integer) 0"),
            ("SMISMEMBER k x y 3", "1) (integer) 1\n2) (integer) 0\n3) (integer) 1"),
            ("SREM k y x x 1", "(integer) 2"),
            ("SREM k 2 3", "(integer) 2"),
            ("GET k", "(nil)"),
        ]);
    }

    #[test]
    fn a_missing_set_is_empty() {
        check(&[
            ("SCARD k", "(integer) 0"),
            ("SISMEMBER k a", "(integer) 0"),
            ("SMISMEMBER k a b", "1) (integer) 0\n2) (integer) 0"),
            ("SMEMBERS k", "(empty array)"),
            ("SREM k a", "(integer) 0"),
            ("SMOVE k other a", "(integer) 0"),
        ]);
    }

    #[test]
    fn the_encoding_follows_the_members() {
        check(&[
            ("SADD ints 1 2 3", "(integer) 3"),
            ("OBJECT ENCODING ints", "\"intset\""),
            ("SADD ints x", "(integer) 1"),
            ("OBJECT ENCODING ints", "\"listpack\""),
            ("CONFIG SET set-max-listpack-entries 4 set-max-intset-entries 2", "OK"),
            ("SADD ints y", "(integer) 1"),
            ("OBJECT ENCODING ints", "\"hashtable\""),
            ("SADD many 1 2 3", "(integer) 3"),
            ("OBJECT ENCODING many", "\"listpack\""),
            ("SADD more a 1 2 3 4", "(integer) 5"),
            ("OBJECT ENCODING more", "\"hashtable\""),
        ]);
    }

    #[test]
    fn a_member_moves_once() {
        check(&[
            ("SADD a 1 x", "(integer) 2"),
            ("SADD b y", "(integer) 1"),
            ("SMOVE a b x", "(integer) 1"),
            ("SMOVE a b x", "(integer) 0"),
            ("SMOVE a a 1", "(integer) 1"),
            ("SMOVE a a 2", "(integer) 0"),
            ("SMOVE a new 1", "(integer) 1"),
            ("GET a", "(nil)"),
            ("SMEMBERS new", "1) \"1\""),
            ("SCARD b", "(integer) 2"),
        ]);
    }

    #[test]
    fn smove_checks_types_if_there_is_a_source() {
        check(&[
            ("SET s v", "OK"),
            ("SMOVE none s 1", "(integer) 0"),
            ("SADD a 1", "(integer) 1"),
            ("SMOVE a s 9", WRONG_TYPE),
            ("SMOVE s a 1", WRONG_TYPE),
            ("SADD s 1", WRONG_TYPE),
            ("SMEMBERS a", "1) \"1\""),
        ]);
    }
}
