//! Batches: pushes into them, how far they are, and what follows.

use crate::dqctl::{dqctl, field, json, ok};
use crate::support::Server;
use serde_json::json;

#[test]
fn a_batch_is_pushed_shown_and_closed() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        let args = ["push", "q", "x", "--id", id, "--batch", "import", "--header", "n=1", "--retries", "3"];
        assert_eq!(ok(&server, &args), format!("{id}\n"));
    }
    let again = dqctl(&server, &["push", "q", "x", "--id", "a", "--batch", "import"]);
    assert!(again.code == 1 && again.err.contains("a duplicate"), "{again:?}");
    ok(&server, &["push", "q", "late", "--batch", "other", "--in", "1h"]);
    assert_eq!((field(&server, "q", "a", "batch"), field(&server, "q", "a", "retries")), (json!("import"), json!(3)));
    server.ask(&["DQ.POP", "q"]);
    ok(&server, &["ack", "q", "a"]);
    ok(&server, &["bury", "q", "b"]);
    let info = json(&server, &["batch", "q", "import"]).remove(0);
    let counts = ["total", "left", "acked", "dead", "cancelled", "closed"].map(|name| info[name].as_i64().unwrap());
    assert_eq!(counts, [3, 1, 1, 1, 0, 0]);
    assert!(ok(&server, &["batch", "q", "import"]).contains("left\t1\n"));
    let listed = ok(&server, &["batch", "q"]);
    let mut lines: Vec<_> = listed.lines().map(|line| line.rsplitn(4, '\t').last().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["import\t1\t3\t1\t1\t0\topen", "other\t1\t1\t0\t0\t0\topen"]);
    assert!(listed.lines().all(|line| line.ends_with("Z\t\t")), "nothing follows yet: {listed}");
    let then = ["batch", "q", "import", "--then", "bind", "--id", "bind", "--priority", "7", "--header", "k=v"];
    assert_eq!(ok(&server, &then), "1\n");
    assert_eq!(json(&server, &["batch", "q", "import"])[0]["closed"], 1);
    assert!(ok(&server, &["batch", "q", "import"]).ends_with("\nthen\tbind\nthen-id\tbind\n"));
    assert!(ok(&server, &["batch", "q"]).lines().any(|line| line.ends_with("Z\tbind\tbind")));
    let again = dqctl(&server, &[&then[..], &["--retries", "2"]].concat());
    assert_eq!((again.code, again.out.as_str()), (0, "1\n"));
    server.ask(&["DQ.POP", "q"]);
    ok(&server, &["ack", "q", "c"]);
    let headers = field(&server, "q", "bind", "headers");
    assert_eq!(
        (&headers["k"], &headers["dq-batch-acked"], &headers["dq-batch-dead"]),
        (&json!("v"), &json!("2"), &json!("1"))
    );
    assert_eq!(field(&server, "q", "bind", "priority"), 7);
}

#[test]
fn a_batch_is_cancelled_with_its_messages() {
    let server = Server::start();
    for id in ["a", "b"] {
        ok(&server, &["push", "q", "x", "--id", id, "--batch", "import"]);
    }
    assert_eq!(json(&server, &["batch", "q", "import", "--cancel"]), [json!({ "cancelled": 2 })]);
    for args in [&["batch", "q", "import"][..], &["batch", "q", "import", "--cancel"]] {
        let ran = dqctl(&server, args);
        assert!(ran.code == 1 && ran.err.contains("the queue q has no batch import"), "{args:?}: {ran:?}");
    }
    for args in [&["batch", "none"][..], &["batch", "none", "b"], &["batch", "none", "b", "--cancel"]] {
        let ran = dqctl(&server, args);
        assert!(ran.code == 1 && ran.err.contains("there is no queue none"), "{args:?}: {ran:?}");
    }
    assert_eq!(ok(&server, &["batch", "q"]), "");
}

#[test]
fn a_batch_is_closed_only_in_a_queue_that_exists() {
    let server = Server::start();
    let ran = dqctl(&server, &["batch", "imsg", "b1", "--then", "x"]);
    assert!(ran.code == 1 && ran.out.is_empty() && ran.err.contains("there is no queue imsg"), "{ran:?}");
    assert_eq!(server.text(&["EXISTS", "imsg"]), "0");
    ok(&server, &["create", "q"]);
    let ran = dqctl(&server, &["batch", "q", "b1", "--then", "x"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "0\n"));
    assert!(ran.err.contains("pushed at once"), "{ran:?}");
    assert_eq!(server.text(&["DQ.LEN", "q", "ready"]), "1");
}
