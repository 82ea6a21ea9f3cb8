//! SORT and `SORT_RO`: the elements of a list, a set or a sorted set in order.
//!
//! Both are one operation in four steps: parse the words ([`Options`]), take the elements with
//! what they are compared by ([`Sortable`]), sort as much of them as LIMIT shows, show each
//! through the GET patterns. Elements are borrowed from the value, so that sorting copies none of
//! them.
//!
//! - A pattern (BY, GET) names another key: its first `*` is replaced by the element, and what
//!   follows `->` behind that is a field of the hash at that key. `#` is the element itself. Such
//!   keys may lie anywhere, so the command then holds all shards.
//! - BY without `*` means not to sort. A set has no order to keep, though: when the result is
//!   stored, it is sorted as text, so that a replica stores the same.
//! - Numbers: the empty text is 0, a missing weight too. Equal numbers are ordered as texts.
//! - ALPHA compares bytes, as Redis does in the C locale. A missing weight comes first; equal
//!   weights keep the order of the value.
//!
//! The whole is done under the command's locks: the value and the weights must not change
//! meanwhile.
//!
//! Source: the Redis documentation; replies observed on Redis 8.2.3.

mod pattern;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use kiln_base::number::{INTEGER_BYTES_MAX, parse_score_bound};
use kiln_command::args::ArgsExt;
use kiln_command::{
    AclCategories, Args, Arity, BeginSearch, CommandError, CommandFlags, CommandResult,
    CommandSpec, EntryRef, Event, FindKeys, KeyFlags, KeySpec, Object, ReplyWriter, Ttl, Value,
    View,
};
use kiln_data::list::{End, List};
use kiln_data::listpack;

use pattern::{Pattern, Substitute};

/// The rows of this family, file by file.
pub(crate) const COMMANDS: &[&[CommandSpec]] = &[&[
    CommandSpec::write("SORT", Arity::at_least(2), sort)
        .flags(FLAGS.union(CommandFlags::DENYOOM))
        .categories(CATEGORIES)
        .keys(KEYS)
        .key_finder(source_and_stored)
        .touches_all(names_other_keys)
        .docs(
            "1.0.0",
            COMPLEXITY,
            "key [BY by-pattern] [LIMIT offset count] [GET get-pattern [GET get-pattern ...]] \
             [ASC | DESC] [ALPHA] [STORE destination]",
            "Show the elements of a list, a set or a sorted set in order, or store them so.",
        ),
    CommandSpec::read("SORT_RO", Arity::at_least(2), sort_ro)
        .flags(FLAGS)
        .categories(CATEGORIES)
        .keys(KEYS_RO)
        .key_finder(source)
        .touches_all(names_other_keys)
        .docs(
            "7.0.0",
            COMPLEXITY,
            "key [BY by-pattern] [LIMIT offset count] [GET get-pattern [GET get-pattern ...]] \
             [ASC | DESC] [ALPHA]",
            "Show the elements of a list, a set or a sorted set in order.",
        ),
]];

const FLAGS: CommandFlags = CommandFlags::MOVABLEKEYS;
const CATEGORIES: AclCategories = AclCategories::SET
    .union(AclCategories::SORTEDSET)
    .union(AclCategories::LIST)
    .union(AclCategories::DANGEROUS);
const COMPLEXITY: &str =
    "O(N+M*log(M)) with N elements, M of them shown; O(N) if they are not to be sorted.";

const KEYS: &[KeySpec] = &[SOURCE, unknown(READ), unknown(KeyFlags::OW.union(KeyFlags::UPDATE))];
const KEYS_RO: &[KeySpec] = &[SOURCE, unknown(READ)];
const SOURCE: KeySpec = KeySpec::at(1, READ);
const READ: KeyFlags = KeyFlags::RO.union(KeyFlags::ACCESS);

const fn unknown(flags: KeyFlags) -> KeySpec {
    KeySpec { begin: BeginSearch::Unknown, find: FindKeys::Unknown, flags }
}

fn source(_: &Args<'_>, visit: &mut dyn FnMut(usize, KeyFlags)) {
    visit(1, READ);
}

/// The sorted key and that of the last STORE.
fn source_and_stored(args: &Args<'_>, visit: &mut dyn FnMut(usize, KeyFlags)) {
    let mut stored = None;
    each_option(args, |word, value| {
        if args.is_word(word, "STORE") {
            stored = Some(value);
        }
    });
    visit(1, READ);
    if let Some(key) = stored {
        visit(key, KeyFlags::OW | KeyFlags::UPDATE);
    }
}

/// Whether a BY or GET pattern makes keys of the elements.
fn names_other_keys(args: &Args<'_>) -> bool {
    let mut found = false;
    each_option(args, |word, value| {
        let is_pattern = args.is_word(word, "BY") || args.is_word(word, "GET");
        found |= is_pattern && args.get(value).contains(&b'*');
    });
    found
}

/// Calls `visit` with the indexes of every option with a value and of that value.
fn each_option(args: &Args<'_>, mut visit: impl FnMut(usize, usize)) {
    let mut index = 2;
    while index < args.len() {
        let values = match () {
            () if args.is_word(index, "LIMIT") => 2,
            () if ["BY", "GET", "STORE"].iter().any(|word| args.is_word(index, word)) => 1,
            () => 0,
        };
        if values == 1 && index + 1 < args.len() {
            visit(index, index + 1);
        }
        index += 1 + values;
    }
}

fn sort(view: &mut View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    let options = Options::parse(args, true)?;
    let Some(target) = options.store else { return show(view, args, &options, reply) };
    let sorted = sorted(view, args.get(1), &options)?;
    let mut list = List::new();
    let limits = view.settings().list;
    for element in &sorted {
        options.each_shown(view, element, |text| {
            list.push(End::Back, text.unwrap_or_default(), limits);
        });
    }
    drop(sorted);
    // Redis looks at the size of the whole once it is there.
    list.settle(limits);

    let len = list.len();
    if len > 0 {
        view.set_object(target, Object::List(list), Ttl::Clear);
        view.changed(target, Event::SortStore);
        view.count_changes(len as u64 - 1);
    } else if view.delete(target) {
        view.changed(target, Event::Del);
    }
    reply.integer(len as i64);
    Ok(())
}

fn sort_ro(view: &View<'_>, args: &Args<'_>, reply: &mut ReplyWriter<'_>) -> CommandResult {
    show(view, args, &Options::parse(args, false)?, reply)
}

/// Replies with the elements in order.
fn show(
    view: &View<'_>,
    args: &Args<'_>,
    options: &Options<'_>,
    reply: &mut ReplyWriter<'_>,
) -> CommandResult {
    let sorted = sorted(view, args.get(1), options)?;
    reply.array(sorted.len() * options.get.len().max(1));
    for element in &sorted {
        options.each_shown(view, element, |text| match text {
            Some(text) => reply.bulk(text),
            None => reply.null(),
        });
    }
    Ok(())
}

/// The words after the key.
struct Options<'a> {
    by: Option<Pattern<'a>>,
    get: Vec<Pattern<'a>>,
    descending: bool,
    alpha: bool,
    offset: i64,
    /// Negative: no limit.
    count: i64,
    store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: &Args<'a>, may_store: bool) -> Result<Self, CommandError> {
        let mut options = Self {
            by: None,
            get: Vec::new(),
            descending: false,
            alpha: false,
            offset: 0,
            count: -1,
            store: None,
        };
        let mut index = 2;
        while index < args.len() {
            let values = args.len() - index - 1;
            let value = index + 1;
            let taken = match () {
                () if args.is_word(index, "ASC") => {
                    options.descending = false;
                    0
                }
                () if args.is_word(index, "DESC") => {
                    options.descending = true;
                    0
                }
                () if args.is_word(index, "ALPHA") => {
                    options.alpha = true;
                    0
                }
                () if args.is_word(index, "LIMIT") && values >= 2 => {
                    options.offset = args.int(value)?;
                    options.count = args.int(value + 1)?;
                    2
                }
                () if args.is_word(index, "STORE") && values >= 1 && may_store => {
                    options.store = Some(args.get(value));
                    1
                }
                () if args.is_word(index, "BY") && values >= 1 => {
                    // A pattern without a star says not to sort, whatever comes after it.
                    if options.by.as_ref().is_none_or(Pattern::has_star) {
                        options.by = Some(Pattern::new(args.get(value)));
                    }
                    1
                }
                () if args.is_word(index, "GET") && values >= 1 => {
                    options.get.push(Pattern::new(args.get(value)));
                    1
                }
                () => return Err(CommandError::Syntax),
            };
            index += 1 + taken;
        }
        Ok(options)
    }

    /// The part of `len` elements that LIMIT shows.
    fn range(&self, len: usize) -> std::ops::Range<usize> {
        let start = usize::try_from(self.offset).unwrap_or(0).min(len);
        let shown = usize::try_from(self.count).unwrap_or(len).min(len - start);
        start..start + shown
    }

    /// Calls `visit` with what is shown for `element`: itself, or what each GET pattern finds.
    fn each_shown(
        &self,
        view: &View<'_>,
        element: &Element<'_>,
        mut visit: impl FnMut(Option<&[u8]>),
    ) {
        let mut scratch = [0; INTEGER_BYTES_MAX];
        let text = element.text(&mut scratch);
        if self.get.is_empty() {
            return visit(Some(text));
        }
        let mut key = Vec::new();
        for pattern in &self.get {
            pattern.look_up(view, text, &mut key, |found| match found {
                Substitute::Missing => visit(None),
                Substitute::Text(text) => visit(Some(text)),
            });
        }
    }
}

/// An element of the value, borrowed from it.
enum Element<'v> {
    Value(listpack::Value<'v>),
    Member(kiln_data::zset::MemberRef<'v>),
}

impl Element<'_> {
    fn text<'b>(&'b self, scratch: &'b mut [u8; INTEGER_BYTES_MAX]) -> &'b [u8] {
        match self {
            Self::Value(value) => value.text(scratch),
            Self::Member(member) => member,
        }
    }
}

/// An element and what it is compared by.
struct Sortable<'v> {
    element: Element<'v>,
    weight: Weight,
    /// Its place in the value, the last thing to compare by.
    index: usize,
}

enum Weight {
    Number(f64),
    /// ALPHA by a pattern.
    Text(Option<Box<[u8]>>),
    /// ALPHA by the element itself.
    Itself,
}

/// The elements of the value at `key` that LIMIT shows, in order.
///
/// # Errors
///
/// The value has no elements to sort; a weight is not a number.
fn sorted<'v>(
    view: &'v View<'_>,
    key: &[u8],
    options: &Options<'_>,
) -> Result<Vec<Element<'v>>, CommandError> {
    let object = match view.get(key).map(EntryRef::value) {
        None => return Ok(Vec::new()),
        Some(Value::Object(object)) => object,
        Some(Value::String(_)) => return Err(CommandError::WrongType),
    };
    let keeps_order = options.by.as_ref().is_some_and(|pattern| !pattern.has_star());
    let is_stored_set = matches!(object, Object::Set(_)) && options.store.is_some();
    if keeps_order && !is_stored_set {
        return in_own_order(object, options);
    }

    let mut elements = elements(object)?;
    let (alpha, by) = match &options.by {
        Some(_) if keeps_order => (true, None),
        by => (options.alpha, by.as_ref()),
    };
    let mut weighed = Vec::with_capacity(elements.len());
    for (index, element) in elements.drain(..).enumerate() {
        let weight = weigh(view, &element, alpha, by)?;
        weighed.push(Sortable { element, weight, index });
    }
    let range = options.range(weighed.len());
    let compare = |a: &Sortable<'_>, b: &Sortable<'_>| {
        let order = compare(a, b);
        let order = if options.descending { order.reverse() } else { order };
        order.then(a.index.cmp(&b.index))
    };
    // What LIMIT cuts off at the end need not be sorted.
    if !range.is_empty() && range.end < weighed.len() {
        weighed.select_nth_unstable_by(range.end - 1, compare);
        weighed.truncate(range.end);
    }
    weighed.sort_unstable_by(compare);
    Ok(weighed.drain(range).map(|sortable| sortable.element).collect())
}

/// The elements that LIMIT shows in the order that the value has: by insertion, by score, or none.
fn in_own_order<'v>(
    object: &'v Object,
    options: &Options<'_>,
) -> Result<Vec<Element<'v>>, CommandError> {
    let range = options.range(object.len());
    let mirrored = object.len() - range.end..object.len() - range.start;
    Ok(match object {
        Object::List(list) if options.descending => {
            let last = mirrored.end.saturating_sub(1);
            let values = list.iter_from(last, End::Front);
            values.take(range.len()).map(Element::Value).collect()
        }
        Object::List(list) => {
            let values = list.iter_from(range.start, End::Back);
            values.take(range.len()).map(Element::Value).collect()
        }
        Object::SortedSet(zset) if options.descending => {
            let members = zset.elements(mirrored).rev();
            members.map(|(member, _)| Element::Member(member)).collect()
        }
        Object::SortedSet(zset) => {
            let members = zset.elements(range);
            members.map(|(member, _)| Element::Member(member)).collect()
        }
        Object::Set(set) => {
            set.iter().skip(range.start).take(range.len()).map(Element::Value).collect()
        }
        Object::Hash(_) | Object::Engine(_) => return Err(CommandError::WrongType),
    })
}

fn elements(object: &Object) -> Result<Vec<Element<'_>>, CommandError> {
    Ok(match object {
        Object::List(list) => list.iter().map(Element::Value).collect(),
        Object::Set(set) => set.iter().map(Element::Value).collect(),
        Object::SortedSet(zset) => zset.iter().map(|(member, _)| Element::Member(member)).collect(),
        Object::Hash(_) | Object::Engine(_) => return Err(CommandError::WrongType),
    })
}

/// What `element` is compared by.
fn weigh(
    view: &View<'_>,
    element: &Element<'_>,
    alpha: bool,
    by: Option<&Pattern<'_>>,
) -> Result<Weight, CommandError> {
    let mut scratch = [0; INTEGER_BYTES_MAX];
    let Some(pattern) = by else {
        return match element {
            _ if alpha => Ok(Weight::Itself),
            Element::Value(listpack::Value::Int(number)) => Ok(Weight::Number(*number as f64)),
            element => number(element.text(&mut scratch)).map(Weight::Number),
        };
    };
    let mut weight = Ok(Weight::Number(0.0));
    pattern.look_up(view, element.text(&mut scratch), &mut Vec::new(), |found| {
        weight = match found {
            Substitute::Missing if alpha => Ok(Weight::Text(None)),
            Substitute::Text(text) if alpha => Ok(Weight::Text(Some(text.into()))),
            Substitute::Missing => Ok(Weight::Number(0.0)),
            Substitute::Text(text) => number(text).map(Weight::Number),
        };
    });
    weight
}

fn number(text: &[u8]) -> Result<f64, CommandError> {
    // Of Redis's rules for numbers, SORT follows the one for ends of score ranges.
    parse_score_bound(text)
        .ok_or(CommandError::text("ERR One or more scores can't be converted into double"))
}

fn compare(a: &Sortable<'_>, b: &Sortable<'_>) -> Ordering {
    let texts = || {
        let (mut scratch_a, mut scratch_b) = ([0; INTEGER_BYTES_MAX], [0; INTEGER_BYTES_MAX]);
        a.element.text(&mut scratch_a).cmp(b.element.text(&mut scratch_b))
    };
    match (&a.weight, &b.weight) {
        // No weight is NaN; 0 and -0 are equal.
        (Weight::Number(a), Weight::Number(b)) => {
            a.partial_cmp(b).unwrap_or(Ordering::Equal).then_with(texts)
        }
        (Weight::Text(a), Weight::Text(b)) => a.cmp(b),
        _ => texts(),
    }
}
