//! What families whose values have elements share: writing an element as a reply, and taking one
//! along from one key to another.

use kiln_base::number::{INTEGER_BYTES_MAX, parse_i64};
use kiln_command::{Args, CommandError, ReplyWriter};
use kiln_data::listpack::Value;
use smallvec::SmallVec;

/// An element on its way between two keys. Short ones need no allocation.
pub(crate) type Carried = SmallVec<[u8; 64]>;

/// Copies an element out of its value.
pub(crate) fn carry(element: Value<'_>) -> Carried {
    SmallVec::from_slice(element.text(&mut [0; INTEGER_BYTES_MAX]))
}

/// Elements as replies.
pub(crate) trait ReplyElement {
    /// A bulk string of the element's text.
    fn element(&mut self, element: Value<'_>);
}

impl ReplyElement for ReplyWriter<'_> {
    #[inline]
    fn element(&mut self, element: Value<'_>) {
        match element {
            Value::Bytes(text) => self.bulk(text),
            Value::Int(number) => self.bulk_integer(number),
        }
    }
}

/// Word `index` as the number of keys that follow it, at least one.
pub(crate) fn num_keys(args: &Args<'_>, index: usize) -> Result<usize, CommandError> {
    positive(args.get(index)).ok_or(CommandError::NumKeys)
}

/// A number above zero.
pub(crate) fn positive(text: &[u8]) -> Option<usize> {
    parse_i64(text).and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0)
}
