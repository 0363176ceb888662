//! The last sequence and receipt that any queue of this process has issued. A new queue continues from there, so a
//! queue that is deleted and created again never repeats an id. Used on the main thread only.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use dq_queue::id::{Floor, Receipt, Sequence};

static LAST_SEQUENCE: AtomicU64 = AtomicU64::new(0);
static LAST_RECEIPT: AtomicU64 = AtomicU64::new(0);

/// The last sequence and receipt that this process has issued.
pub fn floor() -> Floor {
    Floor { sequence: LAST_SEQUENCE.load(Relaxed), receipt: LAST_RECEIPT.load(Relaxed) }
}

/// Raises the floor to what a queue has issued.
pub fn raise_floor((sequence, receipt): (Sequence, Receipt)) {
    let mut floor = floor();
    floor.raise(sequence, receipt);
    LAST_SEQUENCE.store(floor.sequence, Relaxed);
    LAST_RECEIPT.store(floor.receipt, Relaxed);
}
