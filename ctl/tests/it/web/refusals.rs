//! Refusals: foreign pages, requests without a token, and clients that send too much or too slowly.

use super::{answer, Web};
use crate::dqctl::{dqctl, ok};
use crate::support::{eventually, Server};
use serde_json::json;
use std::io::Write;

const PAUSE: &str = "{\"act\":\"pause\",\"queue\":\"q\"}";

fn is_paused(server: &Server) -> bool {
    server.client().queue::<()>("q").info().unwrap().unwrap().paused
}

#[test]
fn without_allow_writes_nothing_is_changed() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m"]);
    let web = Web::start(&server, &[]);
    for path in ["ask", "do"] {
        let answer = web.post(path, &json!({ "act": "cancel", "queue": "q", "ids": ["m"] }));
        assert!(answer.status == 403 && answer.error().contains("--allow-writes"), "{path}: {answer:?}");
    }
    assert!(!web.view("queue?queue=q").contains("data-act"), "nothing is offered");
    assert_eq!(server.text(&["DQ.LEN", "q"]), "1");
}

#[test]
fn a_write_needs_its_header() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let web = Web::writing(&server);
    let plain = ["Content-Type: text/plain"];
    for headers in [&[][..], &plain, &["X-DQ: 0"], &["X-DQ: 1", "X-DQ: 1"], &["Cookie: X-DQ=1"]] {
        let answer = web.request("POST", "/api/do", headers, PAUSE);
        assert!(answer.status == 403 && answer.error().contains("X-DQ"), "{headers:?}: {answer:?}");
    }
    // Reads have no effect, whatever they name, and other methods none at all.
    assert_eq!(web.request("GET", "/api/do?queue=q", &["X-DQ: 1"], "").status, 405);
    assert_eq!(web.request("PUT", "/api/do", &["X-DQ: 1"], PAUSE).status, 405);
    let preflight = ["Origin: http://evil.example", "Access-Control-Request-Headers: x-dq"];
    let answer = web.request("OPTIONS", "/api/do", &preflight, "");
    assert!(answer.status == 403 && !answer.head.contains("access-control"), "{answer:?}");
    assert!(!is_paused(&server));
    assert_eq!(web.request("POST", "/api/do", &["x-dq: 1"], PAUSE).status, 200);
    assert!(is_paused(&server));
}

#[test]
fn foreign_pages_are_refused() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let web = Web::start(&server, &["--allow-writes", "--host", "dq.example.org"]);
    let own = format!("Origin: http://127.0.0.1:{}", web.port);
    for origin in [
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        "Origin: http://127.0.0.1.evil.example",
        "Origin: ",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        let answer = web.request("POST", "/api/do", &["X-DQ: 1", origin], PAUSE);
        assert_eq!(answer.status, 403, "{origin}: {answer:?}");
        assert_eq!(web.request("GET", "/api/view/", &[origin], "").status, 403, "{origin}");
        assert_eq!(web.request("POST", "/api/do", &["X-DQ: 1", &own, origin], PAUSE).status, 403, "{origin}");
    }
    assert!(!is_paused(&server));
    let proxied = ["X-DQ: 1", "Origin: https://dq.example.org"];
    for headers in [&["X-DQ: 1", own.as_str(), "Sec-Fetch-Site: same-origin"][..], &proxied] {
        assert_eq!(web.request("POST", "/api/do", headers, PAUSE).status, 200, "{headers:?}");
    }
}

#[test]
fn unknown_host_names_are_refused() {
    let server = Server::start();
    let web = Web::start(&server, &["--host", "dq.example.org"]);
    let foreign = [
        "Host: evil.example",
        "Host: localhost.evil.example",
        "Host: 10.1.2.3",
        "Host: 127.0.0.1.evil.example:80",
        "Host: localhost@evil.example",
        "Host: [::1",
        "Host: ",
        "Host: localhost\r\nHost: localhost",
    ];
    for host in foreign {
        for path in ["/", "/api/view/"] {
            let answer = web.request("GET", path, &[host], "");
            assert!(matches!(answer.status, 400 | 421), "{host}: {answer:?}");
        }
    }
    assert_eq!(web.send(b"GET / HTTP/1.0\r\n\r\n").status, 400);
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8480", "dq.example.org", "DQ.example.org:443"] {
        assert_eq!(web.request("GET", "/api/view/", &[&format!("Host: {host}")], "").status, 200, "{host}");
    }
}

#[test]
fn a_token_is_asked_for_everything_but_the_page() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let web = Web::start(&server, &["--allow-writes", "--token", "s3cret"]);
    assert_eq!((web.get("/").status, web.get("/app.js").status), (200, 200));
    let wrong = [
        &[][..],
        &["Authorization: Bearer wrong"],
        &["Authorization: Bearer s3cre"],
        &["Authorization: Bearer s3crets"],
        &["Authorization: Bearer "],
        &["Authorization: Basic s3cret"],
        &["Authorization: s3cret"],
    ];
    for headers in wrong {
        for path in ["/api/view/", "/api/view/queue?queue=q", "/api/payload?queue=q&id=m", "/api/nothing"] {
            let answer = web.request("GET", path, headers, "");
            assert!(
                answer.status == 401 && answer.head.contains("www-authenticate: bearer"),
                "{headers:?}: {answer:?}"
            );
        }
        let headers = [headers, &["X-DQ: 1"]].concat();
        assert_eq!(web.request("POST", "/api/do", &headers, PAUSE).status, 401, "{headers:?}");
    }
    assert!(!is_paused(&server));
    let token = "Authorization: Bearer s3cret";
    assert_eq!(web.request("GET", "/api/view/", &[token], "").status, 200);
    assert_eq!(web.request("POST", "/api/do", &[token, "X-DQ: 1"], PAUSE).status, 200);
    // A proxy may need the header Authorization for itself.
    let own = ["Authorization: Basic cHJveHk=", "X-DQ-Token: s3cret"];
    assert_eq!(web.request("GET", "/api/view/", &own, "").status, 200);
    assert_eq!(web.request("GET", "/api/view/", &[token, "X-DQ-Token: wrong"], "").status, 401);
    // The address does not carry it.
    assert_eq!(web.get("/api/view/?token=s3cret").status, 401);
}

#[test]
fn the_page_is_served_below_a_path() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let web = Web::start(&server, &["--base-path", "/queues/"]);
    for path in ["/queues/", "/queues/app.js", "/queues/api/view/queue?queue=q", "/", "/api/view/"] {
        assert_eq!(web.get(path).status, 200, "{path}");
    }
    let moved = web.get("/queues");
    assert!(moved.status == 308 && moved.head.contains("location: /queues/"), "{moved:?}");
    assert_eq!(web.get("/queuesapp.js").status, 404);
    // Nothing that the page asks for is named from the root, so it is found below any path.
    let page = web.get("/queues/").body;
    assert!(!page.contains("src=\"/") && !page.contains("href=\"/"), "{page}");
}

#[test]
fn a_view_that_is_not_there_says_so_as_a_document() {
    let server = Server::start();
    let web = Web::start(&server, &[]);
    for (path, words) in [("nonsense", "There is no such page."), ("queue?queue=none", "there is no queue none;")] {
        let answer = web.get(&format!("/api/view/{path}"));
        assert!(answer.status == 404 && answer.head.contains("text/html"), "{answer:?}");
        assert!(answer.body.contains(words), "{answer:?}");
    }
}

#[test]
fn beyond_loopback_there_is_no_start_without_a_token() {
    let server = Server::start();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8480"] {
        let ran = dqctl(&server, &["web", "--listen", address]);
        assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{address}: {ran:?}");
        assert!(ran.err.contains("--token"), "{ran:?}");
    }
    let empty = dqctl(&server, &["web", "--listen", "0.0.0.0:0", "--token", ""]);
    assert_eq!((empty.code, empty.err.lines().count()), (2, 1), "{empty:?}");
    let wrong = dqctl(&server, &["web", "--listen", "256.0.0.1:1"]);
    assert_eq!((wrong.code, wrong.err.lines().count()), (3, 1), "{wrong:?}");
    let web = Web::at("0.0.0.0", &server, &["--token", "s3cret"]);
    assert_eq!(web.get("/api/view/").status, 401);
    assert_eq!(web.request("GET", "/api/view/", &["Authorization: Bearer s3cret"], "").status, 200);
    assert_eq!(web.request("GET", "/", &["Host: evil.example"], "").status, 421);
}

#[test]
fn slow_clients_do_not_keep_others_out() {
    let server = Server::start();
    let web = Web::start(&server, &[]);
    let slow: Vec<_> = (0..200)
        .map(|number| {
            let mut stream = web.connect();
            if number % 2 == 0 {
                let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: local");
            }
            stream
        })
        .collect();
    eventually("others are answered", || web.get("/api/view/").status == 200);
    drop(slow);
}

#[test]
fn requests_have_limits() {
    let server = Server::start();
    let web = Web::writing(&server);
    let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    assert_eq!(web.send(head.as_bytes()).status, 431);
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(200));
    assert_eq!(web.send(many.as_bytes()).status, 400);
    let long = ["X-DQ: 1", "Host: localhost"];
    let mut stream = web.connect();
    write!(stream, "POST /api/do HTTP/1.1\r\n{}\r\nContent-Length: 99999999\r\n\r\n{{", long.join("\r\n")).unwrap();
    let refused = answer(&mut stream);
    assert_eq!(refused.status, 413);
    assert!(refused.json()["error"].is_string(), "{refused:?}");
    for request in [
        "GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1 x\r\nHost: localhost\r\n\r\n",
        "GET / SMTP\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "\r\n\r\n",
    ] {
        assert_eq!(web.send(request.as_bytes()).status, 400, "{request:?}");
    }
    let chunked = "POST /api/do HTTP/1.1\r\nHost: localhost\r\nX-DQ: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(web.send(chunked.as_bytes()).status, 411);
}
