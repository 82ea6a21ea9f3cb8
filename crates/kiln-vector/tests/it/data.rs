//! Vectors for the tests: clusters, as embeddings have them. Random vectors without any are all
//! equally far from each other, which no real data is, and make every graph look bad.

use kiln_vector::{Hit, Index, IndexConfig, Metric, Request, Target};

/// A small generator, so that a failure names its seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// About normal: the sum of four uniform numbers.
    fn normal(&mut self) -> f32 {
        (0..4).map(|_| (self.next() >> 40) as f32 / (1 << 24) as f32 - 0.5).sum::<f32>() * 1.7
    }

    pub(crate) fn vector(&mut self, dim: usize) -> Vec<f32> {
        (0..dim).map(|_| self.normal()).collect()
    }

    /// A vector near `center`.
    pub(crate) fn near(&mut self, center: &[f32], spread: f32) -> Vec<f32> {
        center.iter().map(|x| x + spread * self.normal()).collect()
    }
}

/// `count` vectors in clusters of about 50.
pub(crate) fn clustered(count: usize, dim: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut random = Random(seed);
    let centers: Vec<Vec<f32>> = (0..=count / 50).map(|_| random.vector(dim)).collect();
    (0..count)
        .map(|_| {
            let center = random.below(centers.len());
            random.near(&centers[center], 0.6)
        })
        .collect()
}

pub(crate) fn index(dim: usize) -> Index {
    Index::new(IndexConfig::new(dim, Metric::Cosine)).expect("a valid configuration")
}

/// An index of `vectors`, named by their numbers.
pub(crate) fn filled(vectors: &[Vec<f32>]) -> Index {
    let index = index(vectors[0].len());
    for (number, vector) in vectors.iter().enumerate() {
        insert(&index, &number.to_string(), vector);
    }
    index
}

pub(crate) fn insert(index: &Index, name: &str, vector: &[f32]) -> bool {
    index.insert(name.as_bytes(), vector).expect("a valid vector")
}

pub(crate) fn remove(index: &Index, name: &str) -> bool {
    index.remove(name.as_bytes()).is_some()
}

pub(crate) fn search(index: &Index, request: &Request<'_>) -> Vec<Hit> {
    index.search(request).expect("a valid query").expect("an element that exists")
}

/// The names of the `count` elements nearest to `vector` as a walk finds them.
pub(crate) fn nearest(index: &Index, vector: &[f32], count: usize, ef: usize) -> Vec<String> {
    names(&search(index, &Request { ef: Some(ef), ..Request::new(Target::Vector(vector), count) }))
}

/// The same by comparing with every element.
pub(crate) fn truth(index: &Index, vector: &[f32], count: usize) -> Vec<String> {
    names(&search(index, &Request { exact: true, ..Request::new(Target::Vector(vector), count) }))
}

pub(crate) fn names(hits: &[Hit]) -> Vec<String> {
    hits.iter().map(|hit| String::from_utf8_lossy(&hit.name).into_owned()).collect()
}

/// The share of the true ten nearest that a walk finds.
pub(crate) fn recall_at_10(index: &Index, queries: &[Vec<f32>], ef: usize) -> f64 {
    let mut found = 0;
    for query in queries {
        let truth = truth(index, query, 10);
        found += nearest(index, query, 10, ef).iter().filter(|n| truth.contains(n)).count();
    }
    found as f64 / (10 * queries.len()) as f64
}
