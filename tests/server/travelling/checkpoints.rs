//! Checkpoints: how far a consumer has come with a message.

use crate::support::{in_both_protocols, Client, Reply, Server};

/// The checkpoint that `DQ.GET` shows.
fn checkpoint(c: &mut Client, id: &str) -> Option<String> {
    let shown = c.get("q", id);
    shown.has("checkpoint").then(|| shown.text("checkpoint"))
}

#[test]
fn an_extension_stores_and_removes_a_checkpoint() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.pop_one("q LEASE 600000");
        assert_eq!(checkpoint(c, "m"), None);
        c.extend("q m");
        assert_eq!(checkpoint(c, "m"), None);
        for text in ["page-7", "page-8"] {
            c.extend(format!("q m LEASE 600000 CHECKPOINT {text}"));
            assert_eq!(checkpoint(c, "m").as_deref(), Some(text));
        }
        c.extend("q m");
        for shown in ["DQ.PEEK q inflight", "DQ.SCAN q 0"] {
            let reply = c.ask(shown);
            let messages = if shown.contains("SCAN") { &reply.items()[1] } else { &reply };
            assert_eq!(messages.items()[0].fields().text("checkpoint"), "page-8", "{shown}");
        }
        c.extend("q m CHECKPOINT \"\"");
        assert_eq!(checkpoint(c, "m"), None);
    });
}

#[test]
fn a_checkpoint_outlives_leases_retries_death_and_redriving() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m RETRIES 1");
    c.pop_one("q LEASE 600000");
    c.extend("q m LEASE 1 CHECKPOINT one");
    c.until_state("q", "m", "ready");
    assert_eq!(checkpoint(&mut c, "m").as_deref(), Some("one"));
    c.pop_one("q LEASE 600000");
    assert_eq!(c.nack("q m NOCOUNT CHECKPOINT two"), "ready");
    assert_eq!(checkpoint(&mut c, "m").as_deref(), Some("two"));
    c.pop_one("q LEASE 600000");
    assert_eq!(c.nack("q m ERROR boom"), "dead");
    assert_eq!(c.ask("DQ.REDRIVE q"), Reply::Int(1));
    assert_eq!(checkpoint(&mut c, "m").as_deref(), Some("two"));
    c.push("q y ID m REPLACE");
    assert_eq!(checkpoint(&mut c, "m"), None);
}

#[test]
fn a_checkpoint_ends_with_the_run_and_stays_with_its_dead_copy() {
    let server = Server::start();
    let mut c = server.client();
    let declare = "DQ.SCHEDULE q s x EVERY 3600000 AT 1000000000000";
    c.ask(declare);
    c.pop_one("q LEASE 600000");
    c.extend("q s CHECKPOINT half");
    c.ack("q s");
    assert_eq!(checkpoint(&mut c, "s"), None);
    for (nack, left) in [("", "half"), ("CHECKPOINT most", "most")] {
        c.ask("DQ.PROMOTE q");
        c.pop_one("q LEASE 600000");
        c.extend("q s CHECKPOINT half");
        assert_eq!(c.nack(format!("q s DEAD {nack}")), "dead");
        assert_eq!(checkpoint(&mut c, "s"), None);
        let copy = c.ask("DQ.PEEK q dead").items()[0].fields();
        assert_eq!(copy.text("checkpoint"), left);
    }
}

#[test]
fn a_checkpoint_belongs_to_the_delivery_before_its_successor() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    c.pop_one("q LEASE 600000");
    c.extend("q m CHECKPOINT one");
    c.push("q y ID m REPLACE LATER");
    assert_eq!(checkpoint(&mut c, "m").as_deref(), Some("one"));
    c.extend("q m CHECKPOINT two");
    assert_eq!(checkpoint(&mut c, "m").as_deref(), Some("two"));
    c.nack("q m CHECKPOINT three");
    assert_eq!(checkpoint(&mut c, "m"), None);
}

#[test]
fn what_is_refused_or_too_late_stores_nothing() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    assert!(c.ask("DQ.EXTEND q m CHECKPOINT early").is_null());
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    let large = vec![b'c'; 65_537];
    for command in [&b"DQ.EXTEND"[..], b"DQ.NACK"] {
        let refused = c.cmd(&[command, &b"q"[..], b"m", b"CHECKPOINT", &large]);
        assert_eq!(refused.error(), "ERR CHECKPOINT must be at most 65536 bytes");
        let twice = c.cmd(&[command, &b"q"[..], b"m", b"CHECKPOINT", b"a", b"checkpoint", b"b"]);
        assert_eq!(twice.error(), "ERR syntax error, CHECKPOINT is given twice");
        let none = c.cmd(&[command, &b"q"[..], b"m", b"CHECKPOINT"]);
        assert_eq!(none.error(), "ERR syntax error, CHECKPOINT needs a value");
    }
    assert_eq!((checkpoint(&mut c, "m"), c.get("q", "m").text("state")), (None, "inflight".to_owned()));
    c.cmd(&[&b"DQ.EXTEND"[..], b"q", receipt.as_bytes(), b"CHECKPOINT", &large[1..]]).int();
    assert_eq!(checkpoint(&mut c, "m").map(|kept| kept.len()), Some(65_536));
    c.nack("q m");
    assert!(c.ask(format!("DQ.EXTEND q {receipt} CHECKPOINT late")).is_null());
    assert_eq!(checkpoint(&mut c, "m").map(|kept| kept.len()), Some(65_536));
}

#[test]
fn a_checkpoint_is_accepted_without_memory() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    c.pop_one("q LEASE 600000");
    c.configure("maxmemory", "1");
    assert!(c.ask("DQ.PUSH q x").is_error());
    c.extend("q m CHECKPOINT half");
    c.nack("q m CHECKPOINT most");
    assert_eq!(checkpoint(&mut c, "m").as_deref(), Some("most"));
}

#[test]
fn scripts_and_transactions_store_checkpoints() {
    let server = Server::start();
    let mut c = server.client();
    c.push_many("q 2 x y IDS a b");
    c.pop("q COUNT 2 LEASE 600000");
    c.multi(&["DQ.EXTEND q a CHECKPOINT one", "DQ.NACK q a CHECKPOINT two"]);
    c.script("DQ.EXTEND q b CHECKPOINT one");
    assert_eq!(checkpoint(&mut c, "a").as_deref(), Some("two"));
    assert_eq!(checkpoint(&mut c, "b").as_deref(), Some("one"));
}
