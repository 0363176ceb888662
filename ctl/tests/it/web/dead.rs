//! Dead messages: by cause, by conditions, and changed together.

use super::Web;
use crate::support::{eventually, Server};
use serde_json::{json, Value as Json};

/// Ten dead messages of two causes, and one that is not dead.
fn graveyard() -> Server {
    let server = Server::start();
    for number in 0..10 {
        let (id, group) = (format!("m-{number}"), if number < 3 { "acme" } else { "other" });
        server.ask(&["DQ.PUSH", "q", &format!("payload {number}"), "ID", &id, "GROUP", group]);
        let error =
            if number % 2 == 0 { format!("timeout after 52{number}ms\n  at row 7") } else { "no such user".to_owned() };
        server.ask(&["DQ.BURY", "q", &id, "ERROR", &error]);
    }
    server.ask(&["DQ.PUSH", "q", "x", "ID", "alive", "DELAY", "3600000"]);
    server
}

fn ids(answer: &Json) -> Vec<&str> {
    let mut ids: Vec<&str> =
        answer["messages"].as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn dead_messages_are_counted_by_cause() {
    let server = graveyard();
    let web = Web::start(&server, &[]);
    let answer = web.read("/api/dead?queue=q");
    let causes: Vec<_> =
        answer["causes"].as_array().unwrap().iter().map(|one| (one["cause"].clone(), one["count"].clone())).collect();
    assert_eq!(causes, [(json!("no such user"), json!(5)), (json!("timeout after #ms"), json!(5))]);
    assert_eq!((&answer["selected"], &answer["partial"]), (&json!(10), &json!(false)));
    let one = web.read("/api/dead?queue=q&cause=timeout+after+%23ms&count=2");
    // The newest, while the causes stay, so that another one can be chosen.
    assert_eq!((ids(&one), &one["selected"], &one["all-causes"]), (vec!["m-6", "m-8"], &json!(5), &json!(2)));
}

#[test]
fn dead_messages_are_filtered() {
    let server = graveyard();
    let web = Web::start(&server, &[]);
    for (filter, expected) in [
        ("text=TIMEOUT&group=acme", vec!["m-0", "m-2"]),
        ("text=payload+7", vec!["m-7"]),
        ("group=acme", vec!["m-0", "m-1", "m-2"]),
        ("attempts=1", vec![]),
        ("older=3600000", vec![]),
        ("before=1", vec![]),
        ("older=0&text=m-3", vec!["m-3"]),
    ] {
        assert_eq!(ids(&web.read(&format!("/api/dead?queue=q&{filter}"))), expected, "{filter}");
    }
    assert_eq!(web.get("/api/dead?queue=none").status, 404);
    assert_eq!(web.get("/api/dead?queue=q&colour=red").status, 400);
}

#[test]
fn only_selected_dead_messages_are_changed() {
    let server = graveyard();
    let web = Web::writing(&server);
    let redriven = web.act("dead", json!({ "queue": "q", "do": "redrive", "cause": "no such user", "group": "acme" }));
    assert_eq!((&redriven["changed"], &redriven["cursor"]), (&json!(1), &json!("0")));
    assert_eq!(web.read("/api/message?queue=q&id=m-1")["message"]["state"], "ready");
    assert_eq!(web.act("dead", json!({ "queue": "q", "do": "delete", "text": "timeout" }))["changed"], 5);
    assert_eq!(web.act("dead", json!({ "queue": "q", "do": "delete", "before": 1 }))["changed"], 0);
    assert_eq!(ids(&web.read("/api/dead?queue=q")), ["m-3", "m-5", "m-7", "m-9"]);
    assert_eq!(web.read("/api/message?queue=q&id=alive")["message"]["state"], "delayed");
}

#[test]
fn letters_are_filtered_and_sent_back_to_where_they_died() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "DEADFORWARD", "QUEUE", "letters"]);
    for (id, error) in [("a", "timeout"), ("b", "timeout"), ("c", "refused"), ("d", "refused")] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
        server.ask(&["DQ.BURY", "q", id, "ERROR", error]);
    }
    eventually("they are moved", || server.text(&["DQ.LEN", "letters"]) == "4");
    let web = Web::writing(&server);
    assert_eq!(
        (&web.read("/api/queue?queue=letters")["letters"], &web.read("/api/queue?queue=q")["letters"]),
        (&json!(true), &json!(false))
    );
    let answer = web.read("/api/dead?queue=letters&state=letters&cause=refused");
    assert_eq!((ids(&answer), answer["causes"].as_array().unwrap().len()), (vec!["c", "d"], 2));
    assert_eq!((&answer["messages"][0]["from"], &answer["messages"][0]["error"]), (&json!("q"), &json!("refused")));
    server.ask(&["DQ.PUSH", "q", "new", "ID", "a"]);
    let sent = web.act("dead", json!({ "queue": "letters", "state": "letters", "do": "redrive", "cause": "timeout" }));
    assert_eq!((&sent["changed"], &sent["left"]), (&json!(1), &json!(1)));
    let sent = web.act("redrive", json!({ "queue": "letters", "state": "letters", "ids": ["c"], "delay": 60000 }));
    assert_eq!((&sent["redriven"], &sent["left"]), (&json!(1), &json!(0)));
    assert_eq!(web.read("/api/message?queue=q&id=c")["message"]["state"], "delayed");
    let deleted =
        web.act("dead", json!({ "queue": "letters", "state": "letters", "do": "delete", "cause": "refused" }));
    assert_eq!((&deleted["changed"], server.text(&["DQ.LEN", "letters"])), (&json!(1), "1".to_owned()));
}

#[test]
fn letters_are_counted_and_selected_by_the_queue_in_which_they_died() {
    let server = Server::start();
    let other = "other\u{e9}";
    for (queue, ids) in [("orders", &["a", "b", "c"][..]), (other, &["d", "e"])] {
        server.ask(&["DQ.CREATE", queue, "DEADFORWARD", "QUEUE", "letters"]);
        for id in ids {
            server.ask(&["DQ.PUSH", queue, "x", "ID", id]);
            server.ask(&["DQ.BURY", queue, id, "ERROR", if *id == "a" { "refused" } else { "timeout" }]);
        }
    }
    eventually("they are moved", || server.text(&["DQ.LEN", "letters"]) == "5");
    let web = Web::writing(&server);
    let counted = |answer: &Json, list: &str, name: &str| -> Vec<(String, u64)> {
        let one = |one: &Json| (one[name].as_str().unwrap().to_owned(), one["count"].as_u64().unwrap());
        answer[list].as_array().unwrap().iter().map(one).collect()
    };
    let all = web.read("/api/dead?queue=letters&state=letters&count=1");
    assert_eq!(counted(&all, "origins", "from"), [("orders".to_owned(), 3), (other.to_owned(), 2)]);
    let of_one = web.read("/api/dead?queue=letters&state=letters&from=other%C3%A9");
    assert_eq!(ids(&of_one), ["d", "e"]);
    assert_eq!(counted(&of_one, "causes", "cause"), [("timeout".to_owned(), 2)]);
    assert_eq!(of_one["origins"], all["origins"], "another one can be chosen");
    let of_cause = web.read("/api/dead?queue=letters&state=letters&cause=timeout&from=orders");
    assert_eq!(ids(&of_cause), ["b", "c"]);
    assert_eq!(counted(&of_cause, "origins", "from"), [("orders".to_owned(), 2), (other.to_owned(), 2)]);
    let sent = json!({ "queue": "letters", "state": "letters", "do": "redrive", "from": other });
    assert_eq!(web.act("dead", sent)["changed"], 2);
    assert_eq!((server.text(&["DQ.LEN", other]), server.text(&["DQ.LEN", "letters"])), ("2".into(), "3".into()));
    assert_eq!(web.read("/api/dead?queue=orders")["origins"], json!([]));
}

#[test]
fn messages_of_other_states_are_filtered_and_removed() {
    let server = graveyard();
    for (id, group) in [("r-1", "acme"), ("r-2", "other")] {
        server.ask(&["DQ.PUSH", "q", &format!("ready {id}"), "ID", id, "GROUP", group]);
    }
    let web = Web::writing(&server);
    assert_eq!(ids(&web.read("/api/dead?queue=q&state=ready&text=READY")), ["r-1", "r-2"]);
    assert_eq!(ids(&web.read("/api/dead?queue=q&state=delayed&text=ali")), ["alive"]);
    assert_eq!(web.get("/api/dead?queue=q&state=late").status, 400);
    let only = json!({ "queue": "q", "state": "ready", "text": "ready", "group": "acme" });
    let with = |more: (&str, &str)| {
        let mut body = only.clone();
        body[more.0] = more.1.into();
        body
    };
    assert_eq!(web.post("dead", &with(("do", "redrive"))).status, 400);
    assert_eq!(web.post("redrive", &json!({ "queue": "q", "state": "ready", "all": true })).status, 400);
    assert_eq!(web.act("dead", with(("do", "delete")))["changed"], 1);
    assert_eq!(ids(&web.read("/api/dead?queue=q&state=ready")), ["r-2"]);
}

#[test]
fn messages_that_were_redriven_by_mistake_are_buried_again() {
    let server = graveyard();
    server.ask(&["DQ.REDRIVE", "q", "COUNT", "10"]);
    server.ask(&["DQ.POP", "q", "COUNT", "2", "LEASE", "3600000"]);
    let web = Web::writing(&server);
    let bury = |state: &str, with: (&str, &str)| {
        let mut body = json!({ "queue": "q", "do": "bury", "state": state, "error": "by mistake" });
        body[with.0] = with.1.into();
        body
    };
    assert_eq!(web.act("dead", bury("ready", ("group", "acme")))["changed"], 2);
    let buried = web.read("/api/message?queue=q&id=m-2")["message"].clone();
    assert_eq!((&buried["state"], &buried["error"]), (&json!("dead"), &json!("by mistake")));
    // Of those that are named, what a consumer has or is dead already is left alone.
    let named = json!({ "queue": "q", "ids": ["m-0", "m-1", "m-3", "m-4", "alive", "none"] });
    assert_eq!(web.act("bury", named)["buried"], 2);
    assert_eq!(web.act("dead", bury("ready", ("text", "payload")))["changed"], 5);
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "9");
    assert_eq!(server.text(&["DQ.LEN", "q", "inflight"]), "2");
    for state in ["inflight", "dead", "letters", "done"] {
        assert_eq!(web.post("dead", &bury(state, ("text", "x"))).status, 400, "{state}");
    }
    assert_eq!(web.post("bury", &json!({ "queue": "q", "id": "m-0", "ids": ["m-1"] })).status, 400);
    assert_eq!(web.post("bury", &json!({ "queue": "q" })).status, 400);
}

#[test]
fn the_most_frequent_of_many_causes_are_listed() {
    let server = Server::start();
    let script = "for i = 0, 299 do \
        local cause = 'word ' .. string.char(97 + i % 26) .. string.char(97 + math.floor(i / 26)) \
        for n = 1, i == 250 and 2 or 1 do \
            local id = redis.call('DQ.PUSH', 'q', 'x') redis.call('DQ.BURY', 'q', id, 'ERROR', cause) \
        end end";
    server.ask(&["EVAL", script, "0"]);
    let web = Web::start(&server, &[]);
    let answer = web.read("/api/dead?queue=q&count=1");
    let causes = answer["causes"].as_array().unwrap();
    assert_eq!((causes.len(), &answer["all-causes"], &answer["selected"]), (200, &json!(300), &json!(301)));
    assert_eq!((&causes[0]["cause"], &causes[0]["count"]), (&json!("word qj"), &json!(2)));
}

#[test]
fn a_filter_leaves_messages_in_their_order() {
    let server = Server::start();
    let push = |id: &str, options: &[&str]| drop(server.ask(&[&["DQ.PUSH", "q", "x", "ID", id], options].concat()));
    push("first", &["AT", "1700000000000"]);
    push("second", &["AT", "1700000001000"]);
    push("urgent", &["PRIORITY", "9"]);
    push("tomorrow", &["DELAY", "86400000"]);
    push("soon", &["DELAY", "3600000"]);
    let web = Web::start(&server, &[]);
    let order = |answer: &Json| {
        let ids =
            answer["messages"].as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    for state in ["ready", "delayed"] {
        let listed = order(&web.read(&format!("/api/messages?queue=q&state={state}")));
        assert_eq!(order(&web.read(&format!("/api/dead?queue=q&state={state}&text=x"))), listed, "{state}");
    }
    assert_eq!(order(&web.read("/api/dead?queue=q&state=ready&count=2")), ["urgent", "first"]);
    for id in ["first", "soon"] {
        server.ask(&["DQ.BURY", "q", id]);
    }
    assert_eq!(order(&web.read("/api/dead?queue=q")), order(&web.read("/api/messages?queue=q&state=dead")));
}
