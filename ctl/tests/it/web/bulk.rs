//! Changes of more messages than one request can read in its time.

use super::chrome::Browser;
use super::Web;
use crate::support::Server;
use serde_json::json;

/// Four thousand dead messages of two causes, half of them of each.
fn large_graveyard() -> Server {
    let server = Server::start();
    let die = "for i = 1, 4000 do \
        redis.call('DQ.BURY', 'q', redis.call('DQ.PUSH', 'q', 'x'), 'ERROR', i % 2 == 0 and 'timeout' or 'refused') end";
    server.ask(&["EVAL", die, "0"]);
    server
}

#[test]
fn a_change_continues_where_its_last_request_ended() {
    let server = large_graveyard();
    let web = Web::writing(&server);
    let counted = web.read("/api/dead?queue=q&cause=timeout&within=0");
    assert_eq!(counted["partial"], true, "{counted}");
    let (mut changed, mut requests, mut cursor) = (0, 0, "0".to_owned());
    loop {
        let one = json!({ "queue": "q", "do": "delete", "cause": "timeout", "within": 0, "cursor": cursor });
        let answer = web.act("dead", one);
        changed += answer["changed"].as_i64().unwrap();
        requests += 1;
        cursor = answer["cursor"].as_str().unwrap().to_owned();
        if cursor == "0" {
            break;
        }
    }
    // Each message is read once: none of the others makes the next request begin again.
    assert!(changed == 2000 && (2..=8).contains(&requests), "{changed} in {requests}");
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "2000");
    let few = web.act("dead", json!({ "queue": "q", "do": "redrive", "count": 150 }));
    assert_eq!((&few["changed"], &few["cursor"]), (&json!(150), &json!("0")));
    for wrong in [json!({ "within": 4001 }), json!({ "count": 0 }), json!({ "cursor": "x" })] {
        let mut body = json!({ "queue": "q", "do": "delete" });
        body.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        assert_eq!(web.post("dead", &body).status, 400, "{body}");
    }
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn a_question_about_more_than_can_be_counted_says_all_and_means_it() {
    let server = large_graveyard();
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=dead&cause=timeout"));
    browser.until("2,000 messages that these conditions select");
    // From now on, no request has time for more than a page.
    browser.eval(
        "const ask = window.fetch; window.fetch = (path, options) => options.method === 'POST' \
         ? ask(path, { ...options, body: JSON.stringify({ ...JSON.parse(options.body), within: 0 }) }) \
         : ask(path.startsWith('/api/dead') ? `${path}&within=0` : path, options); 0",
    );
    browser.choose("Delete all 2,000", "Delete all dead messages of q that these conditions select?");
    let question = browser.eval("document.getElementById('dialog').innerText");
    let question = question.as_str().unwrap();
    assert!(
        question.contains("all dead messages with the error “timeout”. Not all could be counted in time: there are")
    );
    browser.choose("Delete", "Deleted: 2,000 messages.");
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "2000");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn no_more_are_changed_than_the_question_says() {
    let server = Server::start();
    let die = "redis.call('DQ.BURY', 'q', redis.call('DQ.PUSH', 'q', 'x'))";
    server.ask(&["EVAL", &format!("for i = 1, 3 do {die} end"), "0"]);
    let web = Web::writing(&server);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=dead"));
    browser.choose("Delete all 3", "Delete 3 dead messages of q?");
    server.ask(&["EVAL", die, "0"]);
    browser.choose("Delete", "Deleted: 3 messages.");
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "1");
    assert_eq!(browser.problem(), "");
}

#[test]
#[ignore = "needs chromium: make test-web"]
fn delayed_messages_that_a_filter_selects_run_now() {
    let server = Server::start();
    for number in 0..4 {
        let group = if number % 2 == 0 { "acme" } else { "other" };
        server.ask(&["DQ.PUSH", "q", "x", "GROUP", group, "DELAY", "3600000"]);
    }
    let web = Web::writing(&server);
    assert_eq!(web.post("dead", &json!({ "queue": "q", "state": "ready", "do": "promote" })).status, 400);
    let mut browser = Browser::start();
    browser.open(&web.page("queue?queue=q&tab=delayed&find=1&group=acme"));
    browser.choose("Run now all 2", "Run now 2 delayed messages of q?");
    browser.choose("Run now", "Due now: 2 messages.");
    assert_eq!(server.text(&["DQ.LEN", "q", "ready"]), "2");
    assert_eq!(browser.problem(), "");
}
