//! The server's log: one line for each event, to standard output or `logfile`.

use std::fs::OpenOptions;
use std::io;
use std::sync::Mutex;

use kiln_command::config::Config;
use kiln_command::config::value::LogLevel;
use tracing::level_filters::LevelFilter;

/// Sends log events where the configuration says.
pub(crate) fn start(config: &Config) -> io::Result<()> {
    let level = match config.loglevel {
        LogLevel::Debug => LevelFilter::TRACE,
        LogLevel::Verbose => LevelFilter::DEBUG,
        LogLevel::Notice => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Nothing => LevelFilter::OFF,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_target(false);
    if config.logfile.is_empty() {
        builder.with_ansi(io::IsTerminal::is_terminal(&io::stdout())).init();
    } else {
        let file = OpenOptions::new().create(true).append(true).open(&config.logfile)?;
        builder.with_ansi(false).with_writer(Mutex::new(file)).init();
    }
    Ok(())
}
