//! `cargo xtask fuzz`: coverage-guided fuzzing with libFuzzer on the stable toolchain.
//!
//! The targets lie in `fuzz/`, a crate outside the workspace because all it links is built with
//! coverage instrumentation. cargo-fuzz is only a wrapper round the flags below, so nothing needs
//! to be installed. `--asan` adds `AddressSanitizer`, whose runtime ships with the toolchain but
//! whose flag is unstable, hence `RUSTC_BOOTSTRAP`.
//!
//! A target's corpus is `fuzz/corpus/<target>`; an input that fails is left in `fuzz/artifacts`
//! and libFuzzer prints how to replay it. The targets' fixed-seed smoke runs are ordinary tests.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::release::host_target;
use crate::repo::{self, Repo};

/// How long each target runs when nothing is said.
const DEFAULT_SECONDS: u64 = 60;

/// Edge coverage by inline counters, and comparisons, as libFuzzer wants them.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";
const ADDRESS_SANITIZER: &str = " -Zsanitizer=address";

/// What was asked for on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    target: Option<String>,
    seconds: u64,
    asan: bool,
}

impl Options {
    /// Reads the arguments after `fuzz`.
    pub(crate) fn parse(args: &[&str]) -> Result<Options> {
        let mut options = Options { target: None, seconds: DEFAULT_SECONDS, asan: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "--seconds" => {
                    let seconds = args.next().context("--seconds needs a number")?;
                    options.seconds = seconds.parse().context("read the number of --seconds")?;
                }
                "--asan" => options.asan = true,
                name if !name.starts_with('-') && options.target.is_none() => {
                    options.target = Some(name.to_owned());
                }
                _ => bail!("fuzz knows a target, --seconds N and --asan, not {arg}"),
            }
        }
        Ok(options)
    }
}

/// Runs the targets that were asked for; true when none found anything.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<bool> {
    let known = targets(repo)?;
    let chosen = match &options.target {
        Some(name) if known.contains(name) => vec![name.clone()],
        Some(name) => bail!("there is no fuzz target {name}; there are {}", known.join(", ")),
        None => known,
    };
    let host = host_target(repo)?;
    let built = repo.target.join(if options.asan { "fuzz-asan" } else { "fuzz" });
    let mut flags = COVERAGE.to_owned();
    if options.asan {
        flags.push_str(ADDRESS_SANITIZER);
    }
    // `--target` keeps the flags away from build scripts and proc macros.
    let mut build = repo.cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml"]);
    build.args(["--target", &host, "--target-dir"]).arg(&built).env("RUSTFLAGS", &flags);
    if options.asan {
        build.env("RUSTC_BOOTSTRAP", "1");
    }
    repo::run(&mut build)?;

    let mut clean = true;
    for target in chosen {
        let corpus = repo.root.join("fuzz/corpus").join(&target);
        let artifacts = repo.root.join("fuzz/artifacts").join(&target);
        for folder in [&corpus, &artifacts] {
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        }
        eprintln!("xtask: fuzz {target} for {} s", options.seconds);
        let status = repo
            .command(built.join(&host).join("release").join(&target))
            .arg(&corpus)
            .arg(format!("-max_total_time={}", options.seconds))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .status()
            .with_context(|| format!("run {target}"))?;
        if !status.success() {
            eprintln!("xtask: {target} ends with {status}");
            clean = false;
        }
    }
    Ok(clean)
}

/// The names of all fuzz targets.
fn targets(repo: &Repo) -> Result<Vec<String>> {
    let metadata = repo::metadata(&repo.root.join("fuzz")).context("look for the fuzz targets")?;
    let mut names = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        if package["source"].is_null() && package["name"] == "kiln-fuzz" {
            for target in package["targets"].as_array().into_iter().flatten() {
                if target["kind"][0] == "bin" {
                    names.extend(target["name"].as_str().map(str::to_owned));
                }
            }
        }
    }
    if names.is_empty() {
        bail!("the package kiln-fuzz in fuzz/ has no targets");
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_SECONDS, Options};

    #[test]
    fn arguments_come_in_any_order() {
        let got = Options::parse(&["--seconds", "5", "resp", "--asan"]).unwrap();
        assert_eq!(got, Options { target: Some("resp".into()), seconds: 5, asan: true });
        let got = Options::parse(&[]).unwrap();
        assert_eq!(got, Options { target: None, seconds: DEFAULT_SECONDS, asan: false });
        for wrong in [&["--seconds"][..], &["--seconds", "x"], &["a", "b"], &["--no"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
