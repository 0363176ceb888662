//! The page that is opened while the server of the queues is away: it says what is wrong, and what was known before.

use super::chrome::Browser;
use super::Web;
use crate::support::{eventually, Server};
use crate::top::signal;
use serde_json::{json, Value as Json};

/// Waits until the page would know this queue without its server.
fn until_known(web: &Web, queue: &str) -> Json {
    let mut last = Json::Null;
    eventually("the queue was sampled", || {
        last = web.read("/api/last")["last"].clone();
        last["queues"].as_array().is_some_and(|queues| queues.iter().any(|one| one["queue"] == queue))
    });
    last
}

#[test]
fn the_last_known_counts_are_told_without_the_server() {
    let mut server = Server::start();
    for queue in ["fine", "paused"] {
        server.ask(&["DQ.PUSH", queue, "x", "DELAY", "3600000"]);
    }
    server.ask(&["DQ.PAUSE", "paused"]);
    let web = Web::start(&server, &[]);
    for queue in ["fine", "paused"] {
        until_known(&web, queue);
    }
    server.kill();
    let last = web.read("/api/last")["last"].clone();
    assert_eq!((&last["totals"]["delayed"], &last["total"]), (&json!(2), &json!(2)), "{last}");
    // Trouble comes first.
    let first = &last["queues"][0];
    assert_eq!((&first["queue"], &first["conditions"]), (&json!("paused"), &json!([["paused", "warning"]])));
    let other = Web::start(&server, &[]);
    assert_eq!(other.read("/api/last")["last"], Json::Null, "nothing is known of a server that never answered");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_page_that_is_opened_while_the_server_is_down_shows_what_was_known() {
    let mut server = Server::start();
    server.ask(&["DQ.PUSH", "mail", "x", "DELAY", "3600000"]);
    let web = Web::start(&server, &[]);
    until_known(&web, "mail");
    server.kill();
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("The server of the queues cannot be reached");
    browser.until("What is shown is of ");
    assert!(browser.text().contains("mail") && !browser.text().contains("Doctor"), "{}", browser.text());
    server.boot();
    server.ask(&["DQ.PUSH", "after", "x"]);
    browser.until("after");
    eventually("the problem is gone", || browser.problem().is_empty());
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_queue_that_is_opened_while_the_server_is_down_shows_its_last_counts_and_no_actions() {
    let mut server = Server::start();
    server.ask(&["DQ.PUSH", "mail", "x", "DELAY", "3600000"]);
    server.ask(&["DQ.PAUSE", "mail"]);
    let web = Web::writing(&server);
    until_known(&web, "mail");
    server.kill();
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=mail"));
    browser.until("What is shown is of ");
    browser.until("Paused");
    let delayed = "document.querySelector('.tabs [data-key=delayed]').innerText";
    assert_eq!(browser.eval(delayed), "Delayed1");
    let enabled = "document.querySelectorAll('.queue .head .buttons button:enabled').length";
    assert_eq!(browser.eval(enabled), 0);
    server.boot();
    server.ask(&["DQ.PUSH", "mail", "x", "ID", "new"]);
    browser.until_true(&format!("{enabled} > 0"));
    eventually("the problem is gone", || browser.problem().is_empty());
    browser.until_true("document.querySelector('.charts').offsetParent !== null");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_page_says_that_a_stopped_server_does_not_answer_before_it_has_waited_for_it() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "mail", "x", "DELAY", "3600000"]);
    let web = Web::start(&server, &[]);
    until_known(&web, "mail");
    let pid = server.info("server", "process_id");
    signal("-STOP", &pid);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    // The last known counts come before the answer that there is none.
    browser.until("No answer yet");
    browser.until("mail");
    browser.until("The server of the queues does not answer");
    signal("-CONT", &pid);
    eventually("the problem is gone", || browser.problem().is_empty());
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_page_says_that_the_password_is_wrong() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "mail", "x"]);
    server.ask(&["CONFIG", "SET", "requirepass", "secret"]);
    let web = Web::start(&server, &[]);
    let mut browser = Browser::start();
    browser.open(&web.page(""));
    browser.until("The server of the queues wants another user or password");
}
