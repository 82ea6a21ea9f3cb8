//! The intset: a small set of integers as one sorted array, in Redis's byte format.
//!
//! ```text
//! Redis    | width 2, 4 or 8, u32 | members u32 | member | member | ... |   little-endian, sorted
//! memory   | all bytes u32        | members u32 | member | member | ... |
//! ```
//!
//! The first word is the only difference: in memory it is the length that the buffer under
//! it needs, and the width follows from length and members. [`Intset::head`] makes Redis's word.
//!
//! Invariants: members are strictly ascending; all have one width, the smallest that holds the
//! widest member ever added (it does not shrink on removal, as in Redis).
//!
//! Source: Redis's `intset.h`; bytes compared with Redis 8.2.3's DUMP.

use rand::{Rng, RngExt};

use crate::thin_buf::ThinBuf;

const HEADER_BYTES: usize = 8;

/// A sorted array of integers, owned through one pointer. See the module's header.
#[derive(Clone)]
pub struct Intset {
    buf: ThinBuf,
}

/// Bytes per member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Two = 2,
    Four = 4,
    Eight = 8,
}

/// Why bytes from elsewhere are no intset: wrong width, wrong length, or members out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntsetError;

impl std::fmt::Display for IntsetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the intset is malformed")
    }
}

impl std::error::Error for IntsetError {}

impl Default for Intset {
    fn default() -> Intset {
        Intset::new()
    }
}

impl std::fmt::Debug for Intset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Intset {
    /// Starts loading the first bytes.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.buf.prefetch();
    }

    /// An empty set.
    pub fn new() -> Intset {
        Intset { buf: ThinBuf::new(&[&0_u32.to_le_bytes()]) }
    }

    /// A copy of `bytes` in Redis's format, after checking all of them.
    pub fn from_untrusted(bytes: &[u8]) -> Result<Intset, IntsetError> {
        let (head, members) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(IntsetError)?;
        let (width, count) = head.split_at(4);
        let width = match width {
            [2, 0, 0, 0] => Width::Two,
            [4, 0, 0, 0] => Width::Four,
            [8, 0, 0, 0] => Width::Eight,
            _ => return Err(IntsetError),
        };
        let stated = u32::from_le_bytes([count[0], count[1], count[2], count[3]]);
        let chunks = members.chunks_exact(width as usize);
        if !chunks.remainder().is_empty() || chunks.len() != stated as usize {
            return Err(IntsetError);
        }
        if !chunks.map(|chunk| read(chunk, width)).is_sorted_by(|a, b| a < b) {
            return Err(IntsetError);
        }
        Ok(Intset { buf: ThinBuf::new(&[count, members]) })
    }

    /// The first eight bytes of Redis's format; [`Intset::member_bytes`] are the rest.
    pub fn head(&self) -> [u8; HEADER_BYTES] {
        let mut head = [self.width() as u8, 0, 0, 0, 0, 0, 0, 0];
        head[4..].copy_from_slice(&(self.len() as u32).to_le_bytes());
        head
    }

    /// The members as stored, little-endian and ascending.
    #[inline]
    pub fn member_bytes(&self) -> &[u8] {
        &self.buf.as_slice()[HEADER_BYTES..]
    }

    /// Bytes of the allocation.
    pub fn memory_bytes(&self) -> usize {
        self.buf.memory_bytes()
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        let bytes = self.buf.as_slice();
        u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buf.len() == HEADER_BYTES
    }

    /// The member at `index` in ascending order.
    #[inline]
    pub fn get(&self, index: usize) -> Option<i64> {
        let width = self.width();
        let at = index.checked_mul(width as usize)?;
        self.member_bytes().get(at..at + width as usize).map(|bytes| read(bytes, width))
    }

    /// A member drawn evenly.
    pub fn random(&self, rng: &mut (impl Rng + ?Sized)) -> Option<i64> {
        if self.is_empty() { None } else { self.get(rng.random_range(0..self.len())) }
    }

    /// Whether `member` is in the set. O(log n).
    pub fn contains(&self, member: i64) -> bool {
        self.search(member).is_ok()
    }

    /// Adds `member`; false if it was there. O(n).
    pub fn add(&mut self, member: i64) -> bool {
        let width = Width::of(member).max(self.width());
        if width > self.width() {
            self.widen(width);
        }
        let Err(index) = self.search(member) else { return false };
        let at = HEADER_BYTES + index * width as usize;
        self.buf.splice(at..at, &[&member.to_le_bytes()[..width as usize]]);
        self.set_len(self.len() + 1);
        true
    }

    /// Removes `member`; false if it was not there. O(n).
    pub fn remove(&mut self, member: i64) -> bool {
        let Ok(index) = self.search(member) else { return false };
        self.remove_at(index);
        true
    }

    /// Removes and returns the member at `index` in ascending order.
    pub fn take(&mut self, index: usize) -> Option<i64> {
        let member = self.get(index)?;
        self.remove_at(index);
        Some(member)
    }

    /// The members in ascending order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + Clone + '_ {
        let width = self.width();
        self.member_bytes().chunks_exact(width as usize).map(move |bytes| read(bytes, width))
    }

    fn remove_at(&mut self, index: usize) {
        let width = self.width() as usize;
        let at = HEADER_BYTES + index * width;
        self.buf.splice(at..at + width, &[]);
        self.set_len(self.len() - 1);
    }

    /// Where `member` is, or where it belongs.
    fn search(&self, member: i64) -> Result<usize, usize> {
        let (mut from, mut to) = (0, self.len());
        // Sets are often filled in ascending order.
        match to.checked_sub(1).and_then(|last| self.get(last)) {
            Some(last) if last >= member => {}
            _ => return Err(to),
        }
        while from < to {
            let middle = usize::midpoint(from, to);
            let probe = self.get(middle).expect("an index below the length");
            match probe.cmp(&member) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    /// The width that the length implies; the smallest for an empty set.
    #[inline]
    fn width(&self) -> Width {
        let (bytes, count) = (self.buf.len() - HEADER_BYTES, self.len());
        if bytes == 2 * count {
            Width::Two
        } else if bytes == 4 * count {
            Width::Four
        } else {
            Width::Eight
        }
    }

    fn widen(&mut self, width: Width) {
        let count = (self.len() as u32).to_le_bytes();
        let members: Vec<u8> = self
            .iter()
            .flat_map(|member| member.to_le_bytes().into_iter().take(width as usize))
            .collect();
        self.buf = ThinBuf::new(&[&count, &members]);
    }

    fn set_len(&mut self, len: usize) {
        self.buf.payload_mut()[..4].copy_from_slice(&(len as u32).to_le_bytes());
    }
}

impl Width {
    fn of(member: i64) -> Width {
        if i16::try_from(member).is_ok() {
            Width::Two
        } else if i32::try_from(member).is_ok() {
            Width::Four
        } else {
            Width::Eight
        }
    }
}

/// Reads one member; `bytes` has its width.
#[inline]
fn read(bytes: &[u8], width: Width) -> i64 {
    const SLICED: &str = "members are sliced by their width";
    match width {
        Width::Two => i64::from(i16::from_le_bytes(bytes.try_into().expect(SLICED))),
        Width::Four => i64::from(i32::from_le_bytes(bytes.try_into().expect(SLICED))),
        Width::Eight => i64::from_le_bytes(bytes.try_into().expect(SLICED)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};

    use super::{Intset, IntsetError};

    fn member() -> impl Strategy<Value = i64> {
        prop_oneof![
            -8_i64..8,
            any::<i16>().prop_map(i64::from),
            any::<i32>().prop_map(i64::from),
            any::<i64>()
        ]
    }

    fn bytes(set: &Intset) -> Vec<u8> {
        [&set.head(), set.member_bytes()].concat()
    }

    #[test]
    fn bytes_are_redis_bytes() {
        let mut set = Intset::new();
        assert_eq!(size_of::<Option<Intset>>(), 8);
        assert_eq!(bytes(&set), [2, 0, 0, 0, 0, 0, 0, 0]);
        assert!([5, -1, 300].iter().all(|&member| set.add(member)));
        assert_eq!(bytes(&set), [2, 0, 0, 0, 3, 0, 0, 0, 0xFF, 0xFF, 5, 0, 0x2C, 1]);
        set.add(-40_000);
        // DUMP of Redis 8.2.3 after SADD s 5 -1 300 -40000.
        let dump = b"\x04\0\0\0\x04\0\0\0\xc0c\xff\xff\xff\xff\xff\xff\x05\0\0\0,\x01\0\0";
        assert_eq!(bytes(&set), dump);
        set.remove(-40_000);
        assert_eq!(bytes(&set)[..8], [4, 0, 0, 0, 3, 0, 0, 0], "the width stays");
    }

    #[test]
    fn damaged_bytes_are_refused() {
        for bytes in [
            &[2, 0, 0, 0, 0, 0, 0][..],
            &[3, 0, 0, 0, 0, 0, 0, 0],
            &[2, 0, 0, 0, 1, 0, 0, 0],
            &[2, 0, 0, 0, 1, 0, 0, 0, 1],
            &[2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 2, 0],
            &[2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 1, 0],
            &[2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0],
        ] {
            assert_eq!(Intset::from_untrusted(bytes).map(drop), Err(IntsetError), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn edits_are_those_of_a_btree_set(edits in vec((any::<bool>(), member()), 1..80)) {
            let (mut set, mut model) = (Intset::new(), BTreeSet::new());
            for (add, member) in edits {
                if add {
                    prop_assert_eq!(set.add(member), model.insert(member));
                } else {
                    prop_assert_eq!(set.remove(member), model.remove(&member));
                }
                prop_assert_eq!(set.contains(member), add);
                prop_assert_eq!(set.len(), model.len());
                let members: Vec<i64> = set.iter().collect();
                prop_assert_eq!(members, model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(set.get(set.len()), None);
                let copy = Intset::from_untrusted(&bytes(&set)).unwrap();
                prop_assert_eq!(bytes(&copy), bytes(&set));
            }
        }

        #[test]
        fn hostile_bytes_never_panic(input in vec(any::<u8>(), 0..40), width in 0_u8..9) {
            let mut framed = vec![width, 0, 0, 0];
            framed.extend(&input);
            for bytes in [&input, &framed] {
                if let Ok(set) = Intset::from_untrusted(bytes) {
                    prop_assert_eq!(set.iter().count(), set.len());
                }
            }
        }
    }
}
