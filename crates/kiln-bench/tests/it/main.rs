//! The whole program against real servers, with figures too small to mean anything.
//!
//! Runs for the servers whose binaries the environment names: `KILN_SERVER`, `VALKEY_SERVER` and
//! `REDIS_SERVER`. Without any there is nothing to run.

use std::path::Path;
use std::process::Command;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

/// Results of `kiln-bench ACTION OPTIONS --quick` over the servers at hand; `None` without any.
fn quick(action: &str, options: &[&str], folder: &Path) -> Option<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln-bench"));
    command.arg(action).args(options).arg("--out").arg(folder);
    let mut servers = Vec::new();
    for (name, variable) in
        [("kiln", "KILN_SERVER"), ("valkey", "VALKEY_SERVER"), ("redis", "REDIS_SERVER")]
    {
        if let Some(path) = std::env::var_os(variable) {
            command.arg(format!("--{name}")).arg(path);
            servers.push(name);
        }
    }
    if servers.is_empty() {
        return None;
    }
    // Both on core 0: the smoke run also works on a machine of one core.
    command.args(["--servers", &servers.join(","), "--client-cores", "0", "--quick"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut results = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let json = results.find(|path| path.extension().is_some_and(|kind| kind == "json")).unwrap();
    Some(serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap())
}

#[test]
fn compare_measures_every_command_at_every_pipeline() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare");
    let Some(results) = quick("compare", &[], &folder) else { return };
    let servers = results["servers"].as_array().unwrap().len();
    let cells = results["cells"].as_array().unwrap();
    assert_eq!(cells.len(), servers * 2 * 12 * 3, "rounds, commands, pipelines");
    let fields = results["cell_fields"].as_array().unwrap();
    let cpu = fields.iter().position(|field| field == "server_cpu_ns").unwrap();
    assert!(cells.iter().all(|cell| cell[cpu].as_u64().unwrap() > 0));
    assert_eq!(results["memory"].as_array().unwrap().len(), servers * 5);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn growth_reaches_its_keys() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("growth");
    let Some(results) = quick("growth", &[], &folder) else { return };
    for growth in results["growths"].as_array().unwrap() {
        assert_eq!(growth["growing"]["commands"], results["options"]["keys"]);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn vector_finds_what_it_loads() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vector");
    let (data, kept) = (folder.join("data"), folder.join("kept"));
    let _ = std::fs::remove_dir_all(&folder); // A run that failed leaves answers of other data.
    std::fs::create_dir_all(&data).unwrap();
    let mut rng = SmallRng::seed_from_u64(1);
    // float16 from 0.5 to 2, of either sign.
    let half = || rng.random_range(0x3800..0x4000_u16) | (rng.random::<u16>() & 0x8000);
    let halves = std::iter::repeat_with(half).take(500 * 32).flat_map(u16::to_le_bytes).collect();
    write_matrix(&data.join("wordnet-minilm-384.f16.npy"), "<f2", [500, 32], halves);
    let single = || rng.random::<f32>() - 0.5;
    let singles = std::iter::repeat_with(single).take(20 * 32).flat_map(f32::to_le_bytes).collect();
    write_matrix(&data.join("wordnet-minilm-384-queries.f32.npy"), "<f4", [20, 32], singles);

    let options = ["--data", data.to_str().unwrap(), "--kept", kept.to_str().unwrap()];
    if let Some(results) = quick("vector", &options, &folder) {
        let fields = results["cell_fields"].as_array().unwrap();
        let recall = fields.iter().position(|field| field == "recall_at_10").unwrap();
        let cells = results["cells"].as_array().unwrap();
        assert!(cells.iter().all(|cell| cell[recall].as_f64().unwrap() > 0.5));
        // Of each server: two widths, loaded over one connection and over many.
        assert_eq!(results["loads"].as_array().unwrap().len() % 4, 0);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A file in `NumPy`'s format.
fn write_matrix(path: &Path, kind: &str, [rows, width]: [usize; 2], array: Vec<u8>) {
    let header =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {width}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(array);
    std::fs::write(path, bytes).unwrap();
}
