//! HGETDEL, HGETEX and HSETEX: fields and their expiry in one command.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::clock::UnixMs;
use kiln_base::number::format_i64;
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReplyWriter, View, echo, wrong_arity,
};
use kiln_data::hash::OldExpiry;

use super::expire::{BAD_COUNT, Clock, announce, fields};
use super::{READ_UPDATE, UPDATE, bulk, change, settle};

const READ_DELETE: &[KeySpec] =
    &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))];

const HSETEX: CommandSpec = CommandSpec::write("HSETEX", Arity::at_least(6), hsetex)
    .group(Group::Hash)
    .flags(CommandFlags::DENYOOM.union(CommandFlags::FAST))
    .keys(UPDATE)
    .journal_by_handler()
    .docs(
        "8.0.0",
        "O(1) for each field.",
        "key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT \
         unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]",
        "Set fields and when they expire, all or none.",
    );

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("HGETDEL", Arity::at_least(5), hgetdel)
        .group(Group::Hash)
        .flags(CommandFlags::FAST)
        .keys(READ_DELETE)
        .journal_by_handler()
        .docs(
            "8.0.0",
            "O(1) for each field.",
            "key FIELDS numfields field [field ...]",
            "Return the values of fields and remove them.",
        ),
    CommandSpec::write("HGETEX", Arity::at_least(5), hgetex)
        .group(Group::Hash)
        .flags(CommandFlags::FAST)
        .keys(READ_UPDATE)
        .journal_by_handler()
        .docs(
            "8.0.0",
            "O(1) for each field.",
            "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT \
             unix-time-milliseconds | PERSIST] FIELDS numfields field [field ...]",
            "Return the values of fields and set when they expire.",
        ),
    HSETEX,
];

/// EX, PX, EXAT or PXAT.
fn clock(word: &[u8]) -> Option<Clock> {
    match word.to_ascii_uppercase().as_slice() {
        b"EX" => Some(Clock::EX),
        b"PX" => Some(Clock::PX),
        b"EXAT" => Some(Clock::EXAT),
        b"PXAT" => Some(Clock::PXAT),
        _ => None,
    }
}

fn hgetdel(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (key, now) = (args.get(1), view.now());
    view.hash(key)?;
    let names = fields(args, 2, BAD_COUNT)?;
    let mut removed = Vec::new();
    let mut before = None;
    reply.array(names.len());
    match view.hash_mut(key)? {
        None => names.iter().for_each(|_| reply.null()),
        Some(hash) => {
            before = hash.next_expiry();
            for name in names.iter() {
                if let Some(value) = hash.get(name, now) {
                    bulk(reply, value);
                } else {
                    reply.null();
                    continue;
                }
                hash.remove(name, now);
                removed.push(name);
            }
        }
    }
    announce(view, key, 0, &[], &removed);
    settle(view, key, before);
    Ok(())
}

/// What HGETEX does to the expiry of the fields it returns.
#[derive(Clone, Copy)]
enum Change {
    None,
    Persist,
    At(UnixMs),
}

fn hgetex(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (key, now) = (args.get(1), view.now());
    view.hash(key)?;
    let (wanted, at) = if args.is_word(2, "PERSIST") {
        (Change::Persist, 3)
    } else if let Some(clock) = clock(args.get(2)) {
        let at = clock.instant(args.int(3)?, now, "hgetex")?;
        if args.len() < 6 {
            return Err(CommandError::WrongArity("hgetex".into()));
        }
        (Change::At(at), 4)
    } else {
        (Change::None, 2)
    };
    let names = fields(args, at, BAD_COUNT)?;

    let (mut set, mut removed, mut persisted) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = None;
    reply.array(names.len());
    match view.hash_mut(key)? {
        None => names.iter().for_each(|_| reply.null()),
        Some(hash) => {
            before = hash.next_expiry();
            if !matches!(wanted, Change::None) {
                hash.allow_expiry();
            }
            for name in names.iter() {
                let Some(field) = hash.find(name, now) else {
                    reply.null();
                    continue;
                };
                bulk(reply, field.value);
                match wanted {
                    Change::None => {}
                    Change::Persist => {
                        if field.expire_at.is_some() {
                            hash.set_expiry(name, None, now);
                            persisted.push(name);
                        }
                    }
                    Change::At(at) if at <= now => {
                        hash.remove(name, now);
                        removed.push(name);
                    }
                    Change::At(at) => {
                        hash.set_expiry(name, Some(at), now);
                        set.push(name);
                    }
                }
            }
        }
    }
    let at = if let Change::At(at) = wanted { at } else { 0 };
    announce(view, key, at, &set, &removed);
    if !persisted.is_empty() {
        view.changed(key, Event::HPersist);
        let mut count = [0; 20];
        let count = format_i64(persisted.len() as i64, &mut count);
        let head = [&b"HPERSIST"[..], key, b"FIELDS", count];
        view.journal(head.into_iter().chain(persisted));
    }
    settle(view, key, before);
    Ok(())
}

/// The options of HSETEX.
struct SetOptions<'a> {
    /// FNX is `Some(false)`: no field may exist; FXX is `Some(true)`: all must.
    must_exist: Option<bool>,
    expire_at: Option<UnixMs>,
    keep: bool,
    pairs: Args<'a>,
}

impl<'a> SetOptions<'a> {
    fn parse(args: &Args<'a>, now: UnixMs) -> Result<Self, CommandError> {
        let mut options =
            Self { must_exist: None, expire_at: None, keep: false, pairs: args.tail(args.len()) };
        let two_times = || {
            CommandError::text(
                "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
            )
        };
        let mut at = 2;
        while at < args.len() {
            let word = args.get(at);
            if word.eq_ignore_ascii_case(b"FIELDS") {
                if args.len() - at < 4 {
                    return Err(wrong_arity(&HSETEX));
                }
                let count = args.int(at + 1).ok().and_then(|count| i32::try_from(count).ok());
                let count = count
                    .and_then(|count| usize::try_from(count).ok())
                    .filter(|count| *count > 0)
                    .ok_or(CommandError::text("ERR invalid number of fields"))?;
                options.pairs = args.tail(at + 2);
                if options.pairs.len() != count.saturating_mul(2) {
                    return Err(wrong_arity(&HSETEX));
                }
                return Ok(options);
            }
            if let Some(clock) = clock(word) {
                if options.keep || options.expire_at.is_some() {
                    return Err(two_times());
                }
                if at + 1 >= args.len() {
                    return Err(wrong_arity(&HSETEX));
                }
                options.expire_at = Some(clock.instant(args.int(at + 1)?, now, "hsetex")?);
                at += 2;
                continue;
            }
            match word.to_ascii_uppercase().as_slice() {
                b"KEEPTTL" if options.expire_at.is_some() || options.keep => {
                    return Err(two_times());
                }
                b"KEEPTTL" => options.keep = true,
                b"FNX" | b"FXX" if options.must_exist.is_some() => {
                    return Err(CommandError::text(
                        "ERR Only one of FXX or FNX arguments can be specified",
                    ));
                }
                b"FNX" => options.must_exist = Some(false),
                b"FXX" => options.must_exist = Some(true),
                _ => {
                    let word = echo(word);
                    return Err(CommandError::owned(format!("ERR unknown argument: {word}")));
                }
            }
            at += 1;
        }
        Err(wrong_arity(&HSETEX))
    }
}

fn hsetex(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (key, now) = (args.get(1), view.now());
    let options = SetOptions::parse(args, now)?;
    let pairs = || (0..options.pairs.len()).step_by(2);
    let hash = view.hash(key)?;
    if let Some(must_exist) = options.must_exist {
        let exists = |at| hash.is_some_and(|hash| hash.contains(options.pairs.get(at), now));
        if pairs().any(|at| exists(at) != must_exist) {
            reply.integer(0);
            return Ok(());
        }
    }

    let limits = &view.settings().hash;
    let old_expiry = if options.keep { OldExpiry::Keep } else { OldExpiry::Clear };
    let gone = options.expire_at.is_some_and(|at| at <= now);
    change(view, key, |hash| {
        hash.make_room(options.pairs.len() / 2, limits);
        if options.expire_at.is_some() {
            hash.allow_expiry();
        }
        for at in pairs() {
            let (name, value) = (options.pairs.get(at), options.pairs.get(at + 1));
            hash.set(name, value, old_expiry, now, limits);
            if gone {
                // A value that is gone at once can still have made the encoding large.
                hash.remove(name, now);
            } else if options.expire_at.is_some() {
                hash.set_expiry(name, options.expire_at, now);
            }
        }
    })?;
    if gone {
        let names: Vec<_> = pairs().map(|at| options.pairs.get(at)).collect();
        announce(view, key, 0, &[], &names);
    } else {
        view.changed(key, Event::HSet);
        if options.expire_at.is_some() {
            view.event(key, Event::HExpire);
        }
        journal_set(view, key, &options);
    }
    settle(view, key, None);
    reply.integer(1);
    Ok(())
}

/// Journals HSETEX without conditions and with an absolute time.
fn journal_set(view: &mut View<'_>, key: &[u8], options: &SetOptions<'_>) {
    let (mut time, mut count) = ([0; 20], [0; 20]);
    let mut words = vec![&b"HSETEX"[..], key];
    if let Some(at) = options.expire_at {
        words.extend([&b"PXAT"[..], format_i64(at, &mut time)]);
    } else if options.keep {
        words.push(b"KEEPTTL");
    }
    words.extend([&b"FIELDS"[..], format_i64(options.pairs.len() as i64 / 2, &mut count)]);
    words.extend(options.pairs.iter());
    view.journal(words);
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn fields_are_returned_before_they_go() {
        check(&[
            ("HSET h f v g w", "(integer) 2"),
            ("HGETDEL h FIELDS 2 f f", "1) \"v\"\n2) (nil)"),
            ("HGETEX h EXAT 1 FIELDS 1 g", "1) \"w\""),
            ("EXISTS h", "(integer) 0"),
        ]);
    }

    #[test]
    fn hsetex_sets_all_or_nothing() {
        check(&[
            ("HSETEX h EXAT 33177117420 FIELDS 2 f v g w", "(integer) 1"),
            ("HSETEX h FNX FIELDS 2 f x n y", "(integer) 0"),
            ("HEXISTS h n", "(integer) 0"),
            ("HSETEX h KEEPTTL FIELDS 1 f x", "(integer) 1"),
            ("HEXPIRETIME h FIELDS 2 f g", "1) (integer) 33177117420\n2) (integer) 33177117420"),
            ("HSETEX h EXAT 1 FIELDS 2 f x g y", "(integer) 1"),
            ("EXISTS h", "(integer) 0"),
        ]);
    }
}
