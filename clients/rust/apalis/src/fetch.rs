//! Popping tasks, for as long as the server can be asked.

use crate::leases::Leases;
use crate::{task, Source};
use apalis_core::task::Task;
use apalis_core::timer::sleep;
use apalis_core::worker::context::WorkerContext;
use dq_client::{Error, Nack};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How long one pop waits, and therefore how long an idle worker takes to stop.
const BLOCK: Duration = Duration::from_secs(1);
/// The pauses between pops while the server cannot be reached.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(3));
/// The lease of a queue that does not exist yet, or whose settings the user may not read: the default of the server.
const LEASE: Duration = Duration::from_secs(30);

/// Why a payload cannot be decoded, if it cannot.
type Check = Box<dyn Fn(&Vec<u8>) -> Result<(), String> + Send + Sync>;

/// The leases that tasks are under, and tasks that were delivered. No tasks: the worker stops.
pub(crate) type Fetched = (Arc<Leases>, VecDeque<Task<Vec<u8>>>);

/// Waits for tasks. An outage of the server is waited out. There are no leases before the first fetch.
pub(crate) async fn fetch(
    source: Source,
    mut leases: Option<Arc<Leases>>,
    worker: WorkerContext,
    check: Check,
) -> Result<Fetched, Error> {
    let mut pause = PAUSES.0;
    loop {
        match source.attempt(&mut leases, &worker, &check).await {
            Ok(fetched) if !fetched.1.is_empty() || worker.is_shutting_down() => return Ok(fetched),
            Ok(_) => pause = PAUSES.0,
            Err(error) if !error.is_transient() || worker.is_shutting_down() => return Err(error),
            Err(error) => {
                if pause == PAUSES.0 {
                    tracing::warn!(queue = source.queue.name(), %error, "cannot pop");
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
        }
    }
}

impl Source {
    async fn attempt(
        &self,
        leases: &mut Option<Arc<Leases>>,
        worker: &WorkerContext,
        check: &Check,
    ) -> Result<Fetched, Error> {
        let leases = match leases {
            Some(leases) => leases,
            None => leases.insert(Leases::keep(&self.client, &self.queue, self.lease().await?)?),
        };
        let pop = self.queue.pop().count(self.prefetch).lease(leases.time()).meta().block(BLOCK);
        let mut tasks = VecDeque::new();
        for delivery in pop.named(worker.name()).all().await? {
            match check(&delivery.bytes().to_vec()) {
                Ok(()) => tasks.push_back(task::delivered(delivery, &self.queue, worker.name(), leases)),
                Err(error) => {
                    // A newer worker may be able to decode it. apalis would end the worker.
                    tracing::warn!(queue = self.queue.name(), id = %delivery.id, error, "a task cannot be decoded");
                    self.queue.nack(&delivery, &Nack::retry().error(error)).await?;
                }
            }
        }
        Ok((Arc::clone(leases), tasks))
    }

    /// The time for which tasks are leased.
    async fn lease(&self) -> Result<Duration, Error> {
        if let Some(lease) = self.lease {
            return Ok(lease);
        }
        match self.queue.info().await {
            Ok(info) => Ok(info.and_then(|info| info.settings.lease).unwrap_or(LEASE)),
            Err(Error::NoPermission(_)) => Ok(LEASE),
            Err(error) => Err(error),
        }
    }
}
