//! The asynchronous face: calls are futures, and handlers are tasks of the program's runtime.

use crate::support::{eventually, patience, Server};
use dq_client::{blocking, Client, Context, Error, Failure, Loss, Pool, Queue, State, Worker};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

const HOUR: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(50);

/// A runtime with one thread.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn client(server: &Server) -> Client {
    Client::open(&server.url()).unwrap()
}

/// Waits for a condition without blocking the runtime.
async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let end = Instant::now() + patience();
    while !holds().await {
        assert!(Instant::now() < end, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Counts the handlers that end, however they end.
struct Ending(Arc<AtomicUsize>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn builders_are_futures() {
    let server = Server::start();
    runtime().block_on(async {
        let queue: Queue<u32> = client(&server).queue("q");
        let id = queue.push(&1).priority(3).await.unwrap().id().unwrap();
        assert_eq!(queue.push_all(&[2, 3]).delay(HOUR).await.unwrap().len(), 2);
        let first = queue.pop().block(HOUR).one().await.unwrap().unwrap();
        assert_eq!((&first.id, first.payload().unwrap()), (&id, 1));
        let (acked, none) = queue.ackpop([&first]).await.unwrap();
        assert_eq!((acked, none.len()), (1, 0));
        let mut scanned = queue.scan().state(State::Delayed);
        let mut sum = 0;
        while let Some(message) = scanned.next().await {
            sum += message.unwrap().payload().unwrap();
        }
        assert_eq!((sum, queue.scan().rest().await.unwrap().len()), (5, 2));
        // A caller who gave up asks again.
        let mut pages = queue.scan();
        tokio::select! {
            biased;
            page = pages.next() => panic!("before the server has answered: {page:?}"),
            () = std::future::ready(()) => {}
        }
        assert!(pages.next().await.is_some());
        queue.schedule("s", &4).every(HOUR).await.unwrap();
        assert!(matches!(queue.push(&9).id("a").and_wait::<u32>(MOMENT).await, Err(Error::TimedOut(_))));
    });
}

#[test]
fn a_client_works_in_every_runtime_and_outlives_them() {
    let server = Server::start();
    let client = client(&server);
    let queue: Queue<u32> = client.queue("q");
    for number in 0..3 {
        runtime().block_on(async { queue.push(&number).await.unwrap() });
    }
    let threads = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let pushed = threads.spawn({
        let queue = queue.clone();
        async move { queue.push(&3).await.unwrap() }
    });
    // Without any runtime of tokio, too.
    wait_for(queue.push(&4).send()).unwrap();
    threads.block_on(pushed).unwrap();
    assert_eq!(client.face::<dq_client::Blocking>().queue::<u32>("q").len(None).unwrap(), 5);
}

/// Waits for a future as the simplest runtime does.
fn wait_for<R>(future: impl Future<Output = R>) -> R {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = Arc::new(Unpark(thread::current())).into();
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(reply) => return reply,
            std::task::Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn commands_share_a_connection_and_a_pop_that_is_dropped_ends() {
    let server = Server::start();
    let queue: Queue<u32> = client(&server).queue("q");
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let pushes: Vec<_> = (0..500).map(|number| runtime.spawn(queue.push(&number).send())).collect();
    for push in pushes {
        runtime.block_on(push).unwrap().unwrap();
    }
    let clients = server.info("clients", "connected_clients");
    assert!(clients.parse::<u32>().unwrap() <= 3, "{clients}");
    runtime.block_on(queue.purge(&[], None)).unwrap();
    let pop = runtime.spawn(queue.pop().block(HOUR).one());
    server.until_blocked(1);
    pop.abort();
    server.until_blocked(0);
    runtime.block_on(async {
        queue.push(&1).await.unwrap();
        assert!(queue.pop().one().await.unwrap().is_some(), "nobody else has taken it");
    });
}

#[test]
fn a_handler_that_blocks_its_runtime_keeps_its_message() {
    let server = Server::start();
    runtime().block_on(async {
        let client = client(&server);
        let queue: Queue<u32> = client.queue("q");
        let lease = Duration::from_millis(500);
        let spin = move |_: u32, context: Context| async move {
            thread::sleep(3 * lease);
            assert_eq!(context.loss(), None);
            Ok::<(), Failure>(())
        };
        let running = Worker::new(client).pool(Pool::new(2).queue("q").lease(lease), spin).start().unwrap();
        queue.push_all(&[1, 2]).await.unwrap();
        until("both are done", || async { queue.info().await.unwrap().unwrap().totals.acked == 2 }).await;
        let totals = queue.info().await.unwrap().unwrap().totals;
        assert_eq!((totals.delivered, totals.lease_expired), (2, 0));
        running.stop();
        assert_eq!(running.join().await.abandoned, 0);
    });
}

#[test]
fn the_future_of_a_handler_is_dropped_when_its_message_is_lost() {
    let server = Server::start();
    runtime().block_on(async {
        let client = client(&server);
        let queue: Queue<String> = client.queue("q");
        let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (begin, end) = (Arc::clone(&begun), Arc::clone(&ended));
        let forever = move |_: String, _: Context| {
            let ending = Ending(Arc::clone(&end));
            begin.fetch_add(1, Ordering::SeqCst);
            async move {
                let _ending = ending;
                std::future::pending::<Result<(), Failure>>().await
            }
        };
        let pool = Pool::new(1).queue("q").lease(HOUR).time_limit(4 * MOMENT);
        let running = Worker::new(client).pool(pool, forever).start().unwrap();
        until("it listens", || async { running.is_healthy() }).await;
        queue.push(&"late".to_owned()).id("late").retries(0).await.unwrap();
        until("it is dead", || async { queue.len(Some(State::Dead)).await.unwrap() == 1 }).await;
        let late = queue.get("late").await.unwrap().unwrap();
        assert_eq!(late.error.unwrap(), "the time limit of 200 ms was over");
        queue.push(&"gone".to_owned()).id("gone").await.unwrap();
        until("it is handled", || async { begun.load(Ordering::SeqCst) == 2 }).await;
        queue.cancel("gone").await.unwrap();
        until("both were dropped", || async { ended.load(Ordering::SeqCst) == 2 }).await;
        running.stop();
        assert_eq!(running.join().await.abandoned, 0);
    });
}

/// Panics when it is dropped, and so does what the panic carries.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new(Bomb));
    }
}

#[test]
fn a_panic_while_a_future_is_dropped_ends_nothing_else() {
    let server = Server::start();
    runtime().block_on(async {
        let client = client(&server);
        let queue: Queue<String> = client.queue("q");
        let begun = Arc::new(AtomicUsize::new(0));
        let begin = Arc::clone(&begun);
        let handler = move |text: String, _: Context| {
            begin.fetch_add(1, Ordering::SeqCst);
            async move {
                if text == "panics" {
                    std::panic::resume_unwind(Box::new(Bomb));
                }
                if text == "hangs" {
                    let _bomb = Bomb;
                    return std::future::pending::<Result<(), Failure>>().await;
                }
                Ok(())
            }
        };
        let pool = Pool::new(1).queue("q").lease(HOUR).time_limit(4 * MOMENT);
        let running = Worker::new(client).on_event(|_| {}).pool(pool, handler).start().unwrap();
        until("it listens", || async { running.is_healthy() }).await;
        queue.push(&"hangs".to_owned()).id("cancelled").await.unwrap();
        until("it has begun", || async { begun.load(Ordering::SeqCst) == 1 }).await;
        queue.cancel("cancelled").await.unwrap();
        for (text, state) in [("hangs", State::Dead), ("panics", State::Dead)] {
            queue.push(&text.to_owned()).id(text).retries(0).await.unwrap();
            until("it is dead", || async { queue.get(text).await.unwrap().unwrap().state == state }).await;
        }
        queue.push(&"fine".to_owned()).await.unwrap();
        until("it is done", || async { queue.len(None).await.unwrap() == 0 }).await;
        assert!(!running.is_stopping());
        running.stop();
        assert_eq!(running.join().await.abandoned, 0);
    });
}

#[test]
fn a_handler_that_panics_when_its_message_is_lost_keeps_no_place() {
    let server = Server::start();
    runtime().block_on(async {
        let client = client(&server);
        let queue: Queue<String> = client.queue("q");
        let begun = Arc::new(AtomicUsize::new(0));
        let begin = Arc::clone(&begun);
        let handler = move |text: String, context: Context| {
            begin.fetch_add(1, Ordering::SeqCst);
            async move {
                if text == "panics" {
                    context.cancelled().await;
                    std::panic::resume_unwind(Box::new(Bomb));
                }
                Ok::<(), Failure>(())
            }
        };
        let pool = Pool::new(1).queue("q").lease(HOUR).finish_when_lost();
        let running = Worker::new(client).pool(pool, handler).start().unwrap();
        until("it listens", || async { running.is_healthy() }).await;
        queue.push(&"panics".to_owned()).id("m").await.unwrap();
        until("it has begun", || async { begun.load(Ordering::SeqCst) == 1 }).await;
        queue.cancel("m").await.unwrap();
        queue.push(&"fine".to_owned()).await.unwrap();
        until("it is done", || async { queue.len(None).await.unwrap() == 0 }).await;
        running.stop();
        assert_eq!(running.join().await.abandoned, 0);
    });
}

#[test]
fn a_handler_that_finishes_is_told_why_its_message_is_lost() {
    let server = Server::start();
    runtime().block_on(async {
        let client = client(&server);
        let queue: Queue<u32> = client.queue("q");
        let (begun, losses) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (begins, told) = (Arc::clone(&begun), Arc::clone(&losses));
        let until_told = move |_: u32, context: Context| {
            let (begins, told) = (Arc::clone(&begins), Arc::clone(&told));
            async move {
                begins.fetch_add(1, Ordering::SeqCst);
                let loss = context.cancelled().await;
                told.lock().unwrap().push(loss);
                Ok::<(), Failure>(())
            }
        };
        let pool = Pool::new(1).queue("q").lease(HOUR).finish_when_lost();
        let running = Worker::new(client).grace(Duration::ZERO).pool(pool, until_told).start().unwrap();
        until("it listens", || async { running.is_healthy() }).await;
        queue.push(&1).id("m").await.unwrap();
        until("it has begun", || async { begun.load(Ordering::SeqCst) == 1 }).await;
        queue.cancel("m").await.unwrap();
        until("it was told", || async { *losses.lock().unwrap() == [Loss::Cancelled] }).await;
        queue.push(&2).id("n").await.unwrap();
        until("it has begun", || async { begun.load(Ordering::SeqCst) == 2 }).await;
        running.stop();
        assert_eq!(running.join().await.abandoned, 0);
        assert_eq!(*losses.lock().unwrap(), [Loss::Cancelled, Loss::Stopping]);
        let back = queue.get("n").await.unwrap().unwrap();
        assert_eq!((back.state, back.attempt), (State::Ready, 0));
    });
}

#[test]
fn a_worker_runs_until_a_future_is_ready() {
    let server = Server::start();
    runtime().block_on(async {
        let client = client(&server);
        let queue: Queue<u32> = client.queue("q");
        queue.push_all(&(0..100).collect::<Vec<_>>()).await.unwrap();
        let all_done = until("all are done", || async { queue.len(None).await.unwrap() == 0 });
        let worker = Worker::new(client.clone())
            .queue("q", 4, |number: u32, _: Context| async move { Ok::<u32, Failure>(number) })
            .queue_blocking("other", 1, |_: u32, _: Context| Ok(()));
        assert_eq!(worker.run_until(all_done).await.unwrap().abandoned, 0);
    });
}

#[test]
fn a_worker_whose_runtime_ends_gives_its_messages_back() {
    let server = Server::start();
    let queue: blocking::Queue<u32> = server.client().queue("q");
    let own = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let running = own.block_on(async {
        let forever = |_: u32, _: Context| std::future::pending::<Result<(), Failure>>();
        Worker::new(client(&server)).queue("q", 2, forever).start().unwrap()
    });
    queue.push_all(&[1, 2, 3]).send().unwrap();
    eventually("two are in flight", || queue.len(Some(State::Inflight)).unwrap() == 2);
    drop(own);
    eventually("they are back", || queue.len(Some(State::Ready)).unwrap() == 3);
    assert_eq!(running.metrics().queues()[0].running, 0);
    assert!(running.is_stopping() && queue.scan().all(|message| message.unwrap().attempt == 0));
}
