//! How every change leaves a queue: the one way from a command's outcome to all who must know of it.
//!
//! A command opens its key, asks the queue, and hands the outcome's [`Effect`] to [`record`], which replicates it,
//! sees to the timer. Once the key is closed, [`announce`] tells watchers, waiting clients
//! and subscribers, in this order: others may run within the last.

use std::ffi::CStr;

use super::datatype::Held;
use super::event::Event;
use super::floor::raise_floor;
use super::gauges;
use super::listeners;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::log::{log, Level};
use crate::queue::time::UnixMs;
use crate::queue::{Effect, Stamped};
use crate::schedule::with_schedule;

/// So many of the dead are dropped, or noticed, by one command; what is left is the timer's.
const TRIMMED: usize = 64;

/// The command that carries effects.
pub const EFFECT_COMMAND: &CStr = c"DQ.EFFECT";

/// What is to be told once the key is closed.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    wakes: bool,
}

/// Sends an effect to the replicas and the AOF.
pub fn replicate(ctx: Ctx, name: Name<'_>, now: UnixMs, effect: Effect<'_>) {
    let mut blob = Vec::with_capacity(128);
    match (Stamped { now, effect }).encode(&mut blob) {
        Ok(()) => {
            if !ctx.replicate_effect(EFFECT_COMMAND, name, &blob) {
                log(Level::Warning, "the server did not take an effect for replication: replicas and AOF are behind");
            }
        }
        Err(refused) => log(Level::Warning, &refused.to_string()),
    }
}

/// Records a change that was just made to the queue at `name`: replicates its effect and what it pushed out of the
/// dead, sees to the timer. `wakes` says whether it may have made something deliverable.
pub fn record<'e>(
    ctx: Ctx,
    name: Name<'_>,
    held: &mut Held,
    now: UnixMs,
    wakes: bool,
    effect: impl FnOnce() -> Effect<'e>,
) -> Announcement {
    let heard = listeners::any(ctx);
    let stamp = held.queue.own_time(now);
    if heard {
        replicate(ctx, name, stamp, effect());
    } else {
        // Sends nothing to nobody, but counts as a change for the next save.
        ctx.replicate_verbatim();
    }
    if held.queue.has_excess_dead() {
        if let Some((died, sequence)) = held.queue.trim_dead(TRIMMED).filter(|_| heard) {
            replicate(ctx, name, stamp, Effect::TrimDead(died, sequence));
        }
        if held.queue.has_excess_dead() {
            with_schedule(|schedule| schedule.look_at(&ctx, now, ctx.selected_db(), name.bytes()));
        }
    }
    settle(ctx, name, held, now, wakes)
}

/// Drops all of the dead that the settings do not keep: what a change of the settings does at once.
pub fn drop_excess_dead(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs) {
    if let Some((died, sequence)) = held.queue.trim_all_dead(now) {
        if listeners::any(ctx) {
            replicate(ctx, name, held.queue.own_time(now), Effect::TrimDead(died, sequence));
        }
    }
}

/// What follows any call that may have moved a queue's view, whether or not it changed something.
pub fn settle(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs, wakes: bool) -> Announcement {
    raise_floor(held.queue.last_given());
    held.arm(ctx, ctx.selected_db(), name);
    Announcement { wakes: wakes && gauges::blocked_clients() > 0 && held.queue.has_deliverable(now) }
}

/// Tells others of a change. No key may be open.
pub fn announce(ctx: Ctx, name: Name<'_>, announcement: Announcement, events: &[Event]) {
    ctx.signal_modified(name);
    wake(ctx, name, announcement);
    for event in events {
        ctx.notify(event.name(), name);
    }
}

/// Wakes the clients that wait for `name`, where there is something for them.
pub fn wake(ctx: Ctx, name: Name<'_>, announcement: Announcement) {
    if announcement.wakes {
        ctx.signal_ready(name);
    }
}
