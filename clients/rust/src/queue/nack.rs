//! Giving a delivery back.

use crate::request::{millis, Command};
use std::time::Duration;

/// How a message is given back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Nack {
    delay: Option<Duration>,
    error: Option<String>,
    kind: NackKind,
    checkpoint: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum NackKind {
    #[default]
    Retry,
    Dead,
    NoCount,
}

/// The longest error text that a queue keeps.
const ERROR_BYTES: usize = 1024;

impl Nack {
    /// It failed, and is delivered again after the queue's backoff, or becomes dead if its retries are spent.
    #[must_use]
    pub fn retry() -> Nack {
        Nack::default()
    }

    /// It must not be tried again, and becomes dead.
    #[must_use]
    pub fn reject() -> Nack {
        Nack { kind: NackKind::Dead, ..Nack::default() }
    }

    /// Work on it has not begun: the delivery does not count, and the message returns to its old place.
    #[must_use]
    pub fn give_back() -> Nack {
        Nack { kind: NackKind::NoCount, ..Nack::default() }
    }

    /// It is due again this long after now, instead of after the queue's backoff.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Nack {
        self.delay = Some(delay);
        self
    }

    /// A text to keep with the message, up to its first 1,024 bytes.
    #[must_use]
    pub fn error(mut self, text: impl Into<String>) -> Nack {
        let mut text = text.into();
        let mut end = ERROR_BYTES.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        self.error = Some(text);
        self
    }

    /// What the next consumer is to know of the work that was done: up to 65536 bytes. Empty: nothing any more.
    #[must_use]
    pub fn checkpoint(mut self, bytes: impl AsRef<[u8]>) -> Nack {
        self.checkpoint = Some(bytes.as_ref().to_vec());
        self
    }

    /// The same without the delay and the checkpoint; `None` if it has neither.
    pub(crate) fn plain(&self) -> Option<Nack> {
        let has_more = self.delay.is_some() || self.checkpoint.is_some();
        has_more.then(|| Nack { delay: None, checkpoint: None, ..self.clone() })
    }

    pub(crate) fn command(&self, key: &[u8], name: &[u8]) -> Command {
        let command = Command::new("DQ.NACK", key).word(name).maybe("DELAY", self.delay.map(millis));
        let command = command.maybe("ERROR", self.error.as_deref()).flag("DEAD", self.kind == NackKind::Dead);
        command.flag("NOCOUNT", self.kind == NackKind::NoCount).maybe("CHECKPOINT", self.checkpoint.as_deref())
    }
}
