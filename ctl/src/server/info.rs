//! The reply of `DQ.INFO` in two forms: as the client's type, for decisions, and as the server sent it, for printing,
//! so that fields of a newer server are printed as well.

use super::failure::Failure;
use super::reply::{no_such_queue, Fields};
use crate::text::QueueName;
use dq_client::{blocking::Client, cmd, Forward, Info, Resend, State, Value};
use std::ops::Deref;

/// Reads `DQ.INFO`; `None` if there is no such queue.
pub fn read(client: &Client, queue: &[u8]) -> Result<Option<QueueInfo>, Failure> {
    QueueInfo::read(client.call(cmd("DQ.INFO").arg(queue), Resend::Harmless)?)
}

/// The same; a failure if the queue does not exist.
pub fn existing(client: &Client, queue: &QueueName) -> Result<QueueInfo, Failure> {
    read(client, queue.as_bytes())?.ok_or_else(|| Failure::nothing(no_such_queue(queue)))
}

#[derive(Clone, Debug, Default)]
pub struct QueueInfo {
    known: Info,
    /// The fields of the reply, as far as they are kept.
    pub fields: Fields,
}

impl Deref for QueueInfo {
    type Target = Info;

    fn deref(&self) -> &Info {
        &self.known
    }
}

impl QueueInfo {
    /// `None` if the reply is null: there is no such queue.
    pub fn read(reply: Value) -> Result<Option<QueueInfo>, Failure> {
        let Some(fields) = Fields::read(reply.clone())? else { return Ok(None) };
        Ok(Some(QueueInfo { known: Info::try_from(reply)?, fields }))
    }

    /// The same without the fields that are only printed.
    pub fn without_fields(&self) -> QueueInfo {
        QueueInfo { known: self.known.clone(), fields: Fields::default() }
    }

    /// The settings among the fields, which stand between `lease` and `pushed`.
    pub fn settings_fields(&self) -> Fields {
        let from_lease = self.fields.0.iter().skip_while(|(name, _)| name != "lease");
        let settings = from_lease.take_while(|(name, _)| name != "pushed");
        let is_setting = |name: &str| !name.contains("failing-since") && !name.ends_with("-error");
        Fields(settings.filter(|(name, _)| is_setting(name)).cloned().collect())
    }

    /// How many messages are in a state.
    pub fn count(&self, state: State) -> u64 {
        match state {
            State::Delayed => self.delayed,
            State::Ready => self.ready,
            State::Inflight => self.inflight,
            State::Dead => self.dead,
            State::Done => self.done,
            // One of a newer client.
            _ => 0,
        }
    }

    /// How many messages are in these states.
    pub fn count_all(&self, states: &[State]) -> u64 {
        states.iter().map(|state| self.count(*state)).sum()
    }

    /// Whether the server writes messages that are due to a stream, a list or a channel.
    pub fn is_forwarded(&self) -> bool {
        is_target(self.settings.forward.as_ref())
    }

    /// Whether `DEADFORWARD` moves the dead messages away. If that fails, they stay.
    pub fn moves_dead(&self) -> bool {
        is_target(self.settings.dead_forward.as_ref()) && self.dead_forward_failing_since.is_none()
    }

    /// Whether messages that are due, or dead ones, cannot be forwarded.
    pub fn is_failing(&self) -> bool {
        self.forward_failing_since.is_some() || self.dead_forward_failing_since.is_some()
    }
}

fn is_target(forward: Option<&Forward>) -> bool {
    forward.is_some_and(|forward| *forward != Forward::none())
}

#[cfg(test)]
impl QueueInfo {
    /// A queue of which the server reports these numbers.
    pub fn with_numbers(numbers: &[(&str, i64)]) -> QueueInfo {
        QueueInfo::with(numbers.iter().map(|(name, number)| (*name, Value::Int(*number))))
    }

    pub fn with<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> QueueInfo {
        let pair = |(name, value): (&str, Value)| (Value::BulkString(name.as_bytes().to_vec()), value);
        QueueInfo::read(Value::Map(fields.into_iter().map(pair).collect())).unwrap().unwrap()
    }
}
