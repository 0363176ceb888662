//! Tests of the backend against real servers. Each is named after what a user of apalis relies on.
//!
//! `DQ_MODULE` names the module, `DQ_SERVER` the server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

// The servers are those of the client's tests.
#[allow(dead_code, unused_imports)]
#[path = "../../../tests/it/support/mod.rs"]
mod support;

mod board;
mod failing;
mod leases;
mod managing;
mod pushing;

use apalis_core::error::BoxDynError;
use apalis_core::task::attempt::Attempt;
use apalis_dq::DqStorage;
use dq_client::{Client, Queue, Raw, State};
use std::future::{Future, Ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{patience, Server};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver};

const HOUR: Duration = Duration::from_secs(3600);

/// What handlers return.
type Outcome = Result<(), BoxDynError>;

/// Runs a test in a runtime of two threads, with a client of a new server.
fn with_server<F: Future<Output = ()>>(test: impl FnOnce(Client) -> F) {
    let server = Server::start();
    with_client(&server, test);
}

fn with_client<F: Future<Output = ()>>(server: &Server, test: impl FnOnce(Client) -> F) {
    let client = Client::open(&server.url()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test(client));
}

/// The queue of the tests, as a client without apalis sees it.
fn queue(client: &Client) -> Queue<Raw> {
    client.queue("q")
}

fn numbers(client: &Client) -> DqStorage<u32> {
    DqStorage::new(client.clone(), "q")
}

/// Waits for a condition without blocking the runtime.
async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let end = Instant::now() + patience();
    while !holds().await {
        assert!(Instant::now() < end, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until_empty(queue: &Queue<Raw>) {
    until("the queue is empty", || async { queue.len(None).await.unwrap() == 0 }).await;
}

async fn until_dead(queue: &Queue<Raw>, count: u64) {
    until("messages are dead", || async { queue.len(Some(State::Dead)).await.unwrap() == count }).await;
}

/// A handler that reports its attempts, and returns what `outcome` makes of the number of its runs before.
fn attempts(
    outcome: fn(usize) -> Outcome,
) -> (impl Fn(u32, Attempt) -> Ready<Outcome> + Clone + Send + 'static, UnboundedReceiver<usize>) {
    let ((sender, received), runs) = (unbounded_channel(), Arc::new(AtomicUsize::new(0)));
    let handler = move |_: u32, attempt: Attempt| {
        let _ = sender.send(attempt.current());
        std::future::ready(outcome(runs.fetch_add(1, Ordering::Relaxed)))
    };
    (handler, received)
}

/// A handler that does not end.
async fn sleeps(_: u32) -> Outcome {
    tokio::time::sleep(HOUR).await;
    Ok(())
}

async fn until_held(queue: &Queue<Raw>) {
    until("it is held", || async { queue.len(Some(State::Inflight)).await.unwrap() == 1 }).await;
}

/// The next value that a handler has sent.
async fn next<T>(received: &mut UnboundedReceiver<T>) -> T {
    tokio::time::timeout(patience(), received.recv()).await.expect("in time").expect("a handler")
}
