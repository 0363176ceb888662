//! What the main thread keeps between calls: the agenda and the timer, and the floor under all ids.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, TryLockError};

use lazy_static::lazy_static;

use super::agenda::Agenda;
use super::log::{log, Level};
use super::sweep::Sweep;
use super::timer::Timer;
use crate::queue::id::{Floor, Receipt, Sequence};

/// What the timer and the commands share.
#[derive(Default)]
pub struct Schedule {
    /// Who wants to be looked at when.
    pub agenda: Agenda,
    /// The walk for lost queues.
    pub sweep: Sweep,
    /// The one timer.
    pub timer: Timer,
}

lazy_static! {
    /// Held for the length of one small step and never while the server is called back, so it is always free: a
    /// mutex only because that is what the language takes for a proof.
    static ref SCHEDULE: Mutex<Schedule> = Mutex::new(Schedule::default());
}

/// Runs `step` on the schedule. None where it is in use, which would be a bug, and is answered by doing nothing.
pub fn with_schedule<R>(step: impl FnOnce(&mut Schedule) -> R) -> Option<R> {
    match SCHEDULE.try_lock() {
        Ok(mut schedule) => Some(step(&mut schedule)),
        // A step that panicked left it as it was, or one hint short, and the timer must go on.
        Err(TryLockError::Poisoned(poisoned)) => Some(step(&mut poisoned.into_inner())),
        Err(TryLockError::WouldBlock) => {
            log(Level::Warning, "the schedule was asked for while in use, a bug in the module");
            None
        }
    }
}

static LAST_SEQUENCE: AtomicU64 = AtomicU64::new(0);
static LAST_RECEIPT: AtomicU64 = AtomicU64::new(0);

/// The last sequence and receipt that this process gave, in any queue. Main thread only.
#[inline]
pub fn floor() -> Floor {
    Floor { sequence: LAST_SEQUENCE.load(Relaxed), receipt: LAST_RECEIPT.load(Relaxed) }
}

/// Notes what a queue gave.
#[inline]
pub fn raise_floor((sequence, receipt): (Sequence, Receipt)) {
    let mut floor = floor();
    floor.raise(sequence, receipt);
    LAST_SEQUENCE.store(floor.sequence, Relaxed);
    LAST_RECEIPT.store(floor.receipt, Relaxed);
}
