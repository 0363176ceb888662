//! The storage as the source of a worker: it fetches, and gives back what it has not handed out.

use crate::fetch::fetch;
use crate::settle::Settle;
use crate::{DqStorage, TaskCodec, Work};
use apalis_core::backend::finalize::Durable;
use apalis_core::backend::{Backend, BackendConfig, WireFormatBackend};
use apalis_core::task::task_id::RandomId;
use apalis_core::task::Task;
use apalis_core::worker::context::WorkerContext;
use dq_client::{Error, Nack, Queue, Raw};
use futures_util::FutureExt;
use std::collections::VecDeque;
use std::task::{ready, Context, Poll};

impl<Args: 'static, C: TaskCodec<Args>> Backend for DqStorage<Args, C> {
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
            if let Some(task) = self.work.incoming.pop_front() {
                return Poll::Ready(Some(Ok(task)));
            }
            if let Err(error) = ready!(self.poll_fetch(context, worker)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }

    fn poll_close(&mut self, context: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), Error>> {
        // A pop that waits ends within `fetch::BLOCK`. What it delivers meanwhile is given back.
        if self.work.fetch.is_some() {
            ready!(self.poll_fetch(context, worker))?;
        }
        let (queue, rest) = (&self.source.queue, &mut self.work.incoming);
        let give_back =
            self.work.give_back.get_or_insert_with(|| give_back(queue.clone(), std::mem::take(rest)).boxed().into());
        let done = ready!(give_back.poll_unpin(context));
        self.work = Work::default();
        Poll::Ready(done)
    }
}

impl<Args: 'static, C: TaskCodec<Args>> DqStorage<Args, C> {
    fn poll_fetch(&mut self, context: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), Error>> {
        let (source, codec, work) = (&self.source, &self.codec, &mut self.work);
        let fetch = work.fetch.get_or_insert_with(|| {
            let codec = codec.clone();
            // What the codec says may quote the payload, which errors do not show.
            let expected = || format!("the payload cannot be decoded, expected {}", std::any::type_name::<Args>());
            let check = move |bytes: &Vec<u8>| codec.decode(bytes).map(drop).map_err(|_| expected());
            fetch(source.clone(), work.leases.clone(), worker.clone(), Box::new(check)).boxed().into()
        });
        let fetched = ready!(fetch.poll_unpin(context));
        work.fetch = None;
        Poll::Ready(fetched.map(|(leases, tasks)| (work.leases, work.incoming) = (Some(leases), tasks)))
    }
}

/// Gives back tasks that no handler has begun. No attempt is counted.
async fn give_back(queue: Queue<Raw>, tasks: VecDeque<Task<Vec<u8>>>) -> Result<(), Error> {
    for task in tasks {
        if let Some(held) = crate::leases::delivery(&task) {
            queue.nack(&held.receipt, &Nack::give_back()).await?;
        }
    }
    Ok(())
}

impl<Args, C> BackendConfig for DqStorage<Args, C> {
    type Args = Args;
    type Id = RandomId;
    type Kind = Durable;
    type Config = ();
    type Layer = Settle;

    fn config(&self) -> &() {
        &()
    }

    fn middleware(&mut self, worker: &mut WorkerContext) -> Settle {
        Settle { inner: (), queue: self.source.queue.clone(), worker: worker.clone() }
    }
}

impl<Args, C: Send + 'static> WireFormatBackend for DqStorage<Args, C> {
    type Codec = C;
    type Compact = Vec<u8>;

    fn codec(&self) -> &C {
        &self.codec
    }
}
