//! `dqctl doctor`.

use crate::dqctl::{command, dqctl, json, ok, on_terminal, run, Ran};
use crate::support::{eventually, Cluster, Server};
use serde_json::Value as Json;

/// A server that loses as little as one server can.
pub fn sound() -> Server {
    Server::with(&["--appendonly", "yes"])
}

/// Runs the doctor, and returns its exit code and its findings.
pub fn doctor(server: &Server, options: &[&str]) -> (i32, Vec<Json>) {
    findings(dqctl(server, &[&["doctor", "--json"], options].concat()))
}

fn findings(ran: Ran) -> (i32, Vec<Json>) {
    assert_eq!(ran.err, "");
    let findings: Vec<Json> = ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for finding in &findings {
        for field in ["severity", "check", "what", "why", "do"] {
            assert!(finding[field].is_string(), "{finding}");
        }
    }
    (ran.code, findings)
}

/// The severities of a check.
pub fn severities<'a>(findings: &'a [Json], check: &str) -> Vec<&'a str> {
    let of_check = findings.iter().filter(|finding| finding["check"] == check);
    of_check.filter_map(|finding| finding["severity"].as_str()).collect()
}

pub fn old(hours: i64) -> String {
    ago(hours * 60)
}

fn ago(minutes: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    (i64::try_from(now.as_millis()).unwrap() - minutes * 60_000).to_string()
}

#[test]
fn a_sound_server_and_its_queues_exit_with_0() {
    let server = sound();
    ok(&server, &["push", "q", "x"]);
    ok(&server, &["push", "later", "x", "--in", "1h"]);
    let (code, findings) = doctor(&server, &[]);
    // That there is no replica is advice.
    assert_eq!((code, findings.len(), severities(&findings, "replicas")), (0, 1, vec!["note"]), "{findings:?}");
    assert_eq!(findings[0]["server"], format!("127.0.0.1:{}", server.port()));
}

#[test]
fn a_server_that_forgets_exits_with_1() {
    let server = Server::with(&["--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru"]);
    let (code, findings) = doctor(&server, &[]);
    assert_eq!(code, 1);
    assert_eq!(severities(&findings, "persistence"), ["critical"]);
    assert_eq!(severities(&findings, "eviction"), ["critical"]);
    server.ask(&["CONFIG", "SET", "save", "3600 1", "maxmemory-policy", "noeviction"]);
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "aof"), severities(&findings, "eviction")), (1, vec!["warning"], vec![]));
}

#[test]
fn a_queue_that_nobody_consumes_is_found() {
    let server = sound();
    server.ask(&["DQ.PUSH", "forgotten", "x", "AT", &old(1)]);
    server.ask(&["DQ.PUSH", "served", "x", "AT", &old(1)]);
    server.ask(&["DQ.PUSH", "served", "x", "AT", &old(1)]);
    server.ask(&["DQ.POP", "served"]);
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "no-consumer")), (1, vec!["critical"]), "{findings:?}");
    assert_eq!(severities(&findings, "behind"), ["critical"]);
    let of = |check: &str| findings.iter().find(|finding| finding["check"] == check).unwrap()["queue"].clone();
    assert_eq!((of("no-consumer"), of("behind")), (Json::from("forgotten"), Json::from("served")));
    let served = findings.iter().find(|finding| finding["check"] == "behind").unwrap();
    assert!(served["what"].as_str().unwrap().contains("consumers; 1 in flight, the oldest for "), "{served}");
    assert!(served["do"].as_str().unwrap().contains("dqctl stats served"), "{served}");
    assert_eq!(doctor(&server, &["--max-ready", "2h"]).0, 0);
    assert_eq!(doctor(&server, &["--match", "other*"]).0, 0);
}

#[test]
fn what_waits_for_a_minute_is_as_severe_as_in_ls() {
    let server = sound();
    for (queue, minutes) in [("long", 20), ("short", 2), ("late", 2), ("late", 2), ("swamped", 20), ("swamped", 20)] {
        server.ask(&["DQ.PUSH", queue, "x", "AT", &ago(minutes)]);
    }
    server.ask(&["DQ.CREATE", "limited", "MAXINFLIGHT", "1"]);
    (0..2).for_each(|_| drop(server.ask(&["DQ.PUSH", "limited", "x", "AT", &ago(20)])));
    for queue in ["late", "swamped", "limited"] {
        server.ask(&["DQ.POP", queue, "LEASE", "600000"]);
    }
    let (_, findings) = doctor(&server, &[]);
    for (queue, check, severity, level) in [
        ("long", "no-consumer", "critical", "bad"),
        ("short", "no-consumer", "warning", "warning"),
        ("late", "behind", "warning", "warning"),
        ("swamped", "behind", "critical", "bad"),
        // What is in flight has only begun.
        ("limited", "behind", "warning", "warning"),
    ] {
        let found = findings.iter().find(|found| found["queue"] == queue).expect("a finding");
        assert_eq!((&found["check"], &found["severity"]), (&Json::from(check), &Json::from(severity)), "{found}");
        assert_eq!(json(&server, &["ls", queue])[0]["conditions"][0][1], level, "{queue}");
    }
}

#[test]
fn what_keeps_messages_of_a_queue_is_found() {
    let server = sound();
    server.ask(&["DQ.PUSH", "paused", "x", "AT", &old(2)]);
    server.ask(&["DQ.PAUSE", "paused"]);
    server.ask(&["DQ.CREATE", "full", "MAXLEN", "1"]);
    server.ask(&["DQ.PUSH", "full", "x"]);
    assert!(server.try_ask(&["DQ.PUSH", "full", "x"]).is_err());
    server.ask(&["DQ.PUSH", "expiring", "x"]);
    server.ask(&["PEXPIRE", "expiring", "9999999"]);
    server.ask(&["SET", "no-list", "x"]);
    server.ask(&["DQ.CREATE", "forwarding", "FORWARD", "LIST", "no-list"]);
    server.ask(&["DQ.PUSH", "forwarding", "x"]);
    eventually("forwarding fails", || ok(&server, &["info", "forwarding"]).contains("forward-error\tWRONGTYPE"));
    let (code, findings) = doctor(&server, &[]);
    let found = ["paused", "full", "expires", "forward"].map(|check| severities(&findings, check));
    assert_eq!(
        (code, found),
        (1, [vec!["warning"], vec!["critical"], vec!["critical"], vec!["critical"]]),
        "{findings:?}"
    );
    let forward = findings.iter().find(|finding| finding["check"] == "forward").unwrap()["what"].to_string();
    assert!(forward.contains("has failed for at least "), "{forward}");
    let full = findings.iter().find(|finding| finding["check"] == "full").unwrap()["what"].to_string();
    assert!(full.contains("1 of 1 messages, and at least 1 push was refused"), "{full}");
}

#[test]
fn consumers_are_no_advice_for_a_queue_that_is_full_of_delayed_messages() {
    let server = sound();
    for (queue, delay) in [("later", "3600000"), ("now", "0")] {
        server.ask(&["DQ.CREATE", queue, "MAXLEN", "1"]);
        server.ask(&["DQ.PUSH", queue, "x", "DELAY", delay]);
    }
    let (_, findings) = doctor(&server, &[]);
    let advice = |queue: &str| {
        findings.iter().find(|found| found["check"] == "full" && found["queue"] == queue).unwrap()["do"].to_string()
    };
    assert!(advice("now").contains("add consumers"), "{findings:?}");
    let later = advice("later");
    assert!(later.contains("dqctl promote later -n 100") && !later.contains("add consumers"), "{later}");
}

#[test]
fn leases_that_expire_again_and_again_are_found() {
    let server = sound();
    let pop = |count: &str| server.ask(&["DQ.POP", "q", "COUNT", count, "LEASE", "600000", "AS", "w"]);
    for _ in 0..10 {
        ok(&server, &["push", "q", "x"]);
    }
    pop("9");
    ok(&server, &["release", "q", "w"]);
    assert!(severities(&doctor(&server, &[]).1, "leases").is_empty(), "9 are few");
    pop("1");
    ok(&server, &["release", "q", "w"]);
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "leases")), (0, vec!["note"]), "{findings:?}");
    let finding = findings.iter().find(|finding| finding["check"] == "leases").unwrap();
    assert!(
        finding["what"].as_str().unwrap().starts_with("since it was created, 10 of 10 deliveries ended"),
        "{finding}"
    );
    assert!(finding["do"].as_str().unwrap().contains("dqctl alter q --lease 1m"), "{finding}");
}

#[test]
fn a_batch_that_nobody_closes_is_found() {
    let server = sound();
    for (batch, id) in [("open", "a"), ("shut", "b")] {
        ok(&server, &["push", "q", "x", "--batch", batch, "--id", id, "--in", "1h"]);
    }
    ok(&server, &["batch", "q", "shut", "--then", "done"]);
    let (code, findings) = doctor(&server, &["--max-open", "0"]);
    assert_eq!((code, severities(&findings, "batch")), (1, vec!["warning"]), "{findings:?}");
    let advice = findings.iter().find(|finding| finding["check"] == "batch").unwrap()["do"].to_string();
    assert!(advice.contains("look with dqctl batch q open"), "{advice}");
    assert!(severities(&doctor(&server, &[]).1, "batch").is_empty());
}

#[test]
fn advice_names_the_queue_it_is_about() {
    let server = sound();
    ok(&server, &["create", "one", "--maxlen", "1"]);
    ok(&server, &["push", "one", "x"]);
    ok(&server, &["push", "it is", "x"]);
    ok(&server, &["pause", "it is"]);
    let (_, findings) = doctor(&server, &[]);
    let advice = |check: &str| findings.iter().find(|finding| finding["check"] == check).unwrap()["do"].to_string();
    assert!(advice("full").contains("dqctl alter one --maxlen 2"), "{findings:?}");
    assert!(advice("paused").contains("dqctl resume 'it is'"), "{findings:?}");
}

#[test]
fn a_closed_queue_is_found() {
    let server = sound();
    for queue in ["closed", "briefly"] {
        ok(&server, &["create", queue]);
    }
    ok(&server, &["pause", "closed", "in"]);
    ok(&server, &["pause", "briefly", "in", "--for", "1h"]);
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "closed")), (1, vec!["warning", "note"]), "{findings:?}");
}

#[test]
fn a_server_without_the_module_is_one_finding() {
    let server = Server::without_module();
    server.ask(&["CONFIG", "SET", "save", "3600 1"]);
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "module")), (1, vec!["critical"]), "{findings:?}");
    assert!(severities(&findings, "queues").is_empty(), "{findings:?}");
}

#[test]
fn a_finding_breaks_between_words() {
    let server = Server::start();
    let shown = on_terminal(&server, "doctor", true);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let whole = shown.replace("\n  ", " ");
    assert!(whole.contains("CONFIG SET appendonly yes\n"), "{shown}");
}

#[test]
fn messages_that_dead_consumers_hold_are_found() {
    let server = sound();
    for id in ["a", "b"] {
        server.ask(&["DQ.PUSH", "q", "x", "ID", id, "AT", &old(1)]);
    }
    server.ask(&["DQ.POP", "q", "LEASE", "3600000", "AS", "gone"]);
    eventually("it is held for long enough", || {
        let (_, findings) = doctor(&server, &["--max-ready", "1ms"]);
        let found = findings.iter().find(|finding| finding["check"] == "stuck");
        found.is_some_and(|found| {
            assert!(found["what"].as_str().unwrap().contains("; 1 in flight, the oldest for "), "{found}");
            assert!(found["do"].as_str().unwrap().contains("list with dqctl consumers q"), "{found}");
            true
        })
    });
}

#[test]
fn what_loses_messages_comes_first_and_missing_consumers_are_one_line() {
    let server = sound();
    for queue in ["a-idle", "b-idle", "c-idle", "d-idle", "full"] {
        server.ask(&["DQ.CREATE", queue, "MAXLEN", if queue == "full" { "1" } else { "9" }]);
        server.ask(&["DQ.PUSH", queue, "x", "AT", &old(1)]);
    }
    server.ask(&["DQ.PUSH", "c-idle", "x", "AT", &old(1)]);
    let (_, findings) = doctor(&server, &[]);
    let of = |place: usize| (findings[place]["check"].as_str().unwrap(), findings[place]["queue"].as_str().unwrap());
    let expected = [("full", "full"), ("no-consumer", "full"), ("no-consumer", "c-idle"), ("no-consumer", "a-idle")];
    assert_eq!([0, 1, 2, 3].map(of), expected, "{findings:?}");
    let shown = on_terminal(&server, "doctor", true).replace("\n  ", " ");
    assert!(shown.starts_with("critical: queue full; it is full"), "{shown}");
    assert!(shown.contains("critical: 5 queues; ") && shown.contains("full, c-idle, a-idle and 2 more"), "{shown}");
    assert_eq!(shown.matches("critical: ").count(), 2, "{shown}");
    let listed = ok(&server, &["ls", "--trouble"]);
    let names: Vec<&str> = listed.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(names, ["full", "c-idle", "a-idle", "b-idle", "d-idle"]);
    ok(&server, &["push", "later", "x", "--in", "1h"]);
    assert_eq!(ok(&server, &["ls", "--trouble"]).lines().count(), 5);
    assert_eq!(json(&server, &["ls", "--trouble"])[0]["queue"], "full");
}

#[test]
fn many_queues_of_which_the_same_is_wrong_are_one_line_for_people() {
    let server = sound();
    for queue in ["a", "b", "c", "d"] {
        server.ask(&["DQ.CREATE", queue]);
        server.ask(&["DQ.PAUSE", queue]);
    }
    let shown = on_terminal(&server, "doctor", true).replace("\n  ", " ");
    assert!(
        shown.contains("note: 4 queues; they are paused: a, b, c and 1 more; nothing is delivered; resume each with "),
        "{shown}"
    );
    // Programs get a finding for each queue, with what they have in common.
    let (_, findings) = doctor(&server, &[]);
    assert_eq!(findings.iter().filter(|one| one["kind"] == "they are paused").count(), 4, "{findings:?}");
}

#[test]
fn a_replica_and_its_clock_are_looked_at() {
    let server = Server::with(&["--appendonly", "yes"]);
    let replica = Server::start();
    replica.ask(&["REPLICAOF", "127.0.0.1", &server.port().to_string()]);
    // A master calls a replica online that has not loaded what it received, which it does not answer meanwhile.
    eventually("it is in step", || server.text(&["INFO", "replication"]).contains("state=online"));
    eventually("it has loaded", || replica.info("replication", "master_link_status") == "up");
    let (code, findings) = doctor(&server, &[]);
    // The replica has no AOF, which the server that is asked does not know.
    let name = format!("127.0.0.1:{}", replica.port());
    let found =
        findings.iter().find(|finding| finding["check"] == "persistence").unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!((code, &found["server"]), (1, &Json::from(name)));
    assert_eq!(severities(&findings, "min-replicas"), ["note"]);
    assert!(severities(&findings, "replicas").is_empty() && severities(&findings, "clocks").is_empty(), "{findings:?}");
    assert!(severities(&findings, "role").is_empty(), "{findings:?}");
    let (_, findings) = doctor(&replica, &[]);
    let found = findings.iter().find(|finding| finding["check"] == "role").unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!(found["what"], format!("it is a replica of 127.0.0.1:{}", server.port()));
}

#[test]
fn a_replica_that_is_silent_for_seconds_is_looked_at() {
    let server = sound();
    let replica = Server::start();
    replica.ask(&["REPLICAOF", "127.0.0.1", &server.port().to_string()]);
    eventually("it is in step", || replica.info("replication", "master_link_status") == "up");
    // Longer than the doctor waits for one reply, and shorter than for two.
    replica.ask(&["CLIENT", "PAUSE", "3000", "ALL"]);
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, severities(&findings, "persistence")), (1, vec!["critical"]), "{findings:?}");
}

#[test]
fn all_nodes_of_a_cluster_are_looked_at() {
    let cluster = Cluster::of(3);
    for queue in ["a", "b", "c"] {
        cluster.client().queue::<dq_client::Raw>(queue).push(&dq_client::Raw(b"x".to_vec())).send().unwrap();
    }
    let url = format!("redis://127.0.0.1:{}", cluster.nodes[0].port());
    let (code, findings) =
        findings(dqctl(&cluster.nodes[0], &["doctor", "--json", "-u", &url, "--cluster", "--max-ready", "0"]));
    assert_eq!((code, severities(&findings, "persistence").len()), (1, 3), "{findings:?}");
    assert_eq!(severities(&findings, "no-consumer").len(), 3);
}

#[test]
fn queues_of_a_cluster_are_looked_at_while_one_of_its_servers_is_down() {
    let mut cluster = Cluster::of(2);
    for node in &cluster.nodes {
        node.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let owner = |queue: &str| Cluster::first_owner(2, cluster.slot_of(queue));
    let (here, there) = (["a", "b", "c", "d"].into_iter()).partition::<Vec<&str>, _>(|queue| owner(queue) == 0);
    let client = cluster.client();
    for queue in here.iter().chain(&there) {
        client.queue::<dq_client::Raw>(queue).push(&dq_client::Raw(b"x".to_vec())).send().unwrap();
    }
    let gone = format!("127.0.0.1:{}", cluster.nodes[1].port());
    cluster.nodes[1].kill();
    let url = format!("redis://127.0.0.1:{}", cluster.nodes[0].port());
    let run = |args: &[&str]| dqctl(&cluster.nodes[0], &[args, &["-u", &url, "--cluster"]].concat());
    let (code, findings) = findings(run(&["doctor", "--json", "--max-ready", "0"]));
    assert_eq!((code, severities(&findings, "no-consumer").len()), (1, here.len()), "{findings:?}");
    assert_eq!(severities(&findings, "unreachable"), ["critical"]);
    assert_eq!(severities(&findings, "queues"), ["not checked"]);
    // The other commands for all queues say what is missing too.
    let listed = run(&["ls"]);
    let names: Vec<&str> = listed.out.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert!(listed.code == 3 && names == here, "{listed:?}");
    for ran in [listed, run(&["consumers"]), run(&["find", "none"])] {
        assert!(ran.code == 3 && ran.err.contains(&format!("the queues of {gone} are missing: ")), "{ran:?}");
    }
}

#[test]
fn rights_that_are_missing_are_not_errors() {
    let server = sound();
    ok(&server, &["push", "q", "x"]);
    server.ask(&["DQ.BURY", "q", "none"]);
    server.ask(&["ACL", "SETUSER", "weak", "on", ">secret", "~*", "+info", "+ping"]);
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/dqctl/doctor.md")).unwrap();
    let line = page.lines().find(|line| line.starts_with("ACL SETUSER doctor")).unwrap();
    server.ask(&line.split(' ').collect::<Vec<_>>());
    let as_user = |user: &str| {
        let url = format!("redis://{user}:secret@127.0.0.1:{}", server.port());
        findings(run(command(&server, &["doctor", "--json", "-u", &url])))
    };
    let (code, weak) = as_user("weak");
    assert_eq!(
        (code, severities(&weak, "config"), severities(&weak, "queues")),
        (0, vec!["not checked"], vec!["not checked"]),
        "{weak:?}"
    );
    let (code, granted) = as_user("doctor");
    assert!(code == 0 && granted.iter().all(|finding| finding["severity"] != "not checked"), "{granted:?}");
}

#[test]
fn each_finding_is_a_line() {
    let server = Server::start();
    ok(&server, &["push", "a\tb\n", "x"]);
    server.ask(&["DQ.PAUSE", "a\tb\n"]);
    let ran = dqctl(&server, &["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.lines().count() >= 3 && ran.out.lines().all(|line| line.split('\t').count() == 5), "{ran:?}");
    assert!(ran.out.contains("queue a\\x09b\\x0a"), "{ran:?}");
    let none = crate::dqctl::run(crate::dqctl::without_server(&["doctor", "-u", "redis://127.0.0.1:1"]));
    assert_eq!((none.code, none.err.lines().count()), (3, 1), "{none:?}");
}

#[test]
fn a_missing_consumer_is_told_from_one_that_may_poll() {
    let server = sound();
    for queue in ["never", "polled", "polled"] {
        server.ask(&["DQ.PUSH", queue, "x", "AT", &old(1)]);
    }
    server.ask(&["DQ.POP", "polled", "NOACK"]);
    let (_, findings) = doctor(&server, &[]);
    let what = |queue: &str| {
        let found = findings.iter().find(|found| found["queue"] == queue && found["check"] == "no-consumer");
        found.unwrap()["what"].as_str().unwrap().to_owned()
    };
    assert!(what("never").ends_with(", and none was ever taken"), "{findings:?}");
    assert!(what("polled").ends_with(", and no consumer waits"), "{findings:?}");
}

#[test]
fn a_queue_at_its_rate_does_not_need_consumers() {
    let server = sound();
    server.ask(&["DQ.CREATE", "q", "RATE", "1", "3600000"]);
    for _ in 0..2 {
        server.ask(&["DQ.PUSH", "q", "x", "AT", &old(1)]);
    }
    server.ask(&["DQ.POP", "q", "LEASE", "3600000"]);
    let (_, findings) = doctor(&server, &[]);
    let found = findings.iter().find(|found| found["check"] == "behind").expect("it is behind");
    assert!(found["what"].to_string().contains("it is at its RATE"), "{found}");
    assert!(found["do"].to_string().contains("--rate"), "{found}");
}
