//! DQ.PEEK: the next messages of a state, in the order in which they leave it.

use crate::support::{eventually, every_state, in_both_protocols, Client, Protocol, Reply, Server};

#[test]
fn what_peek_shows_is_what_get_shows() {
    in_both_protocols(|c| {
        let cast = every_state(c, "q");
        let mut seen = Vec::new();
        for (state, count) in
            [("delayed", cast.delayed), ("ready", cast.ready), ("inflight", cast.inflight), ("dead", cast.dead)]
        {
            let reply = c.ask(format!("DQ.PEEK q {state} COUNT 100"));
            assert_eq!(reply.items().len() as i64, count, "{state}");
            for item in reply.items() {
                let is_map = matches!(item, Reply::Map(_));
                assert_eq!(is_map, c.protocol() == Protocol::Resp3, "a map, or in RESP2 a flat array: {item:?}");
                let message = item.fields();
                assert_eq!(message.text("state"), state);
                let id = message.text("id");
                assert_eq!(message, c.get("q", &id), "{id}");
                seen.push(id);
            }
        }
        seen.sort();
        let mut all = cast.ids.clone();
        all.sort();
        assert_eq!(seen, all);
    });
}

#[test]
fn peek_shows_the_next_delivery_by_default() {
    in_both_protocols(|c| {
        c.push_many("q 3 x x x IDS a b c");
        c.push("q x ID high PRIORITY 1");
        assert_eq!(c.peek_ids("q"), ["high"]);
        assert_eq!(c.peek_ids("q ready"), ["high"]);
        assert_eq!(c.peek_ids("q COUNT 3"), ["high", "a", "b"]);
        assert_eq!(c.peek_ids("q READY count 2147483647"), ["high", "a", "b", "c"]);
    });
}

#[test]
fn peeking_at_nothing_answers_an_empty_list() {
    in_both_protocols(|c| {
        c.create("empty");
        for key in ["absent", "empty"] {
            for words in ["", " delayed", " ready", " inflight", " dead COUNT 5"] {
                assert_eq!(c.ask(format!("DQ.PEEK {key}{words}")), Reply::Array(vec![]), "{key}{words}");
            }
        }
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
    });
}

#[test]
fn ready_messages_are_shown_in_the_order_of_delivery() {
    let server = Server::start();
    let mut c = server.client();
    for n in 0..300 {
        c.push(format!("q x AT {} PRIORITY {}", 1_000_000_000_000i64 + n * 7 % 50, n % 5 - 2));
    }
    let shown = c.peek_ids("q COUNT 300");
    for chunk in [1, 99, 200] {
        assert_eq!(c.peek_ids(format!("q COUNT {chunk}")), shown[..chunk]);
    }
    assert_eq!(c.pop_ids("q COUNT 300"), shown);
}

#[test]
fn delayed_messages_are_shown_by_their_due_time() {
    let server = Server::start();
    let mut c = server.client();
    // Priority orders ready messages; it does not decide which is ready first.
    for (id, delay, priority) in
        [("c", 900_000, 127), ("a", 700_000, -128), ("d", 1_000_000, 5), ("b", 800_000, 0), ("e", 1_100_000, 127)]
    {
        c.push(format!("q x ID {id} DELAY {delay} PRIORITY {priority}"));
    }
    assert_eq!(c.peek_ids("q delayed"), ["a"]);
    assert_eq!(c.peek_ids("q delayed COUNT 3"), ["a", "b", "c"]);
    assert_eq!(c.peek_ids("q delayed COUNT 10"), ["a", "b", "c", "d", "e"]);
    c.reschedule("q e DELAY 600000");
    assert_eq!(c.peek_ids("q delayed COUNT 2"), ["e", "a"]);
}

#[test]
fn messages_in_flight_are_shown_by_lease_end() {
    let server = Server::start();
    let mut c = server.client();
    c.push_many("q 4 x x x x IDS a b c d");
    for lease in [900_000, 700_000, 800_000] {
        c.pop_one(format!("q LEASE {lease}"));
    }
    assert_eq!(c.peek_ids("q inflight COUNT 10"), ["b", "c", "a"]);
    c.extend("q b LEASE 950000");
    assert_eq!(c.peek_ids("q inflight COUNT 2"), ["c", "a"]);
}

#[test]
fn dead_messages_are_shown_the_newest_first() {
    let server = Server::start();
    let mut c = server.client();
    let due = c.now() + 50;
    for id in ["a", "b", "c"] {
        c.push(format!("q x ID {id} AT {due} TTL 1 PRIORITY {}", if id == "b" { 9 } else { 0 }));
    }
    for id in ["a", "b", "c"] {
        c.until_state("q", id, "dead");
    }
    let died = c.get("q", "a").int("died");
    c.until_after(died);
    c.bury("q", &["d"]);
    assert_eq!(c.peek_ids("q dead"), ["d"]);
    assert_eq!(c.peek_ids("q dead COUNT 10"), ["d", "c", "b", "a"], "by their death, then by their push");
}

#[test]
fn the_states_are_exact_before_the_timer_has_looked() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID lapsed PRIORITY 1");
    c.push("q x ID spent RETRIES 0 PRIORITY 1");
    // Nothing runs between commands that come in one piece: the timer cannot have moved them.
    let replies = c.pipeline([
        "DQ.POP q LEASE 5 COUNT 2",
        "DQ.PUSH q x ID due DELAY 5",
        "DQ.PUSH q x ID expired TTL 5",
        "DEBUG SLEEP 0.05",
        "DQ.PEEK q delayed COUNT 10",
        "DQ.PEEK q inflight COUNT 10",
        "DQ.PEEK q ready COUNT 10",
        "DQ.PEEK q dead COUNT 10",
    ]);
    let of = |reply: &Reply| -> Vec<(String, String)> {
        let messages = reply.items().iter().map(Reply::fields);
        messages.map(|message| (message.text("id"), message.text("state"))).collect()
    };
    let seen = |id: &str, state: &str| (id.to_owned(), state.to_owned());
    assert!(of(&replies[4]).is_empty() && of(&replies[5]).is_empty(), "{replies:?}");
    assert_eq!(of(&replies[6]), [seen("lapsed", "ready"), seen("due", "ready")]);
    let mut dead = of(&replies[7]);
    dead.sort();
    assert_eq!(dead, [seen("expired", "dead"), seen("spent", "dead")]);
}

#[test]
fn peeking_changes_nothing() {
    let server = Server::start();
    let (mut c, mut watcher, mut waiting) = (server.client(), server.client(), server.client());
    let cast = every_state(&mut c, "q");
    c.push("paused x");
    c.pause("paused");
    waiting.wait_for_message("paused");
    c.until_blocked(1);
    let (digest, about, portraits) = (c.digest("q"), c.about_but_time("q"), cast.portraits(&mut c, "q"));
    let (changes, offset) = (c.changes(), c.info("replication", "master_repl_offset"));
    watcher.ask("WATCH q").ok();
    for state in ["", " delayed", " ready", " inflight", " dead"] {
        for count in ["", " COUNT 3", " COUNT 1000"] {
            c.peek(format!("q{state}{count}"));
        }
    }
    assert_eq!(c.peek("paused").len(), 1, "a pause keeps nobody from looking");
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!((c.changes(), c.info("replication", "master_repl_offset")), (changes, offset));
    assert_eq!((c.digest("q"), c.about_but_time("q")), (digest, about));
    assert_eq!(cast.portraits(&mut c, "q"), portraits);
    c.until_blocked(1);
    cast.expect_alive(&mut c, "q");
}

#[test]
fn a_replica_shows_the_same() {
    let master = Server::start();
    let mut c = master.client();
    every_state(&mut c, "q");
    let replica = Server::replica_of(&master, &[]);
    let mut r = replica.client();
    let all =
        |c: &mut Client| ["delayed", "ready", "inflight", "dead"].map(|state| c.peek(format!("q {state} COUNT 100")));
    eventually("the replica shows the same", || all(&mut r) == all(&mut c));
}

#[test]
fn it_works_in_transactions_and_scripts() {
    in_both_protocols(|c| {
        let replies =
            c.multi(&["DQ.PUSH q x ID a", "DQ.PEEK q", "DQ.POP q LEASE 600000", "DQ.PEEK q", "DQ.PEEK q inflight"]);
        assert_eq!(replies[1].items()[0].fields().text("id"), "a");
        assert_eq!(replies[3], Reply::Array(vec![]));
        assert_eq!(replies[4].items()[0].fields().text("state"), "inflight");
        let script = "redis.setresp(3) return redis.call('DQ.PEEK', KEYS[1], 'inflight')[1].map.id";
        assert_eq!(c.cmd(&["EVAL", script, "1", "q"]), Reply::bulk("a"), "a script that asks for maps gets them");
        // Otherwise a map is the flat array of RESP2 there.
        assert_eq!(c.script("DQ.PEEK q inflight").items()[0].fields().text("id"), "a");
    });
}
