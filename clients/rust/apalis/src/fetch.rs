//! Popping tasks, for as long as the server can be asked.

use crate::leases::Leases;
use crate::log::Event;
use crate::{task, Source};
use apalis_core::task::Task;
use apalis_core::timer::sleep;
use apalis_core::worker::context::WorkerContext;
use dq_client::both::Pop;
use dq_client::{Delivery, Error, Nack, Raw};
use futures_util::future::join_all;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How long one pop waits, and therefore how long an idle worker takes to stop.
const BLOCK: Duration = Duration::from_secs(1);
/// The pauses between pops, and between reports, while the server cannot be reached.
pub(crate) const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(3));
/// How long the server is asked for its time after a delivery, before the tasks are given back.
const ASK_FOR_TIME: Duration = Duration::from_secs(3);
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
                    Event::Interrupted { queue: source.queue.name(), error: &error }.log();
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
        }
    }
}

/// Whether a command may succeed later, or was not even sent, because a connection could not be opened.
pub(crate) fn is_for_now(error: &Error) -> bool {
    error.is_transient() || matches!(error, Error::Connect(_) | Error::Authentication(_) | Error::Certificate(_))
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
        let deadlines: Vec<_> = deliveries.iter().map(deadline).collect();
        let ends = match ends(leases, sent, &deadlines).await {
            Ok(ends) => ends,
            Err(error) => {
                // Nobody would begin or extend them, and their retries would be spent.
                let give_back = Nack::give_back();
                join_all(deliveries.iter().map(|delivery| self.nack(delivery, &give_back))).await;
                return Err(error);
            }
        };
        for (delivery, end) in deliveries.into_iter().zip(ends) {
            if let Err(error) = check(&delivery.bytes().to_vec()) {
                // A newer worker may be able to decode it. apalis would end the worker.
                Event::Undecodable { queue: self.queue.name(), id: &delivery.id, error: &error }.log();
                self.nack(&delivery, &Nack::retry().error(error)).await;
                continue;
            }
            let held = delivery.receipt.clone().zip(end).and_then(|(receipt, end)| leases.hold(receipt, end));
            // Of a lease that is over already, another worker may have the task.
            tasks.extend(held.map(|held| task::delivered(delivery, &self.queue, worker.name(), held)));
        }
        Ok((Arc::clone(leases), tasks))
    }

    /// Gives a delivery back. If that fails, it is delivered again when its lease ends; the others must not wait for
    /// it.
    async fn nack(&self, delivery: &Delivery<Raw>, how: &Nack) {
        if let Err(error) = self.queue.nack(delivery, how).await {
            Event::NotGivenBack { queue: self.queue.name(), id: &delivery.id, error: &error }.log();
        }
    }
}

/// When the leases of a delivery end. The server is asked again if it cannot be reached: the tasks are delivered
/// already.
async fn ends(leases: &Leases, sent: Instant, deadlines: &[Option<SystemTime>]) -> Result<Vec<Option<Instant>>, Error> {
    let give_up = Instant::now() + ASK_FOR_TIME;
    loop {
        match leases.ends(sent, deadlines).await {
            Err(error) if is_for_now(&error) && Instant::now() < give_up => sleep(PAUSES.0).await,
            ends => return ends,
        }
    }
}
