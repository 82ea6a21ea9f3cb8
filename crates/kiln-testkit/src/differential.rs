//! The differential test: the same random commands to Kiln and to a peer, replies and states
//! compared.
//!
//! Commands come in blocks of [`BLOCK`], each from a seed of its own and on fresh connections to
//! emptied servers, so that any block replays alone. Within a block, runs of commands on one
//! connection are pipelined to both servers at once. At its end the whole contents of both are read
//! back and compared.
//!
//! A difference ends its block (unless both replies are errors, which change nothing), is shrunk to
//! the fewest commands that still show it, and printed as lines for redis-cli. Differences with the
//! same command and the same kind of replies are one: the first is printed, the others counted.

mod shrink;
mod side;
mod state;

use std::collections::BTreeMap;
use std::io::{self, Write};

pub use self::side::Target;
use self::side::{Answers, Side};
use crate::generate::{Family, Generator, Random, SESSIONS, Step, upper};
use crate::normalize::Rule;
use crate::reply::Reply;
use crate::script;

/// Commands between two comparisons of the whole state.
pub const BLOCK: usize = 500;

/// Pipelined commands, and their bytes, at most. Few enough for the sockets' buffers to hold: the
/// test writes a whole batch to both servers before it reads.
const BATCH_COMMANDS: usize = 64;
const BATCH_BYTES: usize = 16 * 1024;

/// How many commands before the one that broke the peer are worth a look.
const RECENT: usize = 10;

/// Longer texts are cut in reports.
const REPORT_BYTES: usize = 1_500;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server under test.
    pub kiln: Target,
    /// The server that is right.
    pub peer: Target,
    /// How many commands.
    pub commands: usize,
    /// Where the first block starts.
    pub seed: u64,
    /// Configuration of the servers that this test starts: directives with `--` before them.
    pub server_args: Vec<String>,
    /// Which commands.
    pub families: Vec<Family>,
    /// Protocol versions, used in turn.
    pub protocols: Vec<u8>,
    /// Stop after this many different differences.
    pub stop_after: usize,
    /// Leave out commands that Kiln does not know, and the states if they cannot be read.
    pub known_only: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Commands sent to each server.
    pub commands: usize,
    /// How often each kind of difference was seen.
    pub differences: BTreeMap<String, usize>,
}

/// One difference.
#[derive(Clone, Debug)]
struct Difference {
    /// The command that showed it; none if the states differ afterwards.
    step: Option<usize>,
    /// The command, or the part of the state.
    what: String,
    kiln: String,
    peer: String,
    /// Equal for differences that are probably one bug.
    signature: String,
}

/// Runs the test and writes a report of each new kind of difference to `out`.
///
/// Fails if a server cannot be started or the peer breaks; whatever Kiln does is a difference.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<Summary> {
    let mut pair = Pair::start(options)?;
    let mut summary = Summary::default();
    let mut block = 0;
    while summary.commands < options.commands && summary.differences.len() < options.stop_after {
        let seed = block_seed(options.seed, block);
        let protocol = options.protocols[block as usize % options.protocols.len()];
        let count = BLOCK.min(options.commands - summary.commands);
        let mut generator = Generator::new(seed, &options.families);
        let mut steps: Vec<_> = (0..count).map(|_| generator.step()).collect();
        let mut with_state = true;
        if options.known_only {
            let mut known = Vec::with_capacity(steps.len());
            for step in steps {
                if pair.kiln.knows(&step.words[0])? {
                    known.push(step);
                }
            }
            steps = known;
            for name in state::COMMANDS {
                with_state &= pair.kiln.knows(name.as_bytes())?;
            }
        }
        let (done, differences) = pair.replay(&steps, protocol, with_state)?;
        summary.commands += done;
        block += 1;
        for difference in differences {
            if pair.is_due_to_sort(&steps, protocol, &difference)? {
                continue;
            }
            let seen = summary.differences.entry(difference.signature.clone()).or_default();
            *seen += 1;
            if *seen == 1 {
                let until = difference.step.map_or(done, |step| step + 1);
                let steps = shrink::shrink(&mut pair, &steps[..until], protocol, &difference)?;
                let mut replay = format!("--seed {seed} --resp {protocol} --commands {count}");
                if options.families.len() < Family::all().len() {
                    let names: Vec<_> = options.families.iter().map(Family::to_string).collect();
                    replay.push_str(" --families ");
                    replay.push_str(&names.join(","));
                }
                report(out, &difference, &steps, &replay)?;
            }
        }
    }
    Ok(summary)
}

/// The first block has the seed given, so that a printed seed replays its block.
fn block_seed(seed: u64, block: u64) -> u64 {
    if block == 0 { seed } else { Random::new(seed ^ block.rotate_left(32)).bits() >> 16 }
}

/// Kiln and its peer.
struct Pair {
    kiln: Side,
    peer: Side,
}

impl Pair {
    fn start(options: &Options) -> io::Result<Self> {
        Ok(Self {
            kiln: Side::start(&options.kiln, &options.server_args)?,
            peer: Side::start(&options.peer, &options.server_args)?,
        })
    }

    /// Runs `steps` on emptied servers until a difference may have changed the state; then, if
    /// asked to and if there was none, compares the states. Returns how many steps were run as
    /// well.
    fn replay(
        &mut self,
        steps: &[Step],
        protocol: u8,
        with_state: bool,
    ) -> io::Result<(usize, Vec<Difference>)> {
        self.peer.reset(protocol)?;
        if let Err(error) = self.kiln.reset(protocol) {
            return Ok((
                steps.len(),
                vec![lost(None, "a fresh connection", &error, &mut self.kiln)],
            ));
        }
        let mut differences = Vec::new();
        let mut transactions = vec![Transaction::default(); SESSIONS];
        let mut at = 0;
        while at < steps.len() {
            let batch = &steps[at..at + batch_length(&steps[at..])];
            self.kiln.send(batch);
            self.peer.send(batch);
            let peer = self.peer.receive(batch);
            let kiln = self.kiln.receive(batch);
            if let Some(error) = peer.lost {
                let log = self.peer.log();
                let last = at + peer.replies.len();
                let recent = &steps[last.saturating_sub(RECENT)..=last];
                let command = recent
                    .iter()
                    .map(|step| script::join(&step.words))
                    .collect::<Vec<_>>()
                    .join("\nat ");
                let message = format!("the peer broke: {error}\nat {command}\n{log}");
                return Err(io::Error::new(error.kind(), message));
            }
            let fatal =
                self.compare(batch, at, &kiln, &peer.replies, &mut transactions, &mut differences);
            at += batch.len();
            if fatal {
                return Ok((at, differences));
            }
        }
        if with_state {
            let peer = self.peer.state()?;
            differences.extend(match self.kiln.state() {
                Ok(kiln) => state::compare(&kiln, &peer),
                Err(error) => vec![lost(None, "reading the state", &error, &mut self.kiln)],
            });
        }
        Ok((steps.len(), differences))
    }

    /// Whether a sorted set is small at Kiln and large at the peer only because it was sorted: SORT
    /// leaves a large encoding behind at Redis, which nobody wants and Kiln does not imitate.
    fn is_due_to_sort(
        &mut self,
        steps: &[Step],
        protocol: u8,
        difference: &Difference,
    ) -> io::Result<bool> {
        let what = difference.what.to_ascii_uppercase();
        let is_encoding = what.contains("OBJECT ENCODING")
            && (difference.kiln.as_str(), difference.peer.as_str())
                == ("\"listpack\"", "\"skiplist\"");
        // ZSCAN prints the scores of a large one otherwise; a small one forgets the sign of zero.
        let unsigned =
            |text: &str| text.replace("-0\"", "0\"").replace("(double) -0", "(double) 0");
        let is_candidate = is_encoding
            || what.starts_with("ZSCAN")
            || unsigned(&difference.kiln) == unsigned(&difference.peer);
        if !is_candidate {
            return Ok(false);
        }
        let sorts = |step: &&Step| !upper(&step.words[0]).starts_with("SORT");
        let others: Vec<_> = steps.iter().filter(sorts).cloned().collect();
        let (_, differences) = self.replay(&others, protocol, true)?;
        Ok(!differences.iter().any(|other| other.signature == difference.signature))
    }

    /// Compares the replies of one batch. True if the states may differ from here on.
    fn compare(
        &mut self,
        batch: &[Step],
        start: usize,
        kiln: &Answers,
        peer: &[Reply],
        transactions: &mut [Transaction],
        differences: &mut Vec<Difference>,
    ) -> bool {
        for (index, step) in batch.iter().enumerate() {
            let command = script::join(&step.words);
            let peer = &peer[index];
            let Some(kiln_reply) = kiln.replies.get(index) else {
                let error = kiln.lost.as_ref().expect("a missing reply has its error");
                differences.push(lost(Some(start + index), &command, error, &mut self.kiln));
                return true;
            };
            let ordered = step.iterate && !peer.is_error() && *peer != queued();
            let transaction = &mut transactions[step.session];
            for (words, kiln, peer) in transaction.parts(&step.words, kiln_reply, peer) {
                // `receive` has put the elements of an iteration's calls in order.
                let rule = if ordered { Rule::Exact } else { Rule::of(&words) };
                if rule.accepts(kiln, peer) {
                    continue;
                }
                differences.push(Difference {
                    step: Some(start + index),
                    what: script::join(&words),
                    kiln: kiln.to_string(),
                    peer: peer.to_string(),
                    signature: signature(&words, kiln, peer),
                });
                // Errors change nothing, and an encoding is no content.
                let harmless = kiln.is_error() && peer.is_error();
                if !harmless && upper(&words[0]) != "OBJECT" {
                    return true;
                }
            }
        }
        false
    }
}

/// How many steps go out together: a run on one connection, or one step that iterates.
fn batch_length(steps: &[Step]) -> usize {
    let mut bytes = 0;
    let fits = |step: &&Step| {
        bytes += step.words.iter().map(Vec::len).sum::<usize>();
        step.session == steps[0].session && !step.iterate && bytes < BATCH_BYTES
    };
    steps.iter().take(BATCH_COMMANDS).take_while(fits).count().max(1)
}

fn queued() -> Reply {
    Reply::Simple(b"QUEUED".to_vec())
}

/// What a connection has queued: EXEC's reply holds theirs.
#[derive(Clone, Default)]
struct Transaction {
    queue: Vec<Vec<Vec<u8>>>,
}

impl Transaction {
    /// The commands that a step's two replies belong to: its own, or those that EXEC ran.
    fn parts<'a>(
        &mut self,
        words: &[Vec<u8>],
        kiln: &'a Reply,
        peer: &'a Reply,
    ) -> Vec<(Vec<Vec<u8>>, &'a Reply, &'a Reply)> {
        let whole = vec![(words.to_vec(), kiln, peer)];
        if *peer == queued() {
            self.queue.push(words.to_vec());
            return whole;
        }
        match upper(&words[0]).as_str() {
            "EXEC" if !peer.is_error() => match (std::mem::take(&mut self.queue), kiln, peer) {
                (queue, Reply::Array(kiln), Reply::Array(peer)) if kiln.len() == peer.len() => {
                    let replies = kiln.iter().zip(peer);
                    queue
                        .into_iter()
                        .zip(replies)
                        .map(|(words, (kiln, peer))| (words, kiln, peer))
                        .collect()
                }
                _ => whole,
            },
            // A nested MULTI and a malformed EXEC leave the queue as it is.
            "EXEC" | "DISCARD" | "RESET"
                if peer.to_string().contains("EXECABORT") || !peer.is_error() =>
            {
                self.queue.clear();
                whole
            }
            _ => whole,
        }
    }
}

/// A connection that broke, hung or sent no RESP.
fn lost(step: Option<usize>, what: &str, error: &io::Error, kiln: &mut Side) -> Difference {
    let alive = if kiln.is_alive() { "still runs" } else { "has ended" };
    let name = what.split(' ').next().unwrap_or_default().to_ascii_uppercase();
    Difference {
        step,
        what: what.to_owned(),
        kiln: format!("connection lost: {error}; the server {alive}\n{}", tail(&kiln.log())),
        peer: "a reply".to_owned(),
        signature: format!("{name}: connection lost ({})", error.kind()),
    }
}

fn tail(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// Names a kind of difference: the command, and what either server said without its particulars.
fn signature(words: &[Vec<u8>], kiln: &Reply, peer: &Reply) -> String {
    let mut name = upper(&words[0]);
    if let ("OBJECT" | "CLIENT" | "CONFIG" | "COMMAND" | "PUBSUB", Some(word)) =
        (name.as_str(), words.get(1))
    {
        name = format!("{name} {}", upper(word));
    }
    let (kiln, peer) = (gist(kiln), gist(peer));
    if kiln == peer {
        format!("{name}: other {kiln}")
    } else {
        format!("{name}: {kiln} for {peer}")
    }
}

fn gist(reply: &Reply) -> String {
    let kind = match reply {
        Reply::Error(text) => {
            let text = String::from_utf8_lossy(text);
            // Quoted parts and everything after them are particulars.
            let end = text.find(['\'', '"', '`']).unwrap_or(text.len());
            return format!("-{}", &text[..end]);
        }
        Reply::Simple(text) => return format!("+{}", String::from_utf8_lossy(text)),
        Reply::Integer(_) => "integer",
        Reply::Bulk(_) => "string",
        Reply::NullBulk => "null string",
        Reply::NullArray => "null array",
        Reply::Null => "null",
        Reply::Double(_) => "double",
        Reply::Boolean(_) => "boolean",
        Reply::BigNumber(_) => "big number",
        Reply::Verbatim(..) => "verbatim string",
        Reply::Array(_) => "array",
        Reply::Set(_) => "set",
        Reply::Push(_) => "push",
        Reply::Map(_) => "map",
    };
    kind.to_owned()
}

fn report(
    out: &mut dyn Write,
    difference: &Difference,
    steps: &[Step],
    replay: &str,
) -> io::Result<()> {
    let place = difference.step.map_or("state".to_owned(), |step| format!("step {step}"));
    writeln!(out, "\n== {}\n   {place} of {replay}", difference.signature)?;
    for (name, text) in
        [("what", &difference.what), ("kiln", &difference.kiln), ("peer", &difference.peer)]
    {
        writeln!(out, "   {name}: {}", cut(text).replace('\n', "\n         "))?;
    }
    writeln!(out, "   shrunk to:")?;
    for step in steps {
        let connection = if step.session == 0 { "" } else { "   # on the second connection" };
        let iterate = if step.iterate { "   # to the end" } else { "" };
        writeln!(out, "     {}{connection}{iterate}", script::join(&step.words))?;
    }
    out.flush()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(REPORT_BYTES) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
