//! ROLE, REPLICAOF, SLAVEOF, REPLCONF, PSYNC, SYNC and FAILOVER, of a server without replicas.
//!
//! Kiln does not replicate yet: what would start it is refused; what only asks or prepares is
//! answered as by a master whom nobody follows.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::number::parse_i64;
use kiln_command::args::ArgsExt;
use kiln_command::{
    AclCategories, Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Context,
    Group, ReplyWriter,
};

use super::OPERATOR;

const MASTER_CHANGE: CommandFlags = CommandFlags::ADMIN
    .union(CommandFlags::NOSCRIPT)
    .union(CommandFlags::STALE)
    .union(CommandFlags::NO_ASYNC_LOADING);
const FEED: CommandFlags = CommandFlags::ADMIN
    .union(CommandFlags::NOSCRIPT)
    .union(CommandFlags::NO_ASYNC_LOADING)
    .union(CommandFlags::NO_MULTI);

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::connection("ROLE", Arity::exactly(1), role)
        .group(Group::Server)
        .categories(AclCategories::ADMIN.union(AclCategories::DANGEROUS))
        .flags(
            CommandFlags::NOSCRIPT
                .union(CommandFlags::LOADING)
                .union(CommandFlags::STALE)
                .union(CommandFlags::FAST),
        )
        .docs("2.8.12", "O(1)", "", "Tell whether the server is a master, and of whom."),
    replica_of("REPLICAOF", "5.0.0"),
    replica_of("SLAVEOF", "1.0.0"),
    CommandSpec::connection("REPLCONF", Arity::at_least(1), repl_conf)
        .group(Group::Server)
        .flags(OPERATOR.union(CommandFlags::ALLOW_BUSY))
        .docs(
            "3.0.0",
            "O(1)",
            "[option value [option value ...]]",
            "What a replica says of itself to its master.",
        ),
    feed("PSYNC", Arity::at_least(3), "2.8.0", "replicationid offset"),
    feed("SYNC", Arity::exactly(1), "1.0.0", ""),
    CommandSpec::connection("FAILOVER", Arity::at_least(1), failover)
        .group(Group::Server)
        .flags(CommandFlags::ADMIN.union(CommandFlags::NOSCRIPT).union(CommandFlags::STALE))
        .docs(
            "6.2.0",
            "O(1)",
            "[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]",
            "Change places with a replica.",
        ),
];

const fn replica_of(name: &'static str, since: &'static str) -> CommandSpec {
    CommandSpec::connection(name, Arity::exactly(3), follow)
        .group(Group::Server)
        .flags(MASTER_CHANGE)
        .docs(since, "O(1)", "<host port | NO ONE>", "Follow another server, or none.")
}

const fn feed(
    name: &'static str,
    arity: Arity,
    since: &'static str,
    syntax: &'static str,
) -> CommandSpec {
    CommandSpec::connection(name, arity, sync).group(Group::Server).flags(FEED).docs(
        since,
        "O(1)",
        syntax,
        "Ask for the data and every change from now on.",
    )
}

fn role(_: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(0);
    reply.empty_array();
    Ok(())
}

fn follow(_: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if args.is_word(1, "NO") && args.is_word(2, "ONE") {
        reply.ok(); // It follows none anyway.
        return Ok(());
    }
    if parse_i64(args.get(2)).is_none_or(|port| !(0..=65_535).contains(&port)) {
        return Err(CommandError::text("ERR Invalid master port"));
    }
    Err(CommandError::text("ERR Kiln cannot follow another server yet"))
}

fn repl_conf(_: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    for at in (1..args.len()).step_by(2) {
        if args.is_word(at, "LISTENING-PORT") {
            args.int(at + 1)?;
        } else if args.is_word(at, "ACK") || args.is_word(at, "GETACK") {
            return Ok(()); // Not answered, whoever says it.
        } else if !["IP-ADDRESS", "CAPA", "RDB-ONLY"].iter().any(|word| args.is_word(at, word)) {
            let option = String::from_utf8_lossy(args.get(at));
            return Err(CommandError::owned(format!("ERR Unrecognized REPLCONF option: {option}")));
        }
    }
    reply.ok();
    Ok(())
}

fn sync(_: &mut Context<'_>, _: &Args<'_>, _: &mut ReplyWriter<'_>) -> CommandResult {
    Err(CommandError::text("ERR Kiln cannot feed replicas yet"))
}

fn failover(_: &mut Context<'_>, args: &Args<'_>, _: &mut ReplyWriter<'_>) -> CommandResult {
    let (mut at, mut abort, mut others) = (1, false, false);
    let mut seen: Vec<&str> = Vec::new();
    while at < args.len() {
        let option = ["ABORT", "FORCE", "TIMEOUT", "TO"]
            .into_iter()
            .find(|option| args.is_word(at, option))
            .filter(|option| !seen.contains(option))
            .ok_or(CommandError::Syntax)?;
        seen.push(option);
        match option {
            "ABORT" => abort = true,
            "FORCE" => others = true,
            "TIMEOUT" if at + 1 < args.len() => {
                if args.int(at + 1)? <= 0 {
                    return Err(CommandError::text("ERR FAILOVER timeout must be greater than 0"));
                }
                (others, at) = (true, at + 1);
            }
            "TO" if at + 2 < args.len() => {
                args.int(at + 2)?;
                (others, at) = (true, at + 2);
            }
            _ => return Err(CommandError::Syntax),
        }
        at += 1;
    }
    match (abort, others) {
        (true, true) => Err(CommandError::Syntax),
        (true, false) => Err(CommandError::text("ERR No failover in progress.")),
        (false, _) => Err(CommandError::text("ERR FAILOVER requires connected replicas.")),
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn a_server_without_replicas_says_so() {
        check(&[
            ("ROLE", "1) \"master\"\n2) (integer) 0\n3) (empty array)"),
            ("REPLICAOF NO ONE", "OK"),
            ("REPLICAOF localhost abc", "(error) ERR Invalid master port"),
            ("REPLCONF capa eof", "OK"),
            ("REPLCONF BOGUS x", "(error) ERR Unrecognized REPLCONF option: BOGUS"),
            ("FAILOVER", "(error) ERR FAILOVER requires connected replicas."),
            ("FAILOVER ABORT", "(error) ERR No failover in progress."),
            ("FAILOVER TO a b", "(error) ERR value is not an integer or out of range"),
            ("FAILOVER TIMEOUT 0", "(error) ERR FAILOVER timeout must be greater than 0"),
            ("FAILOVER BOGUS", "(error) ERR syntax error"),
        ]);
    }
}
