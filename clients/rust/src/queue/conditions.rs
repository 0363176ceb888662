//! Commands that take only messages that meet a condition, such as an age.

use super::{Queue, State};
use crate::connect::Sent;
use crate::mode::Mode;
use crate::request::{millis, unix_ms};
use std::time::{Duration, SystemTime};

/// Which dead messages `Queue::redrive_dead` makes live again, and when they are due.
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

impl<T: 'static, M: Mode> Queue<T, M> {
    /// Makes the dead messages live again that meet all conditions: all of them by `&DeadFilter::default()`. Returns how
    /// many. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn redrive_dead(&self, which: &DeadFilter) -> Sent<M, u64> {
        let command = self.command("DQ.REDRIVE").maybe("COUNT", which.count).maybe("OLDER", which.older.map(millis));
        let delay = Some(which.delay).filter(|delay| !delay.is_zero());
        self.once(command.maybe("REASON", which.reason.map(Reason::word)).maybe("DELAY", delay.map(millis)))
    }

    /// Makes dead messages live again: the oldest ones, or all of them, after a delay. Returns how many. Sent only once.
    ///
    /// # Errors
    /// Those of every command.
    pub fn redrive_oldest(&self, count: Option<u32>, delay: Duration) -> Sent<M, u64> {
        self.redrive_dead(&DeadFilter { count, delay, ..DeadFilter::default() })
    }

    /// [`Queue::promote`] for those messages that are due by this time.
    ///
    /// # Errors
    /// Those of every command.
    pub fn promote_until(&self, until: SystemTime, count: Option<u32>) -> Sent<M, u64> {
        self.once(self.command("DQ.PROMOTE").maybe("COUNT", count).word("UNTIL").word(unix_ms(until)))
    }

    /// [`Queue::purge`] of messages that have been in their state for at least this long.
    ///
    /// # Errors
    /// Those of every command.
    pub fn purge_older(&self, older: Duration, states: &[State], count: Option<u32>) -> Sent<M, u64> {
        self.once(self.purge_command(states, count).word("OLDER").word(millis(older)))
    }
}
