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

    /// Puts `waiter` at the end of the queue of `key`; once, if it names the key twice.
    pub fn add(&mut self, db: usize, key: &[u8], waiter: &Arc<dyn Waiter>) {
        let queue = self.0.entry((db, key.into())).or_default();
        // A waiter enters all its queues under one hold, so its other place could only be the last.
        if !queue.back().is_some_and(|last| Arc::ptr_eq(last, waiter)) {
            queue.push_back(Arc::clone(waiter));
        }
    }

    /// Takes `waiter` out of the queue of `key`.
    pub fn remove(&mut self, db: usize, key: &[u8], waiter: &Arc<dyn Waiter>) {
        self.change(db, key, |queue| {
            // Who is served stands in front, mostly.
            let place = queue.iter().position(|other| Arc::ptr_eq(other, waiter));
            place.map(|at| queue.remove(at));
        });
    }

    /// The waiter of `key` behind the `passed` oldest ones. Those that are done are dropped from
    /// there on.
    pub fn get(&mut self, db: usize, key: &[u8], passed: usize) -> Option<Arc<dyn Waiter>> {
        self.change(db, key, |queue| {
            while queue.get(passed).is_some_and(|waiter| waiter.is_done()) {
                queue.remove(passed);
            }
            queue.get(passed).cloned()
        })?
    }

    /// All keys that somebody waits for in `db`.
    pub fn keys(&self, db: usize) -> Vec<Box<[u8]>> {
        self.0.keys().filter(|(of, _)| *of == db).map(|(_, key)| key.clone()).collect()
    }

    /// Lends the queue of `key`, if there is one, and drops it if it is empty then.
    fn change<R>(
        &mut self,
        db: usize,
        key: &[u8],
        change: impl FnOnce(&mut Queue) -> R,
    ) -> Option<R> {
        let place = (db, Box::from(key));
        let queue = self.0.get_mut(&place)?;
        let result = change(queue);
        if queue.is_empty() {
            self.0.remove(&place);
        }
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;

    use kiln_base::sync::Arc;
    use kiln_base::sync::atomic::{AtomicBool, Ordering};

    use super::{Waiter, Waiters};

    #[derive(Default)]
    struct Fake(AtomicBool);

    impl Waiter for Fake {
        fn is_done(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    #[test]
    fn a_queue_is_first_come_first_served_and_forgets_who_is_done() {
        let fakes: Vec<Arc<Fake>> = (0..4).map(|_| Arc::default()).collect();
        let all: Vec<Arc<dyn Waiter>> =
            fakes.iter().map(|fake| Arc::clone(fake) as Arc<dyn Waiter>).collect();
        let mut waiters = Waiters::default();
        for waiter in &all {
            waiters.add(0, b"k", waiter);
            waiters.add(0, b"k", waiter);
        }
        let is = |found: Option<Arc<dyn Waiter>>, want: usize| {
            found.is_some_and(|found| Arc::ptr_eq(&found, &all[want]))
        };
        assert!(is(waiters.get(0, b"k", 0), 0) && is(waiters.get(0, b"k", 1), 1));
        fakes[1].0.store(true, Ordering::Relaxed);
        assert!(is(waiters.get(0, b"k", 1), 2));
        waiters.remove(0, b"k", &all[0]);
        assert!(is(waiters.get(0, b"k", 0), 2) && is(waiters.get(0, b"k", 1), 3));
        assert!(waiters.get(0, b"k", 2).is_none() && waiters.get(1, b"k", 0).is_none());
        fakes[2].0.store(true, Ordering::Relaxed);
        fakes[3].0.store(true, Ordering::Relaxed);
        assert!(waiters.get(0, b"k", 0).is_none() && waiters.is_empty());
    }
}
