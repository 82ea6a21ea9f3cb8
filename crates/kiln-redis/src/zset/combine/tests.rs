//! ZUNION and friends, against the reference's replies and against joined maps.

use std::collections::BTreeMap;

use kiln_testkit::reply::Reply;
use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use crate::testkit::check;
use crate::zset::elements::tests::reply;

#[test]
fn sets_are_sorted_sets_of_ones() {
    check(&[
        ("ZADD a 1 x 2 y", "(integer) 2"),
        ("SADD s y 7", "(integer) 2"),
        ("ZUNION 2 a s", "1) \"7\"\n2) \"x\"\n3) \"y\""),
        ("ZINTER 2 a s WITHSCORES", "1) \"y\"\n2) \"3\""),
        ("ZDIFF 2 s a WITHSCORES", "1) \"7\"\n2) \"1\""),
        ("ZINTERCARD 2 a s", "(integer) 1"),
    ]);
}

#[test]
fn weights_and_aggregates() {
    check(&[
        ("ZADD a 1 x 2 y", "(integer) 2"),
        ("ZADD b 3 y 4 z", "(integer) 2"),
        (
            "ZUNION 2 a b WEIGHTS 2 -1 AGGREGATE MIN WITHSCORES",
            "1) \"z\"\n2) \"-4\"\n3) \"y\"\n4) \"-3\"\n5) \"x\"\n6) \"2\"",
        ),
        ("ZINTER 2 a b WEIGHTS 10 1 AGGREGATE MAX WITHSCORES", "1) \"y\"\n2) \"20\""),
        ("ZINTER 2 a b AGGREGATE MAX AGGREGATE SUM WITHSCORES", "1) \"y\"\n2) \"5\""),
    ]);
}

#[test]
fn what_is_no_number_becomes_zero_where_it_does_in_the_reference() {
    check(&[
        ("ZADD i inf x", "(integer) 1"),
        ("ZADD m -inf x", "(integer) 1"),
        ("ZADD j 5 x", "(integer) 1"),
        ("ZUNION 2 i m WITHSCORES", "1) \"x\"\n2) \"0\""),
        ("ZUNION 2 j i WEIGHTS 1 0 WITHSCORES", "1) \"x\"\n2) \"5\""),
        ("ZINTER 2 j i WEIGHTS 1 0 WITHSCORES", "1) \"x\"\n2) \"0\""),
        ("ZINTER 2 i j WEIGHTS 0 1 WITHSCORES", "1) \"x\"\n2) \"5\""),
        ("ZINTER 2 j i WEIGHTS 1 0 AGGREGATE MIN WITHSCORES", "1) \"x\"\n2) \"5\""),
        ("ZUNION 2 j i WEIGHTS 1 0 AGGREGATE MIN WITHSCORES", "1) \"x\"\n2) \"0\""),
        ("ZADD zero 0 x", "(integer) 1"),
        ("ZUNION 1 zero WEIGHTS -1 WITHSCORES", "1) \"x\"\n2) \"-0\""),
    ]);
}

#[test]
fn floats_are_added_from_the_smallest_input_on() {
    check(&[
        ("ZADD a 0.1 x", "(integer) 1"),
        ("ZADD b 0.2 x 1 y", "(integer) 2"),
        ("ZADD c 0.3 x 1 y 1 z", "(integer) 3"),
        ("ZINTER 3 c b a WITHSCORES", "1) \"x\"\n2) \"0.6000000000000001\""),
    ]);
}

#[test]
fn storing_replaces_whatever_is_there() {
    check(&[
        ("ZADD a 1 x 2 y", "(integer) 2"),
        ("SET d v", "OK"),
        ("ZUNIONSTORE d 2 a none", "(integer) 2"),
        ("ZUNIONSTORE a 2 a d", "(integer) 2"),
        ("ZRANGE a 0 -1 WITHSCORES", "1) \"x\"\n2) \"2\"\n3) \"y\"\n4) \"4\""),
        ("ZINTERSTORE d 2 a none", "(integer) 0"),
        ("ZDIFFSTORE a 2 a a", "(integer) 0"),
        ("SET a v", "OK"),
    ]);
}

#[test]
fn the_number_of_keys_comes_first_then_the_keys_then_the_options() {
    let syntax = "(error) ERR syntax error";
    let wrong_type = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    check(&[
        ("SET s v", "OK"),
        ("ZUNION x s", "(error) ERR value is not an integer or out of range"),
        ("ZUNION 0 s", "(error) ERR at least 1 input key is needed for 'zunion' command"),
        ("ZUNION 2 s", syntax),
        ("ZUNION 1 s FOO", wrong_type),
        ("ZUNION 1 none WEIGHTS", syntax),
        ("ZUNION 1 none WEIGHTS x", "(error) ERR weight value is not a float"),
        ("ZUNION 1 none AGGREGATE AVG", syntax),
        ("ZUNIONSTORE d 1 none WITHSCORES", syntax),
        ("ZDIFF 1 none WEIGHTS 1", syntax),
        ("ZINTERCARD 1 none LIMIT", syntax),
        ("ZINTERCARD 1 none LIMIT -1", "(error) ERR LIMIT can't be negative"),
        ("ZINTERCARD 1 none WITHSCORES", syntax),
    ]);
}

fn elements() -> impl Strategy<Value = BTreeMap<u8, i64>> {
    btree_map(0u8..8, 1i64..9, 0..6)
}

proptest! {
    /// Whole scores and weights other than 0: no order of adding and no sign of 0 matters. Some
    /// inputs are sets.
    #[test]
    fn results_are_those_of_joined_maps(
        mut inputs in vec((elements(), prop_oneof![-3i64..0, 1i64..4], any::<bool>()), 1..4),
        as_trees: bool,
        operation in prop_oneof![Just("ZUNION"), Just("ZINTER"), Just("ZDIFF")],
        aggregate in prop_oneof![Just("SUM"), Just("MIN"), Just("MAX")],
    ) {
        let mut server = crate::testkit::server();
        let mut command = vec![operation.to_owned(), inputs.len().to_string()];
        let suffix = "x".repeat(if as_trees { 70 } else { 0 });
        for (number, (elements, _, is_set)) in inputs.iter_mut().enumerate() {
            command.push(format!("z{number}"));
            let kind = if *is_set { "SADD" } else { "ZADD" };
            let mut add = vec![kind.to_owned(), format!("z{number}")];
            for (member, score) in &mut *elements {
                if *is_set {
                    *score = 1;
                } else {
                    add.push(score.to_string());
                }
                add.push(format!("{member}{suffix}"));
            }
            if !elements.is_empty() {
                reply(&mut server, &add);
            }
        }
        let has_weights = operation != "ZDIFF";
        if has_weights {
            command.push("WEIGHTS".to_owned());
            command.extend(inputs.iter().map(|(_, weight, _)| weight.to_string()));
            command.extend(["AGGREGATE".to_owned(), aggregate.to_owned()]);
        }
        command.push("WITHSCORES".to_owned());

        let mut scores: BTreeMap<u8, Vec<i64>> = BTreeMap::new();
        for (elements, weight, _) in &inputs {
            for (&member, score) in elements {
                let weight = if has_weights { *weight } else { 1 };
                scores.entry(member).or_default().push(weight * score);
            }
        }
        let first = &inputs[0].0;
        scores.retain(|member, scores| match operation {
            "ZUNION" => true,
            "ZINTER" => scores.len() == inputs.len(),
            _ => scores.len() == 1 && first.contains_key(member),
        });
        let mut want: Vec<(i64, u8)> = scores
            .into_iter()
            .map(|(member, scores)| {
                let scores = scores.into_iter();
                let score = match aggregate {
                    "SUM" => Some(scores.sum()),
                    "MIN" => scores.min(),
                    _ => scores.max(),
                };
                (score.expect("a member has a score"), member)
            })
            .collect();
        want.sort_unstable();
        let texts = want.iter().flat_map(|(score, member)| {
            let texts = [format!("{member}{suffix}"), score.to_string()];
            texts.map(|text| Reply::Bulk(text.into_bytes()))
        });
        prop_assert_eq!(reply(&mut server, &command), Reply::Array(texts.collect()));
    }
}
