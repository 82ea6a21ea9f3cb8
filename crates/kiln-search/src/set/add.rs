//! VADD: an element and its vector.

use kiln_base::number::parse_i64;
use kiln_base::sync::Arc;
use kiln_command::args::ArgsExt;
use kiln_command::compute::{INLINE_MICROS, Work};
use kiln_command::{
    Args, CommandError, CommandFlags, CommandResult, CommandSpec, Context, ReplyWriter,
};
use kiln_vector::Quantization;

use super::{EF_CONSTRUCTION, VectorSet, arity_error, writes};
use crate::engine::{Prepared, look_up};
use crate::vector::{BAD_VECTOR, insert_micros, vector_at};

/// Links of a node in a set that does not say otherwise.
const M_DEFAULT: usize = 16;
const EF_MAX: i64 = 1_000_000;
const M_RANGE: std::ops::RangeInclusive<i64> = 4..=4_096;

pub(super) const COMMANDS: &[CommandSpec] =
    &[writes("VADD", add).flags(CommandFlags::DENYOOM).docs(
        "8.0.0",
        "O(log N) with N elements.",
        "key [REDUCE dim] <FP32 blob | VALUES num value [value ...]> element [CAS] \
         [NOQUANT | Q8 | BIN] [EF build-exploration-factor] [SETATTR attributes] [M numlinks]",
        "Add an element with its vector, or give an element another vector.",
    )];

/// What is asked for, in memory of its own: the work may go on without the words.
struct Add {
    key: Box<[u8]>,
    element: Box<[u8]>,
    vector: Vec<f32>,
    reduce: Option<usize>,
    quantization: Quantization,
    ef: Option<usize>,
    m: usize,
    /// `Some(empty)` takes attributes away.
    attributes: Option<Box<[u8]>>,
}

fn add(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let add = Add::parse(args)?;
    let (set, is_new) = add.find_or_make(context)?;
    let micros = insert_micros(set.dim(), set.index.len(), add.ef.unwrap_or(EF_CONSTRUCTION));
    if micros <= INLINE_MICROS {
        let prepared = add.prepare(set, is_new)?;
        add.commit(context, prepared, reply)?;
        return Ok(Work::Done);
    }
    Ok(Work::Compute(Box::new(move || {
        let prepared = add.prepare(set, is_new);
        Box::new(move |context, reply| add.commit(context, prepared?, reply))
    })))
}

impl Add {
    fn parse(args: &Args<'_>) -> Result<Self, CommandError> {
        if args.len() < 5 {
            return Err(arity_error("VADD"));
        }
        let vector = vector_at(args, 2, true)?;
        let element = args.try_get(vector.next).ok_or_else(|| arity_error("VADD"))?;
        let mut add = Self {
            key: args.get(1).into(),
            element: element.into(),
            vector: vector.components,
            reduce: vector.reduce,
            quantization: Quantization::Q8,
            ef: None,
            m: M_DEFAULT,
            attributes: None,
        };
        let mut index = vector.next + 1;
        while index < args.len() {
            let value = args.try_get(index + 1);
            let number = || value.and_then(parse_i64);
            if args.is_word(index, "CAS") {
                // Every insert computes without a lock and commits at the end.
            } else if args.is_word(index, "NOQUANT") {
                add.quantization = Quantization::None;
            } else if args.is_word(index, "BIN") {
                add.quantization = Quantization::Bin;
            } else if args.is_word(index, "Q8") {
                add.quantization = Quantization::Q8;
            } else if args.is_word(index, "EF") && value.is_some() {
                let ef = number().filter(|ef| (1..=EF_MAX).contains(ef));
                add.ef = Some(ef.ok_or(CommandError::text("ERR invalid EF"))? as usize);
                index += 1;
            } else if args.is_word(index, "M") && value.is_some() {
                let m = number().filter(|m| M_RANGE.contains(m));
                add.m = m.ok_or(CommandError::text("ERR invalid M"))? as usize;
                index += 1;
            } else if args.is_word(index, "SETATTR") && value.is_some() {
                add.attributes = value.map(Box::from);
                index += 1;
            } else {
                return Err(CommandError::text("ERR invalid option after element"));
            }
            index += 1;
        }
        Ok(add)
    }

    /// The set at the key, or one that is not there yet; and whether it is the latter.
    fn find_or_make(
        &self,
        context: &mut Context<'_>,
    ) -> Result<(Arc<VectorSet>, bool), CommandError> {
        if let Some(set) = look_up::<VectorSet>(context, &self.key)? {
            self.check(&set)?;
            return Ok((set, false));
        }
        let dim = self.vector.len();
        Ok((VectorSet::new(dim, self.reduce, self.quantization, self.m)?, true))
    }

    /// Whether the vector can be one of `set`.
    fn check(&self, set: &VectorSet) -> CommandResult {
        let asked = |what: &str| {
            CommandError::owned(format!("ERR asked {what} mismatch with existing vector set"))
        };
        if self.quantization != set.index.config().quantization {
            return Err(asked("quantization"));
        }
        // The default is asked for by silence.
        if self.m != set.m {
            return Err(asked("M value"));
        }
        let (got, want) = (self.vector.len(), set.dim());
        let mismatch = CommandError::owned(format!(
            "ERR Vector dimension mismatch - got {got} but set has {want}"
        ));
        match &set.projection {
            None if got != want => Err(mismatch),
            None if self.reduce.is_some() => Err(CommandError::text(
                "ERR cannot add projection to existing set without projection",
            )),
            // The text is odd where `got` is right, but that is what Redis says.
            Some(_) if self.reduce != Some(want) => Err(mismatch),
            Some(projection) if got != projection.from() => {
                Err(input_mismatch(got, projection.from()))
            }
            None | Some(_) => Ok(()),
        }
    }

    /// The long part.
    fn prepare(
        &self,
        set: Arc<VectorSet>,
        is_new: bool,
    ) -> Result<Prepared<VectorSet>, CommandError> {
        let vector = set.project(&self.vector);
        Prepared::new(set, is_new, &vector, self.ef).map_err(|_| BAD_VECTOR)
    }

    /// The short part, and the whole again as often as the key has got another set meanwhile.
    fn commit(
        &self,
        context: &mut Context<'_>,
        mut prepared: Prepared<VectorSet>,
        reply: &mut ReplyWriter<'_>,
    ) -> CommandResult {
        let attributes = self.attributes.as_deref();
        loop {
            if let Some(replaced) = prepared.commit(context, &self.key, &self.element, attributes) {
                reply.boolean(!replaced);
                return Ok(());
            }
            let (set, is_new) = self.find_or_make(context)?;
            prepared = self.prepare(set, is_new)?;
        }
    }
}

/// The error for a vector that a projection does not take.
pub(super) fn input_mismatch(got: usize, want: usize) -> CommandError {
    CommandError::owned(format!(
        "ERR Input dimension mismatch for projection - got {got} but projection expects {want}"
    ))
}
