//! TTL, PTTL, EXPIRETIME and PEXPIRETIME: when a key expires.
//!
//! All reply -2 for a missing key and -1 for one that never expires. Seconds are rounded to the
//! nearest.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::{
    AclCategories, Args, Arity, CommandFlags, CommandResult, CommandSpec, KeyFlags, KeySpec,
    ReadHandler, ReplyWriter, View,
};

const NO_KEY: i64 = -2;
const NO_EXPIRY: i64 = -1;

pub(super) const COMMANDS: &[CommandSpec] = &[
    spec("TTL", "1.0.0", ttl, "Tell how many seconds a key has left."),
    spec("PTTL", "2.6.0", pttl, "Tell how many milliseconds a key has left."),
    spec("EXPIRETIME", "7.0.0", expire_time, "Tell the Unix time in seconds when a key expires."),
    spec(
        "PEXPIRETIME",
        "7.0.0",
        pexpire_time,
        "Tell the Unix time in milliseconds when a key expires.",
    ),
];

/// Fills in what the four commands share.
const fn spec(
    name: &'static str,
    since: &'static str,
    handler: ReadHandler,
    summary: &'static str,
) -> CommandSpec {
    const KEYS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))];
    CommandSpec::read(name, Arity::exactly(2), handler)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::FAST)
        .keys(KEYS)
        .docs(since, "O(1)", "key", summary)
}

fn ttl(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(expiry(view, args, |at| to_seconds(left(view, at))));
    Ok(())
}

fn pttl(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(expiry(view, args, |at| left(view, at)));
    Ok(())
}

fn expire_time(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(expiry(view, args, to_seconds));
    Ok(())
}

fn pexpire_time(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(expiry(view, args, |at| at));
    Ok(())
}

/// What `show` makes of the expiry of the key at word 1.
fn expiry(view: &View<'_>, args: &Args<'_>, show: impl FnOnce(i64) -> i64) -> i64 {
    match view.get_untouched(args.get(1)) {
        None => NO_KEY,
        Some(entry) => entry.expire_at_ms().map_or(NO_EXPIRY, show),
    }
}

fn left(view: &View<'_>, at: i64) -> i64 {
    (at - view.now()).max(0)
}

/// Rounds to the nearest second.
fn to_seconds(ms: i64) -> i64 {
    ms / 1_000 + i64::from(ms % 1_000 >= 500)
}

#[cfg(test)]
mod tests {
    use super::to_seconds;
    use crate::testkit::check;

    #[test]
    fn seconds_are_rounded_to_the_nearest() {
        assert_eq!([0, 499, 500, 1_499, 1_500].map(to_seconds), [0, 0, 1, 1, 2]);
        assert_eq!(to_seconds(i64::MAX), i64::MAX / 1_000 + 1);
    }

    #[test]
    fn a_missing_key_and_one_without_expiry_differ() {
        for command in ["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"] {
            check(&[
                (&format!("{command} k"), "(integer) -2"),
                ("SET k v", "OK"),
                (&format!("{command} k"), "(integer) -1"),
            ]);
        }
        check(&[
            ("SET k v", "OK"),
            ("PEXPIREAT k 33177117420999", "(integer) 1"),
            ("EXPIRETIME k", "(integer) 33177117421"),
            ("PEXPIRETIME k", "(integer) 33177117420999"),
            ("EXPIRE k 100", "(integer) 1"),
            ("TTL k", "(integer) 100"),
        ]);
    }
}
