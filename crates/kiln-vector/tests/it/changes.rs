//! Adding, replacing and removing by one thread.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use kiln_vector::{Request, Target};

use crate::data::{
    Random, clustered, filled, index, insert, names, nearest, recall_at_10, remove, search,
};

#[test]
fn small_sets_stay_sound_under_any_changes() {
    for seed in 0..6 {
        let mut random = Random(seed);
        let limit = [1, 2, 3, 8, 20, 50][seed as usize];
        let index = index(4);
        let mut model: BTreeMap<String, Vec<f32>> = BTreeMap::new();
        for step in 0..800 {
            let name = random.below(limit * 2).to_string();
            if model.len() < limit && random.below(2) == 0 {
                let vector = random.vector(4);
                assert_eq!(insert(&index, &name, &vector), !model.contains_key(&name));
                model.insert(name, vector);
            } else {
                assert_eq!(remove(&index, &name), model.remove(&name).is_some());
            }
            index.verify().unwrap_or_else(|error| panic!("seed {seed} step {step}: {error}"));
            assert_eq!(index.len(), model.len());
            if let Some((name, vector)) = model.iter().nth(random.below(limit)) {
                assert_eq!(nearest(&index, vector, 1, 10), [name.as_str()]);
            }
        }
        assert_eq!(names_in_order(&index), model.into_keys().collect::<Vec<_>>());
    }
}

fn names_in_order(index: &kiln_vector::Index) -> Vec<String> {
    let mut names = Vec::new();
    index.visit_names((Bound::Unbounded, Bound::Unbounded), |name| {
        names.push(String::from_utf8_lossy(name).into_owned());
        true
    });
    names
}

#[test]
fn a_new_vector_moves_an_element_and_keeps_its_attributes() {
    let index = filled(&clustered(200, 8, 20));
    assert!(index.set_attributes(b"7", Some(b"{}")));
    assert!(!index.set_attributes(b"nobody", Some(b"{}")));
    let place = Random(21).vector(8);
    assert!(!insert(&index, "7", &place));
    assert_eq!(index.len(), 200);
    assert_eq!(nearest(&index, &place, 1, 10), ["7"]);
    assert_eq!(index.attributes(b"7").as_deref(), Some(&b"{}"[..]));
    let pending = index.prepare(&place, None).expect("a valid vector");
    let published = index.publish(b"7", pending, Some(b"[1]"));
    assert!(published.replaced());
    drop(published);
    assert_eq!(index.attributes(b"7").as_deref(), Some(&b"[1]"[..]));
    assert_eq!(index.info().attributed, 1);
    let request = Request { with_attributes: true, ..Request::new(Target::Vector(&place), 1) };
    assert_eq!(search(&index, &request)[0].attributes.as_deref(), Some(&b"[1]"[..]));
    assert!(index.set_attributes(b"7", None));
    assert_eq!((index.attributes(b"7"), index.info().attributed), (None, 0));
    index.verify().expect("a sound graph");
}

#[test]
fn what_is_pending_is_no_element_and_leaves_no_trace() {
    let vectors = clustered(100, 8, 22);
    let index = filled(&vectors);
    let pending = index.prepare(&vectors[3], None).expect("a valid vector");
    assert_eq!(nearest(&index, &vectors[3], 100, 100).len(), 100);
    drop(pending);
    index.verify().expect("a sound graph");
    assert_eq!(index.len(), 100);
    assert_eq!(index.info().retired, 0);
    // A removed element is gone at once, though its node is still linked.
    let retired = index.remove(b"3").expect("an element");
    assert!(!index.contains(b"3"));
    assert!(!nearest(&index, &vectors[3], 100, 100).contains(&String::from("3")));
    drop(retired);
    index.verify().expect("a sound graph");
}

#[test]
fn recall_and_memory_last_through_replacing_everything() {
    let vectors = clustered(3_300, 24, 23);
    let queries = clustered(80, 24, 23);
    let index = filled(&vectors);
    let (fresh, nodes) = (recall_at_10(&index, &queries, 16), index.info().nodes);
    let memory = index.memory_bytes();
    let mut random = Random(23);
    for round in 0..3 {
        for _ in 0..vectors.len() {
            let number = random.below(vectors.len());
            insert(&index, &number.to_string(), &vectors[number]);
        }
        index.verify().unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    let after = recall_at_10(&index, &queries, 16);
    assert!(after > fresh - 0.01, "{fresh} became {after}");
    assert!(index.info().nodes <= nodes + 1);
    assert!(index.memory_bytes() < memory + memory / 50);
}

#[test]
fn memory_is_flat_over_rounds_of_removing_and_adding() {
    let vectors = clustered(1_000, 16, 24);
    let index = filled(&vectors);
    let nodes = index.info().nodes;
    for round in 0..10 {
        for number in (round % 2..1_000).step_by(2) {
            assert!(remove(&index, &number.to_string()));
        }
        assert_eq!(index.len(), 500);
        for number in (round % 2..1_000).step_by(2) {
            assert!(insert(&index, &number.to_string(), &vectors[number]));
        }
        assert_eq!((index.info().nodes, index.info().retired), (nodes, 0));
    }
    index.verify().expect("a sound graph");
}

#[test]
fn one_thread_builds_the_same_graph_every_time() {
    let vectors = clustered(1_200, 12, 25);
    let (a, b) = (filled(&vectors), filled(&vectors));
    for number in 0..vectors.len() {
        let name = number.to_string();
        assert_eq!(a.links(name.as_bytes()), b.links(name.as_bytes()));
    }
}

#[test]
fn links_are_told_by_level_and_nearest_first() {
    let index = filled(&clustered(2_000, 12, 26));
    assert_eq!(index.links(b"nobody"), None);
    let mut levels = 0;
    for number in 0..2_000 {
        let links = index.links(number.to_string().as_bytes()).expect("an element");
        levels = levels.max(links.len());
        assert!(!links[0].is_empty() && links[0].len() <= 32);
        for level in &links {
            assert!(level.is_sorted_by(|a, b| a.distance <= b.distance));
        }
    }
    assert_eq!(index.info().max_level, Some(levels - 1));
    assert!((2..6).contains(&levels));
}

#[test]
fn random_elements_are_elements() {
    let index = filled(&clustered(400, 4, 27));
    for number in 0..300 {
        remove(&index, &number.to_string());
    }
    for (count, distinct, got) in
        [(0, true, 0), (5, true, 5), (90, true, 90), (300, true, 100), (300, false, 300)]
    {
        let names = index.random(count, distinct, 1);
        assert_eq!(names.len(), got);
        assert!(names.iter().all(|name| index.contains(name)));
        let different: BTreeSet<_> = names.iter().collect();
        assert!(!distinct || different.len() == got);
        assert!(got < 90 || different.len() > 60);
    }
    assert_ne!(index.random(5, true, 1), index.random(5, true, 2));
}

#[test]
fn names_of_any_bytes_and_lengths_are_kept() {
    let index = index(2);
    let long = vec![7; 100_000];
    for name in [&b""[..], b"\0", &long] {
        assert!(index.insert(name, &[1.0, 2.0]).expect("a valid vector"));
    }
    assert_eq!(names_in_order(&index).len(), 3);
    assert!(index.contains(&long) && !index.contains(&long[1..]));
    let hits = search(&index, &Request::new(Target::Vector(&[1.0, 2.0]), 9));
    assert_eq!(names(&hits).len(), 3);
}
