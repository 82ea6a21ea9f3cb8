//! Tips: what a command's row does not say of its reply and its routing, as COMMAND INFO gives it
//! to clients of a cluster.
//!
//! Source: the Redis documentation on command tips; values observed on Redis 8.2.3.

/// The tips of the command called `name`, in upper case.
pub(super) fn of(name: &str) -> &'static [&'static str] {
    let found = TIPS.iter().find(|(_, names)| names.contains(&name));
    found.map_or(&[], |(tips, _)| *tips)
}

/// Tips, and the commands that have them.
const TIPS: &[(&[&str], &[&str])] = &[
    (
        &["nondeterministic_output"],
        &[
            "CLIENT|INFO",
            "CLIENT|LIST",
            "CLUSTER|BUMPEPOCH",
            "CLUSTER|COUNT-FAILURE-REPORTS",
            "CLUSTER|GETKEYSINSLOT",
            "CLUSTER|INFO",
            "CLUSTER|LINKS",
            "CLUSTER|MYSHARDID",
            "CLUSTER|NODES",
            "CLUSTER|REPLICAS",
            "CLUSTER|SHARDS",
            "CLUSTER|SLAVES",
            "CLUSTER|SLOTS",
            "DUMP",
            "HPTTL",
            "HRANDFIELD",
            "HSCAN",
            "HTTL",
            "LASTSAVE",
            "MIGRATE",
            "OBJECT|ENCODING",
            "OBJECT|FREQ",
            "OBJECT|IDLETIME",
            "OBJECT|REFCOUNT",
            "PTTL",
            "SPOP",
            "SRANDMEMBER",
            "SSCAN",
            "TIME",
            "TTL",
            "XADD",
            "XAUTOCLAIM",
            "XCLAIM",
            "XINFO|CONSUMERS",
            "XPENDING",
            "XTRIM",
            "ZRANDMEMBER",
            "ZSCAN",
        ],
    ),
    (
        &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
        &[
            "LATENCY|DOCTOR",
            "LATENCY|GRAPH",
            "LATENCY|HISTOGRAM",
            "LATENCY|HISTORY",
            "LATENCY|LATEST",
        ],
    ),
    (&["nondeterministic_output", "request_policy:all_shards"], &["CLUSTER|SLOT-STATS"]),
    (
        &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        &["FUNCTION|STATS", "INFO", "MEMORY|DOCTOR", "MEMORY|MALLOC-STATS", "MEMORY|STATS"],
    ),
    (&["nondeterministic_output", "request_policy:special", "response_policy:special"], &["SCAN"]),
    (
        &["nondeterministic_output_order"],
        &[
            "COMMAND",
            "COMMAND|DOCS",
            "COMMAND|INFO",
            "COMMAND|LIST",
            "FUNCTION|LIST",
            "HGETALL",
            "HKEYS",
            "HVALS",
            "MODULE|LIST",
            "SDIFF",
            "SINTER",
            "SMEMBERS",
            "SUNION",
        ],
    ),
    (&["request_policy:all_nodes", "nondeterministic_output"], &["SLOWLOG|GET"]),
    (&["request_policy:all_nodes", "response_policy:agg_sum"], &["LATENCY|RESET"]),
    (
        &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
        &["SLOWLOG|LEN"],
    ),
    (
        &["request_policy:all_nodes", "response_policy:all_succeeded"],
        &[
            "ACL|DELUSER",
            "ACL|SAVE",
            "ACL|SETUSER",
            "CLIENT|SETINFO",
            "CLIENT|SETNAME",
            "CONFIG|RESETSTAT",
            "CONFIG|REWRITE",
            "CONFIG|SET",
            "SCRIPT|FLUSH",
            "SCRIPT|LOAD",
            "SLOWLOG|RESET",
        ],
    ),
    (&["request_policy:all_shards", "nondeterministic_output_order"], &["KEYS"]),
    (&["request_policy:all_shards", "response_policy:agg_logical_and"], &["SCRIPT|EXISTS"]),
    (&["request_policy:all_shards", "response_policy:agg_min"], &["WAIT", "WAITAOF"]),
    (&["request_policy:all_shards", "response_policy:agg_sum"], &["DBSIZE"]),
    (
        &["request_policy:all_shards", "response_policy:all_succeeded"],
        &[
            "FLUSHALL",
            "FLUSHDB",
            "FUNCTION|DELETE",
            "FUNCTION|FLUSH",
            "FUNCTION|LOAD",
            "FUNCTION|RESTORE",
            "MEMORY|PURGE",
            "PING",
        ],
    ),
    (
        &["request_policy:all_shards", "response_policy:one_succeeded"],
        &["FUNCTION|KILL", "SCRIPT|KILL"],
    ),
    (
        &["request_policy:all_shards", "response_policy:special", "nondeterministic_output"],
        &["RANDOMKEY"],
    ),
    (&["request_policy:multi_shard"], &["MGET"]),
    (
        &["request_policy:multi_shard", "response_policy:agg_sum"],
        &["DEL", "EXISTS", "TOUCH", "UNLINK"],
    ),
    (&["request_policy:multi_shard", "response_policy:all_succeeded"], &["MSET"]),
];
