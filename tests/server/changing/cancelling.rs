//! DQ.CANCEL: removes a message in whatever state it is.

use crate::support::{effects_of, in_both_protocols, Client, Reply, Server};

#[test]
fn the_answer_is_the_state_in_which_each_was() {
    in_both_protocols(|c| {
        c.bury("q", &["dead"]);
        c.push("q x ID flying");
        c.pop_one("q LEASE 600000");
        c.push("q x ID delayed DELAY 600000");
        c.push("q x ID ready");
        let reply = c.ask("DQ.CANCEL q ready nobody dead flying delayed");
        let text = |state: &str| Reply::bulk(state);
        let expected = vec![text("ready"), c.null(), text("dead"), text("inflight"), text("delayed")];
        assert_eq!(reply, Reply::Array(expected));
        assert_eq!(c.counts("q"), [0; 4]);
        for id in ["ready", "dead", "flying", "delayed"] {
            assert_eq!(c.state("q", id), "absent");
        }
    });
}

#[test]
fn what_was_cancelled_is_counted_and_its_payload_is_freed() {
    let server = Server::start();
    let mut c = server.client();
    c.push_many("q 3 12345 123 1 IDS a b c");
    c.cancel("q a c nobody");
    let about = c.about("q");
    assert_eq!((about.int("cancelled"), about.int("payload-bytes"), about.int("ready")), (2, 3, 1));
    assert_eq!((about.int("died"), about.int("acked")), (0, 0));
}

#[test]
fn an_id_given_twice_is_cancelled_once() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let reply = c.ask("DQ.CANCEL q m m");
        assert_eq!(reply, Reply::Array(vec![Reply::bulk("ready"), c.null()]));
        assert_eq!(c.about("q").int("cancelled"), 1);
    });
}

#[test]
fn a_cancelled_delivery_never_returns_and_its_receipt_is_stale() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
        // In one transaction, and long, so that the lease cannot end in between on a slow machine.
        let answers = c.multi(&["DQ.EXTEND q m LEASE 2000", "DQ.CANCEL q m"]);
        let deadline = answers[0].int();
        assert_eq!(answers[1].items()[0].text(), "inflight");
        assert_eq!(c.ack(format!("q {receipt} m")), 0);
        assert!(c.ask(format!("DQ.NACK q {receipt}")).is_null());
        assert!(c.ask(format!("DQ.EXTEND q {receipt}")).is_null());
        c.until_after(deadline);
        assert_eq!((c.state("q", "m"), c.counts("q")), ("absent".to_owned(), [0; 4]));
        assert!(c.pop("q").is_empty());
        assert_eq!(c.about("q").int("lease-expired"), 0, "its lease ended by removal");
    });
}

#[test]
fn a_cancelled_message_is_not_delivered_at_its_due_time() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    // In one transaction, and late, so that it is not delivered in between on a slow machine.
    let answers = c.multi(&["DQ.PUSH q x ID m DELAY 2000", "DQ.GET q m", "DQ.CANCEL q m"]);
    let due = answers[1].fields().int("due");
    assert_eq!(answers[2].items()[0].text(), "delayed");
    c.until_after(due);
    c.until_blocked(1);
    c.push("q x ID other");
    assert_eq!(waiting.served().id, "other");
}

#[test]
fn a_name_is_free_again_once_it_was_cancelled() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q old ID m DELAY 600000");
    c.cancel("q m");
    assert_eq!(c.push("q new ID m"), "m");
    let message = c.pop_one("q");
    assert_eq!((message.payload.as_slice(), message.attempt), (b"new".as_slice(), 1));
}

#[test]
fn a_generated_id_can_be_cancelled_but_a_receipt_cannot() {
    let server = Server::start();
    let mut c = server.client();
    let id = c.push("q x");
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    assert_eq!(c.cancel(format!("q 1-1 \"\" {}", "n".repeat(300))), ["absent"; 3]);
    assert!(c.ask(format!("DQ.CANCEL q {id} {receipt}")).error().starts_with("ERR a receipt is not an id"));
    assert_eq!(c.cancel(format!("q {id}")), ["inflight"]);
}

#[test]
fn a_late_ack_of_a_cancelled_message_finds_nothing() {
    let server = Server::start();
    let mut c = server.client();
    for (retries, state) in [(5, "ready"), (0, "dead")] {
        c.push(format!("q x ID m RETRIES {retries}"));
        let receipt = c.pop_one("q LEASE 1").receipt().to_owned();
        c.until_state("q", "m", state);
        assert_eq!(c.cancel("q m"), [state]);
        assert_eq!(c.ack(format!("q {receipt} m")), 0);
    }
}

#[test]
fn the_state_is_exact_before_the_timer_has_looked() {
    let server = Server::start();
    let mut c = server.client();
    c.push_many("q 2 x x IDS lapsed spent");
    c.push("q x ID spent RETRIES 0 REPLACE");
    // Nothing runs between commands that come in one piece: the timer cannot have moved them.
    let replies = c.pipeline([
        "DQ.POP q LEASE 5 COUNT 2",
        "DQ.PUSH q x ID due DELAY 5",
        "DQ.PUSH q x ID expired TTL 5",
        "DEBUG SLEEP 0.05",
        "DQ.CANCEL q lapsed spent due expired",
    ]);
    let states: Vec<String> = replies[4].items().iter().map(Reply::text).collect();
    assert_eq!(states, ["ready", "dead", "ready", "dead"]);
}

#[test]
fn room_that_a_cancelled_message_leaves_can_be_pushed_to() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXLEN 1");
    c.push("q x ID m DELAY 600000");
    assert!(c.ask("DQ.PUSH q y").error().starts_with("QUEUEFULL "));
    c.cancel("q m");
    c.push("q y");
}

#[test]
fn many_are_cancelled_at_once() {
    let server = Server::start();
    let mut c = server.client();
    let ids: Vec<String> = c
        .pipeline((0..5_000).map(|n| format!("DQ.PUSH q x PRIORITY {} DELAY {}", n % 5, n % 2 * 600_000)))
        .iter()
        .map(Reply::text)
        .collect();
    let every_other: Vec<&str> = ids.iter().step_by(2).map(String::as_str).collect();
    assert_eq!(c.cancel(format!("q {}", every_other.join(" "))), vec!["ready"; 2_500]);
    assert_eq!(c.counts("q"), [2_500, 0, 0, 0]);
}

#[test]
fn cancelling_is_one_effect_and_finding_nothing_is_none() {
    let effects = effects_of(|c| {
        c.push_many("q 3 x x x IDS a b c");
        c.cancel("q a b nobody c");
        c.cancel("q a nobody");
        c.cancel("absent a");
    });
    assert_eq!(effects.len(), 2, "of the push and of the first cancel");
}

#[test]
fn cancelling_nothing_touches_nothing() {
    let server = Server::start();
    let (mut c, mut watcher) = (server.client(), server.client());
    c.push("q x ID m");
    let (digest, changes) = (c.digest("q"), c.changes());
    watcher.ask("WATCH q").ok();
    assert_eq!(c.cancel("q nobody"), ["absent"]);
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!((c.digest("q"), c.changes()), (digest, changes));
}

#[test]
fn a_missing_queue_answers_a_null_for_each_id() {
    in_both_protocols(|c| {
        assert_eq!(c.ask("DQ.CANCEL absent a b"), Reply::Array(vec![c.null(), c.null()]));
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
    });
}

#[test]
fn it_works_without_memory_and_in_transactions_and_scripts() {
    in_both_protocols(|c: &mut Client| {
        c.push_many("q 3 x x x IDS a b c");
        c.configure("maxmemory", 1);
        assert_eq!(c.cancel("q a"), ["ready"]);
        c.configure("maxmemory", 0);
        let nothing = c.null();
        assert_eq!(c.multi(&["DQ.CANCEL q b a"])[0], Reply::Array(vec![Reply::bulk("ready"), nothing]));
        assert_eq!(c.script("DQ.CANCEL q b c"), Reply::Array(vec![c.null(), Reply::bulk("ready")]));
    });
}
