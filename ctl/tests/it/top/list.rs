//! The list of queues: what it shows of each, and in which order.

use super::{Top, ENTER, ESCAPE};
use crate::dqctl::ok;
use crate::support::{eventually, Server};

#[test]
fn queues_are_shown_live() {
    let server = Server::start();
    let top = Top::start(&server);
    top.until("There are no queues");
    ok(&server, &["push", "mail", "x"]);
    eventually("it is counted", || top.line("mail").split_whitespace().nth(1) == Some("1"));
    ok(&server, &["push", "mail", "x"]);
    ok(&server, &["pause", "mail"]);
    eventually("it is counted again", || top.line("mail").split_whitespace().nth(1) == Some("2"));
    top.until("paused");
}

#[test]
fn payloads_and_names_cannot_control_the_terminal() {
    let server = Server::start();
    let evil = "\x1b]0;evil\x07\x1b[31;1mred\u{9b}2J\u{202e}";
    server.ask(&["DQ.PUSH", &format!("q{evil}"), &format!("p{evil}"), "ID", &format!("i{evil}")]);
    server.ask(&["DQ.BURY", &format!("q{evil}"), &format!("i{evil}"), "ERROR", &format!("e{evil}")]);
    let mut top = Top::with(&server, (200, 24), "");
    top.until(r"q\x1b]0;evil");
    // Its numbers are read after its name, and say which messages are shown first.
    top.until("messages die");
    top.press(ENTER);
    top.until("p\\u{1b}]0;evil");
    top.press(ENTER);
    top.until("e\\x1b]0;evil");
    let written = String::from_utf8(top.bytes()).unwrap();
    for raw in ["\x1b]", "\x07", "31;1m", "\u{9b}", "\u{202e}"] {
        let found = written
            .match_indices(raw)
            .find(|(at, _)| !["1b}[", "x1b["].iter().any(|escaped| written[..*at].ends_with(escaped)));
        assert!(found.is_none(), "{raw:?}");
    }
}

#[test]
fn five_thousand_queues_are_sorted_and_filtered() {
    let server = Server::start();
    let client = server.client();
    for number in 0..5_000 {
        let queue = client.queue::<dq_client::Raw>(format!("q{number:04}"));
        queue.push(&dq_client::Raw(b"x".to_vec())).id("m").send().unwrap();
    }
    server.ask(&["DQ.BURY", "q3333", "m"]);
    let mut top = Top::with(&server, (200, 50), "");
    top.until("5,000 queues");
    top.press("1");
    top.until("q0045");
    top.press("\x1b[F");
    top.until("q4999");
    // Also those that were never on the screen have been read.
    top.press("5");
    eventually("the dead one comes first", || top_line(&top) == "q3333");
    top.press("1");
    eventually("the first name", || top_line(&top) == "q0000");
    top.press("S");
    eventually("the last name", || top_line(&top) == "q4999");
    top.press("/4242");
    eventually("the only one", || top_line(&top) == "q4242");
    top.press(ENTER);
    top.press(ENTER);
    top.until("payloads 1 byte");
    top.press(ESCAPE);
    top.until("with \"4242\"");
    top.press(ESCAPE);
    top.until("5,000 queues");
}

/// The first queue of the list.
fn top_line(top: &Top) -> String {
    top.text().lines().nth(2).and_then(|line| line.split(' ').next()).unwrap_or_default().to_owned()
}

#[test]
fn no_key_changes_anything() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m", "--in", "1h"]);
    let reads = ["+scan", "+ping", "+hello", "+client", "+info", "+dq.info", "+dq.peek", "+dq.get"];
    server.ask(&[&["ACL", "SETUSER", "viewer", "on", ">pw", "~*"], &reads[..]].concat());
    let url = server.url().replace("redis://", "redis://viewer:pw@");
    let mut top = Top::with(&server, (80, 24), &format!("DQ_URL={url}"));
    top.until_line("q ");
    let letters: String = ('a'..='z').chain('A'..='Z').filter(|key| !"dq".contains(*key)).collect();
    for page in ["q ", "in 59m", "payload, 1 byte"] {
        top.until(page);
        top.press(&letters);
        top.press(ENTER);
    }
    top.press("\x1b[D");
    top.until("Tab state");
    assert_eq!(server.ask(&["ACL", "LOG"]), dq_client::Value::Array(Vec::new()), "nothing was refused");
}
