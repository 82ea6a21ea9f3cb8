//! `cargo xtask check`: everything that can be said of the sources without running them.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::repo::{self, Repo, stdout_of};
use crate::tidy;

/// The flag of `kiln-server` that prints `docs/commands.md`.
const PRINT_COMMAND_DOCS: &str = "--print-command-docs";

/// What was asked for on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// Only what ends within a minute: no clippy, no docs.
    pub(crate) fast: bool,
    /// Rewrite generated documents instead of comparing them.
    pub(crate) bless: bool,
}

impl Options {
    /// Reads the arguments after `check`.
    pub(crate) fn parse(args: &[&str]) -> Result<Options> {
        let mut options = Options::default();
        for arg in args {
            match *arg {
                "--fast" => options.fast = true,
                "--bless" => options.bless = true,
                _ => bail!("check knows --fast and --bless, not {arg}"),
            }
        }
        Ok(options)
    }
}

/// Runs all checks, also after one failed, and says at the end which did.
pub(crate) fn run(repo: &Repo, options: Options) -> Result<bool> {
    let mut failed = Vec::new();
    let mut check = |name: &'static str, outcome: Result<()>| {
        if let Err(error) = outcome {
            eprintln!("xtask: {name}: {error:#}");
            failed.push(name);
        }
    };
    check("fmt", repo::run(&mut repo.cargo(&["fmt", "--all", "--check"])));
    if options.bless {
        tidy::bless(repo)?;
    }
    check("tidy", tidy::run(repo));
    let everything = ["--workspace", "--all-targets", "--no-default-features"];
    if options.fast {
        check("build", repo::run(repo.cargo(&["check"]).args(everything)));
    } else {
        let mut clippy = repo.cargo(&["clippy"]);
        check("clippy", repo::run(clippy.args(everything).args(["--", "-D", "warnings"])));
        let mut doc = repo.cargo(&[
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
            "--no-default-features",
        ]);
        check("doc", repo::run(doc.env("RUSTDOCFLAGS", "-D warnings")));
        check("docs/commands.md", command_docs(repo, options.bless));
    }
    if failed.is_empty() {
        eprintln!("xtask: all checks hold");
    } else {
        eprintln!("xtask: these do not hold: {}", failed.join(", "));
    }
    Ok(failed.is_empty())
}

/// Compares `docs/commands.md` with what the command table says, or rewrites it.
fn command_docs(repo: &Repo, bless: bool) -> Result<()> {
    if !server_prints_command_docs(repo)? {
        eprintln!("xtask: docs/commands.md: kiln-server has no {PRINT_COMMAND_DOCS} yet; skipped");
        return Ok(());
    }
    let server = ["run", "--quiet", "--package", "kiln-server", "--no-default-features", "--"];
    let printed = stdout_of(repo.cargo(&server).arg(PRINT_COMMAND_DOCS))?;
    let path = repo.root.join("docs/commands.md");
    if bless {
        return fs::write(&path, printed).context("write docs/commands.md");
    }
    if fs::read_to_string(&path).context("read docs/commands.md")? != printed {
        bail!("the file is not what the command table says: run `cargo xtask check --bless`");
    }
    Ok(())
}

/// Whether the server has the flag already: the check comes alive by itself when it does.
fn server_prints_command_docs(repo: &Repo) -> Result<bool> {
    let sources = repo.root.join("crates/kiln-server/src");
    for entry in fs::read_dir(sources).context("list the sources of kiln-server")? {
        let path = entry.context("list the sources of kiln-server")?.path();
        if path.is_file() && fs::read_to_string(&path)?.contains(PRINT_COMMAND_DOCS) {
            return Ok(true);
        }
    }
    Ok(false)
}
