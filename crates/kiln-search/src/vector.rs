//! Vectors among a command's words, and what work on them costs.
//!
//! A component is a number as Redis reads doubles (`5.`, `.5`, `+5` and `0x10` are; blanks are
//! not), rounded to a float32. NaN, infinity and what becomes infinite are refused in every form:
//! an element with such a vector would compare with nothing.

use kiln_base::number::{parse_f64, parse_i64};
use kiln_command::{Args, CommandError};
use kiln_vector::DIM_MAX;

/// What Redis says of every vector that it cannot read.
pub(crate) const BAD_VECTOR: CommandError = CommandError::text("ERR invalid vector specification");

/// A vector of VADD or VSIM: `[REDUCE n] FP32 blob` or `[REDUCE n] VALUES n x …`.
pub(crate) struct VectorWords {
    pub(crate) components: Vec<f32>,
    /// The dimensions that it is to be reduced to.
    pub(crate) reduce: Option<usize>,
    /// The word behind it.
    pub(crate) next: usize,
}

/// Reads the vector at word `at`.
pub(crate) fn vector_at(
    args: &Args<'_>,
    mut at: usize,
    may_reduce: bool,
) -> Result<VectorWords, CommandError> {
    let is = |at: usize, word: &str| {
        args.try_get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    };
    let mut reduce = None;
    if may_reduce && is(at, "REDUCE") {
        reduce = Some(args.try_get(at + 1).and_then(dimensions).ok_or(BAD_VECTOR)?);
        at += 2;
    }
    let (components, next) = if is(at, "FP32") {
        (args.try_get(at + 1).and_then(blob), at + 2)
    } else if is(at, "VALUES") {
        let dim = args.try_get(at + 1).and_then(dimensions).ok_or(BAD_VECTOR)?;
        (components(args, at + 2, dim), at + 2 + dim)
    } else {
        (None, at)
    };
    Ok(VectorWords { components: components.ok_or(BAD_VECTOR)?, reduce, next })
}

fn dimensions(word: &[u8]) -> Option<usize> {
    let dim = usize::try_from(parse_i64(word)?).ok()?;
    (1..=DIM_MAX).contains(&dim).then_some(dim)
}

/// The `dim` components from word `at` on.
pub(crate) fn components(args: &Args<'_>, at: usize, dim: usize) -> Option<Vec<f32>> {
    if args.len() < at + dim {
        return None;
    }
    let mut vector = Vec::with_capacity(dim);
    for index in at..at + dim {
        vector.push(component(args.get(index))?);
    }
    Some(vector)
}

/// One component.
pub(crate) fn component(word: &[u8]) -> Option<f32> {
    // The fast parser knows no hexadecimal digits, and takes what Redis refuses only if it is not
    // finite, which is refused below.
    let wide = fast_float2::parse(word).ok().or_else(|| parse_f64(word))?;
    let component = wide as f32;
    component.is_finite().then_some(component)
}

/// The components in a blob of little-endian float32.
pub(crate) fn blob(bytes: &[u8]) -> Option<Vec<f32>> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    if chunks.is_empty() || !rest.is_empty() || chunks.len() > DIM_MAX {
        return None;
    }
    let vector: Vec<f32> = chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
    vector.iter().all(|component| component.is_finite()).then_some(vector)
}

/// Microseconds that an insert among `len` vectors is foreseen to take: measured at 384 and 1,536
/// dimensions.
pub(crate) fn insert_micros(dim: usize, len: usize, ef: usize) -> u64 {
    let per_candidate = 0.9 + 0.001_6 * dim as f64;
    (ef.min(len) as f64 * per_candidate) as u64
}

/// Microseconds that comparing with `count` elements by name is foreseen to take.
pub(crate) fn look_up_micros(dim: usize, count: usize) -> u64 {
    (count as f64 * (0.3 + 0.000_7 * dim as f64)) as u64
}

/// Microseconds that a search for `count` elements is foreseen to take past those that a filter
/// refuses, if it lets this share pass.
pub(crate) fn filtered_micros(dim: usize, count: usize, share: f64) -> u64 {
    let candidates = 2.5 * count as f64 / share.max(1e-3);
    (20.0 + candidates * (0.5 + 0.001_2 * dim as f64)) as u64
}

#[cfg(test)]
mod tests {
    use kiln_resp::OwnedArgs;

    use super::{blob, component, vector_at};

    #[test]
    fn components_are_read_as_redis_reads_doubles() {
        for (word, want) in [
            ("1", 1.0),
            ("-1.5", -1.5),
            ("+1", 1.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("0x10", 16.0),
            ("1e-07", 1e-7),
            ("-0", -0.0),
            ("1e-50", 0.0),
            ("3.4028235e38", f32::MAX),
        ] {
            let got = component(word.as_bytes()).map(f32::to_bits);
            assert_eq!(got, Some(f32::to_bits(want)), "{word}");
        }
        for word in ["", " 1", "1 ", ".", "x", "nan", "inf", "-infinity", "1e39", "1e400", "1_0"] {
            assert_eq!(component(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn a_blob_is_whole_and_finite() {
        assert_eq!(blob(b"\0\0\x80\x3f\0\0\0\xc0"), Some(vec![1.0, -2.0]));
        assert_eq!((blob(b""), blob(b"abc"), blob(b"abcde")), (None, None, None));
        assert_eq!(blob(&f32::NAN.to_le_bytes()), None);
        assert_eq!(blob(&f32::NEG_INFINITY.to_le_bytes()), None);
    }

    #[test]
    fn vectors_are_found_among_words() {
        let read = |line: &str| {
            let words = OwnedArgs::new(line.split(' ').map(str::as_bytes));
            let found = vector_at(&words.args(), 1, true).ok()?;
            Some((found.components, found.reduce, found.next))
        };
        assert_eq!(read("VADD values 2 1 2 e"), Some((vec![1.0, 2.0], None, 5)));
        assert_eq!(read("VADD REDUCE 1 VALUES 2 1 2 e"), Some((vec![1.0, 2.0], Some(1), 7)));
        for line in [
            "VADD",
            "VADD VALUES",
            "VADD VALUES 0 e",
            "VADD VALUES -1 e",
            "VADD VALUES 1e0 1 e",
            "VADD VALUES 3 1 2",
            "VADD VALUES 2 1 x",
            "VADD FP32",
            "VADD REDUCE 0 VALUES 1 1 e",
            "VADD REDUCE",
            "VADD REDUCE 2",
            "VADD ELE e",
            "VADD VALUES 65537 1 e",
            "VADD VALUES 9223372036854775807 1 e",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
