//! The sums of INFO dq: they equal the sums over the existing queues, even while the server still frees others.

use crate::support::{eventually, Client, Reply, Server};

/// Queues and delayed messages, as one reply.
const SUMS: &str = "INFO dq";

fn sums(info: &Reply) -> [u64; 2] {
    let text = info.text();
    ["dq_queues:", "dq_delayed:"].map(|field| {
        let value = text.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
        value.trim().parse().expect("a number")
    })
}

/// Makes a set that takes the server's background thread long to free.
fn make_large_set(c: &mut Client) {
    let script = "for i = 1, 200 do local members = {} \
                  for j = 1, 1000 do members[j] = i .. '-member-' .. j end \
                  redis.call('SADD', KEYS[1], unpack(members)) end";
    assert!(!c.cmd(&["EVAL", script, "1", "large"]).is_error());
}

/// The sums right after the reply to `line`, while the background thread is busy.
fn sums_after(c: &mut Client, line: &str) -> [u64; 2] {
    make_large_set(c);
    let replies = c.pipeline(["UNLINK large", line, SUMS]);
    assert!(!replies[1].is_error(), "{line}: {:?}", replies[1]);
    sums(&replies[2])
}

#[test]
fn a_deleted_queue_is_no_longer_counted() {
    let server = Server::start();
    let mut c = server.client();
    for messages in [0, 3_000] {
        for way in ["DEL q", "UNLINK q", "SET q text", "RENAME other q", "PEXPIRE q -1", "FLUSHALL", "FLUSHALL ASYNC"]
            .into_iter()
            .chain(["FLUSHALL SYNC", "FLUSHDB", "FLUSHDB ASYNC", "COPY other q REPLACE", "DEBUG RELOAD NOSAVE"])
        {
            c.ask("FLUSHALL SYNC").ok();
            c.ask("SAVE").ok();
            c.ask("SET other text").ok();
            c.create("q");
            c.pipeline((0..messages).map(|_| "DQ.PUSH q x DELAY 600000"));
            assert_eq!(sums(&c.ask(SUMS)), [1, messages], "before {way}");
            assert_eq!(sums_after(&mut c, way), [0, 0], "{way} with {messages} messages");
        }
    }
}

#[test]
fn a_queue_that_moves_is_counted_all_the_time() {
    let server = Server::start();
    let mut c = server.client();
    c.pipeline((0..2_000).map(|_| "DQ.PUSH q x DELAY 600000"));
    for line in ["RENAME q r", "MOVE r 1", "SWAPDB 0 1", "RENAMENX r q", "COPY q copy"] {
        let queues = if line.starts_with("COPY") { 2 } else { 1 };
        assert_eq!(sums_after(&mut c, line), [queues, 2_000 * queues], "{line}");
    }
}

#[test]
fn flushing_a_database_leaves_the_queues_of_others_counted() {
    let server = Server::start();
    let mut c = server.client();
    for (db, messages) in [(0, 100), (1, 10), (2, 1)] {
        c.ask(format!("SELECT {db}")).ok();
        c.pipeline((0..messages).map(|_| "DQ.PUSH q x DELAY 600000"));
    }
    c.ask("SELECT 0").ok();
    c.ask("SWAPDB 0 1").ok();
    assert_eq!(sums_after(&mut c, "FLUSHDB ASYNC"), [2, 101]);
    c.ask("SELECT 2").ok();
    assert_eq!(c.ask("MOVE q 0"), Reply::Int(1));
    c.ask("SELECT 0").ok();
    assert_eq!(c.len("q"), 1);
    assert_eq!(sums_after(&mut c, "FLUSHDB ASYNC"), [1, 100]);
    c.ask("SELECT 1").ok();
    assert_eq!(c.purge("q"), 100);
    assert_eq!(sums(&c.ask(SUMS)), [1, 0]);
    eventually("what was freed is not taken off twice", || sums_after(&mut c, "PING") == [1, 0]);
}

#[test]
fn a_replica_counts_the_queues_of_its_master_alone() {
    for load in ["disabled", "swapdb", "on-empty-db"] {
        let master = Server::start();
        master.client().pipeline((0..500).map(|n| format!("DQ.PUSH q{} x DELAY 600000", n % 5)));
        let replica = Server::with(&["--repl-diskless-load", load]);
        let mut c = replica.client();
        c.pipeline((0..300).map(|n| format!("DQ.PUSH own{} x DELAY 600000", n % 7)));
        // The second time, the data that it already has is its master's.
        for _ in 0..2 {
            c.ask(format!("REPLICAOF 127.0.0.1 {}", master.port())).ok();
            eventually("the replica's link is up", || c.info("replication", "master_link_status") == "up");
            assert_eq!(sums(&c.ask(SUMS)), [5, 500], "{load}");
            eventually("all is freed", || c.info("memory", "lazyfree_pending_objects") == "0");
            assert_eq!(sums(&c.ask(SUMS)), [5, 500], "{load}");
            c.ask("REPLICAOF NO ONE").ok();
            c.push("q0 x DELAY 600000");
        }
    }
}

#[test]
fn a_large_queue_vanishes_at_once_and_its_memory_soon() {
    const MESSAGES: u64 = 200_000;
    let server = Server::start();
    let mut c = server.client();
    let used = |c: &mut Client| c.info("memory", "used_memory").parse::<u64>().expect("a number");
    let before = used(&mut c);
    let batch = format!("DQ.MPUSH q 1000 {} DELAY 600000", vec!["x"; 1000].join(" "));
    (0..MESSAGES / 1000).for_each(|_| assert_eq!(c.ask(&batch).items().len(), 1000));
    let filled = used(&mut c);
    let replies = c.pipeline(["RENAME q r", SUMS, "UNLINK r", SUMS]);
    assert_eq!((sums(&replies[1]), sums(&replies[3])), ([1, MESSAGES], [0, 0]));
    eventually("the memory comes back", || used(&mut c) - before < (filled - before) / 4);
    assert_eq!(sums(&c.ask(SUMS)), [0, 0]);
}
