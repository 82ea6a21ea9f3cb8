//! Both encodings against a plain array of registers, estimates against exact counts, damage.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::{
    CorruptHyperLogLog, DENSE_BYTES, HyperLogLog, NotHyperLogLog, REGISTERS, SPARSE_BYTES_MAX,
    Union, place,
};

fn of(elements: impl IntoIterator<Item = u64>) -> HyperLogLog {
    let mut log = HyperLogLog::new();
    for element in elements {
        log.add(format!("element:{element}").as_bytes(), SPARSE_BYTES_MAX).expect("it is sound");
    }
    log
}

#[test]
fn an_empty_one_is_redis_empty_one() {
    let log = HyperLogLog::new();
    assert_eq!(log.as_bytes(), b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7F\xFF");
    assert_eq!((log.known_count(), log.estimate()), (Some(0), Ok(0)));
}

#[test]
fn a_few_elements_are_the_bytes_of_redis() {
    // PFADD of a, b and c, then GET, on Redis 8.2.3.
    let mut log = HyperLogLog::new();
    for element in [b"a", b"b", b"c"] {
        assert_eq!(log.add(element, SPARSE_BYTES_MAX), Ok(true));
        assert_eq!(log.add(element, SPARSE_BYTES_MAX), Ok(false));
    }
    let golden = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80`\xF3\x80P\xB1\x84K\xFB\x80BZ";
    assert_eq!(log.as_bytes(), golden);
    assert_eq!(log.known_count(), None);
    assert_eq!(log.estimate(), Ok(3));
    log.set_count(3);
    assert_eq!(log.known_count(), Some(3));
}

#[test]
fn estimates_are_within_a_few_standard_errors() {
    for count in [1, 10, 100, 1_000, 10_000, 100_000] {
        let estimate = of(0..count).estimate().expect("it is sound") as f64;
        let error = (estimate - count as f64).abs() / count as f64;
        assert!(error < 3.0 * 0.0081, "{estimate} of {count}");
    }
}

#[test]
fn it_becomes_dense_by_size_and_by_value() {
    let mut log = HyperLogLog::new();
    let mut len = 0;
    for element in 0..10_000_u32 {
        log.add(&element.to_le_bytes(), 500).expect("it is sound");
        if log.is_dense() {
            break;
        }
        len = log.as_bytes().len();
        assert!(len <= 500);
    }
    assert!(len > 490 && log.is_dense() && log.as_bytes().len() == DENSE_BYTES);

    let mut log = HyperLogLog::new();
    assert_eq!(log.raise(7, 32, SPARSE_BYTES_MAX), Ok(true));
    assert!(!log.is_dense());
    assert_eq!(log.raise(8, 33, SPARSE_BYTES_MAX), Ok(true));
    assert!(log.is_dense());
    let registers = log.registers().expect("it is sound");
    assert_eq!((registers[6], registers[7], registers[8], registers[9]), (0, 32, 33, 0));
}

#[test]
fn a_union_counts_what_is_in_any() {
    let logs = [of(0..300), of(200..600), of(0..40_000)];
    let mut union = Union::new();
    for log in &logs {
        union.add(log).expect("it is sound");
    }
    assert_eq!(union.estimate(), of(0..40_000).estimate().expect("it is sound"));

    let mut sparse = Union::new();
    sparse.add(&logs[0]).expect("it is sound");
    sparse.add(&logs[1]).expect("it is sound");
    let mut target = HyperLogLog::new();
    sparse.merge_into(&mut target, SPARSE_BYTES_MAX).expect("it is sound");
    assert!(!target.is_dense());
    assert_eq!(target.registers(), of(0..600).registers());
    union.merge_into(&mut target, SPARSE_BYTES_MAX).expect("it is sound");
    assert!(target.is_dense() && target.known_count().is_none());
    assert_eq!(target.registers(), of(0..40_000).registers());
}

#[test]
fn other_strings_are_refused() {
    let check = |bytes: &[u8]| HyperLogLog::from_bytes(bytes).map(drop);
    let empty = HyperLogLog::new().into_bytes();
    assert_eq!(check(&empty), Ok(()));
    assert_eq!(check(b""), Err(NotHyperLogLog));
    assert_eq!(check(&empty[..15]), Err(NotHyperLogLog));
    let with = |at: usize, byte: u8| {
        let mut bytes = empty.clone();
        bytes[at] = byte;
        check(&bytes)
    };
    assert_eq!(with(0, b'h'), Err(NotHyperLogLog));
    assert_eq!(with(4, 2), Err(NotHyperLogLog));
    assert_eq!(with(4, 0), Err(NotHyperLogLog)); // Dense, but too short.
    assert_eq!(with(16, 0), Ok(())); // The runs are looked at later.
}

#[test]
fn damaged_runs_are_found_and_nothing_changes() {
    let header = &HyperLogLog::new().into_bytes()[..16];
    for runs in [&b""[..], b"\x7F", b"\x7F\xFE", b"\x7F\xFF\x00", b"\x00", b"\x7F\xFF\x7F"] {
        let damaged = HyperLogLog::from_bytes([header, runs].concat()).expect("the header is fine");
        assert_eq!(damaged.estimate(), Err(CorruptHyperLogLog), "{runs:?}");
        assert_eq!(damaged.registers().map(drop), Err(CorruptHyperLogLog));
        let mut union = Union::new();
        assert_eq!(union.add(&damaged), Err(CorruptHyperLogLog));
        assert_eq!(union.estimate(), 0);
        let mut changed = damaged.clone();
        assert_eq!(of(0..5).merged_into(&mut changed), Err(CorruptHyperLogLog));
        assert_eq!(changed.make_dense(), Err(CorruptHyperLogLog));
        assert_eq!(changed, damaged);
    }
}

impl HyperLogLog {
    fn merged_into(&self, target: &mut HyperLogLog) -> Result<(), CorruptHyperLogLog> {
        let mut union = Union::new();
        union.add(self)?;
        union.merge_into(target, SPARSE_BYTES_MAX)
    }
}

proptest! {
    #[test]
    fn registers_are_those_of_an_array(
        raises in vec((0..200_usize, 1..40_u8), 0..300),
        spread in 1..80_usize,
        limit in 20..700_usize,
    ) {
        let mut log = HyperLogLog::new();
        let mut model = Box::new([0; REGISTERS]);
        for (index, value) in raises {
            let index = (index * spread) % REGISTERS;
            let raised = log.raise(index, value, limit).expect("it is sound");
            prop_assert_eq!(raised, model[index] < value);
            model[index] = model[index].max(value);
        }
        prop_assert!(log.is_dense() || log.as_bytes().len() <= limit);
        prop_assert_eq!(log.registers(), Ok(model.clone()));
        log.make_dense().expect("it is sound");
        prop_assert_eq!(log.registers(), Ok(model));
    }

    #[test]
    fn sparse_and_dense_estimate_alike(elements in vec(any::<[u8; 6]>(), 0..200)) {
        let (mut sparse, mut dense) = (HyperLogLog::new(), HyperLogLog::new());
        dense.make_dense().expect("it is sound");
        for element in &elements {
            let changed = sparse.add(element, SPARSE_BYTES_MAX);
            prop_assert_eq!(dense.add_dense(element), changed.ok());
            let (index, value) = place(element);
            prop_assert!(index < REGISTERS && (1..=51).contains(&value));
        }
        prop_assert!(!sparse.is_dense() && sparse.add_dense(b"x").is_none());
        prop_assert_eq!(sparse.estimate(), dense.estimate());
        prop_assert_eq!(sparse.registers(), dense.registers());
    }

    #[test]
    fn hostile_strings_do_no_harm(runs in vec(any::<u8>(), 0..40), element: [u8; 4]) {
        let bytes = [&HyperLogLog::new().into_bytes()[..16], &runs].concat();
        let mut log = HyperLogLog::from_bytes(bytes).expect("the header is fine");
        let _ = log.estimate();
        let _ = log.add(&element, SPARSE_BYTES_MAX);
        let _ = log.estimate();
    }
}
