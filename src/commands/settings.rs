//! The settings of a queue as options of `DQ.CREATE` and `DQ.ALTER`, made from the rows of [`FIELDS`].

use super::{Arg, Error, OptionSet, Options};
use dq_queue::settings::{Field, Given, Settings, Word, FIELDS};

/// A setting as an option; holds the index of its first number in [`FIELDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting(usize);

// The parser keeps one bit for each option that a command line has named, and there are three options that are not
// numbers.
const _: () = assert!(FIELDS.len() < 30);

impl Setting {
    /// The settings as arguments, in the order of [`FIELDS`].
    pub const ARGS: &'static [Arg] = &options();
}

impl OptionSet for Setting {
    fn find(word: &[u8]) -> Option<(u32, Self)> {
        let place = FIELDS
            .iter()
            .position(|field| field.option().is_some_and(|option| option.to_bytes().eq_ignore_ascii_case(word)))?;
        Some((place as u32, Setting(place)))
    }
}

/// The number of options that the settings have.
const OPTIONS: usize = {
    let (mut count, mut fields) = (0, FIELDS);
    while let [field, rest @ ..] = fields {
        count += field.option().is_some() as usize;
        fields = rest;
    }
    count
};

/// The number of words of all settings that are chosen from words.
const WORDS_COUNT: usize = {
    let (mut count, mut fields) = (0, FIELDS);
    while let [field, rest @ ..] = fields {
        count += field.words().len();
        fields = rest;
    }
    count
};

/// The words of all settings as arguments, in the order of [`FIELDS`].
const WORDS: &[Arg; WORDS_COUNT] = &{
    let mut all = [Arg::int(c""); WORDS_COUNT];
    let (mut left, mut fields): (&mut [Arg], _) = (&mut all, FIELDS);
    let mut words: &[Word] = &[];
    while let [arg, others @ ..] = left {
        while let ([], [field, rest @ ..]) = (words, fields) {
            (words, fields) = (field.words(), rest);
        }
        if let [Word(name, token), more @ ..] = words {
            *arg = Arg::token(name, token);
            words = more;
        }
        left = others;
    }
    all
};

/// Each number as an argument.
const NUMBERS: &[Arg; FIELDS.len()] = &{
    let mut numbers = [Arg::int(c""); FIELDS.len()];
    let (mut left, mut fields): (&mut [Arg], _) = (&mut numbers, FIELDS);
    let mut words: &[Arg] = WORDS;
    while let ([number, others @ ..], [field, rest @ ..]) = (left, fields) {
        let (own_words, other_words) = words.split_at(field.words().len());
        words = other_words;
        *number = match field.given {
            Given::Option(token, name) => Arg::token_int(token, name),
            Given::Word(token, name, _) => Arg::oneof(name, own_words).after(token),
            Given::First(_, _, name) | Given::Next(name) => Arg::int(name),
            Given::Optional(token, name) => Arg::token_int(token, name).optional(),
        };
        (left, fields) = (others, rest);
    }
    numbers
};

/// Each setting as an option: a number, or a block of numbers.
const fn options() -> [Arg; OPTIONS] {
    let mut options = [Arg::int(c""); OPTIONS];
    let (mut left, mut fields, mut numbers): (&mut [Arg], _, &[Arg]) = (&mut options, FIELDS, NUMBERS);
    while let ([option, others @ ..], [field, rest @ ..], [number, ..]) = (left, fields, numbers) {
        let more = further(rest);
        let (its_own, after) = numbers.split_at(1 + more);
        *option = match field.given {
            Given::First(token, name, _) => Arg::block(name, its_own).after(token).optional(),
            Given::Option(..) | Given::Word(..) | Given::Next(..) | Given::Optional(..) => number.optional(),
        };
        (left, fields, numbers) = (others, rest.split_at(more).1, after);
    }
    options
}

/// How many of `fields` belong to the option that precedes them.
const fn further(fields: &[Field]) -> usize {
    let (mut count, mut left) = (0, fields);
    while let [field, rest @ ..] = left {
        if field.option().is_some() {
            break;
        }
        count += 1;
        left = rest;
    }
    count
}

/// The settings that a command names, apart from `FORWARD`. The others keep their values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    /// A number for each of [`FIELDS`] that is named.
    numbers: [Option<i64>; FIELDS.len()],
}

impl Change {
    /// Reads the values of a setting.
    pub fn read(&mut self, Setting(first): Setting, options: &mut Options<'_, '_>) -> Result<(), Error> {
        let (_, fields) = FIELDS.split_at(first);
        let count = 1 + further(fields.get(1..).unwrap_or_default());
        let fields = fields.get(..count).unwrap_or_default();
        let required = fields.iter().filter(|field| !matches!(field.given, Given::Optional(..))).count();
        if required > 1 && options.rest().remaining() < required {
            return Err(missing(fields));
        }
        for (field, number) in fields.iter().zip(self.numbers.iter_mut().skip(first)) {
            match field.given {
                Given::Option(..) | Given::Word(..) | Given::First(..) => {}
                Given::Next(_) if options.rest().peek().is_none_or(is_name) => return Err(missing(fields)),
                Given::Next(_) => {}
                Given::Optional(word, _) if !options.accept(word.to_bytes()) => continue,
                Given::Optional(..) => {}
            }
            *number = Some(options.field(field)?);
        }
        // The numbers that could contradict each other are given by one option, so the queue's own settings do not
        // matter here.
        self.applied_to(&Settings::DEFAULT).conflict().map_or(Ok(()), |conflict| Err(Error::Conflict(conflict)))
    }

    /// Returns `settings` with this change applied.
    pub fn applied_to(&self, settings: &Settings) -> Settings {
        let mut changed = *settings;
        for (field, number) in FIELDS.iter().zip(self.numbers) {
            if let Some(number) = number {
                (field.set)(&mut changed, number);
            }
        }
        changed
    }
}

/// Whether `word` looks like the name of an option rather than like a number.
fn is_name(word: &[u8]) -> bool {
    word.first().is_none_or(u8::is_ascii_alphabetic)
}

/// The error for an option that has fewer values than it needs.
fn missing(fields: &'static [Field]) -> Error {
    let option = fields.first().and_then(Field::option).map(|option| option.to_string_lossy().into_owned());
    let names = fields.iter().filter_map(|field| match field.given {
        Given::Option(_, name) | Given::Word(_, name, _) | Given::First(_, _, name) | Given::Next(name) => {
            Some(name.to_string_lossy())
        }
        Given::Optional(..) => None,
    });
    Error::NoValues(option.unwrap_or_default(), names.collect::<Vec<_>>().join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_several_numbers_is_a_block_of_them() {
        let backoff = Setting::ARGS.iter().find(|arg| arg.token == Some(c"BACKOFF")).unwrap();
        assert_eq!(backoff.parts.iter().map(|part| part.name).collect::<Vec<_>>(), [c"base-ms", c"max-ms", c"percent"]);
        assert_eq!(backoff.parts[2].token, Some(c"JITTER"));
        assert_eq!(Setting::ARGS.len(), FIELDS.len() - 4);
        assert!(Setting::ARGS.iter().all(|arg| arg.token.is_some()));
        assert_eq!(Setting::ARGS.last().map(|arg| arg.token), Some(Some(c"DELAY")));
    }

    #[test]
    fn only_options_are_found() {
        assert_eq!(Setting::find(b"lease"), Some((0, Setting(0))));
        assert_eq!(Setting::find(b"Backoff"), Some((2, Setting(2))));
        assert_eq!(Setting::find(b"JITTER"), None);
    }
}
