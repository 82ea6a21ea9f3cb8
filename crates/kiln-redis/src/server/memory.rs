//! MEMORY: where the memory is.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3. The words of DOCTOR are our
//! own.

use kiln_base::memory;
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, ConnectionHandler,
    Context, Group, KeyFlags, KeySpec, ReplyWriter, View,
};

use super::info::{Overhead, human, percent, ratio};
use crate::help;

/// Elements that USAGE looks at unless it is told how many.
const SAMPLES: usize = 5;
/// What the cell of a key takes in the table.
const CELL_BYTES: usize = 8;
/// Below this there is nothing to say about memory.
const SMALL_BYTES: u64 = 5 << 20;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::container("MEMORY").group(Group::Server).docs(
        "4.0.0",
        "Depends on the subcommand.",
        "",
        "Where the memory is.",
    ),
    CommandSpec::read("MEMORY|USAGE", Arity::at_least(3), usage)
        .group(Group::Server)
        .keys(&[KeySpec::at(2, KeyFlags::RO)])
        .docs(
            "4.0.0",
            "O(N) with N samples.",
            "key [SAMPLES count]",
            "Estimate the memory of a key and its value; 0 samples look at every element.",
        ),
    row("MEMORY|STATS", Arity::exactly(2), stats).docs(
        "4.0.0",
        "O(1)",
        "",
        "Tell what takes how much memory.",
    ),
    row("MEMORY|DOCTOR", Arity::exactly(2), doctor).docs(
        "4.0.0",
        "O(1)",
        "",
        "Report on the use of memory, for people.",
    ),
    row("MEMORY|MALLOC-STATS", Arity::exactly(2), malloc_stats).docs(
        "4.0.0",
        "Depends on the allocator.",
        "",
        "Show the allocator's own report.",
    ),
    row("MEMORY|PURGE", Arity::exactly(2), purge).docs(
        "4.0.0",
        "O(1)",
        "",
        "Do nothing: free memory goes back to the system by itself.",
    ),
    row("MEMORY|HELP", Arity::exactly(2), memory_help)
        .flags(CommandFlags::LOADING.union(CommandFlags::STALE))
        .docs("4.0.0", "O(1)", "", "List the subcommands."),
];

const fn row(name: &'static str, arity: Arity, handler: ConnectionHandler) -> CommandSpec {
    CommandSpec::connection(name, arity, handler).group(Group::Server)
}

fn usage(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let mut samples = SAMPLES;
    let mut at = 3;
    while at < args.len() {
        if !args.is_word(at, "SAMPLES") || at + 1 == args.len() {
            return Err(CommandError::Syntax);
        }
        samples = usize::try_from(args.int(at + 1)?).map_err(|_| CommandError::Syntax)?;
        at += 2;
    }
    match view.peek(args.get(2)) {
        Some(entry) => reply.integer((entry.memory_bytes(samples) + CELL_BYTES) as i64),
        None => reply.null(),
    }
    Ok(())
}

/// One figure of STATS.
enum Figure {
    Count(u64),
    Part(f64),
}

fn stats(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let host = context.server.host.as_ref().map(|host| host.figures()).unwrap_or_default();
    let overhead = Overhead::of(context.server);
    let (used, peak) = (memory::used_bytes(), memory::peak_bytes().max(memory::used_bytes()));
    let dataset = used.saturating_sub(overhead.sum());
    let net = used.saturating_sub(overhead.startup);
    let mut keys = 0_u64;
    let databases = context.server.keyspace.databases();
    context.for_each_shard(|view, shard| {
        keys += (0..databases).map(|db| view.shard_usage(shard, db).keys as u64).sum::<u64>();
        true
    });
    let figures = [
        ("peak.allocated", Figure::Count(peak)),
        ("total.allocated", Figure::Count(used)),
        ("startup.allocated", Figure::Count(overhead.startup)),
        ("replication.backlog", Figure::Count(0)),
        ("clients.slaves", Figure::Count(0)),
        ("clients.normal", Figure::Count(overhead.clients)),
        ("cluster.links", Figure::Count(0)),
        ("aof.buffer", Figure::Count(0)),
        ("overhead.total", Figure::Count(overhead.sum())),
        ("keys.count", Figure::Count(keys)),
        ("keys.bytes-per-key", Figure::Count(net.checked_div(keys).unwrap_or(0))),
        ("dataset.bytes", Figure::Count(dataset)),
        ("dataset.percentage", Figure::Part(percent(dataset.min(net), net))),
        ("peak.percentage", Figure::Part(percent(used, peak))),
        ("allocator.allocated", Figure::Count(host.allocated_bytes)),
        ("allocator.active", Figure::Count(host.active_bytes)),
        ("allocator.resident", Figure::Count(host.allocator_resident_bytes)),
        (
            "allocator-fragmentation.ratio",
            Figure::Part(ratio(host.active_bytes, host.allocated_bytes)),
        ),
        (
            "allocator-rss.ratio",
            Figure::Part(ratio(host.allocator_resident_bytes, host.active_bytes)),
        ),
        (
            "rss-overhead.ratio",
            Figure::Part(ratio(host.resident_bytes, host.allocator_resident_bytes)),
        ),
        ("fragmentation", Figure::Part(ratio(host.resident_bytes, used))),
        ("fragmentation.bytes", Figure::Count(host.resident_bytes.saturating_sub(used))),
    ];
    reply.map(figures.len());
    for (name, figure) in figures {
        reply.bulk(name.as_bytes());
        match figure {
            Figure::Count(number) => reply.integer(number as i64),
            Figure::Part(number) => reply.double(number),
        }
    }
    Ok(())
}

fn doctor(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let (used, peak) = (memory::used_bytes(), memory::peak_bytes().max(memory::used_bytes()));
    let host = context.server.host.as_ref().map(|host| host.figures()).unwrap_or_default();
    let limit = context.server.config.current().maxmemory;
    let mut findings = Vec::new();
    if peak > used + used / 2 {
        findings.push(format!(
            "- The peak was {}, now it is {}: memory of the system in use may stay near the peak.",
            human(peak),
            human(used)
        ));
    }
    if host.resident_bytes > used + used / 2 {
        findings.push(format!(
            "- The process takes {} of the system's memory for {} of data: freed values have left \
             gaps. They are used again by new values.",
            human(host.resident_bytes),
            human(used)
        ));
    }
    if limit > 0 && used > limit / 10 * 9 {
        findings.push(format!(
            "- {} of the {} that maxmemory allows are used: keys are about to be evicted, or \
             writes to be refused, as maxmemory-policy says.",
            human(used),
            human(limit)
        ));
    }
    let text = if used < SMALL_BYTES {
        format!("{} are used: too little to judge by.\n", human(used))
    } else if findings.is_empty() {
        format!("{} are used, and nothing is wrong with that.\n", human(used))
    } else {
        findings.join("\n") + "\n"
    };
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn malloc_stats(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let report = context.server.host.as_ref().map(|host| host.allocator_report());
    reply.verbatim("txt", report.unwrap_or_default().as_bytes());
    Ok(())
}

fn purge(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if let Some(host) = &context.server.host {
        host.purge_allocator();
    }
    reply.ok();
    Ok(())
}

fn memory_help(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    help::write(&context.server.commands, "MEMORY", reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn samples_are_counted_from_zero() {
        check(&[
            ("MEMORY USAGE k", "(nil)"),
            ("SET k v", "OK"),
            ("MEMORY USAGE k SAMPLES -1", "(error) ERR syntax error"),
            ("MEMORY USAGE k SAMPLES abc", "(error) ERR value is not an integer or out of range"),
            ("MEMORY USAGE k SAMPLES", "(error) ERR syntax error"),
            ("MEMORY PURGE", "OK"),
        ]);
    }
}
