//! Where each message of a group stands: the heads in delivery order, the other open messages, and the blocked ones.

mod look;
mod rebuild;
mod restraint;

use super::slab::Slab;
use super::slot::{Head, Slot};
use super::turns::Turns;
use super::{last_turn_at, GroupId, GroupLimits};
use crate::id::Sequence;
use crate::messages::Messages;
use crate::record::Record;
use crate::sorted_set::Key;
use crate::time::UnixMs;
use crate::waiting::Waiting;
use restraint::Restraints;

/// The orders of the messages that have a group.
#[derive(Debug)]
pub(crate) struct GroupView {
    /// How many messages may occupy a group.
    limit: usize,
    by_turn: bool,
    slots: Slab<Slot>,
    /// The head of each group.
    heads: Waiting,
    /// The other open messages.
    behind: Waiting,
    /// The messages that wait for their group.
    blocked: Waiting,
    /// The heads again, by turn, if groups take turns.
    turns: Turns,
    /// The number of groups that have a message that is not dead.
    live: usize,
    /// The groups of the messages that the current pop has removed.
    held: Vec<GroupId>,
    /// The groups that are paused or have a rate; allocated with the first one.
    restraints: Option<Box<Restraints>>,
    /// The latest instant at which time alone gave a group room.
    opened_to: UnixMs,
}

impl GroupView {
    /// The orders of a queue whose messages have no group yet. Messages that are due by `boundary` count as ready.
    pub fn new(limits: GroupLimits, boundary: UnixMs) -> GroupView {
        let mut view = GroupView {
            limit: limit_of(limits),
            by_turn: limits.by_turn,
            slots: Slab::default(),
            heads: Waiting::default(),
            behind: Waiting::default(),
            blocked: Waiting::default(),
            turns: Turns::default(),
            live: 0,
            held: Vec::new(),
            restraints: None,
            opened_to: UnixMs::EPOCH,
        };
        view.advance(boundary);
        view
    }

    /// Whether no message stands here.
    pub fn is_vacant(&self) -> bool {
        self.slots.used() == 0
    }

    /// The number of groups that have a message that is not dead.
    pub fn live(&self) -> usize {
        self.live
    }

    /// The waiting messages: the heads, the other open ones, and those that are blocked.
    pub fn waiting(&self) -> [&Waiting; 3] {
        [&self.heads, &self.behind, &self.blocked]
    }

    pub(super) fn slot(&self, id: GroupId) -> Option<&Slot> {
        self.slots.get(id.0)
    }

    /// The slot of a group, which is taken into use if it is vacant.
    fn slot_mut(&mut self, id: GroupId) -> Option<&mut Slot> {
        if self.slots.get(id.0).is_none_or(|slot| !slot.in_use) {
            self.slots.occupy(id.0)?.in_use = true;
        }
        self.slots.get_mut(id.0)
    }

    /// Moves the boundary of what counts as ready to `now`. Returns how many messages became ready. O(log n).
    pub fn advance(&mut self, now: UnixMs) -> usize {
        self.heads.advance(now) + self.behind.advance(now) + self.blocked.advance(now)
    }

    /// The number of messages that a pop of any number would deliver, as of the last advance.
    pub fn open(&self) -> usize {
        self.heads.ready() + self.behind.ready()
    }

    /// The number of messages that are due by `now` and wait for their group. O(log n).
    pub fn blocked(&self, now: UnixMs) -> usize {
        self.blocked.due_by(now, usize::MAX)
    }
}

/// Changes of one message. Each is followed by [`GroupView::settle`].
impl GroupView {
    /// Adds a waiting message. O(log n).
    pub fn enter_waiting(&mut self, id: GroupId, record: &Record) {
        let key = Key::at(record.due, record.sequence);
        let limit = self.limit;
        let Some(slot) = self.slot_mut(id) else { return };
        if record.attempts > 0 {
            slot.retries.insert(key);
            if let Some(restraint) = self.restraint(id) {
                if restraint.retries.last().is_none_or(|last| last < key) {
                    return self.blocked.insert(record.priority, record.due, record.sequence);
                }
                self.open_retry(id, key);
            }
            return self.open_add(id, key, record.priority);
        }
        let is_first = slot.parked.first().is_none_or(|first| key < first)
            && (slot.admitted.len() < limit.saturating_sub(slot.occupied())
                || slot.admitted.last().is_some_and(|last| key < last));
        if is_first {
            slot.admitted.insert(key);
            self.open_add(id, key, record.priority);
        } else {
            slot.parked.insert(key);
            self.blocked.insert(record.priority, record.due, record.sequence);
        }
    }

    /// Removes a waiting message; `record` is the one with which it was added. O(log n).
    pub fn leave_waiting(&mut self, id: GroupId, record: &Record) {
        let key = Key::at(record.due, record.sequence);
        let Some(slot) = self.slots.get_mut(id.0) else { return };
        let is_retry = record.attempts > 0;
        let stood = if is_retry { slot.retries.remove(key) } else { slot.admitted.remove(key) };
        let is_parked = !is_retry && !stood && slot.parked.remove(key);
        let is_held_back = is_retry && self.shut_retry(id, key);
        if is_parked || stood && is_held_back {
            self.blocked.remove(record.priority, record.due, record.sequence);
        } else if stood {
            self.open_remove(id, key, record.priority);
        }
    }

    pub fn enter_leased(&mut self, id: GroupId, key: Key) {
        self.slot_mut(id).into_iter().for_each(|slot| slot.leased.insert(key));
    }

    pub fn leave_leased(&mut self, id: GroupId, key: Key) {
        if let Some(slot) = self.slots.get_mut(id.0) {
            slot.leased.remove(key);
        }
    }

    pub fn enter_dead(&mut self, id: GroupId, key: Key) {
        self.slot_mut(id).into_iter().for_each(|slot| slot.dead.insert(key));
    }

    pub fn leave_dead(&mut self, id: GroupId, key: Key) {
        if let Some(slot) = self.slots.get_mut(id.0) {
            slot.dead.remove(key);
        }
    }

    /// Adds an open message: as the head of its group if it comes before the present head, or else behind the head.
    fn open_add(&mut self, id: GroupId, key: Key, priority: i8) {
        match self.slots.get(id.0).and_then(|slot| slot.head) {
            Some(head) if head.key < key => self.behind.insert(priority, key.time(), key.sequence()),
            Some(head) => {
                self.unseat(id, head);
                self.behind.insert(head.priority, head.key.time(), head.key.sequence());
                self.seat(id, key, priority);
            }
            // While a group has no head, the next one is chosen when it settles.
            None => self.behind.insert(priority, key.time(), key.sequence()),
        }
    }

    /// Removes a message that is no longer open from the order in which it stands.
    fn open_remove(&mut self, id: GroupId, key: Key, priority: i8) {
        match self.slots.get(id.0).and_then(|slot| slot.head) {
            Some(head) if head.key == key => self.unseat(id, head),
            _ => self.behind.remove(priority, key.time(), key.sequence()),
        }
    }

    /// Makes a message the head of its group.
    fn seat(&mut self, id: GroupId, key: Key, priority: i8) {
        self.heads.insert(priority, key.time(), key.sequence());
        if let Some(slot) = self.slots.get_mut(id.0) {
            slot.head = Some(Head { priority, key, turn: 0 });
        }
    }

    fn unseat(&mut self, id: GroupId, head: Head) {
        self.heads.remove(head.priority, head.key.time(), head.key.sequence());
        if head.turn > 0 {
            self.turns.remove(head.priority, head.turn_key());
        }
        if let Some(slot) = self.slots.get_mut(id.0) {
            slot.head = None;
        }
    }
}

/// What follows from the changes of a group.
impl GroupView {
    /// Admits as many messages of a group as there is room for, chooses its head, and gives the head its place in the
    /// round. O(log n) for each message that is admitted or blocked.
    pub fn settle(&mut self, messages: &Messages, id: GroupId) {
        if self.restraints.is_some() || messages.restrains_groups() {
            self.keep_gate(messages, id);
        }
        self.elect(messages, id);
        if self.restraints.is_none() || self.restraint(id).is_none() {
            self.admit(messages, id);
        }
        if self.by_turn {
            self.take_place(messages, id);
        }
        self.count(id);
        if self.slots.get(id.0).is_some_and(|slot| slot.in_use && slot.is_vacant()) {
            self.slots.vacate(id.0);
        }
    }

    /// Counts the group if it has a message that is not dead.
    fn count(&mut self, id: GroupId) {
        let Some(slot) = self.slots.get_mut(id.0) else { return };
        match (slot.counted, slot.is_live()) {
            (false, true) => self.live += 1,
            (true, false) => self.live -= 1,
            (true, true) | (false, false) => {}
        }
        slot.counted = slot.is_live();
    }

    /// Makes the first open message of a group its head, if it has none.
    fn elect(&mut self, messages: &Messages, id: GroupId) {
        if self.slots.get(id.0).is_none_or(|slot| slot.head.is_some()) {
            return;
        }
        if let Some(next) = self.first_open(id) {
            let priority = messages.priority_of(next.sequence());
            self.behind.remove(priority, next.time(), next.sequence());
            self.seat(id, next, priority);
        }
    }

    /// Admits or blocks messages of a group until as many are open as there is room for.
    fn admit(&mut self, messages: &Messages, id: GroupId) {
        loop {
            let Some(slot) = self.slots.get_mut(id.0) else { return };
            let room = self.limit.saturating_sub(slot.occupied());
            let open = slot.admitted.len();
            if open < room {
                let Some(key) = slot.parked.pop_first(Key::end_of(UnixMs::MAX)) else { return };
                slot.admitted.insert(key);
                let is_head = slot.head.is_none() && slot.first_open() == Some(key);
                let priority = messages.priority_of(key.sequence());
                self.blocked.remove(priority, key.time(), key.sequence());
                if is_head {
                    self.seat(id, key, priority);
                } else {
                    self.open_add(id, key, priority);
                }
            } else if open > room {
                let Some(key) = slot.admitted.last() else { return };
                slot.admitted.remove(key);
                slot.parked.insert(key);
                let priority = messages.priority_of(key.sequence());
                self.open_remove(id, key, priority);
                self.blocked.insert(priority, key.time(), key.sequence());
                self.elect(messages, id);
            } else {
                return;
            }
        }
    }

    /// Moves the head of a group to its place in the round: behind the groups whose turn came before its message was
    /// due, and behind those whose last turn was before its own.
    fn take_place(&mut self, messages: &Messages, id: GroupId) {
        let Some(slot) = self.slots.get_mut(id.0) else { return };
        let Some(head) = &mut slot.head else { return };
        let turn = turn_of(head.key, messages, id);
        if turn != head.turn {
            if head.turn > 0 {
                self.turns.remove(head.priority, head.turn_key());
            }
            head.turn = turn;
            self.turns.insert(head.priority, head.turn_key());
        }
    }

    /// Moves the head of a group that had its turn. O(log n).
    pub fn retune(&mut self, messages: &Messages, id: GroupId) {
        self.take_place(messages, id);
    }

    /// Moves the heads of all groups after their turns have changed. O(groups × log n).
    pub fn retune_all(&mut self, messages: &Messages) {
        let all: Vec<u32> = self.slots.iter().map(|(number, _)| number).collect();
        if self.by_turn {
            all.into_iter().for_each(|number| self.take_place(messages, GroupId(number)));
        }
    }

    /// Whether new limits move so many messages that it is cheaper to rebuild all orders.
    pub fn changes_all(&self, limits: GroupLimits) -> bool {
        let limit = limit_of(limits);
        limit != self.limit && (limit == usize::MAX || self.limit == usize::MAX)
    }

    /// Applies other limits. O(groups × log n), plus O(log n) for each message that is admitted or blocked.
    pub fn set_limits(&mut self, messages: &Messages, limits: GroupLimits) {
        self.limit = limit_of(limits);
        self.turns = Turns::default();
        self.by_turn = limits.by_turn;
        let all: Vec<u32> = self.slots.iter().map(|(number, _)| number).collect();
        for id in all.into_iter().map(GroupId) {
            if let Some(head) = self.slots.get_mut(id.0).and_then(|slot| slot.head.as_mut()) {
                head.turn = 0;
            }
            if self.slots.get(id.0).is_some_and(|slot| slot.in_use) {
                self.settle(messages, id);
            }
        }
    }
}

/// Delivery.
impl GroupView {
    /// The head that is delivered first of those that are due by `now`: its priority, its turn if groups take turns and
    /// its due time otherwise, and its sequence. O(priorities in use).
    pub fn first(&self, now: UnixMs) -> Option<(i8, u64, Sequence)> {
        let first_due = || self.heads.first_due(now);
        if !self.by_turn {
            return first_due().map(|(priority, key)| (priority, key.time().as_ms(), key.sequence()));
        }
        // After the clock has stepped back, all turns may lie in the future; the first head that is due is served then.
        let late = || first_due().map(|(priority, key)| (priority, u64::MAX, key.sequence()));
        let first = self.turns.first(last_turn_at(now));
        first.map(|(priority, key)| (priority, key.major().0, key.sequence())).or_else(late)
    }

    /// When the messages without a group get their turn, given the due time of the first of them; that due time itself,
    /// in ms, if groups take no turns.
    pub fn place_of_ungrouped(&self, due: UnixMs, messages: &Messages) -> u64 {
        if self.by_turn {
            messages.place_in_round(None, due)
        } else {
            due.as_ms()
        }
    }

    /// How many messages may occupy a group.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub fn by_turn(&self) -> bool {
        self.by_turn
    }

    /// Takes the head of a group for a delivery. It occupies the group until [`GroupView::lend`] leases it or
    /// [`GroupView::release`] ends the pop that removes it. O(log n).
    pub fn take(&mut self, messages: &Messages, id: GroupId, record: &Record) {
        self.leave_waiting(id, record);
        if let Some(slot) = self.slots.get_mut(id.0) {
            slot.taken += 1;
        }
        self.settle(messages, id);
    }

    /// Leases a message that [`GroupView::take`] took.
    pub fn lend(&mut self, id: GroupId, key: Key) {
        if let Some(slot) = self.slots.get_mut(id.0) {
            slot.taken = slot.taken.saturating_sub(1);
            slot.leased.insert(key);
        }
        self.count(id);
    }

    /// Keeps a group occupied until the pop is complete, although the message that the pop took from it is removed.
    pub fn hold(&mut self, id: GroupId) {
        self.held.push(id);
    }

    /// Ends a pop. O(log n) for each message that was held.
    pub fn release(&mut self, messages: &Messages) {
        for id in std::mem::take(&mut self.held) {
            if let Some(slot) = self.slots.get_mut(id.0) {
                slot.taken = slot.taken.saturating_sub(1);
            }
            self.settle(messages, id);
        }
    }
}

fn limit_of(limits: GroupLimits) -> usize {
    match limits.inflight {
        0 => usize::MAX,
        most => usize::try_from(most).unwrap_or(usize::MAX),
    }
}

/// When a group gets its turn, given the key of its head.
fn turn_of(head: Key, messages: &Messages, id: GroupId) -> u64 {
    messages.place_in_round(Some(id), head.time())
}
