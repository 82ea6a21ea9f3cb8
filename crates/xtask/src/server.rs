//! A server under test, as a process of its own on a free port, gone when its handle is.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a server may take to answer its first PING, on a machine busy with a build.
const START_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// A running server. Dropping it kills the process and waits for its end.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    log: PathBuf,
}

impl Server {
    /// Starts `binary` without persistence, in the emptied folder `scratch`, and waits until it
    /// answers.
    pub(crate) fn start(binary: &Path, scratch: &Path) -> Result<Server> {
        if scratch.exists() {
            fs::remove_dir_all(scratch).context("empty the server's folder")?;
        }
        fs::create_dir_all(scratch).context("make the server's folder")?;
        let log = scratch.join("server.log");
        let output = File::create(&log).context("open the server's log")?;
        let port = free_port()?;
        let child = Command::new(binary)
            .args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"])
            .current_dir(scratch)
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("share the server's log")?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("start {}", binary.display()))?;
        let mut server = Server { child, port, log };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        while !answers(self.port) {
            if let Some(status) = self.child.try_wait().context("look after the server")? {
                bail!("the server ends at once with {status}:\n{}", self.log());
            }
            if Instant::now() > deadline {
                bail!("the server does not answer within {START_LIMIT:?}:\n{}", self.log());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Says whether the server survived what it was put through: it still answers, and no thread
    /// of it panicked.
    pub(crate) fn survived(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait().context("look after the server")? {
            bail!("the server ended with {status}:\n{}", self.log());
        }
        if !answers(self.port) {
            bail!("the server no longer answers PING:\n{}", self.log());
        }
        let log = self.log();
        if log.contains("panicked at") {
            bail!("a thread of the server panicked:\n{log}");
        }
        Ok(())
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on at this moment.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("ask for a free port")?;
    Ok(listener.local_addr().context("read the free port")?.port())
}

/// Whether a server on `port` answers PING.
fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut reply = [0; 7];
    stream.set_read_timeout(Some(Duration::from_secs(5))).is_ok()
        && stream.write_all(b"PING\r\n").is_ok()
        && stream.read_exact(&mut reply).is_ok()
        && &reply == b"+PONG\r\n"
}
