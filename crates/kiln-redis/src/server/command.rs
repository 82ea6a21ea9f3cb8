//! COMMAND: what the command table says, for clients that ask a server what it can do.
//!
//! Everything here is derived from the rows. Where what a command does to its keys depends on its
//! options (SET, BITFIELD), [`keys_of`] knows more than the specs.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use kiln_base::glob::glob_match;
use kiln_command::args::ArgsExt;
use kiln_command::{
    Args, Arity, BeginSearch, Command, CommandError, CommandFlags, CommandResult, CommandSpec,
    CommandTable, Context, FindKeys, Group, KeyFlags, KeySpec, ReplyWriter,
};

use super::{syntax, tips};
use crate::help;

const FLAGS: CommandFlags = CommandFlags::LOADING.union(CommandFlags::STALE);

const fn row(
    name: &'static str,
    arity: Arity,
    handler: kiln_command::ConnectionHandler,
) -> CommandSpec {
    CommandSpec::connection(name, arity, handler)
        .group(Group::Server)
        .categories(kiln_command::AclCategories::CONNECTION)
        .flags(FLAGS)
}

pub(super) const COMMANDS: &[CommandSpec] = &[
    row("COMMAND", Arity::at_least(1), all).with_subcommands().docs(
        "2.8.13",
        "O(N) with N commands.",
        "",
        "Describe every command.",
    ),
    row("COMMAND|COUNT", Arity::exactly(2), count).docs(
        "2.8.13",
        "O(1)",
        "",
        "Count the commands.",
    ),
    row("COMMAND|LIST", Arity::at_least(2), list).docs(
        "7.0.0",
        "O(N) with N commands.",
        "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
        "List the names of commands.",
    ),
    row("COMMAND|INFO", Arity::at_least(2), info).docs(
        "2.8.13",
        "O(N) with N commands.",
        "[command-name [command-name ...]]",
        "Describe some commands, or every one.",
    ),
    row("COMMAND|DOCS", Arity::at_least(2), docs).docs(
        "7.0.0",
        "O(N) with N commands.",
        "[command-name [command-name ...]]",
        "Document some commands, or every one.",
    ),
    row("COMMAND|GETKEYS", Arity::at_least(3), get_keys).docs(
        "2.8.13",
        "O(N) with N words.",
        "command [arg [arg ...]]",
        "Pick the keys out of a whole command.",
    ),
    row("COMMAND|GETKEYSANDFLAGS", Arity::at_least(3), get_keys_and_flags).docs(
        "7.0.0",
        "O(N) with N words.",
        "command [arg [arg ...]]",
        "Pick the keys out of a whole command, with what it does to each.",
    ),
    row("COMMAND|HELP", Arity::exactly(2), command_help).docs(
        "5.0.0",
        "O(1)",
        "",
        "List the subcommands.",
    ),
];

/// Commands that are no subcommands.
fn top_level(table: &CommandTable) -> Vec<Command> {
    table.iter().filter(|command| command.spec.container_name().is_none()).collect()
}

fn all(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let table = &context.server.commands;
    let commands = top_level(table);
    reply.array(commands.len());
    for command in commands {
        write_info(table, command.spec, reply);
    }
    Ok(())
}

fn count(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.integer(top_level(&context.server.commands).len() as i64);
    Ok(())
}

fn list(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let keep: Box<dyn Fn(&CommandSpec) -> bool> = match args.len() {
        2 => Box::new(|_| true),
        5 if args.is_word(2, "FILTERBY") => {
            let value = args.get(4).to_ascii_lowercase();
            if args.is_word(3, "MODULE") {
                Box::new(|_| false) // Nothing comes from a module.
            } else if args.is_word(3, "ACLCAT") {
                Box::new(move |spec| spec.acl().names().any(|name| name.as_bytes() == value))
            } else if args.is_word(3, "PATTERN") {
                Box::new(move |spec| glob_match(&value, lower(spec.name).as_bytes(), true))
            } else {
                return Err(CommandError::Syntax);
            }
        }
        _ => return Err(CommandError::Syntax),
    };
    let names: Vec<_> = context.server.commands.iter().filter(|row| keep(row.spec)).collect();
    reply.array(names.len());
    for command in names {
        reply.bulk(lower(command.spec.name).as_bytes());
    }
    Ok(())
}

fn info(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if args.len() == 2 {
        return all(context, args, reply);
    }
    let table = &context.server.commands;
    reply.array(args.len() - 2);
    for name in args.tail(2).iter() {
        match table.find(name) {
            Some(command) => write_info(table, command.spec, reply),
            None => reply.null(),
        }
    }
    Ok(())
}

fn docs(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let table = &context.server.commands;
    let commands = if args.len() == 2 {
        top_level(table)
    } else {
        args.tail(2).iter().filter_map(|name| table.find(name)).collect()
    };
    reply.map(commands.len());
    for command in commands {
        reply.bulk(lower(command.spec.name).as_bytes());
        write_docs(table, command.spec, reply);
    }
    Ok(())
}

fn command_help(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    help::write(&context.server.commands, "COMMAND", reply);
    Ok(())
}

fn lower(name: &str) -> String {
    name.to_ascii_lowercase()
}

// INFO

fn write_info(table: &CommandTable, spec: &CommandSpec, reply: &mut ReplyWriter<'_>) {
    reply.array(10);
    reply.bulk(lower(spec.name).as_bytes());
    reply.integer(spec.arity.wire());
    write_names(spec.flags.names(), "", reply);
    let (first, last, step) = legacy_range(spec);
    reply.integer(first);
    reply.integer(last);
    reply.integer(step);
    write_names(spec.acl().names(), "@", reply);
    let tips = tips::of(spec.name);
    reply.set(tips.len());
    for tip in tips {
        reply.bulk(tip.as_bytes());
    }
    reply.set(spec.keys.len());
    spec.keys.iter().for_each(|key| write_key_spec(key, reply));
    let subcommands: Vec<_> = table.subcommands(spec).collect();
    reply.set(subcommands.len());
    for command in subcommands {
        write_info(table, command.spec, reply);
    }
}

fn write_names(
    names: impl Iterator<Item = &'static str>,
    prefix: &str,
    reply: &mut ReplyWriter<'_>,
) {
    let names: Vec<_> = names.collect();
    reply.set(names.len());
    for name in names {
        reply.simple(&format!("{prefix}{name}"));
    }
}

/// The first and last word that is a key, and the distance between two, as clients older than key
/// specs want them: the specs at fixed places, if they follow upon each other.
pub(super) fn legacy_range(spec: &CommandSpec) -> (i64, i64, i64) {
    let mut range: Option<(i64, i64, i64)> = None;
    for key in spec.keys {
        let (BeginSearch::Index(index), FindKeys::Range { last, step, .. }) = (key.begin, key.find)
        else {
            continue;
        };
        let index = i64::from(index);
        let last = if last >= 0 { index + i64::from(last) } else { i64::from(last) };
        range = match range {
            None => Some((index, last, i64::from(step))),
            Some((first, before, 1)) if before == index - 1 && step == 1 => Some((first, last, 1)),
            kept => kept,
        };
    }
    range.unwrap_or_default()
}

fn write_key_spec(spec: &KeySpec, reply: &mut ReplyWriter<'_>) {
    reply.map(3);
    reply.bulk(b"flags");
    write_names(spec.flags.names(), "", reply);
    reply.bulk(b"begin_search");
    match spec.begin {
        BeginSearch::Index(index) => write_step("index", &[("index", index)], reply),
        BeginSearch::Keyword(word, from) => {
            reply.map(2);
            reply.bulk(b"type");
            reply.bulk(b"keyword");
            reply.bulk(b"spec");
            reply.map(2);
            reply.bulk(b"keyword");
            reply.bulk(word.as_bytes());
            reply.bulk(b"startfrom");
            reply.integer(i64::from(from));
        }
        BeginSearch::Unknown => write_step("unknown", &[], reply),
    }
    reply.bulk(b"find_keys");
    match spec.find {
        FindKeys::Range { last, step, limit } => {
            write_step("range", &[("lastkey", last), ("keystep", step), ("limit", limit)], reply);
        }
        FindKeys::KeyNum { keynum, first, step } => {
            let numbers = [("keynumidx", keynum), ("firstkey", first), ("keystep", step)];
            write_step("keynum", &numbers, reply);
        }
        FindKeys::Unknown => write_step("unknown", &[], reply),
    }
}

/// One step of the search for keys: its kind and its numbers.
fn write_step(kind: &str, numbers: &[(&str, i16)], reply: &mut ReplyWriter<'_>) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(i64::from(*number));
    }
}

// DOCS

fn write_docs(table: &CommandTable, spec: &CommandSpec, reply: &mut ReplyWriter<'_>) {
    let arguments = syntax::parse(spec.syntax);
    let subcommands: Vec<_> = table.subcommands(spec).collect();
    let optional = usize::from(!arguments.is_empty()) + usize::from(!subcommands.is_empty());
    reply.map(4 + optional);
    for (name, text) in [
        ("summary", spec.summary),
        ("since", spec.since),
        ("group", spec.group.name()),
        ("complexity", spec.complexity),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    if !arguments.is_empty() {
        reply.bulk(b"arguments");
        write_arguments(&arguments, &mut KeyIndex { next: 0, specs: spec.keys.len() }, reply);
    }
    if !subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(subcommands.len());
        for command in subcommands {
            reply.bulk(lower(command.spec.name).as_bytes());
            write_docs(table, command.spec, reply);
        }
    }
}

/// Gives the arguments that are keys their key specs, in order.
struct KeyIndex {
    next: usize,
    specs: usize,
}

impl KeyIndex {
    fn take(&mut self) -> Option<i64> {
        let last = self.specs.checked_sub(1)?;
        let index = self.next.min(last);
        self.next += 1;
        Some(index as i64)
    }
}

fn write_arguments(
    arguments: &[syntax::Argument],
    keys: &mut KeyIndex,
    reply: &mut ReplyWriter<'_>,
) {
    reply.array(arguments.len());
    for argument in arguments {
        write_argument(argument, keys, reply);
    }
}

fn write_argument(argument: &syntax::Argument, keys: &mut KeyIndex, reply: &mut ReplyWriter<'_>) {
    let deferred = reply.deferred();
    let mut pairs = 2;
    reply.bulk(b"name");
    reply.bulk(argument.name.as_bytes());
    reply.bulk(b"type");
    reply.bulk(argument.kind.name().as_bytes());
    if argument.children.is_empty() {
        pairs += 1;
        reply.bulk(b"display_text");
        reply.bulk(argument.name.as_bytes());
    }
    if argument.kind == syntax::Kind::Key
        && let Some(index) = keys.take()
    {
        pairs += 1;
        reply.bulk(b"key_spec_index");
        reply.integer(index);
    }
    if let Some(token) = &argument.token {
        pairs += 1;
        reply.bulk(b"token");
        reply.bulk(token.as_bytes());
    }
    let flags: Vec<_> = [
        ("optional", argument.optional),
        ("multiple", argument.multiple),
        ("multiple_token", argument.multiple_token),
    ]
    .into_iter()
    .filter_map(|(name, set)| set.then_some(name))
    .collect();
    if !flags.is_empty() {
        pairs += 1;
        reply.bulk(b"flags");
        write_names(flags.into_iter(), "", reply);
    }
    if !argument.children.is_empty() {
        pairs += 1;
        reply.bulk(b"arguments");
        write_arguments(&argument.children, keys, reply);
    }
    reply.finish_map(deferred, pairs);
}

// GETKEYS

fn get_keys(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let words = args.tail(2);
    let keys = find_keys(&context.server.commands, &words)?;
    reply.array(keys.len());
    for (index, _) in keys {
        reply.bulk(words.get(index));
    }
    Ok(())
}

fn get_keys_and_flags(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let words = args.tail(2);
    let keys = find_keys(&context.server.commands, &words)?;
    reply.array(keys.len());
    for (index, flags) in keys {
        reply.array(2);
        reply.bulk(words.get(index));
        write_names(flags.names(), "", reply);
    }
    Ok(())
}

type Keys = Vec<(usize, KeyFlags)>;

fn find_keys(table: &CommandTable, words: &Args<'_>) -> Result<Keys, CommandError> {
    let resolved = table.resolve(words);
    if let Err(CommandError::UnknownCommand { .. } | CommandError::UnknownSubcommand { .. }) =
        resolved
    {
        return Err(CommandError::text("ERR Invalid command specified"));
    }
    let has_keys =
        |spec: &CommandSpec| spec.keys.iter().any(|key| !key.flags.contains(KeyFlags::NOT_KEY));
    let command = match resolved {
        Ok(command) => command,
        // The arity does not fit; whether the command has keys at all is said first.
        Err(_) if named(table, words).is_some_and(has_keys) => {
            return Err(CommandError::text(
                "ERR Invalid number of arguments specified for command",
            ));
        }
        Err(_) => return Err(CommandError::text("ERR The command has no key arguments")),
    };
    if !has_keys(command.spec) {
        return Err(CommandError::text("ERR The command has no key arguments"));
    }
    match keys_of(command.spec, words) {
        Some(keys) => Ok(keys),
        None if command.spec.flags.contains(CommandFlags::NO_MANDATORY_KEYS) => Ok(Vec::new()),
        None => Err(CommandError::text("ERR Invalid arguments specified for command")),
    }
}

/// The row that `words` name, whatever their number.
fn named(table: &CommandTable, words: &Args<'_>) -> Option<&'static CommandSpec> {
    let spec = table.find(words.get(0))?.spec;
    let Some(sub) = words.try_get(1).filter(|_| spec.has_subcommands) else { return Some(spec) };
    let name = [spec.name.as_bytes(), b"|", sub].concat();
    table.find(&name).map(|command| command.spec)
}

/// The keys of a whole command and what it does to them; `None` if its words make no sense.
fn keys_of(spec: &CommandSpec, words: &Args<'_>) -> Option<Keys> {
    let mut keys = Vec::new();
    if let Some(find) = spec.key_finder {
        find(words, &mut |index, flags| keys.push((index, flags)));
        return Some(keys);
    }
    for key in spec.keys {
        if let BeginSearch::Keyword(..) = key.begin
            && key.positions(words).is_none()
        {
            continue; // An option that is not there.
        }
        if key.begin == BeginSearch::Unknown || key.find == FindKeys::Unknown {
            continue;
        }
        let (first, end, step) = key.positions(words)?;
        let flags = key.flags;
        keys.extend((first..end).step_by(step.max(1)).map(|index| (index, flags)));
    }
    let all = match spec.name {
        "SET" if words.tail(3).iter().any(|word| word.eq_ignore_ascii_case(b"GET")) => READ_WRITE,
        "SET" => KeyFlags::OW | KeyFlags::UPDATE,
        "BITFIELD" if bitfield_writes(words) => READ_WRITE,
        "BITFIELD" => KeyFlags::RO | KeyFlags::ACCESS,
        _ => return Some(keys),
    };
    for (_, flags) in &mut keys {
        *flags = all;
    }
    Some(keys)
}

const READ_WRITE: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE);

fn bitfield_writes(words: &Args<'_>) -> bool {
    let mut at = 2;
    while at < words.len() {
        if words.is_word(at, "GET") {
            at += 3;
        } else if words.is_word(at, "OVERFLOW") {
            at += 2;
        } else {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn keys_are_picked_out_of_commands() {
        check(&[
            ("COMMAND GETKEYS GET k", "1) \"k\""),
            (
                "COMMAND GETKEYS GET",
                "(error) ERR Invalid number of arguments specified for command",
            ),
            ("COMMAND GETKEYS PING", "(error) ERR The command has no key arguments"),
            ("COMMAND GETKEYS CONFIG GET x", "(error) ERR The command has no key arguments"),
            ("COMMAND GETKEYS NOSUCH k", "(error) ERR Invalid command specified"),
            ("COMMAND GETKEYS DEL a b", "1) \"a\"\n2) \"b\""),
        ]);
    }

    #[test]
    fn commands_are_listed_by_pattern_and_category() {
        check(&[
            ("COMMAND LIST FILTERBY PATTERN mul*", "1) \"multi\""),
            ("COMMAND LIST FILTERBY ACLCAT nosuch", "(empty array)"),
            ("COMMAND LIST FILTERBY BOGUS x", "(error) ERR syntax error"),
            ("COMMAND BOGUS", "(error) ERR unknown subcommand 'BOGUS'. Try COMMAND HELP."),
        ]);
    }
}
