//! DQ.PAUSE IN: a closed queue accepts no messages, and everything else goes on.

use crate::support::{effects_of, eventually, in_both_protocols, Client, Fields, Reply, Server};

const CLOSED: &str = "QUEUECLOSED queue accepts no messages";

/// Whether deliveries and new messages are suspended.
fn suspended(c: &mut Client) -> (i64, i64) {
    let about = c.about("q");
    (about.int("paused"), about.int("closed"))
}

fn closed_until(about: &Fields) -> Option<i64> {
    Some(about.get("closed-until")).filter(|until| !until.is_null()).map(Reply::int)
}

#[test]
fn a_closed_queue_refuses_every_new_message() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.ask("DQ.PAUSE q IN").ok();
        assert_eq!(suspended(c), (0, 1));
        let (digest, changes) = (c.digest("q"), c.changes());
        for line in [
            "DQ.PUSH q x",
            "DQ.PUSH q x ID new DELAY 5",
            "DQ.PUSH q x ID m REPLACE",
            "DQ.PUSH q x ID m REPLACE LATER",
            "DQ.MPUSH q 2 x y",
            "DQ.MPUSH q 2 x y IDS m new",
            "DQ.SCHEDULE q s x EVERY 5",
        ] {
            assert_eq!(c.ask(line).error(), CLOSED, "{line}");
            assert_eq!(c.multi(&[line])[0].error(), CLOSED, "{line}");
            assert!(c.script(line).error().starts_with(CLOSED), "{line}");
        }
        assert_eq!((c.digest("q"), c.changes()), (digest, changes));
        c.ask("DQ.RESUME q").ok();
        assert_eq!((suspended(c), c.push("q x ID new")), ((0, 0), "new".to_owned()));
    });
}

#[test]
fn duplicates_of_a_closed_queue_are_answered_as_ever() {
    in_both_protocols(|c| {
        c.push_many("q 2 x y IDS m n");
        c.bury("q", &["dead"]);
        assert_eq!(c.ask("DQ.SCHEDULE q s x EVERY 600000"), Reply::bulk("created"));
        c.ask("DQ.PAUSE q IN").ok();
        assert_eq!(c.ask("DQ.PUSH q x ID m"), c.null());
        assert_eq!(c.push_many("q 2 x y IDS m n"), [None, None]);
        assert!(c.ask("DQ.PUSH q x ID dead").error().starts_with("DEADID "));
        assert_eq!(c.ask("DQ.SCHEDULE q s x EVERY 600000"), Reply::bulk("unchanged"));
        assert_eq!(c.ask("DQ.SCHEDULE q s y EVERY 600000").error(), CLOSED);
    });
}

#[test]
fn consumers_drain_a_closed_queue() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    c.ask("DQ.SCHEDULE q run x EVERY 20");
    c.push_many("q 3 x x x IDS acked retried dead PRIORITY 9");
    c.ask("DQ.PAUSE q IN").ok();
    assert_eq!(c.pop_ids("q COUNT 3"), ["acked", "retried", "dead"]);
    assert_eq!(
        (c.ack("q acked"), c.nack("q retried DELAY 0"), c.nack("q dead DEAD")),
        (1, "ready".into(), "dead".into())
    );
    assert_eq!(c.redrive("q"), 1);
    assert_eq!(c.pop_ids("q COUNT 2"), ["retried", "dead"]);
    assert_eq!(c.ack("q retried dead"), 2);
    for _ in 0..2 {
        waiting.wait_for_message("q");
        assert_eq!(waiting.served().id, "run", "runs go on");
        assert_eq!(c.ack("q run"), 1);
    }
}

#[test]
fn a_kept_replacement_takes_its_place_in_a_closed_queue() {
    in_both_protocols(|c| {
        c.push("q old ID m");
        c.pop_one("q");
        c.push("q new ID m REPLACE LATER");
        c.ask("DQ.PAUSE q IN").ok();
        assert_eq!(c.ack("q m"), 1);
        assert_eq!(c.get("q", "m").text("payload"), "new");
    });
}

#[test]
fn a_queue_opens_again_by_itself_and_never_before_its_time() {
    in_both_protocols(|c| {
        c.create("q");
        let before = c.now();
        c.ask("DQ.PAUSE q FOR 500 IN").ok();
        let until = closed_until(&c.about("q")).expect("an end");
        assert!((before + 500..=c.now() + 500).contains(&until));
        eventually("it accepts messages", || {
            let is_open = !matches!(c.ask("DQ.PUSH q x"), Reply::Error(_));
            assert!(!is_open || c.latest_now() >= until, "too early");
            is_open
        });
        assert_eq!((suspended(c), closed_until(&c.about("q"))), ((0, 0), None));
    });
}

#[test]
fn each_of_the_two_pauses_has_its_own_end() {
    in_both_protocols(|c| {
        c.create("q");
        c.ask("DQ.PAUSE q OUT").ok();
        c.ask("DQ.PAUSE q ALL FOR 600000").ok();
        let about = c.about("q");
        assert_eq!((about.int("paused"), about.get("paused-until")), (1, &c.null()), "it is not shortened");
        let until = closed_until(&about);
        assert!(until.is_some());
        c.ask("DQ.PAUSE q IN FOR 5").ok();
        assert_eq!(closed_until(&c.about("q")), until, "nor is the other one");
        for (words, expected) in [
            ("RESUME q OUT", (0, 1)),
            ("PAUSE q", (1, 1)),
            ("RESUME q IN", (1, 0)),
            ("PAUSE q all", (1, 1)),
            ("RESUME q ALL", (0, 0)),
        ] {
            c.ask(format!("DQ.{words}")).ok();
            assert_eq!(suspended(c), expected, "{words}");
        }
    });
}

#[test]
fn closing_is_one_effect_and_closing_twice_is_none() {
    let effects = effects_of(|c| {
        c.create("q");
        for line in ["DQ.PAUSE q ALL", "DQ.PAUSE q IN", "DQ.PAUSE q OUT FOR 5", "DQ.RESUME q IN", "DQ.RESUME q IN"] {
            c.ask(line).ok();
        }
        c.multi(&["DQ.PAUSE q IN"]);
        c.script("DQ.RESUME q");
        assert_eq!(suspended(c), (0, 0));
    });
    assert_eq!(effects.len(), 5, "of the creation, of two closings and of two ends");
}

#[test]
fn a_closed_queue_stays_closed_everywhere() {
    for restart in [Server::restart_from_aof, Server::restart_from_rdb] {
        let mut server = Server::with_aof(&[]);
        let replica = Server::replica_of(&server, &[]);
        let mut c = server.client();
        c.push("q x ID m");
        c.ask("DQ.PAUSE q IN FOR 600000").ok();
        let (digest, until) = (c.digest("q"), closed_until(&c.about("q")));
        assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
        let mut r = replica.client();
        assert_eq!((r.digest("q"), closed_until(&r.about("q"))), (digest.clone(), until));
        drop(r);
        drop(replica);
        restart(&mut server);
        let mut c = server.client();
        assert_eq!((c.digest("q"), closed_until(&c.about("q"))), (digest, until));
        c.ask("COPY q copied");
        c.ask("RENAME q moved").ok();
        for key in ["copied", "moved"] {
            assert_eq!(c.ask(format!("DQ.PUSH {key} x")).error(), CLOSED, "{key}");
            assert_eq!(c.pop_ids(key), ["m"], "{key}");
        }
        assert_eq!(c.push("q x ID n"), "n", "a queue made again is open");
    }
}

#[test]
fn closing_is_announced_on_master_and_replica() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    c.create("q");
    eventually("the replica has the queue", || replica.client().digest("q") == c.digest("q"));
    let mut listeners = [master.client(), replica.client()];
    for listener in &mut listeners {
        listener.configure("notify-keyspace-events", "KEA");
        listener.ask("SUBSCRIBE __keyspace@0__:q");
    }
    for (line, event) in [("DQ.PAUSE q ALL", "dq.pause"), ("DQ.RESUME q IN", "dq.resume"), ("DQ.RESUME q", "dq.resume")]
    {
        c.ask(line).ok();
        for listener in &mut listeners {
            assert_eq!(listener.receive().items()[2], Reply::bulk(event), "{line}");
        }
    }
}
