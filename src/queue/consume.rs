//! Popping.

use super::effect::Grant;
use super::id::{Floor, Receipt, Sequence};
use super::order::Key;
use super::record::{Phase, Record};
use super::store::Placement;
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
    /// Its sequence: its id, unless it has a name.
    pub sequence: Sequence,
    /// Its name.
    pub name: Option<&'a [u8]>,
    /// What it carries.
    pub payload: &'a [u8],
    /// The number of this delivery, from 1.
    pub attempt: u32,
    /// None where it was given and not lent.
    pub receipt: Option<Receipt>,
}

impl Queue {
    /// How many messages a pop of `want` would deliver at `now`: O(log n + want / 64), and what leases and TTLs
    /// ended since the last advance.
    pub fn deliverable(&mut self, now: UnixMs, want: usize) -> usize {
        let now = self.tick(now);
        if self.paused {
            return 0;
        }
        self.settle_all(now);
        let room = match self.settings.maxinflight {
            0 => usize::MAX,
            most => (most as usize).saturating_sub(self.inflight.len()),
        };
        self.waiting.due_by(now, want.min(room))
    }

    /// Delivers the first messages in delivery order to `sink`, exactly [`Queue::deliverable`] of them, and notes in
    /// `grants` what was granted. A message costs O(log n).
    pub fn pop(
        &mut self,
        now: UnixMs,
        floor: &mut Floor,
        pop: &Pop,
        grants: &mut Vec<Grant>,
        mut sink: impl FnMut(Delivered<'_>),
    ) {
        let count = self.deliverable(now, pop.count);
        let now = self.tick(now);
        let last = self.last_receipt.max(Receipt(floor.receipt));
        let mut receipt = Receipt::next(last, now);
        for _ in 0..count {
            let Some(sequence) = self.waiting.pop(now) else { break };
            let Some(at) = self.store.find(sequence) else { break };
            let record = self.store.record(at);
            if let Some(ttl) = record.ttl {
                self.expiring.remove(Key::at(ttl.end, sequence));
            }
            let attempt = record.attempts.saturating_add(1);
            let lent = match pop.lease {
                Lease::NoAck => None,
                Lease::For(lease) => Some(lease),
                Lease::Default => Some(record.lease.unwrap_or(self.settings.lease)),
            };
            // Receipts that are used up (only a forged snapshot brings that about) repeat the last.
            let number = receipt.unwrap_or(Receipt(u64::MAX));
            let bytes = self.store.bytes(at);
            sink(Delivered {
                sequence,
                name: bytes.name,
                payload: bytes.payload,
                attempt,
                receipt: lent.map(|_| number),
            });
            self.totals.delivered += 1;
            let Some(lease) = lent else {
                grants.push(Grant { sequence, attempt, deadline: now, receipt: number });
                self.forget(at, &record);
                continue;
            };
            let deadline = now.after(lease);
            let phase = Phase::Leased { deadline, receipt: number };
            self.store.update(at, &Record { attempts: attempt, phase, ..record });
            self.store.set_placement(at, Placement::InFlight);
            self.inflight.insert(Key::at(deadline, sequence));
            grants.push(Grant { sequence, attempt, deadline, receipt: number });
            self.last_receipt = number;
            receipt = number.0.checked_add(1).map(Receipt);
        }
        floor.raise(self.last_sequence, self.last_receipt);
    }
}
