//! Does a second thread on the same keyspace bring a second thread's worth of throughput? And for
//! how long do commands hold their shards?
//!
//! ```text
//! cargo bench -p kiln-redis --bench scaling                     all, 1M keys, 36 rounds
//! cargo bench -p kiln-redis --bench scaling -- --only GET --rounds 90
//! ```
//!
//! In-process, without sockets: batches of 64 commands, parsed before the clock starts, run by the
//! executor over random keys with values of 64 bytes. Every round runs, one after another:
//!
//! ```text
//! alone     one thread on the first core, then one on the second
//! together  a thread on each core, one server           scaling = together : alone
//! apart     a thread on each core, a server for each    limit   = apart : alone
//! ```
//!
//! Throughput is commands by CPU time of the thread, so that other load on the machine, which
//! costs wall time, does not count; the sum over both threads is set against the mean of both
//! cores alone, in the same round. But threads that take turns at a core do not contend: only the
//! third of the rounds counts in which the threads together had their cores most of the time
//! (`overlap`, the smaller of CPU by wall time), and the figure is the median of those. Below an
//! overlap of 0.9 the figures of hot keys mean little. `apart` shares nothing but the machine's
//! caches and memory, so it is what the hardware gives. CPU time misses sleep, so the voluntary
//! context switches of `together` are counted too: there is one whenever a thread parks at a lock.
//!
//! Hold times are taken of each command, from the lock to its release, with the executor's own
//! steps in between; the clock waits for earlier loads, and its own time is subtracted. `in
//! batches` has the keys prefetched as the executor does, `cold` has the cache misses of a lone
//! command under the lock. What they mean on a large machine is computed by [`Model`].
//!
//! Without `--bench`, which cargo adds, it runs once over few keys, as a test.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::env;
use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use kiln_base::clock::now_ms;
use kiln_base::sync::LockMode;
use kiln_command::clients::Peer;
use kiln_command::config::{Config, ConfigStore};
use kiln_command::{
    Args, CommandTable, Executor, ReplyBuf, ReplyWriter, Run, Server, ServerOptions, Session,
    Worker,
};
use kiln_keyspace::{PlannedKey, SHARD_COUNT, Shards, View};
use kiln_resp::{Batch, Parser, ParserLimits, Protocol};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

const BATCH: usize = 64;
const VALUE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// One command: how its keys are first filled, and its words; `KEY` is a random key, `NUM` a random
/// number below 1,000.
struct Case {
    name: &'static str,
    fill: &'static str,
    words: &'static str,
    /// How often the words from the second on are repeated.
    repeat: usize,
}

const fn case(name: &'static str, fill: &'static str, words: &'static str, repeat: usize) -> Case {
    Case { name, fill, words, repeat }
}

/// Cases with the same filling stand together: they share their servers.
const CASES: &[Case] = &[
    case("PING", "", "PING", 1),
    case("SET", "SET KEY VALUE", "SET KEY VALUE", 1),
    case("GET", "SET KEY VALUE", "GET KEY", 1),
    case("MGET (10 keys)", "SET KEY VALUE", "MGET KEY", 10),
    case("MSET (10 keys)", "SET KEY VALUE", "MSET KEY VALUE", 10),
    case("SETNX", "SET KEY VALUE", "SETNX KEY VALUE", 1),
    case("APPEND", "SET KEY VALUE", "APPEND KEY xyz", 1),
    case("GET, one key", "SET KEY VALUE", "GET ONE", 1),
    case("INCR", "SET KEY 1", "INCR KEY", 1),
    case("INCR, one key", "SET KEY 1", "INCR ONE", 1),
    case("LPUSH", "LPUSH KEY NUM", "LPUSH KEY NUM", 1),
    case("RPUSH", "RPUSH KEY NUM", "RPUSH KEY NUM", 1),
    case("SADD", "SADD KEY NUM", "SADD KEY NUM", 1),
    case("HSET", "HSET KEY field NUM", "HSET KEY field NUM", 1),
];

struct Options {
    keys: usize,
    /// Keys that one thread touches in one run.
    touches: usize,
    rounds: usize,
    only: Option<String>,
    cores: [usize; 2],
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    if args.iter().any(|arg| arg == "--list") {
        println!("few_keys: test"); // What nextest asks of a test binary.
        return;
    }
    let is_bench = args.iter().any(|arg| arg == "--bench");
    let number = |name: &str, bench: usize, test: usize| {
        let given = value(name).and_then(|text| text.parse().ok());
        given.unwrap_or(if is_bench { bench } else { test })
    };
    let allowed = sched_getaffinity(None).expect("a thread may ask where it may run");
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let first = cores.next().expect("it runs somewhere");
    let options = Options {
        keys: number("--keys", 1_000_000, 1_000),
        touches: number("--touches", 32_768, 1_280),
        rounds: number("--rounds", 36, 1),
        only: value("--only"),
        cores: [first, cores.next().unwrap_or(first)],
    };
    scaling(&options);
}

fn scaling(options: &Options) {
    println!(
        "| command | ns alone | ns together | scaling | limit | scaling by wall | overlap \
         | parks per million | hold in batches: median, p99 | hold cold: median, p99 |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    let mut servers: Option<(&str, [Server; 2])> = None;
    let mut models = Vec::new();
    for case in CASES {
        if options.only.as_ref().is_some_and(|only| !case.name.starts_with(only.as_str())) {
            continue;
        }
        if servers.as_ref().is_none_or(|(fill, _)| *fill != case.fill) {
            drop(servers.take()); // Before the next ones take memory.
            servers = Some((case.fill, [filled(case, options), filled(case, options)]));
        }
        let (_, servers) = servers.as_ref().expect("made above");
        let measured = measure(case, servers, options);
        let [warm, cold] = if case.words == "PING" {
            [Holds::default(); 2]
        } else {
            [true, false].map(|prefetch| holds(case, &servers[0], options, 1, prefetch))
        };
        println!(
            "| {} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {} | {} |",
            case.name,
            measured.alone_ns,
            measured.together_ns,
            measured.scaling,
            measured.limit,
            measured.wall_scaling,
            measured.overlap,
            measured.parks_per_million,
            warm.show(),
            cold.show(),
        );
        // Readers wait for writers only.
        if case.words.contains("KEY") && !matches!(case.name, "GET" | "MGET (10 keys)") {
            models.push((case.name, case.repeat, measured.alone_ns, warm));
        }
        if case.name == "INCR" {
            let [warm, cold] =
                [true, false].map(|prefetch| holds(case, &servers[0], options, 5, prefetch));
            println!("| MULTI, 5 INCR, EXEC | | | | | | | | {} | {} |", warm.show(), cold.show());
            // MULTI and EXEC themselves are left out: that makes the cycle short, the worst case.
            models.push(("MULTI, 5 INCR, EXEC", 5, measured.alone_ns * 5.0, warm));
        }
    }
    println!("\nAll {SHARD_COUNT} shards taken and given back: {} ns", all_shards().show());
    println!(
        "\n| command | shards of a hold | a shard is taken | wait, ns | lost | lost with four \
         times the shards | a hot key saturates at, threads |\n\
         | --- | --- | --- | --- | --- | --- | --- |"
    );
    for (name, shards, cycle_ns, hold) in models {
        let model = Model::new(shards, hold, cycle_ns, SHARD_COUNT);
        let finer = Model::new(shards, hold, cycle_ns, 4 * SHARD_COUNT);
        println!(
            "| {name} | {shards} | {} | {} | {:.1} |",
            model.show(),
            finer.show_lost(),
            cycle_ns / hold.mean,
        );
    }
}

/// Contention of many threads that write evenly spread keys and do nothing else.
///
/// Each of [`Model::THREADS`] threads repeats a command that takes `cycle` without contention and
/// then holds `shards` of `shard_count` shards for `hold`. At a random moment another thread holds
/// a given shard with the probability
///
/// ```text
/// taken = (threads - 1) × shards × (hold + wait / 2) / ((cycle + wait) × shard_count)
/// wait  = shards × taken × E[hold²] / 2 E[hold] × (1 + wait / 2 hold)
/// ```
///
/// Who finds a shard taken waits for the rest of a hold, and may at each of its shards; half of
/// that wait falls, on average, into its own hold of a given shard, if it has several. The two are
/// solved by iteration; without a solution the shards are saturated, and throughput is what they
/// admit rather than what the threads could do. Left out: that cache lines travel further on a
/// large machine, which lengthens holds and cycles alike.
struct Model {
    taken: f64,
    wait_ns: f64,
    lost: f64,
}

impl Model {
    const THREADS: f64 = 160.0;
    const ITERATIONS: usize = 1_000;

    fn new(shards: usize, hold: Holds, cycle_ns: f64, shard_count: usize) -> Self {
        let (count, rest_ns) = (shards as f64, hold.mean_square / (2.0 * hold.mean));
        let in_hold = if shards > 1 { 0.5 } else { 0.0 };
        let (mut taken, mut wait) = (0.0, 0.0);
        for _ in 0..Self::ITERATIONS {
            let own = hold.mean + in_hold * wait;
            taken = (Self::THREADS - 1.0) * count * own / ((cycle_ns + wait) * shard_count as f64);
            wait = count * taken * rest_ns * (own / hold.mean);
        }
        Self { taken, wait_ns: wait, lost: wait / (cycle_ns + wait) }
    }

    /// The share of the time that a shard is taken, the wait and the lost throughput.
    fn show(&self) -> String {
        if self.is_saturated() {
            return "saturated | | saturated".to_owned();
        }
        format!("{:.1}% | {:.1} | {:.1}%", self.taken * 100.0, self.wait_ns, self.lost * 100.0)
    }

    /// Whether the iteration has run away, perhaps beyond all numbers.
    fn is_saturated(&self) -> bool {
        self.lost.is_nan() || self.lost > 0.9
    }

    fn show_lost(&self) -> String {
        if self.is_saturated() {
            "saturated".to_owned()
        } else {
            format!("{:.1}%", self.lost * 100.0)
        }
    }
}

// Throughput

struct Measured {
    alone_ns: f64,
    together_ns: f64,
    scaling: f64,
    limit: f64,
    wall_scaling: f64,
    overlap: f64,
    parks_per_million: f64,
}

/// What one thread took for its commands.
#[derive(Clone, Copy)]
struct Took {
    cpu_ns: f64,
    wall_ns: f64,
    parks: f64,
}

fn measure(case: &Case, servers: &[Server; 2], options: &Options) -> Measured {
    let commands = (options.touches / case.repeat / BATCH).max(1) * BATCH;
    let [one, other] = options.cores;
    let [shared, second] = servers;
    let mut rounds = Vec::new();
    for round in 0..options.rounds as u64 {
        let run = |places: &[(usize, &Server)]| run(case, places, commands, options.keys, round);
        let alone = [run(&[(one, shared)])[0], run(&[(other, shared)])[0]];
        let together = run(&[(one, shared), (other, shared)]);
        let apart = run(&[(one, shared), (other, second)]);
        // Throughput is one by time, so the sum of two ratios is the ratio of the sums.
        let gain = |both: &[Took], time: fn(&Took) -> f64| -> f64 {
            let mean = 2.0 / (1.0 / time(&alone[0]) + 1.0 / time(&alone[1]));
            both.iter().map(|took| mean / time(took)).sum()
        };
        let each = commands as f64;
        let figures = [
            f64::midpoint(alone[0].cpu_ns, alone[1].cpu_ns) / each,
            f64::midpoint(together[0].cpu_ns, together[1].cpu_ns) / each,
            gain(&together, |took| took.cpu_ns),
            gain(&apart, |took| took.cpu_ns),
            gain(&together, |took| took.wall_ns),
            together.iter().map(|took| took.cpu_ns / took.wall_ns).fold(1.0, f64::min),
            f64::midpoint(together[0].parks, together[1].parks) / each * 1e6,
        ];
        rounds.push(figures);
    }
    rounds.sort_by(|one, other| other[5].total_cmp(&one[5]));
    rounds.truncate(rounds.len().div_ceil(3));
    let median = |figure: usize| {
        let mut all: Vec<f64> = rounds.iter().map(|figures| figures[figure]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Measured {
        alone_ns: median(0),
        together_ns: median(1),
        scaling: median(2),
        limit: median(3),
        wall_scaling: median(4),
        overlap: median(5),
        parks_per_million: median(6),
    }
}

/// Runs `commands` of a case at once on each of `places`, a core and a server.
fn run(
    case: &Case,
    places: &[(usize, &Server)],
    commands: usize,
    keys: usize,
    round: u64,
) -> Vec<Took> {
    let barrier = Barrier::new(places.len());
    thread::scope(|scope| {
        let threads: Vec<_> = places
            .iter()
            .enumerate()
            .map(|(index, &(core, server))| {
                let barrier = &barrier;
                scope.spawn(move || {
                    pin(core);
                    let mut rng = StdRng::seed_from_u64(round << 8 | core as u64);
                    let batches: Vec<_> =
                        (0..commands / BATCH).map(|_| batch(case, keys, &mut rng)).collect();
                    let mut runner = Runner::new(server, index);
                    barrier.wait();
                    let (parks, cpu, wall) = (parks(), cpu_time_ns(), Instant::now());
                    for (buf, batch) in &batches {
                        runner.run(buf, batch);
                    }
                    Took {
                        cpu_ns: cpu_time_ns() - cpu,
                        wall_ns: wall.elapsed().as_nanos() as f64,
                        parks: self::parks() - parks,
                    }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// What a worker needs to run batches.
struct Runner<'s> {
    server: &'s Server,
    worker: Worker,
    session: Session,
    executor: Executor,
    out: ReplyBuf,
}

impl<'s> Runner<'s> {
    fn new(server: &'s Server, index: usize) -> Self {
        let peer = Peer {
            addr: String::new(),
            laddr: String::new(),
            fd: 0,
            is_unix: false,
            worker: index,
        };
        Self {
            server,
            worker: Worker::new(server, index, 1),
            session: Session::new(server.clients.add(peer), true),
            executor: Executor::default(),
            out: ReplyBuf::default(),
        }
    }

    fn run(&mut self, buf: &[u8], batch: &Batch) {
        let Self { server, worker, session, executor, out } = self;
        executor.run_batch(server, worker, session, buf, batch, 0, out);
        out.clear();
    }
}

/// A server that has `keys` keys.
fn filled(case: &Case, options: &Options) -> Server {
    let commands = CommandTable::new(&kiln_redis::families());
    let config = ConfigStore::new(Config::default(), None);
    let server_options = ServerOptions { workers: 2, ..ServerOptions::default() };
    let server = Server::new(commands, config, server_options, "0".repeat(40));
    if case.fill.is_empty() {
        return server;
    }
    let mut runner = Runner::new(&server, 0);
    let mut rng = StdRng::seed_from_u64(0);
    for start in (0..options.keys).step_by(BATCH) {
        let mut buf = Vec::new();
        for key in start..(start + BATCH).min(options.keys) {
            write_command(&mut buf, case.fill, 1, || key, &mut rng);
        }
        let parsed = parse(buf);
        runner.run(&parsed.0, &parsed.1);
    }
    drop(runner);
    server
}

fn batch(case: &Case, keys: usize, rng: &mut StdRng) -> (Vec<u8>, Batch) {
    let mut buf = Vec::new();
    for _ in 0..BATCH {
        let mut key_rng = StdRng::seed_from_u64(rng.random());
        let key = || key_rng.random_range(0..keys);
        write_command(&mut buf, case.words, case.repeat, key, rng);
    }
    parse(buf)
}

fn parse(mut buf: Vec<u8>) -> (Vec<u8>, Batch) {
    let mut batch = Batch::default();
    let limits = ParserLimits::default();
    Parser::default().parse(&mut buf, &limits, BATCH, &mut batch).expect("good commands");
    (buf, batch)
}

fn write_command(
    buf: &mut Vec<u8>,
    words: &str,
    repeat: usize,
    mut key: impl FnMut() -> usize,
    rng: &mut StdRng,
) {
    let mut words = words.split(' ');
    let mut all = vec![words.next().expect("a name").to_owned()];
    let rest: Vec<&str> = words.collect();
    for word in (0..repeat).flat_map(|_| &rest) {
        all.push(match *word {
            "KEY" => format!("key:{:012}", key()),
            "ONE" => "key:000000000000".to_owned(),
            "NUM" => rng.random_range(0..1_000).to_string(),
            "VALUE" => VALUE.to_owned(),
            other => other.to_owned(),
        });
    }
    buf.extend_from_slice(format!("*{}\r\n", all.len()).as_bytes());
    for word in all {
        buf.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("the core was among the allowed ones");
}

fn cpu_time_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// How often this thread has gone to sleep of its own accord.
fn parks() -> f64 {
    let status = fs::read_to_string("/proc/thread-self/status").expect("this is Linux");
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).expect("the field is a number")
}

// Hold times

/// How long holds were, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct Holds {
    median: f64,
    p99: f64,
    /// Without the longest 0.5%, which is the machine's doing (interrupts, other load).
    mean: f64,
    mean_square: f64,
}

impl Holds {
    /// From hold times that contain the time of one look at the clock.
    fn new(mut times: Vec<u64>) -> Self {
        times.sort_unstable();
        let clock = clock_ns();
        let kept: Vec<f64> = times[..times.len() - times.len() / 200]
            .iter()
            .map(|time| (*time as f64 - clock).max(0.0))
            .collect();
        let count = kept.len() as f64;
        Self {
            median: kept[kept.len() / 2],
            p99: kept[kept.len() * 99 / 100],
            mean: kept.iter().sum::<f64>() / count,
            mean_square: kept.iter().map(|time| time * time).sum::<f64>() / count,
        }
    }

    fn show(&self) -> String {
        if self.mean == 0.0 {
            return "none".to_owned();
        }
        format!("{:.0}, {:.0}", self.median, self.p99)
    }
}

/// Median time between two looks at the clock.
fn clock_ns() -> f64 {
    let mut times: Vec<u64> = (0..10_001)
        .map(|_| {
            let start = Instant::now();
            start.elapsed().as_nanos() as u64
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2] as f64
}

/// Runs `group` commands at a time under one hold, as EXEC does, and times the holds.
fn holds(case: &Case, server: &Server, options: &Options, group: usize, prefetch: bool) -> Holds {
    let rounds = (options.touches / case.repeat / group / BATCH).max(1) * group;
    thread::scope(|scope| {
        let timing = scope.spawn(|| {
            pin(options.cores[0]);
            let mut rng = StdRng::seed_from_u64(99);
            let mut worker = Worker::new(server, 0, 1);
            let mut out = ReplyBuf::default();
            let mut times = Vec::new();
            for _ in 0..rounds {
                let (buf, batch) = batch(case, options.keys, &mut rng);
                let commands: Vec<Args<'_>> =
                    (0..batch.len()).map(|index| batch.args(index, &buf)).collect();
                let keys = |args: &Args<'_>| -> Vec<PlannedKey> {
                    let step = case.words.split(' ').count() - 1;
                    (1..args.len()).step_by(step).map(|at| PlannedKey::new(args.get(at))).collect()
                };
                if prefetch {
                    let all: Vec<PlannedKey> = commands.iter().flat_map(keys).collect();
                    for one in &all {
                        server.keyspace.prefetch_shard(one.place.shard);
                    }
                    for one in &all {
                        server.keyspace.prefetch_bucket(one.place.shard, 0, one.place.hash);
                    }
                    for one in &all {
                        server.keyspace.prefetch_entry(one.place.shard, 0, one.place.hash);
                    }
                }
                for group in commands.chunks_exact(group) {
                    times.push(time_hold(server, &mut worker, group, &keys, &mut out));
                }
                out.clear();
            }
            Holds::new(times)
        });
        timing.join().expect("no panic")
    })
}

fn time_hold(
    server: &Server,
    worker: &mut Worker,
    group: &[Args<'_>],
    keys: &dyn Fn(&Args<'_>) -> Vec<PlannedKey>,
    out: &mut ReplyBuf,
) -> u64 {
    let command = server.commands.resolve(&group[0]).expect("it exists");
    let places: Vec<Vec<PlannedKey>> = group.iter().map(keys).collect();
    let mut shards = Shards::None;
    places.iter().flatten().for_each(|key| shards.add(key.place.shard));
    let is_read = matches!(command.spec.run, Run::Read(_));
    let mode = if is_read { LockMode::Shared } else { LockMode::Exclusive };
    let now = now_ms();
    let mut locked = server.keyspace.lock(shards, mode);
    let start = Instant::now();
    for (args, places) in group.iter().zip(&places) {
        let view = View::new(locked.hold(), 0, now, &worker.settings, &mut worker.effects);
        let mut view = view.with_places(places);
        let mut reply = ReplyWriter::new(out, Protocol::Resp2);
        let result = match command.spec.run {
            Run::Read(handler) => handler(&view, args, &mut reply),
            Run::Write(handler) => handler(&mut view, args, &mut reply),
            _ => unreachable!("the cases are reads and writes"),
        };
        result.expect("the keys have the right type");
    }
    drop(locked);
    let nanos = start.elapsed().as_nanos() as u64;
    worker.effects.reset();
    nanos
}

/// Taking and giving back everything, as FLUSHALL and SWAPDB do.
fn all_shards() -> Holds {
    let keyspace = kiln_keyspace::Keyspace::new(16);
    let hold = || {
        let start = Instant::now();
        drop(keyspace.lock(Shards::All, LockMode::Exclusive));
        start.elapsed().as_nanos() as u64
    };
    Holds::new((0..1_000).map(|_| hold()).collect())
}
