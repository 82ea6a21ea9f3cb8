//! Counters. Each worker writes its own with plain relaxed stores; INFO adds them up.

use std::collections::HashMap;

use kiln_base::sync::Mutex;
use kiln_base::sync::atomic::{AtomicU64, Ordering};

use crate::table::CommandId;

/// Buckets of a latency histogram: 4 for each power of two of nanoseconds.
pub const LATENCY_BUCKETS: usize = 160;

/// A counter with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `more`. Not a read-modify-write: only the owning worker may call it.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Starts anew. A count made at the same time may be lost.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Figures of one command on one worker.
#[derive(Debug)]
pub struct CommandStats {
    /// Times it ran.
    pub calls: Counter,
    /// Time it took in all.
    pub nanos: Counter,
    /// Times it was refused before it ran.
    pub rejected: Counter,
    /// Times it failed.
    pub failed: Counter,
    /// How long it took, by [`bucket_of`].
    pub latency: Box<[Counter; LATENCY_BUCKETS]>,
}

impl Default for CommandStats {
    fn default() -> Self {
        Self {
            calls: Counter::default(),
            nanos: Counter::default(),
            rejected: Counter::default(),
            failed: Counter::default(),
            latency: Box::new(std::array::from_fn(|_| Counter::default())),
        }
    }
}

/// The histogram bucket of a duration.
#[inline]
pub fn bucket_of(nanos: u64) -> usize {
    let nanos = nanos.max(4);
    let exponent = 63 - nanos.leading_zeros() as usize;
    let quarter = (nanos >> (exponent - 2)) as usize & 3;
    ((exponent - 2) * 4 + quarter).min(LATENCY_BUCKETS - 1)
}

/// The first duration beyond a bucket, in nanoseconds.
pub fn bucket_end(bucket: usize) -> u64 {
    let (exponent, quarter) = (bucket / 4 + 2, bucket as u64 % 4);
    (5 + quarter) << (exponent - 2)
}

/// Figures of one worker.
#[derive(Debug)]
pub struct WorkerStats {
    /// By [`CommandId`].
    pub commands: Box<[CommandStats]>,
    /// Commands run.
    pub commands_processed: Counter,
    /// Connections taken.
    pub connections_received: Counter,
    /// Bytes read.
    pub net_input_bytes: Counter,
    /// Bytes written.
    pub net_output_bytes: Counter,
    /// Keys found.
    pub keyspace_hits: Counter,
    /// Keys not found.
    pub keyspace_misses: Counter,
    /// Keys removed because their time had come.
    pub expired_keys: Counter,
    /// Keys removed because memory was full.
    pub evicted_keys: Counter,
    /// Changes to the data set.
    pub dirty: Counter,
    /// Replies that were errors.
    pub error_replies: Counter,
    /// Connections served now.
    pub connections: AtomicU64,
}

impl WorkerStats {
    /// Zeroes for `commands` commands.
    pub fn new(commands: usize) -> Self {
        Self {
            commands: (0..commands).map(|_| CommandStats::default()).collect(),
            commands_processed: Counter::default(),
            connections_received: Counter::default(),
            net_input_bytes: Counter::default(),
            net_output_bytes: Counter::default(),
            keyspace_hits: Counter::default(),
            keyspace_misses: Counter::default(),
            expired_keys: Counter::default(),
            evicted_keys: Counter::default(),
            dirty: Counter::default(),
            error_replies: Counter::default(),
            connections: AtomicU64::new(0),
        }
    }

    /// Counts `count` runs of a command that took `nanos` together, `mean` each.
    #[inline]
    pub fn ran(&self, id: CommandId, count: u64, nanos: u64, mean: u64) {
        let stats = &self.commands[usize::from(id.0)];
        stats.calls.add(count);
        stats.nanos.add(nanos);
        stats.latency[bucket_of(mean)].add(count);
        self.commands_processed.add(count);
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&self) {
        for stats in &self.commands {
            stats.calls.reset();
            stats.nanos.reset();
            stats.rejected.reset();
            stats.failed.reset();
            stats.latency.iter().for_each(Counter::reset);
        }
        for counter in [
            &self.commands_processed,
            &self.connections_received,
            &self.net_input_bytes,
            &self.net_output_bytes,
            &self.keyspace_hits,
            &self.keyspace_misses,
            &self.expired_keys,
            &self.evicted_keys,
            &self.error_replies,
        ] {
            counter.reset();
        }
    }
}

/// Samples from which a speed is computed, as in Redis.
const RATE_SAMPLES: usize = 16;

/// How fast things happen, from samples that one worker takes of the counters of all.
#[derive(Debug, Default)]
pub struct Rates(Mutex<RateSamples>);

#[derive(Debug, Default)]
struct RateSamples {
    /// When the counters were last looked at, and what they said.
    last: Option<(i64, [u64; 3])>,
    per_second: [[f64; 3]; RATE_SAMPLES],
    next: usize,
}

impl Rates {
    /// Takes a sample: commands run, bytes read and bytes written so far.
    pub fn sample(&self, now_us: i64, counters: [u64; 3]) {
        let mut samples = self.0.lock();
        if let Some((before_us, before)) = samples.last
            && now_us > before_us
        {
            let seconds = (now_us - before_us) as f64 / 1e6;
            let slot = samples.next;
            samples.per_second[slot] = std::array::from_fn(|which| {
                // Below the last sample after CONFIG RESETSTAT.
                counters[which].saturating_sub(before[which]) as f64 / seconds
            });
            samples.next = (slot + 1) % RATE_SAMPLES;
        }
        samples.last = Some((now_us, counters));
    }

    /// Commands, bytes read and bytes written per second of late.
    pub fn per_second(&self) -> [f64; 3] {
        let samples = self.0.lock();
        std::array::from_fn(|which| {
            samples.per_second.iter().map(|sample| sample[which]).sum::<f64>() / RATE_SAMPLES as f64
        })
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&self) {
        *self.0.lock() = RateSamples::default();
    }
}

/// Error replies by their code, for INFO errorstats.
#[derive(Debug, Default)]
pub struct ErrorStats(Mutex<HashMap<String, u64>>);

impl ErrorStats {
    /// Distinct codes kept: beyond them clients with scripts could fill the memory.
    const CODES_MAX: usize = 128;

    /// Counts one error.
    pub fn count(&self, code: String) {
        let mut codes = self.0.lock();
        if codes.len() < Self::CODES_MAX || codes.contains_key(&code) {
            *codes.entry(code).or_default() += 1;
        }
    }

    /// All codes with their counts, sorted.
    pub fn list(&self) -> Vec<(String, u64)> {
        let mut codes: Vec<_> = self.0.lock().iter().map(|(code, n)| (code.clone(), *n)).collect();
        codes.sort();
        codes
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{LATENCY_BUCKETS, RATE_SAMPLES, Rates, bucket_end, bucket_of};

    #[test]
    #[expect(clippy::float_cmp, reason = "the figures are exact in binary")]
    fn rates_are_means_over_the_last_samples() {
        let rates = Rates::default();
        for second in 0..=RATE_SAMPLES as u64 {
            rates.sample(second as i64 * 1_000_000, [second * 100, second, 0]);
        }
        assert_eq!(rates.per_second(), [100.0, 1.0, 0.0]);
        rates.sample(18 * 1_000_000, [0, 0, 0]);
        assert_eq!(rates.per_second()[1], 15.0 / 16.0);
    }

    #[test]
    fn a_bucket_holds_what_lies_before_its_end() {
        for nanos in [0, 1, 4, 5, 7, 8, 100, 1_023, 1_024, 1_500, 1_000_000, u64::from(u32::MAX)] {
            let bucket = bucket_of(nanos);
            assert!(nanos < bucket_end(bucket), "{nanos} in {bucket}");
            assert!(bucket == 0 || nanos >= bucket_end(bucket - 1), "{nanos} in {bucket}");
        }
        assert_eq!(bucket_of(u64::MAX), LATENCY_BUCKETS - 1);
    }
}
