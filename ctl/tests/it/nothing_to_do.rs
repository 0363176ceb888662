//! What a command says that found nothing to do, and what it refuses so that a typo does not pass.

use crate::dqctl::{dqctl, field, json, ok, on_terminal, run, without_server};
use crate::support::{eventually, Server};
use serde_json::json;

#[test]
fn what_is_so_already_is_said_and_exits_with_0() {
    let server = Server::start();
    assert_eq!(ok(&server, &["create", "q"]), "created\n");
    assert_eq!(ok(&server, &["create", "q"]), "exists already, with these settings\n");
    assert_eq!(json(&server, &["create", "q"]), [json!({ "queue": "q", "created": false })]);
    assert_eq!(ok(&server, &["alter", "q", "--lease", "5s"]), "altered\n");
    assert_eq!(ok(&server, &["alter", "q", "--lease", "5s"]), "has these settings already\n");
    assert_eq!(json(&server, &["alter", "q", "--lease", "5s"]), [json!({ "queue": "q", "altered": false })]);
    assert_eq!(ok(&server, &["alter", "q", "--lease", "6s", "--retries", "3"]), "altered\n");
    assert_eq!(ok(&server, &["resume", "q"]), "was not paused or closed\n");
    assert_eq!(ok(&server, &["resume", "q", "in"]), "was not closed\n");
    assert_eq!(ok(&server, &["pause", "q", "in"]), "closed\n");
    assert_eq!(ok(&server, &["pause", "q", "in"]), "was closed already, until it is resumed\n");
    assert_eq!(ok(&server, &["pause", "q", "all"]), "paused, was closed already, until it is resumed\n");
    assert_eq!(ok(&server, &["resume", "q"]), "resumed\n");
    assert!(ok(&server, &["pause", "q", "--for", "90m"]).starts_with("paused until 20"));
    // A pause never ends an earlier one sooner.
    assert!(ok(&server, &["pause", "q", "--for", "1m"]).starts_with("was paused already, until 20"));
    assert_eq!(ok(&server, &["pause", "q"]), "paused\n");
}

#[test]
fn a_group_that_is_unknown_is_not_resumed() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--group", "ann"]);
    assert_eq!(ok(&server, &["resume", "q", "--group", "ann"]), "was not paused\n");
    let unknown = dqctl(&server, &["resume", "q", "--group", "zzz"]);
    assert!(unknown.code == 1 && unknown.out.is_empty() && unknown.err.contains("no group zzz"), "{unknown:?}");
    // A pause is for messages to come as well.
    for said in ["paused\n", "was paused already, until it is resumed\n"] {
        let paused = dqctl(&server, &["pause", "q", "--group", "zzz"]);
        assert_eq!((paused.code, paused.out.as_str()), (0, said));
        assert_eq!(paused.err, "dqctl: no message of the group zzz waits in the queue q now\n");
    }
    assert_eq!(ok(&server, &["pause", "q", "--group", "ann"]), "paused\n");
    assert_eq!(ok(&server, &["resume", "q", "--group", "zzz"]), "resumed\n");
    let none = dqctl(&server, &["resume", "none", "--group", "zzz"]);
    assert!(none.code == 1 && none.err.contains("there is no queue none"), "{none:?}");
}

#[test]
fn a_terminal_says_that_nobody_holds_a_message() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    assert!(
        on_terminal(&server, "consumers q", true).ends_with("\nnobody holds a message of it; clients that wait: 0\n")
    );
    assert_eq!(ok(&server, &["consumers", "q"]), "");
}

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
fn the_command_of_another_tool_gets_the_one_that_is_meant() {
    let server = Server::start();
    for (guess, instead) in [("rm", "dqctl purge"), ("requeue", "dqctl redrive"), ("pop", "dqctl peek")] {
        let ran = dqctl(&server, &[guess, "q"]);
        let start = format!("dqctl: there is no command {guess}: ");
        assert!(ran.code == 2 && ran.err.starts_with(&start) && ran.err.contains(instead), "{ran:?}");
    }
}

#[test]
fn an_unknown_option_gets_no_wrong_advice() {
    let ran = run(without_server(&["cancel", "q", "m", "--nonsense"]));
    assert!(ran.code == 2 && !ran.err.contains("to pass"), "{ran:?}");
    let similar = run(without_server(&["purge", "q", "dead", "--dry-rum"]));
    assert!(similar.err.contains("--dry-run"), "{similar:?}");
    let time = run(without_server(&["pause", "q", "5m"]));
    assert!(time.code == 2 && time.err.contains("give --for 5m"), "{time:?}");
    let queue = run(without_server(&["work", "mail", "--", "true"]));
    assert!(queue.code == 2 && queue.err.contains("queues are named with -q"), "{queue:?}");
    let word = run(without_server(&["pause", "q", "outt"]));
    assert!(word.code == 2 && !word.err.contains("--for"), "{word:?}");
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
    assert!(dqctl(&server, &["await", "orders", "a"]).err.contains("not kept, or it died and was moved"));
    let all = dqctl(&server, &["dead", "*", "--by-error"]);
    assert_eq!((all.code, all.out.as_str()), (0, ""), "{all:?}");
    assert!(all.err.contains("1 queue moves dead messages away"), "{all:?}");
    let shown = ok(&server, &["get", "orders:dead", "a"]);
    let died = shown.lines().find(|line| line.starts_with("header dq-died\t")).unwrap();
    assert!(died.contains(" (20") && died.ends_with("Z)"), "{shown}");
    let hinted = dqctl(&server, &["dead", "orders:dead"]);
    assert!(hinted.err.contains("dqctl dead orders:dead --letters"), "{hinted:?}");
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
