//! `dqctl import` of sorted sets, lists and streams.

use crate::dqctl::{command, dqctl, json, ok};
use crate::support::{eventually, Cluster, Server};
use dq_client::{cmd, Resend, Value};
use serde_json::json;
use std::process::Stdio;

const LATER: &str = "4102444800";

/// The payloads in the order of delivery.
fn pop_all(server: &Server, queue: &str) -> Vec<String> {
    let mut payloads = Vec::new();
    while let Value::Array(messages) = server.ask(&["DQ.POP", queue, "COUNT", "1000"]) {
        for message in messages {
            let Value::Array(parts) = message else { panic!("{message:?}") };
            let Value::BulkString(payload) = &parts[1] else { panic!("{parts:?}") };
            payloads.push(String::from_utf8_lossy(payload).into_owned());
        }
    }
    payloads
}

fn due(server: &Server, id: &str) -> i64 {
    json(server, &["get", "q", id])[0]["due"].as_i64().expect("a time")
}

fn number(server: &Server, words: &[&str]) -> usize {
    server.text(words).parse().expect("a number")
}

#[test]
fn a_sorted_set_keeps_times_and_order() {
    let server = Server::start();
    server.ask(&["ZADD", "s", LATER, "call ann", "4102444800.5", "call bob"]);
    server.ask(&["ZADD", "s", "1763700000", "b", "1763700000", "a", "0", "z"]);
    server.ask(&["ZADD", "s", "4102444801000", "in ms", LATER, "with # in it"]);
    assert_eq!(ok(&server, &["import", "zset", "s", "q", "--dry-run"]), "would import 7, of which 4 are due later\n");
    assert_eq!(server.text(&["EXISTS", "q"]), "0");
    assert_eq!(ok(&server, &["import", "zset", "s", "q"]), "imported 7\n");
    assert_eq!(ok(&server, &["import", "zset", "s", "q"]), "imported 0; 7 were there already\n");
    assert_eq!(due(&server, "zset:s:4102444800:call ann"), 4_102_444_800_000);
    assert_eq!(due(&server, "zset:s:4102444800.5:call bob"), 4_102_444_800_500);
    assert_eq!(due(&server, "zset:s:4102444801000:in ms"), 4_102_444_801_000);
    assert_eq!(number(&server, &["ZCARD", "s"]), 7);
    assert_eq!(pop_all(&server, "q"), ["z", "a", "b"]);
    assert_eq!(
        ok(&server, &["import", "zset", "s", "q", "--move"]),
        "imported 0; 7 were there already; removed 7 from the source\n"
    );
    assert_eq!(server.text(&["EXISTS", "s"]), "0");
    assert_eq!(number(&server, &["DQ.LEN", "q"]), 7);
}

#[test]
fn equal_elements_of_a_list_are_all_moved() {
    let server = Server::start();
    server.ask(&["RPUSH", "l", "x", "y", "x", "", "x"]);
    assert_eq!(ok(&server, &["import", "list", "l", "q", "--dry-run"]), "would import 5, of which 0 are due later\n");
    assert_eq!(dqctl(&server, &["import", "list", "l", "q"]).code, 2, "a copy could not be repeated");
    for more in [5, 1] {
        let moved = json(&server, &["import", "list", "l", "q", "--move"]);
        assert_eq!(moved, [json!({ "imported": more, "already": 0, "removed": more, "failed": 0 })]);
        server.ask(&["RPUSH", "l", "x"]);
    }
    assert_eq!(pop_all(&server, "q"), ["x", "y", "x", "", "x", "x"]);
}

#[test]
fn an_element_of_a_list_that_the_queue_refuses_stays() {
    let server = Server::start();
    server.ask(&["RPUSH", "l", "a", "b", "c"]);
    server.ask(&["DQ.CREATE", "q", "MAXLEN", "2"]);
    let ran = dqctl(&server, &["import", "list", "l", "q", "--move"]);
    assert!(ran.code == 3 && ran.err.contains("MAXLEN"), "{ran:?}");
    assert_eq!(server.ask(&["LRANGE", "l", "0", "-1"]), Value::Array(vec![Value::BulkString(b"c".to_vec())]));
}

#[test]
fn a_list_is_read_from_the_end_that_consumers_take() {
    let server = Server::start();
    for list in ["left", "right"] {
        server.ask(&["RPUSH", list, "a", "b", "c"]);
        ok(&server, &["import", "list", list, list.replace('t', "_q").as_str(), "--from", list, "--move"]);
        assert_eq!(server.text(&["EXISTS", list]), "0");
    }
    assert_eq!(pop_all(&server, "lef_q"), ["a", "b", "c"]);
    assert_eq!(pop_all(&server, "righ_q"), ["c", "b", "a"]);
}

#[test]
fn entries_of_a_stream_are_named_by_their_ids() {
    let server = Server::start();
    server.ask(&["XADD", "s", "1-1", "payload", "plain"]);
    server.ask(&["XADD", "s", "3-1", "to", "ann", "text", "ü"]);
    server.ask(&["XADD", "s", "4-1", "a", "1", "a", "2"]);
    assert_eq!(ok(&server, &["import", "stream", "s", "q"]), "imported 3\n");
    assert_eq!(json(&server, &["get", "q", "stream:s:1-1"])[0]["payload"], "plain");
    assert_eq!(
        ok(&server, &["import", "stream", "s", "q", "--move"]),
        "imported 0; 3 were there already; removed 3 from the source\n"
    );
    assert_eq!(number(&server, &["XLEN", "s"]), 0);
    let expected = ["plain", r#"{"to":"ann","text":"ü"}"#, r#"[["a","1"],["a","2"]]"#];
    assert_eq!(pop_all(&server, "q"), expected);
}

#[test]
fn an_element_that_shares_its_id_with_another_is_not_removed() {
    let server = Server::start();
    server.ask(&["XADD", "s", "1-1", "payload", "one"]);
    server.ask(&["DQ.PUSH", "q", "two", "ID", "stream:s:1-1"]);
    let ran = dqctl(&server, &["import", "stream", "s", "q", "--move"]);
    assert_eq!((ran.code, ran.err.lines().count()), (3, 1), "{ran:?}");
    assert!(ran.err.contains("stream:s:1-1"), "{ran:?}");
    assert_eq!(number(&server, &["XLEN", "s"]), 1);
}

#[test]
fn sources_that_cannot_be_imported_are_refused() {
    let server = Server::start();
    server.ask(&["SET", "text", "x"]);
    server.ask(&["RPUSH", "l", "x"]);
    for kind in ["zset", "list", "stream", "sidekiq", "rq", "laravel", "celery", "bullmq"] {
        let ran = dqctl(&server, &["import", kind, "none", "q"]);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (1, "", 1), "{kind}: {ran:?}");
    }
    for args in [
        ["zset", "l", "q"],
        ["list", "text", "q"],
        ["stream", "l", "q"],
        ["celery", "text", "q"],
        ["list", "l", "text"],
    ] {
        let ran = dqctl(&server, &["import", args[0], args[1], args[2], "--move"]);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (3, "", 1), "{args:?}: {ran:?}");
    }
    assert_eq!(dqctl(&server, &["import", "list", "l", "l"]).code, 2);
    assert_eq!(dqctl(&server, &["import", "nonsense", "l", "q"]).code, 2);
    assert_eq!(server.text(&["LLEN", "l"]), "1");
}

/// Kills imports half way, and lets the last one end.
fn interrupted(server: &Server, args: &[&str], total: usize) {
    for _ in 0..4 {
        let had = number(server, &["DQ.LEN", "q"]);
        let mut child = command(server, args).stdout(Stdio::null()).spawn().unwrap();
        eventually("some are imported", || {
            number(server, &["DQ.LEN", "q"]) > had + 700 || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // On a busy machine, one of them may have come to its end before it was killed.
    let last = dqctl(server, args);
    assert!(last.code == 0 || last.err.contains("there is nothing to import"), "{last:?}");
    assert_eq!(number(server, &["DQ.LEN", "q"]), total);
}

#[test]
fn an_import_that_is_killed_is_completed_by_the_next() {
    let server = Server::start();
    for is_move in [false, true] {
        let script = "for i = 1, 20000 do redis.call('ZADD', 'z', 4102444800 + math.floor(i / 100), 'm' .. i) \
                      redis.call('RPUSH', 'l', 'e' .. i % 150) redis.call('XADD', 's', i .. '-1', 'payload', i) end";
        server.ask(&["EVAL", script, "3", "z", "l", "s"]);
        for (kind, key) in [("zset", "z"), ("list", "l"), ("stream", "s")] {
            let mut args = vec!["import", kind, key, "q"];
            if is_move || kind == "list" {
                args.push("--move");
            }
            interrupted(&server, &args, 20_000);
            if is_move {
                let length = match kind {
                    "zset" => "ZCARD",
                    "list" => "LLEN",
                    _ => "XLEN",
                };
                assert_eq!(number(&server, &[length, key]), 0);
            }
            if kind == "list" {
                let payloads = pop_all(&server, "q");
                let expected: Vec<String> = (1..=20_000).map(|number| format!("e{}", number % 150)).collect();
                assert!(payloads == expected, "the order of the list");
            }
            server.ask(&["DEL", "q"]);
        }
        server.ask(&["DEL", "z", "l", "s"]);
    }
}

#[test]
fn sources_are_imported_in_a_cluster() {
    let cluster = Cluster::of(2);
    let (server, client) = (&cluster.nodes[0], cluster.client());
    let ask = |words: &[&str]| client.call(cmd(words[0]).arg(&words[1..]), Resend::Never).unwrap();
    for key in ["a", "{tag}c", "d"] {
        ask(&["ZADD", &format!("{key}z"), LATER, "one", "5", "two"]);
        ask(&["XADD", &format!("{key}s"), "1-1", "payload", key, "b", ""]);
        ask(&["XADD", &format!("{key}s"), "2-1", "payload", key]);
        for (kind, suffix) in [("zset", "z"), ("stream", "s")] {
            let queue = format!("q-{key}-{kind}");
            let out = ok(server, &["--cluster", "import", kind, &format!("{key}{suffix}"), &queue, "--move"]);
            assert_eq!(out, "imported 2; removed 2 from the source\n");
            assert_eq!(ask(&["DQ.LEN", &queue]), Value::Int(2));
        }
    }
    // A list and its queue are in one slot.
    ask(&["RPUSH", "l", "x", "x"]);
    assert_eq!(dqctl(server, &["--cluster", "import", "list", "l", "q", "--move"]).code, 3);
    ok(server, &["--cluster", "import", "list", "l", "{l}:dq", "--move"]);
    assert_eq!(ask(&["DQ.LEN", "{l}:dq"]), Value::Int(2));
}

#[test]
fn resp2_is_understood_by_imports_as_well() {
    let server = Server::start();
    let url = format!("{}?protocol=2", server.url());
    server.ask(&["ZADD", "z", "4102444800.5", "a"]);
    ok(&server, &["-u", &url, "import", "zset", "z", "q"]);
    assert_eq!(due(&server, "zset:z:4102444800.5:a"), 4_102_444_800_500);
    assert_eq!(
        json(&server, &["import", "zset", "z", "q", "--move"]),
        [json!({ "imported": 0, "already": 1, "removed": 1, "failed": 0 })]
    );
}

/// The server closes a connection whose replies exceed this limit.
#[test]
fn large_elements_are_imported_within_the_output_limit_of_clients() {
    let server = Server::start();
    for number in 10..22 {
        let payload = number.to_string().repeat(200_000);
        server.ask(&["ZADD", "z", "1763700000", &payload]);
        server.ask(&["XADD", "s", "*", "payload", &payload]);
    }
    server.ask(&["CONFIG", "SET", "client-output-buffer-limit", "normal 2mb 0 0"]);
    for (kind, source) in [("zset", "z"), ("stream", "s")] {
        let counts = json(&server, &["import", kind, source, kind, "--move"]).remove(0);
        assert_eq!((&counts["imported"], &counts["removed"]), (&json!(12), &json!(12)), "{counts}");
    }
}
