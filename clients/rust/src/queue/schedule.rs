//! Recurring messages.

use super::options::{message_options, options, sent_by_await, value, Options};
use super::Queue;
use crate::connect::Sent;
use crate::mode::{Async, Mode};
use crate::payload::Encode;
use crate::reply;
use crate::request::{millis, unix_ms, Answer, Request, Resend};
use crate::Error;
use std::future::IntoFuture;
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

/// The declaration of a recurring message: a rule, options, and then `.await`, or [`Schedule::send`].
///
/// A declaration that equals the existing schedule moves nothing, so every process may declare its schedules when it
/// starts.
#[must_use = "a schedule is declared when this is sent"]
#[derive(Debug)]
pub struct Schedule<T, M> {
    queue: Queue<T, M>,
    id: Vec<u8>,
    payload: Result<Vec<u8>, Error>,
    options: Options,
}

impl<T: Encode + 'static, M: Mode> Queue<T, M> {
    /// Declares a recurring message: `queue.schedule("report", &report).every(hour).await?`.
    pub fn schedule(&self, id: impl AsRef<[u8]>, payload: &T) -> Schedule<T, M> {
        let (id, payload) = (id.as_ref().to_vec(), payload.encode());
        Schedule { queue: self.clone(), id, payload, options: Options::default() }
    }
}

impl<T: 'static, M: Mode> Schedule<T, M> {
    message_options!();

    options! {
        /// A run is due at each multiple of this interval since 1970.
        every(interval: Duration) = "EVERY" millis(interval);
        /// A run is due at the times of this cron expression, such as `30 18 * * mon-fri`, in UTC.
        cron(expression: &str) = "CRON" expression;
        /// When the first run is due, instead of the first time of the rule.
        first_at(time: SystemTime) = "AT" unix_ms(time);
        /// The last instant at which a run may be due.
        until(time: SystemTime) = "UNTIL" unix_ms(time);
        /// The series ends after this many runs.
        times(runs: u32) = "TIMES" runs;
        /// A run that is not completed within this time after it was due fails; zero: never.
        ttl(ttl: Duration) = "TTL" millis(ttl);
    }

    /// A run is due at each multiple of this interval since 1970, plus the offset.
    pub fn every_at(mut self, interval: Duration, offset: Duration) -> Self {
        self.options.set("OFFSET", value(millis(offset)));
        self.every(interval)
    }

    /// As [`Schedule::cron`], in a time zone such as `Europe/Berlin`.
    pub fn cron_in(mut self, expression: &str, zone: &str) -> Self {
        self.options.set("TZ", value(zone));
        self.cron(expression)
    }

    /// Declares the schedule.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no rule; [`Error::Server`] if the server refuses the rule; and those of a push.
    pub fn send(self) -> Sent<M, Declared> {
        let client = self.queue.client.clone();
        client.send(self.request())
    }

    fn request(self) -> Request<Declared> {
        let payload = match self.payload {
            Ok(payload) => payload,
            Err(error) => return Request::known(Err(error)),
        };
        if !self.options.has("EVERY") && !self.options.has("CRON") {
            let text = "a schedule needs an interval or a cron expression".to_owned();
            return Request::known(Err(Error::Config(text)));
        }
        let command = self.options.write(self.queue.command("DQ.SCHEDULE").word(self.id).word(payload));
        let read = |answer: Answer| match reply::text(&answer.reply?)?.as_str() {
            "created" => Ok(Declared::Created),
            "changed" => Ok(Declared::Changed),
            "unchanged" if answer.repeated => Ok(Declared::Changed),
            "unchanged" => Ok(Declared::Unchanged),
            other => Err(Error::Protocol(other.to_owned())),
        };
        Request { command: Some(command.0), resend: Resend::Harmless, wait: Duration::ZERO, read: Box::new(read) }
    }
}

sent_by_await!(Schedule<T>, Declared);
