//! What `dqctl doctor` finds, on the screen.

use super::{Top, DOWN, ENTER, ESCAPE};
use crate::dqctl::ok;
use crate::support::Server;

#[test]
fn what_doctor_finds_is_shown_and_leads_to_its_queue() {
    let server = Server::start();
    ok(&server, &["create", "orders", "--maxlen", "1"]);
    ok(&server, &["push", "orders", "x", "--in", "1h"]);
    let mut top = Top::start(&server);
    top.until_line("orders ");
    top.press("d");
    top.until("it is full: 1 of 1 messages");
    // Those of servers come first, as in `dqctl doctor`.
    let place = |wanted: &str| top.text().lines().position(|line| line.contains(wanted)).unwrap();
    assert!(place("neither the AOF nor snapshots") < place("it is full"), "{}", top.text());
    assert!(top.line("doctor").contains("critical") && top.line("doctor").contains(" ago"), "{}", top.text());
    // All of the one under the cursor is shown.
    let down = place("it is full") - 2;
    top.press(&DOWN.repeat(down));
    top.until("--maxlen");
    top.press(ENTER);
    top.until("in 59m");
    top.press(ESCAPE);
    top.until("--maxlen");
    ok(&server, &["alter", "orders", "--maxlen", "100"]);
    top.press("d");
    top.until_gone("it is full");
}
