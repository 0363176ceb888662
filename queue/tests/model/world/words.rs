//! Conversions between the types of the queue, of the model, and of a client.

use super::ms;
use crate::history::{headers, Due, Push, BATCHES, CHECKPOINTS, ERRORS, GROUPS};
use crate::reference::{self, after, Model, Name, State};
use dq_queue::id::{Id, Sequence, Target};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{NewMessage, OnDuplicate, Past};

pub(super) fn id_of(message: &reference::Message) -> Vec<u8> {
    message.name.clone().unwrap_or_else(|| Sequence(message.sequence).to_string().into_bytes())
}

/// A reference to a message as bytes, parsed for the queue and for the model.
pub(super) fn parsed(text: &[u8]) -> (Target<'_>, Name, Option<u64>) {
    let target = Target::parse(text).unwrap();
    let receipt = target.receipt.map(|receipt| receipt.0);
    let name = match target.id {
        Id::Generated(sequence) => Name::Sequence(sequence.0),
        Id::Named(name) => Name::Text(name.to_vec()),
    };
    (target, name, receipt)
}

/// The same for a reference that can only be an id.
pub(super) fn named(text: &[u8]) -> Option<(Id<'_>, Name)> {
    let id = Id::parse(text)?;
    Some(match id {
        Id::Generated(sequence) => (id, Name::Sequence(sequence.0)),
        Id::Named(name) => (id, Name::Text(name.to_vec())),
    })
}

/// A due time for the queue, and the instant that it stands for in the model. `more` is added to a delay.
pub(super) fn due_of(due: Due, more: u64, now: u64) -> (dq_queue::Due, u64) {
    match due {
        Due::Now | Due::Default => (dq_queue::Due::Now, now),
        Due::After(delay) => {
            let delay = (delay + more).min(DurationMs::MAX.as_ms());
            (dq_queue::Due::After(DurationMs::new(delay)), after(now, delay))
        }
        Due::At(from_now) => {
            let instant = ms(now.saturating_add_signed(from_now));
            (dq_queue::Due::At(instant), instant.as_ms())
        }
        Due::AtTheEnd => (dq_queue::Due::At(ms(UnixMs::MAX_AT)), UnixMs::MAX_AT),
    }
}

/// What the messages of a push went through.
pub(super) fn past_of(push: &Push) -> Past<'static> {
    let mut past = Past::default();
    if let Some(given) = push.past {
        past.attempts = given.attempts;
        past.error = given.error.map(|nth| ERRORS[nth]);
        past.checkpoint = given.checkpoint.map(|nth| CHECKPOINTS[nth]);
        past.dead = given.dead;
    }
    past
}

/// A push for the queue and for the model; `past` is [`past_of`] it.
pub(super) fn asked<'a>(
    push: &Push,
    past: &'a Past<'a>,
    payload: &'a [u8],
    name: Option<&'a [u8]>,
    more: u64,
    model: &Model,
) -> (NewMessage<'a>, reference::Push<'a>) {
    let (due, instant) = match push.due {
        Due::Default => (None, after(model.now, model.settings.delay.as_ms())),
        given => {
            let (due, instant) = due_of(given, more, model.now);
            (Some(due), instant)
        }
    };
    let message = NewMessage {
        payload,
        name,
        due,
        priority: push.priority,
        retries: push.retries.map(|count| dq_queue::settings::Retries::new(count).unwrap()),
        lease: push.lease.map(DurationMs::new),
        ttl: push.ttl.map(DurationMs::new),
        on_duplicate: match (push.replace, push.later) {
            (false, _) => OnDuplicate::Refuse,
            (true, false) => OnDuplicate::Replace,
            (true, true) => OnDuplicate::ReplaceLater,
        },
        maxwait: push.maxwait.map(DurationMs::new),
        retain: push.retain.map(DurationMs::new),
        group: push.group.map(|nth| GROUPS[nth]),
        headers: push.headers.map(headers),
        batch: push.batch.map(|nth| BATCHES[nth]),
        past: push.past.map(|_| past),
    };
    let request = reference::Push {
        payload,
        name,
        due: instant,
        priority: push.priority,
        retries: push.retries,
        lease: push.lease,
        ttl: push.ttl,
        replace: push.replace,
        maxwait: push.maxwait,
        later: push.later,
        retain: push.retain,
        group: push.group.map(|nth| GROUPS[nth]),
        headers: push.headers,
        batch: push.batch.map(|nth| BATCHES[nth]),
        past: push.past,
    };
    (message, request)
}

pub(super) fn state_of(state: dq_queue::State, deadline: u64) -> State {
    match state {
        dq_queue::State::Delayed => State::Delayed,
        dq_queue::State::Ready => State::Ready,
        dq_queue::State::InFlight => State::InFlight { deadline },
        dq_queue::State::Dead { died, reason } => State::Dead { died: died.as_ms(), reason },
    }
}
