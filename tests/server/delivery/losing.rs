//! A consumer is told when others take a message from it.

use crate::support::{eventually, Client, Cluster, Protocol, Server};

/// A connection that listens to the losses of the queue `q`.
fn listening(server: &Server) -> Client {
    let mut ear = server.client_with(Protocol::Resp2);
    for channel in ["__dq@0__:q", "mark"] {
        ear.ask(format!("SUBSCRIBE {channel}"));
    }
    ear
}

/// What was published since the last call.
#[track_caller]
fn heard(ear: &mut Client, c: &mut Client) -> Vec<String> {
    c.ask("PUBLISH mark now");
    let mut messages = Vec::new();
    loop {
        let message = ear.receive();
        let [_, channel, text] = message.items() else { panic!("{message:?}") };
        if channel.text() == "mark" {
            return messages;
        }
        messages.push(text.text());
    }
}

/// Delivers the message `m` of the queue `q` after it was pushed. Returns the receipt.
fn delivered(c: &mut Client) -> String {
    c.push("q x ID m REPLACE");
    c.pop_one("q LEASE 600000").receipt().to_owned()
}

#[test]
fn a_consumer_is_told_what_took_its_message() {
    let server = Server::start();
    let (mut ear, mut c) = (listening(&server), server.client());
    for (line, reason) in [
        ("DQ.CANCEL q m", "cancelled"),
        ("DQ.CANCEL q nobody m", "cancelled"),
        ("DQ.PUSH q y ID m REPLACE DELAY 600000", "replaced"),
        ("DQ.MPUSH q 2 y z IDS m n REPLACE DELAY 600000", "replaced"),
        ("DQ.BURY q m", "buried"),
        ("DQ.PURGE q", "purged"),
        ("DQ.PURGE q inflight COUNT 1", "purged"),
        ("DQ.PURGE q dead inflight", "purged"),
    ] {
        let receipt = delivered(&mut c);
        assert_eq!(heard(&mut ear, &mut c), Vec::<String>::new());
        c.ask(line);
        assert_eq!(heard(&mut ear, &mut c), [format!("{reason} {receipt}")], "{line}");
        c.ask("DEL q");
    }
    for (line, reason) in [("DQ.RELEASE q w", "released"), ("DQ.RELEASE q w NOCOUNT", "released")] {
        c.push("q x");
        let receipt = c.pop_one("q LEASE 600000 AS w").receipt().to_owned();
        c.ask(line);
        assert_eq!(heard(&mut ear, &mut c), [format!("{reason} {receipt}")], "{line}");
        c.ask("DEL q");
    }
    c.push("q x GROUP g");
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    c.ask("DQ.PURGE q GROUP g");
    assert_eq!(heard(&mut ear, &mut c), [format!("purged {receipt}")]);
}

#[test]
fn nothing_is_told_if_nobody_lost_a_message() {
    let server = Server::start();
    let (mut ear, mut c) = (listening(&server), server.client());
    for line in [
        "DQ.PUSH q y ID m REPLACE LATER",
        "DQ.PUSH q y ID m",
        "DQ.SCHEDULE q m y EVERY 600000",
        "DQ.RESCHEDULE q m DELAY 5",
        "DQ.PURGE q ready delayed dead",
        "DQ.PURGE q GROUP other",
        "DQ.CANCEL q nobody",
        "DQ.RELEASE q nobody",
        "DQ.EXTEND q m LEASE 1",
        "DQ.NACK q m DEAD",
        "DQ.NACK q m NOCOUNT",
        "DQ.ACK q m",
        "DQ.ALTER q LEASE 5",
        "DEL q",
        "FLUSHALL",
    ] {
        delivered(&mut c);
        c.ask(line);
        assert_eq!(heard(&mut ear, &mut c), Vec::<String>::new(), "{line}");
        c.ask("DEL q");
    }
    c.push("q x ID m");
    c.pop_one("q LEASE 1");
    c.until_state("q", "m", "ready");
    for line in ["DQ.PUSH q x ID m REPLACE", "DQ.BURY q m", "DQ.CANCEL q m"] {
        c.ask(line);
    }
    assert_eq!(heard(&mut ear, &mut c), Vec::<String>::new(), "nobody held it");
}

#[test]
fn the_loss_of_many_messages_is_told_in_one_word() {
    let server = Server::start();
    let (mut ear, mut c) = (listening(&server), server.client());
    for (count, most) in [(1_000, 1_000), (1_001, 1)] {
        let ids = (0..count).map(|nth| format!("m{nth}")).collect::<Vec<_>>().join(" ");
        let payloads = vec!["x"; count].join(" ");
        for (line, reason) in [
            ("DQ.PURGE q".to_owned(), "purged"),
            ("DQ.BATCH q b CANCEL".to_owned(), "cancelled"),
            ("DQ.RELEASE q w".to_owned(), "released"),
            ("DQ.RELEASE q w NOCOUNT".to_owned(), "released"),
            (format!("DQ.CANCEL q {ids}"), "cancelled"),
            (format!("DQ.MPUSH q {count} {payloads} IDS {ids} REPLACE"), "replaced"),
        ] {
            c.ask(format!("DQ.MPUSH q {count} {payloads} IDS {ids} BATCH b"));
            c.pop(format!("q COUNT {count} LEASE 600000 AS w"));
            c.ask(&line);
            let told = heard(&mut ear, &mut c);
            assert_eq!(told.len(), most, "{reason}");
            if count > 1_000 {
                assert_eq!(told, ["purged"], "{reason}");
            } else {
                assert!(told.iter().all(|text| text.starts_with(&format!("{reason} "))), "{reason}");
            }
            c.ask("DEL q");
        }
    }
}

#[test]
fn a_loss_with_a_successor_names_the_delivery() {
    let server = Server::start();
    let (mut ear, mut c) = (listening(&server), server.client());
    for line in ["DQ.CANCEL q m", "DQ.BURY q m", "DQ.PUSH q z ID m REPLACE"] {
        let receipt = delivered(&mut c);
        c.push("q y ID m REPLACE LATER DELAY 600000");
        c.ask(line);
        let told = heard(&mut ear, &mut c);
        assert!(told.len() == 1 && told[0].ends_with(&format!(" {receipt}")), "{line}: {told:?}");
        c.ask("DEL q");
    }
}

#[test]
fn a_loss_in_a_transaction_or_a_script_is_told() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let server = Server::start();
        let (mut ear, mut c) = (listening(&server), server.client_with(protocol));
        let receipt = delivered(&mut c);
        c.multi(&["DQ.BURY q m", "DQ.CANCEL q m"]);
        assert_eq!(heard(&mut ear, &mut c), [format!("buried {receipt}")]);
        let receipt = delivered(&mut c);
        c.script("DQ.CANCEL q m");
        assert_eq!(heard(&mut ear, &mut c), [format!("cancelled {receipt}")]);
    }
}

#[test]
fn the_channel_names_the_database_and_any_key() {
    let server = Server::start();
    let (mut ear, mut c) = (server.client_with(Protocol::Resp2), server.client());
    ear.cmd(&[&b"SUBSCRIBE"[..], b"__dq@3__:\xff q"]);
    c.ask("SELECT 3").ok();
    c.cmd(&[&b"DQ.PUSH"[..], b"\xff q", b"x", b"ID", b"\xfe"]);
    c.cmd(&[&b"DQ.POP"[..], b"\xff q"]);
    c.cmd(&[&b"DQ.CANCEL"[..], b"\xff q", b"\xfe"]);
    let message = ear.receive();
    let text = message.items()[2].bytes();
    assert!(text.starts_with(b"cancelled \xfe#"), "{text:?}");
}

#[test]
fn replicas_and_effects_tell_nothing() {
    let server = Server::start();
    let replica = Server::replica_of(&server, &[]);
    let (mut ear, mut c) = (listening(&replica), server.client());
    delivered(&mut c);
    c.cancel("q m");
    let digest = c.digest("q");
    eventually("the replica follows", || replica.client().digest("q") == digest);
    assert_eq!(heard(&mut ear, &mut replica.client()), Vec::<String>::new());
}

#[test]
fn subscribers_of_every_node_of_a_cluster_are_told() {
    let cluster = Cluster::of(3, 5_000);
    let (tag, _) = cluster.tag_of(0);
    let key = format!("{tag}q");
    let mut ears = [0, 1, 2].map(|number| cluster.client(number));
    ears.iter_mut().for_each(|ear| drop(ear.ask(format!("SUBSCRIBE __dq@0__:{key}"))));
    let mut c = cluster.client(0);
    c.push(format!("{key} x ID m"));
    let receipt = c.pop_one(&key).receipt().to_owned();
    c.cancel(format!("{key} m"));
    for ear in &mut ears {
        assert_eq!(ear.receive().items()[2].text(), format!("cancelled {receipt}"));
    }
}
