//! Builders: commands whose options are set by methods, each option declared once for all builders that have it.

use super::{Headers, Queue};
use crate::connect::Sent;
use crate::error::Error;
use crate::mode::Mode;
use crate::names::MessageId;
use crate::reply::Field;
use crate::request::{Command, Request};
use crate::time::millis;
use redis::ToRedisArgs;
use std::time::Duration;

/// Options with their values. The last value of each counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    words: Vec<(&'static str, Vec<Vec<u8>>)>,
    pub headers: Headers,
    /// For how long the server may block.
    pub wait: Duration,
    /// Of a push: the number of its messages, their ids, and whether the client leaves it to the server to choose ids.
    pub messages: usize,
    pub ids: Option<Vec<MessageId>>,
    pub once: bool,
}

impl Options {
    pub fn set(&mut self, name: &'static str, values: Vec<Vec<u8>>) {
        self.remove(name);
        // A message is due after a time or at one.
        match name {
            "DELAY" => self.remove("AT"),
            "AT" => self.remove("DELAY"),
            _ => {}
        }
        self.words.push((name, values));
    }

    pub fn remove(&mut self, name: &str) {
        self.words.retain(|(other, _)| *other != name);
    }

    pub fn has(&self, name: &str) -> bool {
        self.words.iter().any(|(other, _)| *other == name)
    }

    pub fn write(&self, mut command: Command) -> Command {
        for (name, values) in &self.words {
            command = command.word(name).words(values);
        }
        self.headers.write(command)
    }
}

/// How a builder becomes a request: from what precedes the options, and these.
pub(crate) type Make<R> = fn(Command, Options) -> Request<R>;

/// The request of a builder that must not be executed twice.
pub(super) fn once<R: Field + 'static>(command: Command, options: Options) -> Request<R> {
    let block = Some(options.wait).filter(|wait| !wait.is_zero());
    let request = Request::once(options.write(command).maybe("BLOCK", block.map(millis)));
    Request { wait: options.wait, ..request }
}

/// The words of a value.
pub(crate) fn value(value: impl ToRedisArgs) -> Vec<Vec<u8>> {
    value.to_redis_args()
}

/// A builder whose methods set options.
pub(crate) trait SetOption: Sized {
    fn options(&mut self) -> &mut Options;

    /// Sets an option that has a value.
    fn with(mut self, name: &'static str, argument: impl ToRedisArgs) -> Self {
        self.options().set(name, value(argument));
        self
    }

    /// Sets an option that has none.
    fn flag(mut self, name: &'static str) -> Self {
        self.options().set(name, Vec::new());
        self
    }
}

/// What a builder of a command on a queue holds. `R` is the result of the command.
#[derive(Debug)]
pub(crate) struct Parts<T, M, R> {
    pub queue: Queue<T, M>,
    /// What precedes the options; an error if a value has no encoding.
    pub command: Result<Command, Error>,
    pub options: Options,
    make: Make<R>,
}

impl<T: 'static, M: Mode, R: Send + 'static> Parts<T, M, R> {
    pub fn new(queue: &Queue<T, M>, command: Result<Command, Error>, make: Make<R>) -> Parts<T, M, R> {
        Parts { queue: queue.clone(), command, options: Options::default(), make }
    }

    pub fn request(self) -> Request<R> {
        match self.command {
            Ok(command) => (self.make)(command, self.options),
            Err(error) => Request::failed(error),
        }
    }

    pub fn send(self) -> Sent<M, R> {
        self.queue.client.clone().send(self.request())
    }
}

/// The options of every message that is pushed, scheduled, or follows a batch.
macro_rules! message_options {
    () => {
        /// Among ready messages, those of a higher priority are delivered first. 0 by default.
        pub fn priority(self, priority: i8) -> Self {
            self.with("PRIORITY", priority)
        }

        /// The most redeliveries after the first delivery, instead of the queue's; -1: no limit.
        pub fn retries(self, retries: i32) -> Self {
            self.with("RETRIES", retries)
        }

        /// How long each delivery may take, instead of the queue's lease. Workers with a lease of their own use that.
        pub fn lease(self, lease: std::time::Duration) -> Self {
            self.with("LEASE", crate::time::millis(lease))
        }

        /// The group, of 1 to 255 bytes. Messages of one group are delivered in order, by default one at a time: see
        /// [`Settings::group_inflight`](crate::Settings::group_inflight).
        pub fn group(self, name: impl AsRef<[u8]>) -> Self {
            self.with("GROUP", name.as_ref())
        }

        /// Adds a header: a name of 1 to 255 bytes and a value of up to 4096 bytes. A message has up to 64 headers of
        /// 16384 bytes together.
        pub fn header(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
            self.options().headers.set(name, value);
            self
        }

        /// The headers, in place of those that were set before. See `header`.
        pub fn headers(mut self, headers: crate::queue::Headers) -> Self {
            self.options().headers = headers;
            self
        }
    };
}
pub(super) use message_options;
