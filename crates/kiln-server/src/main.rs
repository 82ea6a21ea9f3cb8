//! The Kiln server: reads the configuration, joins the command families, starts the workers and
//! waits for the word to stop.

mod allocator;
mod files;
mod host;
mod log;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kiln_base::sync::atomic::Ordering;
use kiln_command::config::{CommandLine, Config, ConfigStore, parse};
use kiln_command::{CommandTable, Host as _, Server, ServerOptions};
use tokio::signal::unix::{SignalKind, signal};

/// How long connections may take to end after the word to stop.
const GRACE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "--print-command-docs") {
        say(&kiln_redis::command_docs(&command_table()));
        return Ok(ExitCode::SUCCESS);
    }
    let options = match parse::parse_command_line(&args) {
        CommandLine::Serve(options) => options,
        CommandLine::Version => {
            say(&format!("Kiln server v={}\n", env!("CARGO_PKG_VERSION")));
            return Ok(ExitCode::SUCCESS);
        }
        CommandLine::Help => {
            say(USAGE);
            return Ok(ExitCode::SUCCESS);
        }
        CommandLine::Unsupported(option) => anyhow::bail!("Kiln does not offer {option}"),
    };
    let store = ConfigStore::load(&options, &files::SystemFiles)?;
    let config = store.current();
    log::start(&config).context("open the log")?;
    serve(store, &config)?;
    Ok(ExitCode::SUCCESS)
}

const USAGE: &str = "\
Usage: kiln-server [/path/to/kiln.conf] [--directive value ...] [-]
       kiln-server --version
       kiln-server --help

The file and the directives are those of redis.conf; `-` reads further lines from standard input.
Without any, Kiln listens on 127.0.0.1:6379 and uses every core.

Examples:
       kiln-server --port 7777 --threads 4
       kiln-server /etc/kiln.conf --loglevel verbose
       echo 'maxmemory 128mb' | kiln-server -
";

fn command_table() -> CommandTable {
    CommandTable::new(&[kiln_redis::families(), kiln_search::families()].concat())
}

fn serve(store: ConfigStore, config: &Config) -> Result<()> {
    let workers = match config.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads as usize,
    };
    let (wanted, host) = (config.maxclients, host::System);
    if let Err(possible) = host.allow_clients(wanted) {
        tracing::warn!(wanted, possible, "the limit of open files is below maxclients");
    }
    let mut commands = command_table();
    for (old, new) in &config.rename_commands {
        anyhow::ensure!(commands.rename(old, new), "No such command in rename-command: {old}");
    }
    let options = ServerOptions {
        version: env!("CARGO_PKG_VERSION"),
        executable: std::env::current_exe().unwrap_or_default(),
        workers,
        allocator: allocator::NAME,
    };
    let listeners = kiln_net::listen(config)?;
    let addresses = listeners.addresses();
    let mut server = Server::new(commands, store, options, random_hex()?);
    server.files = Some(Box::new(files::SystemFiles));
    server.host = Some(Arc::new(host));
    let server = Arc::new(server);
    server.start_reclaimer().context("start the reclaimer")?;

    // Signals are taken from here on, so that one sent right after the start is not lost.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let threads = kiln_net::start_workers(&server, listeners, random_seed()?)?;
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(version, workers, ?addresses, "ready to accept connections");
    runtime.block_on(wait_for_end(&server))?;
    tracing::info!("stopping");
    server.shutdown.request();
    let deadline = std::time::Instant::now() + GRACE;
    while threads.iter().any(|thread| !thread.is_finished()) && std::time::Instant::now() < deadline
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    if !config.pidfile.is_empty() {
        drop(std::fs::remove_file(&config.pidfile));
    }
    tracing::info!(
        connections = server.total(|stats| stats.connections.load(Ordering::Relaxed)),
        "bye"
    );
    Ok(())
}

/// Waits for SIGTERM, SIGINT or SHUTDOWN.
async fn wait_for_end(server: &Server) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => tracing::info!("received SIGTERM"),
        _ = interrupt.recv() => tracing::info!("received SIGINT"),
        () = server.shutdown.requested() => tracing::info!("a client asked for SHUTDOWN"),
    }
    Ok(())
}

fn random_seed() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("draw a seed: {error}"))?;
    Ok(u64::from_ne_bytes(bytes))
}

fn random_hex() -> Result<String> {
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("draw a run id: {error}"))?;
    Ok(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect())
}

fn hex_digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).expect("half a byte is one digit")
}

/// Writes to standard output, for what a person asked to see.
#[expect(clippy::print_stdout, reason = "answers to --help and its like belong on stdout")]
fn say(text: &str) {
    print!("{text}");
}
