//! What travels with messages survives restarts, copies and failovers.

use crate::support::{eventually, Client, Fields, Server};

/// A queue whose messages have headers, checkpoints and errors, in every way in which these are stored. None falls due
/// while a test looks at them.
fn lively(c: &mut Client) {
    c.create("q ERRORS 3 LEASE 600000 BACKOFF 600000 600000");
    c.push_many("q 4 w x y z IDS a b c d HEADERS 2 trace 1f kind mail");
    c.push(format!("q {} ID large HEADERS 1 a {}", "p".repeat(9_000), "v".repeat(4_000)));
    c.pop("q COUNT 5");
    c.nack("q a ERROR one CHECKPOINT half");
    c.nack("q b DEAD ERROR two");
    c.extend("q c CHECKPOINT most");
    c.push("q next ID c REPLACE LATER HEADERS 1 of next");
    c.extend("q c CHECKPOINT all");
    c.nack("q large CHECKPOINT large");
    c.ask("DQ.SCHEDULE q s x EVERY 3600000 AT 1000000000000 HEADERS 1 of run");
    c.pop_one("q");
    c.ask("DQ.SCHEDULE q s x EVERY 3600000 HEADERS 1 of declaration");
    c.extend("q s CHECKPOINT run");
    c.ask("DQ.SCHEDULE q failed x EVERY 3600000 AT 1000000000000 HEADERS 1 of failed");
    c.pop_one("q");
    c.nack("q failed DEAD ERROR three CHECKPOINT failed");
}

fn portraits(c: &mut Client, key: &str) -> Vec<Fields> {
    let page = c.ask(format!("DQ.SCAN {key} 0 COUNT 100"));
    page.items()[1].items().iter().map(|message| message.fields()).collect()
}

/// Ends the deliveries that run, and checks what is left.
fn expect_alive(c: &mut Client, key: &str) {
    let shown = |c: &mut Client, id: &str| c.get(key, id);
    assert_eq!(shown(c, "c").text("checkpoint"), "all");
    assert_eq!(c.ack(format!("{key} c s")), 2);
    assert!(!shown(c, "c").has("checkpoint") && !shown(c, "s").has("checkpoint"));
    assert_eq!(shown(c, "c").get("headers").fields().text("of"), "next");
    assert_eq!(shown(c, "s").get("headers").fields().text("of"), "declaration");
    assert_eq!(shown(c, "large").get("headers").fields().text("a").len(), 4_000);
    assert_eq!(shown(c, "a").get("errors").items()[0].items()[2].text(), "one");
}

#[test]
fn all_of_it_survives_every_restart() {
    let mut server = Server::start();
    let mut c = server.client();
    lively(&mut c);
    let (digest, all) = (c.digest("q"), portraits(&mut c, "q"));
    server.restart_from_rdb();
    let mut c = server.client();
    assert_eq!((c.digest("q"), portraits(&mut c, "q")), (digest, all));
    expect_alive(&mut c, "q");
}

#[test]
fn all_of_it_survives_the_replay_of_an_aof() {
    for rewritten in [false, true] {
        let mut server = Server::with_aof(&["--aof-use-rdb-preamble", "no"]);
        let mut c = server.client();
        lively(&mut c);
        if rewritten {
            c.until_rewritten();
        }
        let (digest, all) = (c.digest("q"), portraits(&mut c, "q"));
        server.restart_from_aof();
        let mut c = server.client();
        assert_eq!((c.digest("q"), portraits(&mut c, "q")), (digest, all));
        expect_alive(&mut c, "q");
    }
}

#[test]
fn copies_and_restored_dumps_have_all_of_it() {
    let server = Server::start();
    let mut c = server.client();
    lively(&mut c);
    let dump = c.ask("DUMP q");
    c.cmd(&[&b"RESTORE"[..], b"restored", b"0", dump.bytes()]).ok();
    assert_eq!(c.ask("COPY q copied").int(), 1);
    for key in ["restored", "copied"] {
        assert_eq!(c.digest(key), c.digest("q"));
        expect_alive(&mut c, key);
    }
}

#[test]
fn a_promoted_replica_goes_on_with_all_of_it() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut follower) = (master.client(), replica.client());
    lively(&mut c);
    let digest = c.digest("q");
    eventually("the replica has it all", || follower.digest("q") == digest);
    assert_eq!(portraits(&mut follower, "q"), portraits(&mut c, "q"));
    follower.ask("REPLICAOF NO ONE").ok();
    expect_alive(&mut follower, "q");
}

#[test]
fn memory_is_given_back_when_all_of_it_is_gone() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q ERRORS 64");
    let used = |c: &mut Client| c.ask("MEMORY USAGE q").int();
    let before = used(&mut c);
    c.push(format!("q x ID m HEADERS 1 a {}", "v".repeat(4_000)));
    let headers = used(&mut c);
    assert!(headers - before > 4_000 && headers - before < 4_500, "{before} to {headers}");
    c.pop_one("q LEASE 600000");
    c.extend(format!("q m CHECKPOINT {}", "c".repeat(20_000)));
    c.nack(format!("q m ERROR {}", "e".repeat(1_000)));
    let all = used(&mut c);
    assert!(all - headers > 21_000 && all - headers < 23_500, "{headers} to {all}");
    c.ask("DQ.CANCEL q m");
    assert!(used(&mut c) - before < 600);
}
