//! `dqctl work` where something is missing: readers of its log, file descriptors, its terminal, its server.

use crate::dqctl::{command, field, json};
use crate::support::{eventually, Server};
use crate::work::{written, Work};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A worker that a shell starts, which first executes some commands.
fn after(server: &Server, commands: &str, args: &[&str]) -> Work {
    let line = format!("{commands}; exec '{}' work \"$@\"", env!("CARGO_BIN_EXE_dqctl"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, "sh"]).args(args).env("DQ_URL", server.url()).env("DIR", server.dir());
    Work::of(shell)
}

#[test]
fn leases_are_kept_while_nobody_reads_the_log() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "long", "x", "ID", "long"]);
    for number in 0..150 {
        server.ask(&["DQ.PUSH", "q", "x", "ID", &format!("m{number}")]);
    }
    // Each failure writes more than 1 KB, and a pipe takes 64.
    let script = "[ $DQ_QUEUE = long ] && exec sleep 60; head -c 900 /dev/zero | tr '\\0' x >&2; exit 65";
    let work = Work::start(&server, &["-q", "q=2", "-q", "long", "--lease", "1s", "--grace", "100ms"], script);
    eventually("all have failed", || server.text(&["DQ.LEN", "q", "dead"]) == "150");
    let attempt = || field(&server, "long", "long", "attempt");
    let deadline = || field(&server, "long", "long", "deadline").as_i64().unwrap_or_default();
    let first = deadline();
    eventually("its lease is extended", || deadline() > first + 1_000);
    assert_eq!(attempt(), 1);
    assert_eq!(server.text(&["DQ.LEN", "long", "inflight"]), "1");
    assert_eq!(work.stopped(), 0);
    eventually("it was given back", || server.text(&["DQ.LEN", "long", "ready"]) == "1");
}

#[test]
fn a_worker_without_file_descriptors_spends_no_attempt() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "RETRIES", "0"]);
    for number in 0..60 {
        server.ask(&["DQ.PUSH", "q", "x", "ID", &format!("m{number}")]);
    }
    let args = ["-q", "q=50", "--", "sh", "-c", "sleep 0.1; echo $DQ_ID >>$DIR/done"];
    let work = after(&server, "ulimit -n 64", &args);
    eventually("all are done", || written(&server, "done").lines().count() == 60);
    eventually("all are acknowledged", || server.text(&["DQ.LEN", "q"]) == "0");
    assert_eq!(server.text(&["DQ.LEN", "q", "dead"]), "0");
    let ran = work.stop();
    assert!(ran.code == 0 && ran.err.contains("q: 25 at a time from now on, since sh cannot be run"), "{ran:?}");
}

#[test]
fn a_program_that_is_replaced_spends_no_attempt() {
    let server = Server::start();
    server.ask(&["DQ.CREATE", "q", "RETRIES", "0"]);
    let (program, aside) = (server.dir().join("program"), server.dir().join("aside"));
    std::fs::write(&program, "#!/bin/sh\necho $DQ_ID >>$DIR/done\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let work = after(&server, "true", &["-q", "q=1", "--", program.to_str().unwrap()]);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "before"]);
    eventually("it works", || written(&server, "done") == "before\n");
    std::fs::rename(&program, &aside).unwrap();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "meanwhile"]);
    eventually("it was given back", || json(&server, &["info", "q"])[0]["given-back"] != 0);
    std::fs::rename(&aside, &program).unwrap();
    eventually("the other is done too", || written(&server, "done") == "before\nmeanwhile\n");
    let ran = work.stop();
    assert!(ran.code == 0 && ran.err.contains("q: 1 at a time from now on, since "), "{ran:?}");
    assert!(ran.err.contains("program cannot be run: No such file"), "{ran:?}");
}

#[test]
fn a_worker_under_nohup_goes_on_without_its_terminal() {
    let server = Server::start();
    let work = after(&server, "trap '' HUP", &["-q", "q", "--", "true"]);
    server.until_blocked(1);
    work.signal("HUP");
    server.ask(&["DQ.PUSH", "q", "x"]);
    eventually("it still works", || server.text(&["DQ.LEN", "q"]) == "0");
    assert_eq!(work.stop().code, 0);
}

#[test]
fn a_stop_says_what_could_not_be_given_back() {
    let server = Server::start();
    stops_without_its_server(&server, "touch $DIR/begun; exec sleep 60", &|| {});
}

#[test]
fn a_stop_says_so_even_if_a_message_was_lost_before() {
    let server = Server::start();
    server.ask(&["DQ.PUSH", "q", "x", "ID", "lost"]);
    let script = "[ $DQ_ID = lost ] || touch $DIR/begun; touch $DIR/$DQ_ID; exec sleep 60";
    stops_without_its_server(&server, script, &|| {
        eventually("the command runs", || server.dir().join("lost").exists());
        server.ask(&["DQ.CANCEL", "q", "lost"]);
    });
}

fn stops_without_its_server(server: &Server, script: &str, before: &dyn Fn()) {
    server.ask(&["DQ.PUSH", "q", "x"]);
    let work = Work::start(server, &["-q", "q", "--grace", "100ms"], script);
    before();
    eventually("the command runs", || server.dir().join("begun").exists());
    // The server stands still.
    server.ask(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    let ran = work.stop();
    server.ask(&["CLIENT", "UNPAUSE"]);
    assert!(ran.code == 3 && ran.err.contains("could not report 1 message"), "{ran:?}");
}

#[test]
fn a_command_gets_the_headers_of_its_message_alone() {
    let server = Server::start();
    let mut worker =
        command(&server, &["work", "-q", "q", "--", "sh", "-c", "env >$DIR/env.tmp; mv $DIR/env.tmp $DIR/$DQ_ID"]);
    worker.env("DIR", server.dir()).env("DQ_CHECKPOINT", "old").env("DQ_HEADER_USER_ID", "root");
    let work = Work::of(worker);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "plain"]);
    server.ask(&["DQ.PUSH", "q", "x", "ID", "both", "HEADERS", "3", "user-id", "1", "user_id", "2", "trace", "t"]);
    eventually("both ran", || server.text(&["DQ.LEN", "q"]) == "0");
    for (id, expected) in [("plain", vec![]), ("both", vec!["DQ_HEADER_TRACE=t"])] {
        let environment = written(&server, id);
        let found =
            environment.lines().filter(|line| line.starts_with("DQ_HEADER_") || line.starts_with("DQ_CHECKPOINT"));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{id}");
    }
    assert_eq!(work.stop().code, 0);
}
