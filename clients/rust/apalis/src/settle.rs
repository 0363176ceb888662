//! The layer that reports to the server what became of a task.

use crate::fetch::{is_for_now, PAUSES};
use crate::leases::{delivery, LeasedDelivery};
use crate::log::Event;
use apalis_core::error::{AbortError, BoxDynError, DeferredError, RetryAfterError};
use apalis_core::task::Task;
use apalis_core::timer::sleep;
use apalis_core::worker::context::WorkerContext;
use dq_client::{Error, Failure, Nack, Queue, Raw, State};
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
                Either::Left((Ok(Reported::Accepted(state)), _)) => {
                    let failed = result.as_ref().err().filter(|error| error.downcast_ref::<DeferredError>().is_none());
                    if let Some(error) = failed {
                        let (queue, receipt, error) = (queue.name(), &held.receipt, &text_of(error));
                        Event::Failed { queue, receipt, attempt: context.attempt(), error, state }.log();
                    }
                    result
                }
                Either::Left((Ok(Reported::LeaseLost), _)) => Err(LeaseLost.into()),
                Either::Left((Err(error), _)) => Err(error.into()),
                Either::Right(_) => {
                    Event::TooLate { queue: queue.name(), receipt: &held.receipt }.log();
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
    let nack = if error.is::<AbortError>() {
        Nack::reject()
    } else if let Some(retry) = error.downcast_ref::<RetryAfterError>() {
        Nack::retry().after(retry.get_duration())
    } else if error.is::<DeferredError>() {
        Nack::give_back().after(Duration::ZERO)
    } else if has_given_up {
        Nack::reject()
    } else {
        Nack::retry()
    };
    Err(nack.error(text_of(error)))
}

/// The text of an error and of its sources.
fn text_of(error: &BoxDynError) -> String {
    // Those of apalis only say what is to become of the task.
    let is_wrapper = error.is::<AbortError>() || error.is::<RetryAfterError>() || error.is::<DeferredError>();
    let error: &(dyn std::error::Error + 'static) = &**error;
    Failure::of(error.source().filter(|_| is_wrapper).unwrap_or(error)).text().to_owned()
}

/// Reports again and again while the server cannot be reached. The lease is kept meanwhile, as far as that is possible.
async fn report_until_answered(
    queue: &Queue<Raw>,
    held: &LeasedDelivery,
    verdict: &Verdict,
) -> Result<Reported, Error> {
    let (mut pause, mut may_have_counted) = (PAUSES.0, false);
    loop {
        match report(queue, held, verdict).await {
            // An earlier command may have counted, whose reply was lost.
            Ok(Reported::LeaseLost) if may_have_counted => return Ok(Reported::Accepted(None)),
            Ok(reported) => return Ok(reported),
            Err(error) if is_for_now(&error) => {
                Event::NotReported { queue: queue.name(), receipt: &held.receipt, error: &error }.log();
                may_have_counted |= error.may_have_been_executed();
            }
            Err(error) => return Err(error),
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// What the server made of an outcome.
enum Reported {
    /// It counts. A task that was given back is in this state now, unless that is unknown.
    Accepted(Option<State>),
    LeaseLost,
}

async fn report(queue: &Queue<Raw>, held: &LeasedDelivery, verdict: &Verdict) -> Result<Reported, Error> {
    let receipt = &held.receipt;
    let has_counted = match verdict {
        Err(nack) => {
            let state = queue.nack(receipt, nack).await?;
            return Ok(state.map_or(Reported::LeaseLost, |state| Reported::Accepted(Some(state))));
        }
        Ok(None) => queue.ack(receipt).await?,
        Ok(Some(result)) => match queue.complete(receipt).result(&Raw(result.clone())).await {
            Err(error @ (Error::TooLarge(_) | Error::NoPermission(_))) => {
                Event::ResultLost { queue: queue.name(), error: &error }.log();
                queue.ack(receipt).await?
            }
            completed => completed?,
        },
    };
    Ok(if has_counted { Reported::Accepted(None) } else { Reported::LeaseLost })
}
