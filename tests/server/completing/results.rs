//! `DQ.COMPLETE`: an ack with a result.

use crate::support::{in_both_protocols, Client, Reply, Server};

fn complete(c: &mut Client, line: &str) -> i64 {
    c.ask(format!("DQ.COMPLETE {line}")).int()
}

#[test]
fn a_completed_message_is_kept_with_its_result() {
    in_both_protocols(|c| {
        c.push("q work ID m DELAY 0");
        let created = c.get("q", "m").int("created");
        let due = c.get("q", "m").int("due");
        let receipt = c.pop_one("q").receipt().to_owned();
        let before = c.now();
        assert_eq!(complete(c, &format!("q {receipt} RESULT 42 RETAIN 600000")), 1);
        let message = c.get("q", "m");
        assert_eq!(
            (message.text("id"), message.text("state"), message.text("result")),
            ("m".into(), "done".into(), "42".into())
        );
        assert_eq!((message.int("created"), message.int("due"), message.int("attempt")), (created, due, 1));
        assert!(message.int("done") >= before && message.int("until") == message.int("done") + 600_000);
        assert_eq!(message.0.len(), 8, "{message:?}");
        assert_eq!(c.about("q").int("payload-bytes"), 0, "its payload is dropped");
    });
}

#[test]
fn a_message_without_a_time_to_be_kept_is_gone() {
    in_both_protocols(|c| {
        for line in ["q m", "q m RESULT r", "q m RESULT r RETAIN 0"] {
            c.push("q x ID m");
            c.pop_one("q");
            assert_eq!(complete(c, line), 1);
            assert_eq!(c.state("q", "m"), "absent", "{line}");
        }
        c.alter("q RETAIN 600000");
        c.push("q x ID m");
        c.pop_one("q");
        assert_eq!(complete(c, "q m RETAIN 0"), 1);
        assert_eq!(c.state("q", "m"), "absent");
    });
}

#[test]
fn completing_answers_as_an_ack_of_one_message() {
    in_both_protocols(|c| {
        assert_eq!(complete(c, "absent m RETAIN 5"), 0);
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
        c.push("q x ID m");
        assert_eq!(complete(c, "q m RETAIN 600000"), 0, "it was not delivered");
        let stale = c.pop_one("q LEASE 1").receipt().to_owned();
        c.until_state("q", "m", "ready");
        let receipt = c.pop_one("q LEASE 1").receipt().to_owned();
        assert_eq!(complete(c, &format!("q {stale} RETAIN 600000")), 0);
        c.until_state("q", "m", "ready");
        assert_eq!(complete(c, &format!("q {receipt} RETAIN 600000")), 1, "although its lease has ended");
        assert_eq!(complete(c, "q m RETAIN 600000"), 0, "it is done already");
        assert_eq!(complete(c, "q #7"), 0);
        let info = c.about("q");
        assert_eq!((info.int("acked"), info.int("done")), (1, 1));
        let runtime = c.ask("DQ.STATS q").fields();
        assert_eq!(runtime.get("runtime").items().last().unwrap().items()[1], Reply::Int(1));
    });
}

#[test]
fn the_result_has_any_bytes_and_at_most_64_kib() {
    let server = Server::start();
    let mut c = server.client();
    for (id, result) in [("empty", Vec::new()), ("bytes", (0..=255).collect()), ("long", vec![b'r'; 65_536])] {
        c.push(format!("q x ID {id}"));
        c.pop_one("q");
        let words: [&[u8]; 7] = [b"DQ.COMPLETE", b"q", id.as_bytes(), b"RESULT", &result, b"RETAIN", b"600000"];
        assert_eq!(c.cmd(&words), Reply::Int(1));
        assert_eq!(c.get("q", id).get("result").bytes(), result);
    }
    c.push("q x ID m");
    c.pop_one("q");
    let digest = c.digest("q");
    let words: [&[u8]; 5] = [b"DQ.COMPLETE", b"q", b"m", b"RESULT", &[b'r'; 65_537]];
    assert_eq!(c.cmd(&words), Reply::Error("ERR RESULT must be at most 65536 bytes".into()));
    assert_eq!((c.digest("q"), c.state("q", "m")), (digest, "inflight".to_owned()));
}

#[test]
fn bad_calls_are_refused_and_change_nothing() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.pop_one("q");
        c.ask("SET s x").ok();
        let digest = c.digest("q");
        for (line, error) in [
            ("DQ.COMPLETE q", "rong number of arg"),
            ("DQ.COMPLETE q m RESULT", "ERR syntax error, RESULT needs a value"),
            ("DQ.COMPLETE q m RETAIN", "ERR syntax error, RETAIN needs a value"),
            ("DQ.COMPLETE q m RETAIN -1", "ERR RETAIN must be a whole number of milliseconds from 0 to 4398046511103"),
            (
                "DQ.COMPLETE q m RETAIN 4398046511104",
                "ERR RETAIN must be a whole number of milliseconds from 0 to 4398046511103",
            ),
            ("DQ.COMPLETE q m RETAIN 1 RETAIN 1", "ERR syntax error, RETAIN is given twice"),
            ("DQ.COMPLETE q m n", "ERR syntax error, unknown option 'n'"),
            ("DQ.COMPLETE s m", "WRONGTYPE"),
            ("DQ.AWAIT q", "rong number of arg"),
            ("DQ.AWAIT q m BLOCK", "ERR syntax error, BLOCK needs a value"),
            ("DQ.AWAIT q m BLOCK x", "ERR BLOCK must be a whole number of milliseconds from 0 to 4398046511103"),
            ("DQ.AWAIT q m n", "ERR syntax error, unknown option 'n'"),
            ("DQ.AWAIT s m", "WRONGTYPE"),
            ("DQ.PUSH q x RETAIN -1", "ERR RETAIN must be a whole number of milliseconds from 0 to 4398046511103"),
            ("DQ.SCHEDULE q s x EVERY 5 RETAIN 5", "ERR syntax error, unknown option 'RETAIN'"),
            ("DQ.ALTER q DONELEN -2", "ERR DONELEN must be a whole number from -1 to 9007199254740991"),
        ] {
            for reply in [c.ask(line), c.script(line)] {
                let Reply::Error(text) = reply else { panic!("{line}: {reply:?}") };
                assert!(text.contains(error.trim_start_matches("ERR ")), "{line}: {text}");
            }
        }
        assert_eq!(c.digest("q"), digest);
        let replies = c.multi(&["DQ.COMPLETE s m", "DQ.COMPLETE q m RESULT r RETAIN 600000"]);
        assert!(matches!(&replies[0], Reply::Error(text) if text.starts_with("WRONGTYPE")));
        assert_eq!(replies[1], Reply::Int(1));
    });
}

#[test]
fn a_result_is_accepted_at_maxmemory() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    c.pop_one("q");
    c.configure("maxmemory", 1);
    assert!(matches!(c.ask("DQ.PUSH q x"), Reply::Error(_)));
    assert_eq!(complete(&mut c, "q m RESULT r RETAIN 600000"), 1);
    assert_eq!(c.get("q", "m").text("result"), "r");
}

#[test]
fn a_run_of_a_schedule_leaves_nothing_done() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RETAIN 600000");
    let at = c.now();
    c.ask(format!("DQ.SCHEDULE q s x EVERY 600000 AT {at}"));
    c.pop_one("q");
    assert_eq!(complete(&mut c, "q s RESULT r RETAIN 600000"), 1);
    assert_eq!((c.state("q", "s"), c.len("q done")), ("delayed".to_owned(), 0));
    assert_eq!((c.get("q", "s").int("runs"), c.about("q").int("acked")), (1, 1));
}

#[test]
fn completing_announces_an_ack_and_a_completion() {
    let server = Server::start();
    let (mut c, mut events) = (server.client(), server.client());
    c.configure("notify-keyspace-events", "Kd");
    events.ask("PSUBSCRIBE __keyspace@0__:*");
    c.push("q x ID m");
    c.pop_one("q");
    complete(&mut c, "q m RETAIN 600000");
    complete(&mut c, "q m");
    c.ask("DQ.AWAIT q m");
    c.pause("q");
    let came: Vec<String> = (0..5).map(|_| events.receive().items()[3].text()).collect();
    assert_eq!(came, ["dq.push", "dq.pop", "dq.ack", "dq.complete", "dq.pause"]);
}
