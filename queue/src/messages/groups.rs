//! The groups of the messages, and their turns.

use super::super::groups::{GroupLimits, GroupNames, TurnState};
use super::super::id::GroupId;
use super::super::store::At;
use super::super::time::UnixMs;
use super::Messages;

impl Messages {
    /// Whether the queue has groups: a message has one, or had one since the last effect.
    #[inline]
    pub fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    /// The groups; `None` if no message has one.
    pub fn groups(&self) -> Option<&GroupNames> {
        self.groups.as_deref()
    }

    /// The group of a message.
    #[inline]
    pub fn group(&self, at: At) -> Option<GroupId> {
        self.groups.as_ref()?;
        self.store.group(at)
    }

    /// The name of the group of a message.
    pub fn group_name(&self, at: At) -> Option<&[u8]> {
        let id = self.group(at)?;
        self.groups.as_ref().map(|groups| groups.name(id))
    }

    /// The settings that concern groups; `None` if no message has a group.
    pub fn group_limits(&self) -> Option<GroupLimits> {
        self.groups.as_ref().map(|groups| groups.limits)
    }

    /// Applies other settings to the groups.
    pub fn set_group_limits(&mut self, limits: GroupLimits) {
        self.groups.as_mut().into_iter().for_each(|groups| groups.set_limits(limits));
    }

    /// The last turn that was given to any group.
    pub fn last_turn(&self) -> u64 {
        self.groups.as_ref().map_or(0, |groups| groups.last_turn())
    }

    /// When a group, or the messages without one, gets its turn, given the due time of its first message.
    #[inline]
    pub fn place_in_round(&self, id: Option<GroupId>, due: UnixMs) -> u64 {
        self.groups.as_ref().map_or(0, |groups| groups.place(id, due))
    }

    /// Notes that a message which was due at `due` is taken away at `now` without a turn of its group. O(log n).
    pub fn claim_turn(&mut self, id: Option<GroupId>, due: UnixMs, now: UnixMs) {
        self.groups.as_mut().into_iter().for_each(|groups| groups.claim(id, due, now));
    }

    /// Sets the last turn of a group, or of the messages without one.
    pub fn set_turn(&mut self, id: Option<GroupId>, turn: u64) {
        self.groups.as_mut().into_iter().for_each(|groups| groups.set_turn(id, turn));
    }

    /// The turn of the deliveries of one effect, if groups take turns.
    #[inline]
    pub fn begin_turn(&mut self, now: UnixMs) -> Option<u64> {
        let groups = self.groups.as_mut().filter(|groups| groups.limits.by_turn)?;
        Some(groups.next_turn(now))
    }

    /// Ends the groups that have no message, because an effect is complete.
    #[inline]
    pub fn end_effect(&mut self) {
        if self.groups.is_some() {
            self.end_empty_groups();
        }
    }

    #[inline(never)]
    fn end_empty_groups(&mut self) {
        let Some(groups) = &mut self.groups else { return };
        groups.end_effect();
        if groups.is_empty() {
            self.groups = None;
        }
    }

    /// Whether a turn was given later than `now`.
    #[inline]
    pub fn turns_are_ahead_of(&self, now: UnixMs) -> bool {
        self.groups.as_ref().is_some_and(|groups| groups.is_ahead_of(now))
    }

    /// Makes turns that are later than `now` count as if they had been given at `now`.
    pub fn pull_turns_back_to(&mut self, now: UnixMs) {
        if let Some(groups) = self.groups.as_mut().filter(|groups| groups.is_ahead_of(now)) {
            groups.pull_back_to(now);
        }
    }

    /// Restores the turns of a saved queue.
    pub fn restore_turns(&mut self, turns: &TurnState<'_>) {
        self.groups.as_mut().into_iter().for_each(|groups| groups.restore(turns));
    }
}
