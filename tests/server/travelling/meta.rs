//! `META`: a consumer learns more of a message than its payload.

use crate::support::{in_both_protocols, Client, Fields, Reply, Server};

/// The fifth elements of the messages that a call delivers.
fn meta(reply: &Reply) -> Vec<Fields> {
    let fifth = |message: &Reply| match message.items() {
        [_, _, _, _, meta] => meta.fields(),
        other => panic!("five elements, not {other:?}"),
    };
    reply.items().iter().map(fifth).collect()
}

fn only(c: &mut Client, line: &str) -> Fields {
    let all = meta(&c.ask(line));
    assert_eq!(all.len(), 1);
    all[0].clone()
}

#[test]
fn a_plain_message_has_only_its_times() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let told = only(c, "DQ.POP q META LEASE 600000");
        assert_eq!(told.names(), ["created", "deadline", "due"]);
        for field in ["created", "deadline", "due"] {
            assert_eq!(told.int(field), c.get("q", "m").int(field), "{field}");
        }
    });
}

#[test]
fn all_that_a_message_has_is_told() {
    in_both_protocols(|c| {
        c.push("q x ID m PRIORITY -3 GROUP g HEADERS 2 trace 1f a \"\"");
        let told = only(c, "DQ.POP q META LEASE 600000");
        assert_eq!(told.names(), ["created", "deadline", "due", "group", "headers", "priority"]);
        c.nack("q m DELAY 0 ERROR boom CHECKPOINT half");
        let told = only(c, "DQ.POP q LEASE 600000 META");
        let shown = c.get("q", "m");
        for field in ["created", "due", "deadline", "priority", "group", "headers", "checkpoint", "error"] {
            assert_eq!(told.get(field), shown.get(field), "{field}");
        }
        assert_eq!(told.0.len(), 8);
        assert_eq!(
            (told.int("priority"), told.text("error"), told.text("checkpoint")),
            (-3, "boom".into(), "half".into())
        );
    });
}

#[test]
fn without_a_lease_there_is_no_deadline() {
    in_both_protocols(|c| {
        c.push_many("q 2 x y HEADERS 1 a 1");
        let told = meta(&c.ask("DQ.POP q COUNT 2 NOACK META"));
        assert_eq!(told.len(), 2);
        assert!(told.iter().all(|told| told.names() == ["created", "due", "headers"]));
        c.ask("DQ.SCHEDULE q s x EVERY 3600000 AT 1000000000000 HEADERS 1 a 1");
        let told = only(c, "DQ.POP q NOACK META");
        assert_eq!((told.int("due"), told.has("headers")), (1_000_000_000_000, true));
    });
}

#[test]
fn each_command_that_delivers_tells_it() {
    in_both_protocols(|c| {
        c.push_many("q 3 x y z IDS a b c HEADERS 1 a 1");
        let reply = c.ask("DQ.MPOP 2 none q META");
        assert!(meta(&reply.items()[1])[0].has("headers"));
        let reply = c.ask("DQ.ACKPOP q 1 a META");
        assert_eq!(reply.items()[0], Reply::Int(1));
        assert!(meta(&reply.items()[1])[0].has("headers"));
        for command in ["DQ.POP q", "DQ.MPOP 1 q", "DQ.ACKPOP q 1 b"] {
            assert_eq!(c.ask(format!("{command} META meta")).error(), "ERR syntax error, META is given twice");
        }
        assert_eq!(c.state("q", "c"), "ready");
        assert_eq!(c.multi(&["DQ.POP q META"])[0].items()[0].items().len(), 5);
    });
}

#[test]
fn a_client_that_blocked_is_told_too() {
    let server = Server::start();
    let (mut c, mut worker) = (server.client(), server.client());
    worker.send("DQ.POP q BLOCK 0 META");
    c.until_blocked(1);
    c.push("q x ID m HEADERS 1 a 1");
    let told = meta(&worker.receive());
    assert_eq!(told[0].get("headers").fields().text("a"), "1");
    assert_eq!(c.ask("DQ.POP q META"), c.null_array());
}
