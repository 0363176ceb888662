//! A panic in the module: the server keeps running, its clients get an answer, and the line in the log fails the test.

use crate::support::{eventually, Client, Server};

/// Runs `act` on a server whose module panics at a place, and expects the alarm. The server works afterwards.
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
        assert!(c.ask("DQ.INFO q").error().starts_with("INTERNAL a bug in the module"));
    });
}

#[test]
fn a_panic_in_the_timer_raises_the_alarm() {
    expect_alarm("timer", |_, c| {
        c.push("q x ID m DELAY 20");
        eventually("the message is still due", || c.pop_ids("q") == ["m"]);
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

/// Runs `act` on a server with a queue `q` that a panic has left half changed: the message `m` is cancelled, but
/// neither the AOF nor a replica was told.
fn with_half_changed(args: &[&str], act: impl FnOnce(&mut Server, &mut Client)) {
    let Some(mut server) = Server::with_panic_in("a change", args) else {
        return eprintln!("the module is no debug build: not tested");
    };
    let mut c = server.client();
    c.push_many("q 2 x y IDS m other");
    c.push("well x");
    assert!(c.ask("DQ.CANCEL q m").error().starts_with("INTERNAL a bug in the module"));
    act(&mut server, &mut c);
    c = server.client();
    assert_eq!((c.len("well"), c.info("dq", "dq_unsound_queues").as_str()), (1, "0"), "all is well again");
}

#[test]
fn a_half_changed_queue_is_refused_until_it_is_deleted() {
    with_half_changed(&[], |server, c| {
        for line in ["DQ.PUSH q x", "DQ.POP q", "DQ.LEN q", "DQ.INFO q", "DQ.CREATE q", "DQ.SCHEDULE q s x EVERY 5"] {
            assert!(c.ask(line).error().contains("half changed"), "{line}");
        }
        assert!(c.ask("COPY q copy").is_error());
        c.ask("RENAME q r").ok();
        assert!(c.ask("DQ.LEN r").error().contains("half changed"), "under any name");
        assert_eq!(c.info("dq", "dq_unsound_queues"), "1");
        assert!(server.log().contains("queue q may be half changed"));
        assert_eq!(c.ask("DEL r").int(), 1);
        c.push("r x ID new");
        assert_eq!(c.pop_one("r").id, "new");
    });
}

#[test]
fn a_half_changed_queue_is_saved_as_such_and_rebuilt_when_loaded() {
    with_half_changed(&[], |server, c| {
        c.ask("DEBUG RELOAD").ok();
        assert!(server.log().contains("was rebuilt from its messages"));
        assert_eq!(c.pop_one("q").id, "other");
    });
}

#[test]
fn an_aof_brings_back_the_queue_before_the_panic() {
    with_half_changed(&["--appendonly", "yes", "--appendfsync", "always"], |server, _| {
        server.restart_from_aof();
        let mut c = server.client();
        assert_eq!(c.pop_ids("q COUNT 2"), ["m", "other"]);
    });
}

/// What is saved of a queue that could not be rebuilt: the head of a value, a mark, the end, and the checksum.
fn nothing_rebuilt(dump: &[u8]) -> Vec<u8> {
    let (head, foot) = (&dump[..10], &dump[dump.len() - 10..]);
    [head, b"\x05\x07unsound", b"\x05\x00", b"\x00", foot].concat()
}

#[test]
fn a_queue_of_which_nothing_was_rebuilt_stays_refused() {
    // The log says each time that there was a bug.
    let Some(server) = Server::with_panic_in("a change", &[]) else {
        return eprintln!("the module is no debug build: not tested");
    };
    let mut c = server.client();
    c.ask("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1").ok();
    c.push("q x");
    let dump = nothing_rebuilt(c.ask("DUMP q").bytes());
    c.cmd(&[b"RESTORE", b"lost".as_slice(), b"0", &dump]).ok();
    for round in 0..3 {
        for line in ["DQ.LEN lost", "DQ.PUSH lost x", "DQ.CREATE lost"] {
            assert!(c.ask(line).error().contains("half changed"), "{line} after {round} loads");
        }
        c.ask("DEBUG RELOAD").ok();
    }
    assert_eq!(c.info("dq", "dq_unsound_queues"), "1");
    assert_eq!((c.ask("DEL lost").int(), c.len("q")), (1, 1));
}
