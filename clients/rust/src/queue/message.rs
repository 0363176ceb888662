//! Messages as `DQ.GET`, `DQ.PEEK` and `DQ.SCAN` show them.

use super::headers::Headers;
use crate::error::Error;
use crate::names::{MessageId, Receipt};
use crate::payload::Decode;
use crate::reply::{fields, reply, row, words, Fields, Part};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};

words! {
    /// The state of a message.
    #[non_exhaustive]
    State {
        /// It waits for its due time.
        Delayed = "delayed",
        /// It is due, and waits for a consumer.
        Ready = "ready",
        /// It was delivered, and its lease runs.
        Inflight = "inflight",
        /// It failed for good, and is kept for inspection.
        Dead = "dead",
        /// It was completed, and is kept for a time.
        Done = "done",
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

reply! {
    /// A message with all its fields.
    #[derive(Clone, Debug)]
    Message<T> {
        /// The id.
        pub id: MessageId = "id",
        /// The state at the instant of the reply.
        pub state: State = "state",
        /// Among ready messages, a higher priority is delivered first.
        pub priority: i8 = "priority",
        /// When it was pushed.
        pub created: SystemTime = "created",
        /// When it is due.
        pub due: SystemTime = "due",
        /// Deliveries so far.
        pub attempt: u32 = "attempt",
        /// The most redeliveries, not what remains of them; -1: no limit.
        pub retries: i32 = "retries",
        /// The lease in force.
        pub lease: Duration = "lease",
        /// The time to live in force; zero: none.
        pub ttl: Duration = "ttl",
        /// How long it is kept as done after its completion, if its push set that; otherwise the setting of the queue
        /// applies.
        pub retain: Option<Duration> = "retain",
        /// In flight: the end of the lease.
        pub deadline: Option<SystemTime> = "deadline",
        /// In flight: the receipt of the current delivery.
        pub receipt: Option<Receipt> = "receipt",
        /// The text of the last nack or burial that had one.
        pub error: Option<String> = "error",
        /// The errors of past attempts, oldest first, as far as [`Settings::errors`](super::Settings::errors) keeps
        /// them.
        pub errors: Vec<PastError> = "errors",
        /// Dead: `rejected`, `expired` or `retries`.
        pub reason: Option<String> = "reason",
        /// Dead: when it died.
        pub died: Option<SystemTime> = "died",
        /// Dead: whether the lease of its last delivery expired without an ack or a nack. [`error`](Self::error) is
        /// then that of an earlier delivery, if any.
        pub lease_expired: bool = "lease-expired",
        /// The group.
        pub group: Option<String> = "group",
        /// The batch, until the message is dead.
        pub batch: Option<String> = "batch",
        /// The headers.
        pub headers: Headers = "headers",
        /// The checkpoint that a consumer has stored with `Queue::checkpoint`.
        pub checkpoint: Option<Vec<u8>> = "checkpoint",
        /// In flight: the name of the consumer that holds it, if it has one.
        pub consumer: Option<String> = "consumer",
        /// In flight: whether another message takes its place when this delivery ends, because it was pushed with
        /// `replace_later`.
        pub has_next: bool = "next",
        /// The schedule, if it is a recurring message.
        pub schedule: Option<Recurring> = "",
        /// Done: when it was completed.
        pub done: Option<SystemTime> = "done",
        /// Done: until when it is kept.
        pub kept_until: Option<SystemTime> = "until",
        /// In a scan that asks for it: the position in the push order, larger for messages that were pushed later.
        pub sequence: Option<u64> = "sequence",
        bytes: Option<Vec<u8>> = "payload",
        result: Option<Vec<u8>> = "result",
        of: PhantomData<fn() -> T> = "",
        /// Fields that are unknown to this version of the crate, as text.
        pub other: BTreeMap<String, String> = "",
    }
}

row! {
    /// Why an attempt failed.
    #[derive(Clone, PartialEq, Eq, Debug)]
    PastError {
        /// The number of the delivery.
        pub attempt: u32,
        /// When the delivery ended.
        pub at: SystemTime,
        /// The text that the consumer gave.
        pub text: String,
    }
}

fields! {
    /// The schedule of a recurring message: an interval or a cron expression.
    #[derive(Clone, PartialEq, Eq, Debug)]
    Recurring {
        /// The interval.
        pub every: Option<Duration> = "every",
        /// The offset of the interval.
        pub offset: Duration = "offset",
        /// The cron expression.
        pub cron: Option<String> = "cron",
        /// The time zone of the cron expression.
        pub zone: Option<String> = "tz",
        /// The last instant at which a run may be due.
        pub until: Option<SystemTime> = "until",
        /// The runs that are left.
        pub times_left: Option<u64> = "times-left",
        /// Runs that have ended.
        pub runs: u64 = "runs",
        /// Runs that have failed.
        pub failed_runs: u64 = "failed-runs",
        /// When the last run began.
        pub last_run: Option<SystemTime> = "last-run",
    }
}

impl Part for Option<Recurring> {
    /// The fields of a schedule are among those of its message.
    fn read_part(fields: &mut Fields, _: &str) -> Result<Self, Error> {
        let is_recurring = fields.has("every") || fields.has("cron");
        is_recurring.then(|| Recurring::read_fields(fields)).transpose()
    }
}

impl<T> Message<T> {
    /// The payload as the queue holds it. Empty for a done message: its payload is dropped.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }

    /// Done: the result as the queue holds it; `None` if the message was completed without one.
    pub fn result_bytes(&self) -> Option<&[u8]> {
        self.result.as_deref()
    }

    /// The result of a done message. If it was completed without one, this is the value for a missing result, which
    /// `()` and `Option` have.
    ///
    /// # Errors
    /// [`Error::Decode`] if the bytes are not an `R`.
    pub fn result<R: Decode>(&self) -> Result<R, Error> {
        let none = |_| Error::decode("the message was completed without a result, or its result could not be kept");
        self.result.as_ref().map_or_else(|| R::absent().map_err(none), |bytes| R::decode(bytes))
    }
}

impl<T: Decode> Message<T> {
    /// The payload.
    ///
    /// # Errors
    /// [`Error::Decode`] if the bytes are not a `T`, as those of a done message, which has none.
    pub fn payload(&self) -> Result<T, Error> {
        T::decode(self.bytes())
    }
}
