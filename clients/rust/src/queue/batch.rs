//! Batches: a message that follows when all messages of a batch have ended.

use super::id::Id;
use super::options::{message_options, options, sent_by_await, Options};
use super::Queue;
use crate::connect::Sent;
use crate::mode::{Async, Mode};
use crate::payload::Encode;
use crate::reply::{reply, Field};
use crate::request::{count, millis, Request};
use crate::Error;
use std::future::IntoFuture;
use std::time::{Duration, SystemTime};

/// One batch of a queue: what `Queue::batch` returns. Messages join it with `Push::batch`.
#[derive(Debug)]
pub struct Batch<T, M> {
    queue: Queue<T, M>,
    name: Vec<u8>,
}

impl<T: 'static, M: Mode> Queue<T, M> {
    /// The batch of this name, of 1 to 255 bytes.
    pub fn batch(&self, name: impl AsRef<[u8]>) -> Batch<T, M> {
        Batch { queue: self.clone(), name: name.as_ref().to_vec() }
    }
}

impl<T: 'static, M: Mode> Batch<T, M> {
    /// How far the batch is; `None` if there is none of this name.
    ///
    /// # Errors
    /// Those of every command.
    pub fn info(&self) -> Sent<M, Option<BatchInfo>> {
        let command = self.queue.command("DQ.BATCHINFO").word(&self.name);
        self.queue.client.send(Request::harmless(command, Field::read))
    }

    /// Removes the members that are not dead, and the batch, so that nothing follows. Returns how many messages that
    /// were. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn cancel(&self) -> Sent<M, u64> {
        self.queue.once(self.queue.command("DQ.BATCH").word(&self.name).word("CANCEL"))
    }

    /// Declares what follows once no member is left, in place of what was declared before.
    pub fn then(&self, payload: &T) -> Then<T, M>
    where
        T: Encode,
    {
        Then {
            queue: self.queue.clone(),
            name: self.name.clone(),
            payload: payload.encode(),
            options: Options::default(),
        }
    }
}

/// What follows a batch: options, and then `.await`, or [`Then::send`].
#[must_use = "nothing follows until it is sent"]
#[derive(Debug)]
pub struct Then<T, M> {
    queue: Queue<T, M>,
    name: Vec<u8>,
    payload: Result<Vec<u8>, Error>,
    options: Options,
}

impl<T: 'static, M: Mode> Then<T, M> {
    message_options!();

    options! {
        /// The id of the message. If it is taken by then, the message gets a generated one.
        id(id: impl AsRef<[u8]>) = "ID" id.as_ref();
        /// How long after the end of the batch the message is due.
        delay(delay: Duration) = "DELAY" millis(delay);
    }

    /// Closes the batch. Returns how many members are left; if it is 0, the message was pushed at once. Sent only once,
    /// because the batch may have ended after a first execution, and a second one would begin another.
    ///
    /// The message has headers that say how the batch ended: `dq-batch`, `dq-batch-total`, `dq-batch-acked`,
    /// `dq-batch-dead`, `dq-batch-cancelled`.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Encode`]; and those of every command.
    pub fn send(self) -> Sent<M, u64> {
        let Then { queue, name, payload, options } = self;
        queue.client.send(match payload {
            Ok(payload) => {
                let command = queue.command("DQ.BATCH").word(name).word("THEN").word(payload);
                Request::once(options.write(command), count)
            }
            Err(error) => Request::known(Err(error)),
        })
    }
}

sent_by_await!(Then<T>, u64);

reply! {
    /// How far a batch is.
    #[derive(Clone, PartialEq, Eq, Debug)]
    BatchInfo {
        /// How many messages have been members.
        pub total: u64 = "total",
        /// How many of them have not ended.
        pub left: u64 = "left",
        /// How many were acked, completed, delivered without a lease or forwarded.
        pub acked: u64 = "acked",
        /// How many became dead.
        pub dead: u64 = "dead",
        /// How many were cancelled, purged or replaced.
        pub cancelled: u64 = "cancelled",
        /// Whether it is declared what follows.
        pub closed: bool = "closed",
        /// Closed: the payload of the message that follows, as the queue holds it.
        pub then: Option<Vec<u8>> = "then",
        /// Closed: the id of that message, if one was chosen.
        pub then_id: Option<Id> = "then-id",
        /// When it began.
        pub created: SystemTime = "created",
    }
}
