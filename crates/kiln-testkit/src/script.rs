//! Transcripts: commands as a person types them, replies as redis-cli prints them.
//!
//! One transcript runs in-process, over TCP and against the reference server: the caller hands in
//! what executes a command. This file only splits lines and compares texts.

use crate::reply::{Reply, quote};

/// Runs each command and compares its reply's text; the first that differs panics with both.
///
/// ```
/// use kiln_testkit::{reply::Reply, script::check};
/// check(
///     |words| Reply::Bulk(words[1].clone()),
///     &[("ECHO a", r#""a""#), (r#"ECHO "a b\r\n""#, r#""a b\r\n""#)],
/// );
/// ```
#[track_caller]
pub fn check(call: impl FnMut(&[Vec<u8>]) -> Reply, steps: &[(&str, &str)]) {
    if let Some(mismatch) = first_mismatch(call, steps) {
        panic!("{mismatch}");
    }
}

/// The first step whose reply is not the one expected, in words.
fn first_mismatch(
    mut call: impl FnMut(&[Vec<u8>]) -> Reply,
    steps: &[(&str, &str)],
) -> Option<String> {
    for (number, (command, expected)) in (1..).zip(steps) {
        let Some(words) = split(command) else {
            return Some(format!("step {number}: {command}\n  its quotes don't balance"));
        };
        let actual = call(&words).to_string();
        if actual != *expected {
            let indented = |text: &str| text.replace('\n', "\n            ");
            let (expected, actual) = (indented(expected), indented(&actual));
            return Some(format!(
                "step {number}: {command}\n  expected: {expected}\n    actual: {actual}"
            ));
        }
    }
    None
}

/// Splits a line into words, as redis-cli does; `None` if its quotes don't balance.
///
/// Double quotes know `\n \r \t \a \b \xHH` and a backslash before any other byte; single quotes
/// know `\'`. A closing quote ends the word, so a blank or the end of the line must follow.
pub fn split(line: &str) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii().as_bytes();
    while !rest.is_empty() {
        let (word, tail) = match rest[0] {
            b'"' => double_quoted(&rest[1..])?,
            b'\'' => single_quoted(&rest[1..])?,
            _ => {
                let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                (rest[..end].to_vec(), &rest[end..])
            }
        };
        if tail.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return None;
        }
        words.push(word);
        rest = tail.trim_ascii_start();
    }
    Some(words)
}

/// The line that [`split`] cuts into `words` again: what to paste into redis-cli.
pub fn join(words: &[Vec<u8>]) -> String {
    let plain = |word: &Vec<u8>| {
        !word.is_empty()
            && word
                .iter()
                .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\'))
    };
    let word = |word: &Vec<u8>| {
        if plain(word) { String::from_utf8_lossy(word).into_owned() } else { quote(word) }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn double_quoted(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut word, mut at) = (Vec::new(), 0);
    loop {
        match *bytes.get(at)? {
            b'"' => return Some((word, &bytes[at + 1..])),
            b'\\' => {
                let escaped = *bytes.get(at + 1)?;
                let hex =
                    bytes.get(at + 2..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
                let code = hex.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                if let (b'x', Some(code)) = (escaped, code) {
                    word.push(code);
                    at += 4;
                    continue;
                }
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 0x07,
                    b'b' => 0x08,
                    other => other,
                });
                at += 2;
            }
            byte => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

fn single_quoted(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut word, mut at) = (Vec::new(), 0);
    loop {
        match bytes.get(at..)? {
            [b'\'', tail @ ..] => return Some((word, tail)),
            [b'\\', b'\'', ..] => {
                word.push(b'\'');
                at += 2;
            }
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_split_as_in_redis_cli() {
        let cases: [(&str, Option<&[&[u8]]>); 9] = [
            ("SET a 1", Some(&[b"SET", b"a", b"1"])),
            ("  SET\ta  \"\" ", Some(&[b"SET", b"a", b""])),
            (r#"SET "a b" '\'x\n'"#, Some(&[b"SET", b"a b", b"'x\\n"])),
            (r#"X "\x00\xff\r\n\"\q\xzz""#, Some(&[b"X", b"\0\xff\r\n\"qxzz"])),
            ("X a\"b", Some(&[b"X", b"a\"b"])),
            ("", Some(&[])),
            ("X \"a\"b", None),
            ("X \"a", None),
            ("X 'a", None),
        ];
        for (line, expected) in cases {
            let words = split(line);
            let words =
                words.as_ref().map(|words| words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            assert_eq!(words.as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn joined_words_split_again() {
        let words: Vec<Vec<u8>> =
            vec![b"SET".into(), b"".into(), (0..=255).collect(), b"it's".into(), b"a\\".into()];
        assert_eq!(split(&join(&words)), Some(words));
    }

    #[test]
    fn the_first_wrong_reply_is_reported() {
        let echo = |words: &[Vec<u8>]| Reply::Bulk(words[1].clone());
        assert_eq!(first_mismatch(echo, &[("ECHO a", "\"a\"")]), None);
        assert_eq!(
            first_mismatch(echo, &[("ECHO a", "\"a\""), ("ECHO b", "\"a\""), ("ECHO c", "")]),
            Some("step 2: ECHO b\n  expected: \"a\"\n    actual: \"b\"".to_owned())
        );
    }
}
