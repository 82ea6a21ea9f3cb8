//! Listening sockets, and which worker gets a new connection.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdTcpListener, TcpStream as StdTcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kiln_base::sync::atomic::Ordering;
use kiln_command::Server;
use kiln_command::clients::Peer;
use kiln_command::config::Config;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, UnixListener};

use crate::worker::{NewConnection, Stream, Workers};

const PROTECTED: &str = "-DENIED Kiln runs in protected mode: it has no password and answers only to clients on the \
     same machine. Set a password (requirepass), or bind it to private addresses and turn \
     protected-mode off.\r\n";
const FULL: &str = "-ERR max number of clients reached\r\n";

/// Why a socket could not be opened.
#[derive(Debug)]
pub struct ListenError {
    /// Address or path.
    pub address: String,
    /// What the system said.
    pub source: io::Error,
}

impl std::fmt::Display for ListenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "listen on {}: {}", self.address, self.source)
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Open listening sockets.
#[derive(Debug)]
pub struct Listeners {
    tcp: Vec<StdTcpListener>,
    unix: Option<(StdUnixListener, PathBuf)>,
}

impl Listeners {
    /// Where TCP clients can connect.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.tcp.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }
}

/// Opens the sockets that the configuration names. An address with a leading `-` may be missing.
///
/// # Errors
///
/// The first address that cannot be listened on.
pub fn listen(config: &Config) -> Result<Listeners, ListenError> {
    let mut tcp = Vec::new();
    if config.port != 0 {
        for name in &config.bind.0 {
            let (name, optional) = match name.strip_prefix('-') {
                Some(rest) => (rest, true),
                None => (name.as_str(), false),
            };
            for ip in addresses_of(name) {
                match listen_tcp(SocketAddr::new(ip, config.port), config.tcp_backlog) {
                    Ok(listener) => tcp.push(listener),
                    Err(error) if optional || is_unsupported(&error) => {
                        tracing::debug!(%ip, %error, "optional address is not available");
                    }
                    Err(source) => {
                        return Err(ListenError {
                            address: format!("{name}:{}", config.port),
                            source,
                        });
                    }
                }
            }
        }
    }
    let unix = if config.unixsocket.is_empty() {
        None
    } else {
        let path = PathBuf::from(&config.unixsocket);
        let listener = listen_unix(&path, config.unixsocketperm)
            .map_err(|source| ListenError { address: config.unixsocket.clone(), source })?;
        Some((listener, path))
    };
    Ok(Listeners { tcp, unix })
}

fn is_unsupported(error: &io::Error) -> bool {
    // EAFNOSUPPORT: a machine without IPv6, where `*` still means all IPv4 addresses.
    error.raw_os_error() == Some(97)
}

fn addresses_of(name: &str) -> Vec<IpAddr> {
    match name {
        "*" => vec![IpAddr::from([0; 4])],
        "::*" => vec![IpAddr::from([0; 16])],
        _ => match name.parse() {
            Ok(ip) => vec![ip],
            Err(_) => std::net::ToSocketAddrs::to_socket_addrs(&(name, 0))
                .map(|found| found.map(|address| address.ip()).collect())
                .unwrap_or_default(),
        },
    }
}

fn listen_tcp(address: SocketAddr, backlog: u32) -> io::Result<StdTcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn listen_unix(path: &Path, permissions: u32) -> io::Result<StdUnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = StdUnixListener::bind(path)?;
    if permissions != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(permissions))?;
    }
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts connections until the server stops. Must run inside a tokio runtime.
///
/// # Errors
///
/// If the runtime refuses a listener.
pub(crate) async fn accept(
    server: Arc<Server>,
    workers: Arc<Workers>,
    listeners: Listeners,
) -> io::Result<()> {
    for listener in listeners.tcp {
        let listener = TcpListener::from_std(listener)?;
        let (server, workers) = (Arc::clone(&server), Arc::clone(&workers));
        tokio::task::spawn_local(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        if let Ok(stream) = stream.into_std() {
                            accept_tcp(&server, &workers, stream, peer);
                        }
                    }
                    Err(error) => pause_after(&error).await,
                }
            }
        });
    }
    let mut socket_path = None;
    if let Some((listener, path)) = listeners.unix {
        let listener = UnixListener::from_std(listener)?;
        socket_path = Some(path.clone());
        let (server, workers) = (Arc::clone(&server), Arc::clone(&workers));
        tokio::task::spawn_local(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        if let Ok(stream) = stream.into_std() {
                            accept_unix(&server, &workers, stream, &path);
                        }
                    }
                    Err(error) => pause_after(&error).await,
                }
            }
        });
    }
    server.shutdown.requested().await;
    if let Some(path) = socket_path {
        drop(std::fs::remove_file(path));
    }
    Ok(())
}

/// Waits a little when the system is short of file descriptors, so that the loop does not spin.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "accept a connection");
    tokio::time::sleep(Duration::from_millis(10)).await;
}

fn accept_tcp(server: &Server, workers: &Workers, stream: StdTcpStream, peer: SocketAddr) {
    let config = server.config.current();
    let exposed = config.protected_mode && config.requirepass.is_empty();
    if exposed && !peer.ip().to_canonical().is_loopback() {
        return refuse(server, stream, PROTECTED);
    }
    if is_full(server, &config) {
        return refuse(server, stream, FULL);
    }
    // Options that fail leave a connection that is a little slower or longer idle: no reason to
    // turn the client away.
    drop(stream.set_nodelay(true));
    if config.tcp_keepalive > 0 {
        let keepalive = Duration::from_secs(u64::from(config.tcp_keepalive));
        let probes =
            TcpKeepalive::new().with_time(keepalive).with_interval(keepalive / 3).with_retries(3);
        drop(SockRef::from(&stream).set_tcp_keepalive(&probes));
    }
    let laddr = stream.local_addr().map_or_else(|_| String::new(), |addr| addr.to_string());
    let worker = workers.least_loaded(server);
    let fd = stream.as_raw_fd();
    let peer = Peer { addr: peer.to_string(), laddr, fd, is_unix: false, worker };
    let client = server.clients.add(peer);
    workers.send(worker, NewConnection { stream: Stream::Tcp(stream), client });
}

fn accept_unix(server: &Server, workers: &Workers, stream: StdUnixStream, path: &Path) {
    let config = server.config.current();
    if is_full(server, &config) {
        return refuse(server, stream, FULL);
    }
    let addr = format!("{}:0", path.display());
    let worker = workers.least_loaded(server);
    let fd = stream.as_raw_fd();
    let peer = Peer { addr: addr.clone(), laddr: addr, fd, is_unix: true, worker };
    let client = server.clients.add(peer);
    workers.send(worker, NewConnection { stream: Stream::Unix(stream), client });
}

fn is_full(server: &Server, config: &Config) -> bool {
    server.clients.len() >= config.maxclients as usize
}

fn refuse(server: &Server, mut stream: impl io::Write, text: &str) {
    server.rejected_connections.fetch_add(1, Ordering::Relaxed);
    // Best effort, and never waiting: the socket is non-blocking.
    drop(stream.write_all(text.as_bytes()));
}
