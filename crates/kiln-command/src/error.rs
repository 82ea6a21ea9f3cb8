//! The home of the error texts that clients see.
//!
//! A handler names a variant; its text is Redis's, to the letter, because clients match on it.
//! Texts that carry a name or a value are variants with fields.

use std::borrow::Cow;

use kiln_keyspace::WrongType;
use thiserror::Error;

/// What a handler returns: its reply stands in the writer, or nothing does.
pub type CommandResult = Result<(), CommandError>;

/// Why a command failed. `Display` is the whole text after the `-` on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The key holds another type.
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// An option or its place is not understood.
    #[error("ERR syntax error")]
    Syntax,
    /// Not a canonical 64-bit integer.
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    /// Not a finite number.
    #[error("ERR value is not a valid float")]
    NotAFloat,
    /// An integer outside what the argument allows.
    #[error("ERR value is out of range")]
    OutOfRange,
    /// A count or index below zero.
    #[error("ERR value is out of range, must be positive")]
    NotPositive,
    /// The least integer where a count's sign chooses a direction (LREM, SRANDMEMBER, …).
    #[error(
        "ERR value is out of range, \
         value must between -9223372036854775807 and 9223372036854775807"
    )]
    NotNegatable,
    /// Zero or less keys, or no number of keys at all.
    #[error("ERR numkeys should be greater than 0")]
    NumKeys,
    /// INCR and friends.
    #[error("ERR increment or decrement would overflow")]
    IncrementOverflow,
    /// DECRBY of the least integer.
    #[error("ERR decrement would overflow")]
    DecrementOverflow,
    /// INCRBYFLOAT past the largest number.
    #[error("ERR increment would produce NaN or Infinity")]
    IncrementNotFinite,
    /// A key that must exist does not.
    #[error("ERR no such key")]
    NoSuchKey,
    /// LSET and others.
    #[error("ERR index out of range")]
    IndexOutOfRange,
    /// SELECT and others.
    #[error("ERR DB index is out of range")]
    DbOutOfRange,
    /// A database's number that is an integer, but none of 32 bits.
    #[error("ERR value is out of range, value must between -2147483648 and 2147483647")]
    NotAnInt32,
    /// A timeout argument below zero.
    #[error("ERR timeout is negative")]
    NegativeTimeout,
    /// A timeout argument that is no number.
    #[error("ERR timeout is not a float or out of range")]
    TimeoutNotAFloat,
    /// A timeout too far away.
    #[error("ERR timeout is out of range")]
    TimeoutOutOfRange,
    /// A string would grow beyond `proto-max-bulk-len`.
    #[error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")]
    StringTooLong,
    /// Not as many words as the command takes. The name is in lower case.
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(Cow<'static, str>),
    /// An expiry time that is zero, negative or too far away.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpire(&'static str),
    /// A subcommand that the container command lacks.
    #[error("ERR unknown subcommand '{subcommand}'. Try {command} HELP.")]
    UnknownSubcommand {
        /// The container, in upper case.
        command: Cow<'static, str>,
        /// What was asked for.
        subcommand: String,
    },
    /// A command that does not exist; the argument is the rest of Redis's text.
    #[error("ERR unknown command '{name}', with args beginning with: {args}")]
    UnknownCommand {
        /// The name, cut to 128 bytes.
        name: String,
        /// The first arguments in quotes, cut to 128 bytes in all.
        args: String,
    },
    /// Memory is full and the policy found nothing to evict.
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    /// A password is needed.
    #[error("NOAUTH Authentication required.")]
    NoAuth,
    /// AUTH or HELLO with a wrong name or password.
    #[error("WRONGPASS invalid username-password pair or user is disabled.")]
    WrongPass,
    /// EXEC after a command that could not be queued.
    #[error("EXECABORT Transaction discarded because of previous errors.")]
    ExecAbort,
    /// A command that cannot stand in MULTI.
    #[error("ERR Command not allowed inside a transaction")]
    NotInMulti,
    /// Any other text, the code included. For texts that only one handler has.
    #[error("{0}")]
    Text(Cow<'static, str>),
}

impl CommandError {
    /// An error with a text of its own, which begins with its code (`ERR …`).
    pub const fn text(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// An error whose text is made of parts, the code included.
    pub fn owned(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }

    /// The first word of the text, under which `errorstat_*` counts it.
    pub fn code(&self) -> String {
        let text = self.to_string();
        text.split(' ').next().unwrap_or_default().to_owned()
    }
}

/// A client's word inside an error text: up to the first NUL, as C prints it, each byte one
/// character, which the reply writer makes that byte again.
pub fn echo(word: &[u8]) -> String {
    let end = memchr::memchr(0, word).unwrap_or(word.len());
    word[..end].iter().map(|&byte| char::from(byte)).collect()
}

impl From<WrongType> for CommandError {
    fn from(_: WrongType) -> Self {
        Self::WrongType
    }
}
