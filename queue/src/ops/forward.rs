//! Forwarding: the server itself passes the first messages in delivery order to another key or to a channel.
//!
//! This is a delivery without a lease, of one message after another, in two steps. The server first learns which
//! messages are next ([`Queue::next_to_forward`]) and writes them to their target. It then removes those that it has
//! written ([`Queue::forwarded`]). If the target refuses a message, the message stays as it was, and the queue tries
//! again later ([`Queue::forwarding_failed`]).

use super::super::forward::{Failing, Forward, Forwarding, RETRY};
use super::super::gate::Lease;
use super::super::groups::Pops;
use super::super::headers::Headers;
use super::super::id::Sequence;
use super::super::record::{State, StateKind};
use super::super::recurring::Ended;
use super::super::store::Bytes;
use super::super::time::{DurationMs, UnixMs};
use super::super::Queue;
use super::advance::PILED_MAX;
use super::pop::Pop;

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
    /// Where the queue forwards its messages; `None` if they wait for a pop.
    pub fn forward(&self) -> Option<&Forward> {
        self.optional.forwarding.as_ref().map(|forwarding| &forwarding.to)
    }

    /// Why the queue cannot forward at present; `None` if it can, or does not forward at all.
    pub fn failing(&self) -> Option<&Failing> {
        self.optional.forwarding.as_ref()?.failing.as_ref()
    }

    /// Sets where the queue forwards its messages. If the target changes, the failure of the old one is forgotten.
    /// O(1).
    pub fn forward_to(&mut self, now: UnixMs, to: Option<Forward>) {
        self.observe(now);
        self.set_forward(to);
    }

    /// Applies a change of where the queue forwards its messages.
    pub(crate) fn set_forward(&mut self, to: Option<Forward>) {
        if self.forward() != to.as_ref() {
            match to {
                Some(to) => {
                    self.optional.for_adding().forwarding = Some(Box::new(Forwarding { to, failing: None }));
                }
                None => drop(self.optional.take(|parts| &mut parts.forwarding)),
            }
        }
    }

    /// When the queue has messages to forward: the instant of the view if it has some now, or the time of the next
    /// attempt, by the clock of the server, if the last one failed. `None` if there are none, or if none may be
    /// delivered before a command or time allows it; the latter is part of [`Queue::next_wake`]. O(1), and
    /// O(priorities in use) for a queue that forwards.
    pub fn next_forward(&self) -> Option<UnixMs> {
        let forwarding = self.optional.forwarding.as_ref()?;
        let at = self.view.at();
        self.has_deliverable(at).then(|| forwarding.failing.as_ref().map_or(at, |failing| failing.retry))
    }

    /// Whether the queue may try to forward at `now`: it forwards, and it does not wait after a failure. The wait is
    /// measured by the clock of the server and not by the queue's own time, which stands still if the clock was set
    /// back.
    pub fn may_forward(&self, now: UnixMs) -> bool {
        self.optional.forwarding.as_ref().is_some_and(|forwarding| {
            forwarding.failing.as_ref().is_none_or(|failing| {
                // A time beyond the next attempt was planned under a clock that has stepped back since.
                failing.retry <= now || failing.retry > now.after(RETRY)
            })
        })
    }

    /// Passes to `sink` the messages that single pops without a lease would deliver at `now`, at most `count`, until
    /// `sink` returns `false`. O(log n) and O(1) for each message, besides what [`Queue::deliverable`] costs.
    pub fn next_to_forward(&mut self, now: UnixMs, count: usize, mut sink: impl FnMut(Outgoing<'_>) -> bool) {
        let open = self.deliverable(now, &Pop { count, lease: Lease::NoAck });
        let now = self.own_time(now);
        let next = match self.messages.has_groups() {
            true if open > 0 => self.next_of_groups(now, count.min(self.room_to_take(now))),
            _ => self.view.in_state(now, StateKind::Ready, open),
        };
        for sequence in next {
            let Some((at, record)) = self.messages.of(sequence) else { break };
            let Bytes { name, payload, headers, .. } = self.messages.bytes(at);
            if !sink(Outgoing { sequence, due: record.due, name, payload, headers }) {
                break;
            }
        }
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

    /// Removes messages that were forwarded; recurring ones wait for their next run. Passes to `sink` how late each
    /// message was that had never been delivered. Returns those that the queue still held. O(log n) for each.
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
            self.give_turn(self.messages.group(at), turn);
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

    fn forwarding_mut(&mut self) -> Option<&mut Forwarding> {
        self.optional.held_mut()?.forwarding.as_deref_mut()
    }

    /// Records that the target has accepted messages.
    pub fn forwarding_works(&mut self) -> Health {
        match self.forwarding_mut().and_then(|forwarding| forwarding.failing.take()) {
            Some(_) => Health::Recovered,
            None => Health::Same,
        }
    }

    /// Records that a message could not be forwarded, with the server's text. The queue tries again after [`RETRY`].
    pub fn forwarding_failed(&mut self, now: UnixMs, error: &str) -> Health {
        let Some(forwarding) = self.forwarding_mut() else { return Health::Same };
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

#[cfg(test)]
mod tests {
    use super::super::super::id::{Floor, Target};
    use super::super::super::rate::Rate;
    use super::super::super::settings::{GroupOrder, Settings};
    use super::super::super::{Due, Flow, NewMessage};
    use super::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(1_760_000_000_000 + ms)
    }

    fn to_stream() -> Option<Forward> {
        Some(Forward::Stream { key: b"s"[..].into(), trim: None })
    }

    /// A queue that forwards, with messages that are due at 0, 1, 2 and so on.
    fn queue(settings: Settings, messages: u64) -> Queue {
        let (mut queue, mut floor) = (Queue::new(settings), Floor::default());
        queue.forward_to(at(0), to_stream());
        for nth in 0..messages {
            queue.push(at(0), &mut floor, &NewMessage { due: Some(Due::At(at(nth))), ..NewMessage::default() });
        }
        queue
    }

    fn next(queue: &mut Queue, now: u64, count: usize) -> Vec<Sequence> {
        let mut next = Vec::new();
        queue.next_to_forward(at(now), count, |message| {
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
                    queue.next_to_forward(at(20), batch, |next| {
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
        assert!(queue.next_forward().is_some(), "one is due");
        queue.advance(at(1), usize::MAX);
        assert_eq!(queue.next_forward(), Some(at(1)));
        let mut receipt = Vec::new();
        let pop = Pop { count: 1, lease: Lease::For(DurationMs::new(50)) };
        queue.pop(at(1), &mut Floor::default(), &pop, &mut receipt, |_| ());
        assert_eq!(queue.next_forward(), None, "MAXINFLIGHT holds it back");
        let id = receipt[0].sequence.to_string();
        queue.ack(at(2), &Target::parse(id.as_bytes()).unwrap());
        assert!(queue.next_forward().is_some());
        queue.suspend(at(3), Flow::Out, None);
        assert_eq!(queue.next_forward(), None, "paused");
        queue.resume(at(4), Flow::Out);
        queue.forward_to(at(5), None);
        assert_eq!(queue.next_forward(), None, "it does not forward");
    }

    #[test]
    fn a_rate_holds_forwarding_back_until_it_allows_more() {
        let rate = Rate { most: 2, period: DurationMs::new(10) };
        let mut queue = queue(Settings { rate, ..Settings::default() }, 5);
        let first = next(&mut queue, 9, 9);
        assert_eq!(first.len(), 2);
        queue.forwarded(at(9), &first, |_| ());
        assert_eq!((queue.next_forward(), queue.next_wake()), (None, Some(at(19))));
        assert_eq!(next(&mut queue, 19, 9).len(), 2);
    }

    #[test]
    fn a_failure_is_retried_a_second_later_and_not_before() {
        let mut queue = queue(Settings::default(), 1);
        queue.advance(at(5), usize::MAX);
        assert_eq!(queue.forwarding_failed(at(5), "OOM"), Health::NewError);
        assert!(!queue.may_forward(at(1_004)) && queue.may_forward(at(1_005)));
        assert_eq!(queue.next_forward(), Some(at(1_005)));
        assert_eq!(queue.forwarding_failed(at(1_005), "OOM"), Health::Same);
        assert_eq!(queue.forwarding_failed(at(2_005), "MISCONF"), Health::NewError);
        let failing = queue.failing().unwrap();
        assert_eq!((failing.since, failing.retry), (at(5), at(3_005)));
        assert_eq!(queue.forwarding_works(), Health::Recovered);
        assert_eq!(queue.forwarding_works(), Health::Same);
        queue.forwarding_failed(at(4_000), "OOM");
        queue.forward_to(at(4_000), Some(Forward::Channel { name: Box::default() }));
        assert_eq!(queue.failing(), None, "another target");
        assert_eq!(queue.duplicate().unwrap().forward(), queue.forward());
    }
}
