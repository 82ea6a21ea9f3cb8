//! redis.conf and the command line.
//!
//! ```text
//! # comment                     a line that starts with # (after spaces) says nothing
//! maxmemory 100mb               name, then words
//! requirepass "a \"b\" \x00"    words may be quoted: "..." with escapes, '...' with \' only
//! include conf.d/*.conf         the lines of other files, here
//! ```
//!
//! The command line adds lines after those of the file: `--name word word` is `name "word" "word"`.
//!
//! Invariants: nothing here touches a file, all that goes through [`ConfigFiles`]; no input
//! panics; an error says in which line it is.
//!
//! Source: Redis 8.2.3, observed. Left out: modules and Sentinel, which are refused.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::value::Reason;
use super::{Config, Directive};

/// How the configuration reaches files. The server gives the real ones, tests give their own.
pub trait ConfigFiles {
    /// All bytes of the file at `path`.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// All bytes of standard input.
    fn read_stdin(&self) -> io::Result<Vec<u8>>;

    /// The paths that match a shell pattern, sorted; empty if there are none.
    fn matching(&self, pattern: &str) -> io::Result<Vec<PathBuf>>;

    /// The working directory.
    fn current_dir(&self) -> io::Result<PathBuf>;

    /// Makes `path` the working directory and returns its absolute form.
    fn change_dir(&self, path: &Path) -> io::Result<PathBuf>;

    /// Replaces the file at `path`, so that after a crash either the old or the new text is there:
    /// writes a file beside it, forces it to disk, renames it.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
}

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// Run the server.
    Serve(ServeOptions),
    /// `--version` or `-v`: print the version.
    Version,
    /// `--help` or `-h`: print the usage.
    Help,
    /// A service of Redis's binary that Kiln does not offer; holds its option.
    Unsupported(String),
}

/// Where the configuration comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeOptions {
    /// The configuration file, if one is named.
    pub file: Option<PathBuf>,
    /// Whether standard input holds further lines.
    pub stdin: bool,
    /// The options of the command line as lines of a configuration file.
    pub lines: String,
}

/// Why the server cannot start with this configuration. The text is for the console.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A line is wrong.
    #[error(
        "\n*** FATAL CONFIG FILE ERROR (Kiln {version}) ***\n\
         Reading the configuration file, at line {number}\n>>> '{line}'\n{reason}",
        version = env!("CARGO_PKG_VERSION")
    )]
    Line {
        /// The number of the line in its file, from 1.
        number: usize,
        /// The line.
        line: String,
        /// What is wrong with it.
        reason: Reason,
    },
    /// A file cannot be read.
    #[error("Fatal error, can't open config file '{path}': {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
}

/// Files that include files that include files: deeper than any sane setup, shallow for a stack.
const INCLUDE_DEPTH_MAX: usize = 16;

/// Directives that Redis knew once and ignores today.
const IGNORED: [&str; 4] = [
    "io-threads-do-reads",
    "list-max-ziplist-entries",
    "list-max-ziplist-value",
    "lua-replicate-commands",
];

/// Reads the arguments after the program's name.
///
/// A first argument that does not start with `-` names the file. `-` in the first or last place
/// means standard input. `--name` starts an option, unless it comes right after another name: then
/// it is that option's value. `--save` alone, or before another option, means `--save ""`.
pub fn parse_command_line(args: &[String]) -> CommandLine {
    let mut options = ServeOptions::default();
    let mut rest = args;
    if let Some((first, others)) = args.split_first() {
        match first.as_str() {
            "-v" | "--version" => return CommandLine::Version,
            "-h" | "--help" => return CommandLine::Help,
            "--test-memory" | "--check-system" | "--sentinel" => {
                return CommandLine::Unsupported(first.clone());
            }
            file if !file.starts_with('-') => {
                options.file = (!file.is_empty()).then(|| PathBuf::from(file));
                rest = others;
            }
            _ => {}
        }
    }
    let mut name_may_follow = true;
    for (index, arg) in rest.iter().enumerate() {
        let first_of_all = index == 0 && options.file.is_none();
        let next = rest.get(index + 1);
        if arg == "-" && (first_of_all || next.is_none()) {
            options.stdin = true;
            continue;
        }
        let Some(name) = arg.strip_prefix("--").filter(|_| name_may_follow) else {
            options.lines.push_str(&quote(arg.as_bytes()));
            options.lines.push(' ');
            name_may_follow = true;
            continue;
        };
        if !options.lines.is_empty() {
            options.lines.push('\n');
        }
        options.lines.push_str(name);
        options.lines.push(' ');
        // `--port 7000` may be one argument; then the value is already there.
        name_may_follow = split_words(arg.as_bytes()).is_none_or(|words| words.len() != 1);
        if arg.eq_ignore_ascii_case("--save") && next.is_none_or(|next| next.starts_with("--")) {
            options.lines.push_str("\"\"");
            name_may_follow = true;
        }
    }
    CommandLine::Serve(options)
}

/// Reads the configuration that `options` name: the file, standard input, the command line.
pub fn load(options: &ServeOptions, files: &dyn ConfigFiles) -> Result<Config, LoadError> {
    let mut loader =
        Loader { config: Config::default(), files, save_seen: false, include_depth: 0 };
    let mut text = Vec::new();
    if let Some(path) = &options.file {
        text = files.read(path).map_err(|error| cannot_read(path, &error))?;
    }
    if options.stdin {
        let stdin = files.read_stdin().map_err(|error| cannot_read(Path::new("-"), &error))?;
        text.extend_from_slice(&stdin);
    }
    if !options.lines.is_empty() {
        text.push(b'\n');
        text.extend_from_slice(options.lines.as_bytes());
    }
    loader.read_lines(&text)?;
    Ok(loader.config)
}

/// Reads `text` alone, as a configuration file that includes no other.
pub fn load_text(text: &[u8]) -> Result<Config, LoadError> {
    let mut loader =
        Loader { config: Config::default(), files: &NoFiles, save_seen: false, include_depth: 0 };
    loader.read_lines(text)?;
    Ok(loader.config)
}

struct Loader<'a> {
    config: Config,
    files: &'a dyn ConfigFiles,
    /// The first `save` replaces the default; those after it add to it.
    save_seen: bool,
    include_depth: usize,
}

/// What stopped a line: its own fault, or a file that it includes.
enum Stop {
    Line(Reason),
    Included(LoadError),
}

impl<R: Into<Reason>> From<R> for Stop {
    fn from(reason: R) -> Self {
        Self::Line(reason.into())
    }
}

impl Loader<'_> {
    fn read_lines(&mut self, text: &[u8]) -> Result<(), LoadError> {
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.read_line(line).map_err(|stop| match stop {
                Stop::Line(reason) => LoadError::Line {
                    number: index + 1,
                    line: String::from_utf8_lossy(line).into_owned(),
                    reason,
                },
                Stop::Included(error) => error,
            })?;
        }
        Ok(())
    }

    fn read_line(&mut self, line: &[u8]) -> Result<(), Stop> {
        let words = utf8_words(line)?;
        let Some((name, words)) = words.split_first() else { return Ok(()) };
        if let Some((row, _)) = Directive::find(name) {
            // `--save "60 1000"`: several words may come as one argument.
            let inner = match words {
                [all] if row.kind.takes_words() => Some(utf8_words(all.as_bytes())?),
                _ => None,
            };
            // `save ""` is one empty word, not none.
            let words = inner.as_deref().filter(|inner| !inner.is_empty()).unwrap_or(words);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let append = row.name == "save" && std::mem::replace(&mut self.save_seen, true);
            row.assign(&mut self.config, &words, append)?;
            if row.name == "dir" {
                let path = self.files.change_dir(Path::new(&self.config.dir));
                let path = path.map_err(|error| system_text(&error))?;
                self.config.dir = path.to_string_lossy().into_owned();
            }
            return Ok(());
        }
        match (name.to_ascii_lowercase().as_str(), words) {
            ("include", [path]) => self.include(path),
            ("rename-command", [command, name]) => {
                self.config.rename_commands.push((command.clone(), name.clone()));
                Ok(())
            }
            ("user", [_, ..]) => {
                self.config.users.push(words.to_vec());
                Ok(())
            }
            ("loadmodule", [_, ..]) => Err("Kiln loads no modules".into()),
            (name, [_, ..]) if IGNORED.contains(&name) => Ok(()),
            _ => Err("Bad directive or wrong number of arguments".into()),
        }
    }

    fn include(&mut self, pattern: &str) -> Result<(), Stop> {
        if self.include_depth == INCLUDE_DEPTH_MAX {
            return Err("Too many files include each other".into());
        }
        let paths = if pattern.contains(['*', '?', '[']) {
            let paths = self.files.matching(pattern);
            paths.map_err(|error| Stop::Included(cannot_read(Path::new(pattern), &error)))?
        } else {
            vec![PathBuf::from(pattern)]
        };
        for path in paths {
            let text = self.files.read(&path);
            let text = text.map_err(|error| Stop::Included(cannot_read(&path, &error)))?;
            self.include_depth += 1;
            self.read_lines(&text).map_err(Stop::Included)?;
            self.include_depth -= 1;
        }
        Ok(())
    }
}

fn utf8_words(line: &[u8]) -> Result<Vec<String>, Reason> {
    let words = split_words(line).ok_or("Unbalanced quotes in configuration line")?;
    let words: Result<Vec<String>, _> = words.into_iter().map(String::from_utf8).collect();
    words.map_err(|_| "Text must be valid UTF-8".into())
}

/// What the system says about `error`, without its number.
pub(super) fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> LoadError {
    LoadError::File { path: path.to_owned(), reason: system_text(error) }
}

/// For a text that stands alone: there is no other file, and any directory is there.
struct NoFiles;

impl ConfigFiles for NoFiles {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn matching(&self, _: &str) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    fn current_dir(&self) -> io::Result<PathBuf> {
        Ok(PathBuf::from("/"))
    }

    fn change_dir(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn replace(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Cuts a line into words at white space, minding quotes; `None` if a quote does not end, or ends
/// inside a word.
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(words);
        }
        let mut word = Vec::new();
        while let [byte, tail @ ..] = rest {
            rest = tail;
            match byte {
                b'"' => rest = double_quoted(rest, &mut word)?,
                b'\'' => rest = single_quoted(rest, &mut word)?,
                byte if byte.is_ascii_whitespace() => break,
                &byte => {
                    word.push(byte);
                    continue;
                }
            }
            // After a closing quote the word has to end.
            if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                return None;
            }
        }
        words.push(word);
    }
}

/// Appends to `word` up to the closing quote; returns what comes after it.
fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, tail) = match rest {
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex_digit(*high) << 4 | hex_digit(*low), tail)
            }
            [b'\\', b'n', tail @ ..] => (b'\n', tail),
            [b'\\', b'r', tail @ ..] => (b'\r', tail),
            [b'\\', b't', tail @ ..] => (b'\t', tail),
            [b'\\', b'b', tail @ ..] => (0x08, tail),
            [b'\\', b'a', tail @ ..] => (0x07, tail),
            [b'\\', byte, tail @ ..] | [byte, tail @ ..] => (*byte, tail),
            [] => return None,
        };
        word.push(byte);
        rest = tail;
    }
}

/// Appends to `word` up to the closing quote; returns what comes after it.
fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, tail) = match rest {
            [b'\'', tail @ ..] => return Some(tail),
            [b'\\', b'\'', tail @ ..] => (b'\'', tail),
            [byte, tail @ ..] => (*byte, tail),
            [] => return None,
        };
        word.push(byte);
        rest = tail;
    }
}

/// The value of a hexadecimal digit.
fn hex_digit(digit: u8) -> u8 {
    (digit as char).to_digit(16).map_or(0, |value| value as u8)
}

/// `bytes` in double quotes, so that [`split_words`] gives them back as one word.
pub fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' | '"' => text.extend(['\\', character]),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\x07' => text.push_str("\\a"),
                '\x08' => text.push_str("\\b"),
                ' '..='~' => text.push(character),
                _ => push_escaped(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
            }
        }
        push_escaped(chunk.invalid(), &mut text);
    }
    text.push('"');
    text
}

fn push_escaped(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        write!(text, "\\x{byte:02x}").expect("a string takes all text");
    }
}
