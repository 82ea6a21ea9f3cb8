//! Build rate, memory, recall and CPU time per query, beside libraries from `PyPI`.
//!
//! The other libraries run in `bench/vector_libraries.py`, a process for each, over the same files
//! and with the same settings, and answer with a line of JSON. They search in batches on one
//! thread, so Python's own cost is not in their figures.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{LibraryArgs, insert, new_index, recall, resident_bytes, search, thread_cpu_s};
use crate::report::markdown;
use crate::vector::data::{Form, Source};
use crate::vector::npy;
use crate::vector::outcome::{EQUAL_RECALLS, interpolate};
use crate::vector::wire::{EF_CONSTRUCTION, M, Quantization};

/// The libraries, as the script knows them.
const OTHERS: [&str; 2] = ["hnswlib", "usearch"];

/// What one engine needed.
struct Engine {
    name: String,
    vectors_per_cpu_s: f64,
    bytes_per_vector: f64,
    points: Vec<Point>,
}

/// One search effort.
struct Point {
    ef: usize,
    recall: f64,
    cpu_us: f64,
}

/// Measures all engines; a table and the figures.
pub(super) fn run(args: &LibraryArgs, source: &Source, form: &Form) -> Result<(String, Value)> {
    let mut engines = Vec::new();
    for &quantization in &args.quantizations {
        engines.push(measure(args, form, quantization)?);
    }
    for other in OTHERS.into_iter().filter(|_| args.python.is_some()) {
        engines.push(measure_other(args, source, form, other)?);
    }
    let figures: Vec<Value> = engines.iter().map(Engine::to_json).collect();
    Ok((table(&engines), Value::Array(figures)))
}

fn measure(args: &LibraryArgs, form: &Form, quantization: Quantization) -> Result<Engine> {
    eprintln!("kiln-bench: {}: Kiln {}", form.width(), quantization.name());
    let rows = form.base.len();
    let index = new_index(form.width(), quantization)?;
    let (resident, before) = (resident_bytes()?, thread_cpu_s());
    for row in 0..rows {
        insert(&index, form, row, row)?;
    }
    let build = thread_cpu_s() - before;
    let grown = resident_bytes()? - resident;
    let mut points = Vec::new();
    for &ef in &args.efs {
        let recall = recall(&index, form, ef)?;
        let mut least = f64::INFINITY;
        for _ in 0..args.rounds {
            let before = thread_cpu_s();
            for query in form.queries.rows() {
                search(&index, query, ef)?;
            }
            least = least.min(thread_cpu_s() - before);
        }
        let cpu_us = least * 1e6 / form.queries.len() as f64;
        points.push(Point { ef, recall, cpu_us });
    }
    Ok(Engine {
        name: format!("Kiln {}", quantization.name()),
        vectors_per_cpu_s: rows as f64 / build,
        bytes_per_vector: grown / rows as f64,
        points,
    })
}

/// Hands the form to the script as files. Those of the wide form are there already.
fn measure_other(args: &LibraryArgs, source: &Source, form: &Form, name: &str) -> Result<Engine> {
    eprintln!("kiln-bench: {}: {name}", form.width());
    let file = |part| source.kept_file(form.width(), part);
    for (part, matrix) in [("base", &form.base), ("queries", &form.queries)] {
        if !file(part).exists() {
            npy::write_floats(&file(part), matrix)?;
        }
    }
    let python = args.python.as_ref().context("--python was given")?;
    let mut command = Command::new(python);
    command.arg(&args.script).arg(name);
    command.args(["base", "queries", "truth"].map(file));
    command.args(["--m", M, "--ef-construction", EF_CONSTRUCTION]);
    command.args(["--rounds", &args.rounds.to_string(), "--efs"]);
    command.args(args.efs.iter().map(ToString::to_string));
    let output = command.output().with_context(|| format!("run {}", python.display()))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed: {stderr}");
    let told: Value = serde_json::from_slice(&output.stdout).context("read the script's answer")?;
    Engine::from_json(&told).context("read the script's answer")
}

impl Engine {
    fn from_json(told: &Value) -> Option<Engine> {
        let point = |point: &Value| {
            Some(Point {
                ef: point["ef"].as_u64()? as usize,
                recall: point["recall_at_10"].as_f64()?,
                cpu_us: point["cpu_us"].as_f64()?,
            })
        };
        Some(Engine {
            name: told["engine"].as_str()?.to_owned(),
            vectors_per_cpu_s: told["vectors_per_cpu_s"].as_f64()?,
            bytes_per_vector: told["bytes_per_vector"].as_f64()?,
            points: told["points"].as_array()?.iter().map(point).collect::<Option<_>>()?,
        })
    }

    fn to_json(&self) -> Value {
        let point = |point: &Point| {
            let Point { ef, recall, cpu_us } = point;
            json!({ "ef": ef, "recall_at_10": recall, "cpu_us": cpu_us })
        };
        json!({
            "engine": self.name,
            "vectors_per_cpu_s": self.vectors_per_cpu_s,
            "bytes_per_vector": self.bytes_per_vector,
            "points": self.points.iter().map(point).collect::<Vec<_>>(),
        })
    }

    /// CPU time of a query at an effort that reaches `recall`.
    fn cpu_us_at(&self, recall: f64) -> Option<f64> {
        let points: Vec<(f64, f64)> =
            self.points.iter().map(|point| (point.recall, point.cpu_us)).collect();
        interpolate(&points, recall)
    }
}

fn table(engines: &[Engine]) -> String {
    let mut header: Vec<String> =
        ["engine", "vectors/CPU s", "bytes/vector"].map(str::to_owned).to_vec();
    header.extend(EQUAL_RECALLS.map(|recall| format!("CPU µs at {recall}")));
    let efs = engines.first().map_or(&[][..], |engine| &engine.points);
    header.extend(efs.iter().map(|point| format!("EF {}: recall, CPU µs", point.ef)));
    let mut rows = vec![header];
    for engine in engines {
        let mut row = vec![
            engine.name.clone(),
            format!("{:.0}", engine.vectors_per_cpu_s),
            format!("{:.0}", engine.bytes_per_vector),
        ];
        row.extend(EQUAL_RECALLS.map(|recall| {
            engine.cpu_us_at(recall).map_or_else(|| "never".to_owned(), |us| format!("{us:.1}"))
        }));
        let point = |point: &Point| format!("{:.4}, {:.1}", point.recall, point.cpu_us);
        row.extend(engine.points.iter().map(point));
        rows.push(row);
    }
    markdown(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_is_written() {
        let points = [(10, 0.9, 10.0), (40, 0.99, 40.0)];
        let points = points.map(|(ef, recall, cpu_us)| Point { ef, recall, cpu_us });
        let engine = Engine {
            name: "x".to_owned(),
            vectors_per_cpu_s: 5.0,
            bytes_per_vector: 7.0,
            points: points.into(),
        };
        let read = Engine::from_json(&engine.to_json()).unwrap();
        assert_eq!(read.to_json(), engine.to_json());
        assert!((read.cpu_us_at(0.99).unwrap() - 40.0).abs() < 1e-9);
        assert!(table(&[read]).contains("0.9000, 10.0 "));
        assert!(Engine::from_json(&json!({ "engine": "x" })).is_none());
    }
}
