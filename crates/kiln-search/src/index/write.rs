//! VSIM.CREATEINDEX, DROPINDEX, SET and DEL: indexes and their members.

use kiln_base::number::parse_i64;
use kiln_base::sync::Arc;
use kiln_command::args::ArgsExt;
use kiln_command::compute::{INLINE_MICROS, Work};
use kiln_command::{
    Args, Arity, CommandError, CommandFlags, CommandResult, CommandSpec, Context, Entry, Object,
    ReplyWriter,
};
use kiln_vector::{DIM_MAX, IndexConfig, M_RANGE, Metric};

use super::{INVALID_VECTOR, NOT_FOUND, RM, VectorIndex, metric, name, vector, writes};
use crate::engine::{Prepared, announce, change, look_up, remove};
use crate::vector::insert_micros;

const EF_SEARCH: usize = 64;
const EF_MAX: i64 = 1_000_000;

pub(super) const COMMANDS: &[CommandSpec] = &[
    writes("VSIM.CREATEINDEX", Arity::at_least(3), create).flags(CommandFlags::DENYOOM).docs(
        "0.1.0",
        "O(1)",
        "name dims [METRIC metric] [M m] [EF_CONSTRUCTION ef] [EF_SEARCH ef]",
        "Make an index for vectors.",
    ),
    writes("VSIM.DROPINDEX", Arity::exactly(2), drop_index).keys(RM).docs(
        "0.1.0",
        "O(1); memory is freed in the background.",
        "name",
        "Remove an index.",
    ),
    writes("VSIM.SET", Arity::at_least(4), set).flags(CommandFlags::DENYOOM).docs(
        "0.1.0",
        "O(log N) with N members.",
        "index member <component [component ...] | FP32 blob>",
        "Put a member with its vector into an index, or give a member another vector.",
    ),
    writes("VSIM.DEL", Arity::exactly(3), delete).docs(
        "0.1.0",
        "O(log N) with N members.",
        "index member",
        "Take a member out of an index.",
    ),
];

fn create(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let key = name(args, 1)?;
    let dim = args.int(2)?;
    if !(1..=DIM_MAX as i64).contains(&dim) {
        let text = format!("ERR dimensions must be between 1 and {DIM_MAX}");
        return Err(CommandError::owned(text));
    }
    let config = options(args, IndexConfig::new(dim as usize, Metric::Cosine))?;
    let index = VectorIndex::new(config).ok_or(CommandError::OutOfRange)?;
    context.write(key, |view| {
        view.expire_due(key);
        if view.peek(key).is_some() {
            return Err(CommandError::text("ERR index already exists"));
        }
        view.insert(Entry::object(key, Object::Engine(index), None));
        announce(view, key);
        Ok(())
    })?;
    reply.ok();
    Ok(Work::Done)
}

/// The settings behind the dimensions.
fn options(args: &Args<'_>, mut config: IndexConfig) -> Result<IndexConfig, CommandError> {
    const NAMES: [&str; 4] = ["METRIC", "M", "EF_CONSTRUCTION", "EF_SEARCH"];
    config.ef_search = EF_SEARCH;
    let mut seen = [false; NAMES.len()];
    let mut index = 3;
    while index < args.len() {
        let option = NAMES.iter().position(|name| args.is_word(index, name));
        let option = option.filter(|option| !std::mem::replace(&mut seen[*option], true));
        let (Some(option), Some(value)) = (option, args.try_get(index + 1)) else {
            return Err(CommandError::Syntax);
        };
        let number = |min: i64, max: i64| {
            let number = parse_i64(value).ok_or(CommandError::NotAnInteger)?;
            let in_range = (min..=max).contains(&number);
            in_range.then_some(number as usize).ok_or_else(|| {
                let name = NAMES[option];
                CommandError::owned(format!("ERR {name} must be between {min} and {max}"))
            })
        };
        match option {
            0 => {
                config.metric = metric(value)
                    .ok_or(CommandError::text("ERR unknown metric: cosine, l2 and ip are known"))?;
            }
            1 => config.m = number(*M_RANGE.start() as i64, *M_RANGE.end() as i64)?,
            2 => config.ef_construction = number(1, EF_MAX)?,
            _ => config.ef_search = number(1, EF_MAX)?,
        }
        index += 2;
    }
    Ok(config)
}

fn drop_index(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let key = name(args, 1)?;
    if !remove(context, key) {
        return Err(NOT_FOUND);
    }
    reply.ok();
    Ok(Work::Done)
}

/// What is to be put in, in memory of its own: the work may go on without the words.
struct Set {
    key: Box<[u8]>,
    member: Box<[u8]>,
    vector: Vec<f32>,
}

fn set(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let (key, member) = (name(args, 1)?, name(args, 2)?);
    let index = look_up::<VectorIndex>(context, key)?.ok_or(NOT_FOUND)?;
    let (vector, _) = vector(args, 3, index.dim(), |_| false)?;
    let set = Set { key: key.into(), member: member.into(), vector };
    let ef = index.index.config().ef_construction;
    if insert_micros(index.dim(), index.index.len(), ef) <= INLINE_MICROS {
        let prepared = set.prepare(index)?;
        set.commit(context, prepared, reply)?;
        return Ok(Work::Done);
    }
    Ok(Work::Compute(Box::new(move || {
        let prepared = set.prepare(index);
        Box::new(move |context, reply| set.commit(context, prepared?, reply))
    })))
}

impl Set {
    fn prepare(&self, index: Arc<VectorIndex>) -> Result<Prepared<VectorIndex>, CommandError> {
        let wrong = |error| match error {
            kiln_vector::VectorError::Dimension { expected, got } => {
                CommandError::owned(format!("ERR vector has {got} dimensions, expected {expected}"))
            }
            _ => INVALID_VECTOR,
        };
        Prepared::new(index, false, &self.vector, None).map_err(wrong)
    }

    fn commit(
        &self,
        context: &mut Context<'_>,
        mut prepared: Prepared<VectorIndex>,
        reply: &mut ReplyWriter<'_>,
    ) -> CommandResult {
        loop {
            if let Some(replaced) = prepared.commit(context, &self.key, &self.member, None) {
                reply.integer(i64::from(!replaced));
                return Ok(());
            }
            // Dropped meanwhile, and perhaps made anew.
            let index = look_up::<VectorIndex>(context, &self.key)?.ok_or(NOT_FOUND)?;
            prepared = self.prepare(index)?;
        }
    }
}

fn delete(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let (key, member) = (name(args, 1)?, name(args, 2)?);
    loop {
        let index = look_up::<VectorIndex>(context, key)?.ok_or(NOT_FOUND)?;
        let retired = change(context, key, &index, |view| {
            let retired = index.index.remove(member)?;
            announce(view, key);
            Some(retired)
        });
        // Another index may have come under the name; else the node is unlinked here.
        if let Some(retired) = retired {
            reply.integer(i64::from(retired.is_some()));
            return Ok(Work::Done);
        }
    }
}
