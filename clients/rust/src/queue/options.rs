//! Builders: commands whose options are set by methods, each option declared once for all builders that have it.

use super::Headers;
use crate::names::MessageId;
use crate::reply::Field;
use crate::request::{millis, Command, Request};
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

/// Declares a builder with the method that sends it, as `.await` does. `R` is what it then returns.
macro_rules! builder {
    ($(#[$doc:meta])* $name:ident<$T:ident> -> $result:ty; $(#[$send_doc:meta])* send) => {
        $(#[$doc])*
        #[must_use = "nothing is done until it is sent"]
        #[derive(Debug)]
        pub struct $name<$T, M, R = $result> {
            queue: super::Queue<$T, M>,
            /// What precedes the options; an error if a value has no encoding.
            command: Result<crate::request::Command, crate::Error>,
            options: super::options::Options,
            request: super::options::Make<R>,
        }

        impl<$T: 'static, M: crate::mode::Mode, R: Send + 'static> $name<$T, M, R> {
            fn new(
                queue: &super::Queue<$T, M>,
                command: Result<crate::request::Command, crate::Error>,
                request: super::options::Make<R>,
            ) -> Self {
                $name { queue: queue.clone(), command, options: super::options::Options::default(), request }
            }

            fn request(self) -> crate::request::Request<R> {
                match self.command {
                    Ok(command) => (self.request)(command, self.options),
                    Err(error) => crate::request::Request::failed(error),
                }
            }

            $(#[$send_doc])*
            pub fn send(self) -> crate::connect::Sent<M, R> {
                self.queue.client.clone().send(self.request())
            }
        }

        impl<$T: 'static, R: Send + 'static> std::future::IntoFuture for $name<$T, crate::mode::Async, R> {
            type Output = Result<R, crate::Error>;
            type IntoFuture = crate::connect::Sent<crate::mode::Async, R>;

            fn into_future(self) -> Self::IntoFuture {
                self.send()
            }
        }
    };
}
pub(super) use builder;

/// Methods of a builder, each of which sets an option.
macro_rules! options {
    ($($(#[$doc:meta])* $method:ident($($arg:ident: $type:ty),*) = $name:literal $($value:expr)?;)*) => { $(
        $(#[$doc])*
        pub fn $method(mut self, $($arg: $type),*) -> Self {
            #[allow(unused_mut, unused_assignments)]
            let mut values = Vec::new();
            $(values = super::options::value($value);)?
            self.options.set($name, values);
            self
        }
    )* };
}
pub(super) use options;

/// The options that every message has which is pushed, scheduled, or follows a batch.
macro_rules! message_options {
    () => {
        super::options::options! {
            /// Among ready messages, those of a higher priority are delivered first. 0 by default.
            priority(priority: i8) = "PRIORITY" priority;
            /// The most redeliveries after the first delivery, instead of the queue's; -1: no limit.
            retries(retries: i32) = "RETRIES" retries;
            /// How long each delivery may take, instead of the queue's lease. Workers with a lease of their own use that.
            lease(lease: std::time::Duration) = "LEASE" crate::request::millis(lease);
            /// The group, of 1 to 255 bytes. Messages of one group are delivered in order, by default one at a time: see
            /// [`Settings::group_inflight`](crate::Settings::group_inflight).
            group(name: impl AsRef<[u8]>) = "GROUP" name.as_ref();
        }

        /// Adds a header: a name of 1 to 255 bytes and a value of up to 4096 bytes. A message has up to 64 headers of
        /// 16384 bytes together.
        pub fn header(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
            self.options.headers.set(name, value);
            self
        }

        /// The headers, in place of those that were set before. See `header`.
        pub fn headers(mut self, headers: crate::Headers) -> Self {
            self.options.headers = headers;
            self
        }
    };
}
pub(super) use message_options;
