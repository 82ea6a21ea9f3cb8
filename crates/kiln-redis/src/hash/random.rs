//! HRANDFIELD: fields drawn at random.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandResult, CommandSpec, Group, Protocol, ReplyWriter, View,
};
use kiln_data::hash::Field;

use super::{READ, bulk};

pub(super) const COMMANDS: &[CommandSpec] =
    &[CommandSpec::read("HRANDFIELD", Arity::at_least(2), hrandfield)
        .group(Group::Hash)
        .keys(READ)
        .docs(
            "6.2.0",
            "O(N) with N returned fields.",
            "key [count [WITHVALUES]]",
            "Return fields drawn at random.",
        )];

/// Most fields that one command draws with repetition, as SRANDMEMBER: the reply could otherwise be
/// of any size.
const REPEATED_MAX: i64 = 1 << 24;

fn hrandfield(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (key, now) = (args.get(1), view.now());
    if args.len() == 2 {
        match view.hash(key)?.and_then(|hash| hash.random(&mut view.rng(), now)) {
            Some(field) => bulk(reply, field.name),
            None => reply.null(),
        }
        return Ok(());
    }
    let count = args.int(2)?;
    let with_values = args.is_word(3, "WITHVALUES");
    if args.len() > 4 || (args.len() == 4 && !with_values) {
        return Err(CommandError::Syntax);
    }
    // With values the reply has two elements for each: Redis bounds the count by half.
    let bound = if with_values { i64::MAX / 2 } else { i64::MAX };
    if count == i64::MIN {
        return Err(CommandError::text(
            "ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        ));
    }
    if count.abs() > bound || count < -REPEATED_MAX {
        return Err(CommandError::OutOfRange);
    }
    let Some(hash) = view.hash(key)? else {
        reply.empty_array();
        return Ok(());
    };
    let nested = with_values && reply.protocol() == Protocol::Resp3;
    let header = reply.deferred();
    let mut elements = 0;
    let mut write = |field: Field<'_>| {
        if nested {
            reply.array(2);
        }
        bulk(reply, field.name);
        if with_values {
            bulk(reply, field.value);
        }
        elements += if with_values && !nested { 2 } else { 1 };
    };
    let wanted = count.unsigned_abs() as usize;
    if count < 0 {
        hash.sample(&mut view.rng(), now, wanted, &mut write);
    } else {
        hash.sample_distinct(&mut view.rng(), now, wanted, &mut write);
    }
    reply.finish_array(header, elements);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn counts_decide_between_distinct_and_repeated_fields() {
        check(&[
            ("HRANDFIELD h", "(nil)"),
            ("HSET h only v", "(integer) 1"),
            ("HRANDFIELD h 5", "1) \"only\""),
            ("HRANDFIELD h -2 WITHVALUES", "1) \"only\"\n2) \"v\"\n3) \"only\"\n4) \"v\""),
            ("HRANDFIELD h 0", "(empty array)"),
            ("HRANDFIELD h 1 x", "(error) ERR syntax error"),
        ]);
    }
}
