//! What the main thread keeps between calls: the agenda and the timer, and the floor under all ids.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lazy_static::lazy_static;

use super::agenda::Agenda;
use super::alarms::BUG;
use super::blocked_keys::BlockedKeys;
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
    /// The keys that clients are blocked on.
    pub blocked: BlockedKeys,
}

/// What only the server's main thread uses.
struct MainThread<T>(T);

// SAFETY: all that leads here is called by the server on its main thread: commands, timers, server events, loads. What
// it calls on other threads, the freeing of values, leaves word in `agenda::STRUCK_OUT` and in atomic sums.
unsafe impl<T> Sync for MainThread<T> {}

lazy_static! {
    /// In use for the length of one small step and never while the server is called back, so it is always free.
    static ref SCHEDULE: MainThread<RefCell<Schedule>> = MainThread(RefCell::default());
}

/// Runs `step` on the schedule. None where it is in use, which would be a bug, and is answered by doing nothing.
#[inline]
pub fn with_schedule<R>(step: impl FnOnce(&mut Schedule) -> R) -> Option<R> {
    match SCHEDULE.0.try_borrow_mut() {
        Ok(mut schedule) => Some(step(&mut schedule)),
        Err(_) => in_use(),
    }
}

#[cold]
fn in_use<R>() -> Option<R> {
    log(Level::Warning, &format!("the schedule was asked for while in use, {BUG}"));
    None
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
