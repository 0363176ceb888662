//! Declaring schedules: created, changed, unchanged, and when a change applies.

use crate::support::{effects_of, in_both_protocols, Reply, Server};
use std::sync::Barrier;

const HOUR: i64 = 3_600_000;

#[test]
fn a_schedule_is_due_at_multiples_of_its_interval() {
    in_both_protocols(|c| {
        let before = c.now();
        assert_eq!(c.ask("DQ.SCHEDULE q report x EVERY 3600000 OFFSET 300000"), Reply::bulk("created"));
        let message = c.get("q", "report");
        let due = message.int("due");
        assert_eq!(due % HOUR, 300_000);
        assert!(before < due && due <= c.now() + HOUR, "{due}");
        assert_eq!((message.int("every"), message.int("offset"), message.int("runs")), (HOUR, 300_000, 0));
        assert_eq!(message.int("failed-runs"), 0);
        for field in ["until", "times-left", "last-run"] {
            assert!(message.get(field).is_null(), "{field}");
        }
        assert_eq!(c.counts("q"), [1, 0, 0, 0]);
        assert_eq!(c.about("q").int("pushed"), 1);
    });
}

#[test]
fn declaring_the_same_again_changes_nothing() {
    in_both_protocols(|c| {
        let line =
            "DQ.SCHEDULE q s x TIMES 5 EVERY 600000 PRIORITY 3 RETRIES 2 LEASE 5000 TTL 9000 UNTIL 8000000000000";
        assert_eq!(c.ask(line), Reply::bulk("created"));
        assert_eq!(c.reschedule("q s DELAY 7000 PRIORITY 9"), 1);
        let (digest, changes, due) = (c.digest("q"), c.changes(), c.get("q", "s").int("due"));
        assert_eq!(c.ask(line), Reply::bulk("unchanged"));
        assert_eq!(c.ask(format!("{line} AT 8000000000000")), Reply::bulk("unchanged"), "AT is for new series");
        assert_eq!(c.multi(&[line]), [Reply::bulk("unchanged")]);
        assert_eq!(c.script(line), Reply::bulk("unchanged"));
        assert_eq!((c.digest("q"), c.changes(), c.get("q", "s").int("due")), (digest, changes, due));
    });
}

#[test]
fn twenty_processes_that_declare_at_boot_make_one_series() {
    let server = Server::start();
    let mut c = server.client();
    let start = Barrier::new(20);
    let answers: Vec<String> = std::thread::scope(|scope| {
        let declare = || {
            let mut c = server.client();
            start.wait();
            c.ask("DQ.SCHEDULE q nightly x EVERY 86400000").text()
        };
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(declare)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|answer| *answer == "created").count(), 1);
    assert_eq!(answers.iter().filter(|answer| *answer == "unchanged").count(), 19);
    assert_eq!(c.counts("q"), [1, 0, 0, 0]);
}

#[test]
fn a_new_payload_keeps_the_due_time_and_a_new_rule_does_not() {
    in_both_protocols(|c| {
        c.ask("DQ.SCHEDULE q s x EVERY 3600000 AT 8000000000000");
        assert_eq!(c.get("q", "s").int("due"), 8_000_000_000_000);
        assert_eq!(c.ask("DQ.SCHEDULE q s y EVERY 3600000 LEASE 77 TIMES 4"), Reply::bulk("changed"));
        let message = c.get("q", "s");
        assert_eq!((message.text("payload").as_str(), message.int("due")), ("y", 8_000_000_000_000));
        assert_eq!((message.int("lease"), message.int("times-left")), (77, 4));
        assert_eq!(c.ask("DQ.SCHEDULE q s y EVERY 3600000 OFFSET 1 LEASE 77 TIMES 4"), Reply::bulk("changed"));
        assert_eq!(c.get("q", "s").int("due") % HOUR, 1);
        assert_eq!(c.ask("DQ.SCHEDULE q s y EVERY 7200000 AT 100000000001"), Reply::bulk("changed"));
        assert_eq!(c.state("q", "s"), "ready", "an AT in the past is ready at once");
        assert_eq!(c.about("q").int("pushed"), 1);
    });
}

#[test]
fn a_change_during_a_run_applies_from_the_next_one() {
    in_both_protocols(|c| {
        c.ask("DQ.SCHEDULE q s old EVERY 3600000 AT 100000000001 RETRIES 5");
        let first = c.pop_one("q");
        assert_eq!(c.ask("DQ.SCHEDULE q s new EVERY 7200000 RETRIES 5"), Reply::bulk("changed"));
        assert_eq!(c.ask("DQ.SCHEDULE q s new EVERY 7200000 RETRIES 5"), Reply::bulk("unchanged"));
        assert_eq!(c.nack("q s DELAY 0"), "ready");
        assert_eq!(c.ask("DQ.SCHEDULE q s newer EVERY 7200000 RETRIES 5"), Reply::bulk("changed"), "it waits to retry");
        let retried = c.pop_one("q");
        assert_eq!((retried.payload.as_slice(), retried.attempt), (b"old".as_slice(), 2));
        assert_eq!(c.ack(format!("q {}", first.receipt())), 0);
        assert_eq!(c.ack(format!("q {}", retried.receipt())), 1);
        let message = c.get("q", "s");
        assert_eq!((message.text("payload").as_str(), message.int("every")), ("newer", 7_200_000));
        assert_eq!((message.int("due") % 7_200_000, message.int("runs"), message.int("attempt")), (0, 1, 0));
    });
}

#[test]
fn an_ordinary_message_becomes_the_schedule() {
    in_both_protocols(|c| {
        c.push("q x ID delayed DELAY 600000");
        c.push("q x ID dead");
        c.ask("DQ.BURY q dead");
        c.push("q x ID running PRIORITY 9");
        c.pop_one("q");
        for id in ["delayed", "dead", "running"] {
            assert_eq!(c.ask(format!("DQ.SCHEDULE q {id} y EVERY 3600000")), Reply::bulk("changed"), "{id}");
        }
        for id in ["delayed", "dead"] {
            let message = c.get("q", id);
            assert_eq!((message.text("state").as_str(), message.int("due") % HOUR), ("delayed", 0), "{id}");
        }
        assert_eq!(c.get("q", "running").text("payload"), "x");
        assert_eq!(c.ack("q running"), 1);
        let message = c.get("q", "running");
        assert_eq!((message.text("payload").as_str(), message.int("runs")), ("y", 0));
        assert!(message.get("last-run").is_null());
        assert_eq!(c.counts("q"), [3, 0, 0, 0]);
    });
}

#[test]
fn a_schedule_is_listed_and_its_id_is_taken() {
    in_both_protocols(|c| {
        c.push("q x ID ordinary");
        c.ask("DQ.SCHEDULE q s x EVERY 3600000");
        assert_eq!(c.scan_ids("q", "RECURRING"), ["s"]);
        assert_eq!(c.scan_ids("q", "RECURRING STATE ready"), Vec::<String>::new());
        assert_eq!(c.peek("q delayed")[0].int("every"), HOUR);
        assert!(c.ask("DQ.PUSH q y ID s").is_null());
        assert_eq!(c.about("q").int("duplicates"), 1);
        c.push("q y ID s REPLACE");
        assert_eq!(c.scan_ids("q", "RECURRING"), Vec::<String>::new());
        assert_eq!(c.ask("DQ.SCHEDULE q s x EVERY 3600000"), Reply::bulk("changed"));
        assert_eq!(c.cancel("q s"), ["delayed"]);
        assert!(c.ask("DQ.GET q s").is_null());
    });
}

#[test]
fn limits_hold_for_schedules_too() {
    in_both_protocols(|c| {
        c.create("q MAXLEN 1 MAXPAYLOAD 3");
        assert!(c.ask("DQ.SCHEDULE q s long EVERY 5000").error().starts_with("TOOLARGE payload of 4 bytes"));
        assert_eq!(c.ask("DQ.SCHEDULE q s x EVERY 5000"), Reply::bulk("created"));
        assert!(c.ask("DQ.SCHEDULE q t x EVERY 5000").error().starts_with("QUEUEFULL queue holds 1 message"));
        assert_eq!(c.ask("DQ.SCHEDULE q s y EVERY 5000"), Reply::bulk("changed"), "what is there needs no room");
        assert_eq!(c.about("q").int("rejected-full"), 1);
    });
}

#[test]
fn what_is_declared_is_written_once() {
    let came = effects_of(|c| {
        c.ask("DQ.SCHEDULE q s x EVERY 3600000");
        c.ask("DQ.SCHEDULE q s x EVERY 3600000");
        c.ask("DQ.SCHEDULE q s y EVERY 3600000");
    });
    assert_eq!(came.len(), 2);
}
