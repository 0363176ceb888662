//! When something is to be looked at: hints, the one timer, and the walk through the keyspace.
//!
//! This room knows no queue. It knows that keys want to be looked at when a time has come, keeps a timer of the server
//! armed for the earliest, and calls back whoever registered ([`Callbacks`]). What it needs of the server for that is
//! three calls ([`Clockwork`]), so that tests run it on a simulated server: see `simulation`.

pub mod agenda;
#[cfg(test)]
mod simulation;
pub mod timer;
pub mod walk;

use std::cell::RefCell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lazy_static::lazy_static;
use redis_module::raw;

use crate::module_api::alarms::BUG;
use crate::module_api::ctx::{Ctx, TimerId};
use crate::module_api::log::{log, Level};
use crate::queue::time::UnixMs;
use agenda::{Agenda, Taken};
use timer::Timer;
use walk::Walk;

/// What a schedule asks of the server.
pub trait Clockwork {
    /// The time of a clock that is never set.
    fn instant(&self) -> Instant;
    /// Has the timer run once, in `ms` milliseconds or a little later.
    fn create_timer(&self, ms: u64) -> TimerId;
    /// Takes back a timer that has not run.
    fn stop_timer(&self, timer: TimerId);
}

impl Clockwork for Ctx {
    fn instant(&self) -> Instant {
        Instant::now()
    }

    fn create_timer(&self, ms: u64) -> TimerId {
        Ctx::create_timer(self, ms, timer::on_timer)
    }

    fn stop_timer(&self, timer: TimerId) {
        Ctx::stop_timer(self, timer);
    }
}

/// What the timer does when a time has come.
pub struct Callbacks {
    /// Looks at the key of a hint, and stops early once the last argument answers `false`. Returns whether the budget
    /// lasted.
    pub look_at: fn(Ctx, &Taken, UnixMs, &dyn Fn() -> bool) -> bool,
    /// How long a run may take.
    pub budget: fn() -> Duration,
    /// Whether an open key holds something that the timer has to look at.
    ///
    /// # Safety
    /// It is called with an open key.
    pub is_concerned: unsafe fn(*mut raw::RedisModuleKey) -> bool,
}

static CALLBACKS: OnceLock<Callbacks> = OnceLock::new();

/// Registers what the timer does. Once, while loading.
pub fn register(callbacks: Callbacks) {
    // A second load in one process finds the same functions.
    let _ = CALLBACKS.set(callbacks);
}

/// What is kept between calls: the hints, the timer, and the walk.
#[derive(Default)]
pub struct Schedule {
    /// Which key is to be looked at when.
    pub agenda: Agenda,
    /// The walk for values that have lost their hint.
    pub walk: Walk,
    timer: Timer,
}

impl Schedule {
    /// Has the timer look at `key` as soon as it can.
    pub fn look_at(&mut self, server: &impl Clockwork, now: UnixMs, db: i32, key: &[u8]) {
        self.agenda.look_at(now, db, key);
        self.rearm(server, now);
    }

    /// Asks for a walk through the keyspace.
    pub fn start_walk(&mut self, server: &impl Clockwork, now: UnixMs) {
        self.walk.request(now);
        self.rearm(server, now);
    }

    /// Arms the timer for the earliest time at which something is to be done, unless it is armed for then or earlier.
    pub fn rearm(&mut self, server: &impl Clockwork, now: UnixMs) {
        let earliest = self.agenda.earliest().into_iter().chain(self.walk.next_step()).min();
        if let Some(at) = earliest {
            self.timer.arm(server, now, at);
        }
    }
}

/// What only the server's main thread uses.
struct MainThread<T>(T);

// SAFETY: all that leads here is called by the server on its main thread: commands, timers, server events, loads. What
// it calls on other threads, the freeing of values, leaves word in the ledger of the agenda and in atomic sums.
unsafe impl<T> Sync for MainThread<T> {}

lazy_static! {
    /// In use for the length of one small step and never while the server is called back, so it is always free.
    static ref SCHEDULE: MainThread<RefCell<Schedule>> = MainThread(RefCell::default());
}

/// Runs `step` on the schedule. Returns `None` if it is in use: that would be a bug, and nothing is done.
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
