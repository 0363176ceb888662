//! A blocked client is served only if the server would accept the same command at that moment.

use crate::support::{eventually, Client, NoSave, Reply, Server};

/// Two blocked clients that came one after the other, and a third connection; a message falls due for them shortly.
fn two_blocked(server: &Server) -> (Client, Client, Client) {
    let (mut first, mut second, mut c) = (server.client(), server.client(), server.client());
    first.wait_for_message("q");
    c.until_blocked(1);
    second.send("DQ.MPOP 2 other q BLOCK 0");
    c.until_blocked(2);
    (first, second, c)
}

/// Waits until the message is due and its delivery has been tried a few times.
fn until_refused(c: &mut Client) {
    eventually("the message is due", || c.len("q ready") == 1);
    let runs = |c: &mut Client| c.info("dq", "dq_timer_runs").parse::<u64>().expect("a number");
    let before = runs(c);
    eventually("the delivery is tried again", || runs(c) >= before + 3);
}

/// Lets a message fall due while `refuse` holds, and again after `accept`.
fn expect_waits_while(server: &Server, refuse: &str, accept: impl FnOnce(&mut Client)) {
    let (mut first, mut second, mut c) = two_blocked(server);
    c.at_once(["DQ.PUSH q x ID a DELAY 30", refuse]);
    until_refused(&mut c);
    c.until_blocked(2);
    assert_eq!(c.get("q", "a").int("attempt"), 0);
    accept(&mut c);
    assert_eq!(first.served().id, "a", "the first keeps its turn");
    c.push("q x ID b");
    assert_eq!(second.served_from_any().1.id, "b");
}

#[test]
fn blocked_clients_wait_while_too_few_replicas_are_there() {
    let server = Server::start();
    expect_waits_while(&server, "CONFIG SET min-replicas-to-write 1", |c| c.configure("min-replicas-to-write", 0));
}

#[test]
fn blocked_clients_wait_while_the_server_cannot_save() {
    let server = Server::start();
    let no_save = NoSave::on(&server);
    expect_waits_while(&server, "CONFIG SET stop-writes-on-bgsave-error yes", |c| no_save.end(c));
}

#[test]
fn blocked_clients_wait_while_a_replica_takes_no_writes() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &["--replica-read-only", "no"]);
    expect_waits_while(&replica, "CONFIG SET replica-read-only yes", |c| c.configure("replica-read-only", "no"));
}

#[test]
fn blocked_clients_wait_while_writes_are_paused() {
    let server = Server::start();
    let (mut first, _second, mut c) = two_blocked(&server);
    c.at_once(["DQ.PUSH q x ID a DELAY 30", "CLIENT PAUSE 600000 WRITE"]);
    eventually("the message is due", || c.len("q ready") == 1);
    c.until_blocked(2);
    c.ask("CLIENT UNPAUSE").ok();
    assert_eq!(first.served().id, "a");
}

#[test]
fn nothing_is_tried_again_when_nobody_is_blocked() {
    let server = Server::start();
    let (first, second, mut c) = two_blocked(&server);
    c.at_once(["DQ.PUSH q x ID a DELAY 30", "CONFIG SET min-replicas-to-write 1"]);
    until_refused(&mut c);
    drop((first, second));
    c.until_blocked(0);
    let mut idle = server.client();
    eventually("the timer rests", || {
        let before = c.info("dq", "dq_timer_runs");
        idle.ask("BLPOP absent 0.2");
        c.info("dq", "dq_timer_runs") == before
    });
}

#[test]
fn a_refused_delivery_is_replicated_once_it_is_made() {
    let server = Server::with_aof(&["--min-replicas-max-lag", "1"]);
    let replica = Server::replica_of(&server, &[]);
    let (mut first, _second, mut c) = two_blocked(&server);
    c.at_once(["DQ.PUSH q x ID a DELAY 30", "CONFIG SET min-replicas-to-write 2"]);
    until_refused(&mut c);
    c.configure("min-replicas-to-write", 1);
    assert_eq!(first.served().id, "a");
    assert_eq!(c.ask("WAIT 1 0"), Reply::Int(1));
    assert_eq!(replica.client().digest("q"), c.digest("q"));
}

/// Blocks one client on the native list `l` and one with `line`, both of a user whose rights `revoke` takes away, and
/// wakes both. Returns what they are answered, the native one first.
fn after_losing_rights(line: &str, revoke: &str) -> (Reply, Reply) {
    let server = Server::start();
    let mut c = server.client();
    c.ask("ACL SETUSER worker on >secret ~* +@all").ok();
    let (mut native, mut waiting, mut next) = (server.client(), server.client(), server.client());
    for (n, (client, line)) in [(&mut native, "BLPOP l 0"), (&mut waiting, line)].into_iter().enumerate() {
        client.ask("AUTH worker secret").ok();
        client.send(line);
        let blocked = || c.info("clients", "blocked_clients") == (n + 1).to_string();
        eventually("it is blocked", blocked);
    }
    next.wait_for_message("q");
    c.until_blocked(3);
    c.ask(revoke).ok();
    c.ask("RPUSH l x");
    c.push("q x ID a");
    let answers = (native.receive(), waiting.receive());
    if answers.1.is_error() {
        assert_eq!(next.served().id, "a", "the next in turn gets the message");
    }
    assert_eq!(waiting.ask("AUTH worker secret"), Reply::Simple("OK".into()), "one answer and no more");
    answers
}

#[test]
fn a_client_that_lost_its_rights_is_denied() {
    for (line, revoke) in [
        ("DQ.POP q BLOCK 0", "ACL SETUSER worker -blpop -dq.pop"),
        ("DQ.MPOP 2 other q BLOCK 0", "ACL SETUSER worker -blpop -dq.mpop"),
        ("DQ.ACKPOP q 1 nobody BLOCK 0", "ACL SETUSER worker -blpop -dq.ackpop"),
        ("DQ.POP q BLOCK 0", "ACL SETUSER worker resetkeys ~other"),
        ("DQ.MPOP 2 other q BLOCK 0", "ACL SETUSER worker resetkeys ~other"),
    ] {
        let (native, ours) = after_losing_rights(line, revoke);
        assert_eq!(native.is_error(), ours.is_error(), "{line}, {revoke}: {native:?}, {ours:?}");
        if native.is_error() {
            let command = line.split(' ').next().unwrap_or_default().to_lowercase();
            assert_eq!(ours.error().to_lowercase(), native.error().to_lowercase().replace("blpop", &command));
        }
    }
}
