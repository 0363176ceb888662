//! Large payloads, of which the page reads no more than it shows.

use super::Web;
use crate::support::Server;

/// How many bytes the server has sent.
fn sent(server: &Server) -> u64 {
    server.info("stats", "total_net_output_bytes").parse().unwrap()
}

#[test]
fn a_list_that_begins_with_large_payloads_is_short() {
    let server = Server::start();
    let large = "x".repeat(4 << 20);
    for number in 0..20 {
        server.ask(&["DQ.PUSH", "q", &large, "ID", &format!("large-{number}"), "PRIORITY", "9"]);
    }
    for _ in 0..20 {
        let words = ["DQ.MPUSH", "q", "100"].into_iter().chain(["x"; 100]).collect::<Vec<_>>();
        server.ask(&words);
    }
    let web = Web::start(&server, &[]);
    let before = sent(&server);
    let listed = |shown: String| shown.matches("class=\"line-one\"").count();
    assert_eq!(listed(web.view("queue?queue=q&tab=ready")), 2);
    let read = sent(&server) - before;
    // Of 80 MiB. On a busy machine, a part may be read twice.
    assert!(read < 40 << 20, "{read} bytes");
    // Small ones are listed up to the number that was asked for.
    (0..20).for_each(|number| drop(server.ask(&["DQ.CANCEL", "q", &format!("large-{number}")])));
    assert_eq!(listed(web.view("queue?queue=q&tab=ready")), 50);
}
