//! DEDUPE: an id that was accepted is refused for a time, whatever happened to its message.

use crate::support::{effects_of, eventually, in_both_protocols, Client, Reply, Server};

/// A window that outlives the test.
const LONG: &str = "DEDUPE 600000000";

/// A queue that knows `acked`, `taken` and `dropped`, whose messages are gone, and holds `held`.
fn known_ids(c: &mut Client, key: &str) {
    c.create(format!("{key} {LONG} DEADLEN 0"));
    c.push(format!("{key} x ID acked"));
    c.pop_one(key);
    assert_eq!(c.ack(format!("{key} acked")), 1);
    c.push(format!("{key} x ID taken"));
    c.pop_one(format!("{key} NOACK"));
    c.push(format!("{key} x ID dropped"));
    c.pop_one(key);
    assert_eq!(c.nack(format!("{key} dropped DEAD")), "dead");
    c.push(format!("{key} x ID held DELAY 600000"));
}

const GONE: [&str; 3] = ["acked", "taken", "dropped"];

#[test]
fn an_id_is_refused_although_its_message_is_gone() {
    in_both_protocols(|c| {
        known_ids(c, "q");
        assert_eq!(c.about("q").int("known"), 3);
        let (digest, changes) = (c.digest("q"), c.changes());
        for id in GONE {
            assert_eq!(c.state("q", id), "absent");
            assert_eq!(c.ask(format!("DQ.PUSH q x ID {id}")), c.null());
        }
        assert_eq!(c.push_many("q 2 x y IDS taken acked"), [None, None]);
        assert_eq!((c.digest("q"), c.changes()), (digest, changes), "a refused push changes nothing");
        assert_eq!(c.about("q").int("duplicates"), 5);
        assert_eq!(c.push_many("q 3 x y z IDS taken new new"), [None, Some("new".to_owned()), None]);
        assert_eq!(c.multi(&["DQ.PUSH q x ID acked", "DQ.PUSH q x ID fresh"])[1], Reply::bulk("fresh"));
        assert!(c.script("DQ.PUSH q x ID taken").is_null());
    });
}

#[test]
fn without_a_window_an_id_is_free_with_its_message() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.pop_one("q NOACK");
        assert_eq!(c.push("q x ID m"), "m");
        assert_eq!((c.about("q").int("known"), c.about("q").int("dedupe")), (0, 0));
    });
}

#[test]
fn an_id_is_accepted_again_when_its_window_has_ended() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-dedupe", 300);
    c.push("q x ID m");
    let accepted = c.get("q", "m").int("created");
    c.pop_one("q NOACK");
    let digest = c.digest("q");
    eventually("it is accepted again", || {
        // The command's own clock lies between these two.
        let before = c.now();
        let refused = c.ask("DQ.PUSH q x ID m").is_null();
        assert!(!refused || before < accepted + 300, "refused after the end of the window");
        assert!(refused || c.latest_now() >= accepted + 300, "accepted within the window");
        assert!(!refused || c.digest("q") == digest, "and time is no decision");
        !refused
    });
}

#[test]
fn a_full_queue_answers_a_known_id_with_null() {
    in_both_protocols(|c| {
        known_ids(c, "q");
        c.alter("q MAXLEN 1 MAXPAYLOAD 1");
        assert_eq!(c.ask("DQ.PUSH q long ID taken"), c.null());
        assert_eq!(c.push_many("q 2 long long IDS taken held"), [None, None]);
        assert!(c.ask("DQ.PUSH q x ID new").error().starts_with("QUEUEFULL "));
        assert!(c.ask("DQ.PUSH q x ID taken REPLACE").error().starts_with("QUEUEFULL "));
        assert_eq!(c.about("q").int("known"), 3, "a push that is refused forgets nothing");
    });
}

#[test]
fn replace_ignores_the_window_and_starts_it_again() {
    let server = Server::start();
    let mut c = server.client();
    known_ids(&mut c, "q");
    assert_eq!(c.push("q new ID acked REPLACE"), "acked");
    assert_eq!((c.about("q").int("known"), c.state("q", "acked")), (2, "ready".to_owned()));
    assert_eq!(c.ask("DQ.PUSH q x ID acked"), c.null(), "it is held");
    c.alter("q DEDUPE 400");
    c.push("q new ID acked REPLACE");
    let accepted = c.get("q", "acked").int("created");
    c.pop_one("q NOACK");
    eventually("it is accepted again", || !c.ask("DQ.PUSH q x ID acked").is_null());
    assert!(c.latest_now() >= accepted + 400);
}

#[test]
fn cancelling_a_known_id_forgets_it() {
    in_both_protocols(|c| {
        known_ids(c, "q");
        assert_eq!(c.cancel("q taken nobody held acked taken"), ["known", "absent", "delayed", "known", "absent"]);
        assert_eq!((c.about("q").int("known"), c.about("q").int("cancelled")), (1, 1), "only messages are cancelled");
        let (digest, changes) = (c.digest("q"), c.changes());
        assert_eq!(c.cancel("q taken held 1760000000000-1"), ["absent"; 3]);
        assert_eq!((c.digest("q"), c.changes()), (digest, changes));
        for id in ["taken", "acked", "held"] {
            assert_eq!(c.push(format!("q x ID {id}")), id);
        }
        assert_eq!(c.multi(&["DQ.CANCEL q dropped"])[0].items()[0].text(), "known");
    });
}

#[test]
fn cancelled_and_purged_messages_leave_no_known_id() {
    in_both_protocols(|c| {
        known_ids(c, "q");
        c.push("q x ID flying PRIORITY 9");
        c.pop_one("q");
        assert_eq!(c.cancel("q flying"), ["inflight"]);
        c.push_many("q 9 1 2 3 4 5 6 7 8 9 IDS a b c d e f g h i");
        assert_eq!((c.purge("q delayed"), c.purge("q ready COUNT 1"), c.purge("q")), (1, 1, 8));
        assert_eq!(c.about("q").int("known"), 3, "those of messages that were done stay");
        for id in ["flying", "held", "a", "i"] {
            assert_eq!(c.push(format!("q x ID {id}")), id);
        }
        assert_eq!(c.ask("DQ.PUSH q x ID acked"), c.null());
    });
}

#[test]
fn a_dead_message_answers_before_the_window() {
    in_both_protocols(|c| {
        c.create(format!("q {LONG}"));
        c.bury("q", &["m"]);
        assert!(c.ask("DQ.PUSH q x ID m").error().starts_with("DEADID "));
        c.alter("q DEADLEN 0");
        assert_eq!(c.state("q", "m"), "absent");
        assert_eq!(c.ask("DQ.PUSH q x ID m"), c.null(), "a dead message that is dropped leaves its id known");
    });
}

#[test]
fn a_shorter_window_applies_at_once_and_a_longer_one_forward() {
    in_both_protocols(|c| {
        known_ids(c, "q");
        c.alter("q DEDUPE 1");
        eventually("the window has ended", || c.about("q").int("known") == 0);
        c.alter(format!("q {LONG}"));
        assert_eq!(c.about("q").int("known"), 0, "what was forgotten stays forgotten");
        assert_eq!(c.push("q x ID acked"), "acked");
        c.alter("q DEDUPE 0");
        c.pop_one("q NOACK");
        assert_eq!(c.about("q").int("known"), 0);
        c.push("q x ID later");
        c.alter(format!("q {LONG}"));
        c.pop_one("q NOACK");
        assert_eq!(c.ask("DQ.PUSH q x ID later"), c.null(), "an id that is held counts");
    });
}

#[test]
fn known_ids_survive_every_way_to_persist() {
    let mut server = Server::with_aof(&["--aof-use-rdb-preamble", "no"]);
    let mut c = server.client();
    known_ids(&mut c, "q");
    let digest = c.digest("q");
    let expect = |c: &mut Client, key: &str, how: &str| {
        assert_eq!((c.digest(key), c.about(key).int("known")), (digest.clone(), 3), "{how}");
        for id in GONE {
            assert_eq!(c.ask(format!("DQ.PUSH {key} x ID {id}")), c.null(), "{how}");
        }
    };
    c.ask("DEBUG RELOAD").ok();
    expect(&mut c, "q", "RDB");
    c.ask("DEBUG LOADAOF").ok();
    expect(&mut c, "q", "AOF");
    let dump = c.ask("DUMP q");
    c.cmd(&[b"RESTORE".as_slice(), b"restored", b"0", dump.bytes()]).ok();
    expect(&mut c, "restored", "DUMP");
    assert_eq!(c.ask("COPY q copy").int(), 1);
    expect(&mut c, "copy", "COPY");
    for preamble in ["no", "yes"] {
        c.configure("aof-use-rdb-preamble", preamble);
        c.ask("BGREWRITEAOF");
        c.until_rewritten();
        server.restart_from_aof();
        c = server.client();
        expect(&mut c, "q", preamble);
    }
}

#[test]
fn a_promoted_replica_knows_what_its_master_knew() {
    let mut master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    known_ids(&mut c, "q");
    c.push("q x ID forgotten");
    c.pop_one("q NOACK");
    assert_eq!(c.cancel("q forgotten"), ["known"]);
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    let digest = c.digest("q");
    assert_eq!((r.digest("q"), r.about("q").int("known")), (digest.clone(), 3));
    drop(c);
    master.kill9();
    r.ask("REPLICAOF NO ONE").ok();
    for id in GONE {
        assert_eq!(r.ask(format!("DQ.PUSH q x ID {id}")), r.null());
    }
    assert_eq!(r.digest("q"), digest);
    assert_eq!(r.push("q x ID forgotten"), "forgotten");
}

#[test]
fn forgetting_an_id_is_announced_and_replicated() {
    let server = Server::start();
    let (mut c, mut listener) = (server.client(), server.client());
    known_ids(&mut c, "q");
    c.configure("notify-keyspace-events", "Ed");
    listener.ask("SUBSCRIBE __keyevent@0__:dq.cancel");
    assert_eq!(c.cancel("q taken nobody"), ["known", "absent"]);
    assert_eq!(listener.receive().items()[2].text(), "q");
    let without = effects_of(|c| known_ids(c, "q")).len();
    let effects = effects_of(|c| {
        known_ids(c, "q");
        c.cancel("q taken held acked nobody");
        c.cancel("q taken");
    });
    assert_eq!(effects.len(), without + 1, "one effect for a command that changed something");
}

#[test]
fn a_known_id_takes_little_more_than_its_own_bytes() {
    const IDS: usize = 20_000;
    let server = Server::start();
    let mut c = server.client();
    c.create("plain");
    c.create(format!("q {LONG}"));
    let mut used_by = |key: &str| {
        let used = |c: &mut Client| c.info("memory", "used_memory").parse::<i64>().unwrap();
        let before = used(&mut c);
        for batch in 0..IDS / 1_000 {
            let ids: Vec<String> = (0..1_000).map(|nth| format!("order-{batch:07}-{nth:06}")).collect();
            c.ask(format!("DQ.MPUSH {key} 1000 {} IDS {}", "x ".repeat(1_000), ids.join(" ")));
            assert_eq!(c.pop(format!("{key} COUNT 1000 NOACK")).len(), 1_000);
        }
        used(&mut c) - before
    };
    let plain = used_by("plain");
    let each = (used_by("q") - plain) as f64 / IDS as f64;
    assert!(each <= 56.0, "{each} bytes for an id of 20 bytes");
    let usage = c.ask("MEMORY USAGE q").int() as f64 / IDS as f64;
    assert!((0.8..1.2).contains(&(usage / each)), "{usage} of {each}");
    // The timer frees it step by step, once an effect finds that the window has ended.
    c.alter("q DEDUPE 0");
    eventually("the memory is free", || c.ask("MEMORY USAGE q").int() < 4_000);
    assert_eq!(c.about("q").int("known"), 0);
}
