//! What a command about the connection or the server may touch.

use kiln_base::clock::UnixMs;
use kiln_base::sync::LockMode;
use kiln_keyspace::{Hold, ShardId, Shards, Space, View, shard_of};
use kiln_resp::Args;

use crate::blocking::{Block, TimeoutReply};
use crate::executor;
use crate::server::{Server, Worker};
use crate::session::Session;
use crate::table::Command;

/// The window of a [`crate::Run::Connection`] or [`crate::Run::Engine`] handler.
pub struct Context<'c> {
    /// What all workers share.
    pub server: &'c Server,
    /// What this worker has for itself.
    pub worker: &'c mut Worker,
    /// The client that sent the command.
    pub session: &'c mut Session,
    /// The hold of the transaction that the command runs in.
    pub(crate) held: Option<Hold<'c>>,
    pub(crate) now: UnixMs,
    /// The engine command that runs, and its words: its changes are journaled from them.
    pub(crate) sent: Option<(Command, Args<'c>)>,
}

impl Context<'_> {
    /// The instant of the command.
    pub fn now(&self) -> UnixMs {
        self.now
    }

    /// Whether the command runs inside EXEC.
    pub fn in_exec(&self) -> bool {
        self.held.is_some()
    }

    /// The database that keys mean: the command's hidden space, else the session's.
    fn db(&self) -> usize {
        let space = self.sent.and_then(|(command, _)| command.spec.space);
        space.map_or(self.session.db, |space| space.db(self.server.keyspace.databases()))
    }

    /// Lends the shard of `key` for reading.
    pub fn read<R>(&mut self, key: &[u8], body: impl FnOnce(&View<'_>) -> R) -> R {
        self.with_view(Shards::One(shard_of(key)), LockMode::Shared, |view| body(view))
    }

    /// Lends the shard of `key` for a change. `body` may run beside commands on other shards, and
    /// what it found under an earlier hold may be gone.
    pub fn write<R>(&mut self, key: &[u8], body: impl FnOnce(&mut View<'_>) -> R) -> R {
        self.with_view(Shards::One(shard_of(key)), LockMode::Exclusive, body)
    }

    /// The names in a hidden space, each with its entry's engine or value; one shard at a time.
    pub fn for_each_in(
        &mut self,
        space: Space,
        mut visit: impl FnMut(kiln_keyspace::EntryRef<'_>),
    ) {
        self.for_each_shard(|view, shard| {
            let mut cursor = 0;
            loop {
                cursor = view.scan_space(space, shard, cursor, &mut visit);
                if cursor == 0 {
                    break true;
                }
            }
        });
    }

    /// Runs `body` on a view of `shards`, in the command's database. Within a transaction its hold
    /// serves, which covers everything.
    pub fn with_view<R>(
        &mut self,
        shards: Shards,
        mode: LockMode,
        body: impl FnOnce(&mut View<'_>) -> R,
    ) -> R {
        let seed = self.worker.next_seed();
        let db = self.db();
        if let Some(hold) = &mut self.held {
            let worker = &mut *self.worker;
            let hold = hold.reborrow();
            let view = View::new(hold, db, self.now, &worker.settings, &mut worker.effects);
            return body(&mut view.with_seed(seed));
        }
        let mut locked = self.server.keyspace.lock(shards, mode);
        let worker = &mut *self.worker;
        let settings = &worker.settings;
        let mut view =
            View::new(locked.hold(), db, self.now, settings, &mut worker.effects).with_seed(seed);
        let result = body(&mut view);
        if let Some((command, args)) = &self.sent {
            let (hits, misses) = view.hits_and_misses();
            worker.stats.keyspace_hits.add(u64::from(hits));
            worker.stats.keyspace_misses.add(u64::from(misses));
            executor::note_effect(worker, *command, args, self.session.db, 0);
        }
        executor::settle(self.server, self.worker, locked, self.now);
        result
    }

    /// Runs `body` on each shard in turn, shared and one at a time, until it returns `false`.
    pub fn for_each_shard(&mut self, mut body: impl FnMut(&View<'_>, ShardId) -> bool) {
        for shard in ShardId::all() {
            let go_on =
                self.with_view(Shards::One(shard), LockMode::Shared, |view| body(view, shard));
            if !go_on {
                break;
            }
        }
    }

    /// Asks to wait before the next command, and to reply with `block.on_timeout` then.
    pub fn wait(&mut self, block: Block) {
        self.session.pending_block = Some(block);
    }

    /// Asks to wait for `timeout` and to reply with `reply` then.
    pub fn sleep(&mut self, timeout: std::time::Duration, reply: TimeoutReply) {
        let keys = smallvec::SmallVec::new();
        self.wait(Block { timeout: Some(timeout), on_timeout: reply, keys });
    }
}
