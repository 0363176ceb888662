//! `DQ.GET key id`

use super::{id, word, Access, Arg, Call, Command, Ctx, Error, Handler, Keys, Row, Session};
use dq_queue::id::{IdBuffer, Sequence};
use dq_queue::rule::Rule;
use dq_queue::time::UnixMs;
use dq_queue::{
    DoneMessage, Errors, Headers, Message, PastError, Phase, Queue, Reason, Recurring, Shown, State, StateKind,
};

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

/// Replies with a message as a map.
pub fn reply_shown(ctx: Ctx, shown: &Shown<'_>) {
    reply_shown_with(ctx, shown, Extra::Nothing);
}

/// Replies with a message as a map that has `extra` in addition to the fields of `DQ.GET`.
fn reply_shown_with(ctx: Ctx, shown: &Shown<'_>, extra: Extra) {
    let (sequence, name) = match shown {
        Shown::Message(message) => (message.record.sequence, message.name),
        Shown::Done(message) => (message.sequence, message.name),
    };
    let mut buffer = IdBuffer::new();
    let id = buffer.id(sequence, name);
    let receipt = match shown {
        Shown::Message(Message { state: State::InFlight, record, .. }) => record.receipt(),
        Shown::Message(_) | Shown::Done(_) => None,
    };
    let receipt = receipt.map(|receipt| buffer.receipt(id, receipt));
    // As digits: programs that read numbers as floating point would give several messages of a millisecond the same
    // one.
    let digits = (extra == Extra::Sequence).then(|| sequence.0.to_string());
    let mut fields = vec![("id", text(buffer.text(id)))];
    match shown {
        Shown::Message(message) => add_message(&mut fields, message, receipt.map(|receipt| buffer.text(receipt))),
        Shown::Done(message) => add_done(&mut fields, message),
    }
    if let Some(digits) = &digits {
        fields.push(("sequence", text(digits.as_bytes())));
    }
    ctx.map(fields.len());
    for (field, value) in fields {
        ctx.bulk(field.as_bytes());
        match value {
            Value::Number(number) => ctx.integer_or_null(number),
            Value::Text(text) => ctx.bulk_or_null(text),
            Value::Headers(headers) => reply_headers(ctx, headers),
            Value::Errors(errors) => reply_errors(ctx, errors),
        }
    }
}

/// Replies with an array of these messages, each as a map.
pub fn reply_all(session: &Session<'_>, queue: &Queue, sequences: Vec<Sequence>, extra: Extra) {
    session.ctx.array(sequences.len());
    for sequence in sequences {
        match queue.show(session.now, sequence) {
            Some(shown) => reply_shown_with(session.ctx, &shown, extra),
            None => session.ctx.null_array(),
        }
    }
}

/// The value of a field; a number or a text may be null.
enum Value<'a> {
    Number(Option<i64>),
    Text(Option<&'a [u8]>),
    Headers(Headers<'a>),
    Errors(Errors<'a>),
}

type Fields<'a> = Vec<(&'static str, Value<'a>)>;

fn number<'a>(number: u64) -> Value<'a> {
    Value::Number(Some(number as i64))
}

fn text(text: &[u8]) -> Value<'_> {
    Value::Text(Some(text))
}

/// Adds the fields of a done message.
fn add_done<'a>(fields: &mut Fields<'a>, message: &DoneMessage<'a>) {
    fields.extend([
        ("state", text(StateKind::Done.as_str().as_bytes())),
        ("created", number(message.sequence.created().as_ms())),
        ("due", number(message.due.as_ms())),
        ("attempt", number(message.attempts.into())),
        ("done", number(message.done.as_ms())),
        ("until", number(message.until.as_ms())),
        ("result", Value::Text(message.result)),
    ]);
}

/// Adds the fields of a message that the queue holds; `receipt` is that of its delivery, if it is in flight.
fn add_message<'a>(fields: &mut Fields<'a>, message: &'a Message<'_>, receipt: Option<&'a [u8]>) {
    let record = &message.record;
    fields.extend([
        ("state", text(message.state.as_str().as_bytes())),
        ("payload", text(message.payload)),
        ("priority", Value::Number(Some(record.priority.into()))),
        ("created", number(record.sequence.created().as_ms())),
        ("due", number(record.due.as_ms())),
        ("attempt", number(record.attempts.into())),
        ("retries", Value::Number(Some(record.retries.count().into()))),
        ("lease", number(message.lease.as_ms())),
        ("ttl", number(record.ttl.map_or(0, |ttl| ttl.duration.as_ms()))),
        ("next", number(message.next.into())),
    ]);
    fields.extend(message.retain.map(|retain| ("retain", number(retain.as_ms()))));
    if let (State::InFlight, Phase::Leased { deadline, .. }, Some(receipt)) = (message.state, record.phase, receipt) {
        fields.extend([("deadline", number(deadline.as_ms())), ("receipt", text(receipt))]);
    }
    if let Some(errors) = message.errors {
        fields.push(("error", text(errors.last())));
        // The errors of past attempts, if there are any.
        fields.extend(errors.listed().next().map(|_| ("errors", Value::Errors(errors))));
    }
    if let State::Dead { died, reason } = message.state {
        fields.extend([("reason", text(reason.as_str().as_bytes())), ("died", number(died.as_ms()))]);
        if matches!((reason, record.phase), (Reason::Retries, Phase::Leased { .. })) {
            fields.push(("lease-expired", number(1)));
        }
    }
    fields.extend(message.group.map(|group| ("group", text(group))));
    fields.extend(message.batch.map(|batch| ("batch", text(batch))));
    fields.extend(message.headers.map(|headers| ("headers", Value::Headers(headers))));
    fields.extend(message.checkpoint.map(|checkpoint| ("checkpoint", text(checkpoint))));
    fields.extend(message.consumer.map(|consumer| ("consumer", text(consumer))));
    if let Some(state) = message.recurring {
        add_schedule(fields, state);
    }
}

/// Replies with the errors of past attempts.
fn reply_errors(ctx: Ctx, errors: Errors<'_>) {
    ctx.array(errors.listed().count());
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

/// Adds the fields of the schedule of a recurring message.
fn add_schedule<'a>(fields: &mut Fields<'a>, state: &'a Recurring) {
    let Some(series) = state.shown() else { return };
    fields.extend(match &series.rule {
        Rule::Every { every, offset } => [("every", number(every.as_ms())), ("offset", number(offset.as_ms()))],
        Rule::Cron { expression, zone } => [("cron", text(expression.as_bytes())), ("tz", text(zone.as_bytes()))],
    });
    let left = if state.series.is_some() { state.times_left } else { series.times };
    let optional = |value: Option<u64>| Value::Number(value.map(|value| value as i64));
    fields.extend([
        ("until", optional(series.until.map(UnixMs::as_ms))),
        ("times-left", optional(left)),
        ("runs", number(state.runs)),
        ("failed-runs", number(state.failed_runs)),
        ("last-run", optional(state.last_run.map(UnixMs::as_ms))),
    ]);
}
