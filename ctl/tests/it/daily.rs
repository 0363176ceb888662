//! The daily commands.

use crate::dqctl::{dqctl, field, json, ok, run, with_input, without_server};
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
        (&["bury", "q", "dead"][..], "the message dead of the queue q is dead, and not alive"),
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
    assert_eq!(names(&["ls", "mail:*"]), ["mail:a", "mail:b"]);
    let objects = json(&server, &["ls", "other"]);
    assert_eq!((&objects[0]["queue"], &objects[0]["ready"]), (&json!("other"), &json!(1)));
}

#[test]
fn stats_need_their_own_right_alone() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    server.ask(&["ACL", "SETUSER", "ann", "on", ">pw", "~*", "+dq.stats"]);
    let url = server.url().replace("redis://", "redis://ann:pw@");
    for (queue, code, said) in [("q", 0, ""), ("none", 1, "dqctl: there is no queue none; dqctl ls lists the queues\n")]
    {
        for options in [&[][..], &["--json"]] {
            let ran = dqctl(&server, &[&["-u", &url, "stats", queue], options].concat());
            assert_eq!((ran.code, ran.err.as_str(), ran.out.contains("waiting-clients")), (code, said, code == 0));
        }
    }
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
fn pause_and_resume_hold_and_release_a_queue_or_a_group() {
    let server = Server::start();
    for group in ["ann", "bob"] {
        ok(&server, &["push", "q", "x", "--group", group]);
    }
    let info = |name: &str| json(&server, &["info", "q"])[0][name].clone();
    assert_eq!(ok(&server, &["pause", "q"]), "paused\n");
    assert_eq!((info("paused"), info("closed")), (json!(1), json!(0)));
    assert_eq!(json(&server, &["pause", "q", "in"]), [json!({ "queue": "q", "closed": 1 })]);
    assert!(dqctl(&server, &["push", "q", "x"]).err.contains("QUEUECLOSED"));
    assert_eq!(ok(&server, &["resume", "q"]), "resumed\n");
    assert_eq!((info("paused"), info("closed")), (json!(0), json!(0)));
    assert!(ok(&server, &["pause", "q", "--for", "90m"]).starts_with("paused until 20"));
    ok(&server, &["resume", "q"]);
    ok(&server, &["pause", "q", "--group", "ann"]);
    let whole = dqctl(&server, &["resume", "q"]);
    assert!(whole.code == 0 && whole.err.contains("dqctl groups q --paused"), "{whole:?}");
    server.ask(&["DQ.POP", "q", "COUNT", "2"]);
    assert_eq!(server.text(&["DQ.LEN", "q", "inflight"]), "1");
    assert_eq!(ok(&server, &["resume", "q", "--group", "ann"]), "resumed\n");
    assert_eq!(info("paused-groups"), 0);
    assert_eq!(dqctl(&server, &["pause", "none"]).code, 1);
    assert_eq!(dqctl(&server, &["pause", "q", "out", "--group", "ann"]).code, 2);
}

#[test]
fn a_schedule_is_declared_once_and_says_which_message_it_takes_over() {
    let server = Server::start();
    let cron = ["schedule", "q", "report", "all", "--cron", "0 9 * * mon-fri", "--tz", "Europe/Berlin"];
    assert_eq!(ok(&server, &cron), "created\n");
    assert_eq!(ok(&server, &cron), "unchanged\n");
    ok(&server, &["push", "q", "x", "--id", "tick"]);
    ok(&server, &["bury", "q", "tick"]);
    let taken = dqctl(&server, &["schedule", "q", "tick", "x", "--every", "1h", "--json"]);
    assert!(taken.err.contains("held a message tick, dead"), "{taken:?}");
    assert_eq!(taken.out, "{\"id\":\"tick\",\"schedule\":\"changed\",\"was\":\"dead\"}\n");
    assert_eq!(ok(&server, &["schedule", "q", "tick", "x", "--every", "2h"]), "changed\n");
    let rules = json(&server, &["schedule", "q"]);
    assert_eq!((rules.len(), field(&server, "q", "tick", "every")), (2, json!(7_200_000)));
}
