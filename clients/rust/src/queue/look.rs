//! The methods of a queue that only read.

use super::{Group, GroupInfo, Info, Message, Pages, Queue, State, Stats};
use crate::connect::Sent;
use crate::mode::Mode;
use crate::reply::{self, Field};
use crate::request::{count, Request};
use crate::Error;
use redis::Value;
use std::time::SystemTime;

/// A consumer that holds messages, because it popped them under its name: see `Pop::named`.
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
            inflight: Field::read(next())?,
            oldest_delivery: Field::read(next())?,
        })
    }
}

impl<T: 'static, M: Mode> Queue<T, M> {
    /// How many messages are in a state; without one, how many are neither dead nor done.
    ///
    /// # Errors
    /// Those of every command.
    pub fn len(&self, state: Option<State>) -> Sent<M, u64> {
        self.len_of(state, None)
    }

    pub(super) fn len_of(&self, state: Option<State>, group: Option<&[u8]>) -> Sent<M, u64> {
        let command = self.command("DQ.LEN").words(state.map(State::as_str)).maybe("GROUP", group);
        self.client.send(Request::harmless(command, count))
    }

    /// A message with all its fields; `None` if there is none of this id.
    ///
    /// # Errors
    /// Those of every command.
    pub fn get(&self, id: impl AsRef<[u8]>) -> Sent<M, Option<Message<T>>> {
        self.client.send(Request::harmless(self.command("DQ.GET").word(id.as_ref()), Field::read))
    }

    /// The first messages of a state, in the order in which they will leave it; for the dead and the done, the newest.
    ///
    /// # Errors
    /// Those of every command.
    pub fn peek(&self, state: State, count: u32) -> Sent<M, Vec<Message<T>>> {
        self.peek_in(state, count, None)
    }

    pub(super) fn peek_in(&self, state: State, count: u32, group: Option<&[u8]>) -> Sent<M, Vec<Message<T>>> {
        let command = self.command("DQ.PEEK").word(state.as_str()).word("COUNT").word(count);
        self.client.send(Request::harmless(command.maybe("GROUP", group), Field::read))
    }

    /// All messages, page by page.
    pub fn scan(&self) -> Pages<Message<T>, M> {
        Pages::new(&self.client, self.command("DQ.SCAN"), Message::read)
    }

    /// One group of the queue.
    pub fn group(&self, name: impl AsRef<[u8]>) -> Group<T, M> {
        Group { queue: self.clone(), name: name.as_ref().to_vec() }
    }

    /// All groups, page by page.
    pub fn groups(&self) -> Pages<GroupInfo, M> {
        Pages::new(&self.client, self.command("DQ.GROUPS"), GroupInfo::read)
    }

    /// The consumers that hold messages now, page by page.
    pub fn consumers(&self) -> Pages<Consumer, M> {
        Pages::new(&self.client, self.command("DQ.CONSUMERS"), Consumer::read)
    }

    /// Counts, settings and totals; `None` if the queue does not exist.
    ///
    /// # Errors
    /// Those of every command.
    pub fn info(&self) -> Sent<M, Option<Info>> {
        self.client.send(self.info_request())
    }

    pub(crate) fn info_request(&self) -> Request<Option<Info>> {
        Request::harmless(self.command("DQ.INFO"), Field::read)
    }

    /// How late the queue delivers and how long consumers take; `None` if the queue does not exist.
    ///
    /// # Errors
    /// Those of every command.
    pub fn stats(&self) -> Sent<M, Option<Stats>> {
        self.client.send(Request::harmless(self.command("DQ.STATS"), Field::read))
    }
}
