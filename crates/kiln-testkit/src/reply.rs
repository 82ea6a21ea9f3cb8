//! One reply of a server: parsed from RESP2 or RESP3 bytes, printed as redis-cli prints it.
//!
//! ```text
//! bytes on the wire        Reply                       Display
//! :1\r\n                   Integer(1)                  (integer) 1
//! $1\r\nv\r\n              Bulk("v")                   "v"
//! *2\r\n$1\r\na\r\n_\r\n   Array([Bulk("a"), Null])    1) "a"
//!                                                      2) (nil)
//! ```
//!
//! Equality is equality on the wire: a RESP2 null bulk string, a RESP2 null array and a RESP3 null
//! are three things here, although redis-cli prints `(nil)` for each. A double keeps its digits as
//! text. Left out: streamed strings and aggregates, which no server sends, and attributes.

use std::fmt::{self, Write as _};

/// Nesting beyond this is a broken server, not a reply.
const MAX_DEPTH: usize = 64;

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    /// `+OK`.
    Simple(Vec<u8>),
    /// `-ERR ...`, and RESP3's long form.
    Error(Vec<u8>),
    /// `:1`.
    Integer(i64),
    /// `$1`: a string of any bytes.
    Bulk(Vec<u8>),
    /// `$-1`, RESP2's missing string.
    NullBulk,
    /// `*-1`, RESP2's missing array.
    NullArray,
    /// `_`, RESP3's null.
    Null,
    /// `,3.14`: the digits as sent.
    Double(Vec<u8>),
    /// `#t` or `#f`.
    Boolean(bool),
    /// `(123`: the digits as sent.
    BigNumber(Vec<u8>),
    /// `=`: three letters of format, then the text.
    Verbatim(Vec<u8>, Vec<u8>),
    /// `*`.
    Array(Vec<Reply>),
    /// `~`.
    Set(Vec<Reply>),
    /// `>`: sent without being asked for, or in answer to SUBSCRIBE.
    Push(Vec<Reply>),
    /// `%`.
    Map(Vec<(Reply, Reply)>),
}

/// The bytes are no RESP: the server is broken, the connection must be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError;

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server's bytes are not RESP")
    }
}

impl std::error::Error for ParseError {}

impl Reply {
    /// Parses the first reply in `bytes`: the reply and its length, or `None` while it is
    /// incomplete.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, ParseError> {
        let mut parser = Parser { bytes, at: 0 };
        Ok(parser.reply(0)?.map(|reply| (reply, parser.at)))
    }

    /// Parses `bytes`, which must be exactly one reply.
    ///
    /// # Panics
    ///
    /// If they are not: for tests that know what they hold.
    pub fn parse_all(bytes: &[u8]) -> Self {
        match Self::parse(bytes) {
            Ok(Some((reply, length))) if length == bytes.len() => reply,
            _ => panic!("not one reply: {}", quote(bytes)),
        }
    }

    /// Whether this is an error reply.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// The bytes of a string of either form.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Simple(text) | Self::Bulk(text) | Self::Verbatim(_, text) => Some(text),
            _ => None,
        }
    }

    /// The elements of an array, set or push.
    pub fn as_elements(&self) -> Option<&[Reply]> {
        match self {
            Self::Array(elements) | Self::Set(elements) | Self::Push(elements) => Some(elements),
            _ => None,
        }
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn reply(&mut self, depth: usize) -> Result<Option<Reply>, ParseError> {
        if depth > MAX_DEPTH {
            return Err(ParseError);
        }
        let Some(line) = self.line()? else { return Ok(None) };
        let (&kind, rest) = line.split_first().ok_or(ParseError)?;
        Ok(Some(match kind {
            b'+' => Reply::Simple(rest.to_vec()),
            b'-' => Reply::Error(rest.to_vec()),
            b':' => Reply::Integer(number(rest)?),
            b'_' => Reply::Null,
            b',' => Reply::Double(rest.to_vec()),
            b'#' => Reply::Boolean(rest == b"t"),
            b'(' => Reply::BigNumber(rest.to_vec()),
            b'$' if rest == b"-1" => Reply::NullBulk,
            b'*' if rest == b"-1" => Reply::NullArray,
            b'$' | b'!' | b'=' => {
                let Some(text) = self.blob(number(rest)?)? else { return Ok(None) };
                match kind {
                    b'$' => Reply::Bulk(text.to_vec()),
                    b'!' => Reply::Error(text.to_vec()),
                    _ => {
                        let (format, text) = text.split_at_checked(4).ok_or(ParseError)?;
                        Reply::Verbatim(format[..3].to_vec(), text.to_vec())
                    }
                }
            }
            b'*' | b'~' | b'>' | b'%' => {
                let count = u32::try_from(number(rest)?).map_err(|_| ParseError)?;
                let count = u64::from(count) * if kind == b'%' { 2 } else { 1 };
                let mut elements = Vec::new();
                for _ in 0..count {
                    let Some(element) = self.reply(depth + 1)? else { return Ok(None) };
                    elements.push(element);
                }
                match kind {
                    b'*' => Reply::Array(elements),
                    b'~' => Reply::Set(elements),
                    b'>' => Reply::Push(elements),
                    _ => Reply::Map(pairs(elements)),
                }
            }
            _ => return Err(ParseError),
        }))
    }

    /// The bytes up to the next CRLF, which is consumed.
    fn line(&mut self) -> Result<Option<&'a [u8]>, ParseError> {
        let rest = &self.bytes[self.at..];
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        self.at += end + 1;
        rest[..end].strip_suffix(b"\r").map(Some).ok_or(ParseError)
    }

    fn blob(&mut self, length: i64) -> Result<Option<&'a [u8]>, ParseError> {
        let length = usize::try_from(length).map_err(|_| ParseError)?;
        let rest = &self.bytes[self.at..];
        if rest.len() < length + 2 {
            return Ok(None);
        }
        self.at += length + 2;
        if &rest[length..length + 2] == b"\r\n" {
            Ok(Some(&rest[..length]))
        } else {
            Err(ParseError)
        }
    }
}

fn number(digits: &[u8]) -> Result<i64, ParseError> {
    std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).ok_or(ParseError)
}

/// Consecutive elements, two by two. A last odd one is dropped.
pub(crate) fn pairs(elements: Vec<Reply>) -> Vec<(Reply, Reply)> {
    let mut pairs = Vec::with_capacity(elements.len() / 2);
    let mut elements = elements.into_iter();
    while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
        pairs.push((key, value));
    }
    pairs
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self, ""))
    }
}

/// The text of `reply`, whose later lines begin with `indent`.
fn print(reply: &Reply, indent: &str) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match reply {
        Reply::Simple(line) => text(line),
        Reply::Error(line) => format!("(error) {}", text(line)),
        Reply::Integer(value) => format!("(integer) {value}"),
        Reply::Bulk(bytes) => quote(bytes),
        Reply::NullBulk | Reply::NullArray | Reply::Null => "(nil)".to_owned(),
        Reply::Double(digits) => format!("(double) {}", text(digits)),
        Reply::Boolean(value) => format!("({value})"),
        Reply::BigNumber(digits) => text(digits),
        Reply::Verbatim(_, bytes) => text(bytes),
        Reply::Array(elements) => print_elements(elements, ')', "(empty array)", indent),
        Reply::Set(elements) => print_elements(elements, '~', "(empty set)", indent),
        Reply::Push(elements) => print_elements(elements, '>', "(empty push)", indent),
        Reply::Map(entries) => print_map(entries, indent),
    }
}

fn print_elements(elements: &[Reply], mark: char, empty: &str, indent: &str) -> String {
    if elements.is_empty() {
        return empty.to_owned();
    }
    let width = elements.len().to_string().len();
    let inner = format!("{indent}{}", " ".repeat(width + 2));
    let mut out = String::new();
    for (index, element) in elements.iter().enumerate() {
        let start = if index == 0 { "" } else { indent };
        let end = if index + 1 == elements.len() { "" } else { "\n" };
        let number = index + 1;
        let element = print(element, &inner);
        write!(out, "{start}{number:>width$}{mark} {element}{end}").expect("a String takes all");
    }
    out
}

fn print_map(entries: &[(Reply, Reply)], indent: &str) -> String {
    if entries.is_empty() {
        return "(empty hash)".to_owned();
    }
    let width = entries.len().to_string().len();
    let inner = format!("{indent}{}", " ".repeat(width + 2));
    let mut out = String::new();
    for (index, (key, value)) in entries.iter().enumerate() {
        let start = if index == 0 { "" } else { indent };
        let end = if index + 1 == entries.len() { "" } else { "\n" };
        let number = index + 1;
        // A value of several lines starts on a line of its own.
        let line_break = if count(value) > 1 { format!("\n{inner}") } else { String::new() };
        let (key, value) = (print(key, &inner), print(value, &inner));
        write!(out, "{start}{number:>width$}# {key} => {line_break}{value}{end}")
            .expect("a String takes all");
    }
    out
}

/// How many elements an aggregate has.
fn count(reply: &Reply) -> usize {
    match reply {
        Reply::Map(entries) => entries.len(),
        other => other.as_elements().map_or(0, <[Reply]>::len),
    }
}

/// `bytes` in double quotes, unprintable ones escaped.
pub fn quote(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x07 => out.push_str("\\a"),
            0x08 => out.push_str("\\b"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => write!(out, "\\x{byte:02x}").expect("a String takes all"),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes, and what redis-cli 8.2 prints for them.
    #[test]
    fn replies_print_as_redis_cli_prints_them() {
        for (bytes, text) in [
            ("+OK\r\n", "OK"),
            ("-ERR no\r\n", "(error) ERR no"),
            ("!6\r\nERR no\r\n", "(error) ERR no"),
            (":-7\r\n", "(integer) -7"),
            ("$4\r\na\"\r\n\r\n", "\"a\\\"\\r\\n\""),
            ("$-1\r\n", "(nil)"),
            ("*-1\r\n", "(nil)"),
            ("_\r\n", "(nil)"),
            (",1.5\r\n", "(double) 1.5"),
            ("#t\r\n", "(true)"),
            ("(123\r\n", "123"),
            ("=7\r\ntxt:abc\r\n", "abc"),
            ("*0\r\n", "(empty array)"),
            ("~0\r\n", "(empty set)"),
            ("%0\r\n", "(empty hash)"),
            ("*2\r\n:1\r\n*2\r\n+a\r\n:2\r\n", "1) (integer) 1\n2) 1) a\n   2) (integer) 2"),
            (
                "%1\r\n$1\r\nk\r\n*2\r\n:1\r\n:2\r\n",
                "1# \"k\" => \n   1) (integer) 1\n   2) (integer) 2",
            ),
            ("~2\r\n:1\r\n:2\r\n", "1~ (integer) 1\n2~ (integer) 2"),
        ] {
            assert_eq!(Reply::parse_all(bytes.as_bytes()).to_string(), text);
        }
    }

    #[test]
    fn numbers_align_in_long_arrays() {
        let text = Reply::Array(vec![Reply::Integer(0); 10]).to_string();
        assert!(text.starts_with(" 1) (integer) 0\n 2) "));
        assert!(text.ends_with("\n10) (integer) 0"));
    }

    #[test]
    fn every_prefix_is_incomplete() {
        let bytes = b"%1\r\n$1\r\nk\r\n*2\r\n=5\r\ntxt:a\r\n,inf\r\n";
        for end in 0..bytes.len() {
            assert_eq!(Reply::parse(&bytes[..end]), Ok(None));
        }
        assert!(matches!(Reply::parse(bytes), Ok(Some((_, length))) if length == bytes.len()));
    }

    #[test]
    fn broken_bytes_are_refused() {
        for bytes in ["?\r\n", "\r\n", ":x\r\n", "+a\n", "$1\r\nabc", "$-2\r\n", "=1\r\na\r\n"] {
            assert_eq!(Reply::parse(bytes.as_bytes()), Err(ParseError), "{bytes:?}");
        }
        assert_eq!(Reply::parse("*1\r\n".repeat(100).as_bytes()), Err(ParseError));
    }
}
