//! The big form of a sorted set: a hash table that owns the items, and a tree over them.
//!
//! Invariant: the table and the tree hold the same items, and an item's own score is the one it
//! stands at in the tree. The tree's pointers are good because an item leaves the tree before it
//! leaves the table, and both are reached only through this struct.

#![expect(unsafe_code, reason = "the tree points to items that the table owns")]

use std::ops::Range;

use kiln_base::hash::key_hash;

use crate::{
    ordered::{self, OrderedTree, item::ItemRef, item::ZItem},
    table::{Entry, Table},
};

use super::{Change, MemberRef};

pub(super) struct BigZSet {
    tree: OrderedTree,
    table: Table<ZItem>,
    item_bytes: usize,
}

impl BigZSet {
    pub(super) fn with_capacity(entries: usize) -> Self {
        let mut table = Table::new();
        table.reserve(entries.min(RESERVED_MAX));
        Self { tree: OrderedTree::new(), table, item_bytes: 0 }
    }

    pub(super) fn reserve(&mut self, additional: usize) {
        self.table.reserve(additional);
    }

    pub(super) fn len(&self) -> usize {
        self.tree.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.table.memory_bytes() + self.tree.memory_bytes() + self.item_bytes
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.table.find(key_hash(member), member).map(|item| item.score())
    }

    pub(super) fn upsert(
        &mut self,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Change {
        match self.table.entry(key_hash(member), member) {
            Entry::Occupied(cell) => {
                let item = share(&cell.get());
                let old = item.score();
                let Some(new) = decide(Some(old)).filter(|&new| new != old) else {
                    return Change::Unchanged;
                };
                assert!(!new.is_nan(), "a score is a number");
                self.tree.move_to(old, new, item);
                // SAFETY: `self` is held exclusively, and nothing is lent out of it.
                unsafe { item.set_score(new) };
                Change::Updated
            }
            Entry::Vacant(vacant) => {
                let Some(new) = decide(None) else { return Change::Unchanged };
                let item = ZItem::new(new, member);
                self.item_bytes += ZItem::allocated(member.len());
                self.tree.insert(new, share(&item));
                vacant.insert(item);
                Change::Added
            }
        }
    }

    /// Adds a member that is not there yet.
    pub(super) fn insert_new(&mut self, member: &[u8], score: f64) {
        let change = self.upsert(member, |_| Some(score));
        debug_assert_eq!(change, Change::Added);
    }

    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let cell = self.table.find_mut(key_hash(member), member)?;
        let item = share(&cell.get());
        let score = item.score();
        self.tree.remove(score, item);
        self.item_bytes -= ZItem::allocated(member.len());
        cell.remove();
        Some(score)
    }

    pub(super) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(member)?;
        Some((self.tree.rank(score, member), score))
    }

    pub(super) fn by_rank(&self, rank: usize) -> Option<(MemberRef<'_>, f64)> {
        (rank < self.len()).then(|| {
            let (score, item) = self.tree.get(rank);
            (MemberRef::from(item.member()), score)
        })
    }

    pub(super) fn elements(&self, ranks: Range<usize>) -> ordered::Elements<'_> {
        self.tree.elements(ranks)
    }

    /// The ranks after all elements that are `before` a range and up to the last `within` its end.
    pub(super) fn ranks_where(
        &self,
        before: impl Fn(f64, &[u8]) -> bool,
        within: impl Fn(f64, &[u8]) -> bool,
    ) -> Range<usize> {
        let start = self.tree.rank_where(|score, item| before(score, item.member()));
        let end = self.tree.rank_where(|score, item| within(score, item.member()));
        start..end.max(start)
    }

    pub(super) fn remove_ranks(
        &mut self,
        ranks: Range<usize>,
        mut removed: impl FnMut(&[u8], f64),
    ) {
        self.tree.remove_ranks(ranks, |item| {
            let member = item.member();
            removed(member, item.score());
            self.item_bytes -= ZItem::allocated(member.len());
            // The tree hands an item out when it is done with it, so the table may free it.
            let owned = self.table.remove(key_hash(member), member);
            assert!(owned.is_some_and(|owned| owned.is(item)), "table and tree agree");
        });
    }

    pub(super) fn scan(&self, cursor: u64, mut visit: impl FnMut(&[u8], f64)) -> u64 {
        self.table.scan(cursor, |item| visit(item.member(), item.score()))
    }
}

/// Elements that a command's argument count may make the table reserve for: more must be added
/// before they are paid for.
const RESERVED_MAX: usize = 1 << 16;

fn share(item: &ZItem) -> ItemRef {
    // SAFETY: the module's invariant: an item leaves the tree before it is dropped. And scores
    // change only under `&mut BigZSet`, while nothing of an item is lent out.
    unsafe { item.share() }
}
