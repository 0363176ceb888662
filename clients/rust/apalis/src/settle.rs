//! The layer that reports to the server what became of a task.

use crate::fetch::{is_for_now, PAUSES};
use crate::leases::{delivery, LeasedDelivery};
use apalis_core::error::{AbortError, BoxDynError, DeferredError, RetryAfterError};
use apalis_core::task::Task;
use apalis_core::timer::sleep;
use apalis_core::worker::context::WorkerContext;
use dq_client::{Error, Nack, Queue, Raw};
use futures_util::future::{pending, select, BoxFuture, Either};
use futures_util::FutureExt;
use serde::Serialize;
use std::any::Any;
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

/// The error of a task whose lease was lost, because it was cancelled or belongs to another worker now. Its future was
/// dropped at an `.await`, or its outcome was too late to be reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseLost;

impl fmt::Display for LeaseLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lease of the task was lost")
    }
}

impl std::error::Error for LeaseLost {}

/// Acknowledges tasks that succeeded, and gives back those that failed: a layer, and with an inner service its service.
/// It is the outermost layer of a worker, so it sees the last result of a layer that retries.
#[derive(Clone, Debug)]
pub struct Settle<S = ()> {
    pub(crate) inner: S,
    pub(crate) queue: Queue<Raw>,
    pub(crate) worker: WorkerContext,
}

impl<S> Layer<S> for Settle {
    type Service = Settle<S>;

    fn layer(&self, inner: S) -> Settle<S> {
        Settle { inner, queue: self.queue.clone(), worker: self.worker.clone() }
    }
}

impl<S, Args> Service<Task<Args>> for Settle<S>
where
    S: Service<Task<Args>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxDynError>,
    S::Response: Serialize + Send + 'static,
{
    type Response = S::Response;
    type Error = BoxDynError;
    type Future = BoxFuture<'static, Result<S::Response, BoxDynError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxDynError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, task: Task<Args>) -> Self::Future {
        let (held, context) = (delivery(&task), task.ctx().clone());
        // Otherwise the panic would end the worker, and then the next one that gets the task.
        let begun = catch_unwind(AssertUnwindSafe(|| self.inner.call(task)));
        let run = async move {
            let ended = match begun {
                Ok(run) => AssertUnwindSafe(run).catch_unwind().await,
                Err(panic) => Err(panic),
            };
            ended.map_or_else(|panic| Err(panicked(panic)), |result| result.map_err(Into::into))
        };
        // It was not delivered by a queue, but for example piped to the backend from a stream.
        let Some(held) = held else { return run.boxed() };
        let (queue, worker) = (self.queue.clone(), self.worker.clone());
        async move {
            let first = context.attempt();
            let lost = held.lost().map_or(Either::Left(pending()), |lost| Either::Right(lost.map(drop)));
            let Either::Left((result, lost)) = select(pin!(run), lost).await else { return Err(LeaseLost.into()) };
            // A layer that has retried and then returned the error has given up, unless it did so because the worker
            // stops.
            let has_given_up = context.attempt() > first + 1 && !worker.is_shutting_down();
            let verdict = verdict(&result, has_given_up);
            let reporting = pin!(report_until_answered(&queue, &held, &verdict));
            match select(reporting, lost).await {
                Either::Left((Ok(true), _)) => result,
                Either::Left((Ok(false), _)) => Err(LeaseLost.into()),
                Either::Left((Err(error), _)) => Err(error.into()),
                Either::Right(_) => {
                    let (queue, receipt) = (queue.name(), &held.receipt);
                    let text = "the outcome of a task could not be reported before its lease was over";
                    tracing::warn!(%queue, %receipt, "{text}");
                    Err(LeaseLost.into())
                }
            }
        }
        .boxed()
    }
}

/// The error of a task that has panicked.
fn panicked(panic: Box<dyn Any + Send>) -> BoxDynError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let error = format!("panic: {text}").into();
    // What a panic carries may panic when it is dropped.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(another);
    }
    error
}

/// What is reported to the server: the result in JSON, which is `None` if it is null; or how the task is given back.
type Verdict = Result<Option<Vec<u8>>, Nack>;

fn verdict<R: Serialize>(result: &Result<R, BoxDynError>, has_given_up: bool) -> Verdict {
    let error = match result {
        Ok(value) => return Ok(serde_json::to_vec(value).ok().filter(|json| json != b"null")),
        Err(error) => error,
    };
    let cause = |error: &dyn std::error::Error| error.source().map_or_else(|| error.to_string(), ToString::to_string);
    Err(if let Some(abort) = error.downcast_ref::<AbortError>() {
        Nack::reject().error(cause(abort))
    } else if let Some(retry) = error.downcast_ref::<RetryAfterError>() {
        Nack::retry().after(retry.get_duration()).error(cause(retry))
    } else if let Some(deferred) = error.downcast_ref::<DeferredError>() {
        Nack::give_back().after(Duration::ZERO).error(cause(deferred))
    } else {
        let nack = if has_given_up { Nack::reject() } else { Nack::retry() };
        nack.error(error.to_string())
    })
}

/// Reports again and again while the server cannot be reached. The lease is kept meanwhile, as far as that is possible.
async fn report_until_answered(queue: &Queue<Raw>, held: &LeasedDelivery, verdict: &Verdict) -> Result<bool, Error> {
    let (mut pause, mut may_have_counted) = (PAUSES.0, false);
    loop {
        match report(queue, held, verdict).await {
            // An earlier command may have counted, whose reply was lost.
            Ok(has_counted) => return Ok(has_counted || may_have_counted),
            Err(error) if is_for_now(&error) => {
                tracing::warn!(queue = %queue.name(), receipt = %held.receipt, %error, "an outcome cannot be reported");
                may_have_counted |= error.may_have_been_executed();
            }
            Err(error) => return Err(error),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Returns false if the lease was lost before.
async fn report(queue: &Queue<Raw>, held: &LeasedDelivery, verdict: &Verdict) -> Result<bool, Error> {
    let receipt = &held.receipt;
    let result = match verdict {
        Err(nack) => return Ok(queue.nack(receipt, nack).await?.is_some()),
        Ok(None) => return queue.ack(receipt).await,
        Ok(Some(result)) => result,
    };
    match queue.complete(receipt).result(&Raw(result.clone())).await {
        Err(error @ (Error::TooLarge(_) | Error::NoPermission(_))) => {
            tracing::warn!(queue = %queue.name(), %error, "a result cannot be kept");
            queue.ack(receipt).await
        }
        reported => reported,
    }
}
