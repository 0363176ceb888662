//! Forwarding: the server itself passes the first messages in delivery order to another key or to a channel.
//!
//! This is a delivery without a lease, of one message after another, in two steps. The server first learns which
//! messages are next ([`Queue::next_to_forward`]) and writes them to their target. It then removes those that it has
//! written ([`Queue::forwarded`]). If the target refuses a message, the message stays as it was, and the queue tries
//! again later ([`Queue::forwarding_failed`]).
//!
//! Dead messages take the same two steps, but no delivery: a pause and the limits do not hold them back.

use super::advance::PILED_MAX;
use super::dedupe::Ids;
use super::pop::Pop;
use crate::errors::Errors;
use crate::forward::{Failing, Forward, Forwarding, Source, Targets, RETRY};
use crate::gate::Lease;
use crate::groups::Pops;
use crate::headers::Headers;
use crate::id::Sequence;
use crate::optional::OptionalParts;
use crate::record::{Reason, State, StateKind};
use crate::recurring::Ended;
use crate::spans::Spans;
use crate::store::Bytes;
use crate::time::{DurationMs, UnixMs};
use crate::Queue;

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
        Source::ALL.into_iter().for_each(|source| self.set_target(source, targets.of(source)));
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
            let Some((at, record)) = self.messages.of(sequence) else { break };
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

    /// Removes messages that were forwarded when they were due; recurring ones wait for their next run. Passes to `sink`
    /// how late each message was that had never been delivered. Returns those that the queue still held. O(log n) for
    /// each.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Floor, Id, Target};
    use crate::rate::Rate;
    use crate::settings::{GroupOrder, Settings};
    use crate::{Due, Flow, NewMessage};

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(1_760_000_000_000 + ms)
    }

    fn to_stream() -> Option<Forward> {
        Some(Forward::Stream { key: b"s"[..].into(), trim: None })
    }

    /// A queue that forwards, with messages that are due at 0, 1, 2 and so on.
    fn queue(settings: Settings, messages: u64) -> Queue {
        let (mut queue, mut floor) = (Queue::new(settings), Floor::default());
        queue.forward_to(at(0), Source::Due, to_stream());
        for nth in 0..messages {
            queue.push(at(0), &mut floor, &NewMessage { due: Some(Due::At(at(nth))), ..NewMessage::default() });
        }
        queue
    }

    fn next(queue: &mut Queue, now: u64, count: usize) -> Vec<Sequence> {
        let mut next = Vec::new();
        queue.next_to_forward(at(now), Source::Due, count, |message| {
            next.push(message.sequence);
            true
        });
        next
    }

    #[test]
    fn messages_are_forwarded_in_delivery_order_and_removed_once_written() {
        let mut queue = queue(Settings::default(), 4);
        let first = next(&mut queue, 2, 9);
        assert_eq!(first.len(), 3, "the fourth is not due");
        assert_eq!(next(&mut queue, 2, 9), first, "nothing was removed");
        assert_eq!(queue.forwarded(at(2), &first[..2], |_| ()), first[..2]);
        assert_eq!(next(&mut queue, 2, 9), first[2..]);
        assert_eq!(queue.forwarded(at(2), &first[..2], |_| ()), [], "each once");
        let totals = queue.totals();
        assert_eq!((totals.delivered, totals.forwarded, totals.acked), (2, 2, 0));
    }

    #[test]
    fn groups_are_forwarded_in_the_order_of_single_pops() {
        for by_turn in [GroupOrder::Due, GroupOrder::Turn] {
            let settings = Settings { grouporder: by_turn, ..Settings::default() };
            let filled = || {
                let (mut queue, mut floor) = (Queue::new(settings), Floor::default());
                for (payload, due, group) in
                    [("a1", 0, "a"), ("a2", 1, "a"), ("a3", 2, "a"), ("z", 9, "z"), ("b1", 1, "b"), ("b2", 10, "b")]
                {
                    let (payload, group, due) = (payload.as_bytes(), Some(group.as_bytes()), Some(Due::At(at(due))));
                    queue.push(at(0), &mut floor, &NewMessage { payload, due, group, ..NewMessage::default() });
                }
                queue
            };
            let mut popped = Vec::new();
            let mut singly = filled();
            for _ in 0..6 {
                let pop = Pop { count: 1, lease: Lease::NoAck };
                let sink = |message: super::super::pop::Delivered<'_>| popped.push(message.payload.to_vec());
                singly.pop(at(20), &mut Floor::default(), &pop, &mut Vec::new(), sink);
            }
            for (batch, taken) in [(6, 6), (6, 1), (3, 2), (2, 2)] {
                let (mut queue, mut forwarded) = (filled(), Vec::new());
                while forwarded.len() < 6 {
                    let (mut payloads, mut sequences) = (Vec::new(), Vec::new());
                    queue.next_to_forward(at(20), Source::Due, batch, |next| {
                        payloads.push(next.payload.to_vec());
                        sequences.push(next.sequence);
                        true
                    });
                    let taken = taken.min(sequences.len());
                    queue.forwarded(at(20), &sequences[..taken], |_| ());
                    forwarded.extend_from_slice(&payloads[..taken]);
                }
                assert_eq!(forwarded, popped, "in batches of {batch}, of which {taken} are accepted");
            }
        }
    }

    #[test]
    fn a_queue_that_forwards_asks_for_the_timer_while_it_may_deliver() {
        let mut queue = queue(Settings { maxinflight: 1, ..Settings::default() }, 2);
        assert!(queue.next_forward(Source::Due).is_some(), "one is due");
        queue.advance(at(1), usize::MAX);
        assert_eq!(queue.next_forward(Source::Due), Some(at(1)));
        let mut receipt = Vec::new();
        let pop = Pop { count: 1, lease: Lease::For(DurationMs::new(50)) };
        queue.pop(at(1), &mut Floor::default(), &pop, &mut receipt, |_| ());
        assert_eq!(queue.next_forward(Source::Due), None, "MAXINFLIGHT holds it back");
        let id = receipt[0].sequence.to_string();
        queue.ack(at(2), &Target::parse(id.as_bytes()).unwrap());
        assert!(queue.next_forward(Source::Due).is_some());
        queue.suspend(at(3), Flow::Out, None);
        assert_eq!(queue.next_forward(Source::Due), None, "paused");
        queue.resume(at(4), Flow::Out);
        queue.forward_to(at(5), Source::Due, None);
        assert_eq!(queue.next_forward(Source::Due), None, "it does not forward");
    }

    #[test]
    fn a_rate_holds_forwarding_back_until_it_allows_more() {
        let rate = Rate { most: 2, period: DurationMs::new(10) };
        let mut queue = queue(Settings { rate, ..Settings::default() }, 5);
        let first = next(&mut queue, 9, 9);
        assert_eq!(first.len(), 2);
        queue.forwarded(at(9), &first, |_| ());
        assert_eq!((queue.next_forward(Source::Due), queue.next_wake()), (None, Some(at(19))));
        assert_eq!(next(&mut queue, 19, 9).len(), 2);
    }

    #[test]
    fn a_failure_is_retried_a_second_later_and_not_before() {
        let mut queue = queue(Settings::default(), 1);
        queue.advance(at(5), usize::MAX);
        assert_eq!(queue.forwarding_failed(at(5), Source::Due, "OOM"), Health::NewError);
        assert!(!queue.may_forward(at(1_004), Source::Due) && queue.may_forward(at(1_005), Source::Due));
        assert_eq!(queue.next_forward(Source::Due), Some(at(1_005)));
        assert_eq!(queue.forwarding_failed(at(1_005), Source::Due, "OOM"), Health::Same);
        assert_eq!(queue.forwarding_failed(at(2_005), Source::Due, "MISCONF"), Health::NewError);
        let failing = queue.failing(Source::Due).unwrap();
        assert_eq!((failing.since, failing.retry), (at(5), at(3_005)));
        assert_eq!(queue.forwarding_works(Source::Due), Health::Recovered);
        assert_eq!(queue.forwarding_works(Source::Due), Health::Same);
        queue.forwarding_failed(at(4_000), Source::Due, "OOM");
        queue.forward_to(at(4_000), Source::Due, Some(Forward::Channel { name: Box::default() }));
        assert_eq!(queue.failing(Source::Due), None, "another target");
        assert_eq!(queue.duplicate().unwrap().forward(), queue.forward());
    }

    /// A queue with dead messages, which died at 1, 2, 3 and so on.
    fn with_dead(settings: Settings, messages: u64) -> Queue {
        let (mut queue, mut floor) = (Queue::new(settings), Floor::default());
        for nth in 0..messages {
            let name = nth.to_string();
            let message = NewMessage { name: Some(name.as_bytes()), payload: b"x", ..NewMessage::default() };
            queue.push(at(0), &mut floor, &message);
            queue.bury(at(nth + 1), &Id::parse(name.as_bytes()).unwrap(), Some(b"why"));
        }
        queue
    }

    fn next_dead(queue: &mut Queue, now: u64, count: usize) -> Vec<Sequence> {
        let mut next = Vec::new();
        queue.next_to_forward(at(now), Source::Dead, count, |message| {
            assert_eq!(message.death.unwrap().died, at(next.len() as u64 + 1));
            assert_eq!(message.death.unwrap().error, Some(&b"why"[..]));
            assert_eq!(message.death.unwrap().reason, Reason::Rejected);
            next.push(message.sequence);
            true
        });
        next
    }

    #[test]
    fn the_oldest_dead_messages_are_forwarded_also_while_the_queue_is_paused() {
        let mut queue = with_dead(Settings::default(), 3);
        assert_eq!(queue.next_forward(Source::Dead), None, "they stay");
        queue.suspend(at(3), Flow::Out, None);
        queue.forward_to(at(3), Source::Dead, to_stream());
        assert!(queue.next_forward(Source::Dead).is_some() && queue.forward().is_none() && queue.forwards());
        let first = next_dead(&mut queue, 3, 9);
        assert_eq!((first.len(), queue.counts().dead), (3, 3));
        let removed = queue.forwarded_dead(at(3), &first[..2]);
        assert!(removed.contain(first[0]) && removed.contain(first[1]) && !removed.contain(first[2]));
        assert_eq!((queue.counts().dead, queue.totals().deadforwarded, queue.totals().delivered), (1, 2, 0));
        queue.forwarded_dead(at(3), &first);
        assert_eq!((queue.totals().deadforwarded, queue.next_forward(Source::Dead)), (3, None), "each once");
    }

    #[test]
    fn dead_messages_are_dropped_only_while_their_target_refuses_them() {
        let settings = Settings { deadlen: Some(1), deadttl: DurationMs::new(5), ..Settings::default() };
        let mut queue = with_dead(settings, 3);
        queue.forward_to(at(3), Source::Dead, to_stream());
        queue.advance(at(100), usize::MAX);
        assert_eq!((queue.has_excess(), queue.next_drop()), (false, None));
        assert_eq!(queue.drop_excess(at(100), b"0"), None);
        queue.forwarding_failed(at(100), Source::Dead, "OOM");
        assert!(queue.has_excess() && queue.next_drop().is_some());
        assert_eq!(queue.next_forward(Source::Dead), Some(at(1_100)));
        assert_eq!(queue.next_forward(Source::Due), None);
        queue.forwarding_works(Source::Dead);
        assert!(!queue.has_excess());
        queue.forward_to(at(100), Source::Dead, None);
        assert!(queue.has_excess());
    }

    #[test]
    fn a_queue_may_forward_both_to_targets_of_their_own() {
        let mut queue = with_dead(Settings::default(), 1);
        queue.push(at(2), &mut Floor::default(), &NewMessage::default());
        let list = Forward::List { key: b"l"[..].into(), end: Default::default(), register: None };
        queue.forward_to(at(2), Source::Due, to_stream());
        queue.forward_to(at(2), Source::Dead, Some(list.clone()));
        assert_eq!(queue.targets(), Targets { due: to_stream().map(Box::new), dead: Some(Box::new(list)) });
        queue.forwarding_failed(at(2), Source::Dead, "OOM");
        assert!(queue.failing(Source::Due).is_none() && queue.may_forward(at(2), Source::Due));
        assert!(!queue.may_forward(at(2), Source::Dead));
    }
}
