//! The whole command table against `../shared/reference/commands.tsv`, and against itself.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use kiln_command::{BeginSearch, CommandSpec, FindKeys, KeySpec};

use super::{command, syntax};

/// Rows that differ from the reference on purpose, with the reason: `commands.tsv` joins several
/// servers, and where Redis 8.2.3 says otherwise, it wins.
const DIFFERENT: &[(&str, &str)] = &[];

fn rows() -> impl Iterator<Item = &'static CommandSpec> {
    crate::families().into_iter().flatten()
}

#[test]
fn names_are_unique_and_every_subcommand_has_its_container() {
    let mut names = HashSet::new();
    assert!(rows().all(|spec| names.insert(spec.name)), "two rows have one name");
    for spec in rows() {
        assert_eq!(spec.name, spec.name.to_ascii_uppercase());
        assert!(spec.container_name().is_none_or(|name| names.contains(name)), "{}", spec.name);
    }
}

#[test]
fn every_row_is_documented() {
    for spec in rows() {
        assert!(spec.summary.ends_with('.'), "{}: the summary is a sentence", spec.name);
        assert!(!spec.complexity.is_empty(), "{}: what does it cost?", spec.name);
        let arguments = syntax::parse(spec.syntax);
        let needed = spec.arity.wire().unsigned_abs() as usize;
        let own = 1 + usize::from(spec.name.contains('|'));
        let has_words = spec.arity.wire() != own as i64 && !spec.has_subcommands;
        assert!(
            !has_words || needed == own || !arguments.is_empty(),
            "{}: which words does it take?",
            spec.name
        );
    }
}

/// With as few words as the arity admits, keys at fixed places are there; an open range of keys may
/// be empty, but nothing else stands in its place.
#[test]
fn keys_lie_inside_the_arity() {
    for spec in rows() {
        let count = spec.arity.wire().unsigned_abs() as i64;
        for key in spec.keys {
            if let (BeginSearch::Index(index), FindKeys::Range { last, .. }) = (key.begin, key.find)
            {
                let end = if last < 0 { i64::from(index) } else { i64::from(index + last) + 1 };
                assert!(end <= count, "{}: keys up to {end} of {count} words", spec.name);
            }
        }
    }
}

/// One line of the reference.
struct Reference {
    group: String,
    facts: [(&'static str, String); 6],
}

fn reference() -> HashMap<String, Reference> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/commands.tsv");
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{} is needed: {error}", path.display()));
    let line = |line: &str| {
        let fields: Vec<_> = line.split('\t').collect();
        let facts = [
            ("arity", fields[2].to_owned()),
            ("flags", sorted(fields[3].split(','))),
            ("acl", sorted(fields[4].split(','))),
            ("range", fields[5..8].join(",")),
            ("keys", fields[8].to_owned()),
            ("since", fields[9].to_owned()),
        ];
        (fields[0].replace(' ', "|"), Reference { group: fields[1].to_owned(), facts })
    };
    text.lines().skip(1).map(line).collect()
}

fn sorted<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.sort_unstable();
    words.join(",")
}

/// A key spec as the reference writes it.
fn key_spec(spec: &KeySpec) -> String {
    let begin = match spec.begin {
        BeginSearch::Index(index) => format!("index:{index}"),
        BeginSearch::Keyword(word, from) => format!("keyword:{word}:{from}"),
        BeginSearch::Unknown => "unknown".to_owned(),
    };
    let find = match spec.find {
        FindKeys::Range { last, step, limit } => format!("range:{last}:{step}:{limit}"),
        FindKeys::KeyNum { keynum, first, step } => format!("keynum:{keynum}:{first}:{step}"),
        FindKeys::Unknown => "unknown".to_owned(),
    };
    let flags: Vec<_> = spec.flags.names().collect();
    format!("{begin}>{find}[{}]", flags.join("+"))
}

#[test]
fn every_row_is_as_in_the_reference() {
    let reference = reference();
    let mut report = String::new();
    for spec in rows() {
        let Some(wanted) = reference.get(spec.name) else {
            let _ = writeln!(report, "{}: not in the reference", spec.name);
            continue;
        };
        let (first, last, step) = command::legacy_range(spec);
        let acl: Vec<_> = spec.acl().names().map(|name| format!("@{name}")).collect();
        let keys: Vec<_> = spec.keys.iter().map(key_spec).collect();
        let have = [
            spec.arity.wire().to_string(),
            sorted(spec.flags.names()),
            sorted(acl.iter().map(String::as_str)),
            format!("{first},{last},{step}"),
            keys.join(" "),
            spec.since.to_owned(),
        ];
        let mut check = |what: &str, have: &str, want: &str| {
            if have != want && !DIFFERENT.contains(&(spec.name, what)) {
                let _ = writeln!(report, "{} {what}: {have:?}, reference {want:?}", spec.name);
            }
        };
        check("group", spec.group.name(), &wanted.group);
        for (have, (what, want)) in have.iter().zip(&wanted.facts) {
            check(what, have, want);
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
