//! Popping tasks, for as long as the server can be asked.

use crate::leases::Leases;
use crate::{task, Source};
use apalis_core::task::Task;
use apalis_core::timer::sleep;
use apalis_core::worker::context::WorkerContext;
use dq_client::both::Pop;
use dq_client::{Delivery, Error, Nack, Raw};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one pop waits, and therefore how long an idle worker takes to stop.
const BLOCK: Duration = Duration::from_secs(1);
/// The pauses between pops, and between reports, while the server cannot be reached.
pub(crate) const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(3));
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
            Err(error) if !is_for_now(&error) || worker.is_shutting_down() => return Err(error),
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

/// Whether a command may succeed later, or was not even sent, because a connection could not be opened.
pub(crate) fn is_for_now(error: &Error) -> bool {
    error.is_transient() || matches!(error, Error::Authentication(_) | Error::Certificate(_))
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
            None => leases.insert(Leases::keep(&self.queue, self.lease).await?),
        };
        // If only this process knows how long a lease is, it runs since the pop was sent.
        let block = leases.asked().map_or(BLOCK, |lease| BLOCK.min(lease / 3));
        let pop = self.queue.pop().count(self.prefetch).meta().block(block).named(worker.name());
        let pop = leases.asked().into_iter().fold(pop, Pop::lease);
        let sent = Instant::now();
        let deliveries = pop.all().await?;
        let mut tasks = VecDeque::new();
        if deliveries.is_empty() {
            return Ok((Arc::clone(leases), tasks));
        }
        let deadline = |delivery: &Delivery<Raw>| delivery.meta.as_ref().and_then(|meta| meta.deadline);
        let ends = leases.ends(sent, &deliveries.iter().map(deadline).collect::<Vec<_>>()).await?;
        for (delivery, end) in deliveries.into_iter().zip(ends) {
            if let Err(error) = check(&delivery.bytes().to_vec()) {
                // A newer worker may be able to decode it. apalis would end the worker.
                tracing::warn!(queue = self.queue.name(), id = %delivery.id, error, "a task cannot be decoded");
                self.queue.nack(&delivery, &Nack::retry().error(error)).await?;
                continue;
            }
            let held = delivery.receipt.clone().zip(end).and_then(|(receipt, end)| leases.hold(receipt, end));
            // Of a lease that is over already, another worker may have the task.
            tasks.extend(held.map(|held| task::delivered(delivery, &self.queue, worker.name(), held)));
        }
        Ok((Arc::clone(leases), tasks))
    }
}
