//! Figures of the machine, the process and the allocator, for INFO and MEMORY.
//!
//! Source: proc(5). The allocator's figures need the `jemalloc` feature; without it there are none.

use std::fs;

use kiln_command::{Host, HostFigures};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::allocator;

/// Ticks per second of the times in `/proc/self/stat`: the same on every Linux that Kiln runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// File descriptors beyond those of clients: listeners, runtimes, files.
const RESERVED_FDS: u64 = 64;

/// The system that the server runs on.
pub(crate) struct System;

impl Host for System {
    fn figures(&self) -> HostFigures {
        let (user_seconds, system_seconds) = processor_seconds().unwrap_or_default();
        let mut figures = HostFigures {
            os: os_name(),
            resident_bytes: resident_bytes().unwrap_or(0),
            machine_bytes: machine_bytes().unwrap_or(0),
            user_seconds,
            system_seconds,
            ..HostFigures::default()
        };
        add_allocator_figures(&mut figures);
        figures
    }

    fn allow_clients(&self, clients: u32) -> Result<(), u32> {
        let wanted = u64::from(clients) + RESERVED_FDS;
        let limit = getrlimit(Resource::Nofile);
        if limit.current.is_none_or(|current| current >= wanted) {
            return Ok(());
        }
        let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        let rlimit = Rlimit { current: Some(raised), maximum: limit.maximum };
        let have = if setrlimit(Resource::Nofile, rlimit).is_ok() {
            raised
        } else {
            limit.current.unwrap_or(0)
        };
        if have >= wanted { Ok(()) } else { Err(have.saturating_sub(RESERVED_FDS) as u32) }
    }

    fn allocator_report(&self) -> String {
        allocator_report()
    }

    fn purge_allocator(&self) {
        allocator::purge();
    }
}

fn os_name() -> String {
    let word = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim().to_owned()
    };
    format!("{} {} {}", word("ostype"), word("osrelease"), std::env::consts::ARCH)
}

fn resident_bytes() -> Option<u64> {
    kib_of("/proc/self/status", "VmRSS:")
}

fn machine_bytes() -> Option<u64> {
    kib_of("/proc/meminfo", "MemTotal:")
}

/// The bytes that the line `name` of a file gives in `kB`, which are KiB.
fn kib_of(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = value.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib * 1_024)
}

/// Processor time of all threads, in the process and in the kernel.
fn processor_seconds() -> Option<(f64, f64)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the name in parentheses, which may hold spaces; `utime` is number 14.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    Some((seconds()?, seconds()?))
}

#[cfg(feature = "jemalloc")]
fn add_allocator_figures(figures: &mut HostFigures) {
    use tikv_jemalloc_ctl::{epoch, stats};
    // jemalloc keeps a snapshot of its figures, which an advance of the epoch renews.
    if epoch::advance().is_ok() {
        let bytes = |figure: tikv_jemalloc_ctl::Result<usize>| figure.unwrap_or(0) as u64;
        figures.allocated_bytes = bytes(stats::allocated::read());
        figures.active_bytes = bytes(stats::active::read());
        figures.allocator_resident_bytes = bytes(stats::resident::read());
    }
}

#[cfg(not(feature = "jemalloc"))]
fn add_allocator_figures(_: &mut HostFigures) {}

#[cfg(feature = "jemalloc")]
fn allocator_report() -> String {
    let mut report = Vec::new();
    let options = tikv_jemalloc_ctl::stats_print::Options::default();
    match tikv_jemalloc_ctl::stats_print::stats_print(&mut report, options) {
        Ok(()) => String::from_utf8_lossy(&report).into_owned(),
        Err(error) => format!("jemalloc gives no report: {error}"),
    }
}

#[cfg(not(feature = "jemalloc"))]
fn allocator_report() -> String {
    "Stats not supported for the current allocator".to_owned()
}
