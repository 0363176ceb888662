//! What other commands do to messages of groups.

use super::delivering::push_each;
use crate::support::{in_both_protocols, Reply};

#[test]
fn a_replacement_may_change_the_group() {
    in_both_protocols(|c| {
        push_each(c, &["a1", "a2", "b1"]);
        assert_eq!(c.pop_ids("q"), ["a1"]);
        c.push("q x ID a2 GROUP b REPLACE");
        assert_eq!(c.get("q", "a2").text("group"), "b");
        assert_eq!(c.pop_ids("q COUNT 10"), ["b1"]);
        c.push("q x ID a2 REPLACE");
        assert!(!c.get("q", "a2").has("group"));
        assert_eq!(c.pop_ids("q COUNT 10"), ["a2"]);
    });
}

#[test]
fn a_redriven_message_comes_back_to_its_group() {
    in_both_protocols(|c| {
        push_each(c, &["a1", "a2", "a3"]);
        assert_eq!(c.ask("DQ.BURY q a1"), Reply::bulk("ready"));
        assert_eq!(c.get("q", "a1").text("group"), "a");
        assert_eq!(c.pop_ids("q COUNT 10"), ["a2"]);
        assert_eq!(c.redrive("q IDS 1 a1 DELAY 600000"), 1);
        assert!(c.pop("q").is_empty(), "the group is occupied");
        c.ack("q a2");
        assert_eq!(c.pop_ids("q COUNT 10"), ["a3"], "it was due before");
        c.ack("q a3");
        assert_eq!(c.ask("DQ.PROMOTE q").int(), 1);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1"], "at its new due time's place");
    });
}

#[test]
fn a_rescheduled_message_takes_its_new_place_in_the_group() {
    in_both_protocols(|c| {
        push_each(c, &["a1", "a2", "b1"]);
        assert_eq!(c.reschedule("q a1 DELAY 600000"), 1);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a2", "b1"]);
        c.ack("q a2");
        assert_eq!(c.ask("DQ.PROMOTE q").int(), 1);
        assert_eq!(c.reschedule("q a1 PRIORITY 5"), 1);
        push_each(c, &["c1"]);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1", "c1"]);
    });
}

#[test]
fn a_lease_that_is_extended_keeps_the_group() {
    in_both_protocols(|c| {
        push_each(c, &["a1", "a2"]);
        let one = c.pop_one("q LEASE 60000");
        c.extend(format!("q {} LEASE 600000", one.receipt()));
        assert!(c.pop("q").is_empty());
        c.ack("q a1");
        assert_eq!(c.pop_ids("q"), ["a2"]);
    });
}

#[test]
fn one_group_is_purged_and_no_other() {
    in_both_protocols(|c| {
        push_each(c, &["a1", "a2", "a3", "b1", "-1"]);
        c.push("q x ID a4 GROUP a DELAY 600000");
        assert_eq!(c.ask("DQ.BURY q a3"), Reply::bulk("ready"));
        assert_eq!(c.pop_ids("q"), ["a1"]);
        assert_eq!(c.purge("q dead GROUP a"), 1);
        assert_eq!(c.purge("q delayed ready COUNT 1 GROUP a"), 1);
        assert_eq!(c.get("q", "a2").text("state"), "ready", "the delayed one was first");
        assert_eq!(c.purge("q GROUP nothing"), 0);
        assert_eq!(c.purge("q GROUP a"), 2);
        assert_eq!(c.pop_ids("q COUNT 10"), ["b1", "-1"]);
        assert_eq!(c.about("q").int("groups"), 1);
    });
}

#[test]
fn a_failed_run_leaves_its_dead_copy_in_the_group() {
    in_both_protocols(|c| {
        c.ask("DQ.SCHEDULE q s z EVERY 3600000 GROUP a AT 1700000000000 RETRIES 0");
        c.push("q x ID next GROUP a");
        c.pop_one("q");
        assert_eq!(c.nack("q s"), "dead");
        let dead = c.peek("q dead");
        assert_eq!(dead[0].text("group"), "a");
        assert_eq!(c.len("q dead GROUP a"), 1);
        assert_eq!(c.pop_ids("q COUNT 10"), ["next"]);
        assert_eq!(c.redrive("q COUNT 1"), 1);
        assert!(c.pop("q").is_empty(), "the copy waits for its group");
    });
}

#[test]
fn what_is_no_group_is_refused() {
    in_both_protocols(|c| {
        push_each(c, &["a1"]);
        let (digest, long) = (c.digest("q"), "g".repeat(256));
        let error = "ERR GROUP must be 1 to 255 bytes";
        for line in [
            "DQ.PUSH q x GROUP ".to_owned() + &long,
            "DQ.MPUSH q 1 x GROUP ".to_owned() + &long,
            "DQ.SCHEDULE q s x EVERY 5 GROUP ".to_owned() + &long,
            "DQ.LEN q GROUP ".to_owned() + &long,
            "DQ.PEEK q GROUP ".to_owned() + &long,
            "DQ.PURGE q GROUP ".to_owned() + &long,
        ] {
            assert_eq!(c.ask(&line).error(), error);
            assert_eq!(c.multi(&[&line])[0].error(), error);
            assert!(c.script(&line).error().contains(error), "{line}");
        }
        assert_eq!(c.cmd(&["DQ.PUSH", "q", "x", "GROUP", ""]).error(), error);
        assert_eq!(c.ask("DQ.PUSH q x GROUP").error(), "ERR syntax error, GROUP needs a value");
        for line in ["DQ.CREATE r GROUPORDER", "DQ.ALTER q GROUPORDER"] {
            assert_eq!(c.ask(line).error(), "ERR syntax error, GROUPORDER needs a value");
            assert_eq!(c.ask(format!("{line} random")).error(), "ERR GROUPORDER must be due or turn");
        }
        let range = "ERR GROUPINFLIGHT must be a whole number from 0 to 9007199254740991";
        assert_eq!(c.ask("DQ.ALTER q GROUPINFLIGHT -1").error(), range);
        assert_eq!((c.digest("q"), c.ask("EXISTS r")), (digest, Reply::Int(0)));
    });
}
