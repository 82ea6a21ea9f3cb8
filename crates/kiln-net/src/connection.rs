//! One connection, from its first byte to its last.
//!
//! ```text
//! socket ─► the worker's read buffer ─► batch ─► executor ─► reply buffer ─► socket
//!                └─ an unfinished command's bytes move to the connection's own buffer
//! ```
//!
//! An idle connection owns no buffer at all. Replies to what was received are written before more
//! is read, so a client that does not read its replies stops being served.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use kiln_base::clock::{UnixMs, now_ms};
use kiln_base::sync::atomic::Ordering;
use kiln_command::blocking::{BlockedClient, Wake};
use kiln_command::clients::Client;
use kiln_command::compute::{Computing, Finish};
use kiln_command::{
    CommandError, Progress, Server, Session, finish_compute, reply_after_wait, stop_waiting,
    unwatch_all,
};
use kiln_resp::{Batch, Parser, ParserLimits, ProtocolError, ReplyBuf, ReplyWriter};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::oneshot;

use crate::worker::Shared;

/// Commands parsed at once.
const BATCH_COMMANDS: usize = 1024;
/// A connection's own buffers are given back when they are empty and larger than this.
const KEEP_BYTES: usize = 64 * 1024;

/// Why serving a connection ended. None of it is worth a log line: clients come and go.
enum End {
    Closed,
    Socket(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

/// Serves `stream` until one side closes it.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    server: &Server,
    shared: &RefCell<Shared>,
    stream: S,
    client: &Arc<Client>,
) {
    let authenticated = server.config.current().requirepass.is_empty();
    let mut connection = Connection {
        server,
        shared,
        stream,
        session: Session::new(Arc::clone(client), authenticated),
        parser: Parser::default(),
        input: Vec::new(),
        out: ReplyBuf::default(),
        pushed: false,
    };
    match connection.run().await {
        Err(End::Socket(error)) => tracing::trace!(%error, client.id, "connection lost"),
        Err(End::Closed) | Ok(()) => {}
    }
    let worker = &mut shared.borrow_mut().worker;
    unwatch_all(server, worker, &mut connection.session, now_ms());
}

struct Connection<'c, S> {
    server: &'c Server,
    shared: &'c RefCell<Shared>,
    stream: S,
    session: Session,
    parser: Parser,
    /// Bytes received and not yet executed; empty while whole commands arrive.
    input: Vec<u8>,
    out: ReplyBuf,
    /// Something was pushed while replies were written.
    pushed: bool,
}

/// What to do after a batch.
enum After {
    ReadOn,
    /// The batch was full: more commands may stand in `input`.
    ParseOn,
    Block {
        batch: Batch,
        index: usize,
        waiter: Arc<BlockedClient>,
        receiver: oneshot::Receiver<Wake>,
    },
    Compute {
        batch: Batch,
        index: usize,
        computing: Computing,
    },
    Pause {
        batch: Batch,
        index: usize,
        until: UnixMs,
    },
    Close,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    async fn run(&mut self) -> Result<(), End> {
        loop {
            let mut after = self.receive().await?;
            loop {
                if let Err(end) = self.flush().await {
                    if let After::Block { waiter, .. } = &after {
                        self.stop_waiting(waiter);
                    }
                    return Err(end);
                }
                after = match after {
                    After::ReadOn => break,
                    After::ParseOn => self.parse_input(),
                    After::Close => {
                        self.stream.shutdown().await?;
                        return Err(End::Closed);
                    }
                    After::Block { batch, index, waiter, receiver } => {
                        self.wait(waiter, receiver).await?;
                        self.resume(batch, index + 1)
                    }
                    After::Compute { batch, index, mut computing } => {
                        let finish = self.computed(&mut computing).await?;
                        self.finish_compute(&batch, index, &computing, finish);
                        self.resume(batch, index + 1)
                    }
                    After::Pause { batch, index, until } => {
                        self.sit_out(until).await?;
                        self.resume(batch, index)
                    }
                };
            }
        }
    }

    /// Reads what has come and executes the complete commands in it.
    async fn receive(&mut self) -> Result<After, End> {
        let client = Arc::clone(&self.session.client);
        if std::mem::take(&mut self.pushed) {
            self.deliver_pushed().await?;
        }
        loop {
            let read = {
                let (stream, shared, input, parser) =
                    (&mut self.stream, self.shared, &mut self.input, &self.parser);
                tokio::select! {
                    biased;
                    read = read(stream, shared, input, parser) => Some(read?),
                    () = client.woken() => None,
                }
            };
            match read {
                Some(0) => return Err(End::Closed),
                Some(count) => {
                    client.net_input_bytes.fetch_add(count as u64, Ordering::Relaxed);
                    self.shared.borrow().worker.stats.net_input_bytes.add(count as u64);
                    client.last_interaction_ms.store(now_ms(), Ordering::Relaxed);
                    client.query_bytes.store(self.input.len().max(count), Ordering::Relaxed);
                    client.query_capacity.store(self.input.capacity(), Ordering::Relaxed);
                    if self.input.is_empty() {
                        return Ok(self.execute_read_buf(count));
                    }
                    let limit = self.server.config.current().client_query_buffer_limit;
                    if self.input.len() as u64 > limit {
                        tracing::warn!(client.id, "query buffer limit reached, closing");
                        return Err(End::Closed);
                    }
                    return Ok(self.parse_input());
                }
                None => self.deliver_pushed().await?,
            }
        }
    }

    /// Executes the commands in the first `count` bytes of the worker's read buffer; what is left
    /// of an unfinished one moves to `input`.
    fn execute_read_buf(&mut self, count: usize) -> After {
        let mut shared = self.shared.borrow_mut();
        let Shared { worker, executor, batch, read_buf } = &mut *shared;
        let buf = &mut read_buf[..count];
        let limits = limits_of(worker.config.config(), self.session.authenticated);
        let most = batch_limit(self.session.authenticated);
        let parsed = self.parser.parse(buf, &limits, most, batch);
        let consumed = batch.consumed();
        let progress = executor.run_batch(
            self.server,
            worker,
            &mut self.session,
            buf,
            batch,
            0,
            &mut self.out,
        );
        let full = batch.len() == most;
        match progress {
            Progress::Done => {
                if consumed < count {
                    let wanted = self.parser.wanted().max(count - consumed);
                    self.input.reserve_exact(wanted);
                    self.input.extend_from_slice(&buf[consumed..]);
                }
            }
            // The batch and its bytes wait with the connection.
            Progress::Blocked { .. } | Progress::Computing { .. } | Progress::Paused { .. } => {
                self.input.extend_from_slice(buf);
            }
            Progress::Close => return After::Close,
        }
        let taken =
            if matches!(progress, Progress::Done) { None } else { Some(std::mem::take(batch)) };
        drop(shared);
        self.after(progress, taken, parsed, full)
    }

    /// Executes the complete commands in `input`.
    fn parse_input(&mut self) -> After {
        let mut shared = self.shared.borrow_mut();
        let Shared { worker, executor, batch, .. } = &mut *shared;
        let limits = limits_of(worker.config.config(), self.session.authenticated);
        let most = batch_limit(self.session.authenticated);
        let parsed = self.parser.parse(&mut self.input, &limits, most, batch);
        let progress = executor.run_batch(
            self.server,
            worker,
            &mut self.session,
            &self.input,
            batch,
            0,
            &mut self.out,
        );
        let full = batch.len() == most;
        let taken = match progress {
            Progress::Done => {
                consume(&mut self.input, batch.consumed());
                None
            }
            Progress::Blocked { .. } | Progress::Computing { .. } | Progress::Paused { .. } => {
                Some(std::mem::take(batch))
            }
            Progress::Close => return After::Close,
        };
        drop(shared);
        self.after(progress, taken, parsed, full)
    }

    /// Goes on with a batch that was interrupted before command `index`.
    fn resume(&mut self, batch: Batch, index: usize) -> After {
        let mut shared = self.shared.borrow_mut();
        let Shared { worker, executor, .. } = &mut *shared;
        let (session, out) = (&mut self.session, &mut self.out);
        let progress =
            executor.run_batch(self.server, worker, session, &self.input, &batch, index, out);
        drop(shared);
        if matches!(progress, Progress::Done) {
            consume(&mut self.input, batch.consumed());
            // Whatever came meanwhile stands behind it and has not been looked at.
            return if self.input.is_empty() { After::ReadOn } else { After::ParseOn };
        }
        self.after(progress, Some(batch), Ok(()), false)
    }

    fn after(
        &mut self,
        progress: Progress,
        batch: Option<Batch>,
        parsed: Result<(), ProtocolError>,
        full: bool,
    ) -> After {
        let batch = || batch.expect("an interrupted batch was kept");
        match progress {
            Progress::Blocked { index, waiter, receiver } => {
                *self.session.client.blocked.lock() = Some(Arc::clone(&waiter));
                return After::Block { batch: batch(), index, waiter, receiver };
            }
            Progress::Computing { index, computing } => {
                return After::Compute { batch: batch(), index, computing };
            }
            Progress::Paused { index, until } => {
                return After::Pause { batch: batch(), index, until };
            }
            Progress::Close => return After::Close,
            Progress::Done => {}
        }
        match parsed {
            Err(error) => {
                let mut reply = ReplyWriter::new(&mut self.out, self.session.protocol);
                reply.error(&CommandError::owned(format!("ERR {error}")).to_string());
                After::Close
            }
            Ok(()) if full && !self.input.is_empty() => After::ParseOn,
            Ok(()) => After::ReadOn,
        }
    }

    /// Writes all replies. A client that does not take them is closed when it is killed, or when
    /// more waits for it than `client-output-buffer-limit` allows.
    async fn flush(&mut self) -> Result<(), End> {
        let limit = self.shared.borrow().worker.config.config().client_output_buffer_limit.normal;
        let over = |len: usize, bytes: u64| bytes > 0 && len as u64 > bytes;
        if over(self.out.len(), limit.hard_bytes) {
            tracing::warn!(self.session.client.id, "output buffer limit reached, closing");
            return Err(End::Closed);
        }
        let soft_deadline = over(self.out.len(), limit.soft_bytes)
            .then(|| tokio::time::Instant::now() + Duration::from_secs(limit.soft_seconds));
        while !self.out.is_empty() {
            let client = &self.session.client;
            client.output_bytes.store(self.out.len(), Ordering::Relaxed);
            let written = tokio::select! {
                biased;
                written = write(&mut self.stream, &self.out) => written?,
                () = killed(client, &mut self.pushed) => return Err(End::Closed),
                () = sleep_until(soft_deadline) => return Err(End::Closed),
            };
            if written == 0 {
                return Err(End::Closed);
            }
            client.net_output_bytes.fetch_add(written as u64, Ordering::Relaxed);
            self.shared.borrow().worker.stats.net_output_bytes.add(written as u64);
            self.out.advance(written);
        }
        self.out.clear();
        self.out.shrink_to(KEEP_BYTES);
        self.session.client.output_bytes.store(0, Ordering::Relaxed);
        if self.session.client.is_killed() {
            return Err(End::Closed);
        }
        Ok(())
    }

    /// Sends what other clients have pushed, or ends if one of them killed this one.
    async fn deliver_pushed(&mut self) -> Result<(), End> {
        if self.session.client.is_killed() {
            return Err(End::Closed);
        }
        let pushed = self.session.client.take_pushed();
        if !pushed.is_empty() {
            self.out.push(&pushed);
        }
        self.flush().await
    }

    /// Waits for a key, and replies with what came of it.
    async fn wait(
        &mut self,
        waiter: Arc<BlockedClient>,
        mut receiver: oneshot::Receiver<Wake>,
    ) -> Result<(), End> {
        let client = Arc::clone(&self.session.client);
        let deadline = waiter.block.timeout.map(|timeout| tokio::time::Instant::now() + timeout);
        // Some(wake): somebody else ended the wait. None: its time is over.
        let ended = loop {
            tokio::select! {
                biased;
                wake = &mut receiver => break Ok(wake.ok()),
                () = sleep_until(deadline) => break Ok(None),
                () = client.woken() => {
                    if client.is_killed() {
                        break Err(End::Closed);
                    }
                }
                more = read_more(&mut self.stream, &mut self.input) => match more {
                    Ok(1..) => {}
                    Ok(0) => break Err(End::Closed),
                    Err(error) => break Err(End::Socket(error)),
                },
            }
        };
        self.stop_waiting(&waiter);
        // Whoever ended the wait before it was stopped here may have taken an element for this
        // client. That goes out even if the client is leaving: it may only have closed its half.
        let ended = match (ended, receiver.try_recv()) {
            (Ok(Some(wake)), _) | (Ok(None), Ok(wake)) => Ok(wake),
            (Ok(None), Err(_)) => Ok(Wake::TimedOut),
            (Err(end), late) => Err((end, late.ok())),
        };
        let (wake, end) = match ended {
            Ok(wake) => (Some(wake), Ok(())),
            Err((end, late)) => (late, Err(end)),
        };
        if let Some(wake) = wake {
            let (session, out) = (&mut self.session, &mut self.out);
            let worker = &self.shared.borrow().worker;
            reply_after_wait(self.server, worker, session, &waiter, wake, out);
        }
        if end.is_err() {
            // Best effort: the connection ends for the first reason, not for this one.
            let _ = self.flush().await;
        }
        end
    }

    fn stop_waiting(&self, waiter: &Arc<BlockedClient>) {
        *self.session.client.blocked.lock() = None;
        stop_waiting(self.server, &mut self.shared.borrow_mut().worker, waiter);
    }

    /// Waits for the end of a computation. The end of the input does not stop it: what was asked
    /// for is done, and may yet be read.
    async fn computed(&mut self, computing: &mut Computing) -> Result<Option<Finish>, End> {
        let client = Arc::clone(&self.session.client);
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                finish = computing.done() => return Ok(finish),
                () = client.woken() => {
                    if client.is_killed() {
                        return Err(End::Closed);
                    }
                }
                more = read_more(&mut self.stream, &mut self.input), if open => {
                    open = matches!(more, Ok(1..));
                }
            }
        }
    }

    fn finish_compute(
        &mut self,
        batch: &Batch,
        index: usize,
        computing: &Computing,
        finish: Option<Finish>,
    ) {
        let worker = &mut self.shared.borrow_mut().worker;
        let (session, out) = (&mut self.session, &mut self.out);
        let args = batch.args(index, &self.input);
        finish_compute(self.server, worker, session, &args, computing, finish, out);
    }

    /// Waits for the end of CLIENT PAUSE.
    async fn sit_out(&mut self, until: UnixMs) -> Result<(), End> {
        let client = Arc::clone(&self.session.client);
        let left = u64::try_from(until - now_ms()).unwrap_or(0);
        let deadline = tokio::time::Instant::now() + Duration::from_millis(left);
        loop {
            tokio::select! {
                () = self.server.pause.ended() => return Ok(()),
                () = tokio::time::sleep_until(deadline) => return Ok(()),
                () = client.woken() => {
                    if client.is_killed() {
                        return Err(End::Closed);
                    }
                }
                more = read_more(&mut self.stream, &mut self.input) => match more {
                    Ok(1..) => {}
                    Ok(0) => return Err(End::Closed),
                    Err(error) => return Err(End::Socket(error)),
                },
            }
        }
    }
}

fn limits_of(config: &kiln_command::config::Config, authenticated: bool) -> ParserLimits {
    ParserLimits {
        max_bulk: config.proto_max_bulk_len as i64,
        unauthenticated: !authenticated,
        ..ParserLimits::default()
    }
}

/// AUTH lifts the limits for what comes behind it, so until then commands are taken singly.
fn batch_limit(authenticated: bool) -> usize {
    if authenticated { BATCH_COMMANDS } else { 1 }
}

/// Removes executed bytes from the front, and gives a large buffer back once it is empty.
fn consume(input: &mut Vec<u8>, count: usize) {
    if count < input.len() {
        input.drain(..count);
        return;
    }
    input.clear();
    if input.capacity() > KEEP_BYTES {
        *input = Vec::new();
    }
}

/// Writes some of `out`.
async fn write<S: AsyncWrite + Unpin>(stream: &mut S, out: &ReplyBuf) -> io::Result<usize> {
    let mut chunks = out.chunks();
    if let (Some(only), None) = (chunks.next(), chunks.next()) {
        stream.write(only).await
    } else {
        let mut slices: Vec<IoSlice<'_>> = Vec::new();
        out.io_slices(&mut slices);
        stream.write_vectored(&slices).await
    }
}

/// Waits until the client is killed; notes in `pushed` that it was woken for something else.
async fn killed(client: &Client, pushed: &mut bool) {
    loop {
        client.woken().await;
        if client.is_killed() {
            return;
        }
        *pushed = true;
    }
}

async fn sleep_until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Reads into the worker's buffer, or behind the bytes of an unfinished command.
async fn read<S: AsyncRead + Unpin>(
    stream: &mut S,
    shared: &RefCell<Shared>,
    input: &mut Vec<u8>,
    parser: &Parser,
) -> io::Result<usize> {
    if input.is_empty() {
        return poll_fn(|context| {
            let mut shared = shared.borrow_mut();
            let mut buf = ReadBuf::new(&mut shared.read_buf);
            match Pin::new(&mut *stream).poll_read(context, &mut buf) {
                Poll::Ready(Ok(())) => Poll::Ready(Ok(buf.filled().len())),
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
    }
    let missing = parser.wanted().saturating_sub(input.len());
    input.reserve(missing);
    read_more(stream, input).await
}

/// Reads behind what `input` holds.
async fn read_more<S: AsyncRead + Unpin>(stream: &mut S, input: &mut Vec<u8>) -> io::Result<usize> {
    /// Least room for one read.
    const ROOM: usize = 16 * 1024;
    input.reserve(ROOM);
    tokio::io::AsyncReadExt::read_buf(stream, input).await
}

#[cfg(test)]
mod tests;
