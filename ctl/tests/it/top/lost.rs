//! A server that is down.

use super::Top;
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
    top.press("/");
    top.until("Filter:");
    top.press("\r");
    server.boot();
    ok(&server, &["push", "after", "x"]);
    top.until("after");
    top.until_gone("server lost");
    top.until_gone("before");
    top.press("q");
    assert_eq!(top.ended(), "0");
}
