//! The option parser. Options follow a command's positional arguments in any order, each at most once.
//!
//! The options of a command are one enum, which `options!` declares together with their syntax. The parser, the
//! command's row and `COMMAND DOCS` are all derived from it, and every `match` on the enum names every option.

use std::ops::RangeInclusive;

use super::error::Error;
use crate::module_api::args::Args;
use crate::module_api::register::Arg;
use dq_queue::id::{self, Id};
use dq_queue::settings::{Field, Retries, Unit, Word, MAX_LENGTH};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{
    is_batch_name, is_consumer_name, is_group_name, BadHeaders, Due, HeaderBlock, Reason, CHECKPOINT_MAX, HEADERS_MAX,
};

/// The durations that a client may give, in milliseconds.
const DURATION: RangeInclusive<i64> = 0..=DurationMs::MAX.as_ms() as i64;
/// The durations of options that must not be zero, such as a lease.
const POSITIVE_DURATION: RangeInclusive<i64> = 1..=DurationMs::MAX.as_ms() as i64;
/// The Unix times that a client may give, in milliseconds. Smaller numbers are assumed to be seconds and are refused.
const INSTANT: RangeInclusive<i64> = UnixMs::MIN_AT as i64..=UnixMs::MAX_AT as i64;
/// The largest number of messages, and of redeliveries.
const COUNT_MAX: i64 = i32::MAX as i64;

/// The due time of a message, as an argument.
pub const DUE: Arg = Arg::oneof(c"due", &[Arg::token_int(c"DELAY", c"ms"), Arg::token_time(c"AT", c"unix-ms")]);

/// Headers, as an argument.
pub const HEADERS: Arg = Arg::block(
    c"headers",
    &[Arg::int(c"n"), Arg::block(c"header", &[Arg::string(c"name"), Arg::string(c"value")]).multiple()],
)
.after(c"HEADERS");

/// Why a message is dead, as an argument.
pub const REASON: Arg = Arg::oneof(
    c"reason",
    &[Arg::token(c"retries", c"RETRIES"), Arg::token(c"rejected", c"REJECTED"), Arg::token(c"expired", c"EXPIRED")],
)
.after(c"REASON");
/// The words of `REASON`.
const REASON_WORDS: &[Word] =
    &[Word(c"retries", c"RETRIES"), Word(c"rejected", c"REJECTED"), Word(c"expired", c"EXPIRED")];
/// What they stand for.
const REASONS: [Reason; 3] = [Reason::Retries, Reason::Rejected, Reason::Expired];

/// The options of a command.
pub trait OptionSet: Copy {
    /// Finds the option that `word` names, ignoring case. Returns it with its index among the options of the set.
    fn find(word: &[u8]) -> Option<(u32, Self)>;
}

/// Declares the options of a command: an enum, its syntax as `ARGS` for the command's row, and its parser.
///
/// Each line is `Variant => Arg`, or `First | Second => Arg` for an `Arg::oneof` whose parts are alternatives in this
/// order. A last line `..Other` includes the options of another set as the variant `Other(Other)`. Every option is
/// optional, so `Arg::optional` is not repeated. There can be at most 32 options.
macro_rules! options {
    ($(#[$doc:meta])* $vis:vis enum $set:ident {
        $($option:ident $(| $other:ident)* => $arg:expr,)*
        $(..$nested:ident,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $set { $($option, $($other,)*)* $($nested($nested),)? }

        impl $set {
            /// The options as arguments, without those of an included set.
            #[allow(dead_code, reason = "a row may describe them in another way")]
            $vis const ARGS: &'static [$crate::module_api::register::Arg] = &[$($arg.optional()),*];
        }

        impl $crate::commands::options::OptionSet for $set {
            fn find(word: &[u8]) -> Option<(u32, Self)> {
                let mut before = 0u32;
                $({
                    const ARG: $crate::module_api::register::Arg = $arg;
                    const SAME: &[$set] = &[$set::$option $(, $set::$other)*];
                    if let Some(nth) = ARG.token_of(word) {
                        return SAME.get(nth).map(|option| (before + nth as u32, *option));
                    }
                    before += SAME.len() as u32;
                })*
                $(
                    if let Some((nth, option)) = <$nested as $crate::commands::options::OptionSet>::find(word) {
                        return Some((before + nth, $set::$nested(option)));
                    }
                )?
                let _ = before;
                None
            }
        }
    };
}
pub(crate) use options;

/// Reads the options of a call one by one: first the option, then its value.
pub struct Options<'a, 'o> {
    args: &'o mut Args<'a>,
    seen: u32,
    /// The current option, as errors name it.
    current: &'a [u8],
}

impl<'a, 'o> Options<'a, 'o> {
    /// Reads the arguments that are left in `args`.
    pub fn new(args: &'o mut Args<'a>) -> Self {
        Options { args, seen: 0, current: b"" }
    }

    /// Reads the next option. Returns `None` at the end.
    pub fn next<S: OptionSet>(&mut self) -> Result<Option<S>, Error> {
        let Some(word) = self.args.next() else { return Ok(None) };
        let Some((nth, option)) = S::find(word) else { return Err(Error::UnknownOption(Error::shown(word))) };
        self.current = word;
        if self.seen & 1 << nth != 0 {
            return Err(Error::Twice(self.name()));
        }
        self.seen |= 1 << nth;
        Ok(Some(option))
    }

    /// The name of the current option, in upper case.
    fn name(&self) -> String {
        String::from_utf8_lossy(self.current).to_ascii_uppercase()
    }

    /// Reads the value of the current option.
    pub fn value(&mut self) -> Result<&'a [u8], Error> {
        self.args.next().ok_or_else(|| Error::NoValue(self.name()))
    }

    /// Reads the next word, which follows the word `name` of the current option.
    pub fn value_of(&mut self, name: &str) -> Result<&'a [u8], Error> {
        self.args.next().ok_or_else(|| Error::NoValue(name.to_owned()))
    }

    fn number(&mut self, unit: Unit, range: RangeInclusive<i64>) -> Result<i64, Error> {
        let word = self.value()?;
        parse_number(word, unit, range, || self.name())
    }

    /// Reads the next word if it is `word`, ignoring case. Returns whether it was.
    pub fn accept(&mut self, word: &'a [u8]) -> bool {
        let is_next = self.args.peek().is_some_and(|next| next.eq_ignore_ascii_case(word));
        if is_next {
            self.args.next();
            self.current = word;
        }
        is_next
    }

    /// The arguments that are left, for an option with more than one value.
    pub fn rest(&mut self) -> &mut Args<'a> {
        self.args
    }

    /// Reads the value of `DELAY`. Fails if `AT` was given.
    pub fn delay(&mut self, due: &mut Option<Due>) -> Result<(), Error> {
        self.set_due(due, |options| options.duration().map(Due::After))
    }

    /// Reads the value of `AT`. Fails if `DELAY` was given.
    pub fn at(&mut self, due: &mut Option<Due>) -> Result<(), Error> {
        self.set_due(due, |options| options.instant().map(Due::At))
    }

    fn set_due(
        &mut self,
        due: &mut Option<Due>,
        read: impl FnOnce(&mut Self) -> Result<Due, Error>,
    ) -> Result<(), Error> {
        if due.is_some() {
            return Err(Error::Exclusive("DELAY", "AT"));
        }
        *due = Some(read(self)?);
        Ok(())
    }

    /// Reads a number of the settings, or a word, which becomes its index.
    pub fn field(&mut self, field: &'static Field) -> Result<i64, Error> {
        match field.words() {
            [] => self.number(field.unit, field.range.clone()),
            words => self.choice(words).map(|place| place as i64),
        }
    }

    /// Reads one of these words, and returns its index.
    pub fn choice(&mut self, words: &'static [Word]) -> Result<usize, Error> {
        let word = self.value()?;
        let place = words.iter().position(|Word(shown, _)| shown.to_bytes().eq_ignore_ascii_case(word));
        place.ok_or_else(|| Error::Choice(self.name(), words))
    }

    /// Reads why a message is dead.
    pub fn reason(&mut self) -> Result<Option<Reason>, Error> {
        self.choice(REASON_WORDS).map(|place| REASONS.get(place).copied())
    }

    /// Reads a duration in milliseconds, from 0 to [`DurationMs::MAX`].
    pub fn duration(&mut self) -> Result<DurationMs, Error> {
        self.number(Unit::Ms, DURATION).map(|ms| DurationMs::new(ms.unsigned_abs()))
    }

    /// Reads a duration of at least 1 ms.
    pub fn positive_duration(&mut self) -> Result<DurationMs, Error> {
        self.number(Unit::Ms, POSITIVE_DURATION).map(|ms| DurationMs::new(ms.unsigned_abs()))
    }

    /// Reads the offset of an interval rule, in milliseconds.
    pub fn offset(&mut self) -> Result<DurationMs, Error> {
        self.number(Unit::Ms, 0..=DURATION.end() - 1).map(|ms| DurationMs::new(ms.unsigned_abs()))
    }

    /// Reads a Unix time in milliseconds, from [`UnixMs::MIN_AT`] to [`UnixMs::MAX_AT`].
    pub fn instant(&mut self) -> Result<UnixMs, Error> {
        let word = self.value()?;
        match parse_integer(word) {
            Some(seconds) if (0..*INSTANT.start()).contains(&seconds) => Err(Error::Seconds(self.name(), seconds)),
            _ => parse_number(word, Unit::UnixMs, INSTANT, || self.name()).map(|ms| UnixMs::new(ms.unsigned_abs())),
        }
    }

    /// Reads a number of messages, at least 1.
    pub fn count(&mut self) -> Result<usize, Error> {
        self.number(Unit::Plain, 1..=COUNT_MAX).map(|count| count.unsigned_abs() as usize)
    }

    /// Reads the smallest number of messages that a consumer gathers, at least 2.
    pub fn least(&mut self) -> Result<usize, Error> {
        self.number(Unit::Plain, 2..=COUNT_MAX).map(|count| count.unsigned_abs() as usize)
    }

    /// Reads the length to which a stream is trimmed, from 1 to [`MAX_LENGTH`].
    pub fn stream_length(&mut self) -> Result<u64, Error> {
        self.number(Unit::Plain, 1..=MAX_LENGTH as i64).map(i64::unsigned_abs)
    }

    /// Reads a priority, from -128 to 127.
    pub fn priority(&mut self) -> Result<i8, Error> {
        self.number(Unit::Plain, i8::MIN.into()..=i8::MAX.into()).map(|priority| priority as i8)
    }

    /// Reads a number of redeliveries; -1 means no limit.
    pub fn retries(&mut self) -> Result<Retries, Error> {
        self.number(Unit::Plain, -1..=COUNT_MAX).map(|count| Retries::new(count as i32).unwrap_or(Retries::UNLIMITED))
    }

    /// Reads a number of deliveries, from 0.
    pub fn attempts(&mut self) -> Result<u32, Error> {
        self.number(Unit::Plain, 0..=COUNT_MAX).map(|count| count.unsigned_abs() as u32)
    }

    /// Reads the name of a group.
    pub fn group(&mut self) -> Result<&'a [u8], Error> {
        self.value().and_then(|word| Some(word).filter(|name| is_group_name(name)).ok_or(Error::BadGroup))
    }

    /// Reads the name of a batch.
    pub fn batch(&mut self) -> Result<&'a [u8], Error> {
        self.value().and_then(batch_name)
    }

    /// Reads the number of headers, and the headers.
    pub fn headers(&mut self) -> Result<HeaderBlock, Error> {
        let count = self.number(Unit::Plain, 1..=HEADERS_MAX as i64)?.unsigned_abs() as usize;
        let mut words = self.args.take(2 * count).ok_or(Error::HeadersMissing(count))?;
        let pairs = std::iter::from_fn(|| words.next().zip(words.next())).collect();
        HeaderBlock::new(pairs).map_err(|bad| match bad {
            BadHeaders::Count => Error::HeadersMissing(count),
            BadHeaders::Name => Error::HeaderName,
            BadHeaders::Value(name) => Error::HeaderValue(Error::shown(name)),
            BadHeaders::Twice(name) => Error::HeaderTwice(Error::shown(name)),
            BadHeaders::TooLong(bytes) => Error::HeadersTooLong(bytes),
        })
    }

    /// Reads a checkpoint; an empty one stands for none.
    pub fn checkpoint(&mut self) -> Result<&'a [u8], Error> {
        self.value()
            .and_then(|word| Some(word).filter(|word| word.len() <= CHECKPOINT_MAX).ok_or(Error::CheckpointTooLarge))
    }

    /// Reads the name of a consumer.
    pub fn consumer_name(&mut self) -> Result<&'a [u8], Error> {
        self.value().and_then(|word| Some(word).filter(|name| is_consumer_name(name)).ok_or(Error::BadConsumer))
    }

    /// Reads an id that a producer has chosen.
    pub fn message_name(&mut self) -> Result<&'a [u8], Error> {
        self.value().and_then(message_name)
    }
}

/// Checks the name of a batch.
pub fn batch_name(word: &[u8]) -> Result<&[u8], Error> {
    Some(word).filter(|name| is_batch_name(name)).ok_or(Error::BadBatch)
}

/// Checks an id that a producer has chosen.
pub fn message_name(word: &[u8]) -> Result<&[u8], Error> {
    Some(word).filter(|name| Id::is_name(name)).ok_or(Error::BadId)
}

/// Reads a number of words, at least 1, that precedes these words.
pub fn count_of_words(args: &mut Args<'_>, name: &'static str) -> Result<usize, Error> {
    let word = args.next().unwrap_or_default();
    parse_number(word, Unit::Plain, 1..=COUNT_MAX, || name.to_owned()).map(|count| count.unsigned_abs() as usize)
}

/// Reads a count, and as many ids and receipts.
pub fn counted_receipts<'a>(args: &mut Args<'a>) -> Result<impl ExactSizeIterator<Item = &'a [u8]> + use<'a>, Error> {
    let count = count_of_words(args, "count")?;
    let given = args.remaining();
    args.take(count).ok_or(Error::TooFew { count: "count", wanted: count, given, of: "receipts" })
}

/// Parses the cursor of a scan; `None` is the start.
pub fn cursor(word: &[u8]) -> Result<Option<u64>, Error> {
    let number: u64 = id::parse_number(word).ok_or(Error::BadCursor)?;
    Ok(Some(number).filter(|number| *number != 0))
}

fn parse_number(
    word: &[u8],
    unit: Unit,
    range: RangeInclusive<i64>,
    option: impl FnOnce() -> String,
) -> Result<i64, Error> {
    let (min, max) = (*range.start(), *range.end());
    let number = parse_integer(word).filter(|number| range.contains(number));
    number.ok_or_else(|| Error::Range { option: option(), unit, min, max })
}

/// Parses an integer by the server's own rules: an optional minus and digits, without leading zeros.
fn parse_integer(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        None => id::parse_number(text)?.try_into().ok(),
        Some(digits) => 0i64.checked_sub_unsigned(id::parse_number(digits).filter(|number| *number > 0)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    options! {
        enum Inner {
            Delay | At => DUE,
        }
    }

    options! {
        enum Outer {
            Id => Arg::token_string(c"ID", c"id"),
            Replace => Arg::token(c"replace", c"REPLACE"),
            ..Inner,
        }
    }

    #[test]
    fn each_option_is_found_by_its_word_and_has_a_number_of_its_own() {
        let found = |word: &str| Outer::find(word.as_bytes());
        assert_eq!(found("id"), Some((0, Outer::Id)));
        assert_eq!(found("Replace"), Some((1, Outer::Replace)));
        assert_eq!(found("DELAY"), Some((2, Outer::Inner(Inner::Delay))));
        assert_eq!(found("at"), Some((3, Outer::Inner(Inner::At))));
        assert_eq!(found("due"), None);
        assert_eq!((Outer::ARGS.len(), Inner::ARGS.len()), (2, 1), "as many arguments as lines");
        assert_eq!(found(""), None);
    }

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

    #[test]
    fn cursors_are_read_as_all_numbers_are() {
        for number in [0, 7, u64::MAX] {
            assert_eq!(cursor(number.to_string().as_bytes()).unwrap().unwrap_or(0), number);
        }
        for text in ["", "-", "-0", "-1", "00", "01", "+1", " 1", "1 ", "1.0", "18446744073709551616", "x"] {
            assert!(cursor(text.as_bytes()).is_err(), "{text}");
        }
    }
}
