//! The wire format: RESP2, RESP3 and inline commands, as Redis speaks them.
//!
//! Requests: [`Parser`] finds the complete commands in a connection's read buffer and leaves them
//! there; [`Args`] is a view of one of them. Replies: [`ReplyWriter`] encodes straight into the
//! connection's [`ReplyBuf`]. Nothing here knows a command, a key or a socket.

mod args;
mod parser;
mod reply;
mod reply_buf;

pub use args::{Args, OwnedArgs, Span};
pub use parser::{
    Batch, MAX_BULK_BYTES, MAX_BULK_BYTES_UNAUTHENTICATED, MAX_INLINE_BYTES, MAX_WORDS,
    MAX_WORDS_UNAUTHENTICATED, Parser, ParserLimits, ProtocolError,
};
pub use reply::{Deferred, Protocol, ReplyWriter};
pub use reply_buf::{Mark, ReplyBuf};
