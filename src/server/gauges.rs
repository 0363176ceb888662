//! What all queues of this server hold and have done together: what `INFO dq` shows.
//!
//! Each queue's share is published by difference after each change, and taken back as it is freed. Freeing may
//! happen on a background thread, so what is held is counted in atomics; they are all that a queue touches as it
//! goes. What happened is counted by the main thread alone, from the start of the server, and only grows.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::queue::{Counts, Totals};

/// Queues that exist.
static QUEUES: AtomicI64 = AtomicI64::new(0);
/// In the order of [`held`].
static HELD: [AtomicI64; 5] = [const { AtomicI64::new(0) }; 5];
/// In the order of [`Totals::named`].
static TOTALS: [AtomicU64; 11] = [const { AtomicU64::new(0) }; 11];

/// Clients that wait for a message.
pub static BLOCKED_CLIENTS: AtomicI64 = AtomicI64::new(0);

fn held(counts: &Counts) -> [u64; 5] {
    [counts.delayed, counts.ready, counts.inflight, counts.dead, counts.payload_bytes]
}

/// One queue's share of the sums.
#[derive(Debug)]
pub struct Share {
    counts: Counts,
    totals: Totals,
}

impl Share {
    /// The share of a queue that came to be: what it did elsewhere, or before, is not counted here.
    pub fn of(counts: Counts, totals: Totals) -> Share {
        QUEUES.fetch_add(1, Relaxed);
        let mut share = Share { counts: Counts::default(), totals };
        share.publish(counts, &totals);
        share
    }

    /// Adds what has changed since the last time. Main thread only.
    #[inline]
    pub fn publish(&mut self, counts: Counts, totals: &Totals) {
        if counts != self.counts {
            add(held(&counts), held(&self.counts));
            self.counts = counts;
        }
        if *totals != self.totals {
            for ((sum, (_, now)), (_, before)) in TOTALS.iter().zip(totals.named()).zip(self.totals.named()) {
                // One writer, so a load and a store do; a locked addition would cost a tenth of a push.
                sum.store(sum.load(Relaxed).wrapping_add(now.wrapping_sub(before)), Relaxed);
            }
            self.totals = *totals;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        QUEUES.fetch_sub(1, Relaxed);
        add([0; 5], held(&self.counts));
    }
}

#[inline]
fn add(now: [u64; 5], before: [u64; 5]) {
    for ((sum, now), before) in HELD.iter().zip(now).zip(before) {
        if now != before {
            sum.fetch_add(now.wrapping_sub(before) as i64, Relaxed);
        }
    }
}

/// Queues that exist.
pub fn queues() -> u64 {
    shown(&QUEUES)
}

/// Clients that wait for a message.
pub fn blocked_clients() -> u64 {
    shown(&BLOCKED_CLIENTS)
}

/// What all queues hold, as of the last advance of each.
pub fn counts() -> Counts {
    let [delayed, ready, inflight, dead, payload_bytes] = HELD.each_ref().map(shown);
    Counts { delayed, ready, inflight, dead, payload_bytes }
}

/// What happened since the server started, with the names that `DQ.INFO` gives the totals of one queue.
pub fn totals() -> impl Iterator<Item = (&'static str, u64)> {
    let names = Totals::default().named();
    names.into_iter().zip(&TOTALS).map(|((name, _), sum)| (name, sum.load(Relaxed)))
}

/// A sum as it is shown: while one thread adds and another subtracts it may dip below zero.
fn shown(sum: &AtomicI64) -> u64 {
    u64::try_from(sum.load(Relaxed)).unwrap_or(0)
}
