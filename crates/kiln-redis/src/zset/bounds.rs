//! The ends of a range, as clients write them: scores (`1.5`, `(1.5`, `-inf`), members (`[b`,
//! `(b`, `-`, `+`) and ranks, which count from the end when they are negative.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use std::ops::Range;

use kiln_base::number::parse_score_bound;
use kiln_command::CommandError;
use kiln_data::zset::{LexBound, ScoreBound};

/// Both ends of a range of scores.
pub(super) fn score_bounds(
    min: &[u8],
    max: &[u8],
) -> Result<(ScoreBound, ScoreBound), CommandError> {
    score_bound(min)
        .zip(score_bound(max))
        .ok_or(CommandError::text("ERR min or max is not a float"))
}

fn score_bound(text: &[u8]) -> Option<ScoreBound> {
    let (exclusive, number) = match text {
        [b'(', number @ ..] => (true, number),
        number => (false, number),
    };
    parse_score_bound(number).map(|value| ScoreBound { value, exclusive })
}

/// Both ends of a range of members.
pub(super) fn lex_bounds<'a>(
    min: &'a [u8],
    max: &'a [u8],
) -> Result<(LexBound<'a>, LexBound<'a>), CommandError> {
    lex_bound(min)
        .zip(lex_bound(max))
        .ok_or(CommandError::text("ERR min or max not valid string range item"))
}

fn lex_bound(text: &[u8]) -> Option<LexBound<'_>> {
    match text {
        b"-" => Some(LexBound::Min),
        b"+" => Some(LexBound::Max),
        [b'[', member @ ..] => Some(LexBound::Included(member)),
        [b'(', member @ ..] => Some(LexBound::Excluded(member)),
        _ => None,
    }
}

/// The ranks from `start` to `stop`, both included, that exist among `len` elements. -1 is the last
/// element, -2 the one before it.
pub(super) fn rank_range(start: i64, stop: i64, len: usize) -> Range<usize> {
    let from_front = |rank: i64| if rank < 0 { rank.saturating_add(len as i64) } else { rank };
    let start = from_front(start).max(0);
    let end = from_front(stop).saturating_add(1).clamp(0, len as i64);
    if start < end { start as usize..end as usize } else { 0..0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, prop_oneof, proptest};

    use super::{lex_bound, rank_range, score_bound};
    use kiln_data::zset::{LexBound, ScoreBound};

    #[test]
    fn scores_may_be_exclusive() {
        let bound = |value, exclusive| Some(ScoreBound { value, exclusive });
        assert_eq!(score_bound(b"1.5"), bound(1.5, false));
        assert_eq!(score_bound(b"(1.5"), bound(1.5, true));
        assert_eq!(score_bound(b"(-inf"), bound(f64::NEG_INFINITY, true));
        assert_eq!(score_bound(b"("), bound(0.0, true));
        assert_eq!(score_bound(b"(2\0x"), bound(2.0, true));
        for text in ["((1", "nan", "1 ", "[1", "1)"] {
            assert_eq!(score_bound(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn members_need_a_bracket() {
        assert_eq!(lex_bound(b"["), Some(LexBound::Included(b"")));
        assert_eq!(lex_bound(b"(a"), Some(LexBound::Excluded(b"a")));
        assert_eq!(lex_bound(b"[+"), Some(LexBound::Included(b"+")));
        for text in ["", "a", "+a", "--", ")a"] {
            assert_eq!(lex_bound(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_range_of_ranks_is_what_both_ends_admit(
            start in prop_oneof![any::<i64>(), -12i64..12],
            stop in prop_oneof![any::<i64>(), -12i64..12],
            len in 0usize..8,
        ) {
            let is_within = |rank: i64| {
                let from_end = rank - len as i64;
                let after_start = if start < 0 { from_end >= start } else { rank >= start };
                let before_stop = if stop < 0 { from_end <= stop } else { rank <= stop };
                after_start && before_stop
            };
            let want: Vec<usize> = (0..len).filter(|&rank| is_within(rank as i64)).collect();
            prop_assert_eq!(rank_range(start, stop, len).collect::<Vec<_>>(), want);
        }
    }
}
