//! `compare`: the same commands against each server in turn, round after round.
//!
//! ```text
//! for each round
//!   for each server, alone on its cores, freshly started
//!     load the keys ─► GET SET MGET MSET APPEND   at each pipeline
//!     flush ─► SETNX, flush ─► INCR, …            at each pipeline, flushed before each
//! then, per server and kind of data, freshly started: memory per key
//! ```
//!
//! Invariants that make figures comparable:
//! - In one round every server is sent the same bytes in the same order, so their data is equal.
//! - A round's ratios are taken within the round: what slows the machine for minutes cancels out.
//! - Nothing else of ours runs: one server at a time, requests built before the clock starts.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::load::{Fleet, Until};
use crate::machine::Machine;
use crate::report::{Cell, MemoryFigure, Run, ServerInfo};
use crate::server::{Kind, Server, ServerArgs};
use crate::workload::{Command, KEYS_MAX, KeySpace, Requests, key};

/// Commands per batch while loading data, which is not measured.
const LOAD_PIPELINE: usize = 100;

/// Elements of a small hash, set, list or sorted set in the memory figures.
const ELEMENTS: u64 = 10;

/// The options of `compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArgs {
    /// Which servers, where.
    #[command(flatten)]
    pub server: ServerArgs,
    /// How often each server is measured
    #[arg(long, default_value_t = 7, value_name = "N")]
    pub rounds: usize,
    /// Number of different keys
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX))]
    pub keys: u64,
    /// Bytes of a value
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub value_bytes: usize,
    /// Skew the keys by this much, above 0 and below 1 [default: even]
    #[arg(long, value_name = "SKEW", value_parser = parse_skew)]
    pub zipf: Option<f64>,
    /// The commands to run [default: all twelve]
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "LIST",
        hide_possible_values = true
    )]
    pub commands: Vec<Command>,
    /// Commands per batch
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64], value_name = "LIST")]
    pub pipelines: Vec<usize>,
    /// Multiply the number of requests by this
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub scale: f64,
    /// Leave the memory figures out
    #[arg(long)]
    pub no_memory: bool,
    /// Only try whether all works: two rounds, few requests, meaningless figures
    #[arg(long)]
    pub quick: bool,
    /// Folder for the results
    #[arg(long, default_value = "bench/results", value_name = "FOLDER")]
    pub out: PathBuf,
}

impl CompareArgs {
    /// The options with `--quick` worked in, checked.
    pub fn settled(mut self) -> Result<CompareArgs> {
        if self.quick {
            self.rounds = 2;
            self.keys = self.keys.min(20_000);
            self.scale = self.scale.min(0.01);
        }
        if self.commands.is_empty() {
            self.commands = Command::ALL.to_vec();
        }
        // Those that share the loaded keys come first, whatever order was asked for.
        self.commands.sort_unstable();
        self.commands.dedup();
        ensure!(self.rounds > 0, "--rounds must be at least 1");
        ensure!(!self.pipelines.contains(&0), "--pipelines must be at least 1 each");
        ensure!(self.scale > 0.0, "--scale must be above 0");
        Ok(self)
    }

    fn to_json(&self) -> Value {
        json!({
            "rounds": self.rounds,
            "keys": self.keys,
            "value_bytes": self.value_bytes,
            "zipf": self.zipf,
            "scale": self.scale,
            "quick": self.quick,
            "server": self.server.to_json(),
        })
    }

    /// How many requests of `command` a cell has: about a second's worth for the peers, so that
    /// round after round stays short, and fewer where one request carries ten keys.
    fn requests(&self, command: Command, pipeline: usize) -> u64 {
        let base = match pipeline {
            1 => 50_000.0,
            2..=32 => 300_000.0,
            _ => 500_000.0,
        };
        let per_command = if command.keys() > 1 { 0.2 } else { 1.0 };
        ((base * per_command * self.scale) as u64).max(1)
    }
}

/// A skew from the command line.
pub fn parse_skew(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(skew) if skew > 0.0 && skew < 1.0 => Ok(skew),
        _ => Err("the skew is a number above 0 and below 1".to_owned()),
    }
}

/// Runs the comparison.
pub fn compare(args: &CompareArgs) -> Result<Run> {
    let binaries = args.server.binaries()?;
    let mut run = Run::new(Machine::describe(), args.to_json());
    let space = KeySpace::new(args.keys, args.value_bytes, args.zipf);
    for round in 0..args.rounds {
        for (kind, binary) in &binaries {
            eprintln!("kiln-bench: round {} of {}: {}", round + 1, args.rounds, kind.name());
            let mut server = Server::start(*kind, binary, &args.server)?;
            if round == 0 {
                let binary = binary.display().to_string();
                run.servers.push(ServerInfo { kind: *kind, version: server.version()?, binary });
            }
            let cells = measure_round(args, &space, &mut server, *kind, round);
            run.cells.extend(cells.with_context(|| format!("measure {}", kind.name()))?);
        }
    }
    if !args.no_memory {
        for (kind, binary) in &binaries {
            eprintln!("kiln-bench: memory: {}", kind.name());
            let figures = measure_memory(args, &space, *kind, binary);
            run.memory.extend(figures.with_context(|| format!("measure {}", kind.name()))?);
        }
    }
    Ok(run)
}

fn measure_round(
    args: &CompareArgs,
    space: &KeySpace,
    server: &mut Server,
    kind: Kind,
    round: usize,
) -> Result<Vec<Cell>> {
    let client = &args.server;
    let mut fleet = Fleet::connect(
        server.address(),
        client.connections,
        client.client_cores.count(),
        Some(&client.client_cores),
    )?;
    let mut cells = Vec::new();
    let mut loaded = false;
    for &command in &args.commands {
        if command.wants_loaded_keys() && !loaded {
            loaded = true;
            let fill = Requests::fill(space, None, 0..space.keys(), LOAD_PIPELINE);
            fleet.run(&fill, Until::Sent).context("load the keys")?;
            ensure!(server.key_count()? == space.keys(), "DBSIZE is not what was loaded");
        }
        for &pipeline in &args.pipelines {
            if !command.wants_loaded_keys() {
                server.flush()?;
            }
            let count = args.requests(command, pipeline);
            // Every server gets the same requests, every round others.
            let seed = ((round * 1_000 + pipeline) * 100 + command as usize) as u64;
            let requests = Requests::random(command, space, pipeline, count, seed);
            let before = server.idle_cpu()?;
            let outcome = fleet
                .run(&requests, Until::Sent)
                .with_context(|| format!("{} at pipeline {pipeline}", command.name()))?;
            let cpu = server.idle_cpu()?.since(before);
            let missed = command.reads_loaded_keys() && outcome.nulls > 0;
            ensure!(!missed, "{} missed {} loaded keys", command.name(), outcome.nulls);
            cells.push(Cell::new(kind, round, command, pipeline, &outcome, cpu));
        }
    }
    Ok(cells)
}

/// A kind of data whose memory per key is measured.
#[derive(Clone, Copy, Debug)]
struct DataSet {
    name: &'static str,
    /// Its keys, as a share of the key space.
    one_key_in: u64,
    /// The command that makes a key, and what one element of it is.
    command: &'static str,
    element: Element,
}

#[derive(Clone, Copy, Debug)]
enum Element {
    /// One value: the key is a string.
    Value,
    /// A field and a value.
    Field,
    /// A member.
    Member,
    /// A score and a member.
    Scored,
}

const DATA_SETS: [DataSet; 5] = [
    DataSet { name: "string", one_key_in: 1, command: "SET", element: Element::Value },
    DataSet { name: "hash of 10", one_key_in: 10, command: "HSET", element: Element::Field },
    DataSet { name: "set of 10", one_key_in: 10, command: "SADD", element: Element::Member },
    DataSet { name: "sorted set of 10", one_key_in: 10, command: "ZADD", element: Element::Scored },
    DataSet { name: "list of 10", one_key_in: 10, command: "RPUSH", element: Element::Member },
];

fn measure_memory(
    args: &CompareArgs,
    space: &KeySpace,
    kind: Kind,
    binary: &Path,
) -> Result<Vec<MemoryFigure>> {
    let mut figures = Vec::new();
    for set in DATA_SETS {
        let keys = (space.keys() / set.one_key_in).max(1);
        let requests = match set.element {
            Element::Value => Requests::fill(space, None, 0..keys, LOAD_PIPELINE),
            _ => small_collections(set, keys),
        };
        let mut server = Server::start(kind, binary, &args.server)?;
        let mut fleet = Fleet::connect(server.address(), 1, 1, Some(&args.server.client_cores))?;
        let (resident, used) = (server.resident_bytes()?, server.used_memory_bytes()?);
        fleet.run(&requests, Until::Sent).with_context(|| format!("load {}s", set.name))?;
        ensure!(server.key_count()? == keys, "DBSIZE is not what was loaded");
        let grown = |after: u64, before: u64| after.saturating_sub(before) as f64 / keys as f64;
        let used_after = server.used_memory_bytes()?;
        figures.push(MemoryFigure {
            kind,
            data: set.name,
            keys,
            resident_bytes_per_key: grown(server.resident_bytes()?, resident),
            used_bytes_per_key: used.zip(used_after).map(|(before, after)| grown(after, before)),
        });
    }
    Ok(figures)
}

/// One command per key with ten elements. Elements are short, as they are where collections are
/// small: numbered names, and for hashes values of 16 bytes.
fn small_collections(set: DataSet, keys: u64) -> Requests {
    let mut requests = Requests::new(LOAD_PIPELINE);
    for number in 0..keys {
        let name = key("obj:", number);
        let mut words: Vec<Vec<u8>> = vec![set.command.into(), name.to_vec()];
        for element in 0..ELEMENTS {
            let member = format!("element:{element}").into_bytes();
            match set.element {
                Element::Field => {
                    words.extend([member, key("val:", number * ELEMENTS + element).to_vec()]);
                }
                Element::Scored => words.extend([format!("{element}.5").into_bytes(), member]),
                Element::Member | Element::Value => words.push(member),
            }
        }
        requests.push(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    requests.close();
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_collection_is_one_command() {
        let words = |set: usize| {
            let requests = small_collections(DATA_SETS[set], 1);
            let (bytes, replies) = requests.batch(0);
            assert_eq!(replies, 1);
            String::from_utf8_lossy(bytes).split("\r\n").next().unwrap().to_owned()
        };
        assert_eq!([1, 2, 3, 4].map(words), ["*22", "*12", "*22", "*12"]);
    }

    #[test]
    fn a_skew_lies_between_0_and_1() {
        assert_eq!(parse_skew("0.99"), Ok(0.99));
        for text in ["0", "1", "-1", "x", "NaN"] {
            assert!(parse_skew(text).is_err(), "{text}");
        }
    }
}
