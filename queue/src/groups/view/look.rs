//! Reading the orders of the messages of groups, and checking their invariants.

use super::{turn_of, GroupView};
use crate::groups::slot::Slot;
use crate::groups::{last_turn_at, GroupId};
use crate::id::Sequence;
use crate::messages::Messages;
use crate::record::StateKind;
use crate::sorted_set::{key_set_bytes, Key};
use crate::store::Placement;
use crate::time::UnixMs;
use crate::waiting::Waiting;

#[cfg(test)]
mod tests;

impl GroupView {
    /// The first `count` messages of a group that stand in a state.
    pub fn first_in(&self, id: GroupId, kind: StateKind, now: UnixMs, count: usize) -> Vec<Key> {
        self.slot(id).map_or_else(Vec::new, |slot| slot.first_in(kind, now, count))
    }

    /// The number of messages of a group that are delayed, ready, in flight and dead.
    pub fn count_in(&self, id: GroupId, now: UnixMs) -> [usize; 4] {
        let Some(slot) = self.slot(id) else { return [0; 4] };
        let ready = slot.ready(now);
        [slot.waiting() - ready, ready, slot.leased.len(), slot.dead.len()]
    }

    /// How many messages of a group wait without occupying it, how many occupy it, and when the first of those that
    /// wait is due. Without a limit no message occupies a group. `None` if all its messages are dead.
    pub fn summary(&self, id: GroupId) -> Option<(usize, usize, Option<UnixMs>)> {
        let slot = self.slot(id).filter(|slot| slot.is_live())?;
        let first = slot.admitted.first().or_else(|| slot.parked.first());
        if self.limit == usize::MAX {
            let first = [first, slot.retries.first()].into_iter().flatten().min();
            return Some((slot.waiting(), 0, first.map(Key::time)));
        }
        Some((slot.admitted.len() + slot.parked.len(), slot.occupied(), first.map(Key::time)))
    }

    /// The number of bytes on the heap, given how many messages have a group. An estimate if there are many groups.
    /// O(n / 64).
    pub fn heap_bytes(&self, members: usize) -> usize {
        let overhead = |number: usize| self.slots.get(number as u32).map_or(0, Slot::overhead_bytes);
        self.slots.heap_bytes()
            + key_set_bytes(members, self.slots.length(), overhead)
            + self.waiting().iter().map(|waiting| waiting.heap_bytes()).sum::<usize>()
            + self.turns.heap_bytes()
            + self.restraints_bytes()
    }

    /// The heads that are due by `now`, in delivery order.
    pub(in crate::groups) fn iter_heads(&self, now: UnixMs) -> Box<dyn Iterator<Item = Sequence> + '_> {
        if self.by_turn {
            Box::new(self.turns.iter(last_turn_at(now)).map(|(_, key)| key.sequence()))
        } else {
            Box::new(self.heads.iter_ready(now))
        }
    }

    /// Checks that each message of a group stands where its record and its placement say, that each group has as many
    /// open messages as it may, and that the counts agree. O(n log n), for tests.
    pub fn check(&self, messages: &Messages) -> Result<(), &'static str> {
        self.waiting().iter().try_for_each(|waiting| waiting.check())?;
        let (mut heads, mut behind, mut blocked, mut others) = (0, 0, 0, 0);
        for at in messages.iter_after(None) {
            let Some(id) = messages.group(at) else { continue };
            let record = messages.record(at);
            let key = Key::at(record.due, record.sequence);
            let Some(slot) = self.slot(id) else { return Err("a group has no place") };
            let is_in = |order: &Waiting| order.contains(record.priority, record.due, record.sequence);
            let stands = match messages.placement(at) {
                Placement::Waiting if slot.parked.contains(key) => {
                    blocked += 1;
                    record.attempts == 0 && is_in(&self.blocked)
                }
                Placement::Waiting if self.restraint(id).is_some_and(|restraint| !restraint.is_open(slot, key)) => {
                    blocked += 1;
                    record.attempts > 0 && slot.retries.contains(key) && is_in(&self.blocked)
                }
                Placement::Waiting => {
                    let is_open =
                        if record.attempts > 0 { slot.retries.contains(key) } else { slot.admitted.contains(key) };
                    let is_head = self.first_open(id) == Some(key);
                    let count = if is_head { &mut heads } else { &mut behind };
                    *count += 1;
                    is_open && is_in(if is_head { &self.heads } else { &self.behind })
                }
                Placement::InFlight => record.lease_key().is_some_and(|key| slot.leased.contains(key)),
                Placement::Dead => record.death_key().is_some_and(|key| slot.dead.contains(key)),
            };
            if !stands {
                return Err("a message of a group does not stand where its record says");
            }
            others += usize::from(messages.placement(at) != Placement::Waiting);
        }
        let counted = [self.heads.len(), self.behind.len(), self.blocked.len()];
        let elsewhere: usize = self.slots.iter().map(|(_, slot)| slot.leased.len() + slot.dead.len()).sum();
        if counted != [heads, behind, blocked] || elsewhere != others {
            return Err("a group holds a message that is not there");
        }
        self.check_slots(messages)
    }

    fn check_slots(&self, messages: &Messages) -> Result<(), &'static str> {
        let (mut live, mut used, mut seated) = (0, 0, 0);
        for (number, slot) in self.slots.iter().filter(|(_, slot)| slot.in_use) {
            let id = GroupId(number);
            (live, used) = (live + usize::from(slot.is_live()), used + 1);
            let room = self.limit.saturating_sub(slot.occupied());
            if slot.is_vacant()
                || slot.taken > 0
                || slot.admitted.len() > room
                || (slot.admitted.len() < room && !slot.parked.is_empty() && self.restraint(id).is_none())
            {
                return Err("a group has not as many open messages as it has room for");
            }
            if slot.parked.first().zip(slot.admitted.last()).is_some_and(|(parked, admitted)| parked < admitted) {
                return Err("a message of a group was admitted before an earlier one");
            }
            if slot.head.map(|head| head.key) != self.first_open(id) {
                return Err("the head of a group is not its first open message");
            }
            let Some(head) = slot.head else { continue };
            let turn = if self.by_turn { turn_of(head.key, messages, id) } else { 0 };
            seated += usize::from(self.by_turn);
            if head.turn != turn || self.by_turn && !self.turns.contains(head.priority, head.turn_key()) {
                return Err("a group has a wrong place in the round");
            }
        }
        if live != self.live || used != self.slots.used() || seated != self.turns.len() || !self.held.is_empty() {
            return Err("the groups with messages are miscounted");
        }
        self.check_restraints(messages)
    }
}
