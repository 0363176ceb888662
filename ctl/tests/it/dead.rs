//! Dead messages: by their errors, and selected by conditions.

use crate::dqctl::{dqctl, field, json, ok};
use crate::support::{eventually, Server};
use serde_json::json;

/// Messages that died of these errors, with the ids `m-0`, `m-1` and so on.
fn with_errors(errors: &[&str]) -> Server {
    let server = Server::start();
    for (number, error) in errors.iter().enumerate() {
        let id = format!("m-{number}");
        ok(&server, &["push", "q", "x", "--id", &id]);
        server.ask(&["DQ.POP", "q"]);
        server.ask(&["DQ.NACK", "q", &id, "DEAD", "ERROR", error]);
    }
    server
}

#[test]
fn dead_messages_are_counted_by_their_errors() {
    let server = with_errors(&["timeout after 12ms", "refused", "timeout after 3ms\nat line 9", "timeout after 700ms"]);
    ok(&server, &["push", "q", "x", "--id", "buried"]);
    server.ask(&["DQ.BURY", "q", "buried"]);
    let causes = json(&server, &["dead", "q", "--by-error"]);
    let counted: Vec<_> = causes.iter().map(|cause| (cause["count"].clone(), cause["cause"].clone())).collect();
    let expected = [(3, "timeout after #ms"), (1, "(rejected)"), (1, "refused")];
    assert_eq!(counted, expected.map(|(count, cause)| (json!(count), json!(cause))));
    assert_eq!(causes[0]["last-id"], "m-3");
    let line = ok(&server, &["dead", "q", "--by-error", "-n", "1"]);
    assert!(line.starts_with("3\t") && line.ends_with("\tm-3\ttimeout after #ms\n"), "{line}");
    let among = json(&server, &["dead", "q", "--by-error", "--where", "error!~timeout"]);
    assert_eq!(among.len(), 2);
}

#[test]
fn conditions_select_what_is_redriven_or_cancelled() {
    let server = with_errors(&["timeout", "refused", "Timeout again", "bad address"]);
    ok(&server, &["push", "q", "live", "--id", "live", "--in", "1h"]);
    for verb in ["redrive", "cancel"] {
        assert_eq!(ok(&server, &[verb, "q", "--where", "error~timeout", "--dry-run"]), "2\n");
        assert_eq!(dqctl(&server, &[verb, "q", "--older", "1h"]).out, "0\n");
    }
    assert_eq!(ok(&server, &["redrive", "q", "--dry-run"]), "4\n");
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "4");
    let redriven = json(&server, &["redrive", "q", "--where", "error~timeout", "--older", "0", "--in", "1h"]);
    assert_eq!(redriven, [json!({ "redriven": 2 })]);
    assert_eq!(field(&server, "q", "m-2", "state"), "delayed");
    assert_eq!(ok(&server, &["cancel", "q", "--where", "error!~refused", "--where", "reason=rejected"]), "1\n");
    assert_eq!(field(&server, "q", "live", "state"), "delayed");
    assert_eq!((server.text(&["DQ.LEN", "q", "dead"]), server.text(&["DQ.LEN", "q"])), ("1".into(), "3".into()));
    assert_eq!(dqctl(&server, &["cancel", "none", "--where", "error~x"]).code, 1);
}

#[test]
fn the_oldest_of_the_selected_are_redriven() {
    let server = with_errors(&["timeout", "refused", "timeout", "timeout", "timeout"]);
    let of = |more: &[&str]| ok(&server, &[&["redrive", "q", "--where", "error~timeout"][..], more].concat());
    assert_eq!(of(&["-n", "2", "--dry-run"]), "2\n");
    assert_eq!(of(&["-n", "9", "--dry-run"]), "4\n");
    assert_eq!(ok(&server, &["redrive", "q", "-n", "3", "--dry-run"]), "3\n");
    assert_eq!(ok(&server, &["redrive", "q", "m-0", "m-1", "--dry-run"]), "2\n");
    assert_eq!(of(&["-n", "2"]), "2\n");
    let states = ["m-0", "m-1", "m-2", "m-3", "m-4"].map(|id| field(&server, "q", id, "state"));
    assert_eq!(states, ["ready", "dead", "ready", "dead", "dead"]);
}

#[test]
fn all_of_many_dead_messages_are_selected() {
    let server = Server::start();
    let lua = "for i = 1, 2500 do redis.call('DQ.PUSH', KEYS[1], 'x', 'ID', i); redis.call('DQ.BURY', KEYS[1], i) end";
    server.ask(&["EVAL", lua, "1", "q"]);
    eventually("all are dead", || server.text(&["DQ.LEN", "q", "dead"]) == "2500");
    assert_eq!(ok(&server, &["cancel", "q", "--where", "id!~99", "--dry-run"]), "2457\n");
    assert_eq!(ok(&server, &["redrive", "q", "--where", "id!~99", "-n", "2000"]), "2000\n");
    assert_eq!(ok(&server, &["redrive", "q", "--where", "id!~99"]), "457\n");
    assert_eq!(ok(&server, &["cancel", "q", "--older", "0"]), "43\n");
    assert_eq!(server.text(&["DQ.LEN", "q"]), "2457");
}

#[test]
fn messages_of_any_state_are_selected_by_conditions() {
    let server = with_errors(&["timeout"]);
    for (id, more) in [("a-1", "--in=1h"), ("a-2", "--in=2h"), ("a-3", "--group=acme"), ("b-1", "--in=1h")] {
        ok(&server, &["push", "q", &format!("{{\"order\":\"{id}\"}}"), "--id", id, more]);
    }
    let listed = |args: &[&str]| -> Vec<String> {
        let all = ok(&server, &[&["peek", "q"][..], args].concat());
        all.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&["--where", "id~a-"]), ["a-1", "a-2", "a-3"]);
    assert_eq!(listed(&["delayed", "--where", "payload~\"a-", "-n", "1"]), ["a-1"]);
    assert_eq!(listed(&["--where", "error=timeout"]), ["m-0"]);
    assert_eq!(listed(&["ready", "--older", "1h"]), [""; 0]);
    assert_eq!(listed(&["ready", "--older", "0", "--where", "group=acme"]), ["a-3"]);
    let cancel = ["cancel", "q", "--state", "delayed", "--where", "id~a-"];
    assert_eq!(ok(&server, &[&cancel[..], &["--dry-run"]].concat()), "2\n");
    assert_eq!(ok(&server, &[&cancel[..], &["-n", "1"]].concat()), "1\n");
    assert_eq!(ok(&server, &cancel), "1\n");
    assert_eq!(listed(&[]), ["b-1", "a-3", "m-0"]);
    assert_eq!(dqctl(&server, &["cancel", "q", "b-1", "--state", "delayed"]).code, 2);
}

#[test]
fn a_redrive_by_mistake_is_taken_back() {
    let server = with_errors(&["timeout", "refused"]);
    ok(&server, &["push", "q", "x", "--id", "other"]);
    assert_eq!(ok(&server, &["redrive", "q"]), "2\n");
    let bury = ["bury", "q", "--where", "id~m-", "--error", "taken back"];
    assert_eq!(ok(&server, &[&bury[..], &["--dry-run"]].concat()), "2\n");
    assert_eq!(ok(&server, &[&bury[..], &["-n", "1"]].concat()), "1\n");
    assert_eq!(json(&server, &bury), [json!({ "buried": 1 })]);
    assert_eq!(ok(&server, &["dead", "q", "--where", "error=taken back"]).lines().count(), 2);
    assert_eq!(field(&server, "q", "other", "state"), "ready");
    assert_eq!(dqctl(&server, &["bury", "q"]).code, 2);
    assert_eq!(dqctl(&server, &["bury", "q", "--state", "dead", "--where", "id~m"]).code, 2);
}

#[test]
fn a_condition_that_is_not_understood_is_refused() {
    let server = with_errors(&["timeout"]);
    let wrong: [&[&str]; 6] = [
        &["redrive", "q", "--where", "colour=red"],
        &["redrive", "q", "m-0", "--where", "error~x"],
        &["redrive", "q", "m-0", "-n", "1"],
        &["cancel", "q"],
        &["cancel", "q", "--dry-run"],
        &["cancel", "q", "m-0", "--older", "1h"],
    ];
    for args in wrong {
        let ran = dqctl(&server, args);
        assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{args:?}: {ran:?}");
    }
    assert!(dqctl(&server, wrong[0]).err.contains("error~timeout"));
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "1");
}
