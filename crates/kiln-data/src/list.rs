//! The list: one listpack while it is small, else a sequence of them.
//!
//! ```text
//! Listpack   ─► | a | b | c |
//! Quicklist  ─► ring of nodes: | a b c | d e f g | <one large element> | h i |
//! ```
//!
//! A node is a listpack of bounded size (`list-max-listpack-size`, [`ListLimits`]) with its count
//! beside it, 16 bytes in a ring buffer. Pushing and popping at the ends is O(1) in the number of
//! nodes; finding an index walks the counts, which lie next to each other: a million short elements
//! are about 1,500 nodes, 24 KB. (Redis links its nodes, so that its walk is a cache miss each.)
//! An element larger than a node may be gets a node of its own, which Redis calls plain.
//!
//! Which encoding a list has is visible to clients, so the rules are Redis's, oddities included:
//! - A listpack becomes a quicklist before a command whose arguments together would pass the limit,
//!   counting the texts' lengths only ([`List::make_room`]).
//! - A quicklist becomes a listpack after elements were removed or replaced, once it is a single
//!   node of at most half the limit; after loading, at most the limit ([`List::settle`]).
//! - So it matters how nodes are split and merged: see [`Quicklist::insert`], `merge_around`.
//!
//! Invariants: no node is empty; a plain node has one element; `len` is the sum of the counts.
//!
//! Left out: `list-compress-depth`. Compressed inner nodes are not visible to clients, and the
//! default is not to compress.
//!
//! Source: Redis 8.2.3's `t_list.c` and `quicklist.c` for the rules, checked against the server.

use std::collections::VecDeque;

use crate::listpack::{self, EMPTY_BYTES, Listpack, Needle, Pos, Value};

/// `list-max-listpack-size`: how large a listpack of a list may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    /// A number of elements if positive; -1 to -5 are 4, 8, 16, 32 and 64 KiB.
    pub max_listpack_size: i32,
}

/// A listpack limited by its number of elements may not pass this many bytes either.
const COUNTED_NODE_BYTES_MAX: usize = 8_192;

/// What Redis adds to an element's length when it asks whether the element fits a node.
const ELEMENT_OVERHEAD: usize = 8;

/// A ring of nodes up to this capacity is never given back.
const RING_NODES_KEPT: usize = 16;

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The head: LPUSH, LPOP, index 0.
    Front,
    /// The tail: RPUSH, RPOP, index -1.
    Back,
}

/// Before or after an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Nearer to the front.
    Before,
    /// Nearer to the back.
    After,
}

/// A list of strings. See the module's header.
#[derive(Debug, Clone)]
pub enum List {
    /// Encoding `listpack`.
    Listpack(Listpack),
    /// Encoding `quicklist`.
    Quicklist(Box<Quicklist>),
}

/// The large encoding of a list. See the module's header.
#[derive(Debug, Clone, Default)]
pub struct Quicklist {
    nodes: VecDeque<Node>,
    len: usize,
}

#[derive(Debug, Clone)]
struct Node {
    pack: Listpack,
    count: u32,
    plain: bool,
}

/// A node as RDB files store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeBytes<'a> {
    /// A listpack's bytes.
    Packed(&'a [u8]),
    /// The text of one large element.
    Plain(&'a [u8]),
}

impl Default for ListLimits {
    fn default() -> ListLimits {
        ListLimits { max_listpack_size: -2 }
    }
}

impl ListLimits {
    /// Bytes and elements that a node may have.
    fn node_limits(self) -> (usize, usize) {
        match self.max_listpack_size {
            0.. => (usize::MAX, self.max_listpack_size.max(1) as usize),
            level => (4_096 << (-1 - level.max(-5)), usize::MAX),
        }
    }

    fn exceeded_by(self, bytes: usize, count: usize) -> bool {
        let (bytes_max, count_max) = self.node_limits();
        bytes > bytes_max.min(self.element_bytes_max()) || count > count_max
    }

    /// Length above which an element gets a node of its own.
    fn element_bytes_max(self) -> usize {
        match self.node_limits() {
            (usize::MAX, _) => COUNTED_NODE_BYTES_MAX,
            (bytes_max, _) => bytes_max,
        }
    }

    fn is_large(self, text: &[u8]) -> bool {
        text.len() > self.element_bytes_max()
    }
}

impl Default for List {
    fn default() -> List {
        List::new()
    }
}

impl List {
    /// Starts loading what a first look at the value reads.
    #[inline]
    pub fn prefetch(&self) {
        match self {
            List::Listpack(pack) => pack.prefetch(),
            List::Quicklist(list) => kiln_base::prefetch::read(&raw const **list),
        }
    }

    /// An empty list.
    pub fn new() -> List {
        List::Listpack(Listpack::new())
    }

    /// The name that OBJECT ENCODING reports.
    pub fn encoding(&self) -> &'static str {
        match self {
            List::Listpack(_) => "listpack",
            List::Quicklist(_) => "quicklist",
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            List::Listpack(pack) => pack.len(),
            List::Quicklist(quick) => quick.len,
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        match self {
            List::Listpack(pack) => pack.is_empty(),
            List::Quicklist(quick) => quick.len == 0,
        }
    }

    /// Bytes of all allocations of the list.
    pub fn memory_bytes(&self) -> usize {
        match self {
            List::Listpack(pack) => pack.memory_bytes(),
            List::Quicklist(quick) => {
                let ring = quick.nodes.capacity() * size_of::<Node>();
                let packs = quick.nodes.iter().map(|node| node.pack.memory_bytes());
                size_of::<Quicklist>() + ring + packs.sum::<usize>()
            }
        }
    }

    /// Makes the list a quicklist if `count` more elements with `bytes` of text together would pass
    /// the limit for a listpack. Redis asks this once for each command, before the first element.
    pub fn make_room(&mut self, count: usize, bytes: usize, limits: ListLimits) {
        if let List::Listpack(pack) = self
            && limits.exceeded_by(pack.bytes() + bytes, pack.len() + count)
        {
            *self = List::Quicklist(Box::new(Quicklist::from_listpack(std::mem::take(pack))));
        }
    }

    /// Pushes one element.
    pub fn push(&mut self, end: End, text: &[u8], limits: ListLimits) {
        self.push_all(end, std::iter::once(text), limits);
    }

    /// Pushes elements one after another, so that the last one ends up outermost.
    pub fn push_all<'t>(
        &mut self,
        end: End,
        texts: impl Iterator<Item = &'t [u8]> + Clone,
        limits: ListLimits,
    ) {
        let (count, bytes) =
            texts.clone().fold((0, 0), |(count, bytes), text| (count + 1, bytes + text.len()));
        self.make_room(count, bytes, limits);
        match self {
            List::Listpack(pack) => texts.for_each(|text| match end {
                End::Front => pack.push_front(text),
                End::Back => pack.push_back(text),
            }),
            List::Quicklist(quick) => texts.for_each(|text| quick.push(end, text, limits)),
        }
    }

    /// The element at `end`.
    pub fn peek(&self, end: End) -> Option<Value<'_>> {
        let pack = match self {
            List::Listpack(pack) => pack,
            List::Quicklist(quick) => &quick.nodes.get(quick.end_node(end)?)?.pack,
        };
        match end {
            End::Front => pack.value(pack.first()),
            End::Back => pack.last().and_then(|pos| pack.value(pos)),
        }
    }

    /// Removes the element at `end` after handing it to `take`, whose result is returned.
    pub fn pop<R>(
        &mut self,
        end: End,
        limits: ListLimits,
        take: impl FnOnce(Value<'_>) -> R,
    ) -> Option<R> {
        let taken = take(self.peek(end)?);
        self.drop_end(end);
        self.shrunk(limits);
        Some(taken)
    }

    /// Moves the element at `from` to the end `to`; returns what `take` made of it. Whether the
    /// encoding still suits is asked once, when the element is back.
    pub fn rotate<R: AsRef<[u8]>>(
        &mut self,
        from: End,
        to: End,
        limits: ListLimits,
        take: impl FnOnce(Value<'_>) -> R,
    ) -> Option<R> {
        let taken = take(self.peek(from)?);
        self.drop_end(from);
        self.push(to, taken.as_ref(), limits);
        self.shrunk(limits);
        Some(taken)
    }

    fn drop_end(&mut self, end: End) {
        match self {
            List::Listpack(pack) => remove_end(pack, end),
            List::Quicklist(quick) => {
                let at = quick.end_node(end).expect("a quicklist with an element has a node");
                remove_end(&mut quick.nodes[at].pack, end);
                quick.removed(at, 1);
            }
        }
    }

    /// The element at `index`, counted from the back (-1) if negative.
    pub fn get(&self, index: i64) -> Option<Value<'_>> {
        match self {
            List::Listpack(pack) => pack.get(index),
            List::Quicklist(quick) => {
                let (node, index) = quick.locate(from_front(index, quick.len)?)?;
                quick.nodes[node].pack.get(index as i64)
            }
        }
    }

    /// Replaces the element at `index` (from the back if negative); false if there is none.
    pub fn set(&mut self, index: i64, text: &[u8], limits: ListLimits) -> bool {
        // Redis converts before it looks for the element, and stays converted if there is none.
        self.make_room(1, text.len(), limits);
        let Some(index) = from_front(index, self.len()) else { return false };
        match self {
            List::Listpack(pack) => {
                let pos = pack.pos_at(index as i64).expect("an index below the length");
                pack.replace(pos, text);
            }
            List::Quicklist(quick) => quick.set(index, text, limits),
        }
        self.shrunk(limits);
        true
    }

    /// Inserts `text` beside the first element equal to `pivot`; false if there is none.
    pub fn insert(&mut self, side: Side, pivot: &[u8], text: &[u8], limits: ListLimits) -> bool {
        // As in `set`, the conversion comes first.
        self.make_room(1, text.len(), limits);
        let pivot = Needle::new(pivot);
        match self {
            List::Listpack(pack) => {
                let Some(pos) = pack.find(&pivot, 0) else { return false };
                pack.insert_before(beside(pack, pos, side), text);
            }
            List::Quicklist(quick) => {
                let found = quick.nodes.iter().enumerate().find_map(|(at, node)| {
                    node.pack.find(&pivot, 0).map(|pos| (at, beside(&node.pack, pos, side)))
                });
                let Some((node, pos)) = found else { return false };
                quick.insert(node, pos, side, text, limits);
            }
        }
        true
    }

    /// Removes elements equal to `text` and returns how many: the first `count`, the last `-count`
    /// if negative, all if 0.
    pub fn remove(&mut self, text: &[u8], count: i64, limits: ListLimits) -> usize {
        let needle = Needle::new(text);
        let end = if count < 0 { End::Back } else { End::Front };
        let wanted = match count {
            0 => usize::MAX,
            _ => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
        };
        let removed = match self {
            List::Listpack(pack) => remove_equal(pack, &needle, wanted, end),
            List::Quicklist(quick) => quick.remove_equal(&needle, wanted, end),
        };
        if removed > 0 {
            self.shrunk(limits);
        }
        removed
    }

    /// Removes up to `count` elements from `index` on and returns how many there were.
    pub fn remove_range(&mut self, index: usize, count: usize, limits: ListLimits) -> usize {
        let removed = match self {
            List::Listpack(pack) => pack.remove_range(index as i64, count),
            List::Quicklist(quick) => quick.remove_range(index, count),
        };
        self.shrunk(limits);
        removed
    }

    /// Keeps `count` elements from `index` on.
    pub fn trim(&mut self, index: usize, count: usize, limits: ListLimits) {
        let index = index.min(self.len());
        let behind = index.saturating_add(count).min(self.len());
        let (after, before) = (self.len() - behind, index);
        match self {
            List::Listpack(pack) => {
                pack.remove_range(behind as i64, after);
                pack.remove_range(0, before);
            }
            List::Quicklist(quick) => {
                quick.remove_range(behind, after);
                quick.remove_range(0, before);
            }
        }
        self.shrunk(limits);
    }

    /// All elements from the front.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_from(0, End::Back)
    }

    /// The elements from `index` on, towards `end`. None if the index is beyond the last element.
    pub fn iter_from(&self, index: usize, end: End) -> Iter<'_> {
        match self {
            List::Listpack(pack) => Iter { pack: iter_pack(pack, index, end), rest: None, end },
            List::Quicklist(quick) => match quick.locate(index) {
                None => Iter { pack: None, rest: None, end },
                Some((node, index)) => {
                    let rest = match end {
                        End::Back => quick.nodes.range(node + 1..),
                        End::Front => quick.nodes.range(..node),
                    };
                    let pack = iter_pack(&quick.nodes[node].pack, index, end);
                    Iter { pack, rest: Some(rest), end }
                }
            },
        }
    }

    /// Indexes of the elements equal to `text`, among the first `len_max` elements from the front
    /// or, walking backwards, among the last ones.
    pub fn positions<'a>(
        &'a self,
        text: &'a [u8],
        from: End,
        len_max: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let needle = Needle::new(text);
        let last = self.len().saturating_sub(1);
        let walk = match from {
            End::Front => self.iter_from(0, End::Back),
            End::Back => self.iter_from(last, End::Front),
        };
        let found = walk.take(len_max).enumerate().filter(move |(_, value)| value.is(&needle));
        found.map(move |(step, _)| match from {
            End::Front => step,
            End::Back => last - step,
        })
    }

    /// The nodes as RDB files store them; a listpack is one node.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeBytes<'_>> {
        let count = match self {
            List::Listpack(_) => 1,
            List::Quicklist(quick) => quick.nodes.len(),
        };
        (0..count).map(|at| match self {
            List::Listpack(pack) => NodeBytes::Packed(pack.as_bytes()),
            List::Quicklist(quick) => quick.nodes[at].bytes(),
        })
    }

    /// Appends a node read from elsewhere; an empty one is left out. Once all are there, call
    /// [`List::settle`].
    pub fn append_packed(&mut self, pack: Listpack) {
        self.as_quicklist().append(Node::packed(pack));
    }

    /// Appends a large element read from elsewhere. Once all are there, call [`List::settle`].
    pub fn append_plain(&mut self, text: &[u8]) {
        self.as_quicklist().append(Node::with_element(text, true));
    }

    /// Gives the list the encoding that Redis gives it after loading.
    pub fn settle(&mut self, limits: ListLimits) {
        self.make_room(0, 0, limits);
        self.become_listpack(limits.node_limits());
    }

    /// After elements went: a quicklist becomes a listpack at half the limit, so that a list that
    /// swings round the limit is not converted back and forth.
    fn shrunk(&mut self, limits: ListLimits) {
        let (bytes_max, count_max) = limits.node_limits();
        self.become_listpack((bytes_max / 2, count_max / 2));
        if let List::Quicklist(quick) = self {
            quick.give_back();
        }
    }

    fn become_listpack(&mut self, (bytes_max, count_max): (usize, usize)) {
        let List::Quicklist(quick) = self else { return };
        if quick.nodes.len() > 1 {
            return;
        }
        let Some(node) = quick.nodes.front_mut() else {
            *self = List::new();
            return;
        };
        if !node.plain && node.pack.bytes() <= bytes_max && node.count as usize <= count_max {
            *self = List::Listpack(std::mem::take(&mut node.pack));
        }
    }

    fn as_quicklist(&mut self) -> &mut Quicklist {
        if let List::Listpack(pack) = self {
            *self = List::Quicklist(Box::new(Quicklist::from_listpack(std::mem::take(pack))));
        }
        match self {
            List::Quicklist(quick) => quick,
            List::Listpack(_) => unreachable!("converted one line up"),
        }
    }
}

impl<'a> IntoIterator for &'a List {
    type Item = Value<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Quicklist {
    fn from_listpack(pack: Listpack) -> Quicklist {
        let mut quick = Quicklist::default();
        quick.append(Node::packed(pack));
        quick
    }

    fn append(&mut self, node: Node) {
        if node.count > 0 {
            self.len += node.count as usize;
            self.nodes.push_back(node);
        }
    }

    fn end_node(&self, end: End) -> Option<usize> {
        let last = self.nodes.len().checked_sub(1)?;
        Some(if end == End::Front { 0 } else { last })
    }

    /// The node with the element at `index`, and the element's index in it. Walks from the nearer
    /// end.
    fn locate(&self, index: usize) -> Option<(usize, usize)> {
        if index >= self.len {
            return None;
        }
        if index < self.len / 2 {
            let mut left = index;
            for (at, node) in self.nodes.iter().enumerate() {
                if left < node.count as usize {
                    return Some((at, left));
                }
                left -= node.count as usize;
            }
        } else {
            let mut start = self.len;
            for (at, node) in self.nodes.iter().enumerate().rev() {
                start -= node.count as usize;
                if start <= index {
                    return Some((at, index - start));
                }
            }
        }
        unreachable!("the counts add up to the length")
    }

    fn push(&mut self, end: End, text: &[u8], limits: ListLimits) {
        self.len += 1;
        let at = self.end_node(end);
        if let Some(node) = at.map(|at| &mut self.nodes[at])
            && node.has_room(text, limits)
        {
            return node.push(end, text);
        }
        let node = Node::with_element(text, limits.is_large(text));
        match end {
            End::Front => self.nodes.push_front(node),
            End::Back => self.nodes.push_back(node),
        }
    }

    /// Inserts before the entry at `pos` of the node, which may be the node's end; the pivot is on
    /// the other `side`.
    fn insert(&mut self, at: usize, pos: Pos, side: Side, text: &[u8], limits: ListLimits) {
        self.len += 1;
        let node = &mut self.nodes[at];
        if node.has_room(text, limits) {
            node.pack.insert_before(pos, text);
            node.count += 1;
            return;
        }
        let (first, end) = (pos == node.pack.first(), pos == node.pack.end());
        if first && at > 0 && self.nodes[at - 1].has_room(text, limits) {
            return self.nodes[at - 1].push(End::Back, text);
        }
        if end && at + 1 < self.nodes.len() && self.nodes[at + 1].has_room(text, limits) {
            return self.nodes[at + 1].push(End::Front, text);
        }
        if first {
            self.nodes.insert(at, Node::with_element(text, limits.is_large(text)));
            return;
        }
        if end {
            self.nodes.insert(at + 1, Node::with_element(text, limits.is_large(text)));
            return;
        }
        let mut right = self.nodes[at].split_off(pos);
        if limits.is_large(text) {
            self.nodes.insert(at + 1, right);
            self.nodes.insert(at + 1, Node::with_element(text, true));
            return;
        }
        // The new element joins the half that the pivot is not in.
        let center = match side {
            Side::Before => {
                self.nodes[at].push(End::Back, text);
                at + 1
            }
            Side::After => {
                right.push(End::Front, text);
                at
            }
        };
        self.nodes.insert(at + 1, right);
        self.merge_around(center, limits);
    }

    /// Replaces the element at `index`, which must exist.
    fn set(&mut self, index: usize, text: &[u8], limits: ListLimits) {
        let (at, index) = self.locate(index).expect("an index below the length");
        let node = &mut self.nodes[at];
        let pos = node.pack.pos_at(index as i64).expect("the index was found in this node");
        let large = limits.is_large(text);
        if !large && !node.plain {
            // As in Redis, this may push a node over its limit.
            node.pack.replace(pos, text);
        } else if large && node.count == 1 {
            *node = Node::with_element(text, true);
        } else if node.plain {
            self.removed(at, 1);
            self.len += 1;
            match self.nodes.get_mut(at) {
                Some(next) if next.has_room(text, limits) => {
                    next.push(End::Front, text);
                }
                _ => self.nodes.insert(at, Node::with_element(text, false)),
            }
        } else {
            node.pack.remove(pos);
            node.count -= 1;
            self.len -= 1;
            self.insert(at, pos, Side::Before, text, limits);
        }
    }

    /// Merges neighbours near node `center` where both fit one node, so that inserting in the
    /// middle does not leave a trail of small ones. The pairs and their order are Redis's.
    fn merge_around(&mut self, center: usize, limits: ListLimits) {
        let merged_before = center >= 2 && self.merge(center - 2, limits);
        let center = center - usize::from(merged_before);
        self.merge(center + 1, limits);
        let merged_before = center >= 1 && self.merge(center - 1, limits);
        self.merge(center - usize::from(merged_before), limits);
    }

    /// Merges node `at` and the next, if there is one and both fit one node.
    fn merge(&mut self, at: usize, limits: ListLimits) -> bool {
        let (Some(left), Some(right)) = (self.nodes.get(at), self.nodes.get(at + 1)) else {
            return false;
        };
        let bytes = left.pack.bytes() + right.pack.bytes() - EMPTY_BYTES;
        let count = (left.count + right.count) as usize;
        if left.plain || right.plain || limits.exceeded_by(bytes, count) {
            return false;
        }
        let right = self.nodes.remove(at + 1).expect("it was there above");
        self.nodes[at].pack.append(&right.pack);
        self.nodes[at].count += right.count;
        true
    }

    fn remove_range(&mut self, index: usize, count: usize) -> usize {
        let wanted = count.min(self.len.saturating_sub(index));
        let Some((first, mut start)) = self.locate(index).filter(|_| wanted > 0) else { return 0 };
        let (mut left, mut behind) = (wanted, first);
        while left > 0 {
            let node = &mut self.nodes[behind];
            let here = left.min(node.count as usize - start);
            if here < node.count as usize {
                node.pack.remove_range(start as i64, here);
            }
            node.count -= here as u32;
            left -= here;
            start = 0;
            behind += 1;
        }
        // Only the first and the last of these nodes can have kept elements.
        let from = first + usize::from(self.nodes[first].count > 0);
        let to = behind - usize::from(self.nodes[behind - 1].count > 0);
        self.nodes.drain(from..to.max(from));
        self.len -= wanted;
        wanted
    }

    fn remove_equal(&mut self, needle: &Needle<'_>, wanted: usize, end: End) -> usize {
        let mut left = wanted;
        let remove = |node: &mut Node| {
            if left > 0 {
                let removed = remove_equal(&mut node.pack, needle, left, end);
                node.count -= removed as u32;
                left -= removed;
            }
        };
        match end {
            End::Front => self.nodes.iter_mut().for_each(remove),
            End::Back => self.nodes.iter_mut().rev().for_each(remove),
        }
        let removed = wanted - left;
        if removed > 0 {
            self.nodes.retain(|node| node.count > 0);
            self.len -= removed;
        }
        removed
    }

    /// Halves a ring that is mostly empty.
    fn give_back(&mut self) {
        let used = self.nodes.len();
        if self.nodes.capacity() > RING_NODES_KEPT.max(4 * used) {
            self.nodes.shrink_to(2 * used);
        }
    }

    /// Accounts for elements that were removed from node `at`.
    fn removed(&mut self, at: usize, count: u32) {
        self.len -= count as usize;
        self.nodes[at].count -= count;
        if self.nodes[at].count == 0 {
            self.nodes.remove(at);
        }
    }
}

impl Node {
    fn packed(pack: Listpack) -> Node {
        Node { count: pack.len() as u32, pack, plain: false }
    }

    fn with_element(text: &[u8], plain: bool) -> Node {
        let mut pack = Listpack::new();
        pack.push_back(text);
        Node { pack, count: 1, plain }
    }

    fn push(&mut self, end: End, text: &[u8]) {
        self.count += 1;
        match end {
            End::Front => self.pack.push_front(text),
            End::Back => self.pack.push_back(text),
        }
    }

    fn has_room(&self, text: &[u8], limits: ListLimits) -> bool {
        let bytes = self.pack.bytes() + text.len() + ELEMENT_OVERHEAD;
        !self.plain && !limits.is_large(text) && !limits.exceeded_by(bytes, self.count as usize + 1)
    }

    fn split_off(&mut self, pos: Pos) -> Node {
        let count = self.pack.iter_from(pos).count();
        self.count -= count as u32;
        Node { pack: self.pack.split_off(pos, count), count: count as u32, plain: false }
    }

    fn bytes(&self) -> NodeBytes<'_> {
        match self.pack.value(self.pack.first()) {
            Some(Value::Bytes(text)) if self.plain => NodeBytes::Plain(text),
            _ => NodeBytes::Packed(self.pack.as_bytes()),
        }
    }
}

/// Elements of a list in one direction.
#[derive(Clone)]
pub struct Iter<'a> {
    pack: Option<listpack::Iter<'a>>,
    rest: Option<std::collections::vec_deque::Iter<'a, Node>>,
    end: End,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        loop {
            let pack = self.pack.as_mut()?;
            let next = match self.end {
                End::Back => pack.next(),
                End::Front => pack.next_back(),
            };
            if let Some((_, value)) = next {
                return Some(value);
            }
            let node = match self.end {
                End::Back => self.rest.as_mut()?.next(),
                End::Front => self.rest.as_mut()?.next_back(),
            };
            self.pack = node.map(|node| node.pack.iter());
        }
    }
}

/// An index from the front, if it is within a list of `len`.
fn from_front(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(len as i64)? } else { index };
    usize::try_from(index).ok().filter(|&index| index < len)
}

/// The entries of `pack` from the one at `index` on, towards `end`.
fn iter_pack(pack: &Listpack, index: usize, end: End) -> Option<listpack::Iter<'_>> {
    let pos = pack.pos_at(index as i64)?;
    Some(match end {
        End::Back => pack.iter_from(pos),
        End::Front => pack.iter_between(pack.first(), pack.after(pos)),
    })
}

/// Where to insert to be on this side of the entry at `pos`.
fn beside(pack: &Listpack, pos: Pos, side: Side) -> Pos {
    match side {
        Side::Before => pos,
        Side::After => pack.after(pos),
    }
}

fn remove_end(pack: &mut Listpack, end: End) {
    match end {
        End::Front => pack.remove(pack.first()),
        End::Back => pack.last().into_iter().for_each(|pos| pack.remove(pos)),
    }
}

/// Removes up to `wanted` entries equal to `needle`, those nearest to `end`, in one pass.
fn remove_equal(pack: &mut Listpack, needle: &Needle<'_>, wanted: usize, end: End) -> usize {
    let mut spared = match end {
        End::Front => 0,
        End::Back => {
            let equal = pack.iter().filter(|(_, value)| value.is(needle)).count();
            equal.saturating_sub(wanted)
        }
    };
    let mut left = wanted;
    pack.retain(|value| {
        if left == 0 || !value.is(needle) {
            return true;
        }
        if spared > 0 {
            spared -= 1;
            return true;
        }
        left -= 1;
        false
    })
}

#[cfg(test)]
mod tests;
