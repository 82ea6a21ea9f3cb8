//! What is sent: commands, keys, values, and the requests made of them ahead of time.
//!
//! A key has 16 bytes: four of prefix, twelve of decimal number. Each type has a prefix of its own,
//! so that no command meets a value of another command's type. Values are slices of one block of
//! random bytes, cut at random places: incompressible, and cheap to make.
//!
//! Skewed keys follow Gray et al., "Quickly generating billion-record synthetic databases" (SIGMOD
//! 1994), which draws in constant time for a skew below 1. Ranks are scattered over the key space,
//! so the hot keys are not neighbors.

use std::io::Write as _;
use std::ops::Range;

use clap::ValueEnum;
use rand::rngs::SmallRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};

/// Largest key space; keeps products of two key numbers within 64 bits.
pub const KEYS_MAX: u64 = u32::MAX as u64;

/// Keys that one MGET or MSET names.
pub const KEYS_PER_MULTI: u64 = 10;

/// Prefix of the string keys that SET, GET, MGET, MSET and APPEND share.
pub const STRING_PREFIX: &str = "key:";

/// Random bytes that values are cut from: many times a value, yet within the second-level cache.
const VALUE_POOL_BYTES: usize = 64 * 1024;

/// A command of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Command {
    /// GET of a random key.
    Get,
    /// SET of a random key.
    Set,
    /// MGET of ten random keys.
    Mget,
    /// MSET of ten random keys.
    Mset,
    /// APPEND of a value to a random key.
    Append,
    /// SETNX of a random key.
    Setnx,
    /// INCR of a random key.
    Incr,
    /// LPUSH of a value to a random list.
    Lpush,
    /// RPUSH of a value to a random list.
    Rpush,
    /// SADD of a random member to a random set.
    Sadd,
    /// HSET of a random field in a random hash.
    Hset,
    /// PING.
    Ping,
}

impl Command {
    /// Every command. The first five work on the same loaded keys, the others start empty.
    pub const ALL: [Command; 12] = [
        Command::Get,
        Command::Set,
        Command::Mget,
        Command::Mset,
        Command::Append,
        Command::Setnx,
        Command::Incr,
        Command::Lpush,
        Command::Rpush,
        Command::Sadd,
        Command::Hset,
        Command::Ping,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Command::Get => "GET",
            Command::Set => "SET",
            Command::Mget => "MGET",
            Command::Mset => "MSET",
            Command::Append => "APPEND",
            Command::Setnx => "SETNX",
            Command::Incr => "INCR",
            Command::Lpush => "LPUSH",
            Command::Rpush => "RPUSH",
            Command::Sadd => "SADD",
            Command::Hset => "HSET",
            Command::Ping => "PING",
        }
    }

    /// How many keys one command touches, and at least 1: the divisor for figures per key.
    pub const fn keys(self) -> u64 {
        match self {
            Command::Mget | Command::Mset => KEYS_PER_MULTI,
            _ => 1,
        }
    }

    /// Whether it works on the loaded string keys; the other commands start with an empty server.
    pub const fn wants_loaded_keys(self) -> bool {
        matches!(
            self,
            Command::Get | Command::Set | Command::Mget | Command::Mset | Command::Append
        )
    }

    /// Whether a null in a reply means that the loaded keys are not there.
    pub const fn reads_loaded_keys(self) -> bool {
        matches!(self, Command::Get | Command::Mget)
    }
}

/// Keys and values that requests are drawn from.
#[derive(Clone, Debug)]
pub struct KeySpace {
    keys: u64,
    zipf: Option<Zipf>,
    value_bytes: usize,
    value_pool: Vec<u8>,
}

impl KeySpace {
    /// `keys` keys with values of `value_bytes`, drawn evenly or with `skew` in 0..1 (exclusive).
    ///
    /// # Panics
    ///
    /// If `keys` is 0 or above [`KEYS_MAX`], or `skew` is out of range: the command line checks.
    pub fn new(keys: u64, value_bytes: usize, skew: Option<f64>) -> KeySpace {
        assert!(keys > 0 && keys <= KEYS_MAX, "key space out of range");
        let mut value_pool = vec![0; VALUE_POOL_BYTES + value_bytes];
        SmallRng::seed_from_u64(keys).fill_bytes(&mut value_pool);
        KeySpace { keys, zipf: skew.map(|skew| Zipf::new(keys, skew)), value_bytes, value_pool }
    }

    /// How many keys there are.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    fn pick(&self, rng: &mut SmallRng) -> u64 {
        match &self.zipf {
            Some(zipf) => zipf.pick(rng.random()),
            None => rng.random_range(0..self.keys),
        }
    }

    fn value(&self, rng: &mut SmallRng) -> &[u8] {
        let start = rng.random_range(0..VALUE_POOL_BYTES);
        &self.value_pool[start..][..self.value_bytes]
    }
}

/// A bijection of `0..keys` onto itself that sends neighbors far apart.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    keys: u64,
    step: u64,
}

impl Scatter {
    /// For `keys` of at least 1.
    pub fn new(keys: u64) -> Scatter {
        // Steps near the golden ratio spread most evenly; a coprime one gives a bijection.
        let golden = (keys as f64 * 0.618_033_988_749_895) as u64;
        let step = (golden.max(1)..=keys + 1)
            .find(|&step| gcd(step, keys) == 1)
            .expect("keys + 1 shares no factor with keys");
        Scatter { keys, step }
    }

    /// Where `index` goes.
    pub fn apply(self, index: u64) -> u64 {
        index * self.step % self.keys
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Draws rank r with a probability proportional to `1 / (r + 1)^skew`.
#[derive(Clone, Debug)]
struct Zipf {
    keys: u64,
    zeta: f64,
    alpha: f64,
    eta: f64,
    second: f64,
    scatter: Scatter,
}

impl Zipf {
    /// Sums `keys` terms: about 20 ms for a million.
    fn new(keys: u64, skew: f64) -> Zipf {
        assert!(skew > 0.0 && skew < 1.0, "skew out of range");
        let zeta: f64 = (1..=keys).map(|rank| (rank as f64).powf(-skew)).sum();
        let second = 1.0 + 0.5_f64.powf(skew);
        let eta = (1.0 - (2.0 / keys as f64).powf(1.0 - skew)) / (1.0 - second / zeta);
        Zipf { keys, zeta, alpha: 1.0 / (1.0 - skew), eta, second, scatter: Scatter::new(keys) }
    }

    /// The rank for `uniform` in 0..1; 0 is the hottest.
    fn rank(&self, uniform: f64) -> u64 {
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < self.second {
            return 1.min(self.keys - 1);
        }
        let rank = self.keys as f64 * (self.eta * (uniform - 1.0) + 1.0).powf(self.alpha);
        (rank as u64).min(self.keys - 1)
    }

    fn pick(&self, uniform: f64) -> u64 {
        self.scatter.apply(self.rank(uniform))
    }
}

/// Requests in wire format, cut into batches that are sent in one piece each.
#[derive(Debug)]
pub struct Requests {
    bytes: Vec<u8>,
    /// Where each full batch ends in `bytes`.
    batch_ends: Vec<usize>,
    pipeline: usize,
    /// Commands in the batch that is not full yet.
    open: usize,
    commands: u64,
}

impl Requests {
    /// No requests yet, to be sent `pipeline` at a time.
    pub fn new(pipeline: usize) -> Requests {
        assert!(pipeline > 0, "a batch holds at least one command");
        Requests { bytes: Vec::new(), batch_ends: Vec::new(), pipeline, open: 0, commands: 0 }
    }

    /// `count` times `command`, rounded up to whole batches. The same `seed` gives the same bytes.
    pub fn random(
        command: Command,
        space: &KeySpace,
        pipeline: usize,
        count: u64,
        seed: u64,
    ) -> Requests {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut requests = Requests::new(pipeline);
        let count = count.next_multiple_of(pipeline as u64);
        for _ in 0..count {
            requests.push_random(command, space, &mut rng);
        }
        requests
    }

    /// SET of each key whose number is in `numbers`, in an order that `scatter` gives.
    pub fn fill(
        space: &KeySpace,
        scatter: Option<Scatter>,
        numbers: Range<u64>,
        pipeline: usize,
    ) -> Requests {
        let mut rng = SmallRng::seed_from_u64(numbers.start);
        let mut requests = Requests::new(pipeline);
        for number in numbers {
            let number = scatter.map_or(number, |scatter| scatter.apply(number));
            requests.push(&[b"SET", &key(STRING_PREFIX, number), space.value(&mut rng)]);
        }
        requests.close();
        requests
    }

    /// Adds one command.
    pub fn push(&mut self, words: &[&[u8]]) {
        let to = &mut self.bytes;
        write_header(to, b'*', words.len());
        for word in words {
            write_header(to, b'$', word.len());
            to.extend_from_slice(word);
            to.extend_from_slice(b"\r\n");
        }
        self.commands += 1;
        self.open += 1;
        if self.open == self.pipeline {
            self.close();
        }
    }

    /// Ends a batch that is not full: without this its commands are not sent.
    pub fn close(&mut self) {
        if self.open > 0 {
            self.batch_ends.push(self.bytes.len());
            self.open = 0;
        }
    }

    /// How many batches there are.
    pub fn batches(&self) -> usize {
        self.batch_ends.len()
    }

    /// The bytes of batch `index`, and how many replies they call for.
    pub fn batch(&self, index: usize) -> (&[u8], usize) {
        let start = index.checked_sub(1).map_or(0, |before| self.batch_ends[before]);
        let full = index + 1 < self.batch_ends.len();
        let replies = if full { self.pipeline } else { self.last_batch_commands() };
        (&self.bytes[start..self.batch_ends[index]], replies)
    }

    /// How many commands there are.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// How many commands a full batch holds.
    pub fn pipeline(&self) -> usize {
        self.pipeline
    }

    fn last_batch_commands(&self) -> usize {
        match self.commands as usize % self.pipeline {
            0 => self.pipeline,
            rest => rest,
        }
    }

    fn push_random(&mut self, command: Command, space: &KeySpace, rng: &mut SmallRng) {
        let name = command.name().as_bytes();
        let random_key = |rng: &mut SmallRng, prefix| key(prefix, space.pick(rng));
        match command {
            Command::Ping => self.push(&[name]),
            Command::Get => self.push(&[name, &random_key(rng, STRING_PREFIX)]),
            Command::Incr => self.push(&[name, &random_key(rng, "cnt:")]),
            Command::Set | Command::Append => {
                self.push(&[name, &random_key(rng, STRING_PREFIX), space.value(rng)]);
            }
            Command::Setnx => self.push(&[name, &random_key(rng, "snx:"), space.value(rng)]),
            Command::Lpush => self.push(&[name, &random_key(rng, "lpu:"), space.value(rng)]),
            Command::Rpush => self.push(&[name, &random_key(rng, "rpu:"), space.value(rng)]),
            Command::Sadd => {
                self.push(&[name, &random_key(rng, "set:"), &random_key(rng, "mem:")]);
            }
            Command::Hset => {
                let (hash, field) = (random_key(rng, "hsh:"), random_key(rng, "fld:"));
                self.push(&[name, &hash, &field, space.value(rng)]);
            }
            Command::Mget => {
                let keys: [_; KEYS_PER_MULTI as usize] =
                    std::array::from_fn(|_| random_key(rng, STRING_PREFIX));
                let mut words = vec![name];
                words.extend(keys.iter().map(<[u8; KEY_BYTES]>::as_slice));
                self.push(&words);
            }
            Command::Mset => {
                let pairs: [_; KEYS_PER_MULTI as usize] =
                    std::array::from_fn(|_| (random_key(rng, STRING_PREFIX), space.value(rng)));
                let mut words = vec![name];
                words.extend(pairs.iter().flat_map(|(key, value)| [key.as_slice(), value]));
                self.push(&words);
            }
        }
    }
}

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// The key with this number: a prefix of four bytes and twelve digits.
pub fn key(prefix: &str, number: u64) -> [u8; KEY_BYTES] {
    let mut key = [b'0'; KEY_BYTES];
    key[..4].copy_from_slice(prefix.as_bytes());
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn write_header(to: &mut Vec<u8>, kind: u8, count: usize) {
    to.push(kind);
    write!(to, "{count}\r\n").expect("writing to a Vec cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_cut_into_batches() {
        let mut requests = Requests::new(2);
        for word in [b"A", b"B", b"C"] {
            requests.push(&[word]);
        }
        requests.close();
        assert_eq!(requests.batches(), 2);
        assert_eq!(requests.batch(0), (b"*1\r\n$1\r\nA\r\n*1\r\n$1\r\nB\r\n".as_slice(), 2));
        assert_eq!(requests.batch(1), (b"*1\r\n$1\r\nC\r\n".as_slice(), 1));
        assert_eq!(requests.commands(), 3);
    }

    #[test]
    fn every_command_has_the_form_redis_expects() {
        let space = KeySpace::new(10, 64, None);
        for command in Command::ALL {
            let requests = Requests::random(command, &space, 4, 5, 1);
            assert_eq!((requests.commands(), requests.batches()), (8, 2), "{command:?}");
            let words = match command {
                Command::Ping => 1,
                Command::Get | Command::Incr => 2,
                Command::Hset => 4,
                Command::Mget => 11,
                Command::Mset => 21,
                _ => 3,
            };
            let start = format!("*{words}\r\n${}\r\n{}\r\n", command.name().len(), command.name());
            assert!(requests.batch(1).0.starts_with(start.as_bytes()), "{command:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_requests() {
        let space = KeySpace::new(1_000, 64, Some(0.99));
        let bytes = |seed| Requests::random(Command::Set, &space, 16, 100, seed).bytes;
        assert_eq!(bytes(7), bytes(7));
        assert_ne!(bytes(7), bytes(8));
    }

    #[test]
    fn keys_are_numbered_in_twelve_digits() {
        assert_eq!(&key("key:", 0), b"key:000000000000");
        assert_eq!(&key("cnt:", 1_234_567), b"cnt:000001234567");
    }

    #[test]
    fn scatter_is_a_bijection() {
        for keys in [1, 2, 10, 997, 1_000, 4_096] {
            let scatter = Scatter::new(keys);
            let mut seen: Vec<u64> = (0..keys).map(|index| scatter.apply(index)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..keys), "{keys}");
        }
    }

    #[test]
    fn zipf_follows_its_law() {
        let (keys, skew, draws) = (1_000, 0.99, 200_000);
        let zipf = Zipf::new(keys, skew);
        let mut rng = SmallRng::seed_from_u64(1);
        let mut counts = vec![0_u64; keys as usize];
        for _ in 0..draws {
            counts[zipf.rank(rng.random()) as usize] += 1;
        }
        let zeta: f64 = (1..=keys).map(|rank| (rank as f64).powf(-skew)).sum();
        // The method is exact for the two hottest ranks and close in sums over the others.
        for rank in [0_usize, 1] {
            let want = ((rank + 1) as f64).powf(-skew) / zeta;
            let got = counts[rank] as f64 / f64::from(draws);
            assert!((got / want - 1.0).abs() < 0.05, "rank {rank}: {got} for {want}");
        }
        let head: f64 = (1..=100).map(|rank| f64::from(rank).powf(-skew)).sum::<f64>() / zeta;
        let got = counts[..100].iter().sum::<u64>() as f64 / f64::from(draws);
        assert!((got / head - 1.0).abs() < 0.05, "head: {got} for {head}");
        assert!(counts.iter().all(|&count| count > 0), "the tail is reached");
    }
}
