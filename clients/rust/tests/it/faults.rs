//! What a worker does while networks, servers and the program's own code fail.

use crate::support::{eventually, Cluster, Proxy, Server};
use dq_client::blocking::{Client, Queue, Running, Worker};
use dq_client::{Context, Error, Event, Failure, Loss, Options, Pool, Pushed, QueueMetrics, Settings, State, Value};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

const HOUR: Duration = Duration::from_secs(3600);

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn metrics(running: &Running) -> QueueMetrics {
    running.metrics().queues().remove(0)
}

fn end(running: Running) {
    running.stop();
    assert_eq!(running.join().abandoned, 0);
}

/// A client that tries each command once.
fn hasty(url: &str) -> Client {
    Client::with(Options::from_url(url).unwrap().retry_for(Duration::ZERO)).unwrap()
}

#[test]
fn a_push_whose_reply_is_cut_is_made_once() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let queue: Queue<u8> = Client::open(&proxy.url()).unwrap().queue("q");
    for (number, bytes) in [1, 5, 20].into_iter().enumerate() {
        proxy.cut_replies("DQ.PUSH", bytes, 1);
        assert!(matches!(queue.push(&1).send().unwrap(), Pushed::New(_)));
        assert_eq!((proxy.left_to_cut(), queue.len(None).unwrap()), (0, number as u64 + 1));
    }
    proxy.cut_replies("DQ.PUSH", 5, 1);
    let error = hasty(&proxy.url()).queue("q").push(&1_u8).send().unwrap_err();
    assert!(error.may_have_been_executed(), "{error:?}");
}

#[test]
fn a_server_with_too_many_clients_is_tried_again() {
    let server = Server::start();
    let taken = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    server.ask(&["CONFIG", "SET", "maxclients", "1"]);
    let error = hasty(&server.url()).queue("q").push(&1_u8).send().unwrap_err();
    assert!(error.is_transient() && !error.may_have_been_executed(), "{error:?}");
    assert!(error.to_string().contains("max number of clients"), "{error}");
    let pusher: Queue<u8> = server.client().queue("q");
    let push = std::thread::spawn(move || pusher.push(&1).send());
    drop(taken);
    assert!(push.join().unwrap().is_ok());
}

#[test]
fn a_connection_that_was_closed_while_idle_is_no_failure() {
    let server = Server::start();
    let client = hasty(&server.url());
    let queue: Queue<u8> = client.queue("q");
    let go_on = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go_on);
    let handler = move |_: u8, _: Context| {
        eventually("the test lets it go on", || wait.load(Ordering::SeqCst));
        Ok(())
    };
    let running = Worker::new(server.client()).on_event(|_| {}).queue("q", 1, handler).start().unwrap();
    queue.push_all(&[1, 2]).send().unwrap();
    eventually("it works", || metrics(&running).running == 1);
    server.cut();
    // Longer than a connection is used without a test: its end may not have arrived yet.
    sleep(ms(1000));
    // Neither may be sent twice.
    assert!(queue.push(&3).once().send().is_ok());
    server.cut();
    sleep(ms(1000));
    assert_eq!(queue.promote(None).unwrap(), 0);
    go_on.store(true, Ordering::SeqCst);
    eventually("all are acknowledged", || metrics(&running).acked == 3);
    assert_eq!((metrics(&running).interrupted, metrics(&running).delivered), (0, 3));
    end(running);
}

type Attempts = Arc<Mutex<Vec<u32>>>;

/// Handles messages for a time, and notes the attempts.
fn attempts_of(time: Duration) -> (impl Fn(u8, Context) -> Result<(), Failure>, Attempts) {
    let attempts = Attempts::default();
    let noted = Arc::clone(&attempts);
    let handler = move |_: u8, context: Context| {
        noted.lock().unwrap().push(context.attempt());
        sleep(time);
        Ok(())
    };
    (handler, attempts)
}

#[test]
fn a_message_whose_lease_is_over_when_it_arrives_is_not_begun() {
    let server = Server::start();
    let (proxy, queue) = (Proxy::to(server.port()), server.client().queue::<u8>("q"));
    let (handler, attempts) = attempts_of(Duration::ZERO);
    let pool = Pool::new(1).queue("q").lease(ms(500));
    let client = Client::open(&proxy.url()).unwrap();
    let running = Worker::new(client).on_event(|_| {}).pool(pool, handler).start().unwrap();
    server.until_blocked(1);
    proxy.hold(true);
    queue.push(&1).send().unwrap();
    eventually("its lease has ended", || queue.info().unwrap().unwrap().totals.lease_expired == 1);
    proxy.hold(false);
    eventually("it is acknowledged", || queue.len(None).unwrap() == 0);
    assert_eq!(*attempts.lock().unwrap(), [2]);
    end(running);
}

#[test]
fn a_lease_of_the_message_or_of_the_changed_queue_holds() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let lease = |lease: Duration| Settings { lease: Some(lease), ..Settings::default() };
    queue.declare(&lease(HOUR)).unwrap();
    let (handler, attempts) = attempts_of(ms(6000));
    let running = Worker::new(server.client()).on_event(|_| {}).queue("q", 3, handler).start().unwrap();
    server.until_blocked(1);
    queue.push(&1).id("own").lease(ms(2500)).send().unwrap();
    eventually("it works", || metrics(&running).running == 1);
    queue.declare(&lease(ms(2500))).unwrap();
    queue.push(&1).id("changed").send().unwrap();
    eventually("both work", || metrics(&running).running == 2);
    for id in ["own", "changed"] {
        let deadline = queue.get(id).unwrap().unwrap().deadline.unwrap();
        assert!(deadline <= SystemTime::now() + ms(2500), "{id}");
    }
    eventually("both are acknowledged", || metrics(&running).acked == 2);
    assert_eq!((attempts.lock().unwrap().as_slice(), metrics(&running).leases_lost), (&[1, 1][..], 0));
    assert_eq!(queue.info().unwrap().unwrap().totals.lease_expired, 0);
    end(running);
}

#[test]
fn a_user_who_may_not_ask_for_the_time_keeps_leases() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    queue.declare(&Settings { lease: Some(ms(2000)), ..Settings::default() }).unwrap();
    server.ask(&["ACL", "SETUSER", "worker", "on", ">pw", "~*", "&*", "+@all", "-time"]);
    let url = server.url().replace("redis://", "redis://worker:pw@");
    let (handler, attempts) = attempts_of(ms(5000));
    let worker = Worker::new(Client::open(&url).unwrap()).on_event(|_| {});
    queue.push(&1).send().unwrap();
    let running = worker.queue("q", 1, handler).start().unwrap();
    eventually("it is acknowledged", || metrics(&running).acked == 1);
    assert_eq!(*attempts.lock().unwrap(), [1]);
    end(running);
}

#[test]
fn an_ack_waits_for_a_password_that_is_accepted_again() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    server.ask(&["ACL", "SETUSER", "worker", "on", ">pw", "~*", "&*", "+@all"]);
    let url = server.url().replace("redis://", "redis://worker:pw@");
    let go_on = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go_on);
    let handler = move |_: u8, _: Context| {
        eventually("the test lets it go on", || wait.load(Ordering::SeqCst));
        Ok(())
    };
    // Nobody else gets it within the test.
    let pool = Pool::new(2).queue("q").lease(HOUR);
    let running = Worker::new(Client::open(&url).unwrap()).on_event(|_| {}).pool(pool, handler).start().unwrap();
    queue.push(&1).send().unwrap();
    eventually("it works", || metrics(&running).running == 1);
    server.ask(&["ACL", "SETUSER", "worker", "resetpass", ">other"]);
    server.ask(&["CLIENT", "KILL", "USER", "worker"]);
    go_on.store(true, Ordering::SeqCst);
    eventually("it has ended", || metrics(&running).running == 0);
    sleep(ms(500));
    server.ask(&["ACL", "SETUSER", "worker", "resetpass", ">pw"]);
    eventually("it is acknowledged", || queue.len(None).unwrap() == 0);
    end(running);
}

#[test]
fn fewer_messages_are_asked_for_after_a_reply_that_was_lost() {
    let server = Server::with(&["--client-output-buffer-limit", "normal 400000 0 0"]);
    let queue: Queue<String> = server.client().queue("q");
    let settings = Settings { lease: Some(ms(300)), retries: Some(-1), ..Settings::default() };
    queue.declare(&settings).unwrap();
    let payload = "x".repeat(150_000);
    (0..8).for_each(|_| drop(queue.push(&payload).send().unwrap()));
    let handled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&handled);
    let handler = move |_: String, _: Context| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    };
    let running = Worker::new(server.client()).on_event(|_| {}).queue("q", 8, handler).start().unwrap();
    eventually("all are acknowledged", || queue.len(None).unwrap() == 0);
    assert_eq!(handled.load(Ordering::SeqCst), 8);
    end(running);
}

#[test]
fn a_worker_with_a_dead_connection_stops_soon() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let worker = Worker::new(Client::open(&proxy.url()).unwrap()).on_event(|_| {});
    let running = worker.queue("q", 1, |_: u8, _: Context| Ok(())).start().unwrap();
    server.until_blocked(1);
    proxy.fall_silent();
    let begun = Instant::now();
    end(running);
    // Its pop blocks for five seconds, and a reply may take five more.
    assert!(begun.elapsed() < ms(3500), "{:?}", begun.elapsed());
}

#[test]
fn a_node_that_hangs_does_not_hold_up_the_queues_of_others() {
    let cluster = Cluster::of(2);
    for node in &cluster.nodes {
        node.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
        // One of two nodes alone refuses commands when it takes the other for failed.
        node.ask(&["CONFIG", "SET", "cluster-node-timeout", "300000"]);
    }
    let on = |node: usize| {
        let mut names = (0..).map(|number| format!("q{number}"));
        names.find(|name| Cluster::first_owner(2, cluster.slot_of(name)) == node).unwrap()
    };
    let (healthy, hung) = (on(0), on(1));
    let client = cluster.client();
    let (queue, other) = (client.queue::<u8>(&healthy), client.queue::<u8>(&hung));
    let (handler, attempts) = attempts_of(ms(10_000));
    let pool = Pool::new(4).queue(&hung).queue(&healthy).lease(ms(4000));
    let running = Worker::new(client).on_event(|_| {}).pool(pool, handler).start().unwrap();
    other.push(&1).send().unwrap();
    eventually("it works", || attempts.lock().unwrap().len() == 1);
    cluster.nodes[1].signal("STOP");
    for count in 2..=4 {
        let pushed = Instant::now();
        queue.push(&1).send().unwrap();
        eventually("it is handled", || attempts.lock().unwrap().len() == count);
        // A reply of the other node may take five seconds, after a pop that blocks for as long.
        assert!(pushed.elapsed() < ms(3000), "{:?}", pushed.elapsed());
    }
    eventually("all are acknowledged", || queue.len(None).unwrap() == 0);
    assert_eq!(*attempts.lock().unwrap(), [1; 4]);
    assert_eq!(queue.info().unwrap().unwrap().totals.lease_expired, 0);
    cluster.nodes[1].signal("CONT");
    end(running);
}

#[test]
fn a_lease_that_ends_while_the_server_is_silent_is_reported() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let losses = Arc::new(Mutex::new(Vec::new()));
    let (noted, go_on) = (Arc::clone(&losses), Arc::new(AtomicBool::new(false)));
    let wait = Arc::clone(&go_on);
    let handler = move |number: u8, _: Context| {
        eventually("the test lets it go on", || number == 2 || wait.load(Ordering::SeqCst));
        sleep(ms(200));
        Ok(())
    };
    let note = move |event: &Event| {
        if let Event::LeaseLost { id, reason, .. } = event {
            noted.lock().unwrap().push((id.to_string(), *reason));
        }
    };
    let pool = Pool::new(2).queue("q").lease(ms(1000));
    let running = Worker::new(server.client()).on_event(note).pool(pool, handler).start().unwrap();
    queue.push(&1).id("runs").send().unwrap();
    queue.push(&2).id("ended").send().unwrap();
    eventually("both work", || metrics(&running).running == 2);
    server.signal("STOP");
    eventually("both losses are reported", || losses.lock().unwrap().len() == 2);
    assert_eq!(metrics(&running).leases_lost, 2);
    server.signal("CONT");
    let mut losses = std::mem::take(&mut *losses.lock().unwrap());
    losses.sort();
    assert_eq!(losses, [("ended".to_owned(), Loss::Ended), ("runs".to_owned(), Loss::Ended)]);
    go_on.store(true, Ordering::SeqCst);
    end(running);
}

#[test]
fn a_worker_is_healthy_while_all_its_handlers_work_but_not_when_they_hang() {
    let server = Server::start();
    let options = Options::from_url(&server.url()).unwrap().response_timeout(ms(500));
    let worker = Worker::new(Client::with(options).unwrap()).on_event(|_| {});
    let go_on = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&go_on);
    let handler = move |_: u8, _: Context| {
        eventually("it may go on", || told.load(Ordering::SeqCst));
        Ok(())
    };
    let running = worker.pool(Pool::new(1).queue("q").queue("idle").lease(ms(4000)), handler).start().unwrap();
    let queue: Queue<u8> = server.client().queue("q");
    eventually("it is healthy", || running.is_healthy());
    queue.push(&1).id("m").send().unwrap();
    eventually("it works", || metrics(&running).running == 1);
    let enough = Instant::now() + ms(8000);
    eventually("it works for longer than a pop waits", || {
        assert!(running.is_healthy());
        Instant::now() > enough
    });
    queue.cancel("m").unwrap();
    eventually("it hangs", || !running.is_healthy());
    go_on.store(true, Ordering::SeqCst);
    eventually("it pops again", || running.is_healthy());
    end(running);
}

#[test]
fn a_worker_whose_pops_are_refused_is_not_healthy() {
    let server = Server::start();
    server.ask(&["SET", "q", "x"]);
    let options = Options::from_url(&server.url()).unwrap().response_timeout(ms(500));
    let worker = Worker::new(Client::with(options).unwrap()).on_event(|_| {});
    let pool = Pool::new(1).queue("q").lease(ms(500));
    let running = worker.pool(pool, |_: u8, _: Context| Ok(())).start().unwrap();
    eventually("it is known to be unhealthy", || metrics(&running).interrupted == 1 && !running.is_healthy());
    server.ask(&["DEL", "q"]);
    eventually("it is healthy", || running.is_healthy());
    end(running);
}

#[test]
fn an_observer_that_blocks_or_panics_costs_no_lease() {
    let server = Server::start();
    let queue: Queue<u8> = server.client().queue("q");
    let go_on = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go_on);
    let observer = move |_: &Event| {
        eventually("the test lets it go on", || wait.load(Ordering::SeqCst));
        std::panic::resume_unwind(Box::new("planned"));
    };
    let handler = |number: u8, _: Context| {
        if number == 1 {
            return Err(Failure::reject("reported"));
        }
        sleep(ms(5000));
        Ok(())
    };
    let pool = Pool::new(2).queue("q").lease(ms(2000));
    let running = Worker::new(server.client()).on_event(observer).pool(pool, handler).start().unwrap();
    queue.push_all(&[1, 2]).send().unwrap();
    eventually("it is acknowledged", || metrics(&running).acked == 1);
    assert_eq!((metrics(&running).died, queue.info().unwrap().unwrap().totals.lease_expired), (1, 0));
    go_on.store(true, Ordering::SeqCst);
    end(running);
}

#[test]
fn a_client_leaves_the_former_master_at_once() {
    let master = Server::start();
    let port = master.port().to_string();
    let replica = Server::with(&["--replicaof", "127.0.0.1", &port]);
    eventually("the replica follows", || replica.info("replication", "master_link_status") == "up");
    let sentinel = Server::sentinel(&format!(
        "sentinel monitor jobs 127.0.0.1 {port} 1\nsentinel down-after-milliseconds jobs 60000\n"
    ));
    eventually("the sentinel knows the replica", || {
        format!("{:?}", sentinel.ask(&["SENTINEL", "REPLICAS", "jobs"])).contains(&replica.port().to_string())
    });
    let client = Client::open(&format!("redis+sentinel://127.0.0.1:{}/jobs", sentinel.port())).unwrap();
    let queue: Queue<u8> = client.queue("q");
    let (handler, attempts) = attempts_of(Duration::ZERO);
    let running = Worker::new(client.clone()).on_event(|_| {}).queue("q", 1, handler).start().unwrap();
    queue.push(&1).send().unwrap();
    eventually("it is handled", || attempts.lock().unwrap().len() == 1);
    eventually("the sentinel can fail over", || sentinel.try_ask(&["SENTINEL", "FAILOVER", "jobs"]).is_ok());
    // The former master answers as before, and accepts writes that will be lost.
    let new = format!("127.0.0.1:{}", replica.port());
    eventually("the client knows the new one", || client.servers().unwrap()[0].to_string() == new);
    let direct: Queue<u8> = replica.client().queue("q");
    direct.push(&2).send().unwrap();
    eventually("the worker works there", || attempts.lock().unwrap().len() == 2);
    assert_eq!(direct.len(Some(State::Ready)).unwrap(), 0);
    end(running);
    assert!(matches!(replica.ask(&["ROLE"]), Value::Array(_)));
}

#[test]
fn a_pop_at_a_former_master_ends_when_another_one_is_found() {
    let (former, present) = (Server::start(), Server::start());
    let sentinel = Server::sentinel(&format!("sentinel monitor jobs 127.0.0.1 {} 1\n", former.port()));
    let client = Client::open(&format!("redis+sentinel://127.0.0.1:{}/jobs", sentinel.port())).unwrap();
    let pop = |name: &str| {
        let queue: Queue<u8> = client.queue(name);
        std::thread::spawn(move || queue.pop().block(ms(30_000)).one())
    };
    let waiting = pop("q");
    former.until_blocked(1);
    let broken = pop("other");
    former.until_blocked(2);
    // The sentinel does not announce this.
    sentinel.ask(&["SENTINEL", "REMOVE", "jobs"]);
    sentinel.ask(&["SENTINEL", "MONITOR", "jobs", "127.0.0.1", &present.port().to_string(), "1"]);
    let clients = former.text(&["CLIENT", "LIST"]).to_lowercase();
    let id = |line: &str| line.strip_prefix("id=")?.split(' ').next()?.parse::<u64>().ok();
    let newest = clients.lines().filter(|line| line.contains("cmd=dq.pop")).filter_map(id).max().unwrap();
    former.ask(&["CLIENT", "KILL", "ID", &newest.to_string()]);
    assert!(matches!(broken.join().unwrap(), Err(Error::Lost(_))));
    // The connection was lost, so this asks the sentinel.
    client.ping().unwrap();
    let error = waiting.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("another server is the master now"), "{error}");
    assert_eq!(client.servers().unwrap()[0].to_string(), format!("127.0.0.1:{}", present.port()));
}
