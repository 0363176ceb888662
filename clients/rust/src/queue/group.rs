//! Groups, whose messages are delivered in order, by default one at a time; and consumers, which hold messages.

use super::commands::commands;
use super::{Message, Queue, State};
use crate::connect::Sent;
use crate::mode::Mode;
use crate::reply::{read_as, row};
use crate::request::{millis, Request};
use redis::Value;
use std::time::{Duration, SystemTime};

/// One group of a queue: what `Queue::group` returns. Messages join it with `Push::group`.
#[derive(Debug)]
pub struct Group<T, M> {
    pub(super) queue: Queue<T, M>,
    pub(super) name: Vec<u8>,
}

impl<T: 'static, M: Mode> Group<T, M> {
    commands! { self, self.queue;
        /// How many messages of the group are in a state; without one, how many are neither dead nor done. Done messages belong
        /// to no group.
        harmless len(state: Option<State>) -> u64 = "DQ.LEN".words(state).word("GROUP").word(&self.name);
        /// The first messages of a state, in the order of the group.
        harmless peek(state: State, count: u32) -> Vec<Message<T>>
            = "DQ.PEEK".words([state]).word("COUNT").word(count).word("GROUP").word(&self.name);
        /// Removes messages of the group. See [`Queue::purge`].
        once purge(states: &[State], count: Option<u32>) -> u64
            = "DQ.PURGE".words(states).maybe("COUNT", count).word("GROUP").word(&self.name);
        /// Suspends the deliveries of the group, for a time or until [`Group::resume`], whether or not it has messages.
        ///
        /// # Errors
        /// [`Error::NoQueue`](crate::Error::NoQueue) if the queue does not exist.
        harmless pause(time: Option<Duration>) -> ()
            = "DQ.PAUSE".word("GROUP").word(&self.name).maybe("FOR", time.map(millis));
        /// Resumes the deliveries of the group.
        ///
        /// # Errors
        /// [`Error::NoQueue`](crate::Error::NoQueue) if the queue does not exist.
        harmless resume() -> () = "DQ.RESUME".word("GROUP").word(&self.name);
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

read_as! {
    GroupPause, value => match value {
        Value::Int(0) => Ok(GroupPause::Off),
        until => Ok(crate::reply::optional(until, SystemTime::read)?.map_or(GroupPause::Endless, GroupPause::Until)),
    };
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
