//! Totals since the queue was created, and the number of messages that it holds now.

use super::record::{Reason, StateKind};
use super::view::Uncounted;

/// What happened in a queue since it was created. The totals are saved, dumped and replicated with the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages pushed, including those that replaced another.
    pub pushed: u64,
    /// Pushes refused because the queue held a message of that name.
    pub duplicates: u64,
    /// Deliveries, including those without a lease.
    pub delivered: u64,
    /// Messages completed.
    pub acked: u64,
    /// Deliveries that failed or were rejected.
    pub nacked: u64,
    /// Deliveries that were given back without being counted.
    pub given_back: u64,
    /// Leases that expired.
    pub lease_expired: u64,
    /// Messages that became dead, for any reason.
    pub died: u64,
    /// Messages that became dead because their TTL ended; they are also counted in `died`.
    pub expired: u64,
    /// Dead messages made live again.
    pub redriven: u64,
    /// Messages removed by `DQ.CANCEL`.
    pub cancelled: u64,
    /// Pushes refused because the queue was full.
    pub rejected_full: u64,
    /// Messages forwarded; they are also counted in `delivered`.
    pub forwarded: u64,
}

impl Totals {
    /// The names under which clients see the totals, in the order of the replies.
    pub const NAMES: [&'static str; 13] = [
        "pushed",
        "duplicates",
        "delivered",
        "acked",
        "nacked",
        "given-back",
        "lease-expired",
        "died",
        "expired",
        "redriven",
        "cancelled",
        "rejected-full",
        "forwarded",
    ];

    /// Each total, in the order of [`Totals::NAMES`].
    #[inline]
    pub fn numbers(&self) -> [u64; Self::NAMES.len()] {
        [
            self.pushed,
            self.duplicates,
            self.delivered,
            self.acked,
            self.nacked,
            self.given_back,
            self.lease_expired,
            self.died,
            self.expired,
            self.redriven,
            self.cancelled,
            self.rejected_full,
            self.forwarded,
        ]
    }

    /// The totals that [`Totals::numbers`] returned.
    pub const fn from_numbers(numbers: [u64; Self::NAMES.len()]) -> Totals {
        let [pushed, duplicates, delivered, acked, nacked, given_back, lease_expired, died, expired, redriven, cancelled, rejected_full, forwarded] =
            numbers;
        Totals {
            pushed,
            duplicates,
            delivered,
            acked,
            nacked,
            given_back,
            lease_expired,
            died,
            expired,
            redriven,
            cancelled,
            rejected_full,
            forwarded,
        }
    }

    /// Each total with its name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::NAMES.into_iter().zip(self.numbers())
    }
}

/// The totals as a queue stores them: what most queues count in place, and the rest in a box that is allocated with the
/// first event of its kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub pushed: u64,
    pub delivered: u64,
    pub acked: u64,
    rare: Option<Box<Rare>>,
}

/// Totals of events that happen in few queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rare {
    pub duplicates: u64,
    pub nacked: u64,
    pub given_back: u64,
    pub lease_expired: u64,
    pub died: u64,
    pub expired: u64,
    pub redriven: u64,
    pub cancelled: u64,
    pub rejected_full: u64,
    pub forwarded: u64,
}

impl Tally {
    /// The rare totals, for counting; allocates them first if necessary.
    pub fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Subtracts what was counted beyond the instant to which the view was taken back.
    pub fn uncount(&mut self, uncounted: Uncounted) {
        if uncounted == Uncounted::default() {
            return;
        }
        let rare = self.rare();
        rare.lease_expired = rare.lease_expired.saturating_sub(uncounted.lease_expired);
        rare.died = rare.died.saturating_sub(uncounted.died);
        rare.expired = rare.expired.saturating_sub(uncounted.expired);
    }

    /// Counts a nack after which a message has `left` attempts that had `attempts`.
    pub fn count_nack(&mut self, attempts: u32, left: u32) {
        let rare = self.rare();
        let total = if left < attempts { &mut rare.given_back } else { &mut rare.nacked };
        *total += 1;
    }

    /// Counts a message that died.
    pub fn count_dead(&mut self, reason: Reason) {
        let rare = self.rare();
        rare.died += 1;
        rare.expired += u64::from(reason == Reason::Expired);
    }

    /// All totals.
    #[inline]
    pub fn totals(&self) -> Totals {
        let rare = self.rare.as_deref().copied().unwrap_or_default();
        Totals {
            pushed: self.pushed,
            duplicates: rare.duplicates,
            delivered: self.delivered,
            acked: self.acked,
            nacked: rare.nacked,
            given_back: rare.given_back,
            lease_expired: rare.lease_expired,
            died: rare.died,
            expired: rare.expired,
            redriven: rare.redriven,
            cancelled: rare.cancelled,
            rejected_full: rare.rejected_full,
            forwarded: rare.forwarded,
        }
    }

    /// The number of bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.rare.as_deref().map_or(0, size_of_val)
    }
}

impl From<Totals> for Tally {
    fn from(totals: Totals) -> Tally {
        let rare = Rare {
            duplicates: totals.duplicates,
            nacked: totals.nacked,
            given_back: totals.given_back,
            lease_expired: totals.lease_expired,
            died: totals.died,
            expired: totals.expired,
            redriven: totals.redriven,
            cancelled: totals.cancelled,
            rejected_full: totals.rejected_full,
            forwarded: totals.forwarded,
        };
        let rare = (rare != Rare::default()).then(|| Box::new(rare));
        Tally { pushed: totals.pushed, delivered: totals.delivered, acked: totals.acked, rare }
    }
}

/// The number of messages that a queue holds in each state, as of its last advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that are due later.
    pub delayed: u64,
    /// Messages that may be delivered now.
    pub ready: u64,
    /// Messages that are leased to a consumer.
    pub inflight: u64,
    /// Dead messages, which are kept for inspection.
    pub dead: u64,
    /// Done messages, which are kept for a time.
    pub done: u64,
    /// The size of all payloads, in bytes.
    pub payload_bytes: u64,
}

impl Counts {
    /// The number of messages in all states.
    pub fn total(&self) -> u64 {
        StateKind::ALL.into_iter().map(|kind| self.of(kind)).sum()
    }

    /// The number of messages in one state.
    pub fn of(&self, kind: StateKind) -> u64 {
        match kind {
            StateKind::Delayed => self.delayed,
            StateKind::Ready => self.ready,
            StateKind::InFlight => self.inflight,
            StateKind::Dead => self.dead,
            StateKind::Done => self.done,
        }
    }
}
