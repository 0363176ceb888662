//! The commands for a whole queue, and those that give messages back.

use crate::dqctl::{agreeing, answering, dqctl, field, json, ok, on_terminal};
use crate::support::{eventually, Server};
use dq_client::Value;
use serde_json::json;

#[test]
fn every_setting_can_be_given_to_create_and_alter() {
    let server = Server::start();
    let settings = "--lease 61001ms --maxlease 1h --retries -1 --backoff 1500ms,2h --jitter 20 --ttl 1d --maxlen 10 \
        --maxinflight 5 --rate 100/1m --deadlen -1 --deadttl 7d --retain 90s --donelen 50 --maxpayload 1024 \
        --groupinflight 2 --grouprate 7/1s --errors 3 --grouporder turn --dedupe 1h --delay 5s --forward";
    let words = settings.split_whitespace().chain(["STREAM jobs TRIM 1000", "--deadforward", "QUEUE dead"]);
    let words: Vec<&str> = words.collect();
    assert_eq!(ok(&server, &[&["create", "q"][..], &words].concat()), "created\n");
    let info = json(&server, &["info", "q"]).remove(0);
    let expected = json!({ "lease": 61_001, "maxlease": 3_600_000, "retries": -1, "backoff-base": 1_500,
        "backoff-max": 7_200_000, "backoff-jitter": 20, "ttl": 86_400_000, "maxlen": 10, "maxinflight": 5, "rate": 100,
        "rate-period": 60_000, "deadlen": -1, "deadttl": 604_800_000, "retain": 90_000, "donelen": 50,
        "maxpayload": 1024, "groupinflight": 2, "grouprate": 7, "grouprate-period": 1_000, "errors": 3,
        "grouporder": "turn", "dedupe": 3_600_000,
        "delay": 5_000, "forward": "STREAM jobs TRIM 1000" });
    // All that the server has, from its first setting to its last one.
    let shown = ok(&server, &["info", "q"]);
    let names: Vec<&str> = shown.lines().filter_map(|line| line.split('\t').next()).collect();
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    for name in &names[place("lease")..=place("forward")] {
        assert_eq!(info[name], expected[name], "{name}");
    }
    assert_eq!(info["deadforward"], "QUEUE dead");
    ok(&server, &["alter", "q", "--rate", "0", "--forward", "NONE"]);
    let info = json(&server, &["info", "q"]).remove(0);
    assert_eq!((&info["rate"], &info["forward"], &info["lease"]), (&json!(0), &json!("NONE"), &json!(61_001)));
    assert_eq!(dqctl(&server, &["create", "q", "--lease", "1m"]).code, 3);
    let missing = dqctl(&server, &["alter", "none", "--lease", "1m"]);
    assert!(missing.code == 1 && missing.err.contains("there is no queue none"), "{missing:?}");
    ok(&server, &["alter", "none", "--create", "--lease", "1m"]);
    let nothing = dqctl(&server, &["alter", "q"]);
    assert!(nothing.code == 2 && nothing.err.contains("--lease 1m"), "{nothing:?}");
    for wrong in
        [["create", "q", "--rate", "100"], ["create", "q", "--backoff", "1s"], ["create", "q", "--jitter", "5"]]
    {
        assert_eq!(dqctl(&server, &wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn promote_makes_the_next_delayed_messages_due() {
    let server = Server::start();
    for (id, delay) in [("b", "2h"), ("a", "1h"), ("c", "3h")] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", delay]);
    }
    assert_eq!(ok(&server, &["promote", "q", "-n", "2", "--dry-run"]), "2\n");
    assert_eq!(field(&server, "q", "a", "state"), "delayed");
    assert_eq!(ok(&server, &["promote", "q", "-n", "1"]), "1\n");
    assert_eq!(field(&server, "q", "a", "state"), "ready");
    let some = dqctl(&server, &["promote", "q", "c", "a", "none"]);
    assert_eq!((some.code, some.out.as_str(), some.err.lines().count()), (1, "c\n", 2), "{some:?}");
    assert_eq!(field(&server, "q", "c", "state"), "ready");
    assert_eq!(json(&server, &["promote", "q"]), [json!({ "promoted": 1 })]);
    assert_eq!(dqctl(&server, &["promote", "none"]).code, 1);
}

#[test]
fn purge_removes_the_states_that_it_names() {
    let server = Server::start();
    for (id, delay) in [("a", "0"), ("b", "1h"), ("c", "1h")] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", delay, "--group", id]);
    }
    assert_eq!(dqctl(&server, &["purge", "q"]).code, 2);
    assert!(dqctl(&server, &["purge", "q", "old"]).err.contains("delayed, ready"));
    assert_eq!(ok(&server, &["purge", "q", "delayed", "dead", "--group", "c"]), "1\n");
    assert_eq!(ok(&server, &["purge", "q", "delayed", "ready", "-n", "1"]), "1\n");
    assert_eq!(ok(&server, &["purge", "q", "--all"]), "1\n");
    ok(&server, &["schedule", "q", "tick", "x", "--every", "1h"]);
    assert_eq!(dqctl(&server, &["purge", "q", "--all"]).out, "0\n");
    assert_eq!(ok(&server, &["purge", "q", "--all", "--recurring"]), "1\n");
    assert_eq!(dqctl(&server, &["purge", "none", "dead"]).code, 1);
}

#[test]
fn a_dry_run_of_a_purge_counts_what_the_purge_removes() {
    let server = Server::start();
    let push = |id: &str, more: &[&str]| ok(&server, &[&["push", "q", "x", "--id", id][..], more].concat());
    push("held", &["--group", "g", "--lease", "1h"]);
    push("done", &["--retain", "1h"]);
    server.ask(&["DQ.POP", "q", "COUNT", "2"]);
    ok(&server, &["ack", "q", "done"]);
    ok(&server, &["schedule", "q", "tick", "x", "--every", "1h", "--at", "2026-01-01T00:00:00Z"]);
    push("due", &["--at", "2026-01-01T00:00:00Z", "--group", "h"]);
    push("ready", &[]);
    push("delayed", &["--in", "1h", "--group", "g"]);
    push("dead", &["--group", "g"]);
    ok(&server, &["bury", "q", "dead"]);
    let counted = |options: &str| {
        let args: Vec<&str> = ["purge", "q", "--dry-run"].into_iter().chain(options.split(' ')).collect();
        dqctl(&server, &args)
    };
    eventually("all are a millisecond old", || counted("--all --older 1ms").out == "6\n");
    for (options, expected) in [
        ("--all --older 1d", 1),
        ("ready --older 1d", 1),
        ("ready --older 1d --recurring", 2),
        ("ready --older 1d --group g", 0),
        ("inflight dead --older 1ms", 2),
        ("inflight --older 1h", 0),
        ("delayed done --older 1ms", 2),
        ("--all --older 1ms --group g -n 1", 1),
        ("--all --older 1ms --group g", 3),
    ] {
        let counted = counted(options);
        assert_eq!((counted.out, counted.code), (format!("{expected}\n"), i32::from(expected == 0)), "{options}");
        server.ask(&["COPY", "q", "copy", "REPLACE"]);
        let args: Vec<&str> = ["purge", "copy"].into_iter().chain(options.split(' ')).collect();
        assert_eq!(dqctl(&server, &args).out, format!("{expected}\n"), "{options}");
    }
}

#[test]
fn many_messages_are_changed_in_steps() {
    let server = Server::start();
    let lua = "for i = 1, 25000 do redis.call('DQ.PUSH', KEYS[1], 'x', 'DELAY', 3600000) end";
    server.ask(&["EVAL", lua, "1", "q"]);
    assert_eq!(ok(&server, &["promote", "q"]), "25000\n");
    let calls = server.info("commandstats", "cmdstat_DQ.PROMOTE");
    assert!(calls.starts_with("calls=3,"), "{calls}");
    assert_eq!(ok(&server, &["purge", "q", "ready"]), "25000\n");
}

#[test]
fn messages_are_buried_and_given_back_with_an_error() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        ok(&server, &["push", "q", "x", "--id", id]);
    }
    let ran = dqctl(&server, &["bury", "q", "a", "none", "--error", "wrong address"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "a\n"));
    assert_eq!(
        (field(&server, "q", "a", "state"), field(&server, "q", "a", "error")),
        (json!("dead"), json!("wrong address"))
    );
    server.ask(&["DQ.POP", "q", "COUNT", "2", "LEASE", "600000"]);
    assert_eq!(ok(&server, &["nack", "q", "b", "--in", "1h", "--error", "later"]), "delayed\n");
    assert_eq!(field(&server, "q", "b", "error"), "later");
    let receipt = field(&server, "q", "c", "receipt");
    assert_eq!(json(&server, &["nack", "q", receipt.as_str().unwrap(), "--no-count"])[0]["state"], "ready");
    assert_eq!(field(&server, "q", "c", "attempt"), 0);
    assert_eq!(dqctl(&server, &["nack", "q", "c"]).code, 1);
    server.ask(&["DQ.POP", "q"]);
    assert_eq!(ok(&server, &["nack", "q", "c", "--dead"]), "dead\n");
}

/// What `dqctl info` says of each of these queues.
fn all_are(server: &Server, queues: &[&str], field: &str, value: i64) {
    for queue in queues {
        assert_eq!(json(server, &["info", queue])[0][field], value, "{queue}");
    }
}

#[test]
fn all_queues_that_match_are_paused_resumed_and_altered() {
    let server = Server::start();
    let services = ["svc:a", "svc:b", "svc:c", "svc:d"];
    for queue in services.iter().chain(&["other"]) {
        ok(&server, &["push", queue, "x"]);
    }
    let refused = answering(&server, "pause 'svc:*'", true, "n\n");
    assert!(refused.contains("Pause 4 queues that match svc:* (svc:a, svc:b, svc:c and 1 more)"), "{refused}");
    all_are(&server, &services, "paused", 0);
    assert!(answering(&server, "pause 'svc:*'", true, "y\n").ends_with("svc:c  paused\nsvc:d  paused\n"));
    all_are(&server, &services, "paused", 1);
    all_are(&server, &["other"], "paused", 0);
    let resumed = "svc:a\tresumed\nsvc:b\tresumed\nsvc:c\tresumed\nsvc:d\tresumed\n";
    assert_eq!(ok(&server, &["resume", "svc:*"]), resumed);
    assert_eq!(json(&server, &["pause", "svc:[ab]", "in"]).len(), 2);
    all_are(&server, &services[..2], "closed", 1);
    all_are(&server, &services[2..], "closed", 0);
    assert!(on_terminal(&server, "alter 'svc:*' --lease 7s -y", true).contains("svc:d  altered: lease 30s -> 7s"));
    all_are(&server, &services, "lease", 7_000);
    for wrong in [&["pause", "none*"][..], &["resume", "none?"], &["alter", "none*", "--lease", "1s"]] {
        let none = dqctl(&server, wrong);
        assert!(none.code == 1 && none.err.contains("no queue matches none"), "{none:?}");
    }
    let wrong = dqctl(&server, &["alter", "svc:*", "--backoff", "2h,1s"]);
    assert!(wrong.code == 2 && wrong.err.lines().count() == 1, "{wrong:?}");
}

#[test]
fn messages_of_all_queues_that_match_are_changed_and_no_others() {
    let server = Server::start();
    for queue in ["a1", "a2", "b"] {
        ok(&server, &["push", queue, "x", "--id", "now"]);
        server.ask(&["DQ.POP", queue, "LEASE", "600000", "AS", "gone"]);
        ok(&server, &["push", queue, "x", "--id", "late", "--in", "1h"]);
    }
    let acts: [&[&str]; 5] = [
        &["promote", "a*"],
        &["release", "a*", "gone"],
        &["bury", "a*", "--where", "id=late"],
        &["cancel", "a*", "--where", "reason=rejected"],
        &["purge", "a*", "ready"],
    ];
    for act in acts {
        assert_eq!(ok(&server, &[act, &["--dry-run"]].concat()), "a1\t1\na2\t1\n", "{act:?}");
        assert_eq!(ok(&server, act), "a1\t1\na2\t1\n", "{act:?}");
        assert_eq!(dqctl(&server, act).code, 1, "{act:?}: nothing is left to change");
    }
    assert_eq!(["now", "late"].map(|id| field(&server, "b", id, "state")), ["inflight", "delayed"]);
    assert_eq!(["a1", "a2"].map(|queue| server.text(&["DQ.LEN", queue])), ["0", "0"]);
}

#[test]
fn a_queue_that_refuses_does_not_keep_others_from_being_paused() {
    let server = Server::start();
    for queue in ["svc:a", "svc:b", "svc:c"] {
        ok(&server, &["push", queue, "x"]);
    }
    server.ask(&["ACL", "SETUSER", "ann", "on", ">pw", "~svc:a", "~svc:c", "+scan", "+dq.info", "+dq.pause"]);
    let url = server.url().replace("redis://", "redis://ann:pw@");
    let paused = dqctl(&server, &["-u", &url, "pause", "svc:*"]);
    assert_eq!((paused.code, paused.out.as_str()), (1, "svc:a\tpaused\nsvc:c\tpaused\n"), "{paused:?}");
    assert!(paused.err.starts_with("dqctl: svc:b: ") && paused.err.contains("ACL SETUSER"), "{paused:?}");
}

#[test]
fn a_server_that_dies_is_reported_once_and_not_for_each_queue() {
    let server = Server::start();
    for queue in ["svc:a", "svc:b", "svc:c"] {
        ok(&server, &["push", queue, "x"]);
    }
    let shown = agreeing(&server, "pause 'svc:*'", || drop(server.try_ask(&["SHUTDOWN", "NOSAVE"])));
    assert_eq!(shown.matches("start the server").count(), 1, "{shown}");
}

#[test]
fn a_queue_whose_name_is_like_a_pattern_is_paused_alone() {
    let server = Server::start();
    for queue in ["a*", "a1", "b*", "b1"] {
        ok(&server, &["push", queue, "x"]);
    }
    assert_eq!(ok(&server, &["pause", "a*"]), "paused\n");
    all_are(&server, &["a1"], "paused", 0);
    assert_eq!(ok(&server, &["pause", r"b\*"]), "b*\tpaused\n");
    all_are(&server, &["b1"], "paused", 0);
}

#[test]
fn what_died_of_one_cause_in_many_queues_is_counted_and_redriven_together() {
    let server = Server::start();
    for (queue, error) in [("svc:a", "HTTP 503 from 10.0.0.1"), ("svc:b", "HTTP 503 from 10.0.0.2"), ("svc:c", "bad")] {
        for id in ["m1", "m2"] {
            ok(&server, &["push", queue, "x", "--id", id]);
            ok(&server, &["bury", queue, id, "--error", error]);
        }
    }
    ok(&server, &["push", "svc:d", "x"]);
    ok(&server, &["redrive", "svc:b", "m1"]);
    let counted = json(&server, &["dead", "svc:*", "--by-error"]);
    let of = |place: usize| (counted[place]["count"].clone(), counted[place]["queues"].clone());
    assert_eq!(of(0), (json!(3), json!({ "svc:a": 2, "svc:b": 1 })), "{counted:?}");
    assert_eq!(of(1), (json!(2), json!({ "svc:c": 2 })), "{counted:?}");
    assert!(ok(&server, &["dead", "svc:*", "--by-error"]).contains("\tsvc:a 2, svc:b 1\tHTTP 503 from #"));
    let one_by_one = dqctl(&server, &["dead", "svc:*"]);
    assert!(one_by_one.code == 1 && one_by_one.err.contains("--by-error"), "{one_by_one:?}");

    let selected = ["redrive", "svc:*", "--where", "cause~http 503"];
    let dry = ok(&server, &[&selected[..], &["--dry-run"]].concat());
    assert_eq!(dry, "svc:a\t2\nsvc:b\t1\n");
    assert_eq!(ok(&server, &selected), dry);
    assert_eq!(json(&server, &["redrive", "svc:*"]), [json!({ "queue": "svc:c", "redriven": 2 })]);
    let none = dqctl(&server, &["redrive", "svc:*"]);
    assert_eq!((none.code, none.out.as_str()), (1, ""), "{none:?}");
    assert!(none.err.contains("no queue matches svc:*"), "{none:?}");
}

#[test]
fn a_queue_is_deleted_with_all_it_holds() {
    let server = Server::start();
    for id in ["a", "b"] {
        ok(&server, &["push", "q", "x", "--id", id]);
    }
    ok(&server, &["bury", "q", "a"]);
    ok(&server, &["schedule", "q", "daily", "x", "--every", "1d"]);
    server.ask(&["SET", "text", "x"]);
    assert_eq!(json(&server, &["delete", "q", "--dry-run"]), [json!({ "selected": 3 })]);
    let refused = answering(&server, "delete q", true, "n\n");
    assert!(refused.contains("3 messages"), "{refused}");
    assert!(refused.ends_with("dqctl: nothing was changed\n"), "{refused}");
    assert!(answering(&server, "delete q", true, "y\n").ends_with("deleted\n"));
    let gone = dqctl(&server, &["delete", "q"]);
    assert!(gone.code == 1 && gone.err.contains("there is no queue q"), "{gone:?}");
    let text = dqctl(&server, &["delete", "text", "--yes"]);
    assert!(text.code == 3 && text.err.contains("name a key that is a queue"), "{text:?}");
    ok(&server, &["create", "empty"]);
    assert_eq!(json(&server, &["delete", "empty"]), [json!({ "queue": "empty", "deleted": true })]);
}

#[test]
fn a_key_that_takes_the_place_of_a_queue_is_not_deleted() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let shown = agreeing(&server, "delete q", || {
        server.ask(&["SET", "q", "precious"]);
    });
    assert!(shown.contains("name a key that is a queue"), "{shown}");
    assert_eq!(server.ask(&["GET", "q"]), Value::BulkString(b"precious".to_vec()));
}
