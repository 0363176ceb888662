//! Schedules that are declared and edited on the page.

use super::chrome::Browser;
use super::Web;
use crate::support::Server;
use dq_client::Value;
use serde_json::json;

/// Fills in a field of the question that is open.
fn fill(browser: &mut Browser, field: &str, value: &str) {
    browser.eval(&format!("document.getElementById('field-{field}').value = '{value}'"));
}

fn confirm(browser: &mut Browser) {
    browser.eval("document.querySelector('dialog button.primary').click()");
}

/// What the server says if exactly this schedule is declared again.
fn declared(server: &Server, payload: &str, rest: &[&str]) -> Value {
    server.ask(&[&["DQ.SCHEDULE", "q", "nightly", payload], rest].concat())
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_schedule_is_edited_and_keeps_what_is_not_changed() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "LEASE", "45000"]);
    let mut rest = vec![
        "CRON",
        "0 3 * * *",
        "TZ",
        "Europe/Berlin",
        "UNTIL",
        "2000000000123",
        "TIMES",
        "20",
        "PRIORITY",
        "3",
        "RETRIES",
        "2",
        "TTL",
        "90000",
        "GROUP",
        "g",
        "HEADERS",
        "1",
        "trace",
        "1f",
    ];
    declared(&server, "{}", &rest);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=schedules"));
    browser.until("1 schedule");
    browser.choose("Edit… nightly", "Edit the schedule nightly of q");
    fill(&mut browser, "payload", "new");
    confirm(&mut browser);
    browser.until("Schedule nightly: changed.");
    assert_eq!(declared(&server, "new", &rest), Value::BulkString(b"unchanged".to_vec()), "nothing else has changed");
    // What is emptied is gone, and what is given is there.
    browser.until_true("!document.getElementById('dialog').open");
    browser.choose("Edit… nightly", "Edit the schedule nightly of q");
    fill(&mut browser, "times", "");
    fill(&mut browser, "lease", "1m");
    confirm(&mut browser);
    browser.until_true("!document.getElementById('dialog').open");
    let times = rest.iter().position(|word| *word == "TIMES").unwrap();
    rest.splice(times..times + 2, ["LEASE", "60000"]);
    assert_eq!(declared(&server, "new", &rest), Value::BulkString(b"unchanged".to_vec()));
    assert_eq!(browser.problem(), "");
}

#[test]
fn a_schedule_has_all_that_a_message_has_of_its_own() {
    let server = Server::start();
    let web = Web::writing(&server);
    let schedule = json!({
        "queue": "q", "id": "nightly", "payload": "x", "every": 60000, "offset": 5000, "until": 2000000000123_i64,
        "times": 3, "group": "g", "priority": 2, "retries": 1, "lease": 7000, "ttl": 9000, "headers": { "trace": "1f" },
    });
    assert_eq!(web.act("schedule", schedule)["schedule"], "created");
    let same = [
        "EVERY",
        "60000",
        "OFFSET",
        "5000",
        "UNTIL",
        "2000000000123",
        "TIMES",
        "3",
        "GROUP",
        "g",
        "PRIORITY",
        "2",
        "RETRIES",
        "1",
        "LEASE",
        "7000",
        "TTL",
        "9000",
        "HEADERS",
        "1",
        "trace",
        "1f",
    ];
    assert_eq!(declared(&server, "x", &same), Value::BulkString(b"unchanged".to_vec()));
    let wrong = json!({ "queue": "q", "id": "n", "payload": "x", "every": 60000, "until": 5 });
    assert!(web.post("schedule", &wrong).error().contains("until must be a whole number from"));
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn questions_say_what_becomes_of_the_schedules_among_the_messages() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        server.ask(&["DQ.SCHEDULE", "q", id, "x", "EVERY", "3600000"]);
    }
    server.ask(&["DQ.SCHEDULE", "other", "a", "x", "CRON", "0 3 1 1 *"]);
    server.ask(&["DQ.PUSH", "q", "x", "DELAY", "3600000"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=delayed"));
    browser.until("4 messages");
    browser.choose("Purge…", "removed for good, except schedules");
    browser.until("delayed: 1 message; 3 schedules stay");
    confirm(&mut browser);
    browser.until("Purged: 1 message. Left: 3 schedules stay.");
    assert_eq!(server.text(&["DQ.LEN", "q", "delayed"]), "3");
    browser.choose("Run delayed now…", "3 of them are schedules, which run at once.");
    browser.press("Escape");
    browser.choose("Filter these messages", "Cancel all 3…");
    browser.choose("Cancel all 3…", "3 of them are schedules, which make no more runs.");
    browser.press("Escape");
    browser.open(&web.page("?sort=name"));
    browser.until("2 queues");
    browser.eval("document.querySelector('.queues th .select input').click()");
    browser.choose("Run all delayed now…", "other (1), q (3). 4 of them are schedules, which run at once.");
    confirm(&mut browser);
    browser.until("Due now: 4 messages of 2 queues.");
    assert_eq!(browser.problem(), "");
}
