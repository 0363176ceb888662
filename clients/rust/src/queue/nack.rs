//! Giving a delivery back.

use super::options::{options, value, Options};
use crate::names::QueueName;
use crate::request::{millis, Command};
use std::time::Duration;

/// The longest error text that a queue keeps.
const ERROR_BYTES: usize = 1024;

/// How a message is given back.
#[must_use]
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Nack {
    options: Options,
}

impl Nack {
    /// It failed, and is delivered again after the queue's backoff, or becomes dead if its retries are spent.
    pub fn retry() -> Nack {
        Nack::default()
    }

    /// It must not be tried again, and becomes dead.
    pub fn reject() -> Nack {
        Nack::flagged("DEAD")
    }

    /// Work on it has not begun: the delivery does not count, and the message returns to its old place.
    pub fn give_back() -> Nack {
        Nack::flagged("NOCOUNT")
    }

    fn flagged(option: &'static str) -> Nack {
        let mut nack = Nack::default();
        nack.options.set(option, Vec::new());
        nack
    }

    options! {
        /// It is due again this long after now, instead of after the queue's backoff.
        after(delay: Duration) = "DELAY" millis(delay);
        /// What the next consumer is to know of the work that was done: up to 65536 bytes. Empty: nothing any more.
        checkpoint(bytes: impl AsRef<[u8]>) = "CHECKPOINT" bytes.as_ref();
    }

    /// A text to keep with the message, up to its first 1,024 bytes.
    pub fn error(mut self, text: impl Into<String>) -> Nack {
        let mut text = text.into();
        let mut end = ERROR_BYTES.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        self.options.set("ERROR", value(text));
        self
    }

    /// The same without the delay and the checkpoint; `None` if it has neither.
    pub(crate) fn plain(&self) -> Option<Nack> {
        let mut plain = self.clone();
        plain.options.remove("DELAY");
        plain.options.remove("CHECKPOINT");
        (plain != *self).then_some(plain)
    }

    pub(crate) fn command(&self, queue: &QueueName, delivery: &[u8]) -> Command {
        self.options.write(Command::new("DQ.NACK", queue).word(delivery))
    }
}
