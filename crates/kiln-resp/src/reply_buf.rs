//! What a connection has yet to send: bytes of its own, with large values placed between them by
//! reference count.
//!
//! ```text
//! bytes:   sent │ $70000\r\n │ \r\n+OK\r\n$90000\r\n │ \r\n
//!              head          ▲                       ▲
//! shared:                value at 15             value at 32
//! ```
//!
//! A reply without a large value never touches `shared`, so the usual case costs what a `Vec`
//! costs. A value in `shared` is not copied on its way from the keyspace to the socket, and is
//! freed when sent, even if its key is gone by then.
//!
//! Invariants: the offsets in `shared` ascend and are at least `head`; no shared value is empty;
//! marks and deferred headers are used before the next [`ReplyBuf::advance`].

use std::{collections::VecDeque, io::IoSlice, sync::Arc};

/// The most slices handed to one `writev`; Linux takes 1,024, but a socket buffer is full before.
const IO_SLICES_MAX: usize = 64;
/// From this much on, sent bytes are worth moving the others for.
const COMPACT_BYTES_MIN: usize = 64 * 1024;

/// A connection's output.
#[derive(Debug, Default)]
pub struct ReplyBuf {
    pub(crate) bytes: Vec<u8>,
    /// How many of `bytes` are sent.
    head: usize,
    shared: VecDeque<Shared>,
    /// How many bytes of the first shared value are sent.
    shared_sent: usize,
    /// The bytes of all shared values, less those sent.
    shared_bytes: usize,
}

/// A value to be sent before the byte at offset `at` of `bytes`.
#[derive(Debug)]
struct Shared {
    at: usize,
    value: Arc<Vec<u8>>,
}

/// A position in the output, to go back to or to insert at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    bytes: usize,
    shared: usize,
}

impl ReplyBuf {
    /// How many bytes are still to be sent.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.head + self.shared_bytes
    }

    /// Whether everything is sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory held, shared values included: they may be the last ones to hold theirs.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.shared_bytes + self.shared.capacity() * size_of::<Shared>()
    }

    /// Drops everything, sent or not, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.shared.clear();
        (self.head, self.shared_sent, self.shared_bytes) = (0, 0, 0);
    }

    /// Gives memory beyond `capacity` bytes back, as far as it is unused.
    pub fn shrink_to(&mut self, capacity: usize) {
        self.bytes.shrink_to(capacity);
        self.shared.shrink_to(0);
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends `value` without copying it.
    pub fn push_shared(&mut self, value: &Arc<Vec<u8>>) {
        if !value.is_empty() {
            self.shared_bytes += value.len();
            self.shared.push_back(Shared { at: self.bytes.len(), value: Arc::clone(value) });
        }
    }

    /// The current end.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), shared: self.shared.len() }
    }

    /// Drops what was appended after `mark`.
    pub fn truncate_to(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        for dropped in self.shared.drain(mark.shared..) {
            self.shared_bytes -= dropped.value.len();
        }
    }

    /// Inserts `bytes` at `mark`, before all that was appended after it.
    pub(crate) fn insert(&mut self, mark: Mark, bytes: &[u8]) {
        self.bytes.splice(mark.bytes..mark.bytes, bytes.iter().copied());
        for later in self.shared.range_mut(mark.shared..) {
            later.at += bytes.len();
        }
    }

    /// What is to be sent, in order, without empty pieces.
    pub fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let (mut from, mut sent) = (self.head, self.shared_sent);
        let pairs = self.shared.iter().flat_map(move |shared| {
            let pair = [&self.bytes[from..shared.at], &shared.value[sent..]];
            (from, sent) = (shared.at, 0);
            pair
        });
        let last = self.shared.back().map_or(self.head, |shared| shared.at);
        pairs.chain([&self.bytes[last..]]).filter(|chunk| !chunk.is_empty())
    }

    /// Appends the first pieces of what is to be sent to `out`, for `writev`.
    pub fn io_slices<'a>(&'a self, out: &mut Vec<IoSlice<'a>>) {
        out.extend(self.chunks().take(IO_SLICES_MAX).map(IoSlice::new));
    }

    /// Notes that the first `sent` bytes of what was to be sent are on their way.
    ///
    /// # Panics
    ///
    /// If there were not that many.
    pub fn advance(&mut self, mut sent: usize) {
        assert!(sent <= self.len(), "only what is there can be sent");
        while let Some(first) = self.shared.front() {
            let own = sent.min(first.at - self.head);
            self.head += own;
            sent -= own;
            let value_left = first.value.len() - self.shared_sent;
            let of_value = if self.head == first.at { sent.min(value_left) } else { 0 };
            self.shared_bytes -= of_value;
            sent -= of_value;
            if of_value < value_left {
                self.shared_sent += of_value;
                break;
            }
            self.shared.pop_front();
            self.shared_sent = 0;
        }
        self.head += sent;
        if self.is_empty() {
            self.clear();
        } else if self.head >= COMPACT_BYTES_MIN && self.head > self.bytes.len() / 2 {
            self.bytes.drain(..self.head);
            for shared in &mut self.shared {
                shared.at -= self.head;
            }
            self.head = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::{collection::vec, prelude::*};

    use super::ReplyBuf;

    #[derive(Clone, Debug)]
    enum Step {
        Push(Vec<u8>),
        Shared(Vec<u8>),
        Advance(usize),
        Mark,
        Truncate,
        Insert(Vec<u8>),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = || vec(any::<u8>(), 0..9);
        vec(
            prop_oneof![
                bytes().prop_map(Step::Push),
                (0..50_000_usize).prop_map(|len| Step::Push(vec![b'x'; len])),
                bytes().prop_map(Step::Shared),
                (0..20_usize).prop_map(Step::Advance),
                (0..99_999_usize).prop_map(Step::Advance),
                Just(Step::Mark),
                Just(Step::Truncate),
                bytes().prop_map(Step::Insert),
            ],
            0..60,
        )
    }

    proptest! {
        #[test]
        fn it_is_a_queue_of_bytes(steps in steps()) {
            let (mut buf, mut model) = (ReplyBuf::default(), Vec::new());
            let mut mark = None;
            for step in steps {
                match step {
                    Step::Push(bytes) => {
                        buf.push(&bytes);
                        model.extend(bytes);
                    }
                    Step::Shared(bytes) => {
                        model.extend(&bytes);
                        buf.push_shared(&Arc::new(bytes));
                    }
                    Step::Advance(count) => {
                        let count = count.min(model.len());
                        buf.advance(count);
                        model.drain(..count);
                        mark = None;
                    }
                    Step::Mark => mark = Some((buf.mark(), model.len())),
                    Step::Truncate => if let Some((mark, len)) = mark {
                        buf.truncate_to(mark);
                        model.truncate(len);
                    }
                    Step::Insert(bytes) => if let Some((mark, len)) = mark {
                        buf.insert(mark, &bytes);
                        model.splice(len..len, bytes);
                    }
                }
                prop_assert_eq!(buf.len(), model.len());
                prop_assert_eq!(buf.is_empty(), model.is_empty());
                let chunks: Vec<&[u8]> = buf.chunks().collect();
                prop_assert!(chunks.iter().all(|chunk| !chunk.is_empty()));
                prop_assert!(chunks.concat() == model);
                let mut slices = Vec::new();
                buf.io_slices(&mut slices);
                let first = slices.iter().map(|slice| slice.len()).sum::<usize>();
                prop_assert!(slices.len() == 64 || first == model.len());
            }
        }
    }

    #[test]
    fn a_shared_value_lives_until_it_is_sent() {
        let value = Arc::new(vec![b'v'; 100]);
        let mut buf = ReplyBuf::default();
        buf.push_shared(&value);
        buf.push(b"end");
        buf.advance(99);
        assert_eq!(Arc::strong_count(&value), 2);
        buf.advance(1);
        assert_eq!(Arc::strong_count(&value), 1);
        assert_eq!(buf.chunks().collect::<Vec<_>>(), [b"end"]);
    }
}
