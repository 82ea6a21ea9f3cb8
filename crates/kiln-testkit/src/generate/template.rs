//! Command syntax as a line of text, expanded at random.
//!
//! ```text
//! SET              the word itself
//! <value>          a word, or several, of that kind (`words.rs`)
//! [ A | B ]        one of them or nothing
//! ( A | B )        one of them
//! { A | B }        up to four of them in any order, repeats allowed
//! A +              A once or a few times
//! ```
//!
//! Every mark stands between blanks.

use std::iter::Peekable;
use std::str::SplitAsciiWhitespace;

use super::random::Random;
use super::words;

/// A parsed line.
pub(super) struct Template {
    sequence: Vec<Node>,
}

enum Node {
    Literal(&'static str),
    Kind(&'static str),
    Optional(Vec<Vec<Node>>),
    Choice(Vec<Vec<Node>>),
    Options(Vec<Vec<Node>>),
    Repeat(Box<Node>),
}

impl Template {
    /// Parses `line`.
    ///
    /// # Panics
    ///
    /// If its brackets don't balance: the lines are constants of this crate.
    pub(super) fn parse(line: &'static str) -> Self {
        let mut marks = line.split_ascii_whitespace().peekable();
        let sequence = sequence(&mut marks);
        assert!(marks.next().is_none(), "unbalanced template: {line}");
        Self { sequence }
    }

    /// One random command of this syntax.
    pub(super) fn expand(&self, random: &mut Random) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        expand_all(&self.sequence, random, &mut out);
        out
    }
}

type Marks = Peekable<SplitAsciiWhitespace<'static>>;

fn sequence(marks: &mut Marks) -> Vec<Node> {
    let mut nodes = Vec::new();
    while let Some(&mark) = marks.peek() {
        if matches!(mark, "|" | "]" | ")" | "}") {
            break;
        }
        marks.next();
        let node = match mark {
            "[" => Node::Optional(alternatives(marks)),
            "(" => Node::Choice(alternatives(marks)),
            "{" => Node::Options(alternatives(marks)),
            "+" => Node::Repeat(Box::new(nodes.pop().expect("something stands before +"))),
            _ => match mark.strip_prefix('<').and_then(|mark| mark.strip_suffix('>')) {
                Some(kind) => Node::Kind(kind),
                None => Node::Literal(mark),
            },
        };
        nodes.push(node);
    }
    nodes
}

fn alternatives(marks: &mut Marks) -> Vec<Vec<Node>> {
    let mut all = vec![sequence(marks)];
    while marks.next().expect("brackets balance") == "|" {
        all.push(sequence(marks));
    }
    all
}

fn expand_all(nodes: &[Node], random: &mut Random, out: &mut Vec<Vec<u8>>) {
    for node in nodes {
        expand(node, random, out);
    }
}

fn expand(node: &Node, random: &mut Random, out: &mut Vec<Vec<u8>>) {
    match node {
        Node::Literal(word) => out.push(word.as_bytes().to_vec()),
        Node::Kind(kind) => words::generate(kind, random, out),
        Node::Optional(all) => {
            if random.chance(50) {
                expand_all(pick(all, random), random, out);
            }
        }
        Node::Choice(all) => expand_all(pick(all, random), random, out),
        Node::Options(all) => {
            for _ in 0..*random.pick(&[0, 1, 1, 1, 2, 2, 3, 4]) {
                expand_all(pick(all, random), random, out);
            }
        }
        Node::Repeat(node) => {
            for _ in 0..*random.pick(&[1, 1, 2, 2, 3, 5]) {
                expand(node, random, out);
            }
        }
    }
}

/// One of `all`. Junk as an alternative is mostly passed over: a command with any fails at once.
fn pick<'a>(all: &'a [Vec<Node>], random: &mut Random) -> &'a [Node] {
    let choice = random.pick(all);
    let is_junk = matches!(choice[..], [Node::Kind("junk")]);
    if is_junk && random.chance(75) { random.pick::<Vec<Node>>(all) } else { choice }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_expands() {
        let template = Template::parse("A [ B | C D ] ( E | F ) { G | H <int> } ( I J ) +");
        let (mut shortest, mut longest) = (usize::MAX, 0);
        for seed in 0..20_000 {
            let words = template.expand(&mut Random::new(seed));
            assert_eq!(words[0], b"A");
            assert_eq!(words[words.len() - 2..], [b"I".to_vec(), b"J".to_vec()]);
            shortest = shortest.min(words.len());
            longest = longest.max(words.len());
        }
        assert_eq!((shortest, longest), (4, 22));
    }
}
