//! Random commands, seeded: the same seed and families give the same steps for ever.
//!
//! A family is a table of weighted templates (`generate/families.rs`). A command is drawn from a
//! template, now and then mutated (words dropped, doubled, swapped, replaced by junk, their case
//! changed), and sent unless `generate/guard.rs` finds it dangerous. Transactions are made of
//! commands of all other families.

mod families;
mod guard;
mod random;
mod template;
mod words;

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

pub(crate) use self::guard::{blocks_for_ever, upper};
pub use self::random::Random;
use self::template::Template;

/// How many connections the steps use.
pub const SESSIONS: usize = 2;

/// One command on one of [`SESSIONS`] connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which connection.
    pub session: usize,
    /// The command's words.
    pub words: Vec<Vec<u8>>,
    /// Whether to call it again with the cursor it returns until that is 0 (SCAN and its kin).
    pub iterate: bool,
}

/// A family of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Family {
    Strings,
    Bitmaps,
    HyperLogLog,
    Keys,
    Lists,
    Sets,
    Hashes,
    SortedSets,
    Vectors,
    Scan,
    Sort,
    Transactions,
    Blocking,
    Connection,
    Arity,
}

/// Each family with its name on the command line, its share and its templates.
const FAMILIES: [(Family, &str, usize, &[families::Row]); 15] = [
    (Family::Strings, "strings", 14, families::STRINGS),
    (Family::Bitmaps, "bitmaps", 8, families::BITMAPS),
    (Family::HyperLogLog, "hyperloglog", 4, families::HYPERLOGLOG),
    (Family::Keys, "keys", 13, families::KEYS),
    (Family::Lists, "lists", 12, families::LISTS),
    (Family::Sets, "sets", 11, families::SETS),
    (Family::Hashes, "hashes", 14, families::HASHES),
    (Family::SortedSets, "sorted-sets", 18, families::SORTED_SETS),
    (Family::Vectors, "vectors", 8, families::VECTORS),
    (Family::Scan, "scan", 3, families::SCANS),
    (Family::Sort, "sort", 4, families::SORTS),
    (Family::Transactions, "transactions", 2, &[]),
    (Family::Blocking, "blocking", 3, families::BLOCKING),
    (Family::Connection, "connection", 4, families::CONNECTION),
    (Family::Arity, "arity", 3, families::ARITY),
];

impl Family {
    /// All families.
    pub fn all() -> Vec<Self> {
        FAMILIES.iter().map(|row| row.0).collect()
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = FAMILIES.iter().find(|row| row.0 == *self).expect("every family has its row");
        f.write_str(row.1)
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let row = FAMILIES.iter().find(|row| row.1 == name);
        row.map(|row| row.0).ok_or_else(|| {
            let names: Vec<_> = FAMILIES.iter().map(|row| row.1).collect();
            format!("no family {name}: choose from {}", names.join(","))
        })
    }
}

/// The templates of one family, parsed.
struct Table {
    family: Family,
    share: usize,
    rows: Vec<(usize, Template)>,
}

/// An endless sequence of steps.
pub struct Generator {
    random: Random,
    tables: Vec<Table>,
    pending: VecDeque<Step>,
}

impl Generator {
    /// Steps of `families`, which are not empty, from `seed`.
    pub fn new(seed: u64, families: &[Family]) -> Self {
        let tables = FAMILIES.iter().filter(|row| families.contains(&row.0)).map(|row| Table {
            family: row.0,
            share: row.2,
            rows: row.3.iter().map(|(weight, line)| (*weight, Template::parse(line))).collect(),
        });
        Self { random: Random::new(seed), tables: tables.collect(), pending: VecDeque::new() }
    }

    /// The next step.
    pub fn step(&mut self) -> Step {
        while self.pending.is_empty() {
            let table = self.pick_table();
            if self.tables[table].family == Family::Transactions {
                self.transaction();
            } else if let Some(step) = self.command(table) {
                self.pending.push_back(step);
            }
        }
        self.pending.pop_front().expect("the loop ends with a step")
    }

    fn pick_table(&mut self) -> usize {
        let shares: Vec<_> = self.tables.iter().map(|table| table.share).collect();
        pick_weighted(&shares, &mut self.random)
    }

    /// A command of one table, or nothing if it would be dangerous.
    fn command(&mut self, table: usize) -> Option<Step> {
        let family = self.tables[table].family;
        let random = &mut self.random;
        let weights: Vec<_> = self.tables[table].rows.iter().map(|row| row.0).collect();
        let mut words = self.tables[table].rows[pick_weighted(&weights, random)].1.expand(random);
        if random.chance(8) {
            mutate(&mut words, random);
        }
        if random.chance(5) {
            let index = random.below(words.len());
            words[index] = mixed_case(&words[index]);
        }
        if family == Family::Connection && random.chance(10) {
            words = self.get_keys();
        }
        let random = &mut self.random;
        if !guard::is_safe(&words) {
            return None;
        }
        // A change of connection costs a round trip.
        let session = usize::from(random.chance(3));
        let iterate = family == Family::Scan && words.iter().any(|word| word == b"0");
        Some(Step { session, words, iterate })
    }

    /// COMMAND GETKEYS of a random command.
    fn get_keys(&mut self) -> Vec<Vec<u8>> {
        let table = self.pick_table();
        let mut words = vec![b"COMMAND".to_vec(), b"GETKEYS".to_vec()];
        if !self.tables[table].rows.is_empty() {
            let row = self.random.below(self.tables[table].rows.len());
            words.extend(self.tables[table].rows[row].1.expand(&mut self.random));
        }
        words
    }

    /// WATCH, interference, MULTI, commands good and bad, EXEC or DISCARD.
    fn transaction(&mut self) {
        let session = usize::from(self.random.chance(30));
        let fixed = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let mut steps = Vec::new();
        if self.random.chance(40) {
            let mut words: Vec<Vec<u8>> = fixed("WATCH");
            for _ in 0..=self.random.below(2) {
                words::generate("key", &mut self.random, &mut words);
            }
            steps.push((session, words));
            match self.random.below(6) {
                0 => steps.push((session, fixed("UNWATCH"))),
                1..=3 => {
                    let other =
                        if self.random.chance(70) { SESSIONS - 1 - session } else { session };
                    steps.extend(self.inner().map(|words| (other, words)));
                }
                _ => {}
            }
        }
        steps.push((session, fixed("MULTI")));
        for _ in 0..self.random.below(6) {
            let words = match self.random.below(30) {
                0 => Some(fixed("MULTI")),
                1 => Some(fixed("WATCH str1")),
                2 => Some(fixed("BLPOP list1 list2 0")),
                3 => Some(fixed("BZPOPMIN zset1 0")),
                4 => Some(fixed("BLMOVE list1 list2 LEFT RIGHT 0")),
                _ => self.inner(),
            };
            steps.extend(words.map(|words| (session, words)));
        }
        let end = if self.random.chance(85) { "EXEC" } else { "DISCARD" };
        steps.push((session, fixed(end)));
        self.pending.extend(steps.into_iter().map(|(session, words)| Step {
            session,
            words,
            iterate: false,
        }));
    }

    /// A command of any family but those that end a transaction; of strings if no other is wanted.
    fn inner(&mut self) -> Option<Vec<Vec<u8>>> {
        let table = self.pick_table();
        if matches!(self.tables[table].family, Family::Transactions | Family::Connection) {
            return None;
        }
        let words = self.command(table)?.words;
        let ends = matches!(upper(&words[0]).as_str(), "EXEC" | "DISCARD" | "RESET");
        (!ends).then_some(words)
    }
}

fn pick_weighted(weights: &[usize], random: &mut Random) -> usize {
    let mut rest = random.below(weights.iter().sum());
    for (index, weight) in weights.iter().enumerate() {
        if rest < *weight {
            return index;
        }
        rest -= weight;
    }
    unreachable!("the number is below the sum of the weights")
}

/// Makes a command hostile.
fn mutate(words: &mut Vec<Vec<u8>>, random: &mut Random) {
    let index = random.below(words.len());
    let kinds = ["junk", "int", "float", "value", "key", "junk"];
    let mut other = Vec::new();
    let kind = *random.pick(&kinds);
    words::generate(kind, random, &mut other);
    match random.below(7) {
        0 if index > 0 => drop(words.remove(index)),
        1 if index > 0 => words.insert(index, words[index].clone()),
        2 if index > 0 => words[index].clone_from(&other[0]),
        3 => words.extend(other),
        4 => words.truncate(index.max(1)),
        5 if index > 0 => {
            let last = words.len() - 1;
            words.swap(index, last);
        }
        _ => words.insert(index.max(1), other.remove(0)),
    }
}

fn mixed_case(word: &[u8]) -> Vec<u8> {
    let flip = |(index, byte): (usize, &u8)| {
        if index % 2 == 0 { byte.to_ascii_lowercase() } else { byte.to_ascii_uppercase() }
    };
    word.iter().enumerate().map(flip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays() {
        let steps = |seed| {
            let mut generator = Generator::new(seed, &Family::all());
            (0..500).map(|_| generator.step()).collect::<Vec<_>>()
        };
        assert_eq!(steps(7), steps(7));
        assert_ne!(steps(7), steps(8));
    }

    #[test]
    fn every_family_alone_gives_commands() {
        for family in Family::all() {
            if family == Family::Transactions {
                continue;
            }
            let mut generator = Generator::new(1, &[family]);
            for _ in 0..2_000 {
                let step = generator.step();
                assert!(step.session < SESSIONS && guard::is_safe(&step.words));
            }
        }
    }

    #[test]
    fn family_names_parse_as_they_print() {
        for family in Family::all() {
            assert_eq!(family.to_string().parse(), Ok(family));
        }
        assert!("nothing".parse::<Family>().is_err());
    }
}
