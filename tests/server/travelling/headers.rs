//! Headers: what a producer says about a message.

use crate::support::{eventually, in_both_protocols, Client, Reply, Server};

/// The headers that `DQ.GET` shows, in their order.
fn headers(c: &mut Client, key: &str, id: &str) -> Vec<(String, String)> {
    let shown = c.get(key, id);
    let pairs = if shown.has("headers") { shown.get("headers").fields().0 } else { Vec::new() };
    pairs.into_iter().map(|(name, value)| (name, value.text())).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn headers_are_shown_in_the_order_of_their_names() {
    in_both_protocols(|c| {
        c.push("q x ID m HEADERS 3 trace 1f a \"\" content-type text/plain PRIORITY 3");
        let expected = pairs(&[("a", ""), ("content-type", "text/plain"), ("trace", "1f")]);
        assert_eq!(headers(c, "q", "m"), expected);
        assert_eq!(c.get("q", "m").int("priority"), 3, "options follow them");
        for shown in ["DQ.PEEK q", "DQ.SCAN q 0"] {
            let reply = c.ask(shown);
            let messages = if shown.contains("SCAN") { &reply.items()[1] } else { &reply };
            assert_eq!(messages.items()[0].fields().get("headers"), c.get("q", "m").get("headers"), "{shown}");
        }
        c.push("q x ID plain");
        assert!(!c.get("q", "plain").has("headers"));
        assert_eq!(c.pop_ids("q COUNT 2"), ["m", "plain"]);
    });
}

#[test]
fn a_batch_has_the_same_headers() {
    in_both_protocols(|c| {
        c.push_many("q 2 x y HEADERS 1 tenant 7 IDS a b");
        for id in ["a", "b"] {
            assert_eq!(headers(c, "q", id), pairs(&[("tenant", "7")]));
        }
    });
}

#[test]
fn any_bytes_are_kept_beside_payloads_of_any_size() {
    let server = Server::start();
    let mut c = server.client();
    let (name, value) = ([0, 255, b'\r', b'\n'], [b'v'; 4096]);
    for size in [0, 10, 4_080, 4_090, 8_192, 100_000] {
        let payload = vec![b'p'; size];
        let words: [&[u8]; 10] = [b"DQ.PUSH", b"q", &payload, b"ID", b"m", b"REPLACE", b"HEADERS", b"1", &name, &value];
        c.cmd(&words);
        let shown = c.cmd(&[&b"DQ.GET"[..], b"q", b"m"]);
        let at = shown.items().iter().position(|word| *word == Reply::bulk("headers")).unwrap();
        assert_eq!(shown.items()[at + 1], Reply::Array(vec![Reply::bulk(name), Reply::bulk(value)]));
        assert_eq!(c.pop_one("q").payload, payload);
        let about = c.about("q");
        assert_eq!(about.int("payload-bytes"), size as i64, "headers do not count");
    }
    c.ack("q m");
    assert_eq!(c.about("q").int("payload-bytes"), 0);
}

#[test]
fn headers_stay_until_the_message_is_replaced() {
    let server = Server::start();
    let mut c = server.client();
    let expected = pairs(&[("a", "1")]);
    c.push("q x ID m RETRIES 1 HEADERS 1 a 1");
    c.pop_one("q");
    c.nack("q m DELAY 0");
    assert_eq!(headers(&mut c, "q", "m"), expected);
    c.pop_one("q");
    assert_eq!(c.nack("q m"), "dead");
    assert_eq!(headers(&mut c, "q", "m"), expected);
    assert_eq!(c.ask("DQ.REDRIVE q"), Reply::Int(1));
    assert_eq!(headers(&mut c, "q", "m"), expected);

    c.push("q y ID m REPLACE HEADERS 1 b 2");
    assert_eq!(headers(&mut c, "q", "m"), pairs(&[("b", "2")]));
    c.pop_one("q");
    c.push("q z ID m REPLACE LATER HEADERS 1 c 3");
    assert_eq!(headers(&mut c, "q", "m"), pairs(&[("b", "2")]), "of the one in flight");
    c.ack("q m");
    assert_eq!(headers(&mut c, "q", "m"), pairs(&[("c", "3")]));
    c.push("q z ID m REPLACE");
    assert_eq!(headers(&mut c, "q", "m"), []);
}

#[test]
fn each_run_and_each_dead_copy_has_the_headers() {
    let server = Server::start();
    let mut c = server.client();
    let declare = |c: &mut Client, headers: &str| {
        c.ask(format!("DQ.SCHEDULE q s x EVERY 3600000 AT 1000000000000 {headers}")).text()
    };
    assert_eq!(declare(&mut c, "HEADERS 2 a 1 b 2"), "created");
    assert_eq!(declare(&mut c, "HEADERS 2 b 2 a 1"), "unchanged", "their order does not matter");
    c.pop_one("q");
    assert_eq!(declare(&mut c, "HEADERS 1 a 2"), "changed");
    assert_eq!(headers(&mut c, "q", "s"), pairs(&[("a", "1"), ("b", "2")]), "from the next run on");
    assert_eq!(c.nack("q s DEAD"), "dead");
    assert_eq!(headers(&mut c, "q", "s"), pairs(&[("a", "2")]));
    let copy = c.ask("DQ.PEEK q dead").items()[0].fields().text("id");
    assert_eq!(headers(&mut c, "q", &copy), pairs(&[("a", "1"), ("b", "2")]));
    assert_eq!(declare(&mut c, ""), "changed");
    assert_eq!(headers(&mut c, "q", "s"), []);
}

#[test]
fn a_stream_gets_headers_as_fields_after_the_due_time() {
    in_both_protocols(|c| {
        c.create("q FORWARD STREAM s");
        c.push("q x ID m HEADERS 2 trace 1f kind mail");
        c.push("q y ID n");
        eventually("both are forwarded", || c.ask("XLEN s") == Reply::Int(2));
        let entries = c.ask("XRANGE s - +");
        let fields = |nth: usize| entries.items()[nth].items()[1].items().iter().map(Reply::text).collect::<Vec<_>>();
        let first = fields(0);
        assert_eq!(first[..5], ["id", "m", "payload", "x", "due"]);
        assert_eq!(first[6..], ["header:kind", "mail", "header:trace", "1f"]);
        assert_eq!(fields(1).len(), 6);
    });
}

#[test]
fn headers_that_are_refused_change_nothing() {
    let server = Server::start();
    let mut c = server.client();
    let long = |len: usize| "v".repeat(len);
    let full: Vec<String> = (0..4).map(|nth| format!("{nth} {}", long(4_096))).collect();
    let many: Vec<String> = (0..65).map(|nth| format!("n{nth} v")).collect();
    let refused = [
        ("HEADERS".to_owned(), "ERR syntax error, HEADERS needs a value"),
        ("HEADERS 0".to_owned(), "ERR HEADERS must be a whole number from 1 to 64"),
        (format!("HEADERS 65 {}", many.join(" ")), "ERR HEADERS must be a whole number from 1 to 64"),
        ("HEADERS 1 a".to_owned(), "ERR syntax error, HEADERS needs 1 name, each with a value"),
        ("HEADERS 2 a 1 b".to_owned(), "ERR syntax error, HEADERS needs 2 names, each with a value"),
        ("HEADERS 2 a 1 a 2".to_owned(), "ERR the header 'a' is given twice"),
        ("HEADERS 1 \"\" 1".to_owned(), "ERR the name of a header must be 1 to 255 bytes"),
        (format!("HEADERS 1 {} 1", long(256)), "ERR the name of a header must be 1 to 255 bytes"),
        (format!("HEADERS 1 a {}", long(4_097)), "ERR the value of the header 'a' must be at most 4096 bytes"),
        (
            format!("HEADERS 4 {}", full.join(" ")),
            "ERR the names and values of HEADERS must be at most 16384 bytes together, and have 16388",
        ),
        ("HEADERS 1 a 1 HEADERS 1 b 2".to_owned(), "ERR syntax error, HEADERS is given twice"),
    ];
    for (options, error) in refused {
        for command in ["DQ.PUSH q x", "DQ.MPUSH q 1 x", "DQ.SCHEDULE q s x EVERY 5"] {
            assert_eq!(c.ask(format!("{command} {options}")).error(), error, "{command}");
        }
    }
    assert_eq!(c.ask("EXISTS q"), Reply::Int(0));
    c.push(format!("q x HEADERS 64 {}", many[..64].join(" ")));
    c.push(format!("q x headers 1 {} {}", long(255), long(4_096)));
}
