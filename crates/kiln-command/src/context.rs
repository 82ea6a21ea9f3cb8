//! What a command about the connection or the server may touch.

use kiln_base::clock::UnixMs;
use kiln_base::sync::LockMode;
use kiln_keyspace::{Hold, ShardId, Shards, View};

use crate::blocking::{Block, TimeoutReply};
use crate::executor;
use crate::server::{Server, Worker};
use crate::session::Session;

/// The window of a [`crate::Run::Connection`] handler.
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

    /// Runs `body` on a view of `shards`, in the session's database. Within a transaction its hold
    /// serves, which covers everything.
    pub fn with_view<R>(
        &mut self,
        shards: Shards,
        mode: LockMode,
        body: impl FnOnce(&mut View<'_>) -> R,
    ) -> R {
        let seed = self.worker.next_seed();
        let db = self.session.db;
        if let Some(hold) = &mut self.held {
            let worker = &mut *self.worker;
            let hold = hold.reborrow();
            let view = View::new(hold, db, self.now, &worker.settings, &mut worker.effects);
            return body(&mut view.with_seed(seed));
        }
        let mut locked = self.server.keyspace.lock(shards, mode);
        let worker = &mut *self.worker;
        let settings = &worker.settings;
        let view = View::new(locked.hold(), db, self.now, settings, &mut worker.effects);
        let result = body(&mut view.with_seed(seed));
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
