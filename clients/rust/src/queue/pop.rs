//! Popping messages.

use super::command::{millis, Command};
use super::id::{Id, Receipt};
use super::meta::Meta;
use super::Queue;
use crate::connect::Resend;
use crate::payload::Decode;
use crate::reply;
use crate::Error;
use redis::Value;
use std::marker::PhantomData;
use std::time::Duration;

/// A message that was delivered.
#[derive(Clone, Debug)]
pub struct Delivery<T> {
    /// The id of the message.
    pub id: Id,
    /// 1 on the first delivery.
    pub attempt: u32,
    /// Names this delivery in [`Queue::ack`] and similar methods. `None` if it was popped without a lease.
    pub receipt: Option<Receipt>,
    /// More of the message, if the pop asked for it.
    pub meta: Option<Meta>,
    bytes: Vec<u8>,
    of: PhantomData<fn() -> T>,
}

impl<T> Delivery<T> {
    /// The payload as the queue holds it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_parts(self) -> (Id, u32, Option<Receipt>, Vec<u8>, Option<Meta>) {
        (self.id, self.attempt, self.receipt, self.bytes, self.meta)
    }

    /// The receipt, or the id if there is none.
    pub(crate) fn name(&self) -> &[u8] {
        self.receipt.as_ref().map_or(self.id.as_ref(), AsRef::as_ref)
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
    /// The name by which this delivery is acknowledged.
    fn as_ref(&self) -> &[u8] {
        self.name()
    }
}

/// Reads the messages of a pop.
pub(crate) fn deliveries<T>(reply: Value) -> Result<Vec<Delivery<T>>, Error> {
    reply::list(reply)?.into_iter().map(delivery).collect()
}

fn delivery<T>(message: Value) -> Result<Delivery<T>, Error> {
    let mut parts = reply::list(message)?.into_iter();
    let mut next = || parts.next().ok_or_else(|| Error::Protocol("a message with too few parts".to_owned()));
    Ok(Delivery {
        id: Id::from_bytes(reply::bytes(next()?)?),
        bytes: reply::bytes(next()?)?,
        attempt: u32::try_from(reply::int(&next()?)?).unwrap_or(u32::MAX),
        receipt: reply::optional(next()?, reply::bytes)?.map(Receipt::from_bytes),
        meta: parts.next().map(Meta::read).transpose()?,
        of: PhantomData,
    })
}

/// The options of a pop.
#[derive(Clone, Debug)]
pub(super) struct PopOptions {
    pub count: u32,
    pub gather: Option<(u32, Duration)>,
    pub lease: Option<Duration>,
    pub block: Duration,
    pub no_ack: bool,
    pub meta: bool,
    pub consumer: Option<Vec<u8>>,
}

impl Default for PopOptions {
    fn default() -> PopOptions {
        PopOptions {
            count: 1,
            gather: None,
            lease: None,
            block: Duration::ZERO,
            no_ack: false,
            meta: false,
            consumer: None,
        }
    }
}

impl PopOptions {
    pub fn write(&self, command: &mut Command) {
        if self.count != 1 {
            command.option("COUNT", self.count);
        }
        if let Some((least, linger)) = self.gather {
            command.option("MIN", least);
            command.option("LINGER", millis(linger));
        }
        command.maybe("LEASE", self.lease.map(millis));
        if !self.block.is_zero() {
            command.option("BLOCK", millis(self.block));
        }
        if self.no_ack {
            command.word("NOACK");
        }
        if self.meta {
            command.word("META");
        }
        command.maybe("AS", self.consumer.as_deref());
    }
}

/// The methods that set the options of [`Pop`], [`PopAny`](super::PopAny) and [`AckPop`].
macro_rules! pop_options {
    () => {
        /// The most messages to deliver. 1 by default.
        pub fn count(mut self, count: u32) -> Self {
            self.options.count = count;
            self
        }

        /// Gathers messages: fewer than `least`, which is at most the count, are delivered only when the first has been
        /// due for `linger`.
        pub fn gather(mut self, least: u32, linger: Duration) -> Self {
            self.options.gather = Some((least, linger));
            self
        }

        /// How long these deliveries may take, instead of the message's or the queue's lease.
        pub fn lease(mut self, lease: Duration) -> Self {
            self.options.lease = Some(lease);
            self
        }

        /// Waits for up to this time until there is a message. Zero, the default: does not wait.
        pub fn block(mut self, time: Duration) -> Self {
            self.options.block = time;
            self
        }

        /// Tells more of each message: [`Delivery::meta`](crate::Delivery::meta) has its headers, its checkpoint and more.
        pub fn meta(mut self) -> Self {
            self.options.meta = true;
            self
        }
    };
}
pub(super) use pop_options;

/// The method that sets the option of pops without acks.
macro_rules! no_ack_option {
    () => {
        /// Removes the messages when they are delivered, so that each is delivered at most once.
        pub fn no_ack(mut self) -> Self {
            self.options.no_ack = true;
            self
        }

        /// The name of the consumer, which its deliveries bear: [`Queue::consumers`](crate::Queue::consumers) lists it.
        pub fn named(mut self, consumer: impl AsRef<[u8]>) -> Self {
            self.options.consumer = Some(consumer.as_ref().to_vec());
            self
        }
    };
}
pub(super) use no_ack_option;

/// A pop: options, and then [`Pop::one`] or [`Pop::all`].
#[must_use = "a pop does nothing until it is sent"]
#[derive(Debug)]
pub struct Pop<'a, T> {
    queue: &'a Queue<T>,
    options: PopOptions,
}

impl<'a, T> Pop<'a, T> {
    pub(super) fn new(queue: &'a Queue<T>) -> Pop<'a, T> {
        Pop { queue, options: PopOptions::default() }
    }

    pop_options!();
    no_ack_option!();

    /// Delivers one message, if there is one in time.
    ///
    /// # Errors
    /// [`Error::Lost`] if the connection is lost: a pop is not repeated, and messages that it may have delivered come
    /// back when their leases expire. Also those of every command.
    pub fn one(self) -> Result<Option<Delivery<T>>, Error> {
        Ok(self.count(1).all()?.pop())
    }

    /// Delivers up to [`Pop::count`] messages. The list is empty if there was none in time.
    ///
    /// # Errors
    /// As [`Pop::one`].
    pub fn all(self) -> Result<Vec<Delivery<T>>, Error> {
        let mut command = self.queue.command("DQ.POP");
        self.options.write(&mut command);
        deliveries(self.queue.client.answer(&command.0, Resend::Never, self.options.block)?.value)
    }
}

/// Acks, and a pop that follows them in the same command: options, and then [`AckPop::send`].
#[must_use = "nothing is acknowledged before it is sent"]
#[derive(Debug)]
pub struct AckPop<'a, T> {
    queue: &'a Queue<T>,
    receipts: Vec<Vec<u8>>,
    options: PopOptions,
}

impl<'a, T> AckPop<'a, T> {
    pub(super) fn new<R: AsRef<[u8]>>(queue: &'a Queue<T>, deliveries: impl IntoIterator<Item = R>) -> AckPop<'a, T> {
        let receipts = deliveries.into_iter().map(|delivery| delivery.as_ref().to_vec()).collect();
        AckPop { queue, receipts, options: PopOptions::default() }
    }

    pop_options!();

    /// Acknowledges the deliveries, and delivers up to [`AckPop::count`] messages. Returns how many messages were removed,
    /// and those that were delivered. The acks hold even if no message comes in time.
    ///
    /// # Errors
    /// [`Error::Lost`] if the connection is lost: the command is not repeated. Whether the acks were made is unknown then;
    /// [`Queue::ack_all`] makes them again without harm. Messages that it may have delivered come back when their leases
    /// expire. Also those of every command.
    pub fn send(self) -> Result<(u64, Vec<Delivery<T>>), Error> {
        if self.receipts.is_empty() {
            return Pop { queue: self.queue, options: self.options }.all().map(|messages| (0, messages));
        }
        let command = ack_and_pop(self.queue.key(), self.receipts.iter(), &self.options);
        acked(self.queue.client.answer(&command, Resend::Never, self.options.block)?.value)
    }
}

fn ack_and_pop<R: AsRef<[u8]>>(
    key: &[u8],
    receipts: impl ExactSizeIterator<Item = R>,
    options: &PopOptions,
) -> redis::Cmd {
    let mut command = Command::new("DQ.ACKPOP", key);
    command.word(receipts.len());
    receipts.for_each(|receipt| command.word(receipt.as_ref()));
    options.write(&mut command);
    command.0
}

/// Reads how many messages were acknowledged, and the messages of the pop that followed.
pub(crate) fn acked<T>(reply: Value) -> Result<(u64, Vec<Delivery<T>>), Error> {
    let mut parts = reply::list(reply)?.into_iter();
    let acked = reply::count(&parts.next().unwrap_or_default())?;
    Ok((acked, deliveries(parts.next().unwrap_or_default())?))
}

/// The pop of a worker, after the acks of these deliveries. It does not block.
pub(crate) fn after_acks<R: AsRef<[u8]>>(
    key: &[u8],
    receipts: impl ExactSizeIterator<Item = R>,
    count: u32,
    lease: Duration,
    meta: bool,
    consumer: &[u8],
) -> redis::Cmd {
    let consumer = Some(consumer.to_vec());
    ack_and_pop(key, receipts, &PopOptions { count, lease: Some(lease), meta, consumer, ..PopOptions::default() })
}

/// The pop of a worker.
pub(crate) fn command(
    key: &[u8],
    count: u32,
    lease: Duration,
    block: Duration,
    meta: bool,
    consumer: &[u8],
) -> redis::Cmd {
    let mut command = Command::new("DQ.POP", key);
    let consumer = Some(consumer.to_vec());
    PopOptions { count, gather: None, lease: Some(lease), block, no_ack: false, meta, consumer }.write(&mut command);
    command.0
}
