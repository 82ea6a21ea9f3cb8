//! How many checks passed and failed, read from what the test programs print.
//!
//! Every part of `cargo xtask test` ends with a line that says so, each in its own words; this
//! file knows the words. A program that fails without saying so counts as one failure, and one
//! that says nothing of passing counts as one too: a part that tests nothing must not look well.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result};

use crate::repo::spell;

/// Passed, failed and skipped checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    /// One failure: what a part counts for that could not run.
    pub(crate) const FAILURE: Counts = Counts { passed: 0, failed: 1, skipped: 0 };

    /// The sum of two parts.
    pub(crate) fn plus(self, other: Counts) -> Counts {
        Counts {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// Whose words a summary is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// `Summary [ 1.0s] 3 tests run: 2 passed, 1 failed, 0 skipped`.
    Nextest,
    /// `test result: ok. 5 passed; 0 failed; 0 ignored; …`, once for each test binary.
    CargoTest,
    /// `5 passed, 0 failed`, the line that our own checkers end with.
    Checker,
    /// `1 failed, 10 passed, 2 skipped in 2.33s`.
    Pytest,
    /// `20000 commands, seed 1: 0 kinds of differences`: one check, or as many failures as kinds.
    Differential,
}

impl Words {
    /// The counts that `line` states, if it is a summary.
    fn read(self, line: &str) -> Option<Counts> {
        let line = line.trim_matches(|c| c == '=' || c == ' ');
        let said = match self {
            Words::Nextest => line.split_once(" tests run: ").or(line.split_once(" test run: "))?.1,
            Words::CargoTest => line.strip_prefix("test result: ")?,
            Words::Checker => line,
            Words::Pytest => line.rsplit_once(" in ")?.0,
            Words::Differential => {
                let kinds = line.strip_suffix(" kinds of differences")?.rsplit_once(' ')?.1;
                let failed = kinds.parse().ok()?;
                return Some(Counts { passed: u64::from(failed == 0), failed, skipped: 0 });
            }
        };
        let mut counts = Counts::default();
        let mut found = false;
        let words: Vec<&str> = said.split_whitespace().collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].trim_start_matches('(').parse::<u64>() else { continue };
            match pair[1].trim_end_matches([',', ';', ')']) {
                "passed" => counts.passed = number,
                "failed" | "error" | "errors" | "timed" | "exec" => counts.failed += number,
                "skipped" | "ignored" => counts.skipped += number,
                _ => continue,
            }
            found = true;
        }
        found.then_some(counts)
    }

    /// The counts of all that a program printed: the sum of its summaries for cargo's own test
    /// runner, which prints one for each binary, else the last.
    fn read_all(self, lines: &[String]) -> Option<Counts> {
        let mut said = lines.iter().filter_map(|line| self.read(line));
        match self {
            Words::CargoTest => said.reduce(Counts::plus),
            Words::Nextest | Words::Checker | Words::Pytest | Words::Differential => {
                said.next_back()
            }
        }
    }
}

/// Runs `command`, shows its output as it comes, and counts by `words`.
pub(crate) fn run_counted(command: &mut Command, words: Words) -> Result<Counts> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("run {}", spell(command)))?;
    let stdout = child.stdout.take().context("take the output")?;
    let stderr = child.stderr.take().context("take the errors")?;
    let (mut lines, told) = thread::scope(|scope| {
        let told = scope.spawn(|| show(stderr));
        (show(stdout), told.join().expect("the reader of the errors does not panic"))
    });
    lines.extend(told);
    let status = child.wait().with_context(|| format!("wait for {}", spell(command)))?;

    let mut counts = words.read_all(&lines).unwrap_or_default();
    if counts.failed == 0 && !status.success() {
        eprintln!("{} ends with {status}", spell(command));
        counts.failed = 1;
    } else if counts.failed == 0 && counts.passed == 0 {
        eprintln!("{} does not say that anything passed", spell(command));
        counts.failed = 1;
    }
    Ok(counts)
}

/// Passes lines on to this process's stderr and keeps them.
fn show(stream: impl Read) -> Vec<String> {
    let mut lines = Vec::new();
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        eprintln!("{line}");
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{Counts, Words};

    fn check(words: Words, lines: &[&str], passed: u64, failed: u64, skipped: u64) {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(words.read_all(&lines), Some(Counts { passed, failed, skipped }), "{lines:?}");
    }

    #[test]
    fn each_summary_is_understood() {
        check(
            Words::Nextest,
            &[
                "     Summary [   0.010s] 6 tests run: 3 passed (1 slow), 2 failed, 1 timed out, 4 skipped",
                "        FAIL [   0.004s] xtask tidy::tests::x",
                "error: test run failed",
            ],
            3,
            3,
            4,
        );
        check(
            Words::Nextest,
            &["     Summary [   0.010s] 1 test run: 1 passed, 0 skipped"],
            1,
            0,
            0,
        );
        check(
            Words::CargoTest,
            &[
                "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
                "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out",
            ],
            7,
            3,
            1,
        );
        check(Words::Checker, &["group  passed failed", "2834 passed, 2 failed"], 2834, 2, 0);
        check(Words::Checker, &["52 passed, 0 failed, 1 skipped"], 52, 0, 1);
        check(
            Words::Pytest,
            &["=== 1 failed, 10 passed, 2 skipped, 1 error in 2.33s ==="],
            10,
            2,
            2,
        );
        check(Words::Pytest, &["10 passed in 0.12s"], 10, 0, 0);
        let said = |kinds| format!("20000 commands, seed 1: {kinds} kinds of differences");
        check(Words::Differential, &[&said(0)], 1, 0, 0);
        check(Words::Differential, &[&said(3)], 0, 3, 0);
    }

    #[test]
    fn other_lines_are_no_summary() {
        for words in [Words::Nextest, Words::CargoTest, Words::Pytest, Words::Differential] {
            assert_eq!(words.read("5 passed, 2 failed"), None, "{words:?}");
        }
        assert_eq!(Words::Checker.read("group             passed  failed"), None);
    }
}
