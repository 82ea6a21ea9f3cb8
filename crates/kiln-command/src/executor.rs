//! The executor: from the words of a batch to replies, with all locks in between.
//!
//! ```text
//! batch ─► resolve, place keys ─► prefetch shard, bucket, entry ─► one after another:
//!                                                                     admit ─► lock ─► handler
//!          replies ◄─ settle: journal, serve waiters, unlock, events, garbage ◄──────────┘
//! ```
//!
//! A batch is cut into windows of [`WINDOW`] commands. For a window the executor computes what
//! each command is and where its keys live, then asks the processor for all shards, all buckets
//! and all entries (and what the entries of lists, sets, hashes and sorted sets point to) before it
//! runs the first command: three or four cache misses for each cold key, which one after another
//! would be most of a pipelined command's time, overlap.
//!
//! Lock protocol: see `kiln_keyspace::Keyspace`; its rules 3 to 5 are kept here. Waiting clients:
//! see `blocking.rs`. A handler that fails leaves no trace: its reply is cut off, and by the rule
//! of handlers (checks before changes) it has changed nothing.

use std::collections::VecDeque;

use kiln_base::clock::{UnixMs, now_ms, now_us};
use kiln_base::memory;
use kiln_base::sync::atomic::Ordering;
use kiln_base::sync::{Arc, LockMode};
use kiln_keyspace::{
    Effect, Evicted, Hold, KeyPlace, Locked, Object, PlannedKey, Shards, Value, View, Waiter,
    evict_one,
};
use kiln_resp::{Args, Batch, ReplyBuf, ReplyWriter};
use tokio::sync::oneshot;

use crate::blocking::{BlockedClient, Outcome, Wake};
use crate::compute::{Computing, Finish, Work};
use crate::context::Context;
use crate::error::CommandError;
use crate::server::{Garbage, Server, Worker};
use crate::session::{Session, Transaction, Watched};
use crate::spec::{CommandFlags, Group, Journal, Run};
use crate::table::{Command, allowed_before_auth};

/// Commands whose keys are prefetched together. Their cache lines must fit the first level.
const WINDOW: usize = 64;
/// Keys of one command that are placed ahead; the rest of a longer list is hashed when used.
const PLACED_KEYS_MAX: usize = 64;
/// After a command of this length the clock is read again.
const SLOW_NANOS: u64 = 100_000;
/// Neighbours that call one constant-time command are timed as one lap of the stopwatch, up to so
/// many, and each is taken to have lasted as long as their mean. Reading the counter costs 14 ns
/// here, a tenth of a pipelined PING, and writing the statistics as much again.
const LAP_COMMANDS_MAX: u32 = 16;
/// A command of more words, or with a longer reply, ends its lap.
const LAP_WORDS_MAX: usize = 8;
const LAP_REPLY_BYTES_MAX: usize = 4096;
/// A slow log that is to catch shorter commands wants each one timed.
const LAP_SLOWLOG_MICROS_MIN: i64 = 1_000;
/// Keys evicted at most before one command runs.
const EVICTIONS_MAX: usize = 128;

/// How far a batch got.
pub enum Progress {
    /// All commands ran.
    Done,
    /// The command at this index waits; the rest of the batch runs after it.
    Blocked {
        /// Its index in the batch.
        index: usize,
        /// The waiter.
        waiter: Arc<BlockedClient>,
        /// Where its reply comes from.
        receiver: oneshot::Receiver<Wake>,
    },
    /// The command at this index is computed elsewhere; the rest of the batch runs after it.
    Computing {
        /// Its index in the batch.
        index: usize,
        /// Where its end is heard of, for [`finish_compute`].
        computing: Computing,
    },
    /// The command at this index must wait for the end of CLIENT PAUSE.
    Paused {
        /// Its index in the batch.
        index: usize,
        /// When the pause ends by itself.
        until: UnixMs,
    },
    /// The connection must close; what was replied goes out first.
    Close,
}

/// A command of the window, ahead of its turn.
#[derive(Clone, Copy)]
struct Planned {
    /// `None` if it does not exist or has the wrong number of words.
    command: Option<Command>,
    /// Its keys in `Executor::keys`.
    first_key: usize,
    end_key: usize,
}

impl Planned {
    #[inline]
    fn calls(&self, command: Command) -> bool {
        self.command.is_some_and(|own| own.id == command.id)
    }
}

/// Runs batches for one worker.
#[derive(Default)]
pub struct Executor {
    window: Vec<Planned>,
    keys: Vec<PlannedKey>,
    /// Places of keys that seem to exist and whose values have allocations of their own.
    found: Vec<KeyPlace>,
}

/// What came of one command.
enum Step {
    /// It ran.
    Ran,
    /// It was refused or queued.
    Refused,
    Wait(Wait),
    Pause(UnixMs),
}

/// What a command that has not replied yet waits for.
enum Wait {
    Key(Arc<BlockedClient>, oneshot::Receiver<Wake>),
    Compute(Computing),
}

impl Executor {
    /// Runs the commands of `batch` from index `from` on, replying into `out`.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a worker has, what a client has, the batch"
    )]
    pub fn run_batch(
        &mut self,
        server: &Server,
        worker: &mut Worker,
        session: &mut Session,
        buf: &[u8],
        batch: &Batch,
        from: usize,
        out: &mut ReplyBuf,
    ) -> Progress {
        worker.refresh(server);
        session.client.commands.fetch_add((batch.len() - from) as u64, Ordering::Relaxed);
        let exact =
            (0..LAP_SLOWLOG_MICROS_MIN).contains(&worker.config.config().slowlog_log_slower_than);
        let mut start = from;
        worker.watch.restart();
        let mut now = now_ms();
        while start < batch.len() {
            let end = (start + WINDOW).min(batch.len());
            self.plan(server, session, buf, batch, start, end);
            let mut lap = 0;
            for index in start..end {
                let args = batch.args(index, buf);
                let planned = &self.window[index - start];
                let places = &self.keys[planned.first_key..planned.end_key];
                let mut run = Running { server, worker, session, now, places };
                let reply_start = out.len();
                let step = run.run_one(planned.command, &args, out, lap == 0);
                let ran = matches!(step, Step::Ran | Step::Wait(Wait::Key(..)));
                lap += u32::from(ran);
                if let Some(command) = planned.command
                    && lap > 0
                {
                    let shared = ran
                        && command.constant_time
                        && self
                            .window
                            .get(index + 1 - start)
                            .is_some_and(|next| next.calls(command))
                        && lap < LAP_COMMANDS_MAX
                        && args.len() <= LAP_WORDS_MAX
                        && out.len() <= reply_start + LAP_REPLY_BYTES_MAX
                        && !exact
                        && !run.session.closing;
                    if !shared {
                        // After a command that took long, the next ones see a new time.
                        if run.end_lap(command, &args, lap) > SLOW_NANOS {
                            now = now_ms();
                        }
                        lap = 0;
                    }
                }
                match step {
                    Step::Ran | Step::Refused => {}
                    Step::Wait(Wait::Key(waiter, receiver)) => {
                        return Progress::Blocked { index, waiter, receiver };
                    }
                    Step::Wait(Wait::Compute(computing)) => {
                        return Progress::Computing { index, computing };
                    }
                    Step::Pause(until) => return Progress::Paused { index, until },
                }
                if session.closing {
                    return Progress::Close;
                }
            }
            start = end;
        }
        Progress::Done
    }

    /// Resolves the commands of a window, places their keys, and prefetches what they will touch.
    fn plan(
        &mut self,
        server: &Server,
        session: &Session,
        buf: &[u8],
        batch: &Batch,
        start: usize,
        end: usize,
    ) {
        self.window.clear();
        self.keys.clear();
        // Pipelines repeat commands: the last one's name is compared before the table is asked.
        let mut last: Option<(&[u8], Command)> = None;
        let mut values_apart = false;
        for index in start..end {
            let args = batch.args(index, buf);
            let name = args.get(0);
            let command = match last {
                Some((same, command)) if same == name && command.spec.arity.admits(args.len()) => {
                    Some(command)
                }
                _ => server.commands.resolve(&args).ok(),
            };
            let first_key = self.keys.len();
            if let Some(command) = command {
                place_keys(command, &args, &mut self.keys);
                values_apart |= command.values_apart;
                last = (!command.is_subcommand).then_some((name, command));
            }
            self.window.push(Planned { command, first_key, end_key: self.keys.len() });
        }
        // A lone key gains nothing: its misses have nothing to overlap with.
        if self.keys.len() > 1 {
            let (keyspace, db) = (&server.keyspace, session.db);
            for key in &self.keys {
                keyspace.prefetch_shard(key.place.shard);
            }
            // A key that repeats is on its way already, and a look takes the shard's lock: of a hot
            // key that is the one line which all workers want.
            let distinct = || {
                let mut last = None;
                self.keys.iter().filter(move |key| last.replace(key.place) != Some(key.place))
            };
            for key in distinct() {
                keyspace.prefetch_bucket(key.place.shard, db, key.place.hash);
            }
            self.found.clear();
            for key in distinct() {
                if keyspace.prefetch_entry(key.place.shard, db, key.place.hash) && values_apart {
                    self.found.push(key.place);
                }
            }
            for place in &self.found {
                keyspace.prefetch_value(place.shard, db, place.hash);
            }
        }
    }
}

/// Puts the places of the first keys of a command into `keys`.
#[inline]
fn place_keys(command: Command, args: &Args<'_>, keys: &mut Vec<PlannedKey>) {
    let [spec] = command.spec.keys else {
        let first = keys.len();
        command.spec.for_each_key(args, |index, _| {
            if keys.len() - first < PLACED_KEYS_MAX {
                keys.push(PlannedKey::new(args.get(index)));
            }
        });
        return;
    };
    let Some((first, end, step)) = spec.positions(args) else { return };
    for index in (first..end).step_by(step.max(1)).take(PLACED_KEYS_MAX) {
        keys.push(PlannedKey::new(args.get(index)));
    }
}

/// All shards that a command may touch.
fn shards_of(command: Command, args: &Args<'_>, places: &[PlannedKey]) -> Shards {
    if let [only] = places
        && command.spec.touches_all.is_none()
    {
        return Shards::One(only.place.shard);
    }
    let mut shards = Shards::None;
    if command.spec.touches_all.is_some_and(|test| test(args)) {
        return Shards::All;
    }
    if places.len() < PLACED_KEYS_MAX && !places.is_empty() {
        places.iter().for_each(|key| shards.add(key.place.shard));
    } else {
        command.spec.for_each_key(args, |index, _| {
            shards.add(kiln_keyspace::shard_of(args.get(index)));
        });
    }
    shards
}

/// One command on its way.
struct Running<'r> {
    server: &'r Server,
    worker: &'r mut Worker,
    session: &'r mut Session,
    now: UnixMs,
    places: &'r [PlannedKey],
}

impl Running<'_> {
    /// Runs a command, or says why not; `first` if another one than before.
    #[inline]
    fn run_one(
        &mut self,
        command: Option<Command>,
        args: &Args<'_>,
        out: &mut ReplyBuf,
        first: bool,
    ) -> Step {
        let mark = out.mark();
        let resolved = match command {
            Some(command) if self.runs_freely() => command,
            _ => match self.admit(command, args) {
                Ok(Some(command)) => command,
                Ok(None) => {
                    ReplyWriter::new(out, self.session.protocol).simple("QUEUED");
                    self.session.after_reply(out, mark);
                    return Step::Refused;
                }
                Err(Refusal::Pause(until)) => return Step::Pause(until),
                Err(Refusal::Close) => return Step::Refused,
                Err(Refusal::Error(error)) => {
                    self.fail(&error, out);
                    self.session.after_reply(out, mark);
                    return Step::Refused;
                }
            },
        };
        if self.server.clients.has_monitors() {
            self.tell_monitors(resolved, args);
        }
        if first {
            let client = &self.session.client;
            client.last_command.store(u32::from(resolved.id.0), Ordering::Relaxed);
        }
        if let Some(wait) = self.execute(resolved, args, out) {
            return Step::Wait(wait);
        }
        self.session.after_reply(out, mark);
        Step::Ran
    }

    /// Writes down that `count` calls of a command have run since the last lap, the last one with
    /// `args`; returns how long they took on average.
    #[inline]
    fn end_lap(&mut self, command: Command, args: &Args<'_>, count: u32) -> u64 {
        let nanos = self.worker.watch.lap();
        let mean = if count == 1 { nanos } else { nanos / u64::from(count) };
        self.worker.stats.ran(command.id, u64::from(count), nanos, mean);
        self.note_slow(command, args, mean);
        mean
    }

    /// Whether nothing at all stands between a command that exists and its run: what
    /// [`Running::admit`] decides at length.
    #[inline]
    fn runs_freely(&self) -> bool {
        self.session.authenticated
            && self.session.transaction.is_none()
            && self.worker.config.config().maxmemory == 0
            && !self.server.pause.is_set()
    }

    /// Decides whether a command may run now: `None` if it was queued instead.
    fn admit(
        &mut self,
        command: Option<Command>,
        args: &Args<'_>,
    ) -> Result<Option<Command>, Refusal> {
        let Some(command) = command else {
            if is_http(args.get(0)) {
                self.session.closing = true;
                return Err(Refusal::Close);
            }
            let error = self.server.commands.resolve(args).map(drop);
            let error = error.expect_err("planning found that it does not resolve");
            return Err(self.refuse(None, error));
        };
        let spec = command.spec;
        if !self.session.authenticated && !allowed_before_auth(spec) {
            return Err(self.refuse(Some(command), CommandError::NoAuth));
        }
        if self.session.in_multi() && spec.flags.contains(CommandFlags::NO_MULTI) {
            return Err(self.refuse(Some(command), CommandError::NotInMulti));
        }
        let config = self.worker.config.config();
        if config.maxmemory > 0 {
            let full =
                !make_room(self.server, self.worker, config_maxmemory(self.worker), self.now);
            // EXEC as a whole is refused if anything queued needs memory.
            let needs_memory = spec.flags.contains(CommandFlags::DENYOOM)
                || (self.session.in_multi() && is_exec(command) && self.queued_needs_memory());
            if full && needs_memory {
                return Err(self.refuse(Some(command), CommandError::OutOfMemory));
            }
        }
        if self.session.in_multi() && !runs_in_multi(command) {
            let transaction = self.session.transaction.as_mut().expect("in_multi");
            let owned = args.to_owned();
            transaction.bytes += owned.memory_bytes();
            transaction.queued.push((command, owned));
            self.session.publish();
            return Ok(None);
        }
        if let Some(until) = self.server.pause.holds(self.may_write(command)) {
            return Err(Refusal::Pause(until));
        }
        Ok(Some(command))
    }

    fn may_write(&self, command: Command) -> bool {
        let queued = || {
            let transaction = self.session.transaction.as_ref();
            transaction.is_some_and(|open| open.queued.iter().any(|(one, _)| one.spec.is_write()))
        };
        command.spec.is_write() || (is_exec(command) && queued())
    }

    fn queued_needs_memory(&self) -> bool {
        let transaction = self.session.transaction.as_ref();
        transaction.is_some_and(|open| {
            open.queued.iter().any(|(one, _)| one.spec.flags.contains(CommandFlags::DENYOOM))
        })
    }

    /// Notes a command that is not going to run. Inside MULTI it spoils the transaction.
    fn refuse(&mut self, command: Option<Command>, error: CommandError) -> Refusal {
        if let Some(transaction) = &mut self.session.transaction {
            transaction.failed = true;
        }
        if let Some(command) = command {
            self.worker.stats.commands[usize::from(command.id.0)].rejected.add(1);
        }
        // A refused EXEC ends its transaction, and says so.
        let is_exec = command.is_some_and(is_exec)
            || matches!(&error, CommandError::WrongArity(name) if name == "exec");
        if !is_exec {
            return Refusal::Error(error);
        }
        self.session.transaction = None;
        unwatch_all(self.server, self.worker, self.session, self.now);
        let text = error.to_string();
        let reason = text.strip_prefix("ERR ").unwrap_or(&text);
        let text = format!("EXECABORT Transaction discarded because of: {reason}");
        Refusal::Error(CommandError::owned(text))
    }

    /// Runs a command outside or at the edge of a transaction.
    fn execute(&mut self, command: Command, args: &Args<'_>, out: &mut ReplyBuf) -> Option<Wait> {
        match command.spec.run {
            Run::Read(handler) => {
                let shards = shards_of(command, args, self.places);
                let mut locked = self.server.keyspace.lock(shards, LockMode::Shared);
                let (result, met_expired) = {
                    let view = view(locked.hold(), self.session, self.worker, self.now)
                        .with_places(self.places);
                    let mark = out.mark();
                    let mut reply = ReplyWriter::new(out, self.session.protocol);
                    let result = handler(&view, args, &mut reply);
                    if result.is_err() {
                        reply.rollback(mark);
                    }
                    let (hits, misses) = view.hits_and_misses();
                    let met_expired = view.met_expired();
                    self.worker.stats.keyspace_hits.add(u64::from(hits));
                    self.worker.stats.keyspace_misses.add(u64::from(misses));
                    (result, met_expired)
                };
                drop(locked);
                if met_expired {
                    self.expire_met(command, args);
                }
                self.finish(command, result, out);
                None
            }
            Run::Write(handler) => {
                let shards = shards_of(command, args, self.places);
                let mut locked = self.server.keyspace.lock(shards, LockMode::Exclusive);
                let result = {
                    let mut view = view(locked.hold(), self.session, self.worker, self.now)
                        .with_places(self.places);
                    let mark = out.mark();
                    let mut reply = ReplyWriter::new(out, self.session.protocol);
                    let result = handler(&mut view, args, &mut reply);
                    if result.is_err() {
                        reply.rollback(mark);
                    }
                    result
                };
                note_effect(self.worker, command, args, self.session.db, 0);
                settle(self.server, self.worker, locked, self.now);
                self.finish(command, result, out);
                None
            }
            Run::Blocking(_) => self.execute_blocking(command, args, out),
            Run::Connection(_) if is_exec(command) => {
                self.exec(out);
                None
            }
            Run::Connection(handler) => {
                let mark = out.mark();
                let result = {
                    let mut reply = ReplyWriter::new(out, self.session.protocol);
                    let mut context = Context {
                        server: self.server,
                        worker: self.worker,
                        session: self.session,
                        held: None,
                        now: self.now,
                        sent: None,
                    };
                    let result = handler(&mut context, args, &mut reply);
                    if result.is_err() {
                        reply.rollback(mark);
                    }
                    result
                };
                self.finish(command, result, out);
                let block = self.session.pending_block.take()?;
                let (waiter, receiver) = BlockedClient::new(
                    command,
                    args.to_owned(),
                    self.session.db,
                    self.session.protocol,
                    Shards::None,
                    block,
                );
                Some(Wait::Key(waiter, receiver))
            }
            Run::Engine(_) => self.execute_engine(command, args, out),
            Run::Container => unreachable!("resolving a container gives a subcommand or an error"),
        }
    }

    /// Runs an engine command, or sends its work to the compute pool.
    fn execute_engine(
        &mut self,
        command: Command,
        args: &Args<'_>,
        out: &mut ReplyBuf,
    ) -> Option<Wait> {
        let Run::Engine(handler) = command.spec.run else {
            unreachable!("the caller looked at the form");
        };
        let mut work = Work::Done;
        self.run_engine(command, args, out, |context, reply| {
            work = handler(context, args, reply)?;
            Ok(())
        });
        match work {
            Work::Done => None,
            Work::Compute(job) => Some(Wait::Compute(self.server.compute.start(command, job))),
        }
    }

    /// Runs a part of an engine command; its error is the command's reply.
    fn run_engine(
        &mut self,
        command: Command,
        args: &Args<'_>,
        out: &mut ReplyBuf,
        part: impl FnOnce(&mut Context<'_>, &mut ReplyWriter<'_>) -> Result<(), CommandError>,
    ) {
        let mark = out.mark();
        let mut context = Context {
            server: self.server,
            worker: self.worker,
            session: self.session,
            held: None,
            now: self.now,
            sent: Some((command, *args)),
        };
        let mut reply = ReplyWriter::new(out, context.session.protocol);
        let result = part(&mut context, &mut reply);
        if result.is_err() {
            reply.rollback(mark);
        }
        self.finish(command, result, out);
    }

    /// Removes what a reading command met expired, as Redis does: a shared hold could only hide it.
    #[cold]
    fn expire_met(&mut self, command: Command, args: &Args<'_>) {
        let shards = shards_of(command, args, self.places);
        let mut locked = self.server.keyspace.lock(shards, LockMode::Exclusive);
        let mut view = view(locked.hold(), self.session, self.worker, self.now);
        command.spec.for_each_key(args, |index, _| view.expire_due(args.get(index)));
        settle(self.server, self.worker, locked, self.now);
    }

    fn execute_blocking(
        &mut self,
        command: Command,
        args: &Args<'_>,
        out: &mut ReplyBuf,
    ) -> Option<Wait> {
        let shards = shards_of(command, args, self.places);
        let mut locked = self.server.keyspace.lock(shards.clone(), LockMode::Exclusive);
        let protocol = self.session.protocol;
        let db = self.session.db;
        let outcome = {
            let mut view =
                view(locked.hold(), self.session, self.worker, self.now).with_places(self.places);
            run_blocking(command, &mut view, args, &mut ReplyWriter::new(out, protocol))
        };
        let result = match outcome {
            Ok(Outcome::Block(block)) => {
                let (waiter, receiver) =
                    BlockedClient::new(command, args.to_owned(), db, protocol, shards, block);
                let shared: Arc<dyn Waiter> = Arc::clone(&waiter) as Arc<dyn Waiter>;
                let mut view = view(locked.hold(), self.session, self.worker, self.now);
                waiter.wait_keys().for_each(|key| view.wait(key, &shared));
                settle(self.server, self.worker, locked, self.now);
                return Some(Wait::Key(waiter, receiver));
            }
            Ok(Outcome::Done) => Ok(()),
            Err(error) => Err(error),
        };
        note_effect(self.worker, command, args, db, 0);
        settle(self.server, self.worker, locked, self.now);
        self.finish(command, result, out);
        None
    }

    /// EXEC: all queued commands under one hold of everything that they and WATCH name.
    fn exec(&mut self, out: &mut ReplyBuf) {
        let protocol = self.session.protocol;
        let Some(transaction) = self.session.transaction.take() else {
            return self.fail(&CommandError::text("ERR EXEC without MULTI"), out);
        };
        self.session.client.info.lock().multi = -1;
        if transaction.failed {
            unwatch_all(self.server, self.worker, self.session, self.now);
            return self.fail(&CommandError::ExecAbort, out);
        }
        let mut shards = Shards::None;
        for (command, args) in &transaction.queued {
            let args = args.args();
            match command.spec.run {
                Run::Connection(_) if touches_keyspace(*command) => shards = Shards::All,
                _ => shards.add_all(&shards_of(*command, &args, &[])),
            }
        }
        for watched in &self.session.watched {
            shards.add(kiln_keyspace::shard_of(&watched.key));
        }
        let mut locked = self.server.keyspace.lock(shards, LockMode::Exclusive);
        let spoiled = self.release_watches(locked.hold());
        if spoiled {
            drop(locked);
            ReplyWriter::new(out, protocol).null_array();
            return;
        }
        ReplyWriter::new(out, protocol).array(transaction.queued.len());
        for (command, args) in &transaction.queued {
            let args = args.args();
            if self.server.clients.has_monitors() {
                self.tell_monitors(*command, &args);
            }
            self.worker.watch.restart();
            self.execute_held(*command, &args, locked.hold(), out);
            self.end_lap(*command, &args, 1);
        }
        settle(self.server, self.worker, locked, self.now);
    }

    /// Ends WATCH under a hold of all watched keys; says whether one of them has changed.
    fn release_watches(&mut self, mut hold: Hold<'_>) -> bool {
        let mut spoiled = self.session.token.is_touched();
        for watched in std::mem::take(&mut self.session.watched) {
            let worker = &mut *self.worker;
            let hold = hold.reborrow();
            let mut view =
                View::new(hold, watched.db, self.now, &worker.settings, &mut worker.effects);
            spoiled |= !watched.was_expired && view.is_expired(&watched.key);
            view.unwatch(&watched.key, &self.session.token);
        }
        self.session.token = Arc::default();
        spoiled
    }

    /// Runs one command of a transaction under the transaction's hold.
    fn execute_held(
        &mut self,
        command: Command,
        args: &Args<'_>,
        mut hold: Hold<'_>,
        out: &mut ReplyBuf,
    ) {
        let mark = out.mark();
        let protocol = self.session.protocol;
        let db = self.session.db;
        let before = self.worker.effects.dirty;
        let result = match command.spec.run {
            Run::Read(handler) => {
                let mut view = view(hold, self.session, self.worker, self.now);
                let result = handler(&view, args, &mut ReplyWriter::new(out, protocol));
                if view.met_expired() {
                    command.spec.for_each_key(args, |index, _| view.expire_due(args.get(index)));
                }
                result
            }
            Run::Write(handler) => {
                let mut view = view(hold, self.session, self.worker, self.now);
                handler(&mut view, args, &mut ReplyWriter::new(out, protocol))
            }
            Run::Blocking(_) => {
                let mut view = view(hold, self.session, self.worker, self.now);
                let mut reply = ReplyWriter::new(out, protocol);
                run_blocking(command, &mut view, args, &mut reply).map(|outcome| {
                    // Waiting inside a transaction is not possible: the time is over at once.
                    if let Outcome::Block(block) = outcome {
                        block.on_timeout.write(&mut reply);
                    }
                })
            }
            Run::Connection(handler) => {
                let mut context = Context {
                    server: self.server,
                    worker: self.worker,
                    session: self.session,
                    held: Some(hold.reborrow()),
                    now: self.now,
                    sent: None,
                };
                let mut reply = ReplyWriter::new(out, protocol);
                let result = handler(&mut context, args, &mut reply);
                if let Some(block) = context.session.pending_block.take() {
                    block.on_timeout.write(&mut reply);
                }
                result
            }
            Run::Engine(handler) => {
                let mut context = Context {
                    server: self.server,
                    worker: self.worker,
                    session: self.session,
                    held: Some(hold.reborrow()),
                    now: self.now,
                    sent: Some((command, *args)),
                };
                let mut reply = ReplyWriter::new(out, protocol);
                match handler(&mut context, args, &mut reply) {
                    Ok(Work::Done) => Ok(()),
                    // Waiting inside a transaction is not possible.
                    Ok(Work::Compute(job)) => job()(&mut context, &mut reply),
                    Err(error) => Err(error),
                }
            }
            Run::Container => unreachable!("resolving a container gives a subcommand or an error"),
        };
        if result.is_err() {
            out.truncate_to(mark);
        }
        note_effect(self.worker, command, args, db, before);
        self.finish(command, result, out);
    }

    /// Writes the error of a failed handler and counts it.
    fn finish(&mut self, command: Command, result: Result<(), CommandError>, out: &mut ReplyBuf) {
        if let Err(error) = result {
            self.worker.stats.commands[usize::from(command.id.0)].failed.add(1);
            self.fail(&error, out);
        }
    }

    #[cold]
    fn fail(&mut self, error: &CommandError, out: &mut ReplyBuf) {
        self.worker.stats.error_replies.add(1);
        self.server.errors.count(error.code());
        ReplyWriter::new(out, self.session.protocol).error(&error.to_string());
    }

    #[inline]
    fn note_slow(&mut self, command: Command, args: &Args<'_>, nanos: u64) {
        let config = self.worker.config.config();
        let slower_than = config.slowlog_log_slower_than;
        let micros = nanos / 1_000;
        if slower_than >= 0 && micros as i64 >= slower_than {
            self.log_slow(command, args, micros);
        }
        let threshold = config.latency_monitor_threshold;
        if threshold > 0 && nanos / 1_000_000 >= threshold {
            let fast = command.spec.flags.contains(CommandFlags::FAST);
            let event = if fast { "fast-command" } else { "command" };
            self.server.latency.add(event, self.now / 1_000, nanos / 1_000_000);
        }
    }

    #[cold]
    fn log_slow(&self, command: Command, args: &Args<'_>, micros: u64) {
        if !command.spec.flags.contains(CommandFlags::SKIP_SLOWLOG) {
            let max_len = self.worker.config.config().slowlog_max_len as usize;
            let (client, time_s) = (&self.session.client, self.now / 1_000);
            self.server.slowlog.add(args, client, time_s, micros, max_len);
        }
    }

    #[cold]
    fn tell_monitors(&self, command: Command, args: &Args<'_>) {
        let hidden = CommandFlags::SKIP_MONITOR | CommandFlags::ADMIN;
        if command.spec.flags.intersects(hidden) {
            return;
        }
        let now = now_us();
        let mut line = format!("+{}.{:06} [{} ", now / 1_000_000, now % 1_000_000, self.session.db)
            .into_bytes();
        line.extend_from_slice(self.session.client.addr.as_bytes());
        line.push(b']');
        for arg in args.iter() {
            line.push(b' ');
            quote(arg, &mut line);
        }
        line.extend_from_slice(b"\r\n");
        let limit = self.worker.config.config().client_output_buffer_limit.normal.hard_bytes;
        self.server.clients.tell_monitors(&line, limit);
    }
}

/// The first words of a request that a web page could make a browser send here. Answering would
/// let it run commands, so the connection closes without a word, as in Redis.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:")
}

enum Refusal {
    /// Close the connection and say nothing.
    Close,
    Error(CommandError),
    Pause(UnixMs),
}

/// A view of the session's database with a seed of its own.
#[inline]
fn view<'v>(hold: Hold<'v>, session: &Session, worker: &'v mut Worker, now: UnixMs) -> View<'v> {
    let seed = worker.next_seed();
    let view = View::new(hold, session.db, now, &worker.settings, &mut worker.effects);
    let view = view.with_seed(seed);
    if session.no_touch { view.without_touch() } else { view }
}

fn run_blocking(
    command: Command,
    view: &mut View<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Outcome, CommandError> {
    let Run::Blocking(handler) = command.spec.run else {
        unreachable!("only blocking commands wait for keys");
    };
    let mark = reply.mark();
    let outcome = handler(view, args, reply);
    if !matches!(outcome, Ok(Outcome::Done)) {
        reply.rollback(mark);
    }
    outcome
}

/// Commands that run although a transaction is open.
fn runs_in_multi(command: Command) -> bool {
    matches!(command.spec.name, "EXEC" | "DISCARD" | "MULTI" | "WATCH" | "QUIT" | "RESET")
}

fn is_exec(command: Command) -> bool {
    command.spec.name == "EXEC"
}

/// Connection commands that look at keys: inside a transaction they need its hold to cover all.
fn touches_keyspace(command: Command) -> bool {
    let acl = command.spec.acl();
    acl.contains(crate::spec::AclCategories::KEYSPACE)
        || command.spec.flags.intersects(CommandFlags::WRITE | CommandFlags::READONLY)
        || matches!(command.spec.name, "INFO" | "DEBUG")
        || command.spec.name.starts_with("MEMORY|")
}

fn config_maxmemory(worker: &Worker) -> u64 {
    worker.config.config().maxmemory
}

/// Evicts until memory is below `limit`; says whether it is.
fn make_room(server: &Server, worker: &mut Worker, limit: u64, now: UnixMs) -> bool {
    let mut tries = 0;
    while memory::used_bytes() > limit {
        if tries == EVICTIONS_MAX {
            return true; // Enough for one command: progress is made, the next one goes on.
        }
        let Worker { settings, pool, rng, effects, .. } = worker;
        let Evicted::Key(locked) = evict_one(&server.keyspace, settings, pool, now, rng, effects)
        else {
            return false;
        };
        settle(server, worker, locked, now);
        worker.stats.evicted_keys.add(1);
        tries += 1;
    }
    true
}

/// Journals a command as it was sent, if it changed something and gave no effects of its own;
/// `before` is how many changes the transaction had seen before it.
#[inline]
pub(crate) fn note_effect(
    worker: &mut Worker,
    command: Command,
    args: &Args<'_>,
    db: usize,
    before: u64,
) {
    let effects = &mut worker.effects;
    let rewritten = std::mem::take(&mut effects.rewritten);
    if !effects.journaling || effects.dirty == before {
        return;
    }
    if command.spec.journal == Journal::AsSent && !rewritten {
        let words = args.iter().map(Box::from).collect();
        effects.journal.push(Effect { db, words });
    }
}

/// Acts on what was changed under `locked` and lets go of it: journal, waiting clients, then,
/// without the locks, events, garbage and the waiters that need other shards.
#[inline]
pub(crate) fn settle(server: &Server, worker: &mut Worker, locked: Locked<'_>, now: UnixMs) {
    if worker.effects.is_mere_count() {
        worker.stats.dirty.add(std::mem::take(&mut worker.effects.dirty));
    } else {
        settle_changes(server, worker, locked, now);
    }
}

fn settle_changes(server: &Server, worker: &mut Worker, locked: Locked<'_>, now: UnixMs) {
    let mut deferred = VecDeque::new();
    settle_hold(server, worker, locked, now, &mut deferred);
    // First changed, first served, as under a single hold.
    while let Some((key, shards)) = deferred.pop_front() {
        let locked = server.keyspace.lock(shards, LockMode::Exclusive);
        worker.effects.ready.push(key);
        settle_hold(server, worker, locked, now, &mut deferred);
    }
}

/// One hold's share of [`settle`]; what needs other shards goes to `deferred`.
fn settle_hold(
    server: &Server,
    worker: &mut Worker,
    mut locked: Locked<'_>,
    now: UnixMs,
    deferred: &mut VecDeque<(ReadyKey, Shards)>,
) {
    if !worker.effects.ready.is_empty() {
        serve_ready(worker, &mut locked, now, deferred);
    }
    if let Some(journal) = &server.journal
        && !worker.effects.journal.is_empty()
    {
        journal.append(worker.index, &worker.effects.journal);
    }
    drop(locked);
    flush_effects(server, worker);
}

/// Counts, tells and frees what the effects hold, without any lock.
fn flush_effects(server: &Server, worker: &mut Worker) {
    let effects = &mut worker.effects;
    worker.stats.dirty.add(effects.dirty);
    worker.stats.expired_keys.add(effects.expired);
    if let Some(events) = &server.events {
        effects.events.iter().for_each(|event| events.notify(event));
    }
    if !effects.garbage.is_empty() {
        server.reclaim(Garbage::Entries(std::mem::take(&mut effects.garbage)));
    }
    effects.reset();
}

type ReadyKey = (usize, Box<[u8]>);

/// Serves clients that wait for keys which became ready, as far as `locked` covers their shards.
/// Keys whose next waiter needs other shards go to `deferred`, with all shards it needs: who came
/// after it must not be served before it.
fn serve_ready(
    worker: &mut Worker,
    locked: &mut Locked<'_>,
    now: UnixMs,
    deferred: &mut VecDeque<(ReadyKey, Shards)>,
) {
    let held = locked.shards().clone();
    let mut queue: VecDeque<ReadyKey> = worker.effects.ready.drain(..).collect();
    while let Some((db, key)) = queue.pop_front() {
        // Waiters that go on waiting although the key is ready: it is not what they wait for.
        let mut passed = 0;
        loop {
            let settings = &worker.settings;
            let before = worker.effects.dirty;
            let mut view = View::new(locked.hold(), db, now, settings, &mut worker.effects);
            let Some(waiter) = view.waiter(&key, passed) else { break };
            let Some(client) = waiter.as_any().downcast_ref::<BlockedClient>() else { break };
            match ready_for(client, &view, &key) {
                Ready::Gone => break,
                Ready::OtherType => {
                    passed += 1;
                    continue;
                }
                Ready::Yes => {}
            }
            if !held.covers(&client.shards) {
                let mut shards = client.shards.clone();
                shards.add(kiln_keyspace::shard_of(&key));
                deferred.push_back(((db, key.clone()), shards));
                break;
            }
            let served = client.end_with(|| {
                let mut reply = ReplyBuf::default();
                let args = client.args.args();
                let mut writer = ReplyWriter::new(&mut reply, client.protocol);
                match run_blocking(client.command, &mut view, &args, &mut writer) {
                    Ok(Outcome::Done) => Some(Wake::Reply(reply)),
                    Ok(Outcome::Block(_)) => None,
                    Err(error) => Some(Wake::Error(error)),
                }
            });
            if served {
                client.wait_keys().for_each(|key| view.unwait(key, &waiter));
            } else {
                passed += 1;
            }
            note_effect(worker, client.command, &client.args.args(), db, before);
            queue.extend(worker.effects.ready.drain(..));
        }
    }
}

enum Ready {
    Yes,
    Gone,
    OtherType,
}

/// Whether what lies at `key` is of the type that `client` waits for.
fn ready_for(client: &BlockedClient, view: &View<'_>, key: &[u8]) -> Ready {
    let Some(entry) = view.peek(key) else { return Ready::Gone };
    let fits = matches!(
        (client.command.spec.group, entry.value()),
        (Group::List, Value::Object(Object::List(_)))
            | (Group::SortedSet, Value::Object(Object::SortedSet(_)))
    );
    if fits { Ready::Yes } else { Ready::OtherType }
}

/// Ends the wait of a client, if nobody else has, and takes it out of its queues.
pub fn stop_waiting(server: &Server, worker: &mut Worker, waiter: &Arc<BlockedClient>) {
    waiter.cancel();
    if waiter.block.keys.is_empty() {
        return;
    }
    let mut locked = server.keyspace.lock(waiter.shards.clone(), LockMode::Exclusive);
    let shared: Arc<dyn Waiter> = Arc::clone(waiter) as Arc<dyn Waiter>;
    let (now, settings) = (now_ms(), &worker.settings);
    let mut view = View::new(locked.hold(), waiter.db, now, settings, &mut worker.effects);
    waiter.wait_keys().for_each(|key| view.unwait(key, &shared));
}

/// Replies to a command that has waited.
pub fn reply_after_wait(
    server: &Server,
    worker: &Worker,
    session: &mut Session,
    waiter: &BlockedClient,
    wake: Wake,
    out: &mut ReplyBuf,
) {
    let mark = out.mark();
    let mut reply = ReplyWriter::new(out, session.protocol);
    match wake {
        Wake::Reply(served) => served.chunks().for_each(|chunk| reply.raw(chunk)),
        Wake::TimedOut => waiter.block.on_timeout.write_after_wait(&mut reply),
        Wake::Error(error) => {
            worker.stats.commands[usize::from(waiter.command.id.0)].failed.add(1);
            worker.stats.error_replies.add(1);
            server.errors.count(error.code());
            reply.error(&error.to_string());
        }
    }
    session.after_reply(out, mark);
}

/// Ends a command that was computed elsewhere: commits and replies. `args` are its words.
pub fn finish_compute(
    server: &Server,
    worker: &mut Worker,
    session: &mut Session,
    args: &Args<'_>,
    computing: &Computing,
    finish: Option<Finish>,
    out: &mut ReplyBuf,
) {
    let (mark, command) = (out.mark(), computing.command);
    worker.refresh(server);
    let mut running = Running { server, worker, session, now: now_ms(), places: &[] };
    running.run_engine(command, args, out, |context, reply| match finish {
        Some(finish) => finish(context, reply),
        None => Err(CommandError::text("ERR the work was lost")),
    });
    let nanos = computing.started.elapsed().as_nanos() as u64;
    running.worker.stats.ran(command.id, 1, nanos, nanos);
    running.note_slow(command, args, nanos);
    running.session.after_reply(out, mark);
}

/// Starts watching `keys` for the session.
pub fn watch(context: &mut Context<'_>, keys: Args<'_>) {
    for key in keys.iter() {
        let db = context.session.db;
        if context.session.watched.iter().any(|other| other.db == db && *other.key == *key) {
            continue;
        }
        let token = Arc::clone(&context.session.token);
        let shards = Shards::One(kiln_keyspace::shard_of(key));
        let was_expired =
            context.with_view(shards, LockMode::Exclusive, |view| view.watch(key, &token));
        context.session.watched.push(Watched { db, key: key.into(), was_expired });
    }
    context.session.publish();
}

/// Ends WATCH for the session.
pub fn unwatch_all(server: &Server, worker: &mut Worker, session: &mut Session, now: UnixMs) {
    for watched in std::mem::take(&mut session.watched) {
        let shards = Shards::One(kiln_keyspace::shard_of(&watched.key));
        let mut locked = server.keyspace.lock(shards, LockMode::Exclusive);
        let settings = &worker.settings;
        View::new(locked.hold(), watched.db, now, settings, &mut worker.effects)
            .unwatch(&watched.key, &session.token);
    }
    session.token = Arc::default();
    session.publish();
}

/// Opens a transaction.
pub fn begin(session: &mut Session) -> Result<(), CommandError> {
    if session.in_multi() {
        return Err(CommandError::text("ERR MULTI calls can not be nested"));
    }
    session.transaction = Some(Transaction::default());
    session.publish();
    Ok(())
}

/// Removes keys of one shard whose time has come, at most `max`; says whether more are due.
pub fn sweep_shard(
    server: &Server,
    worker: &mut Worker,
    shard: kiln_keyspace::ShardId,
    max: usize,
) -> bool {
    let now = now_ms();
    {
        // Most shards have nothing due: a look under the shared lock disturbs nobody.
        let Some(mut locked) = server.keyspace.try_lock(shard, LockMode::Shared) else {
            return false;
        };
        if locked.hold().state(shard).expiry.first_due(now).is_none() {
            return false;
        }
    }
    let mut locked = server.keyspace.lock(Shards::One(shard), LockMode::Exclusive);
    let settings = &worker.settings;
    let report = View::new(locked.hold(), 0, now, settings, &mut worker.effects).sweep(shard, max);
    settle(server, worker, locked, now);
    report.more
}

/// Appends `word` as MONITOR shows it: in double quotes, with escapes for what is not printable.
pub fn quote(word: &[u8], line: &mut Vec<u8>) {
    line.push(b'"');
    for &byte in word {
        match byte {
            b'\\' | b'"' => line.extend_from_slice(&[b'\\', byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            0x07 => line.extend_from_slice(b"\\a"),
            0x08 => line.extend_from_slice(b"\\b"),
            b' '..=b'~' => line.push(byte),
            _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    line.push(b'"');
}
