//! The target is a key of the queue's own database, even after the queue was moved.

use super::{elements, error_of, ids, until_forwarded};
use crate::support::{eventually, Reply, Server};

#[test]
fn the_target_is_in_the_database_of_the_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.ask("SELECT 3").ok();
    c.create("q FORWARD LIST l");
    c.push("q x DELAY 30");
    until_forwarded(&mut c, "q", 1);
    assert_eq!(elements(&mut c, "l"), ["x"]);
    c.ask("SELECT 0").ok();
    assert_eq!(c.ask("DBSIZE"), Reply::Int(0));
}

#[test]
fn a_moved_queue_forwards_where_it_is_then() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD LIST l");
    c.at_once(["DQ.PUSH q x DELAY 100", "MOVE q 2", "SELECT 2"]);
    until_forwarded(&mut c, "q", 1);
    assert_eq!(elements(&mut c, "l"), ["x"]);
    c.at_once(["DQ.PUSH q y DELAY 100", "SWAPDB 2 5", "SELECT 5"]);
    eventually("the other arrives too", || elements(&mut c, "l") == ["x", "y"]);
    c.ask("SELECT 0").ok();
    assert_eq!(c.ask("EXISTS l"), Reply::Int(0));
}

#[test]
fn copies_and_renamed_queues_forward_too() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD LIST l LEFT REGISTER set m");
    c.push("q x DELAY 600000");
    let dump = c.ask("DUMP q").bytes().to_vec();
    c.ask("COPY q copy");
    c.cmd(&[&b"RESTORE"[..], b"restored", b"0", &dump]).ok();
    c.ask("RENAME q renamed").ok();
    for queue in ["copy", "restored", "renamed"] {
        assert_eq!(c.about(queue).text("forward"), "LIST l LEFT REGISTER set m");
    }
    assert_eq!(c.digest("copy"), c.digest("restored"));
    c.at_once(["copy", "restored", "renamed"].map(|queue| format!("DQ.PROMOTE {queue}")));
    eventually("each forwards its own", || elements(&mut c, "l").len() == 3);
    for queue in ["copy", "restored", "renamed"] {
        until_forwarded(&mut c, queue, 1);
    }
}

#[test]
fn a_queue_renamed_to_its_target_says_so() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD LIST l");
    c.at_once(["DQ.PUSH q x ID m DELAY 50", "RENAME q l"]);
    assert!(error_of(&mut c, "l").starts_with("WRONGTYPE"));
    assert_eq!(c.state("l", "m"), "ready");
    c.ask("RENAME l q").ok();
    until_forwarded(&mut c, "q", 1);
}

#[test]
fn two_queues_may_share_a_target() {
    let server = Server::start();
    let mut c = server.client();
    for queue in ["q", "r"] {
        c.create(format!("{queue} FORWARD STREAM s"));
        c.push_many(format!("{queue} 100 {}", vec!["x"; 100].join(" ")));
    }
    until_forwarded(&mut c, "q", 100);
    until_forwarded(&mut c, "r", 100);
    assert_eq!(ids(&mut c, "s").len(), 200);
}

#[test]
fn a_queue_that_forwards_to_a_queue_is_refused_by_it() {
    let server = Server::start();
    let mut c = server.client();
    c.create("other");
    c.create("q FORWARD LIST other");
    c.push("q x");
    assert!(error_of(&mut c, "q").starts_with("WRONGTYPE"));
    assert_eq!(c.len("other"), 0);
}

#[test]
fn a_deleted_queue_forwards_nothing() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD LIST l");
    c.at_once(["DQ.PUSH q x DELAY 50", "DEL q"]);
    c.create("r FORWARD LIST other");
    c.push("r x DELAY 60");
    until_forwarded(&mut c, "r", 1);
    assert_eq!(c.ask("EXISTS l"), Reply::Int(0));
}

/// Returns how many milliseconds after its due time a queue forwards, on a fresh server, if the queue is moved without
/// a later command on it.
fn lateness_after(way: &[&str]) -> i64 {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD STREAM s");
    let due = c.now() + 200;
    c.push(format!("q x AT {due}"));
    // The timer rests after the runs for this queue if nobody waits for what it does.
    c.push_many(format!("other 3 x y z AT {}", due - 4));
    way.iter().for_each(|line| assert!(!c.ask(line).is_error(), "{line}"));
    eventually("it is forwarded", || c.ask("XLEN s").int() == 1);
    let entry = c.ask("XRANGE s - +").items()[0].items()[0].text();
    entry.split('-').next().and_then(|ms| ms.parse::<i64>().ok()).expect("a time") - due
}

#[test]
fn a_queue_that_goes_elsewhere_forwards_on_time() {
    let ways: [&[&str]; 5] =
        [&[], &["RENAME q r"], &["MOVE q 1", "SELECT 1"], &["SWAPDB 0 1", "SELECT 1"], &["COPY q r", "DEL q"]];
    for way in ways {
        // The machine may be busy, so one of several attempts has to be punctual.
        eventually("it is on time", || lateness_after(way) <= 3);
    }
}
