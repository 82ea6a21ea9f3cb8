//! A server as a child process: Kiln or a peer, on a free port, killed on drop.

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::reply::Reply;

/// How long a server may take until it answers PING.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Pause between two attempts to reach a starting server.
const START_POLL: Duration = Duration::from_millis(10);

/// A running server.
pub struct Server {
    child: Child,
    address: String,
    /// Holds its log; gone with it.
    folder: PathBuf,
}

impl Server {
    /// Starts `program` without persistence and waits until it answers PING.
    ///
    /// The command line is the one that Redis, Valkey and Kiln share; `args` follow it.
    pub fn start(program: &Path, args: &[String]) -> io::Result<Self> {
        let port = free_port()?;
        let folder =
            std::env::temp_dir().join(format!("kiln-testkit-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let log = File::create(folder.join("log"))?;
        let child = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .args(args)
            .current_dir(&folder)
            // SORT ALPHA collates by the locale.
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut server = Self { child, address: format!("127.0.0.1:{port}"), folder };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Its `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its process id.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it printed so far.
    pub fn log(&self) -> String {
        fs::read(self.folder.join("log"))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        let give_up_at = Instant::now() + START_TIMEOUT;
        loop {
            let reply =
                Client::connect(&self.address).and_then(|mut client| client.call(&["PING"]));
            if matches!(reply, Ok(Reply::Simple(text)) if text == b"PONG") {
                return Ok(());
            }
            if !self.is_running() || Instant::now() > give_up_at {
                return Err(io::Error::other(format!(
                    "the server does not start:\n{}",
                    self.log()
                )));
            }
            thread::sleep(START_POLL);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A TCP port nobody listens on now.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
