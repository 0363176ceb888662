//! The path of every change out of a queue, from the outcome of a command to everything that must learn of it.
//!
//! A command opens its key, asks the queue, and passes the outcome's [`Effect`] to [`record`], which replicates it and
//! calls [`rearm`]. A command that changed nothing calls only [`rearm`]. Once the key is closed, [`announce`] notifies
//! watchers, then blocked clients, then subscribers to keyspace events. Subscribers come last because other modules may
//! run inside their callbacks.

use std::cell::Cell;
use std::mem::ManuallyDrop;

use super::effect_command::EFFECT_COMMAND;
use super::event::Event;
use super::floor::raise_floor;
use super::held::Held;
use super::listeners;
use super::waiting;
use crate::module_api::call::Word;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::log::{log, Level};
use crate::schedule::with_schedule;
use dq_queue::time::UnixMs;
use dq_queue::{Effect, Losses, Lost, Stamped, Trimmed};

/// The maximum number of excess dead and done messages that one command drops. The timer drops the rest.
const TRIMMED: usize = 64;

/// The largest buffer that is kept for the bytes of the next effect.
const BLOB_KEPT: usize = 16 * 1024;

thread_local! {
    /// The buffer for the bytes of an effect, since the allocation of another one would cost more than most effects do.
    /// It is not freed at the exit.
    static BLOB: ManuallyDrop<Cell<Vec<u8>>> = const { ManuallyDrop::new(Cell::new(Vec::new())) };
}

/// What [`announce`] has to do once the key is closed.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Whether blocked clients are woken: for a message that can be delivered, or one that is done, dead or gone.
    wakes: bool,
    /// Whether a batch has ended, so that what follows it was pushed.
    ends_batch: bool,
    /// The deliveries that consumers have lost by the change.
    lost: Option<Box<Losses>>,
}

/// Whether a call wakes the clients that are blocked on its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The call may have made a message deliverable. Clients are woken if the queue has such a message.
    IfDeliverable,
    /// The call has made no message deliverable. If time has, the timer signals the key.
    Nobody,
}

/// Sends an effect that was decided at `now` to the replicas and the AOF. The queue stamps it with its own time.
pub fn replicate(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs, effect: Effect<'_>) {
    let now = held.queue.stamp(now);
    let mut blob = BLOB.with(|blob| blob.take());
    blob.clear();
    match (Stamped { now, effect }).encode(&mut blob) {
        Ok(()) => {
            if !ctx.replicate_effect(EFFECT_COMMAND, name, &blob) {
                log(Level::Warning, "the server did not take an effect for replication: replicas and AOF are behind");
            }
        }
        Err(refused) => log(Level::Warning, &refused.to_string()),
    }
    if blob.capacity() <= BLOB_KEPT {
        BLOB.with(|kept| kept.set(blob));
    }
}

/// Records a change that was just made to the queue at `name`: replicates its effect, drops dead messages that exceed
/// the queue's limit and replicates that too, and calls [`rearm`].
pub fn record<'e>(
    ctx: Ctx,
    name: Name<'_>,
    held: &mut Held,
    now: UnixMs,
    wake: Wake,
    effect: impl FnOnce() -> Effect<'e>,
) -> Announcement {
    let (heard, is_awaited) = (listeners::any(ctx), waiting::is_awaited(ctx, name));
    let mut answers = false;
    if heard || is_awaited {
        answers = tell(ctx, name, held, now, effect());
    } else {
        held.queue.take_ends();
    }
    let lost = held.queue.take_lost();
    if !heard {
        held.queue.stamp(now);
        // There is no AOF and no replica: this only marks the dataset as changed, for the next save.
        ctx.replicate_verbatim();
    }
    keep_limits(ctx, name, held, now);
    let db = ctx.selected_db();
    let ends_batch = take_batch_end(db, name, held);
    let wakes = rearm_at(ctx, db, name, held, now, wake);
    Announcement { wakes: wakes || answers || ends_batch, ends_batch, lost }
}

/// Replicates an effect, and the ends of runs that belong to it, if there are listeners. Returns whether a client waits
/// for one of its messages.
#[inline(never)]
fn tell(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs, effect: Effect<'_>) -> bool {
    let heard = listeners::any(ctx);
    let ends = held.queue.take_ends();
    let (first, second) = if ends.is_empty() { (effect, None) } else { effect.with_ends(ends) };
    let mut answers = false;
    for effect in std::iter::once(first).chain(second) {
        answers |= waiting::note(ctx, name, &effect);
        if heard {
            replicate(ctx, name, held, now, effect);
        }
    }
    answers
}

/// Whether a batch of the queue at `name` of database `db` has ended since the last call. What follows it was pushed then:
/// with an id of its own, or with one for which a client of `DQ.AWAIT` waits, so all of them look again.
#[inline]
pub fn take_batch_end(db: i32, name: Name<'_>, held: &mut Held) -> bool {
    let ended = held.queue.take_batch_end();
    if ended {
        raise_floor(held.queue.last_given());
        waiting::look_again(db, name.bytes());
    }
    ended
}

/// Drops the dead and done messages that exceed the limits after a change, and replicates that. If one write may not
/// drop all of them, the timer drops the rest.
#[inline]
pub fn keep_limits(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs) {
    if held.queue.has_excess() {
        trim_excess(ctx, name, held, now);
    }
}

#[cold]
fn trim_excess(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs) {
    let trimmed = held.queue.trim(TRIMMED);
    replicate_trim(ctx, name, held, now, trimmed);
    if held.queue.has_excess() {
        with_schedule(|schedule| schedule.look_at(&ctx, now, ctx.selected_db(), name.bytes()));
    }
}

/// Takes note of an effect that was applied to the queue at `name`, and calls [`rearm`].
pub fn applied(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs, effect: &Effect<'_>) -> Announcement {
    let answers = waiting::note(ctx, name, effect);
    let db = ctx.selected_db();
    let ends_batch = take_batch_end(db, name, held);
    let wakes = rearm_at(ctx, db, name, held, now, Wake::IfDeliverable);
    Announcement { wakes: wakes || answers || ends_batch, ends_batch, lost: None }
}

/// Whether anybody has to be told what a command does to the queue at `name`: a replica, the AOF, or a client that
/// waits for a message.
#[inline]
pub fn is_heard(ctx: Ctx, name: Name<'_>) -> bool {
    listeners::any(ctx) || waiting::is_awaited(ctx, name)
}

/// Drops dead and done messages that the settings no longer keep, as far as one command may, after a change of the
/// settings. The timer drops the rest.
pub fn trim(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs) {
    let trimmed = held.queue.trim_now(now);
    replicate_trim(ctx, name, held, now, trimmed);
}

/// Drops the message with the id `id` if it is a dead message that the settings no longer keep, for a push of that id.
/// Returns whether it did.
pub fn drop_excess(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs, id: &[u8]) -> bool {
    let Some(dropped) = held.queue.drop_excess(now, id) else { return false };
    replicate_trim(ctx, name, held, now, dropped);
    true
}

fn replicate_trim(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs, trimmed: Trimmed) {
    if listeners::any(ctx) {
        trimmed.effects().for_each(|effect| replicate(ctx, name, held, now, effect));
    }
}

/// Raises the floor of ids and re-arms the timer for the queue at `name`. Every call that may have moved the view of a
/// queue ends with this, whether or not it changed the queue.
pub fn rearm(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs, wake: Wake) -> Announcement {
    Announcement { wakes: rearm_at(ctx, ctx.selected_db(), name, held, now, wake), ..Announcement::default() }
}

/// [`rearm`] for the database `db`, which is the selected one. Returns whether blocked clients are woken.
fn rearm_at(ctx: Ctx, db: i32, name: Name<'_>, held: &mut Held, now: UnixMs, wake: Wake) -> bool {
    raise_floor(held.queue.last_given());
    held.queue.note_rate_limit(now);
    held.arm(ctx, db, name);
    match wake {
        Wake::IfDeliverable => serves(held, db, name, now),
        Wake::Nobody => false,
    }
}

/// Returns whether a client that is blocked on the queue at `name` of database `db` and waits for a delivery could be
/// served. A queue that forwards serves nobody.
#[inline]
pub fn serves(held: &Held, db: i32, name: Name<'_>, now: UnixMs) -> bool {
    waiting::may_wait_for_delivery(db, name.bytes())
        && held.queue.forward().is_none()
        && held.queue.has_deliverable(now)
}

/// Notifies watchers, blocked clients and subscribers of a change. No key may be open.
#[inline(always)]
pub fn announce(ctx: Ctx, name: Name<'_>, announcement: Announcement, events: &[Event]) {
    ctx.signal_modified(name);
    let Announcement { wakes, ends_batch, lost } = announcement;
    if let Some(lost) = lost {
        tell_of_loss(ctx, name, &lost.0);
    }
    if wakes {
        ctx.signal_ready(name);
    }
    for event in events {
        ctx.notify(event.name(), name);
    }
    if ends_batch && !events.contains(&Event::Batch) {
        ctx.notify(Event::Batch.name(), name);
    }
}

/// Tells consumers that they have lost deliveries, on the channel `__dq@<db>__:<key>`.
#[cold]
fn tell_of_loss(ctx: Ctx, name: Name<'_>, lost: &[Lost]) {
    let mut channel = format!("__dq@{}__:", ctx.selected_db()).into_bytes();
    channel.extend_from_slice(name.bytes());
    let channel = Word::new(&channel);
    for Lost { how, receipt } in lost {
        let mut message = how.as_str().as_bytes().to_vec();
        if let Some(receipt) = receipt {
            message.push(b' ');
            message.extend_from_slice(receipt);
        }
        ctx.publish(&channel, &Word::new(&message));
    }
}

/// Wakes the clients that are blocked on `name`, if the announcement says so.
pub fn wake(ctx: Ctx, name: Name<'_>, announcement: Announcement) {
    if announcement.wakes {
        ctx.signal_ready(name);
    }
}
