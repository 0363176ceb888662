//! The daily commands.

use crate::dqctl::{dqctl, field, json, ok, on_terminal, run, with_input, without_server};
use crate::support::{eventually, Cluster, Server};
use serde_json::json;

#[test]
fn a_push_prints_the_id_and_keeps_its_options() {
    let server = Server::start();
    let args =
        ["push", "q", "hello", "--id", "m", "--in", "1h30m", "--priority", "-3", "--retries", "2", "--ttl", "2d"];
    assert_eq!(ok(&server, &args), "m\n");
    let message = json(&server, &["get", "q", "m"]).remove(0);
    assert_eq!(message["payload"], "hello");
    assert_eq!(
        (&message["priority"], &message["retries"], &message["ttl"]),
        (&json!(-3), &json!(2), &json!(172_800_000))
    );
    assert_eq!(message["due"].as_i64().unwrap() - message["created"].as_i64().unwrap(), 5_400_000);
    assert_eq!(ok(&server, &["push", "q", "x", "--id", "at", "--at", "2096-12-01T09:00+01:00"]), "at\n");
    assert_eq!(field(&server, "q", "at", "due"), json!(4_005_187_200_000_i64));
    assert_eq!(json(&server, &["push", "q", "x", "--id", "j"]), [json!({ "id": "j" })]);
    let generated = ok(&server, &["push", "q", "x"]);
    assert_eq!(field(&server, "q", generated.trim(), "state"), "ready");
}

#[test]
fn a_payload_is_read_from_standard_input_byte_for_byte() {
    let server = Server::start();
    let payload = [&b"a\n\0"[..], &[255]].concat();
    assert_eq!(with_input(&server, &["push", "q", "--id", "m"], &payload).out, "m\n");
    assert_eq!(with_input(&server, &["push", "q", "-", "--id", "n"], b"dash").out, "n\n");
    let raw = crate::dqctl::command(&server, &["get", "q", "m", "--payload"]).output().unwrap();
    assert_eq!(raw.stdout, payload);
    assert_eq!(field(&server, "q", "m", "payload-base64"), "YQoA/w==");
    assert_eq!(field(&server, "q", "n", "payload"), "dash");
}

#[test]
fn a_duplicate_push_exits_with_1() {
    let server = Server::start();
    ok(&server, &["push", "q", "one", "--id", "m"]);
    let again = dqctl(&server, &["push", "q", "two", "--id", "m"]);
    assert_eq!((again.code, again.out.as_str(), again.err.lines().count()), (1, "", 1), "{again:?}");
    assert_eq!(ok(&server, &["push", "q", "two", "--id", "m", "--replace"]), "m\n");
    assert_eq!(field(&server, "q", "m", "payload"), "two");
}

#[test]
fn an_id_that_is_not_found_exits_with_1() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "live"]);
    let commands: [&[&str]; 5] = [
        &["get", "q", "none"],
        &["cancel", "q", "none"],
        &["reschedule", "q", "none", "--in", "1m"],
        &["redrive", "q", "none"],
        &["redrive", "q", "live"],
    ];
    for args in commands {
        let ran = dqctl(&server, args);
        assert_eq!((ran.code, ran.err.lines().count()), (1, 1), "{args:?}: {ran:?}");
    }
    for args in [&["info", "none"], &["stats", "none"]] {
        let ran = dqctl(&server, args);
        assert_eq!((ran.code, ran.err.lines().count()), (1, 1), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_queue_that_does_not_exist_exits_with_1() {
    let server = Server::start();
    for line in
        [&["peek", "none"][..], &["groups", "none"], &["schedule", "none"], &["redrive", "none"], &["info", "none"]]
    {
        let refused = dqctl(&server, line);
        assert_eq!(refused.code, 1, "{line:?}");
        assert!(refused.err.contains("there is no queue none"), "{line:?}: {refused:?}");
    }
    ok(&server, &["push", "empty", "x", "--id", "m"]);
    ok(&server, &["cancel", "empty", "m"]);
    let some = dqctl(&server, &["get", "none", "m"]);
    assert!(some.code == 1 && some.err.contains("there is no queue none"), "{some:?}");
    for line in [&["peek", "empty"][..], &["groups", "empty"], &["schedule", "empty"]] {
        ok(&server, line);
    }
}

#[test]
fn consumers_are_listed_and_released() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        ok(&server, &["push", "q", "x", "--id", id]);
    }
    server.ask(&["DQ.POP", "q", "COUNT", "3", "LEASE", "600000", "AS", "worker-1"]);
    let listed = json(&server, &["consumers", "q"]);
    assert_eq!((listed.len(), &listed[0]["consumer"], &listed[0]["inflight"]), (1, &json!("worker-1"), &json!(3)));
    assert!(ok(&server, &["consumers", "q"]).contains("worker-1"));
    assert_eq!(field(&server, "q", "a", "consumer"), json!("worker-1"));
    assert_eq!(ok(&server, &["release", "q", "worker-1", "-n", "1"]), "1\n");
    assert_eq!(json(&server, &["release", "q", "worker-1", "--no-count"]), [json!({ "released": 2 })]);
    assert_eq!(dqctl(&server, &["release", "q", "worker-1"]).code, 1);
    assert_eq!(dqctl(&server, &["release", "none", "worker-1"]).code, 1);
    assert_eq!(dqctl(&server, &["consumers", "none"]).code, 1);
}

#[test]
fn cancel_removes_messages_and_names_those_it_does_not_find() {
    let server = Server::start();
    for id in ["a", "b"] {
        ok(&server, &["push", "q", "x", "--id", id]);
    }
    let ran = dqctl(&server, &["cancel", "q", "a", "none", "b"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "a\nb\n"));
    assert!(ran.err.contains("none"), "{ran:?}");
    assert_eq!(ok(&server, &["peek", "q"]), "");
}

#[test]
fn reschedule_changes_the_due_time_and_the_priority() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m", "--in", "1h"]);
    ok(&server, &["reschedule", "q", "m", "--at", "2096-12-01T09:00+01:00", "--priority", "7"]);
    assert_eq!(
        (field(&server, "q", "m", "due"), field(&server, "q", "m", "priority")),
        (json!(4_005_187_200_000_i64), json!(7))
    );
    ok(&server, &["reschedule", "q", "m", "--in", "0"]);
    eventually("the message is ready", || field(&server, "q", "m", "state") == "ready");
}

#[test]
fn redrive_makes_dead_messages_live_again() {
    let server = Server::start();
    for id in ["a", "b", "c", "d"] {
        ok(&server, &["push", "q", "x", "--id", id]);
        server.ask(&["DQ.BURY", "q", id, "ERROR", "no such user"]);
    }
    assert_eq!(field(&server, "q", "a", "error"), "no such user");
    assert_eq!(ok(&server, &["redrive", "q", "b"]), "1\n");
    assert_eq!(ok(&server, &["redrive", "q", "-n", "1", "--in", "1h"]), "1\n");
    assert_eq!(
        (field(&server, "q", "a", "state"), field(&server, "q", "b", "state")),
        (json!("delayed"), json!("ready"))
    );
    assert_eq!(json(&server, &["redrive", "q"]), [json!({ "redriven": 2 })]);
    server.ask(&["DQ.BURY", "q", "a"]);
    assert_eq!(ok(&server, &["redrive", "q", "a", "--delay", "1h"]), "1\n");
    assert_eq!(field(&server, "q", "a", "state"), "delayed");
}

#[test]
fn a_change_that_finds_no_message_exits_with_1() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m"]);
    for args in [
        &["redrive", "q"][..],
        &["redrive", "q", "--where", "error~x"],
        &["redrive", "q", "--dry-run"],
        &["redrive", "q", "m", "--dry-run"],
        &["cancel", "q", "--older", "0"],
        &["cancel", "q", "none", "--dry-run"],
        &["promote", "q"],
        &["purge", "q", "dead"],
    ] {
        let ran = dqctl(&server, args);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (1, "0\n", ""), "{args:?}");
    }
    assert_eq!(ok(&server, &["cancel", "q", "m", "--dry-run"]), "1\n");
    assert_eq!(ok(&server, &["purge", "q", "ready"]), "1\n");
}

#[test]
fn a_message_in_another_state_is_reported_with_it() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "dead"]);
    ok(&server, &["bury", "q", "dead"]);
    ok(&server, &["push", "q", "x", "--id", "late", "--in", "1h"]);
    ok(&server, &["push", "q", "x", "--id", "held"]);
    server.ask(&["DQ.POP", "q", "LEASE", "600000"]);
    let receipt = field(&server, "q", "held", "receipt").as_str().unwrap().to_owned();
    ok(&server, &["nack", "q", "held", "--no-count"]);
    server.ask(&["DQ.POP", "q", "LEASE", "600000"]);
    for (args, expected) in [
        (&["bury", "q", "dead"][..], "the message dead of the queue q is dead already"),
        (&["nack", "q", "dead"], "is dead, and not in flight"),
        (&["complete", "q", "late"], "the message late of the queue q is delayed, and not in flight"),
        (&["nack", "q", &receipt], "was delivered again, so this receipt is stale"),
        (&["reschedule", "q", "held", "--in", "1m"], "is in flight, and not delayed or ready"),
        (&["redrive", "q", "late", "none"], "the message late of the queue q is delayed, and not dead"),
        (&["redrive", "q", "late", "none"], "the queue q has no such message: none"),
        (&["nack", "other", "m"], "there is no queue other"),
    ] {
        let ran = dqctl(&server, args);
        assert!(ran.code == 1 && ran.err.contains(expected), "{args:?}: {ran:?}");
    }
    let weak = "ACL SETUSER weak on >secret ~* +dq.bury +ping";
    server.ask(&weak.split(' ').collect::<Vec<_>>());
    let url = format!("redis://weak:secret@127.0.0.1:{}", server.port());
    let ran = run(without_server(&["-u", &url, "bury", "q", "dead"]));
    assert!(ran.code == 1 && ran.err.contains("no such message that is alive: dead"), "{ran:?}");
}

#[test]
fn the_reason_of_a_death_is_explained() {
    let server = Server::start();
    for id in ["buried", "rejected"] {
        ok(&server, &["push", "q", "x", "--id", id]);
    }
    ok(&server, &["bury", "q", "buried"]);
    server.ask(&["DQ.POP", "q"]);
    ok(&server, &["nack", "q", "rejected", "--dead"]);
    ok(&server, &["push", "q", "x", "--id", "expired", "--ttl", "1ms"]);
    eventually("it has expired", || field(&server, "q", "expired", "state") == "dead");
    ok(&server, &["push", "q", "x", "--id", "held", "--retries", "0", "--lease", "1ms"]);
    server.ask(&["DQ.POP", "q"]);
    eventually("its lease has expired", || field(&server, "q", "held", "state") == "dead");
    for (id, expected) in [
        ("buried", "rejected (buried)"),
        ("rejected", "rejected (by its consumer, or buried)"),
        ("expired", "expired (its TTL has ended)"),
        ("held", "retries (all of them are used up; the last lease expired without an ack)"),
    ] {
        let shown = ok(&server, &["get", "q", id]);
        assert!(shown.contains(&format!("\nreason\t{expected}\n")), "{shown}");
    }
}

#[test]
fn pause_and_resume_hold_and_release_a_queue() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    assert_eq!(ok(&server, &["pause", "q"]), "paused\n");
    assert_eq!(json(&server, &["info", "q"])[0]["paused"], 1);
    assert_eq!(ok(&server, &["resume", "q", "in"]), "was not closed\n");
    assert!(ok(&server, &["ls"]).contains("paused"));
    assert_eq!(ok(&server, &["resume", "q"]), "resumed\n");
    assert_eq!(json(&server, &["info", "q"])[0]["paused"], 0);
    assert_eq!(ok(&server, &["pause", "q", "in"]), "closed\n");
    assert!(ok(&server, &["ls"]).contains("closed"));
    assert!(dqctl(&server, &["push", "q", "x"]).err.contains("QUEUECLOSED"));
    assert_eq!(json(&server, &["resume", "q", "in"]), [json!({ "queue": "q", "closed": 0 })]);
    ok(&server, &["resume", "q"]);
    assert!(ok(&server, &["pause", "q", "--for", "90m"]).starts_with("paused until 20"));
    assert!(json(&server, &["info", "q"])[0]["paused-until"].is_i64());
    let none = dqctl(&server, &["pause", "none"]);
    assert_eq!((none.code, none.err.lines().count()), (1, 1), "{none:?}");
}

#[test]
fn one_group_of_a_queue_is_paused_and_resumed() {
    let server = Server::start();
    for group in ["ann", "bob"] {
        ok(&server, &["push", "q", "x", "--group", group]);
    }
    assert_eq!(ok(&server, &["pause", "q", "--group", "ann"]), "paused\n");
    let later = dqctl(&server, &["pause", "q", "--group", "later", "--for", "90m"]);
    assert!(later.code == 0 && later.out.starts_with("paused until 20"), "{later:?}");
    let groups = json(&server, &["groups", "q"]);
    let group = |name: &str| groups.iter().find(|group| group["group"] == name).unwrap();
    assert_eq!((&group("ann")["paused"], &group("ann")["paused-until"]), (&json!(1), &json!(null)));
    assert_eq!(group("bob")["paused"], 0);
    assert!(group("later")["waiting"] == 0 && group("later")["paused-until"].is_i64(), "{groups:?}");
    let shown = ok(&server, &["groups", "q"]);
    let paused = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap().split('\t').nth(4).unwrap();
    assert_eq!((paused("ann"), paused("bob")), ("until resumed", ""));
    assert!(paused("later").starts_with("until 20"), "{shown}");
    let whole = dqctl(&server, &["resume", "q"]);
    assert_eq!((whole.code, whole.out.as_str()), (0, "was not paused or closed\n"));
    assert_eq!(whole.err, "dqctl: group ann is paused until it is resumed: dqctl resume q --group ann\n");
    assert_eq!(ok(&server, &["resume", "q", "in"]), "was not closed\n");
    server.ask(&["DQ.POP", "q", "COUNT", "2"]);
    assert_eq!(server.text(&["DQ.LEN", "q", "inflight"]), "1");
    assert_eq!(ok(&server, &["resume", "q", "--group", "ann"]), "resumed\n");
    assert_eq!(json(&server, &["groups", "q"]).iter().find(|group| group["group"] == "ann").unwrap()["paused"], 0);
    for wrong in [["pause", "q", "out", "--group", "ann"], ["resume", "q", "in", "--group", "ann"]] {
        assert_eq!(dqctl(&server, &wrong).code, 2, "{wrong:?}");
    }
    assert_eq!(dqctl(&server, &["pause", "none", "--group", "ann"]).code, 1);
}

#[test]
fn a_group_at_its_rate_says_until_when() {
    let server = Server::start();
    ok(&server, &["create", "q", "--grouprate", "1/1h", "--groupinflight", "0"]);
    for _ in 0..2 {
        ok(&server, &["push", "q", "x", "--group", "ann"]);
    }
    server.ask(&["DQ.POP", "q", "COUNT", "2"]);
    let group = json(&server, &["groups", "q"]).remove(0);
    assert!(group["waiting"] == 1 && group["next-delivery"].is_i64(), "{group}");
    assert_eq!(dqctl(&server, &["alter", "q", "--grouprate", "1/0"]).code, 2);
    assert!(dqctl(&server, &["alter", "q", "--grouprate", "1/0"]).err.contains("--grouprate takes"));
}

#[test]
fn peek_shows_the_messages_of_each_state() {
    let server = Server::start();
    for (id, delay) in [("now", "0"), ("later", "1h"), ("dead", "0")] {
        ok(&server, &["push", "q", "a\tb\u{1b}[2J", "--id", id, "--in", delay]);
    }
    server.ask(&["DQ.BURY", "q", "dead", "ERROR", "broken"]);
    let ids = |messages: Vec<serde_json::Value>| {
        messages.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(json(&server, &["peek", "q"])), ["later", "now", "dead"]);
    assert_eq!(ids(json(&server, &["peek", "q", "dead"])), ["dead"]);
    let line = ok(&server, &["peek", "q", "dead"]);
    let cells: Vec<&str> = line.trim_end().split('\t').collect();
    assert_eq!((cells[0], cells[1], cells[6], cells[7]), ("dead", "dead", "a\\tb\\u{1b}[2J", "broken"));
}

#[test]
fn ls_finds_queues_and_nothing_else() {
    let server = Server::start();
    for queue in ["mail:a", "mail:b", "other"] {
        ok(&server, &["push", queue, "x"]);
    }
    server.ask(&["SET", "mail:text", "x"]);
    let names = |args: &[&str]| {
        ok(&server, args).lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["ls"]), ["mail:a", "mail:b", "other"]);
    assert_eq!(names(&["info"]), ["mail:a", "mail:b", "other"]);
    assert_eq!(names(&["ls", "--match", "mail:*"]), ["mail:a", "mail:b"]);
    let objects = json(&server, &["ls", "--match", "other"]);
    assert_eq!((&objects[0]["queue"], &objects[0]["ready"]), (&json!("other"), &json!(1)));
}

#[test]
fn ls_says_what_is_unusual_about_a_queue() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "alone", "x", "AT", "1700000000000"]);
    ok(&server, &["push", "dying", "x", "--id", "m", "--in", "1h"]);
    ok(&server, &["bury", "dying", "m"]);
    ok(&server, &["push", "fine", "x", "--in", "1h"]);
    ok(&server, &["create", "full", "--maxlen", "1"]);
    ok(&server, &["push", "full", "x", "--in", "1h"]);
    ok(&server, &["pause", "full", "all"]);
    // Somebody has taken one, and may come again.
    for _ in 0..2 {
        server.ask(&["DQ.PUSH", "polled", "x", "AT", "1700000000000"]);
    }
    server.ask(&["DQ.POP", "polled", "NOACK"]);
    let listed = ok(&server, &["list"]);
    let states: Vec<&str> = listed.lines().map(|line| line.split('\t').next_back().unwrap()).collect();
    // The pause is why it is full.
    assert_eq!(states[1..], ["messages die", "open", "paused, full, closed", "late"]);
    assert!(states[0].starts_with("no consumer (ready for "), "{states:?}");
    let objects = json(&server, &["ls"]);
    let expected = json!([["paused", "bad"], ["full", "bad"], ["closed", "warning"]]);
    assert_eq!((&objects[3]["state"], &objects[3]["conditions"]), (&json!("paused, full, closed"), &expected));
    let fine = json(&server, &["info", "fine"]).remove(0);
    assert_eq!((&fine["state"], &fine["conditions"]), (&json!("open"), &json!([])));
}

#[test]
fn json_has_the_keys_of_the_server_in_both_protocols() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m"]);
    for args in [&["info", "q"][..], &["get", "q", "m"], &["stats", "q"]] {
        let name = format!("DQ.{}", args[0].to_uppercase());
        let expected: Vec<String> = match server.ask(&[&[name.as_str()], &args[1..]].concat()) {
            dq_client::Value::Map(pairs) => pairs.into_iter().map(|(name, _)| match name {
                dq_client::Value::BulkString(name) => String::from_utf8(name).unwrap(),
                dq_client::Value::SimpleString(name) => name,
                other => panic!("{other:?}"),
            }),
            other => panic!("{other:?}"),
        }
        .collect();
        let url = format!("{}?protocol=2", server.url());
        for url in [server.url(), url] {
            let with_url = [&["--json", "-u", &url], args].concat();
            let ran = run(without_server(&with_url));
            let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&ran.out).unwrap();
            let ours = if args[0] == "info" { 2 } else { 0 };
            assert_eq!(object.len(), expected.len() + ours, "{args:?}");
            assert!(expected.iter().all(|name| object.contains_key(name)), "{args:?}: {object:?}");
        }
    }
}

#[test]
fn stats_show_how_late_a_queue_delivers() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    assert!(ok(&server, &["stats", "q"]).contains("lateness-p99\t-\n"));
    server.ask(&["DQ.POP", "q", "NOACK"]);
    let stats = ok(&server, &["stats", "q"]);
    assert!(stats.contains("lateness-count\t1\n") && stats.contains("lateness-p99\t<="), "{stats}");
    // The bound of one time is that time, however wide its bucket is, and even beyond the last one.
    server.ask(&["DQ.PUSH", "old", "x", "AT", "1700000000000"]);
    server.ask(&["DQ.POP", "old", "NOACK"]);
    let bound = |name: &str| {
        ok(&server, &["stats", "old"])
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix("\t<=").map(str::to_owned))
    };
    let (p50, p99) = (bound("lateness-p50").unwrap(), bound("lateness-p99").unwrap());
    assert!(p50 == p99 && p50.contains('w'), "{p50}");
}

#[test]
fn a_schedule_is_declared_once_and_listed() {
    let server = Server::start();
    let cron = ["schedule", "q", "report", "all", "--cron", "0 9 * * mon-fri", "--tz", "Europe/Berlin"];
    assert_eq!(ok(&server, &cron), "created\n");
    assert_eq!(ok(&server, &cron), "unchanged\n");
    assert_eq!(
        ok(&server, &["schedule", "q", "tick", "x", "--every", "1h", "--offset", "5m", "--times", "3"]),
        "created\n"
    );
    assert_eq!(ok(&server, &["schedule", "q", "tick", "x", "--every", "2h"]), "changed\n");
    let mut rules: Vec<String> = ok(&server, &["schedule", "q"])
        .lines()
        .map(|line| line.split('\t').take(2).collect::<Vec<_>>().join(": "))
        .collect();
    rules.sort();
    assert_eq!(rules, ["report: 0 9 * * mon-fri Europe/Berlin", "tick: every 2h"]);
    assert_eq!(field(&server, "q", "report", "tz"), "Europe/Berlin");
    let ended = on_terminal(&server, "cancel q report", true);
    assert_eq!(ended, "report\nthat was a schedule, which pushes no more messages\n");
}

#[test]
fn a_schedule_says_which_message_it_takes_over() {
    let server = Server::start();
    let declare =
        |id: &str, more: &[&str]| dqctl(&server, &[&["schedule", "q", id, "x", "--every", "1h"][..], more].concat());
    for id in ["dead", "done", "running", "retry", "waiting"] {
        ok(&server, &["push", "q", "x", "--id", id, "--retain", "1h"]);
    }
    ok(&server, &["bury", "q", "dead", "--error", "no such table"]);
    server.ask(&["DQ.POP", "q", "COUNT", "3"]);
    ok(&server, &["ack", "q", "done"]);
    ok(&server, &["nack", "q", "retry", "--in", "1h"]);
    for (id, answer, expected) in [
        ("dead", "changed", "was dead: no such table. The schedule took its place, so it cannot be redriven"),
        ("done", "created", "was done. The schedule took its id, so its result is no longer kept"),
        ("running", "changed", "is in flight. The schedule begins when it has ended"),
        ("retry", "changed", "is delayed and was delivered already. The schedule begins when it has ended"),
        ("waiting", "changed", "was ready. The schedule took its place, so it is not delivered as it was pushed"),
    ] {
        let ran = declare(id, &[]);
        assert_eq!((ran.code, ran.out), (0, format!("{answer}\n")), "{id}");
        assert_eq!(ran.err, format!("dqctl: the queue q held a message {id}, which {expected}\n"));
    }
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "0");
    let changed = declare("dead", &["--times", "3", "--json"]);
    assert_eq!((changed.out.as_str(), changed.err.as_str()), ("{\"id\":\"dead\",\"schedule\":\"changed\"}\n", ""));
    ok(&server, &["push", "q", "x", "--id", "other"]);
    ok(&server, &["bury", "q", "other"]);
    let json: serde_json::Value = serde_json::from_str(&declare("other", &["--json"]).out).unwrap();
    assert_eq!(json["was"], "dead");
}

#[test]
fn a_terminal_gets_a_table_and_colors_unless_refused() {
    let server = Server::start();
    ok(&server, &["push", "queue-of-mail", "x"]);
    let colored = on_terminal(&server, "ls", false);
    assert!(colored.starts_with("\x1b[1mQUEUE          READY  DELAYED"), "{colored:?}");
    let plain = on_terminal(&server, "ls", true);
    let lines: Vec<&str> = plain.lines().collect();
    assert_eq!(lines.len(), 2, "{plain}");
    assert!(lines[0].starts_with("QUEUE          READY  DELAYED"), "{plain}");
    assert!(lines[1].starts_with("queue-of-mail      1        0"), "{plain}");
    let info = on_terminal(&server, "info queue-of-mail", true);
    let line = |name: &str| {
        info.lines().find(|line| line.starts_with(name)).map(|line| line.split_once("  ").unwrap().1.trim())
    };
    assert_eq!(
        [line("ready "), line("dead "), line("maxlen "), line("backoff-jitter")],
        [Some("1"), Some("0"), None, Some("0")]
    );
    assert!(info.contains("\n-- settings\nlease ") && info.contains("\n-- totals\npushed "), "{info}");
    assert!(info.lines().count() < 35, "{info}");
    let altered = on_terminal(&server, "alter queue-of-mail --lease 1m --maxlen 1000", true);
    assert_eq!(altered, "altered\nlease: 30s -> 1m\nmaxlen: no limit -> 1,000\n");
    let limited = on_terminal(&server, "alter queue-of-mail --rate 5/1m", true);
    assert_eq!(limited, "altered\nrate: no limit -> 5\nrate-period: none -> 1m\n");
    let purged = on_terminal(&server, "purge queue-of-mail --all --yes", true);
    assert!(purged.ends_with("1 purged\n"), "{purged:?}");
    assert!(ok(&server, &["info", "queue-of-mail"]).contains("\nttl\t0ms\n"));
}

#[test]
fn a_table_fits_the_terminal_and_is_whole_in_a_pipe() {
    let server = Server::start();
    let name = format!("{}:emails", "long-".repeat(30));
    ok(&server, &["push", &name, "x"]);
    let shown = on_terminal(&server, "ls", true);
    assert!(shown.lines().all(|line| line.chars().count() <= 80) && shown.contains(":emails "), "{shown}");
    assert!(ok(&server, &["ls"]).starts_with(&format!("{name}\t1\t")));
}

#[test]
fn a_payload_that_is_no_text_is_shown_as_bytes() {
    let server = Server::start();
    with_input(&server, &["push", "q", "--id", "m"], &[b'a', 0, 255, b'z']);
    assert!(ok(&server, &["get", "q", "m"]).contains("\npayload\t4 bytes: 61 00 ff 7a a..z\n"));
    assert!(ok(&server, &["peek", "q"]).contains("\t4 bytes: 61 00 ff 7a a..z\t"));
    with_input(&server, &["push", "q", "--id", "long"], &[200; 100]);
    let long = ok(&server, &["get", "q", "long"]);
    assert!(long.contains("\t100 bytes: c8 c8 ") && long.contains("c8… ....") && long.len() < 500, "{long}");
}

#[test]
fn a_cluster_is_served_by_any_of_its_nodes() {
    let cluster = Cluster::of(2);
    let url = cluster.nodes[1].url();
    // That it is a node of a cluster need not be said.
    let on = |args: &[&str]| run(without_server(&[&["--url", &url], args].concat()));
    for queue in ["a", "b", "c", "d"] {
        assert_eq!(on(&["push", queue, "x", "--id", "m"]).out, "m\n");
    }
    assert_eq!(on(&["ls"]).out.lines().count(), 4);
    assert_eq!(on(&["get", "c", "m"]).code, 0);
}

#[test]
fn headers_checkpoints_and_errors_are_shown_line_by_line() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "ERRORS", "2"]);
    ok(&server, &["push", "q", "hello", "--id", "m", "--header", "trace=1f", "--header", "query=a=b"]);
    for text in ["one", "two"] {
        server.ask(&["DQ.POP", "q"]);
        server.ask(&["DQ.NACK", "q", "m", "DELAY", "0", "ERROR", text, "CHECKPOINT", "page 7"]);
    }
    let shown = ok(&server, &["get", "q", "m"]);
    ok(&server, &["push", "q", "hello", "--id", "hidden", "--header", "\u{1b}[31m=\u{1b}"]);
    assert!(!ok(&server, &["get", "q", "hidden"]).contains('\u{1b}'));
    for line in ["header query\ta=b\n", "header trace\t1f\n", "checkpoint\tpage 7\n"] {
        assert!(shown.contains(line), "{shown}");
    }
    let attempts: Vec<&str> = shown.lines().filter(|line| line.starts_with("attempt ")).collect();
    assert!(attempts.len() == 2 && attempts[0].ends_with(": one") && attempts[1].ends_with(": two"), "{shown}");
    let message = &json(&server, &["get", "q", "m"])[0];
    assert_eq!(message["headers"], json!({"query": "a=b", "trace": "1f"}));
    assert_eq!((&message["errors"][1][0], &message["errors"][1][2]), (&json!(2), &json!("two")));
    let refused = dqctl(&server, &["push", "q", "hello", "--header", "trace"]);
    assert!(refused.code != 0 && refused.err.contains("a header is NAME=VALUE"), "{refused:?}");
}

#[test]
fn what_was_set_is_shown_exactly() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "LEASE", "3661001", "BACKOFF", "1500", "3611000"]);
    let info = ok(&server, &["info", "q"]);
    for line in ["lease\t1h1m1.001s", "backoff-base\t1.5s", "backoff-max\t1h11s"] {
        assert!(info.lines().any(|shown| shown == line), "{line}: {info}");
    }
    ok(&server, &["schedule", "q", "tick", "x", "--every", "3611s", "--offset", "61001ms", "--ttl", "90061s"]);
    assert!(ok(&server, &["schedule", "q"]).contains("\tevery 1h11s at 1m1.001s\t"));
    let message = ok(&server, &["get", "q", "tick"]);
    assert!(message.contains("\nlease\t1h1m1.001s\n") && message.contains("\nttl\t1d1h1m1s\n"), "{message}");
}
