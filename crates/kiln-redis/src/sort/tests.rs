//! Transcripts of SORT.

use crate::testkit::check;

#[test]
fn syntax_is_checked_before_the_type() {
    check(&[
        ("SET s v", "OK"),
        ("SORT s BOGUS", "(error) ERR syntax error"),
        ("SORT s LIMIT a 1 BOGUS", "(error) ERR value is not an integer or out of range"),
        ("SORT s LIMIT 1", "(error) ERR syntax error"),
        ("SORT_RO s STORE d", "(error) ERR syntax error"),
        (
            "SORT s STORE d",
            "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("SORT k", "(empty array)"),
        ("SORT k STORE s", "(integer) 0"),
        ("EXISTS s", "(integer) 0"),
    ]);
}

#[test]
fn numbers_are_read_generously() {
    check(&[
        ("RPUSH l +5 1 .5 5. infinity -INF 1e-400 \"\" 1e400", "(integer) 9"),
        (
            "SORT l",
            "1) \"-INF\"\n2) \"\"\n3) \"1e-400\"\n4) \".5\"\n5) \"1\"\n6) \"+5\"\n7) \"5.\"\n\
             8) \"1e400\"\n9) \"infinity\"",
        ),
        ("RPUSH x 1 0x10", "(integer) 2"),
        ("SORT x", "(error) ERR One or more scores can't be converted into double"),
        ("SORT x ALPHA DESC", "1) \"1\"\n2) \"0x10\""),
    ]);
}

#[test]
fn what_is_not_to_be_sorted_keeps_its_order() {
    check(&[
        ("RPUSH l c a b d", "(integer) 4"),
        ("SORT l BY nosort DESC", "1) \"d\"\n2) \"b\"\n3) \"a\"\n4) \"c\""),
        ("SORT l BY nosort DESC LIMIT 1 2", "1) \"b\"\n2) \"a\""),
        ("SORT l BY nosort LIMIT 1 2", "1) \"a\"\n2) \"b\""),
        ("SORT l BY nosort LIMIT 9 2", "(empty array)"),
        ("SORT l BY nosort DESC LIMIT 9 2", "(empty array)"),
        ("ZADD z 1 a 2 b 3 c", "(integer) 3"),
        ("SORT z BY nosort DESC LIMIT 1 1", "1) \"b\""),
        ("SORT z BY nosort LIMIT 2 5", "1) \"c\""),
        ("SADD s c a b", "(integer) 3"),
        ("SORT s BY nosort LIMIT 1 1 STORE d", "(integer) 1"),
        ("LRANGE d 0 -1", "1) \"b\""),
    ]);
}

#[test]
fn weights_and_shown_values_come_from_other_keys() {
    check(&[
        ("RPUSH l 1 2 3", "(integer) 3"),
        ("MSET w_1 30 w_3 10 o_1 one o_2 two", "OK"),
        ("SORT l BY w_*", "1) \"2\"\n2) \"3\"\n3) \"1\""),
        ("SORT l BY w_* LIMIT 1 1", "1) \"3\""),
        ("SORT l BY w_* ALPHA DESC LIMIT 0 2", "1) \"1\"\n2) \"3\""),
        ("SORT l BY o_*", "(error) ERR One or more scores can't be converted into double"),
        ("SORT l GET o_* GET none GET h_* STORE d", "(integer) 9"),
        ("LRANGE d 0 3", "1) \"one\"\n2) \"\"\n3) \"\"\n4) \"two\""),
    ]);
}

#[test]
fn a_sorted_list_can_replace_itself() {
    check(&[
        ("RPUSH l 3 1 2", "(integer) 3"),
        ("EXPIRE l 1000", "(integer) 1"),
        ("SORT l STORE other STORE l", "(integer) 3"),
        ("LRANGE l 0 -1", "1) \"1\"\n2) \"2\"\n3) \"3\""),
        ("TTL l", "(integer) -1"),
        ("EXISTS other", "(integer) 0"),
    ]);
}

#[test]
fn weights_and_shown_values_may_be_fields() {
    check(&[
        ("RPUSH l 1 2 3", "(integer) 3"),
        ("HSET h_1 f x w 30", "(integer) 2"),
        ("HSET h_3 w 10", "(integer) 1"),
        ("SORT l BY h_*->w", "1) \"2\"\n2) \"3\"\n3) \"1\""),
        ("SORT l GET # GET h_*->f LIMIT 0 2", "1) \"1\"\n2) \"x\"\n3) \"2\"\n4) (nil)"),
        ("SORT l GET h_* GET h_*-> LIMIT 0 1", "1) (nil)\n2) (nil)"),
        ("SORT h_1", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"),
    ]);
}

#[test]
fn the_keys_are_the_sorted_and_the_last_stored() {
    check(&[
        ("COMMAND GETKEYS SORT a STORE b BY STORE GET c* STORE d", "1) \"a\"\n2) \"d\""),
        ("COMMAND GETKEYS SORT_RO a BY w_*", "1) \"a\""),
    ]);
}
