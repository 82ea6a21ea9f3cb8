//! All connected clients: what CLIENT LIST shows, and the handles by which one client reaches
//! another (KILL, UNBLOCK, MONITOR, PAUSE).
//!
//! A connection's worker writes its client's figures with relaxed stores, once for a batch; the
//! texts behind `info` change seldom and are behind a leaf lock.

use std::collections::HashMap;

use kiln_base::clock::{UnixMs, now_ms};
use kiln_base::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use kiln_base::sync::{Arc, Mutex, RwLock};
use tokio::sync::Notify;

use crate::blocking::BlockedClient;
use crate::table::CommandId;

/// Texts and states of a client that change seldom.
#[derive(Clone, Debug, Default)]
pub struct ClientInfo {
    /// CLIENT SETNAME.
    pub name: Vec<u8>,
    /// CLIENT SETINFO lib-name.
    pub lib_name: Vec<u8>,
    /// CLIENT SETINFO lib-ver.
    pub lib_ver: Vec<u8>,
    /// Name of the authenticated user.
    pub user: String,
    /// CLIENT NO-EVICT.
    pub no_evict: bool,
    /// CLIENT NO-TOUCH.
    pub no_touch: bool,
    /// MONITOR.
    pub monitor: bool,
    /// Version of the protocol: 2 or 3.
    pub resp: u8,
    /// Selected database.
    pub db: usize,
    /// Queued commands of an open transaction, -1 without one.
    pub multi: i64,
    /// Memory of those commands.
    pub multi_bytes: usize,
    /// Number of watched keys.
    pub watch: usize,
    /// The transaction must fail: a watched key has changed or a command was refused.
    pub dirty: bool,
}

/// A connected client as others see it.
pub struct Client {
    /// Unique and ascending.
    pub id: u64,
    /// Remote address, or the path of the Unix socket with `:0`.
    pub addr: String,
    /// Local address.
    pub laddr: String,
    /// File descriptor, for CLIENT LIST.
    pub fd: i32,
    /// Whether it came over a Unix socket.
    pub is_unix: bool,
    /// When it connected.
    pub connected_ms: UnixMs,
    /// Index of its worker.
    pub worker: usize,
    /// Texts and seldom changed states.
    pub info: Mutex<ClientInfo>,
    /// When it last sent something.
    pub last_interaction_ms: AtomicI64,
    /// Id of its last command, or `u32::MAX`.
    pub last_command: AtomicU32,
    /// Bytes waiting in its query buffer.
    pub query_bytes: AtomicUsize,
    /// Size of its query buffer.
    pub query_capacity: AtomicUsize,
    /// Bytes waiting in its output buffer.
    pub output_bytes: AtomicUsize,
    /// Bytes read from it.
    pub net_input_bytes: AtomicU64,
    /// Bytes written to it.
    pub net_output_bytes: AtomicU64,
    /// Commands it has run.
    pub commands: AtomicU64,
    /// What it waits for.
    pub blocked: Mutex<Option<Arc<BlockedClient>>>,
    killed: AtomicBool,
    outbox: Mutex<Vec<u8>>,
    wake: Notify,
}

impl Client {
    /// Says that the connection must close.
    pub fn kill(&self) {
        // Release: pairs with the Acquire in `is_killed`; the connection looks after each wake.
        self.killed.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Whether the connection must close.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// Hands bytes to the connection that are no reply to a command of its own.
    pub fn push(&self, bytes: &[u8]) {
        self.outbox.lock().extend_from_slice(bytes);
        self.wake.notify_one();
    }

    /// Takes what others have pushed.
    pub fn take_pushed(&self) -> Vec<u8> {
        std::mem::take(&mut *self.outbox.lock())
    }

    /// Bytes pushed and not yet taken.
    pub fn pushed_bytes(&self) -> usize {
        self.outbox.lock().len()
    }

    /// Waits for [`Client::kill`] or [`Client::push`].
    pub async fn woken(&self) {
        self.wake.notified().await;
    }

    /// The id of its last command.
    pub fn last_command(&self) -> Option<CommandId> {
        u16::try_from(self.last_command.load(Ordering::Relaxed)).ok().map(CommandId)
    }
}

/// Where a connection comes from, to register it.
pub struct Peer {
    /// Remote address.
    pub addr: String,
    /// Local address.
    pub laddr: String,
    /// File descriptor.
    pub fd: i32,
    /// Over a Unix socket.
    pub is_unix: bool,
    /// Index of the worker that serves it.
    pub worker: usize,
}

/// The client table.
#[derive(Default)]
pub struct Clients {
    next_id: AtomicU64,
    all: RwLock<HashMap<u64, Arc<Client>>>,
    monitors: RwLock<Vec<Arc<Client>>>,
    monitor_count: AtomicUsize,
}

impl Clients {
    /// Registers a new connection.
    pub fn add(&self, peer: Peer) -> Arc<Client> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let now = now_ms();
        let client = Arc::new(Client {
            id,
            addr: peer.addr,
            laddr: peer.laddr,
            fd: peer.fd,
            is_unix: peer.is_unix,
            connected_ms: now,
            worker: peer.worker,
            info: Mutex::new(ClientInfo {
                user: "default".to_owned(),
                resp: 2,
                multi: -1,
                ..ClientInfo::default()
            }),
            last_interaction_ms: AtomicI64::new(now),
            last_command: AtomicU32::new(u32::MAX),
            query_bytes: AtomicUsize::new(0),
            query_capacity: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            net_input_bytes: AtomicU64::new(0),
            net_output_bytes: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            blocked: Mutex::new(None),
            killed: AtomicBool::new(false),
            outbox: Mutex::new(Vec::new()),
            wake: Notify::new(),
        });
        self.all.write().insert(id, Arc::clone(&client));
        client
    }

    /// Forgets a closed connection.
    pub fn remove(&self, client: &Client) {
        self.all.write().remove(&client.id);
        self.remove_monitor(client);
    }

    /// The client with this id.
    pub fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.all.read().get(&id).cloned()
    }

    /// Number of connected clients.
    pub fn len(&self) -> usize {
        self.all.read().len()
    }

    /// Whether nobody is connected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All clients, by ascending id.
    pub fn list(&self) -> Vec<Arc<Client>> {
        let mut all: Vec<_> = self.all.read().values().cloned().collect();
        all.sort_unstable_by_key(|client| client.id);
        all
    }

    /// Number of clients that wait.
    pub fn blocked_count(&self) -> usize {
        self.all.read().values().filter(|client| client.blocked.lock().is_some()).count()
    }

    /// Lets `client` see every command.
    pub fn add_monitor(&self, client: &Arc<Client>) {
        let mut monitors = self.monitors.write();
        monitors.push(Arc::clone(client));
        // Relaxed: a command that runs meanwhile may be missed, as if it came before.
        self.monitor_count.store(monitors.len(), Ordering::Relaxed);
    }

    /// Ends that.
    pub fn remove_monitor(&self, client: &Client) {
        if self.has_monitors() {
            let mut monitors = self.monitors.write();
            monitors.retain(|other| other.id != client.id);
            self.monitor_count.store(monitors.len(), Ordering::Relaxed);
        }
    }

    /// Whether anybody looks on; asked for every command.
    #[inline]
    pub fn has_monitors(&self) -> bool {
        self.monitor_count.load(Ordering::Relaxed) > 0
    }

    /// Sends a line to all onlookers; one that has not taken `limit_bytes` (if not 0) is closed.
    pub fn tell_monitors(&self, line: &[u8], limit_bytes: u64) {
        for client in self.monitors.read().iter() {
            client.push(line);
            if limit_bytes > 0 && client.pushed_bytes() as u64 > limit_bytes {
                client.kill();
            }
        }
    }
}

/// CLIENT PAUSE.
#[derive(Default)]
pub struct Pause {
    until_ms: AtomicI64,
    all: AtomicBool,
    over: Notify,
}

impl Pause {
    /// Holds back commands (all, or only writes) until `until`. A pause of writes does not weaken
    /// a longer pause of all.
    pub fn start(&self, until: UnixMs, all: bool) {
        let running = self.until_ms.load(Ordering::Relaxed) > now_ms();
        let all = all || (running && self.all.load(Ordering::Relaxed));
        self.all.store(all, Ordering::Relaxed);
        self.until_ms.fetch_max(until, Ordering::Release);
    }

    /// Lets everybody go on.
    pub fn end(&self) {
        self.until_ms.store(0, Ordering::Release);
        self.over.notify_waiters();
    }

    /// Whether a pause was asked for, though it may be over.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.until_ms.load(Ordering::Relaxed) != 0
    }

    /// Until when a command must wait, if it must; `write` says whether it may change data.
    #[inline]
    pub fn holds(&self, write: bool) -> Option<UnixMs> {
        let until = self.until_ms.load(Ordering::Acquire);
        if until == 0 {
            return None;
        }
        let holds = until > now_ms() && (write || self.all.load(Ordering::Relaxed));
        holds.then_some(until)
    }

    /// Waits for [`Pause::end`]; not at all if it was before this call.
    pub async fn ended(&self) {
        // In this order: an end after the look wakes whoever asked for the word before it.
        let over = self.over.notified();
        if self.state().is_some() {
            over.await;
        }
    }

    /// The end of the running pause and whether it holds reads too.
    pub fn state(&self) -> Option<(UnixMs, bool)> {
        let until = self.until_ms.load(Ordering::Acquire);
        (until > now_ms()).then(|| (until, self.all.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use kiln_base::clock::now_ms;

    use super::Pause;

    #[test]
    fn a_pause_that_ends_before_anybody_waits_holds_nobody() {
        let pause = Pause::default();
        pause.start(now_ms() + 1_000_000, true);
        let mut context = Context::from_waker(Waker::noop());
        let mut early = pin!(pause.ended());
        assert_eq!(early.as_mut().poll(&mut context), Poll::Pending);
        pause.end();
        assert_eq!(early.as_mut().poll(&mut context), Poll::Ready(()));
        // The end came between the refusal of its command and its wait.
        assert_eq!(pin!(pause.ended()).poll(&mut context), Poll::Ready(()));
    }
}
