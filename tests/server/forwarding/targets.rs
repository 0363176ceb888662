//! Each kind of target gets due messages, in order, in the form that its consumers need.

use super::{elements, entries, ids, until_forwarded};
use crate::support::{in_both_protocols, late_ms, Clock, Protocol, Reply, Server};

#[test]
fn a_stream_gets_what_is_due_in_delivery_order() {
    in_both_protocols(|c| {
        c.create("q FORWARD STREAM s");
        c.pause("q");
        c.push_many("q 2 low lower IDS c d PRIORITY -1");
        c.push_many("q 2 one two IDS a b");
        let generated = c.push("q x PRIORITY -2");
        c.push("q x DELAY 600000");
        c.resume("q");
        until_forwarded(c, "q", 5);
        assert_eq!(ids(c, "s"), ["a", "b", "c", "d", &generated]);
        let first = &entries(c, "s")[0];
        assert_eq!(first.names(), ["due", "id", "payload"]);
        assert_eq!(first.text("payload"), "one");
        assert!(first.text("due").parse::<i64>().unwrap() <= c.now());
        assert_eq!(c.counts("q"), [1, 0, 0, 0]);
        let about = c.about("q");
        assert_eq!((about.int("delivered"), about.int("forwarded"), about.int("acked")), (5, 5, 0));
        assert_eq!(about.text("forward"), "STREAM s");
        assert!(about.get("forward-error").is_null() && about.get("forward-failing-since").is_null());
    });
}

#[test]
fn a_consumer_group_works_on_delayed_messages() {
    let server = Server::start();
    let (mut c, mut worker) = (server.client(), server.client());
    c.ask("XGROUP CREATE s workers $ MKSTREAM").ok();
    c.create("q FORWARD STREAM s");
    worker.send("XREADGROUP GROUP workers w BLOCK 0 STREAMS s >");
    let due = c.now() + 50;
    c.push(format!("q hello ID m AT {due}"));
    let read = worker.receive();
    let entry = &read.items()[0].items()[1].items()[0];
    let (id, fields) = (entry.items()[0].text(), entry.items()[1].fields());
    assert_eq!((fields.text("id"), fields.text("payload")), ("m".to_owned(), "hello".to_owned()));
    assert_eq!(fields.text("due"), due.to_string());
    let written: i64 = id.split('-').next().unwrap().parse().unwrap();
    assert!((due..=due + late_ms()).contains(&written), "{written} for {due}");
    assert_eq!(worker.ask(format!("XACK s workers {id}")), Reply::Int(1));
}

#[test]
fn no_entry_of_a_stream_is_older_than_its_due_time() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let mut c = server.client();
    c.create("q FORWARD STREAM s");
    let due = c.now() + 1_000;
    c.pipeline((0..5_000).map(|n| format!("DQ.PUSH q x AT {}", due + n)));
    clock.pass_at_each_reading();
    until_forwarded(&mut c, "q", 5_000);
    for entry in c.ask("XRANGE s - +").items() {
        let (id, due) = (entry.items()[0].text(), entry.items()[1].fields().text("due"));
        assert!(id.split('-').next() >= Some(due.as_str()), "{id} for {due}");
    }
}

#[test]
fn a_stream_is_trimmed_to_about_its_limit() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD STREAM s TRIM 50");
    let words: Vec<String> = (0..1_000).map(|n| format!("x{n}")).collect();
    c.push_many(format!("q 1000 {}", words.join(" ")));
    until_forwarded(&mut c, "q", 1_000);
    let length = c.ask("XLEN s").int();
    assert!((50..=250).contains(&length), "{length}");
    assert_eq!(entries(&mut c, "s").last().unwrap().text("payload"), "x999");
    assert_eq!(c.about("q").text("forward"), "STREAM s TRIM 50");
}

#[test]
fn a_list_gets_payloads_at_the_chosen_end() {
    in_both_protocols(|c| {
        for (words, expected) in [("l", ["a", "b", "c"]), ("l RIGHT", ["a", "b", "c"]), ("l LEFT", ["c", "b", "a"])] {
            c.ask("FLUSHALL").ok();
            c.create(format!("q FORWARD LIST {words}"));
            c.push_many("q 3 a b c");
            until_forwarded(c, "q", 3);
            assert_eq!(elements(c, "l"), expected, "{words}");
            assert_eq!(c.about("q").text("forward"), format!("LIST {words}"));
        }
    });
}

#[test]
fn a_blocked_list_worker_gets_a_delayed_message() {
    let server = Server::start();
    let (mut c, mut worker) = (server.client(), server.client());
    c.create("q FORWARD LIST l");
    worker.send("BLPOP l 0");
    c.push("q job DELAY 50");
    assert_eq!(worker.receive().items()[1].text(), "job");
}

#[test]
fn a_payload_of_any_bytes_arrives_unchanged() {
    let server = Server::start();
    let mut c = server.client();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    c.create("q FORWARD LIST l");
    c.create("r FORWARD STREAM s");
    for queue in [b"q", b"r"] {
        c.cmd(&[&b"DQ.PUSH"[..], queue, &bytes]);
        c.cmd(&[&b"DQ.PUSH"[..], queue, b""]);
    }
    until_forwarded(&mut c, "q", 2);
    until_forwarded(&mut c, "r", 2);
    assert_eq!(c.ask("LINDEX l 0").bytes(), bytes);
    assert_eq!(c.ask("LINDEX l 1").bytes(), b"");
    let payloads: Vec<_> = entries(&mut c, "s").iter().map(|entry| entry.get("payload").bytes().to_vec()).collect();
    assert_eq!(payloads, [bytes, Vec::new()]);
}

#[test]
fn the_set_of_a_list_names_its_queue() {
    in_both_protocols(|c| {
        c.create("q FORWARD LIST queue:mail LEFT REGISTER queues mail");
        assert_eq!(c.ask("EXISTS queues"), Reply::Int(0), "nothing was written yet");
        c.push("q job");
        until_forwarded(c, "q", 1);
        assert_eq!(c.ask("SISMEMBER queues mail"), Reply::Int(1));
        c.ask("DEL queues");
        c.push("q job");
        until_forwarded(c, "q", 2);
        assert_eq!(c.ask("SISMEMBER queues mail"), Reply::Int(1), "whenever something is written");
        assert_eq!(c.about("q").text("forward"), "LIST queue:mail LEFT REGISTER queues mail");
    });
}

#[test]
fn subscribers_of_a_channel_get_what_is_due() {
    let server = Server::start();
    let (mut c, mut subscriber) = (server.client(), server.client());
    subscriber.ask("SUBSCRIBE news");
    c.create("q FORWARD CHANNEL news");
    c.push_many("q 2 one two DELAY 20");
    for payload in ["one", "two"] {
        assert_eq!(subscriber.receive(), Reply::Array(["message", "news", payload].map(Reply::bulk).to_vec()));
    }
    until_forwarded(&mut c, "q", 2);
    assert_eq!(c.about("q").text("forward"), "CHANNEL news");
    assert_eq!(c.ask("EXISTS news"), Reply::Int(0));
}

#[test]
fn a_schedule_waits_for_its_next_run_after_each() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD STREAM s");
    c.ask("DQ.SCHEDULE q tick x EVERY 40 TIMES 3");
    until_forwarded(&mut c, "q", 3);
    assert_eq!(ids(&mut c, "s"), ["tick"; 3]);
    let due: Vec<i64> = entries(&mut c, "s").iter().map(|entry| entry.text("due").parse().unwrap()).collect();
    assert!(due.iter().all(|due| due % 40 == 0) && due[0] < due[1] && due[1] < due[2], "{due:?}");
    assert_eq!(c.state("q", "tick"), "absent", "the series is over");
}

#[test]
fn an_id_stays_known_after_it_was_forwarded() {
    in_both_protocols(|c| {
        c.create("q DEDUPE 600000 FORWARD LIST l");
        c.push("q x ID m");
        until_forwarded(c, "q", 1);
        assert!(c.ask("DQ.PUSH q x ID m").is_null());
        assert_eq!(c.about("q").int("known"), 1);
        assert_eq!(c.cancel("q m"), ["known"]);
        c.push("q x ID m");
        until_forwarded(c, "q", 2);
    });
}

#[test]
fn a_retried_message_is_forwarded_too() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    c.alter("q FORWARD STREAM s");
    assert_eq!(c.state("q", "m"), "inflight", "it has its consumer");
    c.nack(format!("q {receipt} DELAY 0"));
    until_forwarded(&mut c, "q", 1);
    assert_eq!(ids(&mut c, "s"), ["m"]);
    assert_eq!(c.ack(format!("q {receipt}")), 0);
}

#[test]
fn forwarding_announces_an_event_and_counts_as_a_delivery() {
    let server = Server::with(&["--notify-keyspace-events", "KEA"]);
    let (mut c, mut subscriber) = (server.client(), server.client_with(Protocol::Resp2));
    subscriber.ask("SUBSCRIBE __keyspace@0__:q");
    c.create("q FORWARD LIST l");
    c.push("q x DELAY 30");
    let mut events = Vec::new();
    while events.last().map(String::as_str) != Some("dq.forward") {
        events.push(subscriber.receive().items()[2].text());
    }
    assert_eq!(events, ["dq.create", "dq.push", "dq.ready", "dq.forward"]);
    let stats = c.ask("DQ.STATS q").fields();
    assert_eq!(stats.get("lateness").items().last().unwrap().items()[1], Reply::Int(1));
    assert_eq!(c.info("dq", "dq_total_forwarded"), "1");
    assert!(c.info("dq", "dq_lateness_ms").ends_with("le_inf=1"));
}

#[test]
fn watchers_see_that_a_message_was_forwarded() {
    let server = Server::start();
    let (mut c, mut watcher) = (server.client(), server.client());
    c.create("q FORWARD LIST l");
    c.push("q x DELAY 60");
    watcher.ask("WATCH q").ok();
    until_forwarded(&mut c, "q", 1);
    watcher.ask("MULTI").ok();
    watcher.ask("PING");
    assert!(watcher.ask("EXEC").is_null());
}

#[test]
fn many_due_at_once_are_forwarded_in_portions() {
    const MANY: i64 = 20_000;
    let server = Server::with(&["--dq.timer-budget", "100"]);
    let mut c = server.client();
    c.create("q FORWARD STREAM s");
    c.pause("q");
    for start in (0..MANY).step_by(1_000) {
        let words: Vec<String> = (start..start + 1_000).map(|n| n.to_string()).collect();
        c.push_many(format!("q 1000 {}", words.join(" ")));
    }
    // Another client sends commands all the time, and does not depend on when it gets to run.
    let lines = ["DQ.RESUME q"].into_iter().chain(["XLEN s"; 10_000]).collect::<Vec<_>>();
    let seen: Vec<i64> = c.replies_to(&lines)[1..].iter().map(Reply::int).collect();
    until_forwarded(&mut c, "q", MANY);
    assert!(seen.iter().any(|length| (1..MANY).contains(length)), "other clients are served meanwhile");
    assert!(c.info("dq", "dq_timer_over_budget").parse::<u64>().unwrap() > 10);
    let payloads: Vec<i64> = entries(&mut c, "s").iter().map(|entry| entry.text("payload").parse().unwrap()).collect();
    assert_eq!((0..MANY).collect::<Vec<i64>>(), payloads);
}
