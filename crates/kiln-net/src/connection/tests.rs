//! What the network cannot show at will: clients that are served in the moment in which they leave,
//! what is journaled for those that waited, and work on the compute pool.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use kiln_base::sync::Mutex;
use kiln_command::clients::{Client, Peer};
use kiln_command::compute::Work;
use kiln_command::config::{Config, ConfigStore};
use kiln_command::{
    Args, Arity, CommandError, CommandSpec, CommandTable, Executor, JournalSink, KeyFlags, KeySpec,
    Progress, ReplyWriter, Server, ServerOptions, Session, Ttl, Worker,
};
use kiln_keyspace::{Effect, Event, shard_of};
use kiln_resp::{Batch, Parser, ParserLimits, ReplyBuf};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::serve;
use crate::worker::Shared;

/// `COMPUTE key value`: sets a key, on the detour over the compute pool.
const COMPUTED: &[CommandSpec] =
    &[CommandSpec::engine_write("COMPUTE", Arity::exactly(3), compute).keys(COMPUTED_KEYS)];
const COMPUTED_KEYS: &[KeySpec] = &[KeySpec::at(1, KeyFlags::OW)];

#[expect(clippy::unnecessary_wraps, reason = "all handlers have one signature")]
fn compute(
    _: &mut kiln_command::Context<'_>,
    args: &Args<'_>,
    _: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let (key, value) = (args.get(1).to_vec(), args.get(2).to_vec());
    Ok(Work::Compute(Box::new(move || {
        Box::new(move |context, reply| {
            if value == b"bad" {
                reply.ok();
                return Err(CommandError::Syntax);
            }
            context.write(&key, |view| {
                view.set_string(&key, &value, Ttl::Clear);
                view.changed(&key, Event::Set);
            });
            reply.ok();
            Ok(())
        })
    })))
}

fn new_server() -> Server {
    let families = [kiln_redis::families(), vec![COMPUTED]].concat();
    let commands = CommandTable::new(&families);
    let config = ConfigStore::new(Config::default(), None);
    Server::new(commands, config, ServerOptions::default(), "0".repeat(40))
}

fn new_client(server: &Server) -> Arc<Client> {
    let peer = Peer {
        addr: "127.0.0.1:1".to_owned(),
        laddr: "127.0.0.1:6379".to_owned(),
        fd: 0,
        is_unix: false,
        worker: 0,
    };
    server.clients.add(peer)
}

fn new_shared(server: &Server) -> RefCell<Shared> {
    RefCell::new(Shared {
        worker: Worker::new(server, 0, 42),
        executor: Executor::default(),
        batch: Batch::default(),
        read_buf: vec![0; 1024].into(),
    })
}

/// Runs commands, a line each, as another client does; returns how far they got and the replies.
fn run_all(server: &Server, shared: &RefCell<Shared>, lines: &str) -> (Progress, String) {
    let Shared { worker, executor, .. } = &mut *shared.borrow_mut();
    let mut session = Session::new(new_client(server), true);
    let mut buf = format!("{lines}\r\n").into_bytes();
    let (mut batch, mut out) = (Batch::default(), ReplyBuf::default());
    let parsed = Parser::default().parse(&mut buf, &ParserLimits::default(), 9, &mut batch);
    parsed.expect("well-formed commands");
    let progress = executor.run_batch(server, worker, &mut session, &buf, &batch, 0, &mut out);
    let replies = out.chunks().collect::<Vec<_>>().concat();
    (progress, String::from_utf8(replies).expect("ASCII replies"))
}

/// Runs a command that does not wait, and returns its reply.
fn run(server: &Server, shared: &RefCell<Shared>, line: &str) -> String {
    run_all(server, shared, line).1
}

/// A socket whose client sends one command and closes its half of the connection in the moment in
/// which `meanwhile` runs, if anything does.
struct Leaving<'s> {
    server: &'s Server,
    shared: &'s RefCell<Shared>,
    command: Option<&'static str>,
    meanwhile: Option<&'static str>,
    received: Rc<RefCell<Vec<u8>>>,
}

impl AsyncRead for Leaving<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(command) = self.command.take() {
            buf.put_slice(command.as_bytes());
        } else if let Some(meanwhile) = self.meanwhile.take() {
            run(self.server, self.shared, meanwhile);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Leaving<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.received.borrow_mut().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Serves a client that sends `command` and leaves while another one runs `meanwhile`, if any does;
/// returns what it received.
fn serve_leaving(
    server: &Server,
    shared: &RefCell<Shared>,
    command: &'static str,
    meanwhile: Option<&'static str>,
) -> String {
    let received = Rc::default();
    let stream = Leaving {
        server,
        shared,
        command: Some(command),
        meanwhile,
        received: Rc::clone(&received),
    };
    let client = new_client(server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime without threads");
    runtime.block_on(serve(server, shared, stream, &client));
    assert!(client.blocked.lock().is_none());
    let received = received.borrow();
    String::from_utf8_lossy(&received).into_owned()
}

/// Expects that a client that waits with `command` and leaves while another one runs `meanwhile`
/// receives `reply`, and that the list `k` has `left` elements then.
#[track_caller]
fn check(command: &'static str, meanwhile: &'static str, reply: &str, left: usize) {
    let server = new_server();
    let shared = new_shared(&server);
    assert_eq!(serve_leaving(&server, &shared, command, Some(meanwhile)), reply);
    assert_eq!(run(&server, &shared, "LLEN k"), format!(":{left}\r\n"));
    // Nobody stands in a queue any more who could take what comes later.
    assert_eq!(run(&server, &shared, "RPUSH k x"), format!(":{}\r\n", left + 1));
    assert_eq!(run(&server, &shared, "LLEN k"), format!(":{}\r\n", left + 1));
}

#[test]
fn what_a_leaving_client_was_served_is_sent() {
    check("BLPOP k 0\r\n", "RPUSH k e", "*2\r\n$1\r\nk\r\n$1\r\ne\r\n", 0);
    check("BLMOVE k l LEFT LEFT 9\r\n", "RPUSH k e", "$1\r\ne\r\n", 0);
}

#[test]
fn a_client_that_left_takes_nothing() {
    check("BLPOP k 0\r\n", "PING", "", 0);
    check("BLPOP other k 9\r\n", "SET other v", "", 0);
}

/// Keeps what is journaled, a line each; what was appended at once is joined by semicolons.
#[derive(Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl JournalSink for Recorder {
    fn append(&self, _: usize, effects: &[Effect]) {
        let texts = effects.iter().map(|effect| {
            let words = effect.words.iter().map(|word| String::from_utf8_lossy(word));
            words.collect::<Vec<_>>().join(" ")
        });
        self.0.lock().push(texts.collect::<Vec<_>>().join("; "));
    }
}

/// Expects that `journal` is written when `push` serves a client that waits with `wait`.
#[track_caller]
fn check_journal(wait: &str, push: &str, journal: &[&str]) {
    let recorder = Recorder::default();
    let lines = Arc::clone(&recorder.0);
    let mut server = new_server();
    server.journal = Some(Box::new(recorder));
    let shared = new_shared(&server);
    let (waiting, _) = run_all(&server, &shared, wait);
    assert!(matches!(waiting, Progress::Blocked { .. }), "{wait}");
    run(&server, &shared, push);
    assert_eq!(*lines.lock(), journal);
}

#[test]
fn a_served_wait_is_journaled_without_the_wait() {
    check_journal("BLPOP k 0", "RPUSH k e", &["RPUSH k e; LPOP k 1"]);
    check_journal("BRPOPLPUSH k k 0", "RPUSH k e", &["RPUSH k e; LMOVE k k RIGHT LEFT"]);
    check_journal("BLMPOP 0 1 k LEFT COUNT 2", "RPUSH k a b c", &["RPUSH k a b c; LPOP k 2"]);
    // Not under the hold of the push, if the wait is for another shard too.
    let mut names = (0..).map(|number| format!("other{number}"));
    let other = names.find(|name| shard_of(name.as_bytes()) != shard_of(b"k"));
    let other = other.expect("keys lie in more than one shard");
    check_journal(&format!("BLPOP {other} k 0"), "RPUSH k e", &["RPUSH k e", "LPOP k 1"]);
    let moved = format!("LMOVE k {other} LEFT LEFT");
    check_journal(&format!("B{moved} 0"), "RPUSH k e", &["RPUSH k e", &moved]);
}

#[test]
fn a_transaction_is_journaled_at_once_without_what_changed_nothing() {
    let transaction = "MULTI\r\nRPUSH k a b\r\nLLEN k\r\nLREM k 0 none\r\nLMPOP 1 k RIGHT\r\nEXEC";
    check_journal("BLPOP k 0", transaction, &["RPUSH k a b; RPOP k 1; LPOP k 1"]);
}

#[test]
fn what_was_computed_is_committed_journaled_and_sent_in_its_turn() {
    let recorder = Recorder::default();
    let lines = Arc::clone(&recorder.0);
    let mut server = new_server();
    server.journal = Some(Box::new(recorder));
    let shared = new_shared(&server);
    let commands = "COMPUTE k a\r\nAPPEND k b\r\nCOMPUTE k bad\r\nGET k\r\n";
    let replies = "+OK\r\n:2\r\n-ERR syntax error\r\n$2\r\nab\r\n";
    assert_eq!(serve_leaving(&server, &shared, commands, None), replies);
    assert_eq!(*lines.lock(), ["COMPUTE k a", "APPEND k b"]);
    let computed = server.commands.find(b"COMPUTE").expect("one of the commands").id;
    assert_eq!(server.stats[0].commands[usize::from(computed.0)].calls.get(), 2);
}

#[test]
fn in_a_transaction_work_is_done_on_the_spot() {
    let recorder = Recorder::default();
    let lines = Arc::clone(&recorder.0);
    let mut server = new_server();
    server.journal = Some(Box::new(recorder));
    let shared = new_shared(&server);
    let commands = "MULTI\r\nCOMPUTE k a\r\nCOMPUTE k bad\r\nGET k\r\nEXEC";
    let queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n";
    let replies = "*3\r\n+OK\r\n-ERR syntax error\r\n$1\r\na\r\n";
    assert_eq!(run(&server, &shared, commands), format!("{queued}{replies}"));
    assert_eq!(*lines.lock(), ["COMPUTE k a"]);
}
