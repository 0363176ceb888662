//! Whether consumers that hold messages still have a connection.

use super::chrome::Browser;
use super::Web;
use crate::support::{eventually, Server};
use serde_json::{json, Value as Json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// A worker that has named its connection, and holds a message of `q`.
fn worker(server: &Server, name: &str) -> TcpStream {
    server.ask(&["DQ.PUSH", "q", "x"]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    write!(stream, "CLIENT SETNAME {name}\r\nDQ.POP q LEASE 3600000 AS {name}\r\n").unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "+OK");
    assert!(lines.next().unwrap().unwrap().starts_with('*'));
    stream
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_consumer_without_a_connection_is_told_from_one_whose_connections_have_no_names() {
    let server = Server::start();
    let (_one, two) = (worker(&server, "w1"), worker(&server, "w2"));
    server.ask(&["DQ.PUSH", "other", "x"]);
    server.ask(&["DQ.POP", "other", "LEASE", "3600000", "AS", "plain"]);
    let web = Web::writing(&server);
    let connections = |path: &str| {
        let answer = web.read(path);
        let rows = answer["consumers"].as_array().unwrap().iter();
        rows.map(|row| (row["consumer"].as_str().unwrap().to_owned(), row["connections"].clone()))
            .collect::<std::collections::BTreeMap<String, Json>>()
    };
    let told = |expected: [(&str, Json); 3]| {
        let expected = expected.map(|(name, number)| (name.to_owned(), number));
        eventually("the connections are told", || connections("/api/consumers") == expected.clone().into());
    };
    told([("w1", json!(1)), ("w2", json!(1)), ("plain", Json::Null)]);
    drop(two);
    told([("w1", json!(1)), ("w2", json!(0)), ("plain", Json::Null)]);
    assert_eq!(connections("/api/consumers?queue=other"), [("plain".to_owned(), Json::Null)].into());
    let mut browser = Browser::start();
    let cell = |name: &str| {
        format!("[...document.querySelectorAll('.holders tr')].find((row) => row.innerText.includes('{name}'))?.querySelector('td[data-label=Connections]').innerText")
    };
    for view in ["consumers", "queue?queue=q&tab=consumers"] {
        browser.open(&web.page(view));
        browser.until_true(&format!("{} === 'none of this name' && {} === '1'", cell("w2"), cell("w1")));
    }
    // Without a name there is nothing to tell, and no column.
    browser.open(&web.page("queue?queue=other&tab=consumers"));
    browser.until("plain");
    assert!(!browser.text().contains("Connections"), "{}", browser.text());
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn while_clients_are_looked_for_no_right_is_said_to_be_missing() {
    let server = Server::start();
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("There is no queue yet");
    browser.eval(
        "const ask = window.fetch; window.fetch = (path, options) => path.startsWith('/api/consumers') && !window.answers \
         ? Promise.resolve(new Response('{\"consumers\": [], \"searching\": true}')) : ask(path, options); 0",
    );
    browser.open(&web.page("consumers"));
    browser.until("Looking for clients…");
    assert!(!browser.text().contains("+client"), "{}", browser.text());
    browser.eval("window.answers = true");
    browser.until("The last command of no client was a pop.");
    assert_eq!(browser.problem(), "");
}
