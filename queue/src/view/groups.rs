//! The part of the view that concerns messages of groups, which stand in the delivery order of their groups.

use super::{payload_left, Stand, View};
use crate::groups::{GroupLimits, GroupView, Pops, Upcoming};
use crate::id::{GroupId, Sequence};
use crate::messages::Messages;
use crate::record::{Record, StateKind};
use crate::sorted_set::Key;
use crate::store::{At, Placement};
use crate::time::UnixMs;
use crate::waiting::Waiting;
use std::cmp::Reverse;

impl View {
    /// The orders of the messages of groups; allocated if the queue has groups.
    fn group_view(&mut self, messages: &Messages) -> Option<&mut GroupView> {
        if self.groups.is_none() {
            let view = GroupView::new(messages.group_limits()?, self.waiting.boundary());
            self.groups = Some(Box::new(view));
        }
        self.groups.as_deref_mut()
    }

    /// Completes a change of a group.
    pub fn settle(&mut self, messages: &Messages, id: GroupId) {
        let Some(groups) = &mut self.groups else { return };
        groups.settle(messages, id);
        if groups.is_vacant() {
            self.groups = None;
        }
    }

    /// Settles all groups, after their gates have changed. O(groups × log n).
    pub fn settle_all(&mut self, messages: &Messages) {
        self.groups.as_mut().into_iter().for_each(|groups| groups.settle_all(messages));
    }

    /// Whether time has given a group more room by `now`, which was not made use of yet. O(1).
    #[inline]
    pub fn has_opening(&self, now: UnixMs) -> bool {
        self.groups.as_ref().is_some_and(|groups| groups.first_opening().is_some_and(|opens| opens <= now))
    }

    /// Makes use of the room that time has given a group first. Returns whether there was such a group. O(log n), and
    /// O(log n) for each message that is opened.
    pub fn open_first(&mut self, messages: &Messages, now: UnixMs) -> bool {
        self.groups.as_mut().is_some_and(|groups| groups.open_first(messages, now))
    }

    /// [`View::place`] for a message of a group.
    #[cold]
    pub(super) fn place_in(&mut self, id: GroupId, messages: &mut Messages, at: At, record: &Record, now: UnixMs) {
        self.enter_in(id, messages, at, record, now);
        self.settle(messages, id);
    }

    /// [`View::unplace`] for a message of a group.
    #[cold]
    pub(super) fn unplace_from(&mut self, id: GroupId, messages: &Messages, at: At, record: &Record) {
        self.leave_from(id, messages, at, record);
        self.settle(messages, id);
    }

    pub(super) fn enter_in(&mut self, id: GroupId, messages: &mut Messages, at: At, record: &Record, now: UnixMs) {
        let stand = self.enter(messages, at, record, now);
        let Some(groups) = self.group_view(messages) else { return };
        match stand {
            Stand::Waiting => groups.enter_waiting(id, record),
            Stand::InFlight(key) => groups.enter_leased(id, key),
            Stand::Dead(key) | Stand::Failed(key) => groups.enter_dead(id, key),
        }
    }

    pub(super) fn leave_from(&mut self, id: GroupId, messages: &Messages, at: At, record: &Record) {
        let placement = self.leave(messages, at, record);
        let Some(groups) = &mut self.groups else { return };
        match placement {
            Placement::Waiting => groups.leave_waiting(id, record),
            Placement::InFlight => record.lease_key().into_iter().for_each(|key| groups.leave_leased(id, key)),
            Placement::Dead => record.death_key().into_iter().for_each(|key| groups.leave_dead(id, key)),
        }
    }

    /// [`View::take_dead`] for a message of a group.
    pub(super) fn take_dead_of_group(&mut self, messages: &mut Messages, key: Key) {
        if self.groups.is_none() {
            return;
        }
        let Some(id) = messages.find_sequence(key.sequence()).and_then(|at| messages.group(at)) else { return };
        if let Some(groups) = &mut self.groups {
            groups.leave_dead(id, key);
            self.settle(messages, id);
        }
    }
}

/// Delivery.
impl View {
    /// [`View::take_next`] for a queue with groups: the first of the heads and of the messages without a group.
    #[cold]
    pub(super) fn take_next_of_all(&mut self, messages: &mut Messages, now: UnixMs) -> Option<(At, Record)> {
        let groups = self.groups.as_mut()?;
        let ungrouped = self.waiting.first_due(now);
        let head = groups.first(now);
        let ungrouped_place = ungrouped.map(|(priority, key)| {
            let time = groups.place_of_ungrouped(key.time(), messages);
            (Reverse(priority), time, key.sequence())
        });
        let head_place = head.map(|(priority, place, sequence)| (Reverse(priority), place, sequence));
        let ungrouped_first = match (ungrouped_place, head_place) {
            (Some(ungrouped), Some(head)) => ungrouped < head,
            (ungrouped, _) => ungrouped.is_some(),
        };
        if ungrouped_first {
            let (at, record) = messages.locate_record(self.waiting.pop(now)?)?;
            self.forget_rest(messages, at, &record);
            return Some((at, record));
        }
        let (.., sequence) = head?;
        let (at, record) = messages.locate_record(sequence)?;
        let id = messages.group(at)?;
        messages.record_delivery(id, now);
        groups.take(messages, id, &record);
        self.forget_rest(messages, at, &record);
        Some((at, record))
    }

    /// Removes a message that was taken for a delivery from the remaining orders and counts.
    fn forget_rest(&mut self, messages: &Messages, at: At, record: &Record) {
        self.subtract_over(payload_left(messages, at, record));
        if let Some(ttl) = record.ttl {
            self.expiring.remove(Key::at(ttl.end, record.sequence));
        }
    }

    /// Keeps a group occupied until [`View::release`], although the message that a pop took from it is removed.
    pub fn hold(&mut self, id: GroupId) {
        self.groups.as_mut().into_iter().for_each(|groups| groups.hold(id));
    }

    /// Ends a pop that removed messages.
    pub fn release(&mut self, messages: &Messages) {
        if let Some(groups) = &mut self.groups {
            groups.release(messages);
            if groups.is_vacant() {
                self.groups = None;
            }
        }
    }

    /// Moves the head of a group after its last turn has changed.
    pub fn retune(&mut self, messages: &Messages, id: GroupId) {
        self.groups.as_mut().into_iter().for_each(|groups| groups.retune(messages, id));
    }

    /// Moves the heads of all groups after their last turns have changed.
    pub fn retune_all(&mut self, messages: &Messages) {
        self.groups.as_mut().into_iter().for_each(|groups| groups.retune_all(messages));
    }

    /// Applies other settings to the groups, which `messages` has already. O(n log n) if groups are or become
    /// unlimited, else O(groups × log n), plus O(log n) for each message that is admitted or blocked.
    pub fn set_group_limits(&mut self, messages: &Messages, limits: GroupLimits) {
        let Some(groups) = &mut self.groups else { return };
        if groups.changes_all(limits) {
            self.groups = GroupView::rebuilt(messages, self.waiting.boundary());
        } else {
            groups.set_limits(messages, limits);
        }
    }

    /// The messages that would be delivered, in order; `None` if no message has a group.
    pub fn upcoming<'a>(&'a self, messages: &'a Messages, now: UnixMs, pops: Pops) -> Option<Upcoming<'a>> {
        self.groups.as_ref().map(|groups| Upcoming::new(groups, &self.waiting, messages, now, pops))
    }
}

/// Reading.
impl View {
    pub(crate) fn groups(&self) -> Option<&GroupView> {
        self.groups.as_deref()
    }

    /// The waiting messages: those without a group, and those of groups.
    pub(super) fn all_waiting(&self) -> impl Iterator<Item = &Waiting> {
        let groups = self.groups.iter().flat_map(|groups| groups.waiting());
        std::iter::once(&self.waiting).chain(groups)
    }

    /// The number of messages that a pop of any number would deliver, as of the last advance. O(1).
    #[inline]
    pub fn open(&self) -> usize {
        self.waiting.ready() + self.groups.as_ref().map_or(0, |groups| groups.open())
    }

    /// The number of messages that are due by `now` and wait for their group. O(log n).
    pub fn blocked(&self, now: UnixMs) -> usize {
        self.groups.as_ref().map_or(0, |groups| groups.blocked(now))
    }

    /// The number of groups that have a message that is not dead. O(1).
    pub fn live_groups(&self) -> usize {
        self.groups.as_ref().map_or(0, |groups| groups.live())
    }

    /// The earliest due time of a message that stands in delivery order.
    pub fn earliest_open(&self) -> Option<UnixMs> {
        let Some(groups) = &self.groups else { return self.waiting.earliest() };
        let [heads, ..] = groups.waiting();
        [self.waiting.earliest(), heads.earliest()].into_iter().flatten().min()
    }

    /// The first `count` waiting messages, in the order in which they leave their state.
    pub(super) fn in_order(&self, now: UnixMs, kind: StateKind, count: usize) -> Vec<Sequence> {
        let mut all: Vec<(i8, Key)> = Vec::new();
        for waiting in self.all_waiting() {
            if kind == StateKind::Ready {
                all.extend(waiting.iter_due(now).take(count));
            } else {
                all.extend(waiting.iter_due_after(now).take(count));
            }
        }
        if kind == StateKind::Ready {
            all.sort_unstable_by_key(|(priority, key)| (Reverse(*priority), *key));
        } else {
            all.sort_unstable_by_key(|(priority, key)| (key.time(), Reverse(*priority), *key));
        }
        all.into_iter().take(count).map(|(_, key)| key.sequence()).collect()
    }

    /// The first `count` messages of a group that stand in a state; see [`View::in_state`].
    pub fn in_group(&self, id: GroupId, now: UnixMs, kind: StateKind, count: usize) -> Vec<Sequence> {
        let keys = self.groups.as_ref().map_or_else(Vec::new, |groups| groups.first_in(id, kind, now, count));
        keys.into_iter().map(Key::sequence).collect()
    }

    /// The number of messages of a group in each state. O(log n).
    pub fn count_in_group(&self, id: GroupId, now: UnixMs) -> [usize; 4] {
        self.groups.as_ref().map_or([0; 4], |groups| groups.count_in(id, now))
    }

    /// How many messages of a group wait, how many occupy it, and when the first that waits is due.
    pub fn summary(&self, id: GroupId) -> Option<(usize, usize, Option<UnixMs>)> {
        self.groups.as_ref().and_then(|groups| groups.summary(id))
    }
}
