//! Blocked clients: they are served in order of arrival, keep waiting whatever happens to the key, and are forgotten
//! when they disconnect.

use crate::support::{eventually, in_both_protocols, Client, Reply, Server};

#[test]
fn blocked_clients_are_served_first_come_first_served() {
    let server = Server::start();
    let mut c = server.client();
    let mut waiting: Vec<Client> = (0..8).map(|_| server.client()).collect();
    for (n, client) in waiting.iter_mut().enumerate() {
        client.wait_for_message("q");
        c.until_blocked(n + 1);
    }
    for (n, client) in waiting.iter_mut().enumerate() {
        c.push(format!("q x ID m{n} DELAY {}", n % 2 * 20));
        assert_eq!(client.served().id, format!("m{n}"));
    }
}

#[test]
fn messages_due_together_go_to_blocked_clients_one_each() {
    let server = Server::start();
    let mut c = server.client();
    let mut waiting: Vec<Client> = (0..5).map(|_| server.client()).collect();
    for (n, client) in waiting.iter_mut().enumerate() {
        client.wait_for_message("q");
        c.until_blocked(n + 1);
    }
    let due = c.now() + 500;
    c.pipeline((0..5).map(|n| format!("DQ.PUSH q x ID m{n} AT {due}")));
    for (n, client) in waiting.iter_mut().enumerate() {
        assert_eq!(client.served().id, format!("m{n}"));
    }
}

#[test]
fn a_client_waits_for_its_own_queue_only() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    waiting.wait_for_message("mine");
    c.until_blocked(1);
    c.push("other x");
    c.ask("SELECT 1").ok();
    c.push("mine x ID in-another-database");
    c.ask("SELECT 0").ok();
    c.until_blocked(1);
    c.push("mine x ID mine");
    assert_eq!(waiting.served().id, "mine");
}

#[test]
fn an_unblocked_client_gets_null_and_no_message() {
    in_both_protocols(|c| {
        let id = c.ask("CLIENT ID").int();
        let mut other = second(c);
        c.send("DQ.POP q BLOCK 0");
        other.until_blocked(1);
        assert_eq!(other.ask(format!("CLIENT UNBLOCK {id}")), Reply::Int(1));
        assert_eq!(c.receive(), c.null_array());
        other.push("q x");
        assert_eq!(other.pop_one("q").attempt, 1);
    });
}

#[test]
fn a_client_unblocked_with_an_error_gets_the_error() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    let id = waiting.ask("CLIENT ID").int();
    waiting.wait_for_message("q");
    c.until_blocked(1);
    assert_eq!(c.ask(format!("CLIENT UNBLOCK {id} ERROR")), Reply::Int(1));
    assert!(waiting.receive().error().starts_with("UNBLOCKED "));
    c.push("q x");
    assert_eq!(c.pop_one("q").attempt, 1);
    waiting.ask("PING");
}

#[test]
fn a_served_client_cannot_be_unblocked_with_another_reply() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    let id = waiting.ask("CLIENT ID").int();
    let (push, ack) = ("DQ.PUSH q x ID m", "DQ.ACK q m");
    for (before, command, serves) in [
        (ack, "DQ.POP q BLOCK 0", push),
        (ack, "DQ.MPOP 2 p q BLOCK 0", push),
        (ack, "DQ.ACKPOP q 1 none BLOCK 0", push),
        (push, "DQ.AWAIT q m BLOCK 0", ack),
    ] {
        c.ask(before);
        waiting.send(command);
        c.until_blocked(1);
        let unblock = format!("CLIENT UNBLOCK {id} ERROR");
        let replies = c.pipeline([serves, &unblock, &unblock]);
        assert_eq!(replies[1..], [Reply::Int(0), Reply::Int(0)], "{command}");
        let reply = waiting.receive();
        assert!(!reply.is_error(), "{command}: {reply:?}");
        assert_eq!(waiting.ask("ECHO next"), Reply::bulk("next"), "{command}");
    }
    // A client that still waits is unblocked, whichever others were served before.
    let mut other = server.client();
    other.wait_for_message("q");
    c.until_blocked(1);
    waiting.wait_for_message("q");
    c.until_blocked(2);
    let replies = c.pipeline([push, &format!("CLIENT UNBLOCK {id} ERROR")]);
    assert_eq!(replies[1], Reply::Int(1));
    assert!(waiting.receive().error().starts_with("UNBLOCKED "));
    assert_eq!(other.served().id, "m");
}

#[test]
fn a_client_that_is_gone_is_never_handed_a_message() {
    let server = Server::start();
    let mut c = server.client();
    // Killed together with the push.
    let mut gone = server.client();
    let id = gone.ask("CLIENT ID").int();
    gone.wait_for_message("q");
    c.until_blocked(1);
    c.multi(&[&format!("CLIENT KILL ID {id}"), "DQ.PUSH q x ID a"]);
    assert_eq!(c.pop_one("q LEASE 600000").attempt, 1);
    // It disconnects while another client is blocked behind it.
    let (mut gone, mut next) = (server.client(), server.client());
    gone.wait_for_message("q");
    c.until_blocked(1);
    next.wait_for_message("q");
    c.until_blocked(2);
    drop(gone);
    c.until_blocked(1);
    c.push("q x ID b DELAY 20");
    let message = next.served();
    assert_eq!((message.id.as_str(), message.attempt), ("b", 1));
    eventually("nobody is left", || c.info("dq", "dq_blocked_clients") == "0");
}

#[test]
fn a_key_that_goes_keeps_its_clients_waiting() {
    for way in ["DEL q", "UNLINK q", "FLUSHALL", "FLUSHDB", "RENAME q elsewhere", "MOVE q 1", "PEXPIRE q 1"] {
        let server = Server::start();
        let (mut waiting, mut c) = (server.client(), server.client());
        c.push("q x ID old DELAY 600000");
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.ask(way);
        eventually("the key is gone", || c.ask("EXISTS q") == Reply::Int(0));
        c.until_blocked(1);
        c.push("q x ID new DELAY 30");
        assert_eq!(waiting.served().id, "new", "{way}");
    }
}

#[test]
fn a_key_that_becomes_another_type_keeps_its_clients_waiting() {
    for way in ["SET q text", "LPUSH q item", "XADD q * field value", "ZADD q 1 member"] {
        let server = Server::start();
        let (mut waiting, mut c) = (server.client(), server.client());
        c.push("q x ID old DELAY 600000");
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.multi(&["DEL q", way]);
        c.until_blocked(1);
        assert!(c.ask("DQ.PUSH q x").error().starts_with("WRONGTYPE "));
        c.ask("DEL q");
        c.push("q x ID new");
        assert_eq!(waiting.served().id, "new", "{way}");
    }
}

#[test]
fn a_key_of_another_type_is_not_waited_for() {
    let server = Server::start();
    let mut c = server.client();
    c.ask("SET q text").ok();
    let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(c.ask("DQ.POP q BLOCK 0").error(), wrong);
}

/// The ways in which a queue made elsewhere (key `from`, or database 1) gets the name `q`.
const ARRIVALS: [(&str, &[&str]); 6] = [
    ("RENAME", &["RENAME from q"]),
    ("COPY", &["COPY from q"]),
    ("COPY from another database", &["MOVE from 1", "SELECT 1", "COPY from q DB 0", "SELECT 0"]),
    ("MOVE", &["RENAME from elsewhere", "MOVE elsewhere 1", "SELECT 1", "RENAME elsewhere q", "MOVE q 0", "SELECT 0"]),
    ("SWAPDB", &["MOVE from 1", "SELECT 1", "RENAME from q", "SELECT 0", "SWAPDB 0 1"]),
    ("SWAPDB with a queue there", &["MOVE from 1", "SELECT 1", "COPY from q", "SELECT 0", "SWAPDB 1 0"]),
];

#[test]
fn a_queue_that_takes_the_name_wakes_blocked_clients() {
    for (way, lines) in ARRIVALS {
        let server = Server::start();
        let (mut waiting, mut c) = (server.client(), server.client());
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.push("from x ID m");
        for line in lines {
            assert!(!matches!(c.ask(line), Reply::Error(_) | Reply::Int(0)), "{way}: {line}");
        }
        assert_eq!(waiting.served().id, "m", "{way}");
    }
}

#[test]
fn a_queue_that_takes_the_name_serves_clients_when_due() {
    for (way, lines) in ARRIVALS {
        let server = Server::start();
        let (mut waiting, mut c) = (server.client(), server.client());
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.push("from x ID m DELAY 250");
        let due = c.get("from", "m").int("due");
        for line in lines {
            assert!(!matches!(c.ask(line), Reply::Error(_) | Reply::Int(0)), "{way}: {line}");
        }
        assert_eq!(waiting.served().id, "m", "{way}");
        c.expect_delivered_at("q", "m", due);
    }
}

#[test]
fn a_restored_queue_wakes_its_blocked_clients() {
    for delay in [0, 250] {
        let server = Server::start();
        let (mut waiting, mut c) = (server.client(), server.client());
        c.push(format!("q x ID m DELAY {delay}"));
        let due = c.get("q", "m").int("due");
        let dump = c.ask("DUMP q");
        c.ask("DEL q");
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.cmd(&[b"RESTORE", b"q".as_slice(), b"0", dump.bytes()]).ok();
        assert_eq!(waiting.served().id, "m");
        c.expect_delivered_at("q", "m", due);
    }
}

#[test]
fn a_reloaded_queue_serves_its_blocked_clients() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID m DELAY 1000");
    let due = c.get("q", "m").int("due");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.ask("DEBUG RELOAD").ok();
    assert_eq!(waiting.served().id, "m");
    c.expect_delivered_at("q", "m", due);
}

/// Another connection to the server of `c`.
fn second(c: &mut Client) -> Client {
    let port = c.info("server", "tcp_port").parse().expect("a port");
    Client::connect(port, crate::support::Protocol::Resp2).expect("a connection")
}

#[test]
fn looking_at_other_queues_loses_no_blocked_client() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    // The timer has visited the queue, and nothing falls due for a while.
    c.push("q x ID first");
    c.pop_one("q LEASE 50");
    c.until_state("q", "first", "ready");
    waiting.wait_for_message("q");
    assert_eq!(waiting.served().id, "first");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    assert_eq!(c.ack("q first"), 1);
    // The timer visits a copy as soon as possible.
    c.push("other x DELAY 1");
    assert_eq!(c.ask("COPY other copied"), Reply::Int(1));
    eventually("the copy is looked at", || c.len("copied ready") == 1);
    c.push("q x ID second DELAY 50");
    assert_eq!(waiting.served().id, "second");
}

#[test]
fn queues_that_are_gone_leave_the_timer_nothing_to_do() {
    let server = Server::start();
    let mut c = server.client();
    let due = c.now() + 150;
    c.pipeline((0..2_000).flat_map(|n| [format!("DQ.PUSH q{n} x AT {due}"), format!("DEL q{n}")]));
    c.push("kept x ID m DELAY 100");
    eventually("what is due moves", || c.info("dq", "dq_ready") == "1");
    assert_eq!(c.info("dq", "dq_timer_moved"), "1");
    assert_eq!(c.info("dq", "dq_queues"), "1");
}
