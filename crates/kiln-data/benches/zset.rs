//! Nanoseconds per operation of a big [`ZSet`], and its bytes per element.
//!
//! ```text
//! cargo bench -p kiln-data --bench zset                        100k and 1M elements
//! cargo bench -p kiln-data --bench zset -- --items 4000000 --rounds 3
//! ```
//!
//! Members are `member:00000000` (15 bytes), scores random, operations in random order. Each
//! figure is this thread's CPU time, the best of the rounds: other load only ever adds. Of the same
//! million elements Valkey 9.1.2 needs 79.9 bytes each and Redis 8.2.3 102.3 (`used_memory` after
//! ZADD less before).
//!
//! Without `--bench`, which cargo adds, it runs once over few elements, as a test.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::env;
use std::fs;
use std::hint::black_box;

use kiln_data::zset::{ScoreBound, ZSet, ZSetLimits};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const LIMITS: ZSetLimits = ZSetLimits { max_listpack_entries: 128, max_listpack_value: 64 };

/// What a figure is called and how to get it.
type Operation<'a> = (&'a str, &'a mut dyn FnMut(&mut ZSet, usize));

fn main() {
    let args: Vec<String> = env::args().collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<usize>().ok()
    };
    if args.iter().any(|arg| arg == "--list") {
        println!("few_elements: test"); // What nextest asks of a test binary.
        return;
    }
    let is_bench = args.iter().any(|arg| arg == "--bench");
    let rounds = number("--rounds").unwrap_or(if is_bench { 5 } else { 1 });
    let sizes = match (number("--items"), is_bench) {
        (Some(items), _) => vec![items],
        (None, true) => vec![100_000, 1_000_000],
        (None, false) => vec![10_000],
    };
    for items in sizes {
        run(items, rounds);
    }
}

fn run(items: usize, rounds: usize) {
    let mut rng = StdRng::seed_from_u64(1);
    let members: Vec<Vec<u8>> =
        (0..items).map(|number| format!("member:{number:08}").into_bytes()).collect();
    let scores: Vec<f64> = (0..items).map(|_| rng.random_range(0.0..1e6)).collect();
    let (set, ascending) = fill(&members, &scores, rounds);
    let descending = (0..items).map(|number| -(number as f64)).collect::<Vec<_>>();
    let (_, descending) = fill(&members, &descending, 1);
    let (mut set, random) = (set, ascending);

    println!(
        "{items:>8} elements: ZADD {random:.0} ns (scores descending {descending:.0}), \
         {:.1} bytes per element",
        set.memory_bytes() as f64 / items as f64,
    );
    let member = |rng: &mut StdRng| members[rng.random_range(0..items)].as_slice();
    let mut seeds = StdRng::seed_from_u64(2);
    let mut draw = || StdRng::seed_from_u64(seeds.random());
    let (mut rng_score, mut rng_near, mut rng_far) = (draw(), draw(), draw());
    let (mut rng_rank, mut rng_range, mut rng_count, mut rng_again) =
        (draw(), draw(), draw(), draw());
    let operations: [Operation<'_>; 7] = [
        ("ZSCORE", &mut |set, _| {
            assert!(set.score(member(&mut rng_score)).is_some());
        }),
        ("ZINCRBY by 1e-9 of the span", &mut |set, _| {
            set.upsert(member(&mut rng_near), &LIMITS, |old| old.map(|old| old + 1e-3));
        }),
        ("ZADD to another score", &mut |set, _| {
            let score = rng_far.random_range(0.0..1e6);
            set.insert(member(&mut rng_far), score, &LIMITS);
        }),
        ("ZRANK", &mut |set, _| {
            assert!(set.rank(member(&mut rng_rank)).is_some());
        }),
        ("ZRANGE of 10 by rank", &mut |set, _| {
            let start = rng_range.random_range(0..items - 10);
            for (member, score) in set.elements(start..start + 10) {
                black_box((member.len(), member[0], score));
            }
        }),
        ("ZCOUNT", &mut |set, _| {
            let bound = |value| ScoreBound { value, exclusive: false };
            let min = rng_count.random_range(0.0..1e6);
            black_box(set.ranks_by_score(bound(min), bound(min + 1e4)).len());
        }),
        ("ZREM and ZADD again", &mut |set, _| {
            let member = member(&mut rng_again);
            let score = set.remove(member).expect("all are there");
            set.insert(member, score, &LIMITS);
        }),
    ];
    let count = items.min(1_000_000);
    for (name, operation) in operations {
        let best = best_of(rounds, || {
            for turn in 0..count {
                operation(&mut set, turn);
            }
        });
        println!("{:>40} {:>6.0} ns", name, best / count as f64);
    }
    let whole = best_of(rounds, || {
        for (member, score) in &set {
            black_box((member[0], score));
        }
    });
    println!("{:>40} {:>6.0} ns per element", "ZRANGE 0 -1", whole / items as f64);
    let pop = best_of(1, || {
        let see = |member: &[u8], _| {
            black_box(member[0]);
        };
        assert_eq!(set.pop_min(items, see), items);
    });
    println!("{:>40} {:>6.0} ns per element", "ZPOPMIN of all", pop / items as f64);
}

/// A set of these elements, and the nanoseconds that each took.
fn fill(members: &[Vec<u8>], scores: &[f64], rounds: usize) -> (ZSet, f64) {
    let mut set = ZSet::new(1, 1, &LIMITS);
    let best = best_of(rounds.min(3), || {
        set = ZSet::new(1, 1, &LIMITS);
        for (member, score) in members.iter().zip(scores) {
            set.insert(member, *score, &LIMITS);
        }
    });
    assert_eq!(set.len(), members.len());
    (set, best / members.len() as f64)
}

/// Nanoseconds of CPU time of the fastest of `rounds`.
fn best_of(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let start = cpu_time_ns();
        work();
        best = best.min(cpu_time_ns() - start);
    }
    best
}

/// CPU time of this thread so far; Linux keeps it in the first field of this file.
fn cpu_time_ns() -> f64 {
    let fields = fs::read_to_string("/proc/thread-self/schedstat").expect("this is Linux");
    fields.split(' ').next().and_then(|time| time.parse().ok()).expect("the field is a number")
}
