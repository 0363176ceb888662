//! What a command says that found nothing to do, and what it refuses so that a typo does not pass.

use crate::dqctl::{dqctl, field, json, ok, run, without_server};
use crate::support::{eventually, Server};
use serde_json::json;

#[test]
fn a_reason_that_no_death_has_is_refused() {
    for condition in ["reason=retires", "reason!=expire"] {
        let ran = run(without_server(&["redrive", "q", "--where", condition, "--dry-run"]));
        assert!(ran.code == 2 && ran.err.contains("retries, expired or rejected"), "{ran:?}");
    }
}

#[test]
fn purge_and_promote_count_before_they_change_anything() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h", "--group", if id == "c" { "g" } else { "h" }]);
    }
    ok(&server, &["schedule", "q", "tick", "x", "--every", "1h"]);
    ok(&server, &["push", "q", "x", "--id", "dead"]);
    ok(&server, &["bury", "q", "dead"]);
    let before = ok(&server, &["peek", "q"]);
    for (args, expected) in [
        (&["promote", "q", "--dry-run"][..], "4\n"),
        (&["promote", "q", "--dry-run", "-n", "3"], "3\n"),
        // The schedule stays.
        (&["purge", "q", "delayed", "--dry-run"], "3\n"),
        (&["purge", "q", "delayed", "--dry-run", "--recurring"], "4\n"),
        (&["purge", "q", "--all", "--dry-run"], "4\n"),
        (&["purge", "q", "--all", "--dry-run", "-n", "2"], "2\n"),
        (&["purge", "q", "--all", "--dry-run", "--group", "h"], "2\n"),
        (&["purge", "q", "dead", "--dry-run"], "1\n"),
    ] {
        assert_eq!(ok(&server, args), expected, "{args:?}");
        assert_eq!(ok(&server, &["peek", "q"]), before, "{args:?}");
    }
    assert_eq!(json(&server, &["purge", "q", "dead", "--dry-run"]), [json!({ "selected": 1 })]);
    assert_eq!(dqctl(&server, &["purge", "q", "done", "--dry-run"]).code, 1);
    assert_eq!(dqctl(&server, &["purge", "none", "dead", "--dry-run"]).code, 1);
    // It counts what the purge removes then.
    assert_eq!(ok(&server, &["purge", "q", "--all", "--group", "h"]), "2\n");
    assert_eq!(ok(&server, &["purge", "q", "delayed"]), "1\n");
    assert_eq!(field(&server, "q", "tick", "state"), "delayed");
}

#[test]
fn purge_takes_what_has_been_in_its_state_for_long() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "old", "AT", "1700000000000"]);
    ok(&server, &["push", "q", "x", "--id", "new"]);
    assert_eq!(ok(&server, &["purge", "q", "ready", "--older", "1d"]), "1\n");
    assert_eq!(field(&server, "q", "new", "state"), "ready");
}

#[test]
fn dead_messages_that_went_elsewhere_are_found() {
    let server = Server::start();
    ok(&server, &["create", "orders", "--deadforward", "QUEUE orders:dead"]);
    for id in ["a", "b"] {
        ok(&server, &["push", "orders", "x", "--id", id]);
        ok(&server, &["bury", "orders", id, "--error", "refused"]);
    }
    eventually("both are moved", || server.text(&["DQ.LEN", "orders:dead"]) == "2");
    let hint = "the dead messages of orders go to the queue orders:dead";
    for args in [
        &["dead", "orders"][..],
        &["dead", "orders", "--by-error"],
        &["redrive", "orders"],
        &["redrive", "orders", "--where", "error~refused"],
    ] {
        let ran = dqctl(&server, args);
        assert!(ran.err.contains(hint) && ran.err.contains("dqctl dead orders:dead --letters"), "{args:?}: {ran:?}");
        assert_eq!((ran.err.lines().count(), ran.code), (1, i32::from(args[0] == "redrive")), "{ran:?}");
    }
    // One of them is not called lost.
    for args in [&["get", "orders", "a"][..], &["await", "orders", "a"]] {
        let ran = dqctl(&server, args);
        assert!(ran.code == 1 && ran.err.lines().nth(1).is_some_and(|line| line.contains(hint)), "{args:?}: {ran:?}");
    }
    let all = dqctl(&server, &["dead", "*", "--by-error"]);
    assert_eq!((all.code, all.out.as_str()), (0, ""), "{all:?}");
    let shown = ok(&server, &["get", "orders:dead", "a"]);
    let died = shown.lines().find(|line| line.starts_with("header dq-died\t")).unwrap();
    assert!(died.contains(" (20") && died.ends_with("Z)"), "{shown}");
    assert!(ok(&server, &["peek", "orders:dead"]).contains("\trefused\t"));
    let causes = crate::dqctl::json(&server, &["dead", "orders:dead", "--letters", "--by-error"]);
    assert_eq!((causes.len(), &causes[0]["count"], &causes[0]["cause"]), (1, &2.into(), &"refused".into()));
    assert_eq!(ok(&server, &["dead", "orders:dead", "--letters", "--where", "id=a"]).lines().count(), 1);
    ok(&server, &["push", "orders:dead", "x", "--id", "other"]);
    let cancel = ["cancel", "orders:dead", "--letters", "--where"];
    assert_eq!(ok(&server, &[&cancel[..], &["reason=rejected", "--dry-run"]].concat()), "2\n");
    ok(&server, &["push", "orders", "x", "--id", "c"]);
    ok(&server, &["bury", "orders", "c", "--error", "wrong"]);
    eventually("it is moved", || server.text(&["DQ.LEN", "orders:dead"]) == "4");
    assert_eq!(ok(&server, &[&cancel[..], &["error~wrong"]].concat()), "1\n");
    assert_eq!(server.text(&["DQ.LEN", "orders:dead"]), "3");
    // A stream is no queue to look into with dqctl.
    ok(&server, &["create", "logged", "--deadforward", "STREAM log"]);
    let ran = dqctl(&server, &["dead", "logged"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "dqctl: the dead messages of logged go to the stream log\n"));
}
