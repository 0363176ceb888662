//! Recurring messages.

use super::options::{message_options, Options, Parts, SetOption};
use super::Queue;
use crate::connect::Sent;
use crate::error::Error;
use crate::mode::{Async, Mode};
use crate::names::MessageId;
use crate::payload::Encode;
use crate::reply::{words, Field};
use crate::request::{Request, Resend};
use crate::time::{millis, unix_ms};
use std::future::IntoFuture;
use std::time::{Duration, SystemTime};

words! {
    /// What the declaration of a schedule did.
    Declared {
        /// The queue held no message of this id.
        Created = "created",
        /// The schedule is different now, or an ordinary message became one.
        Changed = "changed",
        /// It had been declared in the same way before.
        Unchanged = "unchanged",
    }
}

/// The declaration of a recurring message: a rule, options, and then `.await`, or [`Schedule::send`].
///
/// A declaration that equals the existing schedule moves nothing, so every process may declare its schedules when it
/// starts.
#[must_use = "nothing is done until it is sent"]
#[derive(Debug)]
pub struct Schedule<T, M, R = Declared> {
    parts: Parts<T, M, R>,
}

impl<T: 'static, M: Mode, R: Send + 'static> Schedule<T, M, R> {
    /// Declares the schedule.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no rule; [`Error::Server`] if the server refuses the rule; and those of a push.
    pub fn send(self) -> Sent<M, R> {
        self.parts.send()
    }
}

impl<T: 'static, R: Send + 'static> IntoFuture for Schedule<T, Async, R> {
    type Output = Result<R, Error>;
    type IntoFuture = Sent<Async, R>;

    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}

impl<T: 'static, M: Mode, R: Send + 'static> SetOption for Schedule<T, M, R> {
    fn options(&mut self) -> &mut Options {
        &mut self.parts.options
    }
}

impl<T: Encode + 'static, M: Mode> Queue<T, M> {
    /// Declares a recurring message: `queue.schedule("report", &report).every(hour).await?`.
    pub fn schedule(&self, id: impl Into<MessageId>, payload: &T) -> Schedule<T, M> {
        let command = payload.encode().map(|payload| self.command("DQ.SCHEDULE").word(id.into()).word(payload));
        let parts = Parts::new(self, command, |command, options| {
            if options.has("EVERY") || options.has("CRON") {
                return Request::new(options.write(command), Resend::Harmless, |answer| {
                    let declared = Declared::read(answer.reply?)?;
                    // The first of two executions may have changed it.
                    let changed = answer.repeated && declared == Declared::Unchanged;
                    Ok(if changed { Declared::Changed } else { declared })
                });
            }
            Request::failed(Error::Config("a schedule needs an interval or a cron expression".to_owned()))
        });
        Schedule { parts }
    }
}

impl<T: 'static, M: Mode> Schedule<T, M> {
    message_options!();

    /// A run is due at each multiple of this interval since 1970.
    pub fn every(self, interval: Duration) -> Self {
        self.with("EVERY", millis(interval))
    }

    /// The runs of an interval are due this much later.
    pub fn offset(self, offset: Duration) -> Self {
        self.with("OFFSET", millis(offset))
    }

    /// A run is due at the times of this cron expression, such as `30 18 * * mon-fri`.
    pub fn cron(self, expression: &str) -> Self {
        self.with("CRON", expression)
    }

    /// The time zone of the cron expression, such as `Europe/Berlin`, instead of UTC.
    pub fn zone(self, name: &str) -> Self {
        self.with("TZ", name)
    }

    /// When the first run is due, instead of the first time of the rule.
    pub fn first_at(self, time: SystemTime) -> Self {
        self.with("AT", unix_ms(time))
    }

    /// The last instant at which a run may be due.
    pub fn until(self, time: SystemTime) -> Self {
        self.with("UNTIL", unix_ms(time))
    }

    /// The series ends after this many runs.
    pub fn times(self, runs: u32) -> Self {
        self.with("TIMES", runs)
    }

    /// A run that is not completed within this time after it was due fails; zero: never.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with("TTL", millis(ttl))
    }
}

#[cfg(test)]
mod tests {
    use super::{Declared, Duration};
    use crate::request::Answer;
    use crate::{both, Async};
    use redis::Value;

    #[test]
    fn a_declaration_that_was_repeated_may_have_changed_the_schedule() {
        let queue = both::Client::<Async>::open("redis://").unwrap().queue::<u8>("q");
        let declare = || queue.schedule("s", &7).every(Duration::from_secs(1)).parts.request();
        let unchanged = || Ok(Value::SimpleString("unchanged".to_owned()));
        let read = |repeated| (declare().read)(Answer { reply: unchanged(), repeated }).unwrap();
        assert_eq!((read(false), read(true)), (Declared::Unchanged, Declared::Changed));
    }
}
