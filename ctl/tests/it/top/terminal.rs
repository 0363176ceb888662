//! The terminal: its size and colours, and how it is given back.

use super::{signal, Top};
use crate::dqctl::{command, ok, run};
use crate::support::{eventually, Server};

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
fn it_ends_when_its_terminal_has_gone() {
    let server = Server::start();
    // In a session of its own it gets no SIGHUP.
    for prefix in ["", "setsid"] {
        let mut top = Top::with(&server, (80, 24), prefix);
        assert!(top.is_alive());
        top.child.kill().unwrap();
        eventually("its process has ended", || !top.is_alive());
    }
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
fn a_pipe_is_refused_and_says_what_to_use() {
    let server = Server::start();
    let ran = run(command(&server, &["top"]));
    assert_eq!((ran.code, ran.err.lines().count()), (3, 1), "{ran:?}");
    assert!(ran.err.contains("terminal") && ran.err.contains("dqctl ls"), "{ran:?}");
    assert_eq!(run(command(&server, &["top", "--json"])).code, 2);
    let none = run(crate::dqctl::without_server(&["top", "-u", "redis://127.0.0.1:1"]));
    assert_eq!((none.code, none.err.lines().count()), (3, 1), "{none:?}");
}
