//! Searching among given names: for a filter that can list what passes, and lists little.
//!
//! A scan or a walk asks the filter about elements in order of distance. Where a hundred of a
//! million pass, looking those hundred up by name is hundreds of times less work, and exact.

#![expect(unsafe_code, reason = "rows are read inside the epoch")]

use crate::error::VectorError;
use crate::index::Index;
use crate::scratch;
use crate::search::Hit;

impl Index {
    /// The `count` elements nearest to `vector` of those called `names`, nearest first; of equally
    /// near ones the first by name. Names that are no elements are passed over; a name that comes
    /// twice counts twice. Compares with each of them exactly.
    ///
    /// # Errors
    ///
    /// [`VectorError::Dimension`], then [`VectorError::NotFinite`].
    pub fn nearest_among<'n>(
        &self,
        vector: &[f32],
        names: impl IntoIterator<Item = &'n [u8]>,
        count: usize,
    ) -> Result<Vec<Hit>, VectorError> {
        self.graph.codec.check(vector)?;
        let mut ranked: Vec<(f32, &[u8])> = Vec::new();
        scratch::with(|scratch| {
            let guard = self.graph.epochs.enter();
            // SAFETY: ids come from names, loaded under this guard.
            let nodes = unsafe { self.graph.rows.reader(&guard) };
            let mut query = std::mem::take(&mut scratch.query);
            self.graph.codec.prepare_into(vector, &mut query);
            for name in names {
                if let Some(node) = self.names.find(name) {
                    ranked.push((self.graph.codec.exact(&query, nodes.node(node)), name));
                }
            }
            scratch.query = query;
        });
        ranked.sort_unstable_by(|(a, x), (b, y)| a.total_cmp(b).then_with(|| x.cmp(y)));
        ranked.truncate(count);
        let hit =
            |(distance, name): (f32, &[u8])| Hit { name: name.into(), distance, attributes: None };
        Ok(ranked.into_iter().map(hit).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Index, IndexConfig, Metric};

    #[test]
    fn only_the_names_given_are_ranked() {
        let index = Index::new(IndexConfig::new(2, Metric::L2)).expect("two dimensions");
        for number in 0..100_u8 {
            let vector = [f32::from(number), 0.0];
            index.insert(&[number], &vector).expect("a finite vector");
        }
        let names: [&[u8]; 5] = [b"none", &[90], &[10], &[14], &[12]];
        let hits = index.nearest_among(&[12.0, 0.0], names, 3).expect("a finite vector");
        let found: Vec<_> = hits.iter().map(|hit| (hit.name[0], hit.distance as u32)).collect();
        assert_eq!(found, [(12, 0), (10, 4), (14, 4)]);
        assert!(index.nearest_among(&[12.0], names, 3).is_err());
    }
}
