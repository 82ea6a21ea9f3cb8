//! What a command changed: the record that the executor reads after the handler.
//!
//! Watches are touched at once, under the shard lock (see [`crate::View::changed`]). Everything
//! else is collected here and acted on when the handler is done: events go to subscribers,
//! effects to the journal, ready keys wake blocked clients, garbage is freed without the lock.

use smallvec::SmallVec;

use crate::entry::Entry;
use crate::event::Event;

/// A change to a key, for keyspace notifications.
#[derive(Clone, Debug)]
pub struct KeyEvent {
    /// Database of the key.
    pub db: usize,
    /// What happened.
    pub event: Event,
    /// To which key.
    pub key: Box<[u8]>,
}

/// A deterministic command that, applied to a copy of the data, makes the same change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Database it applies to.
    pub db: usize,
    /// Command name and arguments.
    pub words: Vec<Box<[u8]>>,
}

/// The changes of one command or transaction.
#[derive(Default)]
pub struct Effects {
    /// Number of changes, as `rdb_changes_since_last_save` counts them.
    pub dirty: u64,
    /// Changes for subscribers, collected only for the classes in `notify_classes`.
    pub events: Vec<KeyEvent>,
    /// Bits of [`crate::EventClass`] that somebody wants to hear of.
    pub notify_classes: u32,
    /// Effects that replace the command as sent, collected only if `journaling`.
    pub journal: Vec<Effect>,
    /// Whether a journal is listening.
    pub journaling: bool,
    /// The handler gave its own effects: the command as sent is not journaled.
    pub rewritten: bool,
    /// Changed keys that blocked clients wait for, in the order of the changes.
    pub ready: SmallVec<[(usize, Box<[u8]>); 1]>,
    /// Removed entries that are dear to free.
    pub garbage: Vec<Entry>,
    /// Keys found expired and removed.
    pub expired: u64,
}

impl Effects {
    /// Whether nothing is to be done about the changes, if there are any, but to count them.
    #[inline]
    pub fn is_mere_count(&self) -> bool {
        self.expired == 0
            && self.events.is_empty()
            && self.ready.is_empty()
            && self.garbage.is_empty()
            && self.journal.is_empty()
    }

    /// Forgets everything for the next command; the switches stay.
    pub fn reset(&mut self) {
        self.dirty = 0;
        self.events.clear();
        self.journal.clear();
        self.rewritten = false;
        self.ready.clear();
        self.garbage.clear();
        self.expired = 0;
    }
}
