//! `dqctl import` of jobs that belong together with others: what dq can hold is imported whole, and the rest stays.

use crate::dqctl::{dqctl, json, ok, Ran};
use crate::import_libraries::recorded;
use crate::support::Server;
use dq_client::Value;
use serde_json::{json, Value as Json};

/// Moves a queue of which a part stays.
#[track_caller]
fn moved(server: &Server, kind: &str) -> (Json, Ran) {
    let ran = dqctl(server, &["import", kind, "mail", "q", "--move", "--json"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    (serde_json::from_str(&ran.out).expect("JSON"), ran)
}

/// Some fields of a message.
#[track_caller]
fn fields(server: &Server, id: &str, names: &[&str]) -> Vec<Json> {
    let message = json(server, &["get", "q", id]).remove(0);
    names.iter().map(|name| message[*name].clone()).collect()
}

fn keys(server: &Server, pattern: &str) -> Vec<String> {
    let Value::Array(keys) = server.ask(&["KEYS", pattern]) else { panic!("no list") };
    let text = |key| match key {
        Value::BulkString(key) => String::from_utf8(key).expect("text"),
        other => panic!("{other:?}"),
    };
    let mut keys: Vec<String> = keys.into_iter().map(text).collect();
    keys.sort();
    keys
}

#[test]
fn a_job_scheduler_of_bullmq_becomes_a_schedule() {
    let server = Server::start();
    recorded(&server, "bullmq_ties.jsonl");
    let next = |key: &str| match server.ask(&["ZSCORE", "bull:mail:repeat", key]) {
        Value::Double(score) => score as i64,
        other => panic!("{other:?}"),
    };
    let (often, nightly) = (next("often"), next("nightly"));
    for _ in 0..2 {
        // A copy leaves both parts of a scheduler where they are.
        let ran = dqctl(&server, &["import", "bullmq", "mail", "q"]);
        assert_eq!((ran.code, server.text(&["ZCARD", "bull:mail:repeat"])), (3, "3".to_owned()), "{ran:?}");
        assert_eq!(server.text(&["DQ.LEN", "q"]), "3");
    }
    server.ask(&["DEL", "q"]);
    let (counts, ran) = moved(&server, "bullmq");
    assert_eq!((&counts["imported"], &counts["removed"]), (&json!(3), &json!(3)), "{ran:?}");
    let names = ["every", "offset", "due", "times-left", "until", "retries", "priority"];
    assert_eq!(
        fields(&server, "bullmq:mail:often", &names),
        [
            json!(60_000),
            json!(often % 60_000),
            json!(often),
            json!(5),
            json!(4_102_444_800_000_i64),
            json!(2),
            json!(-2)
        ]
    );
    assert_eq!(
        fields(&server, "bullmq:mail:nightly", &["cron", "tz", "due"]),
        [json!("0 3 * * *"), json!("Europe/Berlin"), json!(nightly)]
    );
    let payload = fields(&server, "bullmq:mail:often", &["payload"]).remove(0);
    let payload: Json = serde_json::from_str(payload.as_str().expect("text")).expect("JSON");
    assert_eq!((&payload["name"], &payload["data"]), (&json!("send"), &json!({ "to": "ann" })));
    // Nothing of them is left but the one that no rule of dq has, with its run.
    assert_eq!(
        (keys(&server, "bull:mail:repeat:*").len(), server.text(&["ZCARD", "bull:mail:repeat"])),
        (2, "1".to_owned())
    );
    assert_eq!(server.text(&["ZCARD", "bull:mail:delayed"]), "1");
    let (counts, _) = moved(&server, "bullmq");
    assert_eq!((&counts["imported"], &counts["removed"]), (&json!(0), &json!(0)));
}

#[test]
fn a_flow_of_bullmq_stays_whole() {
    let server = Server::start();
    recorded(&server, "bullmq_ties.jsonl");
    let (counts, ran) = moved(&server, "bullmq");
    // A child and its parent, and the scheduler with seconds.
    assert_eq!(counts["failed"], json!(3), "{ran:?}");
    assert!(ran.err.contains("child of a flow"), "{ran:?}");
    assert_eq!(
        (server.text(&["LLEN", "bull:mail:wait"]), server.text(&["LINDEX", "bull:mail:wait", "0"])),
        ("1".into(), "child".into())
    );
    assert_eq!(server.text(&["EXISTS", "bull:mail:child", "bull:mail:parent", "bull:mail:parent:dependencies"]), "3");
    assert_eq!(server.ask(&["DQ.GET", "q", "bullmq:mail:child"]), Value::Nil);
    // What is deduplicated is taken with its lock.
    assert_eq!(server.text(&["EXISTS", "bull:mail:once", "bull:mail:de:only-one"]), "0");
}

/// As Bull 4.16 writes it, which keeps the scheduler in the options alone.
#[test]
fn a_repeatable_job_of_bull_becomes_a_schedule() {
    let server = Server::start();
    let (key, run) = ("send:own::9000000", "repeat:29ac486b7e943254e7a50484a5f3b00a:4102444800000");
    let opts =
        json!({ "repeat": { "count": 1, "key": key, "every": 9_000_000, "jobId": "own" }, "attempts": 1 }).to_string();
    server.ask(&["ZADD", "bull:mail:repeat", "4102444800000", key]);
    server.ask(&["ZADD", "bull:mail:delayed", "16803613900800003", run]);
    server.ask(&["HSET", &format!("bull:mail:{run}"), "name", "send", "data", "{}", "opts", &opts]);
    // One that failed and is tried again has been followed by this one.
    let tried = "repeat:29ac486b7e943254e7a50484a5f3b00a:1795878000000";
    server.ask(&["ZADD", "bull:mail:delayed", "16803613900800003", tried]);
    server.ask(&[
        "HSET",
        &format!("bull:mail:{tried}"),
        "name",
        "send",
        "data",
        "{}",
        "opts",
        &opts,
        "attemptsMade",
        "1",
    ]);
    let counts = json(&server, &["import", "bullmq", "mail", "q", "--move"]).remove(0);
    assert_eq!((&counts["imported"], &counts["removed"]), (&json!(2), &json!(2)));
    let id = format!("bullmq:mail:{key}");
    assert_eq!(fields(&server, &id, &["every", "due"]), [json!(9_000_000), json!(4_102_444_800_000_i64)]);
    assert_eq!(fields(&server, &format!("bullmq:mail:{tried}"), &["every", "attempt"]), [Json::Null, json!(1)]);
    assert!(keys(&server, "bull:*").is_empty());
}

#[test]
fn jobs_of_rq_on_which_others_depend_stay() {
    let server = Server::start();
    recorded(&server, "rq_ties.jsonl");
    let (counts, ran) = moved(&server, "rq");
    assert_eq!((&counts["imported"], &counts["failed"]), (&json!(2), &json!(3)), "{ran:?}");
    // The one that was taken before its worker died is the first.
    let Value::Array(ids) = server.ask(&["DQ.POP", "q", "COUNT", "5"]) else { panic!("nothing is ready") };
    assert!(format!("{:?}", ids[0]).contains("taken") || ids.len() == 2, "{ids:?}");
    assert_eq!(fields(&server, "rq:waits", &["state"]), [json!("inflight")]);
    assert_eq!(server.text(&["EXISTS", "rq:queue:mail:intermediate", "rq:job:taken", "rq:job:waits"]), "0");
    assert_eq!(server.text(&["EXISTS", "rq:job:first", "rq:job:second", "rq:job:repeats"]), "3");
    assert_eq!(
        (server.text(&["LLEN", "rq:queue:mail"]), server.text(&["ZCARD", "rq:deferred:mail"])),
        ("2".into(), "1".into())
    );
}

#[test]
fn members_of_batches_and_chords_and_holders_of_locks_stay() {
    use base64::prelude::{Engine, BASE64_STANDARD};
    let server = Server::start();
    let sidekiq = |jid: &str, more: &str| format!("{{\"jid\":\"{jid}\",\"queue\":\"mail\"{more}}}");
    let ties = [
        sidekiq("batch", ",\"bid\":\"b-1\""),
        sidekiq("lock", ",\"lock_digest\":\"uniquejobs:1\""),
        sidekiq("token", ",\"unique_for\":600.0"),
    ];
    for job in ties.iter().chain([&sidekiq("free", ",\"unique_for\":false")]) {
        server.ask(&["LPUSH", "queue:mail", job]);
    }
    let (counts, ran) = moved(&server, "sidekiq");
    assert_eq!((&counts["imported"], &counts["failed"]), (&json!(1), &json!(3)), "{ran:?}");
    assert!(ran.err.contains("batch") && server.text(&["LLEN", "queue:mail"]) == "3", "{ran:?}");

    let command = "O:13:\\\"App\\\\Jobs\\\\Send\\\":1:{s:7:\\\"batchId\\\";s:3:\\\"b-2\\\";}";
    let laravel = |uuid: &str, data: &str| format!("{{\"uuid\":\"{uuid}\",\"data\":{{{data}}}}}");
    server.ask(&["RPUSH", "queues:mail", &laravel("in-batch", &format!("\"command\":\"{command}\""))]);
    server.ask(&["RPUSH", "queues:mail", &laravel("alone", "\"command\":\"O:13:{}\"")]);
    server.ask(&["ZADD", "queues:mail:reserved", "5", &laravel("taken", "\"command\":\"\"")]);
    let (counts, ran) = moved(&server, "laravel");
    assert_eq!((&counts["imported"], &counts["failed"]), (&json!(1), &json!(2)), "{ran:?}");
    assert!(ran.err.contains("b-2") && server.text(&["LLEN", "queues:mail"]) == "1", "{ran:?}");

    let celery = |id: &str, embed: &str| {
        let body =
            BASE64_STANDARD.encode(format!("[[1],{{}},{{\"callbacks\":null,\"chain\":null,\"chord\":{embed}}}]"));
        json!({ "body": body, "headers": { "id": id }, "properties": { "body_encoding": "base64" } }).to_string()
    };
    server.ask(&["LPUSH", "mail", &celery("in-chord", "{\"task\":\"sum\"}")]);
    server.ask(&["LPUSH", "mail", &celery("alone", "null")]);
    let (counts, ran) = moved(&server, "celery");
    assert_eq!((&counts["imported"], &counts["failed"]), (&json!(1), &json!(1)), "{ran:?}");
    assert!(ran.err.contains("chord") && server.text(&["LLEN", "mail"]) == "1", "{ran:?}");
    assert_eq!(ok(&server, &["peek", "q", "--json"]).lines().count(), 3);
}

/// Workers that were killed leave them there, and so do those that wait for the eta of a task.
#[test]
fn tasks_that_workers_of_celery_hold_are_reported() {
    let server = Server::start();
    for number in 0..300 {
        for queue in ["mail", "other"] {
            let message = json!({ "body": "", "headers": { "id": format!("{queue}-{number}") } });
            let held = json!([message, "", queue]).to_string();
            server.ask(&["HSET", "unacked", &format!("{queue}-tag-{number}"), &held]);
        }
    }
    for args in [&["--dry-run"][..], &["--move"]] {
        let ran = dqctl(&server, &[&["import", "celery", "mail", "q"][..], args].concat());
        assert!(ran.code == 3 && ran.err.contains("300 elements") && ran.err.contains("unacked"), "{ran:?}");
    }
    server.ask(&["LPUSH", "third", &json!({ "body": "", "headers": { "id": "m" } }).to_string()]);
    assert_eq!(ok(&server, &["import", "celery", "third", "q", "--move"]), "imported 1; removed 1 from the source\n");
    assert_eq!(server.text(&["HLEN", "unacked"]), "600");
}

/// Those of processes that were killed stay there until another process of Sidekiq finds them.
#[test]
fn jobs_that_reliable_fetches_of_sidekiq_hold_are_reported() {
    let server = Server::start();
    let job = |jid: &str, queue: &str| json!({ "jid": jid, "queue": queue }).to_string();
    let lists = [
        "queue:sq|host:1:ab|mail",
        "queue:sq|host:1:ab|other",
        "queue:sq_host:2:cd_mail",
        "working:queue:mail:host:3:ef",
        "app:queue:sq|host:4:ab|mail",
    ];
    for (number, list) in lists.iter().enumerate() {
        let queue = if list.contains("mail") { "mail" } else { "other" };
        server.ask(&["LPUSH", list, &job(&format!("taken-{number}"), queue)]);
    }
    // It was taken last, when nothing else waited: there is no `queue:mail`.
    for args in [&["--dry-run"][..], &["--move"], &["--move"]] {
        let ran = dqctl(&server, &[&["import", "sidekiq", "mail", "q"][..], args].concat());
        assert_eq!(ran.code, 3, "{ran:?}");
        let (number, named) = ("3 elements cannot be imported", "the job taken-2 of queue:sq_host:2:cd_mail stays");
        assert!(ran.err.contains(number) && ran.err.contains(named), "{ran:?}");
    }
    let ran = dqctl(&server, &["import", "sidekiq", "app:queue:mail", "q", "--move"]);
    assert!(ran.code == 3 && ran.err.contains("1 elements") && ran.err.contains("taken-4"), "{ran:?}");
    // A namespace is no pattern.
    let ran = dqctl(&server, &["import", "sidekiq", "*:queue:mail", "q", "--move"]);
    assert!(ran.err.contains("there is nothing to import"), "{ran:?}");
    server.ask(&["LPUSH", "queue:third", &job("free", "third")]);
    assert_eq!(ok(&server, &["import", "sidekiq", "third", "q", "--move"]), "imported 1; removed 1 from the source\n");
    let mut left = keys(&server, "*:*");
    left.retain(|key| lists.contains(&key.as_str()));
    assert_eq!(left.len(), lists.len(), "{left:?}");
}
