//! Recurring messages.

use super::command::{millis, unix_ms};
use super::headers::Headers;
use super::Queue;
use crate::connect::Resend;
use crate::payload::Encode;
use crate::reply;
use crate::Error;
use std::time::{Duration, SystemTime};

/// What the declaration of a schedule did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Declared {
    /// The queue held no message of this id.
    Created,
    /// The schedule is different now, or an ordinary message became one.
    Changed,
    /// It had been declared in the same way before.
    Unchanged,
}

/// The declaration of a recurring message: a rule, options, and then [`Schedule::declare`].
///
/// A declaration that equals the existing schedule moves nothing, so every process may declare its schedules when it
/// starts.
#[must_use = "a schedule is declared by `declare`"]
#[derive(Debug)]
pub struct Schedule<'a, T> {
    queue: &'a Queue<T>,
    id: Vec<u8>,
    payload: Result<Vec<u8>, Error>,
    rule: Option<Rule>,
    at: Option<SystemTime>,
    until: Option<SystemTime>,
    times: Option<u32>,
    priority: i8,
    retries: Option<i32>,
    lease: Option<Duration>,
    ttl: Option<Duration>,
    group: Option<Vec<u8>>,
    headers: Headers,
}

#[derive(Debug)]
enum Rule {
    Every(Duration, Duration),
    Cron(String, Option<String>),
}

impl<'a, T: Encode> Schedule<'a, T> {
    pub(super) fn new(queue: &'a Queue<T>, id: &[u8], payload: &T) -> Schedule<'a, T> {
        Schedule {
            queue,
            id: id.to_vec(),
            payload: payload.encode(),
            rule: None,
            at: None,
            until: None,
            times: None,
            priority: 0,
            retries: None,
            lease: None,
            ttl: None,
            group: None,
            headers: Headers::default(),
        }
    }
}

impl<T> Schedule<'_, T> {
    /// A run is due at each multiple of this interval since 1970.
    pub fn every(self, interval: Duration) -> Self {
        self.every_at(interval, Duration::ZERO)
    }

    /// A run is due at each multiple of this interval since 1970, plus the offset.
    pub fn every_at(mut self, interval: Duration, offset: Duration) -> Self {
        self.rule = Some(Rule::Every(interval, offset));
        self
    }

    /// A run is due at the times of this cron expression, such as `30 18 * * mon-fri`, in UTC.
    pub fn cron(mut self, expression: &str) -> Self {
        self.rule = Some(Rule::Cron(expression.to_owned(), None));
        self
    }

    /// As [`Schedule::cron`], in a time zone such as `Europe/Berlin`.
    pub fn cron_in(mut self, expression: &str, zone: &str) -> Self {
        self.rule = Some(Rule::Cron(expression.to_owned(), Some(zone.to_owned())));
        self
    }

    /// When the first run is due, instead of the first time of the rule.
    pub fn first_at(mut self, time: SystemTime) -> Self {
        self.at = Some(time);
        self
    }

    /// The last instant at which a run may be due.
    pub fn until(mut self, time: SystemTime) -> Self {
        self.until = Some(time);
        self
    }

    /// The series ends after this many runs.
    pub fn times(mut self, runs: u32) -> Self {
        self.times = Some(runs);
        self
    }

    /// See [`Push::priority`](super::Push::priority).
    pub fn priority(mut self, priority: i8) -> Self {
        self.priority = priority;
        self
    }

    /// The most redeliveries of each run, instead of the queue's; -1: no limit.
    pub fn retries(mut self, retries: i32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// How long each delivery may take, instead of the queue's lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// A run that is not completed within this time after it was due fails; zero: never.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// See [`Push::group`](super::Push::group).
    pub fn group(mut self, name: impl AsRef<[u8]>) -> Self {
        self.group = Some(name.as_ref().to_vec());
        self
    }

    /// See [`Push::header`](super::Push::header).
    pub fn header(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.headers.set(name, value);
        self
    }

    /// See [`Push::headers`](super::Push::headers).
    pub fn headers(mut self, headers: Headers) -> Self {
        self.headers = headers;
        self
    }

    /// Declares the schedule.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no rule; [`Error::Server`] if the server refuses the rule; and those of a push.
    pub fn declare(self) -> Result<Declared, Error> {
        let mut command = self.queue.command("DQ.SCHEDULE");
        command.word(self.id);
        command.word(self.payload?);
        match self.rule {
            None => return Err(Error::Config("a schedule needs an interval or a cron expression".to_owned())),
            Some(Rule::Every(interval, offset)) => {
                command.option("EVERY", millis(interval));
                if !offset.is_zero() {
                    command.option("OFFSET", millis(offset));
                }
            }
            Some(Rule::Cron(expression, zone)) => {
                command.option("CRON", expression);
                command.maybe("TZ", zone);
            }
        }
        command.maybe("AT", self.at.map(unix_ms));
        command.maybe("UNTIL", self.until.map(unix_ms));
        command.maybe("TIMES", self.times);
        command.maybe("LEASE", self.lease.map(millis));
        command.maybe("TTL", self.ttl.map(millis));
        if self.priority != 0 {
            command.option("PRIORITY", self.priority);
        }
        command.maybe("RETRIES", self.retries);
        command.maybe("GROUP", self.group);
        self.headers.write(&mut command);
        let answer = self.queue.answer(&command, Resend::Harmless).map_err(|failure| failure.error)?;
        match reply::text(&answer.value)?.as_str() {
            "created" => Ok(Declared::Created),
            "changed" => Ok(Declared::Changed),
            "unchanged" if answer.repeated => Ok(Declared::Changed),
            "unchanged" => Ok(Declared::Unchanged),
            other => Err(Error::Protocol(other.to_owned())),
        }
    }
}
