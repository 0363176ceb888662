//! What a command says that found nothing to do, and what it refuses so that a typo does not pass.

use crate::dqctl::{dqctl, ok};
use crate::support::{eventually, Server};

#[test]
fn dead_messages_that_went_elsewhere_are_found() {
    let server = Server::start();
    ok(&server, &["create", "orders", "--deadforward", "QUEUE orders:dead"]);
    for id in ["a", "b"] {
        ok(&server, &["push", "orders", "x", "--id", id]);
        ok(&server, &["bury", "orders", id, "--error", "refused"]);
    }
    eventually("both are moved", || server.text(&["DQ.LEN", "orders:dead"]) == "2");
    let hint = "the dead messages of orders go to the queue orders:dead";
    for args in [
        &["dead", "orders"][..],
        &["dead", "orders", "--by-error"],
        &["redrive", "orders"],
        &["redrive", "orders", "--where", "error~refused"],
    ] {
        let ran = dqctl(&server, args);
        assert!(ran.err.contains(hint) && ran.err.contains("dqctl dead orders:dead --letters"), "{args:?}: {ran:?}");
        assert_eq!((ran.err.lines().count(), ran.code), (1, i32::from(args[0] == "redrive")), "{ran:?}");
    }
    // One of them is not called lost.
    for args in [&["get", "orders", "a"][..], &["await", "orders", "a"]] {
        let ran = dqctl(&server, args);
        assert!(ran.code == 1 && ran.err.contains(hint), "{args:?}: {ran:?}");
    }
    let causes = crate::dqctl::json(&server, &["dead", "orders:dead", "--letters", "--by-error"]);
    assert_eq!((causes.len(), &causes[0]["count"], &causes[0]["cause"]), (1, &2.into(), &"refused".into()));
    assert_eq!(ok(&server, &["dead", "orders:dead", "--letters", "--where", "id=a"]).lines().count(), 1);
    // A stream is no queue to look into with dqctl.
    ok(&server, &["create", "logged", "--deadforward", "STREAM log"]);
    let ran = dqctl(&server, &["dead", "logged"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "dqctl: the dead messages of logged go to the stream log\n"));
}
