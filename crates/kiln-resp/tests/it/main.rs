//! The parser as a connection uses it.

mod split;

use kiln_resp::{Batch, MAX_INLINE_BYTES, Parser, ParserLimits};
use proptest::{collection::vec, prelude::*, sample::select};
use split::{check, transcript};

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

/// The commands in `input`, a line each, and the error if there is one. PING follows each input to
/// show that the parser is in step.
#[track_caller]
fn check_input(input: &[u8], want: &[&[&[u8]]], error: Option<&str>) {
    check_limited(input, &ParserLimits::default(), want, error);
}

#[track_caller]
fn check_limited(input: &[u8], limits: &ParserLimits, want: &[&[&[u8]]], error: Option<&str>) {
    let input = [input, PING].concat();
    let got = transcript(&input, [], limits, usize::MAX);
    let mut want: Vec<Vec<Vec<u8>>> =
        want.iter().map(|words| words.iter().map(|word| word.to_vec()).collect()).collect();
    if error.is_none() {
        want.push(vec![b"PING".to_vec()]);
    }
    assert_eq!(got.commands, want);
    assert_eq!(got.error, error.map(|text| format!("Protocol error: {text}")));
    check(&input, 1);
}

#[test]
fn arrays_of_bulk_strings() {
    check_input(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", &[&[b"GET", b"k"]], None);
    check_input(b"*1\r\n$0\r\n\r\n", &[&[b""]], None);
    let long = [b"*12\r\n".to_vec(), b"$2\r\n\r\n\r\n".repeat(12)].concat();
    check_input(&long, &[&[b"\r\n".as_slice(); 12]], None);
    let value = [b'v'; 1_234];
    let input = [b"*2\r\n$3\r\nabc\r\n$1234\r\n".as_slice(), &value, b"\r\n"].concat();
    check_input(&input, &[&[b"abc", &value]], None);
}

#[test]
fn the_byte_after_a_length_or_word_is_not_looked_at() {
    check_input(b"*1\rX$4\rYPINGab", &[&[b"PING"]], None);
    check_input(b"*0000000001\r\n", &[], Some("invalid multibulk length"));
}

#[test]
fn empty_lines_and_empty_arrays_are_skipped() {
    for input in
        [&b"\r\n"[..], b"\n\n", b" \t \r\n", b"*0\r\n", b"*-1\r\n", b"*-9223372036854775808\r\n"]
    {
        check_input(input, &[], None);
    }
    // They are consumed even when nothing follows.
    assert_eq!(transcript(b"\r\n*0\r\n", [], &ParserLimits::default(), 1).rest, 0);
}

#[test]
fn malformed_arrays() {
    for count in ["abc", "", "+1", "01", "-0", " 1", "1\n", "2147483648", "11111111111111111111111"]
    {
        let input = format!("*{count}\r\n");
        check_input(input.as_bytes(), &[], Some("invalid multibulk length"));
    }
    for len in ["abc", "", "-1", "-0", "00", "536870913", "4294967296", "99999999999999999999"] {
        let input = format!("*1\r\n${len}\r\n");
        check_input(input.as_bytes(), &[], Some("invalid bulk length"));
    }
    check_input(b"*1\r\nPING\r\n", &[], Some("expected '$', got 'P'"));
    check_input(b"*1\r\n\r\n", &[], Some("expected '$', got '\r'"));
    check_input(b"*2\r\n$1\r\na\r\n:1\r\n", &[], Some("expected '$', got ':'"));
    // Commands before the error are executed.
    check_input(&[PING, b"*1\r\n$x\r\n"].concat(), &[&[b"PING"]], Some("invalid bulk length"));
}

#[test]
fn limits_before_authentication() {
    let limits = ParserLimits { unauthenticated: true, ..ParserLimits::default() };
    check_limited(b"*11\r\n", &limits, &[], Some("unauthenticated multibulk length"));
    check_limited(b"*1\r\n$16385\r\n", &limits, &[], Some("unauthenticated bulk length"));
    let ten = [&b"*10\r\n"[..], &b"$1\r\na\r\n".repeat(10)].concat();
    check_limited(&ten, &limits, &[&[b"a".as_slice(); 10]], None);
}

#[test]
fn lines_without_an_end() {
    let limits = ParserLimits::default();
    let digits = vec![b'1'; MAX_INLINE_BYTES];
    for (prefix, error) in [
        (&b"*"[..], "too big mbulk count string"),
        (b"*1\r\n$", "too big bulk count string"),
        (b"*1\r\n?", "too big bulk count string"),
        (b"a", "too big inline request"),
    ] {
        let mut input = [prefix, &digits].concat();
        check_limited(&input, &limits, &[], Some(error));
        input.pop();
        let got = transcript(&input, [], &limits, usize::MAX);
        assert_eq!((got.error, got.commands.len()), (None, 0), "{error}: one byte less");
    }
}

#[test]
fn inline_commands() {
    check_input(b"GET k\r\n", &[&[b"GET", b"k"]], None);
    check_input(b" GET \t k \n", &[&[b"GET", b"k"]], None);
    check_input(
        b"a \"\\x41\\x0a\\n\\r\\t\\b\\a\\q\\\\\\\"\" b\r\n",
        &[&[b"a", b"A\n\n\r\t\x08\x07q\\\"", b"b"]],
        None,
    );
    check_input(b"'b\\'\\n\\\\ '\r\n", &[&[b"b'\\n\\\\ "]], None);
    check_input(b"a\"b c\" 'd'\r\n", &[&[b"ab c", b"d"]], None);
    check_input(b"e \"\" ''\r\n", &[&[b"e", b"", b""]], None);
    check_input(b"\"\\xZZ\" \"\\x4\"\r\n", &[&[b"xZZ", b"x4"]], None);
    check_input(b"\"a\rb\" a\rb\r\n", &[&[b"a\rb", b"a", b"b"]], None);
    check_input(b"\x0bfoo\x0c \"a\"\x0b\r\n", &[&[b"foo\x0c", b"a"]], None);
    check_input(b"a\0b\r\n", &[&[b"a\0b"]], None);
    check_input(b"$4\r\n", &[&[b"$4"]], None);
    check_input(b" *1\r\n", &[&[b"*1"]], None);
    for open in ["\"abc", "'abc", "\"abc\"d", "a'b'c", "\"a\\", "\"abc\\\" d", "a \"", "'a\\'"] {
        let input = format!("{open}\r\n");
        check_input(input.as_bytes(), &[], Some("unbalanced quotes in request"));
    }
}

#[test]
fn the_parser_tells_how_much_it_waits_for() {
    let limits = ParserLimits::default();
    let (mut parser, mut batch) = (Parser::default(), Batch::default());
    let mut buf = b"*2\r\n$1\r\na\r\n$100000\r\nxyz".to_vec();
    assert_eq!(parser.parse(&mut buf, &limits, 64, &mut batch), Ok(()));
    assert_eq!((batch.len(), batch.consumed(), parser.wanted()), (0, 0, 20 + 100_000 + 2));
    buf.resize(parser.wanted(), b'z');
    assert_eq!(parser.parse(&mut buf, &limits, 64, &mut batch), Ok(()));
    assert_eq!((batch.len(), batch.consumed(), parser.wanted()), (1, buf.len(), 0));
    assert_eq!(batch.args(0, &buf).get(1).len(), 100_000);
}

/// The fuzz target's smoke run: requests with a few bytes changed, the same ones each time. A
/// failure names its seed; `cargo xtask fuzz resp` looks further.
#[test]
fn mangled_requests_of_fixed_seeds() {
    const SIGNIFICANT: &[u8] = b"\r\n*$-0123456789\"'\\ ";
    let array: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n*1\r\n$4\r\nPING\r\n";
    let sound = [array, b"*0\r\n\r\nGET \"k\\x20\" 'x'\r\n"].concat();
    for seed in 0..3_000 {
        let mut state: u64 = seed;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % bound
        };
        let mut input = sound.repeat(1 + below(3));
        for _ in 0..below(6) {
            let at = below(input.len().max(1));
            match below(4) {
                0 if at < input.len() => input[at] = below(256) as u8,
                1 if at < input.len() => input[at] = SIGNIFICANT[below(SIGNIFICANT.len())],
                2 => drop(input.drain(at..input.len().min(at + below(9)).max(at))),
                _ => input.insert(at, SIGNIFICANT[below(SIGNIFICANT.len())]),
            }
        }
        eprintln!("seed {seed}: {}", input.escape_ascii());
        check(&input, seed);
    }
}

/// Input that is mostly well formed, so that the interesting states are reached.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        vec(any::<u8>(), 0..12).prop_map(|word| {
            [format!("${}\r\n", word.len()).as_bytes(), &word, b"\r\n"].concat()
        }),
        (0_usize..400).prop_map(|len| [
            format!("${len}\r\n").as_bytes(),
            &vec![b'x'; len],
            b"\r\n"
        ]
        .concat()),
    ];
    let command = vec(word, 0..24)
        .prop_map(|words| [format!("*{}\r\n", words.len()).into_bytes(), words.concat()].concat());
    let line = "[ a-c\"'\\\\xnt0-9]{0,20}\r?\n".prop_map(String::into_bytes);
    let noise = select(vec![
        "\r\n", "\n", "*", "$", "\r", "*1\r\n", "*-1\r\n", "$-1\r\n", "$5", "\"", "\0",
    ])
    .prop_map(|text| text.as_bytes().to_vec());
    vec(prop_oneof![8 => command, 4 => line, 1 => noise], 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn the_way_the_input_is_cut_changes_nothing(input in requests(), seed: u64) {
        check(&input, seed);
    }

    #[test]
    fn any_bytes_at_all(input in vec(any::<u8>(), 0..200), seed: u64) {
        check(&input, seed);
    }

    #[test]
    fn a_command_is_understood_as_sent(words in vec(vec(any::<u8>(), 0..300), 1..40)) {
        let mut input = format!("*{}\r\n", words.len()).into_bytes();
        for word in &words {
            input.extend([format!("${}\r\n", word.len()).as_bytes(), word, b"\r\n"].concat());
        }
        let got = transcript(&input, [], &ParserLimits::default(), 64);
        prop_assert_eq!(got.commands, vec![words]);
    }
}
