//! Looking at tasks, and changing those that wait.

use crate::{push, task, DqStorage, TaskCodec};
use apalis_core::backend::{FetchById, Reschedule, ResumeById, Update, Vacuum};
use apalis_core::task::task_id::TaskId;
use apalis_core::task::Task;
use dq_client::{Error, MessageId, State};
use std::time::Duration;

/// The states of messages that have ended.
const ENDED: [State; 2] = [State::Dead, State::Done];

pub(crate) fn message_id(id: &TaskId) -> MessageId {
    MessageId::from(id.to_string())
}

impl<Args: 'static, C: TaskCodec<Args>> FetchById for DqStorage<Args, C> {
    async fn fetch_by_id(&mut self, id: &TaskId) -> Result<Option<Task<Vec<u8>>>, Error> {
        let message = self.source.queue.get(message_id(id)).await?;
        Ok(message.map(|message| task::looked_at(&message, self.source.queue.name())))
    }
}

impl<Args: 'static, C: TaskCodec<Args>> Update for DqStorage<Args, C> {
    /// Replaces the task of the same id. One that runs is replaced when its delivery ends, and then runs again.
    async fn update(&mut self, task: Task<Vec<u8>>) -> Result<(), Error> {
        let id = known_id(&task)?;
        match self.source.queue.get(&id).await? {
            Some(_) => push::replace(&self.source.queue, task, self.source.retain).await,
            None => Err(Error::Gone(id)),
        }
    }
}

impl<Args: 'static, C: TaskCodec<Args>> Reschedule for DqStorage<Args, C> {
    /// Makes a task that waits due this long after now. A task that runs returns `RetryAfterError` instead.
    async fn reschedule(&mut self, task: Task<Vec<u8>>, wait: Duration) -> Result<(), Error> {
        let id = known_id(&task)?;
        if self.source.queue.reschedule(&id, wait).await? {
            Ok(())
        } else {
            Err(Error::Config(format!("the task {id} does not wait, so it cannot be rescheduled")))
        }
    }
}

fn known_id<A>(task: &Task<A>) -> Result<MessageId, Error> {
    let none = || Error::Config("the task has no id".to_owned());
    task.task_id().map(message_id).ok_or_else(none)
}

impl<Args: 'static, C: TaskCodec<Args>> ResumeById for DqStorage<Args, C> {
    /// Makes a dead task live again, with no attempts counted.
    async fn resume_by_id(&mut self, id: TaskId) -> Result<bool, Error> {
        Ok(self.source.queue.redrive([message_id(&id)]).await? == 1)
    }
}

impl<Args: 'static, C: TaskCodec<Args>> Vacuum for DqStorage<Args, C> {
    /// Removes tasks that are done or dead.
    async fn vacuum(&mut self) -> Result<usize, Error> {
        self.source.queue.purge(&ENDED, None).await.map(|count| count as usize)
    }

    async fn vacuum_before(&mut self, age: Duration) -> Result<usize, Error> {
        self.source.queue.purge_older(age, &ENDED, None).await.map(|count| count as usize)
    }
}
