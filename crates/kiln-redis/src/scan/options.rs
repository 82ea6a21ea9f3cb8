//! What all scans share: cursor, options, pattern, and the measure of how far one call goes.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::crc16::hash_tag;
use kiln_base::glob::glob_match;
use kiln_base::number::parse_i64;
use kiln_command::args::ArgsExt;
use kiln_command::{Args, CommandError, ReplyWriter};
use kiln_keyspace::{ShardId, shard_of};

/// Elements that a scan without COUNT looks at.
const COUNT_DEFAULT: usize = 10;
/// Buckets that a scan looks at, most of them empty, for each element it was asked for.
const BUCKETS_FOR_ONE: usize = 10;

/// What is scanned, which decides the options.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scanned {
    Keyspace,
    Hash,
    Other,
}

/// The options of a scan.
pub(super) struct Options<'a> {
    pub(super) pattern: Pattern<'a>,
    pub(super) count: usize,
    /// TYPE: the name of a type, in any case.
    pub(super) type_name: Option<&'a [u8]>,
    /// NOVALUES: the fields of a hash only.
    pub(super) no_values: bool,
}

impl<'a> Options<'a> {
    /// Parses the words behind the cursor.
    pub(super) fn parse(words: &Args<'a>, scanned: Scanned) -> Result<Self, CommandError> {
        let mut options = Self {
            pattern: Pattern::new(b"*"),
            count: COUNT_DEFAULT,
            type_name: None,
            no_values: false,
        };
        let mut index = 0;
        while index < words.len() {
            let value = index + 1;
            let has_value = value < words.len();
            if words.is_word(index, "COUNT") && has_value {
                options.count = usize::try_from(words.int(value)?).unwrap_or(0);
                if options.count == 0 {
                    return Err(CommandError::Syntax);
                }
                index += 2;
            } else if words.is_word(index, "MATCH") && has_value {
                options.pattern = Pattern::new(words.get(value));
                index += 2;
            } else if words.is_word(index, "TYPE") && has_value && scanned == Scanned::Keyspace {
                options.type_name = Some(words.get(value));
                index += 2;
            } else if words.is_word(index, "NOVALUES") {
                if scanned != Scanned::Hash {
                    return Err(CommandError::text(
                        "ERR NOVALUES option can only be used in HSCAN",
                    ));
                }
                options.no_values = true;
                index += 1;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }
}

/// Parses a cursor: any unsigned 64-bit number, blanks, a sign and zeroes before it allowed. A
/// minus wraps around, as in C, but canonical negative numbers are refused.
pub(super) fn parse_cursor(text: &[u8]) -> Result<u64, CommandError> {
    let invalid = CommandError::text("ERR invalid cursor");
    if parse_i64(text).is_some_and(|number| number < 0) {
        return Err(invalid);
    }
    let text = text.trim_ascii_start();
    let negative = text.first() == Some(&b'-');
    let digits = text.strip_prefix(b"+").or(text.strip_prefix(b"-")).unwrap_or(text);
    let is_number = digits.first().is_some_and(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number);
    let number: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or(invalid)?;
    Ok(if negative { number.wrapping_neg() } else { number })
}

/// A glob pattern and what is known of whatever matches it.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'a> {
    glob: &'a [u8],
    /// How much of it matches only itself.
    literal_len: usize,
}

impl<'a> Pattern<'a> {
    pub(super) fn new(glob: &'a [u8]) -> Self {
        let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let literal_len = glob.iter().position(is_special).unwrap_or(glob.len());
        Self { glob, literal_len }
    }

    /// Whether `text` matches.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        // The empty text does not match `*` as a glob, but nothing is left out of a scan.
        self.glob == b"*" || glob_match(self.glob, text, false)
    }

    /// The only text that matches, if there is just one.
    pub(super) fn only_match(&self) -> Option<&'a [u8]> {
        (self.literal_len == self.glob.len()).then_some(self.glob)
    }

    /// The shard of every key that matches, if they share one: because a whole hash tag stands
    /// before the first wildcard, or because there is no wildcard.
    pub(super) fn shard(&self) -> Option<ShardId> {
        let literal = &self.glob[..self.literal_len];
        let is_tagged = hash_tag(literal).len() < literal.len();
        (is_tagged || self.only_match().is_some()).then(|| shard_of(literal))
    }
}

/// How much more one call of a scan looks at.
pub(super) struct Budget {
    elements: usize,
    buckets: usize,
}

impl Budget {
    pub(super) fn new(count: usize) -> Self {
        Self { elements: count, buckets: count.saturating_mul(BUCKETS_FOR_ONE) }
    }

    /// Whether the call has looked at enough.
    pub(super) fn is_spent(&self) -> bool {
        self.elements == 0 || self.buckets == 0
    }

    /// Pays for one bucket with so many elements.
    pub(super) fn pay(&mut self, elements: usize) {
        self.elements = self.elements.saturating_sub(elements);
        self.buckets -= 1;
    }
}

/// Texts found, kept until the cursor before them is known.
#[derive(Default)]
pub(super) struct Found {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Found {
    pub(super) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// Replies with the cursor and what was found.
    pub(super) fn write(&self, cursor: u64, reply: &mut ReplyWriter<'_>) {
        reply.array(2);
        reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
        reply.array(self.ends.len());
        let mut start = 0;
        for &end in &self.ends {
            reply.bulk(&self.bytes[start..end]);
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use kiln_keyspace::shard_of;

    use super::{Pattern, parse_cursor};

    #[test]
    fn a_hash_tag_before_the_first_wildcard_tells_the_shard() {
        let shard = |glob: &str| Pattern::new(glob.as_bytes()).shard();
        assert_eq!(shard("{user}:*"), Some(shard_of(b"user")));
        assert_eq!(shard("a{user}?{x}"), Some(shard_of(b"user")));
        assert_eq!(shard("plain"), Some(shard_of(b"plain")));
        for glob in ["{user*}", "user*", "{}:*", "{u[s]er}", "*{user}", "{us\\er}", "{{user*}"] {
            assert_eq!(shard(glob), None, "{glob}");
        }
    }

    #[test]
    fn only_a_star_matches_the_empty_text() {
        assert!(Pattern::new(b"*").matches(b"") && Pattern::new(b"").matches(b""));
        assert!(!Pattern::new(b"**").matches(b"") && !Pattern::new(b"?").matches(b""));
    }

    #[test]
    fn a_cursor_is_any_unsigned_number() {
        for (text, cursor) in [
            ("0", 0),
            (" 05", 5),
            ("+1", 1),
            ("-0", 0),
            ("-01", u64::MAX),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_cursor(text.as_bytes()), Ok(cursor), "{text:?}");
        }
        for text in ["", "-", "+-1", "-1", "1.5", "1 ", "0x1", "abc", "18446744073709551616"] {
            assert!(parse_cursor(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
