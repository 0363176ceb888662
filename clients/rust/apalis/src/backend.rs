//! The storage as the source of a worker: it fetches, and gives back what it has not handed out.

use crate::fetch::Fetch;
use crate::settle::SettleLayer;
use crate::DqStorage;
use apalis_core::backend::codec::Codec;
use apalis_core::backend::finalize::Durable;
use apalis_core::backend::{Backend, BackendConfig, WireFormatBackend};
use apalis_core::task::task_id::RandomId;
use apalis_core::task::Task;
use apalis_core::worker::context::WorkerContext;
use dq_client::{Error, Nack};
use futures_util::FutureExt;
use std::collections::VecDeque;
use std::fmt::Display;
use std::task::{ready, Context, Poll};

impl<Args, C> Backend for DqStorage<Args, C>
where
    C: Codec<Args, Compact = Vec<u8>> + Clone + Send + Sync + 'static,
    C::Error: Display,
    Args: 'static,
{
    type Task = Task<Vec<u8>>;
    type Error = Error;

    fn poll_ready(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        worker: &WorkerContext,
    ) -> Poll<Option<Result<Self::Task, Error>>> {
        loop {
            if let Some(task) = self.incoming.pop_front() {
                return Poll::Ready(Some(Ok(task)));
            }
            if let Err(error) = ready!(self.poll_fetch(context, worker)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    fn poll_close(&mut self, context: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), Error>> {
        // A pop that waits ends within `fetch::BLOCK`. What it delivers meanwhile is given back.
        if self.fetch.is_some() {
            ready!(self.poll_fetch(context, worker))?;
        }
        let (queue, rest) = (&self.source.queue, &mut self.incoming);
        let give_back = self.give_back.get_or_insert_with(|| {
            let (queue, rest) = (queue.clone(), std::mem::take(rest));
            give_back(queue, rest).boxed().into()
        });
        let done = ready!(give_back.poll_unpin(context));
        (self.give_back, self.leases) = (None, None);
        Poll::Ready(done)
    }
}

impl<Args, C> DqStorage<Args, C>
where
    C: Codec<Args, Compact = Vec<u8>> + Clone + Send + Sync + 'static,
    C::Error: Display,
    Args: 'static,
{
    fn poll_fetch(&mut self, context: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), Error>> {
        if self.fetch.is_none() {
            let fetch = Fetch { source: self.source.clone(), leases: self.leases.clone(), worker: worker.clone() };
            let codec = self.codec.clone();
            let check = move |bytes: &Vec<u8>| codec.decode(bytes).map(drop).map_err(|error| error.to_string());
            self.fetch = Some(fetch.tasks(Box::new(check)).boxed().into());
        }
        let Some(fetch) = &mut self.fetch else { return Poll::Pending };
        let fetched = ready!(fetch.poll_unpin(context));
        self.fetch = None;
        Poll::Ready(fetched.map(|fetched| {
            self.leases = Some(fetched.leases);
            self.incoming = fetched.tasks;
        }))
    }
}

/// Gives back tasks that no handler has begun. No attempt is counted.
async fn give_back(queue: dq_client::Queue<dq_client::Raw>, tasks: VecDeque<Task<Vec<u8>>>) -> Result<(), Error> {
    for task in tasks {
        if let Some(held) = crate::leases::held(&task) {
            queue.nack(held.receipt(), &Nack::give_back()).await?;
        }
    }
    Ok(())
}

impl<Args, C> BackendConfig for DqStorage<Args, C> {
    type Args = Args;
    type Id = RandomId;
    type Kind = Durable;
    type Config = ();
    type Layer = SettleLayer;

    fn config(&self) -> &() {
        &()
    }

    fn middleware(&mut self, worker: &mut WorkerContext) -> SettleLayer {
        SettleLayer::new(self.source.queue.clone(), worker.clone())
    }
}

impl<Args, C: Send + 'static> WireFormatBackend for DqStorage<Args, C> {
    type Codec = C;
    type Compact = Vec<u8>;

    fn codec(&self) -> &C {
        &self.codec
    }
}
