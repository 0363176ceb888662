//! MIN and LINGER: a consumer is served several messages at once, or what there is once the first has waited.

use crate::support::{eventually, in_both_protocols, Client, Message, Server};

/// How long messages wait in tests that must not depend on it.
const LONG: &str = "LINGER 600000";

/// Makes the client wait for messages that it gathers, under a lease that outlasts the test.
fn wait_for(c: &mut Client, words: &str) {
    c.send(format!("DQ.POP q {words} LEASE 600000 BLOCK 0"));
}

fn served(c: &mut Client) -> Vec<String> {
    Message::all(&c.receive()).into_iter().map(|message| message.id).collect()
}

#[test]
fn fewer_messages_than_asked_for_are_not_delivered() {
    in_both_protocols(|c| {
        c.push_many("q 2 x y IDS a b");
        let null = c.null_array();
        assert_eq!(c.ask(format!("DQ.POP q COUNT 10 MIN 3 {LONG}")), null);
        assert_eq!(c.ask(format!("DQ.MPOP 2 q other COUNT 10 MIN 3 {LONG}")), null);
        c.push("q z ID c");
        assert_eq!(c.pop_ids(format!("q COUNT 10 MIN 3 {LONG}")), ["a", "b", "c"]);
        assert_eq!(c.ask(format!("DQ.POP q COUNT 10 MIN 3 {LONG}")), null);
        c.push_many("q 4 x y z z IDS d e f g");
        assert_eq!(c.pop_ids(format!("q COUNT 3 MIN 2 {LONG}")), ["d", "e", "f"], "no more than COUNT");
    });
}

#[test]
fn a_message_that_has_waited_long_enough_is_delivered_alone() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let due = c.get("q", "m").int("due");
        eventually("it has waited", || {
            let popped = c.pop_ids("q COUNT 10 MIN 5 LINGER 300 LEASE 600000");
            let now = c.latest_now();
            assert!(popped.is_empty() || now >= due + 300, "{} ms early", due + 300 - now);
            popped == ["m"]
        });
    });
}

#[test]
fn a_blocked_client_is_served_when_there_are_enough() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    wait_for(&mut waiting, &format!("COUNT 10 MIN 3 {LONG}"));
    c.until_blocked(1);
    for id in ["a", "b"] {
        c.push(format!("q x ID {id}"));
    }
    c.until_blocked(1);
    assert_eq!(c.counts("q"), [0, 2, 0, 0]);
    c.push("q x ID c");
    assert_eq!(served(&mut waiting), ["a", "b", "c"]);
}

#[test]
fn a_blocked_client_is_served_exactly_when_the_first_has_waited() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    wait_for(&mut waiting, "COUNT 10 MIN 5 LINGER 500");
    c.until_blocked(1);
    let due = c.now() + 200;
    c.push(format!("q x ID a AT {due}"));
    c.push(format!("q x ID b AT {}", due + 1));
    assert_eq!(served(&mut waiting), ["a", "b"]);
    c.expect_delivered_at("q", "a", due + 500);
}

#[test]
fn messages_that_were_there_before_the_client_linger_too() {
    let server = Server::start();
    let (mut c, mut waiting, mut any) = (server.client(), server.client(), server.client());
    let id = c.push("q x");
    let due = c.get("q", &id).int("due");
    wait_for(&mut waiting, "COUNT 2 MIN 2 LINGER 1000");
    assert_eq!(served(&mut waiting), [&*id]);
    c.expect_delivered_at("q", &id, due + 1_000);
    c.push("p x ID m");
    any.send("DQ.MPOP 2 other p COUNT 2 MIN 2 LINGER 200 BLOCK 0");
    assert_eq!(any.receive().items()[0].text(), "p");
}

#[test]
fn a_client_that_lingers_does_not_hold_up_those_behind_it() {
    let server = Server::start();
    let (mut c, mut first, mut second, mut third) =
        (server.client(), server.client(), server.client(), server.client());
    wait_for(&mut first, &format!("COUNT 10 MIN 3 {LONG}"));
    c.until_blocked(1);
    wait_for(&mut second, "COUNT 10");
    c.until_blocked(2);
    wait_for(&mut third, &format!("COUNT 10 MIN 2 {LONG}"));
    c.until_blocked(3);
    c.push("q x ID a");
    assert_eq!(served(&mut second), ["a"]);
    c.push_many("q 2 x x IDS b c");
    assert_eq!(served(&mut third), ["b", "c"], "too few for the first one");
    c.push_many("q 3 x x x IDS d e f");
    assert_eq!(served(&mut first), ["d", "e", "f"]);
}

#[test]
fn clients_with_different_waits_are_each_served_in_time() {
    let server = Server::start();
    let (mut c, mut long, mut short) = (server.client(), server.client(), server.client());
    wait_for(&mut long, &format!("COUNT 10 MIN 9 {LONG}"));
    c.until_blocked(1);
    wait_for(&mut short, "COUNT 10 MIN 5 LINGER 300");
    c.until_blocked(2);
    let due = c.now() + 100;
    c.push(format!("q x ID a AT {due}"));
    assert_eq!(served(&mut short), ["a"]);
    c.expect_delivered_at("q", "a", due + 300);
    c.until_blocked(1);
}

#[test]
fn what_limits_allow_is_enough() {
    for settings in ["MAXINFLIGHT 2", "RATE 2 600000", "GROUPRATE 1 600000", "GROUPINFLIGHT 1"] {
        let server = Server::start();
        let mut c = server.client();
        c.create(format!("q {settings}"));
        for group in ["a", "b"] {
            c.push_many(format!("q 3 x y z GROUP {group}"));
        }
        assert_eq!(c.pop(format!("q COUNT 10 MIN 5 {LONG}")).len(), 2, "{settings}");
    }
}

#[test]
fn acks_count_although_too_few_messages_are_there() {
    in_both_protocols(|c| {
        c.push("q x ID a");
        let first = c.pop_one("q");
        c.push("q x ID b");
        let reply = c.ask(format!("DQ.ACKPOP q 1 {} COUNT 5 MIN 2 {LONG}", first.receipt()));
        assert_eq!((reply.items()[0].int(), reply.items()[1].is_null()), (1, true));
        c.push("q x ID c");
        let reply = c.ask(format!("DQ.ACKPOP q 1 {} COUNT 5 MIN 2 {LONG}", first.receipt()));
        assert_eq!((reply.items()[0].int(), reply.items()[1].items().len()), (0, 2));
    });
}

#[test]
fn a_client_in_a_transaction_or_script_gathers_without_waiting() {
    in_both_protocols(|c| {
        c.push("q x ID a");
        let null = c.null_array();
        let words = format!("DQ.POP q COUNT 5 MIN 2 {LONG} BLOCK 0");
        assert_eq!(c.multi(&[&words]), [null]);
        assert!(c.script(&words).is_null());
        c.push("q x ID b");
        assert_eq!(c.multi(&[&words])[0].items().len(), 2);
    });
}

#[test]
fn a_client_that_gathers_can_time_out() {
    in_both_protocols(|c| {
        c.push("q x ID a");
        assert_eq!(c.ask(format!("DQ.POP q COUNT 5 MIN 2 {LONG} BLOCK 20")), c.null_array());
        assert_eq!(c.counts("q"), [0, 1, 0, 0]);
    });
}

#[test]
fn gathering_needs_both_words_in_their_ranges() {
    in_both_protocols(|c| {
        let mut refused = |words: &str| c.ask(format!("DQ.POP q {words}")).error().to_owned();
        assert_eq!(refused("COUNT 5 MIN 2"), "ERR syntax error, MIN needs LINGER");
        assert_eq!(refused("COUNT 5 LINGER 2"), "ERR syntax error, LINGER needs MIN");
        assert_eq!(refused("COUNT 5 MIN 6 LINGER 2"), "ERR MIN must not be above COUNT");
        assert_eq!(refused("MIN 2 LINGER 2"), "ERR MIN must not be above COUNT");
        assert!(refused("COUNT 5 MIN 1 LINGER 2").starts_with("ERR MIN must be a whole number from 2 to"));
        assert!(refused("COUNT 5 MIN 2 LINGER 0").starts_with("ERR LINGER must be a whole number"));
        assert_eq!(refused("COUNT 5 MIN 2 MIN 2 LINGER 5"), "ERR syntax error, MIN is given twice");
    });
}

#[test]
fn who_gathers_more_does_not_hide_messages_from_those_behind() {
    let server = Server::start();
    let mut c = server.client();
    let mut waiting: Vec<Client> = (0..5).map(|_| server.client()).collect();
    let wanted = ["MIN 9", "MIN 5", "MIN 6", "MIN 3", "MIN 4"].map(|least| format!("COUNT 10 {least} {LONG}"));
    for (nth, words) in wanted.iter().enumerate() {
        wait_for(&mut waiting[nth], words);
        c.until_blocked(nth + 1);
    }
    c.push_many("q 2 x y IDS a b");
    c.push("q x ID c");
    assert_eq!(served(&mut waiting[3]), ["a", "b", "c"]);
    c.push_many("q 4 x x x x IDS d e f g");
    assert_eq!(served(&mut waiting[4]), ["d", "e", "f", "g"]);
    c.push_many("q 6 x x x x x x IDS h i j k l m");
    assert_eq!(served(&mut waiting[1]).len(), 6, "the first that has enough");
}

#[test]
fn who_lingers_longer_does_not_delay_those_behind() {
    let server = Server::start();
    let (mut c, mut patient, mut hasty) = (server.client(), server.client(), server.client());
    wait_for(&mut patient, &format!("COUNT 10 MIN 5 {LONG}"));
    c.until_blocked(1);
    wait_for(&mut hasty, "COUNT 10 MIN 5 LINGER 100");
    c.until_blocked(2);
    c.push("q x ID a");
    assert_eq!(served(&mut hasty), ["a"]);
}
