//! Schedules whose key or server changes.

use crate::support::{eventually, in_both_protocols, touches, Client, Clock, Reply, Server};

/// Declares a schedule whose runs fail by themselves, so that the timer has something to do.
fn declare_failing(c: &mut Client, key: &str) {
    assert_eq!(c.ask(format!("DQ.SCHEDULE {key} s x EVERY 20 TTL 1")), Reply::bulk("created"));
    expect_runs(c, key);
}

fn failed(c: &mut Client, key: &str) -> i64 {
    c.get(key, "s").int("failed-runs")
}

/// Waits until runs of the schedule end, without a command that touches the queue.
#[track_caller]
fn expect_runs(c: &mut Client, key: &str) {
    let before = failed(c, key);
    eventually("runs go on", || failed(c, key) > before + 1);
}

#[test]
fn runs_go_on_under_another_name_or_in_another_database() {
    let server = Server::start();
    let mut c = server.client();
    declare_failing(&mut c, "q");
    c.ask("RENAME q other").ok();
    expect_runs(&mut c, "other");
    assert_eq!(c.ask("MOVE other 3").int(), 1);
    c.ask("SELECT 3").ok();
    expect_runs(&mut c, "other");
    c.ask("SWAPDB 3 0").ok();
    c.ask("SELECT 0").ok();
    expect_runs(&mut c, "other");
    c.push("q x");
    assert_eq!(c.ask("COPY other q REPLACE").int(), 1);
    let dump = c.ask("DUMP other");
    c.ask("DEL other");
    expect_runs(&mut c, "q");
    c.cmd(&[b"RESTORE".as_slice(), b"q", b"0", dump.bytes(), b"REPLACE"]).ok();
    expect_runs(&mut c, "q");
    c.ask("DEBUG RELOAD").ok();
    expect_runs(&mut c, "q");
}

#[test]
fn no_run_ends_while_writes_are_paused() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    declare_failing(&mut c, "q");
    c.ask("CLIENT PAUSE 600000 WRITE").ok();
    let (before, now) = (failed(&mut c, "q"), c.now());
    c.until_after(now + 100);
    assert_eq!(failed(&mut c, "q"), before);
    assert_eq!(c.state("q", "s"), "dead", "its time is over, and it waits for the next");
    c.ask("CLIENT UNPAUSE").ok();
    expect_runs(&mut c, "q");
    c.cancel("q s");
    eventually("the replica is the same", || r.digest("q") == c.digest("q"));
}

#[test]
fn a_promoted_replica_ends_the_run_that_its_master_left() {
    let clock = Clock::new();
    clock.set(3_600_000);
    let master = Server::start();
    let port = master.port().to_string();
    let replica = Server::with_clock(&clock, &["--replicaof", "127.0.0.1", &port]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.ask("DQ.SCHEDULE q s x EVERY 86400000 AT 100000000001 TTL 600000");
    c.push("q x ID told");
    eventually("the replica has it", || r.len("q") > 0 && r.state("q", "told") == "ready");
    // By the clock of the replica the run has failed, but its master has not ended it.
    r.until_state("q", "s", "dead");
    eventually("its timer has seen it", || r.len("q dead") == 1);
    assert_eq!(failed(&mut r, "q"), 0);
    r.ask("REPLICAOF NO ONE").ok();
    eventually("the run has ended", || failed(&mut r, "q") == 1);
    assert_eq!(r.state("q", "s"), "delayed");
}

#[test]
fn a_watcher_sees_what_changes_a_schedule() {
    let server = Server::start();
    let declare = "DQ.SCHEDULE q long x EVERY 3600000";
    assert!(touches(&server, |c| drop(c.ask(declare))));
    assert!(!touches(&server, |c| drop(c.ask(declare))), "unchanged");
    assert!(!touches(&server, |c| drop(c.ask("DQ.SCHEDULE q long x EVERY 5 UNTIL 100000000001"))), "refused");
    assert!(touches(&server, |c| drop(c.ask("DQ.PROMOTE q"))));
    declare_failing(&mut server.client(), "q");
    assert!(touches(&server, |c| expect_runs(c, "q")), "time ended runs");
}

#[test]
fn a_series_ends_with_its_last_run_even_if_that_fails() {
    in_both_protocols(|c| {
        c.ask("DQ.SCHEDULE q expires x EVERY 5 TIMES 2 TTL 1");
        c.until_state("q", "expires", "absent");
        assert_eq!(c.counts("q"), [0, 0, 0, 2], "a copy of each run");
        c.create("bare DEADLEN 0");
        c.ask("DQ.SCHEDULE bare spent x EVERY 5 TIMES 2 RETRIES 0");
        for _ in 0..2 {
            let run = &c.ask("DQ.POP bare BLOCK 0 LEASE 1").items()[0].items()[0].text();
            assert_eq!(run, "spent");
        }
        c.until_state("bare", "spent", "absent");
        assert_eq!((c.counts("bare"), c.about("bare").int("died")), ([0; 4], 2));
        let past = "AT 100000000001 UNTIL 100000000002";
        c.ask(format!("DQ.SCHEDULE q once x EVERY 5 {past} TIMES 9"));
        assert_eq!(c.pop_ids("q NOACK"), ["once"]);
        assert_eq!(c.state("q", "once"), "absent", "no time of its rule is left");
        c.ask(format!("DQ.SCHEDULE q buried x EVERY 5 {past}"));
        assert_eq!(c.ask("DQ.BURY q buried"), Reply::bulk("ready"));
        assert_eq!((c.state("q", "buried"), c.counts("q")[3]), ("absent".to_owned(), 3));
    });
}

#[test]
fn an_at_after_until_is_refused_for_an_existing_schedule_too() {
    in_both_protocols(|c| {
        c.ask("DQ.SCHEDULE q s x EVERY 3600000 UNTIL 8000000000000");
        let digest = c.digest("q");
        let line = "DQ.SCHEDULE q s y EVERY 3600000 AT 8000000000001 UNTIL 8000000000000";
        let error = "ERR the first run would be after UNTIL";
        assert_eq!(c.ask(line).error(), error);
        assert_eq!(c.multi(&[line])[0].error(), error);
        assert!(c.script(line).error().contains(error));
        assert_eq!(c.digest("q"), digest);
    });
}

#[test]
fn a_first_time_declared_during_a_run_outlives_a_new_payload() {
    in_both_protocols(|c| {
        c.ask("DQ.SCHEDULE q s x EVERY 3600000 AT 100000000001");
        c.pop_one("q");
        c.ask("DQ.SCHEDULE q s x EVERY 7200000 AT 8000000000000");
        assert_eq!(c.ask("DQ.SCHEDULE q s y EVERY 7200000"), Reply::bulk("changed"));
        assert_eq!(c.ack("q s"), 1);
        let message = c.get("q", "s");
        assert_eq!((message.int("due"), message.text("payload").as_str()), (8_000_000_000_000, "y"));
    });
}

#[test]
fn thousands_of_schedules_are_flushed_in_the_background() {
    let server = Server::start();
    let mut c = server.client();
    let declare = |n: usize| format!("DQ.SCHEDULE q s{n} payload CRON @hourly TZ Asia/Tokyo AT 100000000001");
    c.pipeline((0..3_000).map(declare));
    c.pop("q COUNT 1500 LEASE 600000");
    c.pipeline((0..3_000).map(|n| format!("DQ.SCHEDULE q s{n} another EVERY 77")));
    assert_eq!(c.scan_ids("q", "RECURRING COUNT 1000").len(), 3_000);
    c.ask("FLUSHALL ASYNC").ok();
    assert_eq!(c.info("dq", "dq_queues"), "0");
    assert!(c.ask("DQ.INFO q").is_null());
    declare_failing(&mut c, "q");
}

#[test]
fn replicas_of_replicas_follow_limits_windows_and_schedules() {
    let master = Server::start();
    let middle = Server::replica_of(&master, &[]);
    let last = Server::replica_of(&middle, &[]);
    let (mut c, mut r) = (master.client(), last.client());
    c.create("q RATE 3 600000 DEDUPE 600000000 DEADLEN 1");
    declare_failing(&mut c, "q");
    c.push_many("q 5 1 2 3 4 5 IDS a b c d e PRIORITY 9");
    c.pop("q COUNT 2 NOACK");
    c.ask("DQ.SCHEDULE q s y EVERY 600000");
    c.ask("DQ.SCHEDULE q t y CRON @daily");
    eventually("it is the same", || r.digest("q") == c.digest("q"));
    r.ask("REPLICAOF NO ONE").ok();
    assert!(r.ask("DQ.PUSH q x ID a").is_null());
    assert_eq!(r.pop("q COUNT 9").len(), 1);
    assert_eq!(r.ask("DQ.SCHEDULE q t y CRON @daily"), Reply::bulk("unchanged"));
}
