//! CONFIG: the configuration of the running server.
//!
//! What a directive is and which values it takes is `kiln_command::config`'s; here is what a change
//! does at once. Everything else is read by whom it concerns when it next looks.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

use std::path::Path;

use kiln_base::sync::atomic::Ordering;
use kiln_command::config::{Config, ConfigError};
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Context, Group,
    ReplyWriter, Server, echo,
};

use super::{OPERATOR, is_local};
use crate::help;

/// Directives that act when the server starts, although Redis lets them change later.
const NEED_RESTART: [&str; 2] = ["port", "bind"];

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::container("CONFIG").group(Group::Server).docs(
        "2.0.0",
        "Depends on the subcommand.",
        "",
        "The configuration of the running server.",
    ),
    CommandSpec::connection("CONFIG|GET", Arity::at_least(3), get)
        .group(Group::Server)
        .flags(OPERATOR)
        .docs(
            "2.0.0",
            "O(N) with N parameters.",
            "parameter [parameter ...]",
            "Return the values of the parameters that match the patterns.",
        ),
    CommandSpec::connection("CONFIG|SET", Arity::at_least(4), set)
        .group(Group::Server)
        .flags(OPERATOR)
        .docs(
            "2.0.0",
            "O(N) with N parameters.",
            "parameter value [parameter value ...]",
            "Set parameters, all or none of them.",
        ),
    CommandSpec::connection("CONFIG|RESETSTAT", Arity::exactly(2), reset_stat)
        .group(Group::Server)
        .flags(OPERATOR)
        .docs("2.0.0", "O(1)", "", "Start the statistics of INFO anew."),
    CommandSpec::connection("CONFIG|REWRITE", Arity::exactly(2), rewrite)
        .group(Group::Server)
        .flags(OPERATOR)
        .docs("2.8.0", "O(1)", "", "Bring the configuration file up to date."),
    CommandSpec::connection("CONFIG|HELP", Arity::exactly(2), config_help)
        .group(Group::Server)
        .flags(CommandFlags::LOADING.union(CommandFlags::STALE))
        .docs("5.0.0", "O(1)", "", "List the subcommands."),
];

fn get(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let patterns: Vec<_> = args.tail(2).iter().collect();
    let found = context.server.config.get(&patterns);
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    Ok(())
}

fn set(context: &mut Context<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let pairs: Vec<_> =
        (2..args.len()).step_by(2).map(|at| (args.get(at), args.get(at + 1))).collect();
    let server = context.server;
    let local = is_local(&context.session.client);
    let apply =
        |old: &Config, new: &mut Config, names: &[&'static str]| apply(server, old, new, names);
    server.config.set(&pairs, local, apply).map_err(|error| {
        let ConfigError::Refused { name, reason } = &error else { return refused(&error) };
        // What is refused whatever the value is named as it was typed.
        let reason = reason.to_string();
        if !(reason.starts_with("can't set") || reason == "duplicate parameter") {
            return refused(&error);
        }
        let is_name = |(word, _): &&(&[u8], &[u8])| word.eq_ignore_ascii_case(name.as_bytes());
        let mut typed = pairs.iter().filter(is_name);
        let typed = if reason == "duplicate parameter" { typed.next_back() } else { typed.next() };
        let typed = typed.map_or_else(|| (*name).to_owned(), |(word, _)| echo(word));
        let text = format!("ERR {error}");
        CommandError::owned(text.replacen(&format!("'{name}'"), &format!("'{typed}'"), 1))
    })?;
    context.worker.refresh(server);
    reply.ok();
    Ok(())
}

/// Does what `names`, which are about to change from `old` to `new`, take at once.
fn apply(
    server: &Server,
    old: &Config,
    new: &mut Config,
    names: &[&'static str],
) -> Result<(), ConfigError> {
    let refused =
        |name, reason: &str| Err(ConfigError::Refused { name, reason: reason.to_owned().into() });
    for &name in names {
        if NEED_RESTART.contains(&name) && (old.port, &old.bind) != (new.port, &new.bind) {
            return refused(name, "Kiln listens where it did when it started; restart it for that");
        }
        if name == "appendonly" && new.appendonly && !old.appendonly {
            return refused(name, "Kiln has no append only file yet");
        }
    }
    if names.contains(&"maxclients")
        && let Some(host) = &server.host
        && let Err(possible) = host.allow_clients(new.maxclients)
    {
        return refused(
            "maxclients",
            &format!(
                "The operating system is not able to handle the specified number of clients, try \
                 with {possible}"
            ),
        );
    }
    // The last step that can fail, since it is the one that cannot be taken back.
    if names.contains(&"dir") {
        let Some(files) = &server.files else {
            return refused("dir", "this server has no file system");
        };
        match files.change_dir(Path::new(&new.dir)) {
            Ok(dir) => new.dir = dir.to_string_lossy().into_owned(),
            Err(error) => return refused("dir", &error_text(&error)),
        }
    }
    Ok(())
}

/// What the system says, without the number that Rust puts behind it.
fn error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn refused(error: &ConfigError) -> CommandError {
    CommandError::owned(format!("ERR {error}"))
}

fn reset_stat(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let server = context.server;
    server.stats.iter().for_each(|stats| stats.reset());
    server.errors.reset();
    server.rates.reset();
    server.rejected_connections.store(0, Ordering::Relaxed);
    reply.ok();
    Ok(())
}

fn rewrite(context: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let server = context.server;
    let (Some(files), Some(_)) = (&server.files, server.config.file()) else {
        return Err(refused(&ConfigError::NoFile));
    };
    let config = server.config.current();
    let users: Vec<_> =
        config.users.iter().map(|words| format!("user {}", words.join(" "))).collect();
    server.config.rewrite(&**files, &users).map_err(|error| refused(&error))?;
    reply.ok();
    Ok(())
}

fn config_help(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    help::write(&context.server.commands, "CONFIG", reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn a_change_is_whole_or_refused() {
        check(&[
            ("CONFIG SET maxmemory 100mb timeout 5", "OK"),
            ("CONFIG GET maxmemory", "1) \"maxmemory\"\n2) \"104857600\""),
            (
                "CONFIG SET timeout 7 hz abc",
                "(error) ERR CONFIG SET failed (possibly related to argument 'hz') - argument \
                 couldn't be parsed into an integer",
            ),
            ("CONFIG GET timeout", "1) \"timeout\"\n2) \"5\""),
            ("CONFIG SET timeout 1 hz", "(error) ERR syntax error"),
            ("CONFIG GET nosuch", "(empty array)"),
        ]);
    }

    #[test]
    fn listeners_do_not_move() {
        check(&[
            ("CONFIG SET port 6379", "OK"),
            (
                "CONFIG SET port 6380",
                "(error) ERR CONFIG SET failed (possibly related to argument 'port') - Kiln \
                 listens where it did when it started; restart it for that",
            ),
            ("CONFIG REWRITE", "(error) ERR The server is running without a config file"),
            ("CONFIG RESETSTAT", "OK"),
        ]);
    }
}
