//! SLOWLOG: the commands that took longer than `slowlog-log-slower-than`.

use std::collections::VecDeque;

use kiln_base::sync::Mutex;
use kiln_resp::Args;

use crate::clients::Client;

/// Most words of a command that an entry keeps, as in Redis.
const WORDS_MAX: usize = 32;
/// Most bytes of a word that an entry keeps, as in Redis.
const WORD_BYTES_MAX: usize = 128;

/// One slow command.
#[derive(Clone, Debug)]
pub struct SlowEntry {
    /// Unique and ascending.
    pub id: u64,
    /// When it ran, in seconds since the Unix epoch.
    pub time_s: i64,
    /// How long it took.
    pub duration_us: u64,
    /// Its words, shortened.
    pub words: Vec<Vec<u8>>,
    /// Who sent it.
    pub addr: String,
    /// That client's name.
    pub client_name: Vec<u8>,
}

/// The log, newest first.
#[derive(Debug, Default)]
pub struct SlowLog(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    list: VecDeque<SlowEntry>,
    next_id: u64,
}

impl SlowLog {
    /// Adds a command, forgetting the oldest beyond `max_len`.
    pub fn add(
        &self,
        args: &Args<'_>,
        client: &Client,
        time_s: i64,
        duration_us: u64,
        max_len: usize,
    ) {
        let words = shortened(args);
        let client_name = client.info.lock().name.clone();
        let mut entries = self.0.lock();
        let id = entries.next_id;
        entries.next_id += 1;
        let addr = client.addr.clone();
        entries.list.push_front(SlowEntry { id, time_s, duration_us, words, addr, client_name });
        entries.list.truncate(max_len);
    }

    /// The newest `count` entries.
    pub fn newest(&self, count: usize) -> Vec<SlowEntry> {
        self.0.lock().list.iter().take(count).cloned().collect()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.lock().list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all entries; ids go on.
    pub fn reset(&self) {
        self.0.lock().list.clear();
    }
}

fn shortened(args: &Args<'_>) -> Vec<Vec<u8>> {
    let count = args.len();
    let kept = if count > WORDS_MAX { WORDS_MAX - 1 } else { count };
    let mut words: Vec<_> = args.iter().take(kept).map(shorten).collect();
    if kept < count {
        words.push(format!("... ({} more arguments)", count - kept).into_bytes());
    }
    words
}

fn shorten(word: &[u8]) -> Vec<u8> {
    if word.len() <= WORD_BYTES_MAX {
        return word.to_vec();
    }
    let mut short = word[..WORD_BYTES_MAX].to_vec();
    short.extend_from_slice(format!("... ({} more bytes)", word.len() - WORD_BYTES_MAX).as_bytes());
    short
}
