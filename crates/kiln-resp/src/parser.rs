//! The request parser: finds the complete commands in a read buffer and leaves them there.
//!
//! ```text
//! buf:  *2\r\n$3\r\nGET\r\n$1\r\nk\r\n  PING\r\n  *2\r\n$3\r\nGET\r\n$70000\r\nxxxx
//!                   └┬┘          ╵      └┬─┘      └───────────────────────────────┘
//!                    └ spans of the words         pending: one word is missing
//!       └─ consumed() ───────────────────────────┘└ offset 0 of the next call
//! ```
//!
//! Between two calls the connection drops the `consumed()` bytes and appends what it has read, so
//! `buf[0]` is always the first byte of the first command not yet handed out. What the parser
//! remembers of an incomplete command ([`Pending`]) counts from there. Each byte is looked at a
//! bounded number of times, however the input is cut: a command of a million words that arrives in
//! single bytes costs no more than one that arrives whole, and gives the same result.
//!
//! Two of Redis's habits are kept because clients can see them: the two bytes after a length or a
//! word are skipped, not compared with CR LF; and a line counts as inline when it does not start
//! with `*`. One is not: Redis 8.2 waits forever behind a NUL in an inline command, Kiln takes
//! it as a byte like any other. Where Redis's verdict on an overlong line depends on how the
//! network cut it, Kiln always refuses it.
//!
//! Source: the texts and limits are those of Redis 8.2.3, asked over a socket.

use kiln_base::number::parse_i64;
use thiserror::Error;

use crate::{Args, Span};

/// The longest line (inline command or length header) by default, as in Redis.
pub const MAX_INLINE_BYTES: usize = 64 * 1024;
/// `proto-max-bulk-len` by default.
pub const MAX_BULK_BYTES: i64 = 512 * 1024 * 1024;
/// The most words of one command.
pub const MAX_WORDS: i64 = i32::MAX as i64;
/// The most words of one command before authentication.
pub const MAX_WORDS_UNAUTHENTICATED: i64 = 10;
/// The longest word before authentication.
pub const MAX_BULK_BYTES_UNAUTHENTICATED: i64 = 16 * 1024;

/// What a connection may send.
#[derive(Clone, Copy, Debug)]
pub struct ParserLimits {
    /// Most words of one command.
    pub max_multibulk: i64,
    /// Longest word: `proto-max-bulk-len`.
    pub max_bulk: i64,
    /// Longest inline command and longest length header, in bytes without the line end.
    pub max_inline: usize,
    /// Whether the client has yet to authenticate; then the two `*_UNAUTHENTICATED` limits hold
    /// as well, with error texts of their own.
    pub unauthenticated: bool,
}

impl Default for ParserLimits {
    fn default() -> Self {
        Self {
            max_multibulk: MAX_WORDS,
            max_bulk: MAX_BULK_BYTES,
            max_inline: MAX_INLINE_BYTES,
            unauthenticated: false,
        }
    }
}

/// Why the rest of a connection's input cannot be understood. The connection executes what came
/// before, replies `-ERR` and this text, and closes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// `*` with something other than a canonical number within the limit.
    #[error("Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// More than [`MAX_WORDS_UNAUTHENTICATED`] words before authentication.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// A `*` line without an end.
    #[error("Protocol error: too big mbulk count string")]
    TooBigMultibulkCount,
    /// A word that does not start with `$`, but with this byte.
    #[error("Protocol error: expected '$', got '{}'", char::from(*.0))]
    ExpectedDollar(u8),
    /// `$` with something other than a canonical number within the limit.
    #[error("Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// A word longer than [`MAX_BULK_BYTES_UNAUTHENTICATED`] before authentication.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// A `$` line without an end.
    #[error("Protocol error: too big bulk count string")]
    TooBigBulkCount,
    /// An inline command without an end.
    #[error("Protocol error: too big inline request")]
    TooBigInline,
    /// An inline command with an open quote, or with text right after a closing one.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
}

/// The complete commands of one read buffer. A worker reuses one for all its connections.
#[derive(Debug, Default)]
pub struct Batch {
    spans: Vec<Span>,
    commands: Vec<Command>,
    consumed: usize,
}

/// One command: where its words are in `spans`, and the offset in the buffer at which it ends.
#[derive(Clone, Copy, Debug)]
struct Command {
    first: u32,
    count: u32,
    end: u32,
}

impl Batch {
    /// Forgets the commands, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.spans.clear();
        self.commands.clear();
        self.consumed = 0;
    }

    /// How many commands are complete.
    #[inline]
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether no command is complete.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The words of command `index`. `buf` is the buffer that was parsed.
    ///
    /// # Panics
    ///
    /// If there is no such command.
    #[inline]
    pub fn args<'a>(&'a self, index: usize, buf: &'a [u8]) -> Args<'a> {
        let command = self.commands[index];
        Args::new(buf, &self.spans[command.first as usize..][..command.count as usize])
    }

    /// The offset in the buffer right after command `index`, from which a connection that stops
    /// there (a blocked client, say) has to parse again.
    ///
    /// # Panics
    ///
    /// If there is no such command.
    #[inline]
    pub fn end_of(&self, index: usize) -> usize {
        self.commands[index].end as usize
    }

    /// How many bytes of the buffer are done with once all these commands are executed: theirs, and
    /// those of the empty lines and empty arrays between and after them.
    #[inline]
    pub fn consumed(&self) -> usize {
        self.consumed
    }

    fn push(&mut self, first: usize, end: usize) {
        let count = self.spans.len() - first;
        self.commands.push(Command { first: first as u32, count: count as u32, end: end as u32 });
        self.consumed = end;
    }
}

/// A connection's request parser: what it knows of the one command that is not complete yet.
#[derive(Debug, Default)]
pub struct Parser {
    pending: Pending,
    /// The words that the pending command has so far, relative to its start.
    spans: Vec<Span>,
}

/// How far an incomplete command got. Offsets count from its first byte.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Words still missing; 0 while the `*` line or the inline command has no end yet.
    missing: u32,
    /// Start of the line or word that is incomplete.
    position: usize,
    /// The length of that word, once its `$` line is complete.
    bulk_len: Option<u32>,
    /// How many bytes of that line are known to hold no line end.
    scanned: usize,
}

impl Pending {
    /// Whether nothing is known of the next command yet.
    #[inline]
    fn is_fresh(&self) -> bool {
        self.missing == 0 && self.scanned == 0
    }
}

/// Why a pass over the buffer stopped before the end of a command.
enum Stop {
    Incomplete,
    Error(ProtocolError),
}

impl From<ProtocolError> for Stop {
    fn from(error: ProtocolError) -> Self {
        Self::Error(error)
    }
}

impl Parser {
    /// Puts the complete commands at the start of `buf` into `batch`, at most `max_commands`.
    ///
    /// Inline commands are unquoted in place, so those bytes of `buf` change; a caller must execute
    /// the commands from `batch` rather than parse the same bytes again. On an error the batch
    /// holds the commands before it. The rest of the input makes no sense then: close.
    ///
    /// # Panics
    ///
    /// If `buf` is larger than a [`Span`] can address, which `client-query-buffer-limit` prevents.
    pub fn parse(
        &mut self,
        buf: &mut [u8],
        limits: &ParserLimits,
        max_commands: usize,
        batch: &mut Batch,
    ) -> Result<(), ProtocolError> {
        assert!(u32::try_from(buf.len()).is_ok(), "a query buffer is smaller than 4 GiB");
        batch.clear();
        let mut start = 0;
        let plain = !limits.unauthenticated
            && limits.max_bulk.min(limits.max_multibulk) >= i64::from(SHORT_HEADER_MAX);
        while start < buf.len() && batch.len() < max_commands {
            if plain && self.pending.is_fresh() {
                let first = batch.spans.len();
                if let Some(end) = whole(buf, start, &mut batch.spans) {
                    batch.push(first, end);
                    start = end;
                    continue;
                }
                batch.spans.truncate(first);
            }
            // Only the first command can have been pending, and all it needs is then in `self`.
            let resumed = std::mem::take(&mut self.pending);
            let first = batch.spans.len();
            let mut pending = Pending { position: start + resumed.position, ..resumed };
            let result = if buf[start] != b'*' {
                inline(buf, start, limits, &mut pending, &mut batch.spans)
            } else if resumed.missing == 0 {
                multibulk(buf, start, limits, &mut pending, &mut batch.spans)
            } else {
                // Appending to the saved words and copying them once, at the end, is what keeps a
                // command of very many words from being copied for each of its fragments.
                let result = bulks(buf, limits, &mut pending, &mut self.spans);
                if result.is_ok() {
                    batch.spans.append(&mut self.spans);
                }
                result
            };
            match result {
                Ok(end) if batch.spans.len() > first => batch.push(first, end),
                Ok(end) => batch.consumed = end, // An empty line or an empty array.
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Incomplete) => {
                    self.pending = Pending { position: pending.position - start, ..pending };
                    let words = batch.spans.drain(first..);
                    self.spans.extend(
                        words.map(|span| Span { start: span.start - start as u32, ..span }),
                    );
                    break;
                }
            }
            start = batch.consumed;
        }
        Ok(())
    }

    /// How many bytes from the start of the pending command the buffer must hold for its current
    /// word, so that the connection can reserve them at once; 0 if not known.
    pub fn wanted(&self) -> usize {
        self.pending.bulk_len.map_or(0, |len| self.pending.position + len as usize + 2)
    }

    /// Memory held for the pending command, its bytes in the read buffer aside.
    pub fn memory_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
    }
}

/// Parses a command that is complete and has short headers only, as nearly all are, and returns
/// where it ends. Whatever else it may be, an error included, is left to the careful way, which
/// looks at it from the start.
#[inline]
fn whole(buf: &[u8], start: usize, spans: &mut Vec<Span>) -> Option<usize> {
    if buf[start] != b'*' {
        return None;
    }
    let (count, header) = short_header(&buf[start..])?;
    let mut at = start + header;
    for _ in 0..count {
        let line = buf.get(at..)?;
        let (len, header) = short_header(line)?;
        if line[0] != b'$' || line.len() < header + len as usize + 2 {
            return None;
        }
        spans.push(Span { start: (at + header) as u32, len });
        at += header + len as usize + 2;
    }
    (count > 0).then_some(at)
}

/// Parses a command that starts with `*`, and returns where it ends.
#[inline]
fn multibulk(
    buf: &[u8],
    start: usize,
    limits: &ParserLimits,
    pending: &mut Pending,
    spans: &mut Vec<Span>,
) -> Result<usize, Stop> {
    let (count, end) = match short_header(&buf[start..]) {
        Some((count, len)) => (Some(i64::from(count)), start + len),
        None => long_header(buf, start, limits, pending, ProtocolError::TooBigMultibulkCount)?,
    };
    let Some(count) = count.filter(|&count| count <= limits.max_multibulk.min(MAX_WORDS)) else {
        return Err(ProtocolError::InvalidMultibulkLength.into());
    };
    if count > MAX_WORDS_UNAUTHENTICATED && limits.unauthenticated {
        return Err(ProtocolError::UnauthenticatedMultibulkLength.into());
    }
    if count <= 0 {
        return Ok(end);
    }
    *pending = Pending { missing: count as u32, position: end, bulk_len: None, scanned: 0 };
    bulks(buf, limits, pending, spans)
}

/// Parses the words that `pending` misses, and returns where the command ends.
#[inline]
fn bulks(
    buf: &[u8],
    limits: &ParserLimits,
    pending: &mut Pending,
    spans: &mut Vec<Span>,
) -> Result<usize, Stop> {
    while pending.missing > 0 {
        let (len, word) = match pending.bulk_len {
            Some(len) => (len, pending.position),
            None => bulk_header(buf, limits, pending)?,
        };
        let end = word + len as usize + 2;
        if end > buf.len() {
            pending.position = word;
            pending.bulk_len = Some(len);
            return Err(Stop::Incomplete);
        }
        spans.push(Span { start: word as u32, len });
        *pending =
            Pending { missing: pending.missing - 1, position: end, bulk_len: None, scanned: 0 };
    }
    Ok(pending.position)
}

/// The length in the `$` line at `pending.position`, and where the word itself starts.
#[inline]
fn bulk_header(
    buf: &[u8],
    limits: &ParserLimits,
    pending: &mut Pending,
) -> Result<(u32, usize), Stop> {
    let start = pending.position;
    let (len, end) = match short_header(&buf[start..]) {
        Some((len, header_len)) => (Some(i64::from(len)), start + header_len),
        None => long_header(buf, start, limits, pending, ProtocolError::TooBigBulkCount)?,
    };
    if buf[start] != b'$' {
        return Err(ProtocolError::ExpectedDollar(buf[start]).into());
    }
    // A span cannot say more than `u32::MAX`, and neither can a read buffer hold it.
    let max_len = limits.max_bulk.min(i64::from(u32::MAX));
    let Some(len) = len.filter(|len| (0..=max_len).contains(len)) else {
        return Err(ProtocolError::InvalidBulkLength.into());
    };
    if len > MAX_BULK_BYTES_UNAUTHENTICATED && limits.unauthenticated {
        return Err(ProtocolError::UnauthenticatedBulkLength.into());
    }
    Ok((len as u32, end))
}

/// The largest number in a header that [`short_header`] reads.
const SHORT_HEADER_MAX: u32 = 999;

/// A header of up to three digits, which nearly all are: its number and the length of its line.
#[inline]
fn short_header(line: &[u8]) -> Option<(u32, usize)> {
    let digit = |byte: u8| u32::from(byte.wrapping_sub(b'0'));
    match *line {
        [_, a, b'\r', _, ..] if digit(a) <= 9 => Some((digit(a), 4)),
        [_, a, b, b'\r', _, ..] if digit(a).wrapping_sub(1) < 9 && digit(b) <= 9 => {
            Some((digit(a) * 10 + digit(b), 5))
        }
        [_, a, b, c, b'\r', _, ..]
            if digit(a).wrapping_sub(1) < 9 && digit(b) <= 9 && digit(c) <= 9 =>
        {
            Some((digit(a) * 100 + digit(b) * 10 + digit(c), 6))
        }
        _ => None,
    }
}

/// A header of any form: its number, unless it is none, and where its line ends.
#[cold]
fn long_header(
    buf: &[u8],
    start: usize,
    limits: &ParserLimits,
    pending: &mut Pending,
    too_big: ProtocolError,
) -> Result<(Option<i64>, usize), Stop> {
    pending.position = start;
    let end = start + line_len(&buf[start..], b'\r', limits.max_inline, too_big, pending)?;
    if end + 1 >= buf.len() {
        return Err(Stop::Incomplete); // The byte after CR, which is taken for LF, is missing.
    }
    Ok((buf[start..end].get(1..).and_then(parse_i64), end + 2))
}

/// The length of `line` up to its first `end`, looking only at bytes not seen before.
fn line_len(
    line: &[u8],
    end: u8,
    max_len: usize,
    too_big: ProtocolError,
    pending: &mut Pending,
) -> Result<usize, Stop> {
    // Independent of how much has arrived: the verdict must not depend on how the input is cut.
    let window = &line[..line.len().min(max_len + 1)];
    let seen = pending.scanned.min(window.len());
    if let Some(found) = memchr::memchr(end, &window[seen..]) {
        // The header may still lack the byte after CR, so CR itself must be found again then.
        pending.scanned = seen + found;
        return Ok(seen + found);
    }
    pending.scanned = window.len();
    if line.len() > max_len { Err(too_big.into()) } else { Err(Stop::Incomplete) }
}

/// Parses an inline command: one line of words in Redis's quoting, unquoted in place.
fn inline(
    buf: &mut [u8],
    start: usize,
    limits: &ParserLimits,
    pending: &mut Pending,
    spans: &mut Vec<Span>,
) -> Result<usize, Stop> {
    let len =
        line_len(&buf[start..], b'\n', limits.max_inline, ProtocolError::TooBigInline, pending)?;
    let line = &mut buf[start..start + len];
    let line = match line {
        [rest @ .., b'\r'] => rest,
        whole => whole,
    };
    let mut read = 0;
    while let Some(word) = next_word(line, &mut read)? {
        spans.push(Span { start: start as u32 + word.start, len: word.len });
    }
    Ok(start + len + 1)
}

/// Unquotes the next word of `line` from offset `read` on, which is moved behind the word. The
/// result is never longer than its source, so it takes its place.
fn next_word(line: &mut [u8], read: &mut usize) -> Result<Option<Span>, ProtocolError> {
    let is_blank = |byte: u8| matches!(byte, b' ' | b'\t'..=b'\r');
    while *read < line.len() && is_blank(line[*read]) {
        *read += 1;
    }
    if *read == line.len() {
        return Ok(None);
    }
    let start = *read;
    let mut write = start;
    let mut quote = None;
    while let Some(&byte) = line.get(*read) {
        let (unquoted, source_len) = match (quote, byte) {
            (None, b' ' | b'\n' | b'\r' | b'\t') => break,
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                *read += 1;
                continue;
            }
            (Some(open), _) if byte == open => {
                // A closing quote ends the word, so a blank or nothing at all must follow.
                *read += 1;
                if line.get(*read).is_some_and(|&next| !is_blank(next)) {
                    return Err(ProtocolError::UnbalancedQuotes);
                }
                quote = None;
                break;
            }
            (Some(b'"'), b'\\') => unescape(&line[*read..]),
            (Some(b'\''), b'\\') if line.get(*read + 1) == Some(&b'\'') => (b'\'', 2),
            _ => (byte, 1),
        };
        line[write] = unquoted;
        write += 1;
        *read += source_len;
    }
    if quote.is_some() {
        return Err(ProtocolError::UnbalancedQuotes);
    }
    Ok(Some(Span { start: start as u32, len: (write - start) as u32 }))
}

/// The byte that a backslash sequence in double quotes stands for, and its length.
fn unescape(text: &[u8]) -> (u8, usize) {
    let hex = |byte: u8| char::from(byte).to_digit(16);
    match *text {
        [_, b'x', high, low, ..] if let (Some(high), Some(low)) = (hex(high), hex(low)) => {
            ((high * 16 + low) as u8, 4)
        }
        [_, b'n', ..] => (b'\n', 2),
        [_, b'r', ..] => (b'\r', 2),
        [_, b't', ..] => (b'\t', 2),
        [_, b'b', ..] => (0x08, 2),
        [_, b'a', ..] => (0x07, 2),
        [_, other, ..] => (other, 2),
        _ => (b'\\', 1), // Nothing follows: the quote is open, which the caller reports.
    }
}
