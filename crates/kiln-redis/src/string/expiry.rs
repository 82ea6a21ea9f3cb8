//! The words that give a key its expiry (EX, PX, EXAT, PXAT, KEEPTTL, PERSIST), and the command
//! that is about nothing else: GETEX.
//!
//! A time in the past is taken: SET then stores a key that is gone at once, GETEX deletes the key.
//! Zero and negative times are refused, whether relative or absolute.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3.

use kiln_base::clock::UnixMs;
use kiln_base::number::{INTEGER_BYTES_MAX, format_i64};
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, ReplyWriter,
    Ttl, View,
};

use super::{READ_UPDATE, reply_string};

pub(super) const COMMANDS: &[CommandSpec] =
    &[CommandSpec::write("GETEX", Arity::at_least(2), getex)
        .group(Group::String)
        .flags(CommandFlags::FAST)
        .keys(READ_UPDATE)
        .docs(
            "6.2.0",
            "O(1)",
            "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | \
         PXAT unix-time-milliseconds | PERSIST]",
            "Return the string at a key and set or clear its expiry.",
        )];

/// How a number says when a key expires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// EX: seconds from now.
    Seconds,
    /// PX: milliseconds from now.
    Milliseconds,
    /// EXAT: a Unix time in seconds.
    UnixSeconds,
    /// PXAT: a Unix time in milliseconds.
    UnixMilliseconds,
}

impl Unit {
    /// The unit that an option names.
    fn of(word: &[u8]) -> Option<Self> {
        let units = [
            ("EX", Self::Seconds),
            ("PX", Self::Milliseconds),
            ("EXAT", Self::UnixSeconds),
            ("PXAT", Self::UnixMilliseconds),
        ];
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        units.into_iter().find(|(name, _)| is(name)).map(|(_, unit)| unit)
    }

    /// The time that word `index` gives in this unit. `command` is its name in lower case.
    ///
    /// # Errors
    ///
    /// Not an integer; not positive or beyond what fits in milliseconds; in this order.
    pub(super) fn deadline(
        self,
        args: &Args<'_>,
        index: usize,
        now: UnixMs,
        command: &'static str,
    ) -> Result<UnixMs, CommandError> {
        let number = args.int(index)?;
        let (factor, start) = match self {
            Self::Seconds => (1_000, now),
            Self::Milliseconds => (1, now),
            Self::UnixSeconds => (1_000, 0),
            Self::UnixMilliseconds => (1, 0),
        };
        let deadline = number.checked_mul(factor).and_then(|ms| ms.checked_add(start));
        deadline.filter(|_| number > 0).ok_or(CommandError::InvalidExpire(command))
    }
}

/// What the words of a command say about the expiry of its keys.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ExpiryOption {
    /// Nothing.
    #[default]
    None,
    /// The word without a number: KEEPTTL or PERSIST.
    Bare,
    /// The word before `index` names the unit of the number there.
    At { unit: Unit, index: usize },
}

impl ExpiryOption {
    /// Takes the option at word `index`, if it is one and does not contradict an earlier one;
    /// repeating one is allowed. Returns how many words that took. `bare` is KEEPTTL or PERSIST,
    /// whichever the command has.
    pub(super) fn take(&mut self, args: &Args<'_>, index: usize, bare: &str) -> usize {
        if args.is_word(index, bare) {
            let fits = matches!(self, Self::None | Self::Bare);
            *self = Self::Bare;
            return usize::from(fits);
        }
        let Some(unit) = Unit::of(args.get(index)).filter(|_| index + 1 < args.len()) else {
            return 0;
        };
        match self {
            Self::At { unit: earlier, .. } if *earlier != unit => return 0,
            Self::Bare => return 0,
            Self::None | Self::At { .. } => {}
        }
        *self = Self::At { unit, index: index + 1 };
        2
    }

    /// What becomes of the expiry when a value is stored.
    pub(super) fn ttl(
        self,
        args: &Args<'_>,
        now: UnixMs,
        command: &'static str,
    ) -> Result<Ttl, CommandError> {
        Ok(match self {
            Self::None => Ttl::Clear,
            Self::Bare => Ttl::Keep,
            Self::At { unit, index } => Ttl::At(unit.deadline(args, index, now, command)?),
        })
    }
}

fn getex(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let mut option = ExpiryOption::None;
    let mut index = 2;
    while index < args.len() {
        match option.take(args, index, "PERSIST") {
            0 => return Err(CommandError::Syntax),
            words => index += words,
        }
    }
    // A missing key is null even if the time makes no sense.
    let Some(value) = view.string(key)? else {
        reply.null();
        return Ok(());
    };
    let deadline = match option {
        ExpiryOption::At { unit, index } => {
            Some(unit.deadline(args, index, view.now(), "getex")?)
        }
        ExpiryOption::None | ExpiryOption::Bare => None,
    };
    reply_string(reply, Some(value));
    match deadline {
        Some(at) if at <= view.now() => {
            view.delete(key);
            view.changed(key, Event::Del);
            view.journal([b"DEL", key]);
        }
        Some(at) => {
            view.update(key, |entry| entry.set_expire_at_ms(Some(at)));
            view.changed(key, Event::Expire);
            view.journal([b"PEXPIREAT", key, format_i64(at, &mut [0; INTEGER_BYTES_MAX])]);
        }
        None if option == ExpiryOption::Bare => {
            let persisted = view.update(key, |entry| {
                let volatile = entry.expire_at_ms().is_some();
                entry.set_expire_at_ms(None);
                volatile
            });
            if persisted == Some(true) {
                view.changed(key, Event::Persist);
                view.journal([b"PERSIST", key]);
            }
        }
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn getex_sets_clears_and_deletes() {
        check(&[
            ("SET k v", "OK"),
            ("GETEX k EX 100", "\"v\""),
            ("TTL k", "(integer) 100"),
            ("GETEX k", "\"v\""),
            ("TTL k", "(integer) 100"),
            ("GETEX k persist", "\"v\""),
            ("TTL k", "(integer) -1"),
            ("GETEX k EXAT 1", "\"v\""),
            ("EXISTS k", "(integer) 0"),
        ]);
    }

    #[test]
    fn a_bad_time_counts_only_if_the_key_is_there() {
        check(&[
            ("GETEX k EX abc", "(nil)"),
            ("GETEX k EX", "(error) ERR syntax error"),
            ("SET k v EX 5", "OK"),
            ("GETEX k EX abc", "(error) ERR value is not an integer or out of range"),
            ("GETEX k PXAT 0", "(error) ERR invalid expire time in 'getex' command"),
            ("GETEX k EX 9223372036854776", "(error) ERR invalid expire time in 'getex' command"),
            ("GETEX k EX 10 PERSIST", "(error) ERR syntax error"),
            ("GETEX k KEEPTTL", "(error) ERR syntax error"),
            ("TTL k", "(integer) 5"),
        ]);
    }
}
