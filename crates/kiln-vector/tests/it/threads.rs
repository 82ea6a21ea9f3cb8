//! Many threads at once. Each case is short here; the bench `index` runs them for longer.

use std::thread;

use kiln_base::sync::atomic::{AtomicBool, Ordering};
use kiln_vector::{Request, Target};

use crate::data::{Random, clustered, filled, index, insert, nearest, remove, search};

#[test]
fn concurrent_inserts_are_all_reachable() {
    for round in 0..5 {
        let vectors = clustered(1_000, 16, 30 + round);
        let index = index(16);
        thread::scope(|scope| {
            for part in 0..10 {
                let (index, vectors) = (&index, &vectors);
                scope.spawn(move || {
                    for (number, vector) in vectors.iter().enumerate().skip(part * 100).take(100) {
                        insert(index, &number.to_string(), vector);
                    }
                });
            }
        });
        index.verify().expect("a sound graph");
        for (number, vector) in vectors.iter().enumerate() {
            assert_eq!(nearest(&index, vector, 1, 30), [number.to_string()]);
        }
    }
}

#[test]
fn one_name_from_many_threads_is_one_element() {
    let index = index(8);
    thread::scope(|scope| {
        for seed in 0..8 {
            let index = &index;
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..150 {
                    insert(index, "same", &random.vector(8));
                    if random.below(10) == 0 {
                        remove(index, "same");
                    }
                }
                insert(index, "same", &random.vector(8));
            });
        }
    });
    index.verify().expect("a sound graph");
    assert_eq!(index.len(), 1);
    assert_eq!(nearest(&index, &[1.0; 8], 5, 10), ["same"]);
}

#[test]
fn an_element_that_is_replaced_is_never_missing() {
    let vectors = clustered(300, 8, 40);
    let index = filled(&vectors);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(41);
            for _ in 0..1_500 {
                let number = random.below(300);
                insert(&index, &number.to_string(), &vectors[number]);
            }
            stop.store(true, Ordering::Relaxed);
        });
        let mut vector = Vec::new();
        let mut random = Random(42);
        while !stop.load(Ordering::Relaxed) {
            let number = random.below(300);
            let name = number.to_string();
            assert!(index.get(name.as_bytes(), &mut vector));
            assert_eq!(vector, vectors[number]);
            let hits = search(&index, &Request::new(Target::Element(name.as_bytes()), 300));
            let mut found: Vec<_> = hits.iter().map(|hit| &hit.name).collect();
            found.sort();
            found.dedup();
            assert_eq!((found.len(), hits.len()), (300, 300));
        }
    });
    index.verify().expect("a sound graph");
    assert_eq!(index.len(), 300);
}

#[test]
fn searches_inserts_and_removals_go_on_at_once() {
    let vectors = clustered(2_000, 12, 50);
    let index = filled(&vectors[..1_000]);
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let (index, vectors) = (&index, &vectors);
                scope.spawn(move || {
                    // Each writer has names of its own, so it knows what there must be.
                    let mut random = Random(writer);
                    let mine = |number: usize| number * 3 + writer as usize;
                    for _ in 0..1_500 {
                        let number = mine(random.below(600));
                        let name = number.to_string();
                        let there = index.contains(name.as_bytes());
                        if random.below(2) == 0 {
                            assert_eq!(insert(index, &name, &vectors[number]), !there);
                        } else {
                            assert_eq!(remove(index, &name), there);
                        }
                    }
                })
            })
            .collect();
        for seed in 0..2 {
            let (index, vectors, running) = (&index, &vectors, &running);
            scope.spawn(move || {
                let mut random = Random(100 + seed);
                while running.load(Ordering::Relaxed) {
                    let query = &vectors[random.below(2_000)];
                    // What a search returns exists, once, and in order.
                    let request =
                        Request { ef: Some(20), ..Request::new(Target::Vector(query), 10) };
                    let hits = search(index, &request);
                    assert_eq!(hits.len(), 10);
                    assert!(hits.is_sorted_by(|a, b| a.distance <= b.distance));
                    let mut names: Vec<_> = hits.iter().map(|hit| hit.name.clone()).collect();
                    names.sort();
                    names.dedup();
                    assert_eq!(names.len(), 10);
                }
            });
        }
        for writer in writers {
            writer.join().expect("a writer's assertions hold");
        }
        running.store(false, Ordering::Relaxed);
    });
    index.verify().expect("a sound graph");
}
