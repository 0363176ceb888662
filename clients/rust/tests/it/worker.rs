//! Workers: what they do with a message, with its lease, and with a request to stop.

use crate::support::{eventually, patience, Server};
use dq_client::blocking::{Client, Queue, Running, Worker};
use dq_client::{Context, Event, Failure, Loss, Pool, QueueMetrics, State};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

/// A worker that reports nothing.
fn quiet(server: &Server) -> Worker {
    Worker::new(server.client()).on_event(|_| {})
}

fn metrics(running: &Running) -> QueueMetrics {
    running.metrics().queues().remove(0)
}

/// Ends a worker whose handlers all end.
fn end(running: Running) {
    running.stop();
    assert_eq!(running.join().abandoned, 0);
}

#[test]
fn every_message_is_handled_and_acknowledged() {
    let server = Server::start();
    let queue: Queue<u32> = server.client().queue("q");
    let other: Queue<String> = server.client().queue("other");
    let sum = Arc::new(AtomicUsize::new(0));
    let (adding, texts) = (Arc::clone(&sum), Arc::new(Mutex::new(Vec::new())));
    let adding = move |number: u32, _: Context| {
        adding.fetch_add(number as usize, Ordering::Relaxed);
        Ok(())
    };
    let list = Arc::clone(&texts);
    let listing = move |text: String, context: Context| {
        assert_eq!((context.queue().to_string(), context.attempt()), ("other".to_owned(), 1));
        list.lock().unwrap().push(format!("{}: {text}", context.id()));
        Ok(())
    };
    let running = quiet(&server).queue("q", 4, adding).queue("other", 1, listing).start().unwrap();
    server.until_blocked(2);
    queue.push_all(&(1..=1000).collect::<Vec<_>>()).send().unwrap();
    other.push(&"hello".to_owned()).id("m").delay(Duration::from_millis(30)).send().unwrap();
    eventually("all are acknowledged", || queue.len(None).unwrap() + other.len(None).unwrap() == 0);
    assert_eq!(
        (sum.load(Ordering::Relaxed), texts.lock().unwrap().as_slice()),
        (500_500, &["m: hello".to_owned()][..])
    );
    let metrics = metrics(&running);
    assert_eq!((metrics.delivered, metrics.acked, metrics.late, metrics.run.count()), (1000, 1000, 0, 1000));
    end(running);
}

/// How often the server executed a command.
fn calls(server: &Server, name: &str) -> u64 {
    let stats = server.text(&["INFO", "commandstats"]).to_lowercase();
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[test]
fn a_busy_worker_acknowledges_with_its_next_pop() {
    let server = Server::start();
    let queue: Queue<u32> = server.client().queue("q");
    queue.push_all(&[0; 1000]).send().unwrap();
    for (concurrency, count) in [(1, 1000), (8, 2000)] {
        let running = quiet(&server).queue("q", concurrency, |_: u32, _: Context| Ok(())).start().unwrap();
        eventually("all are counted", || metrics(&running).acked == 1000);
        assert_eq!((metrics(&running).late, queue.len(None).unwrap()), (0, 0));
        end(running);
        let [acks, both] = ["dq.ack", "dq.ackpop"].map(|name| calls(&server, name));
        assert!(both > acks, "{both} with a pop and {acks} alone of {count}");
        queue.push_all(&[0; 1000]).send().unwrap();
    }
}

#[test]
fn acks_go_alone_if_no_pop_can_take_them() {
    let server = Server::start();
    let queue: Queue<u32> = server.client().queue("q");
    server.ask(&["ACL", "SETUSER", "old", "on", ">pw", "~*", "+@all", "-dq.ackpop"]);
    let url = server.url().replace("redis://", "redis://old:pw@");
    for client in [server.client(), Client::open(&url).unwrap()] {
        let (begun, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (count, allowed) = (Arc::clone(&begun), Arc::clone(&go_on));
        let handler = move |_: u32, _: Context| {
            let mine = count.fetch_add(1, Ordering::SeqCst);
            eventually("the test lets it go on", || allowed.load(Ordering::SeqCst) > mine);
            Ok(())
        };
        let running = Worker::new(client).on_event(|_| {}).queue("q", 2, handler).start().unwrap();
        queue.push_all(&[0; 2]).send().unwrap();
        eventually("both work", || begun.load(Ordering::SeqCst) == 2);
        // One ends, and the other one works on: there is nothing to pop.
        go_on.store(1, Ordering::SeqCst);
        eventually("the first ack has arrived", || queue.len(None).unwrap() == 1);
        go_on.store(1000, Ordering::SeqCst);
        queue.push_all(&[0; 100]).send().unwrap();
        eventually("all are acknowledged", || metrics(&running).acked == 102);
        assert_eq!(metrics(&running).late, 0);
        end(running);
    }
}

#[test]
fn a_failed_message_is_given_back_as_its_failure_says() {
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<&str>() != Some(&"planned") {
            eprintln!("{info}");
        }
    }));
    let server = Server::start();
    let queue: Queue<String> = server.client().queue("q");
    let failing = |text: String, context: Context| match text.as_str() {
        "retry" => Err(Failure::retry("no answer")),
        "later" => Err(Failure::retry_after(HOUR, "not today")),
        "reject" => Err(Failure::reject("nonsense")),
        "panic" => panic!("planned"),
        "forever" => Err(Failure::retry_after(Duration::MAX, "not ever")),
        "stored" => {
            context.checkpoint([0; 65_537]);
            Err(Failure::reject("too much"))
        }
        _ => Ok(()),
    };
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&lines);
    let worker = quiet(&server).on_event(move |event: &Event| log.lock().unwrap().push(event.to_string()));
    // Times without an end are times.
    let pool = Pool::new(2).queue("q").time_limit(Duration::MAX);
    let running = worker.grace(Duration::MAX).pool(pool, failing).start().unwrap();
    for text in ["retry", "later", "reject", "panic", "forever", "stored", "fine"] {
        queue.push(&text.to_owned()).id(text).send().unwrap();
    }
    server.client().queue::<u8>("q").push(&7).id("undecodable").send().unwrap();
    eventually("all are settled", || {
        let metrics = metrics(&running);
        metrics.acked + metrics.retried + metrics.died == 8
    });
    let seen = |id: &str| {
        let message = queue.get(id).unwrap().unwrap();
        (message.state, message.attempt, message.error.unwrap_or_default())
    };
    assert_eq!(seen("retry"), (State::Delayed, 1, "no answer".to_owned()));
    assert_eq!(seen("later"), (State::Delayed, 1, "not today".to_owned()));
    assert!(queue.get("later").unwrap().unwrap().due > std::time::SystemTime::now() + HOUR / 2);
    assert_eq!(seen("reject"), (State::Dead, 1, "nonsense".to_owned()));
    assert_eq!(seen("panic"), (State::Delayed, 1, "panic: planned".to_owned()));
    let (state, _, error) = seen("undecodable");
    assert!(state == State::Delayed && error.contains("expected JSON of alloc::string::String"), "{error}");
    // What the server refuses of a failure does not undo the failure.
    let (state, attempt, error) = seen("forever");
    assert_eq!((state, attempt), (State::Delayed, 1));
    assert!(error.contains("DELAY") && error.ends_with("the failure was: not ever"), "{error}");
    assert!(queue.get("forever").unwrap().unwrap().due < std::time::SystemTime::now() + HOUR);
    let (state, _, error) = seen("stored");
    assert!(state == State::Dead && error.ends_with("too much"), "{error}");
    // The worker counts before it tells.
    let is_told = |text: &str| lines.lock().unwrap().iter().any(|line: &String| line.contains(text));
    // The checkpoint is refused with the failure, or with an extension that was on its way before it.
    eventually("its refusal is told", || error.contains("CHECKPOINT") || is_told("CHECKPOINT"));
    eventually("it is told", || is_told("q: reject failed at attempt 1: nonsense; now dead"));
    let metrics = metrics(&running);
    assert_eq!((metrics.retried, metrics.died, metrics.panicked, metrics.undecodable), (5, 2, 1, 1));
    end(running);
}

#[test]
fn a_lease_is_kept_however_long_the_work_takes() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let go_on = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go_on);
    let long = move |_: u8, context: Context| {
        eventually("the test lets it go on", || wait.load(Ordering::Relaxed));
        assert!(!context.lease_lost());
        Ok(())
    };
    let pool = Pool::new(2).queue("q").lease(Duration::from_secs(2));
    let running = quiet(&server).pool(pool, long).start().unwrap();
    queue.push_all(&[1, 2, 3]).send().unwrap();
    // Two messages, each longer than two leases.
    eventually("the leases were extended", || metrics(&running).extended >= 10);
    let info = queue.info().unwrap().unwrap();
    // No more than the concurrency, and no lease has expired.
    assert_eq!((info.inflight, info.ready, info.totals.delivered, info.totals.lease_expired), (2, 1, 2, 0));
    go_on.store(true, Ordering::Relaxed);
    eventually("all are done", || metrics(&running).acked == 3);
    end(running);
}

#[test]
fn the_lease_of_a_queue_is_kept_from_the_first_message_on() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "LEASE", "1500"]);
    let queue: Queue<u8> = server.client().queue("q");
    queue.push(&1).send().unwrap();
    let go_on = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go_on);
    let long = move |_: u8, context: Context| {
        // What cannot be kept does not cost the lease either.
        context.checkpoint([0; 65_537]);
        eventually("the test lets it go on", || wait.load(Ordering::Relaxed) || context.lease_lost());
        Ok(())
    };
    let running = quiet(&server).queue("q", 1, long).start().unwrap();
    eventually("its lease was extended or lost", || metrics(&running).extended >= 3 || metrics(&running).late > 0);
    go_on.store(true, Ordering::Relaxed);
    eventually("it is done", || metrics(&running).acked + metrics(&running).late == 1);
    let totals = queue.info().unwrap().unwrap().totals;
    assert_eq!((totals.delivered, totals.lease_expired, metrics(&running).acked), (1, 0, 1));
    end(running);
}

#[test]
fn a_handler_is_told_that_its_lease_is_lost() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let begun = Arc::new(AtomicBool::new(false));
    let has_begun = Arc::clone(&begun);
    let until_lost = move |_: u8, context: Context| {
        has_begun.store(true, Ordering::Relaxed);
        eventually("the handler is told", || context.lease_lost());
        Ok(())
    };
    let pool = Pool::new(1).queue("q").lease(Duration::from_secs(1));
    let running = quiet(&server).pool(pool, until_lost).start().unwrap();
    queue.push(&1).id("m").send().unwrap();
    // A message that is lost before its handler begins is not worked on.
    eventually("the handler has begun", || begun.load(Ordering::Relaxed));
    assert!(queue.cancel("m").unwrap());
    eventually("its ack did not count", || metrics(&running).late == 1);
    assert_eq!((metrics(&running).acked, metrics(&running).leases_lost), (0, 1));
    end(running);
}

#[test]
fn a_handler_is_told_at_once_why_its_message_is_gone() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let (begun, told) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (begin, tell) = (Arc::clone(&begun), Arc::clone(&told));
    let until_lost = move |_: u8, context: Context| {
        begin.fetch_add(1, Ordering::SeqCst);
        eventually("the handler is told", || context.loss().is_some() || context.stopping());
        assert!(context.lease_lost());
        tell.lock().unwrap().extend(context.loss());
        Ok(())
    };
    // No extension is due within the test.
    let pool = Pool::new(1).queue("q").lease(HOUR);
    let running = quiet(&server).pool(pool, until_lost).start().unwrap();
    eventually("it listens", || subscribers(&server) == 1);
    let consumer = || server.text(&["EVAL", "return redis.call('DQ.CONSUMERS', 'q', 0)[2][1][1]", "0"]);
    let mut slowest = Duration::ZERO;
    for (number, loss) in
        [Loss::Cancelled, Loss::Replaced, Loss::Buried, Loss::Purged, Loss::Released].into_iter().enumerate()
    {
        queue.push(&1).id("m").replace().send().unwrap();
        eventually("it is handled", || begun.load(Ordering::SeqCst) == number + 1);
        assert!(consumer().contains(&format!(":{}:", std::process::id())), "{}", consumer());
        let taken = Instant::now();
        match loss {
            Loss::Cancelled => drop(queue.cancel("m").unwrap()),
            Loss::Replaced => drop(queue.push(&1).id("m").replace().delay(HOUR).send().unwrap()),
            Loss::Buried => drop(queue.bury("m", None).unwrap()),
            Loss::Purged => drop(server.ask(&["DQ.PURGE", "q"])),
            _ => drop(server.ask(&["DQ.RELEASE", "q", &consumer()])),
        }
        eventually("the handler was told", || told.lock().unwrap().len() > number);
        slowest = slowest.max(taken.elapsed());
        assert_eq!(told.lock().unwrap()[number], loss);
        queue.cancel("m").unwrap();
    }
    eprintln!("the handler was told after {slowest:?} at most");
    running.stop();
    let _ = running.join();
}

/// How many clients listen to the notices of the queue `q`.
fn subscribers(server: &Server) -> usize {
    let reply = server.ask(&["PUBSUB", "NUMSUB", "__dq@0__:q"]);
    let dq_client::Value::Array(parts) = reply else { panic!("{reply:?}") };
    let dq_client::Value::Int(count) = parts[1] else { panic!("{parts:?}") };
    usize::try_from(count).unwrap()
}

#[test]
fn a_handler_is_told_before_its_longest_lease_is_over() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let settings = dq_client::Settings { max_lease: Some(Duration::from_secs(7)), ..dq_client::Settings::default() };
    queue.declare(&settings).unwrap();
    // For how long its handler was not told.
    let held = Arc::new(Mutex::new(Duration::ZERO));
    let noted = Arc::clone(&held);
    let until_lost = move |_: u8, context: Context| {
        let begun = Instant::now();
        eventually("the handler is told", || {
            let passed = begun.elapsed();
            let loss = context.loss();
            // Afterwards it is delivered again.
            if loss.is_none() && context.attempt() == 1 {
                *noted.lock().unwrap() = passed;
            }
            loss == Some(Loss::Ended)
        });
        Ok(())
    };
    let pool = Pool::new(1).queue("q").lease(Duration::from_secs(4));
    let running = quiet(&server).pool(pool, until_lost).start().unwrap();
    queue.push(&1).send().unwrap();
    eventually("what it returns is discarded", || metrics(&running).late == 1);
    let held = *held.lock().unwrap();
    assert!(Duration::from_secs(4) < held && held < Duration::from_secs(7), "{held:?}");
    assert_eq!((metrics(&running).acked, metrics(&running).leases_lost), (0, 1));
    assert!(metrics(&running).extended >= 2);
    end(running);
}

#[test]
fn one_command_keeps_all_leases_of_a_queue() {
    let server = Server::start();
    let queue: Queue<u32> = server.client().queue("q");
    server.ask(&["ACL", "SETUSER", "old", "on", ">pw", "~*", "+@all", "-dq.mextend"]);
    let url = server.url().replace("redis://", "redis://old:pw@");
    for (client, command, other) in
        [(server.client(), "dq.mextend", "dq.extend"), (Client::open(&url).unwrap(), "dq.extend", "dq.mextend")]
    {
        let go_on = Arc::new(AtomicBool::new(false));
        let wait = Arc::clone(&go_on);
        let handler = move |_: u32, _: Context| {
            eventually("the test lets it go on", || wait.load(Ordering::Relaxed));
            Ok(())
        };
        let before = [command, other].map(|name| calls(&server, name));
        let pool = Pool::new(8).queue("q").lease(Duration::from_secs(2));
        let running = Worker::new(client).on_event(|_| {}).pool(pool, handler).start().unwrap();
        queue.push_all(&[0; 8]).send().unwrap();
        eventually("all leases were extended twice", || metrics(&running).extended >= 16);
        let [calls, others] = [(command, before[0]), (other, before[1])].map(|(name, n)| calls(&server, name) - n);
        assert_eq!(others, 0, "refused commands are not counted");
        assert_eq!(calls < metrics(&running).extended, command == "dq.mextend", "{calls} of {command}");
        go_on.store(true, Ordering::Relaxed);
        eventually("all are done", || metrics(&running).acked == 8);
        assert_eq!(metrics(&running).late, 0);
        end(running);
    }
}

#[test]
fn a_handler_is_told_if_the_server_cannot_be_asked() {
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "no"]);
    let queue: Queue<u8> = server.client().queue("q");
    let told = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&told);
    let begun = Arc::new(AtomicBool::new(false));
    let begin = Arc::clone(&begun);
    let first_waits = move |_: u8, context: Context| {
        if !tell.load(Ordering::Relaxed) {
            begin.store(true, Ordering::Relaxed);
            eventually("the handler is told", || context.lease_lost());
            tell.store(true, Ordering::Relaxed);
        }
        Ok(())
    };
    let pool = Pool::new(1).queue("q").lease(Duration::from_secs(1));
    let running = quiet(&server).pool(pool, first_waits).start().unwrap();
    queue.push(&1).id("m").send().unwrap();
    eventually("the handler has begun", || begun.load(Ordering::Relaxed));
    server.kill();
    eventually("the handler was told", || told.load(Ordering::Relaxed));
    server.boot();
    eventually("it was done", || server.client().queue::<u8>("q").len(None).unwrap() == 0);
    end(running);
}

#[test]
fn a_worker_goes_on_after_its_connections_are_cut() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let running = quiet(&server).queue("q", 2, |_: u8, _: Context| Ok(())).start().unwrap();
    for round in 1..=3 {
        server.until_blocked(1);
        server.cut();
        queue.push(&1).send().unwrap();
        eventually("it is handled", || metrics(&running).acked == round);
    }
    assert!(metrics(&running).interrupted >= 1);
    end(running);
}

#[test]
fn weights_decide_between_queues_and_none_starves() {
    let server = Server::start();
    let names = ["high", "low"];
    for name in names {
        server.client().queue::<u8>(name).push_all(&[0; 500]).send().unwrap();
    }
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&order);
    let logging = move |_: u8, context: Context| {
        log.lock().unwrap().push(context.queue().to_owned());
        // Longer than a queue takes to pop again, so that both wait for each permit.
        std::thread::sleep(Duration::from_millis(2));
        Ok(())
    };
    let pool = Pool::new(2).weighted("high", 4).weighted("low", 1);
    let running = quiet(&server).pool(pool, logging).start().unwrap();
    eventually("all are handled", || order.lock().unwrap().len() == 1000);
    let order = order.lock().unwrap();
    let low = order[..500].iter().filter(|name| *name == "low").count();
    assert!((50..=175).contains(&low), "{low} of the first 500, of which 100 are fair");
    end(running);
}

#[test]
fn an_idle_partition_does_not_keep_threads_from_a_busy_one() {
    let server = Server::start();
    let topic: dq_client::blocking::Partitions<u8> = dq_client::blocking::Partitions::new(&server.client(), "t", 8);
    let (running_now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&running_now), Arc::clone(&most));
    let busy = move |_: u8, _: Context| {
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Until all threads are busy.
        eventually("all threads work", || peak.load(Ordering::SeqCst) == 8);
        now.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    };
    let running = quiet(&server).pool(Pool::new(8).partitions(&topic), busy).start().unwrap();
    server.until_blocked(8);
    topic.queues()[3].push_all(&[0; 100]).send().unwrap();
    eventually("all are handled", || topic.queues()[3].len(None).unwrap() == 0);
    assert_eq!(most.load(Ordering::SeqCst), 8);
    // With fewer threads than partitions every partition gets its turn.
    end(running);
    let running = quiet(&server).pool(Pool::new(2).partitions(&topic), |_: u8, _: Context| Ok(())).start().unwrap();
    topic.queues().iter().for_each(|queue| drop(queue.push_all(&[0; 10]).send().unwrap()));
    eventually("all are handled", || topic.queues().iter().all(|queue| queue.len(None).unwrap() == 0));
    end(running);
}

#[test]
fn concurrency_and_leases_of_a_running_worker_can_be_changed() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let (go_on, now, most) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (wait, running_now, peak) = (Arc::clone(&go_on), Arc::clone(&now), Arc::clone(&most));
    let handler = move |_: u8, _: Context| {
        peak.fetch_max(running_now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        eventually("the test lets it go on", || wait.load(Ordering::SeqCst));
        running_now.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    };
    let running = quiet(&server).pool(Pool::new(1).queue("q").lease(HOUR), handler).start().unwrap();
    server.until_blocked(1);
    running.set_concurrency("q", 3).unwrap();
    queue.push_all(&[0; 10]).send().unwrap();
    eventually("three work", || now.load(Ordering::SeqCst) == 3);
    running.set_concurrency("q", 1).unwrap();
    // A lease that is shorter than the time that the thread that keeps leases would have slept.
    running.set_lease("q", Duration::from_secs(1));
    go_on.store(true, Ordering::SeqCst);
    eventually("all are done", || queue.len(None).unwrap() == 0);
    assert_eq!(most.swap(0, Ordering::SeqCst), 3);
    go_on.store(false, Ordering::SeqCst);
    queue.push_all(&[0; 3]).send().unwrap();
    eventually("one works, and its lease is kept", || {
        now.load(Ordering::SeqCst) == 1 && metrics(&running).extended >= 2
    });
    assert_eq!(most.load(Ordering::SeqCst), 1);
    go_on.store(true, Ordering::SeqCst);
    eventually("all are done", || queue.len(None).unwrap() == 0);
    end(running);
}

#[test]
fn a_program_waits_for_the_signal_of_its_platform() {
    let signal = dq_client::shutdown_signal();
    let kill = format!("kill -s TERM {}", std::process::id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(signal).unwrap();
}

/// A worker as a process of its own: this test, started again. It works until SIGTERM.
#[test]
#[ignore = "started by other tests"]
fn worker_process() {
    let client = Client::open(&std::env::var("DQ_TEST_URL").unwrap()).unwrap();
    let begun: Queue<u8> = client.queue("begun");
    let slow = move |_: u8, context: Context| {
        begun.push(&1).send().unwrap();
        // It ends some time after the request to stop.
        eventually("the worker is to stop", || context.stopping());
        std::thread::sleep(Duration::from_millis(300));
        Ok(())
    };
    let stopped =
        Worker::new(client).queue("slow", 2, slow).queue("idle", 2, |_: u8, _: Context| Ok(())).run().unwrap();
    assert_eq!(stopped.abandoned, 0);
}

fn spawn_worker(server: &Server) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "worker::worker_process"]).env("DQ_TEST_URL", server.url());
    command.stdout(Stdio::null()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let kill = format!("kill -s {name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

fn until_ended(mut child: Child) {
    let end = Instant::now() + patience();
    while Instant::now() < end {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    panic!("the worker did not stop");
}

#[test]
fn sigterm_ends_an_idle_worker_at_once() {
    let server = Server::start();
    let worker = spawn_worker(&server);
    server.until_blocked(2);
    let begun = Instant::now();
    signal(&worker, "TERM");
    until_ended(worker);
    eprintln!("an idle worker stopped after {:?}", begun.elapsed());
    // Its pops block for five seconds.
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// Waits until the pops of this many clients are put off, because writes are paused.
fn until_put_off(server: &Server, clients: usize) {
    let pops = || server.text(&["CLIENT", "LIST"]).lines().filter(|line| line.contains(" cmd=DQ.POP ")).count();
    eventually("the pops have arrived", || pops() == clients);
    assert_eq!(server.info("dq", "dq_blocked_clients"), "0");
}

#[test]
fn a_worker_stops_at_once_while_writes_are_paused() {
    let server = Server::start();
    server.ask(&["CLIENT", "PAUSE", "600000", "WRITE"]);
    let worker = spawn_worker(&server);
    until_put_off(&server, 2);
    let begun = Instant::now();
    signal(&worker, "TERM");
    until_ended(worker);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    server.ask(&["CLIENT", "UNPAUSE"]);
    let queue: Queue<u8> = server.client().queue("slow");
    queue.push(&1).send().unwrap();
    assert_eq!(queue.pop().one().unwrap().expect("the message").attempt, 1);
}

#[test]
fn what_a_pop_gets_after_the_worker_stopped_is_given_back() {
    let server = Server::start();
    server.ask(&["CLIENT", "PAUSE", "600000", "WRITE"]);
    let running = quiet(&server).queue("q", 1, |_: u8, _: Context| Ok(())).start().unwrap();
    until_put_off(&server, 1);
    end(running);
    server.ask(&["CLIENT", "UNPAUSE"]);
    server.until_blocked(1);
    let queue: Queue<u8> = server.client().queue("q");
    queue.push(&1).send().unwrap();
    eventually("it is back", || {
        let info = queue.info().unwrap().unwrap();
        (info.ready, info.totals.delivered) == (1, 1)
    });
    assert_eq!(queue.pop().one().unwrap().expect("the message").attempt, 1);
}

#[test]
fn sigterm_lets_running_handlers_finish_and_leaves_nothing_in_flight() {
    let server = Server::start();
    let worker = spawn_worker(&server);
    let queue: Queue<u8> = server.client().queue("slow");
    queue.push_all(&[0; 10]).send().unwrap();
    eventually("both threads work", || server.client().queue::<u8>("begun").len(None).unwrap() == 2);
    signal(&worker, "TERM");
    until_ended(worker);
    let info = queue.info().unwrap().unwrap();
    assert_eq!((info.inflight, info.ready, info.totals.acked), (0, 8, 2));
    assert!(queue.scan().all(|message| message.unwrap().attempt == 0));
}

#[test]
fn a_worker_that_is_dropped_stops_and_leaves_nothing_in_flight() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let wait = |_: u8, context: Context| {
        eventually("the worker is to stop", || context.stopping());
        Ok(())
    };
    let running = quiet(&server).queue("q", 2, wait).start().unwrap();
    queue.push_all(&[0; 5]).send().unwrap();
    eventually("both threads work", || metrics(&running).running == 2);
    drop(running);
    eventually("two are done, and three are back", || {
        let info = queue.info().unwrap().unwrap();
        (info.totals.acked, info.ready) == (2, 3)
    });
    eventually("nobody waits", || server.info("dq", "dq_blocked_clients") == "0");
}

#[test]
#[cfg(target_os = "linux")]
fn an_idle_worker_uses_no_cpu() {
    let server = Server::start();
    let worker = spawn_worker(&server);
    server.until_blocked(2);
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", worker.id())).unwrap();
        let fields: Vec<u64> =
            stat.rsplit(')').next().unwrap().split(' ').filter_map(|word| word.parse().ok()).collect();
        // User and system time, the 14th and 15th field, in hundredths of a second.
        fields[10] + fields[11]
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(3));
    let used = ticks() - before;
    assert!(used <= 3, "{used}0 ms in 3 s");
    signal(&worker, "INT");
    until_ended(worker);
}
