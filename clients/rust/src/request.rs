//! Requests: commands as values, with how they are sent and how their replies are read. They never send themselves.

use crate::{reply, Error};
use redis::{Cmd, ToRedisArgs, Value};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whether a command may be sent again if it may have been executed already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resend {
    /// A second execution is harmless: the command reads, or has no further effect.
    Harmless,
    /// The command must not be executed twice. If the connection is lost, that is an error.
    Never,
}

/// A reply, and whether the command was repeated after it may have been executed.
pub(crate) struct Answer {
    pub reply: Result<Value, Error>,
    pub repeated: bool,
}

type Read<R> = Box<dyn FnOnce(Answer) -> Result<R, Error> + Send>;

/// A command, and what its reply means.
pub(crate) struct Request<R> {
    /// `None`: the answer is known without the server.
    pub command: Option<Cmd>,
    pub resend: Resend,
    /// For how long the server may block.
    pub wait: Duration,
    pub read: Read<R>,
}

impl<R: 'static> Request<R> {
    fn new(command: Command, resend: Resend, read: fn(Value) -> Result<R, Error>) -> Request<R> {
        let read = move |answer: Answer| read(answer.reply?);
        Request { command: Some(command.0), resend, wait: Duration::ZERO, read: Box::new(read) }
    }

    /// One whose second execution is harmless.
    pub fn harmless(command: Command, read: fn(Value) -> Result<R, Error>) -> Request<R> {
        Request::new(command, Resend::Harmless, read)
    }

    /// One that must not be executed twice.
    pub fn once(command: Command, read: fn(Value) -> Result<R, Error>) -> Request<R> {
        Request::new(command, Resend::Never, read)
    }

    /// One that is not sent, because its result is known.
    pub fn known(result: Result<R, Error>) -> Request<R>
    where
        R: Send,
    {
        Request { command: None, resend: Resend::Never, wait: Duration::ZERO, read: Box::new(move |_| result) }
    }

    /// The server may block for this time.
    pub fn waiting(self, wait: Duration) -> Request<R> {
        Request { wait, ..self }
    }

    /// What its result becomes.
    pub fn map<S: 'static>(self, change: impl FnOnce(R) -> Result<S, Error> + Send + 'static) -> Request<S> {
        let Request { command, resend, wait, read } = self;
        Request { command, resend, wait, read: Box::new(move |answer| change(read(answer)?)) }
    }
}

/// A command, whose first argument is usually the key of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Command(pub Cmd);

impl Command {
    pub fn new(name: &str, first: impl ToRedisArgs) -> Command {
        let mut command = redis::cmd(name);
        command.arg(first);
        Command(command)
    }

    pub fn word(mut self, word: impl ToRedisArgs) -> Command {
        self.0.arg(word);
        self
    }

    /// All of these as words.
    pub fn words<W: AsRef<[u8]>>(mut self, words: impl IntoIterator<Item = W>) -> Command {
        for word in words {
            self.0.arg(word.as_ref());
        }
        self
    }

    pub fn maybe(self, name: &str, value: Option<impl ToRedisArgs>) -> Command {
        match value {
            Some(value) => self.word(name).word(value),
            None => self,
        }
    }

    pub fn flag(self, name: &str, is_set: bool) -> Command {
        if is_set {
            self.word(name)
        } else {
            self
        }
    }
}

/// A duration in the unit of the server. Rounded up, so that nothing is early.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A time in the unit of the server. A time before 1970 becomes 0, which the server refuses.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A time that the server gives in milliseconds.
pub(crate) fn time_of(unix_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_ms)
}

/// Reads a number.
pub(crate) fn count(value: Value) -> Result<u64, Error> {
    reply::count(&value)
}

/// Reads whether a message was changed.
pub(crate) fn one(value: Value) -> Result<bool, Error> {
    count(value).map(|changed| changed == 1)
}

/// Reads a reply that says nothing.
pub(crate) fn nothing(_: Value) -> Result<(), Error> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{millis, time_of, unix_ms};
    use std::time::Duration;

    #[test]
    fn a_part_of_a_millisecond_counts_as_one() {
        assert_eq!(millis(Duration::from_micros(1)), 1);
        assert_eq!(millis(Duration::from_millis(5)), 5);
        assert_eq!(millis(Duration::MAX), u64::MAX);
        assert_eq!(unix_ms(time_of(1_795_272_703_079)), 1_795_272_703_079);
    }
}
