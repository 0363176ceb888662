//! Totals since the queue was created, and the number of messages that it holds now.

use super::memory::box_bytes;
use super::record::{Reason, StateKind};
use super::time::UnixMs;

/// Declares each total once: its meaning, the name under which clients see it, and its field.
macro_rules! totals {
    ($($(#[$doc:meta])* $name:literal $field:ident,)*) => {
        /// What happened in a queue since it was created. The totals are saved, dumped and replicated with the queue.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Totals {
            /// The names under which clients see the totals, in the order of the replies.
            pub const NAMES: [&'static str; [$($name),*].len()] = [$($name),*];

            /// Each total, in the order of [`Totals::NAMES`].
            #[inline]
            pub fn numbers(&self) -> [u64; Self::NAMES.len()] {
                [$(self.$field),*]
            }

            /// The inverse of [`Totals::numbers`].
            pub const fn from_numbers([$($field),*]: [u64; Self::NAMES.len()]) -> Totals {
                Totals { $($field),* }
            }
        }
    };
}

totals! {
    /// Messages pushed, including those that replaced another.
    "pushed" pushed,
    /// Pushes refused because a live or a done message has their id, or because the id is known (`DEDUPE`).
    "duplicates" duplicates,
    /// Deliveries, including those without a lease.
    "delivered" delivered,
    /// Messages completed.
    "acked" acked,
    /// Deliveries that failed or were rejected.
    "nacked" nacked,
    /// Deliveries that were given back without being counted.
    "given-back" given_back,
    /// Leases that expired.
    "lease-expired" lease_expired,
    /// Messages that became dead, for any reason.
    "died" died,
    /// Messages that became dead because their TTL ended; they are also counted in `died`.
    "expired" expired,
    /// Dead messages made live again.
    "redriven" redriven,
    /// Messages removed by `DQ.CANCEL`.
    "cancelled" cancelled,
    /// Pushes refused because the queue was full.
    "rejected-full" rejected_full,
    /// Messages forwarded; they are also counted in `delivered`.
    "forwarded" forwarded,
    /// Dead messages forwarded.
    "deadforwarded" deadforwarded,
}

impl Totals {
    /// Each total with its name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Self::NAMES.into_iter().zip(self.numbers())
    }
}

/// The totals as a queue stores them: what most queues count in place, and the others in a box that is allocated with
/// the first event of its kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub pushed: u64,
    pub delivered: u64,
    pub acked: u64,
    others: Option<Box<Others>>,
}

#[derive(Clone, Debug, Default)]
struct Others {
    /// Those that are counted in place are zero here.
    totals: Totals,
    /// The latest death that was counted on this server.
    last_death: UnixMs,
}

impl Tally {
    /// The totals that are not counted in place, for counting; allocates them first if necessary.
    pub fn others(&mut self) -> &mut Totals {
        &mut self.others.get_or_insert_default().totals
    }

    /// Subtracts what was counted beyond the instant to which the view was taken back.
    pub fn uncount(&mut self, uncounted: Uncounted) {
        if uncounted == Uncounted::default() {
            return;
        }
        let others = self.others();
        others.lease_expired = others.lease_expired.saturating_sub(uncounted.lease_expired);
        others.died = others.died.saturating_sub(uncounted.died);
        others.expired = others.expired.saturating_sub(uncounted.expired);
    }

    /// Counts a nack of a message that had `attempts` attempts before it and has `left` attempts after it.
    pub fn count_nack(&mut self, attempts: u32, left: u32) {
        let others = self.others();
        let total = if left < attempts { &mut others.given_back } else { &mut others.nacked };
        *total += 1;
    }

    /// Counts a message that died at `died`.
    pub fn count_dead(&mut self, died: UnixMs, reason: Reason) {
        let Others { totals, last_death } = &mut **self.others.get_or_insert_default();
        totals.died += 1;
        totals.expired += u64::from(reason == Reason::Expired);
        *last_death = died.max(*last_death);
    }

    /// The latest death that was counted; `None` if there was none.
    pub fn last_death(&self) -> Option<UnixMs> {
        self.others.as_deref().map(|others| others.last_death).filter(|died| *died != UnixMs::EPOCH)
    }

    /// Those that are counted in place, in the order of the fields, and the others once one of them was counted.
    #[inline]
    pub fn parts(&self) -> ([u64; 3], Option<&Totals>) {
        ([self.pushed, self.delivered, self.acked], self.others.as_deref().map(|others| &others.totals))
    }

    /// All totals.
    #[inline]
    pub fn totals(&self) -> Totals {
        let others = self.others.as_deref().map(|others| others.totals).unwrap_or_default();
        Totals { pushed: self.pushed, delivered: self.delivered, acked: self.acked, ..others }
    }

    /// The number of bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.others.as_deref().map_or(0, |_| box_bytes::<Totals>())
    }
}

impl From<Totals> for Tally {
    fn from(totals: Totals) -> Tally {
        let others = Totals { pushed: 0, delivered: 0, acked: 0, ..totals };
        let others = (others != Totals::default()).then(|| Box::new(Others { totals: others, ..Others::default() }));
        Tally { pushed: totals.pushed, delivered: totals.delivered, acked: totals.acked, others }
    }
}

/// What the totals had counted beyond the instant to which a view was taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uncounted {
    pub lease_expired: u64,
    pub died: u64,
    pub expired: u64,
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
        StateKind::ALL.into_iter().map(|kind| self.count(kind)).sum()
    }

    /// The number of messages in one state.
    pub fn count(&self, kind: StateKind) -> u64 {
        match kind {
            StateKind::Delayed => self.delayed,
            StateKind::Ready => self.ready,
            StateKind::InFlight => self.inflight,
            StateKind::Dead => self.dead,
            StateKind::Done => self.done,
        }
    }
}
