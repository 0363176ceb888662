//! Changes of several queues that are marked.

use super::{Top, ENTER, ESCAPE};
use crate::dqctl::ok;
use crate::support::{eventually, Server};

#[test]
fn marked_queues_are_paused_and_resumed_together() {
    let server = Server::start();
    for queue in ["a", "b", "c"] {
        ok(&server, &["create", queue]);
    }
    let mut top = Top::start(&server);
    top.until_line("c ");
    let paused = || ["a", "b", "c"].map(|queue| ok(&server, &["info", queue]).contains("paused\t1"));
    top.press("g  ");
    top.until("2 marked");
    assert!(!top.line("a* ").is_empty() && !top.line("b* ").is_empty(), "{}", top.text());
    top.press("X");
    top.until("only p, C, R and N are for marked queues");
    top.press("R");
    top.until("the marked queues have no dead messages");
    top.press("p");
    top.until("Pause 2 marked queues?");
    top.press("y");
    top.until("paused 2 marked queues");
    assert_eq!(paused(), [true, true, false]);
    // The marks stay, so that the same key is the way back.
    let ends = |top: &Top, state: &str| ["a* ", "b* "].iter().all(|queue| top.line(queue).ends_with(state));
    eventually("both are shown as paused", || ends(&top, "paused"));
    top.press("p");
    top.until("Resume 2 marked queues?");
    top.press("y");
    top.until("resumed 2 marked queues");
    assert_eq!(paused(), [false; 3]);
    eventually("both are shown as open", || ends(&top, "open"));
    top.press(ESCAPE);
    top.until_gone("2 marked");
}

#[test]
fn a_pause_of_marked_queues_is_taken_back_of_exactly_these() {
    let server = Server::start();
    for queue in ["a", "b", "c"] {
        ok(&server, &["create", queue]);
    }
    ok(&server, &["pause", "a"]);
    ok(&server, &["pause", "b", "in"]);
    let fields = |field: &str| ["a", "b", "c"].map(|queue| ok(&server, &["info", queue]).contains(field));
    let mut top = Top::start(&server);
    eventually("they are known", || top.line("a ").ends_with("paused") && top.line("b ").ends_with("closed"));
    top.press("a");
    top.until("3 marked");
    top.press("p");
    top.until("Pause 2 marked queues?");
    top.until("r: resume the 1 that is paused");
    top.press("y");
    top.until("paused 2 marked queues; p takes it back");
    assert_eq!(fields("paused\t1"), [true; 3]);
    eventually("they are shown as paused", || {
        top.line("b* ").contains("paused") && top.line("c* ").ends_with("paused") && !top.line("a ").is_empty()
    });
    top.press("p");
    top.until("Resume 2 marked queues?");
    top.press("y");
    top.until("resumed 2 marked queues");
    // The one that was paused before stays so, and the one that was closed stays closed.
    assert_eq!((fields("paused\t1"), fields("closed\t1")), ([true, false, false], [false, true, false]));
    eventually("they are shown as resumed", || {
        top.line("b* ").ends_with("closed") && top.line("c* ").ends_with("open")
    });
    top.press(ESCAPE);
    top.until_gone("marked");
    top.press("a");
    top.until("3 marked");
    top.press("p");
    top.until("r: resume the 1 that is paused");
    top.press("r");
    top.until("resumed 1 marked queue");
    assert_eq!(fields("paused\t1"), [false; 3]);
}

#[test]
fn marked_queues_are_redriven_run_and_closed_together() {
    let server = Server::start();
    for (queue, ids) in [("a", &["1", "2", "3"][..]), ("b", &["1"]), ("c", &["1"])] {
        for id in ids {
            ok(&server, &["push", queue, "x", "--id", id, "--in", "1h"]);
            ok(&server, &["bury", queue, id]);
        }
        ok(&server, &["push", queue, "x", "--in", "1h"]);
    }
    let mut top = Top::start(&server);
    let counts = |state: &str| ["a", "b", "c"].map(|queue| server.text(&["DQ.LEN", queue, state]));
    eventually("they are counted", || top.line("TOTAL ").split_whitespace().nth(4) == Some("5"));
    // The order by name does not change.
    top.press("1");
    top.until("QUEUE↑");
    for (key, question, said) in [
        ("R", "Redrive 4 dead messages of 2 marked queues?", "redriven 4 messages of 2 marked queues"),
        ("N", "Run 2 delayed messages of 2 marked queues now?", "run 2 messages of 2 marked queues"),
        ("C", "Close 2 marked queues?", "closed 2 marked queues"),
    ] {
        top.press("g  ");
        top.until("2 marked");
        top.press(key);
        top.until(question);
        top.press("y");
        top.until(said);
        top.press(ESCAPE);
        top.until_gone("2 marked");
    }
    assert_eq!(
        (counts("dead"), counts("ready")),
        (["0", "0", "1"].map(str::to_owned), ["4", "2", "0"].map(str::to_owned))
    );
    top.press(&format!("/c{ENTER}"));
    top.until("1 with \"c\"");
    top.press("aR");
    top.until("Redrive 1 dead message of 1 marked queue?");
    top.press("n");
    let closed = ["a", "b", "c"].map(|queue| ok(&server, &["info", queue]).contains("closed\t1"));
    assert_eq!(closed, [true, true, false]);
}

#[test]
fn a_failure_among_marked_queues_says_how_far_it_came() {
    let server = Server::start();
    for queue in ["a", "b", "c"] {
        ok(&server, &["push", queue, "x", "--id", "1"]);
        ok(&server, &["bury", queue, "1"]);
    }
    let mut top = Top::with(&server, (160, 24), "");
    eventually("they are counted", || top.line("TOTAL ").split_whitespace().nth(4) == Some("3"));
    top.press("a");
    top.until("3 marked");
    top.press("R");
    top.until("Redrive 3 dead messages of 3 marked queues?");
    server.ask(&["DEL", "b"]);
    server.ask(&["SET", "b", "no queue"]);
    top.press("y");
    top.until("failed: 1 of 3 queues redriven with 1 message; b: ");
    // Those that were not reached keep their marks.
    top.until_line("c* ");
    top.until_line("a ");
}
