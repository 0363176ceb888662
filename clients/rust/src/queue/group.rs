//! Groups: messages that are delivered in order, by default one at a time.

use super::message::{Message, State};
use super::Queue;
use crate::connect::Sent;
use crate::mode::Mode;
use crate::reply::{self, Field};
use crate::request::millis;
use crate::Error;
use redis::Value;
use std::time::{Duration, SystemTime};

/// One group of a queue: what `Queue::group` returns. Messages join it with `Push::group`.
#[derive(Debug)]
pub struct Group<T, M> {
    pub(super) queue: Queue<T, M>,
    pub(super) name: Vec<u8>,
}

impl<T: 'static, M: Mode> Group<T, M> {
    /// How many messages of the group are in a state; without one, how many are neither dead nor done. Done messages belong
    /// to no group.
    ///
    /// # Errors
    /// Those of every command.
    pub fn len(&self, state: Option<State>) -> Sent<M, u64> {
        self.queue.len_of(state, Some(&self.name))
    }

    /// The first messages of a state, in the order of the group.
    ///
    /// # Errors
    /// Those of every command.
    pub fn peek(&self, state: State, count: u32) -> Sent<M, Vec<Message<T>>> {
        self.queue.peek_in(state, count, Some(&self.name))
    }

    /// Removes messages of the group. See [`Queue::purge`].
    ///
    /// # Errors
    /// Those of every command.
    pub fn purge(&self, states: &[State], count: Option<u32>) -> Sent<M, u64> {
        self.queue.once(self.queue.purge_command(states, count).word("GROUP").word(&self.name))
    }

    /// Suspends the deliveries of the group, for a time or until [`Group::resume`], whether or not it has messages.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if the queue does not exist.
    pub fn pause(&self, time: Option<Duration>) -> Sent<M, ()> {
        let command = self.queue.command("DQ.PAUSE").word("GROUP").word(&self.name);
        self.queue.tell(command.maybe("FOR", time.map(millis)))
    }

    /// Resumes the deliveries of the group.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if the queue does not exist.
    pub fn resume(&self) -> Sent<M, ()> {
        self.queue.tell(self.queue.command("DQ.RESUME").word("GROUP").word(&self.name))
    }
}

/// Whether a group is paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GroupPause {
    /// It is not.
    #[default]
    Off,
    /// It is, until this instant.
    Until(SystemTime),
    /// It is, until it is resumed.
    Endless,
}

/// The counts of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GroupInfo {
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

impl GroupInfo {
    pub(super) fn read(reply: Value) -> Result<GroupInfo, Error> {
        let mut parts = reply::list(reply)?.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        Ok(GroupInfo {
            name: reply::bytes(next())?,
            waiting: Field::read(next())?,
            occupied: Field::read(next())?,
            oldest_due: Field::read(next())?,
            pause: match next() {
                Value::Int(0) => GroupPause::Off,
                until => <Option<_>>::read(until)?.map_or(GroupPause::Endless, GroupPause::Until),
            },
            next_delivery: Field::read(next())?,
        })
    }
}
