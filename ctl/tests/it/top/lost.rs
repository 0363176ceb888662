//! Servers that are down or do not answer.

use super::{signal, Top};
use crate::dqctl::ok;
use crate::support::{eventually, Cluster, Server};

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

#[test]
fn the_queues_of_a_cluster_are_shown_while_one_of_its_servers_is_down() {
    let mut cluster = Cluster::of(2);
    for node in &cluster.nodes {
        node.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let owner = |queue: &str| Cluster::first_owner(2, cluster.slot_of(queue));
    let (here, there) = ["a", "b", "c", "d"].into_iter().partition::<Vec<&str>, _>(|queue| owner(queue) == 0);
    let client = cluster.client();
    let push = |queue: &str| client.queue::<dq_client::Raw>(queue).push(&dq_client::Raw(b"x".to_vec())).send().unwrap();
    here.iter().chain(&there).for_each(|queue| drop(push(queue)));
    let top = Top::with_options(&cluster.nodes[0], "--cluster");
    top.until("4 queues");
    cluster.nodes[1].kill();
    top.until("are missing: ");
    for queue in there {
        eventually("it cannot be read", || top.line(&format!("{queue} ")).ends_with("no answer"));
    }
    // Those of the other one are read as before.
    let left = format!("{} ", here[0]);
    push(here[0]);
    eventually("it is counted", || top.line(&left).split_whitespace().nth(1) == Some("2"));
    top.until_gone("server lost");
    top.until("q leave");
    // So it is for one that begins to look now.
    let top = Top::with_options(&cluster.nodes[0], "--cluster");
    top.until("are missing: ");
    top.until_line(&left);
}
