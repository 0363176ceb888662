//! Groups in the reference model: the next message to deliver is found by looking at all messages.

use crate::history::Purge;
use crate::reference::{Message, Model, State};
use dq_queue::settings::GroupOrder;
use dq_queue::StateKind;
use std::collections::BTreeMap;

/// When groups, and the messages without one, had their last turns.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    turns: BTreeMap<Vec<u8>, u64>,
    ungrouped: u64,
    last: u64,
    /// Since when groups, and under `None` the messages without one, had work that was taken from them before their
    /// turn, and when that was.
    claims: BTreeMap<Option<Vec<u8>>, (u64, u64)>,
    /// The groups that existed when the current effect began.
    began: Vec<Vec<u8>>,
}

/// One pop.
pub struct Round {
    /// The turn that its deliveries give, if groups take turns.
    turn: Option<u64>,
    served: Vec<Option<Vec<u8>>>,
    /// The groups of the messages that it removed.
    held: Vec<Vec<u8>>,
}

/// A group as clients see it: name, waiting, occupied, oldest due time, end of its pause, next delivery.
type Shown = (Vec<u8>, usize, usize, Option<u64>, u64, Option<u64>);

impl Message {
    /// Its group; while another message is kept during its delivery, the group of that one.
    pub fn group_now(&self) -> Option<&[u8]> {
        self.next.as_ref().map_or(&self.group, |next| &next.group).as_deref()
    }

    fn is_alive(&self) -> bool {
        !matches!(self.state, State::Dead { .. })
    }

    fn is_in(&self, group: &[u8]) -> bool {
        self.group_now() == Some(group)
    }

    fn occupies(&self) -> bool {
        self.attempts > 0 && self.is_alive()
    }
}

impl Model {
    pub fn by_turn(&self) -> bool {
        self.settings.grouporder == GroupOrder::Turn
    }

    /// An effect is complete: the groups that exist no more are forgotten.
    pub fn forget_groups(&mut self) {
        let messages = &self.messages;
        let exists = |group: &[u8]| messages.iter().any(|message| message.is_in(group));
        self.rounds.turns.retain(|group, _| exists(group));
        self.rounds.claims.retain(|group, _| group.as_deref().is_none_or(exists));
        if messages.iter().all(|message| message.group_now().is_none()) {
            self.rounds = Rounds::default();
        }
        self.rounds.began = self.group_names().into_iter().map(<[u8]>::to_vec).collect();
    }

    /// A message is about to be added to a group. A new group enters at the end of the round.
    pub fn enter_group(&mut self, group: Option<&[u8]>) {
        let Some(group) = group else { return };
        if self.rounds.began.iter().any(|began| began == group) {
            return;
        }
        if self.by_turn() && !self.messages.iter().any(|message| message.is_in(group)) {
            self.rounds.last = self.rounds.last.max(self.now << 20);
            self.rounds.turns.insert(group.to_vec(), self.rounds.last);
        }
    }

    /// [`Model::claim_turn`] for messages that are about to be purged, in push order.
    pub fn keep_turns(&mut self, chosen: &[u64]) {
        let mut gone: Vec<Message> =
            self.messages.iter().filter(|message| chosen.contains(&message.sequence)).cloned().collect();
        gone.sort_by_key(|message| message.sequence);
        gone.iter().for_each(|message| self.claim_turn(message));
    }

    pub fn begin_round(&mut self, count: usize) -> Round {
        let has_groups = self.messages.iter().any(|message| message.group_now().is_some());
        let turn = (count > 0 && has_groups && self.by_turn()).then(|| self.rounds.last.max(self.now << 20) + 1);
        self.rounds.last = turn.unwrap_or(self.rounds.last);
        Round { turn, served: Vec::new(), held: Vec::new() }
    }

    pub fn end_round(&mut self, round: Round) {
        for group in round.served {
            self.give_turn(group, round.turn.unwrap());
        }
    }

    /// A message is about to be taken away without a turn of its group.
    pub fn claim_turn(&mut self, message: &Message) {
        let has_groups = !self.rounds.began.is_empty() || self.messages.iter().any(|held| held.group_now().is_some());
        if message.state != State::Ready || !self.by_turn() || !has_groups {
            return;
        }
        let (due, now) = (message.due, self.now);
        let (since, until) = *self.rounds.claims.get(&message.group).unwrap_or(&(due, now));
        let since = if due <= until { since.min(due) } else { due };
        self.rounds.claims.insert(message.group.clone(), (since, now));
    }

    fn give_turn(&mut self, group: Option<Vec<u8>>, turn: u64) {
        self.rounds.claims.remove(&group);
        match group {
            None => self.rounds.ungrouped = turn,
            Some(group) => drop(self.rounds.turns.insert(group, turn)),
        }
    }

    /// The message that is delivered next.
    pub fn serve_next(&mut self, round: &mut Round, removed: bool) -> Message {
        let mut occupied: BTreeMap<&[u8], u64> = BTreeMap::new();
        for group in self.messages.iter().filter(|message| message.occupies()).filter_map(|held| held.group_now()) {
            *occupied.entry(group).or_default() += 1;
        }
        for group in &round.held {
            *occupied.entry(group).or_default() += 1;
        }
        // The first message of each group that may go.
        let mut firsts: BTreeMap<Option<&[u8]>, &Message> = BTreeMap::new();
        for message in self.messages.iter().filter(|message| message.state == State::Ready) {
            let group = message.group_now();
            if group.is_some_and(|group| self.gate_room(group) == 0) {
                continue;
            }
            let limit = self.settings.groupinflight;
            let has_room = group.is_none_or(|group| occupied.get(group).is_none_or(|count| *count < limit));
            if limit > 0 && !has_room && message.attempts == 0 {
                continue;
            }
            let is_before = |other: &Message| match group {
                None => message.order() < other.order(),
                Some(_) => (message.due, message.sequence) < (other.due, other.sequence),
            };
            let first = firsts.entry(group).or_insert(message);
            if is_before(first) {
                *first = message;
            }
        }
        let place = |(group, message): (Option<&[u8]>, &Message)| {
            let turn = match group {
                None => self.rounds.ungrouped,
                Some(group) => self.rounds.turns.get(group).copied().unwrap_or(0),
            };
            let claim = self.rounds.claims.get(&group.map(<[u8]>::to_vec)).filter(|(_, until)| message.due <= *until);
            let since = claim.map_or(message.due, |(since, _)| message.due.min(*since));
            let time = if self.by_turn() && round.turn.is_some() { turn.max(since << 20) } else { message.due };
            (-i32::from(message.priority), time, message.sequence)
        };
        let (group, next) = firsts.into_iter().min_by_key(|(group, message)| place((*group, message))).unwrap();
        let (group, next) = (group.map(<[u8]>::to_vec), next.clone());
        if let Some(group) = &group {
            self.begin_of_group(group);
        }
        if removed {
            round.held.extend(group.clone());
        }
        if let Some(turn) = round.turn {
            round.served.push(group.clone());
            self.give_turn(group, turn + round.served.len() as u64);
        }
        next
    }

    pub fn group_names(&self) -> Vec<&[u8]> {
        let mut names: Vec<&[u8]> = self.messages.iter().filter_map(|message| message.group_now()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The number of ready messages of a group that it would deliver, and of those that wait for it.
    fn open_of(&self, group: &[u8]) -> (usize, usize) {
        let of_group = || self.messages.iter().filter(|message| message.is_in(group));
        let ready = |retry: bool| {
            of_group().filter(|message| message.state == State::Ready && (message.attempts > 0) == retry).count()
        };
        let room = match self.settings.groupinflight {
            0 => usize::MAX,
            most => (most as usize).saturating_sub(self.occupied(group)),
        };
        let (retries, fresh) = (ready(true), ready(false));
        let open = (retries + fresh.min(room)).min(self.gate_room(group));
        (open, retries + fresh - open)
    }

    /// How many messages occupy a group.
    pub fn occupied(&self, group: &[u8]) -> usize {
        self.messages.iter().filter(|message| message.is_in(group) && message.occupies()).count()
    }

    /// The number of messages that a pop of any number would deliver.
    pub fn open(&self) -> usize {
        let ungrouped = self.messages.iter().filter(|held| held.group_now().is_none() && held.state == State::Ready);
        ungrouped.count() + self.group_names().iter().map(|name| self.open_of(name).0).sum::<usize>()
    }

    pub fn blocked(&self) -> usize {
        self.group_names().iter().map(|name| self.open_of(name).1).sum()
    }

    /// The groups with a message that is not dead, and those that are paused, by name.
    pub fn groups(&self) -> Vec<Shown> {
        let limited = self.settings.groupinflight > 0;
        let shown = |name: &&[u8]| {
            let alive = || self.messages.iter().filter(|message| message.is_in(name) && message.is_alive());
            let waits = |message: &&Message| {
                matches!(message.state, State::Delayed | State::Ready) && !(limited && message.occupies())
            };
            let occupied = if limited { alive().filter(|message| message.occupies()).count() } else { 0 };
            let oldest = alive().filter(waits).map(|message| message.due).min();
            let paused_until = Some(self.group_paused_until(name)).filter(|until| *until > self.now);
            if alive().next().is_none() && paused_until.is_none() {
                return None;
            }
            let next_delivery = self.next_delivery_of(name);
            let waiting = alive().filter(waits).count();
            Some((name.to_vec(), waiting, occupied, oldest, paused_until.unwrap_or(0), next_delivery))
        };
        let paused = self.paused_groups();
        let mut names = self.group_names();
        names.extend(paused.iter().map(|name| &name[..]));
        names.sort_unstable();
        names.dedup();
        names.iter().filter_map(shown).collect()
    }

    /// Whether a group has a message that is not dead.
    pub fn is_live_group(&self, group: &[u8]) -> bool {
        self.messages.iter().any(|message| message.is_in(group) && message.is_alive())
    }

    /// The messages of a group in a state, in the order in which they leave it.
    pub fn peek_group(&self, group: &[u8], kind: StateKind) -> Vec<u64> {
        let those = self.messages.iter().filter(|message| message.is_in(group) && message.kind() == kind);
        if matches!(kind, StateKind::InFlight | StateKind::Dead) {
            let those: Vec<u64> = those.map(|message| message.sequence).collect();
            return self.peek(kind).into_iter().filter(|sequence| those.contains(sequence)).collect();
        }
        let mut those: Vec<(u64, u64)> = those.map(|message| (message.due, message.sequence)).collect();
        those.sort_unstable();
        those.into_iter().map(|(_, sequence)| sequence).collect()
    }

    /// Removes the first messages of a group in these states. Returns their sequences.
    pub fn purge_group(&mut self, group: &[u8], kinds: &[StateKind], of: &Purge) -> Vec<u64> {
        let held = kinds.iter().filter(|kind| **kind != StateKind::Done);
        let mut chosen: Vec<u64> = held.flat_map(|kind| self.peek_group(group, *kind)).collect();
        let spared = self.spared(of.spare, of.older);
        chosen.retain(|sequence| !spared.contains(sequence));
        chosen.truncate(of.count.unwrap_or(usize::MAX));
        self.leave_as_purged(&chosen);
        self.keep_turns(&chosen);
        self.messages.retain(|message| !chosen.contains(&message.sequence));
        chosen
    }
}
