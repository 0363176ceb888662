//! Groups that hold their messages back: paused, at their rate, or at their limit.

use crate::dqctl::{dqctl, ok};
use crate::support::Server;
use serde_json::Value as Json;

/// Long ago, in Unix ms.
const OLD: &str = "1700000000000";

/// A server with a queue for each cause: `paused`, `rate` and `limit`. The group `a b` holds all of their ready
/// messages back.
fn held() -> Server {
    let server = Server::with(&["--appendonly", "yes"]);
    server.ask(&["DQ.CREATE", "rate", "GROUPRATE", "1", "3600000"]);
    server.ask(&["DQ.CREATE", "limit", "GROUPINFLIGHT", "1", "LEASE", "3600000"]);
    for queue in ["paused", "rate", "limit"] {
        for id in ["one", "two"] {
            server.ask(&["DQ.PUSH", queue, "x", "ID", id, "GROUP", "a b", "AT", OLD]);
        }
    }
    server.ask(&["DQ.PAUSE", "paused", "GROUP", "a b"]);
    server.ask(&["DQ.POP", "limit"]);
    server.ask(&["DQ.POP", "rate", "NOACK"]);
    server
}

fn findings(server: &Server, options: &[&str]) -> Vec<Json> {
    let ran = dqctl(server, &[&["doctor", "--json"], options].concat());
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_doctor_names_the_group_and_no_missing_consumer() {
    let server = held();
    for (queue, advice) in [
        ("paused", "dqctl resume paused --group 'a b'"),
        ("rate", "group a b is at its rate"),
        ("limit", "group a b is at its limit"),
    ] {
        let found: Vec<Json> = findings(&server, &["--match", queue]);
        let of_queue: Vec<&Json> = found.iter().filter(|one| one["queue"] == queue).collect();
        assert_eq!(of_queue.len(), 1, "{found:?}");
        assert_eq!((&of_queue[0]["check"], &of_queue[0]["severity"]), (&"group".into(), &"warning".into()));
        assert!(of_queue[0]["do"].as_str().unwrap().contains(advice), "{found:?}");
    }
    // What nobody takes is found beside what a group holds back.
    ok(&server, &["push", "paused", "x", "--at", "2020-01-01T00:00:00Z"]);
    let checks: Vec<String> =
        findings(&server, &["--match", "paused"]).iter().map(|one| one["check"].as_str().unwrap().to_owned()).collect();
    assert!(checks.contains(&"no-consumer".to_owned()) && checks.contains(&"group".to_owned()), "{checks:?}");
}

#[test]
fn a_group_behind_thousands_of_others_is_found_or_the_rest_is_named() {
    let server = Server::with(&["--appendonly", "yes"]);
    let names: Vec<String> = (0..6_000).map(|number| format!("group-{number}")).collect();
    for some in names.chunks(100) {
        let groups = some.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",");
        let push = "redis.call('DQ.PUSH', 'q', 'x', 'GROUP', name, 'AT', '1700000000000')";
        server.ask(&["EVAL", &format!("for _, name in ipairs({{{groups}}}) do {push} end"), "0"]);
    }
    let listed = ok(&server, &["groups", "q", "--json"]);
    let last: Json = serde_json::from_str(listed.lines().last().expect("a group")).expect("JSON");
    let last = last["group"].as_str().expect("a name");
    server.ask(&["DQ.PAUSE", "q", "GROUP", last]);
    let found = findings(&server, &["--match", "q"]);
    let groups: Vec<&Json> = found.iter().filter(|one| one["check"] == "group").collect();
    assert!(groups.len() == 1 && groups[0]["what"].as_str().unwrap().contains(last), "{found:?}");
    // A glance does not read so many.
    let shown = ok(&server, &["info", "q"]);
    assert!(shown.contains("only 5000 of 6000 groups were looked at: dqctl groups q"), "{shown}");
}

#[test]
fn a_right_to_the_groups_that_is_missing_is_said() {
    let server = held();
    server.ask(&["ACL", "SETUSER", "limited", "on", ">x", "~*", "+@all", "-dq.groups"]);
    let url = server.url().replace("redis://", "redis://limited:x@");
    let found = findings(&server, &["-u", &url, "--match", "paused"]);
    assert!(
        found.iter().any(|one| one["what"] == "what needs the right +dq.groups" && one["severity"] == "not checked"),
        "{found:?}"
    );
    assert!(found.iter().all(|one| one["check"] != "no-consumer"), "{found:?}");
    assert!(ok(&server, &["-u", &url, "info", "paused"]).contains("state\tgroups held\n"));
}
