//! Tests of the codec: what comes back, how true each distance is, and that nothing is ever NaN.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

use super::{Codec, CodecConfig, NodeMut, NodeRef, Quantization, Query};
use crate::error::VectorError;
use crate::kernel::Kernels;
use crate::metric::Metric;
use crate::rotate::Random;

const METRICS: [Metric; 3] = [Metric::Cosine, Metric::L2, Metric::InnerProduct];
const QUANTIZATIONS: [Quantization; 3] = [Quantization::None, Quantization::Q8, Quantization::Bin];

/// A stored vector.
struct Node {
    header: Vec<u8>,
    hot: Vec<u8>,
    cold: Vec<u8>,
    side: Vec<u8>,
}

impl Node {
    fn new(codec: &Codec, vector: &[f32]) -> Node {
        codec.check(vector).expect("a good vector");
        let layout = codec.layout();
        // Not zeros: whatever must be zero has to be written.
        let mut header = vec![0xA5; layout.owned];
        let (mut hot, mut cold) = (vec![0xA5; layout.hot], vec![0xA5; layout.cold]);
        let mut side = vec![0xA5];
        let mut node = NodeMut { header: &mut header, hot: &mut hot, cold: &mut cold };
        codec.encode(vector, &mut node, &mut side);
        Node { header, hot, cold, side }
    }

    fn as_ref(&self) -> NodeRef<'_> {
        NodeRef { header: &self.header, hot: &self.hot, cold: &self.cold, side: &self.side }
    }
}

fn codec(dim: usize, metric: Metric, quantization: Quantization) -> Codec {
    Codec::new(CodecConfig { dim, metric, quantization, bits: true, seed: 1 }).expect("a dim")
}

/// Normally distributed components, as embeddings have after a rotation.
fn random(random: &mut Random, dim: usize, unit: f32) -> Vec<f32> {
    let mut uniform = || (random.next() >> 40) as f32 / (1 << 24) as f32 - 0.5;
    (0..dim).map(|_| (0..4).map(|_| uniform()).sum::<f32>() * unit).collect()
}

/// A vector with a cosine of about `cosine` to `vector`.
fn near(rng: &mut Random, vector: &[f32], cosine: f32) -> Vec<f32> {
    let other = random(rng, vector.len(), 1.0);
    let norm = |vector: &[f32]| vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    let (length, other_length) = (norm(vector), norm(&other));
    let aside = (1.0 - cosine * cosine).sqrt() * length / other_length;
    vector.iter().zip(other).map(|(x, other)| x * cosine + other * aside).collect()
}

/// The distance in double.
fn distance(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let sum = |f: fn(f64, f64) -> f64| {
        a.iter().zip(b).map(|(a, b)| f(f64::from(*a), f64::from(*b))).sum::<f64>()
    };
    let dot = sum(|a, b| a * b);
    match metric {
        Metric::Cosine => {
            let lengths = (sum(|a, _| a * a) * sum(|_, b| b * b)).sqrt();
            if lengths > 0.0 { 1.0 - dot / lengths } else { 1.0 }
        }
        Metric::L2 => sum(|a, b| (a - b) * (a - b)),
        Metric::InnerProduct => -dot,
    }
}

/// How far `got` is from the truth, in units of the vectors' norms.
fn error(metric: Metric, a: &[f32], b: &[f32], got: f32) -> f64 {
    let norm = |a: &[f32]| a.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let unit = if metric == Metric::Cosine { 1.0 } else { norm(a) * norm(b) };
    let error = f64::from(got) - distance(metric, a, b);
    if metric == Metric::L2 { error / unit / 2.0 } else { error / unit }
}

#[test]
fn each_distance_is_as_true_as_documented() {
    let mut rng = Random(3);
    for dim in [64, 384, 1000, 1536] {
        let root = (dim as f64).sqrt();
        for metric in METRICS {
            for quantization in QUANTIZATIONS {
                let codec = codec(dim, metric, quantization);
                // Sums of squares: estimate, coarse, exact, between; and the estimate's mean.
                let mut squares = [0.0; 4];
                let mut mean = 0.0;
                let rounds = 400;
                for round in 0..rounds {
                    let a = random(&mut rng, dim, 10_f32.powi(round % 5 - 2));
                    let b = near(&mut rng, &a, 0.5);
                    let (in_a, in_b) = (Node::new(&codec, &a), Node::new(&codec, &b));
                    let query = codec.prepare(&a);
                    let distances = [
                        codec.estimate(&query, &in_b.header),
                        codec.coarse(&query, &in_b.header, &in_b.hot),
                        codec.exact(&query, in_b.as_ref()),
                        codec.between((&in_a.header, &in_a.hot), (&in_b.header, &in_b.hot)),
                    ];
                    for (square, got) in squares.iter_mut().zip(distances) {
                        *square += error(metric, &a, &b, got).powi(2) / f64::from(rounds);
                    }
                    mean += error(metric, &a, &b, distances[0]) / f64::from(rounds);
                }
                let [estimate, coarse, exact, between] = squares.map(|square| square.sqrt() * root);
                let all = format!(
                    "{dim} {metric:?} {quantization:?}: {estimate} {coarse} {exact} {between}"
                );
                assert!(estimate < 0.85, "{all}");
                assert!(mean.abs() * root < 0.85 * 4.0 / f64::from(rounds).sqrt(), "{all} {mean}");
                let limits = match quantization {
                    Quantization::None => [0.02, 1e-5, 0.02],
                    Quantization::Q8 => [0.02, 0.02, 0.02],
                    Quantization::Bin => [0.2, 0.2, 0.3],
                };
                for (got, limit) in [coarse, exact, between].into_iter().zip(limits) {
                    assert!(got < limit, "{all}");
                }
            }
        }
    }
}

/// Vectors of all kinds: extreme scales, zeros, one component far larger than the rest.
fn vectors() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
    (1..200_usize).prop_flat_map(|dim| {
        let one = prop_oneof![
            vec(-1.0..1.0_f32, dim),
            vec(-3e38..3e38_f32, dim),
            vec(-1e-30..1e-30_f32, dim),
            vec(-1e-40..1e-40_f32, dim),
            vec(prop_oneof![Just(0.0_f32), Just(1.0), Just(1e-20), Just(1e30)], dim),
            Just(vec![0.0; dim]),
        ];
        (one, vec(-2.0..2.0_f32, dim), any::<bool>()).prop_map(|(a, b, alike)| {
            let b = if alike { a.clone() } else { b };
            (a, b)
        })
    })
}

proptest! {
    #[test]
    fn distances_are_finite_exact_ones_right_and_vectors_come_back((a, b) in vectors()) {
        for metric in METRICS {
            for quantization in QUANTIZATIONS {
                let codec = codec(a.len(), metric, quantization);
                let (in_a, in_b) = (Node::new(&codec, &a), Node::new(&codec, &b));
                let query = codec.prepare(&a);
                let exact = codec.exact(&query, in_b.as_ref());
                let all = [
                    codec.estimate(&query, &in_b.header),
                    codec.slack(&query, &in_b.header),
                    codec.coarse(&query, &in_b.header, &in_b.hot),
                    exact,
                    codec.between((&in_a.header, &in_a.hot), (&in_b.header, &in_b.hot)),
                ];
                assert!(all.iter().all(|x| x.is_finite()), "{metric:?} {quantization:?} {all:?}");
                let mut back = Vec::new();
                codec.decode(in_a.as_ref(), &mut back);
                assert_eq!(back.len(), a.len());
                assert!(back.iter().all(|x| x.is_finite()), "{quantization:?}");
                if quantization == Quantization::None {
                    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
                    assert!(back.iter().zip(&a).all(same));
                    let wanted = distance(metric, &a, &b).clamp(f32::MIN.into(), f32::MAX.into());
                    let unit = match metric {
                        Metric::InnerProduct => distance(Metric::L2, &a, &vec![0.0; a.len()]),
                        Metric::Cosine | Metric::L2 => 0.0,
                    };
                    let unit = unit.max(wanted.abs());
                    let far = (f64::from(exact) - wanted).abs();
                    let floor = if metric == Metric::Cosine { 1e-7 } else { 1e-45 };
                    assert!(far <= 1e-6 * unit + floor, "{metric:?}: {exact} {wanted}");
                    let own = codec.exact(&codec.prepare_stored(in_a.as_ref()), in_a.as_ref());
                    let zero = a.iter().all(|x| *x == 0.0);
                    match metric {
                        Metric::Cosine if zero => assert_eq!(own.to_bits(), 1.0_f32.to_bits()),
                        Metric::Cosine | Metric::L2 => assert_eq!(own.to_bits(), 0, "{metric:?}"),
                        Metric::InnerProduct => {}
                    }
                }
            }
        }
    }
}

#[test]
fn every_level_gives_the_same_nodes_and_distances() {
    for dim in [1, 2, 7, 33, 64, 100, 384, 777, 1536] {
        for metric in METRICS {
            for quantization in QUANTIZATIONS {
                let mut wanted = None;
                for kernels in Kernels::all() {
                    let mut rng = Random(17);
                    let mut codec = codec(dim, metric, quantization);
                    codec.kernels = kernels;
                    let (a, b) = (random(&mut rng, dim, 1.0), random(&mut rng, dim, 1.0));
                    let (in_a, in_b) = (Node::new(&codec, &a), Node::new(&codec, &b));
                    let query = codec.prepare(&a);
                    let got = [
                        codec.estimate(&query, &in_b.header),
                        codec.coarse(&query, &in_b.header, &in_b.hot),
                        codec.exact(&query, in_b.as_ref()),
                        codec.between((&in_a.header, &in_a.hot), (&in_b.header, &in_b.hot)),
                    ];
                    let got = (got.map(f32::to_bits), in_a.header, in_a.hot, in_a.cold, in_a.side);
                    let wanted = wanted.get_or_insert_with(|| got.clone());
                    assert_eq!(wanted, &got, "{dim} {metric:?} {:?}", kernels.level);
                }
            }
        }
    }
}

#[test]
fn tiny_huge_and_zero_vectors_have_right_cosines() {
    let shape: Vec<f32> = (0..96).map(|i| (i as f32 * 0.7).sin()).collect();
    for quantization in QUANTIZATIONS {
        let codec = codec(96, Metric::Cosine, quantization);
        let query = codec.prepare(&shape);
        for unit in [1e-38, 1e-30, 1.0, 1e30, 3e38] {
            let scaled: Vec<f32> = shape.iter().map(|x| x * unit).collect();
            let node = Node::new(&codec, &scaled);
            let far = codec.exact(&query, node.as_ref());
            assert!(far < 0.05, "{quantization:?} {unit} {far}");
            assert!(codec.coarse(&query, &node.header, &node.hot) < 0.05);
            assert!(codec.estimate(&query, &node.header) < 0.4);
        }
        let zero = Node::new(&codec, &[0.0; 96]);
        for query in [query, codec.prepare(&[0.0; 96]), codec.prepare_stored(zero.as_ref())] {
            assert_eq!(codec.exact(&query, zero.as_ref()).to_bits(), 1.0_f32.to_bits());
            assert_eq!(codec.coarse(&query, &zero.header, &zero.hot).to_bits(), 1.0_f32.to_bits());
            assert_eq!(codec.estimate(&query, &zero.header).to_bits(), 1.0_f32.to_bits());
        }
    }
}

#[test]
fn bad_vectors_and_dimensions_are_refused() {
    let codec = codec(3, Metric::L2, Quantization::Q8);
    let dimension = VectorError::Dimension { expected: 3, got: 2 };
    assert_eq!(codec.check(&[f32::NAN; 2]), Err(dimension));
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(codec.check(&[1.0, 2.0, bad]), Err(VectorError::NotFinite));
    }
    assert_eq!(codec.check(&[1.0, 2.0, f32::MAX]), Ok(()));
    for dim in [0, 65_537] {
        let config = CodecConfig { dim, ..*codec.config() };
        assert_eq!(Codec::new(config).err(), Some(VectorError::Limit(dim)));
    }
}

#[test]
fn the_largest_dimensions_work_and_a_reused_query_is_a_new_one() {
    let mut rng = Random(23);
    let mut query = Query::default();
    for dim in [32_768, 65_536, 5] {
        for quantization in QUANTIZATIONS {
            let codec = codec(dim, Metric::Cosine, quantization);
            let a = random(&mut rng, dim, 1.0);
            let node = Node::new(&codec, &a);
            codec.prepare_into(&a, &mut query);
            assert!(codec.coarse(&query, &node.header, &node.hot) < 0.1);
            let [reused, fresh] = [&query, &codec.prepare(&a)].map(|query| {
                let estimate = codec.estimate(query, &node.header);
                [estimate, codec.coarse(query, &node.header, &node.hot)].map(f32::to_bits)
            });
            assert_eq!(reused, fresh);
        }
        // All components at their largest: the sums of bytes stay inside 32 bits.
        let codec = codec(dim, Metric::InnerProduct, Quantization::None);
        let ones = vec![1.0; dim];
        let node = Node::new(&codec, &ones);
        let dot = codec.coarse(&codec.prepare(&ones), &node.header, &node.hot);
        assert!((dot / dim as f32 + 1.0).abs() < 1e-5, "{dim} {dot}");
    }
}

#[test]
fn layouts_fit_the_plan() {
    let sizes = |dim, quantization| {
        let layout = codec(dim, Metric::Cosine, quantization).layout();
        [layout.owned, layout.header(32), layout.hot, layout.cold]
    };
    assert_eq!(sizes(384, Quantization::None), [64, 128, 384, 1152]);
    assert_eq!(sizes(1536, Quantization::None), [208, 256, 1536, 4608]);
    assert_eq!(sizes(1536, Quantization::Q8), [208, 256, 1536, 0]);
    // With 128 bytes of links, 5 of upper levels and a name of 50 bytes that is 823 of Redis's 883.
    assert_eq!(sizes(1536, Quantization::Bin), [208, 256, 384, 0]);
    let config = CodecConfig {
        dim: 1536,
        metric: Metric::Cosine,
        quantization: Quantization::None,
        bits: false,
        seed: 1,
    };
    assert_eq!(Codec::new(config).expect("a dim").layout().owned, 16);
}
