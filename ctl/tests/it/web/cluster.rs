//! `dqctl web` and a cluster.

use super::Web;
use crate::support::{eventually, Cluster};
use dq_client::cmd;

#[test]
fn the_queues_of_other_masters_are_shown_while_one_does_not_answer() {
    let mut cluster = Cluster::of(3);
    let names = ["a", "b", "c", "d", "e", "f"];
    let client = cluster.client();
    for name in names {
        client.call(cmd("DQ.PUSH").arg(name).arg("x"), dq_client::Resend::Never).unwrap();
    }
    for node in &cluster.nodes {
        node.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let lost: Vec<&str> =
        names.into_iter().filter(|name| Cluster::first_owner(3, cluster.slot_of(name)) == 2).collect();
    assert!(!lost.is_empty() && lost.len() < names.len(), "{lost:?}");
    let web = Web::start(&cluster.nodes[0], &["--cluster"]);
    let row = |name: &str| format!("<tr id=\"queue/{name}\"");
    eventually("all are found", || {
        let shown = web.view("");
        shown.contains("Cluster of 3 masters") && names.iter().all(|name| shown.contains(&row(name)))
    });
    cluster.nodes[2].kill();
    eventually("the others are listed", || {
        let answer = web.get("/api/view/");
        let failed = answer.body.matches("its server does not answer").count();
        answer.status == 200 && failed == lost.len() && names.iter().all(|name| answer.body.contains(&row(name)))
    });
}
