//! The one timer: armed at the earliest time at which something is to be done, and a run that does it.
//!
//! A run takes the hints whose time has come, in the order of their times, has each looked at, and stops at its budget,
//! to go on a millisecond later, so that other clients never wait for more than about that. With no hint nothing is
//! armed and nothing polls. It runs on replicas too. Nothing depends on it: a command computes for itself what its
//! answer needs.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use redis_module::raw;

use super::{walk, with_schedule, Callbacks, Clockwork, CALLBACKS};
use crate::module_api::ctx::{Ctx, TimerId};
use crate::module_api::guard::{guard, plant};
use crate::queue::time::UnixMs;

/// How long the timer waits while writes are paused.
const PAUSED: Duration = Duration::from_millis(10);
/// How long it lets other clients have their turn after its budget was spent: the shortest that the server offers.
const BREATH: Duration = Duration::from_millis(1);
/// By how much the timer may fire later than its hint asks, as two clocks of whole milliseconds compare them.
const SLACK: Duration = Duration::from_millis(2);

/// Runs since the start.
pub static RUNS: AtomicU64 = AtomicU64::new(0);
/// How long the last run took, µs.
pub static LAST_US: AtomicU64 = AtomicU64::new(0);
/// How long the longest run took, µs.
pub static LONGEST_US: AtomicU64 = AtomicU64::new(0);
/// Runs that stopped at their budget with work left.
pub static OVER_BUDGET: AtomicU64 = AtomicU64::new(0);

/// The timer, as far as it is armed.
#[derive(Default)]
pub(super) struct Timer {
    armed: Option<Armed>,
    /// Other clients have their turn, or writes are paused, until then.
    not_before: Option<Instant>,
}

/// A timer of the server's that has not fired.
struct Armed {
    timer: TimerId,
    /// The time that it was armed for.
    at: UnixMs,
    /// When it fires, by the clock that the server's timers go by: the time of day may be set, and that one not.
    fires: Instant,
}

impl Timer {
    /// Arms it for `at`, unless it is armed for then or earlier.
    pub fn arm(&mut self, server: &impl Clockwork, now: UnixMs, at: UnixMs) {
        let instant = server.instant();
        let rest = self.not_before.map_or(Duration::ZERO, |until| until.saturating_duration_since(instant));
        let wait = Duration::from_millis(at.since(now).as_ms()).max(rest);
        let fires = instant.checked_add(wait).unwrap_or(instant);
        if let Some(armed) = &self.armed {
            // It fires too late if the time of day has stepped forward since.
            if armed.at <= at && armed.fires <= fires + SLACK {
                return;
            }
            server.stop_timer(armed.timer);
        }
        // Rounds up: `now` was rounded down to the millisecond, so it fires within the one after, never before.
        let ms = wait.as_nanos().div_ceil(1_000_000);
        let timer = server.create_timer(u64::try_from(ms).unwrap_or(u64::MAX));
        self.armed = Some(Armed { timer, at, fires });
    }

    /// Notes that it fired: it must not be stopped any more.
    pub fn fired(&mut self) {
        *self = Timer::default();
    }
}

/// The server's cron event, some ten times a second: the time of day may have stepped forward, or the machine may have
/// slept, with no command to notice it.
pub extern "C" fn on_cron(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("the cron event", (), || rearm(ctx));
}

/// What the server calls when the timer fires.
pub(super) extern "C" fn on_timer(ctx: *mut raw::RedisModuleCtx, _: *mut c_void) {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("the timer", (), || run(ctx));
    // Whatever happened in the run, the timer must go on.
    guard("the timer", (), || rearm(ctx));
}

fn rearm(ctx: Ctx) {
    let now = UnixMs::new(ctx.now_ms());
    with_schedule(|schedule| schedule.rearm(&ctx, now));
}

fn run(ctx: Ctx) {
    let now = UnixMs::new(ctx.now_ms());
    with_schedule(|schedule| schedule.timer.fired());
    plant("timer");
    let Some(Callbacks { look_at, budget, .. }) = CALLBACKS.get() else { return };
    if ctx.avoid_replication_traffic() {
        rest(PAUSED);
        return;
    }
    let started = Instant::now();
    let budget = budget();
    let within_budget = || started.elapsed() < budget;
    // First, so that what it meets is looked at in this run: between two runs a value may move again.
    walk::step(ctx, now);
    let mut lasted = true;
    while lasted {
        let Some(taken) = with_schedule(|schedule| schedule.agenda.take(now)).flatten() else { break };
        lasted = look_at(ctx, &taken, now, &within_budget);
    }
    if !lasted {
        OVER_BUDGET.fetch_add(1, Relaxed);
        rest(BREATH);
    }
    let took = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    RUNS.fetch_add(1, Relaxed);
    LAST_US.store(took, Relaxed);
    LONGEST_US.fetch_max(took, Relaxed);
}

/// Lets the next run wait.
fn rest(time: Duration) {
    with_schedule(|schedule| schedule.timer.not_before = Instant::now().checked_add(time));
}
