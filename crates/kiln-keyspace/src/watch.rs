//! WATCH: who watches which key, and the word to them that it changed.
//!
//! Rules:
//! 1. A token is added, touched and removed only under the lock of the key's shard.
//! 2. Whoever changes, removes or expires a key touches its tokens before letting go of the lock.
//! 3. EXEC holds the locks of all watched keys' shards while it looks at its token and runs, so
//!    no change can slip between the look and the first queued command.
//!
//! The token itself is a flag that only ever goes up; rule 3's lock orders it, so relaxed access
//! is enough.

use std::collections::HashMap;

use kiln_base::sync::Arc;
use kiln_base::sync::atomic::{AtomicBool, Ordering};

/// Shared between a session and the shards of the keys that it watches.
#[derive(Debug, Default)]
pub struct WatchToken(AtomicBool);

impl WatchToken {
    /// Whether a watched key has changed.
    pub fn is_touched(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Says that a watched key has changed.
    pub fn touch(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Watchers = Vec<Arc<WatchToken>>;

/// The watched keys of one shard.
#[derive(Default)]
pub struct Watches(HashMap<(usize, Box<[u8]>), Watchers>);

impl Watches {
    /// Whether nobody watches anything here; the common case, asked on every change.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a watcher of `key`.
    pub fn add(&mut self, db: usize, key: &[u8], token: &Arc<WatchToken>) {
        self.0.entry((db, key.into())).or_default().push(Arc::clone(token));
    }

    /// Removes a watcher of `key`.
    pub fn remove(&mut self, db: usize, key: &[u8], token: &Arc<WatchToken>) {
        let place = (db, Box::from(key));
        if let Some(tokens) = self.0.get_mut(&place) {
            tokens.retain(|other| !Arc::ptr_eq(other, token));
            if tokens.is_empty() {
                self.0.remove(&place);
            }
        }
    }

    /// Says that `key` has changed.
    pub fn touch(&self, db: usize, key: &[u8]) {
        if let Some(tokens) = self.0.get(&(db, Box::from(key))) {
            for token in tokens {
                token.touch();
            }
        }
    }

    /// Calls `visit` for every watched key with its watchers.
    pub fn for_each(&self, mut visit: impl FnMut(usize, &[u8], &[Arc<WatchToken>])) {
        for ((db, key), tokens) in &self.0 {
            visit(*db, key, tokens);
        }
    }
}
