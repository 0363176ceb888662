//! DQ.PURGE COUNT: removes the first messages, in the order in which DQ.PEEK shows them.

use crate::support::{effects_of, every_state, in_both_protocols, Reply, Server};

#[test]
fn the_first_messages_are_purged_as_peek_shows_them() {
    in_both_protocols(|c| {
        for state in ["delayed", "ready", "inflight", "dead"] {
            c.ask("DEL q");
            every_state(c, "q");
            c.push("q x ID more PRIORITY 127");
            c.pop_one("q LEASE 5000000");
            let shown = c.peek_ids(format!("q {state} COUNT 9"));
            assert!(shown.len() > 1);
            for (n, id) in shown.iter().enumerate() {
                assert_eq!(c.state("q", id), state);
                assert_eq!(c.ask(format!("DQ.PURGE q {state} COUNT 1")), Reply::Int(1), "{state}");
                assert_eq!(c.peek_ids(format!("q {state} COUNT 9")), shown[n + 1..], "{state}");
                assert_eq!(c.state("q", id), "absent");
            }
            assert_eq!(c.ask(format!("DQ.PURGE q {state} COUNT 1")), Reply::Int(0), "{state}");
        }
    });
}

#[test]
fn states_are_purged_in_a_fixed_order() {
    in_both_protocols(|c| {
        for (words, purged, left) in [
            ("COUNT 2", 2, [1, 5, 2, 3]),
            ("COUNT 4", 4, [0, 4, 2, 3]),
            ("COUNT 9", 9, [0, 0, 1, 3]),
            ("count 12", 12, [0, 0, 0, 1]),
            ("COUNT 2147483647", 13, [0; 4]),
            ("dead delayed COUNT 4", 4, [0, 5, 2, 2]),
            ("dead inflight ready COUNT 7", 7, [3, 0, 0, 3]),
            ("inflight dead COUNT 3", 3, [3, 5, 0, 2]),
            ("dead dead COUNT 2", 2, [3, 5, 2, 1]),
        ] {
            c.ask("DEL q");
            every_state(c, "q");
            assert_eq!(c.counts("q"), [3, 5, 2, 3]);
            assert_eq!(c.ask(format!("DQ.PURGE q {words}")), Reply::Int(purged), "{words}");
            assert_eq!(c.counts("q"), left, "{words}");
        }
    });
}

#[test]
fn of_the_dead_the_newest_go_first() {
    let server = Server::start();
    let mut c = server.client();
    c.bury("q", &["oldest", "older", "newest"]);
    assert_eq!(c.purge("q COUNT 2"), 2);
    assert_eq!(["oldest", "older", "newest"].map(|id| c.state("q", id)), ["dead", "absent", "absent"]);
}

#[test]
fn a_count_stands_behind_the_states_and_within_its_range() {
    in_both_protocols(|c| {
        every_state(c, "q");
        let (digest, about) = (c.digest("q"), c.about_but_time("q"));
        for (words, error) in [
            ("COUNT 1 dead", "ERR syntax error, 'dead' is not in its place"),
            ("COUNT", "ERR syntax error, COUNT needs a value"),
            ("dead COUNT 1 COUNT 1", "ERR syntax error, COUNT is given twice"),
            ("COUNT 0", "ERR COUNT must be a whole number from 1 to 2147483647"),
            ("dead COUNT 2147483648", "ERR COUNT must be a whole number from 1 to 2147483647"),
        ] {
            let reply = c.ask(format!("DQ.PURGE q {words}"));
            assert!(reply.error().starts_with(error), "{words}: {reply:?}");
        }
        assert_eq!((c.digest("q"), c.about_but_time("q")), (digest, about));
    });
}

#[test]
fn a_partial_purge_is_one_effect_and_the_same_everywhere() {
    let effects = effects_of(|c| {
        c.push_many("q 5 1 2 3 4 5");
        assert_eq!(c.purge("q COUNT 3"), 3);
        assert_eq!(c.purge("q dead COUNT 3"), 0);
    });
    assert_eq!(effects.len(), 2, "of the pushes and of the purge");

    let mut master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    every_state(&mut c, "q");
    c.purge("q COUNT 2");
    c.multi(&["DQ.PURGE q ready COUNT 1", "DQ.PURGE q dead COUNT 1"]);
    c.script("DQ.PURGE q inflight COUNT 2");
    let digest = c.digest("q");
    assert_eq!(c.counts("q"), [1, 4, 0, 2]);
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!((r.digest("q"), r.counts("q")), (digest.clone(), [1, 4, 0, 2]));
    master.restart_from_aof();
    let mut c = master.client();
    assert_eq!((c.digest("q"), c.counts("q")), (digest, [1, 4, 0, 2]));
}
