//! LATENCY: the worst times of named events, and how long commands take.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3. The words of DOCTOR are our
//! own.

use std::fmt::Write as _;

use kiln_command::stats::bucket_end;
use kiln_command::{
    Args, Arity, Command, CommandError, CommandFlags, CommandResult, CommandSpec,
    ConnectionHandler, Context, Group, LatencyEvent, ReplyWriter,
};

use super::OPERATOR;
use super::info::histogram;
use crate::help;

/// Lines of a graph.
const GRAPH_ROWS: u64 = 4;

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::container("LATENCY").group(Group::Server).docs(
        "2.8.13",
        "Depends on the subcommand.",
        "",
        "The worst times of the server, and how long commands take.",
    ),
    row("LATENCY|DOCTOR", Arity::exactly(2), doctor).docs(
        "2.8.13",
        "O(1)",
        "",
        "Report on the events that took long, for people.",
    ),
    row("LATENCY|GRAPH", Arity::exactly(3), graph).docs(
        "2.8.13",
        "O(1)",
        "event",
        "Draw the samples of an event.",
    ),
    row("LATENCY|HISTORY", Arity::exactly(3), history).docs(
        "2.8.13",
        "O(1)",
        "event",
        "List the samples of an event.",
    ),
    row("LATENCY|LATEST", Arity::exactly(2), latest).docs(
        "2.8.13",
        "O(1)",
        "",
        "List the last and the worst sample of every event.",
    ),
    row("LATENCY|RESET", Arity::at_least(2), reset).docs(
        "2.8.13",
        "O(1)",
        "[event [event ...]]",
        "Forget the samples of some events, or of all.",
    ),
    row("LATENCY|HISTOGRAM", Arity::at_least(2), histograms).docs(
        "7.0.0",
        "O(N) with N commands.",
        "[command [command ...]]",
        "Count how often commands took how long.",
    ),
    CommandSpec::connection("LATENCY|HELP", Arity::exactly(2), latency_help)
        .group(Group::Server)
        .flags(CommandFlags::LOADING.union(CommandFlags::STALE))
        .docs("2.8.13", "O(1)", "", "List the subcommands."),
];

const fn row(name: &'static str, arity: Arity, handler: ConnectionHandler) -> CommandSpec {
    CommandSpec::connection(name, arity, handler).group(Group::Server).flags(OPERATOR)
}

fn latest(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let events = context.server.latency.list();
    reply.array(events.len());
    for (name, event) in events {
        let (time_s, ms) = event.samples.last().copied().unwrap_or_default();
        reply.array(4);
        reply.bulk(name.as_bytes());
        reply.integer(time_s);
        reply.integer(ms as i64);
        reply.integer(event.max_ms as i64);
    }
    Ok(())
}

fn history(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let samples = event_of(context, args).map(|event| event.samples).unwrap_or_default();
    reply.array(samples.len());
    for (time_s, ms) in samples {
        reply.array(2);
        reply.integer(time_s);
        reply.integer(ms as i64);
    }
    Ok(())
}

/// The event that word 2 names.
fn event_of(context: &Context<'_>, args: &Args<'_>) -> Option<LatencyEvent> {
    context.server.latency.get(&String::from_utf8_lossy(args.get(2)))
}

fn reset(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let names: Vec<_> =
        args.tail(2).iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    reply.integer(context.server.latency.reset(&names) as i64);
    Ok(())
}

fn graph(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let name = String::from_utf8_lossy(args.get(2)).into_owned();
    let Some(event) = event_of(context, args) else {
        return Err(CommandError::owned(format!("ERR No samples available for event '{name}'")));
    };
    reply.verbatim("txt", draw(&name, &event, context.now() / 1_000).as_bytes());
    Ok(())
}

/// A column for each sample, higher for worse, with its age in seconds written below, downwards.
fn draw(name: &str, event: &LatencyEvent, now_s: i64) -> String {
    let times = || event.samples.iter().map(|(_, ms)| *ms);
    let (low, high) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let mut text = format!(
        "{name} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        event.max_ms,
        "-".repeat(80)
    );
    // Each line stands for three steps: `_`, `o` and `#`.
    let steps = GRAPH_ROWS * 3 - 1;
    let height = |ms: u64| (ms - low) * steps / (high - low).max(1);
    for row in (0..GRAPH_ROWS).rev() {
        text.extend(times().map(|ms| match (height(ms) + 1).saturating_sub(row * 3) {
            0 => ' ',
            1 => '_',
            2 => 'o',
            _ => '#',
        }));
        text.push('\n');
    }
    let ages: Vec<_> =
        event.samples.iter().map(|(time_s, _)| age(now_s - time_s).into_bytes()).collect();
    for line in 0..ages.iter().map(Vec::len).max().unwrap_or(0) {
        text.push('\n');
        text.extend(ages.iter().map(|age| age.get(line).map_or(' ', |byte| char::from(*byte))));
    }
    text.push('\n');
    text
}

fn age(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{}s", seconds.max(0)),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn doctor(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let threshold = context.server.config.current().latency_monitor_threshold;
    let events = context.server.latency.list();
    let mut text = String::new();
    if threshold == 0 {
        text.push_str(
            "Nothing is recorded: latency-monitor-threshold is 0. Set it to the milliseconds from \
             which an event matters to you, with CONFIG SET.\n",
        );
    } else if events.is_empty() {
        let _ = writeln!(text, "No event took {threshold} ms or more. All is well.");
    } else {
        let _ = writeln!(text, "Events that took {threshold} ms or more:");
        for (name, event) in events {
            let (sum, count) = event.total;
            let mean = sum / count.max(1);
            let worst = event.max_ms;
            let _ = writeln!(text, "- {name}: {count}, {mean} ms on average, {worst} ms at worst");
        }
        text.push_str(
            "SLOWLOG GET shows which commands they were. Commands over whole large values (KEYS, \
             SMEMBERS, SORT, LRANGE 0 -1) are the usual cause; their SCAN forms do the same in \
             small steps.\n",
        );
    }
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn histograms(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let server = context.server;
    let wanted: Vec<Command> = if args.len() == 2 {
        server.commands.iter().collect()
    } else {
        let found = args.tail(2).iter().filter_map(|name| server.commands.find(name));
        found
            .flat_map(|command| {
                std::iter::once(command).chain(server.commands.subcommands(command.spec))
            })
            .collect()
    };
    let deferred = reply.deferred();
    let mut count = 0;
    for command in wanted {
        if let Some(buckets) = histogram(server, command.id) {
            count += 1;
            reply.bulk(command.spec.name.to_ascii_lowercase().as_bytes());
            write_histogram(&buckets, buckets.iter().sum(), reply);
        }
    }
    reply.finish_map(deferred, count);
    Ok(())
}

/// How many of the `runs` took at most so many microseconds, in powers of two from 1,024 ns on.
fn write_histogram(buckets: &[u64], runs: u64, reply: &mut ReplyWriter<'_>) {
    reply.map(2);
    reply.bulk(b"calls");
    reply.integer(runs as i64);
    reply.bulk(b"histogram_usec");
    let deferred = reply.deferred();
    let (mut pairs, mut seen, mut bucket) = (0, 0, 0);
    for exponent in 10.. {
        let end = 1_u64 << exponent;
        let before = seen;
        while bucket < buckets.len() && bucket_end(bucket) <= end {
            seen += buckets[bucket];
            bucket += 1;
        }
        if seen > before {
            pairs += 1;
            // Redis's histogram has two digits of precision, so its bounds lie a little higher.
            reply.integer(((end + (end >> 7) - 1) / 1_000) as i64);
            reply.integer(seen as i64);
        }
        if seen == runs || bucket == buckets.len() {
            break;
        }
    }
    reply.finish_map(deferred, pairs);
}

fn latency_help(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    help::write(&context.server.commands, "LATENCY", reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use kiln_command::LatencyEvent;

    use super::draw;
    use crate::testkit::check;

    #[test]
    fn samples_are_drawn_as_columns() {
        let event = LatencyEvent {
            samples: vec![(90, 10), (95, 60), (100, 110)],
            max_ms: 200,
            total: (180, 3),
        };
        let text = draw("command", &event, 100);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "command - high 110 ms, low 10 ms (all time high 200 ms)");
        assert_eq!(lines[2..], ["  #", "  #", " ##", "_##", "", "150", "0ss", "s  "]);
    }

    #[test]
    fn without_events_there_is_nothing_to_show() {
        check(&[
            ("LATENCY LATEST", "(empty array)"),
            ("LATENCY HISTORY bogus", "(empty array)"),
            ("LATENCY GRAPH bogus", "(error) ERR No samples available for event 'bogus'"),
            ("LATENCY RESET a b", "(integer) 0"),
            ("LATENCY HISTOGRAM nosuch", "(empty array)"),
        ]);
    }
}
