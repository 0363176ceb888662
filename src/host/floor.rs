//! The last sequence and receipt that any queue of this process has issued. A new queue continues from there, so a
//! queue that is deleted and created again never repeats an id. Used on the main thread only.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use dq_queue::id::{Floor, Receipt, Sequence};

static LAST_SEQUENCE: AtomicU64 = AtomicU64::new(0);
static LAST_RECEIPT: AtomicU64 = AtomicU64::new(0);
static START: AtomicU32 = AtomicU32::new(0);

/// Draws the count at which this process begins the receipts of each millisecond.
pub fn draw_start() {
    // The keys of this hasher are the random numbers of the standard library.
    let drawn = RandomState::new().hash_one(0) & ((1 << Receipt::START_BITS) - 1);
    START.store(drawn as u32, Relaxed);
}

/// The last sequence and receipt that this process has issued.
pub fn floor() -> Floor {
    let (sequence, receipt) = (LAST_SEQUENCE.load(Relaxed), LAST_RECEIPT.load(Relaxed));
    Floor { sequence, receipt, start: START.load(Relaxed) }
}

/// Raises the floor to what a queue has issued.
pub fn raise_floor((sequence, receipt): (Sequence, Receipt)) {
    let mut floor = floor();
    floor.raise(sequence, receipt);
    store(floor);
}

/// Passes over the numbers that the former master, or the process before this one, may have given out and that were lost
/// with it.
pub fn pass_over_lost() {
    let mut floor = floor();
    floor.pass_over_lost();
    store(floor);
}

fn store(floor: Floor) {
    LAST_SEQUENCE.store(floor.sequence, Relaxed);
    LAST_RECEIPT.store(floor.receipt, Relaxed);
}
