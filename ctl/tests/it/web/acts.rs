//! Acts as the page asks for them: the same commands with the same options.

use super::Web;
use crate::dqctl::{field, json as read, ok};
use crate::support::{eventually, Server};
use crate::work::written;
use serde_json::{json, Value as Json};
use std::fs::File;
use std::process::Stdio;

/// A queue with three dead messages, two of one error, and two delayed ones.
fn queue() -> Server {
    let server = Server::start();
    for (id, error) in [("a", "timeout"), ("b", "timeout"), ("c", "refused")] {
        ok(&server, &["push", "q", "x", "--id", id]);
        ok(&server, &["bury", "q", id, "--error", error]);
    }
    for id in ["later-1", "later-2"] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
    }
    server
}

#[test]
fn a_question_names_the_number_that_is_then_changed() {
    for (act, number, state) in [
        (json!({ "act": "redrive", "queue": "q" }), 3, "dead"),
        (json!({ "act": "redrive", "queue": "q", "where": ["error=timeout"] }), 2, "dead"),
        (json!({ "act": "cancel", "queue": "q", "where": ["error=timeout"], "count": 1 }), 1, "dead"),
        (json!({ "act": "purge", "queue": "q", "states": ["delayed"] }), 2, "delayed"),
        (json!({ "act": "promote", "queue": "q" }), 2, "delayed"),
    ] {
        let server = queue();
        let web = Web::writing(&server);
        let asked = web.ask(act.clone());
        assert!(asked["question"].as_str().unwrap().contains(&format!(" {number} ")), "{asked}");
        assert_eq!((&asked["number"], &asked["most"]), (&json!(number), &json!({ "q": number })), "{asked}");
        let before: i64 = server.text(&["DQ.LEN", "q", state]).parse().unwrap();
        // More come meanwhile.
        for id in ["dead-4", "later-3"] {
            ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
        }
        ok(&server, &["bury", "q", "dead-4", "--error", "timeout"]);
        let mut most = act.clone();
        most["most"] = asked["most"].clone();
        assert_eq!(web.act(most)["number"], number, "{act}");
        assert_eq!(server.text(&["DQ.LEN", "q", state]), (before + 1 - number).to_string(), "{act}");
    }
}

#[test]
fn the_page_offers_acts_on_all_messages_of_a_list() {
    for (tab, words, filter) in [
        ("dead", "Redrive", ""),
        ("dead", "Purge", ""),
        ("dead", "Delete", "&text=timeout&older=0s"),
        ("delayed", "Run now", ""),
        ("delayed", "Bury", "&field=id&text=later"),
        ("delayed", "Purge", ""),
        ("done", "Purge", ""),
    ] {
        let server = queue();
        ok(&server, &["push", "q", "x", "--id", "d", "--retain", "1h"]);
        server.ask(&["DQ.POP", "q"]);
        ok(&server, &["complete", "q", "d"]);
        let web = Web::writing(&server);
        let page = web.view(&format!("queue?queue=q&tab={tab}{filter}"));
        let button = page.split("<button").find(|button| button.contains(&format!(">{words} all…")));
        let act = button.and_then(|button| button.split("data-act=\"").nth(1)).expect("a button").split('"').next();
        let mut act: Json = serde_json::from_str(&act.unwrap().replace("&quot;", "\"")).unwrap();
        let before: i64 = server.text(&["DQ.LEN", "q", tab]).parse().unwrap();
        let number = if filter.contains("timeout") { 2 } else { before };
        let asked = web.ask(act.clone());
        assert_eq!(asked["number"], number, "{tab}: {words}: {asked}");
        act["most"] = asked["most"].clone();
        assert_eq!(web.act(act)["number"], number, "{tab}: {words}");
        assert_eq!(server.text(&["DQ.LEN", "q", tab]), (before - number).to_string(), "{tab}: {words}");
    }
}

#[test]
fn acts_of_one_queue_or_message_do_what_their_commands_do() {
    let server = queue();
    let web = Web::writing(&server);
    let lines = |act: Json| web.act(act)["lines"].clone();
    assert_eq!(
        lines(json!({ "act": "push", "queue": "q", "payload": "-x", "id": "m", "header": ["a=b"] })),
        json!(["m"])
    );
    assert_eq!(field(&server, "q", "m", "payload"), "-x");
    assert_eq!(lines(json!({ "act": "reschedule", "queue": "q", "id": "m", "in": "1h" })), json!(["m"]));
    assert_eq!(lines(json!({ "act": "bury", "queue": "q", "ids": ["m"], "error": "-bad" })), json!(["m"]));
    assert_eq!(field(&server, "q", "m", "error"), "-bad");
    assert_eq!(web.act(json!({ "act": "redrive", "queue": "q", "ids": ["m", "none"] }))["number"], 1);
    server.ask(&["DQ.POP", "q", "AS", "w"]);
    assert_eq!(web.act(json!({ "act": "release", "queue": "q", "consumer": "w" }))["number"], 1);
    assert_eq!(
        lines(json!({ "act": "schedule", "queue": "q", "id": "s", "payload": "x", "every": "1h" })),
        json!(["created"])
    );
    web.act(json!({ "act": "pause", "queue": "q", "group": "ann", "for": "1h" }));
    web.act(json!({ "act": "pause", "queue": "q", "flow": "in" }));
    web.act(json!({ "act": "alter", "queue": "q", "lease": "1m", "rate": "5/1s" }));
    let info = read(&server, &["info", "q"]).remove(0);
    let fields = ["paused-groups", "closed", "lease", "rate"].map(|name| info[name].as_i64().unwrap());
    assert_eq!(fields, [1, 1, 60_000, 5]);
    web.act(json!({ "act": "delete", "queue": "q" }));
    assert_eq!(server.text(&["EXISTS", "q"]), "0");
}

#[test]
fn an_act_on_a_pattern_changes_the_queues_that_were_asked_about() {
    let server = Server::start();
    for queue in ["svc:a", "svc:b", "other"] {
        ok(&server, &["push", queue, "x", "--id", "m"]);
        ok(&server, &["bury", queue, "m"]);
    }
    let web = Web::writing(&server);
    let asked = web.ask(json!({ "act": "redrive", "queue": "svc:*" }));
    assert_eq!(asked["most"], json!({ "svc:a": 1, "svc:b": 1 }), "{asked}");
    ok(&server, &["push", "svc:c", "x", "--id", "m"]);
    ok(&server, &["bury", "svc:c", "m"]);
    let done = web.act(json!({ "act": "redrive", "queue": "svc:*", "most": asked["most"] }));
    assert_eq!(done["number"], 2, "{done}");
    assert_eq!(["svc:c", "other"].map(|queue| server.text(&["DQ.LEN", queue, "dead"])), ["1", "1"]);
}

#[test]
fn a_question_offers_the_options_and_names_the_command() {
    let server = queue();
    let web = Web::writing(&server);
    let asked = web.ask(json!({ "act": "redrive", "queue": "q", "where": ["error~no route"] }));
    assert_eq!(asked["command"], "dqctl redrive q --where 'error~no route'");
    let names: Vec<&str> = asked["options"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(names.contains(&"in") && names.contains(&"count") && !names.contains(&"yes"), "{names:?}");
    // What is missing is said, and not an error: it is typed into the same dialog.
    let missing = web.ask(json!({ "act": "push", "queue": "q" }));
    assert!(missing["missing"].is_string() && missing["question"].is_null(), "{missing}");
    let settings = web.ask(json!({ "act": "alter", "queue": "q" }));
    let lease = settings["options"].as_array().unwrap().iter().find(|one| one["name"] == "lease").unwrap();
    assert_eq!(lease["placeholder"], "now 30s");
}

#[test]
fn what_is_no_act_is_refused() {
    let server = queue();
    let web = Web::writing(&server);
    for (status, body) in [
        (400, json!({ "act": "nonsense", "queue": "q" })),
        (400, json!({ "act": "ls" })),
        (400, json!({ "act": "web", "allow-writes": true })),
        (400, json!({ "act": "cancel", "queue": "q" })),
        (400, json!({ "act": "redrive", "queue": "q", "wher": "error~x" })),
        (400, json!({ "act": "redrive", "queue": "q", "url": "redis://elsewhere" })),
        (400, json!({ "act": "batch", "queue": "q", "name": "b" })),
        (400, json!({ "act": "schedule", "queue": "q" })),
        (400, json!([])),
        (404, json!({ "act": "pause", "queue": "none" })),
        (404, json!({ "act": "purge", "queue": "none", "states": ["dead"] })),
        (404, json!({ "act": "redrive", "queue": "none*" })),
        (404, json!({ "act": "cancel", "queue": "q", "ids": ["none"] })),
        (404, json!({ "act": "redrive", "queue": "q", "ids": ["none"] })),
    ] {
        let answer = web.post("do", &body);
        assert!(answer.status == status && !answer.error().is_empty(), "{body}: {answer:?}");
    }
    // A payload of one dash is no request to read the input of the program.
    web.act(json!({ "act": "push", "queue": "q", "payload": "-", "id": "dash" }));
    assert_eq!(field(&server, "q", "dash", "payload"), "-");
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "3");
}

#[test]
fn each_change_is_logged_without_what_messages_hold() {
    let server = queue();
    let log = File::create(server.dir().join("web-log")).unwrap();
    let web = Web::logging("127.0.0.1", &server, &["--allow-writes"], Stdio::from(log));
    web.act(json!({ "act": "redrive", "queue": "q", "where": ["error=timeout"] }));
    web.act(json!({ "act": "push", "queue": "q", "payload": "secret", "header": ["a=secret"], "id": "m" }));
    let body = json!({ "act": "cancel", "queue": "q", "ids": ["m"] }).to_string();
    web.request("POST", "/api/do", &["X-DQ: 1", "X-Forwarded-For: 10.0.0.5"], &body);
    assert_eq!(web.post("do", &json!({ "act": "reschedule", "queue": "q", "id": "later-1", "in": "x" })).status, 400);
    // The log is written beside the answers.
    let logged = || written(&server, "web-log");
    eventually("the last change is logged", || logged().contains("failed: "));
    let text = logged();
    for expected in
        ["dqctl redrive q --where error=timeout: 2 redriven", " for 10.0.0.5: dqctl cancel q m: ", "failed: "]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("secret"), "{text}");
}
