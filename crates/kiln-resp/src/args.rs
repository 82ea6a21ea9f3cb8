//! The words of one command, as spans of the buffer they arrived in.

/// One word: `len` bytes at `start` of the buffer it belongs to.
///
/// A `u32` bounds a query buffer to 4 GiB; `client-query-buffer-limit` is capped below that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

/// The words of one command, its name first. Two words of machine state: pass it by value.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    buf: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// The words that `spans` cut out of `buf`.
    #[inline]
    pub fn new(buf: &'a [u8], spans: &'a [Span]) -> Self {
        Self { buf, spans }
    }

    /// How many words there are, the command name included.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a command has at least its name")]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Word `index`; word 0 is the command name.
    ///
    /// # Panics
    ///
    /// If there is no such word: the executor has checked the arity before a handler runs.
    #[inline]
    pub fn get(&self, index: usize) -> &'a [u8] {
        let span = self.spans[index];
        &self.buf[span.start as usize..][..span.len as usize]
    }

    /// Word `index`, or `None` beyond the last.
    #[inline]
    pub fn try_get(&self, index: usize) -> Option<&'a [u8]> {
        (index < self.spans.len()).then(|| self.get(index))
    }

    /// The words from `first` on, as `Args` of their own.
    #[inline]
    #[must_use]
    pub fn tail(&self, first: usize) -> Self {
        Self { buf: self.buf, spans: &self.spans[first.min(self.spans.len())..] }
    }

    /// All words in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let buf = self.buf;
        self.spans.iter().map(move |span| &buf[span.start as usize..][..span.len as usize])
    }

    /// A copy that outlives the read buffer, for queued and blocked commands.
    pub fn to_owned(&self) -> OwnedArgs {
        OwnedArgs::new(self.iter())
    }
}

/// The words of one command in memory of their own.
#[derive(Clone, Debug, Default)]
pub struct OwnedArgs {
    buf: Box<[u8]>,
    spans: Box<[Span]>,
}

impl OwnedArgs {
    /// Copies `words`.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut buf, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            spans.push(Span { start: buf.len() as u32, len: word.len() as u32 });
            buf.extend_from_slice(word);
        }
        Self { buf: buf.into(), spans: spans.into() }
    }

    /// The words.
    #[inline]
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.buf, &self.spans)
    }

    /// Bytes of memory held, for the accounting of queued commands.
    pub fn memory_bytes(&self) -> usize {
        self.buf.len() + self.spans.len() * size_of::<Span>()
    }
}
