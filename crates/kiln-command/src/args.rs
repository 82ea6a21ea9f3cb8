//! Words as numbers, with the error that Redis gives for what is none.

use kiln_base::number::{parse_f64, parse_i64};
use kiln_resp::Args;

use crate::error::CommandError;

/// Parsing on top of [`Args`].
pub trait ArgsExt {
    /// Word `index` as a signed integer.
    fn int(&self, index: usize) -> Result<i64, CommandError>;

    /// Word `index` as the number of one of `databases` databases.
    fn db(&self, index: usize, databases: usize) -> Result<usize, CommandError>;

    /// Word `index` as an integer between `min` and `max`, else [`CommandError::OutOfRange`].
    fn int_in(&self, index: usize, min: i64, max: i64) -> Result<i64, CommandError>;

    /// Word `index` as a count whose sign chooses a direction: any but the least integer, which
    /// has no opposite.
    fn signed_count(&self, index: usize) -> Result<i64, CommandError>;

    /// Word `index` as a count that is not negative, else [`CommandError::NotPositive`].
    fn count(&self, index: usize) -> Result<usize, CommandError>;

    /// Word `index` as a floating-point number, infinities included.
    fn float(&self, index: usize) -> Result<f64, CommandError>;

    /// Whether word `index` is there and equals `word` in any case.
    fn is_word(&self, index: usize, word: &str) -> bool;
}

impl ArgsExt for Args<'_> {
    #[inline]
    fn int(&self, index: usize) -> Result<i64, CommandError> {
        parse_i64(self.get(index)).ok_or(CommandError::NotAnInteger)
    }

    fn db(&self, index: usize, databases: usize) -> Result<usize, CommandError> {
        let number = i32::try_from(self.int(index)?).map_err(|_| CommandError::NotAnInt32)?;
        let db = usize::try_from(number).ok().filter(|db| *db < databases);
        db.ok_or(CommandError::DbOutOfRange)
    }

    fn int_in(&self, index: usize, min: i64, max: i64) -> Result<i64, CommandError> {
        let number = self.int(index)?;
        if (min..=max).contains(&number) { Ok(number) } else { Err(CommandError::OutOfRange) }
    }

    fn signed_count(&self, index: usize) -> Result<i64, CommandError> {
        let number = self.int(index)?;
        if number == i64::MIN { Err(CommandError::NotNegatable) } else { Ok(number) }
    }

    fn count(&self, index: usize) -> Result<usize, CommandError> {
        // Redis says the same of what is no integer at all.
        let count = parse_i64(self.get(index)).and_then(|count| usize::try_from(count).ok());
        count.ok_or(CommandError::NotPositive)
    }

    fn float(&self, index: usize) -> Result<f64, CommandError> {
        parse_f64(self.get(index)).ok_or(CommandError::NotAFloat)
    }

    fn is_word(&self, index: usize, word: &str) -> bool {
        self.try_get(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }
}
