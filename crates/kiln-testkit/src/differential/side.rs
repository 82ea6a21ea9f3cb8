//! One of the two servers: its process if this test started it, its connections, its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use super::state;
use crate::client::Client;
use crate::generate::{SESSIONS, Step, upper};
use crate::reply::{Reply, pairs};
use crate::server::Server;

/// An iteration that takes more calls than this never ends.
const MOST_CALLS: usize = 100_000;

/// A program to start, or a running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The path of a program.
    Program(PathBuf),
    /// `host:port`. All its data will be deleted.
    Address(String),
}

impl FromStr for Target {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        Ok(match port {
            Some(_) => Self::Address(text.to_owned()),
            None => Self::Program(text.into()),
        })
    }
}

/// A server and the connections to it.
pub(super) struct Side {
    target: Target,
    server_args: Vec<String>,
    server: Option<Server>,
    sessions: Vec<Client>,
    /// Which commands the server knows, as far as it was asked.
    known: BTreeMap<String, bool>,
    /// Whether the current batch reached the server's socket.
    sent: io::Result<()>,
}

/// The replies to a batch, fewer than its steps if the connection was lost.
pub(super) struct Answers {
    pub(super) replies: Vec<Reply>,
    pub(super) lost: Option<io::Error>,
}

impl Side {
    pub(super) fn start(target: &Target, server_args: &[String]) -> io::Result<Self> {
        let mut side = Self {
            target: target.clone(),
            server_args: server_args.to_vec(),
            server: None,
            sessions: Vec::new(),
            known: BTreeMap::new(),
            sent: Ok(()),
        };
        side.revive()?;
        Ok(side)
    }

    /// Whether the process runs, as far as this test knows.
    pub(super) fn is_alive(&mut self) -> bool {
        self.server.as_mut().is_none_or(Server::is_running)
    }

    /// What the server printed, if this test started it.
    pub(super) fn log(&self) -> String {
        self.server.as_ref().map(Server::log).unwrap_or_default()
    }

    /// Whether the server has a command of this name.
    pub(super) fn knows(&mut self, name: &[u8]) -> io::Result<bool> {
        let name = upper(name);
        if let Some(known) = self.known.get(&name) {
            return Ok(*known);
        }
        self.revive()?;
        let reply = self.connect()?.call(&[&name])?;
        let known = !reply.to_string().starts_with("(error) ERR unknown command");
        self.known.insert(name, known);
        Ok(known)
    }

    /// Empties the server, started anew if it has ended, and connects afresh with `protocol`.
    pub(super) fn reset(&mut self, protocol: u8) -> io::Result<()> {
        self.sessions.clear();
        if !self.is_alive() {
            self.server = None;
        }
        self.revive()?;
        for session in 0..SESSIONS {
            let mut client = self.connect()?;
            if session == 0 && client.call(&["FLUSHALL"])?.is_error() {
                // Empty it the hard way.
                self.server = None;
                self.revive()?;
                client = self.connect()?;
            }
            if protocol != 2 {
                client.call(&["HELLO", &protocol.to_string()])?;
            }
            self.sessions.push(client);
        }
        Ok(())
    }

    /// Sends a batch, which is all of one session.
    pub(super) fn send(&mut self, batch: &[Step]) {
        if batch[0].iterate {
            return;
        }
        let client = &mut self.sessions[batch[0].session];
        for step in batch {
            client.push(&step.words);
        }
        self.sent = client.flush();
    }

    /// Collects the replies to the batch sent.
    pub(super) fn receive(&mut self, batch: &[Step]) -> Answers {
        let mut answers = Answers { replies: Vec::with_capacity(batch.len()), lost: None };
        let client = &mut self.sessions[batch[0].session];
        let sent = std::mem::replace(&mut self.sent, Ok(()));
        for step in batch {
            // What was answered before a failed write still counts.
            let reply = if step.iterate { iterate(client, &step.words) } else { client.read() };
            match reply {
                Ok(reply) => answers.replies.push(reply),
                Err(error) => {
                    answers.lost = Some(sent.err().unwrap_or(error));
                    break;
                }
            }
        }
        answers
    }

    /// Everything the server holds.
    pub(super) fn state(&mut self) -> io::Result<Vec<state::Part>> {
        state::read(&mut self.connect()?)
    }

    fn revive(&mut self) -> io::Result<()> {
        if let (Target::Program(program), None) = (&self.target, &self.server) {
            self.server = Some(Server::start(program, &self.server_args)?);
        }
        Ok(())
    }

    fn connect(&self) -> io::Result<Client> {
        Client::connect(match (&self.target, &self.server) {
            (Target::Address(address), _) => address,
            (Target::Program(_), Some(server)) => server.address(),
            (Target::Program(_), None) => unreachable!("`revive` starts the program"),
        })
    }
}

/// Calls SCAN, SSCAN, HSCAN or ZSCAN until its cursor is 0. The reply is all elements in order,
/// each once; if the first call answers anything but a cursor and elements, that.
fn iterate(client: &mut Client, words: &[Vec<u8>]) -> io::Result<Reply> {
    let name = upper(&words[0]);
    let cursor_index = if name == "SCAN" { 1 } else { 2 };
    let no_values = words.iter().any(|word| upper(word) == "NOVALUES");
    let in_pairs = name == "ZSCAN" || (name == "HSCAN" && !no_values);
    let mut words = words.to_vec();
    let mut seen = BTreeSet::new();
    for _ in 0..MOST_CALLS {
        let reply = client.call(&words)?;
        let Some([Reply::Bulk(cursor), Reply::Array(elements)]) = reply.as_elements() else {
            return Ok(reply);
        };
        if in_pairs {
            let both = |(key, value)| Reply::Array(vec![key, value]);
            seen.extend(pairs(elements.clone()).into_iter().map(both));
        } else {
            seen.extend(elements.iter().cloned());
        }
        if cursor == b"0" {
            return Ok(Reply::Array(seen.into_iter().collect()));
        }
        words[cursor_index].clone_from(cursor);
    }
    Err(io::Error::other("the iteration never ends"))
}
