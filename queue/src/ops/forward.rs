//! Forwarding: the server itself passes the first messages in delivery order to another key or to a channel.
//!
//! This is a delivery without a lease, of one message after another, in two steps. The server first learns which
//! messages are next ([`Queue::next_to_forward`]) and writes them to their target. It then removes those that it has
//! written ([`Queue::forwarded`]). If the target refuses a message, the message stays as it was, and the queue tries
//! again later ([`Queue::forwarding_failed`]).
//!
//! Dead messages take the same two steps, but no delivery: a pause and the limits do not hold them back.

#[cfg(test)]
mod tests;

use super::advance::PILED_MAX;
use super::dedupe::Ids;
use super::pop::Pop;
use super::{DurationMs, Ended, Queue, Reason, Sequence, Spans, State, StateKind, UnixMs};
use crate::errors::Errors;
use crate::forward::{Failing, Forward, Forwarding, Source, Targets, RETRY};
use crate::gate::Lease;
use crate::groups::Pops;
use crate::headers::Headers;
use crate::optional::OptionalParts;
use crate::store::Bytes;

/// A message to forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The message.
    pub sequence: Sequence,
    /// Its due time.
    pub due: UnixMs,
    /// Its name.
    pub name: Option<&'a [u8]>,
    /// The payload.
    pub payload: &'a [u8],
    /// Its headers.
    pub headers: Option<Headers<'a>>,
    /// Its priority.
    pub priority: i8,
    /// How it died, if it is dead.
    pub death: Option<Death<'a>>,
}

/// How a message died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death<'a> {
    /// The reason.
    pub reason: Reason,
    /// Its last error.
    pub error: Option<&'a [u8]>,
    /// The number of its attempts.
    pub attempts: u32,
    /// The instant.
    pub died: UnixMs,
}

/// How an attempt to forward compares with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing changed: both succeeded, or both failed with the same error.
    Same,
    /// It failed with another error, or for the first time.
    NewError,
    /// It succeeded after a failure.
    Recovered,
}

impl Queue {
    /// Where the queue forwards the messages that are due; `None` if they wait for a pop.
    pub fn forward(&self) -> Option<&Forward> {
        self.target(Source::Due)
    }

    /// Where the queue forwards these messages; `None` if they stay.
    pub fn target(&self, source: Source) -> Option<&Forward> {
        self.forwarding(source).map(|forwarding| &forwarding.to)
    }

    /// Where the queue forwards its messages.
    pub fn targets(&self) -> Targets {
        let [due, dead] = Source::ALL.map(|source| self.target(source).cloned().map(Box::new));
        Targets { due, dead }
    }

    /// Whether the queue forwards any messages. O(1).
    #[inline]
    pub fn forwards(&self) -> bool {
        self.optional.held().is_some_and(|parts| parts.forwarding.is_some() || parts.dead_forwarding.is_some())
    }

    /// Why the queue cannot forward these messages at present; `None` if it can, or does not forward them at all.
    pub fn failing(&self, source: Source) -> Option<&Failing> {
        self.forwarding(source)?.failing.as_ref()
    }

    fn forwarding(&self, source: Source) -> Option<&Forwarding> {
        match source {
            Source::Due => self.optional.forwarding.as_deref(),
            Source::Dead => self.optional.dead_forwarding.as_deref(),
        }
    }

    /// Sets where the queue forwards these messages. If the target changes, the failure of the old one is forgotten.
    /// O(1).
    pub fn forward_to(&mut self, now: UnixMs, source: Source, to: Option<Forward>) {
        self.observe(now);
        self.set_target(source, to.as_ref());
    }

    /// Applies a change of where the queue forwards its messages.
    pub(crate) fn set_targets(&mut self, targets: &Targets) {
        Source::ALL.into_iter().for_each(|source| self.set_target(source, targets.target(source)));
    }

    fn set_target(&mut self, source: Source, to: Option<&Forward>) {
        if self.target(source) != to {
            match to.cloned() {
                Some(to) => {
                    *part(self.optional.for_adding(), source) = Some(Box::new(Forwarding { to, failing: None }))
                }
                None => drop(self.optional.take(|parts| part(parts, source))),
            }
        }
    }

    /// When the queue has these messages to forward: the instant of the view if it has some now, or the time of the
    /// next attempt, by the clock of the server, if the last one failed. `None` if there are none, or if none may be
    /// delivered before a command or time allows it; the latter is part of [`Queue::next_wake`]. O(1), and
    /// O(priorities in use) for a queue that forwards what is due.
    pub fn next_forward(&self, source: Source) -> Option<UnixMs> {
        let forwarding = self.forwarding(source)?;
        let at = self.view.at();
        self.has_to_forward(at, source).then(|| forwarding.failing.as_ref().map_or(at, |failing| failing.retry))
    }

    /// Whether the queue has such messages at `now`, as of the last advance.
    fn has_to_forward(&self, now: UnixMs, source: Source) -> bool {
        match source {
            Source::Due => self.has_deliverable(now),
            Source::Dead => self.view.oldest_dead().is_some(),
        }
    }

    /// Whether the queue has messages to forward at `now` and may try to: it does not wait after a failure. The wait is
    /// measured by the clock of the server and not by the queue's own time, which stands still if the clock was set
    /// back.
    pub fn may_forward(&self, now: UnixMs, source: Source) -> bool {
        let may_try = self.forwarding(source).is_some_and(|forwarding| {
            forwarding.failing.as_ref().is_none_or(|failing| {
                // A time beyond the next attempt was planned under a clock that has stepped back since.
                failing.retry <= now || failing.retry > now.after(RETRY)
            })
        });
        may_try && self.has_to_forward(now, source)
    }

    /// Whether dead messages are forwarded and the target accepts them, so that none of them is dropped. O(1).
    #[inline]
    pub(crate) fn moves_dead(&self) -> bool {
        self.forwarding(Source::Dead).is_some_and(|forwarding| forwarding.failing.is_none())
    }

    /// Passes to `sink` the messages to forward at `now`, at most `count`, until `sink` returns `false`: those that
    /// single pops without a lease would deliver, or the oldest dead ones. O(log n) and O(1) for each message, besides
    /// what [`Queue::deliverable`] costs.
    pub fn next_to_forward(
        &mut self,
        now: UnixMs,
        source: Source,
        count: usize,
        mut sink: impl FnMut(Outgoing<'_>) -> bool,
    ) {
        let (now, next) = match source {
            Source::Due => self.next_due_to_forward(now, count),
            Source::Dead => {
                let now = self.observe(now);
                self.catch_up(now);
                (now, self.view.oldest_of_dead(count))
            }
        };
        for sequence in next {
            let Some((at, record)) = self.messages.locate_record(sequence) else { break };
            let Bytes { name, payload, headers, errors, .. } = self.messages.bytes(at);
            let death = match record.state_at(now) {
                State::Dead { died, reason } => {
                    Some(Death { reason, error: errors.map(Errors::last), attempts: record.attempts, died })
                }
                State::Delayed | State::Ready | State::InFlight => None,
            };
            if !sink(Outgoing { sequence, due: record.due, name, payload, headers, priority: record.priority, death }) {
                break;
            }
        }
    }

    /// The messages that single pops without a lease would deliver, and the queue's own time.
    fn next_due_to_forward(&mut self, now: UnixMs, count: usize) -> (UnixMs, Vec<Sequence>) {
        let open = self.deliverable(now, &Pop { count, lease: Lease::NoAck });
        let now = self.own_time(now);
        let next = match self.messages.has_groups() {
            true if open > 0 => self.next_of_groups(now, count.min(self.room_to_take(now))),
            _ => self.view.in_state(now, StateKind::Ready, open),
        };
        (now, next)
    }

    /// [`Queue::next_to_forward`] for a queue with groups. A message whose TTL has ended is made dead first, as it may
    /// let another one come first. If too many had to be passed over, fewer than `count` may be returned.
    fn next_of_groups(&mut self, now: UnixMs, count: usize) -> Vec<Sequence> {
        let mut steps = count.saturating_mul(4).saturating_add(PILED_MAX);
        loop {
            let Some(upcoming) = self.view.upcoming(&self.messages, now, Pops::Single) else {
                return self.view.in_state(now, StateKind::Ready, count);
            };
            let mut next: Vec<Sequence> = upcoming.take(count).collect();
            let is_ready = |sequence: &Sequence| {
                self.messages.locate(*sequence).is_some_and(|at| self.messages.record(at).state_at(now) == State::Ready)
            };
            let Some(nth) = next.iter().position(|sequence| !is_ready(sequence)) else { return next };
            let expired = next.get(nth).copied();
            expired.and_then(|expired| self.refreshed(expired, now));
            steps = steps.saturating_sub(next.len());
            if steps == 0 {
                next.truncate(nth);
                return next;
            }
        }
    }

    /// Removes messages that were forwarded when they were due; recurring ones wait for their next run. Passes to
    /// `sink` how late each message was that had never been delivered. Returns those that the queue still held. O(log
    /// n) for each.
    pub fn forwarded(
        &mut self,
        now: UnixMs,
        sequences: &[Sequence],
        mut sink: impl FnMut(DurationMs),
    ) -> Vec<Sequence> {
        let now = self.observe(now);
        let (mut removed, mut runs) = (Vec::with_capacity(sequences.len()), Vec::new());
        for sequence in sequences {
            let Some((at, record)) = self.refreshed(*sequence, now) else { continue };
            let turn = self.messages.begin_turn(now);
            self.serve_group(self.messages.group(at), turn, now);
            self.count_lateness(at, &record, now).into_iter().for_each(&mut sink);
            if record.recurring {
                runs.push(*sequence);
            } else {
                self.take(at, &record, now);
            }
            removed.push(*sequence);
        }
        for run in runs {
            if let Some((at, record)) = self.refreshed(run, now) {
                self.end_run(at, &record, Ended::Forwarded, None, now);
            }
        }
        if !removed.is_empty() {
            self.note_delivery(now);
        }
        self.count_forwarded(removed.len(), now);
        removed
    }

    /// Counts messages that were forwarded at `now`.
    pub(crate) fn count_forwarded(&mut self, count: usize, now: UnixMs) {
        self.count_begun(count, now);
        if count > 0 {
            self.tally.others().forwarded += count as u64;
        }
    }

    /// Removes dead messages that were forwarded. Returns those that the queue still held. O(log n) for each.
    pub fn forwarded_dead(&mut self, now: UnixMs, sequences: &[Sequence]) -> Spans {
        let now = self.observe(now);
        let spans = self.messages.spans_of(sequences.to_vec());
        self.remove_forwarded_dead(&spans, now);
        spans
    }

    /// Applies that dead messages were forwarded.
    pub(crate) fn remove_forwarded_dead(&mut self, spans: &Spans, now: UnixMs) {
        let removed = self.remove_spans(spans, now, Ids::Remembered);
        if removed > 0 {
            self.tally.others().deadforwarded += removed as u64;
        }
    }

    fn forwarding_mut(&mut self, source: Source) -> Option<&mut Forwarding> {
        part(self.optional.held_mut()?, source).as_deref_mut()
    }

    /// Records that the target of these messages has accepted some.
    pub fn forwarding_works(&mut self, source: Source) -> Health {
        match self.forwarding_mut(source).and_then(|forwarding| forwarding.failing.take()) {
            Some(_) => Health::Recovered,
            None => Health::Same,
        }
    }

    /// Records that one of these messages could not be forwarded, with the server's text. The queue tries again after
    /// [`RETRY`].
    pub fn forwarding_failed(&mut self, now: UnixMs, source: Source, error: &str) -> Health {
        let Some(forwarding) = self.forwarding_mut(source) else { return Health::Same };
        let before = forwarding.failing.take();
        let is_same = before.as_ref().is_some_and(|before| &*before.error == error);
        let since = before.map_or(now, |before| before.since);
        forwarding.failing = Some(Failing { error: error.into(), since, retry: now.after(RETRY) });
        if is_same {
            Health::Same
        } else {
            Health::NewError
        }
    }
}

/// The part that forwards these messages.
fn part(parts: &mut OptionalParts, source: Source) -> &mut Option<Box<Forwarding>> {
    match source {
        Source::Due => &mut parts.forwarding,
        Source::Dead => &mut parts.dead_forwarding,
    }
}
