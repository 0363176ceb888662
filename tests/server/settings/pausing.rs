//! DQ.PAUSE and DQ.RESUME: a paused queue delivers nothing, and every other command works.

use crate::support::{effects_of, eventually, every_state, in_both_protocols, Reply, Server};

#[test]
fn a_paused_queue_delivers_nothing_until_it_is_resumed() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.ask("DQ.PAUSE q").ok();
        assert_eq!(c.about("q").int("paused"), 1);
        for line in ["DQ.POP q", "DQ.POP q NOACK", "DQ.POP q COUNT 5 LEASE 5", "DQ.POP q BLOCK 20", "DQ.MPOP 1 q"] {
            assert_eq!(c.ask(line), c.null_array(), "{line}");
        }
        assert_eq!(c.state("q", "m"), "ready");
        c.ask("DQ.RESUME q").ok();
        assert_eq!(c.about("q").int("paused"), 0);
        assert_eq!(c.pop_one("q").attempt, 1);
    });
}

#[test]
fn all_but_delivery_goes_on() {
    let server = Server::start();
    let mut c = server.client();
    c.push_many("q 5 x x x x x IDS acked nacked extended lapses spends");
    c.push("q x ID spends RETRIES 0 REPLACE");
    c.pop("q COUNT 5 LEASE 600000");
    c.pause("q");
    assert_eq!(c.ack("q acked"), 1);
    assert_eq!(c.nack("q nacked DELAY 0"), "ready");
    assert!(c.extend("q extended LEASE 700000") > 0);
    c.extend("q lapses LEASE 1");
    c.extend("q spends LEASE 1");
    c.push("q x ID due DELAY 1");
    c.push("q x ID expires TTL 1");
    for (id, state) in [("lapses", "ready"), ("spends", "dead"), ("due", "ready"), ("expires", "dead")] {
        c.until_state("q", id, state);
    }
    eventually("time is counted too", || c.counts("q") == [0, 3, 1, 2]);
    assert_eq!(c.ask("DQ.PUSH q x ID due"), c.null());
    assert_eq!(c.push("q x ID due REPLACE PRIORITY 1"), "due");
    assert_eq!(c.redrive("q IDS 1 spends DELAY 600000"), 1);
    assert_eq!(c.reschedule("q spends DELAY 0"), 1);
    assert_eq!(c.cancel("q nacked extended"), ["ready", "inflight"]);
    assert_eq!(c.purge("q dead"), 1);
    assert!(c.pop("q COUNT 10").is_empty());
    c.resume("q");
    assert_eq!(c.pop_ids("q COUNT 10"), ["due", "lapses", "spends"]);
}

#[test]
fn blocked_clients_are_served_when_the_queue_is_resumed() {
    let server = Server::start();
    let (mut waiting, mut late, mut c) = (server.client(), server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.create("q");
    c.pause("q");
    // Clients that block during the pause wait as well.
    late.wait_for_message("q");
    c.until_blocked(2);
    c.push_many("q 2 x x IDS a b");
    c.push("q x ID due DELAY 1");
    c.until_state("q", "due", "ready");
    assert_eq!((c.info("clients", "blocked_clients"), c.counts("q")), ("2".to_owned(), [0, 3, 0, 0]));
    c.resume("q");
    assert_eq!((waiting.served().id.as_str(), late.served().id.as_str()), ("a", "b"));
}

#[test]
fn what_falls_due_after_the_pause_is_served_in_time() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.push("q x ID m DELAY 300");
    let due = c.get("q", "m").int("due");
    c.pause("q");
    c.resume("q");
    assert_eq!(waiting.served().id, "m");
    c.expect_delivered_at("q", "m", due);
}

#[test]
fn a_paused_queue_that_takes_the_name_serves_nobody() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.push("from x ID m");
    c.pause("from");
    c.ask("RENAME from q").ok();
    c.push("q x ID n");
    c.until_blocked(1);
    assert_eq!(c.counts("q"), [0, 2, 0, 0]);
    c.resume("q");
    assert_eq!(waiting.served().id, "m");
}

#[test]
fn a_wait_on_a_paused_queue_ends_with_its_time() {
    in_both_protocols(|c| {
        c.push("q x");
        c.pause("q");
        let start = c.now();
        assert_eq!(c.ask("DQ.POP q BLOCK 50"), c.null_array());
        assert!(c.latest_now() >= start + 50, "it waited");
    });
}

#[test]
fn pausing_twice_is_pausing_once() {
    let server = Server::start();
    let (mut c, mut watcher) = (server.client(), server.client());
    c.push("q x");
    for (first, second) in [("DQ.PAUSE q", "DQ.PAUSE q"), ("DQ.RESUME q", "DQ.RESUME q")] {
        c.ask(first).ok();
        let (digest, changes) = (c.digest("q"), c.changes());
        let offset = c.info("replication", "master_repl_offset");
        watcher.ask("WATCH q").ok();
        c.ask(second).ok();
        assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())], "{second}");
        assert_eq!((c.digest("q"), c.changes()), (digest, changes), "{second}");
        assert_eq!(c.info("replication", "master_repl_offset"), offset, "{second}");
    }
    assert_eq!(c.pop("q").len(), 1, "once resumed, however often it was paused");
}

#[test]
fn a_pause_changes_the_digest_and_touches_watchers() {
    let server = Server::start();
    let (mut c, mut watcher) = (server.client(), server.client());
    c.push("q x");
    for line in ["DQ.PAUSE q", "DQ.RESUME q"] {
        let (digest, changes) = (c.digest("q"), c.changes());
        watcher.ask("WATCH q").ok();
        c.ask(line).ok();
        assert_ne!((c.digest("q"), c.changes()), (digest, changes), "{line}");
        watcher.ask("MULTI").ok();
        watcher.ask("PING");
        assert!(watcher.ask("EXEC").is_null(), "{line}");
    }
}

#[test]
fn a_missing_queue_can_be_neither_paused_nor_resumed() {
    in_both_protocols(|c| {
        for line in ["DQ.PAUSE absent", "DQ.RESUME absent"] {
            assert_eq!(c.ask(line).error(), "ERR no such key", "{line}");
        }
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
    });
}

#[test]
fn a_pause_survives_a_restart_and_goes_with_the_key() {
    for aof in [false, true] {
        let mut server = if aof { Server::with_aof(&[]) } else { Server::start() };
        let mut c = server.client();
        every_state(&mut c, "q");
        c.pause("q");
        let digest = c.digest("q");
        if aof {
            server.restart_from_aof();
        } else {
            server.restart_from_rdb();
        }
        let mut c = server.client();
        assert_eq!(c.digest("q"), digest);
        c.ask("RENAME q moved").ok();
        c.ask("COPY moved copied");
        for key in ["moved", "copied"] {
            assert_eq!(c.about(key).int("paused"), 1, "{key}");
            assert!(c.pop(key).is_empty());
        }
        c.push("q x");
        assert_eq!(c.about("q").int("paused"), 0, "a queue made again is not paused");
    }
}

#[test]
fn a_pause_is_one_effect() {
    let effects = effects_of(|c| {
        c.push("q x");
        for line in ["DQ.PAUSE q", "DQ.PAUSE q", "DQ.RESUME q", "DQ.RESUME q"] {
            c.ask(line).ok();
        }
    });
    assert_eq!(effects.len(), 3, "of the push, of the pause and of its end");
}

#[test]
fn it_works_without_memory_and_in_transactions_and_scripts() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.configure("maxmemory", 1);
        c.pause("q");
        c.resume("q");
        c.pause("q");
        c.configure("maxmemory", 0);
        let replies = c.multi(&["DQ.POP q", "DQ.RESUME q", "DQ.POP q BLOCK 0", "DQ.PAUSE q", "DQ.POP q BLOCK 0"]);
        assert_eq!((&replies[0], &replies[4]), (&c.null_array(), &c.null_array()));
        assert_eq!(replies[2].items()[0].items()[0], Reply::bulk("m"));
        c.script("DQ.RESUME q").ok();
        c.script("DQ.PAUSE q").ok();
        assert!(c.script("DQ.POP q BLOCK 0").is_null());
    });
}
