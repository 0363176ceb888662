//! Blocking pops: a blocked client is served as soon as a message is deliverable, and never before.

use crate::support::{eventually, in_both_protocols, Client, Protocol, Reply, Server};

#[test]
fn a_message_that_is_there_is_not_waited_for() {
    in_both_protocols(|c| {
        c.push("q x ID a");
        c.push("q x ID b");
        assert_eq!(c.pop_ids("q BLOCK 0 COUNT 5"), ["a", "b"], "what there is, not all that was asked for");
    });
}

#[test]
fn a_push_wakes_a_blocked_client() {
    in_both_protocols_with_two(|waiting, c| {
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.push("q hello ID m");
        let message = waiting.served();
        assert_eq!((message.id.as_str(), message.payload.as_slice(), message.attempt), ("m", b"hello".as_slice(), 1));
        assert_eq!(c.ack(format!("q {}", message.receipt())), 1);
    });
}

#[test]
fn a_blocked_client_is_served_when_due_and_never_before() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    for n in 0..10 {
        waiting.wait_for_message("q");
        c.until_blocked(1);
        let id = c.push(format!("q x ID m{n} DELAY {}", 10 + 7 * n));
        let due = c.get("q", &id).int("due");
        assert_eq!(waiting.served().id, id);
        c.expect_delivered_at("q", &id, due);
    }
}

#[test]
fn a_client_blocking_after_the_push_is_served_when_due() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID m DELAY 200");
    let due = c.get("q", "m").int("due");
    waiting.wait_for_message("q");
    assert_eq!(waiting.served().id, "m");
    c.expect_delivered_at("q", "m", due);
}

#[test]
fn a_message_pushed_later_but_due_sooner_is_served_first() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID late DELAY 600000");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.push("q x ID soon DELAY 50");
    assert_eq!(waiting.served().id, "soon");
}

#[test]
fn a_nack_wakes_a_blocked_client() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    for (id, delay) in [("at-once", 0), ("later", 60)] {
        c.push(format!("q x ID {id}"));
        c.pop_one("q LEASE 600000");
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.nack(format!("q {id} DELAY {delay}"));
        let due = c.get("q", id).int("due");
        let message = waiting.served();
        assert_eq!((message.id.as_str(), message.attempt), (id, 2));
        c.expect_delivered_at("q", id, due);
    }
}

#[test]
fn the_end_of_a_lease_wakes_a_blocked_client() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID m");
    c.pop_one("q LEASE 600000");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    let deadline = c.extend("q m LEASE 60");
    assert_eq!(waiting.served().attempt, 2);
    c.expect_delivered_at("q", "m", deadline);
}

#[test]
fn room_under_maxinflight_wakes_a_blocked_client() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.configure("dq.default-maxinflight", 1);
    for id in ["a", "b", "c", "d", "e"] {
        c.push(format!("q x ID {id}"));
    }
    let wait = |waiting: &mut Client, c: &mut Client| {
        waiting.wait_for_message("q");
        c.until_blocked(1);
    };
    assert_eq!(c.pop_ids("q LEASE 600000"), ["a"]);
    wait(&mut waiting, &mut c);
    assert_eq!(c.ack("q a"), 1);
    assert_eq!(waiting.served().id, "b", "after an ack");
    wait(&mut waiting, &mut c);
    c.nack("q b DEAD");
    assert_eq!(waiting.served().id, "c", "after a nack");
    wait(&mut waiting, &mut c);
    c.nack("q c DELAY 600000");
    assert_eq!(waiting.served().id, "d", "after a nack that delays");
    wait(&mut waiting, &mut c);
    c.push("q x ID d REPLACE DELAY 600000");
    assert_eq!(waiting.served().id, "e", "after a replacement");
}

#[test]
fn the_options_of_a_pop_apply_to_a_blocked_client() {
    in_both_protocols_with_two(|waiting, c| {
        waiting.send("DQ.POP q BLOCK 0 NOACK COUNT 2");
        c.until_blocked(1);
        c.multi(&["DQ.PUSH q x ID a", "DQ.PUSH q x ID b", "DQ.PUSH q x ID c"]);
        let reply = waiting.receive();
        let ids: Vec<_> = reply.items().iter().map(|message| message.items()[0].text()).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(reply.items()[0].items()[3], waiting.null());
        assert_eq!(c.len("q"), 1);
    });
}

#[test]
fn the_lease_of_a_blocked_client_starts_with_its_delivery() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    waiting.send("DQ.POP q BLOCK 0 LEASE 50000");
    c.until_blocked(1);
    c.expect_ms_from_now(50_000, |c| {
        c.push("q x ID m");
        waiting.served();
        c.get("q", "m").int("deadline")
    });
}

#[test]
fn a_blocked_client_gets_null_when_its_timeout_ends() {
    in_both_protocols(|c| {
        c.push("q x DELAY 600000");
        let start = c.now();
        assert_eq!(c.ask("DQ.POP q BLOCK 50"), c.null_array());
        assert!(c.latest_now() >= start + 50, "it waited");
        assert_eq!(c.ask("DQ.POP absent BLOCK 1"), c.null_array());
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
    });
}

#[test]
fn a_subscriber_gets_one_reply_whether_or_not_it_blocks() {
    // In RESP2 a subscriber cannot send these commands. In RESP3 some servers let it wait and others do not.
    for subscribe in ["SUBSCRIBE channel", "PSUBSCRIBE pattern*", "SSUBSCRIBE channel"] {
        let server = Server::start();
        let mut c = server.client_with(Protocol::Resp3);
        c.ask(subscribe);
        for line in ["DQ.POP q BLOCK 30", "DQ.MPOP 2 q other BLOCK 30", "DQ.ACKPOP q 1 nobody BLOCK 30"] {
            c.send(line);
            c.send("ECHO next");
            let nothing = if line.starts_with("DQ.ACKPOP") {
                Reply::Array(vec![Reply::Int(0), c.null_array()])
            } else {
                c.null_array()
            };
            assert_eq!(c.receive(), nothing, "{subscribe}, {line}");
            assert_eq!(c.receive(), Reply::bulk("next"), "{subscribe}, {line}: one reply");
        }
        assert_eq!(c.info("dq", "dq_blocked_clients"), "0");
        c.push("q x ID m");
        assert_eq!(c.pop_ids("q BLOCK 0"), ["m"], "what is there is delivered");
    }
}

#[test]
fn the_longest_wait_is_a_wait() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    waiting.send("DQ.POP q BLOCK 4398046511103");
    c.until_blocked(1);
    c.push("q x ID m DELAY 20");
    assert_eq!(waiting.served().id, "m");
}

#[test]
fn a_transaction_does_not_wait() {
    in_both_protocols(|c| {
        let replies =
            c.multi(&["DQ.POP q BLOCK 0", "PING", "DQ.PUSH q x ID m", "DQ.POP q BLOCK 0", "DQ.POP q BLOCK 0"]);
        assert_eq!(replies.len(), 5);
        assert_eq!(replies[0], c.null_array());
        assert_eq!(replies[3].items()[0].items()[0], Reply::bulk("m"), "what is there is delivered");
        assert_eq!(replies[4], c.null_array());
    });
}

#[test]
fn a_script_does_not_wait() {
    in_both_protocols(|c| {
        let script = "local got = redis.call('DQ.POP', KEYS[1], 'BLOCK', '0') \
                      if got then return got[1][1] else return 'nothing' end";
        assert_eq!(c.cmd(&["EVAL", script, "1", "q"]), Reply::bulk("nothing"));
        c.push("q x ID m");
        assert_eq!(c.cmd(&["EVAL", script, "1", "q"]), Reply::bulk("m"));
    });
}

#[test]
fn a_push_in_transactions_or_scripts_wakes_a_blocked_client() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.multi(&["DQ.PUSH q x ID a", "PING"]);
    assert_eq!(waiting.served().id, "a");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.cmd(&["EVAL", "return redis.call('DQ.PUSH', KEYS[1], 'x', 'ID', 'b')", "1", "q"]);
    assert_eq!(waiting.served().id, "b");
}

#[test]
fn a_message_removed_in_the_same_transaction_wakes_no_client() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.multi(&["DQ.PUSH q x ID a", "DQ.POP q NOACK"]);
    c.until_blocked(1);
    c.push("q x ID b");
    assert_eq!(waiting.served().id, "b");
}

#[test]
fn info_counts_the_blocked_clients() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    assert_eq!(c.info("dq", "dq_blocked_clients"), "0");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    assert_eq!(c.info("dq", "dq_blocked_clients"), "1");
    c.push("q x");
    waiting.served();
    eventually("nobody waits", || c.info("dq", "dq_blocked_clients") == "0");
}

/// A test of two clients, the first in RESP2, then in RESP3.
fn in_both_protocols_with_two(test: impl Fn(&mut Client, &mut Client)) {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let server = Server::start();
        test(&mut server.client_with(protocol), &mut server.client());
    }
}
