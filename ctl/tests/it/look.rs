//! What a person sees of messages: who holds them, where they are, and what is in them.

use crate::dqctl::{dqctl, json, ok, on_terminal};
use crate::support::Server;
use dq_client::{cmd, Resend};

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
    assert!(shown.contains("\n1 more in flight with consumers that have no name: "), "{shown}");
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
    assert!(none.code == 1 && none.err.contains("no queue has a message order-8"), "{none:?}");
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
    assert!(none.code == 1 && none.err.contains("no queue has a message order-9"), "{none:?}");
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
