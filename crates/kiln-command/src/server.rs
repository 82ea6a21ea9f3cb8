//! What all workers share, and what each has for itself.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Instant;

use kiln_base::clock::{Stopwatch, now_ms};
use kiln_base::memory;
use kiln_base::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use kiln_base::sync::{Arc, Mutex};
use kiln_data::hash::HashLimits;
use kiln_data::list::ListLimits;
use kiln_data::set::SetLimits;
use kiln_data::zset::ZSetLimits;
use kiln_keyspace::{
    Effect, Effects, Entry, EvictionPolicy, EvictionPool, Flushed, KeyEvent, Keyspace, LfuSettings,
    Settings,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tokio::sync::Notify;

use crate::clients::{Clients, Pause};
use crate::compute::ComputePool;
use crate::config::value::MaxmemoryPolicy;
use crate::config::{Config, ConfigFiles, ConfigReader, ConfigStore};
use crate::host::Host;
use crate::latency::LatencyMonitor;
use crate::slowlog::SlowLog;
use crate::stats::{ErrorStats, Rates, WorkerStats};
use crate::table::CommandTable;

/// Takes the effects of successful writes, while their shards are held.
pub trait JournalSink: Send + Sync {
    /// Appends the effects of one command or transaction, as a unit.
    fn append(&self, worker: usize, effects: &[Effect]);
}

/// Takes events for keyspace notifications, after the shards are free.
pub trait EventSink: Send + Sync {
    /// Hands over one event.
    fn notify(&self, event: &KeyEvent);
}

/// Removed data that takes long to free.
pub enum Garbage {
    /// Large values.
    Entries(Vec<Entry>),
    /// Whole databases.
    Flushed(Flushed),
}

/// The word to stop, and who asked for what.
#[derive(Default)]
pub struct Shutdown {
    requested: AtomicBool,
    notify: Notify,
}

impl Shutdown {
    /// Asks the server to stop.
    pub fn request(&self) {
        // Release: pairs with the Acquire in `is_requested`.
        self.requested.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Whether it must stop.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Waits until it must.
    pub async fn requested(&self) {
        let notified = self.notify.notified();
        if !self.is_requested() {
            notified.await;
        }
    }
}

/// What the binary knows and the library cannot.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Version of Kiln.
    pub version: &'static str,
    /// The executable, for INFO.
    pub executable: PathBuf,
    /// Number of workers.
    pub workers: usize,
    /// Name of the allocator, for INFO.
    pub allocator: &'static str,
}

/// Everything that the workers share.
pub struct Server {
    /// The data.
    pub keyspace: Keyspace,
    /// The commands.
    pub commands: CommandTable,
    /// The configuration.
    pub config: ConfigStore,
    /// The connected clients.
    pub clients: Clients,
    /// CLIENT PAUSE.
    pub pause: Pause,
    /// Slow commands.
    pub slowlog: SlowLog,
    /// Latency events.
    pub latency: LatencyMonitor,
    /// Errors by code.
    pub errors: ErrorStats,
    /// Counters of each worker.
    pub stats: Box<[Arc<WorkerStats>]>,
    /// Recent speeds, from those counters.
    pub rates: Rates,
    /// Where long work runs.
    pub compute: ComputePool,
    /// The word to stop.
    pub shutdown: Shutdown,
    /// What the binary knows.
    pub options: ServerOptions,
    /// Unique name of this run, 40 hexadecimal digits.
    pub run_id: String,
    /// When the server started.
    pub started: Instant,
    /// The same on the wall clock.
    pub started_ms: i64,
    /// Connections refused because of `maxclients`.
    pub rejected_connections: AtomicU64,
    /// Time of the last save, in seconds since the Unix epoch (LASTSAVE).
    pub last_save_s: AtomicI64,
    /// Whether active expiry runs (DEBUG SET-ACTIVE-EXPIRE).
    pub active_expire: AtomicBool,
    /// The journal, when there is one.
    pub journal: Option<Box<dyn JournalSink>>,
    /// The taker of keyspace notifications, when there is one.
    pub events: Option<Box<dyn EventSink>>,
    /// Bytes allocated before there was any data.
    pub startup_bytes: u64,
    /// The file system, for CONFIG REWRITE and the directive `dir`; none in tests.
    pub files: Option<Box<dyn ConfigFiles + Send + Sync>>,
    /// The machine and the allocator; none in tests.
    pub host: Option<Arc<dyn Host>>,
    garbage: Mutex<Option<mpsc::Sender<Garbage>>>,
}

impl Server {
    /// Joins the parts.
    pub fn new(
        commands: CommandTable,
        config: ConfigStore,
        options: ServerOptions,
        run_id: String,
    ) -> Self {
        let databases = config.current().databases as usize;
        let workers = options.workers.max(1);
        let stats = (0..workers).map(|_| Arc::new(WorkerStats::new(commands.len()))).collect();
        Self {
            keyspace: Keyspace::new(databases),
            commands,
            config,
            clients: Clients::default(),
            pause: Pause::default(),
            slowlog: SlowLog::default(),
            latency: LatencyMonitor::default(),
            errors: ErrorStats::default(),
            stats,
            rates: Rates::default(),
            compute: ComputePool::new(workers),
            shutdown: Shutdown::default(),
            options,
            run_id,
            started: Instant::now(),
            started_ms: now_ms(),
            rejected_connections: AtomicU64::new(0),
            last_save_s: AtomicI64::new(now_ms() / 1_000),
            active_expire: AtomicBool::new(true),
            journal: None,
            events: None,
            startup_bytes: memory::used_bytes(),
            files: None,
            host: None,
            garbage: Mutex::new(None),
        }
    }

    /// Starts the thread that frees garbage, so that no worker spends its time on it. It ends with
    /// the server.
    pub fn start_reclaimer(&self) -> std::io::Result<()> {
        let (sender, receiver) = mpsc::channel::<Garbage>();
        let host = self.host.clone();
        let reclaim = move |garbage| {
            let whole_databases = matches!(garbage, Garbage::Flushed(_));
            drop(garbage);
            // As Redis does after FLUSHALL: else the pages went back over the next ten seconds, at
            // the cost of the commands that run then.
            if whole_databases && let Some(host) = &host {
                host.purge_allocator();
            }
        };
        std::thread::Builder::new()
            .name("kiln-reclaim".to_owned())
            .spawn(move || receiver.into_iter().for_each(reclaim))?;
        *self.garbage.lock() = Some(sender);
        Ok(())
    }

    /// Frees `garbage` on the reclaimer's thread, or here without one.
    pub fn reclaim(&self, garbage: Garbage) {
        let sender = self.garbage.lock().clone();
        if let Some(sender) = sender {
            // A send fails only if the thread is gone; the garbage is then freed here.
            drop(sender.send(garbage));
        }
    }

    /// The sum of one counter over all workers.
    pub fn total(&self, counter: impl Fn(&WorkerStats) -> u64) -> u64 {
        self.stats.iter().map(|stats| counter(stats)).sum()
    }
}

/// What one worker has for itself.
pub struct Worker {
    /// Its index.
    pub index: usize,
    /// Its counters.
    pub stats: Arc<WorkerStats>,
    /// Its view of the configuration.
    pub config: ConfigReader,
    /// The same as the keyspace wants it.
    pub settings: Settings,
    /// The changes of the command that runs.
    pub effects: Effects,
    /// Candidates for eviction.
    pub pool: EvictionPool,
    /// Its random numbers.
    pub rng: SmallRng,
    /// Where the seeds of commands come from.
    pub seeds: u64,
    /// Times commands.
    pub watch: Stopwatch,
}

impl Worker {
    /// The worker with this index; `seed` makes its random choices repeatable.
    pub fn new(server: &Server, index: usize, seed: u64) -> Self {
        let config = ConfigReader::new(&server.config);
        let settings = settings_of(config.config());
        let mut worker = Self {
            index,
            stats: Arc::clone(&server.stats[index]),
            config,
            settings,
            effects: Effects::default(),
            pool: EvictionPool::default(),
            rng: SmallRng::seed_from_u64(seed ^ index as u64),
            seeds: seed.rotate_left(32) ^ index as u64,
            watch: Stopwatch::start(),
        };
        worker.apply_switches(server);
        worker
    }

    /// Looks whether the configuration has changed; one relaxed load if not.
    #[inline]
    pub fn refresh(&mut self, server: &Server) {
        if self.config.refresh(&server.config) {
            self.settings = settings_of(self.config.config());
            self.apply_switches(server);
        }
    }

    /// The seed of the next command's random choices.
    #[inline]
    pub fn next_seed(&mut self) -> u64 {
        // The step of a Weyl sequence; the generator seeded with it does the mixing.
        self.seeds = self.seeds.wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.seeds
    }

    fn apply_switches(&mut self, server: &Server) {
        self.effects.journaling = server.journal.is_some();
        self.effects.notify_classes = if server.events.is_some() {
            self.config.config().notify_keyspace_events.classes()
        } else {
            0
        };
    }
}

/// What the keyspace reads of the configuration.
pub(crate) fn settings_of(config: &Config) -> Settings {
    Settings {
        hash: HashLimits {
            max_listpack_entries: config.hash_max_listpack_entries as usize,
            max_listpack_value: config.hash_max_listpack_value as usize,
        },
        list: ListLimits { max_listpack_size: config.list_max_listpack_size },
        set: SetLimits {
            max_intset_entries: config.set_max_intset_entries as usize,
            max_listpack_entries: config.set_max_listpack_entries as usize,
            max_listpack_value: config.set_max_listpack_value as usize,
        },
        zset: ZSetLimits {
            max_listpack_entries: config.zset_max_listpack_entries as usize,
            max_listpack_value: config.zset_max_listpack_value as usize,
        },
        hll_sparse_max_bytes: config.hll_sparse_max_bytes as usize,
        proto_max_bulk_bytes: config.proto_max_bulk_len as usize,
        policy: match config.maxmemory_policy {
            MaxmemoryPolicy::NoEviction => EvictionPolicy::NoEviction,
            MaxmemoryPolicy::AllkeysLru => EvictionPolicy::AllKeysLru,
            MaxmemoryPolicy::AllkeysLfu => EvictionPolicy::AllKeysLfu,
            MaxmemoryPolicy::AllkeysRandom => EvictionPolicy::AllKeysRandom,
            MaxmemoryPolicy::VolatileLru => EvictionPolicy::VolatileLru,
            MaxmemoryPolicy::VolatileLfu => EvictionPolicy::VolatileLfu,
            MaxmemoryPolicy::VolatileRandom => EvictionPolicy::VolatileRandom,
            MaxmemoryPolicy::VolatileTtl => EvictionPolicy::VolatileTtl,
        },
        lfu: LfuSettings {
            log_factor: config.lfu_log_factor,
            decay_minutes: config.lfu_decay_time,
        },
        maxmemory_samples: config.maxmemory_samples as usize,
    }
}
