//! A node: one row of the arena, and what lies in it.
//!
//! ```text
//! | codec's header | block | side | links of level 0 | hot row | cold row |
//! | bits, factors  |       |      |   2 M x u32      |  int8   |  24 bit  |
//! ^ 64-aligned                    ^ 64-aligned       ^ 64      ^ 64
//!
//! block (32 bytes):  name | attributes | side | upper: u32 | state | level | side's length
//!                    thin addresses, or null    first block of links above level 0
//!
//! side: what the codec keeps beside the row, in the room up to the links if it fits (which it
//!       does at 384 dimensions), else behind the block's address and with a length of SIDE_APART
//! ```
//!
//! A walk reads the first lines of the header and the links of every node that it expands; the
//! rest only of nodes that pass. All of a node lies together rather than in planes: the lines
//! touched are the same, and a set that ends in the middle of a page wastes one page, not four.
//!
//! The life of a node, each step by one thread:
//!
//! ```text
//! free -> building -> linked -> dying -> (unlinked, grace period) -> free
//!         row written  others    no new
//!         by its owner link it   links
//! ```
//!
//! Rules between the threads:
//!
//! 1. While a node is `building`, its owner alone knows it. Header, hot and cold row are written
//!    then and never again. The first link to it is stored after them (`links.rs`, rule 3).
//! 2. Links and state change under the stripe lock of the node. Links are mutual: `a` lists `b` if
//!    and only if `b` lists `a`, whenever neither stripe is locked.
//! 3. `dying` is final. No link to a dying node is made, so once its own lists are empty nobody
//!    lists it, and after a grace period nobody holds its id.
//! 4. A null `name` means that the node is no element yet. Once set it stays; which node the
//!    element is, the name's record says (`names.rs`).
//! 5. `attributes` belong to the element: they move to the node that replaces this one.

#![expect(unsafe_code, reason = "rows are raw memory, reached by an id")]

use std::ptr::null_mut;

use kiln_base::prefetch;
use kiln_base::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use crate::arena::{Arena, LINE};
use crate::codec::{Layout, NodeMut, NodeRef};
use crate::epoch::Guard;
use crate::names::NameRef;
use crate::thin::{self, ThinBytes};

/// Node ids end below this: the highest bit marks a candidate as expanded.
pub(crate) const NODES_MAX: u32 = 1 << 31;

/// What the graph keeps of a node beside links and vector.
#[repr(C)]
pub(crate) struct Block {
    name: AtomicPtr<u8>,
    attributes: AtomicPtr<u8>,
    side: AtomicPtr<u8>,
    pub(crate) upper: AtomicU32,
    state: AtomicU8,
    level: AtomicU8,
    side_length: AtomicU8,
}

/// A length that says that the side bytes have an allocation of their own.
const SIDE_APART: u8 = u8::MAX;

/// Where a node is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum State {
    Free = 0,
    Building = 1,
    Linked = 2,
    Dying = 3,
}

impl Block {
    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Free,
            1 => State::Building,
            2 => State::Linked,
            _ => State::Dying,
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    pub(crate) fn level(&self) -> usize {
        // Relaxed: written before the node's id was given to anybody.
        self.level.load(Ordering::Relaxed).into()
    }

    pub(crate) fn set_level(&self, level: usize) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    pub(crate) fn name(&self) -> Option<NameRef> {
        // Acquire pairs with `set_name`: the record is complete.
        NameRef::from_ptr(self.name.load(Ordering::Acquire))
    }

    pub(crate) fn set_name(&self, name: Option<NameRef>) {
        self.name.store(name.map_or(null_mut(), NameRef::as_ptr), Ordering::Release);
    }

    pub(crate) fn attributes(&self) -> Option<ThinBytes> {
        ThinBytes::from_ptr(self.attributes.load(Ordering::Acquire))
    }

    /// Puts other attributes in place and returns the old ones.
    pub(crate) fn swap_attributes(&self, new: Option<ThinBytes>) -> Option<ThinBytes> {
        let new = new.map_or(null_mut(), ThinBytes::as_ptr);
        // AcqRel: readers find the new string complete; the caller frees the old one.
        ThinBytes::from_ptr(self.attributes.swap(new, Ordering::AcqRel))
    }

    /// Takes out the side bytes that have an allocation of their own.
    pub(crate) fn take_side(&self) -> Option<ThinBytes> {
        // Relaxed: the caller is alone with the node.
        ThinBytes::from_ptr(self.side.swap(null_mut(), Ordering::Relaxed))
    }
}

/// The rows of all nodes of an index, and where the parts of a row lie.
pub(crate) struct Rows {
    pub(crate) arena: Arena,
    header: usize,
    block_at: usize,
    side_at: usize,
    links_at: usize,
    pub(crate) links: usize,
    hot_at: usize,
    hot: usize,
    cold_at: usize,
    cold: usize,
}

impl Rows {
    pub(crate) fn new(layout: Layout, links: usize) -> Self {
        let block_at = layout.owned.next_multiple_of(align_of::<Block>());
        let links_at = layout.header(size_of::<Block>());
        let hot_at = (links_at + links * size_of::<u32>()).next_multiple_of(LINE);
        let cold_at = (hot_at + layout.hot).next_multiple_of(LINE);
        let stride = (cold_at + layout.cold).next_multiple_of(LINE);
        Self {
            arena: Arena::new(stride),
            header: layout.owned,
            block_at,
            side_at: block_at + size_of::<Block>(),
            links_at,
            links,
            hot_at,
            hot: layout.hot,
            cold_at,
            cold: layout.cold,
        }
    }

    /// The rows as somebody inside the epoch may read them.
    ///
    /// # Safety
    ///
    /// Only ids that were loaded during the guard's stay (from a list of links, the entry point or
    /// a name), or of nodes that the caller owns and has not given up, may be passed to the
    /// reader's methods. Rule 2 of `arena.rs` and rule 3 above make their rows stable.
    pub(crate) unsafe fn reader<'a>(&'a self, _guard: &'a Guard<'_>) -> Reader<'a> {
        Reader { rows: self }
    }

    /// The parts of a row that are written once.
    ///
    /// # Safety
    ///
    /// The node must be `building` and the caller its owner.
    pub(crate) unsafe fn building(&self, id: u32) -> NodeMut<'_> {
        let row = self.arena.row(id);
        // SAFETY: the header lies at the row's start, and by rule 1 nobody else reads it yet.
        let header = unsafe { std::slice::from_raw_parts_mut(row, self.header) };
        let hot = row.wrapping_add(self.hot_at);
        // SAFETY: as the header; the parts of a row do not overlap.
        let hot = unsafe { std::slice::from_raw_parts_mut(hot, self.hot) };
        let cold = row.wrapping_add(self.cold_at);
        // SAFETY: as above.
        let cold = unsafe { std::slice::from_raw_parts_mut(cold, self.cold) };
        NodeMut { header, hot, cold }
    }

    /// Keeps the side bytes of a node. Returns the memory taken beside the row.
    ///
    /// # Safety
    ///
    /// As [`Rows::building`].
    pub(crate) unsafe fn set_side(&self, id: u32, bytes: &[u8]) -> usize {
        let block = self.block(id);
        // Relaxed, all of it: the node's id is given to others by a release.
        if bytes.len() > self.links_at - self.side_at || bytes.len() >= SIDE_APART.into() {
            block.side.store(ThinBytes::new(bytes).as_ptr(), Ordering::Relaxed);
            block.side_length.store(SIDE_APART, Ordering::Relaxed);
            return thin::allocated(bytes.len());
        }
        let room = self.arena.row(id).wrapping_add(self.side_at);
        // SAFETY: the room up to the links is large enough, and by rule 1 nobody else uses it yet.
        unsafe { room.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        block.side_length.store(bytes.len() as u8, Ordering::Relaxed);
        0
    }

    /// A node's block. All of it is atomic, so no guard is needed to look.
    #[inline]
    pub(crate) fn block(&self, id: u32) -> &Block {
        &self.arena.at::<Block>(id, self.block_at, 1)[0] // A new row is zero: a free node.
    }

    /// Asks for a node's links on level 0.
    #[inline]
    pub(crate) fn prefetch_links(&self, id: u32) {
        let links = self.arena.row(id).wrapping_add(self.links_at);
        prefetch_lines(links, self.links * size_of::<u32>());
    }

    /// Asks for a node's block.
    #[inline]
    pub(crate) fn prefetch_block(&self, id: u32) {
        prefetch::read(self.arena.row(id).wrapping_add(self.block_at));
    }

    /// A node's links on level 0.
    #[inline]
    pub(crate) fn links(&self, id: u32) -> &[AtomicU32] {
        self.arena.at(id, self.links_at, self.links) // Zeros are an empty list.
    }
}

/// See [`Rows::reader`].
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) rows: &'a Rows,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn header(self, id: u32) -> &'a [u8] {
        self.part(id, 0, self.rows.header)
    }

    #[inline]
    pub(crate) fn hot(self, id: u32) -> &'a [u8] {
        self.part(id, self.rows.hot_at, self.rows.hot)
    }

    pub(crate) fn node(self, id: u32) -> NodeRef<'a> {
        let block = self.rows.block(id);
        // Relaxed: written before the node's id was given to anybody.
        let side = match block.side_length.load(Ordering::Relaxed) {
            SIDE_APART => {
                let side = ThinBytes::from_ptr(block.side.load(Ordering::Relaxed));
                // SAFETY: the side bytes are freed with the node, after the guard's stay.
                side.map_or(&[][..], |side| unsafe { side.get() })
            }
            length => self.part(id, self.rows.side_at, length.into()),
        };
        let cold = self.part(id, self.rows.cold_at, self.rows.cold);
        NodeRef { header: self.header(id), hot: self.hot(id), cold, side }
    }

    /// Asks for the lines of the header that a distance estimate reads.
    #[inline]
    pub(crate) fn prefetch_header(self, id: u32) {
        prefetch_lines(self.rows.arena.row(id), self.rows.header);
    }

    /// Asks for the hot row.
    #[inline]
    pub(crate) fn prefetch_hot(self, id: u32) {
        prefetch_lines(self.rows.arena.row(id).wrapping_add(self.rows.hot_at), self.rows.hot);
    }

    /// Asks for the links of level 0.
    #[inline]
    pub(crate) fn prefetch_links(self, id: u32) {
        self.rows.prefetch_links(id);
    }

    /// Asks for the start of the cold row; the processor's own prefetcher follows a long one.
    #[inline]
    pub(crate) fn prefetch_cold(self, id: u32) {
        let cold = self.rows.arena.row(id).wrapping_add(self.rows.cold_at);
        prefetch_lines(cold, self.rows.cold.min(16 * LINE));
    }

    #[inline]
    fn part(self, id: u32, at: usize, length: usize) -> &'a [u8] {
        let start = self.rows.arena.row(id).wrapping_add(at);
        // SAFETY: the part lies inside the row. Whoever made the reader passes only ids whose rows
        // are written and stay so during its life (`Rows::reader`).
        unsafe { std::slice::from_raw_parts(start, length) }
    }
}

#[inline]
fn prefetch_lines(start: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(LINE) {
        prefetch::read(start.wrapping_add(line));
    }
}
