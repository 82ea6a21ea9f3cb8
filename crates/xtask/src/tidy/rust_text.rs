//! A Rust file split into what the compiler runs and what it does not.
//!
//! Rules look for words in code, or for texts in string literals, and must not be fooled by a
//! comment that speaks of either. This is a lexer of the few things that matter for that: line
//! and nested block comments, strings (plain, raw, byte, C) and character literals as opposed to
//! lifetimes. It does not check that the file is valid Rust; rustc does.

/// A string literal, as it stands in the source without its quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Literal {
    /// The line it starts on, from 1.
    pub(super) line: usize,
    pub(super) text: String,
}

/// The two halves of a Rust file.
#[derive(Debug)]
pub(super) struct RustText {
    /// The source with comments and the insides of literals blanked, line for line.
    pub(super) code: String,
    pub(super) strings: Vec<Literal>,
    /// The first line of the tests that close the file; one past the end if there are none.
    pub(super) tests_from: usize,
}

impl RustText {
    pub(super) fn split(text: &str) -> RustText {
        let mut splitter = Splitter { rest: text, line: 1, code: String::new(), strings: vec![] };
        while !splitter.rest.is_empty() {
            splitter.step();
        }
        let Splitter { code, strings, line, .. } = splitter;
        let marked = code.lines().position(|line| line.trim() == "#[cfg(test)]");
        // A `#[cfg(test)]` on anything but the closing module of tests does not end the code.
        let tests_from = marked.filter(|&at| {
            let after = code.lines().skip(at + 1).find(|line| !line.trim().starts_with("#["));
            after.is_some_and(|line| line.trim_start().starts_with("mod ") && line.contains('{'))
        });
        RustText { code, strings, tests_from: tests_from.map_or(line + 1, |at| at + 1) }
    }

    /// The lines of code before the closing tests, from 1.
    pub(super) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..self.tests_from).zip(self.code.lines())
    }

    /// Whether `word` stands in the code as a whole word, tests included.
    pub(super) fn has_word(&self, word: &str) -> bool {
        has_word(&self.code, word)
    }
}

/// Whether `word` stands in `text` with nothing of an identifier on either side.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

struct Splitter<'a> {
    rest: &'a str,
    line: usize,
    code: String,
    strings: Vec<Literal>,
}

impl Splitter<'_> {
    /// Consumes one comment, literal or character.
    fn step(&mut self) {
        if self.rest.starts_with("//") {
            let length = self.rest.find('\n').unwrap_or(self.rest.len());
            self.blank(length);
        } else if self.rest.starts_with("/*") {
            self.blank(block_comment(self.rest));
        } else if self.code.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            self.keep(1); // Inside an identifier, where an `r` or a `b` starts nothing.
        } else if let Some((start, length, end)) = string(self.rest) {
            let text = self.rest[start..start + length].to_owned();
            self.strings.push(Literal { line: self.line, text });
            self.keep(start);
            self.blank(length);
            self.keep(end);
        } else if let Some(length) = character(self.rest) {
            self.blank(length);
        } else {
            self.keep(1);
        }
    }

    /// Takes `count` characters (bytes, if they are ASCII) over into the code.
    fn keep(&mut self, count: usize) {
        let length = self.rest.char_indices().nth(count).map_or(self.rest.len(), |(at, _)| at);
        let (kept, rest) = self.rest.split_at(length);
        self.line += kept.matches('\n').count();
        self.code.push_str(kept);
        self.rest = rest;
    }

    /// Takes `length` bytes over as blanks, keeping the line breaks.
    fn blank(&mut self, length: usize) {
        let (blanked, rest) = self.rest.split_at(length);
        self.line += blanked.matches('\n').count();
        self.code.extend(blanked.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

/// The length of the block comment that `text` starts with, nested ones included.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// If `text` starts with a string literal: the length of its opening, its inside and its closing.
fn string(text: &str) -> Option<(usize, usize, usize)> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|p| {
        let after = text.strip_prefix(p).unwrap_or("");
        after.starts_with('"')
            || (p.ends_with('r') && after.trim_start_matches('#').starts_with('"'))
    })?;
    let after = &text[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let start = prefix.len() + hashes + 1;
    let inside = &text[start..];
    if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        let length = inside.find(&end).unwrap_or(inside.len());
        return Some((start, length, end.len().min(inside.len() - length)));
    }
    let mut escaped = false;
    for (at, c) in inside.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some((start, at, 1)),
            _ => {}
        }
    }
    Some((start, inside.len(), 0))
}

/// The length of the character or byte literal that `text` starts with; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('b').unwrap_or(text).strip_prefix('\'')?;
    let opening = text.len() - inside.len();
    if let Some(escape) = inside.strip_prefix('\\') {
        let first = escape.chars().next()?.len_utf8();
        return Some(opening + 1 + first + escape[first..].find('\'')? + 1);
    }
    let c = inside.chars().next()?;
    inside[c.len_utf8()..].starts_with('\'').then_some(opening + c.len_utf8() + 1)
}

#[cfg(test)]
mod tests {
    use super::{Literal, RustText, has_word};

    fn check(text: &str, code: &str, strings: &[&str]) {
        let got = RustText::split(text);
        assert_eq!(got.code, code, "{text}");
        let texts: Vec<&str> = got.strings.iter().map(|literal| literal.text.as_str()).collect();
        assert_eq!(texts, strings, "{text}");
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        check("a // b\nc", "a     \nc", &[]);
        check("a /* b /* c */ d */ e", "a                   e", &[]);
        check(r#"f("x\"y", b"z")"#, r#"f("    ", b" ")"#, &[r#"x\"y"#, "z"]);
        check(r##"r#"a"b"# c"##, r##"r#"   "# c"##, &[r#"a"b"#]);
        check("'\"' 'a 'b' '\\'' x", "    'a          x", &[]);
        check("b'\"' x b'\\n'", "     x      ", &[]);
        check("'\\u{1F600}' x", "            x", &[]);
        check("hair\"x\"", "hair\"x\"", &[]);
        check("é // ü", "é     ", &[]);
    }

    #[test]
    fn a_literal_knows_its_line() {
        let got = RustText::split("a\n\"b\nc\"\n\"d\"");
        let want = [(2, "b\nc"), (4, "d")].map(|(line, text)| Literal { line, text: text.into() });
        assert_eq!(got.strings, want);
    }

    #[test]
    fn the_closing_tests_are_found() {
        let got = RustText::split("fn a() {}\n#[cfg(test)]\nmod tests {\n}\n");
        assert_eq!(got.tests_from, 2);
        assert_eq!(got.code_lines().count(), 1);
        assert_eq!(RustText::split("#[cfg(test)]\nmod tests;\nfn a() {}\n").tests_from, 5);
        assert_eq!(RustText::split("#[cfg(test)]\nuse a::b;\nfn a() {}\n").tests_from, 5);
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("x unsafe {", "unsafe"));
        assert!(!has_word("unsafe_code my_unsafe", "unsafe"));
    }
}
