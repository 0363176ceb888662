//! `dqctl export`, and the metrics of `dqctl work`.

use crate::dqctl::{command, json, ok};
use crate::http::get;
use crate::support::{eventually, free_port, Cluster, Process, Server};
use dq_client::cmd;
use std::process::{Command, Stdio};

pub struct Export {
    child: Process,
    pub address: String,
}

impl Export {
    /// Starts `dqctl export` with these options, and waits until it answers.
    pub fn start(server: &Server, options: &[&str]) -> Export {
        let address = format!("127.0.0.1:{}", free_port());
        let args = [&["export", "--listen", &address], options].concat();
        let child = command(server, &args).stderr(Stdio::null()).spawn().unwrap();
        let export = Export { child: Process(child), address };
        eventually("it answers", || get(&export.address, "/healthz").is_some());
        export
    }

    fn page(&self, path: &str) -> (u16, String) {
        get(&self.address, path).expect("an answer")
    }

    pub fn metrics(&self) -> String {
        let (status, text) = self.page("/metrics");
        assert_eq!(status, 200);
        text
    }

    /// The value of a metric with its labels, as `dq_paused{queue="q"}`.
    fn value(&self, name: &str) -> Option<f64> {
        value(&self.metrics(), name)
    }
}

fn value(metrics: &str, name: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn metrics_say_what_the_server_says() {
    let server = Server::start();
    server.ask(&["SET", "no-list", "x"]);
    server.ask(&["DQ.CREATE", "q\"1", "MAXLEN", "9", "DEADFORWARD", "LIST", "no-list"]);
    ok(&server, &["push", "q\"1", "0123456789", "--id", "a", "--group", "tenant-7", "--batch", "import"]);
    ok(&server, &["push", "q\"1", "x", "--id", "b", "--at", "2096-12-01T09:00+01:00"]);
    ok(&server, &["push", "q\"1", "x", "--id", "c"]);
    ok(&server, &["push", "q\"1", "x", "--id", "c", "--replace"]);
    server.ask(&["DQ.BURY", "q\"1", "c"]);
    ok(&server, &["push", "q\"1", "x", "--group", "tenant-7"]);
    server.ask(&["DQ.POP", "q\"1", "LEASE", "600000", "AS", "one"]);
    server.ask(&["DQ.PAUSE", "q\"1", "ALL"]);
    let export = Export::start(&server, &[]);
    let q = "queue=\"q\\\"1\"";
    for name in ["dq_deadforward_failing", "dq_oldest_inflight_seconds"] {
        eventually("a moment has passed", || export.value(&format!("{name}{{{q}}}")).unwrap() > 0.0);
    }
    let text = export.metrics();
    for (name, expected) in [
        (format!("dq_messages{{{q},state=\"delayed\"}}"), 1.0),
        (format!("dq_messages{{{q},state=\"ready\"}}"), 1.0),
        (format!("dq_messages{{{q},state=\"inflight\"}}"), 1.0),
        (format!("dq_messages{{{q},state=\"dead\"}}"), 1.0),
        (format!("dq_events_total{{{q},event=\"pushed\"}}"), 0.0),
        (format!("dq_events_total{{{q},event=\"rejected-full\"}}"), 0.0),
        (format!("dq_next_due_timestamp_seconds{{{q}}}"), 4_005_187_200.0),
        (format!("dq_waiting_clients{{{q}}}"), 0.0),
        (format!("dq_paused{{{q}}}"), 1.0),
        (format!("dq_closed{{{q}}}"), 1.0),
        (format!("dq_maxlen{{{q}}}"), 9.0),
        (format!("dq_forward_failing{{{q}}}"), 0.0),
        (format!("dq_deadforward_failing{{{q}}}"), 1.0),
        (format!("dq_payload_bytes{{{q}}}"), 13.0),
        (format!("dq_messages{{{q},state=\"done\"}}"), 0.0),
        (format!("dq_groups{{{q}}}"), 1.0),
        (format!("dq_blocked_messages{{{q}}}"), 1.0),
        (format!("dq_batches{{{q}}}"), 1.0),
        (format!("dq_consumers{{{q}}}"), 1.0),
        (format!("dq_delivery_lateness_seconds_count{{{q}}}"), 1.0),
        (format!("dq_delivery_lateness_seconds_bucket{{{q},le=\"+Inf\"}}"), 1.0),
        (format!("dq_run_seconds_count{{{q}}}"), 0.0),
        ("dq_up".to_owned(), 1.0),
    ] {
        assert_eq!(value(&text, &name), Some(expected), "{name}: {text}");
    }
    assert!(
        value(&text, &format!("dq_timer_runs_total{{server=\"127.0.0.1:{}\"}}", server.port())).is_some(),
        "{text}"
    );
    // The names of groups are never labels.
    assert!(!text.contains("tenant"), "{text}");
    // Each metric is described once, before its first value.
    let described: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let mut distinct = described.clone();
    distinct.dedup();
    assert_eq!(described, distinct);
}

#[test]
fn every_total_of_the_server_is_an_event() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let export = Export::start(&server, &[]);
    let text = export.metrics();
    for (event, _) in server.client().queue::<()>("q").info().unwrap().unwrap().totals.iter() {
        assert!(value(&text, &format!("dq_events_total{{queue=\"q\",event=\"{event}\"}}")).is_some(), "{event}");
    }
}

#[test]
fn new_queues_are_found_and_deleted_ones_left_out() {
    let server = Server::start();
    ok(&server, &["push", "mail:a", "x"]);
    ok(&server, &["push", "other", "x"]);
    let export = Export::start(&server, &["--match", "mail:*", "--every", "0"]);
    let paused = |queue: &str| export.value(&format!("dq_paused{{queue=\"{queue}\"}}"));
    assert_eq!((paused("mail:a"), paused("mail:b"), paused("other")), (Some(0.0), None, None));
    ok(&server, &["push", "mail:b", "x"]);
    server.ask(&["DEL", "mail:a"]);
    assert_eq!((paused("mail:a"), paused("mail:b")), (None, Some(0.0)));
    let cached = Export::start(&server, &["--every", "1h"]);
    cached.metrics();
    ok(&server, &["push", "mail:c", "x"]);
    server.ask(&["DEL", "mail:b"]);
    server.ask(&["SET", "other", "no queue"]);
    let text = cached.metrics();
    assert!(!text.contains("mail:") && !text.contains("other") && value(&text, "dq_up") == Some(1.0), "{text}");
}

#[test]
fn a_queue_that_is_named_has_zeros_before_it_exists() {
    let server = Server::start();
    ok(&server, &["push", "other", "x"]);
    let export = Export::start(&server, &["-q", "new", "--queue", "new", "-q", "later"]);
    let text = export.metrics();
    for queue in ["new", "later"] {
        for name in ["dq_messages{queue=\"Q\",state=\"ready\"}", "dq_oldest_ready_seconds{queue=\"Q\"}"] {
            assert_eq!(value(&text, &name.replace('Q', queue)), Some(0.0), "{text}");
        }
        assert_eq!(value(&text, &format!("dq_events_total{{queue=\"{queue}\",event=\"pushed\"}}")), Some(0.0));
    }
    assert!(!text.contains("other") && text.matches("dq_paused{queue=\"new\"}").count() == 1, "{text}");
    let names = |text: &str| {
        let of_queue = text.lines().filter(|line| line.contains("{queue=\"new\"") && !line.contains("_seconds_"));
        of_queue.map(|line| line.split(' ').next().unwrap().to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    ok(&server, &["push", "new", "x"]);
    let there = export.metrics();
    assert_eq!(value(&there, "dq_messages{queue=\"new\",state=\"ready\"}"), Some(1.0));
    assert_eq!(names(&text), names(&there));
    let both = Export::start(&server, &["-q", "none", "-q", "other", "--match", "oth*"]).metrics();
    assert_eq!(value(&both, "dq_paused{queue=\"none\"}"), Some(0.0));
    assert_eq!(both.matches("dq_paused{queue=\"other\"}").count(), 1);
    assert!(!both.contains("\"new\""), "{both}");
}

#[test]
fn the_number_of_queues_is_limited() {
    let server = Server::start();
    for number in 0..5 {
        ok(&server, &["push", &format!("q{number}"), "x"]);
    }
    let export = Export::start(&server, &["--max-queues", "3"]);
    let text = export.metrics();
    assert_eq!(text.matches("dq_paused{").count(), 3);
    assert_eq!(value(&text, "dq_queues_limited"), Some(1.0));
    let all = Export::start(&server, &["--max-queues", "5"]);
    assert_eq!(all.value("dq_queues_limited"), Some(0.0));
}

#[test]
fn totals_that_go_back_at_a_restart_count_nothing() {
    let mut server = Server::start();
    server.ask(&["DQ.CREATE", "q", "MAXLEN", "1"]);
    ok(&server, &["push", "q", "x"]);
    let refuse = |server: &Server, times: usize| {
        (0..times).for_each(|_| assert!(server.try_ask(&["DQ.PUSH", "q", "x"]).is_err()));
    };
    refuse(&server, 3);
    let export = Export::start(&server, &[]);
    let refused = || export.value("dq_events_total{queue=\"q\",event=\"rejected-full\"}");
    assert_eq!(refused(), Some(0.0), "what was before the first reading is not counted");
    refuse(&server, 2);
    server.ask(&["SAVE"]);
    refuse(&server, 4);
    assert_eq!(refused(), Some(6.0));
    server.kill();
    assert_eq!(refused(), None);
    server.boot();
    let total = json(&server, &["info", "q"])[0]["rejected-full"].clone();
    assert_eq!((total.as_i64(), refused()), (Some(5), Some(6.0)));
    refuse(&server, 1);
    assert_eq!(refused(), Some(7.0));
}

#[test]
fn a_death_before_the_first_scrape_is_a_metric() {
    let server = Server::start();
    ok(&server, &["push", "quiet", "x"]);
    let export = Export::start(&server, &["--every", "0"]);
    ok(&server, &["push", "new", "x", "--id", "m"]);
    server.ask(&["DQ.BURY", "new", "m"]);
    server.ask(&["DQ.CANCEL", "new", "m"]);
    let text = export.metrics();
    assert!(value(&text, "dq_last_death_seconds{queue=\"new\"}").is_some_and(|age| age < 900.0), "{text}");
    assert_eq!(value(&text, "dq_last_death_seconds{queue=\"quiet\"}"), None);
}

#[test]
fn a_server_that_decides_nothing_by_time_is_a_metric() {
    let server = Server::start();
    let export = Export::start(&server, &[]);
    let of_server = |name: &str| export.value(&format!("{name}{{server=\"127.0.0.1:{}\"}}", server.port()));
    assert_eq!((of_server("dq_decides_by_time"), of_server("dq_unsound_queues")), (Some(1.0), Some(0.0)));
    server.ask(&["CONFIG", "SET", "dq.allow-effects", "yes"]);
    assert_eq!(of_server("dq_decides_by_time"), Some(0.0));
}

#[test]
fn a_server_that_closes_idle_connections_is_up() {
    let server = Server::with(&["--timeout", "1"]);
    ok(&server, &["push", "q", "x"]);
    let export = Export::start(&server, &[]);
    for _ in 0..3 {
        assert_eq!(export.value("dq_up"), Some(1.0));
        let is_closed = || !server.text(&["CLIENT", "LIST"]).contains("name=dqctl");
        eventually("the connection is closed", is_closed);
    }
    assert_eq!(export.page("/healthz").0, 200);
}

#[test]
fn metrics_of_other_masters_stay_while_one_does_not_answer() {
    let mut cluster = Cluster::of(3);
    let client = cluster.client();
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        client.call(cmd("DQ.PUSH").arg(name).arg("x"), dq_client::Resend::Never).unwrap();
    }
    for node in &cluster.nodes {
        node.ask(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let export = Export::start(&cluster.nodes[0], &["-q", "a", "--match", "*"]);
    let known = |text: &str| names.map(|name| value(text, &format!("dq_paused{{queue=\"{name}\"}}")).is_some());
    let text = export.metrics();
    assert_eq!((known(&text), value(&text, "dq_up")), ([true; 6], Some(1.0)), "{text}");
    cluster.nodes[2].kill();
    let reached = names.map(|name| Cluster::first_owner(3, cluster.slot_of(name)) != 2);
    assert!(reached.contains(&true) && reached.contains(&false), "{reached:?}");
    eventually("the others are there", || {
        let text = export.metrics();
        let up =
            |node: usize| value(&text, &format!("dq_server_up{{server=\"127.0.0.1:{}\"}}", cluster.nodes[node].port()));
        assert_eq!((value(&text, "dq_up"), up(0), up(2)), (Some(0.0), Some(1.0), Some(0.0)), "{text}");
        known(&text) == reached
    });
    assert_eq!(export.page("/healthz").0, 200);
}

#[test]
fn metrics_of_other_masters_stay_while_one_cannot_be_searched() {
    let cluster = Cluster::of(2);
    let client = cluster.client();
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        client.call(cmd("DQ.PUSH").arg(name).arg("x"), dq_client::Resend::Never).unwrap();
    }
    let export = Export::start(&cluster.nodes[0], &["--every", "0"]);
    let found = || {
        let text = export.metrics();
        let found = names.map(|name| value(&text, &format!("dq_paused{{queue=\"{name}\"}}")).is_some());
        (found, value(&text, "dq_up"))
    };
    let of_first = names.map(|name| Cluster::first_owner(2, cluster.slot_of(name)) == 0);
    cluster.nodes[1].ask(&["ACL", "SETUSER", "default", "-scan"]);
    assert_eq!(found(), (of_first, Some(0.0)));
    cluster.nodes[1].ask(&["ACL", "SETUSER", "default", "+scan"]);
    assert_eq!(found(), ([true; 6], Some(1.0)));
}

#[test]
fn readers_that_wait_for_a_hung_server_share_its_answer() {
    const READERS: usize = 8;
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let process = server.info("server", "process_id");
    let signal = |name: &str| assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    let export = Export::start(&server, &[]);
    let tasks = format!("/proc/{}/task", export.child.0.id());
    let requests = || {
        let names = std::fs::read_dir(&tasks).unwrap().flatten();
        names.filter(|task| std::fs::read(task.path().join("comm")).is_ok_and(|name| name == b"dq-request\n")).count()
    };
    signal("-STOP");
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| export.metrics());
        }
        eventually("all have asked", || requests() == READERS);
        signal("-CONT");
    });
    let calls = server.info("commandstats", "cmdstat_DQ.STATS");
    let calls: usize = calls.split(['=', ',']).nth(1).and_then(|calls| calls.parse().ok()).expect("a number");
    assert!(calls < READERS, "{calls}");
}

#[test]
fn a_server_that_is_down_is_a_metric() {
    let mut server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let export = Export::start(&server, &[]);
    assert_eq!((export.value("dq_up"), export.page("/healthz").0), (Some(1.0), 200));
    server.kill();
    assert_eq!((export.value("dq_up"), export.page("/healthz").0), (Some(0.0), 503));
    server.boot();
    assert_eq!((export.value("dq_up"), export.page("/healthz").0), (Some(1.0), 200));
    assert_eq!(export.page("/other").0, 404);
}

#[test]
fn export_needs_no_more_rights_than_the_page_says() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/dqctl/metrics.md")).unwrap();
    let line = page.lines().find(|line| line.starts_with("ACL SETUSER exporter")).unwrap();
    server.ask(&line.split(' ').collect::<Vec<_>>());
    let url = format!("redis://exporter:secret@127.0.0.1:{}", server.port());
    let export = Export::start(&server, &["-u", &url]);
    let text = export.metrics();
    assert_eq!((value(&text, "dq_up"), value(&text, "dq_paused{queue=\"q\"}")), (Some(1.0), Some(0.0)), "{text}");
    assert!(text.contains("dq_timer_runs_total") && text.contains("dq_run_seconds_sum"), "{text}");
}

#[test]
fn sigterm_ends_export_with_0() {
    let server = Server::start();
    let mut export = Export::start(&server, &[]);
    let killed = Command::new("kill").arg(export.child.0.id().to_string()).status().unwrap();
    assert!(killed.success());
    assert_eq!(export.child.0.wait().unwrap().code(), Some(0));
    let taken = crate::dqctl::dqctl(&server, &["export", "--listen", "256.0.0.1:1"]);
    assert_eq!((taken.code, taken.err.lines().count()), (3, 1), "{taken:?}");
}
