//! Recurring messages in the reference model, with a rule evaluation of its own.

use crate::batches::Left;
use crate::reference::{after, Message, Model, Name, State, NEVER};
use dq_queue::time::UnixMs;
use dq_queue::{Reason, StateKind};

/// What a client declares of a recurring message.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub every: u64,
    pub offset: u64,
    pub until: Option<u64>,
    pub times: Option<u64>,
    pub payload: Vec<u8>,
    pub priority: i8,
    pub retries: i32,
    pub lease: Option<u64>,
    pub ttl: u64,
    pub group: Option<Vec<u8>>,
    pub headers: Option<usize>,
}

impl Plan {
    fn rule(&self) -> (u64, u64) {
        (self.every, self.offset)
    }

    /// The first instant after `now` that is `offset` more than a multiple of `every`.
    pub fn next_after(&self, now: u64) -> Option<u64> {
        let mut candidate = now + 1;
        let beyond = candidate % self.every;
        candidate += if beyond <= self.offset { self.offset - beyond } else { self.every - beyond + self.offset };
        (candidate <= UnixMs::MAX.as_ms()).then_some(candidate)
    }

    fn covers(&self, due: u64) -> bool {
        self.until.is_none_or(|until| due <= until)
    }
}

/// The state of a recurring message besides that of every message.
#[derive(Clone, Debug, Default)]
pub struct Recurs {
    pub plan: Option<Plan>,
    pub left: Option<u64>,
    pub runs: u64,
    pub failed: u64,
    pub last: Option<u64>,
    /// What is to apply from the next run on, and the first due time that was asked for.
    pub next: Option<(Plan, Option<u64>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Scheduled {
    Created,
    Changed,
    Deferred { taken_back: bool },
    Unchanged,
    AfterEnd,
    Closed,
    TooLarge,
    Full(u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    Acked,
    Taken,
    Nacked,
    Buried,
    ByTime,
}

/// The end of a run: the message, the sequence of its dead copy, and the due time and the sequence of the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub sequence: u64,
    pub copy: Option<u64>,
    pub next: Option<(u64, u64)>,
}

impl Model {
    fn give(&mut self) -> u64 {
        self.given = (self.now << 20).max(self.given + 1);
        self.given
    }

    pub fn schedule(&mut self, name: &[u8], plan: &Plan, at: Option<u64>) -> (Scheduled, Vec<End>) {
        let now = self.now;
        let held = self.find(&Name::Text(name.to_vec()));
        let begun = |message: &Message| message.attempts > 0 && message.kind() != StateKind::Dead;
        if let Some(recurs) = held.and_then(|held| self.messages[held].schedule()) {
            let coming = recurs.next.as_ref().map(|(plan, _)| plan).or(recurs.plan.as_ref());
            if coming == Some(plan) {
                return (Scheduled::Unchanged, Vec::new());
            }
        }
        if self.now < self.closed_until {
            return (Scheduled::Closed, Vec::new());
        }
        if self.settings.maxpayload > 0 && plan.payload.len() as u64 > self.settings.maxpayload {
            return (Scheduled::TooLarge, Vec::new());
        }
        let same_rule = |message: &Message| {
            let held = message.recurs.as_ref().and_then(|recurs| recurs.plan.as_ref());
            held.is_some_and(|held| held.rule() == plan.rule())
        };
        let waits = |message: &Message| matches!(message.state, State::Delayed | State::Ready) && !begun(message);
        // A message that is kept during a delivery waits, and is replaced like any waiting message.
        let replaced = held.map(|held| &self.messages[held]).map(|held| held.next.as_deref().unwrap_or(held));
        let kept = replaced.filter(|held| waits(held) && same_rule(held));
        let first = kept.map(|held| held.due).or(at).or_else(|| plan.next_after(now));
        let same_end = kept.is_some_and(|held| {
            let held = held.recurs.as_ref().and_then(|recurs| recurs.plan.as_ref());
            held.is_some_and(|held| held.until == plan.until)
        });
        if !same_end && !first.is_some_and(|first| plan.covers(first)) {
            return (Scheduled::AfterEnd, Vec::new());
        }
        let counts = held.is_some_and(|held| !self.messages[held].is_dead());
        let live = self.live();
        if !counts && self.settings.maxlen > 0 && live >= self.settings.maxlen {
            self.totals.rejected_full += 1;
            return (Scheduled::Full(live), Vec::new());
        }
        let mut ends = Vec::new();
        if let Some(held) = held.filter(|held| self.messages[*held].recurs.is_some()) {
            ends.extend(self.end_by_time(held));
            self.settle_batches();
            self.forget_groups();
        }
        let held = self.find(&Name::Text(name.to_vec()));
        let beside = held.filter(|held| self.messages[*held].next.is_some());
        if let Some(held) = held.filter(|held| beside.is_none() && begun(&self.messages[*held])) {
            let rule_stays = same_rule(&self.messages[held]);
            let recurs = self.messages[held].recurs.get_or_insert_default();
            let taken_back = recurs.plan.as_ref() == Some(plan);
            // A first due time counts with a new rule only, and stays as long as that rule is declared.
            let first = match &recurs.next {
                _ if rule_stays => None,
                Some((declared, first)) if declared.rule() == plan.rule() => *first,
                _ => at,
            };
            recurs.next = (!taken_back).then(|| (plan.clone(), first));
            return (Scheduled::Deferred { taken_back }, ends);
        }
        let before = match beside {
            Some(held) => self.messages[held].next.as_deref().cloned(),
            None => held.map(|held| self.messages.remove(held)),
        };
        if let Some(replaced) = before.as_ref().filter(|_| beside.is_none()) {
            self.claim_turn(replaced);
            self.leave_as_removed(replaced);
        }
        let mut recurs = Recurs { left: plan.times, ..Recurs::default() };
        let mut due = first.unwrap();
        if let Some(message) = &before {
            if let Some(old) = message.recurs.as_ref().filter(|old| old.plan.is_some()) {
                recurs = Recurs { next: None, ..old.clone() };
                if old.plan.as_ref().unwrap().times != plan.times {
                    recurs.left = plan.times;
                }
                if same_rule(message) {
                    due = message.due;
                }
            }
        }
        recurs.plan = Some(plan.clone());
        // The id is held again. The window of what had it goes on, and a schedule begins none.
        let accepted = before.as_ref().map_or_else(|| self.accepted_of_gone(name), |before| before.accepted);
        self.known.retain(|(known, _)| known != name);
        self.drop_done_named(name);
        self.enter_group(plan.group.as_deref());
        let sequence = self.give();
        let message = Message {
            accepted,
            chain: None,
            sequence,
            name: Some(name.to_vec()),
            payload: plan.payload.clone(),
            error: None,
            errors: Vec::new(),
            checkpoint: Vec::new(),
            priority: plan.priority,
            due,
            retries: plan.retries,
            lease: plan.lease,
            ttl: plan.ttl,
            expires: if plan.ttl == 0 { NEVER } else { after(due.max(now), plan.ttl) },
            attempts: 0,
            receipt: None,
            state: State::Delayed,
            given_back: None,
            retain: None,
            recurs: Some(recurs),
            group: plan.group.clone(),
            headers: plan.headers,
            next: None,
            own: None,
            consumer: None,
        };
        match beside {
            Some(held) => self.keep_beside(held, message),
            None => self.messages.push(message),
        }
        self.totals.pushed += u64::from(before.is_none());
        self.advance(now);
        (if before.is_some() { Scheduled::Changed } else { Scheduled::Created }, ends)
    }

    /// Ends the run of a message that time has made fail.
    pub fn end_by_time(&mut self, at: usize) -> Option<End> {
        let State::Dead { died, reason } = self.messages[at].state else { return None };
        Some(self.end_run(at, How::ByTime, Some((died, reason)), None))
    }

    /// Those whose run time has made fail, in the order in which they failed.
    pub fn failed_runs(&self) -> Vec<u64> {
        let mut failed: Vec<(u64, u64)> = Vec::new();
        for message in self.messages.iter().filter(|message| message.recurs.is_some()) {
            if let State::Dead { died, .. } = message.state {
                failed.push((died, message.sequence));
            }
        }
        failed.sort_unstable();
        failed.into_iter().map(|(_, sequence)| sequence).collect()
    }

    /// Ends a run. An error has the attempt that ended with it.
    pub fn end_run(&mut self, at: usize, how: How, failure: Option<(u64, Reason)>, error: Option<(u32, &[u8])>) -> End {
        let now = self.now;
        let old = self.messages[at].clone();
        self.leave_batch(old.sequence, if failure.is_some() { Left::Dead } else { Left::Acked });
        let mut recurs = old.recurs.clone().unwrap();
        if how == How::Buried {
            self.claim_turn(&old);
        }
        match how {
            How::Acked => self.totals.acked += 1,
            How::Nacked | How::Taken | How::Buried | How::ByTime => {}
        }
        if let (Some((_, reason)), How::Nacked | How::Buried) = (failure, how) {
            self.totals.died += 1;
            self.totals.expired += u64::from(reason == Reason::Expired);
        }
        let copy = failure.filter(|_| self.settings.deadlen != Some(0)).map(|(died, reason)| {
            let sequence = self.give();
            let state = State::Dead { died, reason };
            let mut copy = Message {
                accepted: sequence >> 20,
                chain: None,
                sequence,
                name: None,
                state,
                receipt: None,
                retain: None,
                recurs: None,
                given_back: None,
                ..old.clone()
            };
            if let Some((attempt, error)) = error {
                copy.note_error(attempt, now, error, self.settings.errors);
            }
            self.messages.push(copy);
            sequence
        });
        // The next time.
        let held_back = old.receipt.map_or(now, |_| now.max(old.due));
        let next_of = |plan: &Plan| {
            let next = plan.next_after(held_back)?;
            let is_this_run = how == How::Buried && old.state == State::Delayed && next == old.due;
            if is_this_run {
                plan.next_after(next)
            } else {
                Some(next)
            }
        };
        if recurs.plan.is_some() {
            recurs.runs += 1;
            recurs.failed += u64::from(failure.is_some());
            recurs.left = recurs.left.map(|left| left - 1);
            if how == How::Taken {
                recurs.last = Some(now);
            }
        } else {
            recurs.last = None;
        }
        let (plan, due) = match recurs.next.take() {
            Some((plan, first)) => {
                if recurs.plan.as_ref().is_none_or(|old| old.times != plan.times) {
                    recurs.left = plan.times;
                }
                let due = first.filter(|first| *first > now).or_else(|| next_of(&plan));
                (plan, due)
            }
            None => {
                let plan = recurs.plan.clone().unwrap();
                let due = next_of(&plan);
                (plan, due)
            }
        };
        let renewed = old.recurs.as_ref().unwrap().next.is_some();
        let due = due.filter(|due| recurs.left != Some(0) && plan.covers(*due));
        let at = self.messages.iter().position(|message| message.sequence == old.sequence).unwrap();
        self.messages.remove(at);
        let next = due.map(|due| {
            let sequence = if renewed { self.give() } else { old.sequence };
            recurs.plan = Some(plan.clone());
            if renewed {
                self.enter_group(plan.group.as_deref());
            }
            let ttl = if renewed { plan.ttl } else { old.ttl };
            self.messages.push(Message {
                accepted: old.accepted,
                chain: None,
                sequence,
                error: None,
                errors: Vec::new(),
                checkpoint: Vec::new(),
                payload: if renewed { plan.payload.clone() } else { old.payload.clone() },
                priority: plan.priority,
                retries: if renewed { plan.retries } else { old.retries },
                lease: if renewed { plan.lease } else { old.lease },
                ttl,
                due,
                expires: if ttl == 0 { NEVER } else { after(due.max(now), ttl) },
                attempts: 0,
                receipt: None,
                state: State::Delayed,
                given_back: None,
                retain: None,
                recurs: Some(recurs),
                next: None,
                own: None,
                consumer: None,
                name: old.name.clone(),
                group: if renewed { plan.group.clone() } else { old.group.clone() },
                headers: if renewed { plan.headers } else { old.headers },
            });
            (due, sequence)
        });
        if next.is_none() && old.accepted > 0 {
            self.remember(&old);
        }
        self.advance(now);
        End { sequence: old.sequence, copy, next }
    }
}
