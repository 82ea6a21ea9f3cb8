//! HSCAN, SSCAN and ZSCAN: the elements of one value, some at a time.
//!
//! A value in a small encoding is returned whole by one call, whatever COUNT says; others keep
//! SCAN's promise by their table's cursor. Scores are bulk strings in RESP3 too.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::number::{DOUBLE_BYTES_MAX, INTEGER_BYTES_MAX, format_f64, format_f64_17};
use kiln_command::{
    Args, Arity, CommandResult, CommandSpec, Group, KeyFlags, KeySpec, ReadHandler, ReplyWriter,
    View,
};

use super::options::{Budget, Found, Options, Scanned, parse_cursor};

pub(super) const COMMANDS: &[CommandSpec] = &[
    spec(
        "HSCAN",
        Group::Hash,
        hscan,
        "key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
        "Show some fields of a hash, and the cursor with which to ask for more.",
    ),
    spec(
        "SSCAN",
        Group::Set,
        sscan,
        "key cursor [MATCH pattern] [COUNT count]",
        "Show some members of a set, and the cursor with which to ask for more.",
    ),
    spec(
        "ZSCAN",
        Group::SortedSet,
        zscan,
        "key cursor [MATCH pattern] [COUNT count]",
        "Show some members and scores of a sorted set, and the cursor with which to ask for more.",
    ),
];

const fn spec(
    name: &'static str,
    group: Group,
    handler: ReadHandler,
    syntax: &'static str,
    summary: &'static str,
) -> CommandSpec {
    const KEYS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))];
    CommandSpec::read(name, Arity::at_least(3), handler).group(group).keys(KEYS).docs(
        "2.8.0",
        "O(1) for each call, O(N) for all calls that go through N elements.",
        syntax,
        summary,
    )
}

fn hscan(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let cursor = parse_cursor(args.get(2))?;
    let Some(hash) = view.hash(args.get(1))? else { return write_nothing(reply) };
    let options = Options::parse(&args.tail(3), Scanned::Hash)?;
    walk(cursor, options.count, reply, |cursor, found| {
        let mut seen = 0;
        let next = hash.scan(cursor, view.now(), |field| {
            seen += 1;
            let mut scratch = [0; INTEGER_BYTES_MAX];
            let name = field.name.text(&mut scratch);
            if options.pattern.matches(name) {
                found.push(name);
                if !options.no_values {
                    found.push(field.value.text(&mut [0; INTEGER_BYTES_MAX]));
                }
            }
        });
        (next, seen)
    })
}

fn sscan(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let cursor = parse_cursor(args.get(2))?;
    let Some(set) = view.set(args.get(1))? else { return write_nothing(reply) };
    let options = Options::parse(&args.tail(3), Scanned::Other)?;
    walk(cursor, options.count, reply, |cursor, found| {
        let mut seen = 0;
        let next = set.scan(cursor, |member| {
            seen += 1;
            let mut scratch = [0; INTEGER_BYTES_MAX];
            let member = member.text(&mut scratch);
            if options.pattern.matches(member) {
                found.push(member);
            }
        });
        (next, seen)
    })
}

fn zscan(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let cursor = parse_cursor(args.get(2))?;
    let Some(zset) = view.zset(args.get(1))? else { return write_nothing(reply) };
    let options = Options::parse(&args.tail(3), Scanned::Other)?;
    let in_tree = zset.encoding() == "skiplist";
    walk(cursor, options.count, reply, |cursor, found| {
        let mut seen = 0;
        let next = zset.scan(cursor, |member, score| {
            seen += 1;
            if options.pattern.matches(member) {
                found.push(member);
                if in_tree {
                    // Redis prints these as it did before its listpacks held doubles.
                    found.push(format_f64_17(score).as_bytes());
                } else {
                    found.push(format_f64(score, &mut [0; DOUBLE_BYTES_MAX]));
                }
            }
        });
        (next, seen)
    })
}

/// Replies as to a scan of a key that does not exist.
fn write_nothing(reply: &mut ReplyWriter<'_>) -> CommandResult {
    Found::default().write(0, reply);
    Ok(())
}

/// Takes as many steps as COUNT asks for, and replies. A step looks at one bucket and returns the
/// next cursor and how many elements it saw.
fn walk(
    cursor: u64,
    count: usize,
    reply: &mut ReplyWriter<'_>,
    mut step: impl FnMut(u64, &mut Found) -> (u64, usize),
) -> CommandResult {
    let (mut found, mut budget) = (Found::default(), Budget::new(count));
    let mut cursor = cursor;
    loop {
        let (next, seen) = step(cursor, &mut found);
        budget.pay(seen);
        cursor = next;
        if cursor == 0 || budget.is_spent() {
            found.write(cursor, reply);
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn a_missing_key_hides_wrong_options_but_not_a_wrong_cursor() {
        for command in ["HSCAN", "SSCAN", "ZSCAN"] {
            check(&[
                (&format!("{command} k 0 BOGUS"), "1) \"0\"\n2) (empty array)"),
                (&format!("{command} k x BOGUS"), "(error) ERR invalid cursor"),
                ("SET k v", "OK"),
                (
                    &format!("{command} k 0 BOGUS"),
                    "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
                ),
            ]);
        }
    }
}
