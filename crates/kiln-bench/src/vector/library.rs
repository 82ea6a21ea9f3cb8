//! `vector-library`: the graph alone, called in this process, without a server's cost.
//!
//! ```text
//! compare   build and search beside hnswlib and usearch        Python, a process for each
//! churn     replace every vector; delete and add again: recall and memory
//! scaling   two threads beside one: searches, and searches mixed with inserts
//! ```
//!
//! Figures are CPU time of the thread at work, and of several rounds the least: other load on the
//! machine only ever adds. Only `scaling` is about wall time, where the middle of the rounds
//! counts; it needs a machine with nothing else on it.

mod churn;
mod compare;
mod scaling;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use kiln_vector::{Index, IndexConfig, Metric, Request, Target};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::VectorsArgs;
use super::data::{ATTRIBUTE_VALUES, COUNT, Form};
use super::wire::{EF_CONSTRUCTION, M, Quantization, name};
use crate::machine::Machine;
use crate::report::{machine_json, titled};

/// The options of `vector-library`.
#[derive(Args, Clone, Debug)]
pub struct LibraryArgs {
    /// Which vectors, and where what is made of them is kept
    #[command(flatten)]
    pub vectors: VectorsArgs,
    /// What to measure
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST",
        default_values_t = [Part::Compare, Part::Churn, Part::Scaling])]
    pub parts: Vec<Part>,
    /// How vectors are stored, in `compare`
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Quantization::None],
        value_name = "LIST")]
    pub quantizations: Vec<Quantization>,
    /// Search efforts
    #[arg(long, value_delimiter = ',', default_values_t = [10, 20, 40, 80, 150, 300, 500],
        value_name = "LIST")]
    pub efs: Vec<usize>,
    /// How often each figure is taken
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub rounds: usize,
    /// A Python that has hnswlib and usearch [default: leave them out]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// The program that measures them
    #[arg(long, default_value = "bench/vector_libraries.py", value_name = "PATH")]
    pub script: PathBuf,
    /// Folder for the results
    #[arg(long, default_value = "bench/results", value_name = "FOLDER")]
    pub out: PathBuf,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Beside other libraries.
    Compare,
    /// Replacing and deleting.
    Churn,
    /// Two threads.
    Scaling,
}

/// What was found.
#[derive(Debug)]
pub struct LibraryRun {
    /// Where.
    pub machine: Machine,
    options: Value,
    /// A heading, a table and the figures of each part and width.
    sections: Vec<(String, String, Value)>,
}

impl LibraryRun {
    /// As Markdown.
    pub fn table(&self) -> String {
        let mut text = titled("Kiln's vector library", &self.machine);
        for (title, table, _) in &self.sections {
            let _ = write!(text, "\n## {title}\n\n{table}");
        }
        text
    }

    /// Every figure.
    pub fn to_json(&self) -> Value {
        let sections = self
            .sections
            .iter()
            .map(|(title, _, figures)| json!({ "title": title, "figures": figures }));
        json!({
            "machine": machine_json(&self.machine),
            "options": self.options,
            "sections": sections.collect::<Vec<_>>(),
        })
    }
}

/// Runs the parts that were asked for.
pub fn library(args: &LibraryArgs) -> Result<LibraryRun> {
    ensure!(args.rounds > 0, "--rounds must be at least 1");
    let source = args.vectors.source()?;
    let forms = args.vectors.forms()?;
    let options = json!({
        "rows": args.vectors.rows,
        "queries": args.vectors.queries,
        "m": M,
        "ef_construction": EF_CONSTRUCTION,
        "rounds": args.rounds,
    });
    let mut run = LibraryRun { machine: Machine::describe(), options, sections: Vec::new() };
    for form in &forms {
        for part in &args.parts {
            let (title, (table, figures)) = match part {
                Part::Compare => ("beside other libraries", compare::run(args, &source, form)?),
                Part::Churn => ("churn", churn::run(args, form)?),
                Part::Scaling => ("two threads beside one", scaling::run(args, form)?),
            };
            let title = format!("{} dimensions: {title}", form.width());
            run.sections.push((title, table, figures));
        }
    }
    Ok(run)
}

/// An empty index with the settings that all engines here are given.
fn new_index(width: usize, quantization: Quantization) -> Result<Index> {
    let mut config = IndexConfig::new(width, Metric::Cosine);
    config.m = M.parse()?;
    config.ef_construction = EF_CONSTRUCTION.parse()?;
    config.quantization = match quantization {
        Quantization::None => kiln_vector::Quantization::None,
        Quantization::Q8 => kiln_vector::Quantization::Q8,
        Quantization::Bin => kiln_vector::Quantization::Bin,
    };
    Ok(Index::new(config)?)
}

/// Adds row `vector` of the form under the name of row `element`.
fn insert(index: &Index, form: &Form, element: usize, vector: usize) -> Result<bool> {
    Ok(index.insert(name(element).as_bytes(), form.base.row(vector))?)
}

/// One search; the rows that it found.
fn search(index: &Index, query: &[f32], ef: usize) -> Result<Vec<i32>> {
    let request = Request { ef: Some(ef), ..Request::new(Target::Vector(query), COUNT) };
    let hits = index.search(&request)?.context("a search by vector has a target")?;
    let number = |name: &[u8]| std::str::from_utf8(name).ok()?.parse().ok();
    Ok(hits.iter().map(|hit| number(&hit.name).unwrap_or(-1)).collect())
}

/// recall@10 over all queries.
fn recall(index: &Index, form: &Form, ef: usize) -> Result<f64> {
    let mut found = 0;
    for at in 0..form.queries.len() {
        let rows = search(index, form.queries.row(at), ef)?;
        let near = form.nearest(at, ATTRIBUTE_VALUES);
        found += near.iter().filter(|row| rows.contains(row)).count();
    }
    Ok(found as f64 / (form.queries.len() * COUNT) as f64)
}

/// CPU time of the calling thread in seconds.
fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Resident memory of this process.
fn resident_bytes() -> Result<f64> {
    Ok(crate::server::resident_bytes(std::process::id())? as f64)
}
