//! HSET, HGET, HDEL, HINCRBY and the other commands that know nothing of expiry.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::number::{INTEGER_BYTES_MAX, LongDouble, format_i64};
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Event, Group, KeyFlags,
    KeySpec, ReadHandler, ReplyWriter, View, WriteHandler, wrong_arity,
};
use kiln_data::hash::{Field, OldExpiry, Written};

use super::{LOOK, READ, READ_UPDATE, UPDATE, bulk, change, settle};

const DELETE: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::DELETE))];
const INSERT: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RW.union(KeyFlags::INSERT))];

const HSET: CommandSpec = writing("HSET", Arity::at_least(4), hset, UPDATE).docs(
    "2.0.0",
    "O(1) for each field.",
    "key field value [field value ...]",
    "Set fields of a hash.",
);
const HMSET: CommandSpec = writing("HMSET", Arity::at_least(4), hmset, UPDATE).docs(
    "2.0.0",
    "O(1) for each field.",
    "key field value [field value ...]",
    "Set fields of a hash.",
);

pub(super) const COMMANDS: &[CommandSpec] = &[
    HSET,
    HMSET,
    writing("HSETNX", Arity::exactly(4), hsetnx, INSERT).docs(
        "2.0.0",
        "O(1)",
        "key field value",
        "Set a field of a hash unless it exists.",
    ),
    writing("HINCRBY", Arity::exactly(4), hincrby, READ_UPDATE).docs(
        "2.0.0",
        "O(1)",
        "key field increment",
        "Add a number to the integer in a field.",
    ),
    writing("HINCRBYFLOAT", Arity::exactly(4), hincrbyfloat, READ_UPDATE)
        .journal_by_handler()
        .docs("2.6.0", "O(1)", "key field increment", "Add a number to the number in a field."),
    CommandSpec::write("HDEL", Arity::at_least(3), hdel)
        .group(Group::Hash)
        .flags(CommandFlags::FAST)
        .keys(DELETE)
        .docs("2.0.0", "O(1) for each field.", "key field [field ...]", "Remove fields."),
    reading("HGET", Arity::exactly(3), hget, READ, CommandFlags::FAST).docs(
        "2.0.0",
        "O(1)",
        "key field",
        "Return the value of a field.",
    ),
    reading("HMGET", Arity::at_least(3), hmget, READ, CommandFlags::FAST).docs(
        "2.0.0",
        "O(1) for each field.",
        "key field [field ...]",
        "Return the values of fields.",
    ),
    reading("HEXISTS", Arity::exactly(3), hexists, LOOK, CommandFlags::FAST).docs(
        "2.0.0",
        "O(1)",
        "key field",
        "Tell whether a field exists.",
    ),
    reading("HSTRLEN", Arity::exactly(3), hstrlen, LOOK, CommandFlags::FAST).docs(
        "3.2.0",
        "O(1)",
        "key field",
        "Return the length of a field's value.",
    ),
    reading("HLEN", Arity::exactly(2), hlen, LOOK, CommandFlags::FAST).docs(
        "2.0.0",
        "O(1)",
        "key",
        "Return the number of fields.",
    ),
    reading("HGETALL", Arity::exactly(2), hgetall, READ, CommandFlags::NONE).docs(
        "2.0.0",
        "O(N) with N fields.",
        "key",
        "Return all fields and values.",
    ),
    reading("HKEYS", Arity::exactly(2), hkeys, READ, CommandFlags::NONE).docs(
        "2.0.0",
        "O(N) with N fields.",
        "key",
        "Return the names of all fields.",
    ),
    reading("HVALS", Arity::exactly(2), hvals, READ, CommandFlags::NONE).docs(
        "2.0.0",
        "O(N) with N fields.",
        "key",
        "Return the values of all fields.",
    ),
];

const fn writing(
    name: &'static str,
    arity: Arity,
    handler: WriteHandler,
    keys: &'static [KeySpec],
) -> CommandSpec {
    CommandSpec::write(name, arity, handler)
        .group(Group::Hash)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::FAST))
        .keys(keys)
}

const fn reading(
    name: &'static str,
    arity: Arity,
    handler: ReadHandler,
    keys: &'static [KeySpec],
    flags: CommandFlags,
) -> CommandSpec {
    CommandSpec::read(name, arity, handler).group(Group::Hash).flags(flags).keys(keys)
}

fn hset(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let created = set_fields(view, args, &HSET)?;
    reply.integer(created);
    Ok(())
}

fn hmset(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    set_fields(view, args, &HMSET)?;
    reply.ok();
    Ok(())
}

/// Sets the pairs from word 2 on; returns how many fields are new.
fn set_fields(
    view: &mut View<'_>,
    args: &Args<'_>,
    spec: &CommandSpec,
) -> Result<i64, CommandError> {
    if args.len() % 2 == 1 {
        return Err(wrong_arity(spec));
    }
    let key = args.get(1);
    let (now, limits) = (view.now(), &view.settings().hash);
    let pairs = (args.len() - 2) / 2;
    let created = change(view, key, |hash| {
        hash.make_room(pairs, limits);
        let mut created = 0;
        for at in (2..args.len()).step_by(2) {
            let written = hash.set(args.get(at), args.get(at + 1), OldExpiry::Clear, now, limits);
            created += i64::from(written == Written::Created);
        }
        created
    })?;
    view.changed(key, Event::HSet);
    view.count_changes(pairs as u64 - 1);
    Ok(created)
}

fn hsetnx(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (key, name) = (args.get(1), args.get(2));
    let (now, limits) = (view.now(), &view.settings().hash);
    if view.hash(key)?.is_some_and(|hash| hash.contains(name, now)) {
        reply.integer(0);
        return Ok(());
    }
    change(view, key, |hash| hash.set(name, args.get(3), OldExpiry::Clear, now, limits))?;
    view.changed(key, Event::HSet);
    reply.integer(1);
    Ok(())
}

fn hincrby(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let delta = args.int(3)?;
    let (key, name) = (args.get(1), args.get(2));
    let (now, limits) = (view.now(), &view.settings().hash);
    let old = match view.hash(key)?.and_then(|hash| hash.get(name, now)) {
        Some(value) => {
            value.as_int().ok_or(CommandError::text("ERR hash value is not an integer"))?
        }
        None => 0,
    };
    let sum = old.checked_add(delta).ok_or(CommandError::IncrementOverflow)?;

    let mut text = [0; INTEGER_BYTES_MAX];
    let text = format_i64(sum, &mut text);
    change(view, key, |hash| hash.set(name, text, OldExpiry::Keep, now, limits))?;
    view.changed(key, Event::HIncrBy);
    reply.integer(sum);
    Ok(())
}

fn hincrbyfloat(
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let delta = LongDouble::parse(args.get(3)).ok_or(CommandError::NotAFloat)?;
    if !delta.is_finite() {
        return Err(CommandError::text("ERR value is NaN or Infinity"));
    }
    let (key, name) = (args.get(1), args.get(2));
    let (now, limits) = (view.now(), &view.settings().hash);
    let sum = match view.hash(key)?.and_then(|hash| hash.get(name, now)) {
        Some(value) => {
            let old = LongDouble::parse(value.text(&mut [0; INTEGER_BYTES_MAX]))
                .ok_or(CommandError::text("ERR hash value is not a float"))?;
            old.checked_add(delta).ok_or(CommandError::IncrementNotFinite)?
        }
        None => delta,
    };

    let mut text = Vec::new();
    sum.print(&mut text);
    change(view, key, |hash| hash.set(name, &text, OldExpiry::Keep, now, limits))?;
    view.changed(key, Event::HIncrByFloat);
    // The sum, not the addition: another machine may round it differently.
    view.journal([&b"HSETEX"[..], key, b"KEEPTTL", b"FIELDS", b"1", name, &text]);
    reply.bulk(&text);
    Ok(())
}

fn hdel(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let now = view.now();
    let mut removed = 0;
    if let Some(hash) = view.hash_mut(key)? {
        let before = hash.next_expiry();
        for name in args.tail(2).iter() {
            removed += u64::from(hash.remove(name, now));
        }
        if removed > 0 {
            view.changed(key, Event::HDel);
            view.count_changes(removed - 1);
        }
        settle(view, key, before);
    }
    reply.integer(removed as i64);
    Ok(())
}

fn hget(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match view.hash(args.get(1))?.and_then(|hash| hash.get(args.get(2), view.now())) {
        Some(value) => bulk(reply, value),
        None => reply.null(),
    }
    Ok(())
}

fn hmget(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let hash = view.hash(args.get(1))?;
    reply.array(args.len() - 2);
    for name in args.tail(2).iter() {
        match hash.and_then(|hash| hash.get(name, view.now())) {
            Some(value) => bulk(reply, value),
            None => reply.null(),
        }
    }
    Ok(())
}

fn hexists(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let hash = view.hash(args.get(1))?;
    let found = hash.is_some_and(|hash| hash.contains(args.get(2), view.now()));
    reply.integer(i64::from(found));
    Ok(())
}

fn hstrlen(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let value = view.hash(args.get(1))?.and_then(|hash| hash.get(args.get(2), view.now()));
    reply.integer(value.map_or(0, |value| value.text_len() as i64));
    Ok(())
}

fn hlen(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(view.hash(args.get(1))?.map_or(0, |hash| hash.len() as i64));
    Ok(())
}

fn hgetall(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let header = reply.deferred();
    let mut pairs = 0;
    for field in view.hash(args.get(1))?.into_iter().flat_map(|hash| hash.iter(view.now())) {
        bulk(reply, field.name);
        bulk(reply, field.value);
        pairs += 1;
    }
    reply.finish_map(header, pairs);
    Ok(())
}

fn hkeys(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    list(view, args, reply, |reply, field| bulk(reply, field.name))
}

fn hvals(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    list(view, args, reply, |reply, field| bulk(reply, field.value))
}

fn list(
    view: &View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
    write: impl Fn(&mut ReplyWriter<'_>, Field<'_>),
) -> CommandResult {
    let header = reply.deferred();
    let mut count = 0;
    for field in view.hash(args.get(1))?.into_iter().flat_map(|hash| hash.iter(view.now())) {
        write(reply, field);
        count += 1;
    }
    reply.finish_array(header, count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn fields_come_and_go_and_the_last_takes_the_key_along() {
        check(&[
            ("HSET h a 1 b 2 a 3", "(integer) 2"),
            ("HGET h a", "\"3\""),
            ("HMGET h a x", "1) \"3\"\n2) (nil)"),
            ("HSETNX h a 9", "(integer) 0"),
            ("HDEL h a a b", "(integer) 2"),
            ("EXISTS h", "(integer) 0"),
            ("HSET h a", "(error) ERR wrong number of arguments for 'hset' command"),
            ("HLEN h", "(integer) 0"),
        ]);
    }

    #[test]
    fn increments_check_before_they_change() {
        check(&[
            ("HSET h n 9223372036854775807 t x", "(integer) 2"),
            ("HINCRBY h n 1", "(error) ERR increment or decrement would overflow"),
            ("HINCRBY h t 1", "(error) ERR hash value is not an integer"),
            ("HINCRBYFLOAT h t 1", "(error) ERR hash value is not a float"),
            ("HINCRBYFLOAT h f 0.1", "\"0.1\""),
            ("HINCRBYFLOAT h f 0.2", "\"0.3\""),
            ("HGET h n", "\"9223372036854775807\""),
        ]);
    }
}
