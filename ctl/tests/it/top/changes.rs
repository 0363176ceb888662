//! What keys change, and what they say if they change nothing.

use super::{Top, DOWN, ENTER, ESCAPE, TAB};
use crate::dqctl::ok;
use crate::support::{eventually, Server};

#[test]
fn nothing_changes_without_a_yes() {
    let server = Server::start();
    ok(&server, &["push", "q", "x", "--id", "m"]);
    let paused = || ok(&server, &["info", "q"]).contains("paused\t1");
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press("p");
    top.until("Pause q?");
    top.press("n");
    top.until_gone("Pause q?");
    assert!(!paused());
    top.press("p");
    top.until("Pause q?");
    top.press("y");
    top.until("paused q");
    assert!(paused());
    eventually("it is shown", || top.line("q ").contains("paused"));
    top.press("p");
    top.until("Resume q?");
    top.press("y");
    top.until("resumed q");
    assert!(!paused());
}

#[test]
fn messages_are_cancelled_redriven_and_run() {
    let server = Server::start();
    let state = |id: &str| ok(&server, &["get", "q", id, "--json"]);
    for id in ["a", "b", "c"] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
    }
    let mut top = Top::start(&server);
    top.until_line("q ");
    eventually("its delayed messages are known", || top.line("q ").split_whitespace().nth(2) == Some("3"));
    top.press(ENTER);
    top.until("in 59m");
    top.press("n");
    top.until("Run a of q now?");
    top.press("y");
    top.until("due now: a");
    assert!(state("a").contains("\"ready\""));
    eventually("the list is read again", || top.line("b ").contains("in 59m") && top.line("a ").is_empty());
    top.press(DOWN);
    top.press("c");
    top.until("Cancel c of q for good?");
    top.press("y");
    top.until("cancelled c");
    server.ask(&["DQ.BURY", "q", "b"]);
    top.press("\t\t\t");
    eventually("it is dead", || top.line("b ").contains("ago"));
    top.press(ENTER);
    top.until("rejected");
    top.press("r");
    top.until("Redrive b of q?");
    top.press("y");
    top.until("redriven b");
    assert!(state("b").contains("\"ready\""));
}

#[test]
fn a_full_queue_offers_the_key_that_raises_its_limit() {
    let server = Server::start();
    ok(&server, &["create", "q", "--maxlen", "1"]);
    ok(&server, &["push", "q", "x"]);
    let mut top = Top::start(&server);
    eventually("it is full", || top.line("q ").ends_with("full"));
    top.press(ENTER);
    top.until("q  full: 1 of MAXLEN 1");
    top.until("p pause  A alter  Esc back");
    top.press(&format!("Amaxlen 5{ENTER}"));
    top.until("Alter q: maxlen 5?");
    top.press("y");
    top.until("altered q: maxlen: 1 -> 5");
    ok(&server, &["push", "q", "x"]);
}

#[test]
fn a_queue_is_deleted_with_what_it_holds() {
    let server = Server::start();
    for queue in ["a", "b"] {
        ok(&server, &["push", queue, "x", "--id", "1"]);
        ok(&server, &["push", queue, "x", "--id", "2", "--in", "1h"]);
    }
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("TOTAL ").split_whitespace().nth(1) == Some("2"));
    top.press("D");
    top.until("Delete the queue a for good, with its settings and 2 messages?");
    top.press("n");
    top.until_gone("Delete the queue");
    top.press(ENTER);
    top.until_line("1 ");
    top.press("D");
    top.until("Delete the queue a for good");
    top.press("y");
    top.until("deleted the queue a");
    // It leads back to the list, where it is gone.
    eventually("only the other one is left", || top.line("a ").is_empty() && !top.line("b ").is_empty());
    assert_eq!(server.text(&["EXISTS", "a", "b"]), "1");
}

#[test]
fn a_closed_queue_can_be_paused_and_is_opened() {
    let server = Server::start();
    ok(&server, &["create", "q"]);
    ok(&server, &["pause", "q", "in"]);
    let mut top = Top::start(&server);
    eventually("it is closed", || top.line("q ").ends_with("closed"));
    top.until("p pause");
    top.press("p");
    top.until("Pause q?");
    top.press("n");
    top.press("C");
    top.until("Open q?");
    top.press("y");
    top.until("opened q");
    ok(&server, &["push", "q", "x"]);
}

#[test]
fn a_queue_is_closed_for_pushes_and_opened_and_stays_paused() {
    let server = Server::start();
    ok(&server, &["create", "q"]);
    ok(&server, &["pause", "q"]);
    let mut top = Top::start(&server);
    eventually("it is paused", || top.line("q ").ends_with("paused"));
    for (question, said, state) in [("Close q?", "closed q", "paused, closed"), ("Open q?", "opened q", " paused")] {
        top.press("C");
        top.until(question);
        top.press("y");
        top.until(said);
        eventually(state, || top.line("q ").ends_with(state));
    }
    assert!(ok(&server, &["info", "q"]).contains("paused\t1"));
}

#[test]
fn the_last_line_has_the_keys_that_do_something() {
    let server = Server::start();
    for id in ["a", "b"] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
    }
    ok(&server, &["bury", "q", "a"]);
    let mut top = Top::start(&server);
    top.until("R redrive  N run now");
    top.press(ENTER);
    top.until("c delete  r redrive  R all  X purge  p pause  e causes  Esc  ? keys");
    top.press("n");
    top.until("only delayed messages are run now");
    top.press("\t\t");
    top.until_line("b ");
    top.press("r");
    top.until("only dead messages are redriven");
    // Some keys later, the report is gone and the keys are back.
    top.press("c");
    top.until("Cancel b of q");
    top.press("x");
    top.until("c cancel  n run now  N all  X purge  p pause");
    top.press(TAB);
    top.until("There are no ready messages");
    eventually("no message, no keys", || {
        top.text().ends_with("Tab state  i details  A alter  s schedules  p pause  Esc back  ? keys")
    });
}

#[test]
fn whole_queues_are_redriven_run_and_purged() {
    let server = Server::start();
    for number in 0..25_000 / 500 {
        let ids: Vec<String> = (0..500).map(|id| format!("m{number}-{id}")).collect();
        let mut words = vec!["DQ.MPUSH", "q", "500"];
        words.extend(ids.iter().map(String::as_str));
        words.extend(["DELAY", "3600000"]);
        server.ask(&words);
    }
    let count = |name: &str| -> u64 {
        let info = ok(&server, &["info", "q"]);
        info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
    };
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("q ").split_whitespace().nth(2) == Some("25,000"));
    top.press("N");
    top.until("Run 25,000 delayed messages of q now?");
    top.press("y");
    top.until("25,000 messages of q due now");
    assert_eq!((count("delayed\t"), count("ready\t")), (0, 25_000));
    server.ask(&["DQ.PUSH", "q", "x", "ID", "dead"]);
    server.ask(&["DQ.BURY", "q", "dead"]);
    eventually("it is dead", || top.line("q ").split_whitespace().nth(4) == Some("1"));
    top.press("R");
    top.until("Redrive 1 dead message of q?");
    let words = |top: &Top| top.text().split_whitespace().collect::<Vec<_>>().join(" ");
    let lost = "This clears their errors and attempts for good: dqctl dump q --state dead > dead.jsonl keeps them.";
    eventually("what is lost is said", || words(&top).contains(lost));
    top.press("y");
    top.until("redriven 1 message of q");
    eventually("it is ready", || top.line("q ").split_whitespace().nth(1) == Some("25,001"));
    top.press(ENTER);
    // The list says how many are ready, too.
    top.until("X purge");
    top.press("X");
    top.until("Purge 25,001 ready messages of q for good?");
    top.press("y");
    top.until("purged 25,001 ready messages of q");
    assert_eq!(count("ready\t"), 0);
}

#[test]
fn keys_that_find_nothing_say_so() {
    let server = Server::start();
    let mut top = Top::start(&server);
    top.press(ENTER);
    top.until("there is no queue here");
    server.ask(&["DQ.CREATE", "q"]);
    top.until_line("q ");
    top.press("r");
    top.until("open the queue first, with Enter");
    assert!(top.text().contains("STATE↓"), "{}", top.text());
    top.press("s");
    top.until("sorted by QUEUE");
    top.press("s");
    top.until("sorted by READY");
    top.until("READY↓");
    top.press("S");
    top.until("sorted by READY, reversed");
    top.until("READY↑");
    top.press("S5");
    top.until("sorted by DEAD");
    top.press("9");
    top.until("sorted by STATE");
    top.until("STATE↓");
    top.press(ENTER);
    top.until("There are no ready messages");
    // The keys of this page are shown, not what was said of the last one.
    top.until("Tab state");
    for key in ["n", "r", ENTER] {
        top.press("p");
        top.until("Pause q?");
        // No, and what the key found is said again.
        top.press("x");
        top.until_gone("Pause q?");
        top.press(key);
        top.until("there is no message here");
    }
}

#[test]
fn settings_are_changed_and_what_they_were_is_said() {
    let server = Server::start();
    ok(&server, &["create", "q", "--lease", "30s"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press(ENTER);
    top.until("There are no ready messages");
    top.press("Ajitter");
    eventually("a part of its name is enough", || !top.line("backoff-jitter ").is_empty());
    top.press(&"\x7f".repeat("jitter".len()));
    top.press("lease");
    top.until("Alter q: lease");
    // Only what is typed is shown as it is.
    eventually("it is shown as it is", || top.line("lease ").ends_with("30s"));
    assert!(top.line("maxlen ").is_empty(), "{}", top.text());
    // What is wrong can be corrected.
    top.press(&format!(" soon{ENTER}"));
    top.until("a time is a number with a unit");
    top.press(&format!("\x7f\x7f\x7f\x7f1m retries 3{ENTER}"));
    top.until("Alter q: lease 1m retries 3?");
    assert!(!top.line("retries ").is_empty(), "{}", top.text());
    top.press("y");
    top.until("altered q: lease: 30s -> 1m, retries: ");
    let info = ok(&server, &["info", "q", "--json"]);
    assert!(info.contains("\"lease\":60000") && info.contains("\"retries\":3,"), "{info}");
    // What the server refuses is said in its words.
    top.press(&format!("Aforward LIST q{ENTER}"));
    top.until("Alter q: forward LIST q?");
    top.press("y");
    top.until("a queue cannot forward to itself");
    top.press(ESCAPE);
    top.until("There are no ready messages");
}

#[test]
fn a_purge_and_a_run_say_how_many_schedules_are_among_the_messages() {
    let server = Server::start();
    for (id, every) in [("nightly", "1h"), ("hourly", "2h")] {
        ok(&server, &["schedule", "cron", id, "x", "--every", every]);
    }
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("cron ").split_whitespace().nth(2) == Some("2"));
    top.press("N");
    top.until("Run 2 delayed messages of cron now?");
    top.until("All of them are");
    top.press("n");
    ok(&server, &["push", "cron", "x", "--in", "1h"]);
    eventually("all are counted", || top.line("cron ").split_whitespace().nth(2) == Some("3"));
    top.press(ENTER);
    top.until("Tab state");
    top.press("X");
    top.until("2 of them are schedules");
    top.press("y");
    top.until("purged 1 delayed message of cron");
    assert_eq!(server.text(&["DQ.LEN", "cron", "delayed"]), "2");
}
