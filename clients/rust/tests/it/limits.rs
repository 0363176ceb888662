//! What a worker does to handlers that take too long, and how it tells that it works.

use crate::support::{eventually, Server};
use dq_client::blocking::{Queue, Running, Worker};
use dq_client::{Context, Loss, Pool, Settings, State};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(100);

/// Why handlers lost their messages.
type Losses = Arc<Mutex<Vec<Loss>>>;

/// A worker whose handler does nothing until its message is lost.
fn until_lost(server: &Server, pool: Pool, grace: Duration) -> (Running, Losses) {
    let losses = Losses::default();
    let told = Arc::clone(&losses);
    let handler = move |_: u8, context: Context| {
        eventually("the handler is told", || context.lease_lost());
        told.lock().unwrap().extend(context.loss());
        Ok(())
    };
    let worker = Worker::new(server.client()).on_event(|_| {}).grace(grace);
    (worker.pool(pool.queue("q"), handler).start().unwrap(), losses)
}

#[test]
fn a_handler_that_takes_too_long_fails() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    queue.declare(&Settings { retries: Some(0), ..Settings::default() }).unwrap();
    let (running, losses) = until_lost(&server, Pool::new(1).time_limit(MOMENT), HOUR);
    let id = queue.push(&1).send().unwrap().id().unwrap();
    eventually("it is dead", || queue.len(Some(State::Dead)).unwrap() == 1);
    assert_eq!(queue.get(&id).unwrap().unwrap().error.unwrap(), "the time limit of 100 ms was over");
    eventually("the handler has ended", || *losses.lock().unwrap() == [Loss::TimeLimit]);
    let metrics = || running.metrics().queues().remove(0);
    eventually("it is counted once", || (metrics().died, metrics().late, metrics().acked) == (1, 0, 0));
    // Its thread is free again.
    queue.push(&2).send().unwrap();
    eventually("another one is handled", || losses.lock().unwrap().len() == 2);
    running.stop();
    assert_eq!(running.join().abandoned, 0);
}

#[test]
fn messages_that_outlast_the_grace_period_go_back_uncounted() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let (running, losses) = until_lost(&server, Pool::new(2), MOMENT);
    queue.push_all(&[1, 2, 3]).send().unwrap();
    eventually("two are handled", || running.metrics().queues().remove(0).running == 2);
    running.stop();
    let stopped = running.join();
    assert_eq!((stopped.abandoned, stopped.forced), (0, false));
    assert_eq!(*losses.lock().unwrap(), [Loss::Stopping; 2]);
    let info = queue.info().unwrap().unwrap();
    assert_eq!((info.ready, info.inflight), (3, 0));
    assert_eq!(queue.pop().one().unwrap().unwrap().attempt, 1);
}

#[test]
fn the_second_request_to_stop_waits_for_no_handler() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let (running, _) = until_lost(&server, Pool::new(1), HOUR);
    queue.push(&1).send().unwrap();
    eventually("it is handled", || running.metrics().queues().remove(0).running == 1);
    running.stop();
    running.stop();
    assert!(running.join().forced);
    assert_eq!(queue.len(Some(State::Ready)).unwrap(), 1);
}

#[test]
fn leases_are_as_long_as_the_queue_says() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    queue.declare(&Settings { lease: Some(HOUR), ..Settings::default() }).unwrap();
    let (running, _) = until_lost(&server, Pool::new(1), MOMENT);
    queue.push(&1).id("m").send().unwrap();
    eventually("it is in flight", || queue.len(Some(State::Inflight)).unwrap() == 1);
    let deadline = queue.get("m").unwrap().unwrap().deadline.unwrap();
    assert!(deadline.duration_since(std::time::SystemTime::now()).unwrap() > HOUR / 2);
    running.stop();
    assert_eq!(running.join().abandoned, 0);
}

#[test]
fn a_worker_is_healthy_once_it_reaches_its_server() {
    let mut server = Server::start();
    let pool = Pool::new(1).lease(MOMENT);
    server.kill();
    let (running, _) = until_lost(&server, pool, MOMENT);
    eventually("it has tried", || running.metrics().queues().remove(0).interrupted == 1);
    assert!(!running.is_healthy());
    server.boot();
    eventually("it pops", || running.is_healthy());
    running.stop();
    assert_eq!(running.join().abandoned, 0);
}
