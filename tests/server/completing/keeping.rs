//! `RETAIN` and `DONELEN`: done messages are kept, found and dropped.

use crate::support::{eventually, in_both_protocols, Client, Clock, Reply, Server};

/// Pushes messages that are delivered and acked at once.
fn finish(c: &mut Client, key: &str, ids: &[&str]) {
    for id in ids {
        assert_eq!(c.push(format!("{key} x ID {id} PRIORITY 127")), *id);
        assert_eq!(c.pop_ids(key), [*id], "the one just pushed comes first");
        assert_eq!(c.ack(format!("{key} {id}")), 1);
    }
}

#[test]
fn an_acked_message_is_kept_as_long_as_the_queue_says() {
    in_both_protocols(|c| {
        c.create("q RETAIN 600000");
        c.push("q x ID acked");
        c.push("q x ID taken");
        assert_eq!(c.pop_ids("q"), ["acked"]);
        assert_eq!(c.pop_ids("q NOACK"), ["taken"]);
        assert_eq!(c.ack("q acked"), 1);
        for id in ["acked", "taken"] {
            let message = c.get("q", id);
            assert_eq!((message.text("state"), message.int("attempt")), ("done".to_owned(), 1), "{id}");
            assert!(message.get("result").is_null());
            assert_eq!(message.int("until") - message.int("done"), 600_000);
        }
        c.alter("q RETAIN 5");
        let message = c.get("q", "acked");
        assert_eq!(message.int("until") - message.int("done"), 600_000, "what is done keeps its time");
    });
}

#[test]
fn a_message_may_say_itself_how_long_it_is_kept() {
    in_both_protocols(|c| {
        c.create("q RETAIN 600000");
        c.push("q x ID short RETAIN 500000");
        c.push("q x ID not RETAIN 0");
        c.push_many("q 2 x y IDS a b RETAIN 400000");
        c.pop("q COUNT 9");
        assert_eq!(c.ack("q short not a"), 3);
        assert_eq!(c.ask("DQ.COMPLETE q b RETAIN 300000"), Reply::Int(1));
        for (id, kept) in [("short", 500_000), ("a", 400_000), ("b", 300_000)] {
            let message = c.get("q", id);
            assert_eq!(message.int("until") - message.int("done"), kept, "{id}");
        }
        assert_eq!(c.state("q", "not"), "absent");
    });
}

#[test]
fn done_messages_are_listed_and_counted() {
    in_both_protocols(|c| {
        c.create("q RETAIN 600000 MAXLEN 1");
        finish(c, "q", &["a", "b", "c"]);
        c.push("q x ID live DELAY 600000");
        assert_eq!(c.peek_ids("q done COUNT 9"), ["c", "b", "a"], "newest first");
        assert_eq!(c.peek_ids("q done COUNT 2"), ["c", "b"]);
        assert_eq!(c.scan_ids("q", "COUNT 1"), ["a", "b", "c", "live"]);
        assert_eq!(c.scan_ids("q", "STATE done COUNT 2"), ["a", "b", "c"]);
        assert_eq!(c.scan_ids("q", "STATE dead"), [""; 0]);
        assert_eq!((c.len("q done"), c.len("q")), (3, 1));
        assert_eq!((c.about("q").int("done"), c.info("dq", "dq_done")), (3, "3".to_owned()));
        assert_eq!((c.about("q").int("retain"), c.about("q").int("donelen")), (600_000, -1));
    });
}

#[test]
fn unnamed_done_messages_are_found_by_their_ids() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETAIN 600000");
    let mut ids: Vec<String> = (0..5).map(|_| c.push("q x")).collect();
    c.pop("q COUNT 3 NOACK");
    assert!(ids[..3].iter().all(|id| c.state("q", id) == "done"));
    ids.sort_unstable();
    assert_eq!(c.scan_ids("q", "COUNT 1"), ids);
    let past = [ids[2].as_str(), ids[1].as_str()];
    assert_eq!(c.peek_ids("q done COUNT 2"), past, "ties by sequence");
}

#[test]
fn the_id_of_a_done_message_is_taken() {
    in_both_protocols(|c| {
        c.create("q RETAIN 600000");
        finish(c, "q", &["m", "n"]);
        assert_eq!(c.ask("DQ.PUSH q y ID m"), c.null());
        assert_eq!(c.push_many("q 2 y z IDS m new"), [None, Some("new".to_owned())]);
        assert_eq!(c.about("q").int("duplicates"), 2);
        c.push("q y ID m REPLACE DELAY 600000");
        assert_eq!((c.state("q", "m"), c.len("q done")), ("delayed".to_owned(), 1));
        assert_eq!(c.ask("DQ.SCHEDULE q n x EVERY 600000"), Reply::bulk("created"));
        assert_eq!((c.get("q", "n").int("every"), c.len("q done")), (600_000, 0));
    });
}

#[test]
fn replacing_a_done_message_needs_room() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETAIN 600000 MAXLEN 1");
    finish(&mut c, "q", &["m"]);
    c.push("q x ID live");
    let reply = c.ask("DQ.PUSH q y ID m REPLACE");
    assert_eq!(reply, Reply::Error("QUEUEFULL queue holds 1 message (MAXLEN)".into()));
    assert_eq!(c.state("q", "m"), "done");
}

#[test]
fn a_message_shows_its_own_retention() {
    in_both_protocols(|c| {
        c.ask("DQ.CREATE q RETAIN 60000");
        c.push("q x ID own RETAIN 5000");
        c.push("q x ID none RETAIN 0");
        c.push("q x ID plain");
        assert_eq!((c.get("q", "own").int("retain"), c.get("q", "none").int("retain")), (5_000, 0));
        assert!(!c.get("q", "plain").has("retain"));
    });
}

#[test]
fn cancel_and_purge_forget_done_messages() {
    in_both_protocols(|c| {
        c.create("q RETAIN 600000");
        finish(c, "q", &["a", "b", "c", "d", "e"]);
        c.push("q x ID live DELAY 600000");
        assert_eq!(c.cancel("q a a"), ["done", "absent"]);
        assert_eq!(c.purge("q dead ready delayed inflight COUNT 0".trim_end_matches(" COUNT 0")), 1);
        assert_eq!(c.len("q done"), 4, "the other states were purged");
        assert_eq!(c.purge("q done COUNT 1"), 1);
        assert_eq!(c.state("q", "e"), "absent", "the newest is the first that a peek shows");
        assert_eq!(c.purge("q done"), 3);
        finish(c, "q", &["a", "b"]);
        c.push("q x ID live");
        assert_eq!(c.purge("q COUNT 2"), 2);
        assert_eq!((c.len("q"), c.peek_ids("q done COUNT 9")), (0, vec!["a".to_owned()]));
        c.push("q x");
        assert_eq!(c.purge("q"), 2);
        assert_eq!(c.ask("DQ.PUSH q x ID a"), Reply::bulk("a"), "the id is free");
    });
}

#[test]
fn every_other_command_treats_a_done_message_as_gone() {
    in_both_protocols(|c| {
        c.create("q RETAIN 600000");
        finish(c, "q", &["m"]);
        let digest = c.digest("q");
        assert_eq!(c.ack("q m"), 0);
        assert_eq!(c.ask("DQ.NACK q m"), c.null());
        assert_eq!(c.ask("DQ.EXTEND q m"), c.null());
        assert_eq!(c.ask("DQ.BURY q m"), c.null());
        assert_eq!(c.reschedule("q m DELAY 1"), 0);
        assert_eq!(c.redrive("q IDS 1 m"), 0);
        assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(0));
        assert!(c.pop("q").is_empty());
        assert_eq!(c.digest("q"), digest);
    });
}

#[test]
fn nothing_is_done_while_a_replacement_takes_the_place() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETAIN 600000");
    for ending in ["DQ.ACK q m", "DQ.COMPLETE q m RESULT r"] {
        c.push("q old ID m REPLACE");
        c.pop_one("q");
        c.push("q new ID m REPLACE LATER");
        assert_eq!(c.ask(ending), Reply::Int(1));
        assert_eq!((c.state("q", "m"), c.len("q done")), ("ready".to_owned(), 0), "{ending}");
        assert_eq!(c.pop_one("q").payload, b"new");
        assert_eq!(c.ask(ending), Reply::Int(1));
        assert_eq!((c.state("q", "m"), c.len("q done")), ("done".to_owned(), 1), "{ending}");
    }
}

#[test]
fn a_done_message_is_gone_at_its_time_though_nobody_asks() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETAIN 50");
    finish(&mut c, "q", &["a"]);
    c.push("q x");
    c.pop("q NOACK");
    eventually("the timer has dropped both", || {
        c.info("dq", "dq_total_delivered") == "2" && c.info("dq", "dq_done") == "0"
    });
    assert_eq!((c.state("q", "a"), c.len("q done"), c.scan_ids("q", "").len()), ("absent".to_owned(), 0, 0));
    c.alter("q RETAIN 1000");
    finish(&mut c, "q", &["b"]);
    let until = c.get("q", "b").int("until");
    eventually("it is gone", || c.state("q", "b") == "absent");
    assert!(c.latest_now() >= until, "never early");
}

#[test]
fn a_done_message_ends_exactly_at_its_time() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETAIN 20");
    // In one transaction, so that the timer cannot drop it before.
    let replies = c.multi(&[
        "DQ.PUSH q x ID m",
        "DQ.POP q NOACK",
        "DQ.LEN q done",
        "DEBUG SLEEP 0.05",
        "DQ.GET q m",
        "DQ.LEN q done",
        "DQ.PEEK q done",
        "DQ.CANCEL q m",
        "DQ.PUSH q y ID m",
    ]);
    assert_eq!((&replies[2], &replies[5]), (&Reply::Int(1), &Reply::Int(0)));
    assert!(replies[4].is_null() && replies[6].items().is_empty() && replies[7].items()[0].is_null());
    assert_eq!(replies[8], Reply::bulk("m"));
}

#[test]
fn donelen_keeps_the_newest() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETAIN 600000 DONELEN 2");
    finish(&mut c, "q", &["a", "b", "c", "d"]);
    assert_eq!(c.peek_ids("q done COUNT 9"), ["d", "c"]);
    c.alter("q DONELEN 1");
    assert_eq!(c.peek_ids("q done COUNT 9"), ["d"], "lowering it drops the oldest in the same command");
    c.alter("q DONELEN 0");
    assert_eq!(c.len("q done"), 0);
    finish(&mut c, "q", &["e"]);
    assert_eq!(c.state("q", "e"), "absent");
    c.alter("q DONELEN -1");
    finish(&mut c, "q", &["e", "f"]);
    assert_eq!(c.len("q done"), 2);
}

#[test]
fn the_window_outlasts_a_done_message() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETAIN 20 DEDUPE 600000");
    finish(&mut c, "q", &["m"]);
    eventually("it is dropped", || c.about("q").int("known") == 1);
    assert_eq!(c.ask("DQ.PUSH q x ID m"), c.null());
    assert_eq!(c.cancel("q m"), ["known"]);
    c.alter("q RETAIN 600000");
    finish(&mut c, "q", &["m"]);
    assert_eq!(c.about("q").int("known"), 0, "a done message is not counted as known");
    assert_eq!(c.cancel("q m"), ["done"]);
    assert_eq!(c.ask("DQ.PUSH q x ID m"), Reply::bulk("m"), "cancelling forgot it");
}

#[test]
fn the_default_of_the_module_applies_to_new_queues() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-retain", 600_000);
    c.configure("dq.default-donelen", 1);
    finish(&mut c, "q", &["a", "b"]);
    assert_eq!(c.peek_ids("q done COUNT 9"), ["b"]);
    assert_eq!((c.about("q").int("retain"), c.about("q").int("donelen")), (600_000, 1));
}

/// A queue with done messages of every kind.
fn filled(c: &mut Client) {
    c.create("q RETAIN 600000 DEDUPE 600000");
    finish(c, "q", &["a", "b"]);
    c.push("q x RETAIN 500000");
    c.pop("q NOACK");
    c.push("q x ID m RETAIN 400000");
    c.pop("q");
    c.ask("DQ.COMPLETE q m RESULT result");
    c.push("q x ID later DELAY 600000 RETAIN 300000");
}

#[test]
fn done_messages_survive_every_way_of_saving() {
    let mut server = Server::with_aof(&["--aof-use-rdb-preamble", "no"]);
    let mut c = server.client();
    filled(&mut c);
    let digest = c.digest("q");
    c.ask("COPY q copy");
    let dump = c.ask("DUMP q");
    c.cmd(&[b"RESTORE", &b"restored"[..], b"0", dump.bytes()]).ok();
    assert_eq!((c.digest("copy"), c.digest("restored")), (digest.clone(), digest.clone()));
    c.ask("DEBUG RELOAD").ok();
    assert_eq!(c.digest("q"), digest, "after a load of an RDB file");
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest, "after a replay");
    c.ask("BGREWRITEAOF");
    c.until_rewritten();
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest, "after a rewrite");
    assert_eq!((c.get("q", "m").text("result"), c.len("q done")), ("result".to_owned(), 4));
}

#[test]
fn a_replica_keeps_the_same_and_drops_what_its_master_drops() {
    let (master, clock) = (Server::start(), Clock::new());
    clock.set(1_000);
    let port = master.port().to_string();
    let replica = Server::with_clock(&clock, &["--replicaof", "127.0.0.1", &port]);
    let (mut c, mut r) = (master.client(), replica.client());
    eventually("the replica's link is up", || r.info("replication", "master_link_status") == "up");
    filled(&mut c);
    c.push("q x ID soon RETAIN 30");
    c.pop("q NOACK");
    c.push("q x ID gone");
    c.pop("q NOACK");
    c.cancel("q gone");
    eventually("the master has dropped it", || c.info("dq", "dq_done") == "4");
    c.purge("q done COUNT 1");
    c.push("q x ID b REPLACE");
    eventually("they are the same", || r.digest("q") == c.digest("q"));
    assert_eq!((r.info("dq", "dq_done"), r.get("q", "a").text("state")), ("2".to_owned(), "done".to_owned()));
}

#[test]
fn a_promoted_replica_drops_done_messages_itself() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.create("q RETAIN 1500");
    finish(&mut c, "q", &["m"]);
    eventually("the replica has it", || r.digest("q") == c.digest("q"));
    r.ask("REPLICAOF NO ONE").ok();
    eventually("it drops the message", || r.info("dq", "dq_done") == "0");
    assert_eq!(r.state("q", "m"), "absent");
}

#[test]
fn done_messages_whose_time_ended_while_down_are_dropped() {
    for aof in [false, true] {
        let clock = Clock::new();
        let mut server = Server::with_clock(&clock, if aof { &["--appendonly", "yes"] } else { &[] });
        let mut c = server.client();
        c.create("q RETAIN 1800000");
        finish(&mut c, "q", &["m"]);
        clock.set(3_600_000);
        if aof {
            server.restart_from_aof();
        } else {
            server.restart_from_rdb();
        }
        let mut c = server.client();
        eventually("nobody asks, and it is dropped", || c.info("dq", "dq_done") == "0");
        assert_eq!(c.state("q", "m"), "absent");
    }
}
