//! Batches: groups of messages that end with a message of their own.

use super::options::{message_options, once, Options, Parts, SetOption};
use super::Queue;
use crate::connect::Sent;
use crate::error::Error;
use crate::mode::{Async, Mode};
use crate::names::MessageId;
use crate::payload::Encode;
use crate::reply::reply;
use crate::request::Request;
use crate::time::millis;
use std::future::IntoFuture;
use std::time::{Duration, SystemTime};

/// One batch of a queue: what `Queue::batch` returns. Messages join it with `Push::batch`.
#[derive(Debug)]
pub struct Batch<T, M> {
    pub(super) queue: Queue<T, M>,
    pub(super) name: Vec<u8>,
}

impl<T: 'static, M: Mode> Batch<T, M> {
    /// The progress of the batch; `None` if it does not exist.
    pub fn info(&self) -> Sent<M, Option<BatchInfo>> {
        let command = self.queue.command("DQ.BATCHINFO").word(&self.name);
        self.queue.client.send(Request::harmless(command))
    }

    /// Removes the batch and its live members, so that nothing follows. Returns the number of messages removed. Sent
    /// only once.
    pub fn cancel(&self) -> Sent<M, u64> {
        let command = self.queue.command("DQ.BATCH").word(&self.name).word("CANCEL");
        self.queue.client.send(Request::once(command))
    }

    /// Declares the message that follows the last member. Replaces an earlier declaration.
    pub fn then(&self, payload: &T) -> Then<T, M>
    where
        T: Encode,
    {
        let command = |payload| self.queue.command("DQ.BATCH").word(&self.name).word("THEN").word(payload);
        Then { parts: Parts::new(&self.queue, payload.encode().map(command), once) }
    }
}

/// What follows a batch: options, and then `.await`, or [`Then::send`].
#[must_use = "nothing is done until it is sent"]
#[derive(Debug)]
pub struct Then<T, M, R = u64> {
    parts: Parts<T, M, R>,
}

impl<T: 'static, M: Mode, R: Send + 'static> Then<T, M, R> {
    /// Closes the batch. Returns the number of members left; if it is 0, the message was pushed at once. Sent only
    /// once, because the batch may have ended after a first execution, and a second one would begin another.
    ///
    /// The message has headers that say how the batch ended: `dq-batch`, `dq-batch-total`, `dq-batch-acked`,
    /// `dq-batch-dead`, `dq-batch-cancelled`.
    ///
    /// # Errors
    /// [`TooLarge`](crate::Error::TooLarge), [`Encode`](crate::Error::Encode); and those of every command.
    pub fn send(self) -> Sent<M, R> {
        self.parts.send()
    }
}

impl<T: 'static, R: Send + 'static> IntoFuture for Then<T, Async, R> {
    type Output = Result<R, Error>;
    type IntoFuture = Sent<Async, R>;

    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}

impl<T: 'static, M: Mode, R: Send + 'static> SetOption for Then<T, M, R> {
    fn options(&mut self) -> &mut Options {
        &mut self.parts.options
    }
}

impl<T: 'static, M: Mode> Then<T, M> {
    message_options!();

    /// The id of the message. If it is taken by then, the message gets a generated one.
    pub fn id(self, id: impl Into<MessageId>) -> Self {
        self.with("ID", id.into())
    }

    /// How long after the end of the batch the message is due.
    pub fn delay(self, delay: Duration) -> Self {
        self.with("DELAY", millis(delay))
    }
}

reply! {
    /// The progress of a batch.
    #[derive(Clone, PartialEq, Eq, Debug)]
    BatchInfo {
        /// All messages that have joined it.
        pub total: u64 = "total",
        /// Members that are still waiting or in flight.
        pub left: u64 = "left",
        /// Members that were acked, completed, delivered without a lease or forwarded.
        pub acked: u64 = "acked",
        /// Members that became dead.
        pub dead: u64 = "dead",
        /// Members that were cancelled, purged or replaced.
        pub cancelled: u64 = "cancelled",
        /// Whether [`Batch::then`] has closed it.
        pub closed: bool = "closed",
        /// Closed: the payload of the message that follows, as the queue holds it.
        pub then: Option<Vec<u8>> = "then",
        /// Closed: the id of that message, if one was chosen.
        pub then_id: Option<MessageId> = "then-id",
        /// When it began.
        pub created: SystemTime = "created",
    }
}
