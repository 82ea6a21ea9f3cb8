//! VSIM: the elements nearest to a vector or an element.

use kiln_base::number::{parse_f64, parse_i64};
use kiln_base::sync::Arc;
use kiln_command::args::ArgsExt;
use kiln_command::compute::{INLINE_MICROS, Work};
use kiln_command::{
    Args, CommandError, CommandResult, CommandSpec, Context, Protocol, ReplyWriter,
};
use kiln_vector::{Hit, Request, Target};

use super::add::input_mismatch;
use super::filters::{Answer, Passing};
use super::{VectorSet, arity_error, reads, score};
use crate::engine::look_up;
use crate::filter::Filter;
use crate::vector::{BAD_VECTOR, filtered_micros, look_up_micros, vector_at};

const COUNT_DEFAULT: usize = 10;

const SYNTAX: CommandError = CommandError::text("ERR syntax error in VSIM command");
const NO_ELEMENT: CommandError = CommandError::text("ERR element not found in set");

pub(super) const COMMANDS: &[CommandSpec] = &[reads("VSIM", similar).docs(
    "8.0.0",
    "O(log N) with N elements.",
    "key <ELE element | FP32 blob | VALUES num value [value ...]> [WITHSCORES] [WITHATTRIBS] \
     [COUNT num] [EPSILON delta] [EF search-exploration-factor] [FILTER expression] \
     [FILTER-EF max-filtering-effort] [TRUTH] [NOTHREAD]",
    "Find the elements nearest to a vector or to an element.",
)];

/// What to be near to, in memory of its own.
enum Near {
    Element(Box<[u8]>),
    Vector(Vec<f32>),
}

/// The words behind it.
struct Options {
    with_scores: bool,
    with_attributes: bool,
    count: usize,
    epsilon: Option<f64>,
    ef: Option<usize>,
    filter: Option<(Box<[u8]>, Arc<Filter>)>,
    filter_ef: Option<usize>,
    exact: bool,
}

fn similar(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<Work, CommandError> {
    if args.len() < 4 {
        return Err(arity_error("VSIM"));
    }
    let Some(set) = look_up::<VectorSet>(context, args.get(1))? else {
        reply.empty_array();
        return Ok(Work::Done);
    };
    let (near, next) = near(&set, args)?;
    let options = Options::parse(args, next)?;
    let passing = options.passing(&set);
    let micros = match &passing {
        Answer::Few(names) => look_up_micros(set.dim(), names.len()),
        // That takes milliseconds; inside a transaction it would hold up others.
        Answer::Collect if !context.in_exec() => u64::MAX,
        // Trying the filter out is a good part of such a search, and the search does it anyway.
        Answer::Many(share) => filtered_micros(set.dim(), options.count, *share),
        _ => u64::from(set.index.estimate_cost_us(&options.request(&set, &near))),
    };
    if micros <= INLINE_MICROS || context.in_exec() {
        options.write(&options.search(&set, &near, &passing)?, reply);
        return Ok(Work::Done);
    }
    Ok(Work::Compute(Box::new(move || {
        let passing = options.collected(&set, passing);
        let hits = options.search(&set, &near, &passing);
        Box::new(move |_, reply| {
            options.write(&hits?, reply);
            Ok(())
        })
    })))
}

/// Reads what to be near to, and says which word comes next.
fn near(set: &VectorSet, args: &Args<'_>) -> Result<(Near, usize), CommandError> {
    if args.is_word(2, "ELE") {
        let element = args.get(3);
        if !set.index.contains(element) {
            return Err(NO_ELEMENT);
        }
        return Ok((Near::Element(element.into()), 4));
    }
    let words = vector_at(args, 2, false)?;
    let (got, want) = (words.components.len(), set.dim());
    let vector = match &set.projection {
        // A vector that is reduced already is taken as it is.
        Some(projection) if got == projection.from() => set.project(&words.components).into(),
        _ if got == want => words.components,
        Some(projection) => return Err(input_mismatch(got, projection.from())),
        None => {
            return Err(CommandError::owned(format!(
                "ERR Vector dimension mismatch - got {got} but set has {want}"
            )));
        }
    };
    Ok((Near::Vector(vector), words.next))
}

impl Options {
    fn parse(args: &Args<'_>, first: usize) -> Result<Self, CommandError> {
        let mut options = Self {
            with_scores: false,
            with_attributes: false,
            count: COUNT_DEFAULT,
            epsilon: None,
            ef: None,
            filter: None,
            filter_ef: None,
            exact: false,
        };
        let mut index = first;
        while index < args.len() {
            let flag = match () {
                () if args.is_word(index, "WITHSCORES") => &mut options.with_scores,
                () if args.is_word(index, "WITHATTRIBS") => &mut options.with_attributes,
                () if args.is_word(index, "TRUTH") => &mut options.exact,
                // Where a search runs follows from what it costs.
                () if args.is_word(index, "NOTHREAD") => &mut false,
                () => {
                    let value = args.try_get(index + 1).ok_or(SYNTAX)?;
                    options.set(args, index, value)?;
                    index += 2;
                    continue;
                }
            };
            *flag = true;
            index += 1;
        }
        Ok(options)
    }

    /// Sets the option that word `index` names.
    fn set(&mut self, args: &Args<'_>, index: usize, value: &[u8]) -> CommandResult {
        let positive = |error| {
            let number = parse_i64(value).filter(|number| *number > 0);
            number.map(|number| number as usize).ok_or(error)
        };
        if args.is_word(index, "COUNT") {
            self.count = positive(CommandError::text("ERR invalid COUNT"))?;
        } else if args.is_word(index, "EPSILON") {
            let epsilon = parse_f64(value).filter(|epsilon| *epsilon > 0.0);
            self.epsilon = Some(epsilon.ok_or(CommandError::text("ERR invalid EPSILON"))?);
        } else if args.is_word(index, "EF") {
            self.ef = Some(positive(CommandError::text("ERR invalid EF"))?);
        } else if args.is_word(index, "FILTER") {
            self.filter = Some((value.into(), Arc::new(Filter::new(value)?)));
        } else if args.is_word(index, "FILTER-EF") {
            self.filter_ef = Some(positive(CommandError::text("ERR invalid FILTER-EF"))?);
        } else {
            return Err(SYNTAX);
        }
        Ok(())
    }

    fn request<'r>(&'r self, set: &VectorSet, near: &'r Near) -> Request<'r> {
        let target = match near {
            Near::Element(element) => Target::Element(element),
            Near::Vector(vector) => Target::Vector(vector),
        };
        let len = set.index.len();
        let mut request = Request::new(target, self.count.min(len));
        // More candidates than there are elements cannot be.
        request.ef = self.ef.map(|ef| ef.min(len));
        request.exact = self.exact;
        let filter = self.filter.as_ref();
        request.filter = filter.map(|(_, filter)| &**filter as &dyn kiln_vector::Filter);
        request.filter_ef = self.filter_ef;
        // Elements at exactly that distance stay.
        request.max_distance = self.epsilon.map(|epsilon| ((epsilon * 2.0) as f32).next_up());
        request.with_attributes = self.with_attributes;
        request
    }

    /// What is known of the filter.
    fn passing(&self, set: &VectorSet) -> Answer {
        match &self.filter {
            Some((text, filter)) => set.filters.ask(&set.index, text, filter),
            None => Answer::Unknown,
        }
    }

    /// The same after a collection, if one is due.
    fn collected(&self, set: &VectorSet, passing: Answer) -> Answer {
        match (&self.filter, passing) {
            (Some((text, filter)), Answer::Collect) => {
                set.filters.collect(&set.index, text, filter);
                set.filters.ask(&set.index, text, filter)
            }
            (_, passing) => passing,
        }
    }

    fn search(
        &self,
        set: &VectorSet,
        near: &Near,
        passing: &Answer,
    ) -> Result<Vec<Hit>, CommandError> {
        if let Answer::Few(names) = passing {
            return self.search_among(set, near, names);
        }
        let hits = set.index.search(&self.request(set, near)).map_err(|_| BAD_VECTOR)?;
        hits.ok_or(NO_ELEMENT)
    }

    /// Compares with all of `names`, which is exact whatever the effort asked for.
    fn search_among(
        &self,
        set: &VectorSet,
        near: &Near,
        names: &Passing,
    ) -> Result<Vec<Hit>, CommandError> {
        let mut stored = Vec::new();
        let vector = match near {
            Near::Vector(vector) => vector,
            Near::Element(element) if set.index.get(element, &mut stored) => &stored,
            Near::Element(_) => return Err(NO_ELEMENT),
        };
        let names = names.iter().map(|name| &**name);
        let hits = set.index.nearest_among(vector, names, self.count);
        let mut hits = hits.map_err(|_| BAD_VECTOR)?;
        if let Some(epsilon) = self.epsilon {
            hits.retain(|hit| f64::from(hit.distance) <= epsilon * 2.0);
        }
        if self.with_attributes {
            for hit in &mut hits {
                hit.attributes = set.index.attributes(&hit.name);
            }
        }
        Ok(hits)
    }

    fn write(&self, hits: &[Hit], reply: &mut ReplyWriter<'_>) {
        let extras = usize::from(self.with_scores) + usize::from(self.with_attributes);
        let resp3 = reply.protocol() == Protocol::Resp3;
        if resp3 && extras > 0 {
            reply.map(hits.len());
        } else {
            reply.array(hits.len() * (1 + extras));
        }
        for hit in hits {
            reply.bulk(&hit.name);
            if resp3 && extras == 2 {
                reply.array(2);
            }
            if self.with_scores {
                reply.double(score(hit.distance));
            }
            if self.with_attributes {
                match &hit.attributes {
                    Some(attributes) => reply.bulk(attributes),
                    None => reply.null(),
                }
            }
        }
    }
}
