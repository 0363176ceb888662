//! The words behind a command's positional arguments: options in any order, each at most once.

use std::ops::RangeInclusive;

use super::error::{Error, Unit};
use crate::queue::id::Id;
use crate::queue::settings::{Retries, MAX_LENGTH};
use crate::queue::time::{DurationMs, UnixMs};
use crate::queue::{Cursor, Due};
use crate::server::args::Args;
use crate::server::register::Arg;

/// Milliseconds that a client may name as a duration.
const DURATION: RangeInclusive<i64> = 0..=DurationMs::MAX.as_ms() as i64;
/// The same for a lease: one of no time at all would be no lease.
const LEASE: RangeInclusive<i64> = 1..=DurationMs::MAX.as_ms() as i64;
/// Numbers of messages, and of redeliveries.
const COUNT_MAX: i64 = i32::MAX as i64;

/// When a message is due, as an argument.
pub const DUE: Arg = Arg::oneof(c"due", &[Arg::token_int(c"DELAY", c"ms"), Arg::token_time(c"AT", c"unix-ms")]);

/// Reads options, given the names that the command has.
pub struct Options<'a, 'o> {
    args: &'o mut Args<'a>,
    names: &'static [&'static str],
    seen: u32,
}

impl<'a, 'o> Options<'a, 'o> {
    /// Reads what is left of `args`. `names` are in upper case, at most 32.
    pub fn new(args: &'o mut Args<'a>, names: &'static [&'static str]) -> Self {
        Options { args, names, seen: 0 }
    }

    /// The name of the next option; none at the end.
    pub fn next(&mut self) -> Result<Option<&'static str>, Error> {
        let Some(word) = self.args.next() else { return Ok(None) };
        let known = self.names.iter().zip(0u32..).find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word));
        let Some((name, nth)) = known else { return Err(Error::UnknownOption(Error::shown(word))) };
        if self.seen & 1 << nth != 0 {
            return Err(Error::Twice(name));
        }
        self.seen |= 1 << nth;
        Ok(Some(name))
    }

    /// The value of an option.
    pub fn value(&mut self, option: &'static str) -> Result<&'a [u8], Error> {
        self.args.next().ok_or(Error::NoValue(option))
    }

    fn number(&mut self, option: &'static str, unit: Unit, range: RangeInclusive<i64>) -> Result<i64, Error> {
        parse_number(self.value(option)?, option, unit, range)
    }

    /// What is left of the words, for an option with more values than one.
    pub fn rest(&mut self) -> &mut Args<'a> {
        self.args
    }

    /// `DELAY` or `AT`, but not both.
    pub fn due(&mut self, option: &'static str, due: &mut Option<Due>) -> Result<(), Error> {
        if due.is_some() {
            return Err(Error::Exclusive("DELAY", "AT"));
        }
        *due = Some(match option {
            "AT" => Due::At(self.instant(option)?),
            _ => Due::After(self.duration(option)?),
        });
        Ok(())
    }

    /// A number of messages that may be none at all.
    pub fn length(&mut self, option: &'static str) -> Result<u64, Error> {
        self.number(option, Unit::Plain, 0..=MAX_LENGTH as i64).map(i64::unsigned_abs)
    }

    /// A number of messages that may be none at all; none, which is -1, is no bound.
    pub fn length_or_all(&mut self, option: &'static str) -> Result<Option<u64>, Error> {
        self.number(option, Unit::Plain, -1..=MAX_LENGTH as i64).map(|length| u64::try_from(length).ok())
    }

    /// A duration, ms.
    pub fn duration(&mut self, option: &'static str) -> Result<DurationMs, Error> {
        self.number(option, Unit::Ms, DURATION).map(|ms| DurationMs::new(ms.unsigned_abs()))
    }

    /// A lease, ms, at least 1.
    pub fn lease(&mut self, option: &'static str) -> Result<DurationMs, Error> {
        self.number(option, Unit::Ms, LEASE).map(|ms| DurationMs::new(ms.unsigned_abs()))
    }

    /// A time of day, Unix ms.
    pub fn instant(&mut self, option: &'static str) -> Result<UnixMs, Error> {
        let range = 0..=UnixMs::MAX_AT as i64;
        self.number(option, Unit::UnixMs, range).map(|ms| UnixMs::new(ms.unsigned_abs()))
    }

    /// A number of messages, at least 1.
    pub fn count(&mut self, option: &'static str) -> Result<usize, Error> {
        self.number(option, Unit::Plain, 1..=COUNT_MAX).map(|count| count.unsigned_abs() as usize)
    }

    /// A priority.
    pub fn priority(&mut self, option: &'static str) -> Result<i8, Error> {
        self.number(option, Unit::Plain, i8::MIN.into()..=i8::MAX.into()).map(|priority| priority as i8)
    }

    /// A number of redeliveries; -1 is no limit.
    pub fn retries(&mut self, option: &'static str) -> Result<Retries, Error> {
        self.number(option, Unit::Plain, -1..=COUNT_MAX)
            .map(|count| Retries::new(count as i32).unwrap_or(Retries::UNLIMITED))
    }

    /// A name that a producer chose.
    pub fn name(&mut self, option: &'static str) -> Result<&'a [u8], Error> {
        Some(self.value(option)?).filter(|name| Id::is_name(name)).ok_or(Error::BadId)
    }
}

/// A number of words, at least 1, that stands before them.
pub fn count_of_words(args: &mut Args<'_>, name: &'static str) -> Result<usize, Error> {
    let word = args.next().unwrap_or_default();
    parse_number(word, name, Unit::Plain, 1..=COUNT_MAX).map(|count| count.unsigned_abs() as usize)
}

/// A cursor of a scan.
pub fn cursor(word: &[u8]) -> Result<Cursor, Error> {
    let number = std::str::from_utf8(word).ok().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    number.and_then(|number| number.parse().ok()).map(Cursor::from_number).ok_or(Error::BadCursor)
}

fn parse_number(word: &[u8], option: &'static str, unit: Unit, range: RangeInclusive<i64>) -> Result<i64, Error> {
    let (min, max) = (*range.start(), *range.end());
    parse_integer(word).filter(|number| range.contains(number)).ok_or(Error::Range { option, unit, min, max })
}

/// A whole number as the server itself reads them: an optional minus, digits, no leading zero.
fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, text),
    };
    let canonical = match digits {
        [b'0'] => !negative,
        [first, ..] => *first != b'0',
        [] => false,
    };
    if !canonical {
        return None;
    }
    // Counted downwards, since the smallest number has no positive twin.
    let value = digits.iter().try_fold(0i64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_sub(digit)
    })?;
    if negative {
        Some(value)
    } else {
        value.checked_neg()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_server_reads_them() {
        for (text, value) in
            [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX), ("-9223372036854775808", i64::MIN)]
        {
            assert_eq!(parse_integer(text.as_bytes()), Some(value));
        }
        for text in ["", "-", "-0", "01", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "9223372036854775808", "x"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
        }
    }
}
