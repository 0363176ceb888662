//! Popping.

use super::effect::Grant;
use super::id::{Floor, Receipt};
use super::order::Key;
use super::time::{DurationMs, UnixMs};
use super::Queue;

/// How a consumer wants its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pop {
    /// At most so many.
    pub count: usize,
    /// How they are lent.
    pub lease: Lease,
}

/// The terms of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// For the message's lease, else the queue's.
    Default,
    /// For so long.
    For(DurationMs),
    /// Not lent but given: removed as they are delivered.
    NoAck,
}

/// A message as it is handed to a consumer.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'a> {
    /// The delivery. Its sequence is the message's id, unless that has a name.
    pub grant: Grant,
    /// Whether it is lent: what is given for good has neither receipt nor deadline.
    pub lent: bool,
    /// The message's name.
    pub name: Option<&'a [u8]>,
    /// What it carries.
    pub payload: &'a [u8],
}

impl Queue {
    /// How many messages `pop` would deliver at `now`: O(log n), and what leases and TTLs ended
    /// since the last advance.
    pub fn deliverable(&mut self, now: UnixMs, pop: &Pop) -> usize {
        let now = self.tick(now);
        if self.pause.holds_at(now) {
            return 0;
        }
        self.settle_all(now);
        let room = match (self.settings.maxinflight as usize).saturating_sub(self.inflight.len()) {
            _ if self.settings.maxinflight == 0 => usize::MAX,
            // What is given for good takes no room, but waits until there is some all the same.
            1.. if pop.lease == Lease::NoAck => usize::MAX,
            room => room,
        };
        // The view is at `now`, so what it counts as ready is what is due.
        self.waiting.ready().min(pop.count).min(room)
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

    /// Delivers so many messages, of which [`Queue::deliverable`] has just said that they are there, to `sink`. A
    /// message costs O(log n).
    pub fn deliver(&mut self, now: UnixMs, floor: &mut Floor, pop: &Pop, mut sink: impl FnMut(Delivered<'_>)) {
        let now = self.tick(now);
        let last = self.last_receipt.max(Receipt(floor.receipt));
        let mut receipt = Receipt::next(last, now);
        for _ in 0..pop.count {
            let Some(sequence) = self.waiting.pop(now) else { break };
            let Some(at) = self.store.find(sequence) else { break };
            let record = self.store.record(at);
            if let Some(ttl) = record.ttl {
                self.expiring.remove(Key::at(ttl.end, sequence));
            }
            let lease = match pop.lease {
                Lease::NoAck => None,
                Lease::For(lease) => Some(lease),
                Lease::Default => Some(record.lease.unwrap_or(self.settings.lease)),
            };
            let grant = Grant {
                sequence,
                attempt: record.attempts.saturating_add(1),
                deadline: now.after(lease.unwrap_or(DurationMs::ZERO)),
                // Receipts that are used up (only a forged snapshot brings that about) repeat the last.
                receipt: receipt.unwrap_or(Receipt(u64::MAX)),
            };
            let bytes = self.store.bytes(at);
            sink(Delivered { grant, lent: lease.is_some(), name: bytes.name, payload: bytes.payload });
            self.tally.delivered += 1;
            if lease.is_none() {
                self.forget(at, &record);
                continue;
            }
            self.store.lend(at, grant.attempt, grant.deadline, grant.receipt);
            self.inflight.insert(Key::at(grant.deadline, sequence));
            self.begun.begin(grant.receipt);
            self.last_receipt = grant.receipt;
            receipt = grant.receipt.0.checked_add(1).map(Receipt);
        }
        floor.raise(self.last_sequence, self.last_receipt);
    }
}
