//! HyperLogLog: count different elements within 0.81 %, in at most 12 KiB.
//!
//! The value is a string, whose bytes are Redis's ([`kiln_data::hyperloglog`]); this module is the
//! commands. What is checked of a client's string: that it is one, before anything; that its runs
//! add up, when they are walked.
//!
//! PFCOUNT of one key keeps its estimate in the value, as in Redis, so it takes the exclusive lock
//! although it is `readonly`: a second PFCOUNT then costs 20 ns instead of 10 µs.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3.

mod debug;

use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, StringRef, Ttl, View,
};
use kiln_data::hyperloglog::{CorruptHyperLogLog, HyperLogLog, NotHyperLogLog, Union};

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[
    &[
        CommandSpec::write("PFADD", Arity::at_least(2), pfadd)
            .group(Group::HyperLogLog)
            .flags(CommandFlags::DENYOOM.union(CommandFlags::FAST))
            .keys(&[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::INSERT))])
            .docs(
                "2.8.9",
                "O(1) for each element.",
                "key [element [element ...]]",
                "Add elements to a HyperLogLog.",
            ),
        CommandSpec {
            flags: CommandFlags::READONLY,
            ..CommandSpec::write("PFCOUNT", Arity::at_least(2), pfcount)
        }
        .group(Group::HyperLogLog)
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RW.union(KeyFlags::ACCESS))])
        .docs(
            "2.8.9",
            "O(1) for one key that has not changed since, else O(N) with N keys.",
            "key [key ...]",
            "Estimate how many different elements were added to any of the HyperLogLogs.",
        ),
        CommandSpec::write("PFMERGE", Arity::at_least(2), pfmerge)
            .group(Group::HyperLogLog)
            .flags(CommandFlags::DENYOOM)
            .keys(&[
                KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::INSERT)),
                KeySpec::range(2, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS)),
            ])
            .docs(
                "2.8.9",
                "O(N) with N HyperLogLogs.",
                "destkey [sourcekey [sourcekey ...]]",
                "Merge HyperLogLogs into one.",
            ),
    ],
    debug::COMMANDS,
];

/// The value at a key is a string, but no HyperLogLog.
fn invalid(_: NotHyperLogLog) -> CommandError {
    CommandError::text("WRONGTYPE Key is not a valid HyperLogLog string value.")
}

/// It looked like one until its runs were walked.
fn corrupt(_: CorruptHyperLogLog) -> CommandError {
    CommandError::text("INVALIDOBJ Corrupted HLL object detected")
}

/// The HyperLogLog at a key, where it lies.
fn find<'v>(view: &'v View<'_>, key: &[u8]) -> Result<Option<HyperLogLog<&'v [u8]>>, CommandError> {
    match view.string(key)? {
        None => Ok(None),
        Some(StringRef::Int(_)) => Err(invalid(NotHyperLogLog)),
        Some(StringRef::Bytes(bytes)) => HyperLogLog::from_bytes(bytes).map(Some).map_err(invalid),
        Some(StringRef::Shared(bytes)) => {
            HyperLogLog::from_bytes(bytes.as_slice()).map(Some).map_err(invalid)
        }
    }
}

/// A copy in memory of its own, to change it.
fn copy<B: AsRef<[u8]>>(found: &HyperLogLog<B>) -> HyperLogLog {
    let copy = HyperLogLog::from_bytes(found.as_bytes().to_vec());
    copy.expect("it was one before it was copied")
}

fn pfadd(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let elements = args.tail(2);
    let changed = match find(view, key)? {
        Some(found) if found.is_dense() => add_dense(view, key, &elements),
        found => {
            let value = found.map(|found| copy(&found));
            add_sparse(view, key, value, &elements)?
        }
    };
    if changed {
        view.changed(key, Event::PfAdd);
    }
    reply.integer(i64::from(changed));
    Ok(())
}

/// Adds elements to the dense HyperLogLog at `key`, in place; says whether that changed it.
fn add_dense(view: &mut View<'_>, key: &[u8], elements: &Args<'_>) -> bool {
    let added = view.edit_string(key, 0, |_, bytes| {
        let mut found = HyperLogLog::from_bytes(bytes).expect("the caller has looked");
        let mut changed = false;
        for element in elements.iter() {
            changed |= found.add_dense(element).expect("the caller has looked");
        }
        changed
    });
    added.expect("the caller has looked")
}

/// Adds elements to a copy of the sparse HyperLogLog at `key`, or to a new one, and stores it if
/// that changed it; says whether it did. These are a few hundred bytes, which move anyway when a
/// run is split.
fn add_sparse(
    view: &mut View<'_>,
    key: &[u8],
    value: Option<HyperLogLog>,
    elements: &Args<'_>,
) -> Result<bool, CommandError> {
    let sparse_bytes_max = view.settings().hll_sparse_max_bytes;
    let mut changed = value.is_none();
    let mut value = value.unwrap_or_default();
    for element in elements.iter() {
        changed |= value.add(element, sparse_bytes_max).map_err(corrupt)?;
    }
    if changed {
        value.mark_stale();
        view.set_built_string(key, value.into_bytes(), Ttl::Keep);
    }
    Ok(changed)
}

fn pfcount(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if args.len() > 2 {
        let mut union = Union::new();
        for key in args.tail(1).iter() {
            if let Some(found) = find(view, key)? {
                union.add(&found).map_err(corrupt)?;
            }
        }
        reply.integer(union.estimate() as i64);
        return Ok(());
    }
    let key = args.get(1);
    let Some(found) = find(view, key)? else {
        reply.integer(0);
        return Ok(());
    };
    if let Some(count) = found.known_count() {
        reply.integer(count as i64);
        return Ok(());
    }
    let count = found.estimate().map_err(corrupt)?;
    let kept = view.edit_string(key, 0, |_, bytes| {
        HyperLogLog::from_bytes(bytes).expect("it was one a moment ago").set_count(count);
    });
    kept.expect("it was a string a moment ago");
    // The bytes changed, for replicas and watchers too; there is no event for it.
    view.count_changes(1);
    view.signal(key);
    reply.integer(count as i64);
    Ok(())
}

fn pfmerge(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let mut union = Union::new();
    for key in args.tail(1).iter() {
        if let Some(found) = find(view, key)? {
            union.add(&found).map_err(corrupt)?;
        }
    }
    let mut target = find(view, key)?.map_or_else(HyperLogLog::new, |found| copy(&found));
    union.merge_into(&mut target, view.settings().hll_sparse_max_bytes).map_err(corrupt)?;
    view.set_built_string(key, target.into_bytes(), Ttl::Keep);
    view.changed(key, Event::PfAdd);
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    const INVALID: &str = "(error) WRONGTYPE Key is not a valid HyperLogLog string value.";
    const CORRUPT: &str = "(error) INVALIDOBJ Corrupted HLL object detected";

    #[test]
    fn elements_are_counted_once() {
        check(&[
            ("PFADD a 1 2 3", "(integer) 1"),
            ("PFADD a 3 1", "(integer) 0"),
            ("PFCOUNT a", "(integer) 3"),
            ("PFADD b 3 4 5", "(integer) 1"),
            ("PFCOUNT a b missing", "(integer) 5"),
            ("PFMERGE d a b", "OK"),
            ("PFCOUNT d", "(integer) 5"),
            ("PFCOUNT d", "(integer) 5"),
            ("PFCOUNT missing", "(integer) 0"),
        ]);
    }

    #[test]
    fn no_elements_still_make_a_key() {
        check(&[
            ("PFADD a", "(integer) 1"),
            ("PFADD a", "(integer) 0"),
            ("STRLEN a", "(integer) 18"),
            ("PFMERGE b", "OK"),
            ("PFCOUNT b", "(integer) 0"),
        ]);
    }

    #[test]
    fn counts_are_kept_in_the_value_as_in_redis() {
        check(&[
            ("PFADD a x EX", "(integer) 1"),
            ("GETRANGE a 8 15", "\"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x80\""),
            ("PFCOUNT a", "(integer) 2"),
            ("GETRANGE a 8 15", "\"\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\""),
            ("PFADD a y", "(integer) 1"),
            ("PFCOUNT a", "(integer) 3"),
        ]);
    }

    #[test]
    fn other_strings_are_refused() {
        check(&[
            ("SET k text", "OK"),
            ("SET n 5", "OK"),
            ("PFADD k a", INVALID),
            ("PFCOUNT n", INVALID),
            ("PFADD h a", "(integer) 1"),
            ("PFCOUNT h k", INVALID),
            ("PFMERGE new h k", INVALID),
            ("PFMERGE k h", INVALID),
            ("GET new", "(nil)"),
            ("APPEND h x", "(integer) 22"),
            ("PFCOUNT h", CORRUPT),
            ("PFMERGE new h", CORRUPT),
            ("GET new", "(nil)"),
        ]);
    }
}
