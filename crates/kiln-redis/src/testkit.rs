//! An in-process server for the families' tests: commands as a person types them, replies as
//! redis-cli prints them.

use kiln_command::clients::Peer;
use kiln_command::config::{Config, ConfigStore};
use kiln_command::{
    CommandTable, Executor, Progress, ReplyBuf, Server, ServerOptions, Session, Worker,
};
use kiln_resp::{Batch, Parser, ParserLimits};
use kiln_testkit::reply::Reply;
use kiln_testkit::script;

/// A server with one worker and one client.
pub(crate) struct TestServer {
    server: Server,
    worker: Worker,
    session: Session,
    executor: Executor,
}

impl TestServer {
    /// An empty server.
    pub(crate) fn new() -> Self {
        let commands = CommandTable::new(&crate::families());
        let config = ConfigStore::new(Config::default(), None);
        let server = Server::new(commands, config, ServerOptions::default(), "0".repeat(40));
        let peer = Peer {
            addr: "127.0.0.1:1".to_owned(),
            laddr: "127.0.0.1:6379".to_owned(),
            fd: 0,
            is_unix: false,
            worker: 0,
        };
        let session = Session::new(server.clients.add(peer), true);
        let worker = Worker::new(&server, 0, 42);
        Self { server, worker, session, executor: Executor::default() }
    }

    /// Runs one command and returns its reply, `(waiting)` if it waits.
    pub(crate) fn reply(&mut self, words: &[Vec<u8>]) -> Reply {
        let bytes = self.run(words);
        if bytes.is_empty() {
            return Reply::Simple(b"(waiting)".to_vec());
        }
        Reply::parse_all(&bytes)
    }

    /// Runs one command and returns the bytes of its reply; none if it waits.
    pub(crate) fn run(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
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
            Progress::Done | Progress::Close => out.chunks().flatten().copied().collect(),
            Progress::Blocked { .. } | Progress::Paused { .. } => Vec::new(),
        }
    }
}

/// Runs a transcript on an empty server and compares every reply.
pub(crate) fn check(steps: &[(&str, &str)]) {
    let mut server = TestServer::new();
    script::check(|words| server.reply(words), steps);
}
