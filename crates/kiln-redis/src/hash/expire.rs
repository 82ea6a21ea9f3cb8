//! HEXPIRE and its kin, HTTL and its kin, HPERSIST: the expiry of single fields.
//!
//! Replies for each field: -2 there is no such field, 0 the condition does not hold, 1 set, 2
//! removed because the time is not in the future.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::clock::UnixMs;
use kiln_base::number::format_i64;
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, ReadHandler,
    ReplyWriter, View, WriteHandler,
};

use super::{READ, UPDATE, settle};

/// The latest expiry of a field, in ms since the Unix epoch: 46 bits, as in Redis.
pub(super) const EXPIRY_MAX: UnixMs = (1 << 46) - 1;

pub(super) const COMMANDS: &[CommandSpec] = &[
    setting(
        "HEXPIRE",
        hexpire,
        "key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        "Let fields expire after some seconds.",
    ),
    setting(
        "HPEXPIRE",
        hpexpire,
        "key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        "Let fields expire after some milliseconds.",
    ),
    setting(
        "HEXPIREAT",
        hexpireat,
        "key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        "Let fields expire at a second of Unix time.",
    ),
    setting(
        "HPEXPIREAT",
        hpexpireat,
        "key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]",
        "Let fields expire at a millisecond of Unix time.",
    ),
    asking("HTTL", httl, "Return the seconds that fields have left."),
    asking("HPTTL", hpttl, "Return the milliseconds that fields have left."),
    asking("HEXPIRETIME", hexpiretime, "Return the second of Unix time at which fields expire."),
    asking(
        "HPEXPIRETIME",
        hpexpiretime,
        "Return the millisecond of Unix time at which fields expire.",
    ),
    CommandSpec::write("HPERSIST", Arity::at_least(5), hpersist)
        .group(Group::Hash)
        .flags(CommandFlags::FAST)
        .keys(UPDATE)
        .docs(
            "7.4.0",
            "O(1) for each field.",
            "key FIELDS numfields field [field ...]",
            "Take the expiry of fields away.",
        ),
];

const fn setting(
    name: &'static str,
    handler: WriteHandler,
    syntax: &'static str,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::write(name, Arity::at_least(6), handler)
        .group(Group::Hash)
        .flags(CommandFlags::FAST)
        .keys(UPDATE)
        .journal_by_handler()
        .docs("7.4.0", "O(1) for each field.", syntax, summary)
}

const fn asking(name: &'static str, handler: ReadHandler, summary: &'static str) -> CommandSpec {
    CommandSpec::read(name, Arity::at_least(5), handler)
        .group(Group::Hash)
        .flags(CommandFlags::FAST)
        .keys(READ)
        .docs("7.4.0", "O(1) for each field.", "key FIELDS numfields field [field ...]", summary)
}

/// The unit and the origin of an expiry argument.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) unit_ms: i64,
    pub(super) relative: bool,
}

impl Clock {
    pub(super) const EX: Self = Self { unit_ms: 1_000, relative: true };
    pub(super) const PX: Self = Self { unit_ms: 1, relative: true };
    pub(super) const EXAT: Self = Self { unit_ms: 1_000, relative: false };
    pub(super) const PXAT: Self = Self { unit_ms: 1, relative: false };

    /// The instant that `time` means.
    ///
    /// # Errors
    ///
    /// Below zero; too far away.
    pub(super) fn instant(
        self,
        time: i64,
        now: UnixMs,
        command: &'static str,
    ) -> Result<UnixMs, CommandError> {
        if time < 0 {
            return Err(CommandError::text("ERR invalid expire time, must be >= 0"));
        }
        let ms = time.checked_mul(self.unit_ms);
        let at = ms.and_then(|ms| if self.relative { ms.checked_add(now) } else { Some(ms) });
        at.filter(|at| *at <= EXPIRY_MAX).ok_or(CommandError::InvalidExpire(command))
    }
}

fn hexpire(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    expire(view, args, reply, Clock::EX, "hexpire")
}

fn hpexpire(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    expire(view, args, reply, Clock::PX, "hpexpire")
}

fn hexpireat(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    expire(view, args, reply, Clock::EXAT, "hexpireat")
}

fn hpexpireat(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    expire(view, args, reply, Clock::PXAT, "hpexpireat")
}

/// When an expiry may be set.
#[derive(Clone, Copy)]
enum Condition {
    Always,
    /// The field has none.
    Nx,
    /// The field has one.
    Xx,
    /// The new one is later; none is for ever.
    Gt,
    /// The new one is earlier.
    Lt,
}

impl Condition {
    fn admits(self, old: Option<UnixMs>, new: UnixMs) -> bool {
        match self {
            Self::Always => true,
            Self::Nx => old.is_none(),
            Self::Xx => old.is_some(),
            Self::Gt => old.is_some_and(|old| new > old),
            Self::Lt => old.is_none_or(|old| new < old),
        }
    }
}

fn expire(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
    clock: Clock,
    command: &'static str,
) -> CommandResult {
    let (key, now) = (args.get(1), view.now());
    view.hash(key)?;
    let at = clock.instant(args.int(2)?, now, command)?;
    let (condition, fields_at) = match args.get(3).to_ascii_uppercase().as_slice() {
        b"NX" => (Condition::Nx, 4),
        b"XX" => (Condition::Xx, 4),
        b"GT" => (Condition::Gt, 4),
        b"LT" => (Condition::Lt, 4),
        _ => (Condition::Always, 3),
    };
    let names = fields(args, fields_at, BAD_EXPIRE_COUNT)?;

    let (mut set, mut removed) = (Vec::new(), Vec::new());
    let mut before = None;
    reply.array(names.len());
    match view.hash_mut(key)? {
        None => names.iter().for_each(|_| reply.integer(-2)),
        Some(hash) => {
            before = hash.next_expiry();
            hash.allow_expiry();
            for name in names.iter() {
                let Some(field) = hash.find(name, now) else {
                    reply.integer(-2);
                    continue;
                };
                if !condition.admits(field.expire_at, at) {
                    reply.integer(0);
                } else if at <= now {
                    hash.remove(name, now);
                    removed.push(name);
                    reply.integer(2);
                } else {
                    hash.set_expiry(name, Some(at), now);
                    set.push(name);
                    reply.integer(1);
                }
            }
        }
    }
    announce(view, key, at, &set, &removed);
    settle(view, key, before);
    Ok(())
}

/// Tells of fields that got the expiry `at` and of fields that were removed.
pub(super) fn announce(
    view: &mut View<'_>,
    key: &[u8],
    at: UnixMs,
    set: &[&[u8]],
    removed: &[&[u8]],
) {
    if !set.is_empty() {
        view.changed(key, Event::HExpire);
        let (mut time, mut count) = ([0; 20], [0; 20]);
        let head = [
            &b"HPEXPIREAT"[..],
            key,
            format_i64(at, &mut time),
            b"FIELDS",
            format_i64(set.len() as i64, &mut count),
        ];
        view.journal(head.into_iter().chain(set.iter().copied()));
    }
    if !removed.is_empty() {
        view.changed(key, Event::HDel);
        view.journal([&b"HDEL"[..], key].into_iter().chain(removed.iter().copied()));
    }
}

/// The words behind `FIELDS numfields` at `at`, which must be as many as it says.
pub(super) fn fields<'a>(
    args: &Args<'a>,
    at: usize,
    bad_count: &'static str,
) -> Result<Args<'a>, CommandError> {
    if !args.is_word(at, "FIELDS") || at + 1 >= args.len() {
        return Err(CommandError::text(
            "ERR Mandatory argument FIELDS is missing or not at the right position",
        ));
    }
    let count = args.int(at + 1).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count > 0).ok_or(CommandError::text(bad_count))?;
    let names = args.tail(at + 2);
    if names.len() != count {
        return Err(CommandError::text(
            "ERR The `numfields` parameter must match the number of arguments",
        ));
    }
    Ok(names)
}

const BAD_EXPIRE_COUNT: &str = "ERR Parameter `numFields` should be greater than 0";
pub(super) const BAD_COUNT: &str = "ERR Number of fields must be a positive integer";

fn httl(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    // Rounded up: a field with half a second left has one.
    ask(view, args, reply, |at, now| (at - now + 999) / 1_000)
}

fn hpttl(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    ask(view, args, reply, |at, now| at - now)
}

fn hexpiretime(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    ask(view, args, reply, |at, _| (at + 999) / 1_000)
}

fn hpexpiretime(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    ask(view, args, reply, |at, _| at)
}

fn ask(
    view: &View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
    show: impl Fn(UnixMs, UnixMs) -> i64,
) -> CommandResult {
    let hash = view.hash(args.get(1))?;
    let names = fields(args, 2, BAD_COUNT)?;
    let now = view.now();
    reply.array(names.len());
    for name in names.iter() {
        let field = hash.and_then(|hash| hash.find(name, now));
        reply.integer(field.map_or(-2, |field| field.expire_at.map_or(-1, |at| show(at, now))));
    }
    Ok(())
}

fn hpersist(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (key, now) = (args.get(1), view.now());
    view.hash(key)?;
    let names = fields(args, 2, BAD_COUNT)?;
    let mut persisted = 0;
    let mut before = None;
    reply.array(names.len());
    match view.hash_mut(key)? {
        None => names.iter().for_each(|_| reply.integer(-2)),
        Some(hash) => {
            before = hash.next_expiry();
            for name in names.iter() {
                let outcome = match hash.find(name, now).map(|field| field.expire_at) {
                    None => -2,
                    Some(None) => -1,
                    Some(Some(_)) => {
                        hash.set_expiry(name, None, now);
                        persisted += 1;
                        1
                    }
                };
                reply.integer(outcome);
            }
        }
    }
    if persisted > 0 {
        view.changed(key, Event::HPersist);
    }
    view.field_expiry_moved(key, before);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn conditions_compare_with_the_old_expiry_and_none_is_for_ever() {
        check(&[
            ("HSET h f v g w", "(integer) 2"),
            ("HEXPIREAT h 33177117420 GT FIELDS 1 f", "1) (integer) 0"),
            ("HEXPIREAT h 33177117420 LT FIELDS 1 f", "1) (integer) 1"),
            ("HEXPIREAT h 33177117419 GT FIELDS 1 f", "1) (integer) 0"),
            (
                "HEXPIRETIME h FIELDS 3 f g x",
                "1) (integer) 33177117420\n2) (integer) -1\n3) (integer) -2",
            ),
            ("HPERSIST h FIELDS 2 f g", "1) (integer) 1\n2) (integer) -1"),
        ]);
    }

    #[test]
    fn a_past_expiry_removes_and_the_last_field_takes_the_key_along() {
        check(&[
            ("HSET h f v", "(integer) 1"),
            ("HEXPIRE h 0 FIELDS 1 f", "1) (integer) 2"),
            ("EXISTS h", "(integer) 0"),
            (
                "HEXPIRE h 1 FIELDS 2 f",
                "(error) ERR The `numfields` parameter must match the number of arguments",
            ),
        ]);
    }
}
