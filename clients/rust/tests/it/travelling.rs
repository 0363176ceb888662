//! What travels with a message besides its payload.

use crate::support::{eventually, Server};
use dq_client::blocking::{Client, Queue, Worker};
use dq_client::{Failure, Headers, Nack, Pool, Settings};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn headers_are_pushed_declared_and_read() {
    for protocol in [2, 3] {
        let server = Server::start();
        let client = Client::open(&format!("{}?protocol={protocol}", server.url())).unwrap();
        let queue: Queue<u8> = client.queue("q");
        queue.push(&1).id("one").header("trace", "1f").header([0, 255], "").header("trace", "2f").send().unwrap();
        let headers = queue.get("one").unwrap().unwrap().headers;
        assert_eq!((headers.text("trace"), headers.get([0, 255])), (Some("2f"), Some(&[][..])));
        assert_eq!(headers.iter().map(|(name, _)| name).collect::<Vec<_>>(), [&[0, 255][..], b"trace"]);
        queue.push_all(&[2, 3]).headers(headers.clone()).ids(["two", "three"]).send().unwrap();
        queue.schedule("tick", &4).every(HOUR).headers(headers.clone()).header("a", "1").send().unwrap();
        assert_eq!(queue.get("three").unwrap().unwrap().headers, headers);
        assert_eq!(queue.get("tick").unwrap().unwrap().headers.text("a"), Some("1"));
        queue.push(&5).id("none").headers(Headers::default()).send().unwrap();
        assert!(queue.get("none").unwrap().unwrap().headers.is_empty());
    }
}

#[test]
fn the_errors_of_past_attempts_are_read() {
    for protocol in [2, 3] {
        let server = Server::start();
        let client = Client::open(&format!("{}?protocol={protocol}", server.url())).unwrap();
        let queue: Queue<u8> = client.queue("q");
        queue.declare(&Settings { errors: Some(2), ..Settings::default() }).unwrap();
        assert_eq!(queue.info().unwrap().unwrap().settings.errors, Some(2));
        queue.push(&1).id("m").send().unwrap();
        for text in ["one", "two", "three"] {
            let popped = queue.pop().one().unwrap().unwrap();
            queue.nack(&popped, &Nack::retry().after(Duration::ZERO).error(text)).unwrap();
        }
        let message = queue.get("m").unwrap().unwrap();
        let errors: Vec<_> = message.errors.iter().map(|error| (error.attempt, error.text.as_str())).collect();
        assert_eq!((errors, message.error.as_deref()), (vec![(2, "two"), (3, "three")], Some("three")));
        assert!(message.errors.iter().all(|error| error.at >= message.created));
    }
}

#[test]
fn a_checkpoint_is_stored_by_an_extension_or_a_nack() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    queue.push(&1).id("m").send().unwrap();
    let popped = queue.pop().one().unwrap().unwrap();
    let stored = || queue.get("m").unwrap().unwrap().checkpoint;
    assert!(queue.checkpoint(&popped, "half", None).unwrap().is_some());
    assert_eq!(stored().as_deref(), Some(&b"half"[..]));
    queue.nack(&popped, &Nack::give_back().checkpoint([0, 255])).unwrap();
    assert_eq!(stored().as_deref(), Some(&[0, 255][..]));
    let popped = queue.pop().one().unwrap().unwrap();
    assert!(queue.checkpoint(&popped, "", Some(HOUR)).unwrap().is_some());
    assert_eq!(stored(), None);
    queue.ack(&popped).unwrap();
    assert_eq!(queue.checkpoint(&popped, "late", None).unwrap(), None);
}

#[test]
fn a_pop_tells_more_of_a_message_if_asked() {
    for protocol in [2, 3] {
        let server = Server::start();
        let client = Client::open(&format!("{}?protocol={protocol}", server.url())).unwrap();
        let queue: Queue<u8> = client.queue("q");
        queue.push(&1).id("m").priority(-3).group("g").header("trace", "1f").send().unwrap();
        let popped = queue.pop().one().unwrap().unwrap();
        assert!(popped.meta.is_none());
        queue.nack(&popped, &Nack::retry().after(Duration::ZERO).error("boom").checkpoint("half")).unwrap();
        let popped = queue.pop().meta().lease(HOUR).one().unwrap().unwrap();
        let (meta, message) = (popped.meta.unwrap(), queue.get("m").unwrap().unwrap());
        assert_eq!((meta.created, meta.due, meta.deadline), (message.created, message.due, message.deadline));
        assert_eq!((meta.priority, meta.group.as_deref(), meta.error.as_deref()), (-3, Some("g"), Some("boom")));
        assert_eq!((meta.headers, meta.checkpoint), (message.headers, message.checkpoint));
        queue.push(&2).send().unwrap();
        let (_, popped) = client.pop_any([&queue]).no_ack().meta().send().unwrap().unwrap();
        let meta = popped[0].meta.as_ref().unwrap();
        assert_eq!((meta.deadline, meta.priority, meta.headers.is_empty()), (None, 0, true));
    }
}

#[test]
fn a_worker_goes_on_where_the_last_attempt_has_stopped() {
    let server = Server::start();
    let client = server.client();
    let queue: Queue<u8> = client.queue("q");
    queue.push(&9).id("m").header("trace", "1f").send().unwrap();
    let worker =
        Worker::new(client.clone()).on_event(|_| ()).pool(Pool::new(1).queue("q").meta(), |rows: u8, context| {
            let meta = context.meta().unwrap();
            assert_eq!(meta.headers.text("trace"), Some("1f"));
            let done = meta.checkpoint.as_ref().map_or(0, |bytes| bytes[0]);
            if done < rows {
                context.checkpoint([done + 3]);
                return Err(Failure::retry_after(Duration::ZERO, format!("stopped at {}", done + 3)));
            }
            Ok(())
        });
    let running = worker.start().unwrap();
    eventually("all is done", || queue.info().unwrap().unwrap().totals.acked == 1);
    running.stop();
    assert_eq!(running.join().abandoned, 0);
    assert_eq!(queue.info().unwrap().unwrap().totals.nacked, 3);
}

#[test]
fn a_checkpoint_of_a_running_handler_is_sent_with_its_lease() {
    let server = Server::start();
    let client = server.client();
    let queue: Queue<u8> = client.queue("q");
    queue.push(&1).id("m").send().unwrap();
    let pool = Pool::new(1).queue("q").lease(Duration::from_millis(400));
    let worker = Worker::new(client.clone()).pool(pool, |_: u8, context: dq_client::Context| {
        context.checkpoint("half");
        while !context.stopping() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok::<(), Failure>(())
    });
    let running = worker.start().unwrap();
    let stored = || queue.get("m").unwrap().unwrap().checkpoint;
    eventually("it is stored", || stored().as_deref() == Some(b"half"));
    running.stop();
    assert_eq!(running.join().abandoned, 0);
}
