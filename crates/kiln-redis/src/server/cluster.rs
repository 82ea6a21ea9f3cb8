//! CLUSTER, READONLY, READWRITE and ASKING, on a server whose cluster mode is off.
//!
//! The rows are here so that arity errors, COMMAND and ACL categories are those of Redis; whoever
//! calls one hears that there is no cluster.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_command::{
    AclCategories, Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Context,
    Group, ReplyWriter,
};

/// For operators, changing the cluster.
const CHANGE: CommandFlags =
    CommandFlags::ADMIN.union(CommandFlags::STALE).union(CommandFlags::NO_ASYNC_LOADING);
/// For operators, looking only.
const WATCH: CommandFlags = CommandFlags::ADMIN.union(CommandFlags::STALE);
/// For every client.
const LOOK: CommandFlags = CommandFlags::STALE;
/// For every client, at any time.
const ALWAYS: CommandFlags = CommandFlags::LOADING.union(CommandFlags::STALE);
/// Of the connection.
const SWITCH: CommandFlags = ALWAYS.union(CommandFlags::FAST);

const EXACTLY_2: Arity = Arity::exactly(2);
const EXACTLY_3: Arity = Arity::exactly(3);
const EXACTLY_4: Arity = Arity::exactly(4);
const FROM_2: Arity = Arity::at_least(2);
const FROM_3: Arity = Arity::at_least(3);
const FROM_4: Arity = Arity::at_least(4);

#[rustfmt::skip] // One row, one line.
pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::container("CLUSTER").group(Group::Cluster)
        .docs("3.0.0", "Depends on the subcommand.", "", "The cluster that the server is part of."),
    row("CLUSTER|ADDSLOTS", FROM_3, CHANGE, "3.0.0", "slot [slot ...]", "Take slots."),
    row("CLUSTER|ADDSLOTSRANGE", FROM_4, CHANGE, "7.0.0",
        "start-slot end-slot [start-slot end-slot ...]", "Take ranges of slots."),
    row("CLUSTER|BUMPEPOCH", EXACTLY_2, CHANGE, "3.0.0", "", "Raise the node's epoch."),
    row("CLUSTER|COUNT-FAILURE-REPORTS", EXACTLY_3, WATCH, "3.0.0", "node-id",
        "Count the reports that a node has failed."),
    row("CLUSTER|COUNTKEYSINSLOT", EXACTLY_3, LOOK, "3.0.0", "slot", "Count the keys of a slot."),
    row("CLUSTER|DELSLOTS", FROM_3, CHANGE, "3.0.0", "slot [slot ...]", "Give slots up."),
    row("CLUSTER|DELSLOTSRANGE", FROM_4, CHANGE, "7.0.0",
        "start-slot end-slot [start-slot end-slot ...]", "Give ranges of slots up."),
    row("CLUSTER|FAILOVER", FROM_2, CHANGE, "3.0.0", "[FORCE | TAKEOVER]",
        "Put the replica in the place of its master."),
    row("CLUSTER|FLUSHSLOTS", EXACTLY_2, CHANGE, "3.0.0", "", "Give every slot up."),
    row("CLUSTER|FORGET", EXACTLY_3, CHANGE, "3.0.0", "node-id", "Remove a node from the table."),
    row("CLUSTER|GETKEYSINSLOT", EXACTLY_4, LOOK, "3.0.0", "slot count", "List keys of a slot."),
    row("CLUSTER|HELP", EXACTLY_2, ALWAYS, "5.0.0", "", "List the subcommands."),
    row("CLUSTER|INFO", EXACTLY_2, LOOK, "3.0.0", "", "Report the state of the cluster."),
    row("CLUSTER|KEYSLOT", EXACTLY_3, LOOK, "3.0.0", "key", "Compute the slot of a key."),
    row("CLUSTER|LINKS", EXACTLY_2, LOOK, "7.0.0", "", "List the links to other nodes."),
    row("CLUSTER|MEET", FROM_4, CHANGE, "3.0.0", "ip port [cluster-bus-port]",
        "Join a node's cluster."),
    row("CLUSTER|MYID", EXACTLY_2, LOOK, "3.0.0", "", "Tell the node's id."),
    row("CLUSTER|MYSHARDID", EXACTLY_2, LOOK, "7.2.0", "", "Tell the id of the node's shard."),
    row("CLUSTER|NODES", EXACTLY_2, LOOK, "3.0.0", "", "List the nodes, as in the node file."),
    row("CLUSTER|REPLICAS", EXACTLY_3, WATCH, "5.0.0", "node-id", "List a master's replicas."),
    row("CLUSTER|REPLICATE", EXACTLY_3, CHANGE, "3.0.0", "node-id", "Become a node's replica."),
    row("CLUSTER|RESET", FROM_2, WATCH.union(CommandFlags::NOSCRIPT), "3.0.0", "[HARD | SOFT]",
        "Leave the cluster."),
    row("CLUSTER|SAVECONFIG", EXACTLY_2, CHANGE, "3.0.0", "", "Write the node file."),
    row("CLUSTER|SET-CONFIG-EPOCH", EXACTLY_3, CHANGE, "3.0.0", "config-epoch",
        "Set the epoch of a new node."),
    row("CLUSTER|SETSLOT", FROM_4, CHANGE, "3.0.0",
        "slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>",
        "Say where a slot is, or where it moves."),
    row("CLUSTER|SHARDS", EXACTLY_2, ALWAYS, "7.0.0", "", "List the slots with their nodes."),
    row("CLUSTER|SLAVES", EXACTLY_3, WATCH, "3.0.0", "node-id", "List a master's replicas."),
    row("CLUSTER|SLOT-STATS", FROM_4, ALWAYS, "8.2.0",
        "<SLOTSRANGE start-slot end-slot | ORDERBY metric [LIMIT limit] [ASC | DESC]>",
        "Report the usage of slots."),
    row("CLUSTER|SLOTS", EXACTLY_2, ALWAYS, "3.0.0", "", "List the slots with their nodes."),
    switch("READONLY", SWITCH, "Allow reads from a replica."),
    switch("READWRITE", SWITCH, "Allow no reads from a replica."),
    switch("ASKING", CommandFlags::FAST, "Allow the next command on a slot that moves here."),
];

const fn row(
    name: &'static str,
    arity: Arity,
    flags: CommandFlags,
    since: &'static str,
    syntax: &'static str,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec::connection(name, arity, no_cluster).group(Group::Cluster).flags(flags).docs(
        since,
        "O(1) while there is no cluster.",
        syntax,
        summary,
    )
}

const fn switch(name: &'static str, flags: CommandFlags, summary: &'static str) -> CommandSpec {
    row(name, Arity::exactly(1), flags, "3.0.0", "", summary).categories(AclCategories::CONNECTION)
}

fn no_cluster(_: &mut Context<'_>, _: &Args<'_>, _: &mut ReplyWriter<'_>) -> CommandResult {
    Err(CommandError::text("ERR This instance has cluster support disabled"))
}
