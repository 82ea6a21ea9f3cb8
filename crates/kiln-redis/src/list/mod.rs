//! Lists: pushing, popping, moving, reading and editing; and waiting for an element.

mod edit;
mod pop;
mod push;
mod read;
mod transfer;

use kiln_command::args::ArgsExt;
use kiln_command::{Args, CommandSpec, Event, View};
use kiln_data::list::End;

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] =
    &[edit::COMMANDS, pop::COMMANDS, push::COMMANDS, read::COMMANDS, transfer::COMMANDS];

/// Word `index` as an end: `LEFT` or `RIGHT`.
fn end_word(args: &Args<'_>, index: usize) -> Option<End> {
    if args.is_word(index, "LEFT") {
        Some(End::Front)
    } else if args.is_word(index, "RIGHT") {
        Some(End::Back)
    } else {
        None
    }
}

fn push_event(end: End) -> Event {
    match end {
        End::Front => Event::LPush,
        End::Back => Event::RPush,
    }
}

fn pop_event(end: End) -> Event {
    match end {
        End::Front => Event::LPop,
        End::Back => Event::RPop,
    }
}

/// Announces that elements of the list at `key` went, and removes it if none is left.
fn announce_removed(view: &mut View<'_>, key: &[u8], event: Event, count: usize, is_empty: bool) {
    view.changed(key, event);
    view.count_changes(count.saturating_sub(1) as u64);
    if is_empty {
        view.delete(key);
        view.event(key, Event::Del);
    }
}
