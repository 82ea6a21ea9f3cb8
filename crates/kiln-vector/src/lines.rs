//! Bytes that start at a cache line: what a kernel reads over and over.
//!
//! A load of 64 bytes that crosses a line counts twice. A plain `Vec` starts anywhere; this one
//! has room for a line more, and skips what comes before the first whole line.

/// A cache line.
pub(crate) const LINE: usize = 64;

/// A buffer of bytes whose first is at a multiple of [`LINE`].
#[derive(Debug, Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Lines {
    /// Makes it `len` bytes of unspecified contents, and hands them out to be filled.
    pub(crate) fn resize(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < len + LINE - 1 {
            self.bytes.resize(len + LINE - 1, 0);
            // The offset is a hint: `align_offset` may give up, and slow is not wrong.
            let start = self.bytes.as_ptr().align_offset(LINE);
            self.start = if start < LINE { start } else { 0 };
        }
        self.len = len;
        &mut self.bytes[self.start..self.start + len]
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl Clone for Lines {
    fn clone(&self) -> Lines {
        let mut lines = Lines::default();
        lines.resize(self.len).copy_from_slice(self.as_slice());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE, Lines};

    #[test]
    fn lines_are_aligned_as_they_grow_shrink_and_are_cloned() {
        let mut lines = Lines::default();
        assert!(lines.as_slice().is_empty());
        for len in [1, 64, 63, 1000, 10, 4096, 0] {
            lines.resize(len).fill(7);
            for lines in [&lines, &lines.clone()] {
                assert_eq!(lines.as_slice(), vec![7; len]);
                assert_eq!(lines.as_slice().as_ptr().addr() % LINE, 0);
            }
        }
    }
}
