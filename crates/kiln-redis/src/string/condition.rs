//! Comparing the value at a key, by its bytes or its digest: the IF… options of SET and DELEX,
//! and the commands DIGEST, DELEX and DELIFEQ.
//!
//! A digest is the XXH3 hash of the value, 64 bits, in 16 hexadecimal digits. An integer counts by
//! its decimal form.
//!
//! Source: replies observed on Redis 8.6.2, DELIFEQ on Valkey 9.1.2.

use kiln_base::number::INTEGER_BYTES_MAX;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, EntryRef, Event, Group,
    KeyFlags, KeySpec, ReplyWriter, StringRef, Value, View,
};
use xxhash_rust::xxh3::xxh3_64;

use super::READ;

const DIGEST_DIGITS: usize = 16;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::read("DIGEST", Arity::exactly(2), digest)
        .group(Group::String)
        .flags(CommandFlags::FAST)
        .keys(READ)
        .docs(
            "8.4.0",
            "O(N) with N the length of the string.",
            "key",
            "Return the XXH3 hash of the string at a key, in hexadecimal.",
        ),
    CommandSpec::write("DELEX", Arity::at_least(2), delex)
        .group(Group::String)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(
            1,
            KeyFlags::RW.union(KeyFlags::DELETE).union(KeyFlags::VARIABLE_FLAGS),
        )])
        .docs(
            "8.4.0",
            "O(1), or O(N) with N the length of the string if its digest is compared.",
            "key [IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest]",
            "Delete a key if its string equals, or does not equal, a value or digest.",
        ),
    CommandSpec::write("DELIFEQ", Arity::exactly(3), delifeq)
        .group(Group::String)
        .flags(CommandFlags::FAST)
        .keys(&[KeySpec::at(1, KeyFlags::RM.union(KeyFlags::DELETE))])
        .docs("9.0.0", "O(1)", "key value", "Delete a key if its string equals a value."),
];

#[derive(Clone, Copy)]
enum Test {
    Equal,
    NotEqual,
    DigestEqual,
    DigestNotEqual,
}

/// A comparison of a value with a word of the command.
#[derive(Clone, Copy)]
pub(super) struct Condition<'a> {
    test: Test,
    operand: &'a [u8],
}

impl<'a> Condition<'a> {
    /// The comparison that words `index` and `index + 1` name, if they do.
    pub(super) fn parse(args: &Args<'a>, index: usize) -> Option<Self> {
        let tests = [
            ("IFEQ", Test::Equal),
            ("IFNE", Test::NotEqual),
            ("IFDEQ", Test::DigestEqual),
            ("IFDNE", Test::DigestNotEqual),
        ];
        let word = args.get(index);
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let (_, test) = tests.into_iter().find(|(name, _)| is(name))?;
        Some(Self { test, operand: args.try_get(index + 1)? })
    }

    /// Whether SET writes to a key that does not exist.
    pub(super) fn holds_if_missing(self) -> bool {
        matches!(self.test, Test::NotEqual | Test::DigestNotEqual)
    }

    /// Whether it holds for the value of a key that exists.
    ///
    /// # Errors
    ///
    /// A digest of another length than digests have.
    pub(super) fn holds(self, value: StringRef<'_>) -> Result<bool, CommandError> {
        let mut scratch = [0; INTEGER_BYTES_MAX];
        let bytes = value.bytes(&mut scratch);
        Ok(match self.test {
            Test::Equal => bytes == self.operand,
            Test::NotEqual => bytes != self.operand,
            Test::DigestEqual => self.digest_equals(bytes)?,
            Test::DigestNotEqual => !self.digest_equals(bytes)?,
        })
    }

    fn digest_equals(self, bytes: &[u8]) -> Result<bool, CommandError> {
        if self.operand.len() != DIGEST_DIGITS {
            return Err(CommandError::text("ERR must be exactly 16 hexadecimal characters"));
        }
        Ok(digest_of(bytes).as_bytes().eq_ignore_ascii_case(self.operand))
    }
}

fn digest_of(bytes: &[u8]) -> String {
    format!("{:0width$x}", xxh3_64(bytes), width = DIGEST_DIGITS)
}

fn digest(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    match view.string(args.get(1))? {
        Some(value) => {
            let digest = digest_of(value.bytes(&mut [0; INTEGER_BYTES_MAX]));
            reply.bulk(digest.as_bytes());
        }
        None => reply.null(),
    }
    Ok(())
}

fn delex(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let condition =
        match args.len() {
            2 => None,
            4 => Some(Condition::parse(args, 2).ok_or(CommandError::text(
                "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
            ))?),
            _ => return Err(CommandError::WrongArity("delex".into())),
        };
    let holds = match (view.get(key).map(EntryRef::value), condition) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(Value::String(value)), Some(condition)) => condition.holds(value)?,
        (Some(Value::Object(_)), Some(_)) => {
            return Err(CommandError::text(
                "ERR Key should be of string type if conditions are specified",
            ));
        }
    };
    delete_if(holds, view, key, reply);
    Ok(())
}

fn delifeq(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(1);
    let condition = Condition { test: Test::Equal, operand: args.get(2) };
    let holds = view.string(key)?.map_or(Ok(false), |value| condition.holds(value))?;
    delete_if(holds, view, key, reply);
    Ok(())
}

/// Deletes `key` if a condition holds, and replies with how many keys that were.
fn delete_if(holds: bool, view: &mut View<'_>, key: &[u8], reply: &mut ReplyWriter<'_>) {
    if holds {
        view.delete(key);
        view.changed(key, Event::Del);
        view.journal([b"DEL", key]);
    }
    reply.integer(i64::from(holds));
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn digests_are_those_of_redis() {
        check(&[
            ("DIGEST k", "(nil)"),
            ("SET k \"\"", "OK"),
            ("DIGEST k", "\"2d06800538d394c2\""),
            ("SET k hello", "OK"),
            ("DIGEST k", "\"9555e8555c62dcfd\""),
            ("SET k 123", "OK"),
            ("DIGEST k", "\"404a763b3f4c8c9a\""),
        ]);
    }

    #[test]
    fn a_key_is_deleted_if_the_condition_holds() {
        check(&[
            ("DELEX k IFNE v", "(integer) 0"),
            ("DELEX k IFDNE short", "(integer) 0"),
            ("SET k hello", "OK"),
            ("DELEX k IFEQ x", "(integer) 0"),
            ("DELEX k IFDEQ short", "(error) ERR must be exactly 16 hexadecimal characters"),
            ("DELEX k IFDNE 9555e8555c62dcfd", "(integer) 0"),
            ("DELEX k IFDEQ 9555E8555C62DCFD", "(integer) 1"),
            ("SET k 5", "OK"),
            ("DELIFEQ k 05", "(integer) 0"),
            ("DELIFEQ k 5", "(integer) 1"),
            ("DELIFEQ k 5", "(integer) 0"),
        ]);
    }

    #[test]
    fn conditions_are_for_strings() {
        check(&[
            ("ZADD l 1 a", "(integer) 1"),
            (
                "DELEX l IFEQ a",
                "(error) ERR Key should be of string type if conditions are specified",
            ),
            (
                "DELIFEQ l a",
                "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            (
                "DELEX l SOMETIMES a",
                "(error) ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
            ),
            ("DELEX l IFEQ", "(error) ERR wrong number of arguments for 'delex' command"),
            ("DELEX l", "(integer) 1"),
        ]);
    }
}
