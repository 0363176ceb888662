//! `ATTEMPT`, `ERROR`, `CHECKPOINT` and `DEAD`: a push says what a message went through before.

use crate::support::{eventually, in_both_protocols, Reply, Server};

#[test]
fn attempts_are_counted_on_from_those_of_the_push() {
    in_both_protocols(|c| {
        c.push("q x ID m ATTEMPT 2 RETRIES 3");
        assert_eq!((c.state("q", "m"), c.get("q", "m").int("attempt")), ("ready".to_owned(), 2));
        assert_eq!(c.pop_one("q").attempt, 3);
        assert_eq!(c.nack("q m DELAY 0"), "ready");
        assert_eq!(c.pop_one("q").attempt, 4);
        assert_eq!(c.nack("q m DELAY 0"), "dead");
        assert_eq!(c.get("q", "m").text("reason"), "retries");
    });
}

#[test]
fn a_message_whose_retries_are_spent_is_delivered_once() {
    let server = Server::start();
    let mut c = server.client();
    c.push_many("q 1 x IDS m ATTEMPT 2147483647 RETRIES 0");
    assert_eq!(c.pop_one("q").attempt, 1 << 31);
    assert_eq!(c.nack("q m DELAY 0"), "dead");
}

#[test]
fn an_error_and_a_checkpoint_are_those_of_the_push() {
    in_both_protocols(|c| {
        let before = c.now();
        c.push("q x ID m ATTEMPT 4 ERROR timeout CHECKPOINT half");
        let message = c.get("q", "m");
        assert_eq!((message.text("error"), message.text("checkpoint")), ("timeout".to_owned(), "half".to_owned()));
        let [error] = message.get("errors").items() else { panic!("{message:?}") };
        let [attempt, at, text] = error.items() else { panic!("{error:?}") };
        assert_eq!((attempt.int(), text.text()), (4, "timeout".to_owned()));
        assert!((before..=c.now()).contains(&at.int()));
        c.create("bare ERRORS 0");
        c.push("bare x ID m ERROR timeout CHECKPOINT \"\"");
        let message = c.get("bare", "m");
        assert!(message.text("error") == "timeout" && !message.has("errors") && !message.has("checkpoint"));
    });
}

#[test]
fn a_message_is_dead_from_its_push_on() {
    in_both_protocols(|c| {
        let before = c.now();
        c.push("q x ID m DEAD");
        c.push("q x ID old REASON expired DEAD DELAY 600000 ATTEMPT 3");
        c.push_many("q 2 x y DEAD REASON retries");
        let reasons = |c: &mut crate::support::Client, id: &str| c.get("q", id).text("reason");
        assert_eq!((reasons(c, "m"), reasons(c, "old")), ("rejected".to_owned(), "expired".to_owned()));
        assert!((before..=c.now()).contains(&c.get("q", "m").int("died")));
        assert_eq!(c.counts("q"), [0, 0, 0, 4]);
        let about = c.about("q");
        assert_eq!(["pushed", "died", "expired"].map(|total| about.int(total)), [4, 4, 1]);
        assert_eq!(c.ask("DQ.PUSH q x ID m").error(), c.ask("DQ.PUSH q x ID old").error().replace("old", "m"));
        assert_eq!(c.redrive("q IDS 1 old"), 1);
        let message = c.pop_one("q");
        assert_eq!((message.id.as_str(), message.attempt), ("old", 1));
    });
}

#[test]
fn a_dead_message_needs_no_room_but_an_open_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXLEN 1 MAXPAYLOAD 3");
    c.push("q x ID live");
    assert!(c.ask("DQ.PUSH q x").is_error());
    c.push("q x ID dead DEAD");
    c.push_many("q 2 x y DEAD");
    assert_eq!(c.counts("q"), [0, 1, 0, 3]);
    assert!(c.ask("DQ.PUSH q long DEAD").error().starts_with("TOOLARGE"));
    assert!(c.ask("DQ.PUSH q x ID live DEAD").is_null());
    c.ask("DQ.PAUSE q IN").ok();
    assert!(c.ask("DQ.PUSH q x DEAD").error().starts_with("QUEUECLOSED"));
}

#[test]
fn what_limits_and_moves_the_dead_applies_at_the_push() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q DEADLEN 1");
    c.push_many("q 3 x y z IDS a b c DEAD");
    assert_eq!(c.peek_ids("q dead COUNT 9"), ["c"]);
    c.create("moved DEADFORWARD QUEUE target");
    c.push("moved x ID m ATTEMPT 3 ERROR oh DEAD REASON retries");
    eventually("it is moved", || c.state("target", "m") == "ready");
    let headers = c.get("target", "m").get("headers").fields();
    assert_eq!((headers.text("dq-attempts"), headers.text("dq-error")), ("3".to_owned(), "oh".to_owned()));
}

#[test]
fn a_dead_member_ends_in_its_batch_at_once() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m BATCH b");
    c.push_many("q 2 x y BATCH b DEAD");
    c.ask("DQ.BATCH q b THEN next ID next");
    assert_eq!(c.ack("q m"), 0, "it was not delivered");
    assert_eq!(c.cancel("q m"), ["ready"]);
    let headers = c.get("q", "next").get("headers").fields();
    let counts = ["total", "dead", "cancelled"].map(|count| headers.text(&format!("dq-batch-{count}")));
    assert_eq!(counts, ["3", "2", "1"]);
    c.push_many("q 2 x y BATCH other DEAD");
    let other = c.ask("DQ.BATCHINFO q other").fields();
    assert_eq!(["total", "left", "dead"].map(|count| other.int(count)), [2, 0, 2]);
}

#[test]
fn who_awaits_a_message_learns_that_a_dead_one_replaces_it() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("q x ID m");
    c.pop_one("q");
    waiting.send("DQ.AWAIT q m BLOCK 0");
    c.until_blocked(1);
    c.push("q y ID m REPLACE ERROR oh DEAD");
    assert_eq!(waiting.receive().fields(), c.get("q", "m"));
    assert_eq!(c.ack("q m"), 0);
}

#[test]
fn replicas_and_files_have_the_past_too() {
    let mut server = Server::with_aof(&[]);
    let replica = Server::replica_of(&server, &[]);
    let mut c = server.client();
    for line in [
        "DQ.PUSH q x ID a ATTEMPT 2 ERROR oh CHECKPOINT half GROUP g",
        "DQ.PUSH q x ID b ATTEMPT 1 DEAD REASON expired BATCH b",
        "DQ.MPUSH q 2 x y IDS c d DEAD ERROR oh BATCH b REPLACE",
    ] {
        assert!(!c.ask(line).is_error(), "{line}");
    }
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    let (digest, info) = (c.digest("q"), c.about("q").int("died"));
    assert_eq!((replica.client().digest("q"), replica.client().about("q").int("died")), (digest.clone(), info));
    c.ask("DEBUG RELOAD").ok();
    assert_eq!(c.digest("q"), digest);
    server.restart_from_aof();
    assert_eq!(server.client().digest("q"), digest);
}
