//! The sink: tasks of apalis as messages.

use crate::DqStorage;
use apalis_core::task::Task;
use dq_client::both::PushAll;
use dq_client::{Async, Error, Headers, Queue, Raw};
use futures_util::{FutureExt, Sink};
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many messages one command pushes, so that the server is not held up for long.
const BATCH: usize = 1000;

/// When a task is due, to the millisecond: `TaskBuilder::new(mail).data(DueAt(time))`. The `run_at` of apalis has whole
/// seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueAt(pub SystemTime);

impl<Args, C: Unpin> Sink<Task<Vec<u8>>> for DqStorage<Args, C> {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, task: Task<Vec<u8>>) -> Result<(), Error> {
        self.get_mut().outgoing.push(task);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let storage = self.get_mut();
        while storage.flush.is_some() || !storage.outgoing.is_empty() {
            let (queue, retain, tasks) = (&storage.source.queue, storage.source.retain, &mut storage.outgoing);
            let flush = storage.flush.get_or_insert_with(|| {
                let (queue, tasks) = (queue.clone(), std::mem::take(tasks));
                async move { push(&queue, tasks, retain).await }.boxed().into()
            });
            let pushed = ready!(flush.poll_unpin(context));
            storage.flush = None;
            pushed?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_flush(context)
    }
}

/// What tasks that are pushed by one command have in common: whether they have ids, their due time, their priority,
/// their retries and their headers.
type Terms = (bool, Option<SystemTime>, Option<i8>, Option<i32>, Headers);

fn terms(task: &Task<Vec<u8>>) -> Terms {
    let run_at = task.run_at().map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    let due = task.data().get::<DueAt>().map(|due| due.0).or(run_at);
    let priority = task.priority().map(|priority| i8::try_from(priority).unwrap_or(i8::MAX));
    let retries = task.max_attempts().map(|attempts| i32::try_from(attempts.saturating_sub(1)).unwrap_or(-1));
    (id(task).is_some(), due, priority, retries, task.metadata().iter().collect())
}

/// The id of the message, if the task has one. While the queue holds that message, further pushes of the id have no
/// effect.
fn id(task: &Task<Vec<u8>>) -> Option<String> {
    task.task_id().map(ToString::to_string).or(task.idempotency_key().map(str::to_owned))
}

/// Pushes tasks in their order, in one command as far as they agree in all but their ids and arguments.
async fn push(queue: &Queue<Raw>, tasks: Vec<Task<Vec<u8>>>, retain: Option<Duration>) -> Result<(), Error> {
    let differ = |task: &&Task<Vec<u8>>| match (task.task_id(), task.idempotency_key()) {
        (Some(id), Some(key)) => id.to_string() != key,
        (Some(_), None) | (None, _) => false,
    };
    if let Some(task) = tasks.iter().find(differ) {
        let text = format!("the task has the id {:?} and another idempotency key", id(task));
        return Err(Error::Config(text));
    }
    for alike in tasks.chunk_by(|one, next| terms(one) == terms(next)) {
        for batch in alike.chunks(BATCH) {
            command(queue, batch, retain).await?.into_iter().try_for_each(|pushed| pushed.map(drop))?;
        }
    }
    Ok(())
}

/// The command that pushes tasks which have their terms in common.
fn command(queue: &Queue<Raw>, tasks: &[Task<Vec<u8>>], retain: Option<Duration>) -> PushAll<Raw, Async> {
    let payloads: Vec<Raw> = tasks.iter().map(|task| Raw(task.args.clone())).collect();
    let push = queue.push_all(&payloads);
    let Some((has_ids, due, priority, retries, headers)) = tasks.first().map(terms) else { return push };
    let push = if has_ids { push.ids(tasks.iter().filter_map(id)) } else { push };
    let push = due.into_iter().fold(push.headers(headers), PushAll::at);
    let push = priority.into_iter().fold(push, PushAll::priority);
    let push = retries.into_iter().fold(push, PushAll::retries);
    retain.into_iter().fold(push, PushAll::retain)
}

/// Puts a task in the place of the message that has its id. One in flight is replaced when its delivery ends.
pub(crate) async fn replace(queue: &Queue<Raw>, task: Task<Vec<u8>>, retain: Option<Duration>) -> Result<(), Error> {
    let pushed = command(queue, &[task], retain).replace_later().await?;
    pushed.into_iter().try_for_each(|pushed| pushed.map(drop))
}
