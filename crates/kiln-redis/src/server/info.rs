//! INFO: the state of the server as lines of `name:value` in sections.
//!
//! Names and sections are Redis's, because monitors read them; what Kiln has no such thing for is
//! left out, except where clients rely on a name. Counters are sums over the workers, each read by
//! itself: they are true of no single moment.
//!
//! Source: the Redis documentation on INFO; fields observed on Redis 8.2.3.

use std::fmt::{Display, Write as _};

use kiln_base::memory;
use kiln_base::sync::atomic::Ordering;
use kiln_command::config::Directive;
use kiln_command::stats::{Counter, LATENCY_BUCKETS, WorkerStats, bucket_end};
use kiln_command::{
    AclCategories, Args, Arity, CommandFlags, CommandId, CommandResult, CommandSpec, Context,
    Group, HostFigures, ReplyWriter, Server,
};
use kiln_keyspace::ShardUsage;

pub(super) const COMMANDS: &[CommandSpec] =
    &[CommandSpec::connection("INFO", Arity::at_least(1), info)
        .group(Group::Server)
        .categories(AclCategories::DANGEROUS)
        .flags(CommandFlags::LOADING.union(CommandFlags::STALE))
        .docs(
            "1.0.0",
            "O(1)",
            "[section [section ...]]",
            "Report the state and the statistics of the server.",
        )];

/// Writes the lines of a section.
type Section = fn(&mut Report<'_, '_>);

/// Sections in the order in which they are shown, and whether INFO without words shows them.
const SECTIONS: &[(&str, bool, Section)] = &[
    ("Server", true, server),
    ("Clients", true, clients),
    ("Memory", true, memory_section),
    ("Persistence", true, persistence),
    ("Threads", true, threads),
    ("Stats", true, stats),
    ("Replication", true, replication),
    ("CPU", true, cpu),
    ("Modules", true, modules),
    ("Commandstats", false, command_stats),
    ("Errorstats", true, error_stats),
    ("Latencystats", false, latency_stats),
    ("Cluster", true, cluster),
    ("Keyspace", true, keyspace),
];

fn info(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let figures = context.server.host.as_ref().map(|host| host.figures()).unwrap_or_default();
    let mut report = Report { context, figures, text: String::new() };
    for (name, by_default, write) in SECTIONS {
        if !wanted(args, name, *by_default) {
            continue;
        }
        if !report.text.is_empty() {
            report.text.push_str("\r\n");
        }
        let _ = write!(report.text, "# {name}\r\n");
        write(&mut report);
    }
    let text = report.text;
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn wanted(args: &Args<'_>, section: &str, by_default: bool) -> bool {
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if args.len() == 1 {
        return by_default;
    }
    args.tail(1).iter().any(|word| {
        is(word, section)
            || is(word, "everything")
            || (is(word, "all") && section != "Modules")
            || (is(word, "default") && by_default)
    })
}

/// A report in the making.
struct Report<'r, 'c> {
    context: &'r mut Context<'c>,
    figures: HostFigures,
    text: String,
}

impl Report<'_, '_> {
    fn server(&self) -> &Server {
        self.context.server
    }

    fn line(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    /// A number of bytes, and the same for people.
    fn bytes(&mut self, name: &str, bytes: u64) {
        self.line(name, bytes);
        self.line(&format!("{name}_human"), human(bytes));
    }

    fn total(&self, counter: impl Fn(&WorkerStats) -> &Counter) -> u64 {
        self.server().total(|stats| counter(stats).get())
    }
}

/// `bytes` with a unit that fits, as Redis prints it.
pub(super) fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1_024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1_024.0;
    let mut unit = 0;
    while value >= 1_024.0 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    format!("{value:.2}{}", UNITS[unit])
}

fn server(report: &mut Report<'_, '_>) {
    let server = report.context.server;
    let (config, options) = (server.config.current(), &server.options);
    let uptime = server.started.elapsed().as_secs();
    let now = report.context.now();
    report.line("redis_version", crate::REDIS_VERSION);
    report.line("kiln_version", options.version);
    report.line("redis_mode", "standalone");
    let os = report.figures.os.clone();
    report.line("os", os);
    report.line("arch_bits", usize::BITS);
    report.line("monotonic_clock", "POSIX clock_gettime");
    report.line("multiplexing_api", "epoll");
    report.line("process_id", std::process::id());
    report.line("process_supervised", "no");
    report.line("run_id", &server.run_id);
    report.line("tcp_port", config.port);
    report.line("server_time_usec", kiln_base::clock::now_us());
    report.line("uptime_in_seconds", uptime);
    report.line("uptime_in_days", uptime / 86_400);
    report.line("hz", config.hz);
    report.line("configured_hz", config.hz);
    report.line("lru_clock", (now / 1_000) & 0xFF_FFFF);
    report.line("executable", options.executable.display());
    let file = server.config.file().map(|path| path.display().to_string());
    report.line("config_file", file.unwrap_or_default());
    report.line("io_threads_active", 0);
    let mut listeners = 0..;
    let mut listener = |text: String| {
        let name = format!("listener{}", listeners.next().unwrap_or_default());
        report.line(&name, text);
    };
    if config.port != 0 {
        let binds = config.bind.0.join(",bind=");
        listener(format!("name=tcp,bind={binds},port={}", config.port));
    }
    if !config.unixsocket.is_empty() {
        listener(format!("name=unix,bind={}", config.unixsocket));
    }
}

fn clients(report: &mut Report<'_, '_>) {
    let server = report.context.server;
    let all = server.clients.list();
    let most = |figure: &dyn Fn(&kiln_command::clients::Client) -> usize| {
        all.iter().map(|client| figure(client)).max().unwrap_or(0)
    };
    let input = most(&|client| client.query_capacity.load(Ordering::Relaxed));
    let output = most(&|client| client.output_bytes.load(Ordering::Relaxed));
    let watched: Vec<_> = all.iter().map(|client| client.info.lock().watch).collect();
    report.line("connected_clients", all.len());
    report.line("cluster_connections", 0);
    report.line("maxclients", server.config.current().maxclients);
    report.line("client_recent_max_input_buffer", input);
    report.line("client_recent_max_output_buffer", output);
    report.line("blocked_clients", server.clients.blocked_count());
    report.line("tracking_clients", 0);
    report.line("pubsub_clients", 0);
    report.line("watching_clients", watched.iter().filter(|keys| **keys > 0).count());
    report.line("total_watched_keys", watched.iter().sum::<usize>());
}

/// What stands before the data in memory: the process as it started, and its clients' buffers.
pub(super) struct Overhead {
    pub(super) startup: u64,
    pub(super) clients: u64,
}

impl Overhead {
    pub(super) fn of(server: &Server) -> Self {
        let clients = server.clients.list().iter().fold(0, |sum, client| {
            let input = client.query_capacity.load(Ordering::Relaxed);
            let output = client.output_bytes.load(Ordering::Relaxed);
            sum + input + output + size_of_val(&**client)
        });
        Self { startup: server.startup_bytes, clients: clients as u64 }
    }

    pub(super) fn sum(&self) -> u64 {
        self.startup + self.clients
    }
}

/// `part` of `whole`, in percent; everything if there is no whole.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}

pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn memory_section(report: &mut Report<'_, '_>) {
    let server = report.context.server;
    let config = server.config.current();
    let (used, peak) = (memory::used_bytes(), memory::peak_bytes().max(memory::used_bytes()));
    let overhead = Overhead::of(server);
    let dataset = used.saturating_sub(overhead.sum());
    let HostFigures {
        resident_bytes: rss,
        machine_bytes,
        allocated_bytes: allocated,
        active_bytes: active,
        allocator_resident_bytes: resident,
        ..
    } = report.figures;
    report.bytes("used_memory", used);
    report.bytes("used_memory_rss", rss);
    report.bytes("used_memory_peak", peak);
    report.line("used_memory_peak_perc", format!("{:.2}%", percent(used, peak)));
    report.line("used_memory_overhead", overhead.sum());
    report.line("used_memory_startup", overhead.startup);
    report.line("used_memory_dataset", dataset);
    let net = used.saturating_sub(overhead.startup);
    report.line("used_memory_dataset_perc", format!("{:.2}%", percent(dataset.min(net), net)));
    report.line("allocator_allocated", allocated);
    report.line("allocator_active", active);
    report.line("allocator_resident", resident);
    report.bytes("total_system_memory", machine_bytes);
    report.line("used_memory_lua", 0);
    report.bytes("maxmemory", config.maxmemory);
    let policy = text_of(server, "maxmemory-policy");
    report.line("maxmemory_policy", policy);
    report.line("allocator_frag_ratio", format!("{:.2}", ratio(active, allocated)));
    report.line("allocator_frag_bytes", active.saturating_sub(allocated));
    report.line("allocator_rss_ratio", format!("{:.2}", ratio(resident, active)));
    report.line("allocator_rss_bytes", resident as i64 - active as i64);
    report.line("rss_overhead_ratio", format!("{:.2}", ratio(rss, resident)));
    report.line("rss_overhead_bytes", rss as i64 - resident as i64);
    report.line("mem_fragmentation_ratio", format!("{:.2}", ratio(rss, used)));
    report.line("mem_fragmentation_bytes", rss as i64 - used as i64);
    report.line("mem_not_counted_for_evict", 0);
    report.line("mem_replication_backlog", 0);
    report.line("mem_clients_slaves", 0);
    report.line("mem_clients_normal", overhead.clients);
    report.line("mem_cluster_links", 0);
    report.line("mem_aof_buffer", 0);
    report.line("mem_allocator", server.options.allocator);
    report.line("active_defrag_running", 0);
}

/// A directive as CONFIG GET shows it.
fn text_of(server: &Server, name: &str) -> String {
    let (directive, _) = Directive::find(name).expect("a directive by its own name");
    directive.text(&server.config.current())
}

fn persistence(report: &mut Report<'_, '_>) {
    let last_save = report.server().last_save_s.load(Ordering::Relaxed);
    let dirty = report.total(|stats| &stats.dirty);
    report.line("loading", 0);
    report.line("async_loading", 0);
    report.line("rdb_changes_since_last_save", dirty);
    report.line("rdb_bgsave_in_progress", 0);
    report.line("rdb_last_save_time", last_save);
    report.line("rdb_last_bgsave_status", "ok");
    report.line("rdb_last_bgsave_time_sec", -1);
    report.line("rdb_current_bgsave_time_sec", -1);
    report.line("rdb_saves", 0);
    report.line("aof_enabled", 0);
    report.line("aof_rewrite_in_progress", 0);
    report.line("aof_rewrite_scheduled", 0);
    report.line("aof_last_rewrite_time_sec", -1);
    report.line("aof_current_rewrite_time_sec", -1);
    report.line("aof_last_bgrewrite_status", "ok");
    report.line("aof_last_write_status", "ok");
}

fn threads(report: &mut Report<'_, '_>) {
    let server = report.context.server;
    for (index, stats) in server.stats.iter().enumerate() {
        let clients = stats.connections.load(Ordering::Relaxed);
        let commands = stats.commands_processed.get();
        let text = format!("clients={clients},commands={commands}");
        report.line(&format!("worker_{index}"), text);
    }
}

fn stats(report: &mut Report<'_, '_>) {
    let server = report.context.server;
    let [operations, input, output] = server.rates.per_second();
    let kib = |bytes: f64| format!("{:.2}", bytes / 1_024.0);
    let input_bytes = report.total(|stats| &stats.net_input_bytes);
    let output_bytes = report.total(|stats| &stats.net_output_bytes);
    let lines = [
        ("total_connections_received", report.total(|stats| &stats.connections_received)),
        ("total_commands_processed", report.total(|stats| &stats.commands_processed)),
        ("instantaneous_ops_per_sec", operations as u64),
        ("total_net_input_bytes", input_bytes),
        ("total_net_output_bytes", output_bytes),
        ("total_net_repl_input_bytes", 0),
        ("total_net_repl_output_bytes", 0),
    ];
    for (name, value) in lines {
        report.line(name, value);
    }
    report.line("instantaneous_input_kbps", kib(input));
    report.line("instantaneous_output_kbps", kib(output));
    report.line("instantaneous_input_repl_kbps", "0.00");
    report.line("instantaneous_output_repl_kbps", "0.00");
    let lines = [
        ("rejected_connections", server.rejected_connections.load(Ordering::Relaxed)),
        ("sync_full", 0),
        ("sync_partial_ok", 0),
        ("sync_partial_err", 0),
        ("expired_keys", report.total(|stats| &stats.expired_keys)),
        ("evicted_keys", report.total(|stats| &stats.evicted_keys)),
        ("keyspace_hits", report.total(|stats| &stats.keyspace_hits)),
        ("keyspace_misses", report.total(|stats| &stats.keyspace_misses)),
        ("pubsub_channels", 0),
        ("pubsub_patterns", 0),
        ("pubsubshard_channels", 0),
        ("latest_fork_usec", 0),
        ("total_forks", 0),
        ("migrate_cached_sockets", 0),
        ("tracking_total_keys", 0),
        ("tracking_total_items", 0),
        ("tracking_total_prefixes", 0),
        ("total_error_replies", report.total(|stats| &stats.error_replies)),
    ];
    for (name, value) in lines {
        report.line(name, value);
    }
}

fn replication(report: &mut Report<'_, '_>) {
    let run_id = report.server().run_id.clone();
    let backlog = report.server().config.current().repl_backlog_size;
    report.line("role", "master");
    report.line("connected_slaves", 0);
    report.line("master_failover_state", "no-failover");
    report.line("master_replid", run_id);
    report.line("master_replid2", "0".repeat(40));
    report.line("master_repl_offset", 0);
    report.line("second_repl_offset", -1);
    report.line("repl_backlog_active", 0);
    report.line("repl_backlog_size", backlog);
    report.line("repl_backlog_first_byte_offset", 0);
    report.line("repl_backlog_histlen", 0);
}

fn cpu(report: &mut Report<'_, '_>) {
    let (system, user) = (report.figures.system_seconds, report.figures.user_seconds);
    report.line("used_cpu_sys", format!("{system:.6}"));
    report.line("used_cpu_user", format!("{user:.6}"));
    report.line("used_cpu_sys_children", "0.000000");
    report.line("used_cpu_user_children", "0.000000");
}

/// Kiln loads no modules; the section is there for those who look for it.
fn modules(_: &mut Report<'_, '_>) {}

fn command_stats(report: &mut Report<'_, '_>) {
    let server = report.context.server;
    for command in server.commands.iter() {
        let total = |figure: &dyn Fn(&kiln_command::stats::CommandStats) -> &Counter| {
            server.total(|stats| figure(&stats.commands[usize::from(command.id.0)]).get())
        };
        let calls = total(&|stats| &stats.calls);
        let micros = total(&|stats| &stats.nanos) / 1_000;
        let rejected = total(&|stats| &stats.rejected);
        let failed = total(&|stats| &stats.failed);
        if calls + rejected + failed > 0 {
            let text = format!(
                "calls={calls},usec={micros},usec_per_call={:.2},rejected_calls={rejected},\
                 failed_calls={failed}",
                ratio(micros, calls)
            );
            let name = command.spec.name.to_ascii_lowercase();
            report.line(&format!("cmdstat_{name}"), text);
        }
    }
}

fn error_stats(report: &mut Report<'_, '_>) {
    let errors = report.server().errors.list();
    for (code, count) in errors {
        report.line(&format!("errorstat_{code}"), format!("count={count}"));
    }
}

/// How often a command took how long, over all workers; `None` if it has not run.
pub(super) fn histogram(server: &Server, command: CommandId) -> Option<[u64; LATENCY_BUCKETS]> {
    let command = usize::from(command.0);
    if server.total(|stats| stats.commands[command].calls.get()) == 0 {
        return None;
    }
    Some(std::array::from_fn(|bucket| {
        server.total(|stats| stats.commands[command].latency[bucket].get())
    }))
}

fn latency_stats(report: &mut Report<'_, '_>) {
    let server = report.context.server;
    let config = server.config.current();
    if !config.latency_tracking {
        return;
    }
    for command in server.commands.iter() {
        let Some(buckets) = histogram(server, command.id) else { continue };
        let percentiles = &config.latency_tracking_info_percentiles.0;
        let figures: Vec<_> = percentiles
            .iter()
            .map(|p| format!("p{p}={:.3}", percentile(&buckets, *p) as f64 / 1_000.0))
            .collect();
        let name = command.spec.name.to_ascii_lowercase();
        report.line(&format!("latency_percentiles_usec_{name}"), figures.join(","));
    }
}

/// The time in nanoseconds that `percent` of the runs did not exceed.
fn percentile(buckets: &[u64; LATENCY_BUCKETS], percent: f64) -> u64 {
    let runs: u64 = buckets.iter().sum();
    let rank = ((percent / 100.0 * runs as f64).ceil() as u64).clamp(1, runs.max(1));
    let mut seen = 0;
    let found = buckets.iter().position(|count| {
        seen += count;
        seen >= rank
    });
    bucket_end(found.unwrap_or(LATENCY_BUCKETS - 1))
}

fn cluster(report: &mut Report<'_, '_>) {
    report.line("cluster_enabled", 0);
}

fn keyspace(report: &mut Report<'_, '_>) {
    let databases = report.server().keyspace.databases();
    let mut usage = vec![ShardUsage::default(); databases];
    report.context.for_each_shard(|view, shard| {
        for (db, sum) in usage.iter_mut().enumerate() {
            let part = view.shard_usage(shard, db);
            sum.keys += part.keys;
            sum.volatile += part.volatile;
            sum.volatile_hashes += part.volatile_hashes;
            sum.ttl_sum.0 += part.ttl_sum.0;
            sum.ttl_sum.1 += part.ttl_sum.1;
        }
        true
    });
    for (db, usage) in usage.iter().enumerate().filter(|(_, usage)| usage.keys > 0) {
        let (sum, count) = usage.ttl_sum;
        let mean = if count == 0 { 0 } else { sum / count as i64 };
        let text = format!(
            "keys={},expires={},avg_ttl={mean},subexpiry={}",
            usage.keys, usage.volatile, usage.volatile_hashes
        );
        report.line(&format!("db{db}"), text);
    }
}

#[cfg(test)]
mod tests {
    use kiln_command::stats::{LATENCY_BUCKETS, bucket_end, bucket_of};

    use super::{human, percentile};
    use crate::testkit::check;

    #[test]
    fn sizes_for_people() {
        for (bytes, want) in [(0, "0B"), (1_023, "1023B"), (1_024, "1.00K"), (1_536 << 20, "1.50G")]
        {
            assert_eq!(human(bytes), want);
        }
    }

    #[test]
    fn a_percentile_is_the_end_of_its_bucket() {
        let mut buckets = [0; LATENCY_BUCKETS];
        buckets[bucket_of(1_000)] = 99;
        buckets[bucket_of(50_000)] = 1;
        assert_eq!(percentile(&buckets, 50.0), bucket_end(bucket_of(1_000)));
        assert_eq!(percentile(&buckets, 99.0), bucket_end(bucket_of(1_000)));
        assert_eq!(percentile(&buckets, 99.9), bucket_end(bucket_of(50_000)));
    }

    #[test]
    fn databases_with_keys_have_a_line() {
        check(&[
            ("INFO nosuch", "\"\""),
            ("SET a 1", "OK"),
            (
                "INFO keyspace",
                "\"# Keyspace\\r\\ndb0:keys=1,expires=0,avg_ttl=0,subexpiry=0\\r\\n\"",
            ),
            ("INFO cluster", "\"# Cluster\\r\\ncluster_enabled:0\\r\\n\""),
        ]);
    }
}
