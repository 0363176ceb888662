//! What the main thread keeps between calls: the agenda and the timer, and the floor under all ids.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;

use lazy_static::lazy_static;

use super::agenda::{Agenda, Hint};
use super::sweep::Sweep;
use super::timer::Timer;
use crate::queue::id::{Floor, Receipt, Sequence};
use crate::queue::time::UnixMs;

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
    SCHEDULE.try_lock().ok().map(|mut schedule| step(&mut schedule))
}

static TAKEN_TO: AtomicU64 = AtomicU64::new(0);

/// Takes out the earliest hint whose time has come.
pub fn take_hint(now: UnixMs) -> Option<Hint> {
    let hint = with_schedule(|schedule| schedule.agenda.take(now)).flatten();
    if let Some(hint) = &hint {
        TAKEN_TO.store(hint.at.as_ms(), Relaxed);
    }
    hint
}

/// Hints up to this time were taken out; without a look at the schedule, for every command asks this.
#[inline]
pub fn taken_to() -> UnixMs {
    UnixMs::new(TAKEN_TO.load(Relaxed))
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
