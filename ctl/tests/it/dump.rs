//! `dqctl dump` and `dqctl load`.

use crate::dqctl::{command, dqctl, field, json, ok, with_input};
use crate::support::{eventually, Server};
use dq_client::Value;
use serde_json::Value as Json;
use std::process::Stdio;

fn dump(server: &Server, queue: &str) -> String {
    ok(server, &["dump", queue])
}

#[track_caller]
fn load(server: &Server, lines: &str) -> String {
    let ran = with_input(server, &["load"], lines.as_bytes());
    assert!(ran.code == 0 && ran.err.is_empty(), "{ran:?}");
    ran.out
}

fn objects(lines: &str) -> Vec<Json> {
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The ids in the order of delivery.
fn pop_all(server: &Server, queue: &str) -> Vec<String> {
    let mut ids = Vec::new();
    while let Value::Array(messages) = server.ask(&["DQ.POP", queue, "COUNT", "1000"]) {
        for message in messages {
            let Value::Array(parts) = message else { panic!("{message:?}") };
            let Value::BulkString(id) = &parts[0] else { panic!("{parts:?}") };
            ids.push(String::from_utf8_lossy(id).into_owned());
        }
    }
    ids
}

/// The lines without what a load does not keep.
fn kept(lines: &str) -> Vec<Json> {
    let mut all = objects(lines);
    for line in &mut all {
        let line = line.as_object_mut().expect("an object");
        for name in ["created", "died"] {
            line.remove(name);
        }
        if line.get("state") == Some(&"inflight".into()) {
            line.insert("state".to_owned(), "ready".into());
        }
    }
    all
}

#[test]
fn a_dry_load_counts_and_changes_nothing() {
    let server = Server::start();
    for id in ["a", "b"] {
        ok(&server, &["push", "q", "x", "--id", id]);
    }
    ok(&server, &["push", "q", "x"]);
    ok(&server, &["schedule", "q", "s", "x", "--every", "1h"]);
    let lines = dump(&server, "q");
    let dry = |args: &[&str]| {
        let ran = with_input(&server, &[&["load", "--dry-run"], args].concat(), lines.as_bytes());
        assert!(ran.code == 0 && ran.err.is_empty(), "{ran:?}");
        ran.out
    };
    assert_eq!(dry(&["--queue", "other"]), "would load 4\n");
    assert_eq!(server.text(&["EXISTS", "other"]), "0");
    ok(&server, &["cancel", "q", "b"]);
    assert_eq!(dry(&[]), "would load 1; 3 were there already\n");
    assert_eq!(dry(&["--json"]), "{\"already\":3,\"would-load\":1}\n");
    assert_eq!(load(&server, &lines), "loaded 1; 3 were there already\n", "the same numbers");
}

#[test]
fn a_load_restores_what_was_dumped() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "LEASE", "7000", "RETRIES", "3", "BACKOFF", "5", "50", "JITTER", "9"]);
    server.ask(&["DQ.ALTER", "q", "RATE", "5", "1"]);
    server.ask(&["DQ.ALTER", "q", "MAXINFLIGHT", "7", "GROUPORDER", "turn", "RETAIN", "60000", "DEDUPE", "0"]);
    server.ask(&["DQ.PUSH", "q", "hello", "ID", "later", "AT", "4002274800123", "PRIORITY", "-7", "RETRIES", "-1"]);
    server.ask(&[
        "DQ.PUSH", "q", "x", "ID", "own", "DELAY", "3600000", "LEASE", "9999", "RETAIN", "5000", "TTL", "86400000",
        "GROUP", "g",
    ]);
    server.ask(&["DQ.PUSH", "q", "", "ID", "empty", "HEADERS", "2", "b", "é", "a", ""]);
    server.ask(&["DQ.PUSH", "q", "bad", "ID", "rejected", "GROUP", "h"]);
    for (id, due) in [("half", "DELAY"), ("gone", "DELAY")] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "PRIORITY", "127", "TTL", "86400000", "HEADERS", "1", "of", id]);
        server.ask(&["DQ.POP", "q"]);
        server.ask(&["DQ.NACK", "q", id, due, "7200000", "NOCOUNT", "CHECKPOINT", "page 7"]);
        server.ask(&["DQ.RESCHEDULE", "q", id, "PRIORITY", "-2"]);
    }
    server.ask(&["DQ.PUSH", "q", "x", "ID", "tried", "PRIORITY", "127"]);
    server.ask(&["DQ.POP", "q"]);
    server.ask(&["DQ.NACK", "q", "tried", "DELAY", "7200000", "NOCOUNT", "ERROR", "timeout"]);
    server.ask(&["DQ.BURY", "q", "gone", "ERROR", "twice"]);
    server.ask(&["DQ.BURY", "q", "rejected", "ERROR", "no such user"]);
    server.ask(&["DQ.PUSH", "q", "bad", "ID", "buried", "DELAY", "3600000"]);
    server.ask(&["DQ.BURY", "q", "buried"]);
    server.ask(&["DQ.SCHEDULE", "q", "nightly", "r", "CRON", "0 3 * * *", "TZ", "Europe/Berlin", "PRIORITY", "4"]);
    server.ask(&["DQ.SCHEDULE", "q", "often", "e", "EVERY", "3600000", "OFFSET", "5", "TIMES", "9"]);
    let before = dump(&server, "q");
    server.ask(&["RENAME", "q", "old"]);
    assert_eq!(load(&server, &before), "loaded 10\n");
    let after = dump(&server, "q");
    assert_eq!(kept(&after), kept(&before));
    assert_eq!(load(&server, &before), "loaded 0; 10 were there already\n");
    assert_eq!(dump(&server, "q"), after);
    for (id, name, value) in [
        ("half", "checkpoint", "page 7".into()),
        ("gone", "checkpoint", "page 7".into()),
        ("rejected", "error", "no such user".into()),
        ("tried", "error", "timeout".into()),
        ("own", "lease", Json::from(9999)),
        ("own", "retain", 5000.into()),
    ] {
        assert_eq!(field(&server, "q", id, name), value, "{id}");
    }
    assert_eq!(server.text(&["DQ.REDRIVE", "q"]), "3");
}

#[test]
fn messages_that_are_equally_due_keep_their_push_order() {
    let server = Server::start();
    let names: Vec<String> = (0..3_000).map(|number| format!("m{}", number * 7919 % 3_000)).collect();
    for (names, priority) in [(&names[..1_000], "0"), (&names[1_000..], "1")] {
        let count = names.len().to_string();
        let mut words = vec!["DQ.MPUSH", "q", &count];
        words.extend(names.iter().map(|_| "x"));
        words.push("IDS");
        words.extend(names.iter().map(String::as_str));
        words.extend(["AT", "1700000000000", "PRIORITY", priority]);
        server.ask(&words);
    }
    let lines = dump(&server, "q");
    server.ask(&["DEL", "q"]);
    load(&server, &lines);
    let expected: Vec<String> = [&names[1_000..], &names[..1_000]].concat();
    assert!(pop_all(&server, "q") == expected);
}

#[test]
fn messages_with_generated_ids_are_loaded_once() {
    let server = Server::start();
    server.ask(&["DQ.MPUSH", "q", "3", "one", "two", "three"]);
    server.ask(&["DQ.PUSH", "p", "one"]);
    let lines = dump(&server, "q") + &dump(&server, "p");
    server.ask(&["DEL", "q", "p"]);
    assert_eq!(load(&server, &lines), "loaded 4\n");
    assert_eq!(load(&server, &lines), "loaded 0; 4 were there already\n");
    // A dump of what was loaded has the same ids, so that it too can be loaded on top.
    assert_eq!(load(&server, &dump(&server, "q")), "loaded 0; 3 were there already\n");
    let one = ok(&server, &["load", "--queue", "all", &file(&server, &lines)]);
    assert_eq!(one, "loaded 4\n");
    assert_eq!(server.text(&["DQ.LEN", "all"]), "4");
}

fn file(server: &Server, lines: &str) -> String {
    let path = server.dir().join("dump.jsonl");
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn names_ids_and_payloads_can_be_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let server = Server::start();
    let queue = b"q\xff\n\"".to_vec();
    let id: Vec<u8> = (1..=255).filter(|byte| *byte != b'#').collect();
    let payload: Vec<u8> = (0..=255).collect();
    let client = server.client();
    let mut push = dq_client::cmd("DQ.PUSH");
    push.arg(&queue).arg(&payload).arg("ID").arg(&id).arg("GROUP").arg(&payload[..200]);
    client.call(&push, dq_client::Resend::Never).unwrap();
    let mut dump = command(&server, &["dump"]);
    let lines = dump.arg(std::ffi::OsStr::from_bytes(&queue)).output().unwrap();
    let get = || client.call(dq_client::cmd("DQ.GET").arg(&queue).arg(&id), dq_client::Resend::Harmless).unwrap();
    let stable = |value: Value| format!("{value:?}").split("created").next().unwrap().to_owned();
    let before = stable(get());
    client.call(dq_client::cmd("DEL").arg(&queue), dq_client::Resend::Never).unwrap();
    assert_eq!(with_input(&server, &["load"], &lines.stdout).out, "loaded 1\n");
    assert_eq!(stable(get()), before);
}

#[test]
fn settings_and_a_pause_are_loaded_unless_the_queue_exists() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "RETRIES", "5"]);
    server.ask(&["DQ.PAUSE", "q"]);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    let lines = dump(&server, "q");
    let settings = || {
        let info = json(&server, &["info", "q"]).remove(0);
        (info["retries"].as_i64(), info["paused"].as_i64())
    };
    server.ask(&["DEL", "q"]);
    assert_eq!((load(&server, &lines).as_str(), settings()), ("loaded 1\n", (Some(5), Some(1))));
    server.ask(&["DEL", "q"]);
    server.ask(&["DQ.CREATE", "q", "RETRIES", "6"]);
    assert_eq!((load(&server, &lines).as_str(), settings()), ("loaded 1\n", (Some(6), Some(0))));
    assert_eq!(field(&server, "q", "m", "retries"), 5);
    let none = dqctl(&server, &["dump", "none"]);
    assert!(none.code == 1 && none.out.is_empty(), "{none:?}");
}

#[test]
fn a_broken_line_is_named_by_its_number() {
    let server = Server::start();
    let good = r#"{"queue":"q","id":"m","payload":"eA=="}"#;
    let ran = with_input(&server, &["load"], format!("{good}\n\n{{\"queue\":\n").as_bytes());
    assert_eq!((ran.code, ran.err.lines().count()), (3, 1), "{ran:?}");
    assert!(ran.err.contains("line 3"), "{ran:?}");
    assert_eq!(server.text(&["DQ.LEN", "q"]), "1");
    server.ask(&["DQ.ALTER", "q", "MAXLEN", "1"]);
    let other = good.replace("\"m\"", "\"n\"");
    let ran = with_input(&server, &["load"], format!("{good}\n{other}\n").as_bytes());
    assert!(ran.code == 3 && ran.err.contains("line 2") && ran.err.contains("MAXLEN"), "{ran:?}");
    let ran = dqctl(&server, &["load", "/nonexistent/file"]);
    assert!(ran.code == 3 && ran.err.contains("/nonexistent/file"), "{ran:?}");
}

#[test]
fn a_load_that_is_killed_is_completed_by_the_next() {
    let server = Server::start();
    let lines: String = (0..100_000)
        .map(|number| format!("{{\"queue\":\"q\",\"id\":\"m{number}\",\"payload\":\"eA==\",\"due\":4002274800000}}\n"))
        .collect();
    let path = file(&server, &lines);
    for _ in 0..3 {
        let had: usize = server.text(&["DQ.LEN", "q"]).parse().unwrap();
        let mut child = command(&server, &["load", &path]).stdout(Stdio::null()).spawn().unwrap();
        eventually("some are loaded", || {
            server.text(&["DQ.LEN", "q"]).parse::<usize>().unwrap() > had + 1_000 || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    ok(&server, &["load", &path]);
    assert_eq!(server.text(&["DQ.LEN", "q"]), "100000");
    let dumped = dump(&server, "q");
    assert_eq!(dumped.lines().count(), 100_001);
}

#[test]
fn what_was_removed_is_loaded_back_and_nothing_twice() {
    let server = Server::start();
    for (payload, error) in [("a", "422 refused"), ("b", "timeout"), ("c", "422 again")] {
        // The server gives them ids.
        let id = server.text(&["DQ.PUSH", "q", payload]);
        server.ask(&["DQ.BURY", "q", &id, "ERROR", error]);
    }
    server.ask(&["DQ.PUSH", "q", "live"]);
    let all = ok(&server, &["dump", "q"]);
    let selection = ok(&server, &["dump", "q", "--state", "dead", "--where", "error~422"]);
    assert_eq!(selection.lines().count(), 3, "the settings and two messages: {selection}");
    assert_eq!(ok(&server, &["cancel", "q", "--where", "error~422"]), "2\n");
    let load = |lines: &str| with_input(&server, &["load"], lines.as_bytes()).out;
    assert_eq!(load(&selection), "loaded 2\n");
    assert_eq!(load(&selection), "loaded 0; 2 were there already\n");
    assert_eq!(load(&all), "loaded 0; 4 were there already\n");
    assert_eq!(ok(&server, &["dead", "q", "--where", "error~422", "--json"]).lines().count(), 2);
    assert_eq!((server.text(&["DQ.LEN", "q", "dead"]), server.text(&["DQ.LEN", "q"])), ("3".into(), "1".into()));
}

#[test]
fn paused_groups_and_a_closed_queue_are_loaded() {
    let server = Server::start();
    for (id, group) in [("m", "acme"), ("n", "other")] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "GROUP", group]);
    }
    server.ask(&["DQ.PAUSE", "q", "GROUP", "acme"]);
    server.ask(&["DQ.PAUSE", "q", "GROUP", "later", "FOR", "3600000"]);
    server.ask(&["DQ.PAUSE", "q", "IN"]);
    let lines = dump(&server, "q");
    server.ask(&["DEL", "q"]);
    assert_eq!(load(&server, &lines), "loaded 2\n");
    let info = json(&server, &["info", "q"]).remove(0);
    assert_eq!((&info["paused-groups"], &info["closed"], &info["paused"]), (&2.into(), &1.into(), &0.into()), "{info}");
    assert_eq!(pop_all(&server, "q"), ["n"]);
    let until = |lines: &str| {
        let groups = objects(lines).remove(0)["paused-groups"].take();
        let groups = groups.as_array().expect("a list").clone();
        let later = groups.iter().find(|group| group["group"] == "later").expect("a pause");
        later["paused-until"].as_i64().expect("a time")
    };
    // The rest of the time is told in ms.
    let (before, after) = (until(&lines), until(&dump(&server, "q")));
    assert!((before..before + 1_000).contains(&after), "{before} {after}");
    // A queue that was there keeps what it is, and somebody may rely on the other one.
    server.ask(&["DQ.RESUME", "q", "ALL"]);
    let again = with_input(&server, &["load"], lines.as_bytes());
    assert!(again.code == 3 && again.err.contains("closed when dumped, and open here"), "{again:?}");
    assert_eq!(json(&server, &["info", "q"]).remove(0)["closed"], 0);
    assert!(again.out.starts_with("loaded "), "{again:?}");
    // So is one whose load was interrupted before its end.
    server.ask(&["DEL", "q"]);
    let broken = with_input(&server, &["load"], [lines.as_bytes(), b"{"].concat().as_slice());
    assert_eq!((broken.code, with_input(&server, &["load"], lines.as_bytes()).code), (3, 3), "{broken:?}");
}

#[test]
fn a_dump_says_which_batches_it_leaves_out() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "BATCH", "b"]);
    server.ask(&["DQ.BATCH", "q", "b", "THEN", "done"]);
    let ran = dqctl(&server, &["dump", "q"]);
    assert!(ran.code == 0 && ran.err.contains("1 batch"), "{ran:?}");
}

/// The server closes a connection whose replies exceed this limit.
#[test]
fn large_messages_are_read_within_the_output_limit_of_clients() {
    let server = Server::start();
    let payload = "x".repeat(400_000);
    for number in 0..12 {
        server.ask(&["DQ.PUSH", "q", &payload, "ID", &format!("m{number:02}"), "PRIORITY", &(number % 2).to_string()]);
        // The server gives this one an id, with which a load asks whether it is there.
        server.ask(&["DQ.PUSH", "p", &payload]);
    }
    // Small ones make the average wrong.
    for number in 0..500 {
        server.ask(&["DQ.PUSH", "q", "x", "ID", &format!("small{number}"), "DELAY", "3600000"]);
    }
    server.ask(&["CONFIG", "SET", "client-output-buffer-limit", "normal 2mb 0 0"]);
    assert_eq!(dump(&server, "q").lines().count(), 1 + 12 + 500);
    let lines = dump(&server, "p");
    assert_eq!(load(&server, &lines), "loaded 0; 12 were there already\n");
    assert_eq!(ok(&server, &["find", "--prefix", "m", "--json"]).lines().count(), 12);
    let peeked: Vec<Json> = json(&server, &["peek", "q", "ready", "-n", "10", "--no-payload"]);
    let ids: Vec<&str> = peeked.iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["m01", "m03", "m05", "m07", "m09", "m11", "m00", "m02", "m04", "m06"]);
}
