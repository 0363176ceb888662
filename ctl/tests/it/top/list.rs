//! The list of queues: what it shows of each, and in which order.

use super::{Top, ENTER, ESCAPE};
use crate::dqctl::{command, ok, run};
use crate::support::{eventually, Server};

#[test]
fn queues_are_shown_live() {
    let server = Server::start();
    let top = Top::start(&server);
    top.until("There are no queues");
    ok(&server, &["push", "mail", "x"]);
    eventually("it is counted", || top.line("mail").split_whitespace().nth(1) == Some("1"));
    ok(&server, &["push", "mail", "x"]);
    ok(&server, &["pause", "mail"]);
    eventually("it is counted again", || top.line("mail").split_whitespace().nth(1) == Some("2"));
    top.until("paused");
}

#[test]
fn the_server_is_read_as_often_as_was_asked() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let calls = || {
        let line = server.info("commandstats", "cmdstat_DQ.INFO");
        line.split(['=', ',']).nth(1).and_then(|calls| calls.parse::<u64>().ok()).unwrap_or(0)
    };
    let top = Top::with_options(&server, "--every 1h");
    top.until_line("q ");
    top.until("q leave");
    let before = calls();
    let often = Top::with_options(&server, "--every 100ms");
    eventually("it is read", || calls() > before + 20);
    assert!(!often.text().contains("Waiting") && !top.text().contains("Waiting"));
    let ran = run(command(&server, &["top", "--every", "1ms"]));
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("it takes from 100ms to 1h"), "{ran:?}");
}

#[test]
fn payloads_and_names_cannot_control_the_terminal() {
    let server = Server::start();
    let evil = "\x1b]0;evil\x07\x1b[31;1mred\u{9b}2J\u{202e}";
    server.ask(&["DQ.PUSH", &format!("q{evil}"), &format!("p{evil}"), "ID", &format!("i{evil}")]);
    server.ask(&["DQ.BURY", &format!("q{evil}"), &format!("i{evil}"), "ERROR", &format!("e{evil}")]);
    let mut top = Top::with(&server, (200, 24), "");
    top.until(r"q\x1b]0;evil");
    // Its numbers are read after its name, and say which messages are shown first.
    top.until("messages die");
    top.press(ENTER);
    top.until("p\\u{1b}]0;evil");
    top.press(ENTER);
    top.until("e\\x1b]0;evil");
    top.press("c");
    top.until("y: yes");
    let written = String::from_utf8(top.bytes()).unwrap();
    for raw in ["\x1b]", "\x07", "31;1m", "\u{9b}", "\u{202e}"] {
        let found = written
            .match_indices(raw)
            .find(|(at, _)| !["1b}[", "x1b["].iter().any(|escaped| written[..*at].ends_with(escaped)));
        assert!(found.is_none(), "{raw:?}");
    }
}

#[test]
fn binary_names_are_shown_as_the_command_line_takes_them() {
    let server = Server::start();
    let name = r"images:\xff\xfe";
    ok(&server, &["push", name, "x"]);
    let mut top = Top::start(&server);
    top.until_line(name);
    top.press("p");
    top.until(&format!("Pause {name}?"));
    top.press("y");
    top.until(&format!("paused {name}"));
    top.press("/\\xfe\r");
    top.until_line(name);
    assert!(ok(&server, &["info", name]).contains("paused\t1"));
}

#[test]
fn deaths_before_its_start_are_shown() {
    let server = Server::start();
    for (queue, id) in [("a", "m"), ("q", "m")] {
        ok(&server, &["push", queue, "x", "--id", id, "--in", "1h"]);
    }
    ok(&server, &["bury", "q", "m"]);
    let top = Top::start(&server);
    eventually("it has died", || top.line("q ").ends_with("messages die"));
    assert!(top.line("a ").ends_with("open"), "{}", top.text());
}

#[test]
fn messages_die_also_if_they_are_moved_to_another_queue() {
    let server = Server::start();
    ok(&server, &["create", "q", "--deadforward", "QUEUE q:dead"]);
    let top = Top::start(&server);
    eventually("it is looked at", || top.line("q ").ends_with("open"));
    ok(&server, &["push", "q", "x", "--id", "m"]);
    ok(&server, &["bury", "q", "m"]);
    eventually("it has died", || top.line("q ").ends_with("messages die"));
}

#[test]
fn lateness_is_that_of_the_last_deliveries() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "AT", "1700000000000"]);
    server.ask(&["DQ.POP", "q", "NOACK"]);
    let top = Top::start(&server);
    let late = || top.line("q ").split_whitespace().nth(8).unwrap_or_default().to_owned();
    eventually("nothing was delivered since", || late() == "-");
    // What is delivered before the first look is not known to be late.
    eventually("a prompt delivery is shown", || {
        server.ask(&["DQ.PUSH", "q", "x"]);
        server.ask(&["DQ.POP", "q", "NOACK"]);
        late().ends_with('s')
    });
    assert!(!late().contains('h'), "{}", top.text());
}

#[test]
fn a_consumer_that_polls_is_known_by_its_deliveries() {
    let server = Server::start();
    for _ in 0..3 {
        server.ask(&["DQ.PUSH", "polled", "x", "AT", "1700000000000"]);
    }
    let mut top = Top::with(&server, (100, 24), "");
    eventually("nobody waits for them", || top.line("polled ").ends_with("no consumer"));
    server.ask(&["DQ.POP", "polled", "NOACK"]);
    eventually("one was taken", || top.line("polled ").ends_with("late"));
    top.press("q");
}

#[test]
fn queues_in_trouble_say_all_of_it() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "MAXLEN", "1"]);
    server.ask(&["DQ.PUSH", "q", "x", "DELAY", "3600000"]);
    server.ask(&["DQ.PAUSE", "q"]);
    server.ask(&["DQ.PUSH", "served", "x", "DELAY", "3600000"]);
    server.ask(&["DQ.PUSH", "unserved", "x", "AT", "1700000000000"]);
    let mut top = Top::with(&server, (100, 24), "");
    eventually("both are shown", || top.line("q ").ends_with("full, paused"));
    eventually("nobody takes it", || top.line("unserved ").ends_with("no consumer"));
    assert!(top.line("served ").ends_with("open"), "{}", top.text());
    // What refuses messages comes first, then what is stuck.
    let lines = || top.text().lines().skip(3).take(3).map(|line| line[..2].to_owned()).collect::<Vec<_>>();
    eventually("trouble comes first", || lines() == ["q ", "un", "se"]);
    top.press(ENTER);
    top.until("q  full: 1 of MAXLEN 1  paused until resumed");
}

#[test]
fn sorting_goes_to_the_first_line() {
    let server = Server::start();
    for (name, count) in [("a", 1), ("b", 2), ("c", 3)] {
        (0..count).for_each(|_| drop(server.ask(&["DQ.PUSH", name, "x"])));
    }
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("c ").split_whitespace().nth(1) == Some("3"));
    top.press("ss");
    eventually("the most come first", || top.text().lines().nth(3).is_some_and(|line| line.starts_with("c ")));
    top.press(ENTER);
    top.until("ready 3");
    top.press(ESCAPE);
    top.until_line("c ");
    top.press("S");
    eventually("the fewest come first", || top.text().lines().nth(3).is_some_and(|line| line.starts_with("a ")));
    top.press(ENTER);
    top.until("ready 1");
}

#[test]
fn five_thousand_queues_are_sorted_and_filtered() {
    let server = Server::start();
    let client = server.client();
    for number in 0..5_000 {
        let queue = client.queue::<dq_client::Raw>(format!("q{number:04}"));
        queue.push(&dq_client::Raw(b"x".to_vec())).id("m").send().unwrap();
    }
    server.ask(&["DQ.BURY", "q3333", "m"]);
    let mut top = Top::with(&server, (200, 50), "");
    top.until("5,000 queues");
    top.press("s");
    top.until("q0045");
    top.press("\x1b[F");
    top.until("q4999");
    top.press("\x1b[H");
    top.until("q0000");
    top.press("ssss");
    // Also those that were never on the screen have been read.
    eventually("the dead one comes first", || top.text().lines().nth(3).is_some_and(|line| line.starts_with("q3333")));
    top.press("/");
    top.until("Filter:");
    top.press("4242");
    top.until("1 with \"4242\"");
    top.press(ENTER);
    top.press(ENTER);
    top.until("payloads 1 byte");
}

#[test]
fn groups_that_hold_messages_are_no_missing_consumer() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "GROUP", "g", "AT", "1700000000000"]);
    server.ask(&["DQ.PAUSE", "q", "GROUP", "g"]);
    let mut top = Top::start(&server);
    eventually("it is said", || top.line("q ").ends_with("groups held"));
    top.press(ENTER);
    top.until("q  groups held");
}

#[test]
fn queues_that_the_user_may_not_read_are_counted() {
    let server = Server::start();
    for queue in ["mail", "orders", "secret"] {
        server.ask(&["DQ.PUSH", queue, "x"]);
    }
    for (user, keys) in [("part", "~mail"), ("none", "~other")] {
        server.ask(&["ACL", "SETUSER", user, "on", ">pw", keys, "+@all"]);
    }
    let of = |user: &str| {
        let url = server.url().replace("redis://", &format!("redis://{user}:pw@"));
        Top::with(&server, (80, 24), &format!("DQ_URL={url}"))
    };
    let top = of("part");
    top.until("1 queue  2 without permission");
    top.until_line("mail ");
    of("none").until("The user may read none of the queues");
}

#[test]
fn states_are_those_of_ls() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "occupied", "MAXINFLIGHT", "1"]);
    server.ask(&["DQ.CREATE", "limited", "RATE", "1", "3600000"]);
    for queue in ["occupied", "limited"] {
        (0..2).for_each(|_| drop(server.ask(&["DQ.PUSH", queue, "x"])));
        server.ask(&["DQ.POP", queue, "LEASE", "3600000"]);
    }
    let top = Top::with(&server, (120, 24), "");
    for (queue, state) in [("occupied", "at its limit in flight"), ("limited", "at its rate limit")] {
        assert!(ok(&server, &["ls", "--match", queue]).trim_end().ends_with(state));
        eventually(state, || top.line(queue).ends_with(state));
    }
}
