//! TIME, LASTSAVE, SAVE, BGSAVE, BGREWRITEAOF, SHUTDOWN, MODULE and LOLWUT: the process itself.
//!
//! Kiln does not write to disk yet, so what would save is refused: an OK would be a lie about
//! somebody's data.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3. The picture is our own.

use kiln_base::clock::now_us;
use kiln_base::sync::atomic::Ordering;
use kiln_command::args::ArgsExt;
use kiln_command::{
    AclCategories, Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec,
    ConnectionHandler, Context, Group, ReplyWriter,
};

use super::{OPERATOR, lets_pass};
use crate::help;

const ALWAYS: CommandFlags = CommandFlags::LOADING.union(CommandFlags::STALE);
const SAVING: CommandFlags =
    CommandFlags::ADMIN.union(CommandFlags::NOSCRIPT).union(CommandFlags::NO_ASYNC_LOADING);

const NO_DISK: CommandError = CommandError::text("ERR Kiln cannot save to disk yet");

pub(super) const COMMANDS: &[CommandSpec] = &[
    CommandSpec::connection("TIME", Arity::exactly(1), time)
        .group(Group::Server)
        .flags(ALWAYS.union(CommandFlags::FAST))
        .docs("2.6.0", "O(1)", "", "Tell the server's time in seconds and microseconds."),
    CommandSpec::connection("LASTSAVE", Arity::exactly(1), last_save)
        .group(Group::Server)
        .categories(AclCategories::ADMIN.union(AclCategories::DANGEROUS))
        .flags(ALWAYS.union(CommandFlags::FAST))
        .docs("1.0.0", "O(1)", "", "Tell when the data was last saved."),
    saving("SAVE", Arity::exactly(1), save).flags(CommandFlags::NO_MULTI).docs(
        "1.0.0",
        "O(N) with N keys.",
        "",
        "Save the data, and let everybody wait.",
    ),
    saving("BGSAVE", Arity::at_least(1), bg_save).docs(
        "1.0.0",
        "O(1); the saving goes on behind.",
        "[SCHEDULE]",
        "Save the data in the background.",
    ),
    saving("BGREWRITEAOF", Arity::exactly(1), save).docs(
        "1.0.0",
        "O(1); the writing goes on behind.",
        "",
        "Write the append only file anew, in the background.",
    ),
    CommandSpec::connection("SHUTDOWN", Arity::at_least(1), shutdown)
        .group(Group::Server)
        .flags(OPERATOR.union(CommandFlags::NO_MULTI).union(CommandFlags::ALLOW_BUSY))
        .docs("1.0.0", "O(1)", "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]", "Stop the server."),
    CommandSpec::connection("LOLWUT", Arity::at_least(1), lolwut)
        .group(Group::Server)
        .flags(CommandFlags::READONLY.union(CommandFlags::FAST))
        .docs("5.0.0", "O(1)", "[VERSION version]", "Draw a picture."),
    CommandSpec::container("MODULE").group(Group::Server).docs(
        "4.0.0",
        "Depends on the subcommand.",
        "",
        "Loadable modules, of which Kiln has none.",
    ),
    CommandSpec::connection("MODULE|LIST", Arity::exactly(2), module_list)
        .group(Group::Server)
        .flags(CommandFlags::ADMIN.union(CommandFlags::NOSCRIPT))
        .docs("4.0.0", "O(1)", "", "List the modules."),
    saving("MODULE|LOAD", Arity::at_least(3), module_load).docs(
        "4.0.0",
        "O(1)",
        "path [arg [arg ...]]",
        "Load a module, which Kiln refuses.",
    ),
    saving("MODULE|LOADEX", Arity::at_least(3), module_load).docs(
        "7.0.0",
        "O(1)",
        "path [CONFIG name value [CONFIG name value ...]] [ARGS arg [arg ...]]",
        "Load a module with settings, which Kiln refuses.",
    ),
    saving("MODULE|UNLOAD", Arity::exactly(3), module_load).docs(
        "4.0.0",
        "O(1)",
        "name",
        "Unload a module, which Kiln refuses.",
    ),
    CommandSpec::connection("MODULE|HELP", Arity::exactly(2), module_help)
        .group(Group::Server)
        .flags(ALWAYS)
        .docs("5.0.0", "O(1)", "", "List the subcommands."),
];

const fn saving(name: &'static str, arity: Arity, handler: ConnectionHandler) -> CommandSpec {
    CommandSpec::connection(name, arity, handler).group(Group::Server).flags(SAVING)
}

fn time(_: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let now = now_us();
    reply.array(2);
    reply.bulk_integer(now / 1_000_000);
    reply.bulk_integer(now % 1_000_000);
    Ok(())
}

fn last_save(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    reply.integer(context.server.last_save_s.load(Ordering::Relaxed));
    Ok(())
}

fn save(_: &mut Context<'_>, _: &Args<'_>, _: &mut ReplyWriter<'_>) -> CommandResult {
    Err(NO_DISK)
}

fn bg_save(_: &mut Context<'_>, args: &Args<'_>, _: &mut ReplyWriter<'_>) -> CommandResult {
    match args.len() {
        1 => Err(NO_DISK),
        2 if args.is_word(1, "SCHEDULE") => Err(NO_DISK),
        _ => Err(CommandError::Syntax),
    }
}

fn shutdown(context: &mut Context<'_>, args: &Args<'_>, _: &mut ReplyWriter<'_>) -> CommandResult {
    let (mut save, mut nosave, mut abort) = (false, false, false);
    for at in 1..args.len() {
        if args.is_word(at, "NOSAVE") {
            nosave = true;
        } else if args.is_word(at, "SAVE") {
            save = true;
        } else if args.is_word(at, "ABORT") {
            abort = true;
        } else if !args.is_word(at, "NOW") && !args.is_word(at, "FORCE") {
            return Err(CommandError::Syntax);
        }
    }
    if (abort && args.len() > 2) || (save && nosave) {
        return Err(CommandError::Syntax);
    }
    if abort {
        return Err(CommandError::text("ERR No shutdown in progress."));
    }
    if save {
        return Err(NO_DISK);
    }
    // No reply: the end of the connection is the answer.
    context.server.shutdown.request();
    context.session.closing = true;
    Ok(())
}

const KILN: &str = r"
            ) (   )
           (   ) (
          __)_(_)_(__
         /  _     _  \
        /  (_)   (_)  \
       |  ___________  |
       | | )  /\  ( )| |
       | |(  /  \  ) | |
       | | )( /\ )( (| |
       | |(__(__)__)_| |
      _|_______________|_
     /___________________\

";

fn lolwut(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    // Every version is the same picture; a number is what clients expect to be able to say.
    if args.is_word(1, "VERSION") && args.len() > 2 {
        args.int(2)?;
    }
    let text = format!("{KILN}Kiln {}\n", context.server.options.version);
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn module_list(_: &mut Context<'_>, _: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    reply.empty_array();
    Ok(())
}

fn module_load(context: &mut Context<'_>, _: &Args<'_>, _: &mut ReplyWriter<'_>) -> CommandResult {
    let access = context.server.config.current().enable_module_command;
    if lets_pass(access, &context.session.client) {
        return Err(CommandError::text("ERR Kiln loads no modules: it is one program"));
    }
    Err(CommandError::text(
        "ERR MODULE command not allowed. If the enable-module-command option is set to \
         \"local\", you can run it from a local connection, otherwise you need to set this option \
         in the configuration file, and then restart the server.",
    ))
}

fn module_help(
    context: &mut Context<'_>,
    _: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    help::write(&context.server.commands, "MODULE", reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testkit::check;

    #[test]
    fn what_would_save_is_refused() {
        check(&[
            ("BGSAVE BOGUS", "(error) ERR syntax error"),
            ("BGSAVE", "(error) ERR Kiln cannot save to disk yet"),
            ("SAVE", "(error) ERR Kiln cannot save to disk yet"),
            ("SHUTDOWN SAVE", "(error) ERR Kiln cannot save to disk yet"),
            ("SHUTDOWN SAVE NOSAVE", "(error) ERR syntax error"),
            ("SHUTDOWN ABORT", "(error) ERR No shutdown in progress."),
            ("LOLWUT VERSION abc", "(error) ERR value is not an integer or out of range"),
            ("MODULE LIST", "(empty array)"),
        ]);
    }
}
