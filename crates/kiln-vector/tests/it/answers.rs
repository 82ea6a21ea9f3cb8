//! What a search returns.

use kiln_vector::{Index, IndexConfig, Metric, Quantization, Request, Target, VectorError};

use crate::data::{
    Random, clustered, filled, index, insert, names, nearest, recall_at_10, remove, search, truth,
};

#[test]
fn a_walk_finds_what_a_scan_finds() {
    let vectors = clustered(4_000, 48, 1);
    let queries = clustered(100, 48, 1)[..].to_vec();
    let index = filled(&vectors);
    index.verify().expect("a sound graph");
    assert!(recall_at_10(&index, &queries, 100) > 0.99);
    assert!(recall_at_10(&index, &queries, 20) > 0.9);
}

#[test]
fn every_metric_and_quantization_ranks_by_its_own_distance() {
    let vectors = clustered(3_000, 40, 2);
    let queries = &clustered(60, 40, 2)[..];
    for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
        for quantization in [Quantization::None, Quantization::Q8, Quantization::Bin] {
            for bits in [true, false] {
                let config = IndexConfig { quantization, bits, ..IndexConfig::new(40, metric) };
                let index = Index::new(config).expect("a valid configuration");
                for (number, vector) in vectors.iter().enumerate() {
                    insert(&index, &number.to_string(), vector);
                }
                let recall = recall_at_10(&index, queries, 80);
                assert!(recall > 0.9, "{metric:?} {quantization:?} {bits}: {recall}");
            }
        }
    }
}

#[test]
fn scores_are_exact_and_vectors_come_back() {
    let vectors = clustered(3_500, 33, 3);
    let index = filled(&vectors);
    let query = &clustered(1, 33, 9)[0];
    let length = |v: &[f32]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let hits = search(&index, &Request::new(Target::Vector(query), 20));
    assert_eq!(hits.len(), 20);
    for hit in hits {
        let name = String::from_utf8_lossy(&hit.name).into_owned();
        let vector = &vectors[name.parse::<usize>().expect("a number")];
        let dot: f64 = vector.iter().zip(query).map(|(a, b)| f64::from(a * b)).sum();
        let distance = 1.0 - dot / length(vector) / length(query);
        assert!((distance - f64::from(hit.distance)).abs() < 1e-6);
        let mut back = Vec::new();
        assert!(index.get(&hit.name, &mut back));
        assert_eq!(&back, vector);
    }
}

#[test]
fn an_element_is_nearest_to_itself() {
    let index = filled(&clustered(300, 24, 4));
    let hits = search(&index, &Request::new(Target::Element(b"17"), 3));
    assert_eq!((names(&hits)[0].as_str(), hits.len()), ("17", 3));
    assert!(hits[0].distance.abs() < 1e-6);
    assert_eq!(index.search(&Request::new(Target::Element(b"none"), 3)), Ok(None));
}

#[test]
fn bad_vectors_change_nothing() {
    let index = index(3);
    let refused = |vector: &[f32]| index.insert(b"x", vector).expect_err("a bad vector");
    assert_eq!(refused(&[1.0, 2.0]), VectorError::Dimension { expected: 3, got: 2 });
    assert_eq!(refused(&[1.0, f32::NAN, 0.0]), VectorError::NotFinite);
    assert_eq!(refused(&[1.0, f32::INFINITY, 0.0]), VectorError::NotFinite);
    let query = [0.0, 0.0, f32::NAN];
    let request = Request::new(Target::Vector(&query), 1);
    assert_eq!(index.search(&request), Err(VectorError::NotFinite));
    assert_eq!((index.len(), index.info().nodes), (0, 0));
}

#[test]
fn zero_tiny_and_huge_vectors_have_right_distances() {
    let index = index(2);
    for (name, vector) in
        [("zero", [0.0, 0.0]), ("tiny", [1e-30, 0.0]), ("huge", [1e30, 1e30]), ("one", [0.0, 1.0])]
    {
        insert(&index, name, &vector);
    }
    let hits = search(&index, &Request::new(Target::Vector(&[1.0, 0.0]), 4));
    assert_eq!(names(&hits), ["tiny", "huge", "one", "zero"]);
    let distances: Vec<f32> = hits.iter().map(|hit| hit.distance).collect();
    for (distance, right) in distances.iter().zip([0.0, 1.0 - 0.5_f32.sqrt(), 1.0, 1.0]) {
        assert!((distance - right).abs() < 1e-6, "{distances:?}");
    }
}

#[test]
fn copies_of_one_vector_hide_nothing() {
    let dim = 16;
    let mut vectors = clustered(5, dim, 5);
    let others = clustered(4_000, dim, 6);
    let index = index(dim);
    for (number, vector) in vectors.iter().enumerate() {
        for copy in 0..300 {
            insert(&index, &format!("copy:{number}:{copy}"), vector);
        }
    }
    for (number, vector) in others.iter().enumerate() {
        insert(&index, &number.to_string(), vector);
    }
    index.verify().expect("a sound graph");
    let found = |(number, vector): &(usize, &Vec<f32>)| {
        nearest(&index, vector, 1, 50) == [number.to_string()]
    };
    let found = others.iter().enumerate().filter(found).count();
    assert!(found > 3_960, "{found}");
    for vector in vectors.drain(..) {
        let found = nearest(&index, &vector, 300, 400);
        assert!(found.iter().filter(|name| name.starts_with("copy")).count() >= 299);
        // A narrow walk meets copies only, and they are all right answers.
        assert_eq!(nearest(&index, &vector, 10, 20).len(), 10);
    }
}

#[test]
fn a_tight_cluster_does_not_shut_others_out() {
    let mut random = Random(7);
    let index = index(12);
    let center = random.vector(12);
    for number in 0..60 {
        insert(&index, &format!("near:{number}"), &random.near(&center, 1e-4));
    }
    let far: Vec<Vec<f32>> = (0..1_000).map(|_| random.vector(12)).collect();
    for (number, vector) in far.iter().enumerate() {
        insert(&index, &format!("far:{number}"), vector);
    }
    index.verify().expect("a sound graph");
    for (number, vector) in far.iter().enumerate() {
        assert_eq!(nearest(&index, vector, 1, 30), [format!("far:{number}")]);
    }
}

#[test]
fn a_count_is_full_though_most_was_removed() {
    let vectors = clustered(4_000, 24, 8);
    let index = filled(&vectors);
    let mut random = Random(8);
    let mut left = 4_000;
    for number in 0..4_000 {
        if random.below(10) != 0 {
            assert!(remove(&index, &number.to_string()));
            left -= 1;
        }
    }
    index.verify().expect("a sound graph");
    assert_eq!(index.len(), left);
    for query in &clustered(50, 24, 9) {
        let (found, right) = (nearest(&index, query, 60, 100), truth(&index, query, 60));
        assert_eq!(found.len(), 60);
        assert!(found.iter().filter(|name| right.contains(name)).count() >= 54);
    }
}

#[test]
fn filters_return_the_count_whatever_they_pass() {
    let vectors = clustered(4_000, 24, 10);
    let index = filled(&vectors);
    let queries = clustered(5, 24, 10);
    let number = |name: &[u8]| {
        std::str::from_utf8(name).expect("digits").parse::<usize>().expect("a number")
    };
    for passing in [1, 4, 40, 400, 2_000, 3_600] {
        for query in &queries {
            // Independent of the query; only what is near it; only what is far from it.
            let order = {
                let all = truth(&index, query, 4_000);
                all.iter().map(|name| number(name.as_bytes())).collect::<Vec<_>>()
            };
            let mut rank = vec![0; 4_000];
            for (at, &name) in order.iter().enumerate() {
                rank[name] = at;
            }
            let scattered = |name: &[u8], _: Option<&[u8]>| number(name) * 4_001 % 4_000 < passing;
            let near = |name: &[u8], _: Option<&[u8]>| rank[number(name)] < passing;
            let far = |name: &[u8], _: Option<&[u8]>| rank[number(name)] >= 4_000 - passing;
            let filters: [&dyn kiln_vector::Filter; 3] = [&scattered, &near, &far];
            for (kind, filter) in filters.into_iter().enumerate() {
                let base = Request {
                    filter: Some(filter),
                    ef: Some(100),
                    ..Request::new(Target::Vector(query), 10)
                };
                let right = names(&search(&index, &Request { exact: true, ..base }));
                let found = names(&search(&index, &base));
                assert_eq!(found.len(), passing.min(10));
                let hits = found.iter().filter(|name| right.contains(name)).count();
                let wanted = right.len();
                assert!(hits * 10 >= wanted * 8, "{hits} of {wanted}, {passing} pass, {kind}");
            }
        }
    }
}

#[test]
fn limits_on_distance_and_count_hold() {
    let index = filled(&clustered(500, 16, 11));
    let query = clustered(1, 16, 11).remove(0);
    let all = search(&index, &Request::new(Target::Vector(&query), 500));
    assert_eq!(all.len(), 500);
    assert!(all.is_sorted_by(|a, b| a.distance <= b.distance));
    let limit = all[20].distance;
    let request =
        Request { max_distance: Some(limit), ..Request::new(Target::Vector(&query), 500) };
    assert_eq!(search(&index, &request).len(), 20);
    assert_eq!(search(&index, &Request::new(Target::Vector(&query), 0)), []);
    assert_eq!(search(&index, &Request::new(Target::Vector(&query), 10_000)).len(), 500);
}
