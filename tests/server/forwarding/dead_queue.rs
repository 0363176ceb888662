//! Dead messages move to another queue (`DEADFORWARD QUEUE`), a dead letter queue with consumers of its own.

use super::dead::{bury, refusal_of, until_moved};
use crate::support::{eventually, in_both_protocols, Client, Cluster, Fields, Reply, Server};

/// The headers of a message.
fn headers(c: &mut Client, queue: &str, id: &str) -> Fields {
    c.get(queue, id).get("headers").fields()
}

#[test]
fn a_message_arrives_with_how_it_died() {
    in_both_protocols(|c| {
        c.create("q RETRIES 0 DEADFORWARD QUEUE dlq");
        assert_eq!(c.about("q").text("deadforward"), "QUEUE dlq");
        c.push("q work ID m PRIORITY 7 GROUP g HEADERS 2 tenant t1 dq-queue mine");
        let receipt = c.pop_one("q").receipt().to_owned();
        c.nack(format!("q {receipt} ERROR broken"));
        until_moved(c, "q", 1);
        let found = c.get("dlq", "m");
        assert_eq!((found.text("payload"), found.text("state")), ("work".into(), "ready".into()));
        assert_eq!((found.int("priority"), found.int("attempt"), found.has("group")), (7, 0, false));
        let headers = headers(c, "dlq", "m");
        for (name, value) in [
            ("tenant", "t1"),
            ("dq-queue", "q"),
            ("dq-reason", "retries"),
            ("dq-error", "broken"),
            ("dq-attempts", "1"),
        ] {
            assert_eq!(headers.text(name), value, "{name}");
        }
        let died: i64 = headers.text("dq-died").parse().expect("Unix ms");
        assert!((1..=c.now()).contains(&died));
        assert_eq!(c.about("dlq").int("pushed"), 1);
        c.ask("DEL q dlq");
    });
}

#[test]
fn an_id_that_the_target_holds_or_knows_is_replaced() {
    let server = Server::start();
    let mut c = server.client();
    c.create("dlq DEDUPE 600000");
    c.create("q DEADFORWARD QUEUE dlq");
    c.push("dlq known ID known");
    assert_eq!(c.pop_ids("dlq NOACK"), ["known"]);
    c.push("dlq held ID held");
    c.push("dlq dead ID dead");
    bury(&mut c, "dlq", &["dead"]);
    c.push_many("q 4 x x x x IDS known held dead new");
    bury(&mut c, "q", &["known", "held", "dead", "new"]);
    until_moved(&mut c, "q", 4);
    assert_eq!((c.len("dlq ready"), c.len("dlq dead")), (5, 1));
    assert_eq!(c.get("dlq", "new").text("payload"), "x");
    assert_eq!(c.get("dlq", "held").text("payload"), "held");
    assert!(!headers(&mut c, "dlq", "new").has("dq-id"), "it has the id that it had");
    let moved = c.scan("dlq 0 COUNT 100 STATE ready").1;
    let first_ids = moved.iter().filter(|message| message.has("headers"));
    let mut first_ids: Vec<String> = first_ids
        .map(|message| message.get("headers").fields())
        .filter(|all| all.has("dq-id"))
        .map(|all| all.text("dq-id"))
        .collect();
    first_ids.sort();
    assert_eq!(first_ids, ["dead", "held", "known"]);
}

#[test]
fn a_generated_id_is_told_through_all_moves() {
    in_both_protocols(|c| {
        c.create("one DEADFORWARD QUEUE two");
        c.create("two DEADFORWARD QUEUE three");
        c.create("three");
        let id = c.push("one x HEADERS 1 tenant t1");
        c.ask(format!("DQ.BURY one {id}"));
        until_moved(c, "one", 1);
        let second = c.scan("two 0").1[0].text("id");
        assert_ne!(second, id);
        c.ask(format!("DQ.BURY two {second}"));
        until_moved(c, "two", 1);
        let third = c.scan("three 0").1[0].text("id");
        let headers = headers(c, "three", &third);
        assert_eq!(
            (headers.text("dq-id"), headers.text("dq-queue"), headers.text("tenant")),
            (id, "two".into(), "t1".into())
        );
        c.ask("DEL one two three");
    });
}

#[test]
fn a_blocked_client_of_the_target_is_served() {
    let server = Server::start();
    let (mut c, mut worker) = (server.client(), server.client());
    c.create("q DEADFORWARD QUEUE dlq");
    c.create("dlq");
    worker.wait_for_message("dlq");
    c.until_blocked(1);
    c.push("q x ID m TTL 20");
    assert_eq!(worker.served().id, "m");
    until_moved(&mut c, "q", 1);
}

#[test]
fn a_full_target_or_one_that_refuses_the_size_is_tried_again() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q DEADFORWARD QUEUE dlq");
    for (settings, error, more) in
        [("MAXLEN 1", "QUEUEFULL", "MAXLEN 9"), ("MAXPAYLOAD 1 MAXLEN 9", "TOOLARGE", "MAXPAYLOAD 0")]
    {
        c.alter(format!("dlq MKQUEUE {settings}"));
        c.push("dlq x ID first");
        let before = c.about("q").int("deadforwarded");
        c.push("q large ID m");
        bury(&mut c, "q", &["m"]);
        assert!(refusal_of(&mut c, "q").starts_with(error));
        assert_eq!((c.state("q", "m"), c.len("dlq")), ("dead".to_owned(), 1));
        c.alter(format!("dlq {more}"));
        until_moved(&mut c, "q", before + 1);
        assert_eq!(c.get("dlq", "m").text("payload"), "large");
        c.ask("DEL dlq");
    }
    c.ask("SET dlq text").ok();
    c.push("q x ID m");
    bury(&mut c, "q", &["m"]);
    assert!(refusal_of(&mut c, "q").starts_with("WRONGTYPE"));
    c.ask("DEL dlq");
    until_moved(&mut c, "q", 3);
}

#[test]
fn messages_stay_dead_while_memory_is_low() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q DEADFORWARD QUEUE dlq");
    c.at_once(["DQ.PUSH q x ID m TTL 30", "CONFIG SET maxmemory 1"]);
    assert!(refusal_of(&mut c, "q").starts_with("OOM"));
    assert_eq!((c.state("q", "m"), c.ask("EXISTS dlq").int()), ("dead".to_owned(), 0));
    c.configure("maxmemory", 0);
    until_moved(&mut c, "q", 1);
}

#[test]
fn a_chain_of_queues_ends_in_the_last_one() {
    let server = Server::start();
    let mut c = server.client();
    c.create("one DEADFORWARD QUEUE two");
    c.create("two TTL 1 DEADFORWARD QUEUE three");
    c.push("one x ID m HEADERS 1 a 1");
    bury(&mut c, "one", &["m"]);
    until_moved(&mut c, "two", 1);
    let headers = headers(&mut c, "three", "m");
    assert_eq!(
        (headers.text("dq-queue"), headers.text("dq-reason"), headers.text("a")),
        ("two".into(), "expired".into(), "1".into())
    );
    assert_eq!((c.len("one"), c.len("two"), c.len("three")), (0, 0, 1));
}

#[test]
fn a_message_with_the_most_headers_moves_with_more() {
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    c.create("q DEADFORWARD QUEUE dlq");
    let pairs: Vec<String> = (0..64).map(|nth| format!("h{nth} {}", "v".repeat(250))).collect();
    // What follows a batch has headers of its own already.
    c.ask(format!("DQ.BATCH q b THEN x ID m HEADERS 64 {}", pairs.join(" ")));
    c.push("dlq x ID m");
    bury(&mut c, "q", &["m"]);
    until_moved(&mut c, "q", 1);
    c.cancel("dlq m");
    let m = c.scan("dlq 0").1[0].text("id");
    let digest = c.digest("dlq");
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("dlq"), digest);
    let all = headers(&mut c, "dlq", &m);
    assert_eq!(["dq-queue", "dq-id", "dq-batch"].map(|name| all.text(name)), ["q", "m", "b"]);
    server.restart_from_rdb();
    assert_eq!(server.client().digest("dlq"), digest);
}

#[test]
fn a_replica_has_both_queues_of_a_move() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &["--notify-keyspace-events", "KEA"]);
    let (mut c, mut r, mut subscriber) = (master.client(), replica.client(), replica.client());
    subscriber.ask("SUBSCRIBE __keyspace@0__:dlq");
    c.create("q DEADFORWARD QUEUE dlq");
    c.push_many("q 200 ".to_owned() + &vec!["x"; 200].join(" ") + " TTL 1");
    until_moved(&mut c, "q", 200);
    assert_eq!(subscriber.receive().items()[2].text(), "dq.push");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!(c.ask("DEBUG DIGEST"), r.ask("DEBUG DIGEST"));
    assert_eq!((r.len("dlq"), r.len("q")), (200, 0));
}

#[test]
fn a_kill_leaves_each_message_in_one_of_both_queues() {
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    c.create("q DEADFORWARD QUEUE dlq");
    for round in 1..=3_usize {
        c.send("DQ.MPUSH q 2000 ".to_owned() + &vec!["x"; 2_000].join(" ") + " TTL 1");
        c.receive();
        eventually("some are moved", || c.len("dlq") as usize > (round - 1) * 2_000);
        server.kill9();
        server.boot();
        c = server.client();
        let replies = c.multi(&["DQ.SCAN q 0 COUNT 10000", "DQ.SCAN dlq 0 COUNT 10000"]);
        let held: Vec<usize> = replies.iter().map(|reply| reply.items()[1].items().len()).collect();
        assert_eq!(held[0] + held[1], round * 2_000, "{held:?}");
    }
}

#[test]
fn a_queue_renamed_to_its_target_keeps_its_dead() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q DEADFORWARD QUEUE dlq");
    c.push("q x ID m DELAY 600000");
    c.ask("RENAME q dlq").ok();
    bury(&mut c, "dlq", &["m"]);
    assert_eq!(refusal_of(&mut c, "dlq"), "ERR a queue cannot forward to itself");
    assert_eq!(c.state("dlq", "m"), "dead");
}

#[test]
fn in_a_cluster_both_queues_are_in_one_slot() {
    let cluster = Cluster::of(1, 60_000);
    let mut c = cluster.client(0);
    assert!(c.ask("DQ.CREATE {q} DEADFORWARD QUEUE dlq").error().starts_with("CROSSSLOT"));
    c.create("{q} DEADFORWARD QUEUE dlq{q}");
    c.push("{q} x ID m");
    bury(&mut c, "{q}", &["m"]);
    until_moved(&mut c, "{q}", 1);
    assert_eq!(c.len("dlq{q}"), 1);
}
