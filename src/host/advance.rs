//! Advances a queue when its time has come: the timer brings the queue up to now, drops the dead and done messages that
//! its settings no longer keep, wakes the clients that are blocked on it, and forwards what is due or dead (see
//! [`forward`]).
//!
//! This also runs on replicas and moves their view of the queue. Changes that must be replicated are made on a master
//! only, and never while writes are paused, because the timer does not call this module then.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::event::Event;
use super::floor::raise_floor;
use super::queue_value::QueueValue;
use super::session::Session;
use super::{authority, forward, waiting};
use crate::module_api::ctx::Ctx;
use crate::module_api::key::{Content, Refusal};
use crate::schedule::agenda::{Grounds, Taken};
use crate::schedule::timer::Budget;
use crate::schedule::walk::Cause;
use crate::schedule::with_schedule;
use dq_queue::forward::Source;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Effect, Ended, Trimmed};

/// How many leases and TTLs end between two checks of the time budget: about 10 µs of work.
const STEP: usize = 64;

/// A hint this much later is left to the next run of the timer.
const NEXT_RUN: DurationMs = DurationMs::new(1);

/// The number of messages moved by the timer since the server started.
pub static MOVED: AtomicU64 = AtomicU64::new(0);

/// Advances the queue that a hint refers to, if it exists. Returns whether the budget lasted.
pub fn look_at(ctx: Ctx, taken: &Taken, now: UnixMs, budget: &Budget) -> bool {
    let hint = &taken.hint;
    if !ctx.select_db(hint.db) {
        return budget.lasts();
    }
    ctx.with_name(&hint.key, |name| {
        let session = Session { ctx, db: hint.db, name, now };
        let mut moved = Report::default();
        let mut lasted = advance(&session, taken, budget, &mut moved);
        moved.announce(&session);
        for source in moved.forwards.into_iter().flatten() {
            // Each gets a batch at least, so that neither holds up the other.
            lasted &= forward::run(session, source, budget);
        }
        lasted
    })
}

/// What an advance has to report once the key is closed.
#[derive(Default)]
struct Report {
    ready: usize,
    died: usize,
    /// Whether a blocked client may be served.
    wakes: bool,
    /// Which messages are to be forwarded.
    forwards: [Option<Source>; 2],
    /// Whether a batch has ended.
    ends_batch: bool,
    /// Whether the queue was changed by a decision of this server.
    changed: bool,
    /// Whether this server decides about the queue. Only then are keyspace events published.
    announced: bool,
}

impl Report {
    fn announce(&self, Session { ctx, name, .. }: &Session<'_>) {
        let name = *name;
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
        if self.ends_batch {
            ctx.notify(Event::Batch.name(), name);
        }
    }
}

/// Ends some of the runs of recurring messages that time has made fail, and the membership of messages in batches that
/// it has made dead. Returns whether there were any.
fn end_failed_runs(session: &Session<'_>, held: &mut QueueValue, moved: &mut Report) -> bool {
    if held.queue.first_failed_run().is_none() {
        return false;
    }
    let others = held.queue.end_failed_runs(session.now, STEP);
    let ends = held.queue.take_ends();
    if others.is_empty() && ends.is_empty() {
        return false;
    }
    let effect = Effect::EndRuns { how: Ended::ByTime, others, ends };
    moved.wakes |= waiting::note(session, &effect);
    session.replicate(held, effect);
    // Dead copies and what follows batches have ids of their own.
    raise_floor(held.queue.last_given());
    true
}

fn advance(session: &Session<'_>, taken: &Taken, budget: &Budget, moved: &mut Report) -> bool {
    let hint = &taken.hint;
    let Session { db, name, now, .. } = *session;
    let mut key = session.open_untouched();
    let content = key.content();
    let is_lost = match (hint.grounds, &content) {
        // A queue that was freed has no hint any more. So the queue of this hint still exists under another name,
        // whatever the key holds now.
        (Grounds::Armed, Content::Holds(held)) => !held.had(taken),
        (Grounds::Armed | Grounds::Met, Content::Refused(Refusal::Unsound)) => false,
        (Grounds::Armed | Grounds::Met, _) => !matches!(content, Content::Holds(_)),
        (Grounds::Asked, _) => false,
    };
    if is_lost {
        with_schedule(|schedule| schedule.walk.request(now, Cause::Lost));
    }
    let Content::Holds(held) = content else { return budget.lasts() };
    // Only the server that decides about a queue deletes messages and moves the queue's own clock.
    let decides = authority::decides_about(name);
    let mut lasted = true;
    if decides {
        // Clients may be blocked already, so the correction does not wait for the next pop.
        if let Some(at) = held.queue.correct_clock(now) {
            Session { now: at, ..*session }.replicate(held, Effect::PullBack);
            moved.changed = true;
        }
    }
    loop {
        let advanced = if decides { held.queue.advance(now, STEP) } else { held.queue.advance_view(now, STEP) };
        moved.ready += advanced.ready;
        moved.died += advanced.died;
        let trimmed = if decides { held.queue.trim(STEP) } else { Trimmed::default() };
        for effect in trimmed.effects() {
            moved.changed = true;
            session.replicate(held, effect);
        }
        if decides && end_failed_runs(session, held, moved) {
            moved.changed = true;
        }
        lasted = lasted && budget.lasts();
        let has_more = held.queue.has_excess() || held.queue.first_failed_run().is_some();
        if advanced.done && !(decides && has_more) {
            break;
        }
        if !lasted {
            // There is more to do at this very time, so the hint is added again, which also re-arms the timer.
            with_schedule(|schedule| schedule.agenda.look_at(now, db, name.bytes()));
            break;
        }
    }
    moved.ends_batch |= decides && session.take_batch_end(held);
    MOVED.fetch_add((moved.ready + moved.died) as u64, Relaxed);
    moved.wakes |= session.serves(held);
    let answers = moved.died > 0 && waiting::look_again(session);
    moved.wakes |= answers || moved.ends_batch;
    moved.wakes |= waiting::take_postponed(session);
    moved.announced = decides;
    if decides {
        held.queue.note_rate_limit(now);
    }
    // Messages are forwarded once the view is complete. The timer is armed after that.
    if decides && lasted {
        if answers && held.queue.may_forward(now, Source::Dead) {
            // A client that waits for a message which has just died is served after this run, and sees it dead before
            // the next run forwards it.
            with_schedule(|schedule| schedule.agenda.look_at(now.after(NEXT_RUN), db, name.bytes()));
            return lasted;
        }
        moved.forwards = Source::ALL.map(|source| held.queue.may_forward(now, source).then_some(source));
    }
    if moved.forwards == [None; 2] {
        session.arm(held);
    }
    lasted
}
