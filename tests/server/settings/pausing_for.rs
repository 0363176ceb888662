//! DQ.PAUSE FOR: delivery resumes by itself, and a second pause never shortens the first.

use crate::support::{effects_of, eventually, in_both_protocols, Client, Reply, Server};

/// When the pause of a queue ends; `None` if it has no end or is over.
fn paused_until(c: &mut Client, key: &str) -> Option<i64> {
    let about = c.about(key);
    let until = about.get("paused-until");
    (!until.is_null()).then(|| until.int())
}

#[test]
fn a_pause_ends_by_itself_and_never_before_its_time() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let before = c.now();
        assert_eq!(c.ask("DQ.PAUSE q FOR 1000"), Reply::Simple("OK".into()));
        let after = c.now();
        let until = paused_until(c, "q").expect("an end");
        assert!((before + 1_000..=after + 1_000).contains(&until));
        let digest = c.digest("q");
        eventually("it is delivered", || {
            let popped = !c.pop("q LEASE 600000").is_empty();
            assert!(!popped || c.latest_now() >= until, "{} ms early", until - c.now());
            popped
        });
        let about = c.about("q");
        assert_eq!((about.int("paused"), about.get("paused-until")), (0, &c.null()));
        assert_ne!(c.digest("q"), digest, "by the delivery");
    });
}

#[test]
fn a_pause_that_ends_serves_blocked_clients_without_a_command() {
    let server = Server::start();
    let (mut c, mut one, mut any) = (server.client(), server.client(), server.client());
    c.push_many("q 2 x y IDS a b");
    c.pause("q FOR 1000");
    let until = paused_until(&mut c, "q").expect("an end");
    one.wait_for_message("q");
    c.until_blocked(1);
    any.wait_for_any(&["other", "q"]);
    assert_eq!(one.served().id, "a");
    assert_eq!(any.served_from_any().1.id, "b");
    c.expect_delivered_at("q", "a", until);
    c.expect_delivered_at("q", "b", until);
}

#[test]
fn clients_blocked_before_a_pause_are_served_at_its_end() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    c.create("q");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    let replies = c.multi(&["DQ.PAUSE q FOR 300", "DQ.PUSH q x ID m", "DQ.INFO q"]);
    let until = replies[2].fields().int("paused-until");
    assert_eq!(waiting.served().id, "m");
    c.expect_delivered_at("q", "m", until);
}

#[test]
fn messages_due_in_a_pause_are_served_at_its_end() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    c.push("q x ID m DELAY 50");
    c.pause("q FOR 400");
    let until = paused_until(&mut c, "q").expect("an end");
    waiting.wait_for_message("q");
    assert_eq!(waiting.served().id, "m");
    c.expect_delivered_at("q", "m", until);
}

#[test]
fn a_pause_is_never_shortened_by_another() {
    in_both_protocols(|c| {
        c.create("q");
        c.pause("q FOR 500000");
        let (until, digest, changes) = (paused_until(c, "q"), c.digest("q"), c.changes());
        c.ask("DQ.PAUSE q FOR 1000").ok();
        assert_eq!((paused_until(c, "q"), c.digest("q"), c.changes()), (until, digest, changes));
        c.pause("q for 900000");
        assert!(paused_until(c, "q") > until, "a later end holds");
        c.pause("q");
        let about = c.about("q");
        assert_eq!((about.int("paused"), about.get("paused-until")), (1, &c.null()), "without FOR it has no end");
        let (digest, changes) = (c.digest("q"), c.changes());
        c.pause("q FOR 4398046511103");
        assert_eq!((c.digest("q"), c.changes()), (digest, changes), "an operator's pause outlives a worker's");
        c.resume("q");
        assert_eq!((c.about("q").int("paused"), paused_until(c, "q")), (0, None));
        c.pause("q FOR 1");
        eventually("it is over", || c.about("q").int("paused") == 0);
        c.pause("q FOR 600000");
        assert!(paused_until(c, "q").is_some(), "after one that is over it is a new pause");
        c.resume("q");
        c.push("q x");
        assert_eq!(c.pop("q").len(), 1, "DQ.RESUME ends any pause");
    });
}

#[test]
fn a_refused_pause_changes_nothing() {
    in_both_protocols(|c| {
        c.create("q");
        let (digest, changes) = (c.digest("q"), c.changes());
        for words in ["FOR 0", "FOR -1", "FOR 4398046511104", "FOR soon"] {
            let error = "ERR FOR must be a whole number of milliseconds from 1 to 4398046511103";
            assert_eq!(c.ask(format!("DQ.PAUSE q {words}")).error(), error, "{words}");
        }
        assert_eq!(c.ask("DQ.PAUSE absent FOR 5").error(), "ERR no such key");
        assert_eq!((c.digest("q"), c.changes()), (digest, changes));
    });
}

#[test]
fn the_end_of_a_pause_is_not_replicated() {
    let master = Server::with(&["--repl-ping-replica-period", "3600"]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.create("q");
    c.pause("q FOR 300");
    let until = c.now() + 300;
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!(r.digest("q"), c.digest("q"));
    let offset = c.info("replication", "master_repl_offset");
    c.until_after(until);
    for client in [&mut c, &mut r] {
        assert_eq!((client.about("q").int("paused"), paused_until(client, "q")), (0, None));
    }
    assert_eq!(c.info("replication", "master_repl_offset"), offset, "its end is no effect");
    assert_eq!(r.digest("q"), c.digest("q"));
    c.pause("q FOR 600000");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!(paused_until(&mut r, "q"), paused_until(&mut c, "q"));
}

#[test]
fn a_promoted_replica_ends_the_pause_of_its_master() {
    let mut master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    c.push("q x ID m");
    c.pause("q FOR 700");
    let until = paused_until(&mut c, "q").expect("an end");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    master.kill9();
    let (mut c, mut waiting) = (replica.client(), replica.client());
    c.ask("REPLICAOF NO ONE").ok();
    waiting.wait_for_message("q");
    assert_eq!(waiting.served().id, "m");
    c.expect_delivered_at("q", "m", until);
}

#[test]
fn a_timed_pause_survives_restarts_and_follows_the_key() {
    for aof in [false, true] {
        let mut server = if aof { Server::with_aof(&[]) } else { Server::start() };
        let mut c = server.client();
        c.push("q x ID m");
        c.push("soon x ID m");
        c.pause("q FOR 600000");
        let (digest, until) = (c.digest("q"), paused_until(&mut c, "q"));
        // Until the disk has the pause and its reply is sent, it may be over.
        let end = c.multi(&["DQ.PAUSE soon FOR 2000", "DQ.INFO soon"])[1].fields().int("paused-until");
        if aof {
            server.restart_from_aof();
        } else {
            server.restart_from_rdb();
        }
        let (mut c, mut waiting) = (server.client(), server.client());
        waiting.wait_for_message("soon");
        assert_eq!((c.digest("q"), paused_until(&mut c, "q")), (digest, until));
        c.ask("COPY q copied");
        c.ask("RENAME q moved").ok();
        for key in ["copied", "moved"] {
            assert_eq!(paused_until(&mut c, key), until, "{key}");
            assert!(c.pop(key).is_empty(), "{key}");
        }
        assert_eq!(waiting.served().id, "m");
        c.expect_delivered_at("soon", "m", end);
    }
}

#[test]
fn a_timed_pause_works_in_transactions_and_scripts() {
    let effects = effects_of(|c| {
        c.push("q x");
        let replies = c.multi(&["DQ.PAUSE q FOR 600000", "DQ.POP q BLOCK 0", "DQ.PAUSE q FOR 5"]);
        assert_eq!((&replies[0], replies[1].is_null()), (&Reply::Simple("OK".into()), true));
        c.script("DQ.PAUSE q FOR 700000").ok();
        assert!(c.script("DQ.POP q").is_null());
        c.script("DQ.RESUME q").ok();
    });
    assert_eq!(effects.len(), 4, "of the push, of two pauses and of their end");
}
