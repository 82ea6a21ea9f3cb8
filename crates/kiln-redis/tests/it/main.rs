//! Tests of the families that need more than one thread.

mod client;
mod stress;
mod waits;
