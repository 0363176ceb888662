//! DQ.PURGE: removes all messages, or those of some states, and keeps the queue.

use crate::support::{effects_of, every_state, in_both_protocols, sequence, Client, Reply, Server};

#[test]
fn without_a_state_everything_is_purged() {
    in_both_protocols(|c| {
        let cast = every_state(c, "q");
        let all = cast.delayed + cast.ready + cast.inflight + cast.dead;
        assert_eq!(c.ask("DQ.PURGE q"), Reply::Int(all));
        assert_eq!(c.counts("q"), [0; 4]);
        assert_eq!(c.about("q").int("payload-bytes"), 0);
        for id in &cast.ids {
            assert_eq!(c.state("q", id), "absent", "{id}");
        }
        assert!(c.pop("q").is_empty());
        assert_eq!(c.ask("DQ.PURGE q"), Reply::Int(0));
    });
}

#[test]
fn only_what_is_named_goes() {
    in_both_protocols(|c| {
        for (states, purged, left) in [
            ("delayed", 3, [0, 5, 2, 3]),
            ("ready", 5, [3, 0, 2, 3]),
            ("inflight", 2, [3, 5, 0, 3]),
            ("dead", 3, [3, 5, 2, 0]),
            ("dead READY", 8, [3, 0, 2, 0]),
            ("dead dead", 3, [3, 5, 2, 0]),
            ("delayed ready inflight dead", 13, [0; 4]),
        ] {
            c.ask("DEL q");
            every_state(c, "q");
            assert_eq!(c.counts("q"), [3, 5, 2, 3]);
            assert_eq!(c.ask(format!("DQ.PURGE q {states}")), Reply::Int(purged), "{states}");
            assert_eq!(c.counts("q"), left, "{states}");
        }
    });
}

#[test]
fn settings_and_totals_stay() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q LEASE 7000 MAXLEN 50 DEADLEN 9");
    c.pause("q");
    c.resume("q");
    every_state(&mut c, "q");
    c.pause("q");
    let about = c.about("q");
    c.purge("q");
    let states = ["delayed", "ready", "inflight", "dead", "payload-bytes", "next-due", "schedules", "consumers"];
    let ages = ["oldest-ready", "oldest-inflight", "oldest-dead", "newest-dead", "last-death", "last-delivery"];
    let moving = [&states[..], &ages].concat();
    assert_eq!(c.about("q").without(&moving), about.without(&moving), "removing is neither an ack nor a cancel");
    assert_eq!(c.ask("EXISTS q"), Reply::Int(1));
}

#[test]
fn ids_go_on_rising_and_names_are_free() {
    let server = Server::start();
    let mut c = server.client();
    let old = c.push("q x");
    c.push("q x ID m");
    c.purge("q");
    let new = c.push("q x");
    assert!(sequence(&old) < sequence(&new));
    assert_eq!(c.push("q x ID m"), "m");
}

#[test]
fn the_receipts_of_what_went_are_worth_nothing() {
    in_both_protocols(|c| {
        c.push("q x ID held");
        c.push("q x ID lapsed RETRIES 3");
        c.push("q x ID spent RETRIES 0");
        let held = c.pop_one("q LEASE 600000").receipt().to_owned();
        let messages = c.pop("q COUNT 2 LEASE 1");
        c.until_state("q", "lapsed", "ready");
        c.until_state("q", "spent", "dead");
        assert_eq!(c.purge("q"), 3);
        for receipt in [held.as_str(), messages[0].receipt(), messages[1].receipt()] {
            assert_eq!(c.ack(format!("q {receipt}")), 0);
            assert!(c.ask(format!("DQ.EXTEND q {receipt}")).is_null());
        }
        assert_eq!(c.ack("q held lapsed spent"), 0);
    });
}

#[test]
fn what_was_purged_in_flight_never_comes_back() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    c.pop_one("q LEASE 600000");
    // In one transaction, and long, so that the lease cannot end in between on a slow machine.
    let answers = c.multi(&["DQ.EXTEND q m LEASE 2000", "DQ.PURGE q inflight"]);
    let deadline = answers[0].int();
    assert_eq!(answers[1].int(), 1);
    c.until_after(deadline);
    assert_eq!(c.counts("q"), [0; 4]);
    assert!(c.pop("q").is_empty());
    assert_eq!(c.about("q").int("lease-expired"), 0);
}

#[test]
fn the_state_of_now_counts_before_the_timer_has_looked() {
    for (state, purged, left) in
        [("delayed", 0, 4), ("inflight", 0, 4), ("ready", 2, 2), ("dead", 2, 2), ("delayed inflight", 0, 4)]
    {
        let server = Server::start();
        let mut c = server.client();
        c.push("q x ID spent RETRIES 0");
        c.push("q x ID lapsed");
        let purge = format!("DQ.PURGE q {state}");
        let replies = c.pipeline([
            "DQ.POP q LEASE 5 COUNT 2",
            "DQ.PUSH q x ID due DELAY 5",
            "DQ.PUSH q x ID expired TTL 5",
            "DEBUG SLEEP 0.05",
            &purge,
        ]);
        assert_eq!(replies[4], Reply::Int(purged), "{state}");
        assert_eq!(c.counts("q").iter().sum::<i64>(), left, "{state}");
    }
}

#[test]
fn a_purged_queue_has_room_again() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXLEN 2");
    c.push_many("q 2 x x");
    c.purge("q");
    assert_eq!(c.push_many("q 2 x x").len(), 2);
}

#[test]
fn many_go_at_once_and_the_rest_is_whole() {
    let server = Server::start();
    let mut c = server.client();
    c.pipeline((0..20_000).map(|n| format!("DQ.PUSH q x ID m{n} PRIORITY {} DELAY {}", n % 7, n % 2 * 600_000)));
    assert_eq!(c.pop("q COUNT 1000 LEASE 600000").len(), 1_000);
    assert_eq!(c.purge("q ready"), 9_000);
    assert_eq!(c.counts("q"), [10_000, 0, 1_000, 0]);
    assert_eq!(c.about("q").int("payload-bytes"), 11_000);
    assert_eq!(c.purge("q delayed"), 10_000);
    assert_eq!(c.len("q"), 1_000);
    c.push("q x ID new");
    assert_eq!(c.pop_ids("q"), ["new"]);
}

#[test]
fn purging_is_one_effect_and_purging_nothing_none() {
    let effects = effects_of(|c| {
        c.push_many("q 3 x x x");
        assert_eq!([c.purge("q dead"), c.purge("q"), c.purge("q"), c.purge("absent")], [0, 3, 0, 0]);
    });
    assert_eq!(effects.len(), 2, "of the push and of the one that found something");
}

#[test]
fn a_purged_queue_replays_as_it_was() {
    for states in ["", "ready", "delayed inflight", "dead"] {
        let mut server = Server::with_aof(&[]);
        let mut c = server.client();
        every_state(&mut c, "q");
        c.purge(format!("q {states}"));
        let (digest, counts) = (c.digest("q"), c.counts("q"));
        server.restart_from_aof();
        let mut c = server.client();
        assert_eq!((c.digest("q"), c.counts("q")), (digest, counts), "{states}");
    }
}

#[test]
fn purging_nothing_touches_nothing() {
    let server = Server::start();
    let (mut c, mut watcher) = (server.client(), server.client());
    c.push("q x ID m");
    let (digest, changes) = (c.digest("q"), c.changes());
    watcher.ask("WATCH q absent").ok();
    for line in ["q dead", "q delayed inflight", "absent", "absent dead"] {
        assert_eq!(c.purge(line), 0, "{line}");
    }
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!((c.digest("q"), c.changes()), (digest, changes));
    assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
}

#[test]
fn it_works_without_memory_and_in_transactions_and_scripts() {
    in_both_protocols(|c: &mut Client| {
        c.push_many("q 2 x x");
        c.push("q x DELAY 600000");
        c.bury("q", &["dead"]);
        c.configure("maxmemory", 1);
        assert_eq!(c.purge("q dead"), 1);
        c.configure("maxmemory", 0);
        assert_eq!(c.multi(&["DQ.PURGE q delayed dead", "DQ.LEN q"]), [1, 2].map(Reply::Int));
        assert_eq!(c.script("DQ.PURGE q"), Reply::Int(2));
    });
}
