//! SCAN and KEYS: the keys of a database.
//!
//! ```text
//! cursor of SCAN   bits 63 to 10   cursor in the shard's table (see kiln_data::table)
//!                  bits  9 to 0    shard
//! ```
//!
//! A scan goes through the shards in order, holding one at a time, and through as many as it takes
//! to see COUNT keys; the table's cursor keeps SCAN's promise while tables grow and shrink: a key
//! that is there from the first call to the last is returned at least once. 0 is both the start,
//! which is the start of shard 0, and the end. KEYS holds a shard until it has seen all of it, so
//! that it names no key twice. Both visit one shard only if the pattern has its hash tag spelled
//! out.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::sync::LockMode;
use kiln_command::{
    AclCategories, Args, Arity, CommandFlags, CommandResult, CommandSpec, Context, EntryRef,
    ReplyWriter, View,
};
use kiln_keyspace::{SHARD_COUNT, ShardId, Shards};

use super::options::{Budget, Found, Options, Pattern, Scanned, parse_cursor};

const SHARD_BITS: u32 = SHARD_COUNT.trailing_zeros();
const _: () = assert!(SHARD_COUNT.is_power_of_two(), "the shard takes whole bits of the cursor");

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::connection("KEYS", Arity::exactly(2), keys)
        .categories(AclCategories::KEYSPACE.union(AclCategories::DANGEROUS))
        .flags(CommandFlags::READONLY)
        .docs(
            "1.0.0",
            "O(N) with N keys in the database; O(1) for a pattern without wildcards.",
            "pattern",
            "Name all keys that match a pattern.",
        ),
    CommandSpec::connection("SCAN", Arity::at_least(2), scan)
        .categories(AclCategories::KEYSPACE)
        .flags(CommandFlags::READONLY)
        .docs(
            "2.8.0",
            "O(1) for each call, O(N) for all calls that go through N keys.",
            "cursor [MATCH pattern] [COUNT count] [TYPE type]",
            "Name some keys, and the cursor with which to ask for more.",
        ),
];

/// Where a scan goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    shard: ShardId,
    /// Cursor in the shard's table.
    inner: u64,
}

impl Position {
    /// The position that `cursor` names; `only` is the one shard to visit. `None` if the scan is
    /// over.
    fn of_cursor(cursor: u64, only: Option<ShardId>) -> Option<Self> {
        let shard = ShardId::new(cursor as usize % SHARD_COUNT);
        let here = Self { shard, inner: cursor >> SHARD_BITS };
        match only {
            Some(only) if only > shard => Some(Self { shard: only, inner: 0 }),
            Some(only) if only < shard => None,
            _ => Some(here),
        }
    }

    fn cursor(self) -> u64 {
        self.inner << SHARD_BITS | self.shard.index() as u64
    }

    /// The start of the next shard, if there is one to visit.
    fn next_shard(self, only: Option<ShardId>) -> Option<Self> {
        let next = self.shard.index() + 1;
        let goes_on = only.is_none() && next < SHARD_COUNT;
        goes_on.then(|| Self { shard: ShardId::new(next), inner: 0 })
    }
}

fn scan(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let cursor = parse_cursor(args.get(1))?;
    let options = Options::parse(&args.tail(2), Scanned::Keyspace)?;
    let only = options.pattern.shard();
    let mut found = Found::default();
    let mut budget = Budget::new(options.count);
    let mut position = Position::of_cursor(cursor, only);
    while let Some(here) = position
        && !budget.is_spent()
    {
        position = context.with_view(Shards::One(here.shard), LockMode::Shared, |view| {
            let inner = scan_shard(view, here, &options, &mut budget, &mut found);
            if inner == 0 { here.next_shard(only) } else { Some(Position { inner, ..here }) }
        });
    }
    found.write(position.map_or(0, Position::cursor), reply);
    Ok(())
}

/// Scans on in one shard as far as `budget` reaches; returns the table's cursor, 0 at its end.
fn scan_shard(
    view: &View<'_>,
    from: Position,
    options: &Options<'_>,
    budget: &mut Budget,
    found: &mut Found,
) -> u64 {
    if view.shard_len(from.shard) == 0 {
        return 0;
    }
    let wanted = |entry: EntryRef<'_>| {
        let of_type = |name: &[u8]| name.eq_ignore_ascii_case(entry.type_name().as_bytes());
        options.pattern.matches(entry.key()) && options.type_name.is_none_or(of_type)
    };
    let mut inner = from.inner;
    loop {
        let mut seen = 0;
        inner = view.scan_shard(from.shard, inner, |entry| {
            seen += 1;
            if wanted(entry) {
                found.push(entry.key());
            }
        });
        budget.pay(seen);
        if inner == 0 || budget.is_spent() {
            return inner;
        }
    }
}

fn keys(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let pattern = Pattern::new(args.get(1));
    let array = reply.deferred();
    let mut count = 0;
    if let Some(key) = pattern.only_match() {
        let shards = Shards::One(kiln_keyspace::shard_of(key));
        if context.with_view(shards, LockMode::Shared, |view| view.peek(key).is_some()) {
            reply.bulk(key);
            count = 1;
        }
    } else {
        let only = pattern.shard();
        let mut position = Position::of_cursor(0, only);
        while let Some(here) = position {
            context.with_view(Shards::One(here.shard), LockMode::Shared, |view| {
                count += keys_of_shard(view, here.shard, &pattern, reply);
            });
            position = here.next_shard(only);
        }
    }
    reply.finish_array(array, count);
    Ok(())
}

/// Replies with all keys of one shard that match; returns how many they are.
fn keys_of_shard(
    view: &View<'_>,
    shard: ShardId,
    pattern: &Pattern<'_>,
    reply: &mut ReplyWriter<'_>,
) -> usize {
    let (mut count, mut cursor) = (0, 0);
    loop {
        cursor = view.scan_shard(shard, cursor, |entry| {
            if pattern.matches(entry.key()) {
                reply.bulk(entry.key());
                count += 1;
            }
        });
        if cursor == 0 {
            return count;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kiln_testkit::reply::Reply;
    use proptest::prelude::{any, proptest};
    use proptest::{collection, prop_assert, prop_assert_eq};

    use super::{Position, ShardId};
    use crate::testkit::{TestServer, check};

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn text(reply: &Reply) -> String {
        let Reply::Bulk(bytes) = reply else { panic!("not a bulk string: {reply:?}") };
        String::from_utf8(bytes.clone()).expect("the tests use text")
    }

    /// One call of SCAN: the next cursor and the keys.
    fn scan(server: &mut TestServer, cursor: &str, options: &str) -> (String, Vec<String>) {
        let line = format!("SCAN {cursor}{options}");
        let Reply::Array(parts) = server.reply(&words(&line)) else { panic!("{line}") };
        let [cursor, Reply::Array(keys)] = &parts[..] else { panic!("{line}: {parts:?}") };
        (text(cursor), keys.iter().map(text).collect())
    }

    #[test]
    fn a_cursor_names_a_shard_and_a_place_in_it() {
        let position = Position { shard: ShardId::new(1023), inner: 77 };
        assert_eq!(Position::of_cursor(position.cursor(), None), Some(position));
        assert_eq!(position.next_shard(None), None);
        let (low, high) = (ShardId::new(5), ShardId::new(9));
        let start = Position { shard: high, inner: 0 };
        assert_eq!(Position::of_cursor(0, Some(high)), Some(start));
        assert_eq!(Position::of_cursor(start.cursor(), Some(low)), None);
        assert_eq!(start.next_shard(Some(high)), None);
    }

    #[test]
    fn patterns_and_types_choose() {
        check(&[
            ("SCAN 0", "1) \"0\"\n2) (empty array)"),
            ("SET {t}a 1", "OK"),
            ("SET {t}b 2", "OK"),
            ("SET c 3", "OK"),
            ("KEYS c", "1) \"c\""),
            ("KEYS {t}[a]", "1) \"{t}a\""),
            ("KEYS {u}*", "(empty array)"),
            ("SCAN 0 MATCH {t}?b", "1) \"0\"\n2) (empty array)"),
            ("SCAN 0 MATCH {t}b*", "1) \"0\"\n2) 1) \"{t}b\""),
            ("SCAN 0 MATCH c TYPE String", "1) \"0\"\n2) 1) \"c\""),
            ("SCAN 0 MATCH c TYPE list", "1) \"0\"\n2) (empty array)"),
            ("SCAN 18446744073709551615", "1) \"0\"\n2) (empty array)"),
            ("SCAN x BOGUS", "(error) ERR invalid cursor"),
            ("SCAN 0 COUNT x", "(error) ERR value is not an integer or out of range"),
            ("SCAN 0 COUNT 0", "(error) ERR syntax error"),
            ("SCAN 0 NOVALUES", "(error) ERR NOVALUES option can only be used in HSCAN"),
        ]);
    }

    #[test]
    fn keys_names_every_key_once() {
        let mut server = crate::testkit::server();
        let want: BTreeSet<_> = (0..3_000).map(|number| format!("key:{number}")).collect();
        for key in &want {
            server.run(&words(&format!("SET {key} v")));
        }
        let Reply::Array(keys) = server.reply(&words("KEYS k*")) else { panic!("no array") };
        assert_eq!(keys.len(), want.len());
        assert_eq!(keys.iter().map(text).collect::<BTreeSet<_>>(), want);
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(24))]

        /// SCAN's promise: whatever comes and goes between the calls, keys that stay are found.
        /// With one hash tag all keys share a table, which grows and shrinks many times over.
        #[test]
        fn keys_that_stay_are_found_while_tables_grow_and_shrink(
            tag in any::<bool>(),
            stay in 1_usize..400,
            count in 1_usize..40,
            waves in collection::vec((any::<bool>(), 1_usize..300), 1..40),
        ) {
            let mut server = crate::testkit::server();
            let tag = if tag { "{t}" } else { "" };
            let want: BTreeSet<_> = (0..stay).map(|number| format!("{tag}stay:{number}")).collect();
            for key in &want {
                server.run(&words(&format!("SET {key} v")));
            }
            let (mut found, mut cursor) = (BTreeSet::new(), "0".to_owned());
            let mut others = 0;
            let mut waves = waves.into_iter().cycle();
            for calls in 0.. {
                prop_assert!(calls < 20_000, "the scan does not end");
                let (next, keys) = scan(&mut server, &cursor, &format!(" COUNT {count}"));
                found.extend(keys.into_iter().filter(|key| key.contains("stay")));
                if next == "0" {
                    break;
                }
                cursor = next;
                let (grow, by) = waves.next().expect("a cycle has no end");
                for _ in 0..by {
                    if grow && others < 5_000 {
                        server.run(&words(&format!("SET {tag}other:{others} v")));
                        others += 1;
                    } else if others > 0 {
                        others -= 1;
                        server.run(&words(&format!("DEL {tag}other:{others}")));
                    }
                }
            }
            prop_assert_eq!(found, want);
        }
    }
}
