//! `dqctl work --post`: web servers that handle messages.

use crate::dqctl::{command, field, json, ok, run};
use crate::http::Web;
use crate::support::{eventually, free_port, Server};
use crate::work::Work;
use std::time::Duration;

fn server() -> Server {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "BACKOFF", "3600000", "3600000"]);
    server
}

/// Waits until every message was answered.
fn until_answered(server: &Server) {
    eventually("all are answered", || {
        server.text(&["DQ.LEN", "q", "ready"]) == "0" && server.text(&["DQ.LEN", "q", "inflight"]) == "0"
    });
}

#[test]
fn a_payload_is_posted_with_what_the_server_must_know() {
    let (server, web) = (server(), Web::start());
    ok(&server, &["push", "q", "200 OK", "--id", "an id"]);
    let url = format!("{}/hook?a=b", web.url);
    let work = Work::with(&server, &["-q", "q", "--post", &url, "--header", "Content-Type: text/plain"]);
    eventually("it is acknowledged", || server.text(&["DQ.LEN", "q"]) == "0");
    let request = web.requests().remove(0);
    assert_eq!((request.path.as_str(), request.body.as_str()), ("/hook?a=b", "200 OK"));
    let headers: Vec<String> = request.headers.iter().map(|header| header.to_lowercase()).collect();
    for header in ["content-type: text/plain", "dq-queue: q", "dq-id: an%20id", "dq-attempt: 1"] {
        assert!(headers.iter().any(|found| found == header), "{header}: {headers:?}");
    }
    assert_eq!(work.stop().code, 0);
}

#[test]
fn answers_ack_retry_and_reject() {
    let (server, web) = (server(), Web::start());
    let retried = ["408 A", "425 A", "429 A", "500 A", "502 A", "503 A", "409 A", "302 A\nLocation: /other", "304 A"];
    let rejected = ["400 A", "404 A", "410 A"];
    let acked = ["200 A", "201 A", "204 A"];
    for answer in retried.iter().chain(&rejected).chain(&acked) {
        ok(&server, &["push", "q", answer, "--id", &answer[..3]]);
    }
    let work = Work::with(&server, &["-q", "q=4", "--post", &web.url, "--retry-on", "409,418"]);
    until_answered(&server);
    for answer in retried {
        assert_eq!(field(&server, "q", &answer[..3], "state"), "delayed", "{answer}");
    }
    for answer in rejected {
        assert_eq!(field(&server, "q", &answer[..3], "reason"), "rejected", "{answer}");
    }
    assert_eq!(server.text(&["DQ.LEN", "q"]), retried.len().to_string());
    let error = field(&server, "q", "404", "error");
    assert_eq!(error, "404 Not Found: because of this");
    assert!(field(&server, "q", "302", "error").as_str().unwrap().starts_with("302"));
    assert!(web.requests().iter().all(|request| request.path == "/"));
    assert_eq!(work.stop().code, 0);
}

#[test]
fn a_server_can_ask_for_a_later_attempt() {
    let (server, web) = (server(), Web::start());
    for (id, answer) in [("429", "429 A\nRetry-After: 120"), ("503", "503 A\nRetry-After: 999999")] {
        ok(&server, &["push", "q", answer, "--id", id]);
    }
    for (id, answer) in
        [("past", "503 A\nRetry-After: Fri, 31 Dec 2010 23:59:59 GMT"), ("now", "429 A\nRetry-After: 0")]
    {
        ok(&server, &["push", "q", answer, "--id", id]);
    }
    let work = Work::with(&server, &["-q", "q", "--post", &web.url]);
    until_answered(&server);
    let wait = |id: &str| {
        field(&server, "q", id, "due").as_i64().unwrap() - field(&server, "q", id, "created").as_i64().unwrap()
    };
    assert!((120_000..600_000).contains(&wait("429")), "{}", wait("429"));
    assert!((3_600_000..4_000_000).contains(&wait("503")), "{}", wait("503"));
    // The backoff of the queue is an hour, with its jitter.
    assert!(wait("past") > 1_000_000 && wait("now") > 1_000_000, "{} {}", wait("past"), wait("now"));
    assert_eq!(json(&server, &["info", "q"])[0]["paused"], 0);
    assert_eq!(work.stop().code, 0);
}

#[test]
fn an_answer_429_pauses_the_queue_on_request() {
    let (server, web) = (server(), Web::start());
    ok(&server, &["push", "q", "429 A\nRetry-After: 120"]);
    let work = Work::with(&server, &["-q", "q", "--post", &web.url, "--pause-on-429"]);
    until_answered(&server);
    assert!(json(&server, &["info", "q"])[0]["paused-until"].is_i64());
    assert_eq!(work.stop().code, 0);
}

#[test]
fn any_bytes_are_posted_and_the_answer_is_the_result() {
    let (server, web) = (server(), Web::start());
    let queue: dq_client::blocking::Queue<dq_client::Raw> = server.client().queue("q");
    let bytes: Vec<u8> = (0..=255).rev().collect();
    for (id, payload) in [("bytes", bytes.clone()), ("empty", Vec::new()), ("long", b"long".to_vec())] {
        queue.push(&dq_client::Raw(payload)).id(id).retain(Duration::from_secs(600)).send().unwrap();
    }
    let work = Work::with(&server, &["-q", "q", "--post", &web.url]);
    let result = |id: &str| queue.wait(id, Duration::from_secs(60)).unwrap().result_bytes().map(<[u8]>::to_vec);
    assert_eq!(
        (result("bytes"), result("empty")),
        (Some(b"because of this".to_vec()), Some(b"because of this".to_vec()))
    );
    // An answer that is too long is none.
    assert_eq!(result("long"), None);
    assert_eq!((&web.requests()[0].bytes, web.requests()[1].bytes.len()), (&bytes, 0));
    assert_eq!(work.stop().code, 0);
}

#[test]
fn broken_connections_and_silence_are_retried() {
    let (server, web) = (server(), Web::start());
    for answer in ["drop", "hang"] {
        ok(&server, &["push", "q", answer, "--id", answer]);
    }
    let work = Work::with(&server, &["-q", "q=2", "--post", &web.url, "--time-limit", "1s"]);
    until_answered(&server);
    assert_eq!(
        (field(&server, "q", "drop", "state"), field(&server, "q", "hang", "state")),
        ("delayed".into(), "delayed".into())
    );
    assert_eq!(field(&server, "q", "hang", "error"), "no answer within the time limit of 1s");
    assert_eq!(work.stop().code, 0);
    ok(&server, &["push", "q", "x", "--id", "refused"]);
    let work = Work::with(&server, &["-q", "q", "--post", &format!("http://127.0.0.1:{}", free_port())]);
    until_answered(&server);
    assert!(field(&server, "q", "refused", "error").as_str().unwrap().starts_with("cannot post: "));
    assert_eq!(work.stop().code, 0);
}

#[test]
fn a_url_that_cannot_be_posted_to_is_refused() {
    let server = Server::start();
    let wrong: [&[&str]; 5] = [
        &["--post", "ftp://example.org"],
        &["--post", "example.org"],
        &["--post", "http://127.0.0.1", "--header", "nonsense"],
        &["--post", "http://127.0.0.1", "--retry-on", "500"],
        &["--post", "http://127.0.0.1", "--", "true"],
    ];
    for options in wrong {
        let ran = run(command(&server, &[&["work", "-q", "q"], options].concat()));
        assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{options:?}: {ran:?}");
    }
}

#[test]
fn the_environment_names_no_proxy() {
    let (server, web, proxy) = (server(), Web::start(), Web::start());
    for (id, url, options) in [
        ("direct", format!("{}/direct", web.url), vec![]),
        ("proxied", "http://nowhere.invalid/hook".to_owned(), vec!["--proxy", &proxy.url]),
    ] {
        server.ask(&["DQ.PUSH", "q", "200 OK", "ID", id]);
        let mut worker = command(&server, &[&["work", "-q", "q", "--post", &url][..], &options[..]].concat());
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy"] {
            worker.env(name, "http://127.0.0.1:1");
        }
        let work = Work::of(worker);
        eventually("it is acknowledged", || server.text(&["DQ.LEN", "q"]) == "0");
        assert_eq!(work.stop().code, 0, "{id}");
    }
    assert_eq!(web.requests().len(), 1);
    let paths: Vec<String> = proxy.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["nowhere.invalid:80", "/hook"]);
    let ran =
        run(command(&server, &["work", "-q", "q", "--post", &web.url, "--proxy", "socks5://u:secret@127.0.0.1:1"]));
    assert!(ran.code == 2 && ran.err.contains("socks5") && !ran.err.contains("secret"), "{ran:?}");
}
