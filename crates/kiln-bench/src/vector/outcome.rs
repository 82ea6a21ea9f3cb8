//! What a run found: tables, JSON with every single figure, and a chart of recall against speed.
//!
//! Two engines at one search effort do different work, so the comparison that counts is at equal
//! recall. Between two efforts that were measured, the logarithm of a figure is taken to be linear
//! in the logarithm of the recall that is missing, which is close to the truth for graphs. Nothing
//! is extrapolated: an engine that exceeds a recall at its least effort is given the figure of that
//! effort, and one that never reaches it has none.
//!
//! Figures are medians over rounds; ratios are taken within rounds, above 1 the first way of the
//! run is better.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::chart;
use super::data::ATTRIBUTE_VALUES;
use super::wire::{Face, Quantization, Search};
use crate::machine::Machine;
use crate::report::{
    ServerInfo, Spread, heading, machine_json, markdown, ratios, spread, to_tenths,
};
use crate::server::Kind;

/// Recalls at which engines are compared.
pub(super) const EQUAL_RECALLS: [f64; 2] = [0.95, 0.99];

/// A server and how it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) kind: Kind,
    pub(super) face: Face,
    pub(super) no_thread: bool,
}

impl Way {
    /// With no more than the command needs.
    pub(super) fn plain(kind: Kind, face: Face) -> Way {
        Way { kind, face, no_thread: false }
    }

    /// The name in reports.
    pub(super) fn name(self) -> &'static str {
        match (self.kind, self.face, self.no_thread) {
            (Kind::Redis, _, true) => "Redis NOTHREAD",
            (kind, Face::Set, _) => kind.name(),
            (_, Face::Index, _) => "Kiln VSIM.*",
        }
    }

    /// A search this way.
    pub(super) fn search(self, ef: usize, kept_per_mille: usize) -> Search {
        Search { face: self.face, ef, no_thread: self.no_thread, kept_per_mille }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) width: usize,
    pub(super) quantization: Quantization,
    pub(super) way: Way,
}

/// A server filled with vectors.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) setting: Setting,
    pub(super) rows: usize,
    pub(super) connections: usize,
    pub(super) elapsed_s: f64,
    pub(super) cpu_s: f64,
    /// By how much the process grew, per vector.
    pub(super) resident_bytes: f64,
    /// MEMORY USAGE, per vector.
    pub(super) accounted_bytes: Option<f64>,
    /// An effort and its recall, where the graph was checked at once.
    pub(super) recall: Option<(usize, f64)>,
}

/// One setting in one round.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) setting: Setting,
    /// Of a thousand rows the filter keeps so many.
    pub(super) kept_per_mille: usize,
    pub(super) ef: usize,
    pub(super) clients: usize,
    pub(super) round: usize,
    pub(super) recall: f64,
    pub(super) queries: u64,
    pub(super) per_second: f64,
    /// Server CPU time per query.
    pub(super) cpu_us: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

/// The fields of a cell's row in the results file.
const CELL_FIELDS: [&str; 13] = [
    "width",
    "quantization",
    "way",
    "kept_per_mille",
    "ef",
    "clients",
    "round",
    "recall_at_10",
    "queries",
    "queries_per_second",
    "server_cpu_us",
    "latency_us_p50",
    "latency_us_p99",
];

impl Cell {
    fn to_json(&self) -> Value {
        json!([
            self.setting.width,
            self.setting.quantization.name(),
            self.setting.way.name(),
            self.kept_per_mille,
            self.ef,
            self.clients,
            self.round,
            (self.recall * 1e4).round() / 1e4,
            self.queries,
            to_tenths(self.per_second),
            to_tenths(self.cpu_us),
            to_tenths(self.p50_us),
            to_tenths(self.p99_us),
        ])
    }
}

impl Load {
    fn to_json(&self) -> Value {
        json!({
            "width": self.setting.width,
            "quantization": self.setting.quantization.name(),
            "way": self.setting.way.name(),
            "rows": self.rows,
            "connections": self.connections,
            "elapsed_s": self.elapsed_s,
            "server_cpu_s": self.cpu_s,
            "resident_bytes_per_vector": to_tenths(self.resident_bytes),
            "memory_usage_bytes_per_vector": self.accounted_bytes.map(to_tenths),
            "checked_ef": self.recall.map(|(ef, _)| ef),
            "checked_recall_at_10": self.recall.map(|(_, recall)| recall),
        })
    }
}

/// A figure of a cell.
type Figure = fn(&Cell) -> f64;

const PER_SECOND: Figure = |cell| cell.per_second;
const CPU_US: Figure = |cell| cell.cpu_us;

/// A whole run.
#[derive(Debug)]
pub struct VectorRun {
    /// Where.
    pub machine: Machine,
    options: Value,
    pub(super) servers: Vec<ServerInfo>,
    pub(super) loads: Vec<Load>,
    pub(super) cells: Vec<Cell>,
    pub(super) filtered: Vec<Cell>,
}

impl VectorRun {
    pub(super) fn new(machine: Machine, options: Value) -> VectorRun {
        VectorRun {
            machine,
            options,
            servers: Vec::new(),
            loads: Vec::new(),
            cells: Vec::new(),
            filtered: Vec::new(),
        }
    }

    /// Every figure.
    pub fn to_json(&self) -> Value {
        json!({
            "machine": machine_json(&self.machine),
            "options": self.options,
            "servers": self.servers.iter().map(ServerInfo::to_json).collect::<Vec<_>>(),
            "loads": self.loads.iter().map(Load::to_json).collect::<Vec<_>>(),
            "cell_fields": CELL_FIELDS,
            "cells": self.cells.iter().map(Cell::to_json).collect::<Vec<_>>(),
            "filtered": self.filtered.iter().map(Cell::to_json).collect::<Vec<_>>(),
        })
    }

    /// As Markdown.
    pub fn table(&self) -> String {
        let mut text = heading(&self.machine, &self.servers);
        if !self.loads.is_empty() {
            text.push_str("\n## Load and memory\n\n");
            text.push_str(&self.loads_table());
        }
        for (width, quantization) in self.sets() {
            let set = Set { run: self, width, quantization };
            let _ = write!(text, "\n## {width} dimensions, {}\n", quantization.name());
            for clients in set.clients() {
                let _ = write!(text, "\n### Clients: {clients}\n\n{}", set.efforts_table(clients));
                let _ = write!(text, "\nAt equal recall@10:\n\n{}", set.recalls_table(clients));
            }
            let filtered = set.filters_table();
            if !filtered.is_empty() {
                let _ = write!(text, "\n### Filters, one client\n\n{filtered}");
            }
        }
        text
    }

    /// Recall against queries per second of one client, a panel for each width, float32 first.
    pub fn chart(&self) -> String {
        let panels = self.sets().into_iter().map(|(width, quantization)| {
            let set = Set { run: self, width, quantization };
            let clients = set.clients().first().copied().unwrap_or(1);
            let lines = set.ways().into_iter().map(|way| chart::Line {
                way,
                points: set
                    .efs()
                    .into_iter()
                    .filter_map(|ef| {
                        let speed = set.values(way, ef, clients, PER_SECOND);
                        Some((set.recall(way, ef)?, spread(&speed?).median))
                    })
                    .collect(),
            });
            chart::Panel {
                title: format!("{width} dimensions, {}", quantization.name()),
                lines: lines.collect(),
            }
        });
        let note = format!("{}; commit {}", self.machine.cpu, self.machine.commit);
        chart::draw(&note, &panels.collect::<Vec<_>>())
    }

    fn loads_table(&self) -> String {
        let mut rows = vec![
            [
                "width",
                "stored",
                "way",
                "connections",
                "vectors/s",
                "vectors/CPU s",
                "resident bytes",
                "MEMORY USAGE",
                "recall",
            ]
            .map(str::to_owned)
            .to_vec(),
        ];
        for load in &self.loads {
            let Setting { width, quantization, way } = load.setting;
            let count = load.rows as f64;
            rows.push(vec![
                width.to_string(),
                quantization.name().to_owned(),
                way.name().to_owned(),
                load.connections.to_string(),
                format!("{:.0}", count / load.elapsed_s),
                format!("{:.0}", count / load.cpu_s),
                format!("{:.0}", load.resident_bytes),
                load.accounted_bytes.map_or_else(String::new, |bytes| format!("{bytes:.0}")),
                load.recall
                    .map_or_else(String::new, |(ef, recall)| format!("{recall:.4} at EF {ef}")),
            ]);
        }
        markdown(&rows)
    }

    fn sets(&self) -> Vec<(usize, Quantization)> {
        let of = |cell: &Cell| (cell.setting.width, cell.setting.quantization);
        distinct(self.cells.iter().map(of))
    }
}

/// The different values in the order of their first appearance.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// The cells of one width and quantization.
struct Set<'a> {
    run: &'a VectorRun,
    width: usize,
    quantization: Quantization,
}

impl Set<'_> {
    fn in_set(&self, cell: &Cell) -> bool {
        (cell.setting.width, cell.setting.quantization) == (self.width, self.quantization)
    }

    fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.run.cells.iter().filter(|cell| self.in_set(cell))
    }

    /// In the order of the servers, not of the turns.
    fn ways(&self) -> Vec<Way> {
        let mut ways = distinct(self.cells().map(|cell| cell.setting.way));
        ways.sort_by_key(|way| (way.kind, way.face, way.no_thread));
        ways
    }

    fn efs(&self) -> Vec<usize> {
        distinct(self.cells().map(|cell| cell.ef))
    }

    fn clients(&self) -> Vec<usize> {
        distinct(self.cells().map(|cell| cell.clients))
    }

    fn recall(&self, way: Way, ef: usize) -> Option<f64> {
        let mut cells = self.cells();
        Some(cells.find(|cell| cell.setting.way == way && cell.ef == ef)?.recall)
    }

    /// One value per round, in the order of rounds; `None` if there is none.
    fn values(&self, way: Way, ef: usize, clients: usize, figure: Figure) -> Option<Vec<f64>> {
        let wanted =
            |cell: &&Cell| cell.setting.way == way && cell.ef == ef && cell.clients == clients;
        let values: Vec<f64> = self.cells().filter(wanted).map(figure).collect();
        (!values.is_empty()).then_some(values)
    }

    /// The values that a way would have at an effort of this recall; `None` if it has no such.
    fn values_at(&self, recall: f64, way: Way, clients: usize, figure: Figure) -> Option<Vec<f64>> {
        let points: Option<Vec<(f64, Vec<f64>)>> = self
            .efs()
            .into_iter()
            .map(|ef| Some((self.recall(way, ef)?, self.values(way, ef, clients, figure)?)))
            .collect();
        let points = points?;
        (0..points.first()?.1.len())
            .map(|round| {
                let of_round =
                    |(recall, values): &(f64, Vec<f64>)| Some((*recall, *values.get(round)?));
                let of_round: Option<Vec<(f64, f64)>> = points.iter().map(of_round).collect();
                interpolate(&of_round?, recall)
            })
            .collect()
    }

    fn efforts_table(&self, clients: usize) -> String {
        let ways = self.ways();
        let mut rows = vec![header("EF", ways[0])];
        for ef in self.efs() {
            for &way in &ways {
                let of = |way, figure| self.values(way, ef, clients, figure);
                let recall = self.recall(way, ef).unwrap_or(f64::NAN);
                rows.push(row(ef.to_string(), format!("{recall:.4}"), ways[0], way, &of));
            }
        }
        markdown(&rows)
    }

    fn recalls_table(&self, clients: usize) -> String {
        let ways = self.ways();
        let mut rows = vec![header("recall", ways[0])];
        for recall in EQUAL_RECALLS {
            for &way in &ways {
                let of = |way, figure| self.values_at(recall, way, clients, figure);
                let efs = || {
                    let points: Vec<(f64, f64)> = self
                        .efs()
                        .into_iter()
                        .filter_map(|ef| Some((self.recall(way, ef)?, ef as f64)))
                        .collect();
                    interpolate(&points, recall)
                };
                let ef = efs().map_or_else(|| "never".to_owned(), |ef| format!("EF {ef:.0}"));
                rows.push(row(recall.to_string(), ef, ways[0], way, &of));
            }
        }
        markdown(&rows)
    }

    fn filters_table(&self) -> String {
        let cells: Vec<&Cell> = self.run.filtered.iter().filter(|cell| self.in_set(cell)).collect();
        if cells.is_empty() {
            return String::new();
        }
        let header = ["kept", "EF", "way", "recall", "queries/s", "CPU µs", "p50 µs", "p99 µs"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for kept in distinct(cells.iter().map(|cell| cell.kept_per_mille)) {
            for cell in cells.iter().filter(|cell| cell.kept_per_mille == kept) {
                rows.push(vec![
                    format!("{}%", kept as f64 / ATTRIBUTE_VALUES as f64 * 100.0),
                    cell.ef.to_string(),
                    cell.setting.way.name().to_owned(),
                    format!("{:.4}", cell.recall),
                    format!("{:.0}", cell.per_second),
                    format!("{:.0}", cell.cpu_us),
                    format!("{:.0}", cell.p50_us),
                    format!("{:.0}", cell.p99_us),
                ]);
            }
        }
        markdown(&rows)
    }
}

fn header(first: &str, subject: Way) -> Vec<String> {
    let mut header =
        [first, "way", if first == "EF" { "recall" } else { "at" }, "queries/s", "CPU µs"]
            .map(str::to_owned)
            .to_vec();
    header.extend(["p50 µs", "p99 µs"].map(str::to_owned));
    header.push(format!("{}'s queries/s ×", subject.name()));
    header.push(format!("{}'s CPU ×", subject.name()));
    header
}

/// A table row for `way`, with the ratios of `subject` to it.
fn row(
    first: String,
    third: String,
    subject: Way,
    way: Way,
    of: &dyn Fn(Way, Figure) -> Option<Vec<f64>>,
) -> Vec<String> {
    let figures: [Figure; 4] = [PER_SECOND, CPU_US, |cell| cell.p50_us, |cell| cell.p99_us];
    let median = |figure| {
        of(way, figure).map_or_else(String::new, |all| format!("{:.0}", spread(&all).median))
    };
    let mut row = vec![first, way.name().to_owned(), third];
    row.extend(figures.map(median));
    let advantage = |figure: Figure, more_is_better: bool| -> Option<Spread> {
        if way == subject {
            return None;
        }
        let (own, other) = (of(subject, figure)?, of(way, figure)?);
        let ratios = if more_is_better { ratios(&own, &other) } else { ratios(&other, &own) };
        Some(spread(&ratios))
    };
    for (figure, more_is_better) in [(PER_SECOND, true), (CPU_US, false)] {
        let shown = advantage(figure, more_is_better);
        row.push(shown.map_or_else(String::new, |spread| spread.to_string()));
    }
    row
}

/// The value at `recall` on the line through points of recall and value, in order of effort.
pub(super) fn interpolate(points: &[(f64, f64)], recall: f64) -> Option<f64> {
    let at = points.iter().position(|(reached, _)| *reached >= recall)?;
    let (upper, upper_value) = points[at];
    let Some((lower, lower_value)) = at.checked_sub(1).map(|before| points[before]) else {
        return Some(upper_value);
    };
    // A graph that misses nothing is taken to miss half of one answer of ten thousand.
    let missing = |recall: f64| (1.0 - recall).max(5e-5).ln();
    let share = (missing(lower) - missing(recall)) / (missing(lower) - missing(upper));
    Some((lower_value.ln() + share * (upper_value.ln() - lower_value.ln())).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> VectorRun {
        let mut machine = Machine::describe();
        machine.commit = "0123456789".to_owned();
        let mut run = VectorRun::new(machine, Value::Null);
        for kind in [Kind::Kiln, Kind::Redis] {
            let (version, binary) = ("1.0".to_owned(), "x".to_owned());
            run.servers.push(ServerInfo { kind, version, binary });
        }
        let efforts = [(10, 0.9), (40, 0.99), (160, 0.999)];
        for round in 0..3 {
            for (ef, recall) in efforts {
                // Redis is slower by 2, 3 and 4 in three rounds, and spends 8 times the CPU time.
                for (kind, slower, cpu) in [(Kind::Redis, round + 2, 80.0), (Kind::Kiln, 1, 10.0)] {
                    let way = Way::plain(kind, Face::Set);
                    let quantization = Quantization::None;
                    run.cells.push(Cell {
                        setting: Setting { width: 384, quantization, way },
                        kept_per_mille: 1_000,
                        ef,
                        clients: 1,
                        round,
                        recall,
                        queries: 100,
                        per_second: 1e5 / ef as f64 / slower as f64,
                        cpu_us: cpu * ef as f64,
                        p50_us: 1.0,
                        p99_us: 2.0,
                    });
                }
            }
        }
        let setting = run.cells[0].setting;
        run.loads.push(Load {
            setting,
            rows: 100,
            connections: 1,
            elapsed_s: 2.0,
            cpu_s: 1.0,
            resident_bytes: 1_234.5,
            accounted_bytes: Some(1_000.0),
            recall: Some((80, 0.5)),
        });
        run.filtered.push(Cell { kept_per_mille: 10, ..run.cells[0].clone() });
        run
    }

    #[test]
    fn between_two_efforts_a_figure_follows_the_missing_recall() {
        let points = [(0.9, 10.0), (0.99, 40.0), (0.999, 160.0)];
        for (recall, want) in
            [(0.8, 10.0), (0.9, 10.0), (0.99, 40.0), (1.0 - 0.1_f64.powf(1.5), 20.0)]
        {
            assert!((interpolate(&points, recall).unwrap() - want).abs() < 1e-9, "{recall}");
        }
        assert_eq!(interpolate(&points, 0.9999), None);
        assert_eq!(interpolate(&[], 0.9), None);
        let reaches_all = interpolate(&[(0.9, 10.0), (1.0, 100.0)], 0.99).unwrap();
        assert!(reaches_all > 10.0 && reaches_all < 100.0);
    }

    #[test]
    fn tables_compare_within_rounds_at_equal_effort_and_equal_recall() {
        let table = run().table();
        for part in [
            "## 384 dimensions, NOQUANT",
            "|   0.99 | Kiln ",
            "| EF 40 ",
            "3.00 (2.00–4.00)",
            "8.00 (8.00–8.00)",
            "0.5000 at EF 80",
            "|   1% | 10 |",
        ] {
            assert!(table.contains(part), "{part} in\n{table}");
        }
    }

    #[test]
    fn json_keeps_every_cell() {
        let json = run().to_json();
        let cells = json["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 18);
        assert!(cells.iter().all(|cell| cell.as_array().unwrap().len() == CELL_FIELDS.len()));
    }

    #[test]
    fn the_chart_has_a_line_for_each_way() {
        let chart = run().chart();
        assert_eq!(chart.matches("<polyline").count(), 2);
        assert!(chart.ends_with("</svg>\n"));
    }
}
