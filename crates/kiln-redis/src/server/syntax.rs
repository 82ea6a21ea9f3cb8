//! From the notation of a command's words to the arguments of COMMAND DOCS.
//!
//! ```text
//! key value [NX | XX] [EX seconds | PX milliseconds] [field value ...]
//! name      token     alternatives                    repetition of what stands before
//! ```
//!
//! A word in upper case is a token, sent as it is; a token takes the names behind it as its value.
//! `[ ]` holds what may be left out, `< >` what must be one of several, `|` parts alternatives. A
//! group of the arguments before it with `...` says that they may be repeated.
//!
//! Invariant: the notation is Kiln's own source, so what does not parse is a bug; the test over the
//! whole command table meets it first.
//!
//! Source: the Redis documentation on COMMAND DOCS. Left out: the version that brought an argument,
//! and names for groups, which nothing but documentation shows.

/// What kind of value an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    String,
    Integer,
    Double,
    Key,
    Pattern,
    UnixTime,
    /// Nothing but its token.
    PureToken,
    /// One of its children.
    OneOf,
    /// All of its children.
    Block,
}

impl Kind {
    /// The name in COMMAND DOCS.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Key => "key",
            Self::Pattern => "pattern",
            Self::UnixTime => "unix-time",
            Self::PureToken => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }

    /// The kind of the value that documentation calls `name`.
    fn of(name: &str) -> Self {
        match name {
            "key" | "key1" | "key2" | "source" | "destination" | "newkey" | "sourcekey"
            | "destkey" => Self::Key,
            "pattern" => Self::Pattern,
            "unix-time-seconds" | "unix-time-milliseconds" => Self::UnixTime,
            "score" | "longitude" | "latitude" | "radius" | "width" | "height" | "timeout"
            | "weight" | "min-score" | "max-score" => Self::Double,
            "count" | "offset" | "start" | "end" | "stop" | "index" | "index1" | "index2"
            | "cursor" | "numkeys" | "numfields" | "seconds" | "milliseconds" | "bit" | "rank"
            | "len" | "limit" | "db" | "destination-db" | "port" | "client-id" | "decrement"
            | "numreplicas" | "numlocal" | "num-matches" | "min-match-len" | "protover"
            | "slot" | "start-slot" | "end-slot" | "samples" | "ttl" | "frequency" => Self::Integer,
            _ => Self::String,
        }
    }
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) token: Option<String>,
    pub(super) optional: bool,
    pub(super) multiple: bool,
    /// Every repetition has the token again.
    pub(super) multiple_token: bool,
    pub(super) children: Vec<Argument>,
}

impl Argument {
    fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            token: None,
            optional: false,
            multiple: false,
            multiple_token: false,
            children: Vec::new(),
        }
    }

    fn group(kind: Kind, children: Vec<Self>) -> Self {
        let separator = if kind == Kind::OneOf { "-or-" } else { "-" };
        let names: Vec<_> = children.iter().map(|child| child.name.as_str()).collect();
        let name = names.join(separator);
        Self { children, ..Self::new(&name, kind) }
    }
}

/// The arguments that `syntax` describes.
pub(super) fn parse(syntax: &str) -> Vec<Argument> {
    let words: Vec<&str> = split(syntax);
    let mut rest = words.as_slice();
    let alternatives = nodes(&mut rest, None);
    debug_assert!(rest.is_empty(), "unbalanced brackets in {syntax:?}");
    arguments_of(alternatives)
}

/// A piece of the notation.
#[derive(Clone, Debug)]
enum Node<'s> {
    Name(&'s str),
    Token(&'s str),
    Dots,
    Group { optional: bool, alternatives: Vec<Vec<Node<'s>>> },
}

/// Words and brackets, singly.
fn split(syntax: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for word in syntax.split_ascii_whitespace() {
        let mut rest = word;
        while let Some(opening) = rest.get(..1).filter(|first| matches!(*first, "[" | "<")) {
            words.push(opening);
            rest = &rest[1..];
        }
        let body = rest.trim_end_matches([']', '>']);
        words.extend((!body.is_empty()).then_some(body));
        words.extend((body.len()..rest.len()).map(|at| &rest[at..=at]));
    }
    words
}

/// The alternatives up to `end`, or to the last word.
fn nodes<'s>(rest: &mut &[&'s str], end: Option<&str>) -> Vec<Vec<Node<'s>>> {
    let mut alternatives = vec![Vec::new()];
    while let Some((&word, behind)) = rest.split_first() {
        *rest = behind;
        if Some(word) == end {
            break;
        }
        let node = match word {
            "[" => Node::Group { optional: true, alternatives: nodes(rest, Some("]")) },
            "<" => Node::Group { optional: false, alternatives: nodes(rest, Some(">")) },
            "..." => Node::Dots,
            "|" => {
                alternatives.push(Vec::new());
                continue;
            }
            _ if is_token(word) => Node::Token(word),
            _ => Node::Name(word),
        };
        alternatives.last_mut().expect("there is always one").push(node);
    }
    alternatives
}

/// Names have lower case letters; what has none is sent as it is.
fn is_token(word: &str) -> bool {
    !word.chars().any(char::is_lowercase)
}

fn arguments_of(mut alternatives: Vec<Vec<Node<'_>>>) -> Vec<Argument> {
    let repeated = alternatives.len() > 1 && repeats_all(&alternatives);
    if repeated {
        alternatives.last_mut().expect("there are two at least").pop();
    }
    let mut built: Vec<_> = alternatives.into_iter().map(|nodes| sequence(&nodes)).collect();
    if built.len() == 1 {
        return built.remove(0);
    }
    let mut choice = Argument::group(Kind::OneOf, built.into_iter().map(single).collect());
    choice.multiple = repeated;
    vec![choice]
}

/// Whether the last of several alternatives ends in a group that has all of them once more, with
/// dots: `GET key | SET key value [GET key | SET key value ...]`.
fn repeats_all(alternatives: &[Vec<Node<'_>>]) -> bool {
    let Some(Node::Group { alternatives: again, .. }) =
        alternatives.last().and_then(|last| last.last())
    else {
        return false;
    };
    again.len() == alternatives.len()
        && matches!(again.last().and_then(|last| last.last()), Some(Node::Dots))
}

/// Several arguments as one.
fn single(mut arguments: Vec<Argument>) -> Argument {
    if arguments.len() == 1 {
        return arguments.remove(0);
    }
    Argument::group(Kind::Block, arguments)
}

fn sequence(nodes: &[Node<'_>]) -> Vec<Argument> {
    let mut arguments: Vec<Argument> = Vec::new();
    // How many of the last arguments are the value of an open token, which stands before them.
    let mut token: Option<(&str, usize)> = None;
    let close = |token: &mut Option<(&str, usize)>, arguments: &mut Vec<Argument>| {
        if let Some((word, start)) = token.take() {
            let values = arguments.split_off(start);
            arguments.push(with_token(word, values));
        }
    };
    for node in nodes {
        match node {
            Node::Name(name) => arguments.push(Argument::new(name, Kind::of(name))),
            Node::Token(word) => {
                close(&mut token, &mut arguments);
                token = Some((word, arguments.len()));
            }
            Node::Dots => {
                if let Some(last) = arguments.last_mut() {
                    last.multiple = true;
                }
            }
            Node::Group { alternatives, .. } if repeats(alternatives, &arguments, token) => {
                let group = &alternatives[0];
                let repeats_token = matches!(group[0], Node::Token(_));
                if repeats_token {
                    close(&mut token, &mut arguments);
                }
                repeat(&mut arguments, sequence(&group[..group.len() - 1]).len(), repeats_token);
            }
            Node::Group { optional, alternatives } => {
                close(&mut token, &mut arguments);
                let mut argument = single(arguments_of(alternatives.clone()));
                argument.optional = *optional;
                arguments.push(argument);
            }
        }
    }
    close(&mut token, &mut arguments);
    arguments
}

/// Whether a group is the last of `arguments` once more, with dots. `token` is one that is open:
/// the word, and where its values begin.
fn repeats(
    alternatives: &[Vec<Node<'_>>],
    arguments: &[Argument],
    token: Option<(&str, usize)>,
) -> bool {
    let [only] = alternatives else { return false };
    let Some((Node::Dots, again)) = only.split_last() else { return false };
    let again = sequence(again);
    let Some(first) = arguments.len().checked_sub(again.len()) else { return false };
    let same = |(one, other): (&Argument, &Argument)| one.name == other.name;
    let token_too = again.iter().all(|argument| argument.token.is_none())
        || token
            .is_some_and(|(word, start)| start == first && again[0].token.as_deref() == Some(word));
    !again.is_empty() && token_too && again.iter().zip(&arguments[first..]).all(same)
}

/// Lets the last `count` arguments stand for any number of repetitions.
fn repeat(arguments: &mut Vec<Argument>, count: usize, with_token: bool) {
    let first = arguments.len().saturating_sub(count);
    let mut argument = single(arguments.split_off(first));
    argument.multiple = true;
    argument.multiple_token = with_token;
    arguments.push(argument);
}

/// `word` with the values behind it.
fn with_token(word: &str, values: Vec<Argument>) -> Argument {
    if values.is_empty() {
        let name = word.to_ascii_lowercase();
        return Argument { token: Some(word.to_owned()), ..Argument::new(&name, Kind::PureToken) };
    }
    let mut argument = single(values);
    if argument.kind == Kind::Block {
        argument.name = word.to_ascii_lowercase();
    }
    argument.token = Some(word.to_owned());
    argument
}

#[cfg(test)]
mod tests {
    use super::{Argument, parse};

    /// The arguments in a form of their own: `TOKEN name:kind`, `{block}`, `(one/of)`, `?`
    /// optional, `+` multiple, `#` with its token.
    fn show(arguments: &[Argument], between: &str) -> String {
        let one = |argument: &Argument| {
            let body = match argument.kind.name() {
                "oneof" => format!("({})", show(&argument.children, "/")),
                "block" => format!("{{{}}}", show(&argument.children, " ")),
                "pure-token" => String::new(),
                kind => format!("{}:{kind}", argument.name),
            };
            let text = format!("{} {body}", argument.token.as_deref().unwrap_or_default());
            let mut text = text.trim().to_owned();
            for (mark, set) in
                [('?', argument.optional), ('+', argument.multiple), ('#', argument.multiple_token)]
            {
                text.extend(set.then_some(mark));
            }
            text
        };
        arguments.iter().map(one).collect::<Vec<_>>().join(between)
    }

    #[test]
    fn the_notation_becomes_arguments() {
        for (syntax, want) in [
            ("", ""),
            ("key", "key:key"),
            ("key [key ...]", "key:key+"),
            ("key value [key value ...]", "{key:key value:string}+"),
            ("[NX | XX] [GET]", "(NX/XX)? GET?"),
            ("[EX seconds | KEEPTTL]", "(EX seconds:integer/KEEPTTL)?"),
            ("[LIMIT offset count]", "LIMIT {offset:integer count:integer}?"),
            ("key [GET pattern [GET pattern ...]]", "key:key GET pattern:pattern?+#"),
            ("<LEFT | RIGHT> timeout", "(LEFT/RIGHT) timeout:double"),
            (
                "numkeys key [key ...] [WEIGHTS weight [weight ...]]",
                "numkeys:integer key:key+ WEIGHTS weight:double?+",
            ),
            ("FIELDS numfields field [field ...]", "FIELDS {numfields:integer field:string+}"),
            ("ON | OFF", "(ON/OFF)"),
            ("[GET key | SET value [GET key | SET value ...]]", "(GET key:key/SET value:string)?+"),
            ("[message ...]", "message:string?+"),
        ] {
            assert_eq!(show(&parse(syntax), " "), want, "{syntax}");
        }
    }
}
