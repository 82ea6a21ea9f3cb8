//! The reply encoder: one method per kind of reply, in the client's protocol, straight into its
//! [`ReplyBuf`].
//!
//! RESP3 has types that RESP2 lacks. To a RESP2 client they become, as in Redis: a map a flat
//! array, a set or push an array, a double, big number or verbatim string a bulk string, a boolean
//! the integer 1 or 0, and null the bulk string or array of length -1.
//!
//! An aggregate whose size is known only afterwards is *deferred*: its header is put in front of
//! the elements once they are counted.

use std::sync::Arc;

use kiln_base::number::{DOUBLE_BYTES_MAX, format_f64};

use crate::{Mark, ReplyBuf};

/// From this length on, sharing a value is cheaper than copying it: `writev` costs two slices more.
const SHARED_BYTES_MIN: usize = 16 * 1024;
/// The longest header or integer: a type, a sign, 20 digits, CR LF; rounded up.
const HEADER_BYTES_MAX: usize = 32;

/// The version of the protocol that a client speaks, as it said in HELLO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2, the default.
    #[default]
    Resp2,
    /// RESP3.
    Resp3,
}

impl Protocol {
    #[inline]
    fn either<T>(self, resp2: T, resp3: T) -> T {
        match self {
            Self::Resp2 => resp2,
            Self::Resp3 => resp3,
        }
    }
}

/// Writes replies for one client.
#[derive(Debug)]
pub struct ReplyWriter<'b> {
    buf: &'b mut ReplyBuf,
    protocol: Protocol,
}

/// Where the header of an aggregate will go. Deferred aggregates nest: finish the inner one first.
#[derive(Debug)]
#[must_use = "the elements make no sense without their header"]
pub struct Deferred(Mark);

impl<'b> ReplyWriter<'b> {
    /// A writer into `buf` for a client that speaks `protocol`.
    #[inline]
    pub fn new(buf: &'b mut ReplyBuf, protocol: Protocol) -> Self {
        Self { buf, protocol }
    }

    /// The same writer for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> ReplyWriter<'_> {
        ReplyWriter { buf: self.buf, protocol: self.protocol }
    }

    /// The client's protocol.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Writes in `protocol` from now on: HELLO's own reply is already in the new one.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.buf.push(b"+OK\r\n");
    }

    /// A simple string. Line ends in it become spaces.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error. `text` starts with its code (`ERR`, `WRONGTYPE`); line ends in it become spaces,
    /// those at its end nothing.
    ///
    /// Each character below U+0100 is sent as the one byte it stands for, so that a text can
    /// repeat any bytes of a client's words.
    pub fn error(&mut self, text: &str) {
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_ascii() {
            return self.line(b'-', text.as_bytes());
        }
        let bytes: Vec<_> = text.chars().map(|char| u8::try_from(char).unwrap_or(b'?')).collect();
        self.line(b'-', &bytes);
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        push_number(&mut self.buf.bytes, b':', number);
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        let out = &mut self.buf.bytes;
        out.reserve(bytes.len() + HEADER_BYTES_MAX);
        push_number(out, b'$', bytes.len() as i64);
        out.extend_from_slice(bytes);
        out.extend_from_slice(b"\r\n");
    }

    /// A bulk string that is sent without being copied, if it is long enough to make that pay.
    pub fn bulk_shared(&mut self, value: &Arc<Vec<u8>>) {
        if value.len() < SHARED_BYTES_MIN {
            return self.bulk(value);
        }
        push_number(&mut self.buf.bytes, b'$', value.len() as i64);
        self.buf.push_shared(value);
        self.buf.push(b"\r\n");
    }

    /// A bulk string of `number`'s decimal digits.
    #[inline]
    pub fn bulk_integer(&mut self, number: i64) {
        self.bulk(itoa::Buffer::new().format(number).as_bytes());
    }

    /// A bulk string of `number` as [`format_f64`] prints it, in either protocol.
    pub fn bulk_double(&mut self, number: f64) {
        self.bulk(format_f64(number, &mut [0; DOUBLE_BYTES_MAX]));
    }

    /// No value.
    #[inline]
    pub fn null(&mut self) {
        self.buf.push(self.protocol.either(b"$-1\r\n", b"_\r\n"));
    }

    /// No array.
    #[inline]
    pub fn null_array(&mut self) {
        self.buf.push(self.protocol.either(b"*-1\r\n", b"_\r\n"));
    }

    /// An array without elements.
    #[inline]
    pub fn empty_array(&mut self) {
        self.buf.push(b"*0\r\n");
    }

    /// The header of an array; its `count` elements follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        push_number(&mut self.buf.bytes, b'*', count as i64);
    }

    /// The header of a map; `pairs` keys, each with its value, follow.
    #[inline]
    pub fn map(&mut self, pairs: usize) {
        let (kind, count) = self.protocol.either((b'*', pairs * 2), (b'%', pairs));
        push_number(&mut self.buf.bytes, kind, count as i64);
    }

    /// The header of a set; its `count` members follow.
    #[inline]
    pub fn set(&mut self, count: usize) {
        push_number(&mut self.buf.bytes, self.protocol.either(b'*', b'~'), count as i64);
    }

    /// The header of a message that answers no command; its `count` elements follow.
    #[inline]
    pub fn push(&mut self, count: usize) {
        push_number(&mut self.buf.bytes, self.protocol.either(b'*', b'>'), count as i64);
    }

    /// A double, printed by [`format_f64`].
    pub fn double(&mut self, number: f64) {
        self.double_text(format_f64(number, &mut [0; DOUBLE_BYTES_MAX]));
    }

    /// A double whose text is made elsewhere: a coordinate, or the sum of `INCRBYFLOAT`.
    pub fn double_text(&mut self, text: &[u8]) {
        self.text(b',', text);
    }

    /// A boolean.
    #[inline]
    pub fn boolean(&mut self, value: bool) {
        self.buf.push(match (self.protocol, value) {
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
        });
    }

    /// An integer of any size, as its decimal digits.
    pub fn big_number(&mut self, digits: &str) {
        self.text(b'(', digits.as_bytes());
    }

    /// A text to be shown as it is; `format` is three characters, `txt` or `mkd`.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        debug_assert_eq!(format.len(), 3, "the format of a verbatim string");
        if self.protocol == Protocol::Resp2 {
            return self.bulk(text);
        }
        let out = &mut self.buf.bytes;
        out.reserve(text.len() + HEADER_BYTES_MAX);
        push_number(out, b'=', (format.len() + 1 + text.len()) as i64);
        out.extend_from_slice(format.as_bytes());
        out.push(b':');
        out.extend_from_slice(text);
        out.extend_from_slice(b"\r\n");
    }

    /// Bytes that are in the client's protocol already.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buf.push(bytes);
    }

    /// Starts an aggregate whose elements are yet to be counted.
    pub fn deferred(&mut self) -> Deferred {
        Deferred(self.buf.mark())
    }

    /// Makes what was written since `deferred` an array of `count` elements.
    pub fn finish_array(&mut self, deferred: Deferred, count: usize) {
        self.finish(deferred, b'*', count);
    }

    /// Makes what was written since `deferred` a set of `count` members.
    pub fn finish_set(&mut self, deferred: Deferred, count: usize) {
        self.finish(deferred, self.protocol.either(b'*', b'~'), count);
    }

    /// Makes what was written since `deferred` a map of `pairs` keys and values.
    pub fn finish_map(&mut self, deferred: Deferred, pairs: usize) {
        let (kind, count) = self.protocol.either((b'*', pairs * 2), (b'%', pairs));
        self.finish(deferred, kind, count);
    }

    /// The current end of the output.
    #[inline]
    pub fn mark(&self) -> Mark {
        self.buf.mark()
    }

    /// Drops what was written after `mark`: a failed command's half of a reply.
    pub fn rollback(&mut self, mark: Mark) {
        self.buf.truncate_to(mark);
    }

    #[expect(clippy::needless_pass_by_value, reason = "a deferred aggregate is finished once")]
    fn finish(&mut self, deferred: Deferred, kind: u8, count: usize) {
        let mut header = Vec::with_capacity(HEADER_BYTES_MAX);
        push_number(&mut header, kind, count as i64);
        self.buf.insert(deferred.0, &header);
    }

    /// A short text of type `kind`, which is a bulk string to a RESP2 client.
    fn text(&mut self, kind: u8, text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => self.line(kind, text),
        }
    }

    /// A line of type `kind`, kept to one line.
    fn line(&mut self, kind: u8, text: &[u8]) {
        let out = &mut self.buf.bytes;
        out.reserve(text.len() + HEADER_BYTES_MAX);
        out.push(kind);
        let flat = |&byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
        out.extend(text.iter().map(flat));
        out.extend_from_slice(b"\r\n");
    }
}

/// A line of a type and a number: the header of a string or aggregate, or an integer.
#[inline]
fn push_number(out: &mut Vec<u8>, kind: u8, number: i64) {
    // Nearly all headers are this short, and an array of known size is one store.
    match number {
        0..=9 => out.extend_from_slice(&[kind, b'0' + number as u8, b'\r', b'\n']),
        10..=99 => {
            let (tens, ones) = (number as u8 / 10, number as u8 % 10);
            out.extend_from_slice(&[kind, b'0' + tens, b'0' + ones, b'\r', b'\n']);
        }
        _ => {
            out.reserve(HEADER_BYTES_MAX);
            out.push(kind);
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Protocol, ReplyWriter, SHARED_BYTES_MIN};
    use crate::ReplyBuf;

    /// What `write` writes to a RESP2 and to a RESP3 client.
    #[track_caller]
    fn check(write: impl Fn(&mut ReplyWriter<'_>), resp2: &str, resp3: &str) {
        for (protocol, want) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
            let mut buf = ReplyBuf::default();
            buf.push(b"before,");
            write(&mut ReplyWriter::new(&mut buf, protocol));
            let got: Vec<&[u8]> = buf.chunks().collect();
            assert_eq!(got.concat().escape_ascii().to_string(), format!("before,{want}"));
        }
    }

    #[track_caller]
    fn check_same(write: impl Fn(&mut ReplyWriter<'_>), want: &str) {
        check(write, want, want);
    }

    #[test]
    #[expect(clippy::redundant_closure_for_method_calls, reason = "rows of one form")]
    fn what_both_protocols_share() {
        check_same(|w| w.ok(), r"+OK\r\n");
        check_same(|w| w.simple("PONG"), r"+PONG\r\n");
        check_same(|w| w.error("ERR a\r\nb"), r"-ERR a  b\r\n");
        check_same(|w| w.bulk(b""), r"$0\r\n\r\n");
        check_same(|w| w.bulk(b"hello worl"), r"$10\r\nhello worl\r\n");
        check_same(|w| w.bulk_integer(-12), r"$3\r\n-12\r\n");
        check_same(|w| w.bulk_double(1.5), r"$3\r\n1.5\r\n");
        check_same(|w| w.empty_array(), r"*0\r\n");
        check_same(|w| w.raw(b":7\r\n"), r":7\r\n");
        for number in [0, 9, 10, 99, 100, -1, i64::MAX, i64::MIN] {
            check_same(|w| w.integer(number), &format!(r":{number}\r\n"));
            check_same(|w| w.array(number as usize), &format!(r"*{number}\r\n"));
        }
    }

    #[test]
    #[expect(clippy::redundant_closure_for_method_calls, reason = "rows of one form")]
    fn what_only_resp3_has() {
        check(|w| w.null(), r"$-1\r\n", r"_\r\n");
        check(|w| w.null_array(), r"*-1\r\n", r"_\r\n");
        check(|w| w.map(6), r"*12\r\n", r"%6\r\n");
        check(|w| w.set(3), r"*3\r\n", r"~3\r\n");
        check(|w| w.push(2), r"*2\r\n", r">2\r\n");
        check(|w| w.double(0.1), r"$3\r\n0.1\r\n", r",0.1\r\n");
        check(|w| w.double(f64::NEG_INFINITY), r"$4\r\n-inf\r\n", r",-inf\r\n");
        check(|w| w.boolean(true), r":1\r\n", r"#t\r\n");
        check(|w| w.boolean(false), r":0\r\n", r"#f\r\n");
        check(|w| w.big_number("-123"), r"$4\r\n-123\r\n", r"(-123\r\n");
        check(|w| w.verbatim("txt", b"a\n"), r"$2\r\na\n\r\n", r"=6\r\ntxt:a\n\r\n");
    }

    #[test]
    fn deferred_aggregates_nest() {
        let nested = |w: &mut ReplyWriter<'_>| {
            let outer = w.deferred();
            w.integer(1);
            let (set, map) = (w.deferred(), w.deferred());
            w.finish_map(map, 0);
            w.finish_set(set, 1);
            w.finish_array(outer, 2);
        };
        check(nested, r"*2\r\n:1\r\n*1\r\n*0\r\n", r"*2\r\n:1\r\n~1\r\n%0\r\n");
    }

    #[test]
    fn shared_values_keep_their_place() {
        let value = Arc::new(vec![b'v'; SHARED_BYTES_MIN]);
        let mut buf = ReplyBuf::default();
        let mut writer = ReplyWriter::new(&mut buf, Protocol::Resp2);
        let deferred = writer.deferred();
        writer.bulk_shared(&value);
        let mark = writer.mark();
        writer.bulk_shared(&value);
        writer.rollback(mark);
        writer.finish_array(deferred, 1);
        assert_eq!(Arc::strong_count(&value), 2);
        let chunks: Vec<&[u8]> = buf.chunks().collect();
        assert_eq!(chunks, [b"*1\r\n$16384\r\n", value.as_slice(), b"\r\n"]);
    }

    #[test]
    fn a_short_shared_value_is_copied() {
        let value = Arc::new(b"v".to_vec());
        check_same(|w| w.bulk_shared(&value), r"$1\r\nv\r\n");
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
