//! Blocked clients, by the key they wait for, oldest first.
//!
//! A shard knows only that somebody waits; who it is and how to serve it is the executor's
//! business, behind the [`Waiter`] trait. A waiter that waits for several keys stands in several
//! queues and leaves all of them once it is served.

use std::any::Any;
use std::collections::{HashMap, VecDeque};

use kiln_base::sync::Arc;

/// A blocked client.
pub trait Waiter: Any + Send + Sync {
    /// Whether it was served, timed out or left, so that its places in queues are void.
    fn is_done(&self) -> bool;

    /// The concrete type, for the executor.
    fn as_any(&self) -> &dyn Any;
}

type Queue = VecDeque<Arc<dyn Waiter>>;

/// The queues of one shard.
#[derive(Default)]
pub struct Waiters(HashMap<(usize, Box<[u8]>), Queue>);

impl Waiters {
    /// Whether nobody waits here; the common case, asked on every change.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether somebody waits for `key`.
    pub fn contains(&self, db: usize, key: &[u8]) -> bool {
        self.0.contains_key(&(db, Box::from(key)))
    }

    /// Puts `waiter` at the end of the queue of `key`, once.
    pub fn add(&mut self, db: usize, key: &[u8], waiter: &Arc<dyn Waiter>) {
        let queue = self.0.entry((db, key.into())).or_default();
        if !queue.iter().any(|other| Arc::ptr_eq(other, waiter)) {
            queue.push_back(Arc::clone(waiter));
        }
    }

    /// Takes `waiter` out of the queue of `key`.
    pub fn remove(&mut self, db: usize, key: &[u8], waiter: &Arc<dyn Waiter>) {
        self.retain(db, key, |other| !Arc::ptr_eq(other, waiter));
    }

    /// The waiters of `key`, oldest first; those that are done are dropped on the way.
    pub fn queue(&mut self, db: usize, key: &[u8]) -> Vec<Arc<dyn Waiter>> {
        self.retain(db, key, |waiter| !waiter.is_done());
        self.0
            .get(&(db, Box::from(key)))
            .map(|queue| queue.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// All keys that somebody waits for in `db`.
    pub fn keys(&self, db: usize) -> Vec<Box<[u8]>> {
        self.0.keys().filter(|(of, _)| *of == db).map(|(_, key)| key.clone()).collect()
    }

    fn retain(&mut self, db: usize, key: &[u8], keep: impl Fn(&Arc<dyn Waiter>) -> bool) {
        let place = (db, Box::from(key));
        if let Some(queue) = self.0.get_mut(&place) {
            queue.retain(keep);
            if queue.is_empty() {
                self.0.remove(&place);
            }
        }
    }
}
