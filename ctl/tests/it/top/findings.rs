//! What `dqctl doctor` finds, on the screen.

use super::{Top, DOWN, ENTER, ESCAPE, UP};
use crate::dqctl::ok;
use crate::support::{eventually, Server};

/// Moves the cursor of the page to the line that has this.
fn go_to(top: &mut Top, wanted: &str) {
    let text = top.text();
    let place = text.lines().position(|line| line.contains(wanted)).expect(wanted);
    top.press(&DOWN.repeat(place - 2));
}

#[test]
fn what_doctor_finds_is_shown_and_leads_to_its_queue() {
    let server = Server::start();
    ok(&server, &["create", "orders", "--maxlen", "1"]);
    ok(&server, &["push", "orders", "x", "--in", "1h"]);
    ok(&server, &["create", "mail"]);
    ok(&server, &["pause", "mail", "in"]);
    let mut top = Top::start(&server);
    top.until("d doctor");
    top.press("d");
    top.until("Looking at all servers and queues.");
    top.until("it is full: 1 of 1 messages");
    // Those of servers and the worst ones come first, as in `dqctl doctor`.
    let place = |wanted: &str| top.text().lines().position(|line| line.contains(wanted)).unwrap();
    assert!(
        place("neither the AOF nor snapshots") < place("it is full") && place("it is full") < place("it is closed")
    );
    assert!(top.line("doctor").contains("critical") && top.line("doctor").contains(" ago"), "{}", top.text());
    // All of the one under the cursor is shown, and its queue is opened at what it is about.
    top.press(ENTER);
    top.until("this finding is about no single queue");
    go_to(&mut top, "it is full");
    top.until("--maxlen");
    top.press(ENTER);
    top.until("orders  settings, totals and percentiles");
    top.press(ESCAPE);
    top.until("in 59m");
    top.press(ESCAPE);
    // The cursor is where it was.
    top.until("--maxlen");
    ok(&server, &["resume", "mail"]);
    top.press("d");
    top.until_gone("it is closed");
    top.press("p");
    top.until("open the queue of the finding first, with Enter");
    top.press(ESCAPE);
    eventually("the list is shown", || top.line("QUEUE").contains("READY"));
}

#[test]
fn many_queues_of_which_the_same_was_found_are_one_line_that_opens() {
    let server = Server::start();
    for place in 0..5 {
        ok(&server, &["create", &format!("q{place}")]);
        ok(&server, &["pause", &format!("q{place}")]);
    }
    let mut top = Top::start(&server);
    top.until("d doctor");
    top.press("d");
    top.until("5 queues");
    let shown = top.text();
    assert!(shown.contains("they are paused") && !shown.contains("queue q3"), "{shown}");
    // Each of them is counted.
    let heading = top.line("doctor");
    let notes = heading.split("  ").find_map(|part| part.strip_suffix(" note")?.parse::<u32>().ok());
    assert!(notes >= Some(5), "{heading}");
    go_to(&mut top, "5 queues");
    top.until("open this line with Enter");
    top.press(ENTER);
    top.until("queue q3");
    top.press(DOWN);
    top.until("resume it with dqctl resume q0");
    // They stay open when it looks again.
    ok(&server, &["resume", "q4"]);
    top.press("d");
    top.until("4 queues");
    top.until("queue q3");
    top.press(UP);
    top.press(ENTER);
    top.until_gone("queue q3");
}
