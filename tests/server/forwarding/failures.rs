//! A target that refuses a message: nothing is lost, the queue says why, and tries again each second.

use super::{elements, error_of, ids, until_forwarded};
use crate::support::{eventually, Client, NoSave, Server};

/// A client of a server whose paused queue `q` has two messages.
fn with_two(server: &Server) -> Client {
    let mut c = server.client();
    c.push_many("q 2 x y IDS a b");
    c.pause("q");
    c
}

/// Makes forwarding fail by `refuse` and work again by `accept`. All messages arrive, in order and once.
fn kept_while(server: &Server, refuse: &[&str], error: &str, accept: impl FnOnce(&mut Client)) {
    let mut c = with_two(server);
    c.alter("q FORWARD STREAM s");
    refuse.iter().for_each(|line| assert!(!c.ask(line).is_error(), "{line}"));
    c.ask("DQ.RESUME q");
    assert!(error_of(&mut c, "q").starts_with(error), "{}", error_of(&mut c, "q"));
    let about = c.about("q");
    assert!((1..=c.now()).contains(&about.int("forward-failing-since")));
    assert_eq!((about.int("forwarded"), c.counts("q")[1]), (0, 2), "they stay ready");
    accept(&mut c);
    until_forwarded(&mut c, "q", 2);
    let about = c.about("q");
    assert!(about.get("forward-error").is_null() && about.get("forward-failing-since").is_null());
    assert_eq!(ids(&mut c, "s"), ["a", "b"]);
}

#[test]
fn messages_wait_while_the_target_has_another_type() {
    let server = Server::start();
    kept_while(&server, &["SET s text"], "WRONGTYPE", |c| {
        c.ask("DEL s");
    });
    let lines = server.log();
    let of = |what: &str| lines.lines().filter(|line| line.contains(what)).count();
    assert_eq!(
        of("queue q cannot forward to stream s and tries again each second: WRONGTYPE"),
        1,
        "one for the change"
    );
    assert_eq!(of("queue q forwards to stream s again"), 1);
}

#[test]
fn messages_wait_while_memory_is_low() {
    let server = Server::start();
    // A resume is accepted even if memory is low.
    kept_while(&server, &["CONFIG SET maxmemory 1"], "OOM", |c| c.configure("maxmemory", 0));
}

#[test]
fn messages_wait_while_too_few_replicas_are_there() {
    let server = Server::start();
    let mut c = with_two(&server);
    c.alter("q FORWARD STREAM s");
    c.ask("DQ.PAUSE q FOR 40").ok();
    c.resume("q");
    until_forwarded(&mut c, "q", 2);
    for (forward, list) in [("LIST l", true), ("CHANNEL c", false)] {
        c.alter(format!("q FORWARD {forward}"));
        let before = c.about("q").int("forwarded");
        c.at_once(["DQ.PUSH q later DELAY 50", "CONFIG SET min-replicas-to-write 1"]);
        assert!(error_of(&mut c, "q").starts_with("NOREPLICAS"));
        assert_eq!(c.about("q").int("forwarded"), before);
        c.configure("min-replicas-to-write", 0);
        until_forwarded(&mut c, "q", before + 1);
        assert_eq!(elements(&mut c, "l").len(), 1, "{list}");
    }
}

#[test]
fn messages_wait_while_the_server_cannot_save() {
    let server = Server::start();
    let (no_save, mut c) = (NoSave::on(&server), server.client());
    c.create("q FORWARD STREAM s");
    c.at_once(["DQ.PUSH q x ID m DELAY 50", "CONFIG SET stop-writes-on-bgsave-error yes"]);
    assert!(error_of(&mut c, "q").starts_with("MISCONF"));
    no_save.end(&mut c);
    until_forwarded(&mut c, "q", 1);
    assert_eq!(ids(&mut c, "s"), ["m"]);
}

#[test]
fn messages_wait_while_writes_are_paused() {
    let server = Server::with_aof(&[]);
    let mut c = server.client();
    c.create("q FORWARD LIST l");
    c.at_once(["DQ.PUSH q x DELAY 30", "CLIENT PAUSE 600000 WRITE"]);
    eventually("the message is due", || c.len("q ready") == 1);
    assert_eq!(c.ask("LLEN l").int(), 0);
    assert!(c.about("q").get("forward-error").is_null());
    c.ask("CLIENT UNPAUSE").ok();
    until_forwarded(&mut c, "q", 1);
    assert_eq!(elements(&mut c, "l"), ["x"]);
}

#[test]
fn nothing_is_pushed_while_the_set_cannot_name_the_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.ask("SET queues text").ok();
    c.create("q FORWARD LIST l REGISTER queues mail");
    c.push("q x");
    assert!(error_of(&mut c, "q").starts_with("WRONGTYPE"));
    assert_eq!(c.ask("EXISTS l").int(), 0);
    c.ask("DEL queues");
    until_forwarded(&mut c, "q", 1);
    assert_eq!(elements(&mut c, "l"), ["x"]);
}

#[test]
fn a_failing_queue_is_tried_once_a_second_whatever_is_pushed() {
    let server = Server::start();
    let mut c = server.client();
    c.ask("SET s text").ok();
    c.create("q FORWARD STREAM s");
    c.push("q x");
    error_of(&mut c, "q");
    let since = c.about("q").int("forward-failing-since");
    let failed = |c: &mut Client| {
        let calls = c.info("commandstats", "cmdstat_xadd");
        let field =
            calls.split(',').find_map(|field| field.strip_prefix("calls=").map(|calls| calls.parse::<i64>().unwrap()));
        field.unwrap_or(0)
    };
    let before = (failed(&mut c), c.now());
    c.pipeline((0..300).map(|_| "DQ.PUSH q x"));
    let (after, passed) = (failed(&mut c), c.now() - before.1);
    assert!(after - before.0 <= passed / 1_000 + 2, "{after} in {passed} ms");
    eventually("it is tried again", || failed(&mut c) > after);
    assert_eq!(c.about("q").int("forward-failing-since"), since);
    assert_eq!(c.about("q").int("ready"), 301);
    c.ask("DEL s");
    until_forwarded(&mut c, "q", 301);
}

#[test]
fn another_target_forgets_the_error_and_is_tried_at_once() {
    let server = Server::start();
    let mut c = server.client();
    c.ask("SET s text").ok();
    c.create("q FORWARD STREAM s");
    c.push("q x ID m");
    error_of(&mut c, "q");
    c.alter("q FORWARD STREAM other");
    until_forwarded(&mut c, "q", 1);
    assert_eq!(ids(&mut c, "other"), ["m"]);
    assert!(c.about("q").get("forward-error").is_null());
}

#[test]
fn a_stream_of_whose_batch_a_part_is_refused_gets_the_rest_later() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q FORWARD STREAM s");
    c.pause("q");
    c.push_many("q 3 x y z IDS a b c");
    // The stream's last possible id: one more entry can be added, and no other.
    c.ask("XADD s 18446744073709551615-18446744073709551614 id before").bytes();
    c.resume("q");
    let error = error_of(&mut c, "q");
    assert!(error.contains("exhausted"), "{error}");
    assert_eq!(c.about("q").int("forwarded"), 1);
    assert_eq!(ids(&mut c, "s"), ["before", "a"]);
    assert_eq!(c.peek_ids("q ready COUNT 9"), ["b", "c"]);
    c.ask("DEL s");
    until_forwarded(&mut c, "q", 3);
    assert_eq!(ids(&mut c, "s"), ["b", "c"]);
}
