//! The schedule: the hints that say when to look at which key, the one timer, and the walk through the keyspace.
//!
//! This room knows nothing about queues. It knows which keys are to be looked at and when, keeps one of the server's
//! timers armed for the earliest of these times, and calls the functions that were registered ([`Callbacks`]). It needs
//! only four calls to the server ([`Clockwork`]), so tests can run it on a simulated server; see `tests`.

pub mod agenda;
mod hint;
#[cfg(test)]
mod tests;
pub mod timer;
pub mod wakeup;
pub mod walk;

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use redis_module::raw;

use crate::module_api::alarms::BUG;
use crate::module_api::ctx::{Ctx, TimerId};
use crate::module_api::log::{log, Level};
use agenda::{Agenda, Taken};
use dq_queue::time::UnixMs;
use timer::{Budget, Timer};
use walk::{Cause, Walk};

/// What the schedule needs from the server.
pub trait Clockwork {
    /// The time of a monotonic clock.
    fn instant(&self) -> Instant;
    /// Creates a timer that fires once, in `ms` milliseconds or a little later.
    fn create_timer(&self, ms: u64) -> TimerId;
    /// Stops a timer that has not fired.
    fn stop_timer(&self, timer: TimerId);
    /// Makes the server call [`Schedule::wake`] at the time of day `at`, instead of at the time set before. It may
    /// come at any other time, or never.
    fn wake_at(&self, at: UnixMs);
    /// The same for the instant after `wait` on the monotonic clock.
    fn wake_after(&self, wait: Duration);
}

impl Clockwork for Ctx<'_> {
    fn instant(&self) -> Instant {
        Instant::now()
    }

    fn create_timer(&self, ms: u64) -> TimerId {
        Ctx::create_timer(self, ms, timer::on_timer)
    }

    fn stop_timer(&self, timer: TimerId) {
        Ctx::stop_timer(self, timer);
    }

    fn wake_at(&self, at: UnixMs) {
        wakeup::wake_at(at);
    }

    fn wake_after(&self, wait: Duration) {
        wakeup::wake_after(wait);
    }
}

/// What the timer does when it fires.
pub struct Callbacks {
    /// Looks at the key of a hint. It stops early once the budget is spent. Returns whether it lasted.
    pub look_at: fn(Ctx, &Taken, UnixMs, &Budget) -> bool,
    /// How long one run may take.
    pub budget: fn() -> Duration,
    /// Returns whether somebody waits for what the timer does. If nobody does, the timer may be a few milliseconds
    /// late.
    pub is_awaited: fn() -> bool,
    /// Returns whether a value was unlinked from its key, still exists, and has not been looked at since.
    pub is_any_lost: fn() -> bool,
    /// Returns whether an open key holds a value that the timer must look at.
    ///
    /// # Safety
    /// It is called with an open key.
    pub is_concerned: unsafe fn(*mut raw::RedisModuleKey) -> bool,
}

static CALLBACKS: OnceLock<Callbacks> = OnceLock::new();

/// Registers what the timer does. Called once, while the module loads.
pub fn register(callbacks: Callbacks) {
    // If the module is loaded a second time in one process, the same functions are already set.
    let _ = CALLBACKS.set(callbacks);
}

/// What is kept between calls: the hints, the timer and the walk.
#[derive(Default)]
pub struct Schedule {
    /// When to look at which key.
    pub agenda: Agenda,
    /// The walk that finds values that have lost their hint.
    pub walk: Walk,
    timer: Timer,
}

impl Schedule {
    /// Makes the timer look at `key` as soon as possible.
    pub fn look_at(&mut self, server: &impl Clockwork, now: UnixMs, db: i32, key: &[u8]) {
        self.agenda.look_at(now, db, key);
        self.rearm(server, now);
    }

    /// Makes the timer punctual, because from now on somebody waits for what it does.
    pub fn hurry(&mut self, server: &impl Clockwork, now: UnixMs) {
        if self.timer.hurry(server) {
            self.rearm(server, now);
        }
    }

    /// Requests a walk through the keyspace.
    pub fn start_walk(&mut self, server: &impl Clockwork, now: UnixMs, cause: Cause) {
        self.walk.request(now, cause);
        self.rearm(server, now);
    }

    /// Arms the timer for the earliest time at which there is something to do, unless it is already armed for that time
    /// or an earlier one.
    pub fn rearm(&mut self, server: &impl Clockwork, now: UnixMs) {
        let earliest = self.agenda.earliest().into_iter().chain(self.walk.next_step(now)).min();
        if let Some(at) = earliest {
            self.timer.arm(server, now, at);
        }
    }

    /// The event loop was woken, because the requested time of day has come, or because the time of day was set. If the
    /// time of the timer has come, the timer fires in this iteration of the event loop; otherwise it stays armed, and
    /// is armed again if it would fire too late. Returns whether it fires now.
    pub fn wake(&mut self, server: &impl Clockwork, now: UnixMs) -> bool {
        let fires = self.timer.wake(server, now);
        if !fires {
            self.rearm(server, now);
        }
        fires
    }
}

thread_local! {
    /// Every path to it is called by the server on its main thread: commands, timers, server events, loads. It is
    /// borrowed only for one small step and never while the server is called, so it is always free. It is not freed at
    /// the exit.
    static SCHEDULE: ManuallyDrop<RefCell<Schedule>> = ManuallyDrop::default();
}

/// Runs `step` on the schedule. Returns `None`, and does nothing, if the schedule is in use; that would be a bug.
pub fn with_schedule<R>(step: impl FnOnce(&mut Schedule) -> R) -> Option<R> {
    SCHEDULE.with(|schedule| match schedule.try_borrow_mut() {
        Ok(mut schedule) => Some(step(&mut schedule)),
        Err(_) => in_use(),
    })
}

#[cold]
fn in_use<R>() -> Option<R> {
    log(Level::Warning, &format!("the schedule was asked for while in use, {BUG}"));
    None
}
