//! Popping from the first of several queues that has a message.

use super::command::Command;
use super::pop::{deliveries, no_ack_option, pop_options, Delivery, PopOptions};
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
    options: PopOptions,
}

impl Client {
    /// Delivers messages of the first of these queues that has any: `client.pop_any([&urgent, &bulk]).block(second).send()?`.
    pub fn pop_any<'a, T>(&'a self, queues: impl IntoIterator<Item = &'a Queue<T>>) -> PopAny<'a, T> {
        let queues = queues.into_iter().collect();
        PopAny { client: self, queues, options: PopOptions::default() }
    }
}

impl<T> PopAny<'_, T> {
    pop_options!();
    no_ack_option!();

    /// Delivers messages of one queue, and returns the index of that queue with them. `None` if there was none in time.
    ///
    /// # Errors
    /// As [`Pop::one`](super::Pop::one).
    #[allow(clippy::type_complexity, reason = "an index and messages, each of which is plain")]
    pub fn send(self) -> Result<Option<(usize, Vec<Delivery<T>>)>, Error> {
        if self.queues.is_empty() {
            return Ok(None);
        }
        let mut command = Command::new("DQ.MPOP", self.queues.len());
        self.queues.iter().for_each(|queue| command.word(queue.key()));
        self.options.write(&mut command);
        let answer = self.client.answer(&command.0, Resend::Never, self.options.block)?;
        let mut parts = reply::list(answer.value)?.into_iter();
        let (Some(key), Some(messages)) = (parts.next(), parts.next()) else { return Ok(None) };
        let key = reply::bytes(key)?;
        let place = self.queues.iter().position(|queue| queue.key() == key);
        let place = place.ok_or_else(|| Error::Protocol(format!("a pop of {}", String::from_utf8_lossy(&key))))?;
        Ok(Some((place, deliveries(messages)?)))
    }
}
