//! Pushing tasks, and working on them.

use crate::support::Server;
use crate::{next, numbers, queue, until, until_empty, with_server, Outcome, HOUR};
use apalis_codec::msgpack::MsgPackCodec;
use apalis_core::backend::TaskSink;
use apalis_core::error::BoxDynError;
use apalis_core::task::attempt::Attempt;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::data::Data;
use apalis_core::task::metadata::MetadataStore;
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_core::worker::ext::parallelize::ParallelizeExt;
use apalis_dq::{DqStorage, DueAt};
use dq_client::State;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{unbounded_channel, UnboundedSender};

async fn send(number: u32, sender: Data<UnboundedSender<u32>>) -> Outcome {
    Ok(sender.send(number)?)
}

#[test]
fn every_task_is_done_once() {
    with_server(|client| async move {
        let (sender, mut received) = unbounded_channel::<u32>();
        let mut storage = numbers(&client).prefetch(16);
        storage.push(0).await.unwrap();
        storage.push_bulk((1..2500).collect()).await.unwrap();
        let worker = WorkerBuilder::new("w").backend(storage).data(sender).parallelize(tokio::spawn).build(send);
        let running = tokio::spawn(worker.run());
        let mut done = Vec::new();
        while done.len() < 2500 {
            done.push(next(&mut received).await);
        }
        done.sort_unstable();
        assert_eq!(done, (0..2500).collect::<Vec<_>>());
        until_empty(&queue(&client)).await;
        assert_eq!(queue(&client).info().await.unwrap().unwrap().totals.acked, 2500);
        running.abort();
    });
}

#[test]
fn a_task_is_due_at_its_time() {
    with_server(|client| async move {
        let (sender, mut received) = unbounded_channel();
        let mut storage = numbers(&client);
        let time = SystemTime::now() + Duration::from_millis(700);
        storage.push_task(TaskBuilder::new(1).data(DueAt(time)).build()).await.unwrap();
        let second = (SystemTime::now() + HOUR).duration_since(UNIX_EPOCH).unwrap().as_secs();
        let later = TaskBuilder::new(2).task_id(TaskId::from_string("later")).run_at_timestamp(second);
        storage.push_task(later.build()).await.unwrap();
        let due = queue(&client).get("later").await.unwrap().unwrap().due;
        assert_eq!(due, UNIX_EPOCH + Duration::from_secs(second));

        let handler = move |_: u32| {
            let sender = sender.clone();
            async move { Ok::<_, BoxDynError>(sender.send(SystemTime::now())?) }
        };
        let running = tokio::spawn(WorkerBuilder::new("w").backend(storage).build(handler).run());
        let begun = next(&mut received).await;
        assert!(begun >= time, "early by {:?}", time.duration_since(begun));
        assert_eq!(queue(&client).len(Some(State::Delayed)).await.unwrap(), 1);
        running.abort();
    });
}

#[test]
fn what_a_task_says_of_itself_reaches_the_queue_and_the_handler() {
    with_server(|client| async move {
        let (sender, mut received) = unbounded_channel();
        let metadata = MetadataStore::from_iter([("trace", "t-1")]);
        let task = TaskBuilder::new(7).with_metadata(metadata).priority(3).max_attempts(4).idempotency_key("once");
        let mut storage = numbers(&client);
        storage.push_task(task.build()).await.unwrap();
        storage.push_task(TaskBuilder::new(8).idempotency_key("once").build()).await.unwrap();
        let message = queue(&client).get("once").await.unwrap().unwrap();
        assert_eq!((message.priority, message.retries, message.bytes()), (3, 3, b"7".as_slice()));
        let both = TaskBuilder::new(9).task_id(TaskId::from_int(1)).idempotency_key("other").build();
        assert!(storage.push_task(both).await.is_err());

        let handler = move |number: u32, id: TaskId, metadata: MetadataStore, attempt: Attempt| {
            let sent =
                sender.send((number, id.to_string(), metadata.get("trace").map(str::to_owned), attempt.current()));
            async move { Ok::<_, BoxDynError>(sent?) }
        };
        let running = tokio::spawn(WorkerBuilder::new("w").backend(storage).build(handler).run());
        assert_eq!(next(&mut received).await, (7, "once".to_owned(), Some("t-1".to_owned()), 1));
        running.abort();
    });
}

#[test]
fn another_codec_can_be_chosen() {
    with_server(|client| async move {
        let (sender, mut received) = unbounded_channel::<u32>();
        let mut storage = numbers(&client).with_codec(MsgPackCodec);
        storage.push(300).await.unwrap();
        let pushed = queue(&client).peek(State::Ready, 1).await.unwrap();
        assert_eq!(pushed[0].bytes(), b"\xcd\x01\x2c");
        let running = tokio::spawn(WorkerBuilder::new("w").backend(storage).data(sender).build(send).run());
        assert_eq!(next(&mut received).await, 300);
        running.abort();
    });
}

#[test]
fn a_failed_push_is_an_error() {
    with_server(|client| async move {
        let mut storage = numbers(&client);
        storage.push_task(TaskBuilder::new(1).task_id(TaskId::from_string("a")).build()).await.unwrap();
        queue(&client).bury("a", None).await.unwrap();
        let again = storage.push_task(TaskBuilder::new(2).task_id(TaskId::from_string("a")).build()).await;
        assert!(again.unwrap_err().to_string().contains("DEADID"));
        // The next push does not repeat what failed.
        storage.push(3).await.unwrap();
        assert_eq!(queue(&client).len(None).await.unwrap(), 1);
    });
}

#[test]
fn a_worker_survives_an_outage_and_a_task_that_it_cannot_decode() {
    let mut server = Server::start();
    let url = server.url();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let client =
        dq_client::Client::with(dq_client::Options::from_url(&url).unwrap().retry_for(Duration::ZERO)).unwrap();
    let (sender, mut received) = unbounded_channel::<u32>();
    let worker = WorkerBuilder::new("w").backend(numbers(&client)).data(sender).build(send);
    let running = runtime.spawn(worker.run());
    server.until_blocked(1);
    server.kill();
    runtime.block_on(async { until("the worker notices", || async { queue(&client).len(None).await.is_err() }).await });
    server.boot();
    runtime.block_on(async {
        queue(&client).push(&dq_client::Raw(br#""4711-0815""#.to_vec())).id("bad").retries(5).await.unwrap();
        numbers(&client).push(1).await.unwrap();
        assert_eq!(next(&mut received).await, 1);
        let bad = || async { queue(&client).get("bad").await.unwrap().unwrap() };
        until("it is to be retried", || async { bad().await.state == State::Delayed }).await;
        let error = bad().await.error.unwrap();
        assert!(error.contains("expected u32") && !error.contains("4711"), "nothing of the payload: {error}");
    });
    assert!(!running.is_finished());
    running.abort();
}

#[test]
fn a_worker_that_may_not_pop_ends_with_the_error() {
    with_server(|client| async move {
        client.call(dq_client::cmd("SET").arg("q").arg("text"), dq_client::Resend::Harmless).await.unwrap();
        let running = WorkerBuilder::new("w")
            .backend(DqStorage::<u32>::new(client, "q"))
            .build(|_: u32| async { Outcome::Ok(()) });
        let error = running.run().await.unwrap_err().to_string();
        assert!(error.contains("WRONGTYPE"), "{error}");
    });
}
