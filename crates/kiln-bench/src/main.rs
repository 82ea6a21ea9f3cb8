//! `kiln-bench`: measures Kiln and its peers. The library says how.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::ToSocketAddrs as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Parser, Subcommand};
use kiln_bench::compare::{CompareArgs, compare, parse_skew};
use kiln_bench::growth::{GrowthArgs, growth};
use kiln_bench::load::{Fleet, Until};
use kiln_bench::machine::Cores;
use kiln_bench::report;
use kiln_bench::vector::library::{LibraryArgs, library};
use kiln_bench::vector::{VectorArgs, vector};
use kiln_bench::workload::{Command, KEYS_MAX, KeySpace, Requests};

/// Measures Kiln, and Valkey and Redis beside it
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Compare servers command by command: throughput, CPU time, latency, memory
    Compare(CompareArgs),
    /// Watch latency while a server grows to millions of keys
    Growth(GrowthArgs),
    /// Search and load vectors: recall, throughput, CPU time, latency, memory
    Vector(VectorArgs),
    /// Measure the vector library by itself: beside others, under churn, on two threads
    VectorLibrary(LibraryArgs),
    /// Load a server that is running already with one command
    Load(LoadArgs),
}

#[derive(Args)]
struct LoadArgs {
    /// The command to send
    #[arg(value_enum)]
    command: Command,
    /// Host of the server
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port of the server
    #[arg(long, default_value_t = 6379)]
    port: u16,
    /// Connections, shared by the threads
    #[arg(long, default_value_t = 50, value_name = "N")]
    connections: usize,
    /// Load threads
    #[arg(long, default_value_t = 1, value_name = "N")]
    threads: usize,
    /// Commands per batch; a connection has one batch outstanding
    #[arg(long, default_value_t = 1, value_name = "N")]
    pipeline: usize,
    /// Requests to build, and to send once unless --seconds says for how long
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// Send the requests again and again for so long
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Number of different keys
    #[arg(long, default_value_t = 1_000_000, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX))]
    keys: u64,
    /// Bytes of a value
    #[arg(long, default_value_t = 64, value_name = "N")]
    value_bytes: usize,
    /// Skew the keys by this much, above 0 and below 1 [default: even]
    #[arg(long, value_name = "SKEW", value_parser = parse_skew)]
    zipf: Option<f64>,
    /// Cores that the load comes from [default: any]
    #[arg(long, value_name = "CORES")]
    cores: Option<Cores>,
    /// The random numbers' seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

fn main() -> Result<()> {
    match Cli::parse().action {
        Action::Compare(args) => {
            let args = args.settled()?;
            let run = compare(&args)?;
            let (table, chart) = (run.table(), run.chart());
            print(&table)?;
            let files =
                report::keep(&args.out, &run.machine, "", &run.to_json(), &table, Some(&chart))?;
            tell_files(&files);
        }
        Action::Growth(args) => {
            let run = growth(&args)?;
            let table = run.table();
            print(&table)?;
            let json = run.to_json();
            tell_files(&report::keep(&args.out, &run.machine, "-growth", &json, &table, None)?);
        }
        Action::Vector(args) => {
            let args = args.settled()?;
            let run = vector(&args)?;
            let (table, json, chart) = (run.table(), run.to_json(), run.chart());
            print(&table)?;
            let files =
                report::keep(&args.out, &run.machine, "-vector", &json, &table, Some(&chart))?;
            tell_files(&files);
        }
        Action::VectorLibrary(args) => {
            let run = library(&args)?;
            let table = run.table();
            print(&table)?;
            let json = run.to_json();
            let suffix = "-vector-library";
            tell_files(&report::keep(&args.out, &run.machine, suffix, &json, &table, None)?);
        }
        Action::Load(args) => load(&args)?,
    }
    Ok(())
}

fn load(args: &LoadArgs) -> Result<()> {
    ensure!(args.pipeline > 0, "--pipeline must be at least 1");
    let address = (args.host.as_str(), args.port)
        .to_socket_addrs()
        .with_context(|| format!("look up {}", args.host))?
        .next()
        .with_context(|| format!("{} has no address", args.host))?;
    let space = KeySpace::new(args.keys, args.value_bytes, args.zipf);
    let requests = Requests::random(args.command, &space, args.pipeline, args.requests, args.seed);
    let until = match args.seconds {
        Some(seconds) => Until::Elapsed(Duration::try_from_secs_f64(seconds)?),
        None => Until::Sent,
    };
    let mut fleet = Fleet::connect(address, args.connections, args.threads, args.cores.as_ref())?;
    let outcome = fleet.run(&requests, until)?;
    let mut text = format!(
        "{} × {} in {:.3} s: {:.0}/s; {} nulls\nlatency of a batch of {} in µs:",
        outcome.commands,
        args.command.name(),
        outcome.elapsed.as_secs_f64(),
        outcome.per_second(),
        outcome.nulls,
        args.pipeline,
    );
    for (name, quantile) in
        [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)]
    {
        write!(text, " {name} {:.1}", outcome.latency_us(quantile))?;
    }
    writeln!(text, " max {:.1}", outcome.latency_us_max())?;
    print(&text)
}

fn print(text: &str) -> Result<()> {
    std::io::stdout().write_all(text.as_bytes()).context("write to stdout")
}

fn tell_files(paths: &[std::path::PathBuf]) {
    for path in paths {
        eprintln!("kiln-bench: wrote {}", path.display());
    }
}
