//! Totals since the queue was created, and what it holds now.

use super::record::StateKind;
use serde::{Deserialize, Serialize};

/// What happened in a queue since it was created. Loaded, dumped and synchronised with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Messages pushed, replacements too.
    pub pushed: u64,
    /// Pushes refused because the queue held a message of that name.
    pub duplicates: u64,
    /// Deliveries, those without a lease too.
    pub delivered: u64,
    /// Messages completed.
    pub acked: u64,
    /// Deliveries given back or rejected.
    pub nacked: u64,
    /// Leases that ended by time.
    pub lease_expired: u64,
    /// Messages that became dead, for any reason.
    pub died: u64,
    /// Of these, by the end of their TTL.
    pub expired: u64,
    /// Dead messages made live again.
    pub redriven: u64,
    /// Messages removed by `DQ.CANCEL`.
    pub cancelled: u64,
    /// Pushes refused because the queue was full.
    pub rejected_full: u64,
}

impl Totals {
    /// Each total with the name that clients see, in the order in which they see them.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("pushed", self.pushed),
            ("duplicates", self.duplicates),
            ("delivered", self.delivered),
            ("acked", self.acked),
            ("nacked", self.nacked),
            ("lease-expired", self.lease_expired),
            ("died", self.died),
            ("expired", self.expired),
            ("redriven", self.redriven),
            ("cancelled", self.cancelled),
            ("rejected-full", self.rejected_full),
        ]
    }
}

/// What a queue holds, as of its last advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Due later.
    pub delayed: u64,
    /// May be delivered.
    pub ready: u64,
    /// Leased.
    pub inflight: u64,
    /// Kept for inspection.
    pub dead: u64,
    /// Bytes of all payloads.
    pub payload_bytes: u64,
}

impl Counts {
    /// Messages in one state.
    pub fn of(&self, kind: StateKind) -> u64 {
        match kind {
            StateKind::Delayed => self.delayed,
            StateKind::Ready => self.ready,
            StateKind::InFlight => self.inflight,
            StateKind::Dead => self.dead,
        }
    }
}
