//! Queues whose key is deleted, renamed or replaced: their messages fall due and their blocked clients are served.
//!
//! The server tells a module little about such changes. Each way is therefore tried on a queue with messages that fall
//! due, leases that end, blocked clients and a replica.

use crate::support::{eventually, Client, Reply, Server};

/// A lease that outlives the test.
const LONG_MS: i64 = 600_000;

/// A server, its replica, and a client that sends commands.
struct Stage {
    server: Server,
    replica: Server,
    c: Client,
}

impl Stage {
    fn new() -> Stage {
        let server = Server::start();
        let replica = Server::replica_of(&server, &[]);
        let c = server.client();
        Stage { server, replica, c }
    }

    /// Sends commands that must be accepted.
    #[track_caller]
    fn say(&mut self, lines: &[&str]) {
        for line in lines {
            let reply = self.c.ask(line);
            assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
        }
    }

    /// A client that waits for `q`, and behind it one that waits for several queues.
    fn waiting(&mut self, db: &str) -> [Client; 2] {
        let mut waiting = [self.server.client(), self.server.client()];
        for (n, client) in waiting.iter_mut().enumerate() {
            client.ask(format!("SELECT {db}")).ok();
            if n == 0 {
                client.wait_for_message("q");
            } else {
                client.wait_for_any(&["none", "q"]);
            }
            self.c.until_blocked(n + 1);
        }
        waiting
    }

    /// Checks that the replica's `q` becomes equal, and clears the stage for the next way.
    #[track_caller]
    fn expect_followed(&mut self, way: &str) {
        let mut r = self.replica.client();
        let c = &mut self.c;
        eventually(&format!("{way}: the replica follows"), || r.digest("q") == c.digest("q"));
        c.ask("SELECT 0").ok();
        c.ask("FLUSHALL").ok();
    }
}

/// Makes a queue `q` that would deliver soon: a lease expires and a message falls due. Returns the receipt of the
/// lease, and the instant by which both have happened.
fn about_to_deliver(c: &mut Client) -> (String, i64) {
    c.push("q x ID held");
    let receipt = c.pop_one(format!("q LEASE {LONG_MS}")).receipt().to_owned();
    let by = c.extend("q held LEASE 60");
    c.push(format!("q x ID late AT {by}"));
    (receipt, by)
}

/// Ways to remove a queue from `q`. Some keep it elsewhere.
const WAYS_TO_GO: [(&str, &[&str]); 15] = [
    ("DEL", &["DEL q"]),
    ("UNLINK", &["UNLINK q"]),
    ("PEXPIRE", &["PEXPIRE q 1"]),
    ("PEXPIREAT in the past", &["PEXPIREAT q 1"]),
    ("FLUSHDB", &["FLUSHDB"]),
    ("FLUSHDB ASYNC", &["FLUSHDB ASYNC"]),
    ("FLUSHALL SYNC", &["FLUSHALL SYNC"]),
    ("RENAME away", &["RENAME q aside"]),
    ("RENAME over another", &["DQ.PUSH aside x", "RENAME q aside"]),
    ("MOVE away", &["MOVE q 1"]),
    ("SWAPDB", &["SWAPDB 0 1"]),
    ("SET over it", &["SET q text", "DEL q"]),
    ("an empty STORE over it", &["SUNIONSTORE q absent"]),
    ("STORE over it", &["RPUSH list 1", "SORT list STORE q", "DEL q"]),
    ("a transaction", &["MULTI", "DEL q", "RPUSH q x", "DEL q", "EXEC"]),
];

#[test]
fn nothing_of_a_deleted_queue_comes_back() {
    let mut stage = Stage::new();
    for (way, lines) in WAYS_TO_GO {
        let (receipt, by) = about_to_deliver(&mut stage.c);
        stage.c.pause("q");
        let mut waiting = stage.waiting("0");
        stage.say(lines);
        let c = &mut stage.c;
        eventually(&format!("{way}: it is gone"), || c.ask("EXISTS q") == Reply::Int(0));
        // Its times pass, and no queue is left to notice.
        c.until_after(by + 30);
        assert_eq!(c.ask("EXISTS q"), Reply::Int(0), "{way}");
        c.until_blocked(2);
        assert_eq!(c.ack(format!("q {receipt}")), 0, "{way}");
        // A new queue of that name is independent: it is not paused, its ids are free, and its receipts are its own.
        let due = c.now() + 40;
        assert_eq!(c.push(format!("q x ID held AT {due}")), "held");
        let message = waiting[0].served();
        assert_eq!((message.id.as_str(), message.attempt), ("held", 1), "{way}");
        assert!(message.receipt() != receipt, "{way}");
        c.expect_delivered_at("q", "held", due);
        assert_eq!(c.ack(format!("q {receipt}")), 0, "{way}: an old receipt means nothing to it");
        c.push("q x ID late");
        assert_eq!(waiting[1].served_from_any().1.id, "late", "{way}");
        assert_eq!((c.counts("q"), c.about("q").int("pushed")), ([0, 0, 2, 0], 2), "{way}");
        stage.expect_followed(way);
    }
}

/// Ways in which another queue, `other` or one of that name in database 1, takes the place of `q`.
const WAYS_TO_REPLACE: [(&str, &[&str]); 7] = [
    ("RENAME over it", &["RENAME other q"]),
    ("COPY REPLACE", &["COPY other q REPLACE"]),
    ("COPY REPLACE from another database", &["MOVE other 1", "SELECT 1", "COPY other q DB 0 REPLACE", "SELECT 0"]),
    ("SWAPDB", &["MOVE other 1", "SELECT 1", "RENAME other q", "SELECT 0", "SWAPDB 0 1"]),
    (
        "MOVE into its place",
        &["MOVE other 1", "SELECT 1", "RENAME other q", "SELECT 0", "DEL q", "SELECT 1", "MOVE q 0", "SELECT 0"],
    ),
    ("a transaction", &["MULTI", "DEL q", "COPY other q", "EXEC"]),
    ("RESTORE REPLACE", &[]),
];

#[test]
fn a_queue_that_replaces_another_serves_its_blocked_clients() {
    let mut stage = Stage::new();
    for (way, lines) in WAYS_TO_REPLACE {
        // The other queue is in the same state as the one that it replaces, with slightly later times.
        about_to_deliver(&mut stage.c);
        stage.say(&["RENAME q other", "DQ.ACK other held", "DQ.CANCEL other late"]);
        stage.c.push("other x ID lent");
        stage.c.pop_one(format!("other LEASE {LONG_MS}"));
        let (receipt, by) = about_to_deliver(&mut stage.c);
        stage.c.pause("q");
        let mut waiting = stage.waiting("0");
        let deadline = stage.c.extend("other lent LEASE 150");
        let due = deadline + 30;
        stage.c.push(format!("other x ID new AT {due}"));
        if lines.is_empty() {
            let dump = stage.c.ask("DUMP other");
            stage.c.cmd(&[b"RESTORE".as_slice(), b"q", b"0", dump.bytes(), b"REPLACE"]).ok();
        } else {
            stage.say(lines);
        }
        let c = &mut stage.c;
        c.until_after(by + 20);
        let lent = waiting[0].served();
        assert_eq!((lent.id.as_str(), lent.attempt), ("lent", 2), "{way}");
        assert_eq!(waiting[1].served_from_any().1.id, "new", "{way}");
        c.expect_delivered_at("q", "lent", deadline);
        c.expect_delivered_at("q", "new", due);
        assert_eq!(c.ack(format!("q {receipt} held late")), 0, "{way}: the old is gone");
        assert_eq!(c.counts("q"), [0, 0, 2, 0], "{way}");
        assert_eq!(c.ack(format!("q {}", lent.receipt())), 1, "{way}");
        stage.expect_followed(way);
    }
}

/// Ways in which `q` moves, and the database in which it ends up under that name.
const WAYS_TO_MOVE: [(&str, &[&str], &str); 5] = [
    ("RENAME there and back", &["RENAME q aside", "RENAME aside q"], "0"),
    ("MOVE", &["MOVE q 1", "SELECT 1"], "1"),
    ("SWAPDB", &["SWAPDB 0 1", "SELECT 1"], "1"),
    ("COPY to another database", &["COPY q q DB 2", "SELECT 2"], "2"),
    ("MOVE and SWAPDB", &["MOVE q 1", "SWAPDB 1 2", "SELECT 2"], "2"),
];

#[test]
fn a_moved_queue_serves_clients_blocked_on_its_new_name() {
    let mut stage = Stage::new();
    for (way, lines, db) in WAYS_TO_MOVE {
        let mut waiting = stage.waiting(db);
        // It has another name, so that it serves nobody before it moves.
        let c = &mut stage.c;
        c.push("made x ID lent");
        let held = c.pop_one(format!("made LEASE {LONG_MS}"));
        let deadline = c.extend("made lent LEASE 250");
        let due = deadline + 30;
        c.push(format!("made x ID new AT {due}"));
        stage.say(&["RENAME made q"]);
        stage.say(lines);
        let lent = waiting[0].served();
        assert_eq!((lent.id.as_str(), lent.attempt), ("lent", 2), "{way}");
        assert_eq!(waiting[1].served_from_any().1.id, "new", "{way}");
        let c = &mut stage.c;
        c.expect_delivered_at("q", "lent", deadline);
        c.expect_delivered_at("q", "new", due);
        assert_eq!(c.ack(format!("q {}", held.receipt())), 0, "{way}: the old delivery is over");
        assert_eq!(c.ack(format!("q {}", lent.receipt())), 1, "{way}");
        assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
        let mut r = stage.replica.client();
        r.ask(format!("SELECT {db}")).ok();
        assert_eq!(r.digest("q"), stage.c.digest("q"), "{way}");
        stage.say(&["SELECT 0", "FLUSHALL"]);
    }
}

#[test]
fn a_renamed_queue_stays_scheduled_if_its_name_is_reused() {
    let server = Server::start();
    let mut c = server.client();
    c.push("old x DELAY 200");
    c.ask("RENAME old new").ok();
    c.push("old y DELAY 600000");
    eventually("what nobody asks for is ready", || c.info("dq", "dq_ready") == "1");
}
