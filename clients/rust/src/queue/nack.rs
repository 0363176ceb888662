//! Giving a delivery back.

use super::options::{Options, SetOption};
use crate::names::QueueName;
use crate::request::Command;
use crate::time::millis;
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
        Nack::default().flag("DEAD")
    }

    /// Work on it has not begun: the delivery does not count, and the message returns to its old place.
    pub fn give_back() -> Nack {
        Nack::default().flag("NOCOUNT")
    }

    /// It is due again this long after now, instead of after the queue's backoff.
    pub fn after(self, delay: Duration) -> Self {
        self.with("DELAY", millis(delay))
    }

    /// What the next consumer is to know of the work that was done: up to 65536 bytes. Empty: nothing any more.
    pub fn checkpoint(self, bytes: impl AsRef<[u8]>) -> Self {
        self.with("CHECKPOINT", bytes.as_ref())
    }

    /// A text to keep with the message, up to its first 1,024 bytes.
    pub fn error(self, text: impl Into<String>) -> Nack {
        let mut text = text.into();
        let mut end = ERROR_BYTES.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        self.with("ERROR", text)
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

impl SetOption for Nack {
    fn options(&mut self) -> &mut Options {
        &mut self.options
    }
}
