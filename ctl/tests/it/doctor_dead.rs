//! What `dqctl doctor` finds of messages that have died.

use crate::doctor::{doctor, old, severities, sound};
use crate::dqctl::{ok, on_terminal};
use crate::support::eventually;

#[test]
fn a_dead_forward_that_fails_is_found() {
    let server = sound();
    server.ask(&["SET", "no-list", "x"]);
    ok(&server, &["create", "q", "--deadforward", "LIST no-list"]);
    ok(&server, &["push", "q", "x", "--id", "m"]);
    ok(&server, &["bury", "q", "m"]);
    eventually("it fails", || ok(&server, &["info", "q"]).contains("deadforward-error\tWRONGTYPE"));
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "deadforward")), (1, vec!["critical"]), "{findings:?}");
    let what = findings.iter().find(|found| found["check"] == "deadforward").unwrap()["what"].to_string();
    assert!(what.contains("to LIST no-list LEFT has failed") || what.contains("to LIST no-list has failed"), "{what}");
}

#[test]
fn dead_messages_that_are_old_are_found() {
    let server = sound();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "old", "AT", &old(24 * 8), "TTL", "1"]);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "new"]);
    server.ask(&["DQ.BURY", "q", "new"]);
    let dead = |options: &[&str]| {
        let (code, findings) = doctor(&server, options);
        (code, severities(&findings, "dead").len())
    };
    eventually("it is dead", || ok(&server, &["info", "q"]).contains("dead\t2"));
    // A message that was pushed late lives for its TTL from its push on, so it has only just died.
    assert_eq!(dead(&[]).1, 0);
    assert_eq!(dead(&["--max-dead", "0"]), (1, 1));
}

#[test]
fn messages_that_have_just_died_are_found() {
    let server = sound();
    for (id, error) in [("a", "timed out after 3 s"), ("b", "timed out after 5 s"), ("c", "refused")] {
        ok(&server, &["push", "q", "x", "--id", id]);
        ok(&server, &["bury", "q", id, "--error", error]);
    }
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "dying")), (1, vec!["warning"]), "{findings:?}");
    let found = findings.iter().find(|found| found["check"] == "dying").unwrap();
    assert_eq!(found["what"], "messages have died: 3 in 10m: timed out after # s (2 of them); it has 3 dead");
}

#[test]
fn messages_that_expire_before_somebody_takes_them_lack_a_consumer_or_time() {
    let server = sound();
    ok(&server, &["push", "q", "x", "--ttl", "1ms"]);
    eventually("it is dead", || ok(&server, &["info", "q"]).contains("dead\t1"));
    let (_, findings) = doctor(&server, &[]);
    let found = findings.iter().find(|found| found["check"] == "dying").unwrap();
    assert_eq!(found["what"], "messages have died: 1 in 10m: (expired); it has 1 dead");
    assert!(found["do"].as_str().unwrap().contains("dqctl stats q") && found["do"].as_str().unwrap().contains("--ttl"));
}

#[test]
fn messages_that_die_and_are_moved_away_are_found() {
    let server = sound();
    ok(&server, &["create", "q", "--deadforward", "QUEUE q:dead"]);
    ok(&server, &["push", "q", "x", "--id", "m"]);
    ok(&server, &["bury", "q", "m", "--error", "timed out"]);
    eventually("it is moved", || ok(&server, &["info", "q:dead"]).contains("ready\t1"));
    let (code, findings) = doctor(&server, &["--match", "q"]);
    assert_eq!((code, severities(&findings, "dying")), (1, vec!["warning"]), "{findings:?}");
    let found = findings.iter().find(|found| found["check"] == "dying").unwrap();
    assert_eq!(found["what"], "messages have died in the last 10 minutes, and are moved to the queue q:dead; 1 of the 1 that are there died of: timed out");
    assert_eq!(found["do"], "look with dqctl dead q:dead --letters --by-error");
    assert!(ok(&server, &["ls", "q"]).ends_with("\tmessages die\n"));
    assert!(ok(&server, &["info", "q"]).starts_with("state\tmessages die"), "{}", ok(&server, &["info", "q"]));
    // It is read once, although it may be that of thousands of queues.
    for queue in ["p", "r"] {
        ok(&server, &["create", queue, "--deadforward", "QUEUE q:dead"]);
        ok(&server, &["push", queue, "x", "--id", queue]);
        ok(&server, &["bury", queue, queue]);
    }
    eventually("they are moved", || ok(&server, &["info", "q:dead"]).contains("ready\t3"));
    server.ask(&["CONFIG", "RESETSTAT"]);
    let (_, findings) = doctor(&server, &[]);
    assert_eq!(severities(&findings, "dying").len(), 3, "{findings:?}");
    let scans = server.info("commandstats", "cmdstat_DQ.SCAN");
    assert!(scans.contains("calls=1,"), "{scans}");
    // Somebody has taken them, so nobody knows any more when they died.
    server.ask(&["DQ.POP", "q:dead", "NOACK", "COUNT", "3"]);
    let (code, findings) = doctor(&server, &["--match", "q"]);
    assert_eq!((code, severities(&findings, "moved")), (0, vec!["note"]), "{findings:?}");
    let found = findings.iter().find(|found| found["check"] == "moved").unwrap();
    assert_eq!(found["what"], "1 message died since it was created; its dead ones are moved to the queue q:dead");
}

#[test]
fn a_dead_letter_queue_that_nobody_pops_needs_no_consumer() {
    let server = sound();
    for _ in 0..2 {
        server.ask(&["DQ.PUSH", "mail:dead", "x", "AT", &old(1), "HEADERS", "1", "dq-reason", "retries"]);
    }
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "letters")), (0, vec!["note"]), "{findings:?}");
    assert!(severities(&findings, "no-consumer").is_empty(), "{findings:?}");
    let found = findings.iter().find(|found| found["check"] == "letters").unwrap();
    assert_eq!(
        found["what"],
        "2 are ready; the first ones are dead messages of other queues, which DEADFORWARD has moved here"
    );
    assert!(found["do"].to_string().contains("dqctl dead mail:dead --letters"), "{found}");
    assert!(ok(&server, &["ls"]).ends_with("\tdead letters\n"));
    assert_eq!(ok(&server, &["ls", "--trouble"]), "");
    // Somebody takes letters, and has gone.
    server.ask(&["DQ.POP", "mail:dead", "NOACK"]);
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "no-consumer")), (1, vec!["critical"]), "{findings:?}");
}

#[test]
fn many_queues_whose_messages_die_are_one_line_and_do_not_wake_whoever_asks_for_what_is_critical() {
    let server = sound();
    for queue in ["a", "b", "c", "d"] {
        ok(&server, &["push", queue, "x", "--id", "m"]);
        ok(&server, &["bury", queue, "m"]);
    }
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "dying").len()), (1, 4), "{findings:?}");
    let shown = on_terminal(&server, "doctor", true).replace("\n  ", " ");
    assert!(
        shown.contains("warning: 4 queues; messages have died in the last 10 minutes: a, b, c and 1 more; "),
        "{shown}"
    );
    assert!(shown.contains("; dqctl dead '*' --by-error adds up what they died of; "), "{shown}");
    assert_eq!(doctor(&server, &["--critical"]), (0, vec![]));
    assert!(on_terminal(&server, "doctor --critical", true).contains("nothing critical found: 1 server and 4 queues"));
}
