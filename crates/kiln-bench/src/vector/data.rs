//! The vectors that are searched, and the exact answers.
//!
//! ```text
//! shared data, 384 wide ─┬─────────────────────────────► Form of 384
//!                        └► three nearest other rows ─► Form of 1,536     (made once, kept)
//! Form ─► float64 scan ─► the ten nearest of all rows, and of 10, 1 and 0.1%  (made once, kept)
//! ```
//!
//! A row of the wide form is a row and its three nearest other rows end to end, normalised; a
//! query is the same with its three nearest base rows. So neighbors stay neighbors, and a set as
//! wide as the larger embedding models' has the cluster structure of real text.
//!
//! Row `i` carries the attribute `n` = `i` modulo 1,000. Rows lie in random order, so a condition
//! on `n` keeps a random share of them.
//!
//! What is made is kept in files whose names hold [`VERSION`], the width and the number of rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, Result, ensure};

use super::npy::{self, Matrix};

/// Part of the names of kept files: to be raised when what they hold changes.
const VERSION: &str = "v1";

/// How many answers a query has; recall is recall@10.
pub const COUNT: usize = 10;

/// Values that the attribute `n` takes.
pub const ATTRIBUTE_VALUES: usize = 1_000;

/// How many of a thousand rows are kept: by no filter, and by those that are measured.
pub const KEPT_PER_MILLE: [usize; 4] = [ATTRIBUTE_VALUES, 100, 10, 1];

/// How many parts a wide row has: the row itself and its neighbors.
const PARTS: usize = 4;

/// Rows compared with as many others at a time: both blocks stay in the second-level cache.
const BLOCK_ROWS: usize = 128;

/// Sums that a dot product adds up side by side; rows are as wide as a multiple of it.
const LANES: usize = 16;

const BASE: &str = "wordnet-minilm-384.f16.npy";
const QUERIES: &str = "wordnet-minilm-384-queries.f32.npy";

/// One width of the data, with its exact answers.
#[derive(Debug)]
pub struct Form {
    /// The vectors to be searched; row number is identity.
    pub base: Matrix<f32>,
    /// The vectors to search for.
    pub queries: Matrix<f32>,
    truth: Matrix<i32>,
}

impl Form {
    /// Components of a vector.
    pub fn width(&self) -> usize {
        self.base.width()
    }

    /// The rows that are nearest to query `at` among those that a filter keeps.
    ///
    /// Fewer than [`COUNT`] if the filter keeps fewer.
    pub fn nearest(&self, at: usize, kept_per_mille: usize) -> &[i32] {
        let filter = KEPT_PER_MILLE.iter().position(|kept| *kept == kept_per_mille);
        let filter = filter.expect("one of the filters that the truth was found for");
        let found = &self.truth.row(at)[filter * COUNT..][..COUNT];
        &found[..found.iter().position(|row| *row < 0).unwrap_or(COUNT)]
    }
}

/// Where data come from and where what is made of them is kept.
#[derive(Clone, Debug)]
pub struct Source {
    /// The folder of the shared data.
    pub data: PathBuf,
    /// The folder of what is made.
    pub kept: PathBuf,
    /// Take so many base rows.
    pub rows: usize,
    /// Take so many queries.
    pub queries: usize,
}

impl Source {
    /// The data as they are, then the wide form if it is asked for.
    pub fn forms(&self, narrow: bool, wide: bool) -> Result<Vec<Form>> {
        let mut base = npy::read_floats(&self.data.join(BASE))?;
        let mut queries = npy::read_floats(&self.data.join(QUERIES))?;
        base.truncate(self.rows);
        queries.truncate(self.queries);
        ensure!(base.width() == queries.width(), "base and queries differ in width");
        ensure!(base.width().is_multiple_of(LANES), "the width is no multiple of {LANES}");
        ensure!(base.len() > COUNT && !queries.is_empty(), "too few rows");
        fs::create_dir_all(&self.kept)
            .with_context(|| format!("create {}", self.kept.display()))?;
        let mut forms = Vec::new();
        if wide {
            let path = |part| self.kept_file(base.width() * PARTS, part);
            let wide_base = kept_floats(&path("base"), || widen(&base, &base, true))?;
            let wide_queries = kept_floats(&path("queries"), || widen(&queries, &base, false))?;
            forms.push(self.with_truth(wide_base, wide_queries)?);
        }
        if narrow {
            forms.insert(0, self.with_truth(base, queries)?);
        }
        Ok(forms)
    }

    /// The file that holds `part` of the form of this width.
    pub fn kept_file(&self, width: usize, part: &str) -> PathBuf {
        let (rows, queries) = (self.rows, self.queries);
        self.kept.join(format!("{VERSION}-{width}-{rows}-{queries}-{part}.npy"))
    }

    fn with_truth(&self, base: Matrix<f32>, queries: Matrix<f32>) -> Result<Form> {
        let path = self.kept_file(base.width(), "truth");
        if !path.exists() {
            eprintln!("kiln-bench: scan {} rows for exact answers", base.len());
            npy::write_integers(&path, &scan(&base, &queries))?;
        }
        let truth = npy::read_integers(&path)?;
        let wanted = (queries.len(), COUNT * KEPT_PER_MILLE.len());
        ensure!((truth.len(), truth.width()) == wanted, "{} is of other data", path.display());
        Ok(Form { base, queries, truth })
    }
}

fn kept_floats(path: &Path, make: impl Fn() -> Matrix<f32>) -> Result<Matrix<f32>> {
    if !path.exists() {
        eprintln!("kiln-bench: make {}", path.display());
        npy::write_floats(path, &make())?;
    }
    npy::read_floats(path)
}

/// Each row of `of` and its nearest of `base` end to end, of length 1.
fn widen(of: &Matrix<f32>, base: &Matrix<f32>, same: bool) -> Matrix<f32> {
    let blocks = in_parallel(of.len(), |start, end| {
        let mut values = Vec::with_capacity((end - start) * base.width() * PARTS);
        for (at, near) in (start..end).zip(nearest_others(of, start..end, base, same)) {
            let parts = near.iter().map(|row| base.row(*row));
            let wide: Vec<f32> =
                std::iter::once(of.row(at)).chain(parts).flatten().copied().collect();
            let length = wide.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            values.extend(wide.iter().map(|v| (f64::from(*v) / length) as f32));
        }
        values
    });
    Matrix::new(base.width() * PARTS, blocks.concat())
}

/// For each of `rows` of `of`, the rows of `base` with the largest dot products, first the largest;
/// never the row itself if both are the `same`.
fn nearest_others(
    of: &Matrix<f32>,
    rows: std::ops::Range<usize>,
    base: &Matrix<f32>,
    same: bool,
) -> Vec<[usize; PARTS - 1]> {
    let mut all = vec![[(f32::NEG_INFINITY, usize::MAX); PARTS - 1]; rows.len()];
    for first in (0..base.len()).step_by(BLOCK_ROWS) {
        for (best, at) in all.iter_mut().zip(rows.clone()) {
            for other in first..(first + BLOCK_ROWS).min(base.len()) {
                if same && other == at {
                    continue;
                }
                let dot = dot(of.row(at), base.row(other));
                let Some(place) = best.iter().position(|(better, _)| dot > *better) else {
                    continue;
                };
                best[place..].rotate_right(1);
                best[place] = (dot, other);
            }
        }
    }
    all.into_iter().map(|best| best.map(|(_, row)| row)).collect()
}

/// A dot product whose order of additions is fixed, so that every machine makes the same rows.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum()
}

/// For each query the nearest rows by cosine in float64, ties to the lower row: [`COUNT`] for each
/// filter, -1 where a filter keeps too few.
fn scan(base: &Matrix<f32>, queries: &Matrix<f32>) -> Matrix<i32> {
    let lengths: Vec<f64> = base.rows().map(|row| dot_exact(row, row).sqrt()).collect();
    let blocks = in_parallel(queries.len(), |start, end| {
        let mut found = Vec::new();
        for query in start..end {
            let query = queries.row(query);
            let mut order: Vec<(f64, usize)> = base
                .rows()
                .enumerate()
                .map(|(at, row)| (dot_exact(query, row) / lengths[at], at))
                .collect();
            order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            for kept in KEPT_PER_MILLE {
                let passing = order.iter().filter(|(_, at)| at % ATTRIBUTE_VALUES < kept);
                let rows = passing.map(|(_, at)| *at as i32).chain(std::iter::repeat(-1));
                found.extend(rows.take(COUNT));
            }
        }
        found
    });
    Matrix::new(COUNT * KEPT_PER_MILLE.len(), blocks.concat())
}

fn dot_exact(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += f64::from(a[lane]) * f64::from(b[lane]);
        }
    }
    sums.iter().sum()
}

/// Cuts `0..count` into a range for each core, and returns what `work` makes of them in order.
fn in_parallel<T: Send>(count: usize, work: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let step = count.div_ceil(threads).max(1);
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..count)
            .step_by(step)
            .map(|start| scope.spawn(move || work(start, (start + step).min(count))))
            .collect();
        running.into_iter().map(|thread| thread.join().expect("a scan does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    fn random(rows: usize, width: usize, seed: u64) -> Matrix<f32> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let values = (0..rows * width).map(|_| rng.random::<f32>() - 0.5).collect();
        Matrix::new(width, values)
    }

    #[test]
    fn a_wide_row_is_the_row_and_its_three_nearest_others() {
        let axis = |at: usize, tilt: f32| {
            let mut row = vec![0.0; 16];
            row[at] = 1.0;
            row[15] = tilt;
            row
        };
        let rows = [axis(0, 0.0), axis(0, 0.1), axis(0, 0.3), axis(0, 0.2), axis(1, 0.0)];
        let base = Matrix::new(16, rows.concat());
        let wide = widen(&base, &base, true);
        assert_eq!((wide.len(), wide.width()), (5, 64));
        // Rows 1, 2 and 3 have the same dot product with row 0: ties go to the lower number.
        let scale = 1.0 / wide.row(0)[0];
        let scaled: Vec<f32> = wide.row(0).iter().map(|v| v * scale).collect();
        let want = [&rows[0][..], &rows[1], &rows[2], &rows[3]].concat();
        assert!(scaled.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6));
        assert!((dot_exact(wide.row(4), wide.row(4)) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_scan_finds_the_nearest_that_a_filter_keeps() {
        let (base, queries) = (random(3_000, 16, 1), random(5, 16, 2));
        let form = Form { truth: scan(&base, &queries), base, queries };
        let cosine = |query: usize, row: usize| {
            let (query, row) = (form.queries.row(query), form.base.row(row));
            dot_exact(query, row) / dot_exact(row, row).sqrt()
        };
        for kept in KEPT_PER_MILLE {
            let passing: Vec<usize> = (0..3_000).filter(|row| row % 1_000 < kept).collect();
            for query in 0..5 {
                let near = form.nearest(query, kept);
                assert_eq!(near.len(), passing.len().min(COUNT));
                let worst = cosine(query, *near.last().unwrap() as usize);
                let better = passing.iter().filter(|row| cosine(query, **row) > worst).count();
                assert_eq!(better, near.len() - 1, "{kept}");
                assert!(near.iter().all(|row| *row as usize % 1_000 < kept));
            }
        }
    }

    #[test]
    fn ranges_cover_all() {
        for count in [0, 1, 2, 7, 100] {
            let parts = in_parallel(count, |start, end| (start..end).collect::<Vec<_>>());
            assert!(parts.concat().into_iter().eq(0..count));
        }
    }
}
