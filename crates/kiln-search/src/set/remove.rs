//! VREM: an element less.

use kiln_command::compute::Work;
use kiln_command::{Args, CommandError, CommandSpec, Context, Event, ReplyWriter};

use super::{VectorSet, arity_error, writes};
use crate::engine::{announce, change, look_up};

pub(super) const COMMANDS: &[CommandSpec] = &[writes("VREM", remove).docs(
    "8.0.0",
    "O(log N) with N elements.",
    "key element",
    "Remove an element.",
)];

fn remove(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if args.len() != 3 {
        return Err(arity_error("VREM"));
    }
    let (key, element) = (args.get(1), args.get(2));
    let mut removed = false;
    while let Some(set) = look_up::<VectorSet>(context, key)? {
        let retired = change(context, key, &set, |view| {
            let retired = set.index.remove(element)?;
            set.filters.changed(&set.index, element);
            announce(view, key);
            if set.index.is_empty() {
                view.delete(key);
                view.event(key, Event::Del);
            }
            Some(retired)
        });
        // Another set may have come to the key; else the node is unlinked here, without the lock.
        if let Some(retired) = retired {
            removed = retired.is_some();
            break;
        }
    }
    reply.boolean(removed);
    Ok(Work::Done)
}
