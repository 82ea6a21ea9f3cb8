//! The small form of a sorted set: a listpack of member, score, member, score, ... in order.
//!
//! Every operation walks it: at 128 elements of a few bytes that is one or two kilobytes, which
//! beats any index.

use std::{collections::HashSet, ops::Range};

use kiln_base::number::{DOUBLE_BYTES_MAX, INTEGER_BYTES_MAX, format_f64};

use crate::{
    listpack::{self, BYTES_MAX, Listpack, Needle, Pos, Value},
    ordered::compare,
};

use super::MemberRef;

/// Bytes of a listpack that a score takes at most, head and trailing length included.
const SCORE_ENTRY_BYTES_MAX: usize = DOUBLE_BYTES_MAX + 2;

/// An element found by its member.
pub(super) struct Found {
    pub(super) pos: Pos,
    pub(super) score: f64,
}

pub(super) fn len(pack: &Listpack) -> usize {
    pack.len() / 2
}

pub(super) fn find(pack: &Listpack, member: &[u8]) -> Option<Found> {
    let pos = pack.find(&Needle::new(member), 1)?;
    let score = pack.value(pack.after(pos)).and_then(score_of).expect(SOUND);
    Some(Found { pos, score })
}

pub(super) fn rank(pack: &Listpack, member: &[u8]) -> Option<(usize, f64)> {
    let found = find(pack, member)?;
    let rank = pack.iter_between(pack.first(), found.pos).count() / 2;
    Some((rank, found.score))
}

/// Whether the listpack stays below its largest size with one more element.
pub(super) fn has_room(pack: &Listpack, member: &[u8]) -> bool {
    pack.bytes() + Listpack::entry_bytes(member) + SCORE_ENTRY_BYTES_MAX < BYTES_MAX
}

/// Adds a member that is not there.
pub(super) fn insert(pack: &mut Listpack, member: &[u8], score: f64) {
    let mut pos = pack.first();
    let mut scratch = [0; INTEGER_BYTES_MAX];
    while let Some(other) = pack.value(pos) {
        let score_pos = pack.after(pos);
        let other_score = pack.value(score_pos).and_then(score_of).expect(SOUND);
        if compare((score, member), (other_score, other.text(&mut scratch))).is_lt() {
            break;
        }
        pos = pack.after(score_pos);
    }
    let mut buf = [0; DOUBLE_BYTES_MAX];
    // The listpack makes an integer of a whole score's text. Only of -0's it would not.
    let text = format_f64(if score == 0.0 { 0.0 } else { score }, &mut buf);
    pack.insert_before(pos, text);
    pack.insert_before(pos, member);
}

/// Removes the element at `pos`.
pub(super) fn remove(pack: &mut Listpack, pos: Pos) {
    pack.remove_run(pos, 2);
}

pub(super) fn remove_ranks(
    pack: &mut Listpack,
    ranks: Range<usize>,
    mut removed: impl FnMut(&[u8], f64),
) {
    for (member, score) in Elements::new(pack, ranks.clone()) {
        removed(&member, score);
    }
    pack.remove_range(2 * ranks.start as i64, 2 * ranks.len());
}

/// The ranks from the first element that is not `before` a range on, as long as they are `within`.
pub(super) fn ranks_where(
    pack: &Listpack,
    before: impl Fn(f64, &[u8]) -> bool,
    within: impl Fn(f64, &[u8]) -> bool,
) -> Range<usize> {
    let len = len(pack);
    let mut elements = Elements::new(pack, 0..len);
    let start = elements.position(|(member, score)| !before(score, &member)).unwrap_or(len);
    let inside = Elements::new(pack, start..len);
    let count = inside.take_while(|(member, score)| within(*score, member)).count();
    start..start + count
}

/// Whether a listpack from outside is a sorted set. O(n).
pub(super) fn is_sound(pack: &Listpack) -> bool {
    let mut values = pack.iter().map(|(_, value)| value);
    let mut members = HashSet::new();
    let mut previous: Option<(f64, Vec<u8>)> = None;
    while let Some(member) = values.next() {
        let Some(score) = values.next().and_then(score_of) else { return false };
        let member = member.to_vec();
        let ascends = previous.as_ref().is_none_or(|(previous_score, previous)| {
            compare((*previous_score, previous), (score, &member)).is_lt()
        });
        if !ascends || !members.insert(member.clone()) {
            return false;
        }
        previous = Some((score, member));
    }
    true
}

/// A range of elements, from either end.
#[derive(Clone)]
pub(super) struct Elements<'a> {
    entries: listpack::Iter<'a>,
    len: usize,
}

impl<'a> Elements<'a> {
    /// The elements with these ranks, which exist.
    pub(super) fn new(pack: &'a Listpack, ranks: Range<usize>) -> Self {
        let pos = |rank: usize| pack.pos_at(2 * rank as i64).unwrap_or(pack.end());
        let entries = if ranks == (0..len(pack)) {
            pack.iter()
        } else {
            pack.iter_between(pos(ranks.start), pos(ranks.end))
        };
        Self { entries, len: ranks.len() }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (MemberRef<'a>, f64);

    fn next(&mut self) -> Option<Self::Item> {
        let (_, member) = self.entries.next()?;
        let (_, score) = self.entries.next().expect(SOUND);
        self.len -= 1;
        Some((member_of(member), score_of(score).expect(SOUND)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl DoubleEndedIterator for Elements<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let (_, score) = self.entries.next_back()?;
        let (_, member) = self.entries.next_back().expect(SOUND);
        self.len -= 1;
        Some((member_of(member), score_of(score).expect(SOUND)))
    }
}

/// Why every second entry is a score: `insert` writes them so, and `is_sound` has checked the rest.
const SOUND: &str = "a sorted set's listpack alternates members and scores";

fn score_of(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Int(number) => Some(number as f64),
        Value::Bytes(text) => fast_float2::parse(text).ok().filter(|score: &f64| !score.is_nan()),
    }
}

fn member_of(value: Value<'_>) -> MemberRef<'_> {
    match value {
        Value::Bytes(bytes) => MemberRef::from(bytes),
        Value::Int(number) => MemberRef::from(number),
    }
}
