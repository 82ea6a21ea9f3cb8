//! Kiln's five entry points: `cargo xtask check | test | bench | fuzz | release`.
//!
//! CI calls these and nothing else, so whatever CI checks can be run at a desk, and a new check
//! goes inside one of the five rather than beside them.
//!
//! ```text
//! check    formatting, clippy, tidy, docs                            check.rs, tidy.rs
//! test     everything that must hold; last line `N passed, N failed` test.rs
//! bench    Kiln beside Redis and Valkey on this machine              bench.rs
//! fuzz     coverage-guided fuzzing on the stable toolchain           fuzz.rs
//! release  archives with checksums                                   release.rs
//! ```
//!
//! Left out: installing Rust or a C compiler, and timing anything in `test`.

mod bench;
mod check;
mod counts;
mod fuzz;
mod release;
mod repo;
mod server;
mod test;
mod tidy;
mod venv;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::repo::Repo;

const USAGE: &str = "\
cargo xtask check [--fast] [--bless]   formatting, clippy, tidy, docs; --fast leaves out clippy
                                       and docs, --bless rewrites the generated documents
cargo xtask test                       every test; the last line is `N passed, N failed`
cargo xtask bench [growth|vector|vector-library] [ARGS]
                                       `kiln-bench compare ARGS` (or another) with all it needs
cargo xtask fuzz [TARGET] [--seconds N] [--asan]
                                       one fuzz target, or each in turn
cargo xtask release                    archives and checksums in target/release-archives";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the entry point that `args` names. False when it ran and something did not hold.
fn run(args: &[String]) -> Result<bool> {
    let Some((entry, rest)) = args.split_first() else { bail!("say what to do\n\n{USAGE}") };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match entry.as_str() {
        "check" => check::run(&Repo::open()?, check::Options::parse(&rest)?),
        "test" if rest.is_empty() => Ok(test::run(&Repo::open()?)),
        "bench" => bench::run(&Repo::open()?, &rest),
        "fuzz" => fuzz::run(&Repo::open()?, &fuzz::Options::parse(&rest)?),
        "release" if rest.is_empty() => release::run(&Repo::open()?),
        _ => bail!("no such entry point or arguments: {}\n\n{USAGE}", args.join(" ")),
    }
}
