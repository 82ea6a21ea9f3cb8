//! Nanoseconds per distance, on every level of the kernels that this machine has.
//!
//! ```text
//! cargo bench -p kiln-vector --bench codec                 384 and 1536 dimensions
//! cargo bench -p kiln-vector --bench codec -- --dim 768 --rounds 20
//! ```
//!
//! A prepared query against each of a few stored vectors in turn, all in the first or second level
//! of the cache: this is the arithmetic, a search waits for memory besides. `prepare` is the whole
//! preparation of a query, `encode` and `decode` storing and reading back, `reduce` a projection
//! to a quarter of the dimensions. Each figure is CPU time, of the best of the rounds, since other
//! load on the machine only ever adds.
//!
//! Without `--bench`, which cargo adds, it runs once over little, as a test.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::env;
use std::hint::black_box;
use std::time::Duration;

use kiln_vector::{
    Codec, CodecConfig, Level, Metric, NodeMut, NodeRef, Projection, Quantization, Query,
};
use rustix::time::{ClockId, clock_gettime};

/// Stored vectors; so many of 1536 dimensions with all their planes fill half a second-level
/// cache.
const NODES: usize = 64;

fn main() {
    let args: Vec<String> = env::args().collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<usize>().ok()
    };
    if args.iter().any(|arg| arg == "--list") {
        println!("little: test"); // What nextest asks of a test binary.
        return;
    }
    let is_bench = args.iter().any(|arg| arg == "--bench");
    let rounds = number("--rounds").unwrap_or(if is_bench { 10 } else { 1 });
    let repeats = if is_bench { 200 } else { 1 };
    let dims = match (number("--dim"), is_bench) {
        (Some(dim), _) => vec![dim],
        (None, true) => vec![384, 1536],
        (None, false) => vec![100],
    };
    println!(
        "{:>6} {:>5} {:>8} | {:>8} {:>7} {:>7} {:>7} {:>7} | {:>7} {:>7}",
        "dim",
        "kept",
        "level",
        "estimate",
        "coarse",
        "between",
        "exact",
        "prepare",
        "encode",
        "decode",
    );
    for dim in dims {
        for quantization in [Quantization::None, Quantization::Q8, Quantization::Bin] {
            for level in Level::all() {
                run(dim, quantization, level, rounds, repeats);
            }
        }
        reduce(dim, rounds, repeats);
    }
}

/// A stored vector; its planes start at cache lines, as those of an index do.
struct Node {
    bytes: Vec<u8>,
    /// Where the header, the hot and the cold plane start, and where the last ends.
    bounds: [usize; 4],
    side: Vec<u8>,
}

impl Node {
    fn new(codec: &Codec) -> Node {
        let layout = codec.layout();
        let lens = [layout.header(32), layout.hot, layout.cold];
        let bytes = vec![0; lens.iter().sum::<usize>() + 64];
        let start = bytes.as_ptr().align_offset(64);
        let [header, hot, cold] = lens;
        let bounds = [start, start + header, start + header + hot, start + header + hot + cold];
        Node { bytes, bounds, side: Vec::new() }
    }

    fn store(&mut self, codec: &Codec, query: &Query) {
        let [start, _, _, end] = self.bounds;
        let layout = codec.layout();
        let (header, rest) = self.bytes[start..end].split_at_mut(layout.header(32));
        let (hot, cold) = rest.split_at_mut(layout.hot);
        let header = &mut header[..layout.owned];
        codec.encode_query(query, &mut NodeMut { header, hot, cold }, &mut self.side);
    }

    fn header(&self) -> &[u8] {
        &self.bytes[self.bounds[0]..self.bounds[1]]
    }

    fn hot(&self) -> &[u8] {
        &self.bytes[self.bounds[1]..self.bounds[2]]
    }

    fn as_ref(&self) -> NodeRef<'_> {
        let cold = &self.bytes[self.bounds[2]..self.bounds[3]];
        NodeRef { header: self.header(), hot: self.hot(), cold, side: &self.side }
    }
}

fn run(dim: usize, quantization: Quantization, level: Level, rounds: usize, repeats: usize) {
    let config = CodecConfig { dim, metric: Metric::Cosine, quantization, bits: true, seed: 1 };
    let codec = Codec::at_level(config, level).expect("a level of this machine and a dimension");
    let vectors: Vec<Vec<f32>> = (0..NODES).map(|node| vector(dim, node)).collect();
    let queries: Vec<Query> = vectors.iter().map(|vector| codec.prepare(vector)).collect();
    let mut nodes: Vec<Node> = (0..NODES).map(|_| Node::new(&codec)).collect();
    let query = &queries[0];
    let encode = best(rounds, repeats, || {
        nodes.iter_mut().zip(&queries).for_each(|(node, query)| node.store(&codec, query));
    });
    let mut reused = Query::default();
    let prepare = best(rounds, repeats, || {
        vectors.iter().for_each(|vector| codec.prepare_into(vector, black_box(&mut reused)));
    });
    let each = |distance: &dyn Fn(&Node) -> f32| {
        best(rounds, repeats, || {
            black_box(nodes.iter().map(distance).sum::<f32>());
        })
    };
    let estimate = each(&|node| codec.estimate(query, node.header()));
    let coarse = each(&|node| codec.coarse(query, node.header(), node.hot()));
    let first = &nodes[0];
    let between =
        each(&|node| codec.between((node.header(), node.hot()), (first.header(), first.hot())));
    let exact = each(&|node| codec.exact(query, node.as_ref()));
    let mut out = Vec::new();
    let decode = best(rounds, repeats, || {
        nodes.iter().for_each(|node| codec.decode(node.as_ref(), black_box(&mut out)));
    });
    let (quantization, level) = (format!("{quantization:?}"), format!("{level:?}"));
    println!(
        "{dim:>6} {quantization:>5} {level:>8} | {estimate:>8.1} {coarse:>7.1} {between:>7.1} \
         {exact:>7.1} {prepare:>7.0} | {encode:>7.0} {decode:>7.1}",
    );
}

fn reduce(dim: usize, rounds: usize, repeats: usize) {
    let projection = Projection::new(dim, dim / 4, 1).expect("dimensions within the limit");
    let vectors: Vec<Vec<f32>> = (0..NODES).map(|node| vector(dim, node)).collect();
    let mut out = Vec::new();
    let reduce = best(rounds, repeats, || {
        for vector in &vectors {
            projection.apply(vector, black_box(&mut out)).expect("finite");
        }
    });
    println!("{dim:>6} reduce to {} {reduce:>7.0}", dim / 4);
}

/// A vector with the bell-shaped components of embeddings.
fn vector(dim: usize, seed: usize) -> Vec<f32> {
    let wave = |at: usize, step: f32| ((at + seed * dim) as f32 * step).sin();
    (0..dim).map(|at| wave(at, 0.7) + wave(at, 1.9) + wave(at, 3.1)).collect()
}

/// Nanoseconds of CPU per node for `pass`, which goes over all nodes.
fn best(rounds: usize, repeats: usize, mut pass: impl FnMut()) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..rounds {
        let before = cpu_time();
        for _ in 0..repeats {
            pass();
        }
        best = best.min(cpu_time().saturating_sub(before));
    }
    best.as_nanos() as f64 / (repeats * NODES) as f64
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
