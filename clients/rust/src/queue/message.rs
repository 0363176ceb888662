//! Messages as `DQ.GET`, `DQ.PEEK` and `DQ.SCAN` show them.

use super::command::time_of;
use super::headers::Headers;
use super::id::{Id, Receipt};
use crate::payload::Decode;
use crate::reply::{self, Fields};
use crate::Error;
use redis::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// The state of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum State {
    /// It waits for its due time.
    Delayed,
    /// It is due, and waits for a consumer.
    Ready,
    /// It was delivered, and its lease runs.
    Inflight,
    /// It failed for good, and is kept for inspection.
    Dead,
    /// It was completed, and is kept for a time.
    Done,
}

impl State {
    /// All states.
    pub const ALL: [State; 5] = [State::Delayed, State::Ready, State::Inflight, State::Dead, State::Done];

    /// The word for it in commands and replies.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            State::Delayed => "delayed",
            State::Ready => "ready",
            State::Inflight => "inflight",
            State::Dead => "dead",
            State::Done => "done",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for State {
    type Err = Error;

    fn from_str(text: &str) -> Result<State, Error> {
        let found = State::ALL.into_iter().find(|state| state.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| Error::Protocol(format!("unknown state '{text}'")))
    }
}

pub(super) fn state(value: &Value) -> Result<State, Error> {
    reply::text(value)?.parse()
}

/// A message with all its fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message<T> {
    /// The id.
    pub id: Id,
    /// The state at the instant of the reply.
    pub state: State,
    /// Among ready messages, a higher priority is delivered first.
    pub priority: i8,
    /// When it was pushed.
    pub created: SystemTime,
    /// When it is due.
    pub due: SystemTime,
    /// Deliveries so far.
    pub attempt: u32,
    /// The most redeliveries, not what remains of them; -1: no limit.
    pub retries: i32,
    /// The lease in force.
    pub lease: Duration,
    /// The time to live in force; zero: none.
    pub ttl: Duration,
    /// How long it is kept as done after its completion, if its push said so; else the setting of the queue applies.
    pub retain: Option<Duration>,
    /// In flight: the end of the lease.
    pub deadline: Option<SystemTime>,
    /// In flight: the receipt of the current delivery.
    pub receipt: Option<Receipt>,
    /// The text of the last nack or burial that had one.
    pub error: Option<String>,
    /// The errors of past attempts, oldest first, as far as [`Settings::errors`](super::Settings::errors) keeps them.
    pub errors: Vec<PastError>,
    /// Dead: `rejected`, `expired` or `retries`.
    pub reason: Option<String>,
    /// Dead: when it died.
    pub died: Option<SystemTime>,
    /// Dead: whether its last delivery was neither acked nor nacked before its lease expired, so that
    /// [`error`](Self::error) is at most that of an earlier delivery.
    pub lease_expired: bool,
    /// The group.
    pub group: Option<String>,
    /// The batch, until the message is dead.
    pub batch: Option<String>,
    /// The headers.
    pub headers: Headers,
    /// What a consumer has stored of its work with [`Queue::checkpoint`](super::Queue::checkpoint).
    pub checkpoint: Option<Vec<u8>>,
    /// In flight: the name of the consumer that holds it, if it has one.
    pub consumer: Option<String>,
    /// In flight: whether another message takes its place when this delivery ends, because it was pushed with
    /// [`replace_later`](super::Push::replace_later).
    pub has_next: bool,
    /// The schedule, if it is a recurring message.
    pub schedule: Option<Recurring>,
    /// Done: when it was completed.
    pub done: Option<SystemTime>,
    /// Done: until when it is kept.
    pub kept_until: Option<SystemTime>,
    /// In a scan that asks for it: the position in the push order, larger for messages that were pushed later.
    pub sequence: Option<u64>,
    /// Fields that are unknown to this version of the crate, as text.
    pub other: BTreeMap<String, String>,
    bytes: Vec<u8>,
    result: Option<Vec<u8>>,
    of: PhantomData<fn() -> T>,
}

/// Why an attempt failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PastError {
    /// The number of the delivery.
    pub attempt: u32,
    /// When the delivery ended.
    pub at: SystemTime,
    /// The text that the consumer gave.
    pub text: String,
}

impl PastError {
    fn read(value: Value) -> Result<PastError, Error> {
        match reply::list(value)?.as_slice() {
            [attempt, at, text] => Ok(PastError {
                attempt: u32::try_from(reply::int(attempt)?).unwrap_or(u32::MAX),
                at: time(reply::int(at)?),
                text: reply::text(text)?,
            }),
            other => Err(Error::Protocol(format!("an error with {} parts", other.len()))),
        }
    }
}

/// The schedule of a recurring message.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Recurring {
    /// The interval and its offset, unless there is a cron expression.
    pub every: Option<(Duration, Duration)>,
    /// The cron expression and its time zone.
    pub cron: Option<(String, String)>,
    /// The last instant at which a run may be due.
    pub until: Option<SystemTime>,
    /// The runs that are left.
    pub times_left: Option<u64>,
    /// Runs that have ended.
    pub runs: u64,
    /// Runs that have failed.
    pub failed_runs: u64,
    /// When the last run began.
    pub last_run: Option<SystemTime>,
}

impl<T> Message<T> {
    /// The payload as the queue holds it. Empty for a done message: its payload is dropped.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Done: the result as the queue holds it; `None` if the message was completed without one.
    #[must_use]
    pub fn result_bytes(&self) -> Option<&[u8]> {
        self.result.as_deref()
    }

    /// The result of a done message. If it was completed without one, this is the value for a missing result, which `()` and
    /// `Option` have.
    ///
    /// # Errors
    /// [`Error::Decode`] if the bytes are not an `R`.
    pub fn result<R: Decode>(&self) -> Result<R, Error> {
        let none =
            |_| Error::Decode("the message was completed without a result, or its result could not be kept".into());
        self.result.as_ref().map_or_else(|| R::absent().map_err(none), |bytes| R::decode(bytes))
    }

    pub(super) fn read(reply: Value) -> Result<Message<T>, Error> {
        let mut fields = Fields::from(reply)?;
        let missing = |name: &str| Error::Protocol(format!("a message without {name}"));
        let mut bytes = |name: &str| fields.take(name).map(reply::bytes).transpose();
        let id = Id::from_bytes(bytes("id")?.ok_or_else(|| missing("id"))?);
        let payload = bytes("payload")?.unwrap_or_default();
        let receipt = bytes("receipt")?.map(Receipt::from_bytes);
        let result = bytes("result")?;
        let checkpoint = bytes("checkpoint")?;
        let mut number = |name: &str| fields.take(name).as_ref().map(reply::int).transpose();
        let mut needed = |name: &str| Ok::<i64, Error>(number(name)?.unwrap_or_default());
        let (created, due) = (time(needed("created")?), time(needed("due")?));
        let attempt = u32::try_from(needed("attempt")?).unwrap_or(u32::MAX);
        let priority = i8::try_from(needed("priority")?).map_err(|_| missing("a valid priority"))?;
        let retries = i32::try_from(needed("retries")?).unwrap_or(i32::MAX);
        let (lease, ttl) = (span(needed("lease")?), span(needed("ttl")?));
        let retain = number("retain")?.map(span);
        let (deadline, died) = (number("deadline")?.map(time), number("died")?.map(time));
        let has_next = number("next")?.unwrap_or_default() != 0;
        let lease_expired = number("lease-expired")?.unwrap_or_default() != 0;
        let done = number("done")?.map(time);
        // A schedule has a field of this name too, which is the end of its series.
        let kept_until = if done.is_some() { number("until")?.map(time) } else { None };
        let sequence = number("sequence")?.map(unsigned);
        let schedule = Recurring::read(&mut fields)?;
        let errors = fields.take("errors").map_or_else(|| Ok(Vec::new()), reply::list)?;
        let errors = errors.into_iter().map(PastError::read).collect::<Result<_, _>>()?;
        let headers = Headers::read(fields.take("headers"))?;
        let mut text = |name: &str| fields.take(name).as_ref().map(reply::text).transpose();
        let state = text("state")?.ok_or_else(|| missing("state"))?.parse()?;
        let (error, reason, group, batch) = (text("error")?, text("reason")?, text("group")?, text("batch")?);
        let consumer = text("consumer")?;
        let other = fields.unknown();
        Ok(Message {
            id,
            state,
            priority,
            created,
            due,
            attempt,
            retries,
            lease,
            ttl,
            retain,
            deadline,
            receipt,
            error,
            errors,
            reason,
            died,
            lease_expired,
            group,
            batch,
            headers,
            checkpoint,
            consumer,
            has_next,
            schedule,
            done,
            kept_until,
            sequence,
            other,
            bytes: payload,
            result,
            of: PhantomData,
        })
    }
}

impl<T: Decode> Message<T> {
    /// The payload.
    ///
    /// # Errors
    /// [`Error::Decode`] if the bytes are not a `T`, as those of a done message, which has none.
    pub fn payload(&self) -> Result<T, Error> {
        T::decode(&self.bytes)
    }
}

impl Recurring {
    fn read(fields: &mut Fields) -> Result<Option<Recurring>, Error> {
        let text = |value: Option<Value>| value.as_ref().map(reply::text).transpose();
        let cron =
            text(fields.take("cron"))?.map(|cron| Ok::<_, Error>((cron, text(fields.take("tz"))?.unwrap_or_default())));
        let cron = cron.transpose()?;
        let mut number = |name: &str| fields.take(name).as_ref().map(reply::int).transpose();
        let every = number("every")?;
        let offset = number("offset")?.unwrap_or_default();
        let recurring = Recurring {
            every: every.map(|every| (span(every), span(offset))),
            cron,
            until: number("until")?.map(time),
            times_left: number("times-left")?.map(unsigned),
            runs: number("runs")?.map(unsigned).unwrap_or_default(),
            failed_runs: number("failed-runs")?.map(unsigned).unwrap_or_default(),
            last_run: number("last-run")?.map(time),
        };
        Ok(Some(recurring).filter(|recurring| recurring.every.is_some() || recurring.cron.is_some()))
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

pub(super) fn time(unix_ms: i64) -> SystemTime {
    time_of(unsigned(unix_ms))
}

fn span(ms: i64) -> Duration {
    Duration::from_millis(unsigned(ms))
}
