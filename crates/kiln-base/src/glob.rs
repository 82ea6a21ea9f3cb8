//! Glob patterns as in KEYS, SCAN, PSUBSCRIBE, CONFIG GET and ACL rules.
//!
//! | pattern | matches |
//! | --- | --- |
//! | `*` | any bytes, none included |
//! | `?` | any one byte |
//! | `[abc]`, `[a-c]`, `[^a]` | one byte of the set, the range (ends in any order), or outside |
//! | `\x` | the byte `x` itself, in a set too |
//!
//! Odd patterns are decided as in Redis: a set without its `]` reaches to the pattern's end, `]`
//! right after `[` closes an empty set, which nothing is in; a `\` at the very end stands for
//! itself; an escaped byte in a set has its case compared even when case is ignored; and no text
//! matches a pattern with `*` in more than [`STARS_MAX`] places if it gets that far. The empty text
//! matches only the empty pattern, not even `*`: the commands that need it check for `*` first.
//!
//! Every element but `*` takes exactly one byte. So when an element fails, only the last `*` needs
//! to be tried with one byte more, for an earlier one could bring the match to no place that the
//! last cannot: the time is at most pattern times text, never exponential.
//!
//! Source: Redis 8.2.3, asked with KEYS.

/// The most places with `*` in a pattern; Redis limits the depth of its recursion to this.
pub const STARS_MAX: usize = 1_000;

/// Whether all of `text` matches `pattern`; with `ignore_case`, ASCII letters match in either case.
pub fn glob_match(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    let fold = |byte: u8| if ignore_case { byte.to_ascii_lowercase() } else { byte };
    let (mut pattern_at, mut text_at) = (0, 0);
    // Where to go on after a mismatch: right behind the last `*`, one byte further in the text.
    let mut retry: Option<(usize, usize)> = None;
    let mut stars = 0;
    while text_at < text.len() {
        if pattern.get(pattern_at) == Some(&b'*') {
            while pattern.get(pattern_at) == Some(&b'*') {
                pattern_at += 1;
            }
            if pattern_at == pattern.len() {
                return true;
            }
            stars += 1;
            if stars > STARS_MAX {
                return false;
            }
            retry = Some((pattern_at, text_at));
            continue;
        }
        let byte = text[text_at];
        let matched = match &pattern[pattern_at..] {
            [] => None,
            [b'?', ..] => Some(1),
            [b'[', rest @ ..] => {
                let (contains, len) = set_contains(rest, byte, fold);
                contains.then_some(len + 1)
            }
            [b'\\', escaped, ..] => (fold(*escaped) == fold(byte)).then_some(2),
            [literal, ..] => (fold(*literal) == fold(byte)).then_some(1),
        };
        match (matched, &mut retry) {
            (Some(len), _) => {
                pattern_at += len;
                text_at += 1;
            }
            (None, Some((after_star, taken))) => {
                *taken += 1;
                (pattern_at, text_at) = (*after_star, *taken);
            }
            (None, None) => return false,
        }
    }
    !text.is_empty() && pattern[pattern_at..].iter().all(|&byte| byte == b'*') || pattern.is_empty()
}

/// Whether the set whose text follows `[` contains `byte`, and how long that text is.
fn set_contains(set: &[u8], byte: u8, fold: impl Fn(u8) -> u8) -> (bool, usize) {
    let negated = set.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut contains = false;
    loop {
        let (hit, len) = match &set[at..] {
            [] => break,
            [b'\\', escaped, ..] => (*escaped == byte, 2),
            [b']', ..] => {
                at += 1;
                break;
            }
            [one, b'-', other, ..] => {
                // Ordered before case is folded, as in Redis.
                let (low, high) = (fold(*one.min(other)), fold(*one.max(other)));
                ((low..=high).contains(&fold(byte)), 3)
            }
            [member, ..] => (fold(*member) == fold(byte), 1),
        };
        contains |= hit;
        at += len;
    }
    (contains != negated, at)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::{STARS_MAX, glob_match};

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        for text in matching {
            assert!(glob_match(pattern.as_bytes(), text.as_bytes(), false), "{pattern} {text}");
        }
        for text in others {
            assert!(!glob_match(pattern.as_bytes(), text.as_bytes(), false), "{pattern} {text}");
        }
    }

    /// As Redis 8.2.3 answers KEYS.
    #[test]
    fn patterns_mean_what_they_mean_in_redis() {
        check("h?llo", &["hello", "hxllo"], &["hllo", "heello", "Hello"]);
        check("h*llo", &["hllo", "heeeello"], &["hell", "hllox"]);
        check("h[ae]llo", &["hello", "hallo"], &["hillo"]);
        check("h[^e]llo", &["hallo", "h^llo"], &["hello"]);
        check("h[b-a]llo", &["hallo", "hbllo"], &["hcllo", "h-llo"]);
        check("*[", &[], &["", "a", "["]);
        check("[a", &["a"], &["", "[", "[a", "b"]);
        check("[^a", &["b"], &["a"]);
        check("[]a]", &[], &["a", "]", "]a]", "a]"]);
        check("[^]a", &["xa", "]a"], &["a"]);
        check("[a-", &["a", "-"], &["b"]);
        check("[a-]", &["a", "]", "_"], &["-", "b", "a]"]);
        check("[\\]]", &["]"], &["\\", "\\]"]);
        check("[a\\", &["a", "\\"], &["b"]);
        check("\\*", &["*"], &["a", "\\*"]);
        check("a\\", &["a\\"], &["a"]);
        check("\\a", &["a"], &["\\a"]);
        check("*a*b**c*", &["abc", "xaxbxcx", "aabbcc"], &["acb", "ab"]);
        check("", &[""], &["a"]);
        check("*", &["a"], &[""]);
    }

    #[test]
    fn case_is_ignored_on_demand() {
        for (pattern, text, want) in [
            ("GeT", "gEt", true),
            ("[A-C]x", "bX", true),
            ("[Z]", "z", true),
            ("[\\Z]", "z", false),
            ("[\\z]", "z", true),
            ("[a-Z]", "b", false),
        ] {
            assert_eq!(glob_match(pattern.as_bytes(), text.as_bytes(), true), want, "{pattern}");
        }
    }

    #[test]
    fn many_stars_neither_take_long_nor_match() {
        let text = b"a".repeat(3 * STARS_MAX);
        assert!(glob_match(&b"*a".repeat(STARS_MAX), &text, false));
        assert!(!glob_match(&b"*a".repeat(STARS_MAX + 1), &text, false));
        assert!(!glob_match(&[&b"*a".repeat(STARS_MAX)[..], b"b"].concat(), &text, false));
    }

    /// The same by trying everything.
    fn slow_match(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => {
                (0..=text.len()).any(|taken| slow_match(rest, &text[taken..]))
            }
            (_, []) => false,
            ([b'?', rest @ ..], [_, tail @ ..]) => slow_match(rest, tail),
            ([b'[', set @ ..], [byte, tail @ ..]) => {
                let end = set.iter().position(|&byte| byte == b']').unwrap_or(set.len());
                let (members, rest) = (&set[..end], &set[set.len().min(end + 1)..]);
                let (negated, members) = match members {
                    [b'^', members @ ..] => (true, members),
                    members => (false, members),
                };
                members.contains(byte) != negated && slow_match(rest, tail)
            }
            ([b'\\', literal, rest @ ..] | [literal, rest @ ..], [byte, tail @ ..]) => {
                literal == byte && slow_match(rest, tail)
            }
        }
    }

    proptest! {
        /// Without ranges and escapes in sets, which the reference does not know.
        #[test]
        fn backtracking_to_the_last_star_is_enough(
            parts in vec(
                select(vec!["*", "a", "b", "?", "[ab]", "[^a]", "\\*", "\\a", "[", "]"]),
                0..12,
            ),
            text in "[ab*\\[\\]]{1,12}",
        ) {
            let pattern = parts.concat();
            let want = slow_match(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(glob_match(pattern.as_bytes(), text.as_bytes(), false), want);
        }

        #[test]
        fn any_pattern_ends(pattern in vec(any::<u8>(), 0..40), text in vec(any::<u8>(), 0..40)) {
            let exact = glob_match(&pattern, &text, false);
            prop_assert!(!exact || text.is_empty() == pattern.is_empty());
        }
    }
}
