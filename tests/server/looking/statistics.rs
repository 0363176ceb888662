//! DQ.STATS and the lateness of INFO dq: what this server measured, which is neither saved, copied nor replicated.

use crate::support::{eventually, in_both_protocols, Client, Fields, Protocol, Reply, Server};

/// A lease that outlives the test.
const LEASE: i64 = 600_000;

fn stats(c: &mut Client, key: &str) -> Fields {
    c.ask(format!("DQ.STATS {key}")).fields()
}

/// The number of durations in a histogram.
#[track_caller]
fn count(stats: &Fields, histogram: &str) -> i64 {
    stats.get(histogram).items().last().expect("a bound").items()[1].int()
}

/// The number of first deliveries, of acks, and of empty pops.
#[track_caller]
fn counted(c: &mut Client, key: &str) -> [i64; 3] {
    let stats = stats(c, key);
    [count(&stats, "lateness"), count(&stats, "runtime"), stats.int("pops-empty")]
}

/// Pops one message, and returns its id and the instant of the delivery.
fn deliver(c: &mut Client, key: &str) -> (String, i64) {
    let id = c.pop_one(format!("{key} LEASE {LEASE}")).id;
    let delivered = c.get(key, &id).int("deadline") - LEASE;
    (id, delivered)
}

#[test]
fn statistics_show_cumulative_histograms_and_numbers() {
    in_both_protocols(|c| {
        c.create("q");
        let reply = c.ask("DQ.STATS q");
        assert_eq!(matches!(reply, Reply::Map(_)), c.protocol() == Protocol::Resp3);
        let empty = reply.fields();
        let names: Vec<&str> = empty.0.iter().map(|(name, _)| name.as_str()).collect();
        let sums = ["lateness", "lateness-sum-ms", "runtime", "runtime-sum-ms"];
        assert_eq!(names, [&sums[..], &["pops-empty", "waiting-clients", "rate-limited-ms"]].concat());
        let mut expected: Vec<_> = (0..=22).map(|n| Reply::Array(vec![Reply::Int(1 << n), Reply::Int(0)])).collect();
        expected.push(Reply::Array(vec![c.null(), Reply::Int(0)]));
        for histogram in ["lateness", "runtime"] {
            assert_eq!(empty.get(histogram).items(), expected);
        }
        for number in ["lateness-sum-ms", "runtime-sum-ms", "pops-empty", "waiting-clients", "rate-limited-ms"] {
            assert_eq!(empty.int(number), 0, "{number}");
        }
    });
}

#[test]
fn lateness_is_what_passed_from_due_to_delivered() {
    let server = Server::start();
    let mut c = server.client();
    let now = c.now();
    let mut expected = Vec::new();
    for ago in [3_000_000, 70_000, 5_000, 0] {
        let due = now - ago;
        c.push(format!("q x AT {due}"));
        let (_, delivered) = deliver(&mut c, "q");
        expected.push(delivered - due);
    }
    let stats = stats(&mut c, "q");
    assert_eq!(stats.int("lateness-sum-ms"), expected.iter().sum::<i64>());
    for pair in stats.get("lateness").items() {
        let [bound, count] = pair.items() else { panic!("[bound, count], not {pair:?}") };
        let bound = if bound.is_null() { i64::MAX } else { bound.int() };
        let up_to = expected.iter().filter(|lateness| **lateness <= bound).count();
        assert_eq!(count.int(), up_to as i64, "up to {bound} of {expected:?}");
    }
}

#[test]
fn runtime_is_what_passed_from_delivery_to_ack() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x");
    let (id, delivered) = deliver(&mut c, "q");
    c.until_after(delivered + 20);
    let before = c.now();
    assert_eq!(c.ack(format!("q {id}")), 1);
    let after = c.now();
    assert_eq!(c.ack(format!("q {id}")), 0, "it is counted once");
    let stats = stats(&mut c, "q");
    assert_eq!(count(&stats, "runtime"), 1);
    let runtime = stats.int("runtime-sum-ms");
    assert!(before - delivered <= runtime && runtime <= after - delivered, "{runtime}");
}

#[test]
fn only_first_deliveries_and_redrives_count_as_late() {
    let server = Server::start();
    let mut c = server.client();
    let expect = |c: &mut Client, deliveries: i64| assert_eq!(counted(c, "q"), [deliveries, 0, 0]);
    c.push("q x ID m");
    c.pop_one("q");
    expect(&mut c, 1);
    assert_eq!(c.nack("q m NOCOUNT"), "ready");
    assert_eq!(c.pop_one("q").attempt, 1);
    expect(&mut c, 1);
    assert_eq!(c.nack("q m DELAY 0"), "ready");
    assert_eq!(c.pop_one("q").attempt, 2);
    expect(&mut c, 1);
    assert_eq!(c.nack("q m DEAD"), "dead");
    assert_eq!(c.redrive("q"), 1);
    c.pop_one("q NOACK");
    expect(&mut c, 2);
}

#[test]
fn the_first_delivery_of_each_run_of_a_schedule_counts_as_late() {
    let server = Server::start();
    let mut c = server.client();
    for run in 1..=3 {
        c.ask("DQ.SCHEDULE q s x EVERY 3600000 AT 100000000001");
        assert_eq!(c.reschedule("q s DELAY 0"), 1);
        c.pop_one("q");
        assert_eq!(c.nack("q s DELAY 0"), "ready");
        c.pop_one("q");
        assert_eq!(counted(&mut c, "q"), [run, run - 1, 0]);
        assert_eq!(c.ack("q s"), 1);
    }
    c.reschedule("q s DELAY 0");
    c.pop_one("q NOACK");
    assert_eq!(counted(&mut c, "q"), [4, 3, 0], "a delivery without a lease has no runtime");
}

#[test]
fn a_rescheduled_message_given_back_uncounted_is_not_first_again() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    for change in ["DQ.RESCHEDULE q m PRIORITY 5", "DQ.RESCHEDULE q m DELAY 0", "DQ.PROMOTE q"] {
        c.pop_one("q");
        let delay = if change == "DQ.PROMOTE q" { "DELAY 600000" } else { "" };
        c.nack(format!("q m NOCOUNT {delay}"));
        assert_eq!(c.ask(change), Reply::Int(1));
    }
    c.pop_one("q");
    assert_eq!(counted(&mut c, "q"), [1, 0, 0]);
    c.nack("q m NOCOUNT");
    c.ask("DQ.BURY q m");
    assert_eq!(c.redrive("q"), 1);
    c.pop_one("q");
    assert_eq!(counted(&mut c, "q"), [2, 0, 0], "a redriven message starts again");
}

#[test]
fn a_pop_answered_null_counts_as_empty() {
    in_both_protocols(|c| {
        c.create("q");
        let expect = |c: &mut Client, pops: i64| assert_eq!(counted(c, "q"), [0, 0, pops]);
        assert!(c.ask("DQ.POP q").is_null());
        expect(c, 1);
        assert!(c.ask("DQ.POP q BLOCK 1").is_null(), "its time is over");
        expect(c, 2);
        assert!(c.multi(&["DQ.POP q BLOCK 0"])[0].is_null());
        expect(c, 3);
        c.script("DQ.POP q BLOCK 0 NOACK");
        expect(c, 4);
        assert!(c.ask("DQ.POP nobody").is_null());
        assert!(c.ask("DQ.STATS nobody").is_null(), "a pop creates nothing");
        c.push("q x DELAY 600000");
        assert!(c.ask("DQ.POP q").is_null());
        c.pause("q");
        assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(1));
        assert!(c.ask("DQ.POP q").is_null(), "nothing is delivered now");
        expect(c, 6);
    });
}

#[test]
fn an_empty_mpop_counts_on_each_existing_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.create("a");
    c.create("b");
    assert!(c.ask("DQ.MPOP 4 a nobody b a").is_null());
    assert_eq!((counted(&mut c, "a"), counted(&mut c, "b")), ([0, 0, 1], [0, 0, 1]));
    assert!(c.ask("DQ.MPOP 3 a nobody b BLOCK 1").is_null());
    assert_eq!((counted(&mut c, "a"), counted(&mut c, "b")), ([0, 0, 2], [0, 0, 2]));
    c.push("b x");
    assert_eq!(c.pop_any("2 a b NOACK").expect("a message").0, "b");
    assert_eq!((counted(&mut c, "a"), counted(&mut c, "b")), ([0, 0, 2], [1, 0, 2]), "this one was answered");
    assert!(c.ask("DQ.STATS nobody").is_null());
}

#[test]
fn a_blocked_client_counts_only_if_it_gets_null() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    c.create("q");
    let id = waiting.ask("CLIENT ID").int();
    waiting.wait_for_any(&["q", "later"]);
    c.until_blocked(1);
    assert_eq!(stats(&mut c, "q").int("waiting-clients"), 1);
    c.push("q x");
    waiting.served_from_any();
    assert_eq!(counted(&mut c, "q"), [1, 0, 0]);
    waiting.send("DQ.MPOP 2 q later BLOCK 0");
    c.until_blocked(1);
    c.create("later");
    assert_eq!(c.ask(format!("CLIENT UNBLOCK {id}")), Reply::Int(1));
    assert!(waiting.receive().is_null());
    assert_eq!((counted(&mut c, "q"), counted(&mut c, "later")), ([1, 0, 1], [0, 0, 1]));
}

/// Makes a queue in which everything was measured at least once.
fn measured(c: &mut Client, key: &str) {
    c.push(format!("{key} x ID done"));
    c.pop_one(key);
    assert_eq!(c.ack(format!("{key} done")), 1);
    assert!(c.ask(format!("DQ.POP {key}")).is_null());
    assert_eq!(counted(c, key), [1, 1, 1]);
}

#[test]
fn statistics_belong_to_the_value_in_memory() {
    let mut server = Server::start();
    let mut c = server.client();
    measured(&mut c, "q");
    for line in ["RENAME q r", "MOVE r 1", "SWAPDB 0 1", "RENAME r q"] {
        assert!(!c.ask(line).is_error(), "{line}");
    }
    assert_eq!(counted(&mut c, "q"), [1, 1, 1], "it is the same value");
    let dump = c.ask("DUMP q").bytes().to_vec();
    c.cmd(&[b"RESTORE", b"restored".as_slice(), b"0", &dump]).ok();
    assert_eq!(c.ask("COPY q copy"), Reply::Int(1));
    assert_eq!((counted(&mut c, "restored"), counted(&mut c, "copy")), ([0; 3], [0; 3]));
    c.ask("DEBUG RELOAD").ok();
    assert_eq!(counted(&mut c, "q"), [0; 3]);
    c.ask("DEL q");
    measured(&mut c, "q");
    server.restart_from_rdb();
    let mut c = server.client();
    assert_eq!(counted(&mut c, "q"), [0; 3]);
}

#[test]
fn statistics_are_no_part_of_the_digest() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x DELAY 600000");
    let (digest, changes) = (c.digest("q"), c.changes());
    assert!(c.ask("DQ.POP q").is_null());
    assert_eq!(counted(&mut c, "q"), [0, 0, 1]);
    assert_eq!((c.digest("q"), c.changes()), (digest, changes));
}

#[test]
fn a_replica_measures_only_what_it_decides() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    measured(&mut c, "q");
    c.push("q x ID next");
    c.pop_one("q");
    assert_eq!(c.nack("q next NOCOUNT"), "ready");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!(counted(&mut r, "q"), [0; 3]);
    assert_eq!(r.digest("q"), c.digest("q"));
    r.ask("REPLICAOF NO ONE").ok();
    r.push("q x ID own");
    assert_eq!(r.pop_ids("q COUNT 2"), ["next", "own"]);
    assert_eq!(r.ack("q next own"), 2);
    assert_eq!(counted(&mut r, "q"), [1, 2, 0], "its master delivered the other one first");
}

/// The lateness of all queues of a server, as `INFO dq` shows it.
fn server_lateness(c: &mut Client) -> Vec<(String, u64)> {
    let shown = c.info("dq", "dq_lateness_ms");
    let part = |part: &str| part.split_once('=').map(|(bound, count)| (bound.to_owned(), count.parse().unwrap()));
    shown.split(',').map(|text| part(text).expect("a bound and a count")).collect()
}

#[test]
fn the_server_tells_the_lateness_of_all_queues() {
    let server = Server::start();
    let mut c = server.client();
    let bounds = (0..=22).map(|n| format!("le_{}", 1 << n)).chain(["le_inf".to_owned()]);
    assert_eq!(server_lateness(&mut c), bounds.map(|bound| (bound, 0)).collect::<Vec<_>>());
    let due = c.now() - 100_000;
    c.push("a x AT 1000000000000");
    c.push(format!("b x ID m AT {due}"));
    c.pop_one("a NOACK");
    c.pop_one("b");
    c.nack("b m DELAY 0");
    c.pop_one("b");
    let mut waiting = server.client();
    waiting.wait_for_message("c");
    c.until_blocked(1);
    c.push(format!("c x AT {due}"));
    waiting.served();
    c.ask("FLUSHALL").ok();
    let lateness = server_lateness(&mut c);
    let at = |bound: &str| lateness.iter().find(|(name, _)| name == bound).expect("a bound").1;
    // A slow machine may add some seconds to the 100 s.
    assert_eq!(["le_65536", "le_4194304", "le_inf"].map(at), [0, 2, 3]);
}

#[test]
fn a_queue_that_was_never_popped_pays_nothing() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x");
    let usage = |c: &mut Client| c.ask("MEMORY USAGE q").int();
    let before = usage(&mut c);
    assert_eq!(counted(&mut c, "q"), [0; 3]);
    assert_eq!(usage(&mut c), before);
    c.pause("q");
    assert!(c.ask("DQ.POP q").is_null());
    assert!(usage(&mut c) > before, "its statistics are counted as memory");
}

#[test]
fn statistics_are_read_in_transactions_scripts_and_on_replicas() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client_with(Protocol::Resp3));
    measured(&mut c, "q");
    let expected = stats(&mut c, "q");
    assert_eq!(c.multi(&["DQ.STATS q"])[0].fields(), expected);
    assert_eq!(c.script("DQ.STATS q").items().len(), 2 * expected.0.len());
    eventually("the queue has arrived", || !r.ask("DQ.STATS q").is_null());
    assert_eq!(stats(&mut r, "q").names(), expected.names());
    c.ask("SET text x").ok();
    assert!(c.ask("DQ.STATS text").error().starts_with("WRONGTYPE "));
}
