//! Every level against the scalar one, over lengths around every block size, and the scalar one
//! against plain arithmetic.

use super::{Kernels, LANES, SCALAR, plane_bytes, sum};
use crate::rotate::Random;

/// All short lengths, and one on either side of some longer ones.
fn lengths() -> impl Iterator<Item = usize> {
    let around = [384, 640, 768, 1024, 1536, 3072, 4096].into_iter().flat_map(|n| n - 1..=n + 1);
    (0..=300).chain(around)
}

fn bytes(rng: &mut Random, len: usize) -> Vec<u8> {
    // -128 does not occur in codes.
    (0..len).map(|_| (rng.next() % 255) as i64 - 127).map(|x| x as i8 as u8).collect()
}

/// Floats of very different sizes: a sum in another order would differ.
fn floats(rng: &mut Random, len: usize) -> Vec<f32> {
    let mut float = || {
        let size = 10_f32.powi((rng.next() % 9) as i32 - 4);
        (rng.next() as i64 as f64 / i64::MAX as f64) as f32 * size
    };
    (0..len).map(|_| float()).collect()
}

#[test]
fn products_of_bytes_agree() {
    let mut rng = Random(1);
    for len in lengths().chain([65_536]) {
        let (a, b) = (bytes(&mut rng, len), bytes(&mut rng, len));
        let extremes = [vec![127_u8; len], vec![-127_i8 as u8; len]];
        for (a, b) in [(&a, &b), (&extremes[0], &extremes[1]), (&extremes[1], &extremes[1])] {
            let product = |(a, b): (&u8, &u8)| i64::from(*a as i8) * i64::from(*b as i8);
            let plain: i64 = a.iter().zip(b).map(product).sum();
            for kernels in Kernels::all() {
                assert_eq!(
                    i64::from((kernels.dot_bytes)(a, b)),
                    plain,
                    "{:?} {len}",
                    kernels.level
                );
            }
        }
    }
}

#[test]
fn products_with_bit_planes_agree() {
    let mut rng = Random(2);
    for words in (1..=70).chain([512, 1024]) {
        let code: Vec<u8> = (0..words * 8).map(|_| rng.next() as u8).collect();
        for count in [1, 3, 4, 6, 8] {
            let stride = plane_bytes(code.len());
            let mut planes = vec![0_u8; stride * count];
            let mut plain = 0;
            for at in 0..words * 64 {
                let number = rng.next() as i64 >> (64 - count);
                for plane in 0..count {
                    planes[plane * stride + at / 8] |= ((number >> plane & 1) as u8) << (at % 8);
                }
                plain += number * i64::from(code[at / 8] >> (at % 8) & 1);
            }
            for kernels in Kernels::all() {
                let got = i64::from((kernels.dot_bits)(&code, &planes));
                assert_eq!(got, plain, "{:?} {words} {count}", kernels.level);
            }
        }
        // The second may be longer, and what lies beyond the first does not count.
        let longer: Vec<u8> = (0..words * 8 + 40).map(|_| rng.next() as u8).collect();
        let plain: u32 = code.iter().zip(&longer).map(|(a, b)| (a & b).count_ones()).sum();
        for kernels in Kernels::all() {
            assert_eq!((kernels.and_count)(&code, &longer), plain as i32, "{:?}", kernels.level);
        }
    }
}

#[test]
fn sums_of_floats_agree_bit_for_bit() {
    let mut rng = Random(3);
    for len in lengths() {
        let (a, b) = (floats(&mut rng, len), floats(&mut rng, len));
        let pairs = || a.iter().zip(&b).map(|(a, b)| (f64::from(*a), f64::from(*b)));
        for kernels in Kernels::all() {
            for (kernel, scalar, plain) in [
                (kernels.dot, SCALAR.dot, pairs().map(|(a, b)| a * b).collect::<Vec<_>>()),
                (kernels.l2, SCALAR.l2, pairs().map(|(a, b)| (a - b) * (a - b)).collect()),
            ] {
                // In two steps, as blocks of a vector come.
                let split = (len / 2).next_multiple_of(LANES).min(len);
                let mut lanes = [0.0; LANES];
                kernel(&mut lanes, &a[..split], &b[..split]);
                kernel(&mut lanes, &a[split..], &b[split..]);
                let mut wanted = [0.0; LANES];
                scalar(&mut wanted, &a, &b);
                assert_eq!(lanes.map(f64::to_bits), wanted.map(f64::to_bits));
                let size: f64 = plain.iter().map(|x| x.abs()).sum();
                let far = (sum(&lanes) - plain.iter().sum::<f64>()).abs();
                assert!(far <= size * 1e-13, "{:?} {len}", kernels.level);
            }
        }
    }
}

#[test]
fn transforms_agree_bit_for_bit_and_with_the_definition() {
    let mut rng = Random(4);
    for log in 0..=13 {
        let values = floats(&mut rng, 1 << log);
        let mut scalar = values.clone();
        (SCALAR.transform)(&mut scalar);
        for kernels in Kernels::all() {
            let mut got = values.clone();
            (kernels.transform)(&mut got);
            let same = got.iter().zip(&scalar).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{:?} {log}", kernels.level);
        }
        if log <= 8 {
            let size: f64 = values.iter().map(|x| f64::from(x.abs())).sum();
            for (row, got) in scalar.iter().enumerate() {
                let signed = |(column, x): (usize, &f32)| {
                    let x = f64::from(*x);
                    if (row & column).count_ones().is_multiple_of(2) { x } else { -x }
                };
                let plain: f64 = values.iter().enumerate().map(signed).sum();
                let far = (plain - f64::from(*got)).abs();
                assert!(far <= size * 1e-6, "{log} {row}");
            }
        }
    }
}

#[test]
fn joins_agree_bit_for_bit() {
    let mut rng = Random(5);
    for len in lengths() {
        let codes: Vec<u8> = bytes(&mut rng, len);
        let low: Vec<u8> = (0..2 * len).map(|_| rng.next() as u8).collect();
        let high: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
        for scale in [0.0, 1e-45, 1e-38, 0.01, 1e36] {
            let mut wanted = vec![0.0; len];
            (SCALAR.join)(&codes, scale, &low, &high, &mut wanted);
            for kernels in Kernels::all() {
                let mut got = vec![0.0; len];
                (kernels.join)(&codes, scale, &low, &high, &mut got);
                let same = got.iter().zip(&wanted).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{:?} {len} {scale}", kernels.level);
            }
        }
    }
}

#[test]
fn the_kernels_that_prepare_agree_bit_for_bit() {
    let mut rng = Random(6);
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for len in lengths() {
        let values = floats(&mut rng, len);
        let codes: Vec<u8> = (0..len).map(|_| (rng.next() % 5) as u8).collect();
        let signs: Vec<u32> = (0..len).map(|_| rng.next() as u32 & (1 << 31)).collect();
        let numbers: Vec<u8> =
            (0..(len + 1).next_multiple_of(64)).map(|_| rng.next() as u8).collect();
        let plain = values.iter().fold(0.0, |max: f32, x| max.max(x.abs()));
        for kernels in Kernels::all() {
            assert_eq!((kernels.largest)(&values).to_bits(), plain.to_bits());
            if len <= 64 {
                let plain = (0..len).fold(0, |found, at| found | u64::from(codes[at] == 0) << at);
                assert_eq!((kernels.zeros)(&codes), plain, "{:?} {len}", kernels.level);
            }
            for (inverse, limit) in [(0.0, 7.0), (0.1, 127.0), (3.0, 31.0)] {
                let mut got = vec![0; len];
                (kernels.round)(&values, inverse, limit, &mut got);
                let one =
                    |x: &f32| (x * inverse).clamp(-limit, limit).round_ties_even() as i8 as u8;
                let plain: Vec<u8> = values.iter().map(one).collect();
                assert_eq!(got, plain, "{:?} {len}", kernels.level);
            }
            let (mut got, mut wanted) = (vec![0.0; len], vec![0.0; len]);
            (kernels.widen)(&numbers[..len], 0.3, &mut got);
            (SCALAR.widen)(&numbers[..len], 0.3, &mut wanted);
            assert_eq!(bits(&got), bits(&wanted));
            (kernels.turn)(&mut got, &signs, 0.7);
            (SCALAR.turn)(&mut wanted, &signs, 0.7);
            assert_eq!(bits(&got), bits(&wanted));
            let (mut lanes, mut wanted) = ([0.0; LANES], [0.0; LANES]);
            let got_sum = (kernels.weigh)(&mut lanes, &values, &numbers[..len]);
            let wanted_sum = (SCALAR.weigh)(&mut wanted, &values, &numbers[..len]);
            assert_eq!(lanes.map(f64::to_bits), wanted.map(f64::to_bits));
            let plain: i32 = numbers[..len].iter().map(|x| i32::from(*x as i8)).sum();
            assert_eq!([got_sum, wanted_sum], [plain; 2]);
            for count in [1, 4, 6, 8] {
                let stride = plane_bytes(numbers.len() / 8);
                let mut planes = vec![0; stride * count];
                (kernels.slice)(&numbers, &mut planes, stride);
                for (at, plane) in planes.chunks(stride).enumerate() {
                    let bit = |place: usize| plane[place / 8] >> (place % 8) & 1;
                    let same =
                        (0..numbers.len()).all(|place| bit(place) == numbers[place] >> at & 1);
                    assert!(same, "{:?} {len} {count}", kernels.level);
                }
            }
        }
    }
}
