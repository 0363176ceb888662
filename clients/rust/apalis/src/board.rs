//! What `apalis-board` shows: queues, tasks, workers and counts.

use crate::{task, DqStorage, TaskCodec};
use apalis_core::backend::{
    Filter, ListAllTasks, ListQueues, ListTasks, ListWorkers, Metrics, QueueInfo, RunningWorker, StatType, Statistic,
};
use apalis_core::task::Task;
use dq_client::{cmd, from_redis_value, Client, Error, Info, Queue, Raw, State};
use futures_util::future::try_join_all;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// The name of the data type of a queue.
const TYPE: &str = "DQ--queue";

impl<Args: 'static, C: TaskCodec<Args>> ListQueues for DqStorage<Args, C> {
    async fn list_queues(&self) -> Result<Vec<QueueInfo>, Error> {
        let mut infos = Vec::new();
        for queue in queues(&self.source.client).await? {
            let Some(info) = queue.info().await? else { continue };
            let workers = workers(&queue).await?.into_iter().map(|worker| worker.id).collect();
            infos.push(QueueInfo {
                name: queue.name().to_string(),
                stats: statistics([&info]),
                workers,
                activity: Vec::new(),
            });
        }
        Ok(infos)
    }
}

impl<Args: 'static, C: TaskCodec<Args>> ListWorkers for DqStorage<Args, C> {
    /// The workers that hold tasks now.
    async fn list_workers(&self) -> Result<Vec<RunningWorker>, Error> {
        workers(&self.source.queue).await
    }

    async fn list_all_workers(&self) -> Result<Vec<RunningWorker>, Error> {
        let queues = queues(&self.source.client).await?;
        try_join_all(queues.iter().map(workers)).await.map(|all| all.concat())
    }
}

impl<Args: DeserializeOwned + 'static, C: TaskCodec<Args>> ListTasks for DqStorage<Args, C> {
    /// Tasks in the order in which their states are listed. The queue drops the payloads of done tasks, so these are
    /// listed only if null is an `Args`: `DqStorage<serde_json::Value>` lists them.
    async fn list_tasks(&self, filter: &Filter) -> Result<Vec<Task<Vec<u8>>>, Error> {
        let shows_done = serde_json::from_slice::<Args>(task::DROPPED).is_ok();
        tasks(std::slice::from_ref(&self.source.queue), filter, shows_done).await
    }
}

impl<Args: 'static, C: TaskCodec<Args>> ListAllTasks for DqStorage<Args, C> {
    async fn list_all_tasks(&self, filter: &Filter) -> Result<Vec<Task<Vec<u8>>>, Error> {
        tasks(&queues(&self.source.client).await?, filter, true).await
    }
}

impl<Args: 'static, C: TaskCodec<Args>> Metrics for DqStorage<Args, C> {
    async fn global(&self) -> Result<Vec<Statistic>, Error> {
        let queues = queues(&self.source.client).await?;
        let infos = try_join_all(queues.iter().map(Queue::info)).await?;
        Ok(statistics(infos.iter().flatten()))
    }

    async fn fetch_by_queue(&self) -> Result<Vec<Statistic>, Error> {
        self.source.queue.info().await.map(|info| statistics(&info))
    }
}

/// One page of the tasks of these queues.
async fn tasks(queues: &[Queue<Raw>], filter: &Filter, shows_done: bool) -> Result<Vec<Task<Vec<u8>>>, Error> {
    let skipped = filter.page.saturating_sub(1).saturating_mul(filter.limit());
    let end = skipped.saturating_add(filter.limit());
    let mut found = Vec::new();
    for queue in queues {
        for state in task::states(filter.status.as_ref()) {
            let missing = end.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            if missing > 0 && (shows_done || state != State::Done) {
                let messages = queue.peek(state, missing).await?;
                found.extend(messages.iter().map(|message| task::looked_at(message, queue.name())));
            }
        }
    }
    Ok(found.into_iter().skip(skipped as usize).collect())
}

async fn workers(queue: &Queue<Raw>) -> Result<Vec<RunningWorker>, Error> {
    let consumers = queue.consumers().rest().await?;
    let now = task::seconds(std::time::SystemTime::now());
    let worker = |consumer: dq_client::Consumer| RunningWorker {
        id: String::from_utf8_lossy(&consumer.name).into_owned(),
        queue: queue.name().to_string(),
        backend: "DqStorage".to_owned(),
        started_at: task::seconds(consumer.oldest_delivery),
        // Its leases are in force.
        last_heartbeat: now,
        layers: String::new(),
    };
    Ok(consumers.into_iter().map(worker).collect())
}

/// All queues of the servers.
async fn queues(client: &Client) -> Result<Vec<Queue<Raw>>, Error> {
    let mut names = BTreeSet::new();
    for server in client.servers().await? {
        let mut cursor = b"0".to_vec();
        loop {
            let scan = cmd("SCAN").arg(&cursor).arg("COUNT").arg(1000).arg("TYPE").arg(TYPE).clone();
            let page = from_redis_value(client.call_on(&server, &scan).await?);
            let (next, keys): (_, Vec<Vec<u8>>) = page.map_err(|error| Error::Protocol(error.to_string()))?;
            names.extend(keys);
            cursor = next;
            if cursor == b"0" {
                break;
            }
        }
    }
    Ok(names.into_iter().map(|name| client.queue(name)).collect())
}

/// The counts under the names that `apalis-board` knows.
fn statistics<'i>(infos: impl IntoIterator<Item = &'i Info>) -> Vec<Statistic> {
    let infos: Vec<_> = infos.into_iter().collect();
    let sum = |count: fn(&Info) -> u64| infos.iter().copied().map(count).sum::<u64>();
    let counts = [
        ("RUNNING_JOBS", sum(|info| info.inflight)),
        ("PENDING_JOBS", sum(|info| info.ready + info.delayed)),
        ("KILLED_JOBS", sum(|info| info.dead)),
        ("DONE_JOBS", sum(|info| info.totals.acked)),
        ("FAILED_JOBS", sum(|info| info.totals.nacked)),
        ("TOTAL_JOBS", sum(|info| info.totals.pushed)),
    ];
    let statistic = |(priority, (title, count)): (u64, (&str, u64))| Statistic {
        title: title.to_owned(),
        stat_type: StatType::Number,
        value: count.to_string(),
        priority: Some(priority),
    };
    (1..).zip(counts).map(statistic).collect()
}
