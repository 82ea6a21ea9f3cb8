//! Clients that wait for a key: how they enter the queues, are served, and leave.
//!
//! # Protocol
//!
//! 1. A blocking handler that finds nothing changes nothing and returns [`Outcome::Block`]. The
//!    executor puts the client into the queues of its keys under the same exclusive hold, so no
//!    push can slip between the look and the wait.
//! 2. Whoever changes a key with a queue serves it before it replies to its own client: under its
//!    own hold when that covers the waiter's shards, else under one made for the waiter after its
//!    own is gone. A waiter is served by running its command again, so it is served as if it
//!    came at that moment. Queues are served oldest first. Between the two holds somebody else may
//!    take the element; the waiter then goes on waiting, at its place in the queue.
//! 3. A waiter is done exactly once. `BlockedClient::state` is the judge: whoever serves it holds
//!    that lock while it runs the command; timeout, disconnect, UNBLOCK and KILL take it to end the
//!    wait. It is a leaf lock: its holder never asks for a shard it does not hold yet.
//! 4. A done waiter may still stand in queues; whoever meets it there drops it, and its own
//!    connection takes it out of all of them, whatever ended the wait.
//! 5. What a waiter was served goes out on its connection, even if that has meanwhile seen the
//!    timeout, KILL or the end of the input: see `Connection::wait`.
//!
//! So no element is lost: it leaves its key only inside rule 3's lock, for a client that was
//! still waiting, and reaches that client's socket.

use std::any::Any;
use std::time::Duration;

use kiln_base::number::{LongDouble, parse_f64};
use kiln_base::sync::{Arc, Mutex};
use kiln_keyspace::{Shards, Waiter};
use kiln_resp::{OwnedArgs, Protocol, ReplyBuf, ReplyWriter};
use smallvec::SmallVec;
use tokio::sync::oneshot;

use crate::error::CommandError;
use crate::table::Command;

/// What a blocking handler did.
#[derive(Debug)]
pub enum Outcome {
    /// It replied.
    Done,
    /// It found nothing, changed nothing, and wants to wait.
    Block(Block),
}

/// How a command wants to wait.
#[derive(Clone, Debug)]
pub struct Block {
    /// For how long; `None` is for ever.
    pub timeout: Option<Duration>,
    /// What to say when that time is over, or at once where waiting is not possible (in MULTI).
    pub on_timeout: TimeoutReply,
    /// Indexes of the words that name the keys to wait for, most wanted first.
    pub keys: SmallVec<[usize; 4]>,
}

/// The reply of a wait that ended with nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReply {
    /// A null.
    Null,
    /// A null array (RESP2's other null).
    NullArray,
    /// A null where waiting is not possible, a null array after a wait: BLMOVE's own reply for
    /// "no element" is the one, and every list that was waited for in vain gets the other.
    NullThenArray,
    /// A number, for WAIT.
    Integer(i64),
    /// Two numbers, for WAITAOF.
    Integers(i64, i64),
    /// `OK`, for commands that only sleep.
    Ok,
}

impl TimeoutReply {
    /// Writes the reply to a client that has waited.
    pub fn write_after_wait(self, reply: &mut ReplyWriter<'_>) {
        match self {
            Self::NullThenArray => reply.null_array(),
            other => other.write(reply),
        }
    }

    /// Writes the reply to a client that cannot wait.
    pub fn write(self, reply: &mut ReplyWriter<'_>) {
        match self {
            Self::Null | Self::NullThenArray => reply.null(),
            Self::NullArray => reply.null_array(),
            Self::Integer(number) => reply.integer(number),
            Self::Integers(first, second) => {
                reply.array(2);
                reply.integer(first);
                reply.integer(second);
            }
            Self::Ok => reply.ok(),
        }
    }
}

/// The longest wait in milliseconds. Redis's bound is that the deadline, in milliseconds since
/// 1970, fits 63 bits. There is no clock here, so the time since 1970 is taken as 2^41, which is
/// reached in 2039; the doubles up there are 1,024 apart anyway.
const TIMEOUT_MS_MAX: f64 = (i64::MAX - (1 << 41)) as f64;

/// Parses a timeout in seconds with a fraction; zero waits for ever.
///
/// # Errors
///
/// Not a number, too large, negative; in this order.
pub fn parse_timeout(text: &[u8]) -> Result<Option<Duration>, CommandError> {
    // Redis reads a long double, so what no double holds is a number too.
    let beyond = || LongDouble::parse(text).map(LongDouble::to_f64_outward);
    let seconds = parse_f64(text).or_else(beyond).ok_or(CommandError::TimeoutNotAFloat)?;
    milliseconds(seconds * 1_000.0)
}

/// Checks a timeout in milliseconds; zero waits for ever.
pub fn milliseconds(ms: f64) -> Result<Option<Duration>, CommandError> {
    if ms > TIMEOUT_MS_MAX {
        return Err(CommandError::TimeoutOutOfRange);
    }
    if ms < 0.0 {
        return Err(CommandError::NegativeTimeout);
    }
    let ms = ms.ceil();
    Ok((ms > 0.0).then(|| Duration::from_millis(ms as u64)))
}

/// How a wait ended, as its connection hears it.
#[derive(Debug)]
pub enum Wake {
    /// With this reply.
    Reply(ReplyBuf),
    /// As if the time were over (CLIENT UNBLOCK).
    TimedOut,
    /// With an error (CLIENT UNBLOCK … ERROR, loss of the primary role).
    Error(CommandError),
}

/// A client that waits.
pub struct BlockedClient {
    /// The command to run again.
    pub command: Command,
    /// Its words.
    pub args: OwnedArgs,
    /// The database its keys are in.
    pub db: usize,
    /// How to encode its reply.
    pub protocol: Protocol,
    /// All shards of its keys.
    pub shards: Shards,
    /// What it waits for.
    pub block: Block,
    state: Mutex<Option<oneshot::Sender<Wake>>>,
}

impl BlockedClient {
    /// A waiter and the end at which its connection hears of the outcome.
    pub fn new(
        command: Command,
        args: OwnedArgs,
        db: usize,
        protocol: Protocol,
        shards: Shards,
        block: Block,
    ) -> (Arc<Self>, oneshot::Receiver<Wake>) {
        let (sender, receiver) = oneshot::channel();
        let state = Mutex::new(Some(sender));
        (Arc::new(Self { command, args, db, protocol, shards, block, state }), receiver)
    }

    /// Ends the wait with what `serve` returns, if it is not over and `serve` has something. Says
    /// whether it ended here.
    pub fn end_with(&self, serve: impl FnOnce() -> Option<Wake>) -> bool {
        let mut state = self.state.lock();
        if state.as_ref().is_none_or(oneshot::Sender::is_closed) {
            return false;
        }
        let Some(wake) = serve() else { return false };
        let sender = state.take().expect("looked at above");
        // The connection may be gone in this very moment; its reply is then as lost as one that
        // was already on the wire.
        let _ = sender.send(wake);
        true
    }

    /// Ends the wait without a word, if it is not over: the connection itself knows why.
    pub fn cancel(&self) -> bool {
        self.state.lock().take().is_some()
    }

    /// The keys it waits for.
    pub fn wait_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.block.keys.iter().map(|&index| self.args.args().get(index))
    }
}

impl Waiter for BlockedClient {
    fn is_done(&self) -> bool {
        self.state.lock().as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::parse_timeout;
    use crate::error::CommandError;

    #[test]
    fn timeouts_are_seconds_rounded_up_to_milliseconds() {
        assert_eq!(parse_timeout(b"0"), Ok(None));
        assert_eq!(parse_timeout(b"0.0001"), Ok(Some(Duration::from_millis(1))));
        assert_eq!(parse_timeout(b"2.5"), Ok(Some(Duration::from_millis(2_500))));
        assert_eq!(parse_timeout(b"-1"), Err(CommandError::NegativeTimeout));
        assert_eq!(parse_timeout(b"x"), Err(CommandError::TimeoutNotAFloat));
        for far in ["1e300", "1e400", "inf", "9223372036854775"] {
            assert_eq!(parse_timeout(far.as_bytes()), Err(CommandError::TimeoutOutOfRange));
        }
        assert_eq!(parse_timeout(b"1e-400"), Ok(Some(Duration::from_millis(1))));
        assert_eq!(parse_timeout(b"-1e-400"), Err(CommandError::NegativeTimeout));
    }
}
