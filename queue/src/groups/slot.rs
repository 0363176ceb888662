//! Where the messages of one group stand.

use super::line::Line;
use super::turns::Turn;
use crate::record::StateKind;
use crate::sorted_set::{Key, OrderedKeys};
use crate::time::UnixMs;

/// The messages of one group. Waiting messages stand under (due, sequence), and are ordered by it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Open messages that were never delivered: as many of the first ones as the group has room for.
    pub admitted: Line,
    /// The blocked messages: the others that were never delivered. All of them come after the admitted ones.
    pub parked: OrderedKeys,
    /// Messages that wait for a retry. They occupy the group and are open.
    pub retries: OrderedKeys,
    /// Messages in flight, by (deadline, sequence).
    pub leased: Line,
    /// Dead messages, by (died, sequence).
    pub dead: OrderedKeys,
    /// The first open message, which stands in the delivery order.
    pub head: Option<Head>,
    /// Messages that a pop has taken and that occupy the group until it is complete, or until they are leased.
    pub taken: u32,
    /// Whether the slot belongs to a group.
    pub in_use: bool,
    /// Whether the group is counted among those that have a message that is not dead.
    pub counted: bool,
}

/// The head of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub priority: i8,
    pub key: Key,
    /// When its group's turn comes, if groups take turns.
    pub turn: u64,
}

impl Head {
    /// Its key in the order of turns.
    pub fn turn_key(&self) -> Key<Turn> {
        Key::new(Turn(self.turn), self.key.sequence())
    }
}

impl Slot {
    /// How many messages occupy the group.
    pub fn occupied(&self) -> usize {
        self.retries.len() + self.leased.len() + self.taken as usize
    }

    /// The number of waiting messages.
    pub fn waiting(&self) -> usize {
        self.admitted.len() + self.parked.len() + self.retries.len()
    }

    /// Whether the group has a message that is not dead.
    pub fn is_live(&self) -> bool {
        !self.admitted.is_empty() || !self.leased.is_empty() || !self.retries.is_empty() || !self.parked.is_empty()
    }

    /// Whether no message stands here.
    pub fn is_vacant(&self) -> bool {
        !self.is_live() && self.dead.is_empty() && self.taken == 0
    }

    /// The first open message.
    pub fn first_open(&self) -> Option<Key> {
        match (self.admitted.first(), self.retries.first()) {
            (Some(admitted), Some(retry)) => Some(admitted.min(retry)),
            (admitted, retry) => admitted.or(retry),
        }
    }

    /// The first message behind `key` that was never delivered, open or not; the first of all if it is `None`.
    pub fn fresh_after(&self, key: Option<Key>) -> Option<Key> {
        match key {
            None => self.admitted.first().or_else(|| self.parked.first()),
            Some(key) => self.admitted.first_after(key).or_else(|| self.parked.first_after(key)),
        }
    }

    /// The number of waiting messages that are due by `now`.
    pub fn ready(&self, now: UnixMs) -> usize {
        let end = Key::end_of(now);
        self.admitted.rank(end) + self.parked.rank(end) + self.retries.rank(end)
    }

    /// The first `count` messages that stand in a state, in the order in which they leave it; dead messages are
    /// returned newest first.
    pub fn first_in(&self, kind: StateKind, now: UnixMs, count: usize) -> Vec<Key> {
        let end = Key::end_of(now);
        match kind {
            StateKind::InFlight => self.leased.iter_after(None).take(count).collect(),
            StateKind::Dead => self.dead.iter_backwards().take(count).collect(),
            // A done message belongs to no group.
            StateKind::Done => Vec::new(),
            StateKind::Delayed => merged(count, |keys| match keys {
                Keys::Admitted => self.admitted.iter_after(Some(end)).take(count).collect(),
                Keys::Parked => self.parked.iter_after(Some(end)).take(count).collect(),
                Keys::Retries => self.retries.iter_after(Some(end)).take(count).collect(),
            }),
            StateKind::Ready => {
                let is_due = |key: &Key| *key <= end;
                merged(count, |keys| match keys {
                    Keys::Admitted => self.admitted.iter_after(None).take_while(is_due).take(count).collect(),
                    Keys::Parked => self.parked.iter_after(None).take_while(is_due).take(count).collect(),
                    Keys::Retries => self.retries.iter_after(None).take_while(is_due).take(count).collect(),
                })
            }
        }
    }

    /// [`OrderedKeys::overhead_bytes`] of all orders. O(1).
    pub fn overhead_bytes(&self) -> i64 {
        let [parked, retries, dead] = [&self.parked, &self.retries, &self.dead].map(OrderedKeys::overhead_bytes);
        self.admitted.overhead_bytes() + self.leased.overhead_bytes() + parked + retries + dead
    }
}

/// The three orders of waiting messages.
#[derive(Clone, Copy)]
enum Keys {
    Admitted,
    Parked,
    Retries,
}

/// The first `count` keys of the three orders, in order.
fn merged(count: usize, of: impl Fn(Keys) -> Vec<Key>) -> Vec<Key> {
    let mut all = [Keys::Admitted, Keys::Parked, Keys::Retries].map(of).concat();
    all.sort_unstable();
    all.truncate(count);
    all
}
