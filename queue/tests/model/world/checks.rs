//! What must be true after each step and at the end.

use super::schedules::check_schedule;
use super::statistics::Since;
use super::words::*;
use super::{ms, replayed, rewritten, Master, World};
use crate::exercise::{digest, reload};
use crate::history::{headers, GROUPS};
use crate::reference::{self, State};
use dq_queue::id::{Floor, Id, IdBuffer, Receipt, Target};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Effect, Errors, Flow, Pause, Pop, Queue, ScanFilter, Stamped, StateKind, Totals};

impl World {
    /// Checks that everything that clients can see agrees with the model.
    pub(super) fn check_state(&mut self, thorough: bool) {
        let now = ms(self.clock);
        for queue in [Some(&self.eager.queue), Some(&self.lazy.queue), self.replica.as_ref()].into_iter().flatten() {
            if thorough || queue.counts().payload_bytes < 1_000 {
                assert_eq!(queue.check(), Ok(()));
            }
        }
        let eager = &self.eager.queue;
        assert_eq!(eager.counts(), self.model.counts());
        let kept = self.model.kept().len() as u64;
        assert_eq!(eager.counts_at(now), dq_queue::Counts { done: kept, ..self.model.counts() });
        assert_eq!(eager.totals(), self.model.totals);
        self.check_statistics();
        assert_eq!(eager.known(now), self.model.count_known());
        assert_eq!(self.lazy.queue.known(now), self.model.count_known());
        // A delivery that a kept message will replace may have ended unnoticed: its payload is still counted.
        assert!(self.lazy.queue.counts().payload_bytes >= self.model.counts().payload_bytes);
        let lazy = self.lazy.queue.counts_at(now);
        assert_eq!(lazy.delayed + lazy.ready + lazy.inflight + lazy.dead, self.model.messages.len() as u64);
        let ends = [self.model.paused_until, self.model.closed_until];
        let pauses = ends.map(|end| match end {
            reference::NEVER => Pause::Endless,
            end if end > self.model.now => Pause::Until(ms(end)),
            _ => Pause::Off,
        });
        for queue in [eager, &self.lazy.queue] {
            assert_eq!([queue.pause_at(now), queue.closed_at(now)], pauses);
        }
        let wake = self.lazy.queue.next_wake();
        assert!(self.next_event().is_none_or(|event| wake.is_some_and(|wake| wake <= event)), "{wake:?} is late");
        let due = self.model.messages.iter().filter(|message| message.state == State::Delayed);
        assert_eq!(eager.next_due(now).map(UnixMs::as_ms), due.map(|message| message.due).min());
        let ready = self.model.messages.iter().filter(|message| message.state == State::Ready);
        let oldest = ready.map(|message| self.model.now - message.due).max();
        assert_eq!(eager.next_delivery(now).map(UnixMs::as_ms), self.model.next_delivery());
        assert_eq!(eager.oldest_ready(now).map(DurationMs::as_ms), oldest);
        let begun = self.model.messages.iter().filter(|message| matches!(message.state, State::InFlight { .. }));
        let oldest = begun.filter_map(|message| message.receipt.map(|receipt| receipt >> 20)).min();
        let age = oldest.map(|begun| self.model.now.saturating_sub(begun));
        assert_eq!(eager.oldest_inflight(now).map(DurationMs::as_ms), age);
        assert_eq!(
            self.lazy.queue.oldest_inflight(now).map(DurationMs::as_ms),
            age,
            "with leases that have just ended"
        );
        if !thorough {
            return;
        }
        let expected = digest(&self.eager.queue);
        assert!(digest(&self.lazy.queue) == expected, "the masters differ");
        if let Some(replica) = &self.replica {
            assert!(digest(replica) == expected, "the replica differs");
        }
        assert!(self
            .eager
            .queue
            .images()
            .map(|image| image.record.sequence)
            .map(|sequence| sequence.0)
            .eq(self.sorted_sequences()));
        for message in &self.model.messages {
            for queue in [&self.eager.queue, &self.lazy.queue] {
                check_message(queue, now, message);
                let found = queue.get(now, &Id::parse(&id_of(message)).unwrap()).and_then(|found| found.batch);
                assert_eq!(found, self.model.batch_of(message));
            }
        }
        self.check_looks();
        self.check_done();
        self.check_groups();
        self.check_consumers();
        self.check_batches();
        self.check_totals();
    }

    /// Checks peeks and scans, which name no message.
    pub(super) fn check_looks(&self) {
        let now = ms(self.clock);
        let mut late = self.lazy.queue.duplicate().unwrap();
        late.advance(now, 0);
        late.catch_up(now);
        for kind in StateKind::ALL {
            let expected = self.model.peek(kind);
            for queue in [&self.eager.queue, &late] {
                let peeked = queue.peek(now, kind, usize::MAX);
                assert!(peeked.iter().map(|sequence| sequence.0).eq(expected.iter().copied()), "{kind:?}: {peeked:?}");
                assert_eq!(queue.peek(now, kind, 2), peeked[..peeked.len().min(2)]);
            }
            let mut expected = expected;
            expected.sort_unstable();
            assert_eq!(self.scanned(Some(kind)), expected);
        }
        let mut recurring: Vec<u64> = Vec::new();
        recurring.extend(self.model.messages.iter().filter(|held| held.schedule().is_some()).map(|held| held.sequence));
        recurring.sort_unstable();
        let filter = ScanFilter { recurring: true, ..ScanFilter::default() };
        let (found, _) = self.lazy.queue.scan(now, None, usize::MAX, filter);
        assert!(found.into_iter().map(|sequence| sequence.0).eq(recurring.iter().copied()));
        assert_eq!(self.lazy.queue.gauges(now).unwrap_or_default()[0], recurring.len() as u64);
        let deaths = self.model.messages.iter().filter_map(|held| match held.state {
            State::Dead { died, .. } => Some(ms(died)),
            _ => None,
        });
        let deaths: Vec<UnixMs> = deaths.collect();
        let both = deaths.iter().min().zip(deaths.iter().max());
        assert_eq!(self.eager.queue.deaths(), both.map(|(first, last)| (*first, *last)));
        let mut all = self.sorted_sequences();
        all.extend(self.model.kept().iter().map(|finished| finished.sequence));
        all.sort_unstable();
        assert_eq!(self.scanned(None), all);
    }

    /// Checks what the queue shows of its groups.
    fn check_groups(&self) {
        let (queue, now) = (&self.eager.queue, ms(self.clock));
        let (mut shown, mut cursor) = (Vec::new(), None);
        loop {
            let (page, next) = queue.scan_groups(now, cursor, 1 + self.steps % 3);
            shown.extend(page.into_iter().map(|group| {
                let paused_until = match group.pause {
                    Pause::Off => 0,
                    Pause::Until(end) => end.as_ms(),
                    Pause::Endless => reference::NEVER,
                };
                let [due, next] = [group.oldest_due, group.next_delivery].map(|at| at.map(UnixMs::as_ms));
                (group.name.to_vec(), group.waiting, group.occupied, due, paused_until, next)
            }));
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        shown.sort();
        assert_eq!(shown, self.model.groups());
        let with_messages = shown.iter().filter(|group| self.model.is_live_group(&group.0)).count();
        assert_eq!(queue.groups(), with_messages);
        assert_eq!(queue.blocked(now), self.model.blocked());
        for name in GROUPS {
            let counts = queue.counts_of_group(now, name);
            for kind in StateKind::ALL {
                let mut expected = self.model.peek_group(name, kind);
                assert_eq!(counts.count(kind), expected.len() as u64);
                let peek = |count| queue.peek_group(now, name, kind, count).into_iter().map(|sequence| sequence.0);
                assert_eq!(peek(usize::MAX).collect::<Vec<_>>(), expected);
                expected.truncate(2);
                assert_eq!(peek(2).collect::<Vec<_>>(), expected);
            }
        }
    }

    /// Scans the whole queue of the lazy master. Returns the sequences in the order in which they came.
    pub(super) fn scanned(&self, kind: Option<StateKind>) -> Vec<u64> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let count = 1 + self.steps % 7;
            let (page, next) =
                self.lazy.queue.scan(ms(self.clock), after, count, ScanFilter { kind, recurring: false });
            assert!(page.len() <= count);
            found.extend(page.iter().map(|sequence| sequence.0));
            if next.is_none() {
                return found;
            }
            after = next;
        }
    }

    pub(super) fn sorted_sequences(&self) -> Vec<u64> {
        let mut sequences: Vec<u64> = self.model.messages.iter().map(|message| message.sequence).collect();
        sequences.sort_unstable();
        sequences
    }

    /// Checks that one large advance counts the same as many small ones.
    pub(super) fn check_totals(&self) {
        if self.steps % 4 != 0 {
            return;
        }
        let mut copy = self.lazy.queue.duplicate().unwrap();
        copy.advance(ms(self.clock), usize::MAX);
        assert_eq!(copy.counts(), self.model.counts());
        if self.lazy_counts {
            assert_eq!(copy.totals(), self.model.totals);
        }
        let Some(replica) = self.replica.as_ref().filter(|_| self.replica_counts) else { return };
        let mut copy = replica.duplicate().unwrap();
        copy.advance_view(ms(self.model.now), usize::MAX);
        // Refused pushes have no effect, so a replica does not count them.
        let told = Totals { duplicates: 0, rejected_full: 0, ..self.model.totals };
        assert_eq!(Totals { duplicates: 0, rejected_full: 0, ..copy.totals() }, told);
    }

    /// Delivers everything that can ever be delivered, and checks that the masters and the replica do it in the same
    /// order.
    pub(super) fn drain(&mut self) {
        let everything = Pop { count: usize::MAX, lease: dq_queue::Lease::NoAck };
        let mut others: Vec<Master> = [
            Some(self.lazy.queue.duplicate().unwrap()),
            Some(reload(&self.eager.queue)),
            replayed(&rewritten(&self.lazy.queue)),
            replayed(&self.log).filter(|_| self.replica.is_some()),
            self.replica.take(),
        ]
        .into_iter()
        .flatten()
        .map(|queue| Master { queue, floor: Floor::default(), since: Since::default() })
        .collect();
        // A paused queue would deliver nothing.
        self.model.resume(Flow::Out);
        let paused = self.model.paused_groups();
        assert!(paused.iter().all(|group| self.model.suspend_group(group, None)));
        let now = ms(self.model.now);
        for queue in others.iter_mut().map(|other| &mut other.queue) {
            let resume = Effect::Pause { pause: Pause::Off, flow: Flow::Out, group: None };
            queue.apply(&Stamped { now, effect: resume }).unwrap();
            for group in &paused {
                let resume = Effect::Pause { pause: Pause::Off, flow: Flow::Out, group: Some(group) };
                queue.apply(&Stamped { now, effect: resume }).unwrap();
            }
        }
        for master in [&mut self.eager.queue, &mut self.lazy.queue] {
            master.resume(now, Flow::Out);
            assert!(paused.iter().all(|group| master.resume_group(now, group)));
            master.stamp(now);
        }
        // A series would never end.
        if let Some(effect) = self.end_all_series() {
            let stamped = Stamped { now, effect };
            for queue in others.iter_mut().map(|other| &mut other.queue) {
                queue.apply(&stamped).unwrap();
            }
            self.eager.queue.apply(&stamped).unwrap();
            self.lazy.queue.apply(&stamped).unwrap();
            self.settle_batches();
        }
        self.model.forget_groups();
        // The replica may have processed later times than its master.
        self.clock = self.model.now.max(self.replica_seen);
        self.advance_eager();
        loop {
            let (delivered, _) = self.eager.pop(self.clock, &everything);
            let expected = self.model.pop(usize::MAX, None, &[], &mut Vec::new());
            assert!(delivered.iter().map(|popped| popped.sequence).eq(expected.iter().map(|popped| popped.sequence)));
            assert_eq!(self.lazy.pop(self.clock, &everything).0, delivered);
            for other in &mut others {
                assert_eq!(other.pop(self.clock, &everything).0, delivered);
            }
            for master in others.iter_mut().chain([&mut self.eager, &mut self.lazy]) {
                master.queue.stamp(ms(self.clock));
            }
            self.settle_batches();
            self.model.forget_groups();
            if !delivered.is_empty() {
                // The next messages of the groups.
                continue;
            }
            let Some(next) = self.next_event() else { break };
            self.clock = next.as_ms();
            self.advance_eager();
        }
        let dead = self.model.counts().dead;
        for queue in others.iter().map(|other| &other.queue).chain([&self.eager.queue, &self.lazy.queue]) {
            let messages = |queue: &Queue| digest(queue)[digest_head(queue)..].to_vec();
            assert!(messages(queue) == messages(&self.eager.queue));
            assert_eq!(queue.counts_at(ms(self.clock)).dead, dead);
        }
    }
}

/// The length of the part of a digest that precedes the messages.
fn digest_head(queue: &Queue) -> usize {
    let mut head = None;
    queue
        .digest(|piece| {
            head.get_or_insert(piece.len());
        })
        .unwrap();
    head.unwrap()
}

fn check_message(queue: &Queue, now: UnixMs, expected: &reference::Message) {
    let text = id_of(expected);
    let found = queue.get(now, &Id::parse(&text).unwrap()).expect("it is there");
    let record = found.record;
    let deadline = match record.phase {
        dq_queue::Phase::Leased { deadline, .. } => deadline.as_ms(),
        dq_queue::Phase::Waiting | dq_queue::Phase::Successor { .. } | dq_queue::Phase::Dead { .. } => 0,
    };
    assert_eq!(state_of(found.state, deadline), expected.state, "{expected:?} is {found:?}");
    assert_eq!(record.sequence.0, expected.own.unwrap_or(expected.sequence));
    assert_eq!(found.next, expected.next.is_some());
    assert_eq!(found.name, expected.name.as_deref());
    assert_eq!(found.payload, expected.payload);
    assert_eq!(found.group, expected.group_now());
    assert_eq!(found.checkpoint.unwrap_or_default(), expected.checkpoint);
    assert_eq!(found.headers, expected.headers.map(headers));
    assert_eq!(found.errors.map(Errors::last), expected.error.as_deref());
    let errors = found.errors.into_iter().flat_map(Errors::listed);
    assert!(errors.map(|error| (error.attempt, error.at.as_ms(), error.text.to_vec())).eq(expected.errors.clone()));
    assert_eq!(found.consumer, expected.holder());
    // That of its successor, if it has one.
    assert!(
        expected.next.is_some() || found.retain.map(DurationMs::as_ms) == expected.retain,
        "{expected:?} is {found:?}"
    );
    assert_eq!(record.priority, expected.priority);
    assert_eq!(record.due.as_ms(), expected.due);
    assert_eq!(record.retries.count(), expected.retries);
    assert_eq!(record.lease.map(DurationMs::as_ms), expected.lease);
    assert_eq!(record.attempts, expected.attempts);
    assert_eq!(record.receipt().map(|receipt| receipt.0), expected.receipt);
    let ttl = record.ttl.map_or((0, reference::NEVER), |ttl| (ttl.duration.as_ms(), ttl.end.as_ms()));
    assert_eq!(ttl, (expected.ttl, expected.expires));
    check_schedule(found.recurring, expected.schedule());
    let lease = expected.lease.unwrap_or(queue.settings().lease.as_ms());
    assert_eq!(found.lease.as_ms(), lease);
    if let Some(receipt) = expected.receipt {
        let mut buffer = IdBuffer::new();
        let id = buffer.id(record.sequence, found.name);
        let printed = buffer.receipt(id, Receipt(receipt));
        assert_eq!(Target::parse(buffer.text(printed)).unwrap().receipt, Some(Receipt(receipt)));
    }
}
