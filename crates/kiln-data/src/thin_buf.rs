//! Byte buffers behind one 8-byte pointer: the length lies in the allocation, not beside the
//! pointer. All raw memory handling of the encodings is here.
//!
//! ```text
//! ThinBuf    ─► | length of all, u32 LE | bytes ...            | slack |    grows, shrinks
//! ThinBytes  ─► | length of the bytes, 1, 3 or 5 bytes | bytes ... |        keeps its length
//! ```
//!
//! Invariants:
//! - A [`ThinBuf`] starts with its length, these four bytes included. Its first `len` bytes are
//!   initialised, and its allocation is `size_class(len)` bytes long. So the capacity needs no
//!   field: it is found from the length. Only this module writes the length.
//! - A `ThinBuf` that was made empty shares the static [`EMPTY`] with all others and owns no
//!   memory: what is made to be filled at once is allocated once, at its size.
//! - A [`ThinBytes`] allocation is exactly the length prefix and the bytes, all initialised.
//! - Allocations are aligned to 8, so the low three bits of their address are zero.
//!
//! The slack of a `ThinBuf` is what the allocator would waste anyway: [`size_class`] gives
//! jemalloc's own classes. Growing by one entry at a time therefore reallocates once per class, a
//! geometric series, and costs no memory.

#![expect(unsafe_code, reason = "thin pointers: the length lies inside the allocation")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Range;
use std::ptr::NonNull;

use crate::table::{Item, Ref};

/// Bytes of the length at the start of a [`ThinBuf`].
pub(crate) const LEN_BYTES: usize = 4;

const ALIGN: usize = 8;

/// The allocator's size for `len` bytes: 8, then steps of 16 up to 128, then four steps per
/// doubling. (jemalloc's classes; with another allocator it is slack of at most a quarter.)
pub(crate) fn size_class(len: usize) -> usize {
    match len {
        0..=8 => 8,
        9..=128 => len.next_multiple_of(16),
        _ => len.next_multiple_of(1 << ((len - 1).ilog2() - 2)),
    }
}

/// A growable byte buffer that starts with its own length. See the module's header.
pub(crate) struct ThinBuf {
    data: NonNull<u8>,
}

/// What an empty listpack looks like: its length, its count, its end marker.
static EMPTY: Empty = Empty([7, 0, 0, 0, 0, 0, 0xFF, 0]);

#[repr(align(8))]
struct Empty([u8; 8]);

// SAFETY: a `ThinBuf` owns its bytes alone, like `Box<[u8]>`: no interior mutability, no sharing.
unsafe impl Send for ThinBuf {}
// SAFETY: as above; `&ThinBuf` only reads.
unsafe impl Sync for ThinBuf {}

impl ThinBuf {
    /// A buffer of the length prefix followed by `pieces`, one after another.
    pub(crate) fn new(pieces: &[&[u8]]) -> ThinBuf {
        let len = LEN_BYTES + pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let mut buf = ThinBuf { data: allocate(size_class(len)) };
        let storage = buf.storage(size_class(len));
        storage[..LEN_BYTES].write_copy_of_slice(&len_prefix(len));
        fill(&mut storage[LEN_BYTES..], pieces);
        buf
    }

    /// The buffer of an empty listpack.
    #[inline]
    pub(crate) fn empty_listpack() -> ThinBuf {
        ThinBuf { data: NonNull::from(&EMPTY).cast() }
    }

    #[inline]
    fn is_static(&self) -> bool {
        self.data == NonNull::from(&EMPTY).cast()
    }

    /// Bytes of the allocation, none for the static.
    #[inline]
    fn size(&self) -> usize {
        if self.is_static() { 0 } else { size_class(self.len()) }
    }

    /// Starts loading the first bytes; reads nothing, not even the length.
    #[inline]
    pub(crate) fn prefetch(&self) {
        kiln_base::prefetch::read(self.data.as_ptr());
        kiln_base::prefetch::read(self.data.as_ptr().wrapping_add(64));
    }

    /// Bytes in the buffer, the length prefix included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // SAFETY: every allocation starts with four initialised bytes, its length; an array of
        // bytes needs no alignment.
        let prefix = unsafe { self.data.cast::<[u8; LEN_BYTES]>().read() };
        u32::from_le_bytes(prefix) as usize
    }

    /// Bytes of the allocation.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.size()
    }

    /// All bytes, the length prefix first.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are initialised and belong to `self`, which stays borrowed.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len()) }
    }

    /// The bytes after the length prefix, which stays out of reach: it says how much memory there
    /// is.
    #[inline]
    pub(crate) fn payload_mut(&mut self) -> &mut [u8] {
        assert!(!self.is_static(), "nobody writes to the static that all empty buffers share");
        let len = self.len();
        // SAFETY: as in `as_slice`, and `self` is borrowed exclusively.
        let all = unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), len) };
        &mut all[LEN_BYTES..]
    }

    /// Replaces the bytes of `range`, counted from the start of the buffer, by `pieces`.
    ///
    /// # Panics
    ///
    /// If `range` touches the length prefix or passes the end, or the buffer would pass 4 GiB: the
    /// callers' own limits are lower, so that is a bug.
    pub(crate) fn splice(&mut self, range: Range<usize>, pieces: &[&[u8]]) {
        let old_len = self.len();
        assert!(LEN_BYTES <= range.start && range.start <= range.end && range.end <= old_len);
        let added: usize = pieces.iter().map(|piece| piece.len()).sum();
        let new_len = old_len - range.len() + added;
        if new_len == old_len && added == 0 {
            return;
        }
        let prefix = len_prefix(new_len);
        let (old_size, new_size) = (self.size(), size_class(new_len));

        if new_size > old_size {
            self.reallocate(old_size, new_size);
        }
        let storage = self.storage(old_size.max(new_size));
        if range.len() != added {
            storage.copy_within(range.end..old_len, range.start + added);
        }
        fill(&mut storage[range.start..], pieces);
        storage[..LEN_BYTES].write_copy_of_slice(&prefix);
        if new_size < old_size {
            self.reallocate(old_size, new_size);
        }
    }

    /// Makes a gap of `added` bytes at `at`, counted from the start of the buffer, and lets `fill`
    /// write all of them.
    ///
    /// # Panics
    ///
    /// As [`ThinBuf::splice`], and if `fill` writes more or less.
    #[inline]
    pub(crate) fn insert(&mut self, at: usize, added: usize, fill: impl FnOnce(&mut Gap<'_>)) {
        let old_len = self.len();
        assert!(LEN_BYTES <= at && at <= old_len && added > 0);
        let new_len = old_len + added;
        let prefix = len_prefix(new_len);
        let (old_size, new_size) = (self.size(), size_class(new_len));
        if new_size > old_size {
            self.reallocate(old_size, new_size);
        }
        let storage = self.storage(new_size);
        if old_len - at == 1 {
            storage[new_len - 1] = storage[at]; // The end marker, as for nearly all appends.
        } else {
            storage.copy_within(at..old_len, at + added);
        }
        let mut gap = Gap { rest: &mut storage[at..at + added] };
        fill(&mut gap);
        assert!(gap.rest.is_empty(), "a gap is filled");
        storage[..LEN_BYTES].write_copy_of_slice(&prefix);
    }

    /// The whole allocation, whose size the caller knows.
    fn storage(&mut self, size: usize) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the callers pass the size of the allocation, which `self` owns and which is
        // borrowed exclusively; `MaybeUninit` makes no claim about the slack.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr().cast(), size) }
    }

    fn reallocate(&mut self, old_size: usize, new_size: usize) {
        if self.is_static() {
            let data = allocate(new_size);
            // SAFETY: the new allocation is longer than the static, which is initialised.
            unsafe { data.cast::<[u8; 8]>().write(EMPTY.0) };
            self.data = data;
            return;
        }
        let (old, new) = (layout(old_size), layout(new_size));
        // SAFETY: the allocation was made with `layout(old_size)`, and `new` is a checked layout
        // whose size is not zero.
        let data = unsafe { realloc(self.data.as_ptr(), old, new.size()) };
        self.data = NonNull::new(data).unwrap_or_else(|| handle_alloc_error(new));
    }
}

/// Space in a [`ThinBuf`] that is to be written from its start on.
pub(crate) struct Gap<'b> {
    rest: &'b mut [MaybeUninit<u8>],
}

impl Gap<'_> {
    /// Writes `bytes`, which are mostly many.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let (now, rest) = std::mem::take(&mut self.rest).split_at_mut(bytes.len());
        now.write_copy_of_slice(bytes);
        self.rest = rest;
    }

    /// Writes `bytes`, which are mostly one or two: a call of `memcpy` would cost more.
    #[inline]
    pub(crate) fn put_few(&mut self, bytes: &[u8]) {
        let (now, rest) = std::mem::take(&mut self.rest).split_at_mut(bytes.len());
        for (place, byte) in now.iter_mut().zip(bytes) {
            place.write(*byte);
        }
        self.rest = rest;
    }
}

impl Clone for ThinBuf {
    fn clone(&self) -> ThinBuf {
        ThinBuf::new(&[&self.as_slice()[LEN_BYTES..]])
    }
}

impl Drop for ThinBuf {
    fn drop(&mut self) {
        if self.is_static() {
            return;
        }
        let layout = layout(size_class(self.len()));
        // SAFETY: the allocation has this layout (an invariant), and nobody uses it after the drop.
        unsafe { dealloc(self.data.as_ptr(), layout) }
    }
}

/// A byte string of fixed length, with one byte of overhead up to 253 bytes, else three or five.
/// See the module's header.
#[repr(transparent)]
pub(crate) struct ThinBytes {
    data: NonNull<u8>,
}

/// First bytes of a [`ThinBytes`] whose length follows in two or in four bytes.
const LEN_U16: u8 = 254;
const LEN_U32: u8 = 255;

// SAFETY: a `ThinBytes` owns its bytes alone, like `Box<[u8]>`.
unsafe impl Send for ThinBytes {}
// SAFETY: as above; `&ThinBytes` only reads.
unsafe impl Sync for ThinBytes {}

impl ThinBytes {
    /// A string of `pieces`, one after another.
    ///
    /// # Panics
    ///
    /// If they pass 4 GiB together, which the limits on arguments exclude.
    pub(crate) fn new(pieces: &[&[u8]]) -> ThinBytes {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut prefix = [0; 5];
        let prefix_len = if let Ok(len @ ..LEN_U16) = u8::try_from(len) {
            prefix[0] = len;
            1
        } else if let Ok(len) = u16::try_from(len) {
            prefix[0] = LEN_U16;
            prefix[1..3].copy_from_slice(&len.to_le_bytes());
            3
        } else {
            prefix[0] = LEN_U32;
            prefix[1..].copy_from_slice(&len_prefix(len));
            5
        };
        let size = prefix_len + len;
        let data = allocate(size);
        // SAFETY: `allocate` just returned `size` bytes that nobody else knows of.
        let storage: &mut [MaybeUninit<u8>] =
            unsafe { std::slice::from_raw_parts_mut(data.as_ptr().cast(), size) };
        storage[..prefix_len].write_copy_of_slice(&prefix[..prefix_len]);
        fill(&mut storage[prefix_len..], pieces);
        ThinBytes { data }
    }

    /// The bytes, without the length.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: `self` owns the string and stays borrowed.
        unsafe { bytes_at(self.data) }
    }

    /// The bytes, to be changed in place.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        let (prefix_len, len) = self.shape();
        // SAFETY: as in `as_slice`.
        let start = unsafe { self.data.add(prefix_len) };
        // SAFETY: as in `as_slice`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    /// Bytes of the allocation, as the allocator rounds them.
    pub(crate) fn memory_bytes(&self) -> usize {
        let (prefix_len, len) = self.shape();
        size_class(prefix_len + len)
    }

    fn shape(&self) -> (usize, usize) {
        // SAFETY: `self` owns a string at this address.
        unsafe { shape_at(self.data) }
    }
}

/// Lengths of the prefix and of the bytes of the string at an address.
///
/// # Safety
///
/// `data` is the address of a [`ThinBytes`] that is not changed meanwhile.
#[inline]
unsafe fn shape_at(data: NonNull<u8>) -> (usize, usize) {
    // SAFETY: the prefix is at least one initialised byte.
    let first = unsafe { data.read() };
    match first {
        LEN_U16 => {
            // SAFETY: after this first byte the prefix has two more.
            let [_, a, b] = unsafe { data.cast::<[u8; 3]>().read() };
            (3, usize::from(u16::from_le_bytes([a, b])))
        }
        LEN_U32 => {
            // SAFETY: after this first byte the prefix has four more.
            let [_, a, b, c, d] = unsafe { data.cast::<[u8; 5]>().read() };
            (5, u32::from_le_bytes([a, b, c, d]) as usize)
        }
        len => (1, usize::from(len)),
    }
}

/// The bytes of the string at an address.
///
/// # Safety
///
/// `data` is the address of a [`ThinBytes`] that is neither changed nor dropped during `'a`.
#[inline]
unsafe fn bytes_at<'a>(data: NonNull<u8>) -> &'a [u8] {
    // SAFETY: the caller's promise.
    let (prefix_len, len) = unsafe { shape_at(data) };
    // SAFETY: the prefix lies in the allocation, the bytes behind it.
    let start = unsafe { data.add(prefix_len) };
    // SAFETY: `len` initialised bytes follow, which nobody changes or frees during `'a`.
    unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
}

impl Clone for ThinBytes {
    fn clone(&self) -> ThinBytes {
        ThinBytes::new(&[self.as_slice()])
    }
}

impl Drop for ThinBytes {
    fn drop(&mut self) {
        let (prefix_len, len) = self.shape();
        // SAFETY: the allocation is exactly prefix and bytes (an invariant), unused after the drop.
        unsafe { dealloc(self.data.as_ptr(), layout(prefix_len + len)) }
    }
}

/// Where the key lies in the bytes of an item.
pub(crate) trait Keyed {
    /// The key within `bytes`. A pure function of them; the rest of an item may change, the key
    /// may not.
    fn key(bytes: &[u8]) -> &[u8];
}

/// A [`ThinBytes`] as an item of a table, its key found by `K`.
#[repr(transparent)]
pub(crate) struct ThinItem<K> {
    bytes: ThinBytes,
    layout: PhantomData<K>,
}

impl<K: Keyed> ThinItem<K> {
    /// An item of `pieces`, one after another.
    pub(crate) fn new(pieces: &[&[u8]]) -> ThinItem<K> {
        ThinItem { bytes: ThinBytes::new(pieces), layout: PhantomData }
    }

    /// All bytes of the item.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// All bytes of the item, to be changed in place but for the key.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.as_mut_slice()
    }

    /// All bytes of an item in a table, for as long as the table is borrowed.
    #[inline]
    pub(crate) fn bytes_of(item: Ref<'_, ThinItem<K>>) -> &[u8] {
        // SAFETY: `Ref` promises that the item is neither changed nor dropped during its lifetime.
        unsafe { bytes_at(item.as_raw()) }
    }

    /// Bytes of the allocation.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.memory_bytes()
    }
}

// SAFETY: the type is transparent over `ThinBytes`, which is transparent over its `NonNull`
// address. The key is a pure function of the bytes; `bytes_mut` and the replacement of an item keep
// it by the contract of `Keyed`, whose users are `set.rs` and `hash.rs`.
unsafe impl<K: Keyed> Item for ThinItem<K> {
    #[inline]
    fn into_raw(self) -> NonNull<u8> {
        ManuallyDrop::new(self.bytes).data
    }

    #[inline]
    unsafe fn from_raw(data: NonNull<u8>) -> ThinItem<K> {
        ThinItem { bytes: ThinBytes { data }, layout: PhantomData }
    }

    #[inline]
    unsafe fn key_of<'a>(raw: NonNull<u8>) -> &'a [u8] {
        // SAFETY: the caller's promise.
        K::key(unsafe { bytes_at(raw) })
    }
}

fn len_prefix(len: usize) -> [u8; LEN_BYTES] {
    u32::try_from(len).expect("buffers are limited far below 4 GiB").to_le_bytes()
}

/// Writes `pieces` one after another to the start of `storage`.
fn fill(storage: &mut [MaybeUninit<u8>], pieces: &[&[u8]]) {
    let mut at = 0;
    for piece in pieces {
        storage[at..at + piece.len()].write_copy_of_slice(piece);
        at += piece.len();
    }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, ALIGN).expect("sizes are limited to 5 GiB")
}

fn allocate(size: usize) -> NonNull<u8> {
    let layout = layout(size);
    assert!(size > 0);
    // SAFETY: the size is not zero, as the assertion says.
    let data = unsafe { alloc(layout) };
    NonNull::new(data).unwrap_or_else(|| handle_alloc_error(layout))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{LEN_BYTES, ThinBuf, ThinBytes, size_class};

    #[test]
    fn size_classes_are_the_allocators() {
        for (len, class) in [
            (1, 8),
            (8, 8),
            (9, 16),
            (113, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (256, 256),
            (257, 320),
            (8_193, 10_240),
        ] {
            assert_eq!(size_class(len), class, "{len}");
        }
    }

    #[test]
    fn thin_pointers_are_thin() {
        assert_eq!(size_of::<Option<ThinBuf>>(), 8);
        assert_eq!(size_of::<Option<ThinBytes>>(), 8);
    }

    #[test]
    fn fixed_strings_of_every_prefix_keep_their_bytes() {
        for len in [0, 1, 253, 254, 65_535, 65_536] {
            let text = vec![7; len];
            let mut bytes = ThinBytes::new(&[&text[..len / 2], &text[len / 2..]]);
            assert_eq!(bytes.as_slice(), text);
            bytes.as_mut_slice().fill(9);
            assert_eq!(bytes.clone().as_slice(), vec![9; len]);
            assert!(bytes.memory_bytes() > len);
        }
    }

    proptest! {
        #[test]
        fn splice_is_the_splice_of_a_vec(
            edits in vec((any::<(u16, u16)>(), vec(any::<u8>(), 0..200)), 1..40),
        ) {
            let (mut buf, mut model) = (ThinBuf::new(&[]), Vec::new());
            for ((from, to), text) in edits {
                let a = usize::from(from) % (model.len() + 1);
                let b = usize::from(to) % (model.len() + 1);
                let (from, to) = (a.min(b), a.max(b));
                let (left, right) = text.split_at(text.len() / 3);
                buf.splice(from + LEN_BYTES..to + LEN_BYTES, &[left, right]);
                model.splice(from..to, text.iter().copied());
                prop_assert_eq!(&buf.as_slice()[LEN_BYTES..], &model);
                prop_assert_eq!(buf.len(), model.len() + LEN_BYTES);
                let mut copy = buf.clone();
                prop_assert_eq!(copy.payload_mut(), &model);
            }
        }
    }
}
