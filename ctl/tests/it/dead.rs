//! Dead messages: by their errors, and selected by conditions.

use crate::dqctl::{dqctl, field, json, ok, on_terminal};
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
fn a_pipe_gets_all_errors_or_hears_what_is_left_out() {
    let errors: Vec<String> = ('a'..='l').map(|letter| format!("no {letter}")).collect();
    let server = with_errors(&errors.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ok(&server, &["dead", "q", "--by-error"]).lines().count(), 12);
    assert_eq!(json(&server, &["dead", "q", "--by-error"]).len(), 12);
    assert_eq!(ok(&server, &["dead", "q", "--by-error", "-n", "11"]).lines().count(), 11);
    let shown = on_terminal(&server, "dead q --by-error", true);
    assert!(shown.ends_with("2 more errors: -n 12 shows all\n"), "{shown}");
    for args in [&["dead", "q"][..], &["dead", "q", "--json"], &["dead", "q", "--where", "error~no"]] {
        let ran = dqctl(&server, args);
        assert_eq!((ran.out.lines().count(), ran.err.as_str()), (10, "dqctl: 2 more: -n 12 shows all\n"), "{args:?}");
    }
    assert_eq!(ok(&server, &["dead", "q", "-n", "3"]).lines().count(), 3);
}

#[test]
fn a_lease_that_expired_is_a_cause_of_death() {
    let server = Server::start();
    ok(&server, &["create", "q", "--lease", "1ms", "--retries", "1", "--backoff", "0s,0s"]);
    for id in ["held", "failed"] {
        ok(&server, &["push", "q", "x", "--id", id]);
        server.ask(&["DQ.POP", "q", "LEASE", "600000"]);
        if id == "failed" {
            ok(&server, &["nack", "q", id, "--error", "refused"]);
        } else {
            ok(&server, &["nack", "q", id]);
        }
        server.ask(&["DQ.POP", "q"]);
        eventually("its lease has expired", || field(&server, "q", id, "state") == "dead");
    }
    let causes = json(&server, &["dead", "q", "--by-error"]);
    assert_eq!((causes.len(), &causes[0]["cause"], &causes[0]["count"]), (1, &json!("(lease expired)"), &json!(2)));
    for list in [&["dead", "q"][..], &["peek", "q", "dead"]] {
        let listed = ok(&server, list);
        assert!(listed.contains("\t(lease expired) after refused"), "{listed}");
        assert_eq!(listed.matches("\t(lease expired)").count(), 2, "{listed}");
    }
    assert_eq!(ok(&server, &["redrive", "q", "--where", "cause=(lease expired)", "--dry-run"]), "2\n");
}

#[test]
fn the_newest_dead_messages_are_listed() {
    let server = with_errors(&["one", "two", "three"]);
    let listed = ok(&server, &["dead", "q", "-n", "2"]);
    let ids: Vec<&str> = listed.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(ids, ["m-2", "m-1"]);
    assert!(ok(&server, &["dead", "q", "--where", "error=one"]).ends_with("\trejected\tone\n"));
    assert_eq!(json(&server, &["dead", "q", "--where", "id~m-", "-n", "2"])[0]["cause"], "three");
    for (args, more) in [
        ("dead q -n 1", Some("2 more: -n 3 shows all")),
        ("dead q -n 1 --where id!=m-0", Some("1 more: -n 2 shows all")),
        ("dead q -n 3", None),
    ] {
        let shown = on_terminal(&server, args, true);
        let last = shown.lines().last().unwrap();
        assert!(more.map_or(!shown.contains(" more"), |more| last == more), "{args}: {shown}");
    }
    assert_eq!(dqctl(&server, &["dead", "none"]).code, 1);
    assert_eq!(dqctl(&server, &["dead", "none", "--by-error"]).code, 1);
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
