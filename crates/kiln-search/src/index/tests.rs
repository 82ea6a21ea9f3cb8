//! Transcripts; the replies are those that `hotkv-client` expects, or our choice.

use crate::testkit::check;

#[test]
fn an_index_is_made_filled_searched_and_dropped() {
    check(&[
        ("VSIM.CREATEINDEX docs 3 METRIC cosine", "OK"),
        ("VSIM.CREATEINDEX docs 3", "(error) ERR index already exists"),
        ("VSIM.SET docs a 1 0 0", "(integer) 1"),
        ("VSIM.SET docs b 0 1 0", "(integer) 1"),
        ("VSIM.SET docs b 0 2 0", "(integer) 0"),
        ("VSIM.GET docs b", "1) \"0\"\n2) \"2\"\n3) \"0\""),
        ("VSIM.GET docs c", "(nil)"),
        ("VSIM.SEARCH docs 5 1 0 0", "1) \"a\"\n2) \"0\"\n3) \"b\"\n4) \"1\""),
        ("VSIM.SEARCH docs 1 1 0 0 TRUTH EF 5", "1) \"a\"\n2) \"0\""),
        ("VSIM.DEL docs a", "(integer) 1"),
        ("VSIM.DEL docs a", "(integer) 0"),
        ("VSIM.DEL docs b", "(integer) 1"),
        ("VSIM.SEARCH docs 5 1 0 0", "(empty array)"),
        ("VSIM.INFO", "1) \"docs\""),
        ("VSIM.DROPINDEX docs", "OK"),
        ("VSIM.DROPINDEX docs", "(error) ERR index not found"),
        ("VSIM.INFO", "(empty array)"),
    ]);
}

#[test]
fn distances_follow_the_metric() {
    check(&[
        ("VSIM.CREATEINDEX l 2 METRIC l2", "OK"),
        ("VSIM.SET l a 3 4", "(integer) 1"),
        ("VSIM.SEARCH l 1 0 0", "1) \"a\"\n2) \"5\""),
        ("VSIM.CREATEINDEX i 2 METRIC IP", "OK"),
        ("VSIM.SET i a 3 4", "(integer) 1"),
        ("VSIM.SEARCH i 1 1 1", "1) \"a\"\n2) \"-6\""),
        ("VSIM.CREATEINDEX c 2", "OK"),
        ("VSIM.SET c zero 0 0", "(integer) 1"),
        ("VSIM.SET c opposite -2 0", "(integer) 1"),
        ("VSIM.SET c same 1e-30 0", "(integer) 1"),
        (
            "VSIM.SEARCH c 9 5 0",
            "1) \"same\"\n2) \"0\"\n3) \"zero\"\n4) \"1\"\n5) \"opposite\"\n6) \"2\"",
        ),
    ]);
}

#[test]
fn bad_input_says_what_is_wrong_and_changes_nothing() {
    check(&[
        ("VSIM.SET none a 1", "(error) ERR index not found"),
        ("VSIM.GET none a", "(error) ERR index not found"),
        ("VSIM.DEL none a", "(error) ERR index not found"),
        ("VSIM.SEARCH none 1 1", "(error) ERR index not found"),
        ("VSIM.INFO none", "(error) ERR index not found"),
        ("VSIM.CREATEINDEX \"\" 2", "(error) ERR invalid name"),
        ("VSIM.CREATEINDEX i x", "(error) ERR value is not an integer or out of range"),
        ("VSIM.CREATEINDEX i 0", "(error) ERR dimensions must be between 1 and 65536"),
        ("VSIM.CREATEINDEX i 65537", "(error) ERR dimensions must be between 1 and 65536"),
        (
            "VSIM.CREATEINDEX i 2 METRIC hamming",
            "(error) ERR unknown metric: cosine, l2 and ip are known",
        ),
        ("VSIM.CREATEINDEX i 2 M 1", "(error) ERR M must be between 2 and 512"),
        ("VSIM.CREATEINDEX i 2 EF_SEARCH 0", "(error) ERR EF_SEARCH must be between 1 and 1000000"),
        ("VSIM.CREATEINDEX i 2 M 4 M 4", "(error) ERR syntax error"),
        ("VSIM.CREATEINDEX i 2 METRIC", "(error) ERR syntax error"),
        ("VSIM.CREATEINDEX i 2 BOGUS 1", "(error) ERR syntax error"),
        ("VSIM.CREATEINDEX i 2 M 4 EF_CONSTRUCTION 50 EF_SEARCH 20", "OK"),
        ("VSIM.SET i a 1", "(error) ERR vector has 1 dimensions, expected 2"),
        ("VSIM.SET i a 1 2 3", "(error) ERR vector has 3 dimensions, expected 2"),
        (
            "VSIM.SET i a 1 nan",
            "(error) ERR a component of the vector is not a finite 32-bit float",
        ),
        (
            "VSIM.SET i a 1 1e39",
            "(error) ERR a component of the vector is not a finite 32-bit float",
        ),
        ("VSIM.SET i \"\" 1 2", "(error) ERR invalid name"),
        ("VSIM.SEARCH i 0 1 2", "(error) ERR k must be at least 1"),
        ("VSIM.SEARCH i x 1 2", "(error) ERR value is not an integer or out of range"),
        ("VSIM.SEARCH i 1 1", "(error) ERR vector has 1 dimensions, expected 2"),
        ("VSIM.SEARCH i 1 1 2 3", "(error) ERR vector has 3 dimensions, expected 2"),
        ("VSIM.SEARCH i 1 1 2 EF 0", "(error) ERR EF must be between 1 and 1000000"),
        ("VSIM.SEARCH i 1 1 2 EF", "(error) ERR syntax error"),
        ("VSIM.SEARCH i 1 1 2 FILTER", "(error) ERR syntax error"),
        ("VSIM.SEARCH i 1 1 2 FILTER EF 5", "(error) ERR syntax error"),
        ("VSIM.SEARCH i 1 1 2 EF 5 EF 5", "(error) ERR syntax error"),
        ("VSIM.SET i a", "(error) ERR wrong number of arguments for 'vsim.set' command"),
        ("VSIM.INFO a b", "(error) ERR wrong number of arguments for 'vsim.info' command"),
    ]);
}

#[test]
fn a_vector_may_be_one_blob() {
    check(&[
        ("VSIM.CREATEINDEX i 2", "OK"),
        ("VSIM.SET i a FP32 \"\\x00\\x00\\x80?\\x00\\x00\\x00@\"", "(integer) 1"),
        ("VSIM.GET i a", "1) \"1\"\n2) \"2\""),
        ("VSIM.SEARCH i 1 fp32 \"\\x00\\x00\\x80?\\x00\\x00\\x00@\" EF 3", "1) \"a\"\n2) \"0\""),
        (
            "VSIM.SET i a FP32 \"\\x00\\x00\\x80\\x7f\\x00\\x00\\x00@\"",
            "(error) ERR a component of the vector is not a finite 32-bit float",
        ),
        ("VSIM.SET i a abc", "(error) ERR vector has 1 dimensions, expected 2"),
        ("VSIM.SET i a FP32", "(error) ERR syntax error"),
        ("VSIM.SET i a FP32 abcd", "(error) ERR vector has 1 dimensions, expected 2"),
        ("VSIM.SET i a FP32 abc", "(error) ERR a blob of float32 is not a multiple of 4 bytes"),
        ("VSIM.CREATEINDEX one 1", "OK"),
        ("VSIM.SET one a 1.25", "(integer) 1"),
        ("VSIM.GET one a", "1) \"1.25\""),
    ]);
}

#[test]
fn a_filter_takes_members_whose_keys_have_all_tags() {
    check(&[
        ("VSIM.CREATEINDEX i 1 METRIC l2", "OK"),
        ("VSIM.SET i a 1", "(integer) 1"),
        ("VSIM.SET i b 2", "(integer) 1"),
        ("VSIM.SET i c 3", "(integer) 1"),
        ("MSET a 1 b 1 c 1", "OK"),
        ("TAG.SET a red EF", "(integer) 2"),
        ("TAG.SET c red blue", "(integer) 2"),
        ("VSIM.SEARCH i 2 0 FILTER red", "1) \"a\"\n2) \"1\"\n3) \"c\"\n4) \"3\""),
        ("VSIM.SEARCH i 2 0 FILTER red blue EF 10", "1) \"c\"\n2) \"3\""),
        ("VSIM.SEARCH i 2 0 TRUTH FILTER red EF", "1) \"a\"\n2) \"1\""),
        ("VSIM.SEARCH i 2 0 FILTER none", "(empty array)"),
        ("DEL a", "(integer) 1"),
        ("VSIM.SEARCH i 2 0 FILTER red", "1) \"c\"\n2) \"3\""),
        ("VSIM.SEARCH i 1 0", "1) \"a\"\n2) \"1\""),
        ("SELECT 1", "OK"),
        ("VSIM.SEARCH i 2 0 FILTER red", "(empty array)"),
    ]);
}

#[test]
fn indexes_are_hidden_from_the_keyspace() {
    check(&[
        ("VSIM.CREATEINDEX i 1", "OK"),
        ("SET i text", "OK"),
        ("DBSIZE", "(integer) 1"),
        ("TYPE i", "string"),
        ("DEL i", "(integer) 1"),
        ("KEYS *", "(empty array)"),
        ("VSIM.SAVE i blob", "(integer) 4"),
        ("SELECT 1", "OK"),
        ("VSIM.INFO", "1) \"i\""),
        ("SWAPDB 0 1", "OK"),
        ("FLUSHDB", "OK"),
        ("VSIM.INFO", "1) \"i\""),
        ("VSIM.LIST", "1) \"i\""),
        ("FLUSHALL", "OK"),
        ("VSIM.INFO", "(empty array)"),
        ("VSIM.LIST", "(empty array)"),
    ]);
}

#[test]
fn transactions_hold_what_they_use() {
    check(&[
        ("MULTI", "OK"),
        ("VSIM.CREATEINDEX i 1", "QUEUED"),
        ("VSIM.CREATEINDEX i 1", "QUEUED"),
        ("VSIM.SET i a 1", "QUEUED"),
        ("VSIM.SEARCH i 1 1 FILTER t", "QUEUED"),
        ("VSIM.INFO", "QUEUED"),
        (
            "EXEC",
            "1) OK\n2) (error) ERR index already exists\n3) (integer) 1\n4) (empty array)\n\
             5) 1) \"i\"",
        ),
    ]);
}

#[test]
fn snapshots_are_bytes_under_a_name() {
    check(&[
        ("VSIM.LOAD s", "(nil)"),
        ("VSIM.DROP s", "(integer) 0"),
        ("VSIM.SAVE s 123", "(integer) 3"),
        ("VSIM.LOAD s", "\"123\""),
        ("VSIM.SAVE s \"\"", "(integer) 0"),
        ("VSIM.LOAD s", "\"\""),
        ("VSIM.SAVE r x", "(integer) 1"),
        ("VSIM.LIST", "1) \"r\"\n2) \"s\""),
        ("VSIM.DROP s", "(integer) 1"),
        ("VSIM.LIST", "1) \"r\""),
    ]);
}
