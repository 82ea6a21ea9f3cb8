//! What a worker thread is to the server, without sockets: one [`Station`] for each thread, and any
//! number of sessions that it serves.

use std::fmt::Write as _;

use kiln_command::blocking::Wake;
use kiln_command::clients::Peer;
use kiln_command::config::{Config, ConfigStore};
use kiln_command::{
    CommandTable, Executor, Progress, ReplyBuf, Server, ServerOptions, Session, Worker,
    reply_after_wait, stop_waiting,
};
use kiln_resp::{Batch, Parser, ParserLimits};
use kiln_testkit::reply::Reply;

/// An empty server for `workers` stations.
pub(crate) fn server(workers: usize) -> Server {
    let commands = CommandTable::new(&kiln_redis::families());
    let config = ConfigStore::new(Config::default(), None);
    let options = ServerOptions { workers, ..ServerOptions::default() };
    Server::new(commands, config, options, "0".repeat(40))
}

/// A new client of the worker with this index.
pub(crate) fn session(server: &Server, worker: usize) -> Session {
    let peer = Peer {
        addr: "127.0.0.1:1".to_owned(),
        laddr: "127.0.0.1:6379".to_owned(),
        fd: 0,
        is_unix: false,
        worker,
    };
    Session::new(server.clients.add(peer), true)
}

/// One thread's means to run commands.
pub(crate) struct Station<'s> {
    pub(crate) server: &'s Server,
    pub(crate) worker: Worker,
    executor: Executor,
}

/// How a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With this reply.
    Served(Reply),
    /// By CLIENT UNBLOCK.
    Unblocked,
    /// By the client itself.
    Left,
}

impl<'s> Station<'s> {
    pub(crate) fn new(server: &'s Server, index: usize, seed: u64) -> Self {
        Self { server, worker: Worker::new(server, index, seed), executor: Executor::default() }
    }

    /// Runs `commands`, inline ones with a space between words, as one batch, and returns their
    /// replies; the last one may wait, which then has no reply but is in the [`Progress`].
    pub(crate) fn run(
        &mut self,
        session: &mut Session,
        commands: &[String],
    ) -> (Vec<Reply>, Progress) {
        let mut buf = String::new();
        for command in commands {
            writeln!(buf, "{command}\r").expect("writing to a string");
        }
        let mut buf = buf.into_bytes();
        let mut batch = Batch::default();
        let limits = ParserLimits::default();
        Parser::default().parse(&mut buf, &limits, usize::MAX, &mut batch).expect("good commands");
        assert_eq!(batch.len(), commands.len(), "{commands:?}");
        let mut out = ReplyBuf::default();
        let Self { server, worker, executor } = self;
        let progress = executor.run_batch(server, worker, session, &buf, &batch, 0, &mut out);
        (replies(&out), progress)
    }

    /// Runs one command that does not wait.
    pub(crate) fn reply(&mut self, session: &mut Session, command: String) -> Reply {
        let (mut replies, progress) = self.run(session, &[command]);
        assert!(matches!(progress, Progress::Done), "it does not wait");
        replies.pop().expect("it replies")
    }

    /// Whether a wait is over; says how, and what it brought. With `leave` it is over in any case.
    /// The steps are those of a connection: see `Connection::wait` in `kiln-net`.
    pub(crate) fn end_wait(
        &mut self,
        session: &mut Session,
        waiting: &mut Progress,
        leave: bool,
    ) -> Option<Ended> {
        let Progress::Blocked { waiter, receiver, .. } = waiting else {
            panic!("only a blocked client waits")
        };
        let mut wake = receiver.try_recv().ok();
        if wake.is_none() && !leave {
            return None;
        }
        *session.client.blocked.lock() = None;
        // The worst moment to lose the processor.
        std::thread::yield_now();
        stop_waiting(self.server, &mut self.worker, waiter);
        // Whoever served it before it left may have taken an element for it.
        wake = wake.or_else(|| receiver.try_recv().ok());
        Some(match wake {
            None => Ended::Left,
            Some(Wake::TimedOut) => Ended::Unblocked,
            Some(wake) => {
                let mut out = ReplyBuf::default();
                reply_after_wait(self.server, &self.worker, session, waiter, wake, &mut out);
                Ended::Served(replies(&out).pop().expect("a wait ends with one reply"))
            }
        })
    }
}

fn replies(out: &ReplyBuf) -> Vec<Reply> {
    let bytes: Vec<u8> = out.chunks().flatten().copied().collect();
    let mut rest = bytes.as_slice();
    let mut replies = Vec::new();
    while !rest.is_empty() {
        let (reply, len) = Reply::parse(rest).expect("RESP").expect("whole replies");
        replies.push(reply);
        rest = &rest[len..];
    }
    replies
}

/// The texts of an array of strings; a null is an empty text.
pub(crate) fn texts(reply: &Reply) -> Vec<String> {
    let elements = reply.as_elements().unwrap_or_else(|| panic!("an array, not {reply:?}"));
    elements.iter().map(text).collect()
}

/// The text of a string; a null is an empty text.
pub(crate) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes.clone()).expect("the tests' own words"),
        Reply::NullBulk => String::new(),
        other => panic!("a string, not {other:?}"),
    }
}
