//! `DQ.AWAIT`: a client waits until a message is done, dead or gone.

use crate::support::{eventually, in_both_protocols, Client, Protocol, Reply, Server};

/// Runs a test with a client that waits, in RESP2 and in RESP3, and another client.
fn with_two(test: impl Fn(&mut Client, &mut Client)) {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let server = Server::start();
        let (mut waiting, mut c) = (server.client_with(protocol), server.client());
        test(&mut waiting, &mut c);
    }
}

fn wait(waiting: &mut Client, c: &mut Client, id: &str) {
    waiting.send(format!("DQ.AWAIT q {id} BLOCK 0"));
    c.until_blocked(1);
}

#[test]
fn a_message_that_is_done_or_dead_is_not_waited_for() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.pop("q");
        c.ask("DQ.COMPLETE q m RESULT r RETAIN 600000");
        c.bury("q", &["dead"]);
        for block in ["", "BLOCK 0"] {
            assert_eq!(c.ask(format!("DQ.AWAIT q m {block}")).fields(), c.get("q", "m"));
            assert_eq!(c.ask(format!("DQ.AWAIT q dead {block}")).fields(), c.get("q", "dead"));
            for line in ["q never", "absent m", "q 1000000000000-5"] {
                assert_eq!(c.ask(format!("DQ.AWAIT {line} {block}")), c.null_array(), "{line} {block}");
            }
        }
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
    });
}

#[test]
fn without_block_or_where_nothing_may_block_it_answers_at_once() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        assert_eq!(c.ask("DQ.AWAIT q m"), c.null_array());
        assert_eq!(c.multi(&["DQ.AWAIT q m BLOCK 0"])[0], c.null_array());
        assert!(c.script("DQ.AWAIT q m BLOCK 0").is_null());
        c.pop("q");
        let replies = c.multi(&["DQ.COMPLETE q m RETAIN 600000", "DQ.AWAIT q m BLOCK 0"]);
        assert_eq!(replies[1].fields().text("state"), "done");
    });
}

#[test]
fn a_completion_answers_the_client_with_the_message() {
    with_two(|waiting, c| {
        c.push("q x ID m");
        wait(waiting, c, "m");
        c.pop("q");
        c.ask("DQ.COMPLETE q m RESULT r RETAIN 600000");
        assert_eq!(waiting.receive().fields().text("result"), "r");
        let id = c.push("q x RETAIN 600000");
        wait(waiting, c, &id);
        c.pop("q NOACK");
        let message = waiting.receive().fields();
        assert_eq!((message.text("id"), message.text("state")), (id, "done".to_owned()));
    });
}

#[test]
fn whatever_ends_a_message_answers_the_client() {
    for (ending, state) in [
        (&["DQ.POP q", "DQ.ACK q m"][..], None),
        (&["DQ.POP q NOACK"], None),
        (&["DQ.POP q", "DQ.COMPLETE q m RESULT r"], None),
        (&["DQ.POP q", "DQ.NACK q m DEAD"], Some("dead")),
        (&["DQ.BURY q m"], Some("dead")),
        (&["DQ.CANCEL q m"], None),
        (&["DQ.PURGE q"], None),
        (&["DQ.PURGE q ready COUNT 1"], None),
        (&["MULTI", "DQ.POP q", "DQ.ACK q m", "EXEC"], None),
        (&["DQ.ALTER q RETAIN 600000", "DQ.POP q", "DQ.ACK q other m"], Some("done")),
        (&["DQ.ALTER q DEADLEN 0", "DQ.BURY q m"], None),
        (&["DQ.POP q LEASE 1"], Some("dead")),
    ] {
        with_two(|waiting, c| {
            c.push("q x ID m RETRIES 0");
            wait(waiting, c, "m");
            ending.iter().for_each(|line| drop(c.ask(line)));
            let reply = waiting.receive();
            match state {
                Some(state) => assert_eq!(reply.fields().text("state"), state, "{ending:?}"),
                None => assert_eq!(reply, waiting.null_array(), "{ending:?}"),
            }
        });
    }
}

#[test]
fn a_ttl_that_ends_answers_the_client() {
    with_two(|waiting, c| {
        c.push("q x ID m TTL 1000");
        wait(waiting, c, "m");
        assert_eq!(waiting.receive().fields().text("reason"), "expired");
    });
}

#[test]
fn a_client_waits_through_retries_and_changes() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID m");
    wait(&mut waiting, &mut c, "m");
    for line in [
        "DQ.POP q LEASE 600000",
        "DQ.EXTEND q m LEASE 5000",
        "DQ.NACK q m DELAY 600000",
        "DQ.RESCHEDULE q m DELAY 500000",
        "DQ.PROMOTE q",
        "DQ.PAUSE q",
        "DQ.RESUME q",
        "DQ.PUSH q x ID other",
        "DQ.CANCEL q other",
        "DQ.ALTER q RETAIN 600000",
        "DQ.POP q",
    ] {
        c.ask(line);
        assert_eq!(c.info("clients", "blocked_clients"), "1", "{line}");
    }
    assert_eq!(c.ack("q m"), 1);
    assert_eq!(waiting.receive().fields().int("attempt"), 2);
}

#[test]
fn a_client_waits_on_for_the_replacement() {
    with_two(|waiting, c| {
        c.push("q old ID m");
        wait(waiting, c, "m");
        c.push("q new ID m REPLACE RETAIN 600000");
        c.push_many("q 1 newer IDS m REPLACE RETAIN 600000");
        assert_eq!(c.info("clients", "blocked_clients"), "1");
        let receipt = c.pop_one("q").receipt().to_owned();
        c.ask(format!("DQ.COMPLETE q {receipt} RESULT new"));
        assert_eq!(waiting.receive().fields().text("result"), "new");
    });
}

#[test]
fn a_client_waits_on_for_a_replacement_that_waits() {
    with_two(|waiting, c| {
        c.push("q old ID m RETAIN 600000");
        wait(waiting, c, "m");
        c.pop_one("q");
        c.push("q new ID m REPLACE LATER RETAIN 600000");
        assert_eq!(c.ack("q m"), 1);
        assert_eq!((c.state("q", "m"), c.info("clients", "blocked_clients")), ("ready".to_owned(), "1".to_owned()));
        c.pop_one("q");
        c.ask("DQ.COMPLETE q m RESULT new");
        assert_eq!(waiting.receive().fields().text("result"), "new");
    });
}

#[test]
fn waiting_may_begin_while_a_replacement_waits() {
    for ending in [
        &["DQ.ACK q m", "DQ.POP q", "DQ.COMPLETE q m RESULT new"][..],
        &["DQ.NACK q m", "DQ.POP q", "DQ.ACK q m"],
        &["DQ.CANCEL q m"],
        &["DQ.PURGE q"],
        &["DQ.PUSH q z ID m REPLACE RETAIN 600000", "DQ.POP q NOACK"],
    ] {
        let master = Server::start();
        let replica = Server::replica_of(&master, &[]);
        let mut c = master.client();
        c.push("q old ID m RETAIN 600000");
        let mut before = master.client();
        wait(&mut before, &mut c, "m");
        c.pop_one("q");
        c.push("q new ID m REPLACE LATER RETAIN 600000");
        eventually("the replica has the kept message", || {
            let mut r = replica.client();
            r.len("q") == 1 && r.get("q", "m").int("next") == 1
        });
        let (mut here, mut there, mut r) = (master.client(), replica.client(), replica.client());
        here.send("DQ.AWAIT q m BLOCK 0");
        there.send("DQ.AWAIT q m BLOCK 0");
        c.until_blocked(2);
        r.until_blocked(1);
        ending.iter().for_each(|line| drop(c.ask(line)));
        let shown = c.ask("DQ.GET q m");
        for waiting in [&mut before, &mut here, &mut there] {
            assert_eq!(waiting.receive(), shown, "{ending:?}");
        }
    }
}

#[test]
fn a_client_waits_for_the_end_of_a_series() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID s");
    wait(&mut waiting, &mut c, "s");
    let at = c.now();
    assert_eq!(c.ask(format!("DQ.SCHEDULE q s x EVERY 600000 AT {at} TIMES 2")), Reply::bulk("changed"));
    c.pop_one("q");
    c.ask("DQ.SCHEDULE q s y EVERY 500000 TIMES 1");
    assert_eq!(c.ack("q s"), 1);
    assert_eq!(c.info("clients", "blocked_clients"), "1", "the next run has another sequence");
    c.ask("DQ.PROMOTE q");
    c.pop_one("q");
    assert_eq!(c.ack("q s"), 1);
    assert_eq!(waiting.receive(), waiting.null_array(), "nothing is kept of it");
}

#[test]
fn a_client_waits_on_while_the_key_is_gone() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID m");
    c.push("other x ID m");
    wait(&mut waiting, &mut c, "m");
    c.ask("DEL q");
    c.ask("SET q text").ok();
    c.ask("RENAME other q").ok();
    c.ask("SET bystander x").ok();
    assert_eq!(c.info("clients", "blocked_clients"), "1", "the new queue holds the id too");
    c.ask("DQ.CANCEL q m");
    assert_eq!(waiting.receive(), waiting.null_array());
    c.push("q x ID m");
    wait(&mut waiting, &mut c, "m");
    c.ask("UNLINK q");
    c.push("q x ID another");
    assert_eq!(waiting.receive(), waiting.null_array(), "the new queue does not hold the id");
}

#[test]
fn values_that_arrive_as_a_whole_are_looked_at() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("source x ID m RETAIN 600000");
    c.pop("source NOACK");
    let dump = c.ask("DUMP source");
    for way in ["RESTORE", "COPY", "RENAME", "SWAPDB", "MOVE"] {
        c.ask("DEL q");
        c.push("q x ID m");
        wait(&mut waiting, &mut c, "m");
        match way {
            "RESTORE" => c.cmd(&[b"RESTORE", &b"q"[..], b"0", dump.bytes(), b"REPLACE"]).ok(),
            "COPY" => drop(c.ask("COPY source q REPLACE")),
            "RENAME" => {
                c.ask("COPY source third");
                c.ask("RENAME third q").ok();
            }
            "SWAPDB" => {
                c.ask("COPY source q DB 1 REPLACE");
                c.ask("SWAPDB 0 1").ok();
            }
            _ => {
                c.ask("SELECT 0").ok();
                c.ask("DEL q");
                c.ask("COPY source q DB 2 REPLACE");
                c.ask("SELECT 2").ok();
                c.ask("MOVE q 0");
                c.ask("SELECT 0").ok();
            }
        }
        assert_eq!(waiting.receive().fields().text("state"), "done", "{way}");
        if way == "SWAPDB" {
            c.ask("SWAPDB 0 1").ok();
        }
    }
}

#[test]
fn a_client_gets_null_when_its_timeout_ends_or_it_is_unblocked() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let start = c.now();
        assert_eq!(c.ask("DQ.AWAIT q m BLOCK 50"), c.null_array());
        assert!(c.latest_now() >= start + 50, "it waited");
    });
    with_two(|waiting, c| {
        c.push("q x ID m");
        let id = waiting.ask("CLIENT ID").int();
        wait(waiting, c, "m");
        c.ask(format!("CLIENT UNBLOCK {id}"));
        assert_eq!(waiting.receive(), waiting.null_array());
        wait(waiting, c, "m");
        c.ask(format!("CLIENT UNBLOCK {id} ERROR"));
        assert!(matches!(waiting.receive(), Reply::Error(text) if text.starts_with("UNBLOCKED")));
        assert_eq!(c.about("q").int("waiting-clients"), 0);
    });
}

#[test]
fn clients_that_wait_are_counted_until_they_leave() {
    let server = Server::start();
    let (mut one, mut two, mut c) = (server.client(), server.client(), server.client());
    c.push("q x ID m");
    one.send("DQ.AWAIT q m BLOCK 0");
    two.send("DQ.AWAIT q m BLOCK 0");
    c.until_blocked(2);
    assert_eq!((c.about("q").int("waiting-clients"), c.info("dq", "dq_blocked_clients")), (2, "2".to_owned()));
    drop(one);
    eventually("one has left", || c.about("q").int("waiting-clients") == 1);
    c.cancel("q m");
    assert_eq!(two.receive(), two.null_array());
    assert_eq!((c.about("q").int("waiting-clients"), c.info("dq", "dq_blocked_clients")), (0, "0".to_owned()));
}

#[test]
fn waiting_is_no_access_that_changes_anything() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID m");
    let (digest, changes) = (c.digest("q"), c.changes());
    wait(&mut waiting, &mut c, "m");
    assert_eq!((c.digest("q"), c.changes()), (digest, changes));
}

#[test]
fn a_subscriber_gets_one_reply_whether_or_not_it_blocks() {
    let server = Server::start();
    let mut c = server.client_with(Protocol::Resp3);
    c.push("q x ID m");
    c.ask("SUBSCRIBE channel");
    c.send("DQ.AWAIT q m BLOCK 30");
    c.send("ECHO next");
    assert_eq!((c.receive(), c.receive()), (c.null_array(), Reply::bulk("next")));
}
