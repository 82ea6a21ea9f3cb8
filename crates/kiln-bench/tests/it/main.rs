//! The whole program against real servers, with figures too small to mean anything.
//!
//! Runs for the servers whose binaries the environment names: `KILN_SERVER`, `VALKEY_SERVER` and
//! `REDIS_SERVER`. Without any there is nothing to run.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Results of `kiln-bench ACTION --quick` over the servers at hand; `None` without any.
fn quick(action: &str, folder: &Path) -> Option<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln-bench"));
    command.arg(action).arg("--out").arg(folder);
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
    let Some(results) = quick("compare", &folder) else { return };
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
    let Some(results) = quick("growth", &folder) else { return };
    for growth in results["growths"].as_array().unwrap() {
        assert_eq!(growth["growing"]["commands"], results["options"]["keys"]);
    }
    std::fs::remove_dir_all(folder).unwrap();
}
