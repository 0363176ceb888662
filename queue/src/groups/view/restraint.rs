//! Groups that their gate restrains: they are paused, or their rate allows them only so many deliveries.
//!
//! Of the messages that the limit of a group would let be open, only the first ones are, as many as its gate has room
//! for; the others are blocked. So what is open is exactly what pops may deliver. The instants at which time alone
//! gives a group more room stand in one order, and nothing is done for a group before its instant comes.

use super::GroupView;
use crate::groups::gates::Room;
use crate::groups::slab::Slab;
use crate::groups::slot::Slot;
use crate::groups::GroupId;
use crate::memory::box_bytes;
use crate::messages::Messages;
use crate::sorted_set::{key_set_bytes, Key, OrderedKeys};
use crate::time::UnixMs;

/// The groups that are restrained, and when that changes.
#[derive(Debug, Default)]
pub(super) struct Restraints {
    groups: Slab<Restraint>,
    /// The number of all open retries.
    open_retries: usize,
    /// When to look at which group again.
    openings: OrderedKeys<UnixMs, GroupId>,
}

/// What restrains one group.
#[derive(Debug, Default)]
pub(super) struct Restraint {
    in_use: bool,
    /// How many messages may be open.
    pub room: usize,
    /// The retries that are open: the first ones.
    pub retries: OrderedKeys,
    /// When to look at the group again, if it holds back any message.
    pub opens: Option<UnixMs>,
}

/// Whether a message was delivered before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Fresh,
    Retry,
}

/// What is to be done with a message.
enum Step {
    Open(Key, Kind),
    Shut(Key, Kind),
}

#[cfg(test)]
impl Restraints {
    /// The number of bytes on the heap, from a look at each group.
    pub(super) fn exact_heap_bytes(&self) -> usize {
        let retries = self.groups.iter().map(|(_, restraint)| restraint.retries.heap_bytes());
        box_bytes::<Restraints>() + self.groups.heap_bytes() + retries.sum::<usize>() + self.openings.heap_bytes()
    }
}

impl Restraint {
    /// Whether a waiting message of the group that is not parked is open.
    pub fn is_open(&self, slot: &Slot, key: Key) -> bool {
        slot.admitted.contains(key) || self.retries.contains(key)
    }

    /// The next step towards a state in which the first messages that the group's limit admits are open, as many as
    /// there is room for. `seats` is the number of messages that may occupy the group in addition. O(log n).
    fn next_step(&self, slot: &Slot, seats: usize) -> Option<Step> {
        let last_fresh = slot.admitted.last().map(|key| (key, Kind::Fresh));
        if let Some((key, kind)) = last_fresh.filter(|_| slot.admitted.len() > seats) {
            return Some(Step::Shut(key, kind));
        }
        let last_retry = self.retries.last();
        let last = last_fresh.max(last_retry.map(|key| (key, Kind::Retry)));
        let fresh = slot.parked.first().filter(|_| slot.admitted.len() < seats).map(|key| (key, Kind::Fresh));
        let retry = match last_retry {
            None => slot.retries.first(),
            Some(last) => slot.retries.first_after(last),
        };
        let next = [fresh, retry.map(|key| (key, Kind::Retry))].into_iter().flatten().min();
        let open = slot.admitted.len() + self.retries.len();
        let shut = |(key, kind)| Step::Shut(key, kind);
        if open < self.room {
            next.map(|(key, kind)| Step::Open(key, kind))
        } else if open > self.room || next < last && next.is_some() {
            last.map(shut)
        } else {
            None
        }
    }
}

impl GroupView {
    /// The restraint of a group, if it has one.
    pub(super) fn restraint(&self, id: GroupId) -> Option<&Restraint> {
        self.restraints.as_ref()?.groups.get(id.0).filter(|restraint| restraint.in_use)
    }

    pub(super) fn restraint_mut(&mut self, id: GroupId) -> Option<&mut Restraint> {
        self.restraints.as_mut()?.groups.get_mut(id.0).filter(|restraint| restraint.in_use)
    }

    /// The first open message of a group.
    pub(super) fn first_open(&self, id: GroupId) -> Option<Key> {
        let slot = self.slots.get(id.0)?;
        match self.restraint(id) {
            None => slot.first_open(),
            Some(restraint) => [slot.admitted.first(), restraint.retries.first()].into_iter().flatten().min(),
        }
    }

    /// Begins to restrain a group, of whose retries these are open.
    pub(super) fn restrain(&mut self, id: GroupId, room: usize, retries: OrderedKeys) {
        let restraints = self.restraints.get_or_insert_default();
        restraints.open_retries += retries.len();
        if let Some(restraint) = restraints.groups.occupy(id.0) {
            *restraint = Restraint { in_use: true, room, retries, opens: None };
        }
    }

    /// Makes a retry of a restrained group open. O(log n).
    pub(super) fn open_retry(&mut self, id: GroupId, key: Key) {
        let Some(restraints) = &mut self.restraints else { return };
        if let Some(restraint) = restraints.groups.get_mut(id.0).filter(|restraint| restraint.in_use) {
            restraint.retries.insert(key);
            restraints.open_retries += 1;
        }
    }

    /// Takes a retry from those of its group that are open. Returns whether the group is restrained and the retry was
    /// not one of them. O(log n).
    pub(super) fn shut_retry(&mut self, id: GroupId, key: Key) -> bool {
        let Some(restraints) = &mut self.restraints else { return false };
        let Some(restraint) = restraints.groups.get_mut(id.0).filter(|restraint| restraint.in_use) else {
            return false;
        };
        let was_open = restraint.retries.remove(key);
        restraints.open_retries = restraints.open_retries.saturating_sub(usize::from(was_open));
        !was_open
    }

    /// What the gate of a group allows at `at`; `None` if it does not restrain the group.
    pub(super) fn gate_of(&mut self, messages: &Messages, id: GroupId, at: UnixMs) -> Option<Room> {
        let room = messages.room_of_group(id, at)?;
        self.opened_to = self.opened_to.max(room.changed);
        (room.count < usize::MAX).then_some(room)
    }

    /// Opens and blocks messages of a group as its gate demands now. O(log n), and O(log n) for each message that is
    /// opened or blocked.
    #[cold]
    pub(super) fn keep_gate(&mut self, messages: &Messages, id: GroupId) {
        let Some(slot) = self.slots.get(id.0).filter(|slot| slot.in_use) else { return };
        let gate = if slot.waiting() > 0 { self.gate_of(messages, id, self.heads.boundary()) } else { None };
        if gate.is_none() && self.restraint(id).is_none() {
            return self.free_restraints();
        }
        if self.restraint(id).is_none() {
            let Some(slot) = self.slots.get(id.0) else { return };
            let retries: Vec<Key> = slot.retries.iter_after(None).collect();
            self.restrain(id, usize::MAX, OrderedKeys::from_sorted(&retries));
        }
        if let Some(restraint) = self.restraint_mut(id) {
            restraint.room = gate.map_or(usize::MAX, |room| room.count);
        }
        while let Some(step) = self.next_step(id) {
            match step {
                Step::Open(key, kind) => self.admit_next(messages, id, key, kind),
                Step::Shut(key, kind) => self.hold_back(messages, id, key, kind),
            }
        }
        self.set_opening(id, gate.and_then(|room| room.changes));
        if gate.is_none() {
            if let Some(restraints) = &mut self.restraints {
                let open = restraints.groups.get(id.0).map_or(0, |restraint| restraint.retries.len());
                restraints.open_retries = restraints.open_retries.saturating_sub(open);
                restraints.groups.vacate(id.0);
            }
            self.free_restraints();
        }
    }

    fn next_step(&self, id: GroupId) -> Option<Step> {
        let slot = self.slots.get(id.0)?;
        self.restraint(id)?.next_step(slot, self.limit.saturating_sub(slot.occupied()))
    }

    fn admit_next(&mut self, messages: &Messages, id: GroupId, key: Key, kind: Kind) {
        match kind {
            Kind::Retry => self.open_retry(id, key),
            Kind::Fresh => {
                if let Some(slot) = self.slots.get_mut(id.0) {
                    slot.parked.remove(key);
                    slot.admitted.insert(key);
                }
            }
        }
        let priority = messages.priority_of(key.sequence());
        self.blocked.remove(priority, key.time(), key.sequence());
        self.open_add(id, key, priority);
    }

    fn hold_back(&mut self, messages: &Messages, id: GroupId, key: Key, kind: Kind) {
        match kind {
            Kind::Retry => {
                self.shut_retry(id, key);
            }
            Kind::Fresh => {
                if let Some(slot) = self.slots.get_mut(id.0) {
                    slot.admitted.remove(key);
                    slot.parked.insert(key);
                }
            }
        }
        let priority = messages.priority_of(key.sequence());
        self.open_remove(id, key, priority);
        self.blocked.insert(priority, key.time(), key.sequence());
    }

    /// Notes when to look at a group again, if its gate holds back any message.
    pub(super) fn set_opening(&mut self, id: GroupId, changes: Option<UnixMs>) {
        let holds_back = self.next_held(id).is_some();
        let opens = changes.filter(|_| holds_back);
        let Some(before) = self.restraint_mut(id).map(|restraint| std::mem::replace(&mut restraint.opens, opens))
        else {
            return;
        };
        if before == opens {
            return;
        }
        if let Some(restraints) = &mut self.restraints {
            before.into_iter().for_each(|at| {
                restraints.openings.remove(Key::new(at, id));
            });
            opens.into_iter().for_each(|at| restraints.openings.insert(Key::new(at, id)));
        }
    }

    /// The first message that the limit of a group would let be open, and that its gate holds back.
    fn next_held(&self, id: GroupId) -> Option<Key> {
        let slot = self.slots.get(id.0)?;
        let seats = self.limit.saturating_sub(slot.occupied());
        let restraint = self.restraint(id)?;
        let retry = match restraint.retries.last() {
            None => slot.retries.first(),
            Some(last) => slot.retries.first_after(last),
        };
        retry.or_else(|| slot.parked.first().filter(|_| slot.admitted.len() < seats))
    }

    fn free_restraints(&mut self) {
        self.restraints.take_if(|restraints| restraints.groups.used() == 0);
    }

    /// The first instant at which time gives a group more room.
    #[inline]
    pub fn first_opening(&self) -> Option<UnixMs> {
        self.restraints.as_ref()?.openings.first().map(Key::major)
    }

    /// The latest instant at which time alone gave a group room.
    #[inline]
    pub fn opened_to(&self) -> UnixMs {
        self.opened_to
    }

    /// Looks again at the first group whose instant has come by `now`. Returns whether there was one. O(log n), and
    /// O(log n) for each message that is opened.
    #[cold]
    pub fn open_first(&mut self, messages: &Messages, now: UnixMs) -> bool {
        let Some(restraints) = &mut self.restraints else { return false };
        let Some(id) = restraints.openings.pop_first(Key::last_of(now)).map(Key::minor) else { return false };
        self.restraint_mut(id).into_iter().for_each(|restraint| restraint.opens = None);
        self.settle(messages, id);
        true
    }

    /// Looks again at all groups, because their gates have changed. O(groups × log n).
    pub fn settle_all(&mut self, messages: &Messages) {
        let all: Vec<u32> = self.slots.iter().filter(|(_, slot)| slot.in_use).map(|(number, _)| number).collect();
        all.into_iter().for_each(|number| self.settle(messages, GroupId(number)));
    }

    pub(super) fn restraints_bytes(&self) -> usize {
        let Some(restraints) = &self.restraints else { return 0 };
        let restraint = |number: usize| restraints.groups.get(number as u32);
        let overhead = |number: usize| restraint(number).map_or(0, |restraint| restraint.retries.overhead_bytes());
        box_bytes::<Restraints>()
            + restraints.groups.heap_bytes()
            + key_set_bytes(restraints.open_retries, restraints.groups.length(), overhead)
            + restraints.openings.heap_bytes()
    }

    /// Checks that each restrained group has the right messages open, and is looked at when its gate changes.
    pub(super) fn check_restraints(&self, messages: &Messages) -> Result<(), &'static str> {
        let boundary = self.heads.boundary();
        let (mut used, mut openings, mut open_retries) = (0, 0, 0);
        for (number, slot) in self.slots.iter().filter(|(_, slot)| slot.in_use) {
            let id = GroupId(number);
            let gate = messages.room_of_group(id, boundary).filter(|room| room.count < usize::MAX);
            let Some(restraint) = self.restraint(id) else {
                if gate.is_some() && slot.waiting() > 0 && self.opened_to <= boundary {
                    return Err("a group is not restrained by its gate");
                }
                continue;
            };
            (used, openings) = (used + 1, openings + usize::from(restraint.opens.is_some()));
            open_retries += restraint.retries.len();
            if self.next_step(id).is_some() {
                return Err("a group has not as many open messages as its gate allows");
            }
            let room = gate.map_or(usize::MAX, |gate| gate.count);
            let is_right = match self.next_held(id) {
                // Only a group that holds messages back is looked at when it has more room.
                None => restraint.room <= room && restraint.opens.is_none(),
                Some(_) => restraint.room == room && restraint.opens == gate.and_then(|gate| gate.changes),
            };
            // A group that is yet to be looked at may have less room than its gate allows by now, and one may have more
            // if a clock has gone back.
            let is_behind = restraint.opens.is_some() && (restraint.room < room || restraint.opens <= Some(boundary));
            if !is_right && !is_behind && self.opened_to <= boundary {
                return Err("a group does not have the room that its gate allows");
            }
        }
        let held = self.restraints.as_ref();
        let counted = held.map_or((0, 0, 0), |held| (held.groups.used(), held.openings.len(), held.open_retries));
        if counted != (used, openings, open_retries) {
            return Err("the restrained groups are miscounted");
        }
        Ok(())
    }
}
