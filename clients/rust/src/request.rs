//! Requests: commands as values, with the rules for sending them and the reader of their replies.

use crate::error::Error;
use crate::reply::Field;
use redis::{Cmd, ToRedisArgs, Value};
use std::time::Duration;

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
    /// `None`: it is not sent, and its reply is null.
    pub command: Option<Cmd>,
    pub resend: Resend,
    /// For how long the server may block.
    pub wait: Duration,
    pub read: Read<R>,
}

impl<R: Field + 'static> Request<R> {
    /// A request that may be executed twice.
    pub fn harmless(command: Command) -> Request<R> {
        Request::new(command, Resend::Harmless, |answer| R::read(answer.reply?))
    }

    /// A request that must not be executed twice.
    pub fn once(command: Command) -> Request<R> {
        Request::new(command, Resend::Never, |answer| R::read(answer.reply?))
    }
}

impl<R: 'static> Request<R> {
    /// A request with its own reader of the reply.
    pub fn new(
        command: Command,
        resend: Resend,
        read: impl FnOnce(Answer) -> Result<R, Error> + Send + 'static,
    ) -> Request<R> {
        let command = Some(command).filter(|command| !command.1).map(|command| command.0);
        Request { command, resend, wait: Duration::ZERO, read: Box::new(read) }
    }

    /// A request that fails without being sent.
    pub fn failed(error: Error) -> Request<R> {
        Request { command: None, resend: Resend::Never, wait: Duration::ZERO, read: Box::new(|_| Err(error)) }
    }

    /// Converts the result.
    pub fn map<S: 'static>(self, change: impl FnOnce(R) -> Result<S, Error> + Send + 'static) -> Request<S> {
        let Request { command, resend, wait, read } = self;
        Request { command, resend, wait, read: Box::new(move |answer| change(read(answer)?)) }
    }
}

/// A command, whose first argument is usually the key of a queue, and whether it lacks the names that it needs: then it
/// is not sent, and its reply is null.
#[derive(Clone, Debug)]
pub(crate) struct Command(pub Cmd, bool);

impl Command {
    pub fn new(name: &str, first: impl ToRedisArgs) -> Command {
        let mut command = redis::cmd(name);
        command.arg(first);
        Command(command, false)
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

    /// All of these as words. There must be one.
    pub fn names<W: AsRef<[u8]>>(self, names: impl IntoIterator<Item = W>) -> Command {
        let mut names = names.into_iter().peekable();
        let lacks_names = names.peek().is_none();
        Command(self.words(names).0, lacks_names)
    }

    /// The number of these, and all of them as words. There must be one.
    pub fn counted<W: AsRef<[u8]>>(self, names: impl IntoIterator<Item = W>) -> Command {
        let names: Vec<W> = names.into_iter().collect();
        self.word(names.len()).names(names)
    }

    pub fn maybe(self, name: &str, value: Option<impl ToRedisArgs>) -> Command {
        match value {
            Some(value) => self.word(name).word(value),
            None => self,
        }
    }
}
