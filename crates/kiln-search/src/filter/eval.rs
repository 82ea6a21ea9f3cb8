//! Running a program on one element's attributes.

use smallvec::{SmallVec, smallvec};

use super::json::{self, Json};
use super::{Constant, Filter, Operator, Step};

/// A value while the program runs.
#[derive(Clone, Copy)]
enum Value<'a> {
    Number(f64),
    Text(&'a [u8]),
    /// A list of the expression.
    List(&'a [Constant]),
    /// An array of the JSON.
    Array(&'a [u8]),
    Null,
}

impl<'a> From<Json<'a>> for Value<'a> {
    fn from(json: Json<'a>) -> Self {
        match json {
            Json::Number(number) => Self::Number(number),
            Json::Text(text) => Self::Text(text),
            Json::List(text) => Self::Array(text),
            Json::Null => Self::Null,
        }
    }
}

impl Filter {
    /// Whether an element with these attributes passes.
    pub fn matches(&self, attributes: &[u8]) -> bool {
        let mut found: SmallVec<[Option<Json<'_>>; 8]> = smallvec![None; self.members.len()];
        if !self.members.is_empty() && !json::members(attributes, &self.members, &mut found) {
            return false;
        }
        let mut stack: SmallVec<[Value<'_>; 16]> = SmallVec::new();
        for step in &self.program {
            let value = match step {
                Step::Number(number) => Value::Number(*number),
                Step::Text(text) => Value::Text(text),
                Step::List(list) => Value::List(list),
                Step::Null => Value::Null,
                Step::Member(index) => found[*index].expect("all were found").into(),
                Step::Operator(operator) => {
                    let last = stack.pop().expect("the compiler counts values");
                    let first = if operator.arity() == 2 {
                        stack.pop().expect("the compiler counts values")
                    } else {
                        Value::Null
                    };
                    Value::Number(apply(*operator, first, last))
                }
            };
            stack.push(value);
        }
        stack.pop().is_some_and(Value::is_true)
    }
}

fn apply(operator: Operator, a: Value<'_>, b: Value<'_>) -> f64 {
    let (x, y) = (a.number(), b.number());
    let truth = match operator {
        Operator::Add => return x + y,
        Operator::Subtract => return x - y,
        Operator::Multiply => return x * y,
        Operator::Divide => return x / y,
        Operator::Remainder => return x % y,
        Operator::Power => return x.powf(y),
        Operator::Or => a.is_true() || b.is_true(),
        Operator::And => a.is_true() && b.is_true(),
        Operator::Greater => x > y,
        Operator::GreaterOrEqual => x >= y,
        Operator::Less => x < y,
        Operator::LessOrEqual => x <= y,
        Operator::Equal => a.equals(b),
        Operator::NotEqual => !a.equals(b),
        Operator::In => a.is_in(b),
        Operator::Not => !b.is_true(),
        Operator::Open | Operator::Close => unreachable!("brackets are not compiled"),
    };
    f64::from(u8::from(truth))
}

impl Value<'_> {
    fn is_true(self) -> bool {
        match self {
            Self::Number(number) => number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(_) | Self::Array(_) => true,
            Self::Null => false,
        }
    }

    fn number(self) -> f64 {
        match self {
            Self::Number(number) => number,
            Self::Text(text) => number_of(text),
            Self::List(_) | Self::Array(_) | Self::Null => 0.0,
        }
    }

    #[expect(clippy::float_cmp, reason = "the language compares numbers exactly")]
    fn equals(self, other: Self) -> bool {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Null, Value::Null) => true,
            (Value::Null, _) | (_, Value::Null) => false,
            (a, b) => a.number() == b.number(),
        }
    }

    fn is_in(self, whole: Value<'_>) -> bool {
        match (self, whole) {
            (value, Value::List(list)) => list.iter().any(|constant| {
                value.equals(match constant {
                    Constant::Number(number) => Value::Number(*number),
                    Constant::Text(text) => Value::Text(text),
                })
            }),
            (value, Value::Array(array)) => {
                json::elements(array).any(|element| value.equals(element.into()))
            }
            (Value::Text(part), Value::Text(text)) => {
                part.is_empty() || text.windows(part.len()).any(|window| window == part)
            }
            _ => false,
        }
    }
}

/// The number that a text is, as C's `strtod` reads it, or 0.
fn number_of(text: &[u8]) -> f64 {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    if digits.starts_with(b"0x") || digits.starts_with(b"0X") {
        return kiln_base::number::parse_f64(text).unwrap_or(0.0);
    }
    fast_float2::parse(text).unwrap_or(0.0)
}
