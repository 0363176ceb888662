//! `DQ.INFO key`

use super::{Access, Arg, Call, Command, Ctx, Error, Handler, Keys, QueueValue, Row, Session};
use crate::host::waiting;
use crate::module_api::guard::plant;
use dq_queue::forward::Source;
use dq_queue::settings::FIELDS;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Pause, Queue, Totals};

pub struct Info;

impl Command for Info {
    const ROW: Row = Row {
        name: c"DQ.INFO",
        flags: c"readonly fast",
        arity: 2,
        keys: Keys::First(Access::PEEK),
        summary: c"Returns the counts, settings and totals of a queue",
        complexity: c"O(log N) where N is the number of messages in the queue",
        args: &[Arg::key(c"key")],
        ..Row::BASE
    };
    const HANDLER: Handler = info;
}

fn info(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    plant("command");
    let waiting = waiting::clients_at(&session);
    let reply = |held: &QueueValue| reply_queue(session.ctx, &held.queue, waiting, session.now);
    if session.look_caught_up(reply)?.is_none() {
        session.ctx.null_array();
    }
    Ok(())
}

fn reply_queue(ctx: Ctx, queue: &Queue, waiting_clients: u64, now: UnixMs) {
    let counts = queue.counts_at(now);
    let (pause, closed) = (queue.pause_at(now), queue.closed_at(now));
    let some = |number: u64| i64::try_from(number).ok();
    let instant = |at: Option<UnixMs>| at.and_then(|at| some(at.as_ms()));
    let length = |ms: Option<DurationMs>| ms.and_then(|ms| some(ms.as_ms()));
    let age = |at: Option<UnixMs>| at.and_then(|at| some(queue.own_time(now).since(at).as_ms()));
    let (oldest_dead, newest_dead) = queue.deaths().unzip();
    let [last_delivery, last_death] = queue.last_events();
    let [schedules, consumers, paused_groups] = queue.gauges(queue.own_time(now)).unwrap_or_default();
    let head = [
        ("delayed", some(counts.delayed)),
        ("ready", some(counts.ready)),
        ("inflight", some(counts.inflight)),
        ("dead", some(counts.dead)),
        ("done", some(counts.done)),
        ("groups", some(queue.groups() as u64)),
        ("blocked", some(queue.blocked(now) as u64)),
        ("known", some(queue.known(now) as u64)),
        ("batches", some(queue.batches(now) as u64)),
        ("payload-bytes", some(counts.payload_bytes)),
        ("next-due", instant(queue.next_due(now))),
        ("oldest-ready", length(queue.oldest_ready(now))),
        ("waiting-clients", some(waiting_clients)),
        ("oldest-inflight", length(queue.oldest_inflight(now))),
        ("oldest-dead", age(oldest_dead)),
        ("newest-dead", age(newest_dead)),
        ("last-death", age(last_death)),
        ("last-delivery", age(last_delivery)),
        ("schedules", some(schedules)),
        ("consumers", some(consumers)),
        ("paused-groups", some(paused_groups)),
        ("paused", Some((pause != Pause::Off).into())),
        ("paused-until", instant(pause.end())),
        ("closed", Some((closed != Pause::Off).into())),
        ("closed-until", instant(closed.end())),
        ("next-delivery", instant(queue.next_delivery(now))),
    ];
    let totals = queue.totals().named().map(|(field, total)| (field, some(total)));
    ctx.map(head.len() + FIELDS.len() + 2 * FORWARDING + Totals::NAMES.len());
    head.into_iter().for_each(|(field, value)| reply_number(ctx, field, value));
    for field in FIELDS {
        let number = (field.get)(queue.settings());
        match field.word(number) {
            None => reply_number(ctx, field.name, Some(number)),
            Some(word) => {
                ctx.bulk(field.name.as_bytes());
                ctx.bulk(word.to_bytes());
            }
        }
    }
    reply_forwarding(ctx, queue, Source::Due, ["forward", "forward-error", "forward-failing-since"]);
    reply_forwarding(ctx, queue, Source::Dead, ["deadforward", "deadforward-error", "deadforward-failing-since"]);
    // The totals stay last: `dqctl export` takes every field from the first total on.
    totals.for_each(|(field, value)| reply_number(ctx, field, value));
}

/// The number of fields about the forwarding of messages that are due, or of those that are dead.
const FORWARDING: usize = 3;

/// Replies where these messages are forwarded, why they cannot be at present, and since when.
fn reply_forwarding(ctx: Ctx, queue: &Queue, source: Source, [to, error, since]: [&str; FORWARDING]) {
    let failing = queue.failing(source);
    ctx.bulk(to.as_bytes());
    match queue.target(source) {
        Some(target) => ctx.bulk(&target.words()),
        None => ctx.bulk(b"NONE"),
    }
    ctx.bulk(error.as_bytes());
    ctx.bulk_or_null(failing.map(|failing| failing.error.as_bytes()));
    reply_number(ctx, since, failing.and_then(|failing| i64::try_from(failing.since.as_ms()).ok()));
}

fn reply_number(ctx: Ctx, field: &str, value: Option<i64>) {
    ctx.bulk(field.as_bytes());
    ctx.integer_or_null(value);
}
