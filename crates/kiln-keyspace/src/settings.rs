//! The configuration that handlers and the keyspace read, as plain values.
//!
//! Made from the configuration by the executor whenever that changes; each worker keeps a copy,
//! so reading one costs nothing.

use kiln_data::hash::HashLimits;
use kiln_data::list::ListLimits;
use kiln_data::set::SetLimits;
use kiln_data::zset::ZSetLimits;

/// `maxmemory-policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// Refuse writes instead.
    #[default]
    NoEviction,
    /// Any key, least recently used first.
    AllKeysLru,
    /// Any key, least frequently used first.
    AllKeysLfu,
    /// Any key at random.
    AllKeysRandom,
    /// A key with an expiry time, least recently used first.
    VolatileLru,
    /// A key with an expiry time, least frequently used first.
    VolatileLfu,
    /// A key with an expiry time, at random.
    VolatileRandom,
    /// The key that expires next.
    VolatileTtl,
}

impl EvictionPolicy {
    /// Whether the access clock of an entry is an LFU counter.
    pub fn is_lfu(self) -> bool {
        matches!(self, Self::AllKeysLfu | Self::VolatileLfu)
    }

    /// Whether only keys with an expiry time may go.
    pub fn is_volatile(self) -> bool {
        matches!(
            self,
            Self::VolatileLru | Self::VolatileLfu | Self::VolatileRandom | Self::VolatileTtl
        )
    }
}

/// `lfu-log-factor` and `lfu-decay-time`.
#[derive(Clone, Copy, Debug)]
pub struct LfuSettings {
    /// The larger, the more hits a counter needs to grow.
    pub log_factor: u32,
    /// Minutes for a counter to lose one.
    pub decay_minutes: u32,
}

/// What the keyspace and the handlers need to know of the configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Thresholds of hashes.
    pub hash: HashLimits,
    /// Node size of lists.
    pub list: ListLimits,
    /// Thresholds of sets.
    pub set: SetLimits,
    /// Thresholds of sorted sets.
    pub zset: ZSetLimits,
    /// Largest sparse `HyperLogLog` in bytes.
    pub hll_sparse_max_bytes: usize,
    /// Largest string value in bytes.
    pub proto_max_bulk_bytes: usize,
    /// Which key goes when memory is full.
    pub policy: EvictionPolicy,
    /// How LFU counters move.
    pub lfu: LfuSettings,
    /// How many keys an eviction looks at.
    pub maxmemory_samples: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hash: HashLimits::default(),
            list: ListLimits::default(),
            set: SetLimits::default(),
            zset: ZSetLimits::default(),
            hll_sparse_max_bytes: 3_000,
            proto_max_bulk_bytes: 512 << 20,
            policy: EvictionPolicy::NoEviction,
            lfu: LfuSettings { log_factor: 10, decay_minutes: 1 },
            maxmemory_samples: 5,
        }
    }
}
