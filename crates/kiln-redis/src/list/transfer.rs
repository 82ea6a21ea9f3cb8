//! LMOVE and RPOPLPUSH, and BLMOVE and BRPOPLPUSH, which wait for an element.
//!
//! All are one operation, [`transfer`]: an element leaves an end of one list and joins an end of
//! another, or of the same one, in one step. The reply is the element.
//!
//! Source: the Redis documentation; replies and the order of events observed on Redis 8.2.3.

use kiln_command::blocking::{Block, Outcome, TimeoutReply, parse_timeout};
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, View,
};
use kiln_data::list::End;

use super::{end_word, pop_event, push_event};
use crate::element::carry;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("LMOVE", Arity::exactly(5), lmove)
        .group(Group::List)
        .flags(CommandFlags::DENYOOM)
        .keys(KEYS)
        .docs(
            "6.2.0",
            "O(1)",
            "source destination <LEFT | RIGHT> <LEFT | RIGHT>",
            "Move an element from an end of one list to an end of another.",
        ),
    CommandSpec::write("RPOPLPUSH", Arity::exactly(3), rpoplpush)
        .group(Group::List)
        .flags(CommandFlags::DENYOOM)
        .keys(KEYS)
        .docs(
            "1.2.0",
            "O(1)",
            "source destination",
            "Move the last element of one list to the head of another.",
        ),
    CommandSpec::blocking("BLMOVE", Arity::exactly(6), blmove)
        .group(Group::List)
        .flags(CommandFlags::DENYOOM)
        .keys(KEYS)
        .journal_by_handler()
        .docs(
            "6.2.0",
            "O(1)",
            "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
            "Wait for an element in one list and move it to an end of another.",
        ),
    CommandSpec::blocking("BRPOPLPUSH", Arity::exactly(4), brpoplpush)
        .group(Group::List)
        .flags(CommandFlags::DENYOOM)
        .keys(KEYS)
        .journal_by_handler()
        .docs(
            "2.2.0",
            "O(1)",
            "source destination timeout",
            "Wait for the last element of one list and move it to the head of another.",
        ),
];

const KEYS: &[KeySpec] = &[
    KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
    KeySpec::at(2, KeyFlags::RW.union(KeyFlags::INSERT)),
];

/// Two lists and their ends.
struct Route<'a> {
    source: &'a [u8],
    destination: &'a [u8],
    from: End,
    to: End,
}

impl<'a> Route<'a> {
    /// The route of LMOVE's and BLMOVE's words.
    fn parse(args: &Args<'a>) -> Result<Self, CommandError> {
        let from = end_word(args, 3).ok_or(CommandError::Syntax)?;
        let to = end_word(args, 4).ok_or(CommandError::Syntax)?;
        Ok(Self { source: args.get(1), destination: args.get(2), from, to })
    }

    /// The route of RPOPLPUSH and BRPOPLPUSH.
    fn tail_to_head(args: &Args<'a>) -> Self {
        let (source, destination) = (args.get(1), args.get(2));
        Self { source, destination, from: End::Back, to: End::Front }
    }
}

fn lmove(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    transfer_now(view, &Route::parse(args)?, reply)
}

fn rpoplpush(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    transfer_now(view, &Route::tail_to_head(args), reply)
}

fn blmove(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    transfer_or_wait(view, &Route::parse(args)?, args.get(5), reply)
}

fn brpoplpush(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    transfer_or_wait(view, &Route::tail_to_head(args), args.get(3), reply)
}

fn transfer_now(
    view: &mut View<'_>,
    route: &Route<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    if !transfer(view, route, reply)? {
        reply.null();
    }
    Ok(())
}

/// Journaled as LMOVE, without the wait.
fn transfer_or_wait(
    view: &mut View<'_>,
    route: &Route<'_>,
    timeout: &[u8],
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    let timeout = parse_timeout(timeout)?;
    if transfer(view, route, reply)? {
        let (from, to) = (end_name(route.from), end_name(route.to));
        view.journal([&b"LMOVE"[..], route.source, route.destination, from, to]);
        return Ok(Outcome::Done);
    }
    let keys = std::iter::once(1).collect();
    Ok(Outcome::Block(Block { timeout, on_timeout: TimeoutReply::NullThenArray, keys }))
}

fn end_name(end: End) -> &'static [u8] {
    match end {
        End::Front => b"LEFT",
        End::Back => b"RIGHT",
    }
}

/// Moves one element and replies with it; false if the source has none.
fn transfer(
    view: &mut View<'_>,
    route: &Route<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<bool, CommandError> {
    let Route { source, destination, from, to } = *route;
    let limits = view.settings().list;
    // The destination's type matters only if there is something to move.
    if view.list(source)?.is_none() {
        return Ok(false);
    }
    view.list(destination)?;

    let list = view.list_mut(source)?.expect("the source was looked at");
    let element = if source == destination {
        list.rotate(from, to, limits, carry)
    } else {
        list.pop(from, limits, carry)
    };
    let element = element.expect("a list in the keyspace has elements");
    if source != destination {
        let joined = view.list_or_new(destination).expect("the destination was looked at");
        joined.push(to, &element, limits);
    }
    view.signal(destination);
    view.event(destination, push_event(to));
    view.changed(source, pop_event(from));
    if view.remove_if_empty(source) {
        view.event(source, Event::Del);
    }
    reply.bulk(&element);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    const WRONG_TYPE: &str =
        "(error) WRONGTYPE Operation against a key holding the wrong kind of value";

    #[test]
    fn an_element_moves_between_the_named_ends() {
        check(&[
            ("RPUSH a 1 2 3", "(integer) 3"),
            ("LMOVE a b LEFT RIGHT", "\"1\""),
            ("RPOPLPUSH a b", "\"3\""),
            ("BLMOVE a b RIGHT RIGHT 0", "\"2\""),
            ("GET a", "(nil)"),
            ("LRANGE b 0 -1", "1) \"3\"\n2) \"1\"\n3) \"2\""),
            ("LMOVE a b LEFT LEFT", "(nil)"),
            ("BRPOPLPUSH a b 0", "(waiting)"),
        ]);
    }

    #[test]
    fn a_list_can_be_turned() {
        check(&[
            ("RPUSH a 1 2 3", "(integer) 3"),
            ("RPOPLPUSH a a", "\"3\""),
            ("LRANGE a 0 -1", "1) \"3\"\n2) \"1\"\n3) \"2\""),
            ("LTRIM a 0 0", "OK"),
            ("LMOVE a a LEFT RIGHT", "\"3\""),
            ("LRANGE a 0 -1", "1) \"3\""),
        ]);
    }

    #[test]
    fn types_are_checked_before_anything_moves() {
        check(&[
            ("SET s v", "OK"),
            ("LMOVE none s LEFT LEFT", "(nil)"),
            ("RPUSH a 1", "(integer) 1"),
            ("LMOVE a s LEFT LEFT", WRONG_TYPE),
            ("BRPOPLPUSH a s 0", WRONG_TYPE),
            ("RPOPLPUSH s a", WRONG_TYPE),
            ("LRANGE a 0 -1", "1) \"1\""),
        ]);
    }

    #[test]
    fn ends_are_checked_before_the_timeout() {
        check(&[
            ("LMOVE a b UP LEFT", "(error) ERR syntax error"),
            ("LMOVE a b LEFT DOWN", "(error) ERR syntax error"),
            ("BLMOVE a b UP LEFT x", "(error) ERR syntax error"),
            ("BLMOVE a b LEFT LEFT x", "(error) ERR timeout is not a float or out of range"),
            ("BRPOPLPUSH a b -1", "(error) ERR timeout is negative"),
        ]);
    }

    #[test]
    fn nobody_waits_inside_a_transaction() {
        check(&[
            ("MULTI", "OK"),
            ("BLMOVE a b LEFT LEFT 0", "QUEUED"),
            ("BRPOPLPUSH a b 0", "QUEUED"),
            ("EXEC", "1) (nil)\n2) (nil)"),
        ]);
    }
}
