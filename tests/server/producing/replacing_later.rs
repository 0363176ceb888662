//! `REPLACE LATER`: a message waits while the delivery that it replaces runs, and takes its place when that ends.

use crate::support::{eventually, in_both_protocols, Client, Reply, Server};

/// Puts a message in flight, and keeps another one that replaces it later. Returns the receipt of the delivery.
fn keep_later(c: &mut Client) -> String {
    c.push("q old ID m PRIORITY 3 RETRIES 0");
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    assert_eq!(c.push("q newer ID m REPLACE LATER"), "m");
    assert_eq!(c.push("q newest ID m PRIORITY 5 DELAY 0 REPLACE LATER"), "m");
    let message = c.get("q", "m");
    assert_eq!((message.text("payload").as_str(), message.text("state").as_str()), ("old", "inflight"));
    assert_eq!((message.int("next"), message.int("priority"), message.int("attempt")), (1, 3, 1));
    assert_eq!(message.text("receipt"), receipt);
    let about = c.about("q");
    assert_eq!(["delayed", "ready", "inflight", "dead"].map(|state| about.int(state)), [0, 0, 1, 0]);
    assert_eq!(about.int("payload-bytes"), 9);
    assert!(c.pop("q").is_empty(), "the same id never runs twice at once");
    receipt
}

/// The kept message has taken the place, and is delivered as new.
fn expect_the_last(c: &mut Client, receipt: &str) {
    let message = c.get("q", "m");
    assert_eq!((message.text("payload").as_str(), message.int("next"), message.int("attempt")), ("newest", 0, 0));
    assert_eq!(c.about("q").int("payload-bytes"), 6);
    assert_eq!((c.ack(format!("q {receipt}")), c.ack("q m")), (0, 0));
    let popped = c.pop_one("q");
    assert_eq!((popped.payload.as_slice(), popped.attempt), (&b"newest"[..], 1));
    assert_eq!(c.ack(format!("q {}", popped.receipt())), 1);
    assert_eq!((c.state("q", "m"), c.len("q dead")), ("absent".to_owned(), 0));
}

#[test]
fn a_message_kept_for_later_follows_every_end_of_a_delivery() {
    in_both_protocols(|c| {
        type End = fn(&mut Client, &str);
        let ends: [End; 6] = [
            |c, receipt| assert_eq!(c.ack(format!("q {receipt}")), 1),
            |c, receipt| assert_eq!(c.nack(format!("q {receipt} DELAY 600000 ERROR no")), "ready"),
            |c, receipt| assert_eq!(c.nack(format!("q {receipt} DEAD")), "ready"),
            |c, receipt| assert_eq!(c.nack(format!("q {receipt} NOCOUNT")), "ready"),
            |c, _| assert_eq!(c.ask("DQ.BURY q m ERROR no").text(), "inflight"),
            |c, receipt| {
                c.extend(format!("q {receipt} LEASE 1"));
                c.until_state("q", "m", "ready");
                assert_eq!(c.ask(format!("DQ.NACK q {receipt}")), c.null());
            },
        ];
        for end in ends {
            let receipt = keep_later(c);
            end(c, &receipt);
            expect_the_last(c, &receipt);
        }
        let receipt = keep_later(c);
        assert_eq!(c.push("q x ID m DELAY 600000 REPLACE LATER"), "m");
        assert_eq!(c.nack(format!("q {receipt}")), "delayed", "the state of the one that took the place");
        assert_eq!(c.about("q").int("died"), 0);
    });
}

#[test]
fn removing_a_message_removes_the_one_kept_for_later() {
    in_both_protocols(|c| {
        keep_later(c);
        assert_eq!(c.cancel("q m"), ["inflight"]);
        keep_later(c);
        assert_eq!(c.purge("q inflight"), 1);
        let receipt = keep_later(c);
        c.push("q plain ID m REPLACE");
        assert_eq!(c.ack(format!("q {receipt}")), 0);
        assert_eq!((c.pop_one("q").payload, c.about("q").int("payload-bytes")), (b"plain".to_vec(), 5));
        c.purge("q");
        assert_eq!(c.push("q x ID m REPLACE LATER"), "m", "in any other state it is a plain replacement");
        c.push("q y ID m REPLACE LATER");
        assert_eq!((c.len("q"), c.pop_one("q").payload), (1, b"y".to_vec()));
    });
}

#[test]
fn a_message_kept_for_later_survives_a_restart_and_a_failover() {
    let mut master = Server::with_aof(&["--aof-use-rdb-preamble", "no"]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    let receipt = keep_later(&mut c);
    let (digest, message) = (c.digest("q"), c.get("q", "m"));
    let expect = |c: &mut Client, how: &str| {
        assert_eq!((c.digest("q"), c.get("q", "m")), (digest.clone(), message.clone()), "{how}");
        assert_eq!(c.about("q").int("payload-bytes"), 9, "{how}");
    };
    c.ask("DEBUG RELOAD").ok();
    expect(&mut c, "RDB");
    c.ask("DEBUG LOADAOF").ok();
    expect(&mut c, "AOF");
    c.ask("BGREWRITEAOF");
    c.until_rewritten();
    c.ask("DEBUG LOADAOF").ok();
    expect(&mut c, "a rewritten AOF");
    assert_eq!(c.ask("COPY q copy").int(), 1);
    let dump = c.ask("DUMP copy");
    c.cmd(&[b"RESTORE".as_slice(), b"q", b"0", dump.bytes(), b"REPLACE"]).ok();
    expect(&mut c, "COPY and DUMP");
    assert_eq!(c.ask("WAIT 1 20000").int(), 1);
    drop(c);
    master.kill9();
    r.ask("REPLICAOF NO ONE").ok();
    expect(&mut r, "a failover");
    assert_eq!(r.ack(format!("q {receipt}")), 1);
    expect_the_last(&mut r, &receipt);
}

#[test]
fn a_blocked_client_gets_a_kept_message_at_once() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    let ends: [fn(&mut Client, &str); 3] = [
        |c, receipt| assert_eq!(c.ack(format!("q {receipt}")), 1),
        |c, receipt| assert_eq!(c.nack(format!("q {receipt} DEAD")), "ready"),
        |c, _| assert_eq!(c.ask("DQ.BURY q m").text(), "inflight"),
    ];
    for end in ends {
        let receipt = keep_later(&mut c);
        waiting.wait_for_message("q");
        c.until_blocked(1);
        end(&mut c, &receipt);
        let served = waiting.served();
        assert_eq!((served.payload.as_slice(), served.attempt), (&b"newest"[..], 1));
        assert_eq!(c.ack("q m"), 1);
    }
}

#[test]
fn a_kept_message_is_delivered_at_its_own_due_time() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    c.push("q old ID m");
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    c.push("q new ID m DELAY 100 REPLACE LATER");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.ack(format!("q {receipt}"));
    let due = c.get("q", "m").int("due");
    assert_eq!(waiting.served().payload, b"new");
    assert!(c.latest_now() >= due);
}

#[test]
fn a_message_in_flight_with_a_kept_one_is_moved_by_nobody() {
    in_both_protocols(|c| {
        let receipt = keep_later(c);
        c.push("q later ID m DELAY 600000 REPLACE LATER");
        let before = c.get("q", "m");
        assert_eq!(c.reschedule("q m DELAY 0 PRIORITY 5"), 0);
        assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(0));
        assert_eq!((c.purge("q delayed ready COUNT 5"), c.redrive("q")), (0, 0));
        assert_eq!(c.get("q", "m"), before);
        assert!(c.extend(format!("q {receipt} LEASE 700000")) - c.now() > 600_000);
        assert_eq!(c.ack(format!("q {receipt}")), 1);
        assert_eq!(c.reschedule("q m DELAY 0"), 1, "it has taken the place");
        assert_eq!(c.pop_one("q").payload, b"later");
    });
}

#[test]
fn a_purge_of_some_removes_the_kept_message_too() {
    in_both_protocols(|c| {
        keep_later(c);
        c.push("q x ID other");
        assert_eq!(c.purge("q inflight COUNT 1"), 1);
        assert_eq!((c.len("q"), c.about("q").int("payload-bytes")), (1, 1));
    });
}

#[test]
fn a_kept_message_needs_no_room_and_takes_none() {
    in_both_protocols(|c| {
        c.create("q MAXLEN 1 MAXINFLIGHT 1 MAXPAYLOAD 6 RATE 5 600000");
        let receipt = keep_later(c);
        assert!(c.ask("DQ.PUSH q x").error().starts_with("QUEUEFULL"));
        assert!(c.ask("DQ.PUSH q too-large ID m REPLACE LATER").error().starts_with("TOOLARGE"));
        assert_eq!(c.len("q"), 1);
        c.ack(format!("q {receipt}"));
        assert_eq!(c.len("q"), 1, "the kept one counts now");
        expect_the_last(c, &receipt);
        assert_eq!(c.about("q").int("delivered"), 2, "each counts when it is delivered");
    });
}

#[test]
fn keeping_a_message_starts_the_window_of_its_id_again() {
    in_both_protocols(|c| {
        c.create("q DEDUPE 600000");
        let receipt = keep_later(c);
        assert!(c.ask("DQ.PUSH q x ID m").is_null(), "the id is taken");
        assert_eq!(c.ack(format!("q {receipt}")), 1);
        assert_eq!(c.about("q").int("known"), 0, "the queue holds a message of this id");
        expect_the_last(c, &receipt);
        assert_eq!(c.about("q").int("known"), 1);
        assert!(c.ask("DQ.PUSH q x ID m").is_null(), "the window has not ended");
    });
}

#[test]
fn maxwait_bounds_how_long_kept_messages_are_put_off() {
    in_both_protocols(|c| {
        c.push("q old ID m DELAY 0");
        let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
        let before = c.now();
        c.push("q first ID m DELAY 500000 REPLACE LATER");
        let after = c.now();
        c.push("q second ID m DELAY 900000 REPLACE MAXWAIT 700000 LATER");
        assert_eq!(c.ack(format!("q {receipt}")), 1);
        let message = c.get("q", "m");
        let due = message.int("due");
        assert!((before + 700_000..=after + 700_000).contains(&due), "{due} after {before}");
        assert_eq!(message.text("payload"), "second");
    });
}

#[test]
fn an_expired_kept_message_dies_as_it_takes_the_place() {
    in_both_protocols(|c| {
        let ends: [fn(&mut Client, &str); 4] = [
            |c, receipt| assert_eq!(c.ack(format!("q {receipt}")), 1),
            |c, receipt| assert_eq!(c.nack(format!("q {receipt} ERROR no")), "dead"),
            |c, _| assert_eq!(c.ask("DQ.BURY q m ERROR no").text(), "inflight"),
            |c, receipt| {
                c.extend(format!("q {receipt} LEASE 1"));
            },
        ];
        for end in ends {
            c.push("q old ID m");
            let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
            c.push("q new ID m TTL 1 REPLACE LATER");
            let now = c.now();
            c.until_after(now + 1);
            assert_eq!((c.state("q", "m").as_str(), c.len("q dead")), ("inflight", 0));
            end(c, &receipt);
            c.until_state("q", "m", "dead");
            let message = c.get("q", "m");
            assert_eq!((message.text("payload").as_str(), message.text("reason").as_str()), ("new", "expired"));
            assert!(!message.has("error"), "the error was that of the delivered one");
            assert_eq!(c.ack(format!("q {receipt}")), 0);
            c.cancel("q m");
        }
        assert_eq!(c.about("q").int("died"), 4);
    });
}

/// Declares a schedule, and delivers its first run. Returns the receipt.
fn run(c: &mut Client) -> String {
    c.ask("DQ.SCHEDULE q m run EVERY 3600000 AT 100000000001 RETRIES 0");
    c.pop_one("q LEASE 600000").receipt().to_owned()
}

#[test]
fn replacing_a_run_later_ends_its_series_and_not_the_run() {
    in_both_protocols(|c| {
        let ends: [fn(&mut Client, &str); 4] = [
            |c, receipt| assert_eq!(c.ack(format!("q {receipt}")), 1),
            |c, receipt| assert_eq!(c.nack(format!("q {receipt} DEAD ERROR no")), "ready"),
            |c, _| assert_eq!(c.ask("DQ.BURY q m").text(), "inflight"),
            |c, receipt| {
                c.extend(format!("q {receipt} LEASE 1"));
                c.until_state("q", "m", "ready");
            },
        ];
        for end in ends {
            let receipt = run(c);
            c.push("q newest ID m PRIORITY 5 REPLACE LATER");
            let message = c.get("q", "m");
            assert_eq!((message.text("payload").as_str(), message.text("state").as_str()), ("run", "inflight"));
            assert!(!message.has("every"), "the series has ended");
            assert!(c.scan_ids("q", "RECURRING").is_empty());
            end(c, &receipt);
            assert_eq!(c.len("q dead"), 0, "the run leaves no copy");
            expect_the_last(c, &receipt);
        }
    });
}

#[test]
fn replacing_later_drops_what_was_declared_for_the_next_run() {
    in_both_protocols(|c| {
        c.push("q ordinary ID m");
        let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
        assert_eq!(c.ask("DQ.SCHEDULE q m run EVERY 3600000"), Reply::bulk("changed"));
        c.push("q newest ID m REPLACE LATER");
        assert!(!c.get("q", "m").has("every"));
        assert_eq!(c.ack(format!("q {receipt}")), 1);
        expect_the_last(c, &receipt);
    });
}

#[test]
fn a_schedule_takes_the_place_of_a_kept_message() {
    in_both_protocols(|c| {
        let receipt = keep_later(c);
        let pushed = c.about("q").int("pushed");
        let declare = "DQ.SCHEDULE q m run EVERY 3600000 RETRIES 0";
        assert_eq!(c.ask(declare), Reply::bulk("changed"));
        assert_eq!(c.ask(declare), Reply::bulk("unchanged"));
        let message = c.get("q", "m");
        assert_eq!((message.text("payload").as_str(), message.text("state").as_str()), ("old", "inflight"));
        assert_eq!((message.int("next"), message.int("every"), message.int("runs")), (1, 3_600_000, 0));
        assert_eq!((c.about("q").int("pushed"), c.about("q").int("payload-bytes")), (pushed, 6));
        assert_eq!(c.scan_ids("q", "RECURRING"), ["m"]);
        assert_eq!(c.ack(format!("q {receipt}")), 1);
        let message = c.get("q", "m");
        assert_eq!((message.text("payload").as_str(), message.text("state").as_str()), ("run", "delayed"));
        assert_eq!((message.int("runs"), message.int("next"), message.int("due") % 3_600_000), (0, 0, 0));
        c.reschedule("q m DELAY 0");
        c.pop_one("q");
        assert_eq!(c.ack("q m"), 1);
        assert_eq!(c.get("q", "m").int("runs"), 1);
    });
}

#[test]
fn a_kept_schedule_whose_run_expires_goes_on() {
    in_both_protocols(|c| {
        let receipt = keep_later(c);
        c.ask("DQ.SCHEDULE q m run EVERY 3600000 AT 100000000001 TTL 1");
        let now = c.now();
        c.until_after(now + 1);
        assert_eq!(c.nack(format!("q {receipt} DEAD")), "dead");
        eventually("the run has ended", || c.state("q", "m") == "delayed");
        let message = c.get("q", "m");
        assert_eq!((message.int("runs"), message.int("failed-runs"), c.len("q dead")), (1, 1, 1));
    });
}

#[test]
fn a_kept_schedule_survives_a_restart_and_a_failover() {
    let mut master = Server::with_aof(&["--aof-use-rdb-preamble", "no"]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    let receipt = keep_later(&mut c);
    c.ask("DQ.SCHEDULE q m run EVERY 3600000 TIMES 7");
    let (digest, message) = (c.digest("q"), c.get("q", "m"));
    let expect = |c: &mut Client, how: &str| {
        assert_eq!((c.digest("q"), c.get("q", "m")), (digest.clone(), message.clone()), "{how}");
    };
    c.ask("DEBUG RELOAD").ok();
    expect(&mut c, "RDB");
    c.ask("BGREWRITEAOF");
    c.until_rewritten();
    c.ask("DEBUG LOADAOF").ok();
    expect(&mut c, "a rewritten AOF");
    assert_eq!(c.ask("WAIT 1 20000").int(), 1);
    drop(c);
    master.kill9();
    r.ask("REPLICAOF NO ONE").ok();
    expect(&mut r, "a failover");
    assert_eq!(r.ack(format!("q {receipt}")), 1);
    let message = r.get("q", "m");
    assert_eq!((message.int("times-left"), message.text("state").as_str()), (7, "delayed"));
}

#[test]
fn replicas_follow_when_kept_messages_take_their_place() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    for end in ["DQ.ACK q m", "DQ.NACK q m", "DQ.NACK q m DEAD", "DQ.BURY q m", "DQ.CANCEL q m", "DQ.PURGE q"] {
        keep_later(&mut c);
        c.ask(end);
        assert_eq!(c.ask("WAIT 1 20000").int(), 1);
        assert_eq!(c.digest("q"), r.digest("q"), "{end}");
        assert_eq!(c.counts("q"), r.counts("q"), "{end}");
        c.purge("q");
    }
}
