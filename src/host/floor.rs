//! The last sequence and receipt that any queue of this process has issued. A new queue continues from there, so a
//! queue that is deleted and created again never repeats an id. Used on the main thread only.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use dq_queue::id::{Floor, Receipt, Sequence};
use dq_queue::time::UnixMs;

use crate::module_api::ctx::now_ms;

static LAST_SEQUENCE: AtomicU64 = AtomicU64::new(0);
static LAST_RECEIPT: AtomicU64 = AtomicU64::new(0);
static START: AtomicU32 = AtomicU32::new(0);
static GAP: AtomicU32 = AtomicU32::new(0);

/// Draws the numbers that tell this process from others: [`Floor::start`] and [`Floor::gap`].
pub fn draw() {
    // The keys of this hasher are the random numbers of the standard library.
    let drawn = |bits: u32| (RandomState::new().hash_one(0) & ((1 << bits) - 1)) as u32;
    START.store(drawn(Receipt::START_BITS), Relaxed);
    GAP.store(drawn(Floor::GAP_BITS), Relaxed);
}

/// The last sequence and receipt that this process has issued.
pub fn floor() -> Floor {
    let (sequence, receipt) = (LAST_SEQUENCE.load(Relaxed), LAST_RECEIPT.load(Relaxed));
    Floor { sequence, receipt, start: START.load(Relaxed), gap: GAP.load(Relaxed) }
}

/// Raises the floor to what a queue has issued.
pub fn raise_floor((sequence, receipt): (Sequence, Receipt)) {
    let mut floor = floor();
    floor.raise(sequence, receipt);
    store(floor);
}

/// Passes over the numbers that the former master, or the process before this one, may have given out and that were
/// lost with it.
pub fn pass_over_lost() {
    let mut floor = floor();
    floor.pass_over_lost(UnixMs::new(now_ms()));
    store(floor);
}

fn store(floor: Floor) {
    LAST_SEQUENCE.store(floor.sequence, Relaxed);
    LAST_RECEIPT.store(floor.receipt, Relaxed);
}
