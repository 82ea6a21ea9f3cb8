//! From tokens to a postfix program: Dijkstra's shunting yard.

use super::{Filter, Operator, Step, SyntaxError, Token};

impl Operator {
    /// How tightly it binds.
    fn precedence(self) -> u8 {
        match self {
            Self::Open | Self::Close => 0,
            Self::Or => 1,
            Self::And => 2,
            Self::Greater
            | Self::GreaterOrEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::Equal
            | Self::NotEqual
            | Self::In => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::Remainder => 5,
            Self::Power => 6,
            Self::Not => 7,
        }
    }

    /// How many values it takes.
    pub(super) fn arity(self) -> usize {
        match self {
            Self::Open | Self::Close => 0,
            Self::Not => 1,
            _ => 2,
        }
    }

    /// Whether it goes first where `next` follows with an operand between them.
    fn goes_before(self, next: Self) -> bool {
        self.precedence() > next.precedence()
            || (self.precedence() == next.precedence() && next != Self::Power)
    }
}

#[derive(Default)]
struct Compiler {
    program: Vec<Step>,
    members: Vec<Box<[u8]>>,
    pending: Vec<Operator>,
    /// How many values the program has left when it comes here.
    values: usize,
}

pub(super) fn compile(tokens: Vec<Token<'_>>) -> Result<Filter, SyntaxError> {
    const STRUCTURE: SyntaxError = SyntaxError(0);
    let mut compiler = Compiler::default();
    for token in tokens {
        compiler.add(token).ok_or(STRUCTURE)?;
    }
    while let Some(operator) = compiler.pending.pop() {
        compiler.emit(operator).ok_or(STRUCTURE)?;
    }
    let Compiler { program, members, values, .. } = compiler;
    if values == 1 { Ok(Filter { program, members }) } else { Err(STRUCTURE) }
}

impl Compiler {
    fn add(&mut self, token: Token<'_>) -> Option<()> {
        match token {
            Token::Value(value) => self.push(value),
            Token::Member(name) => {
                let known = self.members.iter().position(|member| **member == *name);
                let index = known.unwrap_or_else(|| {
                    self.members.push(name.into());
                    self.members.len() - 1
                });
                self.push(Step::Member(index));
            }
            Token::Operator(Operator::Open) => self.pending.push(Operator::Open),
            Token::Operator(Operator::Close) => loop {
                match self.pending.pop()? {
                    Operator::Open => break,
                    operator => self.emit(operator)?,
                }
            },
            Token::Operator(operator) => {
                while let Some(&top) = self.pending.last()
                    && top != Operator::Open
                    && top.goes_before(operator)
                {
                    self.pending.pop();
                    self.emit(top)?;
                }
                self.pending.push(operator);
            }
        }
        Some(())
    }

    fn push(&mut self, value: Step) {
        self.program.push(value);
        self.values += 1;
    }

    /// Appends an operator, if there is enough for it to work on. An open bracket is none.
    fn emit(&mut self, operator: Operator) -> Option<()> {
        let arity = operator.arity();
        if arity == 0 || self.values < arity {
            return None;
        }
        self.values -= arity - 1;
        self.program.push(Step::Operator(operator));
        Some(())
    }
}
