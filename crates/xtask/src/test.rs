//! `cargo xtask test`: everything that must hold, set up from nothing.
//!
//! ```text
//! rust tests     cargo nextest (else cargo test): unit and property tests, tidy, fuzz smoke runs
//! build          the server and the tools, in the profile that the tests built already
//! replies        ../shared/reference/check_replies.py, less tests/replies-skip.txt
//! cases          ../shared/cases/run_cases.py, less tests/cases-skip.txt
//! differential   random commands at Kiln and at Redis 8.2.3
//! acceptance     pytest tests/: real clients, hostile input
//! ```
//!
//! Each part runs also when an earlier one failed, counts what it checked, and on failure says
//! how to run it alone. The last line is the sum, `N passed, N failed`, alone on stdout; all else
//! goes to stderr. The server is the dev profile's: it has the overflow checks and debug
//! assertions that a release lacks, and shares every dependency with the tests.
//!
//! `KILN_SERVER` names another server binary to put through the parts that need one.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::counts::{Counts, Words, run_counted};
use crate::repo::{self, Repo, installed, spell};
use crate::server::Server;
use crate::venv::{Venv, want_redis_tools};

/// The groups of `replies.jsonl` whose commands Kiln has.
const REPLY_GROUPS: [&str; 21] = [
    "strings",
    "bitmaps",
    "hyperloglog",
    "keys",
    "scan",
    "sort",
    "lists",
    "blocking",
    "sets",
    "hashes",
    "hash-ttl",
    "sorted-sets",
    "transactions",
    "connection",
    "config",
    "command-info",
    "arity",
    "wrong-type",
    "cluster-off",
    "redis-extras",
    "vector-sets",
];
const REPLIES_SKIP: &str = "tests/replies-skip.txt";
const CASES_SKIP: &str = "tests/cases-skip.txt";

/// The short differential run. A long one is the same command with more commands.
const DIFFERENTIAL_COMMANDS: &str = "20000";
const DIFFERENTIAL_SEED: &str = "1";

/// Runs every part; true when all held.
pub(crate) fn run(repo: &Repo) -> bool {
    let mut report = Report::default();
    report.part("rust tests", "cargo xtask test", || rust_tests(repo));
    let ready = report.must("set up", || {
        let mut build = repo.cargo(&["build", "--workspace", "--bins", "--no-default-features"]);
        repo::run(&mut build)?;
        let venv = Venv::open(repo)?;
        want_redis_tools(repo);
        Ok(venv)
    });
    if let Some(venv) = ready {
        server_parts(repo, &venv, &mut report);
    }
    report.close()
}

/// The parts that need a running server.
fn server_parts(repo: &Repo, venv: &Venv, report: &mut Report) {
    let built = repo.target.join("debug");
    let kiln = std::env::var_os("KILN_SERVER")
        .map_or_else(|| built.join("kiln-server"), |named| repo.root.join(named));
    let python = &venv.python;

    checker_part(report, "replies", &kiln, repo, &|port| {
        let mut check = repo.command(python);
        check.arg(repo.shared("reference/check_replies.py")?);
        check.args(["127.0.0.1", port, "--peer", "redis-8.2.3"]);
        check.args(["--skip", REPLIES_SKIP, "--show", "20"]);
        for group in REPLY_GROUPS {
            check.args(["--group", group]);
        }
        Ok(check)
    });
    checker_part(report, "cases", &kiln, repo, &|port| {
        let mut check = repo.command(python);
        check.arg(repo.shared("cases/run_cases.py")?).args(["127.0.0.1", port]);
        for id in case_ids(repo)? {
            check.args(["--id", &id]);
        }
        Ok(check)
    });
    let mut differential = repo.command(built.join("differential"));
    differential.arg("--kiln").arg(&kiln).arg("--peer").arg(&venv.redis_server);
    differential.args(["--commands", DIFFERENTIAL_COMMANDS, "--seed", DIFFERENTIAL_SEED]);
    report.part("differential", &spell(&differential), || {
        run_counted(&mut differential, Words::Differential)
    });
    let mut pytest = repo.command(python);
    pytest.args(["-m", "pytest", "-c", "tests/pytest.ini", "tests"]).env("KILN_SERVER", &kiln);
    let replay = format!("KILN_SERVER={} {} -k NAME", kiln.display(), spell(&pytest));
    report.part("acceptance", &replay, || run_counted(&mut pytest, Words::Pytest));
}

/// A part that is a checker, told the port of a server which must survive it.
fn checker_part(
    report: &mut Report,
    name: &'static str,
    kiln: &Path,
    repo: &Repo,
    checker: &dyn Fn(&str) -> Result<Command>,
) {
    let by_hand = checker("PORT").as_ref().map_or_else(|_| String::new(), spell);
    let replay = format!("{} --port PORT --save '' & {by_hand}", kiln.display());
    report.part(name, &replay, || {
        let mut server = Server::start(kiln, &repo.target.join("test-server"))?;
        let counts = run_counted(&mut checker(&server.port.to_string())?, Words::Checker)?;
        server.survived()?;
        Ok(counts)
    });
}

/// The tests that cargo knows, with the better runner if it is here.
fn rust_tests(repo: &Repo) -> Result<Counts> {
    let everything = ["--workspace", "--no-default-features", "--no-fail-fast"];
    if installed("cargo-nextest") {
        run_counted(repo.cargo(&["nextest", "run"]).args(everything), Words::Nextest)
    } else {
        run_counted(repo.cargo(&["test"]).args(everything), Words::CargoTest)
    }
}

/// The cases to run: all that may be seen, less those in the skip list.
fn case_ids(repo: &Repo) -> Result<Vec<String>> {
    let cases = fs::read_to_string(repo.shared("cases/cases.jsonl")?).context("read the cases")?;
    let skip =
        fs::read_to_string(repo.root.join(CASES_SKIP)).context("read tests/cases-skip.txt")?;
    let skip = listed(&skip);
    let mut ids = Vec::new();
    for line in cases.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).context("read a case")?;
        let id = case["id"].as_str().context("read a case's id")?;
        if case["held_out"] == false && !skip.contains(&id) {
            ids.push(id.to_owned());
        }
    }
    if ids.is_empty() {
        bail!("no case is left to run");
    }
    Ok(ids)
}

/// The entries of a list file: one a line, `#` starts a comment.
fn listed(text: &str) -> Vec<&str> {
    let entries = text.lines().filter_map(|line| line.split('#').next()).map(str::trim);
    entries.filter(|entry| !entry.is_empty()).collect()
}

/// What the parts counted.
#[derive(Default)]
struct Report {
    parts: Vec<(&'static str, Counts)>,
}

impl Report {
    /// Runs a part and keeps its counts. `replay` is how to run it alone.
    fn part(&mut self, name: &'static str, replay: &str, run: impl FnOnce() -> Result<Counts>) {
        eprintln!("\n== {name}");
        let counts = run().unwrap_or_else(|error| {
            eprintln!("xtask: {name}: {error:#}");
            Counts::FAILURE
        });
        if counts.failed > 0 {
            eprintln!("xtask: to replay {name}: {replay}");
        }
        self.parts.push((name, counts));
    }

    /// Runs what later parts need. It counts only when it fails.
    fn must<T>(&mut self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Option<T> {
        eprintln!("\n== {name}");
        match run() {
            Ok(made) => Some(made),
            Err(error) => {
                eprintln!("xtask: {name}: {error:#}");
                self.parts.push((name, Counts::FAILURE));
                None
            }
        }
    }

    /// Prints the table and the last line; true when nothing failed.
    #[expect(clippy::print_stdout, reason = "the summary is the one thing that stdout is for")]
    fn close(self) -> bool {
        eprintln!("\n{:14} {:>7} {:>7} {:>7}", "part", "passed", "failed", "skipped");
        let mut sum = Counts::default();
        for (name, counts) in &self.parts {
            let Counts { passed, failed, skipped } = counts;
            eprintln!("{name:14} {passed:>7} {failed:>7} {skipped:>7}");
            sum = sum.plus(*counts);
        }
        println!("{} passed, {} failed", sum.passed, sum.failed);
        sum.failed == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Report, listed};

    #[test]
    fn a_list_file_holds_entries_and_comments() {
        assert_eq!(listed("# head\n\na/b/1   # why\nc\n"), ["a/b/1", "c"]);
    }

    #[test]
    fn a_part_that_cannot_run_fails_the_whole() {
        let passing = |passed| Counts { passed, failed: 0, skipped: 1 };
        let mut report = Report::default();
        report.part("one", "", || Ok(passing(2)));
        assert!(report.close());

        let mut report = Report::default();
        report.part("one", "", || Ok(passing(2)));
        report.part("two", "", || anyhow::bail!("not today"));
        assert!(!report.close());

        let mut report = Report::default();
        assert_eq!(report.must("set up", || Ok(7)), Some(7));
        assert!(report.parts.is_empty());
        assert_eq!(report.must::<u8>("set up", || anyhow::bail!("no")), None);
        assert!(!report.close());
    }
}
