//! Groups, whose messages are delivered in order, by default one at a time; and consumers, which hold messages.

use super::{Message, Queue, State};
use crate::connect::Sent;
use crate::error::Error;
use crate::mode::Mode;
use crate::reply::{optional, row, Field};
use crate::request::Request;
use crate::time::millis;
use redis::Value;
use std::time::{Duration, SystemTime};

/// One group of a queue: what `Queue::group` returns. Messages join it with `Push::group`.
#[derive(Debug)]
pub struct Group<T, M> {
    pub(super) queue: Queue<T, M>,
    pub(super) name: Vec<u8>,
}

impl<T: 'static, M: Mode> Group<T, M> {
    /// How many messages of the group are in a state; without one, how many are neither dead nor done. Done messages
    /// belong to no group.
    pub fn len(&self, state: Option<State>) -> Sent<M, u64> {
        let command = self.queue.command("DQ.LEN").words(state).word("GROUP").word(&self.name);
        self.queue.client.send(Request::harmless(command))
    }

    /// The first messages of a state, in the order of the group.
    pub fn peek(&self, state: State, count: u32) -> Sent<M, Vec<Message<T>>> {
        let command =
            self.queue.command("DQ.PEEK").words([state]).word("COUNT").word(count).word("GROUP").word(&self.name);
        self.queue.client.send(Request::harmless(command))
    }

    /// Removes messages of the group. See [`Queue::purge`].
    pub fn purge(&self, states: &[State], count: Option<u32>) -> Sent<M, u64> {
        let command = self.queue.command("DQ.PURGE").words(states).maybe("COUNT", count).word("GROUP").word(&self.name);
        self.queue.client.send(Request::once(command))
    }

    /// Suspends the deliveries of the group, for a time or until [`Group::resume`], whether or not it has messages.
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if the queue does not exist.
    pub fn pause(&self, time: Option<Duration>) -> Sent<M, ()> {
        let command = self.queue.command("DQ.PAUSE").word("GROUP").word(&self.name).maybe("FOR", time.map(millis));
        self.queue.client.send(Request::harmless(command))
    }

    /// Resumes the deliveries of the group.
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if the queue does not exist.
    pub fn resume(&self) -> Sent<M, ()> {
        let command = self.queue.command("DQ.RESUME").word("GROUP").word(&self.name);
        self.queue.client.send(Request::harmless(command))
    }
}

/// Whether a group is paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GroupPause {
    /// Not paused.
    #[default]
    Off,
    /// Paused until this instant.
    Until(SystemTime),
    /// Paused until it is resumed.
    Endless,
}

impl Field for GroupPause {
    fn read(value: Value) -> Result<Self, Error> {
        match value {
            Value::Int(0) => Ok(GroupPause::Off),
            until => Ok(optional(until, SystemTime::read)?.map_or(GroupPause::Endless, GroupPause::Until)),
        }
    }
}

row! {
    /// The counts of a group.
    #[derive(Clone, PartialEq, Eq, Debug)]
    GroupInfo {
        /// The name.
        pub name: Vec<u8>,
        /// Messages that wait, whether or not they are due.
        pub waiting: u64,
        /// Messages that are in flight or wait for a retry.
        pub occupied: u64,
        /// The earliest due time of the waiting messages.
        pub oldest_due: Option<SystemTime>,
        /// Whether it is paused.
        pub pause: GroupPause,
        /// When its rate allows a delivery again; `None` if it does now.
        pub next_delivery: Option<SystemTime>,
    }
}

row! {
    /// A consumer that holds messages, because it popped them under its name: see `Pop::named`.
    #[derive(Clone, PartialEq, Eq, Debug)]
    Consumer {
        /// The name.
        pub name: Vec<u8>,
        /// How many messages it holds.
        pub inflight: u64,
        /// When the oldest of these deliveries began.
        pub oldest_delivery: SystemTime,
    }
}
