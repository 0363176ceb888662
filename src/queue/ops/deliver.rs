//! Delivery: the first messages in delivery order are leased to a consumer, or given away for good.

use super::super::effect::Grant;
use super::super::id::{Floor, Receipt};
use super::super::record::{Phase, Record};
use super::super::time::{DurationMs, UnixMs};
use super::super::Queue;

/// What a consumer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pop {
    /// At most so many messages.
    pub count: usize,
    /// How they are leased.
    pub lease: Lease,
}

/// How long a delivery may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// As long as the message says, else the queue.
    Default,
    /// So long.
    For(DurationMs),
    /// No lease: the message is removed as it is delivered.
    NoAck,
}

/// A message as it is handed to a consumer.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'a> {
    /// The delivery. Its sequence is the message's id, unless that has a name.
    pub grant: Grant,
    /// Whether it is leased: without a lease there is neither a receipt nor a deadline.
    pub leased: bool,
    /// The message's name.
    pub name: Option<&'a [u8]>,
    /// What it carries.
    pub payload: &'a [u8],
}

impl Queue {
    /// How many messages `pop` would deliver at `now`. O(log n), and what leases and TTLs ended since the last advance.
    pub fn deliverable(&mut self, now: UnixMs, pop: &Pop) -> usize {
        let now = self.observe(now);
        // Before anything is brought up to now: nobody asks for what a closed gate holds back.
        if self.gate.pause().holds_at(now) {
            return 0;
        }
        self.catch_up_all(now);
        let room = self.gate.room(&self.settings, self.view.inflight(), pop.lease, now);
        // The view is at `now`, so what it counts as ready is what is due.
        self.view.ready().min(pop.count).min(room)
    }

    /// Whether a message is delivered as soon as it is asked for, as far as is known without bringing all messages up
    /// to `now`: then it may be true although only a lease has ended whose message died. O(priorities in use).
    pub fn has_deliverable(&self, now: UnixMs) -> bool {
        let now = self.own_time(now);
        let is_open = |inflight| self.gate.room(&self.settings, inflight, Lease::Default, now) > 0;
        if self.view.first_deadline().is_some_and(|deadline| deadline <= now) {
            // The end of a lease makes room, and its message deliverable, unless that died.
            return is_open(0);
        }
        is_open(self.view.inflight()) && self.view.earliest_due().is_some_and(|due| due <= now)
    }

    /// Delivers the first messages in delivery order to `sink`, exactly [`Queue::deliverable`] of them, and notes in
    /// `grants` what was granted.
    pub fn pop(
        &mut self,
        now: UnixMs,
        floor: &mut Floor,
        pop: &Pop,
        grants: &mut Vec<Grant>,
        mut sink: impl FnMut(Delivered<'_>),
    ) {
        let count = self.deliverable(now, pop);
        self.deliver(now, floor, &Pop { count, ..*pop }, |delivered| {
            grants.push(delivered.grant);
            sink(delivered);
        });
    }

    /// Delivers `pop.count` messages to `sink`, of which [`Queue::deliverable`] has just said that they are there.
    /// A message costs O(log n).
    pub fn deliver(&mut self, now: UnixMs, floor: &mut Floor, pop: &Pop, mut sink: impl FnMut(Delivered<'_>)) {
        let now = self.observe(now);
        let last = self.last_receipt.max(Receipt(floor.receipt));
        let mut receipt = Receipt::next(last, now);
        for _ in 0..pop.count {
            let Some((at, record)) = self.view.take_next(&mut self.messages, now) else { break };
            let lease = match pop.lease {
                Lease::NoAck => None,
                Lease::For(lease) => Some(lease),
                Lease::Default => Some(record.lease.unwrap_or(self.settings.lease)),
            };
            let grant = Grant {
                sequence: record.sequence,
                attempt: record.attempts.saturating_add(1),
                deadline: now.after(lease.unwrap_or(DurationMs::ZERO)),
                // Receipts that are used up (only a forged snapshot brings that about) repeat the last.
                receipt: receipt.unwrap_or(Receipt(u64::MAX)),
            };
            let bytes = self.messages.bytes(at);
            sink(Delivered { grant, leased: lease.is_some(), name: bytes.name, payload: bytes.payload });
            self.tally.delivered += 1;
            if lease.is_none() {
                self.messages.remove(at);
                continue;
            }
            self.view.lend(&mut self.messages, at, &grant);
            self.last_receipt = grant.receipt;
            receipt = grant.receipt.0.checked_add(1).map(Receipt);
        }
        floor.raise(self.last_sequence, self.last_receipt);
    }

    /// Carries out a delivery that was decided elsewhere.
    pub(in crate::queue) fn lend(&mut self, grant: &Grant, now: UnixMs) {
        if let Some((at, record)) = self.messages.of(grant.sequence) {
            let phase = Phase::Leased { deadline: grant.deadline, receipt: grant.receipt };
            self.rewrite(at, &record, &Record { attempts: grant.attempt, phase, ..record }, now);
        }
        self.last_receipt = self.last_receipt.max(grant.receipt);
        self.tally.delivered += 1;
    }
}
