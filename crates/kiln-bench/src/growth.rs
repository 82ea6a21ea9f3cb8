//! `growth`: does a command ever wait for the table to grow?
//!
//! New keys are set, in scattered order, until the server holds them all, and each batch's latency
//! is noted with the number of keys at that moment: a resize that stops the server shows as a
//! spike near a power of two. Then as many keys as a tenth are overwritten, which resizes nothing:
//! what is slow there is the machine's doing, and the floor that the growth figures stand on.
//!
//! Requests are built a chunk at a time, between measurements: 10 million of them take more memory
//! than the server under test.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::load::{Fleet, Outcome, SlowBatch, Until};
use crate::machine::Machine;
use crate::report::{ServerInfo, heading, latencies, latency_json, machine_json, markdown};
use crate::server::{Kind, Server, ServerArgs};
use crate::workload::{KEYS_MAX, KeySpace, Requests, Scatter};

/// Commands built at once.
const CHUNK: u64 = 200_000;

/// How many of the slowest batches are listed.
const WORST_SHOWN: usize = 8;

/// The options of `growth`.
#[derive(Args, Clone, Debug)]
pub struct GrowthArgs {
    /// Which servers, where; `--connections` defaults to 50, few make latency less of a queue
    #[command(flatten)]
    pub server: ServerArgs,
    /// Number of keys to grow to
    #[arg(long, default_value_t = 10_000_000, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX))]
    pub keys: u64,
    /// Bytes of a value
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub value_bytes: usize,
    /// Commands per batch
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8], value_name = "LIST")]
    pub pipelines: Vec<usize>,
    /// Only try whether all works: few keys, meaningless figures
    #[arg(long)]
    pub quick: bool,
    /// Folder for the results
    #[arg(long, default_value = "bench/results", value_name = "FOLDER")]
    pub out: PathBuf,
}

/// One server growing at one pipeline.
#[derive(Debug)]
pub struct Growth {
    kind: Kind,
    pipeline: usize,
    /// While keys were added.
    growing: Phase,
    /// While keys were overwritten.
    steady: Phase,
}

/// What a phase measured.
#[derive(Debug)]
struct Phase {
    commands: u64,
    elapsed: Duration,
    latency_us: [f64; 4],
    /// Batches that took longer than a millisecond.
    above_1_ms: u64,
    batches: u64,
    worst: Vec<Slow>,
}

/// A slow batch and how many commands had been sent before it.
#[derive(Clone, Copy, Debug)]
struct Slow {
    latency_us: f64,
    commands_before: u64,
}

/// All servers.
#[derive(Debug)]
pub struct GrowthRun {
    /// Where.
    pub machine: Machine,
    options: Value,
    servers: Vec<ServerInfo>,
    growths: Vec<Growth>,
}

/// Runs it.
pub fn growth(args: &GrowthArgs) -> Result<GrowthRun> {
    let keys = if args.quick { args.keys.min(50_000) } else { args.keys };
    let mut run = GrowthRun {
        machine: Machine::describe(),
        options: json!({
            "keys": keys,
            "value_bytes": args.value_bytes,
            "server": args.server.to_json(),
        }),
        servers: Vec::new(),
        growths: Vec::new(),
    };
    let space = KeySpace::new(keys, args.value_bytes, None);
    for &pipeline in &args.pipelines {
        ensure!(pipeline > 0, "--pipelines must be at least 1 each");
        for (kind, binary) in args.server.binaries()? {
            eprintln!("kiln-bench: {keys} keys, pipeline {pipeline}: {}", kind.name());
            let mut server = Server::start(kind, &binary, &args.server)?;
            if run.servers.iter().all(|known| known.kind != kind) {
                let binary = binary.display().to_string();
                run.servers.push(ServerInfo { kind, version: server.version()?, binary });
            }
            let grown = grow(args, &space, &mut server, kind, pipeline);
            run.growths.push(grown.with_context(|| format!("grow {}", kind.name()))?);
        }
    }
    Ok(run)
}

fn grow(
    args: &GrowthArgs,
    space: &KeySpace,
    server: &mut Server,
    kind: Kind,
    pipeline: usize,
) -> Result<Growth> {
    let client = &args.server;
    let mut fleet = Fleet::connect(
        server.address(),
        client.connections,
        client.client_cores.count(),
        Some(&client.client_cores),
    )?;
    let growing = run_phase(&mut fleet, space, pipeline, space.keys())?;
    ensure!(server.key_count()? == space.keys(), "DBSIZE is not what was set");
    let steady = run_phase(&mut fleet, space, pipeline, space.keys().div_ceil(10))?;
    Ok(Growth { kind, pipeline, growing, steady })
}

/// Sets the first `keys` keys of the scattered order, chunk by chunk.
fn run_phase(fleet: &mut Fleet, space: &KeySpace, pipeline: usize, keys: u64) -> Result<Phase> {
    let scatter = Scatter::new(space.keys());
    let mut total: Option<Outcome> = None;
    let mut worst: Vec<Slow> = Vec::new();
    let mut start = 0;
    while start < keys {
        let end = (start + CHUNK).min(keys);
        let requests = Requests::fill(space, Some(scatter), start..end, pipeline);
        let outcome = fleet.run(&requests, Until::Sent)?;
        worst.extend(outcome.worst.iter().map(|slow| Slow::at(*slow, start, pipeline)));
        worst.sort_by(|a, b| b.latency_us.total_cmp(&a.latency_us));
        worst.truncate(WORST_SHOWN);
        match &mut total {
            Some(total) => total.absorb(outcome),
            None => total = Some(outcome),
        }
        start = end;
    }
    let total = total.context("a phase has at least one key")?;
    Ok(Phase {
        commands: total.commands,
        elapsed: total.elapsed,
        latency_us: latencies(&total),
        above_1_ms: count_above_1_ms(&total.latency_ns),
        batches: total.latency_ns.len(),
        worst,
    })
}

fn count_above_1_ms(latency_ns: &Histogram<u64>) -> u64 {
    latency_ns
        .iter_recorded()
        .filter(|step| step.value_iterated_to() > 1_000_000)
        .map(|step| step.count_at_value())
        .sum()
}

impl Slow {
    fn at(slow: SlowBatch, start: u64, pipeline: usize) -> Slow {
        Slow {
            latency_us: slow.latency_ns as f64 / 1e3,
            commands_before: start + (slow.sequence * pipeline) as u64,
        }
    }
}

impl Phase {
    fn to_json(&self) -> Value {
        let worst: Vec<Value> = self
            .worst
            .iter()
            .map(|slow| {
                json!({ "latency_us": slow.latency_us, "commands_before": slow.commands_before })
            })
            .collect();
        json!({
            "commands": self.commands,
            "elapsed_s": self.elapsed.as_secs_f64(),
            "latency_us": latency_json(&self.latency_us),
            "batches": self.batches,
            "batches_above_1_ms": self.above_1_ms,
            "worst": worst,
        })
    }
}

impl GrowthRun {
    /// For the results file.
    pub fn to_json(&self) -> Value {
        let growths: Vec<Value> = self
            .growths
            .iter()
            .map(|growth| {
                json!({
                    "server": growth.kind.name(),
                    "pipeline": growth.pipeline,
                    "growing": growth.growing.to_json(),
                    "overwriting": growth.steady.to_json(),
                })
            })
            .collect();
        json!({
            "machine": machine_json(&self.machine),
            "options": self.options,
            "servers": self.servers.iter().map(ServerInfo::to_json).collect::<Vec<_>>(),
            "growths": growths,
        })
    }

    /// As Markdown: a table of latencies, then the slowest batches of each server.
    pub fn table(&self) -> String {
        let mut text = heading(&self.machine, &self.servers);
        let header = [
            "pipeline",
            "server",
            "phase",
            "SETs/s",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "max µs",
            "above 1 ms",
        ];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for growth in &self.growths {
            for (name, phase) in [("growing", &growth.growing), ("overwriting", &growth.steady)] {
                let per_second = phase.commands as f64 / phase.elapsed.as_secs_f64();
                let mut row = vec![
                    growth.pipeline.to_string(),
                    growth.kind.name().to_owned(),
                    name.to_owned(),
                    format!("{per_second:.0}"),
                ];
                row.extend(phase.latency_us.map(|latency| format!("{latency:.0}")));
                row.push(format!("{} of {}", phase.above_1_ms, phase.batches));
                rows.push(row);
            }
        }
        text.push_str("\n## Latency while the table grows\n\n");
        text.push_str(&markdown(&rows));
        text.push_str("\n## The slowest batches while growing, with the number of keys\n\n");
        for growth in &self.growths {
            let worst: Vec<String> = growth
                .growing
                .worst
                .iter()
                .map(|slow| format!("{:.0} µs at {}", slow.latency_us, slow.commands_before))
                .collect();
            let (name, pipeline) = (growth.kind.name(), growth.pipeline);
            let _ = writeln!(text, "- {name}, pipeline {pipeline}: {}", worst.join(", "));
        }
        text
    }
}
