//! Errors of past attempts, which the setting `ERRORS` keeps.

use crate::support::{in_both_protocols, Client, Reply, Server};

/// The attempts and the texts of the errors that `DQ.GET` shows.
fn errors(c: &mut Client, key: &str, id: &str) -> Vec<(i64, String)> {
    let shown = c.get(key, id);
    if !shown.has("errors") {
        return Vec::new();
    }
    let entry = |entry: &Reply| {
        let [attempt, at, text] = entry.items() else { panic!("[attempt, unix-ms, text], not {entry:?}") };
        assert!((c.now() - 60_000..=c.now()).contains(&at.int()), "{entry:?}");
        (attempt.int(), text.text())
    };
    let entries = shown.get("errors").items().to_vec();
    entries.iter().map(entry).collect()
}

fn expected(entries: &[(i64, &str)]) -> Vec<(i64, String)> {
    entries.iter().map(|(attempt, text)| (*attempt, (*text).to_owned())).collect()
}

/// Delivers the message and gives it back.
fn fail(c: &mut Client, key: &str, id: &str, how: &str) {
    assert_eq!(c.pop_one(format!("{key} LEASE 600000")).id, id);
    c.nack(format!("{key} {id} DELAY 0 {how}"));
}

#[test]
fn the_last_errors_are_shown_with_attempt_and_time() {
    in_both_protocols(|c| {
        c.create("q ERRORS 2");
        c.push("q x ID m");
        assert!(!c.get("q", "m").has("errors"));
        for (how, entries) in [
            ("ERROR one", &[(1, "one")][..]),
            ("", &[(1, "one")]),
            ("ERROR three NOCOUNT", &[(1, "one"), (3, "three")]),
            ("ERROR again", &[(3, "three"), (3, "again")]),
        ] {
            fail(c, "q", "m", how);
            assert_eq!(errors(c, "q", "m"), expected(entries), "{how}");
        }
        assert_eq!(c.get("q", "m").text("error"), "again");
        for shown in ["DQ.PEEK q", "DQ.SCAN q 0"] {
            let reply = c.ask(shown);
            let messages = if shown.contains("SCAN") { &reply.items()[1] } else { &reply };
            assert_eq!(messages.items()[0].fields().get("errors"), c.get("q", "m").get("errors"), "{shown}");
        }
    });
}

#[test]
fn one_error_is_kept_unless_the_queue_says_otherwise() {
    let server = Server::with(&["--dq.default-errors", "3"]);
    let mut c = server.client();
    c.push("three x ID m");
    c.configure("dq.default-errors", "1");
    c.push("one x ID m");
    for (key, kept) in [("three", 3), ("one", 1)] {
        assert_eq!(c.about(key).int("errors"), kept);
        for text in ["a", "b", "c", "d"] {
            fail(&mut c, key, "m", &format!("ERROR {text}"));
        }
        assert_eq!(errors(&mut c, key, "m").len() as i64, kept);
    }
    c.alter("three ERRORS 1");
    assert_eq!(errors(&mut c, "three", "m").len(), 3, "until the next one comes");
    fail(&mut c, "three", "m", "ERROR e");
    assert_eq!(errors(&mut c, "three", "m"), expected(&[(5, "e")]));
    c.alter("three ERRORS 0");
    fail(&mut c, "three", "m", "ERROR f");
    assert_eq!((errors(&mut c, "three", "m"), c.get("three", "m").text("error")), (Vec::new(), "f".to_owned()));
    c.alter("three ERRORS 2");
    fail(&mut c, "three", "m", "ERROR g");
    assert_eq!(errors(&mut c, "three", "m"), expected(&[(7, "g")]));
}

#[test]
fn a_burial_adds_its_text_and_a_redrive_clears_all() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q ERRORS 64");
    c.push("q x ID m");
    fail(&mut c, "q", "m", "ERROR boom");
    c.ask("DQ.BURY q m ERROR enough");
    assert_eq!(errors(&mut c, "q", "m"), expected(&[(1, "boom"), (1, "enough")]));
    assert_eq!(c.ask("DQ.REDRIVE q"), Reply::Int(1));
    assert!(!c.get("q", "m").has("errors") && !c.get("q", "m").has("error"));
    c.push("q x ID never DELAY 600000");
    c.ask("DQ.BURY q never ERROR unwanted");
    assert_eq!(errors(&mut c, "q", "never"), expected(&[(0, "unwanted")]));
    fail(&mut c, "q", "m", "ERROR boom");
    c.push("q x ID m REPLACE");
    assert!(!c.get("q", "m").has("error"));
}

#[test]
fn a_dead_copy_has_the_errors_of_its_run() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q ERRORS 9");
    c.ask("DQ.SCHEDULE q s x EVERY 3600000 AT 1000000000000 RETRIES 1");
    fail(&mut c, "q", "s", "ERROR one");
    fail(&mut c, "q", "s", "ERROR two");
    assert!(!c.get("q", "s").has("error"), "a new run");
    let copy = c.ask("DQ.PEEK q dead").items()[0].fields().text("id");
    assert_eq!(errors(&mut c, "q", &copy), expected(&[(1, "one"), (2, "two")]));
}

#[test]
fn an_error_of_a_delivery_before_its_successor_goes_with_it() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    fail(&mut c, "q", "m", "ERROR one");
    c.pop_one("q LEASE 600000");
    c.push("q y ID m REPLACE LATER");
    assert_eq!(errors(&mut c, "q", "m"), expected(&[(1, "one")]), "of the one in flight");
    assert_eq!(c.nack("q m ERROR two"), "ready");
    assert!(!c.get("q", "m").has("error"));
}

#[test]
fn a_long_error_is_cut_between_characters() {
    let server = Server::start();
    let mut c = server.client();
    for (id, character, kept) in [("a", "€", 1_023), ("b", "ä", 1_024)] {
        let text = character.repeat(1_000);
        c.push(format!("q x ID {id}"));
        c.pop_one("q");
        c.cmd(&[b"DQ.NACK", &b"q"[..], id.as_bytes(), b"DEAD", b"ERROR", text.as_bytes()]);
        c.cmd(&[b"DQ.PUSH", &b"q"[..], b"x", b"ID", &[id, "2"].concat().into_bytes(), b"ERROR", text.as_bytes()]);
        c.cmd(&[b"DQ.BURY", &b"q"[..], &[id, "2"].concat().into_bytes(), b"ERROR", text.as_bytes()]);
        for id in [id.to_owned(), format!("{id}2")] {
            assert_eq!(c.get("q", &id).text("error"), text[..kept], "{id}");
            assert!(errors(&mut c, "q", &id).iter().all(|(_, listed)| *listed == text[..kept]), "{id}");
        }
    }
}
