//! DUMP, RESTORE, RESTORE-ASKING and MIGRATE: values on their way to another server.
//!
//! MIGRATE speaks to that server, which needs a connection that this server does not open yet: it
//! says so for keys that exist. RESTORE-ASKING is RESTORE for a cluster slot that is being
//! imported.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::number::{INTEGER_BYTES_MAX, format_i64};
use kiln_command::args::ArgsExt;
use kiln_command::{
    AclCategories, Args, Arity, BeginSearch, CommandError, CommandFlags, CommandResult,
    CommandSpec, Event, FindKeys, Group, KeyFlags, KeySpec, ReplyWriter, Ttl, View,
};
use kiln_persist::{Loaded, RestoreError};

const DUMP_KEYS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::RO.union(KeyFlags::ACCESS))];
const RESTORE_KEYS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::OW.union(KeyFlags::UPDATE))];
const MIGRATED: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);
const MIGRATE_KEYS: &[KeySpec] = &[
    KeySpec::at(3, MIGRATED),
    KeySpec {
        begin: BeginSearch::Keyword("KEYS", -2),
        find: FindKeys::Range { last: -1, step: 1, limit: 0 },
        flags: MIGRATED.union(KeyFlags::INCOMPLETE),
    },
];

const NO_DUMP: CommandError = CommandError::text("ERR Kiln cannot dump values of this type yet");

/// The word of MIGRATE behind which its options begin.
const MIGRATE_OPTIONS: usize = 6;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::read("DUMP", Arity::exactly(2), dump)
        .categories(AclCategories::KEYSPACE)
        .keys(DUMP_KEYS)
        .docs(
            "2.6.0",
            "O(N) with N bytes of the value.",
            "key",
            "Show the value at a key in the form that RESTORE takes.",
        ),
    restore_spec("RESTORE", "2.6.0", "Make a key of what DUMP showed."),
    restore_spec(
        "RESTORE-ASKING",
        "3.0.0",
        "Make a key of what DUMP showed, in a slot that is being imported.",
    )
    .group(Group::Server)
    .flags(CommandFlags::ASKING),
    CommandSpec::write("MIGRATE", Arity::at_least(6), migrate)
        .categories(AclCategories::KEYSPACE.union(AclCategories::DANGEROUS))
        .flags(CommandFlags::MOVABLEKEYS)
        .keys(MIGRATE_KEYS)
        .key_finder(migrated_keys)
        .docs(
            "2.6.0",
            "DUMP and DEL here, RESTORE there.",
            "host port <key | \"\"> destination-db timeout [COPY] [REPLACE] \
             [AUTH password | AUTH2 username password] [KEYS key [key ...]]",
            "Move keys to another server.",
        ),
];

const fn restore_spec(
    name: &'static str,
    since: &'static str,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::write(name, Arity::at_least(4), restore)
        .categories(AclCategories::KEYSPACE.union(AclCategories::DANGEROUS))
        .flags(CommandFlags::DENYOOM)
        .keys(RESTORE_KEYS)
        .journal_by_handler() // A time from now on means something else when it is replayed.
        .docs(
            since,
            "O(N) with N bytes of the value.",
            "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
            summary,
        )
}

fn dump(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match view.get(args.get(1)) {
        Some(entry) => reply.bulk(&kiln_persist::dump(&entry).ok_or(NO_DUMP)?),
        None => reply.null(),
    }
    Ok(())
}

/// The words behind the payload.
#[derive(Default)]
struct RestoreOptions {
    replace: bool,
    absolute: bool,
    idle_seconds: Option<i64>,
    frequency: Option<i64>,
}

impl RestoreOptions {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut index = 4;
        while index < args.len() {
            let takes_clock = index + 1 < args.len()
                && options.idle_seconds.is_none()
                && options.frequency.is_none();
            if args.is_word(index, "REPLACE") {
                options.replace = true;
            } else if args.is_word(index, "ABSTTL") {
                options.absolute = true;
            } else if args.is_word(index, "IDLETIME") && takes_clock {
                index += 1;
                let seconds = Some(args.int(index)?).filter(|seconds| *seconds >= 0);
                options.idle_seconds = Some(
                    seconds
                        .ok_or(CommandError::text("ERR Invalid IDLETIME value, must be >= 0"))?,
                );
            } else if args.is_word(index, "FREQ") && takes_clock {
                index += 1;
                let frequency =
                    Some(args.int(index)?).filter(|frequency| (0..=255).contains(frequency));
                options.frequency = Some(frequency.ok_or(CommandError::text(
                    "ERR Invalid FREQ value, must be >= 0 and <= 255",
                ))?);
            } else {
                return Err(CommandError::Syntax);
            }
            index += 1;
        }
        Ok(options)
    }
}

/// Makes the key at word 1 of the payload at word 3.
///
/// # Errors
///
/// Checked in this order: options; the key exists; the time; the payload.
fn restore(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let options = RestoreOptions::parse(args)?;
    let key = args.get(1);
    if !options.replace && view.peek(key).is_some() {
        return Err(CommandError::text("BUSYKEY Target key name already exists."));
    }
    let ttl = args.int(2)?;
    if ttl < 0 {
        return Err(CommandError::text("ERR Invalid TTL value, must be >= 0"));
    }
    let loaded = kiln_persist::restore(args.get(3), view.settings()).map_err(|error| {
        CommandError::text(match error {
            RestoreError::BadData(_) => "ERR Bad data format",
            _ => "ERR DUMP payload version or checksum are wrong",
        })
    })?;
    let expire_at_ms = match ttl {
        0 => None,
        _ if options.absolute => Some(ttl),
        _ => Some(ttl.saturating_add(view.now())),
    };

    if expire_at_ms.is_some_and(|at| at <= view.now()) {
        if view.delete(key) {
            view.changed(key, Event::Del);
            view.journal([&b"DEL"[..], key]);
        }
    } else {
        let ttl = expire_at_ms.map_or(Ttl::Clear, Ttl::At);
        match loaded {
            Loaded::String(text) => view.set_string(key, &text, ttl),
            Loaded::Object(object) => view.set_object(key, object, ttl),
        }
        set_clock(view, key, &options);
        view.changed(key, Event::Restore);
        let mut scratch = [0; INTEGER_BYTES_MAX];
        let at = format_i64(expire_at_ms.unwrap_or(0), &mut scratch);
        view.journal([b"RESTORE", key, at, args.get(3), b"ABSTTL", b"REPLACE"]);
    }
    reply.ok();
    Ok(())
}

/// Sets the access clock as IDLETIME or FREQ says, if the policy has such a clock.
fn set_clock(view: &mut View<'_>, key: &[u8], options: &RestoreOptions) {
    let is_lfu = view.settings().policy.is_lfu();
    let (idle_seconds, frequency) = (options.idle_seconds, options.frequency);
    view.update(key, |entry| {
        // A clock is seconds, or minutes and a counter in the low byte: see `access_clock`.
        let now = entry.access();
        if let Some(frequency) = frequency.filter(|_| is_lfu) {
            entry.set_access(now & !0xFF | frequency as u32);
        } else if let Some(seconds) = idle_seconds.filter(|_| !is_lfu) {
            entry.set_access(now.wrapping_sub(seconds as u32));
        }
    });
}

/// The key at word 3, or those behind KEYS.
fn migrated_keys(args: &Args<'_>, visit: &mut dyn FnMut(usize, KeyFlags)) {
    let keys = (MIGRATE_OPTIONS..args.len()).find(|index| args.is_word(*index, "KEYS"));
    match keys {
        Some(word) if args.get(3).is_empty() => {
            (word + 1..args.len()).for_each(|index| visit(index, MIGRATED));
        }
        _ => visit(3, MIGRATED),
    }
}

/// Checks the words of MIGRATE and whether there is anything to move.
///
/// # Errors
///
/// Checked in this order: options; time and database; that keys are to be moved at all, which is
/// not possible yet.
fn migrate(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let mut index = MIGRATE_OPTIONS;
    while index < args.len() {
        let values = args.len() - index - 1;
        if args.is_word(index, "COPY") || args.is_word(index, "REPLACE") {
            index += 1;
        } else if args.is_word(index, "AUTH") && values >= 1 {
            index += 2;
        } else if args.is_word(index, "AUTH2") && values >= 2 {
            index += 3;
        } else if args.is_word(index, "KEYS") {
            if !args.get(3).is_empty() {
                return Err(CommandError::text(
                    "ERR When using MIGRATE KEYS option, the key argument must be set to the \
                     empty string",
                ));
            }
            break;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    args.int(5)?;
    args.int(4)?;
    let mut found = false;
    migrated_keys(args, &mut |index, _| found |= view.peek(args.get(index)).is_some());
    if !found {
        reply.simple("NOKEY");
        return Ok(());
    }
    Err(CommandError::text("IOERR MIGRATE cannot reach other servers yet"))
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    /// `SET k hello` as Redis 8.2.3 dumps it.
    const HELLO: &str = "\\x00\\x05hello\\x0c\\x00\\xa8\\x04\\xeb\\xb6\\x9f\\x1e\\xbeC";

    #[test]
    fn a_dumped_value_can_be_restored() {
        check(&[
            ("DUMP k", "(nil)"),
            (&format!("RESTORE k 0 \"{HELLO}\""), "OK"),
            ("GET k", "\"hello\""),
            (
                &format!("RESTORE k 0 \"{HELLO}\""),
                "(error) BUSYKEY Target key name already exists.",
            ),
            (&format!("RESTORE k 33177117420123 \"{HELLO}\" ABSTTL REPLACE IDLETIME 50"), "OK"),
            ("OBJECT IDLETIME k", "(integer) 50"),
            ("PEXPIRETIME k", "(integer) 33177117420123"),
            (&format!("RESTORE k 1 \"{HELLO}\" ABSTTL REPLACE"), "OK"),
            ("EXISTS k", "(integer) 0"),
        ]);
    }

    #[test]
    fn restore_checks_options_key_time_and_payload_in_this_order() {
        check(&[
            ("SET k v", "OK"),
            ("RESTORE k x bogus BOGUS", "(error) ERR syntax error"),
            ("RESTORE k x bogus IDLETIME 1 FREQ 1", "(error) ERR syntax error"),
            (
                "RESTORE k x bogus FREQ 256",
                "(error) ERR Invalid FREQ value, must be >= 0 and <= 255",
            ),
            ("RESTORE k x bogus", "(error) BUSYKEY Target key name already exists."),
            ("RESTORE k x bogus REPLACE", "(error) ERR value is not an integer or out of range"),
            ("RESTORE k -1 bogus REPLACE", "(error) ERR Invalid TTL value, must be >= 0"),
            ("RESTORE k 0 bogus REPLACE", "(error) ERR DUMP payload version or checksum are wrong"),
            ("GET k", "\"v\""),
        ]);
    }

    #[test]
    fn migrate_moves_nothing_yet() {
        check(&[
            ("MIGRATE 127.0.0.1 1 k 0 100", "NOKEY"),
            ("MIGRATE 127.0.0.1 1 k 0 x", "(error) ERR value is not an integer or out of range"),
            ("MIGRATE 127.0.0.1 1 \"\" 0 100 COPY KEYS a b", "NOKEY"),
            ("MIGRATE 127.0.0.1 1 k 0 100 BOGUS", "(error) ERR syntax error"),
            ("MIGRATE 127.0.0.1 1 \"\" 0 100 AUTH KEYS", "NOKEY"),
            ("COMMAND GETKEYS MIGRATE h 1 \"\" 0 100 KEYS a b", "1) \"a\"\n2) \"b\""),
            ("COMMAND GETKEYS MIGRATE h 1 k 0 100", "1) \"k\""),
        ]);
    }
}
