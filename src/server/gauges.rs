//! What all queues of this server hold and have done together: what `INFO dq` shows.
//!
//! A queue's share is published by difference whenever its key was open, by the main thread, and taken back as it is
//! freed. That may happen on a background thread, so what goes is counted apart from what comes. What happened is
//! counted from the start of the server, and only grows.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::queue::{Counts, Queue, Totals};

/// What came. Changed by the main thread alone.
static CAME: Sums = Sums::none();
/// What went. Changed by whichever thread frees a queue.
static WENT: Sums = Sums::none();
/// In the order of [`Totals::NAMES`]. Changed by the main thread alone.
static TOTALS: [AtomicU64; Totals::NAMES.len()] = [const { AtomicU64::new(0) }; Totals::NAMES.len()];

/// Queues, and what they hold in the order of [`numbers`]. Differences, so that they may wrap.
struct Sums {
    queues: AtomicU64,
    counts: [AtomicU64; 5],
}

impl Sums {
    const fn none() -> Sums {
        Sums { queues: AtomicU64::new(0), counts: [const { AtomicU64::new(0) }; 5] }
    }
}

/// Clients that wait for a message.
pub static BLOCKED_CLIENTS: AtomicI64 = AtomicI64::new(0);

fn numbers(counts: &Counts) -> [u64; 5] {
    [counts.delayed, counts.ready, counts.inflight, counts.dead, counts.payload_bytes]
}

/// What one queue adds to the sums, as published.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    counts: Counts,
    totals: Totals,
}

impl Share {
    /// The share of a queue whose last change was published.
    #[inline]
    pub fn of(queue: &Queue) -> Share {
        Share { counts: queue.counts(), totals: queue.totals() }
    }

    /// Adds what has changed in the queue since.
    #[inline]
    pub fn publish(&self, queue: &Queue) {
        add(&CAME.counts, numbers(&queue.counts()), numbers(&self.counts));
        add(&TOTALS, queue.totals().numbers(), self.totals.numbers());
    }
}

/// Adds what has changed to sums that this thread alone changes: a locked addition would cost a tenth of a push.
#[inline]
fn add<const N: usize>(sums: &[AtomicU64; N], now: [u64; N], before: [u64; N]) {
    for ((sum, now), before) in sums.iter().zip(now).zip(before) {
        sum.store(sum.load(Relaxed).wrapping_add(now.wrapping_sub(before)), Relaxed);
    }
}

/// Adds a queue that came to be: what it did elsewhere, or before, is not counted here.
pub fn enter(queue: &Queue) {
    CAME.queues.store(CAME.queues.load(Relaxed).wrapping_add(1), Relaxed);
    add(&CAME.counts, numbers(&queue.counts()), [0; 5]);
}

/// Counts what a queue did that came to be by it, here.
pub fn count(queue: &Queue) {
    add(&TOTALS, queue.totals().numbers(), [0; Totals::NAMES.len()]);
}

/// Takes back what a queue added that is being freed, on whatever thread.
pub fn leave(queue: &Queue) {
    WENT.queues.fetch_add(1, Relaxed);
    for (sum, went) in WENT.counts.iter().zip(numbers(&queue.counts())) {
        sum.fetch_add(went, Relaxed);
    }
}

/// Queues that exist.
pub fn queues() -> u64 {
    shown(&CAME.queues, &WENT.queues)
}

/// Clients that wait for a message.
pub fn blocked_clients() -> u64 {
    u64::try_from(BLOCKED_CLIENTS.load(Relaxed)).unwrap_or(0)
}

/// What all queues hold, as of the last advance of each.
pub fn counts() -> Counts {
    let mut sums = CAME.counts.iter().zip(&WENT.counts).map(|(came, went)| shown(came, went));
    let [delayed, ready, inflight, dead, payload_bytes] = std::array::from_fn(|_| sums.next().unwrap_or(0));
    Counts { delayed, ready, inflight, dead, payload_bytes }
}

/// What happened since the server started, with the names that `DQ.INFO` gives the totals of one queue.
pub fn totals() -> impl Iterator<Item = (&'static str, u64)> {
    Totals::NAMES.into_iter().zip(TOTALS.iter().map(|sum| sum.load(Relaxed)))
}

/// What came and did not go. A crash report may ask in the midst of a change, and sees no less than nothing.
fn shown(came: &AtomicU64, went: &AtomicU64) -> u64 {
    let left = came.load(Relaxed).wrapping_sub(went.load(Relaxed));
    if i64::try_from(left).is_ok() {
        left
    } else {
        0
    }
}
