//! Commands without knowledge of any: what a command is ([`CommandSpec`]), how its words come in
//! ([`Args`]) and its reply goes out ([`ReplyWriter`]), and the executor that plans, locks, runs,
//! rolls back and wakes.
//!
//! A family of commands lives in a crate above this one and exports a `COMMANDS` slice; the
//! network is above too, and calls [`Executor::run_batch`].

pub mod args;
pub mod blocking;
pub mod clients;
pub mod compute;
pub mod config;
mod context;
mod error;
mod executor;
mod host;
mod latency;
mod server;
mod session;
mod slowlog;
mod spec;
pub mod stats;
mod table;

pub use context::Context;
pub use error::{CommandError, CommandResult, echo};
pub use executor::{
    Executor, Progress, begin, finish_compute, quote, reply_after_wait, stop_waiting, sweep_shard,
    unwatch_all, watch,
};
pub use host::{Host, HostFigures};
pub use kiln_keyspace::{
    Entry, EntryRef, Event, Object, Settings, StringRef, Ttl, Value, View, WrongType,
};
pub use kiln_resp::{Args, OwnedArgs, Protocol, ReplyBuf, ReplyWriter};
pub use latency::{LatencyEvent, LatencyMonitor};
pub use server::{EventSink, Garbage, JournalSink, Server, ServerOptions, Shutdown, Worker};
pub use session::{ReplyMode, Session, Transaction, Watched};
pub use slowlog::{SlowEntry, SlowLog};
pub use spec::{
    AclCategories, Arity, BeginSearch, BlockingHandler, CommandFlags, CommandSpec,
    ConnectionHandler, FindKeys, Group, Journal, KeyFinder, KeyFlags, KeySpec, ReadHandler, Run,
    WriteHandler,
};
pub use table::{Command, CommandId, CommandTable, wrong_arity};
