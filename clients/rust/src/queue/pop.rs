//! Popping messages.

use super::options::{once, Options, Parts, SetOption};
use super::{Headers, Queue};
use crate::connect::{Client, Sent};
use crate::error::Error;
use crate::mode::{Async, Mode};
use crate::names::{MessageId, QueueName, Receipt};
use crate::payload::Decode;
use crate::reply::{reply, row};
use crate::request::Command;
use crate::time::millis;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};

row! {
    /// A message that was delivered.
    #[derive(Clone, Debug)]
    Delivery<T> {
        /// The id of the message.
        pub id: MessageId,
        pub(crate) bytes: Vec<u8>,
        /// 1 on the first delivery.
        pub attempt: u32,
        /// Names this delivery in `Queue::ack` and similar methods. `None` if it was popped without a lease.
        pub receipt: Option<Receipt>,
        /// More of the message, if the pop asked for it.
        pub meta: Option<Meta>,
        of: PhantomData<fn() -> T>,
    }
}

reply! {
    /// The details of a delivered message, which [`Pop::meta`] asks for.
    #[derive(Clone, PartialEq, Eq, Debug)]
    Meta {
        /// When it was pushed.
        pub created: SystemTime = "created",
        /// When it was due.
        pub due: SystemTime = "due",
        /// The end of the lease, unless it was popped without one.
        pub deadline: Option<SystemTime> = "deadline",
        /// Among ready messages, a higher priority is delivered first.
        pub priority: i8 = "priority",
        /// The group.
        pub group: Option<String> = "group",
        /// The batch.
        pub batch: Option<String> = "batch",
        /// The headers.
        pub headers: Headers = "headers",
        /// The checkpoint that a consumer has stored with `Queue::checkpoint`.
        pub checkpoint: Option<Vec<u8>> = "checkpoint",
        /// The text of the last nack that had one.
        pub error: Option<String> = "error",
    }
}

impl<T> Delivery<T> {
    /// The payload as the queue holds it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: Decode> Delivery<T> {
    /// The payload.
    ///
    /// # Errors
    /// [`Error::Decode`] if the bytes are not a `T`. The message stays in flight.
    pub fn payload(&self) -> Result<T, Error> {
        T::decode(&self.bytes)
    }
}

impl<T> AsRef<[u8]> for Delivery<T> {
    /// The name by which this delivery is acknowledged: the receipt, or the id if there is none.
    fn as_ref(&self) -> &[u8] {
        self.receipt.as_ref().map_or(self.id.as_ref(), AsRef::as_ref)
    }
}

/// A pop: options, and then [`Pop::one`] or [`Pop::all`].
#[must_use = "nothing is done until it is sent"]
#[derive(Debug)]
pub struct Pop<T, M, R = Vec<Delivery<T>>> {
    parts: Parts<T, M, R>,
}

impl<T: 'static, M: Mode, R: Send + 'static> Pop<T, M, R> {
    /// Delivers up to [`Pop::count`] messages, if there are any in time.
    ///
    /// # Errors
    /// As [`Pop::one`].
    pub fn send(self) -> Sent<M, R> {
        self.parts.send()
    }
}

impl<T: 'static, R: Send + 'static> IntoFuture for Pop<T, Async, R> {
    type Output = Result<R, Error>;
    type IntoFuture = Sent<Async, R>;

    fn into_future(self) -> Self::IntoFuture {
        self.send()
    }
}

impl<T: 'static, M: Mode, R: Send + 'static> SetOption for Pop<T, M, R> {
    fn options(&mut self) -> &mut Options {
        &mut self.parts.options
    }
}

/// Acks, and a pop that follows them in the same command: options, and then `.await`, or [`Pop::send`]. Returns how
/// many messages were removed, and those that were delivered. The acks hold even if no message comes in time.
///
/// If the connection is lost, it is unknown whether the acks were made; `Queue::ack_all` makes them again without harm.
pub type AckPop<T, M> = Pop<T, M, (u64, Vec<Delivery<T>>)>;

/// A pop from several queues: options, and then `.await`, or [`Pop::send`]. Returns the name of a queue with its
/// messages; `None` if there was none in time.
///
/// In a cluster all queues must be in one slot: `{mail}:urgent` and `{mail}:bulk`. A worker serves queues of any slots,
/// and fairly.
pub type PopAny<T, M> = Pop<T, M, Option<(QueueName, Vec<Delivery<T>>)>>;

impl<T: 'static, M: Mode, R: Send + 'static> Pop<T, M, R> {
    /// The most messages to deliver. 1 by default.
    pub fn count(self, count: u32) -> Self {
        self.with("COUNT", count)
    }

    /// How long these deliveries may take, instead of the message's or the queue's lease.
    pub fn lease(self, lease: Duration) -> Self {
        self.with("LEASE", millis(lease))
    }

    /// Delivers more of each message: [`Delivery::meta`] has its headers, its checkpoint and more.
    pub fn meta(self) -> Self {
        self.flag("META")
    }

    /// Gathers messages: fewer than this, which is at most the count, are delivered only after [`Pop::linger`].
    pub fn gather(self, least: u32) -> Self {
        self.with("MIN", least)
    }

    /// For how long the first of fewer messages than [`Pop::gather`] must have been due.
    pub fn linger(self, time: Duration) -> Self {
        self.with("LINGER", millis(time))
    }

    /// Removes the messages at their delivery, so that each is delivered at most once. Cannot be combined with acks.
    pub fn no_ack(self) -> Self {
        self.flag("NOACK")
    }

    /// Takes the messages under this name of a consumer, which `Queue::consumers` lists.
    pub fn named(self, consumer: impl AsRef<[u8]>) -> Self {
        self.with("AS", consumer.as_ref())
    }

    /// Waits for up to this time until there is a message. Zero, the default: does not wait.
    pub fn block(mut self, time: Duration) -> Self {
        self.parts.options.wait = time;
        self
    }
}

impl<T: 'static, M: Mode> Pop<T, M> {
    /// Delivers one message, if there is one in time.
    ///
    /// # Errors
    /// [`Error::Lost`] if the connection is lost: a pop is not repeated, and messages that it may have delivered come
    /// back when their leases expire. Also those of every command.
    pub fn one(self) -> Sent<M, Option<Delivery<T>>> {
        let client = self.parts.queue.client.clone();
        client.send(self.count(1).parts.request().map(|mut messages| Ok(messages.pop())))
    }

    /// Delivers up to [`Pop::count`] messages. The list is empty if there was none in time.
    ///
    /// # Errors
    /// As [`Pop::one`].
    pub fn all(self) -> Sent<M, Vec<Delivery<T>>> {
        self.send()
    }
}

impl<T: 'static, M: Mode> Queue<T, M> {
    /// Delivers messages under a lease: `queue.pop().block(second).one().await?`. A worker does this and handles the
    /// messages.
    pub fn pop(&self) -> Pop<T, M> {
        Pop { parts: Parts::new(self, Ok(self.command("DQ.POP")), once) }
    }

    /// Acknowledges deliveries and delivers the next messages in one command:
    /// `queue.ackpop([&delivery]).block(second).await?`.
    pub fn ackpop<R: AsRef<[u8]>>(&self, deliveries: impl IntoIterator<Item = R>) -> AckPop<T, M> {
        let mut receipts = deliveries.into_iter().peekable();
        if receipts.peek().is_some() {
            let command = self.command("DQ.ACKPOP").counted(receipts);
            return Pop { parts: Parts::new(self, Ok(command), once) };
        }
        let parts = Parts::new(self, Ok(self.command("DQ.POP")), |command, options| {
            once(command, options).map(|messages| Ok((0, messages)))
        });
        Pop { parts }
    }
}

impl<M: Mode> Client<M> {
    /// Delivers messages of the first of these queues that has any:
    /// `client.pop_any([&urgent, &bulk]).block(second).await?`.
    pub fn pop_any<'q, T: 'static>(&self, queues: impl IntoIterator<Item = &'q Queue<T, M>>) -> PopAny<T, M> {
        let names: Vec<&QueueName> = queues.into_iter().map(Queue::name).collect();
        let first = self.queue(names.first().map_or(&b""[..], |name| name.as_bytes()));
        let command = Command::new("DQ.MPOP", names.len()).names(names);
        Pop { parts: Parts::new(&first, Ok(command), once) }
    }
}
