//! The machine and the state of the source that a result belongs to.

use std::fmt;
use std::fs;
use std::process::Command;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Highest core number, plus one, that the kernel's mask has room for.
const CORES_MAX: usize = 1_024;

/// A set of cores, written as `0`, `0-3` or `0,2-3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(Vec<usize>);

impl Cores {
    /// How many cores there are; at least 1.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Core `index` alone; counts round.
    #[must_use]
    pub fn nth(&self, index: usize) -> Cores {
        Cores(vec![self.0[index % self.0.len()]])
    }

    /// These and `others`.
    #[must_use]
    pub fn and(&self, others: &Cores) -> Cores {
        let mut cores = [self.0.as_slice(), &others.0].concat();
        cores.sort_unstable();
        cores.dedup();
        Cores(cores)
    }

    /// Keeps the calling thread, and threads and processes it starts, on these cores.
    pub fn pin_this_thread(&self) -> Result<()> {
        let mut set = CpuSet::new();
        for &core in &self.0 {
            set.set(core);
        }
        sched_setaffinity(None, &set).with_context(|| format!("pin to cores {self}"))
    }
}

impl FromStr for Cores {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Cores> {
        let mut cores = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (first.parse()?, last.parse()?);
            if first > last || last >= CORES_MAX {
                bail!("no such range of cores: {part}");
            }
            cores.extend(first..=last);
        }
        cores.sort_unstable();
        cores.dedup();
        Ok(Cores(cores))
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&cores.join(","))
    }
}

/// Where and of what a result was taken.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that the kernel shows.
    pub cores: usize,
    /// Kernel release.
    pub kernel: String,
    /// RAM.
    pub memory_bytes: u64,
    /// Load average over the last minute when the run began: above 0 others share the machine.
    pub load_average: f64,
    /// UTC date, `YYYY-MM-DD`.
    pub date: String,
    /// Short commit id of the source, `-dirty` after it if tracked files were changed.
    pub commit: String,
}

impl Machine {
    /// Reads it from `/proc` and from git, where there is one.
    pub fn describe() -> Machine {
        let cpu_info = read("/proc/cpuinfo");
        let field = |name: &str| {
            let line = cpu_info.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        let memory_kib = read("/proc/meminfo")
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))
            .and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let load = read("/proc/loadavg");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Machine {
            cpu: field("model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: cpu_info.lines().filter(|line| line.starts_with("processor")).count(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_bytes: memory_kib.unwrap_or(0) * 1_024,
            load_average: load.split(' ').next().and_then(|one| one.parse().ok()).unwrap_or(0.0),
            date: date_of(now.as_secs() / 86_400),
            commit: commit().unwrap_or_else(|| "unknown".to_owned()),
        }
    }
}

/// A file's text, or nothing: a description that lacks a line is better than no result.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let id = git(&["rev-parse", "--short=10", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { id } else { format!("{id}-dirty") })
}

/// The Gregorian date `days` after 1 January 1970.
///
/// Counts in eras of 400 years that begin on 1 March, so that a leap day is the last of its year.
fn date_of(days: u64) -> String {
    let days = days + 719_468; // From 1 March of year 0.
    let (era, day) = (days / 146_097, days % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day + 2) / 153; // March is 0.
    let day_of_month = day - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day_of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_ranges_and_lists() {
        for (text, want) in [("0", vec![0]), ("2-4", vec![2, 3, 4]), ("5,0-1,1", vec![0, 1, 5])] {
            assert_eq!(text.parse::<Cores>().unwrap(), Cores(want), "{text}");
        }
        for text in ["", "a", "3-1", "0,", "4096"] {
            assert!(text.parse::<Cores>().is_err(), "{text}");
        }
    }

    #[test]
    fn dates_are_gregorian() {
        for (days, want) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_787, "2026-11-30"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date_of(days), want);
        }
    }
}
