//! The messages of a queue, and one of them in full.

use super::{Top, ENTER, ESCAPE, TAB};
use crate::dqctl::ok;
use crate::support::{eventually, Server};

#[test]
fn a_queue_shows_its_messages_and_one_in_full() {
    let server = Server::start();
    ok(&server, &["push", "q", "line one\nline two", "--id", "first"]);
    ok(&server, &["push", "q", "second", "--id", "other", "--in", "1h"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press(ENTER);
    top.until("line one\\nline two");
    top.press(TAB);
    top.until("There are no inflight messages");
    top.press("\x1b[Z\x1b[Z");
    top.until("second");
    assert!(top.line("other").contains("in 59m"), "{}", top.text());
    top.press(TAB);
    top.until("line one");
    top.press(ENTER);
    top.until("payload, 17 bytes\nline one\nline two");
    assert!(top.line("state").contains("ready"), "{}", top.text());
    ok(&server, &["cancel", "q", "first"]);
    top.until("no longer exists");
    top.press(ESCAPE);
    top.until("There are no ready messages");
    top.press(ESCAPE);
    top.until("QUEUE");
}

#[test]
fn dead_messages_show_their_death_and_are_deleted() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m", "--in", "1h"]);
    server.ask(&["DQ.BURY", "q", "m", "ERROR", "no such user"]);
    ok(&server, &["push", "q", "x", "--id", "other", "--in", "1h"]);
    let mut top = Top::start(&server);
    eventually("it is dead", || top.line("q ").split_whitespace().nth(4) == Some("1"));
    top.press(ENTER);
    top.until("DIED");
    eventually("it died just now", || top.line("m ").contains("ago") && top.line("m ").contains("no such user"));
    top.press(ENTER);
    top.until("payload, 1 byte");
    assert_eq!(top.text().matches("no such user").count(), 1, "{}", top.text());
    top.press(ESCAPE);
    top.until("DIED");
    top.until("c delete");
    top.press("c");
    top.until("Delete m of q for good?");
    top.press("y");
    top.until("deleted m");
    top.until("There are no dead messages.");
    top.press("\x1b[Z\x1b[Z");
    top.until("There are no ready messages: the next one is due in");
}

#[test]
fn a_queue_whose_messages_die_opens_at_its_dead() {
    let server = Server::start();
    ok(&server, &["create", "q", "--lease", "1ms", "--retries", "0"]);
    ok(&server, &["push", "q", "x", "--id", "held"]);
    server.ask(&["DQ.POP", "q"]);
    eventually("its lease has expired", || server.text(&["DQ.LEN", "q", "dead"]) == "1");
    ok(&server, &["push", "q", "x", "--id", "next"]);
    let mut top = Top::start(&server);
    eventually("it is dying", || top.line("q ").contains("messages die"));
    top.press(ENTER);
    top.until("DIED");
    eventually("its cause is shown", || top.line("held ").contains("(lease expired)"));
}

#[test]
fn a_json_payload_is_indented() {
    let server = Server::start();
    ok(&server, &["push", "q", r#"{"b":1.50,"a":[2]}"#, "--id", "m"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press(ENTER);
    top.until_line("m ");
    top.press(ENTER);
    top.until("payload, 18 bytes\n{\n  \"b\": 1.50,\n  \"a\": [\n    2\n  ]\n}");
}

#[test]
fn empty_lists_say_why() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q"]);
    ok(&server, &["push", "later", "x", "--in", "1h"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press("\x1b[F");
    top.press(ENTER);
    top.until("There are no ready messages: nothing was pushed to this queue yet.");
    top.press("\x1b[Z\x1b[Z");
    top.until("There are no done messages: they are not kept");
    top.press(ESCAPE);
    top.until_line("later ");
    top.press("/zzz\r");
    top.until("No queue has \"zzz\" in its name.");
}

#[test]
fn a_setting_that_limits_nothing_says_so_in_a_message() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press(ENTER);
    top.until_line("m ");
    top.press(ENTER);
    top.until("ttl");
    assert!(top.line("ttl").ends_with("no limit") && top.line("next").is_empty(), "{}", top.text());
}

#[test]
fn all_messages_that_a_filter_shows_are_marked_and_deleted() {
    let server = Server::start();
    let push = |id: &str, payload: &str| {
        server.ask(&["DQ.PUSH", "q", payload, "ID", id]);
        server.ask(&["DQ.BURY", "q", id]);
    };
    (0..120).for_each(|number| push(&format!("m{number}"), "coupon"));
    push("other", "invoice");
    let mut top = Top::start(&server);
    eventually("they are dead", || top.line("q ").split_whitespace().nth(4) == Some("121"));
    top.press(ENTER);
    top.until("Tab state");
    top.press("/coupon\r");
    top.until("120 with \"coupon\" of 1");
    top.until("a mark all");
    top.press("X");
    top.until("this key is for all, and only some are shown: a marks these, then c and r are");
    top.press("a");
    top.until("120 marked: c and r are now for them");
    top.press("c");
    top.until("Delete 120 marked messages of q for good?");
    top.press("y");
    top.until("deleted 120 messages of q");
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "1");
}
