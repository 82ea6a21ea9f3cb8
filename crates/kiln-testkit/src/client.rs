//! A blocking client of one connection, with pipelining. It keeps no opinion on what it carries.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::reply::Reply;

/// A server silent for this long has hung.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How many bytes one read asks for.
const READ_BYTES: usize = 64 * 1024;

/// One connection.
pub struct Client {
    stream: TcpStream,
    /// Commands not sent yet.
    outbox: Vec<u8>,
    /// Bytes received; those before `parsed` are done with.
    inbox: Vec<u8>,
    parsed: usize,
}

impl Client {
    /// Connects to `address`, `host:port`.
    pub fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        stream.set_write_timeout(Some(READ_TIMEOUT))?;
        Ok(Self { stream, outbox: Vec::new(), inbox: Vec::new(), parsed: 0 })
    }

    /// Adds a command to what the next [`flush`](Self::flush) sends.
    pub fn push<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        encode(words, &mut self.outbox);
    }

    /// Sends all commands added.
    pub fn flush(&mut self) -> io::Result<()> {
        let sent = self.stream.write_all(&self.outbox);
        self.outbox.clear();
        sent
    }

    /// Waits for the next reply.
    pub fn read(&mut self) -> io::Result<Reply> {
        loop {
            let parsed = Reply::parse(&self.inbox[self.parsed..]).map_err(io::Error::other)?;
            if let Some((reply, length)) = parsed {
                self.parsed += length;
                return Ok(reply);
            }
            self.inbox.drain(..self.parsed);
            self.parsed = 0;
            let filled = self.inbox.len();
            self.inbox.resize(filled + READ_BYTES, 0);
            let read = self.stream.read(&mut self.inbox[filled..]);
            self.inbox.truncate(filled + *read.as_ref().unwrap_or(&0));
            if read? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends one command and waits for its reply.
    pub fn call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Reply> {
        self.push(words);
        self.flush()?;
        self.read()
    }
}

/// Appends a command as clients send it, an array of bulk strings.
pub fn encode<W: AsRef<[u8]>>(words: &[W], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        let word = word.as_ref();
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        let mut out = Vec::new();
        encode(&["GET", "", "\r\n"], &mut out);
        assert_eq!(out, b"*3\r\n$3\r\nGET\r\n$0\r\n\r\n$2\r\n\r\n\r\n");
    }
}
