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

use super::agenda::Hint;
use super::config;
use super::ctx::{Ctx, Name, TimerId};
use super::datatype;
use super::gauges;
use super::guard::guard;
use super::key::{OpenKey, Slot};
use super::state::{with_schedule, Schedule};
use super::sweep;
use super::write;
use crate::queue::time::{DurationMs, UnixMs};
use crate::queue::Effect;

/// How long the timer waits while writes are paused.
const PAUSED: DurationMs = DurationMs::new(10);
/// How long it lets others have their turn after its budget was spent: the shortest that the server offers.
const BREATH: DurationMs = DurationMs::new(1);
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
    armed: Option<(TimerId, UnixMs)>,
    /// Others have their turn, or writes are paused, until then.
    not_before: UnixMs,
}

impl Schedule {
    /// Has the timer look at `key` as soon as it can.
    pub fn look_at(&mut self, ctx: Ctx, now: UnixMs, db: i32, key: &[u8]) {
        self.agenda.look_at(now, db, key);
        self.rearm(ctx, now);
    }

    /// Arms the timer for the earliest hint, unless it is armed for then or earlier.
    pub fn rearm(&mut self, ctx: Ctx, now: UnixMs) {
        let Some(at) = self.agenda.earliest().into_iter().chain(self.sweep.next).min() else { return };
        let at = at.max(self.timer.not_before);
        match self.timer.armed {
            Some((_, armed)) if armed <= at => return,
            Some((timer, _)) => {
                ctx.stop_timer(timer);
            }
            None => {}
        }
        // Rounds up: `now` was rounded down to the millisecond, so it fires within the one after, never before.
        let wait = at.since(now).as_ms();
        self.timer.armed = Some((ctx.create_timer(wait, on_timer), at));
    }
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
    if ctx.avoid_replication_traffic() {
        rest(now.after(PAUSED));
        return;
    }
    let started = Instant::now();
    let budget = Duration::from_micros(config::timer_budget_us());
    let mut within_budget = true;
    while within_budget {
        let Some(hint) = with_schedule(|schedule| schedule.agenda.take(now)).flatten() else { break };
        within_budget = look_at(ctx, &hint, now, || started.elapsed() < budget);
    }
    if within_budget {
        sweep::step(ctx, now);
    } else {
        OVER_BUDGET.fetch_add(1, Relaxed);
        rest(now.after(BREATH));
    }
    let took = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    RUNS.fetch_add(1, Relaxed);
    LAST_US.store(took, Relaxed);
    LONGEST_US.fetch_max(took, Relaxed);
}

/// Lets the next run wait.
fn rest(until: UnixMs) {
    with_schedule(|schedule| schedule.timer.not_before = until);
}

/// Advances the queue that a hint stands for, if there is one; whether the budget lasted.
fn look_at(ctx: Ctx, hint: &Hint, now: UnixMs, within_budget: impl Fn() -> bool) -> bool {
    if !ctx.select_db(hint.db) {
        return within_budget();
    }
    ctx.with_name(&hint.key, |name| {
        let mut moved = Moved::default();
        let lasted = advance(ctx, name, hint, now, &within_budget, &mut moved);
        if moved.wakes {
            ctx.signal_ready(name);
        }
        if moved.changed {
            ctx.signal_modified(name);
        }
        if moved.tell {
            if moved.ready > 0 {
                ctx.notify(c"dq.ready", name);
            }
            if moved.died > 0 {
                ctx.notify(c"dq.dead", name);
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
    hint: &Hint,
    now: UnixMs,
    within_budget: impl Fn() -> bool,
    moved: &mut Moved,
) -> bool {
    let mut key = OpenKey::open_write_untouched(ctx, name, datatype::handle());
    let Slot::Holds(held) = key.slot() else {
        // A queue that was freed has no hint, so this one is somewhere else by now.
        if hint.owned {
            with_schedule(|schedule| schedule.sweep.request(now));
        }
        return within_budget();
    };
    let master = ctx.flags().master();
    let trims = master && !held.foreign;
    let mut lasted = true;
    loop {
        let advanced = if master { held.queue.advance(now, STEP) } else { held.queue.advance_view(now, STEP) };
        moved.ready += advanced.ready;
        moved.died += advanced.died;
        let trimmed = if trims { held.queue.trim_dead(STEP) } else { None };
        if let Some((died, sequence)) = trimmed {
            moved.changed = true;
            write::replicate(ctx, name, held.queue.seen(now), Effect::TrimDead(died, sequence));
        }
        lasted = lasted && within_budget();
        if advanced.done && !(trims && held.queue.has_excess_dead()) {
            break;
        }
        if !lasted {
            // More to do at this very time: the hint comes back, and the timer with it.
            with_schedule(|schedule| schedule.agenda.look_at(now, hint.db, name.bytes()));
            break;
        }
    }
    MOVED.fetch_add((moved.ready + moved.died) as u64, Relaxed);
    moved.wakes = gauges::blocked_clients() > 0 && held.queue.has_ready(now);
    moved.tell = master;
    held.publish();
    held.arm(ctx, hint.db, name, now);
    lasted
}
