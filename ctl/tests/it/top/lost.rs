//! Servers that are down or do not answer.

use super::{signal, Top};
use crate::dqctl::ok;
use crate::support::Server;

#[test]
fn a_lost_server_is_shown_and_recovers() {
    let mut server = Server::start();
    ok(&server, &["push", "before", "x"]);
    let mut top = Top::with(&server, (200, 24), "");
    top.until("before");
    server.kill();
    top.until("server lost, ");
    // What happened, since when, and what follows.
    top.until("start the server");
    top.until("Last answer: 2");
    top.until("tried again each second");
    // Keys are answered meanwhile.
    top.press("?");
    top.until("top only looks");
    top.press("?");
    server.boot();
    ok(&server, &["push", "after", "x"]);
    top.until("after");
    top.until_gone("server lost");
    top.until_gone("before");
    top.press("q");
    assert_eq!(top.ended(), "0");
}

#[test]
fn what_a_silent_server_told_last_is_shown_with_its_age() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let top = Top::start(&server);
    top.until_line("q ");
    let pid = server.info("server", "process_id");
    signal("-STOP", &pid);
    top.until("The server has not answered yet");
    assert!(!top.line("q ").is_empty(), "{}", top.text());
    // The first report that it is lost says what may be wrong, too.
    top.until("accepts connections, but does not answer: it is stopped, or busy");
    let bytes = top.bytes();
    assert!(!String::from_utf8_lossy(&bytes).contains("the connection was lost"), "{}", top.text());
    signal("-CONT", &pid);
    top.until_gone("does not answer");
    top.until("Enter open");
}
