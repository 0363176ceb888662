//! The options of commands, each declared once for all builders that have it.

use super::Headers;
use crate::request::Command;
use redis::ToRedisArgs;

/// Options with their values. The last value of each counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    words: Vec<(&'static str, Vec<Vec<u8>>)>,
    pub headers: Headers,
}

impl Options {
    pub fn set(&mut self, name: &'static str, values: Vec<Vec<u8>>) {
        self.remove(name);
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

/// The words of a value.
pub(crate) fn value(value: impl ToRedisArgs) -> Vec<Vec<u8>> {
    value.to_redis_args()
}

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

/// Lets a builder be awaited, which sends it.
macro_rules! sent_by_await {
    ($builder:ident<T>, $result:ty) => {
        impl<T: 'static> IntoFuture for $builder<T, Async> {
            type Output = Result<$result, Error>;
            type IntoFuture = Sent<Async, $result>;

            fn into_future(self) -> Self::IntoFuture {
                self.send()
            }
        }
    };
}
pub(super) use sent_by_await;
