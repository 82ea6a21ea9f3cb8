//! A server in the test's own process, for the families' tests: commands as a person types them,
//! replies as redis-cli prints them.

use std::sync::Arc;

use kiln_command::clients::Peer;
use kiln_command::config::{Config, ConfigStore};
use kiln_command::{
    CommandSpec, CommandTable, Executor, Progress, ReplyBuf, Server, ServerOptions, Session,
    Worker, finish_compute,
};
use kiln_resp::{Batch, Parser, ParserLimits};

use crate::reply::Reply;
use crate::script;

/// A server with a worker that has one client. Others of [`TestServer::several`] share the server.
pub struct TestServer {
    server: Arc<Server>,
    worker: Worker,
    session: Session,
    executor: Executor,
}

impl TestServer {
    /// An empty server with these commands.
    pub fn new(families: &[&'static [CommandSpec]]) -> Self {
        let server = server(families, ServerOptions::default());
        Self::worker(&server, 0)
    }

    /// Workers, each with a client, of one empty server with these commands and Redis's own.
    pub fn several(families: &[&'static [CommandSpec]], workers: usize) -> Vec<Self> {
        let families = [families, &kiln_redis::families()].concat();
        let server = server(&families, ServerOptions { workers, ..ServerOptions::default() });
        (0..workers).map(|index| Self::worker(&server, index)).collect()
    }

    fn worker(server: &Arc<Server>, index: usize) -> Self {
        let peer = Peer {
            addr: "127.0.0.1:1".to_owned(),
            laddr: "127.0.0.1:6379".to_owned(),
            fd: 0,
            is_unix: false,
            worker: index,
        };
        let session = Session::new(server.clients.add(peer), true);
        let worker = Worker::new(server, index, 42);
        Self { server: Arc::clone(server), worker, session, executor: Executor::default() }
    }

    /// Runs one command and returns its reply, `(waiting)` if it waits.
    pub fn reply(&mut self, words: &[Vec<u8>]) -> Reply {
        let bytes = self.run(words);
        if bytes.is_empty() {
            return Reply::Simple(b"(waiting)".to_vec());
        }
        Reply::parse_all(&bytes)
    }

    /// Runs one command and returns the bytes of its reply; none if it waits.
    pub fn run(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let mut buf = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            buf.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            buf.extend_from_slice(word);
            buf.extend_from_slice(b"\r\n");
        }
        let mut batch = Batch::default();
        let parsed = Parser::default().parse(&mut buf, &ParserLimits::default(), 1, &mut batch);
        parsed.expect("a well-formed command");
        let mut out = ReplyBuf::default();
        let Self { server, worker, session, executor } = self;
        match executor.run_batch(server, worker, session, &buf, &batch, 0, &mut out) {
            Progress::Done | Progress::Close => {}
            Progress::Computing { mut computing, .. } => {
                let finish = computing.wait();
                let args = batch.args(0, &buf);
                finish_compute(server, worker, session, &args, &computing, finish, &mut out);
            }
            Progress::Blocked { .. } | Progress::Paused { .. } => return Vec::new(),
        }
        out.chunks().flatten().copied().collect()
    }
}

fn server(families: &[&'static [CommandSpec]], options: ServerOptions) -> Arc<Server> {
    let commands = CommandTable::new(families);
    let config = ConfigStore::new(Config::default(), None);
    Arc::new(Server::new(commands, config, options, "0".repeat(40)))
}

/// As [`check`], with Redis's own commands beside these.
pub fn check_beside_redis(families: &[&'static [CommandSpec]], steps: &[(&str, &str)]) {
    check(&[families, &kiln_redis::families()].concat(), steps);
}

/// Runs a transcript on an empty server with these commands and compares every reply.
pub fn check(families: &[&'static [CommandSpec]], steps: &[(&str, &str)]) {
    let mut server = TestServer::new(families);
    script::check(|words| server.reply(words), steps);
}
