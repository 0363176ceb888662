//! Rebuilding all orders of the messages of groups from the records: after a load, after a bulk removal, and when the
//! view is taken back.

use super::{turn_of, GroupView};
use crate::groups::line::Line;
use crate::groups::slot::Head;
use crate::groups::GroupId;
use crate::messages::Messages;
use crate::sorted_set::{Key, OrderedKeys};
use crate::store::Placement;
use crate::time::UnixMs;
use crate::waiting::Waiting;

/// A waiting message while all orders are rebuilt.
struct Placed {
    group: GroupId,
    key: Key,
    priority: i8,
    is_retry: bool,
}

impl GroupView {
    /// The orders of the messages that have a group, according to their placements; `None` if none has. O(n log n).
    pub fn rebuilt(messages: &Messages, boundary: UnixMs) -> Option<Box<GroupView>> {
        let mut view = GroupView::new(messages.group_limits()?, UnixMs::EPOCH);
        let mut waiting = Vec::new();
        let mut leased: Vec<(GroupId, Key)> = Vec::new();
        let mut dead: Vec<(GroupId, Key)> = Vec::new();
        for at in messages.iter_after(None) {
            let Some(group) = messages.group(at) else { continue };
            let record = messages.record(at);
            match messages.placement(at) {
                Placement::Waiting => waiting.push(Placed {
                    group,
                    key: Key::at(record.due, record.sequence),
                    priority: record.priority,
                    is_retry: record.attempts > 0,
                }),
                Placement::InFlight => leased.extend(record.lease_key().map(|key| (group, key))),
                Placement::Dead => dead.extend(record.death_key().map(|key| (group, key))),
            }
        }
        waiting.sort_unstable_by_key(|placed| (placed.group, placed.key));
        leased.sort_unstable();
        dead.sort_unstable();
        let keys = |of: &[(GroupId, Key)]| of.iter().map(|(_, key)| *key).collect::<Vec<_>>();
        for of_one in leased.chunk_by(|one, next| one.0 == next.0) {
            if let Some(slot) = of_one.first().and_then(|(id, _)| view.slot_mut(*id)) {
                slot.leased = Line::from_sorted(&keys(of_one));
            }
        }
        for of_one in dead.chunk_by(|one, next| one.0 == next.0) {
            if let Some(slot) = of_one.first().and_then(|(id, _)| view.slot_mut(*id)) {
                slot.dead = OrderedKeys::from_sorted(&keys(of_one));
            }
        }
        view.build(messages, &waiting, boundary);
        if view.is_vacant() {
            // The groups are about to end. A view that stayed would have their limits, which may be altered in the
            // meantime.
            return None;
        }
        view.advance(boundary);
        Some(Box::new(view))
    }

    /// Builds the orders of the waiting messages, sorted by group and key, around those that are in flight, as the
    /// gates of the groups demand at `at`.
    fn build(&mut self, messages: &Messages, waiting: &[Placed], at: UnixMs) {
        let (mut heads, mut behind, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
        for of_one in waiting.chunk_by(|one, next| one.group == next.group) {
            let Some(group) = of_one.first().map(|placed| placed.group) else { continue };
            let (limit, by_turn) = (self.limit, self.by_turn);
            let gate = self.gate_of(messages, group, at);
            let Some(slot) = self.slot_mut(group) else { continue };
            let (retries, fresh): (Vec<&Placed>, Vec<&Placed>) = of_one.iter().partition(|placed| placed.is_retry);
            let [retries, fresh] = [retries, fresh].map(|of| of.iter().map(|placed| placed.key).collect::<Vec<_>>());
            slot.retries = OrderedKeys::from_sorted(&retries);
            let mut seats = limit.saturating_sub(slot.occupied());
            let mut room = gate.map_or(usize::MAX, |gate| gate.count);
            let (mut admitted, mut open_retries) = (Vec::new(), Vec::new());
            for placed in of_one {
                let stands = (placed.priority, placed.key);
                if room == 0 || !placed.is_retry && seats == 0 {
                    blocked.push(stands);
                    continue;
                }
                room -= 1;
                if placed.is_retry {
                    open_retries.push(placed.key);
                } else {
                    seats -= 1;
                    admitted.push(placed.key);
                }
                if slot.head.is_some() {
                    behind.push(stands);
                    continue;
                }
                heads.push(stands);
                let turn = if by_turn { turn_of(placed.key, messages, group) } else { 0 };
                slot.head = Some(Head { priority: placed.priority, key: placed.key, turn });
            }
            slot.admitted = Line::from_sorted(&admitted);
            slot.parked = OrderedKeys::from_sorted(fresh.split_at(admitted.len()).1);
            if let (true, Some(head)) = (by_turn, slot.head) {
                self.turns.insert(head.priority, head.turn_key());
            }
            if let Some(gate) = gate {
                self.restrain(group, gate.count, OrderedKeys::from_sorted(&open_retries));
                self.set_opening(group, gate.changes);
            }
        }
        self.heads = Waiting::from_unsorted(heads);
        self.behind = Waiting::from_unsorted(behind);
        self.blocked = Waiting::from_unsorted(blocked);
        let all: Vec<u32> = self.slots.iter().map(|(number, _)| number).collect();
        all.into_iter().for_each(|number| self.count(GroupId(number)));
    }
}
