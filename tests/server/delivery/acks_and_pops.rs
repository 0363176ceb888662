//! `DQ.ACKPOP`: the acks come first and hold, whatever becomes of the delivery.

use crate::support::{eventually, in_both_protocols, Client, Message, Protocol, Reply, Server};

/// `DQ.ACKPOP` with this line: how many were acked, and the messages that were delivered.
#[track_caller]
fn ackpop(c: &mut Client, line: &str) -> (i64, Vec<Message>) {
    answer(&c.ask(format!("DQ.ACKPOP {line}")))
}

#[track_caller]
fn answer(reply: &Reply) -> (i64, Vec<Message>) {
    let [acked, messages] = reply.items() else { panic!("[acked, messages], not {reply:?}") };
    (acked.int(), if messages.is_null() { Vec::new() } else { Message::all(messages) })
}

fn ids(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &message.id[..]).collect()
}

#[test]
fn one_command_acks_messages_and_delivers_the_next() {
    in_both_protocols(|c| {
        c.push_many("q 6 1 2 3 4 5 6 IDS a b c d e f");
        let first = c.pop("q COUNT 2");
        let line = format!("q 4 {} b {} nobody COUNT 2 LEASE 600000", first[0].receipt(), first[0].receipt());
        let (acked, next) = ackpop(c, &line);
        assert_eq!((acked, ids(&next)), (2, vec!["c", "d"]));
        assert_eq!((next[0].attempt, &next[0].payload[..]), (1, &b"3"[..]));
        assert!(c.get("q", "c").int("deadline") > c.now() + 500_000);
        let (acked, next) = ackpop(c, &format!("q 1 {} COUNT 5", next[1].receipt()));
        assert_eq!((acked, ids(&next)), (1, vec!["e", "f"]));
        assert_eq!(c.scan_ids("q", ""), ["c", "e", "f"]);
        let totals = c.about("q");
        assert_eq!(["acked", "delivered"].map(|total| totals.int(total)), [3, 6]);
    });
}

#[test]
fn nothing_to_deliver_is_null_and_the_acks_hold() {
    in_both_protocols(|c| {
        assert_eq!(c.ask("DQ.ACKPOP q 1 a"), Reply::Array(vec![Reply::Int(0), c.null_array()]), "there is no queue");
        c.push("q x ID a");
        c.pop_one("q");
        assert_eq!(c.ask("DQ.ACKPOP q 1 a"), Reply::Array(vec![Reply::Int(1), c.null_array()]));
        assert_eq!(c.ask("DQ.ACKPOP q 1 a BLOCK 1"), Reply::Array(vec![Reply::Int(0), c.null_array()]));
        assert_eq!(c.counts("q"), [0; 4]);
        assert_eq!(c.ask("DQ.STATS q").fields().int("pops-empty"), 2);
    });
}

#[test]
fn a_paused_or_limited_queue_still_takes_the_acks() {
    in_both_protocols(|c| {
        c.create("q MAXINFLIGHT 2");
        c.push_many("q 4 1 2 3 4 IDS a b c d");
        c.pop("q COUNT 2");
        c.pause("q");
        assert_eq!(ackpop(c, "q 1 a"), (1, Vec::new()));
        c.resume("q");
        let (acked, next) = ackpop(c, "q 2 b nobody COUNT 9");
        assert_eq!((acked, ids(&next)), (1, vec!["c", "d"]), "the acks made room");
        assert_eq!(ackpop(c, "q 1 nobody"), (0, Vec::new()));
    });
}

#[test]
fn an_ack_frees_its_group_for_the_same_call() {
    in_both_protocols(|c| {
        c.push_many("q 2 1 2 IDS a b GROUP g");
        c.pop_one("q");
        assert!(c.pop("q").is_empty());
        let (acked, next) = ackpop(c, "q 1 a");
        assert_eq!((acked, ids(&next)), (1, vec!["b"]));
    });
}

#[test]
fn a_queue_that_forwards_refuses_the_acks_too() {
    in_both_protocols(|c| {
        c.push("q x ID a");
        c.pop_one("q LEASE 600000");
        c.alter("q FORWARD LIST l");
        let digest = c.digest("q");
        for line in ["DQ.ACKPOP q 1 a", "DQ.ACKPOP q 1 a BLOCK 0"] {
            assert_eq!(c.ask(line).error(), "ERR queue forwards to list l; it cannot be popped", "{line}");
        }
        assert_eq!(c.digest("q"), digest);
    });
}

#[test]
fn an_acked_run_and_a_kept_message_may_come_next() {
    in_both_protocols(|c| {
        c.ask("DQ.SCHEDULE q s x EVERY 600000 AT 100000000001");
        c.push_many("q 2 1 2 IDS a b");
        c.pop("q COUNT 2 LEASE 600000");
        c.push("q later ID a REPLACE LATER PRIORITY 9");
        let (acked, next) = ackpop(c, "q 2 s a COUNT 5");
        assert_eq!((acked, ids(&next)), (2, vec!["a", "b"]));
        assert_eq!(next[0].payload, b"later");
        assert_eq!(c.state("q", "s"), "delayed");
    });
}

#[test]
fn acks_hold_while_the_client_waits_for_a_message() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let server = Server::with_aof(&[]);
        let replica = Server::replica_of(&server, &[]);
        let (mut waiting, mut c) = (server.client_with(protocol), server.client());
        c.push("q x ID a");
        waiting.pop_one("q");
        waiting.send("DQ.ACKPOP q 1 a BLOCK 0");
        c.until_blocked(1);
        assert_eq!(c.counts("q"), [0; 4], "the ack holds");
        eventually("the replica knows of the ack", || replica.client().len("q") == 0);
        c.push("q x ID b");
        let (acked, next) = answer(&waiting.receive());
        assert_eq!((acked, ids(&next)), (1, vec!["b"]));
        eventually("the replica knows of the delivery", || replica.client().len("q inflight") == 1);
        assert_eq!(replica.client().digest("q"), c.digest("q"));
    }
}

#[test]
fn a_client_that_stops_waiting_has_acked() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push_many("q 4 1 2 3 4 IDS a b c d");
    c.pop("q COUNT 4");
    assert_eq!(waiting.ask("DQ.ACKPOP q 1 a BLOCK 1"), Reply::Array(vec![Reply::Int(1), c.null_array()]));
    let id = waiting.ask("CLIENT ID").int();
    waiting.send("DQ.ACKPOP q 1 b BLOCK 0");
    c.until_blocked(1);
    c.ask(format!("CLIENT UNBLOCK {id}"));
    assert_eq!(waiting.receive(), Reply::Array(vec![Reply::Int(1), c.null_array()]));
    waiting.send("DQ.ACKPOP q 1 c BLOCK 0");
    c.until_blocked(1);
    c.ask(format!("CLIENT UNBLOCK {id} ERROR"));
    assert!(waiting.receive().error().starts_with("UNBLOCKED"));
    waiting.send("DQ.ACKPOP q 1 d BLOCK 0");
    c.until_blocked(1);
    assert_eq!(c.len("q"), 0);
    drop(waiting);
    c.until_blocked(0);
    c.push("q x ID e");
    assert_eq!(c.pop_ids("q"), ["e"], "nobody waits any more");
}

#[test]
fn an_ack_that_makes_room_wakes_another_client() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.create("q MAXINFLIGHT 2");
    c.push_many("q 4 1 2 3 4 IDS a b c d");
    c.pop("q COUNT 2");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    let (acked, next) = ackpop(&mut c, "q 2 a b COUNT 1");
    assert_eq!((acked, ids(&next)), (2, vec!["c"]));
    assert_eq!(waiting.served().id, "d");
}

#[test]
fn transactions_and_scripts_do_not_wait() {
    in_both_protocols(|c| {
        c.push("q x ID a");
        c.pop_one("q");
        let replies = c.multi(&["DQ.ACKPOP q 1 a BLOCK 0", "DQ.PUSH q x ID b", "DQ.ACKPOP q 1 a BLOCK 0"]);
        assert_eq!(replies[0], Reply::Array(vec![Reply::Int(1), c.null_array()]));
        assert_eq!(ids(&answer(&replies[2]).1), ["b"]);
        assert_eq!(c.script("DQ.ACKPOP q 1 b BLOCK 0").items()[0], Reply::Int(1));
    });
}

#[test]
fn replicas_and_restarts_know_of_acks_and_deliveries() {
    let master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    c.create("q GROUPORDER TURN RATE 100 86400000");
    c.push_many("q 9 1 2 3 4 5 6 7 8 9 IDS a b c d e f g h i GROUP g");
    c.push_many("q 3 1 2 3 IDS x y z");
    c.ask("DQ.SCHEDULE q s x EVERY 86400000 AT 100000000001 PRIORITY 9");
    c.pop("q COUNT 3 LEASE 600000");
    for line in ["q 2 s a COUNT 2 LEASE 600000", "q 1 nobody LEASE 600000", "q 1 x LEASE 600000", "q 1 y BLOCK 1"] {
        ackpop(&mut c, line);
        let digest = c.digest("q");
        eventually(&format!("the replica knows of {line}"), || replica.client().digest("q") == digest);
    }
    let digest = c.digest("q");
    drop(c);
    let mut master = master;
    master.restart_from_aof();
    assert_eq!(master.client().digest("q"), digest);
    master.restart_from_rdb();
    assert_eq!(master.client().digest("q"), digest);
}
