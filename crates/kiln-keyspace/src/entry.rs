#![expect(unsafe_code, reason = "an entry is one hand-laid allocation: header, body, key, value")]

//! A key and its value in a single allocation.
//!
//! ```text
//! offset 0   u32   access clock (24 bits) and flags (8 bits); atomic, readers update the clock
//!        4   u32   key length
//!        8   i64   expiry time in ms, or NO_EXPIRY        only if flag HAS_EXPIRY
//!       body       by kind:
//!                    INT     i64
//!                    INLINE  u32 length, u32 capacity     (value bytes follow the key)
//!                    SHARED  Arc<Vec<u8>>                 (from SHARED_MIN bytes on)
//!                    OBJECT  Object
//!       key        key length bytes
//!       value      capacity bytes                         only if INLINE
//! ```
//!
//! A 16-byte key with a 64-byte value is 96 bytes, one allocator size class. Values from
//! [`SHARED_MIN`] bytes on are reference counted, so that a reply takes them without a copy.
//!
//! Invariants: the layout is a function of flags, key length and capacity, and whatever changes
//! one of them reallocates. An `Entry` owns its allocation; it may move to another one when it is
//! changed, so nobody keeps its address while it can be changed.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use kiln_base::clock::UnixMs;
use kiln_base::number::{format_i64, parse_i64};
use kiln_base::sync::Arc;
use kiln_base::sync::atomic::{AtomicU32, Ordering};
use kiln_data::table::Item;

use crate::object::Object;

/// String values of at least this many bytes live behind an `Arc` of their own.
pub const SHARED_MIN: usize = 16 * 1024;
/// Redis calls a string `embstr` that shares one block of 64 bytes with its key: what is left of
/// those for key, value and expiry time.
const EMBSTR_MAX: usize = 41;
/// Longest decimal text of an `i64`.
const INT_TEXT_MAX: usize = 20;

const NO_EXPIRY: UnixMs = UnixMs::MIN;

const CLOCK_MASK: u32 = 0x00FF_FFFF;
const KIND_MASK: u32 = 0b11 << 24;
const INT: u32 = 0 << 24;
const INLINE: u32 = 1 << 24;
const SHARED: u32 = 2 << 24;
const OBJECT: u32 = 3 << 24;
const HAS_EXPIRY: u32 = 1 << 26;
/// The string was built in place (APPEND, SETRANGE, …), or once stood in an entry that it and the
/// key and expiry made longer than `EMBSTR_MAX`: `raw` to OBJECT ENCODING however short.
const RAW: u32 = 1 << 27;

const HEADER: usize = 8;

/// What an entry holds, as a reader sees it.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// A string.
    String(StringRef<'a>),
    /// A value of any other type.
    Object(&'a Object),
}

/// A string value.
#[derive(Clone, Copy)]
pub enum StringRef<'a> {
    /// An integer in canonical decimal form, kept as a number.
    Int(i64),
    /// Bytes inside the entry.
    Bytes(&'a [u8]),
    /// Bytes that a reply can take by reference.
    Shared(&'a Arc<Vec<u8>>),
}

impl<'a> StringRef<'a> {
    /// Length in bytes of the text.
    pub fn len(&self) -> usize {
        match self {
            Self::Int(number) => format_i64(*number, &mut [0; INT_TEXT_MAX]).len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Shared(bytes) => bytes.len(),
        }
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text; `scratch` holds the digits of an integer.
    #[inline]
    pub fn bytes<'b>(&self, scratch: &'b mut [u8; INT_TEXT_MAX]) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Int(number) => format_i64(*number, scratch),
            Self::Bytes(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    /// The text in memory of its own.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes(&mut [0; INT_TEXT_MAX]).to_vec()
    }

    /// The number that the text is the canonical form of.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Bytes(bytes) => parse_i64(bytes),
            Self::Shared(_) => None, // Longer than any number.
        }
    }
}

/// What an entry is to hold, given by value.
enum Body<'a> {
    Int(i64),
    Inline { parts: [&'a [u8]; 2], len: usize, capacity: usize, raw: bool },
    Shared(Arc<Vec<u8>>),
    Object(Object),
}

impl Body<'_> {
    fn flags(&self) -> u32 {
        match self {
            Self::Int(_) => INT,
            Self::Inline { raw: false, .. } => INLINE,
            Self::Inline { raw: true, .. } => INLINE | RAW,
            Self::Shared(_) => SHARED | RAW,
            Self::Object(_) => OBJECT,
        }
    }

    fn capacity(&self) -> usize {
        if let Self::Inline { capacity, .. } = self { *capacity } else { 0 }
    }
}

/// An owned entry. Eight bytes; the keyspace's table packs its address into 48 bits.
#[repr(transparent)]
pub struct Entry(NonNull<u8>);

// SAFETY: an entry owns everything it points to, and `Object` and `Arc<Vec<u8>>` are `Send`.
unsafe impl Send for Entry {}
// SAFETY: through `&Entry` only the access clock changes, and that is atomic.
unsafe impl Sync for Entry {}

impl Entry {
    /// A string entry. Canonical integers are kept as numbers.
    pub fn string(key: &[u8], value: &[u8], expire_at_ms: Option<UnixMs>) -> Self {
        Self::build(key, expire_at_ms.is_some(), expire_at_ms, 0, string_body(value))
    }

    /// An entry of an integer.
    pub fn int(key: &[u8], number: i64, expire_at_ms: Option<UnixMs>) -> Self {
        Self::build(key, expire_at_ms.is_some(), expire_at_ms, 0, Body::Int(number))
    }

    /// A string entry that keeps digits as text, too. `built` strings are `raw` to OBJECT ENCODING.
    pub fn text(key: &[u8], value: &[u8], built: bool, expire_at_ms: Option<UnixMs>) -> Self {
        Self::build(key, expire_at_ms.is_some(), expire_at_ms, 0, text_body(value, built))
    }

    /// An entry that takes over a large value.
    pub fn shared(key: &[u8], value: Arc<Vec<u8>>, expire_at_ms: Option<UnixMs>) -> Self {
        Self::build(key, expire_at_ms.is_some(), expire_at_ms, 0, Body::Shared(value))
    }

    /// An entry of any other type.
    pub fn object(key: &[u8], object: Object, expire_at_ms: Option<UnixMs>) -> Self {
        Self::build(key, expire_at_ms.is_some(), expire_at_ms, 0, Body::Object(object))
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        // SAFETY: the allocation is live as long as `self`, and shared borrows only read it.
        unsafe { key_at(self.0) }
    }

    /// When the key expires.
    #[inline]
    pub fn expire_at_ms(&self) -> Option<UnixMs> {
        if self.flags() & HAS_EXPIRY == 0 {
            return None;
        }
        // SAFETY: HAS_EXPIRY says that an i64 lies behind the header.
        let place = unsafe { self.0.add(HEADER) }.cast::<UnixMs>();
        // SAFETY: as above; `build` has written it.
        let at = unsafe { place.read() };
        (at != NO_EXPIRY).then_some(at)
    }

    /// Whether the key's time has come. Redis's rule: gone from the millisecond after its time.
    #[inline]
    pub fn is_expired(&self, now: UnixMs) -> bool {
        self.flags() & HAS_EXPIRY != 0 && self.expire_at_ms().is_some_and(|at| now > at)
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> Value<'_> {
        let body = self.body();
        match self.flags() & KIND_MASK {
            // SAFETY: the kind is INT, so the body is an i64.
            INT => Value::String(StringRef::Int(unsafe { body.cast::<i64>().read() })),
            INLINE => Value::String(StringRef::Bytes(self.inline_bytes())),
            SHARED => {
                // SAFETY: the kind is SHARED, so the body is an Arc that lives as long as `self`.
                Value::String(StringRef::Shared(unsafe { body.cast::<Arc<Vec<u8>>>().as_ref() }))
            }
            // SAFETY: the kind is OBJECT, so the body is an Object that lives as long as `self`.
            _ => Value::Object(unsafe { body.cast::<Object>().as_ref() }),
        }
    }

    /// The string, if the value is one.
    #[inline]
    pub fn as_string(&self) -> Option<StringRef<'_>> {
        match self.value() {
            Value::String(string) => Some(string),
            Value::Object(_) => None,
        }
    }

    /// The object, if the value is one.
    #[inline]
    pub fn as_object(&self) -> Option<&Object> {
        match self.value() {
            Value::String(_) => None,
            Value::Object(object) => Some(object),
        }
    }

    /// The object, to change it.
    #[inline]
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        if self.flags() & KIND_MASK != OBJECT {
            return None;
        }
        // SAFETY: the kind is OBJECT, so the body is an Object, and `&mut self` is exclusive.
        Some(unsafe { self.body().cast::<Object>().as_mut() })
    }

    /// The name of the type, as TYPE reports it.
    pub fn type_name(&self) -> &'static str {
        self.as_object().map_or("string", Object::type_name)
    }

    /// The name of the encoding, as OBJECT ENCODING reports it.
    pub fn encoding_name(&self) -> &'static str {
        match self.value() {
            Value::Object(object) => object.encoding_name(),
            Value::String(StringRef::Int(_)) => "int",
            Value::String(string) => {
                let raw = self.flags() & RAW != 0 || string.len() > EMBSTR_MAX;
                if raw { "raw" } else { "embstr" }
            }
        }
    }

    /// Replaces the value by a string. The expiry stays.
    pub fn set_string(&mut self, value: &[u8]) {
        match parse_i64(value) {
            Some(number) => self.set_int(number),
            None => self.set_text(value, false),
        }
    }

    /// As [`Entry::set_string`], but digits stay text; see [`Entry::text`].
    pub fn set_text(&mut self, value: &[u8], built: bool) {
        let flags = self.flags();
        if flags & KIND_MASK == INLINE {
            let (_, capacity) = self.inline_size();
            // In place, unless that would keep more than half of a large block idle.
            if value.len() <= capacity && capacity - value.len() <= value.len().max(32) {
                self.write_inline(value);
                self.set_flags(if built { flags | RAW } else { flags & !RAW });
                return self.note_crowding();
            }
        }
        self.rebuild(text_body(value, built));
    }

    /// Replaces the value by a large string without copying it. The expiry stays.
    pub fn set_shared(&mut self, value: Arc<Vec<u8>>) {
        self.rebuild(Body::Shared(value));
    }

    /// Replaces the value by an integer. The expiry stays.
    #[inline]
    pub fn set_int(&mut self, number: i64) {
        if self.flags() & KIND_MASK == INT {
            // SAFETY: the kind is INT, so the body is an i64, and `&mut self` is exclusive.
            unsafe { self.body().cast::<i64>().write(number) };
        } else {
            self.rebuild(Body::Int(number));
        }
    }

    /// Replaces the value by an object. The expiry stays.
    pub fn set_object(&mut self, object: Object) {
        self.rebuild(Body::Object(object));
    }

    /// Makes the string plain bytes of at least `len` (zeroes are appended) and lends them for
    /// changes in place.
    ///
    /// # Panics
    ///
    /// If the value is not a string.
    pub fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        let old_len = self.as_string().expect("the caller checked the type").len();
        self.grow_string(len.max(old_len));
        if self.flags() & KIND_MASK == INLINE {
            let (len, _) = self.inline_size();
            let start = self.inline_start();
            // SAFETY: INLINE entries have `len` initialized bytes at `start`; exclusive.
            unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
        } else {
            // SAFETY: a grown string is INLINE or SHARED, so the body is an Arc; exclusive.
            let shared = unsafe { self.body().cast::<Arc<Vec<u8>>>().as_mut() };
            Arc::make_mut(shared).as_mut_slice()
        }
    }

    /// Appends to a string and returns its new length.
    ///
    /// # Panics
    ///
    /// If the value is not a string.
    pub fn append(&mut self, tail: &[u8]) -> usize {
        let flags = self.flags();
        if flags & KIND_MASK == INLINE {
            let (old_len, capacity) = self.inline_size();
            let len = old_len + tail.len();
            if len <= capacity {
                // SAFETY: the value's bytes are followed by `capacity - old_len` more of its own.
                let end = unsafe { self.inline_start().add(old_len) };
                // SAFETY: there is room for `tail`, which cannot lie in this entry: exclusive.
                unsafe { end.copy_from_nonoverlapping(NonNull::from(tail).cast(), tail.len()) };
                self.set_inline_len(len);
                self.set_flags(flags | RAW);
                return len;
            }
            if len < SHARED_MIN {
                let capacity = built_capacity(flags, len);
                let parts = [self.inline_bytes(), tail];
                let body = Body::Inline { parts, len, capacity, raw: true };
                let (volatile, at) = (flags & HAS_EXPIRY != 0, self.expire_at_ms());
                let grown = Self::build(self.key(), volatile, at, self.access(), body);
                *self = grown;
                return len;
            }
        }
        let old_len = self.as_string().expect("the caller checked the type").len();
        let len = old_len + tail.len();
        self.bytes_mut(len)[old_len..].copy_from_slice(tail);
        len
    }

    /// Turns a string into plain bytes of exactly `len >= its length`, with room to grow.
    fn grow_string(&mut self, len: usize) {
        let flags = self.flags();
        match flags & KIND_MASK {
            INLINE => {
                let (old, capacity) = self.inline_size();
                if len <= capacity {
                    // SAFETY: old <= len <= capacity, all inside the allocation; exclusive.
                    let tail = unsafe { self.inline_start().add(old) };
                    // SAFETY: as above; exclusive.
                    unsafe { tail.write_bytes(0, len - old) };
                    self.set_inline_len(len);
                    return self.set_flags(flags | RAW);
                }
            }
            SHARED => {
                // SAFETY: the kind is SHARED, so the body is an Arc; exclusive.
                let bytes = Arc::make_mut(unsafe { self.body().cast::<Arc<Vec<u8>>>().as_mut() });
                return grow_by_zeroes(bytes, len);
            }
            _ => {}
        }
        let string = self.as_string().expect("the caller checked the type").to_vec();
        if len >= SHARED_MIN {
            let mut bytes = string;
            grow_by_zeroes(&mut bytes, len);
            return self.rebuild(Body::Shared(Arc::new(bytes)));
        }
        let zeroes = vec![0; len - string.len()];
        let parts = [&string[..], &zeroes[..]];
        let capacity = built_capacity(flags, len);
        self.rebuild(Body::Inline { parts, len, capacity, raw: true });
    }

    /// Sets or clears the expiry time.
    pub fn set_expire_at_ms(&mut self, at: Option<UnixMs>) {
        if self.flags() & HAS_EXPIRY != 0 {
            // SAFETY: HAS_EXPIRY says that an i64 lies behind the header; exclusive.
            let place = unsafe { self.0.add(HEADER) }.cast::<UnixMs>();
            // SAFETY: as above; `&mut self` is exclusive.
            unsafe { place.write(at.unwrap_or(NO_EXPIRY)) };
            self.note_crowding();
        } else if at.is_some() {
            let access = self.access();
            let new = self.take_body().into_entry(self.key(), at, access);
            self.forget_body_and_assign(new);
        }
    }

    /// The same value under another key.
    #[must_use]
    pub fn with_key(mut self, key: &[u8], expire_at_ms: Option<UnixMs>) -> Self {
        let access = self.access();
        let body = self.take_body();
        self.free_shell();
        body.into_entry(key, expire_at_ms, access)
    }

    /// A copy of the value under another key; `None` if it cannot be copied.
    #[must_use]
    pub fn duplicate(&self, key: &[u8], expire_at_ms: Option<UnixMs>) -> Option<Self> {
        let volatile = expire_at_ms.is_some();
        let access = self.access();
        Some(match self.value() {
            Value::Object(object) => {
                Self::build(key, volatile, expire_at_ms, access, Body::Object(object.copy()?))
            }
            Value::String(StringRef::Int(number)) => {
                Self::build(key, volatile, expire_at_ms, access, Body::Int(number))
            }
            Value::String(StringRef::Shared(value)) => {
                let value = Body::Shared(Arc::clone(value));
                Self::build(key, volatile, expire_at_ms, access, value)
            }
            Value::String(StringRef::Bytes(bytes)) => {
                let raw = self.flags() & RAW != 0;
                let len = bytes.len();
                let body = Body::Inline { parts: [bytes, &[]], len, capacity: len, raw };
                Self::build(key, volatile, expire_at_ms, access, body)
            }
        })
    }

    /// The 24-bit access clock, an LRU time or an LFU counter as the policy has it.
    #[inline]
    pub fn access(&self) -> u32 {
        self.meta().load(Ordering::Relaxed) & CLOCK_MASK
    }

    /// Sets the access clock. Readers of one entry may race; any of their values will do, and the
    /// flags beside it cannot change under a shared lock. A value already there is not written
    /// again, so readers of one hot key share its cache line.
    #[inline]
    pub fn set_access(&self, clock: u32) {
        let old = self.meta().load(Ordering::Relaxed);
        let new = (old & !CLOCK_MASK) | (clock & CLOCK_MASK);
        if new != old {
            self.meta().store(new, Ordering::Relaxed);
        }
    }

    /// Bytes of memory that the entry takes, value included; see [`Object::memory_bytes`].
    pub fn memory_bytes(&self, samples: usize) -> usize {
        let own = self.layout().size();
        own + match self.value() {
            Value::String(StringRef::Shared(bytes)) => bytes.capacity() + 40,
            Value::String(_) => 0,
            Value::Object(object) => object.memory_bytes(samples),
        }
    }

    /// How many steps freeing the value takes, to decide whether it goes to the reclaimer.
    pub fn free_effort(&self) -> usize {
        self.as_object().map_or(1, Object::free_effort)
    }

    fn meta(&self) -> &AtomicU32 {
        // SAFETY: every entry begins with an aligned u32 that is only accessed atomically.
        unsafe { self.0.cast::<AtomicU32>().as_ref() }
    }

    #[inline]
    fn flags(&self) -> u32 {
        self.meta().load(Ordering::Relaxed) & !CLOCK_MASK
    }

    fn set_flags(&mut self, flags: u32) {
        let clock = self.access();
        self.meta().store(flags | clock, Ordering::Relaxed);
    }

    #[inline]
    fn body(&self) -> NonNull<u8> {
        let offset = body_offset(self.flags());
        // SAFETY: the body lies at this offset of the allocation.
        unsafe { self.0.add(offset) }
    }

    /// Length and capacity of an INLINE value.
    #[inline]
    fn inline_size(&self) -> (usize, usize) {
        debug_assert_eq!(self.flags() & KIND_MASK, INLINE, "only inline values have a capacity");
        // SAFETY: callers checked that the kind is INLINE, so the body is two u32.
        let [len, capacity] = unsafe { self.body().cast::<[u32; 2]>().read() };
        (len as usize, capacity as usize)
    }

    fn set_inline_len(&mut self, len: usize) {
        // SAFETY: callers checked that the kind is INLINE; the body begins with the length.
        unsafe { self.body().cast::<u32>().write(len as u32) };
    }

    #[inline]
    fn inline_start(&self) -> NonNull<u8> {
        let offset = body_offset(self.flags()) + 8 + self.key().len();
        // SAFETY: the value of an INLINE entry follows body and key in the same allocation.
        unsafe { self.0.add(offset) }
    }

    #[inline]
    fn inline_bytes(&self) -> &[u8] {
        let (len, _) = self.inline_size();
        // SAFETY: `len` initialized bytes lie there, and `&self` keeps them unchanged.
        unsafe { std::slice::from_raw_parts(self.inline_start().as_ptr(), len) }
    }

    /// Marks a short string that has no room beside its key and expiry.
    fn note_crowding(&mut self) {
        let flags = self.flags();
        if flags & KIND_MASK == INLINE {
            let has_expiry = self.expire_at_ms().is_some();
            if is_crowded(self.key().len(), self.inline_size().0, has_expiry) {
                self.set_flags(flags | RAW);
            }
        }
    }

    fn write_inline(&mut self, value: &[u8]) {
        let start = self.inline_start();
        // SAFETY: the caller checked that `value` fits the capacity; `&mut self` is exclusive, so
        // `value` cannot lie inside the entry.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len()) };
        self.set_inline_len(value.len());
    }

    fn layout(&self) -> Layout {
        let flags = self.flags();
        let capacity = if flags & KIND_MASK == INLINE { self.inline_size().1 } else { 0 };
        layout_of(flags, self.key().len(), capacity)
    }

    /// Moves the entry to a new allocation with another body; key, expiry and clock stay.
    fn rebuild(&mut self, body: Body<'_>) {
        let has_expiry = self.flags() & HAS_EXPIRY != 0;
        let at = self.expire_at_ms();
        let new = Self::build(self.key(), has_expiry, at, self.access(), body);
        *self = new;
    }

    /// Moves the body out. The caller must next call `free_shell` or `forget_body_and_assign`:
    /// until then the entry still claims a body that it no longer owns.
    fn take_body(&mut self) -> Taken {
        let body = self.body();
        match self.flags() & KIND_MASK {
            // SAFETY: the kind is INT.
            INT => Taken::Int(unsafe { body.cast::<i64>().read() }),
            INLINE => {
                Taken::Inline { bytes: self.inline_bytes().to_vec(), raw: self.flags() & RAW != 0 }
            }
            // SAFETY: the kind is SHARED; ownership moves out, as the caller's contract says.
            SHARED => Taken::Shared(unsafe { body.cast::<Arc<Vec<u8>>>().read() }),
            // SAFETY: the kind is OBJECT; ownership moves out, as the caller's contract says.
            _ => Taken::Object(unsafe { body.cast::<Object>().read() }),
        }
    }

    /// Frees the allocation of an entry whose body was taken, without dropping the body.
    fn free_shell(self) {
        let layout = self.layout();
        let pointer = self.0;
        std::mem::forget(self);
        // SAFETY: the allocation was made with this layout; its body was moved out by `take_body`.
        unsafe { dealloc(pointer.as_ptr(), layout) };
    }

    fn forget_body_and_assign(&mut self, new: Self) {
        std::mem::replace(self, new).free_shell();
    }

    /// Allocates and fills an entry.
    fn build(
        key: &[u8],
        has_expiry: bool,
        expire_at_ms: Option<UnixMs>,
        access: u32,
        body: Body<'_>,
    ) -> Self {
        let mut flags = body.flags() | if has_expiry { HAS_EXPIRY } else { 0 };
        if let Body::Inline { len, .. } = &body
            && is_crowded(key.len(), *len, expire_at_ms.is_some())
        {
            flags |= RAW;
        }
        let layout = layout_of(flags, key.len(), body.capacity());
        // SAFETY: the layout has at least the header's size.
        let pointer = unsafe { alloc(layout) };
        let Some(pointer) = NonNull::new(pointer) else { handle_alloc_error(layout) };
        // `layout_of` made room for exactly the parts below, at exactly these offsets, each aligned
        // to 8 or made of bytes. "See above" means this.
        // SAFETY: see above.
        unsafe { pointer.cast::<u32>().write(flags | (access & CLOCK_MASK)) };
        // SAFETY: see above.
        let place = unsafe { pointer.add(4) }.cast::<u32>();
        // SAFETY: see above.
        unsafe { place.write(key.len() as u32) };
        if has_expiry {
            let at = expire_at_ms.unwrap_or(NO_EXPIRY);
            // SAFETY: see above.
            let place = unsafe { pointer.add(HEADER) }.cast::<UnixMs>();
            // SAFETY: see above.
            unsafe { place.write(at) };
        }
        let offset = body_offset(flags);
        // SAFETY: see above.
        let place = unsafe { pointer.add(offset) };
        let key_offset = offset + body_size(flags);
        // SAFETY: see above.
        let key_place = unsafe { pointer.add(key_offset) };
        // SAFETY: see above; the new allocation cannot overlap `key`.
        unsafe { key_place.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len()) };
        match body {
            // SAFETY: see above.
            Body::Int(number) => unsafe { place.cast::<i64>().write(number) },
            // SAFETY: see above.
            Body::Shared(value) => unsafe { place.cast::<Arc<Vec<u8>>>().write(value) },
            // SAFETY: see above.
            Body::Object(object) => unsafe { place.cast::<Object>().write(object) },
            Body::Inline { parts, len, capacity, .. } => {
                // SAFETY: see above.
                unsafe { place.cast::<[u32; 2]>().write([len as u32, capacity as u32]) };
                let mut at = key_offset + key.len();
                for part in parts {
                    // SAFETY: the parts together are `len <= capacity` bytes.
                    let place = unsafe { pointer.add(at) };
                    // SAFETY: as above; a new allocation overlaps nothing.
                    unsafe {
                        place.copy_from_nonoverlapping(NonNull::from(part).cast(), part.len());
                    };
                    at += part.len();
                }
            }
        }
        Self(pointer)
    }
}

/// A body that was moved out of its entry.
enum Taken {
    Int(i64),
    Inline { bytes: Vec<u8>, raw: bool },
    Shared(Arc<Vec<u8>>),
    Object(Object),
}

impl Taken {
    /// An entry that holds it.
    fn into_entry(self, key: &[u8], expire_at_ms: Option<UnixMs>, access: u32) -> Entry {
        let build =
            |body: Body<'_>| Entry::build(key, expire_at_ms.is_some(), expire_at_ms, access, body);
        match self {
            Self::Int(number) => build(Body::Int(number)),
            Self::Shared(value) => build(Body::Shared(value)),
            Self::Object(object) => build(Body::Object(object)),
            Self::Inline { bytes, raw } => {
                let len = bytes.len();
                build(Body::Inline { parts: [&bytes, &[]], len, capacity: len, raw })
            }
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let layout = self.layout();
        let body = self.body();
        match self.flags() & KIND_MASK {
            // SAFETY: the kind is SHARED, the Arc is owned and dropped once.
            SHARED => unsafe { body.cast::<Arc<Vec<u8>>>().drop_in_place() },
            // SAFETY: the kind is OBJECT, the object is owned and dropped once.
            OBJECT => unsafe { body.cast::<Object>().drop_in_place() },
            _ => {}
        }
        // SAFETY: the allocation was made with this layout and nobody else owns it.
        unsafe { dealloc(self.0.as_ptr(), layout) };
    }
}

// SAFETY: `into_raw` and `from_raw` hand over one owned allocation; `key_of` reads bytes that do
// not change while the entry stands in a table.
unsafe impl Item for Entry {
    const PREFETCH_BYTES: usize = 128; // A short key and the start of its value.

    #[inline]
    fn into_raw(self) -> NonNull<u8> {
        let pointer = self.0;
        std::mem::forget(self);
        pointer
    }

    #[inline]
    unsafe fn from_raw(pointer: NonNull<u8>) -> Self {
        Self(pointer)
    }

    #[inline]
    unsafe fn prefetch_value(pointer: NonNull<u8>) {
        // SAFETY: `from_raw` makes a second owner, which `ManuallyDrop` keeps from dropping; the
        // caller passes a live entry that nobody changes.
        let entry = std::mem::ManuallyDrop::new(unsafe { Self::from_raw(pointer) });
        if let Some(object) = entry.as_object() {
            object.prefetch();
        }
    }

    #[inline]
    unsafe fn key_of<'a>(pointer: NonNull<u8>) -> &'a [u8] {
        // SAFETY: the caller passes a live entry.
        unsafe { key_at(pointer) }
    }
}

/// The key of the entry at `pointer`.
///
/// # Safety
///
/// `pointer` must be a live entry for as long as `'a`.
#[inline]
unsafe fn key_at<'a>(pointer: NonNull<u8>) -> &'a [u8] {
    // SAFETY: an entry begins with its flags, which nobody changes without exclusive access; the
    // clock beside them is atomic.
    let flags = unsafe { pointer.cast::<AtomicU32>().as_ref() }.load(Ordering::Relaxed);
    // SAFETY: the key length lies at offset 4.
    let place = unsafe { pointer.add(4) }.cast::<u32>();
    // SAFETY: as above; the length never changes.
    let len = unsafe { place.read() };
    let offset = body_offset(flags) + body_size(flags);
    // SAFETY: the key lies behind the body, inside the allocation.
    let start = unsafe { pointer.add(offset) };
    // SAFETY: `len` initialized bytes lie there and stay as long as the entry.
    unsafe { std::slice::from_raw_parts(start.as_ptr(), len as usize) }
}

#[inline]
fn body_offset(flags: u32) -> usize {
    HEADER + if flags & HAS_EXPIRY != 0 { size_of::<UnixMs>() } else { 0 }
}

#[inline]
fn body_size(flags: u32) -> usize {
    if flags & KIND_MASK == OBJECT { size_of::<Object>() } else { 8 }
}

fn layout_of(flags: u32, key_len: usize, capacity: usize) -> Layout {
    let size = body_offset(flags) + body_size(flags) + key_len + capacity;
    Layout::from_size_align(size, 8).expect("keys and inline values are far below isize::MAX")
}

/// Whether a string could share a block of 64 bytes with its key, if only the key and the expiry
/// were shorter. One that is too long by itself needs no mark.
fn is_crowded(key_len: usize, len: usize, has_expiry: bool) -> bool {
    let expiry = if has_expiry { size_of::<UnixMs>() } else { 0 };
    len <= EMBSTR_MAX && key_len + len + expiry > EMBSTR_MAX
}

fn string_body(value: &[u8]) -> Body<'_> {
    parse_i64(value).map_or_else(|| text_body(value, false), Body::Int)
}

fn text_body(value: &[u8], raw: bool) -> Body<'_> {
    if value.len() >= SHARED_MIN {
        Body::Shared(Arc::new(value.to_vec()))
    } else {
        let len = value.len();
        Body::Inline { parts: [value, &[]], len, capacity: len, raw }
    }
}

/// The capacity of an inline string that is built in place: a first write takes what it needs, a
/// second one is a sign of more to come.
fn built_capacity(flags: u32, len: usize) -> usize {
    if flags & RAW != 0 { grown_capacity(len) } else { len }
}

/// Makes `bytes` `len >= bytes.len()` long.
fn grow_by_zeroes(bytes: &mut Vec<u8>, len: usize) {
    let capacity = if len > bytes.capacity() { grown_capacity(len) } else { bytes.capacity() };
    if capacity > bytes.capacity() && len - bytes.len() > bytes.len() {
        // Mostly zeroes: fresh memory has them already, so a bit at offset 2^32 - 1 of a new key
        // costs microseconds instead of the 100 ms that filling 512 MiB takes.
        let mut fresh = vec![0; capacity];
        fresh[..bytes.len()].copy_from_slice(bytes);
        *bytes = fresh;
        bytes.truncate(len);
        return;
    }
    bytes.reserve_exact(capacity - bytes.len());
    bytes.resize(len, 0);
}

/// Redis's growth rule for strings built in place: double up to 1 MiB, then 1 MiB more.
fn grown_capacity(len: usize) -> usize {
    const STEP: usize = 1 << 20;
    if len < STEP { len * 2 } else { len + STEP }
}

const _: () = assert!(align_of::<Object>() <= 8, "the body is aligned to 8 bytes");
const _: () = assert!(size_of::<Arc<Vec<u8>>>() == 8, "a shared body is one pointer");

#[cfg(test)]
mod tests {
    use super::{Entry, SHARED_MIN};

    fn text(entry: &Entry) -> Vec<u8> {
        entry.as_string().expect("a string").to_vec()
    }

    #[test]
    fn a_16_byte_key_with_a_64_byte_value_is_96_bytes() {
        let entry = Entry::string(&[b'k'; 16], &[b'v'; 64], None);
        assert_eq!(entry.memory_bytes(0), 96);
        assert_eq!((entry.key(), text(&entry)), (&[b'k'; 16][..], vec![b'v'; 64]));
    }

    #[test]
    fn strings_change_kind_and_keep_key_and_expiry() {
        let mut entry = Entry::string(b"key", b"hello", Some(5));
        assert_eq!(entry.encoding_name(), "embstr");
        entry.set_string(b"12");
        assert_eq!((text(&entry), entry.encoding_name()), (b"12".to_vec(), "int"));
        assert_eq!(entry.append(b"x"), 3);
        assert_eq!((text(&entry), entry.encoding_name()), (b"12x".to_vec(), "raw"));
        entry.bytes_mut(6)[5] = b'!';
        assert_eq!(text(&entry), b"12x\0\0!");
        entry.append(&vec![b'z'; SHARED_MIN]);
        assert_eq!(text(&entry).len(), SHARED_MIN + 6);
        entry.set_int(-1);
        assert_eq!((entry.key(), entry.expire_at_ms()), (&b"key"[..], Some(5)));
        assert!(entry.is_expired(6) && !entry.is_expired(5));
        entry.set_expire_at_ms(None);
        assert_eq!(entry.expire_at_ms(), None);
    }

    #[test]
    fn expiry_can_come_later_and_values_move_to_other_keys() {
        for value in [&b"7"[..], b"text", &[b'b'; SHARED_MIN]] {
            let mut entry = Entry::string(b"a", value, None);
            entry.set_access(77);
            entry.set_expire_at_ms(Some(9));
            let copy = entry.duplicate(b"copy", None).expect("a string");
            let moved = entry.with_key(b"longer key", Some(3));
            assert_eq!((moved.key(), moved.expire_at_ms()), (&b"longer key"[..], Some(3)));
            assert_eq!((text(&moved), moved.access()), (value.to_vec(), 77));
            assert_eq!((copy.key(), text(&copy)), (&b"copy"[..], value.to_vec()));
        }
    }
}
