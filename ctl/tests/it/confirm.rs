//! Commands that change many messages ask on a terminal, and never in a pipe.

use crate::dqctl::{agreeing, answering, dqctl, field, json, ok, on_terminal};
use crate::support::Server;

/// A queue with two messages that are dead, two delayed, one in a batch, and two in flight with the consumer `w`.
fn every_kind() -> Server {
    let server = Server::start();
    for id in ["held-1", "held-2"] {
        ok(&server, &["push", "q", "x", "--id", id]);
    }
    server.ask(&["DQ.POP", "q", "COUNT", "2", "LEASE", "600000", "AS", "w"]);
    for id in ["dead-1", "dead-2", "later-1", "later-2"] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
    }
    ok(&server, &["bury", "q", "dead-1", "dead-2", "--error", "timeout"]);
    ok(&server, &["push", "q", "x", "--id", "member", "--batch", "b", "--in", "1h"]);
    server
}

#[test]
fn no_more_is_changed_than_was_asked_about() {
    for (args, done) in [
        ("cancel q --where error~timeout", "2 cancelled"),
        ("redrive q --where error~timeout", "2 redriven"),
        ("redrive q", "2 redriven"),
        ("promote q", "3 promoted"),
        ("purge q delayed", "3 purged"),
        ("release q w", "2 released"),
    ] {
        let server = every_kind();
        let shown = agreeing(&server, args, || {
            for id in ["dead-3", "later-3", "held-3"] {
                ok(&server, &["push", "q", "x", "--id", id, "--in", if id == "held-3" { "0" } else { "1h" }]);
            }
            ok(&server, &["bury", "q", "dead-3", "--error", "timeout"]);
            server.ask(&["DQ.POP", "q", "LEASE", "600000", "AS", "w"]);
        });
        assert!(shown.ends_with(&format!("{done}\n")), "{args}: {shown}");
        assert_eq!(field(&server, "q", "dead-3", "state"), "dead", "{args}");
        assert_eq!(field(&server, "q", "held-3", "state"), "inflight", "{args}");
    }
}

#[test]
fn nobody_is_asked_in_a_pipe_or_with_yes_or_by_ids_or_for_nothing() {
    let server = every_kind();
    for (args, done) in
        [("promote q --yes", "3 promoted\n"), ("promote q", "0 promoted\n"), ("redrive q dead-1", "1 redriven\n")]
    {
        let shown = on_terminal(&server, args, true);
        assert!(shown.ends_with(done) && !shown.contains('?'), "{args}: {shown}");
    }
    // The question is for the person at the terminal, wherever the answer of the command goes.
    assert!(answering(&server, "purge q ready > /dev/null", true, "n\n").contains("Purge"));
    let lost = on_terminal(&server, "-u redis://127.0.0.1:1 purge q --all", true);
    assert!(lost.contains("start the server") && !lost.contains('?'), "{lost}");
    assert!(on_terminal(&server, "purge none --all", true).contains("there is no queue none"));
    assert_eq!(ok(&server, &["redrive", "q"]), "1\n");
    assert_eq!(ok(&server, &["purge", "q", "ready"]), "5\n");
}

#[test]
fn a_question_names_the_number_that_is_changed() {
    for (args, number, done) in [
        ("cancel q --where error~timeout", "2 dead messages", "2 cancelled"),
        ("cancel q --where error~timeout --older 0 -n 1 --json", "1 dead message", "{\"cancelled\":1}"),
        ("redrive q --where error~timeout", "2 dead messages", "2 redriven"),
        ("redrive q -n 1", "1 dead message", "1 redriven"),
        ("promote q --json", "3 delayed messages", "{\"promoted\":3}"),
        ("purge q delayed dead", "5 delayed and dead messages", "5 purged"),
        ("purge q dead --older 0", "2 dead messages", "2 purged"),
        ("purge q --all", "7 messages", "7 purged"),
        ("release q w", "2 messages", "2 released"),
        ("batch q b --cancel", "1 message", "1 cancelled"),
        ("delete q", "7 messages", "deleted"),
    ] {
        let server = every_kind();
        let before = json(&server, &["info", "q"]);
        for typed in ["n\n", "\n", "\u{4}"] {
            let shown = answering(&server, args, true, typed);
            assert!(shown.contains(number) && shown.contains("? [y/N] "), "{args}: {shown}");
            assert!(shown.ends_with("dqctl: nothing was changed\n"), "{args}: {shown}");
        }
        let after = json(&server, &["info", "q"]);
        for count in ["ready", "delayed", "inflight", "dead"] {
            assert_eq!(after[0][count], before[0][count], "{args}: {count}");
        }
        let shown = answering(&server, args, true, "y\n");
        assert!(shown.ends_with(&format!("{done}\n")), "{args}: {shown}");
    }
}

#[test]
fn a_purge_leaves_schedules() {
    let server = Server::start();
    for id in ["daily", "weekly"] {
        ok(&server, &["schedule", "q", id, "x", "--every", "1d"]);
    }
    ok(&server, &["push", "q", "x", "--in", "1h"]);
    assert_eq!(ok(&server, &["purge", "q", "delayed"]), "1\n");
    let purged = dqctl(&server, &["purge", "q", "delayed"]);
    assert!((purged.code, purged.out.as_str()) == (1, "0\n") && purged.err.contains("--recurring"), "{purged:?}");
}
