//! Persistence: a queue is the same after every kind of restart.

use crate::support::{eventually, every_command, every_state, known_of_every_command, Client, Server};

/// Waits until a rewrite of the AOF has succeeded.
pub fn rewrite_aof(c: &mut Client) {
    eventually("no rewrite runs", || c.info("persistence", "aof_rewrite_in_progress") == "0");
    c.ask("BGREWRITEAOF");
    c.until_rewritten();
    assert_eq!(c.info("persistence", "aof_last_bgrewrite_status"), "ok");
}

/// Fills a queue, restarts the server in the given way, and checks that nothing is different.
fn expect_survival(mut server: Server, totals_too: bool, way: impl FnOnce(&mut Server)) {
    let mut c = server.client();
    let cast = every_state(&mut c, "q");
    // An empty queue has settings and ids that must survive.
    c.configure("dq.default-lease", 4321);
    c.push("empty x");
    c.pop_one("empty NOACK");
    let (digests, about) = (["q", "empty"].map(|key| c.digest(key)), c.about_but_time("q"));
    let portraits = cast.portraits(&mut c, "q");
    way(&mut server);
    let mut c = server.client();
    assert_eq!(["q", "empty"].map(|key| c.digest(key)), digests);
    assert_eq!(cast.portraits(&mut c, "q"), portraits);
    assert_eq!(c.about("empty").int("lease"), 4321);
    if totals_too {
        eventually("the counts are as they were", || c.about_but_time("q") == about);
    }
    cast.expect_alive(&mut c, "q");
}

#[test]
fn a_reload_changes_nothing() {
    expect_survival(Server::start(), true, |server| server.client().ask("DEBUG RELOAD").ok());
}

#[test]
fn a_restart_from_an_rdb_file_changes_nothing() {
    expect_survival(Server::start(), true, Server::restart_from_rdb);
}

#[test]
fn a_background_save_is_as_good() {
    expect_survival(Server::start(), true, |server| {
        let mut c = server.client();
        c.ask("BGSAVE");
        eventually("the save is done", || c.info("persistence", "rdb_bgsave_in_progress") == "0");
        assert_eq!(c.info("persistence", "rdb_last_bgsave_status"), "ok");
        server.kill9();
        server.boot();
    });
}

#[test]
fn a_replay_of_the_aof_changes_nothing() {
    expect_survival(Server::with_aof(&[]), false, Server::restart_from_aof);
}

#[test]
fn a_replay_within_the_server_changes_nothing() {
    expect_survival(Server::with_aof(&[]), false, |server| server.client().ask("DEBUG LOADAOF").ok());
}

#[test]
fn a_rewritten_aof_with_a_preamble_changes_nothing() {
    expect_survival(Server::with_aof(&["--aof-use-rdb-preamble", "yes"]), true, |server| {
        rewrite_aof(&mut server.client());
        server.restart_from_aof();
    });
}

#[test]
fn a_rewritten_aof_of_commands_alone_changes_nothing() {
    expect_survival(Server::with_aof(&["--aof-use-rdb-preamble", "no"]), false, |server| {
        rewrite_aof(&mut server.client());
        server.restart_from_aof();
    });
}

#[test]
fn a_rewrite_of_a_rewrite_changes_nothing() {
    expect_survival(Server::with_aof(&["--aof-use-rdb-preamble", "no"]), false, |server| {
        for _ in 0..2 {
            rewrite_aof(&mut server.client());
            server.restart_from_aof();
        }
        server.client().ask("DEBUG RELOAD").ok();
    });
}

#[test]
fn a_restart_long_after_finds_what_time_did_meanwhile() {
    for aof in [false, true] {
        let mut server = if aof { Server::with_aof(&[]) } else { Server::start() };
        let mut c = server.client();
        c.push("q x ID spent RETRIES 0");
        c.push("q x ID lapsed");
        c.push("q x ID expired TTL 300 PRIORITY -1");
        assert_eq!(c.pop("q COUNT 2 LEASE 600000").len(), 2);
        c.push("q x ID due DELAY 300 PRIORITY 1");
        let deadlines = ["spent", "lapsed"].map(|id| c.extend(format!("q {id} LEASE 300")));
        if aof {
            server.restart_from_aof();
        } else {
            server.restart_from_rdb();
        }
        let mut c = server.client();
        c.until_after(deadlines[1]);
        assert_eq!(
            ["spent", "lapsed", "due", "expired"].map(|id| c.state("q", id)),
            ["dead", "ready", "ready", "dead"]
        );
        assert_eq!(c.get("q", "spent").int("died"), deadlines[0]);
        assert_eq!(c.pop_ids("q COUNT 5"), ["due", "lapsed"]);
        eventually("the counts follow", || c.len("q dead") == 2);
    }
}

#[test]
fn due_times_and_leases_go_on_after_a_restart() {
    for aof in [false, true] {
        let mut server = if aof { Server::with_aof(&[]) } else { Server::start() };
        let mut c = server.client();
        c.push("q x ID leased");
        c.pop_one("q LEASE 600000");
        c.push("q x ID delayed DELAY 1500");
        let deadline = c.extend("q leased LEASE 1600");
        let due = c.get("q", "delayed").int("due");
        if aof {
            server.restart_from_aof();
        } else {
            server.restart_from_rdb();
        }
        let (mut first, mut second, mut c) = (server.client(), server.client(), server.client());
        first.wait_for_message("q");
        second.wait_for_message("q");
        let mut got = [first.served(), second.served()].map(|message| (message.id, message.attempt));
        got.sort();
        assert_eq!(got, [("delayed".to_owned(), 1), ("leased".to_owned(), 2)]);
        c.expect_delivered_at("q", "delayed", due);
        c.expect_delivered_at("q", "leased", deadline);
    }
}

#[test]
fn the_timer_finds_by_itself_what_was_loaded() {
    let ways: [fn(&mut Server); 4] = [
        |server| server.client().ask("DEBUG RELOAD").ok(),
        |server| server.client().ask("DEBUG LOADAOF").ok(),
        Server::restart_from_aof,
        |server| {
            rewrite_aof(&mut server.client());
            server.restart_from_aof();
        },
    ];
    for way in ways {
        let mut server = Server::with_aof(&[]);
        let mut c = server.client();
        for key in ["a", "b"] {
            c.push(format!("{key} x RETRIES 0"));
            c.pop_one(format!("{key} LEASE 600000"));
        }
        let id = c.push("a x ID leased");
        c.pop_one("a LEASE 600000");
        let extend = format!("DQ.EXTEND a {id} LEASE 1000");
        c.at_once(["DQ.PUSH a x ID m DELAY 1000", "DQ.PUSH b x ID m DELAY 1000", "MOVE b 3", &extend]);
        way(&mut server);
        // No command names a key, and the counts of the whole server still change.
        let mut c = server.client();
        let counts = |c: &mut Client| ["dq_delayed", "dq_ready", "dq_inflight"].map(|field| c.info("dq", field));
        eventually("time goes on", || counts(&mut c) == ["0", "3", "2"]);
    }
}

#[test]
fn what_every_command_did_survives_in_every_way() {
    let ways: [fn(&mut Server); 5] = [
        |server| server.client().ask("DEBUG RELOAD").ok(),
        |server| server.client().ask("DEBUG LOADAOF").ok(),
        Server::restart_from_aof,
        |server| {
            rewrite_aof(&mut server.client());
            server.restart_from_aof();
        },
        |server| {
            server.client().configure("aof-use-rdb-preamble", "no");
            rewrite_aof(&mut server.client());
            server.restart_from_aof();
        },
    ];
    for way in ways {
        let mut server = Server::with_aof(&[]);
        let known = every_command(&mut server.client());
        way(&mut server);
        let mut c = server.client();
        assert_eq!(known_of_every_command(&mut c), known);
        assert!(c.pop("made").is_empty(), "it is paused still");
        c.resume("made");
        assert_eq!(c.pop("made").len(), 1);
    }
}

#[test]
fn what_time_moves_is_not_written_to_the_aof() {
    let server = Server::with_aof(&[]);
    let mut c = server.client();
    let due = c.now() + 500;
    c.pipeline((0..1000).map(|n| format!("DQ.PUSH q x ID m{n} AT {due} TTL {}", n % 2 * 300)));
    c.push("q x ID leased PRIORITY 1");
    c.pop_one("q LEASE 300");
    let size = c.info("persistence", "aof_current_size");
    eventually("all is due, half is dead", || {
        c.len("q delayed") == 0 && c.len("q dead") == 500 && c.len("q inflight") == 0
    });
    assert_eq!(c.info("persistence", "aof_current_size"), size);
}

#[test]
fn what_was_popped_without_an_ack_does_not_come_back() {
    let mut server = Server::with_aof(&[]);
    let (mut c, mut waiting) = (server.client(), server.client());
    c.push("q x ID a");
    c.pop_one("q NOACK");
    waiting.send("DQ.POP q NOACK BLOCK 0");
    c.until_blocked(1);
    c.push("q x ID b");
    waiting.receive();
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.len("q"), 0);
    assert!(c.pop("q COUNT 5").is_empty());
}

#[test]
fn what_a_blocked_client_was_served_stays_in_flight() {
    let mut server = Server::with_aof(&[]);
    let (mut c, mut waiting) = (server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.push("q x ID m DELAY 30");
    let message = waiting.served();
    let digest = c.digest("q");
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.state("q", "m"), "inflight");
    assert_eq!(c.ack(format!("q {}", message.receipt())), 1);
}

#[test]
fn transactions_and_scripts_replay_as_they_ran() {
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    c.multi(&["DQ.PUSH q x ID a", "DQ.PUSH q x ID b", "DQ.POP q", "DQ.NACK q a DELAY 600000", "SET other 1"]);
    let script = "redis.call('DQ.PUSH', KEYS[1], 'x', 'DELAY', 600000) \
                  local got = redis.call('DQ.POP', KEYS[1], 'COUNT', 5) \
                  redis.call('DQ.ACK', KEYS[1], got[1][1]) return redis.call('DQ.PUSH', KEYS[1], 'y')";
    assert!(sequence_of(&c.cmd(&["EVAL", script, "1", "q"])).is_some());
    let digest = c.digest("q");
    server.restart_from_aof();
    assert_eq!(server.client().digest("q"), digest);
}

fn sequence_of(reply: &crate::support::Reply) -> Option<(u64, u64)> {
    crate::support::sequence(&reply.text())
}

#[test]
fn a_hundred_thousand_messages_of_many_sizes_survive() {
    let mut server = Server::with_aof(&["--appendfsync", "no", "--aof-use-rdb-preamble", "no"]);
    let mut c = server.client();
    let payloads = ["", "x".repeat(100).leak(), "y".repeat(3000).leak()];
    c.pipeline((0..100_000).map(|n| {
        let (payload, priority) = (payloads[usize::from(n % 50 == 0) + usize::from(n % 2 == 0)], n % 5);
        let payload = if payload.is_empty() { "\"\"" } else { payload };
        format!("DQ.PUSH q {payload} DELAY {} PRIORITY {priority}", n % 3 * 600_000)
    }));
    let popped = c.pop_ids("q COUNT 20000 LEASE 600000");
    assert_eq!(popped.len(), 20_000);
    for ids in popped.chunks(1000).step_by(2) {
        assert_eq!(c.ack(format!("q {}", ids.join(" "))), 1000);
    }
    let (digest, len) = (c.digest("q"), c.len("q"));
    assert_eq!(len, 90_000);
    server.restart_from_aof();
    assert_eq!(server.client().digest("q"), digest, "after a replay");
    rewrite_aof(&mut server.client());
    server.restart_from_aof();
    assert_eq!(server.client().digest("q"), digest, "after a rewrite");
    server.client().ask("DEBUG RELOAD").ok();
    let mut c = server.client();
    assert_eq!((c.digest("q"), c.len("q")), (digest, len), "after a reload");
}
