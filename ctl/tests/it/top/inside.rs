//! What is inside a queue: its letters, and what is found in it.

use super::{Top, ENTER, ESCAPE, TAB};
use crate::dqctl::ok;
use crate::support::{eventually, Server};

#[test]
fn letters_are_counted_by_the_cause_of_their_death() {
    let server = Server::start();
    ok(&server, &["create", "orders", "--deadforward", "QUEUE letters"]);
    for (id, error) in [("a", "timeout after 12ms"), ("b", "timeout after 99ms"), ("c", "no such user")] {
        ok(&server, &["push", "orders", "x", "--id", id, "--in", "1h"]);
        ok(&server, &["bury", "orders", id, "--error", error]);
    }
    let mut top = Top::start(&server);
    eventually("they have arrived", || top.line("letters ").split_whitespace().nth(1) == Some("3"));
    top.press("/letters\r");
    top.until("1 with");
    top.press(ENTER);
    top.until_line("a ");
    top.until("e causes");
    top.press("e");
    top.until("why they died in other queues");
    top.until("timeout after #ms");
    top.press("r");
    top.until("they are not dead in this queue");
    top.press(ENTER);
    eventually("only those", || !top.line("a ").is_empty() && !top.line("b ").is_empty() && top.line("c ").is_empty());
    // The queue in which they died says where they are.
    top.press(ESCAPE);
    top.until_line("c ");
    top.press(ESCAPE);
    top.until("1 with");
    top.press("/orders\r");
    top.until_line("orders ");
    top.press(ENTER);
    top.until("There are no ready messages");
    top.press(&format!("{TAB}{TAB}"));
    top.until("they are moved away, as DEADFORWARD says");
}
