//! The index over the shared text embeddings: CPU time of inserts and searches, recall@10, memory.
//!
//! ```text
//! cargo bench -p kiln-vector --bench index                          50,000 rows of 384
//! cargo bench -p kiln-vector --bench index -- --rows 10000 --m 16 --ef-construction 200
//! cargo bench -p kiln-vector --bench index -- --wide 1              1,536 dimensions
//! cargo bench -p kiln-vector --bench index -- --replace 1           and every vector replaced
//! cargo bench -p kiln-vector --bench index -- --rounds 10           half removed, added again
//! cargo bench -p kiln-vector --bench index -- --threads 2           searches, inserts, both
//! ```
//!
//! Times are this thread's CPU time; a search's is the best of three passes over the queries,
//! since other load only ever adds. Recall is counted against a full scan in double precision.
//!
//! Without `--bench`, which cargo adds, it runs once over few rows, as a test.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::path::Path;
use std::thread;
use std::time::Instant;
use std::{env, fs};

use kiln_vector::{Filter, Index, IndexConfig, Metric, Quantization, Request, Target};

/// Result widths of the table.
const EFS: [usize; 7] = [16, 20, 32, 40, 60, 80, 150];

struct Options {
    rows: usize,
    m: usize,
    ef_construction: usize,
    bits: bool,
    quantization: Quantization,
    wide: bool,
    replace: bool,
    rounds: usize,
    threads: usize,
    passes: usize,
}

fn main() {
    let args: Vec<String> = env::args().collect();
    if args.iter().any(|arg| arg == "--list") {
        println!("few_rows: test"); // What nextest asks of a test binary.
        return;
    }
    let number = |name: &str, default: usize| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)?.parse::<usize>().ok()).unwrap_or(default)
    };
    let is_bench = args.iter().any(|arg| arg == "--bench");
    run(&Options {
        rows: number("--rows", if is_bench { 50_000 } else { 1_000 }),
        m: number("--m", 16),
        ef_construction: number("--ef-construction", 200),
        bits: number("--bits", 1) != 0,
        quantization: match number("--quantization", 0) {
            0 => Quantization::None,
            1 => Quantization::Q8,
            _ => Quantization::Bin,
        },
        wide: number("--wide", 0) != 0,
        replace: number("--replace", 0) != 0,
        rounds: number("--rounds", 0),
        threads: number("--threads", 1),
        passes: if is_bench { 3 } else { 1 },
    });
}

/// Rows and queries, and for each query its ten nearest rows.
struct Data {
    dim: usize,
    rows: Vec<f32>,
    queries: Vec<f32>,
    nearest: Vec<[u32; 10]>,
}

impl Data {
    fn row(&self, row: usize) -> &[f32] {
        &self.rows[row * self.dim..][..self.dim]
    }

    fn queries(&self) -> impl Iterator<Item = &[f32]> {
        self.queries.chunks(self.dim)
    }
}

fn run(options: &Options) {
    let data = load(options);
    let rss_before = rss_bytes();
    let mut config = IndexConfig::new(data.dim, Metric::Cosine);
    config.m = options.m;
    config.ef_construction = options.ef_construction;
    config.bits = options.bits;
    config.quantization = options.quantization;
    let index = Index::new(config).expect("a valid configuration");
    let count = data.rows.len() / data.dim;
    let start = cpu_time_us();
    for row in 0..count {
        index.insert(&name(row), data.row(row)).expect("a valid vector");
    }
    let cpu = (cpu_time_us() - start) / count as f64;
    println!(
        "{count} x {}: insert {cpu:.0} us, {:.0}/s; {:.0} bytes each by RSS, {:.0} counted",
        data.dim,
        1e6 / cpu,
        (rss_bytes() - rss_before) as f64 / count as f64,
        index.memory_bytes() as f64 / count as f64,
    );
    println!("mean degree {:.1}", index.mean_degree());
    table(&index, &data, options.passes);
    filters(&index, &data);
    image(&index);
    if options.replace {
        replace(&index, &data, options.passes);
    }
    for round in 0..options.rounds {
        halve(&index, &data, round);
    }
    if options.threads > 1 {
        drop(index);
        threads(config, &data, options.threads);
    }
}

/// Recall and time of a search whose filter passes a share of the elements, whichever is near.
fn filters(index: &Index, data: &Data) {
    for per_thousand in [1_000, 500, 100, 10, 1] {
        let passes = |name: &[u8], _: Option<&[u8]>| {
            u64::from(number(name)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
                < (per_thousand << 32) / 1_000
        };
        let (mut found, mut wanted, mut time) = (0, 0, 0.0);
        for query in data.queries().take(200) {
            let filter: Option<&dyn Filter> = (per_thousand < 1_000).then_some(&passes);
            let request = Request { filter, ..Request::new(Target::Vector(query), 10) };
            let search = |request: &Request<'_>| {
                index.search(request).expect("a valid query").expect("a vector")
            };
            let right = search(&Request { exact: true, ..request });
            let start = cpu_time_us();
            let hits = search(&request);
            time += cpu_time_us() - start;
            wanted += right.len();
            found += hits.iter().filter(|hit| right.iter().any(|r| r.name == hit.name)).count();
        }
        println!(
            "filter passes {per_thousand} of 1000: recall@10 {:.4}, {:.1} us",
            found as f64 / wanted as f64,
            time / 200.0,
        );
    }
}

/// Saves and loads.
fn image(index: &Index) {
    let mut image = Vec::new();
    let start = cpu_time_us();
    index.save(&mut image).expect("a vector takes all bytes");
    let saved = cpu_time_us();
    let loaded = Index::load(&image).expect("its own image");
    let rate = |time: f64| image.len() as f64 / time;
    let (save, load) = (rate(saved - start), rate(cpu_time_us() - saved));
    println!("image of {} bytes: save {save:.0} MB/s, load {load:.0} MB/s", image.len());
    assert_eq!(loaded.len(), index.len());
}

/// Removes half of the elements and adds them again.
fn halve(index: &Index, data: &Data, round: usize) {
    let count = data.rows.len() / data.dim;
    let half = || (0..count).filter(|row| (row >> (round % 3)).is_multiple_of(2));
    let mut times: Vec<f64> = half()
        .map(|row| {
            let start = cpu_time_us();
            drop(index.remove(&name(row)));
            cpu_time_us() - start
        })
        .collect();
    times.sort_by(f64::total_cmp);
    for row in half() {
        index.insert(&name(row), data.row(row)).expect("a valid vector");
    }
    println!(
        "round {round}: remove {:.0} us, p99 {:.0} us; {} nodes, {} bytes, RSS {}",
        times.iter().sum::<f64>() / times.len() as f64,
        times[times.len() * 99 / 100],
        index.info().nodes,
        index.memory_bytes(),
        rss_bytes(),
    );
}

/// Wall time of one and of several threads: inserting, searching, and one half of each.
fn threads(config: IndexConfig, data: &Data, threads: usize) {
    let count = data.rows.len() / data.dim;
    let mut once = [0.0; 3];
    for threads in [1, threads] {
        let index = Index::new(config).expect("a valid configuration");
        let time = |work: &(dyn Fn(usize) + Sync)| {
            let (start, cpu) = (Instant::now(), process_time_us());
            thread::scope(|scope| {
                for thread in 0..threads {
                    scope.spawn(move || work(thread));
                }
            });
            (start.elapsed().as_secs_f64(), (process_time_us() - cpu) / count as f64)
        };
        let insert = |row: usize| {
            index.insert(&name(row), data.row(row)).expect("a valid vector");
        };
        let search = |query: usize| {
            let query = &data.queries[query % data.nearest.len() * data.dim..][..data.dim];
            let request = Request { ef: Some(80), ..Request::new(Target::Vector(query), 10) };
            let hits = index.search(&request).expect("a valid query").expect("a vector");
            assert_eq!(hits.len(), 10);
        };
        let mine = |thread: usize| (0..count).filter(move |row| row % threads == thread);
        let inserts = time(&|thread| mine(thread).for_each(insert));
        index.verify().expect("a sound graph");
        let searches = time(&|thread| mine(thread).for_each(search));
        let both = time(&|thread| {
            for row in mine(thread) {
                if row / threads % 2 == 0 { insert(row) } else { search(row) }
            }
        });
        index.verify().expect("a sound graph");
        let figures = [("inserts", inserts), ("searches", searches), ("half of each", both)];
        for ((what, (time, cpu)), once) in figures.into_iter().zip(&mut once) {
            if threads == 1 {
                *once = time;
            }
            println!(
                "{threads} threads, {what}: {:.0}/s, {:.2}x; {cpu:.0} us of CPU",
                count as f64 / time,
                *once / time
            );
        }
    }
}

/// Recall and time of a search for each width.
fn table(index: &Index, data: &Data, passes: usize) {
    for ef in EFS {
        let mut best = f64::MAX;
        let mut found = 0;
        for _ in 0..passes {
            found = 0;
            let start = cpu_time_us();
            for (query, nearest) in data.queries().zip(&data.nearest) {
                let request = Request { ef: Some(ef), ..Request::new(Target::Vector(query), 10) };
                let hits = index.search(&request).expect("a valid query").expect("a vector");
                let is_right = |hit: &&kiln_vector::Hit| nearest.contains(&number(&hit.name));
                found += hits.iter().filter(is_right).count();
            }
            best = best.min(cpu_time_us() - start);
        }
        let queries = data.nearest.len();
        println!(
            "ef {ef:>3}: recall@10 {:.4}, {:.1} us",
            found as f64 / (10 * queries) as f64,
            best / queries as f64,
        );
    }
}

/// Replaces every vector by itself, in random order.
fn replace(index: &Index, data: &Data, passes: usize) {
    let count = data.rows.len() / data.dim;
    let mut order: Vec<usize> = (0..count).collect();
    let mut random = 1_u64;
    for at in (1..count).rev() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(at, (random >> 33) as usize % (at + 1));
    }
    let start = cpu_time_us();
    for row in order {
        index.insert(&name(row), data.row(row)).expect("a valid vector");
    }
    println!("replaced: {:.0} us each", (cpu_time_us() - start) / count as f64);
    println!("mean degree {:.1}", index.mean_degree());
    table(index, data, passes);
}

fn name(row: usize) -> Vec<u8> {
    format!("row:{row:06}").into_bytes()
}

fn number(name: &[u8]) -> u32 {
    std::str::from_utf8(&name[4..]).expect("digits").parse().expect("digits")
}

fn load(options: &Options) -> Data {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let rows = fs::read(folder.join("wordnet-minilm-384.f16.npy")).expect("the shared data");
    let queries = fs::read(folder.join("wordnet-minilm-384-queries.f32.npy")).expect("the queries");
    // Both headers end at byte 128 (the data's README).
    let mut rows: Vec<f32> = rows[128..]
        .chunks_exact(2)
        .take(options.rows * 384)
        .map(|half| half_to_f32(u16::from_le_bytes([half[0], half[1]])))
        .collect();
    let mut queries: Vec<f32> = queries[128..]
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    let mut dim = 384;
    if options.wide {
        // Each row with three others behind it at falling weight: four kinds of neighbourhood.
        (rows, queries) = (widen(&rows, &rows), widen(&queries, &rows));
        dim = 1_536;
    }
    let full = options.rows == 50_000 && !options.wide;
    let nearest = if full {
        let truth = fs::read(folder.join("wordnet-minilm-384-gt.i32.npy")).expect("the truth");
        let ids: Vec<u32> = truth[128..]
            .chunks_exact(4)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        ids.chunks(100).map(|row| *row.first_chunk().expect("a hundred")).collect()
    } else {
        queries.chunks(dim).map(|query| scan(query, &rows)).collect()
    };
    Data { dim, rows, queries, nearest }
}

/// Four times as many dimensions: each vector, and behind it the rows that a hash of it names.
fn widen(vectors: &[f32], rows: &[f32]) -> Vec<f32> {
    let count = rows.len() / 384;
    let mut wide = Vec::with_capacity(vectors.len() * 4);
    for vector in vectors.chunks(384) {
        wide.extend_from_slice(vector);
        let near = scan_some(vector, rows, count.min(2_000));
        for row in near {
            wide.extend_from_slice(&rows[row * 384..][..384]);
        }
    }
    wide
}

/// The three nearest of the first `count` rows, other than the vector itself.
fn scan_some(vector: &[f32], rows: &[f32], count: usize) -> [usize; 3] {
    let mut best = [(f32::MIN, 0); 3];
    for (at, row) in rows.chunks(384).take(count).enumerate() {
        let dot: f32 = row.iter().zip(vector).map(|(a, b)| a * b).sum();
        if dot < 0.999 && dot > best[2].0 {
            best[2] = (dot, at);
            best.sort_by(|a, b| b.0.total_cmp(&a.0));
        }
    }
    best.map(|(_, at)| at)
}

fn scan(query: &[f32], rows: &[f32]) -> [u32; 10] {
    let cosine = |row: &[f32]| {
        let (mut dot, mut norm) = (0.0, 0.0);
        for (a, b) in row.iter().zip(query) {
            dot += f64::from(*a) * f64::from(*b);
            norm += f64::from(*a) * f64::from(*a);
        }
        dot / norm.sqrt()
    };
    let mut ranked: Vec<(f64, u32)> =
        rows.chunks(query.len()).zip(0..).map(|(row, number)| (cosine(row), number)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    std::array::from_fn(|rank| ranked[rank].1)
}

/// A half-precision number. The data hold no infinities, and zeros below the normal range.
fn half_to_f32(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let (exponent, fraction) = (u32::from(half >> 10 & 31), u32::from(half & 1023));
    if exponent == 0 {
        let value = fraction as f32 * 2.0_f32.powi(-24);
        return f32::from_bits(value.to_bits() | sign);
    }
    f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13)
}

fn process_time_us() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn cpu_time_us() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn rss_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number of pages") * 4_096
}
