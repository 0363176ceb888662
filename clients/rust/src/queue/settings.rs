//! The settings of a queue, each declared once.

use super::options::value;
use crate::error::Error;
use crate::reply::{self, words, Field, Fields, Part};
use crate::request::Command;
use crate::time::millis;
use redis::Value;
use std::time::Duration;

/// A value of a setting: its words in a command, and how it is read from the fields of `DQ.INFO` that have it. One that
/// only a later version knows is `None`.
trait Setting: Sized {
    fn words(&self) -> Vec<Vec<u8>>;
    fn read(fields: &mut Fields, names: &[&str]) -> Option<Self>;
}

macro_rules! settings {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $word:literal $($name:literal)+;)*) => {
        /// Settings of a queue: those that are `Some` are set. [`Info::settings`](super::Info::settings) has them all.
        ///
        /// ```
        /// # use std::time::Duration;
        /// let settings = dq_client::Settings {
        ///     retries: Some(5),
        ///     backoff: Some((Duration::from_secs(1), Duration::from_secs(60))),
        ///     ..Default::default()
        /// };
        /// ```
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct Settings {
            $($(#[$doc])* pub $field: Option<$type>,)*
        }

        impl Settings {
            pub(super) fn write(&self, mut command: Command) -> Command {
                $(if let Some(setting) = &self.$field {
                    command = command.word($word).words(Setting::words(setting));
                })*
                command
            }
        }

        /// The settings among the fields of `DQ.INFO`.
        impl Part for Settings {
            fn read_part(fields: &mut Fields, _: &str) -> Result<Settings, Error> {
                Ok(Settings { $($field: Setting::read(fields, &[$($name),+]),)* })
            }
        }
    };
}

settings! {
    /// How long a delivery may take before the message is delivered again.
    lease: Duration = "LEASE" "lease";
    /// The longest time from the beginning of a delivery to the end of its lease; zero: no limit.
    max_lease: Duration = "MAXLEASE" "maxlease";
    /// How long after its push a message is due whose push says nothing about that; zero: at once.
    delay: Duration = "DELAY" "delay";
    /// The most redeliveries before a message becomes dead; -1: no limit.
    retries: i32 = "RETRIES" "retries";
    /// How long a message waits after a nack: the first wait, which doubles each time, and the longest.
    backoff: (Duration, Duration) = "BACKOFF" "backoff-base" "backoff-max";
    /// The largest share in % by which that wait is shortened. Set only together with `backoff`.
    jitter: u32 = "JITTER" "backoff-jitter";
    /// A message that is not completed within this time becomes dead; zero: never.
    ttl: Duration = "TTL" "ttl";
    /// The most messages that are not dead; 0: no limit.
    max_len: u64 = "MAXLEN" "maxlen";
    /// The most messages in flight; 0: no limit.
    max_inflight: u64 = "MAXINFLIGHT" "maxinflight";
    /// The most deliveries in any span of this time; `(0, ZERO)`: no limit.
    rate: (u32, Duration) = "RATE" "rate" "rate-period";
    /// The same for each group by itself.
    group_rate: (u32, Duration) = "GROUPRATE" "grouprate" "grouprate-period";
    /// The most dead messages that are kept; -1: all.
    dead_len: i64 = "DEADLEN" "deadlen";
    /// How long dead messages are kept; zero: for ever.
    dead_ttl: Duration = "DEADTTL" "deadttl";
    /// The largest payload in bytes; 0: no limit.
    max_payload: u64 = "MAXPAYLOAD" "maxpayload";
    /// For how long an accepted id is refused; zero: only while its message is there.
    dedupe: Duration = "DEDUPE" "dedupe";
    /// How long a completed message is kept as done; zero: not at all.
    retain: Duration = "RETAIN" "retain";
    /// The most done messages that are kept; -1: all.
    done_len: i64 = "DONELEN" "donelen";
    /// The most messages of one group that are in flight or wait for a retry; 0: no limit.
    group_inflight: u64 = "GROUPINFLIGHT" "groupinflight";
    /// How many errors of past attempts are kept of a message; 0: only the last text.
    errors: u32 = "ERRORS" "errors";
    /// In which order groups are served.
    group_order: GroupOrder = "GROUPORDER" "grouporder";
    /// Where the server itself writes messages that are due.
    forward: Forward = "FORWARD" "forward";
    /// Where the server itself writes messages that are dead.
    dead_forward: Forward = "DEADFORWARD" "deadforward";
}

/// The value of the one field that has this setting.
fn field<F: Field>(fields: &mut Fields, names: &[&str]) -> Option<F> {
    fields.get(names.first()?).unwrap_or_default()
}

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl Setting for $number {
            fn words(&self) -> Vec<Vec<u8>> {
                value(self)
            }

            fn read(fields: &mut Fields, names: &[&str]) -> Option<Self> {
                field(fields, names)
            }
        }
    )* };
}

numbers!(i32 i64 u32 u64);

impl Setting for Duration {
    fn words(&self) -> Vec<Vec<u8>> {
        value(millis(*self))
    }

    fn read(fields: &mut Fields, names: &[&str]) -> Option<Self> {
        field(fields, names)
    }
}

impl Setting for Forward {
    fn words(&self) -> Vec<Vec<u8>> {
        value(&self.0)
    }

    fn read(fields: &mut Fields, names: &[&str]) -> Option<Self> {
        field(fields, names)
    }
}

impl Setting for GroupOrder {
    fn words(&self) -> Vec<Vec<u8>> {
        value(self.as_str())
    }

    fn read(fields: &mut Fields, names: &[&str]) -> Option<Self> {
        field(fields, names)
    }
}

/// Two values, each with a field of its own.
impl<A: Setting, B: Setting> Setting for (A, B) {
    fn words(&self) -> Vec<Vec<u8>> {
        [self.0.words(), self.1.words()].concat()
    }

    fn read(fields: &mut Fields, names: &[&str]) -> Option<Self> {
        let (first, second) = names.split_at_checked(1)?;
        A::read(fields, first).zip(B::read(fields, second))
    }
}

words! {
    /// In which order the groups of a queue are served.
    GroupOrder {
        /// By priority and due time, over all groups: the default.
        Due = "due",
        /// In turn among equal priorities, so that a group with many messages does not delay the others.
        Turn = "turn",
    }
}

/// Where the server itself writes messages that are due instead of waiting for a pop, or dead ones.
///
/// ```
/// # use dq_client::Forward;
/// Forward::stream("audit").trim(1000);
/// Forward::list("jobs").left().register("queues", "jobs");
/// ```
///
/// The keys are in the queue's own database, and in a cluster in the slot of the queue. What is read back is ambiguous
/// if a key contains a space.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Forward(Vec<String>);

impl Forward {
    /// Each message becomes an entry of a stream, with the fields `id`, `payload` and `due`, and `header:<name>` for
    /// each header; a dead one has `reason`, `error`, `attempt` and `died` as well.
    pub fn stream(key: impl Into<String>) -> Forward {
        Forward(vec!["STREAM".to_owned(), key.into()])
    }

    /// About how many entries the stream is trimmed to.
    pub fn trim(self, entries: u64) -> Forward {
        self.and(["TRIM".to_owned(), entries.to_string()])
    }

    /// The payload is pushed to a list, by default to its right end.
    pub fn list(key: impl Into<String>) -> Forward {
        Forward(vec!["LIST".to_owned(), key.into()])
    }

    /// The payload is pushed to the right end of the list. Comes before [`Forward::register`].
    pub fn right(self) -> Forward {
        self.and(["RIGHT".to_owned()])
    }

    /// The payload is pushed to the left end of the list. Comes before [`Forward::register`].
    pub fn left(self) -> Forward {
        self.and(["LEFT".to_owned()])
    }

    /// The member is added to this set before the list is written to. Not for dead messages.
    pub fn register(self, set: impl Into<String>, member: impl Into<String>) -> Forward {
        self.and(["REGISTER".to_owned(), set.into(), member.into()])
    }

    /// The payload is published to a channel. A message that nobody receives is lost. Not for dead messages.
    pub fn channel(name: impl Into<String>) -> Forward {
        Forward(vec!["CHANNEL".to_owned(), name.into()])
    }

    /// Dead messages are pushed to another queue, with headers that say how they died. Only for dead messages.
    pub fn queue(key: impl Into<String>) -> Forward {
        Forward(vec!["QUEUE".to_owned(), key.into()])
    }

    /// Messages wait for a pop, or stay dead.
    pub fn none() -> Forward {
        Forward(vec!["NONE".to_owned()])
    }

    fn and(mut self, words: impl IntoIterator<Item = String>) -> Forward {
        self.0.extend(words);
        self
    }
}

impl Field for Forward {
    fn read(value: Value) -> Result<Self, Error> {
        Ok(Forward(reply::text(value)?.split(' ').map(str::to_owned).collect()))
    }
}
