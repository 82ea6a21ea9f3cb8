//! `cargo xtask release`: an archive of the binaries for this machine's target, and its checksum.
//!
//! ```text
//! target/release-archives/kiln-<version>-<target>.tar.gz
//! target/release-archives/SHA256SUMS
//! ```
//!
//! The `dist` profile optimizes across crates and strips debug information. Owners and times in
//! the archive are fixed, so the same binaries give the same archive. Left out: publishing.

use std::fs;

use anyhow::{Context, Result};

use crate::repo::{self, Repo, stdout_of};

/// What goes into an archive beside the binaries.
const DOCUMENTS: [&str; 2] = ["README.md", "LICENSE"];
const BINARIES: [&str; 2] = ["kiln-server", "kiln-bench"];

/// Builds and packs.
pub(crate) fn run(repo: &Repo) -> Result<bool> {
    for binary in BINARIES {
        repo::run(&mut repo.cargo(&["build", "--profile", "dist", "--package", binary]))?;
    }
    let name = format!("kiln-{}-{}", version(repo)?, host_target(repo)?);
    let archives = repo.target.join("release-archives");
    let folder = archives.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).context("remove the folder of an earlier run")?;
    }
    fs::create_dir_all(&folder).context("make the archive's folder")?;
    for binary in BINARIES {
        let to = folder.join(binary);
        fs::copy(repo.target.join("dist").join(binary), &to)
            .with_context(|| format!("copy {binary}"))?;
        repo::run(repo.command("strip").arg("--strip-debug").arg(&to))?;
    }
    for document in DOCUMENTS {
        fs::copy(repo.root.join(document), folder.join(document))
            .with_context(|| format!("copy {document}"))?;
    }
    let archive = format!("{name}.tar.gz");
    let mut tar = repo.command("tar");
    tar.current_dir(&archives)
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"])
        .args(["-czf", &archive, &name]);
    repo::run(&mut tar)?;
    let sums = stdout_of(repo.command("sha256sum").current_dir(&archives).arg(&archive))?;
    fs::write(archives.join("SHA256SUMS"), &sums).context("write the checksums")?;
    eprintln!("xtask: {} in {}", sums.trim(), archives.display());
    Ok(true)
}

fn version(repo: &Repo) -> Result<String> {
    let packages = repo.metadata["packages"].as_array().context("read the packages")?;
    let server = packages
        .iter()
        .find(|package| package["name"] == "kiln-server")
        .context("find kiln-server among the packages")?;
    Ok(server["version"].as_str().context("read kiln-server's version")?.to_owned())
}

/// The target triple that this toolchain builds for.
pub(crate) fn host_target(repo: &Repo) -> Result<String> {
    let said = stdout_of(repo.command("rustc").arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("find the host in what rustc -vV says")?.to_owned())
}
