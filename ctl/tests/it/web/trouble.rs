//! What is wrong is said, and comes first.

use super::Web;
use crate::support::{eventually, Server};
use serde_json::{json, Value as Json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn names(answer: &Json) -> Vec<String> {
    let rows = answer["queues"].as_array().unwrap().iter();
    rows.map(|row| row["queue"].as_str().unwrap().to_owned()).collect()
}

fn conditions(web: &Web, queue: &str) -> Json {
    web.read(&format!("/api/queue?queue={queue}"))["conditions"].clone()
}

#[test]
fn a_server_without_the_module_is_not_empty() {
    let mut server = Server::without_module();
    let web = Web::start(&server, &[]);
    for path in ["server", "queue?queue=q", "messages?queue=q"] {
        let answer = web.get(&format!("/api/{path}"));
        assert_eq!(answer.status, 501, "{answer:?}");
        assert!(
            answer.error().contains("not loaded the module") && answer.error().contains("loadmodule"),
            "{answer:?}"
        );
    }
    let list = web.get("/api/queues");
    assert!(list.status == 503 && list.error().contains("not loaded the module"), "{list:?}");
    server.kill();
    server.boot();
    eventually("it is loaded", || web.get("/api/server").status == 200);
    eventually("it has no queues", || web.get("/api/queues").body.contains("\"total\":0"));
}

#[test]
fn queues_in_trouble_come_first() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "a-fine", "x", "DELAY", "3600000"]);
    server.ask(&["DQ.PUSH", "b-paused", "x", "DELAY", "3600000"]);
    server.ask(&["DQ.PAUSE", "b-paused"]);
    server.ask(&["DQ.PUSH", "c-unserved", "x", "AT", "1700000000000"]);
    server.ask(&["DQ.CREATE", "d-full", "MAXLEN", "1"]);
    server.ask(&["DQ.PUSH", "d-full", "x", "DELAY", "3600000"]);
    server.ask(&["DQ.PUSH", "e-dying", "x", "ID", "m"]);
    server.ask(&["DQ.BURY", "e-dying", "m"]);
    let web = Web::start(&server, &[]);
    // Red before amber, and in each colour what loses messages before what is stuck.
    let expected = ["d-full", "c-unserved", "e-dying", "b-paused", "a-fine"];
    eventually("they are sorted", || names(&web.read("/api/queues")) == expected);
    let answer = web.read("/api/queues");
    assert_eq!((&answer["troubled"], &answer["sorted"]), (&json!([2, 2]), &json!(true)));
    let filtered = web.read("/api/queues?contains=d");
    assert_eq!((&filtered["total"], &filtered["troubled"]), (&json!(4), &json!([2, 2])));
    assert_eq!(web.read("/api/queues?contains=-p")["troubled"], json!([0, 1]));
    assert_eq!(answer["queues"][1]["conditions"], json!([["no consumer", "bad"]]));
    let mut reversed = names(&web.read("/api/queues?sort=trouble&reverse=1"));
    reversed.reverse();
    assert_eq!(reversed, expected);
    assert_eq!(web.get("/api/queues?reverse=yes").status, 400);
}

#[test]
fn several_conditions_are_shown_at_once() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "MAXLEN", "1"]);
    server.ask(&["DQ.PUSH", "q", "x", "DELAY", "3600000"]);
    server.ask(&["DQ.PAUSE", "q"]);
    let web = Web::start(&server, &[]);
    assert_eq!(conditions(&web, "q"), json!([["paused", "bad"], ["full", "bad"]]));
    server.ask(&["DQ.RESUME", "q"]);
    assert_eq!(conditions(&web, "q"), json!([["full", "bad"]]));
}

#[test]
fn dead_messages_that_grow_are_a_condition() {
    let server = Server::start();
    for id in ["a", "b"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "DELAY", "3600000"]);
    }
    server.ask(&["DQ.BURY", "q", "a"]);
    let web = Web::start(&server, &[]);
    // It had died before anybody looked, but not long before.
    assert_eq!(conditions(&web, "q"), json!([["messages die", "warning"]]));
    server.ask(&["DQ.PURGE", "q", "dead"]);
    assert_eq!(conditions(&web, "q"), json!([]));
    server.ask(&["DQ.BURY", "q", "b"]);
    assert_eq!(conditions(&web, "q"), json!([["messages die", "warning"]]));
    server.ask(&["DQ.PURGE", "q", "dead"]);
    assert_eq!(conditions(&web, "q"), json!([]));
}

#[test]
fn messages_that_die_are_counted_with_their_most_frequent_cause() {
    let server = Server::start();
    for (id, error) in [("a", "no such user"), ("b", "timeout after 5 ms"), ("c", "timeout after 7 ms")] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
        server.ask(&["DQ.BURY", "q", id, "ERROR", error]);
    }
    server.ask(&["DQ.PUSH", "fine", "x"]);
    let web = Web::start(&server, &[]);
    let expected =
        json!({ "count": 3, "more": false, "read": 3, "left": null, "cause": "timeout after # ms", "of-cause": 2 });
    assert_eq!(web.read("/api/queue?queue=q")["deaths"], expected);
    assert_eq!(web.read("/api/queues?contains=q")["queues"][0]["deaths"], expected);
    assert_eq!(web.read("/api/queue?queue=fine")["deaths"], Json::Null);
    let mut findings = Json::Null;
    eventually("the doctor has looked", || {
        findings = web.read("/api/doctor")["findings"].clone();
        findings.is_array()
    });
    let dying = findings.as_array().unwrap().iter().find(|one| one["check"] == "dying").unwrap();
    assert_eq!(dying["deaths"], expected);
    // Not all of them are read, but that they died is seen.
    let more = "for i = 1, 200 do local id = redis.call('DQ.PUSH', 'q', 'x') redis.call('DQ.BURY', 'q', id) end";
    server.ask(&["EVAL", more, "0"]);
    let many = web.read("/api/queue?queue=q")["deaths"].clone();
    assert_eq!(
        many,
        json!({ "count": 200, "more": true, "read": 100, "left": null, "cause": "(rejected)", "of-cause": 100 })
    );
}

#[test]
fn deaths_of_which_some_are_gone_are_counted_as_at_least_so_many() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "few", "DEADLEN", "5"]);
    let die = "for i = 1, 8 do for _, key in ipairs(ARGV) do redis.call('DQ.BURY', key, redis.call('DQ.PUSH', key, 'x')) end end";
    server.ask(&["EVAL", die, "0", "few", "all", "redriven"]);
    server.ask(&["DQ.REDRIVE", "redriven", "COUNT", "3"]);
    let web = Web::start(&server, &[]);
    for (queue, count, more) in [("few", 5, true), ("all", 8, false), ("redriven", 5, true)] {
        let deaths = web.read(&format!("/api/queue?queue={queue}"))["deaths"].clone();
        assert_eq!((&deaths["count"], &deaths["more"]), (&json!(count), &json!(more)), "{queue}: {deaths}");
    }
}

#[test]
fn groups_that_hold_all_messages_are_a_condition() {
    let server = Server::start();
    for id in ["a", "b"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "GROUP", "g"]);
    }
    let web = Web::writing(&server);
    // The second one waits for the first, which anybody may take.
    assert_eq!(conditions(&web, "q"), json!([]));
    web.act("pause", json!({ "queue": "q", "group": "g" }));
    assert_eq!(conditions(&web, "q"), json!([["groups held", "note"]]));
    let held = web.read("/api/queue?queue=q");
    assert_eq!(held["held"], json!([{ "group": "g", "why": "paused", "until": null }]));
    assert_eq!((&held["held-groups"], &held["paused-groups"]), (&json!(1), &json!(1)));
}

#[test]
fn groups_that_are_paused_are_counted_although_they_hold_nothing_back() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "GROUP", "later", "DELAY", "3600000"]);
    let web = Web::start(&server, &[]);
    let paused = || web.read("/api/queue?queue=q")["paused-groups"].clone();
    assert_eq!(paused(), 0);
    for group in ["later", "empty"] {
        server.ask(&["DQ.PAUSE", "q", "GROUP", group]);
    }
    assert_eq!((paused(), conditions(&web, "q")), (json!(2), json!([])));
}

#[test]
fn the_findings_of_the_doctor_are_shown() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "MAXLEN", "1"]);
    server.ask(&["DQ.PUSH", "q", "x"]);
    let web = Web::start(&server, &[]);
    let mut findings = Json::Null;
    eventually("it has looked", || {
        findings = web.read("/api/doctor")["findings"].clone();
        findings.is_array()
    });
    let found = findings.as_array().unwrap();
    let full = found.iter().find(|one| one["check"] == "full").unwrap_or_else(|| panic!("{findings}"));
    assert_eq!((&full["severity"], &full["queue"]), (&json!("critical"), &json!("q")));
    assert!(full["what"].is_string() && full["why"].is_string() && full["do"].is_string(), "{full}");
    // Somebody who looks again sees what has changed within seconds.
    let looked = || web.read("/api/doctor")["looked"].as_i64().unwrap();
    let first = looked();
    let mut second = first;
    eventually("it has looked again", || {
        second = looked();
        second > first
    });
    assert!(second - first < 20_000, "{second} - {first}");
}

#[test]
fn the_doctor_looks_again_when_it_is_asked_to_and_after_each_change() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q"]);
    server.ask(&["DQ.PAUSE", "q", "IN"]);
    let web = Web::writing(&server);
    // The look that is asked for, once it is done.
    let look = |path: &str| {
        let mut answer = web.read(path);
        eventually("it has looked", || {
            if answer["looking"] == true {
                answer = web.read("/api/doctor");
            }
            answer["looking"] == false
        });
        let is_closed = answer["findings"].as_array().unwrap().iter().any(|one| one["check"] == "closed");
        (answer["looked"].as_i64().unwrap(), is_closed)
    };
    let (first, is_closed) = look("/api/doctor");
    assert!(is_closed);
    server.ask(&["DQ.RESUME", "q"]);
    let (second, is_closed) = look("/api/doctor?again=1");
    assert!(second > first && !is_closed);
    web.act("pause", json!({ "queue": "q", "flow": "in" }));
    assert!(look("/api/doctor").1, "nobody has to ask for a look after a change");
}

#[test]
fn history_is_kept_before_anybody_looks() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x"]);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m"]);
    let web = Web::start(&server, &[]);
    let stats = || server.text(&["INFO", "commandstats"]);
    // Those of the queue, and how late it was.
    eventually("it is sampled", || stats().contains("cmdstat_DQ.INFO:") && stats().contains("cmdstat_DQ.STATS:"));
    // So the first look knows what has died since.
    server.ask(&["DQ.BURY", "q", "m"]);
    assert!(conditions(&web, "q").to_string().contains("messages die"));
}

#[test]
fn a_server_that_loads_its_data_is_not_sampled() {
    // Loading takes five seconds, between whose parts clients are served.
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "always", "--key-load-delay", "1000"]);
    server.ask(&["EVAL", "for i = 1, 5000 do redis.call('DQ.PUSH', 'q', 'x') end", "0"]);
    let web = Web::start(&server, &[]);
    let pushed = |answer: &Json| answer["totals"]["total_pushed"].as_i64().unwrap();
    assert_eq!(pushed(&web.read("/api/server")), 5000);
    server.kill();
    let is_up = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            server.boot();
            is_up.store(true, Ordering::Relaxed);
        });
        let mut loads = false;
        while !is_up.load(Ordering::Relaxed) {
            let answer = web.get("/api/server");
            if answer.status == 200 {
                assert_eq!(pushed(&answer.json()), 5000);
            } else {
                loads |= answer.error().contains("is loading its data");
            }
        }
        assert!(loads, "nobody saw that it loads");
    });
    let history = || web.read("/api/server")["history"].as_array().unwrap().clone();
    eventually("it is sampled again", || history().len() >= 3);
    let totals: Vec<_> = history().iter().map(|row| row[5].as_i64()).collect();
    // Once or more, for as long as it could not be read.
    assert!(totals.contains(&None) && totals.iter().flatten().all(|total| *total == 5000), "{totals:?}");
}

#[test]
fn times_are_unknown_until_something_is_delivered() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x"]);
    let web = Web::start(&server, &[]);
    let history = web.read("/api/queue?queue=q")["history"].clone();
    for sample in history.as_array().unwrap() {
        assert_eq!((&sample[1], &sample[8], &sample[9]), (&json!(1), &Json::Null, &Json::Null), "{history}");
    }
}
