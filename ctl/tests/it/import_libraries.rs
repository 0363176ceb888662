//! `dqctl import` of the queues of other libraries, with what the real libraries wrote.
//!
//! `ctl/tests/import` has recorded data, which `record.sh` records again. The tests that are ignored let the libraries
//! write to the server of the test; `make test-import` runs them.

use crate::dqctl::{dqctl, json, ok};
use crate::support::Server;
use dq_client::{Cmd, Resend, Value};
use serde_json::{json, Value as Json};
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

/// Makes the recorded keys. Returns what the library says that it put there.
pub fn recorded(server: &Server, file: &str) -> Json {
    let text = std::fs::read_to_string(folder().join(file)).expect("the recorded data");
    let (first, rest) = text.split_once('\n').expect("a first line");
    let client = server.client();
    for line in rest.lines() {
        let words: Vec<String> = serde_json::from_str(line).expect("a command");
        // Each character is a byte.
        let bytes = |word: &String| word.chars().map(|c| u8::try_from(u32::from(c)).expect("a byte")).collect();
        let words: Vec<Vec<u8>> = words.iter().map(bytes).collect();
        let mut command = Cmd::new();
        for word in &words {
            command.arg(word);
        }
        client.call(&command, Resend::Never).expect("a key");
    }
    serde_json::from_str(first).expect("JSON")
}

fn id(job: &Json) -> &str {
    job["id"].as_str().expect("an id")
}

/// Nothing is lost or doubled, whatever interrupts the import, and what belongs to another queue stays.
fn expect_imported(server: &Server, kind: &str, expected: &Json, payload: impl Fn(&Json, &Json)) {
    let source = expected["source"].as_str().expect("a source");
    let jobs = expected["jobs"].as_array().expect("jobs");
    let (count, args) = (jobs.len(), ["import", kind, source, "q"]);
    let dead = jobs.iter().filter(|job| job["dead"].is_string()).count();
    let live = (count - dead).to_string();
    let dry = json(server, &["import", kind, source, "q", "--dry-run"]).remove(0);
    let later = jobs.iter().filter(|job| job["due"].as_i64().is_some_and(|due| due > 4_000_000_000_000)).count();
    assert_eq!(dry["would-import"], count, "{dry}");
    assert_eq!(dry["dead"], dead, "{dry}");
    assert!(dry["later"].as_u64().expect("a number") as usize >= later, "{dry}");
    assert_eq!(server.text(&["EXISTS", "q"]), "0");
    // It stops half way, as it would if it was killed; and goes on, and again.
    for limit in [2, 7] {
        server.ask(&["DQ.ALTER", "q", "MKQUEUE", "MAXLEN", &limit.to_string()]);
        let ran = dqctl(server, &[&args[..], &["--move"][..]].concat());
        assert!(ran.code == 3 && ran.err.contains("MAXLEN"), "{ran:?}");
        assert_eq!(server.text(&["DQ.LEN", "q"]), limit.to_string());
    }
    server.ask(&["DQ.ALTER", "q", "MAXLEN", "0"]);
    ok(server, &args);
    assert_eq!(server.text(&["DQ.LEN", "q"]), live);
    for job in jobs {
        let message = json(server, &["get", "q", id(job)]).remove(0);
        match &job["due"] {
            Json::Null => {
                let state = if job["dead"].is_null() { "ready" } else { "dead" };
                assert_eq!((&message["state"], &message["reason"]), (&json!(state), &job["dead"]), "{message}");
            }
            due => assert_eq!(&message["due"], due, "{message}"),
        }
        assert_eq!(
            (&message["attempt"], &message["error"]),
            (job.get("attempt").unwrap_or(&json!(0)), &job["error"]),
            "{message}"
        );
        assert_eq!(message["retries"], job["retries"].as_i64().unwrap_or(16), "{message}");
        assert_eq!(message["priority"], job.get("priority").cloned().unwrap_or(json!(0)), "{message}");
        payload(job, &message);
    }
    let moved = json(server, &[&args[..], &["--move"][..]].concat()).remove(0);
    assert_eq!((&moved["imported"], &moved["failed"]), (&json!(0), &json!(0)), "{moved}");
    let again = dqctl(server, &[&args[..], &["--move"][..]].concat());
    assert!(again.code == 1 || again.out.starts_with("imported 0; removed 0"), "{again:?}");
    assert_eq!(server.text(&["DQ.LEN", "q"]), live);
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), dead.to_string());
    let other = json(server, &["import", kind, "other", "other-q", "--move"]).remove(0);
    assert_eq!(other["imported"], expected["left"], "{other}");
    // Those that are due at once come in the order in which they were put there, by priority.
    let mut waiting: Vec<&Json> = jobs.iter().filter(|job| job["due"].is_null() && job["dead"].is_null()).collect();
    waiting.sort_by_key(|job| -job.get("priority").and_then(Json::as_i64).unwrap_or(0));
    let waiting: Vec<&str> = waiting.into_iter().map(id).collect();
    let Value::Array(popped) = server.ask(&["DQ.POP", "q", "COUNT", "1000"]) else { panic!("nothing is ready") };
    let id_of = |message| match message {
        Value::Array(parts) => match parts.into_iter().next() {
            Some(Value::BulkString(id)) => String::from_utf8(id).expect("text"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let mut popped: Vec<String> = popped.into_iter().map(id_of).collect();
    // A retry may be due as well by now.
    popped.retain(|id| waiting.contains(&id.as_str()));
    assert_eq!(popped, waiting);
}

/// A job that the queue holds live may have died in the source since.
#[test]
fn a_job_that_died_since_it_was_imported_is_not_removed() {
    let server = Server::start();
    let job = r#"{"jid":"a","queue":"mail"}"#;
    server.ask(&["LPUSH", "queue:mail", job]);
    ok(&server, &["import", "sidekiq", "mail", "q", "--move"]);
    server.ask(&["ZADD", "dead", "5", job]);
    let ran = dqctl(&server, &["import", "sidekiq", "mail", "q", "--move"]);
    assert!(ran.code == 3 && ran.err.contains("sidekiq:a"), "{ran:?}");
    assert_eq!(server.text(&["ZCARD", "dead"]), "1");
}

fn payload(message: &Json) -> Json {
    serde_json::from_str(message["payload"].as_str().expect("text")).expect("JSON")
}

fn rq(server: &Server, expected: &Json) {
    expect_imported(server, "rq", expected, |job, message| {
        let payload = payload(message);
        assert_eq!((&payload["id"], &payload["description"]), (&job["job"], &job["description"]));
        assert!(payload["data-base64"].as_str().is_some_and(|data| data.len() > 20), "{payload}");
    });
    assert_eq!(server.text(&["EXISTS", "rq:queue:mail", "rq:scheduled:mail", "rq:failed:mail"]), "0");
    assert_eq!(server.ask(&["KEYS", "rq:results:*"]), Value::Array(Vec::new()));
}

fn celery(server: &Server, expected: &Json) {
    expect_imported(server, "celery", expected, |job, message| {
        let task = payload(message);
        assert_eq!(format!("celery:{}", task["headers"]["id"].as_str().unwrap()), id(job));
        assert!(task["body"].is_string() && task["properties"]["delivery_info"].is_object(), "{task}");
    });
    assert_eq!(server.text(&["EXISTS", "mail", "mail\x06\x163"]), "0");
}

fn sidekiq(server: &Server, expected: &Json) {
    expect_imported(server, "sidekiq", expected, |job, message| {
        let payload = payload(message);
        assert_eq!((&payload["class"], &payload["queue"]), (&json!("MailWorker"), &json!("mail")));
        assert_eq!(format!("sidekiq:{}", payload["jid"].as_str().unwrap()), id(job));
    });
    assert_eq!(server.text(&["EXISTS", "queue:mail", "schedule", "retry", "dead"]), "0");
}

fn bullmq(server: &Server, expected: &Json) {
    expect_imported(server, "bullmq", expected, |job, message| {
        let payload = payload(message);
        assert_eq!((&payload["name"], &payload["data"]), (&json!("send"), &job["data"]));
    });
    let left = [
        "bull:mail:wait",
        "bull:mail:delayed",
        "bull:mail:failed",
        "bull:mail:prioritized",
        "bull:mail:1",
        "bull:mail:own-id",
    ];
    assert_eq!(server.text(&[&["EXISTS"][..], &left[..]].concat()), "0");
}

#[test]
fn jobs_of_rq_are_imported() {
    let server = Server::start();
    let expected = recorded(&server, "rq.jsonl");
    rq(&server, &expected);
}

#[test]
fn tasks_of_celery_are_imported() {
    let server = Server::start();
    let expected = recorded(&server, "celery.jsonl");
    celery(&server, &expected);
}

#[test]
fn jobs_of_sidekiq_are_imported() {
    let server = Server::start();
    let expected = recorded(&server, "sidekiq.jsonl");
    sidekiq(&server, &expected);
}

#[test]
fn jobs_of_bullmq_are_imported() {
    let server = Server::start();
    let expected = recorded(&server, "bullmq.jsonl");
    bullmq(&server, &expected);
}

/// PHP is not needed for the tests, so these are written by hand, as Laravel 11 writes them.
#[test]
fn jobs_of_laravel_are_imported() {
    let server = Server::start();
    let job = |uuid: &str, number: u32| {
        let command = "O:12:\\\"App\\\\Jobs\\\\Send\\\":0:{}";
        format!(
            "{{\"uuid\":\"{uuid}\",\"displayName\":\"App\\\\Jobs\\\\Send\",\
             \"job\":\"Illuminate\\\\Queue\\\\CallQueuedHandler@call\",\
             \"maxTries\":null,\"data\":{{\"commandName\":\"App\\\\Jobs\\\\Send\",\
             \"command\":\"{command}\"}},\"id\":\"r{number}\",\"attempts\":{number}}}"
        )
    };
    let mut jobs = Vec::new();
    for number in 0..5 {
        let (waiting, later) = (format!("w-{number}"), format!("l-{number}"));
        server.ask(&["RPUSH", "app_database_queues:mail", &job(&waiting, number)]);
        server.ask(&["RPUSH", "app_database_queues:mail:notify", "1"]);
        let score = (4_102_444_800 + u64::from(number) / 2).to_string();
        server.ask(&["ZADD", "app_database_queues:mail:delayed", &score, &job(&later, number)]);
        jobs.push(json!({ "id": format!("laravel:{waiting}"), "due": null, "attempt": number }));
        let due = (4_102_444_800 + u64::from(number) / 2) * 1000;
        jobs.push(json!({ "id": format!("laravel:{later}"), "due": due, "attempt": number }));
    }
    server.ask(&["RPUSH", "queues:other", &job("other", 0)]);
    let expected = json!({ "source": "app_database_queues:mail", "left": 1, "jobs": jobs });
    expect_imported(&server, "laravel", &expected, |job, message| {
        let payload = payload(message);
        assert_eq!(format!("laravel:{}", payload["uuid"].as_str().unwrap()), id(job));
    });
}

#[test]
fn a_bullmq_queue_has_one_name() {
    let server = Server::start();
    recorded(&server, "bullmq.jsonl");
    ok(&server, &["import", "bullmq", "mail", "q"]);
    let again = json(&server, &["import", "bullmq", "bull:mail", "q"]).remove(0);
    assert_eq!(again["imported"], 0, "{again}");
}

#[test]
fn jobs_without_an_id_stay_in_the_source() {
    let server = Server::start();
    server.ask(&["RPUSH", "queues:mail", "{}", "{}"]);
    let ran = dqctl(&server, &["import", "laravel", "mail", "q", "--move"]);
    assert!(ran.code == 3 && ran.err.contains("no id"), "{ran:?}");
    assert_eq!(server.text(&["LLEN", "queues:mail"]), "2");
}

#[test]
fn a_job_that_was_scheduled_again_is_not_removed() {
    let server = Server::start();
    server.ask(&["ZADD", "queues:mail:delayed", "5", r#"{"uuid":"a"}"#]);
    ok(&server, &["import", "laravel", "mail", "q", "--move"]);
    server.ask(&["DQ.POP", "q"]);
    server.ask(&["ZADD", "queues:mail:delayed", "4102444800", r#"{"uuid":"a"}"#]);
    let ran = dqctl(&server, &["import", "laravel", "mail", "q", "--move"]);
    assert!(ran.code == 3 && ran.err.contains("laravel:a"), "{ran:?}");
    assert_eq!(server.text(&["ZCARD", "queues:mail:delayed"]), "1");
}

/// Runs a program that fills a queue of a library on the server, and prints what it put there.
fn fill(server: &Server, program: &Path, script: &str, directory: &Path) -> Json {
    let output = Command::new(program)
        .arg(folder().join(script))
        .arg(server.port().to_string())
        .current_dir(directory)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let out = String::from_utf8(output.stdout).expect("text");
    serde_json::from_str(out.lines().last().expect("a line")).expect("JSON")
}

fn installed(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable);
    PathBuf::from(path.unwrap_or_else(|| panic!("{variable} is not set: `make test-import` sets it")))
}

#[test]
#[ignore = "needs RQ: `make test-import` runs it"]
fn what_rq_writes_now_is_imported() {
    let (server, python) = (Server::start(), installed("DQ_IMPORT_PYTHON"));
    let expected = fill(&server, &python, "rq_queue.py", server.dir());
    rq(&server, &expected);
}

#[test]
#[ignore = "needs Celery: `make test-import` runs it"]
fn what_celery_writes_now_is_imported() {
    let (server, python) = (Server::start(), installed("DQ_IMPORT_PYTHON"));
    let expected = fill(&server, &python, "celery_queue.py", server.dir());
    celery(&server, &expected);
}

#[test]
#[ignore = "needs BullMQ: `make test-import` runs it"]
fn what_bullmq_writes_now_is_imported() {
    let (server, node) = (Server::start(), installed("DQ_IMPORT_NODE"));
    let expected = fill(&server, Path::new("node"), "bullmq_queue.js", &node);
    bullmq(&server, &expected);
}

#[test]
#[ignore = "needs Sidekiq: `make test-import` runs it"]
fn what_sidekiq_writes_now_is_imported() {
    if Command::new("sidekiq").arg("--version").output().is_err() {
        return eprintln!("left out: Sidekiq is not installed (Debian: ruby-sidekiq)");
    }
    let server = Server::start();
    let expected = fill(&server, Path::new("ruby"), "sidekiq_queue.rb", server.dir());
    sidekiq(&server, &expected);
}
