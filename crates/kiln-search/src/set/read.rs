//! VEMB, VISMEMBER, VRANDMEMBER and VRANGE: elements by name, by chance and by order.

use std::ops::Bound;

use kiln_base::number::parse_i64;
use kiln_command::args::ArgsExt;
use kiln_command::compute::Work;
use kiln_command::{Args, CommandError, CommandFlags, CommandSpec, Context, ReplyWriter};
use kiln_vector::Quantization;
use rand::RngExt as _;

use super::{VectorSet, arity_error, reads};
use crate::engine::look_up;

/// Draws with repetition at most: one short command must not ask for gigabytes of reply.
const DRAWS_MAX: i64 = 1 << 24;

const BAD_START: CommandError = CommandError::text("ERR invalid start range format");
const BAD_END: CommandError = CommandError::text("ERR invalid end range format");

pub(super) const COMMANDS: &[CommandSpec] = &[
    reads("VEMB", embedding).flags(CommandFlags::FAST).docs(
        "8.0.0",
        "O(N) with N dimensions.",
        "key element [RAW]",
        "Show the vector of an element.",
    ),
    reads("VISMEMBER", is_member).docs(
        "8.0.0",
        "O(1)",
        "key element",
        "Tell whether an element is in the set.",
    ),
    reads("VRANDMEMBER", random).docs(
        "8.0.0",
        "O(N) with N elements returned.",
        "key [count]",
        "Show elements drawn at random.",
    ),
    reads("VRANGE", range).docs(
        "8.4.0",
        "O(log N + M) with N elements in the set and M returned.",
        "key start end [count]",
        "List the elements between two names, in the order of their bytes.",
    ),
];

fn embedding(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if args.len() < 3 {
        return Err(arity_error("VEMB"));
    }
    let raw = args.len() > 3;
    if !(3..args.len()).all(|index| args.is_word(index, "RAW")) {
        return Err(CommandError::text("ERR invalid option"));
    }
    let mut vector = Vec::new();
    let set = look_up::<VectorSet>(context, args.get(1))?;
    let Some(set) = set.filter(|set| set.index.get(args.get(2), &mut vector)) else {
        reply.null();
        return Ok(Work::Done);
    };
    if raw {
        write_raw(&set, args.get(2), &vector, reply);
    } else {
        if set.index.config().quantization == Quantization::Bin {
            // Redis keeps the signs alone. More is known here, but not what a client expects.
            vector.iter_mut().for_each(|x| *x = if *x > 0.0 { 1.0 } else { -1.0 });
        }
        reply.array(vector.len());
        vector.iter().for_each(|component| reply.double(f64::from(*component)));
    }
    Ok(Work::Done)
}

/// The vector in the form that Redis keeps it in: normalised, quantised, its length apart.
fn write_raw(set: &VectorSet, element: &[u8], vector: &[f32], reply: &mut ReplyWriter<'_>) {
    let norm = set.index.norm(element).filter(|norm| *norm > 0.0).unwrap_or(1.0);
    let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    let quantization = set.index.config().quantization;
    reply.array(if quantization == Quantization::Q8 { 4 } else { 3 });
    match quantization {
        Quantization::None => {
            let unit = |x: &f32| ((f64::from(*x) / norm) as f32).to_le_bytes();
            reply.simple("f32");
            reply.bulk(&vector.iter().flat_map(unit).collect::<Vec<u8>>());
        }
        Quantization::Q8 => {
            let scale = if largest > 0.0 { 127.0 / largest } else { 0.0 };
            let code = |x: &f32| (x * scale).round() as i8 as u8;
            reply.simple("int8");
            reply.bulk(&vector.iter().map(code).collect::<Vec<u8>>());
        }
        Quantization::Bin => {
            let word = |chunk: &[f32]| {
                let bit = |(at, x): (usize, &f32)| u64::from(*x > 0.0) << at;
                chunk.iter().enumerate().map(bit).fold(0, |word, bit| word | bit)
            };
            let words = vector.chunks(64).flat_map(|chunk| u64::to_le_bytes(word(chunk)));
            reply.simple("bin");
            reply.bulk(&words.collect::<Vec<u8>>());
        }
    }
    reply.double(f64::from(norm as f32));
    if quantization == Quantization::Q8 {
        reply.double(f64::from((f64::from(largest) / norm) as f32));
    }
}

fn is_member(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if args.len() != 3 {
        return Err(arity_error("VISMEMBER"));
    }
    let set = look_up::<VectorSet>(context, args.get(1))?;
    reply.boolean(set.is_some_and(|set| set.index.contains(args.get(2))));
    Ok(Work::Done)
}

fn random(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if !(2..=3).contains(&args.len()) {
        return Err(arity_error("VRANDMEMBER"));
    }
    let count = args
        .try_get(2)
        .map(|word| parse_i64(word).ok_or(CommandError::text("ERR COUNT value is not an integer")));
    let count = count.transpose()?;
    if count.is_some_and(|count| count < -DRAWS_MAX) {
        return Err(CommandError::OutOfRange);
    }
    if count == Some(0) {
        // Redis asks for none before it looks at the key.
        reply.empty_array();
        return Ok(Work::Done);
    }
    let set = look_up::<VectorSet>(context, args.get(1))?;
    let seed = context.worker.rng.random();
    let draws = count.unwrap_or(1);
    let names = set.map_or_else(Vec::new, |set| {
        set.index.random(draws.unsigned_abs() as usize, draws >= 0, seed)
    });
    if count.is_none() {
        match names.first() {
            Some(name) => reply.bulk(name),
            None => reply.null(),
        }
        return Ok(Work::Done);
    }
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
    Ok(Work::Done)
}

/// A bound of VRANGE: `-` and `+` only where they belong.
fn bound(word: &[u8], open: u8, error: CommandError) -> Result<Bound<&[u8]>, CommandError> {
    match word {
        [b'-' | b'+'] if word == [open] => Ok(Bound::Unbounded),
        [b'-' | b'+'] => Err(CommandError::text(
            "ERR '-' can only be used as first argument, '+' only as second",
        )),
        [b'[', name @ ..] => Ok(Bound::Included(name)),
        [b'(', name @ ..] => Ok(Bound::Excluded(name)),
        _ => Err(error),
    }
}

fn range(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if !(4..=5).contains(&args.len()) {
        return Err(arity_error("VRANGE"));
    }
    let set = look_up::<VectorSet>(context, args.get(1))?;
    let start = bound(args.get(2), b'-', BAD_START)?;
    let end = bound(args.get(3), b'+', BAD_END)?;
    let count = match args.try_get(4) {
        None => None,
        Some(word) => {
            let count = parse_i64(word).ok_or(CommandError::text("ERR invalid COUNT value"))?;
            usize::try_from(count).ok()
        }
    };
    let array = reply.deferred();
    let mut left = count.unwrap_or(usize::MAX);
    let mut found = 0;
    if let Some(set) = set
        && left > 0
    {
        set.index.visit_names((start, end), |name| {
            reply.bulk(name);
            found += 1;
            left -= 1;
            left > 0
        });
    }
    reply.finish_array(array, found);
    Ok(Work::Done)
}
