//! Popping messages.

use super::id::{Id, Receipt};
use super::meta::Meta;
use super::options::{options, sent_by_await, value, Options};
use super::Queue;
use crate::connect::{Client, Sent};
use crate::mode::{Async, Mode};
use crate::payload::Decode;
use crate::reply::{self, Field};
use crate::request::{millis, Command, Request};
use crate::Error;
use redis::Value;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

/// A message that was delivered.
#[derive(Clone, Debug)]
pub struct Delivery<T> {
    /// The id of the message.
    pub id: Id,
    /// 1 on the first delivery.
    pub attempt: u32,
    /// Names this delivery in `Queue::ack` and similar methods. `None` if it was popped without a lease.
    pub receipt: Option<Receipt>,
    /// More of the message, if the pop asked for it.
    pub meta: Option<Meta>,
    pub(crate) bytes: Vec<u8>,
    of: PhantomData<fn() -> T>,
}

impl<T> Delivery<T> {
    /// The payload as the queue holds it.
    #[must_use]
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
        meta: parts.next().map(Field::read).transpose()?,
        of: PhantomData,
    })
}

/// Reads how many messages were acknowledged, and the messages of the pop that followed.
pub(crate) fn acked<T>(reply: Value) -> Result<(u64, Vec<Delivery<T>>), Error> {
    let mut parts = reply::list(reply)?.into_iter();
    let acked = reply::count(&parts.next().unwrap_or_default())?;
    Ok((acked, deliveries(parts.next().unwrap_or_default())?))
}

/// The methods that set the options of [`Pop`], [`PopAny`] and [`AckPop`].
macro_rules! pop_options {
    () => {
        options! {
            /// The most messages to deliver. 1 by default.
            count(count: u32) = "COUNT" count;
            /// How long these deliveries may take, instead of the message's or the queue's lease.
            lease(lease: Duration) = "LEASE" millis(lease);
            /// Delivers more of each message: [`Delivery::meta`] has its headers, its checkpoint and more.
            meta() = "META";
        }

        /// Gathers messages: fewer than `least`, which is at most the count, are delivered only when the first has been
        /// due for `linger`.
        pub fn gather(mut self, least: u32, linger: Duration) -> Self {
            self.options.set("MIN", value(least));
            self.options.set("LINGER", value(millis(linger)));
            self
        }

        /// Waits for up to this time until there is a message. Zero, the default: does not wait.
        pub fn block(mut self, time: Duration) -> Self {
            self.block = time;
            self.options.remove("BLOCK");
            if !time.is_zero() {
                self.options.set("BLOCK", value(millis(time)));
            }
            self
        }
    };
}

/// The methods that set the options of pops without acks.
macro_rules! plain_pop_options {
    () => {
        options! {
            /// Removes the messages when they are delivered, so that each is delivered at most once.
            no_ack() = "NOACK";
            /// The name of the consumer, which its deliveries bear: `Queue::consumers` lists it.
            named(consumer: impl AsRef<[u8]>) = "AS" consumer.as_ref();
        }
    };
}

/// A pop: options, and then [`Pop::one`] or [`Pop::all`].
#[must_use = "a pop does nothing until it is sent"]
#[derive(Debug)]
pub struct Pop<T, M> {
    queue: Queue<T, M>,
    options: Options,
    block: Duration,
}

impl<T: 'static, M: Mode> Queue<T, M> {
    /// Delivers messages under a lease: `queue.pop().block(second).one().await?`. A worker does this and handles the messages.
    pub fn pop(&self) -> Pop<T, M> {
        Pop { queue: self.clone(), options: Options::default(), block: Duration::ZERO }
    }

    /// Acknowledges deliveries and delivers the next messages in one command:
    /// `queue.ackpop([&delivery]).block(second).await?`.
    pub fn ackpop<R: AsRef<[u8]>>(&self, deliveries: impl IntoIterator<Item = R>) -> AckPop<T, M> {
        let receipts = deliveries.into_iter().map(|delivery| delivery.as_ref().to_vec()).collect();
        AckPop { queue: self.clone(), receipts, options: Options::default(), block: Duration::ZERO }
    }
}

impl<T: 'static, M: Mode> Pop<T, M> {
    pop_options!();
    plain_pop_options!();

    /// Delivers one message, if there is one in time.
    ///
    /// # Errors
    /// [`Error::Lost`] if the connection is lost: a pop is not repeated, and messages that it may have delivered come
    /// back when their leases expire. Also those of every command.
    pub fn one(self) -> Sent<M, Option<Delivery<T>>> {
        let (client, pop) = (self.queue.client.clone(), self.count(1));
        client.send(pop.request().map(|mut messages| Ok(messages.pop())))
    }

    /// Delivers up to [`Pop::count`] messages. The list is empty if there was none in time.
    ///
    /// # Errors
    /// As [`Pop::one`].
    pub fn all(self) -> Sent<M, Vec<Delivery<T>>> {
        let client = self.queue.client.clone();
        client.send(self.request())
    }

    fn request(self) -> Request<Vec<Delivery<T>>> {
        Request::once(self.options.write(self.queue.command("DQ.POP")), deliveries).waiting(self.block)
    }
}

/// Acks, and a pop that follows them in the same command: options, and then `.await`, or [`AckPop::send`].
#[must_use = "nothing is acknowledged before it is sent"]
#[derive(Debug)]
pub struct AckPop<T, M> {
    queue: Queue<T, M>,
    receipts: Vec<Vec<u8>>,
    options: Options,
    block: Duration,
}

impl<T: 'static, M: Mode> AckPop<T, M> {
    pop_options!();

    /// Acknowledges the deliveries, and delivers up to [`AckPop::count`] messages. Returns how many messages were removed,
    /// and those that were delivered. The acks hold even if no message comes in time.
    ///
    /// # Errors
    /// [`Error::Lost`] if the connection is lost: the command is not repeated. Whether the acks were made is unknown then;
    /// `Queue::ack_all` makes them again without harm. Messages that it may have delivered come back when their leases
    /// expire. Also those of every command.
    pub fn send(self) -> Sent<M, (u64, Vec<Delivery<T>>)> {
        let AckPop { queue, receipts, options, block } = self;
        if receipts.is_empty() {
            let pop = Request::once(options.write(queue.command("DQ.POP")), |reply| Ok((0, deliveries(reply)?)));
            return queue.client.send(pop.waiting(block));
        }
        let command = queue.command("DQ.ACKPOP").word(receipts.len()).words(receipts);
        queue.client.send(Request::once(options.write(command), acked).waiting(block))
    }
}

sent_by_await!(AckPop<T>, (u64, Vec<Delivery<T>>));

/// A pop from several queues: options, and then `.await`, or [`PopAny::send`].
///
/// In a cluster all queues must be in one slot: `{mail}:urgent` and `{mail}:bulk`. A worker serves queues of any slots, and
/// fairly.
#[must_use = "a pop does nothing until it is sent"]
#[derive(Debug)]
pub struct PopAny<T, M> {
    client: Client<M>,
    keys: Vec<Vec<u8>>,
    options: Options,
    block: Duration,
    of: PhantomData<fn() -> T>,
}

impl<M: Mode> Client<M> {
    /// Delivers messages of the first of these queues that has any: `client.pop_any([&urgent, &bulk]).block(second).await?`.
    pub fn pop_any<'q, T: 'static>(&self, queues: impl IntoIterator<Item = &'q Queue<T, M>>) -> PopAny<T, M> {
        let keys = queues.into_iter().map(|queue| queue.key().to_vec()).collect();
        PopAny { client: self.clone(), keys, options: Options::default(), block: Duration::ZERO, of: PhantomData }
    }
}

/// The index of a queue, and its messages.
type Found<T> = Option<(usize, Vec<Delivery<T>>)>;

impl<T: 'static, M: Mode> PopAny<T, M> {
    pop_options!();
    plain_pop_options!();

    /// Delivers messages of one queue, and returns the index of that queue with them. `None` if there was none in time.
    ///
    /// # Errors
    /// As [`Pop::one`].
    pub fn send(self) -> Sent<M, Found<T>> {
        let PopAny { client, keys, options, block, .. } = self;
        if keys.is_empty() {
            return client.send(Request::known(Ok(None)));
        }
        let command = Command::new("DQ.MPOP", keys.len()).words(&keys);
        let found = Request::once(options.write(command), |reply| {
            let mut parts = reply::list(reply)?.into_iter();
            let (Some(key), Some(messages)) = (parts.next(), parts.next()) else { return Ok(None) };
            Ok(Some((reply::bytes(key)?, deliveries(messages)?)))
        });
        let with_index = move |found: Option<(Vec<u8>, Vec<Delivery<T>>)>| {
            let Some((key, messages)) = found else { return Ok(None) };
            let index = keys.iter().position(|other| *other == key);
            let unknown = || Error::Protocol(format!("a pop of {}", String::from_utf8_lossy(&key)));
            Ok(Some((index.ok_or_else(unknown)?, messages)))
        };
        client.send(found.waiting(block).map(with_index))
    }
}

sent_by_await!(PopAny<T>, Found<T>);
