//! Makes a failing sequence short: deletes steps, then words, while the same difference shows.
//!
//! Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002,
//! without its complement tests: halves, quarters and so on are deleted one by one, which suits
//! sequences where few steps matter.

use std::io;

use super::{Difference, Pair};
use crate::generate::{SESSIONS, Step, blocks_for_ever, upper};

/// Replays at most; a lost connection costs a new process or a timeout each.
const MOST_REPLAYS: usize = 400;
const MOST_REPLAYS_IF_LOST: usize = 60;

/// Words are deleted only once so few steps are left.
const FEW_STEPS: usize = 8;

/// The shortest sequence found that shows `difference`; `steps` if they don't show it again.
pub(super) fn shrink(
    pair: &mut Pair,
    steps: &[Step],
    protocol: u8,
    difference: &Difference,
) -> io::Result<Vec<Step>> {
    let lost = difference.signature.contains("connection lost");
    let mut left = if lost { MOST_REPLAYS_IF_LOST } else { MOST_REPLAYS };
    let mut shows = |steps: &[Step]| -> io::Result<bool> {
        if left == 0 || steps.is_empty() || hangs(steps) {
            return Ok(false);
        }
        left -= 1;
        let (_, seen) = pair.replay(steps, protocol, difference.step.is_none())?;
        Ok(seen.iter().any(|seen| seen.signature == difference.signature))
    };
    let mut steps = delete_runs(steps.to_vec(), &mut shows)?;
    if steps.len() <= FEW_STEPS {
        for index in 0..steps.len() {
            let step = steps[index].clone();
            let words = delete_runs(step.words[1..].to_vec(), &mut |words: &[Vec<u8>]| {
                let mut steps = steps.clone();
                steps[index].words.truncate(1);
                steps[index].words.extend_from_slice(words);
                shows(&steps)
            })?;
            steps[index].words.truncate(1);
            steps[index].words.extend(words);
        }
    }
    Ok(steps)
}

/// Whether a command blocks for ever, its MULTI deleted.
fn hangs(steps: &[Step]) -> bool {
    let mut queues = [false; SESSIONS];
    steps.iter().any(|step| {
        let queue = &mut queues[step.session];
        match upper(&step.words[0]).as_str() {
            "MULTI" => *queue = true,
            "EXEC" | "DISCARD" | "RESET" => *queue = false,
            _ => {}
        }
        !*queue && blocks_for_ever(&step.words)
    })
}

/// Deletes runs of items, long ones first, while what is left still `shows` the difference.
fn delete_runs<T: Clone>(
    mut items: Vec<T>,
    shows: &mut impl FnMut(&[T]) -> io::Result<bool>,
) -> io::Result<Vec<T>> {
    let mut run = items.len().div_ceil(2).max(1);
    loop {
        let mut start = 0;
        let mut deleted = false;
        while start < items.len() {
            let end = (start + run).min(items.len());
            let rest = [&items[..start], &items[end..]].concat();
            if shows(&rest)? {
                items = rest;
                deleted = true;
            } else {
                start = end;
            }
        }
        if run == 1 && !deleted {
            return Ok(items);
        }
        run = (run / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_is_left() {
        let items: Vec<u32> = (0..100).collect();
        let mut shows = |items: &[u32]| Ok(items.contains(&17) && items.contains(&83));
        assert_eq!(delete_runs(items, &mut shows).expect("no i/o"), [17, 83]);
    }
}
