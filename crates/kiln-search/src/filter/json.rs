//! The members of a JSON object, read where they lie.
//!
//! Attributes are stored as the client sent them and may be anything. A member counts if the text
//! up to its end is an object's: what follows is not looked at. Nothing is copied or decoded.

/// A member's value. Strings are raw: what stands between the quotes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Json<'a> {
    Number(f64),
    Text(&'a [u8]),
    /// What stands between the brackets of an array whose elements can be read.
    List(&'a [u8]),
    Null,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

/// Finds the members called `names` in `text`, the first of each name, and puts them into `found`;
/// says whether all were found.
pub(super) fn members<'a>(
    text: &'a [u8],
    names: &[Box<[u8]>],
    found: &mut [Option<Json<'a>>],
) -> bool {
    Reader { text, at: 0 }.members(names, found).is_some()
}

/// The elements of an array.
pub(super) fn elements(list: &[u8]) -> impl Iterator<Item = Json<'_>> {
    let mut reader = Reader { text: list, at: 0 };
    std::iter::from_fn(move || {
        reader.skip_spaces();
        let element = reader.value()?;
        reader.skip_spaces();
        reader.at += 1; // The comma, or the end.
        Some(element)
    })
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t'..=b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.skip_spaces();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn members(&mut self, names: &[Box<[u8]>], found: &mut [Option<Json<'a>>]) -> Option<()> {
        let mut missing = names.len();
        self.expect(b'{')?;
        loop {
            self.skip_spaces();
            let name = self.string()?;
            self.expect(b':')?;
            self.skip_spaces();
            match names.iter().position(|wanted| **wanted == *name) {
                Some(index) if found[index].is_none() => {
                    found[index] = Some(self.value()?);
                    missing -= 1;
                    if missing == 0 {
                        return Some(());
                    }
                }
                _ => self.skip_value()?,
            }
            self.expect(b',')?;
        }
    }

    /// A string's raw bytes.
    fn string(&mut self) -> Option<&'a [u8]> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.text.get(end)? {
                b'\\' => end += 2,
                b'"' => break,
                _ => end += 1,
            }
        }
        self.at = end + 1;
        Some(&self.text[start..end])
    }

    /// A value other than an object.
    fn value(&mut self) -> Option<Json<'a>> {
        match self.peek()? {
            b'"' => self.string().map(Json::Text),
            b'[' => {
                let start = self.at + 1;
                self.check_list()?;
                Some(Json::List(&self.text[start..self.at - 1]))
            }
            b't' => self.word(b"true").map(|()| Json::Number(1.0)),
            b'f' => self.word(b"false").map(|()| Json::Number(0.0)),
            b'n' => self.word(b"null").map(|()| Json::Null),
            b'-' | b'+' | b'0'..=b'9' => {
                let start = self.at;
                self.skip_number();
                fast_float2::parse(&self.text[start..self.at]).ok().map(Json::Number)
            }
            _ => None,
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let rest = &self.text[self.at..];
        let ends = !rest.get(word.len()).is_some_and(u8::is_ascii_alphanumeric);
        (rest.starts_with(word) && ends).then(|| self.at += word.len())
    }

    fn skip_number(&mut self) {
        let is_in_number =
            |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        while self.peek().is_some_and(is_in_number) {
            self.at += 1;
        }
    }

    /// Passes an array whose elements are values other than objects, arrays of such included.
    fn check_list(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            // Here a value is due, or the end of an array without one.
            self.skip_spaces();
            match self.peek()? {
                b'[' => {
                    self.at += 1;
                    depth += 1;
                    self.skip_spaces();
                    if self.peek()? != b']' {
                        continue;
                    }
                }
                _ => drop(self.value()?),
            }
            // Here a comma is due, or the end of an array.
            loop {
                self.skip_spaces();
                match self.peek()? {
                    b',' => {
                        self.at += 1;
                        break;
                    }
                    b']' => {
                        self.at += 1;
                        depth -= 1;
                        if depth == 0 {
                            return Some(());
                        }
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Passes any value. Inside arrays and objects only brackets and strings are looked at.
    fn skip_value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' | b'[' => self.skip_brackets(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            b'-' | b'+' | b'0'..=b'9' => {
                self.skip_number();
                Some(())
            }
            _ => None,
        }
    }

    /// Passes everything up to the bracket that closes the one here.
    fn skip_brackets(&mut self) -> Option<()> {
        let open = self.peek()?;
        let close = if open == b'{' { b'}' } else { b']' };
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                byte if byte == open => depth += 1,
                byte if byte == close => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }
}
