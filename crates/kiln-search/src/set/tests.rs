//! Transcripts; the replies are those of Redis 8.2.3, those of VRANGE of 8.6.2.

use crate::testkit::check;

const WRONG_TYPE: &str =
    "(error) WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn a_set_is_made_by_its_first_element_and_goes_with_its_last() {
    check(&[
        ("VADD v VALUES 3 1 0 0 x NOQUANT", "(integer) 1"),
        ("VADD v VALUES 3 0 1 0 y NOQUANT", "(integer) 1"),
        ("VADD v VALUES 3 0 0 1 x NOQUANT", "(integer) 0"),
        ("TYPE v", "vectorset"),
        ("OBJECT ENCODING v", "\"raw\""),
        ("VCARD v", "(integer) 2"),
        ("VDIM v", "(integer) 3"),
        ("VEMB v x", "1) \"0\"\n2) \"0\"\n3) \"1\""),
        ("VISMEMBER v x", "(integer) 1"),
        ("VISMEMBER v z", "(integer) 0"),
        ("RENAME v w", "OK"),
        ("VCARD v", "(integer) 0"),
        ("COPY w v", "(error) ERR not supported for this module key"),
        ("VREM w x", "(integer) 1"),
        ("VREM w x", "(integer) 0"),
        ("VREM w y", "(integer) 1"),
        ("EXISTS w", "(integer) 0"),
    ]);
}

#[test]
fn missing_keys_and_elements() {
    check(&[
        ("VCARD v", "(integer) 0"),
        ("VDIM v", "(error) ERR key does not exist"),
        ("VEMB v x", "(nil)"),
        ("VREM v x", "(integer) 0"),
        ("VISMEMBER v x", "(integer) 0"),
        ("VGETATTR v x", "(nil)"),
        ("VSETATTR v x {}", "(integer) 0"),
        ("VRANDMEMBER v", "(nil)"),
        ("VRANDMEMBER v 2", "(empty array)"),
        ("VINFO v", "(nil)"),
        ("VLINKS v x", "(nil)"),
        ("VRANGE v - +", "(empty array)"),
        ("VSIM v ELE x WITHSCORES", "(empty array)"),
        ("VSIM v BOGUS x", "(empty array)"),
        ("VADD v VALUES 1 1 x", "(integer) 1"),
        ("VEMB v y", "(nil)"),
        ("VLINKS v y", "(nil)"),
        ("VSIM v ELE y", "(error) ERR element not found in set"),
    ]);
}

#[test]
fn errors_of_vadd_come_in_the_reference_order() {
    check(&[
        ("SET s x", "OK"),
        ("VADD s VALUES 3", "(error) ERR wrong number of arguments for 'VADD' command"),
        ("VADD s VALUES 3 1 x", "(error) ERR invalid vector specification"),
        ("VADD s VALUES 3 1 2 3", "(error) ERR wrong number of arguments for 'VADD' command"),
        ("VADD s VALUES 3 1 2 3 a BOGUS", "(error) ERR invalid option after element"),
        ("VADD s VALUES 3 1 2 3 a", WRONG_TYPE),
        ("VADD v VALUES 2 nan 1 a", "(error) ERR invalid vector specification"),
        ("VADD v FP32 abc a", "(error) ERR invalid vector specification"),
        ("VADD v FP32 aaaa a EF 0", "(error) ERR invalid EF"),
        ("VADD v FP32 aaaa a EF 1000001", "(error) ERR invalid EF"),
        ("VADD v FP32 aaaa a EF", "(error) ERR invalid option after element"),
        ("VADD v FP32 aaaa a M 3", "(error) ERR invalid M"),
        ("VADD v FP32 aaaa a M 4097", "(error) ERR invalid M"),
        ("VADD v FP32 aaaa a SETATTR", "(error) ERR invalid option after element"),
        ("EXISTS v", "(integer) 0"),
        ("VADD v VALUES 2 1 2 a M 8 EF 10 CAS", "(integer) 1"),
        (
            "VADD v VALUES 1 1 b NOQUANT M 9",
            "(error) ERR asked quantization mismatch with existing vector set",
        ),
        ("VADD v VALUES 1 1 b M 9", "(error) ERR asked M value mismatch with existing vector set"),
        ("VADD v VALUES 1 1 b", "(error) ERR asked M value mismatch with existing vector set"),
        ("VADD v VALUES 1 1 b M 8", "(error) ERR Vector dimension mismatch - got 1 but set has 2"),
        (
            "VADD v REDUCE 1 VALUES 2 1 1 b M 8",
            "(error) ERR cannot add projection to existing set without projection",
        ),
        ("VCARD v", "(integer) 1"),
    ]);
}

#[test]
fn reduced_sets_know_what_they_were_reduced_from() {
    check(&[
        ("VADD v REDUCE 2 VALUES 4 1 2 3 4 a", "(integer) 1"),
        ("VDIM v", "(integer) 2"),
        (
            "VADD v REDUCE 3 VALUES 4 1 2 3 4 b",
            "(error) ERR Vector dimension mismatch - got 4 but set has 2",
        ),
        ("VADD v VALUES 2 1 2 b", "(error) ERR Vector dimension mismatch - got 2 but set has 2"),
        (
            "VADD v REDUCE 2 VALUES 3 1 2 3 b",
            "(error) ERR Input dimension mismatch for projection - got 3 but projection expects 4",
        ),
        ("VSIM v VALUES 4 1 2 3 4", "1) \"a\""),
        ("VSIM v VALUES 2 1 2", "1) \"a\""),
        (
            "VSIM v VALUES 3 1 2 3",
            "(error) ERR Input dimension mismatch for projection - got 3 but projection expects 4",
        ),
        ("VADD w REDUCE 8 VALUES 4 1 2 3 4 a", "(integer) 1"),
        ("VDIM w", "(integer) 8"),
        ("VADD x REDUCE 0 VALUES 1 1 a", "(error) ERR invalid vector specification"),
    ]);
}

/// Three elements at right angles and opposite, one with attributes.
const AXES: [(&str, &str); 3] = [
    ("VADD v VALUES 2 2 0 x NOQUANT SETATTR {\"n\":1}", "(integer) 1"),
    ("VADD v VALUES 2 0 3 y NOQUANT", "(integer) 1"),
    ("VADD v VALUES 2 -1 0 minus NOQUANT", "(integer) 1"),
];

fn check_on_axes(steps: &[(&str, &str)]) {
    check(&[&AXES, steps].concat());
}

#[test]
fn scores_are_similarities() {
    let all = "1) \"x\"\n2) \"1\"\n3) \"y\"\n4) \"0.5\"\n5) \"minus\"\n6) \"0\"";
    check_on_axes(&[
        ("VSIM v ELE x WITHSCORES", all),
        ("VSIM v VALUES 2 5 0 WITHSCORES TRUTH NOTHREAD", all),
        ("VSIM v VALUES 2 5 0 COUNT 1", "1) \"x\""),
        ("VSIM v VALUES 2 5 0 COUNT 9223372036854775807 EF 9223372036854775807 WITHSCORES", all),
        ("VSIM v VALUES 2 5 0 EPSILON 0.5 ", "1) \"x\"\n2) \"y\""),
        ("VSIM v VALUES 2 5 0 EPSILON 0.4 ", "1) \"x\""),
        ("VSIM v VALUES 2 5 0 EPSILON inf WITHSCORES", all),
        (
            "VSIM v VALUES 2 5 0 COUNT 1 WITHATTRIBS WITHSCORES",
            "1) \"x\"\n2) \"1\"\n3) \"{\\\"n\\\":1}\"",
        ),
        ("VSIM v VALUES 2 0 1 COUNT 1 WITHATTRIBS", "1) \"y\"\n2) (nil)"),
        ("VSIM v VALUES 2 0 0 EPSILON 0.5 COUNT 1 WITHSCORES", "1) \"minus\"\n2) \"0.5\""),
        ("MULTI", "OK"),
        ("VSIM v ELE x COUNT 1", "QUEUED"),
        ("VADD v VALUES 2 1 1 new NOQUANT", "QUEUED"),
        ("VSIM v", "QUEUED"),
        (
            "EXEC",
            "1) 1) \"x\"\n2) (integer) 1\n\
             3) (error) ERR wrong number of arguments for 'VSIM' command",
        ),
    ]);
}

#[test]
fn filters_are_applied() {
    check_on_axes(&[
        ("VSIM v ELE y FILTER \".n == 1\"", "1) \"x\""),
        ("VSIM v ELE y FILTER \".n == 1\" FILTER-EF 5 TRUTH", "1) \"x\""),
        ("VSIM v ELE y FILTER \".n == 2\"", "(empty array)"),
        ("VSETATTR v y {\"n\":2}", "(integer) 1"),
        ("VSIM v ELE y FILTER .n", "1) \"y\"\n2) \"x\""),
        ("VGETATTR v y", "\"{\\\"n\\\":2}\""),
        ("VADD v VALUES 2 0 1 y NOQUANT", "(integer) 0"),
        ("VGETATTR v y", "\"{\\\"n\\\":2}\""),
        ("VADD v VALUES 2 0 1 y NOQUANT SETATTR \"\"", "(integer) 0"),
        ("VGETATTR v y", "(nil)"),
        ("VSETATTR v x \"\"", "(integer) 1"),
        ("VSIM v ELE y FILTER 1", "(empty array)"),
        ("VADD v VALUES 2 0 1 z NOQUANT SETATTR \"\"", "(integer) 1"),
        ("VGETATTR v z", "\"\""),
        ("VSIM v ELE y FILTER 1", "1) \"z\""),
        (
            "VSIM v ELE y FILTER \".n =\"",
            "(error) ERR syntax error in FILTER expression near: .n =",
        ),
    ]);
}

#[test]
fn errors_of_vsim_come_in_the_reference_order() {
    check_on_axes(&[
        ("SET s x", "OK"),
        ("VSIM s x", "(error) ERR wrong number of arguments for 'VSIM' command"),
        ("VSIM s BOGUS x", WRONG_TYPE),
        ("VSIM v BOGUS x", "(error) ERR invalid vector specification"),
        ("VSIM v REDUCE 1 VALUES 2 1 1", "(error) ERR invalid vector specification"),
        ("VSIM v VALUES 2 inf 1", "(error) ERR invalid vector specification"),
        ("VSIM v ELE none COUNT 0", "(error) ERR element not found in set"),
        (
            "VSIM v VALUES 3 1 0 0 COUNT 0",
            "(error) ERR Vector dimension mismatch - got 3 but set has 2",
        ),
        ("VSIM v ELE x COUNT 0", "(error) ERR invalid COUNT"),
        ("VSIM v ELE x EF 1.0", "(error) ERR invalid EF"),
        ("VSIM v ELE x EPSILON 0", "(error) ERR invalid EPSILON"),
        ("VSIM v ELE x EPSILON nan", "(error) ERR invalid EPSILON"),
        ("VSIM v ELE x FILTER-EF -1", "(error) ERR invalid FILTER-EF"),
        ("VSIM v ELE x FILTER", "(error) ERR syntax error in VSIM command"),
        ("VSIM v ELE x BOGUS", "(error) ERR syntax error in VSIM command"),
        ("VSIM v ELE x BOGUS 1", "(error) ERR syntax error in VSIM command"),
    ]);
}

#[test]
fn vectors_are_shown_as_stored() {
    check(&[
        ("VADD f VALUES 2 3 -4 a NOQUANT", "(integer) 1"),
        ("VEMB f a RAW", "1) f32\n2) \"\\x9a\\x99\\x19?\\xcd\\xccL\\xbf\"\n3) \"5\""),
        ("VADD q VALUES 2 1 0 a", "(integer) 1"),
        ("VEMB q a", "1) \"1\"\n2) \"0\""),
        ("VEMB q a RAW", "1) int8\n2) \"\\x7f\\x00\"\n3) \"1\"\n4) \"1\""),
        ("VADD b VALUES 3 3 -4 0 a BIN", "(integer) 1"),
        ("VEMB b a", "1) \"1\"\n2) \"-1\"\n3) \"-1\""),
        ("VEMB b a RAW", "1) bin\n2) \"\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"\n3) \"5\""),
        ("VADD z VALUES 2 0 0 a", "(integer) 1"),
        ("VEMB z a RAW", "1) int8\n2) \"\\x00\\x00\"\n3) \"1\"\n4) \"0\""),
        ("VEMB z a COOKED", "(error) ERR invalid option"),
        ("VEMB z a RAW COOKED", "(error) ERR invalid option"),
        ("VEMB z b RAW RAW", "(nil)"),
        ("VEMB z", "(error) ERR wrong number of arguments for 'VEMB' command"),
    ]);
}

#[test]
fn ranges_follow_the_bytes_of_names() {
    check(&[
        ("VADD v VALUES 1 1 b", "(integer) 1"),
        ("VADD v VALUES 1 1 a", "(integer) 1"),
        ("VADD v VALUES 1 1 c", "(integer) 1"),
        ("VRANGE v - +", "1) \"a\"\n2) \"b\"\n3) \"c\""),
        ("VRANGE v (a +", "1) \"b\"\n2) \"c\""),
        ("VRANGE v [a [b", "1) \"a\"\n2) \"b\""),
        ("VRANGE v [c [a", "(empty array)"),
        ("VRANGE v (b (b", "(empty array)"),
        ("VRANGE v - + 2", "1) \"a\"\n2) \"b\""),
        ("VRANGE v - + 0", "(empty array)"),
        ("VRANGE v - + -1", "1) \"a\"\n2) \"b\"\n3) \"c\""),
        ("VRANGE v + -", "(error) ERR '-' can only be used as first argument, '+' only as second"),
        ("VRANGE v a b", "(error) ERR invalid start range format"),
        ("VRANGE v - b", "(error) ERR invalid end range format"),
        ("VRANGE v - + x", "(error) ERR invalid COUNT value"),
        ("VRANGE v - + 1 2", "(error) ERR wrong number of arguments for 'VRANGE' command"),
    ]);
}

#[test]
fn random_elements_and_links() {
    check(&[
        ("VADD v VALUES 2 1 0 only", "(integer) 1"),
        ("VRANDMEMBER v", "\"only\""),
        ("VRANDMEMBER v 5", "1) \"only\""),
        ("VRANDMEMBER v -3", "1) \"only\"\n2) \"only\"\n3) \"only\""),
        ("VRANDMEMBER v 0", "(empty array)"),
        ("VRANDMEMBER v x", "(error) ERR COUNT value is not an integer"),
        ("VADD v VALUES 2 0 1 other", "(integer) 1"),
        ("VLINKS v only WITHSCORES", "1) 1) \"other\"\n   2) \"0.5\""),
        ("VLINKS v only BOGUS", "(error) ERR wrong number of arguments for 'VLINKS' command"),
    ]);
}

#[test]
fn watchers_hear_of_changes() {
    for change in ["VADD v VALUES 1 2 a", "VREM v a", "VSETATTR v a {}"] {
        let changed = if change.starts_with("VADD") { "(integer) 0" } else { "(integer) 1" };
        check(&[
            ("VADD v VALUES 1 1 a", "(integer) 1"),
            ("WATCH v", "OK"),
            (change, changed),
            ("MULTI", "OK"),
            ("PING", "QUEUED"),
            ("EXEC", "(nil)"),
        ]);
    }
}

#[test]
fn long_work_goes_to_the_pool_and_comes_back() {
    let add = |number: usize| format!("VADD v VALUES 2 {number} 1 e{number} EF 1000000");
    let adds: Vec<String> = (1..1_500).map(add).collect();
    let mut steps: Vec<(&str, &str)> = adds.iter().map(|add| (&**add, "(integer) 1")).collect();
    steps.extend([
        ("VCARD v", "(integer) 1499"),
        ("VSIM v VALUES 2 0 1 COUNT 2 EF 100000", "1) \"e1\"\n2) \"e2\""),
        ("VADD v VALUES 3 1 2 3 x", "(error) ERR Vector dimension mismatch - got 3 but set has 2"),
    ]);
    check(&steps);
}

#[test]
fn a_filter_that_is_repeated_gives_what_it_gave_and_hears_of_changes() {
    let add = |number: usize| {
        format!("VADD v VALUES 2 {number} 100 e{number} NOQUANT SETATTR {{\"n\":{}}}", number % 300)
    };
    let adds: Vec<String> = (0..1_200).map(add).collect();
    let mut steps: Vec<(&str, &str)> = adds.iter().map(|add| (&**add, "(integer) 1")).collect();
    let ask = "VSIM v VALUES 2 0 1 FILTER \".n == 7\" WITHATTRIBS COUNT 2";
    let pair = |first: &str, second: &str| {
        let n = "\"{\\\"n\\\":7}\"";
        format!("1) \"{first}\"\n2) {n}\n3) \"{second}\"\n4) {n}")
    };
    let (before, after, at_last) = (pair("e7", "e307"), pair("e0", "e7"), pair("e0", "e307"));
    steps.extend([(ask, &*before); 6]);
    steps.extend([
        ("VSIM v ELE e307 FILTER \".n == 7\" COUNT 1", "1) \"e307\""),
        ("VSIM v VALUES 2 0 1 FILTER \".n == 7\" EPSILON 0.0013", "1) \"e7\""),
        ("VSETATTR v e0 {\"n\":7}", "(integer) 1"),
        (ask, &after),
        ("VADD v VALUES 2 7 100 e7 NOQUANT", "(integer) 0"),
        (ask, &after),
        ("VADD v VALUES 2 7 100 e7 NOQUANT SETATTR {\"n\":8}", "(integer) 0"),
        (ask, &at_last),
        ("VREM v e0", "(integer) 1"),
        ("VADD v VALUES 2 0 100 e0 NOQUANT", "(integer) 1"),
        ("VSIM v VALUES 2 0 1 FILTER \".n == 7\" COUNT 1", "1) \"e307\""),
        ("MULTI", "OK"),
        ("VSIM v VALUES 2 0 1 FILTER \".n == 7\" COUNT 1", "QUEUED"),
        ("EXEC", "1) 1) \"e307\""),
    ]);
    check(&steps);
}

#[test]
fn a_vector_set_is_a_key_like_any_other() {
    check(&[
        ("VADD v VALUES 1 1 a", "(integer) 1"),
        ("SET s x", "OK"),
        ("DBSIZE", "(integer) 2"),
        ("SCAN 0 COUNT 100000 TYPE vectorset", "1) \"0\"\n2) 1) \"v\""),
        ("SORT v", WRONG_TYPE),
        ("GET v", WRONG_TYPE),
        ("LPUSH v x", WRONG_TYPE),
        ("DUMP v", "(error) ERR Kiln cannot dump values of this type yet"),
        ("EXPIRE v 1000", "(integer) 1"),
        ("VADD v VALUES 1 2 b", "(integer) 1"),
        ("TTL v", "(integer) 1000"),
        ("MOVE v 1", "(integer) 1"),
        ("SELECT 1", "OK"),
        ("VCARD v", "(integer) 2"),
        ("PEXPIREAT v 1", "(integer) 1"),
        ("VCARD v", "(integer) 0"),
        ("VADD v VALUES 3 1 2 3 a NOQUANT", "(integer) 1"),
        ("SET v x", "OK"),
        ("VCARD v", WRONG_TYPE),
        ("DEL v", "(integer) 1"),
        ("VADD v VALUES 1 1 a", "(integer) 1"),
        ("FLUSHALL", "OK"),
        ("VCARD v", "(integer) 0"),
    ]);
}
