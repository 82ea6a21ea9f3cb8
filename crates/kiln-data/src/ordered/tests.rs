//! The tree against a sorted vector, with its invariants checked node by node.

#![expect(unsafe_code, reason = "the tests own items as a sorted set does")]

use std::collections::BTreeMap;

use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::{FEW_CELLS, ItemRef, LEAF_CELLS, Node, OrderedTree, compare, item::ZItem};

/// A tree and what owns its items.
struct Owned {
    tree: OrderedTree,
    items: BTreeMap<Vec<u8>, ZItem>,
}

impl Owned {
    fn new() -> Self {
        Self { tree: OrderedTree::new(), items: BTreeMap::new() }
    }

    fn add(&mut self, score: f64, member: &[u8]) {
        if let Some(item) = self.items.get(member) {
            let shared = share(item);
            self.tree.move_to(item.score(), score, shared);
            set_score(item, score);
        } else {
            let item = ZItem::new(score, member);
            self.tree.insert(score, share(&item));
            self.items.insert(member.to_vec(), item);
        }
    }

    fn remove(&mut self, member: &[u8]) {
        if let Some(item) = self.items.remove(member) {
            self.tree.remove(item.score(), share(&item));
        }
    }

    fn remove_ranks(&mut self, ranks: std::ops::Range<usize>) -> Vec<Vec<u8>> {
        let mut removed = Vec::new();
        self.tree.remove_ranks(ranks, |item| removed.push(item.member().to_vec()));
        for member in &removed {
            self.items.remove(member).expect("it was an element");
        }
        removed
    }

    /// The elements in order, from the items alone.
    fn model(&self) -> Vec<(f64, &[u8])> {
        let mut sorted: Vec<_> =
            self.items.values().map(|item| (item.score(), item.member())).collect();
        sorted.sort_by(|a, b| compare(*a, *b));
        sorted
    }

    fn check(&self) {
        check_node(&self.tree.root, true);
        let model = self.model();
        assert_eq!(self.tree.len(), model.len());
        let elements = || self.tree.elements(0..model.len());
        let forward: Vec<_> = elements().map(|(at, item)| (at, item.member())).collect();
        assert_eq!(forward, model);
        let mut backward: Vec<_> = elements().rev().map(|(at, item)| (at, item.member())).collect();
        backward.reverse();
        assert_eq!(backward, model);
    }
}

fn share(item: &ZItem) -> ItemRef {
    // SAFETY: `Owned` takes every element out of the tree before it drops the item, and no
    // borrow of an item outlives the statement it is in.
    unsafe { item.share() }
}

fn set_score(item: &ZItem, score: f64) {
    // SAFETY: nothing else looks at the item meanwhile.
    unsafe { share(item).set_score(score) };
}

/// Checks a node against the invariants of the module; returns its height.
fn check_node(node: &Node, is_root: bool) -> usize {
    match node {
        Node::Leaf(leaf) => {
            assert!(is_root || leaf.len > 0);
            0
        }
        Node::Branch(branch) => {
            assert!(branch.len > usize::from(is_root));
            let mut heights = Vec::new();
            for index in 0..branch.len {
                let child = branch.child(index);
                assert_eq!(branch.counts[index], child.count());
                assert_eq!((branch.scores[index], branch.items[index]), child.first());
                heights.push(check_node(child, false));
            }
            assert!(heights.windows(2).all(|pair| pair[0] == pair[1]));
            assert!(branch.children[branch.len..].iter().all(Option::is_none));
            heights[0] + 1
        }
    }
}

fn count_leaves(node: &Node) -> usize {
    match node {
        Node::Leaf(_) => 1,
        Node::Branch(branch) => {
            (0..branch.len).map(|index| count_leaves(branch.child(index))).sum()
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(f64, u16),
    Remove(u16),
    RemoveRanks(u16, u16),
}

fn step() -> impl Strategy<Value = Step> {
    let score = prop_oneof![
        8 => (-20i32..20).prop_map(f64::from),
        2 => any::<f64>().prop_filter("a score is a number", |score| !score.is_nan()),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
        1 => Just(-0.0),
    ];
    prop_oneof![
        10 => (score, 0u16..400).prop_map(|(score, name)| Step::Add(score, name)),
        5 => (0u16..400).prop_map(Step::Remove),
        1 => (any::<u16>(), 0u16..60).prop_map(|(at, len)| Step::RemoveRanks(at, len)),
    ]
}

fn name(number: u16) -> Vec<u8> {
    format!("m{number}").into_bytes()
}

proptest! {
    #[test]
    fn any_steps_leave_the_elements_of_the_model(
        steps in proptest::collection::vec(step(), 0..600),
    ) {
        let mut owned = Owned::new();
        for step in steps {
            match step {
                Step::Add(score, member) => owned.add(score, &name(member)),
                Step::Remove(member) => owned.remove(&name(member)),
                Step::RemoveRanks(at, len) => {
                    let len_before = owned.tree.len();
                    let start = usize::from(at) % (len_before + 1);
                    let end = len_before.min(start + usize::from(len));
                    let want: Vec<_> =
                        owned.model()[start..end].iter().map(|(_, m)| m.to_vec()).collect();
                    prop_assert_eq!(owned.remove_ranks(start..end), want);
                }
            }
        }
        owned.check();
        for (rank, (score, member)) in owned.model().into_iter().enumerate() {
            prop_assert_eq!(owned.tree.rank(score, member), rank);
            let (found_score, found) = owned.tree.get(rank);
            prop_assert_eq!((found_score, found.member()), (score, member));
        }
        for bound in [f64::NEG_INFINITY, -3.0, 0.0, 7.0, f64::INFINITY] {
            let below = owned.model().iter().filter(|(score, _)| *score < bound).count();
            prop_assert_eq!(owned.tree.rank_where(|score, _| score < bound), below);
        }
        let members: Vec<_> = owned.items.keys().cloned().collect();
        for member in members {
            owned.remove(&member);
        }
        owned.check();
    }

    #[test]
    fn a_range_read_from_both_ends_meets_in_the_middle(
        start in 0usize..100,
        len in 0usize..100,
        from_front in proptest::collection::vec(any::<bool>(), 120),
    ) {
        let mut owned = Owned::new();
        for number in 0..200u16 {
            owned.add(f64::from(number), &name(number));
        }
        let mut elements = owned.tree.elements(start..start + len);
        let (mut low, mut high) = (start, start + len);
        for front in from_front {
            prop_assert_eq!(elements.len(), high - low);
            let got = if front { elements.next() } else { elements.next_back() };
            let want = (low < high).then(|| {
                if front { low += 1; low - 1 } else { high -= 1; high }
            });
            prop_assert_eq!(got.map(|(score, _)| score as usize), want);
        }
    }
}

#[test]
fn ordered_loads_fill_the_nodes() {
    for descending in [false, true] {
        let mut owned = Owned::new();
        for number in 0..5_000i32 {
            let score = f64::from(if descending { -number } else { number });
            owned.add(score, format!("{number}").as_bytes());
        }
        owned.check();
        assert_eq!(count_leaves(&owned.tree.root), 5_000_usize.div_ceil(LEAF_CELLS));
    }
}

#[test]
fn removal_from_either_end_and_the_middle_empties_the_tree() {
    for choose in [|_| 0, |len| len - 1, |len| len / 2] {
        let mut owned = Owned::new();
        for number in 0..1_000u16 {
            owned.add(f64::from(u32::from(number) * 7919 % 1_000), &name(number));
        }
        while owned.tree.len() > 0 {
            let rank: usize = choose(owned.tree.len());
            owned.remove_ranks(rank..rank + 1);
            if owned.tree.len().is_multiple_of(50) {
                owned.check();
            }
        }
    }
}

#[test]
fn a_small_move_stays_in_its_cell() {
    const { assert!(FEW_CELLS >= 2) };
    let mut owned = Owned::new();
    for number in 0..100u16 {
        owned.add(f64::from(number) * 10.0, &name(number));
    }
    let mut in_place = 0;
    for number in 0..100u16 {
        let old = f64::from(number) * 10.0;
        let item = &owned.items[&name(number)];
        let shared = share(item);
        if owned.tree.move_within_neighbors(old, old + 5.0, shared) {
            in_place += 1;
            set_score(item, old + 5.0);
        }
    }
    owned.check();
    assert!(in_place > 50, "{in_place} of 100");
}
