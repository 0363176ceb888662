//! Groups: their turns, their gates, their settings, and what clients see of them.

use super::advance::PILED_MAX;
use super::dedupe::Ids;
use super::purge::{first_of_all, Purged, ToPurge};
use super::{At, Loss, Queue, Record, Sequence, Spans, State, StateKind, UnixMs};
use crate::gate::Pause;
use crate::groups::{is_group_name, Group, GroupGate, GroupLimits, TurnState};
use crate::id::GroupId;
use crate::name_index::NameHash;
use crate::record::States;
use crate::Counts;

/// The result of one step of a scan of groups: what it found, and the cursor of the next step.
pub type GroupPage<'a> = (Vec<Group<'a>>, Option<u64>);

/// Turns and limits.
impl Queue {
    /// Records that a group, or the messages without one, had its turn in the deliveries of one effect. O(log n).
    pub(crate) fn give_turn(&mut self, group: Option<GroupId>, turn: Option<u64>) {
        let Some(turn) = turn else { return };
        self.messages.set_turn(group, turn);
        if let Some(id) = group {
            self.view.retune(&self.messages, id);
        }
    }

    /// Counts a delivery from a group that begins at `now`, and records that the group had its turn. O(log n).
    pub(crate) fn serve_group(&mut self, group: Option<GroupId>, turn: Option<u64>, now: UnixMs) {
        if let Some(id) = group.filter(|id| self.messages.record_delivery(*id, now)) {
            self.view.advance_due(now);
            self.view.settle(&self.messages, id);
        }
        self.give_turn(group, turn);
    }

    /// Notes that a message is taken away without having been delivered. If it was due, its group has had work since
    /// then, and keeps its turn if its next message is due too. O(log n).
    pub(crate) fn claim_turn(&mut self, at: At, record: &Record, now: UnixMs) {
        if self.messages.has_groups() && record.state_at(now) == State::Ready {
            self.messages.claim_turn(self.messages.group(at), record.due, now);
        }
    }

    /// Applies new settings to the groups.
    pub(crate) fn change_group_limits(&mut self, now: UnixMs) {
        let limits = GroupLimits::from(&*self.settings);
        self.messages.set_group_rate(limits.rate, now);
        if self.messages.group_limits().is_none_or(|held| held == limits) {
            return;
        }
        self.view.advance_due(now);
        self.messages.set_group_limits(limits);
        self.view.set_group_limits(&self.messages, limits);
    }

    /// Corrects the recent deliveries of a rate limit and the turns of groups, if they lie in the future because
    /// another clock, ahead of this one, has recorded them. Returns the queue's own time if that was necessary; the
    /// correction is a write.
    pub fn correct_clock(&mut self, now: UnixMs) -> Option<UnixMs> {
        let now = self.own_time(now);
        let is_ahead = self.gate.is_ahead_of(now)
            || self.messages.turns_are_ahead_of(now)
            || self.messages.gates_are_ahead_of(now);
        is_ahead.then(|| {
            self.pull_back(now);
            now
        })
    }

    /// Applies a correction.
    pub(crate) fn pull_back(&mut self, now: UnixMs) {
        self.gate.pull_back_to(now);
        if self.messages.gates_are_ahead_of(now) {
            self.messages.pull_gates_back_to(now);
            self.view.advance_due(now);
            self.view.settle_all(&self.messages);
        }
        if self.messages.turns_are_ahead_of(now) {
            self.messages.pull_turns_back_to(now);
            self.view.retune_all(&self.messages);
        }
    }

    /// Whether these turns may be restored while the queue is loaded.
    pub(crate) fn may_restore(&self, turns: &TurnState<'_>) -> bool {
        self.messages.groups().is_some_and(|groups| groups.may_restore(turns))
    }

    /// Whether these gates may be restored while the queue is loaded.
    pub(crate) fn may_restore_gates(&self, gates: &[GroupGate<'_>]) -> bool {
        gates.iter().all(|gate| is_group_name(gate.name))
            && self.messages.may_restore_gates(gates, self.settings.grouprate)
    }

    /// Restores gates of a saved queue. O(number of these gates × log n), because a queue is saved in many pieces.
    pub(crate) fn restore_gates(&mut self, gates: &[GroupGate<'_>]) {
        self.messages.restore_gates(gates, self.settings.grouprate);
        for gate in gates {
            if let Some(id) = self.group(gate.name) {
                self.view.settle(&self.messages, id);
            }
        }
    }
}

/// Reading.
impl Queue {
    /// The number of groups that have a message that is not dead, as of the last advance. O(1).
    pub fn groups(&self) -> usize {
        self.view.live_groups()
    }

    /// The number of messages that are due at `now` and wait for their group. O(log n).
    pub fn blocked(&self, now: UnixMs) -> usize {
        self.view.blocked(self.own_time(now))
    }

    /// Visits the next `count` groups, in the order of the hashes of their names, from `cursor` on. Returns those that
    /// have a message that is not dead or that are paused, and the next cursor, which is `None` at the end.
    /// O(count × log n).
    pub fn scan_groups(&self, now: UnixMs, cursor: Option<u64>, count: usize) -> GroupPage<'_> {
        let now = self.own_time(now);
        let (mut page, mut left, mut last) = (Vec::new(), count, None);
        for (hash, id, name) in self.all_groups(cursor.map(NameHash::last_of)) {
            let here = hash.cursor();
            if left == 0 && last != Some(here) {
                return (page, last);
            }
            left = left.saturating_sub(1);
            last = Some(here);
            let messages = id.and_then(|id| self.view.summary(id));
            let (pause, next_delivery) = match self.messages.gates() {
                None => (Pause::Off, None),
                Some(gates) => (gates.pause(name).at(now), gates.next_delivery(name, now)),
            };
            if messages.is_some() || pause != Pause::Off {
                let (waiting, occupied, oldest_due) = messages.unwrap_or_default();
                page.push(Group { name, waiting, occupied, oldest_due, pause, next_delivery });
            }
        }
        (page, None)
    }

    /// The groups that have messages, and those that have a gate but no messages, by the hashes of their names,
    /// starting after `behind`.
    fn all_groups(&self, behind: Option<NameHash>) -> impl Iterator<Item = (NameHash, Option<GroupId>, &[u8])> {
        let names = self.messages.groups();
        let with_messages = names
            .into_iter()
            .flat_map(move |names| names.iter_behind(behind).map(|(hash, id)| (hash, Some(id), names.name(id))));
        let gates = self.messages.gates().into_iter().flat_map(move |gates| gates.iter_behind(behind));
        let has_messages = move |name: &[u8]| names.is_some_and(|names| names.find(name).is_some());
        let (mut with_messages, mut gates) = (with_messages.peekable(), gates.peekable());
        std::iter::from_fn(move || loop {
            let gate_is_next = match (with_messages.peek(), gates.peek()) {
                (Some((hash, ..)), Some((other, _))) => other < hash,
                (Some(_), None) => false,
                (None, _) => true,
            };
            if !gate_is_next {
                return with_messages.next();
            }
            let (hash, name) = gates.next()?;
            // Such a group was returned before, at the same hash: so few gates are passed over at a time.
            if !has_messages(name) {
                return Some((hash, None, name));
            }
        })
    }

    /// The number of messages of a group in each state at `now`. Due times are exact; ended leases and TTLs count as of
    /// the last advance. The payloads are not counted, and done messages belong to no group. O(log n).
    pub fn counts_of_group(&self, now: UnixMs, name: &[u8]) -> Counts {
        let Some(id) = self.group(name) else { return Counts::default() };
        let counts = self.view.count_in_group(id, self.own_time(now));
        let [delayed, ready, inflight, dead] = counts.map(|count| count as u64);
        Counts { delayed, ready, inflight, dead, ..Counts::default() }
    }

    /// The first messages of a group in a state, at most `count`, in the order in which they will leave it; dead
    /// messages are returned newest first. O(count × log n).
    pub fn peek_group(&self, now: UnixMs, name: &[u8], kind: StateKind, count: usize) -> Vec<Sequence> {
        self.group(name).map_or_else(Vec::new, |id| self.first_of_group(id, self.own_time(now), kind, count))
    }

    /// [`Queue::purge`] for the messages of a group.
    pub fn purge_group(&mut self, now: UnixMs, name: &[u8], which: &ToPurge) -> Purged {
        let now = self.observe(now);
        self.catch_up(now);
        // Done messages belong to no group.
        let chosen = match (self.group(name), which.states.within(States::HELD)) {
            (Some(id), Some(states)) => first_of_all(states, which.count.unwrap_or(usize::MAX), |kind, left| {
                let found = self.first_of_group(id, now, kind, self.to_look_at(left, which));
                self.spare_of(found, left, which, now)
            }),
            (None, _) | (_, None) => Vec::new(),
        };
        if which.states.contain(StateKind::InFlight) && self.view.inflight() > 0 {
            self.note_all_lost(&self.in_flight_of(chosen.iter().copied(), now), Loss::Purged);
        }
        let spans = self.messages.spans_of(chosen);
        Purged { count: self.remove_spans(&spans, now, Ids::Forgotten), messages: spans, done: Spans::default() }
    }

    pub(super) fn group(&self, name: &[u8]) -> Option<GroupId> {
        self.messages.groups()?.find(name)
    }

    /// The first messages of a group that are in a state. At most [`PILED_MAX`] that the view has in that state, but
    /// that are no longer in it, are passed over.
    fn first_of_group(&self, id: GroupId, now: UnixMs, kind: StateKind, count: usize) -> Vec<Sequence> {
        let is_so = |sequence: &Sequence| {
            self.messages.locate(*sequence).is_some_and(|at| self.messages.record(at).state_at(now).kind() == kind)
        };
        let seen = self.view.in_group(id, now, kind, count.saturating_add(PILED_MAX));
        seen.into_iter().filter(is_so).take(count).collect()
    }
}
