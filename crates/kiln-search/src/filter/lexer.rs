//! From the text of an expression to its tokens.

use super::{Constant, Operator, Step, SyntaxError};

/// A token: what the program will push, or an operator. A member's name is still in the text.
#[derive(Debug, PartialEq)]
pub(super) enum Token<'e> {
    Value(Step),
    Member(&'e [u8]),
    Operator(Operator),
}

/// Bytes that operators are made of, besides letters.
const SYMBOLS: &[u8] = b"+-*%/!()<>=|&";

const OPERATORS: [(&[u8], Operator); 21] = [
    (b"(", Operator::Open),
    (b")", Operator::Close),
    (b"or", Operator::Or),
    (b"||", Operator::Or),
    (b"and", Operator::And),
    (b"&&", Operator::And),
    (b">", Operator::Greater),
    (b">=", Operator::GreaterOrEqual),
    (b"<", Operator::Less),
    (b"<=", Operator::LessOrEqual),
    (b"==", Operator::Equal),
    (b"!=", Operator::NotEqual),
    (b"in", Operator::In),
    (b"+", Operator::Add),
    (b"-", Operator::Subtract),
    (b"*", Operator::Multiply),
    (b"/", Operator::Divide),
    (b"%", Operator::Remainder),
    (b"**", Operator::Power),
    (b"not", Operator::Not),
    (b"!", Operator::Not),
];

struct Lexer<'e> {
    text: &'e [u8],
    at: usize,
}

/// Cuts `text` into tokens. The error is where the lexer stood when it gave up.
pub(super) fn tokens(text: &[u8]) -> Result<Vec<Token<'_>>, SyntaxError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_spaces();
        if lexer.at == text.len() {
            return Ok(tokens);
        }
        // Behind a value a minus subtracts; anywhere else it belongs to the digit behind it.
        let signed = match tokens.last() {
            None => true,
            Some(Token::Operator(operator)) => *operator != Operator::Close,
            Some(_) => false,
        };
        let token = lexer.token(signed).ok_or(SyntaxError(lexer.at))?;
        tokens.push(token);
    }
}

impl<'e> Lexer<'e> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek(0).is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// Takes the bytes from here on that are of a kind.
    fn take(&mut self, is_of_kind: impl Fn(u8) -> bool) -> &'e [u8] {
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|&byte| !is_of_kind(byte)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    fn token(&mut self, signed: bool) -> Option<Token<'e>> {
        match self.peek(0)? {
            b'0'..=b'9' => self.number().map(|number| Token::Value(Step::Number(number))),
            b'-' if signed && self.peek(1).is_some_and(|next| next.is_ascii_digit()) => {
                self.number().map(|number| Token::Value(Step::Number(number)))
            }
            b'"' | b'\'' => self.string().map(|text| Token::Value(Step::Text(text.into()))),
            // A lone dot at the end is a member without a name, in Redis too.
            b'.' if self.peek(1).is_none_or(is_in_name) => {
                self.at += 1;
                Some(Token::Member(self.take(is_in_name)))
            }
            b'[' => self.list().map(Token::Value),
            byte if is_in_operator(byte) => self.operator(),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<f64> {
        let start = self.at;
        self.at += usize::from(self.peek(0) == Some(b'-'));
        self.take(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E'));
        let text = &self.text[start..self.at];
        let has_digit = text.iter().any(u8::is_ascii_digit);
        has_digit.then(|| fast_float2::parse(text).ok())?
    }

    /// The bytes between two equal quotes, escapes and all.
    fn string(&mut self) -> Option<&'e [u8]> {
        let quote = self.text[self.at];
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.text.get(end) {
                None => {
                    self.at = end.min(self.text.len());
                    return None;
                }
                Some(b'\\') => end += 2,
                Some(&byte) if byte == quote => break,
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        Some(&self.text[start..end])
    }

    /// Numbers and strings between brackets; a comma may stand behind the last.
    fn list(&mut self) -> Option<Step> {
        self.at += 1;
        let mut list = Vec::new();
        loop {
            self.skip_spaces();
            match self.peek(0)? {
                b']' => break,
                b'-' | b'0'..=b'9' => list.push(Constant::Number(self.number()?)),
                b'"' | b'\'' => list.push(Constant::Text(self.string()?.into())),
                _ => return None,
            }
            self.skip_spaces();
            match self.peek(0)? {
                b',' => self.at += 1,
                b']' => break,
                _ => return None,
            }
        }
        self.at += 1;
        Some(Step::List(list.into()))
    }

    /// The longest operator that begins here. Letters and symbols may touch (`1||not.a`), but a
    /// word that is none is skipped with all that touches it.
    fn operator(&mut self) -> Option<Token<'e>> {
        let rest = &self.text[self.at..];
        if rest.starts_with(b"null") && !rest.get(4).copied().is_some_and(is_in_operator) {
            self.at += 4;
            return Some(Token::Value(Step::Null));
        }
        let matching = OPERATORS.iter().filter(|(name, _)| rest.starts_with(name));
        let Some((name, operator)) = matching.max_by_key(|(name, _)| name.len()) else {
            self.take(is_in_operator);
            return None;
        };
        self.at += name.len();
        Some(Token::Operator(*operator))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_in_operator(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || SYMBOLS.contains(&byte)
}
