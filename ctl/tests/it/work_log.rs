//! What `dqctl work` says, and what it tells its handlers of a message.

use crate::dqctl::{command, ok, run, without_server};
use crate::http::{get, Web};
use crate::support::{eventually, free_port, Process, Server, Tls};
use crate::work::{written, Work};
use serde_json::{json, Value as Json};
use std::process::Stdio;

/// The log of a worker that was started with [`Work::logged`].
fn log(server: &Server) -> String {
    written(server, "log.dqctl")
}

/// The objects of a JSON log that are of an event.
fn events(server: &Server, event: &str) -> Vec<Json> {
    let log = log(server);
    // The last line may still be written.
    let lines = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(|line| serde_json::from_str::<Json>(line).expect(line)).filter(|line| line["event"] == event).collect()
}

fn server() -> Server {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "BACKOFF", "3600000", "3600000"]);
    server
}

#[test]
fn the_first_line_names_the_queues_and_no_secrets() {
    let server = server();
    let work = Work::logged(&server, &["-q", "q=4", "--post", "http://user:secret@127.0.0.1:1/hook?token=secret"]);
    server.until_blocked(1);
    assert_eq!(work.stopped(), 0);
    let log = log(&server);
    assert!(log.contains("q (4 at a time, http://127.0.0.1:1/hook);") && !log.contains("secret"), "{log}");
}

#[test]
fn a_json_log_has_an_object_for_each_event() {
    let server = server();
    for (id, code) in [("fine", "0"), ("later", "1"), ("never", "65")] {
        ok(&server, &["push", "q", code, "--id", id]);
    }
    let work = Work::logged(&server, &["-q", "q", "--log-format", "json", "-v", "--", "sh", "-c", "exit $(cat)"]);
    eventually("all are handled", || {
        server.text(&["DQ.LEN", "q", "ready"]) == "0" && server.text(&["DQ.LEN", "q", "inflight"]) == "0"
    });
    assert_eq!(work.stopped(), 0);
    let started = events(&server, "started").remove(0);
    assert_eq!((&started["queues"], &started["level"]), (&json!({ "q": 1 }), &json!("info")));
    assert_eq!((events(&server, "began").len(), events(&server, "handled").len()), (3, 1));
    assert_eq!(events(&server, "handled")[0]["id"], "fine");
    let failed = events(&server, "failed");
    let of = |id: &str| failed.iter().find(|failure| failure["id"] == id).unwrap();
    assert_eq!((&of("never")["state"], &of("never")["attempt"]), (&json!("dead"), &json!(1)));
    assert_eq!((&of("later")["state"], &of("later")["error"]), (&json!("delayed"), &json!("exit status: 1")));
}

#[test]
fn messages_are_handled_though_the_log_cannot_be_written() {
    let server = server();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for (log, format) in [(Stdio::piped(), "text"), (Stdio::from(full), "json")] {
        let args = ["work", "-q", "q", "-v", "--log-format", format, "--", "sh", "-c", "cat >> $DIR/seen"];
        let mut command = command(&server, &args);
        command.env("DIR", server.dir()).stderr(log);
        let mut child = Process(command.spawn().unwrap());
        // Nobody reads the pipe.
        drop(child.0.stderr.take());
        ok(&server, &["push", "q", format]);
        eventually("it is handled", || server.text(&["DQ.LEN", "q"]) == "0");
        child.0.kill().unwrap();
    }
    assert_eq!(written(&server, "seen"), "textjson");
}

#[test]
fn a_worker_is_healthy_while_it_reaches_its_server() {
    let mut server = server();
    let address = format!("127.0.0.1:{}", free_port());
    let work = Work::logged(&server, &["-q", "q", "--listen", &address, "--", "true"]);
    let health = || get(&address, "/healthz");
    eventually("it is up", || health() == Some((200, "ok\n".to_owned())));
    let up = || get(&address, "/metrics").is_some_and(|(_, text)| text.contains("dq_worker_up{queue=\"q\"} 1\n"));
    eventually("its metrics say so", up);
    server.kill();
    eventually("it is down", || health().is_some_and(|(status, text)| status == 503 && text.contains(": q")));
    assert!(!up());
    server.boot();
    eventually("it is up again", || health().is_some_and(|(status, _)| status == 200) && up());
    assert_eq!(work.stopped(), 0);
}

#[test]
fn headers_and_the_checkpoint_are_in_the_environment() {
    let server = server();
    ok(&server, &["push", "q", "x", "--id", "m", "--header", "content-type=text/csv", "--header", "who=ann lee"]);
    let receipt = server.ask(&["DQ.POP", "q", "LEASE", "600000"]);
    assert!(!format!("{receipt:?}").is_empty());
    server.ask(&["DQ.NACK", "q", "m", "NOCOUNT", "CHECKPOINT", "page 7"]);
    let script = "echo \"$DQ_HEADER_CONTENT_TYPE, $DQ_HEADER_WHO, $DQ_CHECKPOINT\" > $DIR/env";
    let work = Work::logged(&server, &["-q", "q", "--", "sh", "-c", script]);
    eventually("it is handled", || written(&server, "env") == "text/csv, ann lee, page 7\n");
    assert_eq!(work.stopped(), 0);
}

#[test]
fn headers_and_the_checkpoint_are_headers_of_a_post() {
    let (server, web) = (server(), Web::start());
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let traced = format!("traceparent={trace}");
    let headers = ["--header", "content-type=text/csv", "--header", &traced, "--header", "Host=evil"];
    ok(&server, &[&["push", "q", "200 OK", "--id", "m"][..], &headers].concat());
    let big = format!("big={}", "x".repeat(4_000));
    ok(&server, &["push", "q", "200 OK", "--id", "big", "--header", &big, "--header", &big.replace("big", "c")]);
    let work = Work::logged(&server, &["-q", "q", "--post", &web.url]);
    eventually("both are posted", || web.requests().len() == 2);
    assert_eq!(work.stopped(), 0);
    let lower = |request: &crate::http::Request| request.headers.iter().map(|header| header.to_lowercase()).collect();
    let headers: Vec<Vec<String>> = web.requests().iter().map(lower).collect();
    for header in ["content-type: text/csv", "dq-header-content-type: text/csv", "dq-header-host: evil"] {
        assert!(headers[0].iter().any(|found| found == header), "{header}: {headers:?}");
    }
    assert!(headers[0].contains(&format!("traceparent: {trace}")), "{headers:?}");
    assert!(!headers[0].contains(&"host: evil".to_owned()));
    // What would not fit into a request is left out.
    assert_eq!(headers[1].iter().filter(|header| header.starts_with("dq-header-")).count(), 1, "{headers:?}");
}

#[test]
fn a_certificate_that_is_missing_ends_the_worker_at_its_start() {
    let tls = Tls::start();
    let url = format!("{}?cacert={}", tls.url(), tls.file("ca.pem"));
    let ran = run(without_server(&["-u", &url, "work", "-q", "q", "--", "true"]));
    assert!(ran.code == 3 && ran.err.contains("certificate of the client") && ran.err.lines().count() == 1, "{ran:?}");
}
