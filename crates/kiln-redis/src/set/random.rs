//! SPOP and SRANDMEMBER: members drawn evenly at random.
//!
//! SPOP is journaled as the SREM of what it drew, or as DEL if it took all.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3.

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, View,
};

use crate::element::{Carried, ReplyElement, carry};

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("SPOP", Arity::at_least(2), spop)
        .group(Group::Set)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))])
        .journal_by_handler()
        .docs(
            "1.0.0",
            "O(N) with N members popped.",
            "key [count]",
            "Remove and return random members of a set.",
        ),
    CommandSpec::read("SRANDMEMBER", Arity::at_least(2), srandmember)
        .group(Group::Set)
        .keys(&[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .docs(
            "1.0.0",
            "O(N) with N members returned.",
            "key [count]",
            "Return random members of a set.",
        ),
];

/// Most members that SRANDMEMBER draws with repetition. Redis knows no limit and is killed by the
/// system when it is asked for more than memory holds.
const REPEATED_MAX: u64 = 1 << 24;

fn spop(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match args.len() {
        2 => spop_one(view, args.get(1), reply),
        3 => spop_some(view, args.get(1), args.count(2)?, reply),
        _ => Err(CommandError::Syntax),
    }
}

fn spop_one(view: &mut View<'_>, key: &[u8], reply: &mut ReplyWriter<'_>) -> CommandResult {
    let mut rng = view.rng();
    let Some(set) = view.set_mut(key)? else {
        reply.null();
        return Ok(());
    };
    let member = set.pop_random(&mut rng, carry).expect("a set in the keyspace has members");
    let is_empty = set.is_empty();

    view.journal([&b"SREM"[..], key, &member]);
    announce_popped(view, key, 1, is_empty);
    reply.bulk(&member);
    Ok(())
}

fn spop_some(
    view: &mut View<'_>,
    key: &[u8],
    count: usize,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let mut rng = view.rng();
    let journals = view.journals();
    let Some(set) = view.set_mut(key)? else {
        reply.set(0);
        return Ok(());
    };
    let len = set.len();
    let popped = count.min(len);
    reply.set(popped);
    if popped == 0 {
        return Ok(());
    }
    if popped == len {
        set.iter().for_each(|member| reply.element(member));
        view.journal([&b"DEL"[..], key]);
        announce_popped(view, key, popped, true);
        return Ok(());
    }
    let mut members: Vec<Carried> = Vec::new();
    for _ in 0..popped {
        set.pop_random(&mut rng, |member| {
            reply.element(member);
            if journals {
                members.push(carry(member));
            }
        });
    }
    view.journal([&b"SREM"[..], key].into_iter().chain(members.iter().map(|member| &**member)));
    announce_popped(view, key, popped, false);
    Ok(())
}

fn announce_popped(view: &mut View<'_>, key: &[u8], popped: usize, is_empty: bool) {
    view.changed(key, Event::SPop);
    view.count_changes(popped as u64 - 1);
    if is_empty {
        view.delete(key);
        view.event(key, Event::Del);
    }
}

/// Without a count one member by itself; with a positive one so many different members, with a
/// negative one so many that may repeat.
fn srandmember(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let mut rng = view.rng();
    let count = match args.len() {
        2 => {
            match view.set(key)?.and_then(|set| set.random(&mut rng)) {
                Some(member) => reply.element(member),
                None => reply.null(),
            }
            return Ok(());
        }
        3 => args.signed_count(2)?,
        _ => return Err(CommandError::Syntax),
    };
    let Some(set) = view.set(key)? else {
        reply.empty_array();
        return Ok(());
    };
    if count >= 0 {
        let count = set.len().min(count as usize);
        reply.array(count);
        set.sample_distinct(&mut rng, count, |member| reply.element(member));
    } else {
        let count = count.unsigned_abs();
        if count > REPEATED_MAX {
            return Err(CommandError::OutOfRange);
        }
        reply.array(count as usize);
        set.sample(&mut rng, count as usize, |member| reply.element(member));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kiln_testkit::reply::Reply;

    use crate::testkit::check;

    #[test]
    fn all_members_are_popped_once() {
        check(&[
            ("SADD k a", "(integer) 1"),
            ("SPOP k", "\"a\""),
            ("GET k", "(nil)"),
            ("SPOP k", "(nil)"),
            ("SADD k 1 2 3", "(integer) 3"),
            ("SPOP k 0", "(empty array)"),
            ("SPOP k 9", "1) \"1\"\n2) \"2\"\n3) \"3\""),
            ("GET k", "(nil)"),
            ("SPOP k 9", "(empty array)"),
        ]);
    }

    #[test]
    fn a_part_is_popped_and_the_rest_stays() {
        let words = |line: &str| -> Vec<Vec<u8>> {
            line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
        };
        for members in ["1 2 3 4 5", "a b c d e"] {
            let mut server = crate::testkit::server();
            server.reply(&words(&format!("SADD k {members}")));
            server.reply(&words("SUNIONSTORE copy k"));
            let Reply::Array(popped) = server.reply(&words("SPOP k 2")) else {
                panic!("SPOP with a count replies with an array");
            };
            assert_eq!(popped.len(), 2);
            assert_ne!(popped[0], popped[1]);
            let members = popped.iter().map(|member| member.to_string().replace('"', ""));
            let srem = members.fold("SREM copy".to_owned(), |line, member| line + " " + &member);
            assert_eq!(server.reply(&words(&srem)), Reply::Integer(2));
            assert_eq!(server.reply(&words("SDIFF copy k")), Reply::Array(Vec::new()));
            assert_eq!(server.reply(&words("SCARD k")), Reply::Integer(3));
        }
    }

    #[test]
    fn random_members_repeat_only_if_asked_to() {
        check(&[
            ("SADD k a", "(integer) 1"),
            ("SRANDMEMBER k", "\"a\""),
            ("SRANDMEMBER k 3", "1) \"a\""),
            ("SRANDMEMBER k -3", "1) \"a\"\n2) \"a\"\n3) \"a\""),
            ("SRANDMEMBER k 0", "(empty array)"),
            ("SRANDMEMBER none", "(nil)"),
            ("SRANDMEMBER none -3", "(empty array)"),
        ]);
    }

    #[test]
    fn bad_counts() {
        check(&[
            ("SADD k a", "(integer) 1"),
            ("SPOP k -1", "(error) ERR value is out of range, must be positive"),
            ("SPOP k x", "(error) ERR value is out of range, must be positive"),
            ("SPOP k 1 2", "(error) ERR syntax error"),
            ("SRANDMEMBER k x", "(error) ERR value is not an integer or out of range"),
            ("SRANDMEMBER k 1 2", "(error) ERR syntax error"),
            ("SRANDMEMBER k -9223372036854775807", "(error) ERR value is out of range"),
        ]);
    }
}
