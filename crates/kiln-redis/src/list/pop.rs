//! LPOP, RPOP and LMPOP, and BLPOP, BRPOP and BLMPOP, which wait for an element.
//!
//! All are one operation, [`pop`]. It is journaled as LPOP or RPOP with a count, whichever command
//! asked for it: a copy of the data must neither wait nor look for the first list that has
//! something.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3.

use kiln_base::number::{INTEGER_BYTES_MAX, format_i64};
use kiln_command::args::ArgsExt;
use kiln_command::blocking::{Block, Outcome, TimeoutReply, parse_timeout};
use kiln_command::{
    Args, Arity, BlockingHandler, CommandError, CommandFlags, CommandResult, CommandSpec, Group,
    KeyFlags, KeySpec, ReplyWriter, View, WriteHandler, wrong_arity,
};
use kiln_data::list::End;

use super::{announce_removed, end_word, pop_event};
use crate::element::{ReplyElement, num_keys, positive};

const LPOP: CommandSpec = pop_spec("LPOP", lpop, "Remove and return elements at the head.");
const RPOP: CommandSpec = pop_spec("RPOP", rpop, "Remove and return elements at the tail.");

pub(super) const COMMANDS: &[CommandSpec] = &[
    LPOP,
    RPOP,
    CommandSpec::write("LMPOP", Arity::at_least(4), lmpop)
        .group(Group::List)
        .flags(CommandFlags::MOVABLEKEYS)
        .keys(&[KeySpec::keynum(1, REMOVES)])
        .journal_by_handler()
        .docs(
            "7.0.0",
            "O(N+M) with N keys and M elements popped.",
            "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
            "Pop elements from the first of several lists that has any.",
        ),
    blocking_spec("BLPOP", blpop, "Wait for an element at the head of one of several lists."),
    blocking_spec("BRPOP", brpop, "Wait for an element at the tail of one of several lists."),
    CommandSpec::blocking("BLMPOP", Arity::at_least(5), blmpop)
        .group(Group::List)
        .flags(CommandFlags::MOVABLEKEYS)
        .keys(&[KeySpec::keynum(2, REMOVES)])
        .journal_by_handler()
        .docs(
            "7.0.0",
            "O(N+M) with N keys and M elements popped.",
            "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
            "Wait for elements in one of several lists, and pop them.",
        ),
];

const REMOVES: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);
const KEY: &[KeySpec] = &[KeySpec::at(1, REMOVES)];
const KEYS_AND_TIMEOUT: &[KeySpec] = &[KeySpec::range(1, -2, 1, REMOVES)];

const fn pop_spec(name: &'static str, handler: WriteHandler, summary: &'static str) -> CommandSpec {
    CommandSpec::write(name, Arity::at_least(2), handler)
        .group(Group::List)
        .flags(CommandFlags::FAST)
        .keys(KEY)
        .docs("1.0.0", "O(N) with N elements returned.", "key [count]", summary)
}

const fn blocking_spec(
    name: &'static str,
    handler: BlockingHandler,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::blocking(name, Arity::at_least(3), handler)
        .group(Group::List)
        .keys(KEYS_AND_TIMEOUT)
        .journal_by_handler()
        .docs("2.0.0", "O(N) with N keys.", "key [key ...] timeout", summary)
}

/// How many elements to pop, and how to reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    /// One, by itself.
    One,
    /// Up to so many, as an array.
    UpTo(usize),
}

fn lpop(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    pop_one_key(view, args, End::Front, &LPOP, reply)
}

fn rpop(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    pop_one_key(view, args, End::Back, &RPOP, reply)
}

fn pop_one_key(
    view: &mut View<'_>,
    args: &Args<'_>,
    end: End,
    spec: &CommandSpec,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let amount = match args.len() {
        2 => Amount::One,
        3 => Amount::UpTo(args.count(2)?),
        _ => return Err(wrong_arity(spec)),
    };
    if pop(view, args.get(1), end, amount, reply)?.is_none() {
        match amount {
            Amount::One => reply.null(),
            Amount::UpTo(_) => reply.null_array(),
        }
    }
    Ok(())
}

/// Pops from the list at `key`, replies with the elements and returns how many they are; `None` if
/// there is no list.
#[inline]
fn pop(
    view: &mut View<'_>,
    key: &[u8],
    end: End,
    amount: Amount,
    reply: &mut ReplyWriter<'_>,
) -> Result<Option<usize>, CommandError> {
    let limits = view.settings().list;
    let Some(list) = view.list_mut(key)? else { return Ok(None) };
    let popped = match amount {
        Amount::One => {
            list.pop(end, limits, |element| reply.element(element));
            1
        }
        Amount::UpTo(count) => {
            let len = list.len();
            let count = count.min(len);
            reply.array(count);
            // Removed at once: one by one, each would move all that is left of its node.
            let (walk, first) = match end {
                End::Front => (list.iter_from(0, End::Back), 0),
                End::Back => (list.iter_from(len - 1, End::Front), len - count),
            };
            walk.take(count).for_each(|element| reply.element(element));
            list.remove_range(first, count, limits);
            count
        }
    };
    let is_empty = list.is_empty();
    if popped > 0 {
        announce_removed(view, key, pop_event(end), popped, is_empty);
    }
    Ok(Some(popped))
}

/// Journals what [`pop`] did for a command that is more than LPOP or RPOP.
fn journal_pop(view: &mut View<'_>, key: &[u8], end: End, count: usize) {
    let name: &[u8] = match end {
        End::Front => b"LPOP",
        End::Back => b"RPOP",
    };
    let mut digits = [0; INTEGER_BYTES_MAX];
    view.journal([name, key, format_i64(count as i64, &mut digits)]);
}

/// The words of LMPOP and BLMPOP from the number of keys on.
struct MultiPop {
    /// Indexes of the first key and of the word behind the last.
    keys: std::ops::Range<usize>,
    end: End,
    count: usize,
}

fn parse_multi_pop(args: &Args<'_>, at: usize) -> Result<MultiPop, CommandError> {
    let number = num_keys(args, at)?;
    let first = at + 1;
    let side = first.checked_add(number).filter(|&side| side < args.len());
    let side = side.ok_or(CommandError::Syntax)?;
    let end = end_word(args, side).ok_or(CommandError::Syntax)?;
    let count = match args.len() - side - 1 {
        0 => 1,
        2.. if args.is_word(side + 1, "COUNT") => {
            let error = CommandError::text("ERR count should be greater than 0");
            let count = positive(args.get(side + 2)).ok_or(error)?;
            if args.len() > side + 3 {
                return Err(CommandError::Syntax);
            }
            count
        }
        _ => return Err(CommandError::Syntax),
    };
    Ok(MultiPop { keys: first..side, end, count })
}

/// Pops from the first list that has something; says whether there was one.
fn pop_first(
    view: &mut View<'_>,
    args: &Args<'_>,
    multi: &MultiPop,
    reply: &mut ReplyWriter<'_>,
) -> Result<bool, CommandError> {
    for key in multi.keys.clone().map(|index| args.get(index)) {
        if view.list(key)?.is_some() {
            reply.array(2);
            reply.bulk(key);
            let popped = pop(view, key, multi.end, Amount::UpTo(multi.count), reply)?;
            journal_pop(view, key, multi.end, popped.unwrap_or(0));
            return Ok(true);
        }
    }
    Ok(false)
}

fn lmpop(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let multi = parse_multi_pop(args, 1)?;
    if !pop_first(view, args, &multi, reply)? {
        reply.null_array();
    }
    Ok(())
}

fn blmpop(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    // The timeout is the first word, yet the last that the reference checks.
    let multi = parse_multi_pop(args, 2)?;
    let timeout = parse_timeout(args.get(1))?;
    if pop_first(view, args, &multi, reply)? {
        return Ok(Outcome::Done);
    }
    let keys = multi.keys.collect();
    Ok(Outcome::Block(Block { timeout, on_timeout: TimeoutReply::NullArray, keys }))
}

fn blpop(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    pop_or_wait(view, args, End::Front, reply)
}

fn brpop(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    pop_or_wait(view, args, End::Back, reply)
}

fn pop_or_wait(
    view: &mut View<'_>,
    args: &Args<'_>,
    end: End,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    let last = args.len() - 1;
    let timeout = parse_timeout(args.get(last))?;
    for key in (1..last).map(|index| args.get(index)) {
        if view.list(key)?.is_some() {
            reply.array(2);
            reply.bulk(key);
            pop(view, key, end, Amount::One, reply)?;
            journal_pop(view, key, end, 1);
            return Ok(Outcome::Done);
        }
    }
    let keys = (1..last).collect();
    Ok(Outcome::Block(Block { timeout, on_timeout: TimeoutReply::NullArray, keys }))
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn a_count_makes_an_array_even_of_nothing() {
        check(&[
            ("RPUSH k a b c d", "(integer) 4"),
            ("LPOP k", "\"a\""),
            ("RPOP k 2", "1) \"d\"\n2) \"c\""),
            ("LPOP k 0", "(empty array)"),
            ("LPOP k 9", "1) \"b\""),
            ("GET k", "(nil)"),
            ("LPOP k", "(nil)"),
            ("LPOP k 1", "(nil)"),
        ]);
    }

    #[test]
    fn a_bad_count_is_an_error_before_the_key_is_looked_at() {
        const NOT_POSITIVE: &str = "(error) ERR value is out of range, must be positive";
        check(&[
            ("SET k v", "OK"),
            ("LPOP k -1", NOT_POSITIVE),
            ("LPOP k x", NOT_POSITIVE),
            ("LPOP k 1 2", "(error) ERR wrong number of arguments for 'lpop' command"),
            ("RPOP k 1 2", "(error) ERR wrong number of arguments for 'rpop' command"),
        ]);
    }

    #[test]
    fn the_first_list_with_elements_is_popped() {
        check(&[
            ("RPUSH b 1 2 3", "(integer) 3"),
            ("RPUSH c 4", "(integer) 1"),
            ("LMPOP 3 a b c LEFT COUNT 2", "1) \"b\"\n2) 1) \"1\"\n   2) \"2\""),
            ("LMPOP 3 a b c RIGHT", "1) \"b\"\n2) 1) \"3\""),
            ("BLPOP a b c 0", "1) \"c\"\n2) \"4\""),
            ("LMPOP 3 a b c RIGHT", "(nil)"),
            ("BRPOP a b c 0", "(waiting)"),
        ]);
    }

    #[test]
    fn what_lmpop_does_not_understand() {
        const SYNTAX: &str = "(error) ERR syntax error";
        check(&[
            ("LMPOP 0 k LEFT", "(error) ERR numkeys should be greater than 0"),
            ("LMPOP x k LEFT", "(error) ERR numkeys should be greater than 0"),
            ("LMPOP 2 k LEFT", SYNTAX),
            ("LMPOP 9223372036854775807 k LEFT", SYNTAX),
            ("LMPOP 1 k UP", SYNTAX),
            ("LMPOP 1 k LEFT COUNT", SYNTAX),
            ("LMPOP 1 k LEFT COUNT 0", "(error) ERR count should be greater than 0"),
            ("LMPOP 1 k LEFT COUNT 1 COUNT 2", SYNTAX),
            ("BLMPOP -1 0 k LEFT", "(error) ERR numkeys should be greater than 0"),
            ("BLMPOP -1 1 k LEFT COUNT 0", "(error) ERR count should be greater than 0"),
            ("BLMPOP -1 1 k LEFT", "(error) ERR timeout is negative"),
        ]);
    }

    #[test]
    fn nobody_waits_inside_a_transaction() {
        check(&[
            ("MULTI", "OK"),
            ("BLPOP k 0", "QUEUED"),
            ("BLMPOP 0 1 k LEFT", "QUEUED"),
            ("RPUSH k a", "QUEUED"),
            ("BRPOP k 0", "QUEUED"),
            ("EXEC", "1) (nil)\n2) (nil)\n3) (integer) 1\n4) 1) \"k\"\n   2) \"a\""),
        ]);
    }

    #[test]
    fn a_wrong_type_before_the_first_list_is_an_error() {
        const WRONG_TYPE: &str =
            "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
        check(&[
            ("SET s v", "OK"),
            ("RPUSH k a", "(integer) 1"),
            ("BLPOP none s k 0", WRONG_TYPE),
            ("LMPOP 2 s k LEFT", WRONG_TYPE),
            ("BLPOP k s 0", "1) \"k\"\n2) \"a\""),
        ]);
    }
}
