//! The messages that the next deliveries would take, in their order, without taking them.
//!
//! A delivery changes which message of a group is its head, and the group's place in the round. The iterator tracks
//! this for the groups concerned and leaves the orders unchanged. Within one pop, all messages that were taken occupy
//! their groups until the pop is complete; after a single pop without a lease, the message makes room for the next one.

use super::{place_in_round, GroupId, GroupView};
use crate::id::{first_tick, Sequence};
use crate::messages::Messages;
use crate::sorted_set::Key;
use crate::time::UnixMs;
use crate::waiting::Waiting;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::Peekable;

/// The place of a message in the order of delivery; the smallest is delivered first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    priority: Reverse<i8>,
    /// The due time, or the turn.
    time: u64,
    sequence: Sequence,
    due: UnixMs,
}

/// How the messages are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pops {
    /// By one pop.
    One,
    /// By a pop without a lease for each, so that each message has left its group before the next one is delivered.
    Single,
}

/// What was taken of one group.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// The last message that had never been delivered, and the last retry.
    last_fresh: Option<Key>,
    last_retry: Option<Key>,
    fresh: usize,
    retries: usize,
}

/// An iterator over the messages that would be delivered, in order.
pub(crate) struct Upcoming<'a> {
    pops: Pops,
    /// What was taken of the groups that have more than their head.
    taken: BTreeMap<GroupId, Taken>,
    view: &'a GroupView,
    messages: &'a Messages,
    now: UnixMs,
    ungrouped: Peekable<Box<dyn Iterator<Item = (i8, Key)> + 'a>>,
    /// The current heads.
    heads: Peekable<Box<dyn Iterator<Item = Sequence> + 'a>>,
    /// The messages that would be heads after the deliveries so far.
    next: BinaryHeap<Reverse<Place>>,
    /// The last turn that would have been given.
    last: u64,
    /// The turn that the messages without a group would have had; `None` before the first one.
    ungrouped_turn: Option<u64>,
}

impl<'a> Upcoming<'a> {
    /// What is delivered from `now` on.
    pub fn new(
        view: &'a GroupView,
        ungrouped: &'a Waiting,
        messages: &'a Messages,
        now: UnixMs,
        pops: Pops,
    ) -> Upcoming<'a> {
        let ungrouped: Box<dyn Iterator<Item = (i8, Key)> + 'a> = Box::new(ungrouped.iter_due(now));
        Upcoming {
            pops,
            taken: BTreeMap::new(),
            view,
            messages,
            now,
            ungrouped: ungrouped.peekable(),
            heads: view.iter_heads(now).peekable(),
            next: BinaryHeap::new(),
            last: messages.last_turn().max(first_tick(now)),
            ungrouped_turn: None,
        }
    }

    /// The place of the first message of a group, or of the messages without one. `turn` is the turn that it would have
    /// had from the iterator so far; `None` if it has not been served yet.
    fn place(&self, priority: i8, key: Key, id: Option<GroupId>, turn: Option<u64>) -> Place {
        let due = key.time();
        let time = match turn {
            _ if !self.view.by_turn() => due.as_ms(),
            Some(turn) => place_in_round(due, turn),
            None => self.messages.place_in_round(id, due),
        };
        Place { priority: Reverse(priority), time, sequence: key.sequence(), due }
    }

    /// Takes the head `key` of a group, and returns the head that the group has then.
    fn open_after(&mut self, id: GroupId, key: Key) -> Option<Key> {
        let slot = self.view.slot(id)?;
        let taken = self.taken.entry(id).or_default();
        if slot.retries.contains(key) {
            taken.last_retry = Some(key);
            taken.retries += 1;
        } else {
            taken.last_fresh = Some(key);
            taken.fresh += 1;
        }
        let occupied = match self.pops {
            Pops::One => slot.occupied() + taken.fresh,
            Pops::Single => slot.occupied() - taken.retries,
        };
        let gate = self.messages.room_of_group(id, self.now);
        if gate.is_some_and(|gate| taken.fresh + taken.retries >= gate.count) {
            return None;
        }
        let has_room = occupied < self.view.limit();
        let fresh = slot.fresh_after(taken.last_fresh).filter(|_| has_room);
        let retry = match taken.last_retry {
            None => slot.retries.first(),
            Some(last) => slot.retries.first_after(last),
        };
        [fresh, retry].into_iter().flatten().min()
    }
}

impl Iterator for Upcoming<'_> {
    type Item = Sequence;

    fn next(&mut self) -> Option<Sequence> {
        let ungrouped = self.ungrouped.peek().copied();
        let ungrouped = ungrouped.map(|(priority, key)| self.place(priority, key, None, self.ungrouped_turn));
        let group_of = |sequence: Sequence| Some(self.messages.group(self.messages.locate(sequence)?)).flatten();
        let head = self.heads.peek().copied().and_then(|sequence| {
            let id = group_of(sequence)?;
            let head = self.view.slot(id)?.head?;
            Some(self.place(head.priority, head.key, Some(id), None))
        });
        let again = self.next.peek().map(|Reverse(place)| *place);
        let first = [ungrouped, head, again].into_iter().flatten().min()?;
        self.last = self.last.saturating_add(1);
        if Some(first) == ungrouped {
            self.ungrouped.next();
            self.ungrouped_turn = Some(self.last);
            return Some(first.sequence);
        }
        let id: Option<GroupId> = group_of(first.sequence);
        if Some(first) == again {
            self.next.pop();
        } else {
            self.heads.next();
        }
        let open = id.and_then(|id| self.open_after(id, Key::at(first.due, first.sequence)));
        if let Some(key) = open.filter(|key| key.time() <= self.now) {
            let place = self.place(self.messages.priority_of(key.sequence()), key, id, Some(self.last));
            self.next.push(Reverse(place));
        }
        Some(first.sequence)
    }
}
