//! Locks and atomics. Kiln takes them only from here, so that one place decides what they are:
//! `parking_lot` and `std` in a build, `loom` under `cfg(loom)` for the models that check the
//! lock-free parts.

#[cfg(not(loom))]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(loom))]
pub use std::sync::{Arc, atomic};

#[cfg(loom)]
pub use loom::sync::{Arc, atomic};
#[cfg(loom)]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
