//! PFDEBUG and PFSELFTEST: look inside a HyperLogLog, check that they count.
//!
//! Left out: PFDEBUG SIMD, which switches Redis's own vector instructions.
//!
//! Source: replies observed on Redis 8.2.3.

use std::fmt::Write;

use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Context, Group, KeyFlags,
    KeySpec, ReplyWriter, Ttl, View,
};
use kiln_data::hyperloglog::{HyperLogLog, REGISTERS, SPARSE_BYTES_MAX};

use super::{copy, corrupt, find};

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::write("PFDEBUG", Arity::exactly(3), pfdebug)
        .group(Group::HyperLogLog)
        .flags(CommandFlags::DENYOOM.union(CommandFlags::ADMIN))
        .keys(&[KeySpec::at(2, KeyFlags::RW.union(KeyFlags::ACCESS))])
        .docs(
            "2.8.9",
            "O(1)",
            "subcommand key",
            "Show the registers, runs or encoding of a HyperLogLog, or make it dense.",
        ),
    CommandSpec::connection("PFSELFTEST", Arity::exactly(1), pfselftest)
        .group(Group::HyperLogLog)
        .flags(CommandFlags::ADMIN)
        .docs("2.8.9", "O(1)", "", "Check that HyperLogLogs count as well as they should."),
];

/// Elements that the self test adds.
const TESTED: u32 = 20_000;

fn pfdebug(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let key = args.get(2);
    let Some(found) = find(view, key)? else {
        return Err(CommandError::text("ERR The specified key does not exist"));
    };
    if args.is_word(1, "GETREG") {
        let registers = found.registers().map_err(corrupt)?;
        make_dense(view, key)?;
        reply.array(registers.len());
        for &value in &*registers {
            reply.integer(i64::from(value));
        }
    } else if args.is_word(1, "DECODE") {
        if found.is_dense() {
            return Err(CommandError::text("ERR HLL encoding is not sparse"));
        }
        reply.bulk(decode(&found).trim_ascii_end().as_bytes());
    } else if args.is_word(1, "ENCODING") {
        reply.simple(if found.is_dense() { "dense" } else { "sparse" });
    } else if args.is_word(1, "TODENSE") {
        reply.integer(i64::from(make_dense(view, key)?));
    } else {
        let name = String::from_utf8_lossy(args.get(1));
        return Err(CommandError::owned(format!("ERR Unknown PFDEBUG subcommand '{name}'")));
    }
    Ok(())
}

/// The runs of a sparse HyperLogLog: `Z:` zeroes, `v:` value and number.
fn decode<B: AsRef<[u8]>>(value: &HyperLogLog<B>) -> String {
    let mut text = String::new();
    for run in value.runs() {
        let written = match (run.value, run.bytes) {
            (0, 1) => write!(text, "z:{} ", run.len),
            (0, _) => write!(text, "Z:{} ", run.len),
            (value, _) => write!(text, "v:{value},{} ", run.len),
        };
        written.expect("a string takes what is written to it");
    }
    text
}

/// Makes the HyperLogLog at `key` dense; says whether it was not.
fn make_dense(view: &mut View<'_>, key: &[u8]) -> Result<bool, CommandError> {
    let found = find(view, key)?.filter(|found| !found.is_dense());
    let Some(mut value) = found.map(|found| copy(&found)) else { return Ok(false) };
    value.make_dense().map_err(corrupt)?;
    view.set_built_string(key, value.into_bytes(), Ttl::Keep);
    view.count_changes(1); // Redis tells nobody: it is the same set.
    Ok(true)
}

fn pfselftest(_: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    // One that becomes dense by itself, and one that is from the start.
    let (mut one, mut other) = (HyperLogLog::new(), HyperLogLog::new());
    other.make_dense().map_err(corrupt)?;
    for element in 0..TESTED {
        let element = element.to_le_bytes();
        let changed = one.add(&element, SPARSE_BYTES_MAX).map_err(corrupt)?;
        if other.add_dense(&element) != Some(changed) {
            return Err(failed("sparse and dense registers differ"));
        }
    }
    if one.registers() != other.registers() {
        return Err(failed("sparse and dense registers differ"));
    }
    // Four times the standard error of this many registers.
    let error_max = 4.0 * 1.04 / (REGISTERS as f64).sqrt() * f64::from(TESTED);
    let count = one.estimate().map_err(corrupt)?;
    if (count as f64 - f64::from(TESTED)).abs() > error_max {
        return Err(failed("the estimate is too far off"));
    }
    reply.ok();
    Ok(())
}

fn failed(reason: &str) -> CommandError {
    CommandError::owned(format!("TESTFAILED {reason}"))
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn the_inside_can_be_seen() {
        check(&[
            ("PFADD k a", "(integer) 1"),
            ("PFDEBUG DECODE k", "\"Z:12711 v:2,1 Z:3672\""),
            ("PFDEBUG encoding k", "sparse"),
            ("PFDEBUG TODENSE k", "(integer) 1"),
            ("PFDEBUG TODENSE k", "(integer) 0"),
            ("PFDEBUG ENCODING k", "dense"),
            ("PFDEBUG DECODE k", "(error) ERR HLL encoding is not sparse"),
            ("PFADD k a", "(integer) 0"),
            ("PFADD k b", "(integer) 1"),
            ("PFCOUNT k", "(integer) 2"),
            ("PFDEBUG BOGUS k", "(error) ERR Unknown PFDEBUG subcommand 'BOGUS'"),
            ("PFDEBUG BOGUS missing", "(error) ERR The specified key does not exist"),
        ]);
    }

    #[test]
    fn the_self_test_passes() {
        check(&[("PFSELFTEST", "OK")]);
    }
}
