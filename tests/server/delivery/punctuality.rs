//! Punctuality: the kernel's precise timer wakes the server when a message is due, and delivery works without it too.

use crate::support::{eventually, Client, Clock, Server};
use std::time::SystemTime;

/// The runs of the module's timer that the precise timer started.
fn punctual(c: &mut Client) -> u64 {
    c.info("dq", "dq_timer_punctual").parse().expect("a number")
}

/// Delivers a delayed message to a blocked client, and fails if it comes early.
fn deliver(server: &Server) {
    let (mut c, mut waiting) = (server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    let due = c.now() + 20;
    let id = c.push(format!("q x AT {due}"));
    assert_eq!(waiting.served().id, id);
    assert!(c.latest_now() >= due, "it came early");
    c.ask("DEL q");
}

/// Delivers messages until the precise timer has started a run. If the machine is so busy that the server's own timer
/// is due as well when the event loop gets to run, either of them may start it.
fn deliver_punctually(server: &Server) {
    let mut c = server.client();
    let before = punctual(&mut c);
    eventually("the precise timer has delivered a message", || {
        deliver(server);
        punctual(&mut c) > before
    });
}

#[test]
fn a_precise_timer_starts_deliveries() {
    deliver_punctually(&Server::start());
}

#[test]
fn a_precise_timer_starts_deliveries_with_io_threads() {
    deliver_punctually(&Server::with(&["--io-threads", "3"]));
}

#[test]
fn a_precise_timer_starts_deliveries_after_a_fork_and_a_reload() {
    let server = Server::start();
    let mut c = server.client();
    c.push("kept x DELAY 3600000");
    c.ask("BGSAVE");
    eventually("the child has ended", || c.info("persistence", "rdb_bgsave_in_progress") == "0");
    deliver_punctually(&server);
    c.ask("DEBUG RELOAD").ok();
    deliver_punctually(&server);
}

#[test]
fn delivery_works_in_a_sandbox_without_the_precise_timer() {
    for call in ["timerfd_create", "timerfd_settime"] {
        let server = Server::without_timerfd(call);
        assert!(server.log().contains("no precise timer"), "{call}: the log says so");
        deliver(&server);
        assert_eq!(punctual(&mut server.client()), 0);
    }
}

#[test]
fn a_message_due_while_the_server_was_suspended_is_delivered() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    let due = c.now() + 300;
    let id = c.push(format!("q x AT {due}"));
    server.signal("STOP");
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970").as_millis();
    eventually("it is due", || now() > due as u128);
    server.signal("CONT");
    assert_eq!(waiting.served().id, id);
    deliver_punctually(&server);
}

#[test]
fn a_server_whose_clock_is_not_the_kernels_delivers_when_due() {
    for ms in [-3_600_000, -1, 1, 3_600_000] {
        let clock = Clock::new();
        clock.set(ms);
        deliver(&Server::with_clock(&clock, &[]));
    }
}

#[test]
fn the_timer_runs_seldom_while_nobody_waits() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    let runs = |c: &mut Client| c.info("dq", "dq_timer_runs").parse::<i64>().expect("a number");
    let (began, before) = (c.now(), runs(&mut c));
    for delay in 0..300 {
        c.push(format!("q x DELAY {}", 50 + delay * 3));
    }
    eventually("all are due", || c.len("q ready") == 300);
    let took = c.now() - began;
    assert!(runs(&mut c) - before <= took / 10 + 2, "a run for each ten milliseconds at most");
    // A client that begins to wait is served as ever.
    c.ask("DEL q");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    let id = c.push("q x DELAY 20");
    assert_eq!(waiting.served().id, id);
}
