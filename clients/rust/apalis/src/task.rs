//! Messages as tasks of apalis.

use crate::leases::LeasedDelivery;
use crate::DueAt;
use apalis_core::backend::queue::Queue as QueueName;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::metadata::MetadataStore;
use apalis_core::task::status::Status;
use apalis_core::task::task_id::TaskId;
use apalis_core::task::Task;
use dq_client::{Delivery, Headers, Message, MessageId, Queue, Raw, State};
use std::time::{SystemTime, UNIX_EPOCH};

/// The arguments of a done task, whose payload the queue has dropped.
pub(crate) const DROPPED: &[u8] = b"null";

/// A task that was delivered to a worker, and whose lease is kept from now on.
pub(crate) fn delivered(
    delivery: Delivery<Raw>,
    queue: &Queue<Raw>,
    worker: &str,
    held: LeasedDelivery,
) -> Task<Vec<u8>> {
    // apalis counts a run when it begins.
    let attempt = delivery.attempt.saturating_sub(1) as usize;
    let mut task = TaskBuilder::new(delivery.bytes().to_vec()).task_id(task_id(&delivery.id)).attempt(attempt);
    task =
        task.queue(QueueName::from(queue.name().to_string())).status(Status::Queued).lock_by(Some(worker.to_owned()));
    if let Some(meta) = delivery.meta {
        task = task.run_at_timestamp(seconds(meta.due)).with_metadata(metadata(&meta.headers));
        task = task.priority(usize::try_from(meta.priority).unwrap_or(0));
    }
    task.data(held).build()
}

/// A task as the queue holds it.
pub(crate) fn looked_at(message: &Message<Raw>, queue: &dq_client::QueueName) -> Task<Vec<u8>> {
    let args = if message.state == State::Done { DROPPED } else { message.bytes() };
    let mut task = TaskBuilder::new(args.to_vec())
        .task_id(task_id(&message.id))
        .attempt(message.attempt as usize)
        .status(status(message.state))
        .queue(QueueName::from(queue.to_string()))
        .priority(usize::try_from(message.priority).unwrap_or(0))
        .run_at_timestamp(seconds(message.due))
        .data(DueAt(message.due))
        .with_metadata(metadata(&message.headers))
        .done_at(message.done.or(message.died).map(seconds))
        .lock_by(message.consumer.clone());
    if let Ok(retries) = usize::try_from(message.retries) {
        task = task.max_attempts(retries + 1);
    }
    task.build()
}

/// The status of a message in the words of apalis.
pub(crate) fn status(state: State) -> Status {
    match state {
        State::Delayed => Status::Pending,
        State::Ready => Status::Queued,
        State::Inflight => Status::Running,
        State::Done => Status::Done,
        State::Dead => Status::Killed,
        // A state of a newer client: the enum can grow.
        _ => Status::Failed,
    }
}

/// The states of messages whose tasks have this status.
pub(crate) fn states(status: Option<&Status>) -> Vec<State> {
    State::ALL.into_iter().filter(|state| status.is_none_or(|wanted| self::status(*state) == *wanted)).collect()
}

/// The id as text, whatever it looks like: as a number or an UUID, it might be shown in another way.
pub(crate) fn task_id(id: &MessageId) -> TaskId {
    TaskId::from_string(id.to_string())
}

pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn metadata(headers: &Headers) -> MetadataStore {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    headers.iter().map(|(name, value)| (text(name), text(value))).collect()
}
