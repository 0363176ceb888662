//! MAXPAYLOAD: a payload that is too large is refused, and the push has no effect.

use crate::support::{in_both_protocols, Reply, Server};

const TOO_LARGE: &str = "TOOLARGE payload of 5 bytes exceeds MAXPAYLOAD";

#[test]
fn only_a_payload_larger_than_the_limit_is_refused() {
    in_both_protocols(|c| {
        c.create("q MAXPAYLOAD 4");
        for payload in ["\"\"", "1", "1234"] {
            c.push(format!("q {payload}"));
        }
        let (digest, about) = (c.digest("q"), c.about_but_time("q"));
        assert_eq!(c.ask("DQ.PUSH q 12345").error(), TOO_LARGE);
        assert_eq!(c.ask("DQ.PUSH q 12345 ID new DELAY 5").error(), TOO_LARGE);
        assert_eq!((c.digest("q"), c.about_but_time("q")), (digest, about));
    });
}

#[test]
fn a_duplicate_id_answers_before_the_limit() {
    in_both_protocols(|c| {
        c.create("q MAXPAYLOAD 4");
        c.bury("q", &["dead"]);
        c.push("q x ID live");
        assert_eq!(c.ask("DQ.PUSH q 12345 ID live"), c.null());
        assert!(c.ask("DQ.PUSH q 12345 ID dead").error().starts_with("DEADID "));
        let reply = c.ask("DQ.MPUSH q 3 12345 12345 ok IDS live dead new");
        assert_eq!((&reply.items()[0], &reply.items()[2]), (&c.null(), &Reply::bulk("new")));
        assert!(reply.items()[1].error().starts_with("DEADID "));
        let digest = c.digest("q");
        assert_eq!(c.ask("DQ.PUSH q 12345 ID live REPLACE").error(), TOO_LARGE);
        assert_eq!(c.digest("q"), digest, "the old one stays");
    });
}

#[test]
fn one_payload_that_is_too_large_refuses_the_whole_batch() {
    in_both_protocols(|c| {
        c.create("q MAXPAYLOAD 4");
        c.push("q x ID live");
        let (digest, about) = (c.digest("q"), c.about_but_time("q"));
        for line in [
            "DQ.MPUSH q 3 1 12345 3",
            "DQ.MPUSH q 3 1 2 12345 IDS a b c",
            "DQ.MPUSH q 2 12345 2 IDS a a",
            "DQ.MPUSH q 2 ok 12345 IDS a live REPLACE",
        ] {
            assert_eq!(c.ask(line).error(), TOO_LARGE, "{line}");
        }
        assert_eq!((c.digest("q"), c.about_but_time("q")), (digest, about));
        assert_eq!(c.push_many("q 2 ok 12345 IDS a a"), [Some("a".to_owned()), None], "a duplicate is not pushed");
    });
}

#[test]
fn a_push_that_is_too_large_creates_no_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-maxpayload", 4);
    let changes = c.changes();
    assert_eq!(c.ask("DQ.PUSH q 12345").error(), TOO_LARGE);
    assert_eq!(c.ask("DQ.MPUSH q 2 1 12345").error(), TOO_LARGE);
    assert_eq!((c.ask("EXISTS q"), c.changes()), (Reply::Int(0), changes));
    c.push("q 1234");
    assert_eq!(c.about("q").int("maxpayload"), 4);
}

#[test]
fn what_was_pushed_before_the_limit_stays_and_lives_again() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q 12345 ID m");
    c.alter("q MAXPAYLOAD 4");
    assert_eq!(c.pop_one("q").payload, b"12345");
    assert_eq!(c.nack("q m DEAD"), "dead");
    assert_eq!(c.redrive("q"), 1);
    assert_eq!(c.pop_one("q").payload, b"12345");
    c.alter("q MAXPAYLOAD 0");
    c.push("q 12345678");
}

#[test]
fn a_replica_takes_what_its_master_took() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &["--dq.default-maxpayload", "1"]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.push("q 12345");
    c.create("limited MAXPAYLOAD 4");
    let replies = c.multi(&["DQ.PUSH limited 1234", "DQ.PUSH limited 12345", "DQ.PUSH limited 1"]);
    assert_eq!(replies[1].error(), TOO_LARGE);
    assert!(c.script("DQ.PUSH limited 12345").error().starts_with(TOO_LARGE));
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    for key in ["q", "limited"] {
        assert_eq!(r.digest(key), c.digest(key), "{key}");
    }
    assert_eq!((r.len("limited"), r.about("limited").int("maxpayload")), (2, 4));
}
