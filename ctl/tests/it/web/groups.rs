//! The groups of a queue: those that are held back come first, and each is found by its name.

use super::chrome::Browser;
use super::Web;
use crate::support::Server;
use serde_json::{json, Value as Json};

fn names(groups: &Json) -> Vec<&str> {
    groups["groups"].as_array().unwrap().iter().map(|group| group["group"].as_str().unwrap()).collect()
}

#[test]
fn groups_that_are_held_back_come_first_and_then_those_with_most_waiting() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "GROUPINFLIGHT", "1"]);
    for (group, count) in [("few", 1), ("many", 30), ("some", 5), ("full", 2)] {
        (0..count).for_each(|_| drop(server.ask(&["DQ.PUSH", "q", "x", "GROUP", group, "DELAY", "3600000"])));
    }
    server.ask(&["DQ.PUSH", "q", "x", "GROUP", "full"]);
    server.ask(&["DQ.POP", "q"]);
    server.ask(&["DQ.PAUSE", "q", "GROUP", "few"]);
    server.ask(&["DQ.PAUSE", "q", "GROUP", "empty", "FOR", "3600000"]);
    let web = Web::start(&server, &[]);
    let groups = web.read("/api/groups?queue=q");
    assert_eq!(names(&groups), ["few", "empty", "full", "many", "some"]);
    assert_eq!((&groups["total"], &groups["paused"]), (&json!(5), &json!(2)));
    assert_eq!(names(&web.read("/api/groups?queue=q&count=3&contains=M")), ["empty", "many", "some"]);
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_paused_group_among_thousands_is_found_and_resumed() {
    let server = Server::start();
    let script = "for i = 1, 3000 do for j = 1, (i == 900 or i == 2100) and 1 or 3 do \
        redis.call('DQ.PUSH', 'q', 'x', 'GROUP', string.format('cust-%04d', i)) end end";
    server.ask(&["EVAL", script, "0"]);
    for group in ["cust-0900", "cust-2100"] {
        server.ask(&["DQ.PAUSE", "q", "GROUP", group]);
    }
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=groups"));
    browser.until("The first 500 of 3,000 groups, 2 paused: the filter finds the others.");
    browser.choose("Resume… cust-2100", "Its messages are delivered again, at once.");
    browser.press("Enter");
    browser.until("Resumed the group cust-2100.");
    browser.until("3,000 groups, 1 paused");
    // One that the list does not show.
    browser.eval("document.getElementById('group-filter').focus()");
    browser.write("-2999");
    browser.until("1 group.");
    browser.choose("Pause… cust-2999", "Other groups go on.");
    browser.choose("Pause", "Paused the group cust-2999.");
    browser.until("1 group, 1 paused.");
    browser.choose("Resume… cust-2999", "Its messages are delivered again, at once.");
    // The address has the filter.
    assert!(browser.eval("location.hash").as_str().unwrap().ends_with("tab=groups&contains=-2999"));
    assert_eq!(browser.problem(), "");
}
