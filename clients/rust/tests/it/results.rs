//! Done messages and their results: completing, waiting, and what handlers return.

use crate::support::{eventually, in_both_protocols, Server};
use dq_client::blocking::{Client, Queue, Worker};
use dq_client::{Context, Error, Event, Failure, MsgPack, Options, Raw, Settings, State};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);
const LONG: Duration = Duration::from_secs(60);

#[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
struct Sum {
    total: u64,
}

#[test]
fn a_completed_message_is_kept_with_its_result() {
    in_both_protocols(|client| {
        let queue: Queue<u8> = client.queue("q");
        queue.push(&1).id("a").retain(HOUR).send().unwrap();
        queue.push_all(&[2, 3]).ids(["b", "c"]).retain(HOUR).send().unwrap();
        let deliveries = queue.pop().count(3).all().unwrap();
        assert!(queue.complete(&deliveries[0]).result(&Sum { total: 7 }).send().unwrap());
        assert!(!queue.complete(&deliveries[0]).send().unwrap());
        assert!(queue.complete(&deliveries[1]).result(&Raw(b"x".to_vec())).retain(Duration::ZERO).send().unwrap());
        assert!(queue.ack(&deliveries[2]).unwrap());
        let done = queue.get("a").unwrap().unwrap();
        assert_eq!((done.state, done.result::<Sum>().unwrap(), done.attempt), (State::Done, Sum { total: 7 }, 1));
        assert!(done.done.is_some() && done.kept_until.unwrap() > SystemTime::now() + HOUR / 2);
        assert!(done.schedule.is_none() && done.other.is_empty() && done.payload().is_err(), "{done:?}");
        let acked = queue.get("c").unwrap().unwrap();
        assert_eq!((acked.result_bytes(), acked.result::<Option<Sum>>().unwrap()), (None, None));
        assert!(matches!(acked.result::<Sum>(), Err(Error::Decode(_))));
        assert!(queue.get("b").unwrap().is_none());
        assert_eq!((queue.len(None).unwrap(), queue.len(Some(State::Done)).unwrap()), (0, 2));
        assert_eq!(queue.peek(State::Done, 5).unwrap().len() + queue.scan().state(State::Done).count(), 4);
        assert_eq!(queue.info().unwrap().unwrap().done, 2);
        assert_eq!(queue.purge(&[State::Done], None).unwrap(), 2);
    });
}

#[test]
fn a_result_beyond_the_limit_is_refused_and_says_so() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    queue.push(&1).retain(HOUR).send().unwrap();
    let delivery = queue.pop().one().unwrap().unwrap();
    let error = queue.complete(&delivery).result(&Raw(vec![0; 65_537])).send().unwrap_err();
    assert!(matches!(&error, Error::TooLarge(text) if text.contains("65537") && text.contains("65536")), "{error}");
    assert!(queue.complete(&delivery).result(&Raw(vec![0; 65_536])).send().unwrap());
}

#[test]
fn the_value_of_a_handler_is_the_reply() {
    in_both_protocols(|client| {
        let queue: Queue<Vec<u64>> = client.queue("sums");
        let adding = |numbers: Vec<u64>, _: Context| match numbers.as_slice() {
            [] => Err(Failure::reject("nothing to add")),
            numbers => Ok(Sum { total: numbers.iter().sum() }),
        };
        let lost = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&lost);
        let worker = Worker::new(client.clone()).on_event(move |event| {
            if let Event::ResultLost { .. } = event {
                log.lock().unwrap().push(event.to_string());
            }
        });
        let running = worker
            .queue("sums", 2, adding)
            .queue("unit", 1, |_: u8, _: Context| Ok(()))
            .queue("json", 1, |text: String, _: Context| Ok(MsgPack(text)))
            .queue("large", 1, |size: usize, _: Context| Ok(Raw(vec![0; size])))
            .start()
            .unwrap();
        assert_eq!(queue.push(&vec![2, 3]).and_wait::<Sum>(LONG).unwrap(), Sum { total: 5 });
        let again = queue.push(&vec![4]).id("m").and_wait::<Sum>(LONG).unwrap();
        assert_eq!(again, Sum { total: 4 });
        // The same request again gets the reply that is kept.
        assert_eq!(queue.push(&vec![9]).id("m").and_wait::<Sum>(LONG).unwrap(), again);
        let error = queue.push(&Vec::new()).and_wait::<Sum>(LONG).unwrap_err();
        assert!(matches!(&error, Error::Failed { error: Some(text), .. } if text == "nothing to add"), "{error}");
        client.queue("unit").push(&1_u8).and_wait::<()>(LONG).unwrap();
        let json: MsgPack<String> = client.queue("json").push(&"hi".to_owned()).and_wait(LONG).unwrap();
        assert_eq!(json.0, "hi");
        let large: Queue<usize> = client.queue("large");
        assert_eq!(large.push(&65_536).and_wait::<Raw>(LONG).unwrap().0.len(), 65_536);
        // The work is done, and is not repeated.
        for _ in 0..2 {
            let error = large.push(&65_537).retries(0).and_wait::<u8>(LONG).unwrap_err();
            assert!(matches!(&error, Error::Decode(_)) && error.to_string().contains("without a result"), "{error}");
        }
        // Nothing is kept without a RETAIN.
        let id = queue.push(&vec![1]).send().unwrap().id().unwrap();
        assert!(matches!(queue.wait(&id, LONG), Err(Error::Gone(_))));
        // The worker counts an ack after its reply, which may come after that of the client that waits.
        eventually("all are counted", || {
            let counted = running.metrics().queues().into_iter().find(|counted| counted.queue == "sums").unwrap();
            (counted.acked, counted.died, counted.late) == (3, 1, 0)
        });
        running.stop();
        assert_eq!(running.join().abandoned, 0);
        // The worker tells what is lost after its reply, too: by its end, and once for both messages.
        let said = lost.lock().unwrap().join("\n");
        assert!(said.contains("has no result: the result of 65537 bytes") && !said.contains('\n'), "{said}");
    });
}

#[test]
fn a_wait_ends_with_its_time_or_with_the_message() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let error = queue.push(&1).id("m").and_wait::<()>(Duration::from_millis(50)).unwrap_err();
    assert!(matches!(&error, Error::TimedOut(id) if *id == "m"), "{error}");
    assert!(matches!(queue.wait("m", Duration::ZERO), Err(Error::TimedOut(_))));
    assert!(matches!(queue.wait("none", LONG), Err(Error::Gone(_))));
    let waiting = queue.clone();
    let waiter = std::thread::spawn(move || waiting.wait("m", LONG));
    server.until_blocked(1);
    queue.cancel("m").unwrap();
    assert!(matches!(waiter.join().unwrap(), Err(Error::Gone(_))));
    queue.push(&2).id("dead").send().unwrap();
    queue.bury("dead", Some("no")).unwrap();
    assert_eq!(queue.wait("dead", LONG).unwrap().state, State::Dead);
    assert!(matches!(queue.push(&2).id("dead").and_wait::<()>(LONG), Err(Error::DeadId(_))));
}

#[test]
fn a_wait_goes_on_after_its_connection_is_lost() {
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "no"]);
    // So the commands themselves are not repeated.
    let client = Client::with(Options::from_url(&server.url()).unwrap().retry_for(Duration::ZERO)).unwrap();
    let queue: Queue<u8> = client.queue("q");
    let asking = queue.clone();
    let asker = std::thread::spawn(move || asking.push(&1).id("m").and_wait::<u8>(2 * LONG));
    server.until_blocked(1);
    server.cut();
    server.until_blocked(1);
    server.kill();
    server.boot();
    server.until_blocked(1);
    let queue: Queue<u8> = server.client().queue("q");
    let delivery = queue.pop().one().unwrap().unwrap();
    queue.complete(&delivery).result(&42_u8).send().unwrap();
    assert_eq!(asker.join().unwrap().unwrap(), 42);
}

#[test]
fn without_the_right_to_complete_the_work_is_still_acknowledged() {
    let server = Server::start();
    let rights = ["+dq.pop", "+dq.ack", "+dq.nack", "+dq.extend", "+client|unblock"];
    server.ask(&[&["ACL", "SETUSER", "worker", "on", ">secret", "~q"], &rights[..]].concat());
    let client = Client::open(&format!("redis://worker:secret@127.0.0.1:{}", server.port())).unwrap();
    let running = Worker::new(client).on_event(|_| {}).queue("q", 1, |n: u8, _: Context| Ok(n)).start().unwrap();
    let queue: Queue<u8> = server.client().queue("q");
    queue.push(&1).send().unwrap();
    eventually("it is acknowledged", || queue.info().unwrap().is_some_and(|info| info.totals.acked == 1));
    running.stop();
    assert_eq!(running.join().abandoned, 0);
}

#[test]
fn a_pop_of_several_queues_says_which_one_had_messages() {
    in_both_protocols(|client| {
        let (first, second): (Queue<u8>, Queue<u8>) = (client.queue("first"), client.queue("second"));
        second.declare(&Settings::default()).unwrap();
        assert!(client.pop_any([&first, &second]).send().unwrap().is_none());
        second.push_all(&[1, 2]).send().unwrap();
        let (name, messages) =
            client.pop_any([&first, &second]).count(5).lease(HOUR).block(LONG).send().unwrap().unwrap();
        assert_eq!((name.as_bytes(), messages.len(), messages[1].payload().unwrap()), (&b"second"[..], 2, 2));
        first.push(&3).send().unwrap();
        let (name, messages) = client.pop_any([&second, &first]).no_ack().send().unwrap().unwrap();
        assert_eq!((name.as_bytes(), messages[0].receipt.is_none()), (&b"first"[..], true));
        assert!(client.pop_any::<u8>([]).send().unwrap().is_none());
    });
}
