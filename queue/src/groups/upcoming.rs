//! The messages that the next deliveries would take, in their order, without taking them.
//!
//! A delivery changes which message of a group is its head, and the group's place in the round. This is followed for
//! the groups that it concerns, beside the orders, which stay as they are.

use super::super::id::Sequence;
use super::super::messages::Messages;
use super::super::order::Key;
use super::super::time::UnixMs;
use super::super::waiting::Waiting;
use super::{place_in_round, turn_at, GroupId, Standing};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
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

/// An iterator over the messages that would be delivered one after the other.
pub(crate) struct Upcoming<'a> {
    standing: &'a Standing,
    messages: &'a Messages,
    now: UnixMs,
    ungrouped: Peekable<Box<dyn Iterator<Item = (i8, Key)> + 'a>>,
    /// The heads as they stand.
    heads: Peekable<Box<dyn Iterator<Item = (i8, Key)> + 'a>>,
    /// The messages that would be heads after the deliveries so far.
    next: BinaryHeap<Reverse<Place>>,
    /// The last turn that would have been given.
    last: u64,
    /// The turn that the messages without a group would have had.
    ungrouped_turn: u64,
}

impl<'a> Upcoming<'a> {
    /// What is delivered from `now` on.
    pub fn new(standing: &'a Standing, ungrouped: &'a Waiting, messages: &'a Messages, now: UnixMs) -> Upcoming<'a> {
        let ungrouped: Box<dyn Iterator<Item = (i8, Key)> + 'a> = Box::new(ungrouped.iter_due(now));
        Upcoming {
            standing,
            messages,
            now,
            ungrouped: ungrouped.peekable(),
            heads: standing.iter_heads(now).peekable(),
            next: BinaryHeap::new(),
            last: messages.last_turn().max(turn_at(now)),
            ungrouped_turn: messages.turn(None),
        }
    }

    /// The place of a message whose group, or the messages without one, had its last turn at `turn`.
    fn place(&self, priority: i8, key: Key, turn: u64) -> Place {
        let due = key.time();
        let time = if self.standing.by_turn() { place_in_round(due, turn) } else { due.as_ms() };
        Place { priority: Reverse(priority), time, sequence: key.sequence(), due }
    }
}

impl Iterator for Upcoming<'_> {
    type Item = Sequence;

    fn next(&mut self) -> Option<Sequence> {
        let ungrouped = self.ungrouped.peek().copied();
        let ungrouped = ungrouped.map(|(priority, key)| self.place(priority, key, self.ungrouped_turn));
        let group_of = |sequence: Sequence| Some(self.messages.group(self.messages.locate(sequence)?)).flatten();
        let head = self.heads.peek().copied().and_then(|(_, key)| {
            let id = group_of(key.sequence())?;
            let head = self.standing.slot(id)?.head?;
            Some(self.place(head.priority, head.key, self.messages.turn(Some(id))))
        });
        let again = self.next.peek().map(|Reverse(place)| *place);
        let first = [ungrouped, head, again].into_iter().flatten().min()?;
        self.last = self.last.saturating_add(1);
        if Some(first) == ungrouped {
            self.ungrouped.next();
            self.ungrouped_turn = self.last;
            return Some(first.sequence);
        }
        let id: Option<GroupId> = group_of(first.sequence);
        if Some(first) == again {
            self.next.pop();
        } else {
            self.heads.next();
        }
        let after = Key::at(first.due, first.sequence);
        let open = id.and_then(|id| self.standing.slot(id)?.open_after(after)).filter(|key| key.time() <= self.now);
        if let Some(key) = open {
            let place = self.place(self.messages.priority_of(key.sequence()), key, self.last);
            self.next.push(Reverse(place));
        }
        Some(first.sequence)
    }
}
