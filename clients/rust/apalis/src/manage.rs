//! Looking at tasks, and changing those that wait.

use crate::{push, task, DqStorage};
use apalis_core::backend::{Backend, FetchById, Reschedule, ResumeById, Update, Vacuum};
use apalis_core::task::task_id::TaskId;
use apalis_core::task::Task;
use dq_client::{Error, Id, State};
use std::time::Duration;

/// The states of messages that have ended.
const ENDED: [State; 2] = [State::Dead, State::Done];

pub(crate) fn id_of(id: &TaskId) -> Id {
    Id::from(id.to_string().as_str())
}

impl<Args, C> FetchById for DqStorage<Args, C>
where
    Self: Backend<Task = Task<Vec<u8>>, Error = Error> + Send,
{
    async fn fetch_by_id(&mut self, id: &TaskId) -> Result<Option<Task<Vec<u8>>>, Error> {
        let message = self.source.queue.get(id_of(id)).await?;
        Ok(message.map(|message| task::looked_at(&message, &self.source.queue.name())))
    }
}

impl<Args, C> Update for DqStorage<Args, C>
where
    Self: Backend<Task = Task<Vec<u8>>, Error = Error> + Send,
{
    /// Replaces the task of the same id. One that runs is replaced when its delivery ends, and then runs again.
    async fn update(&mut self, task: Task<Vec<u8>>) -> Result<(), Error> {
        let id = known_id(&task)?;
        match self.source.queue.get(&id).await? {
            Some(_) => push::replace(&self.source.queue, task, self.source.retain).await,
            None => Err(Error::Gone(id)),
        }
    }
}

impl<Args, C> Reschedule for DqStorage<Args, C>
where
    Self: Backend<Task = Task<Vec<u8>>, Error = Error> + Send,
{
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

fn known_id<A>(task: &Task<A>) -> Result<Id, Error> {
    let none = || Error::Config("the task has no id".to_owned());
    task.task_id().map(id_of).ok_or_else(none)
}

impl<Args, C> ResumeById for DqStorage<Args, C>
where
    Self: Backend<Task = Task<Vec<u8>>, Error = Error> + Send,
{
    /// Makes a dead task live again, with no attempts counted.
    async fn resume_by_id(&mut self, id: TaskId) -> Result<bool, Error> {
        Ok(self.source.queue.redrive([id_of(&id)]).await? == 1)
    }
}

impl<Args, C> Vacuum for DqStorage<Args, C>
where
    Self: Backend<Task = Task<Vec<u8>>, Error = Error> + Send,
{
    /// Removes tasks that are done or dead.
    async fn vacuum(&mut self) -> Result<usize, Error> {
        self.source.queue.purge(&ENDED, None).await.map(number)
    }

    async fn vacuum_before(&mut self, age: Duration) -> Result<usize, Error> {
        self.source.queue.purge_older(age, &ENDED, None).await.map(number)
    }
}

fn number(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
