//! The setting DELAY: when a message is due whose push says nothing about that.

use crate::support::{in_both_protocols, Client, Reply, Server};

/// How long after its push the message is due.
fn delay(c: &mut Client, id: &str) -> i64 {
    let message = c.get("q", id);
    message.int("due") - message.int("created")
}

#[test]
fn a_push_without_a_time_has_the_delay_of_its_queue() {
    in_both_protocols(|c| {
        c.create("q DELAY 600000");
        c.push("q x ID single");
        c.push_many("q 2 x y IDS many more");
        c.multi(&["DQ.PUSH q x ID transaction"]);
        c.script("DQ.PUSH q x ID script");
        for id in ["single", "many", "more", "transaction", "script"] {
            assert_eq!(delay(c, id), 600_000, "{id}");
        }
        c.push("q x ID now DELAY 0");
        c.push("q x ID later DELAY 700000");
        c.push("q x ID at AT 8000000000000");
        assert_eq!((delay(c, "now"), delay(c, "later")), (0, 700_000));
        assert_eq!(c.get("q", "at").int("due"), 8_000_000_000_000);
        assert_eq!(c.pop_ids("q COUNT 9"), ["now"]);
    });
}

#[test]
fn a_replacement_waits_anew_and_no_longer_than_maxwait() {
    in_both_protocols(|c| {
        c.create("q DELAY 600000");
        c.push("q x ID m");
        c.push("q y ID m REPLACE");
        assert_eq!(delay(c, "m"), 600_000);
        let before = c.get("q", "m").int("created");
        c.push("q y ID m REPLACE MAXWAIT 5000");
        assert!(c.get("q", "m").int("due") <= before + 5_000);
    });
}

#[test]
fn runs_and_redriven_messages_do_not_wait_for_the_delay() {
    in_both_protocols(|c| {
        c.create("q DELAY 600000");
        assert_eq!(c.ask("DQ.SCHEDULE q s x EVERY 1000 AT 100000000000"), Reply::bulk("created"));
        assert_eq!(c.get("q", "s").int("due"), 100_000_000_000);
        c.push("q x ID m");
        assert_eq!(c.ask("DQ.BURY q m"), Reply::bulk("delayed"));
        assert_eq!(c.redrive("q IDS 1 m"), 1);
        assert_eq!(c.state("q", "m"), "ready");
    });
}

#[test]
fn a_changed_delay_counts_for_later_pushes_only() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID old");
    c.alter("q DELAY 600000");
    c.push("q x ID new");
    assert_eq!((delay(&mut c, "old"), delay(&mut c, "new")), (0, 600_000));
    c.configure("dq.default-delay", 700_000);
    c.push("made x ID m");
    assert_eq!(c.about("made").int("delay"), 700_000);
    assert_eq!(c.state("made", "m"), "delayed");
}

#[test]
fn the_delay_survives_restarts_on_servers_with_other_defaults() {
    for restart in [Server::restart_from_aof, Server::restart_from_rdb] {
        let mut server = Server::with_aof(&[]);
        let replica = Server::replica_of(&server, &["--dq.default-delay", "5"]);
        let mut c = server.client();
        c.create("q DELAY 600000");
        c.push("q x ID m");
        let (digest, due) = (c.digest("q"), c.get("q", "m").int("due"));
        assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
        assert_eq!(replica.client().digest("q"), digest);
        drop(replica);
        restart(&mut server);
        let mut c = server.client();
        assert_eq!((c.digest("q"), c.get("q", "m").int("due")), (digest, due));
        c.push("q x ID n");
        assert_eq!(delay(&mut c, "n"), 600_000);
    }
}
