//! What is sent: the commands of the two faces of a vector engine, with vectors as binary.
//!
//! | face | load | search |
//! |---|---|---|
//! | set, as in Redis 8 | `VADD k FP32 … e NOQUANT EF n M n` | `VSIM k FP32 … COUNT 10 EF n` |
//! | index, as in `HotKV` | `VSIM.SET i e FP32 …` | `VSIM.SEARCH i 10 FP32 … EF n` |
//!
//! Element names are row numbers in ten digits.

use std::ops::Range;

use clap::ValueEnum;

use super::data::{ATTRIBUTE_VALUES, COUNT};
use super::npy::Matrix;
use crate::workload::Requests;

/// The key of the set, or the name of the index.
pub const KEY: &str = "vectors";

/// Links that a node keeps.
pub const M: &str = "16";

/// Candidates looked at while building.
pub const EF_CONSTRUCTION: &str = "200";

/// How a server stores components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Quantization {
    /// float32.
    None,
    /// 8 bits.
    Q8,
    /// One bit.
    Bin,
}

impl Quantization {
    /// The word of VADD.
    pub const fn name(self) -> &'static str {
        match self {
            Quantization::None => "NOQUANT",
            Quantization::Q8 => "Q8",
            Quantization::Bin => "BIN",
        }
    }
}

/// A family of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Face {
    /// VADD, VSIM.
    Set,
    /// VSIM.SET, VSIM.SEARCH.
    Index,
}

/// One way to search.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The commands.
    pub face: Face,
    /// Search effort.
    pub ef: usize,
    /// Ask Redis to search on its main thread instead of on one made for the query.
    pub no_thread: bool,
    /// Of a thousand rows the filter keeps so many; [`ATTRIBUTE_VALUES`] is no filter.
    pub kept_per_mille: usize,
}

impl Search {
    /// One request for each query, each a batch of its own.
    pub fn requests(&self, queries: &Matrix<f32>) -> Requests {
        let mut requests = Requests::new(1);
        let ef = self.ef.to_string();
        let count = COUNT.to_string();
        let key = KEY.as_bytes();
        let filter = format!(".n < {}", self.kept_per_mille);
        for query in queries.rows() {
            let blob = blob(query);
            let mut words: Vec<&[u8]> = match self.face {
                Face::Set => vec![b"VSIM", key, b"FP32", &blob, b"COUNT", count.as_bytes()],
                Face::Index => vec![b"VSIM.SEARCH", key, count.as_bytes(), b"FP32", &blob],
            };
            words.extend([b"EF", ef.as_bytes()]);
            if self.kept_per_mille < ATTRIBUTE_VALUES {
                words.extend([b"FILTER".as_slice(), filter.as_bytes()]);
            }
            if self.no_thread {
                words.push(b"NOTHREAD");
            }
            requests.push(&words);
        }
        requests
    }

    /// The elements that a reply names, as row numbers; a name that is none is -1.
    pub fn found(&self, reply: &[Vec<u8>]) -> Vec<i32> {
        let step = match self.face {
            Face::Set => 1,
            Face::Index => 2, // A distance follows each name.
        };
        let number = |name: &Vec<u8>| std::str::from_utf8(name).ok()?.parse().ok();
        reply.iter().step_by(step).map(|name| number(name).unwrap_or(-1)).collect()
    }
}

/// What must be sent once before the first vector.
pub fn create(face: Face, width: usize) -> Option<Requests> {
    let mut requests = Requests::new(1);
    let width = width.to_string();
    let settings = ["METRIC", "cosine", "M", M, "EF_CONSTRUCTION", EF_CONSTRUCTION];
    let mut words = vec![b"VSIM.CREATEINDEX".as_slice(), KEY.as_bytes(), width.as_bytes()];
    words.extend(settings.map(str::as_bytes));
    requests.push(&words);
    (face == Face::Index).then_some(requests)
}

/// Adds `rows`, `pipeline` at a time.
pub fn load(
    face: Face,
    quantization: Quantization,
    base: &Matrix<f32>,
    rows: Range<usize>,
    pipeline: usize,
) -> Requests {
    let mut requests = Requests::new(pipeline);
    for row in rows {
        let (name, blob) = (name(row), blob(base.row(row)));
        let name = name.as_bytes();
        match face {
            Face::Set => requests.push(&[
                b"VADD",
                KEY.as_bytes(),
                b"FP32",
                &blob,
                name,
                quantization.name().as_bytes(),
                b"EF",
                EF_CONSTRUCTION.as_bytes(),
                b"M",
                M.as_bytes(),
            ]),
            Face::Index => requests.push(&[b"VSIM.SET", KEY.as_bytes(), name, b"FP32", &blob]),
        }
    }
    requests.close();
    requests
}

/// Gives the first `rows` elements of a vector set the attribute that filters ask for.
pub fn attributes(rows: usize, pipeline: usize) -> Requests {
    let mut requests = Requests::new(pipeline);
    for row in 0..rows {
        let json = format!("{{\"n\":{}}}", row % ATTRIBUTE_VALUES);
        requests.push(&[b"VSETATTR", KEY.as_bytes(), name(row).as_bytes(), json.as_bytes()]);
    }
    requests.close();
    requests
}

/// The name of a row.
pub fn name(row: usize) -> String {
    format!("{row:010}")
}

fn blob(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|component| component.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_form_that_servers_expect() {
        let base = Matrix::new(1, vec![1.0, 2.0, 3.0]);
        let text = |requests: &Requests| {
            let (bytes, _) = requests.batch(0);
            let words = bytes.split(|byte| *byte == b'\n').skip(2).step_by(2);
            let words: Vec<String> = words
                .map(|word| String::from_utf8_lossy(word).trim_end().escape_debug().to_string())
                .collect();
            words.join(" ")
        };
        let search = Search { face: Face::Set, ef: 40, no_thread: true, kept_per_mille: 10 };
        assert_eq!(
            text(&search.requests(&base)),
            "VSIM vectors FP32 \\0\\0\u{fffd}? COUNT 10 EF 40 FILTER .n < 10 NOTHREAD",
        );
        let search = Search { face: Face::Index, ef: 40, no_thread: false, kept_per_mille: 1_000 };
        assert_eq!(
            text(&search.requests(&base)),
            "VSIM.SEARCH vectors 10 FP32 \\0\\0\u{fffd}? EF 40"
        );
        assert_eq!(
            text(&load(Face::Set, Quantization::None, &base, 1..3, 1)),
            "VADD vectors FP32 \\0\\0\\0@ 0000000001 NOQUANT EF 200 M 16",
        );
        assert_eq!(load(Face::Index, Quantization::None, &base, 0..3, 2).batches(), 2);
        assert!(create(Face::Set, 3).is_none());
        assert_eq!(
            text(&create(Face::Index, 3).unwrap()),
            "VSIM.CREATEINDEX vectors 3 METRIC cosine M 16 EF_CONSTRUCTION 200",
        );
        assert_eq!(text(&attributes(1, 1)), "VSETATTR vectors 0000000000 {\\\"n\\\":0}");
    }

    #[test]
    fn names_in_replies_are_rows() {
        let reply = ["0000000007", "0.25", "x", "0.5"].map(|text| text.as_bytes().to_vec());
        let found =
            |face| Search { face, ef: 10, no_thread: false, kept_per_mille: 1_000 }.found(&reply);
        assert_eq!(found(Face::Index), [7, -1]);
        assert_eq!(found(Face::Set)[0], 7);
    }
}
