//! TTL: a message that is not completed in time becomes dead, except while it is leased.

use crate::support::{eventually, in_both_protocols, Client, Reply, Server};

/// Puts `m` in flight under a lease that outlives the test, and waits until its time to live is over.
fn work_past_its_time(c: &mut Client) -> i64 {
    c.multi(&["DQ.PUSH q x ID m TTL 1000 RETRIES -1", "DQ.POP q LEASE 600000"]);
    let end = c.get("q", "m").int("created") + 1000;
    c.until_after(end);
    end
}

#[test]
fn a_ready_message_dies_when_its_time_is_over() {
    in_both_protocols(|c| {
        c.push("q x ID m TTL 20");
        c.until_state("q", "m", "dead");
        let message = c.get("q", "m");
        assert_eq!(message.text("reason"), "expired");
        assert_eq!(message.int("died"), message.int("created") + 20, "the instant of its death, not of its notice");
        assert!(c.pop("q").is_empty());
    });
}

#[test]
fn the_ttl_of_a_delayed_message_starts_when_due() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m DELAY 60 TTL 20");
    c.until_state("q", "m", "dead");
    let message = c.get("q", "m");
    assert_eq!(message.int("died"), message.int("due") + 20);
}

#[test]
fn the_ttl_of_a_message_due_earlier_starts_at_push() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m AT 1000000001000 TTL 600000");
    assert_eq!(c.state("q", "m"), "ready");
    c.push("q x ID n AT 1000000001000 TTL 20");
    c.until_state("q", "n", "dead");
    let message = c.get("q", "n");
    assert_eq!(message.int("died"), message.int("created") + 20);
}

#[test]
fn a_ttl_of_zero_never_ends() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-ttl", 10);
    c.push("q x ID mortal");
    c.push("q x ID immortal TTL 0");
    c.until_state("q", "mortal", "dead");
    assert_eq!(c.get("q", "mortal").int("ttl"), 10);
    assert_eq!(c.get("q", "immortal").int("ttl"), 0);
    assert_eq!(c.state("q", "immortal"), "ready");
}

#[test]
fn work_in_hand_is_not_taken_away() {
    let server = Server::start();
    let mut c = server.client();
    work_past_its_time(&mut c);
    assert_eq!(c.state("q", "m"), "inflight");
    let receipt = c.get("q", "m").text("receipt");
    assert_eq!(c.ack(format!("q {receipt}")), 1, "its work is done");
    assert_eq!(c.about("q").int("died"), 0);
}

#[test]
fn work_given_back_too_late_is_dead() {
    let server = Server::start();
    let mut c = server.client();
    let end = work_past_its_time(&mut c);
    assert_eq!(c.nack("q m DELAY 5"), "dead");
    let message = c.get("q", "m");
    assert_eq!(message.text("reason"), "expired");
    assert!(message.int("died") >= end);
}

#[test]
fn work_lost_too_late_is_dead() {
    let server = Server::start();
    let mut c = server.client();
    let end = work_past_its_time(&mut c);
    let deadline = c.extend("q m LEASE 1");
    c.until_state("q", "m", "dead");
    let message = c.get("q", "m");
    assert_eq!(message.text("reason"), "expired");
    assert!((end..=deadline).contains(&message.int("died")));
}

#[test]
fn a_rejection_is_told_from_an_end_of_time() {
    let server = Server::start();
    let mut c = server.client();
    work_past_its_time(&mut c);
    assert_eq!(c.nack("q m DEAD"), "dead");
    assert_eq!(c.get("q", "m").text("reason"), "rejected");
}

#[test]
fn a_nack_does_not_start_the_time_anew() {
    let server = Server::start();
    let mut c = server.client();
    let commands = ["DQ.PUSH q x ID m TTL 500", "DQ.POP q LEASE 600000", "DQ.NACK q m DELAY 600000"];
    assert_eq!(c.multi(&commands)[2], Reply::bulk("delayed"));
    c.until_state("q", "m", "dead");
    let message = c.get("q", "m");
    assert_eq!(message.text("reason"), "expired");
    assert_eq!(message.int("died"), message.int("created") + 500, "while it was still delayed");
    assert_eq!(c.ack("q m"), 0, "its last delivery was given back");
}

#[test]
fn a_late_ack_counts_also_where_the_time_was_over() {
    let server = Server::start();
    let mut c = server.client();
    c.multi(&["DQ.PUSH q x ID m TTL 300", "DQ.POP q LEASE 1"]);
    c.until_state("q", "m", "dead");
    assert_eq!(c.get("q", "m").text("reason"), "expired");
    assert_eq!(c.ack("q m"), 1, "its last lease ran out, and its work may be done");
    assert_eq!(c.state("q", "m"), "absent");
}

#[test]
fn the_totals_tell_the_expired_among_the_dead() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID expired TTL 1");
    c.until_state("q", "expired", "dead");
    c.push("q x ID rejected");
    c.pop_one("q");
    c.nack("q rejected DEAD");
    eventually("both deaths are counted", || {
        let about = c.about("q");
        (about.int("died"), about.int("expired"), about.int("dead")) == (2, 1, 2)
    });
}
