//! Workers that die, tasks that are slow, and workers that stop.

use crate::support::{Process, Proxy, Server};
use crate::{
    attempts, next, numbers, queue, sleeps, until, until_empty, until_held, with_client, with_server, Outcome, HOUR,
};
use apalis::layers::WorkerBuilderExt;
use apalis_core::backend::TaskSink;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_core::worker::context::WorkerContext;
use apalis_core::worker::ext::event_listener::EventListenerExt;
use dq_client::{cmd, Client, Raw, Settings, State};
use std::process::Command;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

const LEASE: Duration = Duration::from_millis(600);
const URL: &str = "APALIS_DQ_TEST_URL";

/// A worker that never ends its task, in a process of its own.
#[test]
#[ignore = "it is started by the test below"]
fn holds_a_task_until_it_is_killed() {
    let client = Client::open(&std::env::var(URL).unwrap()).unwrap();
    let storage = numbers(&client).lease(LEASE);
    let worker = WorkerBuilder::new("first").backend(storage).build(sleeps);
    tokio::runtime::Runtime::new().unwrap().block_on(worker.run()).unwrap();
}

/// Handles what is delivered, and returns the attempt of the first task.
async fn attempt_of_next(client: &Client) -> usize {
    let (handler, mut received) = attempts(|_| Ok(()));
    let running = tokio::spawn(WorkerBuilder::new("second").backend(numbers(client)).build(handler).run());
    let attempt = next(&mut received).await;
    until_empty(&queue(client)).await;
    running.abort();
    attempt
}

#[test]
fn the_task_of_a_worker_that_was_killed_is_delivered_again_after_its_lease() {
    let server = Server::start();
    with_client(&server, |client| async move {
        numbers(&client).push(1).await.unwrap();
        let mut first = Command::new(std::env::current_exe().unwrap());
        first
            .args(["--exact", "leases::holds_a_task_until_it_is_killed", "--ignored"])
            .env(URL, server_url(&client).await);
        let mut first = Process(first.spawn().unwrap());
        until_held(&queue(&client)).await;
        // It is held for longer than its lease.
        tokio::time::sleep(2 * LEASE).await;
        assert_eq!(queue(&client).info().await.unwrap().unwrap().totals.lease_expired, 0);
        first.0.kill().unwrap();
        assert_eq!(attempt_of_next(&client).await, 2);
    });
}

async fn server_url(client: &Client) -> String {
    format!("redis://{}", client.servers().await.unwrap()[0])
}

#[test]
fn the_task_of_a_worker_that_was_dropped_is_delivered_again_after_its_lease() {
    with_server(|client| async move {
        numbers(&client).push(1).await.unwrap();
        let storage = numbers(&client).lease(LEASE);
        let worker = WorkerBuilder::new("first").backend(storage).build(sleeps);
        let running = tokio::spawn(worker.run());
        until_held(&queue(&client)).await;
        running.abort();
        assert_eq!(attempt_of_next(&client).await, 2);
    });
}

#[test]
fn a_task_that_blocks_its_runtime_for_longer_than_its_lease_keeps_it() {
    with_server(|client| async move {
        numbers(&client).push(1).await.unwrap();
        let storage = numbers(&client).lease(LEASE);
        let worker = WorkerBuilder::new("w").backend(storage).build(|_: u32| async {
            std::thread::sleep(3 * LEASE);
            Outcome::Ok(())
        });
        let running = tokio::spawn(worker.run());
        until("it is done", || async {
            let info = queue(&client).info().await.unwrap().unwrap();
            assert_eq!((info.totals.lease_expired, info.totals.delivered), (0, info.inflight + info.totals.acked));
            info.totals.acked == 1
        })
        .await;
        running.abort();
    });
}

#[test]
fn tasks_that_wait_in_a_worker_keep_their_leases() {
    with_server(|client| async move {
        numbers(&client).push_bulk(vec![1, 2, 3]).await.unwrap();
        let handler = |_: u32| async {
            tokio::time::sleep(LEASE).await;
            Outcome::Ok(())
        };
        let worker = WorkerBuilder::new("w").backend(numbers(&client).lease(LEASE)).concurrency(1).build(handler);
        let running = tokio::spawn(worker.run());
        until("all are in the worker", || async { queue(&client).len(Some(State::Inflight)).await.unwrap() == 3 })
            .await;
        until_empty(&queue(&client)).await;
        let totals = queue(&client).info().await.unwrap().unwrap().totals;
        assert_eq!((totals.delivered, totals.acked, totals.lease_expired), (3, 3, 0));
        running.abort();
    });
}

/// Counts how often a handler's future ends.
struct Ended(tokio::sync::mpsc::UnboundedSender<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn the_work_on_a_cancelled_task_ends() {
    with_server(|client| async move {
        numbers(&client).push_task(TaskBuilder::new(1).task_id(TaskId::from_string("a")).build()).await.unwrap();
        let ((sender, mut ended), (errors, mut error)) = (unbounded_channel(), unbounded_channel());
        let handler = move |_: u32| {
            let ended = Ended(sender.clone());
            async move {
                let _ended = ended;
                tokio::time::sleep(HOUR).await;
                Outcome::Ok(())
            }
        };
        let report = move |_: &WorkerContext, event: &apalis_core::worker::event::Event| {
            if let Some(error) = event.as_error() {
                let _ = errors.send(error.to_string());
            }
        };
        let worker = WorkerBuilder::new("w").backend(numbers(&client).lease(LEASE)).on_event(report).build(handler);
        let running = tokio::spawn(worker.run());
        until_held(&queue(&client)).await;
        queue(&client).cancel("a").await.unwrap();
        next(&mut ended).await;
        assert_eq!(next(&mut error).await, apalis_dq::LeaseLost.to_string());
        running.abort();
    });
}

#[test]
fn the_work_on_a_task_ends_before_another_worker_may_begin_it() {
    let server = Server::start();
    let silent = &server;
    with_client(silent, |client| async move {
        numbers(&client).push(1).await.unwrap();
        let (sender, mut ended) = unbounded_channel();
        let handler = move |_: u32| {
            let ended = Ended(sender.clone());
            async move {
                let _ended = ended;
                tokio::time::sleep(HOUR).await;
                Outcome::Ok(())
            }
        };
        let running = tokio::spawn(WorkerBuilder::new("w").backend(numbers(&client).lease(LEASE)).build(handler).run());
        until_held(&queue(&client)).await;
        // Nobody can extend the lease.
        silent.signal("STOP");
        next(&mut ended).await;
        silent.signal("CONT");
        running.abort();
    });
}

#[test]
fn the_lease_of_a_task_is_that_of_its_message() {
    // Long enough for a machine that is held up.
    let time = Duration::from_millis(2500);
    with_server(move |client| async move {
        let lease = |lease| Settings { lease: Some(lease), ..Settings::default() };
        queue(&client).declare(&lease(HOUR)).await.unwrap();
        queue(&client).push(&Raw(b"1".to_vec())).id("m").lease(time).await.unwrap();
        let handler = move |_: u32| async move {
            tokio::time::sleep(3 * time).await;
            Outcome::Ok(())
        };
        let running = tokio::spawn(WorkerBuilder::new("w").backend(numbers(&client)).build(handler).run());
        until_held(&queue(&client)).await;
        let deadline = queue(&client).get("m").await.unwrap().unwrap().deadline.unwrap();
        assert!(deadline <= std::time::SystemTime::now() + time);
        until_empty(&queue(&client)).await;
        let totals = queue(&client).info().await.unwrap().unwrap().totals;
        assert_eq!((totals.delivered, totals.acked, totals.lease_expired), (1, 1, 0));
        running.abort();
    });
}

#[test]
fn an_ack_whose_reply_is_lost_is_no_lost_lease() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let client = Client::open(&proxy.url()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (errors, mut error) = unbounded_channel();
        let report = move |_: &WorkerContext, event: &apalis_core::worker::event::Event| {
            if let Some(error) = event.as_error() {
                let _ = errors.send(error.to_string());
            }
        };
        let (handler, mut received) = attempts(|_| Ok(()));
        let worker = WorkerBuilder::new("w").backend(numbers(&client)).on_event(report).build(handler);
        let running = tokio::spawn(worker.run());
        proxy.cut_replies("DQ.ACK", 0, 1);
        numbers(&client).push(1).await.unwrap();
        assert_eq!(next(&mut received).await, 1);
        until_empty(&queue(&client)).await;
        until("the reply was lost", || async { proxy.left_to_cut() == 0 }).await;
        numbers(&client).push(2).await.unwrap();
        assert_eq!(next(&mut received).await, 1);
        until_empty(&queue(&client)).await;
        assert!(error.try_recv().is_err());
        running.abort();
    });
}

#[test]
fn a_delivery_is_begun_or_given_back_without_the_time() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let (direct, client) = (Client::open(&server.url()).unwrap(), Client::open(&proxy.url()).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let lease = Settings { lease: Some(HOUR), ..Settings::default() };
        queue(&direct).declare(&lease).await.unwrap();
        let (handler, mut received) = attempts(|_| Ok(()));
        let running = tokio::spawn(WorkerBuilder::new("w").backend(numbers(&client)).build(handler).run());
        numbers(&direct).push(1).await.unwrap();
        assert_eq!(next(&mut received).await, 1);
        until_empty(&queue(&direct)).await;
        // The worker asks for the time once more.
        proxy.cut_replies("TIME", 0, 1);
        numbers(&direct).push(2).await.unwrap();
        assert_eq!(next(&mut received).await, 1);
        until_empty(&queue(&direct)).await;
        assert_eq!(proxy.left_to_cut(), 0);
        // It never learns it.
        proxy.cut_replies("TIME", 0, usize::MAX);
        numbers(&direct).push(3).await.unwrap();
        until("it was delivered twice", || async {
            queue(&direct).info().await.unwrap().unwrap().totals.delivered >= 4
        })
        .await;
        proxy.cut_replies("TIME", 0, 0);
        assert_eq!(next(&mut received).await, 1);
        until_empty(&queue(&direct)).await;
        running.abort();
    });
}

#[test]
fn an_outcome_waits_until_the_server_can_take_it() {
    let server = Server::start();
    // A command is repeated for less time than the server needs.
    let options = dq_client::Options::from_url(&server.url()).unwrap().retry_for(Duration::from_millis(100));
    let client = Client::with(options).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (sender, mut begun) = unbounded_channel();
        let handler = move |_: u32| {
            let sender = sender.clone();
            async move {
                let _ = sender.send(());
                tokio::time::sleep(LEASE).await;
                Outcome::Ok(())
            }
        };
        let worker = WorkerBuilder::new("w").backend(numbers(&client).lease(HOUR)).build(handler);
        let running = tokio::spawn(worker.run());
        numbers(&client).push(1).await.unwrap();
        next(&mut begun).await;
        let address = client.servers().await.unwrap().remove(0);
        client.call_on(&address, cmd("REPLICAOF").arg("127.0.0.1").arg(1)).await.unwrap();
        tokio::time::sleep(3 * LEASE).await;
        client.call_on(&address, cmd("REPLICAOF").arg("NO").arg("ONE")).await.unwrap();
        until_empty(&queue(&client)).await;
        assert!(!running.is_finished() && begun.try_recv().is_err());
        running.abort();
    });
}

#[test]
fn a_worker_that_stops_gives_back_what_it_has_not_begun() {
    with_server(|client| async move {
        numbers(&client).push_bulk((0..10).collect()).await.unwrap();
        let worker = WorkerBuilder::new("w").backend(numbers(&client).prefetch(8)).concurrency(1).build(
            |_: u32, worker: WorkerContext| async move {
                worker.stop().unwrap();
                Outcome::Ok(())
            },
        );
        worker.run().await.unwrap();
        let ready = queue(&client).peek(State::Ready, 10).await.unwrap();
        assert_eq!((ready.len(), queue(&client).len(None).await.unwrap()), (9, 9));
        assert!(ready.iter().all(|message| message.attempt == 0));
    });
}

#[test]
fn an_idle_worker_stops() {
    let server = Server::start();
    let client = Client::open(&server.url()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = WorkerBuilder::new("w").backend(numbers(&client)).build(|_: u32| async { Outcome::Ok(()) });
    let running = runtime.spawn(worker.run_until(async {
        let _ = stopped.await;
        std::io::Result::Ok(())
    }));
    server.until_blocked(1);
    stop.send(()).unwrap();
    runtime.block_on(running).unwrap().unwrap();
    server.until_blocked(0);
}
