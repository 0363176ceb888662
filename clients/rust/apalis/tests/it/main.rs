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
use apalis_dq::DqStorage;
use dq_client::{Client, Queue, Raw, State};
use std::future::Future;
use std::time::{Duration, Instant};
use support::{patience, Server};
use tokio::sync::mpsc::UnboundedReceiver;

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

/// The next value that a handler has sent.
async fn next<T>(received: &mut UnboundedReceiver<T>) -> T {
    tokio::time::timeout(patience(), received.recv()).await.expect("in time").expect("a handler")
}
