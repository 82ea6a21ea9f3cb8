//! VSETATTR and VGETATTR: the JSON text that filters look at.
//!
//! The text is kept as it came, JSON or not.

use kiln_command::compute::Work;
use kiln_command::{Args, CommandError, CommandFlags, CommandSpec, Context, ReplyWriter};

use super::{VectorSet, arity_error, reads, writes};
use crate::engine::{announce, change, look_up};

pub(super) const COMMANDS: &[CommandSpec] = &[
    writes("VSETATTR", set).flags(CommandFlags::FAST).docs(
        "8.0.0",
        "O(1)",
        "key element json",
        "Attach attributes to an element, or take them away.",
    ),
    reads("VGETATTR", get).flags(CommandFlags::FAST).docs(
        "8.0.0",
        "O(1)",
        "key element",
        "Show the attributes of an element.",
    ),
];

fn set(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if args.len() != 4 {
        return Err(arity_error("VSETATTR"));
    }
    let (key, element, text) = (args.get(1), args.get(2), args.get(3));
    let attributes = (!text.is_empty()).then_some(text);
    let mut found = false;
    while let Some(set) = look_up::<VectorSet>(context, key)? {
        let done = change(context, key, &set, |view| {
            let found = set.index.set_attributes(element, attributes);
            if found {
                set.filters.changed(&set.index, element);
                announce(view, key);
            }
            found
        });
        if let Some(done) = done {
            found = done;
            break;
        }
    }
    reply.boolean(found);
    Ok(Work::Done)
}

fn get(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if args.len() != 3 {
        return Err(arity_error("VGETATTR"));
    }
    let set = look_up::<VectorSet>(context, args.get(1))?;
    match set.and_then(|set| set.index.attributes(args.get(2))) {
        Some(attributes) => reply.bulk(&attributes),
        None => reply.null(),
    }
    Ok(Work::Done)
}
