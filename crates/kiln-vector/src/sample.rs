//! Random elements.

use std::collections::HashSet;
use std::ops::Bound;

use crate::index::{Index, splitmix};

/// Nodes tried for each element wanted, before all names are gone through instead.
const TRIES: u64 = 32;

impl Index {
    /// The names of `count` random elements, decided by `seed`: each at most once if `distinct`
    /// (and no more than there are), else each draw by itself.
    pub fn random(&self, count: usize, distinct: bool, seed: u64) -> Vec<Box<[u8]>> {
        let elements = self.len();
        if elements == 0 || count == 0 {
            return Vec::new();
        }
        let wanted = if distinct { count.min(elements) } else { count };
        let mut names = Vec::with_capacity(wanted.min(elements.saturating_mul(2)));
        let mut seen = HashSet::new();
        // Past half of all, drawing meets mostly what it has.
        if !(distinct && wanted * 2 > elements) {
            let guard = self.graph.epochs.enter();
            let end = u64::from(self.graph.rows.arena.end());
            for draw in 0..TRIES.saturating_mul(wanted as u64) {
                if names.len() == wanted {
                    return names;
                }
                let node = (u128::from(splitmix(splitmix(seed) ^ draw)) * u128::from(end)) >> 64;
                let Some(element) = self.element_at(node as u32, &guard) else { continue };
                if element.node != node as u32 {
                    continue; // Replaced; the new node has its own chance.
                }
                if !distinct || seen.insert(element.node) {
                    names.push(element.name.into());
                }
            }
        }
        self.random_from_all(wanted, distinct, seed)
    }

    /// For sets of which most is removed, or wanted.
    fn random_from_all(&self, wanted: usize, distinct: bool, seed: u64) -> Vec<Box<[u8]>> {
        let mut names: Vec<Box<[u8]>> = Vec::new();
        self.visit_names((Bound::Unbounded, Bound::Unbounded), |name| {
            names.push(name.into());
            true
        });
        let below = |draw: usize, end: usize| {
            let random = splitmix(splitmix(seed) ^ draw as u64);
            ((u128::from(random) * end as u128) >> 64) as usize
        };
        if distinct || names.is_empty() {
            let wanted = wanted.min(names.len());
            for at in 0..wanted {
                let other = at + below(at, names.len() - at);
                names.swap(at, other);
            }
            names.truncate(wanted);
            return names;
        }
        (0..wanted).map(|draw| names[below(draw, names.len())].clone()).collect()
    }
}
