//! Messages that `DEADFORWARD` has moved to another queue, sent back to the one in which they died.

use crate::dqctl::{command, dqctl, field, json, ok, run, without_server};
use crate::support::{eventually, Server};
use serde_json::json;
use std::process::Stdio;

/// A queue `orders` whose dead messages are moved to `letters`. Those of the given ids have died of their ids.
fn with_letters(ids: &[&str]) -> Server {
    let server = Server::start();
    ok(&server, &["create", "orders", "--deadforward", "QUEUE letters"]);
    for id in ids {
        die(&server, "orders", id);
    }
    eventually("all are moved", || server.text(&["DQ.LEN", "letters"]) == ids.len().to_string());
    server
}

fn die(server: &Server, queue: &str, id: &str) {
    let of_queue = ["push", queue, &format!("payload of {id}"), "--id", id, "--priority", "7"];
    ok(server, &[&of_queue[..], &["--header", "tenant=acme", "--header", "dq-trace=1f"]].concat());
    ok(server, &["bury", queue, id, "--error", id]);
}

#[test]
fn selected_letters_go_back_as_they_were_pushed() {
    let server = with_letters(&["timeout-1", "timeout-2", "refused"]);
    ok(&server, &["push", "letters", "x", "--id", "no-letter"]);
    let some = ["redrive", "letters", "--letters", "--where", "error~timeout"];
    assert_eq!(ok(&server, &[&some[..], &["--dry-run"]].concat()), "2\n");
    assert_eq!(json(&server, &[&some[..], &["--in", "1h"]].concat()), [json!({ "redriven": 2 })]);
    let back = json(&server, &["get", "orders", "timeout-1"]).remove(0);
    assert_eq!(
        (&back["payload"], &back["state"], &back["attempt"], &back["priority"], &back["headers"]),
        (
            &json!("payload of timeout-1"),
            &json!("delayed"),
            &json!(0),
            &json!(7),
            &json!({ "tenant": "acme", "dq-trace": "1f" })
        )
    );
    assert_eq!(dqctl(&server, &["get", "letters", "timeout-1"]).code, 1);
    assert_eq!(ok(&server, &["redrive", "letters", "--letters"]), "1\n");
    assert_eq!(field(&server, "orders", "refused", "state"), "ready");
    assert_eq!(server.text(&["DQ.LEN", "letters"]), "1");
}

#[test]
fn letters_are_sent_back_to_the_queue_that_they_are_from() {
    let server = with_letters(&["a"]);
    ok(&server, &["create", "mails", "--deadforward", "QUEUE letters"]);
    die(&server, "mails", "b");
    // A generated id cannot be pushed.
    let generated = ok(&server, &["push", "mails", "x"]);
    ok(&server, &["bury", "mails", generated.trim()]);
    eventually("all are moved", || server.text(&["DQ.LEN", "letters"]) == "3");
    ok(&server, &["create", r"odd\xff", "--deadforward", "QUEUE letters"]);
    die(&server, r"odd\xff", "c");
    eventually("all are moved", || server.text(&["DQ.LEN", "letters"]) == "4");
    assert_eq!(ok(&server, &["redrive", "letters", "--letters", "--where", r"from=odd\xff"]), "1\n");
    assert_eq!(ok(&server, &["redrive", "letters", "--letters", "--where", "from=mails"]), "2\n");
    assert_eq!((server.text(&["DQ.LEN", "mails"]), server.text(&["DQ.LEN", "orders"])), ("2".into(), "0".into()));
    assert_eq!(field(&server, "letters", "a", "state"), "ready");
}

#[test]
fn letters_are_sent_back_by_their_ids() {
    let server = with_letters(&["a", "b"]);
    ok(&server, &["push", "letters", "x", "--id", "other"]);
    let ran = dqctl(&server, &["redrive", "letters", "--letters", "b", "other"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "1\n"));
    assert!(ran.err.contains("other") && ran.err.contains("not a letter from another queue"), "{ran:?}");
    assert_eq!(ok(&server, &["redrive", "letters", "--letters", "a", "other", "--dry-run"]), "1\n");
}

#[test]
fn a_letter_stays_while_a_consumer_has_it_or_its_id_is_in_use() {
    let server = with_letters(&["busy"]);
    server.ask(&["DQ.POP", "letters", "LEASE", "600000"]);
    die(&server, "orders", "known");
    die(&server, "orders", "free");
    eventually("all are moved", || server.text(&["DQ.LEN", "letters"]) == "3");
    ok(&server, &["push", "orders", "new", "--id", "known"]);
    let ran = dqctl(&server, &["redrive", "letters", "--letters"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "1\n"));
    assert!(ran.err.contains("1 message in flight") && ran.err.contains("1 message with an id that"), "{ran:?}");
    let states = ["busy", "known"].map(|id| field(&server, "letters", id, "state"));
    assert_eq!(states, ["inflight", "ready"]);
    assert_eq!(field(&server, "orders", "known", "payload"), "new");
}

#[test]
fn a_letter_that_is_refused_stays_and_it_is_said_how_many_went_before() {
    let server = with_letters(&["a", "b", "c"]);
    // Letters of another queue, of which some are read after the one that is refused.
    ok(&server, &["create", "bills", "--deadforward", "QUEUE letters"]);
    let ids: Vec<String> = (0..20).map(|number| format!("bill-{number}")).collect();
    ids.iter().for_each(|id| die(&server, "bills", id));
    eventually("all are moved", || server.text(&["DQ.LEN", "letters"]) == "23");
    ok(&server, &["alter", "orders", "--maxlen", "2"]);
    let ran = dqctl(&server, &["redrive", "letters", "--letters"]);
    assert!(ran.code != 0 && ran.err.starts_with("dqctl: 22 messages were redriven, then: "), "{ran:?}");
    assert!(ran.err.contains("was not sent back to orders") && ran.err.contains("dqctl alter orders"), "{ran:?}");
    assert_eq!((server.text(&["DQ.LEN", "letters"]), server.text(&["DQ.LEN", "orders"])), ("1".into(), "2".into()));
}

#[test]
fn a_letter_goes_only_to_a_queue_that_moves_its_dead_here() {
    let server = with_letters(&["a"]);
    ok(&server, &["create", "payments"]);
    // Whoever may push can write the headers too.
    for (id, queue) in [("forged", "payments"), ("gone", "deleted")] {
        let headers = [format!("dq-queue={queue}"), "dq-reason=retries".to_owned()];
        ok(&server, &["push", "letters", "x", "--id", id, "--header", &headers[0], "--header", &headers[1]]);
    }
    let ran = dqctl(&server, &["redrive", "letters", "--letters"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "1\n"), "{ran:?}");
    assert!(ran.err.contains("left here: 2 messages from a queue that does not exist, or does not move"), "{ran:?}");
    assert_eq!((server.text(&["DQ.LEN", "payments"]), server.text(&["EXISTS", "deleted"])), ("0".into(), "0".into()));
    assert_eq!(field(&server, "orders", "a", "state"), "ready");
}

#[test]
fn a_user_who_may_not_remove_a_letter_does_not_push_it_either() {
    let server = with_letters(&["a"]);
    let rights = "on >secret ~* resetchannels -@all +dq.info +dq.scan +dq.get +dq.push +eval +ping";
    server.ask(&[&["ACL", "SETUSER", "some"][..], &rights.split(' ').collect::<Vec<_>>()].concat());
    let url = format!("redis://some:secret@127.0.0.1:{}", server.port());
    let ran = run(without_server(&["-u", &url, "redrive", "letters", "--letters"]));
    assert!(ran.code == 3 && ran.err.to_lowercase().contains("dq.cancel"), "{ran:?}");
    assert_eq!((server.text(&["DQ.LEN", "letters"]), server.text(&["DQ.LEN", "orders"])), ("1".into(), "0".into()));
}

#[test]
fn two_who_send_letters_back_at_once_send_each_once() {
    let server = Server::start();
    ok(&server, &["create", "orders", "--deadforward", "QUEUE letters"]);
    // Their ids are generated, so that a second push would not be refused.
    let lua = "for i = 1, 600 do redis.call('DQ.BURY', KEYS[1], redis.call('DQ.PUSH', KEYS[1], 'x')) end";
    server.ask(&["EVAL", lua, "1", "orders"]);
    eventually("all are moved", || server.text(&["DQ.LEN", "letters"]) == "600");
    let both = [(); 2].map(|()| command(&server, &["redrive", "letters", "--letters"]));
    let both = both.map(|mut command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let sent = both.map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap());
    let sent: u64 = sent.iter().map(|number| number.trim().parse::<u64>().unwrap()).sum();
    assert_eq!(
        (sent, server.text(&["DQ.LEN", "orders"]), server.text(&["DQ.LEN", "letters"])),
        (600, "600".into(), "0".into())
    );
}
