//! LATENCY: the worst times of named events, one sample a second, 160 samples each.

use std::collections::BTreeMap;

use kiln_base::sync::Mutex;

/// Samples kept of an event, as in Redis.
const SAMPLES_MAX: usize = 160;

/// The history of one event.
#[derive(Clone, Debug, Default)]
pub struct LatencyEvent {
    /// Second and worst time in it in milliseconds, oldest first.
    pub samples: Vec<(i64, u64)>,
    /// The worst time of all.
    pub max_ms: u64,
    /// Sum and number of all samples ever, for the average.
    pub total: (u64, u64),
}

/// All events.
#[derive(Debug, Default)]
pub struct LatencyMonitor(Mutex<BTreeMap<&'static str, LatencyEvent>>);

impl LatencyMonitor {
    /// Adds a sample.
    pub fn add(&self, event: &'static str, time_s: i64, ms: u64) {
        let mut events = self.0.lock();
        let event = events.entry(event).or_default();
        event.max_ms = event.max_ms.max(ms);
        event.total.0 += ms;
        event.total.1 += 1;
        match event.samples.last_mut() {
            Some((second, worst)) if *second == time_s => *worst = (*worst).max(ms),
            _ => {
                if event.samples.len() == SAMPLES_MAX {
                    event.samples.remove(0);
                }
                event.samples.push((time_s, ms));
            }
        }
    }

    /// All events by name.
    pub fn list(&self) -> Vec<(&'static str, LatencyEvent)> {
        self.0.lock().iter().map(|(name, event)| (*name, event.clone())).collect()
    }

    /// One event.
    pub fn get(&self, name: &str) -> Option<LatencyEvent> {
        self.0.lock().get(name).cloned()
    }

    /// Forgets the named events, or all; returns how many there were.
    pub fn reset(&self, names: &[String]) -> usize {
        let mut events = self.0.lock();
        let before = events.len();
        events.retain(|name, _| !names.is_empty() && !names.iter().any(|other| other == name));
        before - events.len()
    }
}
