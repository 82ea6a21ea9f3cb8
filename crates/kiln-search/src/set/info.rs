//! VCARD, VDIM, VINFO and VLINKS: what a set and its graph look like.

use kiln_command::args::ArgsExt;
use kiln_command::compute::Work;
use kiln_command::{Args, CommandError, CommandFlags, CommandSpec, Context, Protocol, ReplyWriter};
use kiln_vector::{Projection, Quantization};

use super::{VectorSet, arity_error, reads, score};
use crate::engine::look_up;

pub(super) const COMMANDS: &[CommandSpec] = &[
    reads("VCARD", card).flags(CommandFlags::FAST).docs(
        "8.0.0",
        "O(1)",
        "key",
        "Count the elements.",
    ),
    reads("VDIM", dim).flags(CommandFlags::FAST).docs(
        "8.0.0",
        "O(1)",
        "key",
        "Show how many dimensions the vectors have.",
    ),
    reads("VINFO", info).flags(CommandFlags::FAST).docs(
        "8.0.0",
        "O(1)",
        "key",
        "Show what a vector set was made for and how large it is.",
    ),
    reads("VLINKS", links).flags(CommandFlags::FAST).docs(
        "8.0.0",
        "O(1)",
        "key element [WITHSCORES]",
        "Show the neighbours of an element on each level of the graph.",
    ),
];

fn card(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if args.len() != 2 {
        return Err(arity_error("VCARD"));
    }
    let set = look_up::<VectorSet>(context, args.get(1))?;
    reply.integer(set.map_or(0, |set| set.index.len()) as i64);
    Ok(Work::Done)
}

fn dim(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if args.len() != 2 {
        return Err(arity_error("VDIM"));
    }
    let set = look_up::<VectorSet>(context, args.get(1))?;
    let set = set.ok_or(CommandError::text("ERR key does not exist"))?;
    reply.integer(set.dim() as i64);
    Ok(Work::Done)
}

fn info(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if args.len() != 2 {
        return Err(arity_error("VINFO"));
    }
    let Some(set) = look_up::<VectorSet>(context, args.get(1))? else {
        reply.null_array();
        return Ok(Work::Done);
    };
    let info = set.index.info();
    let quantization = match info.config.quantization {
        Quantization::None => "f32",
        Quantization::Q8 => "int8",
        Quantization::Bin => "bin",
    };
    let figures = [
        ("hnsw-m", set.m),
        ("vector-dim", set.dim()),
        ("projection-input-dim", set.projection.as_ref().map_or(0, Projection::from)),
        ("size", info.elements),
        ("max-level", info.max_level.unwrap_or(0)),
        ("attributes-count", info.attributed),
        ("vset-uid", set.uid as usize),
        ("hnsw-max-node-uid", info.inserts as usize),
        // Kiln's own, behind the ones of Redis.
        ("deleted", info.retired),
        ("memory-bytes", info.memory_bytes),
    ];
    reply.map(1 + figures.len());
    reply.simple("quant-type");
    reply.simple(quantization);
    for (name, figure) in figures {
        reply.simple(name);
        reply.integer(figure as i64);
    }
    Ok(Work::Done)
}

fn links(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let with_scores = args.is_word(3, "WITHSCORES");
    if !(3..=4).contains(&args.len()) || (args.len() == 4 && !with_scores) {
        return Err(arity_error("VLINKS"));
    }
    let set = look_up::<VectorSet>(context, args.get(1))?;
    let Some(levels) = set.and_then(|set| set.index.links(args.get(2))) else {
        reply.null();
        return Ok(Work::Done);
    };
    reply.array(levels.len());
    // The highest level comes first.
    for level in levels.iter().rev() {
        match (with_scores, reply.protocol()) {
            (false, _) => reply.array(level.len()),
            (true, Protocol::Resp2) => reply.array(level.len() * 2),
            (true, Protocol::Resp3) => reply.map(level.len()),
        }
        for link in level {
            reply.bulk(&link.name);
            if with_scores {
                reply.double(score(link.distance));
            }
        }
    }
    Ok(Work::Done)
}
