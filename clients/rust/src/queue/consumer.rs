//! Consumers with names: which of them hold messages.

use super::command::time_of;
use super::Queue;
use crate::connect::Resend;
use crate::reply;
use crate::Error;
use redis::Value;
use std::collections::VecDeque;
use std::time::SystemTime;

/// How many consumers each page looks at.
const PAGE: u32 = 100;

/// A consumer that holds messages, because it popped them under its name: see [`Pop::named`](super::Pop::named).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Consumer {
    /// The name.
    pub name: Vec<u8>,
    /// How many messages it holds.
    pub inflight: u64,
    /// When the oldest of these deliveries began.
    pub oldest_delivery: SystemTime,
}

impl Consumer {
    fn read(reply: Value) -> Result<Consumer, Error> {
        let mut parts = reply::list(reply)?.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        Ok(Consumer {
            name: reply::bytes(next())?,
            inflight: reply::count(&next())?,
            oldest_delivery: reply::count(&next()).map(time_of)?,
        })
    }
}

/// An iterator over the consumers that hold messages of a queue, in no defined order.
///
/// A consumer that holds messages from the beginning to the end is returned exactly once. Ends after the first error.
#[derive(Debug)]
pub struct Consumers<'a, T> {
    queue: &'a Queue<T>,
    page: VecDeque<Consumer>,
    /// `None`: there is no further page.
    cursor: Option<Vec<u8>>,
}

impl<'a, T> Consumers<'a, T> {
    pub(super) fn new(queue: &'a Queue<T>) -> Consumers<'a, T> {
        Consumers { queue, page: VecDeque::new(), cursor: Some(b"0".to_vec()) }
    }

    fn next_page(&mut self, cursor: Vec<u8>) -> Result<(), Error> {
        let mut command = self.queue.command("DQ.CONSUMERS");
        command.word(cursor);
        command.option("COUNT", PAGE);
        let reply = self.queue.answer(&command, Resend::Harmless).map_err(|failure| failure.error)?.value;
        let consumers;
        (self.cursor, consumers) = reply::page(reply)?;
        self.page = consumers.into_iter().map(Consumer::read).collect::<Result<_, _>>()?;
        Ok(())
    }
}

impl<T> Iterator for Consumers<'_, T> {
    type Item = Result<Consumer, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(consumer) = self.page.pop_front() {
                return Some(Ok(consumer));
            }
            let cursor = self.cursor.take()?;
            if let Err(error) = self.next_page(cursor) {
                return Some(Err(error));
            }
        }
    }
}

impl<T> Queue<T> {
    /// The consumers that hold messages now.
    pub fn consumers(&self) -> Consumers<'_, T> {
        Consumers::new(self)
    }

    /// Takes from a consumer that is gone the messages that it holds, or the `count` oldest deliveries of them, as if their
    /// leases had just ended. Returns how many. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn release(&self, consumer: impl AsRef<[u8]>, count: Option<u32>) -> Result<u64, Error> {
        let mut command = self.command("DQ.RELEASE");
        command.word(consumer.as_ref());
        command.maybe("COUNT", count);
        self.count_once(&command)
    }

    /// [`Queue::release`] without counting the attempts, for a consumer that was stopped before it could give them back.
    ///
    /// # Errors
    /// Those of every command.
    pub fn release_uncounted(&self, consumer: impl AsRef<[u8]>, count: Option<u32>) -> Result<u64, Error> {
        let mut command = self.command("DQ.RELEASE");
        command.word(consumer.as_ref());
        command.maybe("COUNT", count);
        command.word("NOCOUNT");
        self.count_once(&command)
    }
}
