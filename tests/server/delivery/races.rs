//! Races: whatever happens to a queue while clients are blocked on it, every client is served and no message is lost or
//! repeated.

use crate::support::{eventually, until_counted, Client, Reply, Server};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// Clients blocked on `key`, in order of arrival, behind `already` others.
fn waiting_clients(server: &Server, c: &mut Client, key: &str, number: usize, already: usize) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..number).map(|_| server.client()).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        client.wait_for_message(key);
        c.until_blocked(already + n + 1);
    }
    clients
}

/// Checks that each client gets a different message, at its first delivery.
#[track_caller]
fn expect_one_each(clients: &mut [Client]) -> HashSet<String> {
    let mut ids = HashSet::new();
    for client in clients.iter_mut() {
        let message = client.served();
        assert_eq!(message.attempt, 1);
        assert!(ids.insert(message.id.clone()), "{} came twice", message.id);
    }
    ids
}

#[test]
fn maxinflight_of_one_holds_for_fifty_blocked_clients() {
    const CLIENTS: usize = 50;
    const MESSAGES: usize = 500;
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXINFLIGHT 1");
    let holding = Arc::new(AtomicUsize::new(0));
    let consumers: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (mut c, holding) = (server.client(), holding.clone());
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                loop {
                    c.wait_for_message("q");
                    let message = c.served();
                    assert_eq!(holding.fetch_add(1, Ordering::SeqCst), 0, "one in flight at a time");
                    assert_eq!(message.attempt, 1);
                    holding.fetch_sub(1, Ordering::SeqCst);
                    assert_eq!(c.ack(format!("q {}", message.receipt())), 1);
                    if message.payload == b"stop" {
                        return seen;
                    }
                    seen.push(message.id);
                }
            })
        })
        .collect();
    c.until_blocked(CLIENTS);
    c.pipeline((0..MESSAGES).map(|n| format!("DQ.PUSH q work ID m{n} DELAY {}", n % 20)));
    // One for each, behind all work.
    c.pipeline((0..CLIENTS).map(|n| format!("DQ.PUSH q stop ID s{n} PRIORITY -1 DELAY 30")));
    let mut ids = HashSet::new();
    for id in consumers.into_iter().flat_map(|consumer| consumer.join().expect("no reply was wrong")) {
        assert!(ids.insert(id.clone()), "{id} came twice");
    }
    assert_eq!(ids.len(), MESSAGES);
    assert_eq!((c.counts("q"), c.about("q").int("lease-expired")), ([0; 4], 0));
}

#[test]
fn a_hundred_clients_blocked_by_a_pause_are_all_served() {
    const CLIENTS: usize = 100;
    let server = Server::start();
    let mut c = server.client();
    c.create("q");
    let mut clients = waiting_clients(&server, &mut c, "q", CLIENTS, 0);
    c.pause("q");
    c.pipeline((0..CLIENTS).map(|n| format!("DQ.PUSH q x ID m{n} DELAY {}", n % 2 * 20)));
    eventually("all are ready", || c.len("q ready") == CLIENTS as i64);
    c.until_blocked(CLIENTS);
    assert_eq!(c.about("q").int("delivered"), 0);
    c.resume("q");
    assert_eq!(expect_one_each(&mut clients).len(), CLIENTS);
    assert_eq!(c.counts("q"), [0, 0, CLIENTS as i64, 0]);
}

#[test]
fn a_pause_races_with_push_and_resume_without_loss() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q");
    for round in 0..50 {
        let mut clients = waiting_clients(&server, &mut c, "q", 3, 0);
        let push = format!("DQ.PUSH q x ID a{round}");
        let batch = format!("DQ.MPUSH q 2 x x IDS b{round} c{round}");
        match round % 3 {
            0 => drop(c.multi(&[&push, "DQ.PAUSE q", &batch, "DQ.RESUME q"])),
            1 => drop(c.pipeline([&push, "DQ.PAUSE q", &batch, "DQ.RESUME q"])),
            _ => drop(c.multi(&["DQ.PAUSE q", &push, "DQ.RESUME q", &batch])),
        }
        expect_one_each(&mut clients);
    }
}

#[test]
fn a_message_cancelled_in_flight_makes_its_receipt_stale() {
    let server = Server::start();
    let (mut c, mut holder) = (server.client(), server.client());
    for round in 0..100 {
        c.push(format!("q x ID m{round}"));
        holder.wait_for_message("q");
        let receipt = holder.served().receipt().to_owned();
        // Both are sent at the same time: whichever comes first, the message is delivered once.
        holder.send(format!("DQ.ACK q {receipt}"));
        c.send(format!("DQ.CANCEL q m{round}"));
        let (acked, cancelled) = (holder.receive().int(), c.receive());
        let cancelled = i64::from(!cancelled.items()[0].is_null());
        assert_eq!(acked + cancelled, 1, "round {round}");
        assert_eq!(holder.ack(format!("q {receipt}")), 0);
    }
    assert_eq!(c.counts("q"), [0; 4]);
}

#[test]
fn a_message_replaced_in_flight_makes_its_old_receipt_stale() {
    let server = Server::start();
    let (mut c, mut holder) = (server.client(), server.client());
    for round in 0..100 {
        c.push("q old ID m");
        holder.wait_for_message("q");
        let old = holder.served().receipt().to_owned();
        let mut next = waiting_clients(&server, &mut c, "q", 1, 0);
        holder.send(format!("DQ.ACK q {old}"));
        c.push("q new ID m REPLACE");
        let acked = holder.receive().int();
        let message = next[0].served();
        assert_eq!((message.payload.as_slice(), message.attempt), (b"new".as_slice(), 1), "round {round}: {acked}");
        assert_eq!(holder.ack(format!("q {old}")), 0);
        assert!(holder.ask(format!("DQ.NACK q {old}")).is_null());
        assert_eq!(c.state("q", "m"), "inflight");
        assert_eq!(next[0].ack(format!("q {}", message.receipt())), 1);
    }
    assert_eq!(c.counts("q"), [0; 4]);
}

#[test]
fn whatever_makes_room_wakes_blocked_clients() {
    for (line, served) in [
        ("DQ.ACK q a", "b"),
        ("DQ.NACK q a DEAD", "b"),
        ("DQ.NACK q a DELAY 600000", "b"),
        ("DQ.NACK q a DELAY 0", "b"),
        // It goes back to its old place, the first.
        ("DQ.EXTEND q a LEASE 20", "a"),
        ("DQ.CANCEL q a", "b"),
        ("DQ.BURY q a", "b"),
        ("DQ.NACK q a NOCOUNT", "a"),
        ("DQ.NACK q a NOCOUNT DELAY 600000", "b"),
        ("DQ.PURGE q inflight COUNT 1", "b"),
        ("DQ.PURGE q inflight", "b"),
        ("DQ.PURGE q inflight delayed dead", "b"),
        ("DQ.PUSH q x ID a REPLACE DELAY 600000", "b"),
        ("DQ.MPUSH q 1 x IDS a REPLACE DELAY 600000", "b"),
        ("DQ.ALTER q MAXINFLIGHT 2", "b"),
        ("DQ.ALTER q LEASE 5000 MAXINFLIGHT 0", "b"),
    ] {
        let server = Server::start();
        let mut c = server.client();
        c.create("q MAXINFLIGHT 1");
        for (id, at) in [("a", 1_000_000_001_000i64), ("b", 1_000_000_002_000)] {
            c.push(format!("q x ID {id} AT {at}"));
        }
        assert_eq!(c.pop_ids("q LEASE 600000"), ["a"]);
        let mut clients = waiting_clients(&server, &mut c, "q", 1, 0);
        assert!(!matches!(c.ask(line), Reply::Error(_) | Reply::Int(0)), "{line}");
        assert_eq!(clients[0].served().id, served, "{line}");
    }
}

#[test]
fn whatever_makes_a_message_ready_wakes_blocked_clients() {
    for (line, served) in [
        ("DQ.PUSH q x ID new", "new"),
        ("DQ.MPUSH q 2 x x IDS new newer", "new"),
        ("DQ.RESCHEDULE q later DELAY 0", "later"),
        ("DQ.RESCHEDULE q later DELAY 30", "later"),
        ("DQ.PROMOTE q", "later"),
        ("DQ.PROMOTE q COUNT 1", "later"),
        ("DQ.NACK q flying NOCOUNT", "flying"),
        ("DQ.PUSH q x ID later REPLACE", "later"),
        ("DQ.REDRIVE q", "dead"),
        ("DQ.REDRIVE q IDS 1 dead DELAY 30", "dead"),
        ("DQ.NACK q flying DELAY 0", "flying"),
        ("DQ.NACK q flying DELAY 30", "flying"),
        ("DQ.EXTEND q flying LEASE 30", "flying"),
    ] {
        for several in [false, true] {
            let server = Server::start();
            let (mut c, mut waiting) = (server.client(), server.client());
            c.bury("q", &["dead"]);
            c.push("q x ID flying");
            c.pop_one("q LEASE 600000");
            c.push("q x ID later DELAY 600000");
            if several {
                waiting.wait_for_any(&["other", "q"]);
            } else {
                waiting.wait_for_message("q");
            }
            c.until_blocked(1);
            assert!(!matches!(c.ask(line), Reply::Error(_) | Reply::Int(0)), "{line}");
            let id = if several { waiting.served_from_any().1.id } else { waiting.served().id };
            assert_eq!(id, served, "{line}");
        }
    }
}

#[test]
fn what_makes_no_message_ready_wakes_nobody() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXINFLIGHT 2");
    c.push_many("q 3 x x x IDS a b c");
    c.pop("q COUNT 2 LEASE 600000");
    let mut clients = waiting_clients(&server, &mut c, "q", 1, 0);
    for line in [
        "DQ.ALTER q LEASE 5",
        "DQ.ALTER q MAXINFLIGHT 1",
        "DQ.EXTEND q a LEASE 600000",
        "DQ.PAUSE q",
        "DQ.ACK q a",
        "DQ.ACK q b",
        "DQ.RESCHEDULE q c DELAY 600000",
        "DQ.RESUME q",
        "DQ.PEEK q delayed",
        "DQ.SCAN q 0",
        "DQ.MPUSH q 1 x IDS c",
    ] {
        assert!(!matches!(c.ask(line), Reply::Error(_)), "{line}");
        c.until_blocked(1);
    }
    assert_eq!(c.about("q").int("delivered"), 2);
    c.push("q x ID d");
    assert_eq!(clients[0].served().id, "d");
}

/// What can happen to a key while clients wait for it. Afterwards it holds no queue, or an empty one.
const UPHEAVALS: [(&str, &[&str]); 10] = [
    ("deleted", &["DEL q"]),
    ("deleted and made again", &["DEL q", "DQ.CREATE q", "DEL q", "DQ.CREATE q"]),
    ("renamed away", &["RENAME q aside"]),
    ("renamed away and back", &["RENAME q aside", "RENAME aside q", "RENAME q aside", "RENAME aside q"]),
    ("replaced by another type", &["SET q text", "DEL q"]),
    ("replaced by a list, in a transaction", &["MULTI", "DEL q", "LPUSH q item", "EXEC", "DEL q"]),
    ("flushed", &["FLUSHALL"]),
    ("flushed in the background, and again", &["FLUSHALL ASYNC", "DQ.CREATE q", "FLUSHDB"]),
    ("swapped with an empty database", &["SWAPDB 0 1"]),
    ("swapped there and back", &["SWAPDB 0 1", "SWAPDB 0 1"]),
];

#[test]
fn whatever_happens_to_the_key_every_blocked_client_is_served() {
    const CLIENTS: usize = 10;
    for (upheaval, lines) in UPHEAVALS {
        let server = Server::start();
        let (mut c, mut other) = (server.client(), server.client());
        c.create("q");
        let mut clients = waiting_clients(&server, &mut c, "q", CLIENTS, 0);
        let mut several = server.client();
        several.wait_for_any(&["q", "unused"]);
        c.until_blocked(CLIENTS + 1);
        for line in lines {
            assert!(!matches!(other.ask(line), Reply::Error(_)), "{upheaval}: {line}");
        }
        c.until_blocked(CLIENTS + 1);
        // Half of them are due at once, the others later.
        for n in 0..=CLIENTS {
            c.push(format!("q x ID m{n} DELAY {}", n % 2 * 20));
        }
        let mut ids = expect_one_each(&mut clients);
        let (key, message) = several.served_from_any();
        assert_eq!(key, "q", "{upheaval}");
        assert!(ids.insert(message.id), "{upheaval}: one came twice");
        assert_eq!(c.counts("q"), [0, 0, CLIENTS as i64 + 1, 0], "{upheaval}");
        eventually("nobody waits", || c.info("dq", "dq_blocked_clients") == "0");
    }
}

#[test]
fn a_receipt_is_valid_after_the_queue_comes_back() {
    for lines in [["RENAME q aside", "RENAME aside q"], ["SWAPDB 0 1", "SWAPDB 1 0"], ["MOVE q 1", "SWAPDB 0 1"]] {
        let server = Server::start();
        let mut c = server.client();
        c.create("q MAXINFLIGHT 1");
        c.push_many("q 2 x x IDS a b");
        let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
        let mut clients = waiting_clients(&server, &mut c, "q", 1, 0);
        c.ask(lines[0]);
        assert_eq!(c.ack(format!("q {receipt}")), 0, "{lines:?}: it is not there");
        c.ask(lines[1]);
        assert_eq!(c.ack(format!("q {receipt}")), 1, "{lines:?}");
        assert_eq!(clients[0].served().id, "b", "{lines:?}");
    }
}

#[test]
fn a_queue_moved_under_its_consumers_loses_and_repeats_nothing() {
    const CONSUMERS: usize = 20;
    const MESSAGES: usize = 4_000;
    let server = Server::start();
    let mut c = server.client();
    c.create("q");
    let consumers: Vec<_> = (0..CONSUMERS)
        .map(|n| {
            let mut c = server.client();
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                loop {
                    let message = if n % 2 == 0 {
                        c.wait_for_message("q");
                        c.served()
                    } else {
                        c.wait_for_any(&["aside", "q"]);
                        c.served_from_any().1
                    };
                    assert_eq!(message.attempt, 1);
                    if message.payload == b"stop" {
                        return seen;
                    }
                    seen.push(message.id);
                }
            })
        })
        .collect();
    c.until_blocked(CONSUMERS);
    let stop = Arc::new(AtomicBool::new(false));
    let mover = {
        let (mut c, stop) = (server.client(), stop.clone());
        std::thread::spawn(move || {
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return n;
                }
                // In one transaction: a push in between would create another queue of that name.
                match n % 4 {
                    0 => drop(c.multi(&["RENAME q away", "RENAME away q"])),
                    1 => drop(c.multi(&["SWAPDB 0 1", "SWAPDB 0 1"])),
                    2 => drop(c.multi(&["DQ.PAUSE q", "RENAME q away", "RENAME away q", "DQ.RESUME q"])),
                    _ => drop(c.multi(&["COPY q away", "DEL q", "SET q text", "DEL q", "RENAME away q"])),
                }
            }
            0
        })
    };
    for n in 0..MESSAGES {
        c.push(format!("q x ID m{n} DELAY {}", n % 5));
    }
    eventually("all were delivered", || c.about("q").int("delivered") == MESSAGES as i64);
    stop.store(true, Ordering::Relaxed);
    assert!(mover.join().expect("it moved") > 0);
    for _ in 0..CONSUMERS {
        c.push("q stop");
    }
    let mut ids = HashSet::new();
    for id in consumers.into_iter().flat_map(|consumer| consumer.join().expect("no reply was wrong")) {
        assert!(ids.insert(id.clone()), "{id} came twice");
    }
    assert_eq!(ids.len(), MESSAGES);
}

#[test]
fn concurrent_cancel_reschedule_and_consume_agree_on_each_message() {
    const MESSAGES: usize = 2_000;
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETRIES -1 BACKOFF 1 1");
    c.pipeline((0..MESSAGES).map(|n| format!("DQ.PUSH q x ID m{n} DELAY {}", n % 50)));
    let gone = Arc::new(AtomicUsize::new(0));
    let consumers = (0..4).map(|_| {
        let (mut c, gone) = (server.client(), gone.clone());
        std::thread::spawn(move || {
            let mut seen = Vec::new();
            until_counted(&gone, MESSAGES, || {
                for message in c.pop("q COUNT 3 BLOCK 20 LEASE 600000") {
                    if message.attempt == 1 && message.id.ends_with('3') {
                        // Null if it was cancelled in the meantime.
                        c.ask(format!("DQ.NACK q {}", message.receipt()));
                    } else if c.ack(format!("q {}", message.receipt())) == 1 {
                        gone.fetch_add(1, Ordering::Relaxed);
                        seen.push(message.id);
                    }
                }
            });
            seen
        })
    });
    let cancellers = (0..2).map(|half| {
        let (mut c, gone) = (server.client(), gone.clone());
        std::thread::spawn(move || {
            let mut seen = Vec::new();
            for n in (half..MESSAGES).step_by(4) {
                c.ask(format!("DQ.RESCHEDULE q m{} DELAY 3", n + 1));
                let id = format!("m{n}");
                if c.cancel(format!("q {id}")) != ["absent"] {
                    gone.fetch_add(1, Ordering::Relaxed);
                    seen.push(id);
                }
            }
            seen
        })
    });
    let threads: Vec<_> = consumers.chain(cancellers).collect();
    let mut ids = HashSet::new();
    for id in threads.into_iter().flat_map(|thread| thread.join().expect("no reply was wrong")) {
        assert!(ids.insert(id.clone()), "{id} was completed twice");
    }
    assert_eq!((ids.len(), c.counts("q")), (MESSAGES, [0; 4]));
    let about = c.about("q");
    assert_eq!(about.int("acked") + about.int("cancelled"), MESSAGES as i64);
}
