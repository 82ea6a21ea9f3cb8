//! What a second thread adds: searches alone, and searches and inserts in turn.
//!
//! A thread does a fixed number of operations, so two threads do twice as many; the ratio of rates
//! is 2 at best. Inserts add elements to a graph that holds half of the rows, and are taken out
//! again between measurements. Rounds of one and of two threads alternate. Beside the rates in wall
//! time stands the CPU time of an operation: where it does not grow, threads do not disturb each
//! other, whatever else the machine does.

use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use kiln_vector::Index;
use serde_json::{Value, json};

use super::{LibraryArgs, insert, new_index, search, thread_cpu_s};
use crate::report::{markdown, ratios, spread};
use crate::vector::data::Form;
use crate::vector::wire::{Quantization, name};

/// The effort of searches.
const EF: usize = 40;

/// Threads that are compared with one.
const THREADS: usize = 2;

/// What a thread does.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    Searches,
    Mixed,
}

impl Work {
    const ALL: [Work; 2] = [Work::Searches, Work::Mixed];

    const fn name(self) -> &'static str {
        match self {
            Work::Searches => "searches",
            Work::Mixed => "a search and an insert in turn",
        }
    }
}

/// Rates of one kind of work with so many threads, a value for each round.
struct Rates {
    work: Work,
    threads: usize,
    per_second: Vec<f64>,
    cpu_us: Vec<f64>,
}

/// Measures both kinds of work; a table and the figures.
pub(super) fn run(args: &LibraryArgs, form: &Form) -> Result<(String, Value)> {
    let half = form.base.len() / 2;
    let index = new_index(form.width(), Quantization::None)?;
    eprintln!("kiln-bench: {}: scaling, fill", form.width());
    for row in 0..half {
        insert(&index, form, row, row)?;
    }
    let mut all = Vec::new();
    for work in Work::ALL {
        let empty = |threads| Rates { work, threads, per_second: Vec::new(), cpu_us: Vec::new() };
        let mut both = [empty(1), empty(THREADS)];
        for _ in 0..args.rounds {
            for rates in &mut both {
                let (per_second, cpu_us) = measure(&index, form, work, rates.threads)?;
                rates.per_second.push(per_second);
                rates.cpu_us.push(cpu_us);
            }
        }
        all.extend(both);
    }
    let figures: Vec<Value> = all.iter().map(Rates::to_json).collect();
    Ok((table(&all), Value::Array(figures)))
}

/// Operations per second, and CPU time of one in microseconds.
fn measure(index: &Index, form: &Form, work: Work, threads: usize) -> Result<(f64, f64)> {
    let half = form.base.len() / 2;
    // With inserts a share of the rows that are not there yet for each thread.
    let steps = match work {
        Work::Searches => form.queries.len() * 4,
        Work::Mixed => form.queries.len().min(half / THREADS),
    };
    let thread = |number: usize| -> Result<f64> {
        let before = thread_cpu_s();
        for step in 0..steps {
            search(index, form.queries.row((step + number) % form.queries.len()), EF)?;
            if work == Work::Mixed {
                let row = half + number * steps + step;
                insert(index, form, row, row)?;
            }
        }
        Ok(thread_cpu_s() - before)
    };
    let started = Instant::now();
    let cpu: Vec<Result<f64>> = thread::scope(|scope| {
        let thread = &thread;
        let running: Vec<_> =
            (0..threads).map(|number| scope.spawn(move || thread(number))).collect();
        let join = |each: thread::ScopedJoinHandle<'_, _>| {
            each.join().map_err(|_| anyhow!("a thread panicked")).flatten()
        };
        running.into_iter().map(join).collect()
    });
    let elapsed = started.elapsed();
    let cpu: f64 = cpu.into_iter().sum::<Result<_>>()?;
    if work == Work::Mixed {
        for row in half..half + threads * steps {
            drop(index.remove(name(row).as_bytes()).context("a row that was added is there")?);
        }
    }
    let operations = threads * steps * if work == Work::Mixed { 2 } else { 1 };
    let per_second = operations as f64 / elapsed.as_secs_f64();
    Ok((per_second, cpu * 1e6 / operations as f64))
}

impl Rates {
    fn to_json(&self) -> Value {
        json!({
            "work": self.work.name(),
            "threads": self.threads,
            "operations_per_second": self.per_second,
            "cpu_us": self.cpu_us,
        })
    }
}

fn table(all: &[Rates]) -> String {
    let header =
        ["work", "threads", "operations/s", "CPU µs", "rate × of one thread", "× by CPU time"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for rates in all {
        let one = all.iter().find(|other| other.work == rates.work && other.threads == 1);
        let [by_wall, by_cpu] = match one.filter(|_| rates.threads > 1) {
            Some(one) => {
                let threads = rates.threads as f64;
                let by_cpu = ratios(&one.cpu_us, &rates.cpu_us);
                let by_cpu: Vec<f64> = by_cpu.iter().map(|ratio| ratio * threads).collect();
                [ratios(&rates.per_second, &one.per_second), by_cpu]
                    .map(|ratios| spread(&ratios).to_string())
            }
            None => [String::new(), String::new()],
        };
        rows.push(vec![
            rates.work.name().to_owned(),
            rates.threads.to_string(),
            format!("{:.0}", spread(&rates.per_second).median),
            format!("{:.1}", spread(&rates.cpu_us).median),
            by_wall,
            by_cpu,
        ]);
    }
    markdown(&rows)
}
