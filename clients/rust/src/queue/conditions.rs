//! Commands that take only messages that meet a condition, such as an age.

use super::command::{millis, unix_ms};
use super::message::State;
use super::Queue;
use crate::Error;
use std::time::{Duration, SystemTime};

/// Which dead messages [`Queue::redrive_dead`] makes live again, and when they are due.
///
/// ```
/// # use std::time::Duration;
/// let expired = dq_client::DeadFilter { reason: Some(dq_client::Reason::Expired), ..Default::default() };
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeadFilter {
    /// At most this many, the oldest first.
    pub count: Option<u32>,
    /// Only those that have been dead for at least this long.
    pub older: Option<Duration>,
    /// Only those that became dead for this reason.
    pub reason: Option<Reason>,
    /// They are due this long after now.
    pub delay: Duration,
}

/// Why a message is dead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Its last retry was spent.
    Retries,
    /// A client made it dead.
    Rejected,
    /// Its TTL ended.
    Expired,
}

impl Reason {
    pub(super) fn word(self) -> &'static str {
        match self {
            Reason::Retries => "RETRIES",
            Reason::Rejected => "REJECTED",
            Reason::Expired => "EXPIRED",
        }
    }
}

impl<T> Queue<T> {
    /// Makes the dead messages live again that meet all conditions. Returns how many. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn redrive_dead(&self, which: &DeadFilter) -> Result<u64, Error> {
        let mut command = self.command("DQ.REDRIVE");
        command.maybe("COUNT", which.count);
        command.maybe("OLDER", which.older.map(millis));
        command.maybe("REASON", which.reason.map(Reason::word));
        if !which.delay.is_zero() {
            command.option("DELAY", millis(which.delay));
        }
        self.count_once(&command)
    }

    /// [`Queue::promote`] for those messages that are due by this time.
    ///
    /// # Errors
    /// Those of every command.
    pub fn promote_until(&self, until: SystemTime, count: Option<u32>) -> Result<u64, Error> {
        let mut command = self.command("DQ.PROMOTE");
        command.maybe("COUNT", count);
        command.option("UNTIL", unix_ms(until));
        self.count_once(&command)
    }

    /// [`Queue::purge`] of messages that have been in their state for at least this long.
    ///
    /// # Errors
    /// Those of every command.
    pub fn purge_older(&self, older: Duration, states: &[State], count: Option<u32>) -> Result<u64, Error> {
        let mut command = self.purge_command(states, count);
        command.option("OLDER", millis(older));
        self.count_once(&command)
    }
}
