//! Done messages: completing a delivery with a result, and waiting for it.

use super::options::{Options, Parts, SetOption};
use super::{Message, Queue, State};
use crate::connect::{Backoff, Core, Sent};
use crate::error::Error;
use crate::mode::{Async, Mode};
use crate::names::MessageId;
use crate::payload::Encode;
use crate::reply::Field;
use crate::request::{Answer, Command, Request, Resend};
use crate::time::{after, millis};
use redis::Value;
use std::future::IntoFuture;
use std::time::{Duration, Instant};

/// The largest result that a queue keeps.
pub(crate) const RESULT_BYTES: usize = 65_536;
/// How long one command waits. Then it is sent again, so that a dead server is noticed.
const SLICE: Duration = Duration::from_secs(5);
/// The shortest time to keep a result, because the client that waits for it may have to reconnect.
pub(super) const SHORTEST_RETAIN: Duration = Duration::from_secs(60);

/// An acknowledgement with a result: options, and then `.await`, or [`Complete::send`].
#[must_use = "nothing is done until it is sent"]
#[derive(Debug)]
pub struct Complete<T, M, R = bool> {
    parts: Parts<T, M, R>,
}

impl<T: 'static, M: Mode, R: Send + 'static> Complete<T, M, R> {
    /// Completes the delivery. False: the message was delivered again, or removed. If the command was repeated after a
    /// lost connection, its first execution may have completed the message: then this is true.
    ///
    /// If neither the message, the queue nor this command has a `RETAIN`, the result is lost.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the result is too large, [`Error::Encode`], and those of every command.
    pub fn send(self) -> Sent<M, R> {
        self.parts.send()
    }
}

impl<T: 'static, R: Send + 'static> IntoFuture for Complete<T, Async, R> {
    type Output = Result<R, Error>;
    type IntoFuture = Sent<Async, R>;

    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}

impl<T: 'static, M: Mode, R: Send + 'static> SetOption for Complete<T, M, R> {
    fn options(&mut self) -> &mut Options {
        &mut self.parts.options
    }
}

impl<T: 'static, M: Mode> Complete<T, M> {
    /// How long the message is kept as done, instead of its own or the queue's time.
    pub fn retain(self, time: Duration) -> Self {
        self.with("RETAIN", millis(time))
    }

    /// The result of the work, of at most 65,536 bytes. It is encoded as payloads are.
    pub fn result<R: Encode>(mut self, result: &R) -> Self {
        match result.encode() {
            Ok(bytes) if bytes.len() <= RESULT_BYTES => return self.with("RESULT", bytes),
            Ok(bytes) => self.parts.command = Err(too_large(bytes.len())),
            Err(error) => self.parts.command = Err(error),
        }
        self
    }
}

/// A command that completes a delivery. Null is no failure after it was repeated: the first execution may have counted.
pub(super) fn completing(command: Command) -> Request<bool> {
    let read = |answer: Answer| bool::read(answer.reply?).map(|counted| counted || answer.repeated);
    Request::new(command, Resend::Harmless, read)
}

pub(crate) fn too_large(bytes: usize) -> Error {
    Error::TooLarge(format!("the result of {bytes} bytes exceeds the {RESULT_BYTES} bytes that a queue keeps"))
}

impl<T: 'static, M: Mode> Queue<T, M> {
    /// Acknowledges a delivery with a result: `queue.complete(&delivery).result(&sum).await?`.
    pub fn complete(&self, delivery: impl AsRef<[u8]>) -> Complete<T, M> {
        let command = self.command("DQ.COMPLETE").word(delivery.as_ref());
        Complete { parts: Parts::new(self, Ok(command), |command, options| completing(options.write(command))) }
    }

    /// Waits until a message is done or dead, and returns it. A lost connection does not end the wait: the server is
    /// asked again until the time is over.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if the message is still to be completed when the time is over. [`Error::Gone`] as soon as
    /// the queue does not hold it: it was cancelled, completed without being kept, or never pushed. Also those of every
    /// command.
    pub fn wait(&self, id: impl Into<MessageId>, time: Duration) -> Sent<M, Message<T>> {
        let (queue, id) = (self.clone(), id.into());
        self.client.run(|core| async move { queue.wait_for(&core, id, time).await })
    }

    pub(super) async fn wait_for(&self, core: &Core, id: MessageId, time: Duration) -> Result<Message<T>, Error> {
        let end = after(time);
        let mut backoff = Backoff::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let asked = self.ask_for(core, &id, left.min(SLICE)).await;
            let left = end.saturating_duration_since(Instant::now());
            match asked {
                Ok(Some(message)) if matches!(message.state, State::Done | State::Dead) => return Ok(message),
                Ok(None) => return Err(Error::Gone(id)),
                Ok(Some(_)) if left.is_zero() => return Err(Error::TimedOut(id)),
                Ok(Some(_)) => backoff.reset(),
                Err(error) if error.is_transient() && !left.is_zero() => {
                    tokio::time::sleep(backoff.next().min(left)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the message once it is done or dead, or in its present state after the time; `None` if the queue does
    /// not hold it.
    async fn ask_for(&self, core: &Core, id: &MessageId, time: Duration) -> Result<Option<Message<T>>, Error> {
        // Zero would be for ever.
        let block = Some(time).filter(|time| !time.is_zero()).map(millis);
        let command = self.command("DQ.AWAIT").word(id).maybe("BLOCK", block);
        let message = core.attempt(&command.0, Resend::Harmless, time).await?;
        if message != Value::Nil {
            return Field::read(message).map(Some);
        }
        // Null is the answer both if the queue does not hold the message and if it is not completed yet.
        let command = self.command("DQ.GET").word(id);
        Field::read(core.attempt(&command.0, Resend::Harmless, Duration::ZERO).await?)
    }
}
