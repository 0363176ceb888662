//! A panic in the module: the server keeps running, its clients get an answer, and the line in the log fails the test.

use crate::support::{eventually, Client, Server};

/// Runs `act` on a server whose module panics at a place, and expects the alarm. The server is well afterwards.
fn expect_alarm(place: &str, act: impl FnOnce(&Server, &mut Client)) {
    let Some(server) = Server::with_panic_in(place, &[]) else {
        return eprintln!("the module is no debug build: not tested");
    };
    let mut c = server.client();
    assert!(!server.is_alarmed(), "nothing has happened yet");
    act(&server, &mut c);
    eventually("the alarm fires", || server.is_alarmed());
    c.push("well x ID m");
    assert_eq!(c.pop_one("well").id, "m");
}

#[test]
fn a_panic_in_a_command_raises_the_alarm() {
    expect_alarm("command", |_, c| {
        c.push("q x");
        assert!(c.ask("DQ.INFO q").error().starts_with("ERR internal error"));
    });
}

#[test]
fn a_panic_in_the_timer_raises_the_alarm() {
    expect_alarm("timer", |_, c| {
        c.push("q x ID m DELAY 20");
        eventually("the message is due all the same", || c.pop_ids("q") == ["m"]);
    });
}

#[test]
fn a_panic_in_a_free_raises_the_alarm() {
    expect_alarm("free", |_, c| {
        c.push("q x");
        assert_eq!(c.ask("DEL q").int(), 1);
        assert_eq!(c.ask("EXISTS q").int(), 0);
    });
}

#[test]
fn a_panic_for_a_blocked_client_raises_the_alarm() {
    expect_alarm("blocked client", |server, c| {
        let mut waiting = server.client();
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.push("q x ID m");
        eventually("the panic is caught", || server.is_alarmed());
        assert_eq!(c.pop_one("q").id, "m", "the message is still there");
        drop(waiting);
        c.until_blocked(0);
    });
}
