//! DQ.NACK NOCOUNT: a worker that shuts down returns a message as if it had not been delivered.

use crate::support::{in_both_protocols, Reply, Server};

#[test]
fn a_message_given_back_uncounted_returns_to_its_place() {
    in_both_protocols(|c| {
        c.push_many("q 3 x y z IDS a b c");
        let (due, first) = (c.get("q", "a").int("due"), c.pop_one("q LEASE 600000"));
        assert_eq!(c.ask("DQ.NACK q a NOCOUNT"), Reply::bulk("ready"));
        let message = c.get("q", "a");
        assert_eq!((message.int("attempt"), message.int("due")), (0, due), "no backoff, no attempt");
        let messages = c.pop("q COUNT 9");
        let seen: Vec<_> = messages.iter().map(|message| (message.id.as_str(), message.attempt)).collect();
        assert_eq!(seen, [("a", 1), ("b", 1), ("c", 1)]);
        assert_ne!(messages[0].receipt(), first.receipt());
        assert_eq!(c.ack(format!("q {}", first.receipt())), 0, "its receipt went stale");
        let about = c.about("q");
        let totals = ["delivered", "given-back", "nacked", "died"].map(|total| about.int(total));
        assert_eq!(totals, [4, 1, 0, 0]);
    });
}

#[test]
fn an_uncounted_delivery_spends_no_retry() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m RETRIES 0");
    for _ in 0..5 {
        assert_eq!(c.pop_one("q").attempt, 1);
        assert_eq!(c.nack("q m NOCOUNT ERROR going-down"), "ready");
    }
    assert_eq!(c.get("q", "m").text("error"), "going-down");
    c.pop_one("q");
    assert_eq!(c.nack("q m DELAY 0"), "dead");
    assert_eq!(c.get("q", "m").int("attempt"), 1);
}

#[test]
fn only_the_delivery_that_ends_is_not_counted() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m RETRIES 1");
    c.pop_one("q");
    assert_eq!(c.nack("q m DELAY 0"), "ready");
    assert_eq!(c.pop_one("q").attempt, 2);
    assert_eq!(c.nack("q m NOCOUNT"), "ready");
    assert_eq!(c.get("q", "m").int("attempt"), 1);
    assert_eq!(c.pop_one("q").attempt, 2);
    assert_eq!(c.nack("q m DELAY 0"), "dead", "its retries were spent by the first and the last");
}

#[test]
fn a_delay_counts_from_now_also_for_an_uncounted_delivery() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.pop_one("q LEASE 600000");
        c.expect_ms_from_now(300_000, |c| {
            assert_eq!(c.ask("DQ.NACK q m DELAY 300000 NOCOUNT"), Reply::bulk("delayed"));
            c.get("q", "m").int("due")
        });
        assert_eq!(c.get("q", "m").int("attempt"), 0);
    });
}

#[test]
fn an_uncounted_message_whose_ttl_ended_is_dead() {
    let server = Server::start();
    let mut c = server.client();
    c.multi(&["DQ.PUSH q x ID m TTL 200", "DQ.POP q LEASE 600000"]);
    let end = c.get("q", "m").int("created") + 200;
    c.until_after(end);
    assert_eq!(c.nack("q m NOCOUNT"), "dead");
    let message = c.get("q", "m");
    assert_eq!((message.text("reason").as_str(), message.int("attempt")), ("expired", 0));
}

#[test]
fn an_uncounted_nack_is_replicated_and_replayed() {
    let mut master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.push_many("q 4 x x x x IDS a b c d");
    c.pop("q COUNT 4 LEASE 600000");
    c.nack("q a NOCOUNT");
    c.nack("q b NOCOUNT DELAY 600000 ERROR e");
    c.multi(&["DQ.NACK q c NOCOUNT", "DQ.POP q LEASE 600000"]);
    c.script("DQ.NACK q d NOCOUNT");
    let known = |c: &mut crate::support::Client| (c.digest("q"), ["a", "b", "c", "d"].map(|id| c.get("q", id)));
    let expected = known(&mut c);
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!(known(&mut r), expected);
    master.restart_from_aof();
    let mut c = master.client();
    assert_eq!(known(&mut c), expected);
    master.restart_from_rdb();
    assert_eq!(known(&mut master.client()), expected);
}
