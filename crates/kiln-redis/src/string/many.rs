//! MGET, MSET, MSETNX and MSETEX: several strings at once.
//!
//! All keys' shards are held together, so nobody sees half of it. A key named twice gets its last
//! value. MGET takes a value that is no string for none.
//!
//! Source: the Redis documentation; replies and events observed on Redis 8.2.3, MSETEX on 8.6.2.

use kiln_base::number::{INTEGER_BYTES_MAX, format_i64};
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, BeginSearch, CommandError, CommandFlags, CommandResult, CommandSpec, Event,
    FindKeys, Group, KeyFlags, KeySpec, ReplyWriter, Ttl, View,
};

use super::expiry::ExpiryOption;
use super::reply_string;
use super::set::Existence;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::read("MGET", Arity::at_least(2), mget)
        .group(Group::String)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::range(1, -1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))])
        .docs("1.0.0", "O(N) with N keys.", "key [key ...]", "Return the strings at several keys."),
    CommandSpec::write("MSET", Arity::at_least(3), mset)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM)
        .keys(&[KeySpec::range(1, -1, 2, KeyFlags::OW.union(KeyFlags::UPDATE))])
        .docs(
            "1.0.1",
            "O(N) with N keys.",
            "key value [key value ...]",
            "Store several strings at once.",
        ),
    CommandSpec::write("MSETNX", Arity::at_least(3), msetnx)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM)
        .keys(&[KeySpec::range(1, -1, 2, KeyFlags::OW.union(KeyFlags::INSERT))])
        .docs(
            "1.0.1",
            "O(N) with N keys.",
            "key value [key value ...]",
            "Store several strings at once if none of the keys exists.",
        ),
    CommandSpec::write("MSETEX", Arity::at_least(4), msetex)
        .group(Group::String)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::MOVABLEKEYS))
        .keys(&[KeySpec {
            begin: BeginSearch::Index(1),
            find: FindKeys::KeyNum { keynum: 0, first: 1, step: 2 },
            flags: KeyFlags::OW.union(KeyFlags::UPDATE),
        }])
        .docs(
            "8.4.0",
            "O(N) with N keys.",
            "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | \
             EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
            "Store several strings at once, on a condition, with an expiry.",
        ),
];

fn mget(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let keys = args.tail(1);
    reply.array(keys.len());
    for key in keys.iter() {
        // A value of another type counts as none.
        reply_string(reply, view.string(key).unwrap_or_default());
    }
    Ok(())
}

fn mset(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::WrongArity("mset".into()));
    }
    store(view, args, 1..args.len(), Ttl::Clear);
    reply.ok();
    Ok(())
}

fn msetnx(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::WrongArity("msetnx".into()));
    }
    let holds = all(view, args, 1..args.len(), Existence::Missing);
    if holds {
        store(view, args, 1..args.len(), Ttl::Clear);
    }
    reply.integer(i64::from(holds));
    Ok(())
}

/// Checked in this order: the number of keys, that there are as many, options, expiry.
fn msetex(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let count = args
        .int_in(1, 1, i64::from(i32::MAX))
        .map_err(|_| CommandError::text("ERR invalid numkeys value"))?;
    let pairs = 2..2 + 2 * count as usize;
    if pairs.end > args.len() {
        return Err(CommandError::text("ERR wrong number of key-value pairs"));
    }
    let mut existence = None;
    let mut expiry = ExpiryOption::None;
    let mut index = pairs.end;
    while index < args.len() {
        let words = expiry.take(args, index, "KEEPTTL");
        if words > 0 {
            index += words;
            continue;
        }
        let named = Existence::of(args, index).ok_or(CommandError::Syntax)?;
        if existence.is_some_and(|earlier| earlier != named) {
            return Err(CommandError::Syntax);
        }
        existence = Some(named);
        index += 1;
    }
    let ttl = expiry.ttl(args, view.now(), "msetex")?;
    let holds = existence.is_none_or(|existence| all(view, args, pairs.clone(), existence));
    if holds {
        store(view, args, pairs.clone(), ttl);
        if let Ttl::At(at) = ttl {
            let mut digits = [0; INTEGER_BYTES_MAX];
            let words = [&b"MSETEX"[..], args.get(1)].into_iter();
            let words = words.chain(pairs.map(|index| args.get(index)));
            view.journal(words.chain([b"PXAT", format_i64(at, &mut digits)]));
        }
    }
    reply.integer(i64::from(holds));
    Ok(())
}

/// Whether the condition holds for every key of the pairs at these words.
fn all(
    view: &View<'_>,
    args: &Args<'_>,
    pairs: std::ops::Range<usize>,
    existence: Existence,
) -> bool {
    pairs.step_by(2).all(|index| existence.holds(view.exists(args.get(index))))
}

/// Stores the pairs at these words and announces each.
fn store(view: &mut View<'_>, args: &Args<'_>, pairs: std::ops::Range<usize>, ttl: Ttl) {
    for index in pairs.step_by(2) {
        let key = args.get(index);
        view.set_string(key, args.get(index + 1), ttl);
        view.changed(key, Event::Set);
        if let Ttl::At(_) = ttl {
            view.event(key, Event::Expire);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn several_strings_at_once() {
        check(&[
            ("MSET a 1 b two a 3", "OK"),
            ("ZADD l 1 x", "(integer) 1"),
            ("MGET a b missing l a", "1) \"3\"\n2) \"two\"\n3) (nil)\n4) (nil)\n5) \"3\""),
            ("MSETNX c 1 a 2", "(integer) 0"),
            ("EXISTS c", "(integer) 0"),
            ("MSETNX c 1 d 2", "(integer) 1"),
            ("MSET a 1 b", "(error) ERR wrong number of arguments for 'mset' command"),
            ("MSETNX a 1 b", "(error) ERR wrong number of arguments for 'msetnx' command"),
        ]);
    }

    #[test]
    fn msetex_has_conditions_and_an_expiry() {
        check(&[
            ("MSETEX 2 a 1 b 2 XX", "(integer) 0"),
            ("MSETEX 2 a 1 b 2 EX 100 NX", "(integer) 1"),
            ("TTL b", "(integer) 100"),
            ("MSETEX 2 b 3 c 4 NX", "(integer) 0"),
            ("MSETEX 1 b 3 KEEPTTL", "(integer) 1"),
            ("TTL b", "(integer) 100"),
            ("MSETEX 1 b 3", "(integer) 1"),
            ("TTL b", "(integer) -1"),
            ("MSETEX 1 b 3 EXAT 1", "(integer) 1"),
            ("EXISTS b", "(integer) 0"),
            ("MSETEX 0 a 1", "(error) ERR invalid numkeys value"),
            ("MSETEX 2147483648 a 1", "(error) ERR invalid numkeys value"),
            ("MSETEX 2 a 1 b", "(error) ERR wrong number of key-value pairs"),
            ("MSETEX 1 a 1 b 2", "(error) ERR syntax error"),
            ("MSETEX 1 a 1 NX XX", "(error) ERR syntax error"),
            ("MSETEX 1 a 1 PX 0", "(error) ERR invalid expire time in 'msetex' command"),
        ]);
    }
}
