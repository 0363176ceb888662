//! `dqctl doctor`.

use crate::dqctl::{command, dqctl, json, ok, on_terminal, run, Ran};
use crate::support::{eventually, Cluster, Server};
use serde_json::Value as Json;

/// A server that loses as little as one server can.
fn sound() -> Server {
    Server::with(&["--appendonly", "yes"])
}

/// Runs the doctor, and returns its exit code and its findings.
fn doctor(server: &Server, options: &[&str]) -> (i32, Vec<Json>) {
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
fn severities<'a>(findings: &'a [Json], check: &str) -> Vec<&'a str> {
    let of_check = findings.iter().filter(|finding| finding["check"] == check);
    of_check.filter_map(|finding| finding["severity"].as_str()).collect()
}

/// What is found of a queue: the severity and what to do.
fn of<'a>(findings: &'a [Json], queue: &str, check: &str) -> Option<(&'a str, &'a str)> {
    let found = findings.iter().find(|found| found["queue"] == queue && found["check"] == check)?;
    Some((found["severity"].as_str()?, found["do"].as_str()?))
}

/// Unix ms, so many minutes ago.
fn ago(minutes: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    (i64::try_from(now.as_millis()).unwrap() - minutes * 60_000).to_string()
}

/// Pushes messages that have been due for so many minutes.
fn push(server: &Server, queue: &str, count: usize, minutes: i64) {
    (0..count).for_each(|_| drop(server.ask(&["DQ.PUSH", queue, "x", "AT", &ago(minutes)])));
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
fn a_server_that_decides_nothing_by_time_is_critical() {
    let server = sound();
    server.ask(&["CONFIG", "SET", "dq.allow-effects", "yes"]);
    let (code, findings) = doctor(&server, &["--critical"]);
    assert_eq!((code, severities(&findings, "effects")), (1, vec!["critical"]), "{findings:?}");
    let expected = format!("redis-cli -h 127.0.0.1 -p {} CONFIG SET dq.allow-effects no;", server.port());
    assert!(findings[0]["do"].as_str().unwrap().contains(&expected), "{findings:?}");
    server.ask(&["CONFIG", "SET", "dq.allow-effects", "no"]);
    assert_eq!(doctor(&server, &["--critical"]).0, 0);
}

#[test]
fn consumers_are_not_missing_where_a_server_refuses_pops() {
    let server = sound();
    push(&server, "q", 1, 20);
    let all = |findings: &[Json]| ["no-replicas", "no-consumer"].map(|check| severities(findings, check).len());
    let (_, findings) = doctor(&server, &[]);
    assert_eq!(all(&findings), [0, 1], "{findings:?}");
    server.ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let (_, findings) = doctor(&server, &[]);
    assert_eq!(all(&findings), [1, 0], "{findings:?}");
    assert!(findings[0]["what"].as_str().unwrap().contains("min-replicas-to-write is 1, and 0 replicas"));
    // The other commands name the cause as well, as far as the user may read it.
    let state = |args: &[&str]| json(&server, args).remove(0)["state"].as_str().unwrap().to_owned();
    for args in [&["ls"][..], &["info", "q"]] {
        assert_eq!(state(args), "writes refused");
    }
    assert_eq!(json(&server, &["ls", "--trouble"]).len(), 1);
    server.ask(&["ACL", "SETUSER", "limited", "on", ">x", "~*", "+@all", "-info"]);
    let url = server.url().replace("redis://", "redis://limited:x@");
    assert!(state(&["ls", "-u", &url]).starts_with("no consumer"));
    server.ask(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    assert!(state(&["ls"]).starts_with("no consumer"));
}

#[test]
fn only_the_queues_of_a_server_that_refuses_pops_are_said_to_be_refused() {
    let cluster = Cluster::of(2);
    let queues = ["a", "b", "c", "d"];
    for queue in queues {
        let owner = &cluster.nodes[Cluster::first_owner(2, cluster.slot_of(queue))];
        push(owner, queue, 1, 20);
    }
    cluster.nodes[1].ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let url = format!("redis://127.0.0.1:{}", cluster.nodes[0].port());
    let of_cluster = |args: &[&str]| dqctl(&cluster.nodes[0], &[args, &["-u", &url, "--cluster", "--json"]].concat());
    let (_, findings) = findings(of_cluster(&["doctor"]));
    for queue in queues {
        let is_refused = Cluster::first_owner(2, cluster.slot_of(queue)) == 1;
        assert_eq!(of(&findings, queue, "no-consumer").is_none(), is_refused, "{queue}: {findings:?}");
        let ran = of_cluster(&["info", queue]);
        assert_eq!(ran.out.contains("writes refused"), is_refused, "{queue}: {ran:?}");
    }
}

#[test]
fn consumers_whose_pops_are_paused_are_not_missing() {
    let server = sound();
    push(&server, "q", 1, 20);
    server.ask(&["CLIENT", "PAUSE", "600000", "WRITE"]);
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| server.try_ask(&["DQ.POP", "q", "NOACK"]));
        eventually("the pop is held back", || server.info("clients", "blocked_clients") == "1");
        let (_, findings) = doctor(&server, &[]);
        let advice = of(&findings, "q", "no-consumer").map(|(_, advice)| advice);
        // Redis does not report a pause.
        let is_said = advice.is_some_and(|advice| advice.contains("CLIENT PAUSE holds them back: clients that are"));
        let is_found = severities(&findings, "paused-writes") == ["critical"] && advice.is_none();
        assert!(is_said || is_found, "{findings:?}");
        server.ask(&["CLIENT", "UNPAUSE"]);
        assert!(consumer.join().expect("the consumer").is_ok());
    });
}

#[test]
fn a_server_that_loads_its_aof_does_not_lack_it() {
    // The load is slow enough to be observed on any machine, and ends when that is done.
    let slow = ["--key-load-delay", "50000", "--loading-process-events-interval-bytes", "1024"];
    let server = Server::with(&[&["--appendonly", "yes", "--enable-debug-command", "yes"], slow.as_slice()].concat());
    let value = "x".repeat(200);
    (0..400).for_each(|number| drop(server.ask(&["SET", &number.to_string(), &value])));
    server.ask(&["BGREWRITEAOF"]);
    eventually("the AOF is rewritten", || {
        server.info("persistence", "aof_rewrite_in_progress") == "0"
            && server.info("persistence", "aof_rewrite_scheduled") == "0"
    });
    std::thread::scope(|scope| {
        let load = scope.spawn(|| server.try_ask(&["DEBUG", "LOADAOF"]));
        eventually("it loads", || server.info("persistence", "loading") == "1");
        assert_eq!(server.info("persistence", "aof_enabled"), "0");
        let (code, found) = doctor(&server, &[]);
        let checks = ["loading", "persistence", "aof"].map(|check| severities(&found, check));
        assert_eq!((code, checks), (1, [vec!["critical"], vec![], vec![]]), "{found:?}");
        server.ask(&["CONFIG", "SET", "key-load-delay", "0"]);
        assert!(load.join().expect("the load").is_ok());
    });
}

#[test]
fn messages_that_wait_are_as_severe_as_in_ls() {
    let server = sound();
    server.ask(&["DQ.CREATE", "limited", "MAXINFLIGHT", "1"]);
    server.ask(&["DQ.CREATE", "rated", "RATE", "1", "3600000"]);
    for (queue, count, minutes) in
        [("long", 1, 20), ("short", 1, 2), ("late", 2, 2), ("swamped", 2, 20), ("limited", 2, 20), ("rated", 2, 20)]
    {
        push(&server, queue, count, minutes);
    }
    for queue in ["late", "swamped", "limited", "rated"] {
        server.ask(&["DQ.POP", queue, "LEASE", "600000"]);
    }
    let (code, findings) = doctor(&server, &[]);
    for (queue, check, severity, advice) in [
        ("long", "no-consumer", "critical", "start its consumers"),
        ("short", "no-consumer", "warning", "start its consumers"),
        ("late", "behind", "warning", "dqctl stats late"),
        ("swamped", "behind", "critical", "add consumers"),
        // What is in flight has only begun.
        ("limited", "behind", "warning", "--maxinflight 2"),
        ("rated", "behind", "warning", "--rate 2/1h"),
    ] {
        let (found, action) = of(&findings, queue, check).unwrap_or_else(|| panic!("{queue}: {findings:?}"));
        assert!(found == severity && action.contains(advice), "{queue}: {findings:?}");
        let level = if severity == "critical" { "bad" } else { "warning" };
        assert_eq!(json(&server, &["ls", queue])[0]["conditions"][0][1], level, "{queue}");
    }
    assert_eq!(code, 1);
    assert_eq!(doctor(&server, &["--max-ready", "2h"]).0, 0);
    assert_eq!(doctor(&server, &["--match", "other*"]).0, 0);
}

#[test]
fn messages_that_a_consumer_keeps_are_found() {
    let server = sound();
    push(&server, "q", 2, 60);
    server.ask(&["DQ.POP", "q", "LEASE", "3600000"]);
    eventually("it is held for long enough", || {
        let (_, findings) = doctor(&server, &["--max-ready", "1ms"]);
        of(&findings, "q", "stuck").is_some()
    });
}

#[test]
fn what_keeps_messages_of_a_queue_is_found() {
    let server = sound();
    push(&server, "paused", 1, 120);
    server.ask(&["DQ.PAUSE", "paused"]);
    server.ask(&["DQ.PUSH", "expiring", "x"]);
    server.ask(&["PEXPIRE", "expiring", "9999999"]);
    server.ask(&["SET", "no-list", "x"]);
    server.ask(&["DQ.CREATE", "forwarding", "FORWARD", "LIST", "no-list", "DEADFORWARD", "LIST", "no-list"]);
    for id in ["a", "b"] {
        server.ask(&["DQ.PUSH", "forwarding", "x", "ID", id]);
    }
    server.ask(&["DQ.BURY", "forwarding", "b"]);
    server.ask(&["DQ.CREATE", "full", "MAXLEN", "1"]);
    server.ask(&["DQ.PUSH", "full", "x", "DELAY", "3600000"]);
    for queue in ["closed", "briefly"] {
        ok(&server, &["create", queue]);
    }
    ok(&server, &["pause", "closed", "in"]);
    ok(&server, &["pause", "briefly", "in", "--for", "1h"]);
    for error in ["forward-error", "deadforward-error"] {
        eventually("forwarding fails", || {
            ok(&server, &["info", "forwarding"]).contains(&format!("\n{error}\tWRONGTYPE"))
        });
    }
    let (code, findings) = doctor(&server, &[]);
    assert_eq!(code, 1);
    for (queue, check, severity) in [
        ("paused", "paused", "warning"),
        ("expiring", "expires", "critical"),
        ("forwarding", "forward", "critical"),
        ("forwarding", "deadforward", "critical"),
        ("full", "full", "critical"),
        ("closed", "closed", "warning"),
        ("briefly", "closed", "note"),
    ] {
        assert_eq!(of(&findings, queue, check).map(|(found, _)| found), Some(severity), "{queue}: {findings:?}");
    }
}

#[test]
fn dead_messages_are_found_on_their_first_day_and_when_they_are_old() {
    let server = sound();
    ok(&server, &["create", "q", "--deadlen", "2"]);
    for (id, error) in [("a", "timed out after 3 s"), ("b", "timed out after 5 s"), ("c", "refused")] {
        ok(&server, &["push", "q", "x", "--id", id]);
        ok(&server, &["bury", "q", id, "--error", error]);
    }
    let (code, findings) = doctor(&server, &[]);
    assert_eq!((code, of(&findings, "q", "dying").unwrap().0), (1, "warning"), "{findings:?}");
    assert!(of(&findings, "q", "dead-full").unwrap().1.contains("--deadlen 4"), "{findings:?}");
    assert!(of(&findings, "q", "dead").is_none());
    assert_eq!(severities(&doctor(&server, &["--max-dead", "0"]).1, "dead"), ["warning"]);
    // They wake nobody who asks for what is critical.
    assert_eq!(doctor(&server, &["--critical"]), (0, vec![]));
}

#[test]
fn what_loses_messages_comes_first_and_many_queues_are_one_line_for_people() {
    let server = sound();
    for queue in ["a idle", "b-idle", "c-idle", "d-idle", "full"] {
        server.ask(&["DQ.CREATE", queue, "MAXLEN", if queue == "full" { "1" } else { "9" }]);
        push(&server, queue, 1, 60);
    }
    push(&server, "c-idle", 1, 60);
    let (_, findings) = doctor(&server, &[]);
    let of = |place: usize| (findings[place]["check"].as_str().unwrap(), findings[place]["queue"].as_str().unwrap());
    let expected = [("full", "full"), ("no-consumer", "full"), ("no-consumer", "c-idle"), ("no-consumer", "a idle")];
    assert_eq!([0, 1, 2, 3].map(of), expected, "{findings:?}");
    let shown = on_terminal(&server, "doctor", true).replace("\n  ", " ");
    assert!(shown.contains("5 queues; ") && shown.contains("full, c-idle, a idle and 2 more"), "{shown}");
    let listed = ok(&server, &["ls", "--trouble"]);
    let names: Vec<&str> = listed.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(names, ["full", "c-idle", "a idle", "b-idle", "d-idle"]);
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
    assert!(severities(&findings, "replicas").is_empty() && severities(&findings, "role").is_empty(), "{findings:?}");
    let (_, findings) = doctor(&replica, &[]);
    let found = findings.iter().find(|finding| finding["check"] == "role").unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!(found["what"], format!("it is a replica of 127.0.0.1:{}", server.port()));
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
