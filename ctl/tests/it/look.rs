//! What a person sees of messages: who holds them, where they are, and what is in them.

use crate::dqctl::{command, dqctl, json, ok, with_input};
use crate::support::Server;
use serde_json::Value as Json;
use std::io::Read;
use std::process::Stdio;

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
fn what_is_found_as_json_is_printed_before_the_next_queue_is_read() {
    let mut server = Server::start();
    // More than fits into a pipe that nobody reads.
    with_input(&server, &["push", "a", "-", "--id", "m"], "x".repeat(500_000).as_bytes());
    ok(&server, &["push", "b", "x", "--id", "m"]);
    let mut find = command(&server, &["find", "m", "--prefix", "--json"]);
    let mut find = find.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut found = vec![0];
    let out = find.stdout.as_mut().unwrap();
    out.read_exact(&mut found).unwrap();
    server.kill();
    out.read_to_end(&mut found).unwrap();
    let found: Vec<Json> =
        found.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert!(found.len() == 1 && found[0]["queue"] == "a", "{} lines", found.len());
    assert_eq!(find.wait().unwrap().code(), Some(3));
}

#[test]
fn messages_are_printed_before_the_rest_of_their_queue_is_read() {
    let mut server = Server::start();
    let payload = "x".repeat(1_000);
    for _ in 0..20 {
        let words = ["DQ.MPUSH", "q", "1000"].into_iter().chain(std::iter::repeat_n(payload.as_str(), 1_000));
        server.ask(&words.collect::<Vec<_>>());
    }
    let mut find = command(&server, &["find", "--where", "payload~x"]);
    let mut find = find.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let out = find.stdout.as_mut().unwrap();
    // The pages that follow are read only once somebody takes these.
    out.read_exact(&mut [0; 1_000]).unwrap();
    server.kill();
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    let lines = rest.iter().filter(|byte| **byte == b'\n').count();
    assert!(lines > 0 && lines < 20_000, "{lines} lines");
    assert_eq!(find.wait().unwrap().code(), Some(3));
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
fn messages_are_found_by_the_beginning_of_their_ids() {
    let server = Server::start();
    for (queue, id) in [("mail", "order-72"), ("mail", "order-71"), ("bills", "order-7"), ("bills", "order-8")] {
        ok(&server, &["push", queue, "x", "--id", id]);
    }
    server.ask(&["SET", "text", "x"]);
    let found: Vec<_> = json(&server, &["find", "--prefix", "order-7"]);
    let ids: Vec<_> = found.iter().map(|one| (one["queue"].as_str().unwrap(), one["id"].as_str().unwrap())).collect();
    assert_eq!(ids, [("bills", "order-7"), ("mail", "order-72"), ("mail", "order-71")], "in the order of the pushes");
    let listed = ok(&server, &["find", "order-7", "--prefix", "--match", "mail"]);
    assert!(listed.starts_with("mail\torder-72\tready\t") && listed.lines().count() == 2, "{listed}");
    let none = dqctl(&server, &["find", "--prefix", "order-9"]);
    assert!(none.code == 1 && none.err.contains("no queue has a message order-9"), "{none:?}");
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
