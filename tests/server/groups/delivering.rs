//! Delivery of messages that have a group: a limited number of each group at a time, and in order.

use crate::support::{eventually, in_both_protocols, Client, Reply, Server};

/// Pushes messages to groups: `a1` is a message of group `a`, and `-1` one without a group.
pub fn push_each(c: &mut Client, names: &[&str]) {
    for name in names {
        match &name[..1] {
            "-" => c.push(format!("q x ID {name}")),
            group => c.push(format!("q x ID {name} GROUP {group}")),
        };
    }
}

#[test]
fn one_message_of_a_group_is_out_at_a_time() {
    in_both_protocols(|c| {
        push_each(c, &["a1", "a2", "a3", "b1", "b2", "-1"]);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1", "b1", "-1"]);
        assert_eq!(c.ask("DQ.POP q"), c.null_array());
        assert_eq!(c.ack("q a1"), 1);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a2"]);
        assert_eq!(c.ack("q b1 a2"), 2);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a3", "b2"]);
    });
}

#[test]
fn a_group_has_as_many_messages_out_as_allowed() {
    in_both_protocols(|c| {
        c.create("q GROUPINFLIGHT 2");
        push_each(c, &["a1", "a2", "a3", "a4"]);
        assert_eq!(c.pop_ids("q"), ["a1"]);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a2"]);
        c.ack("q a2");
        assert_eq!(c.pop_ids("q COUNT 10"), ["a3"]);
        c.alter("q GROUPINFLIGHT 0");
        assert_eq!(c.pop_ids("q COUNT 10"), ["a4"], "no limit");
        c.alter("q GROUPINFLIGHT 1");
        push_each(c, &["a5"]);
        c.ack("q a1 a3");
        assert!(c.pop("q").is_empty(), "one is still out");
        c.ack("q a4");
        assert_eq!(c.pop_ids("q"), ["a5"]);
    });
}

#[test]
fn a_message_that_waits_for_a_retry_holds_its_group() {
    in_both_protocols(|c| {
        c.create("q BACKOFF 600000 600000");
        push_each(c, &["a1", "a2"]);
        c.pop_one("q");
        assert_eq!(c.nack("q a1"), "delayed");
        assert!(c.pop("q").is_empty());
        assert_eq!(c.reschedule("q a1 DELAY 0"), 1);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1"], "it comes back before those behind it");
        assert_eq!(c.nack("q a1 DEAD"), "dead");
        assert_eq!(c.pop_ids("q COUNT 10"), ["a2"], "death lets the group go on");
    });
}

#[test]
fn the_end_of_a_lease_keeps_the_order_of_a_group() {
    in_both_protocols(|c| {
        push_each(c, &["a1", "a2"]);
        c.pop_one("q LEASE 1");
        c.until_state("q", "a1", "ready");
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1"]);
        c.create("last RETRIES 0");
        c.push("last x ID a1 GROUP a");
        c.push("last x ID a2 GROUP a");
        c.pop_one("last LEASE 1");
        eventually("its last lease ends", || c.pop("last").iter().any(|message| message.id == "a2"));
    });
}

#[test]
fn a_delivery_given_back_uncounted_frees_its_group() {
    in_both_protocols(|c| {
        c.create("q BACKOFF 600000 600000");
        push_each(c, &["a1", "a2"]);
        c.pop_one("q");
        c.nack("q a1 NOCOUNT DELAY 600000");
        assert_eq!(c.pop_ids("q COUNT 10"), ["a2"]);
        c.ack("q a2");
        push_each(c, &["a3"]);
        assert_eq!(c.pop_ids("q"), ["a3"]);
        // It was delivered twice, and one of the deliveries counts.
        c.nack("q a3");
        assert_eq!(c.ask("DQ.PROMOTE q").int(), 2);
        let again = c.pop_one("q");
        assert_eq!(again.id, "a3");
        c.nack(format!("q {} NOCOUNT", again.receipt()));
        assert_eq!(c.pop_ids("q COUNT 10"), ["a3"], "it still occupies its group");
    });
}

#[test]
fn messages_that_are_not_due_block_nobody() {
    in_both_protocols(|c| {
        c.push("q x ID later GROUP a DELAY 600000");
        c.push("q x ID now GROUP a");
        assert_eq!(c.pop_ids("q COUNT 10"), ["now"]);
        assert_eq!(c.about("q").int("blocked"), 0);
        assert_eq!(c.get("q", "later").text("state"), "delayed");
    });
}

#[test]
fn priority_is_that_of_the_first_message_of_a_group() {
    in_both_protocols(|c| {
        c.push("q x ID a1 GROUP a");
        c.push("q x ID a2 GROUP a PRIORITY 9");
        c.push("q x ID b1 GROUP b PRIORITY 1");
        c.push("q x ID - PRIORITY -1");
        assert_eq!(c.pop_ids("q COUNT 10"), ["b1", "a1", "-"]);
        c.ack("q a1");
        c.push("q x ID more PRIORITY 8");
        assert_eq!(c.pop_ids("q COUNT 10"), ["a2", "more"]);
    });
}

#[test]
fn a_pop_without_leases_takes_no_more_of_a_group() {
    in_both_protocols(|c| {
        c.create("q GROUPINFLIGHT 2");
        push_each(c, &["a1", "a2", "a3", "a4", "a5", "-1"]);
        assert_eq!(c.pop_ids("q COUNT 10 NOACK"), ["a1", "a2", "-1"]);
        assert_eq!(c.pop_ids("q"), ["a3"]);
        assert_eq!(c.pop_ids("q COUNT 10 NOACK"), ["a4"], "a3 occupies the group");
    });
}

#[test]
fn a_blocked_client_is_served_when_a_group_is_released() {
    let server = Server::start();
    let (mut c, mut waiter) = (server.client(), server.client());
    c.create("q BACKOFF 600000 600000");
    let releases: [(&str, &str); 7] = [
        ("DQ.ACK q a1", "ack"),
        ("DQ.CANCEL q a1", "cancel"),
        ("DQ.BURY q a1", "bury"),
        ("DQ.NACK q a1 DEAD", "nack"),
        ("DQ.NACK q a1 NOCOUNT DELAY 600000", "uncounted nack"),
        ("DQ.PURGE q inflight", "purge"),
        ("DQ.PUSH q x ID a1 GROUP b REPLACE DELAY 600000", "replace"),
    ];
    for (release, how) in releases {
        c.purge("q");
        push_each(&mut c, &["a1", "a2"]);
        c.pop_one("q");
        waiter.wait_for_message("q");
        c.until_blocked(1);
        assert!(!c.ask(release).is_error(), "{how}");
        assert_eq!(waiter.served().id, "a2", "{how}");
    }
    // The last lease of a message expires.
    c.purge("q");
    c.push("q x ID a1 GROUP a RETRIES 0");
    push_each(&mut c, &["a2"]);
    c.pop_one("q LEASE 50");
    waiter.wait_for_message("q");
    assert_eq!(waiter.served().id, "a2", "death by time");
    // The group has room for more.
    push_each(&mut c, &["a3"]);
    waiter.wait_for_any(&["other", "q"]);
    c.until_blocked(1);
    c.alter("q GROUPINFLIGHT 2");
    assert_eq!(waiter.served_from_any().1.id, "a3");
}

#[test]
fn a_client_waits_on_while_its_messages_are_blocked() {
    let server = Server::start();
    let (mut c, mut waiter) = (server.client(), server.client());
    push_each(&mut c, &["a1", "a2"]);
    c.pop_one("q");
    waiter.wait_for_message("q");
    c.until_blocked(1);
    push_each(&mut c, &["a3", "a4"]);
    c.until_blocked(1);
    push_each(&mut c, &["b1"]);
    assert_eq!(waiter.served().id, "b1");
}

#[test]
fn the_other_limits_apply_on_top_of_groups() {
    in_both_protocols(|c| {
        c.create("q MAXINFLIGHT 2");
        push_each(c, &["a1", "a2", "b1", "c1"]);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1", "b1"]);
        c.ack("q a1");
        assert_eq!(c.pop_ids("q COUNT 10"), ["a2"]);
        c.alter("q MAXINFLIGHT 0 RATE 1 600000");
        assert_eq!(c.pop_ids("q COUNT 10"), ["c1"]);
        c.alter("q RATE 0 0");
        push_each(c, &["d1"]);
        c.pause("q");
        assert!(c.pop("q").is_empty());
        c.resume("q");
        assert_eq!(c.pop_ids("q COUNT 10"), ["d1"]);
    });
}

#[test]
fn groups_hold_in_transactions_and_scripts() {
    in_both_protocols(|c| {
        push_each(c, &["a1", "a2"]);
        let null = c.null_array();
        let replies = c.multi(&["DQ.POP q COUNT 5", "DQ.POP q", "DQ.ACK q a1", "DQ.POP q BLOCK 0"]);
        assert_eq!((replies[0].items().len(), &replies[1], replies[3].items().len()), (1, &null, 1));
        assert!(c.script("DQ.POP q").is_null());
        assert_eq!(c.script("DQ.PUSH q x ID s GROUP c"), Reply::bulk("s"));
        assert_eq!(c.get("q", "s").text("group"), "c");
    });
}

#[test]
fn a_batch_and_a_schedule_have_a_group() {
    in_both_protocols(|c| {
        c.push_many("q 2 x y IDS m n GROUP a");
        assert_eq!(c.ask("DQ.SCHEDULE q s z EVERY 3600000 GROUP a AT 1700000000000"), Reply::bulk("created"));
        for id in ["m", "n", "s"] {
            assert_eq!(c.get("q", id).text("group"), "a");
        }
        assert_eq!(c.pop_ids("q COUNT 10"), ["s"], "it was due first");
        c.ack("q s");
        assert_eq!(c.pop_ids("q COUNT 10"), ["m"], "a schedule that waits for its next run occupies nothing");
        let again = "DQ.SCHEDULE q s z EVERY 3600000 GROUP a AT 1700000000000";
        assert_eq!(c.ask(again), Reply::bulk("unchanged"));
        assert_eq!(c.ask("DQ.SCHEDULE q s z EVERY 3600000 GROUP b"), Reply::bulk("changed"));
        assert_eq!(c.get("q", "s").text("group"), "b");
    });
}
