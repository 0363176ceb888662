//! What clients are told when a command cannot be carried out: every text in one place, in one voice. Each says what
//! was wrong and what would be right.

use std::borrow::Cow;
use std::fmt;

/// What a number counts, for the sentence that names its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// Milliseconds since 1970.
    UnixMs,
    /// Things.
    Plain,
}

/// Why a command was refused. It then changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An option that the command does not have.
    UnknownOption(String),
    /// An option that stands twice.
    Twice(String),
    /// An option without its value.
    NoValue(String),
    /// Two options that exclude each other.
    Exclusive(&'static str, &'static str),
    /// An option that means nothing without another.
    Needs(&'static str, &'static str),
    /// A state that there is not.
    UnknownState(String),
    /// A number that is none, or out of its range.
    Range {
        /// The option.
        option: String,
        /// What it counts.
        unit: Unit,
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// A number of words, and fewer that follow it.
    TooFew {
        /// What says how many.
        count: &'static str,
        /// How many it says.
        wanted: usize,
        /// How many there are.
        given: usize,
        /// Of what.
        of: &'static str,
    },
    /// Fewer ids than payloads.
    IdsMissing(usize),
    /// A wait after the first attempt that is longer than the longest.
    Backoff,
    /// One wait where two are needed.
    BackoffValues,
    /// A cursor that no scan gave.
    BadCursor,
    /// A name that no message can have.
    BadId,
    /// There is no queue to change.
    NoSuchKey,
    /// A Unix time that is so small that it must be in seconds.
    Seconds(String, i64),
    /// There is a queue already, and its settings are not those that were asked for.
    QueueExists,
    /// The key holds something else.
    WrongType,
    /// The queue holds as many messages as it may.
    Full(u64),
    /// The queue holds a dead message of the name that was given.
    DeadId(String),
    /// A payload has so many bytes, which is more than the queue takes.
    TooLarge(usize),
    /// The server has no memory for a new queue.
    OutOfMemory,
    /// The queue's ids are used up.
    Exhausted,
    /// An effect from an ordinary client.
    EffectRefused,
    /// An effect that cannot be carried out.
    BadEffect(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownOption(word) if word.eq_ignore_ascii_case("JITTER") => {
                f.write_str("ERR syntax error, JITTER follows BACKOFF base max")
            }
            Error::UnknownOption(word) if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                write!(f, "ERR syntax error, unknown option '{word}': a number follows the name of its option")
            }
            Error::UnknownOption(word) => write!(f, "ERR syntax error, unknown option '{word}'"),
            Error::Twice(option) => write!(f, "ERR syntax error, {option} is given twice"),
            Error::NoValue(option) => write!(f, "ERR syntax error, {option} needs a value"),
            Error::Exclusive(one, other) => write!(f, "ERR syntax error, give {one} or {other}, not both"),
            Error::Needs(option, other) => write!(f, "ERR syntax error, {option} needs {other}"),
            Error::UnknownState(word) => {
                write!(f, "ERR syntax error, unknown state '{word}': delayed, ready, inflight or dead")
            }
            Error::Range { option, unit, min, max } => {
                let of = match unit {
                    Unit::Ms => " of milliseconds",
                    Unit::UnixMs => " of milliseconds since 1970",
                    Unit::Plain => "",
                };
                write!(f, "ERR {option} must be a whole number{of} from {min} to {max}")
            }
            Error::BadId => f.write_str(
                "ERR ID must be 1 to 255 bytes without '#', and not of the form of a generated id \
                 (12 or more digits, '-', digits)",
            ),
            Error::TooFew { count, wanted, given, of } => {
                let (of, follow) = if *given == 1 { (of.trim_end_matches('s'), "follows") } else { (*of, "follow") };
                write!(f, "ERR syntax error, {count} is {wanted} but {given} {of} {follow}")
            }
            Error::IdsMissing(count) => write!(f, "ERR syntax error, IDS needs {count} {}", plural(*count, "id")),
            Error::BackoffValues => f.write_str("ERR syntax error, BACKOFF needs two values, base and max"),
            Error::Backoff => f.write_str("ERR BACKOFF base must not be above its max"),
            Error::BadCursor => f.write_str("ERR invalid cursor: give 0, or the cursor that the last DQ.SCAN returned"),
            Error::NoSuchKey => f.write_str("ERR no such key"),
            Error::Seconds(option, seconds) => {
                write!(f, "ERR {option} is Unix time in milliseconds; {seconds} looks like seconds")
            }
            Error::QueueExists => f.write_str("ERR queue exists with other settings: DQ.ALTER changes them"),
            Error::WrongType => f.write_str("WRONGTYPE Operation against a key holding the wrong kind of value"),
            Error::Full(held) => {
                let messages = plural(usize::try_from(*held).unwrap_or(usize::MAX), "message");
                write!(f, "QUEUEFULL queue holds {held} {messages} (MAXLEN)")
            }
            Error::DeadId(name) => {
                write!(f, "DEADID message {name} is dead: REPLACE it, or DQ.REDRIVE or DQ.CANCEL it first")
            }
            Error::TooLarge(size) => {
                write!(f, "TOOLARGE payload of {size} {} exceeds MAXPAYLOAD", plural(*size, "byte"))
            }
            Error::OutOfMemory => f.write_str("OOM command not allowed when used memory > 'maxmemory'."),
            Error::Exhausted => f.write_str("ERR the ids of this queue are used up; delete it and push to a new one"),
            Error::EffectRefused => f.write_str(
                "ERR DQ.EFFECT is what the server itself writes to its AOF and its replicas; \
                 CONFIG SET dq.allow-effects yes lets clients send it",
            ),
            Error::BadEffect(why) => write!(f, "ERR the effect was refused: {why}"),
        }
    }
}

/// `thing` in the singular for one, else in the plural.
fn plural(count: usize, thing: &'static str) -> String {
    if count == 1 {
        thing.to_owned()
    } else {
        format!("{thing}s")
    }
}

impl Error {
    /// A word as it was given, as far as it can be shown.
    pub fn shown(word: &[u8]) -> String {
        // Long enough to recognise it.
        let start = word.get(..64).unwrap_or(word);
        match String::from_utf8_lossy(start) {
            Cow::Borrowed(text) => text.to_owned(),
            Cow::Owned(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_told_in_full() {
        let error = Error::Range { option: "DELAY".to_owned(), unit: Unit::Ms, min: 0, max: 4398046511103 };
        assert_eq!(error.to_string(), "ERR DELAY must be a whole number of milliseconds from 0 to 4398046511103");
    }
}
