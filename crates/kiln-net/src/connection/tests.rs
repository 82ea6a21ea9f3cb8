//! What only a client with the worst timing shows: it is served in the moment in which it leaves.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use kiln_command::clients::{Client, Peer};
use kiln_command::config::{Config, ConfigStore};
use kiln_command::{CommandTable, Executor, Server, ServerOptions, Session, Worker};
use kiln_resp::{Batch, Parser, ParserLimits, ReplyBuf};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::serve;
use crate::worker::Shared;

fn new_server() -> Server {
    let commands = CommandTable::new(&kiln_redis::families());
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

/// Runs a command as another client does and returns its reply.
fn run(server: &Server, shared: &RefCell<Shared>, line: &str) -> String {
    let Shared { worker, executor, .. } = &mut *shared.borrow_mut();
    let mut session = Session::new(new_client(server), true);
    let mut buf = format!("{line}\r\n").into_bytes();
    let (mut batch, mut out) = (Batch::default(), ReplyBuf::default());
    let parsed = Parser::default().parse(&mut buf, &ParserLimits::default(), 1, &mut batch);
    parsed.expect("a well-formed command");
    executor.run_batch(server, worker, &mut session, &buf, &batch, 0, &mut out);
    String::from_utf8(out.chunks().collect::<Vec<_>>().concat()).expect("an ASCII reply")
}

/// A socket whose client sends one command and closes its half of the connection in the moment in
/// which `meanwhile` runs.
struct Leaving<'s> {
    server: &'s Server,
    shared: &'s RefCell<Shared>,
    command: Option<&'static str>,
    meanwhile: &'static str,
    received: Rc<RefCell<Vec<u8>>>,
}

impl AsyncRead for Leaving<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.command.take() {
            Some(command) => buf.put_slice(command.as_bytes()),
            None => drop(run(self.server, self.shared, self.meanwhile)),
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

/// Expects that a client that waits with `command` and leaves while another one runs `meanwhile`
/// receives `reply`, and that the list `k` has `left` elements then.
#[track_caller]
fn check(command: &'static str, meanwhile: &'static str, reply: &str, left: usize) {
    let server = new_server();
    let shared = RefCell::new(Shared {
        worker: Worker::new(&server, 0, 42),
        executor: Executor::default(),
        batch: Batch::default(),
        read_buf: vec![0; 1024].into(),
    });
    let received = Rc::default();
    let stream = Leaving {
        server: &server,
        shared: &shared,
        command: Some(command),
        meanwhile,
        received: Rc::clone(&received),
    };
    let client = new_client(&server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime without threads");
    runtime.block_on(serve(&server, &shared, stream, &client));
    assert_eq!(String::from_utf8_lossy(&received.borrow()), reply);
    assert_eq!(run(&server, &shared, "LLEN k"), format!(":{left}\r\n"));
    // Nobody stands in a queue any more who could take what comes later.
    assert_eq!(run(&server, &shared, "RPUSH k x"), format!(":{}\r\n", left + 1));
    assert_eq!(run(&server, &shared, "LLEN k"), format!(":{}\r\n", left + 1));
    assert!(client.blocked.lock().is_none());
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
