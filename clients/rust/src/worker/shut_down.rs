//! How a worker stops: its pops end, its handlers get their grace period, and their outcomes are reported.

use super::event::Event;
use super::loss::Loss;
use super::running_pool::RunningPool;
use super::source::Source;
use super::stop::Stop;
use crate::connect::Address;
use crate::sync::lock;
use crate::time::after;
use futures_util::future::join_all;
use std::process::{ExitCode, Termination};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout, timeout_at};
use tokio_util::task::TaskTracker;

/// How long handlers have to end after their messages were taken from them at the end, and how long the outcomes of
/// handlers are reported if the worker was asked to stop a second time.
const TO_END: Duration = Duration::from_millis(300);
/// How long the replies to pops that the server has ended may take.
const TO_END_POPS: Duration = Duration::from_millis(300);

/// How a worker has ended. A `main` that returns it ends with exit code 1 if the worker was forced to stop, or if the
/// server has not accepted all outcomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stopped {
    /// Handlers that still ran at the end, although their messages were taken from them after the grace period.
    pub abandoned: usize,
    /// Whether it was asked to stop a second time, and did not wait for its handlers.
    pub forced: bool,
    /// Messages of which the server has not accepted, since the worker was started, that they were handled or given
    /// back. They are delivered again when their leases expire.
    pub unreported: usize,
    /// Messages that were given back, since the worker was started, without counting as an attempt.
    pub given_back: usize,
}

impl Termination for Stopped {
    fn report(self) -> ExitCode {
        ExitCode::from(u8::from(self.forced || self.unreported > 0))
    }
}

/// Waits until the worker is asked to stop, and stops it.
pub(super) async fn run(pools: Vec<Arc<RunningPool>>, settling: Vec<JoinHandle<()>>, stop: Arc<Stop>) -> Stopped {
    stop.asked().await;
    let end = after(*lock(&stop.grace));
    pools.iter().for_each(|pool| pool.permits.close());
    let time = pools.first().map_or(Duration::ZERO, |pool| pool.core.options().response_timeout);
    // A pop that still waits would be delivered what is given back.
    stop.wait(end.max(Instant::now() + time), end_pops(&pools, &stop.fetchers)).await;
    stop.handlers.close();
    stop.wait(end, stop.handlers.wait()).await;
    for pool in &pools {
        for source in &pool.sources {
            let leases: Vec<_> = lock(&source.leases).values().cloned().collect();
            pool.take_from_handlers(source, leases, Loss::Stopping);
        }
    }
    let _ = timeout(TO_END, stop.handlers.wait()).await;
    let abandoned = stop.handlers.len();
    for pool in &pools {
        pool.executor.close();
        pool.ended.cancel();
    }
    // The outcomes of the handlers are still to be reported, however long they took.
    let forced = async {
        stop.forced.cancelled().await;
        sleep(TO_END).await;
    };
    tokio::select! {
        _ = timeout_at(end.max(Instant::now() + 2 * time).into(), join_all(settling)) => {}
        () = forced => {}
    }
    // A server that did not end a pop in time may have answered again, and have delivered to it what was given back.
    let _ = timeout(TO_END, end_pops(&pools, &stop.fetchers)).await;
    let sources = || pools.iter().flat_map(|pool| &pool.sources);
    let stopped = Stopped {
        abandoned,
        forced: stop.forced.is_cancelled(),
        unreported: sources().map(|source| source.not_accepted()).sum(),
        given_back: sources().map(|source| source.given_back.load(Ordering::Relaxed)).sum(),
    };
    // All pools have the same reporter.
    if let Some(pool) = pools.first() {
        let consumer = String::from_utf8_lossy(&pool.consumer).into_owned();
        pool.reporter.report(move |emit| emit(&Event::Stopped { consumer: &consumer, stopped: &stopped }));
        let _ = timeout(TO_END, pool.reporter.flush()).await;
    }
    stopped
}

/// Ends blocked pops, again and again: a task may have been about to block. Does not wait for those of a server that
/// does not end them, nor for a reply that does not come by a connection that is dead.
async fn end_pops(pools: &[Arc<RunningPool>], fetchers: &TaskTracker) {
    let (begun, mut pause) = (Instant::now(), Duration::from_millis(2));
    let mut lost: Vec<Address> = Vec::new();
    let mut sources = Vec::new();
    for pool in pools {
        sources.extend(pool.sources.iter().map(|source| (Arc::clone(pool), Arc::clone(source))));
    }
    let popping = |source: &Source| lock(&source.popping).as_ref().map(|(server, _)| server.clone());
    loop {
        let mut ending = Vec::new();
        for (pool, source) in &sources {
            if popping(source).is_some_and(|server| !lost.contains(&server)) {
                ending.push(pool.end_pop(source));
            }
        }
        lost.extend(join_all(ending).await.into_iter().flatten());
        let is_late = begun.elapsed() > TO_END_POPS;
        let is_given_up = |server: Address| is_late || lost.contains(&server);
        let given_up = sources.iter().filter(|(_, source)| popping(source).is_some_and(is_given_up)).count();
        if fetchers.len() <= given_up {
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}
