//! Engine commands, and where their long work runs.
//!
//! An engine ([`kiln_keyspace::Engine`]) is used by many commands at once, so its commands hold
//! shards only to find it and to commit a change. Their handler gets a [`Context`] and takes the
//! shards itself, for moments. What takes long, such as a search through a large index, must not
//! hold up the worker's other clients either:
//!
//! 1. A handler that foresees more work than [`INLINE_MICROS`] returns it as a [`Job`], having
//!    written and changed nothing.
//! 2. The job runs on the compute pool, without a shard, a session or a view; it owns all it needs.
//!    Its client waits; the worker's others go on.
//! 3. What the job returns runs on the client's own worker, with a [`Context`] again: it commits
//!    what was prepared and writes the reply. Whatever it had looked up before may have changed.
//! 4. Inside a transaction both run at once, under the transaction's hold.
//!
//! A client has at most one job, so the pool's queue is as long as there are clients. A client that
//! is gone when its job is done still gets its change committed; one that was killed does not.

use kiln_resp::{Args, ReplyWriter};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;
use std::time::Instant;
use tokio::sync::oneshot;

use crate::context::Context;
use crate::error::{CommandError, CommandResult};
use crate::table::Command;

/// Work up to this long runs where it is asked for: sending it to the pool and back costs some
/// 20 to 50 µs, and a worker that is busy for a millisecond is noticed by nobody.
pub const INLINE_MICROS: u64 = 1_000;

/// Handler of a command on an engine.
pub type EngineHandler =
    fn(&mut Context<'_>, &Args<'_>, &mut ReplyWriter<'_>) -> Result<Work, CommandError>;

/// What an engine command's handler did.
pub enum Work {
    /// It replied.
    Done,
    /// It changed and wrote nothing; this is what is to be done.
    Compute(Job),
}

/// The long part of a command.
pub type Job = Box<dyn FnOnce() -> Finish + Send>;

/// The short part after it: commits and replies.
pub type Finish = Box<dyn FnOnce(&mut Context<'_>, &mut ReplyWriter<'_>) -> CommandResult + Send>;

/// A command whose job is on its way.
pub struct Computing {
    pub(crate) command: Command,
    pub(crate) started: Instant,
    receiver: oneshot::Receiver<Finish>,
}

impl Computing {
    /// Waits for the end of the job; `None` if the pool has lost it.
    pub async fn done(&mut self) -> Option<Finish> {
        (&mut self.receiver).await.ok()
    }

    /// The same for a thread that may block.
    pub fn wait(&mut self) -> Option<Finish> {
        loop {
            match self.receiver.try_recv() {
                Ok(finish) => return Some(finish),
                Err(oneshot::error::TryRecvError::Empty) => std::thread::yield_now(),
                Err(oneshot::error::TryRecvError::Closed) => return None,
            }
        }
    }
}

/// The threads for long work. They start with the first job.
pub struct ComputePool {
    threads: usize,
    pool: OnceLock<ThreadPool>,
}

impl ComputePool {
    /// A pool of so many threads.
    pub fn new(threads: usize) -> Self {
        Self { threads, pool: OnceLock::new() }
    }

    /// Runs `job` when a thread is free.
    pub(crate) fn start(&self, command: Command, job: Job) -> Computing {
        let (sender, receiver) = oneshot::channel();
        self.pool().spawn(move || {
            // A client that was killed meanwhile takes nothing.
            drop(sender.send(job()));
        });
        Computing { command, started: Instant::now(), receiver }
    }

    fn pool(&self) -> &ThreadPool {
        self.pool.get_or_init(|| {
            let builder = ThreadPoolBuilder::new()
                .num_threads(self.threads)
                .thread_name(|index| format!("kiln-compute-{index}"));
            builder.build().expect("the system has room for a thread for each core")
        })
    }
}
