//! The index as its users see it. Each case of `reference/vector.md`, section 10, that concerns the
//! library is here in a short form; the bench `index` has the long ones.

mod answers;
mod changes;
mod data;
mod threads;
