//! The terminal: its size and colours, and how it is given back.

use super::{signal, Top};
use crate::dqctl::{command, ok, run};
use crate::support::{eventually, Server};
use std::process::{Command, Stdio};

#[test]
fn the_terminal_is_given_back() {
    let server = Server::start();
    for end in ["q", "\x03", "TERM", "HUP"] {
        let mut top = Top::start(&server);
        assert!(top.screen.lock().unwrap().0.screen().alternate_screen());
        if end.len() > 1 {
            signal(&format!("-{end}"), top.read("pid").trim());
        } else {
            top.press(end);
        }
        assert_eq!(top.ended(), "0", "{end}");
        // Who comes back to the terminal later reads why the screen has gone.
        let why = format!("dqctl: top has ended: it got SIG{end}");
        eventually(&why, || top.text().contains(&why) == (end.len() > 1));
    }
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    let server = Server::start();
    let mut top = Top::with_options(&server, "2> why");
    let pid = top.read("pid");
    // Without `script`, nobody has the other end.
    top.child.kill().unwrap();
    top.child.wait().unwrap();
    let is_there = || {
        let found = Command::new("kill").args(["-0", pid.trim()]).stderr(Stdio::null()).status();
        found.unwrap().success()
    };
    eventually("it ends", || !is_there());
    assert!(top.read("why").starts_with("dqctl: top has ended: "), "{}", top.read("why"));
}

#[test]
fn the_screen_follows_the_size_of_the_terminal() {
    let server = Server::start();
    ok(&server, &["push", "q", "x"]);
    let top = Top::start(&server);
    top.until("STATE");
    top.resize(40, 10);
    top.until_gone("IN/S");
    eventually("ten lines", || {
        top.text().lines().count() == 10 && top.text().contains("READY") && top.text().contains("STATE")
    });
    top.resize(120, 30);
    top.until("IN/S");
    eventually("thirty lines", || top.text().lines().count() == 30);
}

#[test]
fn no_color_means_no_colours() {
    let server = Server::start();
    // The line of the cursor is reversed, so another one has to have the colour.
    ok(&server, &["push", "a", "x"]);
    ok(&server, &["push", "q", "x", "--id", "m"]);
    server.ask(&["DQ.BURY", "q", "m"]);
    let has_colours = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).contains("\x1b[38;5;");
    for (variables, colours) in [("NO_COLOR=", true), ("NO_COLOR=1", false)] {
        let top = Top::with(&server, (80, 24), variables);
        eventually("it is dead", || top.line("q ").ends_with("messages die"));
        assert_eq!(has_colours(top.bytes()), colours, "{variables}");
    }
}

#[test]
fn a_pipe_is_refused_and_says_what_to_use() {
    let server = Server::start();
    let ran = run(command(&server, &["top"]));
    assert_eq!((ran.code, ran.err.lines().count()), (3, 1), "{ran:?}");
    assert!(ran.err.contains("terminal") && ran.err.contains("dqctl ls"), "{ran:?}");
    assert_eq!(run(command(&server, &["top", "--json"])).code, 2);
    let none = run(crate::dqctl::without_server(&["top", "-u", "redis://127.0.0.1:1"]));
    assert_eq!((none.code, none.err.lines().count()), (3, 1), "{none:?}");
}

#[test]
fn sigterm_ends_it_though_the_terminal_takes_no_output() {
    let server = Server::start();
    let top = Top::with(&server, (200, 60), "");
    let (pid, script) = (top.read("pid").trim().to_owned(), top.child.id().to_string());
    // The reader of the terminal stops.
    signal("-STOP", &script);
    let count = || {
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
        io.lines().find(|line| line.starts_with("wchar")).unwrap_or_default().to_owned()
    };
    let mut columns = 200;
    eventually("a write is blocked", || {
        let before = count();
        columns ^= 1;
        top.resize(columns, 60);
        std::thread::sleep(std::time::Duration::from_millis(400));
        count() == before
    });
    signal("-TERM", &pid);
    eventually("it has ended", || !crate::work::is_alive(&pid));
    eventually("its exit code is known", || top.read("code").trim() == "0");
    eventually("the keys are as before", || top.read("after").contains(" icanon"));
}
