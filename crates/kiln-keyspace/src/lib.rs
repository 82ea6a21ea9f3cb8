//! The keyspace: every key of every database, in 1,024 shards that all workers share.
//!
//! [`Keyspace`] owns the shards and their locks, [`Locked`] holds some of them, and a [`View`] is
//! what a command handler may touch through that hold: typed access to entries, expiry on
//! access, and the record of what was changed ([`Effects`]). This crate knows no command, no
//! reply and no socket.

mod effects;
mod engine;
mod entry;
mod event;
mod eviction;
mod expiry;
mod keyspace;
mod object;
mod settings;
mod shard;
mod space;
mod tags;
mod view;
mod waiters;
mod watch;

pub use effects::{Effect, Effects, KeyEvent};
pub use engine::{Engine, downcast};
pub use entry::{Entry, SHARED_MIN, StringRef, Value};
pub use event::{Event, EventClass};
pub use eviction::{Evicted, EvictionPool, access_clock, evict_one, idle_seconds, lfu_counter};
pub use expiry::{ExpiryIndex, SweepReport};
pub use keyspace::{Hold, Keyspace, Locked, Shards};
pub use object::Object;
pub use settings::{EvictionPolicy, LfuSettings, Settings};
pub use shard::{Db, KeyPlace, SHARD_COUNT, ShardId, ShardState, place_of, shard_of};
pub use space::Space;
pub use tags::{TagIndex, TagMembers, Tags};
pub use view::{EntryRef, Flushed, PlannedKey, ShardUsage, Ttl, View, WrongType};
pub use waiters::{Waiter, Waiters};
pub use watch::{WatchToken, Watches};
