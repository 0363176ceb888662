//! What the page and its API show.

use super::Web;
use crate::dqctl::{dqctl, json, ok, on_terminal};
use crate::support::{eventually, Server};
use crate::work::Work;
use dq_client::cmd;
use serde_json::{json, Value as Json};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn the_page_has_all_it_needs_and_nothing_from_elsewhere() {
    let server = Server::start();
    let web = Web::start(&server, &[]);
    let page = web.get("/");
    assert!(page.status == 200 && page.head.contains("content-type: text/html"), "{page:?}");
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    // Each file that a file names is served.
    let mut paths = vec!["/".to_owned()];
    let mut seen = 0;
    while let Some(path) = paths.get(seen).cloned() {
        seen += 1;
        let file = web.get(&path);
        assert_eq!(file.status, 200, "{path}");
        assert!(!file.body.contains("https://") && !file.body.contains("innerHTML"), "{path}");
        for quoted in file.body.split('"') {
            let name = quoted.strip_prefix("./").or_else(|| quoted.strip_prefix('/')).unwrap_or_default();
            let named = format!("/{name}");
            if [".js", ".css", ".svg"].iter().any(|end| name.ends_with(end)) && !paths.contains(&named) {
                paths.push(named);
            }
        }
    }
    assert_eq!(paths.len(), 29, "{paths:?}");
    assert_eq!(web.get("/other").status, 404);
    assert_eq!(web.request("HEAD", "/", &[], "").body, "");
}

#[test]
fn a_queue_shows_how_late_it_delivers_as_the_command_line_does() {
    let server = Server::start();
    let web = Web::start(&server, &[]);
    server.ask(&["DQ.PUSH", "late", "x", "AT", "1000000000000"]);
    server.ask(&["DQ.POP", "late"]);
    let late = web.read("/api/queue?queue=late");
    let ms = late["stats"]["lateness-sum-ms"].as_i64().unwrap();
    assert!(ms > 4_194_304, "later than any bucket but the last: {late}");
    assert_eq!(late["times"]["lateness"], json!([ms, ms, ms]), "the only one is as late as all");
}

#[test]
fn queues_are_shown_with_the_fields_of_info() {
    let server = Server::start();
    let web = Web::start(&server, &[]);
    assert_eq!(web.read("/api/queues")["total"], 0);
    ok(&server, &["push", "mail", "x", "--id", "a"]);
    ok(&server, &["push", "mail", "x", "--in", "1h"]);
    ok(&server, &["push", "Web hooks", "x"]);
    server.ask(&["DQ.BURY", "mail", "a"]);
    eventually("they are found", || web.read("/api/queues")["total"] == 2);
    let queues = web.read("/api/queues?contains=AI");
    assert_eq!(queues["total"], 1);
    let mail = &queues["queues"][0];
    assert_eq!((&mail["queue"], &mail["dead"], &mail["delayed"]), (&json!("mail"), &json!(1), &json!(1)), "{mail}");
    let queue = web.read("/api/queue?queue=Web+hooks");
    assert_eq!((&queue["queue"], &queue["info"]["ready"]), (&json!("Web hooks"), &json!(1)), "{queue}");
    assert!(queue["stats"]["pops-empty"].is_number() && queue["history"].is_array(), "{queue}");
    assert_eq!(queue["times"]["lateness"], json!([null, null, null]), "nothing was delivered");
    let all = web.read("/api/server");
    assert_eq!((&all["totals"]["queues"], &all["writes"], &all["cluster"]), (&json!(2), &json!(false), &json!(false)));
    assert_eq!(all["servers"][0]["server"], format!("127.0.0.1:{}", server.port()));
}

#[test]
fn queues_are_sorted_and_paged() {
    let server = Server::start();
    for (name, count) in [("a", 1), ("b", 3), ("c", 2)] {
        (0..count).for_each(|_| drop(ok(&server, &["push", name, "x"])));
    }
    let web = Web::start(&server, &[]);
    let names = |path: &str| {
        let answer = web.read(path);
        let names = answer["queues"].as_array().unwrap().iter();
        names.map(|row| row["queue"].as_str().unwrap().to_owned()).collect::<String>()
    };
    eventually("they are found", || names("/api/queues") == "abc");
    eventually("they are counted", || names("/api/queues?sort=ready") == "bca");
    assert_eq!(names("/api/queues?sort=ready&offset=1&limit=1"), "c");
    assert_eq!(names("/api/queues?offset=3"), "");
    assert_eq!(web.get("/api/queues?sort=colour").status, 400);
    assert_eq!(web.get("/api/queues?limit=0").status, 400);
}

#[test]
fn queues_are_in_the_order_of_the_numbers_that_are_shown() {
    let server = Server::start();
    let push = "for i = 1, 200 do for n = 1, math.random(30) do redis.call('DQ.PUSH', 'q' .. i, '') end end";
    let web = Web::start(&server, &[]);
    let mut seen = 0;
    eventually("the rates of several looks are known", || {
        server.ask(&["EVAL", push, "0"]);
        let answer = web.read("/api/queues?sort=in&limit=200");
        let rates: Vec<f64> =
            answer["queues"].as_array().unwrap().iter().filter_map(|row| row["rates"]["pushed"].as_f64()).collect();
        assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
        seen += usize::from(rates.len() == 200);
        seen == 20
    });
}

#[test]
fn messages_are_shown_by_state() {
    let server = Server::start();
    for id in ["ready", "dead", "inflight"] {
        server.ask(&["DQ.PUSH", "q", id, "ID", id, "PRIORITY", if id == "inflight" { "9" } else { "0" }]);
    }
    server.ask(&["DQ.PUSH", "q", "later", "ID", "delayed", "DELAY", "3600000"]);
    server.ask(&["DQ.BURY", "q", "dead", "ERROR", "no such user"]);
    server.ask(&["DQ.POP", "q", "LEASE", "3600000"]);
    let web = Web::start(&server, &[]);
    for state in ["ready", "delayed", "inflight", "dead"] {
        let answer = web.read(&format!("/api/messages?queue=q&state={state}"));
        let messages = answer["messages"].as_array().unwrap();
        assert_eq!((messages.len(), &messages[0]["id"], &answer["total"]), (1, &json!(state), &json!(1)), "{answer}");
    }
    let dead = web.read("/api/messages?queue=q&state=dead")["messages"][0].clone();
    assert_eq!(
        (&dead["error"], &dead["reason"], &dead["payload"]),
        (&json!("no such user"), &json!("rejected"), &json!("dead"))
    );
    let one = web.read("/api/message?queue=q&id=inflight")["message"].clone();
    assert!(one["receipt"].is_string() && one["deadline"].is_number(), "{one}");
    for (path, status) in [
        ("/api/messages?queue=q&state=asleep", 400),
        ("/api/messages?queue=none&state=dead", 404),
        ("/api/messages?state=dead", 400),
        ("/api/message?queue=q&id=none", 404),
        ("/api/queue?queue=none", 404),
        ("/api/queue?queue=q&colour=red", 400),
        ("/api/nothing", 404),
        ("/api/pause", 405),
    ] {
        let answer = web.get(path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    server.ask(&["SET", "text", "x"]);
    assert_eq!(web.get("/api/queue?queue=text").status, 409);
}

#[test]
fn schedules_groups_and_ids_are_found() {
    let server = Server::start();
    ok(&server, &["schedule", "q", "nightly", "x", "--cron", "0 3 * * *"]);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m", "GROUP", "customer-7"]);
    server.ask(&["DQ.PUSH", "other", "x", "ID", "m"]);
    let web = Web::start(&server, &[]);
    let schedules = web.read("/api/schedules?queue=q");
    assert_eq!((&schedules["cursor"], &schedules["messages"][0]["cron"]), (&json!("0"), &json!("0 3 * * *")));
    let groups = web.read("/api/groups?queue=q");
    assert_eq!(groups["total"], 1);
    assert_eq!((&groups["groups"][0]["group"], &groups["groups"][0]["waiting"]), (&json!("customer-7"), &json!(1)));
    eventually("it is found", || web.read("/api/search?id=m")["found"].as_array().unwrap().len() == 2);
    let found = web.read("/api/search?id=m&queue=other");
    assert_eq!((&found["found"][0]["queue"], &found["queues"]), (&json!("other"), &json!(1)));
    assert_eq!(web.read("/api/search?id=none")["found"], json!([]));
}

#[test]
fn the_search_finds_the_beginnings_of_ids() {
    let server = Server::start();
    for (queue, id) in [("a", "order-17"), ("a", "order-170"), ("b", "order-171"), ("b", "border-17")] {
        server.ask(&["DQ.PUSH", queue, "x", "ID", id]);
    }
    let web = Web::start(&server, &[]);
    let found = || {
        let answer = web.read("/api/search?id=order-17");
        let ids = answer["found"].as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap().to_owned());
        let mut ids: Vec<String> = ids.collect();
        // The message of this very id is the first.
        if let Some((_, others)) = ids.split_first_mut() {
            others.sort();
        }
        (ids, answer["scanned"].clone(), answer["looked"].clone())
    };
    let expected: Vec<String> = ["order-17", "order-170", "order-171"].map(str::to_owned).into();
    eventually("they are found", || found() == (expected.clone(), json!(2), json!(4)));
    // A receipt finds its message.
    assert_eq!(web.read("/api/search?id=border-17%231882463523799040000")["found"][0]["id"], "border-17");
}

#[test]
fn a_search_that_has_found_enough_says_that_there_are_more() {
    let server = Server::start();
    for id in ["order-1", "order-2", "order-3"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
    }
    let web = Web::start(&server, &[]);
    let found = |count: u32| {
        let answer = web.read(&format!("/api/search?queue=q&id=order&count={count}"));
        (answer["found"].as_array().unwrap().len(), answer["more"].as_bool().unwrap())
    };
    assert_eq!((found(2), found(3), found(4)), ((2, true), (3, false), (3, false)));
    assert_eq!(web.get("/api/search?id=order&count=501").status, 400);
}

#[test]
fn consumers_are_shown_with_what_they_hold() {
    let server = Server::start();
    for id in ["a", "b", "c", "d"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
    }
    server.ask(&["DQ.POP", "q", "LEASE", "3600000", "AS", "early"]);
    let popped = Instant::now();
    eventually("some milliseconds pass", || popped.elapsed() > Duration::from_millis(3));
    server.ask(&["DQ.POP", "q", "COUNT", "2", "LEASE", "3600000", "AS", "late"]);
    server.ask(&["DQ.POP", "q", "LEASE", "3600000"]);
    let web = Web::start(&server, &[]);
    let answer = web.read("/api/consumers?queue=q");
    let consumers: Vec<_> = answer["consumers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["consumer"].clone(), one["messages"].clone()))
        .collect();
    assert_eq!(consumers, [(json!("early"), json!(1)), (json!("late"), json!(2))]);
    let held = web.read("/api/messages?queue=q&state=inflight&consumer=late")["messages"].clone();
    let ids: Vec<_> = held.as_array().unwrap().iter().map(|message| message["id"].clone()).collect();
    assert_eq!(ids, ["b", "c"]);
}

#[test]
fn consumers_of_all_queues_are_listed_those_that_hold_a_message_for_longest_first() {
    let server = Server::start();
    for queue in ["mail", "mail", "sms", "other", "idle"] {
        server.ask(&["DQ.PUSH", queue, "x"]);
    }
    let popped = Instant::now();
    server.ask(&["DQ.POP", "other", "LEASE", "3600000"]);
    server.ask(&["DQ.POP", "sms", "LEASE", "3600000", "AS", "worker-1"]);
    let web = Web::start(&server, &[]);
    let mut list = Vec::new();
    let mut read = |path: &str| {
        let answer = web.read(path);
        let rows = answer["consumers"].as_array().unwrap();
        list = rows.iter().map(|row| format!("{} {} {}", row["queue"], row["consumer"], row["messages"])).collect();
        (answer["queues"] == 4 && answer["read"] == 4, list.join(", ").replace('"', ""))
    };
    // What nobody has given a name to is shown once it is older than what may have been delivered between two readings.
    eventually("that without a name is old", || popped.elapsed() > Duration::from_secs(2));
    server.ask(&["DQ.POP", "mail", "COUNT", "2", "LEASE", "3600000", "AS", "worker-2"]);
    eventually("a later delivery follows", || {
        read("/api/consumers") == (true, "other null 1, sms worker-1 1, mail worker-2 2".to_owned())
    });
    assert_eq!(read("/api/consumers?count=1").1, "other null 1");
    assert_eq!(read("/api/consumers?contains=WORKER").1, "sms worker-1 1, mail worker-2 2");
    assert_eq!(read("/api/consumers?contains=mai").1, "mail worker-2 2");
    assert_eq!(web.get("/api/consumers?colour=red").status, 400);
}

#[test]
fn clients_that_pop_are_listed_although_they_hold_nothing() {
    let server = Server::start();
    ["mail", "bills"].iter().for_each(|queue| drop(server.ask(&["DQ.CREATE", queue])));
    let web = Web::start(&server, &[]);
    let work = Work::start(&server, &["-q", "mail", "-q", "bills"], "true");
    let elsewhere = format!("{}/1", server.url().trim_end_matches('/'));
    let other = Work::start(&server, &["-u", &elsewhere, "-q", "mail"], "true");
    server.until_blocked(3);
    // The name that its consumers have, by which one that is gone is missed.
    let name = format!(":{}:dqctl", work.id());
    let expected = |listed: &Json| {
        let one = |name: &str| listed[0][name].clone();
        (one("host"), one("connections"), one("waiting")) == (json!("127.0.0.1"), json!(2), json!(2))
            && listed[0]["client"].as_str().is_some_and(|client| client.ends_with(&name))
            && listed.as_array().is_some_and(|all| all.len() == 1)
            && listed[0]["last-active"].as_i64().is_some_and(|at| at > 0)
    };
    let listed = json!(json(&server, &["consumers", "--clients"]));
    assert!(expected(&listed), "{listed}");
    assert!(ok(&server, &["consumers", "--clients"]).contains(&format!("{name}\t127.0.0.1\t-\t2\t2\t")));
    let shown = on_terminal(&server, "consumers", true);
    assert!(shown.ends_with("clients that wait: 2; dqctl consumers --clients lists who pops\n"), "{shown}");
    eventually("the page has them too", || expected(&web.read("/api/consumers")["clients"]));
    assert_eq!(web.read("/api/consumers?contains=sidekiq")["clients"], json!([]));
    assert_eq!((work.stop().code, other.stop().code), (0, 0));
    // The right to do so is one that many users do not have.
    server.ask(&["ACL", "SETUSER", "ann", "on", ">pw", "~*", "+@all", "-client"]);
    let url = server.url().replace("redis://", "redis://ann:pw@");
    let denied = dqctl(&server, &["-u", &url, "consumers", "--clients"]);
    assert!(denied.code == 3 && denied.err.contains("ACL SETUSER"), "{denied:?}");
    let web = Web::start(&server, &["-u", &url]);
    eventually("the page has the others", || web.read("/api/consumers")["queues"] == 2);
    assert!(web.read("/api/consumers")["clients"].is_null());
}

#[test]
fn batches_show_how_far_they_are() {
    let server = Server::start();
    let web = Web::start(&server, &[]);
    for (batch, id) in [("small", "a"), ("large", "b"), ("large", "c"), ("large", "d")] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "BATCH", batch]);
    }
    server.ask(&["DQ.PUSH", "q", "x", "ID", "none"]);
    server.ask(&["DQ.BURY", "q", "b"]);
    server.ask(&["DQ.BATCH", "q", "large", "THEN", "done"]);
    let answer = web.read("/api/batches?queue=q");
    let batches = answer["batches"].as_array().unwrap();
    let names: Vec<_> = batches.iter().map(|batch| batch["batch"].as_str().unwrap()).collect();
    assert_eq!((names, &answer["limited"]), (vec!["large", "small"], &json!(false)));
    let large = &batches[0];
    assert_eq!(["total", "left", "dead", "closed"].map(|field| large[field].as_i64().unwrap()), [3, 2, 1, 1]);
    assert_eq!((&large["then"], &large["then-size"]), (&json!("done"), &json!(4)));
    assert_eq!(web.get("/api/batches?queue=none").status, 404);
    let one = web.read("/api/batches?queue=q&batch=small");
    assert_eq!((&one["batches"][0]["batch"], &one["batches"][1]), (&json!("small"), &json!(null)));
    // Its messages, of which the dead one is no more.
    server.ask(&["DQ.RESCHEDULE", "q", "c", "DELAY", "3600000"]);
    let members = web.read("/api/messages?queue=q&batch=large");
    let mut states: Vec<_> =
        members["messages"].as_array().unwrap().iter().map(|one| [&one["id"], &one["state"]]).collect();
    states.sort_by_key(|[id, _]| id.as_str());
    assert_eq!(states, [["c", "delayed"], ["d", "ready"]]);
    assert_eq!(members["limited"], false);
    assert_eq!(web.read("/api/messages?queue=q&batch=large&count=1")["limited"], true);
}

#[test]
fn payloads_stay_text_and_large_ones_are_cut() {
    let server = Server::start();
    let markup = "<script>alert(1)</script>";
    server.ask(&["DQ.PUSH", "q", markup, "ID", "markup"]);
    server.ask(&["DQ.PUSH", "q", &"ä".repeat(1_000_000), "ID", "large"]);
    server
        .client()
        .call(cmd("DQ.PUSH").arg("q").arg(&[0_u8, 255, 1][..]).arg("ID").arg("binary"), dq_client::Resend::Never)
        .unwrap();
    let web = Web::start(&server, &[]);
    let message = |id: &str| web.read(&format!("/api/message?queue=q&id={id}"))["message"].clone();
    assert_eq!(message("markup")["payload"], markup);
    let answer = web.get("/api/message?queue=q&id=markup");
    assert!(answer.head.contains("content-type: application/json") && answer.head.contains("nosniff"), "{answer:?}");
    assert_eq!((&message("binary")["payload-base64"], &message("binary")["payload-size"]), (&json!("AP8B"), &json!(3)));
    let large = message("large");
    assert_eq!((large["payload"].as_str().unwrap().len(), &large["payload-size"]), (1 << 20, &json!(2_000_000)));
    let whole = web.get("/api/payload?queue=q&id=large");
    assert!(
        whole.body == "ä".repeat(1_000_000) && whole.head.contains("content-disposition: attachment"),
        "{}",
        whole.head
    );
    assert!(whole.head.contains("application/octet-stream"), "{}", whole.head);
    let listed = web.read("/api/messages?queue=q&state=ready");
    let sizes: Vec<usize> =
        listed["messages"].as_array().unwrap().iter().filter_map(|row| Some(row["payload"].as_str()?.len())).collect();
    assert!(sizes.iter().all(|size| *size <= 240), "{sizes:?}");
}

#[test]
fn names_of_any_bytes_are_read_and_written() {
    let server = Server::start();
    let name = &[b'q', 255, 0][..];
    let push = cmd("DQ.PUSH").arg(name).arg("x").arg("ID").arg(&[254_u8][..]).clone();
    server.client().call(&push, dq_client::Resend::Never).unwrap();
    let web = Web::writing(&server);
    eventually("it is found", || web.read("/api/queues")["total"] == 1);
    assert_eq!(web.read("/api/queues")["queues"][0]["queue-base64"], "cf8A");
    // The answer's own form, that of addresses, and percent-encoded bytes.
    for query in ["queue-base64=cf8A&id-base64=%2Fg%3D%3D", "queue-base64=cf8A&id-base64=_g", "queue=q%ff%00&id=%fe"] {
        assert_eq!(web.read(&format!("/api/message?{query}"))["message"]["id-base64"], "/g==", "{query}");
    }
    assert_eq!(web.get("/api/queue?queue-base64=%21").status, 400);
    let cancelled = web.act("cancel", json!({ "queue-base64": "cf8A", "ids-base64": ["/g=="] }));
    assert_eq!(cancelled["states"], json!(["ready"]));
}

#[test]
fn a_page_of_5000_queues_reads_only_its_own() {
    let server = Server::start();
    let script = "for i = 0, 4999 do redis.call('DQ.PUSH', string.format('queue:%04d', i), 'x') end";
    server.ask(&["EVAL", script, "0"]);
    let web = Web::start(&server, &[]);
    eventually("they are found", || web.read("/api/queues?sort=name&limit=50")["total"] == 5000);
    let calls = || {
        let stats = server.info("commandstats", "cmdstat_DQ.INFO");
        stats.split(',').find_map(|part| part.strip_prefix("calls=")?.parse::<u64>().ok()).unwrap_or(0)
    };
    let before = calls();
    for offset in ["0", "4950"] {
        let page = web.read(&format!("/api/queues?sort=name&limit=50&offset={offset}"));
        assert_eq!((page["queues"].as_array().unwrap().len(), &page["total"]), (50, &json!(5000)));
    }
    // Those of the two pages, and the 500 whose history is kept.
    assert!(calls() - before < 2_000, "{}", calls() - before);
    assert_eq!(web.read("/api/queues?sort=name&offset=4999")["queues"][0]["queue"], "queue:4999");
    assert_eq!(web.read("/api/queues?contains=queue:123")["total"], 10);
}

#[test]
fn a_server_that_is_down_is_said_and_comes_back() {
    let mut server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let web = Web::start(&server, &[]);
    eventually("it is there", || web.get("/api/queue?queue=q").status == 200);
    server.kill();
    for path in ["/api/server", "/api/queue?queue=q", "/api/messages?queue=q"] {
        let answer = web.get(path);
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.error().contains("127.0.0.1"), "{answer:?}");
    }
    eventually("the list says so too", || web.get("/api/queues").status == 503);
    assert_eq!(web.get("/").status, 200);
    server.boot();
    ok(&server, &["push", "again", "x"]);
    eventually("it is there again", || web.get("/api/queue?queue=again").status == 200);
    eventually("the list too", || web.get("/api/queues").body.contains("again"));
}

#[test]
fn web_needs_no_more_rights_than_the_page_says() {
    let server = Server::start();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/dqctl/web.md")).unwrap();
    let line = |user: &str| {
        let line = page.lines().find(|line| line.starts_with(&format!("ACL SETUSER {user} "))).expect("an ACL line");
        server.ask(&line.split(' ').collect::<Vec<_>>());
        format!("redis://{user}:secret@127.0.0.1:{}", server.port())
    };
    ok(&server, &["push", "q", "x", "--id", "m"]);
    let (viewer, operator) = (line("viewer"), line("operator"));
    let web = Web::start(&server, &["-u", &viewer, "--allow-writes"]);
    for path in [
        "server",
        "queue?queue=q",
        "messages?queue=q",
        "message?queue=q&id=m",
        "schedules?queue=q",
        "groups?queue=q",
        "consumers?queue=q",
        "consumers",
        "dead?queue=q",
        "payload?queue=q&id=m",
        "search?id=m&queue=q",
    ] {
        let answer = web.get(&format!("/api/{path}"));
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
    eventually("it is found", || web.read("/api/queues")["total"] == 1);
    let refused = web.post("pause", &json!({ "queue": "q" }));
    assert_eq!(refused.status, 403, "{refused:?}");
    let web = Web::start(&server, &["-u", &operator, "--allow-writes"]);
    super::writes::each_action(&web, &server);
}

#[test]
fn sigterm_ends_web_with_0() {
    let server = Server::start();
    let mut web = Web::start(&server, &[]);
    let _idle = web.connect();
    assert!(Command::new("kill").arg(web.child.0.id().to_string()).status().unwrap().success());
    assert_eq!(web.child.0.wait().unwrap().code(), Some(0));
}
