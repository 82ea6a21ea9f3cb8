//! ZRANGE and friends, against the reference's replies and against filtered lists.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use crate::testkit::check;
use crate::zset::elements::tests::reply;
use kiln_testkit::reply::Reply;

#[test]
fn ranks_count_from_the_end_that_is_read_first() {
    check(&[
        ("ZADD z 1 a 2 b 3 c", "(integer) 3"),
        ("ZRANGE z 0 0", "1) \"a\""),
        ("ZRANGE z 0 0 REV", "1) \"c\""),
        ("ZRANGE z -2 -1 REV WITHSCORES", "1) \"b\"\n2) \"2\"\n3) \"a\"\n4) \"1\""),
        ("ZREVRANGE z 0 1", "1) \"c\"\n2) \"b\""),
        ("ZRANGE z 3 9", "(empty array)"),
        ("ZRANGE none 0 -1", "(empty array)"),
    ]);
}

#[test]
fn reverse_ranges_name_their_upper_end_first() {
    check(&[
        ("ZADD z 1 a 2 b 3 c", "(integer) 3"),
        ("ZRANGE z 3 (1 BYSCORE REV", "1) \"c\"\n2) \"b\""),
        ("ZRANGE z 1 3 BYSCORE REV", "(empty array)"),
        ("ZREVRANGEBYSCORE z +inf -inf LIMIT 1 1 WITHSCORES", "1) \"b\"\n2) \"2\""),
        ("ZREVRANGEBYLEX z [c (a LIMIT 1 -1", "1) \"b\""),
        ("ZRANGEBYLEX z - + LIMIT -1 1", "(empty array)"),
    ]);
}

#[test]
fn options_are_checked_before_the_ends_and_those_before_the_key() {
    let syntax = "(error) ERR syntax error";
    let no_limit = "(error) ERR syntax error, LIMIT is only supported in combination with \
                    either BYSCORE or BYLEX";
    check(&[
        ("SET s v", "OK"),
        ("ZRANGE s x y BYSCORE BYLEX", syntax),
        ("ZRANGE s x y REV REV", syntax),
        ("ZRANGE s x y LIMIT 0", syntax),
        ("ZRANGE s x y LIMIT 0 5", no_limit),
        ("ZRANGE s x y LIMIT 3 -1", "(error) ERR value is not an integer or out of range"),
        ("ZREVRANGE s x y REV", syntax),
        ("ZRANGEBYSCORE s x y BYSCORE", syntax),
        (
            "ZRANGEBYLEX s x y WITHSCORES",
            "(error) ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ),
        ("ZRANGE s x 1 BYSCORE", "(error) ERR min or max is not a float"),
        ("ZRANGESTORE d s 0 1 WITHSCORES", syntax),
        (
            "ZRANGESTORE d s 0 1",
            "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ]);
}

#[test]
fn storing_replaces_whatever_is_there() {
    check(&[
        ("ZADD z 1 a 2 b 3 c", "(integer) 3"),
        ("SET d v", "OK"),
        ("ZRANGESTORE d z 0 1 REV", "(integer) 2"),
        ("ZRANGE d 0 -1 WITHSCORES", "1) \"b\"\n2) \"2\"\n3) \"c\"\n4) \"3\""),
        ("ZRANGESTORE z z (1 +inf BYSCORE LIMIT 1 1", "(integer) 1"),
        ("ZRANGE z 0 -1", "1) \"c\""),
        ("ZRANGESTORE d none 0 -1", "(integer) 0"),
        ("SET d w", "OK"),
    ]);
}

fn end() -> impl Strategy<Value = i64> {
    prop_oneof![-3i64..14, Just(i64::MIN), Just(i64::MAX)]
}

proptest! {
    /// Members `m00`, `m01`, … in a listpack, or, when they are long, in a tree.
    #[test]
    fn every_range_is_a_filtered_list_that_is_reversed_then_cut(
        len in 1usize..12,
        as_tree: bool,
        index in prop_oneof![Just("BYSCORE"), Just("BYLEX")],
        reverse: bool,
        (min, max) in (0usize..12, 0usize..12),
        (min_open, max_open) in (any::<bool>(), any::<bool>()),
        limit in vec((end(), end()), 0..2),
    ) {
        let mut server = crate::testkit::server();
        let suffix = "x".repeat(if as_tree { 70 } else { 0 });
        let name = |number: usize| format!("m{number:02}{suffix}");
        let mut add = vec!["ZADD".to_owned(), "z".to_owned()];
        for number in 0..len {
            let score = if index == "BYLEX" { 0 } else { number };
            add.extend([score.to_string(), name(number)]);
        }
        reply(&mut server, &add);

        let bound = |number: usize, open: bool| match (index, open) {
            ("BYLEX", true) => format!("({}", name(number)),
            ("BYLEX", false) => format!("[{}", name(number)),
            (_, true) => format!("({number}"),
            (_, false) => number.to_string(),
        };
        let mut ends = [bound(min, min_open), bound(max, max_open)];
        let mut want: Vec<_> = (0..len)
            .filter(|&number| if min_open { number > min } else { number >= min })
            .filter(|&number| if max_open { number < max } else { number <= max })
            .map(name)
            .collect();
        if reverse {
            ends.reverse();
            want.reverse();
        }
        let [start, stop] = ends;
        let mut command =
            vec!["ZRANGE".to_owned(), "z".to_owned(), start, stop, index.to_owned()];
        if reverse {
            command.push("REV".to_owned());
        }
        for (offset, count) in limit {
            command.extend(["LIMIT".to_owned(), offset.to_string(), count.to_string()]);
            let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
            let taken = usize::try_from(count).unwrap_or(usize::MAX);
            want = want.into_iter().skip(skipped).take(taken).collect();
        }
        let want = want.into_iter().map(|member| Reply::Bulk(member.into_bytes())).collect();
        prop_assert_eq!(reply(&mut server, &command), Reply::Array(want), "{:?}", command);
    }
}
