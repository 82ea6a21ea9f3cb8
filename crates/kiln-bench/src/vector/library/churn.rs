//! Whether a graph stays as good and as small when its vectors are replaced or deleted.
//!
//! - Ten times, a random half of the elements is deleted and added again.
//! - In another graph every element starts with the vector of another one and is given its own, in
//!   random order. It is then a graph of the same vectors as the first when that was fresh.

use anyhow::{Context as _, Result};
use kiln_vector::Index;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use serde_json::{Value, json};

use super::{LibraryArgs, insert, new_index, recall, resident_bytes};
use crate::report::markdown;
use crate::vector::data::Form;
use crate::vector::wire::{Quantization, name};

/// Efforts at which recall is counted.
const EFS: [usize; 4] = [20, 40, 80, 150];

/// How often half of the elements is deleted.
const ROUNDS: usize = 10;

/// A state of a graph.
struct State {
    what: String,
    recalls: Vec<f64>,
    /// As the graph accounts it, per vector.
    bytes: f64,
    /// By how much the process has grown since before the graph, per vector. Not known of a second
    /// graph, which takes memory that the first one left.
    resident_bytes: Option<f64>,
}

/// Measures both; a table and the figures.
pub(super) fn run(_: &LibraryArgs, form: &Form) -> Result<(String, Value)> {
    let mut states = Vec::new();
    let rows = form.base.len();
    let mut rng = SmallRng::seed_from_u64(1);
    let mut order: Vec<usize> = (0..rows).collect();

    tell(form, "build");
    let resident = resident_bytes()?;
    let index = new_index(form.width(), Quantization::None)?;
    for element in 0..rows {
        insert(&index, form, element, element)?;
    }
    states.push(state("fresh", &index, form, Some(resident))?);
    for round in 1..=ROUNDS {
        tell(form, &format!("delete half and add it again, round {round}"));
        order.shuffle(&mut rng);
        let (half, _) = order.split_at(rows / 2);
        for &element in half {
            let removed = index.remove(name(element).as_bytes());
            drop(removed.context("an element that was added is there")?);
        }
        for &element in half {
            insert(&index, form, element, element)?;
        }
        let what = format!("half re-added, round {round}");
        states.push(state(&what, &index, form, Some(resident))?);
    }
    drop(index);

    tell(form, "replace every vector");
    let index = new_index(form.width(), Quantization::None)?;
    for element in 0..rows {
        insert(&index, form, element, (element + 1) % rows)?;
    }
    order.shuffle(&mut rng);
    for &element in &order {
        insert(&index, form, element, element)?;
    }
    states.push(state("another, all replaced", &index, form, None)?);
    let figures: Vec<Value> = states.iter().map(State::to_json).collect();
    Ok((table(&states), Value::Array(figures)))
}

fn state(what: &str, index: &Index, form: &Form, resident: Option<f64>) -> Result<State> {
    let count = form.base.len() as f64;
    let now = resident_bytes()?;
    Ok(State {
        what: what.to_owned(),
        recalls: EFS.iter().map(|ef| recall(index, form, *ef)).collect::<Result<_>>()?,
        bytes: index.memory_bytes() as f64 / count,
        resident_bytes: resident.map(|before| (now - before) / count),
    })
}

fn tell(form: &Form, what: &str) {
    eprintln!("kiln-bench: {}: {what}", form.width());
}

impl State {
    fn to_json(&self) -> Value {
        json!({
            "what": self.what,
            "efs": EFS,
            "recall_at_10": self.recalls,
            "bytes_per_vector": self.bytes,
            "resident_bytes_per_vector": self.resident_bytes,
        })
    }
}

fn table(states: &[State]) -> String {
    let mut header = vec!["state".to_owned()];
    header.extend(EFS.map(|ef| format!("recall at EF {ef}")));
    header.extend(["bytes/vector", "resident bytes/vector"].map(str::to_owned));
    let mut rows = vec![header];
    for state in states {
        let mut row = vec![state.what.clone()];
        row.extend(state.recalls.iter().map(|recall| format!("{recall:.4}")));
        row.push(format!("{:.0}", state.bytes));
        let resident = state.resident_bytes;
        row.push(resident.map_or_else(String::new, |bytes| format!("{bytes:.0}")));
        rows.push(row);
    }
    markdown(&rows)
}
