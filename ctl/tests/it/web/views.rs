//! The views as the server renders them.

use super::Web;
use crate::dqctl::{ok, with_input};
use crate::support::{eventually, Server};

/// A queue with a message in each state.
fn every_state() -> Server {
    let server = Server::start();
    for id in ["held", "finished"] {
        ok(&server, &["push", "mail", "x", "--id", id, "--retain", "1h"]);
    }
    server.ask(&["DQ.POP", "mail", "COUNT", "2", "LEASE", "600000", "AS", "worker-1"]);
    ok(&server, &["complete", "mail", "finished", "42"]);
    ok(&server, &["push", "mail", "x", "--id", "waiting", "--group", "ann"]);
    ok(&server, &["push", "mail", "x", "--id", "later", "--in", "1h"]);
    ok(&server, &["push", "mail", "x", "--id", "broken"]);
    ok(&server, &["bury", "mail", "broken", "--error", "timeout after 5 s"]);
    ok(&server, &["schedule", "mail", "tick", "x", "--every", "1h"]);
    server
}

#[test]
fn each_tab_shows_what_it_is_about() {
    let server = every_state();
    let web = Web::start(&server, &[]);
    for (tab, expected) in [
        ("ready", "waiting"),
        ("delayed", "later"),
        ("inflight", "held"),
        ("dead", "broken"),
        ("done", "finished"),
        ("consumers", "worker-1"),
        ("groups", "ann"),
        ("schedules", "every 1h"),
        ("details", "maxlease"),
    ] {
        let shown = web.view(&format!("queue?queue=mail&tab={tab}"));
        assert!(shown.contains(expected), "{tab}: {shown}");
        assert!(!shown.contains("data-act"), "a page that only reads offers no act: {shown}");
    }
    let all = web.view("consumers");
    assert!(all.contains("worker-1") && all.contains("mail"), "{all}");
    assert_eq!(web.get("/api/view/queue?queue=none").status, 404);
    assert_eq!(web.get("/api/view/queue").status, 400);
    assert_eq!(web.get("/api/view/nothing").status, 404);
}

#[test]
fn a_queue_opens_where_something_is_wrong() {
    let server = every_state();
    ok(&server, &["push", "fine", "x"]);
    let web = Web::start(&server, &[]);
    for (queue, tab) in [("mail", "dead"), ("fine", "ready")] {
        let shown = web.view(&format!("queue?queue={queue}"));
        assert!(shown.contains(&format!("tab={tab}\" aria-current=\"page\"")), "{queue}: {shown}");
    }
}

#[test]
fn what_users_name_has_no_id_of_the_page() {
    let own = [
        "done", "search", "main", "problem", "dialog", "rows", "charts", "found", "findings", "filters", "tabs", "tab",
    ];
    let server = Server::start();
    for name in own {
        server.ask(&["DQ.PUSH", name, "x", "ID", name, "GROUP", name]);
        server.ask(&["DQ.POP", name, "AS", name]);
        server.ask(&["DQ.PUSH", name, "x", "GROUP", name]);
        server.ask(&["DQ.SCHEDULE", name, "every", "x", "EVERY", "60000"]);
    }
    let web = Web::start(&server, &[]);
    eventually("all are listed", || own.iter().all(|name| web.view("").contains(&format!("id=\"queue/{name}\""))));
    let tabs = ["inflight", "groups", "consumers", "schedules"].map(|tab| format!("queue?queue=done&tab={tab}"));
    for view in tabs.iter().map(String::as_str).chain(["", "consumers"]) {
        let shown = web.view(view);
        let ids: Vec<&str> = shown.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let distinct: std::collections::BTreeSet<&&str> = ids.iter().collect();
        assert!(ids.iter().any(|id| id.contains('/')) && distinct.len() == ids.len(), "{view}: {ids:?}");
    }
}

#[test]
fn the_overview_shows_trouble_first_and_can_be_filtered_and_sorted() {
    let server = Server::start();
    ok(&server, &["push", "alpha", "x", "--in", "1h"]);
    (0..3).for_each(|_| drop(ok(&server, &["push", "beta", "x", "--in", "1h"])));
    ok(&server, &["create", "zeta", "--maxlen", "1"]);
    ok(&server, &["push", "zeta", "x", "--in", "1h"]);
    let web = Web::start(&server, &[]);
    let rows = |view: &str| -> Vec<String> {
        let shown = web.view(view);
        shown.split("<tr id=\"queue/").skip(1).map(|row| row.split('"').next().unwrap().to_owned()).collect()
    };
    eventually("the full one comes first", || rows("") == ["zeta", "alpha", "beta"]);
    assert_eq!(rows("?sort=name"), ["alpha", "beta", "zeta"]);
    assert_eq!(rows("?sort=delayed")[0], "beta");
    assert_eq!(rows("?contains=ET"), ["zeta", "beta"]);
    assert_eq!(rows("?state=full"), ["zeta"]);
    let shown = web.view("");
    assert!(shown.contains("class=\"chip bad\"") && shown.contains("full"), "{shown}");
    eventually("the doctor has looked", || web.view("").contains("neither the AOF nor snapshots"));
}

#[test]
fn dead_messages_are_counted_by_cause_and_each_cause_can_be_chosen() {
    let server = Server::start();
    for (id, error) in [("a", "timeout after 5 s"), ("b", "timeout after 7 s"), ("c", "no such user")] {
        ok(&server, &["push", "mail", "x", "--id", id]);
        ok(&server, &["bury", "mail", id, "--error", error]);
    }
    let web = Web::writing(&server);
    let all = web.view("queue?queue=mail&tab=dead");
    assert!(all.contains("<b>2</b> <span>timeout after # s</span>") && all.contains("3 messages"), "{all}");
    let one = web.view("queue?queue=mail&tab=dead&cause=timeout+after+%23+s");
    assert!(one.contains("2 messages") && one.contains("no such user"), "the other cause stays to be chosen: {one}");
    // What is offered for all of them has the same conditions.
    assert!(one.contains("&quot;where&quot;:[&quot;cause=timeout after # s&quot;]"), "{one}");
    let text = web.view("queue?queue=mail&tab=dead&field=error&text=USER&older=0");
    assert!(text.contains("1 message<") && text.contains("&quot;where&quot;:[&quot;error~USER&quot;]"), "{text}");
    assert_eq!(web.get("/api/view/queue?queue=mail&tab=dead&older=soon").status, 400);
}

#[test]
fn letters_are_shown_by_the_queue_in_which_they_died() {
    let server = Server::start();
    ok(&server, &["create", "orders", "--deadforward", "QUEUE letters"]);
    ok(&server, &["push", "orders", "x", "--id", "m"]);
    ok(&server, &["bury", "orders", "m", "--error", "refused"]);
    eventually("it is moved", || server.text(&["DQ.LEN", "letters"]) == "1");
    let web = Web::writing(&server);
    let shown = web.view("queue?queue=letters");
    for expected in ["tab=letters\" aria-current", "refused", "<span>orders</span>", "&quot;letters&quot;:true"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(web.view("queue?queue=orders").contains("the dead are moved to"));
}

#[test]
fn a_message_shows_its_fields_and_its_payload() {
    let server = Server::start();
    ok(&server, &["push", "q", "{\"a\":[1,2]}", "--id", "m", "--header", "trace=1f", "--group", "ann"]);
    server.ask(&["DQ.POP", "q"]);
    server.ask(&["DQ.NACK", "q", "m", "NOCOUNT", "ERROR", "bad", "CHECKPOINT", "40"]);
    let web = Web::writing(&server);
    let shown = web.view("message?queue=q&id=m");
    for expected in ["header trace", "1f", "checkpoint", "&quot;a&quot;: [", "Bury…", "Edit and push again…"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(web.view("message?queue=q&id=none").contains("no message of this id"));
    assert!(web.view("find?id=m").contains("q / m"));
    with_input(&server, &["push", "q", "--id", "bytes"], &[0, 255]);
    assert!(web.view("message?queue=q&id=bytes").contains("00 ff"));
    let saved = web.get("/api/payload?queue=q&id=m");
    assert!(saved.body == "{\"a\":[1,2]}" && saved.head.contains("attachment"), "{saved:?}");
}

#[test]
fn names_of_any_bytes_lead_to_their_views() {
    let server = Server::start();
    ok(&server, &["push", r"images:\xff", "x", "--id", r"m-\xfe", "--in", "1h"]);
    let web = Web::writing(&server);
    let shown = web.view("");
    assert!(shown.contains(r"images:\xff") && shown.contains("queue=images%3A%FF"), "{shown}");
    let queue = web.view("queue?queue=images%3A%FF");
    assert!(queue.contains("id=m%2D%FE"), "{queue}");
    let message = web.view("message?queue=images%3A%FF&id=m%2D%FE");
    // An act names them as the command line does.
    assert!(message.contains(r"&quot;queue&quot;:&quot;images:\\xff&quot;"), "{message}");
}

#[test]
fn what_a_queue_holds_is_only_text() {
    let server = Server::start();
    let markup = "<img src=x onerror=alert(1)>\"'&";
    server.ask(&["DQ.PUSH", markup, markup, "ID", "m", "GROUP", markup, "HEADERS", "1", markup, markup]);
    server.ask(&["DQ.PUSH", markup, markup, "ID", "dead"]);
    server.ask(&["DQ.BURY", markup, "dead", "ERROR", markup]);
    let web = Web::writing(&server);
    let name = "%3Cimg+src%3Dx+onerror%3Dalert%281%29%3E%22%27%26";
    for view in ["", "queue?queue=Q&tab=dead", "queue?queue=Q&tab=groups", "message?queue=Q&id=m", "find?id=m"] {
        let shown = web.view(&view.replace('Q', name));
        assert!(shown.contains("&lt;img src=x") && !shown.contains("<img"), "{view}: {shown}");
    }
}

#[test]
fn a_server_that_is_down_is_reported_with_what_was_known_last() {
    let mut server = Server::start();
    ok(&server, &["push", "mail", "x"]);
    let web = Web::start(&server, &[]);
    // While queues are listed but not all are read, there is nothing to show of them without the server.
    eventually("the queue is read", || {
        let shown = web.view("");
        shown.contains("<tr id=\"queue/mail\"") && !shown.contains("sorting…")
    });
    server.kill();
    let shown = web.view("");
    assert!(shown.contains("start the server") && shown.contains("mail"), "{shown}");
    let queue = web.get("/api/view/queue?queue=mail");
    assert!(queue.status == 503 && queue.body.contains("start the server"), "{queue:?}");
    let other = Server::without_module();
    let answer = Web::start(&other, &[]).get("/api/view/");
    assert!(answer.status == 501 && answer.body.contains("loadmodule"), "{answer:?}");
}

#[test]
fn every_answer_keeps_foreign_content_out() {
    let server = Server::start();
    let web = Web::start(&server, &[]);
    for path in ["/", "/app.js", "/app.css", "/api/view/", "/api/nothing", "/nothing"] {
        let head = web.get(path).head;
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "x-frame-options: deny",
            "cache-control: no-store",
        ] {
            assert!(head.contains(header), "{path}: {head}");
        }
    }
}
