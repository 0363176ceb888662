//! What a person sees of messages: who holds them, where they are, and what is in them.

use crate::dqctl::{dqctl, json, ok, on_terminal, with_input};
use crate::support::Server;
use dq_client::{cmd, Resend};
use serde_json::json;

/// A queue whose messages a and b are held by two consumers, and c by one without a name.
fn held() -> Server {
    let server = Server::start();
    for (id, consumer) in [("a", "old"), ("b", "new"), ("c", "")] {
        ok(&server, &["push", "q", "x", "--id", id]);
        let mut pop = vec!["DQ.POP", "q", "LEASE", "3600000"];
        if !consumer.is_empty() {
            pop.extend(["AS", consumer]);
        }
        server.ask(&pop);
    }
    server
}

#[test]
fn peek_shows_who_holds_a_message_and_until_when() {
    let server = held();
    let held = json(&server, &["peek", "q", "inflight", "--consumer", "old"]);
    assert_eq!((held.len(), &held[0]["id"]), (1, &json!("a")));
    let line = ok(&server, &["peek", "q", "--consumer", "old"]);
    let cells: Vec<&str> = line.trim_end().split('\t').collect();
    let deadline = held[0]["deadline"].as_i64().unwrap();
    assert_eq!(cells[cells.len() - 2], "old");
    assert!(cells.last().unwrap().ends_with(&format!(".{:03}Z", deadline % 1_000)), "{line}");
    let shown = on_terminal(&server, "peek q inflight", true);
    assert!(shown.contains("CONSUMER") && shown.contains("  in 59m"), "{shown}");
    assert_eq!(dqctl(&server, &["peek", "q", "ready", "--consumer", "old"]).code, 2);
}

#[test]
fn eighty_columns_hold_an_id_whole() {
    let server = Server::start();
    let id = "018f6d3e-7c2a-7b1e-9f50-3a4b5c6d7e8f";
    ok(&server, &["push", "q", &"{} ".repeat(30), "--id", id, "--group", "customer-4711"]);
    server.ask(&["DQ.POP", "q", "LEASE", "3600000", "AS", "encoder-on-host-17"]);
    for list in ["peek q inflight", "peek q --consumer encoder-on-host-17", "dead q", "dead q --by-error"] {
        if list == "dead q" {
            ok(&server, &["bury", "q", id, "--error", &"no such user ".repeat(9)]);
        }
        let shown = on_terminal(&server, list, true);
        assert!(shown.contains(id), "{list}: {shown}");
        // What precedes is the progress.
        let mut lines = shown.lines().map(|line| line.rsplit("\x1b[K").next().unwrap());
        assert!(lines.all(|line| line.chars().count() <= 80), "{list}: {shown}");
    }
}

#[test]
fn messages_of_a_consumer_with_one_deadline_are_in_the_order_of_peek() {
    let server = Server::start();
    let ids: Vec<String> = (0..30).map(|number| format!("m{number}")).collect();
    for id in &ids {
        ok(&server, &["push", "q", "x", "--id", id]);
    }
    server.ask(&["DQ.POP", "q", "COUNT", "30", "LEASE", "600000", "AS", "w"]);
    let peeked = json(&server, &["peek", "q", "inflight", "-n", "30"]);
    assert_eq!(json(&server, &["peek", "q", "--consumer", "w", "-n", "30"]), peeked);
}

#[test]
fn consumers_are_listed_from_the_oldest_delivery_on() {
    let server = held();
    let names: Vec<_> = json(&server, &["consumers", "q"]).iter().map(|one| one["consumer"].clone()).collect();
    assert_eq!(names, ["old", "new"]);
    let shown = on_terminal(&server, "consumers q", true);
    assert!(shown.ends_with("1 more in flight with consumers that have no name: they popped without AS\n"), "{shown}");
}

#[test]
fn consumers_of_all_queues_are_listed_from_the_oldest_delivery_on() {
    let server = Server::start();
    for (queue, consumer) in [("mail", "old"), ("bills", "new"), ("mail", "newest"), ("mail", "")] {
        ok(&server, &["push", queue, "x"]);
        let mut pop = vec!["DQ.POP", queue, "LEASE", "3600000"];
        if !consumer.is_empty() {
            pop.extend(["AS", consumer]);
        }
        server.ask(&pop);
    }
    let held = |args: &[&str]| -> Vec<(String, String)> {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        json(&server, args).iter().map(|one| (text(&one["queue"]), text(&one["consumer"]))).collect()
    };
    let all = [("mail", "old"), ("bills", "new"), ("mail", "newest")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(held(&["consumers"]), all);
    assert_eq!(held(&["consumers", "-n", "1"]), all[..1]);
    assert_eq!(held(&["consumers", "--match", "b*"]), all[1..2]);
    let shown = on_terminal(&server, "consumers", true);
    assert!(shown.starts_with("CONSUMER  QUEUE  INFLIGHT  OLDEST-DELIVERY\nold       mail "), "{shown}");
    assert!(shown.contains("\n1 more in flight with consumers that have no name, most of them in mail: "), "{shown}");
}

#[test]
fn a_message_is_found_in_whichever_queue_it_is() {
    let server = Server::start();
    ok(&server, &["push", "mail", "x", "--id", "order-7"]);
    ok(&server, &["push", r"images:\xff", "x", "--id", "order-7", "--in", "1h"]);
    ok(&server, &["push", "other", "x"]);
    let found = ok(&server, &["find", "order-7#17"]);
    let places: Vec<(&str, &str)> = found
        .lines()
        .map(|line| {
            let mut cells = line.split('\t');
            (cells.next().unwrap(), cells.nth(1).unwrap())
        })
        .collect();
    assert_eq!(places, [(r"images:\xff", "delayed"), ("mail", "ready")]);
    assert_eq!(json(&server, &["find", "order-7", "--match", "mail"])[0]["queue"], "mail");
    let none = dqctl(&server, &["find", "order-8"]);
    assert!(none.code == 1 && none.err.contains("no queue has a message order-8; with --prefix"), "{none:?}");
}

#[test]
fn a_terminal_shows_a_message_on_lines_and_no_more_than_a_few_screens() {
    let server = Server::start();
    let error = "Traceback (most recent call last):\n  File\nKeyError: 'a'";
    ok(&server, &["push", "q", r#"{"to":"ann","n":12345678901234567890}"#, "--id", "m"]);
    server.ask(&["DQ.POP", "q"]);
    server.ask(&["DQ.NACK", "q", "m", "DEAD", "ERROR", error]);
    let shown = on_terminal(&server, "get q m", true);
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    assert!(lines.contains(&"\"n\": 12345678901234567890"), "{shown}");
    assert_eq!(lines.iter().filter(|line| **line == "KeyError: 'a'").count(), 1, "{shown}");
    assert!(ok(&server, &["get", "q", "m"]).contains("\nerror\tTraceback (most recent call last):\\n  File\\n"));
}

#[test]
fn a_large_payload_leaves_the_other_fields_in_sight() {
    let server = Server::start();
    let lines: Vec<String> = (0..5_000).map(|number| format!("line {number}")).collect();
    for (id, payload) in [("wide", "x".repeat(400_000)), ("long", lines.join("\n"))] {
        with_input(&server, &["push", "q", "-", "--id", id], payload.as_bytes());
        let shown = on_terminal(&server, &format!("get q {id}"), true);
        let said = format!("({} bytes in all: dqctl get --payload prints them)", separated(payload.len()));
        assert!(shown.contains(&said), "{shown}");
        let lines: usize = shown.lines().map(|line| line.chars().count().div_ceil(80)).sum();
        assert!(lines < 35 && shown.starts_with("id "), "{lines}: {shown}");
        let piped = ok(&server, &["get", "q", id]);
        assert!(piped.len() > payload.len() && piped.lines().last().unwrap().starts_with("payload\t"));
        for without in [
            on_terminal(&server, &format!("get q {id} --no-payload"), true),
            ok(&server, &["get", "q", id, "--no-payload"]),
        ] {
            assert!(without.contains("attempt") && !without.contains("payload"), "{without}");
        }
        assert!(json(&server, &["get", "q", id, "--no-payload"])[0].get("payload").is_none());
    }
    assert_eq!(dqctl(&server, &["get", "q", "long", "--no-payload", "--payload"]).code, 2);
}

/// A number of six digits with a comma, as terminals show it.
fn separated(number: usize) -> String {
    format!("{},{:03}", number / 1_000, number % 1_000)
}

#[test]
fn a_queue_that_may_not_be_read_is_not_said_to_lack_a_message() {
    let server = Server::start();
    ok(&server, &["push", "mail", "x", "--id", "m"]);
    ok(&server, &["push", "bills", "x", "--id", "n"]);
    server.ask(&["ACL", "SETUSER", "ann", "on", ">pw", "~mail", "+scan", "+dq.get", "+dq.info"]);
    let url = server.url().replace("redis://", "redis://ann:pw@");
    let denied = dqctl(&server, &["-u", &url, "find", "n"]);
    assert!(
        denied.code == 3 && denied.err.contains("ACL SETUSER") && !denied.err.contains("no queue has"),
        "{denied:?}"
    );
    let found = dqctl(&server, &["-u", &url, "find", "m"]);
    assert!(found.code == 0 && found.out.starts_with("mail\tm\t"), "{found:?}");
    assert!(found.err.starts_with("dqctl: not all queues could be read: "), "{found:?}");
}

#[test]
fn a_terminal_gets_ages_and_a_pipe_exact_instants() {
    let server = Server::start();
    for (id, due) in [("soon", "1h"), ("m", "0")] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", due, "--group", id]);
    }
    ok(&server, &["bury", "q", "m"]);
    server.ask(&["DQ.PUSH", "q", "x"]);
    server.ask(&["DQ.POP", "q", "LEASE", "600000", "AS", "w"]);
    for (line, age) in
        [("peek q delayed", "in 59m"), ("dead q", " ago"), ("dead q --by-error", " ago"), ("groups q", "in 59m")]
    {
        let shown = on_terminal(&server, line, true);
        assert!(shown.contains(age) && !shown.contains("Z "), "{line}: {shown}");
        let args: Vec<&str> = line.split(' ').collect();
        assert!(ok(&server, &args).contains("Z\t"), "{line}");
    }
    for args in ["get q soon", "info q", "pause q --for 1h"] {
        let shown = on_terminal(&server, args, true);
        assert!(shown.contains("Z (in "), "{args}: {shown}");
        let piped = ok(&server, &args.split(' ').collect::<Vec<_>>());
        assert!(piped.contains("Z\n") && !piped.contains('('), "{args}: {piped}");
    }
    let shown = on_terminal(&server, "info q", true);
    let died = shown.lines().find(|line| line.starts_with("died-lately ")).expect("a line");
    assert!(died.ends_with(" 1 in 10m: (rejected)"), "{died}");
    let held = ok(&server, &["consumers", "q"]);
    assert!(held.ends_with("Z\n"), "{held}");
    assert!(on_terminal(&server, "consumers q", true).ends_with(" ago\n"));
    assert_eq!(ok(&server, &["groups", "q", "-n", "1"]).lines().count(), 1);
}

#[test]
fn a_schedule_that_is_late_comes_first_and_says_so() {
    let server = Server::start();
    for id in ["2040", "2043", "2026", "2041", "2044", "2042"] {
        ok(&server, &["schedule", "q", id, "x", "--every", "1h", "--at", &format!("{id}-01-01T00:00:00Z")]);
    }
    let listed = ok(&server, &["schedule", "q"]);
    let ids: Vec<&str> = listed.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(ids, ["2026", "2040", "2041", "2042", "2043", "2044"]);
    let shown = on_terminal(&server, "schedule q", true);
    assert!(shown.lines().nth(1).unwrap().contains("  late: ") && shown.matches("late: ").count() == 1, "{shown}");
}

#[test]
fn errors_of_any_bytes_are_shown_like_names() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m"]);
    server.ask(&["DQ.POP", "q"]);
    let nack = cmd("DQ.NACK").arg("q").arg("m").arg("DEAD").arg("ERROR").arg(b"bad \xff\0\nline").clone();
    server.client().call(&nack, Resend::Never).unwrap();
    let shown = r"bad \xff\x00\nline";
    for args in [&["get", "q", "m"][..], &["peek", "q", "dead"], &["dead", "q"], &["find", "m"]] {
        assert!(ok(&server, args).contains(shown), "{args:?}: {}", ok(&server, args));
    }
    assert!(ok(&server, &["dead", "q", "--by-error"]).ends_with("\tbad \\xff\\x#\n"));
    let message = json(&server, &["get", "q", "m"]).remove(0);
    assert_eq!(message["error-base64"], "YmFkIP8ACmxpbmU=");
    assert_eq!(message["errors-base64"][0][2], "YmFkIP8ACmxpbmU=");
    assert_eq!(message["errors-base64"][0][1], message["errors"][0][1]);
}

#[test]
fn dead_messages_are_listed_with_their_death() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m", "--in", "1h"]);
    ok(&server, &["bury", "q", "m"]);
    for args in ["peek q dead", "peek q", "find m"] {
        let shown = on_terminal(&server, args, true);
        assert!(shown.contains("  DIED  ") && !shown.contains("  DUE  ") && shown.contains(" ago"), "{args}: {shown}");
    }
}

#[test]
fn messages_are_found_by_the_beginning_of_their_ids() {
    let server = Server::start();
    for (queue, id) in [("mail", "order-72"), ("mail", "order-71"), ("bills", "order-7"), ("bills", "order-8")] {
        ok(&server, &["push", queue, "x", "--id", id]);
    }
    server.ask(&["SET", "text", "x"]);
    let found: Vec<_> = json(&server, &["find", "--prefix", "order-7"]);
    let ids: Vec<_> = found.iter().map(|one| (one["queue"].as_str().unwrap(), one["id"].as_str().unwrap())).collect();
    assert_eq!(ids, [("bills", "order-7"), ("mail", "order-71"), ("mail", "order-72")]);
    let listed = ok(&server, &["find", "order-7", "--prefix", "--match", "mail"]);
    assert!(listed.starts_with("mail\torder-71\tready\t") && listed.lines().count() == 2, "{listed}");
    let none = dqctl(&server, &["find", "--prefix", "order-9"]);
    assert!(none.code == 1 && none.err.contains("no queue has a message whose id begins with order-9"), "{none:?}");
}

#[test]
fn a_terminal_shows_the_payload_below_what_happened_to_it() {
    let server = Server::start();
    ok(&server, &["push", "q", "hello", "--id", "m"]);
    ok(&server, &["bury", "q", "m", "--error", "refused"]);
    let shown = on_terminal(&server, "get q m", true);
    assert!(shown.lines().last().unwrap().starts_with("payload "), "{shown}");
}

#[test]
fn a_message_is_shown_by_its_receipt() {
    let server = held();
    let receipt = crate::dqctl::field(&server, "q", "a", "receipt");
    assert_eq!(json(&server, &["get", "q", receipt.as_str().unwrap()])[0]["id"], "a");
}

#[test]
fn messages_are_listed_without_their_payloads() {
    let server = Server::start();
    ok(&server, &["push", "q", &"large ".repeat(1_000), "--id", "m"]);
    let listed = ok(&server, &["peek", "q", "--no-payload"]);
    assert!(listed.starts_with("m\tready\t") && listed.len() < 200, "{listed}");
    assert_eq!(json(&server, &["peek", "q", "--no-payload"])[0].get("payload"), None);
}

#[test]
fn messages_of_all_queues_are_found_by_what_is_in_them() {
    let server = Server::start();
    for (queue, id, payload) in [("mail", "m1", "order 4711"), ("web", "w1", "order 4712"), ("web", "w2", "Order 4711")]
    {
        ok(&server, &["push", queue, payload, "--id", id]);
    }
    ok(&server, &["bury", "mail", "m1", "--error", "no such user"]);
    let ids = |args: &[&str]| -> Vec<String> {
        json(&server, args).iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&["find", "--where", "payload~order 4711"]), ["m1", "w2"]);
    assert_eq!(ids(&["find", "--where", "payload~order 4711", "--match", "w*"]), ["w2"]);
    assert_eq!(ids(&["find", "--where", "error~user", "--where", "payload~4711"]), ["m1"]);
    let none = dqctl(&server, &["find", "--where", "payload~4713"]);
    assert!(none.code == 1 && none.err.contains("no queue has a message with payload~4713"), "{none:?}");
    for wrong in [&["find"][..], &["find", "m1", "--where", "payload~4711"], &["find", "--prefix"]] {
        assert_eq!(dqctl(&server, wrong).code, 2, "{wrong:?}");
    }
}
