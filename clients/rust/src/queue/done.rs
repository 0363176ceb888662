//! Done messages: completing a delivery with a result, and waiting for it.

use super::command::{millis, Command};
use super::message::{Message, State};
use super::{Id, Pushed, Queue};
use crate::connect::{after, Backoff, Resend};
use crate::payload::{Decode, Encode};
use crate::queue::Push;
use crate::reply;
use crate::Error;
use std::time::{Duration, Instant};

/// The largest result that a queue keeps.
pub(crate) const RESULT_BYTES: usize = 65_536;
/// How long one command waits. Then it is sent again, so that a dead server is noticed.
const SLICE: Duration = Duration::from_secs(5);
/// The shortest time to keep a result, because the client that waits for it may have to reconnect.
const SHORTEST_RETAIN: Duration = Duration::from_secs(60);

/// An acknowledgement with a result: options, and then [`Complete::send`].
#[must_use = "a delivery is completed by `send`"]
#[derive(Debug)]
pub struct Complete<'a, T> {
    queue: &'a Queue<T>,
    delivery: Vec<u8>,
    result: Option<Result<Vec<u8>, Error>>,
    retain: Option<Duration>,
}

impl<'a, T> Complete<'a, T> {
    pub(super) fn new(queue: &'a Queue<T>, delivery: &[u8]) -> Complete<'a, T> {
        Complete { queue, delivery: delivery.to_vec(), result: None, retain: None }
    }

    /// The result of the work, of at most 65,536 bytes. It is encoded as payloads are.
    pub fn result<R: Encode>(mut self, result: &R) -> Self {
        self.result = Some(result.encode());
        self
    }

    /// How long the message is kept as done, instead of its own or the queue's time.
    pub fn retain(mut self, time: Duration) -> Self {
        self.retain = Some(time);
        self
    }

    /// Completes the delivery. False: the message was delivered again, or removed.
    ///
    /// If neither the message, the queue nor this command has a `RETAIN`, the result is lost.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the result is too large, [`Error::Encode`], and those of every command.
    pub fn send(self) -> Result<bool, Error> {
        let result = self.result.transpose()?;
        if let Some(result) = result.as_ref().filter(|result| result.len() > RESULT_BYTES) {
            return Err(too_large(result.len()));
        }
        let mut command = Command(command(self.queue.key(), &self.delivery, result.as_deref()));
        command.maybe("RETAIN", self.retain.map(millis));
        self.queue.count(&command).map(|completed| completed == 1)
    }
}

pub(crate) fn too_large(bytes: usize) -> Error {
    Error::TooLarge(format!("the result of {bytes} bytes exceeds the {RESULT_BYTES} bytes that a queue keeps"))
}

pub(crate) fn command(key: &[u8], delivery: &[u8], result: Option<&[u8]>) -> redis::Cmd {
    let mut command = Command::new("DQ.COMPLETE", key);
    command.word(delivery);
    command.maybe("RESULT", result);
    command.0
}

impl<T> Queue<T> {
    /// Acknowledges a delivery with a result: `queue.complete(&delivery).result(&sum).send()?`.
    pub fn complete(&self, delivery: impl AsRef<[u8]>) -> Complete<'_, T> {
        Complete::new(self, delivery.as_ref())
    }

    /// Waits until a message is done or dead, and returns it. A lost connection does not end the wait: the server is
    /// asked again until the time is over.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if the message is still to be completed when the time is over. [`Error::Gone`] as soon as the
    /// queue does not hold it: it was cancelled, completed without being kept, or never pushed. Also those of every command.
    pub fn wait(&self, id: impl AsRef<[u8]>, time: Duration) -> Result<Message<T>, Error> {
        let id = Id::from_bytes(id.as_ref().to_vec());
        let end = after(time);
        let mut backoff = Backoff::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let asked = self.ask_for(&id, left.min(SLICE));
            let left = end.saturating_duration_since(Instant::now());
            match asked {
                Ok(Some(message)) if matches!(message.state, State::Done | State::Dead) => return Ok(message),
                Ok(None) => return Err(Error::Gone(id)),
                Ok(Some(_)) if left.is_zero() => return Err(Error::TimedOut(id)),
                Ok(Some(_)) => backoff.reset(),
                Err(error) if error.is_transient() && !left.is_zero() => std::thread::sleep(backoff.next().min(left)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the message once it is done or dead, or in its present state after the time; `None` if the queue does not hold
    /// it.
    fn ask_for(&self, id: &Id, time: Duration) -> Result<Option<Message<T>>, Error> {
        let mut command = self.command("DQ.AWAIT");
        command.word(id.as_ref());
        // Zero would be for ever.
        if !time.is_zero() {
            command.option("BLOCK", millis(time));
        }
        let message = self.client.attempt(&command.0, Resend::Harmless, time)?;
        if let Some(message) = reply::optional(message, Message::read)? {
            return Ok(Some(message));
        }
        // Null is the answer both if the queue does not hold the message and if it is not completed yet.
        let mut command = self.command("DQ.GET");
        command.word(id.as_ref());
        reply::optional(self.client.attempt(&command.0, Resend::Harmless, Duration::ZERO)?, Message::read)
    }
}

impl<T: Encode> Queue<T> {
    /// Pushes a message, and waits for its result: request and reply. See [`Push::and_wait`].
    ///
    /// # Errors
    /// Those of [`Push::and_wait`].
    pub fn push_and_wait<R: Decode>(&self, payload: &T, time: Duration) -> Result<R, Error> {
        self.push(payload).and_wait(time)
    }
}

impl<T> Push<'_, T> {
    /// Pushes the message, and waits for its result: the value that its handler returns, or the result of its completion.
    ///
    /// The result is kept for as long as this may wait, and at least for a minute, unless [`Push::retain`] says otherwise.
    /// If the queue already has a message of the given id, this waits for its result, so a program that was restarted can
    /// send its request again. A request that nobody needs after the time should have a [`Push::ttl`].
    ///
    /// # Errors
    /// Those of [`Push::send`]; then [`Error::Failed`] if the message becomes dead, [`Error::TimedOut`], [`Error::Gone`], and
    /// [`Error::Decode`] if the result is not an `R`.
    pub fn and_wait<R: Decode>(mut self, time: Duration) -> Result<R, Error> {
        let end = after(time);
        let id = self.id.get_or_insert_with(Id::unique).clone();
        self.options.retain.get_or_insert(time.max(SHORTEST_RETAIN));
        let queue = self.queue;
        let (Pushed::New(_) | Pushed::Duplicate) = self.send()?;
        let message = queue.wait(&id, end.saturating_duration_since(Instant::now()))?;
        match message.state {
            State::Dead => Err(Error::Failed { id, reason: message.reason.unwrap_or_default(), error: message.error }),
            _ => message.result(),
        }
    }
}
