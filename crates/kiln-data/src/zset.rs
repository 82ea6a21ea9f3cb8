//! A sorted set value: members in the order of (score, member bytes), each with its rank.
//!
//! ```text
//! ZSet ─┬─ Listpack   member, score, member, score, ...       up to 128 short members
//!       └─ Tree ─► Box ┬ table   member ─► item (owns it)     "skiplist" to the world
//!                      └ tree    (score, member) order, counted
//! ```
//!
//! Nearly everything is arithmetic on ranks: a range by score or by member is first turned into a
//! [`Range`] of ranks ([`ZSet::ranks_by_score`], [`ZSet::ranks_by_lex`]); counting is its
//! length, reading is [`ZSet::elements`], removal is [`ZSet::remove_ranks`], popping is removal of
//! `0..1`. The first and last element of a range are its ends.
//!
//! Rules, as in Redis:
//! - A set starts as a listpack if its limits allow, becomes a tree when an added member passes
//!   them, and never goes back. A changed score never converts.
//! - A listpack keeps a whole score as an integer (so -0 becomes 0 there), any other as the text of
//!   `kiln_base::number`. A tree keeps the double.
//! - -0 and 0 are one score. NaN is refused by the commands and asserted here.
//! - By-member ranges mean something only among equal scores.
//!
//! Source: Redis 8.2.3, asked over a socket; `DUMP` for the bytes of the listpack.
//! Left out: flags of ZADD (see [`ZSet::upsert`]), weights and aggregates, expiry.

#![expect(clippy::float_cmp, reason = "scores are equal or not, there is no margin")]

mod big;
mod small;

use std::{fmt, iter::FusedIterator, ops::Deref, ops::Range};

use kiln_base::number::{INTEGER_BYTES_MAX, format_i64};
use rand::{Rng, RngExt};

use crate::listpack::Listpack;
use big::BigZSet;

/// A sorted set. See the module's header.
pub struct ZSet(Encoding);

enum Encoding {
    Listpack(Listpack),
    Tree(Box<BigZSet>),
}

const _: () = assert!(size_of::<ZSet>() <= 16);

/// Up to where a sorted set is a listpack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZSetLimits {
    /// `zset-max-listpack-entries`: how many elements.
    pub max_listpack_entries: usize,
    /// `zset-max-listpack-value`: bytes of a member.
    pub max_listpack_value: usize,
}

impl Default for ZSetLimits {
    fn default() -> Self {
        Self { max_listpack_entries: 128, max_listpack_value: 64 }
    }
}

/// What [`ZSet::upsert`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The member is new.
    Added,
    /// The member has another score than before.
    Updated,
    /// Nothing changed.
    Unchanged,
}

/// One end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreBound {
    /// The score at the end; not NaN.
    pub value: f64,
    /// Whether that score itself is outside, `(1.5` in a command.
    pub exclusive: bool,
}

/// One end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// Before every member, `-` in a command.
    Min,
    /// After every member, `+` in a command.
    Max,
    /// This member is inside, `[b` in a command.
    Included(&'a [u8]),
    /// This member is outside, `(b` in a command.
    Excluded(&'a [u8]),
}

/// The bytes of a member: borrowed, or the decimal text of a listpack's integer.
#[derive(Clone, Copy)]
pub struct MemberRef<'a>(MemberText<'a>);

#[derive(Clone, Copy)]
enum MemberText<'a> {
    Bytes(&'a [u8]),
    Integer { text: [u8; INTEGER_BYTES_MAX], len: u8 },
}

/// A range of elements, from either end: members and scores.
pub struct Elements<'a>(ElementsOf<'a>);

enum ElementsOf<'a> {
    Listpack(small::Elements<'a>),
    Tree(crate::ordered::Elements<'a>),
}

impl Clone for ZSet {
    /// A copy with the same encoding. O(n log n) for a tree.
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Encoding::Listpack(pack) => Encoding::Listpack(pack.clone()),
            Encoding::Tree(big) => {
                let mut copy = BigZSet::with_capacity(big.len());
                for (member, score) in self {
                    copy.insert_new(&member, score);
                }
                Encoding::Tree(Box::new(copy))
            }
        })
    }
}

impl ZSet {
    /// An empty set for about `entries` elements, the first of them `value_len` bytes long: beyond
    /// the limits it starts as a tree, as Redis's ZADD does by its arguments.
    pub fn new(entries: usize, value_len: usize, limits: &ZSetLimits) -> Self {
        let small =
            entries <= limits.max_listpack_entries && value_len <= limits.max_listpack_value;
        Self(if small {
            Encoding::Listpack(Listpack::new())
        } else {
            Encoding::Tree(Box::new(BigZSet::with_capacity(entries)))
        })
    }

    /// Starts loading what a first look at the value reads.
    #[inline]
    pub fn prefetch(&self) {
        match &self.0 {
            Encoding::Listpack(pack) => pack.prefetch(),
            Encoding::Tree(big) => kiln_base::prefetch::read(&raw const **big),
        }
    }

    /// The set that a listpack from outside holds, or `None` if it is no sorted set: an even number
    /// of entries, each second one a score, all in order, no member twice. Converts beyond the
    /// limit of entries. O(n).
    pub fn from_listpack(pack: Listpack, limits: &ZSetLimits) -> Option<Self> {
        if !small::is_sound(&pack) {
            return None;
        }
        let mut set = Self(Encoding::Listpack(pack));
        if set.len() > limits.max_listpack_entries {
            set.convert();
        }
        Some(set)
    }

    /// The listpack, if the set is one: what a dump writes as it stands.
    pub fn as_listpack(&self) -> Option<&Listpack> {
        match &self.0 {
            Encoding::Listpack(pack) => Some(pack),
            Encoding::Tree(_) => None,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.0 {
            Encoding::Listpack(pack) => small::len(pack),
            Encoding::Tree(big) => big.len(),
        }
    }

    /// Whether there are none; such a set is removed from the keyspace.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What OBJECT ENCODING says.
    pub fn encoding(&self) -> &'static str {
        match &self.0 {
            Encoding::Listpack(_) => "listpack",
            Encoding::Tree(_) => "skiplist",
        }
    }

    /// Bytes of memory held beyond the `ZSet` itself. O(n / 2,000).
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Encoding::Listpack(pack) => pack.memory_bytes(),
            Encoding::Tree(big) => big.memory_bytes(),
        }
    }

    /// The score of `member`. O(1) in a tree.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.0 {
            Encoding::Listpack(pack) => small::find(pack, member).map(|found| found.score),
            Encoding::Tree(big) => big.score(member),
        }
    }

    /// Adds `member` or changes its score.
    pub fn insert(&mut self, member: &[u8], score: f64, limits: &ZSetLimits) -> Change {
        self.upsert(member, limits, |_| Some(score))
    }

    /// Looks `member` up once and gives it the score that `decide` makes of the present one, which
    /// is `None` for a stranger. Where `decide` gives `None`, nothing changes: every flag of ZADD
    /// fits in it.
    ///
    /// # Panics
    ///
    /// If the new score is NaN.
    pub fn upsert(
        &mut self,
        member: &[u8],
        limits: &ZSetLimits,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Change {
        let pack = match &mut self.0 {
            Encoding::Listpack(pack) => pack,
            Encoding::Tree(big) => return big.upsert(member, decide),
        };
        let found = small::find(pack, member);
        let old = found.as_ref().map(|found| found.score);
        let Some(new) = decide(old) else { return Change::Unchanged };
        assert!(!new.is_nan(), "a score is a number");
        if let Some(found) = found {
            if found.score == new {
                return Change::Unchanged;
            }
            small::remove(pack, found.pos);
            small::insert(pack, member, new);
            return Change::Updated;
        }
        let fits = small::len(pack) < limits.max_listpack_entries
            && member.len() <= limits.max_listpack_value
            && small::has_room(pack, member);
        if fits {
            small::insert(pack, member, new);
        } else {
            self.convert().insert_new(member, new);
        }
        Change::Added
    }

    /// Removes `member`; returns its score if it was one.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match &mut self.0 {
            Encoding::Listpack(pack) => {
                let found = small::find(pack, member)?;
                small::remove(pack, found.pos);
                Some(found.score)
            }
            Encoding::Tree(big) => big.remove(member),
        }
    }

    /// How many elements come before `member`, and its score.
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        match &self.0 {
            Encoding::Listpack(pack) => small::rank(pack, member),
            Encoding::Tree(big) => big.rank(member),
        }
    }

    /// How many elements come after `member`, and its score.
    pub fn reverse_rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        self.rank(member).map(|(rank, score)| (self.len() - 1 - rank, score))
    }

    /// The element with this rank.
    pub fn by_rank(&self, rank: usize) -> Option<(MemberRef<'_>, f64)> {
        match &self.0 {
            Encoding::Listpack(_) => {
                self.elements(rank..rank.checked_add(1)?.min(self.len())).next()
            }
            Encoding::Tree(big) => big.by_rank(rank),
        }
    }

    /// The elements with these ranks, cut to those that exist; use `rev` to read backward.
    pub fn elements(&self, ranks: Range<usize>) -> Elements<'_> {
        let ranks = self.cut(ranks);
        Elements(match &self.0 {
            Encoding::Listpack(pack) => ElementsOf::Listpack(small::Elements::new(pack, ranks)),
            Encoding::Tree(big) => ElementsOf::Tree(big.elements(ranks)),
        })
    }

    /// All elements in order.
    pub fn iter(&self) -> Elements<'_> {
        self.elements(0..usize::MAX)
    }

    /// The ranks of the elements with scores between the bounds; empty if there are none.
    pub fn ranks_by_score(&self, min: ScoreBound, max: ScoreBound) -> Range<usize> {
        let before = move |score: f64| score < min.value || (min.exclusive && score == min.value);
        let within = move |score: f64| score < max.value || (!max.exclusive && score == max.value);
        match &self.0 {
            Encoding::Listpack(pack) => {
                small::ranks_where(pack, |score, _| before(score), |score, _| within(score))
            }
            Encoding::Tree(big) => {
                big.ranks_where(|score, _| before(score), |score, _| within(score))
            }
        }
    }

    /// The ranks of the elements with members between the bounds; empty if there are none.
    pub fn ranks_by_lex(&self, min: LexBound<'_>, max: LexBound<'_>) -> Range<usize> {
        let before = |member: &[u8]| match min {
            LexBound::Min => false,
            LexBound::Max => true,
            LexBound::Included(bound) => member < bound,
            LexBound::Excluded(bound) => member <= bound,
        };
        let within = |member: &[u8]| match max {
            LexBound::Min => false,
            LexBound::Max => true,
            LexBound::Included(bound) => member <= bound,
            LexBound::Excluded(bound) => member < bound,
        };
        match &self.0 {
            Encoding::Listpack(pack) => {
                small::ranks_where(pack, |_, member| before(member), |_, member| within(member))
            }
            Encoding::Tree(big) => {
                big.ranks_where(|_, member| before(member), |_, member| within(member))
            }
        }
    }

    /// Removes the elements with these ranks, cut to those that exist, and shows each to `removed`
    /// first. Returns how many.
    pub fn remove_ranks(&mut self, ranks: Range<usize>, removed: impl FnMut(&[u8], f64)) -> usize {
        let ranks = self.cut(ranks);
        let count = ranks.len();
        match &mut self.0 {
            Encoding::Listpack(pack) => small::remove_ranks(pack, ranks, removed),
            Encoding::Tree(big) => big.remove_ranks(ranks, removed),
        }
        count
    }

    /// Removes the first `count` elements, lowest first, and shows each to `removed`.
    pub fn pop_min(&mut self, count: usize, removed: impl FnMut(&[u8], f64)) -> usize {
        self.remove_ranks(0..count, removed)
    }

    /// Removes the last `count` elements, highest first, and shows each to `removed`.
    pub fn pop_max(&mut self, count: usize, mut removed: impl FnMut(&[u8], f64)) -> usize {
        let ranks = self.len().saturating_sub(count)..self.len();
        for (member, score) in self.elements(ranks.clone()).rev() {
            removed(&member, score);
        }
        self.remove_ranks(ranks, |_, _| {})
    }

    /// An element drawn uniformly; `None` from an empty set.
    pub fn random(&self, rng: &mut impl Rng) -> Option<(MemberRef<'_>, f64)> {
        let len = self.len();
        if len == 0 { None } else { self.by_rank(rng.random_range(0..len)) }
    }

    /// Up to `count` different elements drawn uniformly, in no order.
    pub fn random_distinct(
        &self,
        count: usize,
        rng: &mut impl Rng,
    ) -> impl Iterator<Item = (MemberRef<'_>, f64)> {
        let len = self.len();
        rand::seq::index::sample(rng, len, count.min(len))
            .into_iter()
            .filter_map(|rank| self.by_rank(rank))
    }

    /// One step of ZSCAN: shows some elements to `visit` and returns the cursor that continues, 0
    /// at the end. An element that is there from the first step to the last is shown at least
    /// once. A listpack is shown whole.
    pub fn scan(&self, cursor: u64, mut visit: impl FnMut(&[u8], f64)) -> u64 {
        match &self.0 {
            Encoding::Listpack(_) => {
                for (member, score) in self {
                    visit(&member, score);
                }
                0
            }
            Encoding::Tree(big) => big.scan(cursor, visit),
        }
    }

    /// Makes room for `additional` elements to come, converting if they will not fit a listpack.
    pub fn reserve(&mut self, additional: usize, limits: &ZSetLimits) {
        if let Encoding::Tree(big) = &mut self.0 {
            big.reserve(additional);
        } else if self.len() + additional > limits.max_listpack_entries {
            self.convert().reserve(additional);
        }
    }

    fn cut(&self, ranks: Range<usize>) -> Range<usize> {
        let end = ranks.end.min(self.len());
        ranks.start.min(end)..end
    }

    /// Makes a tree of a listpack.
    fn convert(&mut self) -> &mut BigZSet {
        let mut big = Box::new(BigZSet::with_capacity(self.len() + 1));
        for (member, score) in &*self {
            big.insert_new(&member, score);
        }
        self.0 = Encoding::Tree(big);
        let Encoding::Tree(big) = &mut self.0 else { unreachable!("set one line up") };
        big
    }
}

impl fmt::Debug for ZSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<'a> IntoIterator for &'a ZSet {
    type Item = (MemberRef<'a>, f64);
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (MemberRef<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            ElementsOf::Listpack(elements) => elements.next(),
            ElementsOf::Tree(elements) => {
                elements.next().map(|(score, item)| (MemberRef::from(item.member()), score))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            ElementsOf::Listpack(elements) => elements.size_hint(),
            ElementsOf::Tree(elements) => elements.size_hint(),
        }
    }
}

impl DoubleEndedIterator for Elements<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            ElementsOf::Listpack(elements) => elements.next_back(),
            ElementsOf::Tree(elements) => {
                elements.next_back().map(|(score, item)| (MemberRef::from(item.member()), score))
            }
        }
    }
}

impl ExactSizeIterator for Elements<'_> {}
impl FusedIterator for Elements<'_> {}

impl Deref for MemberRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            MemberText::Bytes(bytes) => bytes,
            MemberText::Integer { text, len } => &text[..usize::from(*len)],
        }
    }
}

impl<'a> From<&'a [u8]> for MemberRef<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(MemberText::Bytes(bytes))
    }
}

impl From<i64> for MemberRef<'_> {
    fn from(number: i64) -> Self {
        let mut text = [0; INTEGER_BYTES_MAX];
        let len = format_i64(number, &mut text).len() as u8;
        Self(MemberText::Integer { text, len })
    }
}

impl fmt::Debug for MemberRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests;
