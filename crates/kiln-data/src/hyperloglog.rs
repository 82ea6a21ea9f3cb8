//! HyperLogLog: how many different elements, within 0.81 %, in at most 12 KiB, as Redis's strings.
//!
//! ```text
//! | "HYLL" | encoding u8 | 3 unused | count u64 | registers ...
//!
//! dense (0)    16,384 registers of 6 bits, lowest bits first
//! sparse (1)   runs of equal registers, one or two bytes each:
//!              00llllll            l + 1 registers are 0
//!              01llllll llllllll   l + 1 registers are 0 (high bits first)
//!              1vvvvvll            l + 1 registers are v + 1
//! ```
//!
//! An element's hash names a register (low 14 bits) and a value: the position of the lowest bit
//! set in the rest. A register keeps the largest value seen. The value of a key is this very
//! string, and clients may GET and SET it, so both sides matter: every byte equals Redis's for the
//! same commands, and a string from a client is checked before it is trusted.
//!
//! Invariants:
//! - [`HyperLogLog`] has a header, a known encoding, and if dense its exact length
//!   ([`HyperLogLog::from_bytes`]). The runs of a sparse one may still be damaged: whoever walks
//!   them finds out ([`CorruptHyperLogLog`]), before anything has changed.
//! - `count` is the last estimate; its highest bit says that it is stale.
//! - It starts sparse, becomes dense when a value passes 32 or a longer string would pass
//!   `hll-sparse-max-bytes`, and stays so.
//!
//! Source: Ertl, *New cardinality estimation algorithms for HyperLogLog sketches* (2017), for
//! the estimate; `MurmurHash64A` by Appleby; the bytes as observed on Redis 8.2.3.
//! Left out: the commands' replies and error texts, PFDEBUG.

use std::fmt;

/// Registers of a HyperLogLog.
pub const REGISTERS: usize = 1 << INDEX_BITS;

/// Bytes of a dense one.
pub const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * REGISTER_BITS / 8;

/// `hll-sparse-max-bytes` unless configured.
pub const SPARSE_BYTES_MAX: usize = 3000;

const INDEX_BITS: u32 = 14;
const REGISTER_BITS: usize = 6;
/// Largest register value from a hash: all 50 bits behind the index are 0, and one more.
const VALUE_MAX: usize = (64 - INDEX_BITS + 1) as usize;

const MAGIC: &[u8] = b"HYLL";
const ENCODING_AT: usize = 4;
const COUNT_AT: usize = 8;
const HEADER_BYTES: usize = 16;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
const STALE: u64 = 1 << 63;

const ZERO_RUN_MAX: usize = 64;
const VALUE_RUN_MAX: usize = 4;
const SPARSE_VALUE_MAX: u8 = 32;
/// How many runs from the changed one on are tried for merging, as in Redis.
const MERGE_WINDOW: usize = 5;

/// A HyperLogLog over the bytes of a string: `Vec<u8>` to change it, `&[u8]` to read it.
#[derive(Clone, PartialEq, Eq)]
pub struct HyperLogLog<B = Vec<u8>> {
    bytes: B,
}

/// The union of several HyperLogLogs, for PFMERGE and PFCOUNT of several keys.
pub struct Union {
    registers: Box<[u8; REGISTERS]>,
    any_dense: bool,
}

/// A run of registers with one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What each register holds.
    pub value: u8,
    /// How many registers, at least 1.
    pub len: usize,
    /// Bytes that the run takes.
    pub bytes: usize,
}

/// The string is no HyperLogLog: magic, encoding or length are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHyperLogLog;

/// The runs of a sparse HyperLogLog do not add up to its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptHyperLogLog;

impl HyperLogLog {
    /// An empty one: sparse, its count 0 and known.
    pub fn new() -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[ENCODING_AT] = SPARSE;
        let all = Encoded::zeros(REGISTERS);
        bytes.extend_from_slice(all.bytes());
        Self { bytes }
    }

    /// The string to store.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Counts `element`; returns whether a register changed. The count is stale then.
    ///
    /// `sparse_bytes_max` is `hll-sparse-max-bytes`.
    ///
    /// # Errors
    ///
    /// [`CorruptHyperLogLog`]; nothing has changed.
    pub fn add(
        &mut self,
        element: &[u8],
        sparse_bytes_max: usize,
    ) -> Result<bool, CorruptHyperLogLog> {
        let (index, value) = place(element);
        self.raise(index, value, sparse_bytes_max)
    }

    /// Raises a register to `value`; returns whether it was lower.
    fn raise(
        &mut self,
        index: usize,
        value: u8,
        sparse_bytes_max: usize,
    ) -> Result<bool, CorruptHyperLogLog> {
        if self.is_dense() {
            return Ok(raise_dense(&mut self.bytes, index, value));
        }
        let (covering, at) = self.covering(index)?;
        let run = covering.run;
        if run.value >= value {
            return Ok(false);
        }
        // The run falls into what comes before the register, the register, and what comes after.
        let mut split = Encoded::default();
        split.push(run.value, index - covering.first);
        split.push(value, 1);
        split.push(run.value, covering.first + run.len - 1 - index);
        let grows = split.len > run.bytes;
        let new_len = self.bytes.len() + split.len - run.bytes;
        if value > SPARSE_VALUE_MAX || (grows && new_len > sparse_bytes_max) {
            self.make_dense()?;
            return Ok(raise_dense(&mut self.bytes, index, value));
        }
        self.bytes.splice(at..at + run.bytes, split.bytes().iter().copied());
        self.merge_runs(covering.previous_at.unwrap_or(HEADER_BYTES));
        self.mark_stale();
        Ok(true)
    }

    /// Makes it dense, if it is not. The count stays as it is.
    ///
    /// # Errors
    ///
    /// [`CorruptHyperLogLog`]; nothing has changed.
    pub fn make_dense(&mut self) -> Result<(), CorruptHyperLogLog> {
        if self.is_dense() {
            return Ok(());
        }
        let mut dense = vec![0; DENSE_BYTES];
        dense[..HEADER_BYTES].copy_from_slice(&self.bytes[..HEADER_BYTES]);
        dense[ENCODING_AT] = DENSE;
        self.for_each_register(|index, value| set_register(&mut dense, index, value))?;
        self.bytes = dense;
        Ok(())
    }

    /// Joins equal neighbors among a few runs from `at` on. The window is part of the format: with
    /// another one, other bytes would come out.
    fn merge_runs(&mut self, mut at: usize) {
        for _ in 0..MERGE_WINDOW {
            let Some(run) = Run::decode(&self.bytes[at..]) else { break };
            let next = Run::decode(&self.bytes[at + run.bytes..]);
            match next {
                Some(next)
                    if run.value != 0
                        && run.value == next.value
                        && run.len + next.len <= VALUE_RUN_MAX =>
                {
                    let joined = Encoded::values(run.value, run.len + next.len);
                    self.bytes.splice(at..at + 2, joined.bytes().iter().copied());
                }
                _ => at += run.bytes,
            }
        }
    }
}

impl Default for HyperLogLog {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: AsRef<[u8]>> HyperLogLog<B> {
    /// The HyperLogLog in a string, which may come from a client.
    ///
    /// # Errors
    ///
    /// [`NotHyperLogLog`], see there. Runs of a sparse one are not checked here.
    pub fn from_bytes(bytes: B) -> Result<Self, NotHyperLogLog> {
        let text = bytes.as_ref();
        let sound = text.len() >= HEADER_BYTES
            && text.starts_with(MAGIC)
            && match text[ENCODING_AT] {
                DENSE => text.len() == DENSE_BYTES,
                encoding => encoding == SPARSE,
            };
        if sound { Ok(Self { bytes }) } else { Err(NotHyperLogLog) }
    }

    /// The string.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Whether it is dense.
    pub fn is_dense(&self) -> bool {
        self.as_bytes()[ENCODING_AT] == DENSE
    }

    /// The count of the last estimate, if nothing has changed since.
    pub fn known_count(&self) -> Option<u64> {
        let count = *self.as_bytes()[COUNT_AT..].first_chunk().expect("it has a header");
        Some(u64::from_le_bytes(count)).filter(|count| count & STALE == 0)
    }

    /// How many different elements were added, from all registers: ask
    /// [`HyperLogLog::known_count`] first, and keep it with [`HyperLogLog::set_count`].
    ///
    /// # Errors
    ///
    /// [`CorruptHyperLogLog`].
    pub fn estimate(&self) -> Result<u64, CorruptHyperLogLog> {
        let mut histogram = [0; 1 << REGISTER_BITS];
        if self.is_dense() {
            self.for_each_register(|_, value| histogram[usize::from(value)] += 1)?;
        } else {
            let mut registers = 0;
            for run in self.runs() {
                histogram[usize::from(run.value)] += run.len;
                registers += run.len;
            }
            self.check_end(registers)?;
        }
        Ok(estimate(&histogram))
    }

    /// All registers.
    ///
    /// # Errors
    ///
    /// [`CorruptHyperLogLog`].
    pub fn registers(&self) -> Result<Box<[u8; REGISTERS]>, CorruptHyperLogLog> {
        let mut registers = Box::new([0; REGISTERS]);
        self.for_each_register(|index, value| registers[index] = value)?;
        Ok(registers)
    }

    /// The runs of a sparse one, up to the first that is cut off; none of a dense one.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        let mut rest = if self.is_dense() { &[] } else { &self.as_bytes()[HEADER_BYTES..] };
        std::iter::from_fn(move || {
            let run = Run::decode(rest)?;
            rest = &rest[run.bytes..];
            Some(run)
        })
    }

    /// Calls `each` with every register of a dense one, and those that are not 0 of a sparse one.
    fn for_each_register(&self, mut each: impl FnMut(usize, u8)) -> Result<(), CorruptHyperLogLog> {
        if self.is_dense() {
            // Four registers fill three bytes.
            for (group, bytes) in self.as_bytes()[HEADER_BYTES..].chunks_exact(3).enumerate() {
                let bits = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
                for (place, shift) in [0, 6, 12, 18].into_iter().enumerate() {
                    each(4 * group + place, (bits >> shift) as u8 & 0x3F);
                }
            }
            return Ok(());
        }
        self.check_end(self.runs().map(|run| run.len).sum())?;
        let mut index = 0;
        for run in self.runs() {
            if run.value > 0 {
                (index..index + run.len).for_each(|index| each(index, run.value));
            }
            index += run.len;
        }
        Ok(())
    }

    /// Whether the runs, which have this many registers in all, are all there is.
    fn check_end(&self, registers: usize) -> Result<(), CorruptHyperLogLog> {
        let walked: usize = self.runs().map(|run| run.bytes).sum();
        let whole = registers == REGISTERS && HEADER_BYTES + walked == self.as_bytes().len();
        if whole { Ok(()) } else { Err(CorruptHyperLogLog) }
    }

    /// The run that holds register `index`, and where it is in the string.
    fn covering(&self, index: usize) -> Result<(Covering, usize), CorruptHyperLogLog> {
        let (mut first, mut at, mut previous_at) = (0, HEADER_BYTES, None);
        for run in self.runs() {
            if index < first + run.len {
                return Ok((Covering { run, first, previous_at }, at));
            }
            first += run.len;
            previous_at = Some(at);
            at += run.bytes;
        }
        Err(CorruptHyperLogLog)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> HyperLogLog<B> {
    /// [`HyperLogLog::add`] for a dense one, in the string where it lies; `None` if it is sparse.
    pub fn add_dense(&mut self, element: &[u8]) -> Option<bool> {
        let (index, value) = place(element);
        self.is_dense().then(|| raise_dense(self.bytes.as_mut(), index, value))
    }

    /// Stores an estimate, so that it is known until the next change.
    pub fn set_count(&mut self, count: u64) {
        self.write_count(count & !STALE);
    }

    /// Says that the count is no longer known. [`HyperLogLog::add`] does it when a register
    /// changes; PFADD and PFMERGE also do it to a key that they have just created.
    pub fn mark_stale(&mut self) {
        mark_stale(self.bytes.as_mut());
    }

    fn write_count(&mut self, count: u64) {
        self.bytes.as_mut()[COUNT_AT..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    }
}

impl<B: AsRef<[u8]>> fmt::Debug for HyperLogLog<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HyperLogLog")
            .field("dense", &self.is_dense())
            .field("known_count", &self.known_count())
            .field("estimate", &self.estimate())
            .finish()
    }
}

impl Union {
    /// The union of nothing.
    pub fn new() -> Self {
        Self { registers: Box::new([0; REGISTERS]), any_dense: false }
    }

    /// Takes in one more.
    ///
    /// # Errors
    ///
    /// [`CorruptHyperLogLog`]; the union is as before.
    pub fn add<B: AsRef<[u8]>>(
        &mut self,
        other: &HyperLogLog<B>,
    ) -> Result<(), CorruptHyperLogLog> {
        other.for_each_register(|index, value| {
            self.registers[index] = self.registers[index].max(value);
        })?;
        self.any_dense |= other.is_dense();
        Ok(())
    }

    /// How many different elements were added to any of them.
    pub fn estimate(&self) -> u64 {
        let mut histogram = [0; 1 << REGISTER_BITS];
        for &value in &*self.registers {
            histogram[usize::from(value)] += 1;
        }
        estimate(&histogram)
    }

    /// Raises `target`, which should be one of them, to the union: PFMERGE. It becomes dense if any
    /// of them is.
    ///
    /// # Errors
    ///
    /// [`CorruptHyperLogLog`]; `target` is as before.
    pub fn merge_into(
        &self,
        target: &mut HyperLogLog,
        sparse_bytes_max: usize,
    ) -> Result<(), CorruptHyperLogLog> {
        if self.any_dense {
            target.make_dense()?;
        } else {
            target.check_end(target.runs().map(|run| run.len).sum())?;
        }
        for (index, &value) in self.registers.iter().enumerate() {
            if value > 0 {
                target.raise(index, value, sparse_bytes_max)?;
            }
        }
        target.mark_stale();
        Ok(())
    }
}

impl Default for Union {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Union {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Union").field("estimate", &self.estimate()).finish_non_exhaustive()
    }
}

impl fmt::Display for NotHyperLogLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the string is not a HyperLogLog")
    }
}

impl std::error::Error for NotHyperLogLog {}

impl fmt::Display for CorruptHyperLogLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the HyperLogLog's runs do not add up")
    }
}

impl std::error::Error for CorruptHyperLogLog {}

/// A run found by a register.
struct Covering {
    run: Run,
    /// The run's first register.
    first: usize,
    /// Where the run before it is.
    previous_at: Option<usize>,
}

impl Run {
    /// The run at the start of `bytes`; `None` at the end or if it is cut off.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let &head = bytes.first()?;
        Some(match head {
            0x00..=0x3F => Self { value: 0, len: usize::from(head) + 1, bytes: 1 },
            0x40..=0x7F => {
                let len = usize::from(head & 0x3F) << 8 | usize::from(*bytes.get(1)?);
                Self { value: 0, len: len + 1, bytes: 2 }
            }
            0x80.. => {
                Self { value: (head >> 2 & 0x1F) + 1, len: usize::from(head & 0x03) + 1, bytes: 1 }
            }
        })
    }
}

/// Up to three runs as bytes.
#[derive(Default)]
struct Encoded {
    bytes: [u8; 5],
    len: usize,
}

impl Encoded {
    fn zeros(len: usize) -> Self {
        let mut encoded = Self::default();
        encoded.push(0, len);
        encoded
    }

    fn values(value: u8, len: usize) -> Self {
        let mut encoded = Self::default();
        encoded.push(value, len);
        encoded
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Adds a run; nothing if it is empty. A value that no run can hold leads to a dense
    /// HyperLogLog, where these bytes are not used.
    fn push(&mut self, value: u8, len: usize) {
        let Some(less_one) = len.checked_sub(1) else { return };
        let mut put = |byte: u8| {
            self.bytes[self.len] = byte;
            self.len += 1;
        };
        if value > 0 {
            put(0x80 | ((value - 1) & 0x1F) << 2 | less_one as u8);
        } else if len <= ZERO_RUN_MAX {
            put(less_one as u8);
        } else {
            put(0x40 | (less_one >> 8) as u8);
            put(less_one as u8);
        }
    }
}

fn raise_dense(bytes: &mut [u8], index: usize, value: u8) -> bool {
    let raised = register(bytes, index) < value;
    if raised {
        set_register(bytes, index, value);
        mark_stale(bytes);
    }
    raised
}

fn mark_stale(bytes: &mut [u8]) {
    bytes[HEADER_BYTES - 1] |= (STALE >> 56) as u8;
}

/// The byte in which a register starts, and how many bits into it.
fn register_place(index: usize) -> (usize, u32) {
    let bit = index * REGISTER_BITS;
    (HEADER_BYTES + bit / 8, bit as u32 % 8)
}

fn register(dense: &[u8], index: usize) -> u8 {
    let (at, shift) = register_place(index);
    // The last register ends with the string.
    let next = dense.get(at + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([dense[at], next]) >> shift) as u8 & 0x3F
}

fn set_register(dense: &mut [u8], index: usize, value: u8) {
    let (at, shift) = register_place(index);
    let [clear_low, clear_high] = (!(0x3F_u16 << shift)).to_le_bytes();
    let [low, high] = (u16::from(value) << shift).to_le_bytes();
    dense[at] = dense[at] & clear_low | low;
    if let Some(next) = dense.get_mut(at + 1) {
        *next = *next & clear_high | high;
    }
}

/// The register of an element and the value it raises it to.
fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur_hash_64a(element, 0xADC8_3B19);
    let index = hash as usize & (REGISTERS - 1);
    let rest = hash >> INDEX_BITS | 1 << (64 - INDEX_BITS);
    (index, rest.trailing_zeros() as u8 + 1)
}

/// Austin Appleby's `MurmurHash64A`, which the format prescribes.
fn murmur_hash_64a(bytes: &[u8], seed: u64) -> u64 {
    const FACTOR: u64 = 0xC6A4_A793_5BD1_E995;
    const SHIFT: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

/// Ertl's improved raw estimate (his algorithm 6) from how many registers have each value.
fn estimate(histogram: &[usize; 1 << REGISTER_BITS]) -> u64 {
    /// 1 / (2 ln 2).
    const ALPHA: f64 = 0.721_347_520_444_481_7;
    let m = REGISTERS as f64;
    let mut z = m * tau((m - histogram[VALUE_MAX] as f64) / m);
    for &count in histogram[1..VALUE_MAX].iter().rev() {
        z = (z + count as f64) * 0.5;
    }
    z += m * sigma(histogram[0] as f64 / m);
    (ALPHA * m * m / z).round() as u64
}

/// The share of registers at the largest value, his τ.
#[expect(clippy::float_cmp, reason = "the series ends when a term no longer changes it")]
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        y *= 0.5;
        let before = z;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

/// The share of registers at 0, his σ: infinite if all are, which makes the estimate 0.
#[expect(clippy::float_cmp, reason = "the series ends when a term no longer changes it")]
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

#[cfg(test)]
mod tests;
