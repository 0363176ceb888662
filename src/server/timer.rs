//! The server timer: migrates what is due, ends leases and TTLs, and wakes the clients that wait for it.
//!
//! There is one timer for the whole server, armed at the earliest hint of the agenda; with no hint nothing is armed
//! and nothing polls. A run takes the hints whose time has come, in the order of their times, advances their
//! queues, and stops at its budget, to go on a millisecond later, so that other clients never wait for more than
//! about that. It runs on replicas too and moves their view; what must be replicated it does on a master only, and
//! not while writes are paused. Nothing depends on it: a command computes for itself what its answer needs.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use redis_module::raw;

use super::agenda::Taken;
use super::config;
use super::ctx::{Ctx, Name, TimerId};
use super::datatype;
use super::event::Event;
use super::gauges;
use super::guard::{guard, plant};
use super::import;
use super::key::{OpenKey, Slot};
use super::state::{with_schedule, Schedule};
use super::sweep;
use super::write;
use crate::queue::time::UnixMs;
use crate::queue::Effect;

/// How long the timer waits while writes are paused.
const PAUSED: Duration = Duration::from_millis(10);
/// How long it lets others have their turn after its budget was spent: the shortest that the server offers.
const BREATH: Duration = Duration::from_millis(1);
/// By how much the timer may fire later than its hint asks, as two clocks of whole milliseconds compare them.
const SLACK: Duration = Duration::from_millis(2);
/// Leases and TTLs that end between two looks at the clock: some 10 µs of work.
const STEP: usize = 64;

/// Runs since the start.
pub static RUNS: AtomicU64 = AtomicU64::new(0);
/// Messages moved by them.
pub static MOVED: AtomicU64 = AtomicU64::new(0);
/// How long the last took, µs.
pub static LAST_US: AtomicU64 = AtomicU64::new(0);
/// How long the longest took, µs.
pub static LONGEST_US: AtomicU64 = AtomicU64::new(0);
/// Runs that stopped at their budget with work left.
pub static OVER_BUDGET: AtomicU64 = AtomicU64::new(0);

/// The one timer, as far as it is armed.
#[derive(Default)]
pub struct Timer {
    armed: Option<Armed>,
    /// Others have their turn, or writes are paused, until then.
    not_before: Option<Instant>,
}

/// A timer of the server's that has not fired.
struct Armed {
    timer: TimerId,
    /// The hint that it was armed for.
    at: UnixMs,
    /// When it fires, by the clock that the server's timers go by: the time of day may be set, and that one not.
    fires: Instant,
}

impl Schedule {
    /// Has the timer look at `key` as soon as it can.
    pub fn look_at(&mut self, ctx: Ctx, now: UnixMs, db: i32, key: &[u8]) {
        self.agenda.look_at(now, db, key);
        self.rearm(ctx, now);
    }

    /// Has the timer look at `key` once a delivery that the server refused may be tried again.
    pub fn retry(&mut self, ctx: Ctx, now: UnixMs, db: i32, key: &[u8]) {
        if let Some(at) = self.blocked.plan_retry(db, key, now) {
            self.agenda.look_at(at, db, key);
            self.rearm(ctx, now);
        }
    }

    /// Arms the timer for the earliest hint, unless it is armed for then or earlier.
    pub fn rearm(&mut self, ctx: Ctx, now: UnixMs) {
        let Some(at) = self.agenda.earliest().into_iter().chain(self.sweep.next).min() else { return };
        let instant = Instant::now();
        let rest = self.timer.not_before.map_or(Duration::ZERO, |until| until.saturating_duration_since(instant));
        let wait = Duration::from_millis(at.since(now).as_ms()).max(rest);
        let fires = instant.checked_add(wait).unwrap_or(instant);
        if let Some(armed) = &self.timer.armed {
            // It fires too late where the time of day has stepped forward since.
            if armed.at <= at && armed.fires <= fires + SLACK {
                return;
            }
            ctx.stop_timer(armed.timer);
        }
        // Rounds up: `now` was rounded down to the millisecond, so it fires within the one after, never before.
        let ms = wait.as_nanos().div_ceil(1_000_000);
        let timer = ctx.create_timer(u64::try_from(ms).unwrap_or(u64::MAX), on_timer);
        self.timer.armed = Some(Armed { timer, at, fires });
    }
}

/// The server's own round, some ten times a second: the time of day may have stepped forward, or the machine have slept,
/// with no command to notice it.
pub extern "C" fn on_cron(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("the server's round", (), || {
        let now = UnixMs::new(ctx.now_ms());
        with_schedule(|schedule| schedule.rearm(ctx, now));
    });
}

extern "C" fn on_timer(ctx: *mut raw::RedisModuleCtx, _: *mut c_void) {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("the timer", (), || run(ctx));
    // Whatever happened in the run, the timer must go on.
    guard("the timer", (), || {
        let now = UnixMs::new(ctx.now_ms());
        with_schedule(|schedule| schedule.rearm(ctx, now));
    });
}

fn run(ctx: Ctx) {
    let now = UnixMs::new(ctx.now_ms());
    // This timer has fired: it must not be stopped any more.
    with_schedule(|schedule| schedule.timer = Timer::default());
    plant("timer");
    if ctx.avoid_replication_traffic() {
        rest(PAUSED);
        return;
    }
    let started = Instant::now();
    let budget = Duration::from_micros(config::timer_budget_us());
    let mut within_budget = true;
    while within_budget {
        let Some(taken) = with_schedule(|schedule| schedule.agenda.take(now)).flatten() else { break };
        within_budget = look_at(ctx, &taken, now, || started.elapsed() < budget);
    }
    if within_budget {
        sweep::step(ctx, now);
    } else {
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

/// Advances the queue that a hint stands for, if there is one; whether the budget lasted.
fn look_at(ctx: Ctx, taken: &Taken, now: UnixMs, within_budget: impl Fn() -> bool) -> bool {
    let hint = &taken.hint;
    if !ctx.select_db(hint.db) {
        return within_budget();
    }
    ctx.with_name(&hint.key, |name| {
        let mut moved = Moved::default();
        let lasted = advance(ctx, name, taken, now, &within_budget, &mut moved);
        if moved.wakes {
            ctx.signal_ready(name);
        }
        if moved.changed {
            ctx.signal_modified(name);
        }
        if moved.tell {
            if moved.ready > 0 {
                ctx.notify(Event::Ready.name(), name);
            }
            if moved.died > 0 {
                ctx.notify(Event::Dead.name(), name);
            }
        }
        lasted
    })
}

/// What an advance has to tell others once the key is closed.
#[derive(Default)]
struct Moved {
    ready: usize,
    died: usize,
    wakes: bool,
    changed: bool,
    tell: bool,
}

fn advance(
    ctx: Ctx,
    name: Name<'_>,
    taken: &Taken,
    now: UnixMs,
    within_budget: impl Fn() -> bool,
    moved: &mut Moved,
) -> bool {
    let hint = &taken.hint;
    let mut key = OpenKey::open_write_untouched(ctx, name, datatype::handle());
    let slot = key.slot();
    // A queue that was freed has no hint, so this one is somewhere else by now, whatever came to stand here.
    if hint.owned && !matches!(&slot, Slot::Holds(held) if held.had(taken)) {
        with_schedule(|schedule| schedule.sweep.request(now));
    }
    let Slot::Holds(held) = slot else { return within_budget() };
    // Who decides also deletes. The clock of a queue is that of the server that decides about it.
    let decides = ctx.flags().master() && !import::covers(name);
    let mut lasted = true;
    loop {
        let advanced = if decides { held.queue.advance(now, STEP) } else { held.queue.advance_view(now, STEP) };
        moved.ready += advanced.ready;
        moved.died += advanced.died;
        let trimmed = if decides { held.queue.trim_dead(STEP) } else { None };
        if let Some((died, sequence)) = trimmed {
            moved.changed = true;
            write::replicate(ctx, name, held.queue.own_time(now), Effect::TrimDead(died, sequence));
        }
        lasted = lasted && within_budget();
        if advanced.done && !(decides && held.queue.has_excess_dead()) {
            break;
        }
        if !lasted {
            // More to do at this very time: the hint comes back, and the timer with it.
            with_schedule(|schedule| schedule.agenda.look_at(now, hint.db, name.bytes()));
            break;
        }
    }
    MOVED.fetch_add((moved.ready + moved.died) as u64, Relaxed);
    moved.wakes = gauges::blocked_clients() > 0 && held.queue.has_deliverable(now);
    moved.tell = decides;
    held.arm(ctx, hint.db, name);
    lasted
}
