//! What the API changes.

use super::Web;
use crate::support::Server;
use serde_json::json;
use std::fs::File;
use std::path::Path;

#[test]
fn each_action_does_what_its_command_does() {
    let server = Server::start();
    each_action(&Web::writing(&server), &server);
}

/// Does every action once, and looks at what became of the queue.
pub fn each_action(web: &Web, server: &Server) {
    let state = |id: &str| web.read(&format!("/api/message?queue=work&id={id}"))["message"]["state"].clone();
    let pushed =
        web.act("push", json!({ "queue": "work", "payload": "x", "id": "a", "delay": 3_600_000, "priority": 3 }));
    assert_eq!((&pushed["id"], state("a")), (&json!("a"), json!("delayed")));
    web.act("push", json!({ "queue": "work", "payload-base64": "_wA", "id": "b", "group": "g", "retries": 0 }));
    let b = web.read("/api/message?queue=work&id=b")["message"].clone();
    assert_eq!((&b["payload-base64"], &b["group"], &b["retries"]), (&json!("/wA="), &json!("g"), &json!(0)));

    web.act("pause", json!({ "queue": "work", "for": 60_000 }));
    assert!(web.read("/api/queue?queue=work")["info"]["paused-until"].is_number());
    web.act("resume", json!({ "queue": "work" }));
    assert_eq!(web.read("/api/queue?queue=work")["info"]["paused"], 0);

    web.act("reschedule", json!({ "queue": "work", "id": "a", "at": 4_000_000_000_000_i64, "priority": -5 }));
    let a = web.read("/api/message?queue=work&id=a")["message"].clone();
    assert_eq!((&a["due"], &a["priority"]), (&json!(4_000_000_000_000_i64), &json!(-5)));
    assert_eq!(web.act("promote", json!({ "queue": "work", "id": "a" }))["promoted"], 1);
    assert_eq!(state("a"), "ready");
    web.act("reschedule", json!({ "queue": "work", "id": "a", "delay": 3_600_000 }));
    assert_eq!(web.act("promote", json!({ "queue": "work", "all": true }))["promoted"], 1);

    for id in ["d1", "d2", "d3"] {
        web.act("push", json!({ "queue": "work", "payload": "x", "id": id }));
        server.ask(&["DQ.BURY", "work", id]);
    }
    assert_eq!(web.act("redrive", json!({ "queue": "work", "id": "d2" }))["redriven"], 1);
    assert_eq!(web.act("redrive", json!({ "queue": "work", "count": 1, "delay": 3_600_000 }))["redriven"], 1);
    assert_eq!((state("d1"), state("d2"), state("d3")), (json!("delayed"), json!("ready"), json!("dead")));
    assert_eq!(web.act("redrive", json!({ "queue": "work", "all": true }))["redriven"], 1);

    assert_eq!(web.act("cancel", json!({ "queue": "work", "ids": ["d1", "none"] }))["cancelled"], 1);
    assert_eq!(web.act("purge", json!({ "queue": "work", "state": "ready", "count": 1 }))["purged"], 1);
    let left = web.read("/api/queue?queue=work")["info"]["ready"].as_i64().unwrap();
    assert_eq!(web.act("purge", json!({ "queue": "work", "state": "ready" }))["purged"], left);
    assert_eq!(server.text(&["DQ.LEN", "work"]), "0");

    let headers = json!({ "trace": "1f", "empty": "" });
    web.act("push", json!({ "queue": "work", "payload": "x", "id": "h", "headers": headers }));
    assert_eq!(web.read("/api/message?queue=work&id=h")["message"]["headers"], headers);
    server.ask(&["DQ.POP", "work", "AS", "worker-7"]);
    assert_eq!(web.act("release", json!({ "queue": "work", "consumer": "worker-7", "nocount": true }))["released"], 1);
    assert_eq!(
        (state("h"), web.read("/api/message?queue=work&id=h")["message"]["attempt"].clone()),
        (json!("ready"), json!(0))
    );
    server.ask(&["DQ.POP", "work"]);
    let receipt = web.read("/api/message?queue=work&id=h")["message"]["receipt"].clone();
    let give_back = json!({ "queue": "work", "id": receipt, "delay": 0, "error": "hung", "nocount": true });
    assert_eq!(web.act("nack", give_back.clone())["state"], "ready");
    // The delivery has ended.
    assert_eq!(web.post("nack", &give_back).status, 404);
    let h = web.read("/api/message?queue=work&id=h")["message"].clone();
    assert_eq!((&h["error"], &h["attempt"]), (&json!("hung"), &json!(0)));
    assert_eq!(web.act("bury", json!({ "queue": "work", "id": "h", "error": "no" }))["was"], "ready");
    assert_eq!(state("h"), "dead");
    assert_eq!(web.act("dead", json!({ "queue": "work", "do": "redrive", "text": "no" }))["changed"], 1);
    assert_eq!(state("h"), "ready");

    server.ask(&["DQ.PUSH", "work", "x", "ID", "member", "BATCH", "import"]);
    assert_eq!(web.act("cancel-batch", json!({ "queue": "work", "batch": "import" }))["cancelled"], 1);
    let nightly =
        json!({ "queue": "work", "id": "nightly", "payload": "{}", "cron": "0 3 * * *", "tz": "Europe/Berlin" });
    assert_eq!(web.act("schedule", nightly.clone())["schedule"], "created");
    assert_eq!(web.act("schedule", nightly)["schedule"], "unchanged");
    assert_eq!(web.read("/api/schedules?queue=work")["messages"][0]["tz"], "Europe/Berlin");
    let settings = json!({ "retries": 3, "lease": 60_000, "rate": 5, "rate-period": 1_000 });
    web.act("alter", json!({ "queue": "work", "settings": settings }));
    let info = web.read("/api/queue?queue=work")["info"].clone();
    assert_eq!((&info["retries"], &info["lease"]), (&json!(3), &json!(60_000)));
    assert_eq!((&info["rate"], &info["rate-period"]), (&json!(5), &json!(1_000)));
}

#[test]
fn every_setting_that_a_queue_shows_is_changed() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q"]);
    let web = Web::writing(&server);
    let settings = json!({
        "backoff-base": 10, "backoff-max": 20, "backoff-jitter": 30, "grouporder": "turn",
        "forward": "STREAM jobs TRIM 100", "deadforward": "QUEUE q:dead",
    });
    assert_eq!(web.act("alter", json!({ "queue": "q", "settings": settings }))["altered"], 6);
    let info = web.read("/api/queue?queue=q")["info"].clone();
    for (name, value) in settings.as_object().unwrap() {
        assert_eq!(&info[name], value, "{name}");
    }
    web.act("alter", json!({ "queue": "q", "settings": { "forward": "NONE" } }));
    assert_eq!(web.read("/api/queue?queue=q")["info"]["forward"], "NONE");
    for wrong in [
        json!({ "backoff-jitter": 5 }),
        json!({ "forward": "" }),
        json!({ "forward": "elsewhere" }),
        json!({ "retries": null }),
    ] {
        assert_eq!(web.post("alter", &json!({ "queue": "q", "settings": wrong })).status, 400, "{wrong}");
    }
}

#[test]
fn a_queue_that_was_pushed_to_is_listed_at_once() {
    let server = Server::start();
    let web = Web::writing(&server);
    assert_eq!(web.read("/api/queues")["total"], 0);
    web.act("push", json!({ "queue": "new", "payload": "" }));
    assert_eq!(web.read("/api/queues")["queues"][0]["queue"], "new");
}

#[test]
fn a_group_is_paused_and_resumed() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "GROUP", "ann"]);
    let web = Web::writing(&server);
    let group = || web.read("/api/groups?queue=q&contains=ann")["groups"][0].clone();
    assert_eq!((&group()["paused-until"], &group()["next-delivery"]), (&json!(0), &json!(null)));
    web.act("pause", json!({ "queue": "q", "group": "ann" }));
    assert!(group()["paused-until"].is_null(), "{}", group());
    web.act("pause", json!({ "queue": "q", "group": "bob", "for": 60_000 }));
    let bob = web.read("/api/groups?queue=q&contains=bob")["groups"][0].clone();
    assert!(bob["group"] == "bob" && bob["paused-until"].as_i64() > Some(0), "{bob}");
    assert_eq!(web.post("resume", &json!({ "queue": "q", "group": "ann", "flow": "in" })).status, 400);
    web.act("resume", json!({ "queue": "q", "group": "ann" }));
    assert_eq!(group()["paused-until"], 0);
}

#[test]
fn many_messages_are_changed_in_steps() {
    let server = Server::start();
    server.ask(&["EVAL", "for i = 1, 25000 do redis.call('DQ.PUSH', 'q', 'x', 'DELAY', 3600000) end", "0"]);
    let web = Web::writing(&server);
    assert_eq!(web.act("promote", json!({ "queue": "q", "all": true }))["promoted"], 25_000);
    assert_eq!(web.act("purge", json!({ "queue": "q", "state": "ready" }))["purged"], 25_000);
    let calls =
        |name: &str| server.info("commandstats", &format!("cmdstat_{name}")).split(',').next().unwrap().to_owned();
    assert_eq!((calls("DQ.PROMOTE"), calls("DQ.PURGE")), ("calls=3".to_owned(), "calls=3".to_owned()));
}

#[test]
fn wrong_requests_change_nothing_and_say_why() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m", "DELAY", "3600000"]);
    server.ask(&["DQ.CREATE", "full", "MAXLEN", "1"]);
    server.ask(&["DQ.PUSH", "full", "x"]);
    let web = Web::writing(&server);
    server.ask(&["DQ.CREATE", "closed"]);
    server.ask(&["DQ.PAUSE", "closed", "IN"]);
    let digest = || server.text(&["DQ.LEN", "q", "delayed"]);
    for (action, body, status) in [
        ("push", json!({ "queue": "q" }), 400),
        ("push", json!({ "payload": "x" }), 400),
        ("push", json!({ "queue": "q", "payload": "x", "dely": 5 }), 400),
        ("push", json!({ "queue": "q", "payload": "x", "delay": "5m" }), 400),
        ("push", json!({ "queue": "q", "payload": "x", "delay": 1, "at": 4_000_000_000_000_i64 }), 400),
        ("push", json!({ "queue": "q", "payload": "x", "payload-base64": "" }), 400),
        ("push", json!({ "queue": "q", "payload": "x", "id": "m" }), 409),
        ("push", json!({ "queue": "full", "payload": "x" }), 409),
        ("push", json!({ "queue": "closed", "payload": "x" }), 409),
        ("resume", json!({ "queue": "q", "flow": "up" }), 400),
        ("push", json!(["q", "x"]), 400),
        ("pause", json!({ "queue": "none" }), 404),
        ("pause", json!({ "queue": "q", "for": 0 }), 400),
        ("redrive", json!({ "queue": "q" }), 400),
        ("redrive", json!({ "queue": "q", "all": true, "count": 1 }), 400),
        ("redrive", json!({ "queue": "q", "id": "m" }), 404),
        ("redrive", json!({ "queue": "none", "all": true }), 404),
        ("cancel", json!({ "queue": "q" }), 400),
        ("cancel", json!({ "queue": "q", "id": "none" }), 404),
        ("cancel", json!({ "queue": "q", "ids": "m" }), 400),
        ("promote", json!({ "queue": "q" }), 400),
        ("promote", json!({ "queue": "q", "id": "none" }), 404),
        ("purge", json!({ "queue": "q" }), 400),
        ("purge", json!({ "queue": "q", "state": "all" }), 400),
        ("dead", json!({ "queue": "q" }), 400),
        ("dead", json!({ "queue": "none", "do": "delete" }), 404),
        ("push", json!({ "queue": "q", "payload": "x", "headers": { "a": 1 } }), 400),
        ("release", json!({ "queue": "q" }), 400),
        ("reschedule", json!({ "queue": "q", "id": "m" }), 400),
        ("nack", json!({ "queue": "q", "id": "m" }), 404),
        ("bury", json!({ "queue": "q", "id": "none" }), 404),
        ("schedule", json!({ "queue": "q", "id": "s", "payload": "x" }), 400),
        ("alter", json!({ "queue": "q" }), 400),
        ("alter", json!({ "queue": "q", "settings": { "rate": 5 } }), 400),
        ("alter", json!({ "queue": "q", "settings": { "retries": "5" } }), 400),
        ("alter", json!({ "queue": "q", "settings": { "forward": 5 } }), 400),
        ("reschedule", json!({ "queue": "q", "id": "m", "at": 1_763_700_000 }), 400),
        ("reschedule", json!({ "queue": "q", "id": "none", "delay": 0 }), 404),
        ("queues", json!({}), 405),
        ("nothing", json!({}), 404),
    ] {
        let answer = web.post(action, &body);
        assert_eq!(answer.status, status, "{action} {body}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    assert_eq!(digest(), "1");
    let closed = web.post("push", &json!({ "queue": "closed", "payload": "x" }));
    assert!(closed.error().contains("open the queue"), "{closed:?}");
    web.act("resume", json!({ "queue": "closed", "flow": "in" }));
    web.act("push", json!({ "queue": "closed", "payload": "x" }));
    let broken = web.request("POST", "/api/push", &["X-DQ: 1"], "{\"queue\":");
    assert!(broken.status == 400 && broken.error().contains("JSON"), "{broken:?}");
}

#[test]
fn each_change_is_logged_with_who_asked_and_what_came_of_it() {
    let server = Server::start();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("web-log-{}", std::process::id()));
    let log = File::create(&path).unwrap();
    let web = Web::logging("127.0.0.1", &server, &["--allow-writes"], log.into());
    web.act("push", json!({ "queue": "mail", "id": "m-1", "payload": "secret", "headers": { "a": "secret" } }));
    web.read("/api/queue?queue=mail");
    let body = json!({ "queue": "mail", "state": "ready" }).to_string();
    web.request("POST", "/api/purge", &["X-DQ: 1", "X-Forwarded-For: 10.0.0.5"], &body);
    web.post("redrive", &json!({ "queue": "ma\nil", "ids": ["a", "b"] }));
    let said = std::fs::read_to_string(&path).unwrap();
    let _ = std::fs::remove_file(path);
    let changes: Vec<_> = said.lines().filter(|line| !line.contains("listening on")).collect();
    let is_timed = |line: &&str| line.starts_with("dqctl: 20") && line[7..].find('Z') == Some(23);
    assert!(changes.iter().all(is_timed), "{said}");
    let rest: Vec<_> = changes.iter().map(|line| &line[32..]).collect();
    let none = "the queue has no dead message of this id";
    assert_eq!(
        rest,
        [
            "127.0.0.1: push mail id=\"m-1\": id \"m-1\"",
            "127.0.0.1 for 10.0.0.5: purge mail state=\"ready\": purged 1",
            &format!("127.0.0.1: redrive ma\\x0ail ids=[\"a\",\"b\"]: failed: {none}"),
        ]
    );
}

#[test]
fn a_queue_is_deleted_and_no_other_key_is() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "old", "x"]);
    server.ask(&["SET", "text", "x"]);
    let web = Web::writing(&server);
    assert_eq!(web.act("delete", json!({ "queue": "old" })), json!({ "deleted": true }));
    assert_eq!(web.read("/api/queues")["total"], 0);
    assert_eq!(web.post("delete", &json!({ "queue": "old" })).status, 404);
    assert_eq!(web.post("delete", &json!({ "queue": "text" })).status, 409);
    assert_eq!(server.text(&["EXISTS", "old", "text"]), "1");
}
