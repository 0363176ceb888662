//! Popping tasks, for as long as the server can be asked.

use crate::leases::Leases;
use crate::{task, Source};
use apalis_core::task::Task;
use apalis_core::timer::sleep;
use apalis_core::worker::context::WorkerContext;
use dq_client::{Delivery, Error, Nack, Raw};
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

/// Tasks that were delivered, and the leases that they are under. No tasks: the worker stops.
pub(crate) struct Fetched {
    pub leases: Arc<Leases>,
    pub tasks: VecDeque<Task<Vec<u8>>>,
}

/// What one fetch needs.
pub(crate) struct Fetch {
    pub source: Source,
    /// `None` before the first fetch.
    pub leases: Option<Arc<Leases>>,
    pub worker: WorkerContext,
}

impl Fetch {
    /// Waits for tasks. An outage of the server is waited out.
    pub async fn tasks(mut self, check: Check) -> Result<Fetched, Error> {
        let mut pause = PAUSES.0;
        loop {
            let error = match self.attempt(&check).await {
                Ok((leases, tasks)) if !tasks.is_empty() || self.worker.is_shutting_down() => {
                    return Ok(Fetched { leases, tasks });
                }
                Ok((leases, _)) => {
                    self.leases = Some(leases);
                    pause = PAUSES.0;
                    continue;
                }
                Err(error) => error,
            };
            if !error.is_transient() || self.worker.is_shutting_down() {
                return Err(error);
            }
            if pause == PAUSES.0 {
                tracing::warn!(queue = self.source.queue.name(), %error, "cannot pop");
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn attempt(&self, check: &Check) -> Result<(Arc<Leases>, VecDeque<Task<Vec<u8>>>), Error> {
        let leases = match &self.leases {
            Some(leases) => Arc::clone(leases),
            None => Leases::keep(&self.source.client, &self.source.queue, self.lease().await?)?,
        };
        let pop = self.source.queue.pop().count(self.source.prefetch).lease(leases.time()).meta().block(BLOCK);
        let delivered = pop.named(self.worker.name()).all().await?;
        let mut tasks = VecDeque::with_capacity(delivered.len());
        for delivery in delivered {
            match check(&delivery.bytes().to_vec()) {
                Ok(()) => tasks.push_back(task::delivered(delivery, &self.source.queue, self.worker.name(), &leases)),
                Err(error) => self.return_undecodable(&delivery, error).await?,
            }
        }
        Ok((leases, tasks))
    }

    /// The time for which tasks are leased.
    async fn lease(&self) -> Result<Duration, Error> {
        if let Some(lease) = self.source.lease {
            return Ok(lease);
        }
        match self.source.queue.info().await {
            Ok(info) => Ok(info.and_then(|info| info.settings.lease).unwrap_or(LEASE)),
            Err(Error::NoPermission(_)) => Ok(LEASE),
            Err(error) => Err(error),
        }
    }

    /// A newer worker may be able to decode it. apalis would end the worker.
    async fn return_undecodable(&self, delivery: &Delivery<Raw>, error: String) -> Result<(), Error> {
        tracing::warn!(queue = self.source.queue.name(), id = %delivery.id, error, "a task cannot be decoded");
        self.source.queue.nack(delivery, &Nack::retry().error(error)).await.map(drop)
    }
}
