//! A queue whose time has come: the timer brings it up to now, drops what its settings no longer keep, and wakes the
//! clients that are blocked on it.
//!
//! It runs on replicas too and moves their view. What must be replicated is done on a master only, and never while
//! writes are paused: the timer does not call this then.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::datatype;
use super::event::Event;
use super::{gauges, imports, write};
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::key::{OpenKey, Slot};
use crate::queue::time::UnixMs;
use crate::queue::Effect;
use crate::schedule::agenda::{Grounds, Taken};
use crate::schedule::with_schedule;

/// Leases and TTLs that end between two looks at the clock: some 10 µs of work.
const STEP: usize = 64;

/// Messages moved by the timer since the start.
pub static MOVED: AtomicU64 = AtomicU64::new(0);

/// Advances the queue that a hint stands for, if there is one. Returns whether the budget lasted.
pub fn look_at(ctx: Ctx, taken: &Taken, now: UnixMs, within_budget: &dyn Fn() -> bool) -> bool {
    let hint = &taken.hint;
    if !ctx.select_db(hint.db) {
        return within_budget();
    }
    ctx.with_name(&hint.key, |name| {
        let mut moved = Moved::default();
        let lasted = advance(ctx, name, taken, now, within_budget, &mut moved);
        moved.tell(ctx, name);
        lasted
    })
}

/// What an advance has to tell others once the key is closed.
#[derive(Default)]
struct Moved {
    ready: usize,
    died: usize,
    /// Whether a blocked client may be served.
    wakes: bool,
    /// Whether something was deleted.
    changed: bool,
    /// Whether this server decides about the queue: only then is what time moved announced.
    announced: bool,
}

impl Moved {
    fn tell(&self, ctx: Ctx, name: Name<'_>) {
        if self.wakes {
            ctx.signal_ready(name);
        }
        if self.changed {
            ctx.signal_modified(name);
        }
        if self.announced && self.ready > 0 {
            ctx.notify(Event::Ready.name(), name);
        }
        if self.announced && self.died > 0 {
            ctx.notify(Event::Dead.name(), name);
        }
    }
}

fn advance(
    ctx: Ctx,
    name: Name<'_>,
    taken: &Taken,
    now: UnixMs,
    within_budget: &dyn Fn() -> bool,
    moved: &mut Moved,
) -> bool {
    let hint = &taken.hint;
    let mut key = OpenKey::open_write_untouched(ctx, name, datatype::handle());
    let slot = key.slot();
    let is_lost = match (hint.grounds, &slot) {
        // A queue that was freed has no hint, so this one is somewhere else by now, whatever came to stand here.
        (Grounds::Armed, Slot::Holds(held)) => !held.had(taken),
        (Grounds::Armed | Grounds::Met, _) => !matches!(slot, Slot::Holds(_)),
        (Grounds::Asked, _) => false,
    };
    if is_lost {
        with_schedule(|schedule| schedule.walk.request(now));
    }
    let Slot::Holds(held) = slot else { return within_budget() };
    // Who decides also deletes. The clock of a queue is that of the server that decides about it.
    let decides = ctx.flags().master() && !imports::covers(name);
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
    moved.announced = decides;
    held.arm(ctx, hint.db, name);
    lasted
}
