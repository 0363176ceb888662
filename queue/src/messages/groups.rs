//! The groups of the messages, their turns, and their gates.

use super::Messages;
use crate::gate::Pause;
use crate::groups::{GroupGate, GroupGates, GroupLimits, GroupNames, Room, TurnState};
use crate::id::GroupId;
use crate::rate::Rate;
use crate::store::At;
use crate::time::UnixMs;

/// The groups of a queue. It exists while there is any, or any gate of one.
#[derive(Debug, Default)]
pub(super) struct Grouped {
    /// The groups of the messages; present while a message has one.
    pub names: Option<GroupNames>,
    /// The pauses and the recent deliveries of groups; allocated with the first one.
    pub gates: Option<Box<GroupGates>>,
}

impl Messages {
    #[inline]
    fn group_names(&self) -> Option<&GroupNames> {
        self.groups.as_ref()?.names.as_ref()
    }

    #[inline]
    pub(super) fn group_names_mut(&mut self) -> Option<&mut GroupNames> {
        self.groups.as_mut()?.names.as_mut()
    }

    fn gates_mut(&mut self) -> Option<&mut GroupGates> {
        self.groups.as_mut()?.gates.as_deref_mut()
    }

    fn gates_or_new(&mut self, rate: Rate) -> &mut GroupGates {
        self.groups.get_or_insert_default().gates.get_or_insert_with(|| Box::new(GroupGates::new(rate)))
    }

    fn free_grouped(&mut self) {
        self.groups.take_if(|grouped| grouped.names.is_none() && grouped.gates.is_none());
    }

    /// Whether the queue has groups: a message has one, or had one since the last effect.
    #[inline]
    pub fn has_groups(&self) -> bool {
        self.group_names().is_some()
    }

    /// The groups; `None` if no message has one.
    pub fn groups(&self) -> Option<&GroupNames> {
        self.group_names()
    }

    /// The group of a message.
    #[inline]
    pub fn group(&self, at: At) -> Option<GroupId> {
        self.group_names()?;
        self.store.group(at)
    }

    /// The name of the group of a message.
    pub fn group_name(&self, at: At) -> Option<&[u8]> {
        let id = self.group(at)?;
        self.group_names().map(|groups| groups.name(id))
    }

    /// The settings that concern groups; `None` if no message has a group.
    pub fn group_limits(&self) -> Option<GroupLimits> {
        self.group_names().map(|groups| groups.limits)
    }

    /// Applies other settings to the groups.
    pub fn set_group_limits(&mut self, limits: GroupLimits) {
        self.group_names_mut().into_iter().for_each(|groups| groups.set_limits(limits));
    }

    /// The last turn that was given to any group.
    pub fn last_turn(&self) -> u64 {
        self.group_names().map_or(0, |groups| groups.last_turn())
    }

    /// When a group, or the messages without one, gets its turn, given the due time of its first message.
    #[inline]
    pub fn place_in_round(&self, id: Option<GroupId>, due: UnixMs) -> u64 {
        self.group_names().map_or(0, |groups| groups.place(id, due))
    }

    /// Notes that a message which was due at `due` is taken away at `now` without a turn of its group. O(log n).
    pub fn claim_turn(&mut self, id: Option<GroupId>, due: UnixMs, now: UnixMs) {
        self.group_names_mut().into_iter().for_each(|groups| groups.claim(id, due, now));
    }

    /// Sets the last turn of a group, or of the messages without one.
    pub fn set_turn(&mut self, id: Option<GroupId>, turn: u64) {
        self.group_names_mut().into_iter().for_each(|groups| groups.set_turn(id, turn));
    }

    /// The turn of the deliveries of one effect, if groups take turns.
    #[inline]
    pub fn begin_turn(&mut self, now: UnixMs) -> Option<u64> {
        let groups = self.group_names_mut().filter(|groups| groups.limits.by_turn)?;
        Some(groups.next_turn(now))
    }

    /// Ends the groups that have no message, because an effect is complete.
    #[inline]
    pub fn end_effect(&mut self) {
        if self.has_groups() {
            self.end_empty_groups();
        }
    }

    #[inline(never)]
    fn end_empty_groups(&mut self) {
        let Some(groups) = self.group_names_mut() else { return };
        groups.end_effect();
        if groups.is_empty() {
            self.groups.as_mut().into_iter().for_each(|grouped| grouped.names = None);
            self.free_grouped();
        }
    }

    /// Whether a turn was given later than `now`.
    #[inline]
    pub fn turns_are_ahead_of(&self, now: UnixMs) -> bool {
        self.group_names().is_some_and(|groups| groups.is_ahead_of(now))
    }

    /// Makes turns that are later than `now` count as if they had been given at `now`.
    pub fn pull_turns_back_to(&mut self, now: UnixMs) {
        if let Some(groups) = self.group_names_mut().filter(|groups| groups.is_ahead_of(now)) {
            groups.pull_back_to(now);
        }
    }

    /// Restores the turns of a saved queue.
    pub fn restore_turns(&mut self, turns: &TurnState<'_>) {
        self.group_names_mut().into_iter().for_each(|groups| groups.restore(turns));
    }
}

/// The gates of groups.
impl Messages {
    /// The gates; `None` if no group is paused or was delivered from recently.
    pub fn gates(&self) -> Option<&GroupGates> {
        self.groups.as_ref()?.gates.as_deref()
    }

    /// Whether a group may be paused, or has a rate.
    #[inline]
    pub fn restrains_groups(&self) -> bool {
        self.gates().is_some() || self.group_names().is_some_and(|groups| !groups.limits.rate.is_off())
    }

    /// What the gate of a group allows at `now`; `None` if it has none. O(log n).
    pub fn room_of_group(&self, id: GroupId, now: UnixMs) -> Option<Room> {
        let groups = self.group_names()?;
        match self.gates() {
            None => Room::from_rate(groups.limits.rate),
            Some(gates) => gates.room(groups.name(id), now),
        }
    }

    /// Counts a delivery from a group that begins at `now`, if groups have a rate. Returns whether they do. O(log n).
    #[inline]
    pub fn record_delivery(&mut self, id: GroupId, now: UnixMs) -> bool {
        let Some(Grouped { names: Some(names), gates }) = self.groups.as_deref_mut() else { return false };
        let rate = names.limits.rate;
        if rate.is_off() {
            return false;
        }
        gates.get_or_insert_with(|| Box::new(GroupGates::new(rate))).record(names.name(id), now);
        true
    }

    /// Sets the pause of a group of a queue with this rate of groups. O(log n).
    pub fn set_group_pause(&mut self, name: &[u8], pause: Pause, rate: Rate, now: UnixMs) {
        self.gates_or_new(rate).set_pause(name, pause, now);
        self.free_gates();
    }

    /// Applies another rate of groups at `now`. O(n log n) if it differs.
    pub fn set_group_rate(&mut self, rate: Rate, now: UnixMs) {
        self.gates_mut().into_iter().for_each(|gates| gates.alter(rate, now));
        self.free_gates();
    }

    /// Whether memory of forgotten gates is still to be freed.
    #[inline]
    pub fn must_sweep_gates(&self) -> bool {
        self.gates().is_some_and(|gates| !gates.is_swept())
    }

    /// Frees the memory of at most `budget` forgotten gates. O(budget × log n).
    #[inline]
    pub fn sweep_gates(&mut self, budget: usize) {
        if let Some(gates) = self.gates_mut() {
            gates.sweep(budget);
            self.free_gates();
        }
    }

    fn free_gates(&mut self) {
        if let Some(grouped) = &mut self.groups {
            grouped.gates.take_if(|gates| gates.is_empty());
            self.free_grouped();
        }
    }

    /// Whether a delivery from a group was counted later than `now`.
    #[inline]
    pub fn gates_are_ahead_of(&self, now: UnixMs) -> bool {
        self.gates().is_some_and(|gates| gates.is_ahead_of(now))
    }

    /// Makes deliveries from groups that are later than `now` count as if they had begun at `now`.
    pub fn pull_gates_back_to(&mut self, now: UnixMs) {
        self.gates_mut().into_iter().for_each(|gates| gates.pull_back_to(now));
    }

    /// Whether these gates may be restored while a queue with this rate of groups is loaded.
    pub fn may_restore_gates(&self, gates: &[GroupGate<'_>], rate: Rate) -> bool {
        let fresh = GroupGates::new(rate);
        let held = self.gates().unwrap_or(&fresh);
        gates.is_sorted_by(|one, next| one.name < next.name) && gates.iter().all(|gate| held.may_restore(gate))
    }

    /// Restores the gates of a saved queue.
    pub fn restore_gates(&mut self, gates: &[GroupGate<'_>], rate: Rate) {
        if !gates.is_empty() {
            let held = self.gates_or_new(rate);
            gates.iter().for_each(|gate| held.restore(gate));
        }
    }
}
