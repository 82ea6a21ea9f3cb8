//! The state of one client between its commands.
//!
//! A [`Session`] belongs to its connection's worker and is never shared. What other clients may
//! see or do (CLIENT LIST, KILL, UNBLOCK, MONITOR) is in its [`Client`], see `clients.rs`.

use kiln_base::sync::Arc;
use kiln_keyspace::WatchToken;
use kiln_resp::{Mark, OwnedArgs, Protocol, ReplyBuf};

use crate::blocking::Block;
use crate::clients::Client;
use crate::table::Command;

/// CLIENT REPLY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// Every command is answered.
    #[default]
    On,
    /// None is.
    Off,
    /// The next one is not.
    SkipNext,
    /// This one is not (the command after CLIENT REPLY SKIP).
    Skip,
}

/// Commands between MULTI and EXEC.
#[derive(Default)]
pub struct Transaction {
    /// What EXEC will run.
    pub queued: Vec<(Command, OwnedArgs)>,
    /// A command could not be queued: EXEC must refuse.
    pub failed: bool,
    /// Memory of the queued words.
    pub bytes: usize,
}

/// A key under WATCH.
pub struct Watched {
    /// Its database.
    pub db: usize,
    /// Its name.
    pub key: Box<[u8]>,
    /// It was expired, though not yet removed, when it was watched: its going is no change.
    pub was_expired: bool,
}

/// One client's state.
pub struct Session {
    /// The part that other clients can see.
    pub client: Arc<Client>,
    /// The database that keys mean.
    pub db: usize,
    /// RESP2 or RESP3.
    pub protocol: Protocol,
    /// Whether it may run commands.
    pub authenticated: bool,
    /// The open transaction.
    pub transaction: Option<Transaction>,
    /// Keys under WATCH.
    pub watched: Vec<Watched>,
    /// Goes up when one of them changes.
    pub token: Arc<WatchToken>,
    /// Whether commands are answered.
    pub reply_mode: ReplyMode,
    /// Reading does not move access clocks.
    pub no_touch: bool,
    /// Close the connection after the replies so far.
    pub closing: bool,
    /// It gets every command that others run.
    pub monitor: bool,
    /// A wait that a connection command asked for.
    pub pending_block: Option<Block>,
}

impl Session {
    /// The state of a new connection.
    pub fn new(client: Arc<Client>, authenticated: bool) -> Self {
        Self {
            client,
            db: 0,
            protocol: Protocol::Resp2,
            authenticated,
            transaction: None,
            watched: Vec::new(),
            token: Arc::default(),
            reply_mode: ReplyMode::On,
            no_touch: false,
            closing: false,
            monitor: false,
            pending_block: None,
        }
    }

    /// Lets CLIENT LIST see the parts of the state that it shows.
    pub fn publish(&self) {
        let transaction = self.transaction.as_ref();
        let mut info = self.client.info.lock();
        info.db = self.db;
        info.resp = if self.protocol == Protocol::Resp3 { 3 } else { 2 };
        info.multi = transaction.map_or(-1, |open| open.queued.len() as i64);
        info.multi_bytes = transaction.map_or(0, |open| open.bytes);
        info.dirty = transaction.is_some_and(|open| open.failed);
        info.watch = self.watched.len();
    }

    /// Takes the reply that was written since `mark` back if CLIENT REPLY says so.
    #[inline]
    pub fn after_reply(&mut self, out: &mut ReplyBuf, mark: Mark) {
        match self.reply_mode {
            ReplyMode::On => {}
            ReplyMode::Off => out.truncate_to(mark),
            ReplyMode::SkipNext => self.reply_mode = ReplyMode::Skip,
            ReplyMode::Skip => {
                out.truncate_to(mark);
                self.reply_mode = ReplyMode::On;
            }
        }
    }

    /// Whether a transaction is open.
    pub fn in_multi(&self) -> bool {
        self.transaction.is_some()
    }
}
