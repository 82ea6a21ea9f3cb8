//! The expression language of VSIM's FILTER, over the JSON attributes of elements.
//!
//! ```text
//! text ─► tokens (lexer) ─► postfix program (compile) ─► for each element: a value (eval)
//!                                                             └─ members of its JSON (json)
//! ```
//!
//! The grammar is that of a shunting yard that checks only how many operands each operator finds,
//! so `1 2 +` counts 3 and `1!` is `not 1`, as in Redis. Operators, loosest first: `or ||`,
//! `and &&`, `== != > >= < <= in` (one level, from the left), `+ -`, `* / %`, `**` (from the
//! right), `not !`. There are no booleans: a comparison gives 1 or 0.
//!
//! - An element whose attributes lack a member that the expression names never passes, whatever the
//!   operators say. A member that is an object, or that the JSON breaks off before, is lacking.
//! - Strings are compared raw: no escape is resolved, neither here nor in the JSON.
//! - Two strings are equal byte for byte, null only equals null; everything else is compared as
//!   numbers, and what is no number counts as 0.
//! - An expression ends at its first NUL.
//!
//! Nothing here recurses, so the depth of brackets, here and in the JSON, costs nothing.
//!
//! Source: the Redis documentation of vector sets; every rule was tried on Redis 8.2.3.

mod compile;
mod eval;
mod json;
mod lexer;

use kiln_command::{CommandError, echo};

use self::lexer::Token;

/// A compiled expression.
#[derive(Debug)]
pub struct Filter {
    program: Vec<Step>,
    /// The names of the members that the program reads, each once.
    members: Vec<Box<[u8]>>,
}

/// A step of the program: a value to push, or an operator on the topmost ones.
#[derive(Debug, PartialEq)]
enum Step {
    Number(f64),
    Text(Box<[u8]>),
    List(Box<[Constant]>),
    Null,
    /// The member with this index in `Filter::members`.
    Member(usize),
    Operator(Operator),
}

/// An element of a list that stands in the expression.
#[derive(Debug, PartialEq)]
enum Constant {
    Number(f64),
    Text(Box<[u8]>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Open,
    Close,
    Or,
    And,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Not,
}

/// Where an expression is wrong: an offset, or 0 if its structure is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SyntaxError(usize);

impl Filter {
    /// Compiles `text`.
    ///
    /// # Errors
    ///
    /// Redis's text, which repeats the expression from where it is wrong.
    pub fn new(text: &[u8]) -> Result<Self, CommandError> {
        let text = &text[..memchr(text)];
        lexer::tokens(text).and_then(compile::compile).map_err(|SyntaxError(at)| {
            // At the end there is nothing to repeat, so all of it is.
            let rest = if at < text.len() { &text[at..] } else { text };
            let rest = echo(rest);
            CommandError::owned(format!("ERR syntax error in FILTER expression near: {rest}"))
        })
    }
}

/// Where the first NUL is, or the end.
fn memchr(text: &[u8]) -> usize {
    text.iter().position(|&byte| byte == 0).unwrap_or(text.len())
}

impl kiln_vector::Filter for Filter {
    fn admits(&self, _: &[u8], attributes: Option<&[u8]>) -> bool {
        attributes.is_some_and(|json| self.matches(json))
    }
}

#[cfg(test)]
mod tests;
