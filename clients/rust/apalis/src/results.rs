//! Waiting for tasks with `DQ.AWAIT`.

use crate::{manage, task, DqStorage, TaskCodec};
use apalis_core::backend::{TaskResult, WaitForCompletion};
use apalis_core::task::task_id::TaskId;
use dq_client::{Error, Message, Raw, State};
use futures_util::stream::{BoxStream, FuturesUnordered};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use std::time::Duration;

impl<Args: 'static, C: TaskCodec<Args>, Res> WaitForCompletion<Res> for DqStorage<Args, C>
where
    Res: DeserializeOwned + Send + 'static,
{
    type ResultStream = BoxStream<'static, Result<TaskResult<Res>, Error>>;

    /// The results in the order in which they come. A task that is removed before it ends, or that is not kept when it
    /// is done, is [`Error::Gone`].
    fn wait_for(&mut self, ids: impl IntoIterator<Item = TaskId>) -> Self::ResultStream {
        let wait = |id: TaskId| {
            let message = self.source.queue.wait(manage::message_id(&id), Duration::MAX);
            async move { Ok(result(id, &message.await?)) }
        };
        ids.into_iter().map(wait).collect::<FuturesUnordered<_>>().boxed()
    }

    async fn check_status(
        &mut self,
        ids: impl IntoIterator<Item = TaskId> + Send,
    ) -> Result<Vec<TaskResult<Res>>, Error> {
        let mut results = Vec::new();
        for id in ids.into_iter().collect::<Vec<_>>() {
            let message = self.source.queue.get(manage::message_id(&id)).await?;
            let ended = message.filter(|message| matches!(message.state, State::Done | State::Dead));
            results.extend(ended.map(|message| result(id, &message)));
        }
        Ok(results)
    }
}

fn result<Res: DeserializeOwned>(task_id: TaskId, message: &Message<Raw>) -> TaskResult<Res> {
    let result = match message.state {
        State::Dead => Err(message.error.clone().or(message.reason.clone()).unwrap_or_default()),
        // Callers pass only messages that are dead or done.
        _ => serde_json::from_slice(message.result_bytes().unwrap_or(b"null")).map_err(|error| error.to_string()),
    };
    TaskResult { task_id, attempt: message.attempt as usize, status: task::status(message.state), result }
}
