//! DQ.MPOP: one consumer waits for several queues and is served by the first that can deliver.

use crate::support::{effects_of, eventually, in_both_protocols, Client, Protocol, Reply, Server};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// The key and the ids of what `DQ.MPOP` of the line delivers.
#[track_caller]
fn taken(c: &mut Client, line: &str) -> Option<(String, Vec<String>)> {
    let (key, messages) = c.pop_any(line)?;
    Some((key, messages.into_iter().map(|message| message.id).collect()))
}

fn from(key: &str, ids: &[&str]) -> Option<(String, Vec<String>)> {
    Some((key.to_owned(), ids.iter().map(|id| (*id).to_owned()).collect()))
}

#[test]
fn the_answer_is_the_key_and_its_messages() {
    in_both_protocols(|c| {
        c.push("b hello ID m");
        let reply = c.ask("DQ.MPOP 2 a b");
        let [key, messages] = reply.items() else { panic!("two parts, not {reply:?}") };
        assert_eq!(key, &Reply::bulk("b"));
        let [message] = messages.items() else { panic!("one message, not {messages:?}") };
        assert_eq!(message.items()[..3], [Reply::bulk("m"), Reply::bulk("hello"), Reply::Int(1)]);
        let receipt = message.items()[3].text();
        assert_eq!(c.state("b", "m"), "inflight");
        assert_eq!(c.ack(format!("b {receipt}")), 1);
        assert_eq!(c.ask("DQ.MPOP 2 a b"), c.null_array());
    });
}

#[test]
fn the_first_of_the_keys_that_has_something_delivers() {
    let server = Server::start();
    let mut c = server.client();
    for (key, id) in [("a", "a1"), ("b", "b1"), ("c", "c1"), ("a", "a2")] {
        c.push(format!("{key} x ID {id} PRIORITY {}", if key == "c" { 9 } else { 0 }));
    }
    for (key, id) in [("a", "a1"), ("a", "a2"), ("b", "b1"), ("c", "c1")] {
        assert_eq!(taken(&mut c, "3 a b c"), from(key, &[id]), "the order of the keys counts, not of the messages");
    }
    assert_eq!(c.pop_any("3 a b c"), None);
}

#[test]
fn one_queue_alone_answers_in_one_pop() {
    let server = Server::start();
    let mut c = server.client();
    c.push_many("a 2 x x IDS a1 a2");
    c.push_many("b 5 x x x x x IDS b1 b2 b3 b4 b5");
    assert_eq!(taken(&mut c, "2 a b COUNT 4"), from("a", &["a1", "a2"]), "what there is, from one key");
    assert_eq!(taken(&mut c, "2 a b COUNT 4"), from("b", &["b1", "b2", "b3", "b4"]));
    assert_eq!(taken(&mut c, "2 a b COUNT 4"), from("b", &["b5"]));
}

#[test]
fn a_queue_that_cannot_deliver_is_passed_over() {
    in_both_protocols(|c| {
        c.push("paused x");
        c.pause("paused");
        c.create("full MAXINFLIGHT 1");
        c.push_many("full 2 x x");
        c.pop_one("full LEASE 600000");
        c.push("delayed x DELAY 600000");
        c.bury("dead", &["m"]);
        c.create("empty");
        c.push("last x ID m");
        let keys = "6 paused full delayed dead empty missing";
        assert_eq!(c.ask(format!("DQ.MPOP {keys}")), c.null_array());
        assert_eq!(c.ask(format!("DQ.MPOP {keys} NOACK")), c.null_array());
        assert_eq!(taken(c, "7 paused full delayed dead empty missing last"), from("last", &["m"]));
        assert_eq!(c.ask("EXISTS missing"), Reply::Int(0));
        assert_eq!([c.len("paused ready"), c.len("full ready"), c.len("delayed delayed")], [1, 1, 1]);
    });
}

#[test]
fn a_key_of_another_type_anywhere_pops_nothing() {
    in_both_protocols(|c| {
        c.ask("SET text x").ok();
        c.push("a x");
        let (digest, changes) = (c.digest("a"), c.changes());
        for keys in ["3 text a b", "3 a text b", "3 a b text", "1 text"] {
            for options in ["", " NOACK", " BLOCK 0", " COUNT 5"] {
                assert_eq!(c.ask(format!("DQ.MPOP {keys}{options}")).error(), WRONG_TYPE, "{keys}{options}");
            }
            assert_eq!(c.script(&format!("DQ.MPOP {keys}")).error().split(' ').next(), Some("WRONGTYPE"));
            assert_eq!(c.multi(&[&format!("DQ.MPOP {keys}")])[0].error(), WRONG_TYPE);
        }
        assert_eq!((c.digest("a"), c.changes()), (digest, changes));
    });
}

#[test]
fn the_lease_and_the_count_are_those_of_the_pop() {
    let server = Server::start();
    let mut c = server.client();
    c.push_many("b 3 x x x IDS x y z LEASE 5000");
    c.expect_ms_from_now(700_000, |c| {
        assert_eq!(taken(c, "2 a b LEASE 700000 COUNT 2"), from("b", &["x", "y"]));
        c.get("b", "y").int("deadline")
    });
    assert_eq!(c.state("b", "z"), "ready");
}

#[test]
fn without_an_ack_they_are_gone_at_once() {
    in_both_protocols(|c| {
        c.push_many("b 2 x x IDS x y");
        let reply = c.ask("DQ.MPOP 2 a b NOACK COUNT 2");
        for message in reply.items()[1].items() {
            assert_eq!(message.items()[3], c.null());
        }
        assert_eq!((c.len("b"), c.about("b").int("delivered")), (0, 2));
    });
}

#[test]
fn a_key_named_twice_is_one_queue() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    c.push("a x ID m");
    assert_eq!(taken(&mut c, "3 a a a COUNT 5"), from("a", &["m"]));
    waiting.wait_for_any(&["a", "a"]);
    c.until_blocked(1);
    c.push_many("a 2 x x IDS n o");
    assert_eq!(waiting.served_from_any().1.id, "n");
    assert_eq!(c.counts("a"), [0, 1, 2, 0]);
}

#[test]
fn keys_may_look_like_options() {
    let server = Server::start();
    let mut c = server.client();
    c.push("COUNT x ID m");
    assert_eq!(taken(&mut c, "2 BLOCK COUNT COUNT 5"), from("COUNT", &["m"]));
}

#[test]
fn a_push_to_any_key_wakes_the_blocked_client() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        for key in ["a", "b", "c"] {
            let server = Server::start();
            let (mut waiting, mut c) = (server.client_with(protocol), server.client());
            // One has a delayed message, one is empty, and one does not exist.
            c.push("a x DELAY 600000");
            c.create("b");
            waiting.wait_for_any(&["a", "b", "c"]);
            c.until_blocked(1);
            assert_eq!(c.info("dq", "dq_blocked_clients"), "1");
            c.push(format!("{key} hello ID m"));
            let (from, message) = waiting.served_from_any();
            assert_eq!((from.as_str(), message.id.as_str(), message.attempt), (key, "m", 1));
            assert_eq!(c.ack(format!("{key} {}", message.receipt())), 1);
            assert_eq!(c.ask("EXISTS c"), Reply::Int(i64::from(key == "c")), "waiting makes no queue");
        }
    }
}

#[test]
fn a_blocked_mpop_is_served_when_due_and_never_before() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    for (n, (key, other)) in [("a", "b"), ("b", "a")].into_iter().enumerate() {
        c.push(format!("{other} x ID late{n} DELAY 600000"));
        waiting.wait_for_any(&["a", "b"]);
        c.until_blocked(1);
        c.push(format!("{key} x ID m{n} DELAY 60"));
        let due = c.get(key, &format!("m{n}")).int("due");
        let (from, message) = waiting.served_from_any();
        assert_eq!((from.as_str(), message.id), (key, format!("m{n}")));
        c.expect_delivered_at(key, &format!("m{n}"), due);
    }
}

#[test]
fn messages_delayed_when_an_mpop_blocks_are_served_when_due() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("b x ID m DELAY 200");
    let due = c.get("b", "m").int("due");
    waiting.wait_for_any(&["a", "b"]);
    assert_eq!(waiting.served_from_any().0, "b");
    c.expect_delivered_at("b", "m", due);
}

#[test]
fn a_blocked_mpop_takes_from_one_queue_only() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    waiting.wait_for_any(&["a", "b"]);
    c.until_blocked(1);
    c.multi(&["DQ.PUSH b x ID b1", "DQ.PUSH a x ID a1"]);
    waiting.served_from_any();
    c.until_blocked(0);
    assert_eq!(c.len("a inflight") + c.len("b inflight"), 1);
    assert_eq!(c.len("a ready") + c.len("b ready"), 1, "nothing is lost");
}

#[test]
fn clients_of_one_or_several_queues_are_served_in_order() {
    let server = Server::start();
    let mut c = server.client();
    let mut waiting: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for (n, client) in waiting.iter_mut().enumerate() {
        if n % 2 == 0 {
            client.wait_for_any(&["other", "q"]);
        } else {
            client.wait_for_message("q");
        }
        c.until_blocked(n + 1);
    }
    for (n, client) in waiting.iter_mut().enumerate() {
        c.push(format!("q x ID m{n}"));
        let id = if n % 2 == 0 { client.served_from_any().1.id } else { client.served().id };
        assert_eq!(id, format!("m{n}"));
    }
    // A client that was served from one key is no longer blocked on the others.
    c.push("other x");
    assert_eq!(c.len("other ready"), 1);
    eventually("nobody waits", || c.info("dq", "dq_blocked_clients") == "0");
}

#[test]
fn a_blocked_mpop_gets_null_when_its_timeout_ends() {
    in_both_protocols(|c| {
        c.push("a x DELAY 600000");
        let start = c.now();
        assert_eq!(c.ask("DQ.MPOP 3 a b c BLOCK 50"), c.null_array());
        assert!(c.latest_now() >= start + 50, "it waited");
        assert_eq!(c.ask("EXISTS b c"), Reply::Int(0));
    });
}

#[test]
fn an_unblocked_client_gets_null_from_several_queues_too() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let server = Server::start();
        let (mut waiting, mut c) = (server.client_with(protocol), server.client());
        let id = waiting.ask("CLIENT ID").int();
        waiting.wait_for_any(&["a", "b"]);
        c.until_blocked(1);
        assert_eq!(c.ask(format!("CLIENT UNBLOCK {id}")), Reply::Int(1));
        assert_eq!(waiting.receive(), waiting.null_array());
        c.push("b x");
        assert_eq!(c.pop_one("b").attempt, 1);
    }
}

#[test]
fn transactions_and_scripts_do_not_wait_for_several_queues() {
    in_both_protocols(|c| {
        let replies = c.multi(&["DQ.MPOP 2 a b BLOCK 0", "DQ.PUSH b x ID m", "DQ.MPOP 2 a b BLOCK 0"]);
        assert_eq!(replies[0], c.null_array());
        assert_eq!(replies[2].items()[0], Reply::bulk("b"));
        assert!(c.script("DQ.MPOP 2 a b BLOCK 0").is_null());
        c.push("a x ID n");
        let reply = c.script("DQ.MPOP 2 a b BLOCK 0");
        assert_eq!(
            (&reply.items()[0], &reply.items()[1].items()[0].items()[0]),
            (&Reply::bulk("a"), &Reply::bulk("n"))
        );
    });
}

#[test]
fn resuming_and_making_room_serve_a_blocked_mpop() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.create("full MAXINFLIGHT 1");
    c.push_many("full 2 x x IDS a b");
    c.pop_one("full LEASE 600000");
    c.push("paused x ID m");
    c.pause("paused");
    waiting.wait_for_any(&["paused", "full"]);
    c.until_blocked(1);
    c.ack("full a");
    assert_eq!(waiting.served_from_any().1.id, "b");
    waiting.wait_for_any(&["full", "paused"]);
    c.until_blocked(1);
    c.resume("paused");
    assert_eq!(waiting.served_from_any().1.id, "m");
}

#[test]
fn a_key_that_changes_type_keeps_its_mpop_blocked() {
    let server = Server::start();
    let (mut waiting, mut c) = (server.client(), server.client());
    c.push("a x DELAY 600000");
    waiting.wait_for_any(&["a", "b"]);
    c.until_blocked(1);
    c.multi(&["DEL a", "LPUSH a item"]);
    c.ask("DEL a");
    c.until_blocked(1);
    c.push("b x ID m DELAY 20");
    assert_eq!(waiting.served_from_any().0, "b");
}

#[test]
fn an_mpop_is_one_effect_on_the_key_it_used() {
    let effects = effects_of(|c| {
        c.push_many("b 3 x x x");
        assert_eq!(c.pop_any("3 a b c COUNT 3").expect("three").1.len(), 3);
        assert_eq!(c.pop_any("3 a b c COUNT 3"), None);
    });
    assert_eq!(effects.len(), 2, "of the push and of the pop");
}

#[test]
fn a_pop_of_several_queues_replays_as_it_was() {
    let mut server = Server::with_aof(&[]);
    let (mut c, mut waiting) = (server.client(), server.client());
    waiting.wait_for_any(&["a", "b"]);
    c.until_blocked(1);
    c.push("b x ID m DELAY 20");
    let message = waiting.served_from_any().1;
    c.push_many("a 2 x x");
    c.pop_any("2 b a NOACK").expect("one");
    let digests = ["a", "b"].map(|key| c.digest(key));
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(["a", "b"].map(|key| c.digest(key)), digests);
    assert_eq!(c.ack(format!("b {}", message.receipt())), 1);
}

#[test]
fn who_gets_nothing_leaves_no_trace() {
    let server = Server::start();
    let mut c = server.client();
    c.push("a x DELAY 600000");
    let (changes, offset) = (c.changes(), c.info("replication", "master_repl_offset"));
    let mut watcher = server.client();
    watcher.ask("WATCH a b").ok();
    assert_eq!(c.pop_any("2 a b"), None);
    assert_eq!(c.pop_any("2 a b BLOCK 5"), None);
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!((c.changes(), c.info("replication", "master_repl_offset")), (changes, offset));
}

#[test]
fn clusters_and_acls_know_the_keys_of_an_mpop() {
    let server = Server::start();
    let mut c = server.client();
    for (line, keys) in [
        ("DQ.MPOP 1 a", vec!["a"]),
        ("DQ.MPOP 3 a b c", vec!["a", "b", "c"]),
        ("DQ.MPOP 2 a b COUNT 5 BLOCK 0", vec!["a", "b"]),
    ] {
        let keys = Reply::Array(keys.into_iter().map(Reply::bulk).collect());
        assert_eq!(c.ask(format!("COMMAND GETKEYS {line}")), keys, "{line}");
    }
    c.push("mine x");
    c.push("other x");
    c.ask("ACL SETUSER worker reset on nopass +dq.mpop ~mine").ok();
    c.ask("AUTH worker any").ok();
    for keys in ["2 mine other", "2 other mine", "1 other"] {
        assert!(c.ask(format!("DQ.MPOP {keys}")).error().starts_with("NOPERM "), "{keys}");
    }
    assert!(c.pop_any("1 mine").is_some());
}

#[test]
fn an_invalid_numkeys_opens_no_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.push("mine x");
    c.push("other x");
    for number in ["0", "-1", "+1", "01", "1.0", "0x1", "x", "3", "2147483647", "9223372036854775807"] {
        let line = format!("DQ.MPOP {number} mine other");
        assert!(!c.ask(format!("COMMAND GETKEYS {line}")).is_null(), "{line}: an answer, whatever it is");
    }
    for number in ["+1", "01"] {
        assert!(c.ask(format!("COMMAND GETKEYS DQ.MPOP {number} mine")).is_error(), "{number} is no number");
    }
    let changes = c.changes();
    c.ask("ACL SETUSER worker reset on nopass +dq.mpop +ping ~mine").ok();
    let mut worker = server.client();
    worker.ask("AUTH worker any").ok();
    for number in ["0", "-1", "+1", "01", "1.0", "0x1", "x", "3", "2147483647", "9223372036854775807"] {
        for keys in ["other", "mine other", "other mine"] {
            let reply = worker.ask(format!("DQ.MPOP {number} {keys}"));
            assert!(matches!(reply, Reply::Error(_)), "{number} {keys}: {reply:?}");
        }
    }
    assert_eq!((c.len("other ready"), c.len("mine ready"), c.changes()), (1, 1, changes));
}

#[test]
fn in_a_cluster_the_keys_share_a_slot() {
    let server = Server::with(&["--cluster-enabled", "yes"]);
    let mut c = server.client();
    c.ask("CLUSTER ADDSLOTSRANGE 0 16383").ok();
    eventually("the cluster is up", || c.ask("CLUSTER INFO").text().contains("cluster_state:ok"));
    assert_eq!(c.pop_any("2 {t}a {t}b"), None);
    c.push("{t}b x ID m");
    assert_eq!(taken(&mut c, "2 {t}a {t}b"), from("{t}b", &["m"]));
    let reply = c.ask("DQ.MPOP 2 a b");
    assert!(matches!(&reply, Reply::Error(text) if text.starts_with("CROSSSLOT ")), "{reply:?}");
    // This node never serves a key of another node, so a client that blocked here on one would never be served.
    c.configure("cluster-require-full-coverage", "no");
    let slot = c.ask("CLUSTER KEYSLOT {t}b").int();
    c.ask(format!("CLUSTER DELSLOTS {slot}")).ok();
    for line in ["DQ.POP {t}b", "DQ.MPOP 2 {t}a {t}b"] {
        let reply = c.ask(line);
        assert!(matches!(&reply, Reply::Error(text) if text.starts_with("CLUSTERDOWN ")), "{line}: {reply:?}");
    }
}

#[test]
fn who_is_gone_gets_nothing_from_several_queues_either() {
    let server = Server::start();
    let (mut c, mut gone, mut next) = (server.client(), server.client(), server.client());
    gone.wait_for_any(&["a", "b"]);
    c.until_blocked(1);
    next.wait_for_any(&["b", "a"]);
    c.until_blocked(2);
    drop(gone);
    c.until_blocked(1);
    c.push("a x ID m DELAY 20");
    let (key, message) = next.served_from_any();
    assert_eq!((key.as_str(), message.id.as_str(), message.attempt), ("a", "m", 1));
    eventually("nobody waits", || c.info("dq", "dq_blocked_clients") == "0");
}

#[test]
fn a_key_of_another_type_keeps_the_other_usable() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    waiting.wait_for_any(&["a", "b"]);
    c.until_blocked(1);
    c.ask("SET a text").ok();
    c.push("b x ID m");
    c.ask("DEL a");
    let (key, message) = waiting.served_from_any();
    assert_eq!((key.as_str(), message.id.as_str()), ("b", "m"), "at the latest when the other type is gone");
}

#[test]
fn a_queue_from_elsewhere_serves_a_blocked_mpop() {
    for lines in [["RENAME from b", "PING"], ["COPY from b", "PING"], ["MOVE from 1", "SWAPDB 0 1"]] {
        for delay in [0, 100] {
            let server = Server::start();
            let (mut c, mut waiting) = (server.client(), server.client());
            waiting.wait_for_any(&["a", "b", "from-elsewhere", "from"]);
            c.until_blocked(1);
            c.ask("SELECT 2").ok();
            c.push(format!("from x ID m DELAY {delay}"));
            let due = c.get("from", "m").int("due");
            // For the waiting client's database, the queue appears without any command there.
            c.multi(&["MOVE from 0", "SELECT 0", lines[0], lines[1]]);
            assert_eq!(waiting.served_from_any().1.id, "m", "{lines:?}");
            c.until_after(due - 1);
        }
    }
}

#[test]
fn the_keys_may_be_many() {
    let server = Server::start();
    let mut c = server.client();
    let keys: Vec<String> = (0..2_000).map(|n| format!("key{n}")).collect();
    let mut waiting: Vec<Client> = (0..5).map(|_| server.client()).collect();
    for (n, client) in waiting.iter_mut().enumerate() {
        client.wait_for_any(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        c.until_blocked(n + 1);
    }
    for (n, client) in waiting.iter_mut().enumerate() {
        let key = &keys[n * 400 + 399];
        c.push(format!("{key} x DELAY {}", n % 2 * 20));
        assert_eq!(&client.served_from_any().0, key);
    }
    assert_eq!(c.ask("DBSIZE"), Reply::Int(5));
    eventually("nobody waits", || c.info("dq", "dq_blocked_clients") == "0");
}
