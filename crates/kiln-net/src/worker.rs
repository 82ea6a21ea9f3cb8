//! Worker threads: a single-threaded runtime each, with its connections and its home shards.

use std::cell::RefCell;
use std::io;
use std::net::TcpStream as StdTcpStream;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kiln_base::clock::{now_ms, now_us};
use kiln_base::sync::atomic::Ordering;
use kiln_command::clients::Client;
use kiln_command::{Executor, Server, Worker, sweep_shard};
use kiln_keyspace::{SHARD_COUNT, ShardId};
use kiln_resp::Batch;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc;

use crate::acceptor::{Listeners, accept};
use crate::connection;

/// Size of the buffer that all connections of a worker read into.
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// How often a worker looks after its home shards.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
/// Keys that a sweep removes under one hold of a shard: below 100 µs of work.
const SWEEP_KEYS: usize = 64;
/// How long a worker sweeps before it lets its connections run.
const SWEEP_SLICE: Duration = Duration::from_micros(500);

/// A connection's socket before it belongs to a runtime.
pub(crate) enum Stream {
    Tcp(StdTcpStream),
    Unix(StdUnixStream),
}

/// A connection on its way to its worker.
pub(crate) struct NewConnection {
    pub(crate) stream: Stream,
    pub(crate) client: Arc<Client>,
}

/// What the tasks of one worker share. Borrowed only between two awaits.
pub(crate) struct Shared {
    pub(crate) worker: Worker,
    pub(crate) executor: Executor,
    pub(crate) batch: Batch,
    pub(crate) read_buf: Box<[u8]>,
}

/// The mailboxes of the workers.
pub struct Workers {
    mailboxes: Vec<mpsc::UnboundedSender<NewConnection>>,
}

impl Workers {
    /// The worker with the fewest connections.
    pub(crate) fn least_loaded(&self, server: &Server) -> usize {
        let load = |index: &usize| server.stats[*index].connections.load(Ordering::Relaxed);
        (0..self.mailboxes.len()).min_by_key(load).unwrap_or(0)
    }

    pub(crate) fn send(&self, worker: usize, connection: NewConnection) {
        // Counted here, not by the worker, so that a burst is spread before anybody wakes.
        let stats = self.mailboxes.get(worker).map(|mailbox| mailbox.send(connection));
        debug_assert!(stats.is_some(), "the acceptor picks among the mailboxes");
    }
}

/// Starts the workers and the acceptor; each thread ends when the server stops.
///
/// # Errors
///
/// If a thread or a runtime cannot be made.
pub fn start_workers(
    server: &Arc<Server>,
    listeners: Listeners,
    seed: u64,
) -> io::Result<Vec<JoinHandle<()>>> {
    let mut mailboxes = Vec::new();
    let mut threads = Vec::new();
    for index in 0..server.stats.len() {
        let (sender, receiver) = mpsc::unbounded_channel();
        mailboxes.push(sender);
        let server = Arc::clone(server);
        threads.push(spawn(format!("kiln-worker-{index}"), async move || {
            run_worker(server, index, seed, receiver).await;
        })?);
    }
    let workers = Arc::new(Workers { mailboxes });
    let server = Arc::clone(server);
    threads.push(spawn("kiln-accept".to_owned(), async move || {
        if let Err(error) = accept(server, workers, listeners).await {
            tracing::error!(%error, "accept connections");
        }
    })?);
    Ok(threads)
}

fn spawn(name: String, body: impl AsyncFnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(move || {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        match runtime {
            Ok(runtime) => runtime.block_on(body()),
            Err(error) => tracing::error!(%error, "start a runtime"),
        }
    })
}

async fn run_worker(
    server: Arc<Server>,
    index: usize,
    seed: u64,
    mut mailbox: mpsc::UnboundedReceiver<NewConnection>,
) {
    let shared = Rc::new(RefCell::new(Shared {
        worker: Worker::new(&server, index, seed),
        executor: Executor::default(),
        batch: Batch::default(),
        read_buf: vec![0; READ_BUFFER_BYTES].into(),
    }));
    tokio::task::spawn_local(keep_house(Arc::clone(&server), Rc::clone(&shared), index));
    loop {
        let connection = tokio::select! {
            connection = mailbox.recv() => connection,
            () = server.shutdown.requested() => None,
        };
        let Some(NewConnection { stream, client }) = connection else { break };
        let stats = &server.stats[index];
        stats.connections_received.add(1);
        stats.connections.fetch_add(1, Ordering::Relaxed);
        let (server, shared) = (Arc::clone(&server), Rc::clone(&shared));
        tokio::task::spawn_local(async move {
            match stream {
                Stream::Tcp(stream) => match TcpStream::from_std(stream) {
                    Ok(stream) => connection::serve(&server, &shared, stream, &client).await,
                    Err(error) => tracing::warn!(%error, "take over a connection"),
                },
                Stream::Unix(stream) => match UnixStream::from_std(stream) {
                    Ok(stream) => connection::serve(&server, &shared, stream, &client).await,
                    Err(error) => tracing::warn!(%error, "take over a connection"),
                },
            }
            server.clients.remove(&client);
            server.stats[index].connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// The home worker's chores: active expiry of its shards, and idle clients.
async fn keep_house(server: Arc<Server>, shared: Rc<RefCell<Shared>>, index: usize) {
    let workers = server.stats.len();
    let mut timer = tokio::time::interval(HOUSEKEEPING);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        timer.tick().await;
        close_idle_clients(&server, index);
        if index == 0 {
            sample_rates(&server);
        }
        shared.borrow_mut().worker.watch.calibrate();
        if !server.active_expire.load(Ordering::Relaxed) || server.pause.holds(true).is_some() {
            continue;
        }
        let mut slice = Instant::now();
        for shard in (index..SHARD_COUNT).step_by(workers).map(ShardId::new) {
            loop {
                let more = sweep_shard(&server, &mut shared.borrow_mut().worker, shard, SWEEP_KEYS);
                if slice.elapsed() > SWEEP_SLICE {
                    tokio::task::yield_now().await;
                    slice = Instant::now();
                }
                if !more {
                    break;
                }
            }
        }
    }
}

fn sample_rates(server: &Server) {
    server.rates.sample(
        now_us(),
        [
            server.total(|stats| stats.commands_processed.get()),
            server.total(|stats| stats.net_input_bytes.get()),
            server.total(|stats| stats.net_output_bytes.get()),
        ],
    );
}

fn close_idle_clients(server: &Server, index: usize) {
    let timeout_s = server.config.current().timeout;
    if timeout_s == 0 {
        return;
    }
    let latest = now_ms() - i64::from(timeout_s) * 1_000;
    for client in server.clients.list() {
        let idle = client.last_interaction_ms.load(Ordering::Relaxed) < latest;
        let exempt = client.blocked.lock().is_some() || client.info.lock().monitor;
        if client.worker == index && idle && !exempt {
            client.kill();
        }
    }
}
