//! Groups and done messages: the commands, and the results of workers.

use crate::dqctl::{command, dqctl, json, ok, on_terminal, with_input};
use crate::support::{eventually, Server};
use crate::work::{written, Work};
use dq_client::blocking::Queue;
use dq_client::Raw;
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn of_many_groups_the_paused_ones_and_those_that_wait_most_come_first() {
    let server = Server::start();
    for (group, number) in [("a-1", 1), ("a-2", 3), ("b-1", 2), ("b-2", 1)] {
        (0..number).for_each(|_| drop(ok(&server, &["push", "q", "x", "--group", group])));
    }
    ok(&server, &["pause", "q", "--group", "b-2"]);
    let names = |options: &[&str]| -> Vec<String> {
        let listed = json(&server, &[&["groups", "q"], options].concat());
        listed.iter().map(|group| group["group"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[]), ["b-2", "a-2", "b-1", "a-1"]);
    assert_eq!(names(&["-n", "2"]), ["b-2", "a-2"]);
    assert_eq!(names(&["--contains", "-1"]), ["b-1", "a-1"]);
    assert_eq!(names(&["--paused"]), ["b-2"]);
    assert!(on_terminal(&server, "groups q -n 1", true).ends_with("\n3 more\n"));
}

#[test]
fn a_message_is_completed_and_awaited() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        ok(&server, &["push", "q", "x", "--id", id, "--retain", "1h"]);
    }
    let waiting =
        command(&server, &["await", "q", "a", "--for", "1h", "--result"]).stdout(Stdio::piped()).spawn().unwrap();
    server.until_blocked(1);
    assert_eq!(dqctl(&server, &["complete", "q", "a", "x"]).code, 1);
    server.ask(&["DQ.POP", "q", "COUNT", "3"]);
    assert_eq!(ok(&server, &["complete", "q", "a", "42"]), "a\n");
    assert_eq!(waiting.wait_with_output().unwrap().stdout, b"42");
    assert_eq!(with_input(&server, &["complete", "q", "b", "-", "--retain", "2h"], &[0, 255]).code, 0);
    ok(&server, &["complete", "q", "c"]);
    let done = json(&server, &["await", "q", "b"]).remove(0);
    assert_eq!((&done["state"], &done["result-base64"]), (&json!("done"), &json!("AP8=")));
    assert!(json(&server, &["await", "q", "c"])[0]["result"].is_null());
    let shown: Vec<_> = json(&server, &["peek", "q"]).iter().map(|m| m["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, ["c", "b", "a"]);
    ok(&server, &["push", "q", "x", "--id", "open"]);
    for (queue, id, why) in [
        ("q", "open", "not completed in time"),
        ("q", "none", "the queue q has no such message: none"),
        ("none", "m", "there is no queue none"),
    ] {
        let ran = dqctl(&server, &["await", queue, id, "--for", "20ms"]);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (1, "", 1), "{ran:?}");
        assert!(ran.err.contains(why), "{ran:?}");
    }
    server.ask(&["DQ.BURY", "q", "open", "ERROR", "broken"]);
    let dead = dqctl(&server, &["await", "q", "open", "--result"]);
    assert_eq!((dead.code, dead.out.as_str()), (1, ""));
    assert!(dead.err.contains("rejected broken"), "{dead:?}");
    assert_eq!(dqctl(&server, &["await", "q", "open"]).code, 1);
}

#[test]
fn what_a_handler_writes_is_the_result_if_the_queue_retains() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "RETAIN", "3600000"]);
    let queue: Queue<Raw> = server.client().queue("q");
    let bytes: Vec<u8> = (0..=255).cycle().take(65_536).collect();
    for (id, payload) in [("bytes", bytes.clone()), ("empty", Vec::new()), ("long", vec![0; 65_537])] {
        queue.push(&Raw(payload)).id(id).send().unwrap();
    }
    server.client().queue::<Raw>("other").push(&Raw(bytes.clone())).send().unwrap();
    let work = Work::logged(&server, &["-q", "q=2", "-q", "other", "--", "sh", "-c", "tee $DIR/$DQ_ID"]);
    let result = |id: &str| queue.wait(id, Duration::from_secs(60)).unwrap().result_bytes().map(<[u8]>::to_vec);
    assert_eq!((result("bytes"), result("empty"), result("long")), (Some(bytes.clone()), None, None));
    assert_eq!(std::fs::read(server.dir().join("bytes")).unwrap(), bytes);
    eventually("the other one is gone", || server.text(&["DQ.LEN", "other"]) == "0");
    // A thread of its own writes the log.
    let is_logged = || written(&server, "log.dqctl").contains("q: long has no result");
    eventually("the warning is logged", is_logged);
    let log = written(&server, "log.dqctl");
    assert_eq!(log.lines().count(), 2, "{log}");
    work.signal("TERM");
    work.until_ended();
}
