//! A command on one run of a schedule affects only that run: the runs after it follow the rule again.

use crate::support::{in_both_protocols, Reply};

const HOUR: i64 = 3_600_000;

#[test]
fn a_promoted_or_rescheduled_run_is_followed_by_the_rule() {
    in_both_protocols(|c| {
        for moves in ["DQ.PROMOTE q", "DQ.RESCHEDULE q s DELAY 0"] {
            c.ask(format!("DQ.SCHEDULE q s x EVERY {HOUR} OFFSET 7"));
            assert_eq!(c.ask(moves), Reply::Int(1));
            assert_eq!(c.state("q", "s"), "ready");
            let run = c.pop_one("q");
            assert_eq!(c.ack(format!("q {}", run.receipt())), 1);
            let message = c.get("q", "s");
            assert_eq!((message.int("due") % HOUR, message.int("runs")), (7, 1), "{moves}");
            assert_eq!(c.cancel("q s"), ["delayed"]);
        }
    });
}

#[test]
fn another_priority_holds_for_one_run() {
    in_both_protocols(|c| {
        c.ask(format!("DQ.SCHEDULE q s x EVERY {HOUR} PRIORITY 3"));
        assert_eq!(c.reschedule("q s PRIORITY -9 DELAY 0"), 1);
        c.push("q x ID first PRIORITY -8");
        assert_eq!(c.pop_ids("q NOACK COUNT 2"), ["first", "s"]);
        assert_eq!(c.get("q", "s").int("priority"), 3);
        assert_eq!(c.ask(format!("DQ.SCHEDULE q s x EVERY {HOUR} PRIORITY 3")), Reply::bulk("unchanged"));
    });
}

#[test]
fn burying_a_running_run_makes_its_receipt_stale() {
    in_both_protocols(|c| {
        c.ask(format!("DQ.SCHEDULE q s x EVERY {HOUR} AT 100000000001"));
        let run = c.pop_one("q");
        assert_eq!(c.ask("DQ.BURY q s ERROR bad"), Reply::bulk("inflight"));
        assert_eq!(c.ack(format!("q {}", run.receipt())), 0);
        assert_eq!(c.ask(format!("DQ.EXTEND q {}", run.receipt())), c.null());
        let message = c.get("q", "s");
        assert_eq!((message.int("failed-runs"), message.int("due") % HOUR), (1, 0));
        assert_eq!(c.peek("q dead")[0].text("error"), "bad");
    });
}

#[test]
fn a_cancelled_schedule_has_no_run_to_finish() {
    in_both_protocols(|c| {
        c.ask(format!("DQ.SCHEDULE q s x EVERY {HOUR} AT 100000000001"));
        let run = c.pop_one("q");
        c.ask(format!("DQ.SCHEDULE q s later EVERY {}", 2 * HOUR));
        assert_eq!(c.cancel("q s"), ["inflight"]);
        assert_eq!(c.ack(format!("q {}", run.receipt())), 0);
        assert_eq!(c.ask(format!("DQ.NACK q {}", run.receipt())), c.null());
        assert_eq!(c.counts("q"), [0; 4]);
        assert_eq!(c.ask(format!("DQ.SCHEDULE q s x EVERY {HOUR}")), Reply::bulk("created"));
        assert_eq!(c.get("q", "s").int("runs"), 0);
    });
}

#[test]
fn until_is_the_last_instant_of_a_run() {
    in_both_protocols(|c| {
        c.ask(format!("DQ.SCHEDULE q probe x EVERY {HOUR}"));
        let next = c.get("q", "probe").int("due");
        let error = "ERR the first run would be after UNTIL";
        assert_eq!(c.ask(format!("DQ.SCHEDULE q s x EVERY {HOUR} UNTIL {}", next - 1)).error(), error);
        assert_eq!(c.ask(format!("DQ.SCHEDULE q s x EVERY {HOUR} UNTIL {next}")), Reply::bulk("created"));
        assert_eq!(c.get("q", "s").int("due"), next);
        // The run after this one is due at UNTIL.
        let last = format!("DQ.SCHEDULE q last x EVERY {HOUR} AT 100000000001 UNTIL {next}");
        assert_eq!(c.ask(last), Reply::bulk("created"));
        assert_eq!(c.pop_ids("q NOACK"), ["last"]);
        assert_eq!(c.get("q", "last").int("due"), next);
    });
}

#[test]
fn a_run_that_was_moved_beyond_until_keeps_its_time() {
    in_both_protocols(|c| {
        let until = 8_000_000_000_000_i64;
        c.ask(format!("DQ.SCHEDULE q s x EVERY {HOUR} UNTIL {until}"));
        assert_eq!(c.reschedule(format!("q s AT {}", until + 5)), 1);
        assert_eq!(c.ask(format!("DQ.SCHEDULE q s y EVERY {HOUR} UNTIL {until}")), Reply::bulk("changed"));
        assert_eq!(c.get("q", "s").int("due"), until + 5);
        let earlier = c.ask(format!("DQ.SCHEDULE q s y EVERY {HOUR} UNTIL {}", until - 5));
        assert_eq!(earlier.error(), "ERR the first run would be after UNTIL", "a new end counts");
    });
}

#[test]
fn transactions_and_scripts_declare_schedules() {
    in_both_protocols(|c| {
        let line = |payload: &str| format!("DQ.SCHEDULE q s {payload} EVERY {HOUR} AT 100000000001");
        let replies =
            c.multi(&[&line("x"), &line("x"), &line("y"), "DQ.POP q", "DQ.SCHEDULE q s z EVERY 5", "DQ.ACK q s"]);
        let answers = ["created", "unchanged", "changed"].map(Reply::bulk);
        assert_eq!(replies[..3], answers);
        assert_eq!((&replies[4], &replies[5]), (&Reply::bulk("changed"), &Reply::Int(1)));
        assert_eq!((c.get("q", "s").text("payload").as_str(), c.get("q", "s").int("every")), ("z", 5));
        assert_eq!(c.script(&line("x")), Reply::bulk("changed"));
        assert_eq!(c.script("DQ.SCHEDULE q t x EVERY 5"), Reply::bulk("created"));
        let error = c.script("DQ.SCHEDULE q t x EVERY 5 UNTIL 100000000001");
        assert!(error.error().contains("ERR the first run would be after UNTIL"), "{error:?}");
    });
}

#[test]
fn a_schedule_takes_a_known_id_whose_window_goes_on() {
    in_both_protocols(|c| {
        c.create("q DEDUPE 600000000");
        c.push("q x ID s");
        assert_eq!(c.pop_ids("q NOACK"), ["s"]);
        assert_eq!(c.ask("DQ.PUSH q x ID s"), c.null());
        assert_eq!(c.ask("DQ.SCHEDULE q s x EVERY 5 AT 100000000001 TIMES 1"), Reply::bulk("created"));
        assert_eq!(c.pop_ids("q NOACK"), ["s"]);
        assert_eq!((c.state("q", "s").as_str(), c.about("q").int("known")), ("absent", 1));
        assert_eq!(c.ask("DQ.PUSH q x ID s"), c.null(), "it was accepted before");
        assert_eq!(c.ask("DQ.SCHEDULE q new x EVERY 5 AT 100000000001 TIMES 1"), Reply::bulk("created"));
        assert_eq!(c.pop_ids("q NOACK"), ["new"]);
        assert_eq!((c.about("q").int("known"), c.push("q x ID new")), (1, "new".to_owned()), "it begins none");
    });
}
