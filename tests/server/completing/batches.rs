//! Batches: a message follows when all members have ended, however they ended.

use crate::support::{eventually, in_both_protocols, Client, Clock, Fields, Reply, Server};

/// The counts of a batch: total, left, acked, dead, cancelled, closed.
fn counts(c: &mut Client, line: &str) -> [i64; 6] {
    let batch = c.ask(format!("DQ.BATCHINFO {line}")).fields();
    ["total", "left", "acked", "dead", "cancelled", "closed"].map(|field| batch.int(field))
}

/// How a batch ended, as the headers of what follows say: total, acked, dead, cancelled.
fn ended(shown: &Fields) -> [i64; 4] {
    let headers = shown.get("headers").fields();
    ["dq-batch-total", "dq-batch-acked", "dq-batch-dead", "dq-batch-cancelled"]
        .map(|header| headers.text(header).parse().unwrap())
}

/// A batch `b` of two members `m` and `n`, which `f` follows.
fn closed(c: &mut Client) {
    c.ask("DQ.MPUSH q 2 x y IDS m n BATCH b");
    assert_eq!(c.ask("DQ.BATCH q b THEN follows ID f"), Reply::Int(2));
}

#[test]
fn a_message_follows_when_all_members_have_ended() {
    in_both_protocols(|c| {
        c.ask("DQ.MPUSH q 4 1 2 3 4 IDS a b c d BATCH pages");
        c.push("q 5 ID e BATCH other");
        assert_eq!(c.get("q", "a").text("batch"), "pages");
        assert_eq!(counts(c, "q pages"), [4, 4, 0, 0, 0, 0]);
        assert_eq!(c.ask("DQ.BATCH q pages THEN bind ID f PRIORITY 3 HEADERS 1 own header"), Reply::Int(4));
        let batch = c.ask("DQ.BATCHINFO q pages").fields();
        assert_eq!((batch.text("then"), batch.text("then-id")), ("bind".into(), "f".into()));
        let popped = c.ask("DQ.POP q LEASE 600000 META");
        assert_eq!(popped.items()[0].items()[4].fields().text("batch"), "pages");
        assert_eq!(c.about("q").int("batches"), 2);
        c.ack("q a");
        c.cancel("q b");
        c.ask("DQ.BURY q c");
        assert!(!c.get("q", "c").has("batch"), "the dead are no members");
        assert_eq!(counts(c, "q pages"), [4, 1, 1, 1, 1, 1]);
        assert_eq!(c.state("q", "f"), "absent");
        let pushed = c.about("q").int("pushed");
        assert_eq!(c.pop_ids("q NOACK"), ["d"]);
        assert_eq!((c.state("q", "f").as_str(), c.about("q").int("pushed")), ("ready", pushed + 1));
        let follows = c.get("q", "f");
        assert_eq!((ended(&follows), follows.int("priority")), ([4, 2, 1, 1], 3));
        assert_eq!(follows.get("headers").fields().text("dq-batch"), "pages");
        assert_eq!(follows.get("headers").fields().text("own"), "header");
        assert_eq!((c.ask("DQ.BATCHINFO q pages"), c.about("q").int("batches")), (c.null_array(), 1));
        c.ask("DEL q");
    });
}

#[test]
fn a_batch_that_is_closed_without_members_ends_at_once() {
    in_both_protocols(|c| {
        assert_eq!(c.ask("DQ.BATCH q b THEN x ID f DELAY 600000"), Reply::Int(0));
        assert_eq!((c.state("q", "f").as_str(), ended(&c.get("q", "f"))), ("delayed", [0, 0, 0, 0]));
        c.push("q x ID m BATCH b");
        assert_eq!(counts(c, "q b"), [1, 1, 0, 0, 0, 0], "the name begins anew");
        c.ask("DEL q");
    });
}

#[test]
fn members_may_push_members_until_the_batch_has_ended() {
    let server = Server::start();
    let mut c = server.client();
    closed(&mut c);
    c.pop("q COUNT 2 LEASE 600000");
    c.push("q z ID o BATCH b DELAY 600000");
    assert_eq!((c.ack("q m n"), c.state("q", "f").as_str()), (2, "absent"));
    c.cancel("q o");
    assert_eq!(ended(&c.get("q", "f")), [3, 2, 0, 1]);
}

#[test]
fn the_ack_of_the_last_member_wakes_a_client() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    closed(&mut c);
    c.pop("q COUNT 2 LEASE 600000");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.ack("q m n");
    assert_eq!(waiting.served().id, "f");
}

#[test]
fn one_call_acks_the_last_member_and_delivers_what_follows() {
    let server = Server::with_aof(&[]);
    let mut c = server.client();
    closed(&mut c);
    c.pop("q COUNT 2 LEASE 600000");
    let reply = c.ask("DQ.ACKPOP q 2 m n LEASE 600000");
    assert_eq!((reply.items()[0].int(), reply.items()[1].items()[0].items()[0].text()), (2, "f".to_owned()));
}

#[test]
fn a_member_that_time_alone_kills_ends_too() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETRIES 0");
    c.ask("DQ.MPUSH q 2 x y IDS m n BATCH b TTL 50");
    c.push("q z ID o BATCH b");
    c.ask("DQ.BATCH q b THEN follows ID f");
    assert_eq!(c.pop("q COUNT 9 LEASE 1").len(), 3);
    eventually("what follows is there", || c.state("q", "f") == "ready");
    assert_eq!(ended(&c.get("q", "f")), [3, 0, 3, 0]);
    c.redrive("q");
    assert!(!c.get("q", "o").has("batch"), "a redrive does not rejoin");
}

#[test]
fn cancelling_a_batch_removes_all_but_the_dead() {
    in_both_protocols(|c| {
        c.ask("DQ.MPUSH q 5 1 2 3 4 5 IDS a b c d e BATCH b");
        c.push("q x ID alone");
        c.ask("DQ.BATCH q b THEN follows ID f");
        c.pop("q COUNT 1 LEASE 600000");
        c.ask("DQ.BURY q b");
        c.reschedule("q c DELAY 600000");
        assert_eq!(c.ask("DQ.BATCH q b CANCEL"), Reply::Int(4));
        assert_eq!(c.counts("q"), [0, 1, 0, 1]);
        assert_eq!((c.state("q", "f").as_str(), c.about("q").int("batches")), ("absent", 0));
        assert_eq!(c.about("q").int("cancelled"), 4);
        assert_eq!(c.ask("DQ.BATCH q b CANCEL"), Reply::Int(0));
        c.ask("DEL q");
    });
}

#[test]
fn a_consumer_is_told_that_its_batch_was_cancelled() {
    let server = Server::start();
    let (mut c, mut ear) = (server.client(), server.client());
    c.push("q x ID m BATCH b");
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    ear.ask("SUBSCRIBE __dq@0__:q");
    c.ask("DQ.BATCH q b CANCEL");
    assert_eq!(ear.receive().items()[2].text(), format!("cancelled {receipt}"));
}

#[test]
fn a_replacement_ends_the_membership_of_what_it_replaces() {
    let server = Server::start();
    let mut c = server.client();
    closed(&mut c);
    c.push("q z ID m REPLACE");
    assert_eq!(counts(&mut c, "q b"), [2, 1, 0, 0, 1, 1]);
    c.push("q z ID n REPLACE BATCH b");
    assert_eq!(counts(&mut c, "q b"), [3, 1, 0, 0, 2, 1], "it leaves and joins");
    c.pop("q COUNT 2 LEASE 600000");
    c.push("q later ID n REPLACE LATER BATCH b");
    assert_eq!(counts(&mut c, "q b"), [4, 1, 0, 0, 3, 1], "a kept message is a member");
    assert!(!c.get("q", "n").has("batch"), "the message in flight is none");
    c.ack("q n");
    assert_eq!((c.get("q", "n").text("batch"), c.state("q", "f").as_str()), ("b".to_owned(), "absent"));
    c.pop("q NOACK");
    assert_eq!(ended(&c.get("q", "f")), [4, 1, 0, 3]);
}

#[test]
fn what_follows_is_promised_once_it_is_accepted() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXLEN 1 MAXPAYLOAD 5 DELAY 600000");
    c.push("q x ID m BATCH b DELAY 0");
    c.ask("DQ.BATCH q b THEN first ID f");
    assert!(c.ask("DQ.BATCH q b THEN larger ID f").error().starts_with("TOOLARGE"));
    c.ask("DQ.BATCH q b THEN again ID m");
    c.alter("q MAXPAYLOAD 2");
    c.ask("DQ.PAUSE q IN");
    c.pop("q LEASE 600000");
    c.ask("DQ.BURY q m");
    let follows = c.peek("q ready").remove(0);
    assert_eq!((follows.text("payload").as_str(), ended(&follows)), ("again", [1, 0, 1, 0]));
    assert_ne!(follows.text("id"), "m", "a taken id becomes a generated one");
}

#[test]
fn batches_work_in_transactions_and_scripts() {
    let server = Server::with_aof(&[]);
    let mut c = server.client();
    closed(&mut c);
    let replies = c.multi(&["DQ.POP q COUNT 2 LEASE 600000", "DQ.ACK q m n", "DQ.POP q NOACK"]);
    assert_eq!(replies[2].items()[0].items()[0].text(), "f");
    closed(&mut c);
    c.script("DQ.PURGE q");
    assert_eq!(ended(&c.get("q", "f")), [2, 0, 0, 2]);
}

#[test]
fn forwarding_counts_as_acked() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD LIST target");
    c.pause("q");
    closed(&mut c);
    c.resume("q");
    eventually("all is forwarded", || c.ask("LLEN target") == Reply::Int(3));
    assert_eq!(c.ask("LRANGE target 0 -1").items().last().unwrap().text(), "follows");
}

#[test]
fn a_batch_survives_a_kill_and_each_restart() {
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    closed(&mut c);
    c.pop("q COUNT 2 LEASE 600000");
    c.ack("q m");
    server.kill9();
    server.boot();
    let mut c = server.client();
    assert_eq!(counts(&mut c, "q b"), [2, 1, 1, 0, 0, 1]);
    c.ask("BGREWRITEAOF");
    c.until_rewritten();
    server.restart_from_rdb();
    let mut c = server.client();
    assert_eq!(counts(&mut c, "q b"), [2, 1, 1, 0, 0, 1]);
    c.ack("q n");
    let (follows, digest) = (c.get("q", "f"), c.digest("q"));
    assert_eq!(ended(&follows), [2, 2, 0, 0]);
    server.kill9();
    server.boot();
    let mut c = server.client();
    assert_eq!((c.len("q"), c.digest("q")), (1, digest), "it followed once");
}

#[test]
fn a_replica_pushes_the_same_message_and_takes_over() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.create("q RETRIES 0");
    closed(&mut c);
    c.push("q z ID o BATCH second");
    c.ask("DQ.BATCH q second THEN follows ID g");
    c.pop("q COUNT 2 LEASE 1");
    c.pop("q LEASE 600000");
    eventually("what follows is on the master", || c.state("q", "f") == "ready");
    eventually("what follows is on the replica", || r.state("q", "f") == "ready");
    assert_eq!(c.digest("q"), r.digest("q"));
    assert_eq!(c.get("q", "f").int("created"), r.get("q", "f").int("created"));
    r.ask("REPLICAOF NO ONE");
    assert_eq!((r.ack("q o"), ended(&r.get("q", "g"))), (1, [1, 1, 0, 0]));
}

#[test]
fn a_copy_and_a_restored_dump_have_the_batch() {
    let server = Server::start();
    let mut c = server.client();
    closed(&mut c);
    c.ask("COPY q copy");
    let dump = c.ask("DUMP q");
    c.cmd(&[b"RESTORE", b"restored".as_slice(), b"0", dump.bytes()]).ok();
    c.ask("RENAME q renamed");
    for key in ["copy", "restored", "renamed"] {
        assert_eq!(counts(&mut c, &format!("{key} b")), [2, 2, 0, 0, 0, 1]);
        c.pop(format!("{key} COUNT 2 NOACK"));
        assert_eq!(ended(&c.get(key, "f")), [2, 2, 0, 0]);
    }
}

#[test]
fn an_idle_batch_is_forgotten_a_day_after_its_last_member() {
    const DAY: i64 = 86_400_000;
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let mut c = server.client();
    c.ask("DQ.MPUSH q 2 x y IDS m n BATCH b");
    c.cancel("q m n");
    let before = c.now();
    clock.set(DAY - 600_000);
    eventually("the server has noticed", || c.now() > before + DAY - 700_000);
    assert_eq!((counts(&mut c, "q b"), c.about("q").int("batches")), ([2, 0, 0, 0, 2, 0], 1));
    clock.set(DAY + 600_000);
    eventually("the server has noticed", || c.now() > before + DAY);
    assert_eq!((c.ask("DQ.BATCHINFO q b"), c.about("q").int("batches")), (c.null_array(), 0));
    c.push("q x BATCH b");
    assert_eq!(counts(&mut c, "q b"), [1, 1, 0, 0, 0, 0], "it begins anew");
}

#[test]
fn the_end_of_a_batch_is_announced_after_what_ended_it() {
    let server = Server::with(&["--notify-keyspace-events", "Kd"]);
    let (mut c, mut ear) = (server.client(), server.client());
    ear.ask("SUBSCRIBE __keyspace@0__:q");
    let mut heard = |count: usize| -> Vec<String> { (0..count).map(|_| ear.receive().items()[2].text()).collect() };
    closed(&mut c);
    assert_eq!(heard(2), ["dq.push", "dq.batch"]);
    c.pop("q COUNT 2 LEASE 600000");
    c.ack("q m n");
    assert_eq!(heard(3), ["dq.pop", "dq.ack", "dq.batch"]);
    c.push("q x BATCH b");
    c.ask("DQ.BATCH q b CANCEL");
    assert_eq!(heard(2), ["dq.push", "dq.batch"]);
}
