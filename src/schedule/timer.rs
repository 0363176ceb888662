//! The one timer. It is armed for the earliest time at which there is something to do, and each run does what is due.
//!
//! A run takes the hints whose time has come, earliest first, and looks at the key of each. When its budget is spent,
//! it stops and continues after a short rest, so that other clients never wait much longer than the budget. If there
//! is no hint, the timer is not armed, and nothing polls. The timer also runs on replicas. No answer depends on it: a
//! command that needs the effect of time computes it itself.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use redis_module::raw;

use super::{walk, with_schedule, Callbacks, Clockwork, CALLBACKS};
use crate::module_api::ctx::{Ctx, TimerId};
use crate::module_api::guard::{guard, plant};
use dq_queue::time::UnixMs;

/// The delay before the next run while writes are paused.
const PAUSED: Duration = Duration::from_millis(10);
/// The longest delay before the next run after the budget was spent. The delay is a quarter of the budget, so that a
/// fifth of the time is left to other clients; the event loop also serves each of them between two runs.
const BREATH: Duration = Duration::from_millis(1);
/// The delay before the next run while nobody waits for what the timer does: one run then moves many messages that fall
/// due one after the other.
const LAZY: Duration = Duration::from_millis(10);
/// How much later than its hint the timer may fire. It allows for two clocks that are compared in whole milliseconds.
const SLACK: Duration = Duration::from_millis(2);

/// The number of runs since the server started.
pub static RUNS: AtomicU64 = AtomicU64::new(0);
/// The duration of the last run, in microseconds.
pub static LAST_US: AtomicU64 = AtomicU64::new(0);
/// The duration of the longest run, in microseconds.
pub static LONGEST_US: AtomicU64 = AtomicU64::new(0);
/// The number of runs that spent their budget before the work was done.
pub static OVER_BUDGET: AtomicU64 = AtomicU64::new(0);

/// The time that a run may take.
pub struct Budget {
    started: Instant,
    time: Duration,
}

impl Budget {
    /// Whether the run may go on.
    pub fn lasts(&self) -> bool {
        self.started.elapsed() < self.time
    }

    /// Whether the run may write more to other keys. When it has ended, the server sends all that it wrote to the
    /// replicas and the AOF, which takes about as long as the writes themselves. Half of the time is left for that.
    pub fn lasts_for_writes(&self) -> bool {
        self.started.elapsed() < self.time / 2
    }
}

/// The state of the timer.
#[derive(Default)]
pub(super) struct Timer {
    armed: Option<ArmedTimer>,
    /// The timer must not fire before this instant, because other clients are to be served or writes are paused.
    not_before: Option<Instant>,
    /// It rests only because nobody waits; see [`Timer::hurry`].
    is_lazy: bool,
    /// A run is in progress. The timer is armed when it has ended: only then is it known what is left to do, and
    /// whether the timer must rest.
    running: bool,
}

/// A timer of the server that has not fired.
struct ArmedTimer {
    timer: TimerId,
    /// The time for which it was armed.
    at: UnixMs,
    /// When it fires, on the monotonic clock that the server's timers use. Unlike the time of day, this clock is never
    /// set.
    fires: Instant,
}

impl Timer {
    /// Arms the timer for `at`, unless it is already armed for that time or an earlier one.
    pub fn arm(&mut self, server: &impl Clockwork, now: UnixMs, at: UnixMs) {
        if self.running {
            return;
        }
        let instant = server.instant();
        let rest = self.rest(instant);
        let until_due = Duration::from_millis(at.since(now).as_ms());
        let wait = until_due.max(rest);
        let fires = instant.checked_add(wait).unwrap_or(instant);
        if let Some(armed) = &self.armed {
            // If the time of day has stepped forward since, the timer would fire too late.
            if armed.at <= at && armed.fires <= fires + SLACK {
                return;
            }
            server.stop_timer(armed.timer);
        }
        // Rounds up. `now` was rounded down to the millisecond, so the timer fires within the millisecond after `at`,
        // never before it.
        let ms = wait.as_nanos().div_ceil(1_000_000);
        let timer = server.create_timer(u64::try_from(ms).unwrap_or(u64::MAX));
        self.armed = Some(ArmedTimer { timer, at, fires });
        if until_due < rest {
            if !self.is_lazy {
                server.wake_after(rest);
            }
        } else if at > now {
            server.wake_at(at);
        }
    }

    /// Makes the timer fire in this iteration of the event loop if its time has come. Returns whether it has.
    pub fn wake(&mut self, server: &impl Clockwork, now: UnixMs) -> bool {
        let instant = server.instant();
        let rest = self.rest(instant);
        if !rest.is_zero() && self.is_lazy {
            return false;
        }
        if !rest.is_zero() {
            // The descriptor holds only one instant, and this one had replaced the end of the rest.
            server.wake_after(rest);
            return false;
        }
        let Some(armed) = self.armed.as_mut().filter(|armed| armed.at <= now) else { return false };
        server.stop_timer(armed.timer);
        armed.timer = server.create_timer(0);
        armed.fires = instant;
        true
    }

    /// How long the timer must still wait before it may fire.
    fn rest(&self, instant: Instant) -> Duration {
        self.not_before.map_or(Duration::ZERO, |until| until.saturating_duration_since(instant))
    }

    /// Records that the timer has fired, so that it is not stopped any more, and that a run begins.
    pub fn begin_run(&mut self) {
        *self = Timer { running: true, ..Timer::default() };
    }

    /// Ensures that the timer does not fire before `until`.
    pub fn rest_until(&mut self, until: Option<Instant>) {
        self.not_before = until;
        self.is_lazy = false;
    }

    /// The same, until somebody waits.
    pub fn rest_lazily_until(&mut self, until: Option<Instant>) {
        self.not_before = until;
        self.is_lazy = true;
    }

    /// Somebody waits for what the timer does. Returns whether the timer must be armed again because it rested only
    /// until then.
    pub fn hurry(&mut self, server: &impl Clockwork) -> bool {
        if !std::mem::take(&mut self.is_lazy) {
            return false;
        }
        self.not_before = None;
        if let Some(armed) = self.armed.take() {
            server.stop_timer(armed.timer);
        }
        true
    }

    /// Records that the run has ended. The timer must be armed then.
    pub fn end_run(&mut self) {
        self.running = false;
    }
}

/// The server's cron event, about ten times a second. The time of day may have stepped forward, or the machine may have
/// been suspended, without a command that would notice it.
pub extern "C" fn on_cron(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("the cron event", (), || rearm(ctx));
}

/// The callback of the timer.
pub(super) extern "C" fn on_timer(ctx: *mut raw::RedisModuleCtx, _: *mut c_void) {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("the timer", (), || run(ctx));
    // The timer must be armed again, whatever happened in the run.
    guard("the timer", (), || {
        with_schedule(|schedule| schedule.timer.end_run());
        rearm(ctx);
    });
}

fn rearm(ctx: Ctx) {
    let now = UnixMs::new(ctx.now_ms());
    with_schedule(|schedule| schedule.rearm(&ctx, now));
}

fn run(ctx: Ctx) {
    // The time of the server's own commands, so that no entry of a stream has an id from before its message was due.
    let now = UnixMs::new(ctx.began_ms());
    with_schedule(|schedule| schedule.timer.begin_run());
    plant("timer");
    let Some(Callbacks { look_at, budget, is_awaited, .. }) = CALLBACKS.get() else { return };
    if ctx.avoid_replication_traffic() {
        rest(PAUSED);
        return;
    }
    let budget = Budget { started: Instant::now(), time: budget() };
    // This comes first, so that the values it meets are looked at in this run: a value may move again between two runs.
    walk::step(ctx, now);
    let mut lasted = true;
    while lasted {
        let Some(taken) = with_schedule(|schedule| schedule.agenda.take(now)).flatten() else { break };
        lasted = look_at(ctx, &taken, now, &budget);
    }
    if !lasted {
        OVER_BUDGET.fetch_add(1, Relaxed);
        rest((budget.time / 4).min(BREATH));
    } else if !is_awaited() {
        with_schedule(|schedule| schedule.timer.rest_lazily_until(Instant::now().checked_add(LAZY)));
    }
    let took = u64::try_from(budget.started.elapsed().as_micros()).unwrap_or(u64::MAX);
    RUNS.fetch_add(1, Relaxed);
    LAST_US.store(took, Relaxed);
    LONGEST_US.fetch_max(took, Relaxed);
}

/// Delays the next run by at least `time`.
fn rest(time: Duration) {
    with_schedule(|schedule| schedule.timer.rest_until(Instant::now().checked_add(time)));
}
