//! What a run found, as a table, as JSON with every single figure, and as a chart.
//!
//! A figure in the table is the median over rounds. A ratio is taken within each round and shown as
//! median, minimum and maximum; above 1 the subject, the first server of the run, is better. The
//! chart is SVG without scripts or fonts of its own, and follows a light or dark page.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::load::Outcome;
use crate::machine::Machine;
use crate::server::{CpuTime, Kind};
use crate::workload::Command;

/// One command at one pipeline against one server in one round.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The server.
    pub kind: Kind,
    /// The round, from 0.
    pub round: usize,
    /// The command.
    pub command: Command,
    /// Commands per batch.
    pub pipeline: usize,
    /// Commands answered.
    pub commands: u64,
    /// Commands per second.
    pub per_second: f64,
    /// CPU time that the server used.
    pub cpu: CpuTime,
    /// Latency of a batch in microseconds at p50, p99 and p99.9, and the longest.
    pub latency_us: [f64; 4],
}

impl Cell {
    /// From what the load and the server say.
    pub fn new(
        kind: Kind,
        round: usize,
        command: Command,
        pipeline: usize,
        outcome: &Outcome,
        cpu: CpuTime,
    ) -> Cell {
        Cell {
            kind,
            round,
            command,
            pipeline,
            commands: outcome.commands,
            per_second: outcome.per_second(),
            cpu,
            latency_us: latencies(outcome),
        }
    }

    /// Server CPU time per command in microseconds, user and system.
    pub fn cpu_us(&self) -> f64 {
        self.cpu.total_ns as f64 / 1e3 / self.commands as f64
    }

    fn elapsed_s(&self) -> f64 {
        self.commands as f64 / self.per_second
    }

    /// The values that [`CELL_FIELDS`] names.
    fn to_json(&self) -> Value {
        let [p50, p99, p999, max] = self.latency_us.map(to_tenths);
        json!([
            self.kind.name(),
            self.round,
            self.command.name(),
            self.pipeline,
            self.commands,
            to_tenths(self.per_second),
            self.cpu.total_ns,
            self.cpu.user_ms,
            self.cpu.system_ms,
            self.cpu.wait_ns,
            p50,
            p99,
            p999,
            max,
        ])
    }
}

/// What a cell's row in the results file holds; rows of plain values keep a run below 100 KB.
const CELL_FIELDS: [&str; 14] = [
    "server",
    "round",
    "command",
    "pipeline",
    "commands",
    "commands_per_second",
    "server_cpu_ns",
    "server_user_ms",
    "server_system_ms",
    "server_wait_ns",
    "latency_us_p50",
    "latency_us_p99",
    "latency_us_p99.9",
    "latency_us_max",
];

/// Digits beyond the first are noise and fill the file.
pub(crate) fn to_tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// p50, p99, p99.9 and the maximum, in microseconds.
pub fn latencies(outcome: &Outcome) -> [f64; 4] {
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| outcome.latency_us(quantile));
    [p50, p99, p999, outcome.latency_us_max()]
}

/// The form in which JSON shows [`latencies`].
pub fn latency_json(latency_us: &[f64; 4]) -> Value {
    let [p50, p99, p999, max] = latency_us.map(to_tenths);
    json!({ "p50": p50, "p99": p99, "p99.9": p999, "max": max })
}

/// Memory per key of one kind of data in one server.
#[derive(Clone, Debug)]
pub struct MemoryFigure {
    /// The server.
    pub kind: Kind,
    /// What was stored.
    pub data: &'static str,
    /// How many keys.
    pub keys: u64,
    /// By how much the process grew.
    pub resident_bytes_per_key: f64,
    /// By how much `used_memory` grew, if the server tells it.
    pub used_bytes_per_key: Option<f64>,
}

/// A server that took part.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// Which.
    pub kind: Kind,
    /// Its own word.
    pub version: String,
    /// Path of the binary.
    pub binary: String,
}

impl ServerInfo {
    /// Name and version.
    pub fn title(&self) -> String {
        format!("{} {}", self.kind.name(), self.version)
    }

    /// For the results file; of the binary only its name, since folders differ between machines.
    pub fn to_json(&self) -> Value {
        let binary = self.binary.rsplit('/').next();
        json!({ "name": self.kind.name(), "version": self.version, "binary": binary })
    }
}

/// A whole comparison.
#[derive(Debug)]
pub struct Run {
    /// Where.
    pub machine: Machine,
    /// With what options.
    pub options: Value,
    /// Who; ratios are the first one's advantage over each of the others.
    pub servers: Vec<ServerInfo>,
    /// Every measurement.
    pub cells: Vec<Cell>,
    /// Memory per key, if measured.
    pub memory: Vec<MemoryFigure>,
}

impl Run {
    /// Nothing measured yet.
    pub fn new(machine: Machine, options: Value) -> Run {
        Run { machine, options, servers: Vec::new(), cells: Vec::new(), memory: Vec::new() }
    }

    /// Everything as a Markdown text that reads as well in a terminal.
    pub fn table(&self) -> String {
        let mut text = heading(&self.machine, &self.servers);
        text.push_str(&self.waiting());
        for pipeline in self.pipelines() {
            let _ = write!(text, "\n## Pipeline {pipeline}\n\n");
            text.push_str(&self.pipeline_table(pipeline));
            text.push_str(&self.pipeline_summary(pipeline));
        }
        if !self.memory.is_empty() {
            text.push_str("\n## Memory per key\n\n");
            text.push_str(&self.memory_table());
        }
        text
    }

    /// Everything, each round's figures included.
    pub fn to_json(&self) -> Value {
        let memory: Vec<Value> = self
            .memory
            .iter()
            .map(|figure| {
                json!({
                    "server": figure.kind.name(),
                    "data": figure.data,
                    "keys": figure.keys,
                    "resident_bytes_per_key": figure.resident_bytes_per_key,
                    "used_memory_bytes_per_key": figure.used_bytes_per_key,
                })
            })
            .collect();
        json!({
            "machine": machine_json(&self.machine),
            "options": self.options,
            "servers": self.servers.iter().map(ServerInfo::to_json).collect::<Vec<_>>(),
            "ratios": self.ratios_json(),
            "memory": memory,
            "cell_fields": CELL_FIELDS,
            "cells": self.cells.iter().map(Cell::to_json).collect::<Vec<_>>(),
        })
    }

    /// The chart of server CPU time per command at the deepest pipeline that was run.
    pub fn chart(&self) -> String {
        let Some(&pipeline) = self.pipelines().last() else { return String::new() };
        let groups: Vec<Group> = self
            .commands()
            .into_iter()
            .map(|command| {
                let label = match command.keys() {
                    1 => command.name().to_owned(),
                    _ => format!("{}, per key", command.name()),
                };
                let bars = self.servers.iter().filter_map(|server| {
                    let cpu = self.values(server.kind, command, pipeline, Cell::cpu_us)?;
                    Some((server.kind, spread(&cpu).median / command.keys() as f64))
                });
                Group { label, bars: bars.collect() }
            })
            .collect();
        let title = format!("Server CPU µs per command, pipeline {pipeline}; shorter is better");
        let note = format!("{}; commit {}", self.machine.cpu, self.machine.commit);
        draw(&title, &note, &self.servers, &groups)
    }

    /// How much the servers had to wait for a core, without which no latency can be judged.
    fn waiting(&self) -> String {
        let shares: Vec<String> = self
            .servers
            .iter()
            .map(|server| {
                let cells = self.cells.iter().filter(|cell| cell.kind == server.kind);
                let (wait_ns, elapsed_s) = cells.fold((0, 0.0), |(wait_ns, elapsed_s), cell| {
                    (wait_ns + cell.cpu.wait_ns, elapsed_s + cell.elapsed_s())
                });
                let percent = wait_ns as f64 / 1e9 / elapsed_s * 100.0;
                format!("{} {percent:.1}%", server.kind.name())
            })
            .collect();
        format!("\nShare of the time spent waiting for a core: {}\n", shares.join(", "))
    }

    fn pipelines(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.cells.iter().map(|cell| cell.pipeline).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn commands(&self) -> Vec<Command> {
        let mut all: Vec<Command> = self.cells.iter().map(|cell| cell.command).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// One value per round, in the order of rounds; `None` if there is none.
    fn values(
        &self,
        kind: Kind,
        command: Command,
        pipeline: usize,
        value: impl Fn(&Cell) -> f64,
    ) -> Option<Vec<f64>> {
        let of_interest = self
            .cells
            .iter()
            .filter(|cell| (cell.kind, cell.command, cell.pipeline) == (kind, command, pipeline));
        let values: Vec<f64> = of_interest.map(value).collect();
        (!values.is_empty()).then_some(values)
    }

    /// The subject's advantage over `peer` in commands per second and in CPU time, round by round.
    fn advantage(&self, peer: Kind, command: Command, pipeline: usize) -> Option<[Vec<f64>; 2]> {
        let subject = self.servers.first()?.kind;
        if subject == peer {
            return None;
        }
        let of = |kind, value: fn(&Cell) -> f64| self.values(kind, command, pipeline, value);
        let speed =
            ratios(&of(subject, |cell| cell.per_second)?, &of(peer, |cell| cell.per_second)?);
        let cpu = ratios(&of(peer, Cell::cpu_us)?, &of(subject, Cell::cpu_us)?);
        Some([speed, cpu])
    }

    fn pipeline_table(&self, pipeline: usize) -> String {
        let mut rows = vec![
            ["command", "server", "requests/s", "CPU µs", "p50 µs", "p99 µs", "p99.9 µs"]
                .map(str::to_owned)
                .to_vec(),
        ];
        let subject = self.servers.first().map_or("", |server| server.kind.name());
        rows[0].push(format!("{subject}'s requests/s ×"));
        rows[0].push(format!("{subject}'s CPU ×"));
        for command in self.commands() {
            for server in &self.servers {
                let of = |value: &dyn Fn(&Cell) -> f64| {
                    self.values(server.kind, command, pipeline, value)
                        .map_or(f64::NAN, |values| spread(&values).median)
                };
                let mut row = vec![
                    command.name().to_owned(),
                    server.kind.name().to_owned(),
                    format!("{:.0}", of(&|cell| cell.per_second)),
                    format!("{:.3}", of(&Cell::cpu_us)),
                ];
                row.extend((0..3).map(|at| format!("{:.0}", of(&|cell| cell.latency_us[at]))));
                match self.advantage(server.kind, command, pipeline) {
                    Some(both) => row.extend(both.map(|ratios| spread(&ratios).to_string())),
                    None => row.extend([String::new(), String::new()]),
                }
                rows.push(row);
            }
        }
        markdown(&rows)
    }

    /// The geometric mean over commands, which no single command can dominate.
    fn pipeline_summary(&self, pipeline: usize) -> String {
        let mut text = String::new();
        let Some((subject, peers)) = self.servers.split_first() else { return text };
        for peer in peers {
            let medians: Vec<[f64; 2]> = self
                .commands()
                .into_iter()
                .filter_map(|command| self.advantage(peer.kind, command, pipeline))
                .map(|both| both.map(|ratios| spread(&ratios).median))
                .collect();
            let mean = |at: usize| geometric_mean(medians.iter().map(|both| both[at]));
            let _ = write!(
                text,
                "\n{} beside {}, geometric mean of {} commands: requests/s {:.2}×, CPU {:.2}×.\n",
                subject.kind.name(),
                peer.kind.name(),
                medians.len(),
                mean(0),
                mean(1),
            );
        }
        text
    }

    fn memory_table(&self) -> String {
        let header = ["data", "server", "keys", "resident bytes", "used_memory bytes"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        let mut figures: Vec<&MemoryFigure> = self.memory.iter().collect();
        // Stable: data in the order measured, servers beside each other.
        let place = |data| self.memory.iter().position(|other| other.data == data);
        figures.sort_by_key(|figure| place(figure.data));
        for figure in figures {
            rows.push(vec![
                figure.data.to_owned(),
                figure.kind.name().to_owned(),
                figure.keys.to_string(),
                format!("{:.1}", figure.resident_bytes_per_key),
                figure.used_bytes_per_key.map_or_else(String::new, |used| format!("{used:.1}")),
            ]);
        }
        markdown(&rows)
    }

    fn ratios_json(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for pipeline in self.pipelines() {
            for command in self.commands() {
                for peer in &self.servers {
                    let Some([speed, cpu]) = self.advantage(peer.kind, command, pipeline) else {
                        continue;
                    };
                    all.push(json!({
                        "peer": peer.kind.name(),
                        "command": command.name(),
                        "pipeline": pipeline,
                        "commands_per_second": spread(&speed).to_json(),
                        "server_cpu": spread(&cpu).to_json(),
                    }));
                }
            }
        }
        all
    }
}

/// Writes `<date>-<commit><suffix>` as `.json`, `.md` and, if there is one, the chart as `.svg`.
/// Returns the paths.
pub fn keep(
    folder: &Path,
    machine: &Machine,
    suffix: &str,
    json: &Value,
    table: &str,
    chart: Option<&str>,
) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let stem = format!("{}-{}{suffix}", machine.date, machine.commit);
    let lines = json_lines(json);
    let mut files = vec![("json", lines.as_str()), ("md", table)];
    files.extend(chart.map(|chart| ("svg", chart)));
    let mut paths = Vec::new();
    for (extension, text) in files {
        let path = folder.join(format!("{stem}.{extension}"));
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        paths.push(path);
    }
    Ok(paths)
}

/// An object with a line for each field, and for each element of a field that is an array: as easy
/// to search and to compare as a table.
fn json_lines(json: &Value) -> String {
    let Value::Object(fields) = json else { return json.to_string() };
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| match value {
            Value::Array(elements) if !elements.is_empty() => {
                let elements: Vec<String> = elements.iter().map(Value::to_string).collect();
                format!("{name:?}: [\n  {}\n]", elements.join(",\n  "))
            }
            _ => format!("{name:?}: {value}"),
        })
        .collect();
    format!("{{\n{}\n}}\n", fields.join(",\n"))
}

/// Who was measured where, for the top of a text.
pub fn heading(machine: &Machine, servers: &[ServerInfo]) -> String {
    let titles: Vec<String> = servers.iter().map(ServerInfo::title).collect();
    titled(&titles.join(", "), machine)
}

/// A title, and where it was measured.
pub(crate) fn titled(title: &str, machine: &Machine) -> String {
    format!(
        "# {title}\n\n{}, commit {}: {}, {} cores, {:.0} GiB, Linux {}, load average {:.2} at the \
         start\n",
        machine.date,
        machine.commit,
        machine.cpu,
        machine.cores,
        machine.memory_bytes as f64 / f64::from(1 << 30),
        machine.kernel,
        machine.load_average,
    )
}

/// For the results file.
pub fn machine_json(machine: &Machine) -> Value {
    json!({
        "cpu": machine.cpu,
        "cores": machine.cores,
        "memory_bytes": machine.memory_bytes,
        "kernel": machine.kernel,
        "load_average": machine.load_average,
        "date": machine.date,
        "commit": machine.commit,
    })
}

/// The middle and the ends of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn to_json(self) -> Value {
        json!({ "median": self.median, "min": self.min, "max": self.max })
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.min, self.max)
    }
}

/// For at least one value.
pub(crate) fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    };
    Spread { median, min: sorted[0], max: sorted[sorted.len() - 1] }
}

/// Round by round; a round that one side lacks is left out.
pub(crate) fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

/// A Markdown table with padded columns; the first row is the header. Numbers go to the right.
pub fn markdown(rows: &[Vec<String>]) -> String {
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let columns = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let right: Vec<bool> = (0..columns)
        .map(|at| rows[1..].iter().all(|row| row[at].is_empty() || is_number(&row[at])))
        .collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (at, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[at] - cell.chars().count());
            let (before, after) = if right[at] { (pad.as_str(), "") } else { ("", pad.as_str()) };
            let _ = write!(text, "| {before}{cell}{after} ");
        }
        text.push_str("|\n");
        if index == 0 {
            for at in 0..columns {
                let end = if right[at] { ':' } else { '-' };
                let _ = write!(text, "|{}{end}", "-".repeat(widths[at] + 1));
            }
            text.push_str("|\n");
        }
    }
    text
}

/// Bars of one command.
struct Group {
    label: String,
    bars: Vec<(Kind, f64)>,
}

// Measures of the chart, in its own units.
const CHART_WIDTH: f64 = 760.0;
const BARS_LEFT: f64 = 120.0;
const BARS_RIGHT: f64 = CHART_WIDTH - 60.0;
const BARS_TOP: f64 = 68.0;
const BAR_HEIGHT: f64 = 11.0;
const GROUP_GAP: f64 = 9.0;

fn draw(title: &str, note: &str, servers: &[ServerInfo], groups: &[Group]) -> String {
    let longest = groups.iter().flat_map(|group| &group.bars).map(|bar| bar.1).fold(0.0, f64::max);
    let scale = (BARS_RIGHT - BARS_LEFT) / longest.max(f64::MIN_POSITIVE);
    let bars: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = BARS_TOP + bars as f64 * BAR_HEIGHT + groups.len() as f64 * GROUP_GAP + 24.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {CHART_WIDTH} {height}\" \
         role=\"img\" aria-label=\"{}\">\n{STYLE}",
        escape(title),
    );
    let mut text = |x: f64, y: f64, class: &str, text: &str| {
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>",
            escape(text)
        );
    };
    text(12.0, 22.0, "title", title);
    text(12.0, height - 8.0, "note", note);
    for (index, server) in servers.iter().enumerate() {
        text(BARS_LEFT + 16.0 + index as f64 * 170.0, 47.0, "label start", &server.title());
    }
    let mut y = BARS_TOP;
    let mut shapes = String::new();
    for (index, server) in servers.iter().enumerate() {
        let x = BARS_LEFT + index as f64 * 170.0;
        let _ = writeln!(shapes, "{}", rect(server.kind, x, 38.0, 11.0));
    }
    for group in groups {
        let middle = y + group.bars.len() as f64 * BAR_HEIGHT / 2.0 + 4.0;
        text(BARS_LEFT - 8.0, middle, "label", &group.label);
        for &(kind, value) in &group.bars {
            let _ = writeln!(shapes, "{}", rect(kind, BARS_LEFT, y, value * scale));
            text(BARS_LEFT + value * scale + 5.0, y + 9.0, "value", &format!("{value:.2}"));
            y += BAR_HEIGHT;
        }
        y += GROUP_GAP;
    }
    svg.push_str(&shapes);
    svg.push_str("</svg>\n");
    svg
}

fn rect(kind: Kind, x: f64, y: f64, width: f64) -> String {
    let (class, height) = (kind.name().to_lowercase(), BAR_HEIGHT - 1.0);
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\" \
         class=\"{class}\"/>"
    )
}

/// Colors keep apart for color-blind readers and in grey, on white as on black.
pub(crate) const STYLE: &str = "<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.label { text-anchor: end } .start { text-anchor: start }
.value { font-size: 10px } .note { font-size: 10px; fill: #6e7781 }
.kiln { fill: #d9480f } .valkey { fill: #4c6ef5 } .redis { fill: #868e96 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .note { fill: #8b949e }
.kiln { fill: #ff922b } .valkey { fill: #748ffc } .redis { fill: #adb5bd }
}
</style>
";

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let mut machine = Machine::describe();
        machine.commit = "0123456789".to_owned();
        let mut run = Run::new(machine, Value::Null);
        for kind in [Kind::Kiln, Kind::Redis] {
            let (version, binary) = ("1.0 <&>".to_owned(), "x".to_owned());
            run.servers.push(ServerInfo { kind, version, binary });
        }
        // Kiln's CPU time per command is 1, 2, 3 µs, Redis's 4, 4, 24.
        for (kind, total_ns) in
            [(Kind::Kiln, [1, 2, 3]), (Kind::Redis, [4, 4, 24])].map(|(kind, us)| (kind, us))
        {
            for (round, us) in total_ns.into_iter().enumerate() {
                run.cells.push(Cell {
                    kind,
                    round,
                    command: Command::Get,
                    pipeline: 16,
                    commands: 1_000,
                    per_second: 10.0 / us as f64,
                    cpu: CpuTime { total_ns: us * 1_000_000, ..CpuTime::default() },
                    latency_us: [1.0, 2.0, 3.0, 4.0],
                });
            }
        }
        run
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let [speed, cpu] = run().advantage(Kind::Redis, Command::Get, 16).unwrap();
        assert_eq!(speed.iter().map(|ratio| ratio.round()).collect::<Vec<_>>(), [4.0, 2.0, 8.0]);
        assert_eq!(spread(&cpu), Spread { median: 4.0, min: 2.0, max: 8.0 });
        assert!(run().advantage(Kind::Kiln, Command::Get, 16).is_none());
        assert!(run().advantage(Kind::Valkey, Command::Get, 16).is_none());
    }

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        assert_eq!(spread(&[4.0, 1.0, 3.0, 2.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(spread(&[5.0]), Spread { median: 5.0, min: 5.0, max: 5.0 });
    }

    #[test]
    fn the_geometric_mean_weighs_factors() {
        assert!((geometric_mean([2.0, 8.0].into_iter()) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn the_table_shows_medians_and_the_range_of_ratios() {
        let table = run().table();
        for part in ["| GET ", "| Redis ", " 2.000 ", "4.00 (2.00–8.00)", "CPU 4.00×"] {
            assert!(table.contains(part), "{part} in\n{table}");
        }
    }

    #[test]
    fn json_keeps_every_round() {
        let json: Value = serde_json::from_str(&json_lines(&run().to_json())).unwrap();
        let cells = json["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 6);
        assert!(cells.iter().all(|cell| cell.as_array().unwrap().len() == CELL_FIELDS.len()));
        assert_eq!(json["ratios"][0]["server_cpu"]["max"], 8.0);
        assert_eq!(json["machine"]["commit"], "0123456789");
    }

    #[test]
    fn the_chart_has_a_bar_per_server_and_escapes_text() {
        let chart = run().chart();
        assert_eq!(chart.matches("<rect").count(), 4, "two bars and two legend marks");
        assert!(chart.contains("1.0 &lt;&amp;>"));
        assert!(chart.ends_with("</svg>\n"));
    }

    #[test]
    fn markdown_lines_up() {
        let rows =
            [["a", "n"], ["µs", "10"], ["b", "5"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            markdown(&rows),
            "| a  |  n |\n|---|---:|\n| µs | 10 |\n| b  |  5 |\n"
                .replace("|---|---:|", "|----|---:|")
        );
    }
}
