//! Access clocks, and which key goes when memory is full.
//!
//! The clock of an entry has Redis's two forms in 24 bits: the second of the last access (LRU), or
//! 16 bits of minutes and an 8-bit logarithmic counter of accesses (LFU). An eviction samples
//! `maxmemory-samples` entries of a random shard, keeps the best candidates seen so far in a small
//! pool, and removes the best of them; the pool is what makes sampling nearly as good as a true
//! order. `volatile-ttl` needs no sampling: the expiry index knows the next deadlines.
//!
//! Source: the Redis documentation on key eviction; the counter's probabilities as documented
//! for `lfu-log-factor`.

use kiln_base::clock::UnixMs;
use kiln_base::sync::LockMode;
use rand::RngExt;
use rand::rngs::SmallRng;

use crate::effects::Effects;
use crate::entry::Entry;
use crate::event::Event;
use crate::keyspace::{Keyspace, Locked, Shards};
use crate::settings::{EvictionPolicy, LfuSettings, Settings};
use crate::shard::{SHARD_COUNT, ShardId};
use crate::view::View;

/// Counter of a new key: above zero, so that it is not the first to go.
const LFU_INIT: u32 = 5;
/// Shards tried before an eviction gives up.
const TRIES_MAX: usize = 2 * SHARD_COUNT;

/// What [`evict_one`] did.
pub enum Evicted<'k> {
    /// A key is gone. Its shard is still held, for the journal.
    Key(Locked<'k>),
    /// No key qualifies under the policy.
    Nothing,
}

/// The access clock of an entry that was just used, or made (`old` is `None`).
pub fn access_clock(
    settings: &Settings,
    now: UnixMs,
    old: Option<u32>,
    rng: impl FnOnce() -> f64,
) -> u32 {
    if !settings.policy.is_lfu() {
        return lru_clock(now);
    }
    let counter = match old {
        None => LFU_INIT,
        Some(old) => {
            let counter = lfu_counter(old, now, settings.lfu);
            let base = f64::from(counter.saturating_sub(LFU_INIT));
            let chance = 1.0 / base.mul_add(f64::from(settings.lfu.log_factor), 1.0);
            if counter < 255 && rng() < chance { counter + 1 } else { counter }
        }
    };
    lfu_minutes(now) << 8 | counter
}

/// The LFU counter in `clock`, less what it lost by waiting.
pub fn lfu_counter(clock: u32, now: UnixMs, lfu: LfuSettings) -> u32 {
    let elapsed = lfu_minutes(now).wrapping_sub(clock >> 8) & 0xFFFF;
    let lost = elapsed.checked_div(lfu.decay_minutes).unwrap_or(0);
    (clock & 0xFF).saturating_sub(lost)
}

/// Seconds since the access that `clock` records.
pub fn idle_seconds(clock: u32, now: UnixMs) -> u32 {
    lru_clock(now).wrapping_sub(clock) & 0x00FF_FFFF
}

fn lru_clock(now: UnixMs) -> u32 {
    (now / 1_000) as u32 & 0x00FF_FFFF
}

fn lfu_minutes(now: UnixMs) -> u32 {
    (now / 60_000) as u32 & 0xFFFF
}

/// A key that may go; the larger the score, the sooner.
struct Candidate {
    score: u64,
    shard: ShardId,
    db: usize,
    key: Box<[u8]>,
}

/// The best candidates seen so far. One for each worker.
#[derive(Default)]
pub struct EvictionPool(Vec<Candidate>);

impl EvictionPool {
    const CAPACITY: usize = 16;

    fn offer(&mut self, candidate: Candidate) {
        let at = self.0.partition_point(|other| other.score <= candidate.score);
        if self.0.get(at.wrapping_sub(1)).is_some_and(|other| other.key == candidate.key) {
            return;
        }
        self.0.insert(at, candidate);
        if self.0.len() > Self::CAPACITY {
            self.0.remove(0);
        }
    }
}

/// Removes one key as `settings.policy` says. Takes one shard at a time; the caller holds none.
pub fn evict_one<'k>(
    keyspace: &'k Keyspace,
    settings: &Settings,
    pool: &mut EvictionPool,
    now: UnixMs,
    rng: &mut SmallRng,
    effects: &mut Effects,
) -> Evicted<'k> {
    if settings.policy == EvictionPolicy::NoEviction {
        return Evicted::Nothing;
    }
    let start = rng.random_range(0..SHARD_COUNT);
    let mut sampled = 0;
    for step in 0..TRIES_MAX {
        let shard = ShardId::new((start + step) % SHARD_COUNT);
        sampled += sample(keyspace, shard, settings, pool, now, rng);
        // A handful of samples is a fair draw; then act on the best known candidate.
        let enough = sampled >= settings.maxmemory_samples || step + 1 >= SHARD_COUNT;
        if !enough {
            continue;
        }
        while let Some(best) = pool.0.pop() {
            let mut locked = keyspace.lock(Shards::One(best.shard), LockMode::Exclusive);
            let mut view = View::new(locked.hold(), best.db, now, settings, effects);
            if view.delete(&best.key) {
                view.journal_del(&best.key);
                view.changed(&best.key, Event::Evicted);
                return Evicted::Key(locked);
            }
        }
        sampled = 0;
    }
    Evicted::Nothing
}

/// Offers some entries of `shard` to the pool; returns how many.
fn sample(
    keyspace: &Keyspace,
    shard: ShardId,
    settings: &Settings,
    pool: &mut EvictionPool,
    now: UnixMs,
    rng: &mut SmallRng,
) -> usize {
    let mut locked = keyspace.lock(Shards::One(shard), LockMode::Shared);
    let hold = locked.hold();
    let state = hold.state(shard);
    let mut seen = 0;
    if settings.policy.is_volatile() {
        let Some((first, last)) = state.expiry.bounds() else { return 0 };
        for turn in 0..settings.maxmemory_samples {
            let ttl_order = settings.policy == EvictionPolicy::VolatileTtl;
            let from = if ttl_order { first } else { rng.random_range(first..=last) };
            let Some((at, db, hash)) = state.expiry.near(from) else { break };
            // A hash is a scan cursor: the one that visits its bucket.
            state.db(db).table.scan(hash, |entry| {
                if entry.expire_at_ms() == Some(at) {
                    seen += 1;
                    pool.offer(candidate(settings, shard, db, &entry, now, rng));
                }
            });
            if ttl_order || turn > state.expiry.len() {
                break;
            }
        }
        return seen;
    }
    for db in 0..state.db_count() {
        let table = &state.db(db).table;
        for _ in 0..settings.maxmemory_samples.min(table.len()) {
            if let Some(entry) = table.random(rng) {
                seen += 1;
                pool.offer(candidate(settings, shard, db, &entry, now, rng));
            }
        }
    }
    seen
}

fn candidate(
    settings: &Settings,
    shard: ShardId,
    db: usize,
    entry: &Entry,
    now: UnixMs,
    rng: &mut SmallRng,
) -> Candidate {
    let score = match settings.policy {
        EvictionPolicy::NoEviction => 0,
        EvictionPolicy::AllKeysLru | EvictionPolicy::VolatileLru => {
            u64::from(idle_seconds(entry.access(), now))
        }
        EvictionPolicy::AllKeysLfu | EvictionPolicy::VolatileLfu => {
            u64::from(255 - lfu_counter(entry.access(), now, settings.lfu))
        }
        EvictionPolicy::AllKeysRandom | EvictionPolicy::VolatileRandom => rng.random(),
        EvictionPolicy::VolatileTtl => u64::MAX - entry.expire_at_ms().unwrap_or(0) as u64,
    };
    Candidate { score, shard, db, key: entry.key().into() }
}

#[cfg(test)]
mod tests {
    use super::{access_clock, idle_seconds, lfu_counter};
    use crate::settings::{EvictionPolicy, Settings};

    #[test]
    fn lru_clocks_count_seconds_and_wrap() {
        let settings = Settings::default();
        let clock = access_clock(&settings, 10_000, None, || 0.5);
        assert_eq!(idle_seconds(clock, 12_999), 2);
        let late = (0x00FF_FFFF_i64) * 1_000;
        let clock = access_clock(&settings, late, None, || 0.5);
        assert_eq!(idle_seconds(clock, late + 3_000), 3);
    }

    #[test]
    fn lfu_counters_grow_by_chance_and_decay_by_minutes() {
        let settings = Settings { policy: EvictionPolicy::AllKeysLfu, ..Settings::default() };
        let new = access_clock(&settings, 0, None, || 0.0);
        assert_eq!(lfu_counter(new, 0, settings.lfu), 5);
        let used = access_clock(&settings, 0, Some(new), || 0.0);
        assert_eq!(lfu_counter(used, 0, settings.lfu), 6);
        let lucky_only = access_clock(&settings, 0, Some(used), || 0.5);
        assert_eq!(lfu_counter(lucky_only, 0, settings.lfu), 6);
        assert_eq!(lfu_counter(used, 4 * 60_000, settings.lfu), 2);
    }
}
