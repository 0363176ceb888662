//! Who is woken by an ack, where `DQ.AWAIT` is served, and who may wait.

use crate::support::{eventually, Reply, Server};

#[test]
fn an_ack_answers_only_the_clients_of_its_message() {
    let server = Server::start();
    let mut c = server.client();
    let mut clients: Vec<_> = (0..6).map(|_| server.client()).collect();
    c.create("q RETAIN 600000");
    for (nth, client) in clients.iter_mut().enumerate() {
        if nth % 2 == 0 {
            c.push(format!("q x ID m{}", nth / 2));
        }
        client.send(format!("DQ.AWAIT q m{} BLOCK 0", nth / 2));
    }
    c.until_blocked(6);
    c.pop("q COUNT 9 LEASE 600000");
    for message in [1, 0, 2] {
        assert_eq!(c.ack(format!("q m{message}")), 1);
        for client in &mut clients[2 * message..2 * message + 2] {
            assert_eq!(client.receive().fields().text("id"), format!("m{message}"));
        }
    }
}

#[test]
fn consumers_and_awaiting_clients_share_a_key() {
    let server = Server::start();
    let (mut awaits, mut pops, mut c) = (server.client(), server.client(), server.client());
    c.push("q x ID later DELAY 600000 RETAIN 600000");
    awaits.send("DQ.AWAIT q later BLOCK 0");
    c.until_blocked(1);
    pops.wait_for_message("q");
    c.until_blocked(2);
    c.push("q x ID now");
    assert_eq!(pops.served().id, "now");
    pops.wait_for_message("q");
    c.until_blocked(2);
    c.ask("DQ.PROMOTE q");
    assert_eq!(pops.served().id, "later");
    assert_eq!(c.ack("q now later"), 2);
    assert_eq!(awaits.receive().fields().text("state"), "done");
}

#[test]
fn the_answer_comes_in_the_step_of_the_ack() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID m RETAIN 600000");
    waiting.send("DQ.AWAIT q m BLOCK 0");
    c.until_blocked(1);
    c.pop("q");
    // The purge follows the ack in one pipeline, and comes too late to remove the message.
    c.send("DQ.ACK q m");
    c.send("DQ.PURGE q");
    assert_eq!((c.receive(), c.receive()), (Reply::Int(1), Reply::Int(1)));
    assert_eq!(waiting.receive().fields().text("state"), "done");
}

#[test]
fn clients_wait_on_a_replica_too() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r, mut waiting) = (master.client(), replica.client(), replica.client());
    c.push("q x ID m");
    eventually("the replica has it", || r.state("q", "m") == "ready");
    waiting.send("DQ.AWAIT q m BLOCK 0");
    r.until_blocked(1);
    c.push("q x ID m REPLACE");
    c.pop("q LEASE 600000");
    assert_eq!(c.ask("DQ.COMPLETE q m RESULT r RETAIN 600000"), Reply::Int(1));
    assert_eq!(waiting.receive().fields().text("result"), "r");
    assert_eq!(r.ask("DQ.AWAIT q m").fields().text("result"), "r");
    c.push("q x ID expires TTL 1000");
    eventually("the replica has it", || r.state("q", "expires") != "absent");
    waiting.send("DQ.AWAIT q expires BLOCK 0");
    assert_eq!(waiting.receive().fields().text("reason"), "expired");
}

#[test]
fn awaiting_is_served_while_writes_are_refused() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID m TTL 400");
    c.configure("min-replicas-to-write", 1);
    assert!(matches!(c.ask("DQ.ACK q m"), Reply::Error(_)));
    waiting.send("DQ.AWAIT q m BLOCK 0");
    assert_eq!(waiting.receive().fields().text("state"), "dead");
}

#[test]
fn a_user_who_may_not_read_the_key_may_not_wait() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.ask("ACL SETUSER reader on nopass ~q +dq.await +client").ok();
    c.push("q x ID m RETAIN 600000");
    waiting.ask("AUTH reader any").ok();
    assert!(matches!(waiting.ask("DQ.AWAIT other m"), Reply::Error(text) if text.starts_with("NOPERM")));
    assert!(matches!(waiting.ask("DQ.COMPLETE q m"), Reply::Error(text) if text.starts_with("NOPERM")));
    waiting.send("DQ.AWAIT q m BLOCK 0");
    c.until_blocked(1);
    let rechecks = c.info("server", "redis_version").as_str() >= "7.2";
    c.ask("ACL SETUSER reader resetkeys ~other").ok();
    c.pop("q NOACK");
    // Redis 7.0 does not check the permissions of a blocked client again.
    let reply = waiting.receive();
    match reply {
        Reply::Error(text) => assert!(rechecks && text.starts_with("NOPERM"), "{text}"),
        reply => assert!(!rechecks && reply.fields().text("state") == "done", "{reply:?}"),
    }
}
