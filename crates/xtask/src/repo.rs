//! The checkout that xtask works on: where it lies, what cargo says of it, and how to run a
//! program in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A checkout of Kiln.
pub(crate) struct Repo {
    /// The folder of the root manifest.
    pub(crate) root: PathBuf,
    /// Cargo's target folder. Everything that xtask makes lies below it.
    pub(crate) target: PathBuf,
    /// The answer of `cargo metadata`, dependencies included.
    pub(crate) metadata: Value,
}

impl Repo {
    /// Finds the checkout that this xtask was built from.
    pub(crate) fn open() -> Result<Repo> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .context("find the root two folders above crates/xtask")?
            .to_owned();
        let metadata = metadata(&root)?;
        let target = metadata["target_directory"]
            .as_str()
            .context("read target_directory of the metadata")?;
        Ok(Repo { target: PathBuf::from(target), root, metadata })
    }

    /// `program`, to be run in the root.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// The cargo that runs this xtask, with `args`.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let mut command = self.command(cargo());
        command.args(args);
        command
    }

    /// The folder of files that only this project's developers have, beside the checkout.
    pub(crate) fn shared(&self, path: &str) -> Result<PathBuf> {
        let found = self.root.join("../shared").join(path);
        if !found.exists() {
            bail!("../shared/{path} is not here: the reference data lies beside the checkout");
        }
        Ok(found)
    }
}

/// What `cargo metadata` says of the workspace at `root`.
pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let output = Command::new(cargo())
        .args(["metadata", "--format-version", "1"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata ends with {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("read the answer of cargo metadata")
}

/// Runs `command` with this process's own output and expects it to succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("run {}", spell(command)))?;
    if !status.success() {
        bail!("{} ends with {status}", spell(command));
    }
    Ok(())
}

/// Runs `command` and returns what it prints.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("run {}", spell(command)))?;
    if !output.status.success() {
        bail!("{} ends with {}", spell(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("read what {} says", spell(command)))
}

/// Whether a program of this name can be run.
pub(crate) fn installed(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok()
}

/// `command` as one would type it.
pub(crate) fn spell(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| {
        let arg = arg.to_string_lossy();
        if arg.is_empty() || arg.contains(' ') { format!("'{arg}'") } else { arg.into_owned() }
    }));
    words.join(" ")
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
