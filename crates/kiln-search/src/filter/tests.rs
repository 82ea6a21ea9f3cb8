//! What Redis 8.2.3 said to each expression, and to hostile ones nothing worse than an error.

use proptest::prelude::{prop_assert, proptest};

use super::Filter;

/// The attributes that the expressions are tried on.
const JSON: &str = r#"{"n1":1,"k":0,"g":-1.5e2,"b":null,"c":true,"l":false,"s":"abc","i":"",
    "j":"10","a":[1,2,"x"],"deep":[1,[2],null,true],"f":"a\"b\u0041","x-y":4,"_u":3,
    "d":{"n1":7},"odd":[1,{"q":1}],"dup":1,"dup":2,"h":"caf\u00e9"}"#;

fn matches(expression: &str, json: &str) -> bool {
    Filter::new(expression.as_bytes())
        .unwrap_or_else(|error| panic!("{expression}: {error}"))
        .matches(json.as_bytes())
}

#[test]
fn expressions_that_match() {
    for expression in [
        ".n1",
        "not .k",
        "!.k",
        ".g == -150",
        ".g < -100",
        ".b == null",
        ".c",
        ".c == 1",
        ".s == 'abc'",
        ".s == \"abc\"",
        "\"b\" in .s",
        "\"\" in \"abc\"",
        ".i == \"\"",
        ".j > 9",
        ".j == 10",
        ".j + 1 == 11",
        ".x-y == 4",
        "._u == 3",
        ".dup == 1",
        "\"u0041\" in .f",
        "\"x\" in .a",
        "1 in .a",
        "1 in .deep",
        ".a",
        ".a == .a",
        "1 == 1 == 1",
        "(1 == 1) == 1",
        "1 < 2 < 3",
        "1 == 2 == 0",
        "1 != 2 == 1",
        "\"abc\" == 0",
        "\"abc\" >= 0",
        "\"a\" <= \"b\"",
        "\"10\" == 10",
        "\"10\" == \"10\"",
        "\"0x10\" == 16",
        "\" 10\" == 10",
        "\"1e2\" == 100",
        "\"inf\" > 1",
        "\"nan\" == \"nan\"",
        "null == null",
        "not null",
        "null > -1",
        "null + 1 == 1",
        "null != 0",
        "1 or null",
        "[1] == [2]",
        "[]",
        "[ 1 , 2 ] ",
        "1 in [1,]",
        "1 in [\"1\"]",
        "\"1\" in [1]",
        "2 * 3 ** 2 == 18",
        "2 ** 3 ** 2 == 512",
        "-2 ** 2 == 4",
        "2**-1 == 0.5",
        "10 - 2 - 3 == 5",
        "100 / 10 / 2 == 5",
        "7 % 4 % 2 == 1",
        "-5 % 3 == -2",
        "5 % -3 == 2",
        "5.5 % 2 == 1.5",
        "1/3*3 == 1",
        "10 / 0",
        "10 % 0",
        "0/0",
        "1/0 > 1",
        "-1/0 < 0",
        "1 - -1 == 2",
        "1--1",
        "(1)-1 == 0",
        "[1]-1",
        "1-(-1)==2",
        ".g*-1 == 150",
        "not (not 1)",
        "not 1 or 1",
        "1 and not 0",
        "2 * not 0 == 2",
        "(not 0) ** 2",
        "1 or 0 and 0",
        "1 || 0 && 0",
        "1 in [1] and 1",
        "1 in [1,2] == 1",
        "1and 1",
        "1 and1",
        "1in[1]",
        ".n1 in[1]",
        "'x'in\"xyz\"",
        ".n1>=1 and.k==0",
        "(.n1)and(.n1)",
        "1||null",
        "( null ) == null",
        "1 in(.a)",
        "1 2 +",
        "1.",
        "1e3 == 1000",
        "1E3 == 1000",
        "1e400 > 1",
        "1!!=2",
        "\t\n.n1",
        ".n1\0 zz",
        "((((((((1))))))))",
        "1 in [1] in [1]",
        "-0 == 0",
    ] {
        assert!(matches(expression, JSON), "{expression}");
    }
}

#[test]
fn expressions_that_do_not_match() {
    for expression in [
        ".k",
        ".l",
        ".i",
        ".b",
        ".d",
        "not .d",
        ".d == null",
        ".odd",
        "not .odd",
        ".zz",
        "not .zz",
        ".zz or 1",
        "1 or .zz",
        ".zz == .zz",
        ".f == 'a\"bA'",
        "'A' in .f",
        ".dup == 2",
        "3 > 2 > 1",
        "1 == 1 == 0",
        "null",
        "null == 0",
        "null in [1]",
        "1 in null",
        "1 in 1",
        ".n1 in .n1",
        "\"abc\" in \"ab\"",
        "[1] != [2]",
        "[1] in [1]",
        "not []",
        "\"b\" > \"a\"",
        "\"abc\" > 0",
        "\"10abc\" == 10",
        "\"10 \" == 10",
        "\"nan\" == 0",
        "0.1 + 0.2 == 0.3",
        "0/0 == 0/0",
        "0 == 1 in [2]",
        "0 == 1 < 0",
        "-2**2 == -4",
        "1 -1",
        "1!",
        "not 2 ** 2",
        ".s-1",
        ".n1-1",
        ".",
        ".5",
        "!.k==0",
        "'a\\'b' == \"a'b\"",
        "\"abc\" == \"ABC\"",
        "\"\"",
    ] {
        assert!(!matches(expression, JSON), "{expression}");
    }
}

#[test]
fn errors_repeat_the_rest_or_all() {
    for (expression, near) in [
        ("", ""),
        ("   ", "   "),
        ("year > 5", " > 5"),
        ("a", "a"),
        ("ab cd", " cd"),
        ("1 foo 2", " 2"),
        ("1 AND 1", " 1"),
        ("true", "true"),
        (".seen == true", ".seen == true"),
        ("nullx", "nullx"),
        ("(null) == null", " == null"),
        ("null-1 == -1", "1 == -1"),
        (".year = 5", " 5"),
        (".g=-150", "150"),
        ("1 & 1", " 1"),
        ("1===1", "1"),
        ("0x10 == 16", "10 == 16"),
        ("1e-3 == 0.001", "-3 == 0.001"),
        ("1.2.3 == 1.2", " == 1.2"),
        ("1.2.3", "1.2.3"),
        ("@bad", "@bad"),
        ("1 # 2", "# 2"),
        ("1;1", ";1"),
        (". a", ". a"),
        ("a.b", ".b"),
        (".n1.k", ".n1.k"),
        ("\"unclosed", "\"unclosed"),
        ("1 + \"abc", "1 + \"abc"),
        ("\"\\\" in .f", "\"\\\" in .f"),
        ("[1,2", "[1,2"),
        ("[1 2]", "2]"),
        ("[1,,2]", ",2]"),
        ("[1.2.3]", "]"),
        ("[- 1]", " 1]"),
        ("[-x]", "x]"),
        ("[null] ", "null] "),
        ("1 in [1,[2]]", "[2]]"),
        ("1 1", "1 1"),
        ("()", "()"),
        ("(1", "(1"),
        ("1)", "1)"),
        ("1 +", "1 +"),
        ("+1", "+1"),
        ("- 1", "- 1"),
        ("-.5", "-.5"),
        ("not", "not"),
        ("not not 1", "not not 1"),
        ("!!1", "!!1"),
        ("1 or or 1", "1 or or 1"),
        (".n1-.n1", ".n1-.n1"),
    ] {
        let error = Filter::new(expression.as_bytes()).expect_err(expression);
        let want = format!("ERR syntax error in FILTER expression near: {near}");
        assert_eq!(error.to_string(), want, "{expression}");
    }
}

#[test]
fn attributes_count_as_far_as_they_are_json() {
    for (json, found) in [
        (r#"{"a":1"#, true),
        (r#"{"a":1 garbage"#, true),
        (r#" {"a":1}"#, true),
        ("\n{\n\"a\"\t:\r1}", true),
        (r#"{"":5,"a":1}"#, true),
        (r#"{"b":{"a":2},"a":1}"#, true),
        (r#"{"b":"}","a":1}"#, true),
        (r#"{"b":"\"","a":1}"#, true),
        (r#"{"b":{"x":"}"},"a":1}"#, true),
        (r#"{"b":1.e.5,"a":1}"#, true),
        (r#"{"a":01}"#, true),
        (r#"{"a":+1}"#, true),
        (r#"{"A":1}"#, false),
        (r#"{"\u0061":1}"#, false),
        ("{a:1}", false),
        ("{'a':1}", false),
        (r#"{"a":}"#, false),
        (r#"{"b":,"a":1}"#, false),
        (r#"{"b":junk,"a":1}"#, false),
        (r#"{"b":tru,"a":1}"#, false),
        (r#"{"b" 1,"a":1}"#, false),
        (r#"{"b":1 "a":1}"#, false),
        (r#"{"b":1,,"a":1}"#, false),
        (r#"{"b":[1,"a":1}"#, false),
        (r#"{"b":[1,2,]],"a":1}"#, false),
        (r#"{"b":{"x":[}},"a":1}"#, false),
        (r#"{"b":"unclosed,"a":1}"#, false),
        (r#"{"a":true1}"#, false),
        (r#"{"a":.5}"#, false),
        (r#"{"a":1.2.3}"#, false),
        (r#"{"a":-}"#, false),
        ("[1]", false),
        ("", false),
        ("1", false),
    ] {
        assert_eq!(matches(".a == 1", json), found, "{json}");
    }
    for (json, found) in [
        (r#"{"a":[1,true]}"#, true),
        (r#"{"a":[1,[2]]}"#, true),
        (r#"{"a":[ 1 ]}"#, true),
        (r#"{"a":[1,"b"]"#, true),
        (r#"{"a":[1,{"x":1}]}"#, false),
        (r#"{"a":[1,]}"#, false),
        (r#"{"a":[1 2]}"#, false),
        (r#"{"a":[ ]}"#, false),
    ] {
        assert_eq!(matches("1 in .a", json), found, "{json}");
    }
}

#[test]
fn depth_costs_nothing() {
    let depth = 1_000_000;
    let expression = format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(matches(&expression, JSON));
    let json = format!("{{\"b\":{}{},\"a\":1}}", "[".repeat(depth), "]".repeat(depth));
    assert!(matches(".a", &json));
    let json = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(matches(".a", &json));
}

proptest! {
    #[test]
    fn nothing_panics(expression: Vec<u8>, json: Vec<u8>) {
        if let Ok(filter) = Filter::new(&expression) {
            filter.matches(&json);
        }
    }

    #[test]
    fn pieces_of_the_language_do_not_panic(
        words in proptest::collection::vec(proptest::sample::select(PIECES), 0..12),
        json in proptest::collection::vec(proptest::sample::select(JSON_PIECES), 0..12),
    ) {
        if let Ok(filter) = Filter::new(words.concat().as_bytes()) {
            let json = json.concat();
            filter.matches(format!("{{\"a\":{json}").as_bytes());
            let same = filter.matches(b"") == filter.matches(b"{}");
            prop_assert!(same, "neither has a member");
        }
    }
}

const PIECES: &[&str] = &[
    "(", ")", " ", "or", "and", "not", "!", "in", "==", "!=", ">", "<=", "+", "-", "*", "**", "%",
    "/", "1", "-2", "1e9", ".5", "'x'", "\"", "[1,'x']", "[", "]", ",", ".a", ".b", ".", "null",
    "&&", "||", "\\", "é",
];
const JSON_PIECES: &[&str] = &[
    "1", "-1e5", "\"x\"", "\"", "\\", "[", "]", "{", "}", ",", ":", "\"a\"", "\"b\"", "true",
    "null", " ", "e", ".", "[1,[2]]",
];
