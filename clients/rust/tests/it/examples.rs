//! The programs in `examples/` do what their first lines say.

use crate::support::{eventually, Process, Server};
use dq_client::blocking::Queue;
use dq_client::{Raw, State};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// `cargo test` builds the examples next to the tests.
fn example(server: &Server, name: &str, args: &[&str]) -> Command {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned();
    let tests = std::env::current_exe().unwrap();
    let profile = tests.ancestors().nth(2).unwrap().file_name().unwrap().to_owned();
    let mut command = Command::new(target.join(profile).join("examples").join(name));
    command.args(args).env("DQ_URL", server.url()).stdout(Stdio::piped());
    command
}

fn run(server: &Server, name: &str, args: &[&str]) -> String {
    let output = example(server, name, args).output().unwrap();
    assert!(output.status.success(), "{name} {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// An example that works until SIGTERM. It is killed if the test fails.
struct Service(Process);

impl Service {
    fn start(server: &Server, name: &str, args: &[&str]) -> Service {
        Service(Process(example(server, name, args).spawn().unwrap()))
    }

    /// Asks it to stop, and returns what it has written.
    fn stop(mut self) -> String {
        let child = &mut self.0 .0;
        let kill = format!("kill -TERM {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        text
    }
}

fn queue(server: &Server, name: &str) -> Queue<Raw> {
    server.client().queue(name)
}

fn until_acked(server: &Server, name: &str, count: u64) {
    eventually("they are acknowledged", || {
        queue(server, name).info().unwrap().is_some_and(|info| info.totals.acked == count)
    });
}

#[test]
fn a_topic_server_handles_immediate_and_delayed_jobs() {
    let server = Server::start();
    let service = Service::start(&server, "topics", &["serve", "mail=4", "reports=1"]);
    server.until_blocked(2);
    run(&server, "topics", &["push", "mail", "0", "to ann"]);
    run(&server, "topics", &["push", "mail", "300", "to bob"]);
    run(&server, "topics", &["push", "reports", "3600000", "in an hour"]);
    until_acked(&server, "topic:mail", 2);
    let depth = run(&server, "topics", &["depth", "mail", "reports", "none"]);
    assert!(depth.contains("reports: 0 ready, 1 delayed") && depth.contains("none: no queue"), "{depth}");
    // A job is JSON with the names of its fields.
    let job = queue(&server, "topic:reports").peek(State::Delayed, 1).unwrap().remove(0);
    for name in ["topic", "delay_ms", "payload", "timestamp"] {
        assert!(job.bytes().windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
    }
    let text = service.stop();
    assert!(text.contains("to ann") && text.contains("to bob"), "{text}");
    assert!(text.contains("stopped; 0 jobs did not end in time"), "{text}");
}

#[test]
fn partitioned_consumers_take_what_the_producer_spreads() {
    let server = Server::start();
    let service = Service::start(&server, "partitions", &["consume", "4"]);
    let spread = run(&server, "partitions", &["produce", "200"]);
    assert_eq!(spread.lines().count(), 12, "{spread}");
    eventually("all are handled", || {
        let acked =
            |number| queue(&server, &format!("{{orders:{number}}}")).info().unwrap().map(|info| info.totals.acked);
        (0..12).filter_map(acked).sum::<u64>() == 200
    });
    assert_eq!(service.stop().matches("pays").count(), 200);
}

#[test]
fn a_unique_key_is_handled_once_however_often_it_is_touched() {
    let server = Server::start();
    let touch = |how: &str, key: &str, ms: &str| run(&server, "unique", &[how, key, ms]);
    assert!(touch("first", "page-7", "3600000").contains("is ready in"));
    assert!(touch("first", "page-7", "0").contains("waits already"));
    assert_eq!(run(&server, "unique", &["forget", "page-7"]), "forgotten\n");
    assert_eq!(run(&server, "unique", &["forget", "page-7"]), "not known\n");
    (0..3).for_each(|_| drop(touch("last", "page-8", "3600000")));
    touch("last", "page-8", "0");
    let service = Service::start(&server, "unique", &["work"]);
    until_acked(&server, "keys", 1);
    assert_eq!(service.stop(), "page-8\n");
}

#[test]
fn a_worker_without_a_log_writes_failures_to_standard_error() {
    let server = Server::start();
    let mut command = example(&server, "unique", &["work"]);
    let mut process = Process(command.stderr(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(process.0.stderr.take().unwrap()).lines();
    let written = Arc::new(Mutex::new(String::new()));
    let text = Arc::clone(&written);
    std::thread::spawn(move || lines.for_each(|line| text.lock().unwrap().push_str(&line.unwrap())));
    eventually("it says what it works on", || written.lock().unwrap().contains(" works on keys (4 at a time)"));
    // A key is a text, not a number.
    queue(&server, "keys").push(&Raw(b"7".to_vec())).id("wrong").send().unwrap();
    eventually("it reports the failure", || written.lock().unwrap().contains("dq: keys: wrong failed at attempt 1"));
    drop(server);
    eventually("it reports the outage", || written.lock().unwrap().contains("dq: keys: cannot pop"));
}

#[test]
fn a_consumer_retries_rejects_and_lets_messages_expire() {
    let server = Server::start();
    let service = Service::start(&server, "retries", &[]);
    let calls = || queue(&server, "calls").info().unwrap();
    eventually("two are rejected or expired, and the fine one is done", || {
        calls().is_some_and(|info| info.dead >= 2 && info.totals.acked >= 1 && info.totals.nacked >= 3)
    });
    let text = service.stop();
    assert!(text.contains("https://fine.example (attempt 1)"), "{text}");
    assert!(text.contains("dead: nonsense after 1 attempts: Some(\"no URL\")"), "{text}");
    assert!(text.contains("expired"), "{text}");
}
