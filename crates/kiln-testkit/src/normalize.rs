//! When two replies to the same command count as the same.
//!
//! Most must be equal to the byte, error texts included. What a server may answer in any order is
//! compared as a multiset, what depends on chance by its shape, what depends on the clock within a
//! tolerance. The peer itself differs from run to run in all of these: hash seeds, random members,
//! milliseconds.

use crate::generate::upper;
use crate::reply::{Reply, pairs};

/// How far two clocks' readings may lie apart.
const TOLERANCE_MS: i64 = 5_000;

/// How to compare the replies to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Equal.
    Exact,
    /// Equal elements in any order.
    Unordered,
    /// Equal pairs in any order: a map in RESP3, a flat array in RESP2.
    UnorderedPairs,
    /// Equal kinds and lengths throughout.
    Shape,
    /// The same kind.
    Kind,
    /// Equal but for the notes that Redis's key specifications carry as prose of its own.
    WithoutNotes,
    /// Integers this close to each other; negative ones equal.
    Near(i64),
    /// Floats close to each other, element by element.
    Floats,
    /// Elements of a vector set with close scores; equally near ones in any order. What follows a
    /// score is an attribute, and equal.
    Ranked {
        /// Whether there are attributes.
        attributes: bool,
    },
    /// Equal but for what a vector set tells of its graph, and for what only Kiln tells.
    WithoutGraph,
}

impl Rule {
    /// The rule for the reply to `words`.
    pub fn of(words: &[Vec<u8>]) -> Self {
        let argument = |index: usize| words.get(index).map(|word| upper(word)).unwrap_or_default();
        let has = |option: &str| words.iter().any(|word| upper(word) == option);
        match argument(0).as_str() {
            "SMEMBERS" | "SUNION" | "SINTER" | "SDIFF" | "KEYS" | "HKEYS" | "HVALS" | "SPOP" => {
                Self::Unordered
            }
            "HGETALL" => Self::UnorderedPairs,
            "CONFIG" if argument(1) == "GET" => Self::UnorderedPairs,
            "VEMB" if words.len() == 3 && argument(1).starts_with("VSET") => Self::Floats,
            "SRANDMEMBER" | "HRANDFIELD" | "ZRANDMEMBER" | "VRANDMEMBER" | "RANDOMKEY" | "VEMB" => {
                Self::Shape
            }
            // Only with these are the answers exact, and is it known which are equally near.
            "VSIM" if argument(1).starts_with("VSET") && has("TRUTH") && has("WITHSCORES") => {
                Self::Ranked { attributes: has("WITHATTRIBS") }
            }
            "VINFO" => Self::WithoutGraph,
            "SCAN" | "SSCAN" | "HSCAN" | "ZSCAN" | "VSIM" | "VLINKS" | "TIME" | "HELLO" => {
                Self::Kind
            }
            "COMMAND" if argument(1) == "INFO" => Self::WithoutNotes,
            "OBJECT" if argument(1) != "ENCODING" => Self::Kind,
            "CLIENT" if argument(1) == "ID" => Self::Kind,
            "TTL" | "HTTL" | "EXPIRETIME" | "HEXPIRETIME" => Self::Near(TOLERANCE_MS / 1_000),
            "PTTL" | "HPTTL" | "PEXPIRETIME" | "HPEXPIRETIME" => Self::Near(TOLERANCE_MS),
            "SORT" | "SORT_RO" => Self::of_sort(&words[1..]),
            _ => Self::Exact,
        }
    }

    /// An unsorted set has any order, and so have elements of equal weight under `ALPHA`.
    fn of_sort(words: &[Vec<u8>]) -> Self {
        let has = |option: &str| words.iter().any(|word| upper(word) == option);
        let unsorted =
            words.windows(2).any(|pair| upper(&pair[0]) == "BY" && !pair[1].contains(&b'*'));
        match (unsorted, has("BY") && has("ALPHA")) {
            (true, _) if has("LIMIT") => Self::Kind,
            (true, _) | (_, true) => Self::Unordered,
            _ => Self::Exact,
        }
    }

    /// Whether the two replies are the same under this rule. Errors always compare exactly.
    pub fn accepts(&self, left: &Reply, right: &Reply) -> bool {
        if left.is_error() || right.is_error() {
            return left == right;
        }
        match self {
            Self::Exact => canonical(left) == canonical(right),
            Self::Unordered => sorted(left) == sorted(right),
            Self::UnorderedPairs => sorted_pairs(left) == sorted_pairs(right),
            Self::WithoutNotes => {
                canonical(&without_notes(left)) == canonical(&without_notes(right))
            }
            Self::Shape => same_shape(left, right),
            Self::Kind => std::mem::discriminant(left) == std::mem::discriminant(right),
            Self::Near(tolerance) => is_near(left, right, *tolerance),
            Self::Floats => are_close(left, right),
            Self::Ranked { attributes } => {
                match (ranking(left, *attributes), ranking(right, *attributes)) {
                    (Some(left), Some(right)) => same_ranking(&left, &right),
                    _ => left == right,
                }
            }
            Self::WithoutGraph => without_graph(left) == without_graph(right),
        }
    }
}

/// RESP3's sets and maps in sorted order, at any depth: they have none of their own.
fn canonical(reply: &Reply) -> Reply {
    let all = |elements: &[Reply]| elements.iter().map(canonical).collect::<Vec<_>>();
    match reply {
        Reply::Array(elements) => Reply::Array(all(elements)),
        Reply::Push(elements) => Reply::Push(all(elements)),
        Reply::Set(elements) => {
            let mut elements = all(elements);
            elements.sort();
            Reply::Set(elements)
        }
        Reply::Map(entries) => {
            let both = |(key, value): &(Reply, Reply)| (canonical(key), canonical(value));
            let mut entries: Vec<_> = entries.iter().map(both).collect();
            entries.sort();
            Reply::Map(entries)
        }
        other => other.clone(),
    }
}

fn without_notes(reply: &Reply) -> Reply {
    let is_notes = |reply: &Reply| reply.as_bytes() == Some(b"notes");
    let all = |elements: &[Reply]| elements.iter().map(without_notes).collect();
    match reply {
        Reply::Array(elements) if elements.first().is_some_and(is_notes) => {
            Reply::Array(all(elements.get(2..).unwrap_or_default()))
        }
        Reply::Array(elements) => Reply::Array(all(elements)),
        Reply::Set(elements) => Reply::Set(all(elements)),
        Reply::Map(entries) => {
            let others = entries.iter().filter(|(key, _)| !is_notes(key));
            Reply::Map(others.map(|(key, value)| (key.clone(), without_notes(value))).collect())
        }
        other => other.clone(),
    }
}

fn sorted(reply: &Reply) -> Reply {
    match canonical(reply) {
        Reply::Array(mut elements) => {
            elements.sort();
            Reply::Array(elements)
        }
        other => other,
    }
}

fn sorted_pairs(reply: &Reply) -> Reply {
    match canonical(reply) {
        Reply::Array(elements) if elements.len() % 2 == 0 => {
            let mut entries = pairs(elements);
            entries.sort();
            // Its own kind, so that a flat array never equals a real map.
            Reply::Array(vec![Reply::Map(entries)])
        }
        other => other,
    }
}

fn same_shape(left: &Reply, right: &Reply) -> bool {
    let all = |left: &[Reply], right: &[Reply]| {
        left.len() == right.len()
            && left.iter().zip(right).all(|(left, right)| same_shape(left, right))
    };
    match (left, right) {
        (Reply::Array(left), Reply::Array(right)) | (Reply::Set(left), Reply::Set(right)) => {
            all(left, right)
        }
        (Reply::Map(left), Reply::Map(right)) => left.len() == right.len(),
        _ => std::mem::discriminant(left) == std::mem::discriminant(right),
    }
}

fn is_near(left: &Reply, right: &Reply, tolerance: i64) -> bool {
    match (left, right) {
        (Reply::Integer(left), Reply::Integer(right)) if *left >= 0 && *right >= 0 => {
            left.abs_diff(*right) <= tolerance.unsigned_abs()
        }
        (Reply::Array(left), Reply::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| is_near(left, right, tolerance))
        }
        _ => left == right,
    }
}

/// Scores and components are computed in float32, in whatever order of additions.
const CLOSE: f64 = 1e-5;

fn number(reply: &Reply) -> Option<f64> {
    match reply {
        Reply::Double(text) | Reply::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

fn are_close(left: &Reply, right: &Reply) -> bool {
    match (left, right) {
        (Reply::Array(left), Reply::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| are_close(left, right))
        }
        _ if std::mem::discriminant(left) != std::mem::discriminant(right) => false,
        _ => match (number(left), number(right)) {
            (Some(left), Some(right)) => (left - right).abs() <= CLOSE,
            _ => left == right,
        },
    }
}

/// The score of each element with its name and attribute, in order. `None` if the reply is not the
/// one that was asked for.
fn ranking(reply: &Reply, attributes: bool) -> Option<Vec<(f64, Vec<Reply>)>> {
    let flat: Vec<Reply> = match reply {
        Reply::Array(elements) => elements.clone(),
        Reply::Map(entries) => {
            let flatten = |(name, value): &(Reply, Reply)| match value {
                Reply::Array(both) => [std::slice::from_ref(name), both].concat(),
                score => vec![name.clone(), score.clone()],
            };
            entries.iter().flat_map(flatten).collect()
        }
        _ => return None,
    };
    let width = 2 + usize::from(attributes);
    let row = |row: &[Reply]| Some((number(&row[1])?, [&row[..1], &row[2..]].concat()));
    flat.len().is_multiple_of(width).then(|| flat.chunks(width).map(row).collect())?
}

/// Equally near elements change places, and at the end one may stand for another that is cut off.
fn same_ranking(left: &[(f64, Vec<Reply>)], right: &[(f64, Vec<Reply>)]) -> bool {
    let close = |a: f64, b: f64| (a - b).abs() <= CLOSE;
    if left.len() != right.len() || !left.iter().zip(right).all(|(a, b)| close(a.0, b.0)) {
        return false;
    }
    let last = left.last().map(|row| row.0);
    let is_last = |score: f64| last.is_some_and(|last| close(score, last));
    left.iter()
        .filter(|row| !is_last(row.0))
        .all(|row| right.iter().any(|other| close(row.0, other.0) && row.1 == other.1))
}

/// A flat array or a map, without the fields that depend on how a graph came about, and without
/// `deleted` and `memory-bytes`, which only Kiln has.
fn without_graph(reply: &Reply) -> Reply {
    let of_graph = |name: &Reply| {
        let names: [&[u8]; 5] =
            [b"max-level", b"vset-uid", b"hnsw-max-node-uid", b"deleted", b"memory-bytes"];
        name.as_bytes().is_some_and(|name| names.contains(&name))
    };
    match reply {
        Reply::Array(elements) => {
            let kept = elements.chunks(2).filter(|pair| !of_graph(&pair[0]));
            Reply::Array(kept.flatten().cloned().collect())
        }
        Reply::Map(entries) => {
            Reply::Map(entries.iter().filter(|entry| !of_graph(&entry.0)).cloned().collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::split;

    fn same(command: &str, left: &str, right: &str) -> bool {
        let words = split(command).expect("balanced");
        let parse = |text: &str| Reply::parse_all(text.replace(' ', "\r\n").as_bytes());
        Rule::of(&words).accepts(&parse(left), &parse(right))
    }

    #[test]
    fn order_matters_where_it_is_promised() {
        assert!(!same("LRANGE k 0 -1", "*2 :1 :2 ", "*2 :2 :1 "));
        assert!(same("smembers k", "*2 :1 :2 ", "*2 :2 :1 "));
        assert!(!same("SMEMBERS k", "*2 :1 :2 ", "*2 :1 :1 "));
        assert!(same("SMEMBERS k", "~2 :1 :2 ", "~2 :2 :1 "));
        assert!(same("HGETALL k", "*4 :1 :2 :3 :4 ", "*4 :3 :4 :1 :2 "));
        assert!(!same("HGETALL k", "*4 :1 :2 :3 :4 ", "*4 :1 :4 :3 :2 "));
        assert!(same("HGETALL k", "%2 :1 :2 :3 :4 ", "%2 :3 :4 :1 :2 "));
        assert!(!same("HGETALL k", "%1 :1 :2 ", "*2 :1 :2 "));
    }

    #[test]
    fn chance_and_clocks_are_tolerated() {
        assert!(same("SRANDMEMBER k 2", "*2 $1 a $1 b ", "*2 $1 c $1 d "));
        assert!(!same("SRANDMEMBER k 2", "*2 $1 a $1 b ", "*1 $1 c "));
        assert!(same("TTL k", ":100 ", ":101 "));
        assert!(!same("TTL k", ":1 ", ":-1 "));
        assert!(!same("TTL k", ":100 ", ":200 "));
        assert!(same("HPTTL k FIELDS 2 a b", "*2 :-2 :1000 ", "*2 :-2 :1001 "));
    }

    #[test]
    fn notes_of_key_specifications_do_not_count() {
        let (with, without) = ("*1 *4 $5 notes $1 x $1 a :1 ", "*1 *2 $1 a :1 ");
        assert!(same("COMMAND INFO GET", with, without));
        assert!(same("COMMAND INFO GET", "~1 %2 +a :1 $5 notes $1 x ", "~1 %1 +a :1 "));
        assert!(!same("COMMAND INFO GET", with, "*1 *2 $1 a :2 "));
        assert!(!same("COMMAND LIST", with, without));
    }

    #[test]
    fn scores_are_close_and_ties_have_no_order() {
        let command = "VSIM vset1 ELE a TRUTH WITHSCORES";
        let left = "*6 $1 a $1 1 $1 b $3 0.5 $1 c $3 0.2 ";
        assert!(same(command, left, "*6 $1 a $8 0.999999 $1 b $3 0.5 $1 c $3 0.2 "));
        assert!(!same(command, left, "*6 $1 a $1 1 $1 c $3 0.5 $1 b $3 0.2 "));
        assert!(!same(command, left, "*6 $1 a $3 0.9 $1 b $3 0.5 $1 c $3 0.2 "));
        assert!(!same(command, left, "*4 $1 a $1 1 $1 b $3 0.5 "));
        let tied = "%3 $1 a ,1 $1 b ,0.5 $1 c ,0.2 ";
        assert!(same(command, tied, "%3 $1 a ,1 $1 b ,0.5 $1 d ,0.2 "), "cut off among ties");
        let both = "VSIM vset1 ELE a TRUTH WITHSCORES WITHATTRIBS";
        let rows = |x: &str, y: &str| format!("%2 $1 a *2 ,1 {x} $1 b *2 ,0.5 {y} ");
        assert!(same(both, &rows("$1 x", "_"), &rows("$1 x", "_")));
        assert!(!same(both, &rows("$1 x", "_"), &rows("_", "_")));
        assert!(same("VSIM vset1 ELE a", "*1 $1 a ", "*1 $1 b "));
        assert!(same("VEMB vset1 a", "*1 $3 0.1 ", "*1 $18 0.1000000014901161 "));
        assert!(!same("VEMB vset1 a", "*1 $3 0.1 ", "*1 $3 0.2 "));
        assert!(same("VINFO k", "*4 +size :1 +max-level :0 ", "*4 +size :1 +max-level :3 "));
        assert!(!same("VINFO k", "*2 +size :1 ", "*2 +size :2 "));
    }

    #[test]
    fn errors_compare_exactly() {
        assert!(!same("RANDOMKEY", "-a ", "-b "));
        assert!(!same("SCAN 0", "-a ", "*0 "));
    }
}
