//! Matrices in `NumPy`'s file format, version 1.0, the format of the shared data.
//!
//! ```text
//! 0x93 "NUMPY" 1 0 │ header length, u16 │ text: type, order, shape │ rows, one after another
//! ```
//!
//! Read are little-endian float16, float32 and int32 in C order; written are the last two. What is
//! made here (`cache`) is kept in the same format, so that Python reads it as well.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

/// Bytes before the header's text: magic, version, length.
const PREFIX_BYTES: usize = 10;

/// The array begins at a multiple of this.
const HEADER_ALIGN: usize = 64;

/// Rows of equal width.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    width: usize,
    values: Vec<T>,
}

impl<T> Matrix<T> {
    /// From rows that lie one after another.
    ///
    /// # Panics
    ///
    /// If `values` is not a whole number of rows.
    pub fn new(width: usize, values: Vec<T>) -> Matrix<T> {
        assert!(width > 0 && values.len().is_multiple_of(width), "rows have equal width");
        Matrix { width, values }
    }

    /// How many values a row has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Row `at`.
    pub fn row(&self, at: usize) -> &[T] {
        &self.values[at * self.width..][..self.width]
    }

    /// All rows in order.
    pub fn rows(&self) -> impl Iterator<Item = &[T]> {
        self.values.chunks_exact(self.width)
    }

    /// Leaves the first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows.saturating_mul(self.width));
    }
}

/// Reads a matrix of float16 or float32.
pub fn read_floats(path: &Path) -> Result<Matrix<f32>> {
    read(path, |kind, bytes| match kind {
        "<f2" => {
            let halves = bytes.as_chunks::<2>().0.iter();
            Some(halves.map(|half| half_to_single(u16::from_le_bytes(*half))).collect())
        }
        "<f4" => {
            Some(bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect())
        }
        _ => None,
    })
}

/// Reads a matrix of int32.
pub fn read_integers(path: &Path) -> Result<Matrix<i32>> {
    read(path, |kind, bytes| {
        let fours = || bytes.as_chunks::<4>().0.iter().map(|four| i32::from_le_bytes(*four));
        (kind == "<i4").then(|| fours().collect())
    })
}

/// Writes a matrix of float32.
pub fn write_floats(path: &Path, matrix: &Matrix<f32>) -> Result<()> {
    write(path, "<f4", matrix, f32::to_le_bytes)
}

/// Writes a matrix of int32.
pub fn write_integers(path: &Path, matrix: &Matrix<i32>) -> Result<()> {
    write(path, "<i4", matrix, i32::to_le_bytes)
}

fn read<T>(path: &Path, convert: impl Fn(&str, &[u8]) -> Option<Vec<T>>) -> Result<Matrix<T>> {
    let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    parse(&bytes, convert).with_context(|| format!("read {}", path.display()))
}

fn parse<T>(bytes: &[u8], convert: impl Fn(&str, &[u8]) -> Option<Vec<T>>) -> Result<Matrix<T>> {
    ensure!(bytes.starts_with(b"\x93NUMPY\x01\x00"), "no NumPy file of version 1.0");
    let length = bytes.get(8..PREFIX_BYTES).context("the header is cut short")?;
    let start = PREFIX_BYTES + usize::from(u16::from_le_bytes([length[0], length[1]]));
    let header = bytes.get(PREFIX_BYTES..start).context("the header is cut short")?;
    let header = std::str::from_utf8(header).context("the header is no text")?;
    ensure!(field(header, "fortran_order") == Some("False"), "the array is not in C order");
    let kind = field(header, "descr").context("the header names no type")?.trim_matches('\'');
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')'));
    let shape = shape.context("the header names no shape")?.0;
    let sides: Result<Vec<usize>, _> = shape.split(',').map(|side| side.trim().parse()).collect();
    let Ok([rows, width]) = sides.as_deref() else { bail!("not a matrix: ({shape})") };
    let Some(values) = convert(kind, &bytes[start..]) else { bail!("values are of type {kind}") };
    ensure!(*width > 0 && Some(values.len()) == rows.checked_mul(*width), "rows are missing");
    Ok(Matrix::new(*width, values))
}

/// The text of a field up to the next comma.
fn field<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let rest = header.split_once(&format!("'{name}':"))?.1;
    Some(rest.split(',').next()?.trim())
}

/// Written beside the goal and renamed: who finds the file finds all of it.
fn write<T: Copy>(
    path: &Path,
    kind: &str,
    matrix: &Matrix<T>,
    to_bytes: impl Fn(T) -> [u8; 4],
) -> Result<()> {
    let (rows, width) = (matrix.len(), matrix.width());
    let mut header =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
    let end = (PREFIX_BYTES + header.len() + 1).next_multiple_of(HEADER_ALIGN);
    header.push_str(&" ".repeat(end - PREFIX_BYTES - header.len() - 1));
    header.push('\n');
    let part = path.with_extension(format!("part-{}", std::process::id()));
    let write_all = || -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(&part)?);
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(header.len() as u16).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        for &value in &matrix.values {
            file.write_all(&to_bytes(value))?;
        }
        file.flush()?;
        fs::rename(&part, path)
    };
    write_all().with_context(|| format!("write {}", path.display()))
}

/// The value of a finite float16.
fn half_to_single(half: u16) -> f32 {
    /// By how much the exponents' biases differ.
    const BIAS: u32 = 127 - 15;
    let magnitude = f32::from_bits(u32::from(half & 0x7fff) << 13);
    // Times 2^BIAS by multiplication, which also brings subnormal numbers into place.
    let scaled = magnitude * f32::from_bits((127 + BIAS) << 23);
    if half & 0x8000 == 0 { scaled } else { -scaled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_have_their_values() {
        for (half, want) in [
            (0x0000, 0.0_f32),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65_504.0),
            (0x0001, 5.960_464_5e-8),
            (0x83ff, -6.097_555e-5),
        ] {
            assert_eq!(half_to_single(half).to_bits(), want.to_bits(), "{half:#06x}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = std::env::temp_dir().join(format!("kiln-bench-npy-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let floats = Matrix::new(3, vec![1.0, -2.5, 3e-9, 0.0, 5.0, f32::MAX]);
        write_floats(&folder.join("f.npy"), &floats).unwrap();
        assert_eq!(read_floats(&folder.join("f.npy")).unwrap(), floats);
        assert_eq!(fs::read(folder.join("f.npy")).unwrap().len(), 128 + 24);
        let integers = Matrix::new(2, vec![1, -2, i32::MAX, 4]);
        write_integers(&folder.join("i.npy"), &integers).unwrap();
        assert_eq!(read_integers(&folder.join("i.npy")).unwrap(), integers);
        assert!(read_floats(&folder.join("i.npy")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn bad_files_are_refused() {
        let file = |header: &str, array: usize| {
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((header.len() as u16).to_le_bytes());
            bytes.extend(header.as_bytes());
            bytes.extend(vec![0; array]);
            bytes
        };
        let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
        let read = |bytes: &[u8]| {
            parse(bytes, |kind, bytes| (kind == "<f4").then(|| vec![0_u8; bytes.len() / 4]))
        };
        assert_eq!(read(&file(good, 16)).unwrap().len(), 2);
        for (header, array) in [
            (good, 12),
            (&good.replace("<f4", "<f8"), 16),
            (&good.replace("False", "True"), 16),
            (&good.replace("(2, 2)", "(4,)"), 16),
            ("{}", 16),
        ] {
            assert!(read(&file(header, array)).is_err(), "{header}");
        }
        assert!(read(b"\x93NUMPY\x01\x00\xff\xff").is_err());
    }
}
