//! The load generator: threads that drive connections, each with one outstanding batch.
//!
//! ```text
//! Requests (built before) ─► next batch, one counter for all threads
//!   thread 0: epoll over its connections ─► write batch ─► skip replies ─► record, next batch
//!   thread 1: …
//! ```
//!
//! A batch's latency runs from before its first byte is written until its last reply is complete,
//! and counts for each command in it. The loop is closed: a slow server is sent less, so latency
//! under many connections is mostly queueing (connections ÷ throughput). Compare it between servers
//! in one run, not with an open-loop figure.
//!
//! Replies are not parsed, only skipped: what a client would do with them is not the server's cost.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use hdrhistogram::Histogram;
use kiln_base::sync::atomic::{AtomicUsize, Ordering};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::machine::Cores;
use crate::workload::Requests;

/// How long a batch may go unanswered before the run is given up.
const REPLY_TIMEOUT_S: i64 = 60;

/// Bytes read at once: several batches of small replies.
const READ_BYTES: usize = 64 * 1024;

/// Longest latency that a histogram tells apart, one minute.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// How many of the slowest batches a run remembers.
///
/// A stall holds up one batch of every connection at about the same time. They count as one: of
/// batches no farther apart in the sequence than there are connections, only the slowest is kept.
const WORST_MAX: usize = 16;

/// Longest reply line kept while its end has not arrived: an error text, for the report.
const LINE_MAX: usize = 512;

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// When each request was sent once.
    Sent,
    /// After this long; requests are sent again from the start when they run out.
    Elapsed(Duration),
}

/// What a run measured.
#[derive(Debug)]
pub struct Outcome {
    /// Commands answered.
    pub commands: u64,
    /// From the first write to the last reply.
    pub elapsed: Duration,
    /// Latency of batches in nanoseconds.
    pub latency_ns: Histogram<u64>,
    /// The slowest batches, slowest first, one for each stall.
    pub worst: Vec<SlowBatch>,
    /// Nulls among the replies and their elements.
    pub nulls: u64,
}

impl Outcome {
    /// Adds what a later run measured. Sequence numbers stay as they are, each of its own run.
    pub fn absorb(&mut self, later: Outcome) {
        self.commands += later.commands;
        self.elapsed += later.elapsed;
        self.nulls += later.nulls;
        self.latency_ns.add(later.latency_ns).expect("the bounds are the same");
        self.worst.extend(later.worst);
        self.worst.sort_unstable_by(|a, b| b.cmp(a));
        self.worst.truncate(WORST_MAX);
    }

    /// Commands per second.
    pub fn per_second(&self) -> f64 {
        self.commands as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency in microseconds that `quantile` of the batches keep within.
    pub fn latency_us(&self, quantile: f64) -> f64 {
        self.latency_ns.value_at_quantile(quantile) as f64 / 1e3
    }

    /// The longest latency in microseconds.
    pub fn latency_us_max(&self) -> f64 {
        self.worst.first().map_or(0.0, |slow| slow.latency_ns as f64 / 1e3)
    }
}

/// One slow batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlowBatch {
    /// How long it took.
    pub latency_ns: u64,
    /// How many batches were begun before it.
    pub sequence: usize,
}

/// Connections to one server, shared out among threads.
#[derive(Debug)]
pub struct Fleet {
    lanes: Vec<Lane>,
}

impl Fleet {
    /// Connects; `threads` threads will run on `cores`, one after another.
    pub fn connect(
        address: SocketAddr,
        connections: usize,
        threads: usize,
        cores: Option<&Cores>,
    ) -> Result<Fleet> {
        ensure!(threads > 0 && connections >= threads, "each thread needs a connection");
        let lanes = (0..threads)
            .map(|index| {
                let share = connections / threads + usize::from(index < connections % threads);
                Lane::connect(address, share, cores.map(|cores| cores.nth(index)))
            })
            .collect::<Result<_>>()?;
        let mut fleet = Fleet { lanes };
        fleet.warm_up(connections)?;
        Ok(fleet)
    }

    /// Sends `requests` and waits for all replies. An error reply ends the run: a server that
    /// refuses commands is fast at nothing.
    pub fn run(&mut self, requests: &Requests, until: Until) -> Result<Outcome> {
        let next = AtomicUsize::new(0);
        let connections = self.lanes.iter().map(|lane| lane.connections.len()).sum();
        let started = Instant::now();
        let batches = BatchSource { requests, next: &next, until, started, connections };
        let tallies: Vec<Result<Tally>> = thread::scope(|scope| {
            let threads: Vec<_> =
                self.lanes.iter_mut().map(|lane| scope.spawn(|| lane.drive(&batches))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| anyhow!("a load thread panicked"))?)
                .collect()
        });
        let elapsed = started.elapsed();
        let mut total = Tally::new(connections);
        for tally in tallies {
            total.merge(tally?);
        }
        Ok(Outcome {
            commands: total.commands,
            elapsed,
            latency_ns: total.latency_ns,
            worst: total.worst,
            nulls: total.nulls,
        })
    }

    /// One PING per connection, so that accepting connections is not measured.
    fn warm_up(&mut self, connections: usize) -> Result<()> {
        let mut pings = Requests::new(1);
        for _ in 0..connections {
            pings.push(&[b"PING"]);
        }
        self.run(&pings, Until::Sent).context("first PING")?;
        Ok(())
    }
}

/// Hands out batches to all threads in order.
struct BatchSource<'a> {
    requests: &'a Requests,
    next: &'a AtomicUsize,
    until: Until,
    started: Instant,
    /// Of all threads together.
    connections: usize,
}

impl<'a> BatchSource<'a> {
    /// The next batch's place in the sequence, its bytes and its number of replies.
    fn take(&self, now: Instant) -> Option<(usize, &'a [u8], usize)> {
        // Relaxed: the counter shares out indices and publishes nothing.
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        let goes_on = match self.until {
            Until::Sent => sequence < self.requests.batches(),
            Until::Elapsed(limit) => now.duration_since(self.started) < limit,
        };
        let (bytes, replies) =
            goes_on.then(|| self.requests.batch(sequence % self.requests.batches()))?;
        Some((sequence, bytes, replies))
    }
}

/// What one thread measured.
struct Tally {
    commands: u64,
    latency_ns: Histogram<u64>,
    worst: Vec<SlowBatch>,
    /// Batches this far apart in the sequence belong to one stall.
    stall_span: usize,
    nulls: u64,
}

impl Tally {
    fn new(stall_span: usize) -> Tally {
        let latency_ns =
            Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("the bounds are valid");
        Tally { commands: 0, latency_ns, worst: Vec::new(), stall_span, nulls: 0 }
    }

    fn record(&mut self, commands: usize, slow: SlowBatch) {
        self.commands += commands as u64;
        self.latency_ns.saturating_record(slow.latency_ns);
        self.remember(slow);
    }

    fn remember(&mut self, slow: SlowBatch) {
        let full = self.worst.len() == WORST_MAX;
        if full && self.worst.last().is_some_and(|least| *least >= slow) {
            return;
        }
        let near = |other: &SlowBatch| other.sequence.abs_diff(slow.sequence) <= self.stall_span;
        if self.worst.iter().any(|other| near(other) && *other >= slow) {
            return;
        }
        self.worst.retain(|other| !near(other));
        self.worst.truncate(WORST_MAX - 1);
        let at = self.worst.partition_point(|other| *other > slow);
        self.worst.insert(at, slow);
    }

    fn merge(&mut self, other: Tally) {
        self.commands += other.commands;
        self.nulls += other.nulls;
        self.latency_ns.add(other.latency_ns).expect("the bounds are the same");
        for slow in other.worst {
            self.remember(slow);
        }
    }
}

/// One thread's connections.
#[derive(Debug)]
struct Lane {
    core: Option<Cores>,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Where replies are read into. Shared: nothing of it is kept between reads.
    read_buf: Vec<u8>,
}

impl Lane {
    fn connect(address: SocketAddr, connections: usize, core: Option<Cores>) -> Result<Lane> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let connections = (0..connections)
            .map(|_| {
                let stream = TcpStream::connect(address).context("connect to the server")?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Ok(Connection::new(stream))
            })
            .collect::<Result<Vec<_>>>()?;
        for (index, connection) in connections.iter().enumerate() {
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&epoll, &connection.stream, data, epoll::EventFlags::IN)?;
        }
        Ok(Lane { core, epoll, connections, read_buf: vec![0; READ_BYTES] })
    }

    fn drive(&mut self, batches: &BatchSource<'_>) -> Result<Tally> {
        if let Some(core) = &self.core {
            core.pin_this_thread()?;
        }
        let mut tally = Tally::new(batches.connections);
        let mut current: Vec<Option<Outstanding<'_>>> = Vec::new();
        let mut busy = 0;
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let begun = connection.begin(batches, Instant::now(), &self.epoll, index)?;
            busy += usize::from(begun.is_some());
            current.push(begun);
        }
        let timeout = Timespec { tv_sec: REPLY_TIMEOUT_S, tv_nsec: 0 };
        let mut events = Vec::with_capacity(self.connections.len());
        while busy > 0 {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            ensure!(!events.is_empty(), "no reply for {REPLY_TIMEOUT_S} s");
            for event in events.drain(..) {
                let index = event.data.u64() as usize;
                let connection = &mut self.connections[index];
                let Some(outstanding) = &mut current[index] else {
                    bail!("the server sent what nobody asked for, or closed a connection");
                };
                let flags = event.flags;
                if flags.contains(epoll::EventFlags::OUT) {
                    connection.send(outstanding, &self.epoll, index)?;
                }
                if flags == epoll::EventFlags::OUT
                    || !connection.receive(outstanding, &mut self.read_buf)?
                {
                    continue;
                }
                let now = Instant::now();
                let latency_ns = now.duration_since(outstanding.started).as_nanos() as u64;
                let slow = SlowBatch { latency_ns, sequence: outstanding.sequence };
                tally.record(outstanding.replies, slow);
                current[index] = connection.begin(batches, now, &self.epoll, index)?;
                busy -= usize::from(current[index].is_none());
            }
        }
        tally.nulls = self.connections.iter_mut().map(|each| each.skipper.take_nulls()).sum();
        Ok(tally)
    }
}

/// A batch on its way.
#[derive(Debug)]
struct Outstanding<'a> {
    sequence: usize,
    started: Instant,
    unsent: &'a [u8],
    replies: usize,
    owed: usize,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    skipper: ReplySkipper,
    /// Whether epoll is asked to tell when there is room to write.
    wants_room: bool,
}

impl Connection {
    fn new(stream: TcpStream) -> Connection {
        Connection { stream, skipper: ReplySkipper::default(), wants_room: false }
    }

    /// Sends the next batch, or returns `None` when there is none.
    fn begin<'a>(
        &mut self,
        batches: &BatchSource<'a>,
        now: Instant,
        epoll: &OwnedFd,
        index: usize,
    ) -> Result<Option<Outstanding<'a>>> {
        let Some((sequence, unsent, replies)) = batches.take(now) else { return Ok(None) };
        let mut batch = Outstanding { sequence, started: now, unsent, replies, owed: replies };
        self.send(&mut batch, epoll, index)?;
        Ok(Some(batch))
    }

    /// Writes what the socket takes, and asks epoll for more room if that is not all.
    fn send(&mut self, batch: &mut Outstanding<'_>, epoll: &OwnedFd, index: usize) -> Result<()> {
        while !batch.unsent.is_empty() {
            match self.stream.write(batch.unsent) {
                Ok(written) => batch.unsent = &batch.unsent[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("send a batch"),
            }
        }
        let wants_room = !batch.unsent.is_empty();
        if wants_room != self.wants_room {
            self.wants_room = wants_room;
            let mut flags = epoll::EventFlags::IN;
            flags.set(epoll::EventFlags::OUT, wants_room);
            epoll::modify(epoll, &self.stream, epoll::EventData::new_u64(index as u64), flags)?;
        }
        Ok(())
    }

    /// Reads once; true when the batch's last reply is complete.
    fn receive(&mut self, batch: &mut Outstanding<'_>, buf: &mut [u8]) -> Result<bool> {
        let read = match self.stream.read(buf) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error).context("read replies"),
        };
        let complete = self.skipper.skip(&buf[..read])?;
        ensure!(complete <= batch.owed, "more replies than requests");
        batch.owed -= complete;
        Ok(batch.owed == 0)
    }
}

/// Counts complete replies in a RESP2 or RESP3 stream that arrives in pieces.
#[derive(Debug)]
struct ReplySkipper {
    /// Elements still missing from the reply at hand; aggregates add theirs to it.
    missing: u64,
    /// Bytes of a bulk string and its line end that have not arrived.
    bulk_left: usize,
    /// A line whose end has not arrived.
    line: Vec<u8>,
    nulls: u64,
}

impl Default for ReplySkipper {
    fn default() -> ReplySkipper {
        ReplySkipper { missing: 1, bulk_left: 0, line: Vec::new(), nulls: 0 }
    }
}

impl ReplySkipper {
    /// Takes in `chunk` and returns how many replies it completed.
    fn skip(&mut self, mut chunk: &[u8]) -> Result<usize> {
        let mut complete = 0;
        while !chunk.is_empty() {
            if self.bulk_left > 0 {
                let step = self.bulk_left.min(chunk.len());
                self.bulk_left -= step;
                chunk = &chunk[step..];
                if self.bulk_left > 0 {
                    break;
                }
                complete += self.element();
                continue;
            }
            let Some(end) = chunk.iter().position(|&byte| byte == b'\n') else {
                ensure!(self.line.len() + chunk.len() <= LINE_MAX, "a reply line is too long");
                self.line.extend_from_slice(chunk);
                break;
            };
            let (line, rest) = chunk.split_at(end + 1);
            chunk = rest;
            if self.line.is_empty() {
                complete += self.header(line)?;
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                complete += self.header(&whole)?;
            }
        }
        Ok(complete)
    }

    /// Nulls seen since the last call.
    fn take_nulls(&mut self) -> u64 {
        std::mem::take(&mut self.nulls)
    }

    /// Takes in one line with its end and returns 1 if it completes a reply.
    fn header(&mut self, line: &[u8]) -> Result<usize> {
        let text = || String::from_utf8_lossy(line).trim_end().to_owned();
        let count = || -> Result<Option<u64>> {
            let number = line[1..].strip_suffix(b"\r\n").and_then(|digits| {
                std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i64>().ok())
            });
            let number = number.with_context(|| format!("reply with a bad length: {}", text()))?;
            Ok(u64::try_from(number).ok())
        };
        match line[0] {
            b'+' | b':' | b'#' | b',' | b'(' => Ok(self.element()),
            b'_' => Ok(self.null()),
            b'-' => bail!("the server replied with an error: {}", text()),
            b'$' | b'=' => match count()? {
                Some(length) => {
                    self.bulk_left = length as usize + 2;
                    Ok(0)
                }
                None => Ok(self.null()),
            },
            b'*' | b'~' | b'>' => match count()? {
                Some(elements) => Ok(self.aggregate(elements)),
                None => Ok(self.null()),
            },
            b'%' => Ok(self.aggregate(2 * count()?.unwrap_or(0))),
            _ => bail!("not a reply: {}", text()),
        }
    }

    fn null(&mut self) -> usize {
        self.nulls += 1;
        self.element()
    }

    fn aggregate(&mut self, elements: u64) -> usize {
        self.missing += elements;
        self.element()
    }

    /// Notes the end of one element; 1 if that completes the reply.
    fn element(&mut self) -> usize {
        self.missing -= 1;
        if self.missing > 0 {
            return 0;
        }
        self.missing = 1;
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"+OK\r\n:12\r\n$5\r\na\r\nbc\r\n$-1\r\n*2\r\n$1\r\nx\r\n*1\r\n:3\r\n\
        *0\r\n%1\r\n+k\r\n_\r\n$0\r\n\r\n*-1\r\n";

    #[test]
    fn replies_are_counted_wherever_the_stream_is_cut() {
        for cut in 0..=STREAM.len() {
            let mut skipper = ReplySkipper::default();
            let (head, tail) = STREAM.split_at(cut);
            let complete = skipper.skip(head).unwrap() + skipper.skip(tail).unwrap();
            assert_eq!((complete, skipper.nulls), (9, 3), "cut at {cut}");
        }
        let mut skipper = ReplySkipper::default();
        let complete: usize = STREAM.chunks(1).map(|byte| skipper.skip(byte).unwrap()).sum();
        assert_eq!(complete, 9);
    }

    #[test]
    fn errors_and_nonsense_end_the_run() {
        for (bytes, text) in [
            (b"+OK\r\n-ERR no\r\n".as_slice(), "the server replied with an error: -ERR no"),
            (b"$x\r\n", "reply with a bad length: $x"),
            (b"HTTP/1.1\r\n", "not a reply: HTTP/1.1"),
        ] {
            assert_eq!(ReplySkipper::default().skip(bytes).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn the_slowest_batches_are_remembered_in_order() {
        let mut tally = Tally::new(0);
        for sequence in 0..100 {
            let latency_ns = (sequence as u64 * 37) % 100 + 1;
            tally.record(1, SlowBatch { latency_ns, sequence });
        }
        let latencies: Vec<u64> = tally.worst.iter().map(|slow| slow.latency_ns).collect();
        let want: Vec<u64> = (0..WORST_MAX as u64).map(|below| 100 - below).collect();
        assert_eq!(latencies, want);
    }

    #[test]
    fn a_stall_is_remembered_once() {
        let mut tally = Tally::new(3);
        for (sequence, latency_ns) in [(10, 500), (11, 700), (12, 600), (13, 400), (50, 300)] {
            tally.record(1, SlowBatch { latency_ns, sequence });
        }
        let sequences: Vec<usize> = tally.worst.iter().map(|slow| slow.sequence).collect();
        assert_eq!(sequences, [11, 50]);
    }

    const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

    /// A server of PINGs that hangs up on a connection after `replies_max`; returns how many
    /// replies it sent on `connections` connections.
    fn serve_pings(
        connections: usize,
        replies_max: usize,
    ) -> (SocketAddr, thread::JoinHandle<usize>) {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let serve = move |mut stream: TcpStream| {
                let mut request = [0; PING.len()];
                let mut replies = 0;
                while replies < replies_max && stream.read_exact(&mut request).is_ok() {
                    assert_eq!(request, PING);
                    stream.write_all(b"+PONG\r\n").unwrap();
                    replies += 1;
                }
                replies
            };
            let threads: Vec<_> = (0..connections)
                .map(|_| listener.accept().unwrap().0)
                .map(|stream| thread::spawn(move || serve(stream)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        (address, server)
    }

    #[test]
    fn each_request_is_sent_once_and_answered() {
        let (address, server) = serve_pings(5, usize::MAX);
        let mut fleet = Fleet::connect(address, 5, 2, None).unwrap();
        let mut requests = Requests::new(4);
        for _ in 0..102 {
            requests.push(&[b"PING"]);
        }
        requests.close();
        let outcome = fleet.run(&requests, Until::Sent).unwrap();
        assert_eq!((outcome.commands, outcome.latency_ns.len()), (102, 26));
        drop(fleet);
        assert_eq!(server.join().unwrap(), 5 + 102, "one PING per connection to warm up");
    }

    #[test]
    fn a_server_that_hangs_up_ends_the_run() {
        let (address, server) = serve_pings(1, 3);
        let mut fleet = Fleet::connect(address, 1, 1, None).unwrap();
        let mut requests = Requests::new(1);
        for _ in 0..10 {
            requests.push(&[b"PING"]);
        }
        assert!(fleet.run(&requests, Until::Sent).is_err());
        assert_eq!(server.join().unwrap(), 3);
    }
}
