//! Recurring messages.

use super::options::{builder, message_options, options};
use super::Queue;
use crate::mode::Mode;
use crate::names::MessageId;
use crate::payload::Encode;
use crate::reply::{words, Field};
use crate::request::{millis, unix_ms, Request, Resend};
use crate::Error;
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

builder! {
    /// The declaration of a recurring message: a rule, options, and then `.await`, or [`Schedule::send`].
    ///
    /// A declaration that equals the existing schedule moves nothing, so every process may declare its schedules when it
    /// starts.
    Schedule<T> -> Declared;
    /// Declares the schedule.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no rule; [`Error::Server`] if the server refuses the rule; and those of a push.
    send
}

impl<T: Encode + 'static, M: Mode> Queue<T, M> {
    /// Declares a recurring message: `queue.schedule("report", &report).every(hour).await?`.
    pub fn schedule(&self, id: impl Into<MessageId>, payload: &T) -> Schedule<T, M> {
        let command = payload.encode().map(|payload| self.command("DQ.SCHEDULE").word(id.into()).word(payload));
        Schedule::new(self, command, |command, options| {
            if options.has("EVERY") || options.has("CRON") {
                return Request::new(options.write(command), Resend::Harmless, |answer| {
                    let declared = Declared::read(answer.reply?)?;
                    // The first of two executions may have changed it.
                    let changed = answer.repeated && declared == Declared::Unchanged;
                    Ok(if changed { Declared::Changed } else { declared })
                });
            }
            Request::failed(Error::Config("a schedule needs an interval or a cron expression".to_owned()))
        })
    }
}

impl<T: 'static, M: Mode> Schedule<T, M> {
    message_options!();

    options! {
        /// A run is due at each multiple of this interval since 1970.
        every(interval: Duration) = "EVERY" millis(interval);
        /// The runs of an interval are due this much later.
        offset(offset: Duration) = "OFFSET" millis(offset);
        /// A run is due at the times of this cron expression, such as `30 18 * * mon-fri`.
        cron(expression: &str) = "CRON" expression;
        /// The time zone of the cron expression, such as `Europe/Berlin`, instead of UTC.
        zone(name: &str) = "TZ" name;
        /// When the first run is due, instead of the first time of the rule.
        first_at(time: SystemTime) = "AT" unix_ms(time);
        /// The last instant at which a run may be due.
        until(time: SystemTime) = "UNTIL" unix_ms(time);
        /// The series ends after this many runs.
        times(runs: u32) = "TIMES" runs;
        /// A run that is not completed within this time after it was due fails; zero: never.
        ttl(ttl: Duration) = "TTL" millis(ttl);
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
        let declare = || queue.schedule("s", &7).every(Duration::from_secs(1)).request();
        let unchanged = || Ok(Value::SimpleString("unchanged".to_owned()));
        let read = |repeated| (declare().read)(Answer { reply: unchanged(), repeated }).unwrap();
        assert_eq!((read(false), read(true)), (Declared::Unchanged, Declared::Changed));
    }
}
