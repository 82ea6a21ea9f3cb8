//! WAIT and WAITAOF: wait until writes are safe elsewhere.
//!
//! There are no replicas yet, so a wait for one lasts as long as it may and ends with 0.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use std::time::Duration;

use kiln_command::args::ArgsExt;
use kiln_command::blocking::{Block, TimeoutReply};
use kiln_command::{
    AclCategories, Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Context,
    ReplyWriter,
};

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::connection("WAIT", Arity::exactly(3), wait)
        .categories(AclCategories::CONNECTION)
        .flags(CommandFlags::BLOCKING)
        .docs(
            "3.0.0",
            "O(1)",
            "numreplicas timeout",
            "Wait until replicas have the writes of this connection.",
        ),
    CommandSpec::connection("WAITAOF", Arity::exactly(4), wait_aof)
        .categories(AclCategories::CONNECTION)
        .flags(CommandFlags::BLOCKING)
        .docs(
            "7.2.0",
            "O(1)",
            "numlocal numreplicas timeout",
            "Wait until the writes of this connection are on disk, here or at replicas.",
        ),
];

fn wait(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let replicas = args.int(1)?;
    let timeout = milliseconds(args, 2)?;
    if replicas <= 0 {
        reply.integer(0);
    } else {
        sleep(context, timeout, TimeoutReply::Integer(0));
    }
    Ok(())
}

fn wait_aof(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let local = args.int(1)?;
    if !(0..=1).contains(&local) {
        return Err(CommandError::text("ERR value is out of range, value must between 0 and 1"));
    }
    let replicas = args.count(2)?;
    let timeout = milliseconds(args, 3)?;
    if local > 0 && context.server.journal.is_none() {
        return Err(CommandError::text(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ));
    }
    if replicas == 0 {
        reply.array(2);
        reply.integer(local);
        reply.integer(0);
    } else {
        sleep(context, timeout, TimeoutReply::Integers(local, 0));
    }
    Ok(())
}

/// Word `index` as a time in milliseconds; zero is for ever.
fn milliseconds(args: &Args<'_>, index: usize) -> Result<Option<Duration>, CommandError> {
    let ms = args
        .int(index)
        .map_err(|_| CommandError::text("ERR timeout is not an integer or out of range"))?;
    let ms = u64::try_from(ms).map_err(|_| CommandError::NegativeTimeout)?;
    Ok((ms > 0).then(|| Duration::from_millis(ms)))
}

fn sleep(context: &mut Context<'_>, timeout: Option<Duration>, on_timeout: TimeoutReply) {
    context.wait(Block { timeout, on_timeout, keys: smallvec::SmallVec::new() });
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn waiting_for_nothing_ends_at_once() {
        check(&[
            ("WAIT 0 0", "(integer) 0"),
            ("WAIT -1 0", "(integer) 0"),
            ("WAITAOF 0 0 0", "1) (integer) 0\n2) (integer) 0"),
            ("WAIT 1 100", "(waiting)"),
            ("WAITAOF 0 1 100", "(waiting)"),
        ]);
    }

    #[test]
    fn errors_come_in_the_reference_order() {
        check(&[
            ("WAIT x x", "(error) ERR value is not an integer or out of range"),
            ("WAIT 0 x", "(error) ERR timeout is not an integer or out of range"),
            ("WAIT 0 -1", "(error) ERR timeout is negative"),
            ("WAITAOF 2 x x", "(error) ERR value is out of range, value must between 0 and 1"),
            ("WAITAOF 1 -1 x", "(error) ERR value is out of range, must be positive"),
            ("WAITAOF 1 0 x", "(error) ERR timeout is not an integer or out of range"),
            (
                "WAITAOF 1 0 0",
                "(error) ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
            ),
        ]);
    }
}
