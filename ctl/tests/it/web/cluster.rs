//! `dqctl web` and a cluster.

use super::Web;
use crate::support::{eventually, Cluster};
use dq_client::cmd;
use serde_json::json;

#[test]
fn the_queues_of_all_masters_are_shown() {
    let cluster = Cluster::of(3);
    let names = ["a", "b", "c", "d", "e", "f"];
    let web = {
        let client = cluster.client();
        for name in names {
            client.call(cmd("DQ.PUSH").arg(name).arg("x"), dq_client::Resend::Never).unwrap();
        }
        let slots: std::collections::BTreeSet<usize> =
            names.iter().map(|name| Cluster::first_owner(3, cluster.slot_of(name))).collect();
        assert!(slots.len() > 1, "they are on several masters");
        Web::start(&cluster.nodes[0], &["--cluster"])
    };
    eventually("they are found", || web.read("/api/queues")["total"] == names.len());
    let all = web.read("/api/server");
    assert_eq!((all["servers"].as_array().unwrap().len(), &all["cluster"]), (3, &json!(true)));
    assert_eq!(all["totals"]["queues"], names.len());
    for name in names {
        assert_eq!(web.read(&format!("/api/queue?queue={name}"))["info"]["ready"], 1);
    }
}

#[test]
fn the_queues_of_other_masters_are_shown_while_one_does_not_answer() {
    let mut cluster = Cluster::of(3);
    let names = ["a", "b", "c", "d", "e", "f"];
    let client = cluster.client();
    for name in names {
        client.call(cmd("DQ.PUSH").arg(name).arg("x"), dq_client::Resend::Never).unwrap();
        client.call(cmd("DQ.POP").arg(name).arg("AS").arg("worker"), dq_client::Resend::Never).unwrap();
    }
    for node in &cluster.nodes {
        node.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let lost: Vec<&str> =
        names.into_iter().filter(|name| Cluster::first_owner(3, cluster.slot_of(name)) == 2).collect();
    assert!(!lost.is_empty() && lost.len() < names.len(), "{lost:?}");
    let web = Web::start(&cluster.nodes[0], &["--cluster"]);
    eventually("they are found", || web.read("/api/queues")["total"] == names.len());
    cluster.nodes[2].kill();
    let mut unread = Vec::new();
    eventually("the others are listed", || {
        let answer = web.get("/api/queues");
        let rows = if answer.status == 200 { answer.json()["queues"].as_array().unwrap().clone() } else { Vec::new() };
        let is_lost = |row: &&serde_json::Value| row["error"] == "its server does not answer";
        unread = rows.iter().filter(is_lost).map(|row| row["queue"].as_str().unwrap().to_owned()).collect();
        unread.sort_unstable();
        rows.len() == names.len() && unread == lost
    });
    eventually("so are their consumers", || {
        let answer = web.get("/api/consumers");
        answer.status == 200 && answer.json()["read"] == names.len() - lost.len()
    });
    assert_eq!(web.read("/api/consumers")["queues"], names.len());
    let search = web.read("/api/search?id=m");
    let searched = [&search["searched"], &search["lost"], &search["queues"]].map(|number| number.as_u64().unwrap());
    assert_eq!(searched, [names.len() - lost.len(), lost.len(), names.len()].map(|number| number as u64));
}
