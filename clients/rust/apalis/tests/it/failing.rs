//! Tasks that fail: who decides whether they run again.

use crate::support::{Process, Server};
use crate::{attempts, next, numbers, queue, until, until_dead, until_empty, with_client, with_server, Outcome, HOUR};
use apalis::layers::retry::RetryPolicy;
use apalis::layers::WorkerBuilderExt;
use apalis_core::backend::TaskSink;
use apalis_core::error::{AbortError, DeferredError, RetryAfterError};
use apalis_core::worker::builder::WorkerBuilder;
use dq_client::{Client, Settings, State};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

/// Retries come at once, and there are `retries` of them.
async fn declare(client: &Client, retries: i32) {
    let settings = Settings {
        retries: Some(retries),
        backoff: Some((Duration::from_millis(1), Duration::from_millis(1))),
        ..Settings::default()
    };
    queue(client).declare(&settings).await.unwrap();
}

#[test]
fn an_abort_is_dead_at_once() {
    with_server(|client| async move {
        let mut storage = numbers(&client);
        storage.push(1).await.unwrap();
        let handler = |_: u32| async { Outcome::Err(AbortError::new("no address").into()) };
        let running = tokio::spawn(WorkerBuilder::new("w").backend(storage).build(handler).run());
        until_dead(&queue(&client), 1).await;
        let dead = queue(&client).peek(State::Dead, 1).await.unwrap().remove(0);
        assert_eq!(
            (dead.attempt, dead.reason.as_deref(), dead.error.as_deref()),
            (1, Some("rejected"), Some("no address"))
        );
        running.abort();
    });
}

const URL: &str = "APALIS_DQ_TEST_URL";
/// How long the worker of another process may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// A worker in a program that has chosen no log, in a process of its own.
#[test]
#[ignore = "it is started by the test below"]
fn works_without_a_log() {
    let client = Client::open(&std::env::var(URL).unwrap()).unwrap();
    let handler = |_: u32| async { Outcome::Err("no oven".into()) };
    let worker = WorkerBuilder::new("w").backend(numbers(&client)).build(handler);
    tokio::runtime::Runtime::new().unwrap().block_on(worker.run()).unwrap();
}

#[test]
fn a_worker_without_a_log_writes_failures_to_standard_error() {
    let server = Server::start();
    let mut worker = Command::new(std::env::current_exe().unwrap());
    worker.args(["--exact", "failing::works_without_a_log", "--ignored", "--nocapture"]).env(URL, server.url());
    let mut worker = Process(worker.stderr(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(worker.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let (say, said) = mpsc::channel();
    std::thread::spawn(move || lines.for_each(|line| drop(say.send(line))));
    let until_said = |text: &str| loop {
        let line = said.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it does not say {text:?}"));
        if line.contains(text) {
            return line;
        }
    };
    with_client(&server, |client| async move {
        numbers(&client).push(1).await.unwrap();
    });
    let failed = until_said("no oven");
    assert!(failed.starts_with("dq: q: ") && failed.ends_with("failed at attempt 1: no oven; now delayed"), "{failed}");
    drop(server);
    until_said("dq: q: cannot pop: ");
}

#[test]
fn a_panic_that_apalis_catches_is_dead_at_once() {
    with_server(|client| async move {
        let mut storage = numbers(&client);
        storage.push(1).await.unwrap();
        let handler = |number: u32| async move {
            assert_eq!(number, 2, "out of paper");
            Outcome::Ok(())
        };
        let running = tokio::spawn(WorkerBuilder::new("w").backend(storage).catch_panic().build(handler).run());
        until_dead(&queue(&client), 1).await;
        let dead = queue(&client).peek(State::Dead, 1).await.unwrap().remove(0);
        assert!(dead.error.unwrap().contains("out of paper"));
        running.abort();
    });
}

#[test]
fn a_panic_is_a_failure_and_the_worker_goes_on() {
    with_server(|client| async move {
        declare(&client, 1).await;
        let (handler, mut received) = attempts(|runs| {
            assert!(runs > 0, "out of paper");
            Ok(())
        });
        let mut storage = numbers(&client);
        storage.push(1).await.unwrap();
        let running = tokio::spawn(WorkerBuilder::new("w").backend(storage).build(handler).run());
        assert_eq!([next(&mut received).await, next(&mut received).await], [1, 2]);
        until_empty(&queue(&client)).await;
        assert!(!running.is_finished());
        running.abort();
    });
}

#[test]
fn without_a_retry_layer_the_queue_retries() {
    with_server(|client| async move {
        declare(&client, 2).await;
        let (handler, mut received) = attempts(|_| Err("mailbox full".into()));
        let mut storage = numbers(&client);
        storage.push(1).await.unwrap();
        let running = tokio::spawn(WorkerBuilder::new("w").backend(storage).build(handler).run());
        for attempt in 1..=3 {
            assert_eq!(next(&mut received).await, attempt);
        }
        until_dead(&queue(&client), 1).await;
        let dead = queue(&client).peek(State::Dead, 1).await.unwrap().remove(0);
        assert_eq!((dead.reason.as_deref(), dead.error.as_deref()), (Some("retries"), Some("mailbox full")));
        running.abort();
    });
}

#[test]
fn what_a_retry_layer_gives_up_is_not_retried_again() {
    with_server(|client| async move {
        declare(&client, 5).await;
        let (handler, mut received) = attempts(|_| Err("mailbox full".into()));
        let mut storage = numbers(&client);
        storage.push(1).await.unwrap();
        let worker = WorkerBuilder::new("w").backend(storage).retry(RetryPolicy::retries(2)).build(handler);
        let running = tokio::spawn(worker.run());
        until_dead(&queue(&client), 1).await;
        let runs: Vec<usize> = std::iter::from_fn(|| received.try_recv().ok()).collect();
        assert_eq!(runs, [1, 2, 3]);
        assert_eq!(queue(&client).peek(State::Dead, 1).await.unwrap()[0].attempt, 1);
        running.abort();
    });
}

#[test]
fn a_task_may_say_when_it_runs_again() {
    with_server(|client| async move {
        let mut storage = numbers(&client);
        storage.push(1).await.unwrap();
        let later = |_: u32| async { Outcome::Err(RetryAfterError::new("closed", HOUR).into()) };
        let running = tokio::spawn(WorkerBuilder::new("w").backend(storage).build(later).run());
        until("it waits", || async { queue(&client).len(Some(State::Delayed)).await.unwrap() == 1 }).await;
        let message = queue(&client).peek(State::Delayed, 1).await.unwrap().remove(0);
        assert!(message.due > SystemTime::now() + HOUR - Duration::from_secs(60));
        assert_eq!((message.attempt, message.error.as_deref()), (1, Some("closed")));
        running.abort();
    });
}

#[test]
fn a_task_that_is_deferred_is_not_counted() {
    with_server(|client| async move {
        declare(&client, 0).await;
        let mut storage = numbers(&client);
        storage.push(1).await.unwrap();
        let (handler, mut received) =
            attempts(|runs| if runs < 3 { Err(DeferredError::new("not yet").into()) } else { Ok(()) });
        let worker = WorkerBuilder::new("w").backend(storage).build(handler);
        let running = tokio::spawn(worker.run());
        until("it is done", || async { queue(&client).info().await.unwrap().unwrap().totals.acked == 1 }).await;
        let attempts: Vec<usize> = std::iter::from_fn(|| received.try_recv().ok()).collect();
        assert_eq!(attempts, [1; 4]);
        running.abort();
    });
}
