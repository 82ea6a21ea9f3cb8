//! Locks and atomics. Kiln takes them only from here, so that one place decides what they are:
//! `parking_lot` and `std` in a build, `loom` under `cfg(loom)` for the models that check the
//! lock-free parts.

#![expect(unsafe_code, reason = "a lock that is released without a guard")]

use parking_lot::lock_api::RawRwLock as _;
#[cfg(not(loom))]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(loom))]
pub use std::sync::{Arc, atomic};

#[cfg(loom)]
pub use loom::sync::{Arc, atomic};
#[cfg(loom)]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
/// The atomics of statics that count. A model's atomics cannot be made in a constant, and a figure
/// that orders nothing needs no model.
pub use std::sync::atomic as static_atomic;

/// A readers-writer lock without data, for the executor that holds many at once.
///
/// Eventually fair: a waiting writer stops new readers, so a hot key's readers cannot starve it.
/// For the same reason nobody may take it shared twice on one thread.
pub struct RawLock(parking_lot::RawRwLock);

impl RawLock {
    /// An open lock.
    pub const fn new() -> Self {
        Self(<parking_lot::RawRwLock as parking_lot::lock_api::RawRwLock>::INIT)
    }

    /// Takes the lock, alone or beside other readers.
    #[inline]
    pub fn lock(&self, mode: LockMode) {
        match mode {
            LockMode::Shared => self.0.lock_shared(),
            LockMode::Exclusive => self.0.lock_exclusive(),
        }
    }

    /// Takes the lock if that needs no waiting.
    #[inline]
    pub fn try_lock(&self, mode: LockMode) -> bool {
        match mode {
            LockMode::Shared => self.0.try_lock_shared(),
            LockMode::Exclusive => self.0.try_lock_exclusive(),
        }
    }

    /// Gives the lock back.
    ///
    /// # Safety
    ///
    /// The caller must hold the lock in exactly this mode.
    #[inline]
    pub unsafe fn unlock(&self, mode: LockMode) {
        match mode {
            // SAFETY: the caller holds the lock shared.
            LockMode::Shared => unsafe { self.0.unlock_shared() },
            // SAFETY: the caller holds the lock exclusively.
            LockMode::Exclusive => unsafe { self.0.unlock_exclusive() },
        }
    }
}

impl Default for RawLock {
    fn default() -> Self {
        Self::new()
    }
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Beside other readers.
    Shared,
    /// Alone.
    Exclusive,
}
