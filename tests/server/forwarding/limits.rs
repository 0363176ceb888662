//! What delays forwarding, what starts it, and what consumers of the queue itself see of it.

use super::{elements, ids, until_forwarded};
use crate::support::{eventually, in_both_protocols, Client, Server};

fn refused(target: &str) -> String {
    format!("ERR queue forwards to {target}; it cannot be popped")
}

#[test]
fn a_queue_that_forwards_cannot_be_popped() {
    in_both_protocols(|c| {
        for (words, target) in [("STREAM s", "stream s"), ("LIST l LEFT", "list l"), ("CHANNEL c", "channel c")] {
            c.ask("FLUSHALL").ok();
            c.push("other x");
            c.create(format!("q FORWARD {words}"));
            c.push("q x DELAY 600000");
            let digest = c.digest("q");
            for line in [
                "DQ.POP q",
                "DQ.POP q COUNT 5 NOACK",
                "DQ.POP q BLOCK 0",
                "DQ.MPOP 2 other q",
                "DQ.MPOP 2 q other BLOCK 0",
            ] {
                assert_eq!(c.ask(line).error(), refused(target), "{line}");
                assert_eq!(c.multi(&[line])[0].error(), refused(target), "{line}");
                assert!(c.script(line).error().starts_with(&refused(target)), "{line}");
            }
            assert_eq!(c.digest("q"), digest);
            assert_eq!(c.len("other ready"), 1, "nothing was popped from the other queue");
        }
    });
}

#[test]
fn waiting_clients_wait_on_until_the_queue_no_longer_forwards() {
    let server = Server::start();
    let (mut c, mut one, mut any) = (server.client(), server.client(), server.client());
    one.wait_for_message("q");
    c.until_blocked(1);
    any.wait_for_any(&["other", "q"]);
    c.until_blocked(2);
    c.create("q FORWARD LIST l");
    c.push_many("q 2 x y");
    until_forwarded(&mut c, "q", 2);
    c.until_blocked(2);
    c.pause("q");
    c.push_many("q 2 x y IDS a b");
    c.resume("q");
    until_forwarded(&mut c, "q", 4);
    c.pause("q");
    c.push_many("q 2 x y IDS a b");
    c.alter("q FORWARD NONE");
    c.until_blocked(2);
    c.resume("q");
    assert_eq!(one.served().id, "a");
    assert_eq!(any.served_from_any().1.id, "b");
    assert_eq!(c.about("q").text("forward"), "NONE");
}

#[test]
fn switching_it_off_serves_a_waiting_client_at_once() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    // The target has another type, so the message stays.
    c.ask("SET l text").ok();
    c.create("q FORWARD LIST l");
    c.alter("q FORWARD NONE");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.alter("q FORWARD LIST l");
    c.push("q x ID m");
    super::error_of(&mut c, "q");
    c.until_blocked(1);
    c.alter("q FORWARD NONE");
    assert_eq!(waiting.served().id, "m");
}

#[test]
fn ready_messages_are_forwarded_once_it_is_switched_on() {
    in_both_protocols(|c| {
        c.push_many("q 3 a b c");
        c.alter("q FORWARD LIST l");
        until_forwarded(c, "q", 3);
        assert_eq!(elements(c, "l"), ["a", "b", "c"]);
        c.alter("made MKQUEUE FORWARD STREAM s LEASE 5");
        assert_eq!(c.about("made").text("forward"), "STREAM s");
    });
}

#[test]
fn a_pause_holds_forwarding_back_until_it_ends() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD LIST l");
    c.pause("q");
    c.push_many("q 2 a b");
    c.push("unpaused x");
    c.alter("unpaused FORWARD LIST other");
    until_forwarded(&mut c, "unpaused", 1);
    assert_eq!(c.about("q").int("forwarded"), 0);
    c.resume("q");
    until_forwarded(&mut c, "q", 2);
    c.ask("DQ.PAUSE q FOR 60").ok();
    let end = c.about("q").get("paused-until").clone();
    c.push("q c");
    until_forwarded(&mut c, "q", 3);
    if !end.is_null() {
        assert!(c.latest_now() >= end.int(), "not before the pause ended");
    }
}

#[test]
fn a_rate_holds_forwarding_back_exactly() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RATE 2 100 FORWARD STREAM s");
    c.push_many("q 6 a b c d e f");
    until_forwarded(&mut c, "q", 6);
    let written =
        |entry: &crate::support::Reply| entry.items()[0].text().split('-').next().unwrap().parse::<i64>().unwrap();
    let times: Vec<i64> = c.ask("XRANGE s - +").items().iter().map(written).collect();
    // The stream's clock is read within the run whose time counts, so it can be a little later but not much earlier.
    assert!(times[2] - times[0] > 90 && times[4] - times[2] > 90, "{times:?}");
    // The last two still count.
    c.alter("q RATE 3 600000");
    c.push_many("q 3 g h i");
    eventually("one is allowed", || c.about("q").int("forwarded") == 7);
    assert_eq!(c.counts("q")[1], 2, "they stay ready");
    c.alter("q RATE 9 600000");
    until_forwarded(&mut c, "q", 9);
}

#[test]
fn messages_in_flight_hold_forwarding_back_at_maxinflight() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXINFLIGHT 1");
    c.push_many("q 2 x y IDS a b");
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    c.alter("q FORWARD STREAM s");
    c.push("other x");
    c.alter("other FORWARD LIST l");
    until_forwarded(&mut c, "other", 1);
    assert_eq!(c.about("q").int("forwarded"), 0);
    assert_eq!(c.ack(format!("q {receipt}")), 1);
    until_forwarded(&mut c, "q", 1);
    assert_eq!(ids(&mut c, "s"), ["b"]);
}

#[test]
fn declaring_the_same_target_again_changes_nothing() {
    in_both_protocols(|c| {
        c.create("q FORWARD LIST l REGISTER set m");
        let changes = c.changes();
        for line in ["DQ.CREATE q FORWARD LIST l REGISTER set m", "DQ.ALTER q FORWARD LIST l RIGHT REGISTER set m"] {
            c.ask(line).ok();
            assert_eq!(c.changes(), changes, "{line}");
        }
        for line in ["DQ.CREATE q", "DQ.CREATE q FORWARD LIST l", "DQ.CREATE q FORWARD LIST l LEFT REGISTER set m"] {
            assert_eq!(
                c.ask(line).error(),
                "QUEUEEXISTS queue exists with other settings: DQ.ALTER changes them",
                "{line}"
            );
        }
        c.alter("q LEASE 77");
        assert_eq!(c.about("q").text("forward"), "LIST l REGISTER set m", "other settings leave it");
    });
}

#[test]
fn it_works_in_transactions_and_scripts() {
    in_both_protocols(|c| {
        let replies = c.multi(&[
            "DQ.CREATE q FORWARD LIST l",
            "DQ.PUSH q x",
            "LLEN l",
            "DQ.ALTER q FORWARD LIST m",
            "DQ.PUSH q y",
        ]);
        assert_eq!(replies[2].int(), 0, "nothing is forwarded within a transaction");
        until_forwarded(c, "q", 2);
        assert_eq!(elements(c, "m"), ["x", "y"]);
        c.script("DQ.ALTER q FORWARD STREAM s");
        c.script("DQ.PUSH q z ID m");
        until_forwarded(c, "q", 3);
        assert_eq!(ids(c, "s"), ["m"]);
    });
}

/// Calls that are refused, and their errors.
const REFUSED: [(&str, &str); 15] = [
    ("FORWARD", "ERR syntax error, FORWARD needs STREAM, LIST, CHANNEL or NONE"),
    ("FORWARD s", "ERR syntax error, FORWARD needs STREAM, LIST, CHANNEL or NONE"),
    ("FORWARD STREAM", "ERR syntax error, STREAM needs a value"),
    ("FORWARD LIST", "ERR syntax error, LIST needs a value"),
    ("FORWARD CHANNEL", "ERR syntax error, CHANNEL needs a value"),
    ("FORWARD STREAM s TRIM", "ERR syntax error, TRIM needs a value"),
    ("FORWARD STREAM s TRIM 0", "ERR TRIM must be a whole number from 1 to 9007199254740991"),
    ("FORWARD STREAM s TRIM x", "ERR TRIM must be a whole number from 1 to 9007199254740991"),
    ("FORWARD LIST l REGISTER set", "ERR syntax error, REGISTER needs the values set and member"),
    ("FORWARD LIST l LEFT REGISTER", "ERR syntax error, REGISTER needs the values set and member"),
    ("FORWARD LIST l FORWARD NONE", "ERR syntax error, FORWARD is given twice"),
    ("FORWARD STREAM q", "ERR a queue cannot forward to itself"),
    ("FORWARD LIST q LEFT", "ERR a queue cannot forward to itself"),
    ("FORWARD LIST l REGISTER q m", "ERR a queue cannot forward to itself"),
    ("FORWARD LIST l LEFT RIGHT", "ERR syntax error, 'RIGHT' is not in its place"),
];

#[test]
fn a_setting_that_is_none_is_refused_and_changes_nothing() {
    in_both_protocols(|c: &mut Client| {
        c.create("q FORWARD STREAM s");
        let digest = c.digest("q");
        for (words, error) in REFUSED {
            for line in
                [format!("DQ.ALTER q {words}"), format!("DQ.CREATE q {words}"), format!("DQ.ALTER q LEASE 9 {words}")]
            {
                for reply in [c.ask(&line), c.multi(&[&line]).remove(0), c.script(&line)] {
                    assert!(reply.error().starts_with(error), "{line}: {reply:?}");
                }
            }
        }
        assert_eq!(c.digest("q"), digest);
        assert!(c.ask("DQ.ALTER none FORWARD NONE").error().starts_with("ERR no such key"));
    });
}

#[test]
fn forwarding_keeps_no_more_done_messages_than_donelen() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD STREAM s RETAIN 600000 DONELEN 2");
    let at = c.now() + 50;
    c.push_many(format!("q 5 a b c d e AT {at}"));
    eventually("all are forwarded", || c.ask("XLEN s").int() == 5);
    eventually("two are kept", || c.about("q").int("done") == 2);
}
