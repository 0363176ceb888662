//! Dead messages move to a stream or a list (`DEADFORWARD`): what arrives there, and when.

use super::{elements, entries, error_of, ids, until_forwarded};
use crate::support::{eventually, in_both_protocols, Client, Server};

/// Waits until a queue has moved this many dead messages.
#[track_caller]
pub fn until_moved(c: &mut Client, queue: &str, count: i64) {
    eventually("they are moved", || c.about(queue).int("deadforwarded") == count);
}

/// Makes messages dead, in this order.
#[track_caller]
pub fn bury(c: &mut Client, queue: &str, ids: &[&str]) {
    for id in ids {
        let buried = c.ask(format!("DQ.BURY {queue} {id}"));
        assert!(!buried.is_error() && !buried.is_null(), "{id}: {buried:?}");
    }
}

/// Waits until a queue cannot move its dead messages, and returns the error.
pub fn refusal_of(c: &mut Client, queue: &str) -> String {
    eventually("they are refused", || !c.about(queue).get("deadforward-error").is_null());
    c.about(queue).text("deadforward-error")
}

#[test]
fn a_stream_says_how_each_message_died() {
    in_both_protocols(|c| {
        c.create("q RETRIES 0 DEADFORWARD STREAM s TRIM 1000");
        let due = c.now() - 5;
        c.push(format!("q one ID buried AT {due} HEADERS 2 tenant t1 b 2"));
        bury(c, "q", &["buried"]);
        until_moved(c, "q", 1);
        c.push("q two ID failed");
        let receipt = c.pop_one("q").receipt().to_owned();
        c.nack(format!("q {receipt} ERROR broken"));
        until_moved(c, "q", 2);
        c.push("q three ID late TTL 1");
        until_moved(c, "q", 3);
        let entries = entries(c, "s");
        let of = |field: &str| entries.iter().map(|entry| entry.text(field)).collect::<Vec<_>>();
        assert_eq!(of("id"), ["buried", "failed", "late"]);
        assert_eq!(of("payload"), ["one", "two", "three"]);
        assert_eq!(of("reason"), ["rejected", "retries", "expired"]);
        assert_eq!(of("error"), ["", "broken", ""]);
        assert_eq!(of("attempt"), ["0", "1", "0"]);
        assert_eq!(entries[0].text("due"), due.to_string());
        assert!(of("died").iter().all(|died| (due..=c.now()).contains(&died.parse().unwrap())));
        assert_eq!((entries[0].text("header:tenant"), entries[0].text("header:b")), ("t1".into(), "2".into()));
        assert_eq!(c.len("q"), 0);
        let about = c.about("q");
        assert_eq!(about.text("deadforward"), "STREAM s TRIM 1000");
        assert_eq!((about.int("died"), about.int("forwarded"), about.int("dead")), (3, 0, 0));
        c.ask("DEL q s");
    });
}

#[test]
fn a_list_gets_the_payloads_at_the_end_that_was_named() {
    let server = Server::start();
    let mut c = server.client();
    for (end, expected) in [("", ["x", "y"]), (" RIGHT", ["x", "y"]), (" LEFT", ["y", "x"])] {
        c.create(format!("q DEADFORWARD LIST l{end}"));
        assert_eq!(c.about("q").text("deadforward"), format!("LIST l{end}"));
        c.push_many("q 2 x y IDS a b");
        bury(&mut c, "q", &["a", "b"]);
        until_moved(&mut c, "q", 2);
        assert_eq!(elements(&mut c, "l"), expected);
        c.ask("DEL q l");
    }
}

#[test]
fn dead_messages_of_before_are_moved_the_oldest_first() {
    let server = Server::start();
    let mut c = server.client();
    c.push_many("q 3 x y z IDS a b c");
    for id in ["b", "c", "a"] {
        bury(&mut c, "q", &[id]);
        let died = c.now();
        c.until_after(died);
    }
    c.alter("q DEADFORWARD STREAM s");
    until_moved(&mut c, "q", 3);
    assert_eq!(ids(&mut c, "s"), ["b", "c", "a"]);
    c.alter("q DEADFORWARD NONE");
    c.push("q w ID d");
    bury(&mut c, "q", &["d"]);
    assert_eq!((c.state("q", "d"), c.about("q").text("deadforward")), ("dead".into(), "NONE".into()));
}

#[test]
fn a_million_dead_messages_are_moved_in_portions() {
    let server = Server::start();
    let mut c = server.client();
    let (payloads, count) = (vec!["x"; 1_000].join(" "), 20);
    (0..count).for_each(|_| drop(c.push_many(format!("q 1000 {payloads} TTL 1"))));
    eventually("all are dead", || c.len("q dead") == count * 1_000);
    c.alter("q DEADFORWARD LIST l");
    until_moved(&mut c, "q", count * 1_000);
    assert_eq!(c.ask("LLEN l").int(), count * 1_000);
}

#[test]
fn copies_of_failed_runs_are_moved() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETRIES 0 DEADFORWARD STREAM s");
    c.ask("DQ.SCHEDULE q tick x EVERY 600000 AT 1700000000000");
    let receipt = c.pop_one("q").receipt().to_owned();
    c.nack(format!("q {receipt} ERROR broken"));
    until_moved(&mut c, "q", 1);
    assert_eq!(entries(&mut c, "s")[0].text("error"), "broken");
    assert_eq!(c.state("q", "tick"), "delayed");
}

#[test]
fn neither_a_pause_nor_a_rate_holds_the_dead_back() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RATE 1 600000 DEADFORWARD LIST l");
    c.push("q x ID a");
    c.pop("q NOACK");
    c.pause("q");
    c.push("q y ID b TTL 5");
    until_moved(&mut c, "q", 1);
    assert_eq!(elements(&mut c, "l"), ["y"]);
}

#[test]
fn what_is_due_and_what_is_dead_have_targets_of_their_own() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD STREAM s DEADFORWARD LIST l");
    c.pause("q");
    c.push_many("q 2 x y IDS a b");
    bury(&mut c, "q", &["b"]);
    until_moved(&mut c, "q", 1);
    c.resume("q");
    until_forwarded(&mut c, "q", 1);
    assert_eq!((ids(&mut c, "s"), elements(&mut c, "l")), (vec!["a".into()], vec!["y".into()]));
    // The failure of one is not that of the other.
    c.ask("SET s text").ok();
    c.push("q z ID c");
    assert!(error_of(&mut c, "q").starts_with("WRONGTYPE"));
    bury(&mut c, "q", &["c"]);
    until_moved(&mut c, "q", 2);
    assert!(c.about("q").get("deadforward-error").is_null());
}

#[test]
fn limits_drop_only_what_the_target_refuses() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q DEADLEN 0 DEADTTL 1 DEADFORWARD LIST l");
    c.push_many("q 2 x y IDS a b");
    bury(&mut c, "q", &["a", "b"]);
    until_moved(&mut c, "q", 2);
    assert_eq!(elements(&mut c, "l"), ["x", "y"]);
    c.ask("SET l text").ok();
    c.push("q z ID c");
    bury(&mut c, "q", &["c"]);
    assert!(refusal_of(&mut c, "q").starts_with("WRONGTYPE"));
    eventually("it is dropped", || c.len("q dead") == 0);
    assert_eq!(c.about("q").int("deadforwarded"), 2);
}

#[test]
fn a_refused_message_stays_dead_and_visible() {
    let server = Server::start();
    let mut c = server.client();
    c.ask("SET s text").ok();
    c.create("q DEADFORWARD STREAM s");
    c.push("q x ID m");
    bury(&mut c, "q", &["m"]);
    assert!(refusal_of(&mut c, "q").starts_with("WRONGTYPE"));
    let about = c.about("q");
    assert!((1..=c.now()).contains(&about.int("deadforward-failing-since")));
    assert!(about.get("forward-error").is_null());
    assert_eq!((about.int("deadforwarded"), c.state("q", "m")), (0, "dead".to_owned()));
    assert_eq!(c.redrive("q COUNT 1"), 1);
    bury(&mut c, "q", &["m"]);
    c.ask("DEL s");
    until_moved(&mut c, "q", 1);
    assert!(c.about("q").get("deadforward-error").is_null());
    let log = server.log();
    for line in [
        "queue q cannot forward dead messages to stream s and tries again each second: WRONGTYPE",
        "queue q forwards dead messages to stream s again",
    ] {
        assert_eq!(log.lines().filter(|of| of.contains(line)).count(), 1, "{line}");
    }
}

#[test]
fn dead_messages_wait_while_writes_are_paused() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q DEADFORWARD LIST l");
    c.at_once(["DQ.PUSH q x TTL 30", "CLIENT PAUSE 600000 WRITE"]);
    eventually("the message is dead", || c.len("q dead") == 1);
    assert_eq!(c.ask("LLEN l").int(), 0);
    c.ask("CLIENT UNPAUSE").ok();
    until_moved(&mut c, "q", 1);
}

#[test]
fn a_client_that_waits_sees_the_death_before_the_move() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    c.create("q DEADFORWARD LIST l");
    for (id, kill) in [("a", Some("DQ.BURY q a")), ("b", None)] {
        c.push(format!("q x ID {id} TTL 300"));
        waiting.send(format!("DQ.AWAIT q {id} BLOCK 0"));
        c.until_blocked(1);
        kill.iter().for_each(|line| drop(c.ask(line)));
        assert_eq!(waiting.receive().fields().text("state"), "dead");
    }
    until_moved(&mut c, "q", 2);
}

#[test]
fn an_id_is_free_once_its_message_is_moved_unless_the_window_knows_it() {
    let server = Server::start();
    let mut c = server.client();
    for (settings, is_free) in [("", true), ("DEDUPE 600000", false)] {
        c.create(format!("q {settings} DEADFORWARD LIST l"));
        c.push("q x ID m");
        bury(&mut c, "q", &["m"]);
        until_moved(&mut c, "q", 1);
        assert_eq!(c.ask("DQ.PUSH q x ID m").is_null(), !is_free);
        c.ask("DEL q l");
    }
}
