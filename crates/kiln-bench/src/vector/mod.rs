//! `vector`: searches and loads of real embeddings, Kiln beside Redis's vector sets.
//!
//! ```text
//! npy ─► data   the shared vectors, their wide form, exact answers
//!         └► wire   commands of both faces ─► trial   servers: load, recall, rounds, filters
//!                                               └► outcome ─► table, JSON, chart
//!         └► library   the graph in this process, beside libraries from `PyPI`
//! ```
//!
//! For each width and quantization, every server is started and loaded once and the rounds share
//! that load: 50,000 vectors of 1,536 components take Redis four minutes. Idle servers cost
//! nothing. Within a round each setting is measured on every server before the next setting is,
//! in an order that turns round from round to round.
//!
//! Recall belongs to a graph and an effort, not to a machine, so it is counted once, untimed.
//!
//! Redis makes a thread for each VSIM unless NOTHREAD asks it not to. Both are measured: the first
//! is how it is shipped, the second spends less CPU time.

mod chart;
pub mod data;
pub mod library;
pub mod npy;
mod outcome;
mod trial;
pub mod wire;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::server::{Kind, ServerArgs};
use data::Source;
pub use outcome::VectorRun;
use wire::Quantization;

/// The options of `vector`.
#[derive(Args, Clone, Debug)]
pub struct VectorArgs {
    /// Which servers, where; Valkey has no vector sets, and `--clients` says how many connections
    #[command(flatten)]
    pub server: ServerArgs,
    /// Which vectors, and where what is made of them is kept
    #[command(flatten)]
    pub vectors: VectorsArgs,
    /// How often each server is measured
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub rounds: usize,
    /// How vectors are stored
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Quantization::None],
        value_name = "LIST")]
    pub quantizations: Vec<Quantization>,
    /// Search efforts
    #[arg(long, value_delimiter = ',', default_values_t = [10, 20, 40, 80, 150, 300, 500],
        value_name = "LIST")]
    pub efs: Vec<usize>,
    /// Connections, each with one search outstanding
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100], value_name = "LIST")]
    pub clients: Vec<usize>,
    /// Search for so long at each setting
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub seconds: f64,
    /// Measure Kiln's VSIM.* commands too, in a server of their own
    #[arg(long)]
    pub index_face: bool,
    /// Leave searches with filters out
    #[arg(long)]
    pub no_filters: bool,
    /// Leave the load over many connections out
    #[arg(long)]
    pub no_parallel_load: bool,
    /// Only try whether all works: few vectors, meaningless figures
    #[arg(long)]
    pub quick: bool,
    /// Folder for the results
    #[arg(long, default_value = "bench/results", value_name = "FOLDER")]
    pub out: PathBuf,
}

/// A width of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Width {
    /// As they are.
    #[value(name = "384")]
    Narrow,
    /// Each row with its three nearest others.
    #[value(name = "1536")]
    Wide,
}

/// Which vectors are searched.
#[derive(Args, Clone, Debug)]
pub struct VectorsArgs {
    /// Folder of the shared data
    #[arg(long, default_value = "../shared/data", value_name = "FOLDER")]
    pub data: PathBuf,
    /// Folder for what is made of them [default: bench-vectors in the target folder]
    #[arg(long, value_name = "FOLDER")]
    pub kept: Option<PathBuf>,
    /// Components of a vector
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Width::Narrow, Width::Wide],
        value_name = "LIST")]
    pub widths: Vec<Width>,
    /// Take the first rows only
    #[arg(long, default_value_t = 50_000, value_name = "N")]
    pub rows: usize,
    /// Take the first queries only
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    pub queries: usize,
}

impl VectorsArgs {
    /// Where to take vectors from.
    pub fn source(&self) -> Result<Source> {
        let beside = || {
            let program = std::env::current_exe().ok()?;
            Some(program.parent()?.parent()?.join("bench-vectors"))
        };
        let kept = self.kept.clone().or_else(beside);
        let kept = kept.unwrap_or_else(|| std::env::temp_dir().join("kiln-bench-vectors"));
        let data = self.data.clone();
        Ok(Source { data, kept, rows: self.rows, queries: self.queries })
    }

    /// The forms that were asked for.
    pub fn forms(&self) -> Result<Vec<data::Form>> {
        let wants = |width| self.widths.contains(&width);
        self.source()?.forms(wants(Width::Narrow), wants(Width::Wide))
    }
}

impl VectorArgs {
    /// The options with `--quick` worked in, checked.
    pub fn settled(mut self) -> Result<VectorArgs> {
        if self.quick {
            self.rounds = 2;
            self.vectors.rows = self.vectors.rows.min(2_000);
            self.vectors.queries = self.vectors.queries.min(50);
            self.efs = vec![10, 40];
            self.clients = vec![1, 4];
            self.seconds = self.seconds.min(0.05);
        }
        self.efs.sort_unstable();
        self.efs.dedup();
        ensure!(self.rounds > 0, "--rounds must be at least 1");
        ensure!(!self.clients.contains(&0), "--clients must be at least 1 each");
        ensure!(self.efs.first().is_some_and(|ef| *ef > 0), "--efs must be at least 1 each");
        ensure!(self.seconds > 0.0, "--seconds must be above 0");
        Ok(self)
    }

    fn to_json(&self) -> Value {
        json!({
            "rounds": self.rounds,
            "rows": self.vectors.rows,
            "queries": self.vectors.queries,
            "m": wire::M,
            "ef_construction": wire::EF_CONSTRUCTION,
            "seconds": self.seconds,
            "quick": self.quick,
            "server": self.server.to_json(),
        })
    }
}

/// Runs the comparison.
pub fn vector(args: &VectorArgs) -> Result<VectorRun> {
    let mut binaries = args.server.binaries()?;
    binaries.retain(|(kind, _)| *kind != Kind::Valkey);
    ensure!(!binaries.is_empty(), "no server with vectors to measure");
    let forms = args.vectors.forms()?;
    let mut run = VectorRun::new(Machine::describe(), args.to_json());
    for form in &forms {
        for &quantization in &args.quantizations {
            trial::run(args, &binaries, form, quantization, &mut run)?;
        }
    }
    Ok(run)
}
