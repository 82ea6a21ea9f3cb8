//! DBSIZE, RANDOMKEY, FLUSHDB, FLUSHALL and SWAPDB: commands on whole databases.
//!
//! The first two visit one shard at a time, so nobody waits for them and their answer is true of
//! no single moment. The others hold all shards for the microseconds that it takes to put other
//! tables in place; whatever ASYNC or SYNC says, memory is freed in the background, since a wait
//! for it would serve nobody.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::sync::LockMode;
use kiln_command::args::ArgsExt;
use kiln_command::{
    AclCategories, Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec,
    ConnectionHandler, Context, Garbage, Group, ReplyWriter,
};
use kiln_keyspace::{ShardId, Shards, Space};
use rand::RngExt;

/// Random keys drawn before RANDOMKEY looks for any key that has not expired.
const DRAWS_MAX: usize = 16;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::connection("DBSIZE", Arity::exactly(1), db_size)
        .group(Group::Server)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::READONLY.union(CommandFlags::FAST))
        .docs("1.0.0", "O(1)", "", "Count the keys of the database."),
    CommandSpec::connection("RANDOMKEY", Arity::exactly(1), random_key)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::READONLY)
        .docs("1.0.0", "O(1)", "", "Name a key of the database that is drawn at random."),
    flush("FLUSHDB", flush_db, "Remove every key of the database."),
    flush("FLUSHALL", flush_all, "Remove every key of every database."),
    CommandSpec::connection("SWAPDB", Arity::exactly(3), swap_db)
        .group(Group::Server)
        .categories(AclCategories::KEYSPACE.union(AclCategories::DANGEROUS))
        .flags(CommandFlags::WRITE.union(CommandFlags::FAST))
        .docs(
            "4.0.0",
            "O(N) with N clients that watch keys or wait for them.",
            "index1 index2",
            "Exchange the contents of two databases.",
        ),
];

const fn flush(
    name: &'static str,
    handler: ConnectionHandler,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::connection(name, Arity::at_least(1), handler)
        .group(Group::Server)
        .categories(AclCategories::KEYSPACE.union(AclCategories::DANGEROUS))
        .flags(CommandFlags::WRITE)
        .docs("1.0.0", "O(1); memory is freed in the background.", "[ASYNC | SYNC]", summary)
}

fn db_size(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let mut keys = 0;
    context.for_each_shard(|view, shard| {
        keys += view.shard_len(shard);
        true
    });
    reply.integer(keys as i64);
    Ok(())
}

fn random_key(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    for _ in 0..DRAWS_MAX {
        let Some(shard) = random_shard(context) else { break };
        let key = context.with_view(Shards::One(shard), LockMode::Shared, |view| {
            let entry = view.random_in_shard(shard, &mut view.rng())?;
            (!entry.is_expired(view.now())).then(|| entry.key().to_vec())
        });
        if let Some(key) = key {
            reply.bulk(&key);
            return Ok(());
        }
    }
    match first_key(context) {
        Some(key) => reply.bulk(&key),
        None => reply.null(),
    }
    Ok(())
}

/// A shard drawn at random, each with a chance that grows with its number of keys.
fn random_shard(context: &mut Context<'_>) -> Option<ShardId> {
    let mut lens = Vec::with_capacity(kiln_keyspace::SHARD_COUNT);
    context.for_each_shard(|view, shard| {
        lens.push(view.shard_len(shard));
        true
    });
    let keys = lens.iter().sum();
    let mut drawn = (keys > 0).then(|| context.worker.rng.random_range(0..keys))?;
    let shard = lens.iter().position(|len| {
        let found = drawn < *len;
        drawn = drawn.wrapping_sub(*len);
        found
    });
    shard.map(ShardId::new)
}

/// The first key found that has not expired.
fn first_key(context: &mut Context<'_>) -> Option<Vec<u8>> {
    let mut found = None;
    context.for_each_shard(|view, shard| {
        let mut cursor = 0;
        loop {
            cursor = view.scan_shard(shard, cursor, |entry| found = Some(entry.key().to_vec()));
            if found.is_some() || cursor == 0 {
                break found.is_none();
            }
        }
    });
    found
}

fn flush_db(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    check_flush_mode(args)?;
    let db = context.session.db;
    flush_range(context, db..db + 1, b"FLUSHDB");
    reply.ok();
    Ok(())
}

fn flush_all(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    check_flush_mode(args)?;
    // The hidden spaces lie behind the databases.
    let all = context.server.keyspace.databases() + Space::COUNT;
    flush_range(context, 0..all, b"FLUSHALL");
    reply.ok();
    Ok(())
}

/// Nothing depends on ASYNC or SYNC, but nothing else may stand there.
fn check_flush_mode(args: &Args<'_>) -> CommandResult {
    match args.len() {
        1 => Ok(()),
        2 if args.is_word(1, "ASYNC") || args.is_word(1, "SYNC") => Ok(()),
        _ => Err(CommandError::Syntax),
    }
}

fn flush_range(context: &mut Context<'_>, dbs: std::ops::Range<usize>, effect: &[u8]) {
    let flushed = context.with_view(Shards::All, LockMode::Exclusive, |view| {
        let flushed = view.flush(dbs);
        if flushed.keys > 0 {
            view.journal([effect]);
        }
        flushed
    });
    context.server.reclaim(Garbage::Flushed(flushed));
}

fn swap_db(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    // Both must be numbers before either must be a database.
    let databases = context.server.keyspace.databases();
    let db = |index, text| match args.db(index, databases) {
        Err(CommandError::NotAnInteger | CommandError::NotAnInt32) => Err(CommandError::text(text)),
        db => Ok(db),
    };
    let first = db(1, "ERR invalid first DB index")?;
    let second = db(2, "ERR invalid second DB index")?;
    let (first, second) = (first?, second?);
    if first != second {
        context.with_view(Shards::All, LockMode::Exclusive, |view| {
            view.swap_dbs(first, second);
            view.journal(args.iter());
        });
    }
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn flushdb_empties_one_database_and_flushall_all() {
        check(&[
            ("SET a 1", "OK"),
            ("EXPIRE a 1000", "(integer) 1"),
            ("SELECT 1", "OK"),
            ("SET b 1", "OK"),
            ("EXPIRE b 1000", "(integer) 1"),
            ("FLUSHDB async", "OK"),
            ("DBSIZE", "(integer) 0"),
            ("SELECT 0", "OK"),
            ("DBSIZE", "(integer) 1"),
            ("TTL a", "(integer) 1000"),
            ("FLUSHALL SYNC", "OK"),
            ("DBSIZE", "(integer) 0"),
            ("FLUSHALL SYNC ASYNC", "(error) ERR syntax error"),
        ]);
    }

    #[test]
    fn whole_databases_can_be_flushed_and_swapped_in_a_transaction() {
        check(&[
            ("MULTI", "OK"),
            ("SET a 1", "QUEUED"),
            ("SWAPDB 0 1", "QUEUED"),
            ("DBSIZE", "QUEUED"),
            ("SET b 2", "QUEUED"),
            ("RANDOMKEY", "QUEUED"),
            ("FLUSHALL", "QUEUED"),
            ("RANDOMKEY", "QUEUED"),
            ("EXEC", "1) OK\n2) OK\n3) (integer) 0\n4) OK\n5) \"b\"\n6) OK\n7) (nil)"),
        ]);
    }

    #[test]
    fn a_swapped_key_keeps_its_expiry() {
        check(&[
            ("SET a 1", "OK"),
            ("EXPIRE a 1000", "(integer) 1"),
            ("SWAPDB 0 3", "OK"),
            ("DBSIZE", "(integer) 0"),
            ("SELECT 3", "OK"),
            ("TTL a", "(integer) 1000"),
            ("PERSIST a", "(integer) 1"),
            ("SWAPDB 3 16", "(error) ERR DB index is out of range"),
            ("SWAPDB x y", "(error) ERR invalid first DB index"),
            ("SWAPDB 0 y", "(error) ERR invalid second DB index"),
        ]);
    }
}
