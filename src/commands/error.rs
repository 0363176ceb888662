//! Every error that a command replies with. All texts are here, in one voice: what was wrong and, where it helps,
//! what would be right.

use crate::module_api::key::Refusal;
use crate::module_api::register::Row;
use dq_queue::cron::{BadCron, CRON_MAX};
use dq_queue::forward::Source;
use dq_queue::settings::{Conflict, Field, Unit, Word, FIELDS};
use dq_queue::{
    BATCH_NAME_MAX, CHECKPOINT_MAX, CONSUMER_NAME_MAX, GROUP_NAME_MAX, HEADERS_BYTES_MAX, HEADER_NAME_MAX,
    HEADER_VALUE_MAX, PAYLOAD_MAX, RESULT_MAX,
};
use std::borrow::Cow;
use std::fmt;

/// Why a command was refused. A refused command has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The command has no such option.
    UnknownOption(String),
    /// An option was given twice.
    Twice(String),
    /// The value of an option is missing.
    NoValue(String),
    /// Two options exclude each other.
    Exclusive(&'static str, &'static str),
    /// An option requires another one.
    Needs(&'static str, &'static str),
    /// A message that was delivered before, or is dead, would wait for the end of a delivery.
    LaterWithPast,
    /// A consumer wants more messages at least than at most.
    MinAboveCount,
    /// A schedule has no rule.
    NoRule,
    /// A cron expression is invalid, or never fires.
    BadCron(BadCron),
    /// There is no such time zone.
    UnknownZone(String),
    /// The first run of a schedule would be after its end.
    AfterUntil,
    /// There is no such state.
    UnknownState(String),
    /// The value is not an integer, or it is out of range.
    Range {
        /// The name of the option.
        option: String,
        /// The unit of its value.
        unit: Unit,
        /// The smallest valid value.
        min: i64,
        /// The largest valid value.
        max: i64,
    },
    /// Fewer words follow a count than it says.
    TooFew {
        /// The name of the count.
        count: &'static str,
        /// The value of the count.
        wanted: usize,
        /// The number of words that follow.
        given: usize,
        /// What the words are, in the plural.
        of: &'static str,
    },
    /// There are fewer ids than payloads; holds the number of payloads.
    IdsMissing(usize),
    /// An option has fewer values than it needs; holds the option and the names of the values.
    NoValues(String, String),
    /// There are fewer headers than the number of them says; holds that number.
    HeadersMissing(usize),
    /// The name of a header is empty or too long.
    HeaderName,
    /// The value of a header is too long; holds its name.
    HeaderValue(String),
    /// Two headers have the same name.
    HeaderTwice(String),
    /// Headers are too long together; holds their number of bytes.
    HeadersTooLong(usize),
    /// Settings contradict each other.
    Conflict(Conflict),
    /// The cursor was not returned by a scan.
    BadCursor,
    /// No message can have this id.
    BadId,
    /// A receipt was given instead of an id.
    ReceiptAsId,
    /// No group can have this name.
    BadGroup,
    /// The name of a batch is empty or too long.
    BadBatch,
    /// Neither `THEN` nor `CANCEL` is given.
    NoBatchAction,
    /// No consumer can have this name.
    BadConsumer,
    /// The value of an option is none of its words.
    Choice(String, &'static [Word]),
    /// The queue to change does not exist.
    NoSuchKey,
    /// The Unix time is so small that it must be in seconds.
    Seconds(String, i64),
    /// The queue exists, and its settings differ from those that were requested.
    QueueExists,
    /// The key holds a value of another type.
    WrongType,
    /// A bug has left the queue half changed.
    Unsound,
    /// The queue has reached its maximum length; holds the number of its messages.
    Full(u64),
    /// The queue accepts no messages.
    Closed,
    /// A dead message of the queue has this id.
    DeadId(String),
    /// The payload exceeds the queue's limit; holds the payload's size in bytes.
    TooLarge(usize),
    /// A result has more than [`RESULT_MAX`] bytes.
    ResultTooLarge,
    /// A checkpoint is longer than a queue keeps.
    CheckpointTooLarge,
    /// The server has no memory for a new queue.
    OutOfMemory,
    /// The queue has issued all of its ids.
    Exhausted,
    /// An ordinary client sent an effect.
    EffectRefused,
    /// The queue forwards its messages; holds the kind of the target and its name.
    Forwards(&'static str, String),
    /// The option `FORWARD` or `DEADFORWARD` is not followed by a kind of target.
    NoTarget(Source),
    /// A queue would forward to itself.
    ForwardsToItself,
    /// The slot of the queue is moving, and the queue is on the other node already.
    Moved,
    /// The effect is not valid.
    BadEffect(String),
}

impl From<Refusal> for Error {
    fn from(why: Refusal) -> Error {
        match why {
            Refusal::WrongType => Error::WrongType,
            Refusal::Unsound => Error::Unsound,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownOption(word) if is_number(word) => {
                write!(f, "ERR syntax error, unknown option '{word}': a number follows the name of its option")
            }
            Error::UnknownOption(word) => write!(f, "ERR syntax error, unknown option '{word}'"),
            Error::Twice(option) => write!(f, "ERR syntax error, {option} is given twice"),
            Error::NoValue(option) => write!(f, "ERR syntax error, {option} needs a value"),
            Error::Exclusive(one, other) => write!(f, "ERR syntax error, give {one} or {other}, not both"),
            Error::Needs(option, other) => write!(f, "ERR syntax error, {option} needs {other}"),
            Error::LaterWithPast => {
                f.write_str("ERR syntax error, LATER does not go with ATTEMPT, ERROR, CHECKPOINT or DEAD")
            }
            Error::MinAboveCount => f.write_str("ERR MIN must not be above COUNT"),
            Error::NoRule => f.write_str("ERR syntax error, give EVERY or CRON"),
            Error::BadCron(BadCron::NeverFires) => f.write_str("ERR CRON never fires"),
            Error::BadCron(BadCron::TooLong) => write!(f, "ERR CRON must be at most {CRON_MAX} bytes"),
            Error::BadCron(BadCron::NotFive) => f.write_str(
                "ERR CRON must be five fields (minute, hour, day of month, month, weekday) in one argument, or \
                 @hourly, \
                 @daily, @weekly, @monthly or @yearly",
            ),
            Error::BadCron(BadCron::Field(field)) => write!(
                f,
                "ERR CRON has an invalid {field}: a field is * or a list of numbers and ranges, and */n and a-b/n are \
                 steps"
            ),
            Error::UnknownZone(zone) => {
                write!(f, "ERR unknown time zone '{zone}': TZ is a name such as Europe/Berlin")
            }
            Error::AfterUntil => f.write_str("ERR the first run would be after UNTIL"),
            Error::UnknownState(word) => {
                write!(f, "ERR syntax error, unknown state '{word}': delayed, ready, inflight, dead or done")
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
            Error::ReceiptAsId => f.write_str("ERR a receipt is not an id: give only what stands before its '#'"),
            Error::BadBatch => write!(f, "ERR BATCH must be 1 to {BATCH_NAME_MAX} bytes"),
            Error::NoBatchAction => f.write_str("ERR syntax error, give THEN or CANCEL"),
            Error::BadGroup => write!(f, "ERR GROUP must be 1 to {GROUP_NAME_MAX} bytes"),
            Error::BadConsumer => write!(f, "ERR AS must be 1 to {CONSUMER_NAME_MAX} bytes"),
            Error::Choice(option, words) => {
                let words: Vec<_> = words.iter().map(|Word(shown, _)| shown.to_string_lossy()).collect();
                write!(f, "ERR {option} must be {}", words.join(" or "))
            }
            Error::TooFew { count, wanted, given, of } => {
                let (of, follow) = if *given == 1 { (of.trim_end_matches('s'), "follows") } else { (*of, "follow") };
                write!(f, "ERR syntax error, {count} is {wanted} but {given} {of} {follow}")
            }
            Error::IdsMissing(count) => write!(f, "ERR syntax error, IDS needs {count} {}", plural(*count, "id")),
            Error::HeadersMissing(count) => {
                write!(f, "ERR syntax error, HEADERS needs {count} {}, each with a value", plural(*count, "name"))
            }
            Error::HeaderName => write!(f, "ERR the name of a header must be 1 to {HEADER_NAME_MAX} bytes"),
            Error::HeaderValue(name) => {
                write!(f, "ERR the value of the header '{name}' must be at most {HEADER_VALUE_MAX} bytes")
            }
            Error::HeaderTwice(name) => write!(f, "ERR the header '{name}' is given twice"),
            Error::HeadersTooLong(bytes) => write!(
                f,
                "ERR the names and values of HEADERS must be at most {HEADERS_BYTES_MAX} bytes together, and have \
                 {bytes}"
            ),
            Error::NoValues(option, names) => write!(f, "ERR syntax error, {option} needs the values {names}"),
            Error::Conflict(Conflict::Backoff) => f.write_str("ERR BACKOFF base must not be above its max"),
            Error::Conflict(Conflict::Rate) => f.write_str("ERR RATE takes two numbers from 1, or 0 0 for no limit"),
            Error::Conflict(Conflict::GroupRate) => {
                f.write_str("ERR GROUPRATE takes two numbers from 1, or 0 0 for no limit")
            }
            Error::BadCursor => f.write_str("ERR invalid cursor: give 0, or the cursor that the last call returned"),
            Error::NoSuchKey => f.write_str("ERR no such key"),
            Error::Seconds(option, seconds) => {
                write!(f, "ERR {option} is Unix time in milliseconds; {seconds} looks like seconds")
            }
            Error::QueueExists => f.write_str("QUEUEEXISTS queue exists with other settings: DQ.ALTER changes them"),
            Error::Unsound => f.write_str(
                "UNSOUND a bug in the module may have left this queue half changed, so it is not served. DEBUG RELOAD \
                 or a restart reloads it; read \"A queue that is not served\" in docs/operations.md before",
            ),
            Error::WrongType => f.write_str("WRONGTYPE Operation against a key holding the wrong kind of value"),
            Error::Full(held) => {
                let messages = plural(usize::try_from(*held).unwrap_or(usize::MAX), "message");
                write!(f, "QUEUEFULL queue holds {held} {messages} (MAXLEN)")
            }
            Error::Closed => f.write_str("QUEUECLOSED queue accepts no messages"),
            Error::DeadId(name) => {
                write!(f, "DEADID message {name} is dead: REPLACE it, or DQ.REDRIVE or DQ.CANCEL it first")
            }
            Error::TooLarge(size) if *size > PAYLOAD_MAX => {
                write!(f, "TOOLARGE payload of {size} bytes exceeds {PAYLOAD_MAX}, the most that a queue can hold")
            }
            Error::TooLarge(size) => {
                write!(f, "TOOLARGE payload of {size} {} exceeds MAXPAYLOAD", plural(*size, "byte"))
            }
            Error::ResultTooLarge => write!(f, "ERR RESULT must be at most {RESULT_MAX} bytes"),
            Error::CheckpointTooLarge => write!(f, "ERR CHECKPOINT must be at most {CHECKPOINT_MAX} bytes"),
            Error::OutOfMemory => f.write_str("OOM command not allowed when used memory > 'maxmemory'."),
            Error::Exhausted => {
                f.write_str("EXHAUSTED the ids of this queue are used up; delete it and push to a new one")
            }
            Error::EffectRefused => f.write_str(
                "ERR DQ.E is what the server itself writes to its AOF and its replicas; \
                 CONFIG SET dq.allow-effects yes lets clients send it",
            ),
            Error::Forwards(kind, target) => write!(f, "ERR queue forwards to {kind} {target}; it cannot be popped"),
            Error::NoTarget(Source::Due) => {
                f.write_str("ERR syntax error, FORWARD needs STREAM, LIST, CHANNEL or NONE")
            }
            Error::NoTarget(Source::Dead) => {
                f.write_str("ERR syntax error, DEADFORWARD needs STREAM, LIST, QUEUE or NONE")
            }
            Error::Moved => f.write_str("TRYAGAIN the slot of the queue is moving to another node"),
            Error::ForwardsToItself => f.write_str("ERR a queue cannot forward to itself"),
            Error::BadEffect(why) => write!(f, "ERR the effect was refused: {why}"),
        }
    }
}

/// Whether a word is a whole number, so that the name of its option is probably missing.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is the name of a setting, which applies to all messages of a queue.
fn is_setting(word: &str) -> bool {
    let mut options = FIELDS.iter().filter_map(Field::option);
    options.any(|option| option.to_bytes().eq_ignore_ascii_case(word.as_bytes()))
}

/// Returns `thing` in the singular if `count` is 1, otherwise in the plural.
fn plural(count: usize, thing: &'static str) -> String {
    if count == 1 {
        thing.to_owned()
    } else {
        format!("{thing}s")
    }
}

impl Error {
    /// The text of the reply to a call of the command that `row` describes. If a word of the call was not understood,
    /// the text ends in the syntax of the command.
    pub fn in_reply_to(&self, row: &Row) -> String {
        match self {
            // A part of an option that stands alone, or an argument that follows an option.
            Error::UnknownOption(word) if row.has_token(word.as_bytes()) => {
                format!("ERR syntax error, '{word}' is not in its place; the syntax is {row}")
            }
            Error::UnknownOption(word) if is_setting(word) => {
                format!("{self}: it is a setting of the queue, for DQ.CREATE and DQ.ALTER; the syntax is {row}")
            }
            Error::UnknownOption(_) | Error::UnknownState(_) => format!("{self}; the syntax is {row}"),
            _ => self.to_string(),
        }
    }

    /// Returns a word of the command line for use in an error, truncated and with invalid UTF-8 replaced.
    pub fn shown(word: &[u8]) -> String {
        // This is long enough to recognize the word.
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
