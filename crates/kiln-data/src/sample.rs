//! What sets and hashes share: drawing several elements without repetition (SRANDMEMBER,
//! HRANDFIELD), estimating memory from some of many elements (MEMORY USAGE), looking for repeated
//! elements.

use rand::{Rng, RngExt};

/// Up to one in so many elements of a table is drawn one by one, and repetitions are dropped;
/// more are taken in one pass over all.
pub(crate) const SPARSE: usize = 4;

/// Bytes of `total` allocations, from the sizes of the first `samples` of them (0: of all).
pub(crate) fn estimate(total: usize, samples: usize, sizes: impl Iterator<Item = usize>) -> usize {
    let samples = if samples == 0 { total } else { samples.min(total) };
    let sum: usize = sizes.take(samples).sum();
    (sum * total).checked_div(samples).unwrap_or(0)
}

/// Whether two of the key hashes of elements from elsewhere are equal, that is, whether an element
/// is there twice. (Other elements of one hash are as unlikely as a bit error: the hash has 64 bits
/// and is keyed at random.)
pub(crate) fn has_repeated(hashes: impl Iterator<Item = u64>) -> bool {
    let mut hashes: Vec<u64> = hashes.collect();
    hashes.sort_unstable();
    hashes.windows(2).any(|pair| pair[0] == pair[1])
}

/// Calls `each` with `count` of the `total` items of `items`, every subset being equally likely, in
/// the items' order. One pass, no memory. (Algorithm S of Knuth's volume 2, 3.4.2.)
pub(crate) fn select<T>(
    rng: &mut (impl Rng + ?Sized),
    items: impl Iterator<Item = T>,
    total: usize,
    count: usize,
    mut each: impl FnMut(T),
) {
    let mut wanted = count.min(total);
    for (left, item) in (1..=total).rev().zip(items) {
        if wanted == 0 {
            return;
        }
        if rng.random_range(0..left) < wanted {
            wanted -= 1;
            each(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::select;

    #[test]
    fn every_pair_is_drawn_about_as_often() {
        let mut rng = StdRng::seed_from_u64(7);
        let mut drawn = [[0; 5]; 5];
        for _ in 0..10_000 {
            let mut pair = Vec::new();
            select(&mut rng, 0..5_usize, 5, 2, |item| pair.push(item));
            drawn[pair[0]][pair[1]] += 1;
        }
        for (first, row) in drawn.iter().enumerate() {
            for (second, times) in row.iter().enumerate() {
                let fair = if first < second { 850..1_150 } else { 0..1 };
                assert!(fair.contains(times), "{first} {second} {times}");
            }
        }
    }

    #[test]
    fn more_than_there_are_is_all() {
        let mut all = Vec::new();
        select(&mut StdRng::seed_from_u64(7), 0..3, 3, 9, |item| all.push(item));
        assert_eq!(all, [0, 1, 2]);
    }
}
