//! Batches: a message that follows when all messages of a batch have ended.

use super::command::{millis, Command};
use super::headers::Headers;
use super::id::Id;
use super::message::time;
use super::Queue;
use crate::payload::Encode;
use crate::reply::{self, Fields};
use crate::Error;
use redis::Value;
use std::fmt;
use std::time::{Duration, SystemTime};

/// One batch of a queue: what [`Queue::batch`] returns. Messages join it with [`Push::batch`](super::Push::batch).
#[derive(Debug)]
pub struct Batch<'a, T> {
    queue: &'a Queue<T>,
    name: Vec<u8>,
}

impl<T> Queue<T> {
    /// The batch of this name, of 1 to 255 bytes.
    pub fn batch(&self, name: impl AsRef<[u8]>) -> Batch<'_, T> {
        Batch { queue: self, name: name.as_ref().to_vec() }
    }
}

impl<'a, T> Batch<'a, T> {
    /// How far the batch is; `None` if there is none of this name.
    ///
    /// # Errors
    /// Those of every command.
    pub fn info(&self) -> Result<Option<BatchInfo>, Error> {
        let mut command = self.queue.command("DQ.BATCHINFO");
        command.word(&self.name);
        reply::optional(self.queue.harmless(&command)?, BatchInfo::read)
    }

    /// Removes the members that are not dead, and the batch, so that nothing follows. Returns how many messages that
    /// were. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn cancel(&self) -> Result<u64, Error> {
        let mut command = self.queue.command("DQ.BATCH");
        command.word(&self.name);
        command.word("CANCEL");
        self.queue.count_once(&command)
    }

    /// Says what follows once no member is left, in place of what was said before.
    pub fn then(&self, payload: &T) -> Then<'a, T>
    where
        T: Encode,
    {
        let mut command = self.queue.command("DQ.BATCH");
        command.word(&self.name);
        Then { queue: self.queue, command, payload: payload.encode(), headers: Headers::default() }
    }
}

/// What follows a batch: options, and then [`Then::send`].
#[must_use = "nothing follows until it is sent"]
pub struct Then<'a, T> {
    queue: &'a Queue<T>,
    command: Command,
    payload: Result<Vec<u8>, Error>,
    headers: Headers,
}

impl<T> fmt::Debug for Then<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Then").field("queue", self.queue).finish_non_exhaustive()
    }
}

impl<T> Then<'_, T> {
    /// The id of the message. If it is taken by then, the message gets a generated one.
    pub fn id(mut self, id: impl AsRef<[u8]>) -> Self {
        self.command.option("ID", id.as_ref());
        self
    }

    /// How long after the end of the batch the message is due.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.command.option("DELAY", millis(delay));
        self
    }

    /// Among ready messages, those of a higher priority are delivered first.
    pub fn priority(mut self, priority: i8) -> Self {
        self.command.option("PRIORITY", priority);
        self
    }

    /// The most redeliveries after the first delivery, instead of the queue's; -1: no limit.
    pub fn retries(mut self, retries: i32) -> Self {
        self.command.option("RETRIES", retries);
        self
    }

    /// How long each delivery may take, instead of the queue's lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.command.option("LEASE", millis(lease));
        self
    }

    /// The group.
    pub fn group(mut self, name: impl AsRef<[u8]>) -> Self {
        self.command.option("GROUP", name.as_ref());
        self
    }

    /// Adds a header in addition to those that say how the batch ended: `dq-batch`, `dq-batch-total`, `dq-batch-acked`,
    /// `dq-batch-dead`, `dq-batch-cancelled`.
    pub fn header(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.headers.set(name, value);
        self
    }

    /// Closes the batch. Returns how many members are left; if it is 0, the message was pushed at once. Sent only once,
    /// because the batch may have ended after a first execution, and a second one would begin another.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Encode`]; and those of every command.
    pub fn send(mut self) -> Result<u64, Error> {
        self.command.option("THEN", self.payload?);
        self.headers.write(&mut self.command);
        self.queue.count_once(&self.command)
    }
}

/// How far a batch is.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BatchInfo {
    /// How many messages have been members.
    pub total: u64,
    /// How many of them have not ended.
    pub left: u64,
    /// How many were acked, completed, delivered without a lease or forwarded.
    pub acked: u64,
    /// How many became dead.
    pub dead: u64,
    /// How many were cancelled, purged or replaced.
    pub cancelled: u64,
    /// Whether it is said what follows.
    pub closed: bool,
    /// Closed: the payload of the message that follows, as the queue holds it.
    pub then: Option<Vec<u8>>,
    /// Closed: the id of that message, if one was chosen.
    pub then_id: Option<Id>,
    /// When it began.
    pub created: SystemTime,
}

impl BatchInfo {
    fn read(value: Value) -> Result<BatchInfo, Error> {
        let mut fields = Fields::from(value)?;
        Ok(BatchInfo {
            total: fields.count("total")?,
            left: fields.count("left")?,
            acked: fields.count("acked")?,
            dead: fields.count("dead")?,
            cancelled: fields.count("cancelled")?,
            closed: fields.count("closed")? != 0,
            created: time(fields.int("created")?),
            then: fields.take("then").map(reply::bytes).transpose()?,
            then_id: fields.take("then-id").map(reply::bytes).transpose()?.map(Id::from_bytes),
        })
    }
}
