//! The pauses and the rates of groups in the reference model: a list of instants for each group.

use crate::reference::{after, Message, Model, State, NEVER};
use std::collections::BTreeMap;

/// The gates of all groups, by name.
#[derive(Clone, Debug, Default)]
pub struct Gates(BTreeMap<Vec<u8>, Gate>);

#[derive(Clone, Debug, Default)]
struct Gate {
    paused_until: u64,
    /// The instants of recent deliveries, oldest first.
    begun: Vec<u64>,
}

impl Gates {
    /// Deliveries later than `now` count as if they had begun then.
    pub fn pull_back_to(&mut self, now: u64) {
        let begun = self.0.values_mut().flat_map(|gate| &mut gate.begun);
        begun.for_each(|begun| *begun = (*begun).min(now));
    }
}

impl Model {
    fn group_period(&self) -> u64 {
        self.settings.grouprate.period.as_ms()
    }

    /// Drops the gates of which nothing is left.
    fn forget_gates(&mut self) {
        let (now, period) = (self.now, self.group_period());
        self.gates.0.retain(|_, gate| gate.paused_until > now || gate.begun.iter().any(|at| after(*at, period) > now));
    }

    /// Applies new settings, of which the rate of groups is another one.
    pub fn alter_gates(&mut self) {
        if self.settings.grouprate.is_off() {
            self.gates.0.values_mut().for_each(|gate| gate.begun.clear());
        }
        self.forget_gates();
    }

    /// Counts a delivery from a group.
    pub fn begin_of_group(&mut self, group: &[u8]) {
        if self.settings.grouprate.is_off() {
            return;
        }
        self.forget_gates();
        let (now, period) = (self.now, self.group_period());
        let gate = self.gates.0.entry(group.to_vec()).or_default();
        gate.begun.retain(|at| after(*at, period) > now);
        gate.begun.push(now);
    }

    pub fn group_paused_until(&self, group: &[u8]) -> u64 {
        self.gates.0.get(group).map_or(0, |gate| gate.paused_until)
    }

    /// Pauses a group until an instant, or resumes it. Returns whether that changed anything.
    pub fn suspend_group(&mut self, group: &[u8], until: Option<u64>) -> bool {
        let held = Some(self.group_paused_until(group)).filter(|held| *held > self.now);
        let changes = match until {
            Some(until) => until > self.now && Some(until) > held,
            None => held.is_some(),
        };
        if changes {
            self.forget_gates();
            self.gates.0.entry(group.to_vec()).or_default().paused_until = until.unwrap_or(0);
            self.forget_gates();
        }
        changes
    }

    /// The groups that are paused.
    pub fn paused_groups(&self) -> Vec<Vec<u8>> {
        self.gates.0.iter().filter(|(_, gate)| gate.paused_until > self.now).map(|(name, _)| name.clone()).collect()
    }

    fn recent_of_group(&self, group: &[u8]) -> Vec<u64> {
        let begun = self.gates.0.get(group).map_or(&[][..], |gate| &gate.begun);
        begun.iter().copied().filter(|at| after(*at, self.group_period()) > self.now).collect()
    }

    /// How many messages of a group may be delivered.
    pub fn gate_room(&self, group: &[u8]) -> usize {
        if self.group_paused_until(group) > self.now {
            return 0;
        }
        if self.settings.grouprate.is_off() {
            return usize::MAX;
        }
        (self.settings.grouprate.most as usize).saturating_sub(self.recent_of_group(group).len())
    }

    /// When the rate of a group allows a delivery again, if it allows none now.
    pub fn next_delivery_of(&self, group: &[u8]) -> Option<u64> {
        let (recent, rate) = (self.recent_of_group(group), self.settings.grouprate);
        if rate.is_off() {
            return None;
        }
        let last = recent.len().checked_sub(rate.most as usize)?;
        Some(after(recent[last], self.group_period()))
    }

    /// The next instant at which a group that holds messages back may deliver more.
    pub fn next_opening(&self) -> Option<u64> {
        let limit = self.settings.groupinflight;
        let names = self.group_names();
        let opening = |name: &&[u8]| {
            let of_group = || self.messages.iter().filter(|held| held.group_now() == Some(*name));
            let waits = |held: &&Message| matches!(held.state, State::Delayed | State::Ready);
            let retries = of_group().filter(waits).filter(|held| held.attempts > 0).count();
            let seats = if limit == 0 { usize::MAX } else { (limit as usize).saturating_sub(self.occupied(name)) };
            let fresh = of_group().filter(waits).filter(|held| held.attempts == 0).count().min(seats);
            if retries + fresh <= self.gate_room(name) {
                return None;
            }
            match self.group_paused_until(name) {
                NEVER => None,
                until if until > self.now => Some(until),
                _ => self.recent_of_group(name).first().map(|at| after(*at, self.group_period())),
            }
        };
        names.iter().filter_map(opening).min()
    }
}
