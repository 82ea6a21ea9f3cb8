//! Patterns of SORT's BY and GET: the name of a key, or of a field, made of an element.

use kiln_base::number::INTEGER_BYTES_MAX;
use kiln_command::{EntryRef, Object, Value, View};

/// `#`, or a name with a `*` for the element.
pub(super) struct Pattern<'a> {
    text: &'a [u8],
    parts: Option<Parts<'a>>,
}

/// `prefix*suffix` or `prefix*suffix->field`.
struct Parts<'a> {
    prefix: &'a [u8],
    suffix: &'a [u8],
    field: Option<&'a [u8]>,
}

/// What a pattern finds for one element.
pub(super) enum Substitute<'f> {
    /// Nothing: no such key or field, a value of another type, or a pattern without `*`.
    Missing,
    Text(&'f [u8]),
}

impl<'a> Pattern<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        let parts = memchr::memchr(b'*', text).map(|star| {
            let rest = &text[star + 1..];
            let arrow = memchr::memmem::find(rest, b"->").filter(|arrow| arrow + 2 < rest.len());
            let (suffix, field) = match arrow {
                Some(arrow) => (&rest[..arrow], Some(&rest[arrow + 2..])),
                None => (rest, None),
            };
            Parts { prefix: &text[..star], suffix, field }
        });
        Self { text, parts }
    }

    /// Whether what it finds depends on the element.
    pub(super) fn has_star(&self) -> bool {
        self.parts.is_some()
    }

    /// Calls `visit` once with what the pattern finds for `element`. `key` is room for the name.
    pub(super) fn look_up(
        &self,
        view: &View<'_>,
        element: &[u8],
        key: &mut Vec<u8>,
        visit: impl FnOnce(Substitute<'_>),
    ) {
        if self.text == b"#" {
            return visit(Substitute::Text(element));
        }
        let Some(parts) = &self.parts else { return visit(Substitute::Missing) };
        key.clear();
        for part in [parts.prefix, element, parts.suffix] {
            key.extend_from_slice(part);
        }
        let mut scratch = [0; INTEGER_BYTES_MAX];
        let found = match (view.get(key).map(EntryRef::value), parts.field) {
            (Some(Value::String(text)), None) => Some(text.bytes(&mut scratch)),
            (Some(Value::Object(Object::Hash(hash))), Some(field)) => {
                hash.get(field, view.now()).map(|value| value.text(&mut scratch))
            }
            _ => None,
        };
        visit(found.map_or(Substitute::Missing, Substitute::Text));
    }
}
