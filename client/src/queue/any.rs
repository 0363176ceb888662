//! Popping from the first of several queues that has a message.

use super::command::millis;
use super::pop::{deliveries, Delivery};
use super::Queue;
use crate::connect::{Client, Resend};
use crate::reply;
use crate::Error;
use std::time::Duration;

/// A pop from several queues: options, and then [`PopAny::send`].
///
/// In a cluster all queues must be in one slot: `{mail}:urgent` and `{mail}:bulk`. A [`Worker`](crate::Worker) serves queues
/// of any slots, and fairly.
#[must_use = "a pop does nothing until it is sent"]
#[derive(Debug)]
pub struct PopAny<'a, T> {
    client: &'a Client,
    queues: Vec<&'a Queue<T>>,
    count: u32,
    lease: Option<Duration>,
    block: Duration,
    no_ack: bool,
}

impl Client {
    /// Delivers messages of the first of these queues that has any: `client.pop_any([&urgent, &bulk]).block(second).send()?`.
    pub fn pop_any<'a, T>(&'a self, queues: impl IntoIterator<Item = &'a Queue<T>>) -> PopAny<'a, T> {
        let queues = queues.into_iter().collect();
        PopAny { client: self, queues, count: 1, lease: None, block: Duration::ZERO, no_ack: false }
    }
}

impl<T> PopAny<'_, T> {
    /// The most messages to deliver. 1 by default.
    pub fn count(mut self, count: u32) -> Self {
        self.count = count;
        self
    }

    /// How long these deliveries may take, instead of the message's or the queue's lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Waits for up to this time until there is a message. Zero, the default: does not wait.
    pub fn block(mut self, time: Duration) -> Self {
        self.block = time;
        self
    }

    /// Removes the messages when they are delivered, so that each is delivered at most once.
    pub fn no_ack(mut self) -> Self {
        self.no_ack = true;
        self
    }

    /// Delivers messages of one queue, whose place among the given ones comes with them. `None`: there was none in time.
    ///
    /// # Errors
    /// As [`Pop::one`](super::Pop::one).
    #[allow(clippy::type_complexity, reason = "a place and messages, of which each is plain")]
    pub fn send(self) -> Result<Option<(usize, Vec<Delivery<T>>)>, Error> {
        if self.queues.is_empty() {
            return Ok(None);
        }
        let mut command = redis::cmd("DQ.MPOP");
        command.arg(self.queues.len());
        for queue in &self.queues {
            command.arg(queue.key());
        }
        if self.count != 1 {
            command.arg("COUNT").arg(self.count);
        }
        if let Some(lease) = self.lease {
            command.arg("LEASE").arg(millis(lease));
        }
        if !self.block.is_zero() {
            command.arg("BLOCK").arg(millis(self.block));
        }
        if self.no_ack {
            command.arg("NOACK");
        }
        let answer = self.client.answer(&command, Resend::Never, self.block)?;
        let mut parts = reply::list(answer.value)?.into_iter();
        let (Some(key), Some(messages)) = (parts.next(), parts.next()) else { return Ok(None) };
        let key = reply::bytes(key)?;
        let place = self.queues.iter().position(|queue| queue.key() == key);
        let place = place.ok_or_else(|| Error::Protocol(format!("a pop of {}", String::from_utf8_lossy(&key))))?;
        Ok(Some((place, deliveries(messages)?)))
    }
}
