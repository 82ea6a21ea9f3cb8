//! The words of commands: keys, values, numbers, ranges and junk, biased to edges.
//!
//! Names are few, so that commands meet on the same keys, members and fields. Keys are named after
//! the type they mostly hold; now and then a command gets a key of another type. Times lie so far
//! away, or so far back, that the moment of execution does not matter, and no two relative times
//! are equal, so that `GT` and `LT` never compare two clocks.

use super::random::Random;

/// The kinds of keys, each with how many names it has. `zlex` keys hold only members of score 0,
/// which lexicographic ranges need (`guard.rs`).
const KEY_KINDS: [(&str, usize); 8] = [
    ("str", 4),
    ("bits", 3),
    ("hll", 3),
    ("text", 2),
    ("list", 3),
    ("set", 4),
    ("hash", 3),
    ("zset", 4),
];

const ODD_KEYS: [&[u8]; 6] = [b"", b"none", b"{tag}a", b"{tag}b", b"odd\r\n\0key", b"5"];

const INTEGERS: [&str; 26] = [
    "0",
    "1",
    "2",
    "3",
    "5",
    "10",
    "100",
    "-1",
    "-2",
    "-3",
    "-100",
    "127",
    "128",
    "255",
    "32768",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775806",
    "-9223372036854775807",
    "12345678901",
    "-32769",
];

const NOT_INTEGERS: [&str; 18] = [
    "",
    " 5",
    "5 ",
    "05",
    "+5",
    "-0",
    "-",
    "0x10",
    "1e2",
    "1.0",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "abc",
    "5a",
    "--5",
    "1_000",
    "\u{0665}",
];

const FLOATS: [&str; 30] = [
    "0",
    "1",
    "-1",
    "0.1",
    "0.2",
    "0.5",
    "-0.0",
    "3.14159",
    "1e10",
    "1e17",
    "1e21",
    "1e-7",
    "5e-324",
    "1.7976931348623157e308",
    "-1e308",
    "inf",
    "-inf",
    "+inf",
    "Infinity",
    "1e5",
    "100.10",
    "0.30000000000000004",
    "123456789.123456789",
    "9007199254740993",
    "3.0e3",
    ".5",
    "5.",
    "+5",
    "1.5",
    "2.5",
];

const NOT_FLOATS: [&str; 12] =
    ["", "nan", "NaN", "-nan", "1e400", " 1", "1 ", "abc", "1.2.3", "1e", "0x", "infinit"];

const JUNK: [&[u8]; 16] = [
    b"",
    b"junk",
    b"NX",
    b"XX",
    b"EX",
    b"GET",
    b"LIMIT",
    b"COUNT",
    b"-1",
    b"\r\n",
    // What stands before the NUL is unique: `strcoll`, by which SORT ALPHA compares, stops there.
    b"z\0z",
    b"WITHSCORES",
    b"9223372036854775808",
    b"nan",
    b"*",
    b"\xff\xfe",
];

/// Appends the word, or words, of `kind`.
///
/// # Panics
///
/// If there is no such kind: kinds are named by constants of this crate.
pub(super) fn generate(kind: &str, random: &mut Random, out: &mut Vec<Vec<u8>>) {
    if several(kind, random, out) {
        return;
    }
    out.push(match kind {
        "key" => any_key(random),
        "string" => key(random, "str", 4),
        "bits" => key(random, "bits", 3),
        "hll" => key(random, "hll", 3),
        "text" => key(random, "text", 2),
        "list" => key(random, "list", 3),
        "set" => key(random, "set", 4),
        "hash" => key(random, "hash", 3),
        "zset" => key(random, "zset", 4),
        "zlex" => format!("zlex{}", random.between(1, 2)).into_bytes(),
        "vset" => format!("vset{}", random.between(1, 4)).into_bytes(),
        "qset" => format!("qset{}", random.between(1, 3)).into_bytes(),
        "element" => element(random),
        "links" => pick(random, &["16", "16", "5", "4", "3", "2", "512", "5000", "0", "x"]),
        "epsilon" => pick(random, &["0.05", "0.2", "0.5", "0.9", "1.5", "0", "-1", "x", "nan"]),
        "attributes" => pick(random, ATTRIBUTES),
        "filter" => filter(random).into_bytes(),
        "value" => value(random),
        "letters" => (0..random.below(40)).map(|_| *random.pick(b"abcd")).collect(),
        "member" | "field" => member(random),
        "int" => integer(random),
        "float" | "score" | "weight" => float(random),
        "index" => index(random),
        "count" => count(random),
        "offset" => offset(random),
        "bitoffset" => bit_offset(random),
        "bit" => pick(random, &["0", "1", "0", "1", "0", "1", "0", "1", "2", "-1", "x"]),
        "seconds" => relative(random, 1_000_000, 1_000_000_000),
        "milliseconds" => relative(random, 1_000_000_000, 1_000_000_000_000),
        "at" => absolute(random, 1),
        "pat" => absolute(random, 1_000),
        "db" => pick(
            random,
            &["0", "0", "0", "1", "1", "2", "3", "15", "16", "-1", "abc", "99999999999"],
        ),
        "limit" => score_limit(random),
        "lex" => lex_limit(random),
        "pattern" => pattern(random),
        "type" => pick(
            random,
            &["string", "list", "set", "hash", "zset", "STRING", "stream", "nothing", ""],
        ),
        "timeout" => {
            pick(random, &["0.01", "0.001", "0.01", "-1", "abc", "", "nan", "1e400", "0x0.01p0"])
        }
        "bittype" => bit_type(random),
        "bitplace" => bit_place(random),
        "sortby" => pick(random, SORT_BY),
        "sortget" => pick(random, SORT_GET),
        "junk" => random.pick(&JUNK).to_vec(),
        "command" => pick(random, super::families::COMMANDS),
        "option" => pick(
            random,
            &[
                "maxmemory",
                "SAVE",
                "maxmemory-policy",
                "hash-max-listpack-entries",
                "list-max-listpack-size",
                "zset-max-listpack-value",
                "databases",
                "set-max-intset-entries",
                "nosuchoption",
                "appendonly",
                "proto-max-bulk-len",
                "lfu-log-factor",
                "timeout",
            ],
        ),
        _ => panic!("no such kind of word: {kind}"),
    });
}

const SORT_BY: &[&str] = &[
    "nosort", "str*", "hash*->1", "zset*", "none*", "*", "hash1->*", "str1", "hash*->", "*->a",
    "w*",
];
const SORT_GET: &[&str] =
    &["#", "str*", "hash*->1", "hash1->*", "none", "*", "set*", "hash*->", "->", "#*"];

/// Kinds that are more than one word: counted lists, and enough of something to cross a threshold.
fn several(kind: &str, random: &mut Random, out: &mut Vec<Vec<u8>>) -> bool {
    match kind {
        "sets" | "zsets" | "lists" | "zsetsweighted" => {
            let count = *random.pick(&[1, 2, 2, 3]);
            push_count(random, count, out);
            let of = kind.strip_suffix("sweighted").or(kind.strip_suffix('s')).unwrap_or(kind);
            for _ in 0..count {
                // Set and sorted set operations take both types.
                let of = if of == "zset" && random.chance(20) { "set" } else { of };
                generate(of, random, out);
            }
            if kind == "zsetsweighted" {
                out.push(b"WEIGHTS".to_vec());
                for _ in 0..count {
                    out.push(float(random));
                }
            }
        }
        "vector" => vector(random, out),
        "fields" | "fieldvalues" => {
            let count = *random.pick(&[1, 1, 2, 3]);
            out.push(b"FIELDS".to_vec());
            push_count(random, count, out);
            for _ in 0..count {
                out.push(member(random));
                if kind == "fieldvalues" {
                    out.push(value(random));
                }
            }
        }
        "manymembers" => {
            let prefix = *random.pick(&["m", "", "m"]);
            for number in many(random) {
                out.push(format!("{prefix}{number}").into_bytes());
            }
        }
        "manyintegers" => {
            let (count, step) =
                (*random.pick(&[511, 512, 513, 127, 128, 129]), random.between(1, 3));
            out.extend((0..count).map(|number| (number * step).to_string().into_bytes()));
        }
        "manyfields" => {
            for number in many(random) {
                out.push(format!("m{number}").into_bytes());
                out.push(number.to_string().into_bytes());
            }
        }
        "manyscores" | "manylex" => {
            for number in many(random) {
                let score = if kind == "manylex" { 0 } else { number % 50 };
                out.push(score.to_string().into_bytes());
                out.push(format!("m{number}").into_bytes());
            }
        }
        "manyvalues" => {
            // Around the 8 KiB at which a list becomes several nodes.
            let (count, length) =
                *random.pick(&[(80, 100), (81, 100), (10, 1000), (9, 900), (3, 4096), (130, 3)]);
            for number in 0..count {
                let mut element = vec![b'v'; length];
                element[0] = b'0' + (number % 10) as u8;
                out.push(element);
            }
        }
        _ => return false,
    }
    true
}

/// Few names, so that vectors are replaced and removed.
fn element(random: &mut Random) -> Vec<u8> {
    match random.below(20) {
        0 => member(random),
        _ => format!("e{}", random.below(30)).into_bytes(),
    }
}

/// A vector of mostly three dimensions, as text or as binary, with no two parallel ones.
fn vector(random: &mut Random, out: &mut Vec<Vec<u8>>) {
    let dimensions = *random.pick(&[3, 3, 3, 3, 3, 3, 3, 3, 2, 4]);
    let thousandths: Vec<i64> = (0..dimensions).map(|_| random.between(-999, 999)).collect();
    if random.chance(50) {
        out.push(b"VALUES".to_vec());
        push_count(random, dimensions, out);
        out.extend(thousandths.iter().map(|each| (*each as f64 / 1e3).to_string().into_bytes()));
    } else {
        out.push(b"FP32".to_vec());
        let bytes = thousandths.iter().flat_map(|each| (*each as f32 / 1e3).to_le_bytes());
        out.push(bytes.take(if random.chance(5) { 7 } else { 4 * dimensions }).collect());
    }
}

const ATTRIBUTES: &[&str] = &[
    "",
    r#"{"n":1}"#,
    r#"{"n":2,"s":"two"}"#,
    r#"{"n":10,"s":"ten","l":[1,2,"x"]}"#,
    r#"{"n":-3.5,"b":true}"#,
    r#"{"n":0,"b":false,"z":null}"#,
    r#"{"s":"10","n":"text"}"#,
    r#"{"s":"with "quotes" and \ and A"}"#,
    r#" { "n" : 7 , "s" : "" } "#,
    r#"{"n":1e3,"l":[]}"#,
    r#"{"o":{"n":5},"n":6}"#,
    r#"{"n":1,"n":2}"#,
    "not json",
    r#"{"n":"#,
    "[1,2]",
];

/// A filter expression: mostly sound, of a few operators.
fn filter(random: &mut Random) -> String {
    const LITERALS: [&str; 22] = [
        "1",
        "2",
        "10",
        "0",
        "-3.5",
        "1e3",
        "7",
        "\"two\"",
        "'ten'",
        "\"10\"",
        "\"\"",
        "null",
        "[1, 2, 3]",
        "[\"x\", 10]",
        "[]",
        "true",
        ".n",
        ".s",
        ".l",
        ".b",
        ".z",
        ".missing",
    ];
    const OPERATORS: [&str; 18] = [
        "==", "!=", ">", ">=", "<", "<=", "in", "+", "-", "*", "/", "%", "**", "and", "or", "&&",
        "||", "",
    ];
    if random.chance(4) {
        return (*random.pick(&["", "(", ")", ".n ==", "== 1", ".", "\"open", "[1", "$"]))
            .to_owned();
    }
    let parts: Vec<String> = (0..=random.below(3))
        .map(|_| {
            let (left, right) = (random.pick(&LITERALS[16..]), random.pick(&LITERALS));
            let operator = random.pick(&OPERATORS);
            match random.below(8) {
                0 => (*left).to_owned(),
                1 => format!("not ({left} {operator} {right})"),
                2 => format!("!{left}"),
                3 => format!("{right} {operator} {left}"),
                4 => {
                    let (other, third) = (random.pick(&OPERATORS), random.pick(&LITERALS));
                    format!("{left} {operator} {right} {other} {third}")
                }
                _ => format!("{left} {operator} {right}"),
            }
        })
        .collect();
    parts.join(*random.pick(&[" and ", " or ", " && ", " || "]))
}

/// The right count; now and then another one.
fn push_count(random: &mut Random, count: usize, out: &mut Vec<Vec<u8>>) {
    let wrong = random.chance(5);
    out.push(if wrong { integer(random) } else { count.to_string().into_bytes() });
}

/// Runs of numbers that end about the listpack thresholds.
fn many(random: &mut Random) -> std::ops::Range<usize> {
    let start = *random.pick(&[0, 0, 100]);
    start..start + *random.pick(&[20, 60, 127, 128, 129, 140])
}

fn pick(random: &mut Random, choices: &[&str]) -> Vec<u8> {
    random.pick(choices).as_bytes().to_vec()
}

fn key(random: &mut Random, kind: &str, names: i64) -> Vec<u8> {
    if random.chance(5) {
        any_key(random)
    } else {
        format!("{kind}{}", random.between(1, names)).into_bytes()
    }
}

fn any_key(random: &mut Random) -> Vec<u8> {
    if random.chance(10) {
        return random.pick(&ODD_KEYS).to_vec();
    }
    let (kind, names) = *random.pick(&KEY_KINDS);
    format!("{kind}{}", random.below(names) + 1).into_bytes()
}

fn value(random: &mut Random) -> Vec<u8> {
    match random.below(12) {
        0 => Vec::new(),
        1 => b"a\r\n\0b\xff".to_vec(),
        2 => vec![b'x'; *random.pick(&[43, 44, 45, 63, 64, 65, 127, 128, 300])],
        3 | 4 => integer(random),
        5 | 6 => float(random),
        7 => pick(random, &NOT_INTEGERS),
        _ => pick(random, &["a", "b", "hello", "Hello World", "foobar", "v1", "v2"]),
    }
}

/// Members and fields overlap with each other, with values and with the numbers in key names.
fn member(random: &mut Random) -> Vec<u8> {
    match random.below(20) {
        0 => Vec::new(),
        1 => b"a\r\n\0b\xff".to_vec(),
        2 => vec![b'x'; *random.pick(&[64, 65])],
        3 => integer(random),
        4 => pick(random, &NOT_INTEGERS),
        5..=8 => random.between(1, 4).to_string().into_bytes(),
        9 | 10 => format!("m{}", random.below(140)).into_bytes(),
        _ => pick(random, &["a", "b", "c", "d", "e", "f", "B", "aa", "ab"]),
    }
}

fn integer(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0 => pick(random, &NOT_INTEGERS),
        1..=4 => random.between(-20, 120).to_string().into_bytes(),
        _ => pick(random, &INTEGERS),
    }
}

fn float(random: &mut Random) -> Vec<u8> {
    match random.below(20) {
        0 => pick(random, &NOT_FLOATS),
        1..=8 => random.between(-3, 8).to_string().into_bytes(),
        9..=11 => format!("{}.{}", random.between(-9, 99), random.below(1000)).into_bytes(),
        _ => pick(random, &FLOATS),
    }
}

fn index(random: &mut Random) -> Vec<u8> {
    if random.chance(6) { integer(random) } else { random.between(-6, 8).to_string().into_bytes() }
}

fn count(random: &mut Random) -> Vec<u8> {
    if random.chance(10) { integer(random) } else { random.between(-1, 5).to_string().into_bytes() }
}

fn offset(random: &mut Random) -> Vec<u8> {
    pick(
        random,
        &[
            "0",
            "1",
            "2",
            "5",
            "7",
            "20",
            "63",
            "64",
            "300",
            "4000",
            "-1",
            "abc",
            "536870912",
            "9223372036854775807",
            "18446744073709551615",
        ],
    )
}

fn bit_offset(random: &mut Random) -> Vec<u8> {
    if random.chance(70) {
        return random.below(140).to_string().into_bytes();
    }
    pick(
        random,
        &["7", "8", "1023", "20000", "-1", "abc", "4294967296", "9223372036854775807", "#1"],
    )
}

fn bit_type(random: &mut Random) -> Vec<u8> {
    if random.chance(20) {
        return pick(random, &["u64", "i65", "u0", "i0", "x8", "u", "", "i-1", "U8", "u8a", "u08"]);
    }
    let (sign, bits) = (*random.pick(&["u", "i"]), *random.pick(&[1, 2, 5, 8, 16, 31, 32, 63]));
    format!("{sign}{bits}").into_bytes()
}

fn bit_place(random: &mut Random) -> Vec<u8> {
    let mark = *random.pick(&["", "", "#"]);
    if random.chance(10) {
        return pick(
            random,
            &["-1", "#-1", "abc", "#", "4294967296", "9223372036854775807", "#9223372036854775807"],
        );
    }
    format!("{mark}{}", random.below(40)).into_bytes()
}

fn relative(random: &mut Random, low: i64, high: i64) -> Vec<u8> {
    if random.chance(15) {
        return pick(
            random,
            &["0", "-1", "-1000", "abc", "9223372036854775807", "-9223372036854775808", "1.5", ""],
        );
    }
    random.between(low, high).to_string().into_bytes()
}

fn absolute(random: &mut Random, unit: i64) -> Vec<u8> {
    if random.chance(15) {
        return pick(
            random,
            &[
                "0",
                "-1",
                "1",
                "1000",
                "abc",
                "9223372036854775807",
                "-9223372036854775808",
                "9223372036854775",
                "1.5",
            ],
        );
    }
    // A few fixed times, so that `GT` and `LT` meet equal ones.
    ((4_000_000_000 + random.between(0, 4) * 1_000) * unit).to_string().into_bytes()
}

fn score_limit(random: &mut Random) -> Vec<u8> {
    let mark = *random.pick(&["", "", "("]);
    let limit = match random.below(5) {
        0 => b"-inf".to_vec(),
        1 => b"+inf".to_vec(),
        _ => float(random),
    };
    [mark.as_bytes(), &limit].concat()
}

fn lex_limit(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0 | 1 => b"-".to_vec(),
        2 | 3 => b"+".to_vec(),
        4 if random.chance(40) => random.pick(&JUNK).to_vec(),
        _ => [*random.pick(&[b"[" as &[u8], b"("]), &member(random)].concat(),
    }
}

fn pattern(random: &mut Random) -> Vec<u8> {
    pick(
        random,
        &[
            "*", "*", "s*", "str?", "[a-m]*", "[^a-m]*", "*1", "h*[12]", "\\*", "", "?", "a*b",
            "[b-a]*", "[", "m1*", "*\\", "[\\a-c]*", "***3", "{tag}*", "[^", "[a-",
        ],
    )
}
