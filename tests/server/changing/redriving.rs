//! DQ.REDRIVE: dead messages become deliverable again with all their attempts.

use crate::support::{effects_of, eventually, in_both_protocols, Client, Reply, Server};

/// Which of these ids are dead.
fn dead_of<'a>(c: &mut Client, ids: &[&'a str]) -> Vec<&'a str> {
    ids.iter().copied().filter(|id| c.state("q", id) == "dead").collect()
}

#[test]
fn without_arguments_all_dead_messages_are_redriven() {
    in_both_protocols(|c| {
        c.bury("q", &["a", "b", "c"]);
        c.push("q x ID delayed DELAY 600000");
        assert_eq!(c.ask("DQ.REDRIVE q"), Reply::Int(3));
        assert_eq!(c.counts("q"), [1, 3, 0, 0]);
        let about = c.about("q");
        assert_eq!((about.int("redriven"), about.int("died"), about.int("pushed")), (3, 3, 4));
        assert_eq!(c.ask("DQ.REDRIVE q"), Reply::Int(0));
    });
}

#[test]
fn a_redriven_message_starts_anew_with_its_original_options() {
    in_both_protocols(|c| {
        c.push("q hello ID m PRIORITY 5 RETRIES 1 LEASE 60000 TTL 600000");
        let created = c.get("q", "m").int("created");
        for state in ["ready", "dead"] {
            c.pop_one("q");
            assert_eq!(c.nack("q m DELAY 0 ERROR boom"), state);
        }
        c.expect_ms_from_now(0, |c| {
            assert_eq!(c.redrive("q"), 1);
            c.get("q", "m").int("due")
        });
        let message = c.get("q", "m");
        assert_eq!((message.text("state"), message.text("payload")), ("ready".to_owned(), "hello".to_owned()));
        let numbers = ["attempt", "priority", "retries", "lease", "ttl", "created"].map(|name| message.int(name));
        assert_eq!(numbers, [0, 5, 1, 60_000, 600_000, created]);
        for gone in ["error", "reason", "died", "deadline", "receipt"] {
            assert!(!message.has(gone), "{gone} belonged to its former life");
        }
        // It has all its attempts again.
        for (attempt, state) in [(1, "ready"), (2, "dead")] {
            assert_eq!(c.pop_one("q").attempt, attempt);
            assert_eq!(c.nack("q m DELAY 0"), state);
        }
    });
}

#[test]
fn the_oldest_of_the_dead_come_first() {
    in_both_protocols(|c| {
        let ids = ["a", "b", "c", "d"];
        c.bury("q", &ids);
        assert_eq!(c.ask("DQ.REDRIVE q COUNT 1"), Reply::Int(1));
        assert_eq!(dead_of(c, &ids), ["b", "c", "d"]);
        assert_eq!(c.redrive("q count 2"), 2);
        assert_eq!(dead_of(c, &ids), ["d"]);
        assert_eq!(c.redrive("q COUNT 2147483647"), 1, "no more than there are");
    });
}

#[test]
fn the_order_is_that_of_death_not_of_push() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID pushed-first DELAY 600000");
    c.bury("q", &["died-first"]);
    // Another instant than the death before.
    let died = c.get("q", "died-first").int("died");
    c.until_after(died);
    c.reschedule("q pushed-first DELAY 0");
    c.pop_one("q");
    c.nack("q pushed-first DEAD");
    assert_eq!(c.redrive("q COUNT 1"), 1);
    assert_eq!(dead_of(&mut c, &["pushed-first", "died-first"]), ["pushed-first"]);
}

#[test]
fn dead_messages_of_one_instant_return_in_push_order() {
    let server = Server::start();
    let mut c = server.client();
    let due = c.now() + 100;
    for (id, priority) in [("a", 0), ("b", 9), ("c", -9)] {
        c.push(format!("q x ID {id} AT {due} TTL 1 PRIORITY {priority}"));
    }
    for id in ["a", "b", "c"] {
        c.until_state("q", id, "dead");
    }
    for left in [["b", "c"].as_slice(), &["c"], &[]] {
        assert_eq!(c.redrive("q COUNT 1 DELAY 600000"), 1);
        assert_eq!(dead_of(&mut c, &["a", "b", "c"]), left);
    }
}

#[test]
fn named_messages_are_redriven_and_living_ones_skipped() {
    in_both_protocols(|c| {
        c.bury("q", &["a", "b", "c"]);
        c.push("q x ID ready");
        c.push("q x ID delayed DELAY 600000");
        let ready = c.get("q", "ready");
        assert_eq!(
            c.ask("DQ.REDRIVE q IDS 7 c ready nobody delayed a c 1-1"),
            Reply::Int(2),
            "given twice, counted once"
        );
        assert_eq!(dead_of(c, &["a", "b", "c"]), ["b"]);
        assert_eq!(c.get("q", "ready"), ready);
        assert_eq!(c.ask("DQ.REDRIVE q ids 1 COUNT"), Reply::Int(0), "a word that looks like an option is an id");
    });
}

#[test]
fn they_may_live_again_later() {
    in_both_protocols(|c| {
        c.bury("q", &["a", "b"]);
        c.expect_ms_from_now(700_000, |c| {
            assert_eq!(c.ask("DQ.REDRIVE q DELAY 700000 COUNT 1"), Reply::Int(1), "options in any order");
            c.get("q", "a").int("due")
        });
        assert_eq!(c.redrive("q IDS 1 b DELAY 600000"), 1);
        assert_eq!(c.counts("q"), [2, 0, 0, 0]);
        assert!(c.pop("q").is_empty());
    });
}

#[test]
fn they_are_delivered_in_the_order_of_all_others() {
    let server = Server::start();
    let mut c = server.client();
    for (id, priority) in [("low", -1), ("first", 0), ("high", 1), ("second", 0)] {
        c.push(format!("q x ID {id} PRIORITY {priority}"));
    }
    for _ in 0..4 {
        let id = c.pop_one("q").id;
        c.nack(format!("q {id} DEAD"));
    }
    assert_eq!(c.redrive("q"), 4);
    assert_eq!(c.pop_ids("q COUNT 5"), ["high", "first", "second", "low"], "priority, due time, push order");
}

#[test]
fn their_time_to_live_starts_anew() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m TTL 40");
    c.until_state("q", "m", "dead");
    let states = c.at_once(["DQ.REDRIVE q DELAY 2000", "DQ.LEN q delayed"]);
    assert_eq!(states, [1, 1].map(Reply::Int));
    c.until_state("q", "m", "dead");
    let message = c.get("q", "m");
    assert_eq!(message.text("reason"), "expired");
    assert_eq!(message.int("died"), message.int("due") + 40, "from the new due time, as long as before");
    eventually("both deaths are counted", || c.about("q").int("died") == 2);
}

#[test]
fn a_late_ack_of_the_former_life_counts_nothing() {
    in_both_protocols(|c| {
        c.push("q x ID m RETRIES 0");
        let receipt = c.pop_one("q LEASE 1").receipt().to_owned();
        c.until_state("q", "m", "dead");
        assert_eq!(c.redrive("q"), 1);
        assert_eq!(c.ack(format!("q {receipt} m")), 0);
        assert_eq!(c.state("q", "m"), "ready");
        let again = c.pop_one("q LEASE 600000");
        assert_eq!(again.attempt, 1);
        assert_ne!(again.receipt(), receipt);
        assert_eq!(c.ack(format!("q {receipt}")), 0);
        assert_eq!(c.ack(format!("q {}", again.receipt())), 1);
    });
}

#[test]
fn a_full_queue_takes_its_dead_back() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXLEN 1");
    c.bury("q", &["a", "b", "c"]);
    c.push("q x");
    assert_eq!(c.redrive("q"), 3);
    assert_eq!(c.len("q"), 4);
    assert_eq!(c.ask("DQ.PUSH q x").error(), "QUEUEFULL queue holds 4 messages (MAXLEN)");
}

#[test]
fn messages_dead_by_now_are_redriven_before_the_timer_runs() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID spent RETRIES 0");
    let replies = c.pipeline([
        "DQ.POP q LEASE 5",
        "DQ.PUSH q x ID expired TTL 5",
        "DEBUG SLEEP 0.05",
        "DQ.REDRIVE q IDS 1 spent DELAY 600000",
        "DQ.REDRIVE q DELAY 600000",
    ]);
    assert_eq!(replies[3..], [1, 1].map(Reply::Int));
    assert_eq!(c.counts("q"), [2, 0, 0, 0]);
}

#[test]
fn redriven_messages_wake_blocked_clients() {
    let server = Server::start();
    let mut c = server.client();
    c.bury("q", &["a", "b"]);
    let mut waiting = [server.client(), server.client()];
    for (n, client) in waiting.iter_mut().enumerate() {
        client.wait_for_message("q");
        c.until_blocked(n + 1);
    }
    assert_eq!(c.redrive("q COUNT 1"), 1);
    assert_eq!(waiting[0].served().id, "a");
    assert_eq!(c.redrive("q DELAY 30"), 1);
    let due = c.get("q", "b").int("due");
    assert_eq!(waiting[1].served().id, "b");
    c.expect_delivered_at("q", "b", due);
}

#[test]
fn thousands_live_again_at_once() {
    let server = Server::start();
    let mut c = server.client();
    let due = c.now() + 300;
    c.pipeline((0..5_000).map(|n| format!("DQ.PUSH q x ID m{n} TTL 1 AT {due}")));
    eventually("all are dead", || c.len("q dead") == 5_000);
    c.alter("q TTL 0");
    assert_eq!(c.redrive("q COUNT 2000 DELAY 600000"), 2_000);
    assert_eq!(c.counts("q"), [2_000, 0, 0, 3_000]);
    assert_eq!(c.redrive("q DELAY 600000"), 3_000);
    assert_eq!(c.counts("q"), [5_000, 0, 0, 0]);
}

#[test]
fn redriving_is_one_effect_and_finding_nobody_none() {
    let effects = effects_of(|c| {
        c.push_many("q 3 x x x IDS a b c");
        c.pop("q COUNT 3");
        for id in ["a", "b", "c"] {
            c.nack(format!("q {id} DEAD"));
        }
        assert_eq!(c.redrive("q COUNT 2"), 2);
        assert_eq!(c.redrive("q IDS 2 a nobody"), 0);
        assert_eq!(c.redrive("q"), 1);
        assert_eq!(c.redrive("q"), 0);
    });
    assert_eq!(effects.len(), 7, "a push, a pop, three nacks and two redrives");
}

#[test]
fn redriving_nobody_touches_nothing() {
    let server = Server::start();
    let (mut c, mut watcher) = (server.client(), server.client());
    c.push("q x ID m");
    let (digest, changes) = (c.digest("q"), c.changes());
    watcher.ask("WATCH q absent").ok();
    for line in ["q", "q COUNT 5", "q IDS 2 m nobody DELAY 5", "absent", "absent IDS 1 m"] {
        assert_eq!(c.redrive(line), 0, "{line}");
    }
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!((c.digest("q"), c.changes()), (digest, changes));
    assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
}

#[test]
fn it_works_without_memory_and_in_transactions_and_scripts() {
    in_both_protocols(|c| {
        c.bury("q", &["a", "b", "c"]);
        c.configure("maxmemory", 1);
        assert_eq!(c.redrive("q COUNT 1"), 1);
        c.configure("maxmemory", 0);
        assert_eq!(c.multi(&["DQ.REDRIVE q IDS 1 b", "DQ.REDRIVE q IDS 1 b"]), [1, 0].map(Reply::Int));
        assert_eq!(c.script("DQ.REDRIVE q DELAY 5"), Reply::Int(1));
    });
}
