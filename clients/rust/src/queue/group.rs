//! Groups: messages that are delivered in order, by default one at a time.

use super::command::{millis, time_of};
use super::message::{Message, State};
use super::Queue;
use crate::connect::Resend;
use crate::reply;
use crate::Error;
use redis::Value;
use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

/// How many groups each page looks at.
const PAGE: u32 = 100;

/// One group of a queue: what [`Queue::group`] returns. Messages join it with [`Push::group`](super::Push::group).
#[derive(Debug)]
pub struct Group<'a, T> {
    queue: &'a Queue<T>,
    name: Vec<u8>,
}

impl<'a, T> Group<'a, T> {
    pub(super) fn new(queue: &'a Queue<T>, name: &[u8]) -> Group<'a, T> {
        Group { queue, name: name.to_vec() }
    }

    /// How many messages of the group are in a state; without one, how many are neither dead nor done. Done messages belong
    /// to no group.
    ///
    /// # Errors
    /// Those of every command.
    pub fn len(&self, state: Option<State>) -> Result<u64, Error> {
        self.queue.len_of(state, Some(&self.name))
    }

    /// The first messages of a state, in the order of the group.
    ///
    /// # Errors
    /// Those of every command.
    pub fn peek(&self, state: State, count: u32) -> Result<Vec<Message<T>>, Error> {
        self.queue.peek_in(state, count, Some(&self.name))
    }

    /// Removes messages of the group. See [`Queue::purge`].
    ///
    /// # Errors
    /// Those of every command.
    pub fn purge(&self, states: &[State], count: Option<u32>) -> Result<u64, Error> {
        let mut command = self.queue.purge_command(states, count);
        command.option("GROUP", &*self.name);
        self.queue.count_once(&command)
    }

    /// Suspends the deliveries of the group, for a time or until [`Group::resume`], whether or not it has messages.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if the queue does not exist.
    pub fn pause(&self, time: Option<Duration>) -> Result<(), Error> {
        let mut command = self.queue.command("DQ.PAUSE");
        command.option("GROUP", &*self.name);
        command.maybe("FOR", time.map(millis));
        self.queue.harmless(&command).map(drop)
    }

    /// Resumes the deliveries of the group.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if the queue does not exist.
    pub fn resume(&self) -> Result<(), Error> {
        let mut command = self.queue.command("DQ.RESUME");
        command.option("GROUP", &*self.name);
        self.queue.harmless(&command).map(drop)
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
    fn read(reply: Value) -> Result<GroupInfo, Error> {
        let mut parts = reply::list(reply)?.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        let instant = |at| reply::optional(at, |at| reply::count(&at).map(time_of));
        Ok(GroupInfo {
            name: reply::bytes(next())?,
            waiting: reply::count(&next())?,
            occupied: reply::count(&next())?,
            oldest_due: instant(next())?,
            pause: match next() {
                Value::Int(0) => GroupPause::Off,
                until => instant(until)?.map_or(GroupPause::Endless, GroupPause::Until),
            },
            next_delivery: instant(next())?,
        })
    }
}

/// An iterator over the groups of a queue, in no defined order.
///
/// A group that has messages from the beginning to the end is returned exactly once. Ends after the first error.
#[derive(Debug)]
pub struct Groups<'a, T> {
    queue: &'a Queue<T>,
    page: VecDeque<GroupInfo>,
    /// `None`: there is no further page.
    cursor: Option<Vec<u8>>,
}

impl<'a, T> Groups<'a, T> {
    pub(super) fn new(queue: &'a Queue<T>) -> Groups<'a, T> {
        Groups { queue, page: VecDeque::new(), cursor: Some(b"0".to_vec()) }
    }

    fn next_page(&mut self, cursor: Vec<u8>) -> Result<(), Error> {
        let mut command = self.queue.command("DQ.GROUPS");
        command.word(cursor);
        command.option("COUNT", PAGE);
        let reply = self.queue.answer(&command, Resend::Harmless).map_err(|failure| failure.error)?.value;
        let groups;
        (self.cursor, groups) = reply::page(reply)?;
        self.page = groups.into_iter().map(GroupInfo::read).collect::<Result<_, _>>()?;
        Ok(())
    }
}

impl<T> Iterator for Groups<'_, T> {
    type Item = Result<GroupInfo, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(group) = self.page.pop_front() {
                return Some(Ok(group));
            }
            let cursor = self.cursor.take()?;
            if let Err(error) = self.next_page(cursor) {
                return Some(Err(error));
            }
        }
    }
}
