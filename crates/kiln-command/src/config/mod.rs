//! The configuration: redis.conf, the command line, `CONFIG GET`, `SET` and `REWRITE`.
//!
//! ```text
//! argv ─► parse ─► Config ─► ConfigStore ─► a snapshot per worker (ConfigReader)
//! file ─┘            ▲            ▲
//!                  table     CONFIG SET: check all, let the server apply, publish
//! ```
//!
//! [`table`] holds every directive once; all else is derived from its rows. A [`Config`] is a
//! plain value: `CONFIG SET` changes a copy and publishes it, so that a reader sees all of a change
//! or none of it.
//!
//! Invariants: a published configuration has passed every check of its rows; a refused `CONFIG SET`
//! changes nothing; files are reached through [`ConfigFiles`] only.
//!
//! Left out: what a change does to the server (listeners, directories), which the caller's `apply`
//! does between check and publication; the access control list, whose `user` lines are only kept.
//!
//! Source: Redis 8.2.3, observed; the golden replies of group `config`.

pub mod parse;
pub mod rewrite;
pub mod table;
pub mod value;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use kiln_base::glob::glob_match;
use kiln_base::sync::Mutex;
use kiln_base::sync::atomic::{AtomicU64, Ordering};

pub use parse::{CommandLine, ConfigFiles, LoadError, ServeOptions};
pub use table::{Config, DIRECTIVES, Directive, Mutability};
pub use value::Reason;

/// Why a CONFIG command failed. The text is the reply after `ERR `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// `CONFIG SET` of a name that no directive has.
    #[error("Unknown option or number of arguments for CONFIG SET - '{0}'")]
    Unknown(String),
    /// `CONFIG SET` of a value that its directive refuses.
    #[error("CONFIG SET failed (possibly related to argument '{name}') - {reason}")]
    Refused {
        /// The directive, by the name that the client used, as the table spells it.
        name: &'static str,
        /// What is wrong.
        reason: Reason,
    },
    /// `CONFIG REWRITE` of a server that was started without a file.
    #[error("The server is running without a config file")]
    NoFile,
    /// `CONFIG REWRITE` could not read or replace the file.
    #[error("Rewriting config file: {0}")]
    Rewrite(String),
}

/// What a `CONFIG SET` has changed.
#[derive(Debug)]
pub struct Changed {
    /// The configuration that now holds.
    pub config: Arc<Config>,
    /// The directives that were set, by the names of their rows.
    pub names: Vec<&'static str>,
}

/// The configuration of the running server.
#[derive(Debug)]
pub struct ConfigStore {
    current: ArcSwap<Config>,
    /// Counts publications, so that a reader learns with one load that there is nothing new.
    generation: AtomicU64,
    /// Held by those who change: a change starts from the last one.
    changing: Mutex<()>,
    file: Option<PathBuf>,
}

impl ConfigStore {
    /// Starts with `config`, which came from `file`. The path must be absolute: the working
    /// directory may change.
    pub fn new(config: Config, file: Option<PathBuf>) -> Self {
        Self {
            current: ArcSwap::from_pointee(config),
            generation: AtomicU64::new(0),
            changing: Mutex::new(()),
            file,
        }
    }

    /// Loads what `options` name and makes the paths in it absolute.
    pub fn load(options: &ServeOptions, files: &dyn ConfigFiles) -> Result<Self, LoadError> {
        let start_dir = current_dir(files)?;
        let mut config = parse::load(options, files)?;
        if config.dir.is_empty() {
            config.dir = start_dir.to_string_lossy().into_owned();
        }
        let file = options.file.as_ref().map(|path| start_dir.join(path));
        Ok(Self::new(config, file))
    }

    /// The configuration as it is now.
    pub fn current(&self) -> Arc<Config> {
        self.current.load_full()
    }

    /// Counts up with every change.
    #[inline]
    pub fn generation(&self) -> u64 {
        // Pairs with the release in `publish`: who sees the new count sees the new configuration.
        self.generation.load(Ordering::Acquire)
    }

    /// The absolute path of the configuration file, for INFO and REWRITE.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// `CONFIG GET`: names and values of the directives that match any of `patterns`, each once.
    ///
    /// A pattern without `*`, `?` and `[` is a name; it comes back as the client spelled it, and
    /// may name a hidden directive.
    pub fn get(&self, patterns: &[&[u8]]) -> Vec<(String, String)> {
        let config = self.current.load();
        let mut found: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, row: &Directive| {
            if !found.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                found.push((name.to_owned(), row.text(&config)));
            }
        };
        for pattern in patterns {
            let text = String::from_utf8_lossy(pattern);
            if !text.contains(['*', '?', '[']) {
                if let Some((row, _)) = Directive::find(&text) {
                    add(&text, row);
                }
                continue;
            }
            for row in DIRECTIVES.iter().filter(|row| !row.access.hidden) {
                for name in row.names() {
                    if glob_match(pattern, name.as_bytes(), true) {
                        add(name, row);
                    }
                }
            }
        }
        found
    }

    /// `CONFIG SET`: sets all of `pairs` or none.
    ///
    /// `local` says whether the client is on this machine, for protected directives. Once all
    /// values are checked, `apply` may do what the change takes (listen on a port, change the
    /// directory) and may refuse, or adjust the new configuration; then it is published.
    ///
    /// # Errors
    ///
    /// In this order: for each pair, that no directive has the name, that it is immutable, that it
    /// is protected, that it stands twice; for each pair, that the value is refused; what `apply`
    /// says.
    pub fn set(
        &self,
        pairs: &[(&[u8], &[u8])],
        local: bool,
        apply: impl FnOnce(&Config, &mut Config, &[&'static str]) -> Result<(), ConfigError>,
    ) -> Result<Changed, ConfigError> {
        let _changing = self.changing.lock();
        let old = self.current();
        let rows = check_names(pairs, &old, local)?;

        let mut new = Config::clone(&old);
        let mut names = Vec::with_capacity(rows.len());
        for ((row, name), (_, value)) in rows.into_iter().zip(pairs) {
            let refused = |reason| ConfigError::Refused { name, reason };
            let value = str::from_utf8(value);
            let value = value.map_err(|_| refused("argument must be valid UTF-8".into()))?;
            row.assign(&mut new, &words_of(row, value), false).map_err(refused)?;
            names.push(row.name);
        }
        apply(&old, &mut new, &names)?;
        Ok(Changed { config: self.publish(new), names })
    }

    /// Changes the configuration from within: `REPLICAOF`, or a start that fills in what the file
    /// left open.
    pub fn update(&self, change: impl FnOnce(&mut Config)) -> Arc<Config> {
        let _changing = self.changing.lock();
        let mut new = Config::clone(&self.current());
        change(&mut new);
        self.publish(new)
    }

    /// `CONFIG REWRITE`: brings the file up to date. `users` are the lines of the access control
    /// list, or none if they live in a file of their own.
    pub fn rewrite(&self, files: &dyn ConfigFiles, users: &[String]) -> Result<(), ConfigError> {
        let path = self.file.as_deref().ok_or(ConfigError::NoFile)?;
        let failed = |error: io::Error| ConfigError::Rewrite(parse::system_text(&error));
        // Two rewrites at once would write over each other's work.
        let _changing = self.changing.lock();
        let old = match files.read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        let old = String::from_utf8(old)
            .map_err(|_| ConfigError::Rewrite("the file is not valid UTF-8".to_owned()))?;
        let new = rewrite::rewrite(&old, &self.current(), users);
        files.replace(path, new.as_bytes()).map_err(failed)
    }

    /// Makes `config` the current one. Called with `changing` held.
    fn publish(&self, config: Config) -> Arc<Config> {
        let config = Arc::new(config);
        self.current.store(Arc::clone(&config));
        // Pairs with the acquire in `generation`.
        self.generation.fetch_add(1, Ordering::Release);
        config
    }
}

/// A worker's snapshot of the configuration: one atomic load tells that it is still good.
#[derive(Clone, Debug)]
pub struct ConfigReader {
    config: Arc<Config>,
    generation: u64,
}

impl ConfigReader {
    /// A snapshot of `store` as it is now.
    pub fn new(store: &ConfigStore) -> Self {
        // The count first: a change in between then shows as one at the next refresh.
        let generation = store.generation();
        Self { config: store.current(), generation }
    }

    /// Takes a new snapshot if there is one; says whether there was.
    #[inline]
    pub fn refresh(&mut self, store: &ConfigStore) -> bool {
        let stale = store.generation() != self.generation;
        if stale {
            *self = Self::new(store);
        }
        stale
    }

    /// The configuration of the last refresh.
    #[inline]
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }
}

/// A row, and the name by which a client asked for it.
type Named = (&'static Directive, &'static str);

fn check_names(
    pairs: &[(&[u8], &[u8])],
    config: &Config,
    local: bool,
) -> Result<Vec<Named>, ConfigError> {
    let mut rows: Vec<Named> = Vec::with_capacity(pairs.len());
    for (name, _) in pairs {
        let name = String::from_utf8_lossy(name);
        let unknown = || ConfigError::Unknown(name.clone().into_owned());
        let (row, name) = Directive::find(&name).ok_or_else(unknown)?;
        let refused = |reason| Err(ConfigError::Refused { name, reason: Cow::Borrowed(reason) });
        match row.access.mutability {
            Mutability::Immutable => return refused("can't set immutable config"),
            Mutability::Protected if !may_set_protected(config, local) => {
                return refused("can't set protected config");
            }
            Mutability::Live | Mutability::Protected => {}
        }
        // An alias beside the name is no duplicate in Redis; the last one holds.
        if rows.iter().any(|(_, known)| *known == name) {
            return refused("duplicate parameter");
        }
        rows.push((row, name));
    }
    Ok(rows)
}

fn may_set_protected(config: &Config, local: bool) -> bool {
    match config.enable_protected_configs {
        value::LocalAccess::Yes => true,
        value::LocalAccess::Local => local,
        value::LocalAccess::No => false,
    }
}

/// `CONFIG SET` has the words of a directive in one argument, with one space between two.
fn words_of<'a>(row: &Directive, value: &'a str) -> Vec<&'a str> {
    if !row.kind.takes_words() {
        vec![value]
    } else if value.is_empty() {
        Vec::new()
    } else {
        value.split(' ').collect()
    }
}

fn current_dir(files: &dyn ConfigFiles) -> Result<PathBuf, LoadError> {
    files.current_dir().map_err(|error| LoadError::File {
        path: PathBuf::from("."),
        reason: parse::system_text(&error),
    })
}
