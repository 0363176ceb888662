//! Errors are one line that says what to do, and exit codes tell them apart.

use crate::dqctl::{dqctl, ok, run, without_server};
use crate::support::{free_port, Server};

#[test]
fn the_server_is_named_before_or_after_the_command() {
    let server = Server::start();
    let url = server.url();
    for args in [["--url", &url, "push", "q", "x"], ["push", "q", "x", "-u", &url], ["push", "-u", &url, "q", "x"]] {
        assert_eq!(run(without_server(&args)).code, 0, "{args:?}");
    }
    assert_eq!(server.text(&["DQ.LEN", "q"]), "3");
}

#[test]
fn a_server_that_cannot_be_reached_is_named() {
    let url = format!("redis://user:secret@127.0.0.1:{}", free_port());
    let ran = run(without_server(&["-u", &url, "ls"]));
    assert_eq!((ran.code, ran.err.lines().count()), (3, 1), "{ran:?}");
    assert!(ran.err.contains("127.0.0.1") && ran.err.contains("--url") && !ran.err.contains("secret"), "{ran:?}");
}

#[test]
fn a_wrong_command_line_is_one_line() {
    let wrong: [&[&str]; 9] = [
        &[],
        &["nonsense"],
        &["push"],
        &["push", "q", "x", "--in", "15"],
        &["push", "q", "x", "--at", "tomorrow"],
        &["push", "q", "x", "--in", "1m", "--at", "2096-12-01T09:00Z"],
        &["reschedule", "q", "m"],
        &["schedule", "q", "m", "x"],
        &["-u", "http://127.0.0.1", "ls"],
    ];
    for args in wrong {
        let ran = run(without_server(args));
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (2, "", 1), "{args:?}: {ran:?}");
        assert!(ran.err.starts_with("dqctl: "), "{ran:?}");
    }
    let unit = run(without_server(&["push", "q", "x", "--in", "15"]));
    assert!(unit.err.contains("15m"), "{unit:?}");
}

#[test]
fn what_a_server_refuses_is_one_line_with_advice() {
    let server = Server::start();
    server.ask(&["SET", "text", "x"]);
    server.ask(&["DQ.CREATE", "full", "MAXLEN", "1"]);
    ok(&server, &["push", "full", "x"]);
    ok(&server, &["push", "q", "x", "--id", "m"]);
    server.ask(&["DQ.BURY", "q", "m"]);
    for (args, advice) in [
        (["push", "text", "x", "--id", "a"], "dqctl ls"),
        (["push", "full", "x", "--id", "a"], "MAXLEN"),
        (["push", "q", "x", "--id", "m"], "redrive"),
    ] {
        let ran = dqctl(&server, &args);
        assert_eq!((ran.code, ran.err.lines().count()), (3, 1), "{args:?}: {ran:?}");
        assert!(ran.err.contains(advice), "{args:?}: {ran:?}");
    }
}

#[test]
fn help_and_version_are_not_errors() {
    for args in [&["--help"][..], &["push", "--help"], &["--version"]] {
        let ran = run(without_server(args));
        assert!(ran.code == 0 && ran.err.is_empty() && ran.out.contains("dqctl"), "{args:?}: {ran:?}");
    }
}
