//! The messages of a queue, and one of them in full.

use super::{Top, ENTER, ESCAPE, TAB};
use crate::dqctl::ok;
use crate::support::{eventually, Server};

#[test]
fn a_queue_shows_its_messages_and_one_in_full() {
    let server = Server::start();
    ok(&server, &["push", "q", "line one\nline two", "--id", "first"]);
    ok(&server, &["push", "q", r#"{"order":[1,2]}"#, "--id", "other", "--in", "1h"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press(ENTER);
    top.until("line one\\nline two");
    top.press(TAB);
    top.until("There are no inflight messages");
    top.press("\x1b[Z\x1b[Z");
    top.until_line("other");
    assert!(top.line("other").contains("in 59m"), "{}", top.text());
    top.press(ENTER);
    top.until("{\n  \"order\": [\n    1,");
    top.press(ESCAPE);
    top.until("Tab state");
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
fn a_queue_whose_messages_die_opens_at_these_with_their_errors() {
    let server = Server::start();
    for (id, error) in [("m", "no such user"), ("n", "timeout")] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
        server.ask(&["DQ.BURY", "q", id, "ERROR", error]);
    }
    ok(&server, &["push", "q", "x", "--id", "waits"]);
    let mut top = Top::start(&server);
    eventually("they are dead", || top.line("q ").ends_with("messages die"));
    top.press(ENTER);
    eventually("it died just now", || top.line("m ").contains("ago") && top.line("m ").contains("no such user"));
    top.press("/TIME\r");
    eventually("the other is left out", || top.line("m ").is_empty() && !top.line("n ").is_empty());
    top.press(ENTER);
    top.until("payload, 1 byte");
    assert_eq!(top.text().matches("timeout").count(), 1, "{}", top.text());
}

#[test]
fn the_cursor_stays_on_its_message_while_others_die() {
    let server = Server::start();
    let bury = |id: &str| {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
        ok(&server, &["bury", "q", id]);
    };
    ["a", "b", "c"].into_iter().for_each(bury);
    let mut top = Top::start(&server);
    eventually("they are dead", || top.line("q ").ends_with("messages die"));
    top.press(ENTER);
    top.until_line("a ");
    top.press(super::DOWN);
    bury("d");
    top.until_line("d ");
    top.press(ENTER);
    top.until("b  of q");
}
