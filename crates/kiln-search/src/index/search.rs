//! VSIM.SEARCH and VSIM.GET.

use kiln_base::number::parse_i64;
use kiln_base::sync::Arc;
use kiln_command::compute::{INLINE_MICROS, Work};
use kiln_command::{Args, Arity, CommandError, CommandSpec, Context, ReplyWriter};
use kiln_keyspace::TagMembers;
use kiln_vector::{Filter, Hit, Request, Target};

use super::{INVALID_VECTOR, NOT_FOUND, VectorIndex, name, reads, vector};
use crate::engine::look_up;
use crate::vector::look_up_micros;

/// Up to this many members are all compared with: exact without a doubt, and quick.
const EXACT_MAX: usize = 100;
const EF_MAX: i64 = 1_000_000;

pub(super) const COMMANDS: &[CommandSpec] = &[
    reads("VSIM.SEARCH", Arity::at_least(4), search).docs(
        "0.1.0",
        "O(log N) with N members.",
        "index k <component [component ...] | FP32 blob> [TRUTH] [EF ef] [FILTER tag [tag ...]]",
        "Find the members nearest to a vector, with their distances.",
    ),
    reads("VSIM.GET", Arity::exactly(3), get).docs(
        "0.1.0",
        "O(N) with N dimensions.",
        "index member",
        "Show the vector of a member.",
    ),
];

/// Keys with the rarest tag up to which, or up to this share of the members, they are looked up one
/// by one instead of asking for the tags of what is near.
const NARROW: usize = 1_000;
const NARROW_SHARE: usize = 64;

/// What is asked for, in memory of its own.
struct Search {
    count: usize,
    vector: Vec<f32>,
    ef: Option<usize>,
    exact: bool,
    tags: Option<Tagged>,
}

/// The keys that have all of some tags: the members of each, the rarest first. Empty if one of the
/// tags has none.
struct Tagged(Vec<Arc<TagMembers>>);

impl Tagged {
    fn new(sets: Option<Vec<Arc<TagMembers>>>) -> Self {
        let mut sets = sets.unwrap_or_default();
        sets.sort_by_cached_key(|set| set.len());
        Self(sets)
    }

    /// The number of keys with the rarest tag.
    fn len(&self) -> usize {
        self.0.first().map_or(0, |rarest| rarest.len())
    }

    /// The keys that have all the tags.
    fn to_vec(&self) -> Vec<Box<[u8]>> {
        let Some((rarest, others)) = self.0.split_first() else { return Vec::new() };
        let mut keys = rarest.to_vec();
        keys.retain(|key| others.iter().all(|set| set.contains(key)));
        keys
    }
}

impl Filter for Tagged {
    fn admits(&self, name: &[u8], _: Option<&[u8]>) -> bool {
        !self.0.is_empty() && self.0.iter().all(|set| set.contains(name))
    }
}

fn search(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let key = name(args, 1)?;
    let count = parse_i64(args.get(2)).ok_or(CommandError::NotAnInteger)?;
    let count = usize::try_from(count).ok().filter(|count| *count > 0);
    let count = count.ok_or(CommandError::text("ERR k must be at least 1"))?;
    let index = look_up::<VectorIndex>(context, key)?.ok_or(NOT_FOUND)?;
    let (vector, next) = vector(args, 3, index.dim(), is_option)?;
    let mut search = Search { count, vector, ef: None, exact: false, tags: None };
    search.options(context, args, next)?;
    if search.micros(&index) <= INLINE_MICROS {
        write(&index, &search.run(&index)?, reply);
        return Ok(Work::Done);
    }
    Ok(Work::Compute(Box::new(move || {
        let hits = search.run(&index);
        Box::new(move |_, reply| {
            write(&index, &hits?, reply);
            Ok(())
        })
    })))
}

/// Whether a word is no component but an option.
fn is_option(word: &[u8]) -> bool {
    ["FILTER", "EF", "TRUTH"].iter().any(|option| word.eq_ignore_ascii_case(option.as_bytes()))
}

impl Search {
    /// Reads the words behind the vector. FILTER takes all that follow, but for a last `EF n`.
    fn options(
        &mut self,
        context: &Context<'_>,
        args: &Args<'_>,
        mut index: usize,
    ) -> Result<(), CommandError> {
        let is = |index: usize, word: &str| {
            args.try_get(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
        };
        while index < args.len() {
            if is(index, "TRUTH") && !self.exact {
                self.exact = true;
                index += 1;
            } else if is(index, "EF") && index + 1 < args.len() && self.ef.is_none() {
                self.ef = Some(ef(args.get(index + 1))?);
                index += 2;
            } else if is(index, "FILTER") {
                let mut end = args.len();
                if self.ef.is_none()
                    && end >= index + 3
                    && is(end - 2, "EF")
                    && parse_i64(args.get(end - 1)).is_some()
                {
                    self.ef = Some(ef(args.get(end - 1))?);
                    end -= 2;
                }
                if end == index + 1 {
                    return Err(CommandError::Syntax);
                }
                let (tags, db) = (context.server.keyspace.tags(), context.session.db);
                let words = (index + 1..end).map(|at| args.get(at));
                self.tags = Some(Tagged::new(words.map(|tag| tags.members(db, tag)).collect()));
                index = args.len();
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(())
    }

    fn request<'r>(&'r self, index: &VectorIndex) -> Request<'r> {
        let len = index.index.len();
        let mut request = Request::new(Target::Vector(&self.vector), self.count.min(len));
        request.ef = self.ef.map(|ef| ef.min(len));
        request.exact = self.exact || len <= EXACT_MAX;
        request.filter = self.tags.as_ref().map(|tags| tags as &dyn Filter);
        request
    }

    /// The tags, if so few keys have them that these are best looked up one by one.
    fn narrow(&self, index: &VectorIndex) -> Option<&Tagged> {
        let most = NARROW.max(index.index.len() / NARROW_SHARE);
        self.tags.as_ref().filter(|tags| tags.len() <= most)
    }

    /// How long it will take.
    fn micros(&self, index: &VectorIndex) -> u64 {
        match self.narrow(index) {
            Some(tags) => look_up_micros(index.dim(), tags.len()),
            None => u64::from(index.index.estimate_cost_us(&self.request(index))),
        }
    }

    fn run(&self, index: &VectorIndex) -> Result<Vec<Hit>, CommandError> {
        if let Some(tags) = self.narrow(index) {
            let keys = tags.to_vec();
            let names = keys.iter().map(|key| &**key);
            let hits = index.index.nearest_among(&self.vector, names, self.count);
            return hits.map_err(|_| INVALID_VECTOR);
        }
        let hits = index.index.search(&self.request(index)).map_err(|_| INVALID_VECTOR)?;
        Ok(hits.unwrap_or_default())
    }
}

fn ef(word: &[u8]) -> Result<usize, CommandError> {
    let ef = parse_i64(word).ok_or(CommandError::NotAnInteger)?;
    if (1..=EF_MAX).contains(&ef) {
        Ok(ef as usize)
    } else {
        Err(CommandError::owned(format!("ERR EF must be between 1 and {EF_MAX}")))
    }
}

fn write(index: &VectorIndex, hits: &[Hit], reply: &mut ReplyWriter<'_>) {
    let metric = index.index.config().metric;
    reply.array(hits.len() * 2);
    for hit in hits {
        reply.bulk(&hit.name);
        bulk_float(metric.wire(hit.distance), reply);
    }
}

/// A float as its shortest decimal that reads back to the same float32, without an exponent.
fn bulk_float(number: f32, reply: &mut ReplyWriter<'_>) {
    // Minus zero is zero to every client.
    reply.bulk(format!("{}", number + 0.0).as_bytes());
}

fn get(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    let (key, member) = (name(args, 1)?, name(args, 2)?);
    let index = look_up::<VectorIndex>(context, key)?.ok_or(NOT_FOUND)?;
    let mut vector = Vec::new();
    if !index.index.get(member, &mut vector) {
        reply.null_array();
        return Ok(Work::Done);
    }
    reply.array(vector.len());
    vector.iter().for_each(|component| bulk_float(*component, reply));
    Ok(Work::Done)
}
