//! The listpack: a sequence of strings and integers in one allocation, in Redis's byte format.
//!
//! ```text
//! | all bytes u32 | entries u16 | entry | entry | ... | 0xFF |        little-endian
//!
//! entry = | head | body | length of head and body, readable from the right |
//!
//! head 0xxxxxxx            0 to 127          1110xxxx + 1 byte   string, 12-bit length
//!      10xxxxxx            string, 6-bit     11110000 + 4 bytes  string, 32-bit length
//!      110xxxxx + 1 byte   13-bit integer    11110001 to 11110100   16, 24, 32, 64-bit integer
//! ```
//!
//! Small lists, sets, hashes and sorted sets live in one, and RDB files, DUMP and full syncs carry
//! its bytes as they are. So the format is fixed down to two oddities: the trailing length takes
//! a byte more than needed at 16,383, 2,097,151 and 268,435,455, and an entry count of 0xFFFF means
//! "unknown, count them".
//!
//! Invariants: the bytes always are a valid listpack (the checks of [`Listpack::from_untrusted`]),
//! so that reading needs no error path. Text that is the canonical form of an `i64` is stored as an
//! integer. A [`Pos`] is where an entry begins, or the end; an edit before it invalidates it.
//!
//! Callers keep a listpack below [`BYTES_MAX`] by converting to another encoding first; their
//! thresholds are far lower.
//!
//! Source: Redis's description of the format in `listpack.c`; bytes compared with Redis 8.2.3's
//! DUMP in the tests.

use std::iter::FusedIterator;

use kiln_base::number::{INTEGER_BYTES_MAX, format_i64, parse_i64};

use crate::thin_buf::{Gap, ThinBuf};

/// A whole listpack stays below this, as in Redis.
pub const BYTES_MAX: usize = 1 << 30;

/// Bytes of a listpack without entries.
pub const EMPTY_BYTES: usize = HEADER_BYTES + 1;

const HEADER_BYTES: usize = 6;
const COUNT_UNKNOWN: u16 = u16::MAX;
const END: u8 = 0xFF;

/// A sequence of strings and integers, owned through one pointer. See the module's header.
#[derive(Clone)]
pub struct Listpack {
    buf: ThinBuf,
}

/// Where an entry of a listpack begins; [`Listpack::end`] is the position after the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos(u32);

/// An entry as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Text that is no canonical integer (in a listpack from elsewhere it may be one).
    Bytes(&'a [u8]),
    /// Text that is the canonical form of this integer.
    Int(i64),
}

/// Text to search for, parsed once.
#[derive(Debug, Clone, Copy)]
pub struct Needle<'a> {
    text: &'a [u8],
    int: Option<i64>,
}

/// Why bytes from elsewhere are no listpack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListpackError {
    /// The length in the header is not the number of bytes, or is out of range, or the end marker
    /// is missing.
    BadFrame,
    /// An entry has an unknown head, passes the end, or its trailing length is wrong.
    BadEntry,
    /// The header's count is not the number of entries.
    BadCount,
}

impl std::fmt::Display for ListpackError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ListpackError::BadFrame => "the listpack's frame does not match its length",
            ListpackError::BadEntry => "the listpack has a malformed entry",
            ListpackError::BadCount => "the listpack's count does not match its entries",
        })
    }
}

impl std::error::Error for ListpackError {}

impl<'a> Value<'a> {
    /// The value that `text` is stored as.
    #[inline]
    pub fn from_text(text: &'a [u8]) -> Value<'a> {
        parse_i64(text).map_or(Value::Bytes(text), Value::Int)
    }

    /// The text, printed into `scratch` if it is stored as an integer.
    #[inline]
    pub fn text<'b>(&self, scratch: &'b mut [u8; INTEGER_BYTES_MAX]) -> &'b [u8]
    where
        'a: 'b,
    {
        match *self {
            Value::Bytes(text) => text,
            Value::Int(number) => format_i64(number, scratch),
        }
    }

    /// The text as a vector of its own.
    pub fn to_vec(&self) -> Vec<u8> {
        self.text(&mut [0; INTEGER_BYTES_MAX]).to_vec()
    }

    /// Length of the text.
    pub fn text_len(&self) -> usize {
        self.text(&mut [0; INTEGER_BYTES_MAX]).len()
    }

    /// The integer that the text is the canonical form of.
    pub fn as_int(&self) -> Option<i64> {
        match *self {
            Value::Bytes(text) => parse_i64(text),
            Value::Int(number) => Some(number),
        }
    }

    /// Whether the text is `needle`'s.
    #[inline]
    pub fn is(&self, needle: &Needle<'_>) -> bool {
        match *self {
            Value::Bytes(text) => text == needle.text,
            Value::Int(number) => needle.int == Some(number),
        }
    }
}

impl<'a> Needle<'a> {
    /// Makes `text` ready to be compared with many entries.
    #[inline]
    pub fn new(text: &'a [u8]) -> Needle<'a> {
        Needle { text, int: parse_i64(text) }
    }
}

impl Default for Listpack {
    fn default() -> Listpack {
        Listpack::new()
    }
}

impl std::fmt::Debug for Listpack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|(_, value)| value)).finish()
    }
}

impl PartialEq for Listpack {
    fn eq(&self, other: &Listpack) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Listpack {}

impl Listpack {
    /// Starts loading the first bytes.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.buf.prefetch();
    }

    /// An empty listpack.
    pub fn new() -> Listpack {
        Listpack { buf: ThinBuf::empty_listpack() }
    }

    /// A copy of `bytes` after checking all of them: any input is either refused or safe to use.
    /// Duplicates, odd counts and the like are for the caller to check.
    pub fn from_untrusted(bytes: &[u8]) -> Result<Listpack, ListpackError> {
        let [a, b, c, d, count_low, count_high, entries @ .., END] = bytes else {
            return Err(ListpackError::BadFrame);
        };
        let stated_len = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        if stated_len != bytes.len() || stated_len >= BYTES_MAX {
            return Err(ListpackError::BadFrame);
        }
        let stated_count = u16::from_le_bytes([*count_low, *count_high]);
        let (mut rest, mut count) = (entries, 0_usize);
        while !rest.is_empty() {
            let (_, len) = decode(rest).ok_or(ListpackError::BadEntry)?;
            let backlen = Backlen::new(len);
            rest = rest[len..].strip_prefix(backlen.bytes()).ok_or(ListpackError::BadEntry)?;
            count += 1;
        }
        if stated_count != COUNT_UNKNOWN && usize::from(stated_count) != count {
            return Err(ListpackError::BadCount);
        }
        Ok(Listpack { buf: ThinBuf::new(&[&bytes[4..]]) })
    }

    /// The bytes that RDB, DUMP and replication carry.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.buf.as_slice()
    }

    /// Number of bytes of [`Listpack::as_bytes`].
    #[inline]
    pub fn bytes(&self) -> usize {
        self.buf.len()
    }

    /// Bytes of the allocation.
    pub fn memory_bytes(&self) -> usize {
        self.buf.memory_bytes()
    }

    /// Number of entries: O(1) below 65,535, else they are counted.
    pub fn len(&self) -> usize {
        match self.stated_count() {
            COUNT_UNKNOWN => self.iter().count(),
            count => usize::from(count),
        }
    }

    /// Whether there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes() == EMPTY_BYTES
    }

    /// Bytes that an entry of `text` takes.
    pub fn entry_bytes(text: &[u8]) -> usize {
        let entry = Encoded::new(Value::from_text(text));
        entry.size()
    }

    /// Position of the first entry; the end if there is none.
    #[inline]
    pub fn first(&self) -> Pos {
        Pos(HEADER_BYTES as u32)
    }

    /// Position after the last entry: there [`Listpack::insert_before`] appends.
    #[inline]
    pub fn end(&self) -> Pos {
        Pos((self.bytes() - 1) as u32)
    }

    /// Position of the last entry.
    pub fn last(&self) -> Option<Pos> {
        self.before(self.end())
    }

    /// Position of the entry after the one at `pos`; the end after the last.
    #[inline]
    pub fn after(&self, pos: Pos) -> Pos {
        Pos(after(self.as_bytes(), pos.0 as usize) as u32)
    }

    /// Position of the entry before `pos`, which may be the end.
    pub fn before(&self, pos: Pos) -> Option<Pos> {
        (pos > self.first()).then(|| Pos(before(self.as_bytes(), pos.0 as usize) as u32))
    }

    /// The entry at `pos`; `None` at the end.
    #[inline]
    pub fn value(&self, pos: Pos) -> Option<Value<'_>> {
        decode(&self.as_bytes()[pos.0 as usize..]).map(|(value, _)| value)
    }

    /// Position of the entry at `index`, counted from the last entry (-1) if negative. Walks from
    /// the nearer end.
    pub fn pos_at(&self, index: i64) -> Option<Pos> {
        let count = self.stated_count();
        let from_end = match index {
            ..0 => true,
            // Counting to find the nearer end would be a walk by itself.
            _ if count == COUNT_UNKNOWN => false,
            _ => index > i64::from(count) / 2,
        };
        if !from_end {
            return self.iter().nth(usize::try_from(index).ok()?).map(|(pos, _)| pos);
        }
        // 0 is the last entry, 1 the one before it.
        let distance = if index < 0 { -(index + 1) } else { i64::from(count) - 1 - index };
        self.iter().rev().nth(usize::try_from(distance).ok()?).map(|(pos, _)| pos)
    }

    /// The entry at `index`, counted from the last entry (-1) if negative.
    pub fn get(&self, index: i64) -> Option<Value<'_>> {
        self.pos_at(index).and_then(|pos| self.value(pos))
    }

    /// All entries with their positions, from either end.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        self.iter_between(self.first(), self.end())
    }

    /// The entries from `pos` to the last.
    pub fn iter_from(&self, pos: Pos) -> Iter<'_> {
        self.iter_between(pos, self.end())
    }

    /// The entries from `from` up to but without `to`.
    #[inline]
    pub fn iter_between(&self, from: Pos, to: Pos) -> Iter<'_> {
        Iter { bytes: self.as_bytes(), from: from.0 as usize, to: to.0 as usize }
    }

    /// The first entry equal to `needle`, looking at every entry (`skip` 0) or only at each first
    /// of `skip + 1` (so 1 looks at the keys of pairs).
    pub fn find(&self, needle: &Needle<'_>, skip: usize) -> Option<Pos> {
        self.find_from(self.first(), needle, skip)
    }

    /// As [`Listpack::find`], from the entry at `pos` on.
    pub fn find_from(&self, pos: Pos, needle: &Needle<'_>, skip: usize) -> Option<Pos> {
        let bytes = self.as_bytes();
        let mut at = pos.0 as usize;
        while let Some((value, len)) = decode(&bytes[at..]) {
            if value.is(needle) {
                return Some(Pos(at as u32));
            }
            at += len + Backlen::size(len);
            for _ in 0..skip {
                at = after(bytes, at);
            }
        }
        None
    }

    /// Appends `text`.
    pub fn push_back(&mut self, text: &[u8]) {
        self.push_back_value(Value::from_text(text));
    }

    /// Appends an entry of this or another listpack.
    pub fn push_back_value(&mut self, value: Value<'_>) {
        self.insert_entries(self.bytes() - 1, &[Encoded::new(value)]);
    }

    /// Appends two texts, as [`Listpack::push_back`] would one after another, in one step.
    pub fn push_back_pair(&mut self, first: &[u8], second: &[u8]) {
        let entries = [first, second].map(|text| Encoded::new(Value::from_text(text)));
        self.insert_entries(self.bytes() - 1, &entries);
    }

    /// Prepends `text`.
    pub fn push_front(&mut self, text: &[u8]) {
        self.insert_before(self.first(), text);
    }

    /// Inserts `text` before the entry at `pos` (at the end: appends). `pos` then is the new
    /// entry's.
    pub fn insert_before(&mut self, pos: Pos, text: &[u8]) {
        self.insert_entries(pos.0 as usize, &[Encoded::new(Value::from_text(text))]);
    }

    /// Inserts `text` after the entry at `pos` and returns the new entry's position.
    pub fn insert_after(&mut self, pos: Pos, text: &[u8]) -> Pos {
        let next = self.after(pos);
        self.insert_before(next, text);
        next
    }

    /// Replaces the entry at `pos` by `text`. `pos` stays this entry's.
    pub fn replace(&mut self, pos: Pos, text: &[u8]) {
        let end = self.after(pos);
        self.splice_entry(pos.0 as usize..end.0 as usize, text);
    }

    /// Removes the entry at `pos`. `pos` then is the position of the next entry, or the end.
    pub fn remove(&mut self, pos: Pos) {
        self.remove_run(pos, 1);
    }

    /// Removes up to `count` entries, beginning with the one at `pos`, and returns how many there
    /// were. `pos` then is the position of the next entry, or the end.
    pub fn remove_run(&mut self, pos: Pos, count: usize) -> usize {
        let from = pos.0 as usize;
        let end = self.bytes() - 1;
        let (mut to, mut removed) = (from, 0);
        while removed < count && to < end {
            to = after(self.as_bytes(), to);
            removed += 1;
        }
        self.buf.splice(from..to, &[]);
        self.count_changed(-(removed as i64));
        removed
    }

    /// Removes up to `count` entries from the one at `index` on (from the end if negative) and
    /// returns how many there were.
    pub fn remove_range(&mut self, index: i64, count: usize) -> usize {
        self.pos_at(index).map_or(0, |pos| self.remove_run(pos, count))
    }

    /// Keeps the entries for which `keep` says so and returns how many went. One pass.
    pub fn retain(&mut self, mut keep: impl FnMut(Value<'_>) -> bool) -> usize {
        let end = self.bytes() - 1;
        let (mut read, mut write, mut removed) = (HEADER_BYTES, HEADER_BYTES, 0);
        // The payload begins after the length, which is out of reach of the writes below.
        let shift = HEADER_BYTES - 2;
        while let Some((value, len)) = decode(&self.as_bytes()[read..]) {
            let keep = keep(value);
            let next = read + len + Backlen::size(len);
            if keep {
                if write < read {
                    self.buf.payload_mut().copy_within(read - shift..next - shift, write - shift);
                }
                write += next - read;
            } else {
                removed += 1;
            }
            read = next;
        }
        self.buf.splice(write..end, &[]);
        self.count_changed(-removed);
        removed as usize
    }

    /// Appends all entries of `other`.
    pub fn append(&mut self, other: &Listpack) {
        let count = other.len();
        let end = self.bytes() - 1;
        let entries = &other.as_bytes()[HEADER_BYTES..other.bytes() - 1];
        self.buf.splice(end..end, &[entries]);
        self.count_changed(count as i64);
    }

    /// Splits off the entries from `pos` on, which number `count`.
    #[must_use = "the entries split off are in it alone"]
    pub fn split_off(&mut self, pos: Pos, count: usize) -> Listpack {
        let (from, end) = (pos.0 as usize, self.bytes() - 1);
        let stated = u16::try_from(count).unwrap_or(COUNT_UNKNOWN);
        let entries = &self.as_bytes()[from..=end];
        let right = Listpack { buf: ThinBuf::new(&[&stated.to_le_bytes(), entries]) };
        debug_assert_eq!(right.iter().count(), count);
        self.buf.splice(from..end, &[]);
        self.count_changed(-(count as i64));
        right
    }

    #[inline]
    fn insert_entries(&mut self, at: usize, entries: &[Encoded<'_>]) {
        let added = entries.iter().map(Encoded::size).sum();
        self.buf.insert(at, added, |gap| entries.iter().for_each(|entry| entry.write(gap)));
        debug_assert!(self.bytes() < BYTES_MAX);
        self.count_changed(entries.len() as i64);
    }

    fn splice_entry(&mut self, range: std::ops::Range<usize>, text: &[u8]) {
        let entry = Encoded::new(Value::from_text(text));
        self.buf.splice(range, &[entry.head(), entry.body, entry.backlen.bytes()]);
        debug_assert!(self.bytes() < BYTES_MAX);
    }

    #[inline]
    fn stated_count(&self) -> u16 {
        let bytes = self.as_bytes();
        u16::from_le_bytes([bytes[4], bytes[5]])
    }

    /// Adjusts the header's count. Once unknown it stays so, as in Redis.
    fn count_changed(&mut self, delta: i64) {
        let count = self.stated_count();
        if delta != 0 && count != COUNT_UNKNOWN {
            let count = u16::try_from(i64::from(count) + delta).unwrap_or(COUNT_UNKNOWN);
            self.buf.payload_mut()[..2].copy_from_slice(&count.to_le_bytes());
        }
    }
}

impl<'a> IntoIterator for &'a Listpack {
    type Item = (Pos, Value<'a>);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Entries of a listpack with their positions, from either end.
#[derive(Clone)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    from: usize,
    to: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (Pos, Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<(Pos, Value<'a>)> {
        if self.from >= self.to {
            return None;
        }
        let (value, len) = decode(&self.bytes[self.from..])?;
        let pos = Pos(self.from as u32);
        self.from += len + Backlen::size(len);
        Some((pos, value))
    }
}

impl<'a> DoubleEndedIterator for Iter<'a> {
    #[inline]
    fn next_back(&mut self) -> Option<(Pos, Value<'a>)> {
        if self.from >= self.to {
            return None;
        }
        self.to = before(self.bytes, self.to);
        let (value, _) = decode(&self.bytes[self.to..])?;
        Some((Pos(self.to as u32), value))
    }
}

impl FusedIterator for Iter<'_> {}

/// An entry about to be written.
struct Encoded<'a> {
    head: [u8; 9],
    head_len: usize,
    body: &'a [u8],
    backlen: Backlen,
}

impl<'a> Encoded<'a> {
    #[inline]
    fn new(value: Value<'a>) -> Encoded<'a> {
        let mut head = [0; 9];
        let (head_len, body) = match value {
            Value::Int(number) => (encode_int(number, &mut head), &[][..]),
            Value::Bytes(text) => {
                let len = text.len();
                let head_len = match len {
                    0..=63 => {
                        head[0] = 0x80 | len as u8;
                        1
                    }
                    64..=4_095 => {
                        head[..2].copy_from_slice(&(0xE000 | len as u16).to_be_bytes());
                        2
                    }
                    _ => {
                        head[0] = 0xF0;
                        head[1..5].copy_from_slice(&(len as u32).to_le_bytes());
                        5
                    }
                };
                (head_len, text)
            }
        };
        Encoded { head, head_len, body, backlen: Backlen::new(head_len + body.len()) }
    }

    fn head(&self) -> &[u8] {
        &self.head[..self.head_len]
    }

    fn len(&self) -> usize {
        self.head_len + self.body.len()
    }

    /// Bytes of the entry, its trailing length included.
    #[inline]
    fn size(&self) -> usize {
        self.len() + self.backlen.size
    }

    #[inline]
    fn write(&self, gap: &mut Gap<'_>) {
        gap.put_few(self.head());
        gap.put(self.body);
        gap.put_few(self.backlen.bytes());
    }
}

/// Writes `number` in its shortest form and returns the form's length.
#[inline]
fn encode_int(number: i64, head: &mut [u8; 9]) -> usize {
    let wide = number.to_le_bytes();
    let (opcode, width) = match number {
        0..=127 => {
            head[0] = number as u8;
            return 1;
        }
        -4_096..=4_095 => {
            let bits = 0xC000 | (number as u16 & 0x1FFF);
            head[..2].copy_from_slice(&bits.to_be_bytes());
            return 2;
        }
        -0x8000..=0x7FFF => (0xF1, 2),
        -0x80_0000..=0x7F_FFFF => (0xF2, 3),
        -0x8000_0000..=0x7FFF_FFFF => (0xF3, 4),
        _ => (0xF4, 8),
    };
    head[0] = opcode;
    head[1..=width].copy_from_slice(&wide[..width]);
    1 + width
}

/// Reads the entry at the start of `tail`: its value, and the length of head and body. `None` at
/// the end marker, and for what is no entry.
#[inline]
fn decode(tail: &[u8]) -> Option<(Value<'_>, usize)> {
    let (&first, rest) = tail.split_first()?;
    Some(match first {
        0x00..=0x7F => (Value::Int(i64::from(first)), 1),
        0x80..=0xBF => {
            let len = usize::from(first & 0x3F);
            (Value::Bytes(rest.get(..len)?), 1 + len)
        }
        0xC0..=0xDF => {
            let bits = u16::from_be_bytes([first, *rest.first()?]);
            // The shifts drop the head's three bits and carry the sign down.
            (Value::Int(i64::from((bits << 3) as i16 >> 3)), 2)
        }
        0xE0..=0xEF => {
            let len = usize::from(u16::from_be_bytes([first & 0x0F, *rest.first()?]));
            (Value::Bytes(rest.get(1..1 + len)?), 2 + len)
        }
        0xF0 => {
            let len = u32::from_le_bytes(*rest.first_chunk()?) as usize;
            (Value::Bytes(rest.get(4..4 + len)?), 5 + len)
        }
        0xF1 => (Value::Int(i64::from(i16::from_le_bytes(*rest.first_chunk()?))), 3),
        0xF2 => {
            let [a, b, c] = *rest.first_chunk()?;
            (Value::Int(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8)), 4)
        }
        0xF3 => (Value::Int(i64::from(i32::from_le_bytes(*rest.first_chunk()?))), 5),
        0xF4 => (Value::Int(i64::from_le_bytes(*rest.first_chunk()?)), 9),
        0xF5..=END => return None,
    })
}

/// Where the entry after the one at `at` begins; `at` itself at the end marker.
#[inline]
fn after(bytes: &[u8], at: usize) -> usize {
    let len = match bytes[at] {
        0x00..=0x7F => 1,
        first @ 0x80..=0xBF => 1 + usize::from(first & 0x3F),
        0xC0..=0xDF => 2,
        first @ 0xE0..=0xEF => 2 + usize::from(u16::from_be_bytes([first & 0x0F, bytes[at + 1]])),
        0xF0 => match bytes[at + 1..] {
            [a, b, c, d, ..] => 5 + u32::from_le_bytes([a, b, c, d]) as usize,
            _ => unreachable!("a long string has its length"),
        },
        0xF1 => 3,
        0xF2 => 4,
        0xF3 => 5,
        0xF4 => 9,
        0xF5..=END => return at,
    };
    at + len + Backlen::size(len)
}

/// Where the entry that ends at `at` begins. There must be one.
#[inline]
fn before(bytes: &[u8], at: usize) -> usize {
    let (mut len, mut size) = (0, 0);
    loop {
        let byte = bytes[at - 1 - size];
        len |= usize::from(byte & 0x7F) << (7 * size);
        size += 1;
        if byte & 0x80 == 0 {
            return at - size - len;
        }
    }
}

/// The trailing length of an entry: seven bits a byte, most significant first, and all but the
/// first byte with the high bit set, so that a reader from the right knows where to stop.
struct Backlen {
    bytes: [u8; 5],
    size: usize,
}

impl Backlen {
    #[inline]
    fn new(len: usize) -> Backlen {
        let size = Backlen::size(len);
        let mut bytes = [0; 5];
        for (at, byte) in bytes[..size].iter_mut().enumerate() {
            let more = if at == 0 { 0 } else { 0x80 };
            *byte = (len >> (7 * (size - 1 - at))) as u8 & 0x7F | more;
        }
        Backlen { bytes, size }
    }

    /// Bytes that the length takes. The largest value of two, three and four bytes takes one more.
    #[inline]
    fn size(len: usize) -> usize {
        match len {
            0..=127 => 1,
            128..=16_382 => 2,
            16_383..=2_097_150 => 3,
            2_097_151..=268_435_454 => 4,
            _ => 5,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
}

#[cfg(test)]
mod tests;
