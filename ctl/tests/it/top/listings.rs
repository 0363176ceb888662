//! The lists of a queue besides its messages: consumers, groups and causes.

use super::{Top, DOWN, ENTER, ESCAPE, TAB};
use crate::dqctl::ok;
use crate::support::{eventually, Server};

#[test]
fn who_holds_messages_is_shown_and_released() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "m", "GROUP", "g1"]);
    server.ask(&["DQ.POP", "q", "AS", "encoder-7", "LEASE", "3600000"]);
    let mut top = Top::start(&server);
    eventually("it is in flight", || top.line("q ").split_whitespace().nth(3) == Some("1"));
    top.press(ENTER);
    top.until_line("m ");
    assert!(["encoder-7", "g1"].iter().all(|part| top.line("m ").contains(part)), "{}", top.text());
    top.until("LEASE ENDS");
    top.press("c");
    top.until("Cancel m of q for good, although encoder-7 works on it?");
    top.press("n");
    top.press("w");
    top.until("encoder-7");
    top.until("Enter messages  r release");
    top.press("r");
    top.until("Release 1 message of q from encoder-7?");
    // What it takes after the question is not meant.
    server.ask(&["DQ.PUSH", "q", "x", "ID", "later"]);
    server.ask(&["DQ.POP", "q", "AS", "encoder-7", "LEASE", "3600000"]);
    top.press("y");
    top.until("released 1 message of encoder-7");
    assert!(ok(&server, &["get", "q", "later"]).contains("inflight"));
    ok(&server, &["cancel", "q", "later"]);
    top.until("No consumer holds a message.");
    // The same without counting the attempt.
    ok(&server, &["push", "q", "x", "--id", "fresh"]);
    ok(&server, &["cancel", "q", "m"]);
    server.ask(&["DQ.POP", "q", "AS", "encoder-8", "LEASE", "3600000"]);
    top.until("encoder-8");
    top.press("u");
    top.until("Release 1 message of q from encoder-8 without counting the attempts?");
    top.press("y");
    top.until("released 1 message of encoder-8 without counting");
    let fresh = ok(&server, &["get", "q", "fresh", "--json"]);
    assert!(fresh.contains("\"ready\"") && fresh.contains("\"attempt\":0"), "{fresh}");
    ok(&server, &["cancel", "q", "fresh"]);
    server.ask(&["DQ.PUSH", "q", "x"]);
    server.ask(&["DQ.POP", "q", "LEASE", "3600000"]);
    top.until("1 in flight with consumers that have no name");
}

#[test]
fn who_holds_messages_in_all_queues_is_shown_and_released() {
    let server = Server::start();
    for (queue, consumer) in [("mail", "encoder-7"), ("orders", "encoder-8")] {
        server.ask(&["DQ.PUSH", queue, "x", "ID", &format!("of-{queue}")]);
        server.ask(&["DQ.POP", queue, "AS", consumer, "LEASE", "3600000"]);
    }
    server.ask(&["DQ.PUSH", "idle", "x"]);
    server.ask(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    let mut top = Top::start(&server);
    let inflight = |top: &Top| top.line("TOTAL").split_whitespace().nth(3) == Some("2");
    eventually("both are in flight", || inflight(&top));
    top.press("w");
    top.until("2 in 2 queues");
    eventually("the oldest is the first", || {
        top.place("mail       encoder-7") == Some(2) && top.place("orders     encoder-8") == Some(3)
    });
    // Nobody holds a message of the other queue, which is not asked.
    let log = format!("{:?}", server.ask(&["SLOWLOG", "GET", "-1"]));
    let asked = |queue: &str| log.contains(&format!("bulk-string('\"DQ.CONSUMERS\"'), bulk-string('\"{queue}\"')"));
    assert!(asked("mail") && !asked("idle"), "{log}");
    top.press(&format!("{DOWN}{ENTER}"));
    top.until("consumer encoder-8");
    top.until_line("of-orders ");
    top.press(ESCAPE);
    top.until("2 in 2 queues");
    top.press("r");
    top.until("Release 1 message of orders from encoder-8?");
    top.press("y");
    top.until("1 in 1 queue");
    assert!(!ok(&server, &["get", "orders", "of-orders"]).contains("inflight"));
    top.press(ESCAPE);
    top.until_line("TOTAL");
    // With a filter, those of the queues that it shows.
    top.press("/ord");
    top.press(&format!("{ENTER}w"));
    top.until("0 in 0 queues  with \"ord\"");
    top.until("No consumer holds a message.");
}

#[test]
fn a_user_who_may_not_read_all_consumers_sees_the_others() {
    let server = Server::start();
    for queue in ["mail", "orders"] {
        server.ask(&["DQ.PUSH", queue, "x"]);
        server.ask(&["DQ.POP", queue, "AS", "encoder-7", "LEASE", "3600000"]);
    }
    server.ask(&["ACL", "SETUSER", "part", "on", ">pw", "%R~*", "+@all", "-dq.consumers", "(+dq.consumers ~mail)"]);
    let url = server.url().replace("redis://", "redis://part:pw@");
    let mut top = Top::with(&server, (80, 24), &format!("DQ_URL={url}"));
    eventually("both are in flight", || top.line("TOTAL").split_whitespace().nth(3) == Some("2"));
    top.press("w");
    top.until("1 in 1 queue");
    top.until("Some are left out: NOPERM");
}

#[test]
fn what_one_consumer_holds_is_listed() {
    let server = Server::start();
    for (id, consumer) in [("a", "encoder-7"), ("b", "encoder-8")] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id]);
        server.ask(&["DQ.POP", "q", "AS", consumer, "LEASE", "3600000"]);
    }
    let mut top = Top::start(&server);
    eventually("they are in flight", || top.line("q ").split_whitespace().nth(3) == Some("2"));
    top.press(ENTER);
    top.until_line("b ");
    top.press("w");
    eventually("both are listed", || top.place("encoder-7") == Some(2) && top.place("encoder-8") == Some(3));
    top.press(&format!("{DOWN}{ENTER}"));
    top.until("consumer encoder-8");
    top.until_line("b ");
    assert!(top.line("a ").is_empty(), "{}", top.text());
    top.press(ESCAPE);
    top.until_line("a ");
}

#[test]
fn groups_are_shown_paused_and_resumed() {
    let server = Server::start();
    for (id, group) in [("a1", "a"), ("b1", "b"), ("b2", "b"), ("c1", "c")] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "GROUP", group]);
    }
    server.ask(&["DQ.POP", "q", "LEASE", "3600000"]);
    server.ask(&["DQ.PAUSE", "q", "GROUP", "b", "FOR", "3600000"]);
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("q ").split_whitespace().nth(1) == Some("3"));
    top.press(ENTER);
    top.until("o groups");
    top.until("1 group paused");
    top.press("o");
    top.until("q  groups  1 paused");
    // What somebody has to resume comes first; then what waits longest.
    let row = |place| top.text().lines().nth(place).unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    let words = |place| -> Vec<String> { row(place) };
    eventually("the paused one comes first", || words(2).last().is_some_and(|name| name == "b"));
    assert!(words(2).join(" ").contains("0 paused, ends in 59m"), "{}", top.text());
    assert!(!words(2).join(" ").contains('…'), "{}", top.text());
    assert_eq!((&words(2)[0][..], &words(3)[0][..]), ("2", "1"), "{}", top.text());
    assert!(words(3).ends_with(&["0", "open", "c"].map(str::to_owned)), "{}", top.text());
    assert_eq!(words(4), ["0", "-", "1", "at", "its", "limit", "a"], "{}", top.text());
    // The messages of one.
    top.until("Enter messages  / filter  p resume");
    top.press(ENTER);
    top.until_line("b2 ");
    assert!(top.line("c1 ").is_empty() && top.text().contains("group b"), "{}", top.text());
    top.press(TAB);
    top.until("The group has no inflight messages.");
    top.press(ESCAPE);
    top.until_line("a1 ");
    // Changes.
    top.press("o");
    top.until("p resume");
    top.press("p");
    top.until("Resume group b of q?");
    top.press("y");
    top.until("resumed group b of q");
    top.until_gone("paused, ends");
    top.press("p");
    top.until("Pause group b of q?");
    top.press("y");
    top.until("paused group b of q");
    assert!(
        ok(&server, &["groups", "q"]).contains("b\t2\t0\t") && ok(&server, &["groups", "q"]).contains("until resumed")
    );
}

#[test]
fn the_cursor_stays_on_a_group_that_moves_up() {
    let server = Server::start();
    for group in ["a", "b"] {
        server.ask(&["DQ.PUSH", "q", "x", "GROUP", group]);
    }
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("q ").split_whitespace().nth(1) == Some("2"));
    top.press(ENTER);
    top.until("o groups");
    top.press("o");
    let ends = |place: usize, end: &str| top.text().lines().nth(place).is_some_and(|line| line.ends_with(end));
    eventually("both are listed", || ends(2, " a") && ends(3, " b"));
    top.press(DOWN);
    top.press("p");
    top.until("Pause group b of q?");
    top.press("y");
    top.until("paused group b of q");
    let ends = |place: usize, end: &str| top.text().lines().nth(place).is_some_and(|line| line.ends_with(end));
    eventually("it comes first", || ends(2, " b"));
    top.press("p");
    top.until("Resume group b of q?");
}

#[test]
fn dead_messages_are_counted_and_redriven_by_cause() {
    let server = Server::start();
    for (id, error) in [("a", "timeout after 12ms"), ("b", "timeout after 99ms"), ("c", "no such user")] {
        ok(&server, &["push", "q", "x", "--id", id, "--in", "1h"]);
        ok(&server, &["bury", "q", id, "--error", error]);
    }
    let mut top = Top::start(&server);
    eventually("they are dead", || top.line("q ").split_whitespace().nth(4) == Some("3"));
    top.press(ENTER);
    top.until_line("c ");
    top.until("e causes");
    top.press("e");
    top.until_line("       2 ");
    top.press(ENTER);
    eventually("only those", || !top.line("a ").is_empty() && !top.line("b ").is_empty() && top.line("c ").is_empty());
    top.press("R");
    top.until("this key is for all, and only some are shown: e, then c or r");
    // Back to all, and to the causes.
    top.press(ESCAPE);
    top.until_line("c ");
    top.press("e");
    top.until_line("       2 ");
    // Pausing the queue has no place among the causes.
    top.press("pr");
    top.until("Redrive 2 dead messages of q with timeout after #ms?");
    top.press("y");
    top.until("redriven 2 messages of q");
    top.until_gone("timeout after #ms");
    top.until("no such user");
    assert!(ok(&server, &["get", "q", "c", "--json"]).contains("\"dead\""));
}

#[test]
fn dead_messages_and_letters_of_a_cause_are_deleted() {
    let server = Server::start();
    for (queue, target) in [("a", "NONE"), ("b", "QUEUE a:letters")] {
        ok(&server, &["create", queue, "--deadforward", target]);
        for (id, error) in [("1", "timeout after 12ms"), ("2", "timeout after 99ms"), ("3", "no such user")] {
            ok(&server, &["push", queue, "x", "--id", id]);
            ok(&server, &["bury", queue, id, "--error", error]);
        }
    }
    let mut top = Top::start(&server);
    for (queue, place, state) in [("a", 4, "dead "), ("a:letters", 1, "")] {
        eventually("they are there", || top.line(&format!("{queue} ")).split_whitespace().nth(place) == Some("3"));
        top.press(&format!("/{queue}\r"));
        top.until(&format!("with {queue:?}"));
        top.press("s");
        top.until("sorted by");
        top.press(ENTER);
        top.until_line("3 ");
        top.press("e");
        top.until_line("       2 ");
        top.press("c");
        top.until(&format!("Delete 2 {state}messages of {queue} with timeout after #ms"));
        top.press("y");
        top.until(&format!("deleted 2 messages of {queue}"));
        top.until_gone("timeout after #ms");
        top.until("no such user");
        assert!(ok(&server, &["get", queue, "3"]).contains("no such user"));
        top.press(ESCAPE);
        top.until_line("3 ");
        top.press(ESCAPE);
        top.until("STATE");
    }
}

#[test]
fn schedules_show_their_next_run_and_are_run_now() {
    let server = Server::start();
    ok(&server, &["schedule", "q", "nightly", "x", "--cron", "0 3 * * *", "--tz", "Europe/Berlin"]);
    ok(&server, &["schedule", "q", "often", "y", "--every", "1s"]);
    let mut top = Top::start(&server);
    top.until_line("q ");
    top.press("s");
    top.until("sorted by QUEUE");
    top.press(ENTER);
    top.until("DUE");
    top.press("s");
    top.until("q  schedules");
    // What is due first comes first.
    eventually("the first one is listed", || top.place("every 1s                often") == Some(2));
    assert_eq!(top.place("0 3 * * * Europe/Berlin nightly"), Some(3), "{}", top.text());
    top.press(&format!("{DOWN}{ENTER}"));
    top.until("nightly  of q");
    top.until_line("cron ");
    top.press("c");
    top.until("Cancel the schedule nightly of q for good? It makes no more runs.");
    top.press("x");
    top.until_gone("Cancel the schedule");
    top.press(ESCAPE);
    top.until("Enter open  / filter  n run now");
    top.press("n");
    top.until("Run nightly of q now?");
    top.press("y");
    top.until("due now: nightly");
    assert!(ok(&server, &["get", "q", "nightly", "--json"]).contains("\"ready\""));
    top.press("n");
    top.until("its run is due already");
}

#[test]
fn batches_show_their_progress_and_their_messages() {
    let server = Server::start();
    for id in ["a", "b", "c", "d"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "BATCH", "import"]);
    }
    server.ask(&["DQ.PUSH", "q", "x", "ID", "other", "BATCH", "small"]);
    server.ask(&["DQ.BATCH", "q", "import", "THEN", "done", "ID", "after-import"]);
    server.ask(&["DQ.BURY", "q", "a"]);
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("q ").split_whitespace().nth(1) == Some("4"));
    top.press(ENTER);
    top.until("B batches");
    top.press("B");
    top.until("q  batches");
    let words = |place| {
        top.text().lines().nth(place).unwrap_or_default().split_whitespace().skip(3).collect::<Vec<_>>().join(" ")
    };
    eventually("the larger one comes first", || words(2) == "1 of 4, 25% 1 after-import import");
    assert_eq!(words(3), "0 of 1, 0% 0 open small", "{}", top.text());
    server.ask(&["DQ.CANCEL", "q", "b"]);
    eventually("it is read again", || words(2) == "2 of 4, 50% 1 after-import import");
    top.press(ENTER);
    top.until_line("c ");
    assert!(!top.line("d ").is_empty() && top.line("other ").is_empty(), "{}", top.text());
    top.press(TAB);
    top.until("None of the inflight messages that were read belongs to this batch.");
    top.press(ESCAPE);
    top.until_gone("batch import");
    top.press("\x1b[Z");
    top.until_line("other ");
}

#[test]
fn a_filter_finds_any_group_and_its_letters_are_no_keys() {
    let server = Server::start();
    // More than are listed without a filter.
    let push =
        "for i=1,5200 do redis.call('DQ.PUSH', 'q', 'x', 'ID', 'm'..i, 'GROUP', string.format('cust-%05d', i)) end";
    server.ask(&["EVAL", push, "0"]);
    let mut top = Top::start(&server);
    eventually("they are counted", || top.line("q ").split_whitespace().nth(1) == Some("5,200"));
    top.press(ENTER);
    top.until("o groups");
    top.press("o");
    top.until("/ finds others.");
    let last = "cust-05200";
    assert!(!top.text().contains(last));
    top.press("/Cust-05200");
    top.until("Filter: Cust-05200");
    top.until("Enter looks at all groups.");
    top.press(ENTER);
    top.until("1 with \"Cust-05200\"");
    top.until(&format!(" {last}"));
    top.press("p");
    top.until(&format!("Pause group {last} of q?"));
    top.press("y");
    top.until(&format!("paused group {last} of q"));
    top.until("1 paused  1 with \"Cust-05200\"");
    top.press(ESCAPE);
    top.until_gone("with \"Cust");
    top.until("q  groups");
    top.press("/none");
    top.press(ENTER);
    top.until("Nothing in this list has \"none\" in its name.");
}

#[test]
fn each_list_of_a_queue_has_a_filter() {
    let server = Server::start();
    for id in ["nightly", "hourly"] {
        ok(&server, &["schedule", "q", id, "x", "--every", "1h"]);
    }
    for (id, error) in [("a", "timeout"), ("b", "refused")] {
        ok(&server, &["push", "q", "x", "--id", id]);
        ok(&server, &["bury", "q", id, "--error", error]);
    }
    let mut top = Top::start(&server);
    eventually("they are dead", || top.line("q ").split_whitespace().nth(4) == Some("2"));
    top.press(ENTER);
    top.until("Tab state");
    for (key, part, is_there, is_not) in [("s", "night", "nightly", "hourly"), ("e", "time", "timeout", "refused")] {
        top.press(key);
        top.until(is_not);
        top.press(&format!("/{part}{ENTER}"));
        top.until(&format!("1 with {part:?}"));
        top.until(is_there);
        assert!(!top.text().contains(is_not), "{}", top.text());
        top.press(ESCAPE);
        top.until(is_not);
        top.press(ESCAPE);
        top.until("Tab state");
    }
    // A page without a filter looks in all queues, so that the letters that follow are no keys.
    top.press("i");
    top.until("A alter");
    top.press("/");
    top.until("Message id: ");
    top.press("Dnightly");
    top.until("Message id: Dnightly");
    top.press(ESCAPE);
    top.until_gone("Message id");
    // What comes together with a key that does nothing is ignored.
    top.press("-D");
    top.until("this key does nothing here");
    assert!(!top.text().contains("Delete the queue"), "{}", top.text());
}
