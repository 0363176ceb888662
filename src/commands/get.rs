//! `DQ.GET key id`

use super::{id, reply_id, word, Access, Arg, Call, Command, Ctx, Error, Handler, Keys, Row, Session};
use dq_queue::id::{IdBuffer, Sequence};
use dq_queue::rule::Rule;
use dq_queue::time::UnixMs;
use dq_queue::{DoneMessage, Errors, Headers, Message, PastError, Phase, Reason, Recurring, Shown, State, StateKind};

/// The command.
pub struct Get;

impl Command for Get {
    const ROW: Row = Row {
        name: c"DQ.GET",
        flags: c"readonly fast",
        arity: 3,
        keys: Keys::First(Access::READ),
        summary: c"Returns a message with all its fields",
        complexity: c"O(log N) where N is the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"id")],
        ..Row::BASE
    };
    const HANDLER: Handler = get;
}

fn get(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let id = id(word(call))?;
    let shown = session.look(|held| {
        let shown = id.and_then(|id| held.queue.find(session.now, &id));
        shown.map(|shown| reply_shown(session.ctx, &shown))
    })?;
    if shown.flatten().is_none() {
        session.ctx.null_array();
    }
    Ok(())
}

/// What a reply has in addition to the fields of `DQ.GET`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extra {
    Nothing,
    /// The position in push order, in a last field `sequence`.
    Sequence,
}

impl Extra {
    fn reply(self, ctx: Ctx, sequence: Sequence) {
        if self == Extra::Sequence {
            ctx.bulk(b"sequence");
            ctx.integer(sequence.0 as i64);
        }
    }
}

/// Replies with a message as a map.
pub fn reply_shown(ctx: Ctx, shown: &Shown<'_>) {
    reply_shown_with(ctx, shown, Extra::Nothing);
}

/// Replies with a message as a map that has `extra` in addition to the fields of `DQ.GET`.
pub fn reply_shown_with(ctx: Ctx, shown: &Shown<'_>, extra: Extra) {
    match shown {
        Shown::Held(message) => reply_message(ctx, message, extra),
        Shown::Done(message) => reply_done(ctx, message, extra),
    }
}

/// Replies with a done message.
fn reply_done(ctx: Ctx, message: &DoneMessage<'_>, extra: Extra) {
    let number = |field: &str, value: u64| {
        ctx.bulk(field.as_bytes());
        ctx.integer(value as i64);
    };
    ctx.map(8 + usize::from(extra == Extra::Sequence));
    ctx.bulk(b"id");
    reply_id(ctx, message.sequence, message.name);
    ctx.bulk(b"state");
    ctx.bulk(StateKind::Done.as_str().as_bytes());
    number("created", message.sequence.created().as_ms());
    number("due", message.due.as_ms());
    number("attempt", message.attempts.into());
    number("done", message.done.as_ms());
    number("until", message.until.as_ms());
    ctx.bulk(b"result");
    ctx.bulk_or_null(message.result);
    extra.reply(ctx, message.sequence);
}

fn reply_message(ctx: Ctx, message: &Message<'_>, extra: Extra) {
    let record = &message.record;
    let leased = match (message.state, record.phase) {
        (State::InFlight, Phase::Leased { deadline, receipt }) => Some((deadline, receipt)),
        _ => None,
    };
    let death = match message.state {
        State::Dead { died, reason } => Some((died, reason)),
        State::Delayed | State::Ready | State::InFlight => None,
    };
    let is_of_lease = matches!((death, record.phase), (Some((_, Reason::Retries)), Phase::Leased { .. }));
    let past_errors = message.errors.map_or(0, |errors| errors.listed().count());
    let fields = 11
        + 2 * usize::from(leased.is_some())
        + usize::from(message.errors.is_some())
        + usize::from(past_errors > 0)
        + 2 * usize::from(death.is_some())
        + usize::from(is_of_lease)
        + usize::from(message.group.is_some())
        + usize::from(message.batch.is_some())
        + usize::from(message.headers.is_some())
        + usize::from(message.checkpoint.is_some())
        + usize::from(message.retain.is_some())
        + usize::from(message.consumer.is_some())
        + message.recurring.map_or(0, schedule_fields)
        + usize::from(extra == Extra::Sequence);
    let number = |field: &str, value: u64| {
        ctx.bulk(field.as_bytes());
        ctx.integer(value as i64);
    };
    ctx.map(fields);
    ctx.bulk(b"id");
    reply_id(ctx, record.sequence, message.name);
    ctx.bulk(b"state");
    ctx.bulk(message.state.as_str().as_bytes());
    ctx.bulk(b"payload");
    ctx.bulk(message.payload);
    ctx.bulk(b"priority");
    ctx.integer(record.priority.into());
    number("created", record.sequence.created().as_ms());
    number("due", record.due.as_ms());
    number("attempt", record.attempts.into());
    ctx.bulk(b"retries");
    ctx.integer(record.retries.count().into());
    number("lease", message.lease.as_ms());
    number("ttl", record.ttl.map_or(0, |ttl| ttl.duration.as_ms()));
    number("next", message.next.into());
    if let Some(retain) = message.retain {
        number("retain", retain.as_ms());
    }
    if let Some((deadline, receipt)) = leased {
        number("deadline", deadline.as_ms());
        ctx.bulk(b"receipt");
        let mut buffer = IdBuffer::new();
        let id = buffer.id(record.sequence, message.name);
        let receipt = buffer.receipt(id, receipt);
        ctx.bulk(buffer.text(receipt));
    }
    if let Some(errors) = message.errors {
        ctx.bulk(b"error");
        ctx.bulk(errors.last());
        reply_errors(ctx, errors, past_errors);
    }
    if let Some((died, reason)) = death {
        ctx.bulk(b"reason");
        ctx.bulk(reason.as_str().as_bytes());
        number("died", died.as_ms());
    }
    if is_of_lease {
        number("lease-expired", 1);
    }
    if let Some(group) = message.group {
        ctx.bulk(b"group");
        ctx.bulk(group);
    }
    if let Some(batch) = message.batch {
        ctx.bulk(b"batch");
        ctx.bulk(batch);
    }
    if let Some(headers) = message.headers {
        ctx.bulk(b"headers");
        reply_headers(ctx, headers);
    }
    if let Some(checkpoint) = message.checkpoint {
        ctx.bulk(b"checkpoint");
        ctx.bulk(checkpoint);
    }
    if let Some(consumer) = message.consumer {
        ctx.bulk(b"consumer");
        ctx.bulk(consumer);
    }
    if let Some(state) = message.recurring {
        reply_schedule(ctx, state);
    }
    extra.reply(ctx, record.sequence);
}

/// Adds the errors of past attempts, which are this many, to the map of a message, if there are any.
fn reply_errors(ctx: Ctx, errors: Errors<'_>, count: usize) {
    if count == 0 {
        return;
    }
    ctx.bulk(b"errors");
    ctx.array(count);
    for PastError { attempt, at, text } in errors.listed() {
        ctx.array(3);
        ctx.integer(attempt.into());
        ctx.integer(at.as_ms() as i64);
        ctx.bulk(text);
    }
}

/// Replies with headers as a map.
pub fn reply_headers(ctx: Ctx, headers: Headers<'_>) {
    ctx.map(headers.count());
    for (name, value) in headers.iter() {
        ctx.bulk(name);
        ctx.bulk(value);
    }
}

/// The number of fields that [`reply_schedule`] adds to the map of a message.
fn schedule_fields(state: &Recurring) -> usize {
    let rule = state.shown().map_or(0, |series| match series.rule {
        Rule::Every { .. } | Rule::Cron { .. } => 2,
    });
    rule + 5
}

/// Adds the schedule of a recurring message to its map.
fn reply_schedule(ctx: Ctx, state: &Recurring) {
    let count = |field: &str, value: Option<u64>| {
        ctx.bulk(field.as_bytes());
        ctx.integer_or_null(value.map(|value| value as i64));
    };
    let Some(series) = state.shown() else { return };
    match &series.rule {
        Rule::Every { every, offset } => {
            count("every", Some(every.as_ms()));
            count("offset", Some(offset.as_ms()));
        }
        Rule::Cron { expression, zone } => {
            for (field, value) in [("cron", expression), ("tz", zone)] {
                ctx.bulk(field.as_bytes());
                ctx.bulk(value.as_bytes());
            }
        }
    }
    count("until", series.until.map(UnixMs::as_ms));
    let left = if state.series.is_some() { state.times_left } else { series.times };
    count("times-left", left);
    count("runs", Some(state.runs));
    count("failed-runs", Some(state.failed_runs));
    count("last-run", state.last_run.map(UnixMs::as_ms));
}
